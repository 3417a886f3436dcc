"""Passes for at most four states and a few symbols: all of a step happens in registers.

A lane is a sequence, as in ``hmm.quads``, whose places in the buffer serve here too. Each lane chooses its emission
factors by masks, bits of the integers of a block: nothing is kept of a step but the predicted masses, which for the
lengths of most sequences then stay in the first-level cache. The backward pass gathers pair counts and emission
derivatives in registers and stores nothing until a sequence ends. That wants the 32 registers of AVX-512, but with 16
of half the size, where most of them live on the stack, it is still faster than loops that do one thing each.
"""

from __future__ import annotations

import numpy as np

from genkern.core.hmm.few_lanes import BYTES, ENDING, FIRST_MASK, LINE, QUAD, bring, bring_factors, bring_masks
from genkern.core.hmm.rows import LARGEST, LENGTH, LOG_2, OBJECT, SLOT, SMALLEST, STRIDE, enter, sum_of_shifts
from genkern.core.hmm.states import clear
from genkern.core.jit import inlined, kernel
from genkern.core.simd.shuffle import exponent, inverse_power, mask_at
from genkern.core.simd.vectors import W, broadcast, element, less, load, multiply_add, select, store, zero


@kernel
def few_pass(problem, rows, job, out, at, m, ints):
    """Set log P of the members, nan where out of range, and add their derivatives to their slots."""
    for block in range(len(job.members)):
        enter(problem, job, block, ints, False)
        bring(problem, block, at, m, ints)
        bring_factors(problem, block, at, m, ints)
        bring_masks(problem, at, ints)
        _forward(problem, rows, at, m, ints, out)
        if job.derivatives:
            _backward(at, m, ints)
            _leave(at, m, ints, out)


@inlined
def _factor(m, ints, at, place, byte, two):
    """Return the factors of one state, at ``place`` among those of a symbol, for the step of a byte of masks."""
    apart, factors = at.masks * BYTES, at.symbols + place
    low = select(mask_at(ints, byte + apart), load(m, factors + LINE), load(m, factors))
    if two:
        return low
    low = select(mask_at(ints, byte + 2 * apart), load(m, factors + 2 * LINE), low)
    return select(mask_at(ints, byte + 3 * apart), load(m, factors + 3 * LINE), low)


# --- forward


@kernel
def _forward(problem, rows, at, m, ints, out):
    """Run the forward pass of a block, keeping pred and scale; set log P as the lanes end."""
    lane = np.int64(0)  # int64, as Numba compiles callees once more for a literal
    t, longest = 0, ints[LENGTH + W - 1]
    store(m, at.mass, broadcast(1.0))
    store(m, at.mass + W, zero())
    while ints[LENGTH + lane] == 0:
        lane += 1
    while t < longest:
        stop = ints[LENGTH + lane]
        if at.n == QUAD:
            _advance(at, m, ints, t, stop, True, at.few == 2)
        else:
            _advance(at, m, ints, t, stop, False, at.few == 2)
        t = stop
        lane = _end_lanes(problem, rows, at, m, ints, lane, out)


@kernel
def _end_lanes(problem, rows, at, m, ints, lane, out):
    """Set log P and the derivatives of the end weights of the sequences that end with this lane's; empty their lanes.

    Return the next lane. This is ``hmm_lanes.end_lane`` for all of them at once, but for the logarithm.
    """
    stop, now, end, total = ints[LENGTH + lane], at.now, at.end, zero()
    ended = _lanes_ending(ints, stop)
    for k in range(0, LINE, W):
        total = multiply_add(load(m, now + k), load(m, end + k), total)
    store(m, at.sums, total)
    for k in range(0, LINE, W):
        store(m, at.sums + W + k, load(m, now + k) / total)
        store(m, now + k, select(ended, zero(), load(m, now + k)))
    while lane < W and ints[LENGTH + lane] == stop:
        i, slot, mass = ints[OBJECT + lane], ints[SLOT + lane], element(m, at.sums + lane)
        shift = sum_of_shifts(problem, i) if rows.has_shift else 0.0
        in_range = element(m, at.mass + lane) == 1.0 and SMALLEST < mass < LARGEST
        out.log_prob[i] = np.log(mass) + LOG_2 * element(m, at.mass + W + lane) + shift if in_range else np.nan
        # An infinite mass makes all derivatives of a sequence that is out of range vanish.
        m[at.mass + 2 * W + lane] = mass if in_range else np.inf
        if at.stride and in_range:
            for k in range(at.n):
                out.end[slot, k] += element(m, at.sums + W + k * W + lane)
        lane += 1
    return lane


@inlined
def _lanes_ending(ints, stop):
    """Return the mask of the lanes whose sequences have this length."""
    bits = 0
    for lane in range(W):
        bits |= (1 << lane) if element(ints, LENGTH + lane) == stop else 0
    ints[ENDING] = bits
    return mask_at(ints, ENDING * BYTES)


@inlined
def _advance(at, m, ints, first, stop, four, two):
    """Take the message ``now`` from one step to another, keeping pred; ``four`` states or three, ``two`` symbols."""
    now, A, line = at.now, at.A, LINE if four else LINE - W
    A00, A01, A02 = load(m, A), load(m, A + W), load(m, A + 2 * W)
    A10, A11, A12 = load(m, A + LINE), load(m, A + LINE + W), load(m, A + LINE + 2 * W)
    A20, A21, A22 = load(m, A + 2 * LINE), load(m, A + 2 * LINE + W), load(m, A + 2 * LINE + 2 * W)
    a, b, c, d = load(m, now), load(m, now + W), load(m, now + 2 * W), load(m, now + 3 * W)
    for t in range(first, stop):
        p, q, r, s = load(m, at.start), load(m, at.start + W), load(m, at.start + 2 * W), load(m, at.start + 3 * W)
        if t:
            p, q, r = a * A00, a * A01, a * A02
            p, q, r = multiply_add(b, A10, p), multiply_add(b, A11, q), multiply_add(b, A12, r)
            p, q, r = multiply_add(c, A20, p), multiply_add(c, A21, q), multiply_add(c, A22, r)
            if four:
                last = A + 3 * LINE
                p, q = multiply_add(d, load(m, last), p), multiply_add(d, load(m, last + W), q)
                r, s = multiply_add(d, load(m, last + 2 * W), r), d * load(m, last + 3 * W)
                s = multiply_add(a, load(m, A + 3 * W), s)
                s = multiply_add(b, load(m, A + LINE + 3 * W), s)
                s = multiply_add(c, load(m, A + 2 * LINE + 3 * W), s)
        pred, byte = at.pred + t * at.stride * line, FIRST_MASK + t
        store(m, pred, p)
        store(m, pred + W, q)
        store(m, pred + 2 * W, r)
        a, b = p * _factor(m, ints, at, 0, byte, two), q * _factor(m, ints, at, W, byte, two)
        c = r * _factor(m, ints, at, 2 * W, byte, two)
        if four:
            store(m, pred + 3 * W, s)
            d = s * _factor(m, ints, at, 3 * W, byte, two)
        if t % STRIDE == STRIDE - 1:
            # A power of two per lane; lanes that have left their range are marked.
            total = (a + b) + (c + d)
            inverse, mass = inverse_power(total), at.mass
            a, b, c, d = a * inverse, b * inverse, c * inverse, d * inverse
            store(m, at.scale + t // STRIDE * W, inverse)
            store(m, mass + W, load(m, mass + W) + exponent(total))
            valid = select(less(total, broadcast(LARGEST)), load(m, mass), zero())
            store(m, mass, select(less(broadcast(SMALLEST), total), valid, zero()))
    store(m, now, a)
    store(m, now + W, b)
    store(m, now + 2 * W, c)
    store(m, now + 3 * W, d)


# --- backward


@kernel
def _backward(at, m, ints):
    """Run the backward pass: pair counts go to ``pairs``, emission derivatives to ``sums``, that of start to now."""
    lane, t = W - 1, ints[LENGTH + W - 1]
    clear(m, at.pairs, QUAD * LINE)
    clear(m, at.sums, QUAD * LINE)
    clear(m, at.now, LINE)
    while t > 0:
        # The sequences that end here bring their future to the last step of theirs, and to no other.
        ended = _lanes_ending(ints, t)
        for k in range(0, LINE, W):
            arriving = load(m, at.end + k) / load(m, at.mass + 2 * W)
            store(m, at.arriving + k, select(ended, arriving, zero()))
        while lane >= 0 and ints[LENGTH + lane] == t:
            lane -= 1
        _retreat(at, m, ints, t, t - 1)
        clear(m, at.arriving, LINE)
        stop = ints[LENGTH + lane] if lane >= 0 else 0
        _retreat(at, m, ints, t - 1, stop)
        t = stop


@kernel
def _retreat(at, m, ints, last, first):
    """Take the future from before step ``last`` back to step ``first``."""
    if at.n == QUAD:
        _recede_four(at, m, ints, last, first, at.few == 2)
    else:
        _recede_three(at, m, ints, last, first, at.few == 2)


@inlined
def _weigh(m, ints, at, sums, g, byte, two):
    """Return the sums of a state's emission derivatives, by symbol, with those of one more step."""
    p, q, r, s = sums
    apart = at.masks * BYTES
    second = mask_at(ints, byte + apart)
    q = select(second, q + g, q)
    if two:
        return select(second, p, p + g), q, r, s
    third, fourth = mask_at(ints, byte + 2 * apart), mask_at(ints, byte + 3 * apart)
    return select(mask_at(ints, byte), p + g, p), q, select(third, r + g, r), select(fourth, s + g, s)


@inlined
def _four(m, place, apart):
    """Return four vectors that lie so far apart."""
    return load(m, place), load(m, place + apart), load(m, place + 2 * apart), load(m, place + 3 * apart)


@inlined
def _keep(m, place, apart, vectors):
    """Store four vectors so far apart."""
    p, q, r, s = vectors
    store(m, place, p)
    store(m, place + apart, q)
    store(m, place + 2 * apart, r)
    store(m, place + 3 * apart, s)


@inlined
def _times(w, row, start):
    """Return the sum of products of a row of three with the future, and a start."""
    return multiply_add(w[2], row[2], multiply_add(w[1], row[1], multiply_add(w[0], row[0], start)))


@inlined
def _paired(sums, alpha, w):
    """Return the pair counts of three states after one, with those of one more step."""
    return (
        multiply_add(alpha, w[0], sums[0]),
        multiply_add(alpha, w[1], sums[1]),
        multiply_add(alpha, w[2], sums[2]),
        sums[3],
    )


@inlined
def _recede_three(at, m, ints, last, first, two):
    """Retreat over some steps: gather pair counts and emission derivatives of three states."""
    now, end, pairs, sums, line = at.now, at.arriving, at.pairs, at.sums, LINE - W
    A, B, C = _four(m, at.A, W), _four(m, at.A + LINE, W), _four(m, at.A + 2 * LINE, W)
    P, Q, R = _four(m, pairs, W), _four(m, pairs + LINE, W), _four(m, pairs + 2 * LINE, W)
    F, G, H = _four(m, sums, LINE), _four(m, sums + W, LINE), _four(m, sums + 2 * W, LINE)
    w = load(m, now), load(m, now + W), load(m, now + 2 * W)
    for t in range(last - 1, first - 1, -1):
        x, y, z = load(m, end), load(m, end + W), load(m, end + 2 * W)
        if t % STRIDE == STRIDE - 1:
            # The message of this step was rescaled, and with it all that comes of it.
            scale = load(m, at.scale + t // STRIDE * W)
            w = w[0] * scale, w[1] * scale, w[2] * scale
            x, y, z = x * scale, y * scale, z * scale
        x, y, z = _times(w, A, x), _times(w, B, y), _times(w, C, z)
        pred, byte = at.pred + t * line, FIRST_MASK + t
        b, c = _factor(m, ints, at, 0, byte, two), _factor(m, ints, at, W, byte, two)
        d = _factor(m, ints, at, 2 * W, byte, two)
        p, q, r = load(m, pred), load(m, pred + W), load(m, pred + 2 * W)
        P, Q, R = _paired(P, p * b, w), _paired(Q, q * c, w), _paired(R, r * d, w)
        F, G = _weigh(m, ints, at, F, p * x, byte, two), _weigh(m, ints, at, G, q * y, byte, two)
        H = _weigh(m, ints, at, H, r * z, byte, two)
        w = x * b, y * c, z * d
    _keep(m, pairs, W, P)
    _keep(m, pairs + LINE, W, Q)
    _keep(m, pairs + 2 * LINE, W, R)
    _keep(m, sums, LINE, F)
    _keep(m, sums + W, LINE, G)
    _keep(m, sums + 2 * W, LINE, H)
    _keep(m, now, W, (w[0], w[1], w[2], zero()))


@inlined
def _recede_four(at, m, ints, last, first, two):
    """Retreat over some steps: gather pair counts and emission derivatives of four states."""
    now, end, pairs, sums, line = at.now, at.arriving, at.pairs, at.sums, LINE
    A, B, C = _four(m, at.A, W), _four(m, at.A + LINE, W), _four(m, at.A + 2 * LINE, W)
    D, P, Q = _four(m, at.A + 3 * LINE, W), _four(m, pairs, W), _four(m, pairs + LINE, W)
    R, S = _four(m, pairs + 2 * LINE, W), _four(m, pairs + 3 * LINE, W)
    F, G, H = _four(m, sums, LINE), _four(m, sums + W, LINE), _four(m, sums + 2 * W, LINE)
    K, w = _four(m, sums + 3 * W, LINE), _four(m, now, W)
    for t in range(last - 1, first - 1, -1):
        x, y, z, u = _four(m, end, W)
        if t % STRIDE == STRIDE - 1:
            # The message of this step was rescaled, and with it all that comes of it.
            scale = load(m, at.scale + t // STRIDE * W)
            w = w[0] * scale, w[1] * scale, w[2] * scale, w[3] * scale
            x, y, z, u = x * scale, y * scale, z * scale, u * scale
        x, y = multiply_add(w[3], A[3], _times(w, A, x)), multiply_add(w[3], B[3], _times(w, B, y))
        z, u = multiply_add(w[3], C[3], _times(w, C, z)), multiply_add(w[3], D[3], _times(w, D, u))
        byte = FIRST_MASK + t
        b, c = _factor(m, ints, at, 0, byte, two), _factor(m, ints, at, W, byte, two)
        d, e = _factor(m, ints, at, 2 * W, byte, two), _factor(m, ints, at, 3 * W, byte, two)
        p, q, r, s = _four(m, at.pred + t * line, W)
        P, Q, R, S = (
            _all_paired(P, p * b, w),
            _all_paired(Q, q * c, w),
            _all_paired(R, r * d, w),
            _all_paired(S, s * e, w),
        )
        F, G = _weigh(m, ints, at, F, p * x, byte, two), _weigh(m, ints, at, G, q * y, byte, two)
        H, K = _weigh(m, ints, at, H, r * z, byte, two), _weigh(m, ints, at, K, s * u, byte, two)
        w = x * b, y * c, z * d, u * e
    _keep(m, pairs, W, P)
    _keep(m, pairs + LINE, W, Q)
    _keep(m, pairs + 2 * LINE, W, R)
    _keep(m, pairs + 3 * LINE, W, S)
    _keep(m, sums, LINE, F)
    _keep(m, sums + W, LINE, G)
    _keep(m, sums + 2 * W, LINE, H)
    _keep(m, sums + 3 * W, LINE, K)
    _keep(m, now, W, w)


@inlined
def _all_paired(sums, alpha, w):
    """Return the pair counts of four states after one, with those of one more step."""
    p, q, r, s = _paired(sums, alpha, w)
    return p, q, r, multiply_add(alpha, w[3], s)


@kernel
def _leave(at, m, ints, out):
    """Add the derivatives of the lanes to their slots; mark lanes in which anything overflowed."""
    n, few, total = at.n, at.few, zero()
    for k in range(0, LINE, W):
        total = total + load(m, at.now + k)
    for k in range(0, QUAD * LINE, W):
        total = total + (load(m, at.pairs + k) + load(m, at.sums + k))
    store(m, at.arriving, total)
    for lane in range(W):
        if ints[LENGTH + lane] == 0:
            continue
        slot = ints[SLOT + lane]
        for k in range(n):
            out.start[slot, k] += element(m, at.now + k * W + lane)
            for j in range(n):
                out.transitions[slot, k, j] += element(m, at.pairs + k * LINE + j * W + lane)
            for symbol in range(few):
                out.emissions[slot * few + symbol, k] += element(m, at.sums + symbol * LINE + k * W + lane)
        if not element(m, at.arriving + lane) < np.inf:
            out.log_prob[ints[OBJECT + lane]] = np.nan
