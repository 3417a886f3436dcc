"""The path of one-vs-rest support vector machines, against scikit-learn's own meta-estimators."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from genkern import RBF, KernelSVMClassifierCV, Linear

CS = (0.01, 0.1, 1.0, 10.0)


def problem(classes=3, n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.standard_normal((n, 3)) + y[:, None], y


@pytest.mark.parametrize("classes", [2, 3])
def test_it_is_a_grid_search_over_one_vs_rest(classes):
    X, y = problem(classes)
    K, folds = RBF(0.2)(X), StratifiedKFold(4)
    ours = KernelSVMClassifierCV(CS, cv=folds).fit(K, y)
    theirs = GridSearchCV(OneVsRestClassifier(SVC(kernel="precomputed")), {"estimator__C": CS}, cv=folds).fit(K, y)
    scores = np.array([theirs.cv_results_[f"split{i}_test_score"] for i in range(4)]).mean(axis=0)
    np.testing.assert_allclose(1 - ours.cv_errors_, scores, rtol=1e-12)  # folds of equal size
    assert min(C for C, e in zip(CS, ours.cv_errors_) if e == ours.cv_errors_.min()) == ours.C_
    same = OneVsRestClassifier(SVC(kernel="precomputed", C=ours.C_)).fit(K, y)
    np.testing.assert_allclose(ours.decision_function(K), same.decision_function(K), rtol=0, atol=1e-9)
    assert (ours.predict(K) == same.predict(K)).all()


def test_kernels_agree():
    X, y = problem()
    by_matrix = KernelSVMClassifierCV(CS).fit(X @ X.T, y)
    by_features = KernelSVMClassifierCV(CS, "linear", n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(by_matrix.cv_errors_, by_features.cv_errors_)
    np.testing.assert_allclose(by_matrix.decision_function(X @ X.T), by_features.decision_function(X), atol=1e-9)
    assert by_features.coef_.shape == (3, 3)
    by_kernel = KernelSVMClassifierCV(CS, RBF(0.2)).fit(X, y)
    K = RBF(0.2)(X)
    np.testing.assert_allclose(
        by_kernel.decision_function(X[:5]), KernelSVMClassifierCV(CS).fit(K, y).decision_function(K[:5]), atol=1e-9
    )


def test_groups_and_classes_that_a_fold_lacks():
    X, y = problem()
    groups = np.where(y == 2, 9, np.arange(60) % 4)  # one group holds all of class 2
    ours = KernelSVMClassifierCV(CS, "linear", cv=GroupKFold(5)).fit(X, y, groups=groups)
    wrong = np.zeros(len(CS))
    for train, test in GroupKFold(5).split(X, y, groups):
        known = np.unique(y[train])
        for i, C in enumerate(CS):
            machines = [SVC(kernel="linear", C=C).fit(X[train], y[train] == c) for c in known]
            values = np.stack([machine.decision_function(X[test]) for machine in machines], axis=1)
            values = np.column_stack([values, np.full((len(test), 3 - len(known)), -1.0)])  # class 2: surely not
            wrong[i] += np.sum(values.argmax(axis=1) != y[test])
    np.testing.assert_allclose(ours.cv_errors_, wrong / 60, rtol=1e-12)
    assert ours.cv_errors_.min() >= 1 / 3  # class 2 cannot be known when it is held out


def test_a_fold_of_one_class_knows_no_other():
    X, y = problem(2)
    assert (KernelSVMClassifierCV(CS, "linear", cv=GroupKFold(2)).fit(X, y, groups=y).cv_errors_ == 1.0).all()


@pytest.mark.parametrize(
    ("params", "message"), [({"Cs": [0.0]}, "'Cs' parameter"), ({"Cs": []}, "'Cs'"), ({"tol": 0.0}, "'tol' parameter")]
)
def test_wrong_parameters_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        KernelSVMClassifierCV(**params).fit(np.eye(4), [0, 1, 0, 1])


def test_coefficients_that_overflow_are_refused():
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(12, 4))).astype(np.float32) * np.float32(1e30)
    with pytest.raises(ValueError, match=r"KernelSVMClassifierCV: with C=.* coefficients are not finite. Divide"):
        KernelSVMClassifierCV(kernel=Linear()).fit(X, np.arange(12) % 2)
