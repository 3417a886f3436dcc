"""Passes over one sequence at a time, states contiguous: for own chains of many states, and very long sequences.

The most general of the fast layouts. What the others gain over it, or over each other, they say themselves: ratios of
CPU times, the least of several runs in turn in one process. Less than 1.3 would not be worth the compilation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from genkern.core.hmm.reference import row_of
from genkern.core.hmm.rows import LARGEST, LOG_2, SMALLEST, STRIDE, sum_of_emissions, sum_of_shifts
from genkern.core.hmm.states import (
    Row,
    add_outer,
    add_pairs,
    clear,
    combine,
    copy_row,
    gathered_steps,
    offsets_of,
    pack,
    row_times,
    row_times_four,
    row_times_three,
)
from genkern.core.jit import inlined, kernel, part
from genkern.core.simd.shuffle import exponent, inverse_power
from genkern.core.simd.vectors import W, broadcast, horizontal_sum, load, padded, store, zero


class SingleLayout(NamedTuple):
    """Sizes of one sequence, and the offsets of its arrays in the buffer.

    n states; rows: their number rounded up to a multiple of four, width: of eight; gathered: steps whose messages are
    gathered; stride: 1 if the messages of all steps are kept, 0 if only one. A, T: the packed transition matrix and its
    transpose; b: emission factors of one step (width,); now (2, width): this and the last step's message; arriving
    (width,): the backward message of the last step; pred (steps, width); scale (steps,); alpha, weighted
    (gathered + 1, width); pairs (width, width).
    """

    n: int
    rows: int
    width: int
    gathered: int
    stride: int
    A: int
    T: int
    b: int
    now: int
    arriving: int
    pred: int
    scale: int
    alpha: int
    weighted: int
    pairs: int


def single_layout(n: int, steps: int, keep: bool, symbols: int) -> tuple[SingleLayout, int, int]:
    """Return the layout of a sequence, and how many doubles and integers its buffers have, for any symbols."""
    rows, width, gathered, kept = -(-n // 4) * 4, padded(n), gathered_steps(n), steps if keep else 1
    messages, pairs = ((gathered + 1) * width, width * width) if keep else (0, 0)
    counts = [rows * width, rows * width, width, 2 * width, width, kept * width, kept, messages, messages, pairs]
    starts, total = offsets_of(counts)
    return SingleLayout(n, rows, width, gathered, int(keep), *starts), total, 0


@kernel
def single_pass(problem, rows, job, out, layout, buffer, ints):
    """Set log P of the members, nan where out of range, and add their derivatives to their slots."""
    own, packed = len(problem.start) > 1, False
    for group in range(len(job.members)):
        for i in job.members[group]:
            if i < 0:
                continue
            if own or not packed:
                pack(problem.transitions[i if own else 0], False, layout.rows, buffer, layout.A)
                pack(problem.transitions[i if own else 0], True, layout.rows, buffer, layout.T)
                packed = True
            _forward(problem, rows, i, layout, buffer, out.log_prob)
            if job.derivatives and not np.isnan(out.log_prob[i]):
                # The forward pass stores the derivatives of the end weights in b.
                for k in range(layout.n):
                    out.end[job.slots[i], k] += buffer[layout.b + k]
                _backward(problem, rows, job, i, layout, buffer, out.emissions)
                _leave(problem, job, i, layout, buffer, out)


@part
def _forward(problem, rows, i, layout, buffer, log_prob):
    """Set log P of object i, nan if out of range; keep pred, scale, backward message and derivatives of its end."""
    first, last, now, n = problem.offsets[i], problem.offsets[i + 1], layout.now, layout.n
    chain, power, final = i if len(problem.start) > 1 else 0, 0.0, 0.0
    log_prob[i] = np.nan
    for t in range(last - first):
        pred = layout.pred + t * layout.stride * layout.width
        copy_row(rows, row_of(problem, i, first + t), n, buffer, layout.b)
        then, now = now, 2 * layout.now + layout.width - now
        for k in range(n if t == 0 else 0):
            buffer[pred + k] = problem.start[chain, k]
        total = (
            _ahead(layout, buffer, then, now, pred)
            if t > 0
            else _emit(layout, buffer, 0, now, pred, load(buffer, pred))
        )
        for c in range(W, layout.width if t == 0 else 0, W):
            total = total + _emit(layout, buffer, c, now, pred, load(buffer, pred + c))
        buffer[layout.scale + t * layout.stride] = 1.0
        if t % STRIDE == STRIDE - 1:
            mass = horizontal_sum(total)
            if not SMALLEST < mass < LARGEST:
                return
            # A power of two and its exponent, in all eight lanes; their mean is exact.
            power += horizontal_sum(exponent(broadcast(mass))) / W
            inverse = horizontal_sum(inverse_power(broadcast(mass))) / W
            buffer[layout.scale + t * layout.stride] = inverse
            for c in range(now, now + layout.width, W):
                store(buffer, c, load(buffer, c) * broadcast(inverse))
    for k in range(n):
        final += buffer[now + k] * problem.end[chain, k]
    if not SMALLEST < final < LARGEST:
        return
    for k in range(n):
        buffer[layout.arriving + k] = problem.end[chain, k] / final
        buffer[layout.b + k] = buffer[now + k] / final
    log_prob[i] = np.log(final) + LOG_2 * power + (sum_of_shifts(problem, i) if rows.has_shift else 0.0)


@inlined
def _ahead(layout, buffer, then, now, pred):
    """Advance the message by one step; return the sum of its vectors. Panels are taken by four or three if possible."""
    c, rows, total = 0, layout.rows, zero()
    while layout.width - c >= 4 * W:
        p, q, r, s = row_times_four(buffer, then, layout.A + c * rows, rows, layout.n, (zero(), zero(), zero(), zero()))
        total = total + (_emit(layout, buffer, c, now, pred, p) + _emit(layout, buffer, c + W, now, pred, q))
        total = total + (
            _emit(layout, buffer, c + 2 * W, now, pred, r) + _emit(layout, buffer, c + 3 * W, now, pred, s)
        )
        c += 4 * W
    if layout.width - c == 3 * W:
        p, q, r = row_times_three(buffer, then, layout.A + c * rows, rows, layout.n, (zero(), zero(), zero()))
        total = total + (_emit(layout, buffer, c, now, pred, p) + _emit(layout, buffer, c + W, now, pred, q))
        total = total + _emit(layout, buffer, c + 2 * W, now, pred, r)
        c += 3 * W
    while c < layout.width:
        total = total + _emit(layout, buffer, c, now, pred, row_times(buffer, then, layout.A + c * rows, rows, zero()))
        c += W
    return total


@inlined
def _emit(layout, buffer, c, now, pred, predicted):
    """Store eight predicted masses, and the same times their emission factors; return these."""
    message = predicted * load(buffer, layout.b + c)
    store(buffer, pred + c, predicted)
    store(buffer, now + c, message)
    return message


@part
def _backward(problem, rows, job, i, layout, buffer, emissions):
    """Run the backward pass: add emission derivatives to the output, pair counts to ``pairs``."""
    first, width, n = problem.offsets[i], layout.width, layout.n
    chain = i if len(problem.start) > 1 else 0
    to_output = (job.slots[i] - chain) * (len(problem.table) // len(problem.start)) if len(problem.codes) else 0
    clear(buffer, layout.pairs, width * width)
    clear(buffer, layout.weighted, width)
    # Row j of alpha holds a step and row j of weighted the step after it; steps go backwards in time.
    count = 0
    for t in range(problem.offsets[i + 1] - first - 1, -1, -1):
        source, left = row_of(problem, i, first + t), layout.weighted + count * width
        copy_row(rows, source, n, buffer, layout.b)
        to = (source + to_output) * emissions.shape[1]
        row = Row(layout.pred + t * width, layout.b, layout.alpha + count * width, left + width, to)
        _back(layout, buffer, emissions, left, row, broadcast(buffer[layout.scale + t]))
        if t == problem.offsets[i + 1] - first - 1:
            clear(buffer, layout.arriving, width)
        count += 1
        if count == layout.gathered:
            add_outer(buffer, layout.alpha, layout.weighted, layout.pairs, (layout.rows, width, count, width, W))
            for c in range(layout.weighted, layout.weighted + width, W):
                store(buffer, c, load(buffer, c + layout.gathered * width))
            count = 0
    add_outer(buffer, layout.alpha, layout.weighted, layout.pairs, (layout.rows, width, count, width, W))
    for c in range(0, width, W):
        store(buffer, layout.now + c, load(buffer, layout.weighted + count * width + c))


@inlined
def _back(layout, buffer, emissions, left, row, inverse):
    """Take the backward message one step back and combine it with past and present. Panels are taken as in _ahead."""
    c, rows = 0, layout.rows
    while layout.width - c >= 4 * W:
        end = layout.arriving + c
        four = load(buffer, end), load(buffer, end + W), load(buffer, end + 2 * W), load(buffer, end + 3 * W)
        p, q, r, s = row_times_four(buffer, left, layout.T + c * rows, rows, layout.n, four)
        combine(buffer, emissions, row, c, c, p, inverse)
        combine(buffer, emissions, row, c + W, c + W, q, inverse)
        combine(buffer, emissions, row, c + 2 * W, c + 2 * W, r, inverse)
        combine(buffer, emissions, row, c + 3 * W, c + 3 * W, s, inverse)
        c += 4 * W
    if layout.width - c == 3 * W:
        end = layout.arriving + c
        p, q, r = row_times_three(
            buffer,
            left,
            layout.T + c * rows,
            rows,
            layout.n,
            (load(buffer, end), load(buffer, end + W), load(buffer, end + 2 * W)),
        )
        combine(buffer, emissions, row, c, c, p, inverse)
        combine(buffer, emissions, row, c + W, c + W, q, inverse)
        combine(buffer, emissions, row, c + 2 * W, c + 2 * W, r, inverse)
        c += 3 * W
    while c < layout.width:
        future = row_times(buffer, left, layout.T + c * rows, rows, load(buffer, layout.arriving + c))
        combine(buffer, emissions, row, c, c, future, inverse)
        c += W


@part
def _leave(problem, job, i, layout, buffer, out):
    """Add start and pair derivatives to the slot; mark the object if anything overflowed."""
    slot = job.slots[i]
    total = add_pairs(buffer, layout.pairs, layout.width, slot, out.transitions)
    for k in range(layout.n):
        out.start[slot, k] += buffer[layout.now + k]
        total += buffer[layout.now + k]
    if not total + sum_of_emissions(problem, job, i, out.emissions) < np.inf:
        out.log_prob[i] = np.nan
