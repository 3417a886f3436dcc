"""Errors over a grid of settings, chosen as the paper has it and within training data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, ParameterGrid


class Columns(NamedTuple):
    """The two columns of a method.

    Parameters
    ----------
    best : list of float
        Errors of all parts with the setting whose mean over the test parts is lowest, as papers often have it; this
        flatters the method with the largest grid.
    nested : list of float
        Errors of all parts, with the setting chosen within each training part.
    setting : dict
        The setting of ``best``.
    """

    best: list[float]
    nested: list[float]
    setting: dict[str, Any]


def grid_errors(
    classifier: Any, grid: Any, known: tuple[Any, Any], fresh: tuple[Any, Any], inner: Any = 5
) -> dict[str, Any]:
    """Return the errors of one part for every setting of a grid, and which is chosen within its training data.

    "errors" are those on its test part, "inner" those of cross-validation within its training part.

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
        return {"errors": errors, "inner": [0.0], "chosen": 0}
    search = GridSearchCV(classifier, grid, cv=inner, refit=False).fit(*known)
    within = 1.0 - search.cv_results_["mean_test_score"]
    return {"errors": errors, "inner": within.tolist(), "chosen": int(search.best_index_)}


def joined(grids: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the test errors of one part over several grids, such as those of several kernels, as of one grid.

    Parameters
    ----------
    grids : sequence of dict
        What ``grid_errors`` returned for each, of the same training and test part. The setting chosen is that with the
        lowest error within the training part, the first of equals.
    """
    errors, inner = ([value for one in grids for value in one[key]] for key in ("errors", "inner"))
    return {"errors": errors, "inner": inner, "chosen": int(np.argmin(inner))}


def two_columns(grid: Any, parts: Sequence[Mapping[str, Any]]) -> Columns:
    """Return both columns from ``grid_errors`` of all parts."""
    errors = np.array([part["errors"] for part in parts])
    best = int(errors.mean(axis=0).argmin())
    nested = [float(part["errors"][part["chosen"]]) for part in parts]
    return Columns(errors[:, best].tolist(), nested, list(ParameterGrid(grid))[best])


def spell_setting(setting: Mapping[str, Any]) -> str:
    """Return a setting in words: C = 10, lam = 0.1."""
    return ", ".join(f"{key.rpartition('__')[2]} = {value}" for key, value in setting.items())
