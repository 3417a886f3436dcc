"""What is expected of an observation, given the hidden state that emitted it."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.embed.states import posteriors
from genkern.intake import locate
from genkern.models.categorical import Categorical
from genkern.models.gaussian import Gaussian
from genkern.models.hmm import HMM
from genkern.models.mixture import Mixture
from genkern.objects import Alphabet, Packed
from genkern.validation import Floats


def emissions_of(model: Any) -> Any:
    """Return what the states of an HMM or the components of a mixture emit; None for other models."""
    return getattr(model, "emissions", getattr(model, "components", None))


def refuse_windows(model: Any, packed: Packed, who: str) -> None:
    """Raise if observations are not single symbols."""
    if packed.values.ndim > 1:
        raise TypeError(f"{who}: {type(emissions_of(model)).__name__} emits windows, not single symbols.")


def expected_counts(model: Any, packed: Packed, who: str) -> Floats:
    """Return how often each state is expected to have emitted each symbol, (n_objects, S, m).

    An ambiguous symbol counts for its members by their posterior probability.
    """
    leaf, alphabet, codes = emissions_of(model), packed.alphabet, packed.values
    assert alphabet is not None
    if isinstance(leaf, Categorical):
        prefix = "emissions" if isinstance(model, HMM) else "components"
        return leaf.probs * model.statistics(packed)[f"{prefix}.probs"]
    if leaf is None and (unknown := np.flatnonzero(codes >= alphabet.size)).size:
        index, position = locate(packed.offsets, int(unknown[0]))
        symbol = alphabet.decode(codes[unknown[:1]])[0]
        raise ValueError(
            f"{who}: object {index}, position {position} is the ambiguous symbol {symbol!r}, which "
            f"{type(model).__name__} does not share out among its members. Use its to_hmm()."
        )
    rows, width = packed.n_objects, alphabet.n_codes
    cells = packed.owners * width + codes
    gamma = posteriors(model, packed)
    by_code: Floats = np.stack([np.bincount(cells, g, rows * width).reshape(rows, width) for g in gamma.T], axis=1)
    counts = by_code[..., : alphabet.size]
    if codes.max() >= alphabet.size:
        probs = symbol_probs(leaf, alphabet)
        totals = probs @ alphabet.extras.T
        for code, members in enumerate(alphabet.extras):
            joint, total = members * probs, totals[:, code, None]
            share = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)
            counts = counts + by_code[..., alphabet.size + code, None] * share
    return counts


def symbol_probs(leaf: Any, alphabet: Alphabet) -> Floats:
    """Return P(symbol a | state i) as (n, m)."""
    probs: Floats = np.exp(leaf.log_density(np.arange(alphabet.size, dtype=np.int32))).T
    return probs


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
            "entries. Fill it in, or use Marginalized with Gaussian emissions and features='mean' or 'raw'."
        )
