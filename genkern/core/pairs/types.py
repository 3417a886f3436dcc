"""Arrays of the state-pair recursion, grouped for compiled functions.

The numbers of a model are one record of rows: start, transitions, end, a bound and its growth by
a step in all entries of one row each, ones where the states can be reached, and, where ψ = F F′ᵀ is a product, the rows
of Fᵀ, (Aᵀ (π ∘ F))ᵀ and (A (e ∘ F))ᵀ. A row is n numbers of a left-hand model, and a right-hand unit has it as vectors:
of eight models side by side, or of one with states padded by zeros.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.simd.vectors import W, padded

Floats = NDArray[np.float64]

TRANSITIONS = 1  # the first row of them in a record


class PairSide(NamedTuple):
    """One side of a block of pairs: a models of n states each, all numbers raised to the power ρ.

    All entries lie between 0 and 1; ``end`` is ones where the models have no end weights.
    """

    start: Floats  # (a, n)
    transitions: Floats  # (a, n, n)
    end: Floats  # (a, n)


class PsiTable(NamedTuple):
    """ψ of a block as given, and its layout in items."""

    numbers: Floats  # flat
    strides: tuple[int, ...]  # of rows, their states, columns, their states
    shape: tuple[int, int, int, int]  # n, m, the width of rows of ψ in an item, the number of columns
    logs: bool  # the numbers are log ψ
    lanes: bool  # an item is for eight columns, or for one
    half: bool  # items left of the diagonal are left out


class PairWorkspace(NamedTuple):
    """Workspace of the recursion of one item: a flat buffer, aligned to 64 bytes, and offsets into it."""

    numbers: Floats
    psi: int  # n rows of ``width`` numbers, as the next three
    phi: int
    half: int  # Aᵀ φ
    old: int  # φ one step before
    rows: int  # n
    width: int
    states: int  # m
    lanes: bool  # a vector holds eight models, or eight states of one
    nowhere: int  # -1, in place of an offset: an int64, as Numba compiles callees once more for a literal


# Offsets of vectors in a workspace; the first three come with ψ
SHIFT = 0  # logarithm taken out of ψ, to be added once an observation
UNIT = 1 * W  # the scale of ψ
LOST = 2 * W  # 1 where an entry of ψ underflowed by the scaling
SCALES = 3 * W
EXPONENT = 3 * W  # powers of two taken out of φ
REDO = 4 * W  # 1 where underflow may have spoilt the result
GROWTH = 5 * W  # of the sum of φ by the last step
READY = 6 * W  # 1 where the recursion is to be closed
DONE = 7 * W  # 1 where the result is set
RESULT = 8 * W  # log k without the shift
BOUND = 9 * W  # logarithm of the upper bound of k for ψ of ones
SPARE = 10 * W
SLOPE = 11 * W  # logarithm of the largest factor by which a step multiplies the sum of φ
LEVEL = 12 * W  # logarithm of the sum of φ at the last check for underflow, or of its bound
MARK = 13 * W  # EXPONENT then
WEAK = 14 * W  # 1 where the result is so far below its bound that underflowed products may matter
SEEN = 15 * W  # the step after which that was
ARRAYS = 16 * W


def aligned(*shape: int) -> Floats:
    """Return an uninitialised array of doubles that starts at a multiple of 64 bytes."""
    size = math.prod(shape)
    buffer = np.empty(size + 8)
    first = -buffer.__array_interface__["data"][0] % 64 // 8  # faster than by ctypes
    return buffer[first : first + size].reshape(shape)


def new_workspace(n: int, m: int, lanes: bool) -> PairWorkspace:
    """Return a workspace for φ of n by m states."""
    width = m * W if lanes else padded(m)
    psi, phi, half, old, last = (ARRAYS + k * n * width for k in range(5))
    return PairWorkspace(aligned(last), psi, phi, half, old, rows=n, width=width, states=m, lanes=lanes, nowhere=-1)
