"""Unstable states that nothing but rounding moves: exact arithmetic does not see them, and a filter must not either."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from genkern import LDS, Expected, Power, affinity
from genkern.core.kalman.paths import path_densities
from tests.cases_odd import scalar
from tests.oracles_exact import exact_kernel, exact_log_prob

TURN = np.array([[1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 1.0, -1.0], [1.0, 1.0, -1.0, -1.0], [1.0, -1.0, -1.0, 1.0]]) / 2.0


def still(radius: float, first: float, move: float, mean: float, R: float = 0.1) -> LDS:
    """Three states that move and an unstable one that never does, in coordinates that binary numbers hold exactly."""
    moved = np.array([0.0, 1.0, 1.0, 1.0])
    A, Q, P = (TURN @ np.diag(d) @ TURN.T for d in ([radius, 0.5, 0.25, 0.75], move * moved, first * moved))
    return LDS(A, np.ones((1, 4)) @ TURN.T, Q, R, TURN @ (mean * moved), P)


def right_or_refused(ask: Any, expected: float, error: float) -> bool:
    """Say whether a value was given; it is then right."""
    refusal = ""
    try:
        found = float(ask())
    except ValueError as error_:
        refusal = str(error_)
    if refusal:
        assert "only rounding moves" in refusal or "last bits change" in refusal
        return False
    assert found == pytest.approx(expected, rel=1e-11, abs=error)
    return True


LAWS = [(1.0, 0.125, 1.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (2.0**-40, 0.0, 1.0), (0.0, 2.0**-30, 1.0)]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("radius", "length"), [(2.0, 10), (2.0, 60), (3.0, 20), (3.0, 60), (1.2, 200)])
def test_densities(law: tuple[float, float, float], radius: float, length: int) -> None:
    model = still(radius, *law)
    steady = still(0.5, *law)  # as the unstable state never moves, its dynamics do not matter
    (x,) = steady.sample(1, length=length, rng=0)
    expected = exact_log_prob(model, x[:20])
    assert expected == pytest.approx(exact_log_prob(steady, x[:20]), rel=1e-14)
    expected = float(steady.log_prob([x])[0])
    given = right_or_refused(lambda: model.log_prob([x])[0], expected, 1e-6)
    for ask in (lambda: model.statistics([x]).log_prob[0], lambda: model.statistics([x], totals=True).log_prob[0]):
        right_or_refused(ask, expected, 1e-4)
    assert given == (length == 10 or (law[:2] == (0.0, 0.0) and length == 20))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("radius", "length"), [(2.0, 10), (3.0, 20), (2.0, 60)])
def test_pairs(law: tuple[float, float, float], radius: float, length: int) -> None:
    model = still(radius, *law)
    for other in (still(radius, *law, R=0.3), still(radius, *law[:2], 2.0), scalar(0.5)):
        for how in (Power(0.5), Expected(0.7)):
            expected = exact_kernel(model, other, how, length)
            given = right_or_refused(lambda q=other, h=how: affinity(model, q, h, length), expected, 1e-8)
            assert given or length > 10


def test_other_coordinates_are_refused() -> None:
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((2, 2)))[0]
    A, cov = turn @ np.diag([3.0, 0.5]) @ turn.T, turn @ np.diag([0.0, 1.0]) @ turn.T
    cov = 0.5 * (cov + cov.T)
    model = LDS(A, np.ones((1, 2)) @ turn.T, cov, 0.1, np.zeros(2), cov)
    x = np.random.default_rng(1).standard_normal((60, 1))
    for ask in (model.log_prob, model.statistics, model.posterior, model.log_prob_grad):
        with pytest.raises(ValueError, match=r"object 1: states .*only rounding moves.* leave unstable states"):
            ask([x[:3], x])
    with pytest.raises(ValueError, match=r"models 0 and 1: .*only rounding moves"):
        affinity([scalar(0.5), model], [scalar(0.5), model], Power(0.5), 60)


def test_a_state_that_is_still_by_itself_counts_for_nothing() -> None:
    model = LDS(np.diag([3.0, 0.5]), [[1.0, 1.0]], [0.0, 0.1], 0.1, [0.0, 1.0], [0.0, 1.0])
    (x,) = model.sample(1, length=300, rng=0)
    assert float(model.log_prob([x])[0]) == pytest.approx(float(scalar(0.5, mean=1.0).log_prob([x])[0]), rel=1e-13)
    model.statistics([x])


def test_first_states_that_are_all_but_unknown() -> None:
    x = np.random.default_rng(0).standard_normal((10, 1))
    for variance, known in ((1e10, True), (1e20, True), (1e26, False), (1e40, False)):
        model = LDS([[1.0]], [[1.0]], 0.1, 1.0, [0.0], variance)
        assert right_or_refused(lambda m=model: m.log_prob([x])[0], exact_log_prob(model, x), 1e-8) == known


@pytest.mark.parametrize("radius", [0.9, 1.3, 3.0])
def test_counts_are_about_the_errors(radius: float) -> None:
    """What is counted, in last bits, is not far below what is lost, and ordinary systems lose nothing."""
    A = np.array([[0.6, 0.8], [-0.8, 0.6]]) * radius
    for look in ([[1.0, 0.0]], [[1.0, 1e-3]], [[1e-5, 1e-5]]):
        model = LDS(A, look, 0.1, 0.1, [1.0, 0.0], 1.0)
        (x,) = model.sample(1, length=15, rng=0)
        logs, growth, drift, _ = path_densities(model.systems(), np.zeros((1, 15), np.int64), x[None])
        loss = 2.2e-16 * (growth[0] + np.sqrt(drift[0]))
        scale = 1.0 + abs(logs[0])
        assert abs(logs[0] - exact_log_prob(model, x)) < 10.0 * loss * scale + 1e-13 * scale
        assert loss < 1e-9


def test_an_object_does_not_notice_the_length_of_its_neighbours() -> None:
    model = still(3.0, 2.0**-40, 0.0, 1.0)
    (x,) = still(0.5, 2.0**-40, 0.0, 1.0).sample(1, length=11, rng=0)
    for length in range(3, 11):
        alone = model.log_prob([x[:length]])[0]
        assert model.log_prob([x[:length], x[:11]])[0] == alone == model.log_prob([x[:2], x[:length]])[1]
