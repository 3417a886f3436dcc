"""Explicit features of the empirical mean map kernel: exact ones for symbols, random ones for points and series."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from genkern.core.words.mean_map import gapped_features, patterns, refuse_missing, tensor_features
from genkern.data.objects import Packed, check_objects, pack_series, pack_symbols
from genkern.data.transformer import SYMBOLS
from genkern.features.base import Embedding
from genkern.features.positions import word_terms
from genkern.features.random_features import draw_waves, fourier_features
from genkern.features.spectrum import DENSE_WORDS
from genkern.features.streaming import gather, stream
from genkern.models.states import sum_pieces
from genkern.validation import Floats, check_int, check_number, check_option

METHODS = ("auto", "dense", "sparse", "fourier")
AUTO_COLUMNS, AUTO_LENGTH = 1 << 24, 10  # columns and lengths of words up to which "auto" takes sparse features
MOST_WORDS, MOST_LENGTH = 1 << 24, 12  # words up to which features are dense, and lengths up to which sparse, if asked


class EmpiricalMeanMap(Embedding):
    r"""The mean of an object's words, or windows, in the feature space of the Gaussian kernel.

    .. math:: \langle \phi(x), \phi(y) \rangle = \operatorname{mean}_{s,t}\, \exp(-\lambda\, \mathrm{Ham}(u_s, v_t))
              \quad\text{or}\quad \approx \operatorname{mean}_{s,t}\, \exp(-\tfrac\lambda2 \|u_s - v_t\|^2)

    over all words :math:`u_s = x_s \dots x_{s+K-1}` of x and :math:`v_t` of y, of K = ``order`` + 1 symbols, of which
    Ham counts the positions that differ; or over all windows of K consecutive observations of series, stacked. With
    order 0 the order of observations does not matter, and objects are bags of symbols or of points.

    Parameters
    ----------
    order : int, default=1
        The order of dependence, K - 1.
    lam : float, default=1.0
        Sharpness :math:`\lambda`, not negative. For symbols it may be infinite: only equal words count, and features
        are those of ``Spectrum(K, normalize="frequency")``.
    alphabet : str, int, sequence or Alphabet, optional
        The symbols: "dna", "rna", "protein", an explicit list, or (default) those of all objects given to ``fit``. If
        given, objects are symbols; otherwise their kind is inferred.
    method : {"auto", "dense", "sparse", "fourier"}, default="auto"
        Which features. For m symbols, "dense": :math:`m^K`, the tensor of word frequencies with the root of the
        kernel between symbols applied along every axis; "sparse": a CSR matrix of :math:`(m + 1)^K` columns, the
        frequencies of words with gaps, at most :math:`2^K` for every word of the object. Both are exact. "auto" takes
        "dense" up to 4096 words, then "sparse" up to :math:`2^{24}` columns and K = 10, and refuses larger ones:
        the kernel ``EmpiricalMean`` needs no features. For numbers, "auto" is "fourier": random Fourier features,
        whose products have an error of order :math:`D^{-1/2}`.
    n_components : int, default=256
        The number D of random Fourier features, for numbers.
    random_state : int, default=0
        Seed of the random frequencies, for numbers.
    n_jobs : int, optional
        Threads, over batches of objects.
    unknown : {"missing", "error"}, optional
        Symbols outside the alphabet are treated as missing, with one warning, or are an error. The
        default is "missing" for an inferred alphabet and "error" for a given one.
    kernel : {"gaussian", "laplace"}, default="gaussian"
        The kernel between words or windows; Laplace's is :math:`\exp(-\lambda \|u_s - v_t\|_1)`, which is
        :math:`\exp(-2 \lambda\, \mathrm{Ham})` for symbols, as one-hot vectors.

    Attributes
    ----------
    method_ : {"dense", "sparse", "fourier"}
        The kind of features.
    alphabet_ : Alphabet or None
        The symbols, if objects have any.
    n_features_out_ : int

    Notes
    -----
    The root is :math:`R = \sqrt{1 - e}\, I + \frac1m (\sqrt{1 - e + m e} - \sqrt{1 - e}) 1 1^T` with :math:`e =
    e^{-\lambda}`, whose application takes O(K m^K) per object. The feature of a word with gaps is its frequency times
    the root of :math:`(1 - e)^j e^{K - j}` if j symbols are kept; columns come pattern by pattern, whole words first.

    Objects shorter than K have no words and features zero. An ambiguous symbol is one of its members, each as likely,
    and features are expectations. Missing numbers are refused. A 2-D array of floats is n series of one channel.

    References
    ----------
    Mehta & Gray (2010), Generative and latent mean map kernels, section 4.
    Rahimi & Recht (2007), Random features for large-scale kernel machines.

    Examples
    --------
    >>> from genkern import EmpiricalMeanMap
    >>> embedding = EmpiricalMeanMap(order=1, lam=1.0).fit(["abab", "bbb"])
    >>> embedding.method_, embedding.get_feature_names_out()
    ('dense', array(['aa', 'ab', 'ba', 'bb'], dtype=object))
    >>> features = embedding.transform(["abab", "bbb", "b"])
    >>> (features @ features.T).round(4)
    array([[0.6157, 0.3679, 0.    ],
           [0.3679, 1.    , 0.    ],
           [0.    , 0.    , 0.    ]])
    """

    _fitted = "method_"

    def __init__(
        self,
        order: int = 1,
        lam: float = 1.0,
        alphabet: Any = None,
        method: str = "auto",
        n_components: int = 256,
        random_state: int = 0,
        n_jobs: int | None = None,
        unknown: str | None = None,
        kernel: str = "gaussian",
    ):
        self.order = order
        self.lam = lam
        self.alphabet = alphabet
        self.method = method
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.unknown = unknown
        self.kernel = kernel

    def _fit(self, X: Any, y: Any) -> None:
        who = "EmpiricalMeanMap"
        k = check_int(self.order, "order", who) + 1
        check_option(self.method, METHODS, "method", who)
        laplace = check_option(self.kernel, ("gaussian", "laplace"), "kernel", who) == "laplace"
        packed = check_objects(X, alphabet=self.alphabet, who=who, unknown=self.unknown)
        lam = check_number(self.lam, "lam", who, infinite=packed.alphabet is not None)
        self.alphabet_, self._size, self._sharpness = packed.alphabet, k, 2.0 * lam if laplace else lam
        if packed.alphabet is not None:
            self.method_ = self._exact_method(packed.alphabet.size, k)
            return
        if self.method not in ("auto", "fourier"):
            raise ValueError(f"{who}: method={self.method!r} is for symbols. Got numbers; use method='fourier'.")
        refuse_missing(packed.values, packed.offsets, who)
        width = check_int(self.n_components, "n_components", who, 1)
        seed = check_int(self.random_state, "random_state", who)
        self._n_channels = packed.values.shape[1]
        self._waves = draw_waves(k * self._n_channels, lam, width, seed, laplace)
        self.method_ = "fourier"

    def _encode(self, X: Any) -> Packed:
        if self.alphabet_ is not None:
            return pack_symbols(X, self.alphabet_, "EmpiricalMeanMap")
        packed = pack_series(X, "EmpiricalMeanMap", n_channels=self._n_channels)
        refuse_missing(packed.values, packed.offsets, "EmpiricalMeanMap")
        return packed

    def _transform(self, packed: Packed) -> Any:
        if self.method_ != "sparse":
            load = self._width() if self.alphabet_ is None else 1
            return gather(self._features, packed, self._width(), self.n_jobs, load)
        blocks = stream(self._features, packed, 1, self.n_jobs)
        return sparse.vstack([block for _, block in blocks], format="csr")

    def _width(self) -> int:
        if self.alphabet_ is None:
            return len(self._waves[1])
        return sum(self.alphabet_.size ** len(kept) for kept in self._patterns())

    def _patterns(self) -> Any:
        """Return which places of words the features read."""
        return patterns(self._size, self._sharpness) if self.method_ == "sparse" else [tuple(range(self._size))]

    def _names_out(self, given: Any) -> Any:
        """Return words, with a dot for every gap, and commas if symbols are no single characters; or ``fourier[i]``."""
        if self.alphabet_ is None:
            return [f"fourier[{i}]" for i in range(self._width())]
        symbols = [str(symbol) for symbol in self.alphabet_.symbols]
        between = "" if all(len(symbol) == 1 for symbol in symbols) else ","
        places = [[symbols if j in kept else ["."] for j in range(self._size)] for kept in self._patterns()]
        return [between.join(word) for group in places for word in product(*group)]

    def _features(self, packed: Packed) -> Any:
        """Return the features of a batch."""
        if self.alphabet_ is None:
            return self._fourier_features(packed, self._size)
        members = self.alphabet_.members_for(packed.values)
        arguments = packed.values, packed.offsets, self.alphabet_.size, self._size, members, self._sharpness
        if self.method_ == "dense":
            return tensor_features(*arguments)
        return gapped_features(*arguments, leave_out=self.alphabet_.unknown == "missing")

    def _fourier_features(self, packed: Packed, k: int) -> Floats:
        """Return means of the random features of all windows of k observations."""
        counts = np.maximum(packed.lengths - k + 1, 0)
        ends = np.concatenate([[0], np.cumsum(counts)])
        starts = np.arange(ends[-1]) + np.repeat(packed.offsets[:-1] - ends[:-1], counts)
        windows = np.concatenate([packed.values[starts + j] for j in range(k)], axis=1)
        sums = sum_pieces(fourier_features(windows, *self._waves), ends)
        return sums / np.maximum(counts, 1)[:, None]

    def _exact_method(self, m: int, k: int) -> str:
        """Return which exact features to take for words of k out of m symbols, refusing sizes that are too large."""
        if self.method == "fourier":
            raise ValueError(
                "EmpiricalMeanMap: method='fourier' is for numbers. Got symbols; use 'auto', whose features are exact."
            )
        if self.method == "auto":
            fits = {"dense": m**k <= DENSE_WORDS, "sparse": k <= AUTO_LENGTH and (m + 1) ** k <= AUTO_COLUMNS}
        else:
            fits = {"dense": m**k <= MOST_WORDS, "sparse": k <= MOST_LENGTH and (m + 1) ** k < 1 << 63}
        chosen = [name for name, right in fits.items() if right and self.method in ("auto", name)]
        if not chosen:
            raise ValueError(
                f"EmpiricalMeanMap: words of {k} out of {m} symbols are too many for method={self.method!r}: "
                f"{m}**{k} dense features, or {m + 1}**{k} columns with up to 2**{k} sparse ones per word. Take a "
                f"smaller order, or the kernel, which needs no features: Gram(EmpiricalMean({self.order}, {self.lam}))."
            )
        return chosen[0]

    def _position_features(self, packed: Packed) -> Any:
        terms = word_terms(self._transform, packed, np.arange(self._size), self._width())
        return sparse.csr_array(terms / max(packed.n_points - self._size + 1, 1))

    def _takes(self) -> dict[str, bool]:
        return SYMBOLS if self.alphabet is not None or self.method in ("dense", "sparse") else {}
