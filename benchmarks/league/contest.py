"""A set, its splits, a recipe, and how the recipe does."""

from __future__ import annotations

import gzip
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

SHARED = Path(os.environ.get("GENKERN_DATA", Path(__file__).parents[3] / "shared" / "data"))
SPLITS = SHARED.parent / "league_splits"
HEADER = f"{'set':28} {'error %':>14} {'seconds':>8} {'GB':>6} {'goal':>6} {'today':>6} {'auc':>6}"


class Task(NamedTuple):
    """Objects in the order of their file, labels, what must not be in both parts of a split, and which ones are to be
    learnt from, where the file says so itself."""

    X: Any
    y: NDArray[Any]
    groups: NDArray[Any] | None = None
    train: NDArray[np.bool_] | None = None


class Contest(NamedTuple):
    """A set by name of its split file, if it has one, what loads it, a pipeline, the goal and today's best error."""

    split: str | None
    load: Callable[[], Task]
    make: Callable[[], Any]
    goal: float
    today: float


def run(contest: Contest, name: str, task: Task) -> None:
    """Fit and test on every split; print mean and spread of the error, time, peak memory, the area under the curve."""
    begin = time.perf_counter()
    errors, areas = [], []
    for train, test in folds_of(contest, task):
        groups = {} if task.groups is None else {"ridge__groups": task.groups[train]}
        model = contest.make().fit(pick(task.X, train), task.y[train], **groups)
        errors.append(100 * float(np.mean(model.predict(pick(task.X, test)) != task.y[test])))
        if len(np.unique(task.y)) == 2:
            areas.append(roc_auc_score(task.y[test], model.decision_function(pick(task.X, test))))
    seconds = time.perf_counter() - begin
    area = f"{np.mean(areas):.3f}" if areas else "-"
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(f"{row(name, errors, seconds, memory)} {contest.goal:6.1f} {contest.today:6.1f} {area:>6}", flush=True)


def row(name: str, errors: list[float], seconds: float, memory: float | None = None) -> str:
    """Return name, mean and spread of the error in percent, time, and peak memory where it is known."""
    spread = f"{np.mean(errors):.1f}" + (f" ± {np.std(errors):.1f}" if len(errors) > 1 else "")
    return f"{name:28} {spread:>14} {seconds:8.1f} {'-' if memory is None else f'{memory:.2f}':>6}"


def folds_of(contest: Contest, task: Task) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the row numbers of the training and test part of every split of a contest."""
    if contest.split is not None:
        return splits(contest.split)
    assert task.train is not None
    return [(np.flatnonzero(task.train), np.flatnonzero(~task.train))]


def splits(name: str) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the row numbers of the training and test part of every split."""
    table = np.load(SPLITS / f"{name}.npz")
    return [(table[f"train_{i}"], table[f"test_{i}"]) for i in range(int(table["n_folds"]))]


def pick(X: Any, rows: NDArray[np.int64]) -> Any:
    """Return some rows of a matrix or members of a list."""
    return [X[i] for i in rows] if isinstance(X, list) else X[rows]


def series_of(path: str) -> tuple[list[NDArray[np.float64]], NDArray[Any], Any]:
    """Return the series, labels and whole table of an npz file of the data folder."""
    table = np.load(SHARED / path)
    values = table["values"].astype(np.float64)
    return np.split(values, np.cumsum(table["lengths"])[:-1]), table["y"], table


def fasta_of(path: str) -> tuple[list[str], list[str]]:
    """Return headers and sequences of a gzipped FASTA file of the data folder."""
    headers: list[str] = []
    lines: list[list[str]] = []
    with gzip.open(SHARED / path, "rt") as file:
        for line in file:
            if line.startswith(">"):
                headers.append(line[1:].strip())
                lines.append([])
            else:
                lines[-1].append(line.strip())
    return headers, ["".join(parts) for parts in lines]
