"""Arrays of the state-pair recursion, grouped for compiled functions."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class PairSide(NamedTuple):
    """One side of a block of pairs: a models of n states each, all numbers raised to the power ρ.

    All entries lie between 0 and 1; ``end`` is ones where the models have no end weights.
    """

    start: Floats  # (a, n)
    transitions: Floats  # (a, n, n)
    end: Floats  # (a, n)


class Units(NamedTuple):
    """Right-hand models as u units of vectors: eight models side by side, or one padded to eights of states."""

    start: Floats  # (u, width), the width being columns * 8
    transitions: Floats  # (u, m * width)
    end: Floats  # (u, width)


class Batch(NamedTuple):
    """The recursions of r rows with u units, item ``row * u + unit``; aligned to 64 bytes."""

    psi: Floats  # (r * u, n * width)
    phi: Floats
    old: Floats  # φ one step before
    half: Floats  # (n * width,): Aᵀ φ
    shift: Floats  # (r * u, 8): logarithm taken out of ψ, to be added once an observation
    lost: Floats  # 1 where an entry of ψ vanished by that
    exponent: Floats  # powers of two taken out of φ
    redo: Floats  # 1 where underflow may have spoilt the result
    growth: Floats  # of the sum of φ by the last step
    ready: Floats  # 1 where the recursion is to be closed
    done: Floats  # 1 where it has been, and the result stands
    result: Floats  # log k without the shift


def aligned(*shape: int) -> Floats:
    """Return an uninitialised array of doubles that starts at a multiple of 64 bytes."""
    size = math.prod(shape)
    room = np.empty(size + 8)
    first = -room.__array_interface__["data"][0] % 64 // 8  # faster than by ctypes
    return room[first : first + size].reshape(shape)


def new_batch(items: int, size: int) -> Batch:
    """Return buffers for so many items, φ of each having so many doubles."""
    large = {name: aligned(items, size) for name in ("psi", "phi", "old")}
    small = ("shift", "lost", "exponent", "redo", "growth", "ready", "done", "result")
    state = {name: aligned(items, 8) for name in small}
    for part in state.values():
        part.fill(0.0)
    return Batch(**large, half=aligned(size), **state)
