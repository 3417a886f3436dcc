"""First guesses for EM on linear dynamical systems, one for all series or one for each."""

from __future__ import annotations

import numpy as np

from genkern.core.kalman.lags import autocovariances
from genkern.data.objects import Packed
from genkern.models.fit.restarts import Restarts
from genkern.models.fit.streams import uniforms
from genkern.models.lds.covariance import shaped
from genkern.models.lds.model import LDS
from genkern.models.lds.step import Rules
from genkern.validation import Floats

RADIUS = 0.99  # largest spectral radius of the first dynamics
SIGNAL = 0.5  # share of the observations' variance that the first states explain
JITTER = 0.5  # size of the changes, relative to entries, from which restarts begin


def first_guess(packed: Packed, n: int, init: str, form: str, rules: Rules, own: bool) -> LDS:
    r"""Return the system (or the stack of own systems) from which EM starts, in units of states of variance one.

    "subspace" is the realisation of the autocovariances :math:`\Gamma_k = C A^{k-1} G`: the left singular vectors of
    their block Hankel matrix :math:`(\Gamma_{i+j+1})_{ij}` span the columns of :math:`(C; CA; CA^2; \ldots)`, whose
    first block is C and whose shift gives A (Ho & Kalman 1966, Van Overschee & De Moor 1996, chapter 3). "pca"
    takes for C the leading eigenvectors of :math:`\Gamma_0` and regresses the projected observations on the ones
    before them. Both take moments about zero, where data in standard units have their mean.
    """
    d = packed.values.shape[1]
    if init == "pca" and n > d:
        raise ValueError(
            f"LDSEstimator: init='pca' needs n_states <= {d}, the number of channels. Got {n}; use init='subspace'."
        )
    depth = -(-n // d) + 2
    gamma = autocovariances(packed.values, packed.offsets, own, 2 * depth - 1, packed.weights)
    A, C = _subspace(gamma, n, depth) if init == "subspace" else _principal(gamma, n)
    return _complete(A, C, gamma[:, 0], form, rules, own)


def perturbed(guess: LDS, restarts: Restarts) -> LDS:
    """Return a starting model with random changes of dynamics and observation, except in the first run."""
    n, d = guess.n_states, guess.n_channels
    systems = guess.systems()
    numbers = 2.0 * uniforms(restarts.keys[:, None], np.arange((n + d) * n)).reshape(-1, n + d, n) - 1.0
    size = np.sqrt((systems.C**2).mean(axis=(1, 2), keepdims=True))
    later = (restarts.numbers > 0)[:, None, None]
    A = np.where(later, _held(systems.A + JITTER * numbers[:, :n]), systems.A)
    C = np.where(later, systems.C + JITTER * size * numbers[:, n:], systems.C)
    rest = (getattr(guess, name) for name in LDS._fields[2:])
    return LDS._restore(A.reshape(guess.transition.shape), C.reshape(guess.observation.shape), *rest)


def _subspace(gamma: Floats, n: int, depth: int) -> tuple[Floats, Floats]:
    """Return A (P, n, n) and C (P, d, n) from autocovariances (P, 2 depth, d, d)."""
    groups, _, d, _ = gamma.shape
    rows = np.arange(depth)
    hankel = gamma[:, rows[:, None] + rows + 1].transpose(0, 1, 3, 2, 4).reshape(groups, depth * d, depth * d)
    columns = np.linalg.svd(hankel)[0][..., :n]
    A = np.linalg.pinv(columns[:, :-d]) @ columns[:, d:]
    return A, columns[:, :d]


def _principal(gamma: Floats, n: int) -> tuple[Floats, Floats]:
    """Return A (P, n, n) and C (P, d, n) from the leading eigenvectors."""
    C = np.linalg.eigh(gamma[:, 0])[1][..., ::-1][..., :n]
    now, lagged = (np.swapaxes(C, -1, -2) @ gamma[:, k] @ C for k in (0, 1))
    return lagged @ np.linalg.pinv(now, hermitian=True), C


def _held(A: Floats) -> Floats:
    """Return dynamics shrunk where their spectral radius is too large."""
    radius = np.abs(np.linalg.eigvals(A)).max(axis=-1)
    return np.asarray(A * (RADIUS / np.maximum(radius, RADIUS))[:, None, None])


def _complete(A: Floats, C: Floats, gamma: Floats, form: str, rules: Rules, own: bool) -> LDS:
    """Return systems with dynamics that are stable, and noises that leave states a variance of about one."""
    n = A.shape[-1]
    A = _held(A)
    variance = np.diagonal(gamma, axis1=-2, axis2=-1)
    power, seen = SIGNAL * variance.sum(axis=-1), (C**2).sum(axis=(-1, -2))
    C = C * np.sqrt(np.where(power > 0.0, power / np.where(seen > 0.0, seen, 1.0), 1.0))[:, None, None]
    Q = shaped(np.eye(n) - A @ np.swapaxes(A, -1, -2), "full", max(rules.state_floor, 1.0 - SIGNAL))
    R = shaped((1.0 - SIGNAL) * variance[..., None] * np.eye(C.shape[-2]), form, np.maximum(rules.obs_floor, 1e-12))
    P = np.broadcast_to(max(rules.state_floor, 1.0) * np.eye(n), A.shape)
    stack = LDS(A, C, Q, R, np.zeros(A.shape[:-1]), P)
    return stack if own else stack[0]
