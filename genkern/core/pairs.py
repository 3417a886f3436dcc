r"""Kernels between hidden Markov models by the state-pair recursion, for blocks of pairs.

.. math:: φ_1 = (π π'^T) ∘ ψ, \quad φ_{t+1} = [A^T φ_t A'] ∘ ψ, \quad k = \sum_{ij} e_i e'_j φ_L(i, j)

with ψ the elementary kernel between emissions. The two products of a step cost O(n m (n + m)), where the double
sum of the paper costs O(n² m²). φ is rescaled by powers of two, which is exact; once it only grows by a constant
factor, the rest of the steps is that factor's power. A pair whose numbers span more than a double holds is done
again in logarithms. The result of a pair depends on nothing but the pair, to the last bit.

References
----------
Jebara, Kondor & Howard (2004), Probability product kernels, section 4.3.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from joblib import effective_n_jobs

from genkern.core.pairs_batch import Block, run_rows
from genkern.core.pairs_plain import redo_pairs
from genkern.core.pairs_types import Floats, PairSide, Units, aligned
from genkern.core.products import mirror
from genkern.core.simd import W

__all__ = ["PairSide", "pair_log", "pair_log_values"]

LANES = 12  # up to so many states on both sides a vector holds eight models, above it eight states


def pair_log(left: PairSide, right: PairSide | None, log_psi: Floats, length: int, n_jobs: int | None = 1) -> Floats:
    """Return log k, (a, b), for all pairs of a block, from log ψ.

    Parameters
    ----------
    left : PairSide
        a models of n states.
    right : PairSide or None
        b models of m states. None: the models of left again; half of the pairs is computed and mirrored.
    log_psi : ndarray (a, n, b, m)
        Log elementary kernels between the states' emissions; -inf is legal.
    length : int
        Number of observations L >= 1.
    n_jobs : int or None
        Threads, over bins of rows.

    Returns
    -------
    ndarray (a, b)
        -inf where no pair of paths has positive weight.
    """
    return _pairs(left, right, log_psi, length, True, n_jobs)


def pair_log_values(left: PairSide, right: PairSide | None, psi: Floats, length: int, n_jobs: int | None = 1) -> Floats:
    """Return log k, (a, b), from ψ itself, (a, n, b, m) >= 0: cheaper where ψ is a matrix product of tables.

    Zero means zero: what vanished when ψ was computed stays so. See pair_log for the rest.
    """
    return _pairs(left, right, psi, length, False, n_jobs)


def _pairs(left: PairSide, right: PairSide | None, psi: Floats, length: int, logs: bool, n_jobs: int | None) -> Floats:
    """Check shapes, turn the block so that padding costs least, run it, and refuse what is no number."""
    half = right is None
    left = _contiguous(left)
    right = left if right is None else _contiguous(right)
    (a, n), (b, m) = left.start.shape, right.start.shape
    if psi.shape != (a, n, b, m):
        raise ValueError(
            f"pair_log: psi must have shape {(a, n, b, m)}, (a, n, b, m) of the two sides. Got {psi.shape}."
        )
    if length < 1:
        raise ValueError(f"pair_log: length counts observations and must be at least 1. Got {length}.")
    if not (a and b):
        return np.empty((a, b))
    strides = (n * b * m, b * m, m, 1)
    turned = _turned(n, m)
    if turned:
        left, right, strides = right, left, (*strides[2:], *strides[:2])
    lanes = max(n, m) <= LANES
    shape = (len(left.start), len(right.start))
    block = Block(
        left=left,
        units=_pack_lanes(right) if lanes else _pack_tiles(right),
        psi=np.ascontiguousarray(psi, dtype=np.float64).reshape(-1),
        strides=strides,
        states=right.start.shape[1],
        lanes=lanes,
        logs=logs,
        half=half,
        length=length,
        log_k=np.empty(shape),
        redo=np.zeros(shape, dtype=np.bool_),
    )
    _run(block, right, n_jobs)
    log_k = block.log_k.T if turned else block.log_k
    if np.isnan(log_k).any():
        row, column = np.argwhere(np.isnan(log_k))[0]
        raise ValueError(
            f"pair_log: the numbers of pair ({row}, {column}) must be finite. Got NaN or inf in psi, start, "
            "transitions or end."
        )
    return log_k


def _run(block: Block, right: PairSide, n_jobs: int | None) -> None:
    """Set log k of a block by threads over bins of rows, then in logarithms where underflow may have spoilt it."""
    bounds = _row_bounds(len(block.left.start), effective_n_jobs(n_jobs), block.half)
    if len(bounds) == 2:
        run_rows(block, *bounds)
    else:
        # Not joblib's threads: waiting for these takes ten milliseconds.
        with ThreadPoolExecutor(len(bounds) - 1) as pool:
            list(pool.map(run_rows, itertools.repeat(block), bounds[:-1], bounds[1:]))
    if block.redo.any():
        pairs = np.argwhere(np.triu(block.redo) if block.half else block.redo)
        with np.errstate(divide="ignore"):
            one, other = (PairSide(*(np.log(part) for part in side)) for side in (block.left, right))
        redo_pairs(one, other, block.psi, block.strides, block.logs, block.length, pairs, block.log_k)
    if block.half:
        mirror(block.log_k)


def _turned(n: int, m: int) -> bool:
    """Say whether the block is computed with its sides exchanged: the right one is the larger, or pads less."""
    if max(n, m) <= LANES:
        return n > m
    cost, turned = n * _padded(m), m * _padded(n)
    return turned < cost or (turned == cost and n > m)


def _padded(count: int) -> int:
    """Return the next multiple of eight."""
    return -(-count // W) * W


def _row_bounds(rows: int, bins: int, half: bool) -> list[int]:
    """Return the bounds of bins of rows of equal cost; of half a square, the first rows are the long ones."""
    share = np.arange(1 + max(1, min(bins, rows))) / max(1, min(bins, rows))
    if half:
        share = 1.0 - np.sqrt(1.0 - share)
    return [int(bound) for bound in np.rint(rows * share)]


def _contiguous(side: PairSide) -> PairSide:
    """Return the side as contiguous float64 arrays, with its shapes checked."""
    start, transitions, end = (np.ascontiguousarray(part, dtype=np.float64) for part in side)
    if start.ndim != 2 or end.shape != start.shape or transitions.shape != (*start.shape, start.shape[1]):
        raise ValueError(
            "pair_log: a PairSide needs start (a, n), transitions (a, n, n) and end (a, n). Got "
            f"{start.shape}, {transitions.shape} and {end.shape}."
        )
    return PairSide(start, transitions, end)


def _pack_lanes(side: PairSide) -> Units:
    """Return units of eight models, state by state: (u, m, 8) flat; the last model fills up the last unit."""
    b, m = side.start.shape
    index = np.minimum(np.arange(_padded(b)), b - 1).reshape(-1, W)
    start, end = aligned(len(index), m, W), aligned(len(index), m, W)
    transitions = aligned(len(index), m, m, W)
    start[:] = side.start[index].transpose(0, 2, 1)
    transitions[:] = side.transitions[index].transpose(0, 2, 3, 1)
    end[:] = side.end[index].transpose(0, 2, 1)
    return Units(*(part.reshape(len(index), -1) for part in (start, transitions, end)))


def _pack_tiles(side: PairSide) -> Units:
    """Return the models with their states padded by zeros to a multiple of eight: (b, width) and (b, m width)."""
    b, m = side.start.shape
    width = _padded(m)
    units = Units(aligned(b, width), aligned(b, m * width), aligned(b, width))
    for part, source in zip(units, side):
        part[:] = 0.0
        part.reshape(*source.shape[:-1], width)[..., :m] = source
    return units
