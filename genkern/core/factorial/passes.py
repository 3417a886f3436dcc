r"""Exact passes over several hidden chains that are seen only through a quadratic form of their states.

With u the indicators of all chains' states, K = K_1 + ... + K_C entries of which C are one, the evidence at t is

.. math:: \log b_t(u) = \mathrm{constant}_t + h_t^T u - \tfrac12 u^T G_{p(t)} u ,

the form of a Gaussian whose mean is a sum over chains, whichever entries of the observation are missing. Messages are
vectors over the S = K_1 ... K_C joint states, transitions are applied chain by chain: O(S (K_1 + ... + K_C)) a step
(Ghahramani & Jordan 1997, appendix B). The recursion is scaled; an object that leaves the range of float64 is
recomputed in logarithms. An object's result depends only on the object and its parameters, to the last bit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.arrays.logs import log_sum
from genkern.core.factorial.steps import add_normalised, contract, contract_start, fill_static, fold, spread, transfer
from genkern.core.hmm.types import Floats, Ints, read_only
from genkern.core.jit import jit, kernel, part

# A step's mass, and what is divided by it, must stay well inside the range of float64.
SMALLEST = 2.0**-400
LARGEST = 2.0**400


class JointChains(NamedTuple):
    """Hidden chains side by side: P = 1 is shared by all objects, P = n_objects gives each object its own.

    Attributes
    ----------
    sizes : (C,) int64, the numbers of states K_c.
    start : (P, K), initial probabilities, chain after chain.
    steps : (P, K_1 ** 2 + ... + K_C ** 2), transition matrices row by row, chain after chain.
    """

    sizes: Ints
    start: Floats
    steps: Floats


class QuadraticForms(NamedTuple):
    """Log emission factors of N positions as quadratic forms of the states; ``pattern`` (N,) picks one of M matrices.

    ``constant`` (N,), ``linear`` (N, K), ``quadratic`` (M, K, K) symmetric.
    """

    constant: Floats
    linear: Floats
    quadratic: Floats
    pattern: Ints


class JointProblem(NamedTuple):
    """Chains, evidence and offsets (n_objects + 1,) for compiled code; with ``logs`` chains are given as logarithms.

    ``turned`` are the steps with every matrix transposed.
    """

    sizes: Ints
    start: Floats
    steps: Floats
    turned: Floats
    logs: bool
    evidence: QuadraticForms
    offsets: Ints


class JointGradients(NamedTuple):
    """Log P and its raw, division-free derivatives.

    Attributes
    ----------
    log_prob : (n_objects,); -inf for impossible objects, whose rows below are zero.
    start : (n_objects, K).
    steps : (n_objects, Q) laid out as ``Chains.steps``; (N, Q) by position if asked for, zero at first positions.
    marginal : (N, K), posteriors of states.
    pairs : (n_segments, K, K), posteriors of pairs of states at one position, summed over each segment.
    """

    log_prob: Floats
    start: Floats
    steps: Floats
    marginal: Floats
    pairs: Floats


class JointWorkspace(NamedTuple):
    """Buffers: filtered states (T, S) of the longest object, of which two suffice without derivatives; masses (T, 2).

    In logarithms a mass is the sum of two numbers: the evidence of one state, which may be large, and the rest.

    ``stages`` (C + 1, S) hold messages between chains; ``emission`` (2, S) the evidence of a position and its static
    part; ``rest`` (3, S) is for the backward pass, and ``pair``, zeros, for derivatives before they are divided.
    """

    alpha: Floats
    mass: Floats
    stages: Floats
    emission: Floats
    rest: Floats
    pair: Floats


def log_prob(chains: JointChains, evidence: QuadraticForms, offsets: Ints) -> Floats:
    """Return log P (n_objects,) of each sequence; -inf for an impossible one."""
    objects, size = len(offsets) - 1, evidence.linear.shape[1]
    nothing = np.empty((0, size)), np.empty((0, chains.steps.shape[1])), np.empty((0, size)), np.empty((0, size, size))
    out = JointGradients(np.empty(objects), *nothing)
    _run(chains, evidence, offsets, np.empty(0, np.int64), False, out)
    return out.log_prob


def gradients(
    chains: JointChains,
    evidence: QuadraticForms,
    offsets: Ints,
    segment: Ints,
    n_segments: int,
    by_position: bool = False,
) -> JointGradients:
    """Return raw derivatives per object; pairs are summed over the segments (N,), of which each has one object only."""
    positions, size = evidence.linear.shape
    objects = len(offsets) - 1
    out = JointGradients(
        np.empty(objects),
        np.zeros((objects, size)),
        np.zeros((positions if by_position else objects, chains.steps.shape[1])),
        np.zeros((positions, size)),
        np.zeros((n_segments, size, size)),
    )
    _run(chains, evidence, offsets, segment, by_position, out)
    return out


def viterbi(chains: JointChains, evidence: QuadraticForms, offsets: Ints) -> tuple[NDArray[np.int64], Floats]:
    """Return the most probable joint path (N, C) and its log probability with each sequence (n_objects,)."""
    problem = _as_problem(chains, evidence, offsets, logs=True)
    path = np.zeros((len(evidence.linear), len(chains.sizes)), np.int64)
    best = np.empty(len(offsets) - 1)
    _viterbi(problem, path, best)
    return path, best


def _run(
    chains: JointChains, evidence: QuadraticForms, offsets: Ints, segment: Ints, by_position: bool, out: JointGradients
) -> None:
    """Fill out by the scaled pass, and objects with log P = nan in logarithms."""
    length, states = int(np.diff(offsets).max()), int(np.prod(chains.sizes))
    kept = length if len(out.start) else 2
    pairs = max(int(np.max(chains.sizes)) ** 2, evidence.linear.shape[1])
    shapes = (kept, states), (length, 2), (len(chains.sizes) + 1, states), (2, states), (3, states), (pairs,)
    space = JointWorkspace(*map(np.zeros, shapes))
    lost = np.arange(len(offsets) - 1)
    for logs in (False, True):
        if len(lost):
            with np.errstate(all="ignore"):
                _pass(_as_problem(chains, evidence, offsets, logs), lost, space, segment, by_position, out)
            lost = np.flatnonzero(np.isnan(out.log_prob))


def _as_problem(chains: JointChains, evidence: QuadraticForms, offsets: Ints, logs: bool) -> JointProblem:
    """Return contiguous read-only arrays, so that compiled code has one signature."""
    turned, end = chains.steps.copy(), 0
    for k in chains.sizes:
        matrices = chains.steps[:, end : end + k * k].reshape(-1, k, k)
        turned[:, end : end + k * k] = np.swapaxes(matrices, 1, 2).reshape(-1, k * k)
        end += k * k
    arrays = [np.ascontiguousarray(array) for array in (chains.start, chains.steps, turned)]
    if logs:
        with np.errstate(divide="ignore"):
            arrays = [np.log(array) for array in arrays]
    seen = QuadraticForms(*(read_only(np.ascontiguousarray(array)) for array in evidence))
    start, steps, turned = map(read_only, arrays)
    return JointProblem(read_only(chains.sizes), start, steps, turned, logs, seen, read_only(offsets))


@part
def _advance(problem, p, alpha, stages, last):
    """Fill stages[1:last + 1] with alpha (S,) after the transitions of the first chains."""
    for s in range(len(alpha)):
        stages[0, s] = alpha[s]
    left, offset = 1, 0
    for c in range(last):
        k = problem.sizes[c]
        right = len(alpha) // (left * k)
        matrix = problem.steps[p, offset : offset + k * k]
        transfer(stages[c], stages[c + 1], matrix, left, k, right, problem.logs)
        left, offset = left * k, offset + k * k


@part
def _emit(problem, t, pattern, space):
    """Fill emission[0] with the factors at position t, or their logarithms, scaled to a maximum of one; return its log.

    ``pattern`` is that of the position before, or -1.
    """
    row, static = space.emission[0], space.emission[1]
    if problem.evidence.pattern[t] != pattern:
        fill_static(problem.evidence.quadratic[problem.evidence.pattern[t]], problem.sizes, static)
    spread(problem.evidence.linear[t], problem.sizes, True, row)
    top = -np.inf
    for s in range(len(row)):
        row[s] += static[s]
        top = max(top, row[s])
    for s in range(len(row)):
        row[s] = row[s] - top if problem.logs else math.exp(row[s] - top)
    return top


@part
def _forward(problem, i, space):
    """Fill alpha and mass of object i; return log P, or nan where numbers leave the range of scaled arithmetic."""
    first, length = problem.offsets[i], problem.offsets[i + 1] - problem.offsets[i]
    p = i if len(problem.start) > 1 else 0
    states, chains = space.alpha.shape[1], len(problem.sizes)
    logs, kept, emission = problem.logs, len(space.alpha), space.emission[0]
    log_prob, pattern = 0.0, -1
    for t in range(length):
        log_prob += problem.evidence.constant[first + t] + _emit(problem, first + t, pattern, space)
        pattern = problem.evidence.pattern[first + t]
        if t == 0:
            spread(problem.start[p], problem.sizes, logs, space.stages[chains])
        else:
            _advance(problem, p, space.alpha[(t - 1) % kept], space.stages, chains)
        alpha = space.alpha[t % kept]
        predicted = space.stages[chains]
        total = 0.0
        for s in range(states):
            alpha[s] = predicted[s] + emission[s] if logs else predicted[s] * emission[s]
            total += alpha[s]
        if logs:
            best = np.argmax(alpha)
            if alpha[best] == -np.inf:
                return -np.inf
            for s in range(states):
                alpha[s] = (predicted[s] - predicted[best]) + (emission[s] - emission[best])
            rest = log_sum(alpha)
            for s in range(states):
                alpha[s] -= rest
            space.mass[t, 0], space.mass[t, 1] = emission[best], predicted[best] + rest
            log_prob += emission[best] + (predicted[best] + rest)
        else:
            if not SMALLEST < total < LARGEST:
                return np.nan
            for s in range(states):
                alpha[s] /= total
            log_prob += math.log(total)
            space.mass[t, 0] = total
    return log_prob


@part
def _weigh(t, logs, space, beta, gamma):
    """Fill gamma (S,) with alpha * beta, then beta, in place, with itself times evidence over mass; return its top.

    In logarithms gamma is divided by its sum, and beta by the same: the sum is one except for rounding.
    """
    top, drift = -np.inf, 0.0
    for s in range(len(beta)):
        gamma[s] = space.alpha[t, s] + beta[s] if logs else space.alpha[t, s] * beta[s]
    if logs:
        drift = log_sum(gamma)
        for s in range(len(beta)):
            gamma[s] = math.exp(gamma[s] - drift)
    for s in range(len(beta)):
        if logs:
            beta[s] = (beta[s] - drift) + ((space.emission[0, s] - space.mass[t, 0]) - space.mass[t, 1])
        else:
            beta[s] *= space.emission[0, s] / space.mass[t, 0]
        top = max(top, beta[s])
    return top


@part
def _backward(problem, i, space, segment, by_position, out):
    """Add the derivatives of object i after the forward pass; return whether all is in range."""
    first, length = problem.offsets[i], problem.offsets[i + 1] - problem.offsets[i]
    p = i if len(problem.start) > 1 else 0
    states, chains = space.alpha.shape[1], len(problem.sizes)
    logs, width = problem.logs, problem.steps.shape[1]
    beta, gamma, other = space.rest[0], space.rest[1], space.rest[2]
    for s in range(states):
        beta[s] = 0.0 if logs else 1.0
    pattern = -1
    for t in range(length - 1, -1, -1):
        _emit(problem, first + t, pattern, space)
        pattern = problem.evidence.pattern[first + t]
        top = _weigh(t, logs, space, beta, gamma)
        fold(gamma, problem.sizes, out.marginal[first + t], out.pairs[segment[first + t]])
        if not logs and not top < LARGEST:
            return False
        if t == 0:
            break
        _advance(problem, p, space.alpha[t - 1], space.stages, chains - 1)
        slot = first + t if by_position else i
        left, offset = states, width
        for c in range(chains - 1, -1, -1):
            k = problem.sizes[c]
            right, left, offset = states // left, left // k, offset - k * k
            to, pair = out.steps[slot, offset : offset + k * k], space.pair[: k * k]
            contract(space.stages[c], beta, left, k, right, logs, pair if logs else to)
            if logs:
                add_normalised(pair, problem.steps[p, offset : offset + k * k], to)
            transfer(beta, other, problem.turned[p, offset : offset + k * k], left, k, right, logs)
            beta, other = other, beta
    pair, offset = space.pair, 0
    contract_start(problem.start[p], problem.sizes, beta, gamma, logs, pair if logs else out.start[i])
    for k in problem.sizes:
        if logs:
            add_normalised(
                pair[offset : offset + k], problem.start[p, offset : offset + k], out.start[i, offset : offset + k]
            )
        offset += k
    return True


@part
def _clear(problem, i, segment, by_position, out):
    """Set all derivatives of object i back to zero."""
    first, last = problem.offsets[i], problem.offsets[i + 1]
    size = out.start.shape[1]
    for t in range(first, last):
        for a in range(size):
            out.start[i, a] = out.marginal[t, a] = 0.0
            for b in range(size):
                out.pairs[segment[t], a, b] = 0.0
        slot = t if by_position else i
        for a in range(out.steps.shape[1]):
            out.steps[slot, a] = 0.0


@kernel
def _pass(problem, objects, space, segment, by_position, out):
    """Fill log P of the objects and, unless their buffers are empty, derivatives; nan where out of range."""
    for i in objects:
        out.log_prob[i] = _forward(problem, i, space)
        if len(out.start) == 0 or not out.log_prob[i] > -np.inf:
            continue
        if not _backward(problem, i, space, segment, by_position, out):
            _clear(problem, i, segment, by_position, out)
            out.log_prob[i] = np.nan


@jit
def _viterbi(problem, path, best):
    """Fill the most probable paths by maxima taken chain by chain; choices[t, c] (S,) remember the chain's past."""
    chains, states = len(problem.sizes), 1
    for k in problem.sizes:
        states *= k
    static, row, scores, following = np.empty(states), np.empty(states), np.empty(states), np.empty(states)
    for i in range(len(best)):
        first, length = problem.offsets[i], problem.offsets[i + 1] - problem.offsets[i]
        p = i if len(problem.start) > 1 else 0
        choices, shift = np.zeros((length, chains, states), np.int32), 0.0
        for t in range(length):
            if t == 0:
                spread(problem.start[p], problem.sizes, True, scores)
            left, offset = 1, 0
            for c in range(chains if t else 0):
                k = problem.sizes[c]
                right = states // (left * k)
                for s in range(states):
                    j = s // right % k
                    following[s] = -np.inf
                    for origin in range(k):
                        step = problem.steps[p, offset + origin * k + j]
                        value = scores[s + (origin - j) * right] + step
                        if value > following[s]:
                            following[s] = value
                            choices[t, c, s] = origin
                scores, following = following, scores
                left, offset = left * k, offset + k * k
            fill_static(problem.evidence.quadratic[problem.evidence.pattern[first + t]], problem.sizes, static)
            spread(problem.evidence.linear[first + t], problem.sizes, True, row)
            for s in range(states):
                scores[s] += row[s] + static[s]
            # Paths are compared by numbers of order one, which round less than large ones.
            top = scores.max()
            shift += top + problem.evidence.constant[first + t]
            if top > -np.inf:
                scores -= top
        state = np.argmax(scores)
        best[i] = shift
        for t in range(length - 1, -1, -1):
            right = 1
            for c in range(chains - 1, -1, -1):
                k = problem.sizes[c]
                j = state // right % k
                path[first + t, c] = j
                if t > 0:
                    state += (choices[t, c, state] - j) * right
                right *= k
