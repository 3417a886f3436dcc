"""Estimators of the three kinds of Markov chains."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from genkern.data.objects import Alphabet, Packed, as_alphabet, object_digests
from genkern.models.fit.em import expected
from genkern.models.fit.restarts import Restarts
from genkern.models.fit.streams import derive, keys_of, seed_of, uniforms
from genkern.models.fit.weights import first_counted, n_counted
from genkern.models.markov.backoff import Laws, Smoothing, maximize
from genkern.models.markov.fit import ChainEstimator
from genkern.models.markov.model import MarkovChain, PeriodicChain, PositionalChain
from genkern.validation import check_bool, check_int

GUESS = Smoothing(0.01, 1.0)  # least smoothing of starting models, which must not forbid unseen transitions


class MarkovChainEstimator(ChainEstimator):
    r"""Markov chains of order k from counts of words, one for all sequences or one for each.

    .. math:: \theta_k(s | c) = \frac{N(c, s) + \epsilon + a\, \theta_{k-1}(s | c')}{\sum_u N(c, u) + m \epsilon + a},
              \qquad \theta_{-1} = 1 / m

    where c' is the context c without its oldest symbol.

    Parameters
    ----------
    order : int, default=1
        Number k of symbols on which the next one depends.
    alphabet : str, int, sequence or Alphabet, optional
        The symbols. The default is inferred from all objects given to ``fit``.
    pseudocount : float, default=0.01
        The :math:`\epsilon` added to every count. Zero is, without back-off, plain maximum likelihood; contexts that
        were never seen are then uniform.
    backoff : float, default=0.0
        The strength a, in counts, of the chain of the next lower order, which is estimated in the same way, down to the
        uniform distribution. Contexts with fewer counts than a follow the shorter context; use it from order 2 on.
    stationary : bool, default=False
        Whether the start distribution is the stationary law of the estimated transitions, not estimated itself.
    missing : symbol, optional
        The symbol of a missing observation. Named alphabets have their own.
    unknown : {"missing", "error"}, optional
        Symbols outside the alphabet are treated as missing, with one warning, or are an error. The
        default is "missing" for an inferred alphabet and "error" for a given one.
    max_iter : int, default=1000
        Largest number of EM steps, which only sequences with missing or ambiguous symbols, or with fewer than k, need.
    tol : float, default=1e-5
        EM stops when a step gains less than this per observation, and all further steps together, extrapolated from the
        last ones, would gain less than ten times this. Zero runs all steps.
    init : MarkovChain, optional
        A chain for EM to start from; in ``fit_each`` also one for each sequence, as a list or a stack.
    fixed : tuple of str, default=()
        Parameters that EM keeps fixed at their starting values: "start" and "transitions".
    callback : callable, optional
        Called after each EM step with its number, the model (of several that are fitted together, the stack of those
        that have not converged) and the objective. If it returns True, the run ends there.
    verbose : int, default=0
        1 reports runs and their outcome, 2 every step as well.

    Attributes
    ----------
    model_ : MarkovChain
    converged_ : bool
    n_iter_ : int
        EM steps; one where all symbols are known, since the first then reaches the maximum.
    history_ : list of float
        Objective after each step, starting with that of the first guess: log-likelihood plus
        :math:`\sum \epsilon \log \theta_k - a\, \mathrm{KL}(\theta_{k-1} \| \theta_k)`. It never falls. In EM the lower
        orders are those of the first guess, held fixed.

    References
    ----------
    MacKay & Peto (1995), A hierarchical Dirichlet language model, section 3.
    Salzberg, Delcher, Kasif & White (1998), Microbial gene identification using interpolated Markov models.

    Examples
    --------
    >>> from genkern import MarkovChainEstimator
    >>> MarkovChainEstimator(order=1, pseudocount=0).fit(["abaab", "ba"]).model_.transitions.round(3)
    array([[0.333, 0.667],
           [1.   , 0.   ]])
    """

    kind = MarkovChain

    def __init__(
        self,
        order: int = 1,
        *,
        alphabet: Any = None,
        pseudocount: float = 0.01,
        backoff: float = 0.0,
        stationary: bool = False,
        missing: Any = None,
        unknown: str | None = None,
        max_iter: int = 1000,
        tol: float = 1e-5,
        init: Any = None,
        fixed: Any = (),
        callback: Any = None,
        verbose: int = 0,
    ):
        self.order = order
        self.alphabet = alphabet
        self.pseudocount = pseudocount
        self.backoff = backoff
        self.stationary = stationary
        self.missing = missing
        self.unknown = unknown
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.fixed = fixed
        self.callback = callback
        self.verbose = verbose

    def _reference(self, alphabet: Alphabet, packed: Packed) -> MarkovChain:
        check_bool(self.stationary, "stationary", "MarkovChainEstimator")
        m, k = alphabet.size, self.order
        return MarkovChain(np.full((m,) * k, 1.0 / m**k), np.full((m,) * (k + 1), 1.0 / m), alphabet)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.stationary and "start" in self.fixed:
            raise ValueError(
                "MarkovChainEstimator: stationary=True makes the start the stationary law of the transitions, and "
                "fixed=('start',) keeps that of the first guess. Leave out one of them."
            )

    def _finish(self, models: list[MarkovChain]) -> list[MarkovChain]:
        if not self.stationary:
            return models
        stack = MarkovChain.stack(models)
        return MarkovChain._restore(stack.stationary(), stack.transitions, stack.alphabet, stack.order).unstack()


class PeriodicChainEstimator(ChainEstimator):
    r"""Periodic Markov chains with a hidden start phase, by EM.

    Parameters
    ----------
    order : int, default=1
        Number k of symbols on which the next one depends.
    period : int, default=3
        Number P of phases.
    alphabet, pseudocount, backoff, missing, unknown
        As of ``MarkovChainEstimator``; pseudocounts and lower orders are those of each phase.
    n_init : int, default=1
        Restarts of ``fit`` from different first guesses; the best is kept.
    max_iter : int, default=1000
        Largest number of EM steps.
    tol : float, default=1e-5
        EM stops when a step gains less than this per observation, and all further steps together, extrapolated from the
        last ones, would gain less than ten times this. Zero runs all steps.
    init : PeriodicChain, optional
        A chain for EM to start from; in ``fit_each`` also one for each sequence, as a list or a stack.
    fixed : tuple of str, default=()
        Parameters that EM keeps fixed at their starting values: "phases", "start" and "transitions".
    callback : callable, optional
        Called after each EM step with its number, the model (of several that are fitted together, the stack of those
        that have not converged) and the objective. If it returns True, the run ends there.
    random_state : int, RandomState instance or None, default=None
        Seed of the first guesses; None is 0, so that fits are reproducible.
    verbose : int, default=0
        1 reports runs and their outcome, 2 every step as well.

    Attributes
    ----------
    model_ : PeriodicChain
    converged_ : bool
    n_iter_ : int
        EM steps of the run that was kept.
    history_ : list of float
        As of ``MarkovChainEstimator``; it never falls.

    Notes
    -----
    The first guess takes a sequence at random, long ones more often, in phase zero, and adds others, twice as many in
    each step, in the phases in which they agree best with those before. A single sequence may be taken in phase
    zero, which is the maximum of its likelihood, so ``fit_each`` needs no random numbers.

    Examples
    --------
    >>> from genkern import PeriodicChainEstimator
    >>> X = ["abbabbabb", "babbabbab", "bbabbabba"]
    >>> model = PeriodicChainEstimator(order=0, period=3, alphabet="ab").fit(X).model_
    >>> sorted(model.transitions[:, 0].round(2).tolist())
    [0.0, 0.0, 1.0]
    """

    kind = PeriodicChain

    def __init__(
        self,
        order: int = 1,
        period: int = 3,
        *,
        alphabet: Any = None,
        pseudocount: float = 0.01,
        backoff: float = 0.0,
        missing: Any = None,
        unknown: str | None = None,
        n_init: int = 1,
        max_iter: int = 1000,
        tol: float = 1e-5,
        init: Any = None,
        fixed: Any = (),
        callback: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.order = order
        self.period = period
        self.alphabet = alphabet
        self.pseudocount = pseudocount
        self.backoff = backoff
        self.missing = missing
        self.unknown = unknown
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.fixed = fixed
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose

    def _n_tables(self, packed: Packed) -> int:
        return check_int(self.period, "period", "PeriodicChainEstimator", 1)

    def _reference(self, alphabet: Alphabet, packed: Packed) -> PeriodicChain:
        m, k, P = alphabet.size, self.order, self.period
        start, steps = np.full((P, *(m,) * k), 1.0 / m**k), np.full((P, *(m,) * (k + 1)), 1.0 / m)
        return PeriodicChain(np.eye(P)[0], start, steps, alphabet)

    def _guess(self, packed: Packed, restarts: Restarts, own: bool) -> tuple[Any, Laws | None]:
        """Return a first guess from sequences in the order in which they are aligned."""
        if own:
            return super()._guess(packed, restarts, own)
        keys = keys_of(seed_of(self.random_state), object_digests(packed))
        chances = uniforms(derive(keys, int(restarts.numbers[0])), np.zeros(1, np.int64))
        packed = packed.take(np.argsort(-np.log1p(-chances) / packed.lengths))
        model: Any = self._reference(as_alphabet(packed.alphabet), packed)
        careful = Smoothing(*np.maximum(self._smoothing(), GUESS))
        count = 1.0 if packed.weights is None else min(1.0, packed.weights.max())
        while count < n_counted(packed):
            model, _ = maximize(expected(model, first_counted(packed, count)), careful)
            fields = {name: getattr(model, name) for name in model._fields}
            fields["phases"] = np.full(self.period, 1.0 / self.period)  # new sequences may begin in any phase
            model, count = PeriodicChain._restore(*fields.values()), 2 * count
        return maximize(expected(model, packed), self._smoothing())


class PositionalChainEstimator(ChainEstimator):
    r"""Inhomogeneous Markov chains, each position with its own transitions, from counts.

    Parameters
    ----------
    order : int, default=1
        Number k of symbols on which the next one depends.
    length : int, optional
        Number L of positions, above k; the default is the length of the longest sequence given to ``fit``.
    alphabet, pseudocount, backoff, missing, unknown, max_iter, tol, init, fixed, callback, verbose
        As of ``MarkovChainEstimator``; pseudocounts and lower orders are those of each position.

    Attributes
    ----------
    model_ : PositionalChain
    converged_, n_iter_, history_
        As of ``MarkovChainEstimator``.

    Examples
    --------
    >>> from genkern import PositionalChainEstimator
    >>> PositionalChainEstimator(order=0, pseudocount=0).fit(["aba", "abb", "bb"]).model_.transitions.round(3)
    array([[0.667, 0.333],
           [0.   , 1.   ],
           [0.5  , 0.5  ]])
    """

    kind = PositionalChain

    def __init__(
        self,
        order: int = 1,
        length: int | None = None,
        *,
        alphabet: Any = None,
        pseudocount: float = 0.01,
        backoff: float = 0.0,
        missing: Any = None,
        unknown: str | None = None,
        max_iter: int = 1000,
        tol: float = 1e-5,
        init: Any = None,
        fixed: Any = (),
        callback: Any = None,
        verbose: int = 0,
    ):
        self.order = order
        self.length = length
        self.alphabet = alphabet
        self.pseudocount = pseudocount
        self.backoff = backoff
        self.missing = missing
        self.unknown = unknown
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.fixed = fixed
        self.callback = callback
        self.verbose = verbose

    def resolve(self, X: Any) -> ChainEstimator:
        """Return the estimator with the alphabet and the length of all of X."""
        return clone(super().resolve(X)).set_params(length=self._length(self.pack(X)))

    def _length(self, packed: Packed) -> int:
        """Return the number of positions."""
        longest = int(packed.lengths.max())
        length = longest if self.length is None else self.length
        return check_int(length, "length", "PositionalChainEstimator (or the longest sequence)", self.order + 1)

    def _n_tables(self, packed: Packed) -> int:
        return self._length(packed) - self.order

    def _reference(self, alphabet: Alphabet, packed: Packed) -> PositionalChain:
        m, k = alphabet.size, self.order
        steps = np.full((self._n_tables(packed), *(m,) * (k + 1)), 1.0 / m)
        return PositionalChain(np.full((m,) * k, 1.0 / m**k), steps, alphabet)
