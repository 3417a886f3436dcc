"""Affinities between multinomial distributions: of fixed totals, and of random ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from genkern.affinities.how import Power
from genkern.affinities.overlap import SparseRows, log_overlap, log_sparse_overlap
from genkern.affinities.registry import affinity
from genkern.affinities.rules import PairError
from genkern.core.families.power_series import log_power_series, log_totals
from genkern.models.families.counts import CountLeaf
from genkern.models.families.multinomial import Multinomial
from genkern.models.families.sparse_multinomial import SparseMultinomial
from genkern.models.value import rebatch
from genkern.validation import Floats

ROWS = "Jebara, Kondor & Howard (2004), section 3.3, any rho"
SPARSE = f"{ROWS}; a sparse product, of ordered draws or with rho = 1/2"
CHUNK = 1 << 20  # numbers in a temporary array
MAX_TOTAL = 4096  # of rows with random totals that have no closed form
NEGLIGIBLE = 45.0  # minus the logarithm of the truncation error of a sum


@affinity.register(Multinomial, Multinomial, Power, length="all", reference=ROWS, whole=True)
@affinity.register(Multinomial, Multinomial, Power, length="given", reference=ROWS, whole=True)
@affinity.register(SparseMultinomial, SparseMultinomial, Power, length="all", reference=SPARSE, whole=True)
@affinity.register(SparseMultinomial, SparseMultinomial, Power, length="given", reference=SPARSE, whole=True)
@affinity.register(SparseMultinomial, Multinomial, Power, length="all", reference=SPARSE, whole=True)
@affinity.register(SparseMultinomial, Multinomial, Power, length="given", reference=SPARSE, whole=True)
def multinomial_product(P: Any, Q: Any, how: Power, length: int | None = None) -> Floats:
    r"""Return the log product of multinomials, G + (a, b).

    With :math:`B = \sum_d (p_d q_d)^\rho`, an ordered list of s draws has :math:`B^s`, and a row of counts

    .. math:: (s!)^{2\rho}\, [z^s] \prod_d \sum_x \frac{(p_d q_d)^{\rho x}}{(x!)^{2\rho}} z^x

    (the same for :math:`\rho = 1/2`). Random totals sum these over s, each times :math:`(w_s w'_s)^\rho`: for
    :math:`\rho = 1/2` and one law w, its generating function at B. Where totals are known, a length counts independent
    rows; where they are given (None), it is the total at which rows are compared.
    """
    check_rows(P, Q, length)
    if not _plain(P, how.rho) and isinstance(P, SparseMultinomial):
        raise ValueError(
            f"affinity: sparse multinomials of unordered rows have no sparse formula for rho = {how.rho:g}. Take rho = "
            "0.5, fit with ordered=True, or compare model.to_multinomial()."
        )
    if P.total is None:
        return _fixed_totals(P, Q, how.rho, cast(int, length))
    count = 1 if length is None else length
    if isinstance(P.total, int):
        return count * _fixed_totals(P, Q, how.rho, P.total)
    law: Any = P.total
    return count * LAWS[law.family_name](P, Q, how.rho)


def _overlap(P: Any, Q: Any, rho: float) -> Floats:
    """Return log sum_d (p_d q_d)^rho, G + (a, b)."""
    if not isinstance(P, SparseMultinomial):
        return log_overlap(P.probs, Q.probs, rho)
    *batch, a = P.shape
    b = Q.shape[-1]
    if not batch:
        left = _sparse_rows(P)
        return log_sparse_overlap(left, left if Q is P else _sparse_rows(Q), rho)
    if a == b == 1:
        left, right = (_sparse_rows(rebatch(side, (math.prod(batch),))) for side in (P, Q))
        return log_sparse_overlap(left, right, rho, paired=True).reshape(*batch, 1, 1)
    out = np.empty((*batch, a, b))
    for index in np.ndindex(*batch):
        out[index] = _overlap(P[index], Q[index], rho)
    return out


def _sparse_rows(model: Any) -> SparseRows:
    """Return the probabilities of a stack of batch (n,); those of a ``Multinomial`` are all listed."""
    if isinstance(model, SparseMultinomial):
        return SparseRows(model.columns, model.probs, model.rest, model.width)
    columns = np.broadcast_to(np.arange(model.width, dtype=np.int32), model.probs.shape)
    return SparseRows(columns, model.probs, np.zeros(len(model)), model.width)


def _plain(P: Multinomial, rho: float) -> bool:
    """Return whether the value of s draws is the s-th power of that of one."""
    return P.ordered or rho == 0.5


def _fixed_totals(P: Multinomial, Q: Multinomial, rho: float, total: int) -> Floats:
    if total == 0:
        return np.zeros((*P.shape, Q.shape[-1]))
    if _plain(P, rho):
        return total * _overlap(P, Q, rho)
    return _by_rows(P, Q, lambda logs: log_totals(rho * logs, total, 2.0 * rho)[:, total])


def _poisson_totals(P: Multinomial, Q: Multinomial, rho: float) -> Floats:
    rate, rate2 = (float(law.rate[0]) for law in _laws(P, Q))
    log_rates = math.log(rate) + math.log(rate2) if rate > 0.0 and rate2 > 0.0 else -math.inf
    if _plain(P, rho):
        logs = rho * log_rates + _overlap(P, Q, rho)
        sums = log_power_series(logs.ravel(), 2.0 * rho).reshape(logs.shape)
    else:
        sums = _by_rows(P, Q, lambda logs: _row_sums(rho * (logs + log_rates), 2.0 * rho))
    return sums - rho * (rate + rate2)


def _geometric_totals(P: Multinomial, Q: Multinomial, rho: float) -> Floats:
    prob, prob2 = (float(law.prob[0]) for law in _laws(P, Q))
    start = rho * (math.log(prob) + math.log(prob2))
    if prob == 1.0 or prob2 == 1.0:  # no draw at all
        return np.full((*P.shape, Q.shape[-1]), start)
    log_fail = rho * (math.log1p(-prob) + math.log1p(-prob2))
    if not _plain(P, rho):
        steps = log_fail * np.arange(_enough(-log_fail, P.width, rho) + 1)
        largest = len(steps) - 1
        return start + _by_rows(
            P, Q, lambda logs: np.logaddexp.reduce(log_totals(rho * logs, largest, 2.0 * rho) + steps, axis=1)
        )
    log_ratio = log_fail + _overlap(P, Q, rho)
    endless = np.argwhere(log_ratio >= 0.0)
    if len(endless):
        raise PairError(
            tuple(int(i) for i in endless[0]),
            f"the sum over totals is infinite for rho = {rho:g}. Take rho >= 1/2, for which it always converges.",
        )
    sums: Floats = start - np.log(-np.expm1(log_ratio))
    return sums


def _enough(rate: float, outcomes: int, rho: float) -> int:
    """Return a total beyond which rows of counts add nothing to a sum with weights exp(-rate s).

    Rows of total s have at most the sum over all C(s + m - 1, m - 1) of them of (p q)^rho, which is at most their
    number to the power 1 - 2 rho, or one.
    """
    total, growth = 0, max(0.0, 1.0 - 2.0 * rho)
    while True:
        number = math.lgamma(total + outcomes) - math.lgamma(total + 1.0) - math.lgamma(outcomes)
        needed = math.ceil((NEGLIGIBLE + growth * number) / rate)
        if needed <= total:
            return total
        if needed > MAX_TOTAL:
            raise ValueError(
                f"affinity: rows of counts (ordered=False) with geometric totals and rho = {rho:g} need totals up to "
                f"{needed}; {MAX_TOTAL} at most are summed. Take rho = 0.5 or ordered=True, which have closed forms, "
                "or a Poisson law of totals."
            )
        total = needed


def _laws(P: Multinomial, Q: Multinomial) -> tuple[Any, Any]:
    return P.total, Q.total


def check_rows(P: CountLeaf | SparseMultinomial, Q: CountLeaf | SparseMultinomial, length: int | None) -> None:
    """Raise unless both are distributions over the same rows."""
    if P.width != Q.width:
        raise ValueError(f"affinity: both multinomials must have the same outcomes. Got {P.width} and {Q.width}.")
    if P.ordered != Q.ordered:
        raise ValueError("affinity: one multinomial is ordered and the other is not. Give both the same 'ordered'.")
    if (P.total is None and Q.total is None) and length is None:
        raise ValueError(
            f"affinity: a {type(P).__name__} without a total is no distribution over rows, only over rows of a given "
            "sum. Give length=, the sum at which rows are compared, or both the same total=, a number or a law such as "
            "Poisson(20.0)."
        )
    if type(P.total) is not type(Q.total) and None in (P.total, Q.total):
        raise ValueError("affinity: one of both is without a total and the other has one. Give both the same total=.")
    if type(P.total) is not type(Q.total):
        kinds = (type(P.total).__name__, type(Q.total).__name__)
        raise ValueError(f"affinity: the totals of both multinomials must follow the same family. Got {kinds}.")
    if isinstance(P.total, int) and P.total != Q.total:
        raise ValueError(
            f"affinity: both multinomials must have the same total. Got {P.total} and {Q.total}: rows of one never "
            "occur under the other. Give both one total=, or a law of totals."
        )


def _by_rows(P: Multinomial, Q: Multinomial, reduce: Callable[[Floats], Floats]) -> Floats:
    """Return G + (a, b): ``reduce`` takes rows (N, m) of log p_d q_d of pairs and returns (N,)."""
    *batch, a = P.shape
    b = Q.shape[-1]
    with np.errstate(divide="ignore"):
        left, right = np.log(P.probs), np.log(Q.probs)
    out = np.empty((*batch, a, b))
    step = max(1, CHUNK // max(1, math.prod(batch) * b * P.width))
    for low in range(0, a, step):
        first = low if P is Q and not batch else 0  # earlier columns are mirrored
        logs = left[..., low : low + step, None, :] + right[..., None, first:, :]
        out[..., low : low + step, first:] = reduce(logs.reshape(-1, P.width)).reshape(logs.shape[:-1])
        if first:
            out[low : low + step, :first] = out[:first, low : low + step].T
    return out


def _row_sums(logs: Floats, power: float) -> Floats:
    """Return the sums (N,) over the last axis of the log power series of every entry."""
    sums: Floats = log_power_series(logs.ravel(), power).reshape(logs.shape).sum(axis=-1)
    return sums


LAWS = {"poisson": _poisson_totals, "geometric": _geometric_totals}  # of random totals
