"""What the passes over blocks of one shared chain have in common: places, first and last steps, gathered pairs.

A message is held as (width / 8, 8 sequences, 8 states): neighbouring rows then lie a fixed distance apart, which
spares many addresses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from genkern.core.hmm.rows import LARGEST, LENGTH, LOG_2, OBJECT, ROWS, SLOT, SMALLEST, TO_OUTPUT, sum_of_emissions
from genkern.core.hmm.states import Row, add_outer, add_pairs, chunk_of, copy_row, pack, places
from genkern.core.jit import inlined, kernel
from genkern.core.simd.vectors import W, element, load, padded, store, zero


class Blocks(NamedTuple):
    """Sizes of a block of eight sequences, and where its arrays begin in the buffer.

    n states; width: padded; chunk: steps of outer products gathered; step: doubles from one of these to the next;
    stride: 1 if the messages of all steps are kept, 0 if only one; symbols: rows of the table, 0 for one row per
    position. A, T: the packed transition matrix and its transpose; end (width,); b: emission factors (symbols, width)
    or (steps, 8, width); now: this and the last step's message; arriving: the futures of sequences that end; pred:
    (steps) messages; scale (steps, 8); alpha, weighted: (chunk + 1) messages; pairs (8, width, width); mass (3, 8): one
    while in range, the exponent, the final mass.
    """

    n: int
    width: int
    chunk: int
    step: int
    stride: int
    symbols: int
    A: int
    T: int
    end: int
    b: int
    now: int
    arriving: int
    pred: int
    scale: int
    alpha: int
    weighted: int
    pairs: int
    mass: int


def blocks_of(n: int, steps: int, keep: bool, symbols: int) -> tuple[Blocks, int, int]:
    """Return the places of a block's arrays, and how many doubles and integers they take."""
    width, chunk = padded(n), chunk_of(n)
    # A step that is no power of two apart from the next: else one place of all of them shares one set of the cache.
    line, step, kept = W * width, W * width + W, steps if keep else 1
    gathered, pairs = ((chunk + 1) * step, line * width) if keep else (0, 0)
    # One panel has eight rows: those beyond the states are zeros.
    matrix = max(n, W) * width
    counts = [matrix, matrix, width, symbols * width if symbols else kept * line, 2 * line, line]
    counts += [kept * line, kept * W, gathered, gathered, pairs, 3 * W]
    starts, total = places(counts)
    return Blocks(n, width, chunk, step, int(keep), symbols, *starts), total, ROWS + steps * W


@kernel
def bring_shared(problem, rows, at, m):
    """Bring what all blocks share into the buffer: the chain, and the emission factors of symbols."""
    pack(problem.transitions[0], False, at.n, m, at.A)
    pack(problem.transitions[0], True, at.n, m, at.T)
    for k in range(at.n):
        m[at.end + k] = problem.end[0, k]
    for row in range(at.symbols):
        copy_row(rows, row, at.n, m, at.b + row * at.width)


@inlined
def factors_of(at, ints, t, s):
    """Return where the emission factors of sequence s at step t lie."""
    return at.b + (element(ints, ROWS + t * W + s) if at.symbols else t * at.stride * W + s) * at.width


@inlined
def _state(k):
    """Return where state k of the first sequence lies in a message."""
    return k // W * W * W + k % W


@inlined
def start_row(start, at, m, ints, s):
    """Set the first step of sequence s; an empty lane starts with no mass."""
    pred, factors = at.pred + s * W, factors_of(at, ints, 0, s)
    for k in range(at.n):
        m[pred + _state(k)] = start[0, k] if ints[LENGTH + s] else 0.0
    for c in range(0, at.width, W):
        store(m, at.now + s * W + c * W, load(m, pred + c * W) * load(m, factors + c))


@kernel
def end_row(at, m, ints, lane, now, shift, out):
    """Set log P and the derivative of the end weights for a sequence that ends here; then empty its message."""
    i, slot, total = ints[OBJECT + lane], ints[SLOT + lane], 0.0
    for k in range(at.n):
        total += m[now + _state(k)] * m[at.end + k]
    in_range = m[at.mass + lane] == 1.0 and SMALLEST < total < LARGEST
    out.log_prob[i] = np.log(total) + LOG_2 * m[at.mass + W + lane] + shift if in_range else np.nan
    # An infinite mass makes all derivatives of a sequence that is out of range vanish.
    m[at.mass + 2 * W + lane] = total if in_range else np.inf
    for k in range(at.n):
        if at.stride and in_range:
            out.end[slot, k] += m[now + _state(k)] / total
        m[now + _state(k)] = 0.0


@kernel
def arrive(at, m, lane, weighted):
    """Set the future of a sequence that ends here; after it nothing comes, nor after the shorter ones."""
    for k in range(at.n):
        m[at.arriving + lane * W + _state(k)] = m[at.end + k] / m[at.mass + 2 * W + lane]
    for s in range(lane + 1):
        for c in range(0, at.width, W):
            store(m, weighted + s * W + c * W, zero())


@inlined
def row_of(at, ints, t, s, place, emissions):
    """Return where the numbers of sequence s at step t lie."""
    gathered = place * at.step + s * W
    return Row(
        at.pred + t * W * at.width + s * W,
        factors_of(at, ints, t, s),
        at.alpha + gathered,
        at.weighted + gathered + at.step,
        (element(ints, ROWS + t * W + s) + element(ints, TO_OUTPUT + s)) * emissions.shape[1],
    )


@kernel
def add_gathered(at, m, ints, t, steps):
    """Add the gathered steps, down to step t, to the pair counts of each sequence, from its end on."""
    for s in range(W):
        skip = max(0, t + steps + 1 - ints[LENGTH + s])
        if skip < steps:
            gathered, pairs = skip * at.step + s * W, at.pairs + s * at.width * at.width
            alpha, weighted = at.alpha + gathered, at.weighted + gathered
            add_outer(m, alpha, weighted, pairs, (at.width, at.width, steps - skip, at.step, W * W))


@kernel
def leave(problem, job, at, m, ints, out):
    """Add start and pair derivatives to their slots; mark sequences in which anything overflowed."""
    for s in range(W):
        if ints[LENGTH + s] == 0:
            continue
        i, slot = ints[OBJECT + s], ints[SLOT + s]
        total = add_pairs(m, at.pairs + s * at.width * at.width, at.width, slot, out.transitions)
        for k in range(at.n):
            out.start[slot, k] += m[at.now + s * W + _state(k)]
            total += m[at.now + s * W + _state(k)]
        if not total + sum_of_emissions(problem, job, i, out.emissions) < np.inf:
            out.log_prob[i] = np.nan
