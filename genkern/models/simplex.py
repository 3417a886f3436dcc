r"""Coordinates on the probability simplex, and derivatives in them.

With raw derivatives :math:`g_i = \partial \log p / \partial \theta_i` of a row :math:`\theta` and
:math:`S = \sum_j \theta_j g_j`:

* ``ratio``: :math:`\theta_i = \eta_i / \sum_j \eta_j`, taken at :math:`\sum_j \eta_j = 1`:
  :math:`\partial_{\eta_i} = g_i - S` (Tsuda et al. 2002, eq. A.6)
* ``softmax``: :math:`\theta_i \propto e^{\eta_i}`: :math:`\theta_i (g_i - S)`
* ``sqrt``: :math:`\theta_i \propto \eta_i^2`: :math:`2 \sqrt{\theta_i} (g_i - S)`
* ``raw``: :math:`g_i`, the derivative off the simplex, whose mean is not zero

Nothing is divided by a parameter, so that zero probabilities are legal.
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from genkern.core.arrays.turns import put_turned
from genkern.models.information import LeanInformation
from genkern.validation import Floats


def gradient(raw: Floats, theta: Floats, coordinates: str) -> Floats:
    """Return derivatives (G, ..., m) in the named coordinates from raw ones by the rows theta.

    Theta is (..., m), those of one model, or (G, ..., m), those of each object.
    """
    if coordinates == "raw":
        return raw
    if theta.ndim == raw.ndim:
        rows: Floats = raw - np.einsum("...j,...j->...", raw, theta)[..., None]
        return rows * jacobian(theta, coordinates)
    out = np.empty((len(raw), theta.size))
    put_gradient(raw, theta, coordinates, out, 0)
    return out.reshape(raw.shape)


def put_gradient(raw: Floats, theta: Floats, coordinates: str, out: Floats, first: int) -> None:
    """Put the derivatives by the rows of one model into out (G, p), from column ``first`` on."""
    if coordinates == "raw":
        out[:, first : first + theta.size] = raw.reshape(len(raw), -1)
    else:
        put_turned(raw, theta, jacobian(theta, coordinates), out, first)


def jacobian(theta: Floats, coordinates: str) -> Floats:
    """Return the element-wise factor that turns a projected raw derivative into the named coordinates'."""
    if coordinates == "softmax":
        return theta
    if coordinates == "sqrt":
        return 2.0 * np.sqrt(theta)
    return np.ones_like(theta)


def coordinates_of(theta: Floats, coordinates: str) -> Floats:
    """Return the coordinates of rows (..., m); zeros become -inf in softmax coordinates."""
    if coordinates == "softmax":
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(theta)
        return logs
    return np.sqrt(theta) if coordinates == "sqrt" else theta


def from_coordinates(eta: Floats, coordinates: str) -> Floats:
    """Return rows (..., m) from their coordinates; raw ones are not normalised."""
    with np.errstate(all="ignore"):
        if coordinates == "softmax":
            rows: Floats = softmax(eta, axis=-1)
        elif coordinates == "raw":
            rows = eta
        else:
            weights = eta**2 if coordinates == "sqrt" else eta
            rows = weights / weights.sum(axis=-1, keepdims=True)
    if not np.isfinite(rows).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(rows))[0][:-1])
        zero = " (-inf for a probability of zero)" if coordinates == "softmax" else ""
        raise ValueError(
            f"with_parameters: expected finite numbers{zero} as {coordinates} coordinates of probabilities, that give "
            f"finite ones. Got {eta[where]!s:.200} for row {where}. Take others."
        )
    return rows


def positive_from(eta: Floats, coordinates: str) -> Floats:
    """Return positive numbers from their coordinates: logarithms ("softmax"), roots ("sqrt"), or themselves."""
    with np.errstate(over="ignore"):  # of what overflows, the model says so by name
        values: Floats = {"softmax": np.exp, "sqrt": np.square}.get(coordinates, np.asarray)(eta)
    return values


def information(theta: Floats, draws: Floats, coordinates: str) -> list[LeanInformation]:
    r"""Return the Fisher information (m, m) of ``draws`` (...) categorical draws from each row (..., m), row by row.

    :math:`N J (\mathrm{diag}(1/\theta) - 11^T) J`, with J the ``jacobian``: :math:`N (\mathrm{diag}\,\theta -
    \theta\theta^T)` in softmax coordinates. In ratio coordinates zero parameters have infinite information, and an
    unreachable row carries none.
    """
    rows = theta.reshape(-1, theta.shape[-1])
    counts = np.broadcast_to(draws, theta.shape[:-1]).ravel()
    return [row_information(row, float(count), coordinates) for row, count in zip(rows, counts, strict=True)]


def row_information(theta: Floats, draws: float, coordinates: str) -> LeanInformation:
    """Return the Fisher information of ``draws`` categorical draws from one row (m,)."""
    scale = {"softmax": theta, "sqrt": np.full_like(theta, 4.0)}.get(coordinates)
    if scale is None:
        with np.errstate(divide="ignore"):
            scale = 1.0 / theta
    return LeanInformation(draws * scale if draws > 0 else np.zeros_like(theta), theta, 0.0)
