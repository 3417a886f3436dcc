"""The state-pair recursion where products of weights leave the range of a double, against fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from genkern.core.pairs import PairSide, pair_log, pair_log_factors, pair_log_values


def exact_log(left: Any, right: Any, psi: Any, length: int) -> float:
    """Return log k of one pair by the recursion in fractions."""

    def fractions(array: Any) -> Any:
        return np.vectorize(Fraction, otypes=[object])(np.asarray(array, dtype=float))

    (start, steps, end), (other, moves, last) = (map(fractions, side) for side in (left, right))
    table = fractions(psi)
    phi = np.outer(start, other) * table
    for _ in range(length - 1):
        phi = steps.T.dot(phi).dot(moves) * table
    value = end.dot(phi).dot(last)
    if value == 0:
        return -math.inf
    bits = [max(0, part.bit_length() - 64) for part in (value.numerator, value.denominator)]
    high, low = value.numerator >> bits[0], value.denominator >> bits[1]
    return math.log(high) - math.log(low) + (bits[0] - bits[1]) * math.log(2.0)


def faint(rng: np.random.Generator, *shape: int) -> Any:
    """Return weights down to 1e-300, a quarter of them zero."""
    weights = 10.0 ** -(rng.random(shape) ** 2 * rng.choice([3, 50, 300]))
    weights[rng.random(shape) < 0.25] = 0.0
    return weights


@pytest.mark.parametrize("states", [2, 13])
def test_a_start_too_faint_for_products_may_come_to_dominate(states: int) -> None:
    """States 0 and 1 do not meet: the first fades, and the other, which is nearly never the start, stays."""
    start, steps = np.zeros((1, states)), np.zeros((1, states, states))
    start[0, :2] = [1.0, 1e-200]
    steps[0, [0, 1], [0, 1]] = [0.5, 1.0]
    side = PairSide(start, steps, np.ones((1, states)))
    psi = np.ones((1, states, 1, states))
    for found in (
        pair_log_values(side, None, psi, 3000),
        pair_log(side, side, np.log(psi), 3000),
        pair_log_factors(side, None, np.ones((1, states, 1)), None, 3000),
    ):
        assert_allclose(found, -400.0 * math.log(10.0), rtol=1e-12)


@pytest.mark.parametrize("states", [(2, 2), (2, 3), (13, 2)])
def test_faint_weights_are_those_of_fractions(states: tuple[int, int]) -> None:
    n, m = states
    rng = np.random.default_rng(n * m)
    for length in (1, 2, 3, 7, 40, 60) * (1 if n > 4 else 4):
        left = PairSide(faint(rng, 2, n), faint(rng, 2, n, n), faint(rng, 2, n))
        right = PairSide(faint(rng, 3, m), faint(rng, 3, m, m), faint(rng, 3, m))
        psi = faint(rng, 2, n, 3, m)
        with np.errstate(divide="ignore"):
            found = pair_log_values(left, right, psi, length), pair_log(left, right, np.log(psi), length)
        for i, j in np.ndindex(2, 3):
            exact = exact_log([part[i] for part in left], [part[j] for part in right], psi[i, :, j], length)
            for logs in found:
                assert_allclose(logs[i, j], exact, rtol=1e-11, atol=1e-11)
