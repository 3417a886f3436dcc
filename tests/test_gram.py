"""Gram: scaling, blocks, threads, and its life inside scikit-learn."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import oracles_affinity as oracle
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from genkern import FitEach
from genkern.data.representations import Representations
from genkern.gram.gram import Gram
from genkern.gram.nystrom import Nystrom
from genkern.kernels import (
    RBF,
    Diffusion,
    Hellinger,
    Kernel,
    Linear,
    MeanMap,
    NotPositiveWarning,
    On,
    Polynomial,
    ProbabilityProduct,
    SymmetricKL,
)
from genkern.models.factorial.model import FactorialHMM
from genkern.models.families.categorical import Categorical
from genkern.models.families.gaussian import Gaussian
from genkern.models.hmm.estimator import HMMEstimator
from genkern.models.hmm.model import HMM
from genkern.models.sampled import Sampled

KERNELS = [
    Linear(),
    RBF(0.3),
    Polynomial().normalized(),
    2 * RBF(0.1) + Linear(),
    ProbabilityProduct(0.5, length=5),
    ProbabilityProduct(1.0, length=800),
    MeanMap(1.0, length=4).normalized(),
    MeanMap(1.0, length=4).exp(2.0),
]


@parametrize_with_checks([Gram(Linear()), Gram(RBF()), Gram(Polynomial().normalized() + 1.0)])
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def models(seed: int, n: int, label: int = 0) -> list[HMM]:
    """HMMs of various sizes; the label decides which symbols are frequent."""
    random = np.random.default_rng(seed)
    found = []
    for states in random.integers(1, 4, n):
        probs = random.dirichlet(np.array([4.0, 1.0, 1.0]) if label == 0 else np.array([1.0, 1.0, 4.0]), states)
        found.append(oracle.random_hmm(random, int(states), Categorical(probs)))
    return found


def representations(kernel: Kernel, seed: int, n: int) -> Any:
    return np.random.default_rng(seed).normal(size=(n, 3)) if kernel.vectors else models(seed, n)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_transforming_the_training_set_is_fit_transform(kernel: Kernel) -> None:
    X, Y = representations(kernel, 0, 12), representations(kernel, 1, 5)
    gram = Gram(kernel)
    K = gram.fit_transform(X)
    assert K.shape == (12, 12)
    assert_array_equal(K, K.T)
    assert_allclose(gram.transform(X), K, rtol=1e-10, atol=1e-13)
    assert_allclose(Gram(kernel).fit(X).transform(Y), gram.transform(Y), rtol=0, atol=0)
    assert gram.transform(Y).shape == (5, 12)
    assert np.linalg.eigvalsh(K).min() >= -1e-10 * K.max()


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize(("block_size", "n_jobs"), [(1, 1), (3, 2), (5, None), (100, 2)])
def test_results_do_not_depend_on_blocks_or_threads(kernel: Kernel, block_size: int, n_jobs: int | None) -> None:
    X, Y = representations(kernel, 0, 11), representations(kernel, 1, 4)
    plain, blocked = Gram(kernel), Gram(kernel, n_jobs=n_jobs, block_size=block_size)
    assert_allclose(blocked.fit_transform(X), plain.fit_transform(X), rtol=1e-12, atol=1e-14)
    assert_allclose(blocked.transform(Y), plain.transform(Y), rtol=1e-12, atol=1e-14)
    assert blocked.log_scale_ == plain.log_scale_


def test_default_blocks_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("genkern.gram.base.MODELS", 4)
    monkeypatch.setattr("genkern.gram.base.VECTORS", 4)
    for kernel in (RBF(0.3), MeanMap(length=3).normalized()):
        X = representations(kernel, 0, 10)
        assert_allclose(Gram(kernel, n_jobs=2).fit_transform(X), kernel(X), rtol=1e-12)


def test_values_are_the_kernels_up_to_one_factor() -> None:
    X, Y = models(0, 6), models(1, 3)
    kernel = ProbabilityProduct(1.0, length=5)
    gram = Gram(kernel).fit(X)
    factor = kernel.diag(X).max()
    assert gram.log_scale_ == pytest.approx(np.log(factor), rel=1e-12)
    assert_allclose(gram.transform(Y), kernel(Y, X) / factor, rtol=1e-11)


def test_normalised_kernels_and_those_of_vectors_are_not_scaled() -> None:
    X = models(0, 6)
    kernel = ProbabilityProduct(1.0, length=5).normalized()
    gram = Gram(kernel)
    assert_array_equal(gram.fit_transform(X), kernel(X))
    assert gram.log_scale_ == 0.0
    V = np.random.default_rng(0).normal(size=(6, 2))
    for other in (Linear(), 5 * RBF()):
        assert_allclose(Gram(other).fit_transform(V), other(V), rtol=1e-14)


def test_values_far_too_small_are_usable() -> None:
    # With their symbols in another order models are as similar to themselves as before, and one factor suits all.
    (model,) = models(0, 1)
    orders = itertools.permutations(range(3))
    X = [HMM(model.start, model.transitions, Categorical(model.emissions.probs[:, order])) for order in orders]
    kernel = ProbabilityProduct(1.0, length=5000)
    with pytest.raises(ValueError, match="normalized"):
        kernel(X)
    K = Gram(kernel).fit_transform(X)
    assert K.max() == pytest.approx(1.0, rel=1e-9)
    assert np.isfinite(K).all()


def test_self_similarities_too_far_apart_raise_and_name_the_remedy() -> None:
    random = np.random.default_rng(0)
    X = [oracle.random_hmm(random, 2, Categorical(random.dirichlet(np.ones(4), 2))) for _ in range(6)]
    kernel = ProbabilityProduct(1.0, 5000)
    logs = kernel.log_diag(X)
    lost = int(np.argmax(logs - logs.max() < -708))
    words = (
        rf"Gram: the self-similarity of training object {lost} is e\^-\d.*Use ProbabilityProduct.*\.normalized\(\)\."
    )
    for compute in (Gram(kernel).fit, Gram(kernel).fit_transform, Gram(kernel, psd="warn").fit):
        with pytest.raises(ValueError, match=words):
            compute(X)
    assert_array_equal(np.diagonal(Gram(kernel.normalized()).fit_transform(X)), np.ones(6))
    with pytest.raises(ValueError, match=r"Use \(ProbabilityProduct\(length=5000\) \+ Prob.*\)\.normalized"):
        Gram(kernel + ProbabilityProduct(2.0, 5000)).fit(X)


def test_the_smallest_self_similarity_that_is_kept_is_a_normal_number() -> None:
    laws = [Gaussian(0.0, 1.0), Gaussian(0.0, np.exp(-1.0))]  # a draw tells e^(1/2) more of the second
    gap = ProbabilityProduct(length=1416).log_diag(laws)
    assert gap[0] - gap[1] == pytest.approx(-708.0, abs=1e-9)
    diagonal = np.diagonal(Gram(ProbabilityProduct(length=1415)).fit_transform(laws))
    assert diagonal.min() > np.finfo(float).tiny
    with pytest.raises(ValueError, match="below the range"):
        Gram(ProbabilityProduct(length=1417)).fit(laws)


def test_impossible_models_among_possible_ones_are_zero() -> None:
    slow = HMM([1.0, 0.0], [[0.0, 1.0], [0.0, 0.5]], Categorical([[0.5, 0.5]] * 2), stop=[0.0, 0.5])
    fast = HMM([0.0, 1.0], [[0.0, 1.0], [0.0, 0.5]], Categorical([[0.5, 0.5]] * 2), stop=[0.0, 0.5])
    assert_allclose(Gram(ProbabilityProduct(length=1)).fit_transform([slow, fast]), np.diag([0.0, 1.0]), rtol=1e-12)


@pytest.mark.parametrize("make", [Gram, Nystrom])
def test_test_objects_lost_below_the_training_set_raise(make: Any) -> None:
    kernel, laws = ProbabilityProduct(1.0, length=200), [Gaussian(0.0, 1.0), Gaussian(0.1, 1.0)]
    near, wide, far = Gaussian(0.0, 2.0), Gaussian(0.0, 1e4), Gaussian(300.0, 1.0)
    transformer = make(kernel).fit(laws)
    # A wide one says less of every draw: its values are small as such. A far one is unlike the training set.
    assert not transformer.transform([near, far])[1].any()
    with pytest.raises(ValueError, match=rf"{make.__name__}: all kernel values of object 1 are.*\.normalized\(\)\."):
        transformer.transform([near, wide, far])
    assert make(kernel.normalized()).fit(laws).transform([wide]).any()


def test_test_objects_far_above_the_training_set_raise() -> None:
    gram = Gram(ProbabilityProduct(1.0, length=3000)).fit([Gaussian(0.0, 1.0)])
    with pytest.raises(ValueError, match=r"exceed those of the training set.*normalized"):
        gram.transform([Gaussian(0.0, 0.01)])


def test_training_sets_of_impossible_models_are_zero() -> None:
    # No sequence of length 1 can stop, so that all values are zero and there is nothing to scale by.
    slow = HMM([1.0, 0.0], [[0.0, 1.0], [0.0, 0.5]], Categorical([[0.5, 0.5]] * 2), stop=[0.0, 0.5])
    gram = Gram(ProbabilityProduct(length=1))
    assert_array_equal(gram.fit_transform([slow, slow]), np.zeros((2, 2)))


def test_stacks_and_object_arrays_are_lists_of_models() -> None:
    listed = models(0, 9)
    listed = [model for model in listed if model.n_states == 2]
    K = Gram(MeanMap(length=3)).fit_transform(listed)
    assert_allclose(Gram(MeanMap(length=3)).fit_transform(HMM.stack(listed)), K, rtol=1e-13)
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    assert_allclose(Gram(MeanMap(length=3)).fit_transform(array), K, rtol=1e-13)


def test_sparse_features() -> None:
    X = sparse.random(20, 30, 0.2, random_state=0, format="csr")
    assert_allclose(Gram(Linear(), block_size=7).fit_transform(X), (X @ X.T).toarray(), rtol=1e-13)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        Gram(RBF()).fit(X)


def test_grid_search_over_kernel_parameters() -> None:
    X, y = models(0, 12) + models(1, 12, label=1), np.repeat([0, 1], 12)
    pipeline = Pipeline([("gram", Gram(ProbabilityProduct(length=5).normalized())), ("svm", SVC(kernel="precomputed"))])
    grid = {"gram__kernel__kernel__rho": [0.5, 1.0], "gram__kernel": [MeanMap(length=5)], "svm__C": [1.0, 10.0]}
    search = GridSearchCV(pipeline, [{k: grid[k] for k in (name, "svm__C")} for name in list(grid)[:2]], cv=3).fit(X, y)
    assert search.best_score_ > 0.8
    assert len(search.cv_results_["params"]) == 6
    unnormalised = Pipeline([("gram", Gram(MeanMap(length=5))), ("svm", SVC(kernel="precomputed"))])
    assert GridSearchCV(unnormalised, {"gram__kernel__lam": [0.5, 2.0]}, cv=3).fit(X, y).best_score_ > 0.8


def test_clone_pickle_and_feature_names() -> None:
    X = models(0, 5)
    gram = Gram(MeanMap(length=3), n_jobs=2, block_size=4).fit(X)
    assert clone(gram).get_params()["kernel"] == gram.kernel
    again = pickle.loads(pickle.dumps(gram))
    assert_array_equal(again.transform(X[:2]), gram.transform(X[:2]))
    assert list(gram.get_feature_names_out()) == [f"gram{i}" for i in range(5)]


def test_refitting_forgets_the_old_training_set() -> None:
    gram = Gram(ProbabilityProduct(length=4))
    gram.fit(models(0, 5))
    fresh = Gram(ProbabilityProduct(length=4)).fit(models(1, 3))
    assert_array_equal(gram.fit(models(1, 3)).transform(models(2, 2)), fresh.transform(models(2, 2)))


def test_kernel_pca_on_models() -> None:
    X = models(0, 10) + models(1, 10, label=1)
    coordinates = make_pipeline(Gram(MeanMap(length=5).normalized()), KernelPCA(2, kernel="precomputed")).fit_transform(
        X
    )
    assert coordinates.shape == (20, 2)
    assert abs(coordinates[:10, 0].mean() - coordinates[10:, 0].mean()) > coordinates[:, 0].std()


def test_bad_parameters_raise() -> None:
    with pytest.raises(TypeError, match="Gram: 'kernel' must be a Kernel"):
        Gram("rbf").fit([[0.0]])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'block_size' parameter of Gram must be an int >= 1"):
        Gram(Linear(), block_size=0).fit_transform([[0.0]])
    with pytest.raises(ValueError, match="needs length="):
        Gram(ProbabilityProduct()).fit(models(0, 2))


def test_progress_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    Gram(Linear(), block_size=1, verbose=10).fit_transform(np.eye(4))
    assert "Done" in "".join(capsys.readouterr())


# --- matrices that are not positive semi-definite


def laws(seed: int, n: int) -> list[Categorical]:
    """Categorical laws whose exponentiated divergences are an indefinite matrix."""
    return [Categorical(probs) for probs in np.random.default_rng(seed).dirichlet(np.full(3, 0.3), n)]


def plain_values(kernel: SymmetricKL, P: list[Categorical], Q: list[Categorical]) -> Any:
    """Values by the sum that defines them."""

    def divergence(p: Any, q: Any) -> float:
        return float(((p - q) * np.log(p / q)).sum())

    return np.exp([[-kernel.a * divergence(p.probs, q.probs) for q in Q] for p in P])


SHARP = SymmetricKL(0.3)


def test_the_example_is_indefinite() -> None:
    assert np.linalg.eigvalsh(plain_values(SHARP, laws(0, 20), laws(0, 20)))[0] < -0.01


def test_clipping_is_one_linear_map_of_all_rows() -> None:
    X, Y = laws(0, 20), laws(1, 6)
    K, new = plain_values(SHARP, X, X), plain_values(SHARP, Y, X)
    values, vectors = np.linalg.eigh(K)
    positive = (vectors * (values > 0.0)) @ vectors.T  # the projection, as it is defined
    gram = Gram(SHARP, psd="clip")
    out = gram.fit_transform(X)
    assert_allclose(out, K @ positive, rtol=0, atol=1e-9)
    assert_array_equal(out, out.T)
    assert_allclose(gram.transform(Y), new @ positive, rtol=0, atol=1e-9)
    assert_allclose(gram.transform(X), out, rtol=0, atol=1e-12)
    assert_allclose(Gram(SHARP, psd="clip", block_size=7).fit(X).transform(Y), gram.transform(Y), rtol=0, atol=1e-12)
    assert np.linalg.eigvalsh(out)[0] > -1e-9
    assert gram.shift_ == 0.0


def test_shifting_adds_to_the_training_diagonal_only() -> None:
    X, Y = laws(0, 20), laws(1, 6)
    K = plain_values(SHARP, X, X)
    gram = Gram(SHARP, psd="shift")
    out = gram.fit_transform(X)
    lacking = -np.linalg.eigvalsh(K)[0]
    assert gram.shift_ == pytest.approx(lacking, rel=1e-9)
    assert_allclose(out, K + lacking * np.eye(20), rtol=1e-10)
    assert np.linalg.eigvalsh(out)[0] == pytest.approx(0.0, abs=1e-12)
    assert_allclose(gram.transform(Y), plain_values(SHARP, Y, X), rtol=1e-10)
    assert_allclose(gram.transform(X), K, rtol=1e-10)
    assert gram.negative_ is None


def test_warning_and_raising_name_the_remedy_and_change_nothing() -> None:
    X = laws(0, 20)
    words = r"Gram: the kernel matrix is not positive semi-definite.*smallest.*SymmetricKL.*Hellinger\(t\).*psd='clip'"
    with pytest.warns(NotPositiveWarning, match=words) as caught:
        K = Gram(SHARP, psd="warn").fit_transform(X)
    assert len(caught) == 1  # the kernel's own, about matrices in general, is not needed then
    assert_allclose(K, plain_values(SHARP, X, X), rtol=1e-10)
    with pytest.warns(NotPositiveWarning, match=words):
        Gram(SHARP, psd="warn").fit(X)
    with pytest.raises(ValueError, match=words):
        Gram(SHARP, psd="raise").fit(X)
    with pytest.warns(NotPositiveWarning, match="not positive semi-definite in general"):
        Gram(SHARP).fit_transform(X)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("psd", ["warn", "raise", "clip", "shift"])
def test_positive_kernels_are_left_as_they_are(kernel: Kernel, psd: str) -> None:
    X, Y = representations(kernel, 0, 12), representations(kernel, 1, 5)
    gram = Gram(kernel, psd=psd)
    assert_array_equal(gram.fit_transform(X), Gram(kernel).fit_transform(X))
    assert (gram.negative_, gram.shift_) == (None, 0.0)
    assert_array_equal(gram.fit(X).transform(Y), Gram(kernel).fit(X).transform(Y))


def test_rounding_is_not_indefinite() -> None:
    # Many equal objects: all eigenvalues but a few are zero, and some are computed as less.
    X = np.repeat(np.random.default_rng(0).normal(size=(5, 3)), 40, axis=0)
    kernel = Polynomial(3, 1.0)
    assert np.linalg.eigvalsh(kernel(X))[0] < 0.0
    assert_array_equal(Gram(kernel, psd="raise").fit_transform(X), kernel(X))


def factorial(rng: Any, states: int) -> FactorialHMM:
    """Two chains whose means add up."""
    starts, steps = rng.dirichlet(np.ones(states), 2), rng.dirichlet(np.ones(states), (2, states))
    return FactorialHMM(list(starts), list(steps), list(rng.normal(size=(2, states, 1))), np.full(1, 0.5))


def test_factorial_models_of_different_sizes_in_one_list() -> None:
    rng = np.random.default_rng(0)
    X = [factorial(rng, states) for states in (2, 3, 2, 1, 3)]
    kernel = ProbabilityProduct(0.5, length=3).normalized()
    K = Gram(kernel, psd="raise").fit_transform(X)
    assert_allclose(K, [[kernel([p], [q])[0, 0] for q in X] for p in X], rtol=1e-10)


def test_the_cause_is_named_for_what_is_compared() -> None:
    rng = np.random.default_rng(0)

    bounds = [factorial(rng, 2) for _ in range(15)]
    with pytest.raises(ValueError, match=r"method='collapsed' gives bounds, whose gaps grow with the length"):
        Gram(2 * ProbabilityProduct(0.5, length=2, method="collapsed").normalized(), psd="raise").fit(bounds)
    draws = [Sampled(Gaussian(mean, 0.05), 4, seed=seed) for seed, mean in enumerate(np.linspace(0, 0.5, 12))]
    with pytest.raises(ValueError, match="products of ProposalFeatures are positive"):
        Gram(ProbabilityProduct(0.5).normalized(), psd="raise").fit(draws)
    with pytest.raises(ValueError, match="products of ProposalFeatures are positive"):
        Gram(On("laws", ProbabilityProduct(0.5).normalized()), psd="raise").fit(Representations({"laws": draws}))
    corners = [Categorical(probs) for probs in np.random.default_rng(0).dirichlet(np.full(6, 0.2), 60)]
    with pytest.raises(ValueError, match="kind='geodesic' or 'sphere'"):
        Gram(Diffusion(10.0), psd="raise").fit(corners)

    class Root(Linear):
        """A power that is no kernel."""

        def _values(self, X: Any, Y: Any) -> Any:
            values = super()._values(X, Y)
            return np.sign(values) * np.sqrt(np.abs(values))

    with pytest.raises(ValueError, match=r"k\^\(1/length\).*\.normalized\(\), a shorter length or a lower rho"):
        Gram(Root(), psd="raise").fit(rng.normal(size=(12, 2)))


def test_indefinite_kernels_in_a_pipeline() -> None:
    random = np.random.default_rng(3)
    X = [Categorical(random.dirichlet([4, 1, 1] if label else [1, 1, 4])) for label in np.arange(40) % 2]
    y = np.arange(40) % 2
    pipeline = Pipeline([("gram", Gram(SymmetricKL(0.3), psd="clip")), ("svm", SVC(kernel="precomputed"))])
    grid = {"gram__psd": ["clip", "shift"], "gram__kernel": [SymmetricKL(0.1), SymmetricKL(1.0), Hellinger()]}
    assert GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, y).best_score_ > 0.8


def test_refitting_forgets_what_was_clipped() -> None:
    gram = Gram(SHARP, psd="clip").fit(laws(0, 20))
    assert gram.negative_ is not None
    assert gram.fit(laws(0, 2)).negative_ is None
    with pytest.raises(ValueError, match="'psd' parameter of Gram must be one of 'warn', 'raise', 'clip', 'shift'"):
        Gram(SHARP, psd="flip").fit(laws(0, 2))


def test_a_missing_length_is_answered_with_one() -> None:
    fit_each = FitEach(HMMEstimator(2, max_iter=2, tol=0)).fit(["abab", "aabbab", "b" * 30])
    assert fit_each.median_length_ == 6
    with pytest.raises(ValueError, match=r"about 10.*FitEach's median_length_.*'stop'"):
        Gram(ProbabilityProduct()).fit(fit_each.transform(["abab", "bb"]))
