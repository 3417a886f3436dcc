"""The experiment with web pages: its kernels and draws, and its quick run."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from genkern.papers import run
from genkern.papers.webkb import KERNELS, Pages, draw_pages, kernel_matrix

DATA = Path(os.environ.get("GENKERN_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))


def test_kernels_by_plain_sums() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, (5, 30)) + np.eye(5, 30, dtype=int)
    shares = counts / counts.sum(axis=1, keepdims=True)
    unit = counts / np.sqrt((counts**2).sum(axis=1, keepdims=True))
    sigmas = {"1/4": 0.25, "1": 1.0, "4": 4.0}
    expected = {"Bhattacharyya": (shares, lambda a, b: np.sqrt(a * b).sum())}
    for rows, ending in ((shares, ""), (unit, "; unit length")):
        expected[f"linear{ending}"] = rows, lambda a, b: (a * b).sum()
        for name, sigma in sigmas.items():
            expected[f"RBF, σ = {name}{ending}"] = (
                rows,
                lambda a, b, s=sigma: np.exp(-((a - b) ** 2).sum() / (2 * s**2)),
            )
    expected["linear; counts"] = counts, lambda a, b: (a * b).sum()
    assert set(expected) == set(KERNELS)
    for name, (rows, kernel) in expected.items():
        by_hand = [[kernel(a, b) for b in rows] for a in rows]
        np.testing.assert_allclose(kernel_matrix(name, sparse.csr_array(counts)), by_hand, rtol=1e-9, err_msg=name)


def test_draws_hold_out_a_university() -> None:
    rng = np.random.default_rng(1)
    university = np.repeat(["cornell", "texas", "washington", "wisconsin", "misc"], [20, 20, 20, 20, 120])
    y = rng.choice(["student", "faculty"], 200)
    pages = Pages([""] * 200, None, y, university)
    for index in range(8):
        train, test = draw_pages(pages, "held-out university", 50, index)
        assert set(university[test]) == {("cornell", "texas", "washington", "wisconsin")[index % 4]}
        assert (len(train), len(test)) == (50, 20)
        assert not set(university[train]) & set(university[test])
        train, test = draw_pages(pages, "random", 50, index)
        assert sorted([*train, *test]) == list(range(200))
        assert len(train) == 50
        assert abs(np.mean(y[train] == "student") - np.mean(y == "student")) < 0.02


@pytest.mark.skipif(not (DATA / "webkb").exists(), reason="needs webkb of the data, see GENKERN_DATA")
def test_quick_webkb() -> None:
    report = run("webkb", quick=True, data=DATA)
    for table in report.tables[:2]:
        errors = {row[0]: [float(str(row[column]).split()[0]) for column in (4, 7)] for row in table.rows}
        kernel, linear = errors["Bhattacharyya"], errors["linear"]
        assert kernel[0] < linear[0] - 1.0  # few pages: the kernel of square roots is well ahead
        assert kernel[1] < linear[1]
        assert errors["recipes.text"][1] < kernel[1]
        assert max(kernel) < min(errors["most frequent class"])
    assert len(report.tables) == 4
    assert [len(figure.axes) for figure in report.figures.values()] == [2, 2]
