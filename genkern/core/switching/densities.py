"""Expected log densities of steps and observations of linear dynamical systems, given moments of the states."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from genkern.core.jit import inlined, part
from genkern.core.kalman.matrices import add_outer, copy, multiply
from genkern.core.kalman.steps import HALF_LOG_2PI, Floats, Ints
from genkern.core.switching.types import Regimes


class Precisions(NamedTuple):
    """Inverse covariances of a stack of regimes, with leading axes (P, S), and products with them.

    Q (n, n), QA = Q^-1 A, AQA = A^T Q^-1 A, R (d, d), cov (n, n) inverses, and constants (3,): -log|2 pi V|/2 of them.
    """

    Q: Floats
    QA: Floats
    AQA: Floats
    R: Floats
    cov: Floats
    constants: Floats


class DensityWorkspace(NamedTuple):
    """Workspace: observed (d,), the observed channels, every (n,), 0 to n - 1, and arrays for n and d.

    J (T, n, n), j (T, n), link (T, n, n); matrices (n, n), (d, n) and (d, d); vectors v (n,), e and u (d,).
    """

    observed: Ints
    every: Ints
    J: Floats
    j: Floats
    link: Floats
    square: Floats
    spare: Floats
    third: Floats
    wide: Floats
    small: Floats
    part: Floats
    tiny: Floats
    v: Floats
    e: Floats
    u: Floats


def precisions_of(regimes: Regimes) -> Precisions:
    """Return the precisions of regimes whose covariances are positive definite."""
    Q, R, cov = (np.asarray(np.linalg.inv(V), np.float64) for V in (regimes.Q, regimes.R, regimes.cov))
    QA = Q @ regimes.A
    AQA = np.swapaxes(regimes.A, -1, -2) @ QA
    constants = [-0.5 * np.linalg.slogdet(2.0 * np.pi * V)[1] for V in (regimes.Q, regimes.R, regimes.cov)]
    return Precisions(Q, QA, AQA, R, cov, np.stack(constants, axis=-1))


def space_of(longest: int, n: int, d: int) -> DensityWorkspace:
    """Return the workspace for series of so many steps, n states and d channels."""
    shapes = ((longest, n, n), (longest, n), (longest, n, n), (n, n), (n, n), (n, n), (d, n), (d, d), (d, d), (d, d))
    arrays = (np.zeros(shape) for shape in (*shapes, (n,), (d,), (d,)))
    return DensityWorkspace(np.zeros(d, np.int64), np.arange(n), *arrays)


@inlined
def look(regimes, precisions, indices, x, mean, space):
    """Return log N(x; C mean + b, R) over the observed channels; fill small with R^-1, u with R^-1 (x - ...)."""
    p, k = indices
    constant = observation(regimes.R[p, k], precisions.R[p, k], precisions.constants[p, k, 1], x, space)
    C = regimes.C[p, k]
    d, n = C.shape
    for c in range(d):
        gap = 0.0 if np.isnan(x[c]) else x[c] - regimes.offset[p, k, c]
        for a in range(n):
            gap -= 0.0 if np.isnan(x[c]) else C[c, a] * mean[a]
        space.e[c] = gap
    square = 0.0
    for c in range(d):
        total = 0.0
        for e in range(d):
            total += space.small[c, e] * space.e[e]
        space.u[c] = total
        square += total * space.e[c]
    return constant - 0.5 * square


@inlined
def traced(inverse, C, cov, space):
    """Return tr(inverse C cov C^T); fill wide with C cov."""
    d, n = C.shape
    for c in range(d):
        for a in range(n):
            total = 0.0
            for b in range(n):
                total += C[c, b] * cov[b, a]
            space.wide[c, a] = total
    trace = 0.0
    for c in range(d):
        for e in range(d):
            total = 0.0
            for a in range(n):
                total += space.wide[c, a] * C[e, a]
            trace += inverse[c, e] * total
    return trace


@inlined
def move(regimes, precisions, indices, rows, beliefs, space):
    """Return the expected log density of the step to a state, at rows[1] of an object that begins at rows[0].

    Fills square with the expected square of its noise, and v with its mean.
    """
    p, k = indices
    first, row = rows
    noise(regimes, indices, rows, beliefs, space)
    inverse = precisions.cov[p, k] if row == first else precisions.Q[p, k]
    total = 0.0
    for a in range(len(space.v)):
        for b in range(len(space.v)):
            total += inverse[a, b] * space.square[a, b]
    return (precisions.constants[p, k, 2] if row == first else precisions.constants[p, k, 0]) - 0.5 * total


@inlined
def noise(regimes, indices, rows, beliefs, space):
    """Fill square with E[w w^T] of w = s_t - A s_{t-1}, or s_0 - m_0, and v with E[w]; spare with Cov(w, s_{t-1})."""
    p, k = indices
    first, row = rows
    n = len(space.v)
    copy(beliefs.cov[row], space.square)
    for a in range(n):
        space.v[a] = beliefs.mean[row, a]
    if row == first:
        for a in range(n):
            space.v[a] -= regimes.mean[p, k, a]
    else:
        A, cross = regimes.A[p, k], beliefs.cross[row]
        multiply(A, beliefs.cov[row - 1], space.spare)
        for a in range(n):
            for b in range(n):
                space.v[a] -= A[a, b] * beliefs.mean[row - 1, b]
                space.spare[a, b] = cross[a, b] - space.spare[a, b]  # Cov(w, s_{t-1})
        # Cov(w) = P - cross A^T - Cov(w, s_{t-1}) A^T
        for a in range(n):
            for b in range(n):
                total = 0.0
                for c in range(n):
                    total += A[a, c] * cross[b, c] + space.spare[a, c] * A[b, c]
                space.square[a, b] -= total
    add_outer(space.square, 1.0, space.v, space.v)


@inlined
def observation(R, inverse, constant, x, space):
    """Fill small (d, d) with the inverse of R over the observed channels of x; return -log|2 pi R|/2 of them."""
    d = len(x)
    size = 0
    for c in range(d):
        if not np.isnan(x[c]):
            space.observed[size] = c
            size += 1
    if size == d:
        copy(inverse, space.small)
        return constant
    for c in range(d):
        for e in range(d):
            space.small[c, e] = 0.0
    return -size * HALF_LOG_2PI - invert(R, space.observed[:size], space.part, space.small)


@part
def invert(matrix, chosen, lower, out):
    """Fill the chosen rows and columns of out with the inverse of those of a matrix; return log|V|/2, NaN: singular."""
    size = len(chosen)
    half = 0.0
    for a in range(size):
        for b in range(a + 1):
            total = matrix[chosen[a], chosen[b]]
            for c in range(b):
                total -= lower[a, c] * lower[b, c]
            if a > b:
                lower[a, b] = total / lower[b, b]
            elif not total > 0.0:
                return np.nan
            else:
                lower[a, a] = np.sqrt(total)
        half += np.log(lower[a, a])
    for b in range(size):  # the inverse factor, column by column
        for a in range(b, size):
            total = 1.0 if a == b else 0.0
            for c in range(b, a):
                total -= lower[a, c] * out[chosen[c], chosen[b]]
            out[chosen[a], chosen[b]] = total / lower[a, a]
    for a in range(size):
        for b in range(a + 1):
            total = 0.0
            for c in range(a, size):
                total += out[chosen[c], chosen[a]] * out[chosen[c], chosen[b]]
            lower[a, b] = total
    for a in range(size):
        for b in range(a + 1):
            out[chosen[a], chosen[b]] = out[chosen[b], chosen[a]] = lower[a, b]
    return half


@part
def apply(matrix, vector, out):
    """Fill out with matrix times vector."""
    for a in range(len(out)):
        total = 0.0
        for b in range(len(vector)):
            total += matrix[a, b] * vector[b]
        out[a] = total
