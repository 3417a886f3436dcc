r"""Densities at zero of the difference of two linear systems' observations, with the digits that there are.

The difference :math:`x_t - x'_t` is seen from a system of both states side by side. Where both systems are unstable and
alike, what they have in common grows without bound and the difference does not: a filter of the covariance of both
states subtracts large numbers. So there are three ways, in this order.

- Systems that share A and C, as a model and itself: the difference :math:`s - s'` is such a system, of n states, with
  the sums of all covariances. Nothing cancels.
- Others: the filter of covariances, eight pairs at a time. It reports the cancellation.
- Where that costs digits: the filter on square roots, of the states :math:`(s - s', s')` or :math:`(s, s')`, whichever
  cancels less. In the first, :math:`A - A'` and :math:`C - C'` are exact where the models are near in the same
  coordinates. Where it would leave an error above ``LOST``, the pair is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.affinities.rules import PairError
from genkern.core.kalman.passes import Systems
from genkern.core.kalman.roots import LOST, Roots, densities, factored, lower, roots_of
from genkern.validation import Floats

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

TRUSTED = 1e-11  # error of a log value up to which the filter of covariances is accepted
SINGULAR = (
    "the sum of the covariances of their observations is singular, so the product is infinite or undefined. Give "
    "obs_cov a floor, or use the mean map."
)


class Pairs(NamedTuple):
    """Pairs (i, j) of systems; covariances are multiplied by ``scale``, and ``ridge`` is added to observations'."""

    left: Systems
    i: Ints
    right: Systems
    j: Ints
    scale: float
    ridge: float

    def take(self, rows: Ints) -> Pairs:
        """Return some of the pairs."""
        return self._replace(i=self.i[rows], j=self.j[rows])


def alike(left: Systems, right: Systems) -> tuple[Ints, Ints]:
    """Return numbers of both sides' systems, the same where A and C are."""
    if left.C.shape[1:] != right.C.shape[1:]:
        return np.arange(len(left.C)), -1 - np.arange(len(right.C))
    rows = [np.concatenate([part.reshape(len(part), -1) for part in (s.A, s.C)], axis=1) for s in (left, right)]
    numbers = np.unique(np.concatenate(rows) + 0.0, axis=0, return_inverse=True)[1].ravel()  # 0.0: no negative zeros
    return numbers[: len(left.C)], numbers[len(left.C) :]


def stacked(pairs: Pairs) -> Systems:
    """Return the systems of the differences of pairs: concatenated states, observations C s + b - C' s' - b'."""
    left, i, right, j, scale, _ = pairs
    return Systems(
        _corners(left.A[i], right.A[j]),
        np.concatenate([left.C[i], -right.C[j]], axis=2),
        _corners(scale * left.Q[i], scale * right.Q[j]),
        _noise(pairs),
        np.concatenate([left.mean[i], right.mean[j]], axis=1),
        _corners(scale * left.cov[i], scale * right.cov[j]),
        left.offset[i] - right.offset[j],
    )


def merged(pairs: Pairs) -> Systems:
    """Return the systems of the differences of pairs that share A and C: the difference of both states."""
    left, i, right, j, scale, _ = pairs
    spreads = (scale * (first[i] + second[j]) for first, second in ((left.Q, right.Q), (left.cov, right.cov)))
    Q, cov = spreads
    return Systems(
        left.A[i], left.C[i], Q, _noise(pairs), left.mean[i] - right.mean[j], cov, left.offset[i] - right.offset[j]
    )


def alone(systems: Systems) -> Pairs:
    """Return systems as pairs with one that has no states, whose observations are zero."""
    d, count = systems.C.shape[1], len(systems.C)
    shapes = ((1, 0, 0), (1, d, 0), (1, 0, 0), (1, d, d), (1, 0), (1, 0, 0), (1, d))
    nothing = Systems(*(np.zeros(shape) for shape in shapes))
    return Pairs(systems, np.arange(count), nothing, np.zeros(count, np.int64), 1.0, 0.0)


def careful_densities(pairs: Pairs, paths: Ints, merge: bool) -> Floats:
    """Return log densities of zero (N,) along paths (N, L) of pairs, on square roots; NaN if there is none.

    Raises PairError for the first one whose digits are lost; its index is that of the path.
    """
    values = (pairs.right.offset[pairs.j] - pairs.left.offset[pairs.i])[paths]  # zero, less the offsets
    logs, loss = np.full(len(paths), np.nan), np.full(len(paths), np.inf)
    for roots in _candidates(pairs, merge):
        rows = np.flatnonzero(~(loss <= TRUSTED))
        found, error = densities(roots, paths[rows], values[rows])
        better = error < loss[rows]
        logs[rows[better]], loss[rows[better]] = found[better], error[better]
    wrong = np.flatnonzero(~(loss <= LOST))
    if len(wrong):
        raise PairError(
            (int(wrong[0]),),
            f"what both systems have in common (or what only rounding moves in one of them) grows beyond the noise so "
            f"much that the value would be off by some {loss[wrong[0]]:.1g}, and {LOST:g} is allowed: they are "
            f"unstable. Compare fewer observations than length={paths.shape[1]}, or fit stable systems.",
        )
    return logs


def _candidates(pairs: Pairs, merge: bool) -> Iterator[Roots]:
    """Yield the same differences in several coordinates."""
    if merge:
        yield factored(merged(pairs))
        return
    left, i, right, j, scale, _ = pairs
    size = np.sqrt(scale)
    (Q, Q_doubt), (cov, cov_doubt) = (
        tuple(
            (power * one[i], power * other[j])
            for power, one, other in zip((size, scale), roots_of(first), roots_of(second), strict=True)
        )
        for first, second in ((left.Q, right.Q), (left.cov, right.cov))
    )
    noise = roots_of(_noise(pairs))[0]
    doubts = [np.concatenate(both, axis=1) for both in (Q_doubt, cov_doubt)]
    n = left.A.shape[-1]
    if n == right.A.shape[-1]:
        A, factors = _corners(left.A[i], right.A[j]), [_corners(*both) for both in (Q, cov)]
        A[:, :n, n:] = left.A[i] - right.A[j]
        for factor, (_, second) in zip(factors, (Q, cov), strict=True):
            factor[:, :n, n:] = -second
        C = np.concatenate([left.C[i], left.C[i] - right.C[j]], axis=2)
        mean = np.concatenate([left.mean[i] - right.mean[j], right.mean[j]], axis=1)
        common = [np.concatenate([one + other, other], axis=1) for one, other in (Q_doubt, cov_doubt)]
        yield Roots(A, C, lower(factors[0]), noise, mean, lower(factors[1]), *common)
    whole = stacked(pairs)
    yield Roots(whole.A, whole.C, _corners(*Q), noise, whole.mean, _corners(*cov), *doubts)


def _corners(first: Floats, second: Floats) -> Floats:
    """Return block diagonal matrices."""
    n, m = first.shape[-1], second.shape[-1]
    both = np.zeros((len(first), n + m, n + m))
    both[:, :n, :n], both[:, n:, n:] = first, second
    return both


def _noise(pairs: Pairs) -> Floats:
    """Return the covariances of the differences' observation noise."""
    noise = pairs.scale * (pairs.left.R[pairs.i] + pairs.right.R[pairs.j])
    d = noise.shape[-1]
    noise[:, np.arange(d), np.arange(d)] += pairs.ridge
    return noise
