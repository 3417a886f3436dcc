"""Passes in which a lane is a sequence: eight sequences side by side, columns in the inner loop.

A message holds M, I and D of all nodes, then N, J and C, each as a vector over lanes; B lies in the place of M(0). A
pass without derivatives keeps one message. One with derivatives keeps every eighth and, on the way back, computes the
others again from these, eight at a time, which stay in the cache. Messages are rescaled by powers of two, lane by lane,
where they are kept; a sequence that leaves the range of doubles gets log P = nan.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from genkern.core.jit import inlined, part
from genkern.core.profile.types import CC, CT, DD, DM, EC, EJ, EN, II, IM, JB, JJ, MD, MI, MM, N_AROUND, NB, NN, XD, XM
from genkern.core.simd.shuffle import exponent, inverse_power, transpose
from genkern.core.simd.vectors import W, broadcast, element, less, load, multiply_add, padded, select, store, zero

STRIDE = 8  # steps between two messages that are kept
SMALLEST, LARGEST = 2.0**-900, 2.0**600  # the range of what may be left of a message of mass one
LOG_2 = float(np.log(2.0))

# Offsets into the integers of a group: objects (-1: an empty lane), lengths, slots; then the table rows (steps, 8).
OBJECT, LENGTH, SLOT, ROWS = 0, W, 2 * W, 3 * W


class Layout(NamedTuple):
    """Sizes, and offsets of lane arrays in the buffer, in doubles.

    line: P vectors; whole: a message. factors: emission factors of a step, (2 P); around: the weights around the
    columns; mass: one while in range, the exponent, the last scale. With derivatives: block, STRIDE messages; back: one
    message of futures; sums: derivatives by the weights of columns and around; scale: of the messages that are kept;
    kept: those.
    """

    line: int
    whole: int
    factors: int
    around: int
    mass: int
    block: int
    back: int
    sums: int
    scale: int
    kept: int


def layout_of(size: int, steps: int, derivatives: bool) -> tuple[Layout, int, int]:
    """Return the layout of groups of at most so many steps, and how many doubles and integers the buffers have."""
    pitch = padded(size + 1)
    line = pitch * W
    whole, kept = 3 * line + 3 * W, steps // STRIDE + 1
    counts = [2 * line, N_AROUND * W, 3 * W, STRIDE * whole, whole, 10 * line + N_AROUND * W, kept * W, kept * whole]
    if not derivatives:
        counts[3:] = [whole, 0, 0, 0, 0]
    starts = np.cumsum([0, *counts]).tolist()
    return Layout(line, whole, *starts[:-1]), starts[-1], ROWS + steps * W


@part
def enter(profile, sequences, members, slots, group, layout, buffer, ints):
    """Copy lengths and rows of the table of a group; lanes go on with the first row after their end."""
    steps, first = 0, -1
    for lane in range(W):
        i = members[group, lane]
        ints[OBJECT + lane] = i
        ints[LENGTH + lane] = sequences.offsets[i + 1] - sequences.offsets[i] if i >= 0 else 0
        steps = max(steps, ints[LENGTH + lane])
        first = i if first < 0 else first
    for lane in range(W):
        i, length = ints[OBJECT + lane], ints[LENGTH + lane]
        for row in range(N_AROUND):
            own = max(i, 0) if len(profile.around) > 1 else 0
            buffer[layout.around + row * W + lane] = profile.around[own, row]
        ints[SLOT + lane] = slots[i if i >= 0 else first] if len(slots) else 0
        for t in range(steps):
            code = sequences.codes[sequences.offsets[i] + t] if t < length else 0
            ints[ROWS + t * W + lane] = code * profile.table.shape[1]


@inlined
def longest(ints):
    """Return the length of the longest sequence of a group."""
    steps = 0
    for lane in range(W):
        steps = max(steps, ints[LENGTH + lane])
    return steps


@part
def gather(table, layout, buffer, ints, t):
    """Turn the rows of eight lanes at step t into vectors over lanes."""
    r = ROWS + t * W
    for c in range(0, table.shape[1], W):
        v0, v1, v2, v3, v4, v5, v6, v7 = transpose(
            load(table, element(ints, r) + c),
            load(table, element(ints, r + 1) + c),
            load(table, element(ints, r + 2) + c),
            load(table, element(ints, r + 3) + c),
            load(table, element(ints, r + 4) + c),
            load(table, element(ints, r + 5) + c),
            load(table, element(ints, r + 6) + c),
            load(table, element(ints, r + 7) + c),
        )
        to = layout.factors + c * W
        store(buffer, to, v0)
        store(buffer, to + W, v1)
        store(buffer, to + 2 * W, v2)
        store(buffer, to + 3 * W, v3)
        store(buffer, to + 4 * W, v4)
        store(buffer, to + 5 * W, v5)
        store(buffer, to + 6 * W, v6)
        store(buffer, to + 7 * W, v7)


@inlined
def weight(columns, row, k):
    """Return a weight of a column in all lanes."""
    return broadcast(element(columns, row * columns.shape[1] + k))


@inlined
def edge(layout, buffer, row):
    """Return a weight around the columns, which lanes may have of their own."""
    return load(buffer, layout.around + row * W)


@inlined
def start(profile, layout, buffer, to):
    """Set the message before the first symbol."""
    columns = profile.columns
    for k in range(to, to + layout.whole, W):
        store(buffer, k, zero())
    begin, deleted, ended = edge(layout, buffer, NB), zero(), zero()
    before = begin
    for k in range(1, profile.size + 1):
        deleted = before * weight(columns, MD, k - 1) + deleted * weight(columns, DD, k - 1)
        before = zero()
        store(buffer, to + 2 * layout.line + k * W, deleted)
        ended = multiply_add(deleted, weight(columns, XD, k), ended)
    joined, last = ended * edge(layout, buffer, EJ), to + 3 * layout.line
    store(buffer, last, broadcast(1.0))
    store(buffer, last + W, joined)
    store(buffer, last + 2 * W, ended * edge(layout, buffer, EC))
    store(buffer, to, multiply_add(joined, edge(layout, buffer, JB), begin))


@inlined
def arriving(columns, k, m, i, d, begun):
    """Return the mass that comes to match state k before it emits, from node k - 1 and from B."""
    mass = multiply_add(m, weight(columns, MM, k - 1), begun * weight(columns, EN, k))
    return multiply_add(i, weight(columns, IM, k - 1), multiply_add(d, weight(columns, DM, k - 1), mass))


@inlined
def advance(profile, layout, buffer, source, to):
    """Compute a message from the last one, which may lie in the same place, and the factors of the step."""
    columns, line, factors = profile.columns, layout.line, layout.factors
    f, tail = load(buffer, factors), 3 * line
    flank = load(buffer, source + tail) * f * edge(layout, buffer, NN)
    joined = load(buffer, source + tail + W) * f * edge(layout, buffer, JJ)
    closed = load(buffer, source + tail + 2 * W) * f * edge(layout, buffer, CC)
    begun, i, d = load(buffer, source), load(buffer, source + line), zero()
    m, new_i = begun, multiply_add(begun, weight(columns, MI, 0), i * weight(columns, II, 0))
    new_i = new_i * load(buffer, factors + line)
    store(buffer, to + line, new_i)
    new_m, new_d = flank * edge(layout, buffer, NB), zero()
    opened, ended = new_m, zero()
    for k in range(1, profile.size + 1):
        at = k * W
        mass = arriving(columns, k, m, i, d, begun)
        new_d = multiply_add(new_d, weight(columns, DD, k - 1), new_m * weight(columns, MD, k - 1))
        m, i, d = load(buffer, source + at), load(buffer, source + line + at), load(buffer, source + 2 * line + at)
        new_m = mass * load(buffer, factors + at)
        new_i = multiply_add(m, weight(columns, MI, k), i * weight(columns, II, k))
        new_i = new_i * load(buffer, factors + line + at)
        store(buffer, to + at, new_m)
        store(buffer, to + line + at, new_i)
        store(buffer, to + 2 * line + at, new_d)
        ended = multiply_add(new_m, weight(columns, XM, k), multiply_add(new_d, weight(columns, XD, k), ended))
    ended = multiply_add(new_i, weight(columns, IM, profile.size), ended)
    joined = multiply_add(ended, edge(layout, buffer, EJ), joined)
    store(buffer, to + tail, flank)
    store(buffer, to + tail + W, joined)
    store(buffer, to + tail + 2 * W, multiply_add(ended, edge(layout, buffer, EC), closed))
    store(buffer, to, multiply_add(joined, edge(layout, buffer, JB), opened))


@part
def forward(profile, out, layout, buffer, ints, keep):
    """Run the forward pass of a group; set log P as the lanes end."""
    steps, now = longest(ints), layout.block
    store(buffer, layout.mass, broadcast(1.0))
    store(buffer, layout.mass + W, zero())
    start(profile, layout, buffer, now)
    for t in range(steps + 1):
        if t > 0:
            gather(profile.table, layout, buffer, ints, t - 1)
            advance(profile, layout, buffer, now, now)
        if t % STRIDE == 0:
            rescale(layout, buffer, now)
            if keep:
                store(buffer, layout.scale + t // STRIDE * W, load(buffer, layout.mass + 2 * W))
                for k in range(0, layout.whole, W):
                    store(buffer, layout.kept + t // STRIDE * layout.whole + k, load(buffer, now + k))
        for lane in range(W):
            if ints[LENGTH + lane] == t and ints[OBJECT + lane] >= 0:
                end = buffer[now + 3 * layout.line + 2 * W + lane] * buffer[layout.around + CT * W + lane]
                valid = buffer[layout.mass + lane] == 1.0 and SMALLEST < end < LARGEST
                log = np.log(end) + LOG_2 * buffer[layout.mass + W + lane]
                out.log_prob[ints[OBJECT + lane]] = log if valid else np.nan


@inlined
def rescale(layout, buffer, now):
    """Divide the message by a power of two per lane, left in mass[2]; mark lanes that have left the range."""
    total, mass = zero(), layout.mass
    for k in range(0, layout.whole, W):
        total = total + load(buffer, now + k)
    inside = select(less(total, broadcast(LARGEST)), load(buffer, mass), zero())
    inside = select(less(broadcast(SMALLEST), total), inside, zero())
    inverse = select(less(broadcast(SMALLEST), total), inverse_power(total), broadcast(1.0))
    for k in range(0, layout.whole, W):
        store(buffer, now + k, load(buffer, now + k) * inverse)
    store(buffer, mass, inside)
    store(buffer, mass + W, load(buffer, mass + W) + exponent(total))
    store(buffer, mass + 2 * W, inverse)
