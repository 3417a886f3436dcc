"""Gaussian densities and moments of single points with missing entries (NaN), marginalised exactly."""

from __future__ import annotations

import math

import numpy as np

from genkern.core.jit import jit

LOG_2PI = math.log(2.0 * math.pi)


@jit
def density_diagonal(normals, p, values, t, out):
    """Fill out[t] (n,) with the sum over observed entries of -(log 2 pi v + (x - m)^2 / v) / 2."""
    _, n, d = normals.mean.shape
    for k in range(n):
        total = 0.0
        for j in range(d):
            gap = values[t, j] - normals.mean[p, k, j]
            if not np.isnan(gap):
                total -= 0.5 * (LOG_2PI + math.log(normals.cov[p, k, j]) + gap * gap / normals.cov[p, k, j])
        out[t, k] = total


@jit
def density_full(normals, p, values, t, out):
    """Fill out[t] (n,) by forward substitution with the Cholesky factors of the observed part."""
    _, n, d = normals.mean.shape
    observed, white, factor = np.empty(d, np.int64), np.empty(d), np.empty((d, d))
    size = _observed(values[t], observed)
    for k in range(n):
        _sub_cholesky(normals.cov[p, k], observed, size, factor)
        total = -0.5 * size * LOG_2PI
        for a in range(size):
            rest = values[t, observed[a]] - normals.mean[p, k, observed[a]]
            for b in range(a):
                rest -= factor[a, b] * white[b]
            white[a] = rest / factor[a, a]
            total -= 0.5 * white[a] * white[a] + math.log(factor[a, a])
        out[t, k] = total


@jit
def add_diagonal(normals, p, values, t, weights, out, g):
    """Add the moments of point t to group g if it misses any entry, which adds 0 to the first, v to the second."""
    _, n, d = normals.mean.shape
    if not _is_incomplete(values, t):
        return
    for k in range(n):
        weight = weights[t, k]
        out.weight[g, k] += weight
        for j in range(d):
            gap = values[t, j] - normals.mean[p, k, j]
            if np.isnan(gap):
                out.second[g, k, j] += weight * normals.cov[p, k, j]
            else:
                out.first[g, k, j] += weight * gap
                out.second[g, k, j] += weight * gap * gap


@jit
def add_full(normals, p, values, t, weights, out, g):
    """Add the moments of point t to group g if it misses any entry: conditional mean and covariance."""
    _, n, d = normals.mean.shape
    if not _is_incomplete(values, t):
        return
    observed, gap, spread, work = np.empty(d, np.int64), np.empty(d), np.empty((d, d)), np.empty((d, d))
    size = _observed(values[t], observed)
    for k in range(n):
        weight = weights[t, k]
        if weight == 0.0:
            continue
        for j in range(d):
            gap[j] = values[t, j] - normals.mean[p, k, j]
        _complete(normals.cov[p, k], observed, size, gap, spread, work)
        out.weight[g, k] += weight
        for a in range(d):
            out.first[g, k, a] += weight * gap[a]
            for b in range(d):
                out.second[g, k, a, b] += weight * (gap[a] * gap[b] + spread[a, b])


@jit
def _is_incomplete(values, t):
    """Return whether any entry of point t is missing."""
    missing = False
    for j in range(values.shape[1]):
        missing |= np.isnan(values[t, j])
    return missing


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
