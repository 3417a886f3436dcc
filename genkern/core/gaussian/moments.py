"""Weighted moments of many points under many Gaussians, centred at the means, by chunks of each object.

The buffers are those of ``gaussian.passes``; points with missing entries are added one by one (``gaussian.missing``).
"""

from __future__ import annotations

import numpy as np

from genkern.core.gaussian.missing import add_diagonal, add_full
from genkern.core.jit import inlined, jit, kernel, part
from genkern.core.simd.columns import CHUNK, PAIRED, PITCH, to_columns
from genkern.core.simd.vectors import W, broadcast, element, horizontal_sum, load, multiply_add, store, zero


@part
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
def moments_of_columns(normals, values, offsets, weights, out, work):
    """Add weighted centred moments, by chunks of each object, without those that ``moments_of_rows`` adds."""
    rows, n, d = normals.mean.shape
    for i in range(len(offsets) - 1):
        p = i if rows > 1 else 0
        g = i if len(out.weight) > 1 else 0
        for first in range(offsets[i], offsets[i + 1], CHUNK):
            count = min(CHUNK, offsets[i + 1] - first)
            if d >= W and _is_complete(values, first, count):
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
def moments_of_rows(normals, values, offsets, weights, out, work):
    """Add weighted centred moments of eight entries or more, by complete chunks; return whether any is incomplete."""
    rows, left = len(normals.mean), False
    for i in range(len(offsets) - 1):
        p = i if rows > 1 else 0
        g = i if len(out.weight) > 1 else 0
        for first in range(offsets[i], offsets[i + 1], CHUNK):
            count = min(CHUNK, offsets[i + 1] - first)
            if _is_complete(values, first, count):
                _moments_of_chunk(normals, p, values, (first, count), weights, out, g, work)
            else:
                left = True
    return left


@part
def _is_complete(values, first, count):
    """Return whether no entry of some rows (of at least eight numbers in all) is missing."""
    width = values.shape[1]
    sums, end = zero(), (first + count) * width
    for at in range(first * width, end, W):
        x = load(values, min(at, end - W))  # the last eight may have been seen before
        sums = sums + (x - x)
    return not np.isnan(horizontal_sum(sums))


@part
def _moments_of_chunk(normals, p, values, span, weights, out, g, work):
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
        store(near, count * W, zero())  # a row of weight zero that makes the number of rows even
        pairs = n // 2 if PAIRED else 0
        for k in range(0, 2 * pairs, 2):
            one, other = _sums_of_two(normals.mean, (p * n + k) * d + start, d, near, count, work, k)
            _add_sums(out, (g, k), start, left, near, sums, one)
            _add_sums(out, (g, k + 1), start, left, near, sums, other)
        for last in range(2 * pairs, n):
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
def _add_sums(out, indices, start, left, near, spare, sums):
    """Add the sums of eight entries from ``start`` on to a member's moments, except those before ``left``."""
    (g, k), d = indices, out.first.shape[2]
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


@part
def _add_squares(normals, member, j, count, work, out, indices):
    """Add the moments of entries j and j + 1 (if there is one) under a member: two chains of additions at once."""
    d, points = len(work.points), work.points
    other, (g, k) = min(j + 1, d - 1), indices
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


@part
def _sum_of_weights(work, k, count):
    """Return the sum of row k of the weights."""
    sums = zero()
    for t in range(0, count, W):
        sums = sums + load(work.members, k * PITCH + t)
    return horizontal_sum(sums)


@jit
def moments_full(normals, values, offsets, weights, out, work):
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


@part
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
