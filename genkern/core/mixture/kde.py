r"""Kernel density estimates of many points: densities and derivatives. The choice of h is in ``kde_variance``.

.. math:: p(x) = \sum_k w_k\, N(x; c_k, h I)

P = 1: all queries share one row of n estimates; P = n_objects: the queries of object i belong to row i. NaN marks a
missing coordinate of a query, which is integrated out. One query meets all centres at a time, in a buffer of their
number, so that memory does not grow with the number of pairs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import jit, part
from genkern.core.simd.exponential import exp
from genkern.core.simd.vectors import (
    W,
    broadcast,
    element,
    horizontal_sum,
    less,
    load,
    maximum,
    multiply_add,
    select,
    store,
    zero,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LOG_2PI = math.log(2.0 * math.pi)
LARGEST = 690.0  # logarithm of the largest derivative by one weight: what exceeds it could not be summed
SMALLEST = -1e300  # logarithm of a kernel whose exponent overflows; finite, so that zero times it is zero


class Kernels(NamedTuple):
    """Centres (P, n, d, V), log weights (P, n, V) and variances (P, n).

    V is the number K of centres rounded up to whole vectors; the padding has log weight -inf.
    """

    centres: Floats
    log_weights: Floats
    variance: Floats


class KDESums(NamedTuple):
    """Weighted sums over queries: raw derivatives by weights (G, n, V), r (x - c) (G, n, d, V), and by h (G, n)."""

    weights: Floats
    points: Floats
    variance: Floats


def kernels_of(points: Floats, weights: Floats, variance: Floats) -> Kernels:
    """Return the layout of the passes from points (P, n, K, d), weights (P, n, K) and variances (P, n)."""
    rows, n, count, d = points.shape
    width = -(-count // W) * W
    centres = np.zeros((rows, n, d, width))
    centres[..., :count] = np.swapaxes(points, -1, -2)
    log_weights = np.full((rows, n, width), -np.inf)
    with np.errstate(divide="ignore"):
        log_weights[..., :count] = np.log(weights)
    return Kernels(centres, log_weights, np.array(variance))


def log_density(kernels: Kernels, values: Floats, offsets: Ints) -> Floats:
    """Return log densities (N, n) of values (N, d) under the estimates of their objects."""
    out = np.empty((len(values), kernels.centres.shape[1]))
    _log_density(kernels, values, offsets, out)
    return out


def gradients(kernels: Kernels, values: Floats, offsets: Ints, weights: Floats, totals: bool) -> KDESums:
    """Return sums over the queries of each object, or of all together (G = 1), under weights (N, n)."""
    groups = 1 if totals else len(offsets) - 1
    _, n, d, width = kernels.centres.shape
    out = KDESums(np.zeros((groups, n, width)), np.zeros((groups, n, d, width)), np.zeros((groups, n)))
    _gradients(kernels, values, offsets, weights, out)
    return out


@jit
def _log_density(kernels, values, offsets, out):
    """Fill out (N, n)."""
    rows, n, d, width = kernels.centres.shape
    logs, seen = np.empty(width), np.empty(d, np.int64)
    for i in range(len(offsets) - 1):
        for k in range(n):
            cell = (i if rows > 1 else 0) * n + k
            constant = 0.5 * (LOG_2PI + math.log(element(kernels.variance, cell)))
            for t in range(offsets[i], offsets[i + 1]):
                size = _log_kernels(kernels, cell, values[t], seen, logs)
                top, rest = _log_sum(kernels, cell, logs)
                out[t, k] = top + rest - size * constant


@jit
def _gradients(kernels, values, offsets, weights, out):
    """Add to out; a query of weight zero adds nothing."""
    rows, n, d, width = kernels.centres.shape
    logs, seen = np.empty(width), np.empty(d, np.int64)
    for i in range(len(offsets) - 1):
        for k in range(n):
            cell = (i if rows > 1 else 0) * n + k
            row = (i if len(out.variance) > 1 else 0) * n + k
            for t in range(offsets[i], offsets[i + 1]):
                if weights[t, k] > 0.0:
                    size = _log_kernels(kernels, cell, values[t], seen, logs)
                    top, rest = _log_sum(kernels, cell, logs)
                    shift = (top, rest - math.log(weights[t, k]))
                    _add(kernels, cell, values[t], seen[:size], logs, shift, out, row)


@part
def _log_kernels(kernels, cell, point, seen, logs):
    """Fill logs (V) with -|x - c|^2 / 2h over the observed coordinates, listed in seen; return how many these are."""
    d, width = kernels.centres.shape[2:]
    size = 0
    for j in range(d):
        if not math.isnan(point[j]):
            seen[size] = j
            size += 1
    factor = broadcast(-0.5 / element(kernels.variance, cell))
    for b in range(0, width, W):
        square = zero()
        for a in range(size):
            gap = broadcast(point[seen[a]]) - load(kernels.centres, (cell * d + seen[a]) * width + b)
            square = multiply_add(gap, gap, square)
        store(logs, b, square * factor)
    return size


@jit
def _log_sum(kernels, cell, logs):
    """Return log of the sum of w exp(logs), -inf if every term is zero, as two summands, the largest term's first."""
    width = len(logs)
    tops = np.empty(W)
    top = broadcast(-np.inf)
    for b in range(0, width, W):
        top = maximum(top, load(logs, b) + load(kernels.log_weights, cell * width + b))
    store(tops, 0, top)
    highest = tops.max()
    if highest == -np.inf:
        return highest, 0.0
    total = zero()
    for b in range(0, width, W):
        total = total + exp(load(logs, b) + load(kernels.log_weights, cell * width + b) - broadcast(highest))
    return highest, math.log(horizontal_sum(total))


@part
def _add(kernels, cell, point, seen, logs, shift, out, row):
    """Add a query's derivatives, from logs (V) of its kernels and the log density by which to divide them.

    That is ``shift``, two summands: their sum has too few digits where it is large.
    """
    d, width = kernels.centres.shape[2:]
    half = broadcast(0.5 * len(seen))
    largest, smallest, top, rest = broadcast(LARGEST), broadcast(SMALLEST), broadcast(shift[0]), broadcast(shift[1])
    excess = zero()
    for b in range(0, width, W):
        log = maximum(load(logs, b), smallest)
        raw = (log - top) - rest
        raw = exp(select(less(largest, raw), largest, raw))
        share = exp((log + load(kernels.log_weights, cell * width + b) - top) - rest)
        store(out.weights, row * width + b, load(out.weights, row * width + b) + raw)
        excess = excess - share * (log + half)
        for j in seen:
            gap = broadcast(point[j]) - load(kernels.centres, (cell * d + j) * width + b)
            at = (row * d + j) * width + b
            store(out.points, at, multiply_add(share, gap, load(out.points, at)))
    g, k = divmod(row, kernels.centres.shape[1])
    out.variance[g, k] += horizontal_sum(excess) / element(kernels.variance, cell)
