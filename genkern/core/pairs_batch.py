"""Batches of the state-pair recursion: rectangles of a block of pairs that stay in the cache."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.pairs_ends import begin, close, watch
from genkern.core.pairs_psi import fetch_lanes, fetch_tiles, scale_logs, scale_values
from genkern.core.pairs_steps import steps_of
from genkern.core.pairs_types import Batch, Floats, PairSide, Units, new_batch
from genkern.core.simd import W

BATCH = 2**17  # doubles of φ in a batch, and as many of ψ and of the φ before
WATCH = 16  # steps between two looks at convergence, later an eighth of those done


class Block(NamedTuple):
    """A block of a by b pairs."""

    left: PairSide  # a models of n states
    units: Units  # b models of m states
    psi: Floats  # flat
    strides: tuple[int, int, int, int]  # of ψ: rows, their states, columns, their states
    states: int  # m
    lanes: bool  # a vector holds eight models, or eight states of one
    logs: bool  # ψ is given as log ψ
    half: bool  # pairs left of the diagonal are left out
    length: int
    log_k: Floats  # (a, b), set
    redo: NDArray[np.bool_]  # (a, b), set where underflow may have spoilt log k

    @property
    def group(self) -> int:
        """Return the number of models in a unit."""
        return W if self.lanes else 1


def run_rows(block: Block, first: int, last: int) -> None:
    """Set log k and redo in some rows of a block."""
    size = block.left.start.shape[1] * block.units.start.shape[1]
    most = max(1, BATCH // size)
    units = min(len(block.units.start), most)
    rows = min(last - first, max(1, most // units))
    batch = new_batch(rows * units, size)
    for row in range(first, last, rows):
        start = row // block.group if block.half else 0
        for unit in range(start, len(block.units.start), units):
            _run_batch(block, batch, slice(row, min(row + rows, last)), slice(unit, unit + units))


def _run_batch(block: Block, batch: Batch, rows: slice, units: slice) -> None:
    """Set log k and redo in a rectangle of a block."""
    left = PairSide(*(part[rows] for part in block.left))
    right = Units(*(part[units] for part in block.units))
    shape = (len(left.start), len(right.start))
    count, group = shape[0] * shape[1], block.group
    corner = (rows.start, units.start * group, block.log_k.shape[1])
    items = np.arange(count)
    if block.half:
        items = items[corner[1] + (items % shape[1] + 1) * group > rows.start + items // shape[1]]
    if not block.lanes:
        batch.psi[:] = -np.inf if block.logs else 0.0
    fetch = fetch_lanes if block.lanes else fetch_tiles
    fetch(block.psi, block.strides, corner, (shape[1], left.start.shape[1], block.states), items, batch.psi)
    scale = scale_logs if block.logs else scale_values
    scale(batch, items, block.lanes)
    _recur(block, left, right, batch, items)
    columns = slice(corner[1], min(corner[1] + shape[1] * group, corner[2]))
    width = columns.stop - columns.start
    result = batch.result[:count, :group] + block.length * batch.shift[:count, :group]
    redo = batch.redo[:count, :group] > 0.0
    block.log_k[rows, columns] = result.reshape(shape[0], -1)[:, :width]
    block.redo[rows, columns] = redo.reshape(shape[0], -1)[:, :width]


def _recur(block: Block, left: PairSide, right: Units, batch: Batch, items: NDArray[np.int64]) -> None:
    """Run the recursion of the items, each lane until it settles."""
    advance, *tile = steps_of(left.start.shape[1], right.start.shape[1] // W, block.lanes)
    begin(left.start, right.start, batch, items)
    steps, done = block.length - 1, 0
    while done < steps and len(items):
        span = max(WATCH, done // 8)
        span = span if steps - done > 2 * span else steps - done
        advance(left.transitions, right.transitions, batch, items, span, *tile)
        done += span
        if done < steps and watch(batch, items, block.lanes):
            close(left.end, right.end, batch, items, block.lanes, done, steps - done)
            items = items[batch.done[items].min(axis=1) == 0.0]
    np.subtract(1.0, batch.done, out=batch.ready)
    close(left.end, right.end, batch, items, block.lanes, steps, 0)
