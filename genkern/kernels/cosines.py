"""Kernel values as cosines, which do not exceed one: rounding above one is clipped, larger excess is an error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.validation import Floats

ROUNDING = 1e-10  # relative to the size of the logs: excess of a cosine over one that is rounding


def divided(logs: Floats, own: Floats, other: Floats | None, who: Any) -> tuple[Floats, Floats]:
    """Return log cosines (n, m), and the logs by which they were divided.

    Objects of zero similarity to themselves, of which a warning tells, have none to others.

    Parameters
    ----------
    logs : ndarray of shape (n, m)
        Log similarities.
    own, other : ndarray of shape (n,) and (m,)
        Those of rows and columns to themselves; ``other`` is None where they are the same.
    who : Kernel
        The kernel, for the warning.
    """
    dead = np.isneginf(own)
    warn_of_dead(dead, who)
    gone = dead if other is None else np.isneginf(other)
    if other is not None:
        warn_of_dead(gone, who)
    rows, columns = np.where(dead, 0.0, own), np.where(gone, 0.0, own if other is None else other)
    scale = 0.5 * rows[:, None] + 0.5 * columns[None, :]
    cosines = logs - scale
    cosines[dead] = -np.inf
    cosines[:, gone] = -np.inf
    if other is None:
        np.fill_diagonal(cosines, 0.0)
    return cosines, scale


def warn_of_dead(dead: NDArray[np.bool_], who: Any) -> None:
    """Warn of objects that have no similarity to themselves."""
    if dead.any():
        warnings.warn(
            f"{who!r}: {int(dead.sum())} of {len(dead)} objects have zero similarity to themselves (first at "
            f"index {int(np.argmax(dead))}); they get zero similarity to all others.",
            UserWarning,
            stacklevel=3,
        )


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
