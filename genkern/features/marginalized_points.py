"""Checks of observations for features of states: single symbols, or numbers without missing values."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.data.intake import locate
from genkern.data.objects import Packed
from genkern.validation import Floats


def refuse_windows(model: Any, packed: Packed, who: str) -> None:
    """Raise if observations are not single symbols."""
    if packed.values.ndim > 1:
        raise TypeError(f"{who}: {type(model.state_emissions).__name__} emits windows, not single symbols.")


def moments_of(leaf: Any) -> tuple[Floats, Floats]:
    """Return means and standard deviations (n, d) of the emissions of states."""
    found = leaf.moments()
    if found is None:
        raise TypeError(
            "Marginalized: features='mean' needs Gaussian emissions or mixtures of them, for means and standard "
            f"deviations. Got {type(leaf).__name__}; use features='raw' or 'rbf'."
        )
    mean, variance = found
    return mean, np.sqrt(variance)


def expected_points(leaf: Any, packed: Packed, who: str) -> Floats:
    """Return E[x_t | state i, observed part of x_t], (N, n, d): the point itself where nothing is missing."""
    points: Floats | None = leaf.expected_points(packed)
    if points is None:
        refuse_missing(packed, who, f"emissions {type(leaf).__name__}")
    assert points is not None
    return points


def refuse_missing(packed: Packed, who: str, what: str) -> None:
    """Raise at the first missing entry."""
    gaps = np.argwhere(np.isnan(packed.values))
    if len(gaps):
        row, column = gaps[0].tolist()
        index, position = locate(packed.offsets, row)
        raise ValueError(
            f"{who}: object {index}, position {position}, column {column} is NaN, but {what} cannot take missing "
            "entries. Fill it in, or use Marginalized with Gaussian emissions and features='mean' or 'raw'."
        )
