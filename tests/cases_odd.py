"""Models of odd sizes, by kind: tiny and huge parameters, equal and nearly equal pairs, long and unstable ones.

For what must hold for every exact formula, whatever the numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern import (
    HMM,
    KDE,
    LDS,
    BayesNet,
    Bernoulli,
    Categorical,
    Dirichlet,
    DirichletMultinomial,
    Exponential,
    FactorialHMM,
    Gamma,
    Gaussian,
    Geometric,
    LinearGaussianNet,
    MarkovChain,
    Mixture,
    Multinomial,
    NaturalFamily,
    NegativeBinomial,
    PeriodicChain,
    Poisson,
    PositionalChain,
    ProfileHMM,
    SiteModel,
    SparseMultinomial,
    StudentT,
    SwitchingLDS,
    VonMises,
)
from tests.oracles_profile import random_profile

NEAR = 1.0 + 1e-9
SIZES = (1e-9, 0.3, 0.3 * NEAR, 0.3000001, 7.0, 1e6, 1e6 * NEAR)


def rows(values: Any) -> np.ndarray:
    """Return probabilities in proportion to values, and others that differ by little."""
    table = np.asarray(values, dtype=float)
    return table / table.sum(axis=-1, keepdims=True)


PROBS = [rows(row) for row in ([1, 2, 3], [1, 2, 3 * NEAR], [1, 1e-12, 1], [1, 0, 0], [1e-300, 1, 1], [1, 1, 1.0001])]
PHASES = np.array([0.5, 0.5])
TURN = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])


def chain(p: Any, q: Any) -> np.ndarray:
    return np.stack([p, q, rows(np.asarray(p) + q)])


def gaussians() -> list[Gaussian]:
    spreads = [np.eye(2), np.diag([1.0, 1e-8]), 1e8 * np.eye(2), np.array([[1.0, 0.999999], [0.999999, 1.0]])]
    found = [Gaussian([m, 0.0], s) for m in (0.0, 1e-9, 1e5) for s in spreads]
    return [*found, Gaussian([0.0, 0.0], NEAR), Gaussian([0.0, 0.0], [1.0, NEAR])]


def scalar(A: float, Q: float = 0.1, R: float = 0.1, mean: float = 0.0) -> LDS:
    return LDS([[A]], [[1.0]], Q, R, [mean], 1.0)


def planar(radius: float, turn: float = 0.0, R: float = 0.1) -> LDS:
    """Return a system of two states that turn and grow, in coordinates turned and sheared by so much."""
    T = np.array([[1.0, turn], [-turn, 1.0 + turn]])
    back = np.linalg.inv(T)
    cov = T @ T.T
    C = np.array([[1.0, 0.4]]) @ back
    return LDS(T @ (radius * TURN) @ back, C, 0.05 * (cov + cov.T), R, T @ np.ones(2), 0.5 * (cov + cov.T))


def systems() -> list[LDS]:
    return [
        *(scalar(A) for A in (0.9, 1.0, 1.1, 1.2, 1.2 * NEAR, 1.5, 1.5005, 3.0)),
        scalar(1.2, Q=0.0),
        scalar(1.2, R=1e-6),
        scalar(1.2, mean=5.0),
        scalar(-1.2),
        planar(0.5),
        planar(1.2),
        planar(1.2, R=0.1 * NEAR),
        planar(1.2, turn=0.7),
    ]


def switching() -> list[SwitchingLDS]:
    pairs = [(1.2, 0.5), (1.2 * NEAR, 0.5), (3.0, 1.5), (3.0, 1.5005), (0.9, 0.8)]
    steps = rows([[9, 1], [1, 9]])
    return [SwitchingLDS([0.5, 0.5], steps, LDS.stack([scalar(a), scalar(b)])) for a, b in pairs]


def networks() -> list[BayesNet]:
    return [BayesNet({"x": ([], p), "y": (["x"], chain(p, q))}) for p in PROBS[:3] for q in PROBS[:3]]


def linear_networks() -> list[LinearGaussianNet]:
    def net(weight: float, cov: float) -> LinearGaussianNet:
        return LinearGaussianNet({"x": ([], [], 0.0, cov), "y": (["x"], [weight], 1.0, cov)}, observed=["x", "y"])

    return [net(w, c) for w in (0.5, 0.5 * NEAR, 1e4) for c in (1e-3, 1.0)]


def profiles() -> list[ProfileHMM]:
    base = random_profile(np.random.default_rng(0), 2)
    rest = {name: getattr(base, name) for name in ("entry", "exits", "flanks", "null")}
    return [ProfileHMM(np.stack([p, q]), base.insert, base.transitions, **rest) for p in PROBS[:4] for q in PROBS[:4]]


def factorial() -> list[FactorialHMM]:
    starts, steps = [rows([1, 1])] * 2, [rows([[9, 1], [1, 9]])] * 2
    shifts = (0.0, 1e-9, 5.0, 100.0)
    return [
        FactorialHMM(starts, steps, [np.array([[0.0], [s]]), np.array([[1.0], [2.0]])], [cov])
        for s in shifts
        for cov in (1e-3, 1.0)
    ]


class Decay(NaturalFamily):
    """Exponential distributions, by their statistic and log-partition."""

    @staticmethod
    def sufficient(points: Any) -> Any:
        return np.asarray(points)[:, None]

    @staticmethod
    def log_partition(theta: Any) -> Any:
        return -np.log(-theta[..., 0])


ODD: dict[str, list[Any]] = {
    "NegativeBinomial": [
        NegativeBinomial([r], [p]) for r in (0.5, 0.5 * NEAR, 3.0) for p in (0.05, 0.3, 0.3 * NEAR, 0.9)
    ],
    "DirichletMultinomial": [DirichletMultinomial([a, b], 8) for a in (0.6, 0.6 * NEAR, 5.0, 1e5) for b in (0.7, 1e5)],
    "StudentT": [StudentT([m], [s], v) for m in (0.0, 1e-9, 5.0) for s in (0.1, 1.0, NEAR) for v in (1.5, 30.0)],
    "NaturalFamily": [Decay([-1.0 / scale]) for scale in SIZES],
    "Categorical": [Categorical(p) for p in PROBS],
    "SiteModel": [SiteModel(np.stack([p, q])) for p in PROBS for q in PROBS[:2]],
    "Gaussian": gaussians(),
    "Bernoulli": [Bernoulli([p, q]) for p in (0.0, 1e-12, 0.5, 0.5 * NEAR, 1.0 - 1e-12) for q in (0.1, 0.9)],
    "Poisson": [Poisson([rate]) for rate in SIZES[:5]],
    "Geometric": [Geometric([p]) for p in (1e-9, 1e-9 * NEAR, 0.3, 0.3 * NEAR, 1.0 - 1e-9)],
    "Exponential": [Exponential([scale]) for scale in SIZES],
    "Gamma": [Gamma([shape], [scale]) for shape in (0.6, 0.6 * NEAR, 5.0, 1e5) for scale in SIZES[1:]],
    "Dirichlet": [Dirichlet([a, b]) for a in (0.6, 0.6 * NEAR, 5.0, 1e5) for b in (0.7, 3.0, 1e5)],
    "VonMises": [VonMises([m], [k]) for m in (0.0, 1e-9, 3.0) for k in (0.0, 0.3, 0.3 * NEAR, 100.0, 1e5)],
    "Multinomial": [Multinomial(p, 50) for p in PROBS],
    "SparseMultinomial": [SparseMultinomial([0, 1], p[:2], p[2], 3, 50) for p in PROBS],
    "Mixture": [Mixture([0.5, 0.5], Gaussian.stack(pair)) for pair in zip(gaussians()[:11], gaussians()[1:12])],
    "KDE": [KDE(np.array([[0.0], [1.0], [m]]), h) for m in (0.0, 1e-9, 50.0) for h in (1e-6, 1.0, NEAR)],
    "MarkovChain": [MarkovChain(p, chain(p, q)) for p in PROBS[:4] for q in PROBS[:4]],
    "PeriodicChain": [
        PeriodicChain(PHASES, np.stack([p, q]), np.stack([chain(p, q)] * 2)) for p in PROBS[:3] for q in PROBS[:3]
    ],
    "PositionalChain": [PositionalChain(p, np.stack([chain(p, q)] * 29)) for p in PROBS[:3] for q in PROBS[:2]],
    "HMM": [HMM(p, chain(p, q), Categorical(chain(q, p))) for p in PROBS[:4] for q in PROBS[:4]],
    "HMM of vectors": [
        HMM([0.5, 0.5], rows([[9, 1], [1, 9]]), Gaussian([[0.0], [m]], [s, 1.0]))
        for m in (0.0, 1e-9, 5.0, 1e4)
        for s in (1e-6, 1.0, NEAR)
    ],
    "ProfileHMM": profiles(),
    "FactorialHMM": factorial(),
    "LDS": systems(),
    "SwitchingLDS": switching(),
    "BayesNet": networks(),
    "LinearGaussianNet": linear_networks(),
}
