r"""Counts of k-mers in sequences of symbols, dense or sparse.

.. math:: Φ_u(x) = \#\{t : x_t x_{t+1} \dots x_{t+k-1} = u\}

The word u = u_1 ... u_k has index Σ_j u_j m^{k-j}: words are in lexicographic order. A code c >= m is
ambiguous: any symbol of its members, each as likely. Counts are expectations, so that a window spreads its weight 1
evenly over all words that it may spell. Sequences shorter than k have no words. A gapped word reads x_{t + s_1} ...
x_{t + s_k} at given shifts 0 = s_1 < s_2 < ... instead, and sequences shorter than s_k + 1 have none.

References
----------
Leslie, Eskin & Noble (2002), The spectrum kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import jit
from genkern.core.simd.vectors import count_ones
from genkern.core.words.shares import choices_of, spread_dense, spread_sparse

Floats = NDArray[np.float64]
Ints = NDArray[Any]

CHUNK = 1024  # windows whose words are computed at a time, in the first-level cache
ROUND = 64  # numbers of windows are rounded up to a multiple of it, for loops in vectors
DIGIT = 11  # bits sorted at a time, at most
MARKED = 1 << 17  # words up to which one bit each fits the first-level cache, and sparse rows need no sorting
FINE, AMBIGUOUS = -1, -2  # results of a count; others are the index of the sequence in which it exceeded its limit


def kmer_counts(
    codes: Ints,
    offsets: Ints,
    m: int,
    k: int,
    members: Any = None,
    dtype: Any = np.float64,
    shifts: Any = None,
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
    members : ndarray or CSR matrix (M, m), optional
        0/1: the symbols that a code may mean. Needed where codes are ambiguous.
    dtype : data type, default=float64
        Of the counts: integers, float32 or float64. A count that it cannot hold is refused, and so are integers for the
        shares of ambiguous windows.
    shifts : array-like (k,) of int, optional
        Offsets of the symbols of a word, rising from 0. The default is 0, ..., k - 1.

    Returns
    -------
    ndarray (n, m**k)
    """
    codes, offsets = _check(codes, offsets, m, k)
    reads, span = _check_shifts(shifts, k)
    size = (m, k, span, _limit(dtype))
    counts = np.empty((len(offsets) - 1, m**k), dtype)
    buffer: Ints = np.zeros((2, CHUNK + span - 1 + ROUND), _kind(m**k))
    table: Ints = np.zeros(m**k, _kind(_longest(offsets) + 1))
    if not _is_plain(_count_dense(codes, offsets, size, reads, buffer, table, counts), dtype):
        _refuse_shares(codes, offsets, m, span, dtype)
        counts[:] = 0
        spread_dense(codes, offsets, (m, span), reads[:k], *choices_of(codes, offsets, m, members), counts)
    return counts


def kmer_sparse(
    codes: Ints,
    offsets: Ints,
    m: int,
    k: int,
    members: Any = None,
    dtype: Any = np.float64,
    shifts: Any = None,
    leave_out: bool = False,
) -> tuple[NDArray[Any], Ints, Ints]:
    """Return the counts as data, indices and indptr of a CSR matrix (n, m**k), indices sorted; see kmer_counts.

    A window of ambiguous symbols that may spell more than 4096 words is refused, or left out on request: its row would
    not be sparse.
    """
    codes, offsets = _check(codes, offsets, m, k)
    reads, span = _check_shifts(shifts, k)
    size = (m, k, span, _limit(dtype))
    kind = _index_kind(max(m**k, len(codes)))
    data: NDArray[Any] = np.empty(len(codes), dtype)
    indices: Ints = np.empty(len(codes), kind)
    indptr: Ints = np.zeros(len(offsets), kind)
    longest = _longest(offsets)
    if m**k <= MARKED:
        buffer: Ints = np.zeros((4, longest + ROUND), _kind(max(m**k, longest + 1)))
        said = _count_marked(codes, offsets, size, reads, buffer, data, indices, indptr)
    else:
        buffer = np.zeros((3, longest + ROUND), _kind(m**k))
        said = _count_sparse(codes, offsets, (*size, *_digits(m**k)), reads, buffer, data, indices, indptr)
    if _is_plain(said, dtype):
        # Views: the rest was never written and takes no memory.
        return data[: indptr[-1]], indices[: indptr[-1]], indptr
    _refuse_shares(codes, offsets, m, span, dtype)
    shares, indices, indptr = spread_sparse(
        codes, offsets, (m, span), reads[:k], *choices_of(codes, offsets, m, members), leave_out
    )
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


def _check_shifts(shifts: Any, k: int) -> tuple[Ints, int]:
    """Return the positions that words read, the last one repeated to have at least four, and how many they span."""
    reads = np.arange(k) if shifts is None else np.asarray(shifts, dtype=np.int64)
    if reads.shape != (k,) or reads[0] != 0 or (np.diff(reads) < 1).any():
        raise ValueError(f"kmer_counts: shifts must be {k} integers that rise from 0. Got {shifts}.")
    return np.pad(reads, (0, 3), mode="edge"), int(reads[-1]) + 1


def _limit(dtype: Any) -> int:
    """Return the number up to which a data type counts exactly."""
    kind = np.dtype(dtype)
    if kind.kind not in "iu" and kind not in (np.float32, np.float64):
        raise ValueError(f"kmer_counts: dtype must be of integers, float32 or float64. Got {kind}.")
    largest = np.iinfo(kind).max if kind.kind in "iu" else 2 ** (np.finfo(kind).nmant + 1)
    return min(int(largest), np.iinfo(np.int64).max)


def _longest(offsets: Ints) -> int:
    """Return the length of the longest sequence."""
    return int(np.diff(offsets).max(initial=0))


def _is_plain(said: int, dtype: Any) -> bool:
    """Return whether a count met plain symbols alone; refuse a data type that could not hold it."""
    if said >= 0:
        raise ValueError(
            f"kmer_counts: {np.dtype(dtype)} counts up to {_limit(dtype)}. Got a word more often than that in sequence "
            f"{said}; take a larger dtype."
        )
    return said == FINE


def _refuse_shares(codes: Ints, offsets: Ints, m: int, span: int, dtype: Any) -> None:
    """Refuse integers for shares of ambiguous windows, and floats that may be too small for their sum."""
    if np.dtype(dtype).kind != "f":
        at = int(np.argmax(codes >= m))
        i = int(np.searchsorted(offsets, at, side="right")) - 1
        raise ValueError(
            f"kmer_counts: object {i}, position {at - offsets[i]} is an ambiguous, missing or unknown symbol. It "
            "shares a window among all words that this may spell, so counts are no integers. Got dtype "
            f"{np.dtype(dtype)}; take a dtype of floats, dtype=float, or refuse unknown symbols by unknown='error'."
        )
    windows = _longest(offsets) - span + 1
    if windows > _limit(dtype):
        i = int(np.argmax(np.diff(offsets)))
        raise ValueError(
            f"kmer_counts: {np.dtype(dtype)} counts up to {_limit(dtype)}. Got {windows} windows in sequence {i}; "
            "take a larger dtype."
        )


def _index_kind(largest: int) -> type:
    """Return the kind of integers in which scipy keeps indices up to so many."""
    return np.int32 if largest <= np.iinfo(np.int32).max else np.int64


def _kind(numbers: int) -> type:
    """Return the smallest kind of unsigned integers, of at least 16 bits, that has so many numbers."""
    return np.uint16 if numbers <= 2**16 else np.uint32 if numbers <= 2**32 else np.uint64


def _digits(words: int) -> tuple[int, int]:
    """Return how many digits, of how many bits, number so many words."""
    bits = max(1, (words - 1).bit_length())
    digits = -(-bits // DIGIT)
    return digits, -(-bits // digits)


@jit
def _four(symbols, reads):
    """Return the symbols from where the first four of ``reads`` read on."""
    return symbols[reads[0] :], symbols[reads[1] :], symbols[reads[2] :], symbols[reads[3] :]


@jit
def _read(codes, m, symbols):
    """Copy codes to the smaller kind of integers that words have; say whether all are below m."""
    highest = codes.dtype.type(0)
    for t in range(len(codes)):
        highest = max(highest, codes[t])
    for t in range(len(codes)):
        symbols[t] = codes[t]
    return highest < m


@jit
def _words(codes, start, count, size, reads, buffer):
    """Set buffer[0] to the words of ``count`` windows from a position on; say whether all codes in them are below m.

    Loops over windows run in vectors, four symbols at a time, the first time as many as are left over. They make some
    more words than asked for, of what follows or of what the buffer held.
    """
    m, k, span = size[:3]
    words, symbols = buffer[0], buffer[1]
    stop = start + _rounded(count + span - 1) if count else start
    if not _read(codes[start : min(stop, len(codes))], m, symbols):
        return False
    base, first, made = words.dtype.type(m), (k - 1) % 4 + 1, _rounded(count)
    a, b, c, d = _four(symbols, reads)
    if first == 1:
        for t in range(made):
            words[t] = a[t]
    elif first == 2:
        for t in range(made):
            words[t] = a[t] * base + b[t]
    elif first == 3:
        for t in range(made):
            words[t] = (a[t] * base + b[t]) * base + c[t]
    else:
        for t in range(made):
            words[t] = ((a[t] * base + b[t]) * base + c[t]) * base + d[t]
    for j in range(first, k, 4):
        a, b, c, d = _four(symbols, reads[j:])
        for t in range(made):
            words[t] = (((words[t] * base + a[t]) * base + b[t]) * base + c[t]) * base + d[t]
    return True


@jit
def _rounded(count):
    """Return the least multiple of ROUND that is no less."""
    return (count + ROUND - 1) // ROUND * ROUND


@jit
def _count_dense(codes, offsets, size, reads, buffer, table, counts):
    """Set counts, (n, m**k); return FINE, AMBIGUOUS, or the first sequence in which a count is above the limit.

    size: m, k, span, limit; buffer: (2, CHUNK + span - 1 + ROUND); table: (m**k,), zeros.
    """
    span, limit, words = size[2], size[3], buffer[0]
    one, zero = table.dtype.type(1), table.dtype.type(0)
    # A table of small integers stays in the cache, and counts are written once, in order.
    for i in range(len(offsets) - 1):
        for start in range(offsets[i], offsets[i + 1] - span + 1, CHUNK):
            count = min(CHUNK, offsets[i + 1] - span + 1 - start)
            if not _words(codes, start, count, size, reads, buffer):
                return AMBIGUOUS
            for t in range(count):
                table[words[t]] += one
        row, highest = counts[i], zero
        for word in range(len(table)):
            highest = max(highest, table[word])
            row[word] = table[word]
        for word in range(len(table)):
            table[word] = zero
        if highest > limit:
            return i
    return FINE


@jit
def _count_marked(codes, offsets, size, reads, buffer, data, indices, indptr):
    """Append the words of each sequence as _count_sparse does, without sorting.

    A bit marks each word that occurs. The rank of a word among these is the number of marks before its own: those in
    earlier groups of 64, summed up once, and those before it in its group. Words are sorted and counted in a buffer
    that stays in the cache, (4, longest sequence + ROUND), and then written once, in order.
    """
    m, k, span, limit = size
    words, ordered, many = buffer[0], buffer[2], buffer[3]
    groups = (m**k + 63) // 64
    marks, before = np.zeros(groups, np.uint64), np.empty(groups, words.dtype)
    # Unsigned numbers throughout: as indices they need no care for being negative.
    one, ones, once = np.uint64(1), ~np.uint64(0), words.dtype.type(1)
    in_group, group_bits = words.dtype.type(63), words.dtype.type(6)
    filled = 0
    for i in range(len(offsets) - 1):
        count = max(0, offsets[i + 1] - offsets[i] - span + 1)
        if not _words(codes, offsets[i], count, size, reads, buffer):
            return AMBIGUOUS
        for t in range(count):
            marks[words[t] >> group_bits] |= one << np.uint64(words[t] & in_group)
        distinct = 0
        for group in range(groups):
            before[group] = distinct
            distinct += count_ones(marks[group])
        many[:distinct] = 0
        for t in range(count):
            group = words[t] >> group_bits
            earlier = marks[group] & ~(ones << np.uint64(words[t] & in_group))
            rank = np.uint64(before[group]) + np.uint64(count_ones(earlier))
            ordered[rank] = words[t]
            many[rank] += once
        marks[:] = 0
        highest = words.dtype.type(0)
        for rank in range(distinct):
            highest = max(highest, many[rank])
        if highest > limit:
            return i
        found, counts = indices[filled:], data[filled:]
        for rank in range(distinct):
            found[rank] = ordered[rank]
        for rank in range(distinct):
            counts[rank] = many[rank]
        filled += distinct
        indptr[i + 1] = filled
    return FINE


@jit
def _count_sparse(codes, offsets, size, reads, buffer, data, indices, indptr):
    """Append the words of each sequence in order, and how often they occur; return what _count_dense does.

    size: m, k, span, limit, digits, bits of a digit; buffer: (3, longest sequence + ROUND).
    """
    span, limit, digits, bits = size[2:]
    bins = np.empty(1 << bits, np.int64)
    filled = 0
    for i in range(len(offsets) - 1):
        count = max(0, offsets[i + 1] - offsets[i] - span + 1)
        if not _words(codes, offsets[i], count, size, reads, buffer):
            return AMBIGUOUS
        for digit in range(digits):
            _sort_digit(buffer[digit % 2 * 2], buffer[2 - digit % 2 * 2], count, digit * bits, bins)
        ordered, run = buffer[digits % 2 * 2], 0
        for t in range(count):
            if t > 0 and ordered[t] == ordered[t - 1]:
                run += 1
                if run > limit:
                    return i
            else:
                run = 1
                indices[filled] = ordered[t]
                filled += 1
            data[filled - 1] = run
        indptr[i + 1] = filled
    return FINE


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
