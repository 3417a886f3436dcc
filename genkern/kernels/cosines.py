"""Kernel values as cosines, which do not exceed one: rounding above one is clipped, larger excess is an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genkern.validation import Floats

ROUNDING = 1e-10  # relative to the size of the logs: excess of a cosine over one that is rounding


def capped(logs: Floats, scale: Floats, exact: Callable[[], bool], who: Any, places: tuple[int, int]) -> Floats:
    """Return log cosines (n, m), clipped to zero where rounding put them above; larger ones are refused if exact.

    Parameters
    ----------
    logs, scale : ndarray of shape (n, m)
        Log cosines, changed in place, and the logs by which they were divided.
    exact : callable
        Returns whether values are those of exact formulas; bounds and estimates may exceed one. Called only if needed.
    who : Kernel
        The kernel, for error messages.
    places : tuple of int
        Indices of the first row and the first column among all objects.
    """
    over = logs > 0.0
    if over.any():
        wrong = over & (logs > ROUNDING * (1.0 + np.abs(scale)))
        if wrong.any() and exact():
            i, j = (int(place) for place in np.unravel_index(np.argmax(np.where(wrong, logs, -np.inf)), logs.shape))
            raise ValueError(
                f"{who!r}: the similarity of objects {places[0] + i} and {places[1] + j} is exp({logs[i, j]:.3g}), and "
                "that of an exact kernel is at most one: their values have lost their digits. Compare fewer "
                "observations (length), or fit models with larger floors (min_covar, pseudocount)."
            )
        logs[over & ~wrong] = 0.0
    return logs


def place_of(X: Any) -> int:
    """Return the index of the first object of a slice among all of them."""
    whole = getattr(X, "whole", None)
    return 0 if whole is None else int(whole[1])
