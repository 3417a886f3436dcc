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

from genkern import Spectrum, recipes
from genkern.recipes.recipe import Recipe

SERIES = [np.sin(np.arange(20 + y) / (2 + y % 2))[:, None] for y in range(8)]
WORDS = ["abab", "baba", "abba", "aabb", "bbaa", "abbb", "aaab", "babb"]
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
    for objects in (X, X[:1]):
        np.testing.assert_array_equal(getattr(recipe, name)(objects), getattr(plain, name)(objects))


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
