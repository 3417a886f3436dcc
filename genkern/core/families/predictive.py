"""Integrals and sums of products of powers of predictive distributions: counts, rows of counts, Student's t."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import jit

MOST_SIZE = 1e15  # beyond which x and x + 1 are the same number
MOST_TERMS = 1e8  # of a sum: some seconds
SMALL = 1e-18  # a term below this part of the sum does not change it
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
Floats = NDArray[np.float64]


class Students(NamedTuple):
    """Univariate t distributions (N,): means, scales (not squared), degrees of freedom."""

    mean: Floats
    scale: Floats
    df: Floats


@jit
def count_sums(size: Floats, size2: Floats, log_fail: Floats, power: float) -> tuple[Floats, Floats]:
    """Return the place x (N,) of the largest term of sums over counts, and the logs (N,) of the sums over that term.

    Terms are ((r)_x (r')_x / (x!)^2 exp(log_fail)^x)^power, r = size, r' = size2, log_fail < 0 that of both together.
    Where they are too many to be added, the sum is infinite.
    """
    places, logs = np.zeros(len(size)), np.zeros(len(size))
    for i in range(len(size)):
        a, b, rate = size[i], size2[i], math.exp(log_fail[i])
        if rate == 0.0:
            continue
        if a + b > MOST_SIZE:
            logs[i] = np.inf
            continue
        # The largest x with (x - 1 + a) (x - 1 + b) rate >= x^2, where terms stop growing.
        lead, half = -math.expm1(log_fail[i]), 0.5 * rate * (a + b - 2.0)
        square = half * half + lead * rate * (a - 1.0) * (b - 1.0)
        peak = max(0.0, math.floor((half + math.sqrt(square)) / lead)) if square > 0.0 and lead > 0.0 else 0.0
        # Ten standard deviations of the logarithm's parabola at the peak, and forty times the scale of its exponential.
        bend = 2.0 / (peak + 1.0) - 1.0 / (peak + a) - 1.0 / (peak + b)
        wide = 10.0 / math.sqrt(power * bend) if bend > 0.0 else 0.0
        if lead == 0.0 or wide + 40.0 / (-power * log_fail[i]) > MOST_TERMS:
            places[i], logs[i] = peak, np.inf
            continue
        limit = math.exp(power * log_fail[i])
        total, term, x, ratio = 1.0, 1.0, peak, 0.0
        while True:  # upwards, until what is left is bounded by a geometric series
            ratio = math.exp(power * (math.log((x + a) / (x + 1.0)) + math.log((x + b) / (x + 1.0)) + log_fail[i]))
            term *= ratio
            total += term
            x += 1.0
            bound = max(ratio, limit)
            if bound < 1.0 and term * bound < SMALL * total * (1.0 - bound):
                break
        term, x = 1.0, peak
        while x > 0.0 and term > SMALL * total:
            term *= math.exp(power * (math.log(x / (x - 1.0 + a)) + math.log(x / (x - 1.0 + b)) - log_fail[i]))
            total += term
            x -= 1.0
        places[i], logs[i] = peak, math.log(total)
    return places, logs


@jit
def log_row_sums(alpha: Floats, alpha2: Floats, total: int, power: float, orders: float) -> Floats:
    """Return log [z^s] prod_d sum_x ((a_d)_x (a'_d)_x)^power / (x!)^orders z^x, s = total, of pairs (N, m), (N,).

    In O(m s^2) for each pair, by convolutions of logarithms.
    """
    n, m = alpha.shape
    out, terms, logs = np.empty(n), np.empty(total + 1), np.empty(total + 1)
    for i in range(n):
        logs[:] = -np.inf
        logs[0] = 0.0
        for d in range(m):
            terms[0] = 0.0
            for x in range(total):
                rise = power * (math.log(alpha[i, d] + x) + math.log(alpha2[i, d] + x))
                terms[x + 1] = terms[x] + rise - orders * math.log(x + 1.0)
            for s in range(total, -1, -1):
                top = -np.inf
                for x in range(s + 1):
                    top = max(top, logs[s - x] + terms[x])
                if top == -np.inf:
                    continue
                mass = 0.0
                for x in range(s + 1):
                    mass += math.exp(logs[s - x] + terms[x] - top)
                logs[s] = top + math.log(mass)
        out[i] = logs[total]
    return out


@jit
def _log_kernel(x: float, first: Any, second: Any, i: int) -> float:
    """Return log (1 + z^2 / df)^(-(df + 1) / 2) of both at x, without their factors."""
    left = (x - first.mean[i]) / first.scale[i]
    right = (x - second.mean[i]) / second.scale[i]
    return -0.5 * (
        (first.df[i] + 1.0) * math.log1p(left * left / first.df[i])
        + (second.df[i] + 1.0) * math.log1p(right * right / second.df[i])
    )


@jit
def _width(x: float, first: Any, second: Any, i: int) -> float:
    """Return the smaller of the lengths over which the logarithms of both densities bend at x."""
    left, right = (x - first.mean[i]) / first.scale[i], (x - second.mean[i]) / second.scale[i]
    return min(
        first.scale[i] * math.sqrt((first.df[i] + left * left) / (first.df[i] + 1.0)),
        second.scale[i] * math.sqrt((second.df[i] + right * right) / (second.df[i] + 1.0)),
    )


@jit
def student_integrals(first: Any, second: Any, power: float, nodes: Floats, weights: Floats) -> Floats:
    """Return logs (N,) of the integrals of (f g)^power, f and g without their factors; power (df + df' + 2) > 1.

    By Gauss's rule on panels as wide as the sharper density bends there, outwards until the tail is negligible.
    """
    out = np.empty(len(first.mean))
    for i in range(len(out)):
        fall = power * (first.df[i] + second.df[i] + 2.0) - 1.0
        low = min(first.mean[i], second.mean[i])
        high = max(first.mean[i], second.mean[i])
        top, total = power * _log_kernel(low, first, second, i), 0.0
        for side in (1.0, -1.0):
            x = low
            while True:
                step = side * _width(x, first, second, i)
                for node, weight in zip(nodes, weights):
                    log = power * _log_kernel(x + 0.5 * step * (node + 1.0), first, second, i)
                    if log > top:
                        total *= math.exp(top - log)
                        top = log
                    total += 0.5 * abs(step) * weight * math.exp(log - top)
                x += step
                beyond = x - high if side > 0 else low - x
                rest = math.exp(power * _log_kernel(x, first, second, i) - top)
                # Far out the integrand falls as a power of the distance, or faster.
                if beyond > 0.0 and rest * (beyond + abs(step)) < SMALL * min(fall, 1.0) * total * 10.0:
                    break
        out[i] = top + math.log(total)
    return out
