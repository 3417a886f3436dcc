"""Passes over many sequences: every layout against enumeration and reference; independence to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genkern.core.hmm import passes as hmm
from genkern.core.hmm import plan as hmm_plan
from genkern.core.hmm import reference as hmm_reference
from genkern.core.hmm.types import as_problem, empty_gradients
from genkern.core.hmm.viterbi import viterbi_of
from genkern.core.jit import COMPILED
from tests.oracles_hmm import enumerate_object

LARGEST = np.finfo(float).max
compiled = pytest.mark.skipif(not COMPILED, reason="too slow without compilation")

# States and lengths that enumeration can bear.
SMALL = [(1, 7), (2, 7), (3, 6), (4, 5), (5, 4), (8, 3), (9, 3), (12, 3), (16, 3), (20, 3)]


def make(rng, n, lengths, own=False, symbols=3, zeros=0.0, end=False, positions=False, shift=False):
    """Return random chains, evidence and offsets; a share of all probabilities is zero."""
    lengths = np.asarray(lengths)
    chains, offsets = len(lengths) if own else 1, np.concatenate([[0], np.cumsum(lengths)])
    rows = int(offsets[-1]) if positions else chains * symbols

    def thin(array):
        return np.where(rng.random(array.shape) < zeros, 0.0, array)

    weights = thin(rng.dirichlet(np.ones(n), chains)) if end else np.ones((chains, n))
    parameters = hmm.Chains(
        thin(rng.dirichlet(np.ones(n), chains)), thin(rng.dirichlet(np.ones(n), (chains, n))), weights
    )
    table = thin(rng.random((rows, n)))
    if not positions and symbols > 2:
        table.reshape(chains, symbols, n)[:, -1] = 1.0  # the row of a missing symbol
    codes = None if positions else rng.integers(0, symbols, offsets[-1]).astype(np.int32)
    moved = rng.normal(size=rows) if shift else np.zeros(rows)
    return parameters, hmm.Evidence(table, moved, codes), offsets


def run_layout(layout, chains, evidence, offsets, derivatives=True):
    """Run one layout's pass over all objects, with nothing redone."""
    problem, lengths = as_problem(chains, evidence, offsets), np.diff(offsets)
    order, n = np.argsort(lengths, kind="stable"), chains.start.shape[1]
    part = hmm_plan._part(layout, order, lengths, chunks=4)
    plan = hmm_plan.Plan((part,), np.zeros(len(lengths), np.int64), 1)
    out = empty_gradients(problem, len(lengths), hmm_plan.width(plan, n, 0 if evidence.codes is None else 1))
    hmm._run(problem, plan, np.arange(len(lengths)), out, n_jobs=1, derivatives=derivatives)
    return out._replace(emissions=out.emissions[:, :n])


def run_reference(chains, evidence, offsets):
    """Run the reference over all objects, with nothing redone."""
    problem, objects = as_problem(chains, evidence, offsets), np.arange(len(offsets) - 1)
    out = empty_gradients(problem, len(objects), chains.start.shape[1])
    hmm_reference.gradients_of(problem, objects, objects, out)
    return out


def assert_same(got, expected, rtol=1e-11, atol=1e-13):
    """Compare gradients block by block."""
    for name, a, b in zip(hmm.Gradients._fields, got, expected, strict=True):
        np.testing.assert_allclose(a, b.reshape(a.shape), rtol=rtol, atol=atol, err_msg=name)


def assert_enumerated(got, chains, evidence, offsets):
    """Compare all objects' gradients with enumeration."""
    for i in range(len(offsets) - 1):
        expected = enumerate_object(chains, evidence, offsets, i)
        rows = i if evidence.codes is not None else slice(offsets[i], offsets[i + 1])
        tolerance = {"rtol": 1e-10, "atol": 1e-12}
        np.testing.assert_allclose(got.log_prob[i], expected.log_prob, **tolerance)
        np.testing.assert_allclose(got.start[i], expected.start, **tolerance)
        np.testing.assert_allclose(got.transitions[i], expected.transitions, **tolerance)
        np.testing.assert_allclose(got.end[i], expected.end, **tolerance)
        np.testing.assert_allclose(got.emissions[rows], expected.emissions, **tolerance)


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("n", "longest"), SMALL)
def test_gradients_by_enumeration(n, longest, own, positions):
    rng = np.random.default_rng(n)
    case = make(rng, n, [1, 2, longest, 1, 3, longest - 1], own, zeros=0.2, end=True, positions=positions, shift=True)
    got = hmm.gradients(*case)
    assert_enumerated(got, *case)
    np.testing.assert_array_equal(hmm.log_prob(*case), got.log_prob)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("n", "longest"), SMALL[:6])
def test_marginals_and_viterbi_by_enumeration(n, longest, own):
    rng = np.random.default_rng(10 + n)
    chains, evidence, offsets = make(rng, n, [longest, 1, 2, longest], own, end=True, shift=True)
    log_prob, gamma, xi = hmm.marginals(chains, evidence, offsets, pairs=True)
    path, best = hmm.viterbi(chains, evidence, offsets)
    assert xi.shape == (offsets[-1] - 4, n, n)
    for i in range(4):
        expected = enumerate_object(chains, evidence, offsets, i)
        inside = slice(offsets[i], offsets[i + 1])
        np.testing.assert_allclose(gamma[inside], expected.gamma, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(xi[offsets[i] - i : offsets[i + 1] - i - 1], expected.xi, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(best[i], expected.path_log_prob, rtol=1e-12)
        assert tuple(path[inside]) == expected.path
    np.testing.assert_allclose(hmm.marginals(chains, evidence, offsets).states, gamma, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(log_prob, hmm.log_prob(chains, evidence, offsets), rtol=1e-12)


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("n", [1, 2, 4, 8, 9, 20])
def test_best_paths_with_ties_are_those_of_long_logarithms(n, own, positions):
    """Few different probabilities, so that paths tie in sums of another order, which plain rounding tells apart."""
    rng = np.random.default_rng(n)
    lengths = [1, 2, 3, 200, 7, 40, 40, 40]
    chains, evidence, offsets = make(rng, n, lengths, own, zeros=0.2, end=True, positions=positions, shift=True)
    some = np.array([0.1, 0.2, 0.3, 0.7])
    tied = chains._replace(
        transitions=rng.choice(some, chains.transitions.shape), start=np.full_like(chains.start, 0.3)
    )
    for case in (chains, tied):
        few = evidence._replace(table=rng.choice(some, evidence.table.shape)) if case is tied else evidence
        path, best = hmm.viterbi(case, few, offsets, n_jobs=2)
        expected, log_prob = np.empty_like(path), np.empty_like(best)
        with np.errstate(divide="ignore"):
            viterbi_of(as_problem(case, few, offsets), np.arange(len(lengths)), expected, log_prob)
        possible = np.repeat(log_prob > -np.inf, lengths)
        np.testing.assert_array_equal(path[possible], expected[possible])
        np.testing.assert_allclose(best, log_prob, rtol=1e-14)


def test_ranges_and_threads_do_not_change_posteriors_and_paths(monkeypatch):
    case = make(np.random.default_rng(0), 5, [30, 1, 200, 3, 50, 50, 9], False, end=True)
    whole, (path, best) = hmm.marginals(*case), hmm.viterbi(*case)
    monkeypatch.setattr(hmm, "RANGE", 40)
    monkeypatch.setattr(hmm, "WORTH_THREADS", 1)
    for n_jobs in (1, 2):
        cut, (same, equal) = hmm.marginals(*case, n_jobs=n_jobs), hmm.viterbi(*case, n_jobs=n_jobs)
        for a, b in zip((*whole, path, best), (*cut, same, equal), strict=True):
            np.testing.assert_array_equal(a, b)


@compiled
@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9, 12, 16, 20, 33])
@pytest.mark.parametrize(
    ("layout", "own"), [("lanes", False), ("lanes", True), ("groups", False), ("single", False), ("single", True)]
)
def test_layouts_against_reference_compiled(layout, own, n, positions):
    rng = np.random.default_rng(n)
    lengths = np.concatenate([[1, 2, 3, 7, 150], rng.integers(1, 90, 16)])
    case = make(rng, n, lengths, own, zeros=0.1 if n > 2 else 0.0, end=True, positions=positions, shift=True)
    got, expected = run_layout(layout, *case), run_reference(*case)
    assert np.isnan(got.log_prob).sum() == np.isnan(expected.log_prob).sum()
    possible = ~np.isnan(expected.log_prob)
    assert possible.sum() > 10
    for a, b in zip(got[:4], expected[:4], strict=True):
        np.testing.assert_allclose(a[possible], b[possible], rtol=1e-10, atol=1e-12)
    per_object = (len(lengths), -1) if not positions else None
    if per_object:
        a, b = got.emissions.reshape(per_object)[possible], expected.emissions.reshape(per_object)[possible]
    else:
        inside = np.repeat(possible, lengths)
        a, b = got.emissions[inside], expected.emissions[inside]
    np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    only_prob = run_layout(layout, *case, derivatives=False)
    np.testing.assert_array_equal(only_prob.log_prob, got.log_prob)


@compiled
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("symbols", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 8])
def test_few_states_and_symbols_against_reference_compiled(n, symbols, own):
    rng = np.random.default_rng(10 * n + symbols)
    lengths = np.concatenate([[1, 1, 2, 8, 8, 63, 64, 65, 200], rng.integers(1, 90, 40)])
    case = make(rng, n, lengths, own, symbols, end=True, shift=True)
    got, expected = hmm.gradients(*case), run_reference(*case)
    for a, b in zip(got[:4], expected[:4], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(
        got.emissions.reshape(len(lengths), symbols, n),
        expected.emissions[:, :n].reshape(len(lengths), symbols, n),
        rtol=1e-11,
        atol=1e-13,
    )
    np.testing.assert_allclose(hmm.log_prob(*case, own=own), expected.log_prob, rtol=1e-12, atol=1e-11)


@compiled
@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("n", [1, 3, 4, 7, 12, 20])
def test_results_do_not_depend_on_company_compiled(n, own, positions, monkeypatch):
    monkeypatch.setattr(hmm, "WORTH_THREADS", 0)
    rng = np.random.default_rng(n)
    lengths = rng.integers(1, 60, 37)
    chains, evidence, offsets = make(rng, n, lengths, own, zeros=0.05, positions=positions, shift=True)
    whole = hmm.gradients(chains, evidence, offsets)
    for n_jobs in (None, 2, -1):
        for a, b in zip(whole, hmm.gradients(chains, evidence, offsets, n_jobs=n_jobs), strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(whole.log_prob, hmm.log_prob(chains, evidence, offsets, n_jobs=2))
    totals = hmm.gradients(chains, evidence, offsets, totals=True)
    for a, b in zip(totals, hmm.gradients(chains, evidence, offsets, totals=True, n_jobs=2), strict=True):
        np.testing.assert_array_equal(a, b)
    order = rng.permutation(len(lengths))
    for chosen in (order, order[:1], order[:11]):
        part = select(chains, evidence, offsets, chosen)
        got = hmm.gradients(*part, own=own)
        for a, b in zip(got[:4], whole[:4], strict=True):
            np.testing.assert_array_equal(a, b[chosen])
        if positions:
            expected = np.concatenate([whole.emissions[offsets[i] : offsets[i + 1]] for i in chosen])
        else:
            expected = whole.emissions[chosen]
        np.testing.assert_array_equal(got.emissions, expected)


def select(chains, evidence, offsets, chosen):
    """Return the same problem for a choice of its objects."""
    positions = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in chosen])
    own = len(chains.start) > 1
    chains_chosen = hmm.Chains(*(block[chosen] for block in chains)) if own else chains
    if evidence.codes is None:
        part = hmm.Evidence(evidence.table[positions], evidence.shift[positions], None)
    elif own:
        symbols = len(evidence.table) // len(chains.start)
        rows = (np.asarray(chosen)[:, None] * symbols + np.arange(symbols)).ravel()
        part = hmm.Evidence(evidence.table[rows], evidence.shift[rows], evidence.codes[positions])
    else:
        part = evidence._replace(codes=evidence.codes[positions])
    lengths = np.diff(offsets)[chosen]
    return chains_chosen, part, np.concatenate([[0], np.cumsum(lengths)])


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("n", [3, 9])
def test_totals_are_sums(n, positions):
    case = make(np.random.default_rng(n), n, [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], positions=positions, end=True)
    each, total = hmm.gradients(*case), hmm.gradients(*case, totals=True)
    np.testing.assert_array_equal(total.log_prob, each.log_prob)
    for a, b in zip(total[1:4], each[1:4], strict=True):
        np.testing.assert_allclose(a[0], b.sum(axis=0), rtol=1e-13)
    if positions:
        np.testing.assert_array_equal(total.emissions, each.emissions)
    else:
        assert total.emissions.shape == (1, 3, n)
        np.testing.assert_allclose(total.emissions[0], each.emissions.sum(axis=0), rtol=1e-13)


@compiled
@pytest.mark.parametrize(("n", "own"), [(2, False), (3, True), (8, False), (11, False), (14, True)])
def test_long_sequences_compiled(n, own):
    length = 100_000
    chains, evidence, offsets = make(np.random.default_rng(n), n, [length, 5, length // 3], own)
    got, expected = hmm.gradients(chains, evidence, offsets), run_reference(chains, evidence, offsets)
    np.testing.assert_allclose(got.log_prob, expected.log_prob, rtol=1e-12)
    np.testing.assert_allclose((got.start * chains.start).sum(axis=1), 1.0, rtol=1e-9)
    counts = (got.transitions * chains.transitions).sum(axis=(1, 2))
    np.testing.assert_allclose(counts, np.diff(offsets) - 1, rtol=1e-9)
    np.testing.assert_allclose(got.transitions, expected.transitions, rtol=1e-8)
    np.testing.assert_allclose(got.emissions.reshape(expected.emissions.shape), expected.emissions, rtol=1e-8)


@compiled
@pytest.mark.parametrize(("n", "own"), [(3, False), (20, False)])
def test_the_longest_come_one_by_one_compiled(n, own, monkeypatch):
    case = make(np.random.default_rng(n), n, [40, 7, 41, 3, 200], own)
    expected = hmm.gradients(*case)
    monkeypatch.setattr(hmm_plan, "LARGEST_GROUP", 40 * n * 16)
    hmm_plan._plan.cache_clear()
    plan = hmm_plan.plan(case[2], n, own, 1)
    got = hmm.gradients(*case)
    hmm_plan._plan.cache_clear()
    assert [part.layout for part in plan.parts] == ["quads" if n == 3 else "groups", "single"]
    assert_same(got, expected)


def two_islands(rng, n, faint):
    """Return chains of two sets of states that never meet; the second set starts with a faint probability."""
    half = n // 2
    transitions = np.zeros((1, n, n))
    transitions[0, :half, :half] = rng.dirichlet(np.ones(half), half)
    transitions[0, half:, half:] = rng.dirichlet(np.ones(n - half), n - half)
    start = np.where(np.arange(n) < half, 1.0 / half, faint)[None]
    return hmm.Chains(start, transitions, np.ones((1, n))), half


@pytest.mark.parametrize("totals", [False, True])
@pytest.mark.parametrize("n", [2, 5, 10])
def test_underflow_is_redone_in_logarithms(n, totals):
    """Three symbols press the second island to 1e-450, then one that only it can emit: log P is finite."""
    rng = np.random.default_rng(n)
    chains, half = two_islands(rng, n, faint=0.1)
    table = np.ones((3, n))
    table[0, half:] = 1e-150
    table[1, :half] = 0.0
    codes = np.array([0, 0, 0, 1, 2, 0, 1, 2, 2, 1, 1], np.int32)
    offsets = np.array([0, 4, 6, 9, 11])
    evidence = hmm.Evidence(table, np.zeros(3), codes)
    log_prob = hmm.log_prob(chains, evidence, offsets)
    second = 0.1 * (n - half)
    expected = [np.log(second) + 3 * np.log(1e-150), np.log(1.0 + second * 1e-150)]
    expected += [np.log(second), np.log(second)]
    np.testing.assert_allclose(log_prob, expected, rtol=1e-12, atol=1e-15)
    got = hmm.gradients(chains, evidence, offsets, totals=totals)
    np.testing.assert_array_equal(got.log_prob, log_prob)
    # With the island's first letter taken out, the same sequence is harmless; derivatives agree up to that factor.
    shifted = hmm.Evidence(np.where(np.arange(n) >= half, 1.0, 0.0) * np.ones((3, 1)), np.zeros(3), codes)
    alone = hmm.gradients(chains, shifted, offsets)
    if totals:
        assert np.isfinite(got.transitions).all()
        counts = (got.start * chains.start).sum()
        np.testing.assert_allclose(counts, 4.0, rtol=1e-12)
    else:
        np.testing.assert_allclose(got.start[0, half:], alone.start[0, half:], rtol=1e-12)
        np.testing.assert_allclose(got.transitions[0, half:, half:], alone.transitions[0, half:, half:], rtol=1e-12)
        assert (got.start[0] * chains.start[0]).sum() == pytest.approx(1.0, rel=1e-12)
    log_prob, gamma, xi = hmm.marginals(chains, evidence, offsets, pairs=True)
    np.testing.assert_allclose(gamma.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(gamma[:4, half:].sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(xi.sum(axis=(1, 2)), 1.0, rtol=1e-12)


@pytest.mark.parametrize("positions", [False, True])
def test_redone_objects_leave_their_neighbours_alone(positions):
    n, rng = 4, np.random.default_rng(0)
    chains, half = two_islands(rng, n, faint=0.1)
    table = np.ones((3, n))
    table[0, half:] = 1e-150
    table[1, :half] = 0.0
    codes = np.array([2, 0, 2, 0, 0, 0, 1, 1, 2, 2], np.int32)
    offsets = np.array([0, 3, 7, 10])
    evidence = hmm.Evidence(table, np.zeros(3), codes)
    if positions:
        evidence = hmm.Evidence(table[codes], np.zeros(10), None)
    got = hmm.gradients(chains, evidence, offsets, totals=True)
    for i in (0, 2):
        alone = hmm.gradients(*select(chains, evidence, offsets, [i]), totals=True)
        assert got.log_prob[i] == alone.log_prob[0]
        if positions:
            np.testing.assert_array_equal(got.emissions[offsets[i] : offsets[i + 1]], alone.emissions)
    each = hmm.gradients(chains, evidence, offsets)
    np.testing.assert_allclose(got.transitions[0], each.transitions.sum(axis=0), rtol=1e-12)
    assert np.isfinite(got.log_prob).all()


@pytest.mark.parametrize("totals", [False, True])
@pytest.mark.parametrize("n", [3, 9])
def test_impossible_objects(n, totals):
    rng = np.random.default_rng(n)
    chains, evidence, offsets = make(rng, n, [3, 4, 1, 2])
    evidence.table[0] = 0.0
    codes = np.array([1, 2, 1, 1, 1, 0, 2, 0, 2, 2], np.int32)
    evidence = evidence._replace(codes=codes)
    got = hmm.gradients(chains, evidence, offsets, totals=totals)
    np.testing.assert_array_equal(np.isneginf(got.log_prob), [False, True, True, False])
    np.testing.assert_array_equal(got.log_prob, hmm.log_prob(chains, evidence, offsets))
    for block in got[1:]:
        assert np.isfinite(block).all()
        if not totals:
            assert not block[1:3].any()
            assert block[[0, 3]].any()
    _, gamma, _ = hmm.marginals(chains, evidence, offsets)
    assert not gamma[3:8].any()
    np.testing.assert_allclose(gamma[[0, 1, 2, 8, 9]].sum(axis=1), 1.0, rtol=1e-12)
    assert np.isneginf(hmm.viterbi(chains, evidence, offsets)[1][1])
    assert [hmm.dead_position(chains, evidence, offsets, i) for i in (1, 2)] == [2, 0]
    closed = chains._replace(end=np.zeros((1, n)))
    assert hmm.dead_position(closed, evidence, offsets, 0) == 3
    assert np.isneginf(hmm.log_prob(closed, evidence, offsets)).all()


@pytest.mark.parametrize(("objects", "totals"), [(1, False), (60, False), (60, True)])
@pytest.mark.parametrize("n", [2, 4, 10])
def test_derivatives_beyond_the_range_are_the_largest_number(n, objects, totals):
    """A state that cannot be reached explains the sequence 1e100 times better at each step: 1e600 overall."""
    chains, half = two_islands(np.random.default_rng(n), n, faint=0.0)
    table = np.where(np.arange(n) < half, 1e-100, 1.0)[None]
    evidence = hmm.Evidence(table, np.zeros(1), np.zeros(6 * objects, np.int32))
    got = hmm.gradients(chains, evidence, 6 * np.arange(objects + 1), totals=totals)
    np.testing.assert_allclose(got.log_prob, 6 * np.log(1e-100), rtol=1e-12)
    np.testing.assert_array_equal(got.start[:, half:], LARGEST)
    for block in got:
        assert np.isfinite(block).all()
    np.testing.assert_allclose((got.start * chains.start).sum(), objects, rtol=1e-12)


@pytest.mark.parametrize("totals", [False, True])
@pytest.mark.parametrize("n", [2, 8, 20])
def test_emission_derivatives_beyond_the_range(n, totals):
    """Once impossible, the second island would explain what follows better by 1e170, at a mass of 1e140."""
    chains, half = two_islands(np.random.default_rng(n), n, faint=0.5)
    first = np.arange(n) < half
    table = np.stack([np.full(n, 1e20), np.where(first, 1e-140, 0.0), np.where(first, 1e-10, 1.0)])
    codes = np.repeat([0, 1, 2, 0, 2], [7, 1, 17, 2, 1]).astype(np.int32)
    evidence = hmm.Evidence(table, np.zeros(3), codes)
    got = hmm.gradients(chains, evidence, np.array([0, 25, 28]), totals=totals)
    np.testing.assert_allclose(got.log_prob[0], np.log(1e140) - np.log(1e140) + 17 * np.log(1e-10), rtol=1e-12)
    assert (got.emissions[0, 1, half:] == LARGEST).all()
    for block in got:
        assert np.isfinite(block).all()
    counts = (got.transitions * chains.transitions).sum()
    np.testing.assert_allclose(counts, 24 + 2, rtol=1e-9)


@pytest.mark.parametrize("n", [3, 10])
@pytest.mark.parametrize("scale", [1e-290, 1e290])
def test_rows_of_any_size(n, scale):
    """Rows may be tiny or huge densities; a factor only moves log P and divides the emission derivatives."""
    chains, evidence, offsets = make(np.random.default_rng(n), n, [1, 6, 15], positions=True)
    plain = hmm.gradients(chains, evidence, offsets)
    scaled = hmm.gradients(chains, evidence._replace(table=evidence.table * scale), offsets)
    lengths = np.diff(offsets)
    np.testing.assert_allclose(scaled.log_prob, plain.log_prob + lengths * np.log(scale), rtol=1e-12)
    np.testing.assert_allclose(scaled.transitions, plain.transitions, rtol=1e-9)
    np.testing.assert_allclose(scaled.emissions * scale, plain.emissions, rtol=1e-9)


def test_frozen_and_foreign_arrays():
    """Read-only, strided and differently typed inputs give the same result and are left as they were."""
    chains, evidence, offsets = make(np.random.default_rng(0), 3, [4, 5, 1])
    expected = hmm.gradients(chains, evidence, offsets)
    frozen = hmm.Chains(*(np.asfortranarray(block) for block in chains))
    for block in (*frozen, *evidence[:3]):
        block.setflags(write=False)
    got = hmm.gradients(frozen, evidence._replace(codes=evidence.codes.astype(np.int64)), offsets.astype(np.int32))
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.flags.c_contiguous


def test_router_and_plan():
    assert hmm_plan.layout_of(4, 100, own=False) == "quads"
    assert hmm_plan.layout_of(4, 100, own=True) == "quads"
    assert hmm_plan.layout_of(5, 100, own=True) == "lanes"
    assert hmm_plan.layout_of(8, 100, own=False) == "groups"
    assert hmm_plan.layout_of(20, 100, own=False) == "groups"
    assert hmm_plan.layout_of(20, 100, own=True) == "single"
    assert hmm_plan.layout_of(20, 10_000_000, own=False) == "single"
    offsets = np.concatenate([[0], np.cumsum(np.random.default_rng(0).integers(1, 50, 301))])
    plan = hmm_plan.plan(offsets, 5, False, total_size=10)
    (part,) = plan.parts
    members = part.members[part.members >= 0]
    np.testing.assert_array_equal(np.sort(members), np.arange(301))
    assert (np.diff(np.diff(offsets)[members]) >= 0).all()
    assert plan.n_chunks == hmm_plan.CHUNKS
    np.testing.assert_array_equal(np.concatenate(hmm_plan.split(part, 5)), part.members)
    assert hmm_plan.plan(offsets, 5, False, total_size=10) is plan
    assert hmm_plan.plan(offsets, 5, False, total_size=hmm_plan.LARGEST_TOTAL).n_chunks == 1


@settings(deadline=None, max_examples=20)
@given(
    st.integers(1, 10),
    st.lists(st.integers(1, 9), min_size=1, max_size=10),
    st.booleans(),
    st.integers(0, 1000),
)
def test_counts_add_up(n, lengths, own, seed):
    """Parameters times derivatives count: one start, T - 1 transitions, T emissions, one end."""
    chains, evidence, offsets = make(np.random.default_rng(seed), n, lengths, own, end=True, zeros=0.1)
    got = hmm.gradients(chains, evidence, offsets)
    possible = np.isfinite(got.log_prob)
    for got_block, theta, count in (
        (got.start, chains.start, np.ones(len(lengths))),
        (got.transitions, chains.transitions, np.array(lengths) - 1),
        (got.end, chains.end, np.ones(len(lengths))),
        (got.emissions, evidence.table.reshape(len(chains.start), -1, n), np.array(lengths)),
    ):
        counts = (got_block * theta).reshape(len(lengths), -1).sum(axis=1)
        np.testing.assert_allclose(counts, np.where(possible, count, 0), rtol=1e-10, atol=1e-10)
