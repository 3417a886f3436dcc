"""Steps φ ← [Aᵀ φ A′] ∘ ψ of the state-pair recursion of an item.

A vector holds, in the lane layout, one pair of states of eight right-hand models and φ is (n, m, 8); in the tile
layout, eight states of one right-hand model and φ is (n, columns, 8). The two products of a step keep a tile of
rows and columns in registers; where tiles do not fit, the last one overlaps another, whose numbers it sets again.
Both layouts share the code, which is compiled for each. Its first product is ``multiply`` written again: to call that
cost 2 to 4 % of the time. The sum of φ is checked only every few steps.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

from numba.extending import overload

from genkern.core.jit import UNCACHED, kernel, part
from genkern.core.pairs.types import DONE, EXPONENT, REDO, SPARE
from genkern.core.simd.tiles import (
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
from genkern.core.simd.vectors import (
    W,
    any_lane,
    broadcast,
    horizontal_sum,
    less,
    load,
    maximum,
    power_of_two,
    select,
    store,
    zero,
)

RESCALE = 8  # steps between two checks of the size of φ
SMALL, LARGE = 2.0**-64, 2.0**64  # a sum of φ within them needs no rescaling
VANISHED = 2.0**-700  # below it entries that matter may have underflowed between two checks
# Rows and columns of tiles: few, as the recursion is compiled for each
SHAPES = ((1, 1), (4, 1), (1, 2), (2, 2), (3, 2), (2, 3), (3, 3), (1, 4), (2, 4), (3, 4), (1, 5), (2, 5), (5, 5))
STORES = 0.016  # measured cost of each vector of a tile beyond eight
WHOLE, WIDE = 16, 5  # most vectors of φ, and columns, for which the loops are unrolled


class Whole(NamedTuple):
    """The lane layout with φ as one tile: tuples as long as it has rows and columns of vectors."""

    rows: tuple[float, ...]
    columns: tuple[float, ...]


class LaneTile(NamedTuple):
    """The lane layout: tuples as long as tiles of φ have rows and columns of vectors."""

    rows: tuple[float, ...]
    columns: tuple[float, ...]


class Tiles(NamedTuple):
    """The tile layout: tuples as long as tiles of φ have rows and columns of vectors."""

    rows: tuple[float, ...]
    columns: tuple[float, ...]


@cache
def tile_of(rows: int, columns: int, lanes: bool) -> Whole | LaneTile | Tiles:
    """Return the tile that takes the least time for φ of so many rows and columns of vectors."""

    def cost(tile: tuple[int, int]) -> float:
        # All products, some of them twice, and the loads that they need; many stores at once delay the next tile,
        # and few sums have too long chains of dependences.
        size = math.prod(tile)
        done = -(-rows // tile[0]) * -(-columns // tile[1]) * size
        loads = 0.5 * (1.0 / tile[0] + 1.0 / tile[1])
        return done * (1.0 + loads) * (1.0 + STORES * max(0, size - 8)) * max(1.0, 4.0 / size)

    if lanes and rows * columns <= WHOLE and columns <= WIDE:
        return Whole((0.0,) * rows, (0.0,) * columns)
    best = min(
        (tile for tile in SHAPES if tile[0] <= rows and tile[1] <= columns and math.prod(tile) <= TILE), key=cost
    )
    return (LaneTile if lanes else Tiles)((0.0,) * best[0], (0.0,) * best[1])


@kernel
def total(workspace, first):
    """Return the sum of the vectors of φ, or of the array at ``first``, over all lanes if they belong to one model."""
    # Four independent sums.
    s0, s1, s2, s3 = zero(), zero(), zero(), zero()
    last = first + workspace.rows * workspace.width
    for at in range(first, last - 3 * W, 4 * W):
        s0 = s0 + load(workspace.numbers, at)
        s1 = s1 + load(workspace.numbers, at + W)
        s2 = s2 + load(workspace.numbers, at + 2 * W)
        s3 = s3 + load(workspace.numbers, at + 3 * W)
    for at in range(last - (last - first) % (4 * W), last, W):
        s0 = s0 + load(workspace.numbers, at)
    s = (s0 + s1) + (s2 + s3)
    return s if workspace.lanes else broadcast(horizontal_sum(s))


@kernel
def is_far(s):
    """Return whether a sum of φ is far from one in any lane."""
    return any_lane(less(s, broadcast(SMALL))) or any_lane(less(broadcast(LARGE), s))


@part
def do_again(workspace, gone):
    """Mark the lanes where all of φ may have underflowed, unless their results are set."""
    undone = broadcast(1.0) - load(workspace.numbers, DONE)
    marks = load(workspace.numbers, REDO)
    store(workspace.numbers, REDO, select(gone, maximum(undone, marks), marks))


@kernel
def rescale(workspace, s):
    """Divide φ by the power of two in its sum s, in the lanes where that is far from one."""
    a = workspace.numbers
    far = select(less(s, broadcast(SMALL)), s, broadcast(1.0))
    far = select(less(broadcast(LARGE), s), s, far)
    gone = less(far, broadcast(VANISHED))
    power = select(gone, broadcast(1.0), power_of_two(far))
    for at in range(workspace.phi, workspace.phi + workspace.rows * workspace.width, W):
        store(a, at, load(a, at) * (broadcast(1.0) / power))
    do_again(workspace, gone)
    store(a, SPARE, power)
    for k in range(W):
        a[EXPONENT + k] += math.frexp(a[SPARE + k])[1] - 1


@kernel
def copy(a, first, b, to, size):
    """Set b[to : to + size] = a[first : first + size], a whole number of vectors."""
    for at in range(0, size, W):
        store(b, to + at, load(a, first + at))


@part
def multiply(left, a, right, b, count, workspace, offsets, tile):
    """Set (n, columns, 8) to Σ_s left[a + s n + i] right[b + s width + j] over so many rows s.

    ``offsets`` are two offsets into the numbers of the workspace: of a factor of the result, negative if there is none,
    and of the result.
    """
    by, out = offsets
    rows, columns, n, width = tile.rows, tile.columns, workspace.rows, workspace.width
    for row in range(0, n, len(rows)):
        i = min(row, n - len(rows))
        for column in range(0, width, len(columns) * W):
            c = min(column, width - len(columns) * W)
            x = zeros(rows, columns)
            for s in range(count):
                x = add_numbers(x, rows, left, a + s * n + i, 1, right, b + s * width + c)
            at = i * width + c
            if by >= 0:
                x = multiply_tile(x, rows, workspace.numbers, by + at, width)
            store_tile(workspace.numbers, out + at, width, rows, x)


def _advance_whole(left, a, right, b, workspace, span, kept, tile):
    """Take the steps with all of φ in registers."""
    rows, columns, width = tile.rows, tile.columns, workspace.width
    numbers, phi, psi = workspace.numbers, workspace.phi, workspace.psi
    x = load_tile(rows, columns, numbers, phi)
    for step in range(span):
        if step % RESCALE == 0:
            t = sum_tile(x)
            if is_far(t):
                store_tile(numbers, phi, width, rows, x)
                rescale(workspace, t)
                x = load_tile(rows, columns, numbers, phi)
        if kept and step == span - 1:
            store_tile(numbers, workspace.old, width, rows, x)
        y = from_right(from_left(x, rows, left, a), rows, right, b)
        x = multiply_tile(y, rows, numbers, psi, width)
    store_tile(numbers, phi, width, rows, x)


def _advance_tiled(left, a, right, b, workspace, span, kept, tile):
    """Take the steps tile by tile."""
    rows, columns, n, width = tile.rows, tile.columns, workspace.rows, workspace.width
    wide, numbers, phi, psi, half = width // W, workspace.numbers, workspace.phi, workspace.psi, workspace.half
    for step in range(span):
        if step % RESCALE == 0:
            t = total(workspace, phi)
            if is_far(t):
                rescale(workspace, t)
        if kept and step == span - 1:
            copy(numbers, phi, numbers, workspace.old, n * width)
        for row in range(0, n, len(rows)):
            i = min(row, n - len(rows))
            for column in range(0, wide, len(columns)):
                c = min(column, wide - len(columns)) * W
                x = zeros(rows, columns)
                for s in range(n):
                    x = add_numbers(x, rows, left, a + s * n + i, 1, numbers, phi + s * width + c)
                store_tile(numbers, half + i * width + c, width, rows, x)
        for row in range(0, n, len(rows)):
            i = min(row, n - len(rows))
            for column in range(0, wide, len(columns)):
                c = min(column, wide - len(columns)) * W
                at = i * width + c
                x = zeros(rows, columns)
                for s in range(workspace.states):
                    x = add_state(x, tile, numbers, half + i * width, s, width, right, b + s * width + c)
                store_tile(numbers, phi + at, width, rows, multiply_tile(x, rows, numbers, psi + at, width))


def add_state(x, tile, p, j, s, step, a, i):
    """Add products of the entries of state s of the right-hand models in rows of p and in a: vectors, or numbers."""
    return _ADDS[type(tile)](x, tile, p, j, s, step, a, i)


@overload(add_state, inline="always")
def _add_state_compiled(x, tile, p, j, s, step, a, i):
    """Choose what is compiled in place of add_state, by the type of the tile."""
    return _ADDS[tile.instance_class]


def _add_vectors(x, tile, p, j, s, step, a, i):
    return add_vectors(x, tile.rows, p, j + s * W, step, a, i)


def _add_numbers(x, tile, p, j, s, step, a, i):
    return add_numbers(x, tile.rows, p, j + s, step, a, i)


_ADDS: dict[Any, Any] = {LaneTile: _add_vectors, Tiles: _add_numbers}
_STEPS: dict[Any, Any] = {Whole: _advance_whole, LaneTile: _advance_tiled, Tiles: _advance_tiled}


def advance(left, a, right, b, workspace, span, kept, tile):
    """Take so many steps; φ of the last but one may be kept; A lies at left[a], A′ at right[b]."""
    _STEPS[type(tile)](left, a, right, b, workspace, span, kept, tile)


@overload(advance, jit_options=UNCACHED)
def _advance_compiled(left, a, right, b, workspace, span, kept, tile):
    """Choose what is compiled in place of advance, by the type of the tile."""
    return _STEPS[tile.instance_class]
