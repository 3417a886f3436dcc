r"""The filter on square roots: where covariances grow without bound, half as many digits are lost as on them.

A covariance is carried as a factor, :math:`P = F F^T`, and both steps are triangularisations by reflections,

.. math:: \begin{pmatrix} R^{1/2} & C F \\ 0 & F \end{pmatrix} \Theta = \begin{pmatrix} S^{1/2} & 0 \\ \bar K & F^+
   \end{pmatrix}, \qquad (A F,\ Q^{1/2})\, \Theta = (F^+,\ 0), \qquad m^+ = m + \bar K S^{-1/2} (x - C m)

whose errors are relative to the norms of rows. An error of :math:`\epsilon` of a state with variance P counts as
:math:`\epsilon \sqrt{C P C^T / S}` in an observation, and as its square in the filter of covariances. Errors are
carried along as ``kalman.rounding`` says, now of factors as well as of means. The factor of a covariance given by its
entries has one of :math:`\epsilon V_{jj} / \sqrt{p_j}` with the pivots p, which is not small where it is singular.

References
----------
Kailath, Sayed & Hassibi (2000), Linear estimation, section 12.3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import kernel, part
from genkern.core.kalman.matrices import SINGULAR, triangularise
from genkern.core.kalman.passes import KalmanSums, Systems, run
from genkern.core.kalman.paths import recount
from genkern.core.kalman.rounding import EPS, Counts, begin, carry, condition, counts_of, expose, slip
from genkern.core.kalman.steps import HALF_LOG_2PI

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LOST = 1e-8  # error of a log density above which it counts as lost
ROUNDED = 1e-4  # the same, of one that the last bits of the observations themselves change, and of derivatives


class Roots(NamedTuple):
    """Systems without offsets, with a leading axis; Q (P, n, n), R (P, d, d) and cov (P, n, n) are lower factors.

    Q_doubt and cov_doubt (P, n) are the squared errors of the rows of factors, in units of the last bit.
    """

    A: Floats
    C: Floats
    Q: Floats
    R: Floats
    mean: Floats
    cov: Floats
    Q_doubt: Floats
    cov_doubt: Floats


class RootsWorkspace(NamedTuple):
    """Where the filter works: mean (n,), factor (n, n), update (d + n, d + n), predict (n, 2 n), white (d,), gain."""

    counts: Counts
    mean: Floats
    factor: Floats
    update: Floats
    predict: Floats
    white: Floats
    gain: Floats


def roots_of(covs: Floats) -> tuple[Floats, Floats]:
    """Return lower factors of positive semi-definite matrices (P, n, n), and the squared errors (P, n) of their rows.

    What is determined has columns of zeros. Errors are in units of the last bit.
    """
    n = covs.shape[-1]
    out, doubt = np.zeros_like(covs), np.zeros(covs.shape[:-1])
    for j in range(n):
        rest = covs[:, j:, j] - np.einsum("pik,pk->pi", out[:, j:, :j], out[:, j, :j])
        there = rest[:, 0] > SINGULAR * n * covs[:, j, j]
        pivots = np.sqrt(np.where(there, rest[:, 0], 1.0))
        out[:, j:, j] = np.where(there[:, None], rest / pivots[:, None], 0.0)
        doubt[:, j] = covs[:, j, j] * np.where(there, covs[:, j, j] / pivots**2, 1.0 / EPS)
    return out, doubt


def lower(factors: Floats) -> Floats:
    """Return square lower factors (P, n, n) of the same matrices as wide ones (P, n, k), k at least n."""
    return np.ascontiguousarray(np.swapaxes(np.linalg.qr(np.swapaxes(factors, -1, -2), mode="r"), -1, -2))


def loss_of(growth: Floats, drift: Floats | float = 0.0) -> Floats:
    """Return the error to expect of log densities by the filter of covariances, from what cancelled in it."""
    return EPS * (growth + np.sqrt(drift))


def log_densities(systems: Systems, values: Floats, offsets: Ints, n_jobs: int | None = 1) -> KalmanSums:
    """Return what ``run`` does without derivatives; where digits would be lost, log densities on square roots.

    The growth of these is such that ``loss_of`` it is their loss, with that of drift, which square roots do not lessen.
    """
    sums = run(systems, values, offsets, derivatives=False, n_jobs=n_jobs)
    recount(sums, systems, values, offsets)
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
    (move, first), (begun, second) = roots_of(Q), roots_of(cov)
    return Roots(A, C, move, roots_of(R)[0], mean, begun, first, second)


def densities(roots: Roots, paths: Ints, values: Floats) -> tuple[Floats, Floats]:
    """Return log densities (N,) of values (N, L, d), NaN where missing, along paths (N, L) of systems, and their loss.

    The loss (N,) is the relative error to expect of standardised innovations. A density that does not exist is NaN
    with a loss of zero; one that overflow has spoilt has an infinite loss.
    """
    d, n = roots.C.shape[1:]
    table = np.zeros((len(paths), 2))
    shapes = ((n,), (n, n), (d + n, d + n), (n, 2 * n), (d,), (n, d))
    _densities(roots, paths, values, RootsWorkspace(counts_of(n, d), *(np.empty(shape) for shape in shapes)), table)
    return table[:, 0], EPS * table[:, 1]


@kernel
def _densities(roots, paths, values, work, table):
    """Fill the rows of the table, (N, 2): log density, and its error in units of the last bit."""
    n, most = len(work.mean), work.counts.most
    for k in range(len(paths)):
        begin(work.counts)
        for t in range(paths.shape[1]):
            q = paths[k, t]
            doubt = roots.cov_doubt[q] if t == 0 else roots.Q_doubt[q]
            if t == 0:
                for i in range(n):
                    work.mean[i] = roots.mean[q, i]
                    for j in range(n):
                        work.factor[i, j] = roots.cov[q, i, j]
            else:
                _predict(roots.A[q], roots.Q[q], work)
                carry(roots.A[q], work.counts)
            slip(doubt, work.counts)
            gain = _update(roots.C[q], roots.R[q], values[k, t], work)
            table[k, 0] += gain
            table[k, 1] = np.sqrt(most[0] + most[1])
            if np.isnan(gain):
                table[k, 1] = np.inf if np.isinf(most[0]) else 0.0
                break


@part
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
    triangularise(wide, n, 2 * n)
    for i in range(n):
        total = 0.0
        for k in range(n):
            total += A[i, k] * work.mean[k]
        wide[i, n] = total
    for i in range(n):
        work.mean[i] = wide[i, n]
        for j in range(n):
            work.factor[i, j] = wide[i, j] if j <= i else 0.0


@part
def _update(C, R, x, work):
    """Condition mean and factor on an observation, and count; return its log density, NaN if it has none.

    Where overflow has spoilt it, growth is infinite.
    """
    n = len(work.mean)
    size = _enter(C, R, x, work)
    array, white, counts = work.update, work.white, work.counts
    triangularise(array, size + n, len(x) + n)
    total = 0.0
    for a in range(size):
        pivot, row = abs(array[a, a]), 0.0
        gap = white[a]
        for j in range(a):
            row += array[a, j] * array[a, j]
            gap -= array[a, j] * white[j]
        if not np.isfinite(row + pivot + gap):
            counts.most[0] = np.inf
            return np.nan
        if not pivot > SINGULAR * size * np.sqrt(row + pivot * pivot):
            return np.nan
        white[a] = gap / array[a, a]
        total -= HALF_LOG_2PI + np.log(pivot) + 0.5 * white[a] * white[a]
    _fill_gain(x, size, work)
    condition(C, work.gain, counts)
    slip(counts.spread, counts)  # reflections turn a row with an error that is relative to what the row was
    for i in range(n):
        for a in range(size):
            work.mean[i] += array[size + i, a] * white[a]
        for j in range(n):
            work.factor[i, j] = array[size + i, size + j] if j <= i else 0.0
    return total


@part
def _enter(C, R, x, work):
    """Fill the array of an update, and the innovations of the channels that are seen; expose what their errors are."""
    n, d = len(work.mean), len(x)
    size = 0
    for k in range(n):
        work.counts.spread[k] = 0.0
        for j in range(k + 1):
            work.counts.spread[k] += work.factor[k, j] * work.factor[k, j]
    expose(C, work.mean, work.counts)
    for c in range(d):
        if np.isnan(x[c]):
            continue
        gap = x[c]
        for k in range(n):
            gap -= C[c, k] * work.mean[k]
        for j in range(d):
            work.update[size, j] = R[c, j]
        for j in range(n):
            total = 0.0
            for k in range(j, n):
                total += C[c, k] * work.factor[k, j]
            work.update[size, d + j] = total
        work.white[size] = gap
        size += 1
    for i in range(n):
        for j in range(d):
            work.update[size + i, j] = 0.0
        for j in range(n):
            work.update[size + i, d + j] = work.factor[i, j]
    return size


@part
def _fill_gain(x, size, work):
    """Fill the gain K (n, d) from its product with the root of S, and the shares of channels."""
    n, d = work.gain.shape
    array, shares = work.update, work.counts.shares
    a = size
    for c in range(d - 1, -1, -1):
        shares[c] = 0.0
        for i in range(n):
            work.gain[i, c] = 0.0
        if np.isnan(x[c]):
            continue
        a -= 1
        shares[c] = 1.0 / (array[a, a] * array[a, a])
        for i in range(n):
            total, b = array[size + i, a], size
            for e in range(d - 1, c, -1):
                if not np.isnan(x[e]):
                    b -= 1
                    total -= work.gain[i, e] * array[b, a]
            work.gain[i, c] = total / array[a, a]
