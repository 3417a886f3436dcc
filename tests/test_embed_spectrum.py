"""Word counts against naive counting."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles_embed import kmer_counts
from scipy import sparse
from sklearn.base import clone

from genkern import Spectrum
from genkern.data.objects import as_alphabet

IUPAC = {symbol: [("ACGT")[i] for i in members] for symbol, members in as_alphabet("dna").ambiguities}


@settings(max_examples=40, deadline=None)
@given(
    texts=st.lists(st.text("ACGTNRY", min_size=1, max_size=12), min_size=1, max_size=5),
    k=st.integers(1, 4),
    is_sparse=st.booleans(),
)
def test_counts_are_those_of_naive_counting(texts, k, is_sparse):
    expected = [kmer_counts(text, "ACGT", k, IUPAC) for text in texts]
    counts = Spectrum(k, alphabet="dna", sparse=is_sparse).fit_transform(texts)
    assert sparse.issparse(counts) == is_sparse
    np.testing.assert_allclose(counts.toarray() if is_sparse else counts, expected, rtol=0, atol=1e-12)


def test_words_are_named_in_the_order_of_columns():
    spectrum = Spectrum(2).fit(["abc"])
    names = list(spectrum.get_feature_names_out())
    assert names == ["aa", "ab", "ac", "ba", "bb", "bc", "ca", "cb", "cc"]
    row = spectrum.transform(["abcab"])[0]
    assert {name: count for name, count in zip(names, row) if count} == {"ab": 2, "bc": 1, "ca": 1}
    assert list(Spectrum(2).fit([["up", "down"]]).get_feature_names_out())[:2] == ["down,down", "down,up"]
    assert list(Spectrum(1).fit(np.array([[0, 11]])).get_feature_names_out())[-1] == "11"


def test_alphabet_is_that_of_fit():
    spectrum = Spectrum(1).fit(["ab", "c"])
    np.testing.assert_array_equal(spectrum.transform(["aa"]), [[2, 0, 0]])
    with pytest.warns(UserWarning, match=r"1 of 2 symbols.*'d' \(object 0, position 1\)"):
        np.testing.assert_allclose(spectrum.transform(["ad"]), [[4 / 3, 1 / 3, 1 / 3]])
    with pytest.raises(ValueError, match="'d' is not in"):
        Spectrum(1, unknown="error").fit(["ab", "c"]).transform(["ad"])


def test_too_short_objects_have_no_words():
    for normalize in (None, "frequency", "l2"):
        for is_sparse in (True, False):
            counts = Spectrum(3, sparse=is_sparse, normalize=normalize).fit_transform(["ab", "abab"])
            rows = counts.toarray() if is_sparse else counts
            assert not rows[0].any()
            assert np.isfinite(rows).all()


def test_normalisation():
    counts = Spectrum(2).fit_transform(["abab", "bb"])
    np.testing.assert_allclose(
        Spectrum(2, normalize="frequency").fit_transform(["abab", "bb"]), counts / [[3], [1]], rtol=1e-14
    )
    unit = Spectrum(2, normalize="l2", sparse=True).fit_transform(["abab", "bb"]).toarray()
    np.testing.assert_allclose(unit, counts / np.sqrt([[5], [1]]), rtol=1e-14)


def test_large_spectra_are_sparse_by_themselves():
    assert isinstance(Spectrum(6, alphabet="dna").fit_transform(["ACGTACGT"]), np.ndarray)
    large = Spectrum(7, alphabet="dna").fit_transform(["ACGTACGT"])
    assert sparse.issparse(large)
    assert large.shape == (1, 4**7)
    assert large.sum() == 2


def test_integer_tables_and_token_lists():
    table = np.array([[0, 1, 1], [1, 0, 0]])
    expected = [[0, 1, 0, 1], [1, 0, 1, 0]]
    np.testing.assert_array_equal(Spectrum(2).fit_transform(table), expected)
    np.testing.assert_array_equal(Spectrum(2).fit_transform([["a", "b", "b"], ["b", "a", "a"]]), expected)


@pytest.mark.parametrize("settings_", [{"k": 0}, {"k": 1.5}, {"sparse": "yes"}, {"normalize": "l1"}])
def test_wrong_settings_are_refused(settings_):
    with pytest.raises(ValueError, match=next(iter(settings_))):
        Spectrum(**settings_).fit(["ab"])


def test_numbers_are_refused():
    with pytest.raises(ValueError, match="not a symbol"):
        Spectrum().fit([[0.5, 1.2]])


@pytest.mark.parametrize("is_sparse", [False, True])
def test_small_types_of_integers(is_sparse):
    texts = ["abba" * 50, "ab", "bbb"]
    expected = Spectrum(k=2, sparse=is_sparse).fit_transform(texts)
    counts = Spectrum(k=2, sparse=is_sparse, dtype="uint16").fit_transform(texts)
    assert counts.dtype == np.uint16
    assert (counts != expected).sum() == 0
    with pytest.raises(ValueError, match=r"normalize='l2' needs a 'dtype' of floats. Got uint16"):
        Spectrum(k=2, dtype="uint16", normalize="l2").fit(texts)
    smallest = Spectrum(k=2, sparse=is_sparse, dtype="uint8").fit(texts)
    assert smallest.transform(["ab", "abba" * 100])[[1], :].max() == 100
    with pytest.raises(ValueError, match=r"uint8 counts up to 255. Got a word more often than that in sequence 1"):
        smallest.transform(["ab", "abba" * 256])


# --- words with gaps


def count_gapped(text, offsets):
    """Return the expected count of every gapped word over ACGT, window by window, spelling by spelling."""
    counts = dict.fromkeys(map("".join, product("ACGT", repeat=len(offsets))), 0.0)
    for t in range(len(text) - offsets[-1]):
        spellings = list(product(*(IUPAC.get(text[t + shift], [text[t + shift]]) for shift in offsets)))
        for word in spellings:
            counts["".join(word)] += 1 / len(spellings)
    return list(counts.values())


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.text("ACGTNRY", min_size=1, max_size=14) | st.text("ACGT", min_size=1, max_size=14), min_size=1),
    gaps=st.lists(st.integers(1, 4), max_size=3),
    is_sparse=st.booleans(),
)
def test_gapped_words_are_those_of_naive_counting(texts, gaps, is_sparse):
    offsets = np.cumsum([0, *gaps]).tolist()
    counts = Spectrum(offsets=offsets, alphabet="dna", sparse=is_sparse).fit_transform(texts)
    assert sparse.issparse(counts) == is_sparse
    expected = [count_gapped(text, offsets) for text in texts]
    np.testing.assert_allclose(counts.toarray() if is_sparse else counts, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6, 9])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_without_gaps_words_are_contiguous(k, is_sparse):
    rng = np.random.default_rng(k)
    texts = ["".join(rng.choice(list("ab"), size)) for size in (1, k, 3000, 40)]
    for more in ([], ["ab?ba" * 4]):
        alphabet = as_alphabet("ab", missing="?")
        one = Spectrum(k, alphabet, is_sparse).fit_transform(texts + more)
        other = Spectrum(alphabet=alphabet, sparse=is_sparse, offsets=range(k)).fit_transform(texts + more)
        assert abs(one - other).max() == 0


@pytest.mark.parametrize("offsets", [(0, 9), (0, 1, 30), (0, 2, 3, 7, 8, 11), (0, 1, 2, 3, 5, 6, 7, 9, 20)])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_long_gapped_words_in_long_sequences(offsets, is_sparse):
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abc"), size)) for size in (2500, offsets[-1], offsets[-1] + 1)]
    counts = Spectrum(offsets=offsets, sparse=is_sparse, dtype="uint16").fit(texts).transform(texts)
    rows = counts.toarray() if is_sparse else counts
    index = {word: i for i, word in enumerate(product("abc", repeat=len(offsets)))}
    expected = np.zeros_like(rows)
    for row, text in zip(expected, texts):
        for t in range(len(text) - offsets[-1]):
            row[index[tuple(text[t + shift] for shift in offsets)]] += 1
    np.testing.assert_array_equal(rows, expected)


def test_pairs_at_a_lag_have_the_bhattacharyya_kernel():
    texts = ["abbab", "babaaab"]
    roots = np.sqrt(Spectrum(offsets=(0, 2), normalize="frequency").fit_transform(texts))
    shares = [
        [sum(x + y == p + q for x, y in zip(t, t[2:])) / (len(t) - 2) for p, q in product("ab", "ab")] for t in texts
    ]
    expected = [[sum(np.sqrt(a * b) for a, b in zip(one, other)) for other in shares] for one in shares]
    np.testing.assert_allclose(roots @ roots.T, expected, rtol=1e-14)


def test_names_show_the_gaps():
    assert list(Spectrum(offsets=(0, 3)).fit(["ab"]).get_feature_names_out()) == ["a..a", "a..b", "b..a", "b..b"]
    assert Spectrum(offsets=(0, 1, 4), alphabet="dna").fit(["A"]).get_feature_names_out()[1] == "AA..C"
    assert Spectrum(offsets=(0, 2)).fit([["up", "down"]]).get_feature_names_out()[1] == "down,.up"


@pytest.mark.parametrize("offsets", [(), (1, 2), (0, 0), (0, 3, 2), (0, 1.5), (0, -1)])
def test_wrong_offsets_are_refused(offsets):
    with pytest.raises(ValueError, match="offsets"):
        Spectrum(offsets=offsets).fit(["ab"])


@pytest.mark.parametrize("is_sparse", [False, True])
def test_integer_types_refuse_shares_and_say_where(is_sparse):
    said = r"object {}, position {} is an .* unknown symbol.*Got dtype uint8; .*dtype=float, .* unknown='error'"
    for offsets, texts, place in (
        ((0, 1), ["ab", "b", "abza"], (2, 2)),
        ((0, 3), ["zabb", "abbzz", "zz"], (0, 0)),
    ):
        spectrum = Spectrum(offsets=offsets, sparse=is_sparse, dtype="uint8").fit(["abba"])
        with (
            pytest.warns(UserWarning, match="count as missing"),
            pytest.raises(ValueError, match=said.format(*place)),
        ):
            spectrum.transform(texts)
        shared = clone(spectrum).set_params(dtype=float).fit(["abba"])
        with pytest.warns(UserWarning, match="count as missing"):
            rows = shared.transform(texts)
        words = [max(len(text) - offsets[1], 0) for text in texts]
        np.testing.assert_allclose(np.asarray(rows.sum(axis=1)).ravel(), words, rtol=1e-12)
        with pytest.raises(ValueError, match="the symbol 'z' is not in"):
            clone(spectrum).set_params(unknown="error").fit(["abba"]).transform(texts)


@settings(max_examples=30, deadline=None)
@given(
    texts=st.lists(st.text("ACGTNR", min_size=1, max_size=9), min_size=1, max_size=4),
    gaps=st.lists(st.integers(1, 3), max_size=2),
    is_sparse=st.booleans(),
)
def test_ends_are_symbols(texts, gaps, is_sparse):
    offsets = np.cumsum([0, *gaps]).tolist()
    spectrum = Spectrum(offsets=offsets, alphabet="dna", sparse=is_sparse, ends=True).fit(texts)
    counts = spectrum.transform(texts)
    names = ["".join(word) for word in product("ACGT|", repeat=len(offsets))]
    assert [name.replace(".", "") for name in spectrum.get_feature_names_out()] == names
    for text, row in zip(texts, counts.toarray() if is_sparse else counts):
        closed, expected = f"|{text}|", dict.fromkeys(names, 0.0)
        for t in range(len(closed) - offsets[-1]):
            spellings = list(product(*(IUPAC.get(closed[t + o], [closed[t + o]]) for o in offsets)))
            for word in spellings:
                expected["".join(word)] += 1 / len(spellings)
        np.testing.assert_allclose(row, list(expected.values()), rtol=0, atol=1e-12)
    terms = spectrum.position_features(texts[:1])
    assert terms.shape == (len(texts[0]), len(names))
    np.testing.assert_allclose(terms.sum(axis=0), np.asarray(counts[:1].sum(axis=0)).ravel(), atol=1e-12)


def test_ends_beside_symbols_that_look_like_them():
    spectrum = Spectrum(2, ends=True).fit(["a|b", "b"])
    assert list(spectrum.get_feature_names_out())[-1] == "||,||"
    with pytest.warns(UserWarning, match="count as missing"):
        row = spectrum.transform(["ax"])[0]
    found = dict(zip(spectrum.get_feature_names_out(), row))
    assert found["||,a"] == 1.0
    np.testing.assert_allclose([found["a,a"], found["b,||"], found["a,||"]], 1 / 3)  # any symbol, but no end
    assert list(Spectrum(1, alphabet=3, ends=True).fit([[0, 2]]).get_feature_names_out()) == ["0", "1", "2", "|"]


@pytest.mark.parametrize("is_sparse", [False, True])
def test_words_that_objects_are_too_short_for_do_not_count(is_sparse):
    texts = ["ab", "abababab", "abababa"]
    for least, counted in ((0, True), (3.5, True), (3.6, False)):
        counts = Spectrum(offsets=(0, 1), sparse=is_sparse, least=least).fit_transform(texts)
        assert sparse.issparse(counts) == is_sparse
        assert (counts.sum() > 0) == counted
        assert counts.shape == (3, 4)
    with pytest.raises(ValueError, match=r"'least' parameter of Spectrum must be a number"):
        Spectrum(least=-1).fit(texts)
