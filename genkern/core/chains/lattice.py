"""Markov chains over partly known symbols: a lattice of the contexts that these may spell."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import jit
from genkern.core.words.shares import spell

LARGEST = float(np.finfo(np.float64).max)
LARGEST_LOG = 709.0  # its exponential is below the largest float64


class Lattice(NamedTuple):
    """Contexts after k, k + 1, ... symbols: where each level begins, the words, scaled forward values, log scales."""

    offsets: NDArray[np.int64]
    words: NDArray[np.int64]
    alpha: NDArray[np.float64]
    logs: NDArray[np.float64]


@jit
def follow(tables, symbols, tasks, weights, logs, out):
    """Pass over sequences with symbols to be summed out, one for each task (object, phase).

    Without weights, set log p(x | phase) in logs (n, S); with the logs of weights, one per task, add to the raw
    derivatives out: start (G, S, C) and steps (G, Q, C, m), of which G = 1 takes the sum over objects.
    """
    k = tables.order
    for task in range(len(tasks)):
        i, phase = tasks[task]
        g = i if len(tables.start) > 1 else 0
        codes = _codes_of(symbols, i, k)
        lattice = _lattice_of(codes, symbols.first, k)
        start, steps, q = tables.start[g, phase], tables.steps[g], tables.begin[phase]
        _forward(start, steps, q, codes, symbols, lattice)
        if len(weights) == 0:
            logs[i, phase] = lattice.logs[-1]
        else:
            slot = i if len(out[0]) > 1 else 0
            raw = (out[0][slot, phase], out[1][slot])
            _backward(steps, q, codes, symbols, lattice, weights[task], raw)


@jit
def _forward(start, steps, q, codes, symbols, lattice):
    """Fill the lattice: the words, probabilities of each level's contexts that sum to one, logs of what was taken out.

    The context (j, r) and the next symbol s lead to the context (r, s): the index of (j, r, s) modulo the next size.
    """
    offsets, words, alpha, logs = lattice
    first, choices = symbols.first, symbols.choices
    contexts, m = steps.shape[1:]
    k = len(codes) - len(offsets) + 2
    spell(codes, 0, m, np.arange(k), first, choices, words)
    for j in range(offsets[1]):
        alpha[j] = start[words[j]]
    logs[0] = _scale(alpha, offsets[0], offsets[1])
    for level in range(len(offsets) - 2):
        low, high, end = offsets[level], offsets[level + 1], offsets[level + 2]
        some, many = first[codes[k + level]], first[codes[k + level] + 1]
        if high - low == 1 and many - some == 1:  # all is known
            word = words[low] * m + choices[some]
            words[high] = word - choices[first[codes[level]]] * contexts
            alpha[high] = alpha[low] * steps[q, words[low], choices[some]]
        else:
            for j in range(high, end):
                alpha[j] = 0.0
            following = high
            for j in range(low, high):
                for choice in range(some, many):
                    s = choices[choice]
                    alpha[following] += alpha[j] * steps[q, words[j], s]
                    words[following] = (words[j] * m + s) % contexts
                    following = following + 1 if following + 1 < end else high
        logs[level + 1] = logs[level] + _scale(alpha, high, end)
        q = q + 1 if q + 1 < len(steps) else 0


@jit
def _backward(steps, q, codes, symbols, lattice, weight, raw):
    """Add derivatives to raw, start (C,) and steps (Q, C, m), times e^weight, free of divisions by parameters.

    But where all is known and possible, the derivative is simply the sequence's weight by the parameter.
    """
    offsets, words, alpha, logs = lattice
    start_raw, steps_raw = raw
    first, choices = symbols.first, symbols.choices
    k, whole = len(codes) - len(offsets) + 2, logs[-1]
    beta, log_scale, share = np.ones(offsets[-1]), 0.0, _exp(weight + whole)
    for level in range(len(offsets) - 3, -1, -1):
        table, low, high, end = (q + level) % len(steps), offsets[level], offsets[level + 1], offsets[level + 2]
        some, many = first[codes[k + level]], first[codes[k + level] + 1]
        if high - low == 1 and many - some == 1 and whole > -np.inf:
            word, s = words[low], choices[some]
            steps_raw[table, word, s] = min(steps_raw[table, word, s] + share / steps[table, word, s], LARGEST)
            log_scale = whole - logs[level]
            continue
        factor = _exp(weight + logs[level] + log_scale)
        following = high
        for j in range(low, high):
            beta[j] = 0.0
            for choice in range(some, many):
                word, s, more = words[j], choices[choice], alpha[j] * beta[following] * factor
                steps_raw[table, word, s] = min(steps_raw[table, word, s] + more, LARGEST)
                beta[j] += steps[table, word, s] * beta[following]
                following = following + 1 if following + 1 < end else high
        log_scale += _scale(beta, low, high)
    factor = _exp(weight + log_scale)
    for j in range(offsets[1]):
        start_raw[words[j]] = min(start_raw[words[j]] + beta[j] * factor, LARGEST)


@jit
def _exp(x):
    """Return the exponential; one beyond float64 is given as a large number, so that zero times it is zero."""
    return math.exp(min(x, LARGEST_LOG))


@jit
def _scale(values, low, high):
    """Divide a range of values by their sum and return its log; zeros stay, with log -inf."""
    total = 0.0
    for j in range(low, high):
        total += values[j]
    if total == 0.0:
        return -np.inf
    if high - low == 1:
        values[low] = 1.0
    else:
        for j in range(low, high):
            values[j] /= total
    return math.log(total)


@jit
def _codes_of(symbols, i, k):
    """Return the codes of one sequence, at least k: those that it lacks may be any symbol."""
    a, b = symbols.offsets[i], symbols.offsets[i + 1]
    codes = np.empty(max(b - a, k), np.int32)
    for t in range(len(codes)):
        codes[t] = symbols.codes[a + t] if a + t < b else len(symbols.first) - 2
    return codes


@jit
def _lattice_of(codes, first, k):
    """Return an empty lattice for one sequence."""
    offsets = np.zeros(len(codes) - k + 2, np.int64)
    _set_offsets(codes, first, k, offsets)
    return Lattice(offsets, np.empty(offsets[-1], np.int64), np.empty(offsets[-1]), np.empty(len(offsets) - 1))


@jit
def _set_offsets(codes, first, k, offsets):
    """Set where the levels of a lattice begin: the number of words that each window of k symbols may spell."""
    size = 1
    for t in range(k):
        size *= first[codes[t] + 1] - first[codes[t]]
    offsets[1] = size
    for level in range(len(codes) - k):
        new = first[codes[k + level] + 1] - first[codes[k + level]]
        old = first[codes[level] + 1] - first[codes[level]]
        if new != old:
            size = size * new // old
        offsets[level + 2] = offsets[level + 1] + size


@jit
def lattice_sizes(symbols, k, objects):
    """Return the number of contexts (len(objects),) that sequences may spell, at all positions together."""
    contexts = np.zeros(len(objects), np.int64)
    for which in range(len(objects)):
        codes = _codes_of(symbols, objects[which], k)
        offsets = np.zeros(len(codes) - k + 2, np.int64)
        _set_offsets(codes, symbols.first, k, offsets)
        contexts[which] = offsets[-1]
    return contexts
