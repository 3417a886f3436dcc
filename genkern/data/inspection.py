"""Checks of inputs: the meaning of integers, transposed series, objects that are missing altogether."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.data.flatten import TURN, Flat
from genkern.data.intake import Ints, collect, form_of, offsets_of
from genkern.validation import warn

FEW, SMALL = 64, 256  # integers that are taken as symbols: at most so many different ones, all below
WIDE = 8  # channels per time step from which on an array is probably transposed
FLOATS = "pass floats, X.astype(float) or [np.asarray(x, float) for x in X], to what takes series"  # of readings
NAMED = 5  # objects that a warning names


def form_kind(X: Any, who: str) -> str:
    """Return "symbols", "series" or "integers", by the form of the objects."""
    objects = collect(X, who)
    if isinstance(objects, np.ndarray):
        if objects.ndim == 3 or objects.dtype.kind == "f":
            return "series"
        if objects.dtype.kind in "iuUS":
            return "integers" if objects.dtype.kind in "iu" else "symbols"
        items = objects.ravel().tolist()
        if any(isinstance(item, str | bytes) for item in items):
            return "symbols"
        return "integers" if all(isinstance(item, int | np.integer) for item in items) else "series"
    if all(type(obj) is str for obj in objects):
        return "symbols"
    forms = {form_of(obj, index, who)[0] for index, obj in enumerate(objects)}
    if forms & {"string", "tokens"}:
        return "symbols"
    return "integers" if forms == {"integers"} else "series"


def flatten_integers(X: Any, who: str) -> Flat:
    """Return the integers of all objects, also those too large for arrays."""
    arrays = [np.asarray(obj) for obj in collect(X, who)]
    return Flat(np.concatenate(arrays), offsets_of([len(array) for array in arrays]))


def ask_about_integers(distinct: list[Any], flat: Flat, who: str) -> None:
    """Raise for different integers that are not few and small, and so may be symbols as well as measurements."""
    outside = {code for code in distinct if not 0 <= code < SMALL}
    if not outside and len(distinct) <= FEW:
        return
    got = f"Objects 0 to {len(flat.offsets) - 2} have {len(distinct)}"
    if outside:
        at = next(at for at, code in enumerate(flat.symbols) if code in outside)
        got = f"Got {int(flat.symbols[at])} in {flat.where(at)}"
    raise ValueError(
        f"{who}: the objects hold integers; symbols or numbers? They are symbols unasked where there are at most {FEW} "
        f"different ones, from 0 to {SMALL - 1}. {got}. If they are measurements or counts, {FLOATS}. If they are "
        "symbols, name them by alphabet=m for the codes 0 to m - 1, or alphabet=[...] for a list of them (for an "
        "HMMEstimator or MixtureEstimator by emission= or component=CategoricalEstimator(alphabet=...))."
    )


def warn_wide(shapes: set[tuple[int, ...]]) -> None:
    """Warn of objects, all of one shape (T, d), that look like (d, T)."""
    if len(shapes) == 1 and len(shape := min(shapes)) == 2 and shape[1] >= WIDE * shape[0]:
        warn(
            f"The objects have {shape[0]} time steps of {shape[1]} channels: (T, d) is expected. {TURN['time-first']} "
            'If they are (T, d), check_objects(X, kind="series", layout="time-first") says so.',
            UserWarning,
            ["layout"],
            stacklevel=1,  # one location for all calls, so that the same text is shown once
        )


def ask_about_axes(shape: tuple[int, ...], who: str) -> None:
    """Raise for an array (n, T, d) of no fewer channels than time steps, which may be (n, d, T)."""
    _, length, channels = shape
    if channels == 1 or channels < length:
        return
    raise ValueError(
        f"{who}: a 3-D array is read as (n, time, channels), where other libraries have (n, channels, time). Got shape "
        f"{shape}: {length} time steps of {channels} channels, or {channels} of {length}? Say which: "
        'np.swapaxes(X, 1, 2), or check_objects(X, kind="series", layout="channels-first"), if time is the last axis; '
        "list(X) if the channels are."
    )


def all_missing(missing: NDArray[np.bool_], offsets: Ints) -> Ints:
    """Return the objects of which every position (N,) is missing."""
    return np.flatnonzero(np.logical_and.reduceat(missing, offsets[:-1])) if missing.any() else np.zeros(0, np.int64)


def warn_all_missing(missing: NDArray[np.bool_], offsets: Ints, who: str) -> None:
    """Warn of objects of which every position (N,) is missing."""
    empty = all_missing(missing, offsets)
    if len(empty):
        named = ", ".join(map(str, empty[:NAMED])) + (", ..." if len(empty) > NAMED else "")
        warn(
            f"{who}: {len(empty)} of {len(offsets) - 1} objects have nothing observed (object {named}): every value is "
            "missing, so they tell nothing, and their likelihood is one. Drop them, with their labels, if that is not "
            "meant.",
            UserWarning,
            ["nothing observed"],
        )
