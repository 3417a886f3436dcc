"""W8: counts of k-mers in 5000 sequences of 1000 nucleotides."""

from __future__ import annotations

import numpy as np

from benchmarks.timing import race
from genkern.core.kmers import kmer_counts, kmer_sparse
from genkern.embed.spectrum import DENSE_WORDS

SEQUENCES, LENGTH, SYMBOLS = 5000, 1000, 4


def words(codes: np.ndarray, k: int) -> np.ndarray:
    """Return the numbers of all words, a row of numbers for each sequence and k after those of the one before."""
    table = codes.reshape(SEQUENCES, LENGTH).astype(np.int64)
    windows = LENGTH - k + 1
    numbers = table[:, :windows].copy()
    for j in range(1, k):
        numbers *= SYMBOLS
        numbers += table[:, j : windows + j]
    numbers += np.arange(SEQUENCES)[:, None] * SYMBOLS**k
    return numbers


def numpy_dense(codes: np.ndarray, k: int) -> np.ndarray:
    """Return counts (n, 4**k) by one bincount."""
    return np.bincount(words(codes, k).ravel(), minlength=SEQUENCES * SYMBOLS**k).reshape(SEQUENCES, -1)


def numpy_sparse(codes: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return counts and places of the words that occur, by sorting."""
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
            race(
                f"{title}, {form}, {dtype}",
                "numpy bincount (dense, int64)",
                lambda k=k: numpy_dense(codes, k),
                lambda k=k, count=count, dtype=dtype: count(codes, offsets, SYMBOLS, k, dtype=dtype),
                goal=10,
            )
        if form == "sparse":
            race(
                f"{title}, sparse, float64",
                "numpy sort (sparse)",
                lambda k=k: numpy_sparse(codes, k),
                lambda k=k: kmer_sparse(codes, offsets, SYMBOLS, k),
            )


if __name__ == "__main__":
    main()
