r"""The empirical mean map kernel of two sequences, window against window, for words of any length.

.. math:: \operatorname{mean}_{s,t} \prod_{j<k} B_{x_{s+j}, y_{t+j}} \quad\text{or}\quad
          \operatorname{mean}_{s,t}\, e^{-\frac{λ}{2} \sum_{j<k} |x_{s+j} - y_{t+j}|^2}

for codes of symbols, with a table B of their similarity, or for numbers. O(L L' k) for each pair of sequences, eight
windows of the second at a time; those shorter than k have no windows and value zero.

References
----------
Mehta & Gray (2010), Generative and latent mean map kernels, section 4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from genkern.core.arrays.products import mirror
from genkern.core.jit import jit, part
from genkern.core.simd.exponential import exp
from genkern.core.simd.vectors import W, broadcast, load, maximum, multiply_add, store, zero

Floats = NDArray[np.float64]
Ints = NDArray[Any]


class Nearness(NamedTuple):
    """How windows are compared: by the sum of squares of scaled differences, or of their absolute values."""

    scale: float
    absolute: bool


class Words(NamedTuple):
    """Where words begin (P,), how often each occurs (P,), and where those of each of n sequences begin (n + 1,)."""

    starts: Ints
    counts: Floats
    bounds: Ints


def symbol_similarity(members: Any, lam: float) -> Floats:
    """Return the expectation of exp(-λ [a != b]) for the members, CSR (U, m) of 0 and 1, of two codes, (U, U)."""
    sizes = np.asarray(members.sum(axis=1)).ravel()
    common: Floats = (members @ members.T).toarray()
    return -np.expm1(-lam) * (common / sizes / sizes[:, None]) + np.exp(-lam)


def word_means(x: tuple[Ints, Ints], y: tuple[Ints, Ints] | None, k: int, similarity: Floats) -> Floats:
    """Return values (n, n') between sequences of symbols: codes and offsets of x and y; None for x with itself."""
    others = x if y is None else y
    sums = np.zeros((len(x[1]) - 1, len(others[1]) - 1))
    _sum_words(x[0], distinct_words(*x, k), *others, k, similarity, y is None, sums)
    return _divided(sums, x[1], others[1], k, y is None)


def point_means(
    x: tuple[Floats, Ints], y: tuple[Floats, Ints] | None, k: int, lam: float, absolute: bool = False
) -> Floats:
    """Return values (n, n') between series: rows (N, d) and offsets of x and y; None for x with itself.

    With ``absolute``, of the Laplace kernel, whose exponent is -λ times the sum of absolute differences.
    """
    others = x if y is None else y
    sums = np.zeros((len(x[1]) - 1, len(others[1]) - 1))
    with np.errstate(over="ignore"):  # squares that overflow are those of points that are similar to nothing
        nearness = Nearness(lam if absolute else float(np.sqrt(0.5 * lam)), absolute)
        _sum_points(*x, *others, k, nearness, y is None, sums)
    return _divided(sums, x[1], others[1], k, y is None)


def distinct_words(codes: Ints, offsets: Ints, k: int) -> Words:
    """Return the distinct words of every sequence: those that occur again are compared once."""
    counts = np.maximum(np.diff(offsets) - k + 1, 0)
    owners = np.repeat(np.arange(len(counts)), counts)
    if len(owners) == 0:
        return Words(owners, np.zeros(0), np.zeros(len(offsets), np.int64))
    starts = offsets[owners] + np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    spelled = np.column_stack([owners.astype(np.int32), sliding_window_view(codes, k)[starts]])
    _, first, often = np.unique(spelled.view(f"V{spelled[0].nbytes}"), return_index=True, return_counts=True)
    order = np.argsort(first)
    kept = first[order]
    bounds = np.searchsorted(owners[kept], np.arange(len(offsets)))
    return Words(starts[kept], often[order].astype(np.float64), bounds)


def _divided(sums: Floats, offsets: Ints, others: Ints, k: int, half: bool) -> Floats:
    """Return sums over pairs of windows as means; mirrored if only the upper half is there."""
    if half:
        mirror(sums)
    left, right = (np.maximum(np.diff(ends) - k + 1, 1) for ends in (offsets, others))
    return sums / (left[:, None] * right.astype(np.float64))


@jit
def _sum_words(codes, words, others, offsets, k, similarity, half, sums):
    """Set sums (n, n') over all pairs of words, with ``half`` on and above the diagonal only."""
    width = (np.diff(offsets).max() + W - 1) // W * W + k
    rows, total, cells = np.zeros((len(similarity), width)), np.empty(width), np.empty(k, np.int64)
    for j in range(len(offsets) - 1):
        count = offsets[j + 1] - offsets[j] - k + 1
        if count < 1:
            continue
        for code in range(len(similarity)):
            for t in range(count + k - 1):
                rows[code, t] = similarity[code, others[offsets[j] + t]]
        for i in range(j + 1 if half else len(sums)):
            total[:] = 0.0
            for p in range(words.bounds[i], words.bounds[i + 1]):
                for a in range(k):
                    cells[a] = codes[words.starts[p] + a] * width + a
                _add_word(rows, cells, words.counts[p], count, total)
            sums[i, j] = total[:count].sum()


@part
def _add_word(rows, offsets, weight, count, total):
    """Add to total (count,) the similarity of a word, given by offsets into ``rows``, to all words of a sequence."""
    for t in range(0, count, W):
        product = broadcast(weight)
        for offset in offsets:
            product = product * load(rows, offset + t)
        store(total, t, load(total, t) + product)


@jit
def _sum_points(points, ends, others, offsets, k, nearness, half, sums):
    """Set sums (n, n') over all pairs of windows, with ``half`` on and above the diagonal only."""
    d = points.shape[1]
    width = (np.diff(offsets).max() + W - 1) // W * W + k
    columns, total = np.zeros((d, width)), np.empty(width)
    for j in range(len(offsets) - 1):
        count = offsets[j + 1] - offsets[j] - k + 1
        if count < 1:
            continue
        for t in range(count + k - 1):
            for c in range(d):
                columns[c, t] = others[offsets[j] + t, c]
        for i in range(j + 1 if half else len(sums)):
            total[:] = 0.0
            for s in range(ends[i], ends[i + 1] - k + 1):
                if nearness.absolute:
                    _add_absolute(points[s : s + k], columns, nearness.scale, count, total)
                else:
                    _add_window(points[s : s + k], columns, nearness.scale, count, total)
            sums[i, j] = total[:count].sum()


@part
def _add_window(window, columns, scale, count, total):
    """Add to total (count,) the similarity of a window (k, d) to all windows of a sequence."""
    k, d = window.shape
    for t in range(0, count, W):
        square = zero()
        for a in range(k):
            for c in range(d):
                gap = broadcast(scale) * (broadcast(window[a, c]) - load(columns, c * columns.shape[1] + t + a))
                square = multiply_add(gap, gap, square)
        store(total, t, load(total, t) + exp(zero() - square))


@part
def _add_absolute(window, columns, scale, count, total):
    """Add to total (count,) the similarity of a window (k, d), by absolute differences, to all of a sequence."""
    k, d = window.shape
    for t in range(0, count, W):
        apart = zero()
        for a in range(k):
            for c in range(d):
                gap = broadcast(scale) * (broadcast(window[a, c]) - load(columns, c * columns.shape[1] + t + a))
                apart = apart + maximum(gap, zero() - gap)
        store(total, t, load(total, t) + exp(zero() - apart))
