"""Position-specific models against enumeration, differences and frequencies counted by hand."""

import itertools
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from genkern import (
    FisherScore,
    FitEach,
    Mixture,
    MixtureEstimator,
    PlugInClassifier,
    SiteEstimator,
    SiteModel,
    as_alphabet,
    check_score,
)
from genkern.datasets import load_splice_junctions
from tests.cases import rows

seeds = st.integers(0, 2**32 - 1)
MEMBERS = {"A": "A", "C": "C", "G": "G", "T": "T", "R": "AG", "Y": "CT", "N": "ACGT", "-": "ACGT", "B": "CGT"}


def random_sites(rng, length=3, batch=(), zeros=0.0):
    return SiteModel(rows(rng, *batch, length, 4, zeros=zeros), "dna")


def random_windows(rng, n, length=3, letters="ACGT"):
    return ["".join(rng.choice(list(letters), length)) for _ in range(n)]


def probability(probs, window):
    """Probability of one window, symbol by symbol; an ambiguous one has the sum over its members."""
    return np.prod([sum(row["ACGT".index(s)] for s in MEMBERS[letter]) for row, letter in zip(probs, window)])


@settings(deadline=None, max_examples=20)
@given(seed=seeds, length=st.integers(1, 4))
def test_probabilities_are_products_and_sum_to_one(seed, length):
    model = random_sites(np.random.default_rng(seed), length, zeros=0.2)
    windows = ["".join(word) for word in itertools.product("ACGT", repeat=length)]
    found = np.exp(model.log_prob(windows))
    np.testing.assert_allclose(found, [probability(model.probs, window) for window in windows], rtol=1e-12)
    assert found.sum() == pytest.approx(1.0, abs=1e-12)


def test_ambiguous_and_missing_symbols_are_summed_out():
    rng = np.random.default_rng(0)
    model = random_sites(rng, 5)
    windows = random_windows(rng, 30, 5, "".join(MEMBERS))
    expected = np.log([probability(model.probs, window) for window in windows])
    np.testing.assert_allclose(model.log_prob(windows), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(model.log_prob(["NN-NN"]), 0.0, atol=1e-12)


@settings(deadline=None, max_examples=10)
@given(seed=seeds, length=st.integers(1, 4))
def test_scores_match_differences(seed, length):
    rng = np.random.default_rng(seed)
    model = random_sites(rng, length)
    assert max(check_score(model, random_windows(rng, 4, length, "ACGTRYN")).values()) < 1e-6


def test_scores_have_the_stated_information():
    model = random_sites(np.random.default_rng(1), 2)
    windows = ["".join(word) for word in itertools.product("ACGT", repeat=2)]
    weights = np.exp(model.log_prob(windows))
    for coordinates in ("softmax", "ratio", "sqrt"):
        scores = model.log_prob_grad(windows, coordinates)
        np.testing.assert_allclose(weights @ scores, 0.0, atol=1e-12)
        blocks = SiteModel.stack([model]).member_information(np.array([1.0]), coordinates)
        second = (scores.T * weights) @ scores
        np.testing.assert_allclose(second[:4, :4], blocks[0], atol=1e-12)
        np.testing.assert_allclose(second[4:, 4:], blocks[1], atol=1e-12)
        np.testing.assert_allclose(second[:4, 4:], 0.0, atol=1e-12)


def matches(windows):
    return np.array([[sum(a == b for a, b in zip(x, y)) for y in windows] for x in windows])


@pytest.mark.parametrize("coordinates", ["softmax", "ratio", "sqrt"])
def test_uniform_splice_site_kernel_counts_matches(coordinates):
    windows = random_windows(np.random.default_rng(2), 12, 25)
    model = SiteModel.uniform(25, "dna")
    features = FisherScore(model, coordinates=coordinates).fit_transform(windows)
    np.testing.assert_allclose(features @ features.T, 4 * matches(windows) - 25, atol=1e-9)
    plain = FisherScore(model, information="identity", coordinates=coordinates).fit_transform(windows)
    expected = {"softmax": matches(windows) - 25 / 4, "ratio": 16 * matches(windows) - 100}.get(coordinates)
    if expected is not None:
        np.testing.assert_allclose(plain @ plain.T, expected, atol=1e-9)


def test_fisher_kernel_of_unequal_probabilities():
    rng = np.random.default_rng(3)
    model, windows = random_sites(rng, 6), random_windows(rng, 5, 6)
    features = FisherScore(model).fit_transform(windows)
    expected = [
        [sum((a == b) / model.probs[i, "ACGT".index(a)] - 1 for i, (a, b) in enumerate(zip(x, y))) for y in windows]
        for x in windows
    ]
    np.testing.assert_allclose(features @ features.T, expected, rtol=1e-9)


def test_sample_and_density_agree():
    model = random_sites(np.random.default_rng(4), 2, zeros=0.2)
    draws = model.sample(4000, rng=5)
    windows = ["".join(word) for word in itertools.product("ACGT", repeat=2)]
    share = np.exp(model.log_prob(windows))
    counts = np.array([draws.count(window) for window in windows])
    assert counts[share == 0].sum() == 0
    assert stats.chisquare(counts[share > 0], 4000 * share[share > 0]).pvalue > 1e-2
    assert model.sample(1, length=2, rng=0)[0] in windows


# --- stacks: components of mixtures


def test_members_of_stacks():
    rng = np.random.default_rng(6)
    stack = random_sites(rng, 3, batch=(2, 3))
    windows = random_windows(rng, 2, 3, "ACGTN")
    packed = stack.pack(windows)
    assert packed.values.shape == (2, 3)
    own = stack.own_log_density(packed)
    weights = rng.random((2, 3))
    raw = stack.weigh(packed, weights, totals=False)["probs"]
    assert raw.shape == (2, 3, 3, 4)
    for i in range(2):
        for k in range(3):
            assert own[i, k] == pytest.approx(np.log(probability(stack.probs[i, k], windows[i])), abs=1e-12)
            derivative = stack[i, k].statistics([windows[i]])["probs"][0]
            np.testing.assert_allclose(raw[i, k], weights[i, k] * derivative, rtol=1e-12)
    np.testing.assert_allclose(stack.log_prob(windows)[1, 1], [stack[1, k].log_prob(windows)[1] for k in range(3)])
    codes = stack[0].draw(np.array([2, 0, 1, 1]), rng)
    assert codes.shape == (4, 3)
    assert pickle.loads(pickle.dumps(stack)) == stack
    assert stack[0].unstack() == [stack[0, k] for k in range(3)]


@pytest.mark.parametrize("coordinates", ["softmax", "ratio", "sqrt", "raw"])
def test_parameters_round_trip(coordinates):
    model = random_sites(np.random.default_rng(7), 3)
    vector = model.parameters(coordinates)
    assert len(vector) == len(model.parameter_names) == 12
    np.testing.assert_allclose(model.with_parameters(vector, coordinates).probs, model.probs, rtol=1e-12)
    assert model.parameter_names[5] == "probs[1,C]"


# --- estimation


def test_estimate_is_smoothed_frequency():
    model = SiteEstimator(pseudocount=0.5).fit(["ab", "bb", "bb"]).model_
    np.testing.assert_allclose(model.probs, [[1.5 / 4, 2.5 / 4], [0.5 / 4, 3.5 / 4]], rtol=1e-12)
    codes = np.array([[0, 2], [1, 2], [0, 1]])
    np.testing.assert_allclose(
        SiteEstimator(3, pseudocount=0).fit(codes).model_.probs, [[2 / 3, 1 / 3, 0], [0, 1 / 3, 2 / 3]], rtol=1e-12
    )


def test_estimate_with_ambiguous_symbols_is_the_likelihoods_maximum():
    X = ["AA", "RC", "RC", "GN", "TY", "CT"]
    model = SiteEstimator("dna", pseudocount=0).fit(X).model_
    best = model.log_prob(X).sum()
    # R counts as A and G in proportion to the A and the G seen: 1 + 2 / 2 each
    np.testing.assert_allclose(model.probs[0], np.array([2, 1, 2, 1]) / 6, atol=1e-8)
    rng = np.random.default_rng(8)
    for _ in range(30):
        other = SiteModel(0.99 * model.probs + 0.01 * rng.dirichlet(np.ones(4), 2), "dna")
        assert other.log_prob(X).sum() <= best + 1e-9


def test_missing_symbol_of_an_inferred_alphabet():
    model = SiteEstimator(pseudocount=0, missing="?").fit(["a?", "bb", "ba"]).model_
    np.testing.assert_allclose(model.probs, [[1 / 3, 2 / 3], [0.5, 0.5]], atol=1e-8)


def test_a_missing_symbol_of_a_large_vocabulary_takes_little_memory():
    size = 30_000
    alphabet = as_alphabet([f"word{i}" for i in range(size)], missing="?")
    model = SiteModel(np.full((2, size), 1 / size), alphabet)
    X = [["word3", "?"], ["?", "word7"]]
    tracemalloc.start()
    try:
        found = model.log_prob(X)
        counts = model.statistics(X)["probs"] * model.probs
        fitted = SiteEstimator(alphabet).fit(X).model_
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 * size * 8  # a table of all codes by all symbols has 30001 * size
    np.testing.assert_allclose(found, -np.log(size), rtol=1e-12)
    np.testing.assert_allclose(counts.reshape(2, 2, size).sum(axis=-1), 1.0, rtol=1e-9)
    assert fitted.probs[0, 3] == pytest.approx(1.01 / (1 + 0.01 * size), rel=1e-6)


def test_gaps_among_tokens_are_summed_out_like_n():
    model = random_sites(np.random.default_rng(20), 3)
    np.testing.assert_array_equal(
        model.log_prob([["A", float("nan"), "R"], [None, "C", "T"]]), model.log_prob(["ANR", "NCT"])
    )


def test_fit_each_depends_on_its_window_alone():
    X = random_windows(np.random.default_rng(9), 5, 4, "ACGTN")
    estimator = SiteEstimator("dna")
    models = estimator.fit_each(X)
    for x, model in zip(X, models, strict=True):
        assert estimator.fit_each([x])[0] == model
        assert estimator.fit([x]).model_ == model
    assert FitEach(estimator).fit_transform(X) == models
    inferred = FitEach(SiteEstimator()).fit(["ab", "ba"]).transform(["aa"])
    np.testing.assert_allclose(inferred[0].probs[0], np.array([1.01, 0.01]) / 1.02, rtol=1e-12)


def test_maximize_gives_the_fit():
    X = random_windows(np.random.default_rng(10), 7)
    estimator = SiteEstimator("dna", pseudocount=0.1)
    statistics = random_sites(np.random.default_rng(11)).statistics(X)
    np.testing.assert_allclose(estimator.maximize(statistics).probs, estimator.fit(X).model_.probs, rtol=1e-12)


def test_naive_bayes_of_splice_junctions():
    X, y = load_splice_junctions()
    errors = []
    for fold in range(2):
        test = np.arange(len(X)) % 2 == fold
        model = PlugInClassifier(SiteEstimator("dna")).fit([X[i] for i in np.flatnonzero(~test)], y[~test])
        errors.append(1 - model.score([X[i] for i in np.flatnonzero(test)], y[test]))
    assert np.mean(errors) < 0.06


# --- refusals


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: SiteModel([0.5, 0.5]), r"batch \+ \(L, 2\)"),
        (lambda: SiteModel([[0.5, 0.5]], "dna"), r"batch \+ \(L, 4\)"),
        (lambda: SiteModel([[0.5, 0.6]]), "sum to 1"),
        (lambda: SiteModel.uniform(0, "dna"), "int >= 1"),
        (lambda: SiteModel.uniform(3, "dna").log_prob(["ACG", "AC"]), "object 1 has 2 symbols.*3 positions"),
        (lambda: SiteModel.uniform(3, "dna").log_prob(np.zeros((2, 4), int)), "symbol 0 is not in"),
        (lambda: SiteModel.uniform(3, 2).log_prob(np.zeros((2, 4), int)), "object 0 has 4 symbols.*3 positions"),
        (lambda: SiteEstimator("dna").fit(["ACG", "ACG", "ACGT"]), "object 2 has 4 symbols, object 0 has 3"),
        (lambda: SiteEstimator("dna", pseudocount=-1).fit(["A"]), "pseudocount"),
        (lambda: SiteModel([[1.0, 0.0]], "ab").statistics(["a", "b"]), "object 1 has probability zero"),
        (lambda: SiteModel.uniform(3, "dna").sample(1, length=2), "length 3"),
    ],
)
def test_errors_say_what_and_what_to_do(build, message):
    with pytest.raises(ValueError, match=message):
        build()


# --- mixtures of products


def test_mixture_of_products():
    rng = np.random.default_rng(12)
    stack = random_sites(rng, 3, batch=(2,))
    model = Mixture([0.3, 0.7], stack)
    windows = ["".join(word) for word in itertools.product("ACGT", repeat=3)]
    expected = [0.3 * probability(stack.probs[0], x) + 0.7 * probability(stack.probs[1], x) for x in windows]
    np.testing.assert_allclose(np.exp(model.log_prob(windows)), expected, rtol=1e-12)
    assert max(check_score(model, ["ACG", "RNT"]).values()) < 1e-6
    assert len(model.sample(3, rng=0)[0]) == 3


def test_em_finds_the_products_of_a_mixture():
    rng = np.random.default_rng(13)
    probs = np.full((2, 8, 4), 0.05)
    probs[0, :, 0] = probs[1, :, 3] = 0.85
    X = Mixture([0.4, 0.6], SiteModel(probs, "dna")).sample(500, rng=rng)
    X[0] = "N" + X[0][1:]
    estimator = MixtureEstimator(2, SiteEstimator("dna"), random_state=0).fit(X)
    assert np.diff(estimator.history_).min() > -1e-9 * abs(estimator.history_[0])
    order = np.argsort(estimator.model_.components.probs[:, 0, 3])
    np.testing.assert_allclose(estimator.model_.components.probs[order], probs, atol=0.07)
    np.testing.assert_allclose(estimator.model_.weights[order], [0.4, 0.6], atol=0.07)
