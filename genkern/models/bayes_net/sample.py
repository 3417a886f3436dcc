"""Rows drawn from a network, node by node."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.models.graph.model import Graph
from genkern.models.leaf import Leaf


def draw_rows(graph: Graph, laws: list[Leaf], count: int, rng: np.random.Generator) -> NDArray[Any]:
    """Return rows (count, columns) of the observed nodes, given the distributions of all, one per state of parents."""
    states: dict[int, NDArray[Any]] = {}
    for v in graph.order:
        which = np.zeros(count, np.int64)
        for p in graph.parents[v]:
            which = which * graph.sizes[p] + states[p][:, 0]
        drawn = laws[v].draw(which, rng)
        drawn = drawn.reshape(count, math.prod(drawn.shape[1:]))
        states[v] = drawn.astype(np.int64 if graph.sizes[v] else np.float64)
    return np.concatenate([states[v] for v in graph.observed], axis=1)
