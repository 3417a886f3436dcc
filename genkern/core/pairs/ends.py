"""Beginning, convergence and end of the state-pair recursion of an item."""

from __future__ import annotations

import math

from genkern.core.jit import part
from genkern.core.pairs.plain import log_or_never
from genkern.core.pairs.psi import spread
from genkern.core.pairs.steps import VANISHED, do_again, total
from genkern.core.pairs.types import (
    BOUND,
    DONE,
    EXPONENT,
    GROWTH,
    LEVEL,
    LOST,
    MARK,
    READY,
    REDO,
    RESULT,
    SEEN,
    SLOPE,
    SPARE,
    UNIT,
    WEAK,
)
from genkern.core.simd.vectors import (
    W,
    any_lane,
    broadcast,
    element,
    horizontal_sum,
    less,
    load,
    maximum,
    multiply_add,
    select,
    store,
    zero,
)

SETTLED = 1e-15  # the largest change of the normalised φ that counts as none
GROWING = 1e-12  # relative growth of any one entry, however small, that forbids to stop: it may come to dominate
NOTHING = 1e-300  # smaller entries of the normalised φ are ignored
EVEN = 1e-14  # relative gap between two growths that are the same
DOUBTFUL = -600.0  # log k relative to its bound below which underflowed products may matter
BEHIND = 100.0  # log of how far φ may fall below its bound before it is checked for underflow
TOO_FAR = 250.0  # and further below its bound than this, underflowed products may matter
FAINT = 2.0**-400  # entries of φ, relative to their sum, below which their products may underflow
LN2 = math.log(2.0)


@part
def clear(left, a, right, b, workspace, length):
    """Prepare the workspace for an item; return the bound of log k. Bounds lie behind e, at left[a], and e′."""
    x, n, width = workspace.numbers, workspace.rows, workspace.width
    bound = broadcast(element(left, a + n)) + load(right, b + width)
    slope = broadcast(element(left, a + 2 * n)) + load(right, b + 2 * width)
    for offset in (EXPONENT, REDO, DONE, MARK, WEAK, SEEN):
        store(x, offset, zero())
    store(x, SLOPE, slope)
    store(x, LEVEL, bound - broadcast(length - 1.0) * slope)
    return bound


@part
def begin(left, a, right, b, workspace):
    """Set φ_1 = (π π′ᵀ) ∘ ψ; π lies at left[a], π′ at right[b]."""
    x = workspace.numbers
    for i in range(workspace.rows):
        p = broadcast(element(left, a + i))
        for at in range(i * workspace.width, (i + 1) * workspace.width, W):
            value = p * load(right, b + at - i * workspace.width)
            store(x, workspace.phi + at, value * load(x, workspace.psi + at))


@part
def scale_as_psi(workspace, first):
    """Multiply the array at this offset by the scale of ψ, mostly one; its entries may have underflowed before."""
    x, one = workspace.numbers, broadcast(1.0)
    unit = load(x, UNIT)
    if any_lane(less(unit, one)) or any_lane(less(one, unit)):
        s = total(workspace, first)
        scaled = select(less(unit, one), s, select(less(one, unit), s, one))
        do_again(workspace, less(scaled, broadcast(VANISHED)))
        for at in range(first, first + workspace.rows * workspace.width, W):
            store(x, at, load(x, at) * unit)


@part
def end(left, a, right, b, workspace, first):
    """Return Σ e_i e′_j φ_ij of the φ at this offset; e lies at left[a], e′ at right[b]."""
    x = workspace.numbers
    s = zero()
    for i in range(workspace.rows):
        t = zero()
        for at in range(0, workspace.width, W):
            t = multiply_add(load(right, b + at), load(x, first + i * workspace.width + at), t)
        s = multiply_add(broadcast(element(left, a + i)), t, s)
    return s if workspace.lanes else broadcast(horizontal_sum(s))


@part
def watch(left, a, right, b, workspace, done):
    """Compare φ with the one a step before: set its growth, and mark as ready the lanes where it settled.

    There the normalised φ no longer changes, no entry of it grows, and the sum weighted by the end weights, which may
    select only entries that still fall, grows at the same rate. Returns whether there are any; e lies at left[a], e′ at
    right[b].
    """
    keep_up(left, a, right, b, workspace, done)
    x, size = workspace.numbers, workspace.rows * workspace.width
    one = broadcast(1.0)
    before, after = total(workspace, workspace.old), total(workspace, workspace.phi)
    dead = less(before, broadcast(NOTHING))
    old_unit = select(dead, zero(), one / before)
    new_unit = select(dead, zero(), one / after)
    change, growing = zero(), zero()
    for at in range(0, size, W):
        old = load(x, workspace.old + at) * old_unit
        new = load(x, workspace.phi + at) * new_unit
        change = maximum(change, maximum(new - old, old - new))
        growing = maximum(growing, multiply_add(broadcast(-1.0 - GROWING), old, new))
    settled = select(less(broadcast(SETTLED), change), zero(), one)
    settled = select(less(broadcast(NOTHING), growing), zero(), settled)
    if not workspace.lanes:
        settled = select(less(broadcast(horizontal_sum(settled)), broadcast(W - 0.5)), zero(), one)
    store(x, GROWTH, after / before)
    settled = select(less(load(x, DONE), one), settled, zero())
    if any_lane(less(zero(), settled)):
        seen = end(left, a, right, b, workspace, workspace.old) * old_unit
        gap = end(left, a, right, b, workspace, workspace.phi) * new_unit - seen
        apart = less(seen * broadcast(EVEN), maximum(gap, zero() - gap))
        settled = select(apart, zero(), settled)
    store(x, READY, settled)
    return any_lane(less(zero(), settled))


@part
def close(s, bound, workspace, remaining):
    """Set the results where they are ready, and return whether all are set.

    s: Σ e e′ φ; bound: logarithm of the upper bound of k for ψ of ones; remaining: steps to be done.
    """
    a = workspace.numbers
    store(a, SPARE, s)
    store(a, BOUND, bound)
    all_done = True
    for k in range(W):
        if a[READY + k] > 0.0:
            value = a[SPARE + k]
            log_k = log_or_never(value) + a[EXPONENT + k] * LN2
            if remaining > 0:
                log_k += remaining * log_or_never(a[GROWTH + k])
            if value < VANISHED:
                a[REDO + k] = 1.0
            elif log_k < a[BOUND + k] + DOUBTFUL:
                a[WEAK + k] = 1.0
            a[RESULT + k] = log_k
            a[DONE + k] = 1.0
        all_done &= a[DONE + k] > 0.0
    return all_done


@part
def keep_up(left, a, right, b, workspace, done):
    """Check the lanes where φ may have fallen far below its bound since the last check."""
    x = workspace.numbers
    steps = broadcast(float(done)) - load(x, SEEN)
    fallen = (load(x, MARK) - load(x, EXPONENT)) * broadcast(LN2) + load(x, SLOPE) * steps
    behind = select(less(broadcast(BEHIND), fallen), broadcast(1.0), zero())
    if any_lane(less(zero(), behind)):
        look(left, a, right, b, workspace, done, behind)


@part
def look(left, a, right, b, workspace, done, chosen):
    """Mark the chosen lanes in which products that underflowed since the last check may matter later.

    Products that underflow in a step are below 2^-1022 times about the largest possible sum. It does not matter if
    all entries of φ that can be reached are far above that: then each of them is far larger than anything lost, now
    and after all later steps. e lies at left[a], e′ at right[b], and ones for reachable states behind it.
    """
    x, one, low = workspace.numbers, broadcast(1.0), zero()
    s = total(workspace, workspace.phi)
    floor = s * broadcast(FAINT)
    for i in range(workspace.rows):
        p = broadcast(element(left, a + 3 * workspace.rows + i))
        for at in range(0, workspace.width, W):
            here = i * workspace.width + at
            needed = p * load(right, b + 3 * workspace.width + at) * load(x, workspace.psi + here)
            faint = select(less(zero(), needed), one, low)
            low = select(less(load(x, workspace.phi + here), floor), faint, low)
    low = low if workspace.lanes else spread(low, x, SPARE)
    store(x, LOST, select(less(zero(), low * chosen), one, load(x, LOST)))
    fresh = less(zero(), chosen)
    reached = load(x, LEVEL) + load(x, SLOPE) * (broadcast(float(done)) - load(x, SEEN))
    store(x, SPARE, s)
    for k in range(W):
        x[SPARE + k] = log_or_never(x[SPARE + k]) + x[EXPONENT + k] * LN2
    level = load(x, SPARE)
    # Written so that NaN is marked, too.
    near = less(reached - level, broadcast(TOO_FAR))
    store(x, LOST, select(fresh, select(near, load(x, LOST), one), load(x, LOST)))
    store(x, LEVEL, select(fresh, level, load(x, LEVEL)))
    store(x, MARK, select(fresh, load(x, EXPONENT), load(x, MARK)))
    store(x, SEEN, select(fresh, broadcast(float(done)), load(x, SEEN)))


@part
def judge(left, a, right, b, workspace, done):
    """Mark for recomputation the lanes whose results are far below their bounds and in which products underflowed."""
    x = workspace.numbers
    weak = load(x, WEAK)
    if any_lane(less(zero(), weak)):
        look(left, a, right, b, workspace, done, weak)
        store(x, REDO, maximum(load(x, REDO), load(x, LOST) * weak))
        store(x, WEAK, zero())
