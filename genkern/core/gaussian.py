"""Gaussian densities and moments of many points under many Gaussians, missing entries marginalised exactly.

P = 1: all points share one row of n Gaussians; P = n_objects: the points of object i belong to row i.
NaN marks a missing entry. Statistics are centred at the means, so that nothing is lost to cancellation.

Points are taken in chunks and turned into columns, eight points to a vector. A lane does what it does whatever the
other lanes hold, and points with missing entries are redone one by one (``gaussian_missing``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.columns import CHUNK, PITCH, from_columns, to_columns
from genkern.core.gaussian_missing import add_diagonal, add_full, density_diagonal, density_full
from genkern.core.hmm_rows import aligned
from genkern.core.hmm_types import read_only
from genkern.core.jit import inlined, jit, kernel
from genkern.core.simd import W, broadcast, element, horizontal_sum, load, multiply_add, store, zero
from genkern.core.tiles import TILE

Floats = NDArray[np.float64]
LOG_2PI = float(np.log(2.0 * np.pi))
PAIRED = TILE >= 16  # there are registers enough for the sums of two Gaussians at once


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
    """What densities need of Gaussians: log normalisers (P, n), and what makes a deviation white.

    ``scale`` holds precisions (P, n, d), or Cholesky factors (P, n, d, d) with negated off-diagonal entries and
    inverted diagonal ones.
    """

    normals: Normals
    constant: Floats
    scale: Floats


class Work(NamedTuple):
    """Columns of a chunk: its points (d, PITCH), what belongs to n Gaussians (n, PITCH), and deviations."""

    points: Floats
    members: Floats
    gaps: Floats


def log_density(normals: Normals, values: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Return log densities (N, n) of values (N, d) under the Gaussians of their objects."""
    n, d = normals.mean.shape[1:]
    out = np.empty((len(values), n))
    groups = _groups(offsets, len(normals.mean) == 1)
    points, full = _floats(values), normals.cov.ndim == 4
    normals = Normals(_floats(normals.mean), _floats(normals.cov))
    with np.errstate(all="ignore"):
        if full:
            _log_density_full(_full_forms(normals), points, groups, out, _work(n, d, d * 4 * W))
        else:
            _log_density_diagonal(_diagonal_forms(normals), points, groups, out, _work(n, d, 0))
    return out


def moments(normals: Normals, values: Floats, offsets: NDArray[np.int64], weights: Floats, totals: bool) -> Moments:
    """Return weighted moments of each object, or of all together (G = 1), under weights (N, n)."""
    count = 1 if totals else len(offsets) - 1
    n, d = normals.mean.shape[1:]
    out = Moments(np.zeros((count, n)), np.zeros((count, n, d)), np.zeros((count, *normals.cov.shape[1:])))
    groups = _groups(offsets, totals and len(normals.mean) == 1)
    points, shares = _floats(values), _floats(weights)
    normals = Normals(_floats(normals.mean), _floats(normals.cov))
    if normals.cov.ndim == 4:
        _moments_full(normals, points, groups, shares, out, _work(n, d, 2 * d * PITCH))
    else:
        _moments_diagonal(normals, points, groups, shares, out, _work(n, d, 0))
    return out


def _groups(offsets: NDArray[np.int64], joined: bool) -> NDArray[np.int64]:
    """Return where the objects begin and end, or all of them as one."""
    return read_only(np.asarray(offsets[[0, -1]] if joined else offsets, np.int64))


def _floats(a: Floats) -> Floats:
    """Return a contiguous, read-only view or copy: compiled code then has one signature."""
    return read_only(np.ascontiguousarray(a, np.float64))


def _work(n: int, d: int, gaps: int) -> Work:
    """Return buffers for one chunk."""
    return Work(aligned(d * PITCH).reshape(d, PITCH), aligned(n * PITCH).reshape(n, PITCH), aligned(gaps))


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
                k = 0
                while PAIRED and k + 1 < n and t + 4 * W <= count:
                    _squares_of_two(forms, p * n + k, t, work, k)
                    k += 2
                for last in range(k, n):
                    _squares_diagonal(forms, p * n + last, t, min(count, t + 4 * W), work, last)
            from_columns(work.members, first, count, out)
            for t in range(first, first + count):
                if np.isnan(out[t, 0]):
                    density_diagonal(forms.normals, p, values, t, out)


@inlined
def _add_square(total, x, mean, scale):
    """Return the total plus (x - mean)^2 scale."""
    gap = x - mean
    return multiply_add(gap * scale, gap, total)


@kernel
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


@kernel
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


@kernel
def _squares_full(forms, member, t, work, k):
    """Fill 32 numbers of row k of work.members by forward substitution; what lies beyond the points means nothing."""
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


@kernel
def _enter(values, weights, first, count, work):
    """Fill the columns of points and weights; return whether any entry is missing, and give such points no weight."""
    to_columns(values, first, count, work.points)
    to_columns(weights, first, count, work.members)
    sums = zero()
    for t in range(0, count, W):
        for j in range(len(work.points)):
            x = load(work.points, j * PITCH + t)
            sums = sums + (x - x)
    if not np.isnan(horizontal_sum(sums)):
        return False
    for t in range(count):
        missing = False
        for j in range(len(work.points)):
            missing |= np.isnan(work.points[j, t])
        if missing:
            for j in range(len(work.points)):
                work.points[j, t] = 0.0
            for k in range(len(work.members)):
                work.members[k, t] = 0.0
    return True


@jit
def _moments_diagonal(normals, values, offsets, weights, out, work):
    """Add weighted centred moments, by chunks of each object."""
    rows, n, d = normals.mean.shape
    for i in range(len(offsets) - 1):
        p = i if rows > 1 else 0
        g = i if len(out.weight) > 1 else 0
        for first in range(offsets[i], offsets[i + 1], CHUNK):
            count = min(CHUNK, offsets[i + 1] - first)
            if d >= W and _is_complete(values, first, count):
                _moments_of_rows(normals, p, values, (first, count), weights, out, g, work)
                continue
            missing = _enter(values, weights, first, count, work)
            for k in range(n):
                out.weight[g, k] += _sum_of_weights(work, k, count)
                for j in range(0, d, 2):
                    _add_squares(normals, p * n + k, j, count, work, out, (g, k))
            if missing:
                for t in range(first, first + count):
                    add_diagonal(normals, p, values, t, weights, out, g)


@kernel
def _is_complete(values, first, count):
    """Say whether no entry of some rows (of at least eight numbers in all) is missing."""
    width = values.shape[1]
    sums, end = zero(), (first + count) * width
    for at in range(first * width, end, W):
        x = load(values, min(at, end - W))  # the last eight may have been seen before
        sums = sums + (x - x)
    return not np.isnan(horizontal_sum(sums))


@kernel
def _moments_of_rows(normals, p, values, span, weights, out, g, work):
    """Add the moments of complete rows of eight entries or more: lanes are entries, and no sum is over lanes."""
    _, n, d = normals.mean.shape
    first, count = span
    near, sums = work.points, W * (CHUNK + 1)  # eight entries of all rows, and behind them sums
    to_columns(weights, first, count, work.members)
    for k in range(n):
        out.weight[g, k] += _sum_of_weights(work, k, count)
    for left in range(0, d, W):
        start = min(left, d - W)  # the last eight overlap those before, which are not added again
        for t in range(count):
            store(near, t * W, load(values, (first + t) * d + start))
        store(near, count * W, zero())  # what makes an odd number of rows even, with no weight
        k = 0
        while PAIRED and k + 1 < n:
            one, other = _sums_of_two(normals.mean, (p * n + k) * d + start, d, near, count, work, k)
            _add_sums(out, (g, k), start, left, near, sums, one)
            _add_sums(out, (g, k + 1), start, left, near, sums, other)
            k += 2
        for last in range(k, n):
            m = load(normals.mean, (p * n + last) * d + start)
            a, b, c, e = zero(), zero(), zero(), zero()
            for t in range(0, count, 2):
                at = last * PITCH + t
                a, b = _add_gap(a, b, load(near, t * W), m, broadcast(element(work.members, at)))
                c, e = _add_gap(c, e, load(near, t * W + W), m, broadcast(element(work.members, at + 1)))
            _add_sums(out, (g, last), start, left, near, sums, (a + c, b + e))


@inlined
def _add_gap(first, second, x, mean, weight):
    """Return the two sums plus weight (x - mean) and weight (x - mean)^2."""
    gap = x - mean
    share = weight * gap
    return first + share, multiply_add(share, gap, second)


@inlined
def _sums_of_two(mean, at, d, near, count, work, k):
    """Return the sums of two members, rows k and k + 1 of work.members, over eight entries of all rows."""
    m, n = load(mean, at), load(mean, at + d)
    a, b, c, e = zero(), zero(), zero(), zero()
    p, q, r, s = zero(), zero(), zero(), zero()
    for t in range(0, count, 2):
        one, other = k * PITCH + t, (k + 1) * PITCH + t
        here = load(near, t * W)
        a, b = _add_gap(a, b, here, m, broadcast(element(work.members, one)))
        p, q = _add_gap(p, q, here, n, broadcast(element(work.members, other)))
        here = load(near, t * W + W)
        c, e = _add_gap(c, e, here, m, broadcast(element(work.members, one + 1)))
        r, s = _add_gap(r, s, here, n, broadcast(element(work.members, other + 1)))
    return (a + c, b + e), (p + r, q + s)


@inlined
def _add_sums(out, place, start, left, near, spare, sums):
    """Add the sums of eight entries from ``start`` on to a member's moments, those before ``left`` being there."""
    (g, k), d = place, out.first.shape[2]
    to = (g * out.first.shape[1] + k) * d + start
    first, second = sums
    if start == left:
        store(out.first, to, load(out.first, to) + first)
        store(out.second, to, load(out.second, to) + second)
    else:
        store(near, spare, first)
        store(near, spare + W, second)
        for j in range(left, d):
            out.first[g, k, j] += element(near, spare + j - start)
            out.second[g, k, j] += element(near, spare + W + j - start)


@kernel
def _add_squares(normals, member, j, count, work, out, place):
    """Add the moments of entries j and j + 1 (if there is one) under a member: two chains of additions at once."""
    d, points = len(work.points), work.points
    other, (g, k) = min(j + 1, d - 1), place
    m, q = broadcast(element(normals.mean, member * d + j)), broadcast(element(normals.mean, member * d + other))
    a, b, c, e = zero(), zero(), zero(), zero()
    for t in range(0, count, W):
        weight = load(work.members, k * PITCH + t)
        a, b = _add_gap(a, b, load(points, j * PITCH + t), m, weight)
        c, e = _add_gap(c, e, load(points, other * PITCH + t), q, weight)
    out.first[g, k, j] += horizontal_sum(a)
    out.second[g, k, j] += horizontal_sum(b)
    if other > j:
        out.first[g, k, other] += horizontal_sum(c)
        out.second[g, k, other] += horizontal_sum(e)


@kernel
def _sum_of_weights(work, k, count):
    """Return the sum of row k of the weights."""
    sums = zero()
    for t in range(0, count, W):
        sums = sums + load(work.members, k * PITCH + t)
    return horizontal_sum(sums)


@jit
def _moments_full(normals, values, offsets, weights, out, work):
    """Add weighted centred moments, by chunks of each object; missing entries add their conditional ones."""
    rows, n, _ = normals.mean.shape
    for i in range(len(offsets) - 1):
        p = i if rows > 1 else 0
        g = i if len(out.weight) > 1 else 0
        for first in range(offsets[i], offsets[i + 1], CHUNK):
            count = min(CHUNK, offsets[i + 1] - first)
            missing = _enter(values, weights, first, count, work)
            for k in range(n):
                out.weight[g, k] += _sum_of_weights(work, k, count)
                _outer_products(normals, p, k, count, work, out, g)
            if missing:
                for t in range(first, first + count):
                    add_full(normals, p, values, t, weights, out, g)


@kernel
def _outer_products(normals, p, k, count, work, out, g):
    """Add the first and second moments of a chunk under member k."""
    _, n, d = normals.mean.shape
    gaps, shares = work.gaps, d * PITCH  # deviations, and behind them the weighted ones
    for j in range(d):
        m, sums = broadcast(element(normals.mean, (p * n + k) * d + j)), zero()
        for t in range(0, count, W):
            gap = load(work.points, j * PITCH + t) - m
            share = load(work.members, k * PITCH + t) * gap
            store(gaps, j * PITCH + t, gap)
            store(gaps, shares + j * PITCH + t, share)
            sums = sums + share
        out.first[g, k, j] += horizontal_sum(sums)
    for row in range(d):
        for column in range(0, row + 1, 2):  # two columns at a time; the second may lie above the diagonal
            a, b = zero(), zero()
            other = min(column + 1, row) * PITCH
            for t in range(0, count, W):
                share = load(gaps, shares + row * PITCH + t)
                a = multiply_add(share, load(gaps, column * PITCH + t), a)
                b = multiply_add(share, load(gaps, other + t), b)
            out.second[g, k, row, column] += horizontal_sum(a)
            if column < row:
                out.second[g, k, row, column + 1] += horizontal_sum(b)
    for row in range(d):
        for column in range(row):
            out.second[g, k, column, row] = out.second[g, k, row, column]
