"""Rows whose blocks have unit length after a signed power of their entries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import kernel

Floats = NDArray[np.float64]


def unit_blocks(table: Floats, which: NDArray[np.int64], power: float) -> None:
    """Raise entries of a table (n, p) to a signed power, and divide them, so that blocks have the same length.

    ``which`` (p,) is the block of each column. The lengths of the blocks of a row that are not zero are equal, and that
    of the row is one. The table is changed in place.
    """
    _unit_blocks(table, which, power, np.empty((2, which.max(initial=0) + 1)))


@kernel
def _unit_blocks(table, which, power, work):
    """Do the work, with memory (2, B) for the largest entries and the sums of squares of a row's blocks."""
    count, width = table.shape
    peak, square = work[0], work[1]
    blocks = len(peak)
    for i in range(count):
        for b in range(blocks):
            peak[b] = square[b] = 0.0
        for j in range(width):
            peak[which[j]] = max(peak[which[j]], abs(table[i, j]))
        filled = 0
        for b in range(blocks):
            if peak[b] > 0.0:
                filled += 1
            else:
                peak[b] = 1.0
        for j in range(width):  # divided first, so that squares stay in range
            size = abs(table[i, j]) / peak[which[j]]
            size = np.sqrt(size) if power == 0.5 else size**power
            square[which[j]] += size * size
            table[i, j] = np.copysign(size, table[i, j])
        for b in range(blocks):
            square[b] = 1.0 / np.sqrt(square[b] * filled) if square[b] > 0.0 else 1.0
        for j in range(width):
            table[i, j] *= square[which[j]]
