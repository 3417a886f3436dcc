"""Fits of classifiers whose own choices keep groups whole."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold
from sklearn.pipeline import Pipeline

from genkern.data.intake import Ints


def fit_grouped(estimator: Any, X: Any, labels: NDArray[Any], groups: Any) -> Any:
    """Return a fitted clone, whose own choices leave out whole groups where its last step can do that."""
    made = clone(estimator)
    last, prefix = (made.steps[-1][1], f"{made.steps[-1][0]}__") if isinstance(made, Pipeline) else (made, "")
    if groups is None:
        return made.fit(X, labels)
    if isinstance(last, GridSearchCV) and isinstance(last.cv, int):
        count = int(members(np.unique(labels, return_inverse=True)[1], groups).min())
        if count < 2:
            return made.fit(X, labels)
        last.set_params(cv=StratifiedGroupKFold(min(last.cv, count)))
    elif "groups" not in inspect.signature(last.fit).parameters or len(np.unique(groups)) < 2:
        return made.fit(X, labels)
    with config_context(enable_metadata_routing=False):  # groups go to the last step by its name
        return made.fit(X, labels, **{f"{prefix}groups": groups})


def members(codes: Ints, groups: Any) -> Ints:
    """Return how many objects, or where there are groups how many of these, each class has."""
    if groups is None:
        return np.bincount(codes)
    return np.array([len(np.unique(groups[codes == code])) for code in range(codes.max() + 1)])
