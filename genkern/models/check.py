"""A check for models of any package: derivatives must agree with the likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.models.base import COORDINATES
from genkern.validation import Floats, check_number


def check_score(model: Any, X: Any, coordinates: str | None = None, tol: float = 1e-5) -> dict[str, float]:
    r"""Compare ``log_prob_grad`` with finite differences of ``log_prob``.

    .. math:: \frac{4 D(h) - D(2h)}{3}, \quad D(h) = \frac{\log p(x | \theta + h e_j) - \log p(x | \theta - h e_j)}{2h}

    Parameters
    ----------
    model : object
        With ``log_prob``, ``log_prob_grad``, ``parameters``, ``with_parameters`` and ``parameter_names``.
    X : list of objects
    coordinates : str, optional
        One coordinate system; the default is all four.
    tol : float, default=1e-5
        Largest error allowed, relative to the largest derivative (or one).

    Returns
    -------
    errors : dict of str to float
        The largest relative error in each coordinate system.

    Raises
    ------
    ValueError
        If an error exceeds ``tol``, naming the object, the parameter and both numbers.

    Examples
    --------
    >>> from genkern import HMM, Categorical, check_score
    >>> model = HMM([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], Categorical([[0.9, 0.1], [0.2, 0.8]]))
    >>> max(check_score(model, [[0, 1, 1], [1]]).values()) < 1e-6
    True
    """
    check_number(tol, "tol", "check_score", exclusive=True)
    names = COORDINATES if coordinates is None else (coordinates,)
    return {name: _check_one(model, X, name, tol) for name in names}


def _check_one(model: Any, X: Any, coordinates: str, tol: float) -> float:
    """Return the largest relative error in one coordinate system, or raise."""
    gradient = np.asarray(model.log_prob_grad(X, coordinates=coordinates))
    theta = np.asarray(model.parameters(coordinates))
    if gradient.shape[1:] != theta.shape:
        raise ValueError(
            f"check_score: log_prob_grad must have one column per parameter, {theta.size}. Got shape {gradient.shape}."
        )
    scale = max(1.0, float(np.abs(gradient).max()))
    worst = 0.0
    for j in np.flatnonzero(np.isfinite(theta)).tolist():
        if coordinates in ("ratio", "raw", "sqrt") and theta[j] == 0.0:
            continue  # a step below zero leaves the parameter space
        expected = _difference(model, X, theta, j, coordinates)
        error = np.abs(gradient[:, j] - expected) / scale
        i = int(np.argmax(error))
        if not error[i] <= tol:
            raise ValueError(
                f"check_score: object {i}, parameter {model.parameter_names[j]} in {coordinates} coordinates: "
                f"log_prob_grad says {gradient[i, j]:.9g}, differences of log_prob say {expected[i]:.9g} "
                f"(relative error {error[i]:.2g} > {tol:g})."
            )
        worst = max(worst, float(error[i]))
    return worst


def _difference(model: Any, X: Any, theta: Floats, j: int, coordinates: str) -> Floats:
    """Return the extrapolated central difference (n_objects,) in parameter j."""
    step = 1e-4 * max(abs(theta[j]), 1e-2)

    def central(h: float) -> Floats:
        sides = []
        for sign in (1.0, -1.0):
            moved = theta.copy()
            moved[j] += sign * h
            sides.append(np.asarray(model.with_parameters(moved, coordinates).log_prob(X)))
        return (sides[0] - sides[1]) / (2.0 * h)

    return (4.0 * central(step) - central(2.0 * step)) / 3.0
