"""Intervals, paired and two-sample tests, and cross-validation side by side, against enumeration and by hand."""

from __future__ import annotations

from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import StratifiedKFold

from genkern.evaluation import error_interval, evaluate, paired_test, two_sample_test


class Nearest(ClassifierMixin, BaseEstimator):
    """Answers with the label of the nearest training number; keeps the groups it was given."""

    def fit(self, X, y, groups=None):
        self.X_, self.y_, self.groups_ = np.asarray(X), np.asarray(y), groups
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.y_[np.abs(np.asarray(X)[:, None] - self.X_).argmin(axis=1)]


class Fails(Nearest):
    def fit(self, X, y):
        raise ValueError("object 3 is a stone")


@given(st.integers(1, 200), st.data())
def test_wilson_interval_solves_the_score_equation(n: int, data: st.DataObject) -> None:
    errors = data.draw(st.integers(0, n))
    rate = errors / n
    for end in error_interval([1.0] * errors + [0.0] * (n - errors)):
        if 0.0 < end < 1.0:  # (rate - p)^2 = z^2 p (1 - p) / n at both ends
            np.testing.assert_allclose((rate - end) ** 2, 1.959963984540054**2 * end * (1 - end) / n, 1e-8, 1e-15)


def test_interval_over_groups_is_that_of_groups() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 50)
    errors = np.repeat((rng.random(40) < 0.3).astype(float), 50)  # the members of a group err together
    low, high = error_interval(errors, groups=groups)
    wanted = error_interval(errors[::50])
    assert abs(low - wanted[0]) < 0.06
    assert abs(high - wanted[1]) < 0.06
    naive = error_interval(errors)
    assert high - low > 4 * (naive[1] - naive[0])


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=9))
def test_paired_test_is_the_enumeration_of_all_signs(pairs: list[tuple[bool, bool]]) -> None:
    a, b = np.array(pairs, dtype=float).T
    gaps = a - b
    sums = [abs(np.dot(signs, gaps)) >= abs(gaps.sum()) - 1e-9 for signs in product((-1, 1), repeat=len(gaps))]
    found = paired_test(a, b)
    np.testing.assert_allclose(found.p_value, np.mean(sums), rtol=1e-12)
    np.testing.assert_allclose(found.difference, a.mean() - b.mean(), atol=1e-15)


def test_paired_test_with_repetitions_and_groups_is_the_enumeration_up_to_draws() -> None:
    a = np.array([0.2, 1.0, 0.6, 0.0, 0.8, 0.4, 1.0, 0.2, 0.6, 1.0])
    b = np.array([0.0, 0.4, 0.6, 0.2, 0.2, 0.0, 0.4, 0.2, 0.2, 0.8])
    groups = np.array([0, 0, 1, 1, 2, 3, 4, 5, 6, 6])
    for gaps, given_groups in ((a - b, None), (np.bincount(groups, a - b), groups)):
        wanted = np.mean([abs(np.dot(s, gaps)) >= abs(gaps.sum()) - 1e-9 for s in product((-1, 1), repeat=len(gaps))])
        np.testing.assert_allclose(paired_test(a, b, groups=given_groups).p_value, wanted, atol=0.02)


def test_two_sample_statistic_and_p_value_are_those_of_all_divisions() -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(size=4), rng.normal(1.5, size=4)])
    K = np.exp(-((x[:, None] - x) ** 2))

    def statistic(first: tuple[int, ...]) -> float:
        rest = [i for i in range(8) if i not in first]
        within = np.mean([K[i, j] for i in first for j in first if i != j])
        others = np.mean([K[i, j] for i in rest for j in rest if i != j])
        return within + others - 2 * np.mean([K[i, j] for i in first for j in rest])

    given_value = statistic((0, 1, 2, 3))
    wanted = sum(statistic(first) >= given_value - 1e-12 for first in combinations(range(8), 4)) / comb(8, 4)
    found = two_sample_test(K, 4, n_permutations=20_000)
    np.testing.assert_allclose(found.statistic, given_value, rtol=1e-12)
    np.testing.assert_allclose(found.p_value, wanted, atol=0.01)


def test_two_sample_test_keeps_its_level() -> None:
    rng = np.random.default_rng(2)
    values = []
    for _ in range(200):
        x = rng.normal(size=20)
        values.append(two_sample_test(np.exp(-((x[:, None] - x) ** 2)), 10, n_permutations=99, rng=rng).p_value)
    assert 0.01 <= np.mean(np.array(values) <= 0.05) <= 0.12


def test_evaluation_is_cross_validation_by_hand() -> None:
    rng = np.random.default_rng(3)
    y = np.array(list("ab") * 30)
    X = list(rng.normal((y == "b") * 1.0))
    result = evaluate(X, y, {"nearest": Nearest(), "constant": DummyClassifier()}, folds=3, random_state=5)
    predicted = np.empty_like(y)
    errors = []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=5).split(X, y):
        predicted[test] = Nearest().fit(np.array(X)[train], y[train]).predict(np.array(X)[test])
        errors.append(np.mean(predicted[test] != y[test]))
    row = result["nearest"]
    np.testing.assert_array_equal(row.predictions[0], predicted)
    np.testing.assert_allclose(row.fold_errors, errors)
    np.testing.assert_allclose(row.error, np.mean(predicted != y))
    np.testing.assert_allclose(row.spread, np.std(errors, ddof=1))
    assert result.best is row
    assert row.versus_best is None
    worse = result["constant"]
    assert worse.versus_best == paired_test(worse.errors, row.errors)
    table = result.confusion("nearest")
    assert table[0, 1] == np.sum((y == "a") & (predicted == "b"))
    assert table.sum() == 60
    assert result.baseline == pytest.approx(0.5)
    assert "nearest" in repr(result)
    assert result.as_dict()["recipes"][0]["recipe"] == "nearest"


class Scored(Nearest):
    """Has a score of each class: minus the distance of its nearest training number; of two classes, the difference."""

    def decision_function(self, X):
        gaps = np.abs(np.asarray(X)[:, None] - self.X_)
        scores = np.stack([-gaps[:, self.y_ == label].min(axis=1) for label in self.classes_], axis=1)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X):
        values = self.decision_function(X)
        scores = np.stack([-values, values], axis=1) if values.ndim == 1 else values
        return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("k", [2, 3])
def test_rows_have_the_scores_of_objects_that_were_left_out(k: int) -> None:
    rng = np.random.default_rng(k)
    X, y = rng.normal(size=30), np.array(["a", "b", "c"])[np.arange(30) % k]
    result = evaluate(X, y, {"scored": Scored(), "nearest": Nearest()}, folds=3, repeats=2)
    row = result["scored"]
    assert row.probabilities.shape == row.decisions.shape == (2, 30, k)
    for repeat in range(2):
        for fold in range(3):
            out = np.flatnonzero(result.folds[repeat] == fold)
            fitted = Scored().fit(np.delete(X, out), np.delete(y, out))
            values = fitted.decision_function(X[out])
            wanted = np.stack([-values, values], axis=1) if k == 2 else values
            np.testing.assert_array_equal(row.decisions[repeat, out], wanted)
            np.testing.assert_array_equal(row.probabilities[repeat, out], fitted.predict_proba(X[out]))
    assert result["nearest"].probabilities is None
    assert result["nearest"].decisions is None


def test_a_class_that_was_not_seen_is_improbable_and_has_no_decision_value() -> None:
    class Blind(Scored):  # learns nothing of the last class
        def fit(self, X, y):
            seen = np.asarray(y) != "c"
            return super().fit(np.asarray(X)[seen], np.asarray(y)[seen])

    row = evaluate(np.arange(12.0), np.array(list("abc" * 4)), {"blind": Blind()}, folds=2).best
    assert row.decisions is None
    assert (row.probabilities[0, :, 2] == 0.0).all()
    np.testing.assert_allclose(row.probabilities.sum(axis=2), 1.0, rtol=1e-12)


def test_groups_stay_together_and_reach_the_classifier() -> None:
    seen: list[np.ndarray] = []

    class Watch(Nearest):
        def fit(self, X, y, groups=None):
            seen.append(np.asarray(groups))
            return super().fit(X, y, groups)

    groups = np.repeat(np.arange(10), 4)
    y = np.tile([0, 1], 20)
    result = evaluate(list(np.arange(40.0)), y, {"watch": Watch()}, groups=groups, folds=5)
    for group in range(10):
        assert len(set(result.folds[0][groups == group])) == 1
    for fold, given_groups in enumerate(seen):
        assert set(given_groups) == set(groups[result.folds[0] != fold])


def test_a_recipe_that_fails_is_named_and_does_not_spoil_the_others() -> None:
    y = np.tile([0, 1], 10)
    X = list(np.arange(20.0))
    result = evaluate(X, y, {"fails": Fails(), "nearest": Nearest()}, folds=2)
    assert [row.name for row in result.rows] == ["nearest", "fails"]
    assert result.rows[1].failure == "ValueError: object 3 is a stone"
    assert "fails failed: ValueError: object 3 is a stone" in repr(result)
    with pytest.raises(ValueError, match=r"every recipe failed. fails: ValueError: object 3 is a stone"):
        evaluate(X, y, {"fails": Fails()}, folds=2)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: evaluate([1, 2], [0], {"n": Nearest()}), r"y must have one entry per object, 2. Got .* \(1,\)"),
        (lambda: evaluate([1, 2], [0, 0], {"n": Nearest()}), r"two classes are needed at least. Got \[0\]"),
        (lambda: evaluate([1, 2, 3], [0, 1, 1], {"n": Nearest()}, folds=2), "class 0 has 1. Give more objects of it"),
        (lambda: evaluate([1, 2], [0, 1], {}), "no recipes were given"),
        (lambda: paired_test([0, 1], [0]), "the same objects. Got 2 and 1"),
        (lambda: paired_test([0, 2], [0, 1]), "errors_a must lie between 0 and 1. Got 2.0 for object 1"),
        (lambda: error_interval([0, np.nan]), "Got nan for object 1"),
        (lambda: error_interval([0, 1], groups=["a", "a"]), "all objects are of one group"),
        (lambda: two_sample_test(np.eye(3), 2), "two objects at least. Got 2 and 1"),
        (lambda: two_sample_test(np.arange(16.0).reshape(4, 4), 2), "K must be symmetric"),
    ],
)
def test_mistakes_are_named(call, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("error", [0.0, 1.0])
def test_the_interval_of_groups_that_are_all_alike_is_that_of_so_many_objects(error: float) -> None:
    groups = np.repeat(np.arange(10), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    interval = error_interval(np.full(len(groups), error), groups=groups)
    np.testing.assert_allclose(interval, error_interval(np.full(10, error)), rtol=1e-15)
    assert interval[1] - interval[0] > 0.2  # ten groups without an error do not show that there are none
