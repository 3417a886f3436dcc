"""Affinities between switching linear dynamical systems: sums over paths of regimes, all of them or some."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.affinities.differences import TRUSTED, Pairs, alike, careful_densities, merged, stacked
from genkern.affinities.how import Expected, How, Power
from genkern.affinities.linear_gaussian import LOG_2PI
from genkern.affinities.registry import affinity
from genkern.affinities.rules import PairError
from genkern.core.kalman_roots import LOST, densities, factored, loss_of
from genkern.core.switching_pairs import densities_at_zero
from genkern.models.draws import draw_paths
from genkern.models.switching import SwitchingLDS
from genkern.models.value import rebatch
from genkern.validation import Floats

Ints = NDArray[np.int64]
PathsOf = Callable[[SwitchingLDS, int], Ints]

MAX_PAIRS = 1 << 14  # pairs of paths up to which the kernel is exact
N_PATHS = 32  # paths of regimes drawn from each model
KEPT = 512  # models whose paths, and filters along them, are remembered
JEBARA = "Jebara, Kondor & Howard (2004), section 5.1"


@affinity.register(SwitchingLDS, SwitchingLDS, Power, length="given", reference=f"{JEBARA}, all paths")
@affinity.register(SwitchingLDS, SwitchingLDS, Expected, length="given", reference=f"{JEBARA}, all paths")
def all_paths(P: SwitchingLDS, Q: SwitchingLDS, how: How, length: int) -> Floats:
    r"""Return the log kernel over sequences of one length, G + (a, b), by all pairs of paths of regimes.

    .. math:: \log \sum_{q, q'} p(q)\, p'(q')\, k(p(x | q), p'(x | q'))

    Each path has the kernel of its own time-varying linear system; weights of paths are probabilities, whatever
    the power on the densities given them.
    """
    pairs = float(P.n_regimes) ** length * float(Q.n_regimes) ** length
    if pairs > MAX_PAIRS:
        raise ValueError(
            f"affinity: {P.n_regimes} and {Q.n_regimes} regimes have {pairs:.3g} pairs of paths of length {length}; "
            f"all are summed up to {MAX_PAIRS}. Take fewer observations, or method='all-pairs', which draws {N_PATHS} "
            "paths of each model (positive semi-definite), or 'paired', the estimate of Jebara, Kondor & Howard (2004)."
        )
    left, right = (_every_path(side.n_regimes, length) for side in (P, Q))

    def value(p: SwitchingLDS, q: SwitchingLDS) -> float:
        logs = _path_kernel(p, q, how, length, _all_paths)
        return _log_sum(logs + _log_weights(p, left)[:, None] + _log_weights(q, right))

    return _each(P, Q, value)


def _all_pairs_error(P: SwitchingLDS, Q: SwitchingLDS, how: How, length: int) -> float:
    """Return the standard error of the log, from the spread of the means over one model's paths."""
    logs = _path_kernel(P, Q, how, length, _drawn)
    values = np.exp(logs - logs.max())
    spread = sum(values.mean(axis=1 - side).var(ddof=1) / values.shape[side] for side in (0, 1))
    return float(math.sqrt(spread) / values.mean())


def _paired_error(P: SwitchingLDS, Q: SwitchingLDS, how: How, length: int) -> float:
    """Return the standard error of the log, from the spread of the pairs."""
    logs = _path_kernel(P, Q, how, length, _drawn, paired=True)
    values = np.exp(logs - logs.max())
    return float(values.std(ddof=1) / math.sqrt(len(values)) / values.mean())


DRAWN: dict[str, Any] = {"length": "given", "exact": "sampled", "reference": f"{JEBARA}, drawn paths"}


@affinity.register(SwitchingLDS, SwitchingLDS, Power, "all-pairs", **DRAWN, error=_all_pairs_error)
@affinity.register(SwitchingLDS, SwitchingLDS, Expected, "all-pairs", **DRAWN, error=_all_pairs_error)
def all_pairs_of_draws(P: SwitchingLDS, Q: SwitchingLDS, how: How, length: int) -> Floats:
    r"""Return the log of :math:`N^{-2} \sum_{ij} k(p(x | q_i), p'(x | q'_j))`, G + (a, b), over drawn paths.

    Draws depend on the model alone, so that the kernel is positive semi-definite for any number of them.
    """

    def value(p: SwitchingLDS, q: SwitchingLDS) -> float:
        logs = _path_kernel(p, q, how, length, _drawn)
        return _log_sum(logs) - math.log(logs.size)

    return _each(P, Q, value)


@affinity.register(SwitchingLDS, SwitchingLDS, Power, "paired", **DRAWN, error=_paired_error)
@affinity.register(SwitchingLDS, SwitchingLDS, Expected, "paired", **DRAWN, error=_paired_error)
def paired_draws(P: SwitchingLDS, Q: SwitchingLDS, how: How, length: int) -> Floats:
    r"""Return the log of :math:`N^{-1} \sum_i k(p(x | q_i), p'(x | q'_i))`, G + (a, b): the paper's estimate.

    Positive semi-definite, but too large on the diagonal, where both paths are the same.
    """

    def value(p: SwitchingLDS, q: SwitchingLDS) -> float:
        logs = _path_kernel(p, q, how, length, _drawn, paired=True)
        return _log_sum(logs) - math.log(logs.size)

    return _each(P, Q, value)


def _each(P: SwitchingLDS, Q: SwitchingLDS, value: Any) -> Floats:
    """Return G + (a, b) of one number for every pair."""
    if P.n_channels != Q.n_channels:
        raise ValueError(
            f"affinity: both systems must have the same number of channels. Got {P.n_channels} and {Q.n_channels}."
        )
    *batch, a = P.shape
    b, g = Q.shape[-1], math.prod(batch)
    left, right = (rebatch(side, (-1,)).unstack() for side in (P, Q))
    out = np.empty((g, a, b))
    for index in np.ndindex(g, a, b):
        try:
            out[index] = value(left[index[0] * a + index[1]], right[index[0] * b + index[2]])
        except PairError as error:
            where = np.unravel_index(index[0], batch) if batch else ()
            raise PairError((*(int(i) for i in where), *index[1:]), error.text) from None
    return out.reshape(*batch, a, b)


def _path_kernel(
    p: SwitchingLDS, q: SwitchingLDS, how: How, length: int, paths: PathsOf, paired: bool = False
) -> Floats:
    """Return log kernel values of the N and M paths of both with each other, (N, M), or of each with its like, (N,)."""
    left, right = paths(p, length), paths(q, length)
    i, j = (np.arange(len(left)),) * 2 if paired else np.divmod(np.arange(len(left) * len(right)), len(right))
    first, second = np.divmod(np.arange(p.n_regimes * q.n_regimes), q.n_regimes)
    codes = left[i] * q.n_regimes + right[j]
    size = p.n_channels * left.shape[1]
    systems, other = p.systems.systems(), q.systems.systems()
    if isinstance(how, Expected):
        if how.lam == 0.0:
            return np.zeros(len(i) if paired else (len(left), len(right)))
        logs = _differences(Pairs(systems, first, other, second, 1.0, 1.0 / how.lam), codes)
        logs += 0.5 * size * (LOG_2PI - math.log(how.lam))
        return logs if paired else logs.reshape(len(left), len(right))
    rho = how.weight_power
    logs = _differences(Pairs(systems, first, other, second, 1.0 / rho, 0.0), codes)
    logs += (1.0 - rho) * size * LOG_2PI - size * math.log(rho)
    if rho != 1.0:
        own = [_log_determinants(side, length, paths) for side in (p, q)]
        logs += 0.5 * (1.0 - rho) * (own[0][i] + own[1][j])
    return logs if paired else logs.reshape(len(left), len(right))


def _differences(pairs: Pairs, codes: Ints) -> Floats:
    """Return log densities at zero (N,) of the differences of observations along paths (N, L) of pairs of regimes."""
    numbers = alike(pairs.left, pairs.right)
    same = (numbers[0][pairs.i] == numbers[1][pairs.j])[codes].all(axis=1)
    logs = np.empty(len(codes))
    for merge, rows in ((False, np.flatnonzero(~same)), (True, np.flatnonzero(same))):
        logs[rows], growth, drift = densities_at_zero((merged if merge else stacked)(pairs), codes[rows])
        trusted = (loss_of(growth, drift) <= TRUSTED) & np.isfinite(logs[rows])
        doubtful = rows[~trusted]
        if len(doubtful):
            try:
                logs[doubtful] = careful_densities(pairs, codes[doubtful], merge)
            except PairError as error:
                raise PairError((0, 0), error.text) from None
    return _regular(logs)


@lru_cache(maxsize=KEPT)
def _log_determinants(model: SwitchingLDS, length: int, paths_of: PathsOf) -> Floats:
    """Return sum_t log |S_t| (N,) of the model's own filters along its paths, read-only."""
    systems, paths = model.systems.systems(), paths_of(model, length)
    centred = systems._replace(mean=np.zeros_like(systems.mean), offset=np.zeros_like(systems.offset))
    size = systems.C.shape[1] * paths.shape[1]
    logs, growth, _ = densities_at_zero(centred, paths)
    doubtful = np.flatnonzero(~(loss_of(growth) <= TRUSTED))
    if len(doubtful):  # regimes that are unstable and hardly seen
        some = paths[doubtful]
        logs[doubtful], loss = densities(factored(centred), some, np.zeros((*some.shape, systems.C.shape[1])))
        if not (loss <= LOST).all():
            lost = f"a density along a path would be off by some {loss.max():.1g}, and {LOST:g} is allowed."
            raise PairError((0, 0), f"{lost} Compare fewer observations, or fit stable systems.")
    logs = -2.0 * _regular(logs) - size * LOG_2PI
    logs.flags.writeable = False
    return logs


def _regular(logs: Floats) -> Floats:
    """Return log densities, refusing those that do not exist."""
    if np.isnan(logs).any():
        raise PairError(
            (0, 0), "an innovation covariance is singular. Give obs_cov a floor, or use the mean map with rho = 1."
        )
    return logs


def _every_path(regimes: int, length: int) -> Ints:
    """Return all paths (S^L, L)."""
    codes, places = np.arange(regimes**length)[:, None], np.arange(length - 1, -1, -1)
    return codes // regimes**places % regimes


def _log_weights(model: SwitchingLDS, paths: Ints) -> Floats:
    """Return the log probabilities (N,) of paths."""
    with np.errstate(divide="ignore"):
        logs = np.log(model.start)[paths[:, 0]]
        return logs + np.log(model.transitions)[paths[:, :-1], paths[:, 1:]].sum(axis=1)


def _all_paths(model: SwitchingLDS, length: int) -> Ints:
    """Return all paths of a model (S^L, L)."""
    return _every_path(model.n_regimes, length)


@lru_cache(maxsize=KEPT)
def _drawn(model: SwitchingLDS, length: int) -> Ints:
    """Return paths (N, L), a function of the model alone, read-only."""
    rng = np.random.default_rng(int(model.digest[:16], 16))
    paths = draw_paths(model.start, model.transitions, N_PATHS, length, rng)
    paths.flags.writeable = False
    return paths


def _log_sum(logs: Floats) -> float:
    """Return the log of the sum of exponentials of all entries."""
    return float(np.logaddexp.reduce(logs, axis=None))
