"""Errors of support vector machines on slices of one kernel matrix, over C and folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

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
    within, across = np.ascontiguousarray(K[np.ix_(known, known)]), K[np.ix_(fresh, known)]
    found = [SVC(kernel="precomputed", C=C).fit(within, y[known]).predict(across) for C in Cs]
    return [fresh[predicted != y[fresh]].tolist() for predicted in found]


class Choice(NamedTuple):
    """Errors of a method over its grid, chosen in two ways.

    Parameters
    ----------
    setting : dict
        The setting with the fewest errors on the test parts.
    best : list of float
        Its error in every fold; as the setting was chosen by these, this flatters the method with the largest grid.
    nested : list of float
        Errors of every fold with the setting chosen within its training part.
    missed : ndarray of shape (n,)
        Whether each object is misclassified with the settings of ``nested``.
    """

    setting: dict[str, Any]
    best: list[float]
    nested: list[float]
    missed: Any


def choose(results: Sequence[Mapping[str, Any]], division: Division) -> Choice:
    """Return both choices among results, each of ``machine_errors`` with its ``settings``, one for every C."""
    grid = [row for one in results for row in zip(one["settings"], one["wrong"], one["inner"], strict=True)]
    n = len(division.y)
    missed = np.zeros((len(grid), n), dtype=bool)
    for row, (_, lost, _) in zip(missed, grid, strict=True):
        row[lost] = True
    errors = np.array([[row[test].mean() for test in division.tests] for row in missed])
    chosen = np.array([inner for *_, inner in grid]).argmin(axis=0)  # of each fold
    best = int(missed.sum(axis=1).argmin())
    final = np.zeros(n, dtype=bool)
    for fold, test in enumerate(division.tests):
        final[test] = missed[chosen[fold], test]
    nested = errors[chosen, np.arange(len(division.tests))]
    return Choice(grid[best][0], errors[best].tolist(), nested.tolist(), final)
