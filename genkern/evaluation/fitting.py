"""Fits of classifiers whose own choices keep groups whole."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object

from genkern.preprocess.folds import make_folds, members


def fit_grouped(estimator: Any, X: Any, labels: NDArray[Any], groups: Any) -> Any:
    """Return a fitted clone, whose own choices leave out whole groups where it can do that, and each class has two."""
    made = clone(estimator)
    if groups is None or members(np.unique(labels, return_inverse=True)[1], groups).min() < 2:
        return made.fit(X, labels)
    name, last = made.steps[-1] if isinstance(made, Pipeline) else ("", made)
    if isinstance(last, GridSearchCV):
        last.set_params(cv=make_folds(last.cv, labels, groups, "GridSearchCV"))
    with config_context(enable_metadata_routing=True):
        if get_routing_for_object(made).consumes("fit", ["groups"]):
            return made.fit(X, labels, groups=groups)
    if "groups" not in inspect.signature(last.fit).parameters:
        return made.fit(X, labels)
    with config_context(enable_metadata_routing=False):  # to one that takes them without a request, by its name
        return made.fit(X, labels, **{f"{name}__groups" if name else "groups": groups})
