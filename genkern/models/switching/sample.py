"""Draws from switching linear dynamical systems."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.core.arrays.draws import add_dynamics
from genkern.models.draws import draw_paths
from genkern.models.lds.covariance import roots
from genkern.validation import Floats


def simulate(
    model: Any, n: int, length: int, rng: np.random.Generator
) -> list[tuple[Floats, NDArray[np.int64], Floats]]:
    """Return n triples of observations (length, d), regimes (length,) and states (length, n_states)."""
    systems = model.systems
    move, look, begin = (roots(cov) for cov in systems.matrices())
    paths = draw_paths(model.start, model.transitions, n, length, rng)
    noise = rng.standard_normal((n, length, model.n_states))
    states = _by_regime(move, paths, noise)
    states[:, 0] = systems.initial_mean[paths[:, 0]] + _by_regime(begin, paths[:, 0], noise[:, 0])
    add_dynamics(systems.transition, paths, states)
    series = _by_regime(look, paths, rng.standard_normal((n, length, model.n_channels)))
    series += _by_regime(systems.observation, paths, states) + systems.offset[paths]
    return list(zip(series, paths, states))


def _by_regime(matrices: Floats, regimes: NDArray[np.int64], vectors: Floats) -> Floats:
    """Return vectors (..., b) times the matrix (S, a, b) of the regime (...) of each."""
    out = np.empty((*regimes.shape, matrices.shape[1]))
    for k, matrix in enumerate(matrices):
        out[regimes == k] = vectors[regimes == k] @ matrix.T
    return out
