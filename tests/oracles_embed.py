"""Slow, obvious versions of what embeddings compute: enumeration and finite differences, in plain NumPy."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np


def softmax(rows):
    weights = np.exp(rows - rows.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def tables(eta, n, m):
    """Return start (n,), transitions (n, n), emissions (n, m) at softmax coordinates."""
    start, steps, probs = np.split(np.asarray(eta), [n, n + n * n])
    return softmax(start), softmax(steps.reshape(n, n)), softmax(probs.reshape(n, m))


def joint(start, steps, probs, path, symbols):
    """Return p(path, symbols)."""
    value = start[path[0]] * probs[path[0], symbols[0]]
    for t in range(1, len(path)):
        value *= steps[path[t - 1], path[t]] * probs[path[t], symbols[t]]
    return value


def log_prob(eta, n, m, symbols):
    """Return log p(symbols), summing over all paths."""
    parts = tables(eta, n, m)
    return np.log(sum(joint(*parts, path, symbols) for path in product(range(n), repeat=len(symbols))))


def difference(function, eta, step=1e-4):
    """Return the gradient of a function by extrapolated central differences."""
    gradient = np.zeros(len(eta))
    for j in range(len(eta)):
        e = np.zeros(len(eta))
        e[j] = step
        near = (function(eta + e) - function(eta - e)) / (2 * step)
        far = (function(eta + 2 * e) - function(eta - 2 * e)) / (4 * step)
        gradient[j] = (4 * near - far) / 3
    return gradient


def complete_information(eta, n, m, length):
    """Return the information of states and symbols together, by enumerating both."""
    total = np.zeros((len(eta), len(eta)))
    for path in product(range(n), repeat=length):
        for symbols in product(range(m), repeat=length):
            score = difference(lambda v, q=path, x=symbols: np.log(joint(*tables(v, n, m), q, x)), eta)
            total += joint(*tables(eta, n, m), path, symbols) * np.outer(score, score)
    return total


def kmer_counts(text, letters, k, members=None):
    """Return the expected number of every k-mer, ambiguous letters standing for each of their members alike."""
    members = members or {}
    counts = Counter()
    for first in range(len(text) - k + 1):
        choices = [members.get(letter, letter) for letter in text[first : first + k]]
        spellings = list(product(*choices))
        for spelling in spellings:
            counts["".join(spelling)] += 1.0 / len(spellings)
    return np.array([counts["".join(word)] for word in product(letters, repeat=k)])
