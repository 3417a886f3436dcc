r"""Sums over the hidden states of a network, for many rows at once: a contraction and its derivative.

The probability of a row of evidence is one tensor contraction: the product of all tables, each cut at the observed
states, summed over the others. A node of size zero has no states: it is continuous, and its factor is a table over its
parents alone, of the densities of the row's point. A ``ContractionPlan`` holds the order of pairwise contractions that
``opt_einsum`` found. Run forward it gives the probability; run backward (reverse mode) the derivatives with respect to
all tables together, at about twice the cost:

.. math:: k = \sum a\,b \;\Rightarrow\; \bar a = \sum \bar k\,b, \quad \bar b = \sum \bar k\,a

All numbers are non-negative, so both passes also run on logarithms. The ordinary pass scales every intermediate tensor
of every row by a power of two; a row in which a positive number still comes near the limits of float64, or posteriors
do not sum to one, is recomputed in logarithms: those of densities are given, since the densities may have underflowed.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache
from string import ascii_letters
from typing import Any, NamedTuple

import numpy as np
import opt_einsum
from numpy.typing import NDArray
from opt_einsum.paths import auto
from scipy.special import logsumexp

from genkern.models.graph.model import Graph
from genkern.validation import Floats

Codes = NDArray[np.int64]
Axes = tuple[tuple[int, ...], bool]  # the nodes of a tensor's axes, and whether there is one of rows before them

HIDDEN, GIVEN, MIXED = 0, 1, 2  # a node is unknown in all rows, known in all, or known in some
LARGEST = 1 << 26  # numbers in one tensor of one row: half a gigabyte
BATCH_NUMBERS = 1 << 21  # numbers in one tensor of a batch of rows
SMALLEST = 2.0**-500  # smallest positive entry of a scaled tensor: no product of two underflows
LOOSE = 1e-9  # posteriors of a row sum to one within this, or the row is recomputed in logarithms
TYPICAL_ROWS = 64  # the number of rows for which orders of contraction are found
BATCH = "r"
LETTERS = ascii_letters.replace(BATCH, "")


class Factor(NamedTuple):
    """A table cut at given nodes.

    cells (k,) are offsets into the flat parameter vector for given states 0; columns and strides give their shift by
    other given states; nodes and shape are the remaining axes; node is the owner of the table. If it is continuous
    (``density``), cells are offsets into the table of its parents' states.
    """

    node: int
    nodes: tuple[int, ...]
    shape: tuple[int, ...]
    cells: Codes
    columns: tuple[int, ...]
    strides: Codes
    density: bool

    def place(self, codes: Codes) -> Codes:
        """Return the offsets (R, k) of the cut tables of rows of codes."""
        if not self.columns:
            return np.broadcast_to(self.cells, (len(codes), len(self.cells)))
        return (codes[:, self.columns] @ self.strides)[:, None] + self.cells


class PairContraction(NamedTuple):
    """A pairwise contraction of values i and j: forward, and backward to each; the axes that backward must add."""

    i: int
    j: int
    forward: str
    to_i: tuple[str, tuple[int, ...]]
    to_j: tuple[str, tuple[int, ...]]


class ContractionPlan(NamedTuple):
    """Contractions for rows with the same given nodes.

    scalars : tables that are cut to a single number
    factors : the other tables
    masks : nodes whose evidence is a factor of its own, (R, size)
    steps : the contractions; values are numbered factors, masks, a one if there is only one operand, results
    batched : for each value whether it has an axis of rows
    largest : entries of the largest tensor of a row, also before it is summed
    cost : multiplications per row
    """

    scalars: tuple[Factor, ...]
    factors: tuple[Factor, ...]
    masks: tuple[int, ...]
    steps: tuple[PairContraction, ...]
    batched: tuple[bool, ...]
    largest: int
    cost: float


@lru_cache(maxsize=64)
def offsets_of_tables(graph: Graph) -> tuple[int, ...]:
    """Return where each table starts in the flat vector of all tables, and where the last ends."""
    sizes = [math.prod(table_shape(graph, v)) for v in range(len(graph.names))]
    return (0, *np.cumsum(sizes).tolist())


def table_shape(graph: Graph, v: int) -> tuple[int, ...]:
    """Return the shape of the table of a node: its parents' sizes, then its own; empty if it is continuous."""
    return (*(graph.sizes[p] for p in graph.parents[v]), graph.sizes[v])


@lru_cache(maxsize=512)
def make_plan(graph: Graph, status: tuple[int, ...], shared: bool, keep: tuple[int, ...] = ()) -> ContractionPlan:
    """Return the plan for nodes of the given status (HIDDEN, GIVEN, MIXED), with ``keep`` as axes of the result.

    ``shared``: all rows have the same tables.
    """
    cut = [_cut(graph, v, start, status) for v, start in enumerate(offsets_of_tables(graph)[:-1])]
    scalars = tuple(factor for factor in cut if not factor.nodes)
    factors = tuple(factor for factor in cut if factor.nodes)
    masks = tuple(v for v, what in enumerate(status) if what == MIXED)
    if not factors:
        return ContractionPlan(scalars, (), (), (), (), 1, 0.0)
    labels = [(factor.nodes, bool(factor.columns) or factor.density or not shared) for factor in factors]
    labels += [((v,), True) for v in masks]
    if len(labels) == 1:
        labels.append(((), False))
    steps, batched, largest, cost = _order(labels, graph.sizes, keep)
    return ContractionPlan(scalars, factors, masks, tuple(steps), batched, largest, cost)


def _cut(graph: Graph, v: int, start: int, status: tuple[int, ...]) -> Factor:
    """Return the table of a node, which starts at an offset of the flat vector, cut at the given axes."""
    density = graph.sizes[v] == 0
    family = graph.parents[v] if density else (*graph.parents[v], v)
    shape = tuple(graph.sizes[u] for u in family)
    places = np.arange(math.prod(shape)).reshape(shape)
    strides = np.array(places.strides, np.int64) // places.itemsize
    given = [a for a, u in enumerate(family) if status[u] == GIVEN]
    cells = places[tuple(0 if a in given else slice(None) for a in range(len(family)))]
    nodes = tuple(u for u in family if status[u] != GIVEN)
    columns = tuple(family[a] for a in given)
    return Factor(v, nodes, cells.shape, cells.ravel() + (0 if density else start), columns, strides[given], density)


def _order(
    labels: list[Axes], sizes: tuple[int, ...], keep: tuple[int, ...]
) -> tuple[list[PairContraction], tuple[bool, ...], int, float]:
    """Return the fields of a plan that contracts operands (nodes, batched) to the axes ``keep``."""
    symbol = {v: opt_einsum.get_symbol(1 + k) for k, v in enumerate(dict.fromkeys(v for x, _ in labels for v in x))}
    batch = opt_einsum.get_symbol(0)
    spelled = [
        frozenset(symbol[v] for v in nodes) | {batch} if batched else frozenset(symbol[v] for v in nodes)
        for nodes, batched in labels
    ]
    lengths = {batch: TYPICAL_ROWS, **{symbol[v]: sizes[v] for v in symbol}}
    path = auto(spelled, frozenset(symbol[v] for v in keep) | {batch}, lengths)
    values, alive, largest, cost = list(labels), list(range(len(labels))), 1, 0.0
    steps: list[PairContraction] = []
    uses = Counter(v for nodes, _ in [*labels, (keep, False)] for v in nodes)
    for pair in path:
        i, j = (alive[place] for place in pair)
        alive = [k for k in alive if k not in (i, j)]
        uses.subtract(values[i][0] + values[j][0])
        union = tuple(dict.fromkeys(values[i][0] + values[j][0]))
        batched = values[i][1] or values[j][1]
        entries = math.prod(sizes[v] for v in union)
        largest, cost = max(largest, entries), cost + float(entries) / (1 if batched else TYPICAL_ROWS)
        if entries > LARGEST or len(union) > len(LETTERS):
            return steps, (), max(entries, 2 ** len(union)), math.inf  # a plan that is refused
        result = (tuple(v for v in union if uses[v]) if alive else keep), batched
        uses.update(result[0])
        steps.append(_step(i, j, values, result))
        alive.append(len(values))
        values.append(result)
    return steps, tuple(batched for _, batched in values), largest, cost


def _step(i: int, j: int, values: list[Axes], result: Axes) -> PairContraction:
    """Return the subscripts of one pairwise contraction and of its two derivatives."""
    letters = dict(zip(dict.fromkeys(values[i][0] + values[j][0]), LETTERS))

    def spell(value: Axes, batched: bool | None = None) -> str:
        return (BATCH if (value[1] if batched is None else batched) else "") + "".join(letters[v] for v in value[0])

    def back(target: Axes, other: Axes) -> tuple[str, tuple[int, ...]]:
        there = tuple(v for v in target[0] if v in result[0] or v in other[0])
        added = tuple(1 + a for a, v in enumerate(target[0]) if v not in there)
        return f"{spell(result, True)},{spell(other)}->{spell((there, True))}", added

    a, b = values[i], values[j]
    return PairContraction(i, j, f"{spell(a)},{spell(b)}->{spell(result)}", back(a, b), back(b, a))


class Contracted(NamedTuple):
    """Of R rows: log-probabilities (R,), results (R, ...) up to a factor, derivatives (R, k) by the cut tables.

    Those of densities are by their logarithms: posteriors of the parents' states.
    """

    log_prob: Floats
    result: Floats
    raw: list[Floats]


def contract(
    plan: ContractionPlan, operands: list[Floats], exact: dict[int, Floats], rows: int, backward: bool
) -> Contracted:
    """Return the probabilities of rows and, if ``backward``, the derivatives of their logarithms by the factors.

    ``exact`` has logarithms of operands that may have underflowed, to numbers above zero.
    """
    with np.errstate(all="ignore"):  # rows that underflow or overflow are detected and recomputed
        outcome, safe = _contract_scaled(plan, operands, rows, backward)
        again = np.flatnonzero(~safe)
        if len(again):
            logs = [
                exact[i][again] if i in exact else np.log(x[again] if batched else x)
                for i, (x, batched) in enumerate(zip(operands, plan.batched))
            ]
            redone = _contract_logs(plan, logs, len(again), backward)
            outcome.log_prob[again], outcome.result[again] = redone.log_prob, redone.result
            for old, new in zip(outcome.raw, redone.raw):
                old[again] = new
    return outcome


def _contract_scaled(
    plan: ContractionPlan, operands: list[Floats], rows: int, backward: bool
) -> tuple[Contracted, NDArray[np.bool_]]:
    """Return the outcome in numbers scaled by powers of two, and in which rows (R,) it can be trusted."""
    values, shifts = list(operands), []
    power, safe = np.zeros(rows), np.ones(rows, bool)
    for value, batched in zip(operands, plan.batched):
        safe &= ~_near_zero(value, tuple(range(int(batched), value.ndim)))
    for step in plan.steps:
        value = np.einsum(step.forward, values[step.i], values[step.j])
        axes = tuple(range(int(plan.batched[len(values)]), value.ndim))
        top = value.max(axis=axes, keepdims=True)
        shifts.append(-np.frexp(top)[1])
        values.append(np.ldexp(value, shifts[-1]))
        power -= shifts[-1].ravel()
        safe &= (top > 0).ravel() & ~_near_zero(values[-1], axes)
    root = _with_rows(values[-1], plan.batched[-1], rows)
    total = root.reshape(rows, -1).sum(axis=1)
    outcome = Contracted(np.log(total) + power * np.log(2.0), root, [])
    if backward:
        seed = np.ones(root.shape) / total.reshape((-1,) + (1,) * (root.ndim - 1))
        outcome.raw.extend(_derivatives(plan, values, seed, np.einsum, lambda x, k: np.ldexp(x, shifts[k])))
        for i, (factor, raw) in enumerate(zip(plan.factors, outcome.raw)):
            posterior = raw * operands[i].reshape(-1, raw.shape[1])
            # the posterior of each table sums to one only if every adjoint was in range
            safe &= np.abs(posterior.sum(axis=1) - 1.0) <= LOOSE
            if factor.density:
                outcome.raw[i] = posterior
    return outcome, safe


def _contract_logs(plan: ContractionPlan, operands: list[Floats], rows: int, backward: bool) -> Contracted:
    """Return the outcome from logarithms of the operands; derivatives are at most the largest float64."""
    values = list(operands)
    for step in plan.steps:
        values.append(_log_einsum(step.forward, values[step.i], values[step.j]))
    root = _with_rows(values[-1], plan.batched[-1], rows)
    total = logsumexp(root.reshape(rows, -1), axis=1)
    column = total.reshape((-1,) + (1,) * (root.ndim - 1))
    outcome = Contracted(total, np.exp(root - np.where(np.isneginf(column), 0.0, column)), [])
    if backward:
        logs = _derivatives(plan, values, np.zeros(root.shape) - column, _log_einsum, lambda x, k: x)
        for factor, x, table in zip(plan.factors, logs, operands):
            by_log = x + table.reshape(rows, -1) if factor.density else x
            outcome.raw.append(np.minimum(np.exp(by_log), np.finfo(np.float64).max))
    return outcome


def _near_zero(value: Floats, axes: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return whether a row (R,) or () of a value has positive entries from which products may be lost."""
    small = value < SMALLEST
    if not small.any():
        return np.zeros((), bool)
    return np.asarray((small & (value > 0)).any(axis=axes))


def _with_rows(value: Floats, batched: bool, rows: int) -> Floats:
    """Return a copy of a value with an axis of rows."""
    return np.array(np.broadcast_to(value, (rows, *value.shape[int(batched) :])))


def _derivatives(plan: ContractionPlan, values: list[Floats], seed: Floats, einsum: Any, rescale: Any) -> list[Floats]:
    """Return the derivatives (R, k) by the factors, from all values and the derivative by the last."""
    adjoints: list[Any] = [None] * len(values)
    adjoints[-1] = seed
    first = len(values) - len(plan.steps)
    for k in range(len(plan.steps) - 1, -1, -1):
        step, above = plan.steps[k], rescale(adjoints[first + k], k)
        for target, other, (subscripts, added) in ((step.i, step.j, step.to_i), (step.j, step.i, step.to_j)):
            value = np.expand_dims(einsum(subscripts, above, values[other]), added)
            shape = values[target].shape[int(plan.batched[target]) :]
            adjoints[target] = np.broadcast_to(value, (len(seed), *shape))
    return [np.array(x.reshape(len(seed), -1)) for x in adjoints[: len(plan.factors)]]


def _log_einsum(subscripts: str, a: Floats, b: Floats) -> Floats:
    """Return the logarithm of ``np.einsum`` of two operands from their logarithms."""
    inputs, out = subscripts.split("->")
    order = out + "".join(sorted(set(inputs) - set(out) - {","}))
    total = sum(_spread(x, term, order) for x, term in zip((a, b), inputs.split(",")))
    if len(order) == len(out):
        return np.asarray(total)
    logs: Floats = logsumexp(total, axis=tuple(range(len(out), len(order))))
    return logs


def _spread(value: Floats, term: str, order: str) -> Floats:
    """Return a view of a value with axes ``term`` whose axes are ``order``, of length one where it has none."""
    axes = sorted(range(len(term)), key=lambda a: order.index(term[a]))
    return np.expand_dims(value.transpose(axes), tuple(a for a, letter in enumerate(order) if letter not in term))
