"""Gaussian densities and moments of many points under many Gaussians, missing entries marginalised exactly.

P = 1: all points share one row of n Gaussians; P = n_objects: the points of object i belong to row i.
NaN marks a missing entry. Statistics are centred at the means, so that nothing is lost to cancellation.

Points are taken in chunks and turned into columns, eight points to a vector. The result of a lane does not depend
on the other lanes; points with missing entries are recomputed one by one (``gaussian.missing``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.gaussian.missing import density_diagonal, density_full
from genkern.core.gaussian.moments import moments_full, moments_of_columns, moments_of_rows
from genkern.core.hmm.rows import aligned, aligned_columns
from genkern.core.hmm.types import read_only
from genkern.core.jit import inlined, jit, part
from genkern.core.simd.columns import CHUNK, PAIRED, PITCH, from_columns, to_columns
from genkern.core.simd.vectors import W, broadcast, element, load, multiply_add, store, zero

Floats = NDArray[np.float64]
NONE = np.zeros(0)
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


class Forms(NamedTuple):
    """Gaussians as densities need them: log normalisers (P, n), and factors that whiten a deviation.

    ``scale`` holds precisions (P, n, d), or Cholesky factors (P, n, d, d) with negated off-diagonal entries and
    inverted diagonal ones.
    """

    normals: Normals
    constant: Floats
    scale: Floats


class GaussianWorkspace(NamedTuple):
    """Columns of a chunk: its points (d, PITCH), results for n Gaussians (n, PITCH), and deviations."""

    points: Floats
    members: Floats
    gaps: Floats


def log_density(given: Normals | Forms, values: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Return log densities (N, n) of values (N, d) under the Gaussians of their objects."""
    forms = given if isinstance(given, Forms) else forms_of(given)
    rows, n, d = forms.normals.mean.shape
    out, points, groups = np.empty((len(values), n)), _floats(values), _groups(offsets, rows == 1)
    with np.errstate(all="ignore"):
        if forms.scale.ndim == 4:
            _log_density_full(forms, points, groups, out, _work(n, d, d * 4 * W))
        else:
            _log_density_diagonal(forms, points, groups, out, _work(n, d, 0))
    return out


def forms_of(normals: Normals) -> Forms:
    """Return Gaussians as densities need them."""
    held = Normals(_floats(normals.mean), _floats(normals.cov))
    with np.errstate(all="ignore"):
        return _full_forms(held) if held.cov.ndim == 4 else _diagonal_forms(held)


def moments(normals: Normals, values: Floats, offsets: NDArray[np.int64], weights: Floats, totals: bool) -> Moments:
    """Return weighted moments of each object, or of all together (G = 1), under weights (N, n)."""
    count = 1 if totals else len(offsets) - 1
    n, d = normals.mean.shape[1:]
    out = Moments(np.zeros((count, n)), np.zeros((count, n, d)), np.zeros((count, *normals.cov.shape[1:])))
    groups = _groups(offsets, totals and len(normals.mean) == 1)
    points, shares = _floats(values), _floats(weights)
    normals = Normals(_floats(normals.mean), _floats(normals.cov))
    if normals.cov.ndim == 4:
        moments_full(normals, points, groups, shares, out, _work(n, d, 2 * d * PITCH))
        return out
    work = _work(n, d, 0)
    if d < W or moments_of_rows(normals, points, groups, shares, out, work):
        moments_of_columns(normals, points, groups, shares, out, work)
    return out


def _groups(offsets: NDArray[np.int64], joined: bool) -> NDArray[np.int64]:
    """Return where the objects begin and end, or all of them as one."""
    return read_only(np.asarray(offsets[[0, -1]] if joined else offsets, np.int64))


def _floats(a: Floats) -> Floats:
    """Return a contiguous, read-only view or copy: compiled code then has one signature."""
    return read_only(np.ascontiguousarray(a, np.float64))


def _work(n: int, d: int, gaps: int) -> GaussianWorkspace:
    """Return buffers for one chunk."""
    points, members = aligned_columns(PITCH, d, n)
    return GaussianWorkspace(points, members, aligned(gaps) if gaps else NONE)


def _diagonal_forms(normals: Normals) -> Forms:
    constant = -0.5 * (LOG_2PI + np.log(normals.cov)).sum(axis=-1)
    return Forms(normals, _floats(constant), _floats(1.0 / normals.cov))


def _full_forms(normals: Normals) -> Forms:
    factors = np.linalg.cholesky(normals.cov)
    diagonal = np.diagonal(factors, axis1=-2, axis2=-1)
    constant: Floats = -(0.5 * LOG_2PI + np.log(diagonal)).sum(axis=-1)
    scale = -factors
    index = np.arange(diagonal.shape[-1])
    scale[..., index, index] = 1.0 / diagonal
    return Forms(normals, _floats(constant), _floats(np.asarray(scale, np.float64)))


@jit
def _log_density_diagonal(forms, values, offsets, out, work):
    """Fill out (N, n): constant - sum of (x - m)^2 / 2v, by chunks of each object."""
    rows, n, _ = forms.normals.mean.shape
    for i in range(len(offsets) - 1):
        p = i if rows > 1 else 0
        for first in range(offsets[i], offsets[i + 1], CHUNK):
            count = min(CHUNK, offsets[i + 1] - first)
            to_columns(values, first, count, work.points)
            for t in range(0, count, 4 * W):  # few points, so that they stay in the nearest cache
                pairs = n // 2 if PAIRED and t + 4 * W <= count else 0
                for k in range(0, 2 * pairs, 2):
                    _squares_of_two(forms, p * n + k, t, work, k)
                for k in range(2 * pairs, n):
                    _squares_diagonal(forms, p * n + k, t, min(count, t + 4 * W), work, k)
            from_columns(work.members, first, count, out)
            for t in range(first, first + count):
                if np.isnan(out[t, 0]):
                    density_diagonal(forms.normals, p, values, t, out)


@inlined
def _add_square(total, x, mean, scale):
    """Return the total plus (x - mean)^2 scale."""
    gap = x - mean
    return multiply_add(gap * scale, gap, total)


@part
def _squares_of_two(forms, member, t, work, k):
    """Fill 32 numbers from t on of rows k and k + 1 of work.members with log densities under two members."""
    mean, scale, points, d = forms.normals.mean, forms.scale, work.points, len(work.points)
    a, b, c, e = zero(), zero(), zero(), zero()
    p, q, r, s = zero(), zero(), zero(), zero()
    for j in range(d):
        at, x = member * d + j, j * PITCH + t
        m, v = broadcast(element(mean, at)), broadcast(element(scale, at))
        n, w = broadcast(element(mean, at + d)), broadcast(element(scale, at + d))
        here = load(points, x)
        a, p = _add_square(a, here, m, v), _add_square(p, here, n, w)
        here = load(points, x + W)
        b, q = _add_square(b, here, m, v), _add_square(q, here, n, w)
        here = load(points, x + 2 * W)
        c, r = _add_square(c, here, m, v), _add_square(r, here, n, w)
        here = load(points, x + 3 * W)
        e, s = _add_square(e, here, m, v), _add_square(s, here, n, w)
    _store_logs(forms, member, work, k * PITCH + t, (a, b, c, e))
    _store_logs(forms, member + 1, work, (k + 1) * PITCH + t, (p, q, r, s))


@inlined
def _store_logs(forms, member, work, at, squares):
    """Store log densities under a member, of four vectors of points at these squared distances."""
    half, constant = broadcast(-0.5), broadcast(element(forms.constant, member))
    a, b, c, e = squares
    store(work.members, at, multiply_add(half, a, constant))
    store(work.members, at + W, multiply_add(half, b, constant))
    store(work.members, at + 2 * W, multiply_add(half, c, constant))
    store(work.members, at + 3 * W, multiply_add(half, e, constant))


@part
def _squares_diagonal(forms, member, t, end, work, k):
    """Fill numbers t to end, at most 32, of row k of work.members with log densities under one member."""
    mean, scale, points, d = forms.normals.mean, forms.scale, work.points, len(work.points)
    at, to = member * d, k * PITCH
    if t + 3 * W < end:  # four vectors at once: independent chains of additions, and fewer broadcasts
        a, b, c, e = zero(), zero(), zero(), zero()
        for j in range(d):
            m, s = broadcast(element(mean, at + j)), broadcast(element(scale, at + j))
            x = j * PITCH + t
            a = _add_square(a, load(points, x), m, s)
            b = _add_square(b, load(points, x + W), m, s)
            c = _add_square(c, load(points, x + 2 * W), m, s)
            e = _add_square(e, load(points, x + 3 * W), m, s)
        _store_logs(forms, member, work, to + t, (a, b, c, e))
        return
    for rest in range(t, end, W):
        a = zero()
        for j in range(d):
            x = load(points, j * PITCH + rest)
            a = _add_square(a, x, broadcast(element(mean, at + j)), broadcast(element(scale, at + j)))
        half, constant = broadcast(-0.5), broadcast(element(forms.constant, member))
        store(work.members, to + rest, multiply_add(half, a, constant))


@jit
def _log_density_full(forms, values, offsets, out, work):
    """Fill out (N, n): constant - |L^-1 (x - m)|^2 / 2, by chunks of each object."""
    rows, n, _ = forms.normals.mean.shape
    for i in range(len(offsets) - 1):
        p = i if rows > 1 else 0
        for first in range(offsets[i], offsets[i + 1], CHUNK):
            count = min(CHUNK, offsets[i + 1] - first)
            to_columns(values, first, count, work.points)
            for t in range(0, count, 4 * W):
                for k in range(n):
                    _squares_full(forms, p * n + k, t, work, k)
            from_columns(work.members, first, count, out)
            for t in range(first, first + count):
                if np.isnan(out[t, 0]):
                    density_full(forms.normals, p, values, t, out)


@part
def _squares_full(forms, member, t, work, k):
    """Fill 32 numbers of row k of work.members by forward substitution; those beyond the points are undefined."""
    mean, scale, points, white, d = forms.normals.mean, forms.scale, work.points, work.gaps, len(work.points)
    a, b, c, e = zero(), zero(), zero(), zero()
    for row in range(d):
        m, x, factor = broadcast(element(mean, member * d + row)), row * PITCH + t, (member * d + row) * d
        p, q = load(points, x) - m, load(points, x + W) - m
        r, s = load(points, x + 2 * W) - m, load(points, x + 3 * W) - m
        for column in range(row):
            minus, y = broadcast(element(scale, factor + column)), column * 4 * W
            p = multiply_add(minus, load(white, y), p)
            q = multiply_add(minus, load(white, y + W), q)
            r = multiply_add(minus, load(white, y + 2 * W), r)
            s = multiply_add(minus, load(white, y + 3 * W), s)
        inverse, y = broadcast(element(scale, factor + row)), row * 4 * W
        p, q, r, s = p * inverse, q * inverse, r * inverse, s * inverse
        store(white, y, p)
        store(white, y + W, q)
        store(white, y + 2 * W, r)
        store(white, y + 3 * W, s)
        a, b = multiply_add(p, p, a), multiply_add(q, q, b)
        c, e = multiply_add(r, r, c), multiply_add(s, s, e)
    _store_logs(forms, member, work, k * PITCH + t, (a, b, c, e))
