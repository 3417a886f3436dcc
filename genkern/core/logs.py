"""Sums of numbers that are held as logarithms."""

from __future__ import annotations

import math

import numpy as np

from genkern.core.jit import jit


@jit
def log_sum(logs):
    """Return log of the sum of exp of a vector, -inf for an empty sum."""
    top = -np.inf
    for x in logs:
        top = max(top, x)
    if top == -np.inf:
        return top
    total = 0.0
    for x in logs:
        total += math.exp(x - top)
    return top + math.log(total)
