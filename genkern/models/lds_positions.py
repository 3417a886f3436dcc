"""What each observation of one series adds to the log-likelihood of a linear dynamical system and its derivatives."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from genkern.validation import Floats

LOG_2PI = float(np.log(2.0 * np.pi))


class Directions(NamedTuple):
    """D directions in the space of all parameters, of which each moves one entry of one of them: (D, ...) each."""

    transition: Floats
    observation: Floats
    state_cov: Floats
    obs_cov: Floats
    initial_mean: Floats
    initial_cov: Floats


def position_derivatives(systems: Any, values: Floats) -> tuple[Floats, dict[str, Floats]]:
    r"""Return :math:`\log p(x_t | x_0 \dots x_{t-1})` (T,) and its derivatives, blocks (T, ...) by parameter.

    With the moments m, P of the state before :math:`x_t` is seen, :math:`v = x_t - C m`, :math:`S = C P C^T + R` and
    :math:`K = P C^T S^{-1}`, the chain rule goes along with the filter:

    .. math::
        \dot l &= -\tfrac12 \mathrm{tr}\, S^{-1} \dot S + \tfrac12 (S^{-1} v)^T \dot S S^{-1} v - v^T S^{-1} \dot v, \\
        \dot K &= (\dot P C^T + P \dot C^T - K \dot S) S^{-1}

    so that time is linear in T. Channels that are missing (NaN) are left out of C, R and v. Derivatives by covariances
    are by every entry, as those of ``LDS.statistics``.

    Parameters
    ----------
    systems : core.kalman_passes.Systems
        One system.
    values : (T, d)
        One series.
    """
    A, C, Q, R, mean, cov = (part[0] for part in systems)
    moves = _directions(systems)
    dmean, dcov = moves.initial_mean, moves.initial_cov
    logs, slopes = np.empty(len(values)), np.empty((len(values), len(dmean)))
    for t, x in enumerate(values):
        seen = ~np.isnan(x)
        if seen.any():
            step = _update(x[seen], C[seen], R[np.ix_(seen, seen)], mean, cov)
            moved = moves.observation[:, seen], moves.obs_cov[:, seen][:, :, seen]
            slopes[t], dmean, dcov = _move_update(step, *moved, mean, cov, dmean, dcov)
            logs[t], mean, cov = step.log, step.mean, step.cov
        else:
            logs[t], slopes[t] = 0.0, 0.0
        half = moves.transition @ cov @ A.T
        dmean = moves.transition @ mean + dmean @ A.T
        dcov = half + np.swapaxes(half, 1, 2) + A @ dcov @ A.T + moves.state_cov
        mean, cov = A @ mean, A @ cov @ A.T + Q
    return logs, _blocks(systems, slopes)


class Update(NamedTuple):
    """One step of the filter: the seen part of C, gain K, S^{-1}, v, and what is known after it."""

    C: Floats
    gain: Floats
    inverse: Floats
    gap: Floats
    log: float
    mean: Floats
    cov: Floats


def _update(x: Floats, C: Floats, R: Floats, mean: Floats, cov: Floats) -> Update:
    spread = C @ cov @ C.T + R
    inverse = np.linalg.inv(spread)
    inverse = 0.5 * (inverse + inverse.T)
    gap, gain = x - C @ mean, cov @ C.T @ inverse
    log = -0.5 * (np.linalg.slogdet(spread)[1] + gap @ inverse @ gap + len(x) * LOG_2PI)
    after = cov - gain @ spread @ gain.T
    return Update(C, gain, inverse, gap, float(log), mean + gain @ gap, 0.5 * (after + after.T))


def _move_update(
    step: Update, dC: Floats, dR: Floats, mean: Floats, cov: Floats, dmean: Floats, dcov: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the derivatives (D,) of the log density, and (D, n), (D, n, n) of the moments after the step."""
    C, K, inverse = step.C, step.gain, step.inverse
    half = dC @ cov @ C.T
    dS = half + np.swapaxes(half, 1, 2) + C @ dcov @ C.T + dR
    dgap = -dC @ mean - dmean @ C.T
    white = inverse @ step.gap
    slopes = 0.5 * np.einsum("kij,ij->k", dS, np.outer(white, white) - inverse) - dgap @ white
    dK = (dcov @ C.T + cov @ np.swapaxes(dC, 1, 2) - K @ dS) @ inverse
    after = dmean + dK @ step.gap + dgap @ K.T
    # P - K S K^T: with K S = P C^T its derivative is that of P less what K and C P move.
    cross = dK @ (C @ cov)
    kept = dcov - cross - K @ (dC @ cov + C @ dcov)
    return slopes, after, 0.5 * (kept + np.swapaxes(kept, 1, 2))


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
