"""Continuous nodes of a network: one distribution of a leaf family for each joint state of the parents."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.data.objects import Packed, as_alphabet
from genkern.models.bayes_net.rows import Columns, parent_states
from genkern.models.families.categorical import Categorical
from genkern.models.graph.model import Graph
from genkern.models.leaf import Leaf
from genkern.models.mixture.model import Mixture
from genkern.models.value import rebatch
from genkern.validation import Floats


def check_continuous(graph: Graph, who: str) -> None:
    """Raise for continuous nodes, those of size zero, that have children or are hidden."""
    for v, name in enumerate(graph.names):
        for p in graph.parents[v]:
            if graph.sizes[p] == 0:
                raise ValueError(
                    f"{who}: node {graph.names[p]!r} is continuous and has the child {name!r}; only nodes without "
                    "children can be. Turn the edge around, bin the node, or use a LinearGaussianNet."
                )
        if graph.sizes[v] == 0 and v not in graph.observed:
            raise ValueError(
                f"{who}: node {name!r} is continuous and hidden. Without children it changes nothing: leave it out, "
                "or observe it."
            )


def flat_leaf(leaf: Any, graph: Graph, v: int, who: str) -> Leaf:
    """Return the distributions of a continuous node as a stack of one axis over the joint states of its parents."""
    name, sizes = graph.names[v], tuple(graph.sizes[p] for p in graph.parents[v])
    if getattr(leaf, "alphabet", None) is not None:
        raise TypeError(
            f"{who}: the family of node {name!r}, {type(leaf).__name__}, is one of symbols; give a discrete node by "
            "its table of probabilities."
        )
    if leaf.shape != sizes:
        raise ValueError(
            f"{who}: the leaf of node {name!r} must be a stack of batch {sizes}, one distribution for each joint state "
            f"of its parents {[graph.names[p] for p in graph.parents[v]]!r}. Got batch {leaf.shape}."
        )
    return rebatch(leaf, (parent_states(graph, v),))


def width_of(leaf: Any) -> int:
    """Return the number of columns of a point."""
    one = leaf.components if isinstance(leaf, Mixture) else leaf
    return int(getattr(one, one._fields[0]).shape[-1])


def log_densities(columns: Columns, leaves: dict[int, Leaf], packed: Packed) -> dict[int, Floats]:
    """Return the log densities (N, k) of the points of every continuous node for all joint states of its parents."""
    return {v: leaf._log_densities(columns.points(packed, v)) for v, leaf in leaves.items()}


def join_laws(tables: dict[int, Floats], leaves: dict[int, Leaf]) -> list[Leaf]:
    """Return the families of all nodes: a table is a stack of categorical distributions."""
    rows = {v: table.reshape(-1, table.shape[-1]) for v, table in tables.items()}
    laws = {v: Categorical._restore(probs, as_alphabet(probs.shape[1])) for v, probs in rows.items()} | leaves
    return [laws[v] for v in range(len(laws))]


def split_laws(laws: list[Any]) -> tuple[Floats, tuple[Leaf, ...]]:
    """Return the tables of the discrete nodes, flat, and the leaves of the continuous ones."""
    tables = [law.probs.ravel() for law in laws if isinstance(law, Categorical)]
    return np.concatenate([np.zeros(0), *tables]), tuple(law for law in laws if not isinstance(law, Categorical))
