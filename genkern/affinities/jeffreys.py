r"""Symmetric Kullback-Leibler divergences within leaf families.

For an exponential family with natural parameters θ and mean statistics η,

.. math:: KL(p, q) + KL(q, p) = (\theta - \theta')^T (\eta - \eta')
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import digamma, i0e, i1e

from genkern.affinities.categorical import check_alphabets
from genkern.affinities.families import crossed
from genkern.affinities.gaussian import as_kind, promoted
from genkern.affinities.how import Jeffreys
from genkern.affinities.registry import affinity
from genkern.affinities.rules import PairError
from genkern.affinities.sampled import Densities, by_draws, densities
from genkern.models.adapt.adapted import Adapted
from genkern.models.families.bernoulli import Bernoulli
from genkern.models.families.categorical import Categorical
from genkern.models.families.dirichlet import Dirichlet
from genkern.models.families.exponential import Exponential
from genkern.models.families.gamma import Gamma
from genkern.models.families.gaussian import Gaussian
from genkern.models.families.geometric import Geometric
from genkern.models.families.multinomial import Multinomial
from genkern.models.families.poisson import Poisson
from genkern.models.families.site import SiteModel
from genkern.models.families.von_mises import VonMises
from genkern.models.sampled import Sampled
from genkern.models.value import Value
from genkern.validation import Floats

REFERENCE = "Jebara, Kondor & Howard (2004), section 7"
CHUNK = 1 << 20  # numbers in a temporary array


@affinity.register(Gaussian, Gaussian, Jeffreys, reference=REFERENCE)
def gaussian_divergence(P: Gaussian, Q: Gaussian, how: Jeffreys) -> Floats:
    r"""Return minus a times the divergence of Gaussians, G + (a, b).

    .. math:: \tfrac12 \mathrm{tr}(\Sigma'^{-1} \Sigma + \Sigma^{-1} \Sigma') - d
       + \tfrac12 \delta^T (\Sigma^{-1} + \Sigma'^{-1}) \delta, \quad \delta = \mu - \mu'
    """
    left, right = promoted(P, Q)
    if not left.full:
        left, right = (as_kind(side, "diagonal") for side in (P, Q))
        _refuse_singular(left.cov.min(axis=-1), right.cov.min(axis=-1))
        return -how.a * _pairwise((left.mean, left.cov), (right.mean, right.cov), _diagonal_terms)
    _refuse_singular(*(np.asarray(np.linalg.eigvalsh(side.cov)[..., 0], np.float64) for side in (left, right)))
    inverses = [np.asarray(np.linalg.inv(side.cov), np.float64) for side in (left, right)]
    d = left.mean.shape[-1]
    flat = [array.reshape(*array.shape[:-2], d * d) for array in (left.cov, right.cov, *inverses)]
    traces = flat[0] @ np.swapaxes(flat[3], -1, -2) + flat[2] @ np.swapaxes(flat[1], -1, -2)
    squares = _pairwise((left.mean, inverses[0]), (right.mean, inverses[1]), _full_squares)
    return -how.a * (0.5 * (traces + squares) - d)


def _diagonal_terms(mean: Floats, var: Floats, mean2: Floats, var2: Floats) -> Floats:
    gap = (mean - mean2) ** 2
    terms: Floats = 0.5 * ((var - var2) ** 2 / (var * var2) + gap * (1.0 / var + 1.0 / var2)).sum(axis=-1)
    return terms


def _full_squares(mean: Floats, inverse: Floats, mean2: Floats, inverse2: Floats) -> Floats:
    gap = mean - mean2
    squares: Floats = np.einsum("...i,...ij,...j->...", gap, inverse + inverse2, gap)
    return squares


def _refuse_singular(left: Floats, right: Floats) -> None:
    """Raise for the first pair of which a smallest variance is zero."""
    wrong = (left <= 0)[..., :, None] | (right <= 0)[..., None, :]
    if wrong.any():
        raise PairError(
            tuple(int(i) for i in np.argwhere(wrong)[0]),
            "a covariance is singular, so the divergence is infinite. Fit with a floor (min_covar).",
        )


def _pairwise(left: tuple[Floats, Floats], right: tuple[Floats, Floats], terms: Any) -> Floats:
    """Return G + (a, b) of fields G + (a, d, ...) and G + (b, d, ...), in chunks of rows."""
    depth = left[0].ndim - 2
    batch, (a, d), b = left[0].shape[:depth], left[0].shape[depth:], right[0].shape[depth]
    size = math.prod(left[1].shape[depth + 1 :])
    out = np.empty((*batch, a, b))
    step = max(1, CHUNK // max(1, math.prod(batch) * b * max(size, d)))
    index = (slice(None),) * depth
    others = [array[(*index, None)] for array in right]
    for low in range(0, a, step):
        rows = slice(low, low + step)
        own = [array[(*index, rows, None)] for array in left]
        out[(*index, rows)] = terms(*own, *others)
    return out


@affinity.register(Categorical, Categorical, Jeffreys, reference=REFERENCE)
def categorical_divergence(P: Categorical, Q: Categorical, how: Jeffreys) -> Floats:
    r"""Return minus a times :math:`\sum_k (p_k - q_k) (\log p_k - \log q_k)`, G + (a, b); -inf if supports differ."""
    check_alphabets(P, Q)
    return -how.a * _simplex(P.probs, Q.probs)


@affinity.register(Multinomial, Multinomial, Jeffreys, reference=f"{REFERENCE}; of every draw")
def multinomial_divergence(P: Multinomial, Q: Multinomial, how: Jeffreys) -> Floats:
    """Return minus a times the divergence of multinomials of one fixed total: that of a draw, times the total."""
    if P.width != Q.width or P.total != Q.total or not isinstance(P.total, int):
        raise ValueError(
            "affinity: the divergence of multinomials needs the same outcomes and the same fixed total. Got "
            f"{P.width} and {Q.width} outcomes, totals {P.total} and {Q.total}."
        )
    return -how.a * P.total * _simplex(P.probs, Q.probs)


@affinity.register(SiteModel, SiteModel, Jeffreys, reference=f"{REFERENCE}; by positions")
def site_divergence(P: SiteModel, Q: SiteModel, how: Jeffreys) -> Floats:
    """Return the sum over positions of the divergences of their categorical distributions, times -a, G + (a, b)."""
    check_alphabets(P, Q)
    if P.probs.shape[-2] != Q.probs.shape[-2]:
        raise ValueError(
            "affinity: both site models must have the same number of positions. "
            f"Got {P.probs.shape[-2]} and {Q.probs.shape[-2]}."
        )
    parts = [_simplex(P.probs[..., site, :], Q.probs[..., site, :]) for site in range(P.probs.shape[-2])]
    total: Floats = -how.a * np.sum(parts, axis=0)
    return total


def _simplex(p: Floats, q: Floats) -> Floats:
    """Return divergences of rows G + (a, m) and G + (b, m); infinite if one has a zero where the other has none."""

    def terms(p: Floats, _: Floats, q: Floats, __: Floats) -> Floats:
        both = (p > 0) & (q > 0)
        logs = np.log(np.where(both, p, 1.0)) - np.log(np.where(both, q, 1.0))
        sums: Floats = np.where(both, (p - q) * logs, np.where(p == q, 0.0, np.inf)).sum(axis=-1)
        return sums

    return _pairwise((p, p), (q, q), terms)


@affinity.register(Bernoulli, Bernoulli, Jeffreys, reference=REFERENCE)
def bernoulli_divergence(P: Bernoulli, Q: Bernoulli, how: Jeffreys) -> Floats:
    """Return minus a times the divergence of products of Bernoulli distributions, G + (a, b)."""

    def terms(p: Floats, q: Floats) -> Floats:
        total = np.zeros(np.broadcast_shapes(p.shape, q.shape))
        for x, y in ((p, q), (1.0 - p, 1.0 - q)):
            both = (x > 0) & (y > 0)
            logs = np.log(np.where(both, x, 1.0)) - np.log(np.where(both, y, 1.0))
            total += np.where(both, (x - y) * logs, np.where(x == y, 0.0, np.inf))
        return total

    return -how.a * crossed(P, Q, terms)


@affinity.register(Poisson, Poisson, Jeffreys, reference=REFERENCE)
def poisson_divergence(P: Poisson, Q: Poisson, how: Jeffreys) -> Floats:
    r"""Return minus a times :math:`\sum_j (\mu_j - \mu'_j)(\log \mu_j - \log \mu'_j)`, G + (a, b)."""

    def terms(p: Floats, q: Floats) -> Floats:
        both = (p > 0) & (q > 0)
        logs = np.log(np.where(both, p, 1.0)) - np.log(np.where(both, q, 1.0))
        return np.where(both, (p - q) * logs, np.where(p == q, 0.0, np.inf))

    return -how.a * crossed(P, Q, terms)


@affinity.register(Exponential, Exponential, Jeffreys, reference=REFERENCE)
def exponential_divergence(P: Exponential, Q: Exponential, how: Jeffreys) -> Floats:
    r"""Return minus a times :math:`\sum_j (\beta_j - \beta'_j)^2 / (\beta_j \beta'_j)`, G + (a, b)."""
    return -how.a * crossed(P, Q, lambda p, q: (p - q) ** 2 / (p * q))


@affinity.register(Gamma, Gamma, Jeffreys, reference=REFERENCE)
def gamma_divergence(P: Gamma, Q: Gamma, how: Jeffreys) -> Floats:
    r"""Return minus a times the divergence of Gamma distributions, G + (a, b).

    .. math:: \sum_j (\alpha - \alpha')(\psi(\alpha) + \log\beta - \psi(\alpha') - \log\beta')
       + (1/\beta' - 1/\beta)(\alpha\beta - \alpha'\beta')
    """

    def terms(shape: Floats, scale: Floats, shape2: Floats, scale2: Floats) -> Floats:
        logs = digamma(shape) + np.log(scale) - (digamma(shape2) + np.log(scale2))
        return (shape - shape2) * logs + (scale - scale2) * (shape * scale - shape2 * scale2) / (scale * scale2)

    return -how.a * crossed(P, Q, terms)


@affinity.register(Geometric, Geometric, Jeffreys, reference=REFERENCE)
def geometric_divergence(P: Geometric, Q: Geometric, how: Jeffreys) -> Floats:
    r"""Return minus a times :math:`\sum_j (\log(1-p) - \log(1-p'))(1/p - 1/p')`, G + (a, b)."""

    def terms(p: Floats, q: Floats) -> Floats:
        both = (p < 1) & (q < 1)
        logs = np.log1p(np.where(both, -p, 0.0)) - np.log1p(np.where(both, -q, 0.0))
        return np.where(both, logs * (q - p) / (p * q), np.where(p == q, 0.0, np.inf))

    return -how.a * crossed(P, Q, terms)


@affinity.register(Dirichlet, Dirichlet, Jeffreys, reference=REFERENCE)
def dirichlet_divergence(P: Dirichlet, Q: Dirichlet, how: Jeffreys) -> Floats:
    r"""Return minus a times :math:`\sum_i (\alpha_i - \alpha'_i)(E \log x_i - E' \log x_i)`, G + (a, b)."""

    def terms(p: Floats, q: Floats) -> Floats:
        logs = digamma(p) - digamma(p.sum(axis=-1, keepdims=True))
        return (p - q) * (logs - (digamma(q) - digamma(q.sum(axis=-1, keepdims=True))))

    return -how.a * crossed(P, Q, terms)


@affinity.register(VonMises, VonMises, Jeffreys, reference=REFERENCE)
def von_mises_divergence(P: VonMises, Q: VonMises, how: Jeffreys) -> Floats:
    r"""Return minus a times :math:`\sum_j \langle \theta - \theta', \eta - \eta' \rangle`, G + (a, b).

    Here :math:`\theta = \kappa (\cos\mu, \sin\mu)` and :math:`\eta = I_1(\kappa) / I_0(\kappa)\, (\cos\mu, \sin\mu)`.
    """

    def terms(mean: Floats, kappa: Floats, mean2: Floats, kappa2: Floats) -> Floats:
        length, length2 = i1e(kappa) / i0e(kappa), i1e(kappa2) / i0e(kappa2)
        turn = 2.0 * np.sin(0.5 * (mean - mean2)) ** 2  # one minus the cosine
        return (kappa - kappa2) * (length - length2) + turn * (kappa * length2 + kappa2 * length)

    return -how.a * crossed(P, Q, terms)


def _divergence_error(P: Sampled, Q: Sampled, how: Jeffreys, length: int | None = None) -> float:
    """Return the standard error of the log value, from the spread of the log ratios; infinite if one of them is."""
    _, found = next(densities(P.stack([P]), Q.stack([Q]), length))
    sides = _log_ratios(found)
    if not all(np.isfinite(ratios).all() for ratios in sides):
        return math.inf
    return how.a * math.sqrt(sum(float(ratios.var(ddof=1)) / len(ratios) for ratios in sides))


def _log_ratios(found: Densities) -> tuple[Floats, Floats]:
    """Return log p - log q at the draws of p, and log q - log p at those of q."""
    return found.left[0] - found.right[0], found.right[1] - found.left[1]


BY_DRAWS: dict[str, Any] = {"exact": "sampled", "reference": f"{REFERENCE}; by draws", "error": _divergence_error}


@affinity.register(Sampled, Sampled, Jeffreys, length="all", **BY_DRAWS)
@affinity.register(Sampled, Sampled, Jeffreys, length="given", **BY_DRAWS)
def sampled_divergence(P: Sampled, Q: Sampled, how: Jeffreys, length: int | None = None) -> Floats:
    r"""Return minus a times :math:`E_p [\log p - \log q] + E_q [\log q - \log p]`, by draws, G + (a, b)."""
    out = np.empty((*P.shape, Q.shape[-1]))
    for index, found in densities(P, Q, length):
        first, second = _log_ratios(found)
        out[index] = -how.a * max(0.0, float(first.mean() + second.mean()))
    return out


def _adapted_error(P: Adapted, Q: Any, how: Jeffreys, length: int | None = None) -> float:
    return _divergence_error(*by_draws(P, Q), how, length)


@affinity.register(Adapted, Value, Jeffreys, length="all", **BY_DRAWS | {"error": _adapted_error})
@affinity.register(Adapted, Value, Jeffreys, length="given", **BY_DRAWS | {"error": _adapted_error})
def adapted_divergence(P: Adapted, Q: Any, how: Jeffreys, length: int | None = None) -> Floats:
    """Return ``sampled_divergence`` of somebody's models with others, each represented by draws."""
    return sampled_divergence(*by_draws(P, Q), how, length)
