"""The code of somebody's classes by its content, so that a class that was written anew is told from the old one."""

from __future__ import annotations

import sys
import sysconfig
from functools import cached_property, partial
from pathlib import Path
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np

PLAIN = (bool, int, float, str, bytes, np.integer, np.floating, np.bool_)
METHODS = (FunctionType, classmethod, staticmethod, property)
HOMES = tuple(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib"))


def code_of(kind: type) -> Any:
    """Return lists, numbers and strings that differ where the code of two classes does.

    It is that of the methods of the class and of its bases, of the functions and classes of the same author that they
    call, and the constants that they use. Python's own classes and those of installed packages count by their names.
    Lines and comments do not count; another version of Python may make other code of the same text.

    Parameters
    ----------
    kind : type
    """
    return _class(kind, set())


def _class(kind: type, seen: set[int]) -> Any:
    if id(kind) in seen or _installed(kind.__module__):
        return f"{kind.__module__}.{kind.__qualname__}"
    seen.add(id(kind))
    bases = [base for base in kind.__mro__ if not _installed(base.__module__)]
    return [
        [name, _value(value, seen)]
        for base in bases
        for name, value in sorted(vars(base).items())
        if not name.startswith("__") or isinstance(value, METHODS)  # others are Python's own, some made when needed
    ]


def _value(value: Any, seen: set[int]) -> Any:
    """Return the content of what a class or function has or uses; of what has no known one, the name of its class."""
    if value is None or isinstance(value, PLAIN) or (isinstance(value, np.ndarray) and value.dtype.kind in "biufU"):
        return value
    if isinstance(value, list | dict):
        if id(value) in seen:  # it may contain itself
            return "seen"
        seen.add(id(value))
    if isinstance(value, list | tuple):
        return [_value(item, seen) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    if type(value) is dict:
        return sorted(([repr(key), _value(item, seen)] for key, item in value.items()), key=lambda pair: pair[0])
    if isinstance(value, type):
        return _class(value, seen)
    if isinstance(value, CodeType):
        return [value.co_code, value.co_names, value.co_varnames, _value(value.co_consts, seen)]
    if isinstance(value, FunctionType):
        return _function(value, seen)
    if isinstance(value, property):
        return [_value(part, seen) for part in (value.fget, value.fset)]
    if isinstance(value, partial):
        return _value((value.func, value.args, value.keywords), seen)
    inner = value.func if isinstance(value, cached_property) else None
    if callable(value) or isinstance(value, classmethod):
        inner = getattr(value, "__wrapped__", None)  # of what is decorated
    return f"{type(value).__module__}.{type(value).__qualname__}" if inner is None else _value(inner, seen)


def _function(function: FunctionType, seen: set[int]) -> Any:
    if id(function) in seen or _installed(function.__module__ or ""):
        return f"{function.__module__}.{function.__qualname__}"
    seen.add(id(function))
    used = [function.__globals__[name] for name in sorted(_names(function.__code__)) if name in function.__globals__]
    cells = [content for cell in function.__closure__ or () for content in _contents(cell)]
    parts = (function.__code__, function.__defaults__, function.__kwdefaults__, used, cells)
    return [_value(part, seen) for part in parts]


def _contents(cell: CellType) -> list[Any]:
    """Return what a variable of an outer function holds, nothing if it is not yet set."""
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


def _names(code: CodeType) -> set[str]:
    """Return the names that a function and those inside of it look up."""
    return set(code.co_names).union(*(_names(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def _installed(module: str) -> bool:
    """Say whether a module is of Python, of this package, or of an installed one."""
    home = module.partition(".")[0]
    if home in sys.stdlib_module_names or home == "genkern":
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    return home != "__main__" and file is not None and any(folder in Path(file).parents for folder in HOMES)
