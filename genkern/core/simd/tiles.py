"""Tuples of vectors: the accumulators of a register tile, as many as a tuple given at compile time is long.

Numba compiles a function once for each length of its tuple arguments, so the loops over a tile's vectors vanish
and its accumulators stay in registers. With ``NUMBA_DISABLE_JIT=1`` a tuple of vectors is an array (k, 8).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import config

from genkern.core.simd.vectors import _VECTOR, W, _call_llvm, _is_floats, _splat, _vectorised, vector

_DOUBLE = ir.DoubleType()


def _has_avx512() -> bool:
    """Return whether code is compiled for a machine with AVX-512."""
    if config.CPU_NAME is not None or config.CPU_FEATURES is not None:
        return "+avx512f" in (config.CPU_FEATURES or "")
    features: dict[str, bool] = binding.get_host_cpu_features()
    return features.get("avx512f", False)


# Vectors of a tile that stay in registers beside other operands. AVX-512 has 32 registers, each of which holds one;
# other machines have 16 or smaller ones, and a vector takes two or more.
TILE = 25 if _has_avx512() else 6


def _is_tile(t: Any) -> bool:
    """Return whether a Numba type is a tuple of vectors, which may be empty."""
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
    pointer = builder.gep(base, [ir.Constant(ir.IntType(64), k * W)], inbounds=True)
    return builder.bitcast(pointer, ir.PointerType(_VECTOR))


def _cells(a: Any, i: int, step: int, rows: int, columns: int) -> Any:
    """Return rows of vectors of a flat array, each ``step`` after the last, as a view (rows, columns, 8)."""
    flat = a.reshape(-1)[i:]
    shape, strides = (rows, columns, W), (step * flat.itemsize, W * flat.itemsize, flat.itemsize)
    return np.lib.stride_tricks.as_strided(flat, shape, strides)


def _store_twin(a: Any, i: int, step: int, rows: Any, tile: Any) -> None:
    """Store a tile (rows * columns, 8) into a flat array."""
    shape = (len(rows), len(tile) // len(rows), W)
    _cells(a, i, step, *shape[:2])[:] = tile.reshape(shape)


def _outer_twin(tile: Any, rows: Any, p: Any, a: Any, i: int) -> Any:
    """Return a tile with the products of p (rows, 1 or 8) and a row of vectors added."""
    columns = len(tile) // len(rows)
    return tile + (p[:, None] * _cells(a, i, 0, 1, columns)).reshape(-1, W)


@_vectorised(lambda rows, columns: np.zeros((len(rows) * len(columns), W)))
def zeros(typingctx, rows, columns):
    """Return a tile of zeros, of as many rows and columns of vectors as the two tuples are long."""
    if not (isinstance(rows, types.BaseTuple) and isinstance(columns, types.BaseTuple)):
        return None

    def codegen(context, builder, sig, args):
        nothing = ir.Constant(_VECTOR, [_DOUBLE(0.0)] * W)
        return context.make_tuple(builder, sig.return_type, [nothing] * len(sig.return_type))

    return _tile_type(len(rows) * len(columns))(rows, columns), codegen


def _add_outer(one_each):
    """Return the definition of add_numbers (one number for each row) or add_vectors."""

    def define(typingctx, tile, rows, p, j, step, a, i):
        integers = all(isinstance(t, types.Integer) for t in (j, step, i))
        if not (_is_tile(tile) and isinstance(rows, types.BaseTuple) and _is_floats(p) and _is_floats(a) and integers):
            return None

        def codegen(context, builder, sig, args):
            at, by, index = (context.cast(builder, args[k], sig.args[k], types.intp) for k in (3, 4, 6))
            base = _base(context, builder, sig.args[5], args[5], index)
            count = len(sig.args[0]) // len(sig.args[1])
            vectors = [builder.load(_vector_at(builder, base, k), align=8) for k in range(count)]
            result = []
            for r in range(len(sig.args[1])):
                pointer = _base(context, builder, sig.args[2], args[2], at)
                factor = _splat(builder, builder.load(pointer)) if one_each else _load_vector(builder, pointer)
                for k, value in enumerate(vectors):
                    operands = [factor, value, builder.extract_value(args[0], r * count + k)]
                    result.append(_call_llvm(builder, "llvm.fmuladd.v8f64", _VECTOR, operands))
                at = builder.add(at, by)
            return context.make_tuple(builder, sig.return_type, result)

        return tile(tile, rows, p, j, step, a, i), codegen

    return define


def _load_vector(builder: Any, pointer: Any) -> Any:
    """Return the vector at an address."""
    return builder.load(builder.bitcast(pointer, ir.PointerType(_VECTOR)), align=8)


# tile[r, k] + p[j + r step] a[i + 8 k : i + 8 k + 8] for all rows r and columns k, p a number or a vector
add_numbers = _vectorised(
    lambda tile, rows, p, j, step, a, i: _outer_twin(
        tile, rows, p.reshape(-1)[j + step * np.arange(len(rows))][:, None], a, i
    )
)(_add_outer(True))
add_vectors = _vectorised(
    lambda tile, rows, p, j, step, a, i: _outer_twin(tile, rows, _cells(p, j, step, len(rows), 1)[:, 0], a, i)
)(_add_outer(False))


def _with_array(instruction):
    """Return the definition of add_tile or multiply_tile."""

    def define(typingctx, tile, rows, a, i, step):
        if not (_is_tile(tile) and _is_floats(a) and isinstance(i, types.Integer)):
            return None

        def codegen(context, builder, sig, args):
            pointers = _pointers(context, builder, sig.args[2:], args[2:], len(sig.args[0]), len(sig.args[1]))
            values = [builder.load(pointer, align=8) for pointer in pointers]
            operation = getattr(builder, instruction)
            result = [operation(builder.extract_value(args[0], k), value) for k, value in enumerate(values)]
            return context.make_tuple(builder, sig.return_type, result)

        return tile(tile, rows, a, i, step), codegen

    return define


# tile[r, k] + or * a[i + r step + 8 k : i + r step + 8 k + 8] for all rows r and columns k
add_tile = _vectorised(
    lambda tile, rows, a, i, step: tile + _cells(a, i, step, len(rows), len(tile) // len(rows)).reshape(-1, W)
)(_with_array("fadd"))
multiply_tile = _vectorised(
    lambda tile, rows, a, i, step: tile * _cells(a, i, step, len(rows), len(tile) // len(rows)).reshape(-1, W)
)(_with_array("fmul"))


@_vectorised(_store_twin)
def store_tile(typingctx, a, i, step, rows, tile):
    """Set ``a[i + r step + 8 k : i + r step + 8 k + 8] = tile[r, k]`` for all rows r and columns k."""
    if not (_is_tile(tile) and _is_floats(a) and isinstance(i, types.Integer)):
        return None

    def codegen(context, builder, sig, args):
        pointers = _pointers(context, builder, sig.args[:3], args[:3], len(sig.args[4]), len(sig.args[3]))
        for k, pointer in enumerate(pointers):
            builder.store(builder.extract_value(args[4], k), pointer, align=8)
        return context.get_dummy_value()

    return types.void(a, i, step, rows, tile), codegen


def _whole_product(numbers):
    """Return the definition of from_left or from_right: a tile times a whole matrix, every sum in registers."""

    def define(typingctx, tile, rows, a, i):
        if not (_is_tile(tile) and isinstance(rows, types.BaseTuple) and _is_floats(a)):
            return None

        def codegen(context, builder, sig, args):
            index = context.cast(builder, args[3], sig.args[3], types.intp)
            base = _base(context, builder, sig.args[2], args[2], index)
            n, m = len(sig.args[1]), len(sig.args[0]) // len(sig.args[1])
            cells = [builder.extract_value(args[0], k) for k in range(n * m)]
            result = []
            for r in range(n):
                for c in range(m):
                    value = ir.Constant(_VECTOR, [_DOUBLE(0.0)] * W)
                    for k in range(n if numbers else m):
                        pointer = ir.Constant(ir.IntType(64), k * n + r) if numbers else None
                        other = (
                            _splat(builder, builder.load(builder.gep(base, [pointer], inbounds=True)))
                            if numbers
                            else builder.load(_vector_at(builder, base, k * m + c), align=8)
                        )
                        own = cells[k * m + c] if numbers else cells[r * m + k]
                        value = _call_llvm(builder, "llvm.fmuladd.v8f64", _VECTOR, [other, own, value])
                    result.append(value)
            return context.make_tuple(builder, sig.return_type, result)

        return tile(tile, rows, a, i), codegen

    return define


def _from_left_twin(tile: Any, rows: Any, a: Any, i: int) -> Any:
    """Return Aᵀ times a tile (n * m, 8), A being (n, n) numbers of a flat array."""
    n = len(rows)
    matrix, cells = a.reshape(-1)[i : i + n * n].reshape(n, n), tile.reshape(n, -1, W)
    return np.einsum("sr,scw->rcw", matrix, cells).reshape(-1, W)


def _from_right_twin(tile: Any, rows: Any, a: Any, i: int) -> Any:
    """Return a tile (n * m, 8) times A', (m, m) vectors of a flat array."""
    cells = tile.reshape(len(rows), -1, W)
    m = cells.shape[1]
    return np.einsum("rsw,scw->rcw", cells, _cells(a, i, m * W, m, m)).reshape(-1, W)


from_left = _vectorised(_from_left_twin)(_whole_product(True))
from_right = _vectorised(_from_right_twin)(_whole_product(False))


@_vectorised(lambda rows, columns, a, i: _cells(a, i, len(columns) * W, len(rows), len(columns)).reshape(-1, W).copy())
def load_tile(typingctx, rows, columns, a, i):
    """Return the tile of consecutive vectors from ``a[i]`` on."""
    if not (isinstance(rows, types.BaseTuple) and isinstance(columns, types.BaseTuple) and _is_floats(a)):
        return None

    def codegen(context, builder, sig, args):
        index = context.cast(builder, args[3], sig.args[3], types.intp)
        base = _base(context, builder, sig.args[2], args[2], index)
        values = [builder.load(_vector_at(builder, base, k), align=8) for k in range(len(sig.return_type))]
        return context.make_tuple(builder, sig.return_type, values)

    return _tile_type(len(rows) * len(columns))(rows, columns, a, i), codegen


@_vectorised(lambda tile: sum(tile[1:], tile[0]))
def sum_tile(typingctx, tile):
    """Return the sum of the vectors of a tile, the first to the last."""
    if not _is_tile(tile):
        return None

    def codegen(context, builder, sig, args):
        value = builder.extract_value(args[0], 0)
        for k in range(1, len(sig.args[0])):
            value = builder.fadd(value, builder.extract_value(args[0], k))
        return value

    return vector(tile), codegen


@_vectorised(lambda a, i, step: a.reshape(-1)[i + step * np.arange(W)])
def gather(typingctx, a, i, step):
    """Return ``a.ravel()[[i, i + step, ..., i + 7 step]]``."""
    if not (_is_floats(a) and isinstance(i, types.Integer) and isinstance(step, types.Integer)):
        return None

    def codegen(context, builder, sig, args):
        at, by = (context.cast(builder, args[k], sig.args[k], types.intp) for k in (1, 2))
        value = ir.Constant(_VECTOR, ir.Undefined)
        for k in range(W):
            number = builder.load(_base(context, builder, sig.args[0], args[0], at))
            value = builder.insert_element(value, number, ir.IntType(32)(k))
            at = builder.add(at, by)
        return value

    return vector(a, i, step), codegen


def _pointers(context: Any, builder: Any, kinds: Any, args: Any, size: int, rows: int) -> list[Any]:
    """Return the addresses of the vectors of a tile in a flat array, from an index on, rows ``step`` apart."""
    at, by = (context.cast(builder, args[k], kinds[k], types.intp) for k in (1, 2))
    pointers = []
    for _ in range(rows):
        base = _base(context, builder, kinds[0], args[0], at)
        pointers += [_vector_at(builder, base, k) for k in range(size // rows)]
        at = builder.add(at, by)
    return pointers
