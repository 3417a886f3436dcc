"""Weights of objects: their own, times those of their classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from genkern.validation import Floats

REQUESTED = {"groups": True, "sample_weight": True}  # what ``fit`` of learners takes where metadata are routed


def check_weights(class_weight: Any, labels: NDArray[Any], sample_weight: ArrayLike | None, who: str) -> Floats:
    """Return the weight (n,) of each object, refusing a class that has none.

    ``class_weight`` is None, "balanced" (all classes have the same weight together, n / n_classes) or a dict of labels,
    of which those that are left out have weight one. Where objects have weights, balance is between these.
    """
    weights: Floats = _check_sample_weight(sample_weight, labels, dtype=np.float64, ensure_non_negative=True)
    classes, codes = np.unique(labels, return_inverse=True)
    totals = np.bincount(codes, weights)
    if (totals == 0.0).any():
        raise ValueError(
            f"{who} needs an object of positive weight in every class. All weights of class "
            f"{classes[totals.argmin()]!r} are zero."
        )
    if class_weight is None:
        return weights
    if isinstance(class_weight, str) and class_weight == "balanced":
        return weights * (totals.sum() / (len(classes) * totals))[codes]
    if not isinstance(class_weight, dict):
        raise ValueError(
            f"The 'class_weight' parameter of {who} must be None, 'balanced' or a dict of labels and weights. Got "
            f"{class_weight!r} instead."
        )
    own = compute_class_weight(class_weight, classes=classes, y=labels)
    if not (np.isfinite(own) & (own > 0)).all():
        raise ValueError(f"The weights in 'class_weight' of {who} must be positive numbers. Got {class_weight!r}.")
    return weights * own[codes]
