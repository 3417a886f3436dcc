"""Products with matrices of many rows, of single or double precision, dense or sparse, a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from genkern.kernels.vectors import occupied
from genkern.validation import Floats

ROWS = 4096
NUMBERS = 1 << 22  # of a dense block


def times(X: Any, V: Floats) -> Floats:
    """Return X V in double precision, for X (n, p) and V (p, k)."""
    return np.concatenate([np.asarray(rows @ V) for rows in _blocks(X)])


def transposed_times(X: Any, V: Floats) -> Floats:
    """Return the product of the transpose of X (n, p) and V (n, k), in double precision."""
    total, at = np.zeros((X.shape[1], V.shape[1])), 0
    for rows in _blocks(X):
        total += rows.T @ V[at : at + rows.shape[0]]
        at += rows.shape[0]
    return total


def inner_products(X: Any) -> Floats:
    """Return the inner products (n, n) of the rows of X (n, p), in double precision; empty columns cost nothing."""
    rows, again = occupied(X.tocsr(), X.tocsr()) if sparse.issparse(X) else (X, X)
    K = rows @ again.T
    return np.asarray(K.toarray() if sparse.issparse(K) else K, np.float64)


def _blocks(X: Any) -> Iterator[Any]:
    """Yield rows in double precision; of a CSR matrix without a copy of where its entries are."""
    step = ROWS if sparse.issparse(X) else max(1, NUMBERS // max(1, X.shape[1]))
    for first in range(0, X.shape[0], step):
        last = min(first + step, X.shape[0])
        if not sparse.issparse(X):
            yield X[first:last].astype(np.float64, copy=False)
            continue
        inside = slice(X.indptr[first], X.indptr[last])
        data, places = X.data[inside].astype(np.float64, copy=False), X.indices[inside]
        starts = X.indptr[first : last + 1] - X.indptr[first]
        yield sparse.csr_matrix((data, places, starts), (last - first, X.shape[1]), copy=False)
