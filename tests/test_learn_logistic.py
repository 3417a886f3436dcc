"""Kernel logistic regression: against scikit-learn, a general optimiser, its own dual and its optimality conditions."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize
from scipy.special import entr, expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

from genkern import RBF, Categorical, KernelLogisticRegression, ProbabilityProduct
from genkern.learn import logistic
from genkern.learn.kernel_classifier import check_symmetric
from genkern.learn.logistic_newton import DualSpace, PrimalSpace, best_bias, solve

BIASES = ("free", "penalised", None)


def problem(n=40, d=4, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.digitize(X[:, 0] + 0.5 * rng.standard_normal(n), np.linspace(-0.5, 0.6, classes - 1))
    return X, y


def signs_of(learner, y):
    return np.where(y == learner.classes_[1], 1.0, -1.0)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_on_features_it_is_scikit_learns_logistic_regression(C, intercept):
    X, y = problem()
    theirs = LogisticRegression(C=C, fit_intercept=intercept, tol=1e-12, max_iter=1000, solver="newton-cholesky")
    theirs.fit(X, y)
    bias = "free" if intercept else None
    for kernel, table in (("precomputed", X @ X.T), ("linear", X), ("linear", scipy.sparse.csr_matrix(X))):
        ours = KernelLogisticRegression(C, kernel, bias=bias, tol=1e-13).fit(table, y)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=0, atol=1e-8)
        np.testing.assert_allclose(ours.decision_function(table), theirs.decision_function(X), rtol=0, atol=1e-7)
        np.testing.assert_allclose(ours.predict_proba(table), theirs.predict_proba(X), rtol=0, atol=1e-8)
        np.testing.assert_allclose(ours.dual_coef_ @ X, theirs.coef_, rtol=0, atol=1e-7)
        assert (ours.predict(table) == theirs.predict(X)).all()


def test_on_eigen_features_of_a_gram_matrix_it_is_logistic_regression():
    X, y = problem()
    K = RBF(0.3)(X)
    values, vectors = np.linalg.eigh(K)
    theirs = LogisticRegression(C=5.0, tol=1e-12, max_iter=1000, solver="newton-cholesky")
    theirs.fit(vectors * np.sqrt(values), y)
    ours = KernelLogisticRegression(5.0).fit(K, y)
    np.testing.assert_allclose(
        ours.decision_function(K), theirs.decision_function(vectors * np.sqrt(values)), atol=1e-7
    )


@pytest.mark.parametrize("wide", [False, True])
def test_wide_and_tall_features_give_coefficients(wide):
    X, y = problem(n=30, d=50 if wide else 5)
    theirs = LogisticRegression(C=2.0, tol=1e-12, max_iter=1000).fit(X, y)
    ours = KernelLogisticRegression(2.0, "linear").fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=1e-5)
    np.testing.assert_allclose(X @ ours.coef_[0] + ours.intercept_, ours.decision_function(X), rtol=0, atol=1e-12)


def test_penalised_bias_is_a_constant_feature():
    X, y = problem()
    theirs = LogisticRegression(C=3.0, fit_intercept=False, tol=1e-12, max_iter=1000, solver="newton-cholesky")
    theirs.fit(np.column_stack([X, np.full(len(X), 0.7)]), y)
    for kernel, table in (("precomputed", X @ X.T), ("linear", X)):
        ours = KernelLogisticRegression(3.0, kernel, bias="penalised", bias_scale=0.7, tol=1e-13).fit(table, y)
        np.testing.assert_allclose(ours.intercept_, 0.7 * theirs.coef_[:, -1], rtol=0, atol=1e-8)
        np.testing.assert_allclose(ours.dual_coef_ @ X, theirs.coef_[:, :-1], rtol=0, atol=1e-7)


def test_penalised_bias_with_a_large_feature_is_the_free_one():
    X, y = problem()
    K = RBF(0.3)(X)
    free = KernelLogisticRegression().fit(K, y).decision_function(K)
    large = KernelLogisticRegression(bias="penalised", bias_scale=1e3).fit(K, y).decision_function(K)
    np.testing.assert_allclose(large, free, rtol=0, atol=1e-5)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")  # by rounding, in older SciPy
def test_a_general_optimiser_finds_the_same_primal_and_dual(bias):
    X, y = problem(n=12)
    K, C = RBF(0.3)(X), 2.0
    ours = KernelLogisticRegression(C, bias=bias, tol=1e-13).fit(K, y)
    S = signs_of(ours, y)

    def primal(v):
        a, b = v[:-1], v[-1] if bias else 0.0
        penalty = 0.5 * b**2 if bias == "penalised" else 0.0
        return C * np.logaddexp(0, -S * (K @ a + b)).sum() + 0.5 * a @ K @ a + penalty

    def dual(lam):
        beta = C * S * lam
        Q = K + 1.0 if bias == "penalised" else K
        return 0.5 * beta @ Q @ beta - C * (entr(lam) + entr(1 - lam)).sum()

    least = minimize(primal, np.zeros(len(y) + 1), method="BFGS", options={"gtol": 1e-9, "maxiter": 5000}).fun
    constraints = [LinearConstraint(S, 0, 0)] if bias == "free" else []
    start = np.where(S > 0, 1.0, (S > 0).sum() / (S < 0).sum())
    most = minimize(
        dual,
        0.5 * start / start.max(),
        bounds=[(1e-9, 1 - 1e-9)] * len(y),
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    ).fun
    np.testing.assert_allclose(ours.objective_, least, rtol=1e-9)
    np.testing.assert_allclose(-most, least, rtol=1e-7)  # no duality gap
    np.testing.assert_allclose(primal(np.append(ours.dual_coef_, ours.intercept_)), least, rtol=1e-9)
    assert ours.gap_[0] <= 1e-13 * least


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("solver", ["exact", "eigen"])
def test_optimality_conditions(bias, solver):
    X, y = problem(n=50)
    K = RBF(0.2)(X)
    weights = np.random.default_rng(1).uniform(0, 2, 50)
    ours = KernelLogisticRegression(10.0, bias=bias, solver=solver, tol=1e-14).fit(K, y, weights)
    S = signs_of(ours, y)
    lam = S * ours.dual_coef_[0] / (10.0 * weights)
    assert (lam > 0).all()
    assert (lam < 1).all()
    np.testing.assert_allclose(lam, expit(-S * ours.decision_function(K)), rtol=0, atol=1e-6)
    total = ours.dual_coef_.sum()
    expected = {"free": ours.intercept_[0], "penalised": total, None: 0.0}[bias]
    np.testing.assert_allclose(ours.intercept_[0], expected, rtol=0, atol=1e-6)
    if bias == "free":
        np.testing.assert_allclose(total, 0.0, rtol=0, atol=1e-9)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from(BIASES), st.floats(-4, 4), st.booleans())
@example(11234, "free", 3.5, False)  # rank one: rounding hides the last decreases of the objective
def test_gap_bounds_the_distance_from_the_optimum(seed, bias, power, early):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((15, rng.integers(1, 20)))
    y = rng.permutation([0, 1, *rng.integers(0, 2, 13)])
    K, C = Z @ Z.T, 10.0**power
    best = KernelLogisticRegression(C, bias=bias, tol=1e-12).fit(K, y)
    assert best.gap_[0] <= 1e-12 * best.objective_[0]
    if early:
        with pytest.warns(ConvergenceWarning, match="duality gap"):
            stopped = KernelLogisticRegression(C, bias=bias, tol=0.0, max_iter=1).fit(K, y)
        excess = stopped.objective_[0] - best.objective_[0]
        assert -1e-9 * best.objective_[0] <= excess <= stopped.gap_[0] * (1 + 1e-6) + 1e-9 * best.objective_[0]


@pytest.mark.parametrize("bias", BIASES)
def test_huge_separable_kernel(bias):
    y = np.arange(20) % 2
    ours = KernelLogisticRegression(bias=bias).fit(1e8 * np.eye(20), y)
    lam = np.abs(ours.dual_coef_[0])
    np.testing.assert_allclose(np.log(lam) - np.log1p(-lam), -1e8 * lam, rtol=1e-7)  # logit λ = -K λ
    assert ours.n_iter_[0] < 50
    assert np.isfinite(ours.predict_log_proba(1e8 * np.eye(20))).all()


def test_no_probability_is_nan_far_away():
    X, y = problem(classes=3)
    ours = KernelLogisticRegression(kernel="linear").fit(X, y)
    far = 1e6 * X
    np.testing.assert_allclose(ours.predict_proba(far).sum(axis=1), 1.0, rtol=1e-12)
    assert np.isfinite(ours.predict_log_proba(far)).all()


def test_several_classes_are_one_against_the_rest():
    X, y = problem(n=60, classes=3)
    K = RBF(0.3)(X)
    ours = KernelLogisticRegression(2.0).fit(K, y)
    alone = [KernelLogisticRegression(2.0).fit(K, y == c) for c in range(3)]
    np.testing.assert_allclose(
        ours.decision_function(K), np.stack([a.decision_function(K) for a in alone], axis=1), rtol=0, atol=1e-12
    )
    single = np.stack([a.predict_proba(K)[:, 1] for a in alone], axis=1)
    np.testing.assert_allclose(ours.predict_proba(K), single / single.sum(axis=1, keepdims=True), rtol=1e-12)
    assert (ours.predict(K) == ours.decision_function(K).argmax(axis=1)).all()
    assert ours.dual_coef_.shape == (3, 60)
    assert ours.gap_.shape == ours.n_iter_.shape == ours.intercept_.shape == (3,)


@pytest.mark.parametrize("kernel", ["precomputed", "linear"])
def test_weights_are_repetitions(kernel):
    X, y = problem(n=25)
    times = np.random.default_rng(0).integers(0, 4, 25)
    again = np.repeat(np.arange(25), times)
    table, repeated = (X, X[again]) if kernel == "linear" else (X @ X.T, X[again] @ X[again].T)
    query = X if kernel == "linear" else X @ X[again].T
    weighted = KernelLogisticRegression(3.0, kernel).fit(table, y, times)
    plain = KernelLogisticRegression(3.0, kernel).fit(repeated, y[again])
    np.testing.assert_allclose(weighted.decision_function(table), plain.decision_function(query), rtol=0, atol=1e-7)


def test_scale_of_the_kernel_and_C_are_one():
    X, y = problem()
    K = RBF(0.3)(X)
    one = KernelLogisticRegression(6.0).fit(K, y).decision_function(K)
    other = KernelLogisticRegression(2.0).fit(3 * K, y).decision_function(3 * K)
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-8)


@pytest.mark.parametrize("bias", BIASES)
def test_approximations_of_full_rank_are_exact(bias):
    X, y = problem(classes=3)
    kernel, new = RBF(0.3), np.random.default_rng(5).standard_normal((7, 4))
    exact = KernelLogisticRegression(4.0, kernel, bias=bias).fit(X, y)
    for solver in ("eigen", "nystrom"):
        ours = KernelLogisticRegression(4.0, kernel, bias=bias, solver=solver, n_components=40).fit(X, y)
        np.testing.assert_allclose(ours.decision_function(new), exact.decision_function(new), rtol=0, atol=1e-7)
        np.testing.assert_allclose(ours.kept_trace_, 1.0, rtol=1e-9)
    assert exact.kept_trace_ == 1.0


def test_eigen_solver_is_exact_for_the_truncated_kernel():
    X, y = problem(n=50)
    K = RBF(0.1)(X)
    values, vectors = np.linalg.eigh(K)
    top = (vectors[:, -2:] * values[-2:]) @ vectors[:, -2:].T
    ours = KernelLogisticRegression(4.0, solver="eigen", n_components=2).fit(K, y)  # by Lanczos: 2 of 50
    more = KernelLogisticRegression(4.0, solver="eigen", n_components=8).fit(K, y)  # by LAPACK
    np.testing.assert_allclose(
        ours.decision_function(K), KernelLogisticRegression(4.0).fit(top, y).decision_function(top), rtol=0, atol=1e-6
    )
    np.testing.assert_allclose(ours.kept_trace_, values[-2:].sum() / values.sum(), rtol=1e-9)
    np.testing.assert_allclose(more.kept_trace_, values[-8:].sum() / values.sum(), rtol=1e-9)


@pytest.mark.parametrize(
    "kernel", ["precomputed", "linear", RBF(0.3), lambda A, B: np.exp(-0.3 * np.abs(A[:, :1] - B[:, 0]))]
)
def test_nystrom_compares_with_landmarks_only(kernel):
    X, y = problem(n=30)
    table = RBF(0.3)(X) if kernel == "precomputed" else X
    ours = KernelLogisticRegression(4.0, kernel, solver="nystrom", n_components=9, random_state=0).fit(table, y)
    K = {"precomputed": table, "linear": X @ X.T}.get(kernel) if isinstance(kernel, str) else kernel(X, X)
    marks = ours.support_
    assert marks.shape == (9,)
    assert ours.dual_coef_.shape == (1, 9)
    nystrom = K[:, marks] @ np.linalg.pinv(K[np.ix_(marks, marks)], rcond=1e-12, hermitian=True) @ K[marks]
    expected = KernelLogisticRegression(4.0).fit(nystrom, y).decision_function(nystrom)
    np.testing.assert_allclose(ours.decision_function(table), expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(ours.kept_trace_, np.trace(nystrom) / np.trace(K), rtol=1e-7)
    assert not hasattr(ours, "X_fit_") if isinstance(kernel, str) else len(ours.X_fit_) == 9


def test_models_may_be_compared():
    rng = np.random.default_rng(0)
    models = [Categorical(rng.dirichlet([1 + 5 * c, 1, 1])) for c in (0, 1) * 8]
    y = np.arange(16) % 2
    kernel = ProbabilityProduct(rho=0.5)
    ours = KernelLogisticRegression(10.0, kernel).fit(models, y)
    K = kernel(models)
    np.testing.assert_allclose(
        ours.predict_proba(models[:5]), KernelLogisticRegression(10.0).fit(K, y).predict_proba(K[:5]), rtol=1e-9
    )


def test_folds_take_rows_and_columns():
    X, y = problem(n=60)
    K = RBF(0.3)(X)
    by_table = cross_val_score(KernelLogisticRegression(2.0, RBF(0.3)), X, y)
    np.testing.assert_array_equal(cross_val_score(KernelLogisticRegression(2.0), K, y), by_table)
    search = GridSearchCV(KernelLogisticRegression(), {"C": [0.1, 10.0]}).fit(K, y)
    assert search.best_score_ > 0.7


def test_indefinite_matrix_is_refused_and_the_remedy_works():
    X, y = problem()
    K = RBF(0.3)(X) - 0.3 * np.eye(40)
    assert np.linalg.eigvalsh(K)[0] < -0.1
    with pytest.raises(ValueError, match=r"positive semi-definite. Its smallest eigenvalue is -0\.\d+.*solver='eigen'"):
        KernelLogisticRegression().fit(K, y)
    values, vectors = np.linalg.eigh(K)
    clipped = (vectors * values.clip(0)) @ vectors.T
    mended = KernelLogisticRegression(solver="eigen").fit(K, y)
    expected = KernelLogisticRegression().fit(clipped, y).decision_function(clipped)
    np.testing.assert_allclose(mended.decision_function(K), expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("solver", logistic.SOLVERS)
@pytest.mark.parametrize("bias", BIASES)
def test_a_kernel_of_zeros_leaves_the_bias(solver, bias):
    y = [0, 1, 0, 1, 1, 1]
    ours = KernelLogisticRegression(bias=bias, solver=solver, n_components=2, random_state=0).fit(np.zeros((6, 6)), y)
    expected = {"free": np.log(2.0), None: 0.0}
    if bias == "penalised":
        least = minimize(lambda b: 2 * np.logaddexp(0, b[0]) + 4 * np.logaddexp(0, -b[0]) + b[0] ** 2 / 2, [0.0])
        expected[bias] = least.x[0]
    np.testing.assert_allclose(ours.intercept_, expected[bias], rtol=0, atol=1e-5)
    np.testing.assert_allclose(ours.decision_function(np.zeros((2, 6))), expected[bias], rtol=0, atol=1e-5)
    assert ours.kept_trace_ == 1.0


def test_rounding_is_not_refused():
    X, y = problem()
    rough = X @ X.T + 1e-12 * np.triu(np.ones((40, 40)))
    np.testing.assert_array_equal(check_symmetric(rough, "who"), (rough + rough.T) / 2)
    K = (X @ X.T).astype(np.float32)
    exact = KernelLogisticRegression().fit(X @ X.T, y).decision_function(X @ X.T)
    np.testing.assert_allclose(KernelLogisticRegression().fit(K, y).decision_function(K), exact, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 0.0}, "'C' parameter"),
        ({"kernel": "rbf"}, "'kernel' parameter.*'precomputed', 'linear'"),
        ({"kernel": RBF}, "such as RBF.*Got <class"),
        ({"kernel": lambda A, B: A[:, 0]}, r"matrix of shape \(4, 4\).*Got shape \(4,\)"),
        ({"bias": "none"}, "'bias' parameter"),
        ({"bias_scale": 0.0}, "'bias_scale'"),
        ({"solver": "lbfgs"}, "'solver' parameter"),
        ({"solver": "nystrom"}, "needs n_components"),
        ({"solver": "eigen", "n_components": 0}, "'n_components'"),
        ({"max_iter": 0}, "'max_iter'"),
        ({"tol": -1.0}, "'tol'"),
    ],
)
def test_wrong_parameters_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        KernelLogisticRegression(**params).fit(np.eye(4), [0, 1, 0, 1])


def test_wrong_data_are_refused(monkeypatch):
    learner, y = KernelLogisticRegression(), [0, 1, 0]
    with pytest.raises(ValueError, match="must be square"):
        learner.fit(np.ones((3, 2)), y)
    with pytest.raises(ValueError, match=r"must be symmetric. Got 1 at \(0, 1\) and 0 at \(1, 0\)"):
        learner.fit(np.triu(np.ones((3, 3))), y)
    with pytest.raises(ValueError, match="at least 2 classes"):
        learner.fit(np.eye(3), [1, 1, 1])
    with pytest.raises(ValueError, match="positive weight in every class"):
        learner.fit(np.eye(3), y, [1, 0, 1])
    with pytest.raises(ValueError, match="inconsistent"):
        learner.fit(np.eye(3), [0, 1])
    monkeypatch.setattr(logistic, "LARGEST", 2)
    with pytest.raises(ValueError, match=r"at most 2 objects. Got 3.*'nystrom'"):
        learner.fit(np.eye(3), y)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.floats(-800, 800), st.floats(0.01, 100)), min_size=1, max_size=6),
    st.lists(st.tuples(st.floats(-800, 800), st.floats(0.01, 100)), min_size=1, max_size=6),
)
def test_best_bias_balances_the_classes(up, down):
    values, weights = np.array(up + down).T
    signs = np.repeat([1.0, -1.0], [len(up), len(down)])
    b = best_bias(values, signs, weights)
    misses = np.log(weights) - np.logaddexp(0, signs * (values + b))
    balance = np.logaddexp.reduce(misses[signs > 0]) - np.logaddexp.reduce(misses[signs < 0])
    np.testing.assert_allclose(balance, 0.0, rtol=0, atol=1e-9)


@pytest.mark.parametrize("space", [PrimalSpace, lambda Z: DualSpace(Z @ Z.T)])
def test_steps_that_go_too_far_are_halved(space):
    """Few weights on one side and many on the other: the first Newton steps overshoot."""
    Z, signs = np.array([[-0.9], [0.8], [-2.5]]), np.array([1.0, -1.0, 1.0])
    weights, looks = np.array([6.421, 2067.786, 2.188]), []

    def loss(x):
        return weights @ np.logaddexp(0.0, -signs * (Z @ x[:1] + x[1])) + 0.5 * x[0] ** 2

    best = minimize(loss, [-4.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-13, "maxiter": 10**4})
    own = space(Z)
    values, own.values = own.values, lambda coefficients: looks.append(None) or values(coefficients)
    found = solve(own, signs, weights, True, 1e-12, 100)
    assert len(looks) > found.n_iter + 1  # a step was halved
    assert found.converged
    assert found.objective == pytest.approx(best.fun, rel=1e-10)
    np.testing.assert_allclose([found.dual @ Z[:, 0], found.bias], best.x, rtol=1e-4)
