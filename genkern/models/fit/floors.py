"""Units of the data, channel by channel; floors of variances are relative to them."""

from __future__ import annotations

import numpy as np

from genkern.data.objects import Packed
from genkern.models.fit.weights import counted
from genkern.validation import LARGEST, Floats

SMALLEST = 1.0 / LARGEST  # deviation of a channel: fourth powers of smaller ones leave the range of float64
ROUNDING = 1e-14  # a deviation below this share of a channel's largest value is rounding, not variance


def channel_units(packed: Packed, own: bool) -> tuple[Floats, Floats]:
    """Return the mean and the unit of every channel of numbers, (d,) of all objects or (n_objects, d) of each.

    The unit is the standard deviation of the values that are not missing (NaN); the magnitude of a constant channel;
    one for a channel of zeros or without values. Neither overflows, whatever the values.
    """
    starts = packed.offsets[:-1] if own else packed.offsets[:1]
    sizes = packed.lengths if own else np.array([packed.n_points])
    seen, often = ~np.isnan(packed.values), counted(packed)
    count = np.add.reduceat(seen * often, starts, axis=0)
    count = np.where(count > 0.0, count, 1.0)
    top = np.maximum.reduceat(np.where(seen, np.abs(packed.values), 0.0), starts, axis=0)
    # values in [-1/2, 1/2], scaled by powers of two, which is exact; subtracting the least keeps a constant exactly
    # constant
    power = np.maximum(np.frexp(top)[1], -1000)
    scaled = np.ldexp(packed.values, -1 - np.repeat(power, sizes, axis=0))
    least = np.minimum.reduceat(np.where(seen, scaled, 1.0), starts, axis=0)
    least = np.where(top > 0.0, least, 0.0)
    gaps = np.where(seen, scaled - np.repeat(least, sizes, axis=0), 0.0)
    mean = np.add.reduceat(often * gaps, starts, axis=0) / count
    gaps = np.where(seen, gaps - np.repeat(mean, sizes, axis=0), 0.0)
    deviation = np.sqrt(np.add.reduceat(often * gaps**2, starts, axis=0) / count)
    mean = mean + least
    unit = np.where(deviation > ROUNDING * np.ldexp(top, -1 - power), deviation, np.abs(mean))
    mean, unit = np.ldexp(mean, power + 1), np.ldexp(unit, power + 1)
    unit = np.where(unit > 0.0, unit, 1.0)
    return (mean, unit) if own else (mean[0], unit[0])


def channel_scales(packed: Packed, own: bool) -> Floats:
    """Return the variance of every channel, (d,) over all objects or (n_objects, d) over each object's own values.

    A constant channel has its mean square instead, and a channel of zeros one. Missing values (NaN) are left
    out. Squares beyond the range of float64 are clamped to it.
    """
    unit = channel_units(packed, own)[1]
    limits = np.finfo(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        return np.clip(unit**2, limits.tiny, limits.max)


def refuse_tiny(units: Floats, own: bool, who: str) -> None:
    """Raise where the values of a channel differ by so little that squares leave the range of numbers; (G, d)."""
    if units.min() < SMALLEST:
        index, column = np.argwhere(units < SMALLEST)[0].tolist()
        what = f"object {index}" if own else "the objects"
        raise ValueError(
            f"{who}: column {column} of {what} deviates by {units[index, column]:.3g} or less; expected is at least "
            f"{SMALLEST:g}, lest squares underflow. Divide the column by its scale."
        )
