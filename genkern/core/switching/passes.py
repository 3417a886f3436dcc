r"""Switching linear dynamical systems by enumeration: all paths of regimes, walked as a tree that shares prefixes.

A node at depth t is a path :math:`q_0 \ldots q_t`; it holds the filtered belief about :math:`s_t` given that path, and
its log weight :math:`\log p(q_0 \ldots q_t, x_0 \ldots x_t)`. The likelihood is the sum over the leaves. A second walk
goes through the tree once more and, on the way back from each node to its parent, propagates derivatives: with
:math:`g` and :math:`G` the derivatives of the log-likelihood by the mean m and covariance P of a filtered belief, w the
posterior probability of the node, K, S, u the gain, innovation covariance and scaled innovation of its update and
:math:`L = I - K C`, the belief before the update has the derivatives

.. math:: a = L^T g + w C^T u, \qquad
   B = L^T G L + \tfrac12 (h c^T + c h^T) + \tfrac{w}{2} (c c^T - C^T S^{-1} C), \quad h = L^T g, \; c = C^T u

and the parent :math:`A^T a`, :math:`A^T B A`. The posterior moments of the states are sums over nodes as well:
:math:`E[s_t] = \sum w m + P g` and :math:`E[s_t s_t^T] = \sum w (P + m m^T) + 2 P G P + m (P g)^T + (P g) m^T`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from joblib import effective_n_jobs

from genkern.core.jit import kernel, part
from genkern.core.kalman.matrices import copy
from genkern.core.kalman.rounding import begin, carry, counted_update, counts_of, leave, recall
from genkern.core.kalman.steps import Floats, Ints, buffers, predict, relative, update
from genkern.core.switching.backward import go_back
from genkern.core.switching.types import Regimes, SwitchingSums, empty_sums, tree_of, work_of

NODE, PRUNED, SINGULAR = 0, 1, 2  # kinds of nodes on the way down


def enumerate_paths(
    regimes: Regimes, values: Floats, offsets: Ints, derivatives: bool = True, n_jobs: int | None = 1
) -> SwitchingSums:
    """Return the sums of every object over all paths of regimes; without ``derivatives`` only its log probability.

    Parameters
    ----------
    regimes : Regimes
        One model for all objects, or one for each.
    values : (N, d), NaN where missing
    offsets : (n_objects + 1,), where the objects begin and the last one ends; none is empty
    derivatives : bool
    n_jobs : int or None
        Threads over objects. The result does not depend on it.
    """
    sums = empty_sums(regimes, offsets, derivatives)
    d, n = regimes.C.shape[2:]
    deepest = int(np.diff(offsets).max())
    masses = np.empty((len(offsets) - 1, 2))

    def task(members: Ints) -> None:
        data, tree, workspace = (regimes, values, offsets), tree_of(deepest, n, d), buffers(n, d)
        workspaces = workspace, counts_of(n, d)
        with np.errstate(all="ignore"):
            walk_objects_down(data, members, tree, workspaces, masses, sums.failed, sums.lost)
            if derivatives:
                walk_objects_up(data, members, tree, (workspace, work_of(n, d)), masses, sums)

    over_objects(task, len(offsets) - 1, n_jobs)
    sums.log_prob[:] = masses.sum(axis=1)
    sums.log_prob[sums.failed >= 0] = np.nan
    return sums


def over_objects(task: Callable[[Ints], None], objects: int, n_jobs: int | None) -> None:
    """Run a task on some members of all objects at a time, in threads; each member's result is its own."""
    workers = 1 if n_jobs in (None, 1) else min(effective_n_jobs(n_jobs), objects)
    if workers == 1:
        task(np.arange(objects))
        return
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(task, part) for part in np.array_split(np.arange(objects), 4 * workers) if len(part)]:
            done.result()


# --- the walk


@kernel
def walk_objects_down(data, members, tree, workspaces, masses, failed, lost):
    """Fill log-likelihoods of some members, as two summands in masses (n_objects, 2), where they failed, and counts."""
    regimes, values, offsets = data
    for i in members:
        p = i if len(regimes.start) > 1 else 0
        masses[i] = walk_down(
            regimes, p, values[offsets[i] : offsets[i + 1]], tree, workspaces, failed[i : i + 1], lost[i]
        )


@kernel
def walk_objects_up(data, members, tree, workspaces, masses, sums):
    """Fill the other rows of some members, whose log-likelihoods are known."""
    regimes, values, offsets = data
    for i in members:
        p = i if len(regimes.start) > 1 else 0
        if sums.failed[i] < 0:
            x = values[offsets[i] : offsets[i + 1]]
            walk_up(regimes, (p, i, offsets[i]), x, (masses[i, 0], masses[i, 1]), tree, workspaces, sums)


@part
def walk_down(regimes, p, x, tree, workspaces, failed, lost):
    """Return the log of the summed weights of all leaves, as that of the largest and the rest, which are to be added.

    It is NaN if an innovation covariance is singular, at the step ``failed``. The sum has too few digits to divide by.
    ``lost`` (2,) is set to the digits that the paths have lost.
    """
    length, count = len(x), regimes.start.shape[1]
    top, total = -np.inf, 0.0
    depth = np.int64(0)  # int64, as Numba compiles callees once more for a literal
    tree.path[0] = -1
    while depth >= 0:
        tree.path[depth] += 1
        if tree.path[depth] == count:
            depth -= 1
            continue
        found = _enter(regimes, p, x, depth, tree, *workspaces)
        if found != PRUNED and tree.zeros[depth] == 0:
            for kind in range(2):
                lost[kind] = max(lost[kind], tree.most[depth, kind])
        if found == SINGULAR:
            failed[0] = depth
            return np.nan, np.nan
        if found == PRUNED or tree.zeros[depth] > 0:
            continue
        if depth < length - 1:
            depth += 1
            tree.path[depth] = -1
        else:
            weight = tree.log_weight[depth]
            if weight > top:
                total = total * np.exp(top - weight) + 1.0
                top = weight
            else:
                total += np.exp(weight - top)
    return top, np.log(total)


@part
def walk_up(regimes, indices, x, total, tree, workspaces, sums):
    """Add to the sums of object ``indices[1]``, whose model is ``indices[0]`` and whose first position ``indices[2]``.

    Paths with one step of probability zero are walked for the derivative by that probability, which is not zero.
    """
    length, count = len(x), regimes.start.shape[1]
    workspace, work = workspaces
    depth = np.int64(0)  # int64, as Numba compiles callees once more for a literal
    tree.path[0] = -1
    while depth >= 0:
        tree.path[depth] += 1
        if tree.path[depth] == count:
            depth -= 1
            if depth >= 0:
                go_back(regimes, indices, depth, tree, work, sums)
            continue
        # Where no path is possible, a covariance may be singular: x has no density to lose there.
        if _enter(regimes, indices[0], x, depth, tree, workspace, None) != NODE:
            continue
        _keep_update(depth, tree, workspace)
        if depth < length - 1:
            depth += 1
            tree.path[depth] = -1
            continue
        weight = np.exp((tree.log_weight[depth] - total[0]) - total[1])
        if tree.zeros[depth] == 0:
            tree.mass[depth] = weight
            go_back(regimes, indices, depth, tree, work, sums)
        else:
            _add_impossible(regimes, indices, depth, tree, weight, sums)


@part
def _enter(regimes, p, x, t, tree, workspace, counts):
    """Fill the belief and the log weight of the node of regime path[t] at depth t; zero probabilities are left out.

    With counts (or None) also the digits that it has lost.
    """
    k = tree.path[t]
    n = len(workspace.vector)
    probability = regimes.start[p, k] if t == 0 else regimes.transitions[p, tree.path[t - 1], k]
    zeros = (1 if probability == 0.0 else 0) + (tree.zeros[t - 1] if t > 0 else 0)
    if zeros > 1:
        return PRUNED
    mean, cov = tree.mean[t], tree.cov[t]
    if t == 0:
        copy(regimes.cov[p, k], cov)
        for i in range(n):
            mean[i] = regimes.mean[p, k, i]
    else:
        copy(tree.cov[t - 1], cov)
        for i in range(n):
            mean[i] = tree.mean[t - 1, i]
        predict(regimes.A[p, k], regimes.Q[p, k], mean, cov, workspace)
    gap = relative(x[t], regimes.offset[p, k], workspace.gap)
    tree.zeros[t] = zeros
    if counts is None:
        density = update(regimes.C[p, k], regimes.R[p, k], gap, mean, cov, workspace)
    else:
        if t == 0:
            begin(counts)
        else:
            recall(counts, tree.errors[t - 1], tree.most[t - 1])
            carry(regimes.A[p, k], counts)
        density = counted_update(regimes.C[p, k], regimes.R[p, k], gap, mean, cov, workspace, counts)
        leave(counts, tree.errors[t], tree.most[t])
    if np.isnan(density):
        return SINGULAR if zeros == 0 else PRUNED
    if probability > 0.0:
        density += np.log(probability)
    tree.log_weight[t] = density + (tree.log_weight[t - 1] if t > 0 else 0.0)
    return NODE


@part
def _keep_update(t, tree, workspace):
    """Store the update at depth t for the way back, and set the sums over its children to zero."""
    n, d = workspace.gain.shape
    copy(workspace.gain, tree.gain[t])
    for a in range(d):
        tree.score[t, a] = workspace.score[a]
        for b in range(d):
            entry = 0.0
            for c in range(d):
                entry += workspace.root[c, a] * workspace.root[c, b]
            tree.inverse[t, a, b] = entry
    tree.mass[t] = 0.0
    for i in range(n):
        tree.pull[t, i] = 0.0
        for j in range(n):
            tree.push[t, i, j] = 0.0


@part
def _add_impossible(regimes, indices, last, tree, weight, sums):
    """Add the weight of a path with one step of probability zero to the derivative by it."""
    p, row = indices[0], indices[1]
    if regimes.start[p, tree.path[0]] == 0.0:
        sums.start[row, tree.path[0]] += weight
    for t in range(1, last + 1):
        if regimes.transitions[p, tree.path[t - 1], tree.path[t]] == 0.0:
            sums.transitions[row, tree.path[t - 1], tree.path[t]] += weight
