r"""Sums over pairs of weighted points of two objects, of the Gaussian kernel times an inner product of their vectors.

.. math:: K_{ij} = \sum_{s \in i} \sum_{t \in j} e^{-\frac{λ}{2} |x_s - x_t|^2}\, u_s^T u_t

Nothing is held but the result: a value depends on its two objects alone, to the last bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import jit
from genkern.core.simd.exponential import exp
from genkern.core.simd.vectors import W, broadcast, element, horizontal_sum, load, multiply_add, zero

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def gaussian_sums(
    points: Floats, vectors: Floats, offsets: Ints, others: tuple[Floats, Floats, Ints] | None, lam: float
) -> Floats:
    """Return K (n, n') of points (P, d) with vectors (P, k) and others alike; without others, (n, n) and symmetric."""
    left = np.concatenate([points, vectors], axis=1)
    right, ends = (left, offsets) if others is None else (np.concatenate(others[:2], axis=1), others[2])
    columns, starts = _columns(right, ends)
    out = np.zeros((len(offsets) - 1, len(ends) - 1))
    _add_pairs(left, offsets, columns, starts, points.shape[1], -0.5 * float(lam), others is None, out)
    return out if others is not None else np.triu(out) + np.triu(out, 1).T


def own_gaussian_sums(points: Floats, vectors: Floats, offsets: Ints, lam: float) -> Floats:
    """Return the diagonal (n,) of K."""
    rows = np.concatenate([points, vectors], axis=1)
    columns, starts = _columns(rows, offsets)
    out = np.zeros(len(offsets) - 1)
    _add_own(rows, offsets, columns, starts, points.shape[1], -0.5 * float(lam), out)
    return out


def _columns(rows: Floats, ends: Ints) -> tuple[Floats, Ints]:
    """Return the rows (P, q) of each object as q columns, filled up with zeros to whole vectors, and their starts."""
    starts = np.append(0, np.cumsum(-(-np.diff(ends) // W) * W))
    columns = np.zeros(starts[-1] * rows.shape[1])
    _lay_out(rows, ends, starts, columns)
    return columns, starts


@jit
def _lay_out(rows, ends, starts, columns):
    """Write the columns of each object one after the other."""
    q = rows.shape[1]
    for j in range(len(ends) - 1):
        width, base = starts[j + 1] - starts[j], starts[j] * q - ends[j]
        for s in range(ends[j], ends[j + 1]):
            for c in range(q):
                columns[base + c * width + s] = rows[s, c]


@jit
def _add_pairs(left, offsets, columns, starts, d, scale, half, out):
    """Fill in K, with ``half`` on and above the diagonal; left (P, q): d coordinates, then vectors."""
    q = left.shape[1]
    for i in range(out.shape[0]):
        for j in range(i if half else 0, out.shape[1]):
            for s in range(offsets[i], offsets[i + 1]):
                out[i, j] += _add_row(left, s * q, columns, starts[j] * q, starts[j + 1] - starts[j], d, scale)


@jit
def _add_own(rows, offsets, columns, starts, d, scale, out):
    """Fill in the diagonal of K."""
    q = rows.shape[1]
    for i in range(len(out)):
        for s in range(offsets[i], offsets[i + 1]):
            out[i] += _add_row(rows, s * q, columns, starts[i] * q, starts[i + 1] - starts[i], d, scale)


@jit
def _add_row(left, row, columns, base, width, d, scale):
    """Return the sum over the points of one object of their pairs with the point whose entries begin at ``row``."""
    sums = zero()
    for t in range(base, base + width, W):
        distance, weight = zero(), zero()
        for c in range(d):
            gap = broadcast(element(left, row + c)) - load(columns, t + c * width)
            distance = multiply_add(gap, gap, distance)
        for c in range(d, left.shape[1]):
            weight = multiply_add(broadcast(element(left, row + c)), load(columns, t + c * width), weight)
        sums = multiply_add(exp(broadcast(scale) * distance), weight, sums)
    return horizontal_sum(sums)
