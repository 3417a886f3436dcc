"""Frozen values of arrays, compared by content: the base class of models and posteriors."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from genkern.data.describe import Described, Rows, numbers
from genkern.data.digests import make_key
from genkern.data.serialize import register
from genkern.validation import Made

FEW, LINE = 9, 160  # numbers of an array, and letters in all, of a value in a line
MENDED = 1e-6  # relative error that constructors correct in their arguments (sums to one, symmetry)


class Value(Described):
    """Read-only arrays with other fields, or a stack of such values.

    A subclass lists the names of its constructor's arguments in ``_fields`` and passes their checked values to
    ``_freeze``. Equality, hashing, copying, pickling and storing (``genkern.data.serialize``) follow from the content.
    A class whose constructor has other arguments overrides ``_checked``.

    Attributes
    ----------
    shape : tuple of int
        The batch: ``()`` for one model, ``(n,)`` for a stack of n.
    digest : str
        Hexadecimal digest of class and content; equal models have equal digests in every process.
    """

    _fields: ClassVar[tuple[str, ...]]
    _shared: ClassVar[tuple[str, ...]] = ()  # fields shared by all members of a stack, though they may be models

    def _freeze(self, **values: Any) -> None:
        """Store checked values once; arrays are copied, so that the caller cannot change them."""
        for name, value in values.items():
            self._hold(name, _each(value, lambda array: np.array(array, order="C")))

    @classmethod
    def _restore(cls, *values: Any) -> Self:
        """Build a value from fields that need no checking and arrays that nobody else holds or changes."""
        model = object.__new__(cls)
        for name, value in zip(cls._fields, values, strict=True):
            model._hold(name, _each(value, lambda array: np.asarray(array, order="C")))
        return model

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        register(cls)

    def _to_fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._fields}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any], trusted: bool = False) -> Self:
        """Build a value from its fields; those of unknown origin are checked by the constructor."""
        if trusted:
            return cls._restore(*fields.values())
        if tuple(fields) != cls._fields:
            raise ValueError(f"{cls.__name__}: expected the fields {', '.join(cls._fields)}. Got {', '.join(fields)}.")
        checked = cls._checked(*fields.values())
        for name, value in fields.items():
            if not _alike(getattr(checked, name), value):
                raise ValueError(f"{cls.__name__}: '{name}' is not as the constructor would leave it.")
        return cls._restore(*fields.values())

    @classmethod
    def _checked(cls, *fields: Any) -> Self:
        """Return the value that the constructor builds from fields."""
        return cls(**dict(zip(cls._fields, fields, strict=True)))

    def _hold(self, name: str, value: Any) -> None:
        _each(value, lambda array: array.setflags(write=False))
        object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"{type(self).__name__} is a value and cannot be changed: build a new one instead of setting {name!r}."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), tuple(getattr(self, name) for name in self._fields))

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack: that of a single value, unless the class has stacks."""
        return ()

    @property
    def digest(self) -> str:
        """Hexadecimal digest of class and content."""
        return self._once(
            "digest", lambda: make_key(type(self).__name__, *(getattr(self, name) for name in self._fields))
        )

    def _once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what follows from the content alone, made when it is first asked for; nobody may change it."""
        known: dict[Hashable, Any] = self.__dict__.setdefault("_made", {})
        if key not in known:
            known[key] = make()
        made: Made = known[key]
        return made

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Value) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        full, short = (self._in_a_line(few) for few in (FEW, 0))
        return full if len(full) <= LINE else short

    def _in_a_line(self, few: int) -> str:
        """Return class and fields, arrays of up to so many numbers by these, others by their shapes."""
        values = {name: value for name in self._fields if (value := getattr(self, name)) is not None}
        return f"{type(self).__name__}({', '.join(f'{name}={_brief(value, few)}' for name, value in values.items())})"

    def _heading(self) -> str:
        return f"{self._kind()}{f', a stack of {self.shape}' if self.shape else ''}"

    def _kind(self) -> str:
        """Return what it is, or each of its stack: the class, sizes and what it is made of."""
        return f"{type(self).__name__}({', '.join(self._facts())})" if self._facts() else type(self).__name__

    def _facts(self) -> list[str]:
        """Return its sizes, and what it is made of."""
        return []

    def _details(self) -> Rows:
        return [row for name in self._fields if (row := (name, _shown(getattr(self, name))))[1] is not None]

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"{type(self).__name__} is one model, not a stack: it has no len().")
        return self.shape[0]

    def __getitem__(self, index: Any) -> Self:
        """Return the model (or smaller stack) at an index of the batch."""
        if not self.shape:
            raise TypeError(f"{type(self).__name__} is one model, not a stack: it cannot be indexed.")
        return type(self)._restore(*(self._part(name, index) for name in self._fields))

    def _part(self, name: str, index: Any) -> Any:
        """Return a field at an index of the batch; shared fields are returned unchanged."""
        value = getattr(self, name)
        return value if name in self._shared else _slice(value, index)

    @classmethod
    def stack(cls, models: Sequence[Self]) -> Self:
        """Return one stack of equally shaped models, batch ``(len(models),) + shape``."""
        if not models:
            raise ValueError(f"{cls.__name__}.stack needs at least one model. Got an empty list.")
        return cls._restore(
            *(_stacked([getattr(model, name) for model in models], name, name in cls._shared) for name in cls._fields)
        )

    def unstack(self) -> list[Self]:
        """Return the members of a stack along its first axis: ``[stack[0], stack[1], ...]``, but faster."""
        members, n = [], len(self)
        columns = [
            [getattr(self, name)] * n if name in self._shared else _unstacked(getattr(self, name), n)
            for name in self._fields
        ]
        for values in zip(*columns, strict=True):
            model = object.__new__(type(self))
            model.__dict__.update(zip(self._fields, values))
            members.append(model)
        return members


LARGE = 1 << 24  # bytes from which it pays to check whether arrays are contiguous already

AnyValue = TypeVar("AnyValue", bound=Value)


def rebatch(model: AnyValue, batch: tuple[int, ...]) -> AnyValue:
    """Return the members of a stack in a batch of another shape; one axis may be -1."""
    axes = len(model.shape)
    rest = math.prod(model.shape) // max(1, math.prod(size for size in batch if size >= 0))
    shape = tuple(rest if size < 0 else size for size in batch)

    def reshaped(name: str) -> Any:
        value = getattr(model, name)
        return value if name in model._shared else _reshaped(value, shape, axes)

    return model._restore(*map(reshaped, model._fields))


def _reshaped(value: Any, shape: tuple[int, ...], axes: int) -> Any:
    """Return a field, or each part of a tuple, with a batch of so many axes in another shape."""
    if type(value) is tuple:
        return tuple(_reshaped(item, shape, axes) for item in value)
    if isinstance(value, Value):
        return rebatch(value, (*shape, *value.shape[axes:]))
    return _each(value, lambda array: array.reshape((*shape, *array.shape[axes:])))


def _restored(cls: type[Value], values: tuple[Any, ...]) -> Value:
    return cls._restore(*values)


def _each(value: Any, function: Callable[[NDArray[Any]], Any]) -> Any:
    """Return a field with a function applied to it if it is an array, or to each array of a tuple."""
    if type(value) is tuple:
        return tuple(_each(item, function) for item in value)
    return function(value) if isinstance(value, np.ndarray) else value


def _alike(one: Any, other: Any) -> bool:
    """Return whether two fields are of one type and shape, and equal up to rounding."""
    if type(one) is not type(other):
        return False
    if type(one) is tuple:
        return len(one) == len(other) and all(map(_alike, one, other))
    if not isinstance(one, np.ndarray):
        return bool(one == other)
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if np.array_equal(one, other) or one.dtype.kind != "f":
        return np.array_equal(one, other)
    return bool(np.abs(one - other).max() <= MENDED * np.abs(other).max())


def _slice(value: Any, index: Any) -> Any:
    if type(value) is tuple:
        return tuple(_slice(item, index) for item in value)
    return value[index] if isinstance(value, Value) else _each(value, lambda array: np.asarray(array[index]))


def _unstacked(value: Any, n: int) -> Any:
    """Return n members of a field; those of an array are views of it, read-only as it is."""
    if isinstance(value, Value):
        return value.unstack()
    if type(value) is tuple and value:
        return list(zip(*(_unstacked(item, n) for item in value), strict=True))
    return [value[i, ...] for i in range(n)] if isinstance(value, np.ndarray) else [value] * n


def _rejoined(values: list[NDArray[Any]]) -> NDArray[Any]:
    """Return arrays as one, without a copy if ``unstack`` made them from one array."""
    first, step = values[0], values[0].nbytes
    address = first.__array_interface__["data"][0]
    for i, value in enumerate(values):
        together = value.base is not None and value.base is first.base and value.dtype == first.dtype
        if not (together and value.flags.c_contiguous and value.__array_interface__["data"][0] == address + i * step):
            return np.stack(values)
    return np.lib.stride_tricks.as_strided(first, (len(values), *first.shape), (step, *first.strides), writeable=False)


def _stacked(values: list[Any], name: str, shared: bool) -> Any:
    first = values[0]
    if isinstance(first, np.ndarray):
        shapes = {value.shape for value in values}
        if len(shapes) > 1:
            raise ValueError(f"Only models of equal shapes can be stacked. Got '{name}' of shapes {sorted(shapes)}.")
        return _rejoined(values) if len(values) * first.nbytes > LARGE else np.stack(values)
    if isinstance(first, Value) and not shared:
        return type(first).stack(values)
    if type(first) is tuple:
        counts = sorted({len(value) for value in values})
        if len(counts) > 1:
            raise ValueError(f"Only models with equally many '{name}' can be stacked. Got {counts}.")
        return tuple(_stacked(list(items), name, shared) for items in zip(*values, strict=True))
    if any(value != first for value in values):
        raise ValueError(f"Only models with the same '{name}' can be stacked. Got {first!r} and others.")
    return first


def _brief(value: Any, few: int) -> str:
    """Return a field in a line."""
    if type(value) is tuple:
        return f"({', '.join(_brief(item, few) for item in value)}{',' * (len(value) == 1)})"
    if isinstance(value, Value) and type(value).__repr__ is Value.__repr__:
        return value._in_a_line(few)
    small = isinstance(value, np.ndarray) and value.dtype != object and value.size <= few
    return numbers(value) if small else str(value.shape) if isinstance(value, np.ndarray) else repr(value)


def _shown(value: Any) -> Any:
    """Return a field as a description takes it."""
    if isinstance(value, Value):
        return [("of", value._kind()), *value._details()]
    if type(value) is tuple and any(isinstance(item, Value | np.ndarray) for item in value):
        return [(str(place), _shown(item)) for place, item in enumerate(value)]
    return value if isinstance(value, np.ndarray) or value is None else repr(value)
