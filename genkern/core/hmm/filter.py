"""Filtered posteriors of hidden states, and paths drawn given all observations: forward filtering, backward sampling.

Messages are scaled (``hmm.reference``), or long logarithms (``hmm.logarithms``) for objects that leave the range.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from genkern.core.arrays.draws import draw_index
from genkern.core.arrays.logs import long_masses, long_minus
from genkern.core.hmm import logarithms as hmm_log
from genkern.core.hmm import reference as hmm_reference
from genkern.core.hmm.types import Chains, Evidence, Floats, Ints, as_problem
from genkern.core.jit import jit


def filtered(chains: Chains, evidence: Evidence, offsets: Ints) -> tuple[Floats, Floats]:
    """Return P(q_t | x_0 ... x_t) (N, n) and log P (n_objects,), -inf where impossible; end weights are left out."""
    problem = as_problem(chains._replace(end=np.ones_like(chains.end)), evidence, offsets)
    states, log_prob = np.zeros((int(problem.offsets[-1]), problem.start.shape[1])), np.empty(len(problem.offsets) - 1)
    with np.errstate(all="ignore"):
        _filter(problem, states, log_prob)
    return states, log_prob


def sample_paths(
    chains: Chains, evidence: Evidence, offsets: Ints, numbers: Floats
) -> tuple[NDArray[np.int32], Floats]:
    """Return paths (N, S) of states given each sequence, drawn by uniform numbers (N, S), and log P (n_objects,).

    Paths of an impossible object, with log P = -inf, are undefined.
    """
    problem = as_problem(chains, evidence, offsets)
    paths, log_prob = np.zeros(numbers.shape, np.int32), np.empty(len(problem.offsets) - 1)
    with np.errstate(all="ignore"):
        _sample(problem, np.ascontiguousarray(numbers), paths, log_prob)
    return paths, log_prob


@jit
def _filter(problem, states, log_prob):
    """Fill states (N, n) and log_prob (n_objects,)."""
    n = problem.start.shape[1]
    for i in range(len(log_prob)):
        first, last = problem.offsets[i], problem.offsets[i + 1]
        messages = hmm_reference.new_messages(last - first, n)
        log_prob[i] = hmm_reference.forward(problem, i, messages)
        if not np.isnan(log_prob[i]):
            states[first:last] = messages.alpha
            continue
        logs, zeros = np.empty((last - first, n, 2)), np.zeros(n)
        log_prob[i] = _log_filter(problem, i, logs)
        if log_prob[i] > -np.inf:
            for t in range(last - first):
                _shares(logs[t], zeros, states[first + t])


@jit
def _sample(problem, numbers, paths, log_prob):
    """Fill paths (N, S) and log_prob (n_objects,)."""
    n = problem.start.shape[1]
    for i in range(len(log_prob)):
        first, last = problem.offsets[i], problem.offsets[i + 1]
        chain = i if len(problem.start) > 1 else 0
        messages = hmm_reference.new_messages(last - first, n)
        log_prob[i] = hmm_reference.forward(problem, i, messages)
        if not np.isnan(log_prob[i]):
            into = problem.transitions[chain].T.copy()
            for t in range(last - first - 1, -1, -1):
                for s in range(paths.shape[1]):
                    ahead = problem.end[chain] if t == last - first - 1 else into[paths[first + t + 1, s]]
                    paths[first + t, s] = draw_index(messages.alpha[t], ahead, numbers[first + t, s])
            continue
        logs, shares, ones = np.empty((last - first, n, 2)), np.empty(n), np.ones(n)
        log_prob[i] = _log_filter(problem, i, logs)
        end, steps = np.log(problem.end[chain]), np.log(problem.transitions[chain]).T.copy()
        for t in range(last - first - 1, -1, -1):
            for s in range(paths.shape[1]):
                _shares(logs[t], end if t == last - first - 1 else steps[paths[first + t + 1, s]], shares)
                paths[first + t, s] = draw_index(shares, ones, numbers[first + t, s])


@jit
def _log_filter(problem, i, logs):
    """Fill logs (T, n, 2) with the log mass of the past and the present of object i; return log P."""
    log_prob = hmm_log.forward(problem, i, logs)
    for t in range(len(logs)):
        row = hmm_reference.row_of(problem, i, problem.offsets[i] + t)
        logs[t] = hmm_log.plus(logs[t], hmm_log.log_factors(problem, row))
    return log_prob


@jit
def _shares(logs, others, shares):
    """Fill shares (n,), of sum one, in proportion to exp(logs + others), long logs (n, 2) and doubles (n,)."""
    top, total = long_masses(logs, others)
    for k in range(len(logs)):
        shares[k] = np.exp(long_minus((logs[k, 0], logs[k, 1]), top)[0] + others[k] - total)
