"""Affinities within leaf families against sums and quadrature, their limits and edge cases."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats
from scipy.special import logsumexp

from genkern import (
    HMM,
    Bernoulli,
    Categorical,
    Dirichlet,
    Expected,
    Exponential,
    Gamma,
    Geometric,
    Multinomial,
    Poisson,
    Power,
    ProbabilityProduct,
    VonMises,
    affinity,
)

POWERS = [Power(0.3), Power(0.5), Power(1.0), Power(1.7)]
MEANS = [Expected(0.0), Expected(0.7), Expected(30.0)]


def value(p: Any, q: Any, how: Any, **options: Any) -> float:
    return math.exp(float(affinity(p, q, how, **options)))


def density(model: Any, point: Any) -> float:
    return float(np.exp(model.log_density(np.atleast_2d(np.asarray(point, dtype=float)))).squeeze())


def summed(p: Any, q: Any, how: Any, points: list[Any]) -> float:
    """The definition, over a list of all points that matter."""
    if isinstance(how, Power):
        return math.fsum((density(p, x) * density(q, x)) ** how.rho for x in points)
    left, right = ([density(model, x) for x in points] for model in (p, q))
    gaps = [[np.sum((np.asarray(x, dtype=float) - np.asarray(y)) ** 2) for y in points] for x in points]
    return float(np.array(left) @ np.exp(-0.5 * how.lam * np.array(gaps)) @ np.array(right))


def integrated(p: Any, q: Any, how: Any, low: float, high: float, break_at: list[float]) -> float:
    """The definition, by adaptive quadrature over one coordinate."""
    options = {"epsabs": 0, "epsrel": 1e-11, "limit": 400}
    if isinstance(how, Power):
        edges = [low, *break_at, high]
        return sum(
            integrate.quad(lambda x: (density(p, x) * density(q, x)) ** how.rho, a, b, **options)[0]
            for a, b in itertools.pairwise(edges)
        )
    raise AssertionError


COUNTS = [[float(x)] for x in range(90)]
BITS = [list(bits) for bits in itertools.product((0.0, 1.0), repeat=3)]


@pytest.mark.parametrize("how", POWERS + MEANS, ids=repr)
def test_bernoulli(how: Any) -> None:
    p, q = Bernoulli([0.2, 0.9, 0.0]), Bernoulli([0.5, 1.0, 0.3])
    assert value(p, q, how) == pytest.approx(summed(p, q, how, BITS), rel=1e-12)


@pytest.mark.parametrize("how", POWERS, ids=repr)
@pytest.mark.parametrize("pair", [(Poisson(3.0), Poisson(7.5)), (Poisson(0.0), Poisson(2.0)), (Poisson(12.0),) * 2])
def test_poisson(how: Any, pair: Any) -> None:
    assert value(*pair, how) == pytest.approx(summed(*pair, how, COUNTS), rel=1e-12)


@pytest.mark.parametrize("rho", [0.2, 0.7, 1.6])
@pytest.mark.parametrize("rates", [(3e4, 3e4), (4e4, 4.1e4), (1.2e5, 1.19e5)])
def test_products_of_large_rates_are_the_sum_as_well(rho: float, rates: Any) -> None:
    middle = math.sqrt(rates[0] * rates[1])
    x = np.arange(max(0, int(middle - 60 * math.sqrt(middle / rho))), int(middle + 60 * math.sqrt(middle / rho)))
    logs = sum(rho * stats.poisson(rate).logpmf(x) for rate in rates)
    found = float(affinity(*map(Poisson, rates), Power(rho)))
    assert found == pytest.approx(float(logsumexp(logs)), abs=2e-9)


@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_the_closed_forms_of_poisson_are_limits_of_the_sum(rho: float) -> None:
    p, q = Poisson([[4000.0], [0.3], [55.0]]), Poisson([[4100.0], [1e-9], [2.0]])
    near = affinity(p, q, Power(rho * (1 + 1e-9)))
    assert_allclose(affinity(p, q, Power(rho)), near, rtol=1e-6)


@pytest.mark.parametrize("how", POWERS, ids=repr)
def test_geometric(how: Any) -> None:
    p, q = Geometric(0.4), Geometric(0.7)
    points = [[float(x)] for x in range(400)]
    assert value(p, q, how) == pytest.approx(summed(p, q, how, points), rel=1e-12)
    assert value(Geometric(1.0), q, how) == pytest.approx(0.7**how.rho, rel=1e-14)


@pytest.mark.parametrize("how", POWERS, ids=repr)
def test_exponential_and_gamma(how: Any) -> None:
    p, q = Exponential(0.7), Exponential(2.5)
    assert value(p, q, how) == pytest.approx(integrated(p, q, how, 1e-12, 60.0 / how.rho, [1.0, 5.0]), rel=1e-8)
    assert value(Gamma(1.0, 0.7), Gamma(1.0, 2.5), how) == pytest.approx(value(p, q, how), rel=1e-13)
    p, q = Gamma(2.5, 0.8), Gamma(1.4, 3.0)
    assert value(p, q, how) == pytest.approx(integrated(p, q, how, 1e-12, 90.0 / how.rho, [1.0, 5.0]), rel=1e-8)


@pytest.mark.parametrize("lam", [1e-6, 0.7, 400.0])
def test_the_mean_map_of_exponentials(lam: float) -> None:
    p, q = Exponential(0.7), Exponential(2.5)

    # Gauss-Legendre in both coordinates, in x < y and x > y apart, where the integrand is smooth.
    nodes, weights = np.polynomial.legendre.leggauss(400)

    def below(first: Exponential, second: Exponential) -> float:  # over x = y + d, d > 0
        u = 0.5 + 0.5 * nodes
        d, y = 90.0 * u**4, 90.0 * u**2
        slopes = np.outer(180.0 * u**3 * weights, 90.0 * u * weights)
        points = (y + d[:, None]).reshape(-1, 1)
        logs = first.log_density(points).reshape(400, 400) + second.log_density(y[:, None])
        return float((np.exp(logs - 0.5 * lam * d[:, None] ** 2) * slopes).sum())

    expected = below(p, q) + below(q, p)
    assert value(p, q, Expected(lam)) == pytest.approx(expected, rel=1e-7)
    assert value(p, q, Expected(0.0)) == 1.0


@pytest.mark.parametrize("how", POWERS, ids=repr)
def test_dirichlet(how: Any) -> None:
    p, q = Dirichlet([2.0, 3.5]), Dirichlet([1.2, 1.0])

    def product(x: float) -> float:
        return (density(p, [x, 1.0 - x]) * density(q, [x, 1.0 - x])) ** how.rho

    assert value(p, q, how) == pytest.approx(integrate.quad(product, 1e-9, 1 - 1e-9, epsrel=1e-11)[0], rel=1e-6)
    p, q = Dirichlet([2.0, 3.0, 1.5]), Dirichlet([1.5, 2.0, 2.0])
    nodes, weights = np.polynomial.legendre.leggauss(120)
    # The square covers the triangle by maps that are flat at its edges, where the densities are not smooth.
    u, v = np.meshgrid(0.5 + 0.5 * nodes, 0.5 + 0.5 * nodes, indexing="ij")
    smooth, slope = u * u * (3 - 2 * u), 6 * u * (1 - u)
    smooth2, slope2 = v * v * (3 - 2 * v), 6 * v * (1 - v)
    x, y = smooth, (1 - smooth) * smooth2
    points = np.stack([x, y, np.maximum(1 - x - y, 1e-300)], axis=-1).reshape(-1, 3)
    products = np.exp(how.rho * (p.log_density(points) + q.log_density(points))).reshape(x.shape)
    expected = (products * (1 - x) * slope * slope2 * np.outer(weights, weights)).sum() / 4
    assert value(p, q, how) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("how", POWERS + MEANS, ids=repr)
@pytest.mark.parametrize("kappas", [(2.0, 0.7), (0.0, 3.0), (40.0, 25.0)])
def test_von_mises(how: Any, kappas: tuple[float, float]) -> None:
    p, q = VonMises(0.4, kappas[0]), VonMises(-2.0, kappas[1])
    grid = 2 * np.pi * np.arange(2000) / 2000
    left, right = (np.exp(model.log_density(grid[:, None])) for model in (p, q))
    if isinstance(how, Power):
        expected = ((left * right) ** how.rho).mean() * 2 * np.pi
    else:
        kernel = np.exp(-how.lam * (1 - np.cos(grid[:, None] - grid)))
        expected = left @ kernel @ right * (2 * np.pi / 2000) ** 2
    assert value(p, q, how) == pytest.approx(expected, rel=1e-10)


def test_concentrated_angles_far_apart_keep_their_digits() -> None:
    p, q = VonMises(0.0, 3000.0), VonMises(np.pi, 3000.0)
    near_points = affinity(VonMises(0.0, 1e9), VonMises(np.pi, 1e9), Expected(50.0))
    assert near_points == pytest.approx(-100.0, rel=1e-4)
    assert -100.0 < float(affinity(p, q, Expected(50.0))) < -95.0
    assert float(affinity(p, q, Power(0.5))) == pytest.approx(-3000.0, rel=0.01)


# --- multinomials


def rows(m: int, total: int) -> list[list[float]]:
    return [list(map(float, row)) for row in itertools.product(range(total + 1), repeat=m) if sum(row) == total]


P3, Q3 = [0.5, 0.3, 0.2], [0.1, 0.9, 0.0]


@pytest.mark.parametrize("how", POWERS, ids=repr)
@pytest.mark.parametrize("total", [0, 1, 4])
def test_multinomials_of_fixed_total(how: Any, total: int) -> None:
    p, q = (Multinomial(probs, total, ordered=False) for probs in (P3, Q3))
    assert value(p, q, how) == pytest.approx(summed(p, q, how, rows(3, total)), rel=1e-12)
    p, q = (Multinomial(probs, total) for probs in (P3, Q3))
    lists = itertools.product(range(3), repeat=total)
    expected = math.fsum(math.prod((P3[x] * Q3[x]) ** how.rho for x in draws) for draws in lists)
    assert value(p, q, how) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("how", POWERS, ids=repr)
@pytest.mark.parametrize("laws", [(Poisson(1.3), Poisson(2.0)), (Geometric(0.6), Geometric(0.7))])
@pytest.mark.parametrize("ordered", [True, False])
def test_multinomials_of_random_total(how: Any, laws: Any, ordered: bool) -> None:
    p, q = Multinomial(P3, laws[0], ordered=ordered), Multinomial(Q3, laws[1], ordered=ordered)
    terms = []
    for total in range(60):
        weights = (density(laws[0], [total]) * density(laws[1], [total])) ** how.rho
        fixed = (Multinomial(probs, total, ordered=ordered) for probs in (P3, Q3))
        terms.append(weights * value(*fixed, how))
    assert value(p, q, how) == pytest.approx(math.fsum(terms), rel=1e-9)


def test_rows_of_counts_with_very_long_geometric_totals_are_refused() -> None:
    p = Multinomial(P3, Geometric(1e-3), ordered=False)
    with pytest.raises(ValueError, match=r"need totals up to \d+; 4096 at most"):
        affinity(p, p, Power(1.0))
    assert affinity(p, p, Power(0.5)) == pytest.approx(0.0, abs=1e-12)


def test_poisson_totals_are_independent_poisson_counts() -> None:
    p, q = (Multinomial(probs, Poisson(5.0), ordered=False) for probs in (P3, Q3))
    for how in POWERS:
        counts = (Poisson(5.0 * np.array(probs)) for probs in (P3, Q3))
        assert float(affinity(p, q, how)) == pytest.approx(float(affinity(*counts, how)), rel=1e-12)


def test_multinomials_must_be_comparable() -> None:
    p = Multinomial(P3, 3)
    for q, text in [
        (Multinomial([0.5, 0.5], 3), "same outcomes"),
        (Multinomial(Q3, 4), "same total"),
        (Multinomial(Q3), "without a total"),
        (Multinomial(Q3, Poisson(3.0)), "same family"),
        (Multinomial(Q3, 3, ordered=False), "is ordered and the other is not"),
    ]:
        with pytest.raises(ValueError, match=text):
            affinity(p, q, Power(0.5))


def test_lists_of_multinomials_with_different_laws() -> None:
    models = [Multinomial(P3, Poisson(2.0)), Multinomial(Q3, Poisson(2.0)), Multinomial(Q3, Poisson(3.0))]
    table = affinity(models, models, Power(0.5))
    for i, j in itertools.product(range(3), repeat=2):
        assert table[i, j] == pytest.approx(float(affinity(models[i], models[j], Power(0.5))), rel=1e-14)


def test_an_infinite_sum_over_totals_is_refused() -> None:
    p = Multinomial(np.full(50, 0.02), Geometric(0.1))
    with pytest.raises(ValueError, match=r"models 0 and 0: the sum over totals is infinite for rho = 0\.2"):
        affinity(p, p, Power(0.2))


# --- what all of them share

STACKS = {
    "Bernoulli": (lambda r: Bernoulli(r.uniform(size=(4, 3))), (*POWERS, *MEANS)),
    "Poisson": (lambda r: Poisson(r.exponential(4.0, size=(4, 3))), POWERS),
    "Gamma": (lambda r: Gamma(r.uniform(1.0, 4.0, (4, 3)), r.uniform(0.2, 3.0, (4, 3))), POWERS),
    "Exponential": (lambda r: Exponential(r.uniform(0.2, 3.0, (4, 3))), (*POWERS, *MEANS)),
    "Geometric": (lambda r: Geometric(r.uniform(0.2, 1.0, (4, 3))), POWERS),
    "Dirichlet": (lambda r: Dirichlet(r.uniform(1.0, 5.0, (4, 3))), POWERS),
    "VonMises": (lambda r: VonMises(r.uniform(-4, 4, (4, 3)), r.exponential(5.0, (4, 3))), (*POWERS, *MEANS)),
    "Multinomial": (lambda r: Multinomial(r.dirichlet([1.0] * 3, 4), 5, ordered=False), POWERS),
}
PAIRS = [(name, how) for name, (_, hows) in STACKS.items() for how in hows]


@pytest.mark.parametrize(("name", "how"), PAIRS, ids=[f"{name}-{how!r}" for name, how in PAIRS])
def test_stacks_are_symmetric_and_positive(name: str, how: Any) -> None:
    stack = STACKS[name][0](np.random.default_rng(3))
    logs = affinity(stack, stack, how)
    assert_array_equal(logs, logs.T)
    copy = STACKS[name][0](np.random.default_rng(3))
    assert_allclose(affinity(stack, copy, how), logs, rtol=1e-13, atol=1e-13)
    assert_array_equal(affinity(copy, stack, how).T, affinity(stack, copy, how))
    for i, j in itertools.product(range(4), repeat=2):
        assert logs[i, j] == pytest.approx(float(affinity(stack[i], stack[j], how)), rel=1e-13, abs=1e-13)
    assert_allclose(affinity.diag(stack, how), np.diagonal(logs), rtol=1e-13, atol=1e-13)
    top = np.diagonal(logs)
    kernel = np.exp(logs - 0.5 * top[:, None] - 0.5 * top)
    assert np.linalg.eigvalsh(kernel)[0] > -1e-10
    if isinstance(how, Power) and how.rho == 0.5:
        assert_allclose(top, 0.0, atol=1e-12)


@given(st.integers(0, 10_000), st.sampled_from(sorted(STACKS)), st.floats(0.5, 3.0))
def test_products_of_random_members_are_positive_semidefinite(seed: int, name: str, rho: float) -> None:
    kernel = ProbabilityProduct(rho).normalized()(STACKS[name][0](np.random.default_rng(seed)))
    assert np.linalg.eigvalsh(kernel)[0] > -1e-9
    assert_allclose(np.diagonal(kernel), 1.0)


def test_a_chunk_does_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    from genkern.affinities import families

    stack = STACKS["VonMises"][0](np.random.default_rng(0))
    before = affinity(stack, stack[:2], Expected(3.0))
    monkeypatch.setattr(families, "CHUNK", 7)
    assert_array_equal(affinity(stack, stack[:2], Expected(3.0)), before)


def test_infinite_products_name_the_pair() -> None:
    for stack in (Gamma([[3.0], [0.3]], [[1.0], [1.0]]), Dirichlet([[3.0, 1.0], [0.3, 1.0]])):
        with pytest.raises(ValueError, match=r"models 1 and 1: .* so small that the product with rho = 1 is infinite"):
            affinity(stack, stack, Power(1.0))
        assert np.isfinite(affinity(stack, stack, Power(0.5))).all()


def test_dimensions_must_agree() -> None:
    with pytest.raises(ValueError, match=r"same number of dimensions\. Got 1 and 2"):
        affinity(Poisson(1.0), Poisson([1.0, 2.0]), Power(0.5))


@pytest.mark.parametrize("how", [Power(0.5), Power(1.0)], ids=repr)
def test_families_serve_as_emissions(how: Any) -> None:
    weights = np.array([[0.6, 0.4], [0.2, 0.8]])
    p, q = (HMM([0.5, 0.5], weights, Poisson([[a], [b]])) for a, b in ((1.0, 4.0), (2.0, 6.0)))
    expected = 0.0
    for path in itertools.product(range(2), repeat=2):
        for other in itertools.product(range(2), repeat=2):
            prior = (0.5 * weights[path]) ** how.rho * (0.5 * weights[other]) ** how.rho
            parts = [value(p.emissions[i], q.emissions[j], how) for i, j in zip(path, other)]
            expected += prior * math.prod(parts)
    assert value(p, q, how, length=2) == pytest.approx(expected, rel=1e-12)


def test_a_one_draw_multinomial_is_categorical() -> None:
    for how in POWERS:
        one = affinity(Multinomial(P3, 1), Multinomial(Q3, 1), how)
        assert one == pytest.approx(float(affinity(Categorical(P3), Categorical(Q3), how)), rel=1e-14)


FORMULAS = {
    "Bernoulli": "bernoulli",
    "Poisson": "poisson",
    "Gamma": "gamma",
    "Exponential": "exponential",
    "Geometric": "geometric",
    "Dirichlet": "dirichlet",
    "VonMises": "von_mises",
    "Multinomial": "multinomial",
}


@pytest.mark.parametrize(("name", "how"), PAIRS, ids=[f"{name}-{how!r}" for name, how in PAIRS])
def test_the_formula_in_charge_is_the_family_s_own(name: str, how: Any) -> None:
    stack = STACKS[name][0](np.random.default_rng(0))
    found = affinity.explain(stack[0], stack[1], how)
    assert found.name == f"{FORMULAS[name]}_{'product' if isinstance(how, Power) else 'mean_map'}"
    assert found.kind == "exact"


def test_a_sharp_mean_map_is_the_product_with_power_one() -> None:
    """Of counts in the limit itself; of densities up to (lambda / 2 pi)^(d/2): the circle is locally flat."""
    p, q = Bernoulli([0.2, 0.9]), Bernoulli([0.5, 0.3])
    assert affinity(p, q, Expected(200.0)) == pytest.approx(float(affinity(p, q, Power(1.0))), rel=1e-12)
    for p, q in ((Exponential(0.7), Exponential(2.0)), (VonMises(0.4, 2.0), VonMises(-0.3, 1.0))):
        scaled = float(affinity(p, q, Expected(1e6))) + 0.5 * math.log(1e6 / (2 * math.pi))
        assert scaled == pytest.approx(float(affinity(p, q, Power(1.0))), abs=5e-3)
