"""Kernels between vectors: rows of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from genkern.core import products
from genkern.kernels.base import Kernel
from genkern.validation import Floats, check_array, check_int, check_number


class _VectorKernel(Kernel):
    """Checks of matrices."""

    @property
    def vectors(self) -> bool:
        """True."""
        return True

    def prepare(self, X: Any) -> Any:
        """Return a finite float64 matrix, sparse if X is and the kernel allows it."""
        who = type(self).__name__
        if not sparse.issparse(X):
            return check_array(X, "X", who, ndim=2)
        if not self.accepts_sparse:
            raise TypeError(f"{who} needs a dense matrix. Got a sparse one of shape {X.shape}; use X.toarray().")
        rows = X.tocsr().astype(np.float64, copy=False)
        check_array(rows.data, "X", who)
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
        if sparse.issparse(X) or sparse.issparse(Y):
            product = X @ (X if Y is None else Y).T
            return np.asarray(product.toarray() if sparse.issparse(product) else product)
        return products.gram(X) if Y is None else products.cross(X, Y)


def _square_norms(X: Any) -> Floats:
    """Return squared lengths (n,) of rows."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
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
        return self._products(X, Y)

    def _values_diag(self, X: Any) -> Floats:
        return _square_norms(X)

    @property
    def formula(self) -> str:
        """The kernel in LaTeX."""
        return r"\langle x, y \rangle"


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

    def _raise(self, products: Floats) -> Floats:
        degree = check_int(self.degree, "degree", "Polynomial", 1)
        return (products + check_number(self.offset, "offset", "Polynomial")) ** degree

    def _values(self, X: Any, Y: Any) -> Floats:
        return self._raise(self._products(X, Y))

    def _values_diag(self, X: Any) -> Floats:
        return self._raise(_square_norms(X))

    @property
    def formula(self) -> str:
        """The kernel in LaTeX."""
        return rf"(\langle x, y \rangle + {self.offset:g})^{{{self.degree}}}"


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

    def __init__(self, gamma: float = 1.0):
        self.gamma = gamma

    def _sharpness(self) -> float:
        return check_number(self.gamma, "gamma", "RBF")

    def _values(self, X: Any, Y: Any) -> Floats:
        self._match(X, Y)
        return products.rbf(X, Y, 2.0 * self._sharpness())

    def _values_diag(self, X: Any) -> Floats:
        return np.ones(X.shape[0])

    def _logs(self, X: Any, Y: Any) -> Floats:
        own = _square_norms(X)
        other = own if Y is None else _square_norms(Y)
        squares = np.maximum((own[:, None] + other[None, :]) - 2.0 * self._products(X, Y), 0.0)
        if Y is None:
            np.fill_diagonal(squares, 0.0)
        return -self._sharpness() * squares

    def _logs_diag(self, X: Any) -> Floats:
        return np.zeros(X.shape[0])

    @property
    def formula(self) -> str:
        """The kernel in LaTeX."""
        return rf"\exp(-{self.gamma:g} \|x - y\|^2)"
