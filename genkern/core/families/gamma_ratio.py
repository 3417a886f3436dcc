r"""Differences of log Gamma and its derivatives at a and at a + x, with all their digits also where a is large.

Subtracted as they stand, :math:`\log\Gamma(a + x) - \log\Gamma(a)` loses as many digits as a has. By Stirling's series

.. math:: \log\Gamma(a) = (a - \tfrac12) \log a - a + \tfrac12 \log 2\pi + \delta(a), \qquad
   \delta(a) = \frac{1}{12 a} - \frac{1}{360 a^3} + \dots

only logarithms of ratios are left. All functions take arrays that broadcast, a > 0 and x >= 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln, xlogy, zeta

Floats = NDArray[np.float64]

LARGE = 20.0  # from here on, six terms of the asymptotic series are right to the last bit
LOWEST, HIGHEST = -0.3, 0.5  # between them a series gives log(1 + u) - u with all digits


def log_gamma_excess(a: ArrayLike, x: ArrayLike) -> Floats:
    r"""Return :math:`\log\Gamma(a + x) - \log\Gamma(a) - x \log a`, which vanishes like :math:`x (x - 1) / 2a`.

    The error is a few units in the last place of x, or of the result where that is larger.
    """
    base, step = _both(a, x)
    large = np.maximum(base, LARGE)
    with np.errstate(over="ignore"):  # of ratios by tiny a, which the other branch takes
        moved = (large + step - 0.5) * np.log1p(step / large) - step + (_remainder(large + step) - _remainder(large))
    plain = gammaln(base + step) - gammaln(base) - step * np.log(base)
    return np.where(base < LARGE, plain, moved)


def digamma_rise(a: ArrayLike, x: ArrayLike) -> Floats:
    r"""Return :math:`\psi(a + x) - \psi(a)`, about x / a for large a."""
    base, step = _both(a, x)
    large = np.maximum(base, LARGE)
    moved = np.log1p(step / large) + 0.5 * step / large / (large + step) + _series(large) - _series(large + step)
    return np.where(base < LARGE, digamma(base + step) - digamma(base), moved)


def digamma_excess(a: ArrayLike, x: ArrayLike) -> Floats:
    r"""Return :math:`\psi(a + x) - \psi(a) - x / a`, about :math:`x (1 - x) / 2a^2` for large a."""
    base, step = _both(a, x)
    large = np.maximum(base, LARGE)
    moved = log1p_minus(step / large) + 0.5 * step / large / (large + step) + _series(large) - _series(large + step)
    return np.where(base < LARGE, digamma(base + step) - digamma(base) - step / base, moved)


def freedom_information(a: float, b: ArrayLike) -> Floats:
    r"""Return :math:`b^2 [\psi'(b) - \psi'(a + b) - \frac{2a}{b(a + b)} + \frac{a}{b(a + b + 1)}]`.

    It is about a(a + 3) / 2b^2 for large b: then what the terms of the bracket have in common is taken out before they
    are added.
    """
    base = np.asarray(b, np.float64)
    large = np.maximum(base, LARGE)
    end = a + large
    cubes = a / large / end * (large / end + 1.0 + end / large) / 6.0  # of 1 / 6b^3 - 1 / 6(a + b)^3
    fifths = large * end * (_slope(large) - _slope(end))
    shared = 0.5 * (a / large) * (a + (2.0 * large + a) / end) / (end + 1.0)
    end = a + base
    plain = base**2 * (zeta(2.0, base + 1.0) - zeta(2.0, end)) + a * base * (1.0 / (end + 1.0) - 2.0 / end)
    return np.where(base < LARGE, 1.0 + plain, (shared + cubes + fifths) * (large / (a + large)))


def log1p_minus(u: ArrayLike) -> Floats:
    """Return log(1 + u) - u for u > -1, near zero by the series of the inverse hyperbolic tangent."""
    v = np.asarray(u, np.float64)
    near = (v >= LOWEST) & (v <= HIGHEST)
    small = np.where(near, v, 0.0)
    r = small / (2.0 + small)
    square, tail = r * r, np.zeros_like(r)
    for k in range(27, 1, -2):
        tail = square * (1.0 / k + tail)
    return np.where(near, 2.0 * r * tail - small * r, np.log1p(v) - v)


def log_gap(u: ArrayLike, ratio: ArrayLike) -> Floats:
    """Return log(r) - (r - 1) of ratios r, given u = r - 1 without cancellation."""
    v = np.asarray(u, np.float64)
    near = (v >= LOWEST) & (v <= HIGHEST)
    return np.where(near, log1p_minus(np.where(near, v, 0.0)), np.log(np.where(near, 1.0, ratio)) - v)


def deviance(k: ArrayLike, m: ArrayLike, gap: ArrayLike) -> Floats:
    """Return k log(k / m) - k + m >= 0 for k >= 0 and m > 0, given their difference k - m with all its digits."""
    found, expected = _both(k, m)
    share = np.asarray(gap, np.float64) / expected
    near = (share >= LOWEST) & (share <= HIGHEST)
    small = np.where(near, share, 0.0)
    close = expected * (small * small + (1.0 + small) * log1p_minus(small))
    return np.where(near, close, xlogy(found, found / expected) - found + expected)


def stirling_rest(a: ArrayLike) -> Floats:
    r"""Return :math:`\delta(a)`, what Stirling's formula for log Gamma(a) lacks, about 1 / 12a."""
    base = np.asarray(a, np.float64)
    small = np.minimum(base, LARGE)
    plain = gammaln(small) - (small - 0.5) * np.log(small) + small - 0.5 * np.log(2.0 * np.pi)
    return np.where(base < LARGE, plain, _remainder(np.maximum(base, LARGE)))


def _both(a: ArrayLike, x: ArrayLike) -> tuple[Floats, Floats]:
    base, step = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
    return base, step


def _remainder(a: Floats) -> Floats:
    """Return the rest of Stirling's series, 1 / 12a - ..."""
    u = 1.0 / a
    v = u * u
    return u * (1 / 12 - v * (1 / 360 - v * (1 / 1260 - v * (1 / 1680 - v * (1 / 1188 - v * (691 / 360360))))))


def _series(a: Floats) -> Floats:
    """Return log a - digamma(a) - 1 / 2a = 1 / 12a^2 - ..."""
    v = 1.0 / a / a
    return v * (1 / 12 - v * (1 / 120 - v * (1 / 252 - v * (1 / 240 - v * (1 / 132 - v * (691 / 32760))))))


def _slope(a: Floats) -> Floats:
    """Return trigamma(a) - 1 / a - 1 / 2a^2 - 1 / 6a^3 = -1 / 30a^5 + ..."""
    u = 1.0 / a
    v = u * u
    return -u * v * v * (1 / 30 - v * (1 / 42 - v * (1 / 30 - v * (5 / 66 - v * (691 / 2730)))))
