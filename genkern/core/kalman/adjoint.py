r"""Eight series at a time, each under its own linear dynamical system: the filter, and backwards the adjoints.

The backward pass carries the adjoints of the predicted belief about :math:`s_{t+1}`: :math:`r_t`, the derivative of the
log-likelihood by its mean, and :math:`N_t`, minus the expected second derivative. They need no inverse but that of the
innovation covariance S, so that Q = 0 and P_0 = 0 are legal; smoothed moments and the derivatives by all parameters are
sums of their products. With :math:`q = A^T r_t`, :math:`\Lambda = A^T N_t A` and the filtered mean m, covariance P and
gain K of step t,

.. math:: E[s_t | x] = m + P q, \quad \mathrm{Cov}(s_t | x) = P - P \Lambda P, \quad u = S^{-1} v - K^T q, \quad
   r_{t-1} = q + C^T u, \quad N_{t-1} = C^T S^{-1} C + (I - K C)^T \Lambda (I - K C)

where :math:`Q r_t` and :math:`R u_t` are the expected noises. A lane is a series; parameters are held per lane, shared
ones as eight copies. A missing channel is one that C does not reach. Covariances of a series without gaps converge;
from then on they are kept, per lane, and nothing is computed once all lanes of a block keep theirs.

References
----------
de Jong (1989), Smoothing and interpolation with the state-space model.
Koopman & Shephard (1992), Exact score for time series models in state space form.
"""

from __future__ import annotations

import numpy as np

from genkern.core.jit import inlined, kernel
from genkern.core.kalman.lanes import (
    ADD,
    SET,
    SUBTRACT,
    add,
    add_where,
    apart,
    at,
    clear,
    copy,
    factorise,
    flag_close,
    half_logs,
    invert_unit,
    keep,
    left_turned,
    lowest,
    one_minus,
    outer,
    product,
    put,
    square_of,
    turned_square_of,
    wipe,
)
from genkern.core.simd.vectors import broadcast, less, maximum, multiply_add, select, zero

STEADY = 1e-14  # relative change of a covariance below which it counts as converged


@kernel
def forward(m, z, steps):
    """Filter a block: fill m, u = S^-1 v, P, K, S, log_prob; return the last step whose covariances are its own.

    Later steps share those of the last one.
    """
    apart()
    n = z.n
    put(m, z.log_prob, zero())
    put(m, z.growth, zero())
    put(m, z.before, broadcast(1.0))
    put(m, z.drift, zero())
    put(m, z.frozen, zero())
    put(m, z.failed, broadcast(-1.0))
    put(m, z.since, broadcast(1e300))
    last, quiet = steps - 1, False
    for t in range(steps):
        mean = z.m + t * n
        put(m, z.active, select(less(broadcast(float(t)), at(m, z.length)), broadcast(1.0), zero()))
        put(m, z.hold, select(less(broadcast(0.5), at(m, z.active)), at(m, z.frozen), broadcast(1.0)))
        if t == 0:
            copy(m, mean, z.mean, n)
        else:
            product(m, mean, z.A, mean - n, n, n, 1, SET)
        if not quiet:
            _gain(m, z, t)
        k = min(t, last)
        _innovate(m, z, t, k)
        if t > 0:
            put(m, z.flag, broadcast(1.0) - at(m, z.active))
            keep(m, z.flag, mean, mean - n, n)
        if not quiet and lowest(m, z.hold) > 0.5:
            last, quiet = t, True
    return last


@inlined
def _gain(m, z, t):
    """Fill P, K, S of step t, and the constant of its log density; converged and ended series keep theirs."""
    n, d = z.n, z.d
    P, K, S = z.P + t * n * n, z.K + t * n * d, z.S + t * d * d
    _mask(m, z, t)
    if t == 0:
        copy(m, P, z.cov, n * n)
    else:
        product(m, z.w1, z.A, P - n * n, n, n, n, SET)
        copy(m, P, z.Q, n * n)
        square_of(m, P, z.w1, z.A, n, n, ADD)
    product(m, z.wide, z.seen_c, P, d, n, n, SET)
    copy(m, z.small, z.seen_r, d * d)
    square_of(m, z.small, z.wide, z.seen_c, d, n, ADD)
    factorise(m, z.small, z.pivots, d)
    _cancel(m, z, t)
    half_logs(m, z.flag, z.pivots, d, z.channels)
    put(m, z.constant, select(less(broadcast(0.5), at(m, z.hold)), at(m, z.constant), at(m, z.flag)))
    invert_unit(m, z.small2, z.small, d)
    for a in range(d):
        pivot = at(m, z.pivots + a)
        there = less(zero(), pivot)
        first = less(at(m, z.failed), zero())
        wrong = select(there, at(m, z.failed), select(first, broadcast(float(t)), at(m, z.failed)))
        put(m, z.failed, wrong)
        scale = select(there, broadcast(1.0) / select(there, pivot, broadcast(1.0)), zero())
        for c in range(d):
            put(m, z.small + a * d + c, scale * at(m, z.small2 + a * d + c))
    turned_square_of(m, S, z.small2, z.small, d, d, SET)
    for a in range(d):
        wipe(m, z.channels + a, S + a * d, d)
        for c in range(d):
            wipe(m, z.channels + c, S + a * d + c, 1)
    left_turned(m, K, z.wide, S, n, d, d, SET)
    # Joseph's form: (I - K C) P (I - K C)^T + K R K^T, positive whatever the rounding
    product(m, z.w1, K, z.seen_c, n, d, n, SET)
    one_minus(m, z.w1, n)
    product(m, z.w2, z.w1, P, n, n, n, SET)
    square_of(m, P, z.w2, z.w1, n, n, SET)
    product(m, z.wide, K, z.seen_r, n, d, d, SET)
    square_of(m, P, z.wide, K, n, d, ADD)
    if t > 0:
        keep(m, z.hold, P, P - n * n, n * n)
        keep(m, z.hold, K, K - n * d, n * d)
        keep(m, z.hold, S, S - d * d, d * d)
        flag_close(m, z.flag, P, P - n * n, n, STEADY)
        fresh = less(at(m, z.hold) + broadcast(0.5), at(m, z.flag) * at(m, z.complete))
        put(m, z.since, select(fresh, broadcast(float(t)), at(m, z.since)))
        put(m, z.frozen, select(fresh, broadcast(1.0), at(m, z.frozen)))
        put(m, z.hold, select(fresh, broadcast(1.0), at(m, z.hold)))


@inlined
def _cancel(m, z, t):
    r"""Raise growth to what cancels in the covariance of the innovation at step t.

    :math:`g_t` is the largest :math:`\sum_k C_{ak}^2 P_{kk}` in units of the pivots of S: where it is large, S is a
    small difference of large numbers, and so is the next P where the gain is large, too. Growth is the largest
    :math:`g_t \max(1, g_{t-1})`.
    """
    n, d = z.n, z.d
    P = z.P + t * n * n
    counts = less(at(m, z.hold), broadcast(0.5))
    now = zero()
    for a in range(d):
        spread = zero()
        for k in range(n):
            weight = at(m, z.seen_c + a * n + k) * at(m, z.seen_c + a * n + k)
            spread = multiply_add(weight, at(m, P + k * n + k), spread)
        pivot = at(m, z.pivots + a)
        share = select(counts, broadcast(1.0) / select(less(zero(), pivot), pivot, broadcast(1.0)), zero())
        now = maximum(now, share * spread)
    put(m, z.growth, maximum(at(m, z.growth), now * at(m, z.before)))
    put(m, z.before, maximum(now, broadcast(1.0)))


@inlined
def _mask(m, z, t):
    """Flag the channels seen at step t; where one is missing, it has no row of C, and unit noise of its own."""
    n, d = z.n, z.d
    for c in range(d):
        seen = less(at(m, z.x + t * d + c), broadcast(np.inf))  # false for NaN
        put(m, z.channels + c, select(seen, broadcast(1.0), zero()))
        for i in range(n):
            put(m, z.seen_c + c * n + i, select(seen, at(m, z.C + c * n + i), zero()))
    for c in range(d):
        for e in range(d):
            alone = broadcast(1.0 if c == e else 0.0)
            both = less(broadcast(1.5), at(m, z.channels + c) + at(m, z.channels + e))
            put(m, z.seen_r + c * d + e, select(both, at(m, z.R + c * d + e), alone))


@inlined
def _innovate(m, z, t, k):
    r"""Update the mean of step t with the gain of step k; fill u with S^-1 v and add to the log-likelihood.

    Drift is raised to what cancels in the innovation: the largest :math:`S^{-1}_{cc} \sum_i C_{ci}^2 m_i^2`. The mean
    may grow after the covariances have settled.
    """
    n, d = z.n, z.d
    mean, u = z.m + t * n, z.u + t * d
    for c in range(d):
        x = at(m, z.x + t * d + c)
        total, square = zero(), zero()
        for i in range(n):
            part = at(m, z.C + c * n + i) * at(m, mean + i)
            total = total + part
            square = multiply_add(part, part, square)
        seen = less(x, broadcast(np.inf))  # false for NaN, and so after the end
        put(m, z.wide3 + c, select(seen, x - total, zero()))
        share = select(seen, square * at(m, z.S + k * d * d + c * d + c), zero())
        put(m, z.drift, maximum(at(m, z.drift), share))
    product(m, u, z.S + k * d * d, z.wide3, d, d, 1, SET)
    product(m, mean, z.K + k * n * d, z.wide3, n, d, 1, ADD)
    total = at(m, z.constant)
    for c in range(d):
        total = total - broadcast(0.5) * at(m, z.wide3 + c) * at(m, u + c)
    put(m, z.log_prob, at(m, z.log_prob) + select(less(broadcast(0.5), at(m, z.active)), total, zero()))


@kernel
def backward(m, z, steps, last):
    """Fill the sums of a block; u becomes R^-1 times the expected observation noise."""
    apart()
    n, d = z.n, z.d
    clear(m, z.r, n)
    clear(m, z.N, n * n)
    clear(m, z.sum_a, z.x - z.sum_a)
    put(m, z.steady, zero())
    calm = False
    for t in range(steps - 1, -1, -1):
        k = min(t, last)
        _flags(m, z, t)
        put(m, z.steady, select(less(at(m, z.since), broadcast(float(t))), at(m, z.steady), zero()))
        put(m, z.hold, select(less(broadcast(0.5), at(m, z.active)), at(m, z.steady), broadcast(1.0)))
        before, calm = calm, t > last and lowest(m, z.hold) > 0.5
        _backward_mean(m, z, t, k)
        outer(m, z.sum_r, z.u + t * d, d, z.u + t * d, d, 0.5)
        outer(m, z.sum_c, z.u + t * d, d, z.state, n, 1.0)
        add(m, z.sum_offset, 1.0, z.u + t * d, d)
        outer(m, z.sum_q, z.r, n, z.r, n, 0.5)
        outer(m, z.sum_a, z.r, n, z.state, n, 1.0)
        add(m, z.sum_q, -0.5, z.N, n * n)
        # Once all lanes are steady, and were a step before, the terms are those of the last step.
        if not (calm and before):
            _terms(m, z, k)
        add(m, z.sum_a, -1.0, z.term_a, n * n)
        add_where(m, z.moves, z.sum_left, z.smoothed, n * n)
        add_where(m, z.any, z.sum_seen, z.smoothed, n * n)
        add_where(m, z.any, z.sum_states, z.state, n)
        add_where(m, z.any, z.sum_c, z.term_c, d * n)
        add_where(m, z.any, z.sum_r, z.term_r, d * d)
        for flag, target in ((z.moves, z.sum_left), (z.any, z.sum_seen)):
            copy(m, z.wide2, z.state, n)
            wipe(m, flag, z.wide2, n)
            outer(m, target, z.wide2, n, z.wide2, n, 1.0)
        if not (calm and before):
            _retreat(m, z, k)
            _settle(m, z, t)
        copy(m, z.r, z.q, n)
    copy(m, z.sum_mean, z.r, n)
    outer(m, z.sum_cov, z.r, n, z.r, n, 0.5)
    add(m, z.sum_cov, -0.5, z.N, n * n)


@inlined
def _flags(m, z, t):
    """Flag the lanes whose series have step t, a step after it, and a channel that is seen at it."""
    now, one = broadcast(float(t)), broadcast(1.0)
    put(m, z.active, select(less(now, at(m, z.length)), one, zero()))
    put(m, z.moves, select(less(now + one, at(m, z.length)), one, zero()))
    seen = zero()
    for c in range(z.d):
        seen = select(less(at(m, z.x + t * z.d + c), broadcast(np.inf)), one, seen)
    put(m, z.any, seen)


@inlined
def _backward_mean(m, z, t, k):
    """Fill state with the smoothed mean of s_t, u with u_t, and q with r_{t-1}; r stays r_t. All zero after an end."""
    n, d = z.n, z.d
    u = z.u + t * d
    left_turned(m, z.q, z.A, z.r, n, n, 1, SET)
    copy(m, z.state, z.m + t * n, n)
    product(m, z.state, z.P + k * n * n, z.q, n, n, 1, ADD)
    left_turned(m, u, z.K + k * n * d, z.q, d, n, 1, SUBTRACT)
    left_turned(m, z.q, z.C, u, n, d, 1, ADD)


@inlined
def _terms(m, z, k):
    """Fill Lambda, the smoothed covariance, and the terms N A P of A, -K^T (I - Lambda P) of C and of R, at step k."""
    n, d = z.n, z.d
    P, K, S = z.P + k * n * n, z.K + k * n * d, z.S + k * d * d
    product(m, z.w1, z.N, z.A, n, n, n, SET)
    product(m, z.term_a, z.w1, P, n, n, n, SET)
    turned_square_of(m, z.Lambda, z.A, z.w1, n, n, SET)
    product(m, z.w1, z.Lambda, P, n, n, n, SET)
    copy(m, z.smoothed, P, n * n)
    turned_square_of(m, z.smoothed, P, z.w1, n, n, SUBTRACT)
    left_turned(m, z.term_c, K, z.w1, d, n, n, SET)
    for c in range(d):
        for i in range(n):
            put(m, z.term_c + c * n + i, at(m, z.term_c + c * n + i) - at(m, K + i * d + c))
    left_turned(m, z.wide, z.Lambda, K, n, n, d, SET)
    copy(m, z.term_r, S, d * d)
    turned_square_of(m, z.term_r, K, z.wide, d, n, ADD)
    for c in range(d * d):
        put(m, z.term_r + c, broadcast(-0.5) * at(m, z.term_r + c))


@inlined
def _retreat(m, z, k):
    """Replace N by C^T S^-1 C + (I - K C)^T Lambda (I - K C), a sum of squares, of step k; w3 keeps the old N."""
    n, d = z.n, z.d
    copy(m, z.w3, z.N, n * n)
    product(m, z.w1, z.K + k * n * d, z.C, n, d, n, SET)
    one_minus(m, z.w1, n)
    product(m, z.w2, z.Lambda, z.w1, n, n, n, SET)
    turned_square_of(m, z.N, z.w1, z.w2, n, n, SET)
    product(m, z.wide, z.S + k * d * d, z.C, d, d, n, SET)
    turned_square_of(m, z.N, z.C, z.wide, n, d, ADD)
    wipe(m, z.active, z.N, n * n)


@inlined
def _settle(m, z, t):
    """Keep the old N of steady series, and flag those that have just become steady."""
    keep(m, z.steady, z.N, z.w3, z.n * z.n)
    flag_close(m, z.flag, z.N, z.w3, z.n, STEADY)
    settled = select(less(at(m, z.since), broadcast(float(t))), at(m, z.flag) * at(m, z.moves), zero())
    put(m, z.steady, select(less(broadcast(0.5), at(m, z.steady)), broadcast(1.0), settled))


@kernel
def smooth_step(m, z, t, last):
    """Go back one step of the smoother: fill state, smoothed (a square, positive) and term_a with Cov(s_{t+1}, s_t)."""
    apart()
    n, k = z.n, min(t, last)
    P = z.P + k * n * n
    _flags(m, z, t)
    _backward_mean(m, z, t, k)
    copy(m, z.r, z.q, n)
    # Cov(s_{t+1}, s_t) = (I - P' N) A P, with the predicted P' = A P A^T + Q
    product(m, z.w1, z.A, P, n, n, n, SET)
    copy(m, z.w2, z.Q, n * n)
    square_of(m, z.w2, z.w1, z.A, n, n, ADD)
    product(m, z.w3, z.w2, z.N, n, n, n, SET)
    copy(m, z.term_a, z.w1, n * n)
    product(m, z.term_a, z.w3, z.w1, n, n, n, SUBTRACT)
    product(m, z.w1, z.N, z.A, n, n, n, SET)
    turned_square_of(m, z.Lambda, z.A, z.w1, n, n, SET)
    _smoothed_cov(m, z, P)
    _retreat(m, z, k)


@inlined
def _smoothed_cov(m, z, P):
    """Fill smoothed with P - P Lambda P = L (D - D L^T Lambda L D) L^T, P = L D L^T; the middle is factorised again."""
    n = z.n
    copy(m, z.w1, P, n * n)
    factorise(m, z.w1, z.pivots, n)
    product(m, z.w2, z.Lambda, z.w1, n, n, n, SET)
    turned_square_of(m, z.w3, z.w1, z.w2, n, n, SET)
    for i in range(n):
        for j in range(n):
            whole = at(m, z.pivots + i) if i == j else zero()
            part = at(m, z.pivots + i) * at(m, z.w3 + i * n + j) * at(m, z.pivots + j)
            put(m, z.w3 + i * n + j, whole - part)
    factorise(m, z.w3, z.pivots, n)
    product(m, z.w2, z.w1, z.w3, n, n, n, SET)
    for i in range(n):
        for j in range(n):
            put(m, z.w1 + i * n + j, at(m, z.w2 + i * n + j) * at(m, z.pivots + j))
    square_of(m, z.smoothed, z.w1, z.w2, n, n, SET)
