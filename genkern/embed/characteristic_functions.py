"""Characteristic functions of leaf families."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.models.bernoulli import Bernoulli
from genkern.models.categorical import Categorical
from genkern.models.gaussian import Gaussian
from genkern.models.kde import KDE
from genkern.models.mixture import Mixture
from genkern.validation import Floats

Complexes = NDArray[np.complex128]


class Scaled(NamedTuple):
    """Complex numbers ``values``, times the exponentials of ``logs`` (of their shape) unless these are None."""

    values: Complexes
    logs: Floats | None


@singledispatch
def characteristic(leaf: Any, waves: Floats) -> Scaled:
    r"""Return :math:`E\, e^{i \omega^T X}`, batch + (D,), at frequencies (D, d) for each member of a leaf stack."""
    raise _unknown(leaf)


@characteristic.register
def _(leaf: Gaussian, waves: Floats) -> Scaled:
    r"""Return :math:`e^{i \omega^T \mu - \omega^T \Sigma\, \omega / 2}`."""
    if leaf.covariance_type == "full":
        squares = np.einsum("...si,si->...s", waves @ leaf.cov, waves)
    else:
        squares = leaf.variances @ (waves**2).T
    return Scaled(_turns(leaf.mean @ waves.T), -0.5 * squares)


@characteristic.register
def _(leaf: Categorical, waves: Floats) -> Scaled:
    r"""Return :math:`\sum_a \theta_a e^{i \omega_a}`: symbols are one-hot vectors."""
    return Scaled(leaf.probs @ np.cos(waves.T) + 1j * (leaf.probs @ np.sin(waves.T)), None)


@characteristic.register
def _(leaf: Bernoulli, waves: Floats) -> Scaled:
    r"""Return :math:`\prod_j (1 - \gamma_j + \gamma_j e^{i \omega_j})`."""
    return Scaled(np.prod(1.0 + leaf.probs[..., None, :] * (_turns(waves) - 1.0), axis=-1), None)


@characteristic.register
def _(leaf: KDE, waves: Floats) -> Scaled:
    r"""Return :math:`\sum_j w_j e^{i \omega^T x_j - h |\omega|^2 / 2}`."""
    values = np.einsum("...j,...js->...s", leaf.weights, _turns(leaf.points @ waves.T))
    return Scaled(values, -0.5 * leaf.variance[..., None] * (waves**2).sum(axis=1))


@characteristic.register
def _(leaf: Mixture, waves: Floats) -> Scaled:
    """Return the weighted sum of those of the components."""
    values, logs = characteristic(leaf.components, waves)
    top = None if logs is None else np.where(leaf.weights[..., None] > 0, logs, -np.inf).max(axis=-2)
    if top is not None:
        values = values * np.exp(np.minimum(logs - top[..., None, :], 0.0))
    return Scaled(np.einsum("...k,...ks->...s", leaf.weights, values), top)


def space(leaf: Any) -> tuple[int, Any]:
    """Return the dimension of frequencies, and the alphabet if points are symbols, refusing unknown families."""
    if isinstance(leaf, Mixture):
        return space(leaf.components)
    if characteristic.dispatch(type(leaf)) is characteristic.dispatch(object):
        raise _unknown(leaf)
    locations = getattr(leaf, leaf._fields[0])  # means, points or probabilities
    return locations.shape[-1], getattr(leaf, "alphabet", None)


def variances(leaf: Any) -> Floats:
    """Return what damps high frequencies: variances (members, d), the least of full covariances, zero for symbols."""
    if isinstance(leaf, Mixture):
        return variances(leaf.components)
    dimension = space(leaf)[0]
    if isinstance(leaf, Gaussian):
        full = leaf.covariance_type == "full"
        spread = np.maximum(np.linalg.eigvalsh(leaf.cov)[..., :1], 0.0) if full else leaf.variances
    else:
        spread = leaf.variance[..., None] if isinstance(leaf, KDE) else np.zeros((*leaf.shape, 1))
    return np.broadcast_to(spread, (*leaf.shape, dimension)).reshape(-1, dimension)


def load(leaf: Any) -> int:
    """Return the numbers that a member needs per frequency while it is worked on, at most."""
    if isinstance(leaf, Mixture):
        return leaf.n_components * load(leaf.components)
    if isinstance(leaf, KDE):
        return int(leaf.points.shape[-2])
    return space(leaf)[0]


def _turns(angles: Floats) -> Complexes:
    """Return exp(i angle), in half the time of the exponential of complex numbers."""
    turns = np.empty(angles.shape, np.complex128)
    np.cos(angles, out=turns.real)
    np.sin(angles, out=turns.imag)
    return turns


def _unknown(leaf: Any) -> TypeError:
    return TypeError(
        f"CharacteristicFeatures: there is no characteristic function for {type(leaf).__name__}. It knows Gaussian, "
        "Categorical, Bernoulli and KDE, Mixture of these, and HMM over all of them; for others take "
        "Gram(MeanMap(...))."
    )
