r"""Affinities within exponential families.

Written so that x occurs in the statistics only, :math:`p(x) = e^{\theta^T T(x) - K(\theta)}`, a family has

.. math:: \log \int p^\rho q^\rho = K(\rho (\theta + \theta')) - \rho K(\theta) - \rho K(\theta')

for every power. Poisson weights have a factor besides and need a sum.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import erfcx, i0e

from genkern.affinities.how import Expected, Power
from genkern.affinities.registry import affinity
from genkern.affinities.rules import PairError
from genkern.core.families.gamma_ratio import log_gap, stirling_rest
from genkern.core.families.power_series import LOG_2PI, log_poisson_powers, log_power_series
from genkern.models.families.bernoulli import Bernoulli
from genkern.models.families.dirichlet import Dirichlet
from genkern.models.families.exponential import Exponential
from genkern.models.families.gamma import Gamma
from genkern.models.families.geometric import Geometric
from genkern.models.families.natural_family import NaturalFamily
from genkern.models.families.poisson import Poisson
from genkern.models.families.von_mises import VonMises
from genkern.validation import Floats

CHUNK = 1 << 20  # numbers in a temporary array
MANY = 1e4  # rates above which sums over counts have a limit
JEBARA = "Jebara, Kondor & Howard (2004)"


@affinity.register(Bernoulli, Bernoulli, Power, reference=f"{JEBARA}, section 3.2")
def bernoulli_product(P: Bernoulli, Q: Bernoulli, how: Power) -> Floats:
    r"""Return :math:`\sum_j \log [(\gamma_j \gamma'_j)^\rho + ((1-\gamma_j)(1-\gamma'_j))^\rho]`, G + (a, b)."""

    def terms(p: Floats, q: Floats) -> Floats:
        ones, zeros = p * q, (1.0 - p) * (1.0 - q)
        with np.errstate(divide="ignore"):
            return np.logaddexp(how.rho * np.log(ones), how.rho * np.log(zeros))

    return crossed(P, Q, terms)


@affinity.register(
    Bernoulli, Bernoulli, Expected, reference="Mehta & Gray (2010), section 2, for vectors of zeros and ones"
)
def bernoulli_mean_map(P: Bernoulli, Q: Bernoulli, how: Expected) -> Floats:
    r"""Return the log mean map kernel, G + (a, b).

    .. math:: \sum_j \log [1 - (1 - e^{-\lambda/2}) (\gamma_j + \gamma'_j - 2\gamma_j\gamma'_j)]
    """
    loss = -math.expm1(-0.5 * how.lam)
    return crossed(P, Q, lambda p, q: np.log1p(-loss * (p * (1.0 - q) + q * (1.0 - p))))


@affinity.register(Exponential, Exponential, Power, reference=f"{JEBARA}, section 3.4, with the reciprocal")
def exponential_product(P: Exponential, Q: Exponential, how: Power) -> Floats:
    r"""Return :math:`-\sum_j \log [\rho (1/\beta_j + 1/\beta'_j) (\beta_j \beta'_j)^\rho]`, G + (a, b)."""
    rho = how.rho
    return crossed(P, Q, lambda p, q: (1.0 - rho) * (np.log(p) + np.log(q)) - np.log(rho * (p + q)))


@affinity.register(Exponential, Exponential, Expected, reference="the law of X - Y, an asymmetric Laplace distribution")
def exponential_mean_map(P: Exponential, Q: Exponential, how: Expected) -> Floats:
    r"""Return the log mean map kernel, G + (a, b).

    .. math:: \sum_j \log \frac{s \sqrt{\pi/2}}{\beta_j + \beta'_j}
       \left[\mathrm{erfcx}\frac{s}{\beta_j \sqrt 2} + \mathrm{erfcx}\frac{s}{\beta'_j \sqrt 2}\right],
       \quad s = \lambda^{-1/2}
    """
    if how.finite == 0.0:
        return np.zeros((*P.shape, Q.shape[-1]))
    width = 1.0 / math.sqrt(2.0 * how.lam)

    def terms(p: Floats, q: Floats) -> Floats:
        tails = erfcx(width / p) + erfcx(width / q)
        return np.log(math.sqrt(math.pi) * width * tails / (p + q))

    return crossed(P, Q, terms)


@affinity.register(Gamma, Gamma, Power, reference=f"{JEBARA}, section 3.4")
def gamma_product(P: Gamma, Q: Gamma, how: Power) -> Floats:
    r"""Return the log product of Gamma distributions, G + (a, b).

    .. math:: \sum_j \log\Gamma(a) + a \log b - \rho [\log\Gamma(\alpha) + \alpha\log\beta + \log\Gamma(\alpha')
       + \alpha'\log\beta'], \quad a = \rho(\alpha + \alpha' - 2) + 1, \quad 1/b = \rho (1/\beta + 1/\beta')
    """
    rho = how.rho
    spare = 1.0 - 2.0 * rho

    def terms(shape: Floats, scale: Floats, shape2: Floats, scale2: Floats) -> Floats:
        a = rho * (shape + shape2) + spare
        finite = np.where(a > 0.0, a, 1.0)
        both = scale + scale2
        log_b = np.log(scale) + np.log(scale2) - np.log(rho * both)
        # by Stirling's formula, whose large parts are alpha (log r - (r - 1)), r = a b / (alpha beta), and the like
        gap = shape2 * (scale2 / both) - shape * (scale / both)

        def side(x: Floats, other: Floats, gap: Floats) -> Floats:
            excess = (gap + spare / rho * (other / both)) / x
            large = x * log_gap(excess, finite / x * (other / (rho * both)))
            return rho * (large - 0.5 * np.log(finite / x) - stirling_rest(x))

        total = (0.5 - rho) * (np.log(finite) + LOG_2PI) + spare * log_b + stirling_rest(finite)
        return np.where(a > 0.0, total + (side(shape, scale2, gap) + side(shape2, scale, -gap)), np.inf)

    return refuse_endless(crossed(P, Q, terms), "shapes are so small", rho)


@affinity.register(Dirichlet, Dirichlet, Power, reference=f"{JEBARA}, section 3, its unnumbered formula")
def dirichlet_product(P: Dirichlet, Q: Dirichlet, how: Power) -> Floats:
    r"""Return the log product of Dirichlet distributions, G + (a, b).

    .. math:: \log B(a) - \rho \log B(\alpha) - \rho \log B(\alpha'), \quad a = \rho(\alpha + \alpha' - 2) + 1
    """
    rho = how.rho

    def terms(p: Floats, q: Floats) -> Floats:
        a = rho * (p + q) + (1.0 - 2.0 * rho)
        usable = (a > 0.0).all(axis=-1, keepdims=True)
        logs = _beta_terms(np.where(usable, p, 1.0), np.where(usable, q, 1.0), rho)
        return np.where(usable, logs[..., None], np.inf)

    return refuse_endless(crossed(P, Q, terms), "parameters alpha are so small", rho)


@affinity.register(Geometric, Geometric, Power, reference=f"{JEBARA}, section 3, its unnumbered formula")
def geometric_product(P: Geometric, Q: Geometric, how: Power) -> Floats:
    r"""Return :math:`\sum_j \log \frac{(p_j p'_j)^\rho}{1 - ((1-p_j)(1-p'_j))^\rho}`, G + (a, b)."""
    rho = how.rho

    def terms(p: Floats, q: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            fail = np.log1p(-p) + np.log1p(-q)
        return rho * (np.log(p) + np.log(q)) - np.log(-np.expm1(rho * fail))

    return crossed(P, Q, terms)


@affinity.register(Poisson, Poisson, Power, reference=f"{JEBARA}, table 1; closed for rho = 1/2 and 1, else a sum")
def poisson_product(P: Poisson, Q: Poisson, how: Power) -> Floats:
    r"""Return the log product of Poisson distributions, G + (a, b).

    .. math:: \sum_j \log \sum_x \frac{(\mu_j \mu'_j)^{\rho x}}{(x!)^{2\rho}} - \rho (\mu_j + \mu'_j)

    which is :math:`-\frac12 (\sqrt{\mu_j} - \sqrt{\mu'_j})^2` for one half and has a Bessel function for one.
    """
    rho = how.rho

    def terms(p: Floats, q: Floats) -> Floats:
        if rho == 0.5:
            return -0.5 * (np.sqrt(p) - np.sqrt(q)) ** 2
        if rho == 1.0:
            return np.log(i0e(2.0 * np.sqrt(p * q))) - (np.sqrt(p) - np.sqrt(q)) ** 2
        with np.errstate(divide="ignore"):
            logs = 0.5 * (np.log(p) + np.log(q))
        many = logs > math.log(MANY * max(2.0 * rho, 0.5 / rho, 1.0))
        few = np.where(many, 0.0, logs)
        series = log_power_series(2.0 * rho * few.ravel(), 2.0 * rho).reshape(logs.shape) - 2.0 * rho * np.exp(few)
        limit = log_poisson_powers(np.where(many, logs, 0.0), 2.0 * rho)
        return np.where(many, limit, series) - rho * (np.sqrt(p) - np.sqrt(q)) ** 2

    return crossed(P, Q, terms)


@affinity.register(VonMises, VonMises, Power, reference=f"{JEBARA}, section 3, its unnumbered formula")
def von_mises_product(P: VonMises, Q: VonMises, how: Power) -> Floats:
    r"""Return the log product of von Mises distributions, G + (a, b).

    .. math:: \sum_j \log 2\pi I_0(R_j) - \rho \log 2\pi I_0(\kappa_j) - \rho \log 2\pi I_0(\kappa'_j), \quad
       R_j = \rho \|\kappa_j e^{i\mu_j} + \kappa'_j e^{i\mu'_j}\|
    """
    rho = how.rho

    def terms(mean: Floats, kappa: Floats, mean2: Floats, kappa2: Floats) -> Floats:
        resultant, lost = _resultant(0.5 * (mean - mean2), kappa, kappa2)
        own = np.log(2.0 * math.pi * i0e(kappa)) + np.log(2.0 * math.pi * i0e(kappa2))
        return np.log(2.0 * math.pi * i0e(rho * resultant)) - rho * (lost + own)

    return crossed(P, Q, terms)


@affinity.register(
    VonMises, VonMises, Expected, reference="the law of X - Y, on the unit circle, by the trapezoidal rule"
)
def von_mises_mean_map(P: VonMises, Q: VonMises, how: Expected) -> Floats:
    r"""Return the log mean map kernel of angles as points of the unit circle, G + (a, b).

    As :math:`\|e^{ix} - e^{iy}\|^2 = 2 - 2\cos(x - y)`,

    .. math:: \sum_j \log \int \frac{I_0(\|\kappa_j e^{i(\mu_j - \mu'_j)} + \kappa'_j e^{iz}\|)}
       {2\pi I_0(\kappa_j) I_0(\kappa'_j)}\, e^{-\lambda (1 - \cos z)}\, dz

    The integrand is positive and periodic, so equally spaced points give all digits.
    """

    def terms(mean: Floats, kappa: Floats, mean2: Floats, kappa2: Floats) -> Floats:
        gap, first, second = np.broadcast_arrays(np.abs(mean - mean2), kappa, kappa2)
        out = np.empty(gap.shape)
        # About ten points per width of the sharpest factor; a power of two, so that few sizes occur.
        points = 2.0 ** np.ceil(np.log2(32.0 + 10.0 * np.sqrt(first + second + how.finite)))
        for count in np.unique(points):
            some = points == count
            out[some] = _circle_integrals(gap[some], first[some], second[some], how.lam, int(count))
        return out

    return crossed(P, Q, terms)


def _circle_integrals(gap: Floats, kappa: Floats, kappa2: Floats, lam: float, count: int) -> Floats:
    """Return log kernel values (N,) by so many equally spaced points of the circle."""
    out = np.empty(len(gap))
    z = 2.0 * math.pi * np.arange(count) / count
    floor = -2.0 * lam * np.sin(0.5 * z) ** 2
    step = max(1, CHUNK // count)
    for low in range(0, len(gap), step):
        rows = slice(low, low + step)
        radius, lost = _resultant(0.5 * (z - gap[rows, None]), kappa[rows, None], kappa2[rows, None])
        logs = np.log(i0e(radius)) - lost + floor
        own = np.log(i0e(kappa[rows])) + np.log(i0e(kappa2[rows]))
        out[rows] = np.logaddexp.reduce(logs, axis=1) - own - math.log(count)
    return out


def crossed(P: Any, Q: Any, terms: Callable[..., Floats]) -> Floats:
    """Return sums (G + (a, b)) over coordinates of ``terms`` of the fields of every pair, in chunks of rows."""
    if P.n_features != Q.n_features:
        raise ValueError(
            f"affinity: both {type(P).__name__} models must have the same number of dimensions. Got {P.n_features} and "
            f"{Q.n_features}."
        )
    *batch, a = P.shape
    b = Q.shape[-1]
    out = np.empty((*batch, a, b))
    step = max(1, CHUNK // max(1, math.prod(batch) * b * P.n_features))
    right = [getattr(Q, name)[..., None, :, :] for name in Q._fields]
    for low in range(0, a, step):
        rows = slice(low, low + step)
        left = [getattr(P, name)[..., rows, :][..., :, None, :] for name in P._fields]
        out[..., rows, :] = terms(*left, *right).sum(axis=-1)
    return out


def refuse_endless(logs: Floats, why: str, rho: float) -> Floats:
    """Return logs, raising for the first pair whose product is infinite."""
    endless = np.argwhere(np.isposinf(logs))
    if len(endless):
        raise PairError(
            tuple(int(i) for i in endless[0]),
            f"their {why} that the product with rho = {rho:g} is infinite. Take a smaller rho; 1/2 is always finite.",
        )
    return logs


def _beta_terms(p: Floats, q: Floats, rho: float) -> Floats:
    """Return log B(a) - rho log B(p) - rho log B(q) of the last axis, a = rho (p + q - 2) + 1.

    By Stirling's formula, whose large parts are p (log r - (r - 1)), r = a P / (p A), with sums P and A, and the like.
    """
    k, spare = p.shape[-1], 1.0 - 2.0 * rho
    a = rho * (p + q) + spare
    whole, left, right = (x.sum(axis=-1, keepdims=True) for x in (a, p, q))

    def side(x: Floats, y: Floats, own: Floats, other: Floats) -> Floats:
        excess = (rho * (y * own - x * other) + spare * (own - k * x)) / (x * whole)
        each = x * log_gap(excess, a * own / (x * whole)) - 0.5 * np.log(a / x) - stirling_rest(x)
        return rho * (each.sum(axis=-1) + (0.5 * np.log(whole / own) + stirling_rest(own))[..., 0])

    logs = np.log(a).sum(axis=-1) - (2 * k - 1) * np.log(whole[..., 0]) + (k - 1) * LOG_2PI
    rest = stirling_rest(a).sum(axis=-1) - stirling_rest(whole)[..., 0]
    return (0.5 - rho) * logs + rest + (side(p, q, left, right) + side(q, p, right, left))


def _resultant(half: Floats, kappa: Floats, kappa2: Floats) -> tuple[Floats, Floats]:
    """Return the length R of the sum of two vectors, given half the angle between them, and kappa + kappa' - R."""
    # R^2 = (kappa - kappa')^2 + 4 kappa kappa' cos^2 = (kappa + kappa')^2 - 4 kappa kappa' sin^2: nothing cancels.
    both = 4.0 * kappa * kappa2
    radius = np.sqrt((kappa - kappa2) ** 2 + both * np.cos(half) ** 2)
    total = kappa + kappa2
    sides = np.where(total > 0.0, total, 1.0) + radius
    return radius, both * np.sin(half) ** 2 / sides


@affinity.register(NaturalFamily, NaturalFamily, Power, reference=f"{JEBARA}, section 3, its unnumbered formula")
def natural_product(P: NaturalFamily, Q: NaturalFamily, how: Power) -> Floats:
    r"""Return :math:`A_{2\rho}(\rho (\theta + \theta')) - \rho A(\theta) - \rho A(\theta')`, G + (a, b)."""
    if type(P) is not type(Q) or P.theta.shape[-1] != Q.theta.shape[-1]:
        raise ValueError(
            "affinity: both models must be of one family with as many parameters. Got "
            f"{type(P).__name__} of {P.theta.shape[-1]} and {type(Q).__name__} of {Q.theta.shape[-1]}."
        )
    both = how.rho * (P.theta[..., :, None, :] + Q.theta[..., None, :, :])
    with np.errstate(divide="ignore", invalid="ignore"):
        joint = np.asarray(_joint(P, both, 2.0 * how.rho), np.float64)
        own, other = (np.asarray(side.log_partition(side.theta), np.float64) for side in (P, Q))
    if joint.shape != both.shape[:-1] or own.shape != P.shape:
        raise ValueError(
            f"affinity: log_partition of {type(P).__name__} must return one number for each row of parameters: shape "
            f"{P.shape} of {P.theta.shape}. Got shape {own.shape}."
        )
    if not (np.isfinite(own).all() and np.isfinite(other).all()):
        raise ValueError(f"affinity: log_partition of {type(P).__name__} must be finite at the models' own parameters.")
    logs = joint - how.rho * (own[..., :, None] + other[..., None, :])
    return refuse_endless(np.where(np.isnan(logs), np.inf, logs), "parameters are such", how.rho)


def _joint(model: NaturalFamily, theta: Floats, power: float) -> Floats:
    """Return the log-partition with the base measure to a power, where the family has one."""
    if "power" in inspect.signature(model.log_partition).parameters:
        return model.log_partition(theta, power=power)  # type: ignore[call-arg]
    if type(model).log_base is not NaturalFamily.log_base:
        raise TypeError(
            f"affinity: {type(model).__name__} has a base measure (log_base), so products need "
            "log_partition(theta, power=1.0), with that measure to the power."
        )
    return model.log_partition(theta)
