"""Gaussian densities and moments of many points under many Gaussians, missing entries marginalised exactly.

P = 1: all points share one row of n Gaussians; P = n_objects: the points of object i belong to row i.
NaN marks a missing entry. Statistics are centred at the means, so that nothing is lost to cancellation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import jit

Floats = NDArray[np.float64]
LOG_2PI = float(np.log(2.0 * np.pi))


class Normals(NamedTuple):
    """Means (P, n, d) and variances (P, n, d) or covariances (P, n, d, d) of Gaussians."""

    mean: Floats
    cov: Floats


class Moments(NamedTuple):
    """Weighted sums: weight (G, n), x - mean (G, n, d), its square (G, n, d) or outer product (G, n, d, d)."""

    weight: Floats
    first: Floats
    second: Floats


def log_density(normals: Normals, values: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Return log densities (N, n) of values (N, d) under the Gaussians of their objects."""
    out = np.zeros((len(values), normals.mean.shape[1]))
    if normals.cov.ndim == 3:
        _log_density_diagonal(normals, values, offsets, out)
    else:
        _log_density_full(normals, np.linalg.cholesky(normals.cov), values, offsets, out)
    return out


def moments(normals: Normals, values: Floats, offsets: NDArray[np.int64], weights: Floats, totals: bool) -> Moments:
    """Return weighted moments of each object, or of all together (G = 1), under weights (N, n)."""
    groups = 1 if totals else len(offsets) - 1
    n, d = normals.mean.shape[1:]
    out = Moments(np.zeros((groups, n)), np.zeros((groups, n, d)), np.zeros((groups, *normals.cov.shape[1:])))
    if normals.cov.ndim == 3:
        _moments_diagonal(normals, values, offsets, weights, out)
    else:
        _moments_full(normals, values, offsets, weights, out)
    return out


@jit
def _log_density_diagonal(normals, values, offsets, out):
    """Fill out (N, n): sum over observed entries of -(log 2 pi v + (x - m)^2 / v) / 2."""
    rows, n, d = normals.mean.shape
    constant = np.empty(n)
    precision = np.empty((n, d))
    for i in range(len(offsets) - 1):
        p = i if rows > 1 else 0
        mean = normals.mean[p]
        if i == 0 or rows > 1:
            for k in range(n):
                constant[k] = 0.0
                for j in range(d):
                    constant[k] -= 0.5 * (LOG_2PI + np.log(normals.cov[p, k, j]))
                    precision[k, j] = 1.0 / normals.cov[p, k, j]
        for t in range(offsets[i], offsets[i + 1]):
            complete = True
            for j in range(d):
                complete &= not np.isnan(values[t, j])
            for k in range(n):
                total = constant[k]
                if complete:
                    square = 0.0
                    for j in range(d):
                        gap = values[t, j] - mean[k, j]
                        square += gap * gap * precision[k, j]
                    total -= 0.5 * square
                else:
                    total = 0.0
                    for j in range(d):
                        gap = values[t, j] - mean[k, j]
                        if not np.isnan(gap):
                            total -= 0.5 * (LOG_2PI + np.log(normals.cov[p, k, j]) + gap * gap * precision[k, j])
                out[t, k] = total


@jit
def _log_density_full(normals, factors, values, offsets, out):
    """Fill out (N, n) by forward substitution with the Cholesky factors (P, n, d, d)."""
    rows, n, d = normals.mean.shape
    white = np.empty(d)
    observed = np.empty(d, np.int64)
    factor = np.empty((d, d))
    for i in range(len(offsets) - 1):
        p = i if rows > 1 else 0
        for t in range(offsets[i], offsets[i + 1]):
            size = _observed(values[t], observed)
            for k in range(n):
                if size < d:
                    _sub_cholesky(normals.cov[p, k], observed, size, factor)
                    lower = factor
                else:
                    lower = factors[p, k]
                total = -0.5 * size * LOG_2PI
                for a in range(size):
                    rest = values[t, observed[a]] - normals.mean[p, k, observed[a]]
                    for b in range(a):
                        rest -= lower[a, b] * white[b]
                    white[a] = rest / lower[a, a]
                    total -= 0.5 * white[a] * white[a] + np.log(lower[a, a])
                out[t, k] = total


@jit
def _moments_diagonal(normals, values, offsets, weights, out):
    """Add weighted centred moments; a missing entry adds its expectation: 0 to the first, v to the second."""
    rows, n, d = normals.mean.shape
    groups = len(out.weight)
    for i in range(len(offsets) - 1):
        p = i if rows > 1 else 0
        g = i if groups > 1 else 0
        for t in range(offsets[i], offsets[i + 1]):
            for k in range(n):
                weight = weights[t, k]
                if weight == 0.0:
                    continue
                out.weight[g, k] += weight
                for j in range(d):
                    gap = values[t, j] - normals.mean[p, k, j]
                    if np.isnan(gap):
                        out.second[g, k, j] += weight * normals.cov[p, k, j]
                    else:
                        out.first[g, k, j] += weight * gap
                        out.second[g, k, j] += weight * gap * gap


@jit
def _moments_full(normals, values, offsets, weights, out):
    """Add weighted centred moments; missing entries add their conditional mean and covariance."""
    rows, n, d = normals.mean.shape
    groups = len(out.weight)
    observed = np.empty(d, np.int64)
    gap = np.empty(d)
    spread = np.empty((d, d))
    work = np.empty((d, d))
    for i in range(len(offsets) - 1):
        p = i if rows > 1 else 0
        g = i if groups > 1 else 0
        for t in range(offsets[i], offsets[i + 1]):
            size = _observed(values[t], observed)
            for k in range(n):
                weight = weights[t, k]
                if weight == 0.0:
                    continue
                for j in range(d):
                    gap[j] = values[t, j] - normals.mean[p, k, j]
                if size < d:
                    _complete(normals.cov[p, k], observed, size, gap, spread, work)
                out.weight[g, k] += weight
                for a in range(d):
                    out.first[g, k, a] += weight * gap[a]
                    for b in range(d):
                        extra = spread[a, b] if size < d else 0.0
                        out.second[g, k, a, b] += weight * (gap[a] * gap[b] + extra)


@jit
def _observed(point, observed):
    """Fill observed with the indices of entries that are not NaN; return how many."""
    size = 0
    for j in range(len(point)):
        if not np.isnan(point[j]):
            observed[size] = j
            size += 1
    return size


@jit
def _sub_cholesky(cov, observed, size, factor):
    """Fill factor[:size, :size] with the Cholesky factor of the observed part of cov (d, d)."""
    for a in range(size):
        for b in range(a + 1):
            rest = cov[observed[a], observed[b]]
            for c in range(b):
                rest -= factor[a, c] * factor[b, c]
            factor[a, b] = np.sqrt(rest) if a == b else rest / factor[b, b]


@jit
def _complete(cov, observed, size, gap, spread, work):
    """Replace missing entries of gap by E[gap | observed]; fill spread with the conditional covariance, else 0."""
    d = len(gap)
    _sub_cholesky(cov, observed, size, work)
    regression = np.zeros((d, size))  # row j: L^-1 cov[observed, j]
    white = np.zeros(size)
    for a in range(size):
        rest = gap[observed[a]]
        for b in range(a):
            rest -= work[a, b] * white[b]
        white[a] = rest / work[a, a]
    for j in range(d):
        for a in range(size):
            rest = cov[observed[a], j]
            for b in range(a):
                rest -= work[a, b] * regression[j, b]
            regression[j, a] = rest / work[a, a]
    for j in range(d):
        for m in range(d):
            spread[j, m] = 0.0
    for j in range(d):
        if not np.isnan(gap[j]):
            continue
        for m in range(d):
            if np.isnan(gap[m]):
                spread[j, m] = cov[j, m]
                for a in range(size):
                    spread[j, m] -= regression[j, a] * regression[m, a]
    for j in range(d):
        if np.isnan(gap[j]):
            gap[j] = 0.0
            for a in range(size):
                gap[j] += regression[j, a] * white[a]
