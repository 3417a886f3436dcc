"""Passes in logarithms over one sequence: every message of all steps, sums of paths or the best of them.

They cannot leave the range of doubles. They serve sequences that leave it in ``profile.lanes``, and whatever needs
messages of single steps: posteriors, alignments, drawn paths.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from genkern.core.jit import inlined, kernel
from genkern.core.profile.types import (
    CC,
    CT,
    DD,
    DM,
    EC,
    EJ,
    EN,
    II,
    IM,
    JB,
    JJ,
    MD,
    MI,
    MM,
    NB,
    NN,
    XD,
    XM,
    Derivatives,
    Floats,
    Ints,
    Profile,
)

N, J, C, B, E = range(5)
LARGEST = float(np.finfo(np.float64).max) / 1e6  # of derivatives, which are multiplied by weights later


class Messages(NamedTuple):
    """Logarithms of the mass of each state after t symbols, or of what is left to come: t = 0, ..., L.

    states : (L + 1, 3, K + 1), of M, I and D; that of M(0) is B. around : (L + 1, 5), of N, J, C, B and E. What is left
    to come from B differs by where it is: after N, in M(0), a passage may begin with a deletion, after J, in B, not.
    """

    states: Floats
    around: Floats


def logarithms(profile: Profile) -> Profile:
    """Return the logarithms of the weights."""
    with np.errstate(divide="ignore"):
        return Profile(np.log(profile.columns), np.log(profile.around), np.log(profile.table), profile.size)


def own_logs(logs: Profile, i: int) -> Profile:
    """Return the logarithms of the weights of object i."""
    return logs if len(logs.around) == 1 else logs._replace(around=logs.around[i : i + 1])


def forward(logs: Profile, codes: Ints, best: bool = False) -> tuple[Messages, float]:
    """Return the mass of all paths to each state, or of the best one, and log P or its share."""
    found = _empty(logs, codes)
    _forward(logs, codes, found, best)
    return found, float(found.around[-1, C] + logs.around[0, CT])


def backward(logs: Profile, codes: Ints) -> Messages:
    """Return what all paths from each state to the end weigh."""
    found = _empty(logs, codes)
    _backward(logs, codes, found)
    return found


def _empty(logs: Profile, codes: Ints) -> Messages:
    steps = len(codes) + 1
    return Messages(np.full((steps, 3, logs.size + 1), -np.inf), np.full((steps, 5), -np.inf))


@inlined
def join(a, b, best):
    """Return the larger, or the logarithm of the sum, of two numbers given by their logarithms."""
    high, low = max(a, b), min(a, b)
    return high if best or low == -np.inf else high + np.log1p(np.exp(low - high))


@kernel
def _forward(logs, codes, found, best):
    """Fill the messages from the first to the last."""
    w, v, table, K, half = logs.columns, logs.around[0], logs.table, logs.size, logs.columns.shape[1]
    for t in range(len(codes) + 1):
        s, a = found.states[t], found.around[t]
        row = table[codes[t - 1]] if t > 0 else table[0]
        p, b = found.states[t - 1], found.around[t - 1]  # not used at t = 0
        a[N] = b[N] + v[NN] + row[0] if t > 0 else 0.0
        joined = b[J] + v[JJ] + row[0] if t > 0 else -np.inf
        closed = b[C] + v[CC] + row[0] if t > 0 else -np.inf
        opened = a[N] + v[NB]
        before, ended = opened, -np.inf
        if t > 0:
            s[1, 0] = join(p[0, 0] + w[MI, 0], p[1, 0] + w[II, 0], best) + row[half]
        for k in range(1, K + 1):
            if t > 0:
                x = join(p[0, k - 1] + w[MM, k - 1], p[1, k - 1] + w[IM, k - 1], best)
                y = join(p[2, k - 1] + w[DM, k - 1], p[0, 0] + w[EN, k], best)
                s[0, k] = join(x, y, best) + row[k]
                s[1, k] = join(p[0, k] + w[MI, k], p[1, k] + w[II, k], best) + row[half + k]
            s[2, k] = join(before + w[MD, k - 1], s[2, k - 1] + w[DD, k - 1], best)
            before = s[0, k]
            ended = join(ended, join(s[0, k] + w[XM, k], s[2, k] + w[XD, k], best), best)
        a[E] = join(ended, s[1, K] + w[IM, K], best)
        a[J] = join(joined, a[E] + v[EJ], best)
        a[C] = join(closed, a[E] + v[EC], best)
        a[B] = s[0, 0] = join(opened, a[J] + v[JB], best)


@kernel
def _backward(logs, codes, found):
    """Fill the messages from the last to the first."""
    w, v, table, K, half = logs.columns, logs.around[0], logs.table, logs.size, logs.columns.shape[1]
    for t in range(len(codes), -1, -1):
        s, a, last = found.states[t], found.around[t], t == len(codes)
        row = table[0] if last else table[codes[t]]
        p, b = found.states[0 if last else t + 1], found.around[0 if last else t + 1]
        entered, joined, a[C] = -np.inf, -np.inf, v[CT]
        if not last:
            a[C] = v[CC] + row[0] + b[C]
            joined = v[JJ] + row[0] + b[J]
            entered = join(w[MM, 0] + row[1] + p[0, 1], w[MI, 0] + row[half] + p[1, 0], False)
            for k in range(1, K + 1):
                entered = join(entered, w[EN, k] + row[k] + p[0, k], False)
        a[E] = join(v[EC] + a[C], v[EJ] + join(joined, v[JB] + entered, False), False)
        after, kept, deleted = -np.inf, -np.inf, -np.inf
        for k in range(K, -1, -1):
            kept = -np.inf if last else row[half + k] + p[1, k]
            i = join(w[IM, k] + (a[E] if k == K else after), w[II, k] + kept, False)
            d = join(w[DM, k] + after, join(w[DD, k] + deleted, w[XD, k] + a[E], False), False) if k > 0 else -np.inf
            if k > 0:
                m = join(w[MM, k] + after, w[XM, k] + a[E], False)
                s[0, k] = join(m, join(w[MI, k] + kept, w[MD, k] + deleted, False), False)
            else:
                s[0, 0] = join(entered, w[MD, 0] + deleted, False)
            s[1, k], s[2, k] = i, d
            after, deleted = (-np.inf if last else row[k] + p[0, k]), d
        a[B] = entered
        a[J] = join(joined, v[JB] + entered, False)
        a[N] = v[NB] + s[0, 0]
        if not last:
            a[N] = join(a[N], v[NN] + row[0] + b[N], False)


def emitted(logs: Profile, codes: Ints, past: Messages) -> Floats:
    """Return the logarithms of the mass of all states that have just emitted a symbol, after each of them, (L,)."""
    v, f = logs.around[0], logs.table[codes, 0]
    parts = [past.states[1:, 0, 1:], past.states[1:, 1]]
    parts += [(past.around[:-1, state] + v[row] + f)[:, None] for row, state in ((NN, N), (JJ, J), (CC, C))]
    mass: Floats = np.logaddexp.reduce(np.concatenate(parts, axis=1), axis=1)
    return mass


class Steps(NamedTuple):
    """Derivatives of log P by the weights, step by step: those that step t = 0, ..., L takes part in.

    emissions : (L, 2 P), of the factors of each symbol, without f; columns : (L + 1, 10, P); around : (L + 1, 8). What
    leaves a state to emit symbol t, and the silent transitions after it, belong to t; those before the first, to 0.
    """

    emissions: Floats
    columns: Floats
    around: Floats


def steps_of(logs: Profile, codes: Ints) -> tuple[float, Steps]:
    """Return log P of a sequence and its derivatives step by step."""
    past, log_prob = forward(logs, codes)
    future = backward(logs, codes)
    K, pitch, L = logs.size, logs.columns.shape[1], len(codes)
    found = Steps(np.zeros((L, 2 * pitch)), np.zeros((L + 1, 10, pitch)), np.zeros((L + 1, 8)))
    rows = logs.table[codes]
    with np.errstate(over="ignore", invalid="ignore"):
        m, i, d = (past.states[:, s] - log_prob for s in range(3))
        after = rows[:, 1 : K + 1] + future.states[1:, 0, 1:]  # into M, with its symbol
        kept = rows[:, pitch : pitch + K + 1] + future.states[1:, 1]
        w = logs.columns
        into = np.logaddexp(m[:-1, :-1] + w[MM, :K], i[:-1, :-1] + w[IM, :K])
        into = np.logaddexp(into, np.logaddexp(d[:-1, :-1] + w[DM, :K], m[:-1, :1] + w[EN, 1 : K + 1]))
        found.emissions[:, 1 : K + 1] = _exp(into + future.states[1:, 0, 1:])
        into = np.logaddexp(m[:-1] + w[MI, : K + 1], i[:-1] + w[II, : K + 1])
        found.emissions[:, pitch : pitch + K + 1] = _exp(into + future.states[1:, 1])
        columns = found.columns
        for row, mass in ((MM, m), (IM, i), (DM, d)):
            columns[1:, row, :K] = _exp(mass[:-1, :K] + after)
        for row, mass in ((MI, m), (II, i)):
            columns[1:, row, : K + 1] = _exp(mass[:-1] + kept)
        opened = (past.around[:, N] + logs.around[0, NB] - log_prob)[:, None]  # no deletion first when passing again
        for row, mass in ((MD, np.hstack([opened, m[:, 1:]])), (DD, d)):
            columns[:, row, :K] = _exp(mass[:, :K] + future.states[:, 2, 1:])
        ended = future.around[:, E, None]
        columns[:, XM, 1 : K + 1], columns[:, XD, 1 : K + 1] = _exp(m[:, 1:] + ended), _exp(d[:, 1:] + ended)
        columns[:, IM, K] = _exp(i[:, K] + ended[:, 0])
        columns[1:, EN, 1 : K + 1] = _exp(m[:-1, :1] + after)
        _around(past, future, logs, (log_prob, rows[:, 0]), found.around)
    return log_prob, found


def _around(past: Messages, future: Messages, logs: Profile, known: tuple[float, Floats], out: Floats) -> None:
    """Set the derivatives by the weights around the columns."""
    log_prob, f = known
    a, b = past.around - log_prob, future.around
    for row, state in ((NN, N), (JJ, J), (CC, C)):
        out[1:, row] = _exp(a[:-1, state] + f + b[1:, state])
    for row, source, target in ((JB, J, B), (EJ, E, J), (EC, E, C)):
        out[:, row] = _exp(a[:, source] + b[:, target])
    out[:, NB] = _exp(a[:, N] + future.states[:, 0, 0])
    out[-1, CT] = _exp(a[-1, C])


def _exp(logs: Floats) -> Floats:
    """Return the exponential, at most the largest double: derivatives by weights of zero may overflow."""
    found: Floats = np.minimum(np.exp(np.where(np.isnan(logs), -np.inf, logs)), LARGEST)
    return found


def derivatives_of(logs: Profile, codes: Ints, slot: int, i: int, out: Derivatives) -> None:
    """Set log P of object i and, if ``out`` has slots, its derivatives in its slot."""
    if not len(out.table):
        out.log_prob[i] = forward(logs, codes)[1]
        return
    out.log_prob[i], found = steps_of(logs, codes)
    for sums in (out.table, out.columns, out.around):
        sums[slot] = 0.0
    if out.log_prob[i] > -np.inf:
        with np.errstate(over="ignore"):
            np.add.at(out.table[slot], codes, found.emissions)
        with np.errstate(over="ignore"):
            for to, parts in ((out.columns, found.columns), (out.around, found.around)):
                to[slot] = np.minimum(parts.sum(axis=0), LARGEST)
            out.table[slot] = np.minimum(out.table[slot], LARGEST)
