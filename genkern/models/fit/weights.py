"""Weights of objects in a fit: one of two counts as the object given twice, one of zero as the object left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.data.objects import Packed
from genkern.validation import Floats, check_array


def weighted(packed: Packed, sample_weight: Any, who: str) -> Packed:
    """Return the objects that count, with their weights; all of them without any if ``sample_weight`` is None."""
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
    return packed._replace(weights=weights).take(weights > 0.0)


def point_weights(packed: Packed) -> Floats:
    """Return the weight (N, 1) of each point: that of its object."""
    if packed.weights is None:
        return np.ones((packed.n_points, 1))
    return np.repeat(packed.weights, packed.lengths)[:, None]


def counted(packed: Packed) -> Any:
    """Return the weights (N, 1) of points, or one where all count once."""
    return 1.0 if packed.weights is None else point_weights(packed)


def amounts(packed: Packed) -> Floats:
    """Return how many observations (n_objects,) each object counts for."""
    return np.asarray(packed.lengths if packed.weights is None else packed.lengths * packed.weights)


def quantiles(values: Any, weights: Floats | None, shares: Any) -> Any:
    """Return quantiles of values (n,), those of each repeated as often as its weight (n,) says."""
    if weights is None:
        return np.quantile(values, shares)
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(weights[order])
    place = np.maximum(np.asarray(shares) * (ends[-1] - 1.0), 0.0)
    low = np.floor(place * (1.0 + 1e-15))
    last = len(values) - 1
    below, above = (values[order[np.minimum(np.searchsorted(ends, at, side="right"), last)]] for at in (low, low + 1.0))
    return below + (place - low) * (above - below)
