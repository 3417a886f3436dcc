"""The parameters of somebody's model: where they are, their names, and the model at others."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from genkern.models.adapt.calls import plain
from genkern.validation import Floats

Leaf = tuple[str, Any]


class Parameters:
    """Numbers, arrays or tensors by which log-likelihoods are derived, in the order of their names.

    Parameters
    ----------
    model : object
    given : list of str or None
        Names of attributes. The default is the attribute ``parameters``, which is such a list, or holds the values: an
        array, or dicts and lists of arrays; then the parameters of a torch module, and attributes that require a
        gradient.
    """

    def __init__(self, model: Any, given: Sequence[str] | None):
        self.model, who = model, type(model).__qualname__
        self.is_module = given is None and callable(getattr(model, "named_parameters", None))
        own = None if self.is_module else getattr(model, "parameters", None)
        names = given if given is not None else own if _are_names(own) else None
        self.tree: dict[str, Any] = {}
        if self.is_module:
            self.tree = {name: value for name, value in model.named_parameters() if value.requires_grad}
        elif names is not None:
            missing = [name for name in names if not hasattr(model, name)]
            if missing:
                raise ValueError(f"adapt: {who} has no attribute {missing[0]!r}, which 'parameters' names.")
            self.tree = {name: getattr(model, name) for name in names}
        elif own is not None:
            self.tree = {"": own() if callable(own) else own}
        else:
            self.tree = {
                name: v for name, v in _attributes(model).items() if getattr(v, "requires_grad", False) is True
            }
        self.leaves = list(_leaves(self.tree, ""))
        for name, value in self.leaves:
            if plain(value).dtype.kind not in "fiu":
                raise TypeError(f"adapt: the parameter {name!r} of {who} must be numbers. Got {value!r:.60}.")

    @property
    def home(self) -> str | None:
        """The package whose arrays they are: "torch" or "jax"; None for numbers and NumPy's arrays."""
        homes = {type(value).__module__.partition(".")[0] for _, value in self.leaves}
        return "torch" if "torch" in homes else "jax" if homes & {"jax", "jaxlib"} else None

    @property
    def names(self) -> list[str]:
        """Names of all numbers: ``mean`` of a number, ``mean[0,1]`` of a matrix."""
        return [
            name + (f"[{','.join(map(str, index))}]" if index else "")
            for name, value in self.leaves
            for index in np.ndindex(np.shape(value))
        ]

    def vector(self) -> Floats:
        """Return all numbers, (p,)."""
        return np.concatenate([np.zeros(0), *(plain(value).ravel().astype(np.float64) for _, value in self.leaves)])

    def split(self, vector: Floats) -> list[Any]:
        """Return the values of the leaves at a vector (p,), each of the kind that it had."""
        parts = np.split(vector, np.cumsum([math.prod(np.shape(value)) for _, value in self.leaves])[:-1])
        return [_like(part.reshape(np.shape(value)), value) for part, (_, value) in zip(parts, self.leaves)]

    def at(self, leaves: list[Any]) -> Any:
        """Return the model at other values."""
        if self.is_module:
            moved = copy.deepcopy(self.model)
            for (name, _), value in zip(self.leaves, leaves):
                dict(moved.named_parameters())[name].data = value
            return moved
        values = iter(leaves)
        tree = {name: _rebuilt(part, values) for name, part in self.tree.items()}
        whole = tree.get("", tree)
        if callable(getattr(self.model, "with_parameters", None)):
            return self.model.with_parameters(whole)
        moved = copy.copy(self.model)
        for name, part in tree.items():
            setattr(moved, name or "parameters", part)
        return moved


def _attributes(model: Any) -> dict[str, Any]:
    return dict(vars(model)) if hasattr(model, "__dict__") else {}


def _are_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(item, str) for item in value)


def _leaves(tree: Any, name: str) -> Iterator[Leaf]:
    if isinstance(tree, dict | list | tuple):
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
        for key, part in items:
            yield from _leaves(part, f"{name}.{key}" if name else str(key))
    else:
        yield name or "theta", tree


def _rebuilt(tree: Any, values: Iterator[Any]) -> Any:
    if isinstance(tree, dict):
        return type(tree)((key, _rebuilt(part, values)) for key, part in tree.items())
    if isinstance(tree, list | tuple):
        parts = [_rebuilt(part, values) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return next(values)


def _like(array: Any, value: Any) -> Any:
    """Return an array as a tensor where the value was one, and as a number where it was one."""
    if hasattr(value, "detach"):
        return value.detach().new_tensor(array)
    return array if np.shape(value) else array[()]
