"""What a hidden chain does from left to right: paths of states, and how often each state is expected."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.models.categorical import draw_rows
from genkern.validation import Floats

MOST_STATES = 1e9  # of all paths drawn at a time


def paths_of_length(model: Any, n: int, length: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Return n paths of one length, drawn from the chain of an HMM given that length."""
    ahead = np.ones((length, model.n_states)) if model.final is None else np.tile(model.final, (length, 1))
    for t in range(length - 2, -1, -1):
        ahead[t] = model.transitions @ ahead[t + 1]
        ahead[t] /= ahead[t].max() or 1.0
    states = np.zeros((n, length), np.int64)
    if not (model.start * ahead[0]).any():
        raise ValueError(f"HMM.sample: no sequence of length {length} has positive probability.")
    states[:, 0] = draw_rows((model.start * ahead[0])[None], states[:, 0], rng)
    for t in range(1, length):
        states[:, t] = draw_rows(model.transitions * ahead[t], states[:, t - 1], rng)
    return list(states)


def paths_that_stop(model: Any, n: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Return n paths whose lengths follow the stop probabilities of an HMM."""
    if model.stop is None:
        raise ValueError("HMM.sample: this model has no 'stop' probabilities; give length=, in observations.")
    expected = expected_visits(model, np.ones(1, np.int64), "HMM.sample")[0].sum()
    if n * expected > MOST_STATES:
        raise ValueError(
            f"HMM.sample: {n} sequences of {expected:.3g} observations on average are too many to draw. Give length=, "
            "or draw fewer."
        )
    rows = np.concatenate([model.transitions, model.stop[:, None]], axis=1)
    paths: list[list[int]] = [[] for _ in range(n)]
    alive = np.arange(n)
    states = draw_rows(model.start[None], np.zeros(n, np.int64), rng)
    while len(alive):
        for i, state in zip(alive, states):
            paths[i].append(int(state))
        following = draw_rows(rows, states, rng)
        going = following < model.n_states
        alive, states = alive[going], following[going]
    return [np.array(path, np.int64) for path in paths]


def expected_visits(model: Any, lengths: NDArray[Any], who: str) -> tuple[Floats, Floats]:
    """Return the expected number of visits to, and of steps out of, each state of an HMM, averaged over lengths.

    With stop probabilities the lengths follow from the model, and every visit ends in a step or a stop.
    """
    if model.stop is not None:
        reached = _closure(model.transitions, model.start > 0)
        endless = reached & ~_closure(model.transitions.T, model.stop > 0)
        if endless.any():
            raise ValueError(
                f"{who}: state {int(np.argmax(endless))} can be reached, and from there no sequence ever stops. Give "
                "it a probability to stop, or to go to a state that does."
            )
        visits = np.zeros(model.n_states)
        inside = np.eye(int(reached.sum())) - model.transitions[np.ix_(reached, reached)].T
        visits[reached] = np.linalg.solve(inside, model.start[reached])
        return visits, visits
    occupancy = model.start
    visits, departures = np.zeros(model.n_states), np.zeros(model.n_states)
    for t in range(int(lengths.max())):
        share = (lengths > t).mean(), (lengths > t + 1).mean()
        visits, departures = visits + share[0] * occupancy, departures + share[1] * occupancy
        occupancy = occupancy @ model.transitions
    return visits, departures


def _closure(transitions: Floats, known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which states are known or can be reached from those that are."""
    while True:
        more = known | (known @ (transitions > 0))
        if (more == known).all():
            return known
        known = more
