"""Products of predictive distributions against enumeration, high precision and quadrature; documents by length."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import nbinom
from scipy.stats import t as student

from genkern import (
    Categorical,
    DirichletMultinomial,
    Gaussian,
    Gram,
    Multinomial,
    MultinomialEstimator,
    NaturalFamily,
    NegativeBinomial,
    Poisson,
    Power,
    ProbabilityProduct,
    StudentT,
    affinity,
)

RHOS = (0.3, 0.5, 1.0, 1.7)


def value(*args: Any, **options: Any) -> float:
    return math.exp(float(affinity(*args, **options)))


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize(
    ("first", "second"),
    [((0.4, 0.3), (2.5, 0.6)), ((30.0, 0.2), (25.0, 0.25)), ((1.0, 1.0), (3.0, 0.5)), ((0.01, 0.02), (0.02, 0.01))],
)
def test_negative_binomials_equal_plain_sums(
    rho: float, first: tuple[float, float], second: tuple[float, float]
) -> None:
    x = np.arange(20_000)
    with np.errstate(divide="ignore"):
        logs = nbinom.logpmf(x, *first) + nbinom.logpmf(x, *second)
    found = float(affinity(NegativeBinomial(*first), NegativeBinomial(*second), Power(rho)))
    assert found == pytest.approx(float(np.logaddexp.reduce(rho * logs)), rel=1e-10, abs=1e-11)


@pytest.mark.parametrize("prob", [1e-10, 1e-300])
def test_sums_of_too_many_terms_are_refused(prob: float) -> None:
    wide = NegativeBinomial(np.array([[1.3], [2.0]]), np.array([[0.5], [prob]]))
    with pytest.raises(ValueError, match=r"more than 1e\+08 terms"):
        affinity(wide, wide, Power(0.5))
    with pytest.raises(ValueError, match=r"more than 1e\+08 terms"):
        affinity(NegativeBinomial([1e18], [0.5]), wide[0], Power(0.5))


def test_negative_binomials_tend_to_poisson_and_add_over_coordinates() -> None:
    rate = np.array([3.0, 7.0])
    size = np.array([1e9, 1e9])
    p, q = (NegativeBinomial(size, size / (size + rate * f)) for f in (1.0, 1.3))
    poisson = affinity(Poisson(rate), Poisson(1.3 * rate), Power(0.8))
    assert float(affinity(p, q, Power(0.8))) == pytest.approx(float(poisson), rel=1e-6)
    parts = [NegativeBinomial(*pair) for pair in ((2.0, 0.3), (4.0, 0.5))]
    both = NegativeBinomial([2.0, 4.0], [0.3, 0.5])
    assert float(affinity(both, both, Power(0.7))) == pytest.approx(
        sum(float(affinity(part, part, Power(0.7))) for part in parts), rel=1e-13
    )


def all_rows(m: int, total: int) -> list[tuple[int, ...]]:
    return [row for row in itertools.product(range(total + 1), repeat=m) if sum(row) == total]


def summed(p: Any, q: Any, rho: float, total: int, ordered: bool) -> float:
    """The sum over rows, or over all lists of draws, by likelihoods."""
    rows = all_rows(p.width, total)
    logs = p.log_prob(np.array(rows)) + q.log_prob(np.array(rows))
    often = [math.factorial(total) / math.prod(map(math.factorial, row)) if ordered else 1.0 for row in rows]
    return float(np.sum(np.array(often) * np.exp(rho * logs)))


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("ordered", [True, False])
def test_rows_of_counts_equal_enumeration(rho: float, ordered: bool) -> None:
    for make, first, second in (
        (DirichletMultinomial, [0.4, 2.0, 7.0], [3.0, 0.9, 1.0]),
        (Multinomial, [0.2, 0.5, 0.3], [0.6, 0.0, 0.4]),
    ):
        for total in (0, 1, 4):
            p, q = make(first, total, ordered), make(second, total, ordered)
            expected = summed(p, q, rho, total, ordered)
            assert value(p, q, Power(rho)) == pytest.approx(expected, rel=1e-12)
            assert value(p, q, Power(rho), length=3) == pytest.approx(expected**3, rel=1e-11)
            if total:  # without a total, the length is it
                free = make(first, None, ordered), make(second, None, ordered)
                assert value(*free, Power(rho), length=total) == pytest.approx(expected, rel=1e-12)


def test_documents_of_any_length_are_compared_at_a_chosen_one() -> None:
    rng = np.random.default_rng(0)
    counts = rng.poisson(rng.gamma(0.3, 2.0, size=(6, 40)))
    estimator = MultinomialEstimator(pseudocount=0.1)
    models = [estimator.fit(row[None]).model_ for row in counts]
    symbols = [Categorical(model.probs) for model in models]
    found = ProbabilityProduct(0.5, length=10)(models)
    assert_allclose(found, ProbabilityProduct(0.5, length=10)(symbols), rtol=1e-12)
    predictive = [MultinomialEstimator(estimate="predictive").fit(row[None]).model_ for row in counts]
    K = Gram(ProbabilityProduct(0.5, length=10)).fit_transform(predictive)
    assert_allclose(K, K.T, rtol=0.0, atol=0.0)
    assert np.linalg.eigvalsh(K)[0] > -1e-12 * np.trace(K)


def test_rows_without_totals_are_refused_without_a_length() -> None:
    with pytest.raises(ValueError, match="Give length=, the sum"):
        affinity(Multinomial([0.5, 0.5]), Multinomial([0.5, 0.5]), Power(1.0))
    p = DirichletMultinomial([1.0, 2.0], Poisson(3.0))
    with pytest.raises(ValueError, match="compared at one total"):
        affinity(p, p, Power(1.0))


CASES = [
    ((0.0, 1.0, 3.0), (1.0, 2.0, 5.0)),
    ((0.0, 1.0, 0.8), (30.0, 0.01, 1.5)),
    ((0.0, 1e-3, 4.0), (0.02, 50.0, 0.9)),
    ((2.0, 1.0, 200.0), (-9.0, 1.0, 300.0)),
]


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize(("first", "second"), CASES)
def test_students_equal_quadrature(rho: float, first: tuple[float, ...], second: tuple[float, ...]) -> None:
    laws = [student(df=df, loc=mean, scale=math.sqrt(scale)) for mean, scale, df in (first, second)]

    def integrand(x: float) -> float:
        return float(np.exp(rho * (laws[0].logpdf(x) + laws[1].logpdf(x))))

    spread = sorted({s * 10.0**k for _, scale, _ in (first, second) for s in (math.sqrt(scale),) for k in range(-1, 4)})
    cuts = sorted({c + side * s for c, *_ in (first, second) for s in (0.0, *spread) for side in (-1, 1)})
    pieces = [quad(integrand, *ends, epsabs=0.0, epsrel=1e-12, limit=200)[0] for ends in itertools.pairwise(cuts)]
    if first[2] < 20:  # the tails, by x = end + e^u - 1, or minus that
        for end, sign in ((cuts[0], -1.0), (cuts[-1], 1.0)):

            def tail(u: float, end: float = end, sign: float = sign) -> float:
                return integrand(end + sign * math.expm1(u)) * math.exp(u)

            pieces += [quad(tail, u, u + 10.0)[0] for u in range(0, 150, 10)]
    found = value(StudentT(*first), StudentT(*second), Power(rho))
    assert found == pytest.approx(math.fsum(pieces), rel=1e-8)


def test_students_have_known_values_and_limits() -> None:
    cauchy = StudentT(0.0, 1.0, 1.0), StudentT(3.0, 4.0, 1.0)
    # the density at zero of the difference of two Cauchy variables, of scale 1 + 2
    assert value(*cauchy, Power(1.0)) == pytest.approx(3.0 / math.pi / (3.0**2 + 3.0**2), rel=1e-13)
    assert value(cauchy[1], cauchy[1], Power(0.5)) == pytest.approx(1.0, rel=1e-13)
    p, q = StudentT([0.0, 1.0], [1.0, 2.0], 1e10), StudentT([0.5, -4.0], [0.7, 2.0], 1e10)
    normals = Gaussian([0.0, 1.0], [1.0, 2.0]), Gaussian([0.5, -4.0], [0.7, 2.0])
    assert float(affinity(p, q, Power(0.7))) == pytest.approx(float(affinity(*normals, Power(0.7))), rel=1e-8)
    with pytest.raises(ValueError, match="degrees of freedom are so few"):
        affinity(*cauchy, Power(0.2))
    with pytest.raises(ValueError, match="2 dependent dimensions"):
        affinity(StudentT([0.0, 0.0], np.eye(2), 3.0), StudentT([0.0, 0.0], np.eye(2), 3.0), Power(1.0))


class Normal(NaturalFamily):
    @staticmethod
    def sufficient(points: Any) -> Any:
        return np.stack([points, points**2], axis=-1)

    @staticmethod
    def log_partition(theta: Any) -> Any:
        linear, square = theta[..., 0], theta[..., 1]
        return -(linear**2) / (4.0 * square) + 0.5 * np.log(-math.pi / square)


class Counts(NaturalFamily):
    """Poisson, whose base measure is 1 / x!."""

    @staticmethod
    def sufficient(points: Any) -> Any:
        return points[:, None]

    @staticmethod
    def log_base(points: Any) -> Any:
        return -gammaln(points + 1.0)

    @staticmethod
    def log_partition(theta: Any, power: float = 1.0) -> Any:
        x = np.arange(400.0)
        return np.logaddexp.reduce(theta * x - power * gammaln(x + 1.0), axis=-1)


class Powers(NaturalFamily):
    """The density a x^(a - 1) on (0, 1), theta = a - 1."""

    @staticmethod
    def sufficient(points: Any) -> Any:
        return np.log(points)[:, None]

    @staticmethod
    def log_partition(theta: Any) -> Any:
        return np.where(theta[..., 0] > -1.0, -np.log1p(theta[..., 0]), np.inf)


@pytest.mark.parametrize("rho", RHOS)
def test_own_exponential_families_equal_the_known_ones(rho: float) -> None:
    means, variances = np.array([0.0, 1.5, -2.0]), np.array([1.0, 0.3, 2.0])
    own = Normal(np.stack([means / variances, -0.5 / variances], axis=-1))
    normals = Gaussian(means[:, None], variances)
    assert_allclose(affinity(own, own, Power(rho)), affinity(normals, normals, Power(rho)), rtol=1e-12, atol=1e-13)
    assert_allclose(own.log_prob([0.3]), normals.log_density(np.array([[0.3]])), rtol=1e-12)
    rates = np.array([[0.5], [3.0], [20.0]])
    counts, poisson = Counts(np.log(rates)), Poisson(rates)
    assert_allclose(
        affinity(counts, counts, Power(rho)), affinity(poisson, poisson, Power(rho)), rtol=1e-10, atol=1e-12
    )
    assert_allclose(counts.log_prob([2.0, 7.0]), poisson.log_density(np.array([[2.0], [7.0]])), rtol=1e-12)
    p, q = Powers(1.5), Powers(0.2)
    integral = quad(lambda x: (2.5 * x**1.5 * 1.2 * x**0.2) ** rho, 0.0, 1.0)[0]
    assert value(p, q, Power(rho)) == pytest.approx(integral, rel=1e-9)


def test_own_families_refuse_what_has_no_value() -> None:
    steep = Powers([-0.7])
    with pytest.raises(ValueError, match=r"is infinite\. Take a smaller rho"):
        affinity(steep, steep, Power(1.0))
    with pytest.raises(ValueError, match="of one family"):
        affinity(steep, Normal([0.0, -1.0]), Power(1.0))
    with pytest.raises(ValueError, match="finite at the models' own"):
        affinity(Powers([-2.0]), steep, Power(0.5))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.5, 0.8, 1.0]))
def test_matrices_are_symmetric_and_positive(seed: int, rho: float) -> None:
    rng = np.random.default_rng(seed)
    n = 6
    stacks = (
        NegativeBinomial(rng.gamma(1.0, 3.0, (n, 2)) + 0.01, rng.uniform(0.05, 1.0, (n, 2))),
        StudentT(rng.normal(size=(n, 2)), rng.gamma(1.0, size=(n, 2)) + 0.01, rng.gamma(1.0, 5.0, (n, 2)) + 0.2),
        DirichletMultinomial(rng.gamma(1.0, size=(n, 3)) + 0.01, 4, bool(seed % 2)),
    )
    for models in stacks:
        K = ProbabilityProduct(rho).normalized()(models)
        assert (K == K.T).all()
        assert np.linalg.eigvalsh(K)[0] > -1e-12 * n
