"""Every kernel on hostile representations: symmetric, positive semi-definite matrices, or an error that says why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fuzz import assert_finite, examples, hostile, rows, safely
from hypothesis import given, note
from hypothesis import strategies as st
from scipy import sparse
from test_fuzz_models import altered
from test_kernels import (
    ALIGNMENT_KERNELS,
    KERNELS,
    POSTERIOR_KERNELS,
    SEQUENCE_KERNELS,
    SET_KERNELS,
    SYMBOL_KERNELS,
    representations,
)

from genkern import Gram, Hellinger, Kernel, MeanMap, Model, Nystrom, ProbabilityProduct, SymmetricKL
from genkern.data.representations import Representations
from genkern.kernels.positivity import is_positive
from genkern.models.families.categorical import Categorical
from genkern.models.posterior import Posterior
from tests.cases_odd import ODD

MODEL_KERNELS = [
    *(ProbabilityProduct(rho, length=3) for rho in (0.3, 0.5, 1.0, 2.0)),
    *(MeanMap(lam, length=3) for lam in (0.0, 1e-8, 1.0, 1e8)),
    MeanMap(0.7, length=3, kernel="laplace"),
    Hellinger(2.0, length=3),
    SymmetricKL(0.5, length=3),
]


def check_matrix(K: np.ndarray, positive: bool) -> None:
    assert_finite(K)
    np.testing.assert_array_equal(K, K.T)
    assert is_positive(K) or not positive, f"{np.linalg.eigvalsh(K)[[0, -1]]} are extreme eigenvalues"


def check(kernel: Kernel, X: Any, positive: bool = True) -> None:
    """Check the values of a kernel, its cosines, and what Gram and Nystrom make of it."""
    with safely():
        K = kernel(X)
        check_matrix(K, positive)
        np.testing.assert_allclose(kernel.diag(X), K.diagonal(), rtol=1e-8)
    with safely():
        K = kernel.normalized()(X)
        check_matrix(K, positive)
        np.testing.assert_array_equal(K.diagonal(), 1.0)
        assert np.abs(K).max() <= 1.0
    for maker in (Gram(kernel), Nystrom(kernel, 2, "pivots")):
        with safely():
            assert_finite(maker.fit(X).transform(X))


@st.composite
def distributions(draw: Any, n: int, m: int) -> list[Categorical]:
    """Draw distributions with tiny and equal probabilities, and zeros."""
    powers = st.lists(st.sampled_from([-320, -300, -160, -8, 0, 0]), min_size=m - 1, max_size=m - 1)
    tables = [10.0 ** np.array([0, *row], float) for row in draw(st.lists(powers, min_size=1, max_size=n))]
    return [Categorical(table / table.sum()) for table in tables]


@st.composite
def compared(draw: Any, kernel: Kernel) -> Any:
    """Draw hostile representations of the kind that a kernel compares."""
    ordinary = representations(kernel, 0)
    if kernel.vectors:
        table = draw(rows(ordinary))
        storable = kernel.accepts_sparse and table.dtype != np.float16  # SciPy stores no halves
        return sparse.csr_matrix(table) if storable and draw(st.booleans()) else table
    if kernel in SEQUENCE_KERNELS:
        return draw(hostile(draw(st.sampled_from(["strings", "series"]))))
    if kernel in ALIGNMENT_KERNELS:
        return draw(hostile("strings", ordinary))
    if kernel in SET_KERNELS:
        return draw(hostile("series"))
    if kernel in SYMBOL_KERNELS:
        return draw(distributions(5, 4))
    if kernel in POSTERIOR_KERNELS:
        return [Posterior(draw(rows(p.points)), p.weights, p.pairs) for p in ordinary[:3]]
    if isinstance(ordinary, Representations):
        return Representations({"models": ordinary["models"][:1] * 4, "rows": draw(rows(ordinary["rows"][:4]))})
    return draw(st.permutations([*ordinary, ordinary[0]]))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@examples(few=2)
@given(data=st.data())
def test_representations(kernel: Kernel, data: Any) -> None:
    with safely():
        X = data.draw(compared(kernel))
        note(f"X = {X!r:.1000}")
        check(kernel, X)


@pytest.mark.parametrize("name", ODD)
@examples(few=3)
@given(data=st.data())
def test_models(name: str, data: Any) -> None:
    kernel = data.draw(st.sampled_from(MODEL_KERNELS))
    X: list[Model] = data.draw(st.lists(st.sampled_from(ODD[name]), min_size=1, max_size=5))
    with safely():
        X = [*X, data.draw(altered(X[0]))]
    check(kernel, X, not isinstance(kernel, SymmetricKL))
