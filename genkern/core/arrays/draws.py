"""Draws from rows of probabilities, and walks of many chains at once, driven by numbers that somebody else has drawn.

An index is drawn from a row by a uniform number u: the first whose cumulative sum exceeds u times the sum of all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Walkers(NamedTuple):
    """Chains that go on until they stop: who is alive and where, and how far the round of the living has come.

    ``round`` is the number of the living, of those that had their turn in this round, and of those that go on.
    """

    alive: Ints
    states: Ints
    round: Ints


@jit
def pick(sums: Floats, which: Ints, numbers: Floats, index: Ints) -> None:
    """Fill index (N,) from the rows ``which`` (N,) of cumulative sums (R, m), one uniform number each."""
    last = sums.shape[1] - 1
    for i in range(len(which)):
        row = sums[which[i]]
        target = numbers[i] * row[last]
        low, high = 0, last  # the first sum above the target, or the last index
        while low < high:
            middle = (low + high) // 2
            if row[middle] > target:
                high = middle
            else:
                low = middle + 1
        index[i] = low


@jit
def draw_index(row, weights, number):
    """Return the index drawn from a row of probabilities times weights."""
    total = 0.0
    for j in range(len(row)):
        total += row[j] * weights[j]
    target, run = number * total, 0.0
    for j in range(len(row) - 1):
        run += row[j] * weights[j]
        if run > target:
            return j
    return len(row) - 1


@jit
def look_ahead(transitions: Floats, final: Floats, ahead: Floats) -> None:
    """Fill ahead (L, n) with the weights of what is still to come after each position, up to a factor for each."""
    length, n = ahead.shape
    ahead[length - 1] = final
    for t in range(length - 2, -1, -1):
        top = 0.0
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += transitions[i, j] * ahead[t + 1, j]
            ahead[t, i] = total
            top = max(top, total)
        if top > 0.0:
            for i in range(n):
                ahead[t, i] /= top


@jit
def walk(transitions: Floats, ahead: Floats, numbers: Floats, states: Ints, first: int) -> None:
    """Fill states (N, L) from column ``first`` on, one for each row of uniform numbers (T, N).

    A step to j at time t has the weight of its transition times ahead[t, j]; one row of ahead holds for all times.
    """
    for s in range(len(numbers)):
        t = first + s
        weights = ahead[t if len(ahead) > 1 else 0]
        for i in range(len(states)):
            states[i, t] = draw_index(transitions[states[i, t - 1]], weights, numbers[s, i])


@jit
def walk_on(rows: Floats, numbers: Floats, walkers: Walkers, owners: Ints, visited: Ints) -> int:
    """Let walkers go on, by rows (n, n + 1) whose last entry stops them; return how many of the numbers (B,) were used.

    Each of the living, in turn, says where it is, in owners and visited (B,), and then draws where to go.
    """
    alive, states, cursor = walkers
    ones = np.ones(rows.shape[1])
    used = 0
    while cursor[0] > 0:
        while cursor[1] < cursor[0]:
            if used == len(numbers):
                return used
            who, state = alive[cursor[1]], states[cursor[1]]
            owners[used], visited[used] = who, state
            following = draw_index(rows[state], ones, numbers[used])
            used += 1
            cursor[1] += 1
            if following < rows.shape[1] - 1:
                alive[cursor[2]], states[cursor[2]] = who, following
                cursor[2] += 1
        cursor[0], cursor[1], cursor[2] = cursor[2], 0, 0
    return used


@jit
def walk_words(steps: Floats, begin: Ints, context: Ints, numbers: Floats, codes: Ints, first: int, order: int) -> None:
    """Fill codes (N, L) of Markov chains of an order from column ``first`` on, and move their contexts (N,) along.

    The law of a symbol is steps (Q, C, m) at table (begin[i] + t - order) mod Q.
    """
    contexts, m = steps.shape[1:]
    ones = np.ones(m)
    for s in range(len(numbers)):
        t = first + s
        for i in range(len(codes)):
            row = steps[(begin[i] + t - order) % len(steps), context[i]]
            codes[i, t] = draw_index(row, ones, numbers[s, i])
            context[i] = (context[i] * m + codes[i, t]) % contexts


@jit
def add_dynamics(transition: Floats, regimes: Ints, states: Floats) -> None:
    """Turn noises into states (N, L, n), in place: each gets the transition (S, n, n) of its regime times the last."""
    count, length, n = states.shape
    for i in range(count):
        for t in range(1, length):
            matrix = transition[regimes[i, t]]
            for a in range(n):
                total = 0.0
                for b in range(n):
                    total += matrix[a, b] * states[i, t - 1, b]
                states[i, t, a] += total
