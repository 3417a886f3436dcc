"""Posteriors of the discrete nodes of a network, given rows, or the states of other nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from genkern.data.objects import Packed
from genkern.models.bayes_net.contraction import GIVEN, HIDDEN, make_plan, offsets_of_tables
from genkern.models.bayes_net.rows import RowTask, check_size
from genkern.models.graph.model import Graph
from genkern.models.leaf import refuse_impossible
from genkern.validation import Floats, check_int


def find_discrete(graph: Graph, name: Any, who: str) -> int:
    """Return the discrete node of a name."""
    v = graph.find(name, who)
    if graph.sizes[v] == 0:
        raise ValueError(f"{who}: node {name!r} is continuous; only discrete nodes have a table of probabilities.")
    return v


def node_posteriors(net: Any, packed: Packed, names: list[Any]) -> list[dict[Any, Floats]]:
    """Return the posteriors (m, states) of nodes of a ``BayesNet`` for the rows of each object, by node."""
    graph, starts = net.graph, offsets_of_tables(net.graph)
    rows, blocks = net.sweep(packed, backward=True)
    chosen = {find_discrete(graph, name, "BayesNet.posterior"): name for name in names}
    tables = {v: np.zeros((len(rows.codes), graph.sizes[v])) for v in chosen}
    logs = np.empty(len(rows.codes))
    for block in blocks:
        logs[block.rows] = block.log_prob
        for piece in block.pieces:
            if piece.node in chosen:
                state = (piece.places - starts[piece.node]) % graph.sizes[piece.node]
                joint = net.values[piece.places] * piece.raw
                np.add.at(tables[piece.node], (block.rows[:, None], state), joint)
    refuse_impossible(rows.per_object(logs, packed), "BayesNet")
    split = {v: np.split(table[rows.inverse], packed.offsets[1:-1]) for v, table in tables.items()}
    return [{chosen[v]: split[v][i] for v in split} for i in range(packed.n_objects)]


def marginal_table(net: Any, nodes: list[Any], evidence: Mapping[Any, Any]) -> Floats:
    """Return the distribution of nodes of a ``BayesNet``, one axis each, given codes or points of others."""
    who, graph, leaves = "BayesNet.marginal", net.graph, net.leaf_stacks()
    codes = np.full((1, len(graph.names)), -1, np.int64)
    logs = {v: np.zeros((1, len(leaf))) for v, leaf in leaves.items()}
    for name, given in evidence.items():
        v = graph.find(name, who)
        if v in leaves:
            logs[v] = leaves[v].log_density(leaves[v].pack([np.reshape(given, (1, -1))]).values)
        elif 0 <= check_int(given, f"evidence[{name!r}]", who) < graph.sizes[v]:
            codes[0, v] = given
        else:
            raise ValueError(f"{who}: node {name!r} has the codes 0, ..., {graph.sizes[v] - 1}. Got {given}.")
    keep = tuple(find_discrete(graph, name, who) for name in nodes)
    if not keep or len(set(keep)) < len(keep) or (codes[0, list(keep)] >= 0).any():
        raise ValueError(f"{who}: 'nodes' must be different nodes without evidence, at least one. Got {nodes!r}.")
    status = tuple(np.where(codes[0] >= 0, GIVEN, HIDDEN).tolist())
    plan = check_size(make_plan(graph, status, True, keep), graph)
    task = RowTask(plan, graph, net.values, None, codes, logs)
    outcome = task.run(backward=False)
    possible = all(task.log_scalar(factor)[0] > -np.inf for factor in plan.scalars)
    if not possible or np.isneginf(outcome.log_prob[0]):
        raise ValueError(f"{who}: the evidence {dict(evidence)!r} has probability zero.")
    table: Floats = outcome.result[0] / outcome.result[0].sum()
    return table
