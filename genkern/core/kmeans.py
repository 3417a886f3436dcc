"""Small k-means problems, one per object, solved in one compiled call: starts for mixtures and hidden states."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import jit

Floats = NDArray[np.float64]


def kmeans_each(
    values: Floats, offsets: NDArray[np.int64], k: int, uniforms: Floats, max_iter: int = 50
) -> NDArray[np.int64]:
    """Return cluster labels (N,) of the points of each object, by k-means++ and Lloyd's iterations.

    ``values`` (N, d) has no missing entries; ``uniforms`` (n_objects, k) in [0, 1) drives the choice of first centres.
    Clusters that run empty keep their centre. Objects with fewer than k points have that many clusters.
    """
    labels = np.zeros(len(values), np.int64)
    _kmeans_each(values, offsets, uniforms, labels, k, max_iter)
    return labels


@jit
def _kmeans_each(values, offsets, uniforms, labels, k, max_iter):
    """Fill labels (N,) object by object."""
    centres = np.empty((k, values.shape[1]))
    for i in range(len(offsets) - 1):
        points = values[offsets[i] : offsets[i + 1]]
        own = labels[offsets[i] : offsets[i + 1]]
        used = _first_centres(points, uniforms[i], centres)
        for _ in range(max_iter):
            if not _assign(points, centres, used, own):
                break
            _recentre(points, own, centres, used)


@jit
def _first_centres(points, uniforms, centres):
    """Fill centres by k-means++ (each drawn in proportion to the squared distance); return how many are distinct."""
    count, d = points.shape
    gaps = np.full(count, np.inf)
    chosen = min(int(uniforms[0] * count), count - 1)
    for c in range(len(centres)):
        if c > 0:
            total = gaps.sum()
            if total <= 0.0:
                return c
            target = uniforms[c] * total
            chosen = 0
            run = gaps[0]
            while run <= target and chosen < count - 1:
                chosen += 1
                run += gaps[chosen]
        centres[c] = points[chosen]
        for t in range(count):
            square = 0.0
            for j in range(d):
                square += (points[t, j] - centres[c, j]) ** 2
            gaps[t] = min(gaps[t], square)
    return len(centres)


@jit
def _assign(points, centres, used, labels):
    """Fill labels with the nearest centre; return whether any label changed."""
    changed = False
    columns, squares = centres[:used].T.copy(), np.empty(used)
    for t in range(len(points)):
        squares[:] = 0.0
        for j in range(points.shape[1]):
            x = points[t, j]
            for c in range(used):  # in vectors: centres lie side by side
                squares[c] += (x - columns[j, c]) ** 2
        best, nearest = squares[0], 0
        for c in range(1, used):
            if squares[c] < best:
                best, nearest = squares[c], c
        if labels[t] != nearest:
            labels[t] = nearest
            changed = True
    return changed


@jit
def _recentre(points, labels, centres, used):
    """Move each centre to the mean of its points."""
    counts = np.zeros(used)
    sums = np.zeros((used, points.shape[1]))
    for t in range(len(points)):
        counts[labels[t]] += 1.0
        for j in range(points.shape[1]):
            sums[labels[t], j] += points[t, j]
    for c in range(used):
        if counts[c] > 0.0:
            for j in range(points.shape[1]):
                centres[c, j] = sums[c, j] / counts[c]
