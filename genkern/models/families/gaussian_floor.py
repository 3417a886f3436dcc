r"""Floors of Gaussian covariances, in units of the data.

.. math:: \Sigma \succeq \mathrm{diag}(\epsilon_1, \dots, \epsilon_d), \qquad
   \epsilon_c = \max(\epsilon_{abs}, \epsilon_{rel}\, s_c^2)

with the variance of channel c, outliers left aside. Isotropic covariances have one floor, that of the mean variance
over channels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.data.objects import Packed
from genkern.models.families.gaussian import Gaussian
from genkern.models.fit.channel_moments import moments, scales, without_outliers
from genkern.models.fit.floors import ROUNDING, refuse_tiny
from genkern.validation import Floats

NEAR = 1.0 + 1e-6  # times the floor: a smaller variance counts as at the floor
SAME = 1e-2  # times the floor: points with a smaller variance almost coincide
VAGUE = 1e-12  # variance of a constant channel, relative to the mean square, where there is no floor


def data_floor(packed: Packed, own: bool, form: str, absolute: float, relative: float) -> Floats:
    """Return the floor (d,), or (n_objects, 1, d) of each object's own values; isotropic ones have no last axis."""
    floor = np.maximum(absolute, relative * _units(packed, own, form))
    return floor[:, None] if own else floor


def mean_and_scale(packed: Packed, own: bool, absolute: float, relative: float) -> tuple[Floats, Floats]:
    """Return the means and variances (G, d) of channels, the latter not below the floor, and always positive."""
    mean, variance = moments(packed, own)
    floor = np.maximum(absolute, max(relative, VAGUE) * scales(packed, own, mean, variance))
    return mean, np.maximum(variance, floor)


def statistics_floor(blocks: dict[str, Floats], leaf: Gaussian, absolute: float, relative: float) -> Any:
    """Return the floor given sums about the means of leaf, whose members share all points: of each row of members."""
    if relative == 0:
        return absolute
    weight = blocks["weight"].reshape(leaf.shape)[..., None]
    first = blocks["mean"].reshape(leaf.mean.shape)
    second = blocks["cov"].reshape((*leaf.shape, *blocks["cov"].shape[2:]))
    if leaf.covariance_type == "full":
        second = np.diagonal(second, axis1=-2, axis2=-1)
    total = weight.sum(axis=-2, keepdims=True)
    total = np.where(total > 0, total, 1.0)

    def square(centre: Any) -> Floats:
        gap = leaf.mean - centre
        return np.asarray((second + 2.0 * gap * first + weight * gap**2).sum(axis=-2, keepdims=True) / total)

    mean = (weight * leaf.mean + first).sum(axis=-2, keepdims=True) / total
    variance, size = square(mean), square(0.0)
    constant = variance <= ROUNDING**2 * size
    found = np.where(constant, np.where(size > 0, size, 1.0), variance)
    if leaf.covariance_type == "isotropic":
        found = _mean_unit(np.where(constant, 0.0, variance), found)
    return np.maximum(absolute, relative * found)


def floor_covariances(cov: Floats, floor: Any, form: str) -> Floats:
    """Return the likeliest covariances under a floor, given those without one."""
    return floor_eigenvalues(cov, floor) if form == "full" else np.maximum(cov, floor)


def floor_eigenvalues(cov: Floats, floor: Any) -> Floats:
    r"""Return the likeliest covariances with :math:`\Sigma \succeq \mathrm{diag}(\epsilon)`, given those without floor.

    In units in which the floor of every channel is one, eigenvalues below one are raised to it. The floor is a number
    or has the shape batch + (d,), and is positive in all channels or zero.
    """
    even = 0.5 * (cov + np.swapaxes(cov, -1, -2))
    least = np.broadcast_to(floor, even.shape[:-1])
    unit = np.sqrt(np.where(least > 0, least, 1.0))
    unit = unit[..., :, None] * unit[..., None, :]
    values, vectors = np.linalg.eigh(even / unit)
    least = (least > 0).astype(np.float64)
    low = np.asarray((values < least).any(axis=-1))
    if not low.any():
        return even
    raised = unit * ((vectors * np.maximum(values, least)[..., None, :]) @ np.swapaxes(vectors, -1, -2))
    # Members above the floor are not changed, to the last bit, whatever their neighbours.
    return np.where(low[..., None, None], 0.5 * (raised + np.swapaxes(raised, -1, -2)), even)


def at_floor(leaf: Gaussian, floor: Any) -> NDArray[np.bool_]:
    """Return which variances (of full covariances: in which principal directions) are at the floor, batch + (.,)."""
    if leaf.covariance_type == "isotropic":
        return np.asarray(leaf.cov <= floor * NEAR)[..., None]
    if leaf.covariance_type == "diagonal":
        return np.asarray(leaf.cov <= floor * NEAR)
    least = np.broadcast_to(floor, leaf.mean.shape)
    unit = np.sqrt(np.where(least > 0, least, 1.0))
    values = np.linalg.eigvalsh(leaf.cov / (unit[..., :, None] * unit[..., None, :]))
    return np.asarray(values <= np.where(least > 0, NEAR, 0.0))


def _units(packed: Packed, own: bool, form: str) -> Floats:
    """Return the variances of channels that floors are relative to: (d,) or (n_objects, d), their mean if isotropic."""
    mean, variance = moments(packed, own)
    found = scales(packed, own, mean, variance)
    refuse_tiny(np.sqrt(found), own, "GaussianEstimator")
    instead = variance < 0.5 * found  # the stand-in for a variance that is not known
    found = np.where(instead, found, without_outliers(packed, own, mean, found))
    if form == "isotropic":
        found = _mean_unit(np.where(instead, 0.0, found), found)
    return found if own else found[0]


def _mean_unit(variance: Floats, instead: Floats) -> Floats:
    """Return the mean over channels of the variance, or of its stand-in where no channel has any."""
    mean = variance.mean(axis=-1)
    return np.where(mean > 0, mean, instead.mean(axis=-1))
