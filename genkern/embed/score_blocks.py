"""Named blocks of Fisher scores, and what may stand beside them: how often hidden states are visited."""

from __future__ import annotations

import itertools
import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.embed.states import indices
from genkern.models.bayes_net import BayesNet
from genkern.models.class_mixture import ClassMixture
from genkern.models.factorial import FactorialHMM
from genkern.models.hmm import HMM
from genkern.models.leaf import Leaf
from genkern.models.linear_gaussian_net import LinearGaussianNet
from genkern.models.mixture import Mixture
from genkern.models.switching import SwitchingLDS
from genkern.objects import Packed
from genkern.validation import Floats

OCCUPANCY = "occupancy"
PART = re.compile(r"^(emissions\.)?(components\.|systems\[\d+\]\.)?")  # what stands before a parameter's own name
COMMON = {"starts": "start", "mean": "means", "variance": "variances", "cov": "variances"}  # one name in all models

Columns = slice | NDArray[np.int64]


class Layout(NamedTuple):
    """Which scores are features, in which order.

    Attributes
    ----------
    names : list of p + S str
        Names of all p parameters and then of S expected visits.
    source : (width,) int
        For each feature its place among these; visits are counted from the end, -S to -1.
    blocks : dict of str to slice or index array
        The features of each block; index arrays only where they are not adjacent.
    """

    names: list[str]
    source: NDArray[np.int64]
    blocks: dict[str, Columns]


def layout_of(model: Any, chosen: Any) -> Layout:
    """Return the layout of the chosen blocks one after the other, or (None) of all parameters as the model has them."""
    if not hasattr(model, "log_prob_grad"):
        raise TypeError(
            f"FisherScore: {type(model).__name__} has no scores, derivatives by parameters (log_prob_grad)."
        )
    visits = [f"{OCCUPANCY}[{index}]" for index in _hidden_states(model)]
    homes = np.array([*_homes(model), *[OCCUPANCY] * len(visits)], dtype=object)
    count = len(homes) - len(visits)
    known = list(dict.fromkeys(homes))
    names = [*model.parameter_names, *visits]
    if chosen is None:
        blocks = {name: _columns(np.flatnonzero(homes[:count] == name)) for name in dict.fromkeys(homes[:count])}
        return Layout(names, np.arange(count), blocks)
    picked = _check(chosen, known, type(model).__name__)
    place = np.arange(len(homes)) - len(homes) * (np.arange(len(homes)) >= count)
    pieces = [place[homes == name] for name in picked]
    ends = np.cumsum([len(piece) for piece in pieces]).tolist()
    bounds = itertools.pairwise([0, *ends])
    return Layout(names, np.concatenate(pieces), {name: slice(*pair) for name, pair in zip(picked, bounds)})


def scores_of(model: Any, packed: Packed, coordinates: str, source: NDArray[np.int64]) -> Floats:
    """Return derivatives and visits (n_objects, width) of a block of objects, from one pass for both."""
    if (source >= 0).all():
        table: Floats = model.log_prob_grad(packed, coordinates)
    elif isinstance(model, ClassMixture):
        table = np.concatenate([model.log_prob_grad(packed, coordinates), model.posterior(packed)], axis=1)
    else:
        statistics = model.statistics(packed)
        table = _visits(model, statistics)
        if (source >= 0).any():
            table = np.concatenate([_gradient(model, statistics, coordinates), table], axis=1)
    whole = np.array_equal(source, np.arange(table.shape[1]))
    return table if whole else table[:, source]


def _homes(model: Any) -> list[str]:
    """Return the block that each parameter belongs to."""
    names = model.parameter_names
    if isinstance(model, ClassMixture):
        return ["priors"] * len(model.priors) + [home for part in model.models for home in _homes(part)]
    if isinstance(model, BayesNet):  # one table per node, whose name may have any characters
        return [name.rpartition("[")[0] for name in names]
    if isinstance(model, LinearGaussianNet):
        names = [name.rpartition(".")[2] for name in names]
    fields = [PART.sub("", name, count=1).split("[", 1)[0] for name in names]
    return [COMMON.get(field, field) for field in fields]


def _hidden_states(model: Any) -> list[str]:
    """Return the indices of the states, components or classes that objects visit, none if nothing is hidden."""
    if isinstance(model, HMM) and isinstance(model.emissions, Mixture):
        return [f"{i},{k}" for i in range(model.n_states) for k in range(model.emissions.n_components)]
    if isinstance(model, HMM):
        return indices([model.n_states])
    if isinstance(model, FactorialHMM):
        return indices(list(model.n_states))
    if isinstance(model, SwitchingLDS):
        return indices([model.n_regimes])
    if isinstance(model, Mixture):
        return indices([model.n_components])
    return list(map(str, model.labels)) if isinstance(model, ClassMixture) else []


def _visits(model: Any, statistics: Any) -> Floats:
    """Return expected visits (G, S) from the raw derivatives of a pass."""
    if isinstance(model, Mixture):
        return model.weights * statistics["weights"]
    if isinstance(model, HMM) and isinstance(model.emissions, Mixture):
        pairs = model.emissions.weights * statistics["emissions.weights"]
        return pairs.reshape(len(pairs), -1)
    if isinstance(model, FactorialHMM):
        chains = [
            start * statistics[f"starts[{c}]"] + (rows * statistics[f"transitions[{c}]"]).sum(axis=1)
            for c, (start, rows) in enumerate(zip(model.starts, model.transitions))
        ]
        return np.concatenate(chains, axis=1)
    visits: Floats = model.start * statistics["start"] + (model.transitions * statistics["transitions"]).sum(axis=1)
    return visits


def _gradient(model: Any, statistics: Any, coordinates: str) -> Floats:
    """Return derivatives (G, p) from the statistics of a pass."""
    if isinstance(model, Leaf):
        blocks = {name: block[:, None] for name, block in statistics.blocks.items()}
        return model.stack([model]).gradient(blocks, coordinates)
    slopes: Floats = model.gradient(statistics, coordinates)
    return slopes


def _columns(index: NDArray[np.int64]) -> Columns:
    """Return an increasing index as a slice where it has no gaps."""
    first, last = int(index[0]), int(index[-1]) + 1
    return slice(first, last) if last - first == len(index) else index


def _check(chosen: Any, known: list[str], model: str) -> list[str]:
    """Return the names of blocks if all are known and none is there twice."""
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
