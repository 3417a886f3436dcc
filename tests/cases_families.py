"""Random members of the exponential families, their twins in SciPy, and points of their supports."""

from __future__ import annotations

import numpy as np
from scipy import stats

from genkern import (
    HMM,
    Bernoulli,
    BernoulliEstimator,
    Dirichlet,
    DirichletEstimator,
    Exponential,
    ExponentialEstimator,
    Gamma,
    GammaEstimator,
    Geometric,
    GeometricEstimator,
    NegativeBinomial,
    Poisson,
    PoissonEstimator,
    VonMises,
    VonMisesEstimator,
)
from tests.cases import rows

MAKERS = {
    "bernoulli": lambda u: Bernoulli(u()),
    "poisson": lambda u: Poisson(6 * u()),
    "geometric": lambda u: Geometric(0.9 * u() + 0.08),
    "negative_binomial": lambda u: NegativeBinomial(4 * u() + 0.2, 0.8 * u() + 0.1),
    "exponential": lambda u: Exponential(2 * u() + 0.3),
    "gamma": lambda u: Gamma(3 * u() + 0.4, 2 * u() + 0.2),
    "vonmises": lambda u: VonMises(8 * u() - 4, 3 * u() + 0.1),
    "dirichlet": lambda u: Dirichlet(4 * u() + 0.3),
}
ESTIMATORS = {
    "bernoulli": BernoulliEstimator,
    "poisson": PoissonEstimator,
    "geometric": GeometricEstimator,
    "exponential": ExponentialEstimator,
    "gamma": GammaEstimator,
    "vonmises": VonMisesEstimator,
    "dirichlet": DirichletEstimator,
}
# The distribution of one coordinate j of one model.
TWINS = {
    "bernoulli": lambda m, j: stats.bernoulli(m.probs[j]),
    "poisson": lambda m, j: stats.poisson(m.rate[j]),
    "geometric": lambda m, j: stats.geom(m.prob[j], loc=-1),
    "negative_binomial": lambda m, j: stats.nbinom(m.size[j], m.prob[j]),
    "exponential": lambda m, j: stats.expon(scale=m.scale[j]),
    "gamma": lambda m, j: stats.gamma(m.shapes[j], scale=m.scale[j]),
    "vonmises": lambda m, j: stats.vonmises(m.concentration[j], loc=m.mean[j]),
    "dirichlet": lambda m, j: stats.beta(m.alpha[j], m.alpha.sum() - m.alpha[j]),
}
DISCRETE = ("bernoulli", "poisson", "geometric", "negative_binomial")
PRODUCTS = tuple(name for name in MAKERS if name != "dirichlet")


def random_family(rng, name, batch, d=2):
    return MAKERS[name](lambda: rng.random((*batch, d)))


def random_points(rng, name, length, d=2, missing=0.0):
    points = random_family(rng, name, (), d).sample(1, length=length, rng=rng)[0]
    points[rng.random(points.shape) < (missing if name in PRODUCTS else 0.0)] = np.nan
    return points


def random_family_hmm(rng, name, n=2, d=2):
    return HMM(rows(rng, n), rows(rng, n, n), random_family(rng, name, (n,), d))


def twin_log_density(name, model, point):
    """Return the log density of one point under one model, missing entries left out, by SciPy."""
    if name == "dirichlet":
        return stats.dirichlet(model.alpha).logpdf(point)
    total = 0.0
    for j in np.flatnonzero(~np.isnan(point)):
        twin = TWINS[name](model, j)
        total += twin.logpmf(point[j]) if name in DISCRETE else twin.logpdf(point[j])
    return total
