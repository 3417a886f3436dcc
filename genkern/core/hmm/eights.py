"""Passes over eight sequences of one shared chain at a time, of at most eight states: a row of states is a vector.

The layout and the products are those of ``hmm.groups``, with one panel; but the transition matrix stays in eight
registers over all steps, and the ends of sequences are handled outside the loops. Rescaled steps, one of ``STRIDE``,
store a rescaled prediction, so that the others need no multiplication by one.
"""

from __future__ import annotations

import numpy as np

from genkern.core.hmm.group_rows import (
    add_gathered,
    arrive,
    bring_shared,
    end_row,
    factors_of,
    leave,
    row_of,
    start_row,
)
from genkern.core.hmm.rows import LARGEST, LENGTH, OBJECT, ROWS, SMALLEST, STRIDE, enter, sum_of_shifts
from genkern.core.hmm.states import TILE, clear, copy_row
from genkern.core.jit import inlined, kernel
from genkern.core.simd.shuffle import exponent, inverse_power, transpose
from genkern.core.simd.vectors import W, broadcast, element, less, load, multiply_add, select, store, zero

LINE = W * W  # doubles of a message


@kernel
def eights_pass(problem, rows, job, out, layout, buffer, ints):
    """Set log P of the members, nan where out of range, and add their derivatives to their slots."""
    bring_shared(problem, rows, layout, buffer)
    for group in range(len(job.members)):
        enter(problem, job, group, ints, True)
        _forward(problem, rows, layout, buffer, ints, out)
        if job.derivatives:
            _backward(layout, buffer, ints, out.emissions)
            leave(problem, job, layout, buffer, ints, out)


@inlined
def _panel(buffer, offset):
    """Return the eight rows of a matrix."""
    return (
        load(buffer, offset),
        load(buffer, offset + W),
        load(buffer, offset + 2 * W),
        load(buffer, offset + 3 * W),
        load(buffer, offset + 4 * W),
        load(buffer, offset + 5 * W),
        load(buffer, offset + 6 * W),
        load(buffer, offset + 7 * W),
    )


@inlined
def _times(buffer, left, matrix, sums):
    """Return four sums plus the messages of four sequences from ``left`` on, times a matrix in registers.

    Unrolled by hand: a loop would not keep the matrix in registers, and a helper per state takes long to compile.
    """
    a, b, c, d = sums
    second, third, fourth = left + W, left + 2 * W, left + 3 * W
    a = multiply_add(broadcast(element(buffer, left)), matrix[0], a)
    b = multiply_add(broadcast(element(buffer, second)), matrix[0], b)
    c = multiply_add(broadcast(element(buffer, third)), matrix[0], c)
    d = multiply_add(broadcast(element(buffer, fourth)), matrix[0], d)
    a = multiply_add(broadcast(element(buffer, left + 1)), matrix[1], a)
    b = multiply_add(broadcast(element(buffer, second + 1)), matrix[1], b)
    c = multiply_add(broadcast(element(buffer, third + 1)), matrix[1], c)
    d = multiply_add(broadcast(element(buffer, fourth + 1)), matrix[1], d)
    a = multiply_add(broadcast(element(buffer, left + 2)), matrix[2], a)
    b = multiply_add(broadcast(element(buffer, second + 2)), matrix[2], b)
    c = multiply_add(broadcast(element(buffer, third + 2)), matrix[2], c)
    d = multiply_add(broadcast(element(buffer, fourth + 2)), matrix[2], d)
    a = multiply_add(broadcast(element(buffer, left + 3)), matrix[3], a)
    b = multiply_add(broadcast(element(buffer, second + 3)), matrix[3], b)
    c = multiply_add(broadcast(element(buffer, third + 3)), matrix[3], c)
    d = multiply_add(broadcast(element(buffer, fourth + 3)), matrix[3], d)
    a = multiply_add(broadcast(element(buffer, left + 4)), matrix[4], a)
    b = multiply_add(broadcast(element(buffer, second + 4)), matrix[4], b)
    c = multiply_add(broadcast(element(buffer, third + 4)), matrix[4], c)
    d = multiply_add(broadcast(element(buffer, fourth + 4)), matrix[4], d)
    a = multiply_add(broadcast(element(buffer, left + 5)), matrix[5], a)
    b = multiply_add(broadcast(element(buffer, second + 5)), matrix[5], b)
    c = multiply_add(broadcast(element(buffer, third + 5)), matrix[5], c)
    d = multiply_add(broadcast(element(buffer, fourth + 5)), matrix[5], d)
    a = multiply_add(broadcast(element(buffer, left + 6)), matrix[6], a)
    b = multiply_add(broadcast(element(buffer, second + 6)), matrix[6], b)
    c = multiply_add(broadcast(element(buffer, third + 6)), matrix[6], c)
    d = multiply_add(broadcast(element(buffer, fourth + 6)), matrix[6], d)
    a = multiply_add(broadcast(element(buffer, left + 7)), matrix[7], a)
    b = multiply_add(broadcast(element(buffer, second + 7)), matrix[7], b)
    c = multiply_add(broadcast(element(buffer, third + 7)), matrix[7], c)
    d = multiply_add(broadcast(element(buffer, fourth + 7)), matrix[7], d)
    return a, b, c, d


# --- forward


@kernel
def _forward(problem, rows, layout, buffer, ints, out):
    """Run the forward pass of a group, keeping pred and scale; set log P as the sequences end."""
    lane, t = 0, np.int64(1)  # int64, as Numba compiles callees once more for a literal
    store(buffer, layout.mass, broadcast(1.0))
    store(buffer, layout.mass + W, zero())
    while ints[LENGTH + lane] == 0:
        lane += 1
    for s in range(W):
        if layout.symbols == 0:
            copy_row(rows, ints[ROWS + s], layout.n, buffer, factors_of(layout, ints, 0, s))
        start_row(problem.start, layout, buffer, ints, s)
    while lane < W:
        stop = ints[LENGTH + lane]
        _advance(rows, layout, buffer, ints, t, stop)
        t = stop
        while lane < W and ints[LENGTH + lane] == t:
            shift = sum_of_shifts(problem, ints[OBJECT + lane]) if rows.has_shift else 0.0
            end_row(layout, buffer, ints, lane, layout.now + lane * W, shift, out)
            lane += 1


@kernel
def _advance(rows, layout, buffer, ints, first, stop):
    """Advance the message ``now`` over steps in which no sequence ends."""
    # Lanes ascend by length: the first four are done when the fourth is.
    begin, A = 0 if first < ints[LENGTH + TILE - 1] else TILE, _panel(buffer, layout.A)
    for t in range(first, stop):
        for s in range(begin, W, TILE):
            if layout.symbols == 0:
                for k in range(s, s + TILE):
                    copy_row(rows, ints[ROWS + t * W + k], layout.n, buffer, factors_of(layout, ints, t, k))
            pred, to = layout.pred + t * layout.stride * LINE + s * W, layout.now + s * W
            a, b, c, d = _times(buffer, to, A, (zero(), zero(), zero(), zero()))
            store(buffer, pred, a)
            store(buffer, pred + W, b)
            store(buffer, pred + 2 * W, c)
            store(buffer, pred + 3 * W, d)
            store(buffer, to, a * load(buffer, factors_of(layout, ints, t, s)))
            store(buffer, to + W, b * load(buffer, factors_of(layout, ints, t, s + 1)))
            store(buffer, to + 2 * W, c * load(buffer, factors_of(layout, ints, t, s + 2)))
            store(buffer, to + 3 * W, d * load(buffer, factors_of(layout, ints, t, s + 3)))
        if t % STRIDE == STRIDE - 1:
            _rescale(layout, buffer, t * layout.stride, begin)


@inlined
def _rescale(layout, buffer, t, begin):
    """Divide messages and predictions by a power of two a sequence; mark those whose mass has left its range."""
    mass, scale = layout.mass, layout.scale + t * W
    p, q, r, s, u, v, x, y = _panel(buffer, layout.now)
    p, q, r, s, u, v, x, y = transpose(p, q, r, s, u, v, x, y)
    total = ((p + q) + (r + s)) + ((u + v) + (x + y))
    store(buffer, scale, inverse_power(total))
    for k in range(begin, W):
        inverse, now, pred = broadcast(element(buffer, scale + k)), layout.now + k * W, layout.pred + t * LINE + k * W
        store(buffer, now, load(buffer, now) * inverse)
        store(buffer, pred, load(buffer, pred) * inverse)
    store(buffer, mass + W, load(buffer, mass + W) + exponent(total))
    valid = select(less(total, broadcast(LARGEST)), load(buffer, mass), zero())
    store(buffer, mass, select(less(broadcast(SMALLEST), total), valid, zero()))


# --- backward


@kernel
def _backward(layout, buffer, ints, emissions):
    """Run the backward pass: add emission derivatives to the output, pair counts to ``pairs``."""
    count = np.int64(0)  # int64, as Numba compiles callees once more for a literal
    lane, t = W - 1, ints[LENGTH + W - 1]
    clear(buffer, layout.pairs, W * LINE)
    while t > 0:
        # Sequences that end here get their backward message at their last step only.
        clear(buffer, layout.arriving, LINE)
        while lane >= 0 and ints[LENGTH + lane] == t:
            arrive(layout, buffer, lane, layout.weighted + count * layout.step)
            lane -= 1
        count = _retreat(layout, buffer, ints, t, t - 1, count, emissions)
        clear(buffer, layout.arriving, LINE)
        stop = ints[LENGTH + lane] if lane >= 0 else 0
        count = _retreat(layout, buffer, ints, t - 1, stop, count, emissions)
        t = stop
    add_gathered(layout, buffer, ints, 0, count)
    for c in range(0, LINE, W):
        store(buffer, layout.now + c, load(buffer, layout.weighted + count * layout.step + c))


@kernel
def _retreat(layout, buffer, ints, last, first, count, emissions):
    """Take the backward message from step ``last`` to step ``first``; return the count of gathered steps.

    Row j of alpha holds a step and row j of weighted the step after it; steps go backwards in time.
    """
    t = last
    while t > first:
        steps = min(layout.gathered - count, t - first)
        _recede(layout, buffer, ints, t, steps, count, emissions)
        t, count = t - steps, count + steps
        if count == layout.gathered:
            add_gathered(layout, buffer, ints, t, count)
            for c in range(layout.weighted, layout.weighted + LINE, W):
                store(buffer, c, load(buffer, c + layout.gathered * layout.step))
            count = 0
    return count


@kernel
def _recede(layout, buffer, ints, last, steps, count, emissions):
    """Combine past, present and future of some steps: alpha, weighted future, emission derivatives."""
    begin, T = 0 if last <= ints[LENGTH + TILE - 1] else TILE, _panel(buffer, layout.T)
    for t in range(last - 1, last - 1 - steps, -1):
        for s in range(begin, W, TILE):
            end = layout.arriving + s * W
            arriving = load(buffer, end), load(buffer, end + W), load(buffer, end + 2 * W), load(buffer, end + 3 * W)
            a, b, c, d = _times(buffer, layout.weighted + count * layout.step + s * W, T, arriving)
            _combine(buffer, emissions, row_of(layout, ints, t, s, count, emissions), a)
            _combine(buffer, emissions, row_of(layout, ints, t, s + 1, count, emissions), b)
            _combine(buffer, emissions, row_of(layout, ints, t, s + 2, count, emissions), c)
            _combine(buffer, emissions, row_of(layout, ints, t, s + 3, count, emissions), d)
        count += 1
        if t % STRIDE == STRIDE - 1:
            # The prediction was rescaled, and with it alpha and the derivatives; the future follows.
            for s in range(begin, W):
                to = layout.weighted + count * layout.step + s * W
                store(buffer, to, load(buffer, to) * broadcast(element(buffer, layout.scale + t * W + s)))


@inlined
def _combine(buffer, emissions, row, future):
    """Store alpha and the weighted future of one sequence; add its emission derivatives to the output."""
    past, factors = load(buffer, row.pred), load(buffer, row.factors)
    store(buffer, row.alpha, past * factors)
    store(buffer, row.weighted, future * factors)
    store(emissions, row.emissions, multiply_add(past, future, load(emissions, row.emissions)))
