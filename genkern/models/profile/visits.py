"""How often states of a profile model are expected to be visited, and its distributions to be drawn from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from genkern.validation import Floats

if TYPE_CHECKING:
    from genkern.models.base import Statistics
    from genkern.models.profile.model import ProfileHMM


def expected_draws(model: ProfileHMM) -> dict[str, Floats]:
    """Return the expected number of draws from each distribution of one model, by field.

    ``transitions`` are (K + 1, 3): draws at match, insert and delete states. Those that lead nowhere else have none.
    """
    T, stay, K = model.transitions, model.exits[:, 1], len(model.match)
    passages = 1.0 / model.flanks[3, 1]
    match, inserted, deleted = np.zeros(K + 1), np.zeros(K + 1), np.zeros(K + 1)
    match[0] = passages * model.entry[0]  # node 0 begins
    for k in range(K + 1):
        if k > 0:
            onward = match[k - 1] * stay[k - 1] * T[k - 1, 0] + inserted[k - 1] * T[k - 1, 3]
            match[k] = onward + deleted[k - 1] * stay[k - 1] * T[k - 1, 5] + passages * model.entry[k]
            deleted[k] = match[k - 1] * stay[k - 1] * T[k - 1, 2] + deleted[k - 1] * stay[k - 1] * T[k - 1, 6]
        inserted[k] = match[k] * stay[k] * T[k, 1] / (1.0 - T[k, 4])
    deleted[0] = 0.0
    draws = np.stack([match * stay, inserted, deleted * stay], axis=1)
    leaving = match + deleted
    leaving[0] = 0.0
    ways = np.array([1.0, passages - 1.0, 1.0]) / model.flanks[:3, 1]
    return {
        "match": match[1:],
        "insert": inserted,
        "transitions": draws,
        "entry": np.array([passages]),
        "exits": leaving,
        "flanks": np.append(ways, passages),
    }


def state_names(K: int) -> list[str]:
    """Return the names of the states: match, insert and delete states by columns, and those around."""
    names = [f"M{k}" for k in range(1, K + 1)] + [f"I{k}" for k in range(K + 1)]
    return [*names, *(f"D{k}" for k in range(1, K + 1)), "N", "J", "C"]


def visits(model: ProfileHMM, statistics: Statistics) -> Floats:
    """Return how often each state is expected to be visited, or to emit, (G, 3 K + 4)."""
    moves = model.transitions * statistics["transitions"]
    return np.concatenate(
        [
            (model.match * statistics["match"]).sum(axis=-1),
            (model.insert * statistics["insert"]).sum(axis=-1),
            moves[:, :-1, 2] + moves[:, :-1, 6],
            model.flanks[:3, 0] * statistics["flanks"][:, :3, 0],
        ],
        axis=1,
    )
