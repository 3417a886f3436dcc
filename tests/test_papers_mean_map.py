"""The experiments of the mean map paper: curves by closed forms, and quick runs."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from genkern import MeanMap, ProbabilityProduct
from genkern.papers import run
from genkern.papers.mean_map_figures import curve

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
