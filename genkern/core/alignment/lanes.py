"""The sum over alignments of one sequence with eight others, one per lane.

The others lie side by side, their symbols as columns, those of the one sequence as rows. Columns are cut into strips as
wide as a tile. A strip has the weights of each code with each of its columns, as vectors over lanes, so that a row is a
load without any lookup. Strips are passed from left to right and, in each, tiles from the first row to the last, two
rows at a time. What goes from tile to tile is a row of (X / o, T) below and a column of (T, Y / o) to the right.

A tile has its own scale in each lane, that of the row above it: a power of two whose exponent is a multiple of STEP.
One scale for a whole row would not do: an alignment that begins where another one has grown to 1e400 counts for nothing
there, but may grow more. Within a tile, and where it is near, one that is so much smaller stays so, as ``tile_size``
makes sure; and what comes from the left is not out of scale, as it went on by gaps in the row above, too.

Lanes end in columns of weight zero, and the rows of the last tile do. So a sum is that of its pair alone, to the last
bit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from genkern.core.alignment.types import Costs, Floats
from genkern.core.hmm.rows import aligned
from genkern.core.jit import inlined, kernel, part
from genkern.core.simd.exponential import two_to
from genkern.core.simd.shuffle import exponent, inverse_power
from genkern.core.simd.vectors import W, any_lane, broadcast, less, load, maximum, multiply_add, store, zero

LARGEST_TILE = 16
STEP = 256.0
ROOM = 450.0  # bits by which values may differ within a tile, of the 2000 of a double
ROUNDER = 1.5 * 2.0**52 * STEP  # adding it rounds a number to a multiple of STEP
LOG_2 = math.log(2.0)

# Offsets into the buffer, one vector each: the scale of what comes from above, the one that is right for it, one in the
# former, T at the corner, the sum of M and its scale, the sum of a tile. Then the row above, and the columns to the
# left with the scale of each tile.
SCALE, PEAK, ONE, CORNER, TOTAL, TOTAL_SCALE, MATCHED = range(0, 7 * W, W)
TOP = 7 * W


class Plan(NamedTuple):
    """The size of tiles, the number of codes, the weights o and e of gaps, where edges and scales of tiles begin."""

    tile: int
    n_codes: int
    open: float
    extend: float
    edges: int
    scales: int


def tile_size(costs: Costs) -> int:
    """Return the rows and columns of tiles in which values do not leave the range of doubles; zero: there are none."""
    match, gap, more = (value / LOG_2 for value in (costs.scores.max(initial=0.0), costs.open, costs.extend))
    size = LARGEST_TILE
    while size >= 2 and not size * (match + 2.0 + 2.0 * more) + 2.0 * gap <= ROOM:
        size //= 2
    return size if size >= 2 else 0


def workspace(costs: Costs, tile: int, n_codes: int, longest: tuple[int, int]) -> tuple[Plan, Floats, Floats]:
    """Return a plan, the buffer, and room for the weights of strips, for the most rows and columns there are."""
    bands, strips = (-(-length // tile) for length in longest)
    edges = TOP + 2 * W * tile
    scales = edges + 2 * W * tile * bands
    plan = Plan(tile, n_codes, math.exp(-costs.open), math.exp(-costs.extend), edges, scales)
    return plan, aligned(scales + W * bands), aligned(strips * n_codes * tile * W)


@kernel
def fill(plan, table, codes, offsets, group, weights):
    """Set the weights of all codes with the columns of a group; empty lanes (-1) and columns past the end have none."""
    columns = 0
    for lane in range(W):
        if group[lane] >= 0:
            columns = max(columns, offsets[group[lane] + 1] - offsets[group[lane]])
    strips = (columns + plan.tile - 1) // plan.tile
    for lane in range(W):
        i = group[lane]
        length = offsets[i + 1] - offsets[i] if i >= 0 else 0
        for t in range(strips * plan.tile):
            own = codes[offsets[i] + t] if t < length else plan.n_codes - 1
            to = (t // plan.tile * plan.n_codes * plan.tile + t % plan.tile) * W + lane
            for code in range(plan.n_codes):
                weights[to + code * plan.tile * W] = table[code, own]
    return strips


@kernel
def run(plan, weights, strips, codes, offsets, rows, buffer, found):
    """Set log sums (R, 8) of some sequences, whose lengths are multiples of a tile, with the lanes of a group."""
    for r in range(len(rows)):
        first, last = offsets[rows[r]], offsets[rows[r] + 1]
        start(plan, buffer, last - first)
        for strip in range(strips):
            open_strip(plan, buffer)
            for low in range(first, last, plan.tile):
                band = (low - first) // plan.tile
                align_scales(plan, buffer, band)
                run_tile(plan, weights, strip, codes, low, buffer, band)
                close_tile(plan, buffer, band)
        # The same mantissa, whatever the scale is.
        total = load(buffer, TOTAL)
        store(buffer, TOTAL, total * inverse_power(total))
        store(buffer, TOTAL_SCALE, load(buffer, TOTAL_SCALE) + exponent(total))
        for lane in range(W):
            found[r, lane] = np.log(buffer[TOTAL + lane]) + LOG_2 * buffer[TOTAL_SCALE + lane]


@part
def start(plan, buffer, rows):
    """Set the column before the first one, and the empty alignment."""
    for at in range(plan.edges, plan.edges + 2 * W * rows, 2 * W):
        store(buffer, at, broadcast(1.0))
        store(buffer, at + W, zero())
    for at in range(plan.scales, plan.scales + W * (rows // plan.tile), W):
        store(buffer, at, zero())
    store(buffer, TOTAL, broadcast(1.0))
    store(buffer, TOTAL_SCALE, zero())


@part
def open_strip(plan, buffer):
    """Set the row before the first one."""
    for at in range(TOP, plan.edges, 2 * W):
        store(buffer, at, zero())
        store(buffer, at + W, broadcast(1.0))
    store(buffer, SCALE, zero())
    store(buffer, PEAK, zero())
    store(buffer, ONE, broadcast(1.0))
    store(buffer, CORNER, broadcast(1.0))


@part
def align_scales(plan, buffer, band):
    """Bring what comes from above and from the left to the scale that is right for the row above."""
    scale, above, left = load(buffer, PEAK), load(buffer, SCALE), load(buffer, plan.scales + W * band)
    if differs(scale, above):
        shift(buffer, TOP, plan.edges, above, scale)
        shift(buffer, CORNER, CORNER + W, above, scale)
        store(buffer, ONE, broadcast(1.0))
        shift(buffer, ONE, ONE + W, zero(), scale)
        store(buffer, SCALE, scale)
    if differs(scale, left):
        low = plan.edges + 2 * W * plan.tile * band
        shift(buffer, low, low + 2 * W * plan.tile, left, scale)


@inlined
def differs(a, b):
    """Return whether two vectors differ in a lane."""
    return any_lane(less(a, b)) or any_lane(less(b, a))


@part
def shift(buffer, low, high, old, new):
    """Bring vectors from one scale to another, lane by lane, but do not divide by more than 2**1020."""
    factors = two_to(old - new)
    for at in range(low, high, W):
        store(buffer, at, load(buffer, at) * factors)


@inlined
def run_tile(plan, weights, strip, codes, low, buffer, band):
    """Pass the rows of a tile, from ``codes[low]`` on, two at a time."""
    stride = plan.tile * W
    edge = plan.edges + 2 * W * plan.tile * band
    store(buffer, MATCHED, zero())
    for row in range(0, plan.tile, 2):
        first = (strip * plan.n_codes + codes[low + row]) * stride
        second = (strip * plan.n_codes + codes[low + row + 1]) * stride
        two_rows(plan, weights, first, second, buffer, edge + 2 * W * row)


@part
def two_rows(plan, weights, first, second, buffer, edge):
    """Pass two rows of a tile, given where their weights lie and, on entry and exit, T and Y / o on their left."""
    o, e, one = broadcast(plan.open), broadcast(plan.extend), load(buffer, ONE)
    diagonal, turn = load(buffer, CORNER), load(buffer, edge)
    y, y2 = load(buffer, edge + W), load(buffer, edge + 3 * W)
    store(buffer, CORNER, load(buffer, edge + 2 * W))
    matched, matched2, t, t2 = zero(), zero(), turn, zero()
    for at in range(0, plan.tile * W, W):
        up = TOP + 2 * at
        x, above = load(buffer, up), load(buffer, up + W)
        m = load(weights, first + at) * diagonal
        opened = multiply_add(o, x, m)
        x = multiply_add(e, x, m)
        t = multiply_add(o, y, opened) + one
        y = multiply_add(e, y, opened)
        m2 = load(weights, second + at) * turn
        opened = multiply_add(o, x, m2)
        t2 = multiply_add(o, y2, opened) + one
        y2 = multiply_add(e, y2, opened)
        store(buffer, up, multiply_add(e, x, m2))
        store(buffer, up + W, t2)
        matched, matched2 = matched + m, matched2 + m2
        diagonal, turn = above, t
    store(buffer, edge, t)
    store(buffer, edge + W, y)
    store(buffer, edge + 2 * W, t2)
    store(buffer, edge + 3 * W, y2)
    store(buffer, MATCHED, load(buffer, MATCHED) + (matched + matched2))


@inlined
def close_tile(plan, buffer, band):
    """Set the scales of what leaves a tile, and add its sum of M to the total."""
    scale, below = load(buffer, SCALE), zero()
    for at in range(TOP, plan.edges, 2 * W):
        below = below + load(buffer, at + W)
    store(buffer, PEAK, rounded(scale + exponent(below)))
    store(buffer, plan.scales + W * band, scale)
    old = load(buffer, TOTAL_SCALE)
    if differs(scale, old):
        new = maximum(scale, old)
        shift(buffer, TOTAL, TOTAL + W, old, new)
        shift(buffer, MATCHED, MATCHED + W, scale, new)
        store(buffer, TOTAL_SCALE, new)
    store(buffer, TOTAL, load(buffer, TOTAL) + load(buffer, MATCHED))


@inlined
def rounded(bits):
    """Return the nearest multiples of STEP."""
    return (bits + broadcast(ROUNDER)) - broadcast(ROUNDER)
