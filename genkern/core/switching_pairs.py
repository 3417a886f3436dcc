"""Densities of zero observations along given paths of regimes: what kernels between switching systems are made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import kernel
from genkern.core.kalman import buffers, predict, relative, update
from genkern.core.kalman_matrices import copy
from genkern.core.kalman_passes import Systems

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Levels(NamedTuple):
    """The belief after each step of a path, mean (L, n), cov (L, n, n), and sums (L, 4).

    These are log density, growth, drift, and what cancelled in the last step.
    """

    mean: Floats
    cov: Floats
    sums: Floats


def densities_at_zero(systems: Systems, paths: Ints) -> tuple[Floats, Floats, Floats]:
    """Return log densities (N,) of observations of zero along paths (N, L) of systems; NaN where there is none.

    With them growth and drift (N,), what cancelled in the filter, as ``kalman_adjoint`` defines them. Paths that begin
    alike share the filter of their beginning.
    """
    (count, length), (d, n) = paths.shape, systems.C.shape[1:]
    table, levels = np.zeros((3, count)), Levels(np.empty((length, n)), np.empty((length, n, n)), np.empty((length, 4)))
    order = np.lexsort(paths.T[::-1])
    _densities(systems, paths, order, levels, buffers(n, d), (np.zeros(d), np.empty((2, d))), table)
    return table[0], table[1], table[2]


@kernel
def _densities(systems, paths, order, levels, room, work, table):
    """Write log density, growth and drift along every path, taken in an order in which beginnings are together."""
    length = paths.shape[1]
    for place in range(len(order)):
        path, first = paths[order[place]], 0
        if place > 0:
            last = paths[order[place - 1]]
            while first < length and path[first] == last[first]:
                first += 1
        for t in range(first, length):
            _step(systems, path[t], t, levels, room, work)
        for k in range(3):
            table[k, order[place]] = levels.sums[length - 1, k]


@kernel
def _step(systems, q, t, levels, room, work):
    """Fill level t from the one before; the system of a step leads to its state and shows it."""
    zero, parts = work
    mean, cov, sums = levels.mean[t], levels.cov[t], levels.sums[t]
    for k in range(len(mean)):
        mean[k] = levels.mean[t - 1, k] if t > 0 else systems.mean[q, k]
    copy(levels.cov[t - 1] if t > 0 else systems.cov[q], cov)
    for k in range(4):
        sums[k] = levels.sums[t - 1, k] if t > 0 else 0.0
    if t > 0:
        predict(systems.A[q], systems.Q[q], mean, cov, room)
    _parts(systems.C[q], mean, cov, parts)
    gap = relative(zero, systems.offset[q], room.gap)
    sums[0] += update(systems.C[q], systems.R[q], gap, mean, cov, room)
    now = 0.0
    for a in range(len(zero)):
        share = room.root[a, a] * room.root[a, a]  # one over the pivot
        now = max(now, share * parts[0, a])
        sums[2] = max(sums[2], share * parts[1, a])
    sums[1] = max(sums[1], now * max(sums[3], 1.0))
    sums[3] = now


@kernel
def _parts(C, mean, cov, parts):
    """Fill parts (2, d) with the squares that sum to the covariance of an observation and to its mean, per channel."""
    for a in range(len(C)):
        parts[0, a] = parts[1, a] = 0.0
        for k in range(len(mean)):
            parts[0, a] += C[a, k] * C[a, k] * cov[k, k]
            parts[1, a] += C[a, k] * C[a, k] * mean[k] * mean[k]
