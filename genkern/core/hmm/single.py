"""Passes over one sequence at a time, states contiguous: for own chains of many states, and very long sequences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from genkern.core.hmm.reference import row_of
from genkern.core.hmm.rows import LARGEST, LOG_2, SMALLEST, STRIDE, sum_of_emissions, sum_of_shifts
from genkern.core.hmm.states import (
    Row,
    add_outer,
    add_pairs,
    chunk_of,
    clear,
    combine,
    copy_row,
    pack,
    places,
    row_times,
    row_times_four,
    row_times_three,
)
from genkern.core.jit import inlined, kernel
from genkern.core.simd.shuffle import exponent, inverse_power
from genkern.core.simd.vectors import W, broadcast, horizontal_sum, load, padded, store, zero


class Single(NamedTuple):
    """Sizes of one sequence, and where its arrays begin in the buffer.

    n states; rows: their number rounded up to a multiple of four, width: of eight; chunk: steps of outer products
    gathered; stride: 1 if the messages of all steps are kept, 0 if only one. A, T: the packed transition matrix and its
    transpose; b: emission factors of one step (width,); now (2, width): this and the last step's message; arriving
    (width,): the future of the end; pred (steps, width); scale (steps,); alpha, weighted (chunk + 1, width); pairs
    (width, width).
    """

    n: int
    rows: int
    width: int
    chunk: int
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


def single_of(n: int, steps: int, keep: bool, symbols: int) -> tuple[Single, int, int]:
    """Return the places of a sequence's arrays, and how many doubles and integers they take, for any symbols."""
    rows, width, chunk, kept = -(-n // 4) * 4, padded(n), chunk_of(n), steps if keep else 1
    gathered, pairs = ((chunk + 1) * width, width * width) if keep else (0, 0)
    counts = [rows * width, rows * width, width, 2 * width, width, kept * width, kept, gathered, gathered, pairs]
    starts, total = places(counts)
    return Single(n, rows, width, chunk, int(keep), *starts), total, 0


@kernel
def single_pass(problem, rows, job, out, at, m, ints):
    """Set log P of the members, nan where out of range, and add their derivatives to their slots."""
    own, packed = len(problem.start) > 1, False
    for block in range(len(job.members)):
        for i in job.members[block]:
            if i < 0:
                continue
            if own or not packed:
                pack(problem.transitions[i if own else 0], False, at.rows, m, at.A)
                pack(problem.transitions[i if own else 0], True, at.rows, m, at.T)
                packed = True
            _forward(problem, rows, i, at, m, out.log_prob)
            if job.derivatives and not np.isnan(out.log_prob[i]):
                # The forward pass leaves the derivatives of the end weights where factors were.
                for k in range(at.n):
                    out.end[job.slots[i], k] += m[at.b + k]
                _backward(problem, rows, job, i, at, m, out.emissions)
                _leave(problem, job, i, at, m, out)


@kernel
def _forward(problem, rows, i, at, m, log_prob):
    """Set log P of object i, nan if out of range; keep pred, scale, and the future and derivatives of its end."""
    first, last, now, n = problem.offsets[i], problem.offsets[i + 1], at.now, at.n
    chain, power, final = i if len(problem.start) > 1 else 0, 0.0, 0.0
    log_prob[i] = np.nan
    for t in range(last - first):
        pred = at.pred + t * at.stride * at.width
        copy_row(rows, row_of(problem, i, first + t), n, m, at.b)
        then, now = now, 2 * at.now + at.width - now
        for k in range(n if t == 0 else 0):
            m[pred + k] = problem.start[chain, k]
        total = _ahead(at, m, then, now, pred) if t > 0 else _emit(at, m, 0, now, pred, load(m, pred))
        for c in range(W, at.width if t == 0 else 0, W):
            total = total + _emit(at, m, c, now, pred, load(m, pred + c))
        m[at.scale + t * at.stride] = 1.0
        if t % STRIDE == STRIDE - 1:
            mass = horizontal_sum(total)
            if not SMALLEST < mass < LARGEST:
                return
            # A power of two and its exponent, in all eight lanes; their mean is exact.
            power += horizontal_sum(exponent(broadcast(mass))) / W
            inverse = horizontal_sum(inverse_power(broadcast(mass))) / W
            m[at.scale + t * at.stride] = inverse
            for c in range(now, now + at.width, W):
                store(m, c, load(m, c) * broadcast(inverse))
    for k in range(n):
        final += m[now + k] * problem.end[chain, k]
    if not SMALLEST < final < LARGEST:
        return
    for k in range(n):
        m[at.arriving + k] = problem.end[chain, k] / final
        m[at.b + k] = m[now + k] / final
    log_prob[i] = np.log(final) + LOG_2 * power + (sum_of_shifts(problem, i) if rows.has_shift else 0.0)


@inlined
def _ahead(at, m, then, now, pred):
    """Take the message one step on; return the sum of its vectors. Panels go by four or three as far as they do."""
    c, rows, total = 0, at.rows, zero()
    while at.width - c >= 4 * W:
        p, q, r, s = row_times_four(m, then, at.A + c * rows, rows, at.n, (zero(), zero(), zero(), zero()))
        total = total + (_emit(at, m, c, now, pred, p) + _emit(at, m, c + W, now, pred, q))
        total = total + (_emit(at, m, c + 2 * W, now, pred, r) + _emit(at, m, c + 3 * W, now, pred, s))
        c += 4 * W
    if at.width - c == 3 * W:
        p, q, r = row_times_three(m, then, at.A + c * rows, rows, at.n, (zero(), zero(), zero()))
        total = total + (_emit(at, m, c, now, pred, p) + _emit(at, m, c + W, now, pred, q))
        total = total + _emit(at, m, c + 2 * W, now, pred, r)
        c += 3 * W
    while c < at.width:
        total = total + _emit(at, m, c, now, pred, row_times(m, then, at.A + c * rows, rows, zero()))
        c += W
    return total


@inlined
def _emit(at, m, c, now, pred, predicted):
    """Store eight predicted masses, and the same times their emission factors; return these."""
    message = predicted * load(m, at.b + c)
    store(m, pred + c, predicted)
    store(m, now + c, message)
    return message


@kernel
def _backward(problem, rows, job, i, at, m, emissions):
    """Run the backward pass: emission derivatives go to the output, pair counts to ``pairs``."""
    first, width, n = problem.offsets[i], at.width, at.n
    chain = i if len(problem.start) > 1 else 0
    to_output = (job.slots[i] - chain) * (len(problem.table) // len(problem.start)) if len(problem.codes) else 0
    clear(m, at.pairs, width * width)
    clear(m, at.weighted, width)
    # Place j of alpha holds a step, place j of weighted the one after it, which is the first to be made.
    place = 0
    for t in range(problem.offsets[i + 1] - first - 1, -1, -1):
        source, left = row_of(problem, i, first + t), at.weighted + place * width
        copy_row(rows, source, n, m, at.b)
        to = (source + to_output) * emissions.shape[1]
        row = Row(at.pred + t * width, at.b, at.alpha + place * width, left + width, to)
        _back(at, m, emissions, left, row, broadcast(m[at.scale + t]))
        if t == problem.offsets[i + 1] - first - 1:
            clear(m, at.arriving, width)
        place += 1
        if place == at.chunk:
            add_outer(m, at.alpha, at.weighted, at.pairs, (at.rows, width, place, width, W))
            for c in range(at.weighted, at.weighted + width, W):
                store(m, c, load(m, c + at.chunk * width))
            place = 0
    add_outer(m, at.alpha, at.weighted, at.pairs, (at.rows, width, place, width, W))
    for c in range(0, width, W):
        store(m, at.now + c, load(m, at.weighted + place * width + c))


@inlined
def _back(at, m, emissions, left, row, inverse):
    """Take the future one step back and combine it with past and present. Panels go as in _ahead."""
    c, rows = 0, at.rows
    while at.width - c >= 4 * W:
        end = at.arriving + c
        four = load(m, end), load(m, end + W), load(m, end + 2 * W), load(m, end + 3 * W)
        p, q, r, s = row_times_four(m, left, at.T + c * rows, rows, at.n, four)
        combine(m, emissions, row, c, c, p, inverse)
        combine(m, emissions, row, c + W, c + W, q, inverse)
        combine(m, emissions, row, c + 2 * W, c + 2 * W, r, inverse)
        combine(m, emissions, row, c + 3 * W, c + 3 * W, s, inverse)
        c += 4 * W
    if at.width - c == 3 * W:
        end = at.arriving + c
        p, q, r = row_times_three(
            m, left, at.T + c * rows, rows, at.n, (load(m, end), load(m, end + W), load(m, end + 2 * W))
        )
        combine(m, emissions, row, c, c, p, inverse)
        combine(m, emissions, row, c + W, c + W, q, inverse)
        combine(m, emissions, row, c + 2 * W, c + 2 * W, r, inverse)
        c += 3 * W
    while c < at.width:
        future = row_times(m, left, at.T + c * rows, rows, load(m, at.arriving + c))
        combine(m, emissions, row, c, c, future, inverse)
        c += W


@kernel
def _leave(problem, job, i, at, m, out):
    """Add start and pair derivatives to the slot; mark the object if anything overflowed."""
    slot = job.slots[i]
    total = add_pairs(m, at.pairs, at.width, slot, out.transitions)
    for k in range(at.n):
        out.start[slot, k] += m[at.now + k]
        total += m[at.now + k]
    if not total + sum_of_emissions(problem, job, i, out.emissions) < np.inf:
        out.log_prob[i] = np.nan
