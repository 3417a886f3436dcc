"""EM for Markov chains with hidden phases or missing symbols, one for all sequences or one for each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.models.em import Pace
from genkern.models.markov_backoff import Laws, Smoothing, log_prior, maximize
from genkern.objects import Packed
from genkern.validation import Floats


class Run(NamedTuple):
    """The outcome for P models: the models, objectives (P,), steps (P,), convergence (P,), and the summed history."""

    models: list[Any]
    objective: Floats
    n_iter: NDArray[np.int64]
    converged: NDArray[np.bool_]
    history: list[float]


class Limits(NamedTuple):
    """When to stop: after so many steps, or when `Pace` says that EM has converged."""

    max_iter: int
    tol: float


def run_em(model: Any, packed: Packed, smoothing: Smoothing, centre: Laws | None, limits: Limits) -> Run:
    """Run EM with a fixed prior; of a stack, one model per object, those that have converged leave the batch."""
    own = bool(model.shape)
    count = packed.n_objects if own else 1
    active, done = np.arange(count), np.empty(count, object)
    objective, steps, converged = np.full(count, -np.inf), np.zeros(count, np.int64), np.zeros(count, bool)
    history: list[float] = []
    lengths = packed.lengths if own else np.array([packed.lengths.sum()])
    pace = Pace(count, limits.tol)
    for step in range(limits.max_iter + 1):
        last = step == limits.max_iter
        statistics = None if last else model.statistics(packed, totals=not own)
        log_prob = model.own_log_prob(packed) if statistics is None else statistics.log_prob
        value = (log_prob if own else log_prob.sum()) + log_prior(model, smoothing, centre)
        gain = np.atleast_1d(value - objective[active])
        objective[active], steps[active] = value, step
        history.append(float(objective.sum()))
        converged[active] = pace.converged(active, gain, objective[active], lengths[active])
        leaving = converged[active] | last
        if leaving.any():
            done[active[leaving]] = model[leaving].unstack() if own else [model]
        if leaving.all():
            break
        assert statistics is not None
        model, _ = maximize(statistics, smoothing, centre)
        if leaving.any():
            active, model, packed = active[~leaving], model[~leaving], packed.take(~leaving)
            centre = None if centre is None else Laws(centre.start[~leaving], centre.steps[~leaving], centre.begin)
    return Run(list(done), objective, steps, converged, history)
