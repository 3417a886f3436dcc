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
from then on they are kept, per lane, and nothing is computed once all lanes of a group keep theirs.

References
----------
de Jong (1989), Smoothing and interpolation with the state-space model.
Koopman & Shephard (1992), Exact score for time series models in state space form.
"""

from __future__ import annotations

import numpy as np

from genkern.core.jit import inlined, part
from genkern.core.kalman.lanes import (
    ADD,
    SET,
    SUBTRACT,
    add,
    add_where,
    apart,
    clear,
    copy,
    factorise,
    flag_close,
    get,
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


@inlined
def forward(buffer, layout, steps):
    """Filter a group: fill filtered, u = S^-1 v, P, K, S, log_prob; return the last step whose covariances are its own.

    Later steps share those of the last one.
    """
    n = layout.n
    put(buffer, layout.log_prob, zero())
    put(buffer, layout.growth, zero())
    put(buffer, layout.before, broadcast(1.0))
    put(buffer, layout.drift, zero())
    put(buffer, layout.frozen, zero())
    put(buffer, layout.failed, broadcast(-1.0))
    put(buffer, layout.since, broadcast(1e300))
    last, quiet = steps - 1, False
    for t in range(steps):
        mean = layout.filtered + t * n
        put(
            buffer, layout.active, select(less(broadcast(float(t)), get(buffer, layout.length)), broadcast(1.0), zero())
        )
        put(
            buffer,
            layout.hold,
            select(less(broadcast(0.5), get(buffer, layout.active)), get(buffer, layout.frozen), broadcast(1.0)),
        )
        if t == 0:
            copy(buffer, mean, layout.mean, n)
        else:
            product(buffer, mean, layout.A, mean - n, n, n, layout.one, SET)
        if not quiet:
            _gain(buffer, layout, t)
        k = min(t, last)
        _innovate(buffer, layout, t, k)
        if t > 0:
            put(buffer, layout.flag, broadcast(1.0) - get(buffer, layout.active))
            keep(buffer, layout.flag, mean, mean - n, n)
        if not quiet and lowest(buffer, layout.hold) > 0.5:
            last, quiet = t, True
    return last


@inlined
def _gain(buffer, layout, t):
    """Fill P, K, S of step t, and the constant of its log density; converged and ended series keep theirs."""
    n, d = layout.n, layout.d
    P, K, S = layout.P + t * n * n, layout.K + t * n * d, layout.S + t * d * d
    _mask(buffer, layout, t)
    if t == 0:
        copy(buffer, P, layout.cov, n * n)
    else:
        product(buffer, layout.w1, layout.A, P - n * n, n, n, n, SET)
        copy(buffer, P, layout.Q, n * n)
        square_of(buffer, P, layout.w1, layout.A, n, n, ADD)
    product(buffer, layout.wide, layout.seen_c, P, d, n, n, SET)
    copy(buffer, layout.small, layout.seen_r, d * d)
    square_of(buffer, layout.small, layout.wide, layout.seen_c, d, n, ADD)
    factorise(buffer, layout.small, layout.pivots, d)
    _cancel(buffer, layout, t)
    half_logs(buffer, layout.flag, layout.pivots, d, layout.channels)
    put(
        buffer,
        layout.constant,
        select(less(broadcast(0.5), get(buffer, layout.hold)), get(buffer, layout.constant), get(buffer, layout.flag)),
    )
    invert_unit(buffer, layout.small2, layout.small, d)
    for a in range(d):
        pivot = get(buffer, layout.pivots + a)
        there = less(zero(), pivot)
        first = less(get(buffer, layout.failed), zero())
        wrong = select(
            there, get(buffer, layout.failed), select(first, broadcast(float(t)), get(buffer, layout.failed))
        )
        put(buffer, layout.failed, wrong)
        scale = select(there, broadcast(1.0) / select(there, pivot, broadcast(1.0)), zero())
        for c in range(d):
            put(buffer, layout.small + a * d + c, scale * get(buffer, layout.small2 + a * d + c))
    turned_square_of(buffer, S, layout.small2, layout.small, d, d, SET)
    for a in range(d):
        wipe(buffer, layout.channels + a, S + a * d, d)
        for c in range(d):
            wipe(buffer, layout.channels + c, S + a * d + c, layout.one)
    left_turned(buffer, K, layout.wide, S, n, d, d, SET)
    # Joseph's form: (I - K C) P (I - K C)^T + K R K^T, positive whatever the rounding
    product(buffer, layout.w1, K, layout.seen_c, n, d, n, SET)
    one_minus(buffer, layout.w1, n)
    product(buffer, layout.w2, layout.w1, P, n, n, n, SET)
    square_of(buffer, P, layout.w2, layout.w1, n, n, SET)
    product(buffer, layout.wide, K, layout.seen_r, n, d, d, SET)
    square_of(buffer, P, layout.wide, K, n, d, ADD)
    if t > 0:
        keep(buffer, layout.hold, P, P - n * n, n * n)
        keep(buffer, layout.hold, K, K - n * d, n * d)
        keep(buffer, layout.hold, S, S - d * d, d * d)
        flag_close(buffer, layout.flag, P, P - n * n, n, STEADY)
        fresh = less(get(buffer, layout.hold) + broadcast(0.5), get(buffer, layout.flag) * get(buffer, layout.complete))
        put(buffer, layout.since, select(fresh, broadcast(float(t)), get(buffer, layout.since)))
        put(buffer, layout.frozen, select(fresh, broadcast(1.0), get(buffer, layout.frozen)))
        put(buffer, layout.hold, select(fresh, broadcast(1.0), get(buffer, layout.hold)))


@inlined
def _cancel(buffer, layout, t):
    r"""Raise growth to the cancellation in the covariance of the innovation at step t.

    :math:`g_t` is the largest :math:`\sum_k C_{ak}^2 P_{kk}` in units of the pivots of S: where it is large, S is a
    small difference of large numbers, and so is the next P where the gain is large, too. Growth is the largest
    :math:`g_t \max(1, g_{t-1})`.
    """
    n, d = layout.n, layout.d
    P = layout.P + t * n * n
    counts = less(get(buffer, layout.hold), broadcast(0.5))
    now = zero()
    for a in range(d):
        spread = zero()
        for k in range(n):
            weight = get(buffer, layout.seen_c + a * n + k) * get(buffer, layout.seen_c + a * n + k)
            spread = multiply_add(weight, get(buffer, P + k * n + k), spread)
        pivot = get(buffer, layout.pivots + a)
        share = select(counts, broadcast(1.0) / select(less(zero(), pivot), pivot, broadcast(1.0)), zero())
        now = maximum(now, share * spread)
    put(buffer, layout.growth, maximum(get(buffer, layout.growth), now * get(buffer, layout.before)))
    put(buffer, layout.before, maximum(now, broadcast(1.0)))


@inlined
def _mask(buffer, layout, t):
    """Flag the channels seen at step t; where one is missing, it has no row of C, and unit noise of its own."""
    n, d = layout.n, layout.d
    for c in range(d):
        seen = less(get(buffer, layout.x + t * d + c), broadcast(np.inf))  # false for NaN
        put(buffer, layout.channels + c, select(seen, broadcast(1.0), zero()))
        for i in range(n):
            put(buffer, layout.seen_c + c * n + i, select(seen, get(buffer, layout.C + c * n + i), zero()))
    for c in range(d):
        for e in range(d):
            alone = broadcast(1.0 if c == e else 0.0)
            both = less(broadcast(1.5), get(buffer, layout.channels + c) + get(buffer, layout.channels + e))
            put(buffer, layout.seen_r + c * d + e, select(both, get(buffer, layout.R + c * d + e), alone))


@inlined
def _innovate(buffer, layout, t, k):
    r"""Update the mean of step t with the gain of step k; fill u with S^-1 v and add to the log-likelihood.

    Drift is raised to the cancellation in the innovation: the largest :math:`S^{-1}_{cc} \sum_i C_{ci}^2 m_i^2`. The
    mean may grow after the covariances have settled.
    """
    n, d = layout.n, layout.d
    mean, u = layout.filtered + t * n, layout.u + t * d
    for c in range(d):
        x = get(buffer, layout.x + t * d + c)
        total, square = zero(), zero()
        for i in range(n):
            part = get(buffer, layout.C + c * n + i) * get(buffer, mean + i)
            total = total + part
            square = multiply_add(part, part, square)
        seen = less(x, broadcast(np.inf))  # false for NaN, and so after the end
        put(buffer, layout.wide3 + c, select(seen, x - total, zero()))
        share = select(seen, square * get(buffer, layout.S + k * d * d + c * d + c), zero())
        put(buffer, layout.drift, maximum(get(buffer, layout.drift), share))
    product(buffer, u, layout.S + k * d * d, layout.wide3, d, d, layout.one, SET)
    product(buffer, mean, layout.K + k * n * d, layout.wide3, n, d, layout.one, ADD)
    total = get(buffer, layout.constant)
    for c in range(d):
        total = total - broadcast(0.5) * get(buffer, layout.wide3 + c) * get(buffer, u + c)
    put(
        buffer,
        layout.log_prob,
        get(buffer, layout.log_prob) + select(less(broadcast(0.5), get(buffer, layout.active)), total, zero()),
    )


@inlined
def backward(buffer, layout, steps, last):
    """Fill the sums of a group; u becomes R^-1 times the expected observation noise."""
    n, d = layout.n, layout.d
    clear(buffer, layout.r, n)
    clear(buffer, layout.N, n * n)
    clear(buffer, layout.sum_a, layout.x - layout.sum_a)
    put(buffer, layout.steady, zero())
    calm = False
    for t in range(steps - 1, -1, -1):
        k = min(t, last)
        _flags(buffer, layout, t)
        put(
            buffer,
            layout.steady,
            select(less(get(buffer, layout.since), broadcast(float(t))), get(buffer, layout.steady), zero()),
        )
        put(
            buffer,
            layout.hold,
            select(less(broadcast(0.5), get(buffer, layout.active)), get(buffer, layout.steady), broadcast(1.0)),
        )
        before, calm = calm, t > last and lowest(buffer, layout.hold) > 0.5
        _backward_mean(buffer, layout, t, k)
        outer(buffer, layout.sum_r, layout.u + t * d, d, layout.u + t * d, d, 0.5)
        outer(buffer, layout.sum_c, layout.u + t * d, d, layout.state, n, 1.0)
        add(buffer, layout.sum_offset, 1.0, layout.u + t * d, d)
        outer(buffer, layout.sum_q, layout.r, n, layout.r, n, 0.5)
        outer(buffer, layout.sum_a, layout.r, n, layout.state, n, 1.0)
        add(buffer, layout.sum_q, -0.5, layout.N, n * n)
        # Once all lanes are steady, and were a step before, the terms are those of the last step.
        if not (calm and before):
            _terms(buffer, layout, k)
        add(buffer, layout.sum_a, -1.0, layout.term_a, n * n)
        add_where(buffer, layout.moves, layout.sum_left, layout.smoothed, n * n)
        add_where(buffer, layout.any, layout.sum_seen, layout.smoothed, n * n)
        add_where(buffer, layout.any, layout.sum_states, layout.state, n)
        add_where(buffer, layout.any, layout.sum_c, layout.term_c, d * n)
        add_where(buffer, layout.any, layout.sum_r, layout.term_r, d * d)
        for flag, target in ((layout.moves, layout.sum_left), (layout.any, layout.sum_seen)):
            copy(buffer, layout.wide2, layout.state, n)
            wipe(buffer, flag, layout.wide2, n)
            outer(buffer, target, layout.wide2, n, layout.wide2, n, 1.0)
        if not (calm and before):
            _retreat(buffer, layout, k)
            _settle(buffer, layout, t)
        copy(buffer, layout.r, layout.q, n)
    copy(buffer, layout.sum_mean, layout.r, n)
    outer(buffer, layout.sum_cov, layout.r, n, layout.r, n, 0.5)
    add(buffer, layout.sum_cov, -0.5, layout.N, n * n)


@inlined
def _flags(buffer, layout, t):
    """Flag the lanes whose series have step t, a step after it, and a channel that is seen at it."""
    now, one = broadcast(float(t)), broadcast(1.0)
    put(buffer, layout.active, select(less(now, get(buffer, layout.length)), one, zero()))
    put(buffer, layout.moves, select(less(now + one, get(buffer, layout.length)), one, zero()))
    seen = zero()
    for c in range(layout.d):
        seen = select(less(get(buffer, layout.x + t * layout.d + c), broadcast(np.inf)), one, seen)
    put(buffer, layout.any, seen)


@inlined
def _backward_mean(buffer, layout, t, k):
    """Fill state with the smoothed mean of s_t, u with u_t, and q with r_{t-1}; r stays r_t. All zero after an end."""
    n, d = layout.n, layout.d
    u = layout.u + t * d
    left_turned(buffer, layout.q, layout.A, layout.r, n, n, layout.one, SET)
    copy(buffer, layout.state, layout.filtered + t * n, n)
    product(buffer, layout.state, layout.P + k * n * n, layout.q, n, n, layout.one, ADD)
    left_turned(buffer, u, layout.K + k * n * d, layout.q, d, n, layout.one, SUBTRACT)
    left_turned(buffer, layout.q, layout.C, u, n, d, layout.one, ADD)


@inlined
def _terms(buffer, layout, k):
    """Fill Lambda, the smoothed covariance, and the terms N A P of A, -K^T (I - Lambda P) of C and of R, at step k."""
    n, d = layout.n, layout.d
    P, K, S = layout.P + k * n * n, layout.K + k * n * d, layout.S + k * d * d
    product(buffer, layout.w1, layout.N, layout.A, n, n, n, SET)
    product(buffer, layout.term_a, layout.w1, P, n, n, n, SET)
    turned_square_of(buffer, layout.Lambda, layout.A, layout.w1, n, n, SET)
    product(buffer, layout.w1, layout.Lambda, P, n, n, n, SET)
    copy(buffer, layout.smoothed, P, n * n)
    turned_square_of(buffer, layout.smoothed, P, layout.w1, n, n, SUBTRACT)
    left_turned(buffer, layout.term_c, K, layout.w1, d, n, n, SET)
    for c in range(d):
        for i in range(n):
            put(buffer, layout.term_c + c * n + i, get(buffer, layout.term_c + c * n + i) - get(buffer, K + i * d + c))
    left_turned(buffer, layout.wide, layout.Lambda, K, n, n, d, SET)
    copy(buffer, layout.term_r, S, d * d)
    turned_square_of(buffer, layout.term_r, K, layout.wide, d, n, ADD)
    for c in range(d * d):
        put(buffer, layout.term_r + c, broadcast(-0.5) * get(buffer, layout.term_r + c))


@inlined
def _retreat(buffer, layout, k):
    """Replace N by C^T S^-1 C + (I - K C)^T Lambda (I - K C), a sum of squares, of step k; w3 keeps the old N."""
    n, d = layout.n, layout.d
    copy(buffer, layout.w3, layout.N, n * n)
    product(buffer, layout.w1, layout.K + k * n * d, layout.C, n, d, n, SET)
    one_minus(buffer, layout.w1, n)
    product(buffer, layout.w2, layout.Lambda, layout.w1, n, n, n, SET)
    turned_square_of(buffer, layout.N, layout.w1, layout.w2, n, n, SET)
    product(buffer, layout.wide, layout.S + k * d * d, layout.C, d, d, n, SET)
    turned_square_of(buffer, layout.N, layout.C, layout.wide, n, d, ADD)
    wipe(buffer, layout.active, layout.N, n * n)


@inlined
def _settle(buffer, layout, t):
    """Keep the old N of steady series, and flag those that have just become steady."""
    keep(buffer, layout.steady, layout.N, layout.w3, layout.n * layout.n)
    flag_close(buffer, layout.flag, layout.N, layout.w3, layout.n, STEADY)
    settled = select(
        less(get(buffer, layout.since), broadcast(float(t))),
        get(buffer, layout.flag) * get(buffer, layout.moves),
        zero(),
    )
    put(buffer, layout.steady, select(less(broadcast(0.5), get(buffer, layout.steady)), broadcast(1.0), settled))


@part
def smooth_step(buffer, layout, t, last):
    """Go back one step of the smoother: fill state, smoothed (a square, positive) and term_a with Cov(s_{t+1}, s_t)."""
    apart()
    n, k = layout.n, min(t, last)
    P = layout.P + k * n * n
    _flags(buffer, layout, t)
    _backward_mean(buffer, layout, t, k)
    copy(buffer, layout.r, layout.q, n)
    # Cov(s_{t+1}, s_t) = (I - P' N) A P, with the predicted P' = A P A^T + Q
    product(buffer, layout.w1, layout.A, P, n, n, n, SET)
    copy(buffer, layout.w2, layout.Q, n * n)
    square_of(buffer, layout.w2, layout.w1, layout.A, n, n, ADD)
    product(buffer, layout.w3, layout.w2, layout.N, n, n, n, SET)
    copy(buffer, layout.term_a, layout.w1, n * n)
    product(buffer, layout.term_a, layout.w3, layout.w1, n, n, n, SUBTRACT)
    product(buffer, layout.w1, layout.N, layout.A, n, n, n, SET)
    turned_square_of(buffer, layout.Lambda, layout.A, layout.w1, n, n, SET)
    _smoothed_cov(buffer, layout, P)
    _retreat(buffer, layout, k)


@inlined
def _smoothed_cov(buffer, layout, P):
    """Fill smoothed with P - P Lambda P = L (D - D L^T Lambda L D) L^T, P = L D L^T; the middle is factorised again."""
    n = layout.n
    copy(buffer, layout.w1, P, n * n)
    factorise(buffer, layout.w1, layout.pivots, n)
    product(buffer, layout.w2, layout.Lambda, layout.w1, n, n, n, SET)
    turned_square_of(buffer, layout.w3, layout.w1, layout.w2, n, n, SET)
    for i in range(n):
        for j in range(n):
            whole = get(buffer, layout.pivots + i) if i == j else zero()
            part = get(buffer, layout.pivots + i) * get(buffer, layout.w3 + i * n + j) * get(buffer, layout.pivots + j)
            put(buffer, layout.w3 + i * n + j, whole - part)
    factorise(buffer, layout.w3, layout.pivots, n)
    product(buffer, layout.w2, layout.w1, layout.w3, n, n, n, SET)
    for i in range(n):
        for j in range(n):
            put(buffer, layout.w1 + i * n + j, get(buffer, layout.w2 + i * n + j) * get(buffer, layout.pivots + j))
    square_of(buffer, layout.smoothed, layout.w1, layout.w2, n, n, SET)
