"""W5: a posterior pass of a hidden Markov model with Gaussian emissions against hmmlearn's internals.

Both start from the observations: log densities, then forward and backward passes. hmmlearn gives the posteriors of
states and the sums of those of pairs; ours log P, the posteriors of states and, per sequence, those of pairs. The last
row adds the weighted moments of the observations of every sequence.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hmmlearn import _hmmc
from hmmlearn.stats import log_multivariate_normal_density
from scipy.special import logsumexp

from benchmarks.timing import race
from genkern import HMM, Gaussian
from genkern.core import hmm as core
from genkern.objects import Packed


def log_pass(model: HMM, packed: Packed) -> tuple[float, np.ndarray]:
    """Run hmmlearn's internals in logarithms, as its own Gaussian models do; return log P and the sums of pairs."""
    start, transitions, emissions = model.start, model.transitions, model.emissions
    logs = log_multivariate_normal_density(packed.values, emissions.mean, emissions.cov, "diag")
    total, pairs = 0.0, np.zeros_like(transitions)
    for first, last in pairwise(packed.offsets):
        frame = logs[first:last]
        log_prob, forward = _hmmc.forward_log(start, transitions, frame)
        backward = _hmmc.backward_log(start, transitions, frame)
        gamma = forward + backward
        gamma = np.exp(gamma - logsumexp(gamma, axis=1, keepdims=True))
        pairs += np.exp(_hmmc.compute_log_xi_sum(forward, transitions, backward, frame))
        total += log_prob
    return total, pairs


def scaled_pass(model: HMM, packed: Packed, moments: bool = False) -> tuple[float, np.ndarray]:
    """Run the same internals in scaled arithmetic, densities divided by their largest at each position.

    With moments, the weighted sums of observations and their squares are taken as hmmlearn's Baum-Welch takes them.
    """
    start, transitions, emissions = model.start, model.transitions, model.emissions
    logs = log_multivariate_normal_density(packed.values, emissions.mean, emissions.cov, "diag")
    top = logs.max(axis=1, keepdims=True)
    table = np.exp(logs - top)
    total, pairs = float(top.sum()), np.zeros_like(transitions)
    for first, last in pairwise(packed.offsets):
        frame = table[first:last]
        log_prob, forward, scaling = _hmmc.forward_scaling(start, transitions, frame)
        backward = _hmmc.backward_scaling(start, transitions, frame, scaling)
        gamma = forward * backward
        gamma /= gamma.sum(axis=1, keepdims=True)
        pairs += _hmmc.compute_scaling_xi_sum(forward, transitions, backward, frame)
        total += log_prob
        if moments:
            points = packed.values[first:last]
            gamma.sum(axis=0), gamma.T @ points, gamma.T @ points**2
    return total, pairs


def our_pass(model: HMM, packed: Packed) -> tuple[float, np.ndarray]:
    """Run ours: densities, log P, the posteriors of states at each position and of pairs in each sequence."""
    evidence = model.emissions.evidence(packed)
    sums = core.gradients(model.chains(), evidence, packed.offsets)
    evidence.table * sums.emissions  # the posteriors of states
    return float(sums.log_prob.sum()), model.transitions * sums.transitions.sum(axis=0)


def main() -> None:
    n, d, count, length = 5, 22, 2000, 200
    rng = np.random.default_rng(0)
    start, transitions = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n), n)
    model = HMM(start, transitions, Gaussian(rng.standard_normal((n, d)), rng.random((n, d)) + 0.5))
    packed = model.pack(model.sample(count, length=length, rng=1))
    ours = our_pass(model, packed)
    for name, rival in {"in logarithms": log_pass, "scaled": scaled_pass}.items():
        theirs = rival(model, packed)
        np.testing.assert_allclose(theirs[0], ours[0], rtol=1e-10)
        np.testing.assert_allclose(theirs[1], ours[1], rtol=1e-6)
        race(
            f"W5 Gaussian HMM, {n} states, {d}-D, {count} x {length}",
            f"hmmlearn internals {name}",
            lambda rival=rival: rival(model, packed),
            lambda: our_pass(model, packed),
            goal=8,
            rounds=3,
        )
    race(
        "W5 the same with moments of observations",
        "hmmlearn internals scaled",
        lambda: scaled_pass(model, packed, moments=True),
        lambda: model.statistics(packed),
        rounds=3,
    )


if __name__ == "__main__":
    main()
