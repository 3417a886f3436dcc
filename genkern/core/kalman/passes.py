"""Passes over many series of linear dynamical systems: log-likelihoods, exact derivatives, smoothed moments."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs

from genkern.core.hmm.rows import aligned
from genkern.core.jit import inlined, kernel
from genkern.core.kalman.adjoint import backward, forward, smooth_step
from genkern.core.kalman.lanes import clear
from genkern.core.kalman.layout import KalmanLayout, kalman_layout
from genkern.core.kalman.steps import Floats, Ints
from genkern.core.simd.vectors import W

WORTH_THREADS = 1 << 20  # steps times squared states below which starting threads costs more than they save
HEAD = 4  # numbers of an object before its sums


class Systems(NamedTuple):
    """Parameters with a leading axis of models, one shared by all objects or one for each.

    A (P, n, n), C (P, d, n), Q (P, n, n), R (P, d, d), mean (P, n) and cov (P, n, n) of the first state, offset (P, d)
    of the observations.
    """

    A: Floats
    C: Floats
    Q: Floats
    R: Floats
    mean: Floats
    cov: Floats
    offset: Floats


class KalmanSums(NamedTuple):
    r"""The results of a pass for each object, G objects or none.

    log_prob (n_objects,), NaN where the innovation covariance is singular at the position ``failed`` (n_objects,), else
    -1. growth and drift (n_objects,), defined in ``kalman.adjoint``, measure cancellation in the filter: the error of
    log_prob is some EPS (growth + the square root of drift). The derivatives of log p by A (G, n, n), C (G, d, n), Q
    (G, n, n), R (G, d, d), by the mean (G, n) and covariance (G, n, n) of the first state and the offset (G, d), every
    entry of a matrix by itself. Moments :math:`\sum E[s_t s_t^T | x]` (G, n, n) over the steps that are ``left`` by a
    transition, all but the last, and over those that are ``seen``, with at least one channel; ``seen_sum`` (G, n),
    :math:`\sum E[s_t | x]` over the latter.
    """

    log_prob: Floats
    failed: Ints
    growth: Floats
    drift: Floats
    A: Floats
    C: Floats
    Q: Floats
    R: Floats
    mean: Floats
    cov: Floats
    offset: Floats
    left: Floats
    seen: Floats
    seen_sum: Floats


class SmoothedStates(NamedTuple):
    """Smoothed mean (N, n), cov (N, n, n) of all positions, and cross (N, n, n): Cov(s_{t+1}, s_t), zero at ends."""

    mean: Floats
    cov: Floats
    cross: Floats


class Data(NamedTuple):
    """Series, values (N, d) at offsets (n_objects + 1,), with their systems as rows (P, numbers of all parameters)."""

    values: Floats
    offsets: Ints
    systems: Floats


def run(
    systems: Systems, values: Floats, offsets: Ints, derivatives: bool = True, n_jobs: int | None = 1
) -> KalmanSums:
    """Return the sums of every object; without ``derivatives`` only its log probability.

    Parameters
    ----------
    systems : Systems
        One for all objects, or one for each.
    values : (N, d), NaN where missing
    offsets : (n_objects + 1,), where the objects begin and the last one ends; none is empty
    derivatives : bool
    n_jobs : int or None
        Threads over objects. The result does not depend on it.
    """
    objects, (d, n) = len(offsets) - 1, systems.C.shape[1:]
    width = sum(int(np.prod(shape)) for shape in _shapes(n, d)) if derivatives else 0
    table = np.zeros((objects, HEAD + width))
    data = Data(_relative(systems, values, offsets), offsets, _rows(systems))

    def work(groups: Ints, buffer: Floats, layout: KalmanLayout) -> None:
        sum_groups(data, groups, buffer, layout, table)

    _over_groups(work, np.diff(offsets), n, d, n_jobs)
    return _as_sums(table, n, d)


def _shapes(n: int, d: int) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of the fields of ``KalmanSums`` from A on, for one object."""
    return ((n, n), (d, n), (n, n), (d, d), (n,), (n, n), (d,), (n, n), (n, n), (n,))


def _as_sums(table: Floats, n: int, d: int) -> KalmanSums:
    """Return the rows of a table, (n_objects, HEAD or more), as ``KalmanSums``."""
    failed = table[:, 1].astype(np.int64)
    table[failed >= 0, 0] = np.nan
    head, shapes = (table[:, 0], failed, table[:, 2], table[:, 3]), _shapes(n, d)
    if table.shape[1] == HEAD:
        return KalmanSums(*head, *(np.zeros((0, *shape)) for shape in shapes))
    sizes = [int(np.prod(shape)) for shape in shapes]
    parts = np.split(table[:, HEAD:], np.cumsum(sizes)[:-1], axis=1)
    return KalmanSums(*head, *(part.reshape(-1, *shape) for part, shape in zip(parts, shapes)))


def posterior(
    systems: Systems, values: Floats, offsets: Ints, n_jobs: int | None = 1
) -> tuple[SmoothedStates, KalmanSums]:
    """Return smoothed beliefs under one system, and the result of ``run`` without derivatives."""
    d, n = systems.C.shape[1:]
    beliefs = SmoothedStates(np.zeros((len(values), n)), np.zeros((len(values), n, n)), np.zeros((len(values), n, n)))
    table = np.zeros((len(offsets) - 1, HEAD))
    data = Data(_relative(systems, values, offsets), offsets, _rows(systems))

    def work(groups: Ints, buffer: Floats, layout: KalmanLayout) -> None:
        smooth_groups(data, groups, buffer, layout, beliefs, table)

    _over_groups(work, np.diff(offsets), n, d, n_jobs)
    return beliefs, _as_sums(table, n, d)


def _rows(systems: Systems) -> Floats:
    """Return all parameters of each model but the offset in one row, in the order of ``KalmanLayout``."""
    return np.concatenate([part.reshape(len(part), -1) for part in systems[:-1]], axis=1)


def _relative(systems: Systems, values: Floats, offsets: Ints) -> Floats:
    """Return observations less the offset of their system."""
    shift = systems.offset
    return values - (np.repeat(shift, np.diff(offsets), axis=0) if len(shift) > 1 else shift)


def _over_groups(
    work: Callable[[Ints, Floats, KalmanLayout], None], lengths: Ints, n: int, d: int, n_jobs: int | None
) -> None:
    """Sort objects by length into groups of eight, and run them, split over threads into tasks of about equal cost."""
    order = np.argsort(lengths, kind="stable")
    # The first group is filled up with copies of its first object, whose result is then written more than once.
    groups = np.concatenate([np.repeat(order[:1], -len(order) % W), order]).reshape(-1, W)
    longest = lengths[groups[:, -1]]
    workers = 1 if n_jobs in (None, 1) or longest.sum() * W * n * n < WORTH_THREADS else effective_n_jobs(n_jobs)

    def task(part: Ints) -> None:
        layout = kalman_layout(n, d, int(lengths[part[-1, -1]]))
        work(part, aligned(layout.end * W), layout)

    if workers == 1:
        task(groups)
        return
    cost = np.cumsum(longest)
    cuts = np.searchsorted(cost, cost[-1] * np.arange(1, 4 * workers) / (4 * workers))
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(task, part) for part in np.split(groups, cuts) if len(part)]:
            done.result()


@kernel
def sum_groups(data, groups, buffer, layout, table):
    """Fill the rows of the table, (n_objects, HEAD or more): log_prob, failed, growth, drift and, if they fit, sums."""
    width = table.shape[1] - HEAD
    for b in range(len(groups)):
        steps = _enter(data, groups[b], buffer, layout)
        last = forward(buffer, layout, steps)
        if width:
            backward(buffer, layout, steps, last)
        for lane in range(W):
            i = groups[b, lane]
            _head(buffer, layout, lane, table[i])
            for j in range(width):
                table[i, HEAD + j] = buffer[(layout.sum_a + j) * W + lane]


@kernel
def smooth_groups(data, groups, buffer, layout, beliefs, table):
    """Fill the smoothed beliefs of some groups of objects, and the rows of the table, (n_objects, HEAD)."""
    n = layout.n
    for b in range(len(groups)):
        steps = _enter(data, groups[b], buffer, layout)
        last = forward(buffer, layout, steps)
        for lane in range(W):
            _head(buffer, layout, lane, table[groups[b, lane]])
        clear(buffer, layout.r, n)
        clear(buffer, layout.N, n * n)
        for t in range(steps - 1, -1, -1):
            smooth_step(buffer, layout, t, last)
            for lane in range(W):
                i = groups[b, lane]
                row = data.offsets[i] + t
                if row < data.offsets[i + 1]:
                    for j in range(n):
                        beliefs.mean[row, j] = buffer[(layout.state + j) * W + lane]
                        for k in range(n):
                            beliefs.cov[row, j, k] = buffer[(layout.smoothed + j * n + k) * W + lane]
                            beliefs.cross[row, j, k] = buffer[(layout.term_a + j * n + k) * W + lane]


@inlined
def _head(buffer, layout, lane, row):
    """Fill the head of an object's row from its lane."""
    row[0] = buffer[layout.log_prob * W + lane]
    row[1] = buffer[layout.failed * W + lane]
    row[2] = buffer[layout.growth * W + lane]
    row[3] = buffer[layout.drift * W + lane]


@inlined
def _enter(data, group, buffer, layout):
    """Copy the series of a group and their systems into lanes, NaN after the end of each; return the longest length."""
    d = layout.d
    last = group[W - 1]
    steps = data.offsets[last + 1] - data.offsets[last]
    for lane in range(W):
        i = group[lane]
        p = i if len(data.systems) > 1 else 0
        for j in range(data.systems.shape[1]):
            buffer[(layout.A + j) * W + lane] = data.systems[p, j]
        first = data.offsets[i]
        length = data.offsets[i + 1] - first
        complete = 1.0
        for t in range(steps):
            for c in range(d):
                x = data.values[first + t, c] if t < length else np.nan
                if t < length and np.isnan(x):
                    complete = 0.0
                buffer[(layout.x + t * d + c) * W + lane] = x
        buffer[layout.length * W + lane] = float(length)
        buffer[layout.complete * W + lane] = complete
    return steps
