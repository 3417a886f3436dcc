"""Passes over eight sequences of one shared chain at a time, of at most eight states: a row of states is a vector.

The places and the products are those of ``hmm.blocks``, with one panel; but the transition matrix stays in eight
registers over all steps, and what happens at the ends of sequences is out of the loops. Rescaled steps, one of
``STRIDE``, keep a rescaled prediction, so that the others need not multiply by one.
"""

from __future__ import annotations

import numpy as np

from genkern.core.hmm.block_rows import (
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
def eights_pass(problem, rows, job, out, at, m, ints):
    """Set log P of the members, nan where out of range, and add their derivatives to their slots."""
    bring_shared(problem, rows, at, m)
    for block in range(len(job.members)):
        enter(problem, job, block, ints, True)
        _forward(problem, rows, at, m, ints, out)
        if job.derivatives:
            _backward(at, m, ints, out.emissions)
            leave(problem, job, at, m, ints, out)


@inlined
def _panel(m, place):
    """Return the eight rows of a matrix."""
    return (
        load(m, place),
        load(m, place + W),
        load(m, place + 2 * W),
        load(m, place + 3 * W),
        load(m, place + 4 * W),
        load(m, place + 5 * W),
        load(m, place + 6 * W),
        load(m, place + 7 * W),
    )


@inlined
def _times(m, left, matrix, sums):
    """Return four sums plus the messages of four sequences from ``left`` on, times a matrix in registers.

    No loop, and no helper for a state: the one would not keep the matrix in registers, the other takes long to compile.
    """
    a, b, c, d = sums
    second, third, fourth = left + W, left + 2 * W, left + 3 * W
    a = multiply_add(broadcast(element(m, left)), matrix[0], a)
    b = multiply_add(broadcast(element(m, second)), matrix[0], b)
    c = multiply_add(broadcast(element(m, third)), matrix[0], c)
    d = multiply_add(broadcast(element(m, fourth)), matrix[0], d)
    a = multiply_add(broadcast(element(m, left + 1)), matrix[1], a)
    b = multiply_add(broadcast(element(m, second + 1)), matrix[1], b)
    c = multiply_add(broadcast(element(m, third + 1)), matrix[1], c)
    d = multiply_add(broadcast(element(m, fourth + 1)), matrix[1], d)
    a = multiply_add(broadcast(element(m, left + 2)), matrix[2], a)
    b = multiply_add(broadcast(element(m, second + 2)), matrix[2], b)
    c = multiply_add(broadcast(element(m, third + 2)), matrix[2], c)
    d = multiply_add(broadcast(element(m, fourth + 2)), matrix[2], d)
    a = multiply_add(broadcast(element(m, left + 3)), matrix[3], a)
    b = multiply_add(broadcast(element(m, second + 3)), matrix[3], b)
    c = multiply_add(broadcast(element(m, third + 3)), matrix[3], c)
    d = multiply_add(broadcast(element(m, fourth + 3)), matrix[3], d)
    a = multiply_add(broadcast(element(m, left + 4)), matrix[4], a)
    b = multiply_add(broadcast(element(m, second + 4)), matrix[4], b)
    c = multiply_add(broadcast(element(m, third + 4)), matrix[4], c)
    d = multiply_add(broadcast(element(m, fourth + 4)), matrix[4], d)
    a = multiply_add(broadcast(element(m, left + 5)), matrix[5], a)
    b = multiply_add(broadcast(element(m, second + 5)), matrix[5], b)
    c = multiply_add(broadcast(element(m, third + 5)), matrix[5], c)
    d = multiply_add(broadcast(element(m, fourth + 5)), matrix[5], d)
    a = multiply_add(broadcast(element(m, left + 6)), matrix[6], a)
    b = multiply_add(broadcast(element(m, second + 6)), matrix[6], b)
    c = multiply_add(broadcast(element(m, third + 6)), matrix[6], c)
    d = multiply_add(broadcast(element(m, fourth + 6)), matrix[6], d)
    a = multiply_add(broadcast(element(m, left + 7)), matrix[7], a)
    b = multiply_add(broadcast(element(m, second + 7)), matrix[7], b)
    c = multiply_add(broadcast(element(m, third + 7)), matrix[7], c)
    d = multiply_add(broadcast(element(m, fourth + 7)), matrix[7], d)
    return a, b, c, d


# --- forward


@kernel
def _forward(problem, rows, at, m, ints, out):
    """Run the forward pass of a block, keeping pred and scale; set log P as the sequences end."""
    lane, t = 0, np.int64(1)  # int64, as Numba compiles callees once more for a literal
    store(m, at.mass, broadcast(1.0))
    store(m, at.mass + W, zero())
    while ints[LENGTH + lane] == 0:
        lane += 1
    for s in range(W):
        if at.symbols == 0:
            copy_row(rows, ints[ROWS + s], at.n, m, factors_of(at, ints, 0, s))
        start_row(problem.start, at, m, ints, s)
    while lane < W:
        stop = ints[LENGTH + lane]
        _advance(rows, at, m, ints, t, stop)
        t = stop
        while lane < W and ints[LENGTH + lane] == t:
            shift = sum_of_shifts(problem, ints[OBJECT + lane]) if rows.has_shift else 0.0
            end_row(at, m, ints, lane, at.now + lane * W, shift, out)
            lane += 1


@kernel
def _advance(rows, at, m, ints, first, stop):
    """Take the message ``now`` from one step to another, in which no sequence ends."""
    # Lanes ascend by length: the first four are done when the fourth is.
    begin, A = 0 if first < ints[LENGTH + TILE - 1] else TILE, _panel(m, at.A)
    for t in range(first, stop):
        for s in range(begin, W, TILE):
            if at.symbols == 0:
                for k in range(s, s + TILE):
                    copy_row(rows, ints[ROWS + t * W + k], at.n, m, factors_of(at, ints, t, k))
            pred, to = at.pred + t * at.stride * LINE + s * W, at.now + s * W
            a, b, c, d = _times(m, to, A, (zero(), zero(), zero(), zero()))
            store(m, pred, a)
            store(m, pred + W, b)
            store(m, pred + 2 * W, c)
            store(m, pred + 3 * W, d)
            store(m, to, a * load(m, factors_of(at, ints, t, s)))
            store(m, to + W, b * load(m, factors_of(at, ints, t, s + 1)))
            store(m, to + 2 * W, c * load(m, factors_of(at, ints, t, s + 2)))
            store(m, to + 3 * W, d * load(m, factors_of(at, ints, t, s + 3)))
        if t % STRIDE == STRIDE - 1:
            _rescale(at, m, t * at.stride, begin)


@inlined
def _rescale(at, m, t, begin):
    """Divide messages and predictions by a power of two a sequence; mark those whose mass has left its range."""
    mass, scale = at.mass, at.scale + t * W
    p, q, r, s, u, v, x, y = _panel(m, at.now)
    p, q, r, s, u, v, x, y = transpose(p, q, r, s, u, v, x, y)
    total = ((p + q) + (r + s)) + ((u + v) + (x + y))
    store(m, scale, inverse_power(total))
    for k in range(begin, W):
        inverse, now, pred = broadcast(element(m, scale + k)), at.now + k * W, at.pred + t * LINE + k * W
        store(m, now, load(m, now) * inverse)
        store(m, pred, load(m, pred) * inverse)
    store(m, mass + W, load(m, mass + W) + exponent(total))
    valid = select(less(total, broadcast(LARGEST)), load(m, mass), zero())
    store(m, mass, select(less(broadcast(SMALLEST), total), valid, zero()))


# --- backward


@kernel
def _backward(at, m, ints, emissions):
    """Run the backward pass: emission derivatives go to the output, pair counts to ``pairs``."""
    place = np.int64(0)  # int64, as Numba compiles callees once more for a literal
    lane, t = W - 1, ints[LENGTH + W - 1]
    clear(m, at.pairs, W * LINE)
    while t > 0:
        # The sequences that end here bring their future to the last step of theirs, and to no other.
        clear(m, at.arriving, LINE)
        while lane >= 0 and ints[LENGTH + lane] == t:
            arrive(at, m, lane, at.weighted + place * at.step)
            lane -= 1
        place = _retreat(at, m, ints, t, t - 1, place, emissions)
        clear(m, at.arriving, LINE)
        stop = ints[LENGTH + lane] if lane >= 0 else 0
        place = _retreat(at, m, ints, t - 1, stop, place, emissions)
        t = stop
    add_gathered(at, m, ints, 0, place)
    for c in range(0, LINE, W):
        store(m, at.now + c, load(m, at.weighted + place * at.step + c))


@kernel
def _retreat(at, m, ints, last, first, place, emissions):
    """Take the future from before step ``last`` back to step ``first``; return the place for the next one.

    Place j of alpha holds a step, place j of weighted the one after it, which is the first to be made.
    """
    t = last
    while t > first:
        steps = min(at.chunk - place, t - first)
        _recede(at, m, ints, t, steps, place, emissions)
        t, place = t - steps, place + steps
        if place == at.chunk:
            add_gathered(at, m, ints, t, place)
            for c in range(at.weighted, at.weighted + LINE, W):
                store(m, c, load(m, c + at.chunk * at.step))
            place = 0
    return place


@kernel
def _recede(at, m, ints, last, steps, place, emissions):
    """Combine past, present and future of some steps: alpha, weighted future, emission derivatives."""
    begin, T = 0 if last <= ints[LENGTH + TILE - 1] else TILE, _panel(m, at.T)
    for t in range(last - 1, last - 1 - steps, -1):
        for s in range(begin, W, TILE):
            end = at.arriving + s * W
            arriving = load(m, end), load(m, end + W), load(m, end + 2 * W), load(m, end + 3 * W)
            a, b, c, d = _times(m, at.weighted + place * at.step + s * W, T, arriving)
            _combine(m, emissions, row_of(at, ints, t, s, place, emissions), a)
            _combine(m, emissions, row_of(at, ints, t, s + 1, place, emissions), b)
            _combine(m, emissions, row_of(at, ints, t, s + 2, place, emissions), c)
            _combine(m, emissions, row_of(at, ints, t, s + 3, place, emissions), d)
        place += 1
        if t % STRIDE == STRIDE - 1:
            # The prediction was rescaled, and with it alpha and the derivatives; the future follows.
            for s in range(begin, W):
                to = at.weighted + place * at.step + s * W
                store(m, to, load(m, to) * broadcast(element(m, at.scale + t * W + s)))


@inlined
def _combine(m, emissions, row, future):
    """Store alpha and the weighted future of one sequence; add its emission derivatives to the output."""
    past, factors = load(m, row.pred), load(m, row.factors)
    store(m, row.alpha, past * factors)
    store(m, row.weighted, future * factors)
    store(emissions, row.emissions, multiply_add(past, future, load(emissions, row.emissions)))
