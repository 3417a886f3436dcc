"""From kernels to matrices: a scikit-learn transformer that computes in blocks."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.linalg import eigh
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import validate_data
from threadpoolctl import threadpool_limits

from genkern.data.describe import Rows
from genkern.data.transformer import Transformer
from genkern.kernels.base import HIGHEST, LOWEST, Kernel
from genkern.kernels.divergences import NotPositiveWarning
from genkern.kernels.positivity import allowance, indefinite, is_positive
from genkern.kernels.vectors import refuse_models
from genkern.progress import divided, listening, taken
from genkern.validation import Floats, check_int, check_option

MODELS, VECTORS = 256, 1024  # rows and columns of a block: enough to be fast, few enough to divide among threads
WHOLE = 1 << 24  # entries of a matrix that one thread computes at once
PSD = ("warn", "raise", "clip", "shift")


class KernelTransformer(ClassNamePrefixFeaturesOutMixin, Transformer):
    """Kernel values in blocks, on one thread or several, with one common factor: what matrices are made from."""

    _of_floats = True
    _refuses_y = False
    _work = 10.0
    _wanted: ClassVar[str] = "a Kernel such as RBF()"  # by messages

    kernel: Kernel
    n_jobs: int | None
    block_size: int | None
    verbose: int

    def _start(self, checked: Any) -> Any:
        """Return the prepared training representations; set the scale."""
        ready = self.kernel.prepare(checked)
        self.log_scale_ = 0.0
        if self.kernel.native_logs:
            top = float(self.kernel.log_diag(ready).max())
            self.log_scale_ = top if np.isfinite(top) else 0.0
        return ready

    def _checked(self, X: Any, reset: bool) -> Any:
        """Return a checked matrix, or representations of another kind as they are."""
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"{type(self).__name__}: 'kernel' must be {self._wanted}. Got {self.kernel!r} instead.")
        if not self.kernel.vectors:
            return X.to_list() if hasattr(X, "to_list") else X  # a column of models
        refuse_models(X, type(self.kernel).__name__)
        formats = "csr" if self.kernel.accepts_sparse else False
        return validate_data(self, X, reset=reset, dtype=np.float64, accept_sparse=formats)

    def _cross(self, first: Any, second: Any) -> Floats:
        """Return scaled values (n, m) of prepared representations."""
        out = np.empty((first.shape[0], second.shape[0]))

        def fill(rows: slice, columns: slice) -> None:
            out[rows, columns] = self._block(first[rows], second[columns])

        size = self._size(*out.shape)
        self._run(fill, [(i, j) for i in slices(out.shape[0], size) for j in slices(out.shape[1], size)])
        self._check_rows(out, first, second)
        return out

    def _check_rows(self, values: Floats, first: Any, second: Any) -> None:
        """Raise if all values of an object underflow relative to the training set's, but normalised ones do not."""
        empty = np.flatnonzero(~values.any(axis=1)) if self.kernel.native_logs else ()
        halves = 0.5 * self.kernel.log_diag(second) if len(empty) else 0.0
        for i in empty:
            one = first[i : i + 1]
            with np.errstate(invalid="ignore"):
                logs = self.kernel.log(one, second)[0] - halves - 0.5 * self.kernel.log_diag(one)
            if (logs > LOWEST).any():
                raise ValueError(
                    f"{type(self).__name__}: all kernel values of object {i} are, beside those of the training set, "
                    f"below the range of floating point. Use {self.kernel.normalized()!r}."
                )

    def _square(self, ready: Any) -> Floats:
        """Return scaled values (n, n) of prepared representations with each other, symmetric, at half the cost."""
        n = ready.shape[0]
        out = np.empty((n, n))

        def fill(rows: slice, columns: slice) -> None:
            if rows == columns:
                out[rows, rows] = self._block(ready[rows], None)
            else:
                block = self._block(ready[rows], ready[columns])
                out[rows, columns] = block
                out[columns, rows] = block.T

        bands = slices(n, self._size(n, n))
        self._run(fill, [(i, j) for a, i in enumerate(bands) for j in bands[a:]])
        return out

    def _block(self, X: Any, Y: Any) -> Floats:
        """Return scaled values of prepared representations."""
        if not self.kernel.native_logs:
            return self.kernel(X, Y)
        logs = self.kernel.log(X, Y) - self.log_scale_
        if logs.max() > HIGHEST:
            raise ValueError(
                f"{type(self).__name__}: an object's kernel values exceed those of the training set by a factor "
                f"e^{logs.max():.4g}. Use {self.kernel.normalized()!r}."
            )
        values: Floats = np.exp(logs)
        return values

    def _size(self, rows: int, columns: int) -> int:
        """Return the number of rows and columns of a block."""
        if self.block_size is not None:
            return check_int(self.block_size, "block_size", type(self).__name__, 1)
        if effective_n_jobs(self.n_jobs) == 1 and rows * columns <= WHOLE and not (self.verbose or listening()):
            return max(rows, columns)
        return VECTORS if self.kernel.vectors else MODELS

    def _run(self, fill: Callable[[slice, slice], None], tiles: list[tuple[slice, slice]]) -> None:
        """Compute all blocks; several threads divide them, with one thread of BLAS each."""
        fill, jobs = divided(fill, len(tiles)), min(effective_n_jobs(self.n_jobs), len(tiles))
        with threadpool_limits(1, "blas") if jobs > 1 else nullcontext():
            Parallel(n_jobs=jobs, require="sharedmem", verbose=self.verbose)(delayed(fill)(*tile) for tile in tiles)

    def _takes(self) -> dict[str, bool]:
        known = isinstance(self.kernel, Kernel)
        return {"sparse": known and self.kernel.vectors and self.kernel.accepts_sparse}


class Gram(KernelTransformer):
    r"""Turns representations into kernel values with those of the training set: for ``kernel="precomputed"``.

    .. math:: K_{ij} = k(x_i, x^{\mathrm{fit}}_j)\, e^{-c}

    with one common factor: c is the largest log self-similarity of the training set for kernels that are computed in
    logs (those between models), and zero for others. It is zero for normalised kernels, and keeps unnormalised ones,
    whose values may be far too small for floating point, usable; a common factor only rescales the learner's
    regularisation.

    Parameters
    ----------
    kernel : Kernel
        The kernel between two representations.
    n_jobs : int, optional
        Number of threads; None means 1 unless in a joblib context, -1 all.
    block_size : int, optional
        Rows and columns of one block of work. By default one thread computes all at once, unless that is too large, and
        several divide blocks. Results do not depend on it.
    verbose : int, default=0
        Report progress, as in joblib.
    psd : {None, "warn", "raise", "clip", "shift"}, default=None
        What to do in ``fit`` if the training matrix is not positive semi-definite, rounding aside: nothing, without a
        check; warn or raise, naming the cause and the remedy; project onto the positive part, new rows too; or shift
        the diagonal. It costs a Cholesky factorisation of the training matrix, and its spectrum if that fails.

    Attributes
    ----------
    X_fit_ : list of models, stack of models or matrix
        The training representations, one per column of the result.
    log_scale_ : float
        The logarithm c of the common factor.
    negative_ : array of shape (n_fit, r) or None
        The eigenvectors that "clip" projects out of every row; None if there are none.
    shift_ : float
        The number that "shift" adds to the diagonal.
    n_features_in_ : int
        Number of columns of the training matrix, for kernels between vectors.

    Notes
    -----
    With the eigenvectors V of the negative eigenvalues of the training matrix, "clip" gives :math:`K (I - V V^T)` for
    training and new rows alike, so that the same linear map is applied to both and ``transform`` of the training set is
    ``fit_transform``. "shift" gives :math:`K + |\lambda_{\min}|\, I`, which is the kernel plus a multiple of the
    identity kernel (one for the same object, else zero): rows of ``transform`` are those of the kernel itself, also for
    the training set, as transformed objects count as new. Neither keeps self-similarities of one.

    References
    ----------
    Chen, Garcia, Gupta, Rahimi & Cazzanti (2009), Similarity-based classification: concepts and algorithms, Journal of
    Machine Learning Research 10.

    Examples
    --------
    >>> from genkern import Gram, RBF
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> classifier = make_pipeline(Gram(RBF(gamma=0.5)), SVC(kernel="precomputed"))
    >>> classifier.fit([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1]).predict([[0.5], [5.5]])
    array([0, 1])
    """

    _fitted = "shift_"

    def __init__(
        self,
        kernel: Kernel,
        n_jobs: int | None = None,
        block_size: int | None = None,
        verbose: int = 0,
        psd: str | None = None,
    ):
        self.kernel = kernel
        self.n_jobs = n_jobs
        self.block_size = block_size
        self.verbose = verbose
        self.psd = psd

    def _became(self) -> Rows:
        kept = "none" if self.log_scale_ == 0.0 else f"e^{self.log_scale_:.4g}, taken out of all values"
        rows = [("matrix", f"{self._n_features_out} training objects"), ("common factor", kept)]
        clipped = [] if self.negative_ is None else [("clipped", f"{self.negative_.shape[1]} negative eigenvalues")]
        return [*rows, *clipped, *([("added to the diagonal", self.shift_)] if self.shift_ else [])]

    def _fit(self, X: Any, y: Any) -> None:
        ready = self._learn(X)
        if self.psd is not None:
            self._mend(self._square(ready), ready)

    def _transform(self, X: Any) -> Floats:
        out = self._cross(self.kernel.prepare(X), self.kernel.prepare(self.X_fit_))
        if self.negative_ is not None:
            for rows in slices(len(out), VECTORS):
                out[rows] -= (out[rows] @ self.negative_) @ self.negative_.T
        return out

    def fit_transform(self, X: Any, y: Any = None) -> Floats:
        """Return the symmetric matrix of kernel values of the training representations, shape (n, n).

        Parameters
        ----------
        X : list of models, stack of models, or matrix of shape (n, d)
            Representations that the kernel compares.
        y : object, optional
            Ignored.
        """
        with taken(self._effort(), "Gram"):
            ready = self._learn(self._begin(X, y))
            out = self._square(ready)
            if self.psd is not None:
                self._mend(out, ready)
        return out

    def _learn(self, X: Any) -> Any:
        """Set the fitted attributes but for what ``psd`` asks; return the prepared representations."""
        if self.psd is not None:
            check_option(self.psd, PSD, "psd", "Gram")
        self.X_fit_, ready = X, self._start(X)
        self._check_diagonal(ready)
        self._n_features_out = ready.shape[0]
        self.negative_: Floats | None = None
        self.shift_ = 0.0
        return ready

    def _check_diagonal(self, ready: Any) -> None:
        """Raise if a training object's similarity to itself is not zero, but underflows relative to the largest."""
        if not self.kernel.native_logs:
            return
        logs = self.kernel.log_diag(ready) - self.log_scale_
        lost = (logs < LOWEST) & (logs > -np.inf)
        if lost.any():
            i = int(np.argmax(lost))
            raise ValueError(
                f"Gram: the self-similarity of training object {i} is e^{logs[i]:.4g} of the largest, which is below "
                f"the range of floating point ({int(lost.sum())} of {len(logs)} are). Use {self.kernel.normalized()!r}."
            )

    def _mend(self, K: Floats, ready: Any) -> None:
        """Apply ``psd`` to the training matrix, in place, if it has a negative eigenvalue."""
        if is_positive(K):
            return
        values, vectors = eigh(K)
        if self.psd == "clip":
            below = values < -allowance(K)
            self.negative_ = vectors[:, below]
            parts = self.negative_ * np.sqrt(-values[below])
            K += parts @ parts.T
        elif self.psd == "shift":
            self.shift_ = -float(values[0])
            np.fill_diagonal(K, K.diagonal() + self.shift_)
        else:
            words = f"Gram: {indefinite(values[0], values[-1], self.kernel, ready)} psd='clip' or 'shift' mends it."
            if self.psd == "raise":
                raise ValueError(words)
            warnings.warn(words, NotPositiveWarning, stacklevel=4)

    def _run(self, fill: Callable[[slice, slice], None], tiles: list[tuple[slice, slice]]) -> None:
        """Compute all blocks, without general warnings of kernels about positivity: ``psd`` checks this matrix."""
        if self.psd is None:
            return super()._run(fill, tiles)
        with warnings.catch_warnings(action="ignore", category=NotPositiveWarning):
            super()._run(fill, tiles)


def slices(n: int, size: int) -> list[slice]:
    """Return consecutive slices of n items."""
    return [slice(low, min(low + size, n)) for low in range(0, n, size)]
