"""The Laplace kernel: between vectors, words and windows, and its mean maps; and mean maps of equal symbols."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import dblquad, quad
from scipy.stats import expon, norm

from genkern import (
    HMM,
    KDE,
    BayesNet,
    Bernoulli,
    Categorical,
    EmpiricalMean,
    EmpiricalMeanMap,
    Expected,
    ExpectedLaplace,
    Exponential,
    Gaussian,
    Laplace,
    MarkovChain,
    MeanMap,
    Mixture,
    Poisson,
    Power,
    ProbabilityProduct,
    Sampled,
    SiteModel,
    affinity,
)

LAM = 0.7


def value(*args: Any, **options: Any) -> float:
    return math.exp(float(affinity(*args, **options)))


def by_quadrature(gap: float, variance: float, lam: float) -> float:
    """E exp(-lam |D|) of D ~ N(gap, variance), piece by piece."""
    s = math.sqrt(variance)
    cuts = sorted({0.0, *(gap + k * s for k in range(-12, 13))})
    pieces = [
        quad(lambda z: norm.pdf(z, gap, s) * math.exp(-lam * abs(z)), *ends)[0] for ends in itertools.pairwise(cuts)
    ]
    return math.fsum(pieces)


@pytest.mark.parametrize(
    ("gap", "variance", "lam"),
    [(0.0, 1.0, 1.0), (2.0, 0.5, 3.0), (-5.0, 0.01, 1.0), (0.3, 2.0, 50.0), (3.0, 1e-8, 2.0), (1.0, 2.0, 0.0)],
)
def test_gaussians_equal_quadrature(gap: float, variance: float, lam: float) -> None:
    p, q = Gaussian(gap, 0.25 * variance), Gaussian(0.0, 0.75 * variance)
    assert value(p, q, ExpectedLaplace(lam)) == pytest.approx(by_quadrature(gap, variance, lam), rel=1e-9)


def test_gaussians_of_several_axes_and_their_extremes() -> None:
    p, q = Gaussian([0.0, 1.0], [1.0, 0.5]), Gaussian([0.5, -1.0], np.diag([0.2, 0.1]))
    expected = by_quadrature(0.5, 1.2, LAM) * by_quadrature(2.0, 0.6, LAM)
    assert value(p, q, ExpectedLaplace(LAM)) == pytest.approx(expected, rel=1e-9)
    # no noise: the kernel itself; and far beyond the range of floats, only logarithms
    assert float(affinity(Gaussian(0.0, 0.0), Gaussian(3.0, 0.0), ExpectedLaplace(2.0))) == -6.0
    assert float(affinity(Gaussian(0.0, 1.0), Gaussian(1e4, 1.0), ExpectedLaplace(1.0))) == pytest.approx(1.0 - 1e4)
    sharp = float(affinity(Gaussian(0.0, 1.0), Gaussian(60.0, 1.0), ExpectedLaplace(1e6)))
    assert sharp == pytest.approx(norm.logpdf(60.0, 0.0, math.sqrt(2.0)) + math.log(2e-6), rel=1e-6)
    with pytest.raises(ValueError, match=r"models 0 and 1: .*diagonal covariances only"):
        affinity(
            [p, Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])],
            [p, Gaussian([0.0, 0.0], [[1, 0.5], [0.5, 1]])],
            ExpectedLaplace(1.0),
        )


def test_exponentials_equal_quadrature() -> None:
    p, q = Exponential([0.6]), Exponential([1.7])

    def f(y: float, x: float) -> float:
        return float(expon.pdf(x, scale=0.6) * expon.pdf(y, scale=1.7)) * math.exp(-LAM * abs(x - y))

    parts = dblquad(f, 0, 25, 0, lambda x: x)[0] + dblquad(f, 0, 25, lambda x: x, 60)[0]
    assert value(p, q, ExpectedLaplace(LAM)) == pytest.approx(parts, rel=1e-6)


P = HMM([0.3, 0.7], [[0.9, 0.1], [0.4, 0.6]], Categorical([[0.8, 0.2], [0.1, 0.9]], alphabet="ab"))
Q = HMM([1.0], [[1.0]], Categorical([[0.4, 0.6]], alphabet="ab"))
CHAIN = MarkovChain([0.2, 0.8], [[0.7, 0.3], [0.5, 0.5]], alphabet="ab")
SITES = [SiteModel(np.array(rows), alphabet="ab") for rows in ([[0.2, 0.8], [0.5, 0.5]], [[0.6, 0.4], [1.0, 0.0]])]


def over_words(p: Any, q: Any, length: int, factor: float) -> float:
    """The sum over all pairs of words, by log-likelihoods."""
    words = ["".join(letters) for letters in itertools.product("ab", repeat=length)]
    left, right = np.exp(p.log_prob(words)), np.exp(q.log_prob(words))
    differ = [[sum(a != b for a, b in zip(u, v)) for v in words] for u in words]
    return float(left @ factor ** np.array(differ, float) @ right)


@pytest.mark.parametrize(("p", "q"), [(P, Q), (P, P), (CHAIN, CHAIN), (CHAIN, P), (Q.emissions[0], Q.emissions[0])])
@pytest.mark.parametrize("lam", [0.0, LAM, math.inf])
def test_symbols_equal_enumeration(p: Any, q: Any, lam: float) -> None:
    found = value(p, q, ExpectedLaplace(lam), length=3)
    assert found == pytest.approx(over_words(p, q, 3, math.exp(-2.0 * lam)), rel=1e-12)
    assert value(p, q, Expected(lam), length=3) == pytest.approx(over_words(p, q, 3, math.exp(-lam)), rel=1e-12)
    if lam == math.inf:
        assert value(p, q, Expected(lam), length=3) == pytest.approx(value(p, q, Power(1.0), length=3), rel=1e-12)


@pytest.mark.parametrize("lam", [LAM, math.inf])
def test_other_models_of_symbols_equal_enumeration(lam: float) -> None:
    how = ExpectedLaplace(lam)
    assert value(*SITES, how) == pytest.approx(over_words(*SITES, 2, math.exp(-2.0 * lam)), rel=1e-12)
    stops = [HMM(h.start, 0.1 * h.transitions, h.emissions, stop=np.full(len(h.start), 0.9)) for h in (P, Q)]
    short = sum(over_words(*stops, length, math.exp(-2.0 * lam)) for length in range(1, 9))
    assert value(*stops, how) == pytest.approx(short, rel=1e-7)
    net, other = P.to_bayes_net(2), Q.to_bayes_net(2)
    expected = over_words(P, Q, 2, math.exp(-2.0 * lam))
    assert value(net, other, how) == value(net, Q, how) == pytest.approx(expected, rel=1e-12)
    assert isinstance(net, BayesNet)
    bits = Bernoulli([0.2, 0.7]), Bernoulli([0.5, 0.9])
    rows = list(itertools.product([0, 1], repeat=2))
    left, right = (np.exp(b.log_prob([[row] for row in rows])) for b in bits)
    near = np.array([[math.exp(-lam) ** sum(a != b for a, b in zip(x, y)) for y in rows] for x in rows])
    assert value(*bits, how) == pytest.approx(left @ near @ right, rel=1e-12)


def test_mixtures_and_density_estimates_are_sums_over_pairs() -> None:
    def kernel(a: float, v: float, b: float, w: float) -> float:
        return by_quadrature(a - b, v + w, LAM)

    mix = Mixture([0.3, 0.7], Gaussian([[0.0], [2.0]], [0.5, 1.0]))
    points, one = KDE([[0.0], [1.5], [-1.0]], 0.2), Gaussian(0.4, 0.3)
    terms = {
        "mix": [(0.3, 0.0, 0.5), (0.7, 2.0, 1.0)],
        "points": [(1 / 3, x, 0.2) for x in (0.0, 1.5, -1.0)],
        "one": [(1.0, 0.4, 0.3)],
    }
    models = {"mix": mix, "points": points, "one": one}
    for a, b in itertools.product(models, repeat=2):
        expected = sum(w * u * kernel(x, v, y, z) for w, x, v in terms[a] for u, y, z in terms[b])
        assert value(models[a], models[b], ExpectedLaplace(LAM)) == pytest.approx(expected, rel=1e-9), (a, b)


def test_draws_are_means_over_pairs() -> None:
    p, q = Sampled(Poisson([2.0, 5.0]), 40), Sampled(Poisson([3.0, 1.0]), 40)
    x, y = (np.concatenate(m.draws(1)).reshape(40, 2) for m in (p, q))
    near = np.exp(-LAM * np.abs(x[:, None] - y).sum(axis=2))
    assert value(p, q, ExpectedLaplace(LAM)) == pytest.approx(near.mean(), rel=1e-12)
    assert affinity.explain(p, q, ExpectedLaplace(LAM)).kind == "sampled"
    with pytest.raises(ValueError, match="numbers are never equal"):
        affinity(p, q, Expected(math.inf))
    letters = Sampled(P, 30), Sampled(Q, 30)
    words = [model.draws(2) for model in letters]
    same = np.mean([[list(u) == list(v) for v in words[1]] for u in words[0]])
    assert value(*letters, Expected(math.inf), length=2) == pytest.approx(same, rel=1e-12)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_numbers_are_never_equal(kernel: str) -> None:
    for p in (Gaussian(0.0, 1.0), Exponential([1.0]), KDE([[0.0]], 0.1)):
        with pytest.raises(ValueError, match=r"lam=inf.* is for symbols"):
            MeanMap(math.inf, kernel=kernel)([p])


def test_infinite_sharpness_is_the_product() -> None:
    models = [P, HMM([0.5, 0.5], [[0.2, 0.8], [0.4, 0.6]], P.emissions), Q]
    found = MeanMap(math.inf, length=4)
    assert_allclose(found(models), ProbabilityProduct(1.0, length=4)(models), rtol=1e-13)
    assert r"\infty" in found.formula
    assert_allclose(MeanMap(math.inf, length=4, kernel="laplace")(models), found(models), rtol=1e-13)


def test_vectors_words_and_windows_equal_loops() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    expected = [[math.exp(-LAM * sum(abs(a - b) for a, b in zip(x, y))) for y in Y] for x in X]
    assert_allclose(Laplace(LAM)(X, Y), expected, rtol=1e-13)
    assert_allclose(Laplace(LAM).log(X, Y), np.log(expected), rtol=1e-13)
    assert r"\|x - y\|_1" in Laplace(LAM).formula
    series = [rng.normal(size=(n, 2)) for n in (3, 9, 12)]
    windows = [[x[t : t + 2].ravel() for t in range(len(x) - 1)] for x in series]
    means = [
        [np.mean([[math.exp(-LAM * np.abs(u - v).sum()) for v in b] for u in a]) for b in windows] for a in windows
    ]
    assert_allclose(EmpiricalMean(1, LAM, kernel="laplace")(series), means, rtol=1e-12)
    assert_allclose(EmpiricalMean(1, LAM, kernel="laplace")(series[:1], series), means[:1], rtol=1e-12)
    features = EmpiricalMeanMap(1, LAM, n_components=20_000, kernel="laplace").fit_transform(series)
    assert_allclose(features @ features.T, means, atol=0.02)
    words = ["abba", "bab", "aabb"]
    soft = EmpiricalMeanMap(1, LAM, kernel="laplace").fit_transform(words)
    pairs = [[w[t : t + 2] for t in range(len(w) - 1)] for w in words]
    ham = [
        [np.mean([[math.exp(-2 * LAM * sum(c != d for c, d in zip(u, v))) for v in b] for u in a]) for b in pairs]
        for a in pairs
    ]
    assert_allclose(soft @ soft.T, ham, rtol=1e-12)
    assert_allclose(EmpiricalMean(1, LAM, kernel="laplace")(words), ham, rtol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.0, 30.0))
def test_matrices_are_symmetric_and_positive(seed: int, lam: float) -> None:
    rng = np.random.default_rng(seed)
    models = Gaussian(rng.normal(size=(7, 2)), rng.gamma(1.0, size=(7, 2)))
    for K in (MeanMap(lam, kernel="laplace")(models), Laplace(lam)(models.mean)):
        assert (K == K.T).all()
        assert (K <= 1.0 + 1e-15).all()
        assert np.linalg.eigvalsh(K).min() >= -1e-12 * np.trace(K)
