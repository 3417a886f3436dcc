"""Kernels between vectors: rows of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

from genkern.affinities.collection import Collection
from genkern.core.arrays import products
from genkern.kernels.base import BOTH, Kernel
from genkern.kernels.distances import gaussian, squares
from genkern.kernels.latex import number, times
from genkern.models.value import Value
from genkern.validation import Floats, check_array, check_int, check_number

SPREAD = 4  # columns per stored number above which empty columns are removed


class _VectorKernel(Kernel):
    """Checks of matrices."""

    @property
    def vectors(self) -> bool:
        """True."""
        return True

    def prepare(self, X: Any) -> Any:
        """Return a finite float64 matrix, sparse if X is and the kernel allows it."""
        who = type(self).__name__
        refuse_models(X, who)
        if not sparse.issparse(X):
            return check_array(X, "X", who, ndim=2)
        if not self.accepts_sparse:
            raise TypeError(f"{who} needs a dense matrix. Got a sparse one of shape {X.shape}; use X.toarray().")
        rows = X.tocsr().astype(np.float64, copy=False)
        check_array(rows.data, "X", who)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()  # also sorts: x times y and y times x are then summed in the same order
        return rows

    def _match(self, X: Any, Y: Any) -> None:
        """Raise if the matrices have different widths."""
        if Y is not None and X.shape[1] != Y.shape[1]:
            raise ValueError(
                f"{type(self).__name__}: X and Y must have the same number of columns. "
                f"Got {X.shape[1]} and {Y.shape[1]}."
            )

    def _products(self, X: Any, Y: Any) -> Floats:
        """Return inner products (n, m), exactly symmetric without Y."""
        self._match(X, Y)
        with np.errstate(over="ignore", invalid="ignore"):  # overflows are refused with the kernel's values
            if sparse.issparse(X) or sparse.issparse(Y):
                left, right = occupied(X, X if Y is None else Y)
                product = left @ right.T
                return np.asarray(product.toarray() if sparse.issparse(product) else product)
            return products.gram(X) if Y is None else products.cross(X, Y)


def refuse_models(X: Any, who: str) -> None:
    """Raise if X is no matrix but models, or objects as another kernel prepares them."""
    listed = isinstance(X, Sequence) or (isinstance(X, np.ndarray) and X.dtype == object)
    place = next((i for i, row in enumerate(X) if isinstance(row, Value)), None) if listed else None
    if place is not None:
        came = f"models ({type(X[place]).__name__} at index {place})"
    elif isinstance(X, Collection | Value):
        came = "models"
    elif isinstance(X, Sequence) or hasattr(X, "__array__") or sparse.issparse(X):
        return
    else:
        came = type(X).__name__
    raise TypeError(f"{who}: 'X' must be an array of numbers, one row per object. Got {came}. {BOTH}")


def occupied(X: Any, Y: Any) -> tuple[Any, Any]:
    """Return sparse matrices of the non-empty columns, if these are few: a transpose has a row for each column."""
    if not (sparse.issparse(X) and sparse.issparse(Y)) or X.shape[1] <= SPREAD * (X.nnz + Y.nnz):
        return X, Y
    columns = np.unique(np.concatenate([X.indices, Y.indices]))
    return _cut(X, columns), _cut(Y, columns)


def _cut(X: Any, columns: NDArray[Any]) -> Any:
    """Return the given columns, ascending, of a CSR matrix whose other columns are empty."""
    places = np.searchsorted(columns, X.indices)
    return sparse.csr_matrix((X.data, places, X.indptr), shape=(X.shape[0], len(columns)))


def combine_rows(weights: Floats, X: Any) -> Any:
    """Return combinations (k, p) of the rows of X (n, p) with weights (k, n), sparse if most columns are empty."""
    if not sparse.issparse(X) or X.shape[1] <= SPREAD * X.nnz:
        return weights @ X
    columns = np.unique(X.indices)
    table = weights @ _cut(X, columns)
    starts = np.arange(len(table) + 1) * len(columns)
    return sparse.csr_matrix((table.ravel(), np.tile(columns, len(table)), starts), shape=(len(table), X.shape[1]))


def _square_norms(X: Any) -> Floats:
    """Return squared lengths (n,) of rows."""
    with np.errstate(over="ignore"):  # overflows are refused with the kernel's values
        if sparse.issparse(X):
            rows, again = occupied(X, X)
            return np.asarray(rows.multiply(again).sum(axis=1)).ravel()
        norms: Floats = np.einsum("ij,ij->i", X, X)
    return norms


class Linear(_VectorKernel):
    r"""The linear kernel :math:`k(x, y) = \langle x, y \rangle`, on dense or sparse matrices.

    Examples
    --------
    >>> from genkern import Linear
    >>> Linear()([[1.0, 0.0], [1.0, 2.0]])
    array([[1., 1.],
           [1., 5.]])
    """

    @property
    def signed(self) -> bool:
        """True."""
        return True

    @property
    def accepts_sparse(self) -> bool:
        """True."""
        return True

    def _values(self, X: Any, Y: Any) -> Floats:
        return self._finite(self._products(X, Y), Y is None)

    def _values_diag(self, X: Any) -> Floats:
        return self._finite(_square_norms(X))

    def _written(self, left: int, right: int, view: str = "") -> str:
        return rf"\langle {', '.join(self._arguments(left, right, view))} \rangle"


class Polynomial(_VectorKernel):
    r"""The polynomial kernel :math:`k(x, y) = (\langle x, y \rangle + c)^n`, on dense or sparse matrices.

    Parameters
    ----------
    degree : int, default=2
        The power n, at least 1.
    offset : float, default=1.0
        The constant c, not negative.

    Examples
    --------
    >>> from genkern import Polynomial
    >>> Polynomial(degree=2)([[1.0, 0.0]], [[1.0, 2.0]])
    array([[4.]])
    """

    _positive = ("offset",)

    def __init__(self, degree: int = 2, offset: float = 1.0):
        self.degree = degree
        self.offset = offset

    @property
    def signed(self) -> bool:
        """True."""
        return True

    @property
    def accepts_sparse(self) -> bool:
        """True."""
        return True

    def _raise(self, products: Floats, own: bool) -> Floats:
        offset = check_number(self.offset, "offset", "Polynomial")
        with np.errstate(over="ignore"):
            return self._finite((products + offset) ** self._power(), own)

    def _power(self) -> int:
        return check_int(self.degree, "degree", "Polynomial", 1)

    def _root(self) -> tuple[Kernel, int]:
        return Polynomial(1, self.offset), self._power()

    def _values(self, X: Any, Y: Any) -> Floats:
        return self._raise(self._products(X, Y), Y is None)

    def _values_diag(self, X: Any) -> Floats:
        return self._raise(_square_norms(X), False)

    def _written(self, left: int, right: int, view: str = "") -> str:
        x, y = self._arguments(left, right, view)
        offset = f" + {number(self.offset)}" if self.offset else ""
        return rf"(\langle {x}, {y} \rangle{offset})^{{{self.degree}}}"


class RBF(_VectorKernel):
    r"""The Gaussian kernel :math:`k(x, y) = \exp(-\gamma \|x - y\|^2)`.

    Parameters
    ----------
    gamma : float, default=1.0
        Sharpness, not negative, with scikit-learn's meaning; the :math:`\lambda` of the mean map is twice it.

    Examples
    --------
    >>> from genkern import RBF
    >>> RBF(gamma=0.5)([[0.0]], [[0.0], [2.0]]).round(4)
    array([[1.    , 0.1353]])
    """

    _positive = ("gamma",)

    def __init__(self, gamma: float = 1.0):
        self.gamma = gamma

    def _sharpness(self) -> float:
        return check_number(self.gamma, "gamma", "RBF")

    def _values(self, X: Any, Y: Any) -> Floats:
        self._match(X, Y)
        return gaussian(X, Y, self._sharpness())

    def _values_diag(self, X: Any) -> Floats:
        return np.ones(X.shape[0])

    def _logs(self, X: Any, Y: Any) -> Floats:
        self._match(X, Y)
        return -self._sharpness() * squares(X, Y)

    def _logs_diag(self, X: Any) -> Floats:
        return np.zeros(X.shape[0])

    def _written(self, left: int, right: int, view: str = "") -> str:
        if left == right:
            return "1"
        x, y = self._arguments(left, right, view)
        return rf"\exp(-{times(self.gamma)}\|{x} - {y}\|^2)"


class Laplace(_VectorKernel):
    r"""The Laplace kernel :math:`k(x, y) = \exp(-\lambda \|x - y\|_1)`, :math:`\|z\|_1 = \sum_j |z_j|`.

    Parameters
    ----------
    lam : float, default=1.0
        Sharpness, not negative; the ``gamma`` of scikit-learn's ``laplacian_kernel``.

    Notes
    -----
    Positive semi-definite: the product over coordinates of characteristic functions of Cauchy distributions.

    References
    ----------
    Mehta & Gray (2010), Generative and latent mean map kernels, section 1.

    Examples
    --------
    >>> from genkern import Laplace
    >>> Laplace(0.5)([[0.0, 0.0]], [[0.0, 0.0], [1.0, -1.0]]).round(4)
    array([[1.    , 0.3679]])
    """

    _positive = ("lam",)

    def __init__(self, lam: float = 1.0):
        self.lam = lam

    def _values(self, X: Any, Y: Any) -> Floats:
        return np.exp(self._logs(X, Y))

    def _values_diag(self, X: Any) -> Floats:
        return np.ones(X.shape[0])

    def _logs(self, X: Any, Y: Any) -> Floats:
        self._match(X, Y)
        logs: Floats = -check_number(self.lam, "lam", "Laplace") * cdist(X, X if Y is None else Y, "cityblock")
        return logs

    def _logs_diag(self, X: Any) -> Floats:
        return np.zeros(X.shape[0])

    def _written(self, left: int, right: int, view: str = "") -> str:
        if left == right:
            return "1"
        x, y = self._arguments(left, right, view)
        return rf"\exp(-{times(self.lam)}\|{x} - {y}\|_1)"
