"""Kernels from draws: unbiased, with honest standard errors, for anybody's models; features from a shared proposal."""

from __future__ import annotations

import copy
import pickle
from typing import Any, Self

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.neighbors import KernelDensity

from genkern import (
    HMM,
    KDE,
    Categorical,
    Expected,
    Gamma,
    Gaussian,
    Jeffreys,
    MeanMap,
    Mixture,
    Power,
    ProposalFeatures,
    Sampled,
    affinity,
)


class Uniform:
    """Somebody else's model: uniform on an interval."""

    def __init__(self, low: float, high: float):
        self.low, self.high = low, high

    def log_prob(self, X: Any) -> Any:
        x = np.array([np.ravel(point)[0] for point in X])
        with np.errstate(divide="ignore"):
            return np.log(((x >= self.low) & (x <= self.high)) / (self.high - self.low))

    def sample(self, n: int, *, rng: Any = None) -> list[Any]:
        return list(np.random.default_rng(rng).uniform(self.low, self.high, (n, 1, 1)))


def hidden(weight: float) -> HMM:
    emissions = Categorical([[weight, 1 - weight], [0.2, 0.8]], alphabet="ab")
    return HMM([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], emissions)


PAIRS = {
    "gaussian": (Gaussian([0.0, 0.5], 1.0), Gaussian([1.0, 0.0], 2.0), None),
    "gaussians of a bag": (Gaussian(0.0, 1.0), Gaussian(0.4, 1.3), 3),
    "hmm": (hidden(0.9), hidden(0.6), 5),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("how", [Power(1.0), Expected(0.7)], ids=repr)
def test_estimates_agree_within_their_standard_error(name: str, how: Any) -> None:
    p, q, length = PAIRS[name]
    exact = float(affinity(p, q, how, length))
    scores = []
    for seed in range(12):
        pair = Sampled(p, 400, seed), Sampled(q, 300, seed)
        found = affinity.explain(*pair, how, length)
        assert found.kind == "sampled"
        assert found.name == ("sampled_product" if isinstance(how, Power) else "sampled_mean_map")
        scores.append((float(affinity(*pair, how, length)) - exact) / found.standard_error)
    assert np.abs(scores).max() < 4.5
    assert 0.4 < np.std(scores) < 2.0  # the error claimed is the error made
    assert abs(np.mean(scores)) < 1.5


@pytest.mark.parametrize("rho", [0.3, 0.5, 0.9])
def test_products_are_those_of_the_densities_themselves(rho: float) -> None:
    p = Mixture([0.5, 0.5], Gaussian([[0.0], [3.0]], [1.0, 1.0]))
    q = Gaussian(1.0, 2.0)
    grid = np.linspace(-30, 30, 20001)[:, None]
    true = np.log(np.exp(rho * (p.log_density(grid) + q.log_density(grid))).sum() * 0.003)
    pair = Sampled(p, 20_000), Sampled(q, 20_000)
    error = affinity.explain(*pair, Power(rho)).standard_error
    assert float(affinity(*pair, Power(rho))) == pytest.approx(true, abs=4 * error)
    assert error < 0.02


def test_the_standard_error_of_a_divergence_grows_with_its_factor() -> None:
    pair = Sampled(Gaussian(0.0, 1.0), 20_000), Sampled(Gaussian(1.0, 1.0), 20_000)  # log ratios have variance one
    for a in (0.5, 3.0):
        error = affinity.explain(*pair, Jeffreys(a)).standard_error
        assert error == pytest.approx(a * np.sqrt(2 / 20_000), rel=0.05)


def test_models_from_elsewhere() -> None:
    p, q = Sampled(Uniform(0.0, 1.0), 5000), Sampled(Uniform(0.5, 2.0), 5000)
    assert float(affinity(p, q, Power(1.0))) == pytest.approx(np.log(0.5 / 1.5), abs=0.1)
    far = Sampled(Uniform(3.0, 4.0))
    assert affinity(p, far, Power(0.5)) == affinity(p, far, Jeffreys()) == -np.inf
    for how in (Power(0.5), Jeffreys(), Expected(1e4)):
        assert affinity.explain(p, far, how).standard_error == np.inf
    kernel = MeanMap(2.0).normalized()([p, q, Sampled(Uniform(0.2, 0.4))])
    assert_allclose(np.diagonal(kernel), 1.0)
    assert np.linalg.eigvalsh(kernel)[0] > 0
    with pytest.raises(TypeError, match="must have the method log_prob"):
        Sampled("text")
    with pytest.raises(ValueError, match=r"needs one model\. Got a stack"):
        Sampled(Gaussian([[0.0], [1.0]], [1.0, 1.0]))


class Learned(BaseEstimator):
    """An estimator, whose parameters do not tell what it has learned."""

    def __init__(self, width: float = 1.0):
        self.width = width

    def fit(self, low: float) -> Self:
        self.low_ = np.array([low])
        return self

    def log_prob(self, X: Any) -> Any:
        return Uniform(self.low_[0], self.low_[0] + self.width).log_prob(X)

    def sample(self, n: int, rng: Any = None) -> Any:
        return Uniform(self.low_[0], self.low_[0] + self.width).sample(n, rng=rng)


class Holder(Uniform):
    """A distribution that also holds something else."""

    def __init__(self, held: Any):
        super().__init__(0.0, 1.0)
        self.held = held


def test_content_of_models_from_elsewhere_is_what_they_hold() -> None:
    assert Sampled(Uniform(0.0, 1.0)) == Sampled(Uniform(0.0, 1.0))
    assert Sampled(Uniform(0.0, 1.0)) != Sampled(Uniform(0.0, 2.0))
    assert Sampled(Learned().fit(0.0)) == Sampled(Learned().fit(0.0))
    assert Sampled(Learned().fit(0.0)) != Sampled(Learned().fit(1.0))
    held = [1, "a", None, {"b": np.arange(3)}, (Gamma(2.0, 1.0),), {1, 2}, Learned().fit(0.0), np.array([None, 2])]
    keys = [Sampled(Holder(item)).digest for item in held]
    assert len(set(keys)) == len(keys)
    assert keys == [Sampled(Holder(copy.deepcopy(item))).digest for item in held]
    assert Sampled(Holder([Learned().fit(0.0)])) != Sampled(Holder([Learned().fit(1.0)]))


def test_content_that_cannot_be_told_is_refused_or_named() -> None:
    tree = KernelDensity().fit([[0.0], [1.0]])  # holds an object of a compiled class
    for held in (lambda x: x, np.random.default_rng(0), tree, Uniform, (i for i in "ab")):
        with pytest.raises(TypeError, match=r"Sampled: the content of a Holder cannot be told .* attribute 'digest'"):
            hash(Sampled(Holder(held)))
        named = Holder(held)
        named.digest = "mine"
        assert Sampled(named) == Sampled(named)
    endless = Holder([])
    endless.held.append(endless.held)
    with pytest.raises(TypeError, match="contains itself"):
        hash(Sampled(endless))


def test_draws_belong_to_the_model() -> None:
    p = Sampled(Gamma(2.0, 1.0), 50)
    for twin in (Sampled(Gamma(2.0, 1.0), 50), pickle.loads(pickle.dumps(p)), copy.deepcopy(p)):
        assert twin == p
        assert_array_equal(np.ravel(twin.draws()), np.ravel(p.draws()))
    assert Sampled(Gamma(2.0, 1.0), 50, seed=1) != p
    assert not np.array_equal(np.ravel(Sampled(Gamma(2.0, 1.0), 50, seed=1).draws()), np.ravel(p.draws()))
    stack = Sampled.stack([p, Sampled(Gamma(3.0, 1.0), 50)])
    assert stack.shape == (2,)
    assert stack[0] == p
    logs = affinity(stack, stack, Expected(1.0))
    assert logs[0, 1] == pytest.approx(float(affinity(stack[0], stack[1], Expected(1.0))))
    assert_array_equal(logs, logs.T)


def test_missing_formulas_name_the_way_out() -> None:
    with pytest.raises(TypeError, match=r"Sampled\(model, n\) compares any two models by draws"):
        affinity(Gamma(2.0, 1.0), Gamma(3.0, 1.0), Expected(1.0))
    free = HMM([1.0], [[0.5]], Categorical([[0.5, 0.5]]), stop=[0.5])
    with pytest.raises(ValueError, match="draws have different lengths"):
        affinity(Sampled(free, 30), Sampled(free, 30), Expected(1.0))


def test_chunks_do_not_change_means(monkeypatch: pytest.MonkeyPatch) -> None:
    p, q = Sampled(Gaussian(0.0, 1.0), 50), Sampled(Gaussian(1.0, 1.0), 40)
    before = float(affinity(p, q, Expected(1.0)))
    monkeypatch.setattr("genkern.affinities.sampled.CHUNK", 100)
    assert float(affinity(p, q, Expected(1.0))) == pytest.approx(before, rel=1e-14)


@pytest.mark.parametrize("how", [Power(0.5), Expected(0.7), Jeffreys(2.0)], ids=repr)
def test_tables_have_the_values_of_their_pairs(how: Any) -> None:
    left = [Sampled(Gaussian(m, 1.0), 30) for m in (0.0, 1.0)]
    right = [Sampled(Gaussian(m, 2.0), 20) for m in (-1.0, 0.5, 2.0)]
    table = affinity(left, right, how)
    assert_allclose(table, [[float(affinity(p, q, how)) for q in right] for p in left], rtol=1e-12)
    if isinstance(how, Expected):
        gaps = np.array([[np.subtract.outer(*(np.ravel(s.draws(None)) for s in (p, q))) for q in right] for p in left])
        assert_allclose(np.exp(table), np.exp(-0.35 * gaps**2).mean(axis=(-1, -2)), rtol=1e-12)


# --- a proposal for all


@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_features_of_a_shared_proposal_estimate_the_kernel(rho: float) -> None:
    models = [Gaussian(m, v) for m, v in ((0.0, 1.0), (0.5, 2.0), (-0.5, 0.7))]
    features = ProposalFeatures(rho, n=30_000, normalize=False).fit_transform(models)
    exact = np.exp(affinity(models, models, Power(rho)))
    assert_allclose(features @ features.T, exact, rtol=0.03)
    unit = ProposalFeatures(rho, n=30_000).fit_transform(models)
    scale = np.sqrt(np.diagonal(exact))
    assert_allclose(unit @ unit.T, exact / scale / scale[:, None], rtol=0.03)
    assert_allclose(np.linalg.norm(unit, axis=1), 1.0)


@pytest.mark.parametrize("rho", [0.5, 0.8])
def test_it_is_the_true_kernel_of_mixtures_and_density_estimates(rho: float) -> None:
    p = Mixture([0.5, 0.5], Gaussian([[0.0], [3.0]], [1.0, 1.0]))
    q = KDE(np.array([[0.5], [2.0], [2.5]]), 0.7)
    grid = np.linspace(-30, 30, 20001)[:, None]
    true = np.exp(rho * (p.log_density(grid) + q.log_density(grid))).sum() * 0.003
    features = ProposalFeatures(rho, n=30_000, normalize=False).fit_transform([p, q])
    assert features[0] @ features[1] == pytest.approx(true, rel=0.02)
    assert np.exp(affinity(p, q, Power(rho))) > 1.2 * true  # the power inside the sum is another kernel


def test_it_is_the_true_kernel_of_hidden_markov_models() -> None:
    p, q = hidden(0.9), hidden(0.6)
    words = ["".join(word) for word in np.array(np.meshgrid(*[list("ab")] * 5)).reshape(5, -1).T]
    true = np.exp(0.5 * (p.log_prob(words) + q.log_prob(words))).sum()
    features = ProposalFeatures(0.5, n=20_000, length=5, normalize=False).fit_transform([p, q])
    assert features[0] @ features[1] == pytest.approx(true, rel=0.01)
    assert np.exp(affinity(p, q, Power(0.5), 5)) > 1.5 * true  # the power inside the sum is another kernel


def test_new_models_and_more_models_than_draws() -> None:
    models = [Gaussian(0.1 * i, 1.0) for i in range(30)]
    fitted = ProposalFeatures(0.5, n=10).fit(models)
    assert fitted.transform(models).shape == (30, 10)
    assert_array_equal(fitted.transform(models[3:5]), fitted.transform(models)[3:5])
    twin = clone(fitted).fit(models)
    assert_array_equal(twin.transform(models), fitted.transform(models))
    assert fitted.get_feature_names_out()[-1] == "draw9"


def test_refusals_of_proposals() -> None:
    fitted = ProposalFeatures(0.5, n=20).fit([Uniform(0.0, 1.0), Uniform(0.5, 1.0)])
    with pytest.raises(ValueError, match="model 0 cannot have produced any of the 20 draws"):
        fitted.transform([Uniform(5.0, 6.0)])
    with pytest.raises(TypeError, match="Got str at index 1"):
        fitted.transform([Uniform(0.0, 1.0), "text"])
    with pytest.raises(ValueError, match="empty list"):
        ProposalFeatures().fit([])
    with pytest.raises(ValueError, match="'rho' parameter of ProposalFeatures must be a finite number > 0"):
        ProposalFeatures(0.0).fit([hidden(0.9)])
    long = ProposalFeatures(1.0, n=5, length=3000, normalize=False).fit([hidden(0.9)])
    with pytest.raises(ValueError, match="leave the range of floating point"):
        long.transform([hidden(0.9)])
