"""Steps of the passes over a product of hidden chains: operations on one vector over all joint states.

A vector over the S joint states is the flattened tensor (K_1, ..., K_C), the last chain running fastest; ``left`` and
``right`` are the products of the sizes before and after a chain. With ``logs`` vectors hold logarithms.
"""

from __future__ import annotations

import math

import numpy as np

from genkern.core.hmm.types import Floats, Ints, read_only
from genkern.core.jit import kernel, part

HIGHEST = np.finfo(np.float64).max


@part
def fill_static(quadratic, sizes, out):
    """Fill out (S,) with -u^T G u / 2 for the indicators u of every joint state; G is (K, K)."""
    for s in range(len(out)):
        out[s] = 0.0
    left, offset = 1, 0
    for c in range(len(sizes)):
        k = sizes[c]
        right = len(out) // (left * k)
        before, other = 1, 0
        for e in range(c + 1):
            n = sizes[e] if e < c else 1  # a chain with itself: one term for each of its states
            between = left // (before * n)
            for row in range(before * n * between * k):
                a, b = row % k, row // (k * between) % n
                value = quadratic[offset + a, other + b] if e < c else 0.5 * quadratic[offset + a, offset + a]
                for r in range(right):
                    out[row * right + r] -= value
            before, other = before * n, other + n
        left, offset = left * k, offset + k


@part
def spread(parts, sizes, logs, out):
    """Fill out (S,) with the sum (logs) or product over chains of parts (K,), each taken at the chain's state."""
    out[0] = 0.0 if logs else 1.0
    count, offset = 1, 0
    for c in range(len(sizes)):
        k = sizes[c]
        for outer in range(count - 1, -1, -1):
            base = out[outer]
            for j in range(k - 1, -1, -1):
                out[outer * k + j] = base + parts[offset + j] if logs else base * parts[offset + j]
        count *= k
        offset += k


@part
def transfer(source, target, matrix, left, k, right, logs):
    """Apply a matrix (flat k * k, from row to column) to a chain's axis of a vector (S,)."""
    if logs:
        _transfer_logs(source, target, matrix, left, k, right)
        return
    for outer in range(left):
        base = outer * k * right
        if right == 1:  # the last chain: its states lie side by side
            for j in range(k):
                target[base + j] = source[base] * matrix[j]
            for i in range(1, k):
                value = source[base + i]
                for j in range(k):
                    target[base + j] += value * matrix[i * k + j]
            continue
        for j in range(k):
            weight, to = matrix[j], base + j * right
            for r in range(right):
                target[to + r] = source[base + r] * weight
            for i in range(1, k):
                weight, at = matrix[i * k + j], base + i * right
                for r in range(right):
                    target[to + r] += source[at + r] * weight


@part
def _transfer_logs(source, target, matrix, left, k, right):
    """Do the same to logarithms."""
    for outer in range(left):
        base = outer * k * right
        for j in range(k):
            for r in range(right):
                top, total = -np.inf, 0.0
                for i in range(k):
                    top = max(top, source[base + i * right + r] + matrix[i * k + j])
                if top > -np.inf:
                    for i in range(k):
                        total += math.exp(source[base + i * right + r] + matrix[i * k + j] - top)
                    top += math.log(total)
                target[base + j * right + r] = top


@part
def contract(past, future, left, k, right, logs, out):
    """Add to out (flat k * k) the sums over all other axes of past[.., i, ..] * future[.., j, ..]."""
    for outer in range(left):
        for i in range(k):
            a = (outer * k + i) * right
            if right == 1 and not logs:
                value = past[a]
                for j in range(k):
                    out[i * k + j] += value * future[outer * k + j]
                continue
            for j in range(k):
                b, total = (outer * k + j) * right, 0.0
                for r in range(right):
                    if logs:
                        total += np.exp(past[a + r] + future[b + r])  # may overflow
                    else:
                        total += past[a + r] * future[b + r]
                out[i * k + j] = min(out[i * k + j] + total, HIGHEST)


@part
def contract_start(start, sizes, future, before, logs, out):
    """Add to out (K,) the derivatives by each chain's start of sum_s prod_c start_c(s_c) future(s).

    ``future`` (S,) and ``before`` (S,) are overwritten.
    """
    chains, offset, count = len(sizes), len(start), len(future)
    for c in range(chains - 1, -1, -1):
        k = sizes[c]
        offset, count = offset - k, count // k
        spread(start, sizes[:c], logs, before)
        for outer in range(count):
            top, total = -np.inf, 0.0
            for j in range(k):
                value = future[outer * k + j]
                if logs:
                    out[offset + j] = min(out[offset + j] + np.exp(before[outer] + value), HIGHEST)
                    top = max(top, start[offset + j] + value)
                else:
                    out[offset + j] += before[outer] * value
                    total += start[offset + j] * value
            if logs and top > -np.inf:
                for j in range(k):
                    total += math.exp(start[offset + j] + future[outer * k + j] - top)
            if logs:
                future[outer] = top + math.log(total) if total > 0.0 else -np.inf
            else:
                future[outer] = total


@part
def add_normalised(found, parameters, out):
    """Add derivatives to others, divided by the sum of their products with the parameters, which are logarithms."""
    total = 0.0
    for a in range(len(found)):
        if parameters[a] > -np.inf:
            total += math.exp(parameters[a]) * found[a]
    for a in range(len(found)):
        out[a] = min(out[a] + (found[a] / total if total > 0.0 else found[a]), HIGHEST)
        found[a] = 0.0


@part
def fold(gamma, sizes, marginal, pairs):
    """Set marginal (K,) and add to pairs (K, K) the posteriors of states and of pairs of them, from gamma (S,).

    ``gamma`` is overwritten: chain after chain is summed out, so that all pairs cost little more than one sweep each.
    """
    chains, offset, count = len(sizes), 0, len(gamma)
    for c in range(chains):
        k = sizes[c]
        rest = count // k
        for a in range(k):
            total = 0.0
            for r in range(rest):
                total += gamma[a * rest + r]
            marginal[offset + a] = total
            pairs[offset + a, offset + a] += total
        other, right = offset + k, rest
        for e in range(c + 1, chains):
            n = sizes[e]
            right //= n
            for a in range(k):
                for b in range(n):
                    total = 0.0
                    for outer in range(rest // (n * right)):
                        base = a * rest + (outer * n + b) * right
                        for r in range(right):
                            total += gamma[base + r]
                    pairs[offset + a, other + b] += total
                    pairs[other + b, offset + a] += total
            other += n
        for a in range(1, k):
            for r in range(rest):
                gamma[r] += gamma[a * rest + r]
        offset, count = offset + k, rest


def project(points: Floats, which: Ints, matrices: Floats) -> Floats:
    """Return points (N, d) times the one of the matrices (M, d, q) that ``which`` (N,) names for each."""
    out = np.empty((len(points), matrices.shape[2]))
    _project(read_only(points), read_only(which), read_only(np.ascontiguousarray(matrices)), out)
    return out


def outer_sums(left: Floats, right: Floats, segment: Ints, n_segments: int) -> Floats:
    """Return sums (n_segments, a, b) of outer products of rows of left (N, a) and right (N, b), by segment (N,)."""
    out = np.zeros((n_segments, left.shape[1], right.shape[1]))
    _outer_sums(read_only(left), read_only(right), read_only(segment), out)
    return out


@kernel
def _project(points, which, matrices, out):
    """Fill out (N, q)."""
    for t in range(len(points)):
        matrix = matrices[which[t]]
        for b in range(out.shape[1]):
            total = 0.0
            for a in range(points.shape[1]):
                total += points[t, a] * matrix[a, b]
            out[t, b] = total


@kernel
def _outer_sums(left, right, segment, out):
    """Add to out (n_segments, a, b)."""
    for t in range(len(left)):
        target = out[segment[t]]
        for a in range(left.shape[1]):
            for b in range(right.shape[1]):
                target[a, b] += left[t, a] * right[t, b]
