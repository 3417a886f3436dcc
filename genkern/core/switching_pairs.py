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


def densities_at_zero(systems: Systems, paths: Ints) -> Floats:
    """Return log densities (N,) of observations of zero along paths (N, L) of systems; NaN where there is none."""
    d, n = systems.C.shape[1:]
    out, mean, cov = np.empty(len(paths)), np.empty(n), np.empty((n, n))
    _densities(systems, paths, (np.zeros(d), mean, cov), buffers(n, d), out)
    return out


@kernel
def _densities(systems, paths, belief, room, out):
    """Write the log density of zero along every path; the system of a step leads to its state and shows it."""
    zero, mean, cov = belief
    count, length = paths.shape
    for i in range(count):
        total = 0.0
        for t in range(length):
            q = paths[i, t]
            if t == 0:
                for k in range(len(mean)):
                    mean[k] = systems.mean[q, k]
                copy(systems.cov[q], cov)
            else:
                predict(systems.A[q], systems.Q[q], mean, cov, room)
            gap = relative(zero, systems.offset[q], room.gap)
            total += update(systems.C[q], systems.R[q], gap, mean, cov, room)
        out[i] = total
