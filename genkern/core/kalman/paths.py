"""Densities of series along given paths of systems, with what rounding has done to them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import kernel, part
from genkern.core.kalman.matrices import copy
from genkern.core.kalman.passes import KalmanSums, Systems
from genkern.core.kalman.rounding import amplifies, begin, carry, counted_update, counts_of, leave, recall
from genkern.core.kalman.steps import buffers, predict

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DIFFUSE = 1e16  # variance of first states, in units of the noise, above which rounding counts from the first step


class Levels(NamedTuple):
    """Beliefs after each step of a path: mean (L, n), cov (L, n, n), errors (L, 2, n, n), most (L, 2), sums (L, 2).

    Sums are those of log densities and of squared innovations so far.
    """

    mean: Floats
    cov: Floats
    errors: Floats
    most: Floats
    sums: Floats


def path_densities(systems: Systems, paths: Ints, values: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return log densities (N,) of values (N, L, d) along paths (N, L) of systems; NaN where there is none.

    With them growth and drift (N,), as ``kalman.rounding`` defines them, and the sums (N,) of squared innovations in
    units of their covariances. The system of a step leads to its state and shows it; offsets are left to the
    observations. Paths that begin alike, with the same values, share the filter of their beginning.
    """
    (count, length), (d, n) = paths.shape, systems.C.shape[1:]
    shapes = ((length, n), (length, n, n), (length, 2, n, n), (length, 2), (length, 2))
    table, levels = np.zeros((4, count)), Levels(*(np.zeros(shape) for shape in shapes))
    order = np.lexsort(paths.T[::-1])
    _densities(systems, (paths, order), values, levels, buffers(n, d), counts_of(n, d), table)
    return table[0], table[1], table[2], table[3]


def recount(sums: KalmanSums, systems: Systems, values: Floats, offsets: Ints) -> None:
    """Raise growth and drift to what is carried along, of objects whose systems make much of a rounding error.

    The passes over eight series at a time count what cancels in single steps.
    """
    lengths, diffuse = np.diff(offsets), _diffuse(systems)
    for length in np.unique(lengths):
        flags = np.broadcast_to(diffuse | amplifies(systems.A, length), len(lengths))
        members = np.flatnonzero(flags & (lengths == length))
        if len(members) == 0:
            continue
        owners = members if len(systems.A) > 1 else np.zeros_like(members)
        x = values[offsets[members, None] + np.arange(length)] - systems.offset[owners, None]
        _, growth, drift, _ = path_densities(systems, np.repeat(owners[:, None], length, axis=1), x)
        sums.growth[members] = np.maximum(sums.growth[members], growth)
        sums.drift[members] = np.maximum(sums.drift[members], drift)


def _diffuse(systems: Systems) -> NDArray[np.bool_]:
    """Flag systems (P,) whose first states are almost unknown."""
    first, noise = variances(systems)
    with np.errstate(over="ignore"):
        return np.asarray((first > DIFFUSE * noise).any(axis=1))


def variances(systems: Systems) -> tuple[Floats, Floats]:
    """Return what first states add to the variances of channels (P, d), and what noise does."""
    with np.errstate(over="ignore", invalid="ignore"):  # infinite ones are more than any other
        C = systems.C**2
        first, noise = (np.einsum("pck,pkk->pc", C, cov) for cov in (systems.cov, systems.Q))
        first, noise = (np.where(np.isnan(sums), np.inf, sums) for sums in (first, noise))
        return first, noise + np.diagonal(systems.R, axis1=1, axis2=2)


@kernel
def _densities(systems, routes, values, levels, workspace, counts, table):
    """Write log density, growth, drift and squares along every path, in an order in which beginnings are together."""
    paths, order = routes
    length = paths.shape[1]
    for rank in range(len(order)):
        i, first = order[rank], 0
        if rank > 0:
            last = order[rank - 1]
            while first < length and paths[i, first] == paths[last, first]:
                if not _alike(values[i, first], values[last, first]):
                    break
                first += 1
        for t in range(first, length):
            _step(systems, paths[i, t], t, values[i, t], levels, workspace, counts)
        table[0, i], table[3, i] = levels.sums[length - 1]
        for kind in range(2):
            table[1 + kind, i] = levels.most[length - 1, kind]


@part
def _alike(x, y):
    """Return whether two observations are the same, NaN included."""
    same = 0
    for c in range(len(x)):
        same += x[c] == y[c] or (np.isnan(x[c]) and np.isnan(y[c]))
    return same == len(x)


@part
def _step(systems, q, t, x, levels, workspace, counts):
    """Fill level t from the one before."""
    mean, cov = levels.mean[t], levels.cov[t]
    for k in range(len(mean)):
        mean[k] = levels.mean[t - 1, k] if t > 0 else systems.mean[q, k]
    copy(levels.cov[t - 1] if t > 0 else systems.cov[q], cov)
    if t == 0:
        begin(counts)
    else:
        recall(counts, levels.errors[t - 1], levels.most[t - 1])
        predict(systems.A[q], systems.Q[q], mean, cov, workspace)
        carry(systems.A[q], counts)
    density = counted_update(systems.C[q], systems.R[q], x, mean, cov, workspace, counts)
    square = 0.0
    for c in range(len(x)):
        square += workspace.white[c] * workspace.white[c]
    levels.sums[t, 0] = density if t == 0 else levels.sums[t - 1, 0] + density
    levels.sums[t, 1] = square if t == 0 else levels.sums[t - 1, 1] + square
    leave(counts, levels.errors[t], levels.most[t])
