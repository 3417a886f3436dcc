"""Recipes say once per call what all their parts find in the objects."""

import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from genkern import FisherScore, GaussianEstimator, MultiScale, Spectrum, Views, explain
from genkern.recipes import aligned_symbols, fisher_svm, series, symbols
from genkern.validation import one_warning_each, warn


def words(count=40, length=12):
    rng = np.random.default_rng(0)
    return ["".join(rng.choice(list("abcd"), length)) for _ in range(count)], np.arange(count) % 2


def warned(call, *args):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*args)
    return [str(one.message) for one in caught]


def test_unknown_symbols_are_named_once_per_call():
    X, y = words()
    learner = symbols(n_lags=2, n_gaps=2).fit(X, y)
    for new in (["abzz", "abcd"], ["abzz", "abcd"], ["aqzz", "abcd"]):
        (text,) = warned(learner.predict, new)
        assert "'z' (object 0, position" in text
    assert "'q' (object 0, position 1)" in text


def test_folds_know_the_symbols_of_all_training_objects():
    X, y = words()
    X[3] = "e" + X[3][1:]
    learner = aligned_symbols(ks=(1,), region_ks=(1,), orders=(0, 1), cv=3)
    assert warned(learner.fit, X, y) == []
    assert len(warned(learner.predict, ["z" + X[0][1:], *X[1:4]])) == 1


def test_series_without_values_are_named_once_per_call():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(20, 2)) for _ in range(12)]
    learner = series()
    assert len(warned(learner.fit, X, np.arange(12) % 2)) <= 1
    X[1] = X[1] * np.nan
    (text,) = warned(learner.predict, X)
    assert "(object 1)" in text


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_threads_are_part_of_the_call(n_jobs):
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(12, 2)) for _ in range(8)], np.arange(8) % 2
    X[1] = X[1] * np.nan
    learner = series(4, 2, n_jobs=n_jobs)
    empty = [text for text in warned(learner.fit, X, y) if "nothing observed" in text]
    assert len(empty) == len(warned(learner.predict, X)) == 1
    scales = MultiScale(FisherScore(GaussianEstimator()), widths=(1, 3, 5), n_jobs=n_jobs)
    assert len(warned(scales.fit, X)) == len(warned(scales.transform, X)) == 1
    views = Views([(f"k{k}", Spectrum(k)) for k in (1, 2, 3)], n_jobs=n_jobs).fit(["abab", "bb"])
    assert len(warned(views.transform, ["abz"])) == 1


def test_threads_stay_threads_whatever_backend_is_asked_for():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(9, 2)) for _ in range(4)]
    scales = MultiScale(FisherScore(GaussianEstimator()), widths=(1, 3), n_jobs=2)
    expected = clone(scales).fit(X).transform(X)
    with joblib.parallel_config(backend="loky"):
        np.testing.assert_array_equal(scales.fit(X).transform(X), expected)
        views = Views([("a", Spectrum(1)), ("b", Spectrum(2))], n_jobs=2).fit(["abab", "bb"])
    assert len(views.transform(["ab"])) == 1


def test_explanations_say_a_thing_once():
    X, y = words()
    for learner in (symbols(n_lags=2, n_gaps=1), fisher_svm(2)):
        assert len(warned(explain, learner.fit(X, y), "abzz")) == 1


def test_a_thing_is_said_once_inside_and_always_outside():
    def twice():
        for _ in range(2):
            warn("words", UserWarning, ["a"])

    assert len(warned(twice)) == 2
    with one_warning_each():
        assert len(warned(twice)) == 1
        with one_warning_each(), pytest.warns(UserWarning, match="more"):
            warn("more", UserWarning, ["a", "b"])
    assert len(warned(twice)) == 2


def test_a_recipe_has_the_methods_of_its_last_step():
    learner = symbols()
    assert hasattr(learner, "predict")
    assert not hasattr(learner, "transform")
