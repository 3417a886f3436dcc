"""Affinities between distributions over symbols."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genkern.affinities.how import Expected, Power
from genkern.affinities.overlap import SMALLEST, log_overlap, overlap, smallest
from genkern.affinities.registry import affinity
from genkern.models.families.categorical import Categorical
from genkern.validation import Floats


def product_factors(P: Categorical, Q: Categorical, how: Power) -> tuple[Floats, Floats] | None:
    r"""Return :math:`p^\rho` and :math:`q^\rho`, or None where their products may underflow."""
    check_alphabets(P, Q)
    least = min(smallest(P.probs), smallest(Q.probs))
    return (P.probs**how.rho, Q.probs**how.rho) if least ** (2.0 * how.rho) > SMALLEST else None


@affinity.register(
    Categorical, Categorical, Power, reference="Jebara, Kondor & Howard (2004), section 3.3, a single draw",
    factors=product_factors, whole=True,
)  # fmt: skip
def categorical_product(P: Categorical, Q: Categorical, how: Power) -> Floats:
    r"""Return :math:`\log \sum_k (p_k q_k)^\rho`, G + (a, b)."""
    check_alphabets(P, Q)
    return log_overlap(P.probs, Q.probs, how.rho)


def mean_map_factors(P: Categorical, Q: Categorical, how: Expected) -> tuple[Floats, Floats] | None:
    r"""Return :math:`((1 - e^{-\lambda}) p, 1)` and :math:`(q, e^{-\lambda})`, or None where products may underflow."""
    if how.lam == math.inf:
        return product_factors(P, Q, Power(1.0))
    check_alphabets(P, Q)
    floor = math.exp(-how.lam)
    if floor <= SMALLEST:
        return None
    return _with_column(-math.expm1(-how.lam) * P.probs, 1.0), _with_column(Q.probs, floor)


@affinity.register(
    Categorical, Categorical, Expected, reference="Mehta & Gray (2010), eq. 2, in O(m)", factors=mean_map_factors,
    whole=True,
)  # fmt: skip
def categorical_mean_map(P: Categorical, Q: Categorical, how: Expected) -> Floats:
    r"""Return :math:`\log [(1 - e^{-\lambda}) \langle p, q \rangle + e^{-\lambda}]`, G + (a, b)."""
    check_alphabets(P, Q)
    floor = math.exp(-how.lam)
    if floor > SMALLEST:
        return np.log(-math.expm1(-how.lam) * overlap(P.probs, Q.probs, 1.0) + floor)
    return np.logaddexp(log_overlap(P.probs, Q.probs, 1.0), -how.lam)


def _with_column(p: Floats, value: float) -> Floats:
    """Return rows with one number appended."""
    return np.concatenate([p, np.full((*p.shape[:-1], 1), value)], axis=-1)


def check_alphabets(P: Any, Q: Any) -> None:
    """Raise unless both models have the same symbols."""
    if P.alphabet.symbols != Q.alphabet.symbols:
        raise ValueError(
            "affinity: both models must have the same alphabet. Got the symbols "
            f"{_listed(P.alphabet.symbols)} and {_listed(Q.alphabet.symbols)}; give the estimators alphabet=."
        )


def _listed(symbols: tuple[object, ...]) -> str:
    shown = ", ".join(map(repr, symbols[:8]))
    return f"{shown}, ... ({len(symbols)})" if len(symbols) > 8 else shown
