"""Ways in and out of the columns: local, glocal and global passages; and the weights of HMMER's scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from genkern.core.profile import types as core
from genkern.models.profile.weights import set_columns
from genkern.validation import Floats, check_number, check_option

if TYPE_CHECKING:
    from genkern.models.profile.model import ProfileHMM

KINDS = ("local", "glocal", "global")
HITS = ("one", "several")


def flanked(model: ProfileHMM, kind: str, hits: str, flank: float | None) -> Any:
    """Return the model with other entries, exits and flanks; see ``ProfileHMM.with_flanks``."""
    who = "ProfileHMM.with_flanks"
    check_option(kind, KINDS, "kind", who)
    several = check_option(hits, HITS, "hits", who) == "several"
    K = len(model.match)
    if kind == "global" and (several or flank):
        raise ValueError(f"{who}: a global passage takes the whole sequence. Got hits={hits!r}, flank={flank!r}.")
    mean = 0.0 if kind == "global" else K / 2.0 if flank is None else check_number(flank, "flank", who)
    stay = mean / (mean + 1.0)
    entry = np.eye(1, K + 1)[0]
    exits = np.tile([0.0, 1.0], (K + 1, 1))
    if kind == "local":
        entry = local_entry(model.transitions)
        exits[1:, 0] = 1.0 / np.arange(K, 0, -1)
        exits[1:, 1] = np.arange(K - 1, -1, -1) / np.arange(K, 0, -1)
    elif several:
        entry = retracted_entry(model.transitions)
    again = 0.5 if several else 0.0
    flanks = np.array([[stay, 1.0 - stay]] * 3 + [[again, 1.0 - again]])
    fields = {name: getattr(model, name) for name in model._fields}
    return model._restore(*(fields | {"entry": entry, "exits": exits, "flanks": flanks}).values())


def occupancy(transitions: Floats) -> Floats:
    """Return how probably a full passage matches each column, (K,)."""
    K = len(transitions) - 1
    found = np.empty(K)
    found[0] = transitions[0, 0] + transitions[0, 1]
    for k in range(1, K):
        before = found[k - 1]
        found[k] = before * (transitions[k, 0] + transitions[k, 1]) + (1.0 - before) * transitions[k, 5]
    return found


def local_entry(transitions: Floats) -> Floats:
    """Return entries (K + 1,) that make all parts of the columns equally probable, but for deletions."""
    found = occupancy(transitions)
    weights = np.append(0.0, found * np.arange(len(found), 0, -1))
    if not weights.sum() > 0:
        raise ValueError("ProfileHMM.with_flanks: no column can be matched under these transitions; change them.")
    return weights / weights.sum()


def retracted_entry(transitions: Floats) -> Floats:
    """Return entries (K + 1,) at the first match state of a full passage, the passage without any left out."""
    K = len(transitions) - 1
    deleted = transitions[0, 2] * np.cumprod(np.append(1.0, transitions[1:K, 6]))  # D_1, ..., D_K from B
    weights = np.zeros(K + 1)
    weights[1] = transitions[0, 0] + transitions[0, 1]
    weights[2:] = deleted[: K - 1] * transitions[1:K, 5]
    if not weights.sum() > 0:
        raise ValueError("ProfileHMM.with_flanks: no column can be matched under these transitions; change them.")
    return weights / weights.sum()


def score_weights(model: ProfileHMM, lengths: Floats, hits: str) -> core.Profile:
    """Return odds to the background as weights of local passages, with flanks for each length, as HMMER has them.

    An ambiguity code has the mean log-odds of its members, weighted by the background.
    """
    letters, local = model.alphabet, flanked(model, "local", "one", None)
    profile = core.empty_profile(len(model.match), letters.n_codes)
    set_columns(local, profile.columns)
    several = hits == "several"
    move = (3.0 if several else 2.0) / (lengths + (3.0 if several else 2.0))
    ways = np.empty((len(lengths), 4, 2))
    ways[:, :3, 0], ways[:, :3, 1] = 1.0 - move[:, None], move[:, None]
    ways[:, 3] = (0.5, 0.5) if several else (0.0, 1.0)
    K, half = profile.size, profile.columns.shape[1]
    f = model.null
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.log(model.match / f)
        odds = np.where(np.isnan(odds), 0.0, odds)  # a symbol that is nowhere
        extra = letters.extras * f
        means = np.where(odds == -np.inf, -1e300, odds) @ (extra / extra.sum(axis=1, keepdims=True)).T
        table = np.exp(np.concatenate([odds, means], axis=1)).T
    profile.table[:, 0] = profile.table[:, half : half + K + 1] = 1.0
    profile.table[:, 1 : K + 1] = table
    return profile._replace(around=ways.reshape(-1, 8))
