"""Affinities between Markov chains over symbols, with each other and with hidden Markov models."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from genkern.affinities.categorical import check_alphabets
from genkern.affinities.hmm import MEAN_MAP, PRODUCT, state_pair_recursion
from genkern.affinities.how import Expected, How, Power
from genkern.affinities.registry import affinity
from genkern.models.families.categorical import Categorical
from genkern.models.families.site import SiteModel
from genkern.models.hmm.model import HMM
from genkern.models.markov.base import Chain
from genkern.models.markov.model import MarkovChain
from genkern.validation import Floats

CHUNK = 1 << 21  # numbers in a temporary array
STEADY = 1e-15  # a step that changes no share of the mass by more has reached the limit,
SAME = 1e-13  # if it changes none by more than this part of itself either: a faint share may grow
FAINT = 1e-150  # a positive number below it may underflow in a product; its pair is computed in logarithms


@affinity.register(
    MarkovChain, MarkovChain, Power, length="given", reference=f"{PRODUCT}; there is none, all symbols are seen"
)
def chain_product(P: MarkovChain, Q: MarkovChain, how: Power, length: int) -> Floats:
    r"""Return the log product of Markov chains over sequences of one length, G + (a, b).

    .. math:: \log \sum_x \Big(s(x_0..x_{k-1})\, s'(x_0..x_{k-1}) \prod_t \theta(x_t|..)\, \theta'(x_t|..)\Big)^\rho

    by a recursion over contexts, :math:`O(L m^{k+1})`; a chain of lower order is lifted to the higher one.
    """
    check_alphabets(P, Q)
    order = max(P.order, Q.order, 1)
    left, right = _lifted(P, order, length), _lifted(Q, order, length)
    *batch, a = P.shape
    b, m, rho = Q.shape[-1], P.alphabet.size, how.rho
    out = np.empty((*batch, a, b))
    size = max(1, CHUNK // max(1, math.prod(batch) * b * m ** (order + 1)))
    for low in range(0, a, size):
        rows = (..., slice(low, low + size), None, slice(None))
        starts = (left.start[rows], right.start[..., None, :, :])
        moves = (left.steps[(*rows, slice(None))], right.steps[..., None, :, :, :])
        out[..., low : low + size, :] = _log_mass(starts, moves, rho, max(length - order, 0))
    return out


@affinity.register(Chain, Chain, Power, length="given", reference=f"{PRODUCT}; a chain as a hidden Markov model")
@affinity.register(Chain, Chain, Expected, length="given", reference=f"{MEAN_MAP}; a chain as a hidden Markov model")
@affinity.register(Chain, HMM, Power, length="given", reference=f"{PRODUCT}; a chain as a hidden Markov model")
@affinity.register(Chain, HMM, Expected, length="given", reference=f"{MEAN_MAP}; a chain as a hidden Markov model")
def chain_as_hmm(P: Chain, Q: Chain | HMM, how: How, length: int) -> Floats:
    """Return the log kernel of a chain and a chain or hidden Markov model over sequences of one length, G + (a, b).

    States of the chain are the last symbols seen, so that the power inside the sum over paths is that of the sequence.
    """
    return state_pair_recursion(P.as_hmms(length, "affinity"), Q.as_hmms(length, "affinity"), how, length)


@affinity.register(
    SiteModel, SiteModel, Power, reference="Jebara, Kondor & Howard (2004), section 3.3, position by position"
)
@affinity.register(SiteModel, SiteModel, Expected, reference="Mehta & Gray (2010), eq. 2, position by position")
def site_by_site(P: SiteModel, Q: SiteModel, how: How) -> Floats:
    """Return the sum over positions of the affinities of their categorical distributions, G + (a, b)."""
    if P.probs.shape[-2] != Q.probs.shape[-2]:
        raise ValueError(
            "affinity: both site models must have the same number of positions. "
            f"Got {P.probs.shape[-2]} and {Q.probs.shape[-2]}."
        )
    check_alphabets(P, Q)
    total = np.zeros((*P.shape, Q.shape[-1]))
    for site in range(P.probs.shape[-2]):
        left, right = (Categorical(side.probs[..., site, :], side.alphabet) for side in (P, Q))
        total += affinity.block(left, right, how)
    return total


class Contexts(NamedTuple):
    """Chains of one order k: the law batch + (m^k,) of the first k symbols, and steps batch + (m^k, m)."""

    start: Floats
    steps: Floats


def _lifted(chain: MarkovChain, order: int, length: int) -> Contexts:
    """Return a chain of this order with the same law; of sequences of fewer symbols, the law of these."""
    batch, m, k = chain.shape, chain.alphabet.size, chain.order
    start, steps = chain.start.reshape(*batch, -1), chain.transitions.reshape(*batch, -1, m)
    for extra in range(order - k):
        start = (start[..., None] * np.tile(steps, (m**extra, 1))).reshape(*batch, -1)
    if length < order:
        start = start.reshape(*batch, m**length, -1).sum(axis=-1)
    return Contexts(start, np.tile(steps, (m ** (order - k), 1)))


def _log_mass(starts: tuple[Floats, Floats], moves: tuple[Floats, Floats], rho: float, count: int) -> Floats:
    """Return the log of the total mass after so many steps, from both chains' starts and steps, not yet to the power.

    Pairs in which a positive number falls below FAINT are done again in logarithms.
    """
    mass, steps = starts[0] ** rho * starts[1] ** rho, moves[0] ** rho * moves[1] ** rho
    shape = mass.shape[:-1]
    faint = ((mass < FAINT) & (starts[0] > 0) & (starts[1] > 0)).any(axis=-1)
    faint |= ((steps < FAINT) & (moves[0] > 0) & (moves[1] > 0)).any(axis=(-2, -1))
    logs = _recursion(mass.reshape(-1, mass.shape[-1]), steps.reshape(-1, *steps.shape[-2:]), count).reshape(shape)
    again = faint | np.isnan(logs)
    if again.any():
        with np.errstate(divide="ignore"):
            begin, onward = (
                rho * np.add(*(np.log(np.broadcast_to(part, whole.shape)[again]) for part in parts))
                for parts, whole in ((starts, mass), (moves, steps))
            )
        for _ in range(count):
            spread = (begin[:, :, None] + onward).reshape(len(begin), steps.shape[-1], -1)
            begin = np.logaddexp.reduce(spread, axis=1)
        logs[again] = np.logaddexp.reduce(begin, axis=-1)
    return logs


def _recursion(mass: Floats, steps: Floats, count: int) -> Floats:
    """Return the log of the total mass after so many steps, (p,); mass (p, m^k) on contexts, steps (p, m^k, m).

    NaN where a share falls below FAINT and is not zero.
    """
    m = steps.shape[-1]
    logs, open_ = np.zeros(len(mass)), np.arange(len(mass))
    previous = np.full_like(mass, np.nan)
    for left in range(count, -1, -1):
        scale = mass.sum(axis=-1)
        with np.errstate(divide="ignore"):
            gain = np.log(scale)
        logs[open_] += gain
        mass = np.divide(mass, scale[:, None], out=np.zeros_like(mass), where=scale[:, None] > 0)
        faint = ((mass > 0) & (mass < FAINT)).any(axis=-1)
        logs[open_[faint]] = np.nan
        # A pair whose shares no longer change gains the same in all steps to come, whatever its neighbours do.
        steady = (scale == 0) | (np.abs(mass - previous) <= np.minimum(STEADY, SAME * mass)).all(axis=-1)
        logs[open_[steady & (scale > 0)]] += left * gain[steady & (scale > 0)]
        going = ~(steady | faint)
        if left == 0 or not going.any():
            break
        open_, previous, steps = open_[going], mass[going], steps[going]
        spread = previous[:, :, None] * steps  # first symbol of the context, the others, the next symbol
        mass = spread.reshape(len(open_), m, -1).sum(axis=1)
    return logs
