"""Most probable state paths, and the position at which a sequence becomes impossible."""

from __future__ import annotations

import numpy as np

from genkern.core.hmm_log import log_factor
from genkern.core.hmm_reference import row_of
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
        best, here, shift = np.log(problem.start[chain]), np.empty(n), 0.0
        for t in range(last - first):
            row = row_of(problem, i, first + t)
            for k in range(n):
                top = best[k]
                if t > 0:
                    top = -np.inf
                    for j in range(n):
                        if best[j] + A[k, j] > top:
                            top = best[j] + A[k, j]
                            back[t, k] = j
                here[k] = top + log_factor(problem, row, k)
            best, here = here, best
            shift += problem.shift[row]
        state = 0
        for k in range(n):
            best[k] += np.log(problem.end[chain, k])
            if best[k] > best[state]:
                state = k
        log_prob[i] = best[state] + shift
        for t in range(last - first - 1, -1, -1):
            path[first + t] = state
            state = back[t, state]


@jit
def first_dead(problem, i):
    """Return the first position at which no state of object i is possible; its length if only the end is not.

    Only which numbers are zero matters, so that nothing can underflow.
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
