r"""The steps of linear dynamical systems: predict and update, each a small compiled function on views.

.. math:: s_0 \sim N(m_0, P_0), \quad x_t = C s_t + N(0, R), \quad s_{t+1} = A s_t + N(0, Q)

Parameters are passed step by step as contiguous arrays A (n, n), C (d, n), Q (n, n), R (d, d), so that they may vary in
time; covariances are full, and Q and P_0 may be singular. Every step works in place: ``mean`` (n,) and ``cov`` (n, n)
come in as one belief about the state and leave as the next. Smoothing goes by the adjoints of ``kalman.adjoint``, which
needs no inverse of a predicted covariance; passes over whole series are in ``kalman.passes``::

    workspace = buffers(n, d)
    for t in range(T):
        if t:
            predict(A, Q, mean, cov, workspace)            # s_t given x_0..x_{t-1}
        total += update(C, R, x[t], mean, cov, workspace)  # s_t given x_0..x_t; log density of x_t; NaN: S not positive

NaN entries of an observation are missing and marginalised exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import kernel, part
from genkern.core.kalman.matrices import SINGULAR, congruence

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HALF_LOG_2PI = 0.5 * float(np.log(2.0 * np.pi))


class KalmanWorkspace(NamedTuple):
    """What the steps leave behind, and where they work, for n states and d channels.

    Attributes
    ----------
    gain : (n, d), K = P C^T S^-1 of the last update; zero in the columns of missing channels
    root : (d, d), rows of the inverse Cholesky factor of S, so that S^-1 = root^T root; columns are channels, those
        of missing ones zero, and there are as many rows as observed channels, the others zero
    score : (d,), S^-1 (x - C m) of the last update; zero for missing channels
    observed : (d,) int64, the channels that are not missing
    factor : (d, d), tall : (d, n), white, gap : (d,), left, square : (n, n), vector : (n,): workspace
    """

    gain: Floats
    root: Floats
    score: Floats
    observed: Ints
    factor: Floats
    tall: Floats
    white: Floats
    left: Floats
    square: Floats
    vector: Floats
    gap: Floats


def buffers(n: int, d: int) -> KalmanWorkspace:
    """Return the Room for n states and d channels; threads may not share one at the same time."""
    return KalmanWorkspace(
        np.zeros((n, d)),
        np.zeros((d, d)),
        np.zeros(d),
        np.zeros(d, np.int64),
        np.zeros((d, d)),
        np.zeros((d, n)),
        np.zeros(d),
        np.zeros((n, n)),
        np.zeros((n, n)),
        np.zeros(n),
        np.zeros(d),
    )


# --- the two steps


@kernel
def predict(A, Q, mean, cov, workspace):
    """Move a belief one step on: mean A m, covariance A P A^T + Q."""
    predict_mean(A, mean, workspace.vector)
    predict_cov(A, Q, cov, workspace.left)


@kernel
def update(C, R, x, mean, cov, workspace):
    """Condition a belief on an observation x (d,) with NaN where missing; return its log density, NaN if S is singular.

    Fills ``gain``, ``root`` and ``score`` of the workspace. An observation that misses everything has log density zero.
    """
    constant = update_cov(C, R, x, cov, workspace)
    if np.isnan(constant):
        return constant
    return constant - 0.5 * update_mean(C, x, mean, workspace.gain, workspace.root, workspace.score, workspace.white)


@kernel
def relative(x, offset, out):
    """Fill out (d,) with an observation less an offset, and return it."""
    for c in range(len(x)):
        out[c] = x[c] - offset[c]
    return out


# --- their parts: covariances do not depend on the data, so passes may share them


@part
def predict_mean(A, mean, work):
    """Replace mean (n,) by A mean."""
    n = len(mean)
    for i in range(n):
        total = 0.0
        for k in range(n):
            total += A[i, k] * mean[k]
        work[i] = total
    for i in range(n):
        mean[i] = work[i]


@part
def predict_cov(A, Q, cov, work):
    """Replace cov (n, n) by A cov A^T + Q."""
    n = len(cov)
    congruence(A, cov, work)
    for i in range(n):
        for j in range(n):
            cov[i, j] += Q[i, j]


@part
def update_cov(C, R, x, cov, workspace):
    r"""Condition a covariance on the channels of x that are not NaN; return -log|2 pi S|/2, NaN if S is singular.

    .. math:: S = C P C^T + R = L L^T, \quad K = P C^T S^{-1}, \quad P \leftarrow (I - K C) P (I - K C)^T + K R K^T

    (Joseph's form: symmetric, and positive whatever the rounding.) Fills ``workspace.gain`` and ``workspace.root``.
    """
    d, n = C.shape
    observed, factor, tall, root, gain = (
        workspace.observed,
        workspace.factor,
        workspace.tall,
        workspace.root,
        workspace.gain,
    )
    size = 0
    for j in range(d):
        for i in range(d):
            root[i, j] = 0.0
        for i in range(n):
            gain[i, j] = 0.0
        if not np.isnan(x[j]):
            observed[size] = j
            size += 1
    if size == 0:
        return 0.0
    for a in range(size):
        for i in range(n):
            total = 0.0
            for k in range(n):
                total += C[observed[a], k] * cov[k, i]
            tall[a, i] = total
        for b in range(a + 1):
            total = R[observed[a], observed[b]]
            for k in range(n):
                total += tall[a, k] * C[observed[b], k]
            factor[a, b] = total
    constant = _invert_factor(factor, root, observed, size)
    if np.isnan(constant):
        return constant
    for a in range(size - 1, -1, -1):
        for i in range(n):
            total = 0.0
            for b in range(a + 1):
                total += root[a, observed[b]] * tall[b, i]
            tall[a, i] = total
    for i in range(n):
        for b in range(size):
            total = 0.0
            for a in range(b, size):
                total += tall[a, i] * root[a, observed[b]]
            gain[i, observed[b]] = total
    _joseph(C, R, cov, workspace)
    return constant


@part
def update_mean(C, x, mean, gain, root, score, white):
    """Condition a mean on an observation, given gain and root of its step; return the squared innovation v^T S^-1 v.

    Fills score (d,) with S^-1 v, zero for missing channels; white (d,) is workspace.
    """
    d, n = C.shape
    square = 0.0
    for j in range(d):
        gap = x[j]
        for k in range(n):
            gap -= C[j, k] * mean[k]
        score[j] = 0.0 if np.isnan(gap) else gap
    for a in range(d):
        total = 0.0
        for j in range(d):
            total += root[a, j] * score[j]
        white[a] = total
        square += total * total
    for i in range(n):
        total = mean[i]
        for j in range(d):
            total += gain[i, j] * score[j]
        mean[i] = total
    for j in range(d):
        total = 0.0
        for a in range(d):
            total += root[a, j] * white[a]
        score[j] = total
    return square


# --- their parts in turn


@part
def _joseph(C, R, cov, workspace):
    """Replace cov by (I - K C) cov (I - K C)^T + K R K^T."""
    d, n = C.shape
    gain, rest, work, tall = workspace.gain, workspace.square, workspace.left, workspace.tall
    for i in range(n):
        for j in range(n):
            total = 0.0
            for c in range(d):
                total += gain[i, c] * C[c, j]
            rest[i, j] = (1.0 if i == j else 0.0) - total
    congruence(rest, cov, work)
    for i in range(n):
        for c in range(d):
            total = 0.0
            for e in range(d):
                total += gain[i, e] * R[e, c]
            tall[c, i] = total
    for i in range(n):
        for j in range(i + 1):
            total = cov[i, j]
            for c in range(d):
                total += tall[c, i] * gain[j, c]
            cov[i, j] = cov[j, i] = total


@part
def _invert_factor(factor, root, observed, size):
    """Factorise the lower triangle of S; spread L^-1 over root[:size, observed]; return -log|2 pi S|/2 or NaN."""
    constant = 0.0
    for a in range(size):
        whole = factor[a, a]
        for b in range(a + 1):
            total = factor[a, b]
            for c in range(b):
                total -= factor[a, c] * factor[b, c]
            if a > b:
                factor[a, b] = total / factor[b, b]
            elif not total > SINGULAR * size * whole:
                return np.nan
            else:
                factor[a, a] = np.sqrt(total)
        constant -= HALF_LOG_2PI + np.log(factor[a, a])
        inverse = 1.0 / factor[a, a]
        for b in range(a):
            total = 0.0
            for c in range(b, a):
                total -= factor[a, c] * root[c, observed[b]]
            root[a, observed[b]] = total * inverse
        root[a, observed[a]] = inverse
    return constant
