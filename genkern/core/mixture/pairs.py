r"""Kernel values between mixtures from those between their components, of Gaussians and of sets of points directly.

With :math:`V = r I + c (\Sigma_k + \Sigma'_l)` of components with diagonal covariances, a value between two mixtures is

.. math:: \log \sum_{kl} e^{a_k + b_l} |V|^{-1/2} e^{-\frac w2 \delta^T V^{-1} \delta}, \quad \delta = \mu_k - \mu'_l

The logarithm is taken once: :math:`|V| = 2^e m` with :math:`1 \le m < 2`, of which e goes into the exponent and
:math:`m^{-1/2}` is a factor. Exponents are relative to the largest so far. A lane belongs to one mixture of the right
side; that of the left is the same in all lanes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.hmm.rows import aligned
from genkern.core.jit import jit, kernel, part
from genkern.core.simd.exponential import exp, two_to
from genkern.core.simd.shuffle import exponent, inverse_power
from genkern.core.simd.vectors import (
    W,
    broadcast,
    element,
    horizontal_sum,
    load,
    maximum,
    multiply_add,
    square_root,
    store,
    zero,
)

Floats = NDArray[np.float64]

LOG_2 = math.log(2.0)
LEAST = -1e300  # an exponent from which -inf may be taken
SAFE = 1e-250  # sums above it have lost nothing to underflow


class Normals(NamedTuple):
    """Mixtures of k Gaussians: mean and variances G + (a, k, d), and what is added to each logarithm, G + (a, k)."""

    mean: Floats
    var: Floats
    logs: Floats


class Sets(NamedTuple):
    """Sets of K weighted points: coordinates G + (a, K, d), and logarithms of weights G + (a, K), none positive."""

    points: Floats
    logs: Floats


class Columns(NamedTuple):
    """Points of all sets of the right side of G groups, (G, d, N), logs to base 2 (G, N), and K of each set.

    N is padded to pairs of vectors by points without weight.
    """

    points: Floats
    logs: Floats
    size: int


class ColumnsWorkspace(NamedTuple):
    """Two vectors of terms of each point of the left, (2 V K,); and of each of the right (N,)."""

    terms: Floats
    by: Floats
    sums: Floats
    shifted: Floats
    tops: Floats


def log_sums(logs: Floats, left: Floats, right: Floats) -> Floats:
    """Return log sum_kl exp(logs[i, k, j, l] + left[i, k] + right[j, l]), (a, b), for logs (a, k, b, l)."""
    out = np.empty((logs.shape[0], logs.shape[2]))
    _log_sums(logs, left, right, out)
    return out


def set_sums(left: Sets, right: Sets, scale: Floats) -> Floats:
    """Return log sum_st w_s v_t exp(-scale[i, j] |x_s - y_t|^2), G + (a, b), for sets G + (a,) and G + (b,)."""
    *batch, a, count, d = left.points.shape
    (b, k), g = right.logs.shape[-2:], math.prod(batch)
    width = -(-(b * k) // (2 * W)) * 2 * W
    points, logs = aligned(g * d * width).reshape(g, d, width), np.full((g, width), -np.inf)
    points[..., : b * k] = np.swapaxes(right.points.reshape(g, b * k, d), 1, 2)
    logs[:, : b * k] = right.logs.reshape(g, b * k) / LOG_2
    rows = np.ascontiguousarray(np.swapaxes(left.points.reshape(g * a, count, d), 1, 2))
    own = Sets(rows, left.logs.reshape(g * a, count) / LOG_2)
    work = ColumnsWorkspace(aligned(2 * count * W), *(aligned(width) for _ in range(4)))
    out = np.empty((g * a, b))
    _set_sums(own, Columns(points, logs, k), scale.reshape(g * a, b) / -LOG_2, work, out)
    return out.reshape(*batch, a, b)


def normal_sums(left: Normals, right: Normals, ridge: float, scale: float, weight: float) -> Floats:
    """Return values G + (a, b) of mixtures G + (a,) and G + (b,); no entry of V may be near the ends of the range."""
    *batch, a, k, _ = left.mean.shape
    b, m = right.logs.shape[-2:]
    groups, g = -(-b // W), math.prod(batch)
    order = np.minimum(np.arange(groups * W), b - 1)
    own = Normals(*(np.ascontiguousarray(part).reshape(g * a, k, -1) for part in left))
    lanes = (part.reshape(g, b, -1)[:, order].reshape(g * groups, W, -1) for part in right)
    other = Normals(*(np.ascontiguousarray(part.transpose(0, 2, 1)) for part in lanes))
    out = np.empty((g * a, groups * W))
    _normal_sums(own, other, (groups, m), (ridge, scale, -0.5 * weight), np.empty(2 * m * W), out)
    return out.reshape(*batch, a, -1)[..., :b]


@jit
def _log_sums(logs, left, right, out):
    """Write log sum_kl exp(logs[i, k, j, l] + left[i, k] + right[j, l]) to out (a, b), for logs (a, k, b, l)."""
    a, k, b, l = logs.shape  # noqa: E741
    terms = np.full(-(-(k * l) // W) * W, -np.inf)
    for i in range(a):
        for j in range(b):
            for s in range(k):
                for t in range(l):
                    terms[s * l + t] = logs[i, s, j, t] + (left[i, s] + right[j, t])
            out[i, j] = _log_sum(terms, len(terms))


@jit
def _normal_sums(left, right, shape, spread, buffer, out):
    """Write values (G a, 8 groups) of mixtures (G a, k, d) and (G groups, m d, 8): sums over k, then over m."""
    (groups, m), (rows, k, d) = shape, left.mean.shape
    a = rows // (len(right.mean) // groups)
    ridge, scale, half = broadcast(spread[0]), broadcast(spread[1]), broadcast(spread[2])
    one, halved = broadcast(1.0), broadcast(-0.5 * LOG_2)
    for i in range(rows):
        for j in range(groups):
            g = i // a * groups + j
            top, total = broadcast(LEAST), zero()
            for s in range(k):
                best = top
                for t in range(m):
                    square, power, product = zero(), zero(), one
                    for c in range(d):
                        own, other = (i * k + s) * d + c, ((g * m + t) * d + c) * W
                        v = multiply_add(scale, broadcast(element(left.var, own)) + load(right.var, other), ridge)
                        gap = broadcast(element(left.mean, own)) - load(right.mean, other)
                        square = multiply_add(gap, gap / v, square)
                        product = product * v
                        power = power + exponent(product)
                        product = product * inverse_power(product)
                    known = broadcast(element(left.logs, i * k + s)) + load(right.logs, (g * m + t) * W)
                    value = multiply_add(halved, power, multiply_add(half, square, known))
                    best = maximum(best, value)
                    store(buffer, t * W, value)
                    store(buffer, (m + t) * W, one / square_root(product))
                total = total * exp(top - best)
                for t in range(m):
                    total = multiply_add(exp(load(buffer, t * W) - best), load(buffer, (m + t) * W), total)
                top = best
            store(buffer, 0, top)
            store(out, (i * groups + j) * W, total)
            for lane in range(W):
                out[i, j * W + lane] = buffer[lane] + math.log(out[i, j * W + lane])


@kernel
def _set_sums(left, right, scale, work, out):
    """Write the logs (G a, b); a set of the right is a part of the columns, and what a column has depends on it only.

    Terms are powers of two, of which those below 1e-307 count as that. Sums that are not far above are computed again.
    """
    rows, b = out.shape
    size, (groups, _, width), end = right.size, right.points.shape, len(work.terms) // 2
    for i in range(rows):
        g = i // (rows // groups)
        for j in range(b):
            for k in range(size):
                work.by[j * size + k] = scale[i, j]
        for t in range(0, width, 2 * W):
            _fill_terms(left, right, i, g, t, work)
            first, second = zero(), zero()
            for s in range(0, end, W):
                first = first + two_to(load(work.terms, s))
                second = second + two_to(load(work.terms, end + s))
            store(work.sums, t, first)
            store(work.sums, t + W, second)
        for j in range(b):
            total = 0.0
            for k in range(size):
                total += work.sums[j * size + k]
            out[i, j] = math.log(total) if total > SAFE else _small_sum(left, right, i, g, j, work)


@part
def _fill_terms(left, right, i, g, t, work):
    """Fill the terms, to base 2, of sixteen points of the right with all of set i of the left, two at a time."""
    _, d, size = left.points.shape
    width = right.points.shape[2]
    for s in range(0, size, 2):
        e = min(s + 1, size - 1) - s  # where the second is missing it is the first again
        s0, s1, s2, s3 = zero(), zero(), zero(), zero()
        here, there = i * d * size + s, g * d * width + t
        for _ in range(d):
            one, two = load(right.points, there), load(right.points, there + W)
            own = broadcast(element(left.points, here))
            gap, far = own - one, own - two
            s0, s1 = multiply_add(gap, gap, s0), multiply_add(far, far, s1)
            own = broadcast(element(left.points, here + e))
            gap, far = own - one, own - two
            s2, s3 = multiply_add(gap, gap, s2), multiply_add(far, far, s3)
            here, there = here + size, there + width
        one, two = load(right.logs, g * width + t), load(right.logs, g * width + t + W)
        weight = broadcast(element(left.logs, i * size + s))
        store(work.terms, s * W, multiply_add(load(work.by, t), s0, one + weight))
        store(work.terms, (size + s) * W, multiply_add(load(work.by, t + W), s1, two + weight))
        weight = broadcast(element(left.logs, i * size + s + e))
        store(work.terms, (s + e) * W, multiply_add(load(work.by, t), s2, one + weight))
        store(work.terms, (size + s + e) * W, multiply_add(load(work.by, t + W), s3, two + weight))


@part
def _small_sum(left, right, i, g, j, work):
    """Return one of the logs where terms are near the end of the range or beyond: relative to the largest."""
    first, end, best = j * right.size, (j + 1) * right.size, LEAST
    for t in range(first // (2 * W) * 2 * W, end, 2 * W):
        _fill_terms(left, right, i, g, t, work)
        for half in range(2):
            top, total, low = broadcast(LEAST), zero(), half * (len(work.terms) // 2)
            for s in range(low, low + len(work.terms) // 2, W):
                top = maximum(top, load(work.terms, s))
            for s in range(low, low + len(work.terms) // 2, W):
                total = total + two_to(load(work.terms, s) - top)
            store(work.tops, t + half * W, top)
            store(work.shifted, t + half * W, total)
    for t in range(first, end):
        best = max(best, work.tops[t])
    if best == LEAST:
        return -np.inf
    whole = 0.0
    for t in range(first, end):
        whole += work.shifted[t] * math.exp((work.tops[t] - best) * LOG_2)
    return best * LOG_2 + math.log(whole)


@jit
def _log_sum(terms, size):
    """Return the log of the sum of exponentials of whole vectors; -inf if all are."""
    best = load(terms, 0)
    for t in range(W, size, W):
        best = maximum(best, load(terms, t))
    lanes = np.empty(W)
    store(lanes, 0, best)
    top = lanes.max()
    if top == -np.inf:
        return top
    shift, total = broadcast(top), zero()
    for t in range(0, size, W):
        total = total + exp(load(terms, t) - shift)
    return top + math.log(horizontal_sum(total))
