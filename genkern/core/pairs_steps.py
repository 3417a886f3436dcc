"""Steps φ ← [Aᵀ φ A′] ∘ ψ of the state-pair recursion for the items of a batch.

A vector holds, in the lane layout, one pair of states of eight right-hand models and φ is (n, m, 8); in the tile
layout, eight states of one right-hand model and φ is (n, columns, 8). The two products of a step keep a tile of
rows and columns in registers; where tiles do not fit, the last one overlaps another, whose numbers it sets again.
Everything stands in one function each: to share the first product cost a tenth of the time, inlined or not. The sum of
φ is looked at but every few steps.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from genkern.core.jit import jit
from genkern.core.simd import (
    W,
    any_lane,
    broadcast,
    horizontal_sum,
    less,
    load,
    power_of_two,
    select,
    store,
    zero,
)
from genkern.core.tiles import (
    TILE,
    add_numbers,
    add_vectors,
    from_left,
    from_right,
    load_tile,
    multiply_tile,
    store_tile,
    sum_tile,
    zeros,
)

RESCALE = 4  # steps between two looks at the size of φ
SMALL, LARGE = 2.0**-64, 2.0**64  # a sum of φ within them is left alone
VANISHED = 2.0**-700  # below it entries that matter may have underflowed between two looks
SIZES = (5, 4, 3, 2, 1)  # of tiles: few, as each pair of them is compiled by itself
WHOLE = 16  # vectors of φ up to which no loop pays, whether all stay in registers or some do not


@cache
def tile_sizes(rows: int, columns: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return two tuples, as long as tiles of φ have rows and columns of vectors: those that take the least time."""

    def cost(tile: tuple[int, int]) -> float:
        # All products, some of them twice, and the loads that they need.
        done = -(-rows // tile[0]) * tile[0] * -(-columns // tile[1]) * tile[1]
        return done * (1.0 + 0.5 * (1.0 / tile[0] + 1.0 / tile[1]))

    fitting = [(r, c) for r in SIZES for c in SIZES if r <= rows and c <= columns and r * c <= TILE]
    best = min(fitting, key=cost)
    return (0.0,) * best[0], (0.0,) * best[1]


def steps_of(rows: int, columns: int, lanes: bool) -> tuple[Any, Any, Any]:
    """Return the function that takes the steps, and its last two arguments, for φ of so many rows and columns."""
    if lanes and rows * columns <= WHOLE and columns <= SIZES[0]:
        return advance_whole, (0.0,) * rows, (0.0,) * columns
    return advance_lanes if lanes else advance_tiles, *tile_sizes(rows, columns)


@jit
def total(a, first, last, lanes):
    """Return the sum of the vectors of a[first:last], over all lanes where these belong to one model."""
    s = zero()
    for at in range(first, last, W):
        s = s + load(a, at)
    return s if lanes else broadcast(horizontal_sum(s))


@jit
def is_far(s):
    """Say whether a sum of φ is far from one in any lane."""
    return any_lane(less(s, broadcast(SMALL))) or any_lane(less(broadcast(LARGE), s))


@jit
def rescale(batch, item, s):
    """Divide φ by the power of two in its sum s, in the lanes where that is far from one."""
    size = batch.phi.shape[1]
    far = select(less(s, broadcast(SMALL)), s, broadcast(1.0))
    far = select(less(broadcast(LARGE), s), s, far)
    gone = less(far, broadcast(VANISHED))
    power = select(gone, broadcast(1.0), power_of_two(far))
    for at in range(item * size, (item + 1) * size, W):
        store(batch.phi, at, load(batch.phi, at) * (broadcast(1.0) / power))
    store(batch.redo, item * W, select(gone, broadcast(1.0), load(batch.redo, item * W)))
    store(batch.old, item * size, power)
    for k in range(W):
        batch.exponent[item, k] += math.frexp(batch.old[item, k])[1] - 1


@jit
def copy(a, b, first, last):
    """Set b[first:last] = a[first:last]."""
    for at in range(first, last, W):
        store(b, at, load(a, at))


@jit
def advance_whole(left, right, batch, items, span, rows, columns):
    """Take ``span`` steps in the lane layout with φ as one tile, and keep φ of the last but one.

    left: A (r, n, n); right: A′ (u, m * m * 8); rows, columns: tuples of lengths n and m.
    """
    n, units, size = len(rows), right.shape[0], batch.phi.shape[1]
    width = len(columns) * W
    for item in items:
        a, b, p = item // units * n * n, item % units * len(columns) * width, item * size
        x = load_tile(rows, columns, batch.phi, p)
        for step in range(span):
            if step % RESCALE == 0:
                t = sum_tile(x)
                if is_far(t):
                    store_tile(batch.phi, p, width, rows, x)
                    rescale(batch, item, t)
                    x = load_tile(rows, columns, batch.phi, p)
            if step == span - 1:
                store_tile(batch.old, p, width, rows, x)
            y = from_right(from_left(x, rows, left, a), rows, right, b)
            x = multiply_tile(y, rows, batch.psi, p, width)
        store_tile(batch.phi, p, width, rows, x)


@jit
def advance_lanes(left, right, batch, items, span, rows, columns):
    """Take ``span`` steps in the lane layout, and keep φ of the last but one.

    left: A (r, n, n); right: A′ (u, m * m * 8); rows, columns: tile_sizes(n, m).
    """
    n, units, size = left.shape[1], right.shape[0], batch.phi.shape[1]
    width = size // n
    m = width // W
    phi, psi, half = batch.phi, batch.psi, batch.half
    for item in items:
        a, b, p = item // units * n * n, item % units * m * width, item * size
        for step in range(span):
            if step % RESCALE == 0:
                t = total(phi, p, p + size, True)
                if is_far(t):
                    rescale(batch, item, t)
            if step == span - 1:
                copy(phi, batch.old, p, p + size)
            for row in range(0, n, len(rows)):
                i = min(row, n - len(rows))
                for column in range(0, m, len(columns)):
                    c = min(column, m - len(columns)) * W
                    x = zeros(rows, columns)
                    for s in range(n):
                        x = add_numbers(x, rows, left, a + s * n + i, 1, phi, p + s * width + c)
                    store_tile(half, i * width + c, width, rows, x)
            for row in range(0, n, len(rows)):
                i = min(row, n - len(rows))
                for column in range(0, m, len(columns)):
                    c = min(column, m - len(columns)) * W
                    at = p + i * width + c
                    x = zeros(rows, columns)
                    for s in range(m):
                        x = add_vectors(x, rows, half, i * width + s * W, width, right, b + s * width + c)
                    store_tile(phi, at, width, rows, multiply_tile(x, rows, psi, at, width))


@jit
def advance_tiles(left, right, batch, items, span, rows, columns):
    """Take ``span`` steps in the tile layout, and keep φ of the last but one.

    left: A (r, n, n); right: A′ (u, m * columns * 8); rows, columns: tile_sizes(n, columns).
    """
    n, units, size = left.shape[1], right.shape[0], batch.phi.shape[1]
    width = size // n
    m, wide = right.shape[1] // width, width // W
    phi, psi, half = batch.phi, batch.psi, batch.half
    for item in items:
        a, b, p = item // units * n * n, item % units * m * width, item * size
        for step in range(span):
            if step % RESCALE == 0:
                t = total(phi, p, p + size, False)
                if is_far(t):
                    rescale(batch, item, t)
            if step == span - 1:
                copy(phi, batch.old, p, p + size)
            for row in range(0, n, len(rows)):
                i = min(row, n - len(rows))
                for column in range(0, wide, len(columns)):
                    c = min(column, wide - len(columns)) * W
                    x = zeros(rows, columns)
                    for s in range(n):
                        x = add_numbers(x, rows, left, a + s * n + i, 1, phi, p + s * width + c)
                    store_tile(half, i * width + c, width, rows, x)
            for row in range(0, n, len(rows)):
                i = min(row, n - len(rows))
                for column in range(0, wide, len(columns)):
                    c = min(column, wide - len(columns)) * W
                    at = p + i * width + c
                    x = zeros(rows, columns)
                    for s in range(m):
                        x = add_numbers(x, rows, half, i * width + s, width, right, b + s * width + c)
                    store_tile(phi, at, width, rows, multiply_tile(x, rows, psi, at, width))
