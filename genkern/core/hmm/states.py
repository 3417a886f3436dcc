"""Shared by the layouts with contiguous states: packed matrices, products with them, sums of outer products.

States are padded with zeros to a multiple of eight. A matrix (n, padded) is packed into panels of eight columns, so
that a product reads it in order. All arrays lie in one flat ``buffer``, at the offsets of a ``layout``.
"""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

from genkern.core.jit import inlined, part
from genkern.core.simd import tiles
from genkern.core.simd.tiles import add_numbers, add_tile, store_tile, zeros
from genkern.core.simd.vectors import W, broadcast, element, horizontal_sum, load, multiply_add, padded, store, zero

TILE = 4  # rows of a register tile: four rows of eight columns and their operands fit sixteen registers
# Rows and columns of tiles of pair counts: where there are more registers, several eights of columns.
FOUR, THREE, ONE = (0.0,) * TILE, (0.0,) * 3, (0.0,)
PANELS = FOUR if tiles.TILE >= 16 else ONE


class Row(NamedTuple):
    """Offsets of one sequence's numbers of one step: into the buffer, and into the emission derivatives."""

    pred: int
    factors: int
    alpha: int
    weighted: int
    emissions: int


def gathered_steps(n: int) -> int:
    """Return how many steps of messages are gathered: as many as the first-level cache holds."""
    return max(8, min(64, 1536 // padded(n)))


def offsets_of(counts: list[int]) -> tuple[list[int], int]:
    """Return the offsets of consecutive arrays of so many doubles, each a multiple of eight, and their total size."""
    *starts, total = accumulate((padded(count) for count in counts), initial=0)
    return starts, total


@part
def pack(matrix, transposed, rows, buffer, to):
    """Copy a matrix (n, n), or its transpose, into panels (rows, 8) of eight columns; padding is not written."""
    n = len(matrix)
    for k in range(n):
        for j in range(n):
            buffer[to + (j // W * rows + k) * W + j % W] = matrix[j, k] if transposed else matrix[k, j]


@inlined
def copy_row(rows, row, n, buffer, to):
    """Copy a row of n emission factors into the buffer; the padding behind may get any finite numbers."""
    if row <= rows.safe:
        for c in range(0, n, W):
            store(buffer, to + c, load(rows.table, row * rows.table.shape[1] + c))
    else:
        for k in range(n):
            buffer[to + k] = rows.table[row, k]


@inlined
def rows_times(buffer, left, panel, n, sums):
    """Return four sums of eight plus four neighbouring rows of a message (width / 8, 8, 8) times a panel (n, 8)."""
    a, b, c, d = sums
    whole = n - n % W
    for start in range(0, whole, W):
        for k in range(W):
            column, offset = load(buffer, panel + (start + k) * W), left + start * W + k
            a = multiply_add(broadcast(element(buffer, offset)), column, a)
            b = multiply_add(broadcast(element(buffer, offset + W)), column, b)
            c = multiply_add(broadcast(element(buffer, offset + 2 * W)), column, c)
            d = multiply_add(broadcast(element(buffer, offset + 3 * W)), column, d)
    for k in range(n % W):
        column, offset = load(buffer, panel + (whole + k) * W), left + whole * W + k
        a = multiply_add(broadcast(element(buffer, offset)), column, a)
        b = multiply_add(broadcast(element(buffer, offset + W)), column, b)
        c = multiply_add(broadcast(element(buffer, offset + 2 * W)), column, c)
        d = multiply_add(broadcast(element(buffer, offset + 3 * W)), column, d)
    return a, b, c, d


@inlined
def row_times(buffer, left, panel, rows, start):
    """Return eight sums plus the row at ``left`` times a panel (rows, 8), by four interleaved partial sums.

    The rows are a multiple of four: those beyond the states, and their factors, are zero.
    """
    a, b, c, d = start, zero(), zero(), zero()
    for k in range(0, rows, 4):
        offset = panel + k * W
        a = multiply_add(broadcast(element(buffer, left + k)), load(buffer, offset), a)
        b = multiply_add(broadcast(element(buffer, left + k + 1)), load(buffer, offset + W), b)
        c = multiply_add(broadcast(element(buffer, left + k + 2)), load(buffer, offset + 2 * W), c)
        d = multiply_add(broadcast(element(buffer, left + k + 3)), load(buffer, offset + 3 * W), d)
    return (a + b) + (c + d)


@inlined
def row_times_three(buffer, left, panel, rows, n, starts):
    """Do the same as row_times for three neighbouring panels, of n states, by two interleaved partial sums each."""
    a, b, c = starts
    x, y, z = zero(), zero(), zero()
    apart = rows * W
    for k in range(0, n, 2):
        factor, offset = broadcast(element(buffer, left + k)), panel + k * W
        a, b = multiply_add(factor, load(buffer, offset), a), multiply_add(factor, load(buffer, offset + apart), b)
        c = multiply_add(factor, load(buffer, offset + 2 * apart), c)
        factor, offset = broadcast(element(buffer, left + k + 1)), offset + W
        x, y = multiply_add(factor, load(buffer, offset), x), multiply_add(factor, load(buffer, offset + apart), y)
        z = multiply_add(factor, load(buffer, offset + 2 * apart), z)
    return a + x, b + y, c + z


@inlined
def row_times_four(buffer, left, panel, rows, n, starts):
    """Do the same as row_times for four neighbouring panels, of n states, by one sum each."""
    a, b, c, d = starts
    apart = rows * W
    for k in range(n):
        factor, offset = broadcast(element(buffer, left + k)), panel + k * W
        a, b = multiply_add(factor, load(buffer, offset), a), multiply_add(factor, load(buffer, offset + apart), b)
        c = multiply_add(factor, load(buffer, offset + 2 * apart), c)
        d = multiply_add(factor, load(buffer, offset + 3 * apart), d)
    return a, b, c, d


@inlined
def combine(buffer, emissions, row, offset, column, future, inverse):
    """Combine past, present and future of eight states: alpha, weighted future, and emission derivatives.

    The states begin at ``column`` in rows of emissions, and at ``offset`` in messages.
    """
    p, e, scaled = load(buffer, row.pred + offset), load(buffer, row.factors + column), future * inverse
    store(buffer, row.alpha + offset, p * e * inverse)
    store(buffer, row.weighted + offset, scaled * e)
    to = row.emissions + column
    store(emissions, to, multiply_add(p, scaled, load(emissions, to)))


@part
def add_outer(buffer, alpha, weighted, pairs, sizes):
    """Add sum_t alpha[t, k] weighted[t, j] to pairs (rows, width), by as many columns at a time as registers hold.

    ``sizes`` is (rows, width, number of steps, stride of steps, stride of vectors of eight states). Several vectors
    of columns are taken together only where they are contiguous.
    """
    _, width, _, _, apart = sizes
    c = 0
    while apart == W and width - c >= len(PANELS) * W:
        _add_panels(buffer, alpha, weighted + c, pairs + c, sizes, PANELS)
        c += len(PANELS) * W
    if apart == W and width - c == 3 * W:
        _add_panels(buffer, alpha, weighted + c, pairs + c, sizes, THREE)
        c += 3 * W
    while c < width:
        _add_panels(buffer, alpha, weighted + c // W * apart, pairs + c, sizes, ONE)
        c += W


@inlined
def _add_panels(buffer, alpha, weighted, pairs, sizes, columns):
    """Add the pairs of all states with those of so many eights of columns, four rows at a time."""
    rows, width, steps, step, apart = sizes
    for k in range(0, rows, TILE):
        x, left = zeros(FOUR, columns), alpha + k // W * apart + k % W
        for t in range(0, steps * step, step):
            x = add_numbers(x, FOUR, buffer, left + t, 1, buffer, weighted + t)
        to = pairs + k * width
        store_tile(buffer, to, width, FOUR, add_tile(x, FOUR, buffer, to, width))


@part
def add_pairs(buffer, pairs, width, slot, transitions):
    """Add the pairs (n, width) to transitions[slot] (n, n); return their sum."""
    n = transitions.shape[1]
    total, rest, whole = zero(), 0.0, n - n % W
    for k in range(n):
        to, offset = (slot * n + k) * n, pairs + k * width
        for j in range(0, whole, W):
            v = load(buffer, offset + j)
            store(transitions, to + j, load(transitions, to + j) + v)
            total = total + v
        for j in range(whole, n):
            transitions[slot, k, j] += buffer[offset + j]
            rest += buffer[offset + j]
    return horizontal_sum(total) + rest


@inlined
def clear(buffer, start, size):
    """Set a range of the buffer, a multiple of eight long, to zero."""
    for k in range(start, start + size, W):
        store(buffer, k, zero())
