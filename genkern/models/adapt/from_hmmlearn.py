"""Fitted models of hmmlearn as hidden Markov models of this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genkern.models.adapt.arrays import attribute, numbers, shares
from genkern.models.base import Model
from genkern.models.families.categorical import Categorical
from genkern.models.families.gaussian import Gaussian
from genkern.models.families.multinomial import Multinomial
from genkern.models.families.poisson import Poisson
from genkern.models.hmm.model import HMM
from genkern.models.leaf import Leaf
from genkern.models.mixture.model import Mixture


def _categorical(model: Any) -> Leaf:
    return Categorical(shares(attribute(model, "emissionprob_")))


def _gaussian(model: Any) -> Leaf:
    means = numbers(attribute(model, "means_"))
    return Gaussian(means, _own_form(model.covars_, model.covariance_type))


def _own_form(covars: Any, kind: str) -> Any:
    """Return covariances, which the property ``covars_`` has as full matrices, in the form of their type."""
    matrices = numbers(covars)
    if kind in ("full", "tied"):
        return matrices
    diagonals = np.diagonal(matrices, axis1=-2, axis2=-1)
    return diagonals if kind == "diag" else diagonals[..., 0]


def _mixture(model: Any) -> Leaf:
    means, covars, kind = numbers(attribute(model, "means_")), numbers(model.covars_), model.covariance_type
    if kind == "tied":
        covars = np.repeat(covars[:, None], means.shape[1], axis=1)
    return Mixture(shares(model.weights_), Gaussian(means, covars))


def _poisson(model: Any) -> Leaf:
    return Poisson(numbers(attribute(model, "lambdas_")))


def _multinomial(model: Any) -> Leaf:
    return Multinomial(shares(attribute(model, "emissionprob_")), ordered=False)


def _with(emissions: Callable[[Any], Leaf]) -> Callable[[Any], Model]:
    def convert(model: Any) -> Model:
        """Return the model; its emissions raise first where it is not fitted."""
        leaf = emissions(model)
        return HMM(shares(attribute(model, "startprob_")), shares(attribute(model, "transmat_")), leaf)

    return convert


KNOWN: dict[str, Callable[..., Model]] = {
    "CategoricalHMM": _with(_categorical),
    "GaussianHMM": _with(_gaussian),
    "GMMHMM": _with(_mixture),
    "MultinomialHMM": _with(_multinomial),
    "PoissonHMM": _with(_poisson),
}
