"""Work on many objects in blocks of bounded size, on one thread or several, in the same order with the same result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import ThreadpoolController

from genkern.data.objects import Packed
from genkern.validation import Floats

BLOCK_POSITIONS, BLOCK_NUMBERS = 1 << 16, 1 << 22  # observations, and numbers of output, worked on at a time


def stream(
    work: Callable[[Packed], Floats], packed: Packed, width: int, n_jobs: int | None, per_position: int = 1
) -> Iterator[tuple[slice, Floats]]:
    """Yield slices of consecutive objects and what ``work`` returns for them, (objects, width), whatever n_jobs.

    ``per_position`` is how many numbers the work holds per observation.
    """
    parts = parts_of(packed, width, per_position)
    if effective_n_jobs(n_jobs) == 1 or len(parts) == 1:
        results: Iterator[Floats] = (_counted_from_zero(work, packed, part) for part in parts)
    else:
        tasks = (delayed(_counted_from_zero)(work, packed, part) for part in parts)
        results = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(tasks)
    yield from zip(parts, results)


def gather(
    work: Callable[[Packed], Floats], packed: Packed, width: int, n_jobs: int | None, per_position: int = 1
) -> Floats:
    """Return the rows (n_objects, width) of ``stream``, one under the other."""
    rows = np.empty((packed.n_objects, width))
    for part, block in stream(work, packed, width, n_jobs, per_position):
        rows[part] = block
    return rows


def parts_of(packed: Packed, width: int, per_position: int = 1) -> list[slice]:
    """Return consecutive slices of objects with a bounded number of observations and of numbers."""
    most = max(1, BLOCK_NUMBERS // max(width, 1))
    positions = max(1, min(BLOCK_POSITIONS, BLOCK_NUMBERS // per_position))
    parts, first = [], 0
    while first < packed.n_objects:
        limit = packed.offsets[first] + positions
        last = int(np.searchsorted(packed.offsets, limit, side="right")) - 1
        last = min(max(last, first + 1), first + most, packed.n_objects)
        parts.append(slice(first, last))
        first = last
    return parts


@cache
def blas() -> ThreadpoolController:
    """Return the handle on BLAS: on small blocks its own threads only stand in the way."""
    return ThreadpoolController()


def _counted_from_zero(work: Callable[[Packed], Floats], packed: Packed, part: slice) -> Floats:
    """Return the work on one block; its errors count objects as the caller does."""
    try:
        return work(packed.take(part))
    except ValueError:
        work(packed.take(slice(0, part.stop)))
        raise
