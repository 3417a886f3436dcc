"""Affinities between distributions over symbols."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genkern.affinities.how import Expected, Power
from genkern.affinities.registry import affinity
from genkern.core.products import inner_products
from genkern.models.categorical import Categorical
from genkern.validation import Floats

SMALLEST = 1e-280  # sums below may have lost terms to underflow and are done again in logs


def product_factors(P: Categorical, Q: Categorical, how: Power) -> tuple[Floats, Floats] | None:
    r"""Return :math:`p^\rho` and :math:`q^\rho`, or None where their products may underflow."""
    check_alphabets(P, Q)
    smallest = min(P.probs[P.probs > 0].min(), Q.probs[Q.probs > 0].min())
    return (P.probs**how.rho, Q.probs**how.rho) if smallest ** (2.0 * how.rho) > SMALLEST else None


@affinity.register(
    Categorical, Categorical, Power, reference="Jebara, Kondor & Howard (2004), section 3.3, a single draw",
    factors=product_factors,
)  # fmt: skip
def categorical_product(P: Categorical, Q: Categorical, how: Power) -> Floats:
    r"""Return :math:`\log \sum_k (p_k q_k)^\rho`, G + (a, b)."""
    check_alphabets(P, Q)
    return log_overlap(P.probs, Q.probs, how.rho)


def mean_map_factors(P: Categorical, Q: Categorical, how: Expected) -> tuple[Floats, Floats] | None:
    r"""Return :math:`((1 - e^{-\lambda}) p, 1)` and :math:`(q, e^{-\lambda})`, or None where products may underflow."""
    check_alphabets(P, Q)
    floor = math.exp(-how.lam)
    if floor <= SMALLEST:
        return None
    return _with_column(-math.expm1(-how.lam) * P.probs, 1.0), _with_column(Q.probs, floor)


@affinity.register(
    Categorical, Categorical, Expected, reference="Mehta & Gray (2010), eq. 2, in O(m)", factors=mean_map_factors
)
def categorical_mean_map(P: Categorical, Q: Categorical, how: Expected) -> Floats:
    r"""Return :math:`\log [(1 - e^{-\lambda}) \langle p, q \rangle + e^{-\lambda}]`, G + (a, b)."""
    factors = mean_map_factors(P, Q, how)
    if factors is not None:
        return np.log(inner_products(*factors))
    return np.logaddexp(log_overlap(P.probs, Q.probs, 1.0), -how.lam)


def _with_column(p: Floats, value: float) -> Floats:
    """Return rows with one number appended."""
    return np.concatenate([p, np.full((*p.shape[:-1], 1), value)], axis=-1)


def log_overlap(p: Floats, q: Floats, power: float) -> Floats:
    """Return log sum_k (p_k q_k)^power, G + (a, b); -inf where the supports are disjoint."""
    sums = inner_products(p, q) if power == 1.0 else inner_products(p**power, q**power)
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(sums)
        lost = np.argwhere(sums < SMALLEST)
        if len(lost):
            pairs = tuple(lost[:, :-2].T)
            terms = power * (np.log(p[(*pairs, lost[:, -2])]) + np.log(q[(*pairs, lost[:, -1])]))
            logs[tuple(lost.T)] = np.logaddexp.reduce(terms, axis=-1)
    return logs


def check_alphabets(P: Any, Q: Any) -> None:
    """Raise unless both models speak of the same symbols."""
    if P.alphabet.symbols != Q.alphabet.symbols:
        raise ValueError(
            "affinity: both models must have the same alphabet. Got the symbols "
            f"{_listed(P.alphabet.symbols)} and {_listed(Q.alphabet.symbols)}; give the estimators alphabet=."
        )


def _listed(symbols: tuple[object, ...]) -> str:
    shown = ", ".join(map(repr, symbols[:8]))
    return f"{shown}, ... ({len(symbols)})" if len(symbols) > 8 else shown
