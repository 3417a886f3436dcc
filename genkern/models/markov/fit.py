"""Base class of estimators of Markov chains: counts in closed form, EM for hidden phases and missing symbols."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.core.chains.passes import is_ambiguous
from genkern.data.objects import Alphabet, Packed, as_alphabet, pack_symbols
from genkern.models.base import Statistics
from genkern.models.estimator import with_alphabet_of
from genkern.models.fit.em import Run, Steps, expected, finished, replaced
from genkern.models.fit.em_estimator import EMEstimator
from genkern.models.fit.restarts import First, FitProblem, Restarts
from genkern.models.fit.streams import Keys
from genkern.models.markov.backoff import Laws, Smoothing, log_prior, maximize
from genkern.models.markov.base import Chain
from genkern.validation import check_int, check_number

LARGEST_TABLES = 1 << 25  # most transition probabilities of a fit
REFINEMENTS = 10  # steps after which the lower orders, towards which EM smooths, are held fixed


class ChainEstimator(EMEstimator):
    """Base class; a subclass implements ``_reference``, a uniform chain under which first statistics are computed."""

    order: int
    alphabet: Any
    pseudocount: float
    backoff: float
    missing: Any
    unknown: str | None
    smaller = "the order"

    # --- public

    def maximize(self, statistics: Statistics) -> Any:
        """Return the model that maximises the expected log-likelihood plus log prior: the M-step.

        Statistics under one model are summed over objects; those under a stack of own models give a stack. The lower
        orders of back-off are those of the same statistics.
        """
        summed = statistics if statistics.model.shape else statistics.total()
        return self._finish([maximize(summed, self._smoothing())[0]])[0]

    def pack(self, X: Any) -> Packed:
        """Encode symbols with the given or the inferred alphabet."""
        alphabet = self.alphabet if self.alphabet is not None or self._example is None else self._example.alphabet
        return pack_symbols(X, alphabet, type(self).__name__, self.missing, self.unknown)

    def resolve(self, X: Any) -> ChainEstimator:
        """Return the estimator with the alphabet of all of X."""
        return with_alphabet_of(self, X)

    # --- implemented by subclasses

    @abstractmethod
    def _reference(self, alphabet: Alphabet, packed: Packed) -> Chain:
        """Return the chain of uniform transitions, with the first phase certain."""

    def _finish(self, models: list[Any]) -> list[Any]:
        """Return the final models."""
        return models

    def _best(self, packed: Packed, keys: Keys, own: bool) -> Run:
        """Return the run of the model of all sequences, or of own ones: in closed form where all symbols are known."""
        reference = self._checked_reference(packed, packed.n_objects if own else 1)
        todo = self._needs_em(reference, packed) | (bool(self.fixed) or self.init is not None)
        if own or not todo.any():
            run = self._counted(reference, packed, own)
            if own and todo.any():
                run = replaced(run, np.flatnonzero(todo), super()._best(packed.take(todo), keys[todo], own))
        else:
            run = super()._best(packed, keys, own)
        return run._replace(models=self._finish(run.models))

    def _counted(self, reference: Chain, packed: Packed, own: bool) -> Run:
        """Return the run of one step by counts; without objectives for own models."""
        statistics, smoothing = self._counts(reference, packed, own), self._smoothing()
        model, centre = maximize(statistics, smoothing)
        if own:
            return finished(_as_stack(model).unstack())
        before = statistics.log_prob.sum() + log_prior(reference, smoothing, centre)
        log_prob = model.own_log_prob(packed) * (1.0 if packed.weights is None else packed.weights)
        after = log_prob.sum() + log_prior(model, smoothing, centre)
        return finished([model])._replace(objective=after, history=[float(before[0]), float(after[0])])

    @staticmethod
    def _counts(reference: Chain, packed: Packed, own: bool) -> Statistics:
        """Return the statistics of each sequence, or of all together, under one chain."""
        return reference.statistics(packed) if own else expected(reference, packed)

    # --- EM

    def _fixable(self) -> list[Any]:
        return [name for name in self.kind._fields if name in ("phases", "start", "transitions")]

    def _runs(self, own: bool) -> int:
        return 1 if own or self._given is not None else self.n_init  # a single sequence needs no random numbers

    def _problem(self, packed: Packed, own: bool) -> FitProblem:
        def guess(part: Packed, restarts: Restarts, each: bool) -> First:
            if self._given is not None:
                given = self._given_to(part, each)
                return First(given, maximize(expected(given, part), self._smoothing())[1])
            model, centre = self._guess(part, restarts, each)
            return First(*((model, None) if centre is None else self._refine(model, part)))

        return FitProblem(packed, lambda part, each: _ChainSteps(self._smoothing()).steps(), guess)

    def _guess(self, packed: Packed, restarts: Restarts, own: bool) -> tuple[Any, Laws | None]:
        """Return a starting model, and its lower orders."""
        reference = self._reference(as_alphabet(packed.alphabet), packed)
        model, centre = maximize(self._counts(reference, packed, own), self._smoothing())
        return _as_stack(model) if own else model, centre

    def _refine(self, model: Any, packed: Packed) -> tuple[Any, Laws | None]:
        """Return the starting model after some steps, and its lower orders."""
        centre: Laws | None = None
        for _ in range(REFINEMENTS):
            new, centre = maximize(expected(model, packed), self._smoothing())
            model = self._keep(model, new)
        return model, centre

    # --- shared

    def _smoothing(self) -> Smoothing:
        return Smoothing(float(self.pseudocount), float(self.backoff))

    def _checked_reference(self, packed: Packed, models: int) -> Chain:
        """Return the reference chain after checking the parameters and the size of the model."""
        who = type(self).__name__
        check_int(self.order, "order", who)
        for name in ("pseudocount", "backoff"):
            check_number(getattr(self, name), name, who)
        alphabet = as_alphabet(packed.alphabet)
        size = models * self._n_tables(packed) * alphabet.size ** (self.order + 1)
        if size > LARGEST_TABLES:
            raise ValueError(
                f"{who}: order {self.order} over {alphabet.size} symbols needs {size:.3g} transition probabilities in "
                f"{models} models, more than {LARGEST_TABLES}. Lower the order, or fit fewer objects at a time."
            )
        reference, example = self._reference(alphabet, packed), self._example
        if self.init is not None and (
            example is None
            or example.transitions.shape != reference.transitions.shape
            or not alphabet.same_codes(example.alphabet)
        ):
            raise ValueError(
                f"{who}: 'init' must be None, or a chain of the same form and alphabet as {reference!r}. Got "
                f"{self.init!r:.120}."
            )
        return reference

    def _n_tables(self, packed: Packed) -> int:
        """Return the number of tables of transitions."""
        return 1

    def _needs_em(self, reference: Chain, packed: Packed) -> NDArray[np.bool_]:
        """Return for each sequence whether counts alone do not give its maximum."""
        if len(reference.tables.begin) > 1:
            return np.ones(packed.n_objects, bool)
        return is_ambiguous(reference.tables, reference.symbols(packed))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # tables of integer codes only
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags


class _ChainSteps:
    """The steps of one run, with the lower orders towards which all of them smooth."""

    def __init__(self, smoothing: Smoothing):
        self.smoothing = smoothing
        self.centre: Laws | None = None

    def steps(self) -> Steps:
        """Return the E- and M-steps."""
        return Steps(
            expected,
            lambda statistics: maximize(statistics, self.smoothing, self.centre)[0],
            lambda model, part: model.own_log_prob(part),
            lambda model: log_prior(model, self.smoothing, self.centre),
            self._drop,
            self._begin,
        )

    def _begin(self, centre: Laws) -> None:
        self.centre = centre

    def _drop(self, leaving: NDArray[np.bool_]) -> None:
        if self.centre is not None:
            self.centre = Laws(self.centre.start[~leaving], self.centre.steps[~leaving], self.centre.begin)


def _as_stack(model: Any) -> Any:
    """Return a stack unchanged, and the model of a single sequence as a stack of one."""
    return model if model.shape else model.stack([model])
