"""Sizes of models (states, components) chosen by an information criterion."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone

from genkern.data.objects import Packed
from genkern.models.fit.weights import amounts, weighted
from genkern.progress import report

CRITERIA = ("aic", "bic")
Fitted = TypeVar("Fitted", bound=Any)
PATIENCE = 2  # sizes in a row that are worse than the best, after which larger ones are not tried


def by_criterion(size: Any) -> bool:
    """Say whether a size is to be chosen by a criterion."""
    return isinstance(size, str) and size in CRITERIA


def fit_chosen(estimator: Fitted, names: tuple[str, str], X: Any, y: Any, sample_weight: Any) -> Fitted:
    """Fit an estimator with the value 1, 2, ... of a parameter that names a criterion; keep the best.

    ``names`` are those of the parameter and of the bound on it; objects have weights. It gets the fitted attributes of
    the best, and ``criterion_``, the values of the criterion of all sizes that were tried.
    """
    size, bound = names
    packed = weighted(estimator.pack(X), sample_weight, type(estimator).__name__)
    criterion, best, tried = getattr(estimator, size), None, []
    for n in range(1, min(getattr(estimator, bound), packed.n_points) + 1):
        found = clone(estimator).set_params(**{size: n}, callback=estimator.callback).fit(X, y, sample_weight)
        tried.append(_criterion(criterion, found.model_, packed))
        if best is None or tried[-1] < min(tried[:-1]):
            best = found
        if estimator.verbose:
            report(f"{type(estimator).__name__}: {size}={n}: {criterion} {tried[-1]:.6g}")
        if n - int(np.argmin(tried)) > PATIENCE:
            break
    learned = {name: value for name, value in vars(best).items() if name.endswith("_")}
    estimator.__dict__.update(learned, criterion_=tried)
    return estimator


def _criterion(name: str, model: Any, packed: Packed) -> float:
    """Return a criterion of weighted objects."""
    if packed.weights is None:
        return float(getattr(model, name)(packed))
    penalty = 2.0 if name == "aic" else float(np.log(amounts(packed).sum()))
    return model.n_free_parameters * penalty - 2.0 * float(packed.weights @ model.log_prob(packed))


def fit_each_chosen(estimator: Any, names: tuple[str, str], X: Any) -> list[Any]:
    """Return the best model of each object by its own criterion."""
    size, bound = names
    packed = estimator.pack(X)
    estimator.check_each(packed)
    most = np.minimum(getattr(estimator, bound), packed.lengths)
    criterion, count = getattr(estimator, size), packed.n_objects
    models: list[Any] = [None] * count
    best, sizes = np.full(count, np.inf), np.zeros(count, np.int64)
    active, resolved = np.arange(count), estimator.resolve(packed)  # a prior from all objects, also after some left
    for n in range(1, int(np.max(most)) + 1):
        active = active[(n <= most[active]) & (n - 1 - sizes[active] < PATIENCE)] if n > 1 else active
        if not len(active):
            break
        found = clone(resolved).set_params(**{size: n}, callback=estimator.callback).fit_each(packed.take(active))
        for i, model in zip(active.tolist(), found, strict=True):
            value = float(getattr(model, criterion)(packed.take([i])))
            if models[i] is None or value < best[i]:
                models[i], best[i], sizes[i] = model, value, n
    return models
