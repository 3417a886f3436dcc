"""Errors of support vector machines on slices of one kernel matrix, over C and folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from genkern.papers.shared.choices import choose
from genkern.papers.shared.machines import machines

Matrix = NDArray[np.float64]
SEED = 0  # of the folds


class Division(NamedTuple):
    """Labels, and the test objects of every fold.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels.
    tests : list of ndarray
        Test objects of every outer fold.
    inner : int
        Folds within each training part.
    """

    y: Any
    tests: list[Any]
    inner: int

    def train(self, fold: int) -> Any:
        """Return the training objects of a fold."""
        return np.setdiff1d(np.arange(len(self.y)), self.tests[fold])


def divide(y: Any, folds: int, inner: int) -> Division:
    """Return stratified folds of labels."""
    outer = StratifiedKFold(folds, shuffle=True, random_state=SEED)
    return Division(np.asarray(y), [test for _, test in outer.split(np.zeros(len(y)), y)], inner)


def machine_errors(
    matrix: Matrix | Callable[[int], Matrix], division: Division, Cs: Sequence[float]
) -> dict[str, list[Any]]:
    """Return what machines with a kernel get wrong, for every C.

    Parameters
    ----------
    matrix : ndarray of shape (n, n) or callable
        Kernel values of all objects; a function of the fold where they depend on its training part.
    division : Division
        Labels and folds.
    Cs : sequence of float
        Weights of the losses.

    Returns
    -------
    errors : dict
        "wrong": for every C the test objects that are misclassified, over all folds; "inner": for every C and every
        fold the error of cross-validation within its training part, by which C may be chosen.
    """
    wrong: list[list[int]] = [[] for _ in Cs]
    inner: list[list[float]] = [[] for _ in Cs]
    for fold, test in enumerate(division.tests):
        K, train = matrix(fold) if callable(matrix) else matrix, division.train(fold)
        for known, fresh, missed in [(train, test, True), *((*part, False) for part in _inner(division, train))]:
            for c, lost in enumerate(_lost(K, division.y, known, fresh, Cs)):
                if missed:
                    wrong[c] += lost
                    inner[c].append(0.0)
                else:
                    inner[c][-1] += len(lost) / len(train)
    return {"wrong": [sorted(lost) for lost in wrong], "inner": inner}


def _inner(division: Division, train: Any) -> list[tuple[Any, Any]]:
    """Return training and test objects of the folds within a training part."""
    parts = StratifiedKFold(division.inner, shuffle=True, random_state=SEED)
    return [(train[known], train[fresh]) for known, fresh in parts.split(train, division.y[train])]


def _lost(K: Matrix, y: Any, known: Any, fresh: Any, Cs: Sequence[float]) -> list[list[int]]:
    """Return the objects of ``fresh`` that machines trained on ``known`` misclassify, for every C."""
    across = K[np.ix_(fresh, known)]
    found = [machine.predict(across) for machine in machines(K[np.ix_(known, known)], y[known], Cs)]
    return [fresh[predicted != y[fresh]].tolist() for predicted in found]


class HeldOut(NamedTuple):
    """Errors of a method over its grid, chosen in two ways, as in ``Choice``, and of each object.

    Parameters
    ----------
    setting, best, nested
        As in ``Choice``.
    missed : ndarray of shape (n,)
        Whether each object is misclassified with the settings of ``nested``.
    """

    setting: dict[str, Any]
    best: list[float]
    nested: list[float]
    missed: Any


def choose_held_out(results: Sequence[Mapping[str, Any]], division: Division) -> HeldOut:
    """Return both choices among results, each of ``machine_errors`` with its ``settings``, one for every C."""
    grid = [row for one in results for row in zip(one["settings"], one["wrong"], one["inner"], strict=True)]
    missed = np.zeros((len(grid), len(division.y)), dtype=bool)
    for row, (_, lost, _) in zip(missed, grid, strict=True):
        row[lost] = True
    errors = [[row[test].mean() for test in division.tests] for row in missed]
    found = choose([setting for setting, *_ in grid], errors, [inner for *_, inner in grid])
    final = np.zeros(len(division.y), dtype=bool)
    for place, test in zip(found.picked, division.tests, strict=True):
        final[test] = missed[place, test]
    return HeldOut(found.setting, found.best, found.nested, final)
