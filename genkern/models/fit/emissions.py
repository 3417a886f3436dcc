"""The short names of leaf families in estimators of latent models."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.models.estimator import LeafEstimator
from genkern.models.families.bernoulli import BernoulliEstimator
from genkern.models.families.categorical import CategoricalEstimator
from genkern.models.families.dirichlet import DirichletEstimator
from genkern.models.families.exponential import ExponentialEstimator
from genkern.models.families.gamma import GammaEstimator
from genkern.models.families.gaussian_estimator import GaussianEstimator
from genkern.models.families.geometric import GeometricEstimator
from genkern.models.families.multinomial_estimator import MultinomialEstimator
from genkern.models.families.poisson import PoissonEstimator
from genkern.models.families.von_mises import VonMisesEstimator
from genkern.models.value import Value

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


def refuse_other_form(given: Any, asked: Any, names: tuple[str, str, str]) -> None:
    """Raise where the leaf of a model to start from has not the form, or the alphabet, that an estimator asks for.

    ``names`` are those of who asks, of the leaf in the model, and of the parameter with its estimator.
    """
    alphabet, (who, what, parameter) = getattr(given, "alphabet", None), names
    if _form(asked) != _form(given) or (alphabet is not None and not alphabet.same_codes(asked.alphabet)):
        raise ValueError(
            f"{who}: 'init' has {what} {given._in_a_line(0)}, and {parameter!r} asks for {asked._in_a_line(0)}. Make "
            f"them agree, or leave {parameter}='auto'."
        )


def _form(value: Any) -> Any:
    """Return the classes and shapes of a value and its fields, whatever their numbers and alphabets."""
    if isinstance(value, Value):
        return type(value), *(_form(getattr(value, name)) for name in value._fields if name != "alphabet")
    return value.shape if isinstance(value, np.ndarray) else value
