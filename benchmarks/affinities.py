"""Gram matrices of lists of 1000 models: Gaussians, mixtures, kernel density estimates, linear dynamical systems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from benchmarks.timing import race
from genkern import KDE, LDS, Gaussian, Gram, Kernel, MeanMap, Mixture, ProbabilityProduct

COUNT = 1000
GOAL = 6
Rows = Callable[[range], list[np.ndarray]]


def spd(rng: np.random.Generator, batch: tuple[int, ...], d: int) -> np.ndarray:
    root = rng.normal(size=(*batch, d, d))
    return root @ np.swapaxes(root, -1, -2) / d + 0.2 * np.eye(d)


def numpy_gaussians(mean: np.ndarray, cov: np.ndarray, rows: range) -> list[np.ndarray]:
    """Return the mean map kernel (lambda = 1) of some rows with all later models, by batched Cholesky."""
    found, d = [], mean.shape[1]
    for i in rows:
        lower = np.linalg.cholesky(np.eye(d) + cov[i] + cov[i:])
        white = np.linalg.solve(lower, (mean[i] - mean[i:])[..., None])[..., 0]
        log_det = 2 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
        found.append(-0.5 * (log_det + (white**2).sum(axis=1)))
    return found


def numpy_mixtures(weights: np.ndarray, mean: np.ndarray, var: np.ndarray, rows: range) -> list[np.ndarray]:
    """Return the mean map kernel (lambda = 1) of mixtures of diagonal Gaussians, a row at a time."""
    found, k = [], weights.shape[1]
    for i in rows:
        spread = 1 + var[i][:, None, None] + var[i:]
        logs = -0.5 * (np.log(spread) + (mean[i][:, None, None] - mean[i:]) ** 2 / spread).sum(axis=-1)
        logs += np.log(weights[i])[:, None, None] + np.log(weights[i:])
        found.append(logsumexp(logs.transpose(1, 0, 2).reshape(-1, k * k), axis=1))
    return found


def numpy_estimates(points: np.ndarray, var: np.ndarray, rows: range) -> list[np.ndarray]:
    """Return the mean map kernel (lambda = 1) of kernel density estimates with equal weights, a row at a time."""
    found = []
    size, d = points.shape[1:]
    for i in rows:
        spread = 1 + var[i] + var[i:]
        squares = cdist(points[i], points[i:].reshape(-1, d), "sqeuclidean").reshape(size, -1, size)
        values = np.exp(-0.5 * squares / spread[:, None]).mean(axis=(0, 2))
        found.append(np.log(values) - 0.5 * d * np.log(spread))
    return found


def numpy_systems(lds: LDS, length: int, rows: range) -> list[np.ndarray]:
    """Return the product kernel (rho = 1) of systems, by batched Kalman filters of the differences."""
    Q, R, P = lds.matrices()
    A, C, m = lds.transition, lds.observation, lds.initial_mean
    n, found = A.shape[1], []
    for i in rows:
        count = len(A) - i
        both = [np.zeros((count, 2 * n, 2 * n)) for _ in range(3)]
        for matrix, part in zip(both, (A, Q, P), strict=True):
            matrix[:, :n, :n], matrix[:, n:, n:] = part[i], part[i:]
        step, noise, cov = both
        look = np.concatenate([np.repeat(C[i : i + 1], count, axis=0), -C[i:]], axis=2)
        mean = np.concatenate([np.repeat(m[i : i + 1], count, axis=0), m[i:]], axis=1)[..., None]
        total = np.zeros(count)
        for _ in range(length):
            seen = look @ cov
            S = seen @ look.transpose(0, 2, 1) + R[i] + R[i:]
            gain = np.linalg.solve(S, seen).transpose(0, 2, 1)
            gap = -look @ mean
            square = (gap * np.linalg.solve(S, gap)).sum(axis=(1, 2))
            total -= 0.5 * (np.linalg.slogdet(2 * np.pi * S)[1] + square)
            mean = step @ (mean + gain @ gap)
            cov = step @ (cov - gain @ seen) @ step.transpose(0, 2, 1) + noise
        found.append(total)
    return found


def contest(title: str, peer: str, theirs: Rows, models: list[Any], kernel: Kernel, every: int) -> None:
    """Check some rows, then race; the peer is timed on some rows of the upper half and its time scaled up."""
    rows = range(0, COUNT, every)
    gram = Gram(kernel)
    table = np.log(gram.fit_transform(models)) + gram.log_scale_
    for i, row in zip(rows, theirs(rows), strict=True):
        np.testing.assert_allclose(row, table[i, i:], rtol=1e-8, atol=1e-8)
    share = sum(COUNT - i for i in rows) / (COUNT * (COUNT + 1) / 2)
    race(
        f"Gram of 1000 {title}",
        f"{peer} (1 row of {every})",
        lambda: theirs(rows),
        lambda: Gram(kernel).fit_transform(models),
        GOAL,
        rounds=2,
        share=share,
    )


def main() -> None:
    rng = np.random.default_rng(0)
    mean, cov = rng.normal(size=(COUNT, 16)), spd(rng, (COUNT,), 16)
    contest(
        "Gaussians, d = 16, full",
        "numpy batched Cholesky",
        lambda rows: numpy_gaussians(mean, cov, rows),
        list(Gaussian(mean, cov)),
        MeanMap(1.0),
        10,
    )
    weights = rng.dirichlet(np.ones(8), COUNT)
    centres, var = rng.normal(size=(COUNT, 8, 4)), rng.uniform(0.2, 1.0, (COUNT, 8, 4))
    contest(
        "mixtures of 8 Gaussians, d = 4",
        "numpy, scipy logsumexp",
        lambda rows: numpy_mixtures(weights, centres, var, rows),
        list(Mixture(weights, Gaussian(centres, var))),
        MeanMap(1.0),
        50,
    )
    points, widths = rng.normal(size=(COUNT, 50, 5)), rng.uniform(0.1, 0.5, COUNT)
    contest(
        "density estimates, 50 points, d = 5",
        "scipy cdist, numpy exp",
        lambda rows: numpy_estimates(points, widths, rows),
        list(KDE(points, widths)),
        MeanMap(1.0),
        50,
    )
    A = rng.normal(size=(COUNT, 4, 4))
    A *= 0.8 / np.abs(np.linalg.eigvals(A)).max(axis=-1)[:, None, None]
    systems = LDS(
        A, rng.normal(size=(COUNT, 2, 4)), spd(rng, (COUNT,), 4), spd(rng, (COUNT,), 2), rng.normal(size=(COUNT, 4)),
        spd(rng, (COUNT,), 4),
    )  # fmt: skip
    contest(
        "linear systems, 4 states, length 50",
        "numpy batched Kalman filters",
        lambda rows: numpy_systems(systems, 50, rows),
        list(systems),
        ProbabilityProduct(1.0, length=50),
        100,
    )


if __name__ == "__main__":
    main()
