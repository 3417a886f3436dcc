"""Base class of all iterative estimators: EM for one model of all objects, or for one of each."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np

from genkern.data.objects import Packed
from genkern.models.base import Statistics
from genkern.models.estimator import ModelEstimator
from genkern.models.fit.batches import Batches, as_reader, pack_batch
from genkern.models.fit.chosen import by_criterion, run_chosen, run_each_chosen
from genkern.models.fit.em import Limits, Run, Steps, climb, expected, finished, replaced, warn_unconverged
from genkern.models.fit.restarts import First, FitProblem, Restarts, best_start, keeping, warn_lone
from genkern.models.fit.stepwise import one_pass as run_once
from genkern.models.fit.streams import Keys, keys_of, seed_of, unit_free_digests
from genkern.models.fit.weights import weighted
from genkern.models.value import Value
from genkern.validation import Floats, begin_fit, check_bool, check_int, check_number


class EMEstimator(ModelEstimator):
    """Estimator of a model by EM: ``fit`` and ``fit_each``, restarts, limits, history and warnings.

    A subclass implements ``pack``, its start ``_start`` and its M-step ``maximize``, and, if needed, its E-step
    ``_expect`` and ``_log_prior``. If its steps depend on the data (floors, units, sweeps that continue from the last),
    it implements ``_problem``. The parameters below are those of its constructor.
    """

    n_init: int = 1
    max_iter: int = 1000
    tol: float = 1e-5
    init: Any = None
    fixed: Any = ()
    callback: Any = None
    accelerate: bool = False
    random_state: Any = None
    verbose: int = 0
    kind: ClassVar[type[Value]]  # of the models that are fitted
    batched: ClassVar[bool] = True  # whether a stack of models can evaluate each object under its own model
    smaller: ClassVar[str] = "n_states"  # the parameter to lower where EM is slow, for warnings
    chosen: ClassVar[tuple[str, str] | None] = None  # a size that may be "aic" or "bic", and the bound on it
    places: ClassVar[tuple[str, ...]] = ("state", "component")  # axes of a component's index, for warnings

    # --- implemented by subclasses

    def _check_parameters(self) -> None:
        """Raise for parameters that make no sense."""
        for name, minimum in (("n_init", 1), ("max_iter", 0)):
            check_int(getattr(self, name), name, type(self).__name__, minimum)
        check_number(self.tol, "tol", type(self).__name__)
        if self.callback is not None and not callable(self.callback):
            raise TypeError(
                f"{type(self).__name__}: 'callback' must be a function of step, model and objective. Got "
                f"{self.callback!r:.80}."
            )
        check_bool(self.accelerate, "accelerate", type(self).__name__)
        names = self._fixable()
        if isinstance(self.fixed, str) or not isinstance(self.fixed, Iterable):
            raise TypeError(
                f"{type(self).__name__}: 'fixed' must be a tuple of names among {', '.join(map(repr, names))}. Got "
                f"{self.fixed!r:.80}."
            )
        for name in self.fixed:
            if name not in names:
                raise ValueError(
                    f"{type(self).__name__}: 'fixed' names {name!r}; what can be kept is {', '.join(map(repr, names))}."
                )

    @property
    def _given(self) -> Any:
        """The model to start from, or a stack of one for each object; None without."""
        if isinstance(self.init, list | tuple) and self.init and all(isinstance(one, self.kind) for one in self.init):
            return self.kind.stack(list(self.init))
        return self.init if isinstance(self.init, self.kind) else None

    @property
    def _example(self) -> Any:
        """The model to start from, or the first of a stack, as an example of all; None without."""
        given = self._given
        return given[0] if given is not None and given.shape else given

    def _given_to(self, packed: Packed, own: bool) -> Any:
        """Return the model to start from, or a stack of one for each object, refusing anything else."""
        given, n = self._given, packed.n_objects
        if given.shape not in (((), (n,)) if own else ((),)):
            wanted = f"one model, or one for each of {n} objects" if own else "one model (one for each is for fit_each)"
            raise ValueError(f"{type(self).__name__}: 'init' must be {wanted}. Got a stack of {given.shape}.")
        # One model broadcast to all objects: the same as a stack of copies, but faster.
        return self.kind.stack([given])[np.zeros(n, np.int64)] if own and not given.shape else given

    def _fixable(self) -> list[Any]:
        """Return the names that ``fixed`` may have: by default, the fields of the model."""
        return list(self.kind._fields)

    def _keep(self, old: Any, new: Any) -> Any:
        """Return a new model, or stack, with the fixed parameters of an old one."""
        kept = (getattr(old if name in self.fixed else new, name) for name in new._fields)
        return new._restore(*kept)

    def _ready(self, X: Any, own: bool, sample_weight: Any = None, known: Any = None) -> tuple[EMEstimator, Packed]:
        """Return the estimator as it fits these objects, of which something is known, and those that count, encoded."""
        return self, weighted(self.pack, X, sample_weight, type(self).__name__)

    def _problem(self, packed: Packed, own: bool) -> FitProblem:
        """Return the fitting problem of the objects."""

        def guess(part: Packed, restarts: Restarts, each: bool) -> First:
            return First(self._start(part, restarts.keys, each))

        return FitProblem(packed, self._steps, guess)

    def _steps(self, packed: Packed, own: bool) -> Steps:
        """Return the steps of EM for the objects."""
        return Steps(self._expect, self.maximize, None, self._log_prior)

    def _start(self, packed: Packed, keys: Keys, own: bool) -> Any:
        """Return the model to start from, or a stack of one for each object, from one random key each.

        An estimator without a start of its own goes on from ``init``.
        """
        if self._given is None:
            raise ValueError(
                f"{type(self).__name__}: 'init' must be a {self.kind.__name__}, for want of another start. Got "
                f"{self.init!r:.80}."
            )
        return self._given_to(packed, own)

    def _runs(self, own: bool) -> int:
        """Return the number of runs."""
        return self.n_init

    def _expect(self, model: Any, packed: Packed) -> Statistics:
        """Return the E-step's statistics: in total under one model, of each object under its own."""
        return expected(model, packed, totals=False)

    def _log_prior(self, model: Any) -> Floats:
        """Return the log prior density up to a constant, of the model's batch."""
        return np.zeros(model.shape)

    # --- public

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit one model to all objects.

        Parameters
        ----------
        X : list of objects, or 2-D array with one in each row
        y : None
            Ignored.
        sample_weight : array of shape (n_objects,), optional
            Weight of each object: two is the same as giving it twice, zero as leaving it out.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any, known: Any = None) -> Self:
        """Fit one model to all objects; ``known`` values of hidden variables may be given."""
        self._check_parameters()
        begin_fit(self, X, y)
        if known is None and self.chosen is not None and by_criterion(getattr(self, self.chosen[0])):
            run, self.criterion_ = run_chosen(self, self.chosen, X, sample_weight)
        else:
            run = self.run(X, sample_weight, known)
        self._learn(run)
        return self

    def _learn(self, run: Run) -> None:
        """Set the fitted attributes; warn of what did not go well."""
        self.model_, self.history_ = run.models[0], run.history
        self.converged_, self.n_iter_ = bool(run.converged[0]), int(run.n_iter[0])
        if not run.stopped:
            warn_unconverged(run.converged, run.lost, self._limits(), self.smaller, stacklevel=5)
        warn_lone(run, self.places, self._limits(), stacklevel=5)

    def fit_stream(self, batches: Any, n_jobs: int | None = None, one_pass: bool = False) -> Self:
        """Fit one model to all objects, which are read in batches and never held together.

        The first batch gives the alphabet, the floors of variances and, unless ``init`` is a model, the start: the
        model that ``fit`` finds for it. From there EM goes over all batches in each step, and adds the totals of its
        E-steps. From the same start this is the model of ``fit``, to rounding, unless variances are at their floors.

        With ``one_pass`` every batch is read once, and followed by an M-step of its own (see Notes). ``history_`` is
        then the log-likelihood per observation of each batch before it was used; ``converged_`` is False, as one pass
        cannot tell.

        Parameters
        ----------
        batches : callable, or list of lists of objects; with ``one_pass`` any iterable
            A function that returns the batches, the same whenever it is called: ``lambda: io.stream(path)``.
        n_jobs : int, optional
            Batches at a time, as in joblib, also on a cluster (``joblib.parallel_config``). It changes no result.
        one_pass : bool, default=False
            Whether each batch is read but once, for streams that cannot be read again, or not in time.

        Returns
        -------
        self

        Notes
        -----
        One pass is stepwise EM: the mean statistics of an observation move towards those of batch k, counted from 0, by
        the share (k + 1)^-0.7 of the way. The model depends on the order of the objects; let batches be mixed, and not
        smaller than some hundreds of objects. Models whose statistics cannot be carried from one model to the next
        (Bayesian networks) say so.

        References
        ----------
        Cappé & Moulines (2009), On-line expectation-maximization algorithm for latent data models.
        """
        self._check_parameters()
        check_bool(one_pass, "one_pass", f"{type(self).__name__}.fit_stream")
        if not one_pass:
            return self._fit_batches(as_reader(batches, type(self).__name__), n_jobs)
        if n_jobs not in (None, 1):
            raise ValueError(
                f"{type(self).__name__}.fit_stream: with one_pass, batches come one after the other, each under the "
                f"model of those before. Expected n_jobs=None, got {n_jobs!r}."
            )
        arriving = iter(batches() if callable(batches) else batches)
        first = next(arriving, None)
        begun, steps = self._begun(first)
        every = (pack_batch(begun.pack, one, i) for i, one in enumerate(chain([first], arriving)))
        self.model_, self.history_ = run_once(steps, begun, every)
        self.converged_, self.n_iter_ = False, len(self.history_)
        return self

    def _fit_batches(self, read: Callable[[], Iterable[Any]], n_jobs: int | None) -> Self:
        """Fit by EM whose steps read all batches."""
        begun, steps = self._begun(next(iter(read()), None))
        counted = sum(pack_batch(begun.pack, one, i).n_points for i, one in enumerate(read()))
        data = Batches(read, begun.pack, counted, n_jobs)
        run = climb(data.steps(steps), self._limits(), begun, data, own=False)  # type: ignore[arg-type]
        self._learn(run)
        return self

    def _begun(self, first: Any) -> tuple[Any, Steps]:
        """Return the model to start from, and the steps, from the first batch."""
        who = type(self).__name__
        if first is None:
            raise ValueError(f"{who}: there is no batch.")
        ready, sample = self._ready(getattr(first, "X", first), False)
        problem = ready._problem(sample, False)
        if problem.restore is not None:
            raise TypeError(f"{who}: its data are scaled as a whole, so that it cannot be fitted in batches; use fit.")
        if self._given is None:
            begun = ready._best(sample, np.array([seed_of(self.random_state)], np.uint64), own=False).models[0]
        else:
            begun = problem.guess(sample, Restarts(np.zeros(1, np.uint64), np.zeros(1, np.int64)), False).model
        steps = problem.steps(sample, False)
        return begun, keeping(steps, self._keep) if self.fixed else steps

    def fit_each(self, X: Any) -> list[Any]:
        """Return one model per object; each depends on its object alone (and the alphabet of all)."""
        return self._fit_each(X)

    def _fit_each(self, X: Any, known: Any = None) -> list[Any]:
        """Return one model per object, of which something may be known that is otherwise hidden."""
        self._check_parameters()
        if known is None and self.chosen is not None and by_criterion(getattr(self, self.chosen[0])):
            run = run_each_chosen(self, self.chosen, X)
        else:
            run = self.run_each(X, known)
        if not run.stopped:
            warn_unconverged(run.converged, run.lost, self._limits(), self.smaller, stacklevel=4)
        warn_lone(run, self.places, self._limits(), np.arange(len(run.models)), stacklevel=4)
        return run.models

    def resolve(self, X: Any) -> EMEstimator:
        """Return the estimator itself: numbers need no alphabet."""
        return self

    # --- EM

    def run(self, X: Any, sample_weight: Any = None, known: Any = None) -> Run:
        """Return the outcome of EM for one model of all objects; ``fit`` warns of it."""
        ready, packed = self._ready(X, False, sample_weight, known)
        ready.callback = self.callback  # a clone has a copy, also of what it writes to
        return ready._best(packed, np.array([seed_of(self.random_state)], np.uint64), own=False)

    def run_each(self, X: Any, known: Any = None) -> Run:
        """Return the outcome of EM for one model of each object; ``fit_each`` warns of it."""
        ready, packed = self._ready(X, True, known=known)
        ready.callback = self.callback
        together = self.batched and known is None and not self.accelerate
        return (ready._best if together else ready._one_by_one)(packed, ready._keys(packed), own=True)

    def _keys(self, packed: Packed) -> Keys:
        """Return the keys of the objects' random numbers."""
        return keys_of(seed_of(self.random_state), unit_free_digests(packed))

    def _best(self, packed: Packed, keys: Keys, own: bool) -> Run:
        """Return the best of ``n_init`` runs of EM, for one model of all objects or for own ones, chosen for each."""
        return self._run(packed, keys, own, self._limits(), self._runs(own))

    def _one_by_one(self, packed: Packed, keys: Keys, own: bool) -> Run:
        """Return the runs of own models, each by itself."""
        run, given = finished([None] * packed.n_objects), self._given
        for i in range(packed.n_objects):
            one = self._alone(packed, i)
            if given is not None:
                one.init = self._given_to(packed, own)[i]
            run = replaced(run, np.array([i]), one._best(packed.take([i]), keys[[i]], own=False))
        return run

    def _alone(self, packed: Packed, index: int) -> EMEstimator:
        """Return the estimator as it fits one of the objects by itself."""
        return copy.copy(self)

    def _run(self, packed: Packed, keys: Keys, own: bool, limits: Limits, runs: int) -> Run:
        problem = self._problem(packed, own)._replace(keep=self._keep if self.fixed else None)
        run = best_start(problem, limits, runs, keys, own)
        if not self.fixed or self._given is None:
            return run
        given = self._given_to(packed, own)  # to the last bit, whatever the units of EM
        pairs = zip(given.unstack() if own else [given], run.models, strict=True)
        return run._replace(models=[self._keep(old, new) for old, new in pairs])

    def _limits(self) -> Limits:
        return Limits(type(self).__name__, self.max_iter, self.tol, self.verbose, self.callback, self.accelerate)
