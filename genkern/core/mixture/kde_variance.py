r"""The variance of kernel density estimates by cross-validation, for many bags of points.

.. math:: CV(h) = \sum_{ab} w_a w_b N(x_a - x_b; 0, 2hI)
   - 2 \sum_a w_a \sum_{b \ne a} \frac{w_b}{1 - w_a} N(x_a - x_b; 0, hI),
   \qquad L(h) = -\sum_a w_a \log \sum_{b \ne a} \frac{w_b}{1 - w_a} N(x_a - x_b; 0, hI)

for least squares and for likelihood. Points of a bag are distinct; w are their shares of its draws. Squared distances
are computed once per bag, if they are not too many to keep; each value of a criterion then costs one exponential per
pair: the other of least squares is its square. Least squares take each pair once, likelihood in both orders.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import jit, part
from genkern.core.simd.exponential import exp
from genkern.core.simd.vectors import W, broadcast, horizontal_sum, load, multiply_add, store, zero

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STORED = 1 << 21  # squared distances that are kept; more are computed anew for every variance
PER_DECADE, STEPS = 6, 24  # of the search over variances: grid points, and steps of the golden section
RANGE = (1e-3, 10.0)  # of variances by least squares, in units of the scale given
LIKELY = (1e-2, 10.0)  # of variances by likelihood
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


class Bag(NamedTuple):
    """Distinct points (d, V), their weights w and w / (1 - w) (V,), squared distances (size or 1, V), and the size.

    ``nearest`` (V,) are squared distances to the nearest other point, if the criterion is the likelihood; else none.
    """

    points: Floats
    weights: Floats
    odds: Floats
    squares: Floats
    size: int
    nearest: Floats


def cross_validated(points: Floats, weights: Floats, offsets: Ints, scales: Floats, rule: str) -> tuple[Floats, Ints]:
    """Return the variance (n_objects,) of each bag that minimises a criterion over a range of multiples of its scale.

    The rule is "lscv" (``_least_squares`` over ``RANGE``) or "likelihood" (``_likelihood`` over ``LIKELY``). ``points``
    (N, d) of a bag are distinct, ``weights`` (N,) sum to one in each bag of two points at least. Also returned is where
    the search ended: at its lower bound (-1), within (0), or at its upper one (1).
    """
    low, high = np.log(LIKELY if rule == "likelihood" else RANGE)
    logs = np.empty(len(scales))
    _cross_validated(points, weights, offsets, scales, (low, high, rule == "likelihood"), logs)
    return scales * np.exp(logs), (logs == high).astype(np.int64) - (logs == low)


@jit
def _cross_validated(points, weights, offsets, scales, search, out):
    """Fill out (n_objects,) with the logarithms of multiples of the scales."""
    low, high, likely = search
    for i in range(len(scales)):
        bag = _bag(points[offsets[i] : offsets[i + 1]], weights[offsets[i] : offsets[i + 1]], likely)
        out[i] = _minimum(bag, scales[i], low, high)


@jit
def _bag(points, weights, likely):
    """Return points (size, d) and weights as a Bag, with all squared distances if they are not too many."""
    size, d = points.shape
    width = -(-size // W) * W
    bag = Bag(
        np.zeros((d, width)),
        np.zeros(width),
        np.zeros(width),
        np.empty((size if size * width <= STORED else 1, width)),
        size,
        np.empty(width if likely else 0),
    )
    for a in range(size):
        bag.points[:, a] = points[a]
        bag.weights[a] = weights[a]
        bag.odds[a] = weights[a] / (1.0 - weights[a])
    for a in range(size if likely or len(bag.squares) == size else 0):
        row = a if len(bag.squares) == size else 0
        _squares(bag, a, row)
        if likely:
            bag.nearest[a] = bag.squares[row].min()
    return bag


@part
def _squares(bag, a, row):
    """Fill a row with squared distances from point a to those of its own vector and after; inf to itself.

    For likelihood it is to all points, and inf where there is none.
    """
    d, width = bag.points.shape
    for b in range(0 if len(bag.nearest) else a // W * W, width, W):
        square = zero()
        for j in range(d):
            gap = broadcast(bag.points[j, a]) - load(bag.points, j * width + b)
            square = multiply_add(gap, gap, square)
        store(bag.squares, row * width + b, square)
    bag.squares[row, a] = np.inf
    if len(bag.nearest):
        bag.squares[row, bag.size :] = np.inf


@jit
def _minimum(bag, scale, low, high):
    """Return log h at the minimum of the objective: the best of a grid, then golden section beside it."""
    count = round(PER_DECADE * (high - low) / math.log(10.0))
    step = (high - low) / count
    values = np.empty(count + 1)
    for k in range(count + 1):
        values[k] = _objective(bag, scale, low + k * step)
    best = np.argmin(values)
    left, middle, right = low + max(best - 1, 0) * step, low + best * step, low + min(best + 1, count) * step
    middle = high if best == count else middle
    lowest = values[best]
    for _ in range(STEPS):
        upper = right - middle > middle - left
        log_h = middle + (1.0 - GOLDEN) * ((right if upper else left) - middle)
        value = _objective(bag, scale, log_h)
        if value < lowest:
            left, right = (middle, right) if upper else (left, middle)
            middle, lowest = log_h, value
        elif upper:
            right = log_h
        else:
            left = log_h
    return middle


@jit
def _objective(bag, scale, log_h):
    """Return the criterion that is to be made small."""
    return _likelihood(bag, scale, log_h) if len(bag.nearest) else _least_squares(bag, scale, log_h)


@part
def _likelihood(bag, scale, log_h):
    r"""Return :math:`\frac d2 \log h - \sum_a w_a \log \sum_{b \ne a} w_b e^{-|x_a - x_b|^2 / 2 h s} / (1 - w_a)`.

    With the scale s it is the criterion but for a constant. Exponentials are relative to that of the nearest point.
    """
    width = len(bag.weights)
    half = -0.5 / (math.exp(log_h) * scale)
    total = 0.5 * len(bag.points) * log_h
    for a in range(bag.size):
        row = a
        if len(bag.squares) < bag.size:
            row = 0
            _squares(bag, a, row)
        nearest, factor, sums = broadcast(bag.nearest[a]), broadcast(half), zero()
        for b in range(0, width, W):
            e = exp((load(bag.squares, row * width + b) - nearest) * factor)
            sums = multiply_add(load(bag.weights, b), e, sums)
        weight = bag.weights[a]
        total -= weight * (math.log(horizontal_sum(sums) / (1.0 - weight)) + half * bag.nearest[a])
    return total


@part
def _least_squares(bag, scale, log_h):
    r"""Return :math:`h^{-d/2} (\sum_{ab} w_a w_b e_{ab} - 2^{d/2} 2 \sum_{a \ne b} w_a w_b e_{ab}^2 / (1 - w_a))`.

    With :math:`e = \exp(-|x_a - x_b|^2 / 4 h s)` and s the scale it is the criterion times :math:`(4 \pi s)^{d/2}`.
    A pair is met once and counted twice, except in the vector of its own point, where both orders are met.
    """
    h = math.exp(log_h)
    width = len(bag.weights)
    factor = broadcast(-0.25 / (h * scale))
    first, second = zero(), zero()
    squared_weights = 0.0
    for a in range(bag.size):
        row = a
        if len(bag.squares) < bag.size:
            row = 0
            _squares(bag, a, row)
        near, nearer, odds = zero(), zero(), zero()
        times = broadcast(1.0)
        for b in range(a // W * W, width, W):
            e = exp(load(bag.squares, row * width + b) * factor)
            once = e * times
            near = multiply_add(load(bag.weights, b), once, near)
            nearer = multiply_add(load(bag.weights, b), once * e, nearer)
            odds = multiply_add(load(bag.odds, b), once * e, odds)
            times = broadcast(2.0)
        weight = bag.weights[a]
        squared_weights += weight * weight
        first = multiply_add(broadcast(weight), near, first)
        second = multiply_add(broadcast(bag.odds[a]), nearer, multiply_add(broadcast(weight), odds, second))
    d = len(bag.points)
    wide = squared_weights + horizontal_sum(first)
    return h ** (-0.5 * d) * (wide - 2.0 ** (0.5 * d) * horizontal_sum(second))
