"""Roots of Fisher information matrices: what turns a score into a feature vector of unit information."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.validation import Floats

Blocks = list[tuple[NDArray[np.int64], Floats]]


class Whitener(NamedTuple):
    """A block-diagonal linear map of p columns to p columns.

    Attributes
    ----------
    runs : list of (columns, roots)
        Blocks of equal size on adjacent columns are one run: a slice of B k columns with roots (B, k, k). Other blocks
        have an index array of k columns and roots (1, k, k). Diagonal blocks have roots (k,). Columns that no run
        names become zero.
    """

    runs: list[tuple[slice | NDArray[np.int64], Floats]]

    def apply(self, scores: Floats, out: Floats) -> None:
        """Write the features of scores (n, p) into ``out`` (n, p), which is zero before."""
        for columns, roots in self.runs:
            part = scores[:, columns]
            if roots.ndim == 1:
                out[:, columns] = part * roots
                continue
            grouped = part.reshape(len(part), len(roots), -1).swapaxes(0, 1)
            out[:, columns] = (grouped @ roots).swapaxes(0, 1).reshape(part.shape)

    @property
    def is_zero(self) -> bool:
        """Whether no direction at all is kept."""
        return not any(roots.any() for _, roots in self.runs)


def whitener_of(blocks: Blocks) -> Whitener:
    """Return the map with the given roots, (k, k) or (k,), of blocks of columns."""
    runs: list[tuple[slice | NDArray[np.int64], Floats]] = []
    group: list[Floats] = []
    first = last = 0
    for index, root in blocks:
        adjacent = bool(np.array_equal(index, np.arange(index[0], index[0] + len(index))))
        if root.ndim == 1 or not adjacent:
            runs.append((index, root if root.ndim == 1 else root[None]))
            continue
        if group and (index[0] != last or root.shape != group[0].shape):
            runs.append((slice(first, last), np.stack(group)))
            group = []
        first = first if group else int(index[0])
        last = int(index[-1]) + 1
        group.append(root)
    if group:
        runs.append((slice(first, last), np.stack(group)))
    return Whitener(runs)


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
