r"""The kernel of two stopping hidden Markov models over all lengths: one linear system per pair of models.

.. math:: k = v^T (I - M)^{-1} w, \quad v = (π ⊗ π') ∘ ψ, \quad w = e ⊗ e', \quad M_{ij,kl} = a_{ik} a'_{jl} ψ_{kl}

Only pairs of states that lie on some path from start to stop count. The series converges if and only if the spectral
radius of M, restricted to them, is below one; as M is not negative, that is the case if and only if
:math:`(I - M) x = 1` has a solution :math:`x \ge 1`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from genkern.core.pairs.recursion import PairSide
from genkern.validation import Floats

Mask = NDArray[np.bool_]
LARGE = 600.0  # logs of psi above it are not exponentiated
SMALL = 1e-280  # results below it may have lost terms to underflow
ENDLESS = 1e14  # larger expected numbers of steps are infinite up to rounding


def log_all_lengths(left: PairSide, right: PairSide, log_psi: Floats) -> Floats:
    """Return log k, (c,), of c pairs; left: n states each, right: m states each, log_psi: (c, n, m).

    +inf where the sum over lengths diverges, -inf where no sequence is common to both models.
    """
    live = _live(left, right, log_psi > -np.inf)
    some = live.any(axis=(1, 2))
    logs = np.full(len(live), -np.inf)
    if not some.any():
        return logs
    first, second = (PairSide(*(part[some] for part in side)) for side in (left, right))
    psi, live = log_psi[some], live[some]
    found = _by_solving(first, second, psi, live)
    lost = np.isnan(found)
    if lost.any():
        with np.errstate(divide="ignore"):
            first, second = (PairSide(*(np.log(part[lost]) for part in side)) for side in (first, second))
        found[lost] = _by_elimination(first, second, psi[lost], live[lost])
    logs[some] = found
    return logs


def log_all_lengths_plain(left: PairSide, right: PairSide, log_psi: Floats) -> Floats:
    """Return log k, (c,), as ``log_all_lengths`` does, from the logarithms of both sides."""
    first, second = (PairSide(*((part > -np.inf).astype(float) for part in side)) for side in (left, right))
    return _by_elimination(left, right, log_psi, _live(first, second, log_psi > -np.inf))


def _live(left: PairSide, right: PairSide, common: Mask) -> Mask:
    """Return which pairs of states, (c, n, m), lie on a path from start to stop."""
    steps, turned = (left.transitions > 0).astype(float), (right.transitions > 0).astype(float)
    # not the signs of products, which may underflow
    reached = (left.start > 0)[:, :, None] & (right.start > 0)[:, None, :] & common
    leaving = (left.end > 0)[:, :, None] & (right.end > 0)[:, None, :]
    while True:
        further = reached | ((np.swapaxes(steps, 1, 2) @ reached @ turned > 0) & common)
        if (further == reached).all():
            break
        reached = further
    while True:
        further = leaving | (steps @ (leaving & common) @ np.swapaxes(turned, 1, 2) > 0)
        if (further == leaving).all():
            return reached & leaving
        leaving = further


def _by_solving(left: PairSide, right: PairSide, log_psi: Floats, live: Mask) -> Floats:
    """Return log k, (c,), by solving; NaN where numbers are out of range, +inf if the series diverges."""
    c, n, m = log_psi.shape
    logs = np.where(live, log_psi, -np.inf)
    safe = logs.max(axis=(1, 2)) < LARGE
    psi = np.exp(np.where(safe[:, None, None], logs, -np.inf))
    matrix = np.einsum("cik,cjl,ckl,cij->cijkl", left.transitions, right.transitions, psi, live)
    matrix = np.eye(n * m) - matrix.reshape(c, n * m, n * m)
    ends = (left.end[:, :, None] * right.end[:, None, :] * live).reshape(c, n * m)
    try:
        steps, sums = np.moveaxis(np.linalg.solve(matrix, np.stack([np.ones_like(ends), ends], axis=-1)), -1, 0)
    except np.linalg.LinAlgError:  # one singular system makes the whole batch fail
        return np.full(c, np.nan)
    with np.errstate(divide="ignore"):
        starts = (np.log(left.start)[:, :, None] + np.log(right.start)[:, None, :] + logs).reshape(c, n * m)
    top = starts.max(axis=1)
    values = (np.exp(starts - top[:, None]) * sums).sum(axis=1)
    good = safe & (values > SMALL)
    found = np.where(good, np.log(np.where(good, values, 1.0)) + top, np.nan)
    converged = (steps.min(axis=1) > 1.0 - 1e-6) & (steps.max(axis=1) < ENDLESS)
    found[safe & ~converged] = np.inf
    return found


def _by_elimination(left: PairSide, right: PairSide, log_psi: Floats, live: Mask) -> Floats:
    """Return log k, (c,), by eliminating one pair of states after the other, in logs; O((n m)^3) exponentials.

    The sides are logarithms.
    Row and column 0 of the table hold the ways in and out; eliminating k adds the detours i -> k -> ... -> k -> j.
    The series diverges if and only if, at some point, a pair of states returns to itself with weight >= 1.
    """
    c, n, m = log_psi.shape
    size = n * m
    (start, steps, end), (start_, steps_, end_) = left, right
    psi = np.where(live, log_psi, -np.inf)
    table = np.full((c, size + 1, size + 1), -np.inf)
    table[:, 0, 1:] = (start[:, :, None] + start_[:, None, :] + psi).reshape(c, size)
    table[:, 1:, 0] = np.where(live, end[:, :, None] + end_[:, None, :], -np.inf).reshape(c, size)
    moves = steps[:, :, None, :, None] + steps_[:, None, :, None, :] + psi[:, None, None]
    table[:, 1:, 1:] = np.where(live[:, :, :, None, None], moves, -np.inf).reshape(c, size, size)
    endless = np.zeros(c, dtype=bool)
    for k in range(size, 0, -1):
        back = table[:, k, k]
        endless |= back >= 0.0
        stays = -np.log1p(-np.exp(np.where(back < 0.0, back, -np.inf)))
        detours = table[:, :k, k, None] + stays[:, None, None] + table[:, None, k, :k]
        table[:, :k, :k] = np.logaddexp(table[:, :k, :k], detours)
    return np.where(endless, np.inf, table[:, 0, 0])
