"""Means, variances and units of channels by fast sums; ``floors`` is for channels near the limits of float64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from genkern.data.objects import Packed
from genkern.models.fit.floors import ROUNDING, channel_scales, channel_units
from genkern.models.fit.weights import counted, point_weights, quantiles
from genkern.validation import Floats

CLEAR = 1e-20  # variance, relative to the mean square, that cannot be a rounding error
INSIDE = (1e-290, 1e300)  # variances that neither underflow nor overflow
FAR = 16.0  # squared deviation of an outlier, in units of the variance
MIDDLE = (0.1, 0.9)  # quantiles between which there are no outliers
WIDTH = 2.5631031310892007  # of the standard normal law between those


def moments(packed: Packed, own: bool) -> tuple[Floats, Floats]:
    """Return the means and variances (G, d) of the values that are not missing, of each object or of all."""
    offsets = packed.offsets[:-1] if own else packed.offsets[:1]
    sizes = packed.lengths if own else np.array([packed.n_points])
    seen, often = ~np.isnan(packed.values), counted(packed)
    count = np.add.reduceat(seen * often, offsets, axis=0)
    count = np.where(count > 0.0, count, 1.0)
    mean = np.add.reduceat(np.where(seen, often * packed.values, 0.0), offsets, axis=0) / count
    gaps = np.where(seen, packed.values - np.repeat(mean, sizes, axis=0), 0.0)
    with np.errstate(over="ignore"):
        return mean, np.add.reduceat(often * gaps**2, offsets, axis=0) / count


def scales(packed: Packed, own: bool, mean: Floats, variance: Floats) -> Floats:
    """Return ``channel_scales`` (G, d), given means and variances."""
    clear = _clear(mean, variance)
    out = variance.copy()
    if not clear.all():
        odd = ~clear.all(axis=1)
        out[odd] = np.where(clear[odd], out[odd], channel_scales(packed.take(odd) if own else packed, own))
    return out


def without_outliers(packed: Packed, own: bool, mean: Floats, variance: Floats) -> Floats:
    """Return the variances (G, d); for channels with outliers, that of a normal distribution with the same quartiles.

    An outlier adds its square to the variance. A floor that is small relative to that may be large relative to all
    other values. Where the middle values are all the same, the variance stays.
    """
    starts = packed.offsets[:-1] if own else packed.offsets[:1]
    ends = packed.offsets[1:] if own else packed.offsets[-1:]
    gaps = packed.values - np.repeat(mean, ends - starts, axis=0)
    with np.errstate(over="ignore"):
        squares = np.fmax.reduceat(gaps**2, starts, axis=0)
        far = (squares > FAR * variance) & _clear(mean, variance)
    out = variance.copy()
    for i, c in np.argwhere(far).tolist():
        column = packed.values[starts[i] : ends[i], c]
        seen = ~np.isnan(column)
        weights = None if packed.weights is None else point_weights(packed)[starts[i] : ends[i], 0][seen]
        low, high = quantiles(column[seen], weights, MIDDLE)
        if high - low > ROUNDING * max(abs(low), abs(high)):
            out[i, c] = min(variance[i, c], float((high - low) / WIDTH) ** 2)
    return out


def units(packed: Packed, own: bool) -> Floats:
    """Return the units (G, d) of ``channel_units``."""
    mean, variance = moments(packed, own)
    clear = _clear(mean, variance)
    out = np.sqrt(variance)
    if not clear.all():
        odd = ~clear.all(axis=1)
        out[odd] = np.where(clear[odd], out[odd], channel_units(packed.take(odd) if own else packed, own)[1])
    return out


def _clear(mean: Floats, variance: Floats) -> NDArray[np.bool_]:
    """Return whether variances can be trusted: neither rounding errors nor overflown."""
    with np.errstate(over="ignore", invalid="ignore"):
        inside = (variance > INSIDE[0]) & (variance < INSIDE[1])
        return np.asarray(inside & (variance > CLEAR * (variance + mean**2)))
