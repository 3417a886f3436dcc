"""Affinities between mixtures, and between kernel density estimates, from those of their components."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genkern.affinities.gaussian import as_kind, own_logs, terms_of
from genkern.affinities.how import Expected, How, Power
from genkern.affinities.registry import affinity
from genkern.affinities.rules import PairError
from genkern.core.mixture.pairs import Normals, Sets, log_sums, normal_sums, set_sums
from genkern.models.families.gaussian import Gaussian
from genkern.models.kde.model import KDE
from genkern.models.leaf import Leaf
from genkern.models.mixture.model import Mixture
from genkern.models.value import rebatch
from genkern.validation import Floats

CHUNK = 1 << 21  # pairs of components at a time
LARGE = 1e290  # sums of variances below it are far from the end of the range
LOG_2PI = math.log(2.0 * math.pi)
PRODUCT = "Jebara, Kondor & Howard (2004), section 4.1, the power inside the sum"
MEAN_MAP = "Mehta & Gray (2010), section 2, by linearity"


@affinity.register(Mixture, Mixture, Power, parts=("components",), reference=PRODUCT)
@affinity.register(Mixture, Mixture, Expected, parts=("components",), reference=MEAN_MAP)
def component_pairs(P: Mixture, Q: Mixture, how: How) -> Floats:
    r"""Return :math:`\log \sum_{kl} (w_k w'_l)^\rho\, \psi(g_k, g'_l)`, G + (a, b), with ρ = 1 for the mean map.

    For the probability product with :math:`\rho \ne 1` this is the kernel with the power inside the sum; that of the
    mixtures' densities lies below it for :math:`\rho < 1` and above it for :math:`\rho > 1`.
    """
    *batch, a = P.shape
    b, k, m = Q.shape[-1], P.n_components, Q.n_components
    with np.errstate(divide="ignore"):
        left, right = (how.weight_power * np.log(side.weights) for side in (P, Q))
    direct = _normal_pairs(P.components, Q.components, (left, right), how)
    if direct is not None:
        return direct
    columns = rebatch(Q.components, (*batch, b * m))
    out = np.empty((*batch, a, b))
    step = max(1, CHUNK // (math.prod(batch) * b * k * m))
    for low in range(0, a, step):
        rows = slice(low, min(low + step, a))
        size = rows.stop - low
        few = rebatch(P.components[(*[slice(None)] * len(batch), rows)], (*batch, size * k))
        try:
            logs = affinity.block(few, columns, how).reshape(-1, size, k, b, m)
        except PairError as error:
            *outer, i, j = error.index
            text = f"in components {i % k} and {j % m}, {error.text}"
            raise PairError((*outer, i // k + low, j // m), text) from None
        own, other = left[..., rows, :].reshape(-1, size, k), right.reshape(-1, b, m)
        sums = [log_sums(*arrays) for arrays in zip(logs, own, other, strict=True)]
        out[..., rows, :] = np.reshape(sums, (*batch, size, b))
    return out


def _normal_pairs(P: Leaf, Q: Leaf, logs: tuple[Floats, Floats], how: How) -> Floats | None:
    """Return the sums over components at once where these are Gaussians without covariances, else None.

    None also where a variance is so extreme that the product does not exist, or only in logs.
    """
    sides: Any = P, Q
    laws = [side.axis_normals for side in sides]
    if None in laws or not isinstance(how, Power | Expected) or len({means.shape[-1] for means, _ in laws}) > 1:
        return None
    constant, spread = terms_of(how, laws[0][0].shape[-1])
    left, right = (
        Normals(law[0], law[1], log + own_logs(as_kind(side, "diagonal"), how))
        for side, law, log in zip(sides, laws, logs, strict=True)
    )
    low, high = (spread.ridge + spread.scale * (end(left.var) + end(right.var)) for end in (np.min, np.max))
    if not (low > 0.0 and high < LARGE and max(left.logs.max(), right.logs.max()) < np.inf):
        return None
    return constant + normal_sums(left, right, spread.ridge, spread.scale, spread.weight)


@affinity.register(Mixture, Leaf, Power, reference=f"{PRODUCT}; one component of weight one")
@affinity.register(Mixture, Leaf, Expected, reference=f"{MEAN_MAP}; one component of weight one")
def mixture_and_leaf(P: Mixture, Q: Leaf, how: How) -> Floats:
    """Return the affinity of a mixture and another leaf as a mixture of one component, G + (a, b)."""
    return component_pairs(P, Mixture.of(Q), how)


@affinity.register(KDE, KDE, Power, reference=f"{PRODUCT}; a mixture of Gaussians on the points")
def point_products(P: KDE, Q: KDE, how: Power) -> Floats:
    r"""Return the log probability product of kernel density estimates, G + (a, b).

    .. math:: \log \sum_{st} (w_s w'_t)^\rho\, k_\rho(N(x_s, h I), N(y_t, h' I))
    """
    rho, d = how.rho, P.points.shape[-1]
    variances = P.variance[..., :, None] + Q.variance[..., None, :]
    zero = (P.variance == 0)[..., :, None] | (Q.variance == 0)[..., None, :]
    wrong = (variances == 0) if rho == 1.0 else zero
    if wrong.any() and rho >= 1.0:
        raise PairError(
            tuple(int(i) for i in np.argwhere(wrong)[0]),
            f"a variance is zero, so the product with rho = {rho:g} is infinite. Give a variance > 0, or use the mean "
            "map.",
        )
    with np.errstate(divide="ignore"):
        logs = np.log(P.variance)[..., :, None] + np.log(Q.variance)[..., None, :]
    own = 0.0 if rho == 1.0 else 0.5 * (1.0 - rho) * d * logs
    constant = (0.5 - rho) * d * LOG_2PI - 0.5 * d * math.log(rho)
    safe = np.where(variances > 0, variances, 1.0)
    sums = _set_sums(P, Q, 0.5 * rho / safe, rho)
    return constant + own - 0.5 * d * np.log(safe) + sums


@affinity.register(KDE, KDE, Expected, reference="Mehta & Gray (2010), eq. 6")
def point_mean_map(P: KDE, Q: KDE, how: Expected) -> Floats:
    r"""Return the log mean map kernel of kernel density estimates, G + (a, b); variances of zero are legal.

    .. math:: \log \sum_{st} w_s w'_t\, (1 + \lambda (h + h'))^{-d/2}
       \exp\Big(-\frac{\lambda \|x_s - y_t\|^2}{2 (1 + \lambda (h + h'))}\Big)
    """
    spread = 1.0 + how.finite * (P.variance[..., :, None] + Q.variance[..., None, :])
    return _set_sums(P, Q, 0.5 * how.lam / spread, 1.0) - 0.5 * P.points.shape[-1] * np.log(spread)


@affinity.register(KDE, Leaf, Power, reference=f"{PRODUCT}; a mixture of Gaussians on the points")
@affinity.register(KDE, Leaf, Expected, reference=f"{MEAN_MAP}; a mixture of Gaussians on the points")
def points_and_leaf(P: KDE, Q: Leaf, how: How) -> Floats:
    """Return the affinity of a kernel density estimate and another leaf, as mixtures, G + (a, b)."""
    return component_pairs(as_mixture(P), Mixture.of(Q), how)


@affinity.register(KDE, Mixture, Power, reference=f"{PRODUCT}; a mixture of Gaussians on the points")
@affinity.register(KDE, Mixture, Expected, reference=f"{MEAN_MAP}; a mixture of Gaussians on the points")
def points_and_mixture(P: KDE, Q: Mixture, how: How) -> Floats:
    """Return the affinity of a kernel density estimate and a mixture, G + (a, b)."""
    return component_pairs(as_mixture(P), Q, how)


def as_mixture(model: KDE) -> Mixture:
    """Return isotropic Gaussians on the points, with the points' weights."""
    spread = np.broadcast_to(model.variance[..., None], model.weights.shape)
    return Mixture(model.weights, Gaussian(model.points, spread))


def _set_sums(P: KDE, Q: KDE, scale: Floats, power: float) -> Floats:
    """Return log sum_st (w_s w'_t)^power exp(-scale |x_s - y_t|^2), G + (a, b)."""
    if P.points.shape[-1] != Q.points.shape[-1]:
        raise ValueError(
            "affinity: both estimates must have the same number of dimensions. "
            f"Got {P.points.shape[-1]} and {Q.points.shape[-1]}."
        )
    return set_sums(_sets(P, power), _sets(Q, power), scale)


def _sets(model: KDE, power: float) -> Sets:
    """Return points and powers of weights as the compiled pass takes them."""
    with np.errstate(divide="ignore"):
        return Sets(model.points, power * np.log(model.weights))
