"""Rows of evidence on a network: encoded, grouped by their observed nodes, and computed in batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
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
    Factor,
    contract,
    make_plan,
)
from genkern.models.graph.model import Graph, pack_rows, row_keys, unique_patterns
from genkern.validation import Floats

LogDensities = Mapping[int, Floats]

TINY = 2.0**-1074  # what a positive density that underflows is replaced by: its row is then computed in logarithms
GROUP_COST = 2e5  # multiplications, per node, that take as long as planning and running one more group of rows


class Piece(NamedTuple):
    """Derivatives (R, k) of the rows' log-probabilities by the parameters at offsets (R, k) of one node's table.

    Of a continuous node, they are by log densities: posteriors of the parents' states at offsets (R, k) of their table.
    """

    node: int
    places: Codes
    raw: Floats


class RowDerivatives(NamedTuple):
    """Some rows (R,), their log-probabilities (R,), and the derivatives by every table."""

    rows: NDArray[np.int64]
    log_prob: Floats
    pieces: list[Piece]


class RowTask(NamedTuple):
    """A plan for rows of codes (R, n_nodes) under parameters (p,), or (models, p) and the model (R,) of each row.

    ``logs`` are the log densities (R, k) of each continuous node, one for all states of its parents.
    """

    plan: ContractionPlan
    graph: Graph
    values: Floats
    models: NDArray[np.int64] | None
    codes: Codes
    logs: LogDensities

    def take(self, places: Codes) -> Floats:
        """Return the parameters at offsets (R, k)."""
        taken: Floats = self.values[places] if self.models is None else self.values[self.models[:, None], places]
        return taken

    def run(self, backward: bool) -> Contracted:
        """Return the outcome of the contractions of the plan."""
        plan, codes = self.plan, self.codes
        if len(codes) == 1:  # NumPy sums a single row in another order, which would change the last digit
            models = None if self.models is None else self.models.repeat(2)
            logs = {v: table.repeat(2, axis=0) for v, table in self.logs.items()}
            twice = self._replace(codes=codes.repeat(2, axis=0), models=models, logs=logs)
            log_prob, result, raw = twice.run(backward)
            return Contracted(log_prob[:1], result[:1], [block[:1] for block in raw])
        operands: list[Floats] = []
        exact: dict[int, Floats] = {}
        shift = np.zeros(len(codes))
        for i, (factor, batched) in enumerate(zip(plan.factors, plan.batched)):
            if factor.density:
                below, top = _below_one(self.densities(factor))
                exact[i] = below.reshape(-1, *factor.shape)
                operands.append(np.where(np.isneginf(exact[i]), 0.0, np.maximum(np.exp(exact[i]), TINY)))
                shift += top
                continue
            cut = self.take(factor.place(codes)) if batched else self.values[factor.cells]
            operands.append(cut.reshape((-1, *factor.shape) if batched else factor.shape))
        for v in plan.masks:
            states = np.arange(self.graph.sizes[v])
            operands.append(((codes[:, v, None] == states) | (codes[:, v, None] < 0)).astype(np.float64))
        if len(operands) == 1:
            operands.append(np.ones(()))
        outcome = contract(plan, operands, exact, len(codes), backward)
        return outcome._replace(log_prob=outcome.log_prob + shift)

    def log_scalar(self, factor: Factor) -> Floats:
        """Return the logarithms (R,) of a factor that is cut to a single number."""
        if factor.density:
            return self.densities(factor)[:, 0]
        with np.errstate(divide="ignore"):
            return np.log(self.take(factor.place(self.codes))[:, 0])

    def densities(self, factor: Factor) -> Floats:
        """Return the log densities (R, k) of a continuous node, at the states of its parents that are not given."""
        return np.take_along_axis(self.logs[factor.node], factor.place(self.codes), axis=1)


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

    def per_object(self, logs: Floats, packed: Packed) -> Floats:
        """Return the sums (n_objects,) of the log-probabilities (U,) of the objects' rows."""
        sums: Floats = np.add.reduceat(logs[self.inverse], packed.offsets[:-1])
        return sums


class Columns(NamedTuple):
    """How the columns of objects belong to the observed nodes: each discrete one has one, a continuous one several.

    ``widths`` are the numbers of columns of the continuous nodes.
    """

    graph: Graph
    widths: Mapping[int, int]

    @property
    def total(self) -> int:
        """The number of columns."""
        return len(self.graph.observed) - len(self.widths) + sum(self.widths.values())

    def starts(self) -> dict[int, int]:
        """Return the first column of every observed node."""
        sizes = [self.widths.get(v, 1) for v in self.graph.observed]
        return dict(zip(self.graph.observed, np.cumsum([0, *sizes]).tolist()))

    def points(self, packed: Packed, v: int) -> Packed:
        """Return the points of a continuous node."""
        start = self.starts()[v]
        return packed._replace(values=packed.values[:, start : start + self.widths[v]])

    def codes(self, packed: Packed) -> Codes:
        """Return the codes (N, n_nodes) of all nodes, -1 where they are unknown, hidden or continuous."""
        codes = np.full((packed.n_points, len(self.graph.names)), -1, np.int64)
        for v, column in self.starts().items():
            if v not in self.widths:
                values = packed.values[:, column]
                codes[:, v] = np.where(np.isnan(values), -1, values)
        return codes

    def pack(self, X: Any, packers: Mapping[int, Callable[[Packed], Packed]], who: str) -> Packed:
        """Return bags of rows, NaN where missing, refusing codes that are no states, and points that are none."""
        packed = pack_rows(X, self.total, who)
        for v, column in self.starts().items():
            name, size = self.graph.names[v], self.graph.sizes[v]
            if v in self.widths:
                try:
                    packers[v](self.points(packed, v))
                except ValueError as error:
                    raise ValueError(f"{who}: node {name!r} (from column {column}): {error}") from None
                continue
            values = packed.values[:, column]
            wrong = ~np.isnan(values) & ~((values >= 0) & (values < size) & (values == np.floor(values)))
            if wrong.any():
                row = int(np.argmax(wrong))
                index, position = locate(packed.offsets, row)
                raise ValueError(
                    f"{who}: object {index}, position {position}, column {column}: node {name!r} has the codes 0, ..., "
                    f"{size - 1}, and NaN where it is missing. Got {values[row]:g}."
                )
        return packed


def distinct_rows(packed: Packed, columns: Columns, own: bool) -> DistinctRows:
    """Return the distinct rows of all objects together or, if every object has its own model, of each.

    With continuous nodes, all rows count as distinct.
    """
    codes, owners = columns.codes(packed), packed.owners
    if columns.widths:
        return every_row(codes, owners if own else None)
    graph = columns.graph
    shown = codes[:, graph.observed]
    keys = row_keys(
        np.column_stack([owners, shown]) if own else shown,
        [packed.n_objects] * own + [graph.sizes[v] for v in graph.observed],
    )
    _, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    order = np.argsort(inverse, kind="stable")
    return DistinctRows(codes[first], owners[first] if own else None, inverse, order, bounds)


def every_row(codes: Codes, models: NDArray[np.int64] | None = None) -> DistinctRows:
    """Return rows of codes (N, n_nodes), each as a distinct one."""
    each = np.arange(len(codes))
    return DistinctRows(codes, models, each, each, np.arange(len(codes) + 1))


def sweep(
    graph: Graph, values: Floats, rows: DistinctRows, logs: LogDensities, backward: bool
) -> Iterator[RowDerivatives]:
    """Yield batches of rows with log-probabilities and derivatives under parameters ``values``, (p,) or (models, p).

    ``logs`` are the log densities (U, k) of continuous nodes.
    """
    shared = rows.models is None
    for status, group in _groups(graph, rows.codes, shared):
        plan = check_size(make_plan(graph, status, shared), graph)
        size = max(2, BATCH_NUMBERS // plan.largest)
        for start in range(0, len(group), size):
            part = group[start : start + size]
            models = None if rows.models is None else rows.models[part]
            some = {v: table[part] for v, table in logs.items()}
            yield _evaluate(RowTask(plan, graph, values, models, rows.codes[part], some), part, backward)


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


def _below_one(logs: Floats) -> tuple[Floats, Floats]:
    """Return logs (R, k) less the largest (R,) of each row, and these; zero where all are infinite."""
    top = logs.max(axis=1)
    top = np.where(np.isneginf(top), 0.0, top)
    return logs - top[:, None], top


def parent_states(graph: Graph, v: int) -> int:
    """Return how many joint states the parents of a node have."""
    return math.prod(graph.sizes[p] for p in graph.parents[v])


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
        log_prob += task.log_scalar(factor)
        if backward:
            with np.errstate(divide="ignore"):
                raw = np.ones(places.shape) if factor.density else 1.0 / task.take(places)
            pieces.append(Piece(factor.node, places, raw))
    if plan.factors:
        outcome = task.run(backward)
        log_prob += outcome.log_prob
        for factor, raw in zip(plan.factors, outcome.raw):
            pieces.append(Piece(factor.node, factor.place(codes), raw))
    dead = np.isneginf(log_prob)
    if dead.any():  # impossible rows have no derivatives; infinities times zeros would be NaN
        pieces = [piece._replace(raw=np.where(dead[:, None], 0.0, piece.raw)) for piece in pieces]
    return RowDerivatives(rows, log_prob, pieces)
