"""What estimators of latent models of series share: EM for one model of all series, or for one of each."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from genkern.models.em import Limits, Run, warn_unconverged
from genkern.models.estimator import ModelEstimator
from genkern.models.streams import Keys, keys_of, seed_of, unit_free_digests
from genkern.objects import Packed
from genkern.validation import begin_fit


class EMEstimator(ModelEstimator):
    """Estimator of a model of series by EM.

    A model gives ``pack``, ``_check_parameters`` and ``_best``, and the parameters ``max_iter``, ``tol``,
    ``random_state`` and ``verbose``.
    """

    max_iter: int
    tol: float
    random_state: Any
    verbose: int

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise for parameters that make no sense."""

    @abstractmethod
    def _best(self, packed: Packed, keys: Keys, own: bool) -> Run:
        """Return the best run of EM, for one model of all series or for own ones, with a random key for each model."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit one model to all series.

        Parameters
        ----------
        X : list of series, or 2-D array of univariate series
        y : None
            Ignored.

        Returns
        -------
        self
        """
        self._check_parameters()
        begin_fit(self, X, y)
        run = self._best(self.pack(X), np.array([seed_of(self.random_state)], np.uint64), own=False)
        self.model_, self.history_ = run.models[0], run.history
        self.converged_, self.n_iter_ = bool(run.converged[0]), int(run.n_iter[0])
        warn_unconverged(run.converged, run.lost, self._limits(), "n_states")
        return self

    def fit_each(self, X: Any) -> list[Any]:
        """Return one model per series; each depends on its series alone."""
        self._check_parameters()
        packed = self.pack(X)
        run = self._best(packed, keys_of(seed_of(self.random_state), unit_free_digests(packed)), own=True)
        warn_unconverged(run.converged, run.lost, self._limits(), "n_states")
        return run.models

    def resolve(self, X: Any) -> EMEstimator:
        """Return the estimator itself: numbers need no alphabet."""
        return self

    def _limits(self) -> Limits:
        return Limits(type(self).__name__, self.max_iter, self.tol, self.verbose)
