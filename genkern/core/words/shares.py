"""Counts of k-mers where symbols are ambiguous: a window shares its weight 1 among all words that it may spell."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import jit

Floats = NDArray[np.float64]
Ints = NDArray[Any]

SPELLINGS = 4096  # words that one window may spell in a sparse result


def choices_of(codes: Ints, offsets: Ints, m: int, members: Any) -> tuple[Ints, Ints]:
    """Return for M codes where their members begin, (M + 1,), and the members one after the other."""
    known = m if members is None else members.shape[0]
    if members is None or codes.max() >= known:
        at = int(np.argmax(codes >= known))
        i = int(np.searchsorted(offsets, at, side="right")) - 1
        raise ValueError(
            f"kmer_counts: codes must be 0, ..., {known - 1}. Got {codes.view(np.int32)[at]} in sequence {i}, "
            f"position {at - offsets[i]}; codes of ambiguous symbols need members."
        )
    rows, choices = members.nonzero()  # of a CSR matrix too, row by row
    first = np.searchsorted(rows, np.arange(known + 1))
    if (np.diff(first) == 0).any():
        raise ValueError(f"kmer_counts: code {int(np.argmin(np.diff(first)))} has no members.")
    return first.astype(np.int64), choices.astype(np.int64)


def spread_sparse(
    codes: Ints, offsets: Ints, size: tuple[int, int], reads: Ints, first: Ints, choices: Ints, leave_out: bool
) -> tuple[Floats, Ints, Ints]:
    """Return data, indices and indptr where codes are ambiguous: all spellings, sorted and summed up.

    size: m, positions that a word spans; reads: positions of its k symbols; leave_out: whether windows with too many
    spellings are left out, not refused.
    """
    spelled, refused = _spellings(codes, offsets, size[1], reads, first)
    if not leave_out and (refused >= 0).any():
        i = int(np.argmax(refused >= 0))
        raise ValueError(
            f"kmer_sparse: sequence {i} has a window of {len(reads)} symbols, from position {refused[i]} on, so "
            f"ambiguous that it may spell more than {SPELLINGS} words. Take a smaller k, a dense result, or cut the "
            "sequence there."
        )
    rows = np.repeat(np.arange(len(spelled)), spelled)
    words, weights = np.empty(len(rows), dtype=np.int64), np.empty(len(rows))
    _spell_all(codes, offsets, size, reads, first, choices, words, weights)
    order = np.lexsort((words, rows))
    rows, words, weights = rows[order], words[order], weights[order]
    new = np.flatnonzero(np.diff(rows, prepend=-1) | np.diff(words, prepend=-1))
    data = np.add.reduceat(weights, new) if len(new) else weights
    return data, words[new], np.searchsorted(rows[new], np.arange(len(spelled) + 1))


@jit
def spread_dense(codes, offsets, size, reads, first, choices, counts):
    """Add to counts, (n, m**k), the weights of all spellings."""
    words = np.empty(counts.shape[1], np.int64)
    for i in range(len(offsets) - 1):
        for t in range(offsets[i], offsets[i + 1] - size[1] + 1):
            count = spell(codes, t, size[0], reads, first, choices, words)
            for s in range(count):
                counts[i, words[s]] += 1.0 / count


@jit
def spell(codes, at, m, reads, first, choices, words):
    """Set all words, in order, that the window at a position may spell, and return their number."""
    words[0] = 0
    count = 1
    for shift in reads:
        code = codes[at + shift]
        begin, many = first[code], first[code + 1] - first[code]
        # From the last word to the first, so that no word is overwritten before it is prolonged.
        for i in range(count - 1, -1, -1):
            word = words[i] * m
            for j in range(many - 1, -1, -1):
                words[i * many + j] = word + choices[begin + j]
        count *= many
    return count


@jit
def _spell_all(codes, offsets, size, reads, first, choices, words, weights):
    """Set the spellings of all windows of all sequences, one after the other, and their weights."""
    filled = 0
    for i in range(len(offsets) - 1):
        for t in range(offsets[i], offsets[i + 1] - size[1] + 1):
            if _n_spellings(codes, t, reads, first) == 0:
                continue
            count = spell(codes, t, size[0], reads, first, choices, words[filled:])
            for s in range(filled, filled + count):
                weights[s] = 1.0 / count
            filled += count


@jit
def _spellings(codes, offsets, span, reads, first):
    """Return how many spellings each sequence has, and its first window with too many, which has none; else -1."""
    spelled, refused = np.zeros(len(offsets) - 1, np.int64), np.full(len(offsets) - 1, -1)
    for i in range(len(offsets) - 1):
        for t in range(offsets[i], offsets[i + 1] - span + 1):
            count = _n_spellings(codes, t, reads, first)
            if count == 0 and refused[i] < 0:
                refused[i] = t - offsets[i]
            spelled[i] += count
    return spelled, refused


@jit
def _n_spellings(codes, at, reads, first):
    """Return how many words the window at a position may spell, zero if too many."""
    count = 1
    for shift in reads:
        count *= first[codes[at + shift] + 1] - first[codes[at + shift]]
        if count > SPELLINGS:
            return 0
    return count
