"""The backward walk through the tree of all paths: derivatives are propagated from each node to its parent."""

from __future__ import annotations

import numpy as np

from genkern.core.jit import part
from genkern.core.kalman.matrices import add, add_outer, add_product, congruence, copy, multiply, symmetric_product

LARGEST = float(np.finfo(np.float64).max)


@part
def go_back(regimes, indices, t, tree, work, sums):
    """Add the derivatives by the parameters of the node's regime at depth t; propagate derivatives to its parent."""
    k, w = tree.path[t], tree.mass[t]
    if w == 0.0:
        return  # none of its descendants has any weight
    p, row, position = indices[0], indices[1], indices[2] + t
    n = len(work.a)
    _second(tree.mean[t], tree.cov[t], w, tree.pull[t], tree.push[t], work)
    sums.regimes[position, k] += w
    add(sums.seconds[position], 1.0, work.square)
    for i in range(n):
        sums.states[position, i] += w * tree.mean[t, i] + work.b[i]
    if _observed(tree.inverse[t]):
        add(sums.seen[row, k], 1.0, work.square)
        sums.counts[row, k, 2] += w
        for i in range(n):
            sums.seen_sum[row, k, i] += w * tree.mean[t, i] + work.b[i]
    _return_update(regimes.C[p, k], t, tree, work, (sums.C[row, k], sums.R[row, k], sums.offset[row, k]))
    if t == 0:
        for i in range(n):
            sums.mean[row, k, i] += work.a[i]
        add(sums.cov[row, k], 1.0, work.other)
        sums.counts[row, k, 0] += w
        sums.start[row, k] = min(sums.start[row, k] + w / regimes.start[p, k], LARGEST)
        return
    before = tree.path[t - 1]
    sums.counts[row, k, 1] += w
    entry = sums.transitions[row, before, k] + w / regimes.transitions[p, before, k]
    sums.transitions[row, before, k] = min(entry, LARGEST)
    add(sums.Q[row, k], 1.0, work.other)
    _return_predict(regimes.A[p, k], t, tree, work, sums.A[row, k], sums.left[row, k])
    tree.mass[t - 1] += w


@part
def _second(mean, cov, w, pull, push, work):
    """Fill square with the second moment w (P + m m^T) + 2 P G P + m (P g)^T + (P g) m^T, and b with P g."""
    n = len(mean)
    for i in range(n):
        entry = 0.0
        for j in range(n):
            entry += cov[i, j] * pull[j]
        work.b[i] = entry
    copy(push, work.square)
    congruence(cov, work.square, work.spare)
    for i in range(n):
        for j in range(n):
            outer = w * mean[i] * mean[j] + mean[i] * work.b[j] + work.b[i] * mean[j]
            work.square[i, j] = w * cov[i, j] + 2.0 * work.square[i, j] + outer


@part
def _observed(inverse):
    """Return whether any channel was observed."""
    total = 0.0
    for a in range(len(inverse)):
        total += inverse[a, a]
    return total > 0.0


@part
def _return_update(C, t, tree, work, derivatives):
    r"""Add the derivatives by C, R and the offset b; fill a (n,) and other (n, n) with those by the belief before it.

    .. math:: \partial_R = K^T G K - (K^T g u^T + u g^T K)/2 + w (u u^T - S^{-1})/2, \quad
       \partial_C = -2 K^T G P + u (P g)^T - K^T g m^T + w (u m^T - K^T), \quad \partial_b = w u - K^T g
    """
    by_C, by_R, by_offset = derivatives
    n, d = work.wide.shape
    w, gain, inverse, u = tree.mass[t], tree.gain[t], tree.inverse[t], tree.score[t]
    pull, push = tree.pull[t], tree.push[t]
    for a in range(d):
        entry = 0.0
        for i in range(n):
            entry += gain[i, a] * pull[i]
            half = 0.0
            for j in range(n):
                half += push[i, j] * gain[j, a]
            work.wide[i, a] = half  # G K
        work.e[a] = entry  # K^T g
        by_offset[a] += w * u[a] - entry
    for a in range(d):
        for b in range(d):
            entry = 0.5 * (w * (u[a] * u[b] - inverse[a, b]) - work.e[a] * u[b] - u[a] * work.e[b])
            for i in range(n):
                entry += gain[i, a] * work.wide[i, b]
            by_R[a, b] += entry
        for i in range(n):
            entry = u[a] * (work.b[i] + w * tree.mean[t, i]) - work.e[a] * tree.mean[t, i] - w * gain[i, a]
            for j in range(n):
                entry -= 2.0 * work.wide[j, a] * tree.cov[t, j, i]
            by_C[a, i] += entry
    _before_update(C, t, tree, work)


@part
def _before_update(C, t, tree, work):
    """Fill a (n,) and other (n, n) with the derivatives by mean and covariance of the belief before the update."""
    n, d = work.wide.shape
    w, u = tree.mass[t], tree.score[t]
    for i in range(n):
        work.h[i] = tree.pull[t, i]
        work.c[i] = 0.0
        for a in range(d):
            work.h[i] -= C[a, i] * work.e[a]
            work.c[i] += C[a, i] * u[a]
            entry = 0.0
            for b in range(d):
                entry += tree.inverse[t, a, b] * C[b, i]
            work.wide[i, a] = entry  # (S^-1 C)^T
        work.a[i] = work.h[i] + w * work.c[i]
    for i in range(n):
        for j in range(n):
            entry = 0.0
            for a in range(d):
                entry += tree.gain[t, j, a] * C[a, i]
            work.rest[i, j] = (1.0 if i == j else 0.0) - entry  # L^T
    copy(tree.push[t], work.other)
    congruence(work.rest, work.other, work.spare)
    for i in range(n):
        for j in range(n):
            entry = 0.0
            for a in range(d):
                entry += C[a, i] * work.wide[j, a]
            mixed = work.h[i] * work.c[j] + work.c[i] * work.h[j] + w * (work.c[i] * work.c[j] - entry)
            work.other[i, j] += 0.5 * mixed


@part
def _return_predict(A, t, tree, work, by_A, left):
    """Add a m^T + 2 B A P to the derivative by A, the second moment of the state left, and propagate derivatives."""
    n = len(work.a)
    mean, cov = tree.mean[t - 1], tree.cov[t - 1]
    add_outer(by_A, 1.0, work.a, mean)
    multiply(work.other, A, work.rest)  # B A
    add_product(by_A, 2.0, work.rest, cov)
    for i in range(n):
        entry = 0.0
        for j in range(n):
            entry += A[j, i] * work.a[j]
        work.h[i] = entry
        tree.pull[t - 1, i] += entry
    symmetric_product(A, work.rest, work.other)
    add(tree.push[t - 1], 1.0, work.other)
    _second(mean, cov, tree.mass[t], work.h, work.other, work)
    add(left, 1.0, work.square)
