"""From the parameters of a profile model to the weights that the passes take, and back with derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from genkern.core.profile import types as core
from genkern.core.profile.types import DD, DM, EN, II, IM, MD, MI, MM, XD, XM
from genkern.validation import Floats

if TYPE_CHECKING:
    from genkern.models.profile.model import ProfileHMM

AROUND = (3, 2, 4)  # the states N, J, C and E of ``flanks``, with two ways out each


def probability_weights(model: ProfileHMM) -> core.Profile:
    """Return the probabilities of one model as weights of the passes."""
    letters = model.alphabet
    profile = core.empty_profile(len(model.match), letters.n_codes)
    set_columns(model, profile.columns)
    profile.around[0] = model.flanks.ravel()
    K, half = profile.size, profile.columns.shape[1]
    profile.table[:, 0] = letters.append_extras(model.null)
    profile.table[:, 1 : K + 1] = letters.append_extras(model.match).T
    profile.table[:, half : half + K + 1] = letters.append_extras(model.insert).T
    return profile


def set_columns(model: ProfileHMM, columns: Floats) -> None:
    """Set the weights of columns: a state is left to E first, and else along the transitions of its node."""
    K, T = len(model.match), model.transitions
    leave, stay = model.exits.T
    columns[IM, : K + 1], columns[II, : K + 1] = T[:, 3:5].T
    columns[MM, :K], columns[MD, :K] = stay[:K] * T[:K, 0], stay[:K] * T[:K, 2]
    columns[MI, : K + 1] = stay * T[:, 1]
    columns[DM, 1:K], columns[DD, 1:K] = stay[1:K] * T[1:K, 5], stay[1:K] * T[1:K, 6]
    columns[MM : MD + 1, 0] *= model.entry[0]
    columns[EN, 1 : K + 1] = model.entry[1:]
    columns[XM, 1 : K + 1], columns[XD, 1 : K + 1] = leave[1:], leave[1:]
    columns[XM, K] += stay[K] * T[K, 0]
    columns[XD, K] += stay[K] * T[K, 5]


def blocks_of(model: ProfileHMM, raw: core.Derivatives) -> dict[str, Floats]:
    """Return derivatives by the parameters, field by field, from those by the weights."""
    K, T, half = len(model.match), model.transitions, raw.columns.shape[-1]
    columns, letters = raw.columns[:, :, : K + 1], model.alphabet
    stay = model.exits[:, 1].copy()
    match, deleted = (columns[:, [MM, MI, MD]].swapaxes(1, 2).copy(), columns[:, [DM, DD]].swapaxes(1, 2).copy())
    match[:, K, 0], match[:, K, 2] = columns[:, XM, K], 0.0
    deleted[:, K, 0], deleted[:, K, 1], deleted[:, 0] = columns[:, XD, K], 0.0, 0.0
    transitions = np.empty((len(columns), K + 1, 7))
    onward = np.einsum("gkj,kj->gk", match, T[:, :3])
    entry = np.concatenate([(onward[:, :1] * stay[0]), columns[:, EN, 1:]], axis=1)
    onward[:, 0] *= model.entry[0]
    onward += np.einsum("gkj,kj->gk", deleted, T[:, 5:])
    leave = columns[:, XM] + columns[:, XD]
    leave[:, 0] = 0.0
    transitions[:, :, 5:] = stay[:, None] * deleted
    stay[0] *= model.entry[0]
    transitions[:, :, :3] = stay[:, None] * match
    transitions[:, :, 3:5] = columns[:, [IM, II]].swapaxes(1, 2)
    return {
        "match": letters.pass_to_members(raw.table[:, :, 1 : K + 1].swapaxes(1, 2)),
        "insert": letters.pass_to_members(raw.table[:, :, half : half + K + 1].swapaxes(1, 2)),
        "transitions": transitions,
        "entry": entry,
        "exits": np.stack([leave, onward], axis=-1),
        "flanks": raw.around.reshape(-1, 4, 2),
    }
