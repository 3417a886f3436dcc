"""The plug-in Bayes classifier."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from genkern import (
    HMM,
    Categorical,
    CategoricalEstimator,
    ClassMixture,
    GaussianEstimator,
    HMMEstimator,
    PlugInClassifier,
    StateSpace,
    TopScore,
)
from genkern.datasets import make_two_hmms

X = ["aaab", "aab", "aaaa", "bbab", "bbb"]
Y = np.array(["A", "A", "A", "B", "B"])


def test_posterior_is_bayes_rule():
    classifier = PlugInClassifier(CategoricalEstimator(pseudocount=0)).fit(X, Y)
    # 9 of 11 letters are a in class A, 1 of 7 in class B
    joint = np.array([0.6 * (9 / 11) * (2 / 11), 0.4 * (1 / 7) * (6 / 7)])
    expected = joint / joint.sum()
    np.testing.assert_allclose(classifier.predict_proba(["ab"])[0], expected, rtol=1e-12)
    np.testing.assert_allclose(classifier.predict_log_proba(["ab"])[0], np.log(expected), rtol=1e-12)
    np.testing.assert_allclose(classifier.decision_function(["ab"]), np.log(expected[1] / expected[0]), rtol=1e-12)
    assert classifier.predict(["aaa", "bbb"]).tolist() == ["A", "B"]
    assert classifier.classes_.tolist() == ["A", "B"]
    assert len(classifier.models_) == 2


@pytest.mark.parametrize(
    ("priors", "expected"),
    [("empirical", [0.6, 0.4]), ("uniform", [0.5, 0.5]), ([0.9, 0.1], [0.9, 0.1]), ({"B": 0.7, "A": 0.3}, [0.3, 0.7])],
)
def test_priors(priors, expected):
    fitted = PlugInClassifier(CategoricalEstimator(), priors=priors).fit(X, Y)
    np.testing.assert_allclose(fitted.priors_, expected, rtol=1e-12)
    likelihood = np.stack([model.log_prob(["ab"]) for model in fitted.models_], axis=1)
    np.testing.assert_allclose(fitted.joint_log_prob(["ab"]), likelihood + np.log(expected), rtol=1e-12)


@pytest.mark.parametrize(
    ("priors", "message"),
    [("bayes", "'empirical', 'uniform'"), ([0.5, 0.2, 0.3], "shape"), ([0.5, 0.6], "sum to 1"), ({"A": 1.0}, "'B'")],
)
def test_wrong_priors_are_refused(priors, message):
    with pytest.raises(ValueError, match=message):
        PlugInClassifier(CategoricalEstimator(), priors=priors).fit(X, Y)


def test_diagonal_gaussians_on_a_table_are_naive_bayes():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((60, 3)) + np.repeat(np.arange(3), 20)[:, None]
    labels = np.repeat(np.arange(3), 20)
    ours = PlugInClassifier(GaussianEstimator(min_covar=0.0)).fit(table, labels)
    theirs = GaussianNB(var_smoothing=0.0).fit(table, labels)
    np.testing.assert_allclose(ours.predict_proba(table), theirs.predict_proba(table), rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours.decision_function(table), ours.predict_log_proba(table), rtol=1e-12)
    assert ours.score(table, labels) == theirs.score(table, labels)


def test_classes_share_the_alphabet():
    fitted = PlugInClassifier(HMMEstimator(1)).fit(["aa", "ab", "cc"], [0, 0, 1])
    assert {model.emissions.alphabet.symbols for model in fitted.models_} == {("a", "b", "c")}
    assert fitted.predict(["bb", "cac"]).tolist() == [0, 1]


def test_impossible_object_is_named():
    fitted = PlugInClassifier(CategoricalEstimator("abc", pseudocount=0)).fit(X, Y)
    with pytest.raises(ValueError, match="object 1 has probability zero in every class"):
        fitted.predict(["ab", "ac"])


def test_class_that_excludes_an_object_has_posterior_zero():
    fitted = PlugInClassifier(CategoricalEstimator(pseudocount=0)).fit(["aa", "ab"], [0, 1])
    np.testing.assert_array_equal(fitted.predict_proba(["ab"]), [[0.0, 1.0]])
    assert fitted.decision_function(["ab"])[0] == np.inf


def test_very_long_objects_do_not_underflow():
    fitted = PlugInClassifier(CategoricalEstimator()).fit(X, Y)
    proba = fitted.predict_proba(["ab" * 50_000])
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)


def test_chains_with_equal_symbol_frequencies_are_told_apart():
    # the two classes differ in their transitions only; a first guess with equal states would never leave them equal
    data = make_two_hmms(n_per_class=200)
    fitted = PlugInClassifier(HMMEstimator(3, random_state=0)).fit(data.X[::2], data.y[::2])
    assert fitted.score(data.X[1::2], data.y[1::2]) > 0.88  # Bayes: about 0.94


def test_models_may_be_given():
    models = {
        "low": HMM([1.0], [[1.0]], Categorical([[0.9, 0.1]], "ab")),
        "high": HMM([1.0], [[1.0]], Categorical([[0.1, 0.9]], "ab")),
    }
    fitted = PlugInClassifier(models, priors="uniform").fit(["a", "b"], ["high", "low"])
    assert fitted.classes_.tolist() == ["high", "low"]
    assert fitted.models_ == [models["high"], models["low"]]
    assert fitted.predict(["aab", "bb"]).tolist() == ["low", "high"]
    given = PlugInClassifier(ClassMixture(models, [0.25, 0.75])).fit(["a", "b"], ["high", "low"])
    by_dict = PlugInClassifier(models, priors={"low": 0.25, "high": 0.75}).fit(["a", "b"], ["high", "low"])
    assert given.model_ == by_dict.model_ == ClassMixture(dict(sorted(models.items())), [0.75, 0.25])
    np.testing.assert_array_equal(given.decision_function(["ab"]), by_dict.decision_function(["ab"]))
    with pytest.raises(ValueError, match="priors of its own"):
        PlugInClassifier(ClassMixture(models), priors="uniform").fit(["a", "b"], ["high", "low"])
    for priors in ("empirical", "uniform"):
        with pytest.raises(ValueError, match="'middle'"):
            PlugInClassifier(models, priors).fit(["a", "b"], ["low", "middle"])
    with pytest.raises(ValueError, match="prior of class 'high' is zero"):
        PlugInClassifier(models, {"low": 1.0, "high": 0.0}).fit(["a", "b"], ["low", "high"])


@pytest.mark.parametrize(
    ("models", "error", "message"),
    [
        ({}, ValueError, "dict of class models is empty"),
        ({0: Categorical([1.0]), 1: [1.0]}, TypeError, r"class 1 must have a model, or an estimator .* Got list\."),
        ({0: Categorical([1.0]), "b": Categorical([1.0])}, TypeError, "of one kind. Got 0, 'b'"),
        (
            {0: Categorical([0.5, 0.5], "ab"), 1: Categorical([0.5, 0.5], "ac")},
            ValueError,
            r"same alphabet. Class 0 has Alphabet\('ab'\), class 1 Alphabet\('ac'\)",
        ),
        (
            {0: Categorical([0.5, 0.5], "ab"), 1: HMM([1.0], [[1.0]], Categorical([[0.5, 0.5]], "ac"))},
            ValueError,
            "same alphabet",
        ),
    ],
)
@pytest.mark.parametrize("make", [PlugInClassifier, TopScore, StateSpace])
def test_what_are_no_class_models_is_refused(make, models, error, message):
    with pytest.raises(error, match=f"{make.__name__}: .*{message}"):
        make(models).fit(["a", "a"], [0, 1])


def test_labels_are_checked():
    classifier = PlugInClassifier(CategoricalEstimator())
    with pytest.raises(ValueError, match="inconsistent"):
        classifier.fit(X, Y[:3])
    with pytest.raises(ValueError, match="Unknown label type"):
        classifier.fit(X, [0.1, 0.2, 0.3, 0.4, 0.5])
    with pytest.raises(ValueError, match="y is None"):
        classifier.fit(X, None)
    with pytest.raises(TypeError, match="estimator of models"):
        PlugInClassifier(GaussianNB()).fit(X, Y)
