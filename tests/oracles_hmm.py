"""Hidden Markov quantities by enumeration of every state path, in plain NumPy."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np


class Enumerated(NamedTuple):
    """Of one sequence: log P; posteriors gamma (T, n) and xi (T - 1, n, n); raw derivatives of log P; best path."""

    log_prob: float
    gamma: np.ndarray
    xi: np.ndarray
    start: np.ndarray
    transitions: np.ndarray
    end: np.ndarray
    emissions: np.ndarray  # (T, n), with respect to each factor b[t, k]
    path: tuple[int, ...]
    path_log_prob: float


def enumerate_paths(start, transitions, end, b):
    """Sum over all n**T paths of start * prod b * prod transitions * end; b (T, n) holds the emission factors.

    Each derivative is the sum over paths that use a factor of the product of all *other* factors.
    """
    length, n = b.shape
    paths = np.array(list(product(range(n), repeat=length)))
    steps = np.arange(length)
    factors = np.column_stack(
        [start[paths[:, 0]], transitions[paths[:, :-1], paths[:, 1:]], b[steps, paths], end[paths[:, -1]]]
    )
    joint = factors.prod(axis=1)
    total = joint.sum()
    others = np.column_stack([np.delete(factors, f, axis=1).prod(axis=1) for f in range(factors.shape[1])])
    if total > 0:
        others, weight = others / total, joint / total
    else:
        others, weight = np.zeros_like(others), np.zeros_like(joint)
    gamma, d_emissions = np.zeros((length, n)), np.zeros((length, n))
    xi, d_transitions = np.zeros((length - 1, n, n)), np.zeros((n, n))
    d_start, d_end = np.zeros(n), np.zeros(n)
    np.add.at(d_start, paths[:, 0], others[:, 0])
    np.add.at(d_end, paths[:, -1], others[:, -1])
    for t in range(length):
        np.add.at(gamma[t], paths[:, t], weight)
        np.add.at(d_emissions[t], paths[:, t], others[:, length + t])
        if t > 0:
            np.add.at(xi[t - 1], (paths[:, t - 1], paths[:, t]), weight)
            np.add.at(d_transitions, (paths[:, t - 1], paths[:, t]), others[:, t])
    with np.errstate(divide="ignore"):
        log_prob, best = np.log(total), np.log(joint.max())
    path = tuple(int(k) for k in paths[joint.argmax()])
    return Enumerated(log_prob, gamma, xi, d_start, d_transitions, d_end, d_emissions, path, best)


def object_factors(chains, evidence, offsets, i):
    """Return start, transitions, end and b (T, n) of object i, by the definition of Chains and Evidence."""
    p = i if len(chains.start) > 1 else 0
    symbols = len(evidence.table) // len(chains.start)
    positions = np.arange(offsets[i], offsets[i + 1])
    rows = positions if evidence.codes is None else p * symbols + evidence.codes[positions]
    b = evidence.table[rows] * np.exp(evidence.shift[rows])[:, None]
    return chains.start[p], chains.transitions[p], chains.end[p], b


def enumerate_object(chains, evidence, offsets, i):
    """Enumerate the paths of object i; emission derivatives with respect to the table, and summed by symbol."""
    start, transitions, end, b = object_factors(chains, evidence, offsets, i)
    found = enumerate_paths(start, transitions, end, b)
    positions = np.arange(offsets[i], offsets[i + 1])
    p = i if len(chains.start) > 1 else 0
    symbols = len(evidence.table) // len(chains.start)
    rows = positions if evidence.codes is None else p * symbols + evidence.codes[positions]
    emissions = found.emissions * np.exp(evidence.shift[rows])[:, None]
    if evidence.codes is not None:
        summed = np.zeros((symbols, b.shape[1]))
        np.add.at(summed, evidence.codes[positions], emissions)
        emissions = summed
    return found._replace(emissions=emissions)
