"""First assignments of points to components: k-means of vectors, random weights of symbols."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.core.kmeans import kmeans_each
from genkern.models.streams import Keys, derive, uniforms
from genkern.objects import Packed
from genkern.validation import Floats

ROUNDS = {"kmeans": 50, "random": 1}


def cluster(
    values: Floats, groups: NDArray[np.int64], k: int, numbers: Floats, rounds: int = ROUNDS["kmeans"]
) -> NDArray[np.int64]:
    """Return labels (N,) by k-means on the vectors of each group; missing entries count as the group's mean.

    ``groups`` (P + 1,) says where groups begin and end, and uniform ``numbers`` (P, k) choose their first centres. One
    round only assigns points to random ones among them, chosen far from one another.
    """
    seen = ~np.isnan(values)
    count = np.maximum(np.add.reduceat(seen, groups[:-1], axis=0, dtype=np.float64), 1.0)
    mean = np.add.reduceat(np.where(seen, values, 0.0), groups[:-1], axis=0) / count
    filled = np.where(seen, values, np.repeat(mean, np.diff(groups), axis=0))
    return kmeans_each(filled, groups, k, numbers, rounds)


def is_symbols(packed: Packed) -> bool:
    """Say whether points are single symbols, between which there are no distances."""
    return packed.alphabet is not None and packed.values.ndim == 1


def divide(packed: Packed, weights: Floats, own: bool, k: int, keys: Keys, init: str) -> Floats:
    """Return weights (N, n, k) that share those of points under n members (N, n) out among k components of each.

    Vectors are clustered, those of each object by themselves if own. A symbol goes to the components with random
    weights, one of which dominates, the same at all its occurrences: were every point assigned by itself, components
    would be the more alike the more data there are. There is one key for all objects, or one per object.
    """
    n = weights.shape[1]
    if is_symbols(packed):
        codes = int(packed.values.max()) + 1
        numbers = uniforms(keys[:, None], np.arange(codes * n * k)).reshape(-1, codes, n, k)
        random = (numbers + 1e-3) ** 4  # a uniform number may be zero
        random /= random.sum(axis=-1, keepdims=True)
        shared: Floats = random[packed.owners if own else 0, packed.values] * weights[..., None]
        return shared
    vectors, shares = _vectors(packed), np.zeros((*weights.shape, k))
    groups = packed.offsets if own else packed.offsets[[0, -1]]
    for member in range(n):
        mine = np.flatnonzero(weights[:, member] > 0)
        counts = np.diff(np.searchsorted(mine, groups))
        there = counts > 0
        places = np.concatenate([[0], np.cumsum(counts[there])])
        numbers = uniforms(derive(keys, member)[there][:, None], np.arange(k))
        labels = cluster(vectors[mine], places, k, numbers, ROUNDS[init])
        shares[mine, member, labels] = weights[mine, member]
    return shares


def _vectors(packed: Packed) -> Floats:
    """Return points as vectors (N, d): windows of symbols by indicators of their symbols, sparse rows dense."""
    values: Any = packed.values
    if packed.alphabet is not None:
        indicators: Floats = packed.alphabet.sparse_members[values.ravel()].toarray()
        return indicators.reshape(len(values), -1)
    return np.asarray(values if isinstance(values, np.ndarray) else values.toarray(), np.float64)
