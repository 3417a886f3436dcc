"""Weights of objects in a fit: two is the same as giving the object twice, zero as leaving it out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from genkern.core.mixture.kmeans import Often
from genkern.data.objects import Packed
from genkern.validation import Floats, check_array


def weighted(pack: Callable[[Any], Packed], X: Any, sample_weight: Any, who: str) -> Packed:
    """Return the objects that count, encoded, with their weights; all of them without any if there is no weight.

    An alphabet that is taken from the data is that of the objects that count.
    """
    packed = pack(X)
    if sample_weight is None:
        return packed
    weights = check_array(sample_weight, "sample_weight", who)
    if weights.shape != (packed.n_objects,):
        raise ValueError(
            f"{who}: 'sample_weight' must have shape ({packed.n_objects},), a weight for each object. Got shape "
            f"{weights.shape}."
        )
    if weights.min() < 0.0:
        first = int(np.argmax(weights < 0.0))
        raise ValueError(
            f"{who}: 'sample_weight' must be at least zero. Got {weights[first]:g} for object {first}; a weight says "
            "how often an object counts."
        )
    if not weights.any():
        raise ValueError(f"{who}: 'sample_weight' is zero for all objects, so that none counts. Leave some above zero.")
    kept = weights > 0.0
    if packed.alphabet is None or isinstance(X, Packed) or kept.all():
        return packed._replace(weights=weights).take(kept)
    with warnings.catch_warnings(action="ignore"):  # all there is to say was said of all objects, by their index
        return pack(_safe_indexing(X, np.flatnonzero(kept)))._replace(weights=weights[kept])


def often(packed: Packed) -> Often | None:
    """Return how often each of the objects counts, or None where all count once."""
    return None if packed.weights is None else Often(packed.offsets, packed.weights)


def point_weights(packed: Packed) -> Floats:
    """Return the weight (N, 1) of each point: that of its object."""
    if packed.weights is None:
        return np.ones((packed.n_points, 1))
    return np.repeat(packed.weights, packed.lengths)[:, None]


def counted(packed: Packed) -> Any:
    """Return the weights (N, 1) of points, or 1.0 where all weights are one."""
    return 1.0 if packed.weights is None else point_weights(packed)


def amounts(packed: Packed) -> Floats:
    """Return the weighted number of observations (n_objects,) of each object."""
    return np.asarray(packed.lengths if packed.weights is None else packed.lengths * packed.weights)


def n_counted(packed: Packed) -> float:
    """Return how many objects there are, each as often as it counts."""
    return packed.n_objects if packed.weights is None else float(packed.weights.sum())


def first_counted(packed: Packed, count: float) -> Packed:
    """Return the first objects, so many of them if each is there as often as it counts; a part of the last may do."""
    if packed.weights is None:
        return packed.take(slice(0, int(count)))
    before = np.cumsum(packed.weights) - packed.weights
    weights = np.minimum(packed.weights, count - before)
    return packed._replace(weights=weights).take(weights > 0.0)


def quantiles(values: Any, weights: Floats | None, shares: Any) -> Any:
    """Return quantiles of values (n,), weighted by (n,) weights."""
    if weights is None:
        return np.quantile(values, shares)
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(weights[order])
    place = np.maximum(np.asarray(shares) * (ends[-1] - 1.0), 0.0)
    low = np.floor(place * (1.0 + 1e-15))
    last = len(values) - 1
    below, above = (values[order[np.minimum(np.searchsorted(ends, at, side="right"), last)]] for at in (low, low + 1.0))
    return below + (place - low) * (above - below)


def median_length(packed: Packed) -> float:
    """Return the median length of the objects, each as often as it counts."""
    return float(quantiles(packed.lengths, packed.weights, 0.5))
