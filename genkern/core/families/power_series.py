"""Sums over counts that have no closed form: products of powers of Poisson and multinomial weights."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import jit

LOG_2PI = math.log(2.0 * math.pi)
SMALL = 1e-18  # a term below this part of the sum does not change it


@jit
def log_power_series(log_rate: NDArray[np.float64], power: float) -> NDArray[np.float64]:
    """Return log sum_x g^x / (x!)^power of every log g in a flat array; the sum is 1 for g = 0."""
    out = np.empty(len(log_rate))
    for i in range(len(log_rate)):
        log_g = log_rate[i]
        if log_g == -np.inf:
            out[i] = 0.0
            continue
        peak = float(math.floor(math.exp(log_g / power)))
        total, term, x = 1.0, 1.0, peak
        while term > SMALL * total:  # upwards from the largest term
            x += 1.0
            term *= math.exp(log_g - power * math.log(x))
            total += term
        term, x = 1.0, peak
        while x > 0.0 and term > SMALL * total:
            term *= math.exp(power * math.log(x) - log_g)
            total += term
            x -= 1.0
        out[i] = math.log(total) + peak * log_g - power * math.lgamma(peak + 1.0)
    return out


@jit
def log_totals(log_rates: NDArray[np.float64], largest: int, power: float) -> NDArray[np.float64]:
    """Return logs of (s!)^power [z^s] prod_d sum_x g_d^x z^x / (x!)^power, s = 0...largest, in O(m s^2).

    log_rates (N, m): log g; the result is (N, largest + 1).
    """
    n, m = log_rates.shape
    out = np.full((n, largest + 1), -np.inf)
    log_factorial = np.array([power * math.lgamma(x + 1.0) for x in range(largest + 1)])
    for i in range(n):
        logs = out[i]  # coefficients of the product so far
        logs[0] = 0.0
        for d in range(m):
            for s in range(largest, -1, -1):
                top = logs[s]
                for x in range(1, s + 1):
                    top = max(top, logs[s - x] + x * log_rates[i, d] - log_factorial[x])
                if top == -np.inf:
                    continue
                mass = math.exp(logs[s] - top)
                for x in range(1, s + 1):
                    mass += math.exp(logs[s - x] + x * log_rates[i, d] - log_factorial[x] - top)
                logs[s] = top + math.log(mass)
        for s in range(largest + 1):
            logs[s] += log_factorial[s]
    return out


def log_poisson_powers(log_rate: NDArray[np.float64], power: float) -> NDArray[np.float64]:
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
