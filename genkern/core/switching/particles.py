r"""A particle filter for switching linear dynamical systems whose particles are paths of regimes.

Given its path a particle has an exact Kalman belief about the state, so that only regimes are sampled
(Rao-Blackwellisation). Each particle is continued by all regimes. If more than N continuations arise, weights w, the
threshold c with :math:`\sum_j \min(1, w_j / c) = N` divides them: those above it stay as they are, the others stay with
probability :math:`w_j / c`, drawn systematically, and then have weight c. That keeps expected weights, so that the
product of the sums of weights is an unbiased estimate of the likelihood.

References
----------
Fearnhead & Clifford (2003), On-line inference for hidden Markov models via particle filters, section 3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from genkern.core.jit import kernel, part
from genkern.core.kalman.matrices import copy
from genkern.core.kalman.rounding import begin, carry, counted_update, counts_of, leave, recall
from genkern.core.kalman.steps import Floats, Ints, buffers, predict, relative
from genkern.core.switching.passes import over_objects
from genkern.core.switching.types import Regimes


class Cloud(NamedTuple):
    """Particles: log weights (M,), regimes (M,), means (M, n) and covariances (M, n, n) of the state, and counts.

    These are errors (M, 2, n, n), and most (M, 2) of them.
    """

    log_weight: Floats
    regime: Ints
    mean: Floats
    cov: Floats
    errors: Floats
    most: Floats


def filter_runs(
    regimes: Regimes, values: Floats, offsets: Ints, particles: int, uniforms: Floats, n_jobs: int | None = 1
) -> tuple[Floats, Ints, Floats]:
    """Return log estimates (n_objects, runs) of likelihoods, and where an innovation covariance is singular, or -1.

    With them the largest growth and drift (n_objects, 2) of a particle, as ``kalman.rounding`` defines them.
    ``uniforms`` (N, runs) in [0, 1) hold one number for each position and run.
    """
    S, d, n = regimes.C.shape[1:]
    objects = len(offsets) - 1
    logs, failed, lost = np.zeros((objects, uniforms.shape[1])), np.full(objects, -1), np.zeros((objects, 2))

    def task(members: Ints) -> None:
        # rounding may let systematic resampling keep one more than it should
        clouds = cloud_of(particles + 1, n), cloud_of((particles + 1) * S, n)
        with np.errstate(all="ignore"):
            data, workspaces = (regimes, values, offsets), (buffers(n, d), counts_of(n, d))
            filter_objects(data, members, particles, uniforms, clouds, workspaces, logs, (failed, lost))

    over_objects(task, objects, n_jobs)
    return logs, failed, lost


def cloud_of(size: int, n: int) -> Cloud:
    """Return buffers for so many particles."""
    return Cloud(
        np.zeros(size),
        np.zeros(size, np.int64),
        *(np.zeros((size, *shape)) for shape in ((n,), (n, n), (2, n, n), (2,))),
    )


@kernel
def filter_objects(data, members, particles, uniforms, clouds, workspaces, logs, faults):
    """Fill the rows of some members, run by run."""
    regimes, values, offsets = data
    here, ahead = clouds
    failed, lost = faults
    for i in members:
        first, length = offsets[i], offsets[i + 1] - offsets[i]
        for run in range(uniforms.shape[1]):
            total, alive = 0.0, np.int64(0)  # int64, as Numba compiles callees once more for a literal
            for t in range(length):
                alive = _continue(regimes, values[first + t], t, alive, clouds, workspaces, lost[i])
                if alive < 0:
                    failed[i] = t
                    break
                total += _normalise(ahead.log_weight[:alive])
                alive = _thin(ahead, alive, particles, uniforms[first + t, run], here)
            logs[i, run] = total
            if failed[i] >= 0:
                break


@part
def _continue(regimes, x, t, alive, clouds, workspaces, lost):
    """Fill ``ahead`` with all continuations of the particles, log weights included; return their number, -1: singular.

    At t = 0 they are the first regimes. ``lost`` (2,) is set to the digits that particles have lost.
    """
    here, ahead = clouds
    workspace, counts = workspaces
    n, S = here.mean.shape[1], regimes.start.shape[1]
    count = 0
    for i in range(alive if t > 0 else 1):
        for k in range(S):
            probability = regimes.transitions[0, here.regime[i], k] if t > 0 else regimes.start[0, k]
            if probability == 0.0:
                continue
            mean, cov = ahead.mean[count], ahead.cov[count]
            copy(here.cov[i] if t > 0 else regimes.cov[0, k], cov)
            for j in range(n):
                mean[j] = here.mean[i, j] if t > 0 else regimes.mean[0, k, j]
            if t > 0:
                predict(regimes.A[0, k], regimes.Q[0, k], mean, cov, workspace)
                recall(counts, here.errors[i], here.most[i])
                carry(regimes.A[0, k], counts)
            else:
                begin(counts)
            gap = relative(x, regimes.offset[0, k], workspace.gap)
            density = counted_update(regimes.C[0, k], regimes.R[0, k], gap, mean, cov, workspace, counts)
            leave(counts, ahead.errors[count], ahead.most[count])
            for kind in range(2):
                lost[kind] = max(lost[kind], counts.most[kind])
            if np.isnan(density):
                return -1
            ahead.log_weight[count] = density + np.log(probability) + (here.log_weight[i] if t > 0 else 0.0)
            ahead.regime[count] = k
            count += 1
    return count


@part
def _normalise(log_weight):
    """Turn log weights into those of weights that sum to one; return the log of the old sum."""
    top = -np.inf
    for j in range(len(log_weight)):
        top = max(top, log_weight[j])
    total = 0.0
    for j in range(len(log_weight)):
        total += np.exp(log_weight[j] - top)
    rest = np.log(total)
    for j in range(len(log_weight)):
        log_weight[j] = (log_weight[j] - top) - rest
    return top + rest


@part
def _thin(ahead, count, particles, uniform, here):
    """Move at most about so many of the continuations into ``here``; return their number."""
    many = count > particles
    threshold = _threshold(ahead.log_weight, count, particles) if many else 0.0
    kept = 0
    target = uniform * threshold
    passed = 0.0  # weight of those below the threshold so far
    for j in range(count):
        weight = np.exp(ahead.log_weight[j])
        chosen = weight > threshold or not many
        if not chosen:
            passed += weight
            if passed > target:
                target += threshold
                chosen = True
                ahead.log_weight[j] = np.log(threshold)
        if chosen and kept < len(here.regime):
            here.log_weight[kept] = ahead.log_weight[j]
            here.regime[kept] = ahead.regime[j]
            copy(ahead.cov[j], here.cov[kept])
            for kind in range(2):
                copy(ahead.errors[j, kind], here.errors[kept, kind])
                here.most[kept, kind] = ahead.most[j, kind]
            for i in range(here.mean.shape[1]):
                here.mean[kept, i] = ahead.mean[j, i]
            kept += 1
    return kept


@kernel
def _threshold(log_weight, count, particles):
    """Return c with sum of min(1, w / c) = particles: heavy particles are set aside until none of the rest is above."""
    threshold, heavy = 1.0 / particles, -1
    while True:
        rest, above = 0.0, 0
        for j in range(count):
            weight = np.exp(log_weight[j])
            if weight > threshold:
                above += 1
            else:
                rest += weight
        if above <= heavy or above >= particles:  # the latter where the rest is nothing but rounding
            return threshold
        heavy = above
        threshold = rest / (particles - above)
