"""Small matrices side by side: every entry a vector over eight series, in one flat buffer.

Matrices are named by the place of their first entry in the buffer ``m``, counted in vectors; entry (i, j) of one with c
columns is ``m[8 * (place + i * c + j)]`` and the seven after it. (One buffer and integers, not a dozen arrays: that is
what keeps calls and compiling cheap.) Flags are vectors of ones and zeros.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types

from genkern.core.jit import kernel
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

SET, ADD, SUBTRACT = 0.0, 1.0, -1.0  # what becomes of a product; no integers, which would be compiled one by one


@_vectorised(lambda m, place: m[place * W : place * W + W].copy())
def at(typingctx, m, place):
    """Return one vector of the buffer."""
    if not (_is_floats(m) and isinstance(place, types.Integer)):
        return None

    def codegen(context, builder, sig, args):
        index = builder.mul(context.cast(builder, args[1], sig.args[1], types.intp), ir.IntType(64)(W))
        return builder.load(_address(context, builder, sig.args[0], args[0], index, _VECTOR), align=8)

    return vector(m, types.intp), codegen


@_vectorised(lambda m, place, value: m.__setitem__(slice(place * W, place * W + W), value))
def put(typingctx, m, place, value):
    """Store one vector in the buffer."""
    if not (_is_floats(m) and isinstance(place, types.Integer) and value == vector):
        return None

    def codegen(context, builder, sig, args):
        index = builder.mul(context.cast(builder, args[1], sig.args[1], types.intp), ir.IntType(64)(W))
        builder.store(args[2], _address(context, builder, sig.args[0], args[0], index, _VECTOR), align=8)
        return context.get_dummy_value()

    return types.void(m, types.intp, vector), codegen


@_vectorised(lambda: None)
def apart(typingctx):
    """Keep the function in which it stands from being copied into its callers, which would take minutes to compile."""

    def codegen(context, builder, sig, args):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), codegen


@kernel
def copy(m, target, source, size):
    """Copy a matrix of so many entries."""
    apart()
    for i in range(size):
        put(m, target + i, at(m, source + i))


@kernel
def clear(m, target, size):
    """Fill a matrix with zeros."""
    apart()
    for i in range(size):
        put(m, target + i, zero())


@kernel
def keep(m, flag, target, source, size):
    """Copy a matrix in the lanes whose flag is set; the others stay."""
    apart()
    chosen = less(broadcast(0.5), at(m, flag))
    for i in range(size):
        put(m, target + i, select(chosen, at(m, source + i), at(m, target + i)))


@kernel
def wipe(m, flag, target, size):
    """Fill a matrix with zeros in the lanes whose flag is not set."""
    apart()
    chosen = less(broadcast(0.5), at(m, flag))
    for i in range(size):
        put(m, target + i, select(chosen, at(m, target + i), zero()))


@kernel
def add(m, target, weight, source, size):
    """Add weight times a matrix."""
    apart()
    scale = broadcast(weight)
    for i in range(size):
        put(m, target + i, multiply_add(scale, at(m, source + i), at(m, target + i)))


@kernel
def add_where(m, flag, target, source, size):
    """Add a matrix in the lanes whose flag is set, whatever the others hold."""
    apart()
    chosen = less(broadcast(0.5), at(m, flag))
    for i in range(size):
        put(m, target + i, at(m, target + i) + select(chosen, at(m, source + i), zero()))


@kernel
def outer(m, target, left, rows, right, columns, weight):
    """Add weight times left right^T, of vectors."""
    apart()
    for i in range(rows):
        scaled = broadcast(weight) * at(m, left + i)
        for j in range(columns):
            place = target + i * columns + j
            put(m, place, multiply_add(scaled, at(m, right + j), at(m, place)))


@kernel
def product(m, out, left, right, rows, inner, columns, how):
    """Let left (rows, inner) times right (inner, columns) become out, or be added to it or subtracted."""
    apart()
    for i in range(rows):
        for j in range(columns):
            total = zero()
            for k in range(inner):
                total = multiply_add(at(m, left + i * inner + k), at(m, right + k * columns + j), total)
            place = out + i * columns + j
            put(m, place, total if how == SET else multiply_add(broadcast(how), total, at(m, place)))


@kernel
def left_turned(m, out, left, right, rows, inner, columns, how):
    """Do the same with left^T, given left (inner, rows)."""
    apart()
    for i in range(rows):
        for j in range(columns):
            total = zero()
            for k in range(inner):
                total = multiply_add(at(m, left + k * rows + i), at(m, right + k * columns + j), total)
            place = out + i * columns + j
            put(m, place, total if how == SET else multiply_add(broadcast(how), total, at(m, place)))


@kernel
def square_of(m, out, left, right, rows, inner, how):
    """Do the same with right^T, given right (rows, inner), where the product is symmetric: to the last bit."""
    apart()
    for i in range(rows):
        for j in range(i + 1):
            total = zero()
            for k in range(inner):
                total = multiply_add(at(m, left + i * inner + k), at(m, right + j * inner + k), total)
            place = out + i * rows + j
            put(m, place, total if how == SET else multiply_add(broadcast(how), total, at(m, place)))
            put(m, out + j * rows + i, at(m, place))


@kernel
def turned_square_of(m, out, left, right, rows, inner, how):
    """Do the same with left^T, given left and right (inner, rows), where the product is symmetric."""
    apart()
    for i in range(rows):
        for j in range(i + 1):
            total = zero()
            for k in range(inner):
                total = multiply_add(at(m, left + k * rows + i), at(m, right + k * rows + j), total)
            place = out + i * rows + j
            put(m, place, total if how == SET else multiply_add(broadcast(how), total, at(m, place)))
            put(m, out + j * rows + i, at(m, place))


@kernel
def one_minus(m, out, n):
    """Replace a square matrix by the identity minus it."""
    apart()
    for i in range(n):
        for j in range(n):
            one = broadcast(1.0 if i == j else 0.0)
            put(m, out + i * n + j, one - at(m, out + i * n + j))


@kernel
def factorise(m, matrix, pivots, n):
    """Replace a symmetric matrix (n, n) by the unit lower L, and fill pivots (n,) with D, of matrix = L D L^T.

    Coordinates that the ones before them determine, up to rounding, get pivots of zero and columns of the identity.
    """
    apart()
    for i in range(n):
        for j in range(n):
            if j > i:
                put(m, matrix + i * n + j, zero())
                continue
            total = at(m, matrix + i * n + j)
            whole = broadcast(SINGULAR * n) * total
            for k in range(j):
                scaled = at(m, matrix + i * n + k) * at(m, pivots + k)
                total = total - scaled * at(m, matrix + j * n + k)
            if i == j:
                put(m, pivots + i, select(less(whole, total), select(less(zero(), total), total, zero()), zero()))
                put(m, matrix + i * n + j, broadcast(1.0))
            else:
                pivot = at(m, pivots + j)
                there = less(zero(), pivot)
                put(m, matrix + i * n + j, select(there, total / select(there, pivot, broadcast(1.0)), zero()))


@kernel
def invert_unit(m, out, factor, n):
    """Fill out with the inverse of a unit lower matrix (n, n)."""
    apart()
    for i in range(n):
        for j in range(n):
            total = broadcast(-1.0 if i == j else 0.0)
            for k in range(j, i):
                total = multiply_add(at(m, factor + i * n + k), at(m, out + k * n + j), total)
            put(m, out + i * n + j, zero() - total)


@kernel
def flag_close(m, flag, new, old, n, tolerance):
    """Flag the lanes in which no entry of a covariance has changed by more than a share of its deviations' product."""
    apart()
    verdict = broadcast(1.0)
    scale = broadcast(tolerance * tolerance)
    for i in range(n):
        for j in range(i + 1):
            change = at(m, new + i * n + j) - at(m, old + i * n + j)
            allowed = scale * at(m, new + i * n + i) * at(m, new + j * n + j)
            verdict = select(less(allowed, change * change), zero(), verdict)
    put(m, flag, verdict)


@kernel
def lowest(m, place):
    """Return the smallest of the eight numbers of a vector."""
    apart()
    least = m[place * W]
    for lane in range(1, W):
        least = min(least, m[place * W + lane])
    return least


@kernel
def half_logs(m, target, pivots, size, seen):
    """Fill target with -log|2 pi S|/2 of S with so many pivots, of which those of ``seen`` channels count."""
    apart()
    for lane in range(W):
        total = 0.0
        for a in range(size):
            if m[(seen + a) * W + lane] > 0.5:
                total -= 0.5 * np.log(2.0 * np.pi * m[(pivots + a) * W + lane])
        m[target * W + lane] = total
