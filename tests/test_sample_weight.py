"""Weights of objects in ``fit`` of every estimator: two is the object given twice, zero the object left out."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from sklearn import set_config
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import genkern as g
from genkern.models.estimator import ModelEstimator
from genkern.models.fit.weights import quantiles
from genkern.models.value import Value

RNG = np.random.default_rng(0)
WORDS = ["".join(RNG.choice(list("abc"), size=n)) for n in (6, 9, 14, 7, 11, 8)]
GAPS = ["".join("?" if RNG.random() < 0.15 else c for c in word) for word in WORDS]
SERIES = [np.cumsum(RNG.normal(size=(n, 2)), axis=0) for n in (12, 20, 9, 15, 11, 17)]
BAGS = [RNG.normal(size=(n, 2)) + 4.0 * (RNG.random((n, 1)) < 0.4) for n in (5, 9, 7, 11, 6, 8)]
HOLES = [np.where(RNG.random(bag.shape) < 0.15, np.nan, bag) for bag in BAGS]
POSITIVE = [np.abs(bag) + 0.1 for bag in BAGS]
CODES = [RNG.integers(0, 2, size=(n, 3)) for n in (5, 9, 7, 11, 6, 8)]
GRAPH = {"a": [], "b": ["a"], "c": ["b"]}
NET = {"h": [], "a": ["h"], "b": ["h"]}
HIDDEN = {"h": [], "a": ["h"], "b": ["h"], "c": ["h"]}

MIXTURE = g.Mixture([0.4, 0.6], g.Gaussian([[0.0, 0.0], [3.0, 4.0]], [[1.0, 2.0], [2.0, 1.0]]))
CHAIN = g.HMM([0.4, 0.6], [[0.8, 0.2], [0.3, 0.7]], MIXTURE.components)
LDS = g.LDS([[0.9, 0.1], [-0.1, 0.8]], [[1.0, 0.2], [0.1, 1.0]], np.eye(2), [1.0, 2.0], [0.0, 0.0], np.eye(2))
OTHER = g.LDS(0.5 * np.eye(2), [[0.5, 1.0], [1.0, 0.1]], 2 * np.eye(2), [2.0, 1.0], [1.0, 0.0], np.eye(2))
SWITCHING = g.SwitchingLDS([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], g.LDS.stack([LDS, OTHER]))
STEPS: dict[str, Any] = {"max_iter": 6, "tol": 0.0}

CASES: dict[str, tuple[Any, Any]] = {
    "gaussian": (g.GaussianEstimator(), BAGS),
    "gaussian full missing": (g.GaussianEstimator("full"), HOLES),
    "gaussian map": (g.GaussianEstimator("isotropic", estimate="map"), BAGS),
    "gaussian predictive": (g.GaussianEstimator(estimate="predictive"), HOLES),
    "categorical": (g.CategoricalEstimator(), WORDS),
    "categorical missing": (g.CategoricalEstimator(missing="?"), GAPS),
    "categorical predictive": (g.CategoricalEstimator(estimate="predictive"), WORDS),
    "bernoulli": (g.BernoulliEstimator(), [np.float64(bag > 1.0) for bag in BAGS]),
    "bernoulli predictive": (g.BernoulliEstimator(estimate="predictive"), [np.float64(bag > 1.0) for bag in BAGS]),
    "poisson": (g.PoissonEstimator(), [np.floor(bag) for bag in POSITIVE]),
    "poisson predictive": (g.PoissonEstimator(estimate="predictive"), [np.floor(bag) for bag in POSITIVE]),
    "geometric": (g.GeometricEstimator(), [np.floor(bag) for bag in POSITIVE]),
    "exponential": (g.ExponentialEstimator(), POSITIVE),
    "gamma": (g.GammaEstimator(), POSITIVE),
    "dirichlet": (g.DirichletEstimator(), [bag / bag.sum(axis=1, keepdims=True) for bag in POSITIVE]),
    "von mises": (g.VonMisesEstimator(), BAGS),
    "multinomial": (g.MultinomialEstimator(), [np.floor(bag) + 1.0 for bag in POSITIVE]),
    "multinomial predictive": (
        g.MultinomialEstimator(estimate="predictive"),
        [np.floor(bag) + 1.0 for bag in POSITIVE],
    ),
    "kde": (g.KDEEstimator(), BAGS),
    "kde silverman": (g.KDEEstimator("silverman"), BAGS),
    "site": (g.SiteEstimator(), [word[:5] for word in WORDS]),
    "chain": (g.MarkovChainEstimator(1, backoff=1.0), WORDS),
    "chain missing": (g.MarkovChainEstimator(1, backoff=1.0, missing="?", **STEPS), GAPS),
    "periodic": (g.PeriodicChainEstimator(0, 1, missing="?", tol=1e-12), GAPS),
    "positional": (g.PositionalChainEstimator(1, 14), WORDS),
    "profile": (g.ProfileHMMEstimator(4, n_init=2, **STEPS), WORDS),
    "profile effective": (g.ProfileHMMEstimator(n_init=1, effective="entropy", **STEPS), WORDS),
    "bayes net": (g.BayesNetEstimator(GRAPH), CODES),
    "bayes net hidden": (g.BayesNetEstimator(HIDDEN, hidden={"h": 2}, **STEPS), CODES),
    "linear gaussian": (g.LinearGaussianNetEstimator({"a": [], "b": ["a"]}, ridge=0.5), BAGS),
    "linear gaussian missing": (g.LinearGaussianNetEstimator({"a": [], "b": ["a"]}, **STEPS), HOLES),
    "bayes net hidden restarts": (g.BayesNetEstimator(HIDDEN, hidden={"h": 2}, n_init=3, **STEPS), CODES),
    "linear gaussian hidden": (g.LinearGaussianNetEstimator(NET, hidden={"h": 1}, n_init=2, **STEPS), BAGS),
    "periodic one": (g.PeriodicChainEstimator(1, 3, random_state=1, **STEPS), WORDS),
    **{f"mixture {init}": (g.MixtureEstimator(2, init=init, **STEPS), HOLES) for init in ("auto", "kmeans", "random")},
    **{
        f"mixture restarts {seed}": (g.MixtureEstimator(3, n_init=4, random_state=seed, **STEPS), BAGS)
        for seed in (0, 2)
    },
    "mixture symbols": (g.MixtureEstimator(2, init="random", **STEPS), WORDS),
    "mixture many": (
        g.MixtureEstimator(4, component=g.GaussianEstimator("isotropic"), **STEPS),
        [BAGS[0][:2], BAGS[1][:1]] * 3,
    ),
    "mixture bic": (g.MixtureEstimator("bic", max_components=3, **STEPS), BAGS),
    **{
        f"hmm {init}": (g.HMMEstimator(2, init=init, n_init=2, **STEPS), SERIES)
        for init in ("auto", "random", "segmental", "kmeans", "viterbi", "gmm")
    },
    **{f"hmm symbols {init}": (g.HMMEstimator(2, init=init, **STEPS), WORDS) for init in ("random", "viterbi")},
    "hmm left-right": (g.HMMEstimator(3, init="viterbi", structure="left-right", **STEPS), SERIES),
    "hmm mixture": (g.HMMEstimator(2, emission=g.MixtureEstimator(2, g.GaussianEstimator()), **STEPS), SERIES),
    "hmm aic": (g.HMMEstimator("aic", max_states=3, **STEPS), SERIES),
    "lds pca": (g.LDSEstimator(2, init="pca", **STEPS), SERIES),
    "switching auto": (g.SwitchingLDSEstimator(2, 2, n_init=2, **STEPS), SERIES),
    "mixture": (g.MixtureEstimator(2, init=MIXTURE, **STEPS), BAGS),
    "mixture missing": (g.MixtureEstimator(2, init=MIXTURE, **STEPS), HOLES),
    "hmm": (g.HMMEstimator(2, init="segmental", ending="stop", **STEPS), WORDS),
    "hmm auto": (g.HMMEstimator(**STEPS), WORDS),
    "hmm gaussian": (g.HMMEstimator(init=CHAIN, **STEPS), SERIES),
    "lds": (g.LDSEstimator(2, **STEPS), SERIES),
    "lds init": (g.LDSEstimator(2, init=LDS, n_init=2, **STEPS), SERIES),
    "switching": (g.SwitchingLDSEstimator(2, 2, init=SWITCHING, **STEPS), SERIES),
    "factorial": (g.FactorialHMMEstimator((2, 2), n_init=2, **STEPS), SERIES),
    "factorial variational": (g.FactorialHMMEstimator((2, 2), e_step="variational", **STEPS), SERIES),
}
WEIGHTS = np.array([2.0, 1.0, 0.0, 3.0, 1.0, 2.0])


def arrays(value: Any) -> list[Any]:
    if isinstance(value, Value):
        return [part for name in value._fields for part in arrays(getattr(value, name))]
    if isinstance(value, tuple):
        return [part for each in value for part in arrays(each)]
    return [value] if isinstance(value, np.ndarray | float) else []


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CASES)
def test_a_weight_is_how_often_an_object_is_given(name):
    estimator, X = CASES[name]
    repeated = list(itertools.chain.from_iterable([x] * int(w) for x, w in zip(X, WEIGHTS)))
    found, expected = (clone(estimator).fit(X, sample_weight=WEIGHTS), clone(estimator).fit(repeated))
    plain = clone(estimator).fit(X)
    tolerance: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-9} if hasattr(estimator, "max_iter") else {"rtol": 1e-9}
    pairs = list(zip(arrays(found.model_), arrays(expected.model_), strict=True))
    for got, wanted in pairs:
        np.testing.assert_allclose(got, wanted, **tolerance)
    if hasattr(found, "history_"):
        np.testing.assert_allclose(found.history_, expected.history_, rtol=1e-8)
        assert (np.diff(found.history_) > -1e-8 * np.abs(found.history_[-1])).all()
    assert any(a.shape != b.shape or not np.allclose(a, b) for a, b in zip(arrays(plain.model_), arrays(found.model_)))


SYMBOLS = {
    "categorical": (g.CategoricalEstimator(), "abc"),
    "site": (g.SiteEstimator(), "abc"),
    "chain": (g.MarkovChainEstimator(1), "abc"),
    "periodic": (g.PeriodicChainEstimator(0, 2, max_iter=3, tol=0.0), "abc"),
    "positional": (g.PositionalChainEstimator(1, 4), "abc"),
    "profile": (g.ProfileHMMEstimator(4, n_init=2, max_iter=3, tol=0.0), "abc"),
    "mixture": (g.MixtureEstimator(2, max_iter=3, tol=0.0), "abc"),
    "hmm": (g.HMMEstimator(2, max_iter=3, tol=0.0), "abc"),
    "bayes net": (g.BayesNetEstimator({"a": [], "b": ["a"]}), [0, 1, 2]),
}


@pytest.mark.parametrize("name", SYMBOLS)
def test_objects_of_weight_zero_do_not_even_name_a_symbol(name):
    estimator, (a, b, c) = SYMBOLS[name]
    X = [[a, b, b, a], [a, c, a, c], [b, a, a, b], [b, b, a, a]]
    if name == "bayes net":
        X = [np.array(x).reshape(2, 2) for x in X]
    found = clone(estimator).fit(X, sample_weight=[1.0, 0.0, 1.0, 2.0]).model_
    expected = clone(estimator).fit([X[0], X[2], X[3], X[3]]).model_
    assert getattr(found, "alphabet", None) == getattr(expected, "alphabet", None)
    for got, wanted in zip(arrays(found), arrays(expected), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12)


def test_symbols_of_left_out_objects_are_declared_by_an_alphabet():
    model = g.CategoricalEstimator().fit(["ab", "abc"], sample_weight=[1.0, 0.0]).model_
    with pytest.warns(UserWarning, match="alphabet="):
        assert np.isfinite(model.log_prob(["abc"])).all()
    declared = g.CategoricalEstimator(alphabet="abc").fit(["ab", "abc"], sample_weight=[1.0, 0.0]).model_
    assert declared.probs.shape == (3,)


def test_errors_name_objects_as_the_caller_counts_them():
    with pytest.raises(ValueError, match="object 2"):
        g.CategoricalEstimator(alphabet="ab", unknown="error").fit(["ab", "ab", "abc"], sample_weight=[1.0, 0.0, 1.0])
    with pytest.raises(ValueError, match="object 2, position 1"):
        g.HMMEstimator(2).fit(["ab"] * 3, sample_weight=[1, 0, 1], states=[[0, 1], [0, 1], [0, 2]])


def test_states_of_left_out_objects_are_left_out():
    states = [[0, 1, 0, 1], [0, 3, 2, 1], [1, 1, 0, 0]]
    X = ["abba", "abab", "baab"]
    found = g.HMMEstimator().fit(X, sample_weight=[1.0, 0.0, 1.0], states=states).model_
    expected = g.HMMEstimator().fit(X[::2], states=states[::2]).model_
    assert found.n_states == 2
    for got, wanted in zip(arrays(found), arrays(expected), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9)


@pytest.mark.parametrize("known", [0.5, 1.0])
def test_weights_count_known_states_too(known):
    rng = np.random.default_rng(2)
    states = [np.where(rng.random(len(x)) < known, rng.integers(0, 2, len(x)), -1) for x in SERIES]
    often = [int(w) for w in WEIGHTS]
    repeated = [[one for one, w in zip(every, often) for _ in range(w)] for every in (SERIES, states)]
    estimator = g.HMMEstimator(2, **STEPS)
    for init, n in ((CHAIN, 2), ("auto", 2), ("auto", 3)):  # the third state has no label
        options = {"init": init, "n_states": n}
        expected = clone(estimator).set_params(**options).fit(repeated[0], states=repeated[1])
        found = clone(estimator).set_params(**options).fit(SERIES, sample_weight=WEIGHTS, states=states)
        for got, wanted in zip(arrays(found.model_), arrays(expected.model_), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(found.history_, expected.history_, rtol=1e-10)


def test_all_estimators_are_in_the_table():
    every = {
        name for name in dir(g) if isinstance(getattr(g, name), type) and issubclass(getattr(g, name), ModelEstimator)
    }
    assert every <= {type(estimator).__name__ for estimator, _ in CASES.values()}


@pytest.mark.parametrize("name", ["gaussian", "kde", "chain", "bayes net", "mixture", "lds"])
def test_weights_that_make_no_sense_are_refused(name):
    estimator, X = CASES[name]
    who = type(estimator).__name__
    for weights, message in (
        ([1.0] * 5, r"'sample_weight' must have shape \(6,\).*Got shape \(5,\)"),
        ([[1.0]] * 6, "must have shape"),
        ([1, 1, -2, 1, 1, 1], "at least zero. Got -2 for object 2"),
        ([0.0] * 6, "zero for all objects"),
        ([1, 1, np.nan, 1, 1, 1], "must be finite"),
    ):
        with pytest.raises(ValueError, match=f"{who}: .*{message}"):
            clone(estimator).fit(X, sample_weight=weights)


@pytest.mark.parametrize("shares", [0.5, (0.1, 0.9), (0.0, 1.0)])
def test_quantiles_of_weighted_values_are_those_of_repeated_ones(shares):
    rng = np.random.default_rng(1)
    for _ in range(50):
        values, weights = rng.normal(size=7).round(1), rng.integers(1, 5, size=7)
        expected = np.quantile(np.repeat(values, weights), shares)
        np.testing.assert_allclose(quantiles(values, weights.astype(float), shares), expected, rtol=1e-12, atol=1e-12)


def test_pipelines_route_weights():
    X = np.concatenate(BAGS)
    weights = np.arange(len(X)) % 3
    pipeline = make_pipeline(g.GaussianEstimator()).fit(X, gaussianestimator__sample_weight=weights)
    expected = np.average(X, axis=0, weights=weights)
    np.testing.assert_allclose(pipeline[-1].model_.mean, expected, rtol=1e-12)
    set_config(enable_metadata_routing=True)
    try:
        routed = make_pipeline(g.GaussianEstimator().set_fit_request(sample_weight=True))
        np.testing.assert_allclose(routed.fit(X, sample_weight=weights)[-1].model_.mean, expected, rtol=1e-12)
    finally:
        set_config(enable_metadata_routing=False)


@pytest.mark.parametrize("priors", ["empirical", "uniform"])
@pytest.mark.parametrize("given", [False, True])
def test_plug_in_counts_objects_by_weight(priors: str, given: bool) -> None:
    labels, counts = np.array([0, 1, 0, 1, 0, 1]), np.array([2, 1, 0, 3, 1, 1])
    words = [*WORDS[:2], WORDS[2] + "z", *WORDS[3:]]  # a letter of an object that does not count
    rows = np.repeat(np.arange(6), counts)
    chain = g.MarkovChainEstimator(1, pseudocount=0.5)
    models = {c: chain.fit(WORDS[c::2]).model_ for c in (0, 1)}
    one, other = (g.PlugInClassifier(models if given else chain, priors) for _ in range(2))
    one.fit(WORDS if given else words, labels, sample_weight=counts)
    other.fit([WORDS[i] for i in rows], labels[rows])
    np.testing.assert_allclose(one.priors_, [3 / 8, 5 / 8] if priors == "empirical" else [0.5, 0.5])
    np.testing.assert_allclose(one.joint_log_prob(WORDS), other.joint_log_prob(WORDS), rtol=1e-10)
    with pytest.raises(ValueError, match="positive weight in every class"):
        one.fit(WORDS, labels, sample_weight=labels)
    with pytest.raises(ValueError, match="sample_weight"):
        one.fit(WORDS, labels, sample_weight=np.ones(5))
