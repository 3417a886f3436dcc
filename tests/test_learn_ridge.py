"""Ridge classification: what is left out against actual refitting."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import RidgeClassifierCV

from genkern import RBF, Categorical, KernelRidgeClassifierCV, ProbabilityProduct
from genkern.learn import kernel_classifier
from genkern.learn.ridge import ALPHAS


def problem(n=24, d=5, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 2.0
    y = np.arange(n) % classes
    X[:, 0] += y
    return X, y, rng.integers(0, 4, n)


def refit(K, Y, alpha, bias, groups):
    """Return decision values of each object by a fit without its group, each by a dense solve of its own."""
    out = np.empty(Y.shape)
    for g in np.unique(groups):
        train, test = np.flatnonzero(groups != g), np.flatnonzero(groups == g)
        out[test] = solve(K[np.ix_(train, train)], Y[train], alpha, bias, K[np.ix_(test, train)])
    return out


def solve(K, Y, alpha, bias, cross):
    n = len(K)
    A = np.zeros((n + 1, n + 1))
    A[:n, :n] = K + alpha * np.eye(n)
    A[:n, n] = A[n, :n] = bias == "free"
    A[n, n] = bias != "free"
    solution = np.linalg.solve(A, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return cross @ solution[:n] + solution[n]


@pytest.mark.parametrize("bias", ["free", None])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("case", ["rbf", "thin", "thin, sparse", "wide", "callable", "two classes"])
def test_left_out_is_refitted(case, grouped, bias):
    X, y, groups = problem(d=40 if case == "wide" else 5, classes=2 if case == "two classes" else 3)
    groups = groups if grouped else np.arange(len(y))
    kernel, table = "precomputed", X
    if case == "callable":
        kernel = RBF(0.05)
    elif case in ("rbf", "two classes"):
        table = RBF(0.05)(X)
    else:
        kernel, table = "linear", scipy.sparse.csr_matrix(X) if "sparse" in case else X
    K = X @ X.T if kernel == "linear" else RBF(0.05)(X)
    Y = np.where(y[:, None] == ([1] if case == "two classes" else np.arange(3)), 1.0, -1.0)
    alphas = np.array([0.01, 0.3, 10.0])
    ours = KernelRidgeClassifierCV(alphas, kernel, bias=bias).fit(table, y, groups if grouped else None)
    expected = np.stack([refit(K, Y, alpha, bias, groups) for alpha in alphas])
    np.testing.assert_allclose(ours.cv_squared_, ((expected - Y) ** 2).mean(axis=(1, 2)), rtol=1e-9)
    guess = (expected[:, :, 0] > 0).astype(int) if Y.shape[1] == 1 else expected.argmax(axis=2)
    np.testing.assert_allclose(ours.cv_errors_, (guess != y).mean(axis=1), rtol=1e-12)
    chosen = expected[alphas == ours.alpha_][0]
    np.testing.assert_allclose(ours.cv_decision_.reshape(Y.shape), chosen, rtol=0, atol=1e-9)
    fitted = solve(K, Y, ours.alpha_, bias, K)
    np.testing.assert_allclose(ours.decision_function(table).reshape(Y.shape), fitted, rtol=0, atol=1e-9)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.floats(-8, 4), st.sampled_from(["free", None]))
def test_small_penalties_and_low_rank(seed, power, bias):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((12, rng.integers(1, 16)))
    y = rng.permutation([0, 1] * 6)
    alpha = 10.0**power
    by_gram = KernelRidgeClassifierCV([alpha], bias=bias).fit(Z @ Z.T, y)
    by_features = KernelRidgeClassifierCV([alpha], "linear", bias=bias).fit(Z, y)
    Y = np.where(y == 1, 1.0, -1.0)[:, None]
    expected = refit(Z @ Z.T, Y, alpha, bias, np.arange(12))[:, 0]
    scale = np.abs(expected).max()
    np.testing.assert_allclose(by_features.cv_decision_, expected, rtol=0, atol=1e-5 * scale)
    np.testing.assert_allclose(by_gram.cv_decision_, expected, rtol=0, atol=1e-5 * scale)


@pytest.mark.parametrize("grouped", [False, True])
def test_constant_and_repeated_features(grouped):
    X, y, groups = problem()
    X = np.column_stack([X, np.full(len(X), 0.1), X[:, 0]])
    Y = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    groups = groups if grouped else np.arange(len(y))
    ours = KernelRidgeClassifierCV([0.5], "linear").fit(X, y, groups if grouped else None)
    np.testing.assert_allclose(ours.cv_decision_, refit(X @ X.T, Y, 0.5, "free", groups), rtol=0, atol=1e-9)
    nothing = KernelRidgeClassifierCV([0.5], "linear").fit(np.full((24, 2), 0.1), y, groups if grouped else None)
    expected = refit(np.zeros((24, 24)), Y, 0.5, "free", groups)
    np.testing.assert_allclose(nothing.cv_decision_, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
@pytest.mark.parametrize("grouped", [False, True])
def test_penalties_lost_in_rounding_are_refused(kernel, grouped):
    X = np.column_stack([np.arange(6.0), np.eye(6)[0]])  # the first object alone tells the second coefficient
    table = X if kernel == "linear" else X @ X.T
    learner, groups = KernelRidgeClassifierCV([1e-30, 1.0], kernel), [0, 1, 2, 3, 4, 4] if grouped else None
    with pytest.raises(ValueError, match=r"lost in rounding for alpha = 1e-30. Take larger"):
        learner.fit(table, [0, 1] * 3, groups)
    full = np.diag([1.0, 2.0, 3.0, 4.0])  # but not where no eigenvalue is rounding
    tiny = KernelRidgeClassifierCV([1e-30], bias=None).fit(full, [0, 1, 0, 1])
    np.testing.assert_allclose(tiny.cv_decision_, 0.0, rtol=0, atol=1e-12)


def test_scikit_learns_choice_on_features():
    X, y, _ = problem(n=40)
    alphas = np.logspace(-2, 3, 8)
    theirs = RidgeClassifierCV(alphas, store_cv_results=True).fit(X, y)
    ours = KernelRidgeClassifierCV(alphas, "linear", criterion="squared").fit(X, y)
    assert ours.alpha_ == theirs.alpha_
    np.testing.assert_allclose(ours.cv_squared_, theirs.cv_results_.mean(axis=(0, 1)), rtol=1e-9)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=0, atol=1e-10)
    assert (ours.predict(X) == theirs.predict(X)).all()


def test_errors_decide_and_squares_break_ties():
    X, y, _ = problem(n=24)
    K = RBF(0.05)(X)
    alphas = np.logspace(-6, 3, 60)
    ours = KernelRidgeClassifierCV(alphas).fit(K, y)
    least = ours.cv_errors_ == ours.cv_errors_.min()
    assert 1 < least.sum() < 60  # there is a tie to break
    assert ours.alpha_ == alphas[np.where(least, ours.cv_squared_, np.inf).argmin()]
    assert KernelRidgeClassifierCV(alphas, criterion="squared").fit(K, y).alpha_ == alphas[ours.cv_squared_.argmin()]


def test_groups_keep_what_is_theirs_together():
    # every group has a feature of its own that gives its objects away: leave-one-out is fooled, leave-group-out is not
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 4)
    y = (np.arange(20) % 2)[groups]
    X = 5.0 * np.eye(20)[groups] + 0.1 * rng.standard_normal((80, 20))
    assert KernelRidgeClassifierCV(kernel="linear").fit(X, y).cv_errors_.min() < 0.05
    assert KernelRidgeClassifierCV(kernel="linear").fit(X, y, groups=groups).cv_errors_.min() > 0.3


def test_models_may_be_compared():
    rng = np.random.default_rng(0)
    models = [Categorical(rng.dirichlet([1 + 5 * c, 1, 1])) for c in (0, 1) * 8]
    ours = KernelRidgeClassifierCV(kernel=ProbabilityProduct(rho=0.5)).fit(models, np.arange(16) % 2)
    K = ProbabilityProduct(rho=0.5)(models)
    plain = KernelRidgeClassifierCV().fit(K, np.arange(16) % 2)
    np.testing.assert_allclose(ours.decision_function(models[:3]), plain.decision_function(K[:3]), rtol=1e-9)


def test_refit_with_another_kernel_forgets():
    X, y, _ = problem()
    learner = KernelRidgeClassifierCV(kernel="linear").fit(X, y)
    learner.set_params(kernel=RBF(0.1)).fit(X, y)
    expected = KernelRidgeClassifierCV(kernel=RBF(0.1)).fit(X, y).decision_function(X)
    np.testing.assert_array_equal(learner.decision_function(X), expected)
    assert not hasattr(learner, "coef_")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alphas": [1.0, 0.0]}, "'alphas' parameter.*positive"),
        ({"alphas": []}, "'alphas'"),
        ({"alphas": 1.0}, "1 dimension"),
        ({"criterion": "auc"}, "'criterion' parameter"),
        ({"bias": "penalised"}, "'bias' parameter"),
        ({"kernel": "rbf"}, "'kernel' parameter"),
    ],
)
def test_wrong_parameters_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        KernelRidgeClassifierCV(**params).fit(np.eye(4), [0, 1, 0, 1])


def test_wrong_data_are_refused():
    learner, y = KernelRidgeClassifierCV(), [0, 1, 0, 1]
    with pytest.raises(ValueError, match=r"positive semi-definite. Its smallest eigenvalue is -0.5.*kernel='linear'"):
        learner.fit(np.diag([1.0, -1.0, 1.0, 1.0]), y)
    with pytest.raises(ValueError, match="at least 2 groups"):
        learner.fit(np.eye(4), y, groups=[3, 3, 3, 3])
    with pytest.raises(ValueError, match="inconsistent"):
        learner.fit(np.eye(4), y, groups=[3, 3, 4])
    with pytest.raises(ValueError, match="groups contains NaN"):
        learner.fit(np.eye(4), y, groups=[3, np.nan, 4, 4])
    with pytest.raises(ValueError, match="symmetric"):
        learner.fit(np.triu(np.ones((4, 4))), y)


@pytest.mark.parametrize("value", [1e-8, 1.0, 14.3, 1e3])
def test_equal_objects_are_told_by_how_many_there_are(value):
    y = np.array([0, 0, 1, 1, 1, 1, 1])
    X = np.full((7, 40), value) * np.linspace(0.1, 1.0, 40)  # more features than objects, whose kernel is constant
    learner = KernelRidgeClassifierCV(kernel="linear").fit(X, y)
    rounding = 7 * np.finfo(float).eps * (X[0] @ X[0]) / 1e-3  # of the kernel, by the smallest penalty
    np.testing.assert_allclose(learner.decision_function(X), np.full(7, 3 / 7), rtol=0, atol=rounding + 1e-12)
    with pytest.raises(ValueError, match="lost in rounding"):
        learner.fit(1e8 / value * X, y)


def test_one_matrix_is_kept_beside_the_eigenvectors(monkeypatch):
    monkeypatch.setattr(kernel_classifier, "BLOCK", 10_000)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 700)), np.arange(600) % 2
    ridge = KernelRidgeClassifierCV(kernel="linear").fit(X[:30], y[:30])  # what is compiled or imported is so now
    tracemalloc.start()
    ridge.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.5 * 600 * 600 * 8


# --- very many objects


@pytest.mark.parametrize("bias", ["free", None])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kind", ["sparse", "dense", "single"])
def test_conjugate_gradients_solve_the_same_problem(bias, n_classes, kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 200)) * (rng.random((150, 200)) < 0.2) / 6.0
    y = (X @ rng.standard_normal((200, n_classes))).argmax(axis=1)
    weights = rng.random(150) * (np.arange(150) % 7 > 0)
    given = {"sparse": scipy.sparse.csr_matrix(X), "dense": X, "single": scipy.sparse.csr_matrix(X, dtype=np.float32)}[
        kind
    ]
    for alpha in (0.1, 3.0):
        exact = KernelRidgeClassifierCV([alpha], "linear", bias=bias).fit(X, y, sample_weight=weights)
        path = KernelRidgeClassifierCV([alpha], "linear", bias=bias, exact=100).fit(given, y, sample_weight=weights)
        assert (exact.solver_, path.solver_) == ("eigenvalues", "conjugate gradients")
        np.testing.assert_allclose(path.coef_, exact.coef_, rtol=0, atol=2e-4 * np.abs(exact.coef_).max())
        np.testing.assert_allclose(path.decision_function(given), exact.decision_function(X), rtol=0, atol=1e-3)


@pytest.mark.parametrize("grouped", [False, True])
def test_the_penalty_of_very_many_objects_is_chosen_by_those_held_out(grouped):
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(30), 6) if grouped else None
    X = rng.standard_normal((180, 40)) / 6.0 + (np.repeat(rng.standard_normal((30, 40)), 6, axis=0) if grouped else 0)
    y = np.where(X[:, 0] + 0.1 * rng.standard_normal(180) > 0, "a", "b")
    fitted = KernelRidgeClassifierCV(ALPHAS, "linear", criterion="squared", exact=100).fit(X, y, groups)
    held = fitted.cv_index_
    assert 20 <= len(held) <= 36
    kept = np.setdiff1d(np.arange(180), held)
    if grouped:
        assert not set(groups[kept]) & set(groups[held])
    else:
        assert abs((y[held] == "a").mean() - (y == "a").mean()) < 0.05
    errors = []
    for alpha in ALPHAS:
        other = KernelRidgeClassifierCV([alpha], "linear").fit(X[kept], y[kept])
        errors.append(np.mean((other.decision_function(X[held]) - np.where(y[held] == "b", 1, -1)) ** 2))
    assert fitted.alpha_ == ALPHAS[int(np.argmin(errors))]
    found = np.isfinite(fitted.cv_squared_)
    np.testing.assert_allclose(fitted.cv_squared_[found], np.array(errors)[found], rtol=1e-3)
    assert min(errors[i] for i in np.flatnonzero(~found)) > min(errors)
    assert fitted.predict_proba(X).shape == (180, 2)
    whole = KernelRidgeClassifierCV([fitted.alpha_], "linear").fit(X, y)
    np.testing.assert_allclose(fitted.decision_function(X), whole.decision_function(X), atol=1e-3)


def test_very_many_objects_have_a_linear_kernel():
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((60, 5)), np.arange(60) % 2
    fitted = KernelRidgeClassifierCV(kernel=RBF(0.5), exact=50).fit(X, y)
    assert fitted.coef_.shape == (1, 5)
    assert not hasattr(KernelRidgeClassifierCV(kernel=RBF(0.5), exact=60).fit(X, y), "coef_")
    K = X @ X.T
    assert KernelRidgeClassifierCV(exact=50).fit(K, y).solver_ == "eigenvalues"  # n² numbers are there already
    with pytest.raises(ValueError, match="exact"):
        KernelRidgeClassifierCV(kernel="linear", exact=0).fit(X, y)
