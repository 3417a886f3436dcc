"""The local alignment kernel of 200 proteins of 200 residues, all pairs, by its public call.

NumPy goes along anti-diagonals, where no cell waits for another, for many pairs at once, in doubles without scales,
which suffice for proteins that are not related.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.timing import race
from genkern import LocalAlignment
from genkern.models.profile.tables import BLOSUM62

PROTEINS, LENGTH, PAIRS = 200, 200, 400  # pairs that NumPy is given
LETTERS = "ACDEFGHIKLMNPQRSTVWY"
GOAL = 20


def numpy_diagonals(first: np.ndarray, second: np.ndarray, beta: float, opened: float, extended: float) -> np.ndarray:
    """Return log sums (P,) of pairs of sequences of codes (P, n) and (P, n')."""
    o, e = np.exp(-beta * opened), np.exp(-beta * extended)
    weights = np.exp(beta * BLOSUM62)[first.T[:, None, :], second.T[None, :, :]]
    n, m, pairs = weights.shape
    shape = n + 1, pairs  # a diagonal by rows
    match, down, across = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    every, before, total = np.ones(shape), np.ones(shape), np.ones(pairs)
    for s in range(2, n + m + 1):
        i = np.arange(max(1, s - m), min(n, s - 1) + 1)
        new_match, new_down, new_across = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        new_match[i] = weights[i - 1, s - i - 1] * before[i - 1]
        new_down[i] = o * match[i - 1] + e * down[i - 1]
        new_across[i] = o * (match[i] + down[i]) + e * across[i]
        match, down, across = new_match, new_down, new_across
        before, every = every, 1.0 + match + down + across
        total += match.sum(axis=0)
    logs: np.ndarray = np.log(total)
    return logs


def main() -> None:
    codes = np.random.default_rng(0).integers(len(LETTERS), size=(PROTEINS, LENGTH))
    X = ["".join(LETTERS[code] for code in row) for row in codes]
    rows, columns = (places[:PAIRS] for places in np.triu_indices(PROTEINS))
    theirs = partial(numpy_diagonals, codes[rows], codes[columns], 0.5, 11.0, 1.0)
    kernel = LocalAlignment()
    np.testing.assert_allclose(kernel.log(X)[rows, columns], theirs(), rtol=1e-12)
    share = PAIRS / (PROTEINS * (PROTEINS + 1) / 2)
    race(
        "LocalAlignment, 200 proteins of 200",
        "numpy, anti-diagonals",
        theirs,
        partial(kernel.log, X),
        GOAL,
        share=share,
    )


if __name__ == "__main__":
    main()
