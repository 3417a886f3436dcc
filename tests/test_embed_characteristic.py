"""Characteristic functions of models as features: against enumeration, integration, and the mean map kernel."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from genkern import (
    HMM,
    KDE,
    LDS,
    Bernoulli,
    Categorical,
    CharacteristicFeatures,
    Expected,
    FitEach,
    Gaussian,
    HMMEstimator,
    MeanMap,
    Mixture,
    Poisson,
    affinity,
)
from genkern.features import characteristic as module
from genkern.features.characteristic import log_characteristic
from genkern.models.characteristic import Scaled


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def covariances(random: np.random.Generator, *batch: int) -> np.ndarray:
    roots = random.normal(size=(*batch, 2, 2))
    return 0.3 * roots @ np.swapaxes(roots, -1, -2) + 0.1 * np.eye(2)


def make_leaf(kind: str, random: np.random.Generator, *batch: int) -> Any:
    """Return a stack of a family with points in two dimensions (three symbols)."""
    means = random.normal(size=(*batch, 2))
    if kind == "mixture":
        inner = Gaussian(random.normal(size=(*batch, 3, 2)), random.uniform(0.2, 1.0, (*batch, 3, 2)))
        return Mixture(random.dirichlet(np.ones(3), batch), inner)
    if kind == "symbol mixture":
        inner = Categorical(random.dirichlet(np.ones(3), (*batch, 2)))
        return Mixture(random.dirichlet(np.ones(2), batch), inner)
    return {
        "full": lambda: Gaussian(means, covariances(random, *batch)),
        "diagonal": lambda: Gaussian(means, random.uniform(0.2, 1.0, (*batch, 2))),
        "isotropic": lambda: Gaussian(means, random.uniform(0.2, 1.0, batch)),
        "kde": lambda: KDE(
            random.normal(size=(*batch, 4, 2)), random.uniform(0.2, 1.0, batch), random.integers(1, 5, (*batch, 4))
        ),
        "categorical": lambda: Categorical(random.dirichlet(np.ones(3), batch)),
        "bernoulli": lambda: Bernoulli(random.uniform(size=(*batch, 2))),
    }[kind]()


NUMBERS = ("full", "diagonal", "isotropic", "kde", "mixture")
FAMILIES = (*NUMBERS, "categorical", "symbol mixture", "bernoulli")


def make_hmm(kind: str, n: int, random: np.random.Generator, **final: Any) -> HMM:
    start, steps = random.dirichlet(np.ones(n)), random.dirichlet(np.ones(n), n)
    if "stop" in final:
        steps = steps * (1.0 - np.asarray(final["stop"]))[:, None]
    return HMM(start, steps, make_leaf(kind, random, n), **final)


def total(scaled: Scaled) -> np.ndarray:
    return scaled.values if scaled.logs is None else scaled.values * np.exp(scaled.logs)


# --- characteristic functions


@pytest.mark.parametrize("kind", NUMBERS)
def test_characteristic_functions_of_densities_are_integrals(kind: str) -> None:
    leaf, waves = make_leaf(kind, rng(), 2), rng(1).normal(size=(5, 2))
    line = np.arange(-10.0, 10.0, 0.1)
    points = np.array(list(itertools.product(line, line)))
    density = np.exp(leaf.log_density(points))
    expected = 0.01 * density.T @ np.exp(1j * points @ waves.T)
    assert_allclose(total(leaf.characteristic(waves)), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["categorical", "symbol mixture", "bernoulli"])
def test_characteristic_functions_of_symbols_are_sums(kind: str) -> None:
    leaf = make_leaf(kind, rng(), 2)
    points = np.array(list(itertools.product([0.0, 1.0], repeat=2))) if kind == "bernoulli" else np.eye(3)
    density = np.exp(leaf.log_density(points if kind == "bernoulli" else np.arange(3, dtype=np.int32)))
    waves = rng(1).normal(size=(5, points.shape[1]))
    assert_allclose(total(leaf.characteristic(waves)), density.T @ np.exp(1j * points @ waves.T), rtol=0, atol=1e-14)


@pytest.mark.parametrize("final", [{}, {"end": [0.7, 0.3]}, {"stop": [0.2, 0.6]}], ids=["plain", "end", "stop"])
def test_hidden_markov_models_are_sums_over_all_sequences(final: dict[str, Any]) -> None:
    model = make_hmm("categorical", 2, rng(), **final)
    frequencies = rng(1).normal(size=(4, 6, 3))
    words = np.array(list(itertools.product(range(3), repeat=4)))
    phases = sum(frequencies[t][:, words[:, t]] for t in range(4))
    expected = np.exp(1j * phases) @ np.exp(model.log_prob(list(words)))
    values, logs = log_characteristic(HMM.stack([model]), frequencies)
    assert_allclose((values * np.exp(logs))[0], expected, rtol=1e-12)


@pytest.mark.parametrize("kind", NUMBERS)
def test_hidden_markov_models_are_sums_over_all_paths(kind: str) -> None:
    model, frequencies = make_hmm(kind, 3, rng()), rng(1).normal(size=(4, 6, 2))
    factors = [total(model.emissions.characteristic(waves)) for waves in frequencies]
    expected = np.zeros(6, complex)
    for path in itertools.product(range(3), repeat=4):
        weight = model.start[path[0]] * math.prod(model.transitions[i, j] for i, j in itertools.pairwise(path))
        expected += weight * np.prod([factor[i] for factor, i in zip(factors, path)], axis=0)
    values, logs = log_characteristic(HMM.stack([model]), frequencies)
    assert_allclose((values * np.exp(logs))[0], expected, rtol=1e-12)


# --- the kernel


def test_expectation_over_frequencies_is_the_mean_map_kernel() -> None:
    """By Gauss-Hermite quadrature over the frequencies, which is exact to rounding."""
    random = rng()
    models = [
        HMM(random.dirichlet([1, 1]), random.dirichlet([1, 1], 2), Gaussian(random.normal(size=(2, 1)), [0.1, 0.4]))
        for _ in range(3)
    ]
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    grid = math.sqrt(0.7) * np.array(list(itertools.product(nodes, repeat=2))).T[:, :, None]
    values, logs = log_characteristic(HMM.stack(models), grid)
    features = values * np.exp(logs)
    law = np.outer(weights, weights).ravel() / weights.sum() ** 2
    kernel = (law * features) @ features.conj().T
    assert_allclose(kernel.imag, 0.0, atol=1e-13)
    assert_allclose(kernel.real, np.exp(affinity(models, models, Expected(0.7), 2)), rtol=1e-10)


@pytest.mark.parametrize("kind", FAMILIES)
def test_products_are_unbiased(kind: str) -> None:
    """Within standard errors over independent draws of frequencies, for chains of several sizes and lengths."""
    for length in (1, 4):
        models = [make_hmm(kind, n, rng(n)) for n in (1, 2, 3)]
        exact = np.exp(affinity(models, models, Expected(0.7), length))
        draws = np.empty((100, 3, 3))
        for seed in range(len(draws)):
            embedding = CharacteristicFeatures(0.7, length, 64, normalize=False, random_state=seed)
            features = embedding.fit_transform(models)
            draws[seed] = features @ features.T
        error = draws.std(axis=0, ddof=1) / math.sqrt(len(draws))
        assert_allclose(np.abs(draws.mean(axis=0) - exact) / error, 0.0, atol=4.5)
        assert (error < 0.1 * exact.max()).all()


@pytest.mark.parametrize("kind", FAMILIES)
def test_leaves_are_chains_of_one_state(kind: str) -> None:
    leaf = make_leaf(kind, rng(), 3)
    chains = [HMM([1.0], [[1.0]], type(leaf).stack([member])) for member in leaf.unstack()]
    embedding = CharacteristicFeatures(0.5, 3, 20).fit(leaf)
    assert_allclose(embedding.transform(leaf), embedding.transform(chains), rtol=1e-12, atol=1e-14)
    single = CharacteristicFeatures(0.5, None, 20)
    assert_array_equal(single.fit_transform(leaf), single.set_params(length=1).fit_transform(leaf))


def test_normalised_features_converge_to_the_normalised_kernel() -> None:
    random = rng()
    models = [make_hmm(kind, n, random) for n in (1, 2, 3) for kind in ("diagonal", "mixture", "kde")]
    exact = np.array([[float(affinity(p, q, Expected(1.0), 5)) for q in models] for p in models])
    exact = np.exp(exact - 0.5 * np.diagonal(exact) - 0.5 * np.diagonal(exact)[:, None])
    errors = []
    for size in (200, 3200):
        features = CharacteristicFeatures(1.0, 5, size).fit_transform(models)
        assert_allclose((features**2).sum(axis=1), 1.0, rtol=1e-12)
        errors.append(math.sqrt(np.mean((features @ features.T - exact) ** 2)))
    assert errors[1] < 0.025
    assert 2.0 < errors[0] / errors[1] < 8.0  # a factor 4 in expectation


def test_damped_frequencies_are_worth_their_weights() -> None:
    """Drawn by the variances of the models, frequencies give a far better kernel than drawn from the kernel's law."""
    random = rng()
    models = [make_hmm("diagonal", 3, random) for _ in range(20)]
    exact = MeanMap(2.0, 20).normalized()(models)
    embedding = CharacteristicFeatures(2.0, 20, 512).fit(models)
    damped = embedding.transform(models)
    embedding.frequencies_ = math.sqrt(2.0) * random.standard_normal(embedding.frequencies_.shape)
    embedding.log_weights_ = np.zeros(256)
    plain = embedding.transform(models)
    errors = [math.sqrt(np.mean((features @ features.T - exact) ** 2)) for features in (damped, plain)]
    assert errors[0] < 0.1 < 0.3 * errors[1] + 0.05


def test_zero_sharpness_makes_all_alike() -> None:
    models = [make_hmm("diagonal", n, rng(n)) for n in (1, 2)]
    features = CharacteristicFeatures(0.0, 5, 8, normalize=False).fit_transform(models)
    assert_allclose(features @ features.T, np.ones((2, 2)), rtol=1e-13)


# --- edges


def test_long_sequences_do_not_underflow() -> None:
    models = [make_hmm("diagonal", 2, rng(n)) for n in range(3)] + [make_hmm("kde", 2, rng(9))]
    features = CharacteristicFeatures(1.0, 3000, 16).fit_transform(models)
    assert np.isfinite(features).all()
    assert_allclose((features**2).sum(axis=1), 1.0, rtol=1e-12)
    with pytest.raises(ValueError, match=r"features of model 0 leave the range of floating point.*normalize=True"):
        CharacteristicFeatures(1.0, 3000, 16, normalize=False).fit_transform(models)


def test_states_that_are_never_reached_hide_nothing() -> None:
    """The state in use has factors of the order of e^-1000 of those of a state that is never entered."""
    emissions = Gaussian([[0.0], [1.0]], [1e6, 1e-6])
    model = HMM([1.0, 0.0], [[1.0, 0.0], [0.5, 0.5]], emissions)
    alone = HMM([1.0], [[1.0]], Gaussian([[0.0]], [1e6]))
    embedding = CharacteristicFeatures(1.0, 2, 50)
    embedding.fit([HMM([1.0], [[1.0]], Gaussian([[0.0]], [1e-3]))])
    assert_allclose(embedding.transform([model]), embedding.transform([alone]), rtol=1e-9, atol=1e-12)
    mixed = Mixture([1.0, 0.0], emissions)
    assert_allclose(embedding.transform([mixed]), embedding.transform([Gaussian([0.0], 1e6)]), rtol=1e-9, atol=1e-12)


def test_rows_do_not_depend_on_neighbours_blocks_or_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    random = rng()
    models = [make_hmm(kind, n, random) for n in (2, 3, 2, 1) for kind in ("diagonal", "full", "mixture", "kde")]
    embedding = CharacteristicFeatures(0.7, 4, 30).fit(models)
    features = embedding.transform(models)
    order = random.permutation(len(models))
    assert_array_equal(embedding.transform([models[i] for i in order]), features[order])
    assert_array_equal(embedding.transform(models[3:4]), features[3:4])
    monkeypatch.setattr(module, "NUMBERS", 1)
    assert_array_equal(embedding.transform(models), features)
    assert_array_equal(embedding.set_params(n_jobs=2).transform(models), features)


def test_names_and_shapes() -> None:
    embedding = CharacteristicFeatures(length=3, n_components=4).fit([make_hmm("categorical", 2, rng())])
    assert embedding.get_feature_names_out().tolist() == ["re[0]", "re[1]", "im[0]", "im[1]"]
    assert embedding.frequencies_.shape == (3, 2, 3)
    assert_array_equal(embedding.log_weights_, np.zeros(2))  # of symbols nothing is damped


@pytest.mark.parametrize(
    ("options", "models", "error", "message"),
    [
        ({"lam": -1.0}, None, ValueError, "'lam' parameter of CharacteristicFeatures"),
        ({"n_components": 7}, None, ValueError, "must be even. Got 7"),
        ({"length": 0}, None, ValueError, "'length' parameter of CharacteristicFeatures must be an int >= 1"),
        ({"length": None}, None, ValueError, "need length=, the number of observations"),
        ({}, [], ValueError, "needs at least one model"),
        ({}, Gaussian([0.0], 1.0), ValueError, "put a single model into a list"),
        ({}, ["ab"], TypeError, "FitEach turns objects into models"),
        ({}, [Poisson([1.0])], TypeError, "no characteristic function for Poisson"),
        ({}, [LDS([[1.0]], [[1.0]], [[1.0]], [[1.0]], [0.0], [[1.0]])], TypeError, "Got LDS at index 0"),
        (
            {},
            [Gaussian([0.0], 1.0), Gaussian([0.0, 1.0], 1.0)],
            ValueError,
            "model 1 is over another space.*dimension 2",
        ),
        ({}, [Categorical([0.5, 0.5], "ab"), Categorical([0.5, 0.5], "ac")], ValueError, "model 1 is over another"),
    ],
)
def test_what_cannot_be_is_refused(options: Any, models: Any, error: type[Exception], message: str) -> None:
    given = [make_hmm("diagonal", 2, rng())] if models is None else models
    with pytest.raises(error, match=message):
        CharacteristicFeatures(**{"length": 3, **options}).fit(given)


def test_new_models_must_be_over_the_same_space() -> None:
    plain = make_hmm("categorical", 2, rng())
    stopping = make_hmm("categorical", 2, rng(), stop=[0.5, 0.5])
    embedding = CharacteristicFeatures(length=3, n_components=4).fit([plain])
    with pytest.raises(ValueError, match=r"model 0 is over another space.*stop probabilities True"):
        embedding.transform([stopping])


def test_linear_learners_take_the_features() -> None:
    random = rng()
    y = np.arange(40) % 2
    X = [np.cumsum(random.normal(size=(20, 2)), axis=0) if label else random.normal(size=(20, 2)) for label in y]
    scores = []
    for seed in range(3):  # starts after five steps are a matter of luck
        classifier = make_pipeline(
            FitEach(HMMEstimator(2, max_iter=5, tol=0, random_state=seed)),
            CharacteristicFeatures(0.5, 5, 256),
            LinearSVC(C=10.0),
        )
        scores.append(cross_val_score(classifier, X, y, cv=4).mean())
    assert np.mean(scores) > 0.9
