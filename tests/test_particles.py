"""Thresholds by which particles are thinned."""

from __future__ import annotations

import numpy as np
import pytest

from genkern.core.switching.particles import _threshold


@pytest.mark.parametrize("particles", [1, 3, 30])
@pytest.mark.parametrize("seed", range(5))
def test_the_threshold_keeps_so_many_in_the_mean(particles: int, seed: int) -> None:
    weights = np.random.default_rng(seed).dirichlet(np.full(2 * particles + 1, 0.2))
    found = _threshold(np.log(np.maximum(weights, 1e-300)), len(weights), particles)
    np.testing.assert_allclose(np.minimum(1.0, weights / found).sum(), particles, rtol=1e-9)


@pytest.mark.parametrize("particles", range(1, 60))
def test_equal_weights_and_weights_of_nothing_end(particles: int) -> None:
    logs = np.concatenate([np.full(particles, -np.log(particles)), np.full(particles, -1000.0)])
    assert 0.0 < _threshold(logs, len(logs), particles) < np.inf
    assert 0.0 < _threshold(logs[:particles] - np.log(2.0), particles, particles) < np.inf
    many = np.full(2 * particles, -np.log(2.0 * particles))
    np.testing.assert_allclose(_threshold(many, len(many), particles), 1.0 / particles, rtol=1e-9)
