"""Likelihoods of switching systems whose filters lose digits, against sums over all paths in exact arithmetic."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from genkern import LDS, SwitchingLDS
from tests.cases_odd import scalar
from tests.oracles_exact import DIGITS, PI, eliminated, path_law
from tests.test_affinity_unstable import hidden
from tests.test_rounding_modes import still


def exact_log_prob(model: SwitchingLDS, x: Any) -> float:
    """The sum over all paths of regimes, each density in exact arithmetic."""
    terms = []
    for path in itertools.product(range(model.n_regimes), repeat=len(x)):
        weight = model.start[path[0]] * math.prod(model.transitions[step] for step in itertools.pairwise(path))
        if weight == 0.0:
            continue
        with localcontext() as context:
            context.prec = DIGITS
            mean, cov = path_law([model.systems[k] for k in path], Decimal)
            gap = [Decimal(float(value)) - m for value, m in zip(np.ravel(x), mean, strict=True)]
            log_det, square = eliminated((gap, cov))
            terms.append(math.log(weight) + float(-(log_det + square + len(gap) * (2 * Decimal(PI)).ln()) / 2))
    return float(np.logaddexp.reduce(terms))


def switching(*systems: LDS, stay: float = 0.9) -> SwitchingLDS:
    S = len(systems)
    rows = np.full((S, S), (1.0 - stay) / max(S - 1, 1)) + (stay - (1.0 - stay) / max(S - 1, 1)) * np.eye(S)
    return SwitchingLDS(np.full(S, 1.0 / S), rows if S > 1 else [[1.0]], LDS.stack(list(systems)))


CASES = {
    "stable": switching(hidden(0.9, 1.0), hidden(0.5, 0.3)),
    "hardly seen": switching(hidden(30.0, 1e-6), hidden(20.0, 1e-6)),
    "hardly seen by one": switching(hidden(30.0, 1e-6), hidden(0.5, 1.0)),
    "never seen": switching(hidden(10.0, 0.0), hidden(9.0, 0.0)),
    "unstable and seen": switching(hidden(30.0, 1.0), hidden(0.5, 1.0)),
    "forbidden": SwitchingLDS([1.0, 0.0], np.eye(2), LDS.stack([hidden(0.5, 1.0), hidden(1e8, 0.0)])),
}


@pytest.mark.parametrize("case", CASES)
def test_densities_have_the_digits_of_exact_arithmetic(case: str) -> None:
    model = CASES[case]
    x = np.random.default_rng(0).standard_normal((7, 1))
    expected = exact_log_prob(model, x)
    assert float(model.log_prob([x])[0]) == pytest.approx(expected, rel=1e-10, abs=1e-8)
    assert_array_equal(model.log_prob([x[:2], x, x[1:]])[1], model.log_prob([x])[0])
    assert_array_equal(model.log_prob([x[:2], x], n_jobs=2)[1], model.log_prob([x])[0])


def test_one_regime_is_a_linear_system() -> None:
    x = np.random.default_rng(1).standard_normal((25, 1))
    for system in (hidden(3.0, 1e-6), hidden(0.9, 1.0), scalar(1.5)):
        assert float(switching(system).log_prob([x])[0]) == pytest.approx(float(system.log_prob([x])[0]), rel=1e-9)


def test_what_is_lost_is_refused_by_all_passes() -> None:
    model = switching(hidden(300.0, 0.0), hidden(200.0, 0.0))
    x = np.random.default_rng(0).standard_normal((12, 1))
    asks = (model.log_prob, model.statistics, model.posterior, model.log_prob_grad, model.estimate_log_prob)
    for ask in asks:
        with pytest.raises(ValueError, match=r"SwitchingLDS: object 1: states that no observation tells apart"):
            ask([x[:2], x])
    with pytest.raises(ValueError, match=r"SwitchingLDS: object 1: states that no observation tells apart"):
        model.statistics([x[:2], x], totals=True)
    with pytest.raises(ValueError, match=r"SwitchingLDS: object 1: .*the mean field is lost"):
        model.bound([x[:2], x])


def test_series_that_outgrow_their_own_last_bits_are_refused() -> None:
    model = switching(LDS([[3.0]], [[1.0]], 0.1, 0.1, [0.0], 1.0, [5.0]))
    short, long = (model.sample(1, length=length, rng=0)[0] for length in (12, 40))
    for ask in (model.log_prob, model.statistics, model.posterior, model.estimate_log_prob):
        ask([short])
        with pytest.raises(ValueError, match=r"SwitchingLDS: object 1: its observations.* grow .* 0\.0001 is allowed"):
            ask([short, long])


def test_a_state_that_only_rounding_moves() -> None:
    model, steady = (switching(still(radius, 1.0, 0.125, 1.0)) for radius in (3.0, 0.5))
    (x,) = steady.sample(1, length=40, rng=0)
    assert float(model.log_prob([x[:8]])[0]) == pytest.approx(float(steady.log_prob([x[:8]])[0]), abs=1e-8)
    for ask in (model.log_prob, model.statistics, model.posterior, model.estimate_log_prob):
        ask([x[:8]])
        with pytest.raises(ValueError, match=r"SwitchingLDS: object 1: states .*only rounding moves"):
            ask([x[:8], x])


@pytest.mark.parametrize("weight", [1e-2, 1e-4, 1e-6, 0.0])
def test_the_bound_of_one_regime_is_its_likelihood(weight: float) -> None:
    model, x = switching(hidden(3.0, weight)), np.random.default_rng(2).standard_normal((14, 1))
    try:
        found = float(model.bound([x])[0])
    except ValueError:
        assert weight < 1e-3
        return
    assert found == pytest.approx(exact_log_prob(model, x), abs=1e-4)
