"""Most probable state paths, and the position at which a sequence becomes impossible."""

from __future__ import annotations

import numpy as np

from genkern.core.arrays.logs import long_add
from genkern.core.hmm.logarithms import log_factor
from genkern.core.hmm.reference import row_of
from genkern.core.jit import jit


@jit
def viterbi_of(problem, path, log_prob):
    """Fill path (N,) and log_prob (n_objects,); ties go to the lower state, impossible objects get -inf."""
    n = problem.start.shape[1]
    for i in range(len(problem.offsets) - 1):
        first, last = problem.offsets[i], problem.offsets[i + 1]
        chain = i if len(problem.start) > 1 else 0
        A = np.log(problem.transitions[chain]).T.copy()
        back = np.zeros((last - first, n), np.int32)
        best, here, shift = np.zeros((n, 2)), np.zeros((n, 2)), (0.0, 0.0)
        best[:, 0] = np.log(problem.start[chain])
        for t in range(last - first):
            row = row_of(problem, i, first + t)
            for k in range(n):
                top = (best[k, 0], best[k, 1])
                if t > 0:
                    back[t, k], top = best_of(best, A[k])
                here[k] = long_add(top, log_factor(problem, row, k))
            best, here = here, best
            shift = long_add(shift, (problem.shift[row], 0.0))
        state, top = best_of(best, np.log(problem.end[chain]))
        log_prob[i] = long_add(top, shift)[0]
        for t in range(last - first - 1, -1, -1):
            path[first + t] = state
            state = back[t, state]


@jit
def best_of(logs, others):
    """Return the first index of the largest logs + others, long logarithms (n, 2) and doubles (n,), and that value."""
    state, top = 0, (-np.inf, 0.0)
    for j in range(len(logs)):
        x = long_add((logs[j, 0], logs[j, 1]), (others[j], 0.0))
        if x[0] > top[0] or (x[0] == top[0] and x[1] > top[1]):
            state, top = j, x
    return state, top


@jit
def first_dead(problem, i):
    """Return the first position at which no state of object i is possible; its length if only the end is not.

    Only zeros and non-zeros are propagated, so that nothing can underflow.
    """
    first, last = problem.offsets[i], problem.offsets[i + 1]
    chain, n = (i if len(problem.start) > 1 else 0), problem.start.shape[1]
    alive = problem.start[chain] > 0.0
    for t in range(last - first):
        row = row_of(problem, i, first + t)
        if t > 0:
            reached = np.zeros(n, np.bool_)
            for k in range(n):
                for j in range(n):
                    reached[k] |= alive[j] and problem.transitions[chain, j, k] > 0.0
            alive = reached
        some = False
        for k in range(n):
            alive[k] = alive[k] and problem.table[row, k] > 0.0
            some |= alive[k]
        if not some:
            return t
    return last - first
