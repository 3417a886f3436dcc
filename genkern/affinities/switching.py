"""Affinities between switching linear dynamical systems: sums over paths of regimes, all of them or some."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.affinities.differences import TRUSTED, Pairs, alike, careful_densities, merged, stacked
from genkern.affinities.how import Expected, How, Power
from genkern.affinities.linear_gaussian import CHUNK, LOG_2PI
from genkern.affinities.registry import affinity
from genkern.affinities.rules import PairError
from genkern.core.kalman.passes import Systems
from genkern.core.kalman.paths import path_densities
from genkern.core.kalman.roots import LOST, densities, factored, loss_of
from genkern.core.switching.roots import every_path, log_weights
from genkern.data.store import Store, make_key
from genkern.models.draws import draw_paths
from genkern.models.switching.model import SwitchingLDS
from genkern.models.value import rebatch
from genkern.validation import Floats

Ints = NDArray[np.int64]
PathsOf = Callable[[SwitchingLDS, int], Ints]

MAX_PAIRS = 1 << 14  # pairs of paths up to which the kernel is exact
N_PATHS = 32  # paths of regimes drawn from each model
KEPT = 512  # models whose paths, and filters along them, are remembered
FILTERED = Store(max_bytes=1 << 26)  # densities along pairs of paths
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
            " More are drawn by n_draws=."
        )
    return _each(P, Q, how, length, _all_paths, value=_weighted)


def _all_pairs_error(P: SwitchingLDS, Q: SwitchingLDS, how: How, length: int) -> float:
    """Return the standard error of the log, from the spread of the means over one model's paths."""
    logs = _one_pair(P, Q, how, length)
    values = np.exp(logs - logs.max())
    spread = sum(values.mean(axis=1 - side).var(ddof=1) / values.shape[side] for side in (0, 1))
    return float(math.sqrt(spread) / values.mean())


def _paired_error(P: SwitchingLDS, Q: SwitchingLDS, how: How, length: int) -> float:
    """Return the standard error of the log, from the spread of the pairs."""
    logs = _one_pair(P, Q, how, length, paired=True)
    values = np.exp(logs - logs.max())
    return float(values.std(ddof=1) / math.sqrt(len(values)) / values.mean())


DRAWN: dict[str, Any] = {"length": "given", "exact": "sampled", "reference": f"{JEBARA}, drawn paths"}


@affinity.register(SwitchingLDS, SwitchingLDS, Power, "all-pairs", **DRAWN, error=_all_pairs_error)
@affinity.register(SwitchingLDS, SwitchingLDS, Expected, "all-pairs", **DRAWN, error=_all_pairs_error)
def all_pairs_of_draws(P: SwitchingLDS, Q: SwitchingLDS, how: How, length: int) -> Floats:
    r"""Return the log of :math:`N^{-2} \sum_{ij} k(p(x | q_i), p'(x | q'_j))`, G + (a, b), over drawn paths.

    Draws depend on the model alone, so that the kernel is positive semi-definite for any number of them.
    """
    return _each(P, Q, how, length, Drawn.by(how))


@affinity.register(SwitchingLDS, SwitchingLDS, Power, "paired", **DRAWN, error=_paired_error)
@affinity.register(SwitchingLDS, SwitchingLDS, Expected, "paired", **DRAWN, error=_paired_error)
def paired_draws(P: SwitchingLDS, Q: SwitchingLDS, how: How, length: int) -> Floats:
    r"""Return the log of :math:`N^{-1} \sum_i k(p(x | q_i), p'(x | q'_i))`, G + (a, b): the paper's estimate.

    Positive semi-definite, but too large on the diagonal, where both paths are the same.
    """
    return _each(P, Q, how, length, Drawn.by(how), paired=True)


@dataclass(frozen=True)
class Drawn:
    """So many paths of a model, drawn with a seed."""

    n: int
    seed: int

    @classmethod
    def by(cls, how: How) -> Drawn:
        """Return what a comparison asks for."""
        return cls(N_PATHS if how.n_draws is None else how.n_draws, how.seed)

    def __call__(self, model: SwitchingLDS, length: int) -> Ints:
        """Return paths (n, L)."""
        return _drawn(model, length, self.n, self.seed)


class Side(NamedTuple):
    """Models of one side, with all their systems one after the other, and paths (models, N, L)."""

    models: list[SwitchingLDS]
    systems: Systems
    regimes: int
    paths: Ints


def _side(stack: SwitchingLDS, length: int, paths: PathsOf) -> Side:
    """Return the side of a stack of one batch axis."""
    models = stack.unstack()
    every = rebatch(stack.systems, (-1,)).systems()
    return Side(models, every, stack.n_regimes, np.stack([paths(model, length) for model in models]))


def _mean(P: Side, Q: Side, i: Ints, j: Ints, logs: Floats) -> Floats:
    """Return the logs (K,) of means over the paths of pairs."""
    return _log_sums(logs) - math.log(logs[0].size)


def _weighted(P: Side, Q: Side, i: Ints, j: Ints, logs: Floats) -> Floats:
    """Return the logs (K,) of sums over all paths of pairs, each with its probability."""
    left, right = (
        np.stack([log_weights(model.start, model.transitions, side.paths[0]) for model in side.models])
        for side in (P, Q)
    )
    return _log_sums(logs + left[i][:, :, None] + right[j][:, None])


def _each(
    P: SwitchingLDS, Q: SwitchingLDS, how: How, length: int, paths: PathsOf, paired: bool = False, value: Any = _mean
) -> Floats:
    """Return G + (a, b) of one number for every pair, many pairs at a time."""
    if P.n_channels != Q.n_channels:
        raise ValueError(
            f"affinity: both systems must have the same number of channels. Got {P.n_channels} and {Q.n_channels}."
        )
    *batch, a = P.shape
    b = Q.shape[-1]
    left, right = (_side(rebatch(side, (-1,)), length, paths) for side in (P, Q))
    g, i, j = np.indices((math.prod(batch), a, b)).reshape(3, -1)
    i, j = g * a + i, g * b + j
    rows, n, d = left.paths.shape[1] * (1 if paired else right.paths.shape[1]), P.n_states + Q.n_states, P.n_channels
    systems = left.regimes * right.regimes * (3 * n * n + n * d + d * d)
    step = max(1, CHUNK // (rows * (3 * length + 8) + systems))
    out = np.empty(len(i))
    for low in range(0, len(i), step):
        some = slice(low, low + step)
        try:
            logs = _path_kernels(left, right, i[some], j[some], how, paths, paired)
        except PairError as error:
            place = np.unravel_index(low + error.index[0], (*batch, a, b))
            raise PairError(tuple(int(k) for k in place), error.text) from None
        out[some] = value(left, right, i[some], j[some], logs)
    return out.reshape(*batch, a, b)


def _one_pair(P: SwitchingLDS, Q: SwitchingLDS, how: How, length: int, paired: bool = False) -> Floats:
    """Return log kernel values of the drawn paths of two models."""
    paths = Drawn.by(how)
    left, right = (_side(type(side).stack([side]), length, paths) for side in (P, Q))
    one = np.zeros(1, np.int64)
    found: Floats = _path_kernels(left, right, one, one, how, paths, paired)[0]
    return found


def _path_kernels(P: Side, Q: Side, i: Ints, j: Ints, how: How, paths: PathsOf, paired: bool) -> Floats:
    """Return log kernel values of the N and M paths of K pairs of models, (K, N, M), or of each with its like, (K, N).

    The index of a PairError is that of the pair.
    """
    left, right = P.paths[i], Q.paths[j]
    count, length = len(i), left.shape[-1]
    codes = left * Q.regimes + right if paired else left[:, :, None] * Q.regimes + right[:, None]
    shape, size = codes.shape[:-1], P.systems.C.shape[1] * length
    if isinstance(how, Expected) and how.finite == 0.0:
        return np.zeros(shape)
    both = P.regimes * Q.regimes
    codes = codes.reshape(count, -1, length) + both * np.arange(count)[:, None, None]
    first, second = np.divmod(np.arange(both), Q.regimes)
    numbers = (i[:, None] * P.regimes + first).ravel(), (j[:, None] * Q.regimes + second).ravel()
    scale, ridge = (1.0, 1.0 / how.lam) if isinstance(how, Expected) else (1.0 / how.weight_power, 0.0)
    try:
        logs = _differences(
            Pairs(P.systems, numbers[0], Q.systems, numbers[1], scale, ridge), codes.reshape(-1, length)
        )
    except PairError as error:
        raise PairError((error.index[0] * count // math.prod(shape),), error.text) from None
    logs = logs.reshape(shape)
    if isinstance(how, Expected):
        return logs + 0.5 * size * (LOG_2PI - math.log(how.lam))
    rho = how.weight_power
    logs += (1.0 - rho) * size * LOG_2PI - size * math.log(rho)
    if rho != 1.0:
        own = [_determinants(side, which, length, paths) for side, which in ((P, i), (Q, j))]
        logs += 0.5 * (1.0 - rho) * (own[0] + own[1] if paired else own[0][:, :, None] + own[1][:, None])
    return logs


def _determinants(side: Side, which: Ints, length: int, paths: PathsOf) -> Floats:
    """Return the log determinants (K, N) of the models of pairs along their paths."""
    found = np.empty((len(which), side.paths.shape[1]))
    for k, model in enumerate(which.tolist()):
        try:
            found[k] = _log_determinants(side.models[model], length, paths)
        except PairError as error:
            raise PairError((k,), error.text) from None
    return found


def _differences(pairs: Pairs, codes: Ints) -> Floats:
    """Return log densities at zero (N,) of the differences of observations along paths (N, L) of pairs of regimes.

    The index of a PairError is that of the path.
    """
    numbers = alike(pairs.left, pairs.right)
    same = (numbers[0][pairs.i] == numbers[1][pairs.j])[codes].all(axis=1)
    logs = np.empty(len(codes))
    for merge, rows in ((False, np.flatnonzero(~same)), (True, np.flatnonzero(same))):
        if len(rows) == 0:
            continue
        systems = (merged if merge else stacked)(pairs._replace(scale=1.0))
        logs[rows], growth, drift, squares = _filtered(systems, codes[rows])
        if pairs.scale != 1.0:  # squares are in units of covariances
            size = systems.C.shape[1] * codes.shape[1]
            with np.errstate(all="ignore"):  # what overflows is doubtful
                logs[rows] += 0.5 * ((1.0 - 1.0 / pairs.scale) * squares - size * math.log(pairs.scale))
        trusted = (loss_of(growth, drift / pairs.scale) <= TRUSTED) & np.isfinite(logs[rows])
        doubtful = rows[~trusted]
        if len(doubtful):
            used, places = np.unique(codes[doubtful], return_inverse=True)
            try:
                logs[doubtful] = careful_densities(pairs.take(used), places.reshape(len(doubtful), -1), merge)
            except PairError as error:
                raise PairError((int(doubtful[error.index[0]]),), error.text) from None
    return _regular(logs)


def _filtered(systems: Systems, codes: Ints) -> Floats:
    """Return what ``path_densities`` does for zeros, less the offsets, (4, N): once for kernels of every power."""
    key = make_key("paths of differences", *systems, codes)
    found = FILTERED.get(key)
    if found is None:
        found = np.stack(path_densities(systems, codes, -systems.offset[codes]))
        if found.nbytes <= FILTERED.max_bytes // 4:
            FILTERED.put(key, found)
    return np.asarray(found)


@lru_cache(maxsize=KEPT)
def _log_determinants(model: SwitchingLDS, length: int, paths_of: PathsOf) -> Floats:
    """Return sum_t log |S_t| (N,) of the model's own filters along its paths, read-only."""
    systems, paths = model.systems.systems(), paths_of(model, length)
    centred = systems._replace(mean=np.zeros_like(systems.mean), offset=np.zeros_like(systems.offset))
    size = systems.C.shape[1] * paths.shape[1]
    logs, growth, *_ = path_densities(centred, paths, np.zeros((*paths.shape, systems.C.shape[1])))
    doubtful = np.flatnonzero(~(loss_of(growth) <= TRUSTED))
    if len(doubtful):  # regimes that are unstable and hardly seen
        some = paths[doubtful]
        logs[doubtful], loss = densities(factored(centred), some, np.zeros((*some.shape, systems.C.shape[1])))
        if not (loss <= LOST).all():
            lost = f"a density along a path would be off by some {loss.max():.1g}, and {LOST:g} is allowed."
            raise PairError((0,), f"{lost} Compare fewer observations, or fit stable systems.")
    logs = -2.0 * _regular(logs) - size * LOG_2PI
    logs.flags.writeable = False
    return logs


def _regular(logs: Floats) -> Floats:
    """Return log densities, refusing those that do not exist."""
    wrong = np.flatnonzero(np.isnan(logs))
    if len(wrong):
        raise PairError(
            (int(wrong[0]),),
            "an innovation covariance is singular. Give obs_cov a floor, or use the mean map with rho = 1.",
        )
    return logs


def _all_paths(model: SwitchingLDS, length: int) -> Ints:
    """Return all paths of a model (S^L, L)."""
    return every_path(model.n_regimes, length)


@lru_cache(maxsize=KEPT)
def _drawn(model: SwitchingLDS, length: int, n: int, seed: int) -> Ints:
    """Return n paths (n, L), a function of the model and the seed alone, read-only."""
    key = int(model.digest[:16], 16)
    rng = np.random.default_rng([key, seed] if seed else key)
    paths = draw_paths(model.start, model.transitions, n, length, rng)
    paths.flags.writeable = False
    return paths


def _log_sums(logs: Floats) -> Floats:
    """Return the logs (K,) of the sums of exponentials of all entries of each."""
    total: Floats = np.logaddexp.reduce(logs.reshape(len(logs), -1), axis=1)
    return total
