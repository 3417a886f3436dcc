"""Base class of leaf families whose parameters are arrays of one shape: shapes, coordinates, support and sampling."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from genkern.data.intake import locate
from genkern.data.objects import Packed, pack_points, pack_series
from genkern.models import simplex
from genkern.models.information import Information, diagonal_information
from genkern.models.leaf import Leaf
from genkern.validation import Floats, check_array

RANGES = {
    "positive": "positive, from 1e-300 to 1e300",
    "nonnegative": "at least zero, and at most 1e300",
    "probability": "between zero and one",
    "success": "above zero, from 6e-309 to one",
    "real": "numbers up to 1e300",
}
LOWEST, HIGHEST = 1e-300, 1e300  # of positive parameters: they and their inverses are numbers with all digits
RAREST = 6e-309  # of probabilities whose inverses are numbers
MOST = 1e16  # mean of counts that are drawn: they are 64-bit integers
LARGEST = 1e200  # of numbers in data: statistics are linear in them, or in their logarithms
POSITIVE, PROBABILITY = ("positive", "nonnegative"), ("probability", "success")


class FieldLeaf(Leaf):
    """A leaf family whose parameters are arrays of shape batch + (d,), each with a range of its own.

    A family gives ``_ranges``, the range of each field (a key of ``RANGES``), ``_support`` and ``outside``, which
    define its points, ``slopes`` and ``unit_information`` in softmax coordinates, and the other methods of a ``Leaf``.

    Parameters are ordered by members; those of a member by fields. Their coordinates are

    * positive ones: the logarithm (``softmax``), the square root (``sqrt``) or the value (``ratio``, ``raw``)
    * probabilities: the logit (``softmax``), the square root (``sqrt``) or the value (``ratio``, ``raw``)
    * real ones: the value
    """

    _ranges: ClassVar[tuple[str, ...]]
    _support: ClassVar[str]

    # --- required of a family

    @staticmethod
    @abstractmethod
    def outside(points: Floats) -> NDArray[np.bool_]:
        """Return where points (N, d) are outside the support; NaN is not."""

    @abstractmethod
    def slopes(self, blocks: dict[str, Floats]) -> list[Floats]:
        """Return for each field the derivatives (G, n, d) in softmax coordinates."""

    def unit_information(self) -> list[list[Floats | float]]:
        """Return the symmetric table of the information of one draw about pairs of fields, each (n, d) or zero."""
        raise TypeError(f"{type(self).__name__}: coordinates are not independent; it gives member_information.")

    # --- derived from these

    def _set(self, **given: ArrayLike) -> None:
        """Check and keep the fields: arrays of one shape, in their ranges; only numbers broadcast."""
        who = type(self).__name__
        arrays = {name: check_array(value, name, who) for name, value in given.items()}
        shapes = {array.shape for array in arrays.values() if array.ndim}
        if len(shapes) > 1:
            listed = ", ".join(f"'{name}' of shape {array.shape}" for name, array in arrays.items())
            raise ValueError(f"{who}: parameters must have one shape, batch + (d,), or be numbers. Got {listed}.")
        shape = shapes.pop() if shapes else (1,)
        if 0 in shape:
            raise ValueError(f"{who}: parameters must not be empty. Got shape {shape}.")
        for (name, array), kind in zip(arrays.items(), self._ranges, strict=True):
            wrong = out_of_range(array, kind)
            if wrong.any():
                where = tuple(int(i) for i in np.argwhere(wrong)[0])
                raise ValueError(f"{who}: '{name}' must be {RANGES[kind]}. Got {array[where]:g} at index {where}.")
        self._freeze(**{name: np.broadcast_to(array, shape) for name, array in arrays.items()})

    def _values(self) -> list[Floats]:
        return [getattr(self, name) for name in self._fields]

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack."""
        return self._values()[0].shape[:-1]

    @property
    def n_features(self) -> int:
        """The number d of coordinates of a point."""
        return int(self._values()[0].shape[-1])

    @classmethod
    def read_bags(cls, X: Any, who: str, d: int | None = None) -> Packed:
        """Encode bags of vectors, refusing points outside the support by object and position."""
        return cls.check_support(pack_points(X, who, n_features=d, largest=LARGEST), who)

    @classmethod
    def read_series(cls, X: Any, who: str, d: int | None = None) -> Packed:
        """Encode series likewise."""
        return cls.check_support(pack_series(X, who, n_channels=d, largest=LARGEST), who)

    @classmethod
    def check_support(cls, packed: Packed, who: str) -> Packed:
        """Return packed points, raising at the first that is outside the support."""
        wrong = cls.outside(packed.values)
        if wrong.any():
            row, column = np.argwhere(wrong)[0].tolist()
            index, position = locate(packed.offsets, row)
            raise ValueError(
                f"{who}: object {index}, position {position}, column {column} is {packed.values[row, column]:g}; "
                f"expected {cls._support}."
            )
        return packed

    def pack(self, X: Any) -> Packed:
        """Encode bags of vectors with d coordinates."""
        return self.read_bags(X, type(self).__name__, self.n_features)

    def pack_sequences(self, X: Any) -> Packed:
        """Encode series of d channels."""
        return self.read_series(X, type(self).__name__, self.n_features)

    def member_gradient(self, blocks: dict[str, Floats], coordinates: str) -> Floats:
        """Return derivatives (G, p)."""
        factors = self._stretch(coordinates)
        parts = [slope * factor for slope, factor in zip(self.slopes(blocks), factors, strict=True)]
        return np.stack(parts, axis=-2).reshape(len(parts[0]), -1)

    def member_information(self, draws: Floats, coordinates: str) -> list[Information]:
        """Return one block per member: coordinates are independent, fields of one coordinate are not."""
        d, table = self.n_features, self.unit_information()
        factors, weights = self._stretch(coordinates), np.asarray(draws)[:, None]
        if len(table) == 1:
            return [diagonal_information(row) for row in weights * table[0][0] * factors[0] ** 2]
        blocks = np.zeros((*self.shape, len(table) * d, len(table) * d))
        diagonal = np.arange(d)
        for a, row in enumerate(table):
            for b, value in enumerate(row):
                blocks[..., a * d + diagonal, b * d + diagonal] = weights * value * factors[a] * factors[b]
        return list(blocks)

    def _stretch(self, coordinates: str) -> list[Floats]:
        """Return for each field the derivative of its softmax coordinate by the named one."""
        return [
            self._stretch_one(name, kind, coordinates) for name, kind in zip(self._fields, self._ranges, strict=True)
        ]

    def _stretch_one(self, name: str, kind: str, coordinates: str) -> Floats:
        value: Floats = getattr(self, name)
        if kind == "real" or coordinates == "softmax":
            return np.ones_like(value)
        factor = value * (1.0 - value) if kind in PROBABILITY else value
        if (factor == 0).any():
            where = tuple(int(i) for i in np.argwhere(factor == 0)[0])
            raise ValueError(
                f"{type(self).__name__}: '{name}' is {value[where]:g} at index {where}, the end of its range, where "
                f"there are no derivatives in {coordinates} coordinates. Use coordinates='softmax', or a prior."
            )
        return 2.0 * np.sqrt(value) / factor if coordinates == "sqrt" else 1.0 / factor

    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return the coordinates of all fields, by members; ends of ranges are infinite in softmax coordinates."""
        parts = []
        for value, kind in zip(self._values(), self._ranges, strict=True):
            if kind == "real" or coordinates in ("ratio", "raw"):
                parts.append(value)
            elif coordinates == "sqrt":
                parts.append(np.sqrt(value))
            else:
                with np.errstate(divide="ignore"):
                    parts.append(np.log(value) if kind in POSITIVE else logit(value))
        return np.stack(parts, axis=-2).ravel()

    def with_parameters(self, vector: Floats, coordinates: str = "softmax") -> Self:
        """Return the model at these coordinates."""
        table = np.array(vector, dtype=np.float64).reshape((*self.shape, len(self._fields), self.n_features))
        fields = []
        for value, kind in zip(np.moveaxis(table, -2, 0), self._ranges, strict=True):
            if kind == "real" or coordinates in ("ratio", "raw"):
                fields.append(value)
            elif coordinates == "sqrt":
                fields.append(simplex.positive_from(value, "sqrt"))
            else:
                fields.append(simplex.positive_from(value, "softmax") if kind in POSITIVE else expit(value))
        return type(self)(*fields)

    @property
    def parameter_names(self) -> list[str]:
        """Names such as ``shape[state,column]``, by members, then fields."""
        return [
            f"{name}[{','.join(map(str, (*member, j)))}]"
            for member in np.ndindex(self.shape)
            for name in self._fields
            for j in range(self.n_features)
        ]

    def sample(self, n: int, *, length: int = 1, rng: Any = None) -> list[Floats]:
        """Return n bags of ``length`` points, each (length, d)."""
        one = self._restore(*(value[None] for value in self._values()))
        draws = one.draw(self._draws(n, length), np.random.default_rng(rng))
        return list(draws.reshape(n, length, draws.shape[-1]))


def out_of_range(value: Floats, kind: str) -> NDArray[np.bool_]:
    """Return where a field is not in its range."""
    if kind == "real":
        return np.abs(value) > HIGHEST
    low = value < {"positive": LOWEST, "success": RAREST}.get(kind, 0.0)
    return low | (value > (1.0 if kind in PROBABILITY else HIGHEST))


def refuse_beyond(mean: Floats, who: str, what: str = "means") -> None:
    """Raise where counts of so large a mean, or of what is named instead, cannot be drawn."""
    if (mean > MOST).any():
        where = tuple(int(i) for i in np.argwhere(mean > MOST)[0])
        raise ValueError(
            f"{who}.sample: counts are drawn as 64-bit integers; expected {what} up to {MOST:g}. Got {mean[where]:g} "
            f"at index {where}. Count in larger units."
        )
