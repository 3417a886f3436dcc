"""EM from several starting models at once, as one stack of own models; the best without collapsed components wins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from genkern.data.objects import Packed
from genkern.models.base import Statistics
from genkern.models.fit.em import Limits, Lone, Run, Steps, better, climb, likelihoods, some_of
from genkern.models.fit.streams import Keys, derive
from genkern.models.fit.weights import amounts
from genkern.models.value import Value
from genkern.progress import each, report
from genkern.validation import Floats, warn

BATCH = 1 << 18  # numbers (points times states, or parameters of models) of all restarts run at a time


class Restarts(NamedTuple):
    """Of each model to be fitted, the key (P,) of its random numbers and the restart (P,) that it belongs to."""

    keys: Keys
    numbers: NDArray[np.int64]


class First(NamedTuple):
    """A starting model or a stack, and the argument of ``Steps.begin``, if any.

    Where restarts are run together, the argument is an array with a row for each point.
    """

    model: Any
    field: Any = None


class FitProblem(NamedTuple):
    """A fitting problem: data, steps and starting models, for one model of all objects or for own ones; sizes.

    ``width`` is the numbers held per point and ``size`` those per object with a model of its own, so that batches are
    bounded; if they are not given, restarts are run one by one. Where the data are in other units than the objects,
    ``restore`` maps a stack of models back, given the object that each belongs to, and ``shift`` (G,) is the difference
    of their objectives. ``keep``, if given, copies the fixed parameters of an old model to a new one.
    """

    data: Packed
    steps: Callable[[Packed, bool], Steps]
    guess: Callable[[Packed, Restarts, bool], First]
    width: int = BATCH
    size: int = 0
    restore: Callable[[Any, NDArray[np.int64]], Any] | None = None
    shift: Floats | None = None
    keep: Callable[[Any, Any], Any] | None = None


def numbers_in(model: Value) -> int:
    """Return how many numbers a model holds."""
    values = [getattr(model, name) for name in model._fields]
    return sum(numbers_in(value) if isinstance(value, Value) else int(np.size(value)) for value in values)


def best_start(problem: FitProblem, limits: Limits, n_init: int, keys: Keys, own: bool) -> Run:
    """Return the best of several runs of EM, chosen for each model; restarts of little data are run together.

    Every restart gives the same result as by itself, up to rounding errors where one model is fitted to all objects. A
    run with collapsed components (see ``_lone``) loses against one without, whatever its objective.
    """
    packed, every, keep = problem.data, problem.steps, problem.keep
    if keep is not None:
        problem = problem._replace(steps=lambda part, each: keeping(every(part, each), keep))
    if limits.callback is not None:
        limits = limits._replace(callback=_outward(problem, limits.callback, own))
    numbers = packed.n_points * problem.width + packed.n_objects * problem.size
    together = max(1, BATCH // max(numbers, 1))
    best: Run | None = None
    for first in each(range(0, n_init, together)):
        which = range(first, min(first + together, n_init))
        for restart, run in zip(which, _runs(problem, limits, packed, keys, which, own)):
            if limits.verbose:
                report(f"{limits.who}: run {restart + 1} of {n_init}: {_outcome(run)}")
            new = run._replace(lone=_lone(problem.steps(packed, own), run, packed, own))
            best = new if best is None else better(best, new)
    assert best is not None
    best = _restored(problem, best)
    if limits.verbose:
        report(f"{limits.who}: kept: {_outcome(best)}")
    return best


def keeping(steps: Steps, keep: Callable[[Any, Any], Any]) -> Steps:
    """Return steps that keep some parameters fixed."""
    return steps._replace(maximize=lambda statistics: keep(statistics.model, steps.maximize(statistics)))


def _outcome(run: Run) -> str:
    steps = f"{run.n_iter.max()} steps" if len(run.models) == 1 else f"at most {run.n_iter.max()} steps"
    models = f"{run.converged.sum()} of {len(run.models)} models converged"
    return f"objective {run.objective.sum():.8g} after {steps}, {models}"


def _outward(problem: FitProblem, callback: Callable[..., Any], own: bool) -> Callable[..., Any]:
    """Return the callback for EM, with arguments in the units of the objects."""

    def tell(step: int, models: Any, objective: Floats, active: NDArray[np.int64]) -> Any:
        places = active % problem.data.n_objects if own else np.zeros_like(active)
        stack = models if models.shape else type(models).stack([models])
        if problem.restore is not None and problem.shift is not None:
            stack, objective = problem.restore(stack, places), objective - problem.shift[places]
        return callback(step, stack, objective) if models.shape else callback(step, stack[0], float(objective[0]))

    return tell


def _restored(problem: FitProblem, run: Run) -> Run:
    """Return a run with models and objectives in the units of the objects."""
    if problem.restore is None or problem.shift is None:
        return run
    models = problem.restore(type(run.models[0]).stack(run.models), np.arange(len(run.models))).unstack()
    total = float(problem.shift.sum())
    history = [value - total for value in run.history]
    return run._replace(models=models, objective=run.objective - problem.shift, history=history)


def _runs(problem: FitProblem, limits: Limits, packed: Packed, keys: Keys, which: range, own: bool) -> list[Run]:
    """Return one run for each restart."""
    each = [Restarts(derive(keys, r), np.full(len(keys), r)) for r in which]
    if len(each) > 1 and not limits.leaps:
        try:
            return (_own if own else _shared)(problem, limits, packed, each)
        except ValueError:
            if limits.callback is not None:
                raise  # the error may be the callback's, which must not be called again
            # one by one, so that errors name the caller's object indices
    runs = []
    for restart in each:
        first = problem.guess(packed, restart, own)
        runs.append(climb(_begun(problem.steps(packed, own), first), limits, first.model, packed, own))
    return runs


def _own(problem: FitProblem, limits: Limits, packed: Packed, each: list[Restarts]) -> list[Run]:
    """Return the runs of restarts of own models, all in one stack."""
    many = Repeated(packed, len(each)).objects
    first = problem.guess(many, Restarts(*(np.concatenate(part) for part in zip(*each))), True)
    run = climb(_begun(problem.steps(many, True), first), limits, first.model, many, True)
    return _split(run, len(each), packed.n_objects)


def _shared(problem: FitProblem, limits: Limits, packed: Packed, each: list[Restarts]) -> list[Run]:
    """Return the runs of restarts of one model of all objects, in a stack of one for each restart."""
    models, fields = zip(*(problem.guess(packed, restart, False) for restart in each))
    first = First(type(models[0]).stack(list(models)), None if fields[0] is None else np.concatenate(fields))
    repeats = _Repeats(_begun(problem.steps(packed, False), first), len(each))
    data: Any = Repeated(packed, len(each))
    runs = _split(climb(repeats.steps(), limits, first.model, data, True), len(each), 1)
    return [one._replace(history=trace[: one.n_iter[0] + 1]) for one, trace in zip(runs, repeats.traces)]


def place_in(packed: Packed, many: Packed) -> NDArray[np.int64]:
    """Return the index of the original object of each of many repeated objects."""
    return np.arange(many.n_objects) % packed.n_objects


def _begun(steps: Steps, first: First) -> Steps:
    """Return steps whose first E-step continues from that of the starting model."""
    if steps.begin is not None and first.field is not None:
        steps.begin(first.field)
    return steps


def _split(run: Run, count: int, n: int) -> list[Run]:
    """Return the runs of restarts, n models each."""
    return [some_of(run, slice(i * n, (i + 1) * n)) for i in range(count)]


class Repeated(NamedTuple):
    """The same objects for each of several models, for EM on own models: the data of a model are one object."""

    packed: Packed
    n_objects: int  # models

    @property
    def lengths(self) -> NDArray[Any]:
        """The number of points that each model is fitted to."""
        return np.full(self.n_objects, amounts(self.packed).sum())

    @property
    def weights(self) -> None:
        """None: the data of each model have weight one; weights of objects are applied inside."""
        return None

    @property
    def objects(self) -> Packed:
        """All objects, once for each model."""
        return self.packed.take(np.tile(np.arange(self.packed.n_objects), self.n_objects))

    def take(self, kept: NDArray[np.bool_]) -> Repeated:
        """Return the same for some of the models."""
        return self._replace(n_objects=int(kept.sum()))


class _Repeats:
    """Steps of EM for a stack of models that are all fitted to the same objects."""

    def __init__(self, steps: Steps, count: int):
        self.inner, self.active = steps, np.arange(count)
        self.traces: list[list[float]] = [[] for _ in range(count)]
        self.log_probs: Floats = np.zeros(count)
        self.objects: Packed | None = None
        self.n_objects = 0

    def steps(self) -> Steps:
        """Return the steps for ``climb``."""
        return Steps(self.expect, self.inner.maximize, self.log_prob, self.log_prior, self.drop)

    def expect(self, model: Any, repeated: Any) -> Statistics:
        """Return the statistics of each model, summed over its objects."""
        every = self.inner.expect(self._each(model, repeated), self._all(repeated))
        count = repeated.n_objects
        blocks = {name: block.reshape(count, -1, *block.shape[1:]).sum(axis=1) for name, block in every.blocks.items()}
        self.log_probs = every.log_prob.reshape(count, -1).sum(axis=1)
        return Statistics(model, self.log_probs, repeated.lengths, blocks)

    def log_prob(self, model: Any, repeated: Any) -> Floats:
        """Return the log-likelihood of all objects under each model."""
        each = likelihoods(self.inner, self._each(model, repeated), self._all(repeated))
        self.log_probs = each.reshape(repeated.n_objects, -1).sum(axis=1)
        return self.log_probs

    def log_prior(self, model: Any) -> Floats:
        """Return the log prior of each model."""
        prior = self.inner.log_prior(model)
        for place, value in zip(self.active.tolist(), (self.log_probs + prior).tolist()):
            self.traces[place].append(value)
        return prior

    def drop(self, leaving: NDArray[np.bool_]) -> None:
        """Drop the models that leave the batch."""
        if self.inner.drop is not None:
            self.inner.drop(np.repeat(leaving, self.n_objects))
        self.active = self.active[~leaving]

    def _all(self, repeated: Repeated) -> Packed:
        """Return the objects once for each model: a view of those for more models."""
        if self.objects is None:
            self.objects, self.n_objects = repeated.objects, repeated.packed.n_objects
        return self.objects.take(slice(0, repeated.n_objects * repeated.packed.n_objects))

    def _each(self, model: Any, repeated: Repeated) -> Any:
        """Return a stack of one model for each object."""
        n = repeated.packed.n_objects
        return model if n == 1 else model[np.repeat(np.arange(repeated.n_objects), n)]


# --- components fitted to one observation or its copies


def _lone(steps: Steps, run: Run, packed: Packed, own: bool) -> list[list[Lone]] | None:
    """Return the collapsed components of each model, whose likelihood depends on the floor only.

    They are at the floor in some direction and fitted to one observation, or to several that almost coincide, fewer
    than the mean component has. A component with more of the data, as where half the values are zero, is no artefact.
    The number of observations is rounded.
    """
    if steps.at_floor is None or steps.counts is None or steps.coincide is None:
        return None
    stack = type(run.models[0]).stack(run.models)
    directions = steps.at_floor(stack if own else run.models[0])
    directions = directions if own else directions[None]
    found: list[list[Lone]] = [[] for _ in run.models]
    flat = directions.reshape(len(directions), -1)
    suspect = np.flatnonzero(flat.any(axis=1) & ~flat.all(axis=1))  # at the floor only because the data do not vary
    if len(suspect):
        part = packed.take(suspect) if own else packed
        if own and steps.drop is not None:
            steps.drop(~np.isin(np.arange(len(stack)), suspect))
        statistics = steps.expect(stack[suspect] if own else run.models[0], part)
        floor = directions[suspect].any(axis=-1)
        counts = steps.counts(statistics).reshape(floor.shape)
        equal = directions[suspect].all(axis=-1) & steps.coincide(statistics).reshape(floor.shape)
        whole, mean = np.rint(counts), counts.mean(axis=tuple(range(1, counts.ndim)), keepdims=True)
        for i, *place in np.argwhere((floor & (whole == 1)) | (equal & (whole > 1) & (whole < mean))).tolist():
            found[suspect[i]].append(Lone(tuple(place), float(counts[(i, *place)])))
    return found


def warn_lone(
    run: Run, names: tuple[str, ...], limits: Limits, objects: NDArray[np.int64] | None = None, stacklevel: int = 3
) -> None:
    """Warn of collapsed components (see ``_lone``).

    ``names`` are those of the axes of a component's index, such as "state"; ``objects`` those that own models belong
    to.
    """
    found = [(i, one) for i, each in enumerate(run.lone or []) for one in each]
    if not found:
        return
    (index, first), models = found[0], len({i for i, _ in found})
    where = ", ".join(f"{name} {i}" for name, i in zip(names, first.place))
    whose = "" if objects is None else f" of the model of object {objects[index]}"
    what = ", with a" if round(first.weight) == 1 else " that all but coincide, with every"
    more = f" ({len(found)} such in {models} of {len(run.models)} models)" if len(found) > 1 else ""
    warn(
        f"{limits.who}: {where}{whose} rests on an effective number of {first.weight:.2g} observations{what} variance "
        f"at the floor{more}: an outlier, or copies of a point. Lower the number of {names[len(first.place) - 1]}s, "
        "raise the floor, or use a prior (GaussianEstimator(estimate='map')).",
        ConvergenceWarning,
        [("one observation", limits.who)],
        stacklevel=stacklevel,
    )
