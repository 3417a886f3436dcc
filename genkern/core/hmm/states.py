"""What the layouts with contiguous states share: packed matrices, products with them, sums of outer products.

States are padded with zeros to a multiple of eight. A matrix (n, padded) is packed into panels of eight columns, so
that a product reads it as one stream. Everything lies in one flat buffer ``m``.
"""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

from genkern.core.jit import inlined, kernel
from genkern.core.simd import tiles
from genkern.core.simd.tiles import add_numbers, add_tile, store_tile, zeros
from genkern.core.simd.vectors import W, broadcast, element, horizontal_sum, load, multiply_add, padded, store, zero

TILE = 4  # rows of a register tile: four rows of eight columns and their operands fit sixteen registers
# Rows and columns of tiles of pair counts: where there are more registers, several eights of columns.
FOUR, THREE, ONE = (0.0,) * TILE, (0.0,) * 3, (0.0,)
PANELS = FOUR if tiles.TILE >= 16 else ONE


class Row(NamedTuple):
    """Where one sequence's numbers of one step lie: in the buffer, but for the row of emission derivatives."""

    pred: int
    factors: int
    alpha: int
    weighted: int
    emissions: int


def chunk_of(n: int) -> int:
    """Return how many steps of outer products are gathered: as many as the first-level cache holds."""
    return max(8, min(64, 1536 // padded(n)))


def places(counts: list[int]) -> tuple[list[int], int]:
    """Return where consecutive arrays of so many doubles begin, each at a multiple of eight, and their total."""
    *starts, total = accumulate((padded(count) for count in counts), initial=0)
    return starts, total


@kernel
def pack(matrix, transposed, rows, m, to):
    """Copy a matrix (n, n), or its transpose, into panels (rows, 8) of eight columns; padding is left alone."""
    n = len(matrix)
    for k in range(n):
        for j in range(n):
            m[to + (j // W * rows + k) * W + j % W] = matrix[j, k] if transposed else matrix[k, j]


@inlined
def copy_row(rows, row, n, m, to):
    """Copy a row of n emission factors into the buffer; the padding behind may get anything finite."""
    if row <= rows.safe:
        for c in range(0, n, W):
            store(m, to + c, load(rows.table, row * rows.table.shape[1] + c))
    else:
        for k in range(n):
            m[to + k] = rows.table[row, k]


@inlined
def rows_times(m, left, panel, n, sums):
    """Return four sums of eight plus four neighbouring rows of a message (width / 8, 8, 8) times a panel (n, 8)."""
    a, b, c, d = sums
    whole = n - n % W
    for start in range(0, whole, W):
        for k in range(W):
            column, at = load(m, panel + (start + k) * W), left + start * W + k
            a = multiply_add(broadcast(element(m, at)), column, a)
            b = multiply_add(broadcast(element(m, at + W)), column, b)
            c = multiply_add(broadcast(element(m, at + 2 * W)), column, c)
            d = multiply_add(broadcast(element(m, at + 3 * W)), column, d)
    for k in range(n % W):
        column, at = load(m, panel + (whole + k) * W), left + whole * W + k
        a = multiply_add(broadcast(element(m, at)), column, a)
        b = multiply_add(broadcast(element(m, at + W)), column, b)
        c = multiply_add(broadcast(element(m, at + 2 * W)), column, c)
        d = multiply_add(broadcast(element(m, at + 3 * W)), column, d)
    return a, b, c, d


@inlined
def row_times(m, left, panel, rows, start):
    """Return eight sums plus the row at ``left`` times a panel (rows, 8), by four interleaved partial sums.

    The rows are a multiple of four: those beyond the states, and their factors, are zero.
    """
    a, b, c, d = start, zero(), zero(), zero()
    for k in range(0, rows, 4):
        at = panel + k * W
        a = multiply_add(broadcast(element(m, left + k)), load(m, at), a)
        b = multiply_add(broadcast(element(m, left + k + 1)), load(m, at + W), b)
        c = multiply_add(broadcast(element(m, left + k + 2)), load(m, at + 2 * W), c)
        d = multiply_add(broadcast(element(m, left + k + 3)), load(m, at + 3 * W), d)
    return (a + b) + (c + d)


@inlined
def row_times_three(m, left, panel, rows, n, starts):
    """Return what row_times does for three neighbouring panels, of n states, by two interleaved partial sums each."""
    a, b, c = starts
    x, y, z = zero(), zero(), zero()
    apart = rows * W
    for k in range(0, n, 2):
        factor, at = broadcast(element(m, left + k)), panel + k * W
        a, b = multiply_add(factor, load(m, at), a), multiply_add(factor, load(m, at + apart), b)
        c = multiply_add(factor, load(m, at + 2 * apart), c)
        factor, at = broadcast(element(m, left + k + 1)), at + W
        x, y = multiply_add(factor, load(m, at), x), multiply_add(factor, load(m, at + apart), y)
        z = multiply_add(factor, load(m, at + 2 * apart), z)
    return a + x, b + y, c + z


@inlined
def row_times_four(m, left, panel, rows, n, starts):
    """Return what row_times does for four neighbouring panels, of n states, by one sum each, which is enough."""
    a, b, c, d = starts
    apart = rows * W
    for k in range(n):
        factor, at = broadcast(element(m, left + k)), panel + k * W
        a, b = multiply_add(factor, load(m, at), a), multiply_add(factor, load(m, at + apart), b)
        c = multiply_add(factor, load(m, at + 2 * apart), c)
        d = multiply_add(factor, load(m, at + 3 * apart), d)
    return a, b, c, d


@inlined
def combine(m, emissions, row, at, column, future, inverse):
    """Combine past, present and future of eight states: alpha, weighted future, and emission derivatives.

    The states begin at the column of rows of emissions, and at ``at`` in messages.
    """
    p, e, scaled = load(m, row.pred + at), load(m, row.factors + column), future * inverse
    store(m, row.alpha + at, p * e * inverse)
    store(m, row.weighted + at, scaled * e)
    to = row.emissions + column
    store(emissions, to, multiply_add(p, scaled, load(emissions, to)))


@kernel
def add_outer(m, alpha, weighted, pairs, sizes):
    """Add sum_t alpha[t, k] weighted[t, j] to pairs (rows, width), by as many columns at a time as registers hold.

    ``sizes`` is (rows, width, number of steps, stride of steps, stride of vectors of eight states). Vectors go together
    only where they are neighbours.
    """
    _, width, _, _, apart = sizes
    c = 0
    while apart == W and width - c >= len(PANELS) * W:
        _add_panels(m, alpha, weighted + c, pairs + c, sizes, PANELS)
        c += len(PANELS) * W
    if apart == W and width - c == 3 * W:
        _add_panels(m, alpha, weighted + c, pairs + c, sizes, THREE)
        c += 3 * W
    while c < width:
        _add_panels(m, alpha, weighted + c // W * apart, pairs + c, sizes, ONE)
        c += W


@inlined
def _add_panels(m, alpha, weighted, pairs, sizes, columns):
    """Add the pairs of all states with those of so many eights of columns, four rows at a time."""
    rows, width, steps, step, apart = sizes
    for k in range(0, rows, TILE):
        x, left = zeros(FOUR, columns), alpha + k // W * apart + k % W
        for t in range(0, steps * step, step):
            x = add_numbers(x, FOUR, m, left + t, 1, m, weighted + t)
        to = pairs + k * width
        store_tile(m, to, width, FOUR, add_tile(x, FOUR, m, to, width))


@kernel
def add_pairs(m, pairs, width, slot, transitions):
    """Add the pairs (n, width) to transitions[slot] (n, n); return their sum."""
    n = transitions.shape[1]
    total, rest, whole = zero(), 0.0, n - n % W
    for k in range(n):
        to, at = (slot * n + k) * n, pairs + k * width
        for j in range(0, whole, W):
            v = load(m, at + j)
            store(transitions, to + j, load(transitions, to + j) + v)
            total = total + v
        for j in range(whole, n):
            transitions[slot, k, j] += m[at + j]
            rest += m[at + j]
    return horizontal_sum(total) + rest


@inlined
def clear(m, start, size):
    """Set a range of the buffer, a multiple of eight long, to zero."""
    for k in range(start, start + size, W):
        store(m, k, zero())
