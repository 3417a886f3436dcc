"""Affinities between linear Gaussian networks, and between linear dynamical systems."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from genkern.affinities.differences import SINGULAR, TRUSTED, Pairs, alike, alone, careful_densities, merged, stacked
from genkern.affinities.how import Expected, How, Power
from genkern.affinities.registry import affinity
from genkern.affinities.rules import PairError
from genkern.core.kalman.pairs import pair_densities
from genkern.core.kalman.paths import DIFFUSE, path_densities, variances
from genkern.core.kalman.roots import LOST, log_densities, loss_of
from genkern.core.kalman.rounding import amplifies
from genkern.models.families.gaussian import Gaussian
from genkern.models.lds.model import LDS
from genkern.models.linear_gaussian.model import LinearGaussianNet
from genkern.models.value import rebatch
from genkern.validation import Floats

CHUNK = 1 << 21  # numbers at a time, of all pairs' systems and observations
LOG_2PI = math.log(2.0 * math.pi)
NETS = "Jebara, Kondor & Howard (2004), section 4.4, on the observed nodes"
NET_MEANS = "Mehta & Gray (2010), proposition 2, on the observed nodes"
SYSTEMS = "Jebara, Kondor & Howard (2004), section 4.5"


@affinity.register(LinearGaussianNet, LinearGaussianNet, Power, reference=NETS)
@affinity.register(LinearGaussianNet, LinearGaussianNet, Expected, reference=NET_MEANS)
def observed_gaussians(P: LinearGaussianNet, Q: LinearGaussianNet, how: How) -> Floats:
    """Return the affinities of the joint laws of the observed nodes, which must be the same, G + (a, b)."""
    if P.observed != Q.observed:
        raise ValueError(
            "affinity: both networks must observe the same nodes in the same order. "
            f"Got {P.observed} and {Q.observed}; give both the same observed=."
        )
    return affinity.block(P.to_gaussian(), Q.to_gaussian(), how)


@affinity.register(LinearGaussianNet, Gaussian, Power, reference=NETS)
@affinity.register(LinearGaussianNet, Gaussian, Expected, reference=NET_MEANS)
def net_and_gaussian(P: LinearGaussianNet, Q: Gaussian, how: How) -> Floats:
    """Return the affinities of the joint laws of the observed nodes with Gaussians, G + (a, b)."""
    return affinity.block(P.to_gaussian(), Q, how)


@affinity.register(LDS, LDS, Power, length="given", reference=f"{SYSTEMS}, with the joint law of all observations")
def stacked_product(P: LDS, Q: LDS, how: Power, length: int) -> Floats:
    r"""Return the log product of the joint laws of ``length`` observations, G + (a, b), in O(length).

    .. math:: \tfrac{(1-2\rho) D}{2} \log 2\pi - \tfrac D2 \log\rho + \tfrac{1-\rho}{2} (\Lambda + \Lambda')
       - \tfrac12 \Lambda_\Delta - \tfrac\rho2 M, \quad D = d L

    :math:`\Lambda = \sum_t \log |S_t|` is of each system's own Kalman filter; :math:`\Lambda_\Delta` and
    :math:`M = \sum_t v_t^T S_t^{-1} v_t` are of the filter of the difference of both observations, a system of
    :math:`n + n'` states, on observations of zero; see ``differences`` for its accuracy.
    """
    _check_channels(P, Q)
    rho, size = how.rho, P.n_channels * length
    constant = (1.0 - rho) * size * LOG_2PI - size * math.log(rho)
    if rho == 1.0:
        return constant + _difference(P, Q, length, 1.0, 0.0, None)
    left, right = (_log_determinants(side, length) for side in (P, Q))
    own = 0.5 * (1.0 - rho) * (left[..., :, None] + right[..., None, :])
    _refuse_lost(own, length)
    singular = np.isinf(own)
    if rho > 1.0 and singular.any():
        raise PairError(
            tuple(int(i) for i in np.argwhere(singular)[0]),
            f"an innovation covariance is singular, so the product with rho = {rho:g} > 1 is infinite. Give obs_cov a "
            "floor, or take rho <= 1 or the mean map.",
        )
    return constant + own + _difference(P, Q, length, 1.0 / rho, 0.0, singular)


@affinity.register(LDS, LDS, Expected, length="given", reference=f"Mehta & Gray (2010), proposition 2; {SYSTEMS}")
def stacked_mean_map(P: LDS, Q: LDS, how: Expected, length: int) -> Floats:
    r"""Return the log mean map kernel of the joint laws of ``length`` observations, G + (a, b), in O(length).

    It is :math:`(2\pi/\lambda)^{D/2}` times the density at zero of the difference of both observations with noise of
    covariance :math:`I / \lambda` added.
    """
    _check_channels(P, Q)
    if how.finite == 0.0:
        return np.zeros((*P.shape, Q.shape[-1]))
    constant = 0.5 * P.n_channels * length * (LOG_2PI - math.log(how.lam))
    return constant + _difference(P, Q, length, 1.0, 1.0 / how.lam, None)


@affinity.register(LDS, LDS, Power, "marginal", length="given", reference=f"{SYSTEMS}, time by time")
@affinity.register(LDS, LDS, Expected, "marginal", length="given", reference=f"{SYSTEMS}, time by time")
def time_by_time(P: LDS, Q: LDS, how: How, length: int) -> Floats:
    """Return the sum over times of the affinities of the laws of single observations, G + (a, b).

    The paper's recursion: it ignores the dependence between different times.
    """
    _check_channels(P, Q)
    total = np.zeros((*P.shape, Q.shape[-1]))
    for left, right in zip(_observations(P, length), _observations(Q, length), strict=True):
        total += affinity.block(left, right, how)
    return total


def _observations(model: LDS, length: int) -> Iterator[Gaussian]:
    """Yield the laws of the observations at each time, of the model's batch."""
    Q, R, spread = model.matrices()
    A, C, mean = model.transition, model.observation, model.initial_mean[..., None]
    for _ in range(length):
        cov = C @ spread @ np.swapaxes(C, -1, -2) + R
        yield Gaussian._restore((C @ mean)[..., 0] + model.offset, 0.5 * (cov + np.swapaxes(cov, -1, -2)))
        mean, spread = A @ mean, A @ spread @ np.swapaxes(A, -1, -2) + Q


def _check_channels(P: LDS, Q: LDS) -> None:
    if P.n_channels != Q.n_channels:
        raise ValueError(
            f"affinity: both systems must have the same number of channels. Got {P.n_channels} and {Q.n_channels}."
        )


def _log_determinants(model: LDS, length: int) -> Floats:
    """Return sum_t log |S_t| of each system's own filter, shape batch; -inf if singular, NaN if its digits are lost."""
    systems = model.systems()
    centred = systems._replace(mean=np.zeros_like(systems.mean), offset=np.zeros_like(systems.offset))
    count, d = systems.C.shape[:2]
    sums = log_densities(centred, np.zeros((count * length, d)), np.arange(count + 1) * length)
    logs = -2.0 * sums.log_prob - d * length * LOG_2PI
    found = np.where(np.isnan(logs), -np.inf, logs)
    return np.where(loss_of(sums.growth) <= LOST, found, np.nan).reshape(model.shape)


def _refuse_lost(own: Floats, length: int) -> None:
    """Raise for the first pair with a system whose own density has lost its digits."""
    wrong = np.argwhere(np.isnan(own))
    if len(wrong):
        raise PairError(
            tuple(int(i) for i in wrong[0]),
            f"states of one of them that no observation tells apart, or that only rounding moves, grow beyond the "
            f"noise so much that its own density would be off by more than {LOST:g}. Compare fewer observations than "
            f"length={length}, or fit stable systems.",
        )


def _difference(P: LDS, Q: LDS, length: int, scale: float, ridge: float, skip: NDArray[np.bool_] | None) -> Floats:
    """Return log densities at zero, G + (a, b), of differences of observations; pairs in ``skip`` are zero.

    Covariances are multiplied by ``scale``, and ``ridge`` is added to that of the observations.
    """
    *batch, a = P.shape
    b = Q.shape[-1]
    left, right = (rebatch(side, (-1,)).systems() for side in (P, Q))
    index = np.indices((math.prod(batch), a, b)).reshape(3, -1)
    pairs = Pairs(left, index[0] * a + index[1], right, index[0] * b + index[2], scale, ridge)
    wanted = np.ones(index.shape[1], bool) if skip is None else ~skip.ravel()
    numbers = alike(left, right)
    same = numbers[0][pairs.i] == numbers[1][pairs.j]
    n, d = P.n_states + Q.n_states, P.n_channels
    step = max(8, CHUNK // (3 * n * n + n * d + d * d + length * d) // 8 * 8)
    out = np.zeros(index.shape[1])
    for merge in (False, True):
        rows = np.flatnonzero(wanted & (same == merge))
        for low in range(0, len(rows), step):
            some = rows[low : low + step]
            try:
                out[some] = _densities_at_zero(pairs.take(some), length, merge)
            except PairError as error:
                place = np.unravel_index(int(some[error.index[0]]), (*batch, a, b))
                raise PairError(tuple(int(i) for i in place), error.text) from None
    return out.reshape(*batch, a, b)


def _densities_at_zero(pairs: Pairs, length: int, merge: bool) -> Floats:
    """Return the log densities (n,) of ``length`` observations of zero of the differences of pairs."""
    whole = alone(merged(pairs)) if merge else pairs
    logs, growth, drift = pair_densities(*whole[:4], length, whole.scale, whole.ridge)
    amplified = np.flatnonzero(_amplifying(whole, length))
    if len(amplified):
        systems = stacked(whole.take(amplified))
        paths = np.repeat(np.arange(len(amplified))[:, None], length, axis=1)
        _, *counts, _ = path_densities(systems, paths, -systems.offset[paths])
        for held, found in zip((growth, drift), counts, strict=True):
            held[amplified] = np.maximum(held[amplified], found)
    doubtful = np.flatnonzero(~((loss_of(growth, drift) <= TRUSTED) & np.isfinite(logs)))
    if len(doubtful):
        paths = np.repeat(np.arange(len(doubtful))[:, None], length, axis=1)
        try:
            logs[doubtful] = careful_densities(pairs.take(doubtful), paths, merge)
        except PairError as error:
            raise PairError((int(doubtful[error.index[0]]),), error.text) from None
    wrong = np.flatnonzero(np.isnan(logs))
    if len(wrong):
        raise PairError((int(wrong[0]),), SINGULAR)
    return logs


def _amplifying(pairs: Pairs, length: int) -> NDArray[np.bool_]:
    """Flag pairs (n,) that make much of a rounding error, or whose first states are almost unknown."""
    left, i, right, j, scale, ridge = pairs
    sides = zip(variances(left), variances(right), strict=True)
    with np.errstate(over="ignore"):  # infinite ones are more than any other
        first, noise = (scale * (own[i] + other[j]) for own, other in sides)
        diffuse = (first > DIFFUSE * (noise + ridge)).any(axis=1)
    return np.asarray(diffuse | amplifies(left.A, length)[i] | amplifies(right.A, length)[j])
