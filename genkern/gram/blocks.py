"""Kernel values in blocks: functions of their arguments alone, which threads, processes and other machines can run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from genkern.kernels.base import HIGHEST, Kernel
from genkern.progress import reach, report
from genkern.threads import one_blas_thread
from genkern.validation import Floats, check_int

MODELS, VECTORS = 256, 1024  # rows and columns of a block: enough to be fast, few enough to divide among threads
COPIES = 8  # of a block that are held while it is computed, temporary ones included
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Task(NamedTuple):
    """What is the same for all blocks of a matrix.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    log_scale : float
        Logarithm of the factor that is taken out of values that are computed in logs.
    who : str
        The name of the transformer, for messages.
    """

    kernel: Kernel
    log_scale: float
    who: str

    def values(self, X: Any, Y: Any) -> Floats:
        """Return scaled values of prepared representations; Y is None for X with itself."""
        if not self.kernel.native_logs:
            return self.kernel(X, Y)
        logs = self.kernel.log(X, Y) - self.log_scale
        if logs.max() > HIGHEST:
            raise ValueError(
                f"{self.who}: an object's kernel values exceed those of the training set by a factor "
                f"e^{logs.max():.4g}. Use {self.kernel.normalized()!r}."
            )
        values: Floats = np.exp(logs)
        return values


class Part(NamedTuple):
    """Representations that many blocks ask for, and which they are; a task is given the rows."""

    which: tuple[int, int]
    rows: Any


def run_blocks(
    function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], count: int, n_jobs: int | None, verbose: int = 0
) -> Generator[Any, None, None]:
    """Yield the results of a function, in order, from threads, or from the workers of joblib's backend at hand.

    Who takes them closes it (``contextlib.closing``): until its end, BLAS is kept to one thread, also after an error in
    the loop, whose traceback would hold it.

    Parameters
    ----------
    function : callable
        A function of a module.
    arguments : iterable of tuple
        What it is called with, so many times as ``count`` says. Of each ``Part`` it is given the rows.
    n_jobs : int, optional
        As in joblib. Several jobs have one thread of BLAS each.
    verbose : int, default=0
        Whether to tell how many are done: after 1, 2, 4, 8, ... and at the end, or from 10 on after each.
    """
    jobs = min(effective_n_jobs(n_jobs), count)
    given_rows = _hand_over(jobs)
    arguments = (tuple(map(given_rows, given)) for given in arguments)
    with one_blas_thread() if jobs > 1 else nullcontext():
        if jobs == 1:
            results: Any = (function(*given) for given in arguments)
        else:
            parallel = Parallel(n_jobs=jobs, prefer="threads", return_as="generator")
            results = parallel(delayed(function)(*given) for given in arguments)
        try:
            for k, result in enumerate(results, 1):
                reach(k / count)
                if verbose and (verbose >= 10 or k == count or k & (k - 1) == 0):
                    report(f"Done {k} of {count} blocks")
                yield result
        except GeneratorExit:
            with warnings.catch_warnings(action="ignore"):  # joblib's, of tasks whose results nobody took
                results.close()
            raise


def _hand_over(jobs: int) -> Callable[[Any], Any]:
    """Return a function that makes rows of a ``Part``, which are sent to workers of Dask once, however many blocks ask.

    There, they are the result of a task that returns them. Workers fetch it from each other, and if one dies, the
    scheduler gives the task to another worker; data that are scattered would be lost.
    """
    client = getattr(get_active_backend(prefer="threads")[0], "client", None) if jobs > 1 else None
    sent: dict[tuple[int, int], Any] = {}

    def rows(given: Any) -> Any:
        if client is None or not isinstance(given, Part):
            return given.rows if isinstance(given, Part) else given
        if given.which not in sent:
            import dask

            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):  # it is meant to be large
                sent[given.which] = client.submit(_itself, given.rows, pure=False)
        return sent[given.which]

    return rows


def _itself(rows: Any) -> Any:
    return rows


def slices(n: int, size: int) -> list[slice]:
    """Return consecutive slices of n items."""
    return [slice(low, min(low + size, n)) for low in range(0, n, size)]


def upper(n: int, size: int) -> list[tuple[int, int]]:
    """Return the indices of the blocks on and above the diagonal of a symmetric matrix, row by row."""
    count = -(-n // size)
    return [(i, j) for i in range(count) for j in range(i, count)]


def part_of(ready: Any, k: int, size: int, side: int = 0) -> Part:
    """Return the k-th of consecutive parts of prepared representations, the rows (0) or columns (1) of a matrix."""
    return Part((side, k), ready[k * size : min((k + 1) * size, ready.shape[0])])


def blocks_of(ready: Any, i: int, j: int, size: int) -> tuple[Any, Any]:
    """Return the prepared representations of block (i, j) of a symmetric matrix; (first, None) on the diagonal."""
    return part_of(ready, i, size), None if i == j else part_of(ready, j, size)


def as_bytes(limit: Any, who: str) -> int:
    """Return a bound of memory in bytes, from a number of them, or from "500MB", "2GB"."""
    if isinstance(limit, str):
        text = limit.strip().upper().removesuffix("B").removesuffix("I")
        number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS and text else (text, "")
        try:
            found = float(number) * UNITS[unit]
        except ValueError:
            raise ValueError(
                f"The 'memory_limit' parameter of {who} must be a number of bytes, or such as '500MB' or '2GB'. Got "
                f"{limit!r}."
            ) from None
        limit = int(found)
    return check_int(limit, "memory_limit", who, 1 << 20)


def block_size_within(limit: int, jobs: int, who: str) -> int:
    """Return the rows of square blocks, of which so many at a time stay within a bound of memory in bytes."""
    size = int((limit / (8 * COPIES * jobs)) ** 0.5)
    if size < 16:
        raise ValueError(f"{who}: {limit} bytes are too few for {jobs} blocks at a time. Allow more, or fewer jobs.")
    return min(size // 16 * 16, 4096)


def physical_memory() -> int:
    """Return the memory of this machine in bytes; more than any has where the system does not tell."""
    names = getattr(os, "sysconf_names", {})
    known = "SC_PHYS_PAGES" in names and "SC_PAGE_SIZE" in names
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if known else 1 << 62
