r"""The filter on square roots: where covariances grow without bound, half as many digits are lost as on them.

A covariance is carried as a factor, :math:`P = F F^T`, and both steps are triangularisations by reflections,

.. math:: \begin{pmatrix} R^{1/2} & C F \\ 0 & F \end{pmatrix} \Theta = \begin{pmatrix} S^{1/2} & 0 \\ \bar K & F^+
   \end{pmatrix}, \qquad (A F,\ Q^{1/2})\, \Theta = (F^+,\ 0), \qquad m^+ = m + \bar K S^{-1/2} (x - C m)

whose errors are relative to the norms of rows. An error of :math:`\epsilon` of a state with variance P counts as
:math:`\epsilon \sqrt{C P C^T / S}` in an observation, and as its square in the filter of covariances.

References
----------
Kailath, Sayed & Hassibi (2000), Linear estimation, section 12.3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import kernel
from genkern.core.kalman import HALF_LOG_2PI
from genkern.core.kalman_matrices import SINGULAR
from genkern.core.kalman_passes import Sums, Systems, run

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EPS = float(np.finfo(float).eps)
LOST = 1e-8  # error of a log density above which it counts as lost
ROUNDED = 1e-4  # the same, of one that the last bits of the observations themselves change, and of derivatives


class Roots(NamedTuple):
    """Systems without offsets, with a leading axis; Q (P, n, n), R (P, d, d) and cov (P, n, n) are lower factors."""

    A: Floats
    C: Floats
    Q: Floats
    R: Floats
    mean: Floats
    cov: Floats


class Work(NamedTuple):
    """Where the filter works: mean (n,), factor (n, n), update (d + n, d + n), predict (n, 2 n), white, scale (d,)."""

    mean: Floats
    factor: Floats
    update: Floats
    predict: Floats
    white: Floats
    scale: Floats


def roots_of(covs: Floats) -> Floats:
    """Return lower factors of positive semi-definite matrices (P, n, n); what is determined has columns of zeros."""
    n = covs.shape[-1]
    out = np.zeros_like(covs)
    for j in range(n):
        rest = covs[:, j:, j] - np.einsum("pik,pk->pi", out[:, j:, :j], out[:, j, :j])
        there = rest[:, 0] > SINGULAR * n * covs[:, j, j]
        pivots = np.sqrt(np.where(there, rest[:, 0], 1.0))
        out[:, j:, j] = np.where(there[:, None], rest / pivots[:, None], 0.0)
    return out


def lower(factors: Floats) -> Floats:
    """Return square lower factors (P, n, n) of the same matrices as wide ones (P, n, k), k at least n."""
    return np.ascontiguousarray(np.swapaxes(np.linalg.qr(np.swapaxes(factors, -1, -2), mode="r"), -1, -2))


def loss_of(growth: Floats, drift: Floats | float = 0.0) -> Floats:
    """Return the error to expect of log densities by the filter of covariances, from what cancelled in it."""
    return EPS * (growth + np.sqrt(drift))


def log_densities(systems: Systems, values: Floats, offsets: Ints, n_jobs: int | None = 1) -> Sums:
    """Return what ``run`` does without derivatives; where digits would be lost, log densities on square roots.

    The growth of these is such that ``loss_of`` it is their loss, with that of drift, which square roots do not lessen.
    """
    sums = run(systems, values, offsets, derivatives=False, n_jobs=n_jobs)
    for i in np.flatnonzero(~(loss_of(sums.growth) <= LOST)):
        own = Systems(*(part[i : i + 1] if len(part) > 1 else part for part in systems))
        x = values[None, offsets[i] : offsets[i + 1]] - own.offset
        found, loss = densities(factored(own), np.zeros(x.shape[:2], np.int64), x)
        sums.log_prob[i], sums.growth[i], sums.drift[i] = found[0], loss[0] / EPS, 0.0
        sums.failed[i] = max(sums.failed[i], 0) if np.isnan(found[0]) else -1
    return sums


def factored(systems: Systems) -> Roots:
    """Return systems with the roots of their covariances; offsets are left to the observations."""
    A, C, Q, R, mean, cov, _ = systems
    return Roots(A, C, roots_of(Q), roots_of(R), mean, roots_of(cov))


def densities(roots: Roots, paths: Ints, values: Floats) -> tuple[Floats, Floats]:
    """Return log densities (N,) of values (N, L, d), NaN where missing, along paths (N, L) of systems, and their loss.

    The loss (N,) is the relative error to expect of standardised innovations. A density that does not exist is NaN
    with a loss of zero; one that overflow has spoilt has an infinite loss.
    """
    d, n = roots.C.shape[1:]
    table = np.zeros((len(paths), 2))
    work = Work(np.empty(n), np.empty((n, n)), np.empty((d + n, d + n)), np.empty((n, 2 * n)), np.empty(d), np.empty(d))
    _densities(roots, paths, values, work, table)
    return table[:, 0], EPS * table[:, 1]


@kernel
def _densities(roots, paths, values, work, table):
    """Fill the rows of the table, (N, 2): log density, and what cancelled in it, in units of the noise."""
    n = len(work.mean)
    for k in range(len(paths)):
        for t in range(paths.shape[1]):
            q = paths[k, t]
            if t == 0:
                for i in range(n):
                    work.mean[i] = roots.mean[q, i]
                    for j in range(n):
                        work.factor[i, j] = roots.cov[q, i, j]
            else:
                _predict(roots.A[q], roots.Q[q], work)
            gain, loss = _update(roots.C[q], roots.R[q], values[k, t], work)
            table[k, 0] += gain
            table[k, 1] = max(table[k, 1], loss)
            if np.isnan(gain):
                table[k, 1] = loss
                break


@kernel
def _predict(A, Q, work):
    """Move mean and factor one step on."""
    n = len(work.mean)
    wide = work.predict
    for i in range(n):
        for j in range(n):
            total = 0.0
            for k in range(n):
                total += A[i, k] * work.factor[k, j]
            wide[i, j] = total
            wide[i, n + j] = Q[i, j]
    _triangularise(wide, n, 2 * n)
    for i in range(n):
        total = 0.0
        for k in range(n):
            total += A[i, k] * work.mean[k]
        wide[i, n] = total
    for i in range(n):
        work.mean[i] = wide[i, n]
        for j in range(n):
            work.factor[i, j] = wide[i, j] if j <= i else 0.0


@kernel
def _update(C, R, x, work):
    """Condition mean and factor on an observation; return its log density, NaN if it has none, and what cancelled."""
    n, d = len(work.mean), len(x)
    size = _enter(C, R, x, work)
    array, white = work.update, work.white
    _triangularise(array, size + n, d + n)
    total, loss = 0.0, 0.0
    for a in range(size):
        pivot, row = abs(array[a, a]), 0.0
        gap = white[a]
        for j in range(a):
            row += array[a, j] * array[a, j]
            gap -= array[a, j] * white[j]
        if not np.isfinite(row + pivot + work.scale[a] + gap):
            return np.nan, np.inf
        if not pivot > SINGULAR * size * np.sqrt(row + pivot * pivot):
            return np.nan, 0.0
        white[a] = gap / array[a, a]
        total -= HALF_LOG_2PI + np.log(pivot) + 0.5 * white[a] * white[a]
        loss = max(loss, np.sqrt(work.scale[a]) / pivot)
    for i in range(n):
        for a in range(size):
            work.mean[i] += array[size + i, a] * white[a]
        for j in range(n):
            work.factor[i, j] = array[size + i, size + j] if j <= i else 0.0
    return total, loss


@kernel
def _enter(C, R, x, work):
    """Fill the array of an update, and for each channel that is seen its innovation and the squares of its parts."""
    n, d = len(work.mean), len(x)
    size = 0
    for c in range(d):
        if np.isnan(x[c]):
            continue
        gap, square = x[c], 0.0
        for k in range(n):
            part = C[c, k] * work.mean[k]
            gap -= part
            square += part * part
        for j in range(d):
            work.update[size, j] = R[c, j]
        for j in range(n):
            total = 0.0
            for k in range(j, n):
                part = C[c, k] * work.factor[k, j]
                total += part
                square += part * part
            work.update[size, d + j] = total
        work.white[size], work.scale[size] = gap, square
        size += 1
    for i in range(n):
        for j in range(d):
            work.update[size + i, j] = 0.0
        for j in range(n):
            work.update[size + i, d + j] = work.factor[i, j]
    return size


@kernel
def _triangularise(array, rows, columns):
    """Turn the rows of an array by reflections of its columns until nothing is left right of the diagonal."""
    for i in range(rows):
        top = 0.0
        for j in range(i, columns):
            top = max(top, abs(array[i, j]))
        if not 0.0 < top < np.inf:
            continue
        square = 0.0
        for j in range(i, columns):
            array[i, j] /= top  # squares of entries beyond 1e154 would overflow
            square += array[i, j] * array[i, j]
        norm = -np.sqrt(square) if array[i, i] > 0.0 else np.sqrt(square)
        array[i, i] -= norm
        weight = 1.0 / (-norm * array[i, i])  # 2 / |v|^2
        for k in range(i + 1, rows):
            total = 0.0
            for j in range(i, columns):
                total += array[k, j] * array[i, j]
            total *= weight
            for j in range(i, columns):
                array[k, j] -= total * array[i, j]
        array[i, i] = norm * top
        for j in range(i + 1, columns):
            array[i, j] = 0.0
