r"""Structured mean field for switching linear dynamical systems: regimes independent of states, both with dynamics.

Given the probabilities :math:`\gamma_t(k)` of regimes, the states have a Gaussian Q(s) whose precision is block
tridiagonal: with :math:`\langle \cdot \rangle` the mean over regimes at a step,

.. math:: \log Q(s) = -\tfrac12 \sum_t \left( s_t^T \langle Q^{-1} \rangle_t s_t
   - 2 s_t^T \langle Q^{-1} A \rangle_t s_{t-1} + s_{t-1}^T \langle A^T Q^{-1} A \rangle_t s_{t-1}
   + s_t^T \langle C^T R^{-1} C \rangle_t s_t - 2 s_t^T \langle C^T R^{-1} (x_t - b) \rangle_t \right) + \ldots

Elimination forwards and substitution backwards give its moments, as a Kalman smoother does;
(the averages are not the parameters of any one system, so that the ordinary smoother does not apply). Given the
moments, expected log densities are the evidence of an HMM over regimes.

References
----------
Ghahramani & Hinton (2000), Variational learning for switching state-space models, section 4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from genkern.core.jit import inlined, kernel, part
from genkern.core.kalman.matrices import add, add_outer, congruence, copy, multiply
from genkern.core.kalman.roots import ROUNDED
from genkern.core.kalman.rounding import EPS
from genkern.core.kalman.steps import HALF_LOG_2PI, Floats, Ints
from genkern.core.switching.densities import Precisions, apply, invert, look, move, noise, observation, space_of, traced
from genkern.core.switching.passes import over_objects
from genkern.core.switching.types import Regimes, SwitchingSums


class StateField(NamedTuple):
    """Q(s): mean (N, n), cov (N, n, n), cross (N, n, n): Cov(s_t, s_{t-1}), zero at starts; entropy (n_objects,)."""

    mean: Floats
    cov: Floats
    cross: Floats
    entropy: Floats


def states_of(
    regimes: Regimes, precisions: Precisions, values: Floats, offsets: Ints, gamma: Floats, n_jobs: int | None = 1
) -> tuple[StateField, Floats]:
    """Return the best Q(s) given probabilities of regimes (N, S), and expected log densities (N, S) under it.

    The entropy of an object whose precision matrix is singular up to rounding is NaN.
    """
    d, n = regimes.C.shape[2:]
    objects, N, longest = len(offsets) - 1, len(values), int(np.diff(offsets).max())
    beliefs = StateField(np.zeros((N, n)), np.zeros((N, n, n)), np.zeros((N, n, n)), np.zeros(objects))
    expected = np.zeros((N, gamma.shape[1]))
    data = regimes, precisions, values, offsets

    def task(members: Ints) -> None:
        with np.errstate(all="ignore"):
            smooth_objects(data, gamma, members, space_of(longest, n, d), beliefs, expected)

    over_objects(task, objects, n_jobs)
    return beliefs, expected


def field_sums(
    regimes: Regimes,
    precisions: Precisions,
    data: tuple[Floats, Ints],
    gamma: Floats,
    beliefs: StateField,
    sums: SwitchingSums,
) -> None:
    """Add the derivatives of expected log densities by the systems, and moments, to the sums of every object.

    Start and transitions are left out: they belong to Q(q). ``data`` are values and offsets.
    """
    d, n = regimes.C.shape[2:]
    with np.errstate(all="ignore"):
        add_objects((regimes, precisions, *data), gamma, beliefs, space_of(1, n, d), sums)


# --- states given regimes


@kernel
def smooth_objects(data, gamma, members, space, beliefs, expected):
    """Fill the beliefs about the states of some members, and the expected log densities of their regimes."""
    regimes, precisions, values, offsets = data
    for i in members:
        p = i if len(regimes.start) > 1 else 0
        first, length = offsets[i], offsets[i + 1] - offsets[i]
        beliefs.entropy[i] = _eliminate(data, p, first, length, gamma, space)
        if np.isnan(beliefs.entropy[i]):
            continue
        _substitute(first, length, space, beliefs)
        for t in range(length):
            for k in range(gamma.shape[1]):
                total = look(regimes, precisions, (p, k), values[first + t], beliefs.mean[first + t], space)
                total -= 0.5 * traced(space.small, regimes.C[p, k], beliefs.cov[first + t], space)
                total += move(regimes, precisions, (p, k), (first, first + t), beliefs, space)
                expected[first + t, k] = total


@part
def _eliminate(data, p, first, length, gamma, space):
    """Fill J (inverses), j and link of every step; return the entropy of Q(s), NaN if a block is not positive."""
    regimes, precisions, values, _ = data
    n = len(space.v)
    entropy = length * n * (HALF_LOG_2PI + 0.5)
    for t in range(length):
        _own_terms(regimes, precisions, p, t, gamma[first + t], values[first + t], space)
        if t > 0:
            # minus V J^-1 V^T, and V J^-1 j, of the step before
            link, j = space.link[t], space.j[t]
            copy(space.J[t - 1], space.spare)
            congruence(link, space.spare, space.third)
            add(space.square, -1.0, space.spare)
            for a in range(n):
                space.third[0, a] = space.spare[a, a]
            apply(space.J[t - 1], space.j[t - 1], space.v)
            for a in range(n):
                for b in range(n):
                    j[a] += link[a, b] * space.v[b]
        if t < length - 1:
            for k in range(gamma.shape[1]):
                add(space.square, gamma[first + t + 1, k], precisions.AQA[p, k])
        half = invert(space.square, space.every, space.spare, space.J[t])
        for a in range(n):  # what was subtracted, relative to the remainder
            if t > 0 and not EPS * space.third[0, a] * space.J[t, a, a] <= ROUNDED:
                half = np.nan
        if np.isnan(half):
            return half
        entropy -= half
    return entropy


@part
def _own_terms(regimes, precisions, p, t, gamma, x, space):
    """Fill square with the mean precision of s_t given its past and x_t, link[t] with V_t, and j[t] with the terms."""
    n = len(space.v)
    j = space.j[t]
    for a in range(n):
        j[a] = 0.0
        for b in range(n):
            space.square[a, b] = 0.0
            space.link[t, a, b] = 0.0
    for k in range(len(gamma)):
        w = gamma[k]
        observation(regimes.R[p, k], precisions.R[p, k], precisions.constants[p, k, 1], x, space)
        C = regimes.C[p, k]
        _look_back(C, x, regimes.offset[p, k], space)
        for a in range(n):
            for c in range(len(x)):
                j[a] += w * C[c, a] * space.u[c]
                for b in range(n):
                    space.square[a, b] += w * C[c, a] * space.wide[c, b]
        if t > 0:
            add(space.square, w, precisions.Q[p, k])
            add(space.link[t], w, precisions.QA[p, k])
        else:
            add(space.square, w, precisions.cov[p, k])
            apply(precisions.cov[p, k], regimes.mean[p, k], space.v)
            for a in range(n):
                j[a] += w * space.v[a]


@part
def _look_back(C, x, offset, space):
    """Fill u with R^-1 (x - b), wide with R^-1 C over the observed channels; small holds R^-1, zero elsewhere."""
    d, n = C.shape
    for c in range(d):
        total = 0.0
        for e in range(d):
            total += 0.0 if np.isnan(x[e]) else space.small[c, e] * (x[e] - offset[e])
        space.u[c] = total
        for a in range(n):
            total = 0.0
            for e in range(d):
                total += space.small[c, e] * C[e, a]
            space.wide[c, a] = total


@part
def _substitute(first, length, space, beliefs):
    """Fill means, covariances and those between neighbours, from the last step back."""
    n = len(space.v)
    for t in range(length - 1, -1, -1):
        mean, cov = beliefs.mean[first + t], beliefs.cov[first + t]
        apply(space.J[t], space.j[t], mean)
        copy(space.J[t], cov)
        if t == length - 1:
            continue
        ahead, link = first + t + 1, space.link[t + 1]
        for a in range(n):
            for b in range(n):
                total = 0.0
                for c in range(n):
                    total += space.J[t, a, c] * link[b, c]
                space.square[a, b] = total  # J^-1 V^T
        for a in range(n):
            for b in range(n):
                mean[a] += space.square[a, b] * beliefs.mean[ahead, b]
                total = 0.0
                for c in range(n):
                    total += beliefs.cov[ahead, a, c] * space.square[b, c]
                beliefs.cross[ahead, a, b] = total
        copy(beliefs.cov[ahead], space.spare)
        congruence(space.square, space.spare, space.third)
        add(cov, 1.0, space.spare)


# --- sums for the M-step


@kernel
def add_objects(data, gamma, beliefs, space, sums):
    """Add the terms of every position and regime to the sums of its object."""
    regimes, precisions, values, offsets = data
    for i in range(len(offsets) - 1):
        p = i if len(regimes.start) > 1 else 0
        for row in range(offsets[i], offsets[i + 1]):
            for k in range(gamma.shape[1]):
                if gamma[row, k] > 0.0:
                    _add_look((regimes, precisions), (p, k, i, row), gamma[row, k], values[row], beliefs, space, sums)
                    _add_move((regimes, precisions), (p, k, i, row, offsets[i]), gamma[row, k], beliefs, space, sums)


@inlined
def _add_look(parameters, indices, w, x, beliefs, space, sums):
    """Add to the derivatives by C, R and the offset, to the moments of states that are seen, and to their number."""
    regimes, precisions = parameters
    p, k, i, row = indices
    mean, cov, C = beliefs.mean[row], beliefs.cov[row], regimes.C[p, k]
    d, n = C.shape
    look(regimes, precisions, (p, k), x, mean, space)
    traced(space.small, C, cov, space)
    total = 0.0
    for c in range(d):
        total += space.small[c, c]
        sums.offset[i, k, c] += w * space.u[c]
        for a in range(n):
            entry = space.u[c] * mean[a]
            for e in range(d):
                entry -= space.small[c, e] * space.wide[e, a]
            sums.C[i, k, c, a] += w * entry
    if total == 0.0:
        return
    # R^-1 C P C^T R^-1
    for c in range(d):
        for e in range(d):
            entry = 0.0
            for a in range(n):
                entry += space.wide[c, a] * C[e, a]
            space.part[c, e] = entry
    congruence(space.small, space.part, space.tiny)
    add(space.part, -1.0, space.small)
    add_outer(space.part, 1.0, space.u, space.u)
    add(sums.R[i, k], 0.5 * w, space.part)
    add(sums.seen[i, k], w, cov)
    add_outer(sums.seen[i, k], w, mean, mean)
    for a in range(n):
        sums.seen_sum[i, k, a] += w * mean[a]
    sums.counts[i, k, 2] += w


@inlined
def _add_move(parameters, indices, w, beliefs, space, sums):
    """Add to the derivatives by A and Q, or by the first mean and covariance, and to the moment of states left."""
    regimes, precisions = parameters
    p, k, i, row, first = indices
    n = len(space.v)
    noise(regimes, (p, k), (first, row), beliefs, space)
    inverse = precisions.cov[p, k] if row == first else precisions.Q[p, k]
    target = sums.cov[i, k] if row == first else sums.Q[i, k]
    if row == first:
        for a in range(n):
            for b in range(n):
                sums.mean[i, k, a] += w * inverse[a, b] * space.v[b]
    else:
        before = beliefs.mean[row - 1]
        add_outer(space.spare, 1.0, space.v, before)  # E[w s^T]
        multiply(inverse, space.spare, space.third)
        add(sums.A[i, k], w, space.third)
        add(sums.left[i, k], w, beliefs.cov[row - 1])
        add_outer(sums.left[i, k], w, before, before)
    congruence(inverse, space.square, space.third)
    add(target, 0.5 * w, space.square)
    add(target, -0.5 * w, inverse)
    sums.counts[i, k, 0 if row == first else 1] += w
