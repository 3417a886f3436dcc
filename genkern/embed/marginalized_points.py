"""What is expected of an observation, given the hidden state that emitted it."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.intake import locate
from genkern.models.gaussian import Gaussian
from genkern.models.mixture import Mixture
from genkern.objects import Alphabet, Packed
from genkern.validation import Floats


def symbol_shares(leaf: Any, alphabet: Alphabet) -> Floats:
    """Return P(symbol a | state i, code c) as (M, n, m): one or zero, but for ambiguous codes."""
    probs: Floats = np.exp(leaf.log_density(np.arange(alphabet.size, dtype=np.int32))).T
    joint = alphabet.members[:, None, :] * probs
    total = joint.sum(axis=-1, keepdims=True)
    return np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)


def moments_of(leaf: Any) -> tuple[Floats, Floats]:
    """Return means and standard deviations (n, d) of the states' emissions."""
    if isinstance(leaf, Gaussian):
        return leaf.mean, np.sqrt(leaf.variances)
    if isinstance(leaf, Mixture) and isinstance(leaf.components, Gaussian):
        weights, parts = leaf.weights[..., None], leaf.components
        mean = (weights * parts.mean).sum(axis=-2)
        spread = (weights * (parts.variances + (parts.mean - mean[..., None, :]) ** 2)).sum(axis=-2)
        return mean, np.sqrt(spread)
    raise TypeError(
        "Marginalized: features='mean' needs Gaussian emissions or mixtures of them, for means and standard "
        f"deviations. Got {type(leaf).__name__}; use features='raw' or 'rbf'."
    )


def expected_points(leaf: Any, packed: Packed, who: str) -> Floats:
    """Return E[x_t | state i, what is observed of x_t], (N, n, d): the point itself where nothing is missing."""
    points = np.repeat(packed.values[:, None, :], leaf.shape[0], axis=1)
    gaps = np.isnan(packed.values).any(axis=1)
    if not gaps.any():
        return points
    gaussian = leaf.components if isinstance(leaf, Mixture) else leaf
    if not isinstance(gaussian, Gaussian):
        refuse_missing(packed, who, f"emissions {type(leaf).__name__}")
    alone = Packed(packed.values[gaps], np.arange(gaps.sum() + 1))
    blocks = leaf.weigh(alone, np.ones((alone.n_points, leaf.shape[0])), totals=False)
    if isinstance(leaf, Mixture):
        share = blocks["components.weight"][..., None]
        points[gaps] = (blocks["components.mean"] + share * gaussian.mean).sum(axis=-2)
    else:
        points[gaps] = blocks["mean"] + gaussian.mean
    return points


def refuse_missing(packed: Packed, who: str, what: str) -> None:
    """Raise at the first missing entry."""
    gaps = np.argwhere(np.isnan(packed.values))
    if len(gaps):
        row, column = gaps[0].tolist()
        index, position = locate(packed.offsets, row)
        raise ValueError(
            f"{who}: object {index}, position {position}, column {column} is NaN, but {what} cannot take missing "
            "entries. Fill it in, or use Gaussian emissions with features='mean' or 'raw'."
        )
