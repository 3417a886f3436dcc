"""Affinities between Markov chains, site models and hidden Markov models against sums over all sequences."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from genkern import (
    HMM,
    Categorical,
    Expected,
    MarkovChain,
    PeriodicChain,
    PositionalChain,
    Power,
    ProbabilityProduct,
    SiteModel,
    Spectrum,
    affinity,
)

HOWS = [Power(0.5), Power(1.0), Power(1.7), Expected(0.0), Expected(0.9), Expected(40.0)]


def chain(seed: int, order: int, m: int = 3, batch: tuple[int, ...] = ()) -> MarkovChain:
    r = np.random.default_rng(seed)
    start = r.dirichlet(np.ones(m**order), batch).reshape((*batch, *(m,) * order))
    return MarkovChain(start, r.dirichlet(np.ones(m), (*batch, *(m,) * order)), order=order)


def positional(seed: int, length: int, m: int = 3) -> PositionalChain:
    r = np.random.default_rng(seed)
    return PositionalChain(r.dirichlet(np.ones(m)), r.dirichlet(np.ones(m), (length - 1, m)))


def periodic(seed: int, m: int = 3) -> PeriodicChain:
    r = np.random.default_rng(seed)
    tables = r.dirichlet(np.ones(m), (2, m))
    return PeriodicChain(r.dirichlet(np.ones(2)), r.dirichlet(np.ones(m), 2), tables)


def hidden(seed: int, n: int, m: int = 3) -> HMM:
    r = np.random.default_rng(seed)
    return HMM(r.dirichlet(np.ones(n)), r.dirichlet(np.ones(n), n), Categorical(r.dirichlet(np.ones(m), n)))


def summed(p: Any, q: Any, how: Any, length: int, m: int = 3) -> float:
    """The definition, over all sequences, from their probabilities."""
    words = [np.array(word) for word in itertools.product(range(m), repeat=length)]
    left, right = np.exp(p.log_prob(words)), np.exp(q.log_prob(words))
    if isinstance(how, Power):
        return float(((left * right) ** how.rho).sum())
    gaps = np.array([[np.sum(x != y) for y in words] for x in words])
    return float(left @ np.exp(-how.lam * gaps) @ right)


@pytest.mark.parametrize("how", HOWS, ids=repr)
@pytest.mark.parametrize("orders", [(0, 0), (1, 1), (0, 2), (2, 1)])
@pytest.mark.parametrize("length", [1, 2, 4])
def test_chains_of_any_orders(how: Any, orders: tuple[int, int], length: int) -> None:
    p, q = chain(0, orders[0]), chain(1, orders[1])
    assert math.exp(affinity(p, q, how, length)) == pytest.approx(summed(p, q, how, length), rel=1e-11)
    name = "chain_product" if isinstance(how, Power) else "chain_as_hmm"
    assert affinity.explain(p, q, how, length).name == name


@pytest.mark.parametrize("how", HOWS, ids=repr)
def test_chains_by_positions(how: Any) -> None:
    pairs = [(positional(0, 4), positional(1, 4)), (chain(3, 1), positional(2, 5))]
    for p, q in pairs:
        assert math.exp(affinity(p, q, how, 4)) == pytest.approx(summed(p, q, how, 4), rel=1e-11)
        assert affinity(q, p, how, 4) == pytest.approx(float(affinity(p, q, how, 4)), rel=1e-13)
    with pytest.raises(ValueError, match="has 4 positions"):
        affinity(*pairs[0], how, 5)


@pytest.mark.parametrize("how", [Power(1.0), Expected(0.0), Expected(0.9)], ids=repr)
def test_chains_and_hidden_states(how: Any) -> None:
    for p, q in ((chain(0, 1), hidden(0, 2)), (chain(1, 2), hidden(1, 3)), (periodic(0), hidden(2, 2))):
        assert math.exp(affinity(p, q, how, 3)) == pytest.approx(summed(p, q, how, 3), rel=1e-11)
        assert affinity(q, p, how, 3) == pytest.approx(float(affinity(p, q, how, 3)), rel=1e-13)
    p, q = periodic(1), periodic(2)
    assert math.exp(affinity(p, q, how, 4)) == pytest.approx(summed(p, q, how, 4), rel=1e-11)


def test_a_power_goes_inside_the_sum_over_hidden_states_alone() -> None:
    p, q = chain(0, 1), hidden(0, 2)
    expected = 0.0
    for word in itertools.product(range(3), repeat=3):
        seen = math.exp(p.log_prob([np.array(word)])[0])
        for path in itertools.product(range(2), repeat=3):
            weight = q.start[path[0]] * math.prod(q.transitions[pair] for pair in itertools.pairwise(path))
            emitted = math.prod(q.emissions.probs[s, x] for s, x in zip(path, word))
            expected += math.sqrt(seen * weight * emitted)
    assert math.exp(affinity(p, q, Power(0.5), 3)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("how", HOWS, ids=repr)
def test_sites(how: Any) -> None:
    r = np.random.default_rng(0)
    p, q = (SiteModel(r.dirichlet(np.ones(3), 4)) for _ in range(2))
    assert math.exp(affinity(p, q, how)) == pytest.approx(summed(p, q, how, 4), rel=1e-12)
    with pytest.raises(ValueError, match=r"same number of positions\. Got 4 and 5"):
        affinity(p, SiteModel.uniform(5, 3), how)


@pytest.mark.parametrize("how", [Power(0.5), Expected(2.0)], ids=repr)
def test_stacks_equal_pairs(how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = chain(0, 1, batch=(4,)), chain(1, 2, batch=(3,))
    table = affinity(left, right, how, 6)
    for i, j in itertools.product(range(4), range(3)):
        assert table[i, j] == affinity(left[i], right[j], how, 6)
    square = affinity(left, left, how, 6)
    assert_array_equal(square, square.T)
    assert_allclose(affinity.diag(left, how, 6), np.diagonal(square), rtol=1e-13)
    paired = affinity.block(chain(2, 1, batch=(2, 3)), chain(3, 1, batch=(2, 2)), how, 4)
    assert_array_equal(paired[1], affinity(chain(2, 1, batch=(2, 3))[1], chain(3, 1, batch=(2, 2))[1], how, 4))
    monkeypatch.setattr("genkern.affinities.chains.CHUNK", 3)
    assert_array_equal(affinity(left, right, how, 6), table)


def test_long_sequences_do_not_underflow() -> None:
    p, q = chain(0, 1, m=4), chain(1, 1, m=4)
    rate = math.log(np.abs(np.linalg.eigvals(np.sqrt(p.transitions * q.transitions))).max())
    logs = [float(affinity(p, q, Power(0.5), length)) for length in (1000, 100_000)]
    assert logs[1] - logs[0] == pytest.approx(99_000 * rate, rel=1e-10)
    swap = MarkovChain([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]])  # periodic: never steady
    assert affinity(swap, swap, Power(0.5), 10_001) == 0.0


def test_disjoint_chains_have_no_product() -> None:
    p, q = MarkovChain([1.0, 0.0], np.eye(2)), MarkovChain([0.0, 1.0], np.eye(2))
    assert affinity(p, q, Power(0.5), 5) == -np.inf
    table = affinity([p, q], [p, q], Power(0.5), 5)
    assert_array_equal(table, [[0.0, -np.inf], [-np.inf, 0.0]])


def test_chains_need_a_length_and_one_alphabet() -> None:
    with pytest.raises(ValueError, match="needs length="):
        affinity(chain(0, 1), chain(1, 1), Power(0.5))
    with pytest.raises(ValueError, match="same alphabet"):
        affinity(chain(0, 1), chain(1, 1, m=2), Power(0.5), 3)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_spectrum_kernel_is_a_product_kernel_of_markov_chains(k: int) -> None:
    """Words of k letters: chains of order k - 1 whose law of contexts and steps are the frequencies of the words."""
    words = ["abbacabbbcaab", "bcabbacbbcaac"]
    frequencies = Spectrum(k, "abc", normalize="frequency").fit_transform(words)
    models = []
    for row in frequencies:
        joint = row.reshape((3,) * k)
        contexts = joint.sum(axis=-1)
        rows = np.divide(joint, contexts[..., None], out=np.full_like(joint, 1 / 3), where=contexts[..., None] > 0)
        models.append(MarkovChain(contexts, rows, "abc"))
    expected = float(frequencies[0] @ frequencies[1])
    assert math.exp(affinity(models[0], models[1], Power(1.0), k)) == pytest.approx(expected, rel=1e-12)


def test_the_kernel_is_positive_semidefinite_with_unit_diagonal() -> None:
    models = [chain(seed, order) for seed, order in enumerate((0, 1, 2, 1, 0, 2))]
    kernel = ProbabilityProduct(0.5, length=7).normalized()(models)
    assert_allclose(np.diagonal(kernel), 1.0)
    assert np.linalg.eigvalsh(kernel)[0] > -1e-12


def leaving(stay: float, weight: float) -> MarkovChain:
    """Two symbols that differ between chains, and a faint way to two others that do not."""
    steps = np.full((4, 4), 0.5)
    steps[2:, :2] = 0.0
    steps[:2, :2] = np.array([[stay, 1.0 - stay], [1.0 - stay, stay]]) * (1.0 - weight)
    steps[:2, 2:] = weight / 2.0
    return MarkovChain([0.5, 0.5, 0.0, 0.0], steps, alphabet="acgt")


def decimal_product(p: MarkovChain, q: MarkovChain, rho: str, length: int) -> float:
    """The sum over all sequences of chains of order 1, in decimals of 60 digits without a bound of exponents."""
    with localcontext() as context:
        context.prec = 60

        def both(a: Any, b: Any) -> Decimal:
            return (Decimal(float(a)) * Decimal(float(b))) ** Decimal(rho) if a > 0 and b > 0 else Decimal(0)

        m = len(p.start)
        mass = [both(a, b) for a, b in zip(p.start, q.start)]
        steps = [[both(p.transitions[i, j], q.transitions[i, j]) for j in range(m)] for i in range(m)]
        for _ in range(length - 1):
            mass = [sum((mass[i] * steps[i][j] for i in range(m)), Decimal(0)) for j in range(m)]
        return float(sum(mass).ln())


@pytest.mark.parametrize(("rho", "weight"), [("0.5", 1e-16), ("0.5", 1e-200), ("1", 1e-160), ("2", 1e-170)])
@pytest.mark.parametrize("length", [1, 2, 100, 2500])
def test_a_faint_share_that_grows(rho: str, weight: float, length: int) -> None:
    p, q = leaving(0.1, weight), leaving(0.9, weight)
    expected = decimal_product(p, q, rho, length)
    assert float(affinity(p, q, Power(float(rho)), length)) == pytest.approx(expected, rel=1e-11, abs=1e-14)
    table = affinity([leaving(0.4, 0.3), p], [q, q], Power(float(rho)), length)
    assert_allclose(table[1], expected, rtol=1e-11, atol=1e-14)


def test_faint_starts_of_chains() -> None:
    p, q = (MarkovChain(start, np.eye(3)) for start in ([1e-200, 1.0, 0.0], [1e-190, 0.0, 1.0]))
    for length, rho in itertools.product((1, 2, 30), ("0.5", "1", "2")):
        expected = decimal_product(p, q, rho, length)
        assert float(affinity(p, q, Power(float(rho)), length)) == pytest.approx(expected, rel=1e-13)


def decimal_pairs(p: HMM, q: HMM, rho: int, length: int | None) -> float:
    """The recursion over pairs of states in decimals, to a length or summed over the first 300."""
    with localcontext() as context:
        context.prec = 60

        def numbers(array: Any) -> Any:
            return np.vectorize(lambda x: Decimal(float(x)) ** rho, otypes=[object])(array)

        psi = numbers(p.emissions.probs) @ numbers(q.emissions.probs).T
        phi, total = np.outer(numbers(p.start), numbers(q.start)) * psi, Decimal(0)
        ends = 1 if p.stop is None or q.stop is None else np.outer(numbers(p.stop), numbers(q.stop))
        for step in range(1, 1 + (length or 300)):
            if length in (None, step):
                total += (phi * ends).sum()
            phi = (numbers(p.transitions).T @ phi @ numbers(q.transitions)) * psi
        return float(total.ln())


SYMBOLS = [[0.7, 0.3, 0.0], [0.0, 0.4, 0.6]]


@pytest.mark.parametrize("rho", [1, 2, 3])
def test_faint_weights_of_hidden_chains(rho: int) -> None:
    p = HMM([1.0, 1e-170], np.eye(2), Categorical([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]))
    q = HMM([0.5, 0.5], [[1.0 - 1e-190, 1e-190], [0.3, 0.7]], Categorical(SYMBOLS[::-1]))
    r = HMM([0.5, 0.5], [[0.9, 0.1], [0.3, 0.7]], Categorical([[0.0, 0.4, 0.6], [0.0, 0.3, 0.7]]))
    for length in (1, 2, 40):
        table = affinity([p, r], [p, q, r], Power(rho), length)
        for (i, one), (j, other) in itertools.product(enumerate([p, r]), enumerate([p, q, r])):
            expected = decimal_pairs(one, other, rho, length)
            assert table[i, j] == pytest.approx(expected, rel=1e-12, abs=1e-13)
            assert float(affinity(one, other, Power(rho), length)) == pytest.approx(expected, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("rho", [1, 2])
def test_faint_weights_of_stopping_chains(rho: int) -> None:
    # The only way that both have in common is faint on both sides.
    tiny = 1e-170
    p = HMM([1.0, tiny], [[0.5, 0.0], [0.0, 0.6]], Categorical([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]), stop=[0.5, 0.4])
    q = HMM([tiny, 1.0], [[0.3, 0.2], [0.0, 0.0]], Categorical([[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]), stop=[0.5, 1.0])
    r = HMM([tiny, 1.0], [[0.3, 0.2], [0.0, 0.5]], Categorical([[0.0, 0.5, 0.5], [0.0, 0.1, 0.9]]), stop=[0.5, 0.5])
    s = HMM([1.0, tiny], [[0.5, 0.0], [0.0, 0.6]], Categorical(np.eye(3)[:2]), stop=[0.5, 0.4])
    t = HMM([1.0, tiny], [[0.5, 0.0], [0.0, 0.6]], Categorical(np.eye(3)[[2, 1]]), stop=[0.5, 0.4])
    for one, other in ((p, q), (p, r), (q, r), (s, t)):
        expected = decimal_pairs(one, other, rho, None)
        assert float(affinity(one, other, Power(rho))) == pytest.approx(expected, rel=1e-12)


def test_chains_that_begin_alike_and_go_on_differently() -> None:
    uniform = np.full(4, 0.25)  # whose roots are exact, so that the mass of the first symbols is exactly one
    p, q = (MarkovChain(uniform, chain(seed, 1, m=4).transitions) for seed in (1, 2))
    assert float(affinity(p, q, Power(0.5), length=4)) == pytest.approx(
        np.log(summed(p, q, Power(0.5), 4, 4)), rel=1e-12
    )
