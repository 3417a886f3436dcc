"""Contests of series: one recipe with one setting for all."""

from __future__ import annotations

import csv
import gzip
from functools import partial

import numpy as np

from benchmarks.league.contest import SHARED, Contest, Task, series_of
from genkern.recipes import contours, series

JOBS = 2


def load_series(path: str) -> Task:
    """Return a set of series; speakers, where there are any, are its groups."""
    X, y, table = series_of(path)
    return Task(X, y, table.get("speaker"))


def load_unseen(name: str) -> Task:
    """Return a set of series that no default was settled on by its test part."""
    X, y, table = series_of(f"unseen/{name}.npz")
    return Task(X, y, train=table["split"] == "train")


def load_signs() -> Task:
    """Return the positions of both hands from the nose, in words of American Sign Language."""
    task = load_unseen("ASLWords")
    return task._replace(X=[x[:, :4] - np.tile(x[:, 4:], 2) for x in task.X])


def load_contours() -> Task:
    """Return the chain codes of the first ten classes of shapes, 96 pixels wide."""
    with gzip.open(SHARED / "mpeg7_shapes/mpeg7_chaincodes_96px.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))[:200]
    return Task([row["chain"] for row in rows], np.array([row["class"] for row in rows]))


def contest(name: str, path: str, goal: float, today: float) -> Contest:
    """Return the contest of a set of series."""
    return Contest(f"ts_{name}", partial(load_series, path), partial(series, n_jobs=JOBS), goal, today)


CONTESTS: dict[str, Contest] = {
    "OSULeaf": contest("OSULeaf", "ts_sets/OSULeaf.npz", 1.2, 3.7),
    "Libras": contest("Libras", "ts_sets/Libras.npz", 2.9, 6.0),
    "FSDD": contest("FSDD", "fsdd/fsdd_mfcc13.npz", 7.8, 22.5),
    "JapaneseVowels": contest("JapaneseVowels", "embed/japanese_vowels.npz", 1.0, 1.4),
    "ArrowHead": contest("ArrowHead", "ts_sets/ArrowHead.npz", 12.6, 13.1),
    "BasicMotions": contest("BasicMotions", "ts_sets/BasicMotions.npz", 0.0, 0.0),
    "PLAID": Contest(None, partial(load_unseen, "PLAID"), partial(series, n_jobs=JOBS), 5.4, 5.4),
    "ItalyPowerDemand": Contest(None, partial(load_unseen, "ItalyPowerDemand"), partial(series, n_jobs=JOBS), 3.2, 3.2),
    "ASLWords": Contest(None, load_signs, partial(series, n_jobs=JOBS), 33.1, 33.7),
    "mpeg7": Contest("mpeg7_10classes", load_contours, partial(contours, n_jobs=JOBS), 0.4, 1.2),
}
