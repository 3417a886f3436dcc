"""Paths of sequences through the columns of a profile: the best ones, their posteriors, and positions one by one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.profile import logs as core_logs
from genkern.core.profile import passes as core
from genkern.core.profile.traceback import best_path
from genkern.core.profile.types import CC, JJ, NN, Derivatives, Ints
from genkern.data.objects import Alphabet, Packed
from genkern.models.base import Model, Statistics
from genkern.models.profile.sample import draw_paths, emit
from genkern.models.profile.weights import blocks_of
from genkern.validation import Floats, check_int

CHUNK = 64  # positions whose derivatives are held at a time


class Passage(NamedTuple):
    """One passage of a sequence through the columns: its symbols ``start`` to ``end`` - 1, aligned.

    ``text`` has, for each column, the symbol in it or "-" where it is deleted, and inserted symbols in lower case
    between (the format A2M). Columns before a local entry and after a local exit are "-" as well.
    """

    start: int
    end: int
    text: str


def as_sequences(packed: Packed) -> core.Sequences:
    """Return packed sequences in the form of ``core.profile``."""
    return core.Sequences(packed.values.astype(np.int64), packed.offsets)


class ProfilePaths(Model):
    """What is known of the path of a sequence through the columns."""

    alphabet: Alphabet
    match: Floats
    insert: Floats
    null: Floats

    @abstractmethod
    def weights(self) -> core.Profile:
        """Return one model in the form of ``core.profile``."""

    def _logs(self) -> core.Profile:
        self._require_single("this")
        return self._once("logs", lambda: core_logs.logarithms(self.weights()))

    def _each(self, X: Any, what: str) -> Iterator[tuple[Packed, int, Ints]]:
        """Yield objects, all together and one by one, as codes."""
        self._require_single(what)
        packed = self.pack(X)
        for i, codes in enumerate(np.split(packed.values.astype(np.int64), packed.offsets[1:-1])):
            yield packed, i, codes

    def posterior(self, X: Any) -> list[Floats]:
        """Return posteriors of the states that emit, (T, 2 K + 4) per object: M1, ..., MK, I0, ..., IK, N, J and C."""
        found = []
        for packed, i, codes in self._each(X, "posterior"):
            log_prob, steps = core_logs.steps_of(self._logs(), codes)
            self._refuse_impossible(np.array([log_prob]), np.array([i]), packed)
            weights, K = self.weights(), len(self.match)
            emitted, half = steps.emissions * weights.table[codes], weights.columns.shape[1]
            flanks = steps.around[1:, [NN, JJ, CC]] * weights.around[0, [NN, JJ, CC]]
            found.append(np.hstack([emitted[:, 1 : K + 1], emitted[:, half : half + K + 1], flanks]))
        return found

    def viterbi(self, X: Any) -> list[list[str]]:
        """Return the most probable path of each object: the names of its states in order, silent ones (D) as well.

        B and E, which begin and end a passage, are left out; all others but those called D emit one symbol each. Ties
        go to match states.
        """
        return [[name for name in path if name[0] not in "BE"] for _, path in self._best(X, "viterbi")]

    def viterbi_log_prob(self, X: Any) -> Floats:
        r"""Return :math:`\max_q \log p(x, q)`, (n_objects,): of the path of ``viterbi``, -inf where there is none."""
        logs = self._logs()
        return np.array([core_logs.forward(logs, codes, True)[1] for _, _, codes in self._each(X, "viterbi_log_prob")])

    def align(self, X: Any) -> list[list[Passage]]:
        """Return the passages of the most probable path of each object, aligned to the columns.

        Examples
        --------
        >>> from genkern import ProfileHMM
        >>> model = ProfileHMM([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], alphabet="abc")
        >>> model.align(["cabc", "abbc"])[0]
        [Passage(start=1, end=4, text='ABC')]
        """
        if not self.alphabet._is_text:
            raise ValueError(f"ProfileHMM.align: needs symbols that are single characters. Got {self.alphabet!r}.")
        K = len(self.match)
        return [passages(path, str(self.alphabet.decode(codes)), K) for codes, path in self._best(X, "align")]

    def _best(self, X: Any, what: str) -> Iterator[tuple[Ints, list[str]]]:
        """Yield codes and the best path of each object, from its first state after N to its last."""
        for packed, i, codes in self._each(X, what):
            messages, log_prob = core_logs.forward(self._logs(), codes, True)
            self._refuse_impossible(np.array([log_prob]), np.array([i]), packed)
            yield codes, best_path(self._logs(), codes, messages)

    def position_statistics(self, packed: Packed) -> Iterator[Statistics]:
        """Yield the statistics of the positions of one sequence.

        A transition into a state that emits belongs to its position, silent ones to the position before; those before
        the first to the first.
        """
        codes, weights = packed.values.astype(np.int64), self.weights()
        _, steps = core_logs.steps_of(self._logs(), codes)
        log_prob = self.position_log_probs(packed)
        steps.columns[1] += steps.columns[0]
        steps.around[1] += steps.around[0]
        for low in range(0, len(codes), CHUNK):
            own = codes[low : low + CHUNK]
            table = np.zeros((len(own), *weights.table.shape))
            table[np.arange(len(own)), own] = steps.emissions[low : low + CHUNK]
            rows = slice(low + 1, low + 1 + len(own))
            raw = Derivatives(log_prob[low : low + CHUNK], table, steps.columns[rows], steps.around[rows])
            yield Statistics(self, raw.log_prob, np.ones(len(own), np.int64), blocks_of(self, raw))  # type: ignore[arg-type]

    def position_log_probs(self, packed: Packed) -> Floats:
        r"""Return :math:`\log p(x_t | x_0 \dots x_{t-1})` of the positions of one object; the last has the end."""
        codes = packed.values.astype(np.int64)
        messages, log_prob = core_logs.forward(self._logs(), codes)
        known = np.append(core_logs.emitted(self._logs(), codes, messages)[:-1], log_prob)
        return np.diff(known, prepend=0.0)

    def sample(self, n: int, *, length: int | None = None, rng: Any = None) -> list[Any]:
        """Return n sequences, of random lengths, or conditionally on the given length.

        Empty sequences, which some models allow, are drawn again.
        """
        return [x for x, _ in self.simulate(n, length=length, rng=rng)]

    def simulate(self, n: int, *, length: int | None = None, rng: Any = None) -> list[tuple[Any, list[str]]]:
        """Return n sequences, those of ``sample``, with the path behind each as ``viterbi`` returns them."""
        self._require_single("sample")
        check_int(n, "n", "ProfileHMM.sample", 0)
        size = None if length is None else check_int(length, "length", "ProfileHMM.sample", 1)
        generator = np.random.default_rng(rng)
        paths = draw_paths(self.weights(), n, size, generator)
        table = self.emission_table()
        return [(self.alphabet.decode(emit(table, path, generator)), path) for path in paths]

    def emission_table(self) -> Floats:
        """Return the distributions of symbols (S, m) in the states that emit: M1, ..., MK, I0, ..., IK, N, J and C."""
        self._require_single("emission_table")
        return np.vstack([self.match, self.insert, np.tile(self.null, (3, 1))])

    def _refuse_impossible(self, log_prob: Floats, members: NDArray[np.int64], packed: Packed) -> None:
        """Raise for the first object of probability zero, naming the position at which it became impossible."""
        dead = members[np.isneginf(log_prob)]
        if len(dead) == 0:
            return
        i = int(dead.min())
        codes = packed.take([i]).values.astype(np.int64)
        alive = core_logs.emitted(self._logs(), codes, core_logs.forward(self._logs(), codes)[0])
        position = int(np.argmax(np.isneginf(alive))) if np.isneginf(alive).any() else len(codes)
        where = "at its end"
        if position < len(codes):
            where = f"at position {position} (symbol {packed.alphabet.decode(codes[position : position + 1])[0]!r})"  # type: ignore[union-attr]
        raise ValueError(
            f"ProfileHMM: object {i} has probability zero under the model {where}, so posteriors and derivatives are "
            "undefined. Allow more by with_flanks('local'), or fit with pseudocounts."
        )


def passages(path: list[str], symbols: str, K: int) -> list[Passage]:
    """Return the passages of a path, with the symbols of the sequence."""
    found: list[Passage] = []
    columns, t, start = [""] * (K + 1), 0, 0
    for name in path:
        if name[0] == "B":
            columns, start = [""] + ["-"] * K, t
        elif name[0] == "E":
            found.append(Passage(start, t, "".join(columns)))
        elif name[0] == "M":
            columns[int(name[1:])] = symbols[t].upper()
        elif name[0] == "I":
            columns[int(name[1:])] += symbols[t].lower()
        t += name[0] not in "BDE"
    return found
