r"""Estimation in standard units: data are centred and scaled, models fitted there and mapped back.

.. math:: x' = (x - m) / u, \qquad \log p(x) = \log p'(x') - \sum \log u

with m and u the mean and the unit of each channel, and the sum over all values that are not missing. EM then sees the
same numbers whatever the units and the offset of the data, and a floor of variances is relative to the variances of the
data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.data.objects import Packed
from genkern.models.fit.channel_moments import moments, without_outliers
from genkern.models.fit.floors import ROUNDING, channel_units, refuse_tiny
from genkern.models.fit.weights import point_weights
from genkern.validation import Floats, warn

NAMED = 5  # channels and objects that a warning lists


class Units(NamedTuple):
    """Means and units (G, d) of the channels, of all objects together (G = 1) or of each, and the sums (G,) of log u.

    ``spread`` (G, d) are the variances in standard units without outliers: one for centred data without outliers, and
    for constant channels.
    """

    mean: Floats
    unit: Floats
    log_volume: Floats
    spread: Floats

    def of(self, members: NDArray[np.int64]) -> Units:
        """Return the units of some objects, or of one of them several times."""
        return Units(*(part[members] for part in self))

    def floors(self, absolute: float, relative: float) -> Floats:
        """Return floors (G, d) of variances in standard units: a share of the spread, or a variance in the data's."""
        return np.maximum(relative * self.spread, (np.sqrt(absolute) / self.unit) ** 2)

    def shift(self, per_log_unit: float = 0.0) -> Floats:
        """Return the change of objectives (G,) by the units; a prior that depends on them adds a multiple of log u."""
        return np.asarray(self.log_volume + per_log_unit * np.log(self.unit).sum(axis=1))


def standardise(
    packed: Packed, own: bool, who: str, centred: bool = True, common: bool = False
) -> tuple[Packed, Units]:
    """Return numbers in standard units, and the units.

    Parameters
    ----------
    packed : Packed
    own : bool
        Units of each object, or of all together.
    who : str
        Name of the caller, for error messages.
    centred : bool
        Whether the mean is subtracted; if not, units are root mean squares.
    common : bool
        Whether all channels have one unit, for models that cannot tell them apart.
    """
    mean, unit = (np.atleast_2d(part) for part in channel_units(packed, own))
    refuse_tiny(unit, own, who)
    if not centred:
        mean, unit = np.zeros_like(mean), np.where(np.abs(mean) == unit, unit, np.hypot(mean, unit))
    if common:
        top = unit.max(axis=1, keepdims=True)
        unit = np.broadcast_to(top * np.sqrt(((unit / top) ** 2).mean(axis=1, keepdims=True)), unit.shape)
    sizes = packed.lengths if own else np.array([packed.n_points])
    starts = packed.offsets[:-1] if own else packed.offsets[:1]
    scale = np.repeat(unit, sizes, axis=0)
    values = (packed.values - np.repeat(mean, sizes, axis=0)) / scale
    count = np.add.reduceat(~np.isnan(values) * point_weights(packed), starts, axis=0)
    standard = packed._replace(values=values)
    centre, variance = moments(standard, own)
    varies = variance > ROUNDING**2 * (variance + centre**2)
    spread = np.where(varies, without_outliers(standard, own, centre, variance), 1.0)
    if common:
        spread = np.broadcast_to(spread.mean(axis=1, keepdims=True), spread.shape)
    return standard, Units(mean, unit, (count * np.log(unit)).sum(axis=1), spread)


def refuse_unseen(packed: Packed, own: bool, who: str) -> None:
    """Raise where an object, or all of them together, has no value at all in a channel."""
    seen = _seen(packed, own)
    if not seen.all():
        index, column = np.argwhere(~seen)[0].tolist()
        raise ValueError(
            f"{who}: {f'object {index} has' if own else 'the objects have'} no observed value in column {column}, so "
            "that its distribution cannot be estimated. Leave that column out."
        )


def warn_unseen(packed: Packed, own: bool, who: str, law: str) -> None:
    """Warn, once, of channels without any value, of an object or of all together, and name their distribution.

    Objects without values in any channel are reported by ``data.intake``.
    """
    seen = _seen(packed, own)
    unseen = ~seen & seen.any(axis=1, keepdims=True)
    if not unseen.any():
        return
    columns, objects = np.flatnonzero(unseen.any(axis=0)), np.flatnonzero(unseen.any(axis=1))
    where = f"in {len(objects)} of {len(unseen)} objects (object {_listed(objects)})" if own else "in any object"
    warn(
        f"{who}: nothing was observed {where} of channel {_listed(columns)}: {law}. "
        "Leave such channels out, if that is not meant.",
        UserWarning,
        [("unseen", tuple(columns.tolist()))],
    )


def _seen(packed: Packed, own: bool) -> NDArray[np.bool_]:
    """Return the channels (G, d) that have any value."""
    starts = packed.offsets[:-1] if own else packed.offsets[:1]
    return np.asarray(np.logical_or.reduceat(~np.isnan(packed.values), starts, axis=0))


def _listed(numbers: NDArray[np.int64]) -> str:
    return ", ".join(map(str, numbers[:NAMED])) + (", ..." if len(numbers) > NAMED else "")
