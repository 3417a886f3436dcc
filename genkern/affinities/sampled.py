"""Affinities between models represented by draws."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.affinities.how import Expected, Mean, Power
from genkern.affinities.registry import affinity
from genkern.data.objects import check_objects, kind_of
from genkern.models.adapt.adapted import Adapted
from genkern.models.sampled import Sampled
from genkern.models.value import Value, rebatch
from genkern.validation import Floats

BETA = "Jebara, Kondor & Howard (2004), section 5, draws of both models"
MEANS = "Mehta & Gray (2010), section 2, means over draws"
CHUNK = 1 << 21  # pairs of draws at a time


def _product_error(P: Sampled, Q: Sampled, how: Power, length: int | None = None) -> float:
    """Return the standard error of the log product, from the spread of the terms."""
    _, found = next(densities(P.stack([P]), Q.stack([Q]), length))
    return _relative_error(_product_terms(P, Q, how, found))


def mean_error(P: Sampled, Q: Sampled, how: Mean, length: int | None = None) -> float:
    """Return the standard error of the log mean map, from the spread of the means over one side's draws."""
    (first, second), symbols = _vectors([P.draws(length), Q.draws(length)])
    means = _mean_values(first, second, symbols, how)
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
    out = np.empty((*P.shape, Q.shape[-1]))
    for index, found in densities(P, Q, length):
        out[index] = _log_mean(_product_terms(P, Q, how, found))
    return out


@affinity.register(Sampled, Sampled, Expected, length="all", exact="sampled", reference=MEANS, error=mean_error)
@affinity.register(Sampled, Sampled, Expected, length="given", exact="sampled", reference=MEANS, error=mean_error)
def sampled_mean_map(P: Sampled, Q: Sampled, how: Mean, length: int | None = None) -> Floats:
    r"""Return the log of :math:`\frac{1}{N N'} \sum_{xy} e^{-\frac\lambda2 \|x - y\|^2}` over draws, G + (a, b).

    Of the Laplace kernel, likewise. Sequences of one length are treated as one long vector, symbols as one-hot vectors.
    """
    out = np.empty((*P.shape, Q.shape[-1]))
    for block, left, right in _blocks(P, Q):
        rows, symbols = _vectors([model.draws(length) for model in (*left, *right)])
        for i, k in np.ndindex(len(left), len(right)):
            out[(*block, i, k)] = _log(_mean_values(rows[i], rows[len(left) + k], symbols, how)[0].mean())
    return out


def _drawn(P: Any, n: int, seed: int) -> Sampled:
    """Return a model or stack as known by draws."""
    members = [Sampled(P[index] if P.shape else P, n, seed) for index in np.ndindex(P.shape)]
    return rebatch(Sampled.stack(members), P.shape)


def by_draws(P: Adapted, Q: Any) -> tuple[Sampled, Sampled]:
    """Return both sides as known by draws: as many of the second as of the first, unless it says how many."""
    n, seed = P.n_draws, P.seed
    left = _drawn(P, n, seed)
    if isinstance(Q, Sampled):
        return left, Q
    return left, left if Q is P else _drawn(Q, getattr(Q, "n_draws", n), getattr(Q, "seed", seed))


def _adapted_product_error(P: Adapted, Q: Any, how: Power, length: int | None = None) -> float:
    return _product_error(*by_draws(P, Q), how, length)


def adapted_mean_error(P: Adapted, Q: Any, how: Mean, length: int | None = None) -> float:
    """Return ``mean_error`` of models as known by draws."""
    return mean_error(*by_draws(P, Q), how, length)


@affinity.register(Adapted, Value, Power, length="all", exact="sampled", reference=BETA, error=_adapted_product_error)
@affinity.register(Adapted, Value, Power, length="given", exact="sampled", reference=BETA, error=_adapted_product_error)
def adapted_product(P: Adapted, Q: Any, how: Power, length: int | None = None) -> Floats:
    """Return ``sampled_product`` of somebody's models with others, each represented by draws."""
    return sampled_product(*by_draws(P, Q), how, length)


@affinity.register(Adapted, Value, Expected, length="all", exact="sampled", reference=MEANS, error=adapted_mean_error)
@affinity.register(Adapted, Value, Expected, length="given", exact="sampled", reference=MEANS, error=adapted_mean_error)
def adapted_mean_map(P: Adapted, Q: Any, how: Mean, length: int | None = None) -> Floats:
    """Return ``sampled_mean_map`` of somebody's models with others, each represented by draws."""
    return sampled_mean_map(*by_draws(P, Q), how, length)


class Densities(NamedTuple):
    """Log densities at the draws of two models: ``left`` of the first, (N,) and (N',), ``right`` of the second."""

    left: tuple[Floats, Floats]
    right: tuple[Floats, Floats]


def densities(P: Sampled, Q: Sampled, length: int | None) -> Iterator[tuple[tuple[int, ...], Densities]]:
    """Yield every index in G + (a, b) with the densities; models are evaluated once at all draws of the other side."""
    for block, left, right in _blocks(P, Q):
        own = [[model.log_prob(model.draws(length)) for model in side] for side in (left, right)]
        theirs = [_at_draws(model, right, length) for model in left]
        ours = [_at_draws(model, left, length) for model in right]
        for i, k in np.ndindex(len(left), len(right)):
            yield (*block, i, k), Densities((own[0][i], theirs[i][k]), (ours[k][i], own[1][k]))


def _blocks(P: Sampled, Q: Sampled) -> Iterator[tuple[tuple[int, ...], list[Sampled], list[Sampled]]]:
    """Yield every index in G with the models of both sides."""
    for block in np.ndindex(P.shape[:-1]):
        yield block, [P[(*block, i)] for i in range(P.shape[-1])], [Q[(*block, k)] for k in range(Q.shape[-1])]


def _at_draws(model: Sampled, others: list[Sampled], length: int | None) -> list[Floats]:
    """Return the log densities of a model at the draws of each of the others."""
    draws = [other.draws(length) for other in others]
    logs = model.log_prob([x for some in draws for x in some])
    return np.split(logs, np.cumsum([len(some) for some in draws])[:-1])


def _product_terms(p: Sampled, q: Sampled, how: Power, found: Densities) -> Floats:
    """Return the logarithms of the terms, (N + N',)."""
    left, right = (np.concatenate(side) for side in found)
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


def _mean_values(first: NDArray[Any], second: NDArray[Any], symbols: bool, how: Mean) -> tuple[Floats, Floats]:
    """Return the mean kernel values (N,) of the first draws (N, d) with the second (N', d), and the other way."""
    means, sums = np.empty(len(first)), np.zeros(len(second))
    scale = how.scale * (how.lam if symbols else how.finite)
    step = max(1, CHUNK // len(second))
    for low in range(0, len(first), step):
        some = first[low : low + step]
        apart = np.zeros((len(some), len(second)))
        for column, other in zip(some.T, second.T, strict=True):
            apart += 2.0 * (column[:, None] != other) if symbols else how.apart(column[:, None] - other)
        values = np.exp(np.multiply(-scale, apart, out=np.zeros_like(apart), where=apart > 0.0))
        means[low : low + step] = values.mean(axis=1)
        sums += values.sum(axis=0)
    return means, sums / len(first)


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else -math.inf


def _vectors(draws: list[list[Any]]) -> tuple[list[NDArray[Any]], bool]:
    """Return objects of one size as rows, list by list, and whether they are symbols."""
    objects = [np.full((1, 1), float(x)) if isinstance(x, float | int) else x for some in draws for x in some]
    packed = check_objects(objects, kind=kind_of(objects, "affinity", ask=False))
    if len(set(packed.lengths.tolist())) > 1:
        raise ValueError(
            "affinity: draws have different lengths, so there is no distance between them. Give length=, in "
            f"observations. Got lengths from {packed.lengths.min()} to {packed.lengths.max()}."
        )
    rows = packed.values.reshape(packed.n_objects, -1)
    return np.split(rows, np.cumsum([len(some) for some in draws])[:-1]), packed.alphabet is not None
