"""More vector operations: transposes between lanes and rows, halves of vectors, exponents of two.

Twins for ``NUMBA_DISABLE_JIT=1`` as in ``simd``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from genkern.core.simd.vectors import (
    _DOUBLE,
    _INDEX,
    _LONGS,
    _MASK,
    _VECTOR,
    W,
    _address,
    _is_floats,
    _vectorised,
    mask,
    vector,
)

HALF = W // 2

_HALF_VECTOR = ir.VectorType(_DOUBLE, HALF)
_EXPONENT_BITS = 0x7FF0000000000000
_TWO_TO_52 = 0x4330000000000000  # the bits of 2.0**52, whose last mantissa bit counts ones


def _shuffle(builder: Any, a: Any, b: Any, order: list[int]) -> Any:
    """Return the lanes of a (0..) and b (after them) in the given order."""
    kind = ir.VectorType(_INDEX, len(order))
    return builder.shuffle_vector(a, b, ir.Constant(kind, [_INDEX(k) for k in order]))


def _longs(value: int) -> Any:
    """Return a constant vector of one 64-bit integer."""
    return ir.Constant(_LONGS, [ir.IntType(64)(value)] * W)


def _exchange(builder: Any, rows: list[Any], step: int) -> list[Any]:
    """Exchange off-diagonal blocks of the given size between rows that lie so far apart."""
    low = [k if k % (2 * step) < step else W + k - step for k in range(W)]
    high = [k + step if k % (2 * step) < step else W + k for k in range(W)]
    out = list(rows)
    for r in range(len(rows)):
        if r % (2 * step) < step:
            out[r] = _shuffle(builder, rows[r], rows[r + step], low)
            out[r + step] = _shuffle(builder, rows[r], rows[r + step], high)
    return out


def _transpose_twin(*rows: Any) -> tuple[Any, ...]:
    """Transpose eight rows of eight."""
    return tuple(np.array(rows).T.copy())


def _transpose_halves_twin(*rows: Any) -> tuple[Any, ...]:
    """Transpose the two 4 x 4 halves of four rows of eight."""
    halves = np.array(rows)
    return tuple(np.hstack([halves[:, :HALF].T, halves[:, HALF:].T]))


def _load_pair_twin(a: Any, i: int, j: int) -> Any:
    """Load two halves from a contiguous NumPy array."""
    flat = a.reshape(-1)
    return np.concatenate([flat[i : i + HALF], flat[j : j + HALF]])


def _add_pair_twin(a: Any, i: int, j: int, v: Any) -> None:
    """Add two halves to a contiguous NumPy array, one after the other."""
    flat = a.reshape(-1)
    flat[i : i + HALF] += v[:HALF]
    flat[j : j + HALF] += v[HALF:]


def _inverse_power_twin(v: Any) -> Any:
    """Return 2**-e, or 2**1023 for zero, as the compiled code does."""
    return np.where(v == 0.0, 2.0**1023, np.ldexp(1.0, 1 - np.frexp(v)[1]))


def _transposition(typingctx: Any, rows: tuple[Any, ...], steps: tuple[int, ...]) -> Any:
    """Return signature and code of a transpose by block exchanges."""
    if any(row != vector for row in rows):
        return None
    result = types.UniTuple(vector, len(rows))

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        values = list(args)
        for step in steps:
            values = _exchange(builder, values, step)
        return context.make_tuple(builder, result, values)

    return result(*rows), codegen


@_vectorised(_transpose_twin)
def transpose(typingctx, v0, v1, v2, v3, v4, v5, v6, v7):
    """Return the rows of the transposed 8 x 8 matrix."""
    return _transposition(typingctx, (v0, v1, v2, v3, v4, v5, v6, v7), (1, 2, 4))


@_vectorised(_transpose_halves_twin)
def transpose_halves(typingctx, v0, v1, v2, v3):
    """Return four rows whose left and right 4 x 4 halves are transposed, each for itself."""
    return _transposition(typingctx, (v0, v1, v2, v3), (1, 2))


@_vectorised(_load_pair_twin)
def load_pair(typingctx, a, i, j):
    """Return ``a.ravel()[i : i + 4]`` followed by ``a.ravel()[j : j + 4]``."""
    if not (_is_floats(a) and isinstance(i, types.Integer) and isinstance(j, types.Integer)):
        return None

    def codegen(context, builder, sig, args):
        halves = []
        for argument in (1, 2):
            index = context.cast(builder, args[argument], sig.args[argument], types.intp)
            at = _address(context, builder, sig.args[0], args[0], index, _HALF_VECTOR)
            halves.append(builder.load(at, align=8))
        return _shuffle(builder, halves[0], halves[1], list(range(W)))

    return vector(a, i, j), codegen


@_vectorised(_add_pair_twin)
def add_pair(typingctx, a, i, j, v):
    """Add the first half of v to ``a.ravel()[i : i + 4]``, then the second to ``a.ravel()[j : j + 4]``."""
    if not (_is_floats(a) and isinstance(i, types.Integer) and isinstance(j, types.Integer) and v == vector):
        return None

    def codegen(context, builder, sig, args):
        for argument, lanes in ((1, range(HALF)), (2, range(HALF, W))):
            index = context.cast(builder, args[argument], sig.args[argument], types.intp)
            at = _address(context, builder, sig.args[0], args[0], index, _HALF_VECTOR)
            half = _shuffle(builder, args[3], args[3], list(lanes))
            builder.store(builder.fadd(builder.load(at, align=8), half), at, align=8)
        return context.get_dummy_value()

    return types.void(a, i, j, v), codegen


@_vectorised(lambda v: np.frexp(v)[1] - 1.0 - 1022.0 * (v == 0.0))
def exponent(typingctx, v):
    """Return the exponent e of v = m 2**e, 1 <= m < 2, as doubles; -1023 for zero. No sign, no subnormals."""
    if v != vector:
        return None

    def codegen(context, builder, sig, args):
        # An integer below 2**52 put into the mantissa of 2**52 is that integer plus 2**52 as a double.
        biased = builder.lshr(builder.bitcast(args[0], _LONGS), _longs(52))
        counted = builder.bitcast(builder.or_(biased, _longs(_TWO_TO_52)), _VECTOR)
        return builder.fsub(counted, ir.Constant(_VECTOR, [_DOUBLE(2.0**52 + 1023.0)] * W))

    return vector(v), codegen


@_vectorised(_inverse_power_twin)
def inverse_power(typingctx, v):
    """Return 2**-e for v = m 2**e, 1 <= m < 2, e < 1023; 2**1023 for zero. No sign, no subnormals."""
    if v != vector:
        return None

    def codegen(context, builder, sig, args):
        bits = builder.and_(builder.bitcast(args[0], _LONGS), _longs(_EXPONENT_BITS))
        return builder.bitcast(builder.sub(_longs(0x7FE0000000000000), bits), _VECTOR)

    return vector(v), codegen


def _bits_at_twin(a: Any, i: int, bit: int) -> Any:
    """Pack one bit of eight 32-bit integers of a contiguous NumPy array."""
    return np.uint64(np.packbits((a[i : i + W] >> bit) & 1, bitorder="little")[0])


def _mask_at_twin(a: Any, i: int) -> Any:
    """Unpack one byte of a contiguous NumPy array."""
    return np.unpackbits(a.view(np.uint8)[i : i + 1], bitorder="little").astype(np.bool_)


@_vectorised(_bits_at_twin)
def bits_at(typingctx, a, i, bit):
    """Return one bit of each of ``a[i : i + 8]`` (int32): eight bits, the lowest first, of a uint64."""
    whole = isinstance(a, types.Array) and a.dtype == types.int32 and a.layout == "C"
    if not (whole and isinstance(i, types.Integer) and isinstance(bit, types.Integer)):
        return None

    def codegen(context, builder, sig, args):
        kind = ir.VectorType(_INDEX, W)
        index = context.cast(builder, args[1], sig.args[1], types.intp)
        found = builder.load(_address(context, builder, sig.args[0], args[0], index, kind), align=4)
        wanted = builder.shl(_INDEX(1), context.cast(builder, args[2], sig.args[2], types.int32))
        first = builder.insert_element(ir.Constant(kind, ir.Undefined), wanted, _INDEX(0))
        tested = builder.and_(found, _shuffle(builder, first, first, [0] * W))
        bits = builder.icmp_signed("!=", tested, ir.Constant(kind, [_INDEX(0)] * W))
        return builder.zext(builder.bitcast(bits, ir.IntType(W)), ir.IntType(64))

    return types.uint64(a, i, bit), codegen


@_vectorised(_mask_at_twin)
def mask_at(typingctx, a, i):
    """Return the mask whose lanes are the bits, the lowest first, of byte i of an array of 64-bit integers."""
    whole = isinstance(a, types.Array) and a.dtype == types.int64 and a.layout == "C"
    if not (whole and isinstance(i, types.Integer)):
        return None

    def codegen(context, builder, sig, args):
        index = context.cast(builder, args[1], sig.args[1], types.intp)
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        at = builder.gep(builder.bitcast(data, ir.PointerType(ir.IntType(W))), [index], inbounds=True)
        return builder.bitcast(builder.load(at, align=1), _MASK)

    return mask(a, i), codegen
