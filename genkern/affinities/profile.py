"""Affinities between profile models: pairs of paths through the columns of both, silent states included."""

from __future__ import annotations

import numpy as np

from genkern.affinities.hmm import ENDLESS, MEAN_MAP, PRODUCT, all_lengths, state_pair_recursion
from genkern.affinities.how import Expected, How, Power
from genkern.affinities.registry import affinity
from genkern.affinities.rules import PairError
from genkern.core.profile.pairs import log_product
from genkern.core.profile.types import Profile
from genkern.models.families.categorical import Categorical
from genkern.models.hmm.model import HMM
from genkern.models.profile.model import ProfileHMM
from genkern.models.value import rebatch
from genkern.validation import Floats

PAIRS = "pairs of paths, silent states included"


@affinity.register(ProfileHMM, ProfileHMM, Power, length="given", reference=f"{PRODUCT}, {PAIRS}")
@affinity.register(ProfileHMM, ProfileHMM, Expected, length="given", reference=f"{MEAN_MAP}, {PAIRS}")
def profile_pair_recursion(P: ProfileHMM, Q: ProfileHMM, how: How, length: int) -> Floats:
    """Return the log kernel between sequences of one length, G + (a, b).

    The recursion of hidden Markov models over pairs of states that emit, in which deletions are summed within a step:
    O(L K K') and not O(L K K' (K + K')). Powers are those of the weights of single transitions.
    """
    return _each_pair(P, Q, how, length)


@affinity.register(ProfileHMM, ProfileHMM, Power, length="all", reference=f"{PRODUCT}, {PAIRS}, summed over lengths")
@affinity.register(
    ProfileHMM, ProfileHMM, Expected, length="all", reference=f"{MEAN_MAP}, {PAIRS}, summed over lengths"
)
def profiles_of_all_lengths(P: ProfileHMM, Q: ProfileHMM, how: How) -> Floats:
    """Return the log kernel summed over all lengths above zero, G + (a, b), until what is left is below rounding."""
    return _each_pair(P, Q, how, None)


@affinity.register(ProfileHMM, HMM, Power, length="given", reference=f"{PRODUCT}; a profile as a hidden Markov model")
@affinity.register(
    ProfileHMM, HMM, Expected, length="given", reference=f"{MEAN_MAP}; a profile as a hidden Markov model"
)
def profile_and_hmm(P: ProfileHMM, Q: HMM, how: How, length: int) -> Floats:
    """Return the log kernel of a profile and a hidden Markov model with stop probabilities, G + (a, b)."""
    return state_pair_recursion(_as_hmms(P), Q, how, length)


@affinity.register(
    ProfileHMM, HMM, Power, length="all", reference=f"{PRODUCT}; a profile as a hidden Markov model, over lengths"
)
@affinity.register(
    ProfileHMM, HMM, Expected, length="all", reference=f"{MEAN_MAP}; a profile as a hidden Markov model, over lengths"
)
def profile_and_hmm_all_lengths(P: ProfileHMM, Q: HMM, how: How) -> Floats:
    """Return the same summed over all lengths."""
    return all_lengths(_as_hmms(P), Q, how)


def _as_hmms(P: ProfileHMM) -> HMM:
    """Return a stack as hidden Markov models."""
    return rebatch(HMM.stack([model.to_hmm() for model in rebatch(P, (-1,)).unstack()]), P.shape)


def _each_pair(P: ProfileHMM, Q: ProfileHMM, how: How, length: int | None) -> Floats:
    """Return G + (a, b), pair by pair; of a stack with itself half of them."""
    *batch, a = P.shape
    out = np.empty((*batch, a, Q.shape[-1]))
    for index in np.ndindex(out.shape):
        *group, i, j = index
        if P is Q and i > j:
            out[index] = out[(*group, j, i)]
            continue
        left, right = P[(*group, i)], Q[(*group, j)]
        psi = np.exp(affinity.block(_emissions(left), _emissions(right), how))
        out[index] = log_product(_powered(left, how), _powered(right, how), psi, length)
        if out[index] == np.inf:
            raise PairError(index, ENDLESS)
    return out


def _powered(model: ProfileHMM, how: How) -> Profile:
    """Return the weights of a model to the power of the comparison."""
    weights, power = model.weights(), how.weight_power
    if power == 1.0:
        return weights
    return weights._replace(columns=weights.columns**power, around=weights.around**power)


def _emissions(model: ProfileHMM) -> Categorical:
    """Return the distributions of symbols in the states that emit."""
    return Categorical._restore(model.emission_table(), model.alphabet)
