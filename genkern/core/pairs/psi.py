"""The elementary kernel ψ: fetched from tables into the layout of items, and scaled to a maximum near one."""

from __future__ import annotations

import math

import numpy as np

from genkern.core.jit import kernel, part
from genkern.core.pairs.types import LOST, SCALES, SHIFT, UNIT
from genkern.core.simd.exponential import LOWEST, exp
from genkern.core.simd.tiles import gather
from genkern.core.simd.vectors import (
    W,
    any_lane,
    broadcast,
    element,
    less,
    load,
    maximum,
    power_of_two,
    select,
    store,
    zero,
)

SMALL, LARGE = 2.0**-64, 2.0**64  # tables whose largest value lies within them are not scaled
SMALLEST = 2.0**-1022  # normal number


@kernel
def fetch(table, rows, units, psi, scales):
    """Copy ψ of a rectangle of items and scale it.

    rows, units: first and last; psi: (items, n * width), flat, set; scales: (items, SCALES), flat, set.
    """
    lanes, logs, size = table.lanes, table.logs, table.shape[0] * table.shape[2]
    item = 0
    for row in range(rows[0], rows[1]):
        for unit in range(units[0], units[1]):
            if not table.half or (unit + 1) * (W if lanes else 1) > row:
                if lanes:
                    _fetch_lanes(table, row, unit * W, psi, item * size)
                else:
                    _fetch_tiles(table, row, unit, psi, item * size)
                if logs:
                    _scale_logs(psi, item * size, size, scales, item * SCALES, lanes)
                else:
                    scale_values(psi, item * size, size, scales, item * SCALES, lanes)
            item += 1


@part
def _fetch_lanes(table, row, column, psi, at):
    """Copy ψ of a row and eight columns, of which the last is repeated as needed, as (n, m, 8)."""
    numbers, strides = table.numbers, table.strides
    base = row * strides[0] + column * strides[2]
    n, m, _, columns = table.shape
    if column + W <= columns:
        for i in range(n):
            for j in range(m):
                store(psi, at, gather(numbers, base + i * strides[1] + j * strides[3], strides[2]))
                at += W
        return
    for k in range(W):
        first = base + (min(column + k, columns - 1) - column) * strides[2]
        for i in range(n):
            for j in range(m):
                psi[at + (i * m + j) * W + k] = element(numbers, first + i * strides[1] + j * strides[3])


@part
def _fetch_tiles(table, row, column, psi, at):
    """Copy ψ of one pair as (n, width), where the first m numbers of a row are set and the others are zero."""
    numbers, strides = table.numbers, table.strides
    base = row * strides[0] + column * strides[2]
    n, m, width, _ = table.shape
    nothing = -np.inf if table.logs else 0.0
    for i in range(n):
        for j in range(width):
            here = base + i * strides[1] + j * strides[3]
            psi[at + i * width + j] = element(numbers, here) if j < m else nothing


@part
def spread(v, a, spare):
    """Return the largest of eight numbers in all lanes; a[spare] is workspace for a vector."""
    store(a, spare, v)
    top = element(a, spare)
    for k in range(1, W):
        top = max(top, element(a, spare + k))
    return broadcast(top)


@part
def largest(psi, first, size, lanes, a, spare):
    """Return the largest vector of ψ, of all lanes where these belong to one model; a[spare] is for workspace."""
    last = first + size - W
    # Two independent chains of instructions.
    top, other = load(psi, first), load(psi, last)
    for at in range(first, last, 2 * W):
        top, other = maximum(top, load(psi, at)), maximum(other, load(psi, at + W))
    top = maximum(top, other)
    return top if lanes else spread(top, a, spare)


@part
def _scale_logs(psi, first, size, scales, to, lanes):
    """Replace log ψ by exp(log ψ - shift), the shift being the largest entry."""
    never = broadcast(-np.inf)
    one = broadcast(1.0)
    top = largest(psi, first, size, lanes, scales, to)
    top = select(less(never, top), top, zero())
    lost = zero()
    for at in range(first, first + size, W):
        x = load(psi, at) - top
        lost = select(less(x, broadcast(LOWEST)), select(less(never, x), one, lost), lost)
        store(psi, at, exp(x))
    lost = lost if lanes else spread(lost, scales, to)
    store(scales, to + SHIFT, top)
    store(scales, to + UNIT, one)
    store(scales, to + LOST, lost)


@part
def scale_values(psi, first, size, scales, to, lanes):
    """Divide ψ by a power of two where its largest entry is far from one."""
    one = broadcast(1.0)
    top = largest(psi, first, size, lanes, scales, to)
    power = select(less(top, broadcast(SMALL)), power_of_two(top), one)
    power = select(less(broadcast(LARGE), top), power_of_two(top), power)
    # Zero has no power of two, nor has a number too small to be normal.
    power = select(less(power, broadcast(SMALLEST)), one, power)
    store(scales, to + SHIFT, zero())
    store(scales, to + UNIT, one)
    store(scales, to + LOST, zero())
    if any_lane(less(power, one)) or any_lane(less(one, power)):
        unit, lost = one / power, zero()
        for at in range(first, first + size, W):
            x = load(psi, at)
            scaled = x * unit
            lost = select(less(scaled, broadcast(SMALLEST)), select(less(zero(), x), one, lost), lost)
            store(psi, at, scaled)
        lost = lost if lanes else spread(lost, scales, to)
        store(scales, to + UNIT, unit)
        store(scales, to + LOST, lost)
        store(scales, to + SHIFT, power)
        for k in range(to + SHIFT, to + SHIFT + W):
            scales[k] = math.log(scales[k])
