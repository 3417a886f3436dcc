"""Passes over one sequence in logarithms: slow, but they neither underflow nor overflow.

They are for the few sequences whose scaled numbers underflow or overflow although log P is finite. Such logarithms may
be of any size, and posteriors are computed from their differences: so they are long ones (``logs``), pairs of doubles
in the last axis of arrays, and probabilities are divided by their sum. ``shift`` cancels from all derivatives and
posteriors, and enters only log P.
"""

from __future__ import annotations

import numpy as np

from genkern.core.arrays.logs import long_add, long_log_sum, long_masses, long_minus
from genkern.core.hmm.reference import row_of
from genkern.core.jit import inlined, jit

LARGEST = np.finfo(np.float64).max


@inlined
def log_factor(problem, row, k):
    """Return the long logarithm of an emission factor without the shift of its row."""
    if len(problem.logs):
        return long_add((problem.logs[row, k], 0.0), (-problem.shift[row], 0.0))
    return np.log(problem.table[row, k]), 0.0


@jit
def log_factors(problem, row):
    """Return the long logarithms (n, 2) of the emission factors of a row without its shift."""
    factors = np.empty((problem.table.shape[1], 2))
    for k in range(len(factors)):
        factors[k] = log_factor(problem, row, k)
    return factors


@jit
def plus(logs, others):
    """Return the sums (n, 2) of long logarithms (n, 2)."""
    sums = np.empty_like(logs)
    for k in range(len(logs)):
        sums[k] = long_add((logs[k, 0], logs[k, 1]), (others[k, 0], others[k, 1]))
    return sums


@jit
def forward(problem, i, pred):
    """Fill pred (T, n, 2) with log predictive mass of object i; return log P including shifts."""
    first, last = problem.offsets[i], problem.offsets[i + 1]
    chain, n = (i if len(problem.start) > 1 else 0), problem.start.shape[1]
    A = np.log(problem.transitions[chain])
    alpha, shift = np.zeros((n, 2)), (0.0, 0.0)
    for t in range(last - first):
        row = row_of(problem, i, first + t)
        for k in range(n):
            if t == 0:
                pred[t, k] = np.log(problem.start[chain, k]), 0.0
            else:
                pred[t, k] = long_log_sum(alpha, A[:, k])
        alpha = plus(pred[t], log_factors(problem, row))
        shift = long_add(shift, (problem.shift[row], 0.0))
    total = long_log_sum(alpha, np.log(problem.end[chain]))
    return long_add(total, shift)[0]


@jit
def backward(problem, i, beta):
    """Fill beta (T, n, 2) with the log mass of the future of object i's states."""
    first, last = problem.offsets[i], problem.offsets[i + 1]
    chain, n = (i if len(problem.start) > 1 else 0), problem.start.shape[1]
    A = np.log(problem.transitions[chain])
    weighted = np.zeros((n, 2))
    for t in range(last - first - 1, -1, -1):
        for k in range(n):
            if t == last - first - 1:
                beta[t, k] = np.log(problem.end[chain, k]), 0.0
            else:
                beta[t, k] = long_log_sum(weighted, A[k])
        weighted = plus(beta[t], log_factors(problem, row_of(problem, i, first + t)))


@jit
def step_logs(problem, i, pred, log_prob):
    """Fill log_prob (T,) with log p(o_t | o_0 ... o_{t-1}) of object i, the last one with the end weight."""
    first, last = problem.offsets[i], problem.offsets[i + 1]
    before, end = (0.0, 0.0), np.log(problem.end[i if len(problem.start) > 1 else 0])
    for t in range(last - first):
        row = row_of(problem, i, first + t)
        alpha = plus(pred[t], log_factors(problem, row))
        seen = long_log_sum(alpha, end if t == last - first - 1 else np.zeros_like(end))
        log_prob[t] = long_add(long_minus(seen, before), (problem.shift[row], 0.0))[0]
        before = seen


@jit
def add_exp(log, out, k):
    """Add exp of a double to out[k], and let both be at most the largest float64."""
    out[k] = min(out[k] + min(np.exp(log), LARGEST), LARGEST)


@jit
def add_derivatives(logs, others, out):
    """Add derivatives by others, log parameters (n,), that go with long log masses (n, 2), to out (n,).

    With the parameters themselves the derivatives sum to one.
    """
    top, total = long_masses(logs, others)
    for k in range(len(logs)):
        add_exp(long_minus((logs[k, 0], logs[k, 1]), top)[0] - total, out, k)


@jit
def log_pairs(before, weighted):
    """Return the long logarithms (n n, 2) of products of masses, whose long logarithms are (n, 2) each."""
    n = len(before)
    pairs = np.empty((n * n, 2))
    for k in range(n):
        for j in range(n):
            pairs[k * n + j] = long_add((before[k, 0], before[k, 1]), (weighted[j, 0], weighted[j, 1]))
    return pairs


@jit
def add_emissions(pred, b, beta, row, out):
    """Add the derivatives by the factors in a row of the table to out (n,).

    Times such a factor a derivative is the posterior, also where the factor was raised above exp b.
    """
    joint = plus(plus(pred, b), beta)
    top, total = long_masses(joint, np.zeros(len(joint)))
    for k in range(len(joint)):
        if b[k, 0] > -np.inf:
            log = long_minus((joint[k, 0], joint[k, 1]), top)[0] - np.log(row[k])
        else:
            around = long_add((pred[k, 0], pred[k, 1]), (beta[k, 0], beta[k, 1]))
            log = long_minus(around, top)[0]
        add_exp(log - total, out, k)


@jit
def add_gradients(problem, i, slot, stride, out):
    """Add the raw derivatives of object i, at most the largest float64 each, to a slot; return log P.

    What belongs to position t is added to slot + t * stride.
    """
    first, last = problem.offsets[i], problem.offsets[i + 1]
    chain, n = (i if len(problem.start) > 1 else 0), problem.start.shape[1]
    symbols = len(problem.table) // len(problem.start)
    pred, beta = np.empty((last - first, n, 2)), np.empty((last - first, n, 2))
    log_prob = forward(problem, i, pred)
    if log_prob == -np.inf:
        return log_prob
    backward(problem, i, beta)
    A, before = np.log(problem.transitions[chain]).ravel(), np.empty((n, 2))
    for t in range(last - first):
        row, here, target = row_of(problem, i, first + t), slot + t * stride, first + t
        if len(problem.codes):
            target = here * symbols + problem.codes[first + t]
        b = log_factors(problem, row)
        alpha, weighted = plus(pred[t], b), plus(beta[t], b)
        add_emissions(pred[t], b, beta[t], problem.table[row], out.emissions[target])
        if t == 0:
            add_derivatives(weighted, np.log(problem.start[chain]), out.start[here])
        else:
            add_derivatives(log_pairs(before, weighted), A, out.transitions[here].ravel())
        before = alpha
    add_derivatives(before, np.log(problem.end[chain]), out.end[slot + (last - first - 1) * stride])
    return log_prob


@jit
def fill_marginals(problem, i, gamma, xi):
    """Fill the positions of object i in gamma (N, n) and xi unless it is empty; nothing if log P = -inf.

    The future alone makes the chain of states given the sequence a Markov chain with known steps: posteriors are
    carried on by these, so that those of pairs sum to those of states whatever was rounded.
    """
    first, last = problem.offsets[i], problem.offsets[i + 1]
    chain, n = (i if len(problem.start) > 1 else 0), problem.start.shape[1]
    beta = np.empty((last - first, n, 2))
    backward(problem, i, beta)
    A, pairs = np.log(problem.transitions[chain]), np.empty((n, n))
    for t in range(last - first):
        weighted = plus(beta[t], log_factors(problem, row_of(problem, i, first + t)))
        if t == 0:
            share_out(weighted, np.log(problem.start[chain]), 1.0, gamma[first])
            continue
        for k in range(n):
            share_out(weighted, A[k], gamma[first + t - 1, k], pairs[k])
        for j in range(n):
            gamma[first + t, j] = pairs[:, j].sum()
        if len(xi):
            xi[first - i + t - 1] = pairs


@jit
def share_out(logs, others, mass, out):
    """Set out (n,) to shares of a mass in proportion to exp(logs + others), (n, 2) and (n,); to zeros if these are."""
    top, total = long_masses(logs, others)
    for k in range(len(out)):
        out[k] = 0.0
        if total > -np.inf:
            out[k] = mass * np.exp(long_minus((logs[k, 0], logs[k, 1]), top)[0] + others[k] - total)


@jit
def log_prob_of(problem, objects, log_prob):
    """Set log_prob[i] for each i in objects."""
    for i in objects:
        pred = np.empty((problem.offsets[i + 1] - problem.offsets[i], problem.start.shape[1], 2))
        log_prob[i] = forward(problem, i, pred)


@jit
def gradients_of(problem, objects, slots, out):
    """Set log P of each i in objects and add its derivatives to slots[i]; nothing is added for log P = -inf."""
    for i in objects:
        out.log_prob[i] = add_gradients(problem, i, slots[i], 0, out)


@jit
def marginals_of(problem, objects, gamma, xi):
    """Fill gamma and xi at the positions of the objects."""
    for i in objects:
        fill_marginals(problem, i, gamma, xi)
