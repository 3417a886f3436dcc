"""The experiment with exons and introns: its parts against plain ones, and its quick run."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genkern import FitEach, Store
from genkern.papers import run
from genkern.papers.exons_introns import RULES, _Ends, kernel_matrix
from genkern.papers.mean_map_sets import Place, Problem, problem
from genkern.papers.shared.held_out import divide

DATA = Path(os.environ.get("GENKERN_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))
needs_data = pytest.mark.skipif(
    not (DATA / "exon_intron").exists(), reason="needs exon_intron of the data, see GENKERN_DATA"
)


def test_kernels_by_enumeration() -> None:
    X = ["ACGTTGCAAT" * 3, "GTGTGAGTCCAGTTAG" * 2, "CCCCCGGGGGCACACG" * 2, "ACACGT" * 5]
    here = Problem(X, divide(["exon", "intron"] * 2, 2, 2), "dna", 2, {}, 1, 1e-5)
    words = ["".join(word) for word in product("ACGT", repeat=4)]
    models = FitEach(here.hmm("ours", 2)).fit_transform(X)
    laws = np.exp([model.log_prob(words) for model in models])
    np.testing.assert_allclose(laws.sum(axis=1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(kernel_matrix(here, "HMM kernel, T = 3", Store()), _cosines(laws), rtol=1e-9)
    counts = np.array([[sum(x[i : i + 2] == word for i in range(len(x) - 1)) for word in PAIRS] for x in X])
    np.testing.assert_allclose(kernel_matrix(here, "words of 2", Store()), _cosines(counts), rtol=1e-9)
    gaps = np.log([[len(x) / len(z) for z in X] for x in X])
    np.testing.assert_allclose(kernel_matrix(here, "length alone", Store()), np.exp(-(gaps**2)), rtol=1e-9)


PAIRS = ["".join(pair) for pair in product("ACGT", repeat=2)]


def _cosines(rows: Any) -> Any:
    sizes = np.sqrt((rows**2).sum(axis=1))
    return rows @ rows.T / np.outer(sizes, sizes)


def test_rules_look_at_the_ends() -> None:
    X, y = ["GTAAAG", "GTAAAC", "CTAAAG", "GT"], ["intron", "intron", "exon", "exon"]
    assert _Ends().fit(X, y).predict(X).tolist() == ["intron", "intron", "exon", "intron"]
    assert _Ends("AG").fit(X, y).predict(X).tolist() == ["intron", "exon", "exon", "exon"]
    assert _Ends().fit(X, y).score(X, y) == 0.75


@needs_data
def test_quick_exons_and_introns() -> None:
    report = run("exons_introns", quick=True, data=DATA)
    whole, interior = (
        {row[0]: float(str(row[column]).split()[0]) for row in report.tables[0].rows if row[column]}
        for column in (4, 7)
    )
    assert set(whole) - set(interior) == {*RULES, "HMM kernel of 3 states, T = 9"}
    assert {row[0] for row in report.tables[2].rows if not row[3]} == set(RULES)
    assert whole["words of 3"] < whole["words of 1"] - 5.0
    assert whole["Markov plug-in, order 2"] < whole["Markov plug-in, order 0"] - 5.0
    assert whole["starts with GT and ends with AG"] < whole["starts with GT"] < whole["length alone"]
    assert whole["HMM kernel, all T"] < whole["words of 1"]
    assert interior["HMM kernel, all T"] > whole["HMM kernel, all T"]  # the ends gave much away
    X = problem(Place("interior", True, str(DATA / "exon_intron" / "human.fasta.gz"))).X
    assert {len(x) for x in X} == {80}
    (figure,) = report.figures.values()
    assert len(figure.axes) == 4
