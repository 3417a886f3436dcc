"""Passes for at most three states and a few symbols: all arithmetic of a step is done in registers.

A lane is a sequence, as in ``hmm.quads``, with the same layout of the buffer. Each lane selects its emission factors
by masks, bits of the integers of a group. Only the predicted masses of a step are stored, which for most lengths fit
the first-level cache. The backward pass gathers pair counts and emission derivatives in registers and stores nothing
until a sequence ends. That needs the 32 registers of AVX-512; with 16 of half the size, where most numbers are spilled
to the stack, it is still faster than one loop for each quantity.

Over ``hmm.quads``, 1000 sequences of 100 symbols gain, for three states, 1.5 to 1.8 times for log P; for derivatives
2.0 times with two symbols and 1.5 with three or four. For four states it was 1.0 to 1.4 times: they are left to it.
"""

from __future__ import annotations

import numpy as np

from genkern.core.hmm.few_lanes import BYTES, ENDING, FIRST_MASK, LINE, QUAD, STEP, bring, bring_factors, bring_masks
from genkern.core.hmm.rows import LARGEST, LENGTH, LOG_2, OBJECT, SLOT, SMALLEST, STRIDE, enter, sum_of_shifts
from genkern.core.hmm.states import clear
from genkern.core.jit import inlined, kernel, part
from genkern.core.simd.shuffle import exponent, inverse_power, mask_at
from genkern.core.simd.vectors import W, broadcast, element, less, load, multiply_add, select, store, zero


@kernel
def few_pass(problem, rows, job, out, layout, buffer, ints):
    """Set log P of the members, nan where out of range, and add their derivatives to their slots."""
    for group in range(len(job.members)):
        enter(problem, job, group, ints, False)
        bring(problem, group, layout, buffer, ints)
        bring_factors(problem, group, layout, buffer, ints)
        bring_masks(problem, layout, ints)
        _forward(problem, rows, layout, buffer, ints, out)
        if job.derivatives:
            _backward(layout, buffer, ints)
            _leave(layout, buffer, ints, out)


@inlined
def _factor(buffer, ints, layout, state, byte, two):
    """Return the factors of the state at offset ``state`` among those of a symbol, for the step of a byte of masks."""
    apart, factors = layout.masks * BYTES, layout.symbols + state
    low = select(mask_at(ints, byte + apart), load(buffer, factors + LINE), load(buffer, factors))
    if two:
        return low
    low = select(mask_at(ints, byte + 2 * apart), load(buffer, factors + 2 * LINE), low)
    return select(mask_at(ints, byte + 3 * apart), load(buffer, factors + 3 * LINE), low)


@inlined
def _three(buffer, offset):
    """Return three vectors, one after the other."""
    return load(buffer, offset), load(buffer, offset + W), load(buffer, offset + 2 * W)


@inlined
def _keep_three(buffer, offset, vectors):
    """Store three vectors, one after the other."""
    store(buffer, offset, vectors[0])
    store(buffer, offset + W, vectors[1])
    store(buffer, offset + 2 * W, vectors[2])


# --- forward


@part
def _forward(problem, rows, layout, buffer, ints, out):
    """Run the forward pass of a group, keeping pred and scale; set log P as the lanes end."""
    lane, t, longest = 0, 0, ints[LENGTH + W - 1]
    store(buffer, layout.mass, broadcast(1.0))
    store(buffer, layout.mass + W, zero())
    while ints[LENGTH + lane] == 0:
        lane += 1
    while t < longest:
        stop = ints[LENGTH + lane]
        _advance(layout, buffer, ints, t, stop)
        t = stop
        lane = _end_lanes(problem, rows, layout, buffer, ints, lane, out)


@part
def _end_lanes(problem, rows, layout, buffer, ints, lane, out):
    """Set log P and the derivatives of the end weights of the sequences that end with this lane's; empty their lanes.

    Return the next lane. This is ``hmm.lanes.end_lane`` for all of them at once, except for the logarithm.
    """
    stop, now, end, total = ints[LENGTH + lane], layout.now, layout.end, zero()
    ended = _lanes_ending(ints, stop)
    for k in range(0, LINE, W):
        total = multiply_add(load(buffer, now + k), load(buffer, end + k), total)
    store(buffer, layout.sums, total)
    for k in range(0, LINE, W):
        store(buffer, layout.sums + W + k, load(buffer, now + k) / total)
        store(buffer, now + k, select(ended, zero(), load(buffer, now + k)))
    while lane < W and ints[LENGTH + lane] == stop:
        i, slot, mass = ints[OBJECT + lane], ints[SLOT + lane], element(buffer, layout.sums + lane)
        shift = sum_of_shifts(problem, i) if rows.has_shift else 0.0
        in_range = element(buffer, layout.mass + lane) == 1.0 and SMALLEST < mass < LARGEST
        out.log_prob[i] = np.log(mass) + LOG_2 * element(buffer, layout.mass + W + lane) + shift if in_range else np.nan
        # An infinite mass makes all derivatives of a sequence that is out of range vanish.
        buffer[layout.mass + 2 * W + lane] = mass if in_range else np.inf
        if layout.stride and in_range:
            for k in range(layout.n):
                out.end[slot, k] += element(buffer, layout.sums + W + k * W + lane)
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


@part
def _advance(layout, buffer, ints, first, stop):
    """Take the message ``now`` from one step to another, keeping pred."""
    now, start, two = layout.now, layout.start, layout.few == 2
    A, B, C = _three(buffer, layout.A), _three(buffer, layout.A + LINE), _three(buffer, layout.A + 2 * LINE)
    a, b, c = _three(buffer, now)
    for t in range(first, stop):
        p, q, r = _three(buffer, start)
        if t:
            p, q, r = a * A[0], a * A[1], a * A[2]
            p, q, r = multiply_add(b, B[0], p), multiply_add(b, B[1], q), multiply_add(b, B[2], r)
            p, q, r = multiply_add(c, C[0], p), multiply_add(c, C[1], q), multiply_add(c, C[2], r)
        pred, byte = layout.pred + t * layout.stride * STEP, FIRST_MASK + t
        _keep_three(buffer, pred, (p, q, r))
        a, b = p * _factor(buffer, ints, layout, 0, byte, two), q * _factor(buffer, ints, layout, W, byte, two)
        c = r * _factor(buffer, ints, layout, 2 * W, byte, two)
        if t % STRIDE == STRIDE - 1:
            # A power of two per lane; lanes that have left their range are marked.
            total = (a + b) + c
            inverse, mass = inverse_power(total), layout.mass
            a, b, c = a * inverse, b * inverse, c * inverse
            store(buffer, layout.scale + t // STRIDE * W, inverse)
            store(buffer, mass + W, load(buffer, mass + W) + exponent(total))
            valid = select(less(total, broadcast(LARGEST)), load(buffer, mass), zero())
            store(buffer, mass, select(less(broadcast(SMALLEST), total), valid, zero()))
    _keep_three(buffer, now, (a, b, c))


# --- backward


@part
def _backward(layout, buffer, ints):
    """Run the backward pass: set ``pairs`` to pair counts, ``sums`` and ``now`` to emission and start derivatives."""
    lane, t = W - 1, ints[LENGTH + W - 1]
    clear(buffer, layout.pairs, QUAD * LINE)
    clear(buffer, layout.sums, QUAD * LINE)
    clear(buffer, layout.now, LINE)
    while t > 0:
        # Sequences that end here get their backward message at their last step only.
        ended = _lanes_ending(ints, t)
        for k in range(0, LINE, W):
            arriving = load(buffer, layout.end + k) / load(buffer, layout.mass + 2 * W)
            store(buffer, layout.arriving + k, select(ended, arriving, zero()))
        while lane >= 0 and ints[LENGTH + lane] == t:
            lane -= 1
        _retreat(layout, buffer, ints, t, t - 1)
        clear(buffer, layout.arriving, LINE)
        stop = ints[LENGTH + lane] if lane >= 0 else 0
        _retreat(layout, buffer, ints, t - 1, stop)
        t = stop


@inlined
def _weigh(buffer, ints, layout, sums, g, byte, two):
    """Return the sums of a state's emission derivatives, by symbol, including one more step."""
    p, q, r, s = sums
    apart = layout.masks * BYTES
    second = mask_at(ints, byte + apart)
    q = select(second, q + g, q)
    if two:
        return select(second, p, p + g), q, r, s
    third, fourth = mask_at(ints, byte + 2 * apart), mask_at(ints, byte + 3 * apart)
    return select(mask_at(ints, byte), p + g, p), q, select(third, r + g, r), select(fourth, s + g, s)


@inlined
def _by_symbol(buffer, offset):
    """Return the vectors of one state, of all symbols."""
    return (
        load(buffer, offset),
        load(buffer, offset + LINE),
        load(buffer, offset + 2 * LINE),
        load(buffer, offset + 3 * LINE),
    )


@inlined
def _keep_by_symbol(buffer, offset, vectors):
    """Store the vectors of one state, of all symbols."""
    store(buffer, offset, vectors[0])
    store(buffer, offset + LINE, vectors[1])
    store(buffer, offset + 2 * LINE, vectors[2])
    store(buffer, offset + 3 * LINE, vectors[3])


@inlined
def _times(w, row, start):
    """Return the sum of products of a row of three with the future, and a start."""
    return multiply_add(w[2], row[2], multiply_add(w[1], row[1], multiply_add(w[0], row[0], start)))


@inlined
def _paired(sums, alpha, w):
    """Return the pair counts of one state with all next ones, including one more step."""
    return multiply_add(alpha, w[0], sums[0]), multiply_add(alpha, w[1], sums[1]), multiply_add(alpha, w[2], sums[2])


@part
def _retreat(layout, buffer, ints, last, first):
    """Take the backward message from step ``last`` to step ``first``; gather pair counts and emission derivatives."""
    now, end, pairs, sums, two = layout.now, layout.arriving, layout.pairs, layout.sums, layout.few == 2
    A, B, C = _three(buffer, layout.A), _three(buffer, layout.A + LINE), _three(buffer, layout.A + 2 * LINE)
    P, Q, R = _three(buffer, pairs), _three(buffer, pairs + LINE), _three(buffer, pairs + 2 * LINE)
    F, G, H = _by_symbol(buffer, sums), _by_symbol(buffer, sums + W), _by_symbol(buffer, sums + 2 * W)
    w = _three(buffer, now)
    for t in range(last - 1, first - 1, -1):
        x, y, z = _three(buffer, end)
        if t % STRIDE == STRIDE - 1:
            # The message of this step was rescaled, and so must be all that is computed from it.
            scale = load(buffer, layout.scale + t // STRIDE * W)
            w = w[0] * scale, w[1] * scale, w[2] * scale
            x, y, z = x * scale, y * scale, z * scale
        x, y, z = _times(w, A, x), _times(w, B, y), _times(w, C, z)
        pred, byte = layout.pred + t * STEP, FIRST_MASK + t
        b, c = _factor(buffer, ints, layout, 0, byte, two), _factor(buffer, ints, layout, W, byte, two)
        d = _factor(buffer, ints, layout, 2 * W, byte, two)
        p, q, r = _three(buffer, pred)
        P, Q, R = _paired(P, p * b, w), _paired(Q, q * c, w), _paired(R, r * d, w)
        F, G = _weigh(buffer, ints, layout, F, p * x, byte, two), _weigh(buffer, ints, layout, G, q * y, byte, two)
        H = _weigh(buffer, ints, layout, H, r * z, byte, two)
        w = x * b, y * c, z * d
    _keep_three(buffer, pairs, P)
    _keep_three(buffer, pairs + LINE, Q)
    _keep_three(buffer, pairs + 2 * LINE, R)
    _keep_by_symbol(buffer, sums, F)
    _keep_by_symbol(buffer, sums + W, G)
    _keep_by_symbol(buffer, sums + 2 * W, H)
    _keep_three(buffer, now, w)


@part
def _leave(layout, buffer, ints, out):
    """Add the derivatives of the lanes to their slots; mark lanes in which anything overflowed."""
    n, few, total = layout.n, layout.few, zero()
    for k in range(0, LINE, W):
        total = total + load(buffer, layout.now + k)
    for k in range(0, QUAD * LINE, W):
        total = total + (load(buffer, layout.pairs + k) + load(buffer, layout.sums + k))
    store(buffer, layout.arriving, total)
    for lane in range(W):
        if ints[LENGTH + lane] == 0:
            continue
        slot = ints[SLOT + lane]
        for k in range(n):
            out.start[slot, k] += element(buffer, layout.now + k * W + lane)
            for j in range(n):
                out.transitions[slot, k, j] += element(buffer, layout.pairs + k * LINE + j * W + lane)
            for symbol in range(few):
                out.emissions[slot * few + symbol, k] += element(buffer, layout.sums + symbol * LINE + k * W + lane)
        if not element(buffer, layout.arriving + lane) < np.inf:
            out.log_prob[ints[OBJECT + lane]] = np.nan
