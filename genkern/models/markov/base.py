"""Base class of all observed Markov chains: likelihood, derivatives, information, parameters, samples."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.core.chains import passes as core
from genkern.data.objects import Alphabet, Packed, as_alphabet, pack_symbols
from genkern.models import simplex
from genkern.models.base import COORDINATES, Model, Statistics
from genkern.models.hmm.model import HMM
from genkern.models.information import InformationBlocks
from genkern.models.markov.positions import chain_statistics
from genkern.models.markov.sample import expected_visits, sample_codes
from genkern.models.markov.to_hmm import chain_to_hmm
from genkern.models.value import rebatch
from genkern.validation import Floats, check_array, check_int, check_option, check_probabilities

LARGEST_STATISTICS = 1 << 27  # most numbers of the statistics of many objects


class Chain(Model):
    """A Markov chain over symbols, in the form of ``core.chains``: start phases, start words, tables of transitions.

    A subclass defines how many axes of ``start`` and ``transitions`` come before the symbols', and the first table of
    each start phase.
    """

    _phase_axes: ClassVar[int] = 0  # of start
    _table_axes: ClassVar[int] = 0  # of transitions
    _by_position: ClassVar[bool] = False  # whether each position has a table of its own
    start: Floats
    transitions: Floats
    alphabet: Alphabet
    order: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack."""
        return self.transitions.shape[: self.transitions.ndim - self._table_axes - self.order - 1]

    @property
    def tables(self) -> core.Tables:
        """The chain as arrays with a leading axis of models."""
        m, contexts, models = self.alphabet.size, self.alphabet.size**self.order, math.prod(self.shape)
        start = self.start.reshape(models, -1, contexts)
        steps = self.transitions.reshape(models, -1, contexts, m)
        return core.as_tables(self._phases(models), start, steps, self._begin(), self.order)

    def _phases(self, models: int) -> Floats:
        """Return the distribution (models, S) of the start phase: one phase by default."""
        return np.ones((models, 1))

    def _begin(self) -> NDArray[np.int64]:
        """Return the table (S,) of the first step, from each start phase."""
        return np.zeros(1, np.int64)

    def _with_tables(self, phases: Floats, start: Floats, steps: Floats, batch: tuple[int, ...]) -> Self:
        """Return a chain of this kind, or a stack of another batch, with other numbers in the form of ``tables``."""
        fields = {name: getattr(self, name) for name in self._fields}
        for name, value in (("phases", phases), ("start", start), ("transitions", steps)):
            if name in fields:
                fields[name] = value.reshape(batch + fields[name].shape[len(self.shape) :])
        return self._restore(*fields.values())

    # --- likelihood and the E-step

    def pack(self, X: Any) -> Packed:
        """Encode raw sequences for this model."""
        return pack_symbols(X, self.alphabet, type(self).__name__)

    def symbols(self, packed: Packed) -> core.Symbols:
        """Return packed sequences in the form of ``core.chains``."""
        extras = [members for _, members in self.alphabet.extra_codes]
        return core.as_symbols(packed.values, packed.offsets, self.alphabet.size, extras)

    def log_prob(self, X: Any) -> Floats:
        """Return the log-likelihood of each sequence, shape (n_objects,) + batch; -inf where it is impossible."""
        packed = self.pack(X)
        if self.shape:
            columns = [self[index].log_prob(packed) for index in np.ndindex(self.shape)]
            return np.stack(columns, axis=-1).reshape((-1, *self.shape))
        return self.own_log_prob(packed)

    def own_log_prob(self, packed: Packed) -> Floats:
        """Return the log-likelihood (n_objects,) under one model, or of each object under its own of a stack."""
        return core.sum_phases(self._joint(packed))

    def _joint(self, packed: Packed) -> Floats:
        """Return log p(x, start phase) of each sequence, (n_objects, S)."""
        tables = self.tables
        with np.errstate(divide="ignore"):
            return np.log(tables.phases) + core.log_prob(tables, self.symbols(packed))

    def statistics(self, X: Any, totals: bool = False) -> Statistics:
        """Return posterior expected statistics per object, or summed over objects (``totals``).

        Blocks are the raw derivatives of the fields of probabilities, each of shape (G,) + the field's: ``start`` (of
        an order above zero), ``transitions`` and, if the chain has a hidden phase, ``phases``. They are counts
        divided by probabilities. A stack of batch (n_objects,) treats object i under its own model i.
        """
        packed, who = self.pack(X), type(self).__name__
        own = self.shape == (packed.n_objects,)
        if self.shape and (totals or not own):
            raise ValueError(
                f"{who}.statistics needs one model, or one per object and no totals. Got a stack of {self.shape} for "
                f"{packed.n_objects} objects."
            )
        size = sum(rows.size for rows, _ in self._rows().values()) * (1 if totals or self.shape else packed.n_objects)
        if size > LARGEST_STATISTICS:
            raise ValueError(
                f"{who}.statistics: {packed.n_objects} objects of order {self.order} over {self.alphabet.size} symbols "
                f"need {size:.3g} numbers. Take fewer objects at a time, totals=True, or a lower order."
            )
        raw = core.gradients(self.tables, self.symbols(packed), totals)
        self._refuse_impossible(raw.log_prob, packed)
        blocks = {"phases": raw.phases, "start": raw.start, "transitions": raw.steps}
        shaped = {
            name: blocks[name].reshape(-1, *getattr(self, name).shape[len(self.shape) :]) for name in self._rows()
        }
        return Statistics(self, raw.log_prob, packed.lengths, shaped)

    def gradient(self, statistics: Statistics, coordinates: str = "softmax") -> Floats:
        """Return derivatives (G, p) of the log-likelihood from the statistics of one model."""
        parts = []
        for name, (rows, _) in self._rows().items():
            raw = statistics[name].reshape(-1, *rows.shape)
            parts.append(simplex.gradient(raw, rows, coordinates).reshape(len(raw), -1))
        return np.concatenate(parts, axis=1)

    def information(self, lengths: ArrayLike, coordinates: str = "softmax") -> InformationBlocks:
        """Return the complete-data Fisher information, averaged over sequence lengths, as pairs (index, block).

        One block per distribution, weighted by the expected number of draws from it. The phase and, for sequences
        shorter than the order, their continuation count as observed; otherwise it is exact.
        """
        self._require_single("information")
        visits = expected_visits(self.tables, np.asarray(lengths))
        draws = {"phases": np.ones(1), "start": self.tables.phases[0], "transitions": visits.ravel()}
        pairs: InformationBlocks = []
        at = 0
        for name, (rows, _) in self._rows().items():
            for block in simplex.information(rows, draws[name], coordinates):
                pairs.append((np.arange(at, at + len(block)), block))
                at += len(block)
        return pairs

    # --- parameters

    def _rows(self) -> dict[str, tuple[Floats, int]]:
        """Return for each field with parameters its distributions as rows, and how many axes come before symbols'."""
        fields = [("phases", 1, 1), ("start", self._phase_axes, self.order), ("transitions", self._table_axes, 1)]
        found = {}
        for name, before, last in fields:
            if name in self._fields and last:  # the empty word of order zero is no parameter
                value = getattr(self, name)
                found[name] = (value.reshape(-1, math.prod(value.shape[value.ndim - last :])), before)
        return found

    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return the parameter vector (p,): phases, start and transitions, each flattened row-major."""
        self._require_single("parameters")
        check_option(coordinates, COORDINATES, "coordinates", f"{type(self).__name__}.parameters")
        return np.concatenate([simplex.coordinates_of(rows, coordinates).ravel() for rows, _ in self._rows().values()])

    def with_parameters(self, vector: ArrayLike, coordinates: str = "softmax") -> Self:
        """Return the model at a parameter vector; raw coordinates are not normalised."""
        self._require_single("with_parameters")
        who = type(self).__name__
        check_option(coordinates, COORDINATES, "coordinates", f"{who}.with_parameters")
        given = np.asarray(vector, dtype=np.float64)
        hidden = np.isneginf(given)  # the softmax coordinate of a zero probability
        rows = {name: value for name, (value, _) in self._rows().items()}
        size = sum(value.size for value in rows.values())
        values = np.where(hidden, -np.inf, check_array(np.where(hidden, 0.0, given), "vector", who, shape=(size,)))
        fields, at = {name: getattr(self, name) for name in self._fields}, 0
        for name, value in rows.items():
            part = values[at : at + value.size].reshape(value.shape)
            fields[name] = simplex.from_coordinates(part, coordinates).reshape(getattr(self, name).shape)
            at += value.size
        return self._restore(*fields.values())

    @property
    def parameter_names(self) -> list[str]:
        """Names such as ``start[A,C]``, ``transitions[A,C,G]`` and, with a phase, ``transitions[2,A,C,G]``."""
        self._require_single("parameter_names")
        letters, names = list(map(str, self.alphabet.symbols)), []
        for name, (_, before) in self._rows().items():
            labels = [
                list(map(str, range(size))) if axis < before else letters
                for axis, size in enumerate(getattr(self, name).shape)
            ]
            names += [f"{name}[{','.join(index)}]" for index in itertools.product(*labels)]
        return names

    def position_statistics(self, packed: Packed) -> Iterator[Statistics]:
        """Yield the statistics of the positions of one sequence."""
        return chain_statistics(self, packed)

    # --- sampling and conversion

    def sample(self, n: int, *, length: int | None = None, rng: Any = None) -> list[Any]:
        """Return n sequences of the given length."""
        self._require_single("sample")
        who, generator = f"{type(self).__name__}.sample", np.random.default_rng(rng)
        if length is None:
            raise ValueError(f"{who}: the model is one of sequences of any length; give length=, in symbols.")
        check_int(n, "n", who, 0)
        check_int(length, "length", who, 1)
        return [self.alphabet.decode(codes) for codes in sample_codes(self.tables, n, length, generator)]

    def to_hmm(self) -> HMM:
        """Return the hidden Markov model with the same distribution, whose states are the last symbols seen.

        States are all words of one to k symbols (times the phases or positions): a word of fewer than k symbols is the
        beginning of a sequence, its successors prolong it; a state emits its last symbol. An order of zero has one
        state per phase or position, which emits the symbols. Of a chain by positions, which has no longer sequences,
        the distribution is the same up to its length.
        """
        self._require_single("to_hmm")
        return chain_to_hmm(self.tables, self.alphabet, type(self).__name__)

    def as_hmms(self, length: int, who: str) -> HMM:
        """Return a stack as one of hidden Markov models of sequences of so many symbols; ``who`` asks."""
        flat = [member.to_hmm() for member in rebatch(self, (-1,)).unstack()]
        return rebatch(HMM.stack(flat), self.shape)

    # --- refusals

    def _refuse_impossible(self, log_prob: Floats, packed: Packed) -> None:
        """Raise for the first object of probability zero, naming the position at which it became impossible."""
        dead = np.flatnonzero(np.isneginf(log_prob))
        if len(dead) == 0:
            return
        i = int(dead[0])
        model, codes = self[i] if self.shape else self, packed.take([i]).values
        low, high = 0, len(codes)  # prefixes are possible up to ``low`` symbols, impossible from ``high`` on
        while high - low > 1:
            middle = (low + high) // 2
            part = Packed(codes[:middle], np.array([0, middle]), packed.alphabet)
            low, high = (low, middle) if np.isneginf(model.own_log_prob(part)[0]) else (middle, high)
        raise ValueError(
            f"{type(self).__name__}: object {i} has probability zero under the model at position {high - 1} (symbol "
            f"{self.alphabet.decode(codes[high - 1 : high])[0]!r}); {len(dead)} of {len(log_prob)} objects are "
            "impossible, so posteriors and derivatives are undefined. Fit with a pseudocount > 0, or smooth the model."
        )


def check_chain(
    start: ArrayLike | None, transitions: ArrayLike, alphabet: Any, who: str, axes: tuple[int, int], order: int | None
) -> tuple[Floats, Floats, Alphabet, int]:
    """Return checked start, transitions, alphabet and order of a chain or stack.

    ``axes`` are the numbers of axes before the symbols' in start and transitions of one chain. Without an order there
    is no batch, and all axes count. Without a start it is uniform.
    """
    steps = check_probabilities(transitions, "transitions", who)
    k = steps.ndim - axes[1] - 1 if order is None else check_int(order, "order", who)
    batch = steps.ndim - axes[1] - 1 - k
    m = steps.shape[-1]
    if batch < 0 or k < 0 or steps.shape[batch + axes[1] :] != (m,) * (k + 1) or 0 in steps.shape:
        before = "one axis of tables, " if axes[1] else ""
        raise ValueError(
            f"{who}: 'transitions' must have {before}one axis of symbols for each of the k symbols of a context and "
            f"one for the next symbol, all of equal size. Got shape {steps.shape} for order {max(k, 0)}."
        )
    letters = as_alphabet(m if alphabet is None else alphabet)
    if letters.size != m:
        raise ValueError(
            f"{who}: 'transitions' must end in an axis of {letters.size} symbols, one per letter of the alphabet. Got "
            f"shape {steps.shape}."
        )
    shape = (*steps.shape[: batch + axes[0]], *(m,) * k)
    first = np.full(shape, 1.0 / m**k) if start is None else check_array(start, "start", who, shape=shape)
    joint = check_probabilities(first.reshape(*shape[: batch + axes[0]], -1), "start", who)
    return joint.reshape(shape), steps, letters, k
