"""Do two samples of objects come from the same law? Maximum mean discrepancy with a permutation test."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from genkern.progress import each
from genkern.validation import Floats, check_array, check_int

BATCH = 256  # permutations at a time


class TwoSampleTest(NamedTuple):
    """What ``two_sample_test`` finds.

    Parameters
    ----------
    statistic : float
        Unbiased estimate of the squared maximum mean discrepancy.
    p_value : float
        Share of divisions with a statistic at least as large.
    n_permutations : int
        Number of random divisions.
    """

    statistic: float
    p_value: float
    n_permutations: int


def two_sample_test(K: ArrayLike, n_first: int, *, n_permutations: int = 999, rng: Any = 0) -> TwoSampleTest:
    r"""Test whether the first objects of a Gram matrix and the others come from the same law.

    The statistic is the unbiased estimate of the squared distance between the mean maps of the two laws,

    .. math:: \frac{1}{m(m-1)} \sum_{i \neq j} k(x_i, x_j) + \frac{1}{n(n-1)} \sum_{i \neq j} k(y_i, y_j)
        - \frac{2}{mn} \sum_{i,j} k(x_i, y_j).

    Under the hypothesis objects can be exchanged, so that the p-value is the share of random divisions into m and n
    objects whose statistic is at least as large, the given one among them. What makes the kernel may have been fitted
    to both samples together, without their names; fitted to one of them, the test would not hold.

    Parameters
    ----------
    K : array-like of shape (m + n, m + n)
        Kernel values between all objects, those of the first sample first.
    n_first : int
        Number m of objects in the first sample, two at least, as in the second.
    n_permutations : int, default=999
        Number of random divisions.
    rng : int or Generator, default=0
        Seed of the divisions.

    Returns
    -------
    test : TwoSampleTest
        ``statistic``, ``p_value`` and ``n_permutations``.

    References
    ----------
    Gretton et al. (2012), A kernel two-sample test, equation 3 and section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern.evaluation import two_sample_test
    >>> x = np.r_[np.zeros(20), np.ones(20)][:, None]
    >>> two_sample_test(np.exp(-((x - x.T) ** 2)), 20).p_value
    0.001
    """
    who = "two_sample_test"
    gram = check_array(K, "K", who, ndim=2)
    if gram.shape[0] != gram.shape[1]:
        raise ValueError(f"{who}: K must be square. Got shape {gram.shape}.")
    m, total = check_int(n_first, "n_first", who, 2), len(gram)
    if total - m < 2:
        raise ValueError(f"{who}: each sample needs two objects at least. Got {m} and {total - m}.")
    off = gram - np.diag(np.diag(gram))
    if not np.allclose(off, off.T, rtol=1e-8, atol=1e-12 * float(np.abs(off).max())):
        raise ValueError(f"{who}: K must be symmetric.")
    count, random = check_int(n_permutations, "n_permutations", who, 1), np.random.default_rng(rng)
    first = np.zeros((1, total))
    first[0, :m] = 1.0
    statistic = float(_discrepancies(off, first)[0])
    slack = 1e-12 * float(np.abs(off).max())  # divisions that are the given one up to rounding
    larger = 1
    for start in each(range(0, count, BATCH)):
        divisions = random.permuted(np.repeat(first, min(BATCH, count - start), axis=0), axis=1)
        larger += int((_discrepancies(off, divisions) >= statistic - slack).sum())
    return TwoSampleTest(statistic, larger / (count + 1), count)


def _discrepancies(off: Floats, first: Floats) -> Floats:
    """Return the statistic of divisions: rows of ones and zeros, a matrix without its diagonal."""
    m = first[0].sum()
    n = first.shape[1] - m
    rows = first @ off
    within = np.einsum("ij,ij->i", rows, first)
    across = rows.sum(axis=1) - within
    others = off.sum() - within - 2.0 * across
    return within / (m * (m - 1)) + others / (n * (n - 1)) - 2.0 * across / (m * n)
