"""Fitted mixtures, kernel densities and Gaussian class models of scikit-learn as models of this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genkern.models.adapt.arrays import attribute, numbers, refuse, shares
from genkern.models.base import Model
from genkern.models.class_mixture import ClassMixture
from genkern.models.families.gaussian import Gaussian
from genkern.models.kde.model import KDE
from genkern.models.mixture.model import Mixture


def _mixture(model: Any) -> Model:
    """Return the mixture at its weights, means and covariances: of a Bayesian one, the point estimate."""
    means, covs = numbers(attribute(model, "means_")), numbers(model.covariances_)
    if model.covariance_type == "tied":
        covs = np.repeat(covs[None], len(means), axis=0)
    return Mixture(shares(model.weights_), Gaussian(means, covs))


def _density(model: Any) -> Model:
    if model.kernel != "gaussian":
        refuse(model, f"kernel={model.kernel!r} (only 'gaussian' has)")
    tree = attribute(model, "tree_")
    if model.metric not in ("euclidean", "l2", "p", "minkowski") or (model.metric_params or {}).get("p", 2) != 2:
        refuse(model, f"metric={model.metric!r} (only 'euclidean' has)")
    weights = None if getattr(tree, "sample_weight", None) is None else numbers(tree.sample_weight)
    return KDE(numbers(tree.data), float(model.bandwidth_) ** 2, weights)


def _classes(model: Any) -> Model:
    means, variances = numbers(attribute(model, "theta_")), numbers(model.var_)
    laws = Gaussian(means, variances).unstack()
    labels = np.asarray(model.classes_).tolist()
    return ClassMixture(dict(zip(labels, laws)), shares(model.class_prior_))


KNOWN: dict[str, Callable[..., Model]] = {
    "GaussianMixture": _mixture,
    "BayesianGaussianMixture": _mixture,
    "KernelDensity": _density,
    "GaussianNB": _classes,
}
