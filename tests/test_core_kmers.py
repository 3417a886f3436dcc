"""Counts of k-mers against counting by hand, for plain and ambiguous symbols, dense and sparse."""

import itertools
import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from genkern.core.words import shares as kmers_shares
from genkern.core.words.counts import kmer_counts, kmer_sparse

# Codes of a three-letter alphabet: plain, one of two, anything.
MEMBERS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1]], dtype=np.float64)


def pack(sequences):
    """Return codes and offsets of a list of lists."""
    codes = np.array([code for sequence in sequences for code in sequence], dtype=np.int32)
    return codes, np.cumsum([0] + [len(sequence) for sequence in sequences])


def count_by_hand(sequences, m, k, members):
    """Return the expected counts (n, m**k) by spelling out every window."""
    rows = []
    for sequence in sequences:
        counts = Counter()
        for t in range(len(sequence) - k + 1):
            spellings = list(itertools.product(*(np.flatnonzero(members[code]) for code in sequence[t : t + k])))
            for word in spellings:
                counts[word] += 1 / len(spellings)
        rows.append([counts[word] for word in itertools.product(range(m), repeat=k)])
    return np.array(rows, dtype=np.float64).reshape(len(sequences), m**k)


def as_dense(triple, m, k):
    """Return a CSR triple as an array, its form checked."""
    data, indices, indptr = triple
    matrix = sparse.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, m**k))
    matrix.check_format(full_check=True)
    assert matrix.has_sorted_indices
    assert matrix.has_canonical_format
    assert (data > 0).all()
    return matrix.toarray()


sequences_of_codes = st.lists(st.lists(st.integers(0, 4), max_size=8), max_size=4)


@settings(deadline=None, max_examples=60)
@given(sequences_of_codes, st.integers(1, 4))
def test_equal_counting_by_hand(sequences, k):
    expected = count_by_hand(sequences, 3, k, MEMBERS)
    np.testing.assert_allclose(kmer_counts(*pack(sequences), 3, k, MEMBERS), expected, rtol=1e-14)
    np.testing.assert_allclose(as_dense(kmer_sparse(*pack(sequences), 3, k, MEMBERS), 3, k), expected, rtol=1e-14)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6, 7, 8])
def test_plain_symbols(k):
    rng = np.random.default_rng(k)
    lengths = [0, 1, k - 1, k, k + 1, 50, 5000, 4095 + k, 4096 + k]
    sequences = [rng.integers(0, 4, length).tolist() for length in lengths]
    expected = count_by_hand(sequences, 4, k, np.eye(4))
    np.testing.assert_array_equal(kmer_counts(*pack(sequences), 4, k), expected)
    np.testing.assert_array_equal(as_dense(kmer_sparse(*pack(sequences), 4, k), 4, k), expected)
    np.testing.assert_array_equal(expected.sum(axis=1), [max(0, length - k + 1) for length in lengths])
    small = kmer_counts(*pack(sequences), 4, k, dtype=np.uint16)
    assert small.dtype == np.uint16
    np.testing.assert_array_equal(small, expected)
    triple = kmer_sparse(*pack(sequences), 4, k, dtype=np.uint16)
    assert triple[0].dtype == np.uint16
    np.testing.assert_array_equal(as_dense(triple, 4, k), expected)


@pytest.mark.parametrize("k", [2, 9])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint16, np.float32])
def test_counts_up_to_what_the_type_holds(k, dtype):
    """A word may occur as often as the type can say, and no more often; other words do not matter."""
    limit = np.iinfo(dtype).max if np.dtype(dtype).kind in "iu" else 2**24
    full = np.zeros(limit + k - 1, np.int32)
    others = np.random.default_rng(0).integers(1, 4, 20)
    for count in (kmer_counts, kmer_sparse) if k == 2 else (kmer_sparse,):
        codes, offsets = np.concatenate([others, full]), np.array([0, len(others), len(others) + len(full)])
        counts = count(codes, offsets, 4, k, dtype=dtype)
        values = counts[1] if count is kmer_counts else counts[0][counts[2][1] :]
        assert values.dtype == dtype
        assert values[0] == limit
        assert not values[1:].any()
        with pytest.raises(ValueError, match=rf"counts up to {limit}. Got a word more often than that in sequence 1;"):
            count(np.append(codes, 0), np.array([0, len(others), len(codes) + 1]), 4, k, dtype=dtype)


def test_a_sequence_is_counted_the_same_beside_ambiguous_ones():
    rng = np.random.default_rng(0)
    plain = rng.integers(0, 3, 40).tolist()
    alone = kmer_counts(*pack([plain]), 3, 3)
    beside = [[4, 3, 2, 1, 4], plain, [3] * 9]
    np.testing.assert_array_equal(kmer_counts(*pack(beside), 3, 3, MEMBERS)[1:2], alone)
    np.testing.assert_array_equal(as_dense(kmer_sparse(*pack(beside), 3, 3, MEMBERS), 3, 3)[1:2], alone)


@pytest.mark.parametrize("k", [13, 31])
def test_more_words_than_memory(k):
    rng = np.random.default_rng(1)
    sequences = [rng.integers(0, 4, 60).tolist(), [3] * 40]
    data, indices, indptr = kmer_sparse(*pack(sequences), 4, k)
    power = 4 ** np.arange(k - 1, -1, -1, dtype=object)
    expected = Counter(sum(power * sequences[0][t : t + k]) for t in range(60 - k + 1))
    assert dict(zip(indices[: indptr[1]].tolist(), data[: indptr[1]])) == expected
    assert indices.dtype == (np.int32 if 4**k < 2**31 else np.int64)
    assert (indices[indptr[1] :].tolist(), data[indptr[1] :].tolist()) == ([4**k - 1], [40 - k + 1])
    assert (np.diff(indices[: indptr[1]]) > 0).all()


def test_windows_too_ambiguous_for_a_sparse_row():
    sequences = [[0, 1, 2], [0, 1, 2, 0, 1, *[4] * 8, 0]]
    members = MEMBERS
    assert kmers_shares.SPELLINGS < 3**8
    with pytest.raises(ValueError, match=r"sequence 1 .* from position 5 on.* more than 4096 words"):
        kmer_sparse(*pack(sequences), 3, 8, members)
    dense = kmer_counts(*pack(sequences), 3, 8, members)
    np.testing.assert_allclose(dense.sum(axis=1), [0.0, 7.0], rtol=1e-12)


def test_no_sequences():
    assert kmer_counts(*pack([]), 4, 2).shape == (0, 16)
    data, indices, indptr = kmer_sparse(*pack([]), 4, 2)
    assert (len(data), len(indices), indptr.tolist()) == (0, 0, [0])
    data, indices, indptr = kmer_sparse(*pack([[], [1]]), 4, 2)
    assert (len(data), len(indices), indptr.tolist()) == (0, 0, [0, 0, 0])


def test_errors_name_what_is_wrong():
    codes, offsets = pack([[0, 1], [2, 3, 1]])
    with pytest.raises(ValueError, match=r"0, ..., 2. Got 3 in sequence 1, position 1"):
        kmer_counts(codes, offsets, 3, 2)
    with pytest.raises(ValueError, match=r"Got -1 in sequence 0, position 0"):
        kmer_sparse(np.array([-1, 0]), np.array([0, 2]), 3, 2)
    with pytest.raises(ValueError, match=r"20\*\*15 words"):
        kmer_sparse(codes, offsets, 20, 15)
    with pytest.raises(ValueError, match="Got m=4 and k=0"):
        kmer_counts(codes, offsets, 4, 0)
    with pytest.raises(ValueError, match="rise from 0 to 5"):
        kmer_counts(codes, offsets[:-1], 4, 2)
    for count in (kmer_counts, kmer_sparse):
        with pytest.raises(ValueError, match=r"uint8 counts up to 255. Got a word more often than that in sequence 1;"):
            count(*pack([[0], [1] * 300]), 4, 3, dtype=np.uint8)
        with pytest.raises(ValueError, match=r"float32 counts up to 16777216. Got 16777217 windows in sequence 1"):
            count(*(np.append([4], np.zeros(2**24 + 1, int)), np.array([0, 1, 2**24 + 2])), 3, 1, MEMBERS, np.float32)
        with pytest.raises(ValueError, match=r"counts are no integers. Got dtype int32; take a dtype of floats"):
            count(*pack([[0, 4, 1]]), 3, 2, MEMBERS, dtype=np.int32)
        with pytest.raises(ValueError, match=r"integers, float32 or float64. Got complex128"):
            count(codes, offsets, 4, 2, dtype=complex)
        with pytest.raises(ValueError, match=r"shifts must be 2 integers that rise from 0. Got \(0, 1, 3\)"):
            count(codes, offsets, 4, 2, shifts=(0, 1, 3))
        with pytest.raises(ValueError, match="rise from 0"):
            count(codes, offsets, 4, 2, shifts=(1, 2))
    with pytest.raises(ValueError, match="code 4 has no members"):
        kmer_counts(np.array([4]), np.array([0, 1]), 4, 1, np.eye(5, 4))


def without_jit():
    """Return results that the test computes compiled and not."""
    sequences = [[0, 1, 2, 2, 1], [3, 1, 4], [2]]
    plain = [[0, 1, 2, 2, 1], [2, 2]]
    results = [kmer_counts(*pack(sequences), 3, 2, MEMBERS), kmer_counts(*pack(plain), 3, 2)]
    results += [*kmer_sparse(*pack(sequences), 3, 2, MEMBERS), *kmer_sparse(*pack(plain), 3, 2)]
    return [result.tolist() for result in results]


def test_without_jit():
    program = "from test_core_kmers import without_jit; print(without_jit())"
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.path.dirname(__file__)}
    run = subprocess.run([sys.executable, "-W", "error", "-c", program], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert eval(run.stdout) == without_jit()
