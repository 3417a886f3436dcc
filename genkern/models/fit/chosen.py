"""Sizes of models (states, components) chosen by an information criterion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from genkern.data.objects import Packed
from genkern.models.fit.em import Run, finished, replaced, some_of
from genkern.models.fit.weights import amounts, weighted
from genkern.progress import report
from genkern.validation import check_int

CRITERIA = ("aic", "bic")
PATIENCE = 2  # sizes in a row that are worse than the best, after which larger ones are not tried


def by_criterion(size: Any) -> bool:
    """Say whether a size is to be chosen by a criterion."""
    return isinstance(size, str) and size in CRITERIA


def check_size(size: Any, name: str, who: str, more: Sequence[str] = ()) -> None:
    """Raise for a size that is no number, and does not name what chooses one."""
    if isinstance(size, str) and not by_criterion(size):
        listed = ", ".join(map(repr, (*more, *CRITERIA)))
        raise ValueError(
            f"The '{name}' parameter of {who} must be an int >= 1, or one of {listed}. Got {size!r} instead."
        )
    if not isinstance(size, str):
        check_int(size, name, who, 1)


def run_chosen(estimator: Any, names: tuple[str, str], X: Any, sample_weight: Any) -> tuple[Run, list[float]]:
    """Return the best run with the value 1, 2, ... of a parameter that names a criterion, and the criterion of each.

    ``names`` are those of the parameter and of the bound on it; an object counts as often as its weight says.
    """
    size, bound = names
    packed = weighted(estimator.pack, X, sample_weight, type(estimator).__name__)
    criterion, best, tried = getattr(estimator, size), None, []
    most = max(packed.n_points, int(amounts(packed).sum()))
    for n in range(1, min(getattr(estimator, bound), most) + 1):
        found = clone(estimator).set_params(**{size: n}, callback=estimator.callback).run(X, sample_weight)
        tried.append(_criterion(criterion, found.models[0], packed))
        if best is None or tried[-1] < min(tried[:-1]):
            best = found
        if estimator.verbose:
            report(f"{type(estimator).__name__}: {size}={n}: {criterion} {tried[-1]:.6g}")
        if n - int(np.argmin(tried)) > PATIENCE:
            break
    assert best is not None
    return best, tried


def _criterion(name: str, model: Any, packed: Packed) -> float:
    """Return a criterion of weighted objects."""
    if packed.weights is None:
        return float(getattr(model, name)(packed))
    penalty = 2.0 if name == "aic" else float(np.log(amounts(packed).sum()))
    return model.n_free_parameters * penalty - 2.0 * float(packed.weights @ model.log_prob(packed))


def run_each_chosen(estimator: Any, names: tuple[str, str], X: Any) -> Run:
    """Return the run of the best model of each object, whose own criterion decides."""
    size, bound = names
    packed = estimator.pack(X)
    estimator.check_each(packed)
    most = np.minimum(getattr(estimator, bound), packed.lengths)
    criterion, count = getattr(estimator, size), packed.n_objects
    run = finished([None] * count)
    best, sizes = np.full(count, np.inf), np.zeros(count, np.int64)
    active, resolved = np.arange(count), estimator.resolve(packed)  # a prior from all objects, also after some left
    for n in range(1, int(np.max(most)) + 1):
        active = active[(n <= most[active]) & (n - 1 - sizes[active] < PATIENCE)] if n > 1 else active
        if not len(active):
            break
        found = clone(resolved).set_params(**{size: n}, callback=estimator.callback).run_each(packed.take(active))
        pairs = zip(active.tolist(), found.models, strict=True)
        values = np.array([float(getattr(model, criterion)(packed.take([i]))) for i, model in pairs])
        better = (sizes[active] == 0) | (values < best[active])
        run = replaced(run, active[better], some_of(found, better))
        best[active[better]], sizes[active[better]] = values[better], n
    return run
