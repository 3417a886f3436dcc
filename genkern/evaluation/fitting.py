"""Fits of classifiers whose own choices keep groups whole, and that count objects by weights."""

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


def fit_grouped(estimator: Any, X: Any, labels: NDArray[Any], groups: Any, sample_weight: Any = None) -> Any:
    """Return a fitted clone, whose own choices leave out whole groups where it can do that, and each class has two.

    One that cannot use weights refuses them.
    """
    made = clone(estimator)
    if groups is not None and members(np.unique(labels, return_inverse=True)[1], groups).min() < 2:
        groups = None
    given = {"groups": groups, "sample_weight": sample_weight}
    given = {key: value for key, value in given.items() if value is not None}
    name, last = made.steps[-1] if isinstance(made, Pipeline) else ("", made)
    if groups is not None and isinstance(last, GridSearchCV):
        last.set_params(cv=make_folds(last.cv, labels, groups, "GridSearchCV"))
    with config_context(enable_metadata_routing=True):
        routed = get_routing_for_object(made).consumes("fit", given)
        if "sample_weight" in routed or (routed and sample_weight is None):
            return made.fit(X, labels, **{key: given[key] for key in routed})
    taken = inspect.signature(last.fit).parameters
    if sample_weight is not None and (routed or "sample_weight" not in taken):
        raise TypeError(
            f"{type(last).__name__} does not request sample_weight, so that objects cannot be weighted. Where its "
            "learner can, call set_fit_request(sample_weight=True) on that; or leave weights out."
        )
    named = {f"{name}__{key}" if name else key: value for key, value in given.items() if key in taken}
    if not named:
        return made.fit(X, labels)
    with config_context(enable_metadata_routing=False):  # to one that takes them without a request, by its name
        return made.fit(X, labels, **named)
