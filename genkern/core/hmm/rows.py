"""Shared by the fast layouts: aligned buffers, rows of emission factors, the range of scaled numbers.

Scaled numbers are rescaled every ``STRIDE`` steps of their own sequence, and by powers of two only. That is exact,
so that no result depends on the sequences that happen to share a register with it.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from genkern.core.hmm.types import Floats, Ints, Problem, read_only
from genkern.core.jit import inlined, part
from genkern.core.simd.vectors import W, element, horizontal_sum, load, zero

STRIDE = 8  # steps between two rescalings
SMALLEST = 2.0**-600  # a sequence whose mass leaves this range between two rescalings is redone by the reference
LARGEST = 2.0**600
LOG_2 = float(np.log(2.0))

# Offsets into the integers of a group of eight sequences: objects, lengths, slots, differences of output rows and table
# rows; the last row of any of its positions; then the table rows (steps, 8).
OBJECT, LENGTH, SLOT, TO_OUTPUT, LAST_ROW, ROWS = 0, W, 2 * W, 3 * W, 4 * W, 5 * W


class Job(NamedTuple):
    """The work of one call of a layout's pass.

    ``members`` (B, 8) holds groups of eight objects by ascending length, -1 where a lane is empty; ``slots``
    (n_objects,) the row of the output to which an object's derivatives are added; without ``derivatives`` only log P is
    set; ``each`` says that no two objects share a slot.
    """

    members: Ints
    slots: Ints
    derivatives: bool
    each: bool


class Rows(NamedTuple):
    """Rows of emission factors, readable up to a padded width.

    ``table`` (R, n or width) may be read beyond the end of a row into the next one, where numbers are finite but
    meaningless; for rows after ``safe`` that would leave the array.
    """

    table: Floats
    safe: int
    has_shift: bool


def as_rows(problem: Problem, width: int) -> Rows:
    """Return the table as rows to be read up to the width: a padded copy for symbols, itself for positions."""
    table, (count, n) = problem.table, problem.table.shape
    if len(problem.codes) and n < width:
        table = np.zeros((count, width))
        table[:, :n] = problem.table
    return Rows(read_only(table), (table.size - width) // table.shape[1], bool(problem.shift.any()))


def aligned(size: int) -> Floats:
    """Return zeros (size,) that start at a multiple of 64 bytes, so that no vector straddles two cache lines."""
    raw = np.zeros(size + W)
    start = -(raw.__array_interface__["data"][0] // 8) % W
    return raw[start : start + size]


def aligned_columns(pitch: int, *counts: int) -> list[Floats]:
    """Return tables of zeros (count, pitch) that start at multiples of 64 bytes, if the pitch, in doubles, is one."""
    ends = list(accumulate(counts, initial=0))
    whole = aligned(ends[-1] * pitch).reshape(-1, pitch)
    return [whole[first:last] for first, last in pairwise(ends)]


@part
def sum_of_shifts(problem, i):
    """Return the sum of the logarithms that were taken out of the rows of object i."""
    total = 0.0
    chains = len(problem.start)
    base = (i if chains > 1 else 0) * (len(problem.table) // chains)
    for t in range(problem.offsets[i], problem.offsets[i + 1]):
        total += problem.shift[base + problem.codes[t] if len(problem.codes) else t]
    return total


@part
def sum_of_rows(table, first, last):
    """Return the sum of some rows of a table."""
    sums, rest, width = zero(), 0.0, table.shape[1]
    whole = first * width + (last - first) * width // W * W
    for k in range(first * width, whole, W):
        sums = sums + load(table, k)
    for k in range(whole, last * width):
        rest += element(table, k)
    return horizontal_sum(sums) + rest


@inlined
def sum_of_emissions(problem, job, i, emissions):
    """Return the sum of the emission derivatives that belong to object i alone: not finite if any is not."""
    if len(problem.codes) == 0:
        return sum_of_rows(emissions, problem.offsets[i], problem.offsets[i + 1])
    symbols = len(problem.table) // len(problem.start)
    return sum_of_rows(emissions, job.slots[i] * symbols, (job.slots[i] + 1) * symbols) if job.each else 0.0


@part
def enter(problem, job, group, ints, with_rows):
    """Fill the integers of a group, table rows if wanted; lanes ascend by length, and empty ones have length zero."""
    chains, coded = len(problem.start), len(problem.codes) > 0
    symbols, last = len(problem.table) // chains, job.members[group, W - 1]
    ints[LAST_ROW], longest = 0, problem.offsets[last + 1] - problem.offsets[last]
    for lane in range(W):
        empty = job.members[group, lane] < 0
        # An empty lane reads, and adds zeros to, the rows of the last lane: never those of another group.
        i = last if empty else job.members[group, lane]
        chain = i if chains > 1 else 0
        first, length = problem.offsets[i], problem.offsets[i + 1] - problem.offsets[i]
        ints[OBJECT + lane] = i
        ints[LENGTH + lane] = 0 if empty else length
        ints[SLOT + lane] = job.slots[i]
        ints[TO_OUTPUT + lane] = (job.slots[i] - chain) * symbols if coded else 0
        if not with_rows:
            continue
        if coded:
            codes, base = problem.codes[first : first + length], chain * symbols
            for t in range(length):
                ints[ROWS + t * W + lane] = base + codes[t]
        else:
            ints[LAST_ROW] = max(ints[LAST_ROW], first + length - 1)
            for t in range(length):
                ints[ROWS + t * W + lane] = first + t
        for t in range(length, longest):
            ints[ROWS + t * W + lane] = ints[ROWS + lane]
