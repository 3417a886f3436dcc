"""Observed Markov chains over symbols: homogeneous, periodic, and by positions. Estimators: ``markov.estimator``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.data.objects import Packed
from genkern.models.base import Statistics
from genkern.models.hmm.model import HMM
from genkern.models.markov.base import Chain, check_chain
from genkern.models.markov.positions import periodic_statistics, table_gradients, table_log_probs
from genkern.models.markov.stationary import stationary_law
from genkern.validation import Floats, check_int, check_probabilities


class MarkovChain(Chain):
    r"""Markov chain of order k over symbols.

    .. math:: p(x) = s(x_0 \dots x_{k-1}) \prod_{t \ge k} \theta(x_t | x_{t-k} \dots x_{t-1})

    Parameters
    ----------
    start : array-like of shape (m,) * k, or None
        Joint distribution of the first k symbols: a number, one, for k = 0. A sequence of fewer symbols has
        their marginal distribution. None is the stationary law of the transitions, refused where it is not unique.
    transitions : array-like of shape (m,) * (k + 1)
        ``transitions[a, ..., z, s]`` is the probability of symbol s after the symbols a, ..., z. Order 0 has the
        probabilities (m,) of independent symbols.
    alphabet : Alphabet, str, int or sequence of symbols, optional
        What the symbols are: ``"dna"``, ``"rna"``, ``"protein"`` or an explicit list. The default is 0, ..., m - 1.
        Ambiguous and missing symbols are summed out exactly.
    order : int, optional
        The order k. It need only be given for a stack of chains, whose start and transitions have further axes in
        front: the default counts all axes.

    Notes
    -----
    Parameters are ordered start (none for k = 0), transitions, each flattened row-major.

    Examples
    --------
    >>> from genkern import MarkovChain
    >>> chain = MarkovChain([0.5, 0.5], [[0.9, 0.1], [0.4, 0.6]], alphabet="ab")
    >>> chain.log_prob(["aab", "b"]).round(4)
    array([-3.1011, -0.6931])
    >>> chain.stationary()
    array([0.8, 0.2])
    >>> chain.to_hmm().log_prob(["aab"]).round(4)
    array([-3.1011])
    """

    _fields = ("start", "transitions", "alphabet", "order")

    def __init__(self, start: ArrayLike | None, transitions: ArrayLike, alphabet: Any = None, order: int | None = None):
        first, steps, letters, k = check_chain(start, transitions, alphabet, "MarkovChain", (0, 0), order)
        if start is None:
            first = _stationary(steps, k)
        self._freeze(start=first, transitions=steps, alphabet=letters, order=k)

    def stationary(self) -> Floats:
        """Return the stationary law of k successive symbols, shape batch + (m,) * k; raise if it is not unique."""
        return _stationary(self.transitions, self.order)


class PeriodicChain(Chain):
    r"""Markov chain of order k whose transitions repeat with a period, from a hidden phase on.

    .. math:: p(x) = \sum_\phi \pi_\phi\, s_\phi(x_0 \dots x_{k-1})
              \prod_{t \ge k} \theta_{(\phi + t) \bmod P}(x_t | x_{t-k} \dots x_{t-1})

    Coding DNA is of period three: the phase is the position in the codon, and that of the first symbol is unknown.

    Parameters
    ----------
    phases : array-like of shape batch + (P,)
        Distribution of the phase of the first position.
    start : array-like of shape batch + (P,) + (m,) * k
        Joint distribution of the first k symbols, given that phase: P ones for k = 0.
    transitions : array-like of shape batch + (P,) + (m,) * (k + 1)
        ``transitions[p]`` is the table of positions of phase p.
    alphabet : Alphabet, str, int or sequence of symbols, optional
        As of ``MarkovChain``.

    Notes
    -----
    Parameters are ordered phases, start (none for k = 0), transitions, each flattened row-major. Numbering the phases
    from another one on gives the same distribution.

    References
    ----------
    Borodovsky & McIninch (1993), GENMARK: parallel gene recognition for both DNA strands (three-periodic chains).

    Examples
    --------
    >>> from genkern import PeriodicChain
    >>> chain = PeriodicChain([0.5, 0.5], [1, 1], [[0.9, 0.1], [0.2, 0.8]], alphabet="ab")
    >>> chain.posterior(["abab"])[0].round(3)
    array([[0.999, 0.001],
           [0.001, 0.999],
           [0.999, 0.001],
           [0.001, 0.999]])
    """

    _fields = ("phases", "start", "transitions", "alphabet")
    _phase_axes = _table_axes = 1
    phases: Floats

    def __init__(self, phases: ArrayLike, start: ArrayLike, transitions: ArrayLike, alphabet: Any = None):
        who = "PeriodicChain"
        law = check_probabilities(phases, "phases", who)
        order = np.ndim(transitions) - law.ndim - 1
        first, steps, letters, _ = check_chain(start, transitions, alphabet, who, (1, 1), max(order, 0))
        if steps.shape[: law.ndim] != law.shape:
            raise ValueError(
                f"{who}: 'transitions' must begin with the axes {law.shape} of 'phases'. Got shape {steps.shape}."
            )
        self._freeze(phases=law, start=first, transitions=steps, alphabet=letters)

    @property
    def order(self) -> int:  # type: ignore[override]
        """The order k."""
        return self.transitions.ndim - self.phases.ndim - 1

    @property
    def period(self) -> int:
        """The period P."""
        return self.phases.shape[-1]

    def _phases(self, models: int) -> Floats:
        return self.phases.reshape(models, -1)

    def _begin(self) -> NDArray[np.int64]:
        return (np.arange(self.period) + self.order) % self.period

    def posterior(self, X: Any) -> list[Floats]:
        """Return the distribution of the phase of every position given the sequence, (T, P) for each object."""
        self._require_single("posterior")
        packed = self.pack(X)
        joint = self._joint(packed)
        self._refuse_impossible(joint.max(axis=1), packed)
        share = np.exp(joint - joint.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        # Position t has phase p if the first one has p - t.
        turns = (np.arange(self.period) - np.arange(packed.lengths.max())[:, None]) % self.period
        return [row[turns[:length]] for row, length in zip(share, packed.lengths)]

    @property
    def state_sizes(self) -> tuple[int, ...]:
        """The number of phases, which are the hidden states of positions."""
        return (self.period,)

    def position_statistics(self, packed: Packed) -> Iterator[Statistics]:
        """Yield the statistics of the positions of one sequence; the distribution of the start phase has none."""
        return periodic_statistics(self, packed)


class PositionalChain(Chain):
    r"""Inhomogeneous Markov chain of order k, for sequences in which every position has its own transitions.

    .. math:: p(x) = s(x_0 \dots x_{k-1}) \prod_{t = k}^{T - 1} \theta_t(x_t | x_{t-k} \dots x_{t-1}), \qquad T \le L

    For aligned windows such as splice sites (order 0 is a position weight matrix, order 1 a weight array). A sequence
    of fewer than L symbols is the beginning of one; a longer one is refused.

    Parameters
    ----------
    start : array-like of shape (m,) * k
        Joint distribution of the first k symbols: a number, one, for k = 0.
    transitions : array-like of shape (L - k,) + (m,) * (k + 1)
        ``transitions[t - k]`` is the table of position t.
    alphabet : Alphabet, str, int or sequence of symbols, optional
        As of ``MarkovChain``.
    order : int, optional
        The order k, which need only be given for a stack, as of ``MarkovChain``.

    Notes
    -----
    Parameters are ordered start (none for k = 0), transitions, each flattened row-major.

    References
    ----------
    Zhang & Marr (1993), A weight array method for splicing signal analysis.

    Examples
    --------
    >>> from genkern import PositionalChain
    >>> chain = PositionalChain(1, [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]], alphabet="ab")
    >>> chain.log_prob(["aba", "ab"]).round(4)
    array([-1.0217, -0.3285])
    """

    _fields = ("start", "transitions", "alphabet", "order")
    _table_axes = 1
    _by_position = True

    def __init__(self, start: ArrayLike, transitions: ArrayLike, alphabet: Any = None, order: int | None = None):
        first, steps, letters, k = check_chain(start, transitions, alphabet, "PositionalChain", (0, 1), order)
        self._freeze(start=first, transitions=steps, alphabet=letters, order=k)

    @property
    def length(self) -> int:
        """The number L of positions."""
        return self.transitions.shape[len(self.shape)] + self.order

    def position_log_probs(self, packed: Packed) -> Floats:
        """Return the log-probability of each symbol of one sequence given those before, (T,)."""
        return table_log_probs(self, packed)

    def position_gradients(self, packed: Packed, coordinates: str = "softmax") -> Iterator[tuple[int, Floats]]:
        """Yield the derivatives of the positions of one sequence, by the tables that they read."""
        return table_gradients(self, packed, coordinates)

    def pack(self, X: Any) -> Packed:
        """Encode raw sequences of at most L symbols."""
        packed = super().pack(X)
        longer = np.flatnonzero(packed.lengths > self.length)
        if len(longer):
            raise ValueError(
                f"PositionalChain: object {longer[0]} has {packed.lengths[longer[0]]} symbols, the model "
                f"{self.length} positions. Cut the sequences, or fit with length={packed.lengths.max()}."
            )
        return packed

    def sample(self, n: int, *, length: int | None = None, rng: Any = None) -> list[Any]:
        """Return n sequences of the given length, at most L; the default is L."""
        wanted = self.length if length is None else check_int(length, "length", "PositionalChain.sample", 1)
        if wanted > self.length:
            raise ValueError(f"PositionalChain.sample: the model has {self.length} positions. Got length={wanted}.")
        return super().sample(n, length=wanted, rng=rng)

    def as_hmms(self, length: int, who: str) -> HMM:
        """Return a stack as one of hidden Markov models, refusing more symbols than there are positions."""
        if length > self.length:
            raise ValueError(f"{who}: PositionalChain has {self.length} positions. Got length={length}.")
        return super().as_hmms(length, who)


def _stationary(transitions: Floats, order: int) -> Floats:
    """Return the stationary law, shape batch + (m,) * order, of chains with transitions batch + (m,) * (order + 1)."""
    m = transitions.shape[-1]
    law = stationary_law(transitions.reshape(-1, m**order, m), "MarkovChain")
    return law.reshape(transitions.shape[:-1])
