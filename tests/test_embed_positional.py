"""Words by position and by region against loops, and positional words against Fisher scores of uniform models."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles_embed import kmer_counts
from scipy import sparse

from genkern import FisherScore, PositionalChain, PositionalSpectrum, RegionSpectrum, SiteModel
from genkern.data.objects import as_alphabet

IUPAC = {symbol: [("ACGT")[i] for i in members] for symbol, members in as_alphabet("dna").ambiguities}


def windows(count=8, length=7, letters="ACGT", seed=0):
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(letters), length)) for _ in range(count)]


def spelled(word):
    """Return all plain words that a word with ambiguous letters may spell."""
    return ["".join(letters) for letters in itertools.product(*(IUPAC.get(symbol, [symbol]) for symbol in word))]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text("ACGTNRY", min_size=5, max_size=5), min_size=1, max_size=4), st.permutations([1, 2, 4]))
def test_positional_words_are_those_of_a_loop(texts, ks):
    words = PositionalSpectrum(ks, alphabet="dna")
    rows = words.fit_transform(texts)
    assert sparse.issparse(rows)
    assert rows.has_sorted_indices
    names = words.get_feature_names_out().tolist()
    assert rows.shape == (len(texts), len(names)) == (len(texts), words.n_features_out_)
    for text, row in zip(texts, rows.toarray()):
        expected = dict.fromkeys(names, 0.0)
        for k in ks:
            for t in range(5 - k + 1):
                for word in spelled(text[t : t + k]):
                    expected[f"{t}:{word}"] += 1.0 / len(spelled(text[t : t + k]))
        np.testing.assert_allclose(row, [expected[name] for name in names], rtol=0, atol=1e-12)


def test_the_inner_product_counts_matching_words():
    X = windows()
    K = (lambda rows: rows @ rows.T)(PositionalSpectrum((1, 3)).fit_transform(X)).toarray()
    for (i, x), (j, z) in itertools.product(enumerate(X), repeat=2):
        matches = sum(x[t : t + k] == z[t : t + k] for k in (1, 3) for t in range(7 - k + 1))
        assert K[i, j] == matches


def kernel_of(model, X, coordinates):
    features = FisherScore(model, "identity", coordinates).fit(X).transform(X)
    return features @ features.T


def test_words_of_one_symbol_are_scores_of_independent_positions():
    X = windows(length=25)
    rows = PositionalSpectrum((1,), "dna").fit_transform(X)
    matches = (rows @ rows.T).toarray()
    uniform = SiteModel(np.full((25, 4), 0.25), "dna")
    np.testing.assert_allclose(kernel_of(uniform, X, "raw"), 16 * matches, rtol=1e-12)
    np.testing.assert_allclose(kernel_of(uniform, X, "softmax"), matches - 25 / 4, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(kernel_of(uniform, X, "ratio"), 16 * matches - 100, rtol=1e-12, atol=1e-11)
    exact = FisherScore(uniform).fit(X).transform(X)
    np.testing.assert_allclose(exact @ exact.T, 4 * matches - 25, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("k", [2, 3])
def test_longer_words_are_scores_of_inhomogeneous_chains(k):
    X = windows(letters="ab")
    rows = PositionalSpectrum((k,), "ab").fit_transform(X)
    shape = (2,) * (k - 1)
    chain = PositionalChain(np.full(shape, 0.5 ** (k - 1)), np.full((7 - k + 1, *shape, 2), 0.5), "ab")
    first = np.array([[x[: k - 1] == z[: k - 1] for z in X] for x in X])  # the score in the start distribution
    expected = 4 * (rows @ rows.T).toarray() + 4 ** (k - 1) * first
    np.testing.assert_allclose(kernel_of(chain, X, "raw"), expected, rtol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text("ACGTN", min_size=1, max_size=11), min_size=1, max_size=4), st.integers(1, 4))
def test_region_words_are_those_of_a_loop(texts, n_regions):
    regions = RegionSpectrum((2, 1), n_regions, "dna")
    rows = regions.fit_transform(texts)
    cuts = [[len(text) * r // n_regions for r in range(n_regions + 1)] for text in texts]
    expected = [
        [
            count
            for k in (2, 1)
            for start, stop in itertools.pairwise(cut)
            for count in kmer_counts(text[start:stop], "ACGT", k, IUPAC)
        ]
        for text, cut in zip(texts, cuts)
    ]
    np.testing.assert_allclose(rows.toarray(), expected, rtol=0, atol=1e-12)
    assert rows.shape[1] == regions.n_features_out_ == len(regions.get_feature_names_out())


def test_integers_and_tokens():
    table = np.array([[0, 1, 1], [1, 0, 0]])
    tokens = [["up", "down", "down"], ["down", "up", "up"]]
    expected = [[1, 0, 0, 1, 0, 1], [0, 1, 1, 0, 1, 0]]
    np.testing.assert_array_equal(PositionalSpectrum((1,)).fit_transform(table).toarray(), expected)
    words = PositionalSpectrum((2,), alphabet=["up", "down"]).fit(tokens)
    assert words.get_feature_names_out()[words.transform(tokens[:1]).indices].tolist() == ["0:up,down", "1:down,down"]


def test_malformed_arguments_are_refused():
    X = windows()
    words = PositionalSpectrum((1, 2)).fit(X)
    with pytest.raises(ValueError, match="object 2 has 6 symbols, object 0 has 7"):
        PositionalSpectrum().fit([*X[:2], "ACGTAC"])
    with pytest.raises(ValueError, match=r"object 1 has 6 symbols, .* 7 positions"):
        words.transform([X[0], "ACGTAC"])
    assert words.fit(["ACG"]).length_ == 3
    with pytest.raises(ValueError, match="words of 8 symbols are longer"):
        PositionalSpectrum((1, 8)).fit(X)
    for ks in ((), "12", (0,), (1.5,), 3):
        with pytest.raises(ValueError, match="'ks' parameter of PositionalSpectrum"):
            PositionalSpectrum(ks).fit(X)
    with pytest.raises(ValueError, match="n_regions"):
        RegionSpectrum(n_regions=0).fit(X)


def test_objects_of_other_lengths():
    X = windows()
    words = PositionalSpectrum((1, 2), alphabet="dna", lengths="any").fit(X)
    strict = PositionalSpectrum((1, 2), alphabet="dna").fit(X)
    assert abs(words.transform(X) - strict.transform(X)).sum() == 0
    names = words.get_feature_names_out()
    with pytest.warns(UserWarning, match="1 of 3 objects are longer than .* of 7 symbols, such as object 2 of 9"):
        features = words.transform(["A", "GT", "ACGTACGTT"])
    found = [sorted(names[row.indices]) for row in features]
    assert found[0] == ["0:A"]
    assert found[1] == ["0:G", "0:GT", "1:T"]
    text = "ACGTACG"  # the training length
    assert found[2] == sorted([f"{t}:{text[t]}" for t in range(7)] + [f"{t}:{text[t : t + 2]}" for t in range(6)])
    terms = words.position_features(["GT"])
    np.testing.assert_allclose(terms.sum(axis=1), [1.5, 1.5])
    with pytest.raises(ValueError, match="object 1 has"):  # of training objects
        PositionalSpectrum(lengths="any").fit(["AC", "ACG"])
    with pytest.raises(ValueError, match="lengths"):
        PositionalSpectrum(lengths="all").fit(X)
