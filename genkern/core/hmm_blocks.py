"""Passes over eight sequences of one shared chain at a time, states contiguous: small matrix products.

For many states. The forward and backward steps of eight sequences are products of an (8, n) message with the
transition matrix; pair counts are products over time, gathered per sequence in chunks of steps. A message is held as
(width / 8, 8 sequences, 8 states): neighbouring rows then lie a fixed distance apart, which spares many addresses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from genkern.core.hmm_rows import (
    LARGEST,
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
from genkern.core.hmm_states import (
    TILE,
    Row,
    add_outer,
    add_pairs,
    chunk_of,
    clear,
    combine,
    copy_row,
    pack,
    padded,
    places,
    rows_times,
)
from genkern.core.jit import inlined, kernel
from genkern.core.simd import W, broadcast, element, horizontal_sum, less, load, select, store, zero
from genkern.core.simd_shuffle import exponent, inverse_power


class Blocks(NamedTuple):
    """Sizes of a block of eight sequences, and where its arrays begin in the buffer.

    n states; width: padded; chunk: steps of outer products gathered; step: doubles from one of these to the next;
    stride: 1 if the messages of all steps are kept, 0 if only one; symbols: rows of the table, 0 for one row per
    position. A, T: the packed transition matrix and its transpose; end (width,); b: emission factors (symbols, width)
    or (steps, 8, width); now: this and the last step's message; arriving: the futures of sequences that end; pred:
    (steps) messages; scale (steps, 8); alpha, weighted: (chunk + 1) messages; pairs (8, width, width); mass (3, 8): one
    while in range, the exponent, the final mass.
    """

    n: int
    width: int
    chunk: int
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


def blocks_of(n: int, steps: int, keep: bool, symbols: int) -> tuple[Blocks, int, int]:
    """Return the places of a block's arrays, and how many doubles and integers they take."""
    width, chunk = padded(n), chunk_of(n)
    # A step that is no power of two apart from the next: else one place of all of them shares one set of the cache.
    line, step, kept = W * width, W * width + W, steps if keep else 1
    gathered, pairs = ((chunk + 1) * step, line * width) if keep else (0, 0)
    counts = [n * width, n * width, width, symbols * width if symbols else kept * line, 2 * line, line]
    counts += [kept * line, kept * W, gathered, gathered, pairs, 3 * W]
    starts, total = places(counts)
    return Blocks(n, width, chunk, step, int(keep), symbols, *starts), total, ROWS + steps * W


@kernel
def blocks_pass(problem, rows, job, out, at, m, ints):
    """Set log P of the members, nan where out of range, and add their derivatives to their slots."""
    pack(problem.transitions[0], False, at.n, m, at.A)
    pack(problem.transitions[0], True, at.n, m, at.T)
    for k in range(at.n):
        m[at.end + k] = problem.end[0, k]
    for row in range(at.symbols):
        copy_row(rows, row, at.n, m, at.b + row * at.width)
    for block in range(len(job.members)):
        enter(problem, job, block, ints, True)
        _forward(problem, rows, at, m, ints, out)
        if job.derivatives:
            _backward(at, m, ints, out.emissions)
            _leave(problem, job, at, m, ints, out)


@inlined
def _factors(at, ints, t, s):
    """Return where the emission factors of sequence s at step t lie."""
    return at.b + (element(ints, ROWS + t * W + s) if at.symbols else t * at.stride * W + s) * at.width


@inlined
def _state(k):
    """Return where state k of the first sequence lies in a message."""
    return k // W * W * W + k % W


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
                copy_row(rows, ints[ROWS + t * W + s], at.n, m, _factors(at, ints, t, s))
        if t == 0:
            for s in range(begin, W):
                _start(problem.start, at, m, ints, s)
        else:
            then, now = now, 2 * at.now + W * at.width - now
            for s in range(begin, W, TILE):
                _forward_rows(at, m, ints, t, s, then, now)
        store(m, scale, broadcast(1.0))
        if t % STRIDE == STRIDE - 1:
            _rescale(at, m, now, scale, begin)
        while lane < W and ints[LENGTH + lane] == t + 1:
            shift = sum_of_shifts(problem, ints[OBJECT + lane]) if rows.has_shift else 0.0
            _end_lane(at, m, ints, lane, now + lane * W, shift, out)
            lane += 1


@inlined
def _start(start, at, m, ints, s):
    """Set the first step of sequence s; an empty lane starts with no mass."""
    pred, factors = at.pred + s * W, _factors(at, ints, 0, s)
    for k in range(at.n):
        m[pred + _state(k)] = start[0, k] if ints[LENGTH + s] else 0.0
    for c in range(0, at.width, W):
        store(m, at.now + s * W + c * W, load(m, pred + c * W) * load(m, factors + c))


@inlined
def _forward_rows(at, m, ints, t, s, then, now):
    """Make one forward step of the four sequences from s on: pred = A^T then, now = pred * b."""
    n, pred, to = at.n, at.pred + t * at.stride * W * at.width + s * W, now + s * W
    e, f = _factors(at, ints, t, s), _factors(at, ints, t, s + 1)
    g, h = _factors(at, ints, t, s + 2), _factors(at, ints, t, s + 3)
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
def _end_lane(at, m, ints, lane, now, shift, out):
    """Set log P and the derivative of the end weights for a sequence that ends here; then empty its message."""
    i, slot, total = ints[OBJECT + lane], ints[SLOT + lane], 0.0
    for k in range(at.n):
        total += m[now + _state(k)] * m[at.end + k]
    in_range = m[at.mass + lane] == 1.0 and SMALLEST < total < LARGEST
    out.log_prob[i] = np.log(total) + LOG_2 * m[at.mass + W + lane] + shift if in_range else np.nan
    # An infinite mass makes all derivatives of a sequence that is out of range vanish.
    m[at.mass + 2 * W + lane] = total if in_range else np.inf
    for k in range(at.n):
        if at.stride and in_range:
            out.end[slot, k] += m[now + _state(k)] / total
        m[now + _state(k)] = 0.0


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
            _arrive(at, m, lane, at.weighted + place * at.step)
            lane -= 1
        for s in range(0 if t < ints[LENGTH + TILE - 1] else TILE, W, TILE):
            _backward_rows(at, m, ints, t, s, place, emissions)
        if ended > lane:
            clear(m, at.arriving, line)
        place += 1
        if place == at.chunk:
            _flush(at, m, ints, t, place)
            for c in range(at.weighted, at.weighted + line, W):
                store(m, c, load(m, c + at.chunk * at.step))
            place = 0
    _flush(at, m, ints, 0, place)
    for c in range(0, line, W):
        store(m, at.now + c, load(m, at.weighted + place * at.step + c))


@kernel
def _arrive(at, m, lane, weighted):
    """Set the future of a sequence that ends here; after it nothing comes, nor after the shorter ones."""
    for k in range(at.n):
        m[at.arriving + lane * W + _state(k)] = m[at.end + k] / m[at.mass + 2 * W + lane]
    for s in range(lane + 1):
        for c in range(0, at.width, W):
            store(m, weighted + s * W + c * W, zero())


@inlined
def _row(at, ints, t, s, place, emissions):
    """Return where the numbers of sequence s at step t lie."""
    gathered = place * at.step + s * W
    return Row(
        at.pred + t * W * at.width + s * W,
        _factors(at, ints, t, s),
        at.alpha + gathered,
        at.weighted + gathered + at.step,
        (element(ints, ROWS + t * W + s) + element(ints, TO_OUTPUT + s)) * emissions.shape[1],
    )


@inlined
def _backward_rows(at, m, ints, t, s, place, emissions):
    """Make one backward step of the four sequences from s on."""
    n, left, scale = at.n, at.weighted + place * at.step + s * W, at.scale + t * W + s
    e, f = _row(at, ints, t, s, place, emissions), _row(at, ints, t, s + 1, place, emissions)
    g, h = _row(at, ints, t, s + 2, place, emissions), _row(at, ints, t, s + 3, place, emissions)
    for panel in range(0, at.width, W):
        end, to = at.arriving + s * W + panel * W, panel * W
        arriving = load(m, end), load(m, end + W), load(m, end + 2 * W), load(m, end + 3 * W)
        a, b, c, d = rows_times(m, left, at.T + panel * n, n, arriving)
        combine(m, emissions, e, to, panel, a, broadcast(element(m, scale)))
        combine(m, emissions, f, to, panel, b, broadcast(element(m, scale + 1)))
        combine(m, emissions, g, to, panel, c, broadcast(element(m, scale + 2)))
        combine(m, emissions, h, to, panel, d, broadcast(element(m, scale + 3)))


@kernel
def _flush(at, m, ints, t, steps):
    """Add the gathered steps, down to step t, to the pair counts of each sequence, from its end on."""
    for s in range(W):
        skip = max(0, t + steps + 1 - ints[LENGTH + s])
        if skip < steps:
            gathered, pairs = skip * at.step + s * W, at.pairs + s * at.width * at.width
            alpha, weighted = at.alpha + gathered, at.weighted + gathered
            add_outer(m, alpha, weighted, pairs, at.width, steps - skip, at.step, W * W)


@kernel
def _leave(problem, job, at, m, ints, out):
    """Add start and pair derivatives to their slots; mark sequences in which anything overflowed."""
    for s in range(W):
        if ints[LENGTH + s] == 0:
            continue
        i, slot = ints[OBJECT + s], ints[SLOT + s]
        total = add_pairs(m, at.pairs + s * at.width * at.width, at.width, slot, out.transitions)
        for k in range(at.n):
            out.start[slot, k] += m[at.now + s * W + _state(k)]
            total += m[at.now + s * W + _state(k)]
        if not total + sum_of_emissions(problem, job, i, out.emissions) < np.inf:
            out.log_prob[i] = np.nan
