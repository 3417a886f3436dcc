"""Beginning, convergence and end of the state-pair recursion for the items of a batch."""

from __future__ import annotations

import math

import numpy as np

from genkern.core.jit import jit
from genkern.core.pairs_plain import log_or_never
from genkern.core.pairs_steps import VANISHED, total
from genkern.core.simd import (
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
NOTHING = 1e-300  # entries of the normalised φ below it are not looked at
DOUBTFUL = -600.0  # log k relative to the largest ψ below which entries of ψ that vanished may matter
LN2 = math.log(2.0)


@jit
def begin(left, right, batch, items):
    """Set φ = (π π′ᵀ) ∘ ψ and a fresh state; left: π (r, n); right: π′ (u, width)."""
    n, size, units, width = left.shape[1], batch.phi.shape[1], right.shape[0], right.shape[1]
    for item in items:
        row, unit = item // units, item % units
        for i in range(n):
            p = broadcast(element(left, row * n + i))
            for at in range(0, width, W):
                here = item * size + i * width + at
                store(batch.phi, here, p * load(right, unit * width + at) * load(batch.psi, here))
        store(batch.exponent, item * W, zero())
        store(batch.redo, item * W, zero())
        store(batch.done, item * W, zero())


@jit
def watch(batch, items, lanes):
    """Compare φ with the one a step before: set its growth, and mark as ready the lanes where it settled.

    Returns whether there are any.
    """
    size = batch.phi.shape[1]
    found = False
    one = broadcast(1.0)
    for item in items:
        before = total(batch.old, item * size, (item + 1) * size, lanes)
        after = total(batch.phi, item * size, (item + 1) * size, lanes)
        dead = less(before, broadcast(NOTHING))
        old_unit = select(dead, zero(), one / before)
        new_unit = select(dead, zero(), one / after)
        change, growing = zero(), zero()
        for at in range(item * size, (item + 1) * size, W):
            old = load(batch.old, at) * old_unit
            new = load(batch.phi, at) * new_unit
            change = maximum(change, maximum(new - old, old - new))
            growing = maximum(growing, multiply_add(broadcast(-1.0 - GROWING), old, new))
        settled = select(less(broadcast(SETTLED), change), zero(), one)
        settled = select(less(broadcast(NOTHING), growing), zero(), settled)
        if not lanes:
            settled = select(less(broadcast(horizontal_sum(settled)), broadcast(W - 0.5)), zero(), one)
        store(batch.growth, item * W, after / before)
        settled = select(less(load(batch.done, item * W), one), settled, zero())
        found |= any_lane(less(zero(), settled))
        store(batch.ready, item * W, settled)
    return found


@jit
def close(left, right, batch, items, lanes, step, remaining):
    """Set the results where they are ready; left, right: end weights; step: steps done; remaining: to be done."""
    n, size, units, width = left.shape[1], batch.phi.shape[1], right.shape[0], right.shape[1]
    # A step multiplies the sum of what is lost by at most n m, as no entry of A, A′ or ψ is above one.
    doubtful = DOUBTFUL + (step + 1) * math.log(n * (width // W if lanes else width))
    ends = np.empty(W)
    for item in items:
        row, unit = item // units, item % units
        s = zero()
        for i in range(n):
            t = zero()
            for at in range(0, width, W):
                t = multiply_add(load(right, unit * width + at), load(batch.phi, item * size + i * width + at), t)
            s = multiply_add(broadcast(element(left, row * n + i)), t, s)
        store(ends, 0, s if lanes else broadcast(horizontal_sum(s)))
        for k in range(W):
            if batch.ready[item, k] == 0.0:
                continue
            log_k = log_or_never(ends[k]) + batch.exponent[item, k] * LN2
            if ends[k] < VANISHED or (batch.lost[item, k] > 0.0 and log_k < doubtful):
                batch.redo[item, k] = 1.0
            if remaining > 0:
                log_k += remaining * log_or_never(batch.growth[item, k])
            batch.result[item, k] = log_k
            batch.done[item, k] = 1.0
