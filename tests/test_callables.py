"""Kernels as callables of scikit-learn, and as covariances of its Gaussian processes, against its own kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.decomposition import KernelPCA
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process import kernels as theirs
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC, SVR, OneClassSVM

from genkern import (
    RBF,
    EmpiricalMean,
    Gaussian,
    GaussianProcessKernel,
    Linear,
    MeanMap,
    Polynomial,
    ProbabilityProduct,
)

rng = np.random.default_rng(0)
X, NEW = rng.normal(size=(40, 3)), rng.normal(size=(7, 3))
Y = np.sin(X[:, 0]) + X[:, 1]
LABELS = (X[:, 0] > 0).astype(int)
KERNELS = [
    RBF(0.5),
    Linear(),
    Polynomial(3),
    2 * RBF(0.5) + Linear(),
    (Linear() + 1.0).normalized(),
    RBF(0.5) ** 2,
    RBF(0.3).exp(2.0),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_two_rows_have_one_value(kernel: Any) -> None:
    table = kernel(X[:6], X[6:9])
    pairs = [[kernel(x, y) for y in X[6:9]] for x in X[:6]]
    assert all(np.ndim(value) == 0 for row in pairs for value in row)
    np.testing.assert_allclose(pairs, table, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose([kernel(x, x) for x in X[:6]], kernel.diag(X[:6]), rtol=1e-13)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_pairwise_kernels_asks_once(kernel: Any) -> None:
    np.testing.assert_array_equal(pairwise_kernels(X, metric=kernel), kernel(X))
    np.testing.assert_array_equal(pairwise_kernels(X, NEW, metric=kernel), kernel(X, NEW))
    if kernel.accepts_sparse:
        table = pairwise_kernels(sparse.csr_array(X), metric=kernel)
        np.testing.assert_allclose(table, kernel(X), rtol=1e-12, atol=1e-12)


def test_learners_of_scikit_learn_take_kernels() -> None:
    """Each with its own Gaussian kernel beside it."""

    def both(make: Any, *args: Any, name: str = "kernel") -> tuple[Any, Any]:
        return tuple(make(**{name: k}, **g).fit(X, *args) for k, g in ((RBF(0.5), {}), ("rbf", {"gamma": 0.5})))

    close = np.testing.assert_allclose
    ours, other = both(KernelPCA)
    close(np.abs(ours.transform(NEW)[:, :3]), np.abs(other.transform(NEW)[:, :3]), rtol=1e-6)
    for make in (KernelRidge, SVR):
        ours, other = both(make, Y)
        close(ours.predict(NEW), other.predict(NEW), rtol=1e-8)
    ours, other = both(SVC, LABELS)
    close(ours.decision_function(NEW), other.decision_function(NEW), rtol=1e-8)
    ours, other = both(OneClassSVM)
    close(ours.score_samples(NEW), other.score_samples(NEW), rtol=1e-8)
    ours, other = both(lambda **k: Nystroem(n_components=5, random_state=0, **k))
    close(ours.transform(NEW), other.transform(NEW), atol=1e-8)
    ours, other = both(lambda **k: SpectralClustering(2, random_state=0, **k), name="affinity")
    np.testing.assert_array_equal(ours.labels_, other.labels_)


def test_gradients_are_those_of_scikit_learn() -> None:
    ours, other = GaussianProcessKernel(2 * RBF(0.5)), theirs.ConstantKernel(2.0) * theirs.RBF(1.0)
    np.testing.assert_allclose(ours.theta, np.log([2.0, 0.5]))
    K, slopes = ours(X, eval_gradient=True)
    K_, slopes_ = other(X, eval_gradient=True)
    np.testing.assert_allclose(K, K_, rtol=1e-12)
    np.testing.assert_allclose(slopes[..., 0], slopes_[..., 0], atol=1e-9)
    np.testing.assert_allclose(slopes[..., 1], -slopes_[..., 1] / 2, atol=1e-9)  # gamma is 1 / (2 length^2)
    np.testing.assert_allclose(ours(X, NEW), other(X, NEW), rtol=1e-12)
    np.testing.assert_allclose(ours.diag(X), other.diag(X), rtol=1e-12)


def test_a_process_finds_the_numbers_that_scikit_learns_finds() -> None:
    noisy = Y + 0.1 * np.random.default_rng(1).normal(size=len(Y))
    ours = GaussianProcessRegressor(GaussianProcessKernel(1.0 * RBF(0.5)), alpha=0.01).fit(X, noisy)
    other = GaussianProcessRegressor(theirs.ConstantKernel() * theirs.RBF(), alpha=0.01).fit(X, noisy)
    np.testing.assert_allclose(ours.log_marginal_likelihood_value_, other.log_marginal_likelihood_value_, rtol=1e-6)
    factor, gamma = np.exp(ours.kernel_.theta)
    np.testing.assert_allclose(
        [factor, gamma], [other.kernel_.k1.constant_value, other.kernel_.k2.length_scale**-2 / 2], rtol=1e-2
    )
    mean, deviation = ours.predict(NEW, return_std=True)
    mean_, deviation_ = other.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, mean_, atol=1e-3)
    np.testing.assert_allclose(deviation, deviation_, atol=1e-3)
    classes = GaussianProcessClassifier(GaussianProcessKernel(RBF(0.5))).fit(X, LABELS)
    assert classes.score(X, LABELS) > 0.95


def test_the_wrapper_keeps_to_the_protocol() -> None:
    kernel = GaussianProcessKernel(2 * RBF(0.5) + ProbabilityProduct(rho=0.5, length=3), {"left__left__value": "fixed"})
    assert [h.name for h in kernel.hyperparameters] == ["left__left__value", "left__right__gamma", "right__rho"]
    np.testing.assert_allclose(kernel.theta, np.log([0.5, 0.5]))
    np.testing.assert_allclose(kernel.bounds, np.log([[1e-5, 1e5]] * 2))
    moved = kernel.clone_with_theta(np.log([1.0, 4.0]))
    assert moved.kernel == 2 * RBF(1.0) + ProbabilityProduct(rho=4.0, length=3)
    assert kernel.kernel == 2 * RBF(0.5) + ProbabilityProduct(rho=0.5, length=3)
    np.testing.assert_allclose(moved.theta, np.log([1.0, 4.0]))
    assert clone(kernel) == kernel
    assert kernel != moved
    assert kernel.set_params(kernel__left__right__gamma=7.0).kernel.left.right.gamma == 7.0
    assert repr(GaussianProcessKernel(RBF(0.5))) == "GaussianProcessKernel(RBF(gamma=0.5))"
    assert not kernel.is_stationary()
    assert GaussianProcessKernel(Linear())(X, eval_gradient=True)[1].shape == (40, 40, 0)


def test_processes_over_models_and_sequences() -> None:
    means = rng.normal(size=25)
    models = [Gaussian(mean, 1.0) for mean in means]
    for kernel in (ProbabilityProduct(0.5).normalized(), 1.0 * MeanMap(2.0)):
        process = GaussianProcessRegressor(GaussianProcessKernel(kernel), alpha=1e-4).fit(models, np.sin(means))
        np.testing.assert_allclose(process.predict([Gaussian(0.3, 1.0)]), np.sin(0.3), atol=0.02)
    words = np.array(["abab", "baba", "aabb", "bbaa"] * 4, dtype=object)
    process = GaussianProcessClassifier(GaussianProcessKernel(EmpiricalMean(1, 1.0))).fit(words, [0, 0, 1, 1] * 4)
    assert process.predict(["babab", "bbbaaa"]).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: GaussianProcessRegressor(RBF(0.5)).fit(X, Y),
            AttributeError,
            r"wrap .*GaussianProcessKernel\(RBF\(gam",
        ),
        (lambda: SVC(kernel=ProbabilityProduct()).fit(X, LABELS), TypeError, "ProbabilityProduct"),
        (lambda: GaussianProcessKernel("rbf").theta, TypeError, "must be a Kernel such as RBF"),
        (lambda: GaussianProcessKernel(RBF(), {"lam": (1, 2)}).theta, ValueError, "names 'lam'.* are 'gamma'"),
        (lambda: GaussianProcessKernel(RBF(), (2, 1)).theta, ValueError, r"must be \(low, high\)"),
        (lambda: GaussianProcessKernel(RBF())(X, X, eval_gradient=True), ValueError, "X with itself"),
    ],
)
def test_mistakes(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
