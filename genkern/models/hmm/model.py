"""Hidden Markov models: the value. Its estimator is in ``hmm.estimator``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.core.hmm import passes as core
from genkern.core.hmm.positions import position_gradients
from genkern.data.objects import Packed
from genkern.models import simplex
from genkern.models.base import COORDINATES, Statistics
from genkern.models.bayes_net.from_hmm import BayesNet, unroll
from genkern.models.characteristic import EmittingChain
from genkern.models.hmm.names import NamesOfHmmlearn
from genkern.models.hmm.paths import HiddenPaths
from genkern.models.hmm.sample import check_stopping, expected_visits, paths_of_length, paths_that_stop
from genkern.models.information import Information, InformationBlocks
from genkern.models.leaf import Leaf
from genkern.models.positions import each_point
from genkern.models.states import chain_visits, flat_rows, state_names
from genkern.validation import (
    Floats,
    check_array,
    check_int,
    check_option,
    check_probabilities,
)


class HMM(NamesOfHmmlearn, HiddenPaths):
    r"""Hidden Markov model, :math:`p(x) = \sum_q \pi_{q_0} b_{q_0}(x_0) \prod_t a_{q_{t-1} q_t} b_{q_t}(x_t)`.

    Parameters
    ----------
    start : array-like of shape batch + (n,)
        Distribution of the first state.
    transitions : array-like of shape batch + (n, n)
        ``transitions[i, j]`` is the probability of going from state i to state j.
    emissions : leaf stack of batch batch + (n,)
        One distribution per state.
    end : array-like of shape batch + (n,), optional
        End weights, summing to one, multiplied in at the last state (Tsuda et al. 2002, eq. A.1). The result is a
        weight for sequences of a given length, not a distribution over all lengths.
    stop : array-like of shape batch + (n,), optional
        Probability of stopping after each state; rows of ``[transitions | stop]`` sum to one. The model is then a
        proper distribution over sequences of all lengths.

    Notes
    -----
    Parameters are ordered start, transitions, emissions, end or stop, each flattened row-major. With ``stop``, row i of
    ``transitions`` and ``stop[i]`` form one simplex.

    Examples
    --------
    >>> from genkern import HMM, Categorical
    >>> emissions = Categorical([[0.9, 0.1], [0.2, 0.8]], alphabet="ab")
    >>> HMM([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], emissions).log_prob(["aab", "b"]).round(4)
    array([-2.2719, -0.7985])
    """

    _fields = ("start", "transitions", "emissions", "end", "stop")
    has_steps = True
    start: Floats
    transitions: Floats
    emissions: Leaf
    end: Floats | None
    stop: Floats | None

    def __init__(
        self,
        start: ArrayLike,
        transitions: ArrayLike,
        emissions: Leaf,
        end: ArrayLike | None = None,
        stop: ArrayLike | None = None,
    ):
        first = check_probabilities(start, "start", "HMM")
        square = (*first.shape, first.shape[-1])
        if end is not None and stop is not None:
            raise ValueError("HMM: give 'end' weights or 'stop' probabilities, not both.")
        if stop is None:
            steps, halts = check_probabilities(transitions, "transitions", "HMM", shape=square), None
        else:
            steps, halts = check_stopping(transitions, stop, square)
        if end is not None:
            end = check_probabilities(end, "end", "HMM", shape=first.shape)
        if not isinstance(emissions, Leaf):
            raise TypeError(
                "HMM: 'emissions' must be a stack of a leaf family such as Categorical or Gaussian. "
                f"Got {type(emissions).__name__}."
            )
        if emissions.shape != first.shape:
            raise ValueError(
                f"HMM: 'emissions' must be a stack of batch {first.shape}, one distribution per state. "
                f"Got batch {emissions.shape}."
            )
        self._freeze(start=first, transitions=steps, emissions=emissions, end=end, stop=halts)

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack."""
        return self.start.shape[:-1]

    @property
    def n_states(self) -> int:
        """Number of states."""
        return self.start.shape[-1]

    @property
    def final(self) -> Floats | None:
        """The factors of the last state: end weights, stop probabilities or None."""
        return self.stop if self.end is None else self.end

    # --- likelihood

    def pack(self, X: Any) -> Packed:
        """Encode raw sequences for this model."""
        return self.emissions.pack_sequences(X)

    def chains(self) -> core.Chains:
        """Return start, transitions and end as arrays with a leading axis of models."""

        def make() -> core.Chains:
            n = self.n_states
            final = np.ones_like(self.start) if self.final is None else self.final
            return core.Chains(self.start.reshape(-1, n), self.transitions.reshape(-1, n, n), final.reshape(-1, n))

        return self._once("chains", make)

    def log_prob(self, X: Any, n_jobs: int | None = None) -> Floats:
        """Return the log-likelihood of each sequence, shape (n_objects,) + batch; -inf where it is impossible."""
        packed = self.pack(X)
        if self.shape:
            columns = [self[index].log_prob(packed, n_jobs) for index in np.ndindex(self.shape)]
            return np.stack(columns, axis=-1).reshape((-1, *self.shape))
        return core.log_prob(self.chains(), self.emissions.evidence(packed), packed.offsets, n_jobs=n_jobs)

    # --- E-step, gradient, information

    def statistics(self, X: Any, totals: bool = False, n_jobs: int | None = None) -> Statistics:
        """Return posterior expected statistics per object, or summed over objects (``totals``).

        Blocks: raw derivatives ``start`` (G, n), ``transitions`` (G, n, n), ``end`` or ``stop`` (G, n), and
        the blocks of the emission family under ``emissions.<name>``. A stack of batch (n_objects,) treats
        object i under its own model i.
        """
        packed = self.pack(X)
        if self.shape not in ((), (packed.n_objects,)):
            raise ValueError(
                f"HMM.statistics needs one model or one per object. Got a stack of {self.shape} for "
                f"{packed.n_objects} objects."
            )
        evidence = self.emissions.evidence(packed)
        sums = core.gradients(
            self.chains(), evidence, packed.offsets, totals=totals, n_jobs=n_jobs, own=bool(self.shape)
        )
        self._refuse_impossible(sums.log_prob, packed, evidence)
        summarise = self.emissions.emission_totals if totals else self.emissions.emission_statistics
        return self._named(sums, packed.lengths, summarise(packed, evidence, sums.emissions))

    def _named(self, sums: Any, lengths: NDArray[np.int64], emissions: dict[str, Floats]) -> Statistics:
        """Return the result of a pass, and the blocks of emissions, as statistics."""
        blocks = {"start": sums.start, "transitions": sums.transitions}
        blocks |= {f"emissions.{name}": block for name, block in emissions.items()}
        if self.final is not None:
            blocks["stop" if self.end is None else "end"] = sums.end
        return Statistics(self, sums.log_prob, lengths, blocks)

    def gradient(self, statistics: Statistics, coordinates: str = "softmax") -> Floats:
        """Return derivatives (G, p) of the log-likelihood from the statistics of one model."""
        raw, n = statistics["transitions"], self.n_states
        emissions = self.emissions.member_gradient(emission_blocks(statistics), coordinates)
        first, last = n + n * n, n + n * n + emissions.shape[1]
        out = np.empty((len(raw), last + (0 if self.final is None else n)))
        simplex.put_gradient(statistics["start"], self.start, coordinates, out, 0)
        out[:, first:last] = emissions
        if self.stop is None:
            simplex.put_gradient(raw, self.transitions, coordinates, out, n)
        else:
            joint = np.concatenate([raw, statistics["stop"][..., None]], axis=-1)
            rows = simplex.gradient(joint, self._rows(), coordinates)
            out[:, n:first] = rows[..., :-1].reshape(len(raw), -1)
            out[:, last:] = rows[..., -1]
        if self.end is not None:
            simplex.put_gradient(statistics["end"], self.end, coordinates, out, last)
        return out

    def information(self, lengths: ArrayLike, coordinates: str = "softmax") -> InformationBlocks:
        """Return the complete-data Fisher information, averaged over sequence lengths, as pairs (index, block).

        It is that of the complete data, states included: block diagonal, one block per simplex row
        (or emission parameter group) weighted by its expected number of visits. ``index`` holds the indices of the
        block's parameters in the parameter vector; parameters of different blocks are uncorrelated. End weights do not
        enter the visits.
        """
        self._require_single("information")
        n = self.n_states
        visits, departures = expected_visits(self, np.asarray(lengths), "HMM.information")
        rows = self.transitions if self.stop is None else self._rows()
        blocks: list[Information] = [simplex.row_information(self.start, 1.0, coordinates)]
        blocks += simplex.information(rows, departures if self.stop is None else visits, coordinates)
        blocks += self.emissions.member_information(visits, coordinates)
        if self.end is not None:
            blocks.append(simplex.row_information(self.end, 1.0, coordinates))
        sizes = [n] * (n + 1) + [len(block) for block in blocks[n + 1 :]]
        index = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
        if self.stop is not None:
            index[1 : n + 1] = [np.append(row, sum(sizes) + i) for i, row in enumerate(index[1 : n + 1])]
        return list(zip(index, blocks, strict=True))

    # --- parameters

    def _rows(self) -> Floats:
        """Return the joint rows [transitions | stop]."""
        assert self.stop is not None
        return np.concatenate([self.transitions, self.stop[..., None]], axis=-1)

    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return the parameter vector (p,)."""
        self._require_single("parameters")
        check_option(coordinates, COORDINATES, "coordinates", "HMM.parameters")
        parts = [self.start, self.transitions.ravel()]
        parts = [simplex.coordinates_of(part, coordinates) for part in parts]
        parts.append(self.emissions.parameters(coordinates))
        if self.final is not None:
            parts.append(simplex.coordinates_of(self.final, coordinates))
        return np.concatenate(parts)

    def with_parameters(self, vector: ArrayLike, coordinates: str = "softmax") -> Self:
        """Return the model at a parameter vector; raw coordinates are not normalised."""
        self._require_single("with_parameters")
        check_option(coordinates, COORDINATES, "coordinates", "HMM.with_parameters")
        n = self.n_states
        given = np.asarray(vector, dtype=np.float64)
        hidden = np.isneginf(given)  # the softmax coordinate of a zero probability
        values = check_array(np.where(hidden, 0.0, given), "vector", "HMM", shape=(self.n_parameters,))
        values = np.where(hidden, -np.inf, values)
        tail = [] if self.final is None else [len(values) - n]
        start, steps, emissions, *last = np.split(values, [n, n + n * n, *tail])
        rows = steps.reshape(n, n)
        end = stop = None
        if self.stop is not None:
            rows = simplex.from_coordinates(np.column_stack([rows, last[0]]), coordinates)
            rows, stop = rows[:, :-1], rows[:, -1]
        else:
            rows = simplex.from_coordinates(rows, coordinates)
            end = simplex.from_coordinates(last[0], coordinates) if last else None
        return self._restore(
            simplex.from_coordinates(start, coordinates),
            rows,
            self.emissions.with_parameters(emissions, coordinates),
            end,
            stop,
        )

    @property
    def n_parameters(self) -> int:
        """Length of the parameter vector."""
        return len(self.parameter_names)

    @property
    def n_tied(self) -> int:
        """Number of parameters of the emissions that repeat others."""
        return self.emissions.n_tied

    @property
    def parameter_names(self) -> list[str]:
        """Names such as ``start[0]``, ``transitions[0,1]``, ``emissions.probs[0,A]``, ``stop[0]``."""
        states = range(self.n_states)
        names = [f"start[{i}]" for i in states] + [f"transitions[{i},{j}]" for i in states for j in states]
        names += [f"emissions.{name}" for name in self.emissions.parameter_names]
        if self.final is not None:
            names += [f"{'stop' if self.end is None else 'end'}[{i}]" for i in states]
        return names

    @property
    def blocks(self) -> list[str]:
        """The block of each parameter; emissions have those of their family."""
        n, last = self.n_states, "stop" if self.end is None else "end"
        chain = ["start"] * n + ["transitions"] * n * n
        return [*chain, *self.emissions.blocks, *([] if self.final is None else [last] * n)]

    # --- hidden variables

    @property
    def hidden_states(self) -> list[str]:
        """The states; pairs of state and component, if emissions are mixtures."""
        parts = self.emissions.hidden_states
        return parts if parts else state_names(self.state_sizes)

    def visits(self, statistics: Statistics) -> Floats:
        """Return how often each state, or component of a state, is expected to be visited, (G, S)."""
        if self.emissions.hidden_states:
            return self.emissions.member_visits(emission_blocks(statistics))
        return chain_visits(self.start, self.transitions, statistics["start"], statistics["transitions"])

    @property
    def state_sizes(self) -> tuple[int, ...]:
        """The number of states of the one chain."""
        return (self.n_states,)

    @property
    def state_emissions(self) -> Leaf:
        """The emission distributions."""
        return self.emissions

    def as_hmms(self, length: int, who: str) -> Self:
        """Return the stack itself, as chains return one of hidden Markov models."""
        return self

    def as_chain(self) -> EmittingChain:
        """Return the parts of a stack of batch (a,)."""
        return EmittingChain(self.emissions, self.start, self.transitions, self.final)

    def expected_states(self, packed: Packed, steps: bool) -> tuple[Floats, Floats | None]:
        """Return expected visits (n, S) and transitions (n, S2) of each object, by the faster pass for sums."""
        found = self.statistics(packed)
        moves = self.transitions * found["transitions"]
        return self.start * found["start"] + moves.sum(axis=1), flat_rows(moves) if steps else None

    def expected_symbols(self, packed: Packed) -> Floats:
        """Return how often each state is expected to have emitted each symbol, (n_objects, n, m)."""
        if not self.emissions.counts_symbols:
            return super().expected_symbols(packed)
        probs: Floats = cast(Any, self.emissions).probs
        return probs * self.statistics(packed)["emissions.probs"]

    def position_statistics(self, packed: Packed) -> Iterator[Statistics]:
        """Yield the statistics of the positions of one sequence; a step into a state belongs to its position."""
        evidence = self.emissions.evidence(packed)
        found = position_gradients(self.chains(), evidence, packed.n_points)
        points = each_point(packed)
        emissions = self.emissions.emission_statistics(points, evidence, found.emissions)
        yield self._named(found, points.lengths, emissions)

    # --- sampling

    def sample(self, n: int, *, length: int | None = None, rng: Any = None) -> list[Any]:
        """Return n sequences: of the given length, or of random length if the model has ``stop`` probabilities.

        With end weights or stop probabilities and a length, sequences are drawn conditionally on that length.
        """
        return [x for x, _ in self.simulate(n, length=length, rng=rng)]

    def simulate(self, n: int, *, length: int | None = None, rng: Any = None) -> list[tuple[Any, NDArray[np.int64]]]:
        """Return n sequences, those of ``sample``, with the states (T,) behind each."""
        self._require_single("sample")
        check_int(n, "n", "HMM.sample", 0)
        generator = np.random.default_rng(rng)
        if length is None:
            paths = paths_that_stop(self, n, generator)
        else:
            paths = paths_of_length(self, n, check_int(length, "length", "HMM.sample", 1), generator)
        points = self.emissions.draw(np.concatenate(paths) if n else np.zeros(0, np.int64), generator)
        pieces = np.split(points, np.cumsum([len(path) for path in paths])[:-1]) if n else []
        alphabet = getattr(self.emissions, "alphabet", None)
        return list(zip(pieces if alphabet is None else [alphabet.decode(piece) for piece in pieces], paths))

    def to_bayes_net(self, length: int) -> BayesNet:
        """Return sequences of one length as a network of hidden ``state0``, ... and observed ``symbol0``, ...

        Emissions that are no symbols are continuous nodes ``point0``, ...
        Kernels with this ``length`` take both for the same: a row of the network holds so many observations.
        """
        return unroll(self, length)


def emission_blocks(statistics: Statistics) -> dict[str, Floats]:
    """Return the blocks of the emission family, without their prefix."""
    prefix = "emissions."
    return {name[len(prefix) :]: block for name, block in statistics.blocks.items() if name.startswith(prefix)}
