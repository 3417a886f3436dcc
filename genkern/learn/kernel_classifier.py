"""Base class of classifiers on kernel values: input, labels, and decisions from coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from genkern.kernels.base import Kernel
from genkern.kernels.vectors import Linear, combine_rows
from genkern.learn.products import times
from genkern.validation import Floats, check_sizes, remember_width

Ints = NDArray[np.int64]

ROUNDING = 1e-6  # of the largest entry: more asymmetry or a more negative eigenvalue is no (single precision) rounding
BLOCK = 1 << 19  # numbers in a block of rows


class KernelClassifier(ClassifierMixin, BaseEstimator):
    r"""Base of classifiers whose decision values are :math:`f_c(x) = \sum_i \alpha_{ci} k(x, x_i) + b_c`.

    There is one function for two classes, that of the second; for more there is one per class against the rest.
    A subclass sets in ``fit``: ``intercept_`` and either ``coef_`` (linear kernel) or ``dual_coef_`` and ``X_fit_``.
    """

    kernel: Any
    classes_: NDArray[Any]
    intercept_: Floats

    def decision_function(self, X: Any) -> Floats:
        """Return the decision value of the second of two classes, (n,), or of each of more, (n, n_classes).

        Parameters
        ----------
        X : array-like of shape (n, n_fit), matrix of shape (n, d), or what the kernel compares
            Kernel values with the training objects, or the objects.
        """
        check_is_fitted(self)
        X = self._check_input(X, reset=False)
        if hasattr(self, "coef_"):
            sums = Linear()(X, self.coef_) if sparse.issparse(self.coef_) else times(X, self.coef_.T)
            values: Floats = sums + self.intercept_
        else:
            values = self._compare(X) @ self.dual_coef_.T + self.intercept_
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label with the largest decision value for each object, shape (n,).

        Parameters
        ----------
        X : array-like of shape (n, n_fit), matrix of shape (n, d), or what the kernel compares
            Kernel values with the training objects, or the objects.
        """
        best = decide(self.decision_function(X))
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def _keep(self, X: Any, dual: Floats) -> None:
        """Set the coefficients, (1 or n_classes, n) of checked objects, and what they refer to."""
        for name in ("coef_", "dual_coef_", "X_fit_"):
            self.__dict__.pop(name, None)  # of an earlier fit with another kernel
        if self._named("linear"):
            self.coef_ = combine_rows(dual, X)
        else:
            self.dual_coef_ = dual
        if not isinstance(self.kernel, str):
            self.X_fit_ = X

    # --- input

    def _named(self, name: str) -> bool:
        """Whether the kernel is given by this name."""
        return isinstance(self.kernel, str) and self.kernel == name

    def _check_training(self, X: Any, y: ArrayLike) -> tuple[Any, Ints]:
        """Return checked objects and the class index of each; set ``classes_``."""
        who = type(self).__name__
        if y is None:
            raise ValueError(f"{who} requires y to be passed, but the target y is None.")
        X = self._check_input(X, reset=True)
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        check_consistent_length(X, labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            came = repr(str(self.classes_[0]))
            raise ValueError(f"{who} needs objects of at least 2 classes. Got one class only: {came}.")
        return X, codes

    @np.errstate(invalid="ignore")  # infinities of both signs, which scikit-learn sums before it refuses them
    def _check_input(self, X: Any, reset: bool) -> Any:
        """Return a checked matrix; other representations are returned unchanged."""
        kernel = self.kernel
        if isinstance(kernel, Kernel) and not kernel.vectors:
            remember_width(self, X, reset=reset)
            return X
        function = callable(kernel) and not isinstance(kernel, type)
        if not (self._named("precomputed") or self._named("linear") or function):
            raise ValueError(
                f"The 'kernel' parameter of {type(self).__name__} must be 'precomputed', 'linear' or a function of two "
                f"lists of objects such as RBF(). Got {kernel!r} instead."
            )
        formats = "csr" if self._takes_sparse() else False
        kinds = np.float64 if getattr(self, "exact", None) is None else [np.float64, np.float32]
        table = validate_data(self, X, reset=reset, dtype=kinds, accept_sparse=formats)
        return check_sizes(table, type(self).__name__) if self._named("linear") else table

    def _takes_sparse(self) -> bool:
        """Whether objects may be rows of a sparse matrix."""
        if isinstance(self.kernel, Kernel):
            return self.kernel.vectors and self.kernel.accepts_sparse
        return self._named("linear")

    def _within(self, X: Any) -> Floats:
        """Return the Gram matrix (n, n) of checked training objects."""
        K = X if self._named("precomputed") else self._between(X, X)
        return check_symmetric(K, type(self).__name__)

    def _between(self, X: Any, Y: Any) -> Floats:
        """Return kernel values (n, m) of two lists of checked objects."""
        values = np.asarray((Linear() if isinstance(self.kernel, str) else self.kernel)(X, Y), dtype=np.float64)
        expected = (_num_samples(X), _num_samples(Y))
        if values.shape != expected:
            raise ValueError(
                f"{type(self).__name__}: the kernel must return a matrix of shape {expected} for these lists of "
                f"objects. Got shape {values.shape}."
            )
        return values

    def _compare(self, X: Any) -> Floats:
        """Return kernel values (n, n_fit) of checked new objects with those of the training set."""
        return X if self._named("precomputed") else self._between(X, self.X_fit_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._named("precomputed")
        tags.input_tags.sparse = self._takes_sparse()
        return tags


def decide(values: Floats) -> Ints:
    """Return class indices (n,) from decision values (n,) of two classes or (n, k) of more."""
    return (values > 0).astype(np.int64) if values.ndim == 1 else values.argmax(axis=1)


def targets(codes: Ints, count: int) -> Floats:
    """Return targets of -1 and 1: (n, 1) for two classes, (n, count) one against the rest for more."""
    positive = codes[:, None] == (np.arange(count) if count > 2 else [1])
    return np.where(positive, 1.0, -1.0)


def check_symmetric(K: Floats, who: str) -> Floats:
    """Return a square symmetric matrix; rounding is mended, anything else refused."""
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(
            f"{who}: the kernel matrix of the training objects must be square. Got shape {K.shape}; "
            "use kernel='linear' if the columns are features."
        )
    if not len(K):
        raise ValueError(f"{who}: there is no object. Got a kernel matrix of shape {K.shape}.")
    assert_all_finite(K, input_name="the kernel matrix")
    worst, i, j = 0.0, 0, 0
    for rows in row_blocks(K):
        off = np.abs(K[rows] - K[:, rows].T)
        if off.max() > worst:
            at, j = (int(index) for index in np.unravel_index(off.argmax(), off.shape))
            worst, i = float(off.max()), rows.start + at
    if worst > ROUNDING * largest_entry(K):
        raise ValueError(
            f"{who}: the kernel matrix of the training objects must be symmetric. Got {K[i, j]:.6g} at ({i}, {j}) and "
            f"{K[j, i]:.6g} at ({j}, {i})."
        )
    return K if worst == 0.0 else 0.5 * (K + K.T)


def row_blocks(a: Floats) -> list[slice]:
    """Return slices of rows of a few megabytes each, so that temporary arrays stay small."""
    step = max(1, BLOCK // max(1, a.shape[1]))
    return [slice(first, min(first + step, len(a))) for first in range(0, len(a), step)]


def largest_entry(K: Floats) -> float:
    """Return the largest absolute value."""
    return float(max(K.max(), -K.min()))


def check_definite(K: Floats, allowed: float, who: str, remedy: str) -> None:
    """Raise if a symmetric matrix has an eigenvalue below minus what is allowed."""
    if not K.any():
        return  # semi-definite, but nothing of zero is allowed for rounding
    shifted = K.copy()
    np.fill_diagonal(shifted, K.diagonal() + allowed)
    try:
        cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        spectrum = np.linalg.eigvalsh(K)
        refuse_indefinite(spectrum[0], spectrum[-1], who, remedy)


def refuse_indefinite(smallest: float, largest: float, who: str, remedy: str) -> None:
    """Raise about a negative eigenvalue."""
    raise ValueError(
        f"{who}: the kernel matrix must be positive semi-definite. Its smallest eigenvalue is {smallest:.4g}, its "
        f"largest {largest:.4g}. {remedy}"
    )


def dense(X: Any) -> Floats:
    """Return a dense matrix."""
    return X.toarray() if sparse.issparse(X) else X
