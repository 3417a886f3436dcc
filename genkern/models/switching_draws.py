"""Draws from switching linear dynamical systems."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.models.categorical import draw_rows
from genkern.models.lds_covariance import roots
from genkern.validation import Floats


def simulate(
    model: Any, n: int, length: int, rng: np.random.Generator
) -> list[tuple[Floats, NDArray[np.int64], Floats]]:
    """Return n triples of observations (length, d), regimes (length,) and states (length, n_states)."""
    systems = model.systems
    move, look, begin = (roots(cov) for cov in systems.matrices())
    series = np.empty((n, length, model.n_channels))
    paths, states = np.empty((n, length), np.int64), np.empty((n, length, model.n_states))
    for t in range(length):
        noise = rng.standard_normal((n, model.n_states))
        if t == 0:
            q = draw_rows(model.start[None], np.zeros(n, np.int64), rng)
            states[:, t] = systems.initial_mean[q] + _applied(begin[q], noise)
        else:
            q = draw_rows(model.transitions, paths[:, t - 1], rng)
            states[:, t] = _applied(systems.transition[q], states[:, t - 1]) + _applied(move[q], noise)
        paths[:, t] = q
        noise = rng.standard_normal((n, model.n_channels))
        series[:, t] = _applied(systems.observation[q], states[:, t]) + systems.offset[q] + _applied(look[q], noise)
    return list(zip(series, paths, states))


def _applied(matrices: Floats, vectors: Floats) -> Floats:
    """Return matrix times vector, (n, a, b) times (n, b)."""
    return np.asarray((matrices @ vectors[..., None])[..., 0])
