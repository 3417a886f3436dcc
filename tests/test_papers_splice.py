"""The splice site experiment: its kernel, and its quick run."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from genkern import FisherScore, Polynomial, SiteModel
from genkern.papers import run

DATA = Path(os.environ.get("GENKERN_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))


def test_quadratic_kernels_count_matches() -> None:
    rng = np.random.default_rng(0)
    windows = ["".join(rng.choice(list("ACGT"), 25)) for _ in range(12)]
    matches = np.array([[sum(a == b for a, b in zip(v, w)) for w in windows] for v in windows])
    features = FisherScore(SiteModel.uniform(25, "dna")).fit_transform(windows)
    np.testing.assert_allclose(Polynomial(2, 1.0)(features, features), (4 * matches - 24) ** 2, atol=1e-9)
    np.testing.assert_allclose(Polynomial(2, 26.0)(features, features), (4 * matches + 1) ** 2, atol=1e-9)


@pytest.mark.skipif(not (DATA / "celegans_5ss").exists(), reason="needs celegans_5ss of the data, see GENKERN_DATA")
def test_quick_splice_sites() -> None:
    report = run("splice_sites", quick=True, data=DATA)
    methods = {row[0]: row for row in report.tables[0].rows}
    area = {name: float(str(row[2]).split()[0]) for name, row in methods.items()}
    assert area["Fisher kernel, quadratic"] > 92.0
    assert area["Fisher kernel, quadratic"] > area["mixture of three"] + 2.0  # few windows for its many parameters
    kernel = [row[2] for row in report.tables[2].rows]
    assert kernel[0] == kernel[4] > kernel[2] == 0  # not monotone in the matches
    assert [row[3] for row in report.tables[2].rows] == sorted(row[3] for row in report.tables[2].rows)
    (figure,) = report.figures.values()
    assert len(figure.axes) == 2
