"""Affinities between hidden Markov models: one recursion over pairs of states, for all emissions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from genkern.affinities.how import Expected, How, Power
from genkern.affinities.registry import affinity, needs_length
from genkern.affinities.resolvent import log_all_lengths, log_all_lengths_plain
from genkern.affinities.rules import BAND, PairError, set_band
from genkern.core.arrays.products import inner_products
from genkern.core.pairs.plain import pair_log_plain
from genkern.core.pairs.recursion import LANES, PairSide, pair_log, pair_log_factors, pair_log_values
from genkern.models.hmm.model import HMM
from genkern.models.value import rebatch
from genkern.validation import Floats

CHUNK = 1 << 20  # pairs of states at a time, each of which costs one elementary kernel value
FAINT = 1e-280  # a positive weight whose power is smaller may have underflowed; its pairs are computed in logarithms
PAIRED = 512  # pairs at a time: their results are the diagonal of a square
FEW = 64  # most factors of psi for which it is computed on the fly, without a table
ENDLESS = (
    "the sum over all lengths diverges (the state-pair operator has spectral radius >= 1), so the kernel is "
    "infinite. Give length=, take a larger rho, scale real-valued data up, or use the mean map."
)
PRODUCT = "Jebara, Kondor & Howard (2004), section 4.2, the power inside the latent sum"
MEAN_MAP = "Mehta & Gray (2010), proposition 3 and algorithm 1"


class EmissionAffinities(NamedTuple):
    """Affinities of emissions: values, or their logarithms."""

    values: Floats  # (a, n, b, m), or (g, n, m) of pairs
    logs: bool


class Factors(NamedTuple):
    """Affinities of emissions as inner products of non-negative rows."""

    first: Floats  # (a, n, k)
    second: Floats  # (b, m, k)


Psi = EmissionAffinities | Factors


class Solver(NamedTuple):
    """The functions that compute kernel values from chains and psi.

    ``crossed`` takes a models of n states, b models of m states and psi, and returns logs (a, b); with None for the
    latter and psi as factors, all pairs of the former. ``paired`` takes g of each and psi, and returns logs (g,). Up to
    ``few`` factors of psi may be passed as factors.
    """

    crossed: Callable[[PairSide, PairSide | None, Any], Floats]
    paired: Callable[[PairSide, PairSide, Any], Floats]
    few: int


@affinity.register(HMM, HMM, Power, length="given", parts=("emissions",), reference=PRODUCT, whole=True)
@affinity.register(HMM, HMM, Expected, length="given", parts=("emissions",), reference=MEAN_MAP, whole=True)
def state_pair_recursion(P: HMM, Q: HMM, how: How, length: int) -> Floats:
    r"""Return the log kernel between sequences of one length, G + (a, b).

    .. math:: φ_1 = (π^ρ π'^{ρ\,T}) ∘ ψ, \quad φ_{t+1} = [(A^ρ)^T φ_t A'^ρ] ∘ ψ, \quad k = \sum_{ij} φ_L(i, j)

    with ψ the affinity of the emissions, and ρ = 1 for the mean map. End weights and stop probabilities multiply the
    last φ. O(L n n' (n + n')).
    """
    _check_stops(P, Q)

    def crossed(left: PairSide, right: PairSide | None, psi: Psi) -> Floats:
        if isinstance(psi, Factors):
            return pair_log_factors(left, right, *psi, length)
        return (pair_log if psi.logs else pair_log_values)(left, right, psi.values, length)

    def paired(left: PairSide, right: PairSide, psi: Psi) -> Floats:
        if not isinstance(psi, Factors):
            return _squares(crossed, left, right, psi)
        out = np.empty(len(left.start))
        for some in (slice(low, low + PAIRED) for low in range(0, len(out), PAIRED)):
            few = psi.first[some], psi.second[some]
            out[some] = pair_log_factors(_cut(left, some), _cut(right, some), *few, length, paired=True)
        return out

    recursion: Callable[..., float] = pair_log_plain

    def plain(left: PairSide, right: PairSide, log_psi: Floats) -> float:
        return float(recursion(left, right, log_psi, length))

    return _with_faint(P, Q, how, plain, _by_rows(P, Q, how, Solver(crossed, paired, FEW)))


@affinity.register(
    HMM, HMM, Power, length="all", parts=("emissions",), reference=f"{PRODUCT}, summed over lengths", whole=True
)
@affinity.register(
    HMM, HMM, Expected, length="all", parts=("emissions",), reference=f"{MEAN_MAP}, summed over lengths", whole=True
)
def all_lengths(P: HMM, Q: HMM, how: How) -> Floats:
    r"""Return the log kernel between models with stop probabilities e, over sequences of all lengths, G + (a, b).

    .. math:: k = \sum_L k_L = [(π^ρ ⊗ π'^ρ) ∘ ψ]^T (I - M)^{-1} (e^ρ ⊗ e'^ρ), \quad
              M_{ij,kl} = a_{ik}^ρ a'^ρ_{jl} ψ_{kl}
    """
    if P.stop is None and Q.stop is None:
        raise needs_length("HMM x HMM without stop probabilities")
    _check_stops(P, Q)
    return _with_faint(P, Q, how, _sum_plain, _by_rows(P, Q, how, Solver(_sum_crossed, _sum_paired, 0)))


def _with_faint(P: HMM, Q: HMM, how: How, plain: Callable[[PairSide, PairSide, Floats], float], logs: Floats) -> Floats:
    """Set the logs, G + (a, b), of pairs with a weight whose power underflows, by ``plain`` on their logarithms."""
    if how.weight_power <= 1.0:
        return logs
    faint = [_is_faint(side, how.weight_power) for side in (P, Q)]
    for index in np.argwhere(faint[0][..., :, None] | faint[1][..., None, :]):
        *group, i, j = (int(k) for k in index)
        if P is Q and i > j:  # symmetric to the last bit
            logs[(*group, i, j)] = logs[(*group, j, i)]
            continue
        one, other = P[(*group, i)], Q[(*group, j)]
        log_psi = affinity.block(one.emissions, other.emissions, how)
        left, right = (PairSide(*(_log(part, how.weight_power) for part in _parts(side))) for side in (one, other))
        logs[(*group, i, j)] = plain(left, right, np.ascontiguousarray(log_psi))
        if np.isposinf(logs[(*group, i, j)]):
            raise PairError((*group, i, j), ENDLESS)
    return logs


def _is_faint(model: HMM, power: float) -> Any:
    """Return which models of a stack have a positive weight whose power is below FAINT."""
    parts = (part.reshape(*model.shape, -1) for part in _parts(model))
    return np.any([((part > 0) & (part**power < FAINT)).any(axis=-1) for part in parts], axis=0)


def _log(part: Floats, power: float) -> Floats:
    with np.errstate(divide="ignore"):
        return power * np.log(part)


def _check_stops(P: HMM, Q: HMM) -> None:
    if (P.stop is None) != (Q.stop is None):
        raise ValueError(
            "affinity: one HMM has stop probabilities and the other has none, so one is a distribution over "
            "sequences of all lengths and the other over those of a given length. Give both 'stop', or neither."
        )


def _by_rows(P: HMM, Q: HMM, how: How, solver: Solver) -> Floats:
    """Return G + (a, b), with psi computed for a few rows at a time; of a stack with itself half is computed."""
    *batch, a = P.shape
    b = Q.shape[-1]
    if batch:
        g = math.prod(batch)
        first, second = rebatch(P, (g, a)), rebatch(Q, (g, b))
        out = _paired(first, second, how, solver) if a == b == 1 else _each(first, second, how, solver)
        return out.reshape(*batch, a, b)
    left, half = _side(P, how), P is Q
    right = left if half else _side(Q, how)
    (n, m), out = (P.n_states, Q.n_states), np.empty((a, b))
    all_of_them = rebatch(Q.emissions, (b * m,))
    factors = _factors(all_of_them if half else rebatch(P.emissions, (a * n,)), all_of_them, how)
    if factors is not None and factors.first.shape[-1] <= solver.few:
        cube = Factors(factors.first.reshape(a, n, -1), factors.second.reshape(b, m, -1))
        return solver.crossed(left, None if half else right, cube)
    step = max(1, CHUNK // (n * m * b))
    step = min(step, BAND) if half else step
    for low in range(0, a, step):
        rows, begin = slice(low, min(low + step, a)), low if half else 0
        size = rows.stop - low
        try:
            if factors is not None:
                some = factors.first[low * n : rows.stop * n], factors.second[begin * m :]
                psi = EmissionAffinities(inner_products(*some), False)
            else:
                few = rebatch(P[rows].emissions, (size * n,))
                psi = _logs(few, all_of_them[begin * m :], how, lambda i, j: ((i // n, j // m), (i % n, j % m)))
            psi = psi._replace(values=psi.values.reshape(size, n, b - begin, m))
            logs = solver.crossed(_cut(left, rows), _cut(right, slice(begin, b)), psi)
        except PairError as error:
            raise PairError((error.index[0] + low, error.index[1] + begin), error.text) from None
        if half:
            set_band(out, low, logs)
        else:
            out[rows] = logs
    return out


def _each(P: HMM, Q: HMM, how: How, solver: Solver) -> Floats:
    """Return (g, a, b), for one index of g after the other."""
    blocks = []
    for i in range(len(P)):
        try:
            blocks.append(_by_rows(P[i], Q[i], how, solver))
        except PairError as error:
            raise PairError((i, *error.index), error.text) from None
    return np.stack(blocks)


def _paired(P: HMM, Q: HMM, how: How, solver: Solver) -> Floats:
    """Return (g, 1, 1) for stacks of batch (g, 1)."""
    first, second = rebatch(P, (len(P),)), rebatch(Q, (len(P),))
    factors = _factors(first.emissions, second.emissions, how)
    psi: Psi
    if factors is None:
        psi = _logs(first.emissions, second.emissions, how, lambda g, i, j: ((g, 0, 0), (i, j)))
    else:
        psi = factors if factors.first.shape[-1] <= solver.few else EmissionAffinities(inner_products(*factors), False)
    return solver.paired(_side(first, how), _side(second, how), psi)[:, None, None]


def _factors(P: Any, Q: Any, how: How) -> Factors | None:
    """Return factors of the affinities of emissions, G + (a, k) and G + (b, k), if there are."""
    found = affinity.factors(P, Q, how)
    return None if found is None else Factors(*found)


def _logs(
    P: Any, Q: Any, how: How, locate: Callable[..., tuple[tuple[int, ...], tuple[int, int]]]
) -> EmissionAffinities:
    """Return log affinities of emissions, G + (a, b); ``locate`` turns an index into models' and states'."""
    try:
        return EmissionAffinities(affinity.block(P, Q, how), True)
    except PairError as error:
        models, (s, t) = locate(*error.index)
        raise PairError(models, f"in the emissions of states {s} and {t}, {error.text}") from None


def _squares(crossed: Callable[..., Floats], left: PairSide, right: PairSide, psi: EmissionAffinities) -> Floats:
    """Return logs (g,) of pairs as the diagonals of small squares.

    The compiled recursion computes eight models at once if they have few states, and each call has an overhead, so that
    squares are much cheaper than one call for every pair.
    """
    (g, n), m = left.start.shape, right.start.shape[1]
    out = np.empty(g)
    step = 64 if max(n, m) <= 4 else 8 if max(n, m) <= LANES else 1
    for low in range(0, g, step):
        some = slice(low, min(low + step, g))
        # Every row of the square uses the columns' own psi: right on the diagonal, and harmless elsewhere.
        size = some.stop - low
        values = np.broadcast_to(psi.values[some].transpose(1, 0, 2), (size, n, size, m))
        out[some] = np.diagonal(crossed(_cut(left, some), _cut(right, some), psi._replace(values=values)))
    return out


def _sum_crossed(left: PairSide, right: PairSide | None, psi: EmissionAffinities) -> Floats:
    """Return logs (a, b) summed over all lengths; psi are no factors."""
    assert right is not None
    a, _, b, _ = psi.values.shape
    i, j = np.divmod(np.arange(a * b), b)
    first, second = (PairSide(*(part[k] for part in side)) for side, k in ((left, i), (right, j)))
    try:
        return _sum_paired(first, second, psi._replace(values=psi.values[i, :, j, :])).reshape(a, b)
    except PairError as error:
        raise PairError(divmod(error.index[0], b), error.text) from None


def _sum_paired(left: PairSide, right: PairSide, psi: EmissionAffinities) -> Floats:
    """Return logs (g,) summed over all lengths; a pair for which the sum diverges is an error."""
    g, n, m = psi.values.shape
    with np.errstate(divide="ignore"):
        log_psi = psi.values if psi.logs else np.log(psi.values)
    logs = np.empty(g)
    step = max(1, CHUNK // (n * m) ** 2)
    for low in range(0, g, step):
        some = slice(low, low + step)
        logs[some] = log_all_lengths(_cut(left, some), _cut(right, some), log_psi[some])
    endless = np.flatnonzero(np.isposinf(logs))
    if len(endless):
        raise PairError(
            (int(endless[0]), 0, 0),
            ENDLESS,
        )
    return logs


def _sum_plain(left: PairSide, right: PairSide, log_psi: Floats) -> float:
    """Return the log summed over all lengths of one pair, from logarithms."""
    first, second = (PairSide(*(part[None] for part in side)) for side in (left, right))
    return float(log_all_lengths_plain(first, second, log_psi[None])[0])


def _side(model: HMM, how: How) -> PairSide:
    """Return start, transitions and end (ones if there is none) of a stack of batch (a,), to the weights' power."""
    power, parts = how.weight_power, _parts(model)
    return PairSide(*parts) if power == 1.0 else PairSide(*(part**power for part in parts))


def _parts(model: HMM) -> tuple[Floats, Floats, Floats]:
    """Return start, transitions and end, ones if there is none."""
    end = np.ones_like(model.start) if model.final is None else model.final
    return model.start, model.transitions, end


def _cut(side: PairSide, rows: slice) -> PairSide:
    return PairSide(side.start[rows], side.transitions[rows], side.end[rows])
