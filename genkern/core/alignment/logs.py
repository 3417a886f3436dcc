"""The sum over alignments of one pair in logarithms, by plain loops: the reference, and the way for extreme weights."""

from __future__ import annotations

import numpy as np

from genkern.core.alignment.types import Costs, Floats, Ints, Sequences
from genkern.core.jit import jit, part

NOTHING = 40.0  # what is smaller by exp(-NOTHING) does not change a double


def pair_logs(x: Sequences, y: Sequences, pairs: Ints, costs: Costs) -> Floats:
    """Return log sums (P,) of pairs (P, 2) of sequences."""
    found = np.empty(len(pairs))
    _pairs(x, y, pairs, costs, found)
    return found


@jit
def _pairs(x, y, pairs, costs, found):
    """Set the log sums of pairs."""
    for p in range(len(pairs)):
        i, j = pairs[p]
        left, right = x.codes[x.offsets[i] : x.offsets[i + 1]], y.codes[y.offsets[j] : y.offsets[j + 1]]
        size = len(right) + 1
        match, down, every = np.full(size, -np.inf), np.full(size, -np.inf), np.zeros(size)
        total = 0.0
        for code in left:
            corner, across, before = 0.0, -np.inf, -np.inf
            for t in range(1, size):
                # Column t of the row above becomes that of this row.
                x_gap = _sum(match[t] - costs.open, down[t] - costs.extend)
                y_gap = _sum(before - costs.open, across - costs.extend)
                m = costs.scores[code, right[t - 1]] + corner
                corner = every[t]
                match[t], down[t], across = m, x_gap, y_gap
                before = _sum(m, x_gap)
                every[t] = _sum(_sum(0.0, before), y_gap)
                total = _sum(total, m)
        found[p] = total


@part
def _sum(a, b):
    """Return log(exp(a) + exp(b)); minus infinity is the logarithm of zero."""
    high, low = max(a, b), min(a, b)
    return high + np.log1p(np.exp(low - high)) if low > high - NOTHING else high
