"""The EM algorithm, for one model of all objects or for one of each, whatever the model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from genkern.data.objects import Packed
from genkern.models.base import Statistics
from genkern.models.fit.leaps import Leaps
from genkern.models.fit.weights import amounts
from genkern.progress import each, report
from genkern.validation import Floats

REST = 10.0  # times tol: the gain that all further steps may have together, extrapolated from the last ones
EXACT = 1e-13  # gain relative to the objective that is a rounding error
SLACK = 1e-9, 1e-8  # loss relative to the objective, and per observation, that is a rounding error


class Lone(NamedTuple):
    """A component fitted to one observation or its copies: its index in the model, and its observations."""

    place: tuple[int, ...]
    weight: float


class Run(NamedTuple):
    """The outcome of EM for P models: the models, objectives (P,), steps (P,), convergence (P,), summed history.

    ``lost`` (P,) is the loss of objective by the last step, infinite for NaN, where it was taken back, else zero.
    ``lone`` has, for each model, the components fitted to one observation or its copies, if asked for. ``stopped`` says
    that a callback ended it.
    """

    models: list[Any]
    objective: Floats
    n_iter: NDArray[np.int64]
    converged: NDArray[np.bool_]
    history: list[float]
    lost: Floats
    lone: list[list[Lone]] | None = None
    stopped: bool = False


class Steps(NamedTuple):
    """The functions of EM: E-step and M-step, log-likelihoods (n_objects,) and the log prior of each model.

    The E-step is to count objects as often as their weights say (see `expected`). ``log_prob``, of each once, serves
    the last step, if it is cheaper than the E-step. Own models are a stack of batch (n_objects,), and their statistics
    belong to the objects; one model of all objects has the statistics of all together. ``drop``, if there is one, is
    told which objects leave the batch with their models. E-steps that go on from the last are told by ``begin`` where
    the first starts. Of families whose densities have no bound, ``at_floor`` says which components of a model are at
    their floor, in which directions (the last axis), ``counts``, from statistics, how many observations each has, and
    ``coincide`` which rest on observations that nearly coincide. ``settled``, if there is one, says which models a
    step from the first to the second has left where they were: they have converged, whatever their objectives.
    """

    expect: Callable[[Any, Packed], Statistics]
    maximize: Callable[[Statistics], Any]
    log_prob: Callable[[Any, Packed], Floats] | None
    log_prior: Callable[[Any], Floats]
    drop: Callable[[NDArray[np.bool_]], None] | None = None
    begin: Callable[[Any], None] | None = None
    at_floor: Callable[[Any], NDArray[np.bool_]] | None = None
    counts: Callable[[Statistics], Floats] | None = None
    coincide: Callable[[Statistics], NDArray[np.bool_]] | None = None
    settled: Callable[[Any, Any], NDArray[np.bool_]] | None = None


class Limits(NamedTuple):
    """Stopping rule of EM (at most so many steps, or `Pace` says that it has converged), and the name for warnings.

    ``callback``, if given, is called after each step with its number, the models, their objectives and their indices,
    and ends the run if it returns True. ``leaps`` asks for `Leaps`, of one model of all objects.
    """

    who: str
    max_iter: int
    tol: float
    verbose: int
    callback: Callable[..., Any] | None = None
    leaps: bool = False


class Pace:
    r"""Convergence of P models by their last three gains :math:`g'', g', g`.

    .. math:: g < \epsilon T, \qquad g \, \frac{r}{1 - r} < 10 \, \epsilon T, \qquad r = \max(g / g', g' / g'')

    with :math:`\epsilon` the tolerance and T the observations. The second term is the total gain of all further steps
    if gains continued as a geometric series. A small gain alone may be a plateau: if gains grow again, or hardly
    shrink, EM has not converged. A gain that is a rounding error needs no history.
    """

    def __init__(self, count: int, tol: float):
        self.tol, self.gains = tol, np.full((2, count), np.inf)

    def converged(self, active: NDArray[np.int64], gain: Floats, value: Floats, lengths: Any) -> NDArray[np.bool_]:
        """Take the next gains of the active models, (len(active),), and return which have converged."""
        older, old = self.gains[:, active]
        self.gains[:, active] = old, gain
        if self.tol == 0.0:
            return np.zeros(len(active), bool)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.fmax(gain / old, old / older)  # NaN, before there are three gains, is ignored
            rest = np.where(ratio < 1.0, gain * ratio / (1.0 - ratio), np.inf)
        calm = (gain <= EXACT * np.abs(value)) | (np.isfinite(older) & (rest < REST * self.tol * lengths))
        return np.asarray((gain < self.tol * lengths) & calm)


def expected(model: Any, packed: Packed, totals: bool = True, **options: Any) -> Statistics:
    """Return the E-step's statistics: in total under one model, of each object under its own of a stack.

    Objects are weighted, also in ``log_prob``. ``totals``: the model's ``statistics`` can sum over objects; ``options``
    are passed to it.
    """
    if totals and packed.weights is None and not model.shape:
        summed: Statistics = model.statistics(packed, totals=True, **options)
        return summed
    found: Statistics = model.statistics(packed, **options).weighted(packed.weights)
    return found if model.shape else found.total()


def likelihoods(steps: Steps, model: Any, packed: Packed) -> Floats:
    """Return the log-likelihoods (n_objects,) of the objects times their weights."""
    if steps.log_prob is None:
        return steps.expect(model, packed).log_prob
    log_prob = steps.log_prob(model, packed)
    return log_prob if packed.weights is None else log_prob * packed.weights


def climb(steps: Steps, limits: Limits, model: Any, packed: Packed, own: bool) -> Run:
    """Run EM from a starting model; own models that have converged leave the batch.

    So do models whose objective fell by a step, which only rounding errors can cause: they keep the values before it.
    With `Leaps`, convergence is judged by the gains of whole leaps and the steps around them.
    """
    count = packed.n_objects if own else 1
    active = np.arange(count)
    objective, n_iter = np.full(count, -np.inf), np.zeros(count, np.int64)
    converged = np.zeros(count, bool)
    done: list[Any] = [None] * count
    history: list[float] = []
    lost = np.zeros(count)
    lengths = amounts(packed) if own else np.array([amounts(packed).sum()])
    pace, before, stopped = Pace(count, limits.tol), model, False
    leaps, begun = Leaps() if limits.leaps else None, objective.copy()
    for step in each(range(limits.max_iter + 1)):
        settled = np.zeros(len(active), bool) if steps.settled is None or not step else steps.settled(before, model)
        last = step == limits.max_iter or bool(settled.all())
        statistics = None if last else steps.expect(model, packed)
        log_prob = likelihoods(steps, model, packed) if statistics is None else statistics.log_prob
        value = np.atleast_1d((log_prob if own else log_prob.sum()) + steps.log_prior(model))
        if leaps is not None and (plain := leaps.refused(bool(value[0] >= objective[0]))) is not None:
            history.append(float(objective.sum()))
            model = plain
            continue
        # The prior may forbid the starting model (objective -inf): the gain of the first step is then NaN.
        gain = value - objective[active] if step else np.full_like(value, np.inf)
        slack = SLACK[0] * np.abs(objective[active]) + SLACK[1] * lengths[active]
        fallen = np.isnan(gain) | (gain < -slack) if step else np.zeros(len(active), bool)
        lost[active[fallen]] = np.where(np.isnan(gain), np.inf, -gain)[fallen]
        objective[active] = np.where(fallen, objective[active], value)
        n_iter[active] = np.where(fallen, step - 1, step)
        if not fallen.all():
            history.append(float(objective.sum()))
        if limits.verbose > 1:
            report(f"{limits.who}: step {step}, {len(active)} models, objective {history[-1]:.8g}")
        if leaps is None or leaps.begins:
            whole = gain if leaps is None else value - begun
            converged[active] = (settled | pace.converged(active, whole, value, lengths[active])) & ~fallen
            begun = value
        if step and limits.callback is not None and not fallen.all():
            stopped = limits.callback(step, model, objective[active], active) is True
        leaving = converged[active] | fallen | last | stopped
        for which, kept in ((leaving & ~fallen, model), (fallen, before)):
            if which.any():
                for place, member in zip(active[which], kept[which].unstack() if own else [kept]):
                    done[place] = member
        if leaving.all():
            break
        assert statistics is not None
        before, model = model, steps.maximize(statistics)
        if leaps is not None and step + 1 < limits.max_iter:
            model = leaps.follow(before, model)
        if leaving.any():
            active, packed = active[~leaving], packed.take(~leaving)
            before, model = before[~leaving], model[~leaving]
            if steps.drop is not None:
                steps.drop(leaving)
    return Run(done, objective, n_iter, converged, history, lost, stopped=stopped)


def better(old: Run, new: Run) -> Run:
    """Return, model by model, the run with the higher objective, and the history of the run that wins most.

    A model with a component fitted to one observation or its copies loses against one without: its objective depends on
    the floor only.
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
        np.where(wins, new.lost, old.lost),
        [alone[int(win)][i] for i, win in enumerate(wins)],
        old.stopped or new.stopped,
    )


def finished(models: list[Any]) -> Run:
    """Return the outcome for models that one step maximises, without objectives."""
    n = len(models)
    return Run(models, np.zeros(n), np.ones(n, np.int64), np.ones(n, bool), [], np.zeros(n))


def some_of(run: Run, which: Any) -> Run:
    """Return the outcome for some of the models."""
    places = np.arange(len(run.models))[which].tolist()
    return run._replace(
        models=[run.models[i] for i in places],
        lone=None if run.lone is None else [run.lone[i] for i in places],
        **{name: getattr(run, name)[which] for name in ("objective", "n_iter", "converged", "lost")},
    )


def replaced(run: Run, places: NDArray[np.int64], part: Run) -> Run:
    """Return a run with other outcomes of some of the models."""
    models, lone = list(run.models), list(run.lone or [[]] * len(run.models))
    for i, place in enumerate(places.tolist()):
        models[place], lone[place] = part.models[i], (part.lone or [[]] * len(places))[i]
    arrays = {name: getattr(run, name).copy() for name in ("objective", "n_iter", "converged", "lost")}
    for name, array in arrays.items():
        array[places] = getattr(part, name)
    history, stopped = [*run.history, *part.history], run.stopped or part.stopped
    return Run(models=models, history=history, lone=lone, stopped=stopped, **arrays)


def warn_unconverged(
    converged: NDArray[np.bool_], lost: Floats, limits: Limits, size: str, stacklevel: int = 3
) -> None:
    """Warn of models whose objective fell, and of others that did not converge, as in `Run`.

    ``size`` names the parameter that would make them smaller.
    """
    fallen = lost > 0.0
    if fallen.any():
        warnings.warn(
            f"{limits.who}: rounding errors made {fallen.sum()} of {len(fallen)} models worse in a step of EM (by up "
            f"to {lost.max():.3g} nats); they are left as they were before it. Look for values that are far from all "
            "others, or raise the floor of the variances.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
    slow = ~(converged | fallen)
    if not slow.any() or limits.tol == 0 or limits.max_iter == 0:
        return  # tol=0 asks for all steps, whatever their gain
    warnings.warn(
        f"{limits.who}: {slow.sum()} of {len(slow)} models did not converge in {limits.max_iter} steps "
        f"(a step still gained more than tol={limits.tol:g} per observation). Raise max_iter, raise tol, or lower "
        f"{size}.",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )
