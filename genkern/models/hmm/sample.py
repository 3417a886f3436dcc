"""What a hidden chain does from left to right: paths of states, and how often each state is expected."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.core.arrays import draws as core
from genkern.models.draws import draw_paths, draw_stopping
from genkern.validation import Floats, check_array, normalise_rows

MOST_STATES = 1e9  # of all paths drawn at a time


def paths_of_length(model: Any, n: int, length: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Return n paths of one length, drawn from the chain of an HMM given that length."""
    ahead = None
    if model.final is not None:
        ahead = np.empty((length, model.n_states))
        core.look_ahead(model.transitions, model.final, ahead)
        if not (model.start * ahead[0]).any():
            raise ValueError(f"HMM.sample: no sequence of length {length} has positive probability.")
    return list(draw_paths(model.start, model.transitions, n, length, rng, ahead))


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
    return draw_stopping(model.start, np.concatenate([model.transitions, model.stop[:, None]], axis=1), n, rng)


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


def check_stopping(transitions: ArrayLike, stop: ArrayLike, square: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return transitions and stop probabilities whose joint rows sum to one."""
    steps = check_array(transitions, "transitions", "HMM", shape=square)
    halts = check_array(stop, "stop", "HMM", shape=square[:-1])
    joint = np.concatenate([steps, halts[..., None]], axis=-1)
    if (joint < 0).any():
        raise ValueError("HMM: 'transitions' and 'stop' must not be negative.")
    joint = normalise_rows(joint, "[transitions | stop]", "HMM")
    return joint[..., :-1], joint[..., -1]
