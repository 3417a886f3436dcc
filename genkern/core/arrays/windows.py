"""Means and cosine coefficients of the windows of many series, in one compiled pass."""

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


def describe_windows(values: Floats, windows: WindowOffsets, waves: Floats, floors: Floats | None) -> Floats:
    r"""Return the mean of every window and its inner products with waves, (M, d, 1 + q).

    Parameters
    ----------
    values : (N, d), with NaN for missing
    windows : WindowOffsets
        Window p of series i has its centre at ``strides[i] * (p - starts[i])``.
    waves : (w, q)
        Waves of the window's width w, each with sum zero.
    floors : (d,) or None
        Inner products are divided by the standard deviation of the window's channel plus this; None: not divided.

    Notes
    -----
    Sums run over the entries that are not missing, scaled up to all, :math:`\frac{w}{\#\text{known}} \sum`. Where
    fewer than half are known, the result is NaN.
    """
    out = np.empty((int(windows.starts[-1]), values.shape[1], 1 + waves.shape[1]))
    scaled = floors is not None
    work = np.empty(waves.shape[0] + waves.shape[1])
    given = np.zeros(0) if floors is None else floors
    _describe(np.ascontiguousarray(values), windows, waves, given, scaled, work, out)
    return out


@kernel
def _describe(values, windows, waves, floors, scaled, work, out):
    """Fill out (M, d, 1 + q) window by window; work (w + q,) holds one window and its sums."""
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
                for k in range(count):
                    out[p, c, 1 + k] = sums[k] / by


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
