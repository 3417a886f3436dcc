"""Posteriors of the components of mixtures, by log-sum-exp, for many points at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.hmm.rows import aligned_columns
from genkern.core.hmm.types import read_only
from genkern.core.jit import kernel, part
from genkern.core.simd.columns import CHUNK, PITCH, from_columns, to_columns
from genkern.core.simd.exponential import exp
from genkern.core.simd.vectors import W, broadcast, element, load, maximum, store, zero

Floats = NDArray[np.float64]


class Columns(NamedTuple):
    """Columns of a chunk of points: joint logs (n k, PITCH), weights and log p (n, PITCH)."""

    joint: Floats
    weights: Floats
    log_p: Floats


def share_out(
    logs: Floats, log_weights: Floats, offsets: NDArray[np.int64], weights: Floats | None = None
) -> tuple[Floats, Floats]:
    r"""Turn log densities (N, n, k) of k components in n mixtures into posteriors, in place.

    .. math:: \log p = \log \sum_k w_k g_k, \qquad r_k = v\, w_k g_k / p

    with v the weights (N, n) of the points, or one. ``log_weights`` (P, n, k) are shared by all points (P = 1) or
    belong to their objects. Where p is zero, so are the posteriors.

    Returns
    -------
    log_p : (N, n)
    sums : (n_objects, n, k), of r over the points of each object.
    """
    points, n, k = logs.shape
    ends = np.asarray(offsets, np.int64)
    groups = ends[[0, -1]] if len(log_weights) == 1 else ends
    log_p, sums = np.empty((points, n)), np.zeros((len(offsets) - 1, n * k))
    given = np.ones((points, n)) if weights is None else np.ascontiguousarray(weights, np.float64)
    rows = logs.reshape(points, n * k)
    work = Columns(*aligned_columns(PITCH, n * k, n, n))
    with np.errstate(all="ignore"):
        _share_out(rows, np.ascontiguousarray(log_weights), read_only(groups), read_only(given), log_p, work)
        _add_rows(rows, read_only(ends), sums)
    return log_p, sums.reshape(-1, n, k)


def joint_terms(logs: Floats, log_weights: Floats, offsets: NDArray[np.int64]) -> tuple[Floats, Floats]:
    r"""Turn log densities (N, n, k) into the terms :math:`e_k = w_k g_k / \max_j w_j g_j` of mixtures, in place.

    The first half of ``share_out``, for weights that are known only later; ``weigh_terms`` is the second half.

    Returns
    -------
    log_p, totals : (N, n), totals being the sums of terms
    """
    points, n, k = logs.shape
    ends = np.asarray(offsets, np.int64)
    groups = ends[[0, -1]] if len(log_weights) == 1 else ends
    log_p, totals = np.empty((points, n)), np.empty((points, n))
    work = Columns(*aligned_columns(PITCH, n * k, n, n))
    with np.errstate(all="ignore"):
        rows = logs.reshape(points, n * k)
        _joint_terms(rows, np.ascontiguousarray(log_weights), read_only(groups), totals, log_p, work)
    return log_p, totals


def weigh_terms(terms: Floats, totals: Floats, offsets: NDArray[np.int64], weights: Floats) -> tuple[Floats, Floats]:
    """Return posteriors (N, n, k) and their sums (n_objects, n, k), as ``share_out``, from ``joint_terms``."""
    points, n, k = terms.shape
    posteriors, sums = np.empty((points, n * k)), np.zeros((len(offsets) - 1, n * k))
    factors = weights / np.maximum(totals, 1e-300)
    _weigh_terms(read_only(terms), read_only(factors), posteriors)
    _add_rows(posteriors, read_only(np.asarray(offsets, np.int64)), sums)
    return posteriors.reshape(terms.shape), sums.reshape(-1, n, k)


@kernel
def _share_out(rows, log_weights, offsets, weights, log_p, work):
    """Fill log_p (N, n) and replace rows (N, n k) of logs by posteriors, by chunks of each object."""
    _, n, k = log_weights.shape
    for i in range(len(offsets) - 1):
        for first in range(offsets[i], offsets[i + 1], CHUNK):
            count = min(CHUNK, offsets[i + 1] - first)
            to_columns(rows, first, count, work.joint)
            to_columns(weights, first, count, work.weights)
            for a in range(n):
                at = ((i if len(log_weights) > 1 else 0) * n + a) * k
                for t in range(0, count, W):
                    total = _terms(log_weights, at, work, a * k, a, t)
                    factor = load(work.weights, a * PITCH + t) / maximum(total, broadcast(1e-300))
                    for c in range(k):
                        cell = (a * k + c) * PITCH + t
                        store(work.joint, cell, load(work.joint, cell) * factor)
                    _add_log(total, work, a, t)
            from_columns(work.joint, first, count, rows)
            from_columns(work.log_p, first, count, log_p)


@kernel
def _joint_terms(rows, log_weights, offsets, totals, log_p, work):
    """Fill log_p and totals (N, n) and replace rows (N, n k) of logs by terms, by chunks of each object."""
    _, n, k = log_weights.shape
    for i in range(len(offsets) - 1):
        for first in range(offsets[i], offsets[i + 1], CHUNK):
            count = min(CHUNK, offsets[i + 1] - first)
            to_columns(rows, first, count, work.joint)
            for a in range(n):
                at = ((i if len(log_weights) > 1 else 0) * n + a) * k
                for t in range(0, count, W):
                    _add_log(_terms(log_weights, at, work, a * k, a, t), work, a, t)
            from_columns(work.joint, first, count, rows)
            from_columns(work.weights, first, count, totals)
            from_columns(work.log_p, first, count, log_p)


@part
def _terms(log_weights, at, work, column, a, t):
    """Turn eight points' logs under the components of one mixture into terms; return their sum, and keep the top."""
    joint, k = work.joint, log_weights.shape[2]
    top = broadcast(-np.inf)
    for c in range(k):
        cell = (column + c) * PITCH + t
        x = load(joint, cell) + broadcast(element(log_weights, at + c))
        store(joint, cell, x)
        top = maximum(top, x)
    store(work.log_p, a * PITCH + t, top)
    # Points of density zero: -inf - -inf is NaN; the lowest float64 instead of the top gives zeros.
    top, total = maximum(top, broadcast(-1.7e308)), zero()
    for c in range(k):
        cell = (column + c) * PITCH + t
        x = exp(load(joint, cell) - top)
        store(joint, cell, x)
        total = total + x
    return total


@part
def _add_log(total, work, a, t):
    """Add the logs of eight sums of terms to the tops in work.log_p, and keep the sums in work.weights."""
    store(work.weights, a * PITCH + t, total)
    for lane in range(t, t + W):
        work.log_p[a, lane] += np.log(work.weights[a, lane])


@kernel
def _weigh_terms(terms, factors, out):
    """Fill out (N, n k) with terms (N, n, k) times factors (N, n)."""
    points, n, k = terms.shape
    for t in range(points):
        for a in range(n):
            for c in range(k):
                out[t, a * k + c] = terms[t, a, c] * factors[t, a]


@kernel
def _add_rows(rows, offsets, sums):
    """Add the rows (N, width) of each object to its sums (n_objects, width)."""
    for i in range(len(offsets) - 1):
        for t in range(offsets[i], offsets[i + 1]):
            for c in range(rows.shape[1]):
                sums[i, c] += rows[t, c]
