"""Affinities between switching systems against dense joint laws of all paths, and their estimates."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from genkern import LDS, Expected, Gaussian, MeanMap, Power, ProbabilityProduct, Store, SwitchingLDS, affinity
from genkern.affinities import switching
from genkern.core.kalman.paths import path_densities

HOWS = [Power(0.6), Power(1.0), Expected(0.0), Expected(0.8)]


@pytest.fixture(autouse=True)
def _fresh_draws() -> None:
    """Tests change N_PATHS, which the paths that are kept do not show."""
    for kept in (switching._drawn, switching._log_determinants):
        kept.cache_clear()


def model(seed: int, regimes: int, n: int = 2, d: int = 1, batch: tuple[int, ...] = ()) -> SwitchingLDS:
    r = np.random.default_rng(seed)
    shape = (*batch, regimes)
    systems = LDS(
        0.5 * r.normal(size=(*shape, n, n)),
        r.normal(size=(*shape, d, n)),
        r.uniform(0.2, 1.0, (*shape, n)),
        r.uniform(0.2, 1.0, (*shape, d)),
        r.normal(size=(*shape, n)),
        r.uniform(0.2, 1.0, (*shape, n)),
        r.normal(size=(*shape, d)),
    )
    return SwitchingLDS(r.dirichlet(np.ones(regimes), batch), r.dirichlet(np.ones(regimes), shape), systems)


def path_laws(slds: SwitchingLDS, length: int) -> list[tuple[float, Gaussian]]:
    """All paths of regimes, with probability and the joint law of the observations, written out."""
    found = []
    Q, R, P = slds.systems.matrices()
    n, d = slds.n_states, slds.n_channels
    for path in itertools.product(range(slds.n_regimes), repeat=length):
        weight = slds.start[path[0]] * math.prod(slds.transitions[pair] for pair in itertools.pairwise(path))
        # Every state is a linear function of the noises (initial, then one per step).
        maps, mean = [], slds.systems.initial_mean[path[0]]
        current, means = np.eye(n, n * length), [mean]
        maps.append(current)
        for t in range(1, length):
            A = slds.systems.transition[path[t]]
            current = A @ current
            current[:, n * t : n * t + n] += np.eye(n)
            mean = A @ mean
            maps.append(current)
            means.append(mean)
        noise = np.zeros((n * length, n * length))
        for t, q in enumerate(path):
            noise[n * t : n * t + n, n * t : n * t + n] = P[q] if t == 0 else Q[q]
        seen = np.concatenate([slds.systems.observation[q] @ m for q, m in zip(path, maps)])
        cov = seen @ noise @ seen.T
        for t, q in enumerate(path):
            cov[d * t : d * t + d, d * t : d * t + d] += R[q]
        looks = [slds.systems.observation[q] @ m + slds.systems.offset[q] for q, m in zip(path, means)]
        law = Gaussian(np.concatenate(looks), cov)
        found.append((weight, law))
    return found


@pytest.mark.parametrize("how", HOWS, ids=repr)
@pytest.mark.parametrize("length", [1, 3])
def test_all_paths(how: Any, length: int) -> None:
    p, q = model(0, 2), model(1, 3, n=1)
    expected = sum(
        w * v * math.exp(affinity(left, right, how))
        for (w, left), (v, right) in itertools.product(path_laws(p, length), path_laws(q, length))
    )
    assert math.exp(affinity(p, q, how, length)) == pytest.approx(expected, rel=1e-9)
    assert affinity.explain(p, q, how, length).name == "all_paths"


def test_one_regime_is_a_linear_system() -> None:
    p, q = model(2, 1), model(3, 1)
    for how in HOWS:
        plain = float(affinity(p.systems[0], q.systems[0], how, 30))
        for method in ("exact", "all-pairs", "paired"):
            assert float(affinity(p, q, how, 30, method=method)) == pytest.approx(plain, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("how", [Power(1.0), Expected(0.8)], ids=repr)
def test_draws_estimate_the_sum(how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switching, "N_PATHS", 600)
    p, q = model(0, 2), model(1, 2)
    exact = math.exp(affinity(p, q, how, 4))
    assert math.exp(affinity(p, q, how, 4, method="all-pairs")) == pytest.approx(exact, rel=0.06)
    assert math.exp(affinity(p, q, how, 4, method="paired")) == pytest.approx(exact, rel=0.12)
    own = math.exp(affinity(p, p, how, 4))
    assert math.exp(affinity(p, p, how, 4, method="all-pairs")) == pytest.approx(own, rel=0.06)
    assert math.exp(affinity(p, p, how, 4, method="paired")) > 1.05 * own  # as the docstring says


@pytest.mark.parametrize("method", ["all-pairs", "paired"])
def test_estimates_are_positive_semidefinite_and_repeat(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switching, "N_PATHS", 5)
    stack = model(4, 2, batch=(5,))
    logs = affinity(stack, stack, Power(1.0), 6, method=method)
    assert_array_equal(logs, logs.T)
    assert_allclose(affinity(stack, stack[:], Power(1.0), 6, method=method), logs, rtol=1e-12)
    top = np.diagonal(logs)
    assert np.linalg.eigvalsh(np.exp(logs - 0.5 * top[:, None] - 0.5 * top))[0] > -1e-10
    found = affinity.explain(stack[0], stack[1], Power(1.0), 6, method=method)
    assert found.kind == "sampled"
    assert 0.01 < found.standard_error < 3.0
    assert f"standard error {found.standard_error:.2g}" in str(found)


@pytest.mark.parametrize("method", ["all-pairs", "paired"])
def test_more_paths_come_nearer_and_seeds_draw_others(method: str) -> None:
    p, q = model(0, 2), model(1, 2)
    exact, plain = float(affinity(p, q, Power(1.0), 4)), affinity(p, q, Power(1.0), 4, method=method)
    assert affinity(p, q, Power(1.0, n_draws=32), 4, method=method) == plain
    values = [float(affinity(p, q, Power(1.0, 64, seed), 4, method=method)) for seed in range(20)]
    assert len(set(values)) == 20
    assert (
        abs(np.mean(np.exp(values)) / math.exp(exact) - 1.0) < 4.0 * np.std(np.exp(values)) / math.exp(exact) / 20**0.5
    )
    few, many = (affinity.explain(p, q, Power(1.0, n, 3), 4, method).standard_error for n in (20, 2000))
    assert many < 0.2 * few
    kernel = ProbabilityProduct(1.0, 4, method, n_draws=64, seed=7)
    assert kernel.log([p], [q])[0, 0] == values[7]
    assert MeanMap(1.0, 4, method, n_draws=64, seed=7)([p]) != MeanMap(1.0, 4, method, n_draws=64)([p])
    with pytest.raises(ValueError, match="'n_draws' parameter of Power"):
        affinity(p, q, Power(1.0, 0), 4, method=method)


@pytest.mark.parametrize("method", ["all-pairs", "paired"])
def test_the_error_claimed_is_the_error_made(method: str) -> None:
    scores = []
    for seed in range(0, 40, 2):
        p, q = model(seed, 2), model(seed + 1, 2)
        error = affinity.explain(p, q, Power(1.0), 4, method=method).standard_error
        gap = float(affinity(p, q, Power(1.0), 4, method=method)) - float(affinity(p, q, Power(1.0), 4))
        scores.append(gap / error)
    assert 0.4 < np.std(scores) < 2.0
    assert abs(np.mean(scores)) < 1.0


def test_long_sequences_name_the_other_methods() -> None:
    p = model(0, 2)
    with pytest.raises(ValueError, match=r"pairs of paths of length 20; .* method='all-pairs'.*'paired'"):
        affinity(p, p, Power(1.0), 20)
    assert np.isfinite(affinity(p, p, Power(1.0), 20, method="all-pairs"))


def test_wrong_pairs() -> None:
    with pytest.raises(ValueError, match=r"same number of channels\. Got 1 and 2"):
        affinity(model(0, 2), model(0, 2, d=2), Power(1.0), 2)
    flat = SwitchingLDS([1.0], [[1.0]], LDS.stack([LDS([[1.0]], [[1.0]], 0.0, 0.0, [0.0], 0.0)]))
    with pytest.raises(ValueError, match="models 1 and 1: an innovation covariance is singular"):
        affinity([model(0, 1, n=1), flat], [model(0, 1, n=1), flat], Power(1.0), 2)


# --- many pairs, and paths that begin alike, at a time


@pytest.mark.parametrize("method", ["exact", "all-pairs", "paired"])
@pytest.mark.parametrize("how", HOWS, ids=repr)
def test_blocks_of_pairs_are_pairs_one_by_one(how: Any, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switching, "N_PATHS", 4)
    P, Q = model(5, 2, batch=(2, 3)), model(6, 3, batch=(2, 4))
    blocks = affinity.block(P, Q, how, 3, method=method)
    for g, i, j in np.ndindex(2, 3, 4):
        assert affinity(P[g, i], Q[g, j], how, 3, method=method) == blocks[g, i, j]
    for chunk in (1, 5000):
        monkeypatch.setattr(switching, "CHUNK", chunk)
        assert_array_equal(affinity.block(P, Q, how, 3, method=method), blocks)


def test_paths_that_begin_alike_are_what_they_are_alone() -> None:
    systems = model(7, 3, n=2, d=2).systems.systems()
    paths = np.random.default_rng(0).integers(0, 3, (200, 5))
    values = -systems.offset[paths]
    together = np.stack(path_densities(systems, paths, values))
    pairs = zip(paths[:, None], values[:, None])
    alone = np.stack([np.stack(path_densities(systems, *pair))[:, 0] for pair in pairs], axis=1)
    assert_array_equal(together, alone)
    other = values + np.random.default_rng(1).integers(0, 2, values.shape)  # the same path, and other observations
    found = np.stack(path_densities(systems, np.zeros_like(paths), other))
    pairs = zip(np.zeros_like(paths)[:, None], other[:, None])
    assert_array_equal(found, np.stack([np.stack(path_densities(systems, *pair))[:, 0] for pair in pairs], axis=1))
    for path, found, square in zip(paths[:20], together[0], together[3]):  # the plain filter
        mean, cov, total, squares = systems.mean[path[0]], systems.cov[path[0]], 0.0, 0.0
        for t, q in enumerate(path):
            if t:
                mean, cov = systems.A[q] @ mean, systems.A[q] @ cov @ systems.A[q].T + systems.Q[q]
            gap, S = -systems.offset[q] - systems.C[q] @ mean, systems.C[q] @ cov @ systems.C[q].T + systems.R[q]
            total -= 0.5 * (np.linalg.slogdet(2.0 * np.pi * S)[1] + gap @ np.linalg.solve(S, gap))
            squares += gap @ np.linalg.solve(S, gap)
            gain = cov @ systems.C[q].T @ np.linalg.inv(S)
            mean, cov = mean + gain @ gap, cov - gain @ systems.C[q] @ cov
        assert found == pytest.approx(total, rel=1e-11)
        assert square == pytest.approx(squares, rel=1e-11)


@pytest.mark.parametrize("method", ["exact", "all-pairs", "paired"])
def test_powers_share_their_filters(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        return path_densities(*arguments)

    monkeypatch.setattr(switching, "FILTERED", Store())
    monkeypatch.setattr(switching, "path_densities", counted)
    models = [model(seed, 2, d=2) for seed in range(3)]
    others = [*models, model(3, 2, d=2)]
    affinity(models, others, Power(1.0), 4, method=method)
    first = len(calls)
    assert first > 0
    powers = (0.1, 0.6, 3.0)
    shared = [affinity(models, others, Power(rho), 4, method=method) for rho in powers]
    assert len(calls) == first + len(others)  # each model's own determinants, once
    for rho, found in zip(powers, shared):
        monkeypatch.setattr(switching, "FILTERED", Store())
        assert_allclose(found, affinity(models, others, Power(rho), 4, method=method), rtol=1e-13)
