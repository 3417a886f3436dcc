"""The bridge from kernels to matrices: a scikit-learn transformer that works in blocks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from genkern.kernels.base import HIGHEST, Kernel
from genkern.validation import Floats, check_int

MODELS, VECTORS = 256, 1024  # rows and columns of a block: enough to be fast, few enough to share out
WHOLE = 1 << 24  # entries of a matrix that one thread does in one go


class Gram(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Turns representations into kernel values with those of the training set: a bridge to ``kernel="precomputed"``.

    .. math:: K_{ij} = k(x_i, x^{\mathrm{fit}}_j)\, e^{-c}

    with one common factor: c is the largest log self-similarity of the training set for kernels that are computed in
    logs (those between models), and zero for others. It is zero for normalised kernels, and keeps unnormalised ones,
    whose values may be far too small for floating point, usable; a common factor only rescales the learner's
    regularisation.

    Parameters
    ----------
    kernel : Kernel
        What compares two representations.
    n_jobs : int, optional
        Number of threads; None means 1 unless in a joblib context, -1 all.
    block_size : int, optional
        Rows and columns of one block of work. By default one thread does all at once, unless that is much, and several
        share out blocks. Results do not depend on it.
    verbose : int, default=0
        Report progress, as in joblib.

    Attributes
    ----------
    X_fit_ : list of models, stack of models or matrix
        The training representations, one per column of the result.
    log_scale_ : float
        The logarithm c of the common factor.
    n_features_in_ : int
        Number of columns of the training matrix, for kernels between vectors.

    Examples
    --------
    >>> from genkern import Gram, RBF
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> classifier = make_pipeline(Gram(RBF(gamma=0.5)), SVC(kernel="precomputed"))
    >>> classifier.fit([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1]).predict([[0.5], [5.5]])
    array([0, 1])
    """

    def __init__(self, kernel: Kernel, n_jobs: int | None = None, block_size: int | None = None, verbose: int = 0):
        self.kernel = kernel
        self.n_jobs = n_jobs
        self.block_size = block_size
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Remember the training representations.

        Parameters
        ----------
        X : list of models, stack of models, or matrix of shape (n, d)
            What the kernel compares.
        y : object, optional
            Ignored.
        """
        self._fit(X)
        return self

    def transform(self, X: Any) -> Floats:
        """Return kernel values with the training representations, shape (n, n_fit).

        Parameters
        ----------
        X : list of models, stack of models, or matrix of shape (n, d)
            What the kernel compares.
        """
        check_is_fitted(self)
        first = self.kernel.prepare(self._checked(X, reset=False))
        second = self.kernel.prepare(self.X_fit_)
        out = np.empty((first.shape[0], second.shape[0]))

        def fill(rows: slice, columns: slice) -> None:
            out[rows, columns] = self._block(first[rows], second[columns])

        size = self._size(*out.shape)
        self._run(fill, [(i, j) for i in _slices(out.shape[0], size) for j in _slices(out.shape[1], size)])
        return out

    def fit_transform(self, X: Any, y: Any = None) -> Floats:
        """Return the symmetric matrix of kernel values of the training representations, shape (n, n).

        Parameters
        ----------
        X : list of models, stack of models, or matrix of shape (n, d)
            What the kernel compares.
        y : object, optional
            Ignored.
        """
        ready = self._fit(X)
        n = ready.shape[0]
        out = np.empty((n, n))

        def fill(rows: slice, columns: slice) -> None:
            if rows == columns:
                out[rows, rows] = self._block(ready[rows], None)
            else:
                block = self._block(ready[rows], ready[columns])
                out[rows, columns] = block
                out[columns, rows] = block.T

        bands = _slices(n, self._size(n, n))
        self._run(fill, [(i, j) for a, i in enumerate(bands) for j in bands[a:]])
        return out

    def _fit(self, X: Any) -> Any:
        """Set the fitted attributes; return the prepared representations."""
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"Gram: 'kernel' must be a Kernel such as RBF(). Got {self.kernel!r} instead.")
        self.X_fit_ = self._checked(X, reset=True)
        ready = self.kernel.prepare(self.X_fit_)
        self._n_features_out = ready.shape[0]
        self.log_scale_ = 0.0
        if self.kernel.native_logs:
            top = float(self.kernel.log_diag(ready).max())
            self.log_scale_ = top if np.isfinite(top) else 0.0
        return ready

    def _checked(self, X: Any, reset: bool) -> Any:
        """Return a checked matrix, or representations of another kind as they are."""
        if not self.kernel.vectors:
            return X
        formats = "csr" if self.kernel.accepts_sparse else False
        return validate_data(self, X, reset=reset, dtype=np.float64, accept_sparse=formats)

    def _block(self, X: Any, Y: Any) -> Floats:
        """Return scaled values of prepared representations."""
        if not self.kernel.native_logs:
            return self.kernel(X, Y)
        logs = self.kernel.log(X, Y) - self.log_scale_
        if logs.max() > HIGHEST:
            raise ValueError(
                f"Gram: an object's kernel values exceed those of the training set by a factor e^{logs.max():.4g}. "
                f"Use {self.kernel!r}.normalized()."
            )
        values: Floats = np.exp(logs)
        return values

    def _size(self, rows: int, columns: int) -> int:
        """Return the number of rows and columns of a block."""
        if self.block_size is not None:
            return check_int(self.block_size, "block_size", "Gram", 1)
        if effective_n_jobs(self.n_jobs) == 1 and rows * columns <= WHOLE and not self.verbose:
            return max(rows, columns)
        return VECTORS if self.kernel.vectors else MODELS

    def _run(self, fill: Callable[[slice, slice], None], tiles: list[tuple[slice, slice]]) -> None:
        """Do all blocks; several threads share them out, with one thread of BLAS each."""
        jobs = min(effective_n_jobs(self.n_jobs), len(tiles))
        with threadpool_limits(1, "blas") if jobs > 1 else nullcontext():
            Parallel(n_jobs=jobs, require="sharedmem", verbose=self.verbose)(delayed(fill)(*tile) for tile in tiles)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = isinstance(self.kernel, Kernel) and self.kernel.vectors and self.kernel.accepts_sparse
        return tags


def _slices(n: int, size: int) -> list[slice]:
    """Return consecutive slices of n things."""
    return [slice(low, min(low + size, n)) for low in range(0, n, size)]
