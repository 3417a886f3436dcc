"""Roots of Fisher information matrices: what turns a score into a feature vector of unit information."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from genkern.validation import Floats

RUN = 24  # columns of small blocks that are multiplied at once, which is as fast as one by one and needs fewer calls

Blocks = list[tuple[NDArray[np.int64], Floats]]


class Whitener(NamedTuple):
    """A block-diagonal linear map of p columns to p columns.

    Attributes
    ----------
    runs : list of (columns, root)
        Roots (k, k), or (k,) if they are diagonal, of k columns: a slice, or an index array if they are not adjacent.
        Small adjacent blocks are one run. Columns that no run names become zero.
    """

    runs: list[tuple[slice | NDArray[np.int64], Floats]]

    def apply(self, scores: Floats, out: Floats) -> None:
        """Write the features of scores (n, p) into ``out`` (n, p), which is zero before."""
        for columns, root in self.runs:
            part = scores[:, columns]
            out[:, columns] = part * root if root.ndim == 1 else part @ root

    @property
    def is_zero(self) -> bool:
        """Whether no direction at all is kept."""
        return not any(root.any() for _, root in self.runs)


def whitener_of(blocks: Blocks) -> Whitener:
    """Return the map with the given roots, (k, k) or (k,), of blocks of columns."""
    runs: list[tuple[slice | NDArray[np.int64], Floats]] = []
    pending: list[Floats] = []  # roots of adjacent blocks that end at column ``end``
    end = 0

    def flush() -> None:
        if pending:
            joined = np.concatenate(pending) if pending[0].ndim == 1 else block_diag(*pending)
            runs.append((slice(end - len(joined), end), joined))
            pending.clear()

    for index, matrix in blocks:
        root = _as_diagonal(matrix)
        adjacent = bool(np.array_equal(index, np.arange(index[0], index[0] + len(index))))
        full = root.ndim == 2 and sum(map(len, pending)) + len(root) > RUN
        if not adjacent or index[0] != end or full or (pending and pending[0].ndim != root.ndim):
            flush()
        if adjacent:
            pending.append(root)
            end = int(index[-1]) + 1
        else:
            runs.append((index, root))
    flush()
    return Whitener(runs)


def _as_diagonal(root: Floats) -> Floats:
    """Return the diagonal (k,) of a matrix (k, k) that has nothing else, or what is given."""
    if root.ndim == 2 and not np.any(root - np.diag(np.diagonal(root))):
        return np.diagonal(root)
    return root


def restrict(blocks: Blocks, source: NDArray[np.int64], count: int) -> Blocks:
    """Return the matrices (k, k) of blocks of parameters, cut down to the columns whose ``source`` (width,) they are.

    ``count`` is the number of possible sources; the indices of the result are columns.
    """
    place = np.full(count, -1)
    place[source] = np.arange(len(source))
    kept = [(place[index], matrix, place[index] >= 0) for index, matrix in blocks]
    return [(columns[own], matrix[np.ix_(own, own)]) for columns, matrix, own in kept if own.any()]


def inverse_root(matrix: Floats, rcond: float) -> Floats:
    r"""Return W (k, k) with :math:`W W^T = I^+` on the range of an information matrix I (k, k).

    :math:`W = D^{-1} C^{+1/2}`, where :math:`I = D C D` and C has a unit diagonal; eigenvalues of C not above
    ``rcond`` times the largest are dropped. Taking out the scales first makes the result independent of the
    units of the parameters, hence the same in ratio, softmax and sqrt coordinates, and keeps tiny
    probabilities from hiding the others. The root of C is the symmetric one, so column j stays the closest to
    parameter j. Parameters of zero or infinite information get zero rows and columns.

    References
    ----------
    Kessy, Lewin & Strimmer (2018), Optimal whitening and decorrelation, section 3 ("ZCA-cor").
    """
    diagonal = np.diagonal(matrix)
    kept = np.flatnonzero(np.isfinite(diagonal) & (diagonal > 0))
    root = np.zeros_like(matrix)
    if len(kept) == 0:
        return root
    scale = np.sqrt(diagonal[kept])
    values, vectors = np.linalg.eigh(matrix[np.ix_(kept, kept)] / scale / scale[:, None])
    strong = values > rcond * values[-1]
    vectors = vectors[:, strong]
    root[np.ix_(kept, kept)] = (vectors / np.sqrt(values[strong])) @ vectors.T / scale[:, None]
    return root


def inverse_scale(diagonal: Floats) -> Floats:
    """Return 1 / sqrt of the diagonal (k,) of an information matrix, 0 where it is zero or infinite."""
    usable = np.isfinite(diagonal) & (diagonal > 0)
    return np.where(usable, 1.0 / np.sqrt(np.where(usable, diagonal, 1.0)), 0.0)
