"""Errors and calibration of ``recipes.auto`` beside those of its candidates: ``python -m benchmarks.auto [set ...]``.

Every candidate is fitted to the training part and judged on the test part, its probabilities calibrated on its own
decisions in the cross-validation; the column "chosen" says which of them ``auto`` took, and "cv" what it knew then.
"""

from __future__ import annotations

import csv
import gzip
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, train_test_split

from benchmarks.league.contest import SHARED, pick, splits
from benchmarks.league.series import load_contours
from benchmarks.league.text import webkb
from genkern import AutoClassifier, expected_calibration_error
from genkern.datasets import load_japanese_vowels, load_splice_junctions

Ints = NDArray[np.int64]
SPLICE = 600  # windows, half of them to learn from
POINTS = 12  # sightings in a set


class Task(NamedTuple):
    X: Any
    y: NDArray[Any]
    train: Ints
    test: Ints
    kind: str | None = None
    groups: NDArray[Any] | None = None


def halves(X: Any, y: NDArray[Any]) -> Task:
    """Return a stratified split into halves."""
    train, test = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=0)
    return Task(X, y, train, test)


def vowels() -> Task:
    X, y = (data := load_japanese_vowels())
    return Task(X, y, np.flatnonzero(data.split == "train"), np.flatnonzero(data.split == "test"))


def splice() -> Task:
    X, y = load_splice_junctions()
    some = np.random.default_rng(0).permutation(len(y))[:SPLICE]
    return halves(pick(X, some), y[some])


def promoters() -> Task:
    with gzip.open(SHARED / "uci_promoters" / "promoters.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    return halves([row["sequence"] for row in rows], np.array([row["class"] for row in rows]))


def shapes() -> Task:
    task = load_contours()
    return Task(task.X, task.y, *splits("mpeg7_10classes")[0])


def pages() -> Task:
    task = webkb()
    return Task(task.X, task.y, *splits("webkb_student_faculty_77")[0])


def sightings() -> Task:
    """Return sets of places, by their environment, where a bird or a plant was seen; species are in one half only."""
    with gzip.open(SHARED / "disdat" / "AWTtrain_po.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    columns, X, y, groups = list(rows[0])[6:], [], [], []
    for species in sorted({row["spid"] for row in rows}):
        own = [row for row in rows if row["spid"] == species]
        places = np.array([[float(row[column]) for column in columns] for row in own])
        places = np.random.default_rng(0).permutation(places)[: 5 * POINTS]
        for i in range(0, len(places) - POINTS + 1, POINTS):
            X.append(places[i : i + POINTS])
            y.append(own[0]["group"])
            groups.append(species)
    train, test = next(StratifiedGroupKFold(2, shuffle=True, random_state=0).split(X, y, groups))
    return Task(X, np.array(y), train, test, "points", np.array(groups))


TASKS: dict[str, Callable[[], Task]] = {
    "promoters": promoters,
    "webkb_77": pages,
    "disdat": sightings,
    "splice": splice,
    "vowels": vowels,
    "mpeg7": shapes,
}


def run(name: str, task: Task) -> None:
    """Print what auto and each of its candidates do on a set."""
    X, y, new, labels = pick(task.X, task.train), task.y[task.train], pick(task.X, task.test), task.y[task.test]
    groups = None if task.groups is None else task.groups[task.train]
    begin = time.perf_counter()
    chosen = AutoClassifier(task.kind).fit(X, y, groups)
    took = time.perf_counter() - begin
    for result in chosen.results_:
        if result["status"] != "done":
            print(f"{name:10} {result['name']:16} {result['status']:.70}", flush=True)
            continue
        mine = result["name"] == chosen.best_name_
        model = chosen if mine else AutoClassifier(task.kind, candidates=[result["name"]]).fit(X, y, groups)
        proba = model.predict_proba(new)
        error = 100 * np.mean(model.predict(new) != labels)
        ece = 100 * expected_calibration_error(labels, proba, classes=model.classes_)
        loss = -np.mean(np.log(proba[np.arange(len(labels)), np.searchsorted(model.classes_, labels)]))
        cv = f"{100 * result['error']:.1f} ± {100 * result['spread']:.1f}"
        seconds = result["fit_seconds"] + result["predict_seconds"]
        mark = f"chosen, {took:.0f} s in all" if mine else ""
        print(
            f"{name:10} {result['name']:16} {cv:>12} {error:8.1f} {ece:6.1f} {loss:8.3f} {seconds:8.1f}  {mark}",
            flush=True,
        )


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    print(f"{'set':10} {'candidate':16} {'cv error %':>12} {'test %':>8} {'ECE %':>6} {'log loss':>8} {'cv s':>8}")
    for name in names or TASKS:
        run(name, TASKS[name]())


if __name__ == "__main__":
    main(sys.argv[1:])
