r"""Pairs of Gaussians with full covariances, eight at a time: determinants and distances of sums of covariances.

One lane of a vector belongs to one Gaussian of the right side; that of the left is the same in all lanes. The sum V of
both covariances is factorised as :math:`L D L^T`, with the difference of the means as one more row, which leaves
:math:`L^{-1} \delta` there.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.hmm.rows import aligned
from genkern.core.jit import jit, part
from genkern.core.simd.shuffle import exponent, inverse_power
from genkern.core.simd.vectors import W, broadcast, less, load, multiply_add, select, store, zero

Floats = NDArray[np.float64]

EPS = float(np.finfo(float).eps)
LOG_2 = math.log(2.0)


class GaussianLanes(NamedTuple):
    """Means (B, d, 8) and lower triangles (B, d (d + 1) / 2, 8) of covariances, eight Gaussians side by side."""

    mean: Floats
    cov: Floats


def lanes_of(mean: Floats, cov: Floats) -> GaussianLanes:
    """Return the layout of means (n, d) and covariances (n, d, d); the last group is filled up with its last member."""
    n, d = mean.shape
    groups = -(-n // W)
    order = np.minimum(np.arange(groups * W), n - 1)
    rows, columns = np.tril_indices(d)
    triangles = cov[order][:, rows, columns]
    return GaussianLanes(
        np.ascontiguousarray(mean[order].reshape(groups, W, d).transpose(0, 2, 1)),
        np.ascontiguousarray(triangles.reshape(groups, W, -1).transpose(0, 2, 1)),
    )


def pair_terms(mean: Floats, cov: Floats, right: GaussianLanes, ridge: float, scale: float) -> tuple[Floats, Floats]:
    """Return log |V| and delta^T V^-1 delta, (a, 8 B), V = ridge I + scale (cov + cov'); NaN where V is singular."""
    a, d = mean.shape
    width = len(right.mean) * W
    log_det, square = np.empty((a, width)), np.empty((a, width))
    rows, columns = np.tril_indices(d)
    triangles = np.ascontiguousarray(cov[:, rows, columns])
    buffer = aligned((2 * (d + 1) * d + d + 3) * W)
    _pair_terms(np.array(mean), triangles, right, (ridge, scale), buffer, (log_det, square))
    return log_det, square


@jit
def _pair_terms(mean, triangles, right, spread, buffer, out):
    """Fill both tables, eight pairs at a time."""
    groups, d, _ = right.mean.shape
    log_det, square = out
    end = (2 * (d + 1) * d + d) * W  # where the results of eight pairs are left
    for i in range(len(mean)):
        for group in range(groups):
            _enter(mean[i], triangles[i], right, group, spread, buffer)
            _factorise(buffer, d)
            for lane in range(W):
                j, regular = group * W + lane, buffer[end + 2 * W + lane] > 0.0
                mantissa, power = buffer[end + lane], buffer[end + W + lane]
                log_det[i, j] = math.log(mantissa) + power * LOG_2 if regular else np.nan
            store(square, i * groups * W + group * W, load(buffer, (2 * (d + 1) * d) * W))


@part
def _enter(mean, triangle, right, group, spread, buffer):
    """Write V, (d + 1, d), whose last row is the difference of the means, into the buffer."""
    ridge, scale = spread
    d = len(mean)
    size = len(triangle)
    offset = 0
    for i in range(d):
        for j in range(i + 1):
            own = broadcast(triangle[offset]) + load(right.cov, (group * size + offset) * W)
            value = broadcast(scale) * own
            store(buffer, (i * d + j) * W, value + broadcast(ridge) if i == j else value)
            offset += 1
        gap = broadcast(mean[i]) - load(right.mean, (group * d + i) * W)
        store(buffer, (d * d + i) * W, gap)


@part
def _factorise(buffer, d):
    """Replace V by L, and leave delta^T V^-1 delta, mantissa and exponent of |V|, and one or zero if regular or not.

    The second (d + 1, d) numbers are L D, and the d after them 1 / D; the first of these is used again for the result.
    """
    other, inverse = (d + 1) * d * W, 2 * (d + 1) * d * W
    one = broadcast(1.0)
    mantissa, power, regular = one, zero(), one
    for i in range(d + 1):
        for j in range(min(i + 1, d)):
            total = load(buffer, (i * d + j) * W)
            whole = broadcast(EPS * d) * total
            for k in range(j):
                total = total - load(buffer, other + (i * d + k) * W) * load(buffer, (j * d + k) * W)
            if i == j:
                fine = less(whole, total)
                regular = select(fine, regular, zero())
                pivot = select(fine, total, one)
                mantissa = mantissa * (pivot * inverse_power(pivot))
                power = power + exponent(pivot)
                store(buffer, inverse + j * W, one / pivot)
            else:
                store(buffer, other + (i * d + j) * W, total)
                store(buffer, (i * d + j) * W, total * load(buffer, inverse + j * W))
    square = zero()
    for j in range(d):
        square = multiply_add(load(buffer, other + (d * d + j) * W), load(buffer, (d * d + j) * W), square)
    store(buffer, inverse, square)
    end = inverse + d * W
    store(buffer, end, mantissa)
    store(buffer, end + W, power)
    store(buffer, end + 2 * W, regular)
