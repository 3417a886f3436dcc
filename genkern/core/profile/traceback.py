"""The best path of a sequence, from messages of best paths."""

from __future__ import annotations

from collections.abc import Iterator

from genkern.core.profile.logs import B, C, E, J, Messages, N
from genkern.core.profile.types import CC, DD, DM, EC, EJ, EN, II, IM, JB, JJ, MD, MI, MM, NB, XD, XM, Ints, Profile

AROUND = {"N": N, "J": J, "C": C, "B": B, "E": E}
STATES = {"M": 0, "I": 1, "D": 2}
Step = tuple[str, int, int, float]  # a state, its node, the step before, and the weight of the transition


def best_path(logs: Profile, codes: Ints, best: Messages) -> list[str]:
    """Return the names of the states of the best path in order: B, E, M1, I0, D1, ..., and N, J, C where they emit.

    Ties go to match states.
    """
    state, k, t = "C", 0, len(codes)
    path = []
    while (state, t) != ("N", 0):
        source, node, before, _ = max(_before(logs, codes, (state, k, t)), key=lambda step: _value(best, step))
        if state not in "NJC" or source == state:
            path.append(f"{state}{k}" if state in STATES else state)
        state, k, t = source, node, before
    return path[::-1]


def _value(best: Messages, step: Step) -> float:
    """Return the weight of the best path that takes a step last, but for factors that all steps share."""
    state, k, t, weight = step
    if t < 0:
        return float("-inf")
    return weight + float(best.states[t, STATES[state], k] if state in STATES else best.around[t, AROUND[state]])


def _before(logs: Profile, codes: Ints, where: tuple[str, int, int]) -> Iterator[Step]:
    """Yield the steps that lead to a state at a time."""
    state, k, t = where
    w, v, K = logs.columns, logs.around[0], logs.size
    f = logs.table[codes[t - 1], 0]
    if state == "N":
        yield "N", 0, t - 1, 0.0
    elif state in "JC":
        yield "E", 0, t, v[EJ if state == "J" else EC]
        yield state, 0, t - 1, v[JJ if state == "J" else CC] + f
    elif state == "B":
        yield "N", 0, t, v[NB]
        yield "J", 0, t, v[JB]
    elif state == "E":
        for node in range(1, K + 1):
            yield "M", node, t, w[XM, node]
        for node in range(1, K + 1):
            yield "D", node, t, w[XD, node]
        yield "I", K, t, w[IM, K]
    elif state == "I":
        yield "M" if k else "B", k, t - 1, w[MI, k]
        yield "I", k, t - 1, w[II, k]
    else:
        before, row = (t - 1, (MM, DM)) if state == "M" else (t, (MD, DD))
        yield "M" if k > 1 else "B", k - 1, before, w[row[0], k - 1]
        if state == "M":
            yield "B", 0, before, w[EN, k]
            yield "I", k - 1, before, w[IM, k - 1]
        if k > 1:
            yield "D", k - 1, before, w[row[1], k - 1]
