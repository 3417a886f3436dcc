"""Means, cosine coefficients and what these leave, of the windows of many series, in one compiled pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.core.jit import kernel, part

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class WindowOffsets(NamedTuple):
    """``offsets`` (n + 1,) of series, ``starts`` (n + 1,) of windows, strides (n,), whether series are circular."""

    offsets: Ints
    starts: Ints
    strides: Ints
    circular: bool


def describe_windows(
    values: Floats, windows: WindowOffsets, waves: Floats, floors: Floats | None, rest: float = 0.0
) -> Floats:
    r"""Return the mean of every window and its inner products with waves, (M, d, 1 + q); with the rest (M, d, 2 + q).

    Parameters
    ----------
    values : (N, d), with NaN for missing
    windows : WindowOffsets
        Window p of series i has its centre at ``strides[i] * (p - starts[i])``.
    waves : (w, q)
        Waves of the window's width w, orthonormal, each with sum zero.
    floors : (d,) or None
        Inner products are divided by the standard deviation of the window's channel plus this; None: not divided.
    rest : float
        If positive, :math:`\log(r + \text{rest})` follows them, where r is the root mean square of what the mean and
        the waves leave of the window, divided as they are.

    Notes
    -----
    Sums run over the entries that are not missing, scaled up to all, :math:`\frac{w}{\#\text{known}} \sum`. Where
    fewer than half are known, the result is NaN.
    """
    out = np.empty((int(windows.starts[-1]), values.shape[1], 1 + waves.shape[1] + (rest > 0)))
    scaled = floors is not None
    work = np.empty(waves.shape[0] + waves.shape[1])
    given = np.zeros(0) if floors is None else floors
    _describe(np.ascontiguousarray(values), windows, waves, given, scaled, float(rest), work, out)
    return out


@kernel
def _describe(values, windows, waves, floors, scaled, rest, work, out):
    """Fill out (M, d, 1 + q or 2 + q) window by window; work (w + q,) holds one window and its sums."""
    width, count = waves.shape
    window, sums = work[:width], work[width:]
    for i in range(len(windows.strides)):
        first = windows.offsets[i]
        length = windows.offsets[i + 1] - first
        for p in range(windows.starts[i], windows.starts[i + 1]):
            left = windows.strides[i] * (p - windows.starts[i]) - width // 2
            for c in range(values.shape[1]):
                for j in range(width):
                    t = (left + j) % length if windows.circular else min(max(left + j, 0), length - 1)
                    window[j] = values[first + t, c]
                mean, deviation = _sum_up(window, waves, sums)
                out[p, c, 0] = mean
                by = deviation + floors[c] if scaled else 1.0
                left_over = deviation * deviation
                for k in range(count):
                    out[p, c, 1 + k] = sums[k] / by
                    left_over -= sums[k] * sums[k] / width
                if rest > 0.0:
                    # with gaps, waves may hold more than there is; a NaN stays
                    left_over = 0.0 if left_over < 0.0 else left_over
                    out[p, c, 1 + count] = np.log(np.sqrt(left_over) / by + rest)


@part
def _sum_up(window, waves, sums):
    """Fill sums (q,) with the inner products of a window's deviations from its mean; return mean and deviation."""
    width, count = waves.shape
    there = 0
    mean = 0.0
    for j in range(width):
        if not np.isnan(window[j]):
            there += 1
            mean += window[j]
    if 2 * there < width:
        for k in range(count):
            sums[k] = np.nan
        return np.nan, np.nan
    mean /= there
    square = 0.0
    for k in range(count):
        sums[k] = 0.0
    for j in range(width):
        if not np.isnan(window[j]):
            gap = window[j] - mean
            square += gap * gap
            for k in range(count):
                sums[k] += gap * waves[j, k]
    for k in range(count):
        sums[k] *= width / there
    return mean, np.sqrt(square / there)
