"""W5: expected statistics of a hidden Markov model with Gaussian emissions against hmmlearn's internals.

Both start from the observations: log densities, then forward and backward passes. hmmlearn gives the posteriors of
states and the sums of those of pairs; ours, ``model.statistics(X)`` of a list of series, log P and the expected counts
and moments of every series. The last rows add the moments to hmmlearn's; one is against dynamax, if it is installed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
from hmmlearn import _hmmc
from hmmlearn.stats import log_multivariate_normal_density
from scipy.special import logsumexp

from benchmarks.timing import race
from genkern import HMM, Gaussian
from genkern.data.objects import Packed


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


def dynamax_pass(model: HMM, packed: Packed) -> Callable[[], Any]:
    """Return a call of dynamax's E-step of all sequences, of one length, compiled and on one thread."""
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    import jax
    from dynamax.hidden_markov_model import DiagonalGaussianHMM

    jax.config.update("jax_enable_x64", True)
    n, d = model.emissions.mean.shape
    peer = DiagonalGaussianHMM(n, d)
    params, _ = peer.initialize(
        jax.random.PRNGKey(0),
        initial_probs=jax.numpy.array(model.start),
        transition_matrix=jax.numpy.array(model.transitions),
        emission_means=jax.numpy.array(model.emissions.mean),
        emission_scale_diags=jax.numpy.array(np.sqrt(model.emissions.cov)),
    )
    X = jax.numpy.array(packed.values.reshape(packed.n_objects, -1, d))
    run = jax.jit(jax.vmap(lambda x: peer.e_step(params, x)))
    return lambda: jax.block_until_ready(run(X))


def main() -> None:
    n, d, count, length = 5, 22, 2000, 200
    rng = np.random.default_rng(0)
    start, transitions = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n), n)
    model = HMM(start, transitions, Gaussian(rng.standard_normal((n, d)), rng.random((n, d)) + 0.5))
    X = model.sample(count, length=length, rng=1)
    packed, ours = model.pack(X), model.statistics(X)
    log_prob, pairs = float(ours.log_prob.sum()), transitions * ours["transitions"].sum(axis=0)
    peers = {
        "in logarithms": log_pass,
        "scaled": scaled_pass,
        "scaled, with moments": partial(scaled_pass, moments=True),
    }
    for name, rival in peers.items():
        theirs = rival(model, packed)
        np.testing.assert_allclose(theirs[0], log_prob, rtol=1e-10)
        np.testing.assert_allclose(theirs[1], pairs, rtol=1e-6)
        race(
            f"W5 Gaussian HMM, {n} states, {d}-D, {count} x {length}",
            f"hmmlearn internals {name}",
            partial(rival, model, packed),
            partial(model.statistics, X),
            goal=8,
            rounds=3,
        )
    if find_spec("dynamax") is None:
        print("W5 against dynamax: left out, since it is not installed (pip install '.[peers]')")
        return
    theirs = dynamax_pass(model, packed)
    np.testing.assert_allclose(float(theirs()[1].sum()), log_prob, rtol=1e-10)
    race(
        f"W5 Gaussian HMM, {n} states, {d}-D, {count} x {length}",
        "dynamax e_step, compiled",
        theirs,
        partial(model.statistics, X),
        goal=3,
        rounds=3,
    )


if __name__ == "__main__":
    main()
