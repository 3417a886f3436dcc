"""The exponential function on vectors of eight doubles, several times faster than a call per number."""

from __future__ import annotations

import numpy as np
from llvmlite import ir

from genkern.core.jit import jit
from genkern.core.simd.vectors import W, _vectorised, broadcast, less, maximum, multiply_add, select, vector, zero

LOWEST = -708.0  # below it exp is no normal number, and counted as zero
_LOWEST_POWER = -1020.0
_LOG2E = 1.4426950408889634
# log 2 in two parts: an integer below 2**20 times the first is exact, so the reduced argument is, too.
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
# Adding it to a number below 2**51 rounds that to an integer, held in the lowest bits of the sum.
_ROUNDER = 6755399441055744.0


def _scale_twin(p, rounded):
    """Multiply by powers of two whose exponents are held in the lowest bits."""
    return np.ldexp(p, (rounded - _ROUNDER).astype(np.int64))


# (2**r - 1) / r from the constant on, right at eleven Chebyshev nodes: an error of 2.1e-17 in 2**r for |r| <= 1/2.
_TWO = (
    0.6931471805599453,
    0.24022650695910097,
    0.0555041086648216,
    0.009618129107606854,
    0.0013333558146416916,
    0.00015403530441794136,
    1.525273382986708e-05,
    1.3215442552522291e-06,
    1.0178062426976924e-07,
    7.072593027878997e-09,
    4.4549643712692967e-10,
)


@_vectorised(_scale_twin)
def _scale(typingctx, p, rounded):
    """Return ``p * 2**k`` for the integers k in the lowest bits of ``rounded``; the result must be normal."""
    if not (p == vector and rounded == vector):
        return None

    def codegen(context, builder, sig, args):
        longs = ir.VectorType(ir.IntType(64), W)
        shift = ir.Constant(longs, [ir.IntType(64)(52)] * W)
        exponent = builder.shl(builder.bitcast(args[1], longs), shift)
        return builder.bitcast(builder.add(builder.bitcast(args[0], longs), exponent), args[0].type)

    return vector(p, rounded), codegen


@jit
def exp(x):
    r"""Return exp of eight numbers not above 709, to one unit in the last place; exp(0) is exactly 1.

    .. math:: e^x = 2^k e^r, \quad k = \lfloor x / \log 2 \rceil, \quad |r| \le \tfrac12 \log 2

    with the Taylor polynomial of degree 13 in r. Numbers below -708, and -inf, give zero; NaN gives NaN.
    """
    lowest = broadcast(LOWEST)
    inside = select(less(x, lowest), lowest, x)
    rounded = multiply_add(inside, broadcast(_LOG2E), broadcast(_ROUNDER))
    k = rounded - broadcast(_ROUNDER)
    r = multiply_add(k, broadcast(-_LN2_HIGH), inside)
    r = multiply_add(k, broadcast(-_LN2_LOW), r)
    p = multiply_add(broadcast(1.0 / 6227020800.0), r, broadcast(1.0 / 479001600.0))
    p = multiply_add(p, r, broadcast(1.0 / 39916800.0))
    p = multiply_add(p, r, broadcast(1.0 / 3628800.0))
    p = multiply_add(p, r, broadcast(1.0 / 362880.0))
    p = multiply_add(p, r, broadcast(1.0 / 40320.0))
    p = multiply_add(p, r, broadcast(1.0 / 5040.0))
    p = multiply_add(p, r, broadcast(1.0 / 720.0))
    p = multiply_add(p, r, broadcast(1.0 / 120.0))
    p = multiply_add(p, r, broadcast(1.0 / 24.0))
    p = multiply_add(p, r, broadcast(1.0 / 6.0))
    p = multiply_add(p, r, broadcast(0.5))
    p = multiply_add(p, r, broadcast(1.0))
    p = multiply_add(p, r, broadcast(1.0))
    # The difference is zero, or NaN whose bits the scaling has spoilt.
    return select(less(x, lowest), zero(), _scale(p, rounded) + (inside - inside))


@jit
def two_to(x):
    r"""Return :math:`2^x` of eight numbers below 1023, where those below -1020, and -inf, count as -1020.

    It takes two thirds of the time of ``exp``: for sums that are far above :math:`2^{-1020}`. NaN is not handled.
    """
    inside = maximum(broadcast(_LOWEST_POWER), x)
    rounded = inside + broadcast(_ROUNDER)
    r = inside - (rounded - broadcast(_ROUNDER))
    square = r * r
    # Even and odd powers apart: half as many steps wait for one another.
    even = multiply_add(broadcast(_TWO[10]), square, broadcast(_TWO[8]))
    odd = multiply_add(broadcast(_TWO[9]), square, broadcast(_TWO[7]))
    even = multiply_add(even, square, broadcast(_TWO[6]))
    odd = multiply_add(odd, square, broadcast(_TWO[5]))
    even = multiply_add(even, square, broadcast(_TWO[4]))
    odd = multiply_add(odd, square, broadcast(_TWO[3]))
    even = multiply_add(even, square, broadcast(_TWO[2]))
    odd = multiply_add(odd, square, broadcast(_TWO[1]))
    even = multiply_add(even, square, broadcast(_TWO[0]))
    p = multiply_add(multiply_add(odd, r, even), r, broadcast(1.0))
    return _scale(p, rounded)
