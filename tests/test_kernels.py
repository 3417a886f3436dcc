"""The algebra of kernels: values, logs, diagonals, operators, parameters, and the properties of each of them."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import oracles_affinity as oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVC

from genkern.data.representations import Representations
from genkern.kernels import (
    RBF,
    Constant,
    Diffusion,
    EmpiricalMean,
    Hellinger,
    Kernel,
    Laplace,
    LatentMean,
    Linear,
    LocalAlignment,
    MeanMap,
    Normalized,
    On,
    Polynomial,
    ProbabilityProduct,
    SetBhattacharyya,
    Sum,
    SymmetricKL,
)
from genkern.kernels.models import ModelKernel
from genkern.models.families.categorical import Categorical
from genkern.models.families.gaussian import Gaussian
from genkern.models.hmm.model import HMM
from genkern.models.posterior import Posterior

PRODUCT, MEAN = ProbabilityProduct(rho=0.5, length=4), MeanMap(lam=0.7, length=3)
MODEL_KERNELS = [
    PRODUCT,
    ProbabilityProduct(rho=1.0, length=4).normalized(),
    MEAN,
    MEAN.normalized().exp(0.5),
    Hellinger(2.0, length=3),
    0.5 * PRODUCT.normalized() + MEAN**2,
    (PRODUCT + 1.0) * MEAN.normalized(),
]
VECTOR_KERNELS = [
    Linear(),
    Polynomial(degree=3, offset=0.5),
    RBF(gamma=0.3),
    Laplace(0.4),
    Linear().normalized(),
    Polynomial().normalized(),
    Linear().exp(0.1),
    RBF(0.2) * Linear() + 2.0,
    (RBF(0.2) + 1) ** 2,
    RBF(0.5).normalized() * 3,
]
LATENT = LatentMean(lam_x=0.7, lam_q=1.5)
POSTERIOR_KERNELS = [LATENT, LATENT.normalized(), LATENT.exp(0.5), LatentMean(parts="observations") * 2.0 + LATENT**2]
EMPIRICAL = EmpiricalMean(order=2, lam=0.7)
SEQUENCE_KERNELS = [EMPIRICAL, EMPIRICAL.normalized(), EMPIRICAL.exp(0.5), EmpiricalMean(order=6) * 2.0 + EMPIRICAL**2]
ALIGNMENT = LocalAlignment(0.7, [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]], 2.0, 0.5, "abc")
ALIGNMENT_KERNELS = [ALIGNMENT, ALIGNMENT.normalized(), ALIGNMENT.normalized().exp(0.5), ALIGNMENT * 2.0 + ALIGNMENT**2]
SYMBOL_KERNELS = [Diffusion(0.7, "geodesic"), Diffusion(2.0, "sphere"), Diffusion(0.7, "geodesic") + 1.0]
SET_KERNELS = [SetBhattacharyya(RBF(0.3)), SetBhattacharyya(Linear(), eta=0.5) * 2.0]
VIEW_KERNELS = [
    On("models", PRODUCT),
    On("rows", Linear()).normalized(),
    On("rows", Linear().normalized()) + 2 * On("models", MEAN.normalized()) * On("rows", RBF(0.3)),
]
KERNELS = [
    *MODEL_KERNELS,
    *VECTOR_KERNELS,
    *POSTERIOR_KERNELS,
    *SEQUENCE_KERNELS,
    *ALIGNMENT_KERNELS,
    *SYMBOL_KERNELS,
    *SET_KERNELS,
    *VIEW_KERNELS,
]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def random_posterior(random: np.random.Generator, length: int) -> Posterior:
    weights = random.dirichlet(np.ones(2), length) / length
    return Posterior(random.normal(size=(length, 2)), weights, random.dirichlet(np.ones(4)))


def representations(kernel: Kernel, seed: int, n: int = 7) -> Any:
    random = rng(seed)
    if kernel.vectors:
        return random.normal(size=(n, 3))
    if kernel in POSTERIOR_KERNELS:
        return [random_posterior(random, int(length)) for length in random.integers(1, 20, n)]
    if kernel in SEQUENCE_KERNELS or kernel in ALIGNMENT_KERNELS:
        return ["".join(random.choice(list("abc"), length)) for length in random.integers(7, 20, n)]
    if kernel in SYMBOL_KERNELS:
        return Categorical(random.dirichlet(np.ones(4), n)).unstack()
    if kernel in SET_KERNELS:
        return [random.normal(size=(size, 3)) for size in random.integers(1, 6, n)]
    models = [oracle.random_hmm(random, int(states)) for states in random.integers(1, 4, n)]
    return Representations({"models": models, "rows": random.normal(size=(n, 3))}) if kernel in VIEW_KERNELS else models


def test_all_leaf_kernels_are_in_the_table() -> None:
    def leaves(cls: type) -> set[type]:
        below = set().union(*(leaves(child) for child in cls.__subclasses__()))
        return below | ({cls} if not cls.__name__.startswith("_") else set())

    def inside(kernel: Kernel) -> set[type]:
        return {type(kernel)}.union(*(inside(v) for v in kernel.get_params(False).values() if isinstance(v, Kernel)))

    ours = {cls for cls in leaves(Kernel) if cls.__module__.startswith("genkern.kernels.")} - {Kernel, ModelKernel}
    ours.remove(SymmetricKL)  # not positive semi-definite
    assert ours == set().union(*map(inside, KERNELS))


# --- properties of every kernel


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 10**6))
def test_matrices_are_symmetric_and_positive_semidefinite(kernel: Kernel, seed: int) -> None:
    X = representations(kernel, seed)
    K = kernel(X)
    assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K).min() >= -1e-10 * K.max()
    own = np.diagonal(K)
    assert (np.outer(own, own) * (1 + 1e-12) >= K**2).all()
    assert_allclose(kernel.diag(X), own, rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@settings(deadline=None, max_examples=5)
@given(seed=st.integers(0, 10**6))
def test_values_depend_on_nothing_but_the_pair(kernel: Kernel, seed: int) -> None:
    X, Y = representations(kernel, seed), representations(kernel, seed + 1, 4)
    K = kernel(X, Y)
    assert_allclose(kernel(X, X[:]), kernel(X), rtol=1e-10, atol=1e-12)
    assert_allclose(kernel(Y, X), K.T, rtol=1e-10, atol=1e-12)
    assert_allclose(
        [[kernel(X[i : i + 1], Y[j : j + 1])[0, 0] for j in range(4)] for i in range(7)], K, rtol=1e-10, atol=1e-12
    )
    order = rng(seed).permutation(7)
    shuffled = [X[i] for i in order] if isinstance(X, list) else X[order]
    assert_allclose(kernel(shuffled, Y), K[order], rtol=1e-10, atol=1e-12)
    assert_allclose(kernel(shuffled), kernel(X)[np.ix_(order, order)], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_logs_are_the_logs_of_values(kernel: Kernel) -> None:
    X, Y = representations(kernel, 0), representations(kernel, 1, 4)
    if kernel.signed:
        with pytest.raises(ValueError, match="may be negative, so it has no logarithm"):
            kernel.log(X)
        with pytest.raises(ValueError, match="may be negative"):
            kernel.log_diag(X)
        return
    for second in (None, Y):
        assert_allclose(np.exp(kernel.log(X, second)), kernel(X, second), rtol=1e-12)
    assert_allclose(np.exp(kernel.log_diag(X)), kernel.diag(X), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels_are_values(kernel: Kernel) -> None:
    copy = clone(kernel)
    assert copy == kernel
    assert copy is not kernel
    assert hash(copy) == hash(kernel)
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    numbers = {name: value for name, value in copy.get_params().items() if isinstance(value, int | float)}
    for name, value in numbers.items():
        assert clone(kernel).set_params(**{name: value + 1}) != kernel
    assert isinstance(kernel.formula, str)
    assert kernel.formula.count("{") == kernel.formula.count("}")


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_repr_is_the_expression(kernel: Kernel) -> None:
    assert eval(repr(kernel)) == kernel


@pytest.mark.parametrize("kernel", [k for k in KERNELS if isinstance(k, Normalized)], ids=repr)
def test_normalised_kernels_have_a_diagonal_of_ones(kernel: Kernel) -> None:
    X = representations(kernel, 3, 20)
    K = kernel(X)
    assert_array_equal(np.diagonal(K), np.ones(20))
    assert_array_equal(kernel.diag(X), np.ones(20))
    assert np.abs(K).max() <= 1.0
    assert np.abs(kernel(X, X[:])).max() <= 1.0


# --- what each of them computes


def test_operators_compute_what_they_say() -> None:
    X, Y = representations(Linear(), 0), representations(Linear(), 1, 4)
    a, b = Linear()(X, Y), RBF(0.2)(X, Y)
    assert_allclose((Linear() + RBF(0.2))(X, Y), a + b, rtol=1e-13)
    assert_allclose((Linear() * RBF(0.2))(X, Y), a * b, rtol=1e-13)
    assert_allclose((2 * Linear() + 3)(X, Y), 2 * a + 3, rtol=1e-13)
    assert_allclose((3 + Linear() * 2)(X, Y), 2 * a + 3, rtol=1e-13)
    assert_allclose((Linear() ** 3)(X, Y), a**3, rtol=1e-13)
    own, other = (X**2).sum(axis=1), (Y**2).sum(axis=1)
    assert_allclose(Linear().normalized()(X, Y), a / np.sqrt(np.outer(own, other)), rtol=1e-12)
    assert_allclose(Linear().exp(0.3)(X, Y), np.exp(-0.3 * (own[:, None] - 2 * a + other)), rtol=1e-12)


def test_operators_in_logs_compute_the_same() -> None:
    X, Y = representations(PRODUCT, 0), representations(PRODUCT, 1, 4)
    a, b = PRODUCT(X, Y), MEAN(X, Y)
    assert_allclose((2 * PRODUCT + MEAN**2 * PRODUCT + 0.5)(X, Y), 2 * a + b**2 * a + 0.5, rtol=1e-12)
    scale = np.sqrt(np.outer(PRODUCT.diag(X), PRODUCT.diag(Y)))
    assert_allclose(PRODUCT.normalized()(X, Y), a / scale, rtol=1e-12)
    assert_allclose((0 * PRODUCT)(X, Y), np.zeros_like(a), atol=0)


def test_vector_kernels_equal_scikit_learns() -> None:
    X, Y = representations(Linear(), 0), representations(Linear(), 1, 4)
    assert_allclose(Linear()(X, Y), X @ Y.T, rtol=1e-13, atol=1e-14)
    assert_allclose(RBF(0.7)(X, Y), rbf_kernel(X, Y, gamma=0.7), rtol=1e-12)
    expected = polynomial_kernel(X, Y, degree=3, gamma=1.0, coef0=0.5)
    assert_allclose(Polynomial(degree=3, offset=0.5)(X, Y), expected, rtol=1e-12)


def test_rbf_is_the_mean_map_of_point_masses() -> None:
    X = rng().normal(size=(5, 3))
    assert_allclose(RBF(0.35)(X), MeanMap(lam=0.7)(Gaussian(X, 0.0)), rtol=1e-12)


def test_model_kernels_are_exponentials_of_affinities() -> None:
    p, q = Categorical([0.5, 0.5]), Categorical([[0.9, 0.1], [0.5, 0.5]])
    assert_allclose(ProbabilityProduct(0.5)([p], q), [[math.sqrt(0.45) + math.sqrt(0.05), 1.0]], rtol=1e-13)
    assert_allclose(MeanMap(2.0)([p], q), np.full((1, 2), 0.5 + 0.5 * math.exp(-2)), rtol=1e-13)


def test_sparse_matrices_give_the_same() -> None:
    X, Y = sparse.random(6, 9, 0.4, random_state=0, format="csr"), rng().normal(size=(4, 9))
    for kernel in (Linear(), Polynomial(), Linear().normalized(), 2 * Linear() + Polynomial()):
        dense = kernel(X.toarray())
        assert_allclose(kernel(X), dense, rtol=1e-12, atol=1e-14)
        assert_allclose(kernel.diag(sparse.csc_array(X)), np.diagonal(dense), rtol=1e-12)
        assert_allclose(kernel(X, Y), kernel(X.toarray(), Y), rtol=1e-12, atol=1e-14)
        assert_allclose(kernel(Y, X), kernel(Y, X.toarray()), rtol=1e-12, atol=1e-14)
    with pytest.raises(TypeError, match="RBF needs a dense matrix"):
        RBF()(X)


def test_far_away_points_keep_exact_symmetry_and_diagonal() -> None:
    X = 1e6 + rng().normal(size=(50, 4))
    K = RBF(1.0)(X)
    assert_array_equal(K, K.T)
    assert_array_equal(np.diagonal(K), np.ones(50))
    assert K.max() <= 1.0


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6, 1e8])
def test_offsets_cost_no_digits(offset: float) -> None:
    X, Y = offset + rng(0).normal(size=(40, 4)), offset + rng(1).normal(size=(30, 4))
    X[1] = X[0] + 1e-3  # a pair that is close even beside the others
    for gamma in (0.1, 1.0, 300.0):
        for second in (None, Y, X[:]):
            K, logs = RBF(gamma)(X, second), RBF(gamma).log(X, second)
            squares = ((X[:, None] - (X if second is None else second)) ** 2).sum(axis=2)
            assert_allclose(K, np.exp(-gamma * squares), rtol=0, atol=1e-12)
            assert_allclose(logs, -gamma * squares, rtol=1e-11)
    assert_allclose(RBF(300.0)(X[:1], X[1:2]), RBF(300.0)(X)[:1, 1:2], rtol=1e-12)


def test_clusters_far_apart_keep_their_digits() -> None:
    # No single origin suits both, so that pairs within each are computed from differences.
    X = np.r_[1e6 + rng(0).normal(size=(20, 3)), -1e6 + rng(1).normal(size=(300, 3))]
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    for gamma in (0.5, 1e5):  # the second is so sharp that products alone would lose values
        K = RBF(gamma)(X)
        assert_allclose(K, np.exp(-gamma * squares), rtol=0, atol=1e-12)
        assert_allclose(RBF(gamma)(X[:25], X[10:]), K[:25, 10:], rtol=0, atol=1e-12)
        assert_array_equal(K, K.T)
        assert_array_equal(np.diagonal(K), np.ones(320))


def test_vectors_whose_squares_overflow_are_compared_all_the_same() -> None:
    X = np.array([[1e200, 0.0], [1e200, 0.0], [0.0, 1.0], [0.0, 2.0]])
    expected = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, math.exp(-1)], [0, 0, math.exp(-1), 1]])
    assert_allclose(RBF(1.0)(X), expected, rtol=1e-12)
    assert_allclose(RBF(1.0)(X, X[:3]), expected[:, :3], rtol=1e-12)


def wide_rows(seed: int, n: int, words: Any) -> tuple[Any, list[dict[int, float]]]:
    """Sparse rows over 20**9 columns, of some of the words, and the same as dicts."""
    random = rng(seed)
    rows = [dict(zip(random.choice(words, 30, replace=False).tolist(), random.normal(size=30))) for _ in range(n)]
    columns = np.array([column for row in rows for column in row], dtype=np.int64)
    values = [value for row in rows for value in row.values()]
    return sparse.csr_matrix((values, columns, np.arange(n + 1) * 30), shape=(n, 20**9)), rows


def test_sparse_matrices_may_have_any_number_of_columns() -> None:
    words = rng().integers(0, 20**9, 400)
    (X, left), (Y, right) = wide_rows(1, 12, words), wide_rows(2, 7, words)
    products = np.array([[sum(a[word] * b[word] for word in a.keys() & b.keys()) for b in right] for a in left])
    own = np.array([sum(value**2 for value in row.values()) for row in left])
    assert_allclose(Linear()(X, Y), products, rtol=1e-12, atol=1e-13)
    assert_allclose(Linear().diag(X), own, rtol=1e-12)
    assert_allclose(np.diagonal(Linear()(X)), own, rtol=1e-12)
    assert_array_equal(Linear()(X), Linear()(X).T)
    assert_allclose(Polynomial(3, 0.5)(X, Y), (products + 0.5) ** 3, rtol=1e-11, atol=1e-12)
    assert_allclose(Linear().normalized()(X), Linear()(X) / np.sqrt(np.outer(own, own)), rtol=1e-12, atol=1e-14)


# --- formulas


@pytest.mark.parametrize(
    ("kernel", "formula"),
    [
        (
            Linear().exp(1.0) + RBF(1.0),
            r"\exp\left(-\left(\langle x, x \rangle + \langle y, y \rangle - 2 \langle x, y \rangle\right)\right)"
            r" + \exp(-\|x - y\|^2)",
        ),
        (
            (Linear() + RBF(1.0)).exp(0.5),
            r"\exp\left(-0.5\, \left(\langle x, x \rangle + 1 + \langle y, y \rangle + 1"
            r" - 2 \left(\langle x, y \rangle + \exp(-\|x - y\|^2)\right)\right)\right)",
        ),
        (RBF(0.5).normalized().exp(3), r"\exp\left(-3\, \left(2 - 2 \exp(-0.5\, \|x - y\|^2)\right)\right)"),
        (ProbabilityProduct(1 / 3, 5), r"\int p(x_{1:5})^{0.333333}\, q(x_{1:5})^{0.333333}\, dx_{1:5}"),
        (ProbabilityProduct() * 2, r"2\, \int p(x)\, q(x)\, dx"),
        (
            2 * (ProbabilityProduct() * 3 + 1) * ProbabilityProduct(2.0),
            r"2\, \left(3\, \int p(x)\, q(x)\, dx + 1\right) \cdot \int p(x)^{2}\, q(x)^{2}\, dx",
        ),
        (
            ProbabilityProduct() * MeanMap(3.0) * 2,
            r"2\, \left(\int p(x)\, q(x)\, dx\right) \cdot "
            r"E_{X \sim p,\, Y \sim q} \left[\exp(-1.5\, \|X - Y\|^2)\right]",
        ),
        (2 * MeanMap(2.0), r"2\, E_{X \sim p,\, Y \sim q} \left[\exp(-\|X - Y\|^2)\right]"),
        (
            Linear().normalized(),
            r"\frac{\langle x, y \rangle}{\sqrt{\langle x, x \rangle}\, \sqrt{\langle y, y \rangle}}",
        ),
        (2 * Linear() * 3 + 1e-7, r"6\, \langle x, y \rangle + 10^{-7}"),
        ((2 * RBF(1.0)).exp(1.0), r"\exp\left(-\left(2 + 2 - 2 \left(2\, \exp(-\|x - y\|^2)\right)\right)\right)"),
        ((Polynomial(2, 0.5) + 1) ** 3, r"\left((\langle x, y \rangle + 0.5)^{2} + 1\right)^{3}"),
        (
            On("my_rows", Linear() + 1) * 2,
            r"2\, \left(\langle x^{(\mathrm{my\_rows})}, y^{(\mathrm{my\_rows})} \rangle + 1\right)",
        ),
    ],
    ids=repr,
)
def test_formulas_say_what_is_computed(kernel: Kernel, formula: str) -> None:
    assert kernel.formula == formula


@pytest.mark.parametrize("kernel", [*KERNELS, SymmetricKL(), Diffusion()], ids=repr)
def test_formulas_can_be_parts_of_others(kernel: Kernel) -> None:
    for whole in (kernel, 2 * kernel, kernel * 2, kernel.exp(0.5) + 1, kernel.normalized() ** 2):
        assert "quad" not in whole.formula
        assert whole.formula.count(r"\left") == whole.formula.count(r"\right")
    assert (2 * kernel).formula == (kernel * 2).formula
    # Twice a sum is in brackets, or it would be twice its first term.
    if isinstance(kernel, Sum) or kernel == LATENT:
        assert (2 * kernel).formula == rf"2\, \left({kernel.formula}\right)"


def test_kernels_from_elsewhere_need_no_more_than_a_formula() -> None:
    class Foreign(Linear):
        formula = "f(x, y)"  # type: ignore[assignment]
        _written = Kernel._written

    assert (Foreign() + 1).formula == "f(x, y) + 1"
    assert r"\left.f(x, y)\right|_{x = x,\, y = x}" in Foreign().exp(1.0).formula

    class Wordless(Linear):
        _written = Kernel._written

    assert Wordless().formula == r"\mathrm{Wordless}(x, y)"
    assert (Wordless() + 1).formula == r"\mathrm{Wordless}(x, y) + 1"


# --- parameters


def test_parameters_are_nested_and_settable() -> None:
    kernel = 0.5 * ProbabilityProduct(length=4).normalized() + MeanMap()
    assert kernel.get_params()["left__right__kernel__rho"] == 1.0
    kernel.set_params(left__left__value=2.0, left__right__kernel__rho=0.5, right__lam=3.0)
    assert kernel == 2.0 * ProbabilityProduct(0.5, length=4).normalized() + MeanMap(3.0)
    assert isinstance(kernel, Sum)
    assert repr(kernel) == "2 * ProbabilityProduct(length=4, rho=0.5).normalized() + MeanMap(lam=3.0)"


def test_different_kernels_differ() -> None:
    assert len({RBF(1.0), RBF(2.0), Linear(), Constant(1.0), RBF(1.0), RBF(1.0) + Linear(), Linear() + RBF(1.0)}) == 6
    assert Linear() != "linear"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: -1.0 * Linear(), "'value' parameter of Constant must be a finite number >= 0"),
        (lambda: Linear() + math.inf, "'value' parameter of Constant"),
        (lambda: Linear() ** 0.5, "'exponent' parameter of Kernel must be an int >= 1"),
        (lambda: Linear().exp(0.0), "'nu' parameter of Kernel.exp must be a finite number > 0"),
        (lambda: RBF(-1.0)([[0.0]]), "'gamma' parameter of RBF"),
        (lambda: Polynomial(degree=1.5)([[0.0]]), "'degree' parameter of Polynomial"),  # type: ignore[arg-type]
        (lambda: Polynomial(offset=-1.0)([[0.0]]), "'offset' parameter of Polynomial"),
        (lambda: ProbabilityProduct(rho=0.0)([Categorical([1.0])]), "'rho' parameter of Power"),
        (lambda: Linear()([[0.0]], [[0.0, 1.0]]), "Linear: X and Y must have the same number of columns. Got 1 and 2"),
        (lambda: Linear()([0.0, 1.0]), "Linear: 'X' must have 2 dimensions"),
        (lambda: RBF()([[math.nan]]), "RBF: 'X' must be finite"),
        (lambda: MeanMap()(Categorical([0.5, 0.5])), "MeanMap: expected a list of models"),
    ],
)
def test_bad_parameters_and_inputs_raise(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_only_kernels_and_numbers_combine() -> None:
    for combine in (lambda: Linear() + "x", lambda: "x" + Linear(), lambda: Linear() * [1], lambda: True * Linear()):
        with pytest.raises(TypeError):
            combine()


def test_models_are_expected_by_model_kernels() -> None:
    with pytest.raises(TypeError, match=r"MeanMap: a list must hold models\. Got str at index 0; FitEach"):
        MeanMap()(["acgt"])
    with pytest.raises(TypeError, match="Linear: 'X' must be an array of numbers"):
        Linear()([Categorical([1.0])])


# --- edges


def test_underflow_raises_and_names_the_remedy() -> None:
    X, Y = representations(PRODUCT, 0), representations(PRODUCT, 1)
    kernel = ProbabilityProduct(length=3000)
    for compute in (lambda: kernel(X), lambda: kernel(X, Y), lambda: kernel.diag(X), lambda: kernel.exp(1.0)(X)):
        with pytest.raises(ValueError, match=r"ProbabilityProduct\(length=3000\).*range of floating point.*normalized"):
            compute()
    assert np.isfinite(kernel.log(X, Y)).all()
    assert_array_equal(np.diagonal(kernel.normalized()(X)), np.ones(7))


def test_overflow_raises() -> None:
    with pytest.raises(ValueError, match="range of floating point"):
        ProbabilityProduct(length=1000)([Gaussian(0.0, 1e-4)])


def test_cosines_of_powers_do_not_overflow() -> None:
    X, Y = 1e3 * representations(Linear(), 0), 1e3 * representations(Linear(), 1, 4)
    own, other = (X**2).sum(axis=1) + 1, (Y**2).sum(axis=1) + 1
    cosines = (X @ Y.T + 1) / np.sqrt(np.outer(own, other))
    for kernel in (Polynomial(200, 1.0), (Linear() + 1) ** 200):
        assert_allclose(kernel.normalized()(X, Y), cosines**200, rtol=1e-10, atol=1e-300)
        assert_array_equal(np.diagonal(kernel.normalized()(X)), np.ones(7))
    assert_allclose(Polynomial(200, 0.0).normalized()(1e-6 * X), Polynomial(200, 0.0).normalized()(X), rtol=1e-10)


@pytest.mark.parametrize(
    "kernel",
    [
        Polynomial(200, 1.0),
        Linear() ** 200,
        Polynomial(40) * Polynomial(40),
        Polynomial(50) + 1e308 * Linear(),
        (1e306 * Linear()).normalized(),
        Polynomial(200).exp(1.0),
        (1e302 * Linear()).exp(1.0),
        On("rows", Polynomial(200)),
    ],
    ids=repr,
)
def test_overflow_of_vector_kernels_raises(kernel: Kernel) -> None:
    X, Y = 1e3 * representations(Linear(), 0), 1e3 * representations(Linear(), 1, 4)
    views = isinstance(kernel, On)
    first, second = ({"rows": X}, {"rows": Y}) if views else (X, Y)
    computations = [lambda: kernel(first), lambda: kernel(first, second)]
    if not isinstance(kernel, Normalized) and ".exp" not in repr(kernel):  # their diagonals are ones
        computations.append(lambda: kernel.diag(first))
    for compute in computations:
        with pytest.raises(ValueError, match=r"values leave the range of floating point.*Scale X down"):
            compute()


def test_distances_below_zero_by_rounding_are_zero() -> None:
    X = 1e6 * rng().normal(size=(50, 5))
    K = Linear().exp(1e4)(X, X[:])
    own, products = (X**2).sum(axis=1), X @ X.T
    assert ((own[:, None] + own) - 2 * products).min() < 0  # what is seen without care
    assert K.max() <= 1.0
    assert Linear().exp(1e4).log(X, X[:]).max() <= 0.0


def test_disjoint_supports_are_zero_and_no_underflow() -> None:
    models = Categorical([[1.0, 0.0], [0.0, 1.0]])
    for kernel in (ProbabilityProduct(0.5), ProbabilityProduct(0.5).normalized()):
        assert_array_equal(kernel(models), np.eye(2))
        assert_array_equal(kernel([models[0]], [models[1]]), [[0.0]])


def test_zero_vectors_get_zero_rows_and_a_unit_diagonal() -> None:
    X = np.array([[1.0, 1.0], [0.0, 0.0], [1.0, 0.0]])
    kernel = Linear().normalized()
    with pytest.warns(UserWarning, match=r"1 of 3 objects have zero similarity to themselves \(first at index 1\)"):
        K = kernel(X)
    assert_allclose(K, [[1, 0, math.sqrt(0.5)], [0, 1, 0], [math.sqrt(0.5), 0, 1]], rtol=1e-15)
    with pytest.warns(UserWarning, match="zero similarity"):
        assert_array_equal(kernel(X, X[1:2]), np.zeros((3, 1)))


def test_models_that_cannot_have_the_length_get_zero_rows() -> None:
    # The first model needs two observations to reach the state in which it may stop.
    emissions = Categorical([[0.5, 0.5], [0.5, 0.5]])
    slow = HMM([1.0, 0.0], [[0.0, 1.0], [0.0, 0.5]], emissions, stop=[0.0, 0.5])
    fast = HMM([0.0, 1.0], [[0.0, 1.0], [0.0, 0.5]], emissions, stop=[0.0, 0.5])
    with pytest.warns(UserWarning, match="zero similarity to themselves"):
        assert_array_equal(ProbabilityProduct(length=1).normalized()([slow, fast]), np.eye(2))


def test_kernels_are_callables_for_svc() -> None:
    X = rng().normal(size=(40, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    ours = SVC(kernel=RBF(0.5) + 0.0).fit(X, y)
    theirs = SVC(kernel="rbf", gamma=0.5).fit(X, y)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-6, atol=1e-8)
    assert clone(ours).kernel == ours.kernel
