"""Chunks of rows turned into columns, so that eight points share a vector, and back."""

from __future__ import annotations

from genkern.core.jit import part
from genkern.core.simd.shuffle import transpose
from genkern.core.simd.tiles import TILE
from genkern.core.simd.vectors import W, load, store

CHUNK = 128  # points worked on at a time; a multiple of 32
PAIRED = TILE >= 16  # there are registers enough for the sums of two models at once
PITCH = CHUNK + W  # from one column to the next: powers of two would crowd into few sets of the cache


@part
def to_columns(a, first, count, out):
    """Fill out (width, PITCH) with ``a[first : first + count].T``, and zeros up to a whole number of vectors."""
    width = a.shape[1]
    whole = count // W * W if width >= W else 0
    for t in range(0, whole, W):
        for j in range(0, width, W):
            left = min(j, width - W)  # the last square overlaps the one before
            at = (first + t) * width + left
            c0, c1, c2, c3, c4, c5, c6, c7 = transpose(
                load(a, at),
                load(a, at + width),
                load(a, at + 2 * width),
                load(a, at + 3 * width),
                load(a, at + 4 * width),
                load(a, at + 5 * width),
                load(a, at + 6 * width),
                load(a, at + 7 * width),
            )
            to = left * PITCH + t
            store(out, to, c0)
            store(out, to + PITCH, c1)
            store(out, to + 2 * PITCH, c2)
            store(out, to + 3 * PITCH, c3)
            store(out, to + 4 * PITCH, c4)
            store(out, to + 5 * PITCH, c5)
            store(out, to + 6 * PITCH, c6)
            store(out, to + 7 * PITCH, c7)
    for t in range(whole, -(-count // W) * W):
        for j in range(width):
            out[j, t] = a[first + t, j] if t < count else 0.0


@part
def from_columns(columns, first, count, out):
    """Fill ``out[first : first + count]`` (of N rows) with the columns (width, PITCH)."""
    width = out.shape[1]
    whole = count // W * W if width >= W else 0
    for t in range(0, whole, W):
        for j in range(0, width, W):
            left = min(j, width - W)
            at = left * PITCH + t
            r0, r1, r2, r3, r4, r5, r6, r7 = transpose(
                load(columns, at),
                load(columns, at + PITCH),
                load(columns, at + 2 * PITCH),
                load(columns, at + 3 * PITCH),
                load(columns, at + 4 * PITCH),
                load(columns, at + 5 * PITCH),
                load(columns, at + 6 * PITCH),
                load(columns, at + 7 * PITCH),
            )
            to = (first + t) * width + left
            store(out, to, r0)
            store(out, to + width, r1)
            store(out, to + 2 * width, r2)
            store(out, to + 3 * width, r3)
            store(out, to + 4 * width, r4)
            store(out, to + 5 * width, r5)
            store(out, to + 6 * width, r6)
            store(out, to + 7 * width, r7)
    for t in range(whole, count):
        for j in range(width):
            out[first + t, j] = columns[j, t]
