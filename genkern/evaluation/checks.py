"""What ``evaluate`` is given, checked before the work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.validation import refuse_odd_labels


def check_inputs(X: Any, y: ArrayLike, recipes: Mapping[str, Any], groups: Any) -> tuple[list[Any], NDArray[Any], Any]:
    """Return objects, labels and groups, as many of each."""
    if not isinstance(recipes, Mapping):
        raise TypeError(
            f"evaluate: 'recipes' must be a dict of names to classifiers. Got {type(recipes).__name__}; pass "
            "{name: classifier}, such as {'series': genkern.recipes.series()}."
        )
    for name, recipe in recipes.items():
        if isinstance(recipe, type) or not hasattr(recipe, "fit"):
            came = getattr(recipe, "__name__", type(recipe).__name__)
            remedy = f"call it: {came}()" if callable(recipe) else "pass an estimator with fit and predict"
            raise TypeError(f"evaluate: recipe {name!r} must be a classifier. Got {came}; {remedy}.")
    if hasattr(X, "X") and hasattr(X, "y"):
        raise TypeError(f"evaluate: X must be a list of objects. Got {type(X).__name__}; pass data.X, data.y.")
    if isinstance(X, str | bytes):
        raise TypeError("evaluate: X must be a list of objects. Got one string; read files by genkern.read(path).")
    if len(np.shape(y)) == 1:
        refuse_odd_labels(y, "evaluate")
    objects, labels = list(X), np.asarray(y)
    owners = None if groups is None else np.asarray(groups)
    for name, array in (("y", labels), ("groups", owners)):
        if array is not None and array.shape != (len(objects),):
            raise ValueError(
                f"evaluate: {name} must have one entry per object, {len(objects)}. Got an array of shape {array.shape}."
            )
    if len(np.unique(labels)) < 2:
        raise ValueError(f"evaluate: two classes are needed at least. Got {np.unique(labels).tolist()}.")
    if not recipes:
        raise ValueError("evaluate: no recipes were given; pass a dict of names to classifiers.")
    return objects, labels, owners
