r"""Counts of k-mers in sequences of symbols, dense or sparse.

.. math:: Φ_u(x) = \#\{t : x_t x_{t+1} \dots x_{t+k-1} = u\}

The word u = u_1 ... u_k stands at index Σ_j u_j m^{k-j}: words are in lexicographic order. A code c >= m stands for
missing information: some symbol of its members, each as likely. Counted is the expectation, so a window spreads its
weight 1 evenly over all words it may spell. Sequences shorter than k have no words.

References
----------
Leslie, Eskin & Noble (2002), The spectrum kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import jit

Floats = NDArray[np.float64]
Ints = NDArray[Any]

SPELLINGS = 4096  # words that one window may spell in a sparse result
CHUNK = 1024  # windows whose words are made at a time, in the first-level cache
DIGIT = 11  # bits sorted at a time, at most


def kmer_counts(codes: Ints, offsets: Ints, m: int, k: int, members: Floats | None = None) -> Floats:
    """Return the counts as a dense array.

    Parameters
    ----------
    codes : ndarray (N,) of int
        Symbols 0, ..., m - 1 of all sequences, and codes up to M - 1 of ambiguous ones.
    offsets : ndarray (n + 1,) of int
        Where sequences begin and end.
    m, k : int
        Size of the alphabet, length of the words.
    members : ndarray (M, m), optional
        0/1: what a code may stand for. Needed where codes are ambiguous.

    Returns
    -------
    ndarray (n, m**k)
    """
    codes, offsets = _check(codes, offsets, m, k)
    counts = np.empty((len(offsets) - 1, m**k))
    if not _count_dense(codes, offsets, (m, k), np.empty(CHUNK, _word_kind(m**k)), counts):
        counts[:] = 0.0
        _spread_dense(codes, offsets, (m, k), *_choices(codes, offsets, m, members), counts)
    return counts


def kmer_sparse(codes: Ints, offsets: Ints, m: int, k: int, members: Floats | None = None) -> tuple[Floats, Ints, Ints]:
    """Return the counts as data, indices and indptr of a CSR matrix (n, m**k), indices sorted; see kmer_counts.

    A window of ambiguous symbols that may spell more than 4096 words is refused: its row would not be sparse.
    """
    codes, offsets = _check(codes, offsets, m, k)
    kind = _index_kind(max(m**k, len(codes)))
    data: Floats = np.empty(len(codes))
    indices: Ints = np.empty(len(codes), kind)
    indptr: Ints = np.zeros(len(offsets), kind)
    words: Ints = np.empty((2, int(np.diff(offsets).max(initial=0))), _word_kind(m**k))
    if _count_sparse(codes, offsets, (m, k, *_digits(m**k)), words, data, indices, indptr):
        # Views: what lies behind was never touched and takes no memory.
        return data[: indptr[-1]], indices[: indptr[-1]], indptr
    data, indices, indptr = _spread_sparse(codes, offsets, m, k, *_choices(codes, offsets, m, members))
    kind = _index_kind(max(m**k, len(data)))
    return data, indices.astype(kind), indptr.astype(kind)


def _spread_sparse(codes: Ints, offsets: Ints, m: int, k: int, first: Ints, choices: Ints) -> tuple[Floats, Ints, Ints]:
    """Return data, indices and indptr where codes are ambiguous: all spellings, sorted and summed up."""
    room = _spellings(codes, offsets, k, first)
    if (room < 0).any():
        i = int(np.argmax(room < 0))
        raise ValueError(
            f"kmer_sparse: sequence {i} has a window of {k} symbols, from position {-room[i] - 1} on, so ambiguous "
            f"that it may spell more than {SPELLINGS} words. Take a smaller k, a dense result, or cut the sequence "
            "there."
        )
    rows = np.repeat(np.arange(len(room)), room)
    words, weights = np.empty(len(rows), dtype=np.int64), np.empty(len(rows))
    _spell_all(codes, offsets, (m, k), first, choices, words, weights)
    order = np.lexsort((words, rows))
    rows, words, weights = rows[order], words[order], weights[order]
    new = np.flatnonzero(np.diff(rows, prepend=-1) | np.diff(words, prepend=-1))
    data = np.add.reduceat(weights, new) if len(new) else weights
    return data, words[new], np.searchsorted(rows[new], np.arange(len(room) + 1))


def _check(codes: Ints, offsets: Ints, m: int, k: int) -> tuple[Ints, Ints]:
    """Return codes, as unsigned numbers of which negative ones are the largest, and offsets."""
    if m < 1 or k < 1:
        raise ValueError(f"kmer_counts: m and k must be at least 1. Got m={m} and k={k}.")
    if m**k > np.iinfo(np.int64).max:
        raise ValueError(f"kmer_counts: there are {m}**{k} words, more than can be numbered. Take a smaller k.")
    offsets = np.ascontiguousarray(offsets, dtype=np.int64)
    if len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != len(codes) or (np.diff(offsets) < 0).any():
        raise ValueError(f"kmer_counts: offsets must rise from 0 to {len(codes)}. Got {offsets}.")
    return np.ascontiguousarray(codes, dtype=np.int32).view(np.uint32), offsets


def _index_kind(largest: int) -> type:
    """Return the kind of integers in which scipy keeps indices up to so many."""
    return np.int32 if largest <= np.iinfo(np.int32).max else np.int64


def _word_kind(words: int) -> type:
    """Return the smaller kind of unsigned integers that numbers so many words."""
    return np.uint32 if words <= 2**32 else np.uint64


def _digits(words: int) -> tuple[int, int]:
    """Return how many digits, of how many bits, number so many words."""
    bits = max(1, (words - 1).bit_length())
    digits = -(-bits // DIGIT)
    return digits, -(-bits // digits)


def _choices(codes: Ints, offsets: Ints, m: int, members: Floats | None) -> tuple[Ints, Ints]:
    """Return for M codes where their members begin, (M + 1,), and the members one after the other."""
    if members is None or codes.max() >= len(members):
        known = m if members is None else len(members)
        at = int(np.argmax(codes >= known))
        i = int(np.searchsorted(offsets, at, side="right")) - 1
        raise ValueError(
            f"kmer_counts: codes must be 0, ..., {known - 1}. Got {codes.view(np.int32)[at]} in sequence {i}, "
            f"position {at - offsets[i]}; codes of ambiguous symbols need members."
        )
    rows, choices = np.nonzero(members)
    first = np.searchsorted(rows, np.arange(len(members) + 1))
    if (np.diff(first) == 0).any():
        raise ValueError(f"kmer_counts: code {int(np.argmin(np.diff(first)))} has no members.")
    return first.astype(np.int64), choices.astype(np.int64)


@jit
def _is_plain(codes, start, end, m):
    """Say whether all codes of a sequence are below m."""
    some = codes[start:end]
    highest = codes.dtype.type(0)
    for t in range(len(some)):
        highest = max(highest, some[t])
    return highest < m


@jit
def _words(codes, start, count, m, k, words):
    """Set the words of ``count`` windows from a position on, by loops over windows that run in vectors."""
    words[:count] = 0
    base = words.dtype.type(m)
    for j in range(k):
        some = codes[start + j : start + j + count]
        for t in range(count):
            words[t] = words[t] * base + words.dtype.type(some[t])


@jit
def _count_dense(codes, offsets, size, words, counts):
    """Set counts, (n, m**k), and return whether no code was ambiguous; size: m, k; words: (CHUNK,)."""
    m, k = size
    # A small table of integers stays in the cache, and counts are written once, in order.
    table = np.empty(counts.shape[1], np.int32)
    for i in range(len(offsets) - 1):
        if not _is_plain(codes, offsets[i], offsets[i + 1], m):
            return False
        table[:] = 0
        for start in range(offsets[i], offsets[i + 1] - k + 1, CHUNK):
            count = min(CHUNK, offsets[i + 1] - k + 1 - start)
            _words(codes, start, count, m, k, words)
            for t in range(count):
                table[words[t]] += 1
        for word in range(len(table)):
            counts[i, word] = table[word]
    return True


@jit
def _count_sparse(codes, offsets, size, words, data, indices, indptr):
    """Append the words of each sequence in order, and how often they occur; return whether no code was ambiguous.

    size: m, k, digits, bits of a digit; words: (2, longest sequence).
    """
    m, k, digits, bits = size
    bins = np.empty(1 << bits, np.int64)
    filled = 0
    for i in range(len(offsets) - 1):
        if not _is_plain(codes, offsets[i], offsets[i + 1], m):
            return False
        count = max(0, offsets[i + 1] - offsets[i] - k + 1)
        _words(codes, offsets[i], count, m, k, words[0])
        for digit in range(digits):
            _sort_digit(words[digit % 2], words[1 - digit % 2], count, digit * bits, bins)
        ordered = words[digits % 2]
        for t in range(count):
            if t > 0 and ordered[t] == ordered[t - 1]:
                data[filled - 1] += 1.0
            else:
                indices[filled], data[filled] = ordered[t], 1.0
                filled += 1
        indptr[i + 1] = filled
    return True


@jit
def _sort_digit(words, target, count, shift, bins):
    """Put the first ``count`` words into the order of one digit, equal ones as they came."""
    mask = len(bins) - 1
    bins[:] = 0
    for t in range(count):
        bins[(words[t] >> shift) & mask] += 1
    place = 0
    for b in range(len(bins)):
        bins[b], place = place, place + bins[b]
    for t in range(count):
        b = (words[t] >> shift) & mask
        target[bins[b]] = words[t]
        bins[b] += 1


@jit
def _spell(codes, at, size, first, choices, words):
    """Set all words, in order, that the window at a position may spell, and return their number; size: m, k."""
    m, k = size
    words[0] = 0
    count = 1
    for t in range(at, at + k):
        begin, many = first[codes[t]], first[codes[t] + 1] - first[codes[t]]
        # From the last word to the first, so that no word is overwritten before it is prolonged.
        for i in range(count - 1, -1, -1):
            word = words[i] * m
            for j in range(many - 1, -1, -1):
                words[i * many + j] = word + choices[begin + j]
        count *= many
    return count


@jit
def _spread_dense(codes, offsets, size, first, choices, counts):
    """Add to counts, (n, m**k), the weights of all spellings."""
    words = np.empty(counts.shape[1], np.int64)
    for i in range(len(offsets) - 1):
        for t in range(offsets[i], offsets[i + 1] - size[1] + 1):
            count = _spell(codes, t, size, first, choices, words)
            for s in range(count):
                counts[i, words[s]] += 1.0 / count


@jit
def _spell_all(codes, offsets, size, first, choices, words, weights):
    """Set the spellings of all windows of all sequences, one after the other, and their weights."""
    filled = 0
    for i in range(len(offsets) - 1):
        for t in range(offsets[i], offsets[i + 1] - size[1] + 1):
            count = _spell(codes, t, size, first, choices, words[filled:])
            for s in range(filled, filled + count):
                weights[s] = 1.0 / count
            filled += count


@jit
def _spellings(codes, offsets, k, first):
    """Return the number of spellings of each sequence, or -1 - position of the first window with too many."""
    room = np.zeros(len(offsets) - 1, np.int64)
    for i in range(len(offsets) - 1):
        for t in range(offsets[i], offsets[i + 1] - k + 1):
            count = 1
            for s in range(t, t + k):
                count *= first[codes[s] + 1] - first[codes[s]]
                if count > SPELLINGS:
                    break
            if count > SPELLINGS:
                room[i] = offsets[i] - t - 1
                break
            room[i] += count
    return room
