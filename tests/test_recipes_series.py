"""The recipe of series: it classifies what differs in shape, level or order, and takes what real series bring."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from genkern import Channels
from genkern.datasets import load_japanese_vowels
from genkern.recipes import series


def waves(count=30, seed=0, gaps=0.0):
    """Return series of one channel, of three classes that differ in frequency or in the direction of time."""
    rng = np.random.default_rng(seed)
    X, y = [], np.arange(count) % 3
    for label in y:
        t = np.arange(rng.integers(30, 60)) + rng.uniform(0, 10)
        x = (t / 6) % 1 if label == 0 else (-t / 6) % 1 if label == 1 else (t / 9) % 1
        x = x + 0.1 * rng.standard_normal(len(x))
        x[rng.random(len(x)) < gaps] = np.nan
        X.append(x)
    return X, y


def small(**options):
    return series(n_components=6, n_states=2, **options).set_params(
        scores__bag__widths=(1, 9), scores__chain__widths=(1, 9)
    )


@pytest.mark.parametrize("gaps", [0.0, 0.1])
def test_recipe_tells_shapes_apart(gaps):
    X, y = waves(gaps=gaps)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a fixed number of EM steps is no failure to converge
        assert cross_val_score(series(n_components=6, n_states=2), X, y, cv=3).mean() > 0.9


def test_windows_are_needed():
    X, y = waves()
    single = small().set_params(scores__bag__widths=(1,), scores__chain__widths=(1,))
    assert cross_val_score(single, X, y, cv=3).mean() < 0.8


def test_recipe_survives_cloning_and_pickling():
    X, y = waves()
    fitted = clone(small()).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))
    threads = small(n_jobs=2).fit(X, y)
    np.testing.assert_allclose(threads.decision_function(X), fitted.decision_function(X), rtol=0, atol=1e-8)


def test_recipe_can_be_searched_and_takes_groups():
    X, y = waves()
    grid = {"scores__bag__widths": [(1,), (1, 9)], "scores__bag__embedding__embedding__estimator__n_components": [4]}
    bags = small().set_params(scores__chain="drop")
    search = GridSearchCV(bags, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_["scores__bag__widths"] == (1, 9)
    groups = np.arange(30) // 6
    alone, together = small().fit(X, y), small().fit(X, y, ridge__groups=groups)
    assert abs(alone["ridge"].cv_squared_ - together["ridge"].cv_squared_).max() > 1e-4


def test_steps_and_features_have_names():
    X, y = waves()
    fitted = small().fit(X, y)
    assert list(fitted.named_steps) == ["scores", "ridge"]
    names = fitted["scores"].get_feature_names_out()
    assert len(names) == fitted["ridge"].n_features_in_
    assert "bag__w9_normalized__occupancy[5]" in names
    assert "chain__w9__occupancy[1,3]" in names


def test_units_do_not_matter():
    X, y = waves()
    other = [2.0**20 * x for x in X]
    np.testing.assert_allclose(
        small().fit(other, y).decision_function(other), small().fit(X, y).decision_function(X), rtol=0, atol=1e-8
    )


def test_constant_and_short_series_are_legal():
    X = [np.zeros(20), np.zeros(3), np.zeros(1), np.ones(20), np.ones(2), np.ones(30)]
    y = [0, 0, 0, 1, 1, 1]
    fitted = series(n_components=2, n_states=2).fit(X, y)
    np.testing.assert_array_equal(fitted.predict(X), y)
    assert np.isfinite(fitted.decision_function([np.full(5, 1e3)])).all()
    flat = series(n_components=2, n_states=2).fit([np.zeros(20)] * 4, [0, 0, 1, 1])
    assert np.isfinite(flat.decision_function([np.arange(9.0)])).all()


def test_closed_contours_may_begin_anywhere():
    squares = ["0" * a + "2" * b + "4" * a + "6" * b for a, b in [(9, 8), (12, 9), (10, 10), (8, 9)]]
    diamonds = ["1" * a + "3" * b + "5" * a + "7" * b for a, b in [(9, 8), (12, 9), (10, 10), (8, 9)]]
    X, y = squares + diamonds, np.repeat([0, 1], 4)
    recipe = make_pipeline(Channels("angles", alphabet="01234567"), small(circular=True)).fit(X, y)
    np.testing.assert_array_equal(recipe.predict([x[7:] + x[:7] for x in X]), y)


def test_japanese_vowels():
    vowels = load_japanese_vowels()
    train, test = vowels.part("train"), vowels.part("test")
    fitted = series().set_params(scores__bag__widths=(1, 5), scores__chain__widths=(1, 5)).fit(train.X, train.y)
    assert np.mean(fitted.predict(test.X) != test.y) < 0.025
