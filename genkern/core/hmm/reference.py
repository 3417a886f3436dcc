"""Plain-loop passes over one sequence after another, in scaled arithmetic: the readable reference.

The fast layouts are tested against these passes, and objects whose numbers leave their range are recomputed here.
Objects that leave the range even of this step-by-step normalisation get log P = nan, for ``hmm.logarithms``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from genkern.core.hmm.types import Floats
from genkern.core.jit import inlined, jit

# A step's mass, and what is divided by it, must stay well inside the range of float64.
SMALLEST = 2.0**-400
LARGEST = 2.0**400


class Messages(NamedTuple):
    """Scaled messages of one sequence of length T; gamma = pred * weighted.

    ``pred`` (T, n) predicts the state from the past; ``alpha`` (T, n) adds the present, normalised; ``beta``
    (T, n) is the future divided by the step's mass ``c`` (T + 1,); ``weighted`` (T, n) is beta times the emission
    factor.
    """

    pred: Floats
    alpha: Floats
    beta: Floats
    weighted: Floats
    c: Floats


@inlined
def row_of(problem, i, t):
    """Return the row of the table that holds the emission factors of object i at position t."""
    if len(problem.codes) == 0:
        return t
    chains = len(problem.start)
    chain = i if chains > 1 else 0
    return chain * (len(problem.table) // chains) + problem.codes[t]


@jit
def new_messages(length, n):
    """Allocate the messages of one sequence."""
    size = (length, n)
    return Messages(np.empty(size), np.empty(size), np.empty(size), np.empty(size), np.empty(length + 1))


@jit
def forward(problem, i, messages):
    """Fill pred, alpha and c of object i; return log P, or nan where the numbers leave their range."""
    first, last = problem.offsets[i], problem.offsets[i + 1]
    chain = i if len(problem.start) > 1 else 0
    A, n = problem.transitions[chain], problem.start.shape[1]
    pred, alpha, c = messages.pred, messages.alpha, messages.c
    log_prob = 0.0
    for t in range(last - first):
        row = row_of(problem, i, first + t)
        c[t] = 0.0
        for k in range(n):
            if t == 0:
                pred[t, k] = problem.start[chain, k]
            else:
                pred[t, k] = 0.0
                for j in range(n):
                    pred[t, k] += alpha[t - 1, j] * A[j, k]
            alpha[t, k] = pred[t, k] * problem.table[row, k]
            c[t] += alpha[t, k]
        if not SMALLEST < c[t] < LARGEST:
            return np.nan
        for k in range(n):
            alpha[t, k] /= c[t]
        log_prob += np.log(c[t]) + problem.shift[row]
    c[last - first] = 0.0
    for k in range(n):
        c[last - first] += alpha[last - first - 1, k] * problem.end[chain, k]
    if not SMALLEST < c[last - first] < LARGEST:
        return np.nan
    return log_prob + np.log(c[last - first])


@jit
def backward(problem, i, messages):
    """Fill beta and weighted of object i after the forward pass; return whether all is in range."""
    first, last = problem.offsets[i], problem.offsets[i + 1]
    chain = i if len(problem.start) > 1 else 0
    A, n = problem.transitions[chain], problem.start.shape[1]
    beta, weighted, c = messages.beta, messages.weighted, messages.c
    for t in range(last - first - 1, -1, -1):
        row = row_of(problem, i, first + t)
        for k in range(n):
            future = 0.0
            if t == last - first - 1:
                future = problem.end[chain, k] / c[t + 1]
            else:
                for j in range(n):
                    future += A[k, j] * weighted[t + 1, j]
            beta[t, k] = future / c[t]
            weighted[t, k] = beta[t, k] * problem.table[row, k]
            if not (beta[t, k] < LARGEST and weighted[t, k] < LARGEST):
                return False
    return True


@jit
def add_gradients(problem, i, messages, slot, out):
    """Add the raw derivatives of object i to the slot of the output (math of ``Gradients``)."""
    first, last = problem.offsets[i], problem.offsets[i + 1]
    n, symbols = problem.start.shape[1], len(problem.table) // len(problem.start)
    for t in range(last - first):
        row = first + t
        if len(problem.codes):
            row = slot * symbols + problem.codes[first + t]
        for k in range(n):
            out.emissions[row, k] += messages.pred[t, k] * messages.beta[t, k]
            for j in range(n):
                if t > 0:
                    out.transitions[slot, k, j] += messages.alpha[t - 1, k] * messages.weighted[t, j]
    for k in range(n):
        out.start[slot, k] += messages.weighted[0, k]
        out.end[slot, k] += messages.alpha[last - first - 1, k] / messages.c[last - first]


@jit
def log_prob_of(problem, objects, log_prob):
    """Set log_prob[i] for each i in objects, nan where out of range."""
    n = problem.start.shape[1]
    for i in objects:
        log_prob[i] = forward(problem, i, new_messages(problem.offsets[i + 1] - problem.offsets[i], n))


@jit
def gradients_of(problem, objects, slots, out):
    """Set log P of each i in objects and add its derivatives to slots[i]; nan and nothing where out of range."""
    n = problem.start.shape[1]
    for i in objects:
        messages = new_messages(problem.offsets[i + 1] - problem.offsets[i], n)
        out.log_prob[i] = forward(problem, i, messages)
        if not np.isnan(out.log_prob[i]):
            if backward(problem, i, messages):
                add_gradients(problem, i, messages, slots[i], out)
            else:
                out.log_prob[i] = np.nan


@jit
def marginals_of(problem, objects, gamma, xi, log_prob):
    """Fill gamma (N, n), xi (N - n_objects, n, n) unless it is empty, and log_prob of objects; nan out of range."""
    n = problem.start.shape[1]
    for i in objects:
        first, last = problem.offsets[i], problem.offsets[i + 1]
        messages = new_messages(last - first, n)
        log_prob[i] = forward(problem, i, messages)
        if np.isnan(log_prob[i]) or not backward(problem, i, messages):
            log_prob[i] = np.nan
            continue
        A = problem.transitions[i if len(problem.start) > 1 else 0]
        for t in range(last - first):
            for k in range(n):
                gamma[first + t, k] = messages.pred[t, k] * messages.weighted[t, k]
                if t > 0 and len(xi):
                    for j in range(n):
                        pair = messages.alpha[t - 1, k] * A[k, j] * messages.weighted[t, j]
                        xi[first - i + t - 1, k, j] = pair
