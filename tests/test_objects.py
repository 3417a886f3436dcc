"""What an input is: every accepted container and object, the packed form, and what errors say."""

import array
import collections
import pickle
import re
from itertools import accumulate

import awkward as ak
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

from genkern.data.objects import (
    as_alphabet,
    check_objects,
    from_concatenated,
    kind_of,
    object_digest,
    object_digests,
    pack_points,
    pack_series,
    pack_symbols,
    remember_width,
)

NAN = float("nan")


class Indexed:
    """Something that indexes like a list and is none."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class OnlyArray:
    """Something that converts to an array and does nothing else."""

    def __init__(self, data):
        self.data = np.asarray(data)

    def __array__(self, dtype=None, copy=None):
        return self.data


def same(packed, values, lengths):
    np.testing.assert_array_equal(packed.values, values)
    np.testing.assert_array_equal(packed.offsets, [0, *accumulate(lengths)])
    assert packed.offsets.dtype == np.int64
    assert packed.values.flags.c_contiguous
    assert packed.values.dtype == (np.float64 if packed.alphabet is None else np.int32)


# --- symbols


@pytest.mark.parametrize(
    "X",
    [
        ["ab", "b"],
        ("ab", "b"),
        [b"ab", b"b"],
        [["a", "b"], ["b"]],
        [("a", "b"), ("b",)],
        [np.array(["a", "b"]), np.array(["b"], dtype=object)],
        [collections.deque("ab"), ["b"]],
        np.array(["ab", "b"]),
        np.array([b"ab", b"b"]),
        np.array(["ab", "b"], dtype=object),
        np.array(["ab", "b"], dtype=np.dtypes.StringDType()),
        pd.Series(["ab", "b"], index=[7, 3]),
        pd.Series(["ab", "b"], dtype="category"),
        pd.Series([["a", "b"], ["b"]]),
        pd.Index(["ab", "b"]),
        ak.Array(["ab", "b"]),
        ak.Array([["a", "b"], ["b"]]),
        Indexed(["ab", "b"]),
    ],
)
def test_symbol_containers(X):
    packed = pack_symbols(X, "ab", "test")
    same(packed, [0, 1, 1], [2, 1])
    assert kind_of(X) == "symbols"
    np.testing.assert_array_equal(pack_symbols(X).values, [0, 1, 1])


@pytest.mark.parametrize(
    "X",
    [
        [[0, 1], [1]],
        [np.array([0, 1]), np.array([1], dtype=np.uint8)],
        [[np.int64(0), 1], [1]],
        [range(2), (1,)],
        [array.array("i", [0, 1]), [1]],
        np.array([np.array([0, 1]), np.array([1])], dtype=object),
        pd.Series([np.array([0, 1]), np.array([1])]),
        [pd.Series([0, 1]), pd.Series([1])],
        ak.Array([[0, 1], [1]]),
    ],
)
def test_integer_containers(X):
    same(pack_symbols(X, 2), [0, 1, 1], [2, 1])
    same(pack_symbols(X), [0, 1, 1], [2, 1])
    assert pack_symbols(X).alphabet == as_alphabet(2)
    assert kind_of(X) == "symbols"
    same(pack_series(X), [[0], [1], [1]], [2, 1])


@pytest.mark.parametrize(
    "X",
    [
        np.array([[0, 1], [1, 1]]),
        pd.DataFrame({"x": [0, 1], "y": [1, 1]}),
        OnlyArray([[0, 1], [1, 1]]),
        np.array([[0, 1], [1, 1]], dtype=object),
        np.array([[0, 1], [1, 1]], dtype=np.uint8),
    ],
)
def test_two_dimensional_integers_are_n_sequences(X):
    same(pack_symbols(X, 2), [0, 1, 1, 1], [2, 2])
    assert kind_of(X) == "symbols"


def test_two_dimensional_characters():
    X = np.array([list("ab"), list("ba")])
    same(pack_symbols(X), [0, 1, 1, 0], [2, 2])
    assert kind_of(X) == kind_of(X.astype(object)) == kind_of(pd.DataFrame(X)) == "symbols"


def test_floats_that_are_integers_are_codes_if_symbols_are_asked_for():
    same(pack_symbols([[0.0, 1.0], [1]], 2), [0, 1, 1], [2, 1])
    same(pack_symbols(np.array([[0.0, 1.0]]), 2), [0, 1], [2])
    same(pack_symbols([[0.0, None, 1.0]], 2, missing=NAN), [0, 2, 1], [3])
    same(pack_symbols([np.ma.array([0, 1, 1], mask=[0, 1, 0])], 2, missing=NAN), [0, 2, 1], [3])


def test_tuples_are_tokens_if_symbols_are_asked_for_and_rows_otherwise():
    X = [[(0, 1), (1, 1)], [(1, 1)]]
    same(pack_symbols(X, [(0, 1), (1, 1)]), [0, 1, 1], [2, 1])
    same(pack_series(X), [[0, 1], [1, 1], [1, 1]], [2, 1])
    assert kind_of(X) == "series"
    assert kind_of([[("a", 1)], [("b", 2)]]) == "symbols"


def test_integers_and_gaps_and_tokens_mix():
    same(pack_symbols([[0, None], [2, 1]], None, missing=NAN), [0, 3, 2, 1], [2, 2])
    same(pack_symbols([[0, 1], [1, "x"]], [0, 1, "x"]), [0, 1, 1, 2], [2, 2])


def test_gaps_among_tokens_of_named_alphabets_are_missing():
    packed = check_objects([["A", NAN], [None, "c"], [NAN]], alphabet="dna")
    same(packed, [0, 14, 14, 1, 14], [2, 2, 1])
    assert packed.objects() == ["AN", "NC", "N"]
    assert object_digests(packed) == object_digests(check_objects(["AN", "-C", "?"], alphabet="dna"))
    assert pack_symbols(packed, "dna") is packed
    for alphabet in ("ab", None):
        with pytest.raises(ValueError, match=r"object 0, position 1.*nan.*as_alphabet\("):
            check_objects([["a", NAN]], kind="symbols", alphabet=alphabet)


def test_inferred_alphabet_is_of_the_whole_list():
    assert pack_symbols(["ab", "cab"]).alphabet == as_alphabet("abc")
    assert pack_symbols(["a-b"], missing="-").alphabet == as_alphabet("ab", missing="-")


# --- series and points


@pytest.mark.parametrize(
    "X",
    [
        [[0.5, NAN], [2.0]],
        [np.array([0.5, NAN]), np.array([2], dtype=np.float32)],
        [np.array([0.5, NAN]), [2]],
        [[[0.5], [NAN]], [[2]]],
        [np.array([[0.5], [NAN]]), np.array([[2]])],
        [pd.Series([0.5, NAN]), pd.Series([2])],
        [pd.DataFrame({"a": [0.5, NAN]}), pd.DataFrame({"a": [2]})],
        pd.Series([np.array([0.5, NAN]), np.array([2.0])]),
        ak.Array([[0.5, NAN], [2.0]]),
        ak.Array([[0.5, None], [2]]),
        Indexed([[0.5, NAN], [2.0]]),
        [np.ma.array([0.5, 7.0], mask=[False, True]), [2.0]],
    ],
)
def test_series_containers(X):
    same(pack_series(X), [[0.5], [NAN], [2]], [2, 1])
    same(pack_points(X), [[0.5], [NAN], [2]], [2, 1])
    assert kind_of(X) == "series"


def test_gaps_of_awkward_arrays_are_missing():
    same(pack_series(ak.Array([[1, None], [2]])), [[1], [NAN], [2]], [2, 1])
    same(pack_series(ak.Array([[None], [2.0]])), [[NAN], [2]], [1, 1])
    rows = ak.Array([[[0.5, None], [2.0, 3.0]], [None, [4.0, 5.0]]])
    same(pack_series(rows), [[0.5, NAN], [2, 3], [NAN, NAN], [4, 5]], [2, 2])
    same(pack_symbols(ak.Array([[0, None], [1]]), 2, missing=NAN), [0, 2, 1], [2, 1])
    same(pack_symbols(ak.Array([["A", None], ["C"]]), "dna"), [0, 14, 1], [2, 1])
    assert pack_symbols(ak.Array([["ab", None], ["c"]]), missing=NAN).objects() == [["ab", None], ["c"]]


def test_ragged_multivariate_awkward():
    X = ak.Array([[[0.5, 1.0], [2.0, 3.0]], [[4.0, 5.0]]])
    same(pack_series(X), [[0.5, 1], [2, 3], [4, 5]], [2, 1])
    assert kind_of(X) == "series"


TABLE = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    "X",
    [
        TABLE,
        TABLE.astype(np.float32),
        pd.DataFrame(TABLE),
        OnlyArray(TABLE),
        TABLE.astype(object),
        np.asfortranarray(TABLE),
    ],
)
def test_a_table_is_n_series_or_n_bags_of_one_draw(X):
    same(pack_series(X), np.arange(6.0)[:, None], [3, 3])
    same(pack_points(X), TABLE, [1, 1])
    assert kind_of(X) == "series"


def test_gaps_of_data_frames_are_missing():
    frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64")})
    same(pack_series(frame), [[1], [NAN]], [1, 1])
    same(pack_series([frame["a"]]), [[1], [NAN]], [2])


def test_three_axes():
    X = np.arange(24).reshape(2, 3, 4)
    same(pack_series(X, layout="time-first"), X.reshape(6, 4), [3, 3])
    same(pack_points(X), X.reshape(6, 4), [3, 3])
    same(pack_series(X, layout="channels-first"), X.transpose(0, 2, 1).reshape(8, 3), [4, 4])
    assert kind_of(X) == "series"


def test_channels_first_objects():
    X = [np.arange(6.0).reshape(2, 3), np.arange(2.0).reshape(2, 1)]
    same(pack_series(X, layout="channels-first"), [[0, 3], [1, 4], [2, 5], [0, 1]], [3, 1])
    same(check_objects(X, layout="channels-first"), [[0, 3], [1, 4], [2, 5], [0, 1]], [3, 1])
    same(pack_series([[1.0, 2.0]], layout="channels-first"), [[1], [2]], [2])
    same(pack_series(TABLE, layout="channels-first"), np.arange(6.0)[:, None], [3, 3])


def test_packed_goes_through_unchanged():
    symbols, series = pack_symbols(["ab"]), pack_series([[1.0]])
    assert pack_symbols(symbols) is pack_symbols(symbols, symbols.alphabet) is check_objects(symbols) is symbols
    assert pack_series(series, n_channels=1) is pack_points(series) is check_objects(series) is series
    for known in ("ab", as_alphabet("ab")):  # which makes unknown symbols an error
        named = pack_symbols(symbols, known)
        assert named.values is symbols.values
        assert (named.alphabet, named.alphabet.unknown) == (symbols.alphabet, "error")
        assert pack_symbols(named, known) is named
    assert (kind_of(symbols), kind_of(series)) == ("symbols", "series")
    dna = pack_symbols(["AC"], "dna")
    assert pack_symbols(dna, as_alphabet("dna", missing="~")) is dna


def test_check_objects_decides():
    assert check_objects(["01"]).alphabet == as_alphabet("01")
    assert check_objects(["AC"], alphabet="dna").alphabet.name == "dna"
    assert check_objects([[0, 1]], missing=-1).alphabet == as_alphabet(2, missing=-1)
    assert check_objects([[0, 1]], kind="series").alphabet is None
    assert check_objects([[0, 1.5]]).alphabet is None
    same(check_objects(TABLE, kind="points"), TABLE, [1, 1])


# --- the packed form


def test_packed_form():
    packed = pack_symbols(["abc", "a", "cc"])
    assert packed.n_objects == 3
    assert packed.lengths.tolist() == [3, 1, 2]
    assert packed.owners.tolist() == [0, 0, 0, 1, 2, 2]
    assert packed.objects() == ["abc", "a", "cc"]
    assert [piece.tolist() for piece in packed.pieces()] == [[0, 1, 2], [0], [2, 2]]
    assert all(np.shares_memory(piece, packed.values) for piece in packed.pieces())
    assert packed.take([2, 0, 2]).objects() == ["cc", "abc", "cc"]
    assert packed.take(slice(1, None)).objects() == ["a", "cc"]
    assert packed.take(slice(2, 1)).n_objects == 0
    assert packed.take(np.array([True, False, True])).objects() == ["abc", "cc"]
    other = pickle.loads(pickle.dumps(packed))
    assert other.objects() == packed.objects()


RAGGED = st.lists(
    st.lists(st.one_of(st.floats(-1e75, 1e75), st.just(np.nan)), min_size=1, max_size=5), min_size=1, max_size=6
)


@settings(deadline=None, max_examples=50)
@given(RAGGED)
def test_series_round_trip(X):
    packed = pack_series(X)
    for obj, piece in zip(X, packed.objects(), strict=True):
        np.testing.assert_array_equal(piece[:, 0], obj)
    again = pack_series(packed.objects())
    np.testing.assert_array_equal(again.values, packed.values)
    np.testing.assert_array_equal(again.offsets, packed.offsets)


@settings(deadline=None, max_examples=50)
@given(X=st.lists(st.text("ACGTNRacgt-", min_size=1), min_size=1, max_size=6), data=st.data())
def test_symbols_round_trip_and_take(X, data):
    dna = as_alphabet("dna")
    packed = pack_symbols(X, dna)
    assert [dna.encode(text).tolist() for text in X] == [piece.tolist() for piece in packed.pieces()]
    again = pack_symbols(packed.objects(), dna)
    np.testing.assert_array_equal(again.values, packed.values)
    chosen = data.draw(st.lists(st.integers(0, len(X) - 1), min_size=1, max_size=8))
    direct = pack_symbols([X[i] for i in chosen], dna)
    np.testing.assert_array_equal(packed.take(chosen).values, direct.values)
    np.testing.assert_array_equal(packed.take(chosen).offsets, direct.offsets)


def test_from_concatenated():
    X = np.arange(10.0).reshape(5, 2)
    objects = from_concatenated(X, [2, 3])
    assert [obj.shape for obj in objects] == [(2, 2), (3, 2)]
    assert all(np.shares_memory(obj, X) for obj in objects)
    assert from_concatenated("abc", np.array([1, 2])) == ["a", "bc"]
    assert from_concatenated(["x", "yy"], [1, 1]) == [["x"], ["yy"]]
    assert [obj.tolist() for obj in from_concatenated(pd.Series([1, 2, 3]), [1, 2])] == [[1], [2, 3]]


@pytest.mark.parametrize(
    ("X", "lengths", "error", "match"),
    [
        ("abc", [1, 1], ValueError, r"sum to 2, but X has 3 .* Add the lengths of the last 1 elements, .* X\[:2\]"),
        ("abc", [1, 3, 2], ValueError, "sum to 6, but X has 3 .* Object 1 would end at 4; correct its length"),
        ("abc", [3, 0], ValueError, "object 1 has length 0; expected at least 1. Drop it, with its label"),
        ("abc", [0, -1], ValueError, "object 0 has length 0; expected at least 1"),
        ("abc", [4, -1], ValueError, r"object 1 has length -1.*if these are offsets, pass np.diff\(offsets\)"),
        ("abc", [1.5, 1.5], ValueError, r"1-D list of ints, one per object. Got \[1.5, 1.5\]; count the elements"),
        ("abc", [], ValueError, "1-D list of ints, .* count the elements"),
        ("abc", 3, ValueError, "1-D list of ints, .* count the elements"),
        (5, [5], TypeError, "array, a string or a list. Got int; pass the elements of all objects"),
    ],
)
def test_from_concatenated_errors(X, lengths, error, match):
    with pytest.raises(error, match=match):
        from_concatenated(X, lengths)


# --- what errors say

ANY = (pack_symbols, pack_series, pack_points, kind_of, check_objects)


@pytest.mark.parametrize("pack", ANY)
@pytest.mark.parametrize(
    ("X", "error", "match"),
    [
        ("ACGT", TypeError, r"one string; put it into a list: \[X\]"),
        (b"ACGT", TypeError, "one string"),
        ([], ValueError, r"Found array with 0 sample\(s\) .* minimum of 1 is required\. Pass at least one object"),
        (np.empty((0, 3)), ValueError, r"Found array with 0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1"),
        (np.empty((4, 0)), ValueError, r"0 feature\(s\) \(shape=\(4, 0\)\) while a minimum of 1 is required\."),
        (np.empty((4, 2, 0)), ValueError, r"0 feature\(s\) \(shape=\(4, 2, 0\)\).* Pass objects with at least"),
        (np.arange(3.0), ValueError, "Reshape your data"),
        (np.arange(3), ValueError, "got 1D array instead. Reshape your data"),
        (pd.Series([1.0, 2.0]), ValueError, "Reshape your data"),
        (np.array(3.0), ValueError, "got 0D array instead. Reshape your data"),
        (np.zeros((2, 2, 2, 2)), ValueError, r"Got shape \(2, 2, 2, 2\); .* X.reshape\(\*X.shape\[:2\], -1\)"),
        (np.ones((3, 2), dtype=bool), TypeError, r"bool; use .astype\(int\)"),
        (np.ones((3, 2), dtype=complex), ValueError, "Complex data not supported"),
        (np.zeros((3, 2), dtype="datetime64[s]"), TypeError, r"dtype datetime64\[s\]"),
        (scipy.sparse.csr_matrix(np.eye(3)), TypeError, r"Sparse data was passed; convert it by X.toarray\(\)"),
        (scipy.sparse.coo_array(np.eye(3)), TypeError, "Sparse data"),
        (None, TypeError, "Got NoneType"),
        (5, TypeError, "Got int"),
        ({"a": "b"}, TypeError, r"Got dict; pass list\(X.values\(\)\)"),
        ({"a", "b"}, TypeError, r"Got set; pass list\(X\)"),
        ((x for x in "ab"), TypeError, r"Got generator; pass list\(X\)"),
        ([1, 2, 3], ValueError, "object 0 is the single number 1.*Reshape your data"),
        ([[1, 2], 3.5], ValueError, "object 1 is the single number 3.5"),
        ([[1, 2], np.float64(3.5)], ValueError, "object 1 is the single number"),
        ([[1, 2], np.array(3.5)], ValueError, "object 1 is the single number 3.5"),
        ([[1, 2], []], ValueError, "object 1 is empty.*Drop it"),
        ([[1, 2], np.array([])], ValueError, "object 1 "),
        ([[1, 2], None], TypeError, "object 1 must be a string, a token list or an array. Got NoneType None"),
        ([[1, 2], {"a": 1}], TypeError, "object 1 must be .* Got dict"),
        ([[1, 2], [True, False]], TypeError, "object 1, position 0 is a bool; use ints"),
        ([[1, 2], np.array([True])], TypeError, "object 1 must hold numbers or symbols. Got dtype bool"),
        ([[1, 2], [1j]], ValueError, "object 1, position 0 is complex. Complex data not supported"),
        ([[1, 2], np.array([1j])], ValueError, "object 1: Complex data not supported"),
        ([[1, 2], np.zeros((2, 2, 2))], ValueError, r"object 1 .* Got shape \(2, 2, 2\); .* x.reshape\(len\(x\), -1\)"),
    ],
)
def test_malformed_input_of_any_kind(pack, X, error, match):
    with pytest.raises(error, match=match):
        pack(X)


@pytest.mark.parametrize(
    ("X", "error", "match"),
    [
        (["ab", ["a"]], TypeError, "object 1 is a token list, object 0 is a string; expected one type"),
        ([["a"], "ab"], TypeError, r"object 1 is a string, object 0 is a token list.*list\(s\)"),
        (["ab", ""], ValueError, "object 1 is empty"),
        (pd.Series(["ab", None]), TypeError, "object 1 must be a string.*Got (float nan|NoneType None)"),
        (["ab", [0, 1]], TypeError, "object 1 is integers, object 0 is a string"),
        ([[0, 1], np.zeros((3, 1), dtype=int)], ValueError, r"object 1 must be .*\(3, 1\).*\.ravel\(\)"),
        ([[0, 1], [[0], [1]]], ValueError, "object 1 must be .* nested list"),
        (np.zeros((2, 3, 4)), ValueError, r"2 axes \(n, T\). Got shape \(2, 3, 4\)"),
        ([["a"], ["a", {}]], TypeError, "object 1, position 1: a token must be hashable. Got dict"),
        ([[0, 1], [0.5, 1.0]], ValueError, "object 1, position 0: 0.5 is not a symbol.*continuous emission"),
        ([[0, 1], [2**70]], ValueError, "object 1 must hold integers of at most 64 bits"),
        (pack_series([[1.0]]), TypeError, "expected symbols. Got packed numbers"),
    ],
)
def test_malformed_symbols(X, error, match):
    for alphabet in (None, ["a", 0, 1]):
        with pytest.raises(error, match=match):
            pack_symbols(X, alphabet, "test")


def test_symbol_outside_the_alphabet_names_object_position_and_remedy():
    with pytest.raises(ValueError, match=r"^HMM: object 1, position 2: the symbol 'L' .*alphabet=\"protein\""):
        pack_symbols(["ACGT", "ACL"], "dna", "HMM")
    with pytest.raises(ValueError, match=r"^HMM: object 1, position 0: the symbol 5 is not in"):
        pack_symbols([[0, 1], [5]], 3, "HMM")
    with pytest.raises(ValueError, match=r"^HMM: object 1, position 1: the symbol 9 is not in"):
        pack_symbols(np.array([[0, 1], [2, 9]]), 3, "HMM")
    with pytest.raises(ValueError, match=r"packed with Alphabet\('rna'\). Got Alphabet\('dna'\)"):
        pack_symbols(pack_symbols(["ACGT"], "dna"), "rna", "HMM")


@pytest.mark.parametrize("pack", [pack_series, pack_points])
@pytest.mark.parametrize(
    ("X", "error", "match"),
    [
        ([[1.0], "abc"], TypeError, "object 1 must hold numbers. Got the string 'abc'.*categorical emission"),
        ([[1.0], ["a", "b"]], TypeError, "object 1, position 0: .* Got str 'a'; symbols need a categorical"),
        ([[1.0], [2.0, None]], TypeError, "object 1, position 1: .* Got NoneType None; .*missing numbers are NaN"),
        ([[1.0], np.array([2.0, None])], TypeError, "object 1, position 1: .* Got NoneType"),
        ([[[1.0, 2.0]], [[1.0, "x"]]], TypeError, r"object 1, position \(0, 1\): .* Got str 'x'"),
        (np.array([[1.0, None]]), TypeError, r"X, position \(0, 1\): .* Got NoneType"),
        (np.array([[1.0, {}]]), TypeError, "argument must be .* string.* number"),
        (np.array([["1.5", "2"]]), TypeError, r"X, position \(0, 0\): .* Got str '1.5'"),
        ([[1.0], [np.inf]], ValueError, "object 1, position 0, column 0 is inf; expected finite.*NaN"),
        ([[1.0], [2.0, -np.inf]], ValueError, "object 1, position 1, column 0 is -inf"),
        (
            [np.zeros((2, 3)), np.zeros((4, 2))],
            ValueError,
            r"object 1 has 2 (channels|features) \(shape \(4, 2\)\), object 0 has 3",
        ),
        (
            [np.zeros((2, 3)), np.zeros((2, 5))],
            ValueError,
            r'object 1 has 5 .*check_objects\(X, kind="series", layout="channels-first"\).*\[np.transpose\(x\) for x',
        ),
        ([np.zeros((2, 3)), np.zeros(2)], ValueError, "object 1 has 1 (channels|features)"),
        ([[[1.0], [2.0, 3.0]]], ValueError, "object 0 .* unequal lengths: row 0 has 1, row 1 has 2. Give every row"),
        ([[[1.0, 2.0], [3.0]]], ValueError, "row 0 has 2, row 1 has 1. Give every row the same channels, with NaN"),
        ([[[1.0], 2.0]], ValueError, "object 0 .* rows that are nested unevenly. Pass every row as a flat list"),
        ([[[[1.0]], [[2.0]]]], ValueError, r"object 0 must have shape .* Got shape \(2, 1, 1\); make its further axes"),
        ([np.zeros((2, 3)), np.zeros((2, 0))], ValueError, r"object 1 must have shape .* Got shape \(2, 0\); drop it"),
        ([np.zeros((2, 3)), np.zeros((0, 3))], ValueError, r"object 1 must have shape .* Got shape \(0, 3\); drop it"),
        (ak.Array([[1.0], [2.0, "x"]]), TypeError, "object 1, position 1: .* Got str 'x'"),
        (ak.Array([[1.0], None]), TypeError, "object 1 must be a string.*Got NoneType None"),
        (pack_symbols(["ab"]), TypeError, "expected numbers. Got symbols of Alphabet"),
    ],
)
def test_malformed_numbers(pack, X, error, match):
    with pytest.raises(error, match=match):
        pack(X, "test")


def test_infinity_in_a_table():
    X = np.zeros((3, 4))
    X[2, 1] = np.inf
    with pytest.raises(ValueError, match="object 2, position 1, column 0 is inf"):
        pack_series(X)
    with pytest.raises(ValueError, match="object 2, position 0, column 1 is inf"):
        pack_points(X)


def test_expected_width():
    with pytest.raises(ValueError, match=r"^HMM: object 1 has 2 channels \(shape \(4, 2\)\), 3 were expected"):
        pack_series([np.zeros((4, 3)), np.zeros((4, 2))], "HMM", n_channels=3)
    with pytest.raises(ValueError, match=r"layout=.channels-first.*Otherwise pass the 3 channels"):
        pack_series([np.zeros((3, 7))], "HMM", n_channels=3)
    for X in (np.zeros((4, 2)), pack_series([np.zeros((4, 2))])):
        match = r"features .as all others., 3 were expected. Pass the 3 features .* or fit a model to objects with 2"
        with pytest.raises(ValueError, match=match):
            pack_points(X, "GMM", n_features=3)
    with pytest.raises(ValueError, match=r"object 0 has 1 channels .* For n series pass an array \(n, T, 3\)"):
        pack_series(np.zeros((4, 2)), "HMM", n_channels=3)
    with pytest.raises(ValueError, match=r"1 features .as all others.*Pass the 2 features"):
        pack_points(np.zeros((4, 1)), "GMM", n_features=2)


BOTH = (np.arange(10.0).reshape(2, 5), np.arange(6.0).reshape(2, 3))  # (d, T), of d = 2


@pytest.mark.parametrize(
    ("X", "n_channels", "remedies"),
    [
        (BOTH, 2, ['check_objects(X, kind="series", layout="channels-first")', "[np.transpose(x) for x in X]"]),
        (BOTH, None, ['check_objects(X, kind="series", layout="channels-first")', "[np.transpose(x) for x in X]"]),
        (np.zeros((3, 2, 5)), 2, ['check_objects(X, kind="series", layout="channels-first")']),
        (np.zeros((3, 2, 5)), 2, ["[np.transpose(x) for x in X]"]),
        (np.zeros((5, 2)), 2, ["[X]"]),
        ([[0.0, 1.0], [2.0, 3.0]], 2, ["[X]"]),
        (np.zeros((3, 5, 5, 4)), 20, ["X.reshape(*X.shape[:2], -1)"]),
    ],
)
def test_stated_remedies_work(X, n_channels, remedies):
    for remedy in remedies:
        with pytest.raises(ValueError, match=re.escape(remedy)):
            pack_series(X, "HMM", n_channels=n_channels)
        mended = eval(remedy, {"X": X, "np": np, "check_objects": check_objects})
        assert pack_series(mended, "HMM", n_channels=n_channels).values.shape[1] == (n_channels or 2)


def test_stated_remedies_for_layouts_that_were_given():
    X = [np.zeros((5, 2)), np.zeros((7, 2))]
    with pytest.raises(
        ValueError, match=r'object 1 has 7 channels .*If the objects are \(T, d\), pass layout="time-first"'
    ):
        check_objects(X, layout="channels-first")
    packed = pack_series([np.zeros((2, 5))])
    with pytest.raises(
        ValueError, match=r"5 channels .as all others., 2 were expected. .* pack them again by check_obj"
    ):
        pack_series(packed, "HMM", n_channels=2)
    with pytest.raises(
        ValueError, match=r"object 0 has 1 features.*If each object is a single draw, pass np.array\(X\)"
    ):
        pack_points([[0.0, 1.0], [2.0, 3.0]], "GMM", n_features=2)
    assert pack_points(np.array([[0.0, 1.0], [2.0, 3.0]]), "GMM", n_features=2).n_objects == 2


def test_mixed_kinds_and_options():
    with pytest.raises(TypeError, match="object 1 is floats, object 0 is a string"):
        check_objects(["ab", [0.5]])
    with pytest.raises(ValueError, match="'kind' parameter of check_objects"):
        check_objects(["ab"], kind="letters")
    with pytest.raises(ValueError, match="'layout' parameter of check_objects must be one of 'time-first'"):
        check_objects(["ab"], layout="wide")
    with pytest.raises(ValueError, match="'layout' parameter"):
        pack_series([[1.0]], layout="wide")
    assert kind_of([[0, 1], [0.5]]) == "series"
    assert kind_of([np.zeros((2, 1), dtype=int)]) == "series"
    assert kind_of([["a"], [1]]) == "symbols"


# --- digests


def test_digests_are_of_the_content_alone():
    packed = pack_symbols(["abc", "a", "abc"])
    first = object_digests(packed)
    assert first[0] == first[2] != first[1]
    assert object_digests(packed.take([1, 0])) == [first[1], first[0]]
    assert [object_digest(packed, i) for i in range(3)] == first
    assert object_digests(pack_symbols(["abc"], "abcd")) != first[:1]
    assert object_digests(pack_symbols(["AC"], "dna")) == object_digests(pack_symbols(["ac"], "dna", missing="~"))
    series = object_digests(pack_series([[0.0, NAN], [[1.0], [2.0]], [-0.0, np.float64(-NAN)]]))
    assert series[0] == series[2] != series[1]
    assert object_digests(pack_series([np.ones((1, 2))])) != object_digests(pack_series([np.ones((2, 1))]))


# --- scikit-learn


class Means(TransformerMixin, BaseEstimator):
    """The mean of each series, as the smallest estimator that uses everything here."""

    def __init__(self, points=False):
        self.points = points

    def _pack(self, X):
        if self.points:
            return pack_points(X, "Means")
        return pack_series(X, "Means", n_channels=getattr(self, "width_", None))

    def fit(self, X, y=None):
        self.__dict__.pop("width_", None)
        kind_of(X)
        packed = self._pack(X)
        remember_width(self, X, reset=True)
        self.width_ = packed.values.shape[1]
        return self

    def transform(self, X):
        check_is_fitted(self)
        packed = self._pack(X)
        remember_width(self, X, reset=False)
        return np.array([piece[~np.isnan(piece).any(axis=1)].sum(axis=0) for piece in packed.pieces()])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


@pytest.mark.parametrize("points", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:Estimator Means does not inherit")
def test_scikit_learn_accepts_the_checks(points):
    results = check_estimator(Means(points), on_fail=None)
    failed = {r["check_name"]: str(r["exception"]) for r in results if r["status"] == "failed"}
    assert not failed
    assert sum(r["status"] == "passed" for r in results) > 30


def test_width_is_remembered_for_tables_and_not_for_lists():
    est = Means().fit(TABLE)
    assert est.n_features_in_ == 3
    assert est.transform([[1.0], [2.0, 3.0]]).tolist() == [[1.0], [5.0]]
    with pytest.raises(ValueError, match="X has 2 features, but Means is expecting 3 features as input"):
        est.transform(TABLE[:, :2])
    est.fit([[1.0], [2.0, 3.0]])
    assert not hasattr(est, "n_features_in_")
    assert est.transform(TABLE[:, :2]).shape == (2, 1)
    est.transform(pd.DataFrame(TABLE, columns=list("abc")))


def test_feature_names_are_remembered():
    frame = pd.DataFrame(TABLE, columns=list("abc"))
    est = Means().fit(frame)
    assert est.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names should match"):
        est.transform(frame[["c", "b", "a"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        est.transform(TABLE)
    est.fit([[1.0]])
    assert not hasattr(est, "feature_names_in_")
