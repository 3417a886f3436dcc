"""First guesses for EM on factorial models."""

from __future__ import annotations

import numpy as np

from genkern.models.factorial import FactorialHMM
from genkern.models.gaussian_estimator import GaussianEstimator
from genkern.models.streams import Keys, uniforms
from genkern.objects import Packed

DEVIATION = 0.2  # of first means, in units of their share of the data's deviation
STAYING = 0.5  # added to the probability of staying in a state, beside equal chances for all


def factorial_guess(
    packed: Packed, sizes: tuple[int, ...], own: bool, keys: Keys, noise: GaussianEstimator
) -> FactorialHMM:
    """Return the model (or stack of own models) from which EM starts: almost equal states, and all the data are noise.

    From there EM finds the chains together. Starts that explain the data chain after chain, by k-means on what the
    chains before left over, mostly end in a local maximum where one chain has parts of two.
    """
    leaf = noise.reference(packed, 1, own)
    batch, d, count = leaf.shape[:-1], leaf.mean.shape[-1], len(sizes)
    draws = uniforms(keys[:, None], np.arange(sum(sizes) * d)).reshape((*batch, sum(sizes), d))
    scale = DEVIATION * np.sqrt(3.0 * leaf.variances / count)  # uniform numbers in [-1, 1] have variance 1/3
    means = np.split(leaf.mean / count + scale * (2.0 * draws - 1.0), np.cumsum(sizes)[:-1], axis=-2)
    rows = [STAYING * np.eye(k) + (1.0 - STAYING) / k for k in sizes]
    return FactorialHMM._restore(
        tuple(np.full((*batch, k), 1.0 / k) for k in sizes),
        tuple(np.tile(matrix, (*batch, 1, 1)) for matrix in rows),
        tuple(means),
        leaf.cov.reshape((*batch, *leaf.cov.shape[len(batch) + 1 :])),
    )
