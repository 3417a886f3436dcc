"""No exact kernel, normalised, exceeds one: for every formula of the table, whatever the models."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from genkern import (
    Dirichlet,
    Expected,
    Gamma,
    Gaussian,
    Gram,
    Hellinger,
    MeanMap,
    Poisson,
    Power,
    ProbabilityProduct,
    Sampled,
    VonMises,
    affinity,
)
from genkern.affinities.rules import Rule
from genkern.kernels.cosines import ROUNDING
from tests.cases_odd import NEAR, ODD

KERNELS = [*(ProbabilityProduct(rho) for rho in (0.5, 1.0, 0.3, 2.0)), MeanMap(0.5), MeanMap(100.0)]
LENGTHS = {"LDS": (3, 40), "SwitchingLDS": (3, 5), "FactorialHMM": (3, 100), "PositionalChain": (3, 30)}
SEQUENCES = ("MarkovChain", "PeriodicChain", "HMM", "HMM of vectors", *LENGTHS)
REFUSED = ("no formula for", "is infinite", "covariance is singular")  # what some kernels have no value for


@pytest.mark.parametrize("name", ODD)
def test_no_cosine_exceeds_one(name: str) -> None:
    models, done = ODD[name], 0
    for kernel in KERNELS:
        for length in (
            LENGTHS.get(name, (3, 500)) if name in SEQUENCES else (None, 7 * getattr(models[0], "draw_size", 1))
        ):
            kernel = kernel.__class__(**{**kernel.get_params(), "length": length})
            try:
                logs, own = kernel.log(models, list(models)), kernel.log_diag(models)
            except (TypeError, ValueError) as error:
                if not any(text in str(error) for text in REFUSED):
                    raise
                continue
            done += 1
            alive = np.isfinite(own)
            excess = logs[np.ix_(alive, alive)] - 0.5 * own[alive, None] - 0.5 * own[alive]
            assert excess.max() < 1e-14 * (100.0 + np.abs(own[alive]).max() + 10.0 * (length or 1)), (kernel, length)
            assert not np.isnan(logs).any()
            if alive.all():
                assert kernel.normalized()(models, list(models)).max() <= 1.0
    assert done >= 4


def test_every_exact_formula_has_odd_models() -> None:
    names = {name.split(" ")[0] for name in ODD}
    covered = {cls for models in ODD.values() for cls in type(models[0]).__mro__}
    for rule in affinity.table():
        own = rule.left.__module__.startswith("genkern.")  # not those of tests
        if own and rule.kind == "exact" and rule.method == "exact" and rule.how is not Expected:
            assert {rule.left, rule.right} <= covered, (rule.left, names)


def test_more_than_rounding_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    models = Gaussian(np.arange(6.0)[:, None], np.ones((6, 1)))
    kernel = ProbabilityProduct(0.5)
    good, block = kernel.normalized()(models), Rule.block

    def wrong(size: float) -> Any:
        def formula(self: Rule, P: Gaussian, Q: Gaussian, *rest: Any) -> Any:
            logs = block(self, P, Q, *rest)
            return np.where((P.mean[..., :, None, 0] == 4.0) & (Q.mean[..., None, :, 0] == 5.0), size, logs)

        return formula

    monkeypatch.setattr(Rule, "block", wrong(0.5))
    for other in (kernel.normalized(), 2.0 * kernel.normalized() + 1.0, (kernel * kernel).normalized(), Hellinger()):
        with pytest.raises(
            ValueError, match=r"objects 4 and 5 is exp\((0.5|1)\), and that of an exact kernel is at most"
        ):
            other(models)
    with pytest.raises(ValueError, match=r"objects 4 and 5 is exp\(0.5\)"):
        Gram(kernel.normalized(), block_size=2).fit_transform(models)
    monkeypatch.setattr(Rule, "block", wrong(0.5 * ROUNDING))
    expected = good.copy()
    expected[4, 5] = expected[5, 4] = 1.0
    assert_array_equal(kernel.normalized()(models), expected)


def test_estimates_may_exceed_one() -> None:
    # products of draws are no inner products
    models = [Sampled(Gaussian([m], 1.0), n=4, seed=s) for s in range(12) for m in (0.0, 0.5)]
    with pytest.warns(UserWarning, match="normalised values are above one"):
        assert ProbabilityProduct(1.0).normalized()(models).max() > 1.0


# --- large parameters, against sums and integrals in high precision


def stirling(x: Decimal) -> Decimal:
    """log Gamma of a large number, in so many digits as the context has."""
    with localcontext() as context:
        context.prec = 60
        total = (
            (x - Decimal("0.5")) * x.ln()
            - x
            + (2 * Decimal("3.14159265358979323846264338327950288419716939937511")).ln() / 2
        )
        for k, (a, b) in enumerate([(1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360)]):
            total += Decimal(a) / Decimal(b) / x ** (2 * k + 1)
        return total


@pytest.mark.parametrize("rho", [0.5, 1.0, 0.3, 2.0])
@pytest.mark.parametrize("size", [1e4, 1e8, 1e12, 1e15])
def test_large_parameters(rho: float, size: float) -> None:
    power = Decimal(rho)
    shapes = size, size * (1.0 + 0.5 / math.sqrt(size))
    with localcontext() as context:
        context.prec = 60
        (x, y), (b, c) = map(Decimal, shapes), map(Decimal, (2.0, 2.0 * NEAR))
        a = power * (x + y - 2) + 1
        scale = b * c / (power * (b + c))
        gamma = stirling(a) + a * scale.ln() - power * (stirling(x) + x * b.ln() + stirling(y) + y * c.ln())
        p, q = (x, 3 * x), (y, 3 * x)
        joint = [power * (u + v - 2) + 1 for u, v in zip(p, q)]
        betas = [sum(map(stirling, z)) - stirling(sum(z)) for z in (joint, p, q)]
        dirichlet = betas[0] - power * (betas[1] + betas[2])
    # The last bits of the parameters themselves are worth so much.
    error = 1e-11 + 1e-15 * math.sqrt(size)
    found = float(affinity(Gamma([shapes[0]], [2.0]), Gamma([shapes[1]], [2.0 * NEAR]), Power(rho)))
    assert found == pytest.approx(float(gamma), rel=1e-11, abs=error)
    first, second = Dirichlet([shapes[0], 3 * size]), Dirichlet([shapes[1], 3 * size])
    assert float(affinity(first, second, Power(rho))) == pytest.approx(float(dirichlet), rel=1e-11, abs=error)


@pytest.mark.parametrize("rho", [0.5, 1.0, 0.3, 2.0])
@pytest.mark.parametrize("rate", [3e3, 3e5, 3e8])
def test_large_rates(rho: float, rate: float) -> None:
    rates = rate, rate * (1.0 + 0.5 / math.sqrt(rate))
    x = (
        np.round(rate + math.sqrt(rate) * np.linspace(-25.0, 25.0, 4001))
        if rate > 1e6
        else np.arange(0.5 * rate, 1.5 * rate) // 1
    )
    width = np.gradient(x) if rate > 1e6 else 1.0  # the weights are smooth: so few of them give their sum
    logs = [-m * _entropy((x - m) / m) - 0.5 * np.log(2.0 * np.pi * x) - 1.0 / (12.0 * x) for m in rates]
    expected = math.log(float((np.exp(rho * (logs[0] + logs[1])) * width).sum()))
    found = float(affinity(Poisson([rates[0]]), Poisson([rates[1]]), Power(rho)))
    assert found == pytest.approx(expected, rel=1e-8)


def _entropy(u: Any) -> Any:
    return (1.0 + u) * np.log1p(u) - u


@pytest.mark.parametrize("kappa", [1e3, 1e8, 1e12])
def test_sharp_directions_are_normal(kappa: float) -> None:
    gap = 0.7 / math.sqrt(kappa)
    p, q = VonMises([1.0], [kappa]), VonMises([1.0 + gap], [kappa])
    width = (1.0 + gap) - 1.0
    for rho in (0.5, 2.0):
        expected = (
            -0.25 * rho * kappa * width**2
            + (1 - 2 * rho) * 0.5 * math.log(2 * math.pi / kappa)
            - 0.5 * math.log(2 * rho)
        )
        assert float(affinity(p, q, Power(rho))) == pytest.approx(expected, abs=3.0 / kappa + 1e-9)
    assert_allclose(float(affinity(p, p, Power(0.5))), 0.0, atol=1e-14)
