"""Lower bounds of kernels between factorial models, by independent chains; N pairs at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.validation import Floats

Ints = NDArray[np.int64]

MAX_ITER, TOL = 500, 1e-10  # sweeps over the chains; gain of a sweep, relative to the bound, that ends them
LOG_2PI = math.log(2.0 * math.pi)


class ChainPotentials(NamedTuple):
    """Log potentials of starts (N, K) and steps (N, K, K), and levels (N, K, d), by chain; ``own`` are the first's."""

    starts: list[Floats]
    steps: list[Floats]
    levels: list[Floats]
    own: int

    def take(self, rows: NDArray[np.bool_]) -> ChainPotentials:
        """Return some of the pairs."""
        starts, steps, levels = ([array[rows] for array in part] for part in self[:3])
        return ChainPotentials(starts, steps, levels, self.own)


class Coupling(NamedTuple):
    """Noise covariances (N, d, d) of both models, and the power on densities."""

    left: Floats
    right: Floats
    rho: float


class ChainBeliefs(NamedTuple):
    """By chain: probabilities of states (N, L, K), and expected log potentials plus entropy (N,)."""

    states: list[Floats]
    scores: list[Floats]


Sweep = Callable[[ChainPotentials, ChainBeliefs, Ints], Floats]


def collapsed_bound(chains: ChainPotentials, spread: Floats, starts: list[ChainBeliefs]) -> tuple[Floats, ChainBeliefs]:
    """Return bounds (N,) of log sum_q prod_c potentials exp(-delta^T V^-1 delta / 2), for covariances V (N, d, d).

    They are the best of those from all starts, and come with their beliefs.
    """
    inverse = _inverse(spread)

    def sweep(chains: ChainPotentials, beliefs: ChainBeliefs, rows: Ints) -> Floats:
        weight = inverse[rows]
        for c in range(len(chains.levels)):
            pull = _mean(chains, beliefs, skip=c) @ weight
            field = -pull @ _turned(chains.levels[c]) - 0.5 * _squares(chains.levels[c], weight)[:, None]
            beliefs.states[c], beliefs.scores[c] = _chain(chains.starts[c], chains.steps[c], field)
        mean = _mean(chains, beliefs)
        square = ((mean @ weight) * mean).sum(axis=(1, 2)) + _variance(chains, beliefs, weight)
        total: Floats = np.sum(beliefs.scores, axis=0) - 0.5 * square
        return total

    return _highest(chains, starts, sweep)


def joint_bound(chains: ChainPotentials, coupling: Coupling, starts: list[ChainBeliefs]) -> tuple[Floats, ChainBeliefs]:
    """Return bounds (N,) with a Gaussian belief about every observation, and the beliefs about the chains.

    The same beliefs about the chains give a collapsed bound that is no lower.
    """
    length = starts[0].states[0].shape[1]
    precisions = [_inverse(coupling.left), _inverse(coupling.right)]
    rho, d = coupling.rho, coupling.left.shape[-1]
    cov = _inverse(precisions[0] + precisions[1]) / rho
    logs = [np.linalg.slogdet(part)[1] for part in (coupling.left, coupling.right, cov)]
    # E log N(x; m, R) has tr(R^-1 cov) besides the distance of means; both traces together are d / rho.
    constant = length * (0.5 * (d * LOG_2PI + logs[2]) - rho * d * LOG_2PI - 0.5 * rho * (logs[0] + logs[1]))

    def sweep(chains: ChainPotentials, beliefs: ChainBeliefs, rows: Ints) -> Floats:
        weights = [part[rows] for part in precisions]
        signs = (1.0, -1.0)
        sides = [range(chains.own), range(chains.own, len(chains.levels))]
        for side, members in enumerate(sides):
            for c in members:
                means = [signs[s] * _mean(chains, beliefs, only=sides[s]) for s in (0, 1)]
                centre = rho * (means[0] @ weights[0] + means[1] @ weights[1]) @ cov[rows]
                others = signs[side] * _mean(chains, beliefs, skip=c, only=members)
                level = signs[side] * chains.levels[c]
                pull = (centre - others) @ weights[side]
                field = rho * (pull @ _turned(level) - 0.5 * _squares(level, weights[side])[:, None])
                beliefs.states[c], beliefs.scores[c] = _chain(chains.starts[c], chains.steps[c], field)
        means = [signs[s] * _mean(chains, beliefs, only=sides[s]) for s in (0, 1)]
        centre = rho * (means[0] @ weights[0] + means[1] @ weights[1]) @ cov[rows]
        total: Floats = np.sum(beliefs.scores, axis=0)
        for side, members in enumerate(sides):
            gap = centre - means[side]
            square = ((gap @ weights[side]) * gap).sum(axis=(1, 2))
            total = total - 0.5 * rho * (square + _variance(chains, beliefs, weights[side], members))
        return total

    bounds, beliefs = _highest(chains, starts, sweep)
    return constant + bounds, beliefs


def beliefs_of(chains: ChainPotentials, fields: list[Floats]) -> ChainBeliefs:
    """Return the beliefs of chains in given fields (N, L, K)."""
    first = [_chain(*arrays) for arrays in zip(chains.starts, chains.steps, fields, strict=True)]
    return ChainBeliefs(*(list(part) for part in zip(*first, strict=True)))


def _highest(chains: ChainPotentials, starts: list[ChainBeliefs], sweep: Sweep) -> tuple[Floats, ChainBeliefs]:
    """Return the highest bounds (N,) that are reached from the starts, and the beliefs that give them."""
    bounds, best = _climb(chains, starts[0], sweep)
    for start in starts[1:]:
        others, beliefs = _climb(chains, start, sweep)
        better = others > bounds
        bounds = np.where(better, others, bounds)
        for old, new in zip(best, beliefs, strict=True):
            for mine, theirs in zip(old, new, strict=True):
                mine[better] = theirs[better]
    return bounds, best


def _climb(chains: ChainPotentials, start: ChainBeliefs, sweep: Sweep) -> tuple[Floats, ChainBeliefs]:
    """Return the bounds (N,) after sweeps until each pair's own bound no longer grows, and the beliefs then."""
    count = len(chains.starts[0])
    out, rows = np.empty(count), np.arange(count)
    final, beliefs = (ChainBeliefs(*([array.copy() for array in part] for part in start)) for _ in range(2))
    best = np.full(count, -np.inf)
    for _ in range(MAX_ITER):
        bound = sweep(chains, beliefs, rows)
        out[rows] = bound
        for kept, part in zip(final, beliefs, strict=True):
            for mine, now in zip(kept, part, strict=True):
                mine[rows] = now
        going = bound - best > TOL * (1.0 + np.abs(bound))
        if not going.any():
            break
        if not going.all():
            chains, rows = chains.take(going), rows[going]
            beliefs = ChainBeliefs(*([array[going] for array in part] for part in beliefs))
        best = bound[going]
    return out, final


def _chain(start: Floats, steps: Floats, field: Floats) -> tuple[Floats, Floats]:
    """Return probabilities of states (N, L, K), and log Z minus the expected field (N,), of chains in fields."""
    length = field.shape[1]
    forward, backward = np.empty_like(field), np.zeros_like(field)
    forward[:, 0] = start + field[:, 0]
    for t in range(1, length):
        forward[:, t] = _log_sum(forward[:, t - 1, :, None] + steps, axis=1) + field[:, t]
    for t in range(length - 2, -1, -1):
        backward[:, t] = _log_sum(steps + (backward[:, t + 1] + field[:, t + 1])[:, None, :], axis=2)
    log_z = _log_sum(forward[:, -1], axis=1)
    joint = forward + backward
    states = np.exp(joint - joint.max(axis=2, keepdims=True))
    states /= states.sum(axis=2, keepdims=True)  # log Z has too few digits to divide by where it is large
    scores: Floats = log_z - (states * field).sum(axis=(1, 2))
    return states, scores


def _log_sum(logs: Floats, axis: int) -> Floats:
    """Return the log of the sum of exponentials along an axis; -inf if all are."""
    top = logs.max(axis=axis, keepdims=True)
    safe = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore"):
        sums: Floats = np.log(np.exp(logs - safe).sum(axis=axis)) + safe.squeeze(axis)
    return sums


def _mean(chains: ChainPotentials, beliefs: ChainBeliefs, skip: int | None = None, only: range | None = None) -> Floats:
    """Return the sum of expected levels (N, L, d) of all chains, of some, or of all but one."""
    members = [c for c in (only or range(len(chains.levels))) if c != skip]
    shape = (*beliefs.states[0].shape[:2], chains.levels[0].shape[-1])
    return sum((beliefs.states[c] @ chains.levels[c] for c in members), np.zeros(shape))


def _variance(chains: ChainPotentials, beliefs: ChainBeliefs, weight: Floats, only: range | None = None) -> Floats:
    """Return the sum over times and chains of tr(weight Cov(level)), (N,)."""
    total = np.zeros(len(weight))
    for c in only or range(len(chains.levels)):
        states, level = beliefs.states[c], chains.levels[c]
        mean = states @ level
        square = (states @ _squares(level, weight)[:, :, None])[..., 0]
        total += (square - ((mean @ weight) * mean).sum(axis=2)).sum(axis=1)
    return total


def _squares(level: Floats, weight: Floats) -> Floats:
    """Return the squares (N, K) of levels (N, K, d) in a metric (N, d, d)."""
    squares: Floats = ((level @ weight) * level).sum(axis=2)
    return squares


def _inverse(matrices: Floats) -> Floats:
    return np.asarray(np.linalg.inv(matrices), dtype=np.float64)


def _turned(level: Floats) -> Floats:
    return np.swapaxes(level, 1, 2)
