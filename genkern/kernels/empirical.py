"""The empirical mean map kernel between sequences of symbols or of numbers, window against window."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from genkern.core.arrays import products
from genkern.core.words.mean_map import refuse_missing, tensor_features
from genkern.core.words.mean_map_pairs import point_means, symbol_similarity, word_means
from genkern.data.objects import Alphabet, Packed, check_objects
from genkern.kernels.base import Kernel
from genkern.kernels.latex import times
from genkern.validation import Floats, check_int, check_number, check_option

METHODS = ("auto", "dense", "direct")
BETWEEN = ("gaussian", "laplace")  # kernels between windows
FINITE = float(np.finfo(np.float64).max)  # distances that overflow give similarity zero
LARGEST = 1 << 26  # numbers in the tensors of all objects of a block of the matrix


class Sequences:
    """Packed objects that are sliced like a list."""

    def __init__(self, packed: Packed):
        self.packed = packed
        self.shape = (packed.n_objects,)

    def __getitem__(self, rows: Any) -> Sequences:
        return Sequences(self.packed.take(rows))


class EmpiricalMean(Kernel):
    r"""The empirical mean map kernel between sequences: the mean similarity of their words, or windows.

    .. math:: k(x, y) = \operatorname{mean}_{s,t}\, \exp(-\lambda\, \mathrm{Ham}(u_s, v_t))
              \quad\text{or}\quad \operatorname{mean}_{s,t}\, \exp(-\tfrac\lambda2 \|u_s - v_t\|^2)

    (of the Laplace kernel, :math:`\exp(-\lambda \|u_s - v_t\|_1)`) over all words :math:`u_s = x_s \dots x_{s+K-1}` of
    x and :math:`v_t` of y, of K = ``order`` + 1 symbols, of which Ham counts the positions that differ; or over all
    windows of K consecutive observations of series, stacked. With order 0 the order of observations does not matter,
    and objects are bags of symbols or of points.

    Parameters
    ----------
    order : int, default=1
        The order of dependence, K - 1.
    lam : float, default=1.0
        Sharpness, not negative. For symbols it may be infinite: only equal words count.
    alphabet : str, int, sequence or Alphabet, optional
        The symbols: "dna", "rna", "protein", an explicit list, or (default) those that occur; values do not depend on
        others. If given, objects are symbols; otherwise their kind is inferred.
    method : {"auto", "dense", "direct"}, default="auto"
        Whether objects of m symbols are compared by their tensors of :math:`m^K` word frequencies or word by word, in
        O(L L' K). "auto" takes the cheaper one that is not too large. Both are exact. Numbers are compared directly.
    kernel : {"gaussian", "laplace"}, default="gaussian"
        The kernel between words or windows. Symbols are one-hot vectors, so that with Laplace's the exponent is
        :math:`-2 \lambda\, \mathrm{Ham}`.

    Notes
    -----
    Positive semi-definite: an inner product of means. Objects shorter than K have no words and have similarity zero to
    all, also to themselves. An ambiguous symbol is one of its members, each as likely, and values are expectations.
    Missing numbers are refused.

    A 2-D array of floats is n series of one channel. ``EmpiricalMeanMap`` gives explicit features of the same kernel.

    References
    ----------
    Mehta & Gray (2010), Generative and latent mean map kernels, section 4.

    Examples
    --------
    >>> from genkern import EmpiricalMean
    >>> EmpiricalMean(order=1, lam=1.0)(["abab", "bbb", "b"]).round(4)
    array([[0.6157, 0.3679, 0.    ],
           [0.3679, 1.    , 0.    ],
           [0.    , 0.    , 0.    ]])
    >>> EmpiricalMean(order=0, lam=1.0)([[[0.0, 0.0]], [[0.0, 0.0], [0.0, 2.0]]]).round(4)
    array([[1.    , 0.5677],
           [0.5677, 0.5677]])
    """

    _positive = ("lam",)

    def __init__(
        self,
        order: int = 1,
        lam: float = 1.0,
        alphabet: Any = None,
        method: str = "auto",
        kernel: str = "gaussian",
    ):
        self.order = order
        self.lam = lam
        self.alphabet = alphabet
        self.method = method
        self.kernel = kernel

    def prepare(self, X: Any) -> Sequences:
        """Return packed objects."""
        if isinstance(X, Sequences):
            X = X.packed
        packed = check_objects(X, alphabet=self.alphabet, who="EmpiricalMean", largest=FINITE)
        if packed.alphabet is None:
            refuse_missing(packed.values, packed.offsets, "EmpiricalMean")
        return Sequences(packed)

    def _values(self, X: Sequences, Y: Sequences | None) -> Floats:
        k = check_int(self.order, "order", "EmpiricalMean") + 1
        check_option(self.method, METHODS, "method", "EmpiricalMean")
        check_option(self.kernel, BETWEEN, "kernel", "EmpiricalMean")
        x, y = X.packed, None if Y is None else Y.packed
        if x.alphabet is None or (y is not None and y.alphabet is None):
            return self._compare_numbers(x, y, k)
        lam = check_number(self.lam, "lam", "EmpiricalMean", infinite=True)
        lam *= 2.0 if self.kernel == "laplace" else 1.0  # one-hot vectors are at distance two
        alphabet, y = _common(x, y)
        m, members = alphabet.size, alphabet.sparse_members
        if self._takes_tensors(x, x if y is None else y, m, k):
            first = tensor_features(x.values, x.offsets, m, k, members, lam)
            if y is None:
                return products.gram(first)
            return products.cross(first, tensor_features(y.values, y.offsets, m, k, members, lam))
        codes = x.values if y is None else np.concatenate([x.values, y.values])
        used, place = np.unique(codes, return_inverse=True)  # similarities of the codes that occur, not of all
        left, right = np.split(place.astype(np.int32), [len(x.values)])
        other = None if y is None else (right, y.offsets)
        return word_means((left, x.offsets), other, k, symbol_similarity(members[used], lam))

    def _values_diag(self, X: Sequences) -> Floats:
        return np.array([self._values(X[i : i + 1], None)[0, 0] for i in range(X.shape[0])])

    def _logs(self, X: Sequences, Y: Sequences | None) -> Floats:
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(self._values(X, Y))
        return logs

    def _logs_diag(self, X: Sequences) -> Floats:
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(self._values_diag(X))
        return logs

    def _written(self, left: int, right: int, view: str = "") -> str:
        x, y = self._arguments(left, right, view)
        like = rf"\exp(-{times(self.lam)}d_{{{self.order + 1}}}({x}_s, {y}_t))"
        if self.kernel == "laplace":
            like = rf"\exp(-{times(self.lam)}\|{x}_{{s..s+{self.order}}} - {y}_{{t..t+{self.order}}}\|_1)"
        return rf"\operatorname{{mean}}_{{s,t}} \left[{like}\right]"

    def _compare_numbers(self, x: Packed, y: Packed | None, k: int) -> Floats:
        """Return values between series."""
        if y is not None and (y.alphabet is not None or x.alphabet is not None):
            raise TypeError("EmpiricalMean: symbols cannot be compared with numbers. Give both as one of them.")
        if y is not None and y.values.shape[1] != x.values.shape[1]:
            raise ValueError(
                f"EmpiricalMean: objects of X have {x.values.shape[1]} channels and those of Y {y.values.shape[1]}; "
                "they must be the same."
            )
        if self.method == "dense":
            raise ValueError("EmpiricalMean: method='dense' is for symbols. Got numbers; use method='auto'.")
        lam = check_number(self.lam, "lam", "EmpiricalMean")
        return point_means(x[:2], None if y is None else y[:2], k, lam, self.kernel == "laplace")

    def _takes_tensors(self, x: Packed, y: Packed, m: int, k: int) -> bool:
        """Return whether to compare by tensors: a product of two, against a comparison of all words."""
        numbers = (x.n_objects + y.n_objects) * m**k
        if self.method == "dense" and numbers > LARGEST:
            raise ValueError(
                f"EmpiricalMean: method='dense' needs {m}**{k} numbers for each of {x.n_objects + y.n_objects} "
                f"objects, more than {LARGEST}. Use method='auto' or 'direct', a smaller order, or Gram(block_size=)."
            )
        words = [float(np.maximum(packed.lengths - k + 1, 0).mean()) for packed in (x, y)]
        return self.method == "dense" or (
            self.method == "auto" and numbers <= LARGEST and m**k <= k * words[0] * words[1]
        )


def _common(first: Packed, packed: Packed | None) -> tuple[Alphabet, Packed | None]:
    """Return an alphabet of the symbols of both, the first ones first, and the second objects in its codes."""
    alphabet = cast(Alphabet, first.alphabet)
    if packed is None:
        return alphabet, packed
    other = cast(Alphabet, packed.alphabet)
    if alphabet.same_codes(other):
        return alphabet if alphabet.n_codes >= other.n_codes else other, packed
    extra = max(first.values.max() - alphabet.size, packed.values.max() - other.size) >= 0
    if alphabet.ambiguities or other.ambiguities or extra:
        raise ValueError(f"EmpiricalMean: cannot compare {alphabet!r} with {other!r}; give alphabet= for both.")
    joint = Alphabet(tuple(dict.fromkeys((*alphabet.symbols, *other.symbols))))
    codes = np.array([joint.symbols.index(symbol) for symbol in other.symbols], np.int32)
    return joint, Packed(codes[packed.values], packed.offsets, joint)
