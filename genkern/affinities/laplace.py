r"""Mean maps of the Laplace kernel :math:`e^{-\lambda \|x - y\|_1}`: of leaves in closed form, and of structures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import erfc, erfcx

from genkern.affinities.bayes_net import network_and_hmm, one_contraction
from genkern.affinities.categorical import categorical_mean_map
from genkern.affinities.chains import chain_as_hmm, site_by_site
from genkern.affinities.families import bernoulli_mean_map, crossed
from genkern.affinities.gaussian import promoted
from genkern.affinities.hmm import MEAN_MAP, all_lengths, state_pair_recursion
from genkern.affinities.how import ExpectedLaplace
from genkern.affinities.mixture import (
    as_mixture,
    component_pairs,
    mixture_and_leaf,
    points_and_leaf,
    points_and_mixture,
)
from genkern.affinities.registry import affinity
from genkern.affinities.rules import PairError
from genkern.affinities.sampled import MEANS, adapted_mean_error, adapted_mean_map, mean_error, sampled_mean_map
from genkern.models.adapt.adapted import Adapted
from genkern.models.bayes_net.model import BayesNet
from genkern.models.families.bernoulli import Bernoulli
from genkern.models.families.categorical import Categorical
from genkern.models.families.exponential import Exponential
from genkern.models.families.gaussian import Gaussian
from genkern.models.families.site import SiteModel
from genkern.models.hmm.model import HMM
from genkern.models.kde.model import KDE
from genkern.models.leaf import Leaf
from genkern.models.markov.base import Chain
from genkern.models.mixture.model import Mixture
from genkern.models.sampled import Sampled
from genkern.models.value import Value
from genkern.validation import Floats

CHUNK = 1 << 20  # numbers in a temporary array
ONE_HOT = "Mehta & Gray (2010), eq. 2, with the Laplace kernel: symbols are at distance two"
LINEAR = "Mehta & Gray (2010), section 2, by linearity, with the Laplace kernel"


@affinity.register(Categorical, Categorical, ExpectedLaplace, reference=ONE_HOT, whole=True)
def categorical_laplace(P: Categorical, Q: Categorical, how: ExpectedLaplace) -> Floats:
    r"""Return :math:`\log [(1 - e^{-2\lambda}) \langle p, q \rangle + e^{-2\lambda}]`, G + (a, b)."""
    return categorical_mean_map(P, Q, how.of_symbols())


@affinity.register(Bernoulli, Bernoulli, ExpectedLaplace, reference="zeros and ones, whose distances are their squares")
def bernoulli_laplace(P: Bernoulli, Q: Bernoulli, how: ExpectedLaplace) -> Floats:
    r"""Return :math:`\sum_j \log [1 - (1 - e^{-\lambda}) (\gamma_j + \gamma'_j - 2\gamma_j\gamma'_j)]`, G + (a, b)."""
    return bernoulli_mean_map(P, Q, how.of_symbols())


@affinity.register(Exponential, Exponential, ExpectedLaplace, reference="the law of X - Y, an asymmetric Laplace law")
def exponential_laplace(P: Exponential, Q: Exponential, how: ExpectedLaplace) -> Floats:
    r"""Return the log mean map kernel, G + (a, b).

    .. math:: \sum_j \log \frac{1}{\beta_j + \beta'_j}
       \left[\frac{\beta_j}{1 + \lambda\beta_j} + \frac{\beta'_j}{1 + \lambda\beta'_j}\right]
    """
    lam = how.finite
    return crossed(P, Q, lambda p, q: np.log((p / (1.0 + lam * p) + q / (1.0 + lam * q)) / (p + q)))


@affinity.register(
    Gaussian, Gaussian, ExpectedLaplace, reference="the law of X - Y, axis by axis; covariances must be diagonal"
)
def gaussian_laplace(P: Gaussian, Q: Gaussian, how: ExpectedLaplace) -> Floats:
    r"""Return the log mean map kernel of Gaussians with diagonal covariances, G + (a, b); variances may be zero.

    .. math:: \sum_j \log \tfrac12 e^{-\delta^2 / 2v} \left[\mathrm{erfcx}\frac{\lambda v - \delta}{\sqrt{2 v}} +
       \mathrm{erfcx}\frac{\lambda v + \delta}{\sqrt{2 v}}\right], \quad \delta = |\mu_j - \mu'_j|,\ v = v_j + v'_j
    """
    lam = how.finite
    promoted(P, Q)
    if lam == 0.0:
        return np.zeros((*P.shape, Q.shape[-1]))
    left, right = _variances(P), _variances(Q)
    for side, variances in enumerate((left, right)):
        wrong = np.argwhere(np.isnan(variances[..., 0]))
        if len(wrong):
            *outer, k = (int(i) for i in wrong[0])
            raise PairError(
                (*outer, 0, k) if side else (*outer, k, 0),
                "the mean map of the Laplace kernel has a closed form for diagonal covariances only. Fit with "
                "'diagonal', take the Gaussian kernel, or compare draws: Sampled(model, n).",
            )
    *batch, a, d = P.mean.shape
    b = Q.shape[-1]
    out = np.empty((*batch, a, b))
    step = max(1, CHUNK // max(1, math.prod(batch) * b * d))
    for low in range(0, a, step):
        rows = (..., slice(low, low + step), None, slice(None))
        gap = np.abs(P.mean[rows] - Q.mean[..., None, :, :])
        out[..., low : low + step, :] = _log_axes(gap, left[rows] + right[..., None, :, :], lam).sum(axis=-1)
    return out


def _variances(model: Gaussian) -> Floats:
    """Return variances of the shape of the mean; NaN for members whose axes are dependent."""
    if model.covariance_type != "full":
        return model.variances
    diagonal = model.variances
    dependent = (model.cov != diagonal[..., None] * np.eye(diagonal.shape[-1])).any(axis=(-2, -1))
    return np.where(dependent[..., None], np.nan, diagonal)


def _log_axes(gap: Floats, variance: Floats, lam: float) -> Floats:
    """Return log E exp(-lam |D|) of D ~ N(gap, variance), gap not negative."""
    sure = variance == 0.0
    v = np.where(sure, 1.0, variance)
    root = np.sqrt(2.0 * v)
    low, high = (lam * v - gap) / root, (lam * v + gap) / root
    with np.errstate(over="ignore"):
        tail = -((gap / root) ** 2)
    upper = np.log(0.5 * erfcx(high)) + tail
    near = np.log(0.5 * erfcx(np.maximum(low, 0.0))) + tail
    # erfcx of a negative number grows beyond bounds, and its factor vanishes: erfc is theirs together.
    with np.errstate(over="ignore", invalid="ignore"):
        far = np.log(0.5 * erfc(np.minimum(low, 0.0))) + lam * (0.5 * lam * v - gap)
    return np.where(sure, -lam * gap, np.logaddexp(np.where(low < 0.0, far, near), upper))


@affinity.register(KDE, KDE, ExpectedLaplace, reference=f"{LINEAR}; a mixture of Gaussians on the points")
def points_laplace(P: KDE, Q: KDE, how: ExpectedLaplace) -> Floats:
    """Return the log mean map kernel of kernel density estimates, G + (a, b)."""
    return points_and_mixture(P, as_mixture(Q), how)


def _register(left: type, right: type, formula: Any, reference: str, *lengths: Any, **options: Any) -> None:
    """Enter a formula that reduces an affinity to those of parts, whatever the comparison."""
    for length in lengths:
        affinity.register(left, right, ExpectedLaplace, length=length, reference=reference, **options)(formula)


_register(Mixture, Mixture, component_pairs, LINEAR, "iid", parts=("components",))
_register(Mixture, Leaf, mixture_and_leaf, f"{LINEAR}; one component of weight one", "iid")
_register(KDE, Leaf, points_and_leaf, f"{LINEAR}; a mixture of Gaussians on the points", "iid")
_register(KDE, Mixture, points_and_mixture, f"{LINEAR}; a mixture of Gaussians on the points", "iid")
_register(HMM, HMM, state_pair_recursion, MEAN_MAP, "given", parts=("emissions",))
_register(HMM, HMM, all_lengths, f"{MEAN_MAP}, summed over lengths", "all", parts=("emissions",))
_register(BayesNet, BayesNet, one_contraction, f"{ONE_HOT}; leaves by their own formulas", "iid")
_register(BayesNet, HMM, network_and_hmm, f"{ONE_HOT}; leaves by their own formulas", "all", "given")
_register(Chain, Chain, chain_as_hmm, f"{MEAN_MAP}; a chain as a hidden Markov model", "given")
_register(Chain, HMM, chain_as_hmm, f"{MEAN_MAP}; a chain as a hidden Markov model", "given")
_register(SiteModel, SiteModel, site_by_site, f"{ONE_HOT}, position by position", "iid")
_register(Sampled, Sampled, sampled_mean_map, MEANS, "all", "given", exact="sampled", error=mean_error)
_register(Adapted, Value, adapted_mean_map, MEANS, "all", "given", exact="sampled", error=adapted_mean_error)
