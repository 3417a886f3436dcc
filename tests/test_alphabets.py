"""Alphabets: names, members, spellings, encode and decode, inference, and what their errors say."""

import pickle
import re
import string

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genkern.data.objects import Alphabet, as_alphabet, infer_alphabet

IUPAC = {
    "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC", "B": "CGT", "D": "AGT", "H": "ACT",
    "V": "ACG", "N": "ACGT", "X": "ACGT", "-": "ACGT", "?": "ACGT", ".": "ACGT",
}  # fmt: skip
AMINO = "ACDEFGHIKLMNPQRSTVWY"
PROTEIN = {"B": "DN", "Z": "EQ", "J": "IL"} | dict.fromkeys("X-?*.UO", AMINO)


def members_of(alphabet, symbol):
    """Return the plain symbols a spelling stands for, through encode and members."""
    row = alphabet.members[alphabet.encode([symbol])[0]]
    return "".join(np.array(alphabet.symbols)[row == 1])


@pytest.mark.parametrize(
    ("name", "symbols", "table"),
    [
        ("dna", "ACGT", IUPAC),
        ("rna", "ACGU", {key: value.replace("T", "U") for key, value in IUPAC.items()}),
        ("protein", AMINO, PROTEIN),
    ],
)
def test_named_alphabets_know_their_codes_in_both_cases(name, symbols, table):
    alphabet = as_alphabet(name)
    assert alphabet.name == name
    assert "".join(alphabet.symbols) == symbols
    assert alphabet.size == len(symbols)
    for letter in symbols:
        assert members_of(alphabet, letter) == members_of(alphabet, letter.lower()) == letter
    for letter, members in table.items():
        assert members_of(alphabet, letter) == members_of(alphabet, letter.lower()) == members
    np.testing.assert_array_equal(alphabet.members[: alphabet.size], np.eye(alphabet.size))
    np.testing.assert_array_equal(alphabet.members[alphabet.size :], alphabet.extras)
    assert alphabet.n_codes == len(alphabet.members) == len({frozenset(m) for m in table.values()}) + len(symbols)


def test_spellings_of_a_missing_symbol_share_one_code():
    codes = as_alphabet("dna").encode("NX-?.nx")
    assert set(codes.tolist()) == {14}
    assert as_alphabet("dna").decode(codes) == "N" * 7


def test_name_is_read_in_any_case_and_other_strings_are_characters():
    assert as_alphabet("DNA") == as_alphabet("dna")
    assert as_alphabet("ACGT").symbols == tuple("ACGT")
    assert as_alphabet("ACGT") != as_alphabet("dna")
    assert as_alphabet("ACGT").n_codes == 4


def test_int_iterable_and_alphabet():
    assert as_alphabet(3).symbols == (0, 1, 2)
    assert as_alphabet(np.int64(3)) == as_alphabet(range(3)) == as_alphabet(np.arange(3))
    assert all(type(symbol) is int for symbol in as_alphabet(np.arange(3)).symbols)
    assert as_alphabet(["the", ("a", 1)]).encode([("a", 1), "the"]).tolist() == [1, 0]
    alphabet = as_alphabet("xyz")
    assert as_alphabet(alphabet) is alphabet


def test_missing_declares_one_more_symbol():
    alphabet = as_alphabet("ab", missing="?")
    assert alphabet.encode("a?b").tolist() == [0, 2, 1]
    np.testing.assert_array_equal(alphabet.members, [[1, 0], [0, 1], [1, 1]])
    assert as_alphabet(2, missing=-1).encode(np.array([0, -1, 1])).tolist() == [0, 2, 1]
    dna = as_alphabet("dna", missing="~")
    assert dna.encode("A~").tolist() == [0, 14]
    assert dna.n_codes == 15
    assert as_alphabet("dna", missing="N") == as_alphabet("dna")


@pytest.mark.parametrize("name", ["dna", "rna", "protein"])
@pytest.mark.parametrize("gap", [None, float("nan"), np.float64("nan"), pd.NA])
def test_gaps_among_tokens_of_named_alphabets_are_missing(name, gap):
    alphabet = as_alphabet(name)
    assert alphabet.encode(["A", gap]).tolist() == alphabet.encode("A-").tolist()
    assert alphabet.encode(np.array(["A", gap], dtype=object)).tolist() == alphabet.encode("A-").tolist()
    assert alphabet.encode([gap]).tolist() == alphabet.encode("-").tolist()
    assert alphabet.decode(alphabet.encode(["A", gap])) == alphabet.decode(alphabet.encode("A-"))
    assert as_alphabet(name, missing=gap) == as_alphabet(name)
    assert pickle.loads(pickle.dumps(alphabet)).encode(["A", gap])[1] == alphabet.encode("-")[0]


def test_digests_of_named_alphabets_are_those_of_the_first_release():
    # The keys of stored fits are made of them.
    assert as_alphabet("dna").digest == "1bb78feba505ef86fed42b837f2c764e"
    assert as_alphabet("rna").digest == "27a045d3fb4988e624e06e3084df412c"
    assert as_alphabet("protein").digest == "826ecb8a6216e969cf38ac8062df8cd1"
    without = Alphabet(as_alphabet("dna").symbols, as_alphabet("dna").ambiguities)
    assert without.digest == as_alphabet("dna").digest
    assert without.same_codes(as_alphabet("dna"))


@pytest.mark.parametrize(
    ("alphabet", "obj"),
    [
        (as_alphabet("ab"), "abz"),
        (as_alphabet("ab"), ["a", None]),
        (as_alphabet(3), np.array([0.0, np.nan])),
        (as_alphabet(3), np.array([0.0, 5.0])),
        (as_alphabet(["up", "down"]), ["up", "left"]),
        (as_alphabet("dna"), "ACG!"),
        (as_alphabet("ab", missing="?"), "a?z"),
        (as_alphabet(range(5, 90)), [5, 3]),
    ],
)
def test_the_stated_declaration_of_a_missing_symbol_works(alphabet, obj):
    with pytest.raises(ValueError, match="as_alphabet") as caught:
        alphabet.encode(obj)
    stated = re.search(r"by alphabet=(as_alphabet\(.*\))(, or remove it)?\.$", str(caught.value)).group(1)
    mended = eval(stated, {"as_alphabet": as_alphabet, "alphabet": alphabet})
    codes = mended.encode(obj)
    np.testing.assert_array_equal(mended.extras[codes[-1] - mended.size], 1.0)
    assert mended.symbols == alphabet.symbols


def test_extra_codes_without_the_dense_table():
    rng = np.random.default_rng(0)
    for alphabet in (as_alphabet("dna"), as_alphabet("protein"), as_alphabet(3, missing=-1)):
        probs = rng.dirichlet(np.ones(alphabet.size), (2, 3))
        wide = alphabet.append_extras(probs)
        np.testing.assert_array_equal(wide[..., : alphabet.size], probs)
        np.testing.assert_allclose(wide, probs @ alphabet.members.T, rtol=1e-15)
        raw = rng.random((2, 3, alphabet.n_codes))
        np.testing.assert_allclose(alphabet.pass_to_members(raw), raw @ alphabet.members, rtol=1e-14)
        raw[..., alphabet.size :] = 0.0
        np.testing.assert_array_equal(alphabet.pass_to_members(raw), raw[..., : alphabet.size])


@pytest.mark.parametrize("obj", [["a", None, "b"], ["a", float("nan"), "b"], ["a", np.float64("nan"), "b"]])
def test_nan_declares_none_and_nan(obj):
    alphabet = as_alphabet("ab", missing=float("nan"))
    assert alphabet.encode(obj).tolist() == [0, 2, 1]
    assert alphabet.decode([0, 2]) == ["a", None]
    with pytest.raises(
        ValueError, match=r"object 4, position 1: (None|nan) is not in .*as_alphabet\('ab', missing=float\('nan'\)\)"
    ):
        as_alphabet("ab").encode(obj, index=4)


def test_nan_in_float_codes_is_missing_only_if_declared():
    codes = np.array([0.0, np.nan, 1.0])
    assert as_alphabet(2, missing=np.nan).encode(codes).tolist() == [0, 2, 1]
    with pytest.raises(ValueError, match="position 1: nan is not in"):
        as_alphabet(2).encode(codes)


def test_values_are_frozen_hashable_and_survive_pickling():
    alphabet = as_alphabet("dna")
    other = pickle.loads(pickle.dumps(alphabet))
    assert other == alphabet
    assert hash(other) == hash(alphabet)
    assert other.digest == alphabet.digest
    assert len({alphabet, other, as_alphabet("rna")}) == 2
    with pytest.raises(AttributeError):
        alphabet.name = "x"
    with pytest.raises(ValueError, match="read-only"):
        alphabet.members[0, 0] = 2
    with pytest.raises(ValueError, match="read-only"):
        other.extras[0, 0] = 2


def test_digest_is_of_meaning_not_of_spelling():
    assert as_alphabet("dna", missing="~").digest == as_alphabet("dna").digest
    assert as_alphabet("ACGT").digest != as_alphabet("dna").digest
    assert as_alphabet("01").digest != as_alphabet(2).digest


def test_repr_is_short():
    assert repr(as_alphabet("dna")) == "Alphabet('dna')"
    assert repr(as_alphabet("ab", missing="?")) == "Alphabet('ab', missing='?')"
    assert repr(as_alphabet(["x1", "x2"])) == "Alphabet(['x1', 'x2'])"
    assert len(repr(as_alphabet(1000))) < 80


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda: as_alphabet(""), ValueError, "at least one symbol"),
        (lambda: as_alphabet(0), ValueError, "at least 1 symbol"),
        (lambda: as_alphabet("aba"), ValueError, "'a' occurs twice"),
        (lambda: as_alphabet(2.5), TypeError, "expected .dna.*Got 2.5"),
        (lambda: as_alphabet(True), TypeError, "Got True"),
        (lambda: as_alphabet(None), TypeError, "Got None"),
        (lambda: as_alphabet(["a", ["b"]]), TypeError, r"hashable.*\['b'\]"),
        (lambda: as_alphabet(["a", None]), TypeError, "not missing. Got None"),
        (lambda: as_alphabet("ab", missing="a"), ValueError, "missing='a' already has a meaning"),
        (lambda: as_alphabet("dna", missing="R"), ValueError, "missing='R' already has a meaning"),
        (lambda: Alphabet(("a",), (("?", (1,)),)), ValueError, "members of '\\?' must be distinct codes below 1"),
        (lambda: Alphabet(("a",), (("?", ()),)), ValueError, "members of '\\?'"),
        (lambda: Alphabet(("a",), (), (("b", 1),)), ValueError, "alias 'b' must be below 1"),
        (lambda: as_alphabet("ab").decode([0, 2]), ValueError, r"codes must be 0..1. Got 0..2"),
        (lambda: as_alphabet("ab").decode([-1]), ValueError, "Got -1"),
    ],
)
def test_malformed_alphabets_raise(build, error, match):
    with pytest.raises(error, match=match):
        build()


@pytest.mark.parametrize(
    ("spec", "obj", "match"),
    [
        ("dna", "ACGE", r"position 3: the symbol 'E' is not in Alphabet\('dna'\)\. .*alphabet=\"protein\""),
        ("dna", "ACGU", 'position 3: .* fit alphabet="rna"'),
        ("dna", "AC!U", r"position 2: the symbol '!' .*missing='!'"),
        (
            "AC",
            "ACG",
            r"position 2: the symbol 'G' is not in Alphabet\('AC'\)\. Name an alphabet= that has all symbols",
        ),
        ("dna", "acgl", r"'l' is not in Alphabet\('dna'\)\. All objects fit alphabet=\"protein\"\. Name an alphabet="),
        ("dna", "AcgU", r"'U' is not in Alphabet\('dna'\)\. Name an alphabet="),  # neither upper nor lower case
        ("protein", "ACG1", r"'1' is not in Alphabet\('protein'\)\. Name an alphabet="),
        ("ab", "az", r"'z' is not in Alphabet\('ab'\)\. Name .*emission=CategoricalEstimator\(alphabet=\.\.\.\)"),
        ("ab", "az", r"declare it by alphabet=as_alphabet\('ab', missing='z'\)\.$"),
        (3, [0.0, 5.0], r"declare it by alphabet=as_alphabet\(3, missing=5\)\.$"),
        (
            3,
            [0.0, np.nan],
            r"nan is not in .* missing by alphabet=as_alphabet\(3, missing=float\('nan'\)\), or remove it",
        ),
        ("dna", "AéC", "position 1: the symbol 'é'"),
        ("dna", "A" + chr(0x1F600), "position 1"),
        ("dna", [0, 1], "position 0: the symbol 0 is not in"),
        (3, [0, 1, 3], "position 2: the symbol 3 is not in .*missing=3"),
        (3, np.array([0, -1], dtype=np.int8), "position 1: the symbol -1"),
        (3, np.array([0, 200], dtype=np.uint8), "position 1: the symbol 200"),
        (3, [0.0, 0.5], "position 1: 0.5 is not a symbol.*continuous emission"),
        (3, [0.0, np.inf], "position 1: inf is not a symbol"),
        (["a", "b"], ["b", "c"], "position 1: the symbol 'c'"),
    ],
)
def test_symbols_outside_raise_with_position_and_remedy(spec, obj, match):
    with pytest.raises(ValueError, match=match):
        as_alphabet(spec).encode(obj)


def test_error_names_the_object():
    with pytest.raises(ValueError, match=r"^mine: object 7, position 1: the symbol 'c'"):
        as_alphabet("ab").encode("ac", index=7, who="mine")


@settings(deadline=None, max_examples=60)
@given(data=st.data(), characters=st.lists(st.characters(), min_size=1, max_size=12, unique=True))
def test_text_round_trip(data, characters):
    alphabet = Alphabet(tuple(characters))
    text = "".join(data.draw(st.lists(st.sampled_from(characters), min_size=1, max_size=40)))
    codes = alphabet.encode(text)
    assert codes.dtype == np.int32
    assert codes.tolist() == [characters.index(c) for c in text]
    assert alphabet.decode(codes) == text


@settings(deadline=None, max_examples=60)
@given(data=st.data(), symbols=st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=12, unique=True))
def test_integer_round_trip(data, symbols):
    alphabet = Alphabet(tuple(symbols))
    obj = data.draw(st.lists(st.sampled_from(symbols), min_size=1, max_size=40))
    assert alphabet.encode(np.array(obj)).tolist() == [symbols.index(x) for x in obj]
    assert alphabet.decode(alphabet.encode(obj)) == obj


def test_integers_far_apart_are_found():
    symbols = (2**62, -(2**62))  # their difference leaves int64
    assert Alphabet(symbols).encode(np.array([-(2**62), 2**62])).tolist() == [1, 0]


TOKENS = st.one_of(st.text(max_size=3), st.integers(), st.tuples(st.integers(), st.text(max_size=1)))


@settings(deadline=None, max_examples=60)
@given(data=st.data(), symbols=st.lists(TOKENS, min_size=1, max_size=12, unique=True))
def test_token_round_trip(data, symbols):
    alphabet = Alphabet((*symbols, "anchor token"))  # one long token, so that the list is not text
    obj = [*data.draw(st.lists(st.sampled_from(symbols), min_size=1, max_size=40)), "anchor token"]
    assert alphabet.encode(obj).tolist() == [alphabet.symbols.index(x) for x in obj]
    assert alphabet.decode(alphabet.encode(obj)) == obj


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, np.float32, np.float64])
def test_all_number_types_encode_alike(dtype):
    assert as_alphabet(4).encode(np.array([3, 0, 2], dtype=dtype)).tolist() == [3, 0, 2]
    assert as_alphabet([7, 100, 3]).encode(np.array([3, 100, 7], dtype=dtype)).tolist() == [2, 1, 0]


def test_small_integer_types_against_wide_alphabets():
    alphabet = as_alphabet(range(-5, 1000))
    assert alphabet.encode(np.array([-5, 127], dtype=np.int8)).tolist() == [0, 132]
    with pytest.raises(ValueError, match="the symbol 18446744073709551615"):
        alphabet.encode(np.array([3, 2**64 - 1], dtype=np.uint64))


def test_inferred_alphabets():
    assert infer_alphabet(["banana", "cab"]).symbols == tuple("abcn")
    assert infer_alphabet(["ab-a", "ba"], missing="-") == as_alphabet("ab", missing="-")
    assert infer_alphabet([["x", "yy"], ["a"]]).symbols == ("a", "x", "yy")
    assert infer_alphabet([np.array([0, 4]), [1]]) == as_alphabet([0, 1, 4])
    assert infer_alphabet([np.array([0, -1]), [1]], missing=-1) == as_alphabet(2, missing=-1)
    assert infer_alphabet(np.array([[0.0, 2.0]])) == as_alphabet([0, 2])
    assert infer_alphabet([[0.0, np.nan, 2.0]], missing=np.nan) == as_alphabet([0, 2], missing=np.nan)
    assert infer_alphabet([[0, None], [2, 1]], missing=np.nan) == as_alphabet(3, missing=np.nan)
    assert infer_alphabet([["b", None, "a"]], missing=np.nan) == as_alphabet("ab", missing=np.nan)
    assert infer_alphabet([string.ascii_letters + "éß"]).size == 54


@pytest.mark.parametrize(
    ("X", "missing", "error", "match"),
    [
        (["aa", "??"], "?", None, None),
        (["??"], "?", ValueError, "every symbol is missing.*alphabet="),
        (
            [[0, 1], [2, -1]],
            None,
            ValueError,
            r"object 1, position 1: -1 is negative.*missing=-1.*\(symbols, missing=-1\)",
        ),
        ([[0, 1], [2, 10**9]], None, ValueError, r"Got 1000000000 in object 1, position 1.*alphabet=\["),
        ([[0, 1.5]], None, ValueError, "object 0, position 1: 1.5 is not a symbol.*continuous"),
        ([[0, np.inf]], None, ValueError, "object 0, position 1: inf is not a symbol"),
        (
            [[0.0, 1.0], [np.nan]],
            None,
            ValueError,
            r"object 1, position 0 is nan.*as_alphabet\(symbols, missing=float\('nan'\)",
        ),
        (
            [["a"], ["b", None]],
            None,
            ValueError,
            r"object 1, position 1 is None.*as_alphabet\(symbols, missing=float\('nan'\)",
        ),
        ([["a"], ["b", 3]], None, TypeError, "'a' .object 0, position 0. and 3 .object 1, position 1.*alphabet="),
    ],
)
def test_inference_errors(X, missing, error, match):
    if error is None:
        assert infer_alphabet(X, missing).size == 1
        return
    with pytest.raises(error, match=match):
        infer_alphabet(X, missing)


@pytest.mark.parametrize(
    ("alphabet", "obj", "words"),
    [
        (
            "01234567",
            [0, 1],
            r"the symbol 0 .* knows strings, the object holds numbers\. Pass strings: \[\[str\(s\) .*alphabet=8",
        ),
        (
            "ab",
            np.array([0.0, 1.0]),
            r"the symbol 0 .* knows strings, the object holds numbers\. Pass strings here too",
        ),
        (3, "12", r"the symbol '1' .* knows numbers, the object holds strings\. Pass numbers: \[\[int\(s\)"),
        (3, ["a"], r"the symbol 'a' .* knows numbers, the object holds strings\. Pass numbers here too"),
    ],
)
@pytest.mark.parametrize("unknown", ["error", "missing"])
def test_numbers_where_strings_are_known_are_told_apart_and_the_reverse(alphabet, obj, words, unknown):
    known = as_alphabet(alphabet).with_unknown(unknown)
    with pytest.raises(ValueError, match=words):
        known.encode(obj, 0)
    if "here too" not in words:
        convert = int if isinstance(obj, str) else str
        assert known.encode([convert(s) for s in obj]).tolist() == [int(s) for s in obj]
