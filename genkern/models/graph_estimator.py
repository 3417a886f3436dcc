"""EM for networks with hidden nodes or missing entries, for one network or one per object; closed form without."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from genkern.models.base import Statistics
from genkern.models.em import Limits, Run, Steps, best_of, climb, warn_unconverged
from genkern.models.estimator import ModelEstimator
from genkern.models.graph import Graph, make_graph
from genkern.models.streams import Keys, derive, keys_of, seed_of, unit_free_digests
from genkern.models.units import warn_unseen
from genkern.objects import Packed
from genkern.validation import Floats, begin_fit, check_int, check_number


class NetEstimator(ModelEstimator):
    """Estimator of a network of known structure.

    A family gives ``pack``, ``resolve``, ``_check_parameters``, ``_maximize``, and ``_guess`` and ``_log_prior`` or its
    own ``_climb``.
    """

    structure: Any
    hidden: Any
    observed: Any
    n_init: int
    max_iter: int
    tol: float
    random_state: Any

    def _check_parameters(self) -> None:
        """Raise for parameters that make no sense."""
        for name, minimum in (("n_init", 1), ("max_iter", 0)):
            check_int(getattr(self, name), name, type(self).__name__, minimum)
        check_number(self.tol, "tol", type(self).__name__)

    def _guess(self, packed: Packed, keys: Keys, own: bool) -> Any:
        """Return the model to start from, or a stack of one for each object, from one key each."""
        raise TypeError(f"{type(self).__name__} must define _guess.")

    @abstractmethod
    def _maximize(self, statistics: Statistics) -> Any:
        """Return the M-step's model, of the batch of the model that the statistics were taken under."""

    def _log_prior(self, model: Any) -> Floats:
        """Return the log prior density up to a constant, of the model's batch."""
        raise TypeError(f"{type(self).__name__} must define _log_prior.")

    # --- public

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit one network to the rows of all objects.

        Parameters
        ----------
        X : list of objects, or 2-D array of rows
        y : None
            Ignored.

        Returns
        -------
        self
        """
        self._check_parameters()
        begin_fit(self, X, y)
        resolved = self.resolve(X)
        run = resolved._best(resolved.pack(X), np.array([seed_of(self.random_state)], np.uint64), own=False)
        self.model_, self.history_ = run.models[0], run.history
        self.converged_, self.n_iter_ = bool(run.converged[0]), int(run.n_iter[0])
        warn_unconverged(run.converged, run.lost, self._limits(), "the sizes of hidden nodes")
        return self

    def fit_each(self, X: Any) -> list[Any]:
        """Return one network per object; each depends on its object alone (and the numbers of states of all)."""
        self._check_parameters()
        resolved = self.resolve(X)
        packed = resolved.pack(X)
        run = resolved._best(packed, keys_of(seed_of(self.random_state), unit_free_digests(packed)), own=True)
        warn_unconverged(run.converged, run.lost, self._limits(), "the sizes of hidden nodes")
        return run.models

    def maximize(self, statistics: Statistics) -> Any:
        """Return the model that maximises the expected log-likelihood plus log prior: the M-step.

        Statistics are summed over objects, or those under a stack of own models, which give a stack.
        """
        return self._maximize(statistics if statistics.model.shape else statistics.total())

    # --- what is to be fitted

    def _graph(self, sizes: dict[Any, int]) -> Graph:
        """Return the graph of the structure, refusing nodes that are neither hidden nor observed, or both."""
        who = type(self).__name__
        if not isinstance(self.structure, Mapping):
            raise TypeError(f"{who}: 'structure' must be a dict of node to parents. Got {self.structure!r:.80}.")
        for name in sizes:
            if name not in self.structure:
                raise ValueError(f"{who}: there is no node {name!r} in 'structure', and a size is given for it.")
        hidden = dict(self.hidden or {})
        observed = [name for name in self.structure if name not in hidden] if self.observed is None else self.observed
        graph = make_graph(self.structure, sizes, observed, who)
        for name in hidden:
            if graph.find(name, f"{who}: 'hidden'") in graph.observed:
                raise ValueError(f"{who}: node {name!r} is named in 'hidden' and in 'observed'; it can be only one.")
        left = [graph.names[v] for v in graph.hidden if graph.names[v] not in hidden]
        if left:
            raise ValueError(f"{who}: node {left[0]!r} is not observed; give its size in hidden={{{left[0]!r}: ...}}.")
        return graph

    # --- EM

    def _best(self, packed: Packed, keys: Keys, own: bool) -> Run:
        """Return the best of ``n_init`` runs of EM; complete data need one step, and no restarts."""
        limits = self._limits()
        warn_unseen(packed, own, type(self).__name__, "its law is what EM makes of the first guess")
        if self.hidden or np.isnan(packed.values).any():
            runs = self.n_init if self.hidden else 1  # restarts differ in what touches hidden nodes
            return best_of(runs, lambda restart: self._climb(packed, derive(keys, restart), own, limits), limits)
        run = self._climb(packed, keys, own, limits._replace(max_iter=1, tol=0.0))
        return run._replace(converged=np.ones_like(run.converged))

    def _climb(self, packed: Packed, keys: Keys, own: bool, limits: Limits) -> Run:
        """Run EM from one first guess."""

        def expect(model: Any, part: Packed) -> Statistics:
            statistics: Statistics = model.statistics(part, totals=not own)
            return statistics

        steps = Steps(expect, self._maximize, lambda model, part: expect(model, part).log_prob, self._log_prior)
        return climb(steps, limits, self._guess(packed, keys, own), packed, own)

    def _limits(self) -> Limits:
        return Limits(type(self).__name__, self.max_iter, self.tol, 0)
