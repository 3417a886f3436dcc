"""Numbers of other packages: attributes of fitted models as arrays of float64."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from genkern.models.adapt.calls import plain
from genkern.validation import Floats

ROUNDED = 1e-4  # sums of probabilities in float32 are divided out up to this


def attribute(model: Any, name: str) -> Any:
    """Return an attribute of a fitted model; raise if it is not fitted."""
    found = getattr(model, name, None)
    if found is None:
        raise ValueError(f"adapt: the {type(model).__name__} has no {name}: it is not fitted. Call its fit first.")
    return found


def numbers(values: Any) -> Floats:
    """Return an array or tensor as float64."""
    return np.array(plain(values), dtype=np.float64)


def shares(values: Any) -> Floats:
    """Return probabilities as float64; those of less precision are divided by their sums, which they left by rounding.

    Larger errors are left to the constructors, which refuse them.
    """
    array = numbers(values)
    if plain(values).dtype == np.float64:
        return array
    total = array.sum(axis=-1, keepdims=True)
    return np.where(np.abs(total - 1.0) < ROUNDED, array / total, array)


def refuse(model: Any, what: str) -> NoReturn:
    """Raise for a setting that has no exact counterpart."""
    raise ValueError(f"adapt: {type(model).__name__} with {what} has no exact counterpart here.")
