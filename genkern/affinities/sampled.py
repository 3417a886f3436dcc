"""Affinities between models known by draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.affinities.how import Expected, Power
from genkern.affinities.registry import affinity
from genkern.models.base import rebatch
from genkern.models.sampled import Sampled
from genkern.objects import check_objects, kind_of
from genkern.validation import Floats

BETA = "Jebara, Kondor & Howard (2004), section 5.2, draws of both models"
MEANS = "Mehta & Gray (2010), section 2, means over draws"
CHUNK = 1 << 21  # pairs of draws at a time


def _product_error(P: Sampled, Q: Sampled, how: Power, length: int | None = None) -> float:
    """Return the standard error of the log product, from the spread of the terms."""
    return _relative_error(_product_terms(P, Q, how, length))


def _mean_error(P: Sampled, Q: Sampled, how: Expected, length: int | None = None) -> float:
    """Return the standard error of the log mean map, from the spread of the means over one side's draws."""
    means = _mean_values(P, Q, how, length)
    spread, value = sum(side.var(ddof=1) / len(side) for side in means), means[0].mean()
    return float(math.sqrt(spread) / value) if value > 0.0 else math.inf


@affinity.register(Sampled, Sampled, Power, length="all", exact="sampled", reference=BETA, error=_product_error)
@affinity.register(Sampled, Sampled, Power, length="given", exact="sampled", reference=BETA, error=_product_error)
def sampled_product(P: Sampled, Q: Sampled, how: Power, length: int | None = None) -> Floats:
    r"""Return the log of an unbiased estimate of the product of powers of the densities themselves, G + (a, b).

    .. math:: \frac{1}{N + N'} \sum_{x} \frac{p(x)^\rho q(x)^\rho}{m(x)}, \quad m = \frac{N p + N' q}{N + N'}

    over the draws of both; -inf where no draw is possible under both. For :math:`\rho = 1/2` and as many draws of each
    no term exceeds one.
    """
    return each(P, Q, lambda p, q: _log_mean(_product_terms(p, q, how, length)))


@affinity.register(Sampled, Sampled, Expected, length="all", exact="sampled", reference=MEANS, error=_mean_error)
@affinity.register(Sampled, Sampled, Expected, length="given", exact="sampled", reference=MEANS, error=_mean_error)
def sampled_mean_map(P: Sampled, Q: Sampled, how: Expected, length: int | None = None) -> Floats:
    r"""Return the log of :math:`\frac{1}{N N'} \sum_{xy} e^{-\frac\lambda2 \|x - y\|^2}` over draws, G + (a, b).

    Sequences of one length count as one long vector, symbols as one-hot vectors.
    """
    return each(P, Q, lambda p, q: _log(_mean_values(p, q, how, length)[0].mean()))


def each(P: Sampled, Q: Sampled, value: Callable[[Sampled, Sampled], float]) -> Floats:
    """Return G + (a, b) of one number for every pair."""
    *batch, a = P.shape
    b, g = Q.shape[-1], math.prod(batch)
    left, right = rebatch(P, (g, a)), rebatch(Q, (g, b))
    out = np.empty((g, a, b))
    for i, j, k in np.ndindex(g, a, b):
        out[i, j, k] = value(left[i, j], right[i, k])
    return out.reshape(*batch, a, b)


def _product_terms(p: Sampled, q: Sampled, how: Power, length: int | None) -> Floats:
    """Return the logarithms of the terms, (N + N',)."""
    objects = [*p.draws(length), *q.draws(length)]
    left, right = p.log_prob(objects), q.log_prob(objects)
    share = math.log(p.n / (p.n + q.n)), math.log(q.n / (p.n + q.n))
    with np.errstate(invalid="ignore"):
        terms = how.rho * (left + right) - np.logaddexp(share[0] + left, share[1] + right)
    return np.where(np.isneginf(left) | np.isneginf(right), -np.inf, terms)


def _log_mean(logs: Floats) -> float:
    return float(np.logaddexp.reduce(logs) - math.log(len(logs)))


def _relative_error(logs: Floats) -> float:
    """Return the standard error of the log of a mean, from the logarithms of its terms; infinite if it is zero."""
    if np.isneginf(logs.max()):
        return math.inf
    values = np.exp(logs - logs.max())
    return float(values.std(ddof=1) / math.sqrt(len(values)) / values.mean())


def _mean_values(p: Sampled, q: Sampled, how: Expected, length: int | None) -> tuple[Floats, Floats]:
    """Return the mean kernel value of every draw of p with those of q, (N,), and of q with those of p, (N',)."""
    left, right = p.draws(length), q.draws(length)
    rows, symbols = _vectors([*left, *right])
    first, second = rows[: len(left)], rows[len(left) :]
    means, sums = np.empty(len(first)), np.zeros(len(second))
    step = max(1, CHUNK // len(second))
    for low in range(0, len(first), step):
        some = first[low : low + step]
        squares = np.zeros((len(some), len(second)))
        for column, other in zip(some.T, second.T, strict=True):
            squares += 2.0 * (column[:, None] != other) if symbols else (column[:, None] - other) ** 2
        values = np.exp(-0.5 * how.lam * squares)
        means[low : low + step] = values.mean(axis=1)
        sums += values.sum(axis=0)
    return means, sums / len(first)


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else -math.inf


def _vectors(objects: list[Any]) -> tuple[NDArray[Any], bool]:
    """Return objects of one size as rows, and whether they are symbols."""
    packed = check_objects(objects, kind=kind_of(objects, "affinity", ask=False))
    if len(set(packed.lengths.tolist())) > 1:
        raise ValueError(
            "affinity: draws have different lengths, so there is no distance between them. Give length=, in "
            f"observations. Got lengths from {packed.lengths.min()} to {packed.lengths.max()}."
        )
    return packed.values.reshape(len(objects), -1), packed.alphabet is not None
