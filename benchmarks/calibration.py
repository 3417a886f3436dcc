"""How true the probabilities of recipes are: ``python -m benchmarks calibration``.

One split of each set, the recipes as they are. Beside the log loss and the expected calibration error (ECE) on the test
part are those of the softmax of plain decision values, and of the sharpness that fits the test part best. A
"sharpness" above one (that of the recipe divided by the best) means that the recipe is too sure of itself: its features
were learnt from all training objects, also from those that the calibration holds out.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from benchmarks.league.contest import Contest, pick, splits
from benchmarks.league.series import CONTESTS as SERIES
from benchmarks.league.symbols import CONTESTS as SYMBOLS
from benchmarks.league.text import CONTESTS as TEXTS
from genkern import expected_calibration_error, recipes
from genkern.datasets import load_splice_junctions
from genkern.learn.calibration import Calibrator

DOMAINS, JUNCTIONS = 400, 500  # training objects of the sets that are cut
Part = tuple[Any, NDArray[Any]]


class Case(NamedTuple):
    recipe: str
    set: str
    model: Any
    train: Part
    test: Part


def contest(recipe: str, name: str, one: Contest, most: int | None = None) -> Case:
    """Return the first split of a contest, cut to so many objects in each part."""
    task = one.load()
    train, test = (np.random.default_rng(0).permutation(rows)[:most] for rows in splits(one.split)[0])
    return Case(recipe, name, one.make(), *((pick(task.X, rows), task.y[rows]) for rows in (train, test)))


def junctions() -> Case:
    """Return windows around splice junctions."""
    X, y = load_splice_junctions()
    rows = np.random.default_rng(0).permutation(len(y))[: 3 * JUNCTIONS]
    parts = ((pick(X, part), y[part]) for part in (rows[:JUNCTIONS], rows[JUNCTIONS:]))
    return Case("aligned_symbols", "junctions", recipes.aligned_symbols(), *parts)


CASES: list[Callable[[], Case]] = [
    lambda: contest("text", "WebKB 622", TEXTS["webkb_622"]),
    lambda: contest("contours", "MPEG-7", SERIES["mpeg7"]),
    junctions,
    lambda: contest("series", "vowels", SERIES["JapaneseVowels"]),
    lambda: contest("series", "Libras", SERIES["Libras"]),
    lambda: contest("symbols", "SCOPe a-b", SYMBOLS["scope40 a-b"], DOMAINS),
]


def quality(y: NDArray[Any], proba: NDArray[np.float64], classes: NDArray[Any]) -> str:
    """Return the log loss and the ECE in percent."""
    loss = -np.mean(np.log(proba[np.arange(len(y)), np.searchsorted(classes, y)]))
    return f"{loss:9.3f} {100 * expected_calibration_error(y, proba, classes=classes):6.1f}"


def with_sharpness(sharpness: float) -> Calibrator:
    """Return a calibrator of a given sharpness."""
    calibrator = Calibrator()
    calibrator.sharpness_ = sharpness
    return calibrator


def sharpest(values: NDArray[np.float64], codes: NDArray[np.int64]) -> float:
    """Return the sharpness of the least log loss, at most a thousand: without an error it would be infinite."""

    def loss(log_sharpness: float) -> float:
        proba = with_sharpness(float(np.exp(log_sharpness))).predict_proba(values)
        return float(-np.log(np.maximum(proba[np.arange(len(codes)), codes], np.finfo(float).tiny)).sum())

    return float(np.exp(minimize_scalar(loss, bounds=np.log([1e-3, 1e3]), method="bounded").x))


def run(case: Case) -> None:
    """Print the row of a case."""
    begin = time.perf_counter()
    model = case.model.fit(*case.train)
    X, y = case.test
    values, classes = model.decision_function(X), model.classes_
    own = model[-1].calibrator_
    plain, best = with_sharpness(1.0), with_sharpness(sharpest(values, np.searchsorted(classes, y)))
    error = 100 * np.mean(model.predict(X) != y)
    columns = " ".join(quality(y, one.predict_proba(values), classes) for one in (own, plain, best))
    counts = f"{len(case.train[1])}/{len(y)}"
    ratio = own.sharpness_ / best.sharpness_
    seconds = time.perf_counter() - begin
    print(f"{case.recipe:16} {case.set:10} {counts:>9} {error:8.1f} {columns} {ratio:9.2f} {seconds:8.1f}", flush=True)


def main() -> None:
    warnings.simplefilter("ignore")
    heads = " ".join(f"{name:>9} {'ECE':>6}" for name in ("log loss", "plain", "best"))
    print(f"{'recipe':16} {'set':10} {'objects':>9} {'error %':>8} {heads} {'sharpness':>9} {'seconds':>8}", flush=True)
    for case in CASES:
        run(case())
