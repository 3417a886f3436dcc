"""Words of aligned sequences by position: at each position, or in each of a few regions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import sparse

from genkern.core.words.counts import kmer_sparse
from genkern.data.intake import offsets_of
from genkern.data.objects import Alphabet, Packed, pack_symbols
from genkern.data.transformer import SYMBOLS
from genkern.features.base import Embedding
from genkern.features.positions import shares_of_reading
from genkern.features.spectrum import Spectrum
from genkern.models.families.site import pack_windows
from genkern.validation import check_int, check_option, warn

LARGEST = 1 << 25  # most columns
AUTO = 1 << 20  # most columns with ks="auto"


class PlacedSpectrum(Embedding):
    """Base of counts of words in several places of an object, one block of columns per length of words and place.

    A subclass implements ``_pack`` and, for words of k symbols, the names of positions or regions and their codes.
    """

    longest: ClassVar[int]  # of the words that ks="auto" takes
    ks: Sequence[int] | str
    ks_: list[int]
    alphabet: Any
    unknown: str | None
    alphabet_: Alphabet

    _fitted = "ks_"
    _inputs = SYMBOLS

    @abstractmethod
    def _pack(self, X: Any, alphabet: Any) -> Any:
        """Return packed objects."""

    @abstractmethod
    def _places(self, k: int) -> list[str]:
        """Return the names of the positions or regions of words of k symbols."""

    @abstractmethod
    def _read(self, packed: Any, k: int) -> tuple[Any, Any]:
        """Return the concatenated codes of all positions or regions of all objects, and their offsets."""

    def _fit(self, X: Any, y: Any) -> None:
        who = type(self).__name__
        auto = isinstance(self.ks, str) and self.ks == "auto"
        if not auto and (isinstance(self.ks, str) or not isinstance(self.ks, Sequence) or not self.ks):
            raise ValueError(
                f"The 'ks' parameter of {who} must be a list of lengths of words, or 'auto'. Got {self.ks!r}."
            )
        lengths = [] if auto else [check_int(k, "ks", f"{who}, each of them,", 1) for k in self.ks]
        self.alphabet_ = self._pack(X, self.alphabet).alphabet
        self.ks_ = self._choose() if auto else lengths
        if self._width() > LARGEST:
            raise ValueError(
                f"{who}: words of up to {max(self.ks_)} of {self.alphabet_.size} symbols need "
                f"{self._width():.3g} columns, more than {LARGEST}. Take shorter words in "
                f"ks={self.ks!r}, or ks='auto'."
            )

    def _encode(self, X: Any) -> Any:
        return self._pack(X, self.alphabet_)

    def _width(self) -> int:
        return self._n_columns(self.ks_)

    def _n_columns(self, ks: Sequence[int]) -> int:
        """Return the number of columns of words of these lengths."""
        return sum(len(self._places(k)) * self.alphabet_.size**k for k in ks)

    def _choose(self) -> list[int]:
        """Return the lengths 1, 2, ... of words that fit into objects and, beyond the first, into `AUTO` columns."""
        sets = [list(range(1, last + 1)) for last in range(1, self.longest + 1)]
        return [ks for ks in sets if len(ks) == 1 or (self._places(len(ks)) and self._n_columns(ks) <= AUTO)][-1]

    def _transform(self, packed: Any) -> Any:
        members = self.alphabet_.members_for(packed.values)
        blocks = []
        for k in self.ks_:
            codes, offsets = self._read(packed, k)
            data, words, starts = kmer_sparse(
                codes, offsets, self.alphabet_.size, k, members, leave_out=self.alphabet_.unknown == "missing"
            )
            places, size = len(self._places(k)), self.alphabet_.size**k
            place = np.repeat(np.arange(len(starts) - 1) % places, np.diff(starts))
            columns = words + place * size
            blocks.append(sparse.csr_matrix((data, columns, starts[::places]), (packed.n_objects, places * size)))
        return sparse.hstack(blocks, format="csr")

    def _position_features(self, packed: Any) -> Any:
        blocks, length, size = [], packed.values.size, self.alphabet_.size
        for k in self.ks_:
            codes, offsets = self._read(packed, k)
            where, _ = self._read(packed._replace(values=np.arange(length).reshape(packed.values.shape)), k)
            ends = np.repeat(offsets[1:], np.diff(offsets))
            starts = np.flatnonzero(np.arange(len(codes)) + k <= ends)
            reads = starts[:, None] + np.arange(k)
            words = Packed(codes[reads].ravel(), k * np.arange(len(starts) + 1), packed.alphabet)
            terms = sparse.csr_array((length, (len(offsets) - 1) * size**k))
            if len(starts):
                counts = Spectrum(k, self.alphabet_, sparse=True).fit_transform(words).tocoo()
                places = np.searchsorted(offsets, starts, side="right") - 1
                columns = counts.col + places[counts.row] * size**k
                placed = sparse.csr_array((counts.data, (counts.row, columns)), (len(starts), terms.shape[1]))
                terms = shares_of_reading(where[reads], length) @ placed
            blocks.append(terms)
        return sparse.hstack(blocks, format="csr")

    def _names_out(self, given: Any) -> Any:
        """Return ``place:word`` for each feature; symbols that are no single characters are joined by commas."""
        symbols = [str(symbol) for symbol in self.alphabet_.symbols]
        between = "" if all(len(symbol) == 1 for symbol in symbols) else ","
        return [
            f"{place}:{between.join(word)}"
            for k in self.ks_
            for place in self._places(k)
            for word in product(symbols, repeat=k)
        ]


class PositionalSpectrum(PlacedSpectrum):
    r"""Which word of k symbols begins at each position of aligned sequences, for several k.

    .. math:: \phi_{k, t, w}(x) = [x_t x_{t+1} \dots x_{t+k-1} = w], \qquad
              \langle \phi(x), \phi(x') \rangle = \sum_k \sum_t [x_t \dots x_{t+k-1} = x'_t \dots x'_{t+k-1}]

    Parameters
    ----------
    ks : sequence of int or "auto", default=(1, 2, 3, 4, 5)
        Lengths of the words, none above the length L of the sequences. "auto" takes 1, 2, ... up to 5, as far as they
        have at most 2^20 columns together; more than 2^25 are refused.
    alphabet : str, int, sequence or Alphabet, optional
        The m symbols: "dna", "rna", "protein", an explicit list, or (default) those of all objects given to ``fit``.
    unknown : {"missing", "error"}, optional
        Symbols outside the alphabet are treated as missing, with one warning, or are an error. The
        default is "missing" for an inferred alphabet and "error" for a given one.
    lengths : {"equal", "any"}, default="equal"
        Whether objects of another length than those given to ``fit``, which have one, are refused, or lack the words
        behind their end and have no features for symbols behind that length, with one warning.

    Attributes
    ----------
    alphabet_ : Alphabet
    ks_ : list of int
        Lengths of the words.
    length_ : int
        The length L of the training sequences.
    n_features_out_ : int
        :math:`\sum_k (L - k + 1)\, m^k`: for each k all positions, in each the words in the order of the alphabet, the
        first symbol changing slowest. With large alphabets take short words.

    Notes
    -----
    These are Fisher scores without information (``information="identity"``), up to constants, of position-specific
    models with uniform probabilities: of independent positions (``SiteModel``) for k = 1, and of the transitions of
    inhomogeneous Markov chains of order k - 1 (``PositionalChain``) for longer words. Dividing by the information
    instead, as Fisher kernels do, gives rare words large weights and does harm from k = 3 on. The inner product is the
    weighted degree kernel with equal weights.

    A word with ambiguous symbols adds equal shares, which sum to one, to all words that it may spell.

    References
    ----------
    Jaakkola & Haussler (1999), Exploiting generative models in discriminative classifiers, section 5.
    Rätsch & Sonnenburg (2004), Accurate splice site detection for Caenorhabditis elegans, section 3.

    Examples
    --------
    >>> from genkern import PositionalSpectrum
    >>> words = PositionalSpectrum(ks=(1, 2)).fit(["aba", "bba"])
    >>> row = words.transform(["bba"])
    >>> words.get_feature_names_out()[row.indices]
    array(['0:b', '1:b', '2:a', '0:bb', '1:ba'], dtype=object)
    """

    longest = 5

    def __init__(
        self,
        ks: Sequence[int] | str = (1, 2, 3, 4, 5),
        alphabet: Any = None,
        unknown: str | None = None,
        lengths: str = "equal",
    ):
        self.ks = ks
        self.alphabet = alphabet
        self.unknown = unknown
        self.lengths = lengths

    def _fit(self, X: Any, y: Any) -> None:
        check_option(self.lengths, ("equal", "any"), "lengths", "PositionalSpectrum")
        self.__dict__.pop("length_", None)  # of an earlier fit
        self.length_ = self._pack(X, self.alphabet).values.shape[1]
        super()._fit(X, y)
        if max(self.ks_) > self.length_:
            raise ValueError(
                f"PositionalSpectrum: words of {max(self.ks_)} symbols are longer than the sequences, which have "
                f"{self.length_}. Take shorter words in ks={self.ks!r}."
            )

    def _pack(self, X: Any, alphabet: Any) -> Any:
        length = getattr(self, "length_", None)
        if length is not None and self.lengths == "any":
            packed = pack_symbols(X, alphabet, "PositionalSpectrum", unknown=self.unknown)
            self._tell_longer(packed, length)
            return packed
        return pack_windows(X, alphabet, "PositionalSpectrum", length=length, unknown=self.unknown)

    def _tell_longer(self, packed: Packed, length: int) -> None:
        """Warn of objects whose last symbols have no features."""
        longer = np.flatnonzero(packed.lengths > length)
        if len(longer):
            warn(
                f"PositionalSpectrum: {len(longer)} of {packed.n_objects} objects are longer than those given to fit, "
                f"of {length} symbols, such as object {longer[0]} of {packed.lengths[longer[0]]}; what stands behind "
                "that length has no features by position. Cut objects to what is aligned.",
                UserWarning,
                [("longer", int(i)) for i in longer],
            )

    def _places(self, k: int) -> list[str]:
        return [str(position) for position in range(self.length_ - k + 1)]

    def _read(self, packed: Any, k: int) -> tuple[Any, Any]:
        if packed.values.ndim == 1:
            starts = np.arange(self.length_ - k + 1)
            there = starts + k <= packed.lengths[:, None]
            places = (packed.offsets[:-1, None] + starts)[there]
            return packed.values[places[:, None] + np.arange(k)].ravel(), offsets_of(k * there.ravel())
        words = sliding_window_view(packed.values, k, axis=1).reshape(-1, k)
        return words.ravel(), np.arange(len(words) + 1) * k


class RegionSpectrum(PlacedSpectrum):
    r"""How often each word of k symbols occurs in each of a few regions of a sequence, for several k.

    .. math:: \phi_{k, r, w}(x) = \#\{t : x_t \dots x_{t+k-1} = w,\ \lfloor r T / R \rfloor \le t,\
              t + k \le \lfloor (r + 1) T / R \rfloor\}

    A ``PowerMap(0.5)`` after it takes square roots of counts, which balances frequent and rare words.

    Parameters
    ----------
    ks : sequence of int or "auto", default=(1, 2, 3, 4)
        Lengths of the words. "auto" takes 1, 2, ... up to 4, as far as they have at most 2^20 columns together; more
        than 2^25 are refused.
    n_regions : int, default=4
        The number R of regions, each of the same part of a sequence of T symbols, whatever its length.
    alphabet : str, int, sequence or Alphabet, optional
        The m symbols: "dna", "rna", "protein", an explicit list, or (default) those of all objects given to ``fit``.
    unknown : {"missing", "error"}, optional
        Symbols outside the alphabet are treated as missing, with one warning, or are an error. The
        default is "missing" for an inferred alphabet and "error" for a given one.

    Attributes
    ----------
    alphabet_ : Alphabet
    ks_ : list of int
        Lengths of the words.
    n_features_out_ : int
        :math:`R \sum_k m^k`: for each k all regions, in each the words in the order of the alphabet, the first symbol
        changing slowest.

    Notes
    -----
    A compromise between ``Spectrum``, which ignores positions, and ``PositionalSpectrum``, which uses exact ones. A
    word with ambiguous symbols adds equal shares, which sum to one, to all words that it may spell. Words across a
    border of regions do not count, and regions shorter than k have none.

    Examples
    --------
    >>> from genkern import RegionSpectrum
    >>> regions = RegionSpectrum(ks=(1,), n_regions=2).fit(["aabb"])
    >>> regions.get_feature_names_out()
    array(['region0:a', 'region0:b', 'region1:a', 'region1:b'], dtype=object)
    >>> regions.transform(["aabb", "babbbb"]).toarray()
    array([[2., 0., 0., 2.],
           [1., 2., 0., 3.]])
    """

    longest = 4

    def __init__(
        self,
        ks: Sequence[int] | str = (1, 2, 3, 4),
        n_regions: int = 4,
        alphabet: Any = None,
        unknown: str | None = None,
    ):
        self.ks = ks
        self.n_regions = n_regions
        self.alphabet = alphabet
        self.unknown = unknown

    def _fit(self, X: Any, y: Any) -> None:
        check_int(self.n_regions, "n_regions", "RegionSpectrum", 1)
        super()._fit(X, y)

    def _pack(self, X: Any, alphabet: Any) -> Any:
        return pack_symbols(X, alphabet, "RegionSpectrum", unknown=self.unknown)

    def _places(self, k: int) -> list[str]:
        return [f"region{region}" for region in range(self.n_regions)]

    def _read(self, packed: Any, k: int) -> tuple[Any, Any]:
        shares = packed.lengths[:, None] * np.arange(self.n_regions) // self.n_regions
        return packed.values, np.append((packed.offsets[:-1, None] + shares).ravel(), packed.offsets[-1])
