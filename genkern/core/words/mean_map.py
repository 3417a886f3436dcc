r"""Exact features of the empirical mean map kernel of words of k symbols, as a dense tensor or sparse.

.. math:: k(x, y) = \operatorname{mean}_{s,t}\, e^{-λ \mathrm{Ham}(u_s, v_t)}, \qquad e = e^{-λ}

over the words u_s of x and v_t of y. Of each position it takes :math:`B = (1 - e) I + e\, 1 1^T` between symbols, of
which both forms are roots: :math:`R = B^{1/2}` along every axis of the tensor of word frequencies, or
:math:`\prod_j ((1 - e) [u_j = v_j] + e)` multiplied out, whose terms count words with gaps. A code c >= m means
one of its members, each as likely, and features are expectations. Sequences shorter than k have features zero.

References
----------
Mehta & Gray (2010), Generative and latent mean map kernels, section 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from genkern.core.jit import jit
from genkern.core.words.counts import kmer_counts, kmer_sparse

Floats = NDArray[np.float64]
Ints = NDArray[Any]


def tensor_features(codes: Ints, offsets: Ints, m: int, k: int, members: Any, lam: float) -> Floats:
    """Return dense features (n, m**k), words in lexicographic order; arguments as of ``kmer_counts``."""
    rows = kmer_counts(codes, offsets, m, k, members)
    rows /= np.maximum(np.diff(offsets) - k + 1, 1)[:, None]
    same, other = -math.expm1(-lam), math.exp(-lam)
    ones = math.sqrt(same + m * other)
    _root(rows, m, k, math.sqrt(same), other / (ones + math.sqrt(same)))
    return rows


def gapped_features(
    codes: Ints, offsets: Ints, m: int, k: int, members: Any, lam: float, leave_out: bool = False
) -> Any:
    """Return sparse features, CSR (n, sum of m**len(kept)) with one group of columns for each of ``patterns``."""
    lengths = np.diff(offsets)
    counts = np.maximum(lengths - k + 1, 0)
    same, other = math.sqrt(-math.expm1(-lam)), math.sqrt(math.exp(-lam))
    ahead = np.arange(len(codes)) - np.repeat(offsets[:-1], lengths)
    behind = np.repeat(lengths, lengths) - 1 - ahead
    groups = []
    for kept in patterns(k, lam):
        weights = same ** len(kept) * other ** (k - len(kept)) / np.maximum(counts, 1)
        if kept:
            # What a word keeps begins later and ends earlier than the word does.
            inside = (ahead >= kept[0]) & (behind >= k - 1 - kept[-1]) & (ahead + behind >= k - 1)
            ends = np.concatenate([[0], np.cumsum(np.where(counts > 0, counts + kept[-1] - kept[0], 0))])
            shifts = np.array(kept) - kept[0]
            data, indices, indptr = kmer_sparse(
                codes[inside], ends, m, len(kept), members, shifts=shifts, leave_out=leave_out
            )
            data = data * np.repeat(weights, np.diff(indptr))
            groups.append(sparse.csr_matrix((data, indices, indptr), shape=(len(counts), m ** len(kept))))
        else:
            groups.append(sparse.csr_matrix((weights * counts)[:, None]))
    return sparse.hstack(groups, format="csr")


def patterns(k: int, lam: float) -> Iterator[tuple[int, ...]]:
    """Yield which of the k positions of a word are kept, all first, leaving out those of weight zero.

    The weight of a pattern that keeps j positions is (1 - e)**j e**(k - j): for infinite λ only whole words have one,
    for λ = 0 only the pattern in which all positions are gaps.
    """
    for bits in range(2**k - 1, -1, -1):
        kept = tuple(j for j in range(k) if bits >> (k - 1 - j) & 1)
        if (lam > 0 or not kept) and (math.exp(-lam) > 0 or len(kept) == k):
            yield kept


def refuse_missing(values: Floats, offsets: Ints, who: str) -> None:
    """Raise at the first missing number of values (N, d)."""
    gaps = np.argwhere(np.isnan(values))
    if len(gaps):
        row, column = gaps[0].tolist()
        index = int(np.searchsorted(offsets, row, side="right")) - 1
        raise ValueError(
            f"{who}: object {index}, position {row - offsets[index]}, column {column} is NaN; points must be complete. "
            "Fill it in, or leave the observation out."
        )


@jit
def _root(rows, m, k, own, shared):
    """Apply ``own`` I + ``shared`` 1 1^T along each of the k axes of every row, (n, m**k), in place."""
    totals = np.empty(m ** (k - 1))
    for i in range(len(rows)):
        stride = 1
        for _ in range(k):
            for start in range(0, rows.shape[1], stride * m):
                # Inner loops run along the row, so that they are vectors but for the last axes.
                part = rows[i, start : start + stride * m]
                totals[:stride] = 0.0
                for c in range(m):
                    for at in range(stride):
                        totals[at] += part[c * stride + at]
                for c in range(m):
                    for at in range(stride):
                        part[c * stride + at] = own * part[c * stride + at] + shared * totals[at]
            stride *= m
