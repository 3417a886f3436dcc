"""Sums of powers of probabilities over symbols, where rows are long and most of their entries may be equal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from genkern.core.arrays.products import inner_products
from genkern.validation import Floats

SMALLEST = 1e-280  # smaller sums may have lost terms to underflow and are recomputed in logs
TILE = 1 << 22  # numbers of temporary copies of rows
FEW = 256  # with fewer symbols, rows are not checked for equal entries
THIN = 1 / 16  # share of other entries up to which rows are stored as sparse


class ThinRows(NamedTuple):
    r"""Rows (n, m) as one constant each plus a few sparse entries.

    A document with some hundred of forty thousand words has its pseudocount, or zero, at all other words.

    Attributes
    ----------
    base : (n,)
        The smallest number of each row, raised to the power.
    above : CSR array (n, m)
        The entries minus the constant, not negative, so that nothing cancels in sums.
    sums : (n,)
        The sums of the rows of ``above``.
    """

    base: Floats
    above: sparse.csr_array
    sums: Floats

    def products(self, other: ThinRows, rows: slice) -> Floats:
        """Return inner products of some rows with all others, (a, b)."""
        m = self.above.shape[1]
        mixed = self.base[rows, None] * other.sums + self.sums[rows, None] * other.base
        mixed += m * (self.base[rows, None] * other.base)
        common: Floats = (self.above[rows] @ other.above.T).toarray()
        return common + mixed

    def paired(self, other: ThinRows) -> Floats:
        """Return the inner products of equal rows of both, (n,)."""
        mixed = self.base * other.sums + self.sums * other.base + self.above.shape[1] * (self.base * other.base)
        return np.asarray((self.above * other.above).sum(axis=1)).ravel() + mixed


def thin_rows(p: Floats, power: float) -> ThinRows | None:
    """Return rows (n, m) to a power if most of their entries are equal, else None."""
    if p.ndim != 2 or p.shape[1] < FEW:
        return None
    pieces, base, left = [], [], int(THIN * p.size)
    for rows in _tiles(p):
        low = p[rows].min(axis=1)
        places, symbols = np.nonzero(p[rows] != low[:, None])
        left -= len(places)
        if left < 0:
            return None
        base.append(low**power)
        above = p[rows][places, symbols] ** power - base[-1][places]
        starts = np.searchsorted(places, np.arange(len(low) + 1))
        pieces.append(sparse.csr_array((above, symbols, starts), shape=p[rows].shape))
    above = sparse.csr_array(sparse.vstack(pieces, format="csr"))
    return ThinRows(np.concatenate(base), above, np.asarray(above.sum(axis=1)).ravel())


def overlap(p: Floats, q: Floats, power: float) -> Floats:
    r"""Return :math:`\sum_k (p_k q_k)^\rho`, G + (a, b), for rows G + (a, m) and G + (b, m).

    Rows of mostly equal entries are multiplied as sparse ones, others by tiles, so that no copy of them is
    larger than a tile. If q is p the result is symmetric to the last bit.
    """
    sums = np.empty((*p.shape[:-1], q.shape[-2]))
    if p.ndim > 2:
        for part in _tiles(p):
            left = _powers(p[part], power)
            sums[part] = inner_products(left, left if q is p else _powers(q[part], power))
        return sums
    thin = thin_rows(p, power)
    other = thin if q is p or thin is None else thin_rows(q, power)
    if thin is not None and other is not None:
        for rows in _tiles(sums):
            sums[rows] = thin.products(other, rows)
        return sums
    for rows in _tiles(p):
        first = _powers(p[rows], power)
        for columns in _tiles(q):
            if q is not p or columns.start > rows.start:
                sums[rows, columns] = inner_products(first, _powers(q[columns], power))
            elif columns.start == rows.start:
                upper = np.triu(inner_products(first, first))
                sums[rows, columns] = upper + np.triu(upper, 1).T
            else:
                sums[rows, columns] = sums[columns, rows].T
    return sums


def log_overlap(p: Floats, q: Floats, power: float) -> Floats:
    """Return log sum_k (p_k q_k)^power, G + (a, b); -inf where the supports are disjoint."""
    sums = overlap(p, q, power)
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(sums)
        lost = np.argwhere(sums < SMALLEST)
        if len(lost) == 0 or min(smallest(p), smallest(q)) ** (2.0 * power) > SMALLEST:
            return logs  # no term underflows, so a sum of zero has none
        for some in np.array_split(lost, -(-len(lost) * p.shape[-1] // TILE)):
            pairs = tuple(some[:, :-2].T)
            terms = power * (np.log(p[(*pairs, some[:, -2])]) + np.log(q[(*pairs, some[:, -1])]))
            logs[tuple(some.T)] = np.logaddexp.reduce(terms, axis=-1)
    return logs


def smallest(p: Floats) -> float:
    """Return the smallest positive entry of rows of probabilities."""
    rows = p.reshape(-1, p.shape[-1])
    return min(float(np.min(rows[part], where=rows[part] > 0, initial=1.0)) for part in _tiles(rows))


def _powers(p: Floats, power: float) -> Floats:
    return p if power == 1.0 else p**power


def _tiles(p: Floats) -> Iterator[slice]:
    """Yield slices of the first axis with a bounded number of entries each."""
    step = max(1, TILE * len(p) // max(1, p.size))
    for low in range(0, len(p), step):
        yield slice(low, min(low + step, len(p)))


class SparseRows(NamedTuple):
    """Rows (n, m) of which k entries each are listed, at ``columns`` (n, k), and all others are ``rest`` (n,)."""

    columns: NDArray[Any]
    values: Floats
    rest: Floats
    width: int

    def thin(self, power: float) -> ThinRows:
        """Return the rows to a power."""
        n, k = self.columns.shape
        base = self.rest**power
        above = (self.values**power - base[:, None]).ravel()
        matrix = sparse.csr_array((above, self.columns.ravel(), np.arange(0, n * k + 1, k)), shape=(n, self.width))
        matrix.eliminate_zeros()
        return ThinRows(base, matrix, np.asarray(matrix.sum(axis=1)).ravel())

    def dense(self, rows: NDArray[Any]) -> Floats:
        """Return some of the rows, (len(rows), m)."""
        table = np.repeat(self.rest[rows, None], self.width, axis=1)
        np.put_along_axis(table, self.columns[rows].astype(np.int64), self.values[rows], axis=1)
        return table

    def smallest(self) -> float:
        """Return the smallest positive entry."""
        return min(smallest(self.values), smallest(self.rest[:, None]))


def log_sparse_overlap(p: SparseRows, q: SparseRows, power: float, paired: bool = False) -> Floats:
    """Return log sum_k (p_k q_k)^power of all pairs (a, b), or of equal rows of both, (a,), without dense rows.

    Only pairs whose sum may have underflowed are computed from dense rows, a few at a time.
    """
    left = p.thin(power)
    right = left if q is p else q.thin(power)
    if paired:
        sums = left.paired(right)
    else:
        sums = np.empty((len(p.rest), len(q.rest)))
        for rows in _tiles(sums):
            sums[rows] = left.products(right, rows)
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(sums)
        lost = np.argwhere(sums < SMALLEST)
        if len(lost) == 0 or min(p.smallest(), q.smallest()) ** (2.0 * power) > SMALLEST:
            return logs
        for some in np.array_split(lost, -(-len(lost) * p.width // TILE)):
            terms = power * (np.log(p.dense(some[:, 0])) + np.log(q.dense(some[:, -1])))
            logs[tuple(some.T)] = np.logaddexp.reduce(terms, axis=-1)
    return logs
