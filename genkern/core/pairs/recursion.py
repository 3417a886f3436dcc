r"""Kernels between hidden Markov models by the state-pair recursion, for blocks of pairs.

.. math:: φ_1 = (π π'^T) ∘ ψ, \quad φ_{t+1} = [A^T φ_t A'] ∘ ψ, \quad k = \sum_{ij} e_i e'_j φ_L(i, j)

with ψ the elementary kernel between emissions. The two products of a step cost O(n m (n + m)), where the double
sum of the paper costs O(n² m²). φ is rescaled by powers of two, which is exact; once it only grows by a constant
factor, and the sum weighted by the end weights does so too, the rest of the steps is a power of that factor. A pair
whose sum underflows, or in which products underflowed that may matter, is recomputed in logarithms. The result of a
pair depends only on the pair, to the last bit.

References
----------
Jebara, Kondor & Howard (2004), Probability product kernels, section 4.2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.arrays.products import mirror
from genkern.core.pairs.items import PairBlock, run_items
from genkern.core.pairs.plain import redo_pairs
from genkern.core.pairs.psi import fetch
from genkern.core.pairs.steps import tile_of
from genkern.core.pairs.types import SCALES, Floats, PairSide, PsiTable, aligned, new_workspace
from genkern.core.simd.vectors import W, padded

__all__ = ["PairSide", "pair_log", "pair_log_factors", "pair_log_values"]

LANES = 12  # up to so many states on both sides a vector holds eight models, above it eight states
BATCH = 1 << 17  # numbers of ψ that are fetched from a table at a time
AGAIN = 1 << 20  # pairs of states recomputed at a time
ALL, UPPER, DIAGONAL = 0, 1, 2  # parts of a block that are wanted
NEVER = -1e6  # used as the logarithm of zero


class _Psi(NamedTuple):
    """ψ as a table, of logarithms perhaps, or as F F′ᵀ by its factors."""

    table: Floats  # (a, n, b, m), or empty
    logs: bool
    factors: tuple[Floats, Floats] | None  # (a, n, k) and (b, m, k), if there is no table

    @property
    def shape(self) -> tuple[int, ...]:
        """Return (a, n, b, m)."""
        if self.factors is None:
            return self.table.shape
        return (*self.factors[0].shape[:2], *self.factors[1].shape[:2])

    def turned(self) -> _Psi:
        """Return ψ with the sides exchanged."""
        if self.factors is None:
            return self._replace(table=self.table.transpose(2, 3, 0, 1))
        return self._replace(factors=self.factors[::-1])

    def highest(self) -> tuple[Any, Any]:
        """Return the logarithms of two factors, one for the models of each side, whose product bounds the scaled ψ.

        Scaled entries are at most two; entries that needed no scaling may be larger.
        """
        least = 0.5 * np.log(2.0)
        if self.logs:
            return 0.0, 0.0
        if self.factors is None:
            both = max(least, 0.5 * float(np.log(np.max(self.table, initial=1.0))))
            return both, both
        sizes = [np.sqrt((rows**2).sum(axis=2).max(axis=1)) for rows in self.factors]
        first, second = (np.maximum(least, np.log(np.maximum(size, 1.0))) for size in sizes)
        return first, second

    def logs_of(self, pairs: NDArray[np.int64]) -> Floats:
        """Return log ψ of some pairs, (p, n, m)."""
        rows, columns = pairs.T
        if self.factors is None:
            found = self.table[rows, :, columns]
        else:
            found = self.factors[0][rows] @ self.factors[1][columns].transpose(0, 2, 1)
        return found if self.logs else np.log(found)


def pair_log(left: PairSide, right: PairSide | None, log_psi: Floats, length: int) -> Floats:
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

    Returns
    -------
    ndarray (a, b)
        -inf where no pair of paths has positive weight.
    """
    return _pairs(left, right, _from_table(log_psi, True), length)


def pair_log_values(left: PairSide, right: PairSide | None, psi: Floats, length: int) -> Floats:
    """Return log k, (a, b), from ψ itself, (a, n, b, m) >= 0.

    Zero means zero: entries of ψ that underflowed when they were computed stay zero. See pair_log for the rest.
    """
    return _pairs(left, right, _from_table(psi, False), length)


def pair_log_factors(
    left: PairSide,
    right: PairSide | None,
    factors: Floats,
    others: Floats | None,
    length: int,
    paired: bool = False,
) -> Floats:
    """Return log k, (a, b), from factors F (a, n, k) and F′ (b, m, k) of ψ = F F′ᵀ, all numbers >= 0.

    ``paired`` asks for that of each model with the other one of its index only, (a,).
    No table of ψ is stored, and where k is small, the first and the last step are cheap: Aᵀ φ_1 A′ and
    A ((e e′ᵀ) ∘ ψ) A′ᵀ have factors, too. ``others`` may be None if right is, where F′ is F. See pair_log_values for
    the rest.
    """
    if right is not None and others is None:
        raise ValueError("pair_log: with right, others must be given, too. Got None.")
    first = np.ascontiguousarray(factors, dtype=np.float64)
    second = first if others is None else np.ascontiguousarray(others, dtype=np.float64)
    if first.ndim != 3 or second.ndim != 3 or first.shape[-1] != second.shape[-1] or first.shape[-1] == 0:
        raise ValueError(
            "pair_log: the factors of psi must be (a, n, k) and (b, m, k) with the same k >= 1. Got "
            f"{first.shape} and {second.shape}."
        )
    return _pairs(left, right, _Psi(np.empty(0), False, (first, second)), length, paired)


def _from_table(psi: Floats, logs: bool) -> _Psi:
    """Return ψ or log ψ, (a, n, b, m), with no factors."""
    return _Psi(np.ascontiguousarray(psi, dtype=np.float64), logs, None)


def _pairs(left: PairSide, right: PairSide | None, psi: _Psi, length: int, paired: bool = False) -> Floats:
    """Check shapes, turn the block so that padding costs least, run it, and refuse NaN."""
    part = DIAGONAL if paired else UPPER if right is None else ALL
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
    turned = _turned(n, m)
    log_k = _run(right, left, psi.turned(), length, part).T if turned else _run(left, right, psi, length, part)
    log_k = log_k.diagonal() if paired else log_k
    if not log_k.max() < np.inf:
        index = np.argwhere(~(log_k < np.inf))[0]
        row, column = index[0], index[-1]
        raise ValueError(f"pair_log: psi must be finite. Got NaN or inf for pair ({row}, {column}).")
    return log_k


def _run(left: PairSide, right: PairSide, psi: _Psi, length: int, part: int) -> Floats:
    """Return log k of a part of a block, recomputed in logarithms where underflow may have spoilt it."""
    (a, n), (b, m), count = left.start.shape, right.start.shape, psi.factors[0].shape[-1] if psi.factors else 0
    cheap = 0 < count <= n + m and length > 2
    highest = psi.highest()
    records = _records(left, _bounds(left, length, highest[0]), psi.factors[0] if psi.factors else None, cheap)
    others = records
    if part != UPPER or (psi.factors and psi.factors[0] is not psi.factors[1]):
        others = _records(right, _bounds(right, length, highest[1]), psi.factors[1] if psi.factors else None, cheap)
    units = _as_lanes(others) if _in_lanes(n, m) else _as_tiles(others)
    block = PairBlock(
        left=records.reshape(a, -1),
        right=units.reshape(len(units), -1),
        factors=count,
        cheap=cheap,
        half=part == UPPER,
        length=length,
        log_k=np.empty((a, b)),
        redo=np.zeros((a, b), dtype=np.bool_),
    )
    _run_items(block, psi, part)
    if block.redo.any():
        wanted = {ALL: block.redo, UPPER: np.triu(block.redo), DIAGONAL: np.diag(block.redo.diagonal())}[part]
        _redo(left, right, psi, length, np.argwhere(wanted), block.log_k)
    if part == UPPER:
        mirror(block.log_k)
    return block.log_k


def _run_items(block: PairBlock, psi: _Psi, part: int) -> None:
    """Set log k and redo of a part of a block, fetching ψ from a table for a rectangle at a time."""
    (a, n, b, m), units = psi.shape, len(block.right)
    lanes = _in_lanes(n, m)
    workspace = new_workspace(n, m, lanes)
    tile = tile_of(n, workspace.width // W, lanes)
    if psi.factors is not None:
        group, nothing = W if lanes else 1, np.empty(0)
        squares = [((k * group, min((k + 1) * group, a)), (k, k + 1)) for k in range(units)]
        for rows, some in squares if part == DIAGONAL else [((0, a), (0, units))]:
            run_items(block, rows, some, nothing, nothing, workspace, tile)
        return
    size = n * workspace.width
    many = max(1, BATCH // size)
    wide = min(units, many)
    high = min(a, max(1, many // wide))
    items, scales = aligned(high * wide * size), aligned(high * wide * SCALES)
    strides = tuple(step // psi.table.itemsize for step in psi.table.strides)
    table = PsiTable(psi.table.ravel(order="K"), strides, (n, m, workspace.width, b), psi.logs, lanes, block.half)
    for row in range(0, a, high):
        rows = (row, min(row + high, a))
        for unit in range(row // (W if lanes else 1) if block.half else 0, units, wide):
            some = (unit, min(unit + wide, units))
            fetch(table, rows, some, items, scales)
            run_items(block, rows, some, items, scales, workspace, tile)


def _redo(left: PairSide, right: PairSide, psi: _Psi, length: int, pairs: NDArray[np.int64], log_k: Floats) -> None:
    """Set log k of the listed pairs in logarithms."""
    step = max(1, AGAIN // (left.start.shape[1] * right.start.shape[1]))
    with np.errstate(divide="ignore"):
        one, other = (PairSide(*(np.log(part) for part in side)) for side in (left, right))
        for low in range(0, len(pairs), step):
            some = pairs[low : low + step]
            log_psi = np.ascontiguousarray(psi.logs_of(some))
            redo_pairs(one, other, log_psi, length, some, log_k)
            # Logarithms of sums would ignore NaN.
            log_k[tuple(some[np.isnan(log_psi).any(axis=(1, 2))].T)] = np.nan


def _in_lanes(n: int, m: int) -> bool:
    """Return whether a vector holds eight models, or eight states of one."""
    return max(n, m) <= LANES


def _turned(n: int, m: int) -> bool:
    """Return whether the block is computed with its sides exchanged: the right one is the larger, or pads less."""
    if _in_lanes(n, m):
        return n > m
    cost, turned = n * padded(m), m * padded(n)
    return turned < cost or (turned == cost and n > m)


def _contiguous(side: PairSide) -> PairSide:
    """Return the side as contiguous float64 arrays, with its shapes and numbers checked."""
    start, transitions, end = (np.ascontiguousarray(part, dtype=np.float64) for part in side)
    shapes_agree = start.ndim == 2 and end.shape == start.shape and transitions.shape == (*start.shape, start.shape[1])
    if not shapes_agree or start.shape[1] == 0:
        raise ValueError(
            "pair_log: a PairSide needs start (a, n), transitions (a, n, n) and end (a, n), with n >= 1. Got "
            f"{start.shape}, {transitions.shape} and {end.shape}."
        )
    side = PairSide(start, transitions, end)
    for name, part in side._asdict().items():
        if not np.isfinite(part).all():
            index = np.argwhere(~np.isfinite(part))[0]
            raise ValueError(f"pair_log: {name} must be finite. Got {part[tuple(index)]} in model {index[0]}.")
    return side


def _bounds(side: PairSide, length: int, highest: Any) -> tuple[Floats, Floats]:
    """Return logarithms, (a,), of bounds of k, and of the growth of φ by a step; those of a pair are sums of two.

    A step multiplies the sum of φ by at most the largest sums of rows of A and A′, and the ``highest`` ψ.
    """
    with np.errstate(divide="ignore"):
        steps: Floats = np.log(side.transitions.sum(axis=2).max(axis=1)) + highest
        bounds: Floats = np.log(side.start.sum(axis=1)) + highest
    steps = np.maximum(steps, NEVER)  # a model without any transition
    return np.maximum(bounds, NEVER) + (length - 1) * steps, steps


def _reached(side: PairSide) -> Floats:
    """Return ones, (a, n), where the states of the models can be reached from their starts, else zeros."""
    links = side.transitions > 0.0
    reached = side.start > 0.0
    for _ in range(side.start.shape[1]):
        more = reached | (reached[:, :, None] & links).any(axis=1)
        if (more == reached).all():
            break
        reached = more
    return reached.astype(np.float64)


def _records(side: PairSide, bounds: tuple[Floats, Floats], factors: Floats | None, cheap: bool) -> Floats:
    """Return the records of the models, (a, rows, n); factors F: (a, n, k)."""
    a, n = side.start.shape
    parts = [
        side.start[:, None],
        side.transitions,
        side.end[:, None],
        *(np.broadcast_to(bound[:, None, None], (a, 1, n)) for bound in bounds),
        _reached(side)[:, None],
    ]
    if factors is not None:
        parts.append(factors.transpose(0, 2, 1))
    if factors is not None and cheap:
        parts.append(np.einsum("aij,aik->akj", side.transitions, side.start[:, :, None] * factors))
        parts.append(np.einsum("aij,ajk->aki", side.transitions, side.end[:, :, None] * factors))
    records = aligned(a, sum(part.shape[1] for part in parts), n)
    return np.concatenate(parts, axis=1, out=records)


def _as_lanes(records: Floats) -> Floats:
    """Return units of eight models, (u, rows, m, 8); the last model fills up the last unit."""
    b, rows, m = records.shape
    index = np.minimum(np.arange(padded(b)), b - 1).reshape(-1, W)
    units = aligned(len(index), rows, m, W)
    units[:] = records[index].transpose(0, 2, 3, 1)
    return units


def _as_tiles(records: Floats) -> Floats:
    """Return the models with their states padded by zeros to a multiple of eight, (b, rows, width)."""
    b, rows, m = records.shape
    units = aligned(b, rows, padded(m))
    units[..., :m] = records
    units[..., m:] = 0.0
    return units
