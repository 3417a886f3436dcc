"""Markov chains against enumeration, naive loops, completions by hand and their conversion to HMMs."""

import itertools
import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from genkern.data.objects import Alphabet, object_digests
from genkern.features.fisher import FisherScore
from genkern.features.fit_each import FitEach
from genkern.learn.plugin import PlugInClassifier
from genkern.models.check import check_score
from genkern.models.markov.estimator import MarkovChainEstimator, PeriodicChainEstimator, PositionalChainEstimator
from genkern.models.markov.model import MarkovChain, PeriodicChain, PositionalChain
from tests.cases import rows

LETTERS = Alphabet(("a", "b", "c"), (("?", (0, 1, 2)), ("x", (0, 2))))
KINDS = ("homogeneous", "periodic", "positional")
ORDERS = range(6)
LENGTH = 7  # of positional chains


def random_chain(rng, kind, order, m=2, alphabet=None, zeros=0.0, period=3, length=LENGTH):
    """A chain with random laws, some probabilities exactly zero."""
    start = rows(rng, m**order, zeros=zeros)
    if kind == "homogeneous":
        return MarkovChain(start.reshape((m,) * order), rows(rng, *(m,) * (order + 1), zeros=zeros), alphabet)
    if kind == "positional":
        steps = rows(rng, length - order, *(m,) * (order + 1), zeros=zeros)
        return PositionalChain(start.reshape((m,) * order), steps, alphabet)
    starts = rows(rng, period, m**order, zeros=zeros).reshape(period, *(m,) * order)
    steps = rows(rng, period, *(m,) * (order + 1), zeros=zeros)
    return PeriodicChain(rows(rng, period), starts, steps, alphabet)


def periodic(order, m=4, period=5):
    """A periodic chain of uniform laws."""
    start = np.full((period, *(m,) * order), 1.0 / m**order)
    return PeriodicChain(np.full(period, 1.0 / period), start, np.full((*start.shape, m), 1.0 / m))


def phase_weights(model, x):
    """Joint probabilities of codes x, all known, with each start phase: one factor after the other."""
    k, kind = model.order, type(model)
    weights = []
    for phase in range(model.period if kind is PeriodicChain else 1):
        start = model.start[phase] if kind is PeriodicChain else model.start
        weight = model.phases[phase] if kind is PeriodicChain else 1.0
        weight *= np.sum(start[tuple(x[:k])])  # of a shorter sequence, the sum over how it goes on
        for t in range(k, len(x)):
            table = model.transitions
            if kind is PeriodicChain:
                table = table[(phase + t) % model.period]
            elif kind is PositionalChain:
                table = table[t - k]
            weight *= table[tuple(x[t - k : t])][x[t]]
        weights.append(weight)
    return np.array(weights)


def completions(model, word):
    """All code sequences that a string of plain and ambiguous symbols may stand for."""
    members = [np.flatnonzero(model.alphabet.members[code]) for code in model.alphabet.encode(word)]
    return list(itertools.product(*members))


def words(m, length):
    return [np.array(word) for word in itertools.product(range(m), repeat=length)]


cases = pytest.mark.parametrize(("kind", "order"), [(kind, order) for kind in KINDS for order in ORDERS])
few = pytest.mark.parametrize(("kind", "order"), [(kind, order) for kind in KINDS for order in (0, 1, 2)])


# --- likelihood


@cases
def test_probabilities_of_one_length_sum_to_one(kind, order):
    model = random_chain(np.random.default_rng(order), kind, order, zeros=0.2)
    for length in (1, 3, order + 1, LENGTH):
        total = np.exp(model.log_prob(words(2, length))).sum()
        assert total == pytest.approx(1.0, rel=1e-12)


@cases
def test_log_prob_is_that_of_a_naive_loop_and_of_the_hmm(kind, order):
    rng = np.random.default_rng(10 + order)
    model = random_chain(rng, kind, order, m=3)
    X = [rng.integers(3, size=n) for n in (1, 2, 3, 5, 6, 7)]
    expected = [np.log(phase_weights(model, x).sum()) for x in X]
    np.testing.assert_allclose(model.log_prob(X), expected, rtol=1e-12)
    if order <= 3:
        np.testing.assert_allclose(model.to_hmm().log_prob(X), expected, rtol=1e-10)


def test_hmm_of_a_chain_has_few_states_and_the_same_law_of_impossible_words():
    rng = np.random.default_rng(0)
    assert random_chain(rng, "homogeneous", 0, m=4).to_hmm().n_states == 1
    assert random_chain(rng, "homogeneous", 1, m=4).to_hmm().n_states == 4
    assert random_chain(rng, "homogeneous", 3, m=4).to_hmm().n_states == 4 + 16 + 64
    assert random_chain(rng, "periodic", 2, m=4).to_hmm().n_states == 3 * (4 + 16)
    model = random_chain(rng, "homogeneous", 3, zeros=0.5)
    np.testing.assert_allclose(model.to_hmm().log_prob(words(2, 6)), model.log_prob(words(2, 6)), rtol=1e-12)


AMBIGUOUS = ["ANC", "N", "RY", "ACGTRAC", "NNNN", "GATNACA", "YNNT", "T"]


@pytest.mark.parametrize(("kind", "order"), [(kind, order) for kind in KINDS for order in range(4)])
def test_ambiguous_symbols_are_summed_over_their_completions(kind, order):
    model = random_chain(np.random.default_rng(20 + order), kind, order, m=4, alphabet="dna", zeros=0.2)
    expected = [sum(phase_weights(model, x).sum() for x in completions(model, word)) for word in AMBIGUOUS]
    np.testing.assert_allclose(np.exp(model.log_prob(AMBIGUOUS)), expected, rtol=1e-11)


def test_a_long_ambiguous_sequence_agrees_with_the_hmm():
    rng = np.random.default_rng(1)
    for kind in ("homogeneous", "periodic"):
        model = random_chain(rng, kind, 2, m=4, alphabet="dna")
        X = ["".join(rng.choice(list("ACGTNR"), 400, p=[0.22, 0.22, 0.22, 0.22, 0.06, 0.06])) for _ in range(3)]
        np.testing.assert_allclose(model.log_prob(X), model.to_hmm().log_prob(X), rtol=1e-11)


# --- derivatives


@few
def test_scores_match_differences(kind, order):
    rng = np.random.default_rng(30 + order)
    model = random_chain(rng, kind, order, m=3, alphabet=LETTERS, length=5, period=2)
    assert max(check_score(model, ["abcab", "aax", "c?bxc", "b"]).values()) < 1e-7


@pytest.mark.parametrize(("kind", "order"), [("homogeneous", 5), ("periodic", 4), ("positional", 3)])
def test_scores_of_high_orders_match_differences(kind, order):
    rng = np.random.default_rng(40)
    model = random_chain(rng, kind, order, alphabet="ab")
    assert max(check_score(model, ["abbabab", "ab"], coordinates="softmax").values()) < 1e-7


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_are_right_at_zero_probabilities(kind):
    rng = np.random.default_rng(50)
    model = random_chain(rng, kind, 1, m=4, alphabet="dna", zeros=0.35)
    X = [x for x in ("ANNA", "RGTN", "CANT", "ACGA", "TTAG", "N", "CA") if np.isfinite(model.log_prob([x])[0])]
    assert len(X) > 3
    theta, raw = model.parameters("raw"), model.log_prob_grad(X, "raw")
    base, step = model.log_prob(X), 1e-7
    for j in np.flatnonzero(theta == 0):
        moved = theta.copy()
        moved[j] = step
        expected = (model.with_parameters(moved, "raw").log_prob(X) - base) / step
        np.testing.assert_allclose(raw[:, j], expected, rtol=1e-4, atol=1e-4)


def test_a_phase_that_forbids_a_sequence_still_has_derivatives():
    model = PeriodicChain([0.5, 0.5], [1, 1], [[1.0, 0.0], [0.5, 0.5]], "ab")
    # In phase 0 "ba" has one forbidden symbol, the first: its derivative is that of 0.5 * theta * 0.5 / p.
    raw = model.statistics(["ba"])["transitions"][0]
    assert raw[0, 1] == pytest.approx(0.5 * 0.5 / np.exp(model.log_prob(["ba"])[0]))


@few
def test_expected_counts_are_those_of_completions(kind, order):
    rng = np.random.default_rng(60 + order)
    model = random_chain(rng, kind, order, m=4, alphabet="dna")
    word = "ANCRA"
    counts = model.transitions * model.statistics([word])["transitions"][0]
    expected = np.zeros_like(counts)
    total = 0.0
    for x in completions(model, word):
        weights = phase_weights(model, x)
        total += weights.sum()
        for phase, weight in enumerate(weights):
            for t in range(order, len(x)):
                lead = {"homogeneous": (), "periodic": ((phase + t) % 3,), "positional": (t - order,)}[kind]
                expected[(*lead, *x[t - order : t + 1])] += weight
    np.testing.assert_allclose(counts, expected / total, rtol=1e-10, atol=1e-14)
    totals = model.statistics([word, "ACGT"], totals=True)
    both = model.statistics([word, "ACGT"]).total()
    for name, block in totals.blocks.items():
        np.testing.assert_allclose(block, both[name], rtol=1e-12)


@pytest.mark.parametrize(("kind", "order"), [("homogeneous", 0), ("homogeneous", 2), ("positional", 1)])
def test_information_is_the_second_moment_of_scores(kind, order):
    model = random_chain(np.random.default_rng(70), kind, order)
    expected = 0.0
    for length in (4, 6):
        X = words(2, length)
        scores = model.log_prob_grad(X)
        expected = expected + (scores.T * np.exp(model.log_prob(X))) @ scores / 2
    information = np.zeros_like(expected)
    for index, block in model.information([4, 6]):
        information[np.ix_(index, index)] = block
    np.testing.assert_allclose(information, expected, rtol=1e-10, atol=1e-12)


def test_information_of_a_periodic_chain_counts_the_draws():
    model = random_chain(np.random.default_rng(71), "periodic", 1)
    draws = np.zeros((3, 2))
    for x in words(2, 5):
        for phase, weight in enumerate(phase_weights(model, x)):
            for t in range(1, 5):
                draws[(phase + t) % 3, x[t - 1]] += weight
    pairs = model.information([5])
    assert sum(len(index) for index, _ in pairs) == len(model.parameter_names)
    theta = model.transitions.reshape(6, 2)
    for (_, block), row, count in zip(pairs[4:], theta, draws.ravel()):
        np.testing.assert_allclose(block, count * (np.diag(row) - np.outer(row, row)), rtol=1e-10)
    for phase in range(3):
        row = model.start[phase]
        expected = model.phases[phase] * (np.diag(row) - np.outer(row, row))
        np.testing.assert_allclose(pairs[1 + phase][1], expected, rtol=1e-10)


def test_posterior_is_bayes_rule():
    rng = np.random.default_rng(72)
    model = random_chain(rng, "periodic", 1, m=4, alphabet="dna")
    for word, gamma in zip(["ACNT", "G"], model.posterior(["ACNT", "G"])):
        weights = sum(phase_weights(model, x) for x in completions(model, word))
        for t in range(len(word)):
            np.testing.assert_allclose(gamma[t], np.roll(weights, t) / weights.sum(), rtol=1e-11)


# --- samples


@cases
def test_samples_have_the_chains_law(kind, order):
    model = random_chain(np.random.default_rng(80 + order), kind, order)
    length = min(5, order + 2)
    X = model.sample(6000, length=length, rng=1)
    index = np.array(X) @ 2 ** np.arange(length - 1, -1, -1)
    expected = 6000 * np.exp(model.log_prob(words(2, length)))
    observed = np.bincount(index, minlength=2**length)
    common = expected > 5
    observed = np.append(observed[common], observed[~common].sum())
    expected = np.append(expected[common], expected[~common].sum() + 1e-9)
    assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-3


def test_sample_lengths():
    rng = np.random.default_rng(81)
    assert len(random_chain(rng, "homogeneous", 3, alphabet="ab").sample(2, length=2)[0]) == 2
    assert len(random_chain(rng, "positional", 1).sample(1)[0]) == LENGTH
    with pytest.raises(ValueError, match=r"7 positions. Got length=8"):
        random_chain(rng, "positional", 1).sample(1, length=8)


# --- stationary laws


@pytest.mark.parametrize("order", ORDERS)
def test_stationary_law_is_kept_by_a_step(order):
    rng = np.random.default_rng(90 + order)
    steps = rows(rng, *(3,) * (order + 1))
    chain = MarkovChain(None, steps)
    law = chain.start
    np.testing.assert_allclose(chain.stationary(), law, rtol=1e-12)
    following = (law[..., None] * steps).sum(axis=0) if order else law
    np.testing.assert_allclose(following, law, rtol=1e-9)
    # The words at the beginning and later are equally likely.
    if order == 2:
        joint = np.exp(chain.log_prob(words(3, 4))).reshape(3, 3, 3, 3)
        np.testing.assert_allclose(joint.sum(axis=(0, 1)), law, rtol=1e-10)


def test_stationary_law_of_a_chain_with_transient_contexts_and_of_many():
    np.testing.assert_allclose(MarkovChain(None, [[0.5, 0.5], [0.0, 1.0]]).start, [0.0, 1.0], atol=1e-15)
    np.testing.assert_allclose(MarkovChain(None, [[0.0, 1.0], [1.0, 0.0]]).start, [0.5, 0.5])  # periodic, but unique
    with pytest.raises(ValueError, match=r"2 sets of contexts that are never left.*pseudocount"):
        MarkovChain(None, np.eye(2))


def test_stationary_estimates():
    X = ["abaab", "bbabaaab", "ab"]
    model = MarkovChainEstimator(2, stationary=True, pseudocount=0.1).fit(X).model_
    np.testing.assert_allclose(model.start, model.stationary(), rtol=1e-12)
    np.testing.assert_allclose(model.transitions, MarkovChainEstimator(2, pseudocount=0.1).fit(X).model_.transitions)
    each = MarkovChainEstimator(1, stationary=True).fit_each(X)
    for chain in each:
        np.testing.assert_allclose(chain.start @ chain.transitions, chain.start, rtol=1e-12)


# --- estimation from counts


@pytest.mark.parametrize("order", ORDERS)
def test_estimates_are_frequencies(order):
    rng = np.random.default_rng(100 + order)
    X = [rng.integers(2, size=n) for n in (9, 30, 8)]
    estimator = MarkovChainEstimator(order, pseudocount=0.0).fit(X)
    model = estimator.model_
    counts = Counter(tuple(x[t - order : t + 1].tolist()) for x in X for t in range(order, len(x)))
    for word in itertools.product(range(2), repeat=order + 1):
        total = sum(counts[(*word[:-1], s)] for s in range(2))
        assert model.transitions[word] == pytest.approx(counts[word] / total if total else 0.5, rel=1e-12)
    starts = Counter(tuple(x[:order].tolist()) for x in X)
    for word in itertools.product(range(2), repeat=order):
        assert model.start[word] == pytest.approx(starts[word] / 3)
    assert estimator.converged_
    assert estimator.n_iter_ == 1
    assert estimator.history_[1] == pytest.approx(model.log_prob(X).sum())
    assert estimator.history_[1] > estimator.history_[0]


def test_pseudocounts_are_added():
    model = MarkovChainEstimator(1, pseudocount=0.5).fit(["aab", "b"]).model_
    np.testing.assert_allclose(model.transitions, [[0.5, 0.5], [0.5, 0.5]])
    np.testing.assert_allclose(model.start, [0.5, 0.5])
    model = MarkovChainEstimator(1, pseudocount=0.5, alphabet="abc").fit(["aaab"]).model_
    np.testing.assert_allclose(model.transitions[0], [2.5 / 4.5, 1.5 / 4.5, 0.5 / 4.5])


def backed_off(X, context, symbol, m, smoothing, tables=lambda t: 0, table=0):
    """The recursion by the book, from counts of all positions that have a context of this length."""
    pseudocount, strength = smoothing
    j = len(context)
    shorter = 1.0 / m if j == 0 else backed_off(X, context[1:], symbol, m, smoothing, tables, table)
    counts = np.zeros(m)
    for x in X:
        for t in range(j, len(x)):
            if tables(t) == table and tuple(x[t - j : t]) == tuple(context):
                counts[x[t]] += 1
    return (counts[symbol] + pseudocount + strength * shorter) / (counts.sum() + m * pseudocount + strength)


@pytest.mark.parametrize("kind", ["homogeneous", "positional"])
@pytest.mark.parametrize("order", [0, 1, 3])
def test_backoff_is_the_recursion(kind, order):
    rng = np.random.default_rng(110 + order)
    X = [rng.integers(3, size=n) for n in (8, 6, 8)]
    if kind == "homogeneous":
        model = MarkovChainEstimator(order, pseudocount=0.1, backoff=2.0).fit(X).model_
    else:
        model = PositionalChainEstimator(order, pseudocount=0.1, backoff=2.0).fit(X).model_
    for index in np.ndindex(model.transitions.shape):
        word = index if kind == "homogeneous" else index[1:]
        how = {} if kind == "homogeneous" else {"tables": lambda t: t, "table": index[0] + order}
        expected = backed_off(X, word[:-1], word[-1], 3, (0.1, 2.0), **how)
        assert model.transitions[index] == pytest.approx(expected, rel=1e-12)
    if order == 1:
        how = {} if kind == "homogeneous" else {"tables": lambda t: t}
        for s in range(3):
            lower = backed_off(X, (), s, 3, (0.1, 2.0), **how)
            count = sum(x[0] == s for x in X)
            assert model.start[s] == pytest.approx((count + 0.1 + 2.0 * lower) / (3 + 0.3 + 2.0), rel=1e-12)


def test_objective_is_the_log_posterior():
    X = ["aababbab", "bbaab"]
    estimator = MarkovChainEstimator(1, pseudocount=0.2, backoff=3.0).fit(X)
    model, lower = estimator.model_, MarkovChainEstimator(0, pseudocount=0.2, backoff=3.0).fit(X).model_.transitions
    laws = np.vstack([model.start, model.transitions])
    divergence = (lower * np.log(lower / laws)).sum()
    expected = model.log_prob(X).sum() + 0.2 * np.log(laws).sum() - 3.0 * divergence
    assert estimator.history_[-1] == pytest.approx(expected, rel=1e-12)


def test_backoff_of_a_periodic_chain_follows_each_phase():
    X = [np.array([0, 1, 1, 0, 1, 1, 0, 0, 1])]
    # A single sequence is taken in phase 0: the tables are those of the positions modulo the period.
    model = PeriodicChainEstimator(2, 3, pseudocount=0.0, backoff=1.0, max_iter=0).fit_each(X)[0]
    for index in np.ndindex(model.transitions.shape):
        expected = backed_off(X, index[1:-1], index[-1], 2, (0.0, 1.0), lambda t: t % 3, index[0])
        assert model.transitions[index] == pytest.approx(expected, rel=1e-9)


def test_more_data_trust_longer_contexts():
    rng = np.random.default_rng(112)
    true = random_chain(rng, "homogeneous", 3, m=4, alphabet="dna")
    train, test = true.sample(10, length=60, rng=2), true.sample(200, length=60, rng=3)
    scores = [
        MarkovChainEstimator(3, alphabet="dna", backoff=strength).fit(train).model_.log_prob(test).sum()
        for strength in (0.0, 3.0, 1e6)
    ]
    assert scores[1] > scores[0]
    assert scores[1] > scores[2]


# --- EM


def lose(rng, X, share, symbols="NRY"):
    return ["".join(rng.choice(list(symbols)) if rng.random() < share else s for s in x) for x in X]


@pytest.mark.parametrize("backoff", [0.0, 2.0])
@pytest.mark.parametrize("kind", KINDS)
def test_em_is_monotone(kind, backoff):
    rng = np.random.default_rng(120)
    true = random_chain(rng, kind, 1, m=4, alphabet="dna")
    X = lose(rng, true.sample(30, length=LENGTH, rng=4), 0.2)
    estimator = {
        "homogeneous": MarkovChainEstimator,
        "periodic": PeriodicChainEstimator,
        "positional": PositionalChainEstimator,
    }[kind](2, alphabet="dna", backoff=backoff, tol=1e-9).fit(X)
    history = np.array(estimator.history_)
    assert len(history) > 3
    assert np.diff(history).min() >= -1e-9 * np.abs(history).max()
    assert estimator.converged_
    assert len(history) == estimator.n_iter_ + 1


@pytest.mark.parametrize("kind", KINDS)
def test_em_reaches_a_point_where_derivatives_vanish(kind):
    rng = np.random.default_rng(121)
    true = random_chain(rng, kind, 1, m=4, alphabet="dna", period=2)
    X = lose(rng, true.sample(60, length=LENGTH, rng=5), 0.15)
    estimator = {
        "homogeneous": MarkovChainEstimator(1, alphabet="dna", pseudocount=0.0, tol=1e-13),
        "periodic": PeriodicChainEstimator(1, 2, alphabet="dna", pseudocount=0.0, tol=1e-13, max_iter=5000),
        "positional": PositionalChainEstimator(1, alphabet="dna", pseudocount=0.0, tol=1e-13),
    }[kind]
    model = estimator.fit(X).model_
    np.testing.assert_allclose(model.log_prob_grad(X).sum(axis=0), 0.0, atol=1e-3)
    assert model.log_prob(X).sum() >= true.log_prob(X).sum()


@pytest.mark.parametrize(("order", "alphabet"), [(0, "dna"), (1, "dna"), (2, "ab")])
def test_em_recovers_a_periodic_chain(order, alphabet):
    rng = np.random.default_rng(130 + order)
    m = 4 if alphabet == "dna" else 2
    true = random_chain(rng, "periodic", order, m=m, alphabet=alphabet)
    X = true.sample(400, length=60, rng=6)
    estimator = PeriodicChainEstimator(order, 3, alphabet=alphabet, random_state=1).fit(X)
    model = estimator.model_
    gaps = [np.abs(np.roll(model.transitions, turn, axis=0) - true.transitions).max() for turn in range(3)]
    turn = int(np.argmin(gaps))
    assert gaps[turn] < 0.06
    np.testing.assert_allclose(np.roll(model.phases, turn), true.phases, atol=0.08)
    assert estimator.history_[-1] > true.log_prob(X).sum() - 5.0
    # The first guess has already aligned the sequences: it is worth most of what the phases are.
    flat = MarkovChainEstimator(order, alphabet=alphabet).fit(X).history_[-1]
    assert estimator.history_[0] - flat > 0.9 * (estimator.history_[-1] - flat) > 0


def test_a_periodic_fit_does_not_depend_on_the_order_of_the_list():
    rng = np.random.default_rng(133)
    X = random_chain(rng, "periodic", 1, m=4, alphabet="dna").sample(30, length=40, rng=7)
    estimator = PeriodicChainEstimator(1, 3, alphabet="dna", tol=1e-8, n_init=2)
    one, other = estimator.fit(X).model_, PeriodicChainEstimator(**estimator.get_params()).fit(X[::-1]).model_
    np.testing.assert_allclose(one.transitions, other.transitions, atol=1e-9)


def test_restarts_keep_the_best_run():
    rng = np.random.default_rng(134)
    X = random_chain(rng, "periodic", 1, m=2, alphabet="ab").sample(15, length=12, rng=8)
    ends = [PeriodicChainEstimator(1, 3, n_init=n, random_state=3).fit(X).history_[-1] for n in (1, 4)]
    assert ends[1] >= ends[0]


def test_too_few_steps_warn():
    X = ["ANNA", "NCGN", "NATN"]
    with pytest.warns(ConvergenceWarning, match="MarkovChainEstimator: 1 of 1 models did not converge in 1 steps"):
        MarkovChainEstimator(1, alphabet="dna", max_iter=1).fit(X)


# --- one model per object


def estimators(**params):
    return {
        "homogeneous": MarkovChainEstimator(2, **params),
        "periodic": PeriodicChainEstimator(1, 3, **params),
        "positional": PositionalChainEstimator(1, 12, **params),
    }


@pytest.mark.parametrize("backoff", [0.0, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_fit_each_depends_on_the_object_alone(kind, backoff):
    rng = np.random.default_rng(140)
    X = lose(rng, ["".join(rng.choice(list("ACGT"), n)) for n in (12, 3, 1, 9, 12, 7)], 0.1)
    X[4] = "ACGTACGTACGT"
    estimator = estimators(alphabet="dna", backoff=backoff)[kind]
    together = estimator.fit_each(X)
    for i, x in enumerate(X):
        assert estimator.fit_each([x])[0] == together[i]
    if kind != "periodic":
        for i in (1, 4):
            alone = estimator.fit([X[i]]).model_
            np.testing.assert_allclose(alone.transitions, together[i].transitions, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_maximize_gives_the_fit(kind):
    rng = np.random.default_rng(141)
    X = ["".join(rng.choice(list("ab"), n)) for n in (12, 5, 9)]
    estimator = estimators(alphabet="ab", backoff=1.5)[kind]
    if kind == "periodic":
        model = estimator.fit(X).model_
        stack = type(model).stack([model] * 3)
        each = estimator.maximize(stack.statistics(X))
        assert each.shape == (3,)
        assert each[1] == estimator.maximize(model.statistics(X[1:2]))
    else:
        fitted = estimator.fit(X).model_
        reference = random_chain(rng, kind, estimator.order, alphabet="ab", length=12)
        again = estimator.maximize(reference.statistics(X))
        np.testing.assert_allclose(again.transitions, fitted.transitions, rtol=1e-11)
        np.testing.assert_allclose(again.start, fitted.start, rtol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_chains_work_in_embeddings_and_classifiers(kind):
    rng = np.random.default_rng(142)
    one, two = (random_chain(rng, kind, 1, m=4, alphabet="dna", length=12) for _ in range(2))
    X = one.sample(20, length=12, rng=1) + two.sample(20, length=12, rng=2)
    y = np.repeat([0, 1], 20)
    estimator = estimators(alphabet="dna")[kind]
    assert PlugInClassifier(estimator).fit(X, y).predict(X).tolist().count(1) in range(15, 26)
    fisher = FisherScore(estimator).fit(X)
    features = fisher.transform(X)
    assert features.shape == (40, len(fisher.model_.parameter_names))
    assert np.isfinite(features).all()
    models = FitEach(estimator).fit_transform(X)
    assert len(models) == 40
    assert type(models[0]) is type(one)


# --- values


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [0, 2])
def test_values_stack_pickle_and_go_round(kind, order):
    rng = np.random.default_rng(150)
    models = [random_chain(rng, kind, order, m=3, alphabet="abc") for _ in range(2)]
    stack = type(models[0]).stack(models)
    assert stack.shape == (2,)
    assert stack.unstack() == models
    assert [stack[0], stack[1]] == models
    assert stack.order == order
    assert pickle.loads(pickle.dumps(models[0])) == models[0]
    values = {name: getattr(stack, name) for name in stack._fields}
    assert type(stack)(**values) == stack
    X = ["abcab", "ca"]
    np.testing.assert_array_equal(stack.log_prob(X)[:, 1], models[1].log_prob(X))
    for coordinates in ("softmax", "ratio", "sqrt", "raw"):
        back = models[0].with_parameters(models[0].parameters(coordinates), coordinates)
        np.testing.assert_allclose(back.transitions, models[0].transitions, rtol=1e-12)
    np.testing.assert_array_equal(stack.statistics(X)["transitions"][1], models[1].statistics(X[1:])["transitions"][0])


def test_names_are_those_of_the_arrays():
    names = random_chain(np.random.default_rng(0), "periodic", 1, m=4, alphabet="dna").parameter_names
    assert (names[0], names[3], names[15]) == ("phases[0]", "start[0,A]", "transitions[0,A,A]")
    assert names[-1] == "transitions[2,T,T]"
    names = random_chain(np.random.default_rng(0), "homogeneous", 2, alphabet="ab").parameter_names
    assert names[:5] == ["start[a,a]", "start[a,b]", "start[b,a]", "start[b,b]", "transitions[a,a,a]"]
    assert random_chain(np.random.default_rng(0), "homogeneous", 0, alphabet="ab").parameter_names == [
        "transitions[a]",
        "transitions[b]",
    ]


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(KINDS), order=st.integers(0, 3))
def test_an_object_does_not_notice_its_neighbours(seed, kind, order):
    rng = np.random.default_rng(seed)
    model = random_chain(rng, kind, order, m=4, alphabet="dna")
    X = lose(rng, ["".join(rng.choice(list("ACGT"), n)) for n in rng.integers(1, LENGTH + 1, 9)], 0.1)
    whole, order_of = model.log_prob_grad(X), rng.permutation(len(X))
    np.testing.assert_array_equal(model.log_prob_grad([X[i] for i in order_of]), whole[order_of])
    np.testing.assert_array_equal(model.log_prob_grad(X[3:4]), whole[3:4])
    np.testing.assert_array_equal(model.log_prob(X[3:4]), model.log_prob(X)[3:4])


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), order=st.integers(0, 3), turn=st.integers(0, 2))
def test_phases_may_be_numbered_from_any_one_on(seed, order, turn):
    rng = np.random.default_rng(seed)
    model = random_chain(rng, "periodic", order)
    turned = PeriodicChain(*(np.roll(array, turn, axis=0) for array in (model.phases, model.start, model.transitions)))
    X = [rng.integers(2, size=n) for n in rng.integers(1, 20, 4)]
    np.testing.assert_allclose(turned.log_prob(X), model.log_prob(X), rtol=1e-11)


def test_a_homogeneous_chain_is_a_periodic_one_of_equal_tables():
    rng = np.random.default_rng(151)
    chain = random_chain(rng, "homogeneous", 2, m=4, alphabet="dna")
    twin = PeriodicChain(rows(rng, 4), np.stack([chain.start] * 4), np.stack([chain.transitions] * 4), "dna")
    X = ["ACGGTNA", "R", "TTTACG" * 50]
    np.testing.assert_allclose(twin.log_prob(X), chain.log_prob(X), rtol=1e-12)


def test_one_symbol_and_equal_data_are_legal():
    model = MarkovChainEstimator(2, pseudocount=0.0).fit(["aaaa", "a"]).model_
    np.testing.assert_allclose(model.log_prob(["aaa", "a"]), 0.0, atol=1e-12)
    model = MarkovChainEstimator(1, alphabet="ab", pseudocount=0.0).fit(["aaaa", "aa"]).model_
    np.testing.assert_allclose(model.transitions, [[1.0, 0.0], [0.5, 0.5]])
    assert np.isneginf(model.log_prob(["ab"])[0])


def test_missing_symbols_by_name():
    estimator = MarkovChainEstimator(1, missing="?", pseudocount=0.1).fit(["ab?ba", "a?"])
    assert estimator.model_.alphabet.symbols == ("a", "b")
    resolved = MarkovChainEstimator(1, missing="?").resolve(["ab?", "ba"])
    assert resolved.pack(["a?"]).alphabet.same_codes(resolved.alphabet)
    assert PositionalChainEstimator(1).resolve(["abab", "ba"]).length == 4
    assert len(set(object_digests(estimator.pack(["ab?", "ab?", "aba"])))) == 2


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: MarkovChain([0.5, 0.5], [[0.5, 0.6], [0.5, 0.5]]), "'transitions' must sum to 1"),
        (lambda: MarkovChain([0.5, 0.6], np.full((2, 2), 0.5)), "'start' must sum to 1"),
        (lambda: MarkovChain([0.5, 0.5], np.full((2, 2, 2), 0.5)), r"'start' must have shape \(2, 2\)"),
        (lambda: MarkovChain([0.5, 0.5], np.full((3, 2), 0.5)), "one axis of symbols for each"),
        (lambda: MarkovChain(1.0, [0.5, 0.5], "dna"), "4 symbols"),
        (lambda: MarkovChain(0.5, [0.5, 0.5]), "sum to 1"),
        (lambda: PeriodicChain([0.5, 0.5], [1, 1, 1], np.full((3, 2), 0.5)), "axes \\(2,\\) of 'phases'"),
        (lambda: PositionalChain(1, np.full((2, 2), 0.5)).log_prob([[0, 1], [0, 1, 1]]), "object 1 has 3 symbols"),
        (lambda: MarkovChain(1, [1.0, 0.0], "ab").log_prob_grad(["aa", "aab"]), "object 1.*position 2.*'b'"),
        (lambda: MarkovChain(None, np.full((2, 2), 0.5)).log_prob_grad([[0]], "log"), "coordinates"),
        (lambda: periodic(5).to_hmm(), "6820 states.*Lower the order"),
        (lambda: MarkovChainEstimator(5, alphabet="protein").fit(["ACD"]), "order 5 over 20 symbols"),
        (lambda: MarkovChainEstimator(-1).fit(["ab"]), "'order' parameter"),
        (lambda: MarkovChainEstimator(backoff=-1).fit(["ab"]), "'backoff' parameter"),
        (lambda: PeriodicChainEstimator(period=0).fit(["ab"]), "'period' parameter"),
        (lambda: PositionalChainEstimator(3).fit(["ab"]), "'length' parameter"),
        (lambda: PositionalChainEstimator(0, 2).fit(["ab", "aba"]), "object 1 has 3 symbols.*length=3"),
    ],
)
def test_errors_say_what_and_what_to_do(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_a_sequence_too_ambiguous_is_refused():
    model = MarkovChain(np.full((20, 20, 20), 0.05**3), np.full((20, 20, 20, 20), 0.05), "protein")
    with pytest.raises(ValueError, match="stationary law of 8000 contexts"):
        model.stationary()
    assert model.log_prob(["X" * 50])[0] == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(ValueError, match=r"object 1 has so many ambiguous symbols.*lower the order"):
        model.log_prob(["ACD", "X" * 20000])
    with pytest.raises(ValueError, match=r"need .* numbers.*totals=True"):
        model.statistics(["ACDEF"] * 1000)


def test_information_of_a_long_start_distribution_is_a_row_as_any_other():
    rng = np.random.default_rng(0)
    start, rows = rng.dirichlet(np.ones(8000)), rng.dirichlet(np.ones(20), size=(20, 20, 20))
    model = MarkovChain(start.reshape(20, 20, 20), rows, "protein")
    index, block = model.information([5])[0]
    assert list(index) == list(range(8000))
    np.testing.assert_allclose(block.diagonal(), start * (1 - start), rtol=1e-12)
