"""Models by the thousand: lists sorted into stacks of like models."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.models.base import adapt_hint
from genkern.models.value import Value, rebatch
from genkern.validation import Floats


class Group(NamedTuple):
    """A stack of batch (n,) and the places (n,), ascending, of its members in the collection."""

    stack: Any
    places: NDArray[np.int64]


class Collection:
    """Models as a few stacks of equally shaped ones; slices are cheap, so it is made once and cut into blocks.

    Parameters
    ----------
    groups : list of Group
        The stacks; together their places are 0, ..., n - 1.
    shape : tuple of int
        Batch of what it was made from: ``(n,)`` for a list of n models.
    whole : tuple of Collection and int, optional
        What it is a slice of, and from where.
    """

    def __init__(self, groups: list[Group], shape: tuple[int, ...], whole: tuple[Collection, int] | None = None):
        self.groups, self.shape, self.whole = groups, shape, whole
        self._diagonals: dict[Any, Floats] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __getitem__(self, rows: slice) -> Collection:
        """Return the models at a range of places (step 1)."""
        start, stop, _ = rows.indices(len(self))
        parts = []
        for stack, places in self.groups:
            low, high = np.searchsorted(places, (start, stop))
            if low < high:
                parts.append(Group(stack[low:high], places[low:high] - start))
        whole, offset = self.whole or (self, 0)
        return Collection(parts, (max(stop - start, 0),), (whole, offset + start))

    def __reduce__(self) -> tuple[Any, ...]:
        """Let a slice travel to other processes without its whole, but with its part of the diagonals."""
        whole, start = self.whole or (self, 0)
        diagonals = {key: values[start : start + len(self)] for key, values in whole._diagonals.items()}
        return _restored, (self.groups, self.shape, diagonals)

    def diagonal(self, key: Any, compute: Callable[[Collection], Floats]) -> Floats:
        """Return ``compute(self)``, (n,), remembered by key; slices ask the whole, so that blocks share it."""
        if self.whole is not None:
            whole, offset = self.whole
            return whole.diagonal(key, compute)[offset : offset + len(self)]
        with self._lock:
            if key not in self._diagonals:
                self._diagonals[key] = compute(self)
            return self._diagonals[key]


def _restored(groups: list[Group], shape: tuple[int, ...], diagonals: dict[Any, Floats]) -> Collection:
    """Return a collection that knows diagonals already."""
    collection = Collection(groups, shape)
    collection._diagonals.update(diagonals)
    return collection


def as_collection(models: Any, who: str) -> Collection:
    """Return a model, a stack, or a list of single models as a collection."""
    if isinstance(models, Collection):
        return models
    if isinstance(models, Value):
        stack = rebatch(models, (math.prod(models.shape),))
        return Collection([Group(stack, np.arange(len(stack)))], models.shape)
    models = models.to_list() if hasattr(models, "to_list") else models  # a column
    if not isinstance(models, Sequence | np.ndarray) or isinstance(models, str):
        raise TypeError(
            f"{who}: expected a model, a stack or a list of models. Got {type(models).__name__}.{adapt_hint(models)}"
        )
    if len(models) == 0:
        raise ValueError(f"{who}: needs at least one model. Got an empty list.")
    members: dict[Any, list[int]] = {}
    for i, model in enumerate(models):
        if not isinstance(model, Value):
            remedy = adapt_hint(model) or " FitEach turns objects into models."
            raise TypeError(f"{who}: a list must hold models. Got {type(model).__name__} at index {i};{remedy}")
        members.setdefault(_likeness(model), []).append(i)
    groups = []
    for places in members.values():
        first = models[places[0]]
        if first.shape:
            raise ValueError(
                f"{who}: a list must hold single models. Got a stack of {first.shape} at index {places[0]}."
            )
        groups.append(Group(type(first).stack([models[i] for i in places]), np.array(places)))
    return Collection(groups, (len(models),))


def _likeness(model: Value) -> tuple[Any, ...]:
    """Return what two models must share to be stacked: class, array shapes, and all that is not an array."""
    parts: list[Any] = [type(model)]
    for name in model._fields:
        value = getattr(model, name)
        parts.append(value if name in model._shared else _form(value))
    return tuple(parts)


def _form(value: Any) -> Any:
    """Return what a field must have in common with another."""
    if type(value) is tuple:
        return tuple(map(_form, value))
    if isinstance(value, Value):
        return _likeness(value)
    return value.shape if isinstance(value, np.ndarray) else value
