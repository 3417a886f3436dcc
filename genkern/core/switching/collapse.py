"""Approximate probabilities of regimes, by a filter that keeps one Gaussian per regime: where mean fields start.

References
----------
Blom & Bar-Shalom (1988), The interacting multiple model algorithm for systems with Markovian switching coefficients.
Kim (1994), Dynamic linear models with Markov-switching, eq. 2.20.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from genkern.core.jit import kernel, part
from genkern.core.kalman.matrices import add, add_outer, copy
from genkern.core.kalman.steps import Floats, Ints, buffers, predict, relative, update
from genkern.core.switching.passes import over_objects
from genkern.core.switching.types import Regimes


class Collapsed(NamedTuple):
    """One Gaussian per regime, before (0) and after (1) a step: mean (2, S, n), cov (2, S, n, n); weight (S,)."""

    mean: Floats
    cov: Floats
    weight: Floats
    gap: Floats


def collapsed_regimes(regimes: Regimes, values: Floats, offsets: Ints, n_jobs: int | None = 1) -> Floats:
    """Return probabilities (N, S) of regimes given all of a series, up to the error of merging beliefs at each step."""
    S, d, n = regimes.C.shape[1:]
    gamma = np.zeros((len(values), S))

    def task(members: Ints) -> None:
        merged = Collapsed(np.zeros((2, S, n)), np.zeros((2, S, n, n)), np.zeros(S), np.zeros(n))
        with np.errstate(all="ignore"):
            for_objects(regimes, values, offsets, members, merged, buffers(n, d), gamma)

    over_objects(task, len(offsets) - 1, n_jobs)
    return gamma


@kernel
def for_objects(regimes, values, offsets, members, merged, workspace, gamma):
    """Fill the rows of some members: filtered probabilities on the way forth, smoothed ones on the way back."""
    S = gamma.shape[1]
    for i in members:
        p = i if len(regimes.start) > 1 else 0
        first, last = offsets[i], offsets[i + 1] - 1
        for row in range(first, last + 1):
            _step(regimes, p, values[row], row - first, gamma[row - 1 if row > first else row], merged, workspace)
            _fill_shares(merged.weight, gamma[row])
        for row in range(last - 1, first - 1, -1):
            for k in range(S):
                merged.weight[k] = 0.0
            for k in range(S):
                ahead = 0.0
                for j in range(S):
                    ahead += gamma[row, j] * regimes.transitions[p, j, k]
                for j in range(S):
                    if ahead > 0.0:
                        share = gamma[row, j] * regimes.transitions[p, j, k] / ahead
                        merged.weight[j] += share * gamma[row + 1, k]
            for k in range(S):
                gamma[row, k] = merged.weight[k]


@part
def _step(regimes, p, x, t, before, merged, workspace):
    """Replace the Gaussians of all regimes by the next, and the log weights; ``before`` (S,) are the last shares."""
    S, n = merged.mean.shape[1:]
    for k in range(S):
        mean, cov = merged.mean[1, k], merged.cov[1, k]
        total = regimes.start[p, k]
        if t == 0:
            copy(regimes.cov[p, k], cov)
            for a in range(n):
                mean[a] = regimes.mean[p, k, a]
        else:
            total = _mix(regimes.transitions[p, :, k], before, merged, mean, cov)
            predict(regimes.A[p, k], regimes.Q[p, k], mean, cov, workspace)
        gap = relative(x, regimes.offset[p, k], workspace.gap)
        density = update(regimes.C[p, k], regimes.R[p, k], gap, mean, cov, workspace)
        merged.weight[k] = density + np.log(total)
    for k in range(S):
        copy(merged.cov[1, k], merged.cov[0, k])
        for a in range(n):
            merged.mean[0, k, a] = merged.mean[1, k, a]


@part
def _mix(column, before, merged, mean, cov):
    """Fill mean and cov with those of the mixture from which a regime is entered; return its probability."""
    S, n = merged.mean.shape[1:]
    total = 0.0
    for j in range(S):
        total += before[j] * column[j]
    for a in range(n):
        mean[a] = 0.0
        for b in range(n):
            cov[a, b] = 0.0
    for j in range(S):
        share = before[j] * column[j] / total if total > 0.0 else 1.0 / S
        for a in range(n):
            mean[a] += share * merged.mean[0, j, a]
    for j in range(S):
        share = before[j] * column[j] / total if total > 0.0 else 1.0 / S
        for a in range(n):
            merged.gap[a] = merged.mean[0, j, a] - mean[a]
        add(cov, share, merged.cov[0, j])
        add_outer(cov, share, merged.gap, merged.gap)
    return total


@part
def _fill_shares(log_weight, shares):
    """Fill shares that sum to one from log weights."""
    top = -np.inf
    for k in range(len(shares)):
        top = max(top, log_weight[k])
    total = 0.0
    for k in range(len(shares)):
        shares[k] = np.exp(log_weight[k] - top)
        total += shares[k]
    for k in range(len(shares)):
        shares[k] /= total
