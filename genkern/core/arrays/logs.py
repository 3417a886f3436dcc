"""Sums of numbers that are held as logarithms, in one double or in two.

A long logarithm is the unevaluated sum of two doubles, the second below half a unit in the last place of the first.
Logarithms of 1e10 and more have too few digits behind the point in one double: what matters of them is differences of
order one, which two keep up to about 1e30.
"""

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


@jit
def long_add(x, y):
    """Return the sum of two long logarithms, pairs of doubles (Knuth's exact sum, then the small parts)."""
    high = x[0] + y[0]
    if math.isinf(high):
        return high, 0.0
    moved = high - x[0]
    low = ((x[0] - (high - moved)) + (y[0] - moved)) + (x[1] + y[1])
    total = high + low
    return total, low - (total - high)


@jit
def long_minus(x, y):
    """Return the difference of two long logarithms, of which the second is finite."""
    return long_add(x, (-y[0], -y[1]))


@jit
def long_masses(logs, others):
    """Return the largest long logarithm (n, 2) of which the other (n,) is not -inf, and log Σ exp(logs - it + others).

    The sum, a double, keeps all digits of the others, however large the logs are; it is -inf where there is nothing.
    """
    top, highest, total = (-np.inf, 0.0), -np.inf, 0.0
    for k in range(len(logs)):
        if others[k] > -np.inf and (logs[k, 0] > top[0] or (logs[k, 0] == top[0] and logs[k, 1] > top[1])):
            top = (logs[k, 0], logs[k, 1])
    if top[0] == -np.inf:
        return top, highest
    for k in range(len(logs)):
        highest = max(highest, long_minus((logs[k, 0], logs[k, 1]), top)[0] + others[k])
    for k in range(len(logs)):
        total += math.exp(long_minus((logs[k, 0], logs[k, 1]), top)[0] + others[k] - highest)
    return top, highest + math.log(total)


@jit
def long_log_sum(logs, others):
    """Return the long logarithm of Σ exp(logs + others), of long logarithms (n, 2) and doubles (n,)."""
    top, total = long_masses(logs, others)
    return long_add(top, (total, 0.0))
