"""Rows of counts, dense or sparse: how they are packed, and the base class of distributions over them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.special import gammaln

from genkern.core.families.counts import first_wrong
from genkern.data.intake import locate
from genkern.data.objects import Packed, pack_points, pack_series
from genkern.models.families.geometric import Geometric
from genkern.models.families.poisson import Poisson
from genkern.models.leaf import Leaf
from genkern.validation import Floats, check_int


class CountLeaf(Leaf):
    r"""A distribution over rows of counts, :math:`p(c) = w(s)\, p(c | s)` with :math:`s = \sum_d c_d`.

    ``total`` defines w: an int (every row sums to it), a length law, or None (p is conditional on s, w = 1).
    ``ordered`` defines the datum: the list of the s draws, or only how often each outcome was drawn, which happens
    in :math:`s! / \prod_d c_d!` orders. A family gives ``log_draws``, the log-probability of one such order.
    """

    _shared = ("total",)
    total: int | Leaf | None
    ordered: bool

    @property
    @abstractmethod
    def width(self) -> int:
        """Number m of outcomes."""

    @abstractmethod
    def log_draws(self, points: Any) -> Floats:
        """Return the log-probability (N,) + batch of the draws of each row in a given order."""

    def pack(self, X: Any) -> Packed:
        """Encode bags of rows of counts, or a sparse matrix of n bags of one row."""
        who = type(self).__name__
        return check_totals(pack_counts(X, who, self.width), self.total, who)

    def pack_sequences(self, X: Any) -> Packed:
        """Encode sequences of dense rows of counts."""
        who = type(self).__name__
        return check_totals(pack_count_sequences(X, who, self.width), self.total, who)

    def log_density(self, points: Any) -> Floats:
        """Return log p (N,) + batch of rows of counts (N, m), dense or CSR."""
        logs = self.log_draws(points)
        return logs + self._log_base(points).reshape((-1,) + (1,) * len(self.shape))

    def _log_base(self, points: Any) -> Floats:
        """Return log w(s), plus the log of the number of orders if they do not count, (N,)."""
        sums = row_sums(points)
        base: Floats = np.zeros(len(sums))
        if isinstance(self.total, Leaf):
            base = self.total.log_density(sums[:, None])
        if not self.ordered:
            base = base + gammaln(sums + 1.0) - row_sums(mapped(points, lambda counts: gammaln(counts + 1.0)))
        return base

    @property
    def expected_total(self) -> float:
        """Expected sum of a row; one, i.e. a single draw, if it is given."""
        if isinstance(self.total, Leaf):
            return _law_mean(self.total)
        return 1.0 if self.total is None else float(self.total)

    def _draw_totals(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        if self.total is None:
            raise ValueError(
                f"{type(self).__name__}: total=None leaves the sums of rows open, so that none can be drawn. Give the "
                "model a total: an int, or a law such as Poisson(20.0)."
            )
        if not isinstance(self.total, Leaf):
            return np.full(n, self.total)
        drawn = self.total.stack([self.total]).draw(np.zeros(n, np.int64), rng)
        return np.asarray(drawn).reshape(n).astype(np.int64)

    def sample(self, n: int, *, length: int = 1, rng: Any = None) -> list[Floats]:
        """Return n bags of ``length`` rows of counts, each (length, m)."""
        rows = self.stack([self]).draw(self._draws(n, length), np.random.default_rng(rng))
        return list(rows.reshape(n, length, rows.shape[-1]))


def check_total(total: Any, who: str) -> int | Leaf | None:
    """Return an int, a length law or None."""
    if isinstance(total, Leaf):
        if isinstance(total, Poisson | Geometric) and total.parameters("raw").size == 1 and not total.shape:
            return total
        raise ValueError(
            f"{who}: a law of totals must be one Poisson or Geometric model of one dimension, such as Poisson(20.0). "
            f"Got {total!r}."
        )
    return None if total is None else check_int(total, "total", who, 0)


def check_totals(packed: Packed, total: int | Leaf | None, who: str) -> Packed:
    """Return packed rows, raising where a row does not sum to a fixed total."""
    if total is None or isinstance(total, Leaf):
        return packed
    sums = row_sums(packed.values)
    if (sums != total).any():
        row = int(np.argmax(sums != total))
        index, position = locate(packed.offsets, row)
        raise ValueError(
            f"{who}: object {index}, position {position} has {sums[row]:g} counts; total={total} were expected. Use "
            "total=None if rows have different sums that are given, or a law of sums such as total=Poisson(20.0)."
        )
    return packed


def pack_counts(X: Any, who: str, width: int | None = None) -> Packed:
    """Return bags of rows of counts; those of a sparse matrix, n bags of one row, stay sparse (CSR)."""
    if scipy.sparse.issparse(X):
        if 0 in X.shape:
            raise ValueError(f"{who}: Found array with 0 sample(s) or feature(s) (shape={X.shape}).")
        X = Packed(_canonical(X), np.arange(X.shape[0] + 1))
    return _refuse_no_counts(pack_points(X, who, n_features=width), who)


def pack_count_sequences(X: Any, who: str, width: int | None = None) -> Packed:
    """Return sequences of rows of counts."""
    if scipy.sparse.issparse(X):
        raise TypeError(f"{who}: sequences of counts must be dense. Pass a list of arrays (T, m).")
    return _refuse_no_counts(pack_series(X, who, n_channels=width), who)


def _refuse_no_counts(packed: Packed, who: str) -> Packed:
    """Return packed rows, raising at the first number that is no count."""
    values: Any = packed.values
    at = first_wrong(values.data if scipy.sparse.issparse(values) else values)
    if at >= 0:
        raise ValueError(f"{who}: {_wrong_count(packed, at)}")
    return packed


def _wrong_count(packed: Packed, at: int) -> str:
    """Return the error message for an entry that is no count, by object, position and column."""
    values: Any = packed.values
    if scipy.sparse.issparse(values):
        row, column, value = int(np.searchsorted(values.indptr, at, "right")) - 1, values.indices[at], values.data[at]
    else:
        row, column = divmod(at, values.shape[1])
        value = values[row, column]
    index, position = locate(packed.offsets, row)
    remedy = "Round or rescale it."
    if np.isnan(value):
        remedy = "A missing count leaves the sum of its row open: leave out the row or the column."
    return f"object {index}, position {position}, column {column} is {value:g}; expected counts 0, 1, 2, ... {remedy}"


def _canonical(X: Any) -> Any:
    """Return a CSR matrix of floats without duplicates or stored zeros; the caller's is not changed."""
    matrix = scipy.sparse.csr_array(X, dtype=np.float64)
    if not matrix.has_canonical_format or not matrix.data.all():
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    return matrix


def row_sums(points: Any) -> Floats:
    """Return the sums (N,) of rows of a dense or CSR matrix."""
    return np.asarray(points.sum(axis=1), np.float64).reshape(-1)


def mapped(points: Any, function: Any) -> Any:
    """Return a dense or CSR matrix with a function, zero at zero, applied to its entries."""
    if not scipy.sparse.issparse(points):
        return function(points)
    return scipy.sparse.csr_array((function(points.data), points.indices, points.indptr), shape=points.shape)


def cells(points: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Return rows, columns and values of the positive entries of a dense or CSR matrix, by rows."""
    sparse = scipy.sparse.csr_array(points)
    return np.repeat(np.arange(sparse.shape[0]), np.diff(sparse.indptr)), sparse.indices, sparse.data


def group_rows(packed: Packed, points: Any, weights: Floats, totals: bool) -> Floats:
    """Return sums (G, m) of rows of points (N, m) with weights (N,), over each object or over all."""
    if totals:
        return np.asarray(points.T @ weights)[None]
    shape = (packed.n_objects, packed.n_points)
    sums = scipy.sparse.csr_array((weights, np.arange(packed.n_points), packed.offsets), shape=shape) @ points
    return np.asarray(sums.toarray() if scipy.sparse.issparse(sums) else sums)


def _law_mean(law: Any) -> float:
    """Return the mean of a Poisson or geometric law."""
    if isinstance(law, Poisson):
        return float(law.rate.sum())
    return float(((1.0 - law.prob) / law.prob).sum())
