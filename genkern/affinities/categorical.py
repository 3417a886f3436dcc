"""Affinities between distributions over symbols."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genkern.affinities.how import Expected, Power
from genkern.affinities.registry import affinity
from genkern.models.categorical import Categorical
from genkern.validation import Floats

# A product with a short inner dimension is not worth waking other threads, which BLAS would do; so such products are
# cut into pieces of so few multiplications that it does not.
SHORT, SERIAL = 32, 1 << 18
SMALLEST = 1e-280  # sums below may have lost terms to underflow and are done again in logs


def product_values(P: Categorical, Q: Categorical, how: Power) -> Floats | None:
    r"""Return :math:`\sum_k (p_k q_k)^\rho`, G + (a, b), or None where it may underflow."""
    check_alphabets(P, Q)
    smallest = min(P.probs[P.probs > 0].min(), Q.probs[Q.probs > 0].min())
    return _overlap(P.probs, Q.probs, how.rho) if smallest ** (2.0 * how.rho) > SMALLEST else None


@affinity.register(
    Categorical, Categorical, Power, reference="Jebara, Kondor & Howard (2004), section 3.3, a single draw",
    values=product_values,
)  # fmt: skip
def categorical_product(P: Categorical, Q: Categorical, how: Power) -> Floats:
    r"""Return :math:`\log \sum_k (p_k q_k)^\rho`, G + (a, b)."""
    check_alphabets(P, Q)
    return log_overlap(P.probs, Q.probs, how.rho)


def mean_map_values(P: Categorical, Q: Categorical, how: Expected) -> Floats | None:
    r"""Return :math:`(1 - e^{-\lambda}) \langle p, q \rangle + e^{-\lambda}`, or None where it may underflow."""
    check_alphabets(P, Q)
    floor = math.exp(-how.lam)
    return -math.expm1(-how.lam) * _overlap(P.probs, Q.probs, 1.0) + floor if floor > SMALLEST else None


@affinity.register(
    Categorical, Categorical, Expected, reference="Mehta & Gray (2010), eq. 2, in O(m)", values=mean_map_values
)
def categorical_mean_map(P: Categorical, Q: Categorical, how: Expected) -> Floats:
    r"""Return :math:`\log [(1 - e^{-\lambda}) \langle p, q \rangle + e^{-\lambda}]`, G + (a, b)."""
    values = mean_map_values(P, Q, how)
    if values is not None:
        return np.log(values)
    return np.logaddexp(log_overlap(P.probs, Q.probs, 1.0), -how.lam)


def _overlap(p: Floats, q: Floats, power: float) -> Floats:
    """Return sum_k (p_k q_k)^power for rows G + (a, m) and G + (b, m)."""
    if power != 1.0:
        p, q = p**power, q**power
    turned = np.swapaxes(q, -1, -2)
    rows = max(1, SERIAL // max(1, q.shape[-2] * q.shape[-1]))
    if p.ndim > 2 or q.shape[-1] > SHORT or rows >= len(p):
        return p @ turned
    sums = np.empty((len(p), len(q)))
    for low in range(0, len(p), rows):
        np.matmul(p[low : low + rows], turned, out=sums[low : low + rows])
    return sums


def log_overlap(p: Floats, q: Floats, power: float) -> Floats:
    """Return log sum_k (p_k q_k)^power, G + (a, b); -inf where the supports are disjoint."""
    sums = _overlap(p, q, power)
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
