"""Special cases of one another in one list: each pair against plain sums, integrals or joint laws."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import expon, gamma

from genkern import (
    HMM,
    KDE,
    LDS,
    Categorical,
    Expected,
    ExpectedLaplace,
    Exponential,
    Gamma,
    Gaussian,
    LinearGaussianNet,
    MarkovChain,
    MeanMap,
    Mixture,
    Multinomial,
    Power,
    ProbabilityProduct,
    SwitchingLDS,
    affinity,
)

SYMBOLS = Categorical([0.3, 0.7], alphabet="ab")
CHAIN = MarkovChain([0.2, 0.8], [[0.7, 0.3], [0.5, 0.5]], alphabet="ab")
HIDDEN = HMM([0.3, 0.7], [[0.9, 0.1], [0.4, 0.6]], Categorical([[0.8, 0.2], [0.1, 0.9]], alphabet="ab"))
SYSTEM = LDS([[0.8]], [[1.0], [0.5]], [[0.3]], [[1.0, 0.2], [0.2, 0.7]], [0.4], [[0.6]], offset=[0.1, -0.3])
POINT = Gaussian([0.5, -1.0], [[1.2, 0.4], [0.4, 0.9]])


def value(*args: Any, **options: Any) -> float:
    return math.exp(float(affinity(*args, **options)))


def test_symbols_chains_and_hidden_chains() -> None:
    words = ["".join(letters) for letters in itertools.product("ab", repeat=3)]
    independent = np.array([math.prod({"a": 0.3, "b": 0.7}[c] for c in word) for word in words])
    differ = np.array([[sum(a != b for a, b in zip(u, v)) for v in words] for u in words], float)
    for model in (CHAIN, HIDDEN):
        law = np.exp(model.log_prob(words))
        assert value(model, SYMBOLS, Power(1.0), length=3) == pytest.approx(law @ independent, rel=1e-12)
        assert value(SYMBOLS, model, Expected(0.8), length=3) == pytest.approx(
            law @ np.exp(-0.8 * differ) @ independent, rel=1e-12
        )
        assert value(model, SYMBOLS, ExpectedLaplace(0.8), length=3) == pytest.approx(
            law @ np.exp(-1.6 * differ) @ independent, rel=1e-12
        )
    law = np.exp(CHAIN.log_prob(words))
    assert value(CHAIN, SYMBOLS, Power(0.5), length=3) == pytest.approx(
        (law * independent) ** 0.5 @ np.ones(8), rel=1e-12
    )


def test_hidden_chains_of_numbers_with_leaves() -> None:
    hidden = HMM([1.0, 0.0], [[0.5, 0.5], [0.2, 0.8]], Gaussian([[0.0], [2.0]], [1.0, 0.5]))
    leaf, paths = Gaussian(0.7, 0.4), itertools.product(range(2), repeat=2)
    expected = sum(
        hidden.start[i]
        * hidden.transitions[i, j]
        * math.prod(value(hidden.emissions[k], leaf, Power(1.0)) for k in (i, j))
        for i, j in paths
    )
    assert value(hidden, leaf, Power(1.0), length=2) == pytest.approx(expected, rel=1e-12)


def repeated(normal: Gaussian, length: int) -> Gaussian:
    return Gaussian(np.tile(normal.mean, length), np.kron(np.eye(length), normal.cov))


@pytest.mark.parametrize("how", [Power(0.5), Power(1.0), Power(1.4), Expected(0.7)], ids=repr)
def test_systems_and_points(how: Any) -> None:
    joint, points = SYSTEM.to_gaussian(3), repeated(POINT, 3)
    assert float(affinity(SYSTEM, POINT, how, 3)) == pytest.approx(float(affinity(joint, points, how)), rel=1e-10)
    isotropic = Gaussian([0.0, 1.0], 0.5)
    full = repeated(Gaussian([0.0, 1.0], 0.5 * np.eye(2)), 3)
    assert float(affinity(isotropic, SYSTEM, how, 3)) == pytest.approx(float(affinity(full, joint, how)), rel=1e-10)
    turns = SwitchingLDS(
        [0.4, 0.6],
        [[0.9, 0.1], [0.3, 0.7]],
        LDS.stack([SYSTEM, LDS([[0.2]], [[0.3], [1.0]], [[0.5]], np.eye(2), [0.0], [[1.0]], offset=[0, 1])]),
    )
    total = 0.0
    for i, j in itertools.product(range(2), repeat=2):
        alone = SwitchingLDS(np.eye(2)[i], np.eye(2)[[j, j]], turns.systems)
        total += turns.start[i] * turns.transitions[i, j] * value(alone, SYSTEM, how, length=2)
    assert value(turns, SYSTEM, how, length=2) == pytest.approx(total, rel=1e-10)
    same = SwitchingLDS([1.0], [[1.0]], LDS.stack([SYSTEM]))
    for method in ("exact", "all-pairs", "paired"):
        for other, law in ((SYSTEM, SYSTEM.to_gaussian(3)), (POINT, points)):
            found = affinity(same, other, how, 3, method=method)
            assert float(found) == pytest.approx(float(affinity(joint, law, how)), rel=1e-9), method
        assert float(affinity(SYSTEM, SYSTEM, how, 3, method=method)) == pytest.approx(
            float(affinity(joint, joint, how)), rel=1e-9
        )


@pytest.mark.parametrize("rho", [0.5, 1.0, 1.3])
def test_exponential_and_gamma(rho: float) -> None:
    expected = quad(lambda x: (gamma.pdf(x, 2.5, scale=0.7) * expon.pdf(x, scale=1.8)) ** rho, 0.0, 80.0, limit=200)[0]
    assert value(Gamma(2.5, 0.7), Exponential(1.8), Power(rho)) == pytest.approx(expected, rel=1e-8)


def test_symbols_and_rows_of_one_count() -> None:
    p, rows = Categorical([0.2, 0.8]), np.array([0.6, 0.4])
    for ordered in (True, False):
        found = value(p, Multinomial(rows, 1, ordered), Power(0.7))
        assert found == pytest.approx(((p.probs * rows) ** 0.7).sum(), rel=1e-13)
    assert value(p, Multinomial(rows), Power(0.7), length=3) == pytest.approx(((p.probs * rows) ** 0.7).sum() ** 3)
    with pytest.raises(ValueError, match="total=1, or of ordered draws"):
        affinity(p, Multinomial(rows, 2), Power(1.0))
    with pytest.raises(ValueError, match="total=1, or of ordered draws"):
        affinity(p, Multinomial(rows, ordered=False), Power(1.0), length=2)


@pytest.mark.parametrize("how", [Power(0.5), Expected(0.7), ExpectedLaplace(0.7)], ids=repr)
def test_networks_beside_mixtures(how: Any) -> None:
    net = LinearGaussianNet({"z": ((), [], 0.5, 1.0), "x": (("z",), [[2.0]], -0.3, 0.4)}, observed=("x",))
    law = Gaussian(2.0 * 0.5 - 0.3, 4.0 + 0.4)
    mixture = Mixture([0.3, 0.7], Gaussian([[0.0], [2.0]], [0.5, 1.0]))
    for other in (mixture, KDE([[0.0], [1.0]], 0.3)):
        assert float(affinity(net, other, how)) == pytest.approx(float(affinity(law, other, how)), rel=1e-12)


def test_mixed_lists_have_one_positive_matrix() -> None:
    lists = [
        ([SYMBOLS, CHAIN, HIDDEN], "exact"),
        ([SYSTEM, POINT, SwitchingLDS([1.0], [[1.0]], LDS.stack([SYSTEM]))], "exact"),
    ]
    for models, method in lists:
        for kernel in (ProbabilityProduct(0.5, 3, method), MeanMap(0.8, 3, method)):
            K = kernel(models)
            assert_allclose(K, [[kernel([p], [q])[0, 0] for q in models] for p in models], rtol=1e-10)
            assert np.linalg.eigvalsh(K)[0] > -1e-12 * np.trace(K)
    assert_allclose(ProbabilityProduct(0.5)([Gamma(1.0, 2.0), Exponential(2.0)]), 1.0, rtol=1e-13)
