"""Most probable state paths, and the position at which a sequence becomes impossible.

A first pass adds plain logarithms, eight states at a time, and keeps the best value of each state at each step. The
path is found from its end: at each step the best predecessor must lead the second by more than both may be off through
rounding. Sequences in which one does not, such as those with ties, are done again in long logarithms, in which ties
are seen and go to the lower state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.arrays.logs import long_add
from genkern.core.hmm.logarithms import log_factor
from genkern.core.hmm.reference import row_of
from genkern.core.hmm.rows import STRIDE, aligned_columns
from genkern.core.hmm.types import Floats, Problem, read_only
from genkern.core.jit import inlined, jit, kernel, part
from genkern.core.simd.vectors import W, broadcast, element, less, load, maximum, padded, select, store, zero

ROUNDING = 2.0**-53


class Steps(NamedTuple):
    """Logarithms of a problem, padded by -inf to whole vectors, and the largest finite one in size.

    start (P, width), transitions (P * n, width), end (P, n); factors (P * M, width) of symbols, or none.
    """

    start: Floats
    transitions: Floats
    end: Floats
    factors: Floats
    size: float


def steps_of(problem: Problem) -> Steps:
    """Return the logarithms of what all objects share."""
    n = problem.start.shape[1]
    tables = [problem.start, problem.transitions.reshape(-1, n), problem.end]
    tables.append(problem.table if len(problem.codes) else np.empty((0, n)))
    padding = np.full((max(map(len, tables)), padded(n) - n), -np.inf)
    with np.errstate(divide="ignore"):
        logs = [np.log(table) for table in tables]
    sizes = np.concatenate([np.abs(log[np.isfinite(log)]) for log in logs])
    wide = [np.concatenate([log, padding[: len(log)]], axis=1) for log in logs]
    start, transitions, _, factors = map(read_only, wide)
    return Steps(start, transitions, read_only(logs[2]), factors, float(sizes.max(initial=0.0)))


def best_paths(
    problem: Problem, steps: Steps, first: int, last: int, path: NDArray[np.int32], log_prob: Floats
) -> None:
    """Fill path and log_prob of the objects from ``first`` to ``last``, nan for those whose path is too close."""
    longest = int(np.diff(problem.offsets[first : last + 1]).max(initial=0))
    values, extra = aligned_columns(steps.start.shape[1], longest, 1)
    _best_paths(problem, steps, first, last, values, extra[0], path, log_prob)


@kernel
def _best_paths(problem, steps, first, last, values, extra, path, log_prob):
    """Do so with room for the values (T, width) of the longest object, and for one row more."""
    for i in range(first, last):
        size = _fill_values(problem, steps, i, values, extra)
        # Each value is a sum of three numbers a step, all rounded, of rounded logarithms; two are compared.
        off = 16.0 * (problem.offsets[i + 1] - problem.offsets[i] + 1) * ROUNDING * size
        log_prob[i] = _trace(problem, steps, i, values, off, path)
        if log_prob[i] == 0.0:
            log_prob[i] = _log_prob_of_path(problem, steps, i, path)


@part
def _fill_values(problem, steps, i, values, extra):
    """Fill the best log probability of a path to each state, less what all share; return a bound of their size."""
    begin, n, width = problem.offsets[i], problem.start.shape[1], steps.start.shape[1]
    chain = i if len(problem.start) > 1 else 0
    largest, of_factors = zero(), 0.0
    for t in range(problem.offsets[i + 1] - begin):
        row, factors = row_of(problem, i, begin + t), 0
        if len(problem.codes) == 0:
            for k in range(n):
                extra[k] = log_factor(problem, row, k)[0]
                of_factors = max(of_factors, abs(extra[k]) if extra[k] > -np.inf else 0.0)
        else:
            factors = row * width
        for c in range(0, width, W):
            if t == 0:
                best = load(steps.start, chain * width + c)
            else:
                best, before = broadcast(-np.inf), (t - 1) * width
                for j in range(n):
                    step = load(steps.transitions, (chain * n + j) * width + c)
                    best = maximum(best, broadcast(element(values, before + j)) + step)
            best = best + (load(steps.factors, factors + c) if len(problem.codes) else load(extra, c))
            store(values, t * width + c, best)
            largest = maximum(largest, select(less(broadcast(-np.inf), best), zero() - best, zero()))
            largest = maximum(largest, best)
        if t % STRIDE == STRIDE - 1:
            _shift(values, t, n, width)
    store(extra, 0, largest)
    top = 0.0
    for k in range(W):
        top = max(top, extra[k])
    return top + steps.size + of_factors


@inlined
def _shift(values, t, n, width):
    """Take the largest value of a step from all of them, so that sums stay small."""
    top = -np.inf
    for k in range(n):
        top = max(top, values[t, k])
    if top > -np.inf:
        for c in range(0, width, W):
            store(values, t * width + c, load(values, t * width + c) - broadcast(top))


@part
def _trace(problem, steps, i, values, off, path):
    """Fill the path of object i from its end and return zero; -inf if there is none, nan if another is as good.

    As good as rounding lets one see.
    """
    begin, n = problem.offsets[i], problem.start.shape[1]
    chain, last, state = (i if len(problem.start) > 1 else 0), problem.offsets[i + 1] - begin - 1, 0
    for t in range(last, -1, -1):
        best, second, found = -np.inf, -np.inf, 0
        for j in range(n):
            step = steps.end[chain, j] if t == last else steps.transitions[chain * n + j, state]
            value = values[t, j] + step
            if value > best:
                best, second, found = value, best, j
            elif value > second:
                second = value
        if best == -np.inf:
            return best
        if second > best - off:
            return np.nan
        state = found
        path[begin + t] = state
    return 0.0


@part
def _log_prob_of_path(problem, steps, i, path):
    """Return the joint log probability of object i and its path, added in long logarithms."""
    begin, n = problem.offsets[i], problem.start.shape[1]
    chain = i if len(problem.start) > 1 else 0
    before = path[begin]
    moves, emitted, shift = (steps.start[chain, before], 0.0), (0.0, 0.0), (0.0, 0.0)
    for t in range(problem.offsets[i + 1] - begin):
        state, row = path[begin + t], row_of(problem, i, begin + t)
        if t > 0:
            moves = long_add(moves, (steps.transitions[chain * n + before, state], 0.0))
        factor = (steps.factors[row, state], 0.0) if len(problem.codes) else log_factor(problem, row, state)
        emitted = long_add(emitted, factor)
        shift = long_add(shift, (problem.shift[row], 0.0))
        before = state
    moves = long_add(moves, (steps.end[chain, before], 0.0))
    return long_add(long_add(moves, emitted), shift)[0]


@jit
def viterbi_of(problem, objects, path, log_prob):
    """Fill path and log_prob of objects in long logarithms; ties go to the lower state, impossible ones get -inf."""
    n = problem.start.shape[1]
    for i in objects:
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
