"""Named blocks of Fisher scores, and expected visits to hidden states."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.data.objects import Packed
from genkern.models.base import COORDINATES, Model, Statistics
from genkern.models.families import natural
from genkern.models.information import InformationBlocks
from genkern.validation import Floats, check_option

OCCUPANCY = "occupancy"
LENGTH_POWER = {None: 0.0, "length": 1.0, "sqrt": 0.5}

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


def layout_of(model: Any, chosen: Any, coordinates: str = "softmax") -> Layout:
    """Return the layout of the chosen blocks in order, or (None) of all parameters in the model's order.

    The priors of two classes are one parameter, that of the second, and have one column, unless coordinates are raw;
    in natural coordinates that of the first is never free.
    """
    if not isinstance(model, Model):
        raise TypeError(
            f"FisherScore: {type(model).__name__} has no scores, derivatives by parameters (log_prob_grad)."
        )
    visits, classes = len(model.hidden_states), len(model.class_models)
    homes = np.array([*blocks_in(model, coordinates), *[OCCUPANCY] * visits], dtype=object)
    if classes and (coordinates == "natural" or (classes == 2 and coordinates != "raw")):
        homes[0] = None  # the prior of the first class, with which parameters begin
    place = np.arange(len(homes)) - len(homes) * (np.arange(len(homes)) >= len(homes) - visits)
    return Layout(len(homes), *choose(homes, place, chosen, f"blocks of {type(model).__name__}", "FisherScore"))


def choose(
    homes: NDArray[Any], place: NDArray[np.int64], chosen: Any, what: str, who: str
) -> tuple[NDArray[np.int64], dict[str, Columns]]:
    """Return the places of columns of the chosen blocks in order, or (None) of all that are >= 0, and their blocks.

    ``homes`` are the blocks of columns, None for those that nobody may choose.
    """
    if chosen is None:
        kept = np.array([home is not None for home in homes]) & (place >= 0)
        own = homes[kept]
        return place[kept], {name: _columns(np.flatnonzero(own == name)) for name in dict.fromkeys(own)}
    picked = _check(chosen, [name for name in dict.fromkeys(homes) if name is not None], what, who)
    pieces = [place[homes == name] for name in picked]
    ends = np.cumsum([len(piece) for piece in pieces]).tolist()
    return np.concatenate(pieces), {name: slice(*b) for name, b in zip(picked, itertools.pairwise([0, *ends]))}


def parameter_names_in(model: Model, coordinates: str, who: str) -> list[str]:
    """Return the names of parameters in coordinates, refusing natural ones of models that have none."""
    if coordinates != "natural":
        return model.parameter_names
    if model.class_models:
        parts = [
            [f"{c}.{name}" for name in parameter_names_in(m, coordinates, who)] for c, m in model.class_models.items()
        ]
        return [*(f"prior[{label}]" for label in model.class_models), *itertools.chain(*parts)]
    components = getattr(model, "components", None)
    if components is None:
        raise TypeError(
            f"{who}: coordinates='natural' needs mixtures of isotropic Gaussians, such as "
            f"MixtureEstimator(2, GaussianEstimator('isotropic')). Got {type(model).__name__}; use 'softmax'."
        )
    natural.require_isotropic(components)
    return natural.parameter_names(components)


def blocks_in(model: Model, coordinates: str) -> list[str]:
    """Return the block of each parameter in coordinates: "natural" is that of natural parameters of components."""
    if coordinates != "natural":
        return model.blocks
    if model.class_models:
        inside = (blocks_in(each, coordinates) for each in model.class_models.values())
        return [*["priors"] * len(model.class_models), *itertools.chain(*inside)]
    names = parameter_names_in(model, coordinates, "FisherScore")
    return ["weights" if name.startswith("weights") else "natural" for name in names]


def names_of(model: Model, coordinates: str = "softmax") -> list[str]:
    """Return the names of all parameters, and then of all expected visits."""
    names = parameter_names_in(model, coordinates, "FisherScore")
    return [*names, *(f"{OCCUPANCY}[{name}]" for name in model.hidden_states)]


def check_scores(coordinates: str, length_norm: str | None, who: str) -> None:
    """Check the options that all embeddings by derivatives share."""
    check_option(coordinates, (*COORDINATES, "natural"), "coordinates", who)
    if length_norm is not None:
        check_option(length_norm, [name for name in LENGTH_POWER if name], "length_norm", who)


def scores_of(model: Model, packed: Packed, coordinates: str, source: NDArray[np.int64]) -> Floats:
    """Return derivatives and visits (n_objects, width) of a batch of objects, from one pass for both."""
    if source.min(initial=0) >= 0 and not (coordinates == "natural" and model.class_models):
        # some models have a faster method for derivatives alone
        return _pick(free_priors(model, model.log_prob_grad(packed, coordinates), coordinates), source)
    return scores_from(model, model.statistics(packed), coordinates, source)


def scores_from(model: Model, statistics: Statistics, coordinates: str, source: NDArray[np.int64]) -> Floats:
    """Return derivatives and visits (G, width), a linear function of statistics."""
    parts = []
    if (source >= 0).any():
        parts.append(free_priors(model, model.gradient(statistics, coordinates), coordinates))
    if (source < 0).any():
        parts.append(model.visits(statistics))
    return _pick(np.concatenate(parts, axis=1), source)


def free_priors(model: Model, scores: Floats, coordinates: str) -> Floats:
    """Return scores with derivatives by free priors, the first being one minus the others, in natural coordinates.

    So it is in ratio coordinates of two classes.
    """
    count = len(model.class_models)
    if coordinates == "natural" or (coordinates == "ratio" and count == 2):
        scores[:, 1:count] -= scores[:, :1]
    return scores


def information_of(model: Model, lengths: NDArray[np.int64], coordinates: str) -> InformationBlocks:
    """Return the information of all parameters, that of a prior as ``free_priors`` has it."""
    pairs = model.information(lengths, coordinates)
    if coordinates == "ratio" and len(model.class_models) == 2:
        pairs[0] = np.array([1]), np.array([[1.0 / model.priors.prod()]])  # type: ignore[attr-defined]
    return pairs


def _pick(table: Floats, source: NDArray[np.int64]) -> Floats:
    """Return the columns of a layout, without a copy if they are all."""
    count = table.shape[1]
    return table if len(source) == count and np.array_equal(source, np.arange(count)) else table[:, source]


def _columns(index: NDArray[np.int64]) -> Columns:
    """Return an increasing index as a slice where it has no gaps."""
    first, last = int(index[0]), int(index[-1]) + 1
    return slice(first, last) if last - first == len(index) else index


def _check(chosen: Any, known: list[str], what: str, who: str) -> list[str]:
    """Return the names of blocks if all are known and different."""
    listed = ", ".join(map(repr, known))
    if isinstance(chosen, str) or not hasattr(chosen, "__iter__"):
        raise ValueError(f"{who}: 'blocks' must be a list of names among {listed}, or None. Got {chosen!r}.")
    picked = list(chosen)
    unknown = [name for name in picked if name not in known]
    if unknown or not picked or len(set(picked)) < len(picked):
        raise ValueError(f"{who}: 'blocks' must name {what}, each once. It has {listed}. Got {picked!r}.")
    return picked
