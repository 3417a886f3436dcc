"""Passes for at most four states: a lane is a sequence, as in ``hmm.lanes``, and the messages stay in registers.

States are padded to four, so that no loop runs over them: loops of unknown length would cost more than what so few
states have to do. A pass is cut into stretches in which no sequence ends, and these into loops that do one thing each.
Where there are few symbols, ``hmm.few`` has the pass.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from genkern.core.hmm.few_lanes import FEW, LINE, QUAD, bring, is_few
from genkern.core.hmm.lanes import CHUNK, end_lane, flush, leave
from genkern.core.hmm.rows import (
    LARGEST,
    LAST_ROW,
    LENGTH,
    OBJECT,
    ROWS,
    SMALLEST,
    STRIDE,
    TO_OUTPUT,
    enter,
    sum_of_shifts,
)
from genkern.core.hmm.states import clear, places
from genkern.core.jit import inlined, kernel
from genkern.core.simd.shuffle import HALF, add_pair, exponent, inverse_power, load_pair, transpose_halves
from genkern.core.simd.vectors import W, broadcast, element, less, load, multiply_add, select, store, zero

STRETCH = 64  # steps whose emission factors are made at a time


class Quads(NamedTuple):
    """Sizes of a block, and where its lane arrays begin in the buffer; see ``hmm_lanes.Lanes``.

    n states; quad: four; width: to which rows of emission factors are read, four, or n where they are not; stride: 1 if
    the messages of all steps are kept, 0 if only those of a stretch. few: the number of symbols if they are few, else
    0; then masks is the number of integers that hold the masks of one symbol, symbols (FEW, 4) are the factors and sums
    (FEW, 4) their derivatives; b, alpha and weighted are empty, and pred holds three states a step unless n is four.
    """

    n: int
    quad: int
    width: int
    stride: int
    few: int
    masks: int
    A: int
    start: int
    end: int
    now: int
    arriving: int
    pred: int
    b: int
    scale: int
    alpha: int
    weighted: int
    pairs: int
    mass: int
    symbols: int
    sums: int


def quads_of(n: int, steps: int, keep: bool, symbols: int) -> tuple[Quads, int, int]:
    """Return the places of a block's arrays, and how many doubles and integers they take."""
    few, masks = symbols if is_few(symbols) else 0, -(-steps // W)
    kept = steps if keep else 1 if few else STRETCH
    # With few symbols neither factors nor gathered steps are kept: all that stays in registers.
    factors, gathered = (0, 0) if few else (kept * LINE, (CHUNK + 1) * LINE)
    counts = [QUAD * LINE, LINE, LINE, LINE, LINE, kept * LINE, factors, (steps // STRIDE + 1) * W]
    counts += [gathered, gathered, QUAD * LINE, 3 * W]
    counts += [FEW * LINE, FEW * LINE] if few else [0, 0]
    starts, total = places(counts)
    integers = ROWS + (FEW * masks if few else steps * W)
    return Quads(n, QUAD, n if few else QUAD, int(keep), few, masks, *starts), total, integers


@kernel
def quads_pass(problem, rows, job, out, at, m, ints):
    """Set log P of the members, nan where out of range, and add their derivatives to their slots."""
    for block in range(len(job.members)):
        enter(problem, job, block, ints, True)
        bring(problem, block, at, m, ints)
        _forward(problem, rows, at, m, ints, out)
        if job.derivatives:
            _backward(at, m, ints)
            _scatter(at, m, ints, out.emissions)
            leave(problem, job, at, m, ints, out)


# --- emission factors


@kernel
def _gather(table, safe, n, m, to, ints, first, steps):
    """Turn the table rows of eight lanes at some steps into lane vectors (steps, 4, 8)."""
    width = table.shape[1]
    for t in range(steps):
        r, b = ROWS + (first + t) * W, to + t * LINE
        if not safe:
            for lane in range(W):
                for k in range(n):
                    m[b + k * W + lane] = table[ints[r + lane], k]
                for k in range(n, QUAD):
                    m[b + k * W + lane] = 0.0  # not what an earlier block left, which may be infinite
            continue
        # Four factors fill half a vector; rows of lanes 4..7 take the other half.
        v0, v1, v2, v3 = transpose_halves(
            load_pair(table, element(ints, r) * width, element(ints, r + 4) * width),
            load_pair(table, element(ints, r + 1) * width, element(ints, r + 5) * width),
            load_pair(table, element(ints, r + 2) * width, element(ints, r + 6) * width),
            load_pair(table, element(ints, r + 3) * width, element(ints, r + 7) * width),
        )
        store(m, b, v0)
        store(m, b + W, v1)
        store(m, b + 2 * W, v2)
        store(m, b + 3 * W, v3)


# --- forward


@kernel
def _forward(problem, rows, at, m, ints, out):
    """Run the forward pass of a block, keeping pred, b and scale; set log P as the lanes end."""
    t = np.int64(0)  # int64, as Numba compiles callees once more for a literal
    lane, longest = 0, ints[LENGTH + W - 1]
    store(m, at.mass, broadcast(1.0))
    store(m, at.mass + W, zero())
    while ints[LENGTH + lane] == 0:
        lane += 1
    while t < longest:
        steps, kept = min(STRETCH, ints[LENGTH + lane] - t), t * at.stride * LINE
        _gather(rows.table, ints[LAST_ROW] <= rows.safe, at.n, m, at.b + kept, ints, t, steps)
        _advance(at, m, t, steps, kept)
        t += steps
        while lane < W and ints[LENGTH + lane] == t:
            shift = sum_of_shifts(problem, ints[OBJECT + lane]) if rows.has_shift else 0.0
            end_lane(at, m, ints, lane, at.now + lane, shift, out)
            lane += 1


@kernel
def _advance(at, m, first, steps, kept):
    """Take the message ``now`` some steps on from the given one; pred and b of these are kept from ``kept`` on."""
    now, A, b, pred, four = at.now, at.A, at.b + kept, at.pred + kept, at.n == QUAD
    a0, a1, a2, a3 = load(m, now), load(m, now + W), load(m, now + 2 * W), load(m, now + 3 * W)
    for t in range(first, first + steps):
        if t == 0:
            p, q = load(m, at.start), load(m, at.start + W)
            r, s = load(m, at.start + 2 * W), load(m, at.start + 3 * W)
        else:
            p, q, r, s = _times(m, A, LINE, W, four, (a0, a1, a2, a3), (zero(), zero(), zero(), zero()))
        store(m, pred, p)
        store(m, pred + W, q)
        store(m, pred + 2 * W, r)
        store(m, pred + 3 * W, s)
        a0, a1, a2, a3 = p * load(m, b), q * load(m, b + W), r * load(m, b + 2 * W), s * load(m, b + 3 * W)
        if t % STRIDE == STRIDE - 1:
            # A power of two per lane; lanes that have left their range are marked.
            total = (a0 + a1) + (a2 + a3)
            inverse, mass = inverse_power(total), at.mass
            a0, a1, a2, a3 = a0 * inverse, a1 * inverse, a2 * inverse, a3 * inverse
            for k in range(b, b + LINE, W):
                store(m, k, load(m, k) * inverse)
            store(m, at.scale + t // STRIDE * W, inverse)
            store(m, mass + W, load(m, mass + W) + exponent(total))
            valid = select(less(total, broadcast(LARGEST)), load(m, mass), zero())
            store(m, mass, select(less(broadcast(SMALLEST), total), valid, zero()))
        b, pred = b + LINE, pred + LINE
    store(m, now, a0)
    store(m, now + W, a1)
    store(m, now + 2 * W, a2)
    store(m, now + 3 * W, a3)


@inlined
def _times(m, matrix, step, apart, four, message, sums):
    """Return four sums plus the numbers of a message, times coefficients a step, and the sums apart.

    Unless ``four``, the last number and the last sum are padding.
    """
    a0, a1, a2, a3 = message
    p, q, r, s = sums
    second, third = matrix + step, matrix + 2 * step
    p, q = multiply_add(a0, load(m, matrix), p), multiply_add(a0, load(m, matrix + apart), q)
    r = multiply_add(a0, load(m, matrix + 2 * apart), r)
    p, q = multiply_add(a1, load(m, second), p), multiply_add(a1, load(m, second + apart), q)
    r = multiply_add(a1, load(m, second + 2 * apart), r)
    p, q = multiply_add(a2, load(m, third), p), multiply_add(a2, load(m, third + apart), q)
    r = multiply_add(a2, load(m, third + 2 * apart), r)
    if four:
        last, corner = matrix + 3 * step, matrix + 3 * apart
        p, q = multiply_add(a3, load(m, last), p), multiply_add(a3, load(m, last + apart), q)
        r = multiply_add(a3, load(m, last + 2 * apart), r)
        s = multiply_add(a0, load(m, corner), s)
        s = multiply_add(a1, load(m, corner + step), s)
        s = multiply_add(a2, load(m, corner + 2 * step), s)
        s = multiply_add(a3, load(m, corner + 3 * step), s)
    return p, q, r, s


# --- backward


@kernel
def _backward(at, m, ints):
    """Run the backward pass: emission derivatives take the place of b, pair counts go to ``pairs``."""
    place = np.int64(0)  # int64, as Numba compiles callees once more for a literal
    lane, t = W - 1, ints[LENGTH + W - 1]
    longest = t
    clear(m, at.pairs, QUAD * LINE)
    clear(m, at.weighted, LINE)
    while t > 0:
        # The sequences that end here bring their future to the last step of theirs, and to no other.
        clear(m, at.arriving, LINE)
        while lane >= 0 and ints[LENGTH + lane] == t:
            for k in range(at.n):
                m[at.arriving + k * W + lane] = m[at.end + k * W + lane] / m[at.mass + 2 * W + lane]
            lane -= 1
        place = _retreat(at, m, t, t - 1, place)
        clear(m, at.arriving, LINE)
        stop = ints[LENGTH + lane] if lane >= 0 else 0
        place = _retreat(at, m, t - 1, stop, place)
        t = stop
    flush(at, m, place)
    for k in range(0, LINE, W):
        store(m, at.now + k, load(m, at.weighted + place * LINE + k))
    # The factors of these steps were rescaled, and with them alpha and weighted; the derivatives follow.
    for t in range(STRIDE - 1, longest, STRIDE):
        for k in range(at.b + t * LINE, at.b + (t + 1) * LINE, W):
            store(m, k, load(m, k) * load(m, at.scale + t // STRIDE * W))


@kernel
def _retreat(at, m, last, first, place):
    """Take the future from before step ``last`` back to step ``first``; return the place for the next one.

    Place j of alpha holds a step, place j of weighted the one after it, which is the first to be made.
    """
    t = last
    while t > first:
        steps = min(CHUNK - place, t - first)
        _recede(at, m, t, steps, place)
        t, place = t - steps, place + steps
        if place == CHUNK:
            flush(at, m, place)
            for k in range(at.weighted, at.weighted + LINE, W):
                store(m, k, load(m, k + CHUNK * LINE))
            place = 0
    return place


@kernel
def _recede(at, m, last, steps, place):
    """Combine past, present and future of some steps: alpha, weighted future, emission derivatives in place of b."""
    A, end, alpha, four = at.A, at.arriving, at.alpha + place * LINE, at.n == QUAD
    w = at.weighted + place * LINE
    pred, b = at.pred + (last - 1) * LINE, at.b + (last - 1) * LINE
    a0, a1, a2, a3 = load(m, w), load(m, w + W), load(m, w + 2 * W), load(m, w + 3 * W)
    for _ in range(steps):
        arriving = load(m, end), load(m, end + W), load(m, end + 2 * W), load(m, end + 3 * W)
        p, q, r, s = _times(m, A, W, LINE, four, (a0, a1, a2, a3), arriving)
        w += LINE
        a0 = _combine(m, pred, b, alpha, w, p)
        a1 = _combine(m, pred + W, b + W, alpha + W, w + W, q)
        a2 = _combine(m, pred + 2 * W, b + 2 * W, alpha + 2 * W, w + 2 * W, r)
        a3 = _combine(m, pred + 3 * W, b + 3 * W, alpha + 3 * W, w + 3 * W, s)
        pred, b, alpha = pred - LINE, b - LINE, alpha + LINE


@inlined
def _combine(m, pred, b, alpha, weighted, future):
    """Store alpha, the weighted future and the emission derivatives of one state; return the second."""
    past, factor = load(m, pred), load(m, b)
    product = future * factor
    store(m, alpha, past * factor)
    store(m, weighted, product)
    store(m, b, past * future)
    return product


# --- emission derivatives


@kernel
def _scatter(at, m, ints, emissions):
    """Add the derivatives b (steps, 4, 8) to the output rows of the eight lanes."""
    n, width = at.n, emissions.shape[1]
    # Padding may reach into so many later rows of positions, to which it adds nothing; but not into another object's,
    # that another thread may be adding to.
    reach = (QUAD - width + n - 1) // n
    for t in range(ints[LENGTH + W - 1]):
        r, g = ROWS + t * W, at.b + t * LINE
        if reach and _near_an_end(ints, t, reach):
            for lane in range(W):
                for k in range(n):
                    emissions[ints[r + lane] + ints[TO_OUTPUT + lane], k] += m[g + k * W + lane]
            continue
        clear(m, g + n * W, (QUAD - n) * W)
        u0, u1, u2, u3 = transpose_halves(load(m, g), load(m, g + W), load(m, g + 2 * W), load(m, g + 3 * W))
        _add_two(ints, r, 0, emissions, u0)
        _add_two(ints, r, 1, emissions, u1)
        _add_two(ints, r, 2, emissions, u2)
        _add_two(ints, r, 3, emissions, u3)


@inlined
def _near_an_end(ints, t, reach):
    """Say whether a row of this step, or the first row that a finished lane points at, is among the last of one."""
    near = False
    for lane in range(W):
        length = ints[LENGTH + lane]
        near = near or length - reach <= t < length or 0 < length <= reach
    return near


@inlined
def _add_two(ints, r, lane, emissions, v):
    """Add four states of a lane, and of the fourth lane after it, to their output rows."""
    low = element(ints, r + lane) + element(ints, TO_OUTPUT + lane)
    high = element(ints, r + lane + HALF) + element(ints, TO_OUTPUT + lane + HALF)
    add_pair(emissions, low * emissions.shape[1], high * emissions.shape[1], v)
