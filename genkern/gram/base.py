"""The base class of transformers that compute kernel values: blocks, one thread or several, one common factor."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import validate_data

from genkern.data.transformer import Transformer
from genkern.gram.blocks import MODELS, VECTORS, Task, blocks_of, part_of, run_blocks, slices, upper
from genkern.kernels.base import LOWEST, Kernel
from genkern.kernels.vectors import refuse_models
from genkern.progress import listening
from genkern.validation import Floats, check_int

WHOLE = 1 << 24  # entries of a matrix that one thread computes at once


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

    @np.errstate(invalid="ignore")  # infinities of both signs, which scikit-learn sums before it refuses them
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
        """Return scaled values (n, m) of prepared representations, no row of which has lost them all."""
        out = self._rectangle(first, second)
        self._check_rows(out, first, second)
        return out

    def _rectangle(self, first: Any, second: Any) -> Floats:
        """Return scaled values (n, m) of prepared representations."""
        shape = first.shape[0], second.shape[0]
        size = self._size(*shape)
        rows, columns = (slices(count, size) for count in shape)
        tiles = [(i, j) for i in range(len(rows)) for j in range(len(columns))]
        pairs = ((part_of(first, i, size), part_of(second, j, size, 1)) for i, j in tiles)
        with closing(self._values_of(pairs, len(tiles))) as values:
            if len(tiles) == 1:
                (out,) = values
            else:
                out = np.empty(shape)
                for (i, j), block in zip(tiles, values):
                    out[rows[i], columns[j]] = block
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
        size = self._size(n, n)
        places = upper(n, size)
        with closing(self._values_of((blocks_of(ready, *place, size) for place in places), len(places))) as values:
            if len(places) == 1:
                (out,) = values
                return out
            out, bands = np.empty((n, n)), slices(n, size)
            for (i, j), block in zip(places, values):
                out[bands[i], bands[j]] = block
                out[bands[j], bands[i]] = block.T
        return out

    def _values_of(self, pairs: Iterable[tuple[Any, Any]], count: int) -> Generator[Floats, None, None]:
        """Yield scaled values of so many pairs of prepared representations."""
        return run_blocks(self._task().values, pairs, count, self.n_jobs, self.verbose)

    def _task(self) -> Task:
        """Return what all blocks have in common."""
        return Task(self.kernel, self.log_scale_, type(self).__name__)

    def _size(self, rows: int, columns: int) -> int:
        """Return the number of rows and columns of a block."""
        if self.block_size is not None:
            return check_int(self.block_size, "block_size", type(self).__name__, 1)
        if effective_n_jobs(self.n_jobs) == 1 and rows * columns <= WHOLE and not (self.verbose or listening()):
            return max(rows, columns)
        return VECTORS if self.kernel.vectors else MODELS

    def _takes(self) -> dict[str, bool]:
        known = isinstance(self.kernel, Kernel)
        return {"sparse": known and self.kernel.vectors and self.kernel.accepts_sparse}
