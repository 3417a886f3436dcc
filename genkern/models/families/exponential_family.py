"""Exponential families: a density is its natural parameters times sufficient statistics."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from genkern.core.families import passes as core
from genkern.data.objects import Packed
from genkern.models.estimator import LeafEstimator
from genkern.models.families.field_leaf import RANGES, FieldLeaf, out_of_range
from genkern.models.fit.weights import point_weights
from genkern.validation import Floats, check_number, check_option

NEGLIGIBLE = 1e-290  # weights below it give subnormal products with statistics


class ExponentialFamily(FieldLeaf):
    r"""A family of densities :math:`\log p(x) = h(x) + \sum_s \theta_s T_s(x)`.

    A family gives ``terms``, the names of its statistics, ``sufficient``, ``natural`` and, if it is not zero, ``base``.
    The last statistic, ``"weight"``, is one; minus the log normaliser is its parameter. A missing coordinate has
    statistics of zero.
    """

    terms: ClassVar[tuple[str, ...]]

    @staticmethod
    @abstractmethod
    def sufficient(points: Floats) -> list[Floats]:
        """Return the statistics of points (N, d), each (N, d), in the order of ``terms``; NaN where missing."""

    @staticmethod
    def base(points: Floats) -> Floats:
        """Return the logarithms h (N,) of the base measure."""
        return np.zeros(len(points))

    @abstractmethod
    def natural(self) -> list[Floats]:
        """Return the parameters of the statistics, each batch + (d,)."""

    def log_density(self, points: NDArray[Any]) -> Floats:
        """Return log densities (N,) + batch; missing coordinates do not count."""
        logs = self._log_density(points, np.array([0, len(points)]), 1)
        return logs.reshape((len(points), *self.shape))

    def own_log_density(self, packed: Packed) -> Floats:
        """Return (N, n): points of object i under members [i, :]."""
        return self._log_density(packed.values, packed.offsets, packed.n_objects)

    def _log_density(self, points: Floats, offsets: NDArray[np.int64], rows: int) -> Floats:
        natural = np.concatenate(self.natural(), axis=-1)
        return core.log_density(
            natural.reshape(rows, -1, natural.shape[-1]), self._table(points), self.base(points), offsets
        )

    @classmethod
    def _table(cls, points: Floats) -> Floats:
        """Return the statistics side by side, (N, q), zero where missing."""
        table = np.concatenate(cls.sufficient(points), axis=1)
        return np.where(np.isnan(table), 0.0, table)

    @classmethod
    def sums(cls, packed: Packed, weights: Floats, totals: bool) -> dict[str, Floats]:
        """Return the weighted sums (G, n, d) of all statistics, by name."""
        parts = cls.sufficient(packed.values[:1])
        table = core.weigh(cls._table(packed.values), weights, packed.offsets, totals)
        ends = np.cumsum([part.shape[1] for part in parts])[:-1]
        return dict(zip(cls.terms, np.split(table, ends, axis=-1), strict=True))

    def weigh(self, packed: Packed, weights: Floats, totals: bool) -> dict[str, Floats]:
        """Return the weighted sums (G, n, d) of all statistics, by name."""
        return self.sums(packed, weights, totals)


def observed(points: Floats) -> Floats:
    """Return the statistic "weight" of a product: one for each coordinate that is not missing."""
    return 1.0 - np.isnan(points)


class FamilyEstimator(LeafEstimator):
    """Estimator of an exponential family from sums of its statistics, plus those of a conjugate prior.

    A family gives ``family``, ``solve``, and, if it has a prior, ``pseudo_sums``; ``degenerate`` returns which data
    have no maximum.
    """

    family: ClassVar[type[ExponentialFamily]]
    degenerate: ClassVar[str] = ""
    softening = 0.1

    # --- required of a family

    @abstractmethod
    def solve(self, sums: list[Floats]) -> list[Floats]:
        """Return the fields (M,) or (M, d) that maximise the likelihood, given sums of the statistics; NaN if none."""

    def pseudo_sums(self, d: int) -> list[float]:
        """Return the terms of the prior in the sums of the statistics."""
        return [0.0] * len(self.family.terms)

    def check_parameters(self) -> None:
        """Raise for illegal settings."""

    # --- derived from these

    def pack(self, X: Any) -> Packed:
        """Encode bags of vectors, refusing points outside the family's support."""
        self.check_parameters()
        return self.family.read_bags(X, type(self).__name__)

    def pack_sequences(self, X: Any) -> Packed:
        """Encode series likewise."""
        self.check_parameters()
        return self.family.read_series(X, type(self).__name__)

    def resolve(self, X: Any) -> FamilyEstimator:
        """Return the estimator itself: numbers need no alphabet."""
        return self

    def reference(self, packed: Packed, n: int, own: bool) -> Any:
        """Return n copies of the fit to each object's points, or to all."""
        sums = self.family.sums(packed, point_weights(packed), totals=not own)
        empty = sums["weight"][:, 0] == 0
        if empty.any():
            i, j = np.argwhere(empty)[0].tolist()
            raise ValueError(
                f"{type(self).__name__}: {f'object {i} has' if own else 'the objects have'} no observed value in "
                f"column {j}, so its distribution cannot be estimated. Leave that column out."
            )
        shape = (*([len(empty)] if own else []), 1, packed.values.shape[1])
        blank = self.family._restore(*(np.full(shape, np.nan) for _ in self.family._fields))
        copies = np.zeros(n, np.int64)
        return self._maximized(sums, blank)[(slice(None), copies) if own else copies]

    def maximize_blocks(self, blocks: dict[str, Floats], leaf: Any) -> Any:
        """Return the maximum of expected log-likelihood and prior; members without weight are not changed."""
        self._check_mode()
        return self._maximized(blocks, leaf)

    def _maximized(self, blocks: dict[str, Floats], leaf: Any) -> Any:
        """Return the stack with the fields solved where there is weight."""
        sums = [blocks[name].reshape((*leaf.shape, -1)) for name in self.family.terms]
        used = sums[-1] > NEGLIGIBLE
        used = used if used.shape[-1] == leaf.n_features else used[..., 0]  # by coordinates, or by points
        added = zip(sums, self.pseudo_sums(leaf.n_features), strict=True)
        solved = self.solve([block[used] + extra for block, extra in added])
        wrong = ~np.isfinite(solved[-1])
        if wrong.any():
            place = np.argwhere(used)[np.argwhere(wrong)[0, 0]].tolist()
            where = f"object {place[0]}, member {place[1]}" if len(leaf.shape) > 1 else f"member {place[0]}"
            raise ValueError(f"{type(self).__name__}: {where}: {self.degenerate}")
        for name, kind, values in zip(self.family._fields, self.family._ranges, solved, strict=True):
            outside = out_of_range(values, kind)
            if outside.any():
                raise ValueError(
                    f"{type(self).__name__}: '{name}' would be {values[outside].flat[0]:g}; expected is "
                    f"{RANGES[kind]}. Divide the column by its scale."
                )
        fields = [value.copy() for value in leaf._values()]
        for field, values in zip(fields, solved, strict=True):
            field[used] = values
        return self.family._restore(*fields)

    def log_prior(self, leaf: Any) -> Floats:
        """Return the conjugate log prior: its sums of statistics times the natural parameters."""
        total = np.zeros(leaf.shape[:-1])
        for extra, parameter in zip(self.pseudo_sums(leaf.n_features), leaf.natural(), strict=True):
            if extra:
                total = total + extra * parameter.sum(axis=(-1, -2))
        return total

    def n_free(self, packed: Packed) -> int:
        """Return the parameters of a state plus one, the analogue of the symbols of an emission row."""
        return 1 + len(self.family._fields) * int(packed.values.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


class ConjugateEstimator(FamilyEstimator):
    """Estimator with a conjugate prior of two parameters: ``estimate`` is "ml", "map" or, if it has one, "predictive".

    ``modes`` names the estimates there are, and ``neutral`` the prior that adds nothing to the likelihood's mode.
    """

    estimate: str
    prior: Any
    modes: ClassVar[tuple[str, ...]] = ("ml", "map")
    neutral: ClassVar[tuple[float, float]]

    def check_parameters(self) -> None:
        """Raise for an unknown estimate, or a prior without the mode or the mean that is needed."""
        who = type(self).__name__
        check_option(self.estimate, self.modes, "estimate", who)
        if not isinstance(self.prior, tuple | list) or len(self.prior) != 2:
            raise ValueError(f"The 'prior' parameter of {who} must be two numbers (a, b). Got {self.prior!r} instead.")
        for value, name, least in zip(self.prior, ("prior[0]", "prior[1]"), self.neutral):
            if self.estimate == "predictive":
                check_number(value, name, who, exclusive=True)
            elif self.estimate == "map":
                check_number(value, name, who, minimum=least)

    def excess(self) -> tuple[float, float]:
        """Return the pseudo-observations of the prior in the mode: zero in maximum likelihood."""
        if self.estimate == "ml":
            return 0.0, 0.0
        return float(self.prior[0]) - self.neutral[0], float(self.prior[1]) - self.neutral[1]

    def all_sums(self, packed: Packed, own: bool) -> list[Floats]:
        """Return the sums of the statistics, batch (1,) or (n_objects, 1), for predictive distributions."""
        sums = self.family.sums(packed, point_weights(packed), totals=not own)
        return [block if own else block[0] for block in sums.values()]
