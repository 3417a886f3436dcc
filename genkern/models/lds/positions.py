"""The contribution of each observation of one series to the log-likelihood of an LDS and its derivatives."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.validation import Floats

LOG_2PI = float(np.log(2.0 * np.pi))
SETTLED = 4.0 * float(np.finfo(np.float64).eps)  # relative change of a covariance that has converged


class Directions(NamedTuple):
    """D directions in the space of all parameters, of which each moves one entry of one of them: (D, ...) each."""

    transition: Floats
    observation: Floats
    state_cov: Floats
    obs_cov: Floats
    initial_mean: Floats
    initial_cov: Floats
    offset: Floats


def position_derivatives(systems: Any, values: Floats) -> tuple[Floats, dict[str, Floats]]:
    r"""Return :math:`\log p(x_t | x_0 \dots x_{t-1})` (T,) and its derivatives, blocks (T, ...) by parameter.

    With the moments m, P of the state before :math:`x_t` is seen, :math:`v = x_t - C m - b`, :math:`S = C P C^T + R`
    and :math:`K = P C^T S^{-1}`, the chain rule goes along with the filter:

    .. math::
        \dot l &= -\tfrac12 \mathrm{tr}\, S^{-1} \dot S + \tfrac12 (S^{-1} v)^T \dot S S^{-1} v - v^T S^{-1} \dot v, \\
        \dot K &= (L \dot P C^T + P^+ \dot C^T - K (\dot C P C^T + \dot R)) S^{-1}, \quad
        L = I - K C, \quad P^+ = L P L^T + K R K^T

    so that time is linear in T; once covariances have converged, only means are updated. Channels that are missing
    (NaN) are left out of C, R and v. Derivatives by covariances are by every entry, as those of ``LDS.statistics``.

    Parameters
    ----------
    systems : core.kalman_passes.Systems
        One system.
    values : (T, d)
        One series.
    """
    moves = _directions(systems)
    mean, dmean = systems.mean[0], moves.initial_mean
    cov, dcov = systems.cov[0], moves.initial_cov
    A, dA = systems.A[0], moves.transition
    logs, slopes = np.zeros(len(values)), np.zeros((len(values), len(dmean)))
    present = ~np.isnan(values)
    step: FilterStep | None = None
    for t, x in enumerate(values):
        same = step is not None and step.settled and np.array_equal(present[t], present[t - 1])
        if step is None or not same:
            step = _step(systems, moves, present[t], cov, dcov)
            cov, dcov = step.cov, step.d_cov
        if step.channels.size:
            gap = x[step.channels] - systems.offset[0, step.channels] - step.C @ mean
            dgap = -step.d_observation @ mean - dmean @ step.C.T - moves.offset[:, step.channels]
            white = step.inverse @ gap
            logs[t] = step.constant - 0.5 * (gap @ white)
            slopes[t] = 0.5 * (step.d_spread @ (np.outer(white, white) - step.inverse).ravel()) - dgap @ white
            mean, dmean = mean + step.gain @ gap, dmean + step.d_gain @ gap + dgap @ step.gain.T
        mean, dmean = A @ mean, dA @ mean + dmean @ A.T
    return logs, _blocks(systems, slopes)


class FilterStep(NamedTuple):
    """The part of a filter step that does not depend on the observation; ``settled`` if the next one is the same.

    The observed channels, their C, K, :math:`S^{-1}`, the logarithm of the normaliser, the covariance before the next
    observation, and the derivatives along the directions: C (D, d, n), S (D, d d), K (D, n, d) and that covariance
    (D, n, n).
    """

    channels: NDArray[np.int64]
    C: Floats
    gain: Floats
    inverse: Floats
    constant: float
    cov: Floats
    d_observation: Floats
    d_spread: Floats
    d_gain: Floats
    d_cov: Floats
    settled: bool


def _step(systems: Any, moves: Directions, seen: NDArray[np.bool_], cov: Floats, dcov: Floats) -> FilterStep:
    """Return the step from covariance (n, n), moved by (D, n, n), before an observation of some channels."""
    A, Q = systems.A[0], systems.Q[0]
    C, dC = systems.C[0][seen], moves.observation[:, seen]
    R, dR = systems.R[0][np.ix_(seen, seen)], moves.obs_cov[:, seen][:, :, seen]
    half = dC @ cov @ C.T
    S = C @ cov @ C.T + R
    dS = half + np.swapaxes(half, 1, 2) + C @ dcov @ C.T + dR
    inverse = np.linalg.inv(S)
    inverse = 0.5 * (inverse + inverse.T)
    gain = cov @ C.T @ inverse
    # Joseph's form, positive whatever the rounding; at the best gain its derivative by the gain is zero, and L P = P+
    rest = np.eye(len(cov)) - gain @ C
    after = _symmetric(rest @ cov @ rest.T + gain @ R @ gain.T)
    dgain = (rest @ dcov @ C.T + after @ np.swapaxes(dC, 1, 2) - gain @ (half + dR)) @ inverse
    half = gain @ dC @ after
    dafter = rest @ dcov @ rest.T + gain @ dR @ gain.T - half - np.swapaxes(half, 1, 2)
    turned = moves.transition @ after @ A.T
    new = _symmetric(A @ after @ A.T + Q)
    dnew = turned + np.swapaxes(turned, 1, 2) + A @ dafter @ A.T + moves.state_cov
    constant = -0.5 * (float(np.linalg.slogdet(S)[1]) + len(S) * LOG_2PI)
    settled = _alike(new, cov) and _alike(dnew, dcov)
    channels = np.flatnonzero(seen)
    return FilterStep(channels, C, gain, inverse, constant, new, dC, dS.reshape(len(dS), -1), dgain, dnew, settled)


def _symmetric(table: Floats) -> Floats:
    return 0.5 * (table + np.swapaxes(table, -1, -2))


def _alike(new: Floats, old: Floats) -> bool:
    """Return whether a covariance, or its derivative, has converged up to rounding."""
    return bool(np.abs(new - old).max(initial=0.0) <= SETTLED * np.abs(old).max(initial=0.0))


def _directions(systems: Any) -> Directions:
    """Return one direction for every entry of every parameter, in their order."""
    shapes = [part.shape[1:] for part in systems]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    eye = np.eye(ends[-1])
    return Directions(*(part.reshape(-1, *shape) for part, shape in zip(np.split(eye, ends[:-1], axis=1), shapes)))


def _blocks(systems: Any, slopes: Floats) -> dict[str, Floats]:
    """Return derivatives (T, D) as blocks with the names of the parameters, symmetric for covariances."""
    ends = np.cumsum([part[0].size for part in systems])
    blocks = {}
    for name, part, raw in zip(Directions._fields, systems, np.split(slopes, ends[:-1], axis=1)):
        block = raw.reshape(-1, *part.shape[1:])
        blocks[name] = 0.5 * (block + np.swapaxes(block, 1, 2)) if name.endswith("_cov") else block
    return blocks
