"""Nystrom: exact where it must be, close where it may not be, on every kind of object."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from genkern import (
    HMM,
    KDE,
    LDS,
    RBF,
    Categorical,
    EmpiricalMean,
    FitEach,
    Gaussian,
    Gram,
    Kernel,
    Linear,
    LocalAlignment,
    MarkovChain,
    MarkovChainEstimator,
    MeanMap,
    Mixture,
    Nystrom,
    On,
    Polynomial,
    ProbabilityProduct,
    SetBhattacharyya,
    Spectrum,
    Views,
)
from genkern.kernels import Constant, NotPositiveWarning, SymmetricKL

rng = np.random.default_rng(0)


def hmms(n: int, label: int = 0) -> list[HMM]:
    """Models of one or two states; the label decides which symbols are frequent."""
    found = []
    for states in rng.integers(1, 3, n):
        likely = [4.0, 1.0, 1.0] if label == 0 else [1.0, 1.0, 4.0]
        start, steps = rng.dirichlet(np.ones(states)), rng.dirichlet(np.ones(states), states)
        found.append(HMM(start, steps, Categorical(rng.dirichlet(likely, states))))
    return found


def systems(n: int) -> list[LDS]:
    return [LDS([[a]], [[1.0]], [0.1], [0.2], [b], [1.0]) for a, b in rng.uniform(-0.9, 0.9, (n, 2))]


def densities(n: int) -> list[Any]:
    """Mixtures and kernel density estimates in turn."""

    def mixture() -> Mixture:
        return Mixture(rng.dirichlet([1, 1]), Gaussian(rng.normal(size=(2, 1)), np.full((2, 1), 0.5)))

    return [KDE(rng.normal(size=(5, 1)), 0.3) if i % 2 else mixture() for i in range(n)]


def chains(n: int) -> list[MarkovChain]:
    return [MarkovChain(rng.dirichlet([1, 1]), rng.dirichlet([1, 1], 2)) for _ in range(n)]


def strings(n: int) -> list[str]:
    return ["".join(rng.choice(list("abc"), length)) for length in rng.integers(4, 12, n)]


def sets(n: int) -> list[Any]:
    return [rng.normal(size=(size, 2)) for size in rng.integers(3, 7, n)]


CASES: list[tuple[Kernel, Any]] = [
    (RBF(0.3), rng.normal(size=(25, 3))),
    (Polynomial(2, 1.0).normalized(), rng.normal(size=(25, 3))),
    (ProbabilityProduct(0.5, length=5), hmms(20)),
    (MeanMap(1.0, length=1500), hmms(20)),
    (ProbabilityProduct(0.5, length=4).normalized(), systems(15)),
    (MeanMap(2.0), densities(16)),
    (ProbabilityProduct(1.0, length=8).normalized(), chains(20)),
    (ProbabilityProduct(0.5), Gaussian(rng.normal(size=(15, 2)), np.ones((15, 2)))),
    (EmpiricalMean(order=1).normalized(), strings(20)),
    (LocalAlignment(alphabet="protein").normalized(), ["".join(rng.choice(list("ACDE"), 9)) for _ in range(15)]),
    (SetBhattacharyya(RBF(0.5)), sets(12)),
]


@pytest.mark.parametrize(("kernel", "X"), CASES, ids=lambda value: repr(value)[:60])
@pytest.mark.parametrize("select", ["uniform", "pivots"])
def test_exact_if_all_objects_are_landmarks(kernel: Kernel, X: Any, select: str) -> None:
    K = Gram(kernel).fit_transform(X)
    nystrom = Nystrom(kernel, len(K), select=select)
    Z = nystrom.fit_transform(X)
    assert_allclose(Z @ Z.T, K, rtol=0, atol=1e-8)
    assert_allclose(nystrom.transform(X[:5]), Z[:5], rtol=0, atol=1e-10)
    assert nystrom.log_scale_ == Gram(kernel).fit(X).log_scale_


@pytest.mark.parametrize(("kernel", "X"), CASES, ids=lambda value: repr(value)[:60])
def test_pivots_are_those_of_a_full_factorisation(kernel: Kernel, X: Any) -> None:
    K = Gram(kernel).fit_transform(X)
    left, places = K.copy(), []
    while len(places) < 6 and left[i := int(np.argmax(np.diagonal(left))), i] > 1e-12 * K.max():
        places.append(i)
        left = left - np.outer(left[:, i], left[i]) / left[i, i]
    nystrom = Nystrom(kernel, 6, "pivots")
    Z = nystrom.fit_transform(X)
    assert_array_equal(nystrom.landmark_indices_, places)
    assert_allclose(K - Z @ Z.T, left, rtol=0, atol=1e-8)


@pytest.mark.parametrize("select", ["uniform", "pivots"])
def test_exact_if_the_rank_is_no_larger(select: str) -> None:
    X = rng.normal(size=(60, 4))
    nystrom = Nystrom(Linear(), 10, select)
    Z = nystrom.fit_transform(X)
    assert_allclose(Z @ Z.T, X @ X.T, rtol=0, atol=1e-10)
    Y = rng.normal(size=(7, 4))
    assert_allclose(nystrom.transform(Y) @ Z.T, Y @ X.T, rtol=0, atol=1e-10)
    assert Z.shape[1] == (4 if select == "pivots" else 10)  # pivots stop where all is explained


def test_equal_to_that_of_scikit_learn() -> None:
    X, Y = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    theirs = Nystroem(gamma=0.4, n_components=12, random_state=7).fit(X)
    ours = Nystrom(RBF(0.4), 12, random_state=7).fit(X)
    assert_array_equal(ours.landmark_indices_, theirs.component_indices_)
    assert_allclose(ours.transform(Y), theirs.transform(Y), rtol=0, atol=1e-9)


@pytest.mark.parametrize("select", ["uniform", "pivots"])
def test_the_error_falls_with_more_landmarks(select: str) -> None:
    X = hmms(60)
    kernel = ProbabilityProduct(0.5, length=10).normalized()
    K = kernel(X)
    errors = []
    for m in (3, 10, 30, 60):
        Z = Nystrom(kernel, m, select, random_state=1).fit_transform(X)
        errors.append(np.trace(K - Z @ Z.T))
        assert np.linalg.eigvalsh(K - Z @ Z.T)[0] > -1e-8  # never more than the kernel
    assert all(later < 0.7 * earlier for earlier, later in itertools.pairwise(errors))
    assert errors[-1] < 1e-8


def test_pivots_find_small_groups() -> None:
    X = np.r_[rng.normal(size=(200, 2)), 50 + rng.normal(size=(2, 2)), -50 + rng.normal(size=(2, 2))]
    K = RBF(0.05)(X)
    errors = {}
    for select in ("uniform", "pivots"):
        Z = Nystrom(RBF(0.05), 12, select).fit_transform(X)
        errors[select] = np.abs(K - Z @ Z.T).max()
    assert errors["pivots"] < 0.25 < errors["uniform"]


def test_values_far_too_small_for_floating_point() -> None:
    # With their symbols in another order models are as similar to themselves as before, and one factor suits all.
    (model,) = hmms(1)
    orders = itertools.permutations(range(3))
    X = [HMM(model.start, model.transitions, Categorical(model.emissions.probs[:, order])) for order in orders]
    kernel = ProbabilityProduct(1.0, length=3000)
    with pytest.raises(ValueError, match="leave the range"):
        kernel(X)
    for select in ("uniform", "pivots"):
        Z = Nystrom(kernel, 20, select).fit_transform(X)
        assert_allclose(Z @ Z.T, Gram(kernel).fit_transform(X), rtol=0, atol=1e-8)
    narrow = Nystrom(kernel).fit([Gaussian(0.0, 1.0)])
    with pytest.raises(ValueError, match=r"Nystrom: an object's kernel values exceed"):
        narrow.transform([Gaussian(0.0, 0.01)])


@pytest.mark.parametrize(("kernel", "X"), [CASES[0], CASES[2], CASES[8]], ids=lambda value: repr(value)[:60])
@pytest.mark.parametrize(("block_size", "n_jobs"), [(1, 1), (3, 2), (100, 2)])
@pytest.mark.parametrize("select", ["uniform", "pivots"])
def test_results_do_not_depend_on_blocks_or_threads(
    kernel: Kernel, X: Any, block_size: int, n_jobs: int, select: str
) -> None:
    plain = Nystrom(kernel, 5, select).fit(X)
    blocked = Nystrom(kernel, 5, select, n_jobs=n_jobs, block_size=block_size).fit(X)
    assert_allclose(blocked.transform(X), plain.transform(X), rtol=0, atol=1e-11)


def test_rows_are_multiplied_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    X = rng.normal(size=(23, 2))
    whole = Nystrom(RBF(), 9).fit_transform(X)
    monkeypatch.setattr("genkern.gram.nystrom.VECTORS", 4)
    assert_allclose(Nystrom(RBF(), 9).fit_transform(X), whole, rtol=0, atol=1e-12)


def test_pipeline_and_grid_of_models() -> None:
    X, y = hmms(30) + hmms(30, label=1), np.repeat([0, 1], 30)
    pipeline = Pipeline([("nystrom", Nystrom(ProbabilityProduct(length=5))), ("svm", LinearSVC(C=10.0))])
    grid = {"kernel__rho": [0.5, 1.0], "n_landmarks": [5, 500], "select": ["uniform", "pivots"]}
    grid = {f"nystrom__{name}": values for name, values in grid.items()}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.8
    assert search.predict(X[:3]).shape == (3,)


def test_raw_objects_through_models_and_views() -> None:
    X = strings(20)
    views = Views([("words", Spectrum(2)), ("models", FitEach(MarkovChainEstimator(order=1)))]).fit_transform(X)
    kernel = On("words", Linear().normalized()) + On("models", ProbabilityProduct(0.5, 5).normalized())
    Z = Nystrom(kernel, 20, "pivots").fit_transform(views)
    assert_allclose(Z @ Z.T, kernel(views), rtol=0, atol=1e-8)


def test_sparse_rows_and_containers() -> None:
    X = sparse.random(30, 12, 0.3, random_state=0, format="csr")
    Z = Nystrom(Linear(), 30).fit_transform(X)
    assert_allclose(Z @ Z.T, (X @ X.T).toarray(), rtol=0, atol=1e-9)
    listed = chains(12)
    boxed = np.empty(12, dtype=object)
    boxed[:] = listed
    kernel = MeanMap(1.0, length=3)
    expected = Nystrom(kernel, 5).fit_transform(listed)
    for other in (boxed, tuple(listed), MarkovChain.stack(listed)):
        assert_allclose(Nystrom(kernel, 5).fit_transform(other), expected, rtol=0, atol=1e-12)


def test_random_states() -> None:
    X = rng.normal(size=(40, 2))
    drawn = [Nystrom(RBF(), 8, random_state=seed).fit(X).landmark_indices_ for seed in (0, 0, 1)]
    assert_array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
    assert len(set(drawn[0])) == 8
    Nystrom(RBF(), 8, random_state=None).fit(X)


def test_indefinite_kernels_warn_and_keep_the_positive_part() -> None:
    laws = [Categorical(probs) for probs in np.random.default_rng(0).dirichlet(np.full(3, 0.3), 20)]
    words = r"Nystrom: the kernel matrix is not positive.*Hellinger\(t\) is\. Only the positive part is used"
    with pytest.warns(NotPositiveWarning, match=words), pytest.warns(NotPositiveWarning, match="in general: learners"):
        Z = Nystrom(SymmetricKL(0.3), 20).fit_transform(laws)
    assert_allclose(Z @ Z.T, Gram(SymmetricKL(0.3), psd="clip").fit_transform(laws), rtol=0, atol=1e-8)


def test_duplicates_and_zeros() -> None:
    X = np.repeat([[1.0, 0.0], [0.0, 2.0]], 5, axis=0)
    nystrom = Nystrom(RBF(), 6, "pivots")
    Z = nystrom.fit_transform(X)
    assert_array_equal(nystrom.landmark_indices_, [0, 5])
    assert_allclose(Z @ Z.T, RBF()(X), rtol=0, atol=1e-12)
    for select in ("uniform", "pivots"):
        nothing = Nystrom(Linear() * Constant(0.0), 3, select).fit_transform(X)
        assert_array_equal(nothing, np.zeros_like(nothing))


def test_clone_pickle_and_feature_names() -> None:
    X = chains(8)
    nystrom = Nystrom(MeanMap(length=3), 4, n_jobs=2, block_size=3).fit(X)
    assert clone(nystrom).get_params()["kernel"] == nystrom.kernel
    assert_array_equal(pickle.loads(pickle.dumps(nystrom)).transform(X), nystrom.transform(X))
    assert list(nystrom.get_feature_names_out()) == [f"nystrom{i}" for i in range(4)]
    assert nystrom.landmarks_ == [X[i] for i in nystrom.landmark_indices_]


def test_bad_parameters_raise() -> None:
    with pytest.raises(TypeError, match="Nystrom: 'kernel' must be a Kernel"):
        Nystrom("rbf").fit([[0.0]])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'n_landmarks' parameter of Nystrom must be an int >= 1"):
        Nystrom(RBF(), 0).fit([[0.0]])
    with pytest.raises(ValueError, match=r"'select' parameter of Nystrom must be one of 'uniform', 'kmeans.*'pivots'"):
        Nystrom(RBF(), select="kmeans").fit([[0.0]])
    with pytest.raises(ValueError, match="needs length="):
        Nystrom(ProbabilityProduct()).fit(hmms(3))


# --- landmarks by distances and by leverage


def groups() -> Any:
    """Many copies of nearly one point, and few points far away, which uniform landmarks mostly leave out."""
    return np.vstack([rng.normal(scale=0.01, size=(400, 3)), 8.0 * np.eye(3), -8.0 * np.eye(3)])


@pytest.mark.parametrize("select", ["kmeans++", "leverage"])
def test_landmarks_reach_small_groups(select: str) -> None:
    X = groups()
    error = {}
    for name in ("uniform", select):
        tries = [Nystrom(RBF(0.1), 12, name, random_state=seed).fit_transform(X) for seed in range(5)]
        error[name] = np.mean([np.abs(Z @ Z.T - RBF(0.1)(X)).max() for Z in tries])
    assert error[select] < 0.2 < 0.7 < error["uniform"]


def test_distances_of_kmeans_plus_plus_are_those_of_feature_space() -> None:
    X = rng.normal(size=(40, 2))
    found = Nystrom(Polynomial(2, 1.0), 15, "kmeans++", random_state=3).fit(X).landmark_indices_
    state = np.random.RandomState(3)
    features = np.array([np.outer([1.0, *x], [1.0, *x]).ravel() for x in X])  # of (1 + x y)^2
    places = [state.randint(40)]
    while len(places) < 15:
        gaps = np.array([min(((features[i] - features[j]) ** 2).sum() for j in places) for i in range(40)])
        places.append(int(state.choice(40, p=gaps / gaps.sum())))
    assert_array_equal(found, places)


def test_leverage_scores_are_those_of_ridge_regression_where_landmarks_span_all() -> None:
    X = rng.normal(size=(30, 2))  # Linear has rank 2, which any two landmarks span
    features = Nystrom(Linear(), 12, "leverage", random_state=0)
    features.landmark_indices_, features.log_scale_ = np.arange(12), 0.0
    ridge = 1e-12 * np.linalg.eigvalsh(X.T @ X)[-1]
    expected = np.diag(X @ np.linalg.solve(X.T @ X + ridge * np.eye(2), X.T))
    assert_allclose(features._leverage(X, X), expected / expected.sum(), rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("select", ["kmeans++", "leverage"])
def test_other_landmarks_of_models(select: str) -> None:
    models = hmms(9, 0) + hmms(9, 1)
    kernel = MeanMap(1.0, length=3).normalized()
    Z = Nystrom(kernel, 14, select, random_state=0).fit_transform(models)
    assert_allclose(Z @ Z.T, kernel(models), atol=0.02)
    assert len(set(Nystrom(kernel, 50, select).fit(models).landmark_indices_)) == 18


def test_kmeans_plus_plus_stops_when_nothing_is_left() -> None:
    assert len(Nystrom(Linear(), 5, "kmeans++").fit(np.ones((9, 2))).landmark_indices_) == 1
