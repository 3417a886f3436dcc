"""Tuples of vectors: the accumulators of a register tile, as many as a tuple given at compile time is long.

Numba compiles a function once for each length of its tuple arguments, so the loops over a tile's vectors vanish
and its accumulators stay in registers. With ``NUMBA_DISABLE_JIT=1`` a tuple of vectors is an array (k, 8).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from genkern.core.simd import (
    _VECTOR,
    W,
    _call_llvm,
    _is_floats,
    _vectorised,
    vector,
)

_DOUBLE = ir.DoubleType()


def _is_tile(t: Any) -> bool:
    """Say whether a Numba type is a tuple of vectors, which may be empty."""
    return isinstance(t, types.BaseTuple) and all(member == vector for member in t)


def _tile_type(count: int) -> Any:
    """Return the Numba type of a tuple of vectors."""
    return types.Tuple([vector] * count)


def _base(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """Return the address of a flat element of a contiguous array."""
    data = context.data_model_manager[array_type].get(builder, array, "data")
    return builder.gep(data, [index], inbounds=True)


def _vector_at(builder: Any, base: Any, k: int) -> Any:
    """Return the address of the k-th vector after a base."""
    place = builder.gep(base, [ir.Constant(ir.IntType(64), k * W)], inbounds=True)
    return builder.bitcast(place, ir.PointerType(_VECTOR))


def _rows(a: Any, i: int, count: int) -> Any:
    """Return consecutive vectors of a flat array as a view (count, 8)."""
    return a.reshape(-1)[i : i + count * W].reshape(count, W)


def _store_tile_twin(a: Any, i: int, tile: Any) -> None:
    """Store (k, 8) into a flat array."""
    _rows(a, i, len(tile))[:] = tile


@_vectorised(lambda like: np.zeros((len(like), W)))
def zeros(typingctx, like):
    """Return as many vectors of zeros as the tuple ``like`` is long."""
    if not isinstance(like, types.BaseTuple):
        return None

    def codegen(context, builder, sig, args):
        nothing = ir.Constant(_VECTOR, [_DOUBLE(0.0)] * W)
        return context.make_tuple(builder, sig.return_type, [nothing] * len(sig.return_type))

    return _tile_type(len(like))(like), codegen


@_vectorised(lambda tile, p, a, i: tile + p * _rows(a, i, len(tile)))
def add_row(typingctx, tile, p, a, i):
    """Return ``tile[k] + p * a[i + 8 k : i + 8 k + 8]`` for all k, p a vector."""
    if not (_is_tile(tile) and p == vector and _is_floats(a) and isinstance(i, types.Integer)):
        return None

    def codegen(context, builder, sig, args):
        index = context.cast(builder, args[3], sig.args[3], types.intp)
        base = _base(context, builder, sig.args[2], args[2], index)
        result = []
        for k in range(len(sig.args[0])):
            value = builder.load(_vector_at(builder, base, k), align=8)
            operands = [args[1], value, builder.extract_value(args[0], k)]
            result.append(_call_llvm(builder, "llvm.fmuladd.v8f64", _VECTOR, operands))
        return context.make_tuple(builder, sig.return_type, result)

    return tile(tile, p, a, i), codegen


@_vectorised(lambda tile, a, i: tile * _rows(a, i, len(tile)))
def multiply_tile(typingctx, tile, a, i):
    """Return ``tile[k] * a[i + 8 k : i + 8 k + 8]`` for all k."""
    if not (_is_tile(tile) and _is_floats(a) and isinstance(i, types.Integer)):
        return None

    def codegen(context, builder, sig, args):
        index = context.cast(builder, args[2], sig.args[2], types.intp)
        base = _base(context, builder, sig.args[1], args[1], index)
        result = []
        for k in range(len(sig.args[0])):
            value = builder.load(_vector_at(builder, base, k), align=8)
            result.append(builder.fmul(builder.extract_value(args[0], k), value))
        return context.make_tuple(builder, sig.return_type, result)

    return tile(tile, a, i), codegen


@_vectorised(_store_tile_twin)
def store_tile(typingctx, a, i, tile):
    """Set ``a[i + 8 k : i + 8 k + 8] = tile[k]`` for all k."""
    if not (_is_tile(tile) and _is_floats(a) and isinstance(i, types.Integer)):
        return None

    def codegen(context, builder, sig, args):
        index = context.cast(builder, args[1], sig.args[1], types.intp)
        base = _base(context, builder, sig.args[0], args[0], index)
        for k in range(len(sig.args[2])):
            builder.store(builder.extract_value(args[2], k), _vector_at(builder, base, k), align=8)
        return context.get_dummy_value()

    return types.void(a, i, tile), codegen
