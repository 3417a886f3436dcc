"""Estimated likelihoods of switching linear dynamical systems, with standard errors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from genkern.core.switching.particles import filter_runs
from genkern.core.switching.types import Regimes
from genkern.data.objects import Packed, object_digests
from genkern.models.fit.streams import keys_of, uniforms
from genkern.validation import Floats


def estimate(
    regimes: Regimes, packed: Packed, particles: int, runs: int, seed: int, n_jobs: int | None
) -> tuple[Floats, Floats, NDArray[np.int64], Floats]:
    """Return logs of mean likelihoods (n_objects,), standard errors, positions without a density or -1, and counts.

    These are growth and drift (n_objects, 2), as ``core.kalman_counts`` defines them.
    """
    keys = np.repeat(keys_of(seed, object_digests(packed)), packed.lengths)
    position = np.arange(packed.n_points) - np.repeat(packed.offsets[:-1], packed.lengths)
    draws = uniforms(keys[:, None], position[:, None] * runs + np.arange(runs))
    logs, failed, lost = filter_runs(regimes, packed.values, packed.offsets, particles, draws, n_jobs)
    top = logs.max(axis=1)
    shares = np.exp(logs - top[:, None])
    mean = shares.mean(axis=1)
    # runs that are equal are exact: a mean's rounding error is none of theirs
    spread = np.where(np.ptp(logs, axis=1) > 0.0, shares.std(axis=1, ddof=1), 0.0)
    return top + np.log(mean), spread / np.sqrt(runs) / mean, failed, lost
