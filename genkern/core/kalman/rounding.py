r"""What rounding has done to a filter: errors are carried along with the beliefs that they spoil.

A step of the filter takes an error of a predicted covariance P to :math:`\Phi E \Phi^T` and one of a predicted mean m
to :math:`\Phi e`, with :math:`\Phi = A (I - K C)`, and adds errors of its own, in units of the last bit some P and
:math:`|m|`. So with :math:`\mathrm{diag}` the diagonal,

.. math:: G \leftarrow \Phi (G + \mathrm{diag}\, P) \Phi^T + \ldots, \qquad
   D \leftarrow \Phi (D + \mathrm{diag}\, m m^T) \Phi^T

are the error of P and the mean square of that of m. In an observation they count as ``growth``, the largest
:math:`(C (G + \mathrm{diag}\, P) C^T)_{aa}` in units of the pivots of S, and as ``drift``, the same of D: what cancels
there, and what an unstable state that nothing but rounding moves has grown to. Densities of the filter of covariances
are known to some EPS (growth + the square root of drift).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import part
from genkern.core.kalman.matrices import copy, triangularise
from genkern.core.kalman.steps import Floats, update

EPS = float(np.finfo(float).eps)
AMPLIFIED = 100.0  # largest entry of a power of A up to which rounding errors do not grow


class Counts(NamedTuple):
    """Errors of a belief as factors (n, n), in the first columns of growth and drift (n, 2 n); and the counts so far.

    These are most (2,). Workspace: parts (2, d), shares (d,), spread and extra (n,), rest (n, n).
    """

    growth: Floats
    drift: Floats
    most: Floats
    parts: Floats
    shares: Floats
    spread: Floats
    extra: Floats
    rest: Floats


def counts_of(n: int, d: int) -> Counts:
    """Return Counts of a belief without errors."""
    shapes = ((n, 2 * n), (n, 2 * n), (2,), (2, d), (d,), (n,), (n,), (n, n))
    return Counts(*(np.zeros(shape) for shape in shapes))


def amplifies(A: Floats, length: int) -> NDArray[np.bool_]:
    """Flag matrices (P, n, n) some power of which, up to ``length``, makes much of a rounding error."""
    high, power, steps = np.abs(A).max(axis=(1, 2), initial=0.0), A, 1
    with np.errstate(all="ignore"):
        while 2 * steps <= length:
            power, steps = power @ power, 2 * steps
            high = np.maximum(high, np.abs(power).max(axis=(1, 2), initial=0.0))
    return ~(high <= AMPLIFIED)


@part
def begin(counts):
    """Forget all errors."""
    counts.growth[:] = 0.0
    counts.drift[:] = 0.0
    counts.most[:] = 0.0


@part
def recall(counts, errors, most):
    """Take up counts where they were left: errors (2, n, n) of a belief, and most (2,)."""
    copy(errors[0], counts.growth)
    copy(errors[1], counts.drift)
    for kind in range(2):
        counts.most[kind] = most[kind]


@part
def leave(counts, errors, most):
    """Write errors (2, n, n) of a belief, and most (2,)."""
    n = len(counts.growth)
    copy(counts.growth[:, :n], errors[0])
    copy(counts.drift[:, :n], errors[1])
    for kind in range(2):
        most[kind] = counts.most[kind]


@part
def carry(A, counts):
    """Move errors one step on."""
    _turn(A, counts.growth)
    _turn(A, counts.drift)


@part
def slip(squares, counts):
    """Add an error to growth, its squares (n,)."""
    n = len(squares)
    for k in range(n):
        for j in range(n):
            counts.growth[k, n + j] = np.sqrt(squares[k]) if j == k else 0.0
    triangularise(counts.growth, n, 2 * n)


@part
def expose(C, mean, counts):
    """Add the errors of a belief with mean (n,) and variances ``counts.spread``; fill parts, what C shows of them."""
    d, n = C.shape
    slip(counts.spread, counts)
    for k in range(n):
        for j in range(n):
            counts.drift[k, n + j] = mean[k] if j == k else 0.0
    triangularise(counts.drift, n, 2 * n)
    for c in range(d):
        for kind in range(2):
            errors = counts.growth if kind == 0 else counts.drift
            counts.parts[kind, c] = 0.0
            for j in range(n):
                total = 0.0
                for k in range(n):
                    total += C[c, k] * errors[k, j]
                counts.parts[kind, c] += total * total


@part
def condition(C, gain, counts):
    """Raise the counts by parts, of which ``shares`` (d,) are one over the pivots of S; take errors through an update.

    Gain (n, d) and shares are zero for missing channels.
    """
    d, n = C.shape
    for c in range(d):
        if counts.shares[c] > 0.0:
            for kind in range(2):
                part = counts.shares[c] * counts.parts[kind, c]
                counts.most[kind] = np.inf if np.isnan(part) else max(counts.most[kind], part)
    for i in range(n):
        for j in range(n):
            total = 1.0 if i == j else 0.0
            for c in range(d):
                total -= gain[i, c] * C[c, j]
            counts.rest[i, j] = total
    _turn(counts.rest, counts.growth)
    _turn(counts.rest, counts.drift)


@part
def counted_update(C, R, x, mean, cov, workspace, counts):
    """Do what ``update`` does, and count."""
    d, n = C.shape
    for k in range(n):
        counts.spread[k] = cov[k, k]
    expose(C, mean, counts)
    density = update(C, R, x, mean, cov, workspace)
    if np.isnan(density):
        return density
    size = 0
    for c in range(d):
        counts.shares[c] = 0.0
        if not np.isnan(x[c]):
            counts.shares[c] = workspace.root[size, c] * workspace.root[size, c]
            size += 1
    condition(C, workspace.gain, counts)
    large = False
    for i in range(n):
        counts.extra[i] = 0.0
        for c in range(d):
            for k in range(n):  # 1 - K C is known to some EPS K C only, however small it is
                counts.extra[i] += EPS * (workspace.gain[i, c] * C[c, k]) ** 2 * counts.spread[k]
        large |= not counts.extra[i] <= cov[i, i]
    if large:  # smaller ones are added with the next belief
        slip(counts.extra, counts)
    return density


@part
def _turn(left, errors):
    """Replace the first n columns of errors by left times them; the others are workspace."""
    n = len(left)
    for i in range(n):
        for j in range(n):
            total = 0.0
            for k in range(n):
                total += left[i, k] * errors[k, j]
            errors[i, n + j] = total
    for i in range(n):
        for j in range(n):
            errors[i, j] = errors[i, n + j]
