"""Rows of probabilities from expected counts: the M-step of everything that lives on a simplex."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import jit

Floats = NDArray[np.float64]


def expected_rows(theta: Floats, raw: Floats, pseudocounts: Floats) -> Floats:
    """Return rows proportional to expected counts plus pseudocounts; rows without any count stay as they are.

    ``theta`` (..., m) are the rows under which the raw derivatives ``raw``, of as many entries, were taken: counts are
    their product. ``pseudocounts`` (..., m) belong to the last axes of theta. Zeros of theta stay zero: what a model
    forbids, neither data nor prior allow.
    """
    width = theta.shape[-1]
    out = np.empty(theta.shape)
    _expected_rows(
        np.ascontiguousarray(theta).reshape(-1, width),
        np.ascontiguousarray(raw).reshape(-1, width),
        np.ascontiguousarray(pseudocounts, np.float64).reshape(-1, width),
        out.reshape(-1, width),
    )
    return out


def log_pseudocounts(theta: Floats, pseudocount: float, axes: int = 1) -> Floats:
    r"""Return :math:`\epsilon \sum \log \theta` over the positive entries of the last axes.

    This is the log prior, up to a constant, under which ``expected_rows`` is the mode: a Dirichlet law on what the rows
    allow.
    """
    if pseudocount == 0.0:
        return np.zeros(theta.shape[: theta.ndim - axes])
    logs = np.log(theta, out=np.zeros(theta.shape), where=theta > 0.0)
    total: Floats = pseudocount * logs.sum(axis=tuple(range(-axes, 0)))
    return total


@jit
def _expected_rows(theta, raw, pseudocounts, out):
    """Fill out (R, m); row r has the pseudocounts of row r modulo their number."""
    rows, width = theta.shape
    for r in range(rows):
        extra = pseudocounts[r % len(pseudocounts)]
        total = 0.0
        for k in range(width):
            out[r, k] = theta[r, k] * raw[r, k] + extra[k] if theta[r, k] > 0.0 else 0.0
            total += out[r, k]
        for k in range(width):
            out[r, k] = out[r, k] / total if total > 0.0 else theta[r, k]
