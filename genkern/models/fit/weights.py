"""Weights of objects in a fit: two is the same as giving the object twice, zero as leaving it out."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.data.objects import Packed
from genkern.validation import Floats, check_array


def weighted(packed: Packed, sample_weight: Any, who: str) -> Packed:
    """Return the objects of positive weight, with their weights; all objects if ``sample_weight`` is None."""
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
    """Return the weights (N, 1) of points, or 1.0 where all weights are one."""
    return 1.0 if packed.weights is None else point_weights(packed)


def amounts(packed: Packed) -> Floats:
    """Return the weighted number of observations (n_objects,) of each object."""
    return np.asarray(packed.lengths if packed.weights is None else packed.lengths * packed.weights)


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
