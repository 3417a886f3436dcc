"""Sizes of models (states, components) chosen by an information criterion."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone

from genkern.objects import Packed
from genkern.progress import report

CRITERIA = ("aic", "bic")
Fitted = TypeVar("Fitted", bound=Any)
PATIENCE = 2  # sizes in a row that are worse than the best, after which larger ones are not tried


def by_criterion(size: Any) -> bool:
    """Say whether a size is to be chosen by a criterion."""
    return isinstance(size, str) and size in CRITERIA


def fit_chosen(estimator: Fitted, size: str, X: Any, y: Any, most: int) -> Fitted:
    """Fit an estimator with the value 1, 2, ... of a parameter that names a criterion, and make it the best of these.

    It has what the best has learned, and ``criterion_``, the values of the criterion of all sizes that were tried.
    """
    criterion, best, tried = getattr(estimator, size), None, []
    for n in range(1, most + 1):
        found = clone(estimator).set_params(**{size: n}).fit(X, y)
        tried.append(float(getattr(found.model_, criterion)(X)))
        if best is None or tried[-1] < min(tried[:-1]):
            best = found
        if estimator.verbose:
            report(f"{type(estimator).__name__}: {size}={n}: {criterion} {tried[-1]:.6g}")
        if n - int(np.argmin(tried)) > PATIENCE:
            break
    learned = {name: value for name, value in vars(best).items() if name.endswith("_")}
    estimator.__dict__.update(learned, criterion_=tried)
    return estimator


def fit_each_chosen(estimator: Any, size: str, packed: Packed, most: Any) -> list[Any]:
    """Return the best model of each object, whose own criterion decides; ``most`` (n_objects,) bounds its size."""
    criterion, count = getattr(estimator, size), packed.n_objects
    models: list[Any] = [None] * count
    best, sizes = np.full(count, np.inf), np.zeros(count, np.int64)
    active, resolved = np.arange(count), estimator.resolve(packed)  # a prior from all objects, whoever is left
    for n in range(1, int(np.max(most)) + 1):
        active = active[(n <= most[active]) & (n - 1 - sizes[active] < PATIENCE)] if n > 1 else active
        if not len(active):
            break
        found = clone(resolved).set_params(**{size: n}).fit_each(packed.take(active))
        for i, model in zip(active.tolist(), found, strict=True):
            value = float(getattr(model, criterion)(packed.take([i])))
            if models[i] is None or value < best[i]:
                models[i], best[i], sizes[i] = model, value, n
    return models
