r"""Pieces of log-gamma functions that stay when the large ones cancel.

.. math:: \log\Gamma(x) = (x - \tfrac12) \log x - x + \tfrac12 \log 2\pi + s(x)

Kernels between distributions of large parameters are differences of such functions. With the large parts taken together
by hand, what is left are the remainders s and terms :math:`x\,(\log r - (r - 1))` of ratios r near one.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Floats = NDArray[np.float64]

LOG_2PI = math.log(2.0 * math.pi)
SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)  # of s(x), in 1 / x, 1 / x^3, ...
LARGE = 10.0
NEAR = 0.06  # gaps below which log(1 + u) - u is summed; u^14 / 16 is then below rounding


def stirling_rest(x: Floats) -> Floats:
    """Return the remainder s(x) of Stirling's formula, for x > 0."""
    inverse = 1.0 / np.maximum(x, LARGE)
    square, total = inverse * inverse, np.zeros_like(inverse)
    for coefficient in SERIES[::-1]:
        total = coefficient + square * total
    few = np.minimum(x, LARGE)
    direct = gammaln(few) - ((few - 0.5) * np.log(few) - few + 0.5 * LOG_2PI)
    return np.where(x < LARGE, direct, inverse * total)


def log_gap(u: Floats, ratio: Floats) -> Floats:
    """Return log(r) - (r - 1) of ratios r, given u = r - 1 without cancellation."""
    small = np.where(np.abs(u) < NEAR, u, 0.0)
    total = np.zeros_like(small)
    for k in range(16, 1, -1):
        total = (-1.0) ** (k + 1) / k + small * total
    return np.where(np.abs(u) < NEAR, small * small * total, np.log(ratio) - u)


def log_poisson_powers(log_rate: Floats, power: float) -> Floats:
    r"""Return :math:`\log \sum_x (e^{-m} m^x / x!)^r` of large rates :math:`m`, given their logarithms.

    The error is of order :math:`(r m)^{-4}`: for m above some 1e4.

    References
    ----------
    Gaunt, Iyengar, Olde Daalhuis & Simsek (2019), An asymptotic expansion for the normalizing constant of the
    Conway-Maxwell-Poisson distribution.
    """
    square, inverse = power * power, np.exp(-log_rate) / power
    first, second = (square - 1.0) / 24.0, (square - 1.0) * (square + 23.0) / 1152.0
    third = (square - 1.0) * (5.0 * square * square - 298.0 * square + 11237.0) / 414720.0
    rest = inverse * (first + inverse * (second + inverse * third))
    return -0.5 * (power - 1.0) * (LOG_2PI + log_rate) - 0.5 * math.log(power) + np.log1p(rest)
