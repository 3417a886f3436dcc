"""Draws from rows of probabilities and from chains, by the numbers of NumPy's generators."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from genkern.core.arrays import draws as core
from genkern.validation import Floats

NUMBERS = 1 << 16  # uniform numbers held at a time


def draw_rows(probs: Floats, which: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return one index from each named row of a table of probabilities (n, m)."""
    index = np.empty(len(which), np.int64)
    core.pick(np.cumsum(probs, axis=-1), np.ascontiguousarray(which), rng.random(len(which)), index)
    return index


def draw_paths(
    start: Floats, transitions: Floats, n: int, length: int, rng: np.random.Generator, ahead: Floats | None = None
) -> NDArray[np.int64]:
    """Return n paths (n, length) of a chain, whose steps are weighted by backward messages ``ahead`` (length, n)."""
    weights = np.ones((1, len(start))) if ahead is None else ahead
    states = np.zeros((n, length), np.int64)
    states[:, 0] = draw_rows((start * weights[0])[None], states[:, 0], rng)
    steps = max(1, NUMBERS // max(n, 1))
    for first in range(1, length, steps):
        core.walk(transitions, weights, rng.random((min(steps, length - first), n)), states, first)
    return states


def draw_stopping(start: Floats, rows: Floats, n: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Return n paths of a chain that go on until they stop, by joint rows [transitions | stop]."""
    walkers = core.Walkers(
        np.arange(n), draw_rows(start[None], np.zeros(n, np.int64), rng), np.array([n, 0, 0], np.int64)
    )
    owners, visited = [], []
    while walkers.round[0]:
        before = rng.bit_generator.state
        who, where = np.empty(NUMBERS, np.int64), np.empty(NUMBERS, np.int64)
        used = core.walk_on(rows, rng.random(NUMBERS), walkers, who, where)
        if used < NUMBERS:  # return unused random numbers: later draws must not depend on NUMBERS
            rng.bit_generator.state = before
            rng.random(used)
        owners.append(who[:used])
        visited.append(where[:used])
    if not owners:
        return []
    whose = np.concatenate(owners)
    paths = np.concatenate(visited)[np.argsort(whose, kind="stable")]
    return np.split(paths, np.cumsum(np.bincount(whose, minlength=n))[:-1])
