"""Kernels from distances between models: divergences against sums and quadrature, their positivity, their warnings."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate
from sklearn.base import clone

from genkern import (
    HMM,
    RBF,
    Bernoulli,
    Categorical,
    Diffusion,
    Dirichlet,
    Exponential,
    Gamma,
    Gaussian,
    Geometric,
    Gram,
    Hellinger,
    Jeffreys,
    Linear,
    LinearGaussianNet,
    Multinomial,
    Poisson,
    ProbabilityProduct,
    Sampled,
    SetBhattacharyya,
    SiteModel,
    SymmetricKL,
    VonMises,
    affinity,
)
from genkern.kernels import NotPositiveWarning


def divergence(p: Any, q: Any, points: Any, weights: Any = 1.0) -> float:
    left, right = (np.squeeze(model.log_density(np.asarray(points, dtype=float))) for model in (p, q))
    return float((weights * (np.exp(left) - np.exp(right)) * (left - right)).sum())


def counts(n: int) -> Any:
    return np.arange(float(n))[:, None]


DISCRETE = {
    "Categorical": (Categorical([0.2, 0.3, 0.5]), Categorical([0.6, 0.3, 0.1]), None),
    "Bernoulli": (
        Bernoulli([0.2, 0.9]),
        Bernoulli([0.5, 0.3]),
        np.array(list(itertools.product((0.0, 1.0), repeat=2))),
    ),
    "Poisson": (Poisson(3.0), Poisson(5.5), counts(80)),
    "Geometric": (Geometric(0.4), Geometric(0.7), counts(300)),
    "Multinomial": (
        Multinomial([0.2, 0.8], 3, ordered=False),
        Multinomial([0.6, 0.4], 3, ordered=False),
        np.array([[k, 3.0 - k] for k in range(4)]),
    ),
}
CONTINUOUS = {
    "Gaussian": (Gaussian(0.3, 0.5), Gaussian(-1.0, 2.0), (-14.0, 14.0)),
    "Exponential": (Exponential(0.7), Exponential(2.0), (1e-12, 80.0)),
    "Gamma": (Gamma(2.0, 0.8), Gamma(3.5, 1.4), (1e-9, 80.0)),
    "VonMises": (VonMises(0.4, 2.0), VonMises(-2.0, 0.7), (-math.pi, math.pi)),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_divergences_of_counts(name: str) -> None:
    p, q, points = DISCRETE[name]
    if points is None:
        expected = sum((a - b) * math.log(a / b) for a, b in zip(p.probs, q.probs))
    else:
        expected = divergence(p, q, points)
    assert float(affinity(p, q, Jeffreys(0.5))) == pytest.approx(-0.5 * expected, rel=1e-11)
    assert affinity(p, p, Jeffreys()) == 0.0
    assert affinity(q, p, Jeffreys()) == affinity(p, q, Jeffreys())


@pytest.mark.parametrize("name", CONTINUOUS)
def test_divergences_of_densities(name: str) -> None:
    p, q, (low, high) = CONTINUOUS[name]
    expected = integrate.quad(lambda x: divergence(p, q, [[x]]), low, high, limit=400, epsrel=1e-11)[0]
    assert float(affinity(p, q, Jeffreys())) == pytest.approx(-expected, rel=1e-8)
    assert float(affinity(p, p, Jeffreys())) == pytest.approx(0.0, abs=1e-15)
    assert float(affinity(p, q, Jeffreys(), length=3)) == pytest.approx(-3 * expected, rel=1e-8)


def test_divergence_of_dirichlet() -> None:
    p, q = Dirichlet([2.0, 3.0]), Dirichlet([1.5, 1.0])
    nodes, weights = np.polynomial.legendre.leggauss(400)
    x = 0.5 + 0.5 * nodes
    expected = divergence(p, q, np.stack([x, 1 - x], axis=1), 0.5 * weights)
    assert float(affinity(p, q, Jeffreys())) == pytest.approx(-expected, rel=1e-4)


@pytest.mark.parametrize("kinds", [("full", "full"), ("full", "diagonal"), ("diagonal", "isotropic")])
def test_divergence_of_gaussians_in_the_plane(kinds: tuple[str, str]) -> None:
    covs = {"full": np.array([[1.0, 0.4], [0.4, 0.7]]), "diagonal": np.array([0.5, 1.2]), "isotropic": 0.8}
    p, q = Gaussian([0.0, 0.5], covs[kinds[0]]), Gaussian([1.0, -0.3], covs[kinds[1]])
    axis = np.linspace(-12, 12, 601)
    points = np.array(list(itertools.product(axis, axis)))
    expected = divergence(p, q, points, (axis[1] - axis[0]) ** 2)
    assert float(affinity(p, q, Jeffreys())) == pytest.approx(-expected, rel=1e-8)


def test_divergence_of_sites_and_of_other_supports() -> None:
    rows = np.random.default_rng(0).dirichlet(np.ones(3), (2, 4))
    sites = SiteModel(rows[0]), SiteModel(rows[1])
    parts = [float(affinity(Categorical(a), Categorical(b), Jeffreys())) for a, b in zip(*rows)]
    assert float(affinity(*sites, Jeffreys())) == pytest.approx(sum(parts), rel=1e-12)
    p, q = Categorical([0.5, 0.5, 0.0]), Categorical([0.5, 0.0, 0.5])
    assert affinity(p, q, Jeffreys()) == -np.inf
    assert affinity(p, p, Jeffreys()) == 0.0
    with pytest.raises(ValueError, match="a covariance is singular"):
        affinity(Gaussian(0.0, 0.0), Gaussian(0.0, 1.0), Jeffreys())
    with pytest.raises(ValueError, match="same fixed total"):
        affinity(Multinomial([0.5, 0.5], 3), Multinomial([0.5, 0.5]), Jeffreys())


def test_divergence_by_draws() -> None:
    p, q = Gaussian(0.0, 1.0), Gaussian(0.5, 2.0)
    exact = float(affinity(p, q, Jeffreys()))
    pair = Sampled(p, 20_000), Sampled(q, 20_000)
    error = affinity.explain(*pair, Jeffreys()).standard_error
    assert 0 < error < 0.03
    assert float(affinity(*pair, Jeffreys())) == pytest.approx(exact, abs=4 * error)
    hidden = HMM([1.0], [[1.0]], Categorical([[0.5, 0.5]]))
    other = HMM([1.0], [[1.0]], Categorical([[0.7, 0.3]]))
    exact = float(affinity(Categorical([0.5, 0.5]), Categorical([0.7, 0.3]), Jeffreys(), length=4))
    assert float(affinity(Sampled(hidden, 9000), Sampled(other, 9000), Jeffreys(), 4)) == pytest.approx(exact, rel=0.1)
    with pytest.raises(TypeError, match="Sampled"):
        affinity(hidden, other, Jeffreys(), 4)


def stack(n: int = 6, m: int = 4, seed: int = 0) -> Categorical:
    return Categorical(np.random.default_rng(seed).dirichlet(np.full(m, 0.4), n))


def test_hellinger_is_the_exponential_of_the_product_kernel() -> None:
    models = stack()
    expected = ProbabilityProduct(0.5).normalized().exp(0.5)(models)
    assert_allclose(Hellinger(t=2.0)(models), expected, rtol=1e-12)
    distance = 0.5 * ((np.sqrt(models.probs[:, None]) - np.sqrt(models.probs)) ** 2).sum(axis=2)
    assert_allclose(Hellinger(t=2.0)(models), np.exp(-distance), rtol=1e-12)
    assert np.linalg.eigvalsh(Hellinger()(models))[0] > 0
    assert_allclose(Hellinger()(models, models[:2]), Hellinger()(models)[:, :2], rtol=1e-12)
    assert_array_equal(Hellinger().diag(models), 1.0)
    assert clone(Hellinger(3.0)) == Hellinger(3.0)


def test_hellinger_of_models_without_a_density() -> None:
    """Their products vanish, also with themselves: a warning names them, and they are as far from all as can be."""
    nearly = LinearGaussianNet({"x": ([], [], 0.0, 1e-3), "y": (["x"], [1e4], 1.0, 1e-3)}, observed=["x", "y"])
    flat, plain = Gaussian([0.0, 0.0], [0.0, 1.0]), Gaussian([0.0, 0.0], np.eye(2))
    far = np.exp(-1.0)
    for models in ([flat, flat, plain], [nearly, nearly]):
        expected = np.where(np.eye(len(models)) == 1.0, 1.0, far)
        with pytest.warns(UserWarning, match=r"Hellinger.*: 2 of . objects have zero similarity .*first at index 0"):
            assert_array_equal(Hellinger(t=2.0)(models), expected)
        with pytest.warns(UserWarning, match="have zero similarity to themselves"):
            assert_allclose(Hellinger(t=2.0)(models[:1], models), far, rtol=1e-15)
        with pytest.warns(UserWarning, match="have zero similarity to themselves"):
            assert_allclose(ProbabilityProduct(0.5).normalized().exp(0.5)(models), expected, rtol=1e-15)


def test_the_divergence_kernel_warns_and_is_not_positive() -> None:
    with pytest.warns(NotPositiveWarning, match=r"not positive semi-definite in general.*Hellinger"):
        kernel = SymmetricKL(0.5)(stack(12, 3, seed=5))
    assert_array_equal(kernel, kernel.T)
    assert_array_equal(np.diagonal(kernel), 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lowest = min(np.linalg.eigvalsh(SymmetricKL(0.3)(stack(12, 3, seed)))[0] for seed in range(30))
    assert lowest < -1e-3


def test_the_shift_of_the_divergence_kernel_is_a_factor() -> None:
    models = stack(5, 3, seed=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, shifted = SymmetricKL(0.5)(models), SymmetricKL(0.5, b=-0.3)
        assert_allclose(shifted(models), math.exp(-0.3) * plain, rtol=1e-14)
        assert_allclose(shifted.diag(models), math.exp(-0.3), rtol=1e-14)
        assert_allclose(Gram(shifted.normalized()).fit_transform(models), plain, rtol=1e-13)
    assert shifted.formula.endswith("- 0.3)")
    with pytest.raises(ValueError, match="'b' parameter"):
        SymmetricKL(b=math.nan)(models)


def test_heat_on_the_sphere() -> None:
    models = stack(7, 4)
    cosine = np.sqrt(models.probs) @ np.sqrt(models.probs).T
    angle = np.arccos(np.minimum(cosine, 1.0))
    np.fill_diagonal(angle, 0.0)
    assert_allclose(Diffusion(0.7, "geodesic")(models), np.exp(-angle / 0.7), rtol=1e-6)
    with pytest.warns(NotPositiveWarning, match="kind='geodesic' or 'sphere'"):
        kernel = Diffusion(0.7)(models)
    assert_allclose(kernel, (4 * np.pi * 0.7) ** -1.5 * np.exp(-(angle**2) / 0.7), rtol=1e-6)
    for kind in ("geodesic", "sphere"):
        assert np.linalg.eigvalsh(Diffusion(0.7, kind)(models))[0] > -1e-12


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_the_heat_kernel_of_the_sphere_holds_all_heat_and_starts_as_the_parametrix(n: int) -> None:
    corner = np.zeros(n + 1)
    corner[0] = 1.0

    def at(angle: float, t: float) -> float:
        other = np.zeros(n + 1)
        other[0], other[1] = math.cos(angle) ** 2, math.sin(angle) ** 2
        return float(Diffusion(t, "sphere")([Categorical(corner), Categorical(other)])[0, 1])

    # Over a long time heat spreads evenly over the sphere of radius two.
    area = 2**n * 2 * math.pi ** ((n + 1) / 2) / math.gamma((n + 1) / 2)
    assert at(0.3, 60.0) == pytest.approx(1 / area, rel=1e-4)
    # For a short time it is the Gaussian of the geodesic distance 2 * angle: exp(-(2 angle)^2 / 4t).
    for angle in (0.05, 0.1):
        flat = (4 * math.pi * 0.05) ** (-n / 2) * math.exp(-(angle**2) / 0.05)
        assert at(angle, 0.05) == pytest.approx(flat, rel=0.05 * max(1, n * n / 6))


def test_the_heat_equation() -> None:
    """d/dt k = Laplacian k on the sphere of radius two, by differences in the angle."""
    n, t, angle, h = 3, 0.8, 0.5, 1e-3

    def at(angle: float, t: float) -> float:
        other = np.array([math.cos(angle) ** 2, math.sin(angle) ** 2, 0.0, 0.0])
        return float(Diffusion(t, "sphere")([Categorical([1.0, 0.0, 0.0, 0.0]), Categorical(other)])[0, 1])

    change = (at(angle, t + h) - at(angle, t - h)) / (2 * h)
    first = (at(angle + h, t) - at(angle - h, t)) / (2 * h)
    second = (at(angle + h, t) - 2 * at(angle, t) + at(angle - h, t)) / h**2
    assert change == pytest.approx((second + (n - 1) / math.tan(angle) * first) / 4, rel=1e-4)


def test_diffusion_of_multinomials_and_refusals() -> None:
    rows = stack(3, 4).probs
    counts_ = [Multinomial(row, 9) for row in rows]
    assert_allclose(Diffusion(1.0, "geodesic")(counts_), Diffusion(1.0, "geodesic")(stack(3, 4)), rtol=1e-12)
    with pytest.raises(TypeError, match="Got Gaussian at index 0"):
        Diffusion(1.0, "geodesic")([Gaussian(0.0, 1.0)])
    with pytest.raises(ValueError, match="at most 51 symbols"):
        Diffusion(1.0, "sphere")(stack(2, 60))
    with pytest.raises(ValueError, match="lost in rounding"):
        Diffusion(0.01, "sphere")(stack(8, 4))


# --- sets of vectors


def test_sets_of_vectors_with_a_linear_kernel_are_gaussians() -> None:
    r = np.random.default_rng(0)
    sets = [r.normal(size=(m, 2)) + s for m, s in ((5, 0.0), (8, 1.0), (3, -1.0))]
    laws = [Gaussian(x.mean(axis=0), np.cov(x, rowvar=False, bias=True) + 0.2 * np.eye(2)) for x in sets]
    kernel = SetBhattacharyya(Linear(), eta=0.2)(sets)
    assert_allclose(kernel, ProbabilityProduct(0.5)(laws), rtol=1e-9)


def test_sets_of_vectors_in_a_feature_space() -> None:
    r = np.random.default_rng(1)
    sets = [r.normal(size=(m, 3)) for m in (4, 6, 5, 1)]
    kernel = SetBhattacharyya(RBF(0.5), eta=0.1)
    K = kernel(sets)
    assert_array_equal(K, K.T)
    assert_array_equal(np.diagonal(K), 1.0)
    assert np.linalg.eigvalsh(K)[0] > -1e-10
    # By random features of the same kernel, in whose finite space the Gaussians can be written down.
    frequencies, phases = r.normal(size=(4000, 3)), r.uniform(0, 2 * np.pi, 4000)
    mapped = [np.sqrt(2 / 4000) * np.cos(x @ frequencies.T + phases) for x in sets[:2]]
    basis = np.linalg.qr(np.concatenate(mapped).T)[0]
    low = [x @ basis for x in mapped]
    laws = [Gaussian(x.mean(axis=0), np.cov(x, rowvar=False, bias=True) + 0.1 * np.eye(x.shape[1])) for x in low]
    assert K[0, 1] == pytest.approx(float(ProbabilityProduct(0.5)(laws)[0, 1]), rel=0.03)
    blocks = Gram(kernel, block_size=2).fit_transform(sets)
    assert_allclose(blocks, K, rtol=1e-12)
    assert_allclose(kernel(sets, sets[1:3]), K[:, 1:3], rtol=1e-12)


@pytest.mark.parametrize("name", [*DISCRETE, *CONTINUOUS])
def test_the_divergence_in_charge_is_the_family_s_own(name: str) -> None:
    p, q, _ = (DISCRETE | CONTINUOUS)[name]
    found = affinity.explain(p, q, Jeffreys())
    assert found.name == f"{'von_mises' if name == 'VonMises' else name.lower()}_divergence"
