"""The elementary kernel ψ of the items of a batch: fetched into their layout, scaled to a maximum near one."""

from __future__ import annotations

import math

import numpy as np

from genkern.core.exponential import LOWEST, exp
from genkern.core.jit import jit
from genkern.core.simd import (
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
from genkern.core.tiles import gather

SMALL, LARGE = 2.0**-64, 2.0**64  # values whose largest lies within them are left alone
SMALLEST = 2.0**-1022  # normal number


@jit
def fetch_lanes(psi, strides, corner, shape, items, out):
    """Copy ψ of a row and eight columns into an item, as (n, m, 8).

    psi: flat; strides: of its rows, their states, columns, their states; corner: first row, first column, number
    of columns, the last of which is repeated as needed; shape: units, n, m; out: (items, n * m * 8).
    """
    units, n, m = shape
    for item in items:
        column = corner[1] + item % units * W
        base, at = (corner[0] + item // units) * strides[0] + column * strides[2], item * out.shape[1]
        if column + W <= corner[2]:
            for i in range(n):
                for j in range(m):
                    store(out, at, gather(psi, base + i * strides[1] + j * strides[3], strides[2]))
                    at += W
            continue
        for k in range(W):
            first = base + (min(column + k, corner[2] - 1) - column) * strides[2]
            for i in range(n):
                for j in range(m):
                    out[item, (i * m + j) * W + k] = element(psi, first + i * strides[1] + j * strides[3])


@jit
def fetch_tiles(psi, strides, corner, shape, items, out):
    """Copy ψ of one pair into an item, as (n, width) of which the first m are set; see fetch_lanes."""
    units, n, m = shape
    width = out.shape[1] // n
    for item in items:
        base = (corner[0] + item // units) * strides[0] + (corner[1] + item % units) * strides[2]
        for i in range(n):
            for j in range(m):
                out[item, i * width + j] = element(psi, base + i * strides[1] + j * strides[3])


@jit
def spread(v):
    """Return the largest of eight numbers in all lanes."""
    room = np.empty(W)
    store(room, 0, v)
    top = room[0]
    for k in range(1, W):
        top = max(top, room[k])
    return broadcast(top)


@jit
def largest(a, first, last, lanes):
    """Return the largest vector of a[first:last], of all lanes where these belong to one model."""
    top = load(a, first)
    for at in range(first + W, last, W):
        top = maximum(top, load(a, at))
    return top if lanes else spread(top)


@jit
def scale_logs(batch, items, lanes):
    """Replace log ψ by exp(log ψ - shift), the shift being the largest entry."""
    size = batch.psi.shape[1]
    never = broadcast(-np.inf)
    one = broadcast(1.0)
    for item in items:
        first = item * size
        top = largest(batch.psi, first, first + size, lanes)
        top = select(less(never, top), top, zero())
        lost = zero()
        for at in range(first, first + size, W):
            x = load(batch.psi, at) - top
            lost = select(less(x, broadcast(LOWEST)), select(less(never, x), one, lost), lost)
            store(batch.psi, at, exp(x))
        store(batch.shift, item * W, top)
        store(batch.lost, item * W, lost if lanes else spread(lost))


@jit
def scale_values(batch, items, lanes):
    """Divide ψ by a power of two where its largest entry is far from one."""
    size = batch.psi.shape[1]
    one = broadcast(1.0)
    for item in items:
        first = item * size
        top = largest(batch.psi, first, first + size, lanes)
        power = select(less(top, broadcast(SMALL)), power_of_two(top), one)
        power = select(less(broadcast(LARGE), top), power_of_two(top), power)
        # Zero has no power of two, nor has a number too small to be normal.
        power = select(less(power, broadcast(SMALLEST)), one, power)
        store(batch.shift, item * W, zero())
        store(batch.lost, item * W, zero())
        if any_lane(less(power, one)) or any_lane(less(one, power)):
            inverse = one / power
            for at in range(first, first + size, W):
                store(batch.psi, at, load(batch.psi, at) * inverse)
            store(batch.shift, item * W, power)
            for k in range(W):
                batch.shift[item, k] = math.log(batch.shift[item, k])
