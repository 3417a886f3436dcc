"""Passes over one sequence in logarithms: slow, but nothing can leave their range.

They serve the few sequences whose scaled numbers vanish or overflow although log P is finite. ``shift`` cancels
from all derivatives and posteriors, and enters only log P.
"""

from __future__ import annotations

import numpy as np

from genkern.core.hmm_reference import row_of
from genkern.core.jit import inlined, jit
from genkern.core.logs import log_sum

LARGEST = np.finfo(np.float64).max


@jit
def capped_exp(x):
    """Return exp(x), at most the largest float64."""
    return min(np.exp(x), LARGEST)


@inlined
def log_factor(problem, row, k):
    """Return the logarithm of an emission factor without the shift of its row."""
    return problem.logs[row, k] - problem.shift[row] if len(problem.logs) else np.log(problem.table[row, k])


@jit
def log_factors(problem, row):
    """Return the logarithms (n,) of the emission factors of a row without its shift."""
    factors = np.empty(problem.table.shape[1])
    for k in range(len(factors)):
        factors[k] = log_factor(problem, row, k)
    return factors


@jit
def forward(problem, i, pred):
    """Fill pred (T, n) with log predictive mass of object i; return log P including shifts."""
    first, last = problem.offsets[i], problem.offsets[i + 1]
    chain, n = (i if len(problem.start) > 1 else 0), problem.start.shape[1]
    A = np.log(problem.transitions[chain])
    alpha, terms, shift = np.empty(n), np.empty(n), 0.0
    for t in range(last - first):
        row = row_of(problem, i, first + t)
        for k in range(n):
            if t == 0:
                pred[t, k] = np.log(problem.start[chain, k])
            else:
                for j in range(n):
                    terms[j] = alpha[j] + A[j, k]
                pred[t, k] = log_sum(terms)
        for k in range(n):
            alpha[k] = pred[t, k] + log_factor(problem, row, k)
        shift += problem.shift[row]
    for k in range(n):
        terms[k] = alpha[k] + np.log(problem.end[chain, k])
    return log_sum(terms) + shift


@jit
def backward(problem, i, beta):
    """Fill beta (T, n) with the log mass of the future of object i's states; return log P without shifts."""
    first, last = problem.offsets[i], problem.offsets[i + 1]
    chain, n = (i if len(problem.start) > 1 else 0), problem.start.shape[1]
    A = np.log(problem.transitions[chain])
    weighted, terms = np.empty(n), np.empty(n)
    for t in range(last - first - 1, -1, -1):
        row = row_of(problem, i, first + t)
        for k in range(n):
            if t == last - first - 1:
                beta[t, k] = np.log(problem.end[chain, k])
            else:
                for j in range(n):
                    terms[j] = A[k, j] + weighted[j]
                beta[t, k] = log_sum(terms)
        for k in range(n):
            weighted[k] = beta[t, k] + log_factor(problem, row, k)
    for k in range(n):
        terms[k] = np.log(problem.start[chain, k]) + weighted[k]
    return log_sum(terms)


@jit
def add_gradients(problem, i, slot, out):
    """Add the raw derivatives of object i, at most the largest float64 each, to a slot; return log P."""
    first, last = problem.offsets[i], problem.offsets[i + 1]
    n, symbols = problem.start.shape[1], len(problem.table) // len(problem.start)
    pred, beta = np.empty((last - first, n)), np.empty((last - first, n))
    log_prob = forward(problem, i, pred)
    total = backward(problem, i, beta)
    if log_prob == -np.inf or total == -np.inf:
        return -np.inf
    for t in range(last - first):
        row, target = row_of(problem, i, first + t), first + t
        if len(problem.codes):
            target = slot * symbols + problem.codes[first + t]
        b = log_factors(problem, row)
        before = log_factors(problem, row_of(problem, i, first + t - 1)) if t > 0 else b
        for k in range(n):
            # The derivative by the factor in the table: times that one it is the posterior, also where it was raised.
            raised = np.log(problem.table[row, k]) - b[k] if len(problem.logs) and b[k] > -np.inf else 0.0
            derivative = capped_exp(pred[t, k] + beta[t, k] - total - raised)
            out.emissions[target, k] = min(out.emissions[target, k] + derivative, LARGEST)
            if t == 0:
                derivative = capped_exp(b[k] + beta[0, k] - total)
                out.start[slot, k] = min(out.start[slot, k] + derivative, LARGEST)
                continue
            for j in range(n):
                derivative = capped_exp(pred[t - 1, k] + before[k] + b[j] + beta[t, j] - total)
                out.transitions[slot, k, j] = min(out.transitions[slot, k, j] + derivative, LARGEST)
    b = log_factors(problem, row_of(problem, i, last - 1))
    for k in range(n):
        derivative = capped_exp(pred[last - first - 1, k] + b[k] - total)
        out.end[slot, k] = min(out.end[slot, k] + derivative, LARGEST)
    return log_prob


@jit
def fill_marginals(problem, i, gamma, xi):
    """Fill the positions of object i in gamma (N, n) and xi unless it is empty; nothing if log P = -inf."""
    first, last = problem.offsets[i], problem.offsets[i + 1]
    chain, n = (i if len(problem.start) > 1 else 0), problem.start.shape[1]
    pred, beta = np.empty((last - first, n)), np.empty((last - first, n))
    forward(problem, i, pred)
    total = backward(problem, i, beta)
    if total == -np.inf:
        return
    A = np.log(problem.transitions[chain])
    for t in range(last - first):
        b = log_factors(problem, row_of(problem, i, first + t))
        before = log_factors(problem, row_of(problem, i, first + t - 1)) if t > 0 else b
        for k in range(n):
            gamma[first + t, k] = np.exp(pred[t, k] + b[k] + beta[t, k] - total)
            if t > 0 and len(xi):
                for j in range(n):
                    pair = pred[t - 1, k] + before[k] + A[k, j] + b[j] + beta[t, j] - total
                    xi[first - i + t - 1, k, j] = np.exp(pair)


@jit
def log_prob_of(problem, objects, log_prob):
    """Set log_prob[i] for each i in objects."""
    for i in objects:
        pred = np.empty((problem.offsets[i + 1] - problem.offsets[i], problem.start.shape[1]))
        log_prob[i] = forward(problem, i, pred)


@jit
def gradients_of(problem, objects, slots, out):
    """Set log P of each i in objects and add its derivatives to slots[i]; nothing is added for log P = -inf."""
    for i in objects:
        out.log_prob[i] = add_gradients(problem, i, slots[i], out)


@jit
def marginals_of(problem, objects, gamma, xi):
    """Fill gamma and xi at the positions of the objects."""
    for i in objects:
        fill_marginals(problem, i, gamma, xi)
