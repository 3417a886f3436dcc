"""Shared by the passes over groups of one shared chain: the layout, first and last steps, pair counts.

A message is stored as (width / 8, 8 sequences, 8 states): rows are then a fixed distance apart, which saves address
computations.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from genkern.core.hmm.rows import LARGEST, LENGTH, LOG_2, OBJECT, ROWS, SLOT, SMALLEST, TO_OUTPUT, sum_of_emissions
from genkern.core.hmm.states import Row, add_outer, add_pairs, copy_row, gathered_steps, offsets_of, pack
from genkern.core.jit import inlined, kernel
from genkern.core.simd.vectors import W, element, load, padded, store, zero


class GroupLayout(NamedTuple):
    """Sizes of a group of eight sequences, and the offsets of its arrays in the buffer.

    n states; width: padded; gathered: steps whose messages are gathered; step: doubles from one of these to the next;
    stride: 1 if the messages of all steps are kept, 0 if only one; symbols: rows of the table, 0 for one row per
    position. A, T: the packed transition matrix and its transpose; end (width,); b: emission factors (symbols, width)
    or (steps, 8, width); now: this and the last step's message; arriving: backward messages of sequences that end;
    pred: (steps) messages; scale (steps, 8); alpha, weighted: (gathered + 1) messages; pairs (8, width, width); mass
    (3, 8): one while in range, the exponent, the final mass.
    """

    n: int
    width: int
    gathered: int
    step: int
    stride: int
    symbols: int
    A: int
    T: int
    end: int
    b: int
    now: int
    arriving: int
    pred: int
    scale: int
    alpha: int
    weighted: int
    pairs: int
    mass: int


@lru_cache(maxsize=256)
def group_layout(n: int, steps: int, keep: bool, symbols: int) -> tuple[GroupLayout, int, int]:
    """Return the layout of a group, and how many doubles and integers its buffers have."""
    width, gathered = padded(n), gathered_steps(n)
    # Steps that are a power of two apart would all share the same sets of the cache.
    line, step, kept = W * width, W * width + W, steps if keep else 1
    messages, pairs = ((gathered + 1) * step, line * width) if keep else (0, 0)
    # One panel has eight rows: those beyond the states are zeros.
    matrix = max(n, W) * width
    counts = [matrix, matrix, width, symbols * width if symbols else kept * line, 2 * line, line]
    counts += [kept * line, kept * W, messages, messages, pairs, 3 * W]
    starts, total = offsets_of(counts)
    return GroupLayout(n, width, gathered, step, int(keep), symbols, *starts), total, ROWS + steps * W


@kernel
def bring_shared(problem, rows, layout, buffer):
    """Copy what all groups share into the buffer: the chain, and the emission factors of symbols."""
    pack(problem.transitions[0], False, layout.n, buffer, layout.A)
    pack(problem.transitions[0], True, layout.n, buffer, layout.T)
    for k in range(layout.n):
        buffer[layout.end + k] = problem.end[0, k]
    for row in range(layout.symbols):
        copy_row(rows, row, layout.n, buffer, layout.b + row * layout.width)


@inlined
def factors_of(layout, ints, t, s):
    """Return the offset of the emission factors of sequence s at step t."""
    return layout.b + (element(ints, ROWS + t * W + s) if layout.symbols else t * layout.stride * W + s) * layout.width


@inlined
def _state(k):
    """Return the offset of state k of the first sequence in a message."""
    return k // W * W * W + k % W


@inlined
def start_row(start, layout, buffer, ints, s):
    """Set the first step of sequence s; an empty lane starts with no mass."""
    pred, factors = layout.pred + s * W, factors_of(layout, ints, 0, s)
    for k in range(layout.n):
        buffer[pred + _state(k)] = start[0, k] if ints[LENGTH + s] else 0.0
    for c in range(0, layout.width, W):
        store(buffer, layout.now + s * W + c * W, load(buffer, pred + c * W) * load(buffer, factors + c))


@kernel
def end_row(layout, buffer, ints, lane, now, shift, out):
    """Set log P and the derivative of the end weights for a sequence that ends here; then empty its message."""
    i, slot, total = ints[OBJECT + lane], ints[SLOT + lane], 0.0
    for k in range(layout.n):
        total += buffer[now + _state(k)] * buffer[layout.end + k]
    in_range = buffer[layout.mass + lane] == 1.0 and SMALLEST < total < LARGEST
    out.log_prob[i] = np.log(total) + LOG_2 * buffer[layout.mass + W + lane] + shift if in_range else np.nan
    # An infinite mass makes all derivatives of a sequence that is out of range vanish.
    buffer[layout.mass + 2 * W + lane] = total if in_range else np.inf
    for k in range(layout.n):
        if layout.stride and in_range:
            out.end[slot, k] += buffer[now + _state(k)] / total
        buffer[now + _state(k)] = 0.0


@kernel
def arrive(layout, buffer, lane, weighted):
    """Set the backward message of a sequence that ends here; zero the weighted ones of this and shorter sequences."""
    for k in range(layout.n):
        buffer[layout.arriving + lane * W + _state(k)] = buffer[layout.end + k] / buffer[layout.mass + 2 * W + lane]
    for s in range(lane + 1):
        for c in range(0, layout.width, W):
            store(buffer, weighted + s * W + c * W, zero())


@inlined
def row_of(layout, ints, t, s, count, emissions):
    """Return the offsets of the numbers of sequence s at step t."""
    offset = count * layout.step + s * W
    return Row(
        layout.pred + t * W * layout.width + s * W,
        factors_of(layout, ints, t, s),
        layout.alpha + offset,
        layout.weighted + offset + layout.step,
        (element(ints, ROWS + t * W + s) + element(ints, TO_OUTPUT + s)) * emissions.shape[1],
    )


@kernel
def add_gathered(layout, buffer, ints, t, steps):
    """Add the gathered steps, down to step t, to the pair counts of each sequence, from its end on."""
    for s in range(W):
        skip = max(0, t + steps + 1 - ints[LENGTH + s])
        if skip < steps:
            offset, pairs = skip * layout.step + s * W, layout.pairs + s * layout.width * layout.width
            alpha, weighted = layout.alpha + offset, layout.weighted + offset
            add_outer(buffer, alpha, weighted, pairs, (layout.width, layout.width, steps - skip, layout.step, W * W))


@kernel
def leave(problem, job, layout, buffer, ints, out):
    """Add start and pair derivatives to their slots; mark sequences in which anything overflowed."""
    for s in range(W):
        if ints[LENGTH + s] == 0:
            continue
        i, slot = ints[OBJECT + s], ints[SLOT + s]
        total = add_pairs(buffer, layout.pairs + s * layout.width * layout.width, layout.width, slot, out.transitions)
        for k in range(layout.n):
            out.start[slot, k] += buffer[layout.now + s * W + _state(k)]
            total += buffer[layout.now + s * W + _state(k)]
        if not total + sum_of_emissions(problem, job, i, out.emissions) < np.inf:
            out.log_prob[i] = np.nan
