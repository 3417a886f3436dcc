"""Derivatives by the rows of probabilities of one model, turned from raw ones into those on the simplex."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from genkern.core.hmm.types import read_only
from genkern.core.jit import kernel
from genkern.core.simd.vectors import W, broadcast, horizontal_sum, load, multiply_add, store, zero

Floats = NDArray[np.float64]


def put_turned(raw: Floats, theta: Floats, scale: Floats, out: Floats, first: int) -> None:
    """Set out (G, p), from column ``first`` on, to scale (g - sum theta g) for each row of raw derivatives g.

    raw is (G, ..., m), theta and scale are (..., m).
    """
    width = theta.shape[-1]
    derivatives = np.ascontiguousarray(raw, np.float64).reshape(len(raw), -1, width)
    rows, scales = (np.ascontiguousarray(table).reshape(-1, width) for table in (theta, scale))
    _put_turned(read_only(derivatives), read_only(rows), read_only(scales), out, first)


@kernel
def _put_turned(raw, theta, scale, out, first):
    """Do so with raw (G, R, m), theta and scale (R, m)."""
    rows, width = theta.shape
    whole = width - width % W
    for i in range(len(raw)):
        for r in range(rows):
            source, row, to = (i * rows + r) * width, r * width, i * out.shape[1] + first + r * width
            sums, mean = zero(), 0.0
            for c in range(0, whole, W):
                sums = multiply_add(load(raw, source + c), load(theta, row + c), sums)
            for c in range(whole, width):
                mean += raw[i, r, c] * theta[r, c]
            mean += horizontal_sum(sums)
            means = broadcast(mean)
            for c in range(0, whole, W):
                store(out, to + c, (load(raw, source + c) - means) * load(scale, row + c))
            for c in range(whole, width):
                out[i, first + r * width + c] = (raw[i, r, c] - mean) * scale[r, c]
