"""Which kind of objects a list holds, and that nothing is guessed where there are two readings."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from genkern import check_objects
from genkern.data.flatten import flatten_symbols
from genkern.data.kinds import ORDERED, _order, biological, detect_kind
from genkern.datasets import load_japanese_vowels, load_splice_junctions, make_two_hmms

RNG = np.random.default_rng(0)
WALKS = [np.cumsum(RNG.standard_normal((n, 2)), axis=0) for n in (40, 50, 60)]
SQUARES = ["0" * n + "2" * n + "4" * n + "6" * n for n in (3, 4, 5, 6, 7)]
FOUR = [[0] * n + [1] * n + [2] * n + [3] * n for n in (3, 4, 5, 6, 7)]
PAGES = ["my thesis advisor", "professor of computing", "Courses and exams, 1996"]


@pytest.mark.parametrize(
    ("X", "kind"),
    [
        (WALKS, "series"),
        ([walk[:, 0] for walk in WALKS], "series"),
        ([walk.tolist() for walk in WALKS], "series"),
        (check_objects(WALKS), "series"),
        (RNG.standard_normal((5, 30)), "series"),
        (pd.DataFrame(RNG.standard_normal((5, 30))), "series"),
        (np.stack([walk[:40] for walk in WALKS]), "series"),
        (["ACGT", "GA"], "symbols"),
        ([b"ACGT", b"GA"], "symbols"),
        (pd.Series(["ACGT", "GA"]), "symbols"),
        ([["a", "b"], ["b"]], "symbols"),
        ([np.array([0, 5, 3]), np.array([7, 1])], "symbols"),
        (check_objects(["ACGT", "GA"]), "symbols"),
        (["0110", "10"], "symbols"),
        (make_two_hmms(5).X, "symbols"),
        (SQUARES, "codes"),
        ([list(map(int, code)) for code in SQUARES], "codes"),
        ([list(code) for code in SQUARES], "codes"),
        (FOUR, "codes"),
        (check_objects(SQUARES), "codes"),
        (PAGES, "documents"),
        ([*PAGES, ""], "documents"),
        (load_japanese_vowels().X, "series"),
        (load_splice_junctions().X, "symbols"),
    ],
)
def test_kinds(X, kind):
    assert detect_kind(X) == kind


@pytest.mark.parametrize(
    ("X", "kinds"),
    [
        ([RNG.standard_normal((30, 3)) for _ in range(20)], ("series", "points")),
        (RNG.standard_normal((20, 30, 3)), ("series", "points")),
        ([np.arange(1000), np.arange(5)], ("series", "symbols")),
        ([np.array([-1, 2]), np.array([3])], ("series", "symbols")),
        ([[f"word{i}" for i in range(100)]], ("symbols", "documents")),
        (["O'Neill", "van der Berg", "Li"], ("symbols", "documents")),
        (["ACGT ACGT", "AAAA CCCC"], ("symbols", "documents")),
        (["acgtn acgta", "aaaa cccc"], ("symbols", "documents")),
        (["MKVL AAGI", "GSSG WKPE"], ("symbols", "documents")),
        (SQUARES[:4], ("symbols", "codes")),
        ([*SQUARES, "000"], ("symbols", "codes")),
    ],
)
def test_two_readings_are_an_error_that_asks(X, kinds):
    with pytest.raises(ValueError, match=f"me: .*kind='{kinds[0]}' or kind='{kinds[1]}'"):
        detect_kind(X, "me")


@pytest.mark.parametrize(
    ("X", "error", "words"),
    [
        ([], ValueError, "0 sample"),
        (["ACGT", None], TypeError, "object 1 "),
        (["ACGT", ""], ValueError, "object 1 "),
        ([WALKS[0], np.zeros((0, 2))], ValueError, "object 1 "),
        ([WALKS[0], np.zeros((4, 3))], ValueError, "object 1 "),
        ("ACGT", TypeError, "one string"),
    ],
)
def test_malformed_objects_are_named(X, error, words):
    with pytest.raises(error, match=words):
        detect_kind(X)


def test_order_is_standardised_over_all_orders_of_the_rows():
    """Mean zero and variance one over all permutations, which are enumerated."""
    first, second = RNG.gamma(1.0, size=5), RNG.standard_normal(4) ** 3
    orders = [
        [np.array(a)[:, None], np.array(b)[:, None]]
        for a, b in itertools.product(itertools.permutations(first), itertools.permutations(second))
    ]
    assert np.mean([_order(rows) ** 2 for rows in orders]) == pytest.approx(1.0, rel=1e-9)
    assert _order([np.repeat(np.arange(50.0), 2)[:, None]]) > ORDERED
    assert _order([np.ones((9, 1))]) == 0.0
    assert _order([np.ones((2, 1))]) == 0.0


def test_missing_values_and_units_do_not_hide_the_order():
    with_gaps = [walk.copy() for walk in WALKS]
    with_gaps[0][3:6, 0] = np.nan
    assert detect_kind(with_gaps) == "series"
    assert detect_kind([walk * 1e70 for walk in WALKS]) == "series"


@pytest.mark.parametrize(
    ("X", "name"),
    [
        (["ACGTN" + "ACGT" * 20, "acgt".upper()], "dna"),
        (["acgtacgt"], "dna"),
        (["ACGU"], "rna"),
        (["ACDEFGHIKLMNPQRSTVWY" * 3 + "X"], "protein"),
        (["abab", "bba"], None),
        (["ACGTacgu"], None),
        (["thequickbrownfoxjumpsoverthelazydog"], None),
        ([["A", "C", "G", "T"]], None),
        (["AC"], None),
    ],
)
def test_alphabets_of_biology(X, name):
    assert biological(flatten_symbols(X, "me")) == name
