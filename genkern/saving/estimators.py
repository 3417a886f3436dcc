"""Estimators as parameters and fitted attributes, and back: by constructor, with attributes that can do no harm."""

from __future__ import annotations

import inspect
import re
from functools import cached_property
from typing import Any

from genkern.data.serialize import RefusedError, UnreadableError
from genkern.saving.checks import CHECKS, DERIVED, REBUILT

FITTED = re.compile(r"_?[A-Za-z][A-Za-z0-9_]*")
MOST_JOBS = 256
REQUESTS = "_metadata_request"  # of scikit-learn's routing, for fits to come


def fields_of(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator, and then its fitted attributes, by name."""
    hidden = getattr(estimator, "cvargs", {})  # where repeated folds keep theirs
    params = {name: getattr(estimator, name, hidden.get(name)) for name in _parameter_names(type(estimator))}
    if params.get("memory") is not None:
        raise RefusedError(
            f"memory={params['memory']!r} of a {type(estimator).__name__} is a folder of pickles, which must not be "
            "read on the word of a file. Set memory=None: it matters in fit only."
        )
    if not hasattr(estimator, "get_params"):
        return params
    skipped = {*params, *_of_bases(DERIVED, type(estimator), ()), REQUESTS}
    fitted = {name: value for name, value in vars(estimator).items() if name not in skipped}
    return params | {name: value for name, value in fitted.items() if not _is_cached(type(estimator), name)}


def build_estimator(cls: type, name: str, fields: dict[str, Any]) -> Any:
    """Return an estimator of a class that is known and of fields of unknown origin."""
    names = _parameter_names(cls)
    params = {key: fields.pop(key) for key in names if key in fields}
    _check_parameters(name, params)
    estimator = cls(**params)
    if not hasattr(estimator, "get_params"):
        if fields:
            raise UnreadableError(f"{name} has no attribute {next(iter(fields))!r:.80}.")
        return estimator
    own = vars(estimator)
    fitted = set(fields) - set(own)
    for key, value in fields.items():
        if not _is_legal(cls, key, own):
            raise UnreadableError(
                f"{name} has no parameter or fitted attribute {key!r:.80} in the version that is installed here."
            )
        if callable(value) and not hasattr(type(value), "get_params"):
            raise UnreadableError(f"the attribute {key!r} of {name} must not be a class or function.")
    own.update(fields)
    if fitted:
        if cls.__module__.startswith("sklearn.") and hasattr(cls, "_parameter_constraints"):
            estimator._validate_params()
        for check in _of_bases(CHECKS, cls, None), _of_bases(REBUILT, cls, None):
            if check is not None:
                check(estimator)
    return estimator


def _parameter_names(cls: Any) -> list[str]:
    """Return the names of the constructor's arguments."""
    if hasattr(cls, "_get_param_names"):
        return list(cls._get_param_names())
    return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]


def _check_parameters(name: str, params: dict[str, Any]) -> None:
    if params.get("memory") is not None:
        raise UnreadableError(f"{name}: memory= is not legal in files.")
    jobs = params.get("n_jobs")
    if jobs is not None and not (type(jobs) is int and abs(jobs) <= MOST_JOBS):
        raise UnreadableError(f"{name}: n_jobs={jobs!r:.80} is not legal in files.")


def _is_legal(cls: type, key: Any, own: dict[str, Any]) -> bool:
    """Return whether a name can be that of a fitted attribute: none that the class, or Python, gives a meaning."""
    if not isinstance(key, str) or not FITTED.fullmatch(key):
        return False
    if key in own:  # the constructor sets more than parameters
        return True
    return (key.endswith("_") or key.startswith("_")) and inspect.getattr_static(cls, key, own) is own


def _is_cached(cls: type, key: str) -> bool:
    return isinstance(inspect.getattr_static(cls, key, None), cached_property)


def _of_bases(table: dict[str, Any], cls: type, default: Any) -> Any:
    """Return the entry of a table for a class or the nearest of its bases."""
    return next((table[base.__name__] for base in cls.__mro__ if base.__name__ in table), default)
