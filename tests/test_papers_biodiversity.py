"""The map of species: its test of purity, and its quick run."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from genkern import FitEach, KDEEstimator
from genkern.papers import run
from genkern.papers.species import matrices, purity_test, region_of

DATA = Path(os.environ.get("GENKERN_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))
needs_data = pytest.mark.skipif(not (DATA / "disdat").exists(), reason="needs disdat of the data, see GENKERN_DATA")


def test_purity() -> None:
    K = np.array([[9.0, 2.0, 1.0, 0.0], [2.0, 9.0, 3.0, 0.0], [1.0, 3.0, 9.0, 0.0], [0.0, 0.0, 0.5, 9.0]])
    groups = np.array(["a", "a", "b", "b"])  # nearest: 0 -> 1, 1 -> 2, 2 -> 1, 3 -> 2
    share, chance, p = purity_test(K, groups, 2000)
    assert share == 0.5
    divisions = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    exact = []
    for first in divisions:
        member = np.isin(np.arange(4), first)
        exact.append(np.mean([member[a] == member[b] for a, b in [(0, 1), (1, 2), (2, 1), (3, 2)]]))
    assert abs(chance - np.mean(exact)) < 0.02
    assert abs(p - np.mean(np.array(exact) >= 0.5)) < 0.03


@needs_data
def test_kernel_values_are_those_of_equation_6() -> None:
    here = region_of(DATA / "disdat", "NSW")
    short = np.argsort([len(bag) for bag in here.bags], kind="stable")[1:5]
    some = here._replace(names=here.names[short], groups=here.groups[short], bags=[here.bags[i] for i in short])
    variances = [float(model.variance) for model in FitEach(KDEEstimator("lscv")).fit_transform(some.bags)]
    expected = np.empty((4, 4))
    for i, (x, h) in enumerate(zip(some.bags, variances)):
        for j, (z, g) in enumerate(zip(some.bags, variances)):
            width = 1.0 + h + g
            terms = [np.exp(-0.5 * np.sum((a - b) ** 2) / width) for a in x for b in z]
            expected[i, j] = np.mean(terms) / width**2.5
    found = matrices(some)
    np.testing.assert_allclose(found["lscv"], expected, rtol=1e-9)
    norms = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(found["lscv, normalised"], expected / np.outer(norms, norms), rtol=1e-9)


@needs_data
def test_places() -> None:
    here = region_of(DATA / "disdat", "AWT")
    assert sum(len(bag) for bag in here.bags) == 3806
    birds = np.flatnonzero(here.groups == "birds")
    assert len(birds) == 20
    overlap = here.overlap()
    i, j = birds[:2]
    shared = sum(place in here.places[j] for place in here.places[i])
    assert overlap[i, j] == pytest.approx(shared / (len(here.places[i]) * len(here.places[j])) ** 0.5, rel=1e-12)
    assert not overlap[np.ix_(birds, np.flatnonzero(here.groups == "plants"))].any()


@needs_data
def test_quick_biodiversity() -> None:
    report = run("biodiversity", quick=True, data=DATA)
    rows = {(row[0], row[2]): row for row in report.tables[0].rows}
    assert {row[1] for row in report.tables[0].rows} == {54, 39, 29}
    purity, chance, p = (float(value) for value in rows["four groups", "lscv, normalised"][3:6])
    assert purity > chance + 15
    assert p <= 0.02
    assert float(rows["plants of rainforest, of open forest", "lscv, normalised"][6]) <= 0.05
    assert float(rows["trees, understorey", "lscv, normalised"][5]) > 0.1
    assert float(rows["birds, plants", "places only"][3]) == 100.0  # the surveys alone separate them
    variances = [float(row[1]) for row in report.tables[1].rows]
    assert variances == sorted(variances, reverse=True)
    assert sum(variances) < 100
    surveys = {tuple(row[:2]): row[2:] for row in report.tables[2].rows}
    assert surveys["New South Wales", "birds, plants"][2] == 1
    assert surveys["Wet Tropics", "birds, plants"][2:4] == [0, "100"]
    first, second, both = surveys["New South Wales", "trees, understorey"][:3]
    assert 0 < both < min(first, second)
    first, named = report.figures.values()
    assert [ax.get_ylabel().split()[0] for ax in first.axes] == ["fourth", "second"]
    assert len(named.axes[0].texts) == 39
