"""One decorator for compiled code: its flags, and a cache directory that follows the sources.

Numba notices an edit of the decorated function's own file but not of a callee in another one. So the compiled code
of a file lies in a directory named by a digest of that file and of all those in ``core/`` that it imports, directly or
not (and of the version of Numba): an edit opens fresh ones for the files that it can reach, and for no others.
They lie under ``NUMBA_CACHE_DIR`` if that is set, else in the user's cache directory, else in a temporary one.

Anyone who can write there can make us run any code: Numba loads pickles and machine code from its cache. So a directory
is used only if nobody but this user can write into it or put another in its place; the user is told of one that is
refused. If there is none, code is compiled again in every process.

Code that is not in the cache is compiled, which takes a while; the user is told so, in one line on standard error.
Helpers that Python never calls are parts (see ``parts``), since machine code of their own is what takes longest.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from multiprocessing import current_process
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import config, event
from numba.core.options import DefaultOptions

from genkern.core.parts import Part, PartCompiler
from genkern.core.private import exposure, make_private

Function = TypeVar("Function", bound=Callable[..., Any])

# fastmath stays off: it breaks -inf and NaN. parallel stays off: threads run serial kernels over bins.
# forceinline is set, since a function would take it over from an inlined one that calls it first.
FLAGS: dict[str, Any] = {"nopython": True, "nogil": True, "cache": True, "error_model": "numpy", "forceinline": False}

# Numba counts references to arrays by atomic operations, also inside loops; functions that allocate nothing need none.
UNCOUNTED: dict[str, Any] = {**FLAGS, **({"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {})}

# Functions that are compiled only as a part of their callers have no cache of their own; some, no code for Python.
UNCACHED: dict[str, Any] = {key: value for key, value in UNCOUNTED.items() if key not in ("nopython", "cache")}
UNWRAPPED: dict[str, Any] = {**UNCACHED, "nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

FIRST_USE = (
    "genkern: compiling on first use, for some 10 to 40 seconds; the result is kept for the next time. "
    "'genkern warmup' compiles everything ahead.\n"
)

COMPILED = not config.DISABLE_JIT

CORE = Path(__file__).parent
IMPORT = r"^\s*from genkern\.core((?:\.\w+)*) import (\([^)]*\)|[^\n]*)"


class FirstUse(event.Listener):
    """Tells, once in a process that is nobody's worker, that code of ours is being compiled."""

    told = False

    def on_start(self, event: Any) -> None:
        """Tell it before the first compilation."""
        if not self.told and event.data["dispatcher"].py_func.__module__.startswith("genkern."):
            self.told = True
            if current_process().name == "MainProcess" and sys.stderr is not None:
                sys.stderr.write(FIRST_USE)
                sys.stderr.flush()

    def on_end(self, event: Any) -> None:
        """Do nothing."""


first_use = FirstUse()
event.register("numba:compile", first_use)


def jit(function: Function) -> Function:
    """Compile a module-level function: nopython, GIL released, cached on disk, IEEE arithmetic kept.

    With ``NUMBA_DISABLE_JIT=1`` the function is returned as it is.
    """
    return _compiled(function, FLAGS)


def kernel(function: Function) -> Function:
    """Compile a module-level function like jit, but without reference counts: it must not allocate arrays."""
    return _compiled(function, UNCOUNTED)


def part(function: Function) -> Function:
    """Compile a module-level function for compiled callers only, into machine code once, with each that Python calls.

    Like kernel it must not allocate arrays.
    """
    return _part(function, UNWRAPPED)


def inlined(function: Function) -> Function:
    """Compile a small module-level function like part, without a call of its own wherever it is used.

    For the bodies of hot loops: a call that passes arrays costs more than many of them do.
    """
    return _part(function, {**UNWRAPPED, "forceinline": True})


def _part(function: Function, flags: dict[str, Any]) -> Function:
    """Return the dispatcher of a part, or the function itself where nothing is compiled."""
    return Part(function, targetoptions=flags, pipeline_class=PartCompiler) if COMPILED else function


def _compiled(function: Function, flags: dict[str, Any]) -> Function:
    """Return the dispatcher of a function, or the function itself where nothing is compiled."""
    if not COMPILED:
        return function
    # A dispatcher takes its cache directory when it is made, so the setting of the process is only borrowed:
    # other libraries' caches stay where they are.
    chosen = config.CACHE_DIR
    directory = cache_directory(source_digest(_module_of(Path(function.__code__.co_filename))), chosen)
    try:
        config.CACHE_DIR = str(directory or "")
        return numba.jit(**{**flags, "cache": directory is not None})(function)
    finally:
        config.CACHE_DIR = chosen


@cache
def cache_directory(digest: str, chosen: str = "") -> Path | None:
    """Return a directory for the compiled code of sources with this digest that only this user can write, if any."""
    name = f"genkern-{digest}"
    base = chosen or str(_user_cache())
    dangers = []
    for folder, label in ((base, name), (tempfile.gettempdir(), f"{name}-{_user_id()}")):
        directory = Path(os.path.realpath(folder)) / label
        with contextlib.suppress(OSError):  # a folder that cannot be created or inspected cannot be used
            make_private(directory)
            danger = exposure(directory)
            if danger is not None:
                dangers.append(danger)
            elif os.access(directory, os.W_OK | os.X_OK):
                _tell(dangers, directory.parent)
                return directory
    _tell(dangers, None)
    return None


_told: list[str] = []


def _tell(dangers: list[str], found: Path | None) -> None:
    """Warn, once in a process, of directories that were refused as unsafe, or that there is none."""
    if _told or not (dangers or found is None):
        return
    text = "genkern: "
    if dangers:
        text += (
            f"compiled code is not kept where others could replace it, since it is executed: {'; '.join(dangers)}. "
            "Take that right away (chmod go-w), or set NUMBA_CACHE_DIR to a folder of your own with mode 700. "
        )
    if found is None:
        text += "No folder is left for compiled code, so it is compiled again in every process; set NUMBA_CACHE_DIR."
    else:
        text += f"It is kept in {found} instead."
    _told.append(text)
    warnings.warn(text, stacklevel=2)


@cache
def source_digest(module: str) -> str:
    """Return a short hexadecimal digest of the sources on which compiled code of a module of ``core`` depends.

    Modules are named from there: ``hmm.passes``.
    """
    digest = hashlib.sha256(numba.__version__.encode())  # versions would overwrite each other's code
    for name in sorted(_reached(module)):
        digest.update(name.encode() + b"\0" + _source(name).encode())
    return digest.hexdigest()[:16]


def _reached(module: str) -> set[str]:
    """Return the names of a module and of all it imports from here, directly or not; all names for foreign modules."""
    if not _path(module).exists():
        return {_module_of(path) for path in CORE.rglob("*.py")}
    reached, waiting = set(), {module, "jit"}
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting |= _imported(name) - reached
    return reached


@cache
def _imported(module: str) -> set[str]:
    """Return the names of the modules of this package that a module imports."""
    named = set()
    for package, group in re.findall(IMPORT, _source(module), re.MULTILINE):
        inside = package.removeprefix(".")
        names = re.findall(r"(\w+)(?: as \w+)?", group)
        named |= {inside, *(f"{inside}.{name}".removeprefix(".") for name in names)}
    return {name for name in named if name and _path(name).exists()}


@cache
def _source(module: str) -> str:
    return _path(module).read_text(encoding="utf-8")


def _path(module: str) -> Path:
    return CORE / f"{module.replace('.', '/')}.py"


def _module_of(path: Path) -> str:
    """Return the name of a file of ``core``, or the path of another."""
    inside = path.is_relative_to(CORE)
    return ".".join(path.relative_to(CORE).with_suffix("").parts) if inside else str(path)


def _user_cache() -> Path:
    """Return the platform's cache directory of this user; it need not exist."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or os.path.expanduser("~"))
    if sys.platform == "darwin":
        return Path(os.path.expanduser("~")) / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"))


def _user_id() -> int:
    """Return the number of this user, or zero where the system has none."""
    return os.getuid() if hasattr(os, "getuid") else 0
