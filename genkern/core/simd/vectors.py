"""Vectors of eight doubles for compiled loops: LLVM's ``<8 x double>`` as a Numba type.

LLVM lowers a vector to the registers the machine has (one of AVX-512, two of AVX, four of SSE2 or NEON),
which is reliable where auto-vectorised loops are not. A vector is a local value: it is loaded from and
stored to C-contiguous float64 arrays at a *flat* index, ``load(a, i)`` being ``a.ravel()[i : i + 8]`` without
checks. ``+ - * /`` work lane by lane. With ``NUMBA_DISABLE_JIT=1`` every name here is a NumPy twin on shape (8,).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

from genkern.core.jit import COMPILED

W = 8  # lanes of a vector

_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, W)
_MASK = ir.VectorType(ir.IntType(1), W)
_LONGS = ir.VectorType(ir.IntType(64), W)
_INDEX = ir.IntType(32)


def padded(count: int) -> int:
    """Return a number rounded up to a multiple of eight."""
    return -(-count // W) * W


class VectorType(types.Type):
    """The Numba type of eight doubles."""

    def __init__(self) -> None:
        super().__init__(name="Vector8")


class MaskType(types.Type):
    """The Numba type of eight booleans: the outcome of a comparison, and the first argument of select."""

    def __init__(self) -> None:
        super().__init__(name="Mask8")


vector = VectorType()
mask = MaskType()


@register_model(VectorType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, fe_type: Any) -> None:
        super().__init__(manager, fe_type, _VECTOR)


@register_model(MaskType)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, manager: Any, fe_type: Any) -> None:
        super().__init__(manager, fe_type, _MASK)


def _register_operator(operation: Any, instruction: str) -> None:
    """Let a Python operator on two vectors be one LLVM instruction."""

    @type_callable(operation)
    def type_of_operation(context: Any) -> Any:
        return lambda a, b: vector if a == vector and b == vector else None

    @lower_builtin(operation, VectorType, VectorType)
    def lower_operation(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return getattr(builder, instruction)(*args)


_register_operator(operator.add, "fadd")
_register_operator(operator.sub, "fsub")
_register_operator(operator.mul, "fmul")
_register_operator(operator.truediv, "fdiv")


def _vectorised(twin: Callable[..., Any]) -> Callable[..., Any]:
    """Make an intrinsic of the decorated definition, or take its NumPy twin where nothing is compiled."""
    return intrinsic if COMPILED else lambda definition: twin


def _store_twin(a: Any, i: int, v: Any) -> None:
    """Store eight doubles into a contiguous NumPy array."""
    a.reshape(-1)[i : i + W] = v


def _sum_twin(v: Any) -> float:
    """Sum eight lanes in the order of the compiled code."""
    while len(v) > 1:
        v = v[: len(v) // 2] + v[len(v) // 2 :]
    return float(v[0])


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any, to: Any) -> Any:
    """Return the address of a flat element of a contiguous array as a pointer to ``to``."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index], inbounds=True), ir.PointerType(to))


def _is_floats(a: Any) -> bool:
    """Return whether a Numba type is a C-contiguous float64 array."""
    return isinstance(a, types.Array) and a.dtype == types.float64 and a.layout == "C"


def _call_llvm(builder: Any, name: str, result: Any, args: Any) -> Any:
    """Call an LLVM function such as ``llvm.fabs.v8f64``."""
    kind = ir.FunctionType(result, [arg.type for arg in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)


def _splat(builder: Any, value: Any) -> Any:
    """Return a vector with one scalar in all lanes."""
    first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, _INDEX(0))
    zeros = ir.Constant(ir.VectorType(_INDEX, W), [_INDEX(0)] * W)
    return builder.shuffle_vector(first, ir.Constant(_VECTOR, ir.Undefined), zeros)


@_vectorised(lambda a, i: a.reshape(-1)[i : i + W].copy())
def load(typingctx, a, i):
    """Return ``a.ravel()[i : i + 8]``."""
    if not (_is_floats(a) and isinstance(i, types.Integer)):
        return None

    def codegen(context, builder, sig, args):
        index = context.cast(builder, args[1], sig.args[1], types.intp)
        return builder.load(_address(context, builder, sig.args[0], args[0], index, _VECTOR), align=8)

    return vector(a, i), codegen


@_vectorised(_store_twin)
def store(typingctx, a, i, v):
    """Set ``a.ravel()[i : i + 8] = v``."""
    if not (_is_floats(a) and isinstance(i, types.Integer) and v == vector):
        return None

    def codegen(context, builder, sig, args):
        index = context.cast(builder, args[1], sig.args[1], types.intp)
        builder.store(args[2], _address(context, builder, sig.args[0], args[0], index, _VECTOR), align=8)
        return context.get_dummy_value()

    return types.void(a, i, v), codegen


@_vectorised(lambda a, i: a.reshape(-1)[i])
def element(typingctx, a, i):
    """Return the number ``a.ravel()[i]`` of doubles or 64-bit integers, without ``a[i]``'s care for i < 0."""
    numbers = isinstance(a, types.Array) and a.dtype in (types.float64, types.int64) and a.layout == "C"
    if not (numbers and isinstance(i, types.Integer)):
        return None

    def codegen(context, builder, sig, args):
        index = context.cast(builder, args[1], sig.args[1], types.intp)
        kind = context.get_value_type(sig.return_type)
        return builder.load(_address(context, builder, sig.args[0], args[0], index, kind), align=8)

    return a.dtype(a, i), codegen


@_vectorised(lambda x: np.full(W, x))
def broadcast(typingctx, x):
    """Return a vector with the scalar x in all lanes."""
    if not isinstance(x, types.Float):
        return None

    def codegen(context, builder, sig, args):
        return _splat(builder, args[0])

    return vector(types.float64), codegen


@_vectorised(lambda a, b, c: a * b + c)
def multiply_add(typingctx, a, b, c):
    """Return ``a * b + c``, fused where the machine can.

    It is llvm.fmuladd: llvm.fma would be emulated, many times slower, where there is no such instruction.
    """
    if not (a == vector and b == vector and c == vector):
        return None

    def codegen(context, builder, sig, args):
        return _call_llvm(builder, "llvm.fmuladd.v8f64", _VECTOR, args)

    return vector(a, b, c), codegen


@_vectorised(np.maximum)
def maximum(typingctx, a, b):
    """Return the larger of the two in each lane (numbers only: NaN is not handled)."""
    if not (a == vector and b == vector):
        return None

    def codegen(context, builder, sig, args):
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[0], args[1])

    return vector(a, b), codegen


@_vectorised(operator.lt)
def less(typingctx, a, b):
    """Return the mask of lanes where ``a < b``."""
    if not (a == vector and b == vector):
        return None

    def codegen(context, builder, sig, args):
        return builder.fcmp_ordered("<", args[0], args[1])

    return mask(a, b), codegen


@_vectorised(np.where)
def select(typingctx, where, a, b):
    """Return a in the lanes of the mask and b in the others."""
    if not (where == mask and a == vector and b == vector):
        return None

    def codegen(context, builder, sig, args):
        return builder.select(*args)

    return vector(where, a, b), codegen


@_vectorised(np.any)
def any_lane(typingctx, where):
    """Return whether any lane of the mask is set."""
    if where != mask:
        return None

    def codegen(context, builder, sig, args):
        return builder.icmp_unsigned("!=", builder.bitcast(args[0], ir.IntType(W)), ir.IntType(W)(0))

    return types.boolean(where), codegen


@_vectorised(_sum_twin)
def horizontal_sum(typingctx, v):
    """Return the sum of the lanes, ((0+4)+(2+6)) + ((1+5)+(3+7)), the same on every machine."""
    if v != vector:
        return None

    def codegen(context, builder, sig, args):
        v, size = args[0], W
        while size > 1:
            # Add the upper half of the lanes to the lower one.
            size //= 2
            low, high = (ir.Constant(ir.VectorType(_INDEX, size), list(range(k, k + size))) for k in (0, size))
            v = builder.fadd(builder.shuffle_vector(v, v, low), builder.shuffle_vector(v, v, high))
        return builder.extract_element(v, _INDEX(0))

    return types.float64(v), codegen


@_vectorised(lambda v: np.ldexp(0.5, np.frexp(v)[1]))
def power_of_two(typingctx, v):
    """Return 2**e in each lane, with e the exponent of the positive normal number v = m 2**e, 1 <= m < 2."""
    if v != vector:
        return None

    def codegen(context, builder, sig, args):
        bits = builder.bitcast(args[0], _LONGS)
        exponent = ir.Constant(_LONGS, [ir.IntType(64)(0x7FF0000000000000)] * W)
        return builder.bitcast(builder.and_(bits, exponent), _VECTOR)

    return vector(v), codegen


@_vectorised(np.sqrt)
def square_root(typingctx, v):
    """Return the square root of each lane."""
    if v != vector:
        return None

    def codegen(context, builder, sig, args):
        return _call_llvm(builder, "llvm.sqrt.v8f64", _VECTOR, args)

    return vector(v), codegen


@_vectorised(lambda: np.zeros(W))
def zero(typingctx):
    """Return the vector of zeros."""

    def codegen(context, builder, sig, args):
        return ir.Constant(_VECTOR, [_DOUBLE(0.0)] * W)

    return vector(), codegen


@_vectorised(lambda x: int(x).bit_count())
def count_ones(typingctx, x):
    """Return how many bits of a 64-bit unsigned integer are one."""
    if x != types.uint64:
        return None

    def codegen(context, builder, sig, args):
        return builder.ctpop(args[0])

    return types.int64(x), codegen
