"""Products of features, the Gaussian kernel and the vector exponential against NumPy."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genkern.core.arrays.products import cross, gram, mirror, rbf
from genkern.core.jit import jit
from genkern.core.simd.exponential import exp, two_to
from genkern.core.simd.vectors import load, store


@jit
def exp_of_eight(a):
    """Replace eight numbers by their exp."""
    store(a, 0, exp(load(a, 0)))


@jit
def two_to_eight(a):
    """Replace eight numbers by their exp."""
    store(a, 0, two_to(load(a, 0)))


def distances(F, G):
    """Return squared distances from differences."""
    return ((F[:, None] - G) ** 2).sum(axis=-1)


@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 3), (33, 100), (70, 5), (3, 0), (0, 4)])
def test_gram(n, d):
    F = np.random.default_rng(n).normal(size=(n, d))
    k = gram(F)
    np.testing.assert_allclose(k, F @ F.T, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(k, k.T)
    assert k.flags.c_contiguous


def test_gram_takes_any_layout():
    F = np.random.default_rng(0).normal(size=(40, 30))
    for view in (np.asfortranarray(F), F[::2], F[:, ::3], F.astype(np.float32), F[:, ::-1]):
        np.testing.assert_allclose(gram(view), view.astype(float) @ view.astype(float).T, rtol=1e-12, atol=1e-12)


def test_cross():
    rng = np.random.default_rng(1)
    F, G = rng.normal(size=(5, 9)), rng.normal(size=(11, 9))
    np.testing.assert_allclose(cross(F, G), F @ G.T, rtol=1e-13, atol=1e-13)
    assert cross(F[:0], G).shape == (0, 11)


@pytest.mark.parametrize("lam", [0.0, 0.3, 50.0])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 40])
def test_rbf(n, lam):
    rng = np.random.default_rng(n)
    F, G = rng.normal(size=(n, 6)), rng.normal(size=(13, 6))
    np.testing.assert_allclose(rbf(F, G, lam), np.exp(-lam / 2 * distances(F, G)), rtol=1e-12, atol=1e-300)
    k = rbf(F, None, lam)
    np.testing.assert_allclose(k, np.exp(-lam / 2 * distances(F, F)), rtol=1e-12, atol=1e-300)
    np.testing.assert_array_equal(k, k.T)
    np.testing.assert_array_equal(k.diagonal(), np.ones(n))


def test_rbf_of_equal_rows_far_from_the_origin_is_not_above_one():
    F = np.random.default_rng(2).normal(size=(20, 50)) * 1e-3 + 1e4
    F[1::2] = F[::2]
    assert rbf(F, None, 1.0).max() == 1.0
    assert rbf(F, F.copy(), 1.0).max() <= 1.0


def test_rbf_value_does_not_depend_on_its_place():
    # Small integers have exact products, whatever BLAS does, so only our own operations are left to differ.
    rng = np.random.default_rng(3)
    F, G = rng.integers(-3, 4, (6, 5)) / 8.0, rng.integers(-3, 4, (21, 5)) / 8.0
    whole = rbf(F, G, 0.77)
    for first in range(21):
        np.testing.assert_array_equal(rbf(F, G[first:], 0.77), whole[:, first:])
    np.testing.assert_array_equal(rbf(G, None, 0.77), rbf(G, G.copy(), 0.77))


@pytest.mark.parametrize("n", [1, 31, 32, 33, 100])
def test_mirror(n):
    k = np.random.default_rng(n).normal(size=(n, n))
    expected = np.triu(k) + np.triu(k, 1).T
    mirror(k)
    np.testing.assert_array_equal(k, expected)


def test_errors_name_what_is_wrong():
    with pytest.raises(ValueError, match=r"Got \(2, 3\) and \(2, 4\)"):
        cross(np.ones((2, 3)), np.ones((2, 4)))
    with pytest.raises(ValueError, match=r"Got shape \(3,\)"):
        gram(np.ones(3))


@settings(deadline=None, max_examples=200)
@given(st.lists(st.floats(-708.0, 700.0), min_size=8, max_size=8))
def test_exponential_to_one_unit_in_the_last_place(x):
    exact = np.exp(np.array(x, dtype=np.longdouble))
    values = np.array(x)
    exp_of_eight(values)
    assert (abs(values - exact) <= 1.0 * np.spacing(values)).all()


def test_exponential_at_the_edges():
    values = np.array([0.0, -0.0, -np.inf, -708.5, -1e300, np.nan, 1e-300, -1e-300])
    exp_of_eight(values)
    np.testing.assert_array_equal(values, [1.0, 1.0, 0.0, 0.0, 0.0, np.nan, 1.0, 1.0])


@settings(deadline=None, max_examples=200)
@given(st.lists(st.floats(-1019.0, 1022.0), min_size=8, max_size=8))
def test_powers_of_two_to_one_unit_in_the_last_place(x):
    exact = np.exp2(np.array(x, dtype=np.longdouble))
    values = np.array(x)
    two_to_eight(values)
    assert (abs(values - exact) <= 1.0 * np.spacing(values)).all()


def test_powers_of_two_at_the_edges():
    values = np.array([0.0, -0.0, -np.inf, -1e300, 1.0, -1020.0, -7.0, -1021.0])
    two_to_eight(values)
    least = 2.0**-1020
    np.testing.assert_array_equal(values, [1.0, 1.0, least, least, 2.0, least, 2.0**-7, least])


def without_jit():
    """Return results that the test computes compiled and not."""
    F = np.random.default_rng(4).normal(size=(11, 3))
    return [rbf(F, None, 0.5).tolist(), gram(F).tolist()]


def test_without_jit():
    program = "from test_core_products import without_jit; print(without_jit())"
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.path.dirname(__file__)}
    run = subprocess.run([sys.executable, "-W", "error", "-c", program], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    np.testing.assert_allclose(eval(run.stdout), without_jit(), rtol=1e-13)
