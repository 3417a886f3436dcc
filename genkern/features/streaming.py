"""Work on many objects in batches of bounded size, with the same results for any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from genkern.data.objects import Packed
from genkern.validation import Floats

BATCH_POSITIONS, BATCH_NUMBERS = 1 << 16, 1 << 22  # observations, and numbers of output, of a batch


def stream(
    work: Callable[[Packed], Floats], packed: Packed, width: int, n_jobs: int | None, per_position: int = 1
) -> Iterator[tuple[slice, Floats]]:
    """Yield slices of consecutive objects and the results (objects, width) of ``work``, the same for any n_jobs.

    ``per_position`` is how many numbers the work holds per observation.
    """
    parts = parts_of(packed, width, per_position)
    batches = iter((packed,)) if len(parts) == 1 else (packed.take(part) for part in parts)
    if len(parts) == 1 or effective_n_jobs(n_jobs) == 1:
        results: Iterator[Floats] = map(work, batches)
    else:
        tasks = (delayed(work)(batch) for batch in batches)
        results = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(tasks)
    for k, part in enumerate(parts):
        try:
            block = next(results)
        except ValueError:
            for suspect in parts[k:]:  # threads tell of any of these
                work(packed.take(slice(0, suspect.stop)))  # whose error has the caller's indices of objects
            raise
        yield part, block


def gather(
    work: Callable[[Packed], Floats], packed: Packed, width: int, n_jobs: int | None, per_position: int = 1
) -> Floats:
    """Return the concatenated rows (n_objects, width) of ``stream``."""
    rows = np.empty((packed.n_objects, width))
    for part, block in stream(work, packed, width, n_jobs, per_position):
        rows[part] = block
    return rows


def parts_of(packed: Packed, width: int, per_position: int = 1) -> list[slice]:
    """Return consecutive slices of objects with a bounded number of observations and of numbers."""
    most = max(1, BATCH_NUMBERS // max(width, 1))
    positions = max(1, min(BATCH_POSITIONS, BATCH_NUMBERS // per_position))
    if packed.n_points <= positions and packed.n_objects <= most:
        return [slice(0, packed.n_objects)] if packed.n_objects else []
    parts, first = [], 0
    while first < packed.n_objects:
        limit = packed.offsets[first] + positions
        last = int(np.searchsorted(packed.offsets, limit, side="right")) - 1
        last = min(max(last, first + 1), first + most, packed.n_objects)
        parts.append(slice(first, last))
        first = last
    return parts
