"""Densities of zero observations along given paths of regimes: what kernels between switching systems are made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import kernel
from genkern.core.kalman import buffers, predict, relative, update
from genkern.core.kalman_matrices import copy
from genkern.core.kalman_passes import Systems

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def densities_at_zero(systems: Systems, paths: Ints) -> tuple[Floats, Floats, Floats]:
    """Return log densities (N,) of observations of zero along paths (N, L) of systems; NaN where there is none.

    With them growth and drift (N,), what cancelled in the filter, as ``kalman_adjoint`` defines them.
    """
    d, n = systems.C.shape[1:]
    table, mean, cov = np.zeros((3, len(paths))), np.empty(n), np.empty((n, n))
    _densities(systems, paths, (np.zeros(d), mean, cov), buffers(n, d), np.empty((2, d)), table)
    return table[0], table[1], table[2]


@kernel
def _densities(systems, paths, belief, room, parts, table):
    """Write log density, growth and drift along every path; the system of a step leads to its state and shows it."""
    zero, mean, cov = belief
    count, length = paths.shape
    for i in range(count):
        before = 1.0
        for t in range(length):
            q = paths[i, t]
            if t == 0:
                for k in range(len(mean)):
                    mean[k] = systems.mean[q, k]
                copy(systems.cov[q], cov)
            else:
                predict(systems.A[q], systems.Q[q], mean, cov, room)
            _parts(systems.C[q], mean, cov, parts)
            gap = relative(zero, systems.offset[q], room.gap)
            table[0, i] += update(systems.C[q], systems.R[q], gap, mean, cov, room)
            now = 0.0
            for a in range(len(zero)):
                share = room.root[a, a] * room.root[a, a]  # one over the pivot
                now = max(now, share * parts[0, a])
                table[2, i] = max(table[2, i], share * parts[1, a])
            table[1, i] = max(table[1, i], now * before)
            before = max(now, 1.0)


@kernel
def _parts(C, mean, cov, parts):
    """Fill parts (2, d) with the squares that sum to the covariance of an observation and to its mean, per channel."""
    for a in range(len(C)):
        parts[0, a] = parts[1, a] = 0.0
        for k in range(len(mean)):
            parts[0, a] += C[a, k] * C[a, k] * cov[k, k]
            parts[1, a] += C[a, k] * C[a, k] * mean[k] * mean[k]
