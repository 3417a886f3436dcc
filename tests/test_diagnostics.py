"""Diagnostics of kernel matrices: figures against their definitions, and what is said about trouble."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from genkern import RBF, Categorical, Gaussian, Gram, Linear, MarkovChain, MeanMap, ProbabilityProduct, diagnostics
from genkern.kernels import NotPositiveWarning, SymmetricKL

FIGURES = ("smallest_eigenvalue", "largest_eigenvalue", "effective_rank", "mean_diagonal", "mean_off_diagonal", "zeros")


def random_matrix(seed: int, n: int, rank: int) -> Any:
    points = np.random.default_rng(seed).normal(size=(n, rank))
    return points @ points.T


def aligned(K: Any, y: Any) -> float:
    """The cosine of centred matrices, each made by the centring matrix."""
    centre = np.eye(len(K)) - 1.0 / len(K)
    same = np.array([[float(a == b) for b in y] for a in y])
    first, second = centre @ K @ centre, centre @ same @ centre
    return float((first * second).sum() / np.sqrt((first**2).sum() * (second**2).sum()))


def chains(n: int) -> list[MarkovChain]:
    stays = np.random.default_rng(0).uniform(0.3, 0.7, (n, 2))
    return [MarkovChain([0.5, 0.5], [[a, 1 - a], [1 - b, b]]) for a, b in stays]


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000), st.integers(2, 8), st.integers(1, 8), st.integers(2, 3))
def test_figures_are_what_they_are_defined_to_be(seed: int, n: int, rank: int, classes: int) -> None:
    K = random_matrix(seed, n, rank)
    y = np.arange(n) % classes
    found = diagnostics(K, y)
    sizes = np.linalg.svd(K, compute_uv=False)
    shares = sizes[sizes > 1e-14 * sizes[0]] / sizes.sum()
    values = np.linalg.eigvals(K).real
    others = [abs(K[i, j]) for i, j in itertools.permutations(range(n), 2)]
    assert found.n_objects == n
    assert found.smallest_eigenvalue == pytest.approx(values.min(), abs=1e-9)
    assert found.largest_eigenvalue == pytest.approx(values.max(), rel=1e-9)
    assert found.relative_eigenvalue == pytest.approx(values.min() / values.max(), abs=1e-9)
    assert found.effective_rank == pytest.approx(np.prod(shares**-shares), rel=1e-9)
    assert found.mean_off_diagonal == pytest.approx(np.mean(others), rel=1e-9)
    assert found.dominance == pytest.approx(np.mean(np.diag(K)) / np.mean(others), rel=1e-9)
    unit = np.abs(K) / np.sqrt(np.outer(np.diag(K), np.diag(K)))
    assert found.nearest == pytest.approx(np.median([np.delete(unit[i], i).max() for i in range(n)]), rel=1e-9)
    assert found.alignment == pytest.approx(aligned(K, y), abs=1e-9)


@pytest.mark.parametrize("labels", [[0, 0, 0, 1, 1], [0, 1, 2, 2, 1]])
def test_chance_is_the_mean_over_all_orders_of_the_labels(labels: list[int]) -> None:
    K = random_matrix(3, 5, 3)
    shuffled = np.mean([aligned(K, order) for order in itertools.permutations(labels)])
    assert diagnostics(K, labels).chance == pytest.approx(shuffled, rel=1e-10)


def test_extremes() -> None:
    identity, constant, zero = (diagnostics(K, [0, 0, 1, 1]) for K in (np.eye(4), np.ones((4, 4)), np.zeros((4, 4))))
    assert_allclose([getattr(identity, name) for name in FIGURES], [1, 1, 4, 1, 0, 1], rtol=1e-12)
    assert identity.dominance == np.inf
    assert identity.alignment == pytest.approx(identity.chance)
    assert_allclose([getattr(constant, name) for name in FIGURES], [0, 4, 1, 1, 1, 0], rtol=1e-7, atol=1e-12)
    assert (constant.alignment, constant.chance) == (0.0, 0.0)
    assert [getattr(zero, name) for name in FIGURES] == [0, 0, 0, 0, 0, 1]
    assert zero.relative_eigenvalue == 0.0
    assert not any("semi-definite" in finding for finding in zero.findings)
    same = diagnostics(np.kron(np.eye(2), np.ones((2, 2))), ["a", "a", "b", "b"])
    assert same.alignment == pytest.approx(1.0)
    assert same.zeros == pytest.approx(8 / 12)


def test_a_healthy_matrix_is_left_in_peace() -> None:
    X = np.random.default_rng(0).normal(size=(30, 2)) + np.repeat([[0.0], [3.0]], 15, axis=0)
    found = diagnostics(Gram(RBF(0.3)).fit_transform(X), np.repeat(["a", "b"], 15))
    assert found.findings == ()
    assert str(found).startswith("kernel matrix of 30 objects\n  smallest eigenvalue")
    assert "alignment with labels" in str(found)
    assert "alignment" not in str(diagnostics(np.eye(3) + 0.5))


def test_long_sequences_make_the_identity_and_the_remedy_is_named() -> None:
    models, kernel = chains(8), ProbabilityProduct(0.5, length=20_000).normalized()
    found = diagnostics(Gram(kernel).fit_transform(models), kernel=kernel)
    finding = found.findings[0]
    assert "unlike every other; lower kernel__length=20000 or kernel__rho=0.5" in finding
    assert f"! {finding}" in repr(found)
    short = kernel.set_params(kernel__length=20)
    assert diagnostics(Gram(short).fit_transform(models), kernel=short).findings == ()
    (general,) = diagnostics(np.eye(3)).findings
    assert "lower length, rho or lam" in general


def test_blunt_kernels_see_all_objects_as_alike() -> None:
    kernel = MeanMap(1e-6, length=5).normalized()
    (finding,) = diagnostics(Gram(kernel).fit_transform(chains(8)), kernel=kernel).findings
    assert "all objects are alike; raise kernel__lam=1e-06 or kernel__length=5" in finding


def test_unequal_self_similarities_and_underflow_ask_for_normalisation() -> None:
    models = [Gaussian(0.0, variance) for variance in (1.0, 1e-3, 1e-6, 1e-9)]
    K = Gram(ProbabilityProduct(1.0, length=60)).fit_transform(models)
    findings = " ".join(diagnostics(K).findings)
    assert "differ by a factor of" in findings
    assert "kernel.normalized()" in findings
    logs = -np.abs(np.subtract.outer(range(9), range(9))) * 200.0
    found = diagnostics(np.exp(logs))
    assert found.zeros == pytest.approx(np.mean(logs[logs < 0] < -746))
    assert any("underflow to zero" in finding for finding in found.findings)


def test_dead_objects_are_counted() -> None:
    K = np.full((4, 4), 0.5) + 0.5 * np.eye(4)
    K[2] = K[:, 2] = 0.0
    assert diagnostics(K).findings == (
        "1 objects have no similarity to themselves (first at index 2): they are like nothing; leave them out.",
    )


def test_indefinite_matrices_are_told_with_their_cause() -> None:
    found = diagnostics([[1.0, 2.0], [2.0, 1.0]])
    assert found.relative_eigenvalue == pytest.approx(-1 / 3)
    assert "not positive semi-definite: its smallest eigenvalue is -1" in found.findings[0]
    assert "SymmetricKL" in found.findings[0]
    laws = [Categorical(probs) for probs in np.random.default_rng(0).dirichlet(np.full(3, 0.3), 20)]
    kernel = SymmetricKL(0.3) + 0.1
    with pytest.warns(NotPositiveWarning):
        K = kernel(laws)
    (finding,) = diagnostics(K, kernel=kernel).findings
    assert "SymmetricKL(a=0.3) is not positive semi-definite in general; Hellinger(t) is." in finding
    assert "Gram(kernel, psd='clip')" in finding


def test_labels_that_the_kernel_does_not_see() -> None:
    K = np.kron(np.ones((2, 2)), [[1.0, 0.1], [0.1, 1.0]])
    assert diagnostics(K, [0, 1, 0, 1]).findings == ()
    found = diagnostics(K + np.eye(4), [0, 0, 1, 1])
    assert 0.0 < found.alignment < found.chance  # type: ignore[operator]
    assert "no better than by chance" in found.findings[0]


def test_it_is_a_frozen_value() -> None:
    found = diagnostics(np.eye(3) + 0.5, [0, 1, 1])
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(FrozenInstanceError):
        found.zeros = 0.5  # type: ignore[misc]


def test_bad_input_raises() -> None:
    with pytest.raises(ValueError, match=r"at least two objects with each other, \(n, n\)\. Got shape \(2, 3\)"):
        diagnostics(np.ones((2, 3)))
    with pytest.raises(ValueError, match="at least two objects"):
        diagnostics([[1.0]])
    with pytest.raises(ValueError, match=r"must be symmetric\. Got 0\.5 at \(0, 1\) and 0 back"):
        diagnostics([[1.0, 0.5], [0.0, 1.0]])
    with pytest.raises(ValueError, match="must be finite"):
        diagnostics([[1.0, np.nan], [np.nan, 1.0]])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        diagnostics(np.eye(3), [0, 1])
    with pytest.raises(ValueError, match="two classes"):
        diagnostics(np.eye(3), [1, 1, 1])
    with pytest.raises(ValueError, match=r"[Uu]nknown label type"):
        diagnostics(np.eye(3), [0.1, 0.2, 0.35])


def test_signed_kernels_count_by_size() -> None:
    K = Linear()(np.array([[1.0], [-1.0], [1.0]]))
    assert diagnostics(K).mean_off_diagonal == 1.0
