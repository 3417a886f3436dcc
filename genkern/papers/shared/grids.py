"""Errors of one training and test part over a grid of settings, also within the training part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, ParameterGrid, check_cv

from genkern.papers.shared.choices import Choice, choose
from genkern.papers.shared.machines import machines

Parts = Mapping[str, list[float]]


def grid_errors(
    classifier: Any, grid: Any, known: tuple[Any, Any], fresh: tuple[Any, Any], inner: Any = 5
) -> dict[str, list[float]]:
    """Return the errors of one part for every setting of a grid.

    "errors" are those on its test part, "inner" those of cross-validation within its training part (zero for a single
    setting, which needs no choice).

    Parameters
    ----------
    classifier : estimator
        Unfitted.
    grid : dict or list of dict
        Settings, as in ``GridSearchCV``.
    known, fresh : tuple
        Objects and classes of the training and the test part.
    inner : int or splitter, default=5
        Folds within the training part.
    """
    settings = list(ParameterGrid(grid))
    errors = [1.0 - float(clone(classifier).set_params(**s).fit(*known).score(*fresh)) for s in settings]
    if len(settings) == 1:
        return {"errors": errors, "inner": [0.0]}
    search = GridSearchCV(classifier, grid, cv=inner, refit=False).fit(*known)
    return {"errors": errors, "inner": (1.0 - search.cv_results_["mean_test_score"]).tolist()}


def machine_grid_errors(
    known: tuple[Any, Any], fresh: tuple[Any, Any], Cs: Sequence[float], inner: Any = 5, **settings: Any
) -> dict[str, list[float]]:
    """Return ``grid_errors`` of support vector machines over C, from kernel values (objects, training objects)."""
    K, y = known
    folds = [
        _machine_errors((K[np.ix_(fit, fit)], y[fit]), (K[np.ix_(held, fit)], y[held]), Cs, settings)
        for fit, held in check_cv(inner, y, classifier=True).split(K, y)
    ]
    return {"errors": _machine_errors(known, fresh, Cs, settings), "inner": np.mean(folds, axis=0).tolist()}


def _machine_errors(known: Any, fresh: Any, Cs: Sequence[float], settings: Mapping[str, Any]) -> list[float]:
    return [1.0 - float(machine.score(*fresh)) for machine in machines(known[0], known[1], Cs, **settings)]


def joined(grids: Sequence[Parts]) -> dict[str, list[float]]:
    """Return ``grid_errors`` of one part over several grids, such as those of several kernels, as of one grid."""
    return {key: [value for one in grids for value in one[key]] for key in ("errors", "inner")}


def chosen_of(grid: Any, parts: Sequence[Parts]) -> Choice:
    """Return both choices from ``grid_errors`` of all parts."""
    errors, inner = (np.array([part[key] for part in parts]).T for key in ("errors", "inner"))
    return choose(list(ParameterGrid(grid)), errors, inner)
