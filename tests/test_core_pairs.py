"""The state-pair recursion against enumeration, matrix powers and the plain loop; its independence and its limits."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genkern.core.pairs import recursion as pairs
from genkern.core.pairs import steps as pairs_steps
from genkern.core.pairs.plain import pair_log_plain
from genkern.core.pairs.recursion import PairSide, pair_log, pair_log_factors, pair_log_values

SHAPES = [
    (1, 1),
    (2, 3),
    (3, 2),
    (2, 6),
    (4, 4),
    (6, 6),
    (7, 5),
    (5, 12),
    (12, 12),
    (13, 4),
    (4, 13),
    (9, 16),
    (17, 16),
    (26, 30),
]


def random_side(rng, a, n, rho=1.0, zeros=0.0, stay=0.0):
    """Return a PairSide of random models that stay where they are; a share of the transitions is impossible."""
    transitions = (1.0 - stay) * rng.dirichlet(np.ones(n), (a, n)) + stay * np.eye(n)
    if zeros:
        keep = rng.random((a, n, n)) >= zeros
        keep[:, np.arange(n), (np.arange(n) + 1) % n] = True
        transitions = transitions * keep
        transitions /= transitions.sum(axis=-1, keepdims=True)
    return PairSide(rng.dirichlet(np.ones(n), a) ** rho, transitions**rho, rng.random((a, n)) ** rho)


def random_psi(rng, a, n, b, m, low=0.05):
    """Return elementary kernels between ``low`` and one."""
    return rng.uniform(low, 1.0, (a, n, b, m))


def plain(left, right, log_psi, length):
    """Return log k of all pairs by the plain loop."""
    with np.errstate(divide="ignore"):
        logs = [
            [PairSide(*(np.log(part[i]) for part in side)) for i in range(len(side.start))] for side in (left, right)
        ]
    return np.array(
        [[pair_log_plain(p, q, log_psi[i, :, j], length) for j, q in enumerate(logs[1])] for i, p in enumerate(logs[0])]
    )


def matrix_power(left, right, psi, length):
    """Return log k of one pair by repeated squaring of the (n m, n m) matrix of state pairs."""
    step = np.einsum("ij,kl,jl->ikjl", left.transitions[0], right.transitions[0], psi).reshape(psi.size, psi.size)
    power, log_power, total, log_total, left_over = step, 0.0, np.eye(psi.size), 0.0, length - 1
    while left_over:
        if left_over % 2:
            total = total @ power
            log_total += log_power + np.log(total.max())
            total = total / total.max()
        power = power @ power
        log_power = 2 * log_power + np.log(power.max())
        power = power / power.max()
        left_over //= 2
    start = (np.outer(left.start[0], right.start[0]) * psi).ravel()
    return np.log(start @ total @ np.outer(left.end[0], right.end[0]).ravel()) + log_total


def enumerate_kernel(p, q, length, rho):
    """Return Σ over observations and both state paths of (p(x, s) q(x, s'))^ρ for models (start, A, B, end)."""

    def sum_over_paths(model, x):
        start, transitions, emissions, end = model
        total = 0.0
        for path in itertools.product(range(len(start)), repeat=length):
            weight = start[path[0]] * end[path[-1]]
            for t, state in enumerate(path):
                weight *= emissions[state, x[t]] * (transitions[path[t - 1], state] if t else 1.0)
            total += weight**rho
        return total

    symbols = range(p[2].shape[1])
    return sum(sum_over_paths(p, x) * sum_over_paths(q, x) for x in itertools.product(symbols, repeat=length))


@pytest.mark.parametrize("rho", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(("n", "m", "length"), [(1, 2, 1), (2, 2, 3), (3, 2, 4), (2, 3, 2)])
def test_equals_enumeration(n, m, length, rho):
    rng = np.random.default_rng(n * 100 + m * 10 + length)
    models = []
    for k in (n, m):
        emissions = rng.dirichlet(np.ones(3), k)
        emissions[0, 1] = 0.0
        models.append((rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k), k), emissions, rng.random(k)))
    sides = [PairSide(s[None] ** rho, a[None] ** rho, e[None] ** rho) for s, a, _, e in models]
    psi = (models[0][2] ** rho @ (models[1][2] ** rho).T)[None, :, None, :]
    expected = np.log(enumerate_kernel(*models, length, rho))
    np.testing.assert_allclose(pair_log_values(*sides, psi, length), [[expected]], rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(pair_log(*sides, np.log(psi), length), [[expected]], rtol=1e-13, atol=1e-13)
    factors = [model[2][None] ** rho for model in models]
    np.testing.assert_allclose(pair_log_factors(*sides, *factors, length), [[expected]], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(("n", "m"), SHAPES)
@pytest.mark.parametrize("length", [1, 2, 30])
def test_fast_equals_plain(n, m, length):
    rng = np.random.default_rng(n + m)
    left, right = random_side(rng, 2, n, zeros=0.3), random_side(rng, 10, m, rho=0.5, zeros=0.3)
    psi = random_psi(rng, 2, n, 10, m)
    psi[rng.random(psi.shape) < 0.1] = 0.0
    with np.errstate(divide="ignore"):
        log_psi = np.log(psi)
    expected = plain(left, right, log_psi, length)
    np.testing.assert_allclose(pair_log(left, right, log_psi, length), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(pair_log_values(left, right, psi, length), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 30])
@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_factors_equal_plain(n, m, length, count):
    """Few factors make the first and the last step cheap, many do not."""
    rng = np.random.default_rng(n + m)
    left, right = random_side(rng, 2, n, zeros=0.3), random_side(rng, 10, m, rho=0.5, zeros=0.3)
    factors, others = rng.random((2, n, count)), rng.random((10, m, count))
    factors[rng.random(factors.shape) < 0.1] = 0.0
    with np.errstate(divide="ignore"):
        expected = plain(left, right, np.log(np.einsum("aik,bjk->aibj", factors, others)), length)
    np.testing.assert_allclose(pair_log_factors(left, right, factors, others, length), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("n", "m"), [(7, 11), (15, 22)])
def test_tiles_do_not_matter(n, m, monkeypatch):
    """Machines with more registers have larger tiles, and the same results to the last bit."""
    rng = np.random.default_rng(n)
    left, right = random_side(rng, 2, n), random_side(rng, 3, m)
    psi, factors, others = random_psi(rng, 2, n, 3, m), rng.random((2, n, 4)), rng.random((3, m, 4))
    results, chosen = [], set()
    for registers in (6, 25):
        monkeypatch.setattr(pairs_steps, "TILE", registers)
        pairs_steps.tile_of.cache_clear()
        results.append([pair_log_values(left, right, psi, 30), pair_log_factors(left, right, factors, others, 30)])
        chosen.add(tuple(map(len, pairs_steps.tile_of(n, m if m <= 12 else -(-m // 8), m <= 12))))
    pairs_steps.tile_of.cache_clear()
    assert len(chosen) == 2
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 2), (3, 5), (14, 13), (100, 1)])
@pytest.mark.parametrize("length", [100, 100_000])
@pytest.mark.parametrize("stay", [0.0, 0.95])
def test_long_equals_matrix_power(n, m, length, stay):
    rng = np.random.default_rng(n)
    left, right = random_side(rng, 1, n, stay=stay), random_side(rng, 1, m, stay=stay)
    psi = random_psi(rng, 1, n, 1, m, low=0.9)
    expected = matrix_power(left, right, psi[0, :, 0], length)
    np.testing.assert_allclose(pair_log_values(left, right, psi, length), [[expected]], rtol=1e-12)
    np.testing.assert_allclose(pair_log(left, right, np.log(psi), length), [[expected]], rtol=1e-12)


def test_periodic_chain_never_settles():
    cycle = PairSide(np.array([[1.0, 0.0]]), np.array([[[0.0, 1.0], [1.0, 0.0]]]), np.array([[1.0, 0.25]]))
    one = PairSide(np.ones((1, 1)), np.ones((1, 1, 1)), np.ones((1, 1)))
    psi = np.array([[[[0.5]], [[0.125]]]])
    for length in (999, 1000):
        even = length // 2
        expected = (length - even) * np.log(0.5) + even * np.log(0.125) + (0.0 if length % 2 else np.log(0.25))
        np.testing.assert_allclose(pair_log_values(cycle, one, psi, length), [[expected]], rtol=1e-13)


def test_small_but_growing_weight_is_not_given_up():
    # From the first state, favoured at the start, the second is hardly reached, but fits far better.
    start, leave = np.array([[1.0 - 1e-90, 1e-90]]), 1e-85
    chain = PairSide(start, np.array([[[1.0 - leave, leave], [0.0, 1.0]]]), np.ones((1, 2)))
    one = PairSide(np.ones((1, 1)), np.ones((1, 1, 1)), np.ones((1, 1)))
    psi = np.array([[[[0.1]], [[1.0]]]])
    # Paths leave before observation t = 1, 2, ...: 0.1^t leave; all sum up to leave / 9 and the start itself.
    expected = np.log(leave * 0.1 / 0.9 + 1e-90)
    np.testing.assert_allclose(pair_log_values(chain, one, psi, 500), [[expected]], rtol=1e-12)


@pytest.mark.parametrize("ends", [(0.0, 1.0), (1e-20, 1.0), (1.0, 0.0), (1.0, 1.0)])
@pytest.mark.parametrize("leave", [0.0, 0.1])
@pytest.mark.parametrize("size", [2, 14])
def test_what_the_end_weights_let_through_decides_when_to_stop(ends, leave, size):
    """The first state outlives the second, but may have no end weight, or hardly any."""
    transitions = np.eye(size)[None].copy()
    transitions[0, 1, :2] = leave, 1.0 - leave
    start, end = np.zeros((1, size)), np.zeros((1, size))
    start[0, :2], end[0, :2] = 0.5, ends
    chain = PairSide(start, transitions, end)
    one = PairSide(np.ones((1, 1)), np.ones((1, 1, 1)), np.ones((1, 1)))
    psi = np.ones((1, size, 1, 1))
    psi[0, 1] = 0.5
    stays = 0.5 * (1.0 - leave)
    for length in (40, 200):
        # The mass of the second state, and of the first: what began there and what came over.
        second = 0.5 * 0.5 * stays ** (length - 1)
        first = 0.5 + 0.25 * leave * (1.0 - stays ** (length - 1)) / (1.0 - stays)
        expected = np.log(ends[0] * first + ends[1] * second)
        np.testing.assert_allclose(pair_log_values(chain, one, psi, length), [[expected]], rtol=1e-12)
        factors = pair_log_factors(chain, one, psi[:, :, 0], np.ones((1, 1, 1)), length)
        np.testing.assert_allclose(factors, [[expected]], rtol=1e-12)


@pytest.mark.parametrize("length", [100, 200])
def test_entries_that_vanished_matter_in_the_steps_left_out(length):
    """A state hardly ever emitted leads to one that fits far better, long after the recursion has settled."""
    transitions = np.array([[[0.9, 0.1, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]])
    chain = PairSide(np.array([[1.0, 0.0, 0.0]]), transitions, np.ones((1, 3)))
    one = PairSide(np.ones((1, 1)), np.ones((1, 1, 1)), np.ones((1, 1)))
    log_psi = np.array([-10.0, -800.0, 0.0]).reshape(1, 3, 1, 1)
    np.testing.assert_allclose(pair_log(chain, one, log_psi, length), plain(chain, one, log_psi, length), rtol=1e-12)


def test_vanished_entries_alone_are_no_reason_to_redo(monkeypatch):
    redone = []
    monkeypatch.setattr(pairs, "redo_pairs", lambda *args: redone.append(args))
    rng = np.random.default_rng(10)
    side, log_psi = random_side(rng, 3, 20), np.log(random_psi(rng, 3, 20, 3, 20, low=0.9))
    log_psi[0, 0, 1, 0] = -800.0
    pair_log(side, side, log_psi, 1000)
    assert not redone


@pytest.mark.parametrize("part", ["start", "end"])
@pytest.mark.parametrize("length", [3, 5])
def test_factors_that_vanish_before_they_are_scaled(part, length):
    rng = np.random.default_rng(11)
    side = random_side(rng, 2, 3)
    side = side._replace(**{part: getattr(side, part) * 1e-20})
    factors = rng.uniform(0.5, 1.0, (2, 3, 2)) * 1e-140
    expected = plain(side, side, np.log(np.einsum("aik,bjk->aibj", factors * 1e140, factors * 1e140)), length)
    expected += 2 * length * np.log(1e-140)
    np.testing.assert_allclose(pair_log_factors(side, side, factors, factors, length), expected, rtol=1e-12)


@pytest.mark.parametrize("n", [3, 13])
def test_large_values_beside_which_others_vanish(n):
    """A state hardly ever emitted leads to one that fits far better, as above, with values instead of logarithms."""
    transitions = np.eye(n)[None].copy()
    transitions[0, :2, :3] = [[0.9, 0.1, 0.0], [0.0, 0.5, 0.5]]
    chain = PairSide(np.eye(n)[:1], transitions, np.ones((1, n)))
    one = PairSide(np.ones((1, 1)), np.ones((1, 1, 1)), np.ones((1, 1)))
    psi = np.full((1, n, 1, 1), 1e300)
    psi[0, 0], psi[0, 1] = 1e290, 1e-100
    expected = plain(chain, one, np.log(psi), 50)
    assert expected[0, 0] > 50 * np.log(1e290)
    np.testing.assert_allclose(pair_log_values(chain, one, psi, 50), expected, rtol=1e-13)


@pytest.mark.parametrize(("n", "m"), [(2, 3), (3, 2), (9, 13)])
def test_pairs_are_the_diagonal_of_all(n, m):
    rng = np.random.default_rng(12)
    for g in (1, 7, 21):
        sides = random_side(rng, g, n), random_side(rng, g, m)
        psi = rng.random((g, n, 3)) * rng.choice([1.0, 1e-200], (g, 1, 1)), rng.random((g, m, 3))
        paired = pair_log_factors(*sides, *psi, 90, paired=True)
        np.testing.assert_array_equal(paired, pair_log_factors(*sides, *psi, 90).diagonal())


@pytest.mark.parametrize("n", [2, 14])
def test_underflow_is_redone_in_logs(n):
    # Two states alternate; the second's ψ is far below what a double holds beside the first's.
    transitions = np.zeros((1, n, n))
    transitions[0, np.arange(n), (np.arange(n) + 1) % 2] = 1.0
    start = np.zeros((1, n))
    start[0, 0] = 1.0
    chain = PairSide(start, transitions, np.ones((1, n)))
    log_psi = np.full((1, n, 1, n), -np.inf)
    log_psi[0, 0, 0, 0], log_psi[0, 1, 0, 1] = 3.0, -2500.0
    np.testing.assert_allclose(pair_log(chain, chain, log_psi, 30), [[15 * 3.0 - 15 * 2500.0]], rtol=1e-14)
    assert pair_log_values(chain, chain, np.exp(log_psi), 30)[0, 0] == -np.inf


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 30, 1000])
@pytest.mark.parametrize("n", [2, 14])
def test_values_that_underflow_between_two_looks(n, length):
    transitions = np.zeros((1, n, n))
    transitions[0, np.arange(n), (np.arange(n) + 1) % 2] = 1.0
    chain = PairSide(np.eye(n)[:1], transitions, np.ones((1, n)))
    psi = np.zeros((1, n, 1, n))
    psi[0, 0, 0, 0], psi[0, 1, 0, 1] = 1.0, 1e-250
    expected = length // 2 * np.log(1e-250)
    np.testing.assert_allclose(pair_log_values(chain, chain, psi, length), [[expected]], rtol=1e-13)


def test_weight_lost_beside_a_larger_one_is_found_again():
    # The path that starts badly is the better one in the end: e^-800 against e^(-100 * 29).
    side = PairSide(np.full((1, 2), 0.5), np.array([[[1.0, 0.0], [0.0, 1.0]]]), np.ones((1, 2)))
    three = PairSide(np.array([[1.0, 0.0]]), np.array([[[0.0, 1.0], [0.0, 1.0]]]), np.ones((1, 2)))
    log_psi = np.array([[[[0.0, -100.0]], [[-800.0, 0.0]]]])
    expected = np.log(0.5) + np.logaddexp(-2900.0, -800.0)
    np.testing.assert_allclose(pair_log(side, three, log_psi, 30), [[expected]], rtol=1e-14)


@pytest.mark.parametrize("scale", [1e-250, 1e-30, 1e30, 1e250])
@pytest.mark.parametrize("n", [3, 13])
def test_values_of_any_size(scale, n):
    rng = np.random.default_rng(1)
    side, psi = random_side(rng, 3, n), random_psi(rng, 3, n, 3, n)
    expected = pair_log_values(side, side, psi, 50) + 50 * np.log(scale)
    np.testing.assert_allclose(pair_log_values(side, side, psi * scale, 50), expected, rtol=1e-13)
    factors = rng.uniform(0.05, 1.0, (3, n, 2))
    expected = pair_log_factors(side, side, factors, factors, 50) + 50 * np.log(scale)
    root = np.sqrt(scale)
    np.testing.assert_allclose(pair_log_factors(side, side, factors * root, factors * root, 50), expected, rtol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 3, 13, 17])
def test_the_largest_entry_may_stand_anywhere(n):
    rng = np.random.default_rng(9)
    side = random_side(rng, 1, n)
    for place in {0, n * n // 2, n * n - 1}:
        log_psi = np.full(n * n, -1000.0)
        log_psi[place] = 0.0
        log_psi = log_psi.reshape(1, n, 1, n)
        np.testing.assert_allclose(pair_log(side, side, log_psi, 4), plain(side, side, log_psi, 4), rtol=1e-12)


@pytest.mark.parametrize("n", [3, 13])
def test_disjoint_supports(n):
    rng = np.random.default_rng(2)
    side = random_side(rng, 9, n)
    log_psi = np.log(random_psi(rng, 9, n, 9, n))
    log_psi[2, :, 5] = log_psi[5, :, 2] = -np.inf
    log_k = pair_log(side, side, log_psi, 12)
    expected = np.zeros((9, 9), dtype=bool)
    expected[2, 5] = expected[5, 2] = True
    np.testing.assert_array_equal(np.isneginf(log_k), expected)
    np.testing.assert_array_equal(np.isneginf(pair_log_values(side, None, np.exp(log_psi), 12)), expected)
    assert np.isfinite(log_k[~expected]).all()


@pytest.mark.parametrize(("n", "m"), [(3, 3), (7, 10), (13, 13), (14, 9)])
@pytest.mark.parametrize("run", [pair_log, pair_log_values, pair_log_factors])
def test_a_pair_depends_on_nothing_else(n, m, run):
    rng = np.random.default_rng(3)
    left, right = random_side(rng, 27, n, zeros=0.5), random_side(rng, 19, m)
    if run is pair_log_factors:
        # Some pairs are far from others in size, and scaled.
        psi = [rng.random((27, n, 4)) * rng.choice([1.0, 1e-30], (27, 1, 1)), rng.random((19, m, 4))]
    else:
        psi = [random_psi(rng, 27, n, 19, m) ** rng.choice([1, 60], (27, 1, 19, 1))]
    if run is pair_log:
        psi = [np.log(psi[0])]
    whole = run(left, right, *psi, 200)
    rows, columns = rng.permutation(27)[:14], rng.permutation(19)[:11]
    cut = [psi[0][rows], psi[1][columns]] if run is pair_log_factors else [psi[0][rows][:, :, columns]]
    some = run(PairSide(*(part[rows] for part in left)), PairSide(*(part[columns] for part in right)), *cut, 200)
    np.testing.assert_array_equal(some, whole[np.ix_(rows, columns)])


@pytest.mark.parametrize("run", [pair_log_values, pair_log_factors])
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_what_comes_after_a_pair_has_settled_does_not_matter(run, seed):
    """Of eight models in a vector some settle soon, and vanish while others go on."""
    rng = np.random.default_rng(seed)
    left = random_side(rng, 4, 2)
    right = random_side(rng, 8, 3)
    slow = random_side(rng, 8, 3, stay=0.999)
    right.transitions[::2] = slow.transitions[::2]
    factors, others = rng.uniform(0.01, 1.0, (4, 2, 2)), rng.uniform(0.01, 1.0, (8, 3, 2))
    others *= 10.0 ** -rng.integers(200, 220, (8, 1, 1))
    psi = [factors, others] if run is pair_log_factors else [np.einsum("aik,bjk->aibj", factors, others)]
    whole = run(left, right, *psi, 400)
    for i, j in itertools.product(range(4), range(8)):
        one, other = (PairSide(*(part[[k]] for part in side)) for side, k in ((left, i), (right, j)))
        cut = [factors[[i]], others[[j]]] if run is pair_log_factors else [psi[0][[i]][:, :, [j]]]
        assert run(one, other, *cut, 400)[0, 0] == whole[i, j]


@pytest.mark.parametrize(("n", "m"), [(3, 5), (13, 4), (16, 17)])
def test_sides_exchanged(n, m):
    rng = np.random.default_rng(4)
    left, right, psi = random_side(rng, 5, n), random_side(rng, 9, m), random_psi(rng, 5, n, 9, m)
    turned = pair_log_values(right, left, psi.transpose(2, 3, 0, 1), 20)
    np.testing.assert_array_equal(turned.T, pair_log_values(left, right, psi, 20))
    factors, others = rng.random((5, n, 4)), rng.random((9, m, 4))
    turned = pair_log_factors(right, left, others, factors, 20)
    np.testing.assert_array_equal(turned.T, pair_log_factors(left, right, factors, others, 20))


@pytest.mark.parametrize("n", [1, 3, 12, 13])
def test_half_is_symmetric_and_equal_to_whole(n):
    rng = np.random.default_rng(5)
    side = random_side(rng, 21, n)
    emissions, mixed = rng.dirichlet(np.ones(4), (21, n)), np.eye(4) + 0.3
    psi = np.einsum("aik,bjk->aibj", emissions, emissions)
    halves = [
        pair_log_values(side, None, psi, 25),
        pair_log_factors(side, None, emissions, None, 25),
        pair_log_factors(side, None, emissions, emissions @ mixed, 25),  # F F′ᵀ is symmetric, and F′ is not F
    ]
    wholes = [
        pair_log_values(side, side, psi, 25),
        pair_log_factors(side, side, emissions, emissions, 25),
        pair_log_factors(side, side, emissions, emissions @ mixed, 25),
    ]
    for half, whole in zip(halves, wholes, strict=True):
        np.testing.assert_array_equal(half, half.T)
        np.testing.assert_array_equal(np.triu(half), np.triu(whole))
        np.testing.assert_allclose(half, whole, rtol=1e-13)
    np.testing.assert_allclose(*halves[:2], rtol=1e-13)


def test_batches_of_every_size(monkeypatch):
    rng = np.random.default_rng(6)
    for n in (3, 13):
        side, psi = random_side(rng, 19, n), random_psi(rng, 19, n, 19, n)
        psi = psi + psi.transpose(2, 3, 0, 1)
        whole = [pair_log_values(side, other, psi, 40) for other in (side, None)]
        for size in (1, 400, 3000):
            monkeypatch.setattr(pairs, "BATCH", size)
            for other, expected in zip((side, None), whole):
                np.testing.assert_array_equal(pair_log_values(side, other, psi, 40), expected)
        monkeypatch.undo()


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 40), st.floats(-300.0, 300.0), st.integers(0, 2**32 - 1))
def test_algebra(n, m, length, shift, seed):
    rng = np.random.default_rng(seed)
    left, right, psi = random_side(rng, 2, n), random_side(rng, 3, m), random_psi(rng, 2, n, 3, m)
    log_k = pair_log(left, right, np.log(psi), length)
    np.testing.assert_allclose(
        pair_log(left, right, np.log(psi) + shift, length), log_k + length * shift, rtol=1e-11, atol=1e-11
    )
    order = rng.permutation(n)
    renamed = PairSide(left.start[:, order], left.transitions[:, order][:, :, order], left.end[:, order])
    np.testing.assert_allclose(pair_log(renamed, right, np.log(psi[:, order]), length), log_k, rtol=1e-12, atol=1e-12)
    better = pair_log(left, right, np.log(psi * 1.5), length)
    np.testing.assert_allclose(better - log_k, length * np.log(1.5), rtol=1e-9)


def test_no_pairs():
    rng = np.random.default_rng(7)
    side = random_side(rng, 0, 3)
    assert pair_log(side, random_side(rng, 4, 2), np.empty((0, 3, 4, 2)), 5).shape == (0, 4)
    assert pair_log(side, None, np.empty((0, 3, 0, 3)), 5).shape == (0, 0)
    assert pair_log_factors(side, None, np.empty((0, 3, 4)), None, 5).shape == (0, 0)


def test_errors_name_what_is_wrong():
    rng = np.random.default_rng(8)
    side, psi = random_side(rng, 2, 3), random_psi(rng, 2, 3, 2, 3)
    with pytest.raises(ValueError, match=r"psi must have shape \(2, 3, 2, 3\).*Got \(2, 3, 3, 2\)"):
        pair_log_values(side, None, psi.transpose(0, 1, 3, 2), 5)
    with pytest.raises(ValueError, match=r"at least 1\. Got 0"):
        pair_log_values(side, None, psi, 0)
    with pytest.raises(ValueError, match=r"transitions \(a, n, n\).*Got \(2, 3\), \(2, 3\)"):
        pair_log_values(side._replace(transitions=side.start), None, psi, 5)
    psi[0, 1, 1, 2] = np.nan
    for run in (pair_log, pair_log_values):
        with pytest.raises(ValueError, match=r"psi must be finite.*pair \(0, 1\)"):
            run(side, side, psi, 5)
    psi[0, 1, 1, 2] = np.inf
    with pytest.raises(ValueError, match=r"psi must be finite.*pair \(0, 1\)"):
        pair_log(side, side, psi, 5)
    factors = rng.random((2, 3, 4))
    with pytest.raises(ValueError, match=r"psi must have shape \(2, 3, 2, 3\).*Got \(2, 3, 2, 2\)"):
        pair_log_factors(side, side, factors, factors[:, :2], 5)
    with pytest.raises(ValueError, match=r"with the same k >= 1\. Got \(2, 3, 4\) and \(2, 3, 2\)"):
        pair_log_factors(side, side, factors, factors[:, :, :2], 5)
    with pytest.raises(ValueError, match="with right, others must be given, too"):
        pair_log_factors(side, side, factors, None, 5)
    with pytest.raises(ValueError, match=r"psi must have shape \(2, 3, 2, 3\).*Got \(2, 3, 6\)"):
        pair_log(side, side, np.zeros((2, 3, 6)), 5)
    with pytest.raises(ValueError, match=r"n >= 1\. Got \(2, 0\)"):
        pair_log(PairSide(np.ones((2, 0)), np.ones((2, 0, 0)), np.ones((2, 0))), side, np.ones((2, 0, 2, 3)), 5)
    for part in PairSide._fields:
        wrong = getattr(side, part).copy()
        wrong[1, 0] = np.inf
        with pytest.raises(ValueError, match=f"{part} must be finite. Got inf in model 1"):
            pair_log_factors(side, side._replace(**{part: wrong}), factors, factors, 1)
    factors[1, 2, 3] = np.nan
    with pytest.raises(ValueError, match=r"psi must be finite.*pair \(0, 1\)"):
        pair_log_factors(side, side, factors, factors, 5)


def without_jit():
    """Return results of small cases in both layouts, which the test computes compiled and not."""
    rng = np.random.default_rng(0)
    results = []
    for n, m in ((2, 3), (7, 2), (13, 9)):
        left, right, psi = random_side(rng, 1, n), random_side(rng, 2, m), random_psi(rng, 1, n, 2, m)
        results.append(pair_log(left, right, np.log(psi), 40).tolist())
        results.append(pair_log_values(left, right, psi, 40).tolist())
        factors, others = rng.random((1, n, 3)), rng.random((2, m, 3))
        results.append(pair_log_factors(left, right, factors, others, 40).tolist())
    return results


def test_without_jit():
    program = "from test_core_pairs import without_jit; print(without_jit())"
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.path.dirname(__file__)}
    run = subprocess.run([sys.executable, "-W", "error", "-c", program], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    np.testing.assert_allclose(eval(run.stdout), without_jit(), rtol=1e-13)
