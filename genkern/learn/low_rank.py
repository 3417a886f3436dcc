"""Features of fewer dimensions than objects whose inner products are, or are close to, given kernel values."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh

from genkern.validation import Floats

CUTOFF = 1e-12  # of the largest eigenvalue: smaller ones are rounding
LANCZOS = 20  # an iterative method pays where fewer than one in so many eigenvalues is wanted


def eigen_features(K: Floats, rank: int) -> tuple[Floats, Floats]:
    r"""Return features Z (n, r) and the map T (n, r) with Z = K T, of the leading positive eigenvalues of K (n, n).

    .. math:: K \approx Z Z^T, \quad Z = V \sqrt{w}, \quad T = V / \sqrt{w}
    """
    n = len(K)
    if rank * LANCZOS < n:
        start = np.random.default_rng(0).standard_normal(n)  # fixed: the same K gives the same features
        values, vectors = eigsh(K, k=rank, which="LA", v0=start)
    else:
        values, vectors = eigh(K, subset_by_index=[n - min(rank, n), n - 1])
    return _roots(values, vectors)


def span(X: Floats) -> Floats:
    """Return rows (n, r) with the inner products of the rows of X (n, p), r being the rank of X."""
    values, vectors = eigh(X.T @ X)
    return np.asarray(X @ vectors[:, values > CUTOFF * max(values.max(), 0.0)])


def quadratic_size(r: int) -> int:
    """Return the number of ``quadratic_features`` of r columns."""
    return (r + 1) * (r + 2) // 2


def quadratic_features(X: Floats, offset: float) -> Floats:
    r"""Return features (n, (r + 1)(r + 2) / 2) of rows (n, r) with inner products :math:`(c + \langle x, y \rangle)^2`.

    These are :math:`x_i x_j` of the rows with a further entry :math:`\sqrt c`, times :math:`\sqrt 2` if i < j.
    """
    n, r = X.shape
    wide = np.column_stack([X, np.full(n, np.sqrt(offset))])
    first, second = np.triu_indices(r + 1)
    features = np.empty((n, len(first)))
    for i in range(r + 1):
        own = first == i
        features[:, own] = wide[:, [i]] * wide[:, i:]
    features[:, first != second] *= np.sqrt(2.0)
    return features


def nystrom_map(K: Floats) -> Floats:
    r"""Return the map T (m, r) with :math:`T T^T = K^+`, for kernel values K (m, m) of landmarks.

    Features of objects with kernel values k with the landmarks are k T.
    """
    return _roots(*eigh(K))[1]


def _roots(values: Floats, vectors: Floats) -> tuple[Floats, Floats]:
    """Return eigenvectors times and divided by the square roots of their eigenvalues, positive ones only."""
    kept = values > CUTOFF * max(values.max(), 0.0)
    roots = np.sqrt(values[kept])
    return vectors[:, kept] * roots, vectors[:, kept] / roots
