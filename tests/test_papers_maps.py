"""The experiment with nonlinear maps: its errors against loops by hand, how settings are chosen, and its quick run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.svm import SVC

from genkern import HMMEstimator
from genkern.papers import nonlinear_maps, run
from genkern.papers.nonlinear_maps_page import chosen, nested
from genkern.papers.nonlinear_maps_page import tested as on_test_parts

DATA = Path(os.environ.get("GENKERN_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))
SETS = ("mpeg7_shapes", "ts_sets", "fsdd")


def test_errors_of_mapped_posteriors() -> None:
    (found,) = nonlinear_maps._part("vowels", "", 0, True)
    data = nonlinear_maps._load("vowels", "", True).data
    X, y = data.X, np.asarray(data.y)
    ((train, test),) = StratifiedShuffleSplit(1, test_size=0.5, random_state=0).split(y, y)
    models = []
    for label in np.unique(y):
        estimator = HMMEstimator(3, init="gmm", tol=1e-2, random_state=0)
        models.append(estimator.fit([X[i] for i in train if y[i] == label]).model_)
    logs = np.array([[model.log_prob([x])[0] for model in models] for x in X])
    assert found["plug-in"] == pytest.approx(np.mean(np.unique(y)[logs[test].argmax(axis=1)] != y[test]), abs=1e-12)

    def features(kernel: str, function: Any, place: str) -> np.ndarray:
        rows = []
        for x in X:
            row: list[float] = []
            for model in models:
                gamma = model.state_posteriors([x])
                points = np.hstack([np.ones((len(x), 1)), x if kernel == "marginalized" else x[:, :0]])
                terms = gamma[:, :, None] * points[:, None]
                row += np.ravel(
                    function(terms).sum(axis=0) if place == "time" else function(terms.sum(axis=0))
                ).tolist()
            rows.append(row)
        return np.array(rows)

    maps: dict[str, Any] = {
        "original": lambda z: z,
        "power": lambda z: np.sign(z) * np.abs(z) ** 0.2,
        "log": lambda z: np.sign(z) * np.log1p(np.abs(z)),
        "logistic": lambda z: np.tanh(0.1 * z),
    }
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(train, y[train]))
    for kernel in ("state space", "marginalized"):
        for row, (name, place, _) in enumerate(nonlinear_maps._settings(True)):
            Z = features(kernel, maps[name], place)
            Z = (Z - Z[train].mean(axis=0)) / np.sqrt(Z[train].var(axis=0).sum())
            for column, C in enumerate(nonlinear_maps.QUICK_CS):
                machine = SVC(C=C, kernel="linear").fit(Z[train], y[train])
                assert found[kernel]["test"][row][column] == pytest.approx(1 - machine.score(Z[test], y[test]))
                inner = []
                for known, fresh in folds:
                    machine = SVC(C=C, kernel="linear").fit(Z[train[known]], y[train[known]])
                    inner.append(1 - machine.score(Z[train[fresh]], y[train[fresh]]))
                assert found[kernel]["inner"][row][column] == pytest.approx(np.mean(inner))


def test_settings_are_chosen_within_training_parts() -> None:
    settings = [("original", "sum", None), ("power", "sum", 0.5), ("power", "time", 0.5), ("power", "time", 0.1)]
    assert chosen(settings, "power") == [1, 2, 3]
    assert chosen(settings, "power", "time") == [2, 3]
    assert chosen(settings, "power", "time", 0.1) == [3]
    rng = np.random.default_rng(0)
    errors = rng.random((2, 3, 2, 4, 2))  # repetitions, folds, test or inner, settings, Cs
    found: Any = [[{"k": {"test": f[0].tolist(), "inner": f[1].tolist()}} for f in folds] for folds in errors]
    expected = []
    for folds in errors:
        picked = []
        for test, inner in folds:
            row, column = min(((r, c) for r in (1, 2) for c in (0, 1)), key=lambda at: inner[at])
            picked.append(1 - test[row, column])
        expected.append(np.mean(picked))
    np.testing.assert_allclose(nested(found, "k", [1, 2]), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        on_test_parts(found, "k", [1, 2]), 1 - errors[:, :, 0, 1:3].mean(axis=1), rtol=0, atol=1e-12
    )


@pytest.mark.skipif(
    not all((DATA / name).exists() for name in SETS), reason=f"needs {', '.join(SETS)} of the data, see GENKERN_DATA"
)
def test_quick_nonlinear_maps() -> None:
    report = run("nonlinear_maps", quick=True, data=DATA)
    rows = {tuple(row[:3]): row for row in report.tables[0].rows}
    assert len(rows) == 4 * 2 * 4
    best = {key: float(row[4].split()[0]) for key, row in rows.items()}
    assert best["chain codes", "marginalized", "power"] > 95.0
    assert best["curvature", "state space", "power"] > best["curvature", "state space", "original"] + 5.0
    assert best["digits", "marginalized", "power"] > best["digits", "state space", "original"] + 10.0
    assert rows["curvature", "state space", "power"][6].startswith("time")
    assert [row[3] for row in report.tables[0].rows[:4]] == ["75.1", "81.3", "75.3", "77.0"]
    assert len(report.tables[2].rows) == 4 * 2 * 6
    (figure,) = report.figures.values()
    assert len(figure.axes) == 8


def test_quick_nonlinear_maps_without_data() -> None:
    report = run("nonlinear_maps", quick=True)
    assert {row[0] for row in report.tables[0].rows} == {"vowels"}
