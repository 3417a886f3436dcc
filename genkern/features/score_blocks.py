"""Named blocks of Fisher scores, and expected visits to hidden states."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.data.objects import Packed
from genkern.models.base import Model, Statistics
from genkern.validation import Floats

OCCUPANCY = "occupancy"

Columns = slice | NDArray[np.int64]


class Layout(NamedTuple):
    """Which scores are features, in which order.

    Attributes
    ----------
    total : int
        The number of all p parameters and S expected visits.
    source : (width,) int
        The index of each feature in ``names``; visits are counted from the end, -S to -1.
    blocks : dict of str to slice or index array
        The features of each block; index arrays only where they are not adjacent.
    """

    total: int
    source: NDArray[np.int64]
    blocks: dict[str, Columns]


def layout_of(model: Any, chosen: Any) -> Layout:
    """Return the layout of the chosen blocks in order, or (None) of all parameters in the model's order."""
    if not isinstance(model, Model):
        raise TypeError(
            f"FisherScore: {type(model).__name__} has no scores, derivatives by parameters (log_prob_grad)."
        )
    visits = len(model.hidden_states)
    homes = np.array([*model.blocks, *[OCCUPANCY] * visits], dtype=object)
    count = len(homes) - visits
    known = list(dict.fromkeys(homes))
    if chosen is None:
        blocks = {name: _columns(np.flatnonzero(homes[:count] == name)) for name in dict.fromkeys(homes[:count])}
        return Layout(len(homes), np.arange(count), blocks)
    picked = _check(chosen, known, type(model).__name__)
    place = np.arange(len(homes)) - len(homes) * (np.arange(len(homes)) >= count)
    pieces = [place[homes == name] for name in picked]
    ends = np.cumsum([len(piece) for piece in pieces]).tolist()
    bounds = itertools.pairwise([0, *ends])
    return Layout(len(homes), np.concatenate(pieces), {name: slice(*pair) for name, pair in zip(picked, bounds)})


def names_of(model: Model) -> list[str]:
    """Return the names of all parameters, and then of all expected visits."""
    return [*model.parameter_names, *(f"{OCCUPANCY}[{name}]" for name in model.hidden_states)]


def scores_of(model: Model, packed: Packed, coordinates: str, source: NDArray[np.int64]) -> Floats:
    """Return derivatives and visits (n_objects, width) of a batch of objects, from one pass for both."""
    if (source >= 0).all():  # some models have a faster method for derivatives alone
        return _pick(model.log_prob_grad(packed, coordinates), source)
    return scores_from(model, model.statistics(packed), coordinates, source)


def scores_from(model: Model, statistics: Statistics, coordinates: str, source: NDArray[np.int64]) -> Floats:
    """Return derivatives and visits (G, width), a linear function of statistics."""
    parts = [model.gradient(statistics, coordinates)] if (source >= 0).any() else []
    if (source < 0).any():
        parts.append(model.visits(statistics))
    return _pick(np.concatenate(parts, axis=1), source)


def _pick(table: Floats, source: NDArray[np.int64]) -> Floats:
    """Return the columns of a layout, without a copy if they are all."""
    return table if np.array_equal(source, np.arange(table.shape[1])) else table[:, source]


def _columns(index: NDArray[np.int64]) -> Columns:
    """Return an increasing index as a slice where it has no gaps."""
    first, last = int(index[0]), int(index[-1]) + 1
    return slice(first, last) if last - first == len(index) else index


def _check(chosen: Any, known: list[str], model: str) -> list[str]:
    """Return the names of blocks if all are known and different."""
    listed = ", ".join(map(repr, known))
    if isinstance(chosen, str) or not hasattr(chosen, "__iter__"):
        raise ValueError(f"FisherScore: 'blocks' must be a list of names among {listed}, or None. Got {chosen!r}.")
    picked = list(chosen)
    unknown = [name for name in picked if name not in known]
    if unknown or not picked or len(set(picked)) < len(picked):
        raise ValueError(
            f"FisherScore: 'blocks' must name blocks of {model}, each once. It has {listed}. Got {picked!r}."
        )
    return picked
