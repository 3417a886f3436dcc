"""Forward computations of a Markov chain: samples, and the expected number of visits to each context."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.core.arrays.draws import walk_words
from genkern.core.chains.passes import Tables
from genkern.models.draws import NUMBERS, draw_rows
from genkern.validation import Floats


def sample_codes(tables: Tables, n: int, length: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return n sequences of codes (n, length) from one chain."""
    steps, (contexts, m), k = tables.steps[0], tables.steps.shape[2:], tables.order
    phase = draw_rows(tables.phases, np.zeros(n, np.int64), rng)
    sums = np.cumsum(tables.start[0], axis=1)
    targets, context = rng.random(n) * sums[phase, -1], np.zeros(n, np.int64)
    for value in np.unique(phase):
        context[phase == value] = np.searchsorted(sums[value], targets[phase == value], side="right")
    context = np.minimum(context, contexts - 1)
    codes = np.empty((n, max(length, k)), np.int64)
    codes[:, :k] = context[:, None] // m ** np.arange(k - 1, -1, -1) % m
    at_a_time = max(1, NUMBERS // max(n, 1))
    for first in range(k, length, at_a_time):
        numbers = rng.random((min(at_a_time, length - first), n))
        walk_words(steps, np.asarray(tables.begin[phase], np.int64), context, numbers, codes, first, k)
    return codes[:, :length]


def expected_visits(tables: Tables, lengths: NDArray[Any]) -> Floats:
    """Return the expected number (Q, C) of draws after each context from each table, averaged over lengths."""
    steps, (contexts, m) = tables.steps[0], tables.steps.shape[2:]
    now = tables.phases[0, :, None] * tables.start[0]
    visits = np.zeros(steps.shape[:2])
    for t in range(tables.order, int(lengths.max())):
        which = (tables.begin + t - tables.order) % len(steps)
        visits[which] += (lengths > t).mean() * now
        longer = (now[:, :, None] * steps[which]).reshape(-1, m, contexts)
        now = longer.sum(axis=1)  # the oldest symbol is dropped
    return visits
