"""Evidence of factorial models in series of vectors: quadratic forms of the states, and moments under their posterior.

The means of each chain are held relative to those of its first state, and observations relative to the sum of these, so
that a common offset of the data costs no digits.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from genkern.core.factorial.passes import JointChains, QuadraticForms
from genkern.core.factorial.steps import outer_sums, project
from genkern.data.objects import Packed
from genkern.validation import Floats

Ints = NDArray[np.int64]
LOG_2PI = float(np.log(2.0 * np.pi))


class Sight(NamedTuple):
    """Packed series relative to a model; M patterns of observed entries (times objects, if these have own models).

    Attributes
    ----------
    evidence : Evidence
        Log densities as quadratic forms of the states.
    gaps : (N, d), observations relative to the offset, zero where missing.
    means : (P, K, d), relative means of all chains' states; P is 1 or the number of objects.
    cov : (P, d) variances or (P, d, d) covariances.
    rows : (M,), the parameters' row in P of each pattern.
    seen : (M, d) bool, the observed entries.
    precision : (M, d) or (M, d, d), inverse of the observed part of ``cov``, zero elsewhere.
    segment : (N,), positions of one object and one pattern; segments are ordered by object.
    segments : (n_segments, 2), the object and the pattern of each.
    """

    evidence: QuadraticForms
    gaps: Floats
    means: Floats
    cov: Floats
    rows: Ints
    seen: NDArray[np.bool_]
    precision: Floats
    segment: Ints
    segments: Ints


def chains_of(model: Any) -> JointChains:
    """Return the model's chains (P rows) for the passes of ``core.factorial``."""
    start = np.concatenate(model.starts, axis=-1)
    steps = np.concatenate([matrix.reshape((*model.shape, -1)) for matrix in model.transitions], axis=-1)
    sizes = np.array(model.n_states, np.int64)
    return JointChains(sizes, start.reshape(-1, start.shape[-1]), steps.reshape(-1, steps.shape[-1]))


def observe(model: Any, packed: Packed) -> Sight:
    """Return the evidence of packed series under one model, or under a stack of one model per object."""
    d = packed.values.shape[1]
    means = np.concatenate([mean - mean[..., :1, :] for mean in model.means], axis=-2)
    means = means.reshape(-1, *means.shape[-2:])
    offset = sum(mean[..., 0, :] for mean in model.means).reshape(-1, d)
    cov = model.cov.reshape(-1, d, d) if model.covariance_type == "full" else model.variances.reshape(-1, d)
    present = ~np.isnan(packed.values)
    owners = packed.owners
    rows = owners if len(means) > 1 else np.zeros_like(owners)
    pattern, rows, seen = _patterns(present, rows)
    segment, segments = _segments(owners, pattern, len(rows))
    shift = offset[rows[pattern]] if len(offset) > 1 else offset
    gaps = np.where(present, packed.values - shift, 0.0)
    precision, base = _precisions(cov[rows], seen)
    spread = means[rows] if len(means) > 1 else means
    if precision.ndim == 2:
        weights = precision[:, :, None] * np.swapaxes(spread, -1, -2)
        squares = (gaps**2 * precision[pattern]).sum(axis=1)
    else:
        weights = precision @ np.swapaxes(spread, -1, -2)
        squares = (gaps * project(gaps, pattern, precision)).sum(axis=1)
    quadratic = spread @ weights
    quadratic = 0.5 * (quadratic + np.swapaxes(quadratic, -1, -2))
    evidence = QuadraticForms(base[pattern] - 0.5 * squares, project(gaps, pattern, weights), quadratic, pattern)
    return Sight(evidence, gaps, means, cov, rows, seen, precision, segment, segments)


def moments(sight: Sight, marginal: Floats, pairs: Floats) -> dict[str, Floats]:
    r"""Return the blocks of the Gaussian's statistics, per object, from posteriors of states.

    With r the residual :math:`x - \sum_c \mu_c`, whose missing entries are replaced by their conditional expectations:
    ``means`` :math:`\sum_t E[u r^T]`, ``pairs`` :math:`\sum_t E[u u^T]`, ``cov`` :math:`\sum_t E[r r^T]` (the diagonal,
    unless covariances are full), ``weight`` the number of observations. ``marginal`` (N, K) are posteriors of states,
    ``pairs`` (n_segments, K, K) of pairs of states.
    """
    which = sight.segments[:, 1]
    means = sight.means[sight.rows[which]] if len(sight.means) > 1 else sight.means
    cov = sight.cov[sight.rows[which]]
    seen, count = sight.seen[which], np.bincount(sight.segment).astype(np.float64)
    cross, explained = segment_sums(marginal, sight.gaps, sight), pairs @ means
    first = (cross - explained) * seen[:, None, :]
    if cov.ndim == 2:
        squares = segment_sums(np.ones((len(sight.gaps), 1)), sight.gaps**2, sight)[:, 0]
        second = squares - (means * (cross + cross - explained)).sum(axis=1)
        second = np.where(seen, second, count[:, None] * cov)
    else:
        product = np.swapaxes(means, -1, -2) @ (cross - 0.5 * explained)
        both = seen[:, :, None] & seen[:, None, :]
        second = np.where(
            both, segment_sums(sight.gaps, sight.gaps, sight) - product - np.swapaxes(product, -1, -2), 0.0
        )
        if not seen.all():
            regression = np.where(seen[:, :, None], np.eye(cov.shape[1]), cov @ sight.precision[which])
            rest = np.where(seen[:, :, None] | seen[:, None, :], 0.0, cov - regression @ cov)
            first = first @ np.swapaxes(regression, -1, -2)
            second = regression @ second @ np.swapaxes(regression, -1, -2) + count[:, None, None] * rest
    blocks = {"means": first, "pairs": pairs, "cov": second, "weight": count}
    starts = np.flatnonzero(np.diff(sight.segments[:, 0], prepend=-1))
    return {name: np.add.reduceat(block, starts, axis=0) for name, block in blocks.items()}


def segment_sums(left: Floats, right: Floats, sight: Sight) -> Floats:
    """Return sums (n_segments, a, b) of outer products of rows (N, a) and (N, b)."""
    return outer_sums(left, right, sight.segment, len(sight.segments))


def _patterns(present: NDArray[np.bool_], rows: Ints) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Return the pattern (N,) of each position, and the parameters' row (M,) and observed entries (M, d) of each."""
    if present.all():
        count = int(rows.max()) + 1
        return rows, np.arange(count), np.ones((count, present.shape[1]), bool)
    keys = np.column_stack([rows, np.packbits(present, axis=1).astype(np.int64)])
    _, first, pattern = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return pattern.reshape(-1).astype(np.int64), rows[first], present[first]


def _segments(owners: Ints, pattern: Ints, count: int) -> tuple[Ints, Ints]:
    """Return the segment (N,) of each position, and the object and pattern (n_segments, 2) of each."""
    keys, segment = np.unique(owners * count + pattern, return_inverse=True)
    return segment.reshape(-1).astype(np.int64), np.column_stack([keys // count, keys % count])


def _precisions(cov: Floats, seen: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return inverses of the observed parts of covariances, zero elsewhere, and log normalisers (M,)."""
    size = seen.sum(axis=1)
    if cov.ndim == 2:
        if (cov <= 0).any():
            _refuse_singular()
        return seen / cov, -0.5 * (np.where(seen, np.log(cov), 0.0).sum(axis=1) + size * LOG_2PI)
    both = seen[:, :, None] & seen[:, None, :]
    filled = np.where(both, cov, np.eye(cov.shape[1]))  # missing channels become identity rows, of determinant one
    try:
        lower = np.linalg.cholesky(filled)
    except np.linalg.LinAlgError:
        _refuse_singular()
    inverse = np.linalg.inv(filled)
    logs = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
    return np.where(both, 0.5 * (inverse + np.swapaxes(inverse, -1, -2)), 0.0), -logs - 0.5 * size * LOG_2PI


def _refuse_singular() -> NoReturn:
    raise ValueError(
        "FactorialHMM: 'cov' is singular, so the model has no density. Use a floor (min_covar of "
        "FactorialHMMEstimator) or leave constant channels out."
    )
