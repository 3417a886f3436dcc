"""Small matrices side by side: every entry a vector over eight series, in one flat buffer.

A matrix is given by the offset of its first entry in the ``buffer``, counted in vectors; entry (i, j) of one with c
columns is ``buffer[8 * (offset + i * c + j)]`` and the seven after it. (One buffer and integers instead of a dozen
arrays keep calls and compiling cheap.) Flags are vectors of ones and zeros.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types

from genkern.core.jit import kernel, part
from genkern.core.kalman.matrices import SINGULAR
from genkern.core.simd.vectors import (
    _VECTOR,
    W,
    _address,
    _is_floats,
    _vectorised,
    broadcast,
    less,
    multiply_add,
    select,
    vector,
    zero,
)

SET, ADD, SUBTRACT = (
    0.0,
    1.0,
    -1.0,
)  # how a product is stored; floats, as Numba compiles callees once for every integer literal


@_vectorised(lambda buffer, offset: buffer[offset * W : offset * W + W].copy())
def get(typingctx, buffer, offset):
    """Return one vector of the buffer."""
    if not (_is_floats(buffer) and isinstance(offset, types.Integer)):
        return None

    def codegen(context, builder, sig, args):
        index = builder.mul(context.cast(builder, args[1], sig.args[1], types.intp), ir.IntType(64)(W))
        return builder.load(_address(context, builder, sig.args[0], args[0], index, _VECTOR), align=8)

    return vector(buffer, types.intp), codegen


@_vectorised(lambda buffer, offset, value: buffer.__setitem__(slice(offset * W, offset * W + W), value))
def put(typingctx, buffer, offset, value):
    """Store one vector in the buffer."""
    if not (_is_floats(buffer) and isinstance(offset, types.Integer) and value == vector):
        return None

    def codegen(context, builder, sig, args):
        index = builder.mul(context.cast(builder, args[1], sig.args[1], types.intp), ir.IntType(64)(W))
        builder.store(args[2], _address(context, builder, sig.args[0], args[0], index, _VECTOR), align=8)
        return context.get_dummy_value()

    return types.void(buffer, types.intp, vector), codegen


@_vectorised(lambda: None)
def apart(typingctx):
    """Keep the function that calls it from being inlined into its callers, which would take minutes to compile."""

    def codegen(context, builder, sig, args):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), codegen


@part
def copy(buffer, target, source, size):
    """Copy a matrix of so many entries."""
    apart()
    for i in range(size):
        put(buffer, target + i, get(buffer, source + i))


@part
def clear(buffer, target, size):
    """Fill a matrix with zeros."""
    apart()
    for i in range(size):
        put(buffer, target + i, zero())


@part
def keep(buffer, flag, target, source, size):
    """Copy a matrix in the lanes whose flag is set; the others stay."""
    apart()
    chosen = less(broadcast(0.5), get(buffer, flag))
    for i in range(size):
        put(buffer, target + i, select(chosen, get(buffer, source + i), get(buffer, target + i)))


@part
def wipe(buffer, flag, target, size):
    """Fill a matrix with zeros in the lanes whose flag is not set."""
    apart()
    chosen = less(broadcast(0.5), get(buffer, flag))
    for i in range(size):
        put(buffer, target + i, select(chosen, get(buffer, target + i), zero()))


@part
def add(buffer, target, weight, source, size):
    """Add weight times a matrix."""
    apart()
    scale = broadcast(weight)
    for i in range(size):
        put(buffer, target + i, multiply_add(scale, get(buffer, source + i), get(buffer, target + i)))


@part
def add_where(buffer, flag, target, source, size):
    """Add a matrix in the lanes whose flag is set; other lanes may hold NaN."""
    apart()
    chosen = less(broadcast(0.5), get(buffer, flag))
    for i in range(size):
        put(buffer, target + i, get(buffer, target + i) + select(chosen, get(buffer, source + i), zero()))


@part
def outer(buffer, target, left, rows, right, columns, weight):
    """Add weight times left right^T, of vectors."""
    apart()
    for i in range(rows):
        scaled = broadcast(weight) * get(buffer, left + i)
        for j in range(columns):
            offset = target + i * columns + j
            put(buffer, offset, multiply_add(scaled, get(buffer, right + j), get(buffer, offset)))


@part
def product(buffer, out, left, right, rows, inner, columns, how):
    """Set out to left (rows, inner) times right (inner, columns), or add the product to it or subtract it."""
    apart()
    for i in range(rows):
        for j in range(columns):
            total = zero()
            for k in range(inner):
                total = multiply_add(get(buffer, left + i * inner + k), get(buffer, right + k * columns + j), total)
            offset = out + i * columns + j
            put(buffer, offset, total if how == SET else multiply_add(broadcast(how), total, get(buffer, offset)))


@part
def left_turned(buffer, out, left, right, rows, inner, columns, how):
    """Do the same with left^T, given left (inner, rows)."""
    apart()
    for i in range(rows):
        for j in range(columns):
            total = zero()
            for k in range(inner):
                total = multiply_add(get(buffer, left + k * rows + i), get(buffer, right + k * columns + j), total)
            offset = out + i * columns + j
            put(buffer, offset, total if how == SET else multiply_add(broadcast(how), total, get(buffer, offset)))


@part
def square_of(buffer, out, left, right, rows, inner, how):
    """Do the same with right^T, given right (rows, inner), where the product is symmetric: to the last bit."""
    apart()
    for i in range(rows):
        for j in range(i + 1):
            total = zero()
            for k in range(inner):
                total = multiply_add(get(buffer, left + i * inner + k), get(buffer, right + j * inner + k), total)
            offset = out + i * rows + j
            put(buffer, offset, total if how == SET else multiply_add(broadcast(how), total, get(buffer, offset)))
            put(buffer, out + j * rows + i, get(buffer, offset))


@part
def turned_square_of(buffer, out, left, right, rows, inner, how):
    """Do the same with left^T, given left and right (inner, rows), where the product is symmetric."""
    apart()
    for i in range(rows):
        for j in range(i + 1):
            total = zero()
            for k in range(inner):
                total = multiply_add(get(buffer, left + k * rows + i), get(buffer, right + k * rows + j), total)
            offset = out + i * rows + j
            put(buffer, offset, total if how == SET else multiply_add(broadcast(how), total, get(buffer, offset)))
            put(buffer, out + j * rows + i, get(buffer, offset))


@part
def one_minus(buffer, out, n):
    """Replace a square matrix by the identity minus it."""
    apart()
    for i in range(n):
        for j in range(n):
            one = broadcast(1.0 if i == j else 0.0)
            put(buffer, out + i * n + j, one - get(buffer, out + i * n + j))


@kernel
def factorise(buffer, matrix, pivots, n):
    """Replace a symmetric matrix (n, n) by the unit lower L, and fill pivots (n,) with D, of matrix = L D L^T.

    Coordinates that the ones before them determine, up to rounding, get pivots of zero and columns of the identity.
    """
    apart()
    for i in range(n):
        for j in range(n):
            if j > i:
                put(buffer, matrix + i * n + j, zero())
                continue
            total = get(buffer, matrix + i * n + j)
            whole = broadcast(SINGULAR * n) * total
            for k in range(j):
                scaled = get(buffer, matrix + i * n + k) * get(buffer, pivots + k)
                total = total - scaled * get(buffer, matrix + j * n + k)
            if i == j:
                put(buffer, pivots + i, select(less(whole, total), select(less(zero(), total), total, zero()), zero()))
                put(buffer, matrix + i * n + j, broadcast(1.0))
            else:
                pivot = get(buffer, pivots + j)
                there = less(zero(), pivot)
                put(buffer, matrix + i * n + j, select(there, total / select(there, pivot, broadcast(1.0)), zero()))


@part
def invert_unit(buffer, out, factor, n):
    """Fill out with the inverse of a unit lower matrix (n, n)."""
    apart()
    for i in range(n):
        for j in range(n):
            total = broadcast(-1.0 if i == j else 0.0)
            for k in range(j, i):
                total = multiply_add(get(buffer, factor + i * n + k), get(buffer, out + k * n + j), total)
            put(buffer, out + i * n + j, zero() - total)


@part
def flag_close(buffer, flag, new, old, n, tolerance):
    """Flag the lanes in which no entry of a covariance has changed by more than tolerance times its deviations."""
    apart()
    verdict = broadcast(1.0)
    scale = broadcast(tolerance * tolerance)
    for i in range(n):
        for j in range(i + 1):
            change = get(buffer, new + i * n + j) - get(buffer, old + i * n + j)
            allowed = scale * get(buffer, new + i * n + i) * get(buffer, new + j * n + j)
            verdict = select(less(allowed, change * change), zero(), verdict)
    put(buffer, flag, verdict)


@part
def lowest(buffer, offset):
    """Return the smallest of the eight numbers of a vector."""
    apart()
    least = buffer[offset * W]
    for lane in range(1, W):
        least = min(least, buffer[offset * W + lane])
    return least


@part
def half_logs(buffer, target, pivots, size, seen):
    """Fill target with -log|2 pi S|/2 of S with so many pivots, of which those of ``seen`` channels count."""
    apart()
    for lane in range(W):
        total = 0.0
        for a in range(size):
            if buffer[(seen + a) * W + lane] > 0.5:
                total -= 0.5 * np.log(2.0 * np.pi * buffer[(pivots + a) * W + lane])
        buffer[target * W + lane] = total
