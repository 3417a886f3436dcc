"""One covariance of a linear dynamical system: isotropic (), diagonal (d,) or full (d, d), after its batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from genkern.models import simplex
from genkern.models.families.gaussian import spread_jacobian, vech_information
from genkern.validation import Floats


def form_of(spread: Floats, batch: int) -> str:
    """Return "isotropic", "diagonal" or "full"."""
    return ("isotropic", "diagonal", "full")[spread.ndim - batch]


def matrices(spread: Floats, batch: int, d: int) -> Floats:
    """Return full covariances batch + (d, d)."""
    form = form_of(spread, batch)
    if form == "full":
        return np.array(spread)
    variances = spread if form == "diagonal" else np.repeat(spread[..., None], d, axis=-1)
    return np.asarray(variances[..., None] * np.eye(d))


def roots(covs: Floats) -> Floats:
    """Return symmetric square roots of positive semidefinite matrices (..., d, d)."""
    values, vectors = np.linalg.eigh(covs)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]) @ np.swapaxes(vectors, -1, -2))


def gradient(raw: Floats, spread: Floats, coordinates: str) -> Floats:
    """Return derivatives (G, p) by one covariance from those by every entry of its matrix, (G, d, d)."""
    if spread.ndim == 2:
        a, b = np.tril_indices(len(spread))
        return np.asarray(np.where(a == b, 1.0, 2.0) * raw[:, a, b])
    by_variance = np.diagonal(raw, axis1=-2, axis2=-1)
    if spread.ndim == 0:
        by_variance = by_variance.sum(axis=-1, keepdims=True)
    return np.asarray(by_variance * spread_jacobian(spread, coordinates))


def information(spread: Floats, d: int, draws: float, coordinates: str) -> Floats:
    """Return the Fisher information (p, p) of a number of draws of N(0, covariance), which must be positive."""
    if spread.ndim == 2:
        return vech_information(np.asarray(np.linalg.inv(spread), np.float64), draws)
    count = draws if spread.ndim else d * draws
    return np.diag(np.atleast_1d(0.5 * count * (spread_jacobian(spread, coordinates) / spread) ** 2))


def coordinates_of(spread: Floats, coordinates: str) -> Floats:
    """Return the parameters (p,) of one covariance: its lower triangle, or variances in their coordinates."""
    if spread.ndim == 2:
        return np.asarray(spread[np.tril_indices(len(spread))])
    with np.errstate(divide="ignore"):  # the logarithm of a variance of zero
        return np.atleast_1d({"softmax": np.log, "sqrt": np.sqrt}.get(coordinates, np.asarray)(spread))


def from_coordinates(vector: Floats, shape: tuple[int, ...], coordinates: str) -> Floats:
    """Return the covariance of a shape at its parameters."""
    if len(shape) == 2:
        a, b = np.tril_indices(shape[0])
        cov = np.empty(shape)
        cov[a, b] = cov[b, a] = vector
        return cov
    variances = simplex.positive_from(vector, coordinates)
    return np.asarray(variances).reshape(shape)


def names(name: str, shape: tuple[int, ...]) -> list[str]:
    """Return ``name``, ``name[a]`` or ``name[a,b]``, one for each parameter."""
    if len(shape) == 2:
        return [f"{name}[{a},{b}]" for a, b in zip(*np.tril_indices(shape[0]))]
    return [f"{name}[{a}]" for a in range(shape[0])] if shape else [name]


def shaped(moment: Floats, form: str, floors: ArrayLike) -> Floats:
    r"""Return the likeliest covariances of a form not below floors, given second moments (..., d, d).

    Floors are a number or variances F (..., d), all zero or none: full covariances have
    :math:`\Sigma \succeq \mathrm{diag}(F)`, by eigenvalues not below one in units of F; isotropic ones are above all.
    """
    low = np.broadcast_to(np.asarray(floors, np.float64), moment.shape[:-1])
    if form == "full":
        unit = np.sqrt(np.where(low > 0.0, low, 1.0))
        square = unit[..., :, None] * unit[..., None, :]
        values, vectors = np.linalg.eigh(0.5 * (moment + np.swapaxes(moment, -1, -2)) / square)
        values = np.maximum(values, np.where(low > 0.0, 1.0, 0.0))
        raised = (vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2)
        return np.asarray(0.5 * square * (raised + np.swapaxes(raised, -1, -2)))
    variances = np.diagonal(moment, axis1=-2, axis2=-1)
    if form == "diagonal":
        return np.maximum(variances, low)
    return np.maximum(variances.mean(axis=-1), low.max(axis=-1))
