"""Kernel values between mixtures from those between their components, and between sets of points directly."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import jit
from genkern.core.simd.exponential import exp
from genkern.core.simd.vectors import W, broadcast, horizontal_sum, load, maximum, multiply_add, store, zero

Floats = NDArray[np.float64]


class Sets(NamedTuple):
    """Sets of weighted points: (n, d, V) coordinates and log weights (n, V), padded to whole vectors by -inf."""

    points: Floats
    log_weights: Floats
    size: int


def sets_of(points: Floats, log_weights: Floats) -> Sets:
    """Return the layout of the pass from points (n, K, d) and log weights (n, K)."""
    n, count, d = points.shape
    width = -(-count // W) * W
    padded = np.zeros((n, d, width))
    padded[..., :count] = np.swapaxes(points, 1, 2)
    logs = np.full((n, width), -np.inf)
    logs[:, :count] = log_weights
    return Sets(padded, logs, count)


def log_sums(logs: Floats, left: Floats, right: Floats) -> Floats:
    """Return log sum_kl exp(logs[i, k, j, l] + left[i, k] + right[j, l]), (a, b), for logs (a, k, b, l)."""
    out = np.empty((logs.shape[0], logs.shape[2]))
    _log_sums(logs, left, right, out)
    return out


def set_sums(left: Sets, right: Sets, scale: Floats) -> Floats:
    """Return log sum_st w_s v_t exp(-scale[i, j] |x_s - y_t|^2), (a, b), for sets i and j."""
    out = np.empty(scale.shape)
    _set_sums(left, right, scale, out)
    return out


@jit
def _log_sums(logs, left, right, out):
    """Write log sum_kl exp(logs[i, k, j, l] + left[i, k] + right[j, l]) to out (a, b), for logs (a, k, b, l)."""
    a, k, b, l = logs.shape  # noqa: E741
    terms = np.full(-(-(k * l) // W) * W, -np.inf)
    for i in range(a):
        for j in range(b):
            for s in range(k):
                for t in range(l):
                    terms[s * l + t] = logs[i, s, j, t] + (left[i, s] + right[j, t])
            out[i, j] = _log_sum(terms, len(terms))


@jit
def _set_sums(left, right, scale, out):
    """Write log sum_st w_s v_t exp(-scale[i, j] |x_s - y_t|^2) to out (a, b), for sets i and j."""
    a, d, _ = left.points.shape
    wide = right.points.shape[2]
    terms = np.full(left.size * wide, -np.inf)
    for i in range(a):
        for j in range(len(right.points)):
            factor = broadcast(-scale[i, j])
            for s in range(left.size):
                weight = broadcast(left.log_weights[i, s])
                for t in range(0, wide, W):
                    square = zero()
                    for c in range(d):
                        there = load(right.points, (j * d + c) * wide + t)
                        gap = broadcast(left.points[i, c, s]) - there
                        square = multiply_add(gap, gap, square)
                    known = weight + load(right.log_weights, j * wide + t)
                    store(terms, s * wide + t, multiply_add(factor, square, known))
            out[i, j] = _log_sum(terms, len(terms))


@jit
def _log_sum(terms, size):
    """Return the log of the sum of exponentials of whole vectors; -inf if all are."""
    best = load(terms, 0)
    for t in range(W, size, W):
        best = maximum(best, load(terms, t))
    lanes = np.empty(W)
    store(lanes, 0, best)
    top = lanes.max()
    if top == -np.inf:
        return top
    shift, total = broadcast(top), zero()
    for t in range(0, size, W):
        total = total + exp(load(terms, t) - shift)
    return top + math.log(horizontal_sum(total))
