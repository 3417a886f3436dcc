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
    blocks : list of (index, root)
        ``index`` (k,) names the block's columns; ``root`` is (k, k), or (k,) for a diagonal one. Columns that
        no block names become zero.
    """

    blocks: Blocks

    def __call__(self, scores: Floats) -> Floats:
        """Return the features (n, p) of scores (n, p)."""
        features = np.zeros_like(scores)
        for index, root in self.blocks:
            part = scores[:, index]
            features[:, index] = part * root if root.ndim == 1 else part @ root
        return features

    @property
    def is_zero(self) -> bool:
        """Whether no direction at all is kept."""
        return not any(root.any() for _, root in self.blocks)


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
