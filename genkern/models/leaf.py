"""Leaf families: simple distributions, alone, as stacks, and as emissions of latent models."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from genkern.core.arrays.scaled_rows import scaled_rows
from genkern.core.hmm import passes as core
from genkern.data.objects import Packed
from genkern.models.base import Model, Statistics
from genkern.models.characteristic import EmittingChain, Scaled, Waves
from genkern.models.information import Information, InformationBlocks
from genkern.models.positions import each_point, is_window
from genkern.models.value import rebatch
from genkern.validation import Floats, check_int


class Leaf(Model):
    """A stack of simple distributions over points: symbols or vectors.

    As a model, it generates bags of independent points. A family implements the abstract methods of this class and of
    ``Model``; likelihoods, statistics and derivatives of bags, and its use as the emissions of an HMM, follow from
    these.
    """

    family_name: ClassVar[str | None] = None  # its name in ``emission=`` and ``component=``
    counts_symbols: ClassVar[bool] = False  # whether the block "probs", times ``probs``, counts expected symbols

    # --- required of a family

    @abstractmethod
    def log_density(self, points: NDArray[Any]) -> Floats:
        """Return log p of every point under every member of the stack, shape (N,) + batch."""

    @abstractmethod
    def own_log_density(self, packed: Packed) -> Floats:
        """Return (N, n): points of object i under the members [i, :] of a stack of batch (n_objects, n)."""

    @abstractmethod
    def weigh(self, packed: Packed, weights: Floats, totals: bool) -> dict[str, Floats]:
        """Return blocks of expected statistics, (G, n, ...), from weights (N, n) of points under n members."""

    @abstractmethod
    def member_gradient(self, blocks: dict[str, Floats], coordinates: str) -> Floats:
        """Return derivatives (G, p) of the expected log-likelihood by the parameters of all members, batch (n,)."""

    @abstractmethod
    def member_information(self, draws: Floats, coordinates: str) -> list[Information]:
        """Return the blocks of the block-diagonal Fisher information for an expected number of draws per member."""

    @abstractmethod
    def draw(self, which: NDArray[np.int64], rng: np.random.Generator) -> NDArray[Any]:
        """Return one point from each named member of a stack of batch (n,)."""

    # --- optional

    def pack_sequences(self, X: Any) -> Packed:
        """Encode sequences of points, as an HMM emits them; ``pack`` encodes bags."""
        return self.pack(X)

    def member_visits(self, blocks: dict[str, Floats]) -> Floats:
        """Return how often each of the ``hidden_states`` of all members is expected to be visited, (G, S)."""
        return np.zeros((len(next(iter(blocks.values()))), 0))

    def moments(self) -> tuple[Floats, Floats] | None:
        """Return means and variances, batch + (d,), of points that are vectors; None if they are not known."""
        return None

    def expected_points(self, packed: Packed) -> Floats | None:
        """Return E[x_t | member i, observed part of x_t], (N, n, d); None if missing values cannot be imputed."""
        if np.isnan(packed.values).any():
            return None
        return np.repeat(packed.values[:, None, :], self.shape[0], axis=1)

    def beginning(self, length: int) -> Leaf:
        """Return the distribution of the first symbols of a point that is a window of symbols."""
        raise TypeError(f"{type(self).__name__} is no law of windows.")

    @property
    def axis_normals(self) -> tuple[Floats, Floats] | None:
        """Means and variances batch + (d,) of Gaussians without covariances; None of all others."""
        return None

    def waves(self) -> Waves | None:
        """Return the properties of the frequencies of ``characteristic``; None for families without it."""
        return None

    def characteristic(self, waves: Floats) -> Scaled:
        r"""Return :math:`E\, e^{i \omega^T X}`, batch + (D,), at frequencies (D, d)."""
        raise TypeError(f"{type(self).__name__} has no characteristic function.")

    def as_chain(self) -> EmittingChain:
        """Return a stack of batch (a,) as chains of one state."""
        a = len(self)
        return EmittingChain(rebatch(self, (a, 1)), np.ones((a, 1)), np.ones((a, 1, 1)), None)

    # --- derived: its description

    def _facts(self) -> list[str]:
        width = getattr(self, self._fields[0]).shape[len(self.shape) :][-1:]
        what = "symbol" if hasattr(self, "alphabet") or self.counts_symbols else "channel"
        return super()._facts() or [f"{n} {what}{'s' * (n != 1)}" for n in width]

    # --- derived: emissions of an HMM

    def evidence(self, packed: Packed) -> core.Evidence:
        """Return the table of emission factors for the passes of ``core.hmm``; batch (n,) or (n_objects, n)."""
        logs = self._log_densities(packed)
        table, shift, raised = scaled_rows(logs)
        return core.Evidence(table, shift, None, logs if raised else None)

    def _log_densities(self, packed: Packed) -> Floats:
        """Return (N, n): points under n shared members, or under the members of their own objects."""
        return self.log_density(packed.values) if len(self.shape) == 1 else self.own_log_density(packed)

    def emission_statistics(self, packed: Packed, evidence: core.Evidence, raw: Floats) -> dict[str, Floats]:
        """Return blocks from the derivatives with respect to the table that a pass of ``core.hmm`` gave."""
        return self.weigh(packed, evidence.table * raw, totals=False)

    def emission_totals(self, packed: Packed, evidence: core.Evidence, raw: Floats) -> dict[str, Floats]:
        """Return ``emission_statistics`` summed over objects, with a leading axis of length one."""
        return self.weigh(packed, evidence.table * raw, totals=True)

    # --- derived: bags of independent draws

    def _alone(self) -> Self:
        """Return the one leaf as a stack of one."""
        return self._once("alone", lambda: rebatch(self, (1,)))

    def _draws(self, n: int, length: int) -> NDArray[np.int64]:
        """Return zeros, the only member so often as n bags of so many points need; for ``sample`` of one leaf."""
        self._require_single("sample")
        who = f"{type(self).__name__}.sample"
        return np.zeros(check_int(n, "n", who, 0) * check_int(length, "length", who, 0), np.int64)

    def log_prob(self, X: Any) -> Floats:
        """Return the log-likelihood of each bag of points, shape (n_objects,) + batch."""
        packed = self.pack(X)
        sums: Floats = np.add.reduceat(self.log_density(packed.values), packed.offsets[:-1], axis=0)
        return sums

    def statistics(self, X: Any) -> Statistics:
        """Return the sufficient statistics of each bag of points under one model."""
        self._require_single("statistics")
        packed = self.pack(X)
        log_prob = np.add.reduceat(self.log_density(packed.values), packed.offsets[:-1], axis=0)
        refuse_impossible(log_prob, type(self).__name__)
        blocks = self._alone().weigh(packed, np.ones((packed.n_points, 1)), totals=False)
        return Statistics(self, log_prob, packed.lengths, {name: block[:, 0] for name, block in blocks.items()})

    def gradient(self, statistics: Statistics, coordinates: str = "softmax") -> Floats:
        """Return the derivatives (G, p) of the log-likelihood of bags from their statistics."""
        return self._alone().member_gradient(statistics.of_member(), coordinates)

    def visits(self, statistics: Statistics) -> Floats:
        """Return how often each of the ``hidden_states`` is expected to be visited, (G, S), from statistics."""
        return self._alone().member_visits(statistics.of_member())

    def information(self, lengths: Any, coordinates: str = "softmax") -> InformationBlocks:
        """Return the Fisher information of bags, averaged over their numbers of points, as pairs (index, block)."""
        blocks = self._alone().member_information(np.array([np.mean(lengths)]), coordinates)
        ends = np.cumsum([len(block) for block in blocks])
        return [(np.arange(end - len(block), end), block) for end, block in zip(ends, blocks)]

    def position_statistics(self, packed: Packed) -> Iterator[Statistics]:
        """Yield the statistics of the points of one bag, which are its positions, or of the symbols of one window.

        Blocks that belong to no symbol, the weights of a mixture of windows, are zero.
        """
        if not is_window(packed):
            yield self.statistics(each_point(packed))
            return
        length = packed.values.shape[1]
        blocks = {name: np.repeat(block, length, axis=0) for name, block in self.statistics(packed).blocks.items()}
        for name, block in blocks.items():
            if name.endswith("probs"):  # (T, ..., L, m), of which position t keeps row t
                np.moveaxis(block, -2, 1)[~np.eye(length, dtype=bool)] = 0.0
            else:
                block[:] = 0.0
        sizes = range(1, length + 1)
        logs = [self.beginning(size).log_density(packed.values[:, :size])[0] for size in sizes]
        yield Statistics(self, np.diff(logs, prepend=0.0), np.ones(length, np.int64), blocks)


def refuse_impossible(log_prob: Floats, who: str) -> None:
    """Raise for objects of probability zero, which have no derivatives or posteriors."""
    dead = np.flatnonzero(np.isneginf(log_prob))
    if len(dead):
        raise ValueError(
            f"{who}: object {dead[0]} has probability zero under the model ({len(dead)} such in all), so its "
            "derivatives are undefined. Smooth the model (an estimator's pseudocount) or check the symbols."
        )
