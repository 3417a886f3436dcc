"""The state-pair recursion where products of weights leave the range of a double, against exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from genkern.core.pairs.recursion import PairSide, pair_log, pair_log_factors, pair_log_values

BITS = 1100  # a double times two to this power is an integer


def exact_log(left: Any, right: Any, psi: Any, length: int) -> float:
    """Return log k of one pair by the recursion in integers: every double is one times a power of two."""

    def integers(array: Any) -> Any:
        return np.vectorize(lambda x: int(Fraction(x) * 2**BITS), otypes=[object])(np.asarray(array, dtype=float))

    (start, steps, end), (other, moves, last) = (map(integers, side) for side in (left, right))
    table = integers(psi)
    phi, shift = np.outer(start, other) * table, 3 * BITS
    for _ in range(length - 1):
        phi, shift = steps.T.dot(phi).dot(moves) * table, shift + 3 * BITS
        spare = min(((x & -x).bit_length() - 1 for x in phi.ravel() if x), default=0)
        phi, shift = phi >> spare, shift - spare
    value, shift = end.dot(phi).dot(last), shift + 2 * BITS
    if value == 0:
        return -math.inf
    high = max(0, value.bit_length() - 64)
    return math.log(value >> high) + (high - shift) * math.log(2.0)


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
def test_faint_weights_are_those_of_exact_arithmetic(states: tuple[int, int]) -> None:
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
