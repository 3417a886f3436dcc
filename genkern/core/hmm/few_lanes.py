"""Filling the lanes of a group for at most four states: own chains; few symbols as masks.

A lane is a sequence, as in ``hmm.lanes``. The masks lie in the integer buffer of a group, a byte for each step.
"""

from __future__ import annotations

import numpy as np

from genkern.core.hmm.lanes import parameters
from genkern.core.hmm.rows import LAST_ROW, LENGTH, OBJECT, ROWS
from genkern.core.jit import inlined, part
from genkern.core.simd.shuffle import HALF, bits_at, load_pair, transpose_halves
from genkern.core.simd.vectors import W, element, store

QUAD = 4
LINE = QUAD * W  # doubles of one step
STEP = LINE - W  # of the predictions of a step for few symbols: those of three states
FEW = 4  # most symbols whose factors a lane selects by masks
BYTES = 8  # of an integer: the masks of eight steps
FIRST_MASK = ROWS * BYTES
ENDING = LAST_ROW + 1  # offset into the integers of a group: the mask of the lanes that end at a step


def is_few(n: int, symbols: int) -> bool:
    """Return whether there are symbols, and so few, that each lane selects its factors by masks."""
    return n < QUAD and 2 <= symbols <= FEW


@part
def bring_factors(problem, group, layout, buffer, ints):
    """Copy the factors of all symbols (4, 4, 8) into the lanes."""
    own, symbols = len(problem.start) > 1, layout.few
    if own:
        for s in range(symbols):
            _bring_row(
                problem.table, symbols * layout.n, s * layout.n, layout.n, buffer, layout.symbols + s * LINE, ints
            )
    elif group == 0:
        for s in range(symbols):
            for k in range(layout.n):
                for lane in range(W):
                    buffer[layout.symbols + s * LINE + k * W + lane] = problem.table[s, k]


@part
def bring(problem, group, layout, buffer, ints):
    """Copy the chains of a group into its lanes."""
    if len(problem.start) > 1:
        _bring_chains(problem, layout, buffer, ints)
    else:
        parameters(problem, group, layout, buffer, ints)


@part
def _bring_chains(problem, layout, buffer, ints):
    """Copy own chains into the lanes, as ``hmm.lanes.parameters`` does; empty lanes start with no mass."""
    n = layout.n
    _bring_row(problem.start, n, 0, n, buffer, layout.start, ints)
    _bring_row(problem.end, n, 0, n, buffer, layout.end, ints)
    for k in range(n):
        _bring_row(problem.transitions, n * n, k * n, n, buffer, layout.A + k * LINE, ints)
    for lane in range(W):
        if ints[LENGTH + lane] == 0:
            for k in range(n):
                buffer[layout.start + k * W + lane] = 0.0


@part
def _bring_row(a, size, first, n, buffer, to, ints):
    """Turn n of the ``size`` numbers of each lane's object, from ``first`` on, into lane vectors."""
    last = 0
    for lane in range(W):
        last = max(last, ints[OBJECT + lane])
    if last * size + first + QUAD > a.size:
        # Reading four at once would go beyond the end of the array.
        for lane in range(W):
            for k in range(n):
                buffer[to + k * W + lane] = element(a, ints[OBJECT + lane] * size + first + k)
        return
    # Four numbers fill half a vector; those of lanes 4..7 take the other half.
    v0, v1, v2, v3 = transpose_halves(
        _two_objects(a, size, first, ints, 0),
        _two_objects(a, size, first, ints, 1),
        _two_objects(a, size, first, ints, 2),
        _two_objects(a, size, first, ints, 3),
    )
    store(buffer, to, v0)
    if n > 1:
        store(buffer, to + W, v1)
    if n > 2:
        store(buffer, to + 2 * W, v2)
    if n > 3:
        store(buffer, to + 3 * W, v3)


@inlined
def _two_objects(a, size, first, ints, lane):
    """Return four numbers of a lane's object and four of the fourth lane after it."""
    low, high = element(ints, OBJECT + lane), element(ints, OBJECT + lane + HALF)
    return load_pair(a, low * size + first, high * size + first)


@part
def bring_masks(problem, layout, ints):
    """Set masks (symbols, steps), a byte each, of the lanes that observe a symbol at a step.

    Steps after the end of a sequence have no mass, so that their masks may be those of the next sequence.
    """
    longest, last = ints[LENGTH + W - 1], 0
    for lane in range(W):
        last = max(last, problem.offsets[ints[OBJECT + lane]])
    safe = last + longest + W <= len(problem.codes)
    for t in range(0, longest, W):
        to = ROWS + t // W
        low = _transposed(_bits(problem, ints, t, 0, safe))
        if layout.few > 2:
            high = _transposed(_bits(problem, ints, t, 1, safe))
            ints[to] = np.int64(~(low | high))
            ints[to + 2 * layout.masks] = np.int64(high & ~low)
            ints[to + 3 * layout.masks] = np.int64(high & low)
            low = low & ~high
        ints[to + layout.masks] = np.int64(low)  # with two symbols, the mask of the second is enough


@inlined
def _bits(problem, ints, t, bit, safe):
    """Return one bit of the codes at eight steps, a byte for each lane; codes are read one by one near their end."""
    bits = np.uint64(0)
    for lane in range(W):
        first = element(problem.offsets, element(ints, OBJECT + lane)) + t
        if safe:
            bits |= bits_at(problem.codes, first, bit) << np.uint64(W * lane)
        else:
            for c in range(min(W, len(problem.codes) - first)):
                bits |= np.uint64((problem.codes[first + c] >> bit) & 1) << np.uint64(W * lane + c)
    return bits


@inlined
def _transposed(x):
    """Return the transpose of a matrix (8, 8) of bits: off-diagonal blocks of growing size are exchanged."""
    t = (x ^ (x >> np.uint64(7))) & np.uint64(0x00AA00AA00AA00AA)
    x = x ^ t ^ (t << np.uint64(7))
    t = (x ^ (x >> np.uint64(14))) & np.uint64(0x0000CCCC0000CCCC)
    x = x ^ t ^ (t << np.uint64(14))
    t = (x ^ (x >> np.uint64(28))) & np.uint64(0x00000000F0F0F0F0)
    return x ^ t ^ (t << np.uint64(28))
