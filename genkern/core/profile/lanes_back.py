"""The way back of ``profile.lanes``: derivatives of log P of eight sequences by all weights.

A derivative is the sum over steps of the mass before a transition or an emission times what the rest of the sequence
makes of it; nothing is divided by a weight, which may be zero.
"""

from __future__ import annotations

from genkern.core.jit import inlined, kernel, part
from genkern.core.profile.lanes import (
    LENGTH,
    OBJECT,
    ROWS,
    SLOT,
    STRIDE,
    advance,
    arriving,
    edge,
    enter,
    forward,
    gather,
    longest,
    weight,
)
from genkern.core.profile.types import CC, CT, DD, DM, EC, EJ, EN, II, IM, JB, JJ, MD, MI, MM, N_AROUND, NB, NN, XD, XM
from genkern.core.simd.shuffle import transpose
from genkern.core.simd.vectors import W, element, load, multiply_add, store, zero


@kernel
def lanes_pass(profile, sequences, members, slots, out, layout, buffer, ints):
    """Set log P of the members (B, 8), -1 for an empty lane, and add derivatives, if ``out`` has slots for them."""
    derivatives = len(out.table) > 0
    for group in range(len(members)):
        enter(profile, sequences, members, slots, group, layout, buffer, ints)
        forward(profile, out, layout, buffer, ints, derivatives)
        if derivatives:
            backward(profile, out, layout, buffer, ints)
            leave(profile, out, layout, buffer, ints)


@part
def backward(profile, out, layout, buffer, ints):
    """Run the backward pass of a group: derivatives by weights into ``sums``, those by the table into its slots."""
    steps, whole = longest(ints), layout.whole
    for k in range(layout.back, layout.scale, W):
        store(buffer, k, zero())
    for t in range(steps, -1, -1):
        slot = t % STRIDE
        if t == steps or slot == STRIDE - 1:
            recompute(profile, layout, buffer, ints, t)
        now = layout.block + slot * whole
        if t < steps:
            if slot == STRIDE - 1:
                scale = load(buffer, layout.scale + (t + 1) // STRIDE * W)
                for k in range(layout.back, layout.back + whole, W):
                    store(buffer, k, load(buffer, k) * scale)
            gather(profile.table, layout, buffer, ints, t)
            emit(profile, layout, buffer, now)
            scatter(profile.table, out.table, layout, buffer, ints, t)
        arrive(out, layout, buffer, ints, t, now)
        retreat(profile, layout, buffer, now)


@part
def recompute(profile, layout, buffer, ints, t):
    """Compute the messages from the last one kept up to step t, in the block."""
    first = t - t % STRIDE
    for k in range(0, layout.whole, W):
        store(buffer, layout.block + k, load(buffer, layout.kept + first // STRIDE * layout.whole + k))
    for s in range(1, t - first + 1):
        gather(profile.table, layout, buffer, ints, first + s - 1)
        advance(profile, layout, buffer, layout.block + (s - 1) * layout.whole, layout.block + s * layout.whole)


@part
def emit(profile, layout, buffer, now):
    """Multiply futures after a step by its emission factors; leave the derivatives by the factors in their place."""
    columns, line, back, factors = profile.columns, layout.line, layout.back, layout.factors
    begun, i, d = load(buffer, now), load(buffer, now + line), zero()
    mass = multiply_add(begun, weight(columns, MI, 0), i * weight(columns, II, 0))
    weigh(buffer, back + line, factors + line, mass)
    m, f = begun, load(buffer, factors)
    for k in range(1, profile.size + 1):
        at = k * W
        weigh(buffer, back + at, factors + at, arriving(columns, k, m, i, d, begun))
        m, i, d = load(buffer, now + at), load(buffer, now + line + at), load(buffer, now + 2 * line + at)
        mass = multiply_add(m, weight(columns, MI, k), i * weight(columns, II, k))
        weigh(buffer, back + line + at, factors + line + at, mass)
    store(buffer, factors, zero())
    for k in range(back + 3 * line, back + layout.whole, W):
        store(buffer, k, load(buffer, k) * f)


@inlined
def weigh(buffer, future, factor, mass):
    """Replace a future by its product with a factor, and the factor by the derivative."""
    after = load(buffer, future)
    store(buffer, future, after * load(buffer, factor))
    store(buffer, factor, after * mass)


@part
def scatter(table, derivatives, layout, buffer, ints, t):
    """Add vectors over lanes to the rows of the symbols of eight lanes at step t."""
    width, codes = table.shape[1], table.shape[0]
    for c in range(0, width, W):
        at = layout.factors + c * W
        v0, v1, v2, v3, v4, v5, v6, v7 = transpose(
            load(buffer, at),
            load(buffer, at + W),
            load(buffer, at + 2 * W),
            load(buffer, at + 3 * W),
            load(buffer, at + 4 * W),
            load(buffer, at + 5 * W),
            load(buffer, at + 6 * W),
            load(buffer, at + 7 * W),
        )
        r = ROWS + t * W
        add_row(derivatives, ints, codes * width, r, 0, c, v0)
        add_row(derivatives, ints, codes * width, r, 1, c, v1)
        add_row(derivatives, ints, codes * width, r, 2, c, v2)
        add_row(derivatives, ints, codes * width, r, 3, c, v3)
        add_row(derivatives, ints, codes * width, r, 4, c, v4)
        add_row(derivatives, ints, codes * width, r, 5, c, v5)
        add_row(derivatives, ints, codes * width, r, 6, c, v6)
        add_row(derivatives, ints, codes * width, r, 7, c, v7)


@inlined
def add_row(derivatives, ints, size, r, lane, column, v):
    """Add eight nodes of a lane to the row of its symbol in its slot."""
    to = element(ints, SLOT + lane) * size + element(ints, r + lane) + column
    store(derivatives, to, load(derivatives, to) + v)


@part
def arrive(out, layout, buffer, ints, t, now):
    """Let the lanes whose sequences end at step t begin: the future of C is what is left to the end, over P."""
    tail = 3 * layout.line + 2 * W
    for lane in range(W):
        i = ints[OBJECT + lane]
        if i >= 0 and ints[LENGTH + lane] == t and out.log_prob[i] == out.log_prob[i]:
            buffer[layout.mass + 2 * W + lane] = 1.0 / buffer[now + tail + lane]
            buffer[layout.sums + 10 * layout.line + CT * W + lane] = 1.0 / buffer[layout.around + CT * W + lane]
        else:
            buffer[layout.mass + 2 * W + lane] = 0.0


@inlined
def gain(buffer, to, mass, future):
    """Add a product to a sum."""
    store(buffer, to, multiply_add(mass, future, load(buffer, to)))


@part
def retreat(profile, layout, buffer, now):
    """Turn the weighted futures of step t + 1 into those of step t, and add the derivatives between the two."""
    columns, line, back, sums = profile.columns, layout.line, layout.back, layout.sums
    begun, tail, outside = load(buffer, now), 3 * line, layout.sums + 10 * line
    first, size = load(buffer, back + W), profile.size
    entered = multiply_add(first, weight(columns, MM, 0), load(buffer, back + line) * weight(columns, MI, 0))
    for k in range(1, size + 1):
        after = load(buffer, back + k * W)
        gain(buffer, sums + EN * line + k * W, begun, after)
        entered = multiply_add(after, weight(columns, EN, k), entered)
    joined, closed = load(buffer, back + tail + W), load(buffer, back + tail + 2 * W)
    gain(buffer, outside + JJ * W, load(buffer, now + tail + W), joined)
    gain(buffer, outside + CC * W, load(buffer, now + tail + 2 * W), closed)
    joined = joined * edge(layout, buffer, JJ)
    closed = multiply_add(closed, edge(layout, buffer, CC), load(buffer, layout.mass + 2 * W))
    again = multiply_add(entered, edge(layout, buffer, JB), joined)
    ended = multiply_add(again, edge(layout, buffer, EJ), closed * edge(layout, buffer, EC))
    left = load(buffer, now + line + size * W) * weight(columns, IM, size)
    gain(buffer, sums + IM * line + size * W, load(buffer, now + line + size * W), ended)
    after, deleted, inserted = zero(), zero(), ended * weight(columns, IM, size)
    for k in range(size, 0, -1):
        at = k * W
        m, i, d = load(buffer, now + at), load(buffer, now + line + at), load(buffer, now + 2 * line + at)
        kept = load(buffer, back + line + at)
        left = multiply_add(m, weight(columns, XM, k), multiply_add(d, weight(columns, XD, k), left))
        stay(buffer, sums + at, line, m, i, after, kept, deleted)
        gain(buffer, sums + DM * line + at, d, after)
        gain(buffer, sums + DD * line + at, d, deleted)
        gain(buffer, sums + XM * line + at, m, ended)
        gain(buffer, sums + XD * line + at, d, ended)
        future = multiply_add(after, weight(columns, MM, k), ended * weight(columns, XM, k))
        future = multiply_add(kept, weight(columns, MI, k), multiply_add(deleted, weight(columns, MD, k), future))
        inserted = multiply_add(after, weight(columns, IM, k), inserted)
        store(buffer, back + line + at, multiply_add(kept, weight(columns, II, k), inserted))
        gone = multiply_add(after, weight(columns, DM, k), ended * weight(columns, XD, k))
        deleted, inserted = multiply_add(deleted, weight(columns, DD, k), gone), zero()
        after = load(buffer, back + at)
        store(buffer, back + at, future)
    i, kept = load(buffer, now + line), load(buffer, back + line)
    gain(buffer, sums + MM * line, begun, after)
    gain(buffer, sums + MI * line, begun, kept)
    gain(buffer, sums + MD * line, load(buffer, now + tail) * edge(layout, buffer, NB), deleted)
    gain(buffer, sums + IM * line, i, after)
    gain(buffer, sums + II * line, i, kept)
    store(buffer, back + line, multiply_add(after, weight(columns, IM, 0), kept * weight(columns, II, 0)))
    opened = multiply_add(deleted, weight(columns, MD, 0), entered)
    around_them(layout, buffer, now, opened, entered, again, closed, left)


@inlined
def stay(buffer, to, line, m, i, after, kept, deleted):
    """Add the derivatives by the transitions from the match and insert states of a node; IM of the last is apart."""
    gain(buffer, to + MM * line, m, after)
    gain(buffer, to + MI * line, m, kept)
    gain(buffer, to + MD * line, m, deleted)
    gain(buffer, to + IM * line, i, after)
    gain(buffer, to + II * line, i, kept)


@inlined
def around_them(layout, buffer, now, opened, entered, again, closed, left):
    """Set the futures of N, J and C, and add derivatives by the weights around the columns."""
    outside = layout.sums + 10 * layout.line
    back, now = layout.back + 3 * layout.line, now + 3 * layout.line
    flank, flanking, joining = load(buffer, back), load(buffer, now), load(buffer, now + W)
    gain(buffer, outside + NN * W, flanking, flank)
    gain(buffer, outside + NB * W, flanking, opened)
    gain(buffer, outside + JB * W, joining, entered)
    gain(buffer, outside + EJ * W, left, again)
    gain(buffer, outside + EC * W, left, closed)
    store(buffer, back, multiply_add(flank, edge(layout, buffer, NN), opened * edge(layout, buffer, NB)))
    store(buffer, back + W, again)
    store(buffer, back + 2 * W, closed)


@part
def leave(profile, out, layout, buffer, ints):
    """Copy the derivatives by the weights of the lanes to their slots."""
    nodes = profile.size + 1
    for lane in range(W):
        slot = ints[SLOT + lane]
        if ints[OBJECT + lane] < 0:
            continue
        for row in range(len(profile.columns)):
            for k in range(nodes):
                out.columns[slot, row, k] = buffer[layout.sums + row * layout.line + k * W + lane]
        for row in range(N_AROUND):
            out.around[slot, row] = buffer[layout.sums + 10 * layout.line + row * W + lane]
