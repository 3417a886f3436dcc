"""Passes over eight sequences of one shared chain at a time, states contiguous: small matrix products.

For more than eight states; ``hmm.eights`` is for fewer. The forward and backward steps of eight
sequences are products of an (8, n) message with the transition matrix; pair counts are sums of outer products,
added per sequence after every so many gathered steps.
"""

from __future__ import annotations

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
from genkern.core.hmm.states import TILE, clear, combine, copy_row, rows_times
from genkern.core.jit import inlined, kernel
from genkern.core.simd.shuffle import exponent, inverse_power
from genkern.core.simd.vectors import W, broadcast, element, horizontal_sum, less, load, select, store, zero


@kernel
def groups_pass(problem, rows, job, out, layout, buffer, ints):
    """Set log P of the members, nan where out of range, and add their derivatives to their slots."""
    bring_shared(problem, rows, layout, buffer)
    for group in range(len(job.members)):
        enter(problem, job, group, ints, True)
        _forward(problem, rows, layout, buffer, ints, out)
        if job.derivatives:
            _backward(layout, buffer, ints, out.emissions)
            leave(problem, job, layout, buffer, ints, out)


@kernel
def _forward(problem, rows, layout, buffer, ints, out):
    """Run the forward pass of a group, keeping pred and scale; set log P as the sequences end."""
    now, lane = layout.now, 0
    store(buffer, layout.mass, broadcast(1.0))
    store(buffer, layout.mass + W, zero())
    while ints[LENGTH + lane] == 0:
        lane += 1
    for t in range(ints[LENGTH + W - 1]):
        # Lanes ascend by length: the first four are done when the fourth is.
        begin = 0 if t < ints[LENGTH + TILE - 1] else TILE
        scale = layout.scale + t * layout.stride * W
        if layout.symbols == 0:
            for s in range(begin, W):
                copy_row(rows, ints[ROWS + t * W + s], layout.n, buffer, factors_of(layout, ints, t, s))
        if t == 0:
            for s in range(begin, W):
                start_row(problem.start, layout, buffer, ints, s)
        else:
            then, now = now, 2 * layout.now + W * layout.width - now
            for s in range(begin, W, TILE):
                _forward_rows(layout, buffer, ints, t, s, then, now)
        store(buffer, scale, broadcast(1.0))
        if t % STRIDE == STRIDE - 1:
            _rescale(layout, buffer, now, scale, begin)
        while lane < W and ints[LENGTH + lane] == t + 1:
            shift = sum_of_shifts(problem, ints[OBJECT + lane]) if rows.has_shift else 0.0
            end_row(layout, buffer, ints, lane, now + lane * W, shift, out)
            lane += 1


@inlined
def _forward_rows(layout, buffer, ints, t, s, then, now):
    """Compute one forward step of the four sequences from s on: pred = A^T then, now = pred * b."""
    n, pred, to = layout.n, layout.pred + t * layout.stride * W * layout.width + s * W, now + s * W
    e, f = factors_of(layout, ints, t, s), factors_of(layout, ints, t, s + 1)
    g, h = factors_of(layout, ints, t, s + 2), factors_of(layout, ints, t, s + 3)
    for panel in range(0, layout.width, W):
        none = zero(), zero(), zero(), zero()
        a, b, c, d = rows_times(buffer, then + s * W, layout.A + panel * n, n, none)
        store(buffer, pred, a)
        store(buffer, pred + W, b)
        store(buffer, pred + 2 * W, c)
        store(buffer, pred + 3 * W, d)
        store(buffer, to, a * load(buffer, e + panel))
        store(buffer, to + W, b * load(buffer, f + panel))
        store(buffer, to + 2 * W, c * load(buffer, g + panel))
        store(buffer, to + 3 * W, d * load(buffer, h + panel))
        pred += W * W
        to += W * W


@kernel
def _rescale(layout, buffer, now, scale, begin):
    """Divide each sequence's message by a power of two; mark those whose mass has left its range."""
    line, mass = W * layout.width, layout.mass
    for s in range(begin, W):
        sums = zero()
        for c in range(now + s * W, now + s * W + line, W * W):
            sums = sums + load(buffer, c)
        buffer[scale + s] = horizontal_sum(sums)
    total = load(buffer, scale)
    inverse = inverse_power(total)
    store(buffer, scale, inverse)
    for s in range(begin, W):
        factor = broadcast(element(buffer, scale + s))
        for c in range(now + s * W, now + s * W + line, W * W):
            store(buffer, c, load(buffer, c) * factor)
    store(buffer, mass + W, load(buffer, mass + W) + exponent(total))
    valid = select(less(total, broadcast(LARGEST)), load(buffer, mass), zero())
    store(buffer, mass, select(less(broadcast(SMALLEST), total), valid, zero()))


@kernel
def _backward(layout, buffer, ints, emissions):
    """Run the backward pass: add emission derivatives to the output, pair counts to ``pairs``."""
    line, lane, count = W * layout.width, W - 1, 0
    clear(buffer, layout.pairs, layout.width * line)
    clear(buffer, layout.arriving, line)
    # Row j of alpha holds a step and row j of weighted the step after it; steps go backwards in time.
    for t in range(ints[LENGTH + W - 1] - 1, -1, -1):
        ended = lane
        while lane >= 0 and ints[LENGTH + lane] == t + 1:
            arrive(layout, buffer, lane, layout.weighted + count * layout.step)
            lane -= 1
        for s in range(0 if t < ints[LENGTH + TILE - 1] else TILE, W, TILE):
            _backward_rows(layout, buffer, ints, t, s, count, emissions)
        if ended > lane:
            clear(buffer, layout.arriving, line)
        count += 1
        if count == layout.gathered:
            add_gathered(layout, buffer, ints, t, count)
            for c in range(layout.weighted, layout.weighted + line, W):
                store(buffer, c, load(buffer, c + layout.gathered * layout.step))
            count = 0
    add_gathered(layout, buffer, ints, 0, count)
    for c in range(0, line, W):
        store(buffer, layout.now + c, load(buffer, layout.weighted + count * layout.step + c))


@inlined
def _backward_rows(layout, buffer, ints, t, s, count, emissions):
    """Compute one backward step of the four sequences from s on."""
    n, left, scale = layout.n, layout.weighted + count * layout.step + s * W, layout.scale + t * W + s
    e, f = row_of(layout, ints, t, s, count, emissions), row_of(layout, ints, t, s + 1, count, emissions)
    g, h = row_of(layout, ints, t, s + 2, count, emissions), row_of(layout, ints, t, s + 3, count, emissions)
    for panel in range(0, layout.width, W):
        end, to = layout.arriving + s * W + panel * W, panel * W
        arriving = load(buffer, end), load(buffer, end + W), load(buffer, end + 2 * W), load(buffer, end + 3 * W)
        a, b, c, d = rows_times(buffer, left, layout.T + panel * n, n, arriving)
        combine(buffer, emissions, e, to, panel, a, broadcast(element(buffer, scale)))
        combine(buffer, emissions, f, to, panel, b, broadcast(element(buffer, scale + 1)))
        combine(buffer, emissions, g, to, panel, c, broadcast(element(buffer, scale + 2)))
        combine(buffer, emissions, h, to, panel, d, broadcast(element(buffer, scale + 3)))
