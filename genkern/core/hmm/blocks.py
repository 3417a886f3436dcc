"""Passes over eight sequences of one shared chain at a time, states contiguous: small matrix products.

For many states; where there are at most eight, ``hmm.eights`` has the pass. The forward and backward steps of eight
sequences are products of an (8, n) message with the transition matrix; pair counts are products over time, gathered
per sequence in chunks of steps.
"""

from __future__ import annotations

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
from genkern.core.hmm.states import TILE, clear, combine, copy_row, rows_times
from genkern.core.jit import inlined, kernel
from genkern.core.simd.shuffle import exponent, inverse_power
from genkern.core.simd.vectors import W, broadcast, element, horizontal_sum, less, load, select, store, zero


@kernel
def blocks_pass(problem, rows, job, out, at, m, ints):
    """Set log P of the members, nan where out of range, and add their derivatives to their slots."""
    bring_shared(problem, rows, at, m)
    for block in range(len(job.members)):
        enter(problem, job, block, ints, True)
        _forward(problem, rows, at, m, ints, out)
        if job.derivatives:
            _backward(at, m, ints, out.emissions)
            leave(problem, job, at, m, ints, out)


@kernel
def _forward(problem, rows, at, m, ints, out):
    """Run the forward pass of a block, keeping pred and scale; set log P as the sequences end."""
    now, lane = at.now, 0
    store(m, at.mass, broadcast(1.0))
    store(m, at.mass + W, zero())
    while ints[LENGTH + lane] == 0:
        lane += 1
    for t in range(ints[LENGTH + W - 1]):
        # Lanes ascend by length: the first four are done when the fourth is.
        begin = 0 if t < ints[LENGTH + TILE - 1] else TILE
        scale = at.scale + t * at.stride * W
        if at.symbols == 0:
            for s in range(begin, W):
                copy_row(rows, ints[ROWS + t * W + s], at.n, m, factors_of(at, ints, t, s))
        if t == 0:
            for s in range(begin, W):
                start_row(problem.start, at, m, ints, s)
        else:
            then, now = now, 2 * at.now + W * at.width - now
            for s in range(begin, W, TILE):
                _forward_rows(at, m, ints, t, s, then, now)
        store(m, scale, broadcast(1.0))
        if t % STRIDE == STRIDE - 1:
            _rescale(at, m, now, scale, begin)
        while lane < W and ints[LENGTH + lane] == t + 1:
            shift = sum_of_shifts(problem, ints[OBJECT + lane]) if rows.has_shift else 0.0
            end_row(at, m, ints, lane, now + lane * W, shift, out)
            lane += 1


@inlined
def _forward_rows(at, m, ints, t, s, then, now):
    """Make one forward step of the four sequences from s on: pred = A^T then, now = pred * b."""
    n, pred, to = at.n, at.pred + t * at.stride * W * at.width + s * W, now + s * W
    e, f = factors_of(at, ints, t, s), factors_of(at, ints, t, s + 1)
    g, h = factors_of(at, ints, t, s + 2), factors_of(at, ints, t, s + 3)
    for panel in range(0, at.width, W):
        none = zero(), zero(), zero(), zero()
        a, b, c, d = rows_times(m, then + s * W, at.A + panel * n, n, none)
        store(m, pred, a)
        store(m, pred + W, b)
        store(m, pred + 2 * W, c)
        store(m, pred + 3 * W, d)
        store(m, to, a * load(m, e + panel))
        store(m, to + W, b * load(m, f + panel))
        store(m, to + 2 * W, c * load(m, g + panel))
        store(m, to + 3 * W, d * load(m, h + panel))
        pred += W * W
        to += W * W


@kernel
def _rescale(at, m, now, scale, begin):
    """Divide each sequence's message by a power of two; mark those whose mass has left its range."""
    line, mass = W * at.width, at.mass
    for s in range(begin, W):
        sums = zero()
        for c in range(now + s * W, now + s * W + line, W * W):
            sums = sums + load(m, c)
        m[scale + s] = horizontal_sum(sums)
    total = load(m, scale)
    inverse = inverse_power(total)
    store(m, scale, inverse)
    for s in range(begin, W):
        factor = broadcast(element(m, scale + s))
        for c in range(now + s * W, now + s * W + line, W * W):
            store(m, c, load(m, c) * factor)
    store(m, mass + W, load(m, mass + W) + exponent(total))
    valid = select(less(total, broadcast(LARGEST)), load(m, mass), zero())
    store(m, mass, select(less(broadcast(SMALLEST), total), valid, zero()))


@kernel
def _backward(at, m, ints, emissions):
    """Run the backward pass: emission derivatives go to the output, pair counts to ``pairs``."""
    line, lane, place = W * at.width, W - 1, 0
    clear(m, at.pairs, at.width * line)
    clear(m, at.arriving, line)
    # Place j of alpha holds a step, place j of weighted the one after it, which is the first to be made.
    for t in range(ints[LENGTH + W - 1] - 1, -1, -1):
        ended = lane
        while lane >= 0 and ints[LENGTH + lane] == t + 1:
            arrive(at, m, lane, at.weighted + place * at.step)
            lane -= 1
        for s in range(0 if t < ints[LENGTH + TILE - 1] else TILE, W, TILE):
            _backward_rows(at, m, ints, t, s, place, emissions)
        if ended > lane:
            clear(m, at.arriving, line)
        place += 1
        if place == at.chunk:
            add_gathered(at, m, ints, t, place)
            for c in range(at.weighted, at.weighted + line, W):
                store(m, c, load(m, c + at.chunk * at.step))
            place = 0
    add_gathered(at, m, ints, 0, place)
    for c in range(0, line, W):
        store(m, at.now + c, load(m, at.weighted + place * at.step + c))


@inlined
def _backward_rows(at, m, ints, t, s, place, emissions):
    """Make one backward step of the four sequences from s on."""
    n, left, scale = at.n, at.weighted + place * at.step + s * W, at.scale + t * W + s
    e, f = row_of(at, ints, t, s, place, emissions), row_of(at, ints, t, s + 1, place, emissions)
    g, h = row_of(at, ints, t, s + 2, place, emissions), row_of(at, ints, t, s + 3, place, emissions)
    for panel in range(0, at.width, W):
        end, to = at.arriving + s * W + panel * W, panel * W
        arriving = load(m, end), load(m, end + W), load(m, end + 2 * W), load(m, end + 3 * W)
        a, b, c, d = rows_times(m, left, at.T + panel * n, n, arriving)
        combine(m, emissions, e, to, panel, a, broadcast(element(m, scale)))
        combine(m, emissions, f, to, panel, b, broadcast(element(m, scale + 1)))
        combine(m, emissions, g, to, panel, c, broadcast(element(m, scale + 2)))
        combine(m, emissions, h, to, panel, d, broadcast(element(m, scale + 3)))
