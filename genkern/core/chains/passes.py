r"""Passes over many symbol sequences under observed Markov chains of order k, with hidden phases and missing symbols.

A chain has S start phases and Q tables of transitions, used one after the other and round again,

.. math:: p(x) = \sum_φ π_φ\, s_φ(x_0 … x_{k-1}) \prod_{t ≥ k} θ_{(b_φ + t - k) \bmod Q}(x_t | x_{t-k} … x_{t-1}),

so that a homogeneous chain has S = Q = 1, a periodic one S = Q = period, and one by positions S = 1 and a table each. A
context is a word of k symbols in lexicographic order, C = m^k of them. Ambiguous symbols, and those that a
sequence shorter than k lacks, are summed out exactly: only the contexts that the last k symbols may spell are followed,
so a position costs as many multiplications as there are spellings of its k + 1 symbols, and one where all are plain.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.chains.lattice import LARGEST, LARGEST_LOG, follow, lattice_sizes
from genkern.core.hmm.types import read_only
from genkern.core.jit import jit

Floats = NDArray[np.float64]
Ints = NDArray[Any]

LARGEST_LATTICE = 1 << 27  # most contexts that one sequence may spell at all of its positions together


class Tables(NamedTuple):
    """Chains: G = 1 is shared by all objects, G = n_objects gives each object its own.

    Attributes
    ----------
    phases : (G, S), probabilities of the start phases.
    start : (G, S, C), joint probabilities of the first k symbols.
    steps : (G, Q, C, m), ``steps[g, q, c, s]`` is that of symbol s after context c.
    begin : (S,), the table of the first step, from each start phase.
    order : int, the k of C = m^k.
    """

    phases: Floats
    start: Floats
    steps: Floats
    begin: NDArray[np.int64]
    order: int


class Symbols(NamedTuple):
    """Sequences of codes, and the symbols that each code may mean.

    Attributes
    ----------
    codes : (N,) int32 of all sequences; codes from m on are ambiguous.
    offsets : (n + 1,), where sequences begin and end.
    first : (M + 2,), where the members of each code begin in ``choices``; the code M means any symbol.
    choices : members of all codes, one after the other.
    """

    codes: NDArray[np.int32]
    offsets: NDArray[np.int64]
    first: NDArray[np.int64]
    choices: NDArray[np.int64]


class ChainGradients(NamedTuple):
    """Raw derivatives of log P, finite at zero parameters: G is n_objects, or 1 for totals.

    Attributes
    ----------
    log_prob : (n_objects,); -inf for impossible objects, whose rows below are undefined.
    phases : (G, S).
    start : (G, S, C).
    steps : (G, Q, C, m).
    """

    log_prob: Floats
    phases: Floats
    start: Floats
    steps: Floats


def log_prob(tables: Tables, symbols: Symbols) -> Floats:
    """Return log p(x | phase) of each sequence and start phase, (n_objects, S); -inf where it is impossible."""
    logs = np.empty((len(symbols.offsets) - 1, tables.phases.shape[1]))
    hidden = is_ambiguous(tables, symbols)
    with np.errstate(divide="ignore"):
        start, steps = np.log(tables.start), np.log(tables.steps)
    steps = steps.reshape(*steps.shape[:2], -1)
    _plain_logs(start, steps, tables.begin, tables.order, symbols, np.flatnonzero(~hidden), logs)
    if hidden.any():
        tasks = np.argwhere(np.broadcast_to(hidden[:, None], logs.shape))
        nothing = np.empty(0), np.empty((0, 0, 0)), np.empty((0, 0, 0, 0))
        _follow(tables, symbols, tasks, nothing[0], logs, nothing[1:])
    return logs


def gradients(tables: Tables, symbols: Symbols, totals: bool = False) -> ChainGradients:
    """Return raw derivatives of log P, per object or, with totals, summed over objects."""
    count = len(symbols.offsets) - 1
    groups = 1 if totals else count
    given = log_prob(tables, symbols)
    with np.errstate(divide="ignore"):
        joint = np.broadcast_to(np.log(tables.phases) + given, given.shape)
    whole = sum_phases(joint)
    possible = ~np.isneginf(whole)
    level = np.where(possible, whole, 0.0)[:, None]
    start = np.zeros((groups, *tables.start.shape[1:]))
    steps = np.zeros((groups, *tables.steps.shape[1:]))
    hidden = is_ambiguous(tables, symbols) & possible
    plain = np.flatnonzero(~hidden & possible)
    _plain_counts(tables.begin, tables.order, symbols, plain, np.exp(joint - level), (start, steps))
    _divide(start, tables.start)
    _divide(steps, tables.steps)
    # In a phase that forbids a plain sequence only its zero parameters have derivatives.
    tasks = np.argwhere(hidden[:, None] | (np.isneginf(given) & possible[:, None] & (tables.phases > 0)))
    if len(tasks):
        with np.errstate(divide="ignore"):
            weights = np.log(np.broadcast_to(tables.phases, given.shape)) - level
        _follow(tables, symbols, tasks, weights[tuple(tasks.T)], given, (start, steps))
    phases = np.exp(np.minimum(given - level, LARGEST_LOG))
    if totals:
        with np.errstate(over="ignore"):
            phases = np.minimum(phases.sum(axis=0, keepdims=True), LARGEST)
    return ChainGradients(whole, phases, start, steps)


def sum_phases(joint: Floats) -> Floats:
    """Return log p(x) from log p(x, phase), (n_objects, S)."""
    total: Floats = joint[:, 0] if joint.shape[1] == 1 else np.logaddexp.reduce(joint, axis=1)
    return total


def is_ambiguous(tables: Tables, symbols: Symbols) -> NDArray[np.bool_]:
    """Return for each sequence whether it has symbols to be summed out: ambiguous ones, or fewer than k."""
    highest = np.maximum.reduceat(symbols.codes, symbols.offsets[:-1])
    return (highest >= tables.steps.shape[3]) | (np.diff(symbols.offsets) < tables.order)


def as_tables(phases: Floats, start: Floats, steps: Floats, begin: Ints, order: int) -> Tables:
    """Return tables as read-only contiguous arrays, so that compiled code has one signature."""
    arrays = [read_only(np.ascontiguousarray(array, np.float64)) for array in (phases, start, steps)]
    return Tables(arrays[0], arrays[1], arrays[2], np.asarray(begin, np.int64), order)


def as_symbols(codes: Ints, offsets: Ints, m: int, extras: list[tuple[int, ...]]) -> Symbols:
    """Return sequences of codes; extras are the members of the ambiguous codes m, m + 1, ..."""
    sizes = [1] * m + [len(members) for members in extras] + [m]
    choices = np.concatenate([np.arange(m), *map(np.array, extras), np.arange(m)]).astype(np.int64)
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    flat, bounds = np.ascontiguousarray(codes, np.int32), np.ascontiguousarray(offsets, np.int64)
    return Symbols(read_only(flat), read_only(bounds), first, choices)


def _follow(
    tables: Tables, symbols: Symbols, tasks: Ints, weights: Floats, logs: Floats, out: tuple[Floats, Floats]
) -> None:
    """Follow the lattices of some objects and phases, if they fit into memory."""
    objects = np.unique(tasks[:, 0])
    contexts = lattice_sizes(symbols, tables.order, objects)
    too_much = np.flatnonzero(contexts > LARGEST_LATTICE)
    if len(too_much):
        raise ValueError(
            f"Markov chain: object {objects[too_much[0]]} has so many ambiguous symbols that its positions may spell "
            f"{contexts[too_much[0]]:.3g} contexts, more than {LARGEST_LATTICE}. Cut it where symbols are missing, or "
            "lower the order."
        )
    follow(tables, symbols, np.ascontiguousarray(tasks), weights, logs, out)


def _divide(counts: Floats, theta: Floats) -> None:
    """Turn counts into raw derivatives in place; what was not counted stays zero, also at zero parameters."""
    with np.errstate(over="ignore"):
        np.divide(counts, theta, out=counts, where=counts > 0)
    np.minimum(counts, LARGEST, out=counts)


@jit
def _plain_logs(start, steps, begin, k, symbols, objects, out):
    """Set log p(x | phase) of plain sequences from logs of start (G, S, C) and of steps (G, Q, C * m)."""
    codes, offsets = symbols.codes, symbols.offsets
    contexts = start.shape[2]
    m = steps.shape[2] // contexts
    for i in objects:
        g = i if len(start) > 1 else 0
        for phase in range(len(begin)):
            a, b, q = offsets[i], offsets[i + 1], begin[phase]
            word = 0
            for t in range(a, a + k):
                word = word * m + codes[t]
            total = start[g, phase, word]
            for t in range(a + k, b):
                word = word * m + codes[t]
                total += steps[g, q, word]
                word -= codes[t - k] * contexts
                q = q + 1 if q + 1 < steps.shape[1] else 0
            out[i, phase] = total


@jit
def _plain_counts(begin, k, symbols, objects, weights, out):
    """Add the weights (n, S) of plain sequences to counts of start (G, S, C) and of steps (G, Q, C, m)."""
    codes, offsets = symbols.codes, symbols.offsets
    start, steps = out
    tables, contexts, m = steps.shape[1:]
    flat = steps.reshape(len(steps), tables, contexts * m)
    for i in objects:
        slot = i if len(start) > 1 else 0
        for phase in range(len(begin)):
            weight = weights[i, phase]
            if weight == 0.0:
                continue
            a, b, q = offsets[i], offsets[i + 1], begin[phase]
            word = 0
            for t in range(a, a + k):
                word = word * m + codes[t]
            start[slot, phase, word] += weight
            for t in range(a + k, b):
                word = word * m + codes[t]
                flat[slot, q, word] += weight
                word -= codes[t - k] * contexts
                q = q + 1 if q + 1 < tables else 0
