"""The EM algorithm, for one model of all objects or for one of each, whatever the model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from genkern.models.base import Statistics
from genkern.objects import Packed
from genkern.progress import report
from genkern.validation import Floats


class Lone(NamedTuple):
    """A component that rests on one observation: its place in the model and its effective number of observations."""

    place: tuple[int, ...]
    weight: float


class Run(NamedTuple):
    """The outcome of EM for P models: the models, objectives (P,), steps (P,), convergence (P,), summed history.

    ``lone`` has, for each model, the components that rest on one observation, if that was asked.
    """

    models: list[Any]
    objective: Floats
    n_iter: NDArray[np.int64]
    converged: NDArray[np.bool_]
    history: list[float]
    lone: list[list[Lone]] | None = None


class Steps(NamedTuple):
    """What EM needs of a model: E-step and M-step, log-likelihoods (n_objects,) and the log prior of each model.

    Own models are a stack of batch (n_objects,), and their statistics belong to the objects; one model of all objects
    has the statistics of all together. ``drop``, if there is one, is told which own models leave the batch: for E-steps
    that go on from the last. Of families whose densities have no bound, ``at_floor`` says which components of a model
    are at their floor, in which directions (the last axis), and ``counts``, from statistics, how many observations each
    has.
    """

    expect: Callable[[Any, Packed], Statistics]
    maximize: Callable[[Statistics], Any]
    log_prob: Callable[[Any, Packed], Floats]
    log_prior: Callable[[Any], Floats]
    drop: Callable[[NDArray[np.bool_]], None] | None = None
    at_floor: Callable[[Any], NDArray[np.bool_]] | None = None
    counts: Callable[[Statistics], Floats] | None = None


class Limits(NamedTuple):
    """When EM stops, and who reports: after so many steps, or when a step gains less than tol per observation."""

    who: str
    max_iter: int
    tol: float
    verbose: int


def climb(steps: Steps, limits: Limits, model: Any, packed: Packed, own: bool) -> Run:
    """Run EM from a first guess; own models that have converged leave the batch."""
    count = packed.n_objects if own else 1
    active = np.arange(count)
    objective, n_iter = np.full(count, -np.inf), np.zeros(count, np.int64)
    converged = np.zeros(count, bool)
    done: list[Any] = [None] * count
    history: list[float] = []
    lengths = packed.lengths if own else np.array([packed.lengths.sum()])
    for step in range(limits.max_iter + 1):
        last = step == limits.max_iter
        statistics = None if last else steps.expect(model, packed)
        log_prob = steps.log_prob(model, packed) if statistics is None else statistics.log_prob
        value = np.atleast_1d((log_prob if own else log_prob.sum()) + steps.log_prior(model))
        # The first guess may be one that the prior forbids: what it gains over nothing is not a number.
        gain = value - objective[active] if step else np.full_like(value, np.inf)
        objective[active], n_iter[active] = value, step
        history.append(float(objective.sum()))
        if limits.verbose > 1:
            report(f"{limits.who}: step {step}, {len(active)} models, objective {history[-1]:.8g}")
        finished = (gain < limits.tol * lengths[active]) & (limits.tol > 0)
        converged[active] = finished
        leaving = np.ones_like(finished) if last else finished
        if leaving.any():
            for place, member in zip(active[leaving], model[leaving].unstack() if own else [model]):
                done[place] = member
        if leaving.all():
            break
        assert statistics is not None
        model = steps.maximize(statistics)
        if leaving.any():
            active, model, packed = active[~leaving], model[~leaving], packed.take(~leaving)
            if steps.drop is not None:
                steps.drop(leaving)
    return Run(done, objective, n_iter, converged, history)


def best_of(runs: int, run: Callable[[int], Run], limits: Limits) -> Run:
    """Return the best of several runs, chosen for each model by its objective."""
    best: Run | None = None
    for restart in range(runs):
        new = run(restart)
        if limits.verbose:
            report(f"{limits.who}: run {restart + 1} of {runs}: {new.objective.sum():.6g}")
        best = new if best is None else better(best, new)
    assert best is not None
    return best


def better(old: Run, new: Run) -> Run:
    """Return, model by model, the run with the higher objective, and the history of the run that wins most.

    A model with a component that rests on one observation loses against one without: its objective is that of a floor.
    """
    alone = [run.lone or [[]] * len(run.models) for run in (old, new)]
    bad, worse = (np.array([bool(found) for found in each]) for each in alone)
    wins = np.where(bad == worse, new.objective > old.objective, bad)
    return Run(
        [(new if win else old).models[i] for i, win in enumerate(wins)],
        np.where(wins, new.objective, old.objective),
        np.where(wins, new.n_iter, old.n_iter),
        np.where(wins, new.converged, old.converged),
        (new if wins.mean() > 0.5 else old).history,
        [alone[int(win)][i] for i, win in enumerate(wins)],
    )


def warn_unconverged(converged: NDArray[np.bool_], limits: Limits, size: str) -> None:
    """Warn if models did not converge; ``size`` names the parameter that would make them smaller."""
    if converged.all() or limits.tol == 0 or limits.max_iter == 0:
        return  # tol=0 asks for all steps, whatever they gain
    warnings.warn(
        f"{limits.who}: {(~converged).sum()} of {len(converged)} models did not converge in {limits.max_iter} steps "
        f"(a step still gained more than tol={limits.tol:g} per observation). Raise max_iter, raise tol, or lower "
        f"{size}.",
        ConvergenceWarning,
        stacklevel=3,
    )
