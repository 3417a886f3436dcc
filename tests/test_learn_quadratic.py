"""Kernel logistic regression of quadratic kernels in their explicit features."""

import numpy as np
import pytest
from scipy import sparse

from genkern import KernelLogisticRegression, Polynomial
from genkern.learn import logistic
from genkern.learn.logistic_newton import DualSpace, PrimalSpace
from genkern.learn.low_rank import quadratic_features, quadratic_size, span


def data(classes=2, n=90):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, 6))  # six columns of rank three
    y = np.digitize(X[:, 0] ** 2 + X[:, 1] + rng.normal(size=n), [0.5, 3.0][: classes - 1])
    return X, y


@pytest.mark.parametrize("offset", [0.0, 1.0, 2.5])
def test_inner_products_of_features_are_the_kernel(offset):
    X, _ = data()
    rows = span(X)
    assert rows.shape == (90, 3)
    features = quadratic_features(rows, offset)
    assert features.shape == (90, quadratic_size(3)) == (90, 10)
    expected = [[(sum(a * b for a, b in zip(x, z)) + offset) ** 2 for z in X[:5]] for x in X[:5]]
    np.testing.assert_allclose(features[:5] @ features[:5].T, expected, rtol=1e-10)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("options", [{}, {"bias": "penalised", "bias_scale": 2.0}, {"bias": None}, {"C": 30.0}])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_predictions_are_those_of_the_kernel_matrix(classes, options, make, monkeypatch):
    X, y = data(classes)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    kernel = Polynomial(2, 1.5)
    spaces = []
    monkeypatch.setattr(logistic, "solve", lambda space, *rest: spaces.append(type(space)) or solve(space, *rest))
    fast = KernelLogisticRegression(kernel=kernel, **options).fit(make(X[:70]), y[:70], sample_weight=weights[:70])
    slow = KernelLogisticRegression(tol=1e-14, **options).fit(kernel(X[:70]), y[:70], sample_weight=weights[:70])
    assert set(spaces) == {PrimalSpace, DualSpace}
    expected = slow.predict_proba(kernel(X[70:], X[:70]))
    np.testing.assert_allclose(fast.predict_proba(make(X[70:])), expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(fast.dual_coef_, slow.dual_coef_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(fast.intercept_, slow.intercept_, rtol=0, atol=1e-6)
    assert not hasattr(fast, "coef_")
    assert (fast.gap_ <= 1e-10 * fast.objective_).all()


def test_few_objects_and_other_kernels_are_solved_by_their_matrix(monkeypatch):
    X, y = data()
    spaces = []
    monkeypatch.setattr(logistic, "solve", lambda space, *rest: spaces.append(type(space)) or solve(space, *rest))
    KernelLogisticRegression(kernel=Polynomial(2)).fit(X[:19], y[:19])
    KernelLogisticRegression(kernel=Polynomial(3)).fit(X, y)
    KernelLogisticRegression(kernel=Polynomial(2), solver="eigen").fit(X, y)
    assert spaces == [DualSpace, DualSpace, PrimalSpace]
    KernelLogisticRegression(kernel=Polynomial(2)).fit(X[:20], y[:20])
    assert spaces[-1] == PrimalSpace
    monkeypatch.setattr(logistic, "LARGEST", 50)
    KernelLogisticRegression(kernel=Polynomial(2)).fit(X, y)  # the number of objects has no bound
    with pytest.raises(ValueError, match="at most 50 objects"):
        KernelLogisticRegression(kernel=Polynomial(3)).fit(X, y)


solve = logistic.solve
