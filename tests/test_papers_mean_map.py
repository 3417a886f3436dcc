"""The experiments of the mean map paper: curves by closed forms, and quick runs."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from genkern import MeanMap, ProbabilityProduct
from genkern.papers import run
from genkern.papers.mean_map_figures import curve
from genkern.papers.mean_map_sets import Place, grids, lengths, problem

DATA = Path(os.environ.get("GENKERN_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))
needs_data = pytest.mark.skipif(
    not (DATA / "exon_intron").exists(), reason="needs exon_intron of the data, see GENKERN_DATA"
)
SHIFTS = np.array([0.0, 0.5, 2.0, 5.0])


@pytest.mark.parametrize("lam", [0.1, 1.0, 10.0])
def test_curves_are_the_closed_forms(lam: float) -> None:
    by_mean = np.exp(-0.5 * lam * SHIFTS**2 / (1.0 + 2.0 * lam))
    by_variance = np.sqrt((1.0 + 2.0 * lam) / (1.0 + lam * (2.0 + SHIFTS)))
    np.testing.assert_allclose(curve(MeanMap(lam), "mean", SHIFTS), by_mean, rtol=1e-12)
    np.testing.assert_allclose(curve(MeanMap(lam), "variance", SHIFTS), by_variance, rtol=1e-12)


def test_curves_of_the_product_kernel() -> None:
    np.testing.assert_allclose(curve(ProbabilityProduct(1.0), "mean", SHIFTS), np.exp(-(SHIFTS**2) / 4.0), rtol=1e-12)
    np.testing.assert_allclose(
        curve(ProbabilityProduct(1.0), "variance", SHIFTS), np.sqrt(2.0 / (2.0 + SHIFTS)), rtol=1e-12
    )


@needs_data
def test_quick_mean_map_figures() -> None:
    report = run("mean_map_figures", quick=True, data=DATA)
    convergence, *errors = report.tables
    gaps = [row[1] for row in convergence.rows]
    assert gaps == sorted(gaps, reverse=True)
    assert 0.17 < convergence.rows[-1][3] < 0.19  # 1 / lambda, and not exponential
    for table in errors:
        assert [row[0] for row in table.rows] == ["0.1", "1", "∞"]
        best = np.array([[float(cell.split()[0]) for cell in row[1::2]] for row in table.rows])
        nested = np.array([[float(cell.split()[0]) for cell in row[2::2]] for row in table.rows])
        assert (best <= nested + 1e-9).all()
        assert best.max() < 30.0
    first, second = report.figures.values()
    assert len(first.axes) == len(second.axes) == 2
    assert [text.get_text() for text in second.axes[0].get_xticklabels()] == ["0.1", "1", "∞"]


@needs_data
def test_sets_of_the_mean_map_table() -> None:
    file = str(DATA / "exon_intron" / "human.fasta.gz")
    whole, cut, interior = (problem(Place(name, False, file)) for name in ("whole", "without ends", "interior"))
    assert [x[10:-10] for x in whole.X] == cut.X
    assert {len(x) for x in interior.X} == {80}
    assert all(x in y for x, y in zip(interior.X, whole.X))
    everything = problem(Place("DNA", False, file))
    assert sorted(everything.division.y.tolist()) == ["exon"] * 500 + ["intron"] * 500
    assert sorted(np.concatenate(everything.division.tests).tolist()) == list(range(1000))
    assert max(len(x) for x, label in zip(everything.X, everything.division.y) if label == "intron") == 24960


@needs_data
def test_length_alone_is_a_rule_on_lengths() -> None:
    place = Place("DNA", True, str(DATA / "exon_intron" / "human.fasta.gz"))
    (found,) = lengths(place)
    here = problem(place)
    assert [setting["C"] for setting in found["settings"]] == grids(True)["C"]
    pairs = 0
    for lost in found["wrong"]:
        for test in here.division.tests:
            for i in test:
                for j in test:
                    if i < j and len(here.X[i]) == len(here.X[j]):  # then both are taken for the same
                        pairs += 1
                        assert ((i in lost) == (j in lost)) == (here.division.y[i] == here.division.y[j])
    assert pairs > 0


@needs_data
def test_quick_mean_map_table() -> None:
    report = run("mean_map_table", quick=True, data=DATA)
    synthetic, _, _, dna, tests, raw = report.tables
    for table, column in ((synthetic, 0), (dna, 1)):
        assert len(table.rows) == (13, 14)[column]
        for row in table.rows:
            best, nested = (float(cell.split()[0]) for cell in row[3:5])
            assert best <= nested + 1.5  # the best of the grid, up to folds of unequal size
            assert nested < 35.0
    assert [row[0] for row in tests.rows][-1] == "length alone"
    assert len(raw.rows) == 6


@needs_data
def test_quick_mean_map_cuts() -> None:
    cuts, scales = run("mean_map_cuts", quick=True, data=DATA).tables
    errors = {row[0]: [float(cell.split()[0]) for cell in row[1:]] for row in cuts.rows}
    hmms, chains = errors["generative, HMMs of 4 states"], errors["generative, Markov chains of order 2"]
    assert chains[1] > chains[0] + 15.0  # what they know of exons and introns is at the ends
    assert hmms[1] > hmms[0] + 5.0
    assert errors["empirical, order 2"][2] < hmms[2] - 5.0
    over_C = {tuple(row[:2]): [float(cell.split()[0]) for cell in row[2:]] for row in scales.rows}
    assert len(over_C) == 9
    printed = over_C["empirical, order 3", "means"]
    assert printed[0] > printed[1] + 5.0  # as printed, the kernel needs a larger C
    assert over_C["empirical, order 3", "normalised"][0] < printed[0] - 5.0
