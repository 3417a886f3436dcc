"""A look at many numbers that should be counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import jit


def first_wrong(values: NDArray[np.float64]) -> int:
    """Return the index, in the flattened array, of the first entry that is no count 0, 1, 2, ..., or -1."""
    return int(_first_wrong(np.ascontiguousarray(values, np.float64).reshape(-1)))


@jit
def _first_wrong(values):
    """Return the index of the first entry of values (N,) that is negative, broken, infinite or NaN, or -1."""
    for i in range(len(values)):
        value = values[i]
        if not (value >= 0.0 and value < np.inf and value == np.floor(value)):
            return i
    return -1
