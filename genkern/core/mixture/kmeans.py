"""Small k-means problems, one per object, solved in one compiled call: starts for mixtures and hidden states."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.hmm.rows import aligned
from genkern.core.hmm.types import read_only
from genkern.core.jit import inlined, kernel, part
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
    labels, d = np.zeros(len(values), np.int64), values.shape[1]
    chunks = -(-int(np.diff(offsets).max(initial=0)) // CHUNK)
    work = _Work(
        aligned(chunks * d * PITCH).reshape(chunks, d, PITCH),
        aligned(PITCH),
        np.empty((k, d)),
        np.empty((k, d)),
        np.empty(max(k, len(often.weights))),
        np.empty(chunks * CHUNK),
    )
    points = read_only(np.ascontiguousarray(values))
    objects = np.append(0, np.searchsorted(often.offsets[1:], offsets[1:], side="right"))
    _kmeans_each(points, offsets, uniforms, labels, work, (k, max_iter), often, objects)
    return labels


class _Work(NamedTuple):
    """Buffers for one group.

    Its points as columns (chunks, d, PITCH), the nearest centres of a chunk (PITCH,), centres and sums (k, d), counts
    of clusters or parts of objects, and gaps, for a whole number of chunks.
    """

    tiles: Floats
    found: Floats
    centres: Floats
    sums: Floats
    counts: Floats
    gaps: Floats


@kernel
def _kmeans_each(values, offsets, uniforms, labels, work, limits, often, objects):
    """Fill labels (N,) group by group; group i has the objects objects[i] to objects[i + 1]."""
    k, max_iter = limits
    for i in range(len(offsets) - 1):
        first, count = offsets[i], offsets[i + 1] - offsets[i]
        for start in range(0, count, CHUNK):
            to_columns(values, first + start, min(CHUNK, count - start), work.tiles[start // CHUNK])
        span, own, used = (first, count), (objects[i], objects[i + 1]), k
        for c in range(k):
            if not _next_centre(values, span, uniforms[i, c], c, own, often, work):
                used = c
                break
        for _ in range(max_iter):
            if not _assign(work, used, labels, span):
                break
            _recentre(values, span, labels, used, own, often, work)


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


@part
def _come_near(tiles, centre, gaps, count):
    """Lower the gaps of some points, up to a whole number of chunks, to the squared distances from a centre."""
    for first in range(0, count, CHUNK):
        for t in range(0, CHUNK, 4 * W):
            at = first + t
            a, b, c, e = _squares(tiles[first // CHUNK], t, centre)
            p, q, r, s = load(gaps, at), load(gaps, at + W), load(gaps, at + 2 * W), load(gaps, at + 3 * W)
            store(gaps, at, select(less(a, p), a, p))
            store(gaps, at + W, select(less(b, q), b, q))
            store(gaps, at + 2 * W, select(less(c, r), c, r))
            store(gaps, at + 3 * W, select(less(e, s), e, s))


@part
def _next_centre(values, span, number, c, objects, often, work):
    """Draw centre c by k-means++ (in proportion to the squared distance); return whether a distinct one is left."""
    first, count = span
    gaps = work.gaps
    if c == 0:
        for t in range(count):
            gaps[t] = 1.0
    chosen = _drawn(gaps, number, first, objects, often, work.counts)
    if chosen < 0:
        return False
    if c == 0:
        for t in range(-(-count // CHUNK) * CHUNK):
            gaps[t] = np.inf
    for j in range(values.shape[1]):
        work.centres[c, j] = values[first + chosen, j]
    _come_near(work.tiles, work.centres[c], gaps, count)
    return True


@part
def _drawn(gaps, number, base, objects, often, parts):
    """Return the point that a number in [0, 1) falls on, each with a part as long as its gap; -1 if they have none.

    The parts of an object, one of a group whose points begin at ``base``, are there once for each unit of its weight,
    the last of which may be a fraction: then all have the same share of the whole.
    """
    first, last = objects
    total, begin = 0.0, 0
    for i in range(first, last):
        parts[i], end = 0.0, often.offsets[i + 1] - base
        for t in range(begin, end):
            parts[i] += gaps[t]
        parts[i] *= often.weights[i]
        total += parts[i]
        begin = end
    target, passed, rest, mine = number * total, 0.0, 0.0, -1
    for i in range(first, last):
        if parts[i] > 0.0:
            mine, rest = i, target - passed
        passed += parts[i]
        if passed > target:
            break
    if mine < 0:
        return -1
    times = np.ceil(often.weights[mine])
    rest -= min(np.floor(rest / parts[mine] * times), times - 1.0) * (parts[mine] / times)
    rest *= times / often.weights[mine]
    chosen = often.offsets[mine] - base if mine > first else 0
    run = gaps[chosen]
    while run <= rest and chosen < often.offsets[mine + 1] - base - 1:
        chosen += 1
        run += gaps[chosen]
    return chosen


@part
def _assign(work, used, labels, span):
    """Fill the labels of a group with the nearest centre; return whether any label changed."""
    changed, (base, points) = False, span
    for first in range(0, points, CHUNK):
        count = min(CHUNK, points - first)
        for t in range(0, count, 4 * W):
            _nearest(work.tiles[first // CHUNK], t, work.centres, used, work.found)
        for t in range(count):
            nearest = int(work.found[t])
            if labels[base + first + t] != nearest:
                labels[base + first + t] = nearest
                changed = True
    return changed


@part
def _nearest(tile, t, centres, used, found):
    """Fill found, from index t on, with the first of the nearest of the centres in use of 32 points."""
    f, g, h, i = zero(), zero(), zero(), zero()
    p, q, r, s = _squares(tile, t, centres[0])
    for index in range(1, used):
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


@part
def _recentre(values, span, labels, used, objects, often, work):
    """Move each centre to the mean of its points, which count as often as the weight of their object says."""
    counts, sums, d = work.counts, work.sums, values.shape[1]
    (begin, _), (first, last) = span, objects
    for c in range(used):
        counts[c] = 0.0
        for j in range(d):
            sums[c, j] = 0.0
    for i in range(first, last):
        weight = often.weights[i]
        for t in range(begin, often.offsets[i + 1]):
            counts[labels[t]] += weight
            for j in range(d):
                sums[labels[t], j] += weight * values[t, j]
        begin = often.offsets[i + 1]
    for c in range(used):
        if counts[c] > 0.0:
            for j in range(d):
                work.centres[c, j] = sums[c, j] / counts[c]


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
    _squares_each(read_only(np.ascontiguousarray(values)), offsets, np.ascontiguousarray(centres), tile, columns, out)
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


@part
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
