"""Weights of objects and classes: against refitting, against objects that come twice, and in the calibration."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from genkern import RBF, KernelLogisticRegression, KernelRidgeClassifierCV, KernelSVMClassifierCV
from genkern.learn.calibrated import CalibratedLinearSVC, CalibratedSearchCV
from genkern.learn.calibration import Calibrator, agree
from genkern.learn.weights import check_weights

rng = np.random.default_rng(0)
Y = np.arange(24) % 3
X = rng.standard_normal((24, 5)) + 2.0
X[:, 0] += Y
WEIGHTS = rng.uniform(0.3, 3.0, 24)
GROUPS = rng.permutation(24) % 5
SIGNS = np.where(Y[:, None] == np.arange(3), 1.0, -1.0)


def refit(K, cross, signs, weights, alpha, bias):
    """Return decision values by the normal equations of sum_i w_i (y_i - f_i)^2 + alpha a'Ka, solved densely."""
    n = len(K)
    basis = np.column_stack([K, np.ones(n)]) if bias == "free" else K
    penalty = np.zeros((basis.shape[1],) * 2)
    penalty[:n, :n] = alpha * K
    normal = basis.T @ (weights[:, None] * basis) + penalty
    found = np.linalg.lstsq(normal, basis.T @ (weights[:, None] * signs), rcond=1e-14)[0]
    return (np.column_stack([cross, np.ones(len(cross))]) if bias == "free" else cross) @ found


@pytest.mark.parametrize("bias", ["free", None])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("kernel", ["linear", "wide", "precomputed"])
@pytest.mark.parametrize("zeros", [False, True])
def test_left_out_with_weights_is_refitted(kernel, grouped, bias, zeros):
    weights = np.where(np.arange(24) % 7 == 3, 0.0, WEIGHTS) if zeros else WEIGHTS
    groups = GROUPS if grouped else np.arange(24)
    table = np.column_stack([X, np.eye(24)]) if kernel == "wide" else X
    K = RBF(0.3)(X) if kernel == "precomputed" else table @ table.T
    given = K if kernel == "precomputed" else table
    ridge = KernelRidgeClassifierCV([0.3], "precomputed" if kernel == "precomputed" else "linear", bias=bias)
    ridge.fit(given, Y, GROUPS if grouped else None, weights)
    for group in np.unique(groups):
        out = groups == group
        expected = refit(K[np.ix_(~out, ~out)], K[np.ix_(out, ~out)], SIGNS[~out], weights[~out], 0.3, bias)
        np.testing.assert_allclose(ridge.cv_decision_[out], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ridge.decision_function(given), refit(K, K, SIGNS, weights, 0.3, bias), atol=1e-5)
    assert ridge.cv_squared_[0] == pytest.approx(
        np.average(((ridge.cv_decision_ - SIGNS) ** 2).mean(axis=1), weights=weights)
    )


def test_weight_two_is_twice():
    counts = 1 + np.arange(24) % 2
    rows = np.repeat(np.arange(24), counts)
    ridge = KernelRidgeClassifierCV(kernel="linear").fit(X, Y, sample_weight=counts)
    twice = KernelRidgeClassifierCV(kernel="linear").fit(X[rows], Y[rows], groups=rows)
    parts = [(np.arange(24) % 4 != k, np.arange(24) % 4 == k) for k in range(4)]
    folds = [tuple(np.flatnonzero(part) for part in pair) for pair in parts]
    copied = [tuple(np.flatnonzero(part[rows]) for part in pair) for pair in parts]
    svm = KernelSVMClassifierCV(kernel="linear", cv=folds, tol=1e-8).fit(X, Y, sample_weight=counts)
    copies = KernelSVMClassifierCV(kernel="linear", cv=copied, tol=1e-8).fit(X[rows], Y[rows])
    logistic = KernelLogisticRegression(kernel="linear").fit(X, Y, counts)
    doubled = KernelLogisticRegression(kernel="linear").fit(X[rows], Y[rows])
    grid = {"C": [0.1, 1.0]}
    search = CalibratedSearchCV(CalibratedLinearSVC(tol=1e-9, max_iter=10**6), grid, cv=folds)
    search.fit(X, Y, sample_weight=counts)
    searched = CalibratedSearchCV(CalibratedLinearSVC(tol=1e-9, max_iter=10**6), grid, cv=copied).fit(X[rows], Y[rows])
    assert (ridge.alpha_, svm.C_, search.best_params_) == (twice.alpha_, copies.C_, searched.best_params_)
    np.testing.assert_allclose(ridge.cv_errors_, twice.cv_errors_, rtol=1e-12)
    np.testing.assert_allclose(svm.cv_errors_, copies.cv_errors_, rtol=1e-12)
    for one, other in ((ridge, twice), (svm, copies), (logistic, doubled), (search, searched)):
        np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("learner", [KernelRidgeClassifierCV, KernelSVMClassifierCV, KernelLogisticRegression])
def test_class_weights_are_weights_of_objects(learner):
    for class_weight, weights in (({0: 2.0, 2: 0.5}, np.array([2.0, 1.0, 0.5])[Y]), ("balanced", np.ones(24))):
        by_class = learner(kernel="linear", class_weight=class_weight).fit(X, Y)
        by_object = learner(kernel="linear").fit(X, Y, sample_weight=weights)
        np.testing.assert_allclose(by_class.predict_proba(X), by_object.predict_proba(X), rtol=1e-9)
    labels = np.r_[np.zeros(20), np.ones(4)]
    np.testing.assert_allclose(check_weights("balanced", labels, None, "x"), np.r_[np.full(20, 0.6), np.full(4, 3.0)])
    own = np.arange(1.0, 25.0)
    both = check_weights("balanced", labels, own, "x")
    assert both[:20].sum() == pytest.approx(both[20:].sum()) == pytest.approx(own.sum() / 2)
    for wrong in ("even", [1, 2], {0: -1.0}, {0: np.nan}):
        with pytest.raises(ValueError, match=r"class_weight"):
            learner(kernel="linear", class_weight=wrong).fit(X, Y)
    with pytest.raises(ValueError, match="positive weight in every class"):
        learner(kernel="linear").fit(X, Y, sample_weight=(Y != 1) * 1.0)


def test_calibration_with_weights_is_that_of_repeated_objects():
    counts = 1 + np.arange(24) % 3
    rows = np.repeat(np.arange(24), counts)
    values = rng.normal(size=(24, 3)) + SIGNS
    found = Calibrator().fit(values, Y, counts).sharpness_
    assert found == pytest.approx(Calibrator().fit(values[rows], Y[rows]).sharpness_, rel=1e-6)

    def loss(s):  # by hand, for the targets that the docstring names
        scores = s * values
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        wrong = 1 / (counts.sum() + 2)
        target = np.where(SIGNS > 0, 1 - wrong, wrong / 2)
        return -(counts[:, None] * target * logs).sum()

    assert found == pytest.approx(minimize_scalar(loss, bounds=(0, 20), method="bounded").x, rel=1e-3)


def test_ties_and_giants_agree_with_the_decision():
    calibrator = Calibrator().fit([-1.0, 1.0, 0.5, -0.5], [0, 1, 1, 0])
    tiny = np.array([1e-300, 0.0, -1e-300, 1e308, -1e308])
    found = calibrator.predict_proba(tiny)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found.argmax(axis=1), tiny > 0)
    three = np.array([[1.0, np.nextafter(1.0, 2.0), 0.0], [1e308, -1e308, 1e308], [0.0, 0.0, 0.0]])
    found = Calibrator().fit(np.eye(3), [0, 1, 2]).predict_proba(three)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found.argmax(axis=1), three.argmax(axis=1))
    assert agree(np.array([[0.5, 0.5]]), np.array([1])).argmax() == 1
