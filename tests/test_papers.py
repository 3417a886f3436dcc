"""The machinery of experiments: parts that are kept, pages, and settings chosen in two ways."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import matplotlib.figure
import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from genkern.papers.shared.choices import spell_setting
from genkern.papers.shared.grids import chosen_of, grid_errors, joined, machine_grid_errors
from genkern.papers.shared.machines import machines
from genkern.papers.shared.report import Report, Table, percent
from genkern.papers.shared.study import Study

matplotlib.use("Agg")


def square(number: int, log: str) -> dict[str, int]:
    with open(log, "a") as stream:
        stream.write(f"{number}\n")
    if number < 0:
        raise KeyboardInterrupt
    return {"square": number**2}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_parts_on_disk_are_not_computed_again(tmp_path: Path, n_jobs: int) -> None:
    log = str(tmp_path / "log")
    tasks = {f"part {i}": (i, log) for i in range(5)}
    Study("squares", out=tmp_path, n_jobs=n_jobs).map(square, {key: tasks[key] for key in list(tasks)[:3]})
    found = Study("squares", out=tmp_path, n_jobs=n_jobs).map(square, tasks)
    assert found == {f"part {i}": {"square": i * i} for i in range(5)}
    assert list(found) == list(tasks)
    assert sorted(Path(log).read_text().split()) == list("01234")


def test_an_interruption_loses_no_part_that_is_done(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    with pytest.raises(KeyboardInterrupt):
        Study("squares", out=tmp_path).map(square, {"a": (2, log), "b": (-1, log)})
    kept = tmp_path / "squares.jsonl"
    kept.write_text(kept.read_text() + '{"part": "c", "res')  # a line that was cut off
    study = Study("squares", out=tmp_path)
    assert study.map(square, {"a": (2, log), "c": (3, log)}) == {"a": {"square": 4}, "c": {"square": 9}}
    assert Path(log).read_text().split() == ["2", "-1", "3"]
    assert [json.loads(line).get("part") for line in kept.read_text().splitlines()] == [None, "a", "c"]


def test_results_of_another_run_are_refused(tmp_path: Path) -> None:
    (tmp_path / "squares.jsonl").write_text('{"experiment": "cubes", "quick": false, "genkern": "0"}\n')
    with pytest.raises(ValueError, match=r"squares.jsonl holds results of .*cubes.*Move it away"):
        Study("squares", out=tmp_path)


def test_data_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"webkb.*GENKERN_DATA"):
        Study("squares").folder("webkb")
    with pytest.raises(FileNotFoundError, match="Name another folder"):
        Study("squares", data=tmp_path).folder("webkb")


def test_settings_chosen_in_two_ways() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=90) > 0).astype(int)
    grid = {"n_neighbors": [1, 5, 15]}
    parts = []
    for fold in range(3):
        test = np.arange(90) % 3 == fold
        parts.append(grid_errors(KNeighborsClassifier(), grid, (X[~test], y[~test]), (X[test], y[test])))
    by_hand = np.array(
        [
            [
                np.mean(KNeighborsClassifier(k).fit(X[np.arange(90) % 3 != f], y[np.arange(90) % 3 != f])
                        .predict(X[np.arange(90) % 3 == f]) != y[np.arange(90) % 3 == f])
                for k in grid["n_neighbors"]
            ]
            for f in range(3)
        ]
    )  # fmt: skip
    found = chosen_of(grid, parts)
    best = by_hand.mean(axis=0).argmin()
    np.testing.assert_allclose(found.best, by_hand[:, best], atol=1e-12)
    np.testing.assert_allclose(
        found.nested, [row[np.argmin(part["inner"])] for row, part in zip(by_hand, parts)], atol=1e-12
    )
    assert spell_setting({"svm__" + key: value for key, value in found.setting.items()}) == (
        f"n_neighbors = {grid['n_neighbors'][best]}"
    )
    assert np.mean(found.best) <= np.mean(found.nested) + 1e-12  # chosen with the test errors in view


def test_grids_are_joined_by_inner_errors() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(80, 3)), rng.integers(0, 2, 80)
    X[:, 0] += 2.0 * y
    known, fresh = (X[:50], y[:50]), (X[50:], y[50:])
    pieces = [grid_errors(KNeighborsClassifier(), {"n_neighbors": ks}, known, fresh) for ks in ([1, 3], [5, 9, 15])]
    together = grid_errors(KNeighborsClassifier(), {"n_neighbors": [1, 3, 5, 9, 15]}, known, fresh)
    assert joined(pieces) == together
    assert 0.0 < together["inner"][0] < 0.5
    assert len(set(together["inner"])) > 2  # something to choose


def test_machines_over_C() -> None:
    rng = np.random.default_rng(2)
    for separable in (True, False):
        X, y = rng.normal(size=(60, 40 if separable else 2)), rng.integers(0, 3, 60)
        K, Cs, inner = X @ X.T, [0.01, 0.1, 1.0, 10.0, 100.0], StratifiedKFold(4)
        known, fresh = (K[:45, :45], y[:45]), (K[45:, :45], y[45:])
        found = machines(*known, Cs)
        for C, machine in zip(Cs, found):
            alone = SVC(C=C, kernel="precomputed").fit(*known)
            np.testing.assert_allclose(machine.dual_coef_, alone.dual_coef_, rtol=1e-12)
            np.testing.assert_array_equal(machine.support_, alone.support_)
        assert (found[-1] is found[-2]) == separable  # no weight is at its bound
        assert len({id(machine) for machine in found}) >= 3
        plain = grid_errors(SVC(kernel="precomputed"), {"C": Cs}, known, fresh, inner)
        quick = machine_grid_errors(known, fresh, Cs, inner)
        for key in ("errors", "inner"):
            np.testing.assert_allclose(quick[key], plain[key], atol=1e-12)


def test_pages(tmp_path: Path) -> None:
    figure = matplotlib.figure.Figure()
    figure.subplots().plot([0, 1])
    table = Table(
        "Errors in per cent.", ["method", "ours"], [["<b>", percent([0.1, 0.2])], ["plain", None], ["x", 0.5]]
    )
    report = Report(
        "one", "A & B", "Somebody (1999).", "First.\n\n- a\n- b", [table], "It `agrees`.", {"curve": figure}
    )
    files = report.write(tmp_path)
    assert sorted(path.name for path in files) == ["one-1.svg", "one.html", "one.md"]
    text = (tmp_path / "one.md").read_text()
    assert "| <b> | 15.0 ± 7.1 |" in text
    assert "![curve](one-1.svg)" in text
    assert "It `agrees`." in text
    page = (tmp_path / "one.html").read_text()
    HTMLParser().feed(page)
    assert "<td>&lt;b&gt;</td>" in page
    assert "<li>a</li><li>b</li>" in page
    assert "<svg" in page
    assert report.html() == page  # the same for the same results
    assert "agrees" not in Report("one", "A", "S", "P", [table], "It agrees.", quick=True).markdown()
