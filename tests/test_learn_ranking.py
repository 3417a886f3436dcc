"""ROC counts, ROC50 and the equal error rate, against counting by hand."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import make_scorer, roc_auc_score, roc_curve
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

from genkern import (
    RBF,
    CategoricalEstimator,
    EqualErrorClassifier,
    GaussianEstimator,
    KernelLogisticRegression,
    PlugInClassifier,
    equal_error_rate,
    roc50_score,
    roc_points,
)

LEVELS = st.sampled_from([-np.inf, -2.0, -1.0, 0.0, 0.5, 1.0, np.inf])
RANKINGS = st.lists(st.tuples(st.booleans(), LEVELS), min_size=2, max_size=7)


def split(ranking):
    y, scores = zip(*ranking)
    assume(len(set(y)) == 2)
    return np.array(y), np.array(scores)


@settings(deadline=None, max_examples=100)
@given(RANKINGS)
def test_points_are_counts(ranking):
    y, scores = split(ranking)
    points = roc_points(y, scores)
    assert len(points.thresholds) == len(np.unique(scores)) + 1
    assert np.isfinite(points.thresholds).all()
    inner = slice(int(scores.max() == np.inf), None if scores.min() > -np.inf else -1)  # no finite cut beyond infinity
    for wrong, right, t in list(zip(*points))[inner]:
        assert wrong == sum(s > t for s, label in zip(scores, y) if not label)
        assert right == sum(s > t for s, label in zip(scores, y) if label)
    if np.isfinite(scores).all():
        fpr, tpr, _ = roc_curve(y, scores, drop_intermediate=False)
        np.testing.assert_allclose(points.false_positives / (~y).sum(), fpr, rtol=1e-12)
        np.testing.assert_allclose(points.true_positives / y.sum(), tpr, rtol=1e-12)


@settings(deadline=None, max_examples=60)
@given(RANKINGS, st.integers(1, 8))
@example([(True, 0.0), (False, 0.0), (False, 0.0), (True, 0.0)], 1)
def test_roc_n_is_the_mean_over_orders_of_ties(ranking, n):
    y, scores = split(ranking)
    limit = min(n, int((~y).sum()))
    values = []
    for order in itertools.permutations(range(len(y))):
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order)):
            above, counted, total = 0, 0, 0
            for i in order:
                if y[i]:
                    above += 1
                elif counted < limit:
                    counted, total = counted + 1, total + above
            values.append(Fraction(total, limit * int(y.sum())))
    expected = float(sum(values) / len(values))
    np.testing.assert_allclose(roc50_score(y, scores, n=n), expected, rtol=1e-12, atol=1e-15)


def test_with_few_negatives_it_is_the_area_under_the_curve():
    rng = np.random.default_rng(0)
    y, scores = np.arange(60) % 2, rng.integers(0, 9, 60)
    np.testing.assert_allclose(roc50_score(y, scores), roc_auc_score(y, scores), rtol=1e-12)
    many = np.concatenate([np.ones(5), np.zeros(500)])
    assert roc50_score(many, many) == 1.0
    assert roc50_score(many, -many) == 0.0
    # one positive after 20 negatives: 30 of the first 50 negatives are below it
    assert roc50_score([1] + [0] * 100, [-20.5, *range(0, -100, -1)]) == pytest.approx((50 - 21) / 50, rel=1e-12)


@settings(deadline=None, max_examples=100)
@given(RANKINGS)
def test_equal_error_rate_by_brute_force(ranking):
    y, scores = split(ranking)
    negatives, positives = int((~y).sum()), int(y.sum())
    cuts = []  # rates of errors when the k best distinct scores are called positive
    levels = sorted(set(scores.tolist()), reverse=True)
    for k in range(len(levels) + 1):
        chosen = set(levels[:k])
        wrong = sum(s in chosen and not label for s, label in zip(scores.tolist(), y))
        missed = sum(s not in chosen and label for s, label in zip(scores.tolist(), y))
        cuts.append((Fraction(int(wrong), negatives), Fraction(int(missed), positives)))
    rates = set()
    for (a, b), (c, d) in itertools.pairwise(cuts):  # toss a coin between neighbouring cuts until both rates agree
        u = (b - a) / ((c - a) + (b - d))
        if 0 <= u <= 1:
            rates.add(a + u * (c - a))
    assert len(rates) == 1
    found = equal_error_rate(y, scores)
    np.testing.assert_allclose(found.rate, float(rates.pop()), rtol=1e-12, atol=1e-15)
    if len(levels) > 1:
        wrong, missed = (scores > found.threshold)[~y].mean(), (scores <= found.threshold)[y].mean()
        best = min(cuts, key=lambda cut: (abs(cut[0] - cut[1]), cut[0] + cut[1]))
        np.testing.assert_allclose(abs(wrong - missed), float(abs(best[0] - best[1])), rtol=0, atol=1e-12)
        np.testing.assert_allclose(wrong + missed, float(best[0] + best[1]), rtol=0, atol=1e-12)


def test_labels_and_the_positive_one():
    y, scores = ["no", "yes", "no", "yes"], [1.0, 2.0, 3.0, 4.0]
    assert roc50_score(y, scores) == 0.75
    assert roc50_score(y, scores, pos_label="no") == 0.25
    assert equal_error_rate(y, scores).rate == 0.5


@pytest.mark.parametrize("steps", [0, 1])
def test_neighbouring_numbers_are_told_apart(steps):
    scores = 1.0 + np.array([steps, steps + 1]) * np.finfo(float).eps
    found = equal_error_rate([0, 1], scores)
    assert found.rate == 0.0
    assert (scores > found.threshold).tolist() == [False, True]


@pytest.mark.parametrize("function", [roc_points, roc50_score, equal_error_rate])
def test_wrong_arguments_are_refused(function):
    with pytest.raises(ValueError, match=rf"{function.__name__}: y_true must have two different labels. Got 3"):
        function([0, 1, 2], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="y_true contains NaN"):
        function([0, np.nan], [1.0, 2.0])
    with pytest.raises(ValueError, match="Unknown label type"):
        function([None, 1], [1.0, 2.0])
    with pytest.raises(ValueError, match="NaN at index 1"):
        function([0, 1], [1.0, np.nan])
    with pytest.raises(ValueError, match="inconsistent"):
        function([0, 1], [1.0])
    with pytest.raises(ValueError, match="pos_label"):
        function([0, 1], [1.0, 2.0], pos_label=7)


def test_scores_serve_as_scorers():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 2)) + np.arange(40)[:, None] % 2, np.arange(40) % 2
    scorer = make_scorer(roc50_score, response_method="decision_function", n=5)
    assert (cross_val_score(SVC(), X, y, scoring=scorer) > 0.3).all()


def unbalanced(seed=0, count=200):
    rng = np.random.default_rng(seed)
    y = (np.arange(count) % 5 == 0).astype(int)
    return rng.standard_normal((count, 2)) + y[:, None], y


def test_threshold_is_that_of_unseen_decisions():
    X, y = unbalanced()
    base, folds = PlugInClassifier(GaussianEstimator()), StratifiedKFold(4)
    ours = EqualErrorClassifier(base, cv=folds).fit(X, y)
    unseen = np.empty(len(y))
    for train, test in folds.split(X, y):
        unseen[test] = PlugInClassifier(GaussianEstimator()).fit(X[train], y[train]).decision_function(X[test])
    assert (ours.equal_error_rate_, ours.threshold_) == equal_error_rate(y, unseen)
    whole = PlugInClassifier(GaussianEstimator()).fit(X, y).decision_function(X)
    np.testing.assert_allclose(ours.decision_function(X), whole - ours.threshold_, rtol=1e-12)
    new, labels = unbalanced(seed=1, count=2000)
    guess = ours.predict(new)
    rates = [np.mean(guess[labels == c] != c) for c in (0, 1)]
    assert abs(rates[0] - rates[1]) < 0.12
    guess = ours.estimator_.predict(new)  # at its own threshold the rare class is missed
    assert np.mean(guess[labels == 1] != 1) - np.mean(guess[labels == 0] != 0) > 0.25


def test_folds_without_a_class_are_refused():
    X, _ = unbalanced(count=8)
    learner = EqualErrorClassifier(PlugInClassifier(GaussianEstimator()), cv=3)
    with pytest.raises(ValueError, match="EqualErrorClassifier: 3 folds need 3 objects of a class at least"):
        learner.fit(X[:3], [0, 1, 1])
    halves = [(np.arange(4), np.arange(4, 8)), (np.arange(4, 8), np.arange(4))]
    with pytest.raises(ValueError, match="EqualErrorClassifier: fold 1 leaves no object of class 1 to train on"):
        learner.set_params(cv=halves).fit(X, [0, 0, 0, 1, 0, 0, 0, 0])


def test_priors_do_not_matter_any_more():
    X, y = unbalanced()
    guesses = [
        EqualErrorClassifier(PlugInClassifier(GaussianEstimator(), priors=p), cv=4).fit(X, y).predict(X)
        for p in ("uniform", [0.999, 0.001])
    ]
    np.testing.assert_array_equal(*guesses)


def test_a_trained_classifier_gets_its_threshold_on_the_given_set():
    X, y = unbalanced()
    trained = PlugInClassifier(GaussianEstimator()).fit(X, y)
    new, labels = unbalanced(seed=1)
    ours = EqualErrorClassifier(FrozenEstimator(trained)).fit(new, labels)
    assert (ours.equal_error_rate_, ours.threshold_) == equal_error_rate(labels, trained.decision_function(new))
    guess = ours.predict(new)
    assert abs(np.mean(guess[labels == 0] != 0) - np.mean(guess[labels == 1] != 1)) <= 1 / 40


def test_kernel_values_are_divided_by_rows_and_columns():
    X, y = unbalanced(count=80)
    by_matrix = EqualErrorClassifier(KernelLogisticRegression()).fit(RBF(0.3)(X), y)
    by_table = EqualErrorClassifier(KernelLogisticRegression(kernel=RBF(0.3))).fit(X, y)
    np.testing.assert_allclose(by_matrix.threshold_, by_table.threshold_, rtol=1e-7)


def test_labels_of_strings_and_impossible_objects():
    X = ["ab", "aa", "aab", "bb", "cb", "bbb"] * 3
    y = ["A", "A", "A", "B", "B", "B"] * 3
    base = PlugInClassifier(CategoricalEstimator("abc", pseudocount=0))  # decision values may be infinite
    ours = EqualErrorClassifier(base, cv=3).fit(X, y)
    assert np.isfinite(ours.threshold_)
    assert ours.predict(["aa", "cb"]).tolist() == ["A", "B"]


def test_wrong_classifiers_and_labels_are_refused():
    X, y = unbalanced(count=30)
    with pytest.raises(TypeError, match=r"decision_function. Got GaussianNB"):
        EqualErrorClassifier(GaussianNB()).fit(X, y)
    with pytest.raises(ValueError, match=r"needs objects of 2 classes. Got 3 classes"):
        EqualErrorClassifier(SVC()).fit(X, np.arange(30) % 3)
    with pytest.raises(ValueError, match="y is None"):
        EqualErrorClassifier(SVC()).fit(X, None)
