"""Affinities between factorial hidden Markov models: exact in the space of joint states, or bounded by mean fields."""

from __future__ import annotations

import math

import numpy as np

from genkern.affinities.gaussian import as_kind
from genkern.affinities.hmm import MEAN_MAP, PRODUCT, state_pair_recursion
from genkern.affinities.how import Expected, How, Power
from genkern.affinities.mean_field import ChainPotentials, Coupling, beliefs_of, collapsed_bound, joint_bound
from genkern.affinities.registry import affinity
from genkern.models.factorial.model import FactorialHMM
from genkern.models.hmm.model import HMM
from genkern.models.value import rebatch
from genkern.validation import Floats

MAX_PAIRS = 1 << 20  # pairs of joint states up to which the exact recursion runs
CHUNK = 1 << 20  # numbers in a temporary array
STARTS, SPREAD = 3, 2.0  # starts of mean fields, and the standard deviation of the fields of all but the first
JEBARA = "Jebara, Kondor & Howard (2004), section 6.1"


@affinity.register(FactorialHMM, FactorialHMM, Power, length="given", reference=f"{PRODUCT}, over joint states")
@affinity.register(FactorialHMM, FactorialHMM, Expected, length="given", reference=f"{MEAN_MAP}, over joint states")
def joint_state_recursion(P: FactorialHMM, Q: FactorialHMM, how: How, length: int) -> Floats:
    """Return the log kernel between sequences of one length, G + (a, b), by the recursion over joint states."""
    _check_sizes(P, Q)
    return state_pair_recursion(_as_hmm(P), _as_hmm(Q), how, length)


@affinity.register(FactorialHMM, HMM, Power, length="given", reference=f"{PRODUCT}, over joint states")
@affinity.register(FactorialHMM, HMM, Expected, length="given", reference=f"{MEAN_MAP}, over joint states")
def joint_states_and_hmm(P: FactorialHMM, Q: HMM, how: How, length: int) -> Floats:
    """Return the log kernel of a factorial and a plain hidden Markov model, G + (a, b)."""
    return state_pair_recursion(_as_hmm(P), Q, how, length)


@affinity.register(
    FactorialHMM, FactorialHMM, Power, "collapsed", length="given", exact="bound",
    reference=f"{JEBARA}, with the observations integrated out",
)  # fmt: skip
@affinity.register(
    FactorialHMM, FactorialHMM, Expected, "collapsed", length="given", exact="bound",
    reference=f"{JEBARA}, with the observations integrated out",
)  # fmt: skip
def collapsed_mean_field(P: FactorialHMM, Q: FactorialHMM, how: Power | Expected, length: int) -> Floats:
    r"""Return a lower bound of the log kernel, G + (a, b): chains independent of each other, observations integrated.

    Given all states the integral over an observation is :math:`c\, e^{-\frac12 \delta^T V^{-1} \delta}` in the
    difference :math:`\delta` of both means, so that the kernel is that of one model with the chains of both, observed
    at zero. The bound is

    .. math:: L \log c + \sum_c (\log Z_c - \langle h_c \rangle) - \tfrac12 \sum_t E\, \delta_t^T V^{-1} \delta_t

    where :math:`Z_c` normalises chain c with the fields h of the others. It is the best of several starts, one of them
    the result of "mean-field", so that it is never below that. It is not positive semi-definite.
    """
    _check_channels(P, Q)
    if isinstance(how, Expected) and how.lam == 0.0:
        return np.zeros((*P.shape, Q.shape[-1]))
    return _by_rows(P, Q, how, length, joint=False)


@affinity.register(
    FactorialHMM, FactorialHMM, Power, "mean-field", length="given", exact="bound",
    reference=f"{JEBARA}, with the chains' fields normalised over the whole sequence",
)  # fmt: skip
def joint_mean_field(P: FactorialHMM, Q: FactorialHMM, how: Power, length: int) -> Floats:
    r"""Return the paper's lower bound of the log kernel, G + (a, b): chains and observations independent.

    .. math:: \rho\, E_Q \log p(x, q)\, p'(x, q') + H(Q), \quad Q = Q(x) \prod_c Q_c(q^c)

    It is the best of several starts, looser than "collapsed", and not positive semi-definite.
    """
    _check_channels(P, Q)
    return _by_rows(P, Q, how, length, joint=True)


def _check_channels(P: FactorialHMM, Q: FactorialHMM) -> None:
    if P.means[0].shape[-1] != Q.means[0].shape[-1]:
        raise ValueError(
            "affinity: both factorial models must have the same number of channels. "
            f"Got {P.means[0].shape[-1]} and {Q.means[0].shape[-1]}."
        )


def _check_sizes(P: FactorialHMM, Q: FactorialHMM) -> None:
    _check_channels(P, Q)
    pairs = math.prod(P.n_states) * math.prod(Q.n_states)
    if pairs > MAX_PAIRS:
        raise ValueError(
            f"affinity: chains of {P.n_states} and {Q.n_states} states have {pairs} pairs of joint states; the exact "
            f"recursion takes at most {MAX_PAIRS}. Lower bounds by mean fields: method='collapsed', or 'mean-field' "
            "for the one of Jebara, Kondor & Howard (2004)."
        )


def _as_hmm(model: FactorialHMM) -> HMM:
    """Return a stack as one of hidden Markov models over joint states."""
    return rebatch(HMM.stack([member.to_hmm() for member in rebatch(model, (-1,)).unstack()]), model.shape)


def _by_rows(P: FactorialHMM, Q: FactorialHMM, how: Power | Expected, length: int, joint: bool) -> Floats:
    """Return bounds G + (a, b), a few pairs at a time."""
    *batch, a = P.shape
    b = Q.shape[-1]
    g, d = math.prod(batch), P.means[0].shape[-1]
    left, right = rebatch(P, (-1,)), rebatch(Q, (-1,))
    block, row, column = np.indices((g, a, b)).reshape(3, -1)
    first, second = block * a + row, block * b + column
    constants = affinity.block(P.noise, Q.noise, how).ravel()
    fields = [_fields(side, length) for side in (left, right)]
    out = np.empty(g * a * b)
    step = max(1, CHUNK // (length * sum(k * k + d for k in (*P.n_states, *Q.n_states))))
    for low in range(0, len(out), step):
        some = slice(low, low + step)
        pair = left[first[some]], right[second[some]]
        chains = _chains(*pair, how.weight_power)
        noise = [as_kind(side.noise, "full").cov for side in pair]
        drawn = [[array[:, index[some]] for array in side] for side, index in zip(fields, (first, second), strict=True)]
        starts = [beliefs_of(chains, list(start)) for start in zip(*drawn[0], *drawn[1], strict=True)]
        found = np.full(len(chains.starts[0]), -np.inf)
        if isinstance(how, Power):
            found, beliefs = joint_bound(chains, Coupling(noise[0], noise[1], how.rho), starts[:1])
            starts.append(beliefs)
        if not joint:
            bound, _ = collapsed_bound(chains, _spread(noise, how), starts)
            found = np.maximum(found, length * constants[some] + bound)
        out[some] = found
    return out.reshape(*batch, a, b)


def _fields(P: FactorialHMM, length: int) -> list[Floats]:
    """Return fields (STARTS, a, L, K) of each chain from which mean fields start: none, and ones of each model's draw.

    Without fields, chains that are alike stay alike, which may be a poor bound.
    """
    fields = [np.zeros((STARTS, P.shape[0], length, k)) for k in P.n_states]
    for i, member in enumerate(P.unstack()):
        rng = np.random.default_rng(int(member.digest[:16], 16))
        for field in fields:
            field[1:, i] = rng.normal(0.0, SPREAD, field[1:, i].shape)
    return fields


def _spread(noise: list[Floats], how: Power | Expected) -> Floats:
    """Return the covariances V (N, d, d) of the difference of both means."""
    if isinstance(how, Power):
        return (noise[0] + noise[1]) / how.rho
    return noise[0] + noise[1] + np.eye(noise[0].shape[-1]) / how.finite


def _chains(P: FactorialHMM, Q: FactorialHMM, power: float) -> ChainPotentials:
    """Return the chains of both models of N pairs, those of the second with means of the other sign."""
    with np.errstate(divide="ignore"):
        starts = [power * np.log(start) for start in (*P.starts, *Q.starts)]
        steps = [power * np.log(rows) for rows in (*P.transitions, *Q.transitions)]
    return ChainPotentials(starts, steps, [*P.means, *(-level for level in Q.means)], P.n_chains)
