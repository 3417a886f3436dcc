"""W8: counts of k-mers in 5000 sequences of 1000 nucleotides."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.timing import race
from genkern.core.kmers import kmer_counts, kmer_sparse
from genkern.embed.spectrum import DENSE_WORDS

SEQUENCES, LENGTH, SYMBOLS = 5000, 1000, 4


def numpy_dense(codes: np.ndarray, offsets: np.ndarray, k: int) -> np.ndarray:
    """Return counts (n, 4**k) by one bincount, for sequences of any lengths as ours."""
    windows = len(codes) - k + 1
    numbers = codes[:windows].astype(np.int64)
    for j in range(1, k):
        numbers *= SYMBOLS
        numbers += codes[j : windows + j]
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    within = owners[:windows] == owners[k - 1 :]
    numbers += owners[:windows] * SYMBOLS**k
    n = len(offsets) - 1
    return np.bincount(numbers[within], minlength=n * SYMBOLS**k).reshape(n, -1)


def words(codes: np.ndarray, k: int) -> np.ndarray:
    """Return the numbers of all words of sequences of one length, those of a sequence k after those before it."""
    table = codes.reshape(SEQUENCES, LENGTH).astype(np.int64)
    windows = LENGTH - k + 1
    numbers = table[:, :windows].copy()
    for j in range(1, k):
        numbers *= SYMBOLS
        numbers += table[:, j : windows + j]
    numbers += np.arange(SEQUENCES)[:, None] * SYMBOLS**k
    return numbers


def numpy_dense_equal(codes: np.ndarray, k: int) -> np.ndarray:
    """Return counts (n, 4**k) by one bincount, for sequences of one length."""
    return np.bincount(words(codes, k).ravel(), minlength=SEQUENCES * SYMBOLS**k).reshape(SEQUENCES, -1)


def numpy_sparse(codes: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return counts and places of the words that occur, by sorting, for sequences of one length."""
    numbers = words(codes, k)
    numbers.sort(axis=1)
    flat = numbers.ravel()
    first = np.flatnonzero(np.diff(flat, prepend=-1))
    return np.diff(first, append=len(flat)), flat[first]


def main() -> None:
    codes = np.random.default_rng(0).integers(0, SYMBOLS, SEQUENCES * LENGTH).astype(np.int32)
    offsets = np.arange(SEQUENCES + 1) * LENGTH
    for k in range(3, 9):
        title = f"W8 k-mers, 5000 x 1000 nt, k = {k}"
        # Small spectra are dense, large ones sparse, as Spectrum chooses; as integers, like the peer's, and as floats.
        count = kmer_counts if SYMBOLS**k <= DENSE_WORDS else kmer_sparse
        form = "dense" if count is kmer_counts else "sparse"
        for dtype in ("uint16", "float64"):
            ours = partial(count, codes, offsets, SYMBOLS, k, dtype=dtype)
            name = f"{title}, {form}, {dtype}"
            race(name, "numpy bincount (dense, int64)", partial(numpy_dense, codes, offsets, k), ours, 10)
            race(name, "the same for equal lengths only", partial(numpy_dense_equal, codes, k), ours, 10)
        if form == "sparse":
            race(name, "numpy sort for equal lengths only", partial(numpy_sparse, codes, k), ours)


if __name__ == "__main__":
    main()
