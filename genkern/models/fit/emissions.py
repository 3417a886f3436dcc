"""The short names of leaf families in estimators of latent models."""

from __future__ import annotations

from genkern.models.estimator import LeafEstimator
from genkern.models.families.bernoulli import BernoulliEstimator
from genkern.models.families.categorical import CategoricalEstimator
from genkern.models.families.dirichlet import DirichletEstimator
from genkern.models.families.exponential import ExponentialEstimator
from genkern.models.families.gamma import GammaEstimator
from genkern.models.families.gaussian_estimator import GaussianEstimator
from genkern.models.families.geometric import GeometricEstimator
from genkern.models.families.multinomial import MultinomialEstimator
from genkern.models.families.poisson import PoissonEstimator
from genkern.models.families.von_mises import VonMisesEstimator

EMISSIONS: dict[str, type[LeafEstimator]] = {
    "bernoulli": BernoulliEstimator,
    "categorical": CategoricalEstimator,
    "dirichlet": DirichletEstimator,
    "exponential": ExponentialEstimator,
    "gamma": GammaEstimator,
    "gaussian": GaussianEstimator,
    "geometric": GeometricEstimator,
    "multinomial": MultinomialEstimator,
    "poisson": PoissonEstimator,
    "vonmises": VonMisesEstimator,
}
