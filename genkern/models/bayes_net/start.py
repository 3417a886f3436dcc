"""First guesses of the tables and leaves of a network."""

from __future__ import annotations

import math

import numpy as np

from genkern.data.objects import Packed
from genkern.models.bayes_net.contraction import Codes, offsets_of_tables
from genkern.models.bayes_net.model import BayesNet
from genkern.models.bayes_net.rows import Columns
from genkern.models.estimator import LeafEstimator, one_hot
from genkern.models.fit.streams import Keys, derive, uniforms
from genkern.models.fit.weights import point_weights
from genkern.models.graph.model import Graph
from genkern.models.leaf import Leaf
from genkern.models.mixture.start import divide
from genkern.validation import Floats


def first_network(
    columns: Columns, families: dict[int, LeafEstimator], packed: Packed, keys: Keys, own: bool
) -> BayesNet:
    """Return the network, or the stack of own ones, from which EM starts."""
    tables = _first_tables(columns.graph, keys)
    leaves = _first_leaves(columns, families, packed, keys, own)
    return BayesNet._restore(columns.graph, tables if own else tables[0], tuple(leaves))


def _first_tables(graph: Graph, keys: Keys) -> Floats:
    """Return random rows (from a flat Dirichlet law) where hidden nodes take part, uniform ones elsewhere."""
    starts = offsets_of_tables(graph)
    weights = np.ones((len(keys), starts[-1]))
    hidden = set(graph.hidden)
    for v, size in enumerate(graph.sizes):
        if size == 0:
            continue
        part = weights[:, starts[v] : starts[v + 1]]
        if hidden & {v, *graph.parents[v]}:
            part[:] = -np.log1p(-uniforms(keys[:, None], np.arange(starts[v], starts[v + 1]))) + 1e-3
        rows = part.reshape(len(keys), -1, size)
        part[:] = (rows / rows.sum(axis=-1, keepdims=True)).reshape(part.shape)
    return weights


def _first_leaves(
    columns: Columns, families: dict[int, LeafEstimator], packed: Packed, keys: Keys, own: bool
) -> list[Leaf]:
    """Return leaves fitted to points by the codes of the parents, equal shares where these are missing.

    Hidden parents have shares by k-means of the points of all continuous nodes that have these very hidden parents.
    """
    graph = columns.graph
    codes = columns.codes(packed)
    shares = {v: _code_shares(codes[:, v], graph.sizes[v]) for v in graph.observed if graph.sizes[v]}
    groups: dict[tuple[int, ...], list[int]] = {}
    for v in families:
        groups.setdefault(tuple(p for p in graph.parents[v] if p in graph.hidden), []).append(v)
    for number, (parents, nodes) in enumerate(groups.items()):
        new = [p for p in parents if p not in shares]
        if new:
            sizes = [graph.sizes[p] for p in new]
            parts = [families[v].standardized(columns.points(packed, v), own).values for v in nodes]
            points = packed._replace(values=np.concatenate(parts, axis=1))
            ones = np.ones((packed.n_points, 1))
            found = divide(points, ones, own, math.prod(sizes), derive(keys, 1000 + number), "kmeans")
            joint = found.reshape(-1, *sizes)
            for axis, p in enumerate(new):
                shares[p] = joint.sum(axis=tuple(1 + other for other in range(len(new)) if other != axis))
    leaves = []
    for v, family in families.items():
        weights = point_weights(packed)
        for p in graph.parents[v]:
            weights = (weights[:, :, None] * shares[p][:, None, :]).reshape(packed.n_points, -1)
        leaves.append(family.guess(columns.points(packed, v), weights, own))
    return leaves


def _code_shares(codes: Codes, size: int) -> Floats:
    """Return indicators (N, size) of codes, equal shares where they are missing."""
    return np.where(codes[:, None] < 0, 1.0 / size, one_hot(np.maximum(codes, 0), size))
