"""The state-pair recursion in logarithms, one pair of models at a time: the reference of the fast versions.

It is also their fallback: a pair whose weights exceed the range of a double is recomputed here.
"""

from __future__ import annotations

import math

import numpy as np

from genkern.core.arrays.logs import log_sum
from genkern.core.jit import jit
from genkern.core.pairs.types import PairSide

SETTLED = 1e-13  # all log weights grow alike, to this: the recursion has become a geometric series


@jit
def log_or_never(x):
    """Return log x, -inf for zero without a warning, and NaN for NaN."""
    if x > 0.0:
        return math.log(x)
    return -np.inf if x == 0.0 else np.nan


@jit
def log_step(log_left, log_right, log_psi, phi):
    """Return log [Aᵀ φ A′] ∘ ψ for log A (n, n), log A′ (m, m), log ψ and log φ (n, m)."""
    n, m = phi.shape
    half = np.empty((n, m))
    terms = np.empty(n)
    for i in range(n):
        for j in range(m):
            for s in range(n):
                terms[s] = log_left[s, i] + phi[s, j]
            half[i, j] = log_sum(terms)
    new = np.empty((n, m))
    terms = np.empty(m)
    for i in range(n):
        for j in range(m):
            for s in range(m):
                terms[s] = half[i, s] + log_right[s, j]
            new[i, j] = log_sum(terms) + log_psi[i, j]
    return new


@jit
def log_settled(new, old):
    """Return whether all log weights, (n, m), that are not -inf twice grew by the same amount."""
    lowest, highest = np.inf, -np.inf
    n, m = new.shape
    for i in range(n):
        for j in range(m):
            if new[i, j] == -np.inf and old[i, j] == -np.inf:
                continue
            if new[i, j] == -np.inf or old[i, j] == -np.inf:
                return False
            lowest = min(lowest, new[i, j] - old[i, j])
            highest = max(highest, new[i, j] - old[i, j])
    return highest - lowest <= SETTLED


@jit
def pair_log_plain(left, right, log_psi, length):
    r"""Return log k of one pair of hidden Markov models from logarithms of its parameters.

    .. math:: φ_1 = (π π'^T) ∘ ψ, \quad φ_{t+1} = [A^T φ_t A'] ∘ ψ, \quad k = \sum_{ij} e_i e'_j φ_L(i, j)

    left, right: log start (n,), log transitions (n, n), log end (n,) of each; log_psi: (n, m). Any of them may
    be -inf. O(L n m (n + m)) exponentials.
    """
    n, m = log_psi.shape
    phi = np.empty((n, m))
    for i in range(n):
        for j in range(m):
            phi[i, j] = left.start[i] + right.start[j] + log_psi[i, j]
    total = 0.0
    step = 1
    while step < length:
        new = log_step(left.transitions, right.transitions, log_psi, phi)
        step += 1
        top = new.max()
        if top == -np.inf:
            return top
        if log_settled(new, phi):
            total += (length - step) * (top - phi.max())
            step = length
        total += top
        phi = new - top
    for i in range(n):
        for j in range(m):
            phi[i, j] += left.end[i] + right.end[j]
    return total + log_sum(phi.ravel())


@jit
def redo_pairs(left, right, log_psi, length, pairs, log_k):
    """Set log k, (a, b), of the listed pairs, (p, 2); left, right: logarithms of two PairSides; log_psi: (p, n, m)."""
    for k in range(len(pairs)):
        row, column = pairs[k]
        one = PairSide(left.start[row], left.transitions[row], left.end[row])
        other = PairSide(right.start[column], right.transitions[column], right.end[column])
        log_k[row, column] = pair_log_plain(one, other, log_psi[k], length)
