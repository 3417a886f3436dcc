"""Inputs, outputs and workspaces of the passes over switching linear dynamical systems."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from genkern.core.kalman.steps import Floats, Ints


class Regimes(NamedTuple):
    """Parameters with a leading axis of models, one for all objects or one for each, and S regimes.

    start (P, S), transitions (P, S, S), A (P, S, n, n), C (P, S, d, n), Q (P, S, n, n), R (P, S, d, d), mean (P, S, n)
    and cov (P, S, n, n) of the first state, offset (P, S, d) of the observations. Regime q_t governs the
    step that leads to s_t, and the observation at t.
    """

    start: Floats
    transitions: Floats
    A: Floats
    C: Floats
    Q: Floats
    R: Floats
    mean: Floats
    cov: Floats
    offset: Floats


class SwitchingSums(NamedTuple):
    r"""Results of the walks, rows of objects.

    log_prob (n_objects,); failed (n_objects,), the position at which an innovation covariance is singular, or -1; lost
    (n_objects, 2), the largest growth and drift, as ``kalman.rounding`` defines them, of a path that is possible; the
    derivatives of log p by all parameters, (n_objects, S, ...), every entry of a matrix by itself; the moments
    :math:`\sum_t E[s_t s_t^T]` (n_objects, S, n, n) of the states that a step into a regime leaves, and of those seen
    (with at least one channel) in it; seen_sum (n_objects, S, n), the sums of the means of the latter; counts
    (n_objects, S, 3) of starts, steps into and observations in a regime; and by position the posterior
    of regimes (N, S), means (N, n) and second moments (N, n, n) of states.
    """

    log_prob: Floats
    failed: Ints
    lost: Floats
    start: Floats
    transitions: Floats
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
    counts: Floats
    regimes: Floats
    states: Floats
    seconds: Floats


class Tree(NamedTuple):
    """The branch on which the walk is, by depth: beliefs, updates, log weights, and derivatives from the children."""

    path: Ints
    zeros: Ints
    log_weight: Floats
    mean: Floats
    cov: Floats
    gain: Floats
    inverse: Floats
    score: Floats
    mass: Floats
    pull: Floats
    push: Floats
    errors: Floats
    most: Floats


class SwitchingWorkspace(NamedTuple):
    """Workspace: rest, square, spare, other (n, n), wide (n, d), vectors h, c, a, b (n,), e (d,), small (d, d)."""

    rest: Floats
    square: Floats
    spare: Floats
    other: Floats
    wide: Floats
    h: Floats
    c: Floats
    a: Floats
    b: Floats
    e: Floats
    small: Floats


def empty_sums(regimes: Regimes, offsets: Ints, derivatives: bool) -> SwitchingSums:
    """Return zeros; derivatives and posteriors have no rows unless asked for."""
    S, d, n = regimes.C.shape[1:]
    objects, positions = len(offsets) - 1, int(offsets[-1])
    rows, steps = (objects, positions) if derivatives else (0, 0)
    systems = ((n, n), (d, n), (n, n), (d, d), (n,), (n, n), (d,), (n, n), (n, n), (n,), (3,))
    shapes = ((S,), (S, S), *((S, *shape) for shape in systems))
    blocks = [np.zeros((rows, *shape)) for shape in shapes]
    posterior = [np.zeros((steps, *shape)) for shape in ((S,), (n,), (n, n))]
    return SwitchingSums(np.zeros(objects), np.full(objects, -1), np.zeros((objects, 2)), *blocks, *posterior)


def tree_of(depth: int, n: int, d: int) -> Tree:
    """Return the tree for paths of so many steps, n states and d channels."""
    shapes = ((), (n,), (n, n), (n, d), (d, d), (d,), (), (n,), (n, n), (2, n, n), (2,))
    return Tree(np.zeros(depth, np.int64), np.zeros(depth, np.int64), *(np.zeros((depth, *s)) for s in shapes))


def work_of(n: int, d: int) -> SwitchingWorkspace:
    """Return the workspace for n states and d channels."""
    shapes = ((n, n),) * 4 + ((n, d),) + ((n,),) * 4 + ((d,), (d, d))
    return SwitchingWorkspace(*(np.zeros(shape) for shape in shapes))
