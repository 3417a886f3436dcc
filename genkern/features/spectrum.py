"""Counts of words in sequences of symbols."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from functools import partial
from itertools import count as count_from
from itertools import pairwise, product
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize as scale_rows

from genkern.core.words.counts import kmer_counts, kmer_sparse
from genkern.data.objects import Alphabet, Packed, pack_symbols
from genkern.data.transformer import SYMBOLS
from genkern.features.base import Embedding
from genkern.features.positions import as_vector, share, word_terms
from genkern.validation import check_bool, check_int, check_option

DENSE_WORDS = 4096  # spectra with more words are sparse unless asked otherwise


class Spectrum(Embedding):
    r"""How often each word of k symbols occurs, contiguous or with gaps.

    .. math:: \phi_w(x) = \#\{t : x_{t+o_1} x_{t+o_2} \dots x_{t+o_k} = w\}, \qquad o = (0, 1, \dots, k - 1)
              \text{ by default}

    Parameters
    ----------
    k : int, default=3
        Length of the words, where no ``offsets`` are given.
    alphabet : str, int, sequence or Alphabet, optional
        The symbols: "dna", "rna", "protein", an explicit list, or (default) those of all objects given to ``fit``.
    sparse : bool or "auto", default="auto"
        Whether to return a sparse CSR matrix. "auto" does for more than 4096 words.
    normalize : {None, "frequency", "l2"}, default=None
        Divide counts by the number of words in the object, or by their Euclidean norm.
    dtype : data type, default=float64
        Of the result: integers, float32 or float64. A small type of integers, such as ``"uint8"``, takes less memory
        and time; sums and products of such counts overflow, so that learners and kernels need floats.
        Counts that the type cannot hold are refused, and so are integers with ``normalize`` and with ambiguous, missing
        or unknown symbols, whose words have fractional counts (see Notes).
    offsets : sequence of int, optional
        Positions of the symbols of a word, relative to the first, rising from 0: (0, 3) counts the pairs of symbols
        three positions apart, (0, 1, 4) triples with a gap of two. Their number is that of the symbols of a word;
        ``k`` is not used.
    unknown : {"missing", "error"}, optional
        Symbols outside the alphabet are treated as missing, with one warning, or are an error. The
        default is "missing" for an inferred alphabet and "error" for a given one.
    ends : bool, default=False
        Whether the ends of an object are symbols too, "|" before the first and behind the last one, so that words tell
        what an object begins and ends with. (Where "|" is a symbol, the ends are "||".)
    least : float, default=0
        Words count if the median length of the training objects, ends included, is at least so many times that of the
        words with their gaps; otherwise all features are zero. Frequencies of a few words are mostly chance.

    Attributes
    ----------
    alphabet_ : Alphabet
        The m symbols, with that of the ends as the last one.
    offsets_ : tuple of int
        Relative positions of the k symbols of a word.
    n_features_out_ : int
        The number of words, m ** k, in the order of the alphabet, the first symbol changing slowest.

    Notes
    -----
    A word with ambiguous, missing or unknown symbols adds equal shares, which sum to one, to all words that it may
    spell. In a sparse result a word that may spell more than 4096 is an error, or is left out where unknown symbols are
    missing. Objects shorter than a word with its gaps have none and a row of zeros, whatever ``normalize``.

    The roots of the frequencies of words, ``Spectrum(normalize="frequency")`` and ``PowerMap(0.5)``, have the
    Bhattacharyya kernel as inner product.

    References
    ----------
    Leslie, Eskin & Noble (2002), The spectrum kernel: a string kernel for SVM protein classification.
    Leslie & Kuang (2004), Fast string kernels using inexact matching for protein sequences, section 3.1 (gaps).

    Examples
    --------
    >>> from genkern import Spectrum
    >>> spectrum = Spectrum(k=2).fit(["abba", "ab"])
    >>> spectrum.get_feature_names_out()
    array(['aa', 'ab', 'ba', 'bb'], dtype=object)
    >>> spectrum.transform(["abba", "bbb"])
    array([[0., 1., 1., 1.],
           [0., 0., 0., 2.]])
    >>> gapped = Spectrum(offsets=(0, 2)).fit(["abba", "ab"])
    >>> gapped.get_feature_names_out()
    array(['a.a', 'a.b', 'b.a', 'b.b'], dtype=object)
    >>> gapped.transform(["abba"])
    array([[0., 1., 1., 0.]])
    """

    _fitted = "alphabet_"
    _inputs = SYMBOLS
    offsets_: tuple[int, ...]
    plain_: Alphabet
    alphabet_: Alphabet

    def __init__(
        self,
        k: int = 3,
        alphabet: Any = None,
        sparse: bool | str = "auto",
        normalize: str | None = None,
        dtype: Any = np.float64,
        offsets: Sequence[int] | None = None,
        unknown: str | None = None,
        ends: bool = False,
        least: float = 0.0,
    ):
        self.k = k
        self.alphabet = alphabet
        self.sparse = sparse
        self.normalize = normalize
        self.dtype = dtype
        self.offsets = offsets
        self.unknown = unknown
        self.ends = ends
        self.least = least

    def _fit(self, X: Any, y: Any) -> None:
        offsets = self._check_offsets()
        if self.sparse != "auto":
            check_bool(self.sparse, "sparse", "Spectrum, if not 'auto',")
        if self.normalize is not None:
            check_option(self.normalize, ("frequency", "l2"), "normalize", "Spectrum")
            if np.dtype(self.dtype).kind != "f":
                raise ValueError(
                    f"Spectrum: normalize={self.normalize!r} needs a 'dtype' of floats. Got {np.dtype(self.dtype)}."
                )
        check_bool(self.ends, "ends", "Spectrum")
        if not isinstance(self.least, numbers.Real) or not 0 <= self.least < np.inf:
            raise ValueError(f"The 'least' parameter of Spectrum must be a number, not negative. Got {self.least!r}.")
        packed = pack_symbols(X, self.alphabet, "Spectrum", unknown=self.unknown)
        known: Any = packed.alphabet
        length = float(np.median(packed.lengths)) + 2 * self.ends
        self.counts_ = length >= self.least * (offsets[-1] + 1)
        self.offsets_, self.plain_ = offsets, known
        self.alphabet_ = _with_end(known) if self.ends else known

    def _encode(self, X: Any) -> Packed:
        if not self.ends:
            return pack_symbols(X, self.alphabet_, "Spectrum")
        return _between_ends(pack_symbols(X, self.plain_, "Spectrum"), self.alphabet_)

    def _transform(self, packed: Packed) -> Any:
        large = self.sparse is True or (self.sparse == "auto" and self._width() > DENSE_WORDS)
        if not self._count_at_all():
            shape = packed.n_objects, self._width()
            return sparse.csr_matrix(shape, dtype=self.dtype) if large else np.zeros(shape, self.dtype)
        counts = self._count(packed, large, self.dtype)
        if self.normalize is None:
            return counts
        return scale_rows(counts, norm="l1" if self.normalize == "frequency" else "l2", copy=False)

    def _count(self, packed: Packed, large: bool, dtype: Any) -> Any:
        """Return the counts (n, m ** k) of each object, as a CSR matrix if there are many words."""
        known = self.alphabet_
        lenient = partial(kmer_sparse, leave_out=known.unknown == "missing")
        count: Any = lenient if large else kmer_counts
        members, k = known.members_for(packed.values), len(self.offsets_)
        counts = count(packed.values, packed.offsets, known.size, k, members, dtype, self.offsets_)
        return sparse.csr_matrix(counts, shape=(packed.n_objects, self._width())) if large else counts

    def _position_features(self, packed: Packed) -> Any:
        offsets = np.array(self.offsets_)
        counts = word_terms(lambda words: self._count(words, True, np.float64), packed, offsets, self._width())
        if self.ends:  # what is read at an end belongs to the symbol next to it
            counts = _neighbours(packed.n_points - 2) @ counts
        return share(counts, counts.sum(axis=0), as_vector(self._transform(packed)))

    def _count_at_all(self) -> bool:
        """Return whether training objects are long enough for the words; files of old do not say."""
        return bool(getattr(self, "counts_", True))

    def _width(self) -> int:
        return int(self.alphabet_.size ** len(self.offsets_))

    def _names_out(self, given: Any) -> Any:
        """Return the words, one per feature: a dot per place of a gap, commas if symbols are no single characters."""
        symbols = [str(symbol) for symbol in self.alphabet_.symbols]
        between = "" if all(len(symbol) == 1 for symbol in symbols) else ","
        gaps = ["." * (gap - 1) for gap in np.diff(self.offsets_, prepend=-1)]
        words = product(symbols, repeat=len(gaps))
        return [between.join(map("".join, zip(gaps, word))) for word in words]

    def _check_offsets(self) -> tuple[int, ...]:
        """Return the relative positions of the symbols of words."""
        if self.offsets is None:
            return tuple(range(check_int(self.k, "k", "Spectrum", 1)))
        offsets = tuple(check_int(offset, "offsets", "Spectrum", 0) for offset in self.offsets)
        if not offsets or offsets[0] != 0 or any(a >= b for a, b in pairwise(offsets)):
            raise ValueError(f"The 'offsets' parameter of Spectrum must rise from 0. Got {self.offsets!r} instead.")
        return offsets


def _with_end(alphabet: Alphabet) -> Alphabet:
    """Return an alphabet with one more symbol, for the ends of objects, behind the plain ones."""
    bars = ("|" * count for count in count_from(1))
    known = {*alphabet.symbols, *(symbol for symbol, _ in alphabet.extra_codes), *dict(alphabet.aliases)}
    symbols = (*alphabet.symbols, next(bar for bar in bars if bar not in known))
    aliases = tuple((alias, code + (code >= alphabet.size)) for alias, code in alphabet.aliases)
    return Alphabet(symbols, alphabet.extra_codes, aliases, unknown=alphabet.unknown)


def _between_ends(packed: Packed, alphabet: Alphabet) -> Packed:
    """Return objects with a symbol for their end before the first and behind the last one."""
    end = alphabet.size - 1
    offsets = packed.offsets + 2 * np.arange(len(packed.offsets))
    values = np.full(offsets[-1], end, packed.values.dtype)
    inside = np.ones(len(values), bool)
    inside[offsets[:-1]] = inside[offsets[1:] - 1] = False
    values[inside] = packed.values + (packed.values >= end)
    return Packed(values, offsets, alphabet)


def _neighbours(length: int) -> Any:
    """Return which of the positions (T,) each of those with both ends (T + 2,) belongs to."""
    places = np.clip(np.arange(length + 2) - 1, 0, length - 1)
    return sparse.csr_array((np.ones(length + 2), (places, np.arange(length + 2))))
