"""First guesses for EM on factorial models."""

from __future__ import annotations

import numpy as np

from genkern.models.factorial.model import FactorialHMM
from genkern.models.fit.streams import Keys, uniforms
from genkern.models.lds.covariance import shaped
from genkern.validation import Floats

DEVIATION = 0.2  # size of the first means, relative to their share of the deviation of the data
STAYING = 0.5  # added to the probability of staying in a state, besides equal probabilities for all


def factorial_guess(sizes: tuple[int, ...], form: str, floors: Floats, own: bool, keys: Keys) -> FactorialHMM:
    """Return the model (or stack of own models) from which EM starts: almost equal states, and large noise.

    Data are in standard units, in which noises have floors (G, d). From there EM finds the chains together. Starts that
    explain the data chain after chain, by k-means on the residuals of the chains before, mostly end in a local maximum
    in which one chain mixes two.
    """
    count, d = len(sizes), floors.shape[1]
    draws = uniforms(keys[:, None], np.arange(sum(sizes) * d)).reshape((len(keys), sum(sizes), d))
    scale = DEVIATION * np.sqrt(3.0 / count)  # uniform numbers in [-1, 1] have variance 1/3
    means = np.split(scale * (2.0 * draws - 1.0), np.cumsum(sizes)[:-1], axis=-2)
    rows = [STAYING * np.eye(k) + (1.0 - STAYING) / k for k in sizes]
    stack = FactorialHMM._restore(
        tuple(np.full((len(keys), k), 1.0 / k) for k in sizes),
        tuple(np.tile(matrix, (len(keys), 1, 1)) for matrix in rows),
        tuple(means),
        shaped(np.tile(np.eye(d), (len(keys), 1, 1)), form, floors),
    )
    return stack if own else stack[0]
