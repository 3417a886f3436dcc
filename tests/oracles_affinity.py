"""Affinities by brute force: sums over all symbols, sequences and state paths, and dense grids."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import multivariate_normal, norm

from genkern.affinities import Expected, Power
from genkern.models.families.categorical import Categorical
from genkern.models.families.gaussian import Gaussian
from genkern.models.hmm.model import HMM

REACH = 12.0  # standard deviations that a grid covers


def rbf(x: Any, y: Any, lam: float) -> float:
    """exp(-lam/2 |x - y|^2)."""
    return math.exp(-0.5 * lam * float(np.sum((np.asarray(x) - np.asarray(y)) ** 2)))


def categorical(p: Categorical, q: Categorical, how: Any) -> float:
    """Sum over symbols, or over pairs of symbols as one-hot vectors."""
    a, b = p.probs, q.probs
    if isinstance(how, Power):
        return math.fsum((x * y) ** how.rho for x, y in zip(a, b))
    one_hot = np.eye(len(a))
    return math.fsum(a[i] * b[j] * rbf(one_hot[i], one_hot[j], how.lam) for i in range(len(a)) for j in range(len(b)))


def gaussian(p: Gaussian, q: Gaussian, how: Any, points: int = 1501) -> float:
    """Sums over a dense grid in one dimension; the functions are smooth, so the error is near rounding."""
    (m, s), (n, t) = ((float(g.mean[0]), math.sqrt(float(np.ravel(g.cov)[0]))) for g in (p, q))
    reach = REACH / math.sqrt(min(1.0, getattr(how, "rho", 1.0)))
    axis = np.linspace(min(m - reach * s, n - reach * t), max(m + reach * s, n + reach * t), points)
    left, right, cell = norm.pdf(axis, m, s), norm.pdf(axis, n, t), axis[1] - axis[0]
    if isinstance(how, Power):
        return float(((left * right) ** how.rho).sum() * cell)
    return float(left @ np.exp(-0.5 * how.lam * (axis[:, None] - axis) ** 2) @ right * cell**2)


def gaussian_plane(p: Gaussian, q: Gaussian, rho: float, width: float = 14.0, points: int = 701) -> float:
    """The probability product of two Gaussians in the plane on a dense grid; smooth, so the error is tiny."""
    axis = np.linspace(-width, width, points)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    logs = [multivariate_normal(g.mean, covariance(g)).logpdf(grid) for g in (p, q)]
    return float(np.exp(rho * (logs[0] + logs[1])).sum() * (axis[1] - axis[0]) ** 2)


def covariance(model: Gaussian) -> np.ndarray:
    """The covariance matrix of one Gaussian of any kind."""
    d = len(model.mean)
    kinds: dict[str, Callable[[Any], np.ndarray]] = {
        "isotropic": lambda v: v * np.eye(d),
        "diagonal": np.diag,
        "full": np.asarray,
    }
    return kinds[model.covariance_type](model.cov)


def path_weight(model: HMM, path: tuple[int, ...]) -> float:
    """Start, transitions and end weight of a state path."""
    weight = float(model.start[path[0]])
    for i, j in itertools.pairwise(path):
        weight *= float(model.transitions[i, j])
    return weight if model.final is None else weight * float(model.final[path[-1]])


def paths(model: HMM, length: int) -> list[tuple[int, ...]]:
    """All state paths."""
    return list(itertools.product(range(model.n_states), repeat=length))


def hmm_symbols(p: HMM, q: HMM, how: Any, length: int) -> float:
    """Sum over all sequences of symbols and all pairs of state paths."""
    m = p.emissions.probs.shape[-1]
    sequences = list(itertools.product(range(m), repeat=length))

    def joint(model: HMM, x: tuple[int, ...], path: tuple[int, ...]) -> float:
        emitted = math.prod(float(model.emissions.probs[s, k]) for s, k in zip(path, x))
        return path_weight(model, path) * emitted

    if isinstance(how, Power):
        return math.fsum(
            (joint(p, x, a) * joint(q, x, b)) ** how.rho
            for x in sequences
            for a in paths(p, length)
            for b in paths(q, length)
        )
    left = [math.fsum(joint(p, x, a) for a in paths(p, length)) for x in sequences]
    right = [math.fsum(joint(q, x, b) for b in paths(q, length)) for x in sequences]
    one_hot = np.eye(m)
    return math.fsum(
        left[i] * right[j] * rbf(one_hot[list(x)], one_hot[list(y)], how.lam)
        for i, x in enumerate(sequences)
        for j, y in enumerate(sequences)
    )


def hmm_numbers(p: HMM, q: HMM, how: Any, length: int) -> float:
    """Sum over all pairs of state paths of products of grid sums; one-dimensional Gaussian emissions."""
    power = how.rho if isinstance(how, Power) else 1.0
    table = {
        (i, j): gaussian(p.emissions[i], q.emissions[j], how) for i in range(p.n_states) for j in range(q.n_states)
    }
    return math.fsum(
        (path_weight(p, a) * path_weight(q, b)) ** power * math.prod(table[s] for s in zip(a, b))
        for a in paths(p, length)
        for b in paths(q, length)
    )


def all_lengths(p: HMM, q: HMM, how: Any, longest: int) -> float:
    """The sum of ``hmm_symbols`` over lengths up to a longest one; the caller sees to it that the rest is small."""
    return math.fsum(hmm_symbols(p, q, how, length) for length in range(1, longest + 1))


# --- random models


def random_categorical(rng: np.random.Generator, batch: tuple[int, ...] = (), m: int = 3) -> Categorical:
    return Categorical(rng.dirichlet(np.ones(m), batch))


def random_gaussian(
    rng: np.random.Generator, batch: tuple[int, ...] = (), d: int = 1, kind: str = "diagonal"
) -> Gaussian:
    mean = rng.normal(size=(*batch, d))
    if kind == "full":
        root = rng.normal(size=(*batch, d, d + 2))
        return Gaussian(mean, root @ np.swapaxes(root, -1, -2) / d)
    return Gaussian(mean, rng.uniform(0.3, 2.0, size=batch if kind == "isotropic" else (*batch, d)))


def random_hmm(
    rng: np.random.Generator,
    n: int = 2,
    emissions: Any = None,
    final: str | None = None,
    stop: float | None = None,
) -> HMM:
    """An HMM of n states, by default over three symbols; final is "end", "stop" or None."""
    emissions = random_categorical(rng, (n,)) if emissions is None else emissions
    steps, start = rng.dirichlet(np.ones(n), n), rng.dirichlet(np.ones(n))
    if final == "stop":
        halts = rng.uniform(0.2, 0.6, n) if stop is None else np.full(n, stop)
        return HMM(start, steps * (1 - halts)[:, None], emissions, stop=halts)
    return HMM(start, steps, emissions, end=rng.dirichlet(np.ones(n)) if final == "end" else None)


HOWS = [Power(0.5), Power(1.0), Power(1.7), Expected(0.0), Expected(0.8), Expected(30.0)]
