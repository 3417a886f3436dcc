"""W2 and W3: Baum-Welch on one model of all sequences, and on a thousand models of one sequence each."""

from __future__ import annotations

import logging
import warnings

import numpy as np
from hmmlearn import hmm as peer

from benchmarks.timing import race
from genkern import HMM, Categorical, CategoricalEstimator, HMMEstimator
from genkern.models.hmm.estimator import states_by_length

SYMBOLS = 4


def random_model(rng: np.random.Generator, n: int, m: int) -> HMM:
    return HMM(
        rng.dirichlet(np.ones(n)),
        rng.dirichlet(np.ones(n), n),
        Categorical(rng.dirichlet(np.ones(m), n)),
    )


def peer_fit(model: HMM, X: list[np.ndarray], steps: int) -> peer.CategoricalHMM:
    theirs = peer.CategoricalHMM(
        model.n_states,
        n_iter=steps,
        tol=-np.inf,
        init_params="",
        n_features=model.emissions.probs.shape[1],
        implementation="scaling",
    )
    theirs.startprob_, theirs.transmat_ = np.array(model.start), np.array(model.transitions)
    theirs.emissionprob_ = np.array(model.emissions.probs)
    return theirs.fit(np.concatenate(X)[:, None], [len(x) for x in X])


def w2() -> None:
    rng = np.random.default_rng(0)
    X = [rng.integers(SYMBOLS, size=100) for _ in range(1000)]
    start = random_model(rng, 8, SYMBOLS)
    ours = HMMEstimator(init=start, pseudocount=0, tol=0, max_iter=50)
    race(
        "W2 Baum-Welch 8 states, 1000 x 100, 50 steps",
        "hmmlearn fit",
        lambda: peer_fit(start, X, 50),
        lambda: ours.fit(X),
        goal=20,
        rounds=3,
    )


def w3a() -> None:
    rng = np.random.default_rng(1)
    X = [rng.integers(2, size=100) for _ in range(1000)]
    start = random_model(rng, 3, 2)
    ours = HMMEstimator(init=start, emission=CategoricalEstimator(2, pseudocount=0), pseudocount=0, tol=0, max_iter=100)
    share = 0.05
    race(
        "W3a 1000 own HMMs, 3 states, T=100, 100 steps",
        "hmmlearn fit in a loop (1 of 20)",
        lambda: [peer_fit(start, [x], 100) for x in X[: int(share * len(X))]],
        lambda: ours.fit_each(X),
        goal=100,
        rounds=3,
        share=share,
    )


def w3b() -> None:
    rng = np.random.default_rng(2)
    steps = 10
    lengths = np.exp(rng.uniform(np.log(1e2), np.log(1e4), 1000)).astype(int)
    X = [rng.integers(SYMBOLS, size=length) for length in lengths]
    sizes = [states_by_length(length, SYMBOLS) for length in lengths]
    starts = {n: random_model(rng, n, SYMBOLS) for n in set(sizes)}
    ours = HMMEstimator(emission=CategoricalEstimator(SYMBOLS, pseudocount=0), pseudocount=0, tol=0, max_iter=steps)
    chosen = range(0, 1000, 50)
    # Times grow with n^2 T, not with the number of sequences: weigh the peer's share by that cost.
    cost = np.array(sizes) ** 2 * lengths
    share = float(cost[list(chosen)].sum() / cost.sum())
    race(
        f"W3b 1000 own HMMs, T 1e2..1e4, {min(sizes)}..{max(sizes)} states, {steps} steps",
        "hmmlearn fit in a loop (1 of 50)",
        lambda: [peer_fit(starts[sizes[i]], [X[i]], steps) for i in chosen],
        lambda: ours.fit_each(X),
        goal=14,
        rounds=4,
        share=share,
    )


def main() -> None:
    logging.disable(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        w2()
        w3a()
        w3b()


if __name__ == "__main__":
    main()
