"""The short names of leaf families, by which estimators of latent models know them."""

from __future__ import annotations

from genkern.models.bernoulli import BernoulliEstimator
from genkern.models.categorical_estimator import CategoricalEstimator
from genkern.models.dirichlet import DirichletEstimator
from genkern.models.estimator import LeafEstimator
from genkern.models.exponential import ExponentialEstimator
from genkern.models.gamma import GammaEstimator
from genkern.models.gaussian_estimator import GaussianEstimator
from genkern.models.geometric import GeometricEstimator
from genkern.models.multinomial_estimator import MultinomialEstimator
from genkern.models.poisson import PoissonEstimator
from genkern.models.von_mises import VonMisesEstimator

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
