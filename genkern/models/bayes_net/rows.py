"""Rows of evidence on a discrete network: encoded, grouped by their observed nodes, and computed in batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.data.intake import locate
from genkern.data.objects import Packed
from genkern.models.bayes_net.contraction import (
    BATCH_NUMBERS,
    GIVEN,
    HIDDEN,
    LARGEST,
    MIXED,
    Codes,
    Contracted,
    ContractionPlan,
    contract,
    make_plan,
)
from genkern.models.graph.model import Graph, pack_rows, row_keys, unique_patterns
from genkern.validation import Floats

GROUP_COST = 2e5  # multiplications, per node, that take as long as planning and running one more group of rows


class Piece(NamedTuple):
    """Derivatives (R, k) of the rows' log-probabilities by the parameters at offsets (R, k) of one node's table."""

    node: int
    places: Codes
    raw: Floats


class RowDerivatives(NamedTuple):
    """Some rows (R,), their log-probabilities (R,), and the derivatives by every table."""

    rows: NDArray[np.int64]
    log_prob: Floats
    pieces: list[Piece]


class RowTask(NamedTuple):
    """A plan for rows of codes (R, n_nodes) under parameters (p,), or (models, p) and the model (R,) of each row."""

    plan: ContractionPlan
    graph: Graph
    values: Floats
    models: NDArray[np.int64] | None
    codes: Codes

    def take(self, places: Codes) -> Floats:
        """Return the parameters at offsets (R, k)."""
        taken: Floats = self.values[places] if self.models is None else self.values[self.models[:, None], places]
        return taken

    def run(self, backward: bool) -> Contracted:
        """Return the outcome of the contractions of the plan."""
        plan, codes = self.plan, self.codes
        if len(codes) == 1:  # NumPy sums a single row in another order, which would change the last digit
            models = None if self.models is None else self.models.repeat(2)
            log_prob, result, raw = self._replace(codes=codes.repeat(2, axis=0), models=models).run(backward)
            return Contracted(log_prob[:1], result[:1], [block[:1] for block in raw])
        operands = []
        for factor, batched in zip(plan.factors, plan.batched):
            cut = self.take(factor.place(codes)) if batched else self.values[factor.cells]
            operands.append(cut.reshape((-1, *factor.shape) if batched else factor.shape))
        for v in plan.masks:
            states = np.arange(self.graph.sizes[v])
            operands.append(((codes[:, v, None] == states) | (codes[:, v, None] < 0)).astype(np.float64))
        if len(operands) == 1:
            operands.append(np.ones(()))
        return contract(plan, operands, len(codes), backward)


class DistinctRows(NamedTuple):
    """Distinct rows of many objects.

    codes (U, n_nodes), -1 where unknown; models (U,) the member of a stack to which each belongs, None if there is but
    one model; inverse (N,) the distinct row of each row; order (N,) and bounds (U + 1,): rows
    order[bounds[u]:bounds[u + 1]] are equal to u.
    """

    codes: Codes
    models: NDArray[np.int64] | None
    inverse: NDArray[np.int64]
    order: NDArray[np.int64]
    bounds: NDArray[np.int64]

    def occurrences(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return for distinct rows (R,) all that equal them: indices into ``rows``, and into the N rows."""
        counts = self.bounds[rows + 1] - self.bounds[rows]
        local = np.repeat(np.arange(len(rows)), counts)
        step = np.arange(len(local)) - np.repeat(np.cumsum(counts) - counts, counts)
        return local, self.order[self.bounds[rows][local] + step]


def pack_codes(X: Any, graph: Graph, who: str) -> Packed:
    """Return bags of rows of codes, NaN where missing, refusing codes that are no states."""
    packed = pack_rows(X, len(graph.observed), who)
    values = packed.values
    sizes = np.array([graph.sizes[v] for v in graph.observed])
    wrong = ~np.isnan(values) & ~((values >= 0) & (values < sizes) & (values == np.floor(values)))
    if wrong.any():
        row, column = np.argwhere(wrong)[0].tolist()
        index, position = locate(packed.offsets, row)
        name = graph.names[graph.observed[column]]
        raise ValueError(
            f"{who}: object {index}, position {position}, column {column}: node {name!r} has the codes 0, ..., "
            f"{sizes[column] - 1}, and NaN where it is missing. Got {values[row, column]:g}."
        )
    return packed


def distinct_rows(packed: Packed, graph: Graph, own: bool) -> DistinctRows:
    """Return the distinct rows of all objects together or, if every object has its own model, of each."""
    codes = np.where(np.isnan(packed.values), -1, packed.values).astype(np.int64)
    owners = packed.owners
    columns = np.column_stack([owners, codes]) if own else codes
    keys = row_keys(columns, [packed.n_objects] * own + [graph.sizes[v] for v in graph.observed])
    _, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    full = np.full((len(first), len(graph.names)), -1, np.int64)
    full[:, graph.observed] = codes[first]
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    order = np.argsort(inverse, kind="stable")
    return DistinctRows(full, owners[first] if own else None, inverse, order, bounds)


def sweep(graph: Graph, values: Floats, rows: DistinctRows, backward: bool) -> Iterator[RowDerivatives]:
    """Yield batches of rows with log-probabilities and derivatives under parameters ``values``, (p,) or (models, p)."""
    shared = rows.models is None
    for status, group in _groups(graph, rows.codes, shared):
        plan = check_size(make_plan(graph, status, shared), graph)
        size = max(2, BATCH_NUMBERS // plan.largest)
        for start in range(0, len(group), size):
            part = group[start : start + size]
            models = None if rows.models is None else rows.models[part]
            yield _evaluate(RowTask(plan, graph, values, models, rows.codes[part]), part, backward)


def _groups(graph: Graph, codes: Codes, shared: bool) -> list[tuple[tuple[int, ...], NDArray[np.int64]]]:
    """Return groups of rows with the status of all nodes: those with the same observed nodes, or all if cheaper."""
    known = codes >= 0
    patterns = unique_patterns(known)
    if len(patterns) > 1:
        merged = tuple(np.where(known.all(axis=0), GIVEN, np.where(known.any(axis=0), MIXED, HIDDEN)).tolist())
        plan = make_plan(graph, merged, shared)
        if plan.largest <= LARGEST and plan.cost * len(codes) <= GROUP_COST * len(graph.names) * len(patterns):
            return [(merged, np.arange(len(codes)))]
    return [(tuple(np.where(pattern, GIVEN, HIDDEN).tolist()), group) for pattern, group in patterns]


def check_size(plan: ContractionPlan, graph: Graph) -> ContractionPlan:
    """Return the plan, refusing tensors that are too large."""
    if plan.largest > LARGEST:
        raise ValueError(
            f"BayesNet: exact inference in this network of {len(graph.names)} nodes needs a tensor of "
            f"{float(plan.largest):.3g} entries for every row; at most {LARGEST:.3g} are allowed. Too many hidden or "
            "missing nodes depend on each other. Observe more nodes, or take out edges."
        )
    return plan


def _evaluate(task: RowTask, rows: NDArray[np.int64], backward: bool) -> RowDerivatives:
    """Return one batch of rows of the same status."""
    plan, codes = task.plan, task.codes
    log_prob = np.zeros(len(codes))
    pieces = []
    for factor in plan.scalars:
        places = factor.place(codes)
        theta = task.take(places)
        with np.errstate(divide="ignore"):
            log_prob += np.log(theta[:, 0])
            if backward:
                pieces.append(Piece(factor.node, places, 1.0 / theta))
    if plan.factors:
        outcome = task.run(backward)
        log_prob += outcome.log_prob
        for factor, raw in zip(plan.factors, outcome.raw):
            pieces.append(Piece(factor.node, factor.place(codes), raw))
    dead = np.isneginf(log_prob)
    if dead.any():  # impossible rows have no derivatives; infinities times zeros would be NaN
        pieces = [piece._replace(raw=np.where(dead[:, None], 0.0, piece.raw)) for piece in pieces]
    return RowDerivatives(rows, log_prob, pieces)
