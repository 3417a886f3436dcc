"""What estimators of Markov chains share: counts in closed form, EM for hidden phases and missing symbols."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from genkern.core.chains import is_ambiguous
from genkern.models.base import Statistics
from genkern.models.estimator import ModelEstimator, with_alphabet_of
from genkern.models.markov_backoff import Laws, Smoothing, log_prior, maximize
from genkern.models.markov_base import Chain
from genkern.models.markov_em import Limits, Run, run_em
from genkern.objects import Alphabet, Packed, as_alphabet, pack_symbols
from genkern.validation import begin_fit, check_int, check_number

LARGEST_TABLES = 1 << 25  # most transition probabilities of a fit
REFINEMENTS = 10  # steps after which the lower orders, towards which EM smooths, are held fixed


class ChainEstimator(ModelEstimator):
    """What estimators of chains share; a kind gives ``_reference``, a vague chain about which statistics are taken."""

    order: int
    alphabet: Any
    pseudocount: float
    backoff: float
    missing: Any
    unknown: str | None
    max_iter: int
    tol: float

    # --- public

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit one model to all sequences.

        Parameters
        ----------
        X : list of symbol sequences, or 2-D array of integer codes
        y : None
            Ignored.

        Returns
        -------
        self
        """
        begin_fit(self, X, y)
        run = self._fit(self.pack(X))
        self.model_, self.history_ = self._finish(run.models)[0], run.history
        self.converged_, self.n_iter_ = bool(run.converged[0]), int(run.n_iter[0])
        self._warn_unconverged(run.converged)
        return self

    def fit_each(self, X: Any) -> list[Any]:
        """Return one model per sequence; each depends on its sequence alone (and the alphabet of all)."""
        packed = self.pack(X)
        reference = self._checked_reference(packed, packed.n_objects)
        stack, centre = maximize(reference.statistics(packed), self._smoothing(), None)
        stack = stack if stack.shape else stack.stack([stack])  # of a single sequence
        models = stack.unstack()
        open_ends = np.flatnonzero(self._needs_em(reference, packed))
        if len(open_ends):
            part, chosen = packed.take(open_ends), stack[open_ends]
            if centre is not None:
                chosen, centre = self._refine(chosen, part)
            run = run_em(chosen, part, self._smoothing(), centre, Limits(self.max_iter, self.tol))
            for i, model in zip(open_ends, run.models):
                models[i] = model
            self._warn_unconverged(run.converged)
        return self._finish(models)

    def maximize(self, statistics: Statistics) -> Any:
        """Return the model that maximises the expected log-likelihood plus log prior: the M-step.

        Statistics under one model are summed over objects; those under a stack of own models give a stack. The lower
        orders of back-off are those of the same statistics.
        """
        summed = statistics if statistics.model.shape else statistics.total()
        return self._finish([maximize(summed, self._smoothing())[0]])[0]

    def pack(self, X: Any) -> Packed:
        """Encode symbols with the given or the inferred alphabet."""
        return pack_symbols(X, self.alphabet, type(self).__name__, self.missing, self.unknown)

    def resolve(self, X: Any) -> ChainEstimator:
        """Return the estimator with the alphabet of all of X."""
        return with_alphabet_of(self, X)

    # --- what a kind of chain gives

    @abstractmethod
    def _reference(self, alphabet: Alphabet, packed: Packed) -> Chain:
        """Return the chain of uniform transitions, with the first phase certain."""

    def _finish(self, models: list[Any]) -> list[Any]:
        """Return the models to be handed out."""
        return models

    def _fit(self, packed: Packed) -> Run:
        """Return the run of the model of all sequences: in closed form where all symbols are known."""
        reference, smoothing = self._checked_reference(packed, 1), self._smoothing()
        statistics = reference.statistics(packed, totals=True)
        model, centre = maximize(statistics, smoothing)
        if self._needs_em(reference, packed).any():
            if centre is not None:
                model, centre = self._refine(model, packed)
            return run_em(model, packed, smoothing, centre, Limits(self.max_iter, self.tol))
        before = statistics.log_prob.sum() + log_prior(reference, smoothing, centre)
        after = model.own_log_prob(packed).sum() + log_prior(model, smoothing, centre)
        history = [float(before[0]), float(after[0])]
        return Run([model], after, np.ones(1, np.int64), np.ones(1, bool), history)

    # --- what they share

    def _smoothing(self) -> Smoothing:
        return Smoothing(float(self.pseudocount), float(self.backoff))

    def _checked_reference(self, packed: Packed, models: int) -> Chain:
        """Return the reference chain after checking the parameters and the size of what is to be fitted."""
        who = type(self).__name__
        check_int(self.order, "order", who)
        check_int(self.max_iter, "max_iter", who)
        for name in ("pseudocount", "backoff", "tol"):
            check_number(getattr(self, name), name, who)
        alphabet = as_alphabet(packed.alphabet)
        size = models * self._n_tables(packed) * alphabet.size ** (self.order + 1)
        if size > LARGEST_TABLES:
            raise ValueError(
                f"{who}: order {self.order} over {alphabet.size} symbols needs {size:.3g} transition probabilities in "
                f"{models} models, more than {LARGEST_TABLES}. Lower the order, or fit fewer objects at a time."
            )
        return self._reference(alphabet, packed)

    def _n_tables(self, packed: Packed) -> int:
        """Return the number of tables of transitions."""
        return 1

    def _needs_em(self, reference: Chain, packed: Packed) -> NDArray[np.bool_]:
        """Say for each sequence whether counts alone do not give its maximum."""
        if len(reference.tables.begin) > 1:
            return np.ones(packed.n_objects, bool)
        return is_ambiguous(reference.tables, reference.symbols(packed))

    def _refine(self, model: Any, packed: Packed) -> tuple[Any, Laws | None]:
        """Return a first guess some steps on, and the lower orders by then."""
        centre: Laws | None = None
        for _ in range(REFINEMENTS):
            model, centre = maximize(model.statistics(packed, totals=not model.shape), self._smoothing())
        return model, centre

    def _warn_unconverged(self, converged: NDArray[np.bool_]) -> None:
        if converged.all() or self.tol == 0 or self.max_iter == 0:
            return  # tol=0 asks for all steps, whatever they gain
        warnings.warn(
            f"{type(self).__name__}: {(~converged).sum()} of {len(converged)} models did not converge in "
            f"{self.max_iter} steps (a step still gained more than tol={self.tol:g} per observation). Raise max_iter, "
            "raise tol, or lower the order.",
            ConvergenceWarning,
            stacklevel=3,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # tables of integer codes only
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags
