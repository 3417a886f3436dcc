"""Paths of a profile model, drawn side by side, and the symbols that they emit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.core.profile import logs as core_logs
from genkern.core.profile.types import CC, CT, DD, DM, EC, EJ, EN, II, IM, JB, JJ, MD, MI, MM, NB, NN, XD, XM, Profile
from genkern.models.draws import draw_rows
from genkern.validation import Floats

N, J, C, E, END, B, FIRST = range(7)  # states around the columns; M1, D1, I0, M2, D2, I1, ... come after B
EMITTING = ("N", "J", "C", "M", "I")


class Steps:
    """The states of a profile as a chain: up to four ways out of each, but for B.

    ``ways`` (S, 4) are the next states and ``logs`` (S, 4) their weights; those of B are ``begin``, a pair of (K + 2,).
    ``emits`` (S, 4) says whether the step emits a symbol.
    """

    def __init__(self, profile: Profile):
        K, w, v = profile.size, profile.columns, profile.around[0]
        self.K, self.size = K, FIRST + 3 * K + 1
        M, D, inserts = self.state("M"), self.state("D"), self.state("I")
        ways = np.full((self.size, 4), END)
        weights, emits = np.zeros((self.size, 4)), np.zeros((self.size, 4), bool)

        def set_way(place: int, source: Any, target: Any, weight: Any, emitted: bool) -> None:
            ways[source, place], weights[source, place], emits[source, place] = target, weight, emitted

        for source, own, other, next_state in ((N, NN, NB, B), (J, JJ, JB, B), (C, CC, CT, END)):
            set_way(0, source, source, v[own], True)
            set_way(1, source, next_state, v[other], False)
        set_way(0, E, J, v[EJ], False)
        set_way(1, E, C, v[EC], False)
        set_way(0, M[1:], inserts[1:], w[MI, 1 : K + 1], True)
        set_way(1, M[1:], E, w[XM, 1 : K + 1], False)
        set_way(0, D[1:], E, w[XD, 1 : K + 1], False)
        set_way(0, inserts, inserts, w[II, : K + 1], True)
        set_way(1, inserts[K:], E, w[IM, K], False)
        set_way(1, inserts[:K], M[1:], w[IM, :K], True)
        for states, to_match, to_deleted in ((M, MM, MD), (D, DM, DD)):
            set_way(2, states[1:K], M[2:], w[to_match, 1:K], True)
            set_way(3, states[1:K], D[2:], w[to_deleted, 1:K], False)
        begin = w[EN, 1 : K + 1].copy()
        begin[0] += w[MM, 0]
        self.ways, self.emits = ways, emits
        self.begin = np.concatenate([M[1:], inserts[:1], D[1:2]]), np.concatenate([begin, w[[MI, MD], 0]])
        self.begin_emits = np.append(np.ones(K + 1, bool), False)
        self.weights = weights

    def state(self, kind: str) -> NDArray[np.int64]:
        """Return the numbers of the match, delete or insert states of nodes 0, ..., K; only I has a node 0."""
        nodes = np.arange(self.K + 1)
        return FIRST + 3 * nodes + {"I": 0, "M": -2, "D": -1}[kind]

    def name(self, state: int) -> str:
        """Return the name of a state."""
        if state < FIRST:
            return "NJCE?B"[state]
        return f"{'IMD'[(state - FIRST) % 3]}{(state - FIRST + 2) // 3}"

    def futures(self, messages: core_logs.Messages) -> Floats:
        """Return what is left to come from each state after t symbols (L + 2, S): nothing after the last."""
        L = len(messages.around) - 1
        found = np.full((L + 2, self.size), -np.inf)
        around = messages.around
        found[:-1, [N, J, C, B, E]] = around
        found[:-1, B] = messages.states[:, 0, 0]
        for kind, place in (("M", 0), ("D", 2)):
            found[:-1, self.state(kind)[1:]] = messages.states[:, place, 1:]
        found[:-1, self.state("I")] = messages.states[:, 1]
        found[L, END] = 0.0
        return found


def draw_paths(profile: Profile, n: int, length: int | None, rng: np.random.Generator) -> list[list[str]]:
    """Return n paths, of any length above zero or of one; all take their next step together."""
    steps, futures = Steps(profile), None
    free = profile._replace(table=np.ones((1, profile.table.shape[1])))  # every symbol may be any
    logs = core_logs.logarithms(free)
    codes = np.zeros(length or 0, np.int64)
    log_prob = core_logs.forward(logs, codes)[1]
    if length is not None:
        if not log_prob > -np.inf:
            raise ValueError(f"ProfileHMM.sample: no sequence of length {length} is possible under the model.")
        futures = steps.futures(core_logs.backward(logs, codes))
    elif log_prob > np.log1p(-1e-6):
        raise ValueError("ProfileHMM.sample: nearly all sequences under the model are empty. Give length=.")
    paths: list[list[str]] = [[] for _ in range(n)]
    waiting = list(range(n))
    while waiting:
        for i, path in zip(waiting, _walk(steps, len(waiting), futures, rng)):
            paths[i] = path
        waiting = [i for i in waiting if not any(name[0] in EMITTING for name in paths[i])]
    return paths


def _walk(steps: Steps, n: int, futures: Floats | None, rng: np.random.Generator) -> list[list[str]]:
    """Return n paths from N to the end."""
    states, times, alive = np.full(n, N), np.zeros(n, np.int64), np.arange(n)
    paths: list[list[str]] = [[] for _ in range(n)]
    while len(alive):
        chosen = np.empty(len(alive), np.int64)
        emitted = np.empty(len(alive), bool)
        at_begin = states[alive] == B
        for group, tables in ((~at_begin, None), (at_begin, steps.begin)):
            own = alive[group]
            if not len(own):
                continue
            if tables is None:
                ways, weights, emits = steps.ways[states[own]], steps.weights[states[own]], steps.emits[states[own]]
            else:
                ways, weights, emits = (
                    np.broadcast_to(row, (len(own), len(row))) for row in (*tables, steps.begin_emits)
                )
            place = _choose(_weigh(ways, weights, emits, times[own], futures), rng)
            rows = np.arange(len(own))
            chosen[group], emitted[group] = ways[rows, place], emits[rows, place]
        for i, state, is_emitted in zip(alive.tolist(), chosen.tolist(), emitted.tolist()):
            if is_emitted or state >= FIRST:
                paths[i].append(steps.name(state))
        states[alive] = chosen
        times[alive] += emitted
        alive = alive[chosen != END]
    return paths


def _weigh(
    ways: NDArray[np.int64], weights: Floats, emits: NDArray[np.bool_], times: NDArray[np.int64], futures: Floats | None
) -> Floats:
    """Return the weights of ways out, times what is left to come after each."""
    if futures is None:
        return weights
    with np.errstate(divide="ignore"):
        logs = np.log(weights) + futures[times[:, None] + emits, ways]
    return np.exp(logs - logs.max(axis=1, keepdims=True))


def _choose(weights: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return a column for each row, in proportion to its weights."""
    ends = np.cumsum(weights, axis=1)
    found: NDArray[np.int64] = (ends <= rng.random((len(ends), 1)) * ends[:, -1:]).sum(axis=1)
    return np.minimum(found, weights.shape[1] - 1)


def emit(table: Floats, path: list[str], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the codes that the states of a path emit, by the distributions of K match and K + 1 insert states, ..."""
    K = (len(table) - 4) // 2
    rows = []
    for name in path:
        if name[0] in "MI":
            rows.append(int(name[1:]) - 1 if name[0] == "M" else K + int(name[1:]))
        elif name[0] != "D":
            rows.append(2 * K + 1)
    return draw_rows(table, np.array(rows, np.int64), rng)
