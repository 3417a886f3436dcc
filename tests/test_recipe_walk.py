"""Predictions of recipes go straight through their steps: the same bits as by scikit-learn's ``Pipeline``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import config_context
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from genkern import RBF, Gram, KernelSVMClassifierCV, Spectrum, recipes
from genkern.recipes.recipe import Recipe

SERIES = [np.sin(np.arange(20 + y) / (2 + y % 2))[:, None] for y in range(8)]
WORDS = ["abab", "baba", "abba", "aabb", "bbaa", "abbb", "aaab", "babb"]
POINTS = np.random.default_rng(0).normal(size=(8, 2)) + np.tile([[0.0], [3.0]], (4, 1))
Y = [0, 1] * 4


def _halved(X: Any) -> Any:
    return np.array([[len(x) / 2.0] for x in X])


def _union(sparse_words: bool) -> FeatureUnion:
    inner = Pipeline([("same", "passthrough"), ("words", Spectrum(2, alphabet="ab", sparse=sparse_words))])
    length = FunctionTransformer(_halved, validate=False)
    return FeatureUnion([("words", inner), ("length", length)], transformer_weights={"length": 0.3})


CASES = {
    "series": (recipes.series(2, 2), SERIES),
    "symbols": (recipes.symbols("ab"), WORDS),
    "sparse": (Recipe([("both", _union(True)), ("learn", LogisticRegression())]), WORDS),
    "dense": (Recipe([("both", _union(False)), ("none", None), ("learn", LogisticRegression())]), WORDS),
    "product": (recipes.product_svm(1), WORDS),
    "one machine": (Recipe([("gram", Gram(RBF(0.5))), ("svm", SVC(kernel="precomputed"))]), POINTS),
    "path": (Recipe([("gram", Gram(RBF(0.5))), ("svm", KernelSVMClassifierCV([0.1, 1.0], cv=2))]), POINTS),
    "clipped": (Recipe([("gram", Gram(RBF(0.5), psd="clip")), ("svm", SVC(kernel="precomputed"))]), POINTS),
    "dropped": (
        Recipe([("both", _union(False).set_params(length="drop")), ("learn", LogisticRegression())]),
        WORDS,
    ),
}


@pytest.fixture(scope="module", params=list(CASES))
def fitted(request: pytest.FixtureRequest) -> Any:
    recipe, X = CASES[request.param]
    return recipe.fit(X, Y), X


@pytest.mark.parametrize("name", ["predict", "predict_proba", "decision_function"])
def test_predictions_are_those_of_a_pipeline(fitted: Any, name: str) -> None:
    recipe, X = fitted
    plain = Pipeline(recipe.steps)
    if not hasattr(plain, name):
        pytest.skip(f"its learner has no {name}")
    for objects in (X, X[:1]):
        np.testing.assert_array_equal(getattr(recipe, name)(objects), getattr(plain, name)(objects))


class Counting(RBF):
    """A kernel that says how many values it was asked for."""

    asked = 0

    def _values(self, X: Any, Y: Any) -> Any:
        Counting.asked += len(X) * len(X if Y is None else Y)
        return super()._values(X, Y)


@pytest.mark.parametrize("learner", [SVC(kernel="precomputed"), KernelSVMClassifierCV([1.0], cv=2)])
def test_new_objects_meet_support_vectors_only(learner: Any) -> None:
    own = np.random.default_rng(1)
    y = np.repeat([0, 1], 50)
    X = own.normal(size=(100, 2)) + 4.0 * y[:, None]
    recipe = Recipe([("gram", Gram(Counting(0.5))), ("svm", learner)]).fit(X, y)
    count = len(recipe[-1].support_)
    assert count < 60
    Counting.asked = 0
    recipe.predict(X[:7])
    assert Counting.asked == 7 * count
    alone = KernelSVMClassifierCV([1.0], Counting(0.5), cv=2).fit(X, y)
    assert len(alone.X_fit_) == len(alone.support_) == alone.dual_coef_.shape[1] < 60
    Counting.asked = 0
    expected = KernelSVMClassifierCV([1.0], cv=2).fit(RBF(0.5)(X), y).decision_function(RBF(0.5)(X))
    np.testing.assert_allclose(alone.decision_function(X), expected, rtol=1e-12, atol=1e-12)
    assert Counting.asked == 100 * len(alone.support_)


def test_objects_like_no_support_vector_are_told_as_before() -> None:
    """Values that vanish beside support vectors alone are no error, if others do not."""
    X = np.array([[0.0], [1.0], [2.0], [3.0], [40.0]])
    recipe = Recipe([("gram", Gram(RBF(1.0))), ("svm", SVC(kernel="precomputed"))]).fit(X, [0, 0, 1, 1, 1])
    for far in ([[60.0]], [[1000.0]]):
        np.testing.assert_array_equal(recipe.decision_function(far), Pipeline(recipe.steps).decision_function(far))


def test_metadata_are_routed_by_the_pipeline(fitted: Any) -> None:
    recipe, X = fitted
    with config_context(enable_metadata_routing=True):
        np.testing.assert_array_equal(recipe.predict(X), Pipeline(recipe.steps).predict(X))


@pytest.mark.parametrize("by", ["estimator", "setting"])
def test_learners_get_frames_where_they_were_fitted_to_frames(by: str) -> None:
    pytest.importorskip("pandas")
    recipe = Recipe([("both", _union(False).set_params(length="drop")), ("learn", LogisticRegression())])
    if by == "estimator":
        recipe.set_output(transform="pandas")
    with config_context(transform_output="pandas" if by == "setting" else "default"):
        recipe.fit(WORDS, Y)
        assert list(recipe[-1].feature_names_in_)[:1] == ["words__aa"]
        assert len(recipe.predict(WORDS)) == len(WORDS)  # a learner warns of arrays, and warnings are errors here


def test_what_is_not_fitted_says_so() -> None:
    recipe = Recipe([("scale", StandardScaler()), ("learn", LogisticRegression())])
    with pytest.raises(NotFittedError, match="Recipe"):
        recipe.predict([[1.0]])
