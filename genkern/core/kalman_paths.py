"""Densities of series along given paths of systems, with what rounding has done to them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import kernel
from genkern.core.kalman import buffers, predict
from genkern.core.kalman_counts import amplifies, begin, carry, counted_update, counts_of
from genkern.core.kalman_matrices import copy
from genkern.core.kalman_passes import Sums, Systems

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DIFFUSE = 1e16  # variance of first states, in units of the noise, above which rounding counts from the first step


def path_densities(systems: Systems, paths: Ints, values: Floats) -> tuple[Floats, Floats, Floats]:
    """Return log densities (N,) of values (N, L, d) along paths (N, L) of systems; NaN where there is none.

    With them growth and drift (N,), as ``kalman_counts`` defines them. The system of a step leads to its state and
    shows it; offsets are left to the observations.
    """
    d, n = systems.C.shape[1:]
    table, belief = np.zeros((3, len(paths))), (np.empty(n), np.empty((n, n)))
    _densities(systems, paths, values, belief, buffers(n, d), counts_of(n, d), table)
    return table[0], table[1], table[2]


def recount(sums: Sums, systems: Systems, values: Floats, offsets: Ints) -> None:
    """Raise growth and drift to what is carried along, of objects whose systems make much of a rounding error.

    The passes over eight series at a time count what cancels in single steps.
    """
    lengths, diffuse = np.diff(offsets), _diffuse(systems)
    for length in np.unique(lengths):
        flags = np.broadcast_to(diffuse | amplifies(systems.A, length), len(lengths))
        members = np.flatnonzero(flags & (lengths == length))
        owners = members if len(systems.A) > 1 else np.zeros_like(members)
        x = values[offsets[members, None] + np.arange(length)] - systems.offset[owners, None]
        _, growth, drift = path_densities(systems, np.repeat(owners[:, None], length, axis=1), x)
        sums.growth[members] = np.maximum(sums.growth[members], growth)
        sums.drift[members] = np.maximum(sums.drift[members], drift)


def _diffuse(systems: Systems) -> NDArray[np.bool_]:
    """Flag systems (P,) whose first states are all but unknown."""
    C = systems.C**2
    first, noise = (np.einsum("pck,pkk->pc", C, cov) for cov in (systems.cov, systems.Q))
    noise = noise + np.diagonal(systems.R, axis1=1, axis2=2)
    return np.asarray((first > DIFFUSE * noise).any(axis=1))


@kernel
def _densities(systems, paths, values, belief, room, counts, table):
    """Write log density, growth and drift along every path."""
    mean, cov = belief
    for i in range(len(paths)):
        begin(counts)
        for t in range(paths.shape[1]):
            q = paths[i, t]
            if t == 0:
                for k in range(len(mean)):
                    mean[k] = systems.mean[q, k]
                copy(systems.cov[q], cov)
            else:
                predict(systems.A[q], systems.Q[q], mean, cov, room)
                carry(systems.A[q], counts)
            table[0, i] += counted_update(systems.C[q], systems.R[q], values[i, t], mean, cov, room, counts)
        for kind in range(2):
            table[1 + kind, i] = counts.most[kind]
