"""Rows of log densities turned into factors that are scaled by their largest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from genkern.core.hmm.rows import aligned
from genkern.core.hmm.types import read_only
from genkern.core.jit import kernel
from genkern.core.simd.columns import CHUNK, PITCH, from_columns, to_columns
from genkern.core.simd.exponential import exp
from genkern.core.simd.vectors import W, any_lane, broadcast, less, load, maximum, select, store, zero

Floats = NDArray[np.float64]

FAINTEST = 2.0**-900  # of a factor beside the largest of its row
LOG_FAINTEST = float(np.log(FAINTEST))
LOWEST = np.finfo(np.float64).min


def scaled_rows(logs: Floats) -> tuple[Floats, Floats, bool]:
    """Return a table (N, n) and shifts (N,) with logs = log table + shift, the largest entry of each row being one.

    Entries below 2**-900 that are not zero are raised to it, and whether there are any is said: the passes of
    ``core.hmm`` notice sequences to which these matter, and redo them with the logs themselves. Rows of -inf alone have
    a shift of zero and entries of zero.
    """
    count, n = logs.shape
    table, shift = np.empty((count, n)), np.empty(count)
    work = aligned((n + 1) * PITCH).reshape(n + 1, PITCH)
    with np.errstate(all="ignore"):
        raised = _scale_rows(read_only(np.ascontiguousarray(logs, np.float64)), table, shift, work)
    return table, shift, raised


@kernel
def _scale_rows(logs, table, shift, work):
    """Fill the table with exp of the logs minus the largest of each row, the shift; say if any had to be raised."""
    count, n = logs.shape
    raised = False
    for first in range(0, count, CHUNK):
        size = min(CHUNK, count - first)
        to_columns(logs, first, size, work)
        for t in range(0, size, W):
            top = load(work, t)
            for k in range(1, n):
                top = maximum(top, load(work, k * PITCH + t))
            store(work, n * PITCH + t, top)
            for lane in range(t, min(t + W, size)):
                if work[n, lane] == -np.inf:
                    work[n, lane] = 0.0
                shift[first + lane] = work[n, lane]
            top = load(work, n * PITCH + t)
            for k in range(n):
                log = load(work, k * PITCH + t) - top
                factor = exp(log)
                if any_lane(less(log, broadcast(LOG_FAINTEST))):
                    possible = less(broadcast(LOWEST), log)
                    factor = select(possible, maximum(factor, broadcast(FAINTEST)), zero())
                    raised = raised or any_lane(less(select(possible, log, zero()), broadcast(LOG_FAINTEST)))
                store(work, k * PITCH + t, factor)
        from_columns(work, first, size, table)
    return raised
