"""Affinities between linear Gaussian networks and dynamical systems against their dense joint laws."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

from genkern import LDS, Expected, Gaussian, LinearGaussianNet, Power, ProbabilityProduct, affinity

HOWS = [Power(0.5), Power(1.0), Power(1.7), Expected(0.0), Expected(0.8)]


def lds(seed: int, n: int, d: int = 2, batch: tuple[int, ...] = (), noiseless: bool = False) -> LDS:
    r = np.random.default_rng(seed)

    def spread(k: int) -> Any:
        root = r.normal(size=(*batch, k, k))
        return root @ np.swapaxes(root, -1, -2) / k

    A = 0.6 * r.normal(size=(*batch, n, n)) / math.sqrt(n)
    first, steps = (np.zeros((*batch, n, n)), np.zeros((*batch, n, n))) if noiseless else (spread(n), spread(n))
    C, mean = r.normal(size=(*batch, d, n)), r.normal(size=(*batch, n))
    return LDS(A, C, steps, spread(d) + 0.2 * np.eye(d), mean, first, r.normal(size=(*batch, d)))


def dense(p: LDS, q: LDS, how: Any, length: int) -> float:
    """The kernel from textbook densities of the joint law of all observations."""
    (m, S), (m2, S2) = ((g.mean, g.cov) for g in (p.to_gaussian(length), q.to_gaussian(length)))
    size = len(m)
    if isinstance(how, Expected):
        if how.lam == 0:
            return 1.0
        law = multivariate_normal(m - m2, S + S2 + np.eye(size) / how.lam)
        return float(law.pdf(np.zeros(size)) * (2 * np.pi / how.lam) ** (size / 2))
    # p^rho q^rho = c N(x; m, S / rho) N(x; m2, S2 / rho), whose integral is the density of the difference of means.
    factor = sum(
        0.5 * (1 - how.rho) * (size * math.log(2 * np.pi) + np.linalg.slogdet(cov)[1]) - 0.5 * size * math.log(how.rho)
        for cov in (S, S2)
    )
    return math.exp(factor) * float(multivariate_normal(m - m2, (S + S2) / how.rho).pdf(np.zeros(size)))


@pytest.mark.parametrize("how", HOWS, ids=repr)
@pytest.mark.parametrize("sizes", [(2, 2), (1, 3)])
@pytest.mark.parametrize("length", [1, 4])
def test_systems_equal_their_joint_law(how: Any, sizes: tuple[int, int], length: int) -> None:
    p, q = lds(0, sizes[0]), lds(1, sizes[1])
    assert math.exp(affinity(p, q, how, length)) == pytest.approx(dense(p, q, how, length), rel=1e-9)
    name = "stacked_product" if isinstance(how, Power) else "stacked_mean_map"
    assert affinity.explain(p, q, how, length).name == name


def test_the_dense_law_is_the_integral() -> None:
    p, q = lds(2, 1, 1), lds(3, 2, 1)
    grid = np.linspace(-12, 12, 2001)
    (left, right) = (np.exp(model.log_prob([np.array([[x]]) for x in grid])) for model in (p, q))
    step = grid[1] - grid[0]
    assert math.exp(affinity(p, q, Power(0.5), 1)) == pytest.approx(np.sqrt(left * right).sum() * step, rel=1e-9)
    rbf = np.exp(-0.4 * (grid[:, None] - grid) ** 2)
    assert math.exp(affinity(p, q, Expected(0.8), 1)) == pytest.approx(left @ rbf @ right * step**2, rel=1e-9)


@pytest.mark.parametrize("how", HOWS, ids=repr)
def test_states_without_noise(how: Any) -> None:
    p, q = lds(4, 2, noiseless=True), lds(5, 3)
    assert math.exp(affinity(p, q, how, 3)) == pytest.approx(dense(p, q, how, 3), rel=1e-9)


@pytest.mark.parametrize("how", HOWS, ids=repr)
def test_marginals_leave_dependence_out(how: Any) -> None:
    p, q = lds(0, 2), lds(1, 3)
    total = 0.0
    for t in range(4):
        laws = []
        for model in (p, q):
            joint, place = model.to_gaussian(4), slice(2 * t, 2 * t + 2)
            laws.append(Gaussian(joint.mean[place], joint.cov[place, place]))
        total += float(affinity(*laws, how))
    assert float(affinity(p, q, how, 4, method="marginal")) == pytest.approx(total, rel=1e-10)
    assert affinity.explain(p, q, how, 4, method="marginal").name == "time_by_time"
    if how != Expected(0.0):
        assert abs(total - float(affinity(p, q, how, 4))) > 1e-3


@pytest.mark.parametrize("how", [Power(0.5), Expected(0.8)], ids=repr)
def test_stacks_equal_pairs(how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = lds(0, 2, batch=(4,)), lds(1, 3, batch=(3,))
    table = affinity(left, right, how, 6)
    for i, j in itertools.product(range(4), range(3)):
        assert_allclose(table[i, j], affinity(left[i], right[j], how, 6), rtol=1e-13)
    square = affinity(left, left, how, 6)
    assert_array_equal(square, square.T)
    assert_allclose(affinity.diag(left, how, 6), np.diagonal(square), rtol=1e-12, atol=1e-12)
    paired = affinity.block(lds(2, 2, batch=(2, 3)), lds(3, 2, batch=(2, 2)), how, 4)
    assert_allclose(paired[1], affinity(lds(2, 2, batch=(2, 3))[1], lds(3, 2, batch=(2, 2))[1], how, 4), rtol=1e-13)
    monkeypatch.setattr("genkern.affinities.linear_gaussian.CHUNK", 3)
    assert_allclose(affinity(left, right, how, 6), table, rtol=1e-13)
    mixed = [lds(7, 1), lds(8, 2), lds(9, 3)]
    kernel = ProbabilityProduct(0.7, length=5).normalized()(mixed)
    assert_allclose(np.diagonal(kernel), 1.0)
    assert np.linalg.eigvalsh(kernel)[0] > -1e-12


def test_pairs_that_converge_late_leave_the_others_as_they_are() -> None:
    models = lds(20, 2, batch=(5,))
    slow = LDS([[0.999, 0.0], [0.0, 0.9]], models.observation[0], np.eye(2) * 1e-6, np.eye(2), [1.0, -1.0], np.eye(2))
    stack = [*models, slow]
    together = affinity(stack, stack, Power(1.0), 60)
    assert_array_equal(together, together.T)
    for i, j in ((0, 1), (0, 5), (2, 4), (3, 3)):
        assert affinity(stack[i], stack[j], Power(1.0), 60) == together[i, j]
        assert together[i, j] == pytest.approx(log_dense(stack[i], stack[j], 60), rel=1e-11)


def log_dense(p: LDS, q: LDS, length: int) -> float:
    """The log of the kernel with rho = 1 from the joint law of all observations."""
    (m, S), (m2, S2) = ((g.mean, g.cov) for g in (p.to_gaussian(length), q.to_gaussian(length)))
    return float(multivariate_normal(m - m2, S + S2).logpdf(np.zeros(len(m))))


def test_long_series_do_not_underflow() -> None:
    p, q = lds(0, 2), lds(1, 2)
    logs = [float(affinity(p, q, Power(0.5), length)) for length in (1000, 2000, 100_000)]
    assert (logs[2] - logs[1]) / 98 == pytest.approx(logs[1] - logs[0], rel=1e-8)


def test_singular_observations() -> None:
    flat = LDS([[0.5]], [[1.0], [1.0]], [[1.0]], np.zeros((2, 2)), [0.0], [[1.0]])
    fine = lds(1, 1)
    assert affinity(flat, fine, Power(0.5), 2) == -np.inf
    assert np.isfinite(affinity(flat, fine, Power(1.0), 2))
    with pytest.raises(ValueError, match="models 0 and 0: an innovation covariance is singular"):
        affinity(flat, fine, Power(1.5), 2)
    with pytest.raises(ValueError, match="models 0 and 0: the sum of the covariances"):
        affinity(flat, flat, Power(1.0), 2)
    assert np.isfinite(affinity(flat, flat, Expected(1.0), 2))


def test_systems_must_be_comparable() -> None:
    with pytest.raises(ValueError, match=r"same number of channels\. Got 1 and 2"):
        affinity(lds(0, 2, 1), lds(1, 2, 2), Power(0.5), 3)
    with pytest.raises(ValueError, match="needs length="):
        affinity(lds(0, 2), lds(1, 2), Power(0.5))


# --- networks


def net(weight: float, hidden: bool = False) -> LinearGaussianNet:
    nodes = {
        "u": ([], [], [0.3], [[1.0]]),
        "x": (["u"], [[[weight]]], [0.1], [[0.5]]),
        "y": (["u", "x"], [[[0.2]], [[-weight]]], [-0.4], [[0.7]]),
    }
    return LinearGaussianNet(nodes, observed=["x", "y"] if hidden else ["u", "x", "y"])


@pytest.mark.parametrize("how", HOWS, ids=repr)
def test_networks_are_the_gaussians_of_their_observed_nodes(how: Any) -> None:
    p, q = net(0.8, hidden=True), net(-0.3, hidden=True)
    means, covs = [], []
    for weight in (0.8, -0.3):
        # u = e1, x = w u + e2, y = 0.2 u - w x + e3, written out
        spread = np.array([[weight, 1.0, 0.0], [0.2 - weight**2, -weight, 1.0]])
        means.append(spread @ np.array([0.3, 0.1, -0.4]))
        covs.append(spread @ np.diag([1.0, 0.5, 0.7]) @ spread.T)
    expected = float(affinity(Gaussian(means[0], covs[0]), Gaussian(means[1], covs[1]), how))
    assert float(affinity(p, q, how)) == pytest.approx(expected, rel=1e-11, abs=1e-12)
    assert float(affinity(p, Gaussian(means[1], covs[1]), how)) == pytest.approx(expected, rel=1e-11, abs=1e-12)
    assert float(affinity(Gaussian(means[1], covs[1]), p, how)) == pytest.approx(expected, rel=1e-11, abs=1e-12)
    with pytest.raises(ValueError, match="same nodes in the same order"):
        affinity(p, net(0.1), how)
