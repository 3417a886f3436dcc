"""From kernels to matrices: a scikit-learn transformer that computes in blocks, in memory or on disk."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh

from genkern import __version__
from genkern.data.describe import Rows
from genkern.gram.base import KernelTransformer
from genkern.gram.blocks import (
    MODELS,
    VECTORS,
    Task,
    as_bytes,
    block_size_within,
    blocks_of,
    part_of,
    physical_memory,
    run_blocks,
    slices,
    upper,
)
from genkern.gram.disk import DiskMatrix, Place, check_format, no_room, object_digest
from genkern.gram.few import Kept, Rule, check_rule, gather, kept_block
from genkern.kernels.base import LOWEST, Kernel
from genkern.kernels.divergences import NotPositiveWarning
from genkern.kernels.positivity import allowance, indefinite, is_positive
from genkern.progress import taken
from genkern.threads import one_blas_thread
from genkern.validation import Floats, check_option

PSD = ("warn", "raise", "clip", "shift")
MOST = 1 << 18  # objects of a matrix on disk, which is then 550 GB


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
        Whether to tell, on standard error, how many blocks are done; from 10 on after each.
    psd : {None, "warn", "raise", "clip", "shift"}, default=None
        What to do in ``fit`` if the training matrix is not positive semi-definite, rounding aside: nothing, without a
        check; warn or raise, naming the cause and the remedy; project onto the positive part, new rows too; or shift
        the diagonal. It costs a Cholesky factorisation of the training matrix, and its spectrum if that fails.
    out : path, optional
        Where ``fit_transform`` puts the matrix, instead of into memory: ``NAME.zarr``, a chunk for every block, or
        ``NAME.npy``. An interrupted call goes on at the next; see the notes.
    memory_limit : int or str, optional
        Bound, in bytes or as "500MB", of what the computation holds beside the objects and the result in memory: blocks
        are made so small. By default they have 256 rows between models and 1024 between vectors.
    threshold : float, optional
        Keep only values of at least this: the result is sparse.
    top_k : int, optional
        Keep only so many values of every row, the largest, its own included: the result is sparse, and in general not
        symmetric. Of equal values those of the first columns are kept.

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

    **On disk** the blocks on and above the diagonal are computed, each is written with its transpose, and then listed
    with a checksum. Until all are done the matrix has the name ``NAME.zarr.part`` or ``NAME.npy.part``. The next call
    with the same kernel and objects computes what is not listed or not as it was written, so that it ends with the same
    bits, whatever ended the call before; another kernel or other objects are refused, with the reason. Each block has
    one thread of BLAS. Under ``joblib.parallel_config`` with a backend of processes or of Dask, the workers write the
    blocks, into a folder that they must share. More than 262,144 objects are refused: their matrix would be above 550
    GB; ``Nystrom`` and other features are for these.

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
        out: Any = None,
        memory_limit: int | str | None = None,
        threshold: float | None = None,
        top_k: int | None = None,
    ):
        self.kernel = kernel
        self.n_jobs = n_jobs
        self.block_size = block_size
        self.verbose = verbose
        self.psd = psd
        self.out = out
        self.memory_limit = memory_limit
        self.threshold = threshold
        self.top_k = top_k

    def _became(self) -> Rows:
        kept = "none" if self.log_scale_ == 0.0 else f"e^{self.log_scale_:.4g}, taken out of all values"
        rows = [("matrix", f"{self._n_features_out} training objects"), ("common factor", kept)]
        clipped = [] if self.negative_ is None else [("clipped", f"{self.negative_.shape[1]} negative eigenvalues")]
        return [*rows, *clipped, *([("added to the diagonal", self.shift_)] if self.shift_ else [])]

    def _fit(self, X: Any, y: Any) -> None:
        ready = self._learn(X)
        if self.psd is not None:
            self._check_room(ready.shape[0])
            self._mend(self._square(ready), ready)

    def _transform(self, X: Any) -> Any:
        first, second = self.kernel.prepare(X), self.kernel.prepare(self.X_fit_)
        if self._rule is not None:
            return self._few(first, second)
        out = self._cross(first, second)
        if self.negative_ is not None:
            for rows in slices(len(out), VECTORS):
                out[rows] -= (out[rows] @ self.negative_) @ self.negative_.T
        return out

    def transform_with(self, X: Any, columns: NDArray[np.int64]) -> Floats:
        """Return ``transform(X)`` for a learner that uses some columns only: the others are zero, and not computed.

        Parameters
        ----------
        X : as in ``transform``
        columns : ndarray of int
            Indices of training objects, such as the support vectors of a machine.

        Returns
        -------
        K : ndarray of shape (n, n_fit)
        """
        checked = self._ready(X)
        if self._rule is None and self.negative_ is None and len(columns):
            known = self.X_fit_
            chosen = [known[i] for i in columns] if isinstance(known, list | tuple) else known[columns]
            first, second = self.kernel.prepare(checked), self.kernel.prepare(chosen)
            out = np.zeros((first.shape[0], self._n_features_out))
            out[:, columns] = self._rectangle(first, second)
            if out.any(axis=1).all():
                return out
        whole: Floats = self.transform(X)  # which says what is wrong with rows without values
        return whole

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Return the symmetric matrix of kernel values of the training representations, shape (n, n).

        Parameters
        ----------
        X : list of models, stack of models, or matrix of shape (n, d)
            Representations that the kernel compares.
        y : object, optional
            Ignored.

        Returns
        -------
        K : ndarray, memory map or zarr array (``out``), or sparse array (``threshold``, ``top_k``), of shape (n, n)
        """
        with taken(self._effort(), "Gram"):
            ready = self._learn(self._begin(X, y))
            if self.out is not None:
                return self._on_disk(ready)
            if self._rule is not None:
                return self._few(ready, None)
            self._check_room(ready.shape[0])
            out = self._square(ready)
            if self.psd is not None:
                self._mend(out, ready)
        return out

    def _on_disk(self, ready: Any) -> Any:
        """Compute the blocks that are missing on disk; return the matrix there."""
        n = ready.shape[0]
        if n > MOST:
            raise ValueError(
                f"Gram: the matrix of {n} objects would have {8e-12 * n * n:.3g} TB; {MOST} are the most. Use "
                "features, such as Nystrom(kernel), keep few values by threshold= or top_k=, or take fewer objects."
            )
        task, X = self._task(), self.X_fit_
        what = {
            "genkern": __version__,
            "kernel": " ".join(repr(self.kernel).split()),
            "parameters": object_digest(self.kernel),
        }
        objects = [object_digest(X[i]) for i in range(n)]
        fixed = None if self.block_size is None else self._size(n, n)
        matrix = DiskMatrix(check_format(self.out), n, fixed, self._size(n, n), what, objects)
        places, size = upper(n, matrix.size), matrix.size
        missing = matrix.missing(places)
        work = ((task, matrix.place, *place, *blocks_of(ready, *place, size)) for place in missing)
        done = len(places) - len(missing)
        try:
            with closing(run_blocks(written_block, work, len(missing), self.n_jobs, self.verbose)) as digests:
                for place, digest in zip(missing, digests):
                    matrix.done(*place, digest)
                    done += 1
        except OSError as error:
            raise no_room(error, matrix.path, done, len(places)) from error
        matrix.finish()
        return matrix.open()

    def _few(self, first: Any, second: Any) -> sparse.csr_array:
        """Return what is kept of the values between prepared representations, or (None) of the first with itself."""
        rule, task, rows = self._rule, self._task(), first.shape[0]
        assert rule is not None
        columns = rows if second is None else second.shape[0]
        size = self._size(MODELS, rows) if second is None else self._size(rows, columns)
        if second is None:
            places = upper(rows, size)
            pairs: Any = (blocks_of(first, *place, size) for place in places)
        else:
            bands = range(-(-rows // size)), range(-(-columns // size))
            places = [(i, j) for i in bands[0] for j in bands[1]]
            pairs = ((part_of(first, i, size), part_of(second, j, size, 1)) for i, j in places)
        work = ((task, rule, second is None, *pair) for pair in pairs)
        results = run_blocks(kept_block, work, len(places), self.n_jobs, self.verbose)

        def parts() -> Iterator[tuple[int, int, Kept]]:
            for (i, j), (own, mirrored) in zip(places, results):
                yield i * size, j * size, own
                if mirrored is not None:
                    yield j * size, i * size, mirrored

        with closing(results):
            return gather((rows, columns), parts(), rule)

    def _size(self, rows: int, columns: int) -> int:
        if self.memory_limit is None or self.block_size is not None:
            return super()._size(rows, columns)
        return block_size_within(as_bytes(self.memory_limit, "Gram"), effective_n_jobs(self.n_jobs), "Gram")

    def _learn(self, X: Any) -> Any:
        """Set the fitted attributes but for what ``psd`` asks; return the prepared representations."""
        if self.psd is not None:
            check_option(self.psd, PSD, "psd", "Gram")
        self._check_places()
        self.X_fit_, ready = X, self._start(X)
        self._check_diagonal(ready)
        self._n_features_out = ready.shape[0]
        self.negative_: Floats | None = None
        self.shift_ = 0.0
        return ready

    @property
    def _rule(self) -> Rule | None:
        """Which values of a row are kept; None if all are."""
        return check_rule(self.threshold, self.top_k, "Gram")

    def _check_places(self) -> None:
        """Refuse settings that exclude each other."""
        given = {name: getattr(self, name) is not None for name in ("out", "psd", "threshold", "top_k")}
        few = given["threshold"] or given["top_k"]
        if (given["out"] and (given["psd"] or few)) or (given["psd"] and few):
            named = " and ".join(name for name, there in given.items() if there)
            raise ValueError(
                f"Gram: {named} exclude each other: 'out' takes whole matrices, and 'psd' needs one in memory. "
                "Leave one out."
            )
        if given["out"]:
            check_format(self.out)

    def _check_room(self, n: int) -> None:
        """Refuse a matrix that memory cannot hold."""
        room = physical_memory() if self.memory_limit is None else as_bytes(self.memory_limit, "Gram")
        if 8 * n * n > room:
            raise ValueError(
                f"Gram: the matrix of {n} objects needs {8e-9 * n * n:.3g} GB, and {room / 1e9:.3g} GB may be used. "
                "Put it on disk by out='gram.zarr' or out='gram.npy', keep few values by threshold= or top_k=, or use "
                "Nystrom."
            )

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

    def _values_of(self, pairs: Any, count: int) -> Generator[Floats, None, None]:
        """Yield values, without general warnings of kernels about positivity where ``psd`` checks this matrix."""
        if self.psd is None:
            yield from super()._values_of(pairs, count)
            return
        with warnings.catch_warnings(action="ignore", category=NotPositiveWarning):
            yield from super()._values_of(pairs, count)


def written_block(task: Task, place: Place, i: int, j: int, first: Any, second: Any) -> str:
    """Compute block (i, j) and write it; return its checksum."""
    with one_blas_thread():  # the same bits wherever it is computed
        return place.write(i, j, task.values(first, second))
