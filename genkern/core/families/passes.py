r"""Densities and sufficient statistics of exponential families, of many points under many members.

A density is a sum over q statistics, :math:`\log p(x) = h(x) + \sum_s \theta_s T_s(x)`. Minus the log normaliser is the
parameter of a statistic "observed", so that what is missing has statistics of zero and counts for nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def log_density(natural: Floats, statistics: Floats, base: Floats, offsets: Ints) -> Floats:
    """Return log densities (N, n) of points with statistics (N, q) and base measure (N,).

    ``natural`` (P, n, q) has one row of members for all points (P = 1), or one for each object.
    """
    out = np.empty((len(statistics), natural.shape[1]))
    _log_density(natural, statistics, base, offsets, out)
    return out


def weigh(statistics: Floats, weights: Floats, offsets: Ints, totals: bool) -> Floats:
    """Return sums (G, n, q) of statistics (N, q) under weights (N, n), of each object or of all together (G = 1)."""
    out = np.zeros((1 if totals else len(offsets) - 1, weights.shape[1], statistics.shape[1]))
    _weigh(statistics, weights, offsets, out)
    return out


@jit
def _log_density(natural, statistics, base, offsets, out):
    """Fill out (N, n); a statistic of zero counts nothing, also where its parameter is -inf."""
    rows, n, q = natural.shape
    for i in range(len(offsets) - 1):
        theta = natural[i if rows > 1 else 0]
        for t in range(offsets[i], offsets[i + 1]):
            for k in range(n):
                total = base[t]
                for s in range(q):
                    if statistics[t, s] != 0.0:
                        total += statistics[t, s] * theta[k, s]
                out[t, k] = total


@jit
def _weigh(statistics, weights, offsets, out):
    """Add to out (G, n, q)."""
    groups, n, q = out.shape
    for i in range(len(offsets) - 1):
        g = i if groups > 1 else 0
        for t in range(offsets[i], offsets[i + 1]):
            for k in range(n):
                for s in range(q):
                    out[g, k, s] += weights[t, k] * statistics[t, s]
