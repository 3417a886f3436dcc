"""Leaf families: simple distributions that stand alone, as stacks, and as emissions of latent models."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from genkern.core import hmm as core
from genkern.core.scaled_rows import scaled_rows
from genkern.models.base import COORDINATES, Model, Statistics
from genkern.models.lean_information import Information
from genkern.objects import Packed
from genkern.validation import Floats, check_option


class Leaf(Model):
    """A stack of simple distributions over points: symbols or vectors.

    A family gives ``pack``, ``log_density``, ``own_log_density``, ``weigh``, ``gradient``, ``parameters``,
    ``with_parameters``, ``parameter_names``, ``information`` and ``draw``; likelihoods, statistics and derivatives of
    bags, and its use as the emissions of an HMM, follow.
    """

    # --- what a family gives

    def pack(self, X: Any, sequences: bool) -> Packed:
        """Encode raw objects: sequences, or bags of independent draws."""
        raise TypeError(f"{type(self).__name__} must define pack.")

    def log_density(self, points: NDArray[Any]) -> Floats:
        """Return log p of every point under every member of the stack, shape (N,) + batch."""
        raise TypeError(f"{type(self).__name__} must define log_density.")

    def own_log_density(self, packed: Packed) -> Floats:
        """Return (N, n): points of object i under the members [i, :] of a stack of batch (n_objects, n)."""
        raise TypeError(f"{type(self).__name__} must define own_log_density.")

    def weigh(self, packed: Packed, weights: Floats, totals: bool) -> dict[str, Floats]:
        """Return blocks of expected statistics, (G, n, ...), from weights (N, n) of points under n members."""
        raise TypeError(f"{type(self).__name__} must define weigh.")

    def gradient(self, blocks: dict[str, Floats], coordinates: str) -> Floats:
        """Return derivatives (G, p) of the expected log-likelihood from blocks of statistics of batch (n,)."""
        raise TypeError(f"{type(self).__name__} must define gradient.")

    def information(self, draws: Floats, coordinates: str) -> list[Information]:
        """Return the blocks of the block-diagonal Fisher information for an expected number of draws per member."""
        raise TypeError(f"{type(self).__name__} must define information.")

    def draw(self, which: NDArray[np.int64], rng: np.random.Generator) -> NDArray[Any]:
        """Return one point from each named member of a stack of batch (n,)."""
        raise TypeError(f"{type(self).__name__} must define draw.")

    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return the parameter vector in the named coordinates."""
        raise TypeError(f"{type(self).__name__} must define parameters.")

    def with_parameters(self, vector: Floats, coordinates: str = "softmax") -> Self:
        """Return the model at a parameter vector; raw coordinates are taken as they are."""
        raise TypeError(f"{type(self).__name__} must define with_parameters.")

    @property
    def parameter_names(self) -> list[str]:
        """Names of the entries of the parameter vector."""
        raise TypeError(f"{type(self).__name__} must define parameter_names.")

    # --- what follows: emissions of an HMM

    def evidence(self, packed: Packed) -> core.Evidence:
        """Return the table of emission factors for the passes of ``core.hmm``; batch (n,) or (n_objects, n)."""
        table, shift, raised = scaled_rows(self._log_densities(packed))
        return core.Evidence(table, shift, None, self._log_densities(packed) if raised else None)

    def _log_densities(self, packed: Packed) -> Floats:
        """Return (N, n): points under n shared members, or under the members of their own objects."""
        return self.log_density(packed.values) if len(self.shape) == 1 else self.own_log_density(packed)

    def emission_statistics(self, packed: Packed, evidence: core.Evidence, raw: Floats) -> dict[str, Floats]:
        """Return blocks from the derivatives with respect to the table that a pass of ``core.hmm`` gave."""
        return self.weigh(packed, evidence.table * raw, totals=False)

    def emission_totals(self, packed: Packed, evidence: core.Evidence, raw: Floats) -> dict[str, Floats]:
        """Return the same summed over objects, with a leading axis of length one."""
        return self.weigh(packed, evidence.table * raw, totals=True)

    # --- what follows: bags of independent draws

    def log_prob(self, X: Any) -> Floats:
        """Return the log-likelihood of each bag of points, shape (n_objects,) + batch."""
        packed = self.pack(X, sequences=False)
        sums: Floats = np.add.reduceat(self.log_density(packed.values), packed.offsets[:-1], axis=0)
        return sums

    def statistics(self, X: Any) -> Statistics:
        """Return the sufficient statistics of each bag of points under one model."""
        self._require_single("statistics")
        packed = self.pack(X, sequences=False)
        log_prob = np.add.reduceat(self.log_density(packed.values), packed.offsets[:-1], axis=0)
        refuse_impossible(log_prob, type(self).__name__)
        one = self._restore(*(_lift(getattr(self, name)) for name in self._fields))
        blocks = one.weigh(packed, np.ones((packed.n_points, 1)), totals=False)
        return Statistics(self, log_prob, packed.lengths, {name: block[:, 0] for name, block in blocks.items()})

    def log_prob_grad(self, X: Any, coordinates: str = "softmax") -> Floats:
        """Return the derivatives of each bag's log-likelihood, shape (n_objects, p)."""
        check_option(coordinates, COORDINATES, "coordinates", f"{type(self).__name__}.log_prob_grad")
        blocks = {name: block[:, None] for name, block in self.statistics(X).blocks.items()}
        one = self._restore(*(_lift(getattr(self, name)) for name in self._fields))
        return one.gradient(blocks, coordinates)

    def _require_single(self, what: str) -> None:
        if self.shape:
            raise ValueError(f"{type(self).__name__}.{what} needs one model. Got a stack of {self.shape}: index it.")


def _lift(value: Any) -> Any:
    return value[None] if isinstance(value, np.ndarray) else value


def refuse_impossible(log_prob: Floats, who: str) -> None:
    """Raise for objects of probability zero, which have no derivatives or posteriors."""
    dead = np.flatnonzero(np.isneginf(log_prob))
    if len(dead):
        raise ValueError(
            f"{who}: object {dead[0]} has probability zero under the model ({len(dead)} such in all), so its "
            "derivatives are undefined. Smooth the model (an estimator's pseudocount) or check the symbols."
        )
