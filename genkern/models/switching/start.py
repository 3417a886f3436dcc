"""First guesses for EM on switching linear dynamical systems, one for all series or one for each."""

from __future__ import annotations

import numpy as np

from genkern.core.kalman.passes import posterior
from genkern.data.objects import Packed
from genkern.models.fit.restarts import Restarts
from genkern.models.fit.streams import uniforms
from genkern.models.fit.weights import often, point_weights
from genkern.models.lds.model import LDS
from genkern.models.mixture.start import ROUNDS, cluster
from genkern.models.switching.model import SwitchingLDS
from genkern.validation import Floats

WIDTHS = (8, 4, 16)  # steps on either side whose moments tell the local dynamics; restarts go through them
RIDGE = 0.1  # added to local second moments, relative to the states' variance
CERTAINTY = 0.9  # of first labels
STAYING = 0.9  # first probability of staying in a regime


def pooled_model(systems: LDS, n_regimes: int, own: bool) -> SwitchingLDS:
    """Return the model (or stack of own models) all of whose regimes are the same system."""
    shape = (len(systems), n_regimes) if own else (n_regimes,)
    index = np.repeat(np.arange(len(systems)), n_regimes).reshape(shape) if own else np.zeros(n_regimes, np.int64)
    stack = systems if own else LDS.stack([systems])
    rows = np.full((n_regimes, n_regimes), (1.0 - STAYING) / max(n_regimes - 1, 1))
    np.fill_diagonal(rows, STAYING if n_regimes > 1 else 1.0)
    chain = np.full(shape, 1.0 / n_regimes), np.tile(rows, (*shape[:-1], 1, 1))
    return SwitchingLDS._restore(*chain, stack[index])


def segments(packed: Packed, systems: LDS, n_regimes: int, restarts: Restarts) -> Floats:
    r"""Return first probabilities (N, S) of regimes, from clusters of local dynamics.

    With :math:`\hat s_t` the states smoothed by one system for all regimes and moments :math:`M_{uv} = \sum \hat s_u
    \hat s_v^T` over a window, the features of a step are the local :math:`A = M_{t, t-1} M_{t-1, t-1}^{-1}` and the
    logarithms of the variances of what it leaves. k-means, for all series together or for each of own models, gives
    the labels.
    """
    S = n_regimes
    if S == 1:
        return np.ones((packed.n_points, 1))
    features = np.empty((packed.n_points, systems.n_states * (systems.n_states + 1)))
    widths = np.array(WIDTHS)[restarts.numbers % len(WIDTHS)]
    for width in np.unique(widths):
        some = np.broadcast_to(widths == width, packed.n_objects)
        own = systems[some] if systems.shape else systems
        features[np.repeat(some, packed.lengths)] = _local_dynamics(packed.take(some), own, width)
    groups = packed.offsets if systems.shape else np.array([0, packed.n_points])
    sizes, weights = np.diff(groups), point_weights(packed)
    counts = np.add.reduceat(weights, groups[:-1])
    mean = np.add.reduceat(features * weights, groups[:-1]) / counts
    features = features - np.repeat(mean, sizes, axis=0)
    scale = np.sqrt(np.add.reduceat(features**2 * weights, groups[:-1]) / counts)
    features /= np.repeat(np.where(scale > 0.0, scale, 1.0), sizes, axis=0)
    numbers = uniforms(restarts.keys[:, None], np.arange(S))
    labels = cluster(features, groups, S, numbers, ROUNDS["kmeans"], often(packed))
    gamma = np.full((packed.n_points, S), (1.0 - CERTAINTY) / (S - 1))
    gamma[np.arange(packed.n_points), labels] = CERTAINTY
    return gamma


def _local_dynamics(packed: Packed, systems: LDS, width: int) -> Floats:
    """Return features (N, n n + n): the entries of the local A, and log variances of its residuals."""
    beliefs, _ = posterior(systems.systems(), packed.values, packed.offsets)
    now, n = beliefs.mean, systems.n_states
    before = np.roll(now, 1, axis=0)
    before[packed.offsets[:-1]] = now[packed.offsets[:-1]] = 0.0  # the first step of a series has no step before it
    both = np.concatenate([now, before], axis=1)
    moments = _window_sums((both[:, :, None] * both[:, None, :]).reshape(len(now), -1), packed, width)
    moments = moments.reshape(-1, 2 * n, 2 * n)
    variance = np.diagonal(moments, axis1=1, axis2=2)
    ridge = RIDGE * np.repeat(np.add.reduceat(variance[:, n:], packed.offsets[:-1]), packed.lengths, axis=0)
    ridge /= np.repeat(packed.lengths, packed.lengths)[:, None]
    ridge = np.where(ridge > 0.0, ridge, 1.0)
    A = moments[:, :n, n:] @ np.linalg.inv(moments[:, n:, n:] + ridge[:, :, None] * np.eye(n))
    left = variance[:, :n] - (A * moments[:, :n, n:]).sum(axis=-1)
    return np.concatenate([A.reshape(len(A), -1), np.log(np.maximum(left, 0.0) + 1e-3 * ridge)], axis=1)


def _window_sums(values: Floats, packed: Packed, width: int) -> Floats:
    """Return sums (N, m) over the positions of the same series at most ``width`` away."""
    sums, owners = values.copy(), packed.owners
    for gap in range(1, width + 1):
        same = (owners[gap:] == owners[:-gap])[:, None]
        sums[gap:] += np.where(same, values[:-gap], 0.0)
        sums[:-gap] += np.where(same, values[gap:], 0.0)
    return sums
