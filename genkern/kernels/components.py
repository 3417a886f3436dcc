"""Kernel principal components."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from genkern.validation import Floats


def principal_components(gram: Floats, count: int) -> tuple[Floats, Floats]:
    r"""Return objects on the first kernel principal components, and the shares of the variance of these.

    With the centred Gram matrix :math:`HKH = \sum_k \mu_k u_k u_k^\top`, object i lies at
    :math:`(\sqrt{\mu_1} u_{1i}, \sqrt{\mu_2} u_{2i}, \ldots)`, and the shares are :math:`\mu_k / \mathrm{tr}(HKH)`.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        Kernel values, symmetric, not centred.
    count : int
        Number of components, at most n.

    Returns
    -------
    places : ndarray of shape (n, count)
        Coordinates.
    shares : ndarray of shape (count,)
        Shares of the variance.

    References
    ----------
    Schölkopf, Smola & Müller (1998), Nonlinear component analysis as a kernel eigenvalue problem.
    """
    n = len(gram)
    centred = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
    values, vectors = eigh(centred, subset_by_index=(n - count, n - 1))
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    # An eigenvector's sign is arbitrary: fix it, so that the same matrix always gives the same picture.
    vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(count)])
    total = float(np.trace(centred))
    shares = values / total if total > 0 else np.zeros(count)
    return vectors * np.sqrt(values), shares
