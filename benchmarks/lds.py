"""EM of linear dynamical systems: one system per series, and one of all series."""

from __future__ import annotations

import warnings

import numpy as np
from pykalman import KalmanFilter

from benchmarks.timing import race
from genkern import LDS, LDSEstimator

SERIES, LENGTH, STATES, CHANNELS, STEPS = 500, 100, 4, 3, 10
VARIABLES = [
    "transition_matrices",
    "observation_matrices",
    "transition_covariance",
    "observation_covariance",
    "initial_state_mean",
    "initial_state_covariance",
]


def random_system(rng: np.random.Generator) -> LDS:
    A = rng.standard_normal((STATES, STATES))
    A *= 0.9 / np.abs(np.linalg.eigvals(A)).max()
    C = rng.standard_normal((CHANNELS, STATES))
    return LDS(A, C, np.eye(STATES), np.eye(CHANNELS), np.zeros(STATES), np.eye(STATES))


def peer_fit(model: LDS, x: np.ndarray) -> KalmanFilter:
    """Run pykalman's EM on one series, all it can do: it has no pooled EM."""
    Q, R, P = model.matrices()
    peer = KalmanFilter(model.transition, model.observation, Q, R, None, None, model.initial_mean, P)
    return peer.em(x, n_iter=STEPS, em_vars=VARIABLES)


def main() -> None:
    rng = np.random.default_rng(0)
    X = random_system(rng).sample(SERIES, length=LENGTH, rng=rng)
    gaps = [np.where(rng.random(len(x))[:, None] < 0.1, np.nan, x) for x in X]
    start = random_system(rng)
    ours = LDSEstimator(STATES, "full", init=start, max_iter=STEPS, tol=0, relative_floor=0, offset=False)
    share = 0.01
    some = range(int(share * SERIES))
    size = f"{SERIES} x {LENGTH}, {STEPS} steps"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        race(
            f"LDS own, {size}",
            "pykalman em in a loop (1 of 100)",
            lambda: [peer_fit(start, X[i]) for i in some],
            lambda: ours.fit_each(X),
            goal=20,
            rounds=2,
            share=share,
        )
        race(
            f"LDS own, gaps, {size}",
            "pykalman em in a loop (1 of 100)",
            lambda: [peer_fit(start, np.ma.masked_invalid(gaps[i])) for i in some],
            lambda: ours.fit_each(gaps),
            goal=20,
            rounds=2,
            share=share,
        )
        # Pooled EM does the work of the loop, the E-steps of all series, with one M-step.
        race(
            f"LDS one, {size}",
            "pykalman em in a loop (1 of 100)",
            lambda: [peer_fit(start, X[i]) for i in some],
            lambda: ours.fit(X),
            goal=20,
            rounds=2,
            share=share,
        )


if __name__ == "__main__":
    main()
