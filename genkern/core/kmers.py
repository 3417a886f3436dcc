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
from genkern.core.kmers_shares import choices_of, spread_dense, spread_sparse
from genkern.core.simd import count_ones, trailing_zeros

Floats = NDArray[np.float64]
Ints = NDArray[Any]

CHUNK = 1024  # windows whose words are made at a time, in the first-level cache
DIGIT = 11  # bits sorted at a time, at most
PAIRED = 1024  # words, one longer, up to which two windows are counted in one
GATHERED = 1024  # words up to which a row is counted in the cache, and written once
MARKED = 1 << 14  # words up to which a sparse row is counted in the cache, not sorted


def kmer_counts(
    codes: Ints, offsets: Ints, m: int, k: int, members: Floats | None = None, dtype: Any = np.float64
) -> NDArray[Any]:
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
    dtype : data type, default=float64
        Of the counts. Integers must hold the longest sequence's, and cannot hold the shares of ambiguous windows.

    Returns
    -------
    ndarray (n, m**k)
    """
    codes, offsets = _check(codes, offsets, m, k)
    _check_dtype(offsets, k, dtype)
    counts = np.zeros((len(offsets) - 1, m**k), dtype)
    words: Ints = np.empty(CHUNK, _word_kind(m**k))
    if m ** (k + 1) <= PAIRED:
        plain = _count_pairs(codes, offsets, (m, k), words, counts)
    elif m**k <= GATHERED:
        plain = _count_gathered(codes, offsets, (m, k), words, counts)
    else:
        plain = _count_dense(codes, offsets, (m, k), words, counts)
    if not plain:
        _refuse_shares(dtype)
        counts[:] = 0
        spread_dense(codes, offsets, (m, k), *choices_of(codes, offsets, m, members), counts)
    return counts


def kmer_sparse(
    codes: Ints, offsets: Ints, m: int, k: int, members: Floats | None = None, dtype: Any = np.float64
) -> tuple[NDArray[Any], Ints, Ints]:
    """Return the counts as data, indices and indptr of a CSR matrix (n, m**k), indices sorted; see kmer_counts.

    A window of ambiguous symbols that may spell more than 4096 words is refused: its row would not be sparse.
    """
    codes, offsets = _check(codes, offsets, m, k)
    _check_dtype(offsets, k, dtype)
    kind = _index_kind(max(m**k, len(codes)))
    data: NDArray[Any] = np.empty(len(codes) + 4, dtype)
    indices: Ints = np.empty(len(codes) + 4, kind)
    indptr: Ints = np.zeros(len(offsets), kind)
    if m**k <= MARKED:
        words: Ints = np.empty(CHUNK, _word_kind(m**k))
        table: Ints = np.zeros(m**k, np.uint16 if np.diff(offsets).max(initial=0) < 2**16 else np.int64)
        plain = _count_marked(codes, offsets, (m, k), words, table, data, indices, indptr)
    else:
        words = np.empty((2, int(np.diff(offsets).max(initial=0))), _word_kind(m**k))
        plain = _count_sparse(codes, offsets, (m, k, *_digits(m**k)), words, data, indices, indptr)
    if plain:
        # Views: what lies behind was never touched and takes no memory.
        return data[: indptr[-1]], indices[: indptr[-1]], indptr
    _refuse_shares(dtype)
    shares, indices, indptr = spread_sparse(codes, offsets, m, k, *choices_of(codes, offsets, m, members))
    kind = _index_kind(max(m**k, len(shares)))
    return shares.astype(dtype, copy=False), indices.astype(kind), indptr.astype(kind)


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


def _check_dtype(offsets: Ints, k: int, dtype: Any) -> None:
    """Refuse a data type that could not hold the counts of the longest sequence."""
    kind = np.dtype(dtype)
    if kind.kind not in "fiu":
        raise ValueError(f"kmer_counts: dtype must be of floats or integers. Got {kind}.")
    most = int(np.diff(offsets).max(initial=0)) - k + 1
    largest = np.iinfo(kind).max if kind.kind in "iu" else 2 ** (np.finfo(kind).nmant + 1)
    if most > largest:
        i = int(np.argmax(np.diff(offsets)))
        raise ValueError(
            f"kmer_counts: {kind} counts up to {largest}. Got {most} words in sequence {i}; take a larger dtype."
        )


def _refuse_shares(dtype: Any) -> None:
    """Refuse integers for shares of ambiguous windows."""
    if np.dtype(dtype).kind != "f":
        raise ValueError(
            f"kmer_counts: ambiguous symbols share a window among words, so counts are no integers. Got dtype "
            f"{np.dtype(dtype)}; take a dtype of floats."
        )


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
    """Add to counts, (n, m**k), in place; return whether no code was ambiguous; size: m, k; words: (CHUNK,)."""
    m, k = size
    for i in range(len(offsets) - 1):
        if not _is_plain(codes, offsets[i], offsets[i + 1], m):
            return False
        row = counts[i]
        for start in range(offsets[i], offsets[i + 1] - k + 1, CHUNK):
            count = min(CHUNK, offsets[i + 1] - k + 1 - start)
            _words(codes, start, count, m, k, words)
            for t in range(count):
                row[words[t]] += 1
    return True


@jit
def _count_gathered(codes, offsets, size, words, counts):
    """Set counts as _count_dense does, each row from a small table of integers that stays in the cache."""
    m, k = size
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
def _count_pairs(codes, offsets, size, words, counts):
    """Set counts as _count_dense does, two overlapping windows at a time.

    These are a word of k symbols and the symbol behind it, which stand at (symbol, word) of a table that fits the
    cache. Its sums over the last symbols count the first windows of pairs, those over the first symbols the second.
    """
    m, k = size
    all_words = counts.shape[1]
    shorter = all_words // m
    table, sums = np.empty((m, all_words), np.int32), np.empty(all_words, np.int32)
    for i in range(len(offsets) - 1):
        if not _is_plain(codes, offsets[i], offsets[i + 1], m):
            return False
        table[:] = 0
        sums[:] = 0
        flat, end = table.reshape(-1), offsets[i + 1] - k + 1
        for start in range(offsets[i], end, CHUNK):
            count = min(CHUNK, end - start)
            _words(codes, start, count, m, k, words)
            if start + count == end and count % 2:
                count -= 1
                sums[words[count]] += 1
            behind = codes[start + k :]
            for t in range(0, count, 2):
                flat[behind[t] * all_words + words[t]] += 1
        for last in range(m):
            for word in range(all_words):
                sums[word] += table[last, word]
            for first in range(1, m):
                for word in range(shorter):
                    table[last, word] += table[last, first * shorter + word]
            for word in range(shorter):
                sums[word * m + last] += table[last, word]
        for word in range(all_words):
            counts[i, word] = sums[word]
    return True


@jit
def _count_marked(codes, offsets, size, words, table, data, indices, indptr):
    """Append the words of each sequence as _count_sparse does, from a table in the cache and a mark for each word.

    The room of data and indices exceeds what they can hold by four.
    """
    m, k = size
    marks = np.zeros((len(table) + 63) // 64, np.uint64)
    one, first = np.uint64(1), 0
    for i in range(len(offsets) - 1):
        if not _is_plain(codes, offsets[i], offsets[i + 1], m):
            return False
        for start in range(offsets[i], offsets[i + 1] - k + 1, CHUNK):
            count = min(CHUNK, offsets[i + 1] - k + 1 - start)
            _words(codes, start, count, m, k, words)
            for t in range(count):
                word = words[t]
                table[word] += 1
                marks[word >> 6] |= one << np.uint64(word & 63)
        filled = first
        for group in range(len(marks)):
            marked, marks[group] = marks[group], 0
            many = count_ones(marked)
            # Four at a time: what is too many is overwritten by those of the next group, and that costs less than
            # to guess wrongly when a loop ends.
            for j in range(filled, filled + many, 4):
                for place in range(j, j + 4):
                    indices[place] = group * 64 + trailing_zeros(marked)
                    marked &= marked - min(one, marked)
            filled += many
        for place in range(first, filled):
            data[place] = table[indices[place]]
        table[:] = 0
        indptr[i + 1] = first = filled
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
                data[filled - 1] += 1
            else:
                indices[filled], data[filled] = ordered[t], 1
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
