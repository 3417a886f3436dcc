r"""Densities at zero of the differences of pairs of linear dynamical systems, eight pairs at a time.

The difference of both observations is seen from the states of both systems side by side, :math:`(s, s')`, with
:math:`C = (C_1, C_2)`. Their dynamics are apart, so the covariance is held as the blocks :math:`P_{11}, P_{12}, P_{22}`
and moved as such. With the predicted P, :math:`G = P C^T`, :math:`S = C G + R`, :math:`K = G S^{-1}`,

.. math:: W = P - K G^T, \qquad P^+ = W - (W C^T - K R) K^T

is Joseph's form :math:`(I - K C) P (I - K C)^T + K R K^T`: the second term is zero but for what rounding has left in W.
A lane is a pair. Once the covariances of all lanes of a group have converged, nothing is computed but means; what a
lane keeps from then on does not depend on the others.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.hmm.rows import aligned
from genkern.core.jit import kernel, part
from genkern.core.kalman.adjoint import STEADY
from genkern.core.kalman.lanes import (
    ADD,
    SET,
    SUBTRACT,
    apart,
    clear,
    copy,
    factorise,
    get,
    invert_unit,
    keep,
    left_turned,
    lowest,
    product,
    put,
    square_of,
    turned_square_of,
)
from genkern.core.kalman.passes import Systems
from genkern.core.simd.shuffle import exponent, inverse_power
from genkern.core.simd.vectors import W, any_lane, broadcast, less, maximum, multiply_add, select, zero

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

OFTEN = 4  # steps from one test of convergence to the next
LOG_2, LOG_2PI = math.log(2.0), math.log(2.0 * math.pi)


class PairLayout(NamedTuple):
    """Offsets into the buffer, in vectors, for n and m states and d channels; a vector has ``one`` column.

    From the left A1, C1 and its transpose, Q1, P11, the mean f1; the same from the right, with A2 transposed, too; of
    both R and x. Per pair: S and its inverse, pivots; P12; G1 (n, d) and the transpose of G2 (d, m); K1 (n, d), the
    transpose of K2 (d, m); M1 and the transpose of M2, W C^T - K R; the old blocks of P; flags and sums.
    """

    n: int
    m: int
    d: int
    one: int
    A1: int
    C1: int
    C1T: int
    Q1: int
    P11: int
    f1: int
    A2: int
    A2T: int
    C2: int
    C2T: int
    Q2: int
    P22: int
    f2: int
    R: int
    x: int
    P12: int
    S: int
    small: int
    small2: int
    pivots: int
    G1: int
    G2T: int
    K1: int
    K2T: int
    M1: int
    M2T: int
    old11: int
    old22: int
    old12: int
    work: int
    gap: int
    u: int
    move: int
    frozen: int
    regular: int
    mantissa: int
    power: int
    factor: int
    factor_power: int
    square: int
    growth: int
    before: int
    drift: int
    end: int


class PairSums(NamedTuple):
    """Results (N,) of pairs: log density, NaN where there is none; growth and drift as in ``KalmanSums``."""

    log_prob: Floats
    growth: Floats
    drift: Floats


def pair_layout(n: int, m: int, d: int) -> PairLayout:
    """Return the layout; ``end`` is the size of the buffer in vectors."""
    sizes = {
        **dict.fromkeys(PairLayout._fields[4:-1], 1),
        **dict.fromkeys(("A1", "Q1", "P11", "old11"), n * n),
        **dict.fromkeys(("A2", "A2T", "Q2", "P22", "old22"), m * m),
        **dict.fromkeys(("C1", "C1T", "G1", "K1", "M1"), n * d),
        **dict.fromkeys(("C2", "C2T", "G2T", "K2T", "M2T"), m * d),
        **dict.fromkeys(("P12", "old12"), n * m),
        **dict.fromkeys(("R", "S", "small", "small2"), d * d),
        **dict.fromkeys(("x", "pivots", "gap", "u"), d),
        "f1": n,
        "f2": m,
        "work": max(n, m) ** 2,
        "move": max(n, m),
    }
    starts = np.concatenate([[0], np.cumsum([sizes[name] for name in PairLayout._fields[4:-1]])])
    return PairLayout(n, m, d, 1, *starts.tolist())


def pair_densities(
    left: Systems, i: Ints, right: Systems, j: Ints, length: int, scale: float, ridge: float
) -> PairSums:
    """Return densities at zero of ``length`` observations of the differences of pairs (i, j) of systems.

    Covariances are multiplied by ``scale``, and ``ridge`` is added to that of the observations.
    """
    count, layout = len(i), pair_layout(left.A.shape[1], right.A.shape[1], left.C.shape[1])
    rows = np.resize(np.arange(count), -(-count // W) * W)
    table = np.zeros((3, len(rows)))
    own = _rows(left, scale, ridge * np.eye(layout.d), -1.0, False)
    other = _rows(right, scale, 0.0, 1.0, True)
    _pair_groups((own, i[rows]), (other, j[rows]), length, aligned(layout.end * W), layout, table)
    return PairSums(*table[:, :count])


def _rows(side: Systems, scale: float, ridge: Floats | float, sign: float, turned: bool) -> Floats:
    """Return the parameters of each system in one row, in the order of the layout."""
    C = -sign * side.C
    parts = [side.A, *([side.A.swapaxes(1, 2)] if turned else []), C, C.swapaxes(1, 2), scale * side.Q]
    parts += [scale * side.cov, side.mean, scale * side.R + ridge, sign * side.offset]
    return np.concatenate([part.reshape(len(C), -1) for part in parts], axis=1)


@kernel
def _pair_groups(left, right, length, buffer, layout, table):
    """Fill the table (3, N): log density, growth, drift."""
    (own, i), (other, j) = left, right
    both = layout.d * layout.d + layout.d  # the end of a row, which both sides add to
    first, second = own.shape[1] - both, other.shape[1] - both
    for low in range(0, len(i), W):
        clear(buffer, layout.P12, layout.end - layout.P12)
        for lane in range(W):
            p, q = i[low + lane], j[low + lane]
            for k in range(first):
                buffer[(layout.A1 + k) * W + lane] = own[p, k]
            for k in range(second):
                buffer[(layout.A2 + k) * W + lane] = other[q, k]
            for k in range(both):
                buffer[(layout.R + k) * W + lane] = own[p, first + k] + other[q, second + k]
        _filter(buffer, layout, length)
        for lane in range(W):
            mantissa, power = buffer[layout.mantissa * W + lane], buffer[layout.power * W + lane]
            logs = math.log(mantissa) + power * LOG_2 + length * layout.d * LOG_2PI
            log = -0.5 * (logs + buffer[layout.square * W + lane])
            table[0, low + lane] = log if buffer[layout.regular * W + lane] > 0.5 else np.nan
            table[1, low + lane] = buffer[layout.growth * W + lane]
            table[2, low + lane] = buffer[layout.drift * W + lane]


@part
def _filter(buffer, layout, length):
    """Filter the differences of a group."""
    n, m, d = layout.n, layout.m, layout.d
    settled, frozen = False, False
    for offset in (layout.regular, layout.mantissa, layout.before):
        put(buffer, offset, broadcast(1.0))
    for t in range(length):
        if t > 0:
            copy(buffer, layout.move, layout.f1, n)
            product(buffer, layout.f1, layout.A1, layout.move, n, n, layout.one, SET)
            copy(buffer, layout.move, layout.f2, m)
            product(buffer, layout.f2, layout.A2, layout.move, m, m, layout.one, SET)
        if not settled:
            settled, checks = t > 0 and lowest(buffer, layout.frozen) > 0.5, t % OFTEN == OFTEN - 1
            if t > 0:
                _predict(buffer, layout, frozen or checks)
            _invert(buffer, layout)
            _condition(buffer, layout)
            if frozen:
                keep(buffer, layout.frozen, layout.P11, layout.old11, n * n)
                keep(buffer, layout.frozen, layout.P12, layout.old12, n * m)
                keep(buffer, layout.frozen, layout.P22, layout.old22, m * m)
            if checks:
                _freeze(buffer, layout)
                frozen = any_lane(less(broadcast(0.5), get(buffer, layout.frozen)))
        for c in range(d):
            total, spread = get(buffer, layout.x + c), zero()
            for k in range(n):
                part = get(buffer, layout.C1 + c * n + k) * get(buffer, layout.f1 + k)
                total, spread = total - part, multiply_add(part, part, spread)
            for k in range(m):
                part = get(buffer, layout.C2 + c * m + k) * get(buffer, layout.f2 + k)
                total, spread = total - part, multiply_add(part, part, spread)
            share = spread * get(buffer, layout.small + c * d + c)
            put(buffer, layout.drift, maximum(get(buffer, layout.drift), share))
            put(buffer, layout.gap + c, total)
        product(buffer, layout.u, layout.small, layout.gap, d, d, layout.one, SET)
        left_turned(buffer, layout.square, layout.gap, layout.u, layout.one, d, layout.one, ADD)
        product(buffer, layout.f1, layout.K1, layout.gap, n, d, layout.one, ADD)
        left_turned(buffer, layout.f2, layout.K2T, layout.gap, m, d, layout.one, ADD)
        whole = get(buffer, layout.mantissa) * get(buffer, layout.factor)
        put(buffer, layout.power, get(buffer, layout.power) + exponent(whole) + get(buffer, layout.factor_power))
        put(buffer, layout.mantissa, whole * inverse_power(whole))


@part
def _predict(buffer, layout, keeps):
    """Move the covariances one step on; with ``keeps`` copy the filtered ones to the old ones first."""
    apart()
    n, m, work = layout.n, layout.m, layout.work
    if keeps:
        copy(buffer, layout.old11, layout.P11, n * n)
        copy(buffer, layout.old12, layout.P12, n * m)
        copy(buffer, layout.old22, layout.P22, m * m)
    product(buffer, work, layout.A1, layout.P11, n, n, n, SET)
    copy(buffer, layout.P11, layout.Q1, n * n)
    square_of(buffer, layout.P11, work, layout.A1, n, n, ADD)
    product(buffer, work, layout.A1, layout.P12, n, n, m, SET)
    product(buffer, layout.P12, work, layout.A2T, n, m, m, SET)
    product(buffer, work, layout.A2, layout.P22, m, m, m, SET)
    copy(buffer, layout.P22, layout.Q2, m * m)
    square_of(buffer, layout.P22, work, layout.A2, m, m, ADD)


@part
def _invert(buffer, layout):
    """Fill G, S, its inverse (``small``), and mantissa and exponent of its determinant; count what cancels in S."""
    apart()
    n, m, d = layout.n, layout.m, layout.d
    product(buffer, layout.G1, layout.P11, layout.C1T, n, n, d, SET)
    product(buffer, layout.G1, layout.P12, layout.C2T, n, m, d, ADD)
    product(buffer, layout.G2T, layout.C1, layout.P12, d, n, m, SET)
    product(buffer, layout.G2T, layout.C2, layout.P22, d, m, m, ADD)
    copy(buffer, layout.S, layout.R, d * d)
    turned_square_of(buffer, layout.S, layout.C1T, layout.G1, d, n, ADD)
    square_of(buffer, layout.S, layout.C2, layout.G2T, d, m, ADD)  # row by row as above: no half is symmetric
    factorise(buffer, layout.S, layout.pivots, d)
    invert_unit(buffer, layout.small2, layout.S, d)
    mantissa, power, regular, now = broadcast(1.0), zero(), get(buffer, layout.regular), zero()
    for a in range(d):
        pivot, spread = get(buffer, layout.pivots + a), zero()
        there = less(zero(), pivot)
        regular = select(there, regular, zero())
        pivot = select(there, pivot, broadcast(1.0))
        share = broadcast(1.0) / pivot
        for c in range(d):
            put(buffer, layout.S + a * d + c, share * get(buffer, layout.small2 + a * d + c))
        mantissa = mantissa * pivot
        power = power + exponent(mantissa)
        mantissa = mantissa * inverse_power(mantissa)
        for k in range(n):
            weight = get(buffer, layout.C1 + a * n + k) * get(buffer, layout.C1 + a * n + k)
            spread = multiply_add(weight, get(buffer, layout.P11 + k * n + k), spread)
        for k in range(m):
            weight = get(buffer, layout.C2 + a * m + k) * get(buffer, layout.C2 + a * m + k)
            spread = multiply_add(weight, get(buffer, layout.P22 + k * m + k), spread)
        now = maximum(now, share * spread)
    turned_square_of(buffer, layout.small, layout.small2, layout.S, d, d, SET)
    put(buffer, layout.regular, regular)
    put(buffer, layout.factor, mantissa)
    put(buffer, layout.factor_power, power)
    now = select(less(get(buffer, layout.frozen), broadcast(0.5)), now, zero())
    put(buffer, layout.growth, maximum(get(buffer, layout.growth), now * get(buffer, layout.before)))
    put(buffer, layout.before, maximum(now, broadcast(1.0)))


@part
def _condition(buffer, layout):
    """Fill K, and condition the covariances on an observation."""
    apart()
    n, m, d = layout.n, layout.m, layout.d
    product(buffer, layout.K1, layout.G1, layout.small, n, d, d, SET)
    product(buffer, layout.K2T, layout.small, layout.G2T, d, d, m, SET)
    square_of(buffer, layout.P11, layout.K1, layout.G1, n, d, SUBTRACT)
    product(buffer, layout.P12, layout.K1, layout.G2T, n, d, m, SUBTRACT)
    turned_square_of(buffer, layout.P22, layout.K2T, layout.G2T, m, d, SUBTRACT)
    product(buffer, layout.M1, layout.P11, layout.C1T, n, n, d, SET)
    product(buffer, layout.M1, layout.P12, layout.C2T, n, m, d, ADD)
    product(buffer, layout.M1, layout.K1, layout.R, n, d, d, SUBTRACT)
    product(buffer, layout.M2T, layout.C1, layout.P12, d, n, m, SET)
    product(buffer, layout.M2T, layout.C2, layout.P22, d, m, m, ADD)
    product(buffer, layout.M2T, layout.R, layout.K2T, d, d, m, SUBTRACT)
    square_of(buffer, layout.P11, layout.M1, layout.K1, n, d, SUBTRACT)
    product(buffer, layout.P12, layout.M1, layout.K2T, n, d, m, SUBTRACT)
    turned_square_of(buffer, layout.P22, layout.M2T, layout.K2T, m, d, SUBTRACT)


@part
def _freeze(buffer, layout):
    """Freeze the lanes whose covariances have converged."""
    apart()
    n, m, close = layout.n, layout.m, broadcast(1.0)
    close = _close(buffer, close, layout.P11, layout.old11, layout.P11, layout.P11, n, n)
    close = _close(buffer, close, layout.P12, layout.old12, layout.P11, layout.P22, n, m)
    close = _close(buffer, close, layout.P22, layout.old22, layout.P22, layout.P22, m, m)
    put(buffer, layout.frozen, maximum(get(buffer, layout.frozen), close))


@part
def _close(buffer, verdict, new, old, rows, columns, n, m):
    """Return the verdict, zero in lanes in which an entry of a block (n, m) has changed, by its deviations' measure.

    These are on the diagonals of the blocks at ``rows`` and ``columns``.
    """
    scale = broadcast(STEADY * STEADY)
    for i in range(n):
        own = scale * get(buffer, rows + i * n + i)
        for j in range(m):
            change = get(buffer, new + i * m + j) - get(buffer, old + i * m + j)
            allowed = own * get(buffer, columns + j * m + j)
            verdict = select(less(allowed, change * change), zero(), verdict)
    return verdict
