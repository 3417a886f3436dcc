"""Symbols as numbers, symbols of reduced alphabets, and features of unit trace, against plain loops."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import FeatureUnion, make_pipeline

from genkern import Categorical, Channels, ClassMixture, MarkovChainEstimator, ModelLogOdds, Recode, Spectrum, UnitTrace
from genkern.data.objects import as_alphabet
from genkern.preprocess.channels import PROPERTIES
from genkern.preprocess.recode import GROUPINGS, reduced_alphabet

PROTEIN = as_alphabet("protein")
MEMBERS = {symbol: [PROTEIN.symbols[i] for i in members] for symbol, members in PROTEIN.ambiguities}


@settings(deadline=None, max_examples=30)
@given(st.lists(st.text("ACDWYBZJX", min_size=1, max_size=6), min_size=1, max_size=4))
def test_channels_are_the_means_of_what_a_symbol_may_be(texts):
    rng = np.random.default_rng(0)
    table = {symbol: rng.normal(size=2) for symbol in PROTEIN.symbols}
    series = Channels(table, alphabet="protein").fit_transform(texts)
    assert [len(one) for one in series] == [len(text) for text in texts]
    for text, one in zip(texts, series):
        for symbol, row in zip(text, one):
            members = MEMBERS.get(symbol, [symbol])
            np.testing.assert_allclose(row, sum(table[s] for s in members) / len(members), rtol=1e-12, atol=1e-12)


def test_tables_of_all_forms():
    texts = ["abc", "ca"]
    expected = [np.array([[1.0], [2.0], [5.0]]), np.array([[5.0], [1.0]])]
    for channels in (
        Channels({"a": 1, "b": 2, "c": 5}),
        Channels({"c": [5], "b": [2], "a": [1]}),
        Channels([1, 2, 5]),
        Channels([[1], [2], [5]], alphabet="abc"),
        Channels([5, 1, 2], alphabet="cab"),
    ):
        for one, right in zip(channels.fit_transform(texts), expected):
            np.testing.assert_array_equal(one, right)
    np.testing.assert_array_equal(Channels("one-hot").fit_transform([[2, 0]])[0], [[0, 1], [1, 0]])
    np.testing.assert_array_equal(Channels("one-hot", "dna").fit_transform(["R"])[0], [[0.5, 0, 0.5, 0]])
    np.testing.assert_array_equal(Channels([3.0, 7.0]).fit_transform(np.array([[0, 1]]))[0], [[3.0], [7.0]])


def test_directions_of_chain_codes():
    steps = {
        "0": (1, 0),
        "1": (1, 1),
        "2": (0, 1),
        "3": (-1, 1),
        "4": (-1, 0),
        "5": (-1, -1),
        "6": (0, -1),
        "7": (1, -1),
    }
    series = Channels("angles", alphabet="01234567").fit_transform(["01234567"])[0]
    np.testing.assert_allclose(series, [np.array(step) / np.hypot(*step) for step in steps.values()], atol=1e-15)
    np.testing.assert_array_equal(Channels("angles", alphabet=8).fit_transform([[7, 1]])[0], series[[7, 1]])


def test_properties_of_amino_acids():
    names = list(PROPERTIES)
    series = Channels("protein").fit_transform(["".join(PROTEIN.symbols)])[0]
    assert series.shape == (20, 6)
    by = {name: dict(zip(PROTEIN.symbols, column)) for name, column in zip(names, series.T)}

    def extremes(name):
        return min(by[name], key=by[name].get), max(by[name], key=by[name].get)

    assert extremes("hydropathy") == ("R", "I")
    assert extremes("volume") == ("G", "W")
    assert {a: c for a, c in by["charge"].items() if c} == {"D": -1, "E": -1, "K": 1, "R": 1}
    assert extremes("helix") == ("G", "E")  # proline as low as glycine
    assert extremes("sheet") == ("E", "V")
    assert extremes("turn") == ("I", "G")  # asparagine as high as glycine
    # The propensities of a kind are relative to the mean residue, and so near one on average.
    np.testing.assert_allclose([np.mean(list(by[name].values())) for name in ("helix", "sheet", "turn")], 1, atol=0.05)
    np.testing.assert_allclose(sum(by["hydropathy"].values()), -9.8, rtol=1e-12)


@pytest.mark.parametrize(
    ("channels", "message"),
    [
        (Channels("hydro"), "'protein', 'angles', 'one-hot'"),
        (Channels("hydro", alphabet="ab"), "'protein', 'angles', 'one-hot'"),
        (Channels("angles"), "needs the alphabet"),
        (Channels([1, 2, 3]), r"each of the 2 symbols .* Got shape \(3,\)"),
        (Channels(np.zeros((2, 1, 1))), r"Got shape \(2, 1, 1\)"),
        (Channels(np.zeros((2, 0))), r"Got shape \(2, 0\)"),
        (Channels({"a": 1}), "'b' is not in"),
        (Channels({"a": 1}, alphabet="ab"), "no numbers for the symbol 'b'"),
        (Channels({"a": 1, "b": float("nan")}), "must be finite"),
        (Channels("protein", alphabet="ab"), "no numbers for the symbol 'a'"),
    ],
)
def test_wrong_tables_are_refused(channels, message):
    with pytest.raises(ValueError, match=message):
        channels.fit(["ab"])


# --- reduced alphabets


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.text("ACDENQILWBZJXx", min_size=1, max_size=8), min_size=1, max_size=4), st.sampled_from([*GROUPINGS])
)
def test_recoded_symbols_are_those_of_their_groups(texts, name):
    group_of = {symbol: group for group in GROUPINGS[name].split() for symbol in group}
    recode = Recode(name).fit(texts)
    reduced = recode.alphabet_
    assert reduced == reduced_alphabet(name)
    assert reduced.symbols == tuple(group[0] for group in GROUPINGS[name].split())
    for text, recoded in zip(texts, recode.transform(texts)):
        assert len(recoded) == len(text)
        for symbol, written in zip(text.upper(), recoded):
            groups = {group_of[member] for member in MEMBERS.get(symbol, [symbol])}
            code = int(reduced.encode(written)[0])
            assert {reduced.symbols[i] for i in np.flatnonzero(reduced.members[code])} == {g[0] for g in groups}
            assert written == (next(iter(groups))[0] if len(groups) == 1 else symbol)


def test_every_grouping_is_a_partition_of_the_amino_acids():
    for groups in GROUPINGS.values():
        assert sorted(groups.replace(" ", "")) == list(PROTEIN.symbols)
    assert [len(groups.split()) for groups in GROUPINGS.values()] == [7, 6, 10]


def test_counts_of_a_reduced_alphabet_are_sums_of_counts():
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("ACGT"), size)) for size in (5, 30)]
    fine = Spectrum(2, alphabet="dna").fit(texts)
    coarse = make_pipeline(Recode("AG CT", alphabet="dna"), Spectrum(2, reduced_alphabet("AG CT", "dna"))).fit(texts)
    words = ["".join("A" if s in "AG" else "C" for s in word) for word in fine.get_feature_names_out()]
    table = np.array([[word == name for name in coarse[-1].get_feature_names_out()] for word in words], dtype=float)
    np.testing.assert_array_equal(coarse.transform(texts), fine.transform(texts) @ table)


def test_tokens_and_integers_are_recoded():
    assert Recode([[0, 2], [1]]).fit_transform(np.array([[0, 1, 2]])) == [[0, 1, 0]]
    assert Recode("b ca").fit_transform(["abc"]) == ["cbc"]


@pytest.mark.parametrize(
    ("recode", "message"),
    [
        (Recode("AG C", alphabet="dna"), "Got 'T' 0 times"),
        (Recode("AG CTA", alphabet="dna"), "Got 'A' 2 times"),
        (Recode("AG CTU", alphabet="dna"), "Got 'U' 1 times"),
        (Recode([["a"], []]), "empty group"),
        (Recode("murphy11"), "occurs twice"),
    ],
)
def test_wrong_groups_are_refused(recode, message):
    with pytest.raises(ValueError, match=message):
        recode.fit(["A"])


# --- features of unit trace


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("form", [np.array, sparse.csr_matrix, sparse.csc_matrix])
def test_the_kernel_has_a_mean_diagonal_of_one(center, form):
    rng = np.random.default_rng(1)
    X = rng.normal(2.0, 3.0, (7, 4)) * (rng.random((7, 4)) < 0.6)
    unit = UnitTrace(center).fit(form(X))
    rows = unit.transform(form(X))
    assert sparse.issparse(rows) == (form is not np.array)
    dense = rows.toarray() if sparse.issparse(rows) else rows
    np.testing.assert_allclose(dense * unit.scale_, X, rtol=1e-14)  # one number for all features
    K = dense @ dense.T
    if center:
        J = np.eye(7) - 1 / 7
        K = J @ K @ J
    np.testing.assert_allclose(np.trace(K) / 7, 1.0, rtol=1e-12)


def test_features_that_do_not_vary_stay_as_they_are():
    np.testing.assert_array_equal(UnitTrace().fit_transform([[2.0, 3.0], [2.0, 3.0]]), [[2, 3], [2, 3]])
    np.testing.assert_array_equal(UnitTrace(False).fit_transform(np.zeros((3, 2))), np.zeros((3, 2)))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_features_that_differ_by_rounding_alone_are_not_blown_up(form):
    table = np.full((12, 1), np.log(61.0))
    assert table.mean(axis=0) != table[0]  # rounding
    assert UnitTrace().fit(form(table)).scale_ == 1.0
    assert UnitTrace().fit(form(np.zeros((3, 2)))).scale_ == 1.0
    table[0] += 1e-6
    assert UnitTrace().fit(form(table)).scale_ < 1e-5


def test_a_union_of_unit_traces_is_the_sum_of_normalised_kernels():
    texts = ["abab", "bbba", "aab", "bab"]
    parts = [(f"{k}", make_pipeline(Spectrum(k), UnitTrace(center=False))) for k in (1, 2)]
    X = FeatureUnion(parts).fit_transform(texts)
    kernels = [Spectrum(k).fit_transform(texts) for k in (1, 2)]
    expected = sum(Z @ Z.T / np.mean(np.diag(Z @ Z.T)) for Z in kernels)
    np.testing.assert_allclose(X @ X.T, expected, rtol=1e-12)


# --- log-odds of models


def test_log_odds_of_two_and_three_classes():
    models = {
        "A": Categorical([0.9, 0.1], "ab"),
        "B": Categorical([0.5, 0.5], "ab"),
        "C": Categorical([0.2, 0.8], "ab"),
    }
    priors, texts = np.array([0.5, 0.3, 0.2]), ["aab", "b"]
    odds = ModelLogOdds(models, priors=priors).fit(texts)
    assert list(odds.get_feature_names_out()) == ["v[A]", "v[B]", "v[C]"]
    for text, row in zip(texts, odds.transform(texts)):
        chances = [p * np.prod([m.probs["ab".index(s)] for s in text]) for p, m in zip(priors, models.values())]
        np.testing.assert_allclose(row, [np.log(c / (sum(chances) - c)) for c in chances], rtol=1e-12)
    two = ModelLogOdds({label: models[label] for label in "AB"}, priors=[0.25, 0.75]).fit(texts)
    assert list(two.get_feature_names_out()) == ["v"]
    np.testing.assert_allclose(two.transform(["ab"]), [[np.log(0.75 * 0.25 / (0.25 * 0.09))]], rtol=1e-12)


def test_infinite_log_odds_stand_at_v_max():
    sure = ClassMixture({"A": Categorical([1.0, 0.0], "ab"), "B": Categorical([0.5, 0.5], "ab")})
    np.testing.assert_array_equal(ModelLogOdds(sure, v_max=50.0).fit(["a"]).transform(["b"]), [[50.0]])
    never = ClassMixture({"A": Categorical([1.0, 0.0], "ab"), "B": Categorical([1.0, 0.0], "ab")})
    with pytest.raises(ValueError, match="object 1 has probability zero in every class"):
        ModelLogOdds(never).fit(["a"]).transform(["a", "b"])
    with pytest.raises(ValueError, match="at least two classes"):
        ModelLogOdds(MarkovChainEstimator(0)).fit(["ab", "b"], [1, 1])


@pytest.mark.parametrize("part", [Channels("protein"), Recode("murphy10"), UnitTrace(False)])
def test_clones_and_pickles(part):
    X = np.eye(3) if isinstance(part, UnitTrace) else ["ACD", "WX"]
    fitted = clone(part).fit(X)
    for one, other in zip(pickle.loads(pickle.dumps(fitted)).transform(X), fitted.transform(X)):
        np.testing.assert_array_equal(one, other)
