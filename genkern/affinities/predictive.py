"""Affinities between posterior predictive distributions: negative binomial, Dirichlet-multinomial, Student's t."""

from __future__ import annotations

import math
from typing import cast

import numpy as np
from scipy.special import gammaln

from genkern.affinities.families import crossed, refuse_endless
from genkern.affinities.how import Power
from genkern.affinities.multinomial import check_rows
from genkern.affinities.registry import affinity
from genkern.affinities.rules import PairError
from genkern.core.families.gamma_ratio import log_gamma_excess
from genkern.core.families.predictive import (
    MOST_TERMS,
    NODES,
    WEIGHTS,
    Students,
    count_sums,
    log_row_sums,
    student_integrals,
)
from genkern.models.families.dirichlet_multinomial import DirichletMultinomial
from genkern.models.families.negative_binomial import NegativeBinomial, log_mass
from genkern.models.families.student_t import StudentT
from genkern.validation import Floats

PREDICTIVE = "Jebara, Kondor & Howard (2004), section 2.2, eq. 4, predictive distributions"
CHUNK = 1 << 18  # numbers in a temporary array


@affinity.register(NegativeBinomial, NegativeBinomial, Power, reference=f"{PREDICTIVE}, by a sum")
def negative_binomial_product(P: NegativeBinomial, Q: NegativeBinomial, how: Power) -> Floats:
    r"""Return :math:`\sum_j \log \sum_x [p_j(x)\, q_j(x)]^\rho`, G + (a, b), by sums from their largest terms."""

    def terms(size: Floats, prob: Floats, size2: Floats, prob2: Floats) -> Floats:
        shape = np.broadcast_shapes(size.shape, size2.shape)
        with np.errstate(divide="ignore"):
            fail = np.log1p(-prob) + np.log1p(-prob2)
        flat = [np.broadcast_to(array, shape).ravel() for array in (size, size2, fail)]
        place, sums = (array.reshape(shape) for array in count_sums(flat[0], flat[1], flat[2], how.rho))
        return sums + how.rho * (_each_mass(place, size, prob) + _each_mass(place, size2, prob2))

    logs = crossed(P, Q, terms)
    endless = np.argwhere(np.isposinf(logs))
    if len(endless):
        raise PairError(
            tuple(int(i) for i in endless[0]),
            f"the sum of their product has more than {MOST_TERMS:g} terms. Count in larger units, or compare draws: "
            "Sampled(model, n).",
        )
    return logs


def _each_mass(place: Floats, size: Floats, prob: Floats) -> Floats:
    """Return log probabilities of counts, coordinate by coordinate."""
    return log_mass(place[..., None], size[..., None], prob[..., None])


@affinity.register(
    DirichletMultinomial, DirichletMultinomial, Power, length="all", reference=f"{PREDICTIVE}, by finite sums"
)
@affinity.register(
    DirichletMultinomial, DirichletMultinomial, Power, length="given", reference=f"{PREDICTIVE}, by finite sums"
)
def dirichlet_multinomial_product(
    P: DirichletMultinomial, Q: DirichletMultinomial, how: Power, length: int | None = None
) -> Floats:
    r"""Return the log product of Dirichlet-multinomials of one total s, G + (a, b), in O(m s^2) for each pair.

    .. math:: \left[\frac{\Gamma(A)\, \Gamma(A')}{\Gamma(A + s)\, \Gamma(A' + s)}\right]^\rho (s!)^o\, [z^s]
       \prod_d \sum_x \frac{[(\alpha_d)_x (\alpha'_d)_x]^\rho}{(x!)^o} z^x

    with o = 1 for ordered draws and :math:`2\rho` for rows. A length counts rows, or is s where totals are given.
    """
    check_rows(P, Q, length)
    if not (P.total is None or isinstance(P.total, int)):
        raise ValueError(
            "affinity: DirichletMultinomial models are compared at one total. Give both total=s, or total=None and "
            "length=s, or compare draws: Sampled(model, n)."
        )
    total = cast(int, length) if P.total is None else P.total
    count = 1 if P.total is None or length is None else length
    rho, orders = how.rho, 1.0 if P.ordered else 2.0 * how.rho
    *batch, a = P.shape
    b, m = Q.shape[-1], P.width
    own = [_log_rises(side.alpha.sum(axis=-1), total) for side in (P, Q)]
    out = np.empty((*batch, a, b))
    step = max(1, CHUNK // max(1, math.prod(batch) * b * m))
    for low in range(0, a, step):
        left, right = np.broadcast_arrays(P.alpha[..., low : low + step, None, :], Q.alpha[..., None, :, :])
        sums = log_row_sums(left.reshape(-1, m), right.reshape(-1, m), total, rho, orders)
        out[..., low : low + step, :] = sums.reshape(left.shape[:-1])
    return count * (out + orders * gammaln(total + 1.0) - rho * (own[0][..., :, None] + own[1][..., None, :]))


def _log_rises(whole: Floats, total: int) -> Floats:
    """Return log Gamma(A + s) / Gamma(A)."""
    return total * np.log(whole) + log_gamma_excess(whole, np.float64(total))


@affinity.register(StudentT, StudentT, Power, reference=f"{PREDICTIVE}, by quadrature; univariate, or products of such")
def student_product(P: StudentT, Q: StudentT, how: Power) -> Floats:
    r"""Return :math:`\sum_j \log \int [p_j(x)\, q_j(x)]^\rho dx`, G + (a, b), by quadrature to some 1e-13."""
    left, right = _axes(P), _axes(Q)
    rho = how.rho

    def terms(mean: Floats, scale: Floats, df: Floats, mean2: Floats, scale2: Floats, df2: Floats) -> Floats:
        shape = np.broadcast_shapes(mean.shape, mean2.shape)
        first, second = (
            Students(*(np.broadcast_to(array, shape).ravel() for array in side))
            for side in ((mean, np.sqrt(scale), df), (mean2, np.sqrt(scale2), df2))
        )
        endless = rho * (first.df + second.df + 2.0) <= 1.0
        some = np.flatnonzero(~endless)
        logs = np.full(len(endless), np.inf)
        parts = [Students(*(array[some] for array in side)) for side in (first, second)]
        logs[some] = student_integrals(parts[0], parts[1], rho, NODES, WEIGHTS)
        return logs.reshape(shape) + rho * (_log_factor(scale, df) + _log_factor(scale2, df2))

    return refuse_endless(crossed(left, right, terms), "degrees of freedom are so few", rho)


def _log_factor(scale: Floats, df: Floats) -> Floats:
    """Return the log density of univariate t distributions at their means."""
    # Gamma((df + 1) / 2) / Gamma(df / 2) = (df / 2)^(1 / 2) times what log_gamma_excess gives.
    return log_gamma_excess(0.5 * df, np.float64(0.5)) - 0.5 * np.log(2.0 * math.pi * scale)


def _axes(model: StudentT) -> StudentT:
    """Return a product of univariate distributions, if the model is one."""
    if model.scale.ndim == model.mean.ndim:
        return model
    if model.mean.shape[-1] > 1:
        raise ValueError(
            "affinity: StudentT models are compared by quadrature if they are univariate, or products of such (scales "
            f"of shape (d,)). Got one of {model.mean.shape[-1]} dependent dimensions; compare draws: Sampled(model, n)."
        )
    return StudentT._restore(model.mean, model.scale.reshape(model.mean.shape), model.df.reshape(model.mean.shape))
