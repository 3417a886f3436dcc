"""From names in files to classes and functions, and back: by a closed list, and by what users have registered."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from sklearn.base import BaseEstimator

import genkern
from genkern.data.serialize import UnknownClassError
from genkern.saving import tables

AnyObject = TypeVar("AnyObject")

_registered: dict[str, Any] = {}


def register(thing: AnyObject) -> AnyObject:
    """Let an own class of estimators, or an own function, be part of saved files; to be used as a decorator.

    A file holds the name alone. To be loaded, the module must have been imported: no file can import it. A class is
    built by its constructor from its parameters (``get_params``), and its attributes are set; so it must follow the
    conventions of scikit-learn, and what it does with its attributes is in its own care, for a file may hold any.

    Parameters
    ----------
    thing : class or function
        A subclass of ``sklearn.base.BaseEstimator``, or a function, at the top level of a module. Models (subclasses of
        ``genkern.models.base.Model``) need no registration.

    Returns
    -------
    thing : class or function
        The same.

    Examples
    --------
    >>> from genkern import saving
    >>> @saving.register
    ... def doubled(X):
    ...     return 2 * X
    """
    name = getattr(thing, "__qualname__", None)
    known = isinstance(thing, type) and issubclass(thing, BaseEstimator)
    if name is None or not (known or callable(thing)) or (isinstance(thing, type) and not known):
        raise TypeError(
            "saving.register: expected a function or a class of estimators (a subclass of BaseEstimator). "
            f"Got {thing!r:.80}."
        )
    if "<" in name:
        raise TypeError(
            f"saving.register: {thing.__module__}.{name} has no name by which a file could be loaded. Define it by "
            "def or class at the top level of a module."
        )
    _registered[f"{thing.__module__}.{name}"] = thing
    return thing


@cache
def listed() -> dict[str, tuple[str, str]]:
    """Return module and attribute of every name that a file may have, but for those that users have registered."""
    known = {f"genkern.{name}": ("genkern", name) for name in genkern.__all__ if name[0].isupper()}
    recipes = import_module("genkern.recipes").__all__
    known |= {f"genkern.recipes.{name}": ("genkern.recipes", name) for name in recipes if name[0].isupper()}
    for table in (tables.ESTIMATORS, tables.PLAIN, tables.TUPLES, tables.FUNCTIONS, tables.TYPES):
        known |= {f"{module}.{name}": (module, name) for module, names in table.items() for name in names.split()}
    return known


def is_in(name: str, table: dict[str, str]) -> bool:
    """Return whether a name of the closed list stands in one of its tables."""
    module, _, attribute = name.rpartition(".")
    return attribute in table.get(module, "").split()


def find(name: Any) -> Any:
    """Return the class or function of a name; of those that are listed, the module need not have been imported."""
    if isinstance(name, str) and name in _registered:
        return _registered[name]
    if not isinstance(name, str) or name not in listed():
        raise UnknownClassError(
            f"the class or function {name!r:.80} is not known; import the module that registers it first "
            "(genkern.saving.register)."
        )
    module, attribute = listed()[name]
    found = getattr(import_module(module), attribute, None)
    if found is None:
        raise UnknownClassError(f"{name} does not exist in the version of {module.partition('.')[0]} that is here.")
    return found


def name_of(thing: Any) -> str | None:
    """Return the name of a class or function; None if it has none that a file may hold."""
    for name in _names_like(getattr(thing, "__name__", "")):
        if find(name) is thing:
            return name
    name = f"{getattr(thing, '__module__', None)}.{getattr(thing, '__qualname__', None)}"
    return name if _registered.get(name) is thing else None


def _names_like(attribute: str) -> Iterator[str]:
    return (name for name, (_, last) in listed().items() if last == attribute)
