"""Affinities between mixtures and kernel density estimates against sums, quadrature and each other."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from genkern import (
    HMM,
    KDE,
    Categorical,
    Expected,
    Gaussian,
    MeanMap,
    Mixture,
    Poisson,
    Power,
    ProbabilityProduct,
    affinity,
)
from genkern.affinities.mixture import as_mixture

HOWS = [Power(0.4), Power(0.5), Power(1.0), Power(2.0), Expected(0.0), Expected(0.8), Expected(50.0)]


def mixture(seed: int, k: int, batch: tuple[int, ...] = (), d: int = 1) -> Mixture:
    r = np.random.default_rng(seed)
    weights = r.dirichlet(np.ones(k), batch)
    return Mixture(weights, Gaussian(r.normal(size=(*batch, k, d)), r.uniform(0.2, 1.5, size=(*batch, k))))


def kde(seed: int, n: int, batch: tuple[int, ...] = (), d: int = 2, weighted: bool = False) -> KDE:
    r = np.random.default_rng(seed)
    weights = r.uniform(size=(*batch, n)) if weighted else None
    return KDE(r.normal(size=(*batch, n, d)), r.uniform(0.1, 1.0, batch), weights)


def by_components(p: Any, q: Any, how: Any) -> float:
    """The definition with the power inside the sum, component by component, from single densities."""
    grid = np.linspace(-14, 14, 4001)
    step = grid[1] - grid[0]
    power = how.rho if isinstance(how, Power) else 1.0
    total = 0.0
    for k, j in itertools.product(range(len(p.weights)), range(len(q.weights))):
        left, right = (np.exp(m.components[i].log_density(grid[:, None])) for m, i in ((p, k), (q, j)))
        if isinstance(how, Power):
            value = ((left * right) ** how.rho).sum() * step
        else:
            lags = np.convolve(left, right[::-1]) * step  # density of X - Y
            gaps = (np.arange(len(lags)) - len(grid) + 1) * step
            value = (lags * np.exp(-0.5 * how.lam * gaps**2)).sum() * step
        total += (p.weights[k] * q.weights[j]) ** power * value
    return total


@pytest.mark.parametrize("how", HOWS, ids=repr)
def test_mixtures_of_gaussians(how: Any) -> None:
    p, q = mixture(0, 3), mixture(1, 2)
    assert math.exp(affinity(p, q, how)) == pytest.approx(by_components(p, q, how), rel=1e-7)
    assert affinity.explain(p, q, how).name == "component_pairs"


@pytest.mark.parametrize("how", HOWS, ids=repr)
@pytest.mark.parametrize("unit", [1e-70, 1e-9, 1e9, 1e70], ids=str)
def test_the_sum_over_components_is_that_of_their_logs(how: Any, unit: float) -> None:
    r = np.random.default_rng(8)
    parts = [
        Mixture(
            r.dirichlet(np.ones(k), 11), Gaussian(unit * r.normal(size=(11, k, 3)), unit**2 * r.uniform(size=shape))
        )
        for k, shape in ((4, (11, 4, 3)), (2, (11, 2)))
    ]
    parts[0] = Mixture(np.array([[0.3, 0.0, 0.6, 0.1]]).repeat(11, axis=0), parts[0].components)
    power = how.rho if isinstance(how, Power) else 1.0
    values = affinity(*parts, how)
    for i, j in ((0, 0), (3, 10), (10, 8)):
        p, q = parts[0][i], parts[1][j]
        with np.errstate(divide="ignore"):
            weights = power * (np.log(p.weights)[:, None] + np.log(q.weights))
        logs = weights + affinity(p.components, q.components, how)
        assert values[i, j] == pytest.approx(logsumexp(logs), rel=1e-12, abs=1e-12)
        assert affinity(p, q, how) == values[i, j]


@pytest.mark.parametrize("how", [Power(0.5), Power(1.0), Expected(1.0)], ids=repr)
@pytest.mark.parametrize("unit", [1.0, 20.0, 1e3], ids=str)
def test_far_points_do_not_underflow(how: Any, unit: float) -> None:
    r = np.random.default_rng(9)
    P, Q = KDE(unit * r.normal(size=(5, 7, 2)), np.full(5, 0.1)), KDE(unit * r.normal(size=(3, 9, 2)), np.full(3, 0.2))
    values = affinity(P, Q, how)
    pairs = affinity(as_mixture(P), as_mixture(Q), how)
    assert_allclose(values, pairs, rtol=1e-12, atol=1e-12)
    assert affinity(P[4], Q[2], how) == values[4, 2]


@pytest.mark.parametrize("how", HOWS, ids=repr)
def test_mixtures_of_symbols_and_counts(how: Any) -> None:
    p, q = Mixture([0.3, 0.7], Categorical([[0.5, 0.5], [0.9, 0.1]])), Mixture([1.0], Categorical([[0.2, 0.8]]))
    power = how.rho if isinstance(how, Power) else 1.0
    expected = sum(
        (w * v) ** power * math.exp(affinity(p.components[k], q.components[j], how))
        for (k, w), (j, v) in itertools.product(enumerate(p.weights), enumerate(q.weights))
    )
    assert math.exp(affinity(p, q, how)) == pytest.approx(expected, rel=1e-13)
    assert affinity(p, Categorical([0.2, 0.8]), how) == pytest.approx(float(affinity(p, q, how)), rel=1e-14)
    assert affinity(Categorical([0.2, 0.8]), p, how) == pytest.approx(float(affinity(q, p, how)), rel=1e-14)


def test_for_rho_one_it_is_the_product_of_the_densities() -> None:
    p, q = mixture(2, 4), mixture(3, 3)
    grid = np.linspace(-14, 14, 4001)
    value = np.exp(p.log_density(grid[:, None]) + q.log_density(grid[:, None])).sum() * (grid[1] - grid[0])
    assert math.exp(affinity(p, q, Power(1.0))) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("rho", [0.3, 0.5, 0.8, 1.5])
def test_the_power_inside_the_sum_bounds_the_power_of_the_sum(rho: float) -> None:
    p, q = mixture(2, 4), mixture(3, 3)
    grid = np.linspace(-40, 40, 20001)
    true = np.exp(rho * (p.log_density(grid[:, None]) + q.log_density(grid[:, None]))).sum() * (grid[1] - grid[0])
    ours, factor = math.exp(affinity(p, q, Power(rho))), 12 ** (1 - rho)
    assert min(true, factor * true) <= ours * (1 + 1e-9)
    assert ours <= max(true, factor * true) * (1 + 1e-9)


@pytest.mark.parametrize("how", HOWS, ids=repr)
def test_estimates_are_mixtures_of_gaussians(how: Any) -> None:
    p, q = kde(0, 5, weighted=True), kde(1, 9)
    as_mixtures = [Mixture(m.weights, Gaussian(m.points, np.full(len(m.points), m.variance))) for m in (p, q)]
    expected = float(affinity(*as_mixtures, how))
    assert affinity(p, q, how) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert affinity(p, as_mixtures[1], how) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert affinity(as_mixtures[0], q, how) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    leaf = Gaussian([0.3, -0.2], 0.5)
    alone = float(affinity(as_mixtures[0], leaf, how))
    assert affinity(p, leaf, how) == pytest.approx(alone, rel=1e-12, abs=1e-12)
    assert affinity(leaf, p, how) == pytest.approx(alone, rel=1e-12, abs=1e-12)
    names = [affinity.explain(a, b, how).name for a, b in ((p, q), (p, as_mixtures[1]), (p, leaf))]
    assert names == [
        "point_products" if isinstance(how, Power) else "point_mean_map",
        "points_and_mixture",
        "points_and_leaf",
    ]


def test_equal_weights_are_the_default_and_a_direct_sum_agrees() -> None:
    p, q = kde(4, 6), kde(5, 3)
    pairs = itertools.product(p.points, q.points)
    spread = 1 + 0.8 * (p.variance + q.variance)
    values = [math.exp(-0.4 * ((x - y) ** 2).sum() / spread) / spread for x, y in pairs]
    assert math.exp(affinity(p, q, Expected(0.8))) == pytest.approx(np.mean(values), rel=1e-13)
    points = [KDE(m.points, 0.0) for m in (p, q)]
    values = [math.exp(-0.4 * ((x - y) ** 2).sum()) for x, y in itertools.product(p.points, q.points)]
    assert math.exp(affinity(*points, Expected(0.8))) == pytest.approx(np.mean(values), rel=1e-13)


def test_estimates_without_variance_have_no_product() -> None:
    points, smooth = KDE([[0.0], [1.0]], 0.0), KDE([[0.5]], 0.3)
    assert affinity(points, smooth, Power(0.5)) == -np.inf
    density = np.exp(Gaussian(0.5, 0.3).log_density(points.points)).mean()
    assert math.exp(affinity(points, smooth, Power(1.0))) == pytest.approx(density, rel=1e-13)
    for pair, rho in (((points, points), 1.0), ((points, smooth), 2.0)):
        with pytest.raises(ValueError, match="models 0 and 0: a variance is zero"):
            affinity(*pair, Power(rho))
    with pytest.raises(ValueError, match="same number of dimensions"):
        affinity(kde(0, 3, d=1), kde(0, 3, d=2), Expected(1.0))


@pytest.mark.parametrize("how", HOWS, ids=repr)
@pytest.mark.parametrize("make", [lambda s, b: mixture(s, 3, b, 2), lambda s, b: kde(s, 10, b)])
def test_stacks_equal_pairs_and_are_symmetric(how: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = make(0, (4,)), make(1, (3,))
    table = affinity(left, right, how)
    for i, j in itertools.product(range(4), range(3)):
        assert table[i, j] == affinity(left[i], right[j], how)
    square = affinity(left, left, how)
    assert_array_equal(square, square.T)
    assert_allclose(affinity.diag(left, how), np.diagonal(square), rtol=1e-13, atol=1e-13)
    paired = affinity.block(make(2, (2, 3)), make(3, (2, 2)), how)
    assert paired.shape == (2, 3, 2)
    assert_array_equal(paired[1], affinity(make(2, (2, 3))[1], make(3, (2, 2))[1], how))
    monkeypatch.setattr("genkern.affinities.mixture.CHUNK", 7)
    assert_array_equal(affinity(left, right, how), table)


def test_far_components_do_not_underflow() -> None:
    p = Mixture([0.5, 0.5], Gaussian([[0.0], [1.0]], [1.0, 1.0]))
    q = Mixture([0.5, 0.5], Gaussian([[500.0], [501.0]], [1.0, 1.0]))
    assert float(affinity(p, q, Power(1.0))) == pytest.approx(-(499.0**2) / 4, rel=1e-4)
    far = affinity(KDE([[0.0]], 0.1), KDE([[1e4]], 0.1), Expected(1.0))
    assert float(far) == pytest.approx(-0.5e8 / 1.2 - 0.5 * math.log(1.2), rel=1e-12)
    disjoint = Mixture([1.0, 0.0], Categorical([[1.0, 0.0], [0.0, 1.0]]))
    assert affinity(disjoint, Categorical([0.0, 1.0]), Power(0.5)) == -np.inf


def test_errors_name_models_and_components() -> None:
    stack = Mixture([[0.5, 0.5]] * 2, Gaussian(np.zeros((2, 2, 1)), [[1.0, 1.0], [1.0, 0.0]]))
    with pytest.raises(ValueError, match=r"models 1 and 1: in components 1 and 1, .* singular"):
        affinity(stack, stack, Power(1.0))
    with pytest.raises(TypeError, match="no formula for Gaussian x Categorical"):
        affinity(mixture(0, 2), Categorical([0.5, 0.5]), Power(1.0))


@pytest.mark.parametrize("how", [Power(0.5), Power(1.0), Expected(0.8)], ids=repr)
def test_mixtures_as_emissions(how: Any) -> None:
    p, q = (HMM([0.4, 0.6], [[0.7, 0.3], [0.2, 0.8]], mixture(s, 2, (2,))) for s in (7, 8))
    power = how.rho if isinstance(how, Power) else 1.0
    expected = 0.0
    for path, other in itertools.product(itertools.product(range(2), repeat=2), repeat=2):
        prior = math.prod(m.start[s[0]] * m.transitions[s] for m, s in ((p, path), (q, other))) ** power
        parts = [math.exp(affinity(p.emissions[i], q.emissions[j], how)) for i, j in zip(path, other)]
        expected += prior * math.prod(parts)
    assert math.exp(affinity(p, q, how, length=2)) == pytest.approx(expected, rel=1e-12)


@given(st.integers(0, 10_000), st.floats(0.3, 2.0), st.floats(0.0, 20.0))
def test_random_mixtures_are_positive_semidefinite(seed: int, rho: float, lam: float) -> None:
    for models in (mixture(seed, 3, (5,), 2), kde(seed, 4, (5,))):
        for kernel in (ProbabilityProduct(rho), MeanMap(lam)):
            table = kernel.normalized()(models)
            assert np.linalg.eigvalsh(table)[0] > -1e-9
            assert_allclose(np.diagonal(table), 1.0)


def test_lists_may_mix_kinds_and_sizes() -> None:
    models = [mixture(0, 2, d=2), kde(1, 3), Gaussian([0.0, 0.0], 1.0), mixture(2, 4, d=2), kde(3, 5)]
    table = affinity(models, models, Expected(0.5))
    assert_array_equal(table, table.T)
    for i, j in itertools.product(range(5), repeat=2):
        assert table[i, j] == pytest.approx(float(affinity(models[i], models[j], Expected(0.5))), rel=1e-13)


def test_mixtures_of_poissons() -> None:
    p = Mixture([0.5, 0.5], Poisson([[1.0], [4.0]]))
    points = np.arange(60.0)[:, None]
    expected = np.exp(2 * p.log_density(points)).sum()
    assert math.exp(affinity(p, p, Power(1.0))) == pytest.approx(expected, rel=1e-12)
