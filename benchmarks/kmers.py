"""W8: counts of k-mers in 5000 sequences of 1000 nucleotides.

Counts in bytes are held to the goal, against one bincount over all words. Two more rows have no goal: NumPy at its
fastest, with words made in 16 bits and counted sequence by sequence, and counts in wider types. What these take beyond
the bytes is memory, so the time to fill new arrays of their size is printed beside 64-bit floats.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.timing import race
from genkern.core.words.counts import kmer_counts, kmer_sparse
from genkern.features.spectrum import DENSE_WORDS

SEQUENCES, LENGTH, SYMBOLS = 5000, 1000, 4
GOAL = 10


def numpy_flat(codes: np.ndarray, offsets: np.ndarray, k: int) -> np.ndarray:
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


def numpy_equal(codes: np.ndarray, k: int) -> np.ndarray:
    """Return counts (n, 4**k) by one bincount, for sequences of one length."""
    return np.bincount(words(codes, k).ravel(), minlength=SEQUENCES * SYMBOLS**k).reshape(SEQUENCES, -1)


def numpy_loop(codes: np.ndarray, offsets: np.ndarray, k: int) -> np.ndarray:
    """Return counts (n, 4**k) by a bincount per sequence, of words made in 16 bits."""
    windows = len(codes) - k + 1
    symbols = codes.astype(np.uint16)
    numbers = symbols[:windows].copy()
    for j in range(1, k):
        numbers *= SYMBOLS
        numbers += symbols[j : windows + j]
    wide = numbers.astype(np.int64)
    counts = np.empty((len(offsets) - 1, SYMBOLS**k), dtype=np.int64)
    for i in range(len(counts)):
        counts[i] = np.bincount(wide[offsets[i] : offsets[i + 1] - k + 1], minlength=SYMBOLS**k)
    return counts


def numpy_sparse(codes: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return counts and places of the words that occur, by sorting, for sequences of one length."""
    numbers = words(codes, k)
    numbers.sort(axis=1)
    flat = numbers.ravel()
    first = np.flatnonzero(np.diff(flat, prepend=-1))
    return np.diff(first, append=len(flat)), flat[first]


def filled(result: Any) -> list[np.ndarray]:
    """Return new arrays of the sizes and types of a result, filled."""
    arrays = result if isinstance(result, tuple) else (result,)
    return [np.full(array.shape, 1, array.dtype) for array in arrays]


def main() -> None:
    codes = np.random.default_rng(0).integers(0, SYMBOLS, SEQUENCES * LENGTH).astype(np.int32)
    offsets = np.arange(SEQUENCES + 1) * LENGTH
    for k in range(3, 9):
        # Small spectra are dense, large ones sparse, as Spectrum chooses.
        count = kmer_counts if SYMBOLS**k <= DENSE_WORDS else kmer_sparse
        form = "dense" if count is kmer_counts else "sparse"
        title = f"W8 {k}-mers, 5000 x 1000 nt, {form}"
        flat = partial(numpy_flat, codes, offsets, k)
        ours = partial(count, codes, offsets, SYMBOLS, k, dtype="uint8")
        race(f"{title}, uint8", "numpy, one bincount", flat, ours, GOAL)
        race(f"{title}, uint8", "the same for equal lengths only", partial(numpy_equal, codes, k), ours, GOAL)
        race(f"{title}, uint8", "numpy, a bincount a sequence", partial(numpy_loop, codes, offsets, k), ours)
        if form == "sparse":
            race(f"{title}, uint8", "numpy, sorting, equal lengths", partial(numpy_sparse, codes, k), ours)
        for dtype in ("uint16", "float64"):
            ours = partial(count, codes, offsets, SYMBOLS, k, dtype=dtype)
            race(f"{title}, {dtype}", "numpy, one bincount", flat, ours)
        race(f"{title}, {dtype}", "filling the memory alone", partial(filled, ours()), ours)


if __name__ == "__main__":
    main()
