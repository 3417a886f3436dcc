"""Passes in which a lane is a sequence: eight sequences side by side, each number a vector over them.

For own chains of some states; shared parameters would be held as eight copies. All lane arrays lie in one flat buffer
``m``: entry (t, k, lane) of an array with s states a step at (t * s + k) * 8 + lane from its beginning. (One buffer,
not a dozen arrays: that halves the time of compiling.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from genkern.core.hmm.rows import (
    LARGEST,
    LAST_ROW,
    LENGTH,
    LOG_2,
    OBJECT,
    ROWS,
    SLOT,
    SMALLEST,
    STRIDE,
    TO_OUTPUT,
    enter,
    sum_of_emissions,
    sum_of_shifts,
)
from genkern.core.hmm.states import clear, places
from genkern.core.jit import inlined, kernel
from genkern.core.simd.shuffle import exponent, inverse_power, transpose
from genkern.core.simd.vectors import W, broadcast, element, less, load, multiply_add, padded, select, store, zero

CHUNK = 16  # steps whose pair counts are gathered in registers before they touch memory


class LaneLayout(NamedTuple):
    """Sizes of a block, and where its lane arrays begin in the buffer.

    n states; quad: n rounded up to a multiple of four, as lane arrays hold; width: of a row of emissions; stride: 1 if
    the messages of all steps are kept, 0 if only one. A (quad, quad), start, end (quad,): parameters; now (2, quad):
    this and the last step's message; arriving (quad,): the futures of sequences that end; pred (steps, quad); b
    (width,): emission factors of one step, and then their derivatives; scale (steps / STRIDE,); alpha, weighted
    (CHUNK + 1, quad); pairs (quad, quad); mass (3,): one while in range, the exponent, the final mass.
    """

    n: int
    quad: int
    width: int
    stride: int
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


def lanes_of(n: int, steps: int, keep: bool, symbols: int) -> tuple[LaneLayout, int, int]:
    """Return the places of a block's arrays, and how many doubles and integers they take, for any symbols."""
    quad, width, kept = -(-n // 4) * 4, padded(n), steps if keep else 1
    counts = [quad * quad, quad, quad, 2 * quad, quad, kept * quad, width, kept // STRIDE + 1]
    counts += [(CHUNK + 1) * quad, (CHUNK + 1) * quad, quad * quad, 3]
    starts, total = places([count * W for count in counts])
    return LaneLayout(n, quad, width, int(keep), *starts), total, ROWS + steps * W


@kernel
def lanes_pass(problem, rows, job, out, at, m, ints):
    """Set log P of the members, nan where out of range, and add their derivatives to their slots."""
    for block in range(len(job.members)):
        enter(problem, job, block, ints, True)
        parameters(problem, block, at, m, ints)
        _forward(problem, rows, at, m, ints, out)
        if job.derivatives:
            _backward(rows, at, m, ints, out.emissions)
            leave(problem, job, at, m, ints, out)


@kernel
def parameters(problem, block, at, m, ints):
    """Bring the parameters of a block into its lanes; empty lanes start with no mass."""
    n, chains = at.n, len(problem.start)
    for lane in range(W):
        chain = ints[OBJECT + lane] if chains > 1 else 0
        for k in range(n):
            m[at.start + k * W + lane] = problem.start[chain, k] if ints[LENGTH + lane] else 0.0
            m[at.end + k * W + lane] = problem.end[chain, k]
            if chains > 1 or block == 0:
                for j in range(n):
                    m[at.A + (k * at.quad + j) * W + lane] = problem.transitions[chain, k, j]


@inlined
def _gather(table, safe, at, m, ints, t):
    """Turn the table rows of eight lanes at step t into lane vectors b (width, 8).

    Both passes do: to keep the factors of all steps takes more time than to gather them again.
    """
    r, to, n = ROWS + t * W, at.b, table.shape[1]
    if not safe:
        for lane in range(W):
            for k in range(at.n):
                m[to + k * W + lane] = table[ints[r + lane], k]
    else:
        for c in range(0, at.width, W):
            v0, v1, v2, v3, v4, v5, v6, v7 = transpose(
                load(table, element(ints, r) * n + c),
                load(table, element(ints, r + 1) * n + c),
                load(table, element(ints, r + 2) * n + c),
                load(table, element(ints, r + 3) * n + c),
                load(table, element(ints, r + 4) * n + c),
                load(table, element(ints, r + 5) * n + c),
                load(table, element(ints, r + 6) * n + c),
                load(table, element(ints, r + 7) * n + c),
            )
            f = to + c * W
            store(m, f, v0)
            store(m, f + W, v1)
            store(m, f + 2 * W, v2)
            store(m, f + 3 * W, v3)
            store(m, f + 4 * W, v4)
            store(m, f + 5 * W, v5)
            store(m, f + 6 * W, v6)
            store(m, f + 7 * W, v7)


@inlined
def _products(m, left, n, matrix, step, apart, sums):
    """Return four sums plus products of n numbers at ``left`` with coefficients a step, and the four apart."""
    p, q, r, s = sums
    for k in range(n):
        a, at = load(m, left + k * W), matrix + k * step
        p = multiply_add(a, load(m, at), p)
        q = multiply_add(a, load(m, at + apart), q)
        r = multiply_add(a, load(m, at + 2 * apart), r)
        s = multiply_add(a, load(m, at + 3 * apart), s)
    return p, q, r, s


@inlined
def _advance(m, pred, now, b, value):
    """Store a predicted mass, and the same times its emission factor."""
    store(m, pred, value)
    store(m, now, value * load(m, b))


@kernel
def _forward(problem, rows, at, m, ints, out):
    """Run the forward pass of a block, keeping pred and scale; set log P as the lanes end."""
    line, now, lane = at.quad * W, at.now, 0
    safe = ints[LAST_ROW] <= rows.safe
    store(m, at.mass, broadcast(1.0))
    store(m, at.mass + W, zero())
    while ints[LENGTH + lane] == 0:
        lane += 1
    for t in range(ints[LENGTH + W - 1]):
        _gather(rows.table, safe, at, m, ints, t)
        pred, b = at.pred + t * at.stride * line, at.b
        if t == 0:
            for k in range(0, line, W):
                p = load(m, at.start + k)
                store(m, pred + k, p)
                store(m, now + k, p * load(m, b + k))
        else:
            then, now = now, 2 * at.now + line - now
            for j in range(0, line, 4 * W):
                none = zero(), zero(), zero(), zero()
                p, q, r, s = _products(m, then, at.n, at.A + j, line, W, none)
                _advance(m, pred + j, now + j, b + j, p)
                _advance(m, pred + j + W, now + j + W, b + j + W, q)
                _advance(m, pred + j + 2 * W, now + j + 2 * W, b + j + 2 * W, r)
                _advance(m, pred + j + 3 * W, now + j + 3 * W, b + j + 3 * W, s)
        if t % STRIDE == STRIDE - 1:
            _rescale(at, m, now, at.scale + t // STRIDE * at.stride * W)
        while lane < W and ints[LENGTH + lane] == t + 1:
            shift = sum_of_shifts(problem, ints[OBJECT + lane]) if rows.has_shift else 0.0
            end_lane(at, m, ints, lane, now + lane, shift, out)
            lane += 1


@inlined
def _rescale(at, m, now, scale):
    """Divide the message by a power of two per lane; mark lanes that have left their range."""
    total, mass = zero(), at.mass
    for k in range(0, at.n * W, W):
        total = total + load(m, now + k)
    inverse = inverse_power(total)
    for k in range(0, at.n * W, W):
        store(m, now + k, load(m, now + k) * inverse)
    store(m, scale, inverse)
    store(m, mass + W, load(m, mass + W) + exponent(total))
    valid = select(less(total, broadcast(LARGEST)), load(m, mass), zero())
    store(m, mass, select(less(broadcast(SMALLEST), total), valid, zero()))


@inlined
def end_lane(at, m, ints, lane, now, shift, out):
    """Set log P and the derivative of the end weights for a sequence that ends here; then empty its lane."""
    i, slot, total = ints[OBJECT + lane], ints[SLOT + lane], 0.0
    for k in range(at.n):
        total += m[now + k * W] * m[at.end + k * W + lane]
    in_range = m[at.mass + lane] == 1.0 and SMALLEST < total < LARGEST
    out.log_prob[i] = np.log(total) + LOG_2 * m[at.mass + W + lane] + shift if in_range else np.nan
    # An infinite mass makes all derivatives of a sequence that is out of range vanish.
    m[at.mass + 2 * W + lane] = total if in_range else np.inf
    for k in range(at.n):
        if at.stride and in_range:
            out.end[slot, k] += m[now + k * W] / total
        m[now + k * W] = 0.0


@kernel
def _backward(rows, at, m, ints, emissions):
    """Run the backward pass: emission derivatives go to the output, pair counts to ``pairs``."""
    n, line, lane, place = at.n, at.quad * W, W - 1, 0
    # Padding may reach into so many later rows of positions, to which it adds nothing; but not into another object's,
    # that another thread may be adding to.
    reach = (at.width - emissions.shape[1] + n - 1) // n
    careful = ints[LENGTH + W - 1] + 1
    for s in range(W):
        if 0 < ints[LENGTH + s] <= reach:
            careful = 0
    clear(m, at.pairs, at.quad * line)
    clear(m, at.arriving, line)
    clear(m, at.weighted, line)
    # Place j of alpha holds a step, place j of weighted the one after it, which is the first to be made.
    for t in range(ints[LENGTH + W - 1] - 1, -1, -1):
        ended = lane
        while lane >= 0 and ints[LENGTH + lane] == t + 1:
            for k in range(n):
                m[at.arriving + k * W + lane] = m[at.end + k * W + lane] / m[at.mass + 2 * W + lane]
            lane -= 1
            careful = min(careful, t + 1 - reach)
        left, rescaled, b = at.weighted + place * line, t % STRIDE == STRIDE - 1, at.b
        _gather(rows.table, ints[LAST_ROW] <= rows.safe, at, m, ints, t)
        if rescaled:
            _times_scale(at, m, t)
        for k in range(0, line, 4 * W):
            end = at.arriving + k
            arriving = load(m, end), load(m, end + W), load(m, end + 2 * W), load(m, end + 3 * W)
            p, q, r, s = _products(m, left, n, at.A + k * at.quad, W, line, arriving)
            _combine(at, m, place, t, k, p)
            _combine(at, m, place, t, k + W, q)
            _combine(at, m, place, t, k + 2 * W, r)
            _combine(at, m, place, t, k + 3 * W, s)
        clear(m, b + n * W, (at.width - n) * W)
        if rescaled:
            # The factors were rescaled, and with them alpha and weighted; the derivatives follow.
            _times_scale(at, m, t)
        _scatter(at, m, ints, t, t >= careful, emissions)
        if ended > lane:
            clear(m, at.arriving, line)
        place += 1
        if place == CHUNK:
            flush(at, m, place)
            for k in range(at.weighted, at.weighted + line, W):
                store(m, k, load(m, k + CHUNK * line))
            place = 0
    flush(at, m, place)
    for k in range(0, line, W):
        store(m, at.now + k, load(m, at.weighted + place * line + k))


@inlined
def _times_scale(at, m, t):
    """Multiply what lies in b by the power of two by which the message of step t was rescaled."""
    scale = load(m, at.scale + t // STRIDE * W)
    for k in range(at.b, at.b + at.n * W, W):
        store(m, k, load(m, k) * scale)


@inlined
def _combine(at, m, place, t, k, future):
    """Combine past, present and future of one state at step t: alpha, weighted future, emission derivatives."""
    line = at.quad * W
    past, b = load(m, at.pred + t * line + k), at.b + k
    e = load(m, b)
    store(m, at.alpha + place * line + k, past * e)
    store(m, at.weighted + (place + 1) * line + k, future * e)
    store(m, b, past * future)  # the factors have served: their place takes the derivatives


@inlined
def _scatter(at, m, ints, t, careful, emissions):
    """Add the emission derivatives of step t, lane vectors in b[t], to the output rows of the eight lanes."""
    r, g, width = ROWS + t * W, at.b, at.width
    if careful:
        for lane in range(W):
            for k in range(at.n):
                emissions[ints[r + lane] + ints[TO_OUTPUT + lane], k] += m[g + k * W + lane]
        return
    for c in range(0, width, W):
        f = g + c * W
        v0, v1, v2, v3, v4, v5, v6, v7 = transpose(
            load(m, f),
            load(m, f + W),
            load(m, f + 2 * W),
            load(m, f + 3 * W),
            load(m, f + 4 * W),
            load(m, f + 5 * W),
            load(m, f + 6 * W),
            load(m, f + 7 * W),
        )
        _add_one(ints, r, 0, emissions, c, v0)
        _add_one(ints, r, 1, emissions, c, v1)
        _add_one(ints, r, 2, emissions, c, v2)
        _add_one(ints, r, 3, emissions, c, v3)
        _add_one(ints, r, 4, emissions, c, v4)
        _add_one(ints, r, 5, emissions, c, v5)
        _add_one(ints, r, 6, emissions, c, v6)
        _add_one(ints, r, 7, emissions, c, v7)


@inlined
def _add_one(ints, r, lane, emissions, column, v):
    """Add eight states of a lane to its output row from the given column."""
    row = (element(ints, r + lane) + element(ints, TO_OUTPUT + lane)) * emissions.shape[1] + column
    store(emissions, row, load(emissions, row) + v)


@kernel
def flush(at, m, steps):
    """Add sum_t alpha_t(k) weighted_{t+1}(j) over the gathered steps to the pair counts, two by two states."""
    line = at.quad * W
    for k in range(0, at.n * W, 2 * W):
        for j in range(0, at.n * W, 2 * W):
            to, alpha, weighted = at.pairs + k * at.quad + j, at.alpha + k, at.weighted + j
            x, y = load(m, to), load(m, to + W)
            u, v = load(m, to + line), load(m, to + line + W)
            for c in range(0, steps * line, line):
                a, b = load(m, alpha + c), load(m, alpha + c + W)
                w, z = load(m, weighted + c), load(m, weighted + c + W)
                x, y = multiply_add(a, w, x), multiply_add(a, z, y)
                u, v = multiply_add(b, w, u), multiply_add(b, z, v)
            store(m, to, x)
            store(m, to + W, y)
            store(m, to + line, u)
            store(m, to + line + W, v)


@kernel
def leave(problem, job, at, m, ints, out):
    """Add start and pair derivatives of the lanes to their slots; mark lanes in which anything overflowed."""
    for lane in range(W):
        i, slot, total = ints[OBJECT + lane], ints[SLOT + lane], 0.0
        if ints[LENGTH + lane] == 0:
            continue
        for k in range(at.n):
            out.start[slot, k] += m[at.now + k * W + lane]
            total += m[at.now + k * W + lane]
            for j in range(at.n):
                pair = m[at.pairs + (k * at.quad + j) * W + lane]
                out.transitions[slot, k, j] += pair
                total += pair
        if not total + sum_of_emissions(problem, job, i, out.emissions) < np.inf:
            out.log_prob[i] = np.nan
