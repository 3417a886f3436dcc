"""Models of dynamax with their parameters as models of this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genkern.models.adapt.arrays import numbers, refuse, shares
from genkern.models.base import Model
from genkern.models.families.bernoulli import Bernoulli
from genkern.models.families.categorical import Categorical
from genkern.models.families.gamma import Gamma
from genkern.models.families.gaussian import Gaussian
from genkern.models.families.multinomial import Multinomial
from genkern.models.families.poisson import Poisson
from genkern.models.hmm.model import HMM
from genkern.models.lds.model import LDS
from genkern.models.leaf import Leaf
from genkern.models.mixture.model import Mixture


def _categorical(model: Any, found: Any) -> Leaf:
    return Categorical(shares(_of_one(model, found.probs)))


def _multinomial(model: Any, found: Any) -> Leaf:
    return Multinomial(shares(_of_one(model, found.probs)), ordered=False)


def _of_one(model: Any, table: Any) -> Any:
    """Return the table of emissions of one dimension."""
    if table.shape[1] != 1:
        refuse(model, f"emission_dim={table.shape[1]} (only 1 has)")
    return table[:, 0]


def _shared(model: Any, found: Any) -> Leaf:
    means = numbers(found.means)
    return Gaussian(means, np.repeat(numbers(found.cov)[None], len(means), axis=0))


def _low_rank(model: Any, found: Any) -> Leaf:
    factors = numbers(found.cov_low_rank_factors)
    diagonals = numbers(found.cov_diag_factors)[..., None] * np.eye(factors.shape[1])
    return Gaussian(numbers(found.means), diagonals + factors @ np.swapaxes(factors, -1, -2))


def _gamma(model: Any, found: Any) -> Leaf:
    return Gamma(numbers(found.concentration)[:, None], 1.0 / numbers(found.rate)[:, None])


EMISSIONS: dict[str, Callable[[Any, Any], Leaf]] = {
    "BernoulliHMM": lambda _, found: Bernoulli(numbers(found.probs)),
    "CategoricalHMM": _categorical,
    "GammaHMM": _gamma,
    "GaussianHMM": lambda _, found: Gaussian(numbers(found.means), numbers(found.covs)),
    "DiagonalGaussianHMM": lambda _, found: Gaussian(numbers(found.means), numbers(found.scale_diags) ** 2),
    "SphericalGaussianHMM": lambda _, found: Gaussian(numbers(found.means), numbers(found.scales) ** 2),
    "SharedCovarianceGaussianHMM": _shared,
    "LowRankGaussianHMM": _low_rank,
    "GaussianMixtureHMM": lambda _, found: Mixture(
        shares(found.weights), Gaussian(numbers(found.means), numbers(found.covs))
    ),
    "DiagonalGaussianMixtureHMM": lambda _, found: Mixture(
        shares(found.weights), Gaussian(numbers(found.means), numbers(found.scale_diags) ** 2)
    ),
    "MultinomialHMM": _multinomial,
    "PoissonHMM": lambda _, found: Poisson(numbers(found.rates)),
}


def _with(emissions: Callable[[Any, Any], Leaf]) -> Callable[..., Model]:
    def convert(model: Any, params: Any = None) -> Model:
        _check(model, params)
        start, steps = shares(params.initial.probs), shares(params.transitions.transition_matrix)
        return HMM(start, steps, emissions(model, params.emissions))

    return convert


def _linear(model: Any, params: Any = None) -> Model:
    """Return the system; an offset of the dynamics is the weight of one more state, which is always one."""
    _check(model, params)
    first, step, seen = params.initial, params.dynamics, params.emissions
    for part, what in ((step, "dynamics"), (seen, "emissions")):
        if np.ndim(part.weights) != 2:
            refuse(model, f"{what} that change with time")
        if part.input_weights is not None and np.size(part.input_weights):
            refuse(model, f"inputs to the {what}")
    A, C, Q, R = numbers(step.weights), numbers(seen.weights), _covariance(step.cov), _covariance(seen.cov)
    mean, P = numbers(first.mean), _covariance(first.cov)
    level = np.zeros(len(C)) if seen.bias is None else numbers(seen.bias)
    if step.bias is not None and np.any(numbers(step.bias)):
        A, C = np.block([[A, numbers(step.bias)[:, None]], [np.zeros(len(A)), 1.0]]), np.pad(C, ((0, 0), (0, 1)))
        mean, P, Q = np.append(mean, 1.0), np.pad(P, (0, 1)), np.pad(Q, (0, 1))
    return LDS(A, C, Q, R, mean, P, level)


def _covariance(cov: Any) -> Any:
    """Return a full covariance; a vector is its diagonal."""
    array = numbers(cov)
    return np.diag(array) if array.ndim == 1 else array


def _check(model: Any, params: Any) -> None:
    if not all(hasattr(params, name) for name in ("initial", "emissions")):
        raise TypeError(
            f"adapt: {type(model).__name__} of dynamax needs its params: adapt((model, params)). Got "
            f"{type(params).__name__}."
        )


KNOWN: dict[str, Callable[..., Model]] = {
    **{name: _with(emissions) for name, emissions in EMISSIONS.items()},
    "LinearGaussianSSM": _linear,
    "LinearGaussianConjugateSSM": _linear,
}
