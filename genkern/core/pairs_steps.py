"""Steps φ ← [Aᵀ φ A′] ∘ ψ of the state-pair recursion for the items of a batch.

A vector holds, in the lane layout, one pair of states of eight right-hand models and φ is (n, m, 8); in the tile
layout, eight states of one right-hand model and φ is (n, columns, 8). The two products of a step keep a block of
columns in registers. Everything stands in one function each, as a call would cost as much as a step of a small
model; and the sum of φ is looked at but every few steps.
"""

from __future__ import annotations

import math

from genkern.core.jit import jit
from genkern.core.simd import (
    W,
    any_lane,
    broadcast,
    element,
    horizontal_sum,
    less,
    load,
    power_of_two,
    select,
    store,
    zero,
)
from genkern.core.tiles import add_row, multiply_tile, store_tile, zeros

RESCALE = 4  # steps between two looks at the size of φ
SMALL, LARGE = 2.0**-64, 2.0**64  # a sum of φ within them is left alone
VANISHED = 2.0**-700  # below it entries that matter may have underflowed between two looks
# Widest blocks of columns: as many accumulators (for two rows at a time by tiles) as sixteen AVX registers hold
# beside the other operands, a vector being two of them.
WIDEST_LANES, WIDEST_TILES = 6, 2


def split_columns(columns: int, lanes: bool) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return two tuples: blocks of columns as wide as the first is long, and a last one as wide as the second."""
    blocks = -(-columns // (WIDEST_LANES if lanes else WIDEST_TILES))
    width = -(-columns // blocks)
    rest = columns - (blocks - 1) * width if blocks > 1 else 0
    return (0.0,) * width, (0.0,) * rest


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
def advance_lanes(left, right, batch, items, span, first, rest):
    """Take ``span`` steps in the lane layout, and keep φ of the last but one.

    left: A (r, n, n); right: A′ (u, m * m * 8); first, rest: split_columns(m, True), for m <= 12.
    """
    n, units, size = left.shape[1], right.shape[0], batch.phi.shape[1]
    m = len(first) + len(rest)
    width, second = m * W, len(first) * W
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
            for i in range(n):
                x = zeros(first)
                for s in range(n):
                    x = add_row(x, broadcast(element(left, a + s * n + i)), phi, p + s * width)
                store_tile(half, i * width, x)
                y = zeros(rest)
                for s in range(n):
                    y = add_row(y, broadcast(element(left, a + s * n + i)), phi, p + s * width + second)
                store_tile(half, i * width + second, y)
            for i in range(n):
                at = p + i * width
                x = zeros(first)
                for s in range(m):
                    x = add_row(x, load(half, i * width + s * W), right, b + s * width)
                store_tile(phi, at, multiply_tile(x, psi, at))
                y = zeros(rest)
                for s in range(m):
                    y = add_row(y, load(half, i * width + s * W), right, b + s * width + second)
                store_tile(phi, at + second, multiply_tile(y, psi, at + second))


@jit
def advance_tiles(left, right, batch, items, span, first, rest):
    """Take ``span`` steps in the tile layout, and keep φ of the last but one.

    left: A (r, n, n); right: A′ (u, m * columns * 8); first, rest: split_columns(columns, False).
    """
    n, units, size = left.shape[1], right.shape[0], batch.phi.shape[1]
    width = size // n
    m = right.shape[1] // width
    block, last = len(first) * W, width - len(rest) * W
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
            for row in range(0, n, 2):
                # Two rows at a time keep enough sums in flight; of an odd number the last but one is done twice.
                i = max(0, min(row, n - 2))
                k = min(i + 1, n - 1)
                for c in range(0, last, block):
                    x, y = zeros(first), zeros(first)
                    for s in range(n):
                        x = add_row(x, broadcast(element(left, a + s * n + i)), phi, p + s * width + c)
                        y = add_row(y, broadcast(element(left, a + s * n + k)), phi, p + s * width + c)
                    store_tile(half, i * width + c, x)
                    store_tile(half, k * width + c, y)
                u, v = zeros(rest), zeros(rest)
                for s in range(n):
                    u = add_row(u, broadcast(element(left, a + s * n + i)), phi, p + s * width + last)
                    v = add_row(v, broadcast(element(left, a + s * n + k)), phi, p + s * width + last)
                store_tile(half, i * width + last, u)
                store_tile(half, k * width + last, v)
            for row in range(0, n, 2):
                i = max(0, min(row, n - 2))
                k = min(i + 1, n - 1)
                for c in range(0, last, block):
                    x, y = zeros(first), zeros(first)
                    for s in range(m):
                        x = add_row(x, broadcast(element(half, i * width + s)), right, b + s * width + c)
                        y = add_row(y, broadcast(element(half, k * width + s)), right, b + s * width + c)
                    store_tile(phi, p + i * width + c, multiply_tile(x, psi, p + i * width + c))
                    store_tile(phi, p + k * width + c, multiply_tile(y, psi, p + k * width + c))
                u, v = zeros(rest), zeros(rest)
                for s in range(m):
                    u = add_row(u, broadcast(element(half, i * width + s)), right, b + s * width + last)
                    v = add_row(v, broadcast(element(half, k * width + s)), right, b + s * width + last)
                store_tile(phi, p + i * width + last, multiply_tile(u, psi, p + i * width + last))
                store_tile(phi, p + k * width + last, multiply_tile(v, psi, p + k * width + last))
