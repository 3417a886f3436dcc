"""The switching systems experiment: its errors against loops by hand, and its quick run."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from genkern import FitEach, LDSEstimator, ProbabilityProduct, Store
from genkern.papers import run, switching_systems


@pytest.fixture(scope="module")
def data() -> tuple[list[np.ndarray], np.ndarray]:
    drawn = switching_systems._data(1, True)
    return drawn.X, np.asarray(drawn.y)


def left_out(K: np.ndarray, y: np.ndarray, C: float) -> list[int]:
    """Return what machines without each series get wrong."""
    wrong = []
    for i in range(len(y)):
        others = [j for j in range(len(y)) if j != i]
        machine = SVC(C=C, kernel="precomputed").fit(K[np.ix_(others, others)], y[others])
        if machine.predict(K[i, others][None])[0] != y[i]:
            wrong.append(i)
    return wrong


def test_errors_of_the_kernel_between_series(data: tuple[list[np.ndarray], np.ndarray]) -> None:
    X, y = data
    squares = np.array([[((a - b) ** 2).sum() for b in X] for a in X])
    (row,) = switching_systems._part("RBF", None, 1, Store(), True)["rows"]
    assert row["settings"] == [{"γ": 0.01, "C": 10.0}]
    assert row["wrong"] == [left_out(np.exp(-0.01 * squares), y, 10.0)]
    assert len(row["wrong"][0]) > 0


def test_errors_of_the_kernel_between_systems(data: tuple[list[np.ndarray], np.ndarray]) -> None:
    X, y = data
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        models = FitEach(LDSEstimator(2, max_iter=20, pseudocount=1.0)).fit_transform(X)
    rows = switching_systems._part("LDS kernel", 10, 1, Store(), True)["rows"]
    for row, rho in zip(rows, (0.1, 1.0), strict=True):
        assert row["settings"] == [{"T": 10, "ρ": rho, "C": 10.0}]
        K = ProbabilityProduct(rho, length=10)(models)
        scale = np.sqrt(np.diag(K))
        assert row["wrong"] == [left_out(K / np.outer(scale, scale), y, 10.0)]


def test_errors_of_maximum_likelihood(data: tuple[list[np.ndarray], np.ndarray]) -> None:
    X, y = data
    wrong = []
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        for i in range(len(y)):
            logs = {}
            for label in ("first", "second"):
                own = [X[j] for j in range(len(y)) if j != i and y[j] == label]
                model = LDSEstimator(2, tol=1e-4, max_iter=5).fit(own).model_
                logs[label] = model.log_prob([X[i]])[0] + np.log(len(own))
            if max(logs, key=lambda label: logs[label]) != y[i]:
                wrong.append(i)
    (row,) = switching_systems._part("ML-LDS", None, 1, Store(), True)["rows"]
    assert row["wrong"] == [wrong]


def test_quick_switching_systems() -> None:
    report = run("switching_systems", quick=True)
    rows = {row[0]: row for row in report.tables[0].rows}
    best, nested = ({name: float(str(row[k]).split()[0]) for name, row in rows.items()} for k in (2, 3))
    assert all(best[name] <= nested[name] for name in rows)  # chosen with the test errors in view
    assert best["ML-SLDS"] == nested["ML-SLDS"] < 15.0
    assert best["LDS kernel"] < best["RBF"] - 20.0
    assert best["SLDS kernel"] < best["RBF"] - 20.0
    differences = {row[0]: float(row[2]) for row in report.tables[1].rows}
    np.testing.assert_allclose(
        differences["LDS kernel − RBF"], nested["LDS kernel"] - nested["RBF"], rtol=0, atol=0.1001
    )
    (figure,) = report.figures.values()
    assert [len(axis.lines) for axis in figure.axes] == [2, 2]
