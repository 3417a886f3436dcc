"""Products of a series with its own past: the material of a first guess of its dynamics."""

from __future__ import annotations

import numpy as np

from genkern.core.jit import jit
from genkern.core.kalman.steps import Floats, Ints


def autocovariances(values: Floats, offsets: Ints, own: bool, lags: int, weights: Floats | None = None) -> Floats:
    r"""Return second moments :math:`\Gamma_k = \mathrm{mean}_t \, x_{t+k} x_t^T`, k = 0..lags, about zero.

    They have shape (1, lags + 1, d, d), or (n_objects, lags + 1, d, d) if ``own``. The mean is over the pairs of which
    both entries are there, NaN being missing; it is zero where there are none. Objects count as often as their weights
    (n_objects,) say, or once.
    """
    groups, d = len(offsets) - 1 if own else 1, values.shape[1]
    sums, counts = np.zeros((groups, lags + 1, d, d)), np.zeros((groups, lags + 1, d, d))
    _add_products(values, offsets, np.ones(len(offsets) - 1) if weights is None else weights, sums, counts)
    return sums / np.where(counts > 0.0, counts, 1.0)


@jit
def _add_products(values, offsets, weights, sums, counts):
    """Add products of lags 0, 1, ... of every object, and their numbers, to its group or the only one."""
    groups, lags, d = sums.shape[:3]
    for i in range(len(offsets) - 1):
        g = i if groups > 1 else 0
        for t in range(offsets[i], offsets[i + 1]):
            for k in range(min(lags, offsets[i + 1] - t)):
                for a in range(d):
                    for b in range(d):
                        product = values[t + k, a] * values[t, b]
                        if not np.isnan(product):
                            sums[g, k, a, b] += weights[i] * product
                            counts[g, k, a, b] += weights[i]
