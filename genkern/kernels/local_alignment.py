"""The local alignment kernel between sequences of symbols: the sum over all local alignments of two of them."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from genkern.core.alignment.passes import Costs, log_sums, own_log_sums
from genkern.core.alignment.passes import Sequences as Coded
from genkern.data.objects import Alphabet, Packed, check_objects
from genkern.kernels.base import Kernel
from genkern.kernels.divergences import _warn
from genkern.kernels.empirical import Sequences
from genkern.kernels.latex import INTEGRAL, times
from genkern.models.profile.tables import BLOSUM62
from genkern.validation import Floats, check_number

AMINO_ACIDS = tuple("ACDEFGHIKLMNPQRSTVWY")
LARGEST = 1e75  # of a score times beta, in absolute value
ROUNDING = 1e-10  # relative to one: a negative eigenvalue of similarities of symbols that is none


class LocalAlignment(Kernel):
    r"""The local alignment kernel: the sum over all local alignments of two sequences, each by its score.

    .. math:: k(x, y) = \sum_\pi e^{\beta s(\pi)}, \qquad s(\pi) = \sum_{(i, j) \in \pi} S(x_i, y_j)
              - \sum_{\text{gaps of } n} [d + e\, (n - 1)]

    or, with ``logarithm``, :math:`\frac1\beta \log k(x, y)`, which for large :math:`\beta` tends to the score of Smith
    and Waterman. An alignment is a set of aligned pairs, in order in both sequences; symbols between two of them are a
    gap. The empty alignment counts one.

    Parameters
    ----------
    beta : float, default=0.5
        Sharpness, positive: how much the best alignments count beside all others.
    table : "blosum62" or array-like of shape (m, m), default="blosum62"
        Similarity S of aligned symbols, symmetric, in the order of the alphabet.
    gap_open : float, default=11.0
        Cost d of a gap of one symbol, not negative. Infinite: there are no gaps.
    gap_extend : float, default=1.0
        Cost e of each further symbol of a gap, not negative.
    alphabet : str, int, sequence or Alphabet, default="protein"
        The symbols: "protein", "dna", "rna", or an explicit list, for a table of your own.
    logarithm : bool, default=False
        Whether values are logarithms of the sum, over :math:`\beta`. The sum of an object with itself is larger than
        that with others by many powers of ten, so that a learner sees a diagonal matrix; the logarithm does better. It
        is **not positive semi-definite**, which a warning says: give ``Gram`` its ``psd="shift"`` or ``"clip"``.

    Notes
    -----
    The sum is positive semi-definite where :math:`e^{\beta S}` is, between symbols. That holds for every :math:`\beta`
    if the table is positive definite on vectors of sum zero, as BLOSUM62 is; other tables are checked, with a warning.
    It grows exponentially with the length: ``.log``, ``.normalized()`` and ``Gram`` work where values overflow.

    The score of an ambiguous symbol is the mean score of its members; for BLOSUM62 it is within one of the rows that
    the published table has for these, -1 for X with most. (The mean of :math:`e^{\beta S}` would be ruled by members
    that happen to be equal, and runs of X would be similar to each other.)

    A pair costs O(L L') operations, eight pairs at a time, in doubles with scales of their own, so that sequences of
    any length neither overflow nor underflow. Weights so extreme that this would fail, such as infinite gap costs or
    beta times a score above some 100, are computed in logarithms, hundreds of times slower. A value depends on its
    pair only, to the last bit.

    References
    ----------
    Saigo, Vert, Ueda & Akutsu (2004), Protein homology detection using string alignment kernels, Bioinformatics 20.
    Henikoff & Henikoff (1992), Amino acid substitution matrices from protein blocks.

    Examples
    --------
    >>> from genkern import LocalAlignment
    >>> LocalAlignment().log(["HEAGAWGHEE", "PAWHEAE", "GGSGG"]).round(2)
    array([[31.11, 10.49,  7.11],
           [10.49, 22.12,  3.61],
           [ 7.11,  3.61, 14.11]])
    >>> LocalAlignment(beta=1.0, table=[[1, -1], [-1, 1]], gap_open=2.0, alphabet="ab")(["abab", "ba"]).round(2)
    array([[163.98,  21.28],
           [ 21.28,  14.56]])
    """

    _positive = ("beta", "gap_open", "gap_extend")

    def __init__(
        self,
        beta: float = 0.5,
        table: Any = "blosum62",
        gap_open: float = 11.0,
        gap_extend: float = 1.0,
        alphabet: Any = "protein",
        logarithm: bool = False,
    ):
        self.beta = beta
        self.table = table
        self.gap_open = gap_open
        self.gap_extend = gap_extend
        self.alphabet = alphabet
        self.logarithm = logarithm

    @property
    def native_logs(self) -> bool:
        """Whether values are exponentials of computed logarithms: the sums, but not their logarithms."""
        return not self.logarithm

    def prepare(self, X: Any) -> Sequences:
        """Return packed objects."""
        if self.alphabet is None:
            raise ValueError("LocalAlignment: 'alphabet' must be given, since the table has its order. Got None.")
        return Sequences(
            check_objects(X.packed if isinstance(X, Sequences) else X, alphabet=self.alphabet, who="LocalAlignment")
        )

    def _values(self, X: Sequences, Y: Sequences | None) -> Floats:
        _warn(self, "logarithm=False")
        return self._sums(X, Y) / self.beta

    def _values_diag(self, X: Sequences) -> Floats:
        return self._own_sums(X) / self.beta

    def _logs(self, X: Sequences, Y: Sequences | None) -> Floats:
        if self.logarithm:
            with np.errstate(divide="ignore"):
                logs: Floats = np.log(self._values(X, Y))
            return logs
        if not self.table_is_positive(X, Y):
            _warn(self, "A table for which exp(beta * table) is positive semi-definite")
        return self._sums(X, Y)

    def _logs_diag(self, X: Sequences) -> Floats:
        if self.logarithm:
            with np.errstate(divide="ignore"):
                logs: Floats = np.log(self._values_diag(X))
            return logs
        return self._own_sums(X)

    def _exact(self, X: Sequences, Y: Sequences | None) -> bool:
        return not self.logarithm and self.table_is_positive(X, Y)

    def _sums(self, X: Sequences, Y: Sequences | None) -> Floats:
        """Return logarithms of sums (n, n')."""
        return log_sums(_coded(X), None if Y is None else _coded(Y), self._costs(X.packed))

    def _own_sums(self, X: Sequences) -> Floats:
        """Return logarithms of sums (n,) of objects with themselves."""
        return own_log_sums(_coded(X), self._costs(X.packed))

    def _costs(self, packed: Packed) -> Costs:
        """Return scores of codes and costs of gaps, times beta."""
        beta = check_number(self.beta, "beta", "LocalAlignment", exclusive=True)
        opened = check_number(self.gap_open, "gap_open", "LocalAlignment", infinite=True)
        extended = check_number(self.gap_extend, "gap_extend", "LocalAlignment", infinite=True)
        alphabet = cast(Alphabet, packed.alphabet)
        members = alphabet.sparse_members
        shares = members.multiply(1.0 / members.sum(axis=1)[:, None]).tocsr()
        scores = beta * (shares @ (shares @ self._scores(alphabet)).T)
        if not np.abs(scores).max() <= LARGEST:
            raise ValueError(
                f"LocalAlignment: beta times a score of the table must be at most {LARGEST:g}. Got {beta:g} times "
                f"{np.abs(scores).max() / beta:g}; lower beta."
            )
        return Costs(scores, beta * opened, beta * extended)

    def _scores(self, alphabet: Alphabet) -> Floats:
        """Return the table (m, m) of an alphabet."""
        if isinstance(self.table, str):
            if self.table.lower() != "blosum62":
                raise ValueError(f"LocalAlignment: 'table' must be 'blosum62' or an array (m, m). Got {self.table!r}.")
            if alphabet.symbols != AMINO_ACIDS:
                raise ValueError(
                    f"LocalAlignment: table='blosum62' is for alphabet='protein'. Got {alphabet!r}; give one (m, m)."
                )
            return BLOSUM62.astype(np.float64)
        scores = np.asarray(self.table, dtype=np.float64)
        if scores.shape != (alphabet.size, alphabet.size):
            raise ValueError(
                f"LocalAlignment: 'table' must have a row and a column for each of the {alphabet.size} symbols of "
                f"{alphabet!r}. Got shape {scores.shape}."
            )
        if not np.isfinite(scores).all() or not np.array_equal(scores, scores.T):
            i, j = np.argwhere(~np.isfinite(scores) | (scores != scores.T))[0]
            raise ValueError(
                f"LocalAlignment: 'table' must be finite and symmetric. Got {scores[i, j]:g} at ({i}, {j}) and "
                f"{scores[j, i]:g} at ({j}, {i})."
            )
        return scores

    def table_is_positive(self, X: Sequences, Y: Sequences | None = None) -> bool:
        """Return whether the similarities of the symbols of prepared X and Y are positive semi-definite.

        Parameters
        ----------
        X, Y : prepared sequences
        """
        codes = np.unique(np.concatenate([part.packed.values for part in (X, Y) if part is not None]))
        scores = self._costs(X.packed).scores[np.ix_(codes, codes)]
        halves = 0.5 * scores.diagonal()
        cosines = scores - halves[:, None] - halves  # their logarithms
        if cosines.max() > ROUNDING:
            return False
        return bool(np.linalg.eigvalsh(np.exp(cosines))[0] >= -ROUNDING * len(codes))

    def _parameters(self) -> tuple[tuple[str, Any], ...]:
        table = self.table if isinstance(self.table, str) else tuple(map(tuple, np.asarray(self.table).tolist()))
        return tuple((name, table if name == "table" else value) for name, value in super()._parameters())

    @property
    def _level(self) -> int:
        return INTEGRAL

    def _written(self, left: int, right: int, view: str = "") -> str:
        x, y = self._arguments(left, right, view)
        total = rf"\sum_{{\pi \in \Pi({x}, {y})}} e^{{{times(self.beta)}s(\pi)}}"
        return rf"{times(1.0 / self.beta)}\log {total}" if self.logarithm else total


def _coded(X: Sequences) -> Coded:
    """Return the codes of packed objects."""
    return Coded(X.packed.values.astype(np.int64), X.packed.offsets)
