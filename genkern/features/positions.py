r"""Features position by position: the contribution of each observation of one object to the features of an embedding.

Embeddings that support it have a method ``position_features``, which takes a list of one object and returns a sparse
array (T, p). Its rows sum to the features, except for terms that belong to no position. With the terms :math:`s_{tj}`
of a sum :math:`g_j = \sum_t s_{tj}` over positions and features :math:`f_j(g_j)` of it
(a map, a division by the length or norm) position t has

.. math:: s_{tj}\, f_j(g_j) / g_j,

its share of the sum, and nothing where the terms cancel to zero. Scores are sums of posterior expectations by Fisher's
identity; log-odds are sums of the changes by each further observation; words are shared
equally by the positions at which they are read; a pair of hidden states belongs to the second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from genkern.data.objects import Packed
from genkern.models.class_mixture import ClassMixture
from genkern.validation import Floats

CANCELLED = 1e-10  # a sum this small beside the sizes of its terms is a rounding error


def share(terms: Any, sums: Floats, features: Floats) -> Any:
    """Return terms (T, p), with columns scaled by the ratio of features (p,) and their sums (p,)."""
    whole = np.abs(sums) > CANCELLED * abs(terms).sum(axis=0)
    return sparse.csr_array(terms * np.divide(features, sums, out=np.zeros(len(sums)), where=whole)[None])


def class_terms(
    mixture: ClassMixture, packed: Packed, coordinates: str | None, features: Callable[[Floats, list[Floats]], Floats]
) -> Floats:
    """Return the rows (T, p), by position, of features of the joint log-probabilities and derivatives of each class.

    They are linear in the derivatives (None for features of log-probabilities alone), which are sums over positions.
    The part that depends on log-probabilities is split into changes from the beginning of the object to its end.
    """
    if coordinates is None:
        return np.diff(features(mixture.path(packed), []), axis=0)
    path, parts = mixture.follow(packed)
    length = len(path) - 1
    widths = [len(model.parameters(coordinates)) for model in mixture.models]
    grads = [
        np.zeros((length, width)) if part is None else model.gradient(part, coordinates)
        for model, part, width in zip(mixture.models, parts, widths)
    ]
    flat = [np.zeros((length + 1, width)) for width in widths]
    held = np.repeat(path[-1:], length, axis=0)
    linear = features(held, grads) - features(held, [zero[1:] for zero in flat])
    return linear + np.diff(features(path, flat), axis=0)


def word_terms(count: Callable[[Packed], Any], packed: Packed, offsets: NDArray[np.int64], width: int) -> Any:
    """Return the counts (T, p) of words of one object, in equal parts at the positions where they are read."""
    span = int(offsets[-1]) + 1
    starts = np.arange(max(packed.n_points - span + 1, 0))
    if len(starts) == 0:
        return sparse.csr_array((packed.n_points, width))
    rows = (starts[:, None] + np.arange(span)).ravel()
    words = packed._replace(values=packed.values[rows], offsets=span * np.arange(len(starts) + 1))
    reads = shares_of_reading(starts[:, None] + offsets, packed.n_points)
    return sparse.csr_array(reads @ sparse.csr_array(count(words)))


def shares_of_reading(places: NDArray[np.int64], length: int) -> Any:
    """Return equal shares (T, W) of positions in words whose k symbols are at ``places`` (W, k)."""
    count, k = places.shape
    cells = (places.ravel(), np.repeat(np.arange(count), k))
    return sparse.csr_array((np.full(count * k, 1.0 / k), cells), (length, count))


def as_vector(row: Any) -> Floats:
    """Return a matrix of one row, dense or sparse, as a vector."""
    vector: Floats = np.asarray(row.toarray() if sparse.issparse(row) else row, np.float64).ravel()
    return vector
