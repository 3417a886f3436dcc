"""Affinities between Gaussians, of any mixture of full, diagonal and isotropic covariances."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.affinities.how import Expected, Power
from genkern.affinities.registry import affinity
from genkern.affinities.rules import PairError
from genkern.core.gaussian.pairs import lanes_of, pair_terms
from genkern.models.families.gaussian import Gaussian
from genkern.validation import Floats

LOG_2PI = math.log(2.0 * math.pi)
CHUNK = 1 << 16  # numbers in a temporary array: several of them should fit into the processor's cache
EPS = float(np.finfo(float).eps)


class GaussianStack(NamedTuple):
    """Means G + (a, d), and variances G + (a, 1) or G + (a, d), or covariances G + (a, d, d) if full."""

    mean: Floats
    cov: Floats
    full: bool


class Spread(NamedTuple):
    """The matrix V = ridge I + scale (Sigma + Sigma') of a pair, and the weight of its distance.

    Pairs that are True in ``skip`` are left out.
    """

    ridge: float
    scale: float
    weight: float
    skip: NDArray[np.bool_] | None = None  # G + (a, b)


@affinity.register(Gaussian, Gaussian, Power, reference="Jebara, Kondor & Howard (2004), eq. 5")
def gaussian_product(P: Gaussian, Q: Gaussian, how: Power) -> Floats:
    r"""Return the log probability product of Gaussians, G + (a, b).

    .. math::
        \tfrac{(1-2\rho)d}{2} \log 2\pi - \tfrac d2 \log\rho + \tfrac{1-\rho}{2} (\log|\Sigma| + \log|\Sigma'|)
        - \tfrac12 \log|\Sigma+\Sigma'| - \tfrac\rho2 \delta^T (\Sigma+\Sigma')^{-1} \delta, \quad \delta = \mu - \mu'

    A singular covariance makes it -inf for rho < 1 and infinite for rho > 1; for rho = 1 the sum must be regular.
    """
    left, right = promoted(P, Q)
    rho, (constant, spread) = how.rho, terms_of(how, left.mean.shape[-1])
    if rho == 1.0:
        return constant + _log_normal(left, right, spread)
    own = own_logs(left, how)[..., :, None] + own_logs(right, how)[..., None, :]
    singular = np.isinf(own)
    if rho > 1.0 and singular.any():
        raise PairError(
            tuple(int(i) for i in np.argwhere(singular)[0]),
            f"a covariance is singular, so the product with rho = {rho:g} > 1 is infinite. Fit with a floor "
            "(min_covar), or take rho <= 1 or the mean map.",
        )
    return constant + own + _log_normal(left, right, spread._replace(skip=singular if singular.any() else None))


@affinity.register(
    Gaussian, Gaussian, Expected, reference="Mehta & Gray (2010), proposition 2, as the law of X - Y (no inverses)"
)
def gaussian_mean_map(P: Gaussian, Q: Gaussian, how: Expected) -> Floats:
    r"""Return the log mean map kernel of Gaussians, G + (a, b); singular covariances are legal.

    .. math::
        -\tfrac12 \log|I + \lambda(\Sigma+\Sigma')|
        - \tfrac\lambda2 \delta^T (I + \lambda(\Sigma+\Sigma'))^{-1} \delta, \quad \delta = \mu - \mu'
    """
    left, right = promoted(P, Q)
    return _log_normal(left, right, terms_of(how, left.mean.shape[-1])[1])


def terms_of(how: Power | Expected, d: int) -> tuple[float, Spread]:
    """Return what all pairs of d dimensions have in common: a constant, and how V is made and weighted."""
    if isinstance(how, Expected):
        return 0.0, Spread(1.0, how.finite, how.lam)
    return (0.5 - how.rho) * d * LOG_2PI - 0.5 * d * math.log(how.rho), Spread(0.0, 1.0, how.rho)


def own_logs(normals: GaussianStack, how: Power | Expected) -> Floats:
    """Return what each member adds to the logs of its pairs, G + (a,): infinite where a covariance is singular."""
    if isinstance(how, Expected) or how.rho == 1.0:
        return np.zeros(normals.mean.shape[:-1])
    return 0.5 * (1.0 - how.rho) * _log_determinants(normals)


def promoted(P: Gaussian, Q: Gaussian) -> tuple[GaussianStack, GaussianStack]:
    """Return both stacks with covariances of the more general kind of the two."""
    if P.mean.shape[-1] != Q.mean.shape[-1]:
        raise ValueError(
            "affinity: both Gaussians must have the same number of dimensions. "
            f"Got {P.mean.shape[-1]} and {Q.mean.shape[-1]}."
        )
    kinds = {P.covariance_type, Q.covariance_type}
    kind = next(kind for kind in ("full", "diagonal", "isotropic") if kind in kinds)
    return as_kind(P, kind), as_kind(Q, kind)


def as_kind(model: Gaussian, kind: str) -> GaussianStack:
    """Return means and covariances of a kind at least as general as the model's."""
    if kind == "isotropic":
        return GaussianStack(model.mean, model.cov[..., None], False)
    if kind == "diagonal":
        return GaussianStack(model.mean, model.variances, False)
    if model.covariance_type == "full":
        return GaussianStack(model.mean, model.cov, True)
    return GaussianStack(model.mean, model.variances[..., None] * np.eye(model.mean.shape[-1]), True)


def _log_determinants(normals: GaussianStack) -> Floats:
    """Return log |Sigma| of each member, G + (a,); -inf if singular to rounding."""
    d = normals.mean.shape[-1]
    values = np.linalg.eigvalsh(normals.cov) if normals.full else normals.cov
    singular = values.min(axis=-1) <= (d * EPS * values.max(axis=-1) if normals.full else 0.0)
    logs = np.log(np.where(singular[..., None], 1.0, values)).sum(axis=-1) * (d / values.shape[-1])
    return np.where(singular, -np.inf, logs)


def _log_normal(left: GaussianStack, right: GaussianStack, spread: Spread) -> Floats:
    r"""Return :math:`-\frac12\log|V| - \frac w2 \delta^T V^{-1} \delta`, G + (a, b), in chunks of bounded memory."""
    *batch, a, _ = left.mean.shape
    b = right.mean.shape[-2]
    g = math.prod(batch)
    out = np.empty((g, a, b))
    terms = _full_terms if left.full else _diagonal_terms
    left, right = _flat(left, g), _flat(right, g)
    skip = None if spread.skip is None else spread.skip.reshape(g, a, b)
    for some, rows in _chunks(g, a, b, CHUNK):
        part = GaussianStack(left.mean[some, rows], left.cov[some, rows], left.full)
        whole = GaussianStack(right.mean[some], right.cov[some], right.full)
        unused = None if skip is None else skip[some, rows]
        log_det, square = terms(part, whole, spread._replace(skip=unused))
        out[some, rows] = -0.5 * (log_det + spread.weight * square)
        bad = np.argwhere(np.isnan(log_det))
        if len(bad):
            i, j, k = (int(x) for x in bad[0])
            where = np.unravel_index(i + some.start, batch) if batch else ()
            raise PairError(
                (*(int(x) for x in where), j + rows.start, k),
                "the sum of the covariances is singular, so the product is infinite or undefined. Fit with a floor "
                "(min_covar), leave the constant channel out, or use the mean map.",
            )
    return out.reshape(*batch, a, b)


def _flat(normals: GaussianStack, g: int) -> GaussianStack:
    """Return the leading axes G as one."""
    depth = normals.mean.ndim - 2
    return GaussianStack(
        normals.mean.reshape(g, *normals.mean.shape[depth:]),
        normals.cov.reshape(g, *normals.cov.shape[depth:]),
        normals.full,
    )


def _chunks(g: int, a: int, row: int, size: int) -> Iterator[tuple[slice, slice]]:
    """Yield slices of (g, a) rows of so many numbers each, about ``size`` numbers at a time."""
    if a * row <= size:
        step = size // (a * row)
        yield from ((slice(i, i + step), slice(0, a)) for i in range(0, g, step))
    else:
        step = max(1, size // row)
        yield from ((slice(i, i + 1), slice(j, j + step)) for i in range(g) for j in range(0, a, step))


def _diagonal_terms(left: GaussianStack, right: GaussianStack, spread: Spread) -> tuple[Floats, Floats]:
    """Return log |V| and the squared Mahalanobis distance, (g, a, b); log |V| is NaN where V is singular.

    One channel after the other, in place: no array has more than (g, a, b) entries.
    """
    d, kinds = left.mean.shape[-1], left.cov.shape[-1]
    means = [np.ascontiguousarray(np.moveaxis(side.mean, -1, 0)) for side in (left, right)]
    halves = [np.moveaxis(spread.scale * side.cov + 0.5 * spread.ridge, -1, 0) for side in (left, right)]
    group = _safe_group(*halves)
    log_det, square, gap, v, product = np.zeros((5, *left.mean.shape[:-1], right.mean.shape[1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        for k in range(d):
            if k < kinds:
                np.add(halves[0][k, :, :, None], halves[1][k, :, None, :], out=v)
                if spread.skip is not None:
                    v[spread.skip] = 1.0
                np.multiply(product if k % group else 1.0, v, out=product)
                if (k + 1) % group == 0 or k + 1 == kinds:
                    log_det += np.log(product)
            np.subtract(means[0][k, :, :, None], means[1][k, :, None, :], out=gap)
            gap *= gap
            gap /= v
            square += gap
    log_det[np.isneginf(log_det)] = np.nan
    return log_det * (d / kinds), square


def _safe_group(first: Floats, second: Floats) -> int:
    """Return how many sums of variances may be multiplied before taking a logarithm: four, or one if extreme."""
    smallest = min(side.min(initial=1.0, where=side > 0) for side in (first, second))
    return 4 if smallest > 1e-70 and first.max() + second.max() < 1e70 else 1


def _full_terms(left: GaussianStack, right: GaussianStack, spread: Spread) -> tuple[Floats, Floats]:
    """Return log |V| and the squared Mahalanobis distance, (g, a, b); NaN where V is singular."""
    shape = (*left.mean.shape[:2], right.mean.shape[1])
    log_det, square = np.empty(shape), np.empty(shape)
    for k in range(shape[0]):
        lanes = lanes_of(right.mean[k], right.cov[k])
        found = pair_terms(left.mean[k], left.cov[k], lanes, spread.ridge, spread.scale)
        log_det[k], square[k] = (table[:, : shape[2]] for table in found)
    if spread.skip is not None:
        log_det[spread.skip], square[spread.skip] = 0.0, 0.0
    return log_det, square
