"""Small k-means problems, one per object, solved in one compiled call: starts for mixtures and hidden states."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.hmm.rows import aligned
from genkern.core.jit import inlined, jit, kernel
from genkern.core.simd.columns import CHUNK, PITCH, from_columns, to_columns
from genkern.core.simd.vectors import W, broadcast, element, less, load, select, store, zero

Floats = NDArray[np.float64]


class Often(NamedTuple):
    """How often objects count: where they begin and end (n + 1,) among the points, and their weights (n,), positive."""

    offsets: NDArray[np.int64]
    weights: Floats

    @property
    def of_points(self) -> Floats:
        """The weight (N,) of each point."""
        return np.repeat(self.weights, np.diff(self.offsets))


def kmeans_each(
    values: Floats,
    offsets: NDArray[np.int64],
    k: int,
    uniforms: Floats,
    max_iter: int = 50,
    often: Often | None = None,
) -> NDArray[np.int64]:
    """Return cluster labels (N,) of the points of each group, by k-means++ and Lloyd's iterations.

    ``values`` (N, d) has no missing entries; ``uniforms`` (n_groups, k) in [0, 1) drives the choice of first centres.
    Clusters that run empty keep their centre. Groups with fewer than k points have that many clusters. ``often`` says
    how often the objects count that groups consist of: labels are those of objects given so often, side by side.
    """
    often = Often(offsets, np.ones(len(offsets) - 1)) if often is None else often
    labels = np.zeros(len(values), np.int64)
    chunks = -(-int(np.diff(offsets).max(initial=0)) // CHUNK)
    tiles = aligned(chunks * values.shape[1] * PITCH).reshape(chunks, values.shape[1], PITCH)
    _kmeans_each(np.ascontiguousarray(values), offsets, uniforms, labels, tiles, (k, max_iter), often)
    return labels


@jit
def _kmeans_each(values, offsets, uniforms, labels, tiles, limits, often):
    """Fill labels (N,) group by group; tiles hold the points of one as columns, chunk by chunk."""
    k, max_iter = limits
    centres, found = np.empty((k, values.shape[1])), np.empty(PITCH)
    last = 0
    for i in range(len(offsets) - 1):
        first_object = last
        while last < len(often.weights) and often.offsets[last + 1] <= offsets[i + 1]:
            last += 1
        ends = often.offsets[first_object + 1 : last + 1] - offsets[i]
        weights = often.weights[first_object:last]
        points = values[offsets[i] : offsets[i + 1]]
        own = labels[offsets[i] : offsets[i + 1]]
        for first in range(0, len(points), CHUNK):
            to_columns(points, first, min(CHUNK, len(points) - first), tiles[first // CHUNK])
        used = _first_centres(points, tiles, uniforms[i], centres, ends, weights)
        for _ in range(max_iter):
            if not _assign(tiles, centres[:used], own, found):
                break
            _recentre(points, own, centres, used, ends, weights)


@inlined
def _squares(tile, t, centre):
    """Return the squared distances of 32 points from a centre (d,), of a tile (d, PITCH) from column t on."""
    a, b, c, e = zero(), zero(), zero(), zero()
    for j in range(len(centre)):
        mean, at = broadcast(element(centre, j)), j * PITCH + t
        p, q = load(tile, at) - mean, load(tile, at + W) - mean
        r, s = load(tile, at + 2 * W) - mean, load(tile, at + 3 * W) - mean
        a, b, c, e = a + p * p, b + q * q, c + r * r, e + s * s
    return a, b, c, e


@kernel
def _come_near(tiles, centre, gaps):
    """Lower gaps (N,), up to a whole number of chunks, to the squared distances from a centre."""
    for first in range(0, len(gaps), CHUNK):
        for t in range(0, CHUNK, 4 * W):
            at = first + t
            a, b, c, e = _squares(tiles[first // CHUNK], t, centre)
            p, q, r, s = load(gaps, at), load(gaps, at + W), load(gaps, at + 2 * W), load(gaps, at + 3 * W)
            store(gaps, at, select(less(a, p), a, p))
            store(gaps, at + W, select(less(b, q), b, q))
            store(gaps, at + 2 * W, select(less(c, r), c, r))
            store(gaps, at + 3 * W, select(less(e, s), e, s))


@jit
def _first_centres(points, tiles, uniforms, centres, ends, weights):
    """Fill centres by k-means++ (each drawn in proportion to the squared distance); return how many are distinct."""
    count = len(points)
    padded = np.full(-(-count // CHUNK) * CHUNK, np.inf)
    gaps = padded[:count]
    for c in range(len(centres)):
        chosen = _drawn(gaps if c else np.ones(count), uniforms[c], ends, weights)
        if chosen < 0:
            return c
        centres[c] = points[chosen]
        _come_near(tiles, centres[c], padded)
    return len(centres)


@jit
def _drawn(gaps, number, ends, weights):
    """Return the point that a number in [0, 1) falls on, each with a part as long as its gap; -1 if they have none.

    The parts of an object, which ends where ``ends`` says, are there once for each unit of its weight, the last of
    which may be a fraction: then all have the same share of the whole.
    """
    parts, total, begin = np.empty(len(ends)), 0.0, 0
    for i in range(len(ends)):
        parts[i] = weights[i] * gaps[begin : ends[i]].sum()
        total += parts[i]
        begin = ends[i]
    target, passed, rest, mine = number * total, 0.0, 0.0, -1
    for i in range(len(ends)):
        if parts[i] > 0.0:
            mine, rest = i, target - passed
        passed += parts[i]
        if passed > target:
            break
    if mine < 0:
        return -1
    times = np.ceil(weights[mine])
    rest -= min(np.floor(rest / parts[mine] * times), times - 1.0) * (parts[mine] / times)
    rest *= times / weights[mine]
    chosen = ends[mine - 1] if mine else 0
    run = gaps[chosen]
    while run <= rest and chosen < ends[mine] - 1:
        chosen += 1
        run += gaps[chosen]
    return chosen


@kernel
def _assign(tiles, centres, labels, found):
    """Fill labels with the nearest centre; return whether any label changed."""
    changed = False
    for first in range(0, len(labels), CHUNK):
        count = min(CHUNK, len(labels) - first)
        for t in range(0, count, 4 * W):
            _nearest(tiles[first // CHUNK], t, centres, found)
        for t in range(count):
            nearest = int(found[t])
            if labels[first + t] != nearest:
                labels[first + t] = nearest
                changed = True
    return changed


@kernel
def _nearest(tile, t, centres, found):
    """Fill found, from index t on, with the first of the nearest centres of 32 points."""
    f, g, h, i = zero(), zero(), zero(), zero()
    p, q, r, s = _squares(tile, t, centres[0])
    for index in range(1, len(centres)):
        a, b, c, e = _squares(tile, t, centres[index])
        own = broadcast(float(index))
        f, p = select(less(a, p), own, f), select(less(a, p), a, p)
        g, q = select(less(b, q), own, g), select(less(b, q), b, q)
        h, r = select(less(c, r), own, h), select(less(c, r), c, r)
        i, s = select(less(e, s), own, i), select(less(e, s), e, s)
    store(found, t, f)
    store(found, t + W, g)
    store(found, t + 2 * W, h)
    store(found, t + 3 * W, i)


@jit
def _recentre(points, labels, centres, used, ends, weights):
    """Move each centre to the mean of its points, which count as often as the weight of their object says."""
    counts = np.zeros(used)
    sums = np.zeros((used, points.shape[1]))
    first = 0
    for i in range(len(ends)):
        for t in range(first, ends[i]):
            counts[labels[t]] += weights[i]
            for j in range(points.shape[1]):
                sums[labels[t], j] += weights[i] * points[t, j]
        first = ends[i]
    for c in range(used):
        if counts[c] > 0.0:
            for j in range(points.shape[1]):
                centres[c, j] = sums[c, j] / counts[c]


def squares_each(values: Floats, offsets: NDArray[np.int64], centres: Floats) -> Floats:
    """Return the squared distances (N, k) of the points (N, d) of each object from its centres (n_objects, k, d).

    Sums over entries are taken in the order of ``np.sum``: eight running sums, added in pairs.
    """
    k, d = centres.shape[1:]
    out = np.empty((len(values), k))
    if d > CHUNK:  # np.sum then halves the entries first
        for j in range(k):
            out[:, j] = ((values - np.repeat(centres[:, j], np.diff(offsets), axis=0)) ** 2).sum(axis=1)
        return out
    tile, columns = (aligned(size * PITCH).reshape(size, PITCH) for size in (d, k))
    _squares_each(np.ascontiguousarray(values), offsets, np.ascontiguousarray(centres), tile, columns, out)
    return out


@kernel
def _squares_each(values, offsets, centres, tile, columns, out):
    """Fill out (N, k) by chunks of each object."""
    for i in range(len(offsets) - 1):
        for first in range(offsets[i], offsets[i + 1], CHUNK):
            count = min(CHUNK, offsets[i + 1] - first)
            to_columns(values, first, count, tile)
            for k in range(len(columns)):
                for t in range(0, count, W):
                    store(columns, k * PITCH + t, _square_in_pairs(tile, t, centres[i, k]))
            from_columns(columns, first, count, out)


@inlined
def _gap(tile, t, centre, j):
    """Return the squares of what eight points, from column t on, are apart from a centre in entry j."""
    gap = load(tile, j * PITCH + t) - broadcast(element(centre, j))
    return gap * gap


@kernel
def _square_in_pairs(tile, t, centre):
    """Return the squared distances of eight points from a centre (d,), d <= 128, in the order of np.sum."""
    d, total = len(centre), zero()
    whole = d // W * W
    if whole:
        a, b, c, e = zero(), zero(), zero(), zero()
        p, q, r, s = zero(), zero(), zero(), zero()
        for j in range(0, whole, W):
            a, b = a + _gap(tile, t, centre, j), b + _gap(tile, t, centre, j + 1)
            c, e = c + _gap(tile, t, centre, j + 2), e + _gap(tile, t, centre, j + 3)
            p, q = p + _gap(tile, t, centre, j + 4), q + _gap(tile, t, centre, j + 5)
            r, s = r + _gap(tile, t, centre, j + 6), s + _gap(tile, t, centre, j + 7)
        total = ((a + b) + (c + e)) + ((p + q) + (r + s))
    for j in range(whole, d):
        total = total + _gap(tile, t, centre, j)
    return total


def exponents_each(squares: Floats, offsets: NDArray[np.int64], there: NDArray[np.bool_], heat: Floats) -> None:
    r"""Replace squared distances (N, k) by :math:`(\min_j s_j - s) / 2h`, zero where s is the least, in place.

    ``heat`` (n_objects,) are the h; missing clusters (n_objects, k) have minus infinity, and do not count for
    the minimum.
    """
    k = squares.shape[1]
    with np.errstate(all="ignore"):
        _exponents_each(squares, offsets, there, heat, aligned(k * PITCH).reshape(k, PITCH))


@kernel
def _exponents_each(squares, offsets, there, heat, columns):
    """Replace squares (N, k) by chunks of each object."""
    k = squares.shape[1]
    for i in range(len(offsets) - 1):
        by = broadcast(-2.0 * heat[i])
        for first in range(offsets[i], offsets[i + 1], CHUNK):
            count = min(CHUNK, offsets[i + 1] - first)
            to_columns(squares, first, count, columns)
            for t in range(0, count, W):
                least = broadcast(np.inf)
                for c in range(k):
                    if there[i, c]:
                        x = load(columns, c * PITCH + t)
                        least = select(less(x, least), x, least)
                for c in range(k):
                    gap = load(columns, c * PITCH + t) - least
                    exponent = select(less(zero(), gap), gap / by, zero())
                    store(columns, c * PITCH + t, exponent if there[i, c] else broadcast(-np.inf))
            from_columns(columns, first, count, squares)
