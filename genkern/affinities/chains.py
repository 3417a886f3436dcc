"""Affinities between Markov chains over symbols, with each other and with hidden Markov models."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from genkern.affinities.categorical import check_alphabets
from genkern.affinities.hmm import MEAN_MAP, PRODUCT, state_pair_recursion
from genkern.affinities.how import Expected, How, Power
from genkern.affinities.registry import affinity
from genkern.models.base import rebatch
from genkern.models.categorical import Categorical
from genkern.models.hmm import HMM
from genkern.models.markov import MarkovChain, PositionalChain
from genkern.models.markov_base import Chain
from genkern.models.site import SiteModel
from genkern.validation import Floats

CHUNK = 1 << 21  # numbers in a temporary array
STEADY = 1e-15  # a step that changes no share of the mass by more has reached the limit


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
        begin = (left.start[rows] * right.start[..., None, :, :]) ** rho
        if length <= order:
            with np.errstate(divide="ignore"):
                out[..., low : low + size, :] = np.log(begin.sum(axis=-1))
            continue
        steps = (left.steps[(*rows, slice(None))] * right.steps[..., None, :, :, :]) ** rho
        out[..., low : low + size, :] = _recursion(begin, steps, length - order)
    return out


@affinity.register(Chain, Chain, Power, length="given", reference=f"{PRODUCT}; a chain as a hidden Markov model")
@affinity.register(Chain, Chain, Expected, length="given", reference=f"{MEAN_MAP}; a chain as a hidden Markov model")
@affinity.register(Chain, HMM, Power, length="given", reference=f"{PRODUCT}; a chain as a hidden Markov model")
@affinity.register(Chain, HMM, Expected, length="given", reference=f"{MEAN_MAP}; a chain as a hidden Markov model")
def chain_as_hmm(P: Chain, Q: Chain | HMM, how: How, length: int) -> Floats:
    """Return the log kernel of a chain and a chain or hidden Markov model over sequences of one length, G + (a, b).

    States of the chain are the last symbols seen, so that the power inside the sum over paths is that of the sequence.
    """
    return state_pair_recursion(_as_hmm(P, length), _as_hmm(Q, length), how, length)


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


def _recursion(mass: Floats, steps: Floats, count: int) -> Floats:
    """Return the log of the total mass after so many steps; mass (..., m^k) on contexts, steps (..., m^k, m)."""
    shape, m = mass.shape[:-1], steps.shape[-1]
    mass, steps = mass.reshape(-1, mass.shape[-1]), steps.reshape(-1, *steps.shape[-2:])
    logs, open_ = np.zeros(len(mass)), np.arange(len(mass))
    previous = np.full_like(mass, np.nan)
    for left in range(count, -1, -1):
        scale = mass.sum(axis=-1)
        with np.errstate(divide="ignore"):
            gain = np.log(scale)
        logs[open_] += gain
        mass = np.divide(mass, scale[:, None], out=np.zeros_like(mass), where=scale[:, None] > 0)
        # A pair whose shares no longer change gains the same in all steps to come, whatever its neighbours do.
        steady = (scale == 0) | (np.abs(mass - previous).max(axis=-1) < STEADY)
        logs[open_[steady & (scale > 0)]] += left * gain[steady & (scale > 0)]
        going = ~steady
        if left == 0 or not going.any():
            break
        open_, previous, steps = open_[going], mass[going], steps[going]
        spread = previous[:, :, None] * steps  # first symbol of the context, the others, the next symbol
        mass = spread.reshape(len(open_), m, -1).sum(axis=1)
    return logs.reshape(shape)


def _as_hmm(model: Chain | HMM, length: int) -> HMM:
    """Return a stack as one of hidden Markov models."""
    if isinstance(model, HMM):
        return model
    if isinstance(model, PositionalChain) and length > model.length:
        raise ValueError(f"affinity: PositionalChain has {model.length} positions. Got length={length}.")
    flat = [member.to_hmm() for member in rebatch(model, (-1,)).unstack()]
    return rebatch(HMM.stack(flat), model.shape)
