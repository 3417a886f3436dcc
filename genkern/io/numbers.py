"""Cells of text as numbers and times, by one set of rules for missing values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from genkern.io.errors import Notes, ReadError, quoted
from genkern.validation import Floats

MISSING = {"", "?", "na", "n/a", "#n/a", "nan", "null", "none"}
EXACT = 2**53  # integers up to it are exact as float64
SPELLINGS = (
    "Missing ones are spelled as an empty cell, ?, NA, N/A, NaN, null or None; name others by missing=. In a table, "
    "name the columns of numbers by channels=, others by label=, group= or id=."
)
Where = Callable[[int, str, str, str], ReadError]  # cell, expected, came, remedy


def floats(
    cells: Sequence[Any], where: Where, notes: Notes, place: Callable[[int], str], extra: Sequence[str] = ()
) -> Floats:
    """Return numbers, NaN where missing; anything else is an error that names the cell.

    Parameters
    ----------
    cells : sequence of str, numbers or None, or an array of numbers
    where : callable
        Makes the error about a cell.
    notes : Notes
        Where missing values are counted, by spelling.
    place : callable
        Names a cell, for the notes.
    extra : sequence of str
        More spellings of a missing value.
    """
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "fiub" and not extra:
        if cells.dtype.kind in "iu" and cells.size and (int(cells.max()) > EXACT or int(cells.min()) < -EXACT):
            k = int(np.argmax(np.abs(cells.astype(np.float64)) >= EXACT))
            raise where(k, "a number that float64 holds", str(cells[k]), "Subtract a constant, or read it as an id.")
        values = cells.astype(np.float64)
        tally = _unspelled(values)
    else:
        values, tally = _parsed(list(cells), where, extra)
    if np.isinf(values).any():
        k = int(np.argmax(np.isinf(values)))
        raise where(k, "a finite number", quoted(cells[k]), "Leave the cell empty if it is missing.")
    for spelling, found in tally.items():
        if found:
            notes.add(f"missing values ({spelling})", len(found), place(found[0]))
    return values


def _unspelled(values: Floats) -> dict[str, list[int]]:
    """Return where numbers are NaN, as `_parsed` does."""
    return {"NaN": np.flatnonzero(np.isnan(values)).tolist()}


def _parsed(cells: list[Any], where: Where, extra: Sequence[str]) -> tuple[Floats, dict[str, list[int]]]:
    """Return numbers and where missing ones are, by spelling."""
    try:
        if extra or any(type(cell) is not str for cell in cells) or "_" in "".join(cells):
            raise ValueError
        values = np.array(list(map(float, cells)), dtype=np.float64)
        return values, _unspelled(values)
    except ValueError:
        pass
    tally: dict[str, list[int]] = {}
    values = np.empty(len(cells))
    for k, cell in enumerate(cells):
        text = "" if cell is None else str(cell).strip()
        if text.lower() in MISSING or text in extra:
            values[k] = np.nan
            spelling = "NaN" if text.lower() == "nan" else text or "empty"
            tally.setdefault(spelling, []).append(k)
            continue
        try:
            if "_" in text or isinstance(cell, list | dict | np.ndarray):
                raise ValueError
            values[k] = float(text)
            if isinstance(cell, int) and values[k] != cell:
                raise ValueError
        except (ValueError, OverflowError):
            raise where(k, "a number", quoted(cell), SPELLINGS) from None
    return values, tally


def times(cells: Sequence[Any], where: Where) -> Floats:
    """Return times as numbers: as they are, or seconds of dates in ISO 8601; none may be missing."""
    remedy = "Times are numbers, or dates such as 2024-01-31 or 2024-01-31 12:00:00."
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "M":
        if np.isnat(cells).any():
            raise where(int(np.argmax(np.isnat(cells))), "a time", "none", remedy)
        return cells.astype("datetime64[us]").astype(np.int64) / 1e6
    values = np.empty(len(cells))
    zones: set[bool | None] = set()
    for k, cell in enumerate(cells):
        try:
            values[k] = float(str(cell).replace("_", "?") if isinstance(cell, str) else cell)
        except (TypeError, ValueError, OverflowError):
            try:
                date = cell if isinstance(cell, datetime) else datetime.fromisoformat(str(cell).strip())
                zones.add(date.tzinfo is None)
                start = datetime(1970, 1, 1, tzinfo=date.tzinfo)
                values[k] = (date - start).total_seconds() - (date.utcoffset() or start - start).total_seconds()
            except ValueError:
                raise where(k, "a time", quoted(cell), remedy) from None
        else:
            zones.add(None)
        if not np.isfinite(values[k]) or len(zones) > 1:
            came = quoted(cell) + (", of another form than the times before" if len(zones) > 1 else "")
            raise where(k, "a time", came, remedy)
    return values


def irregular(steps: Floats) -> bool:
    """Say whether sorted times are not equally spaced, but for rounding."""
    gaps = np.diff(steps)
    return len(gaps) > 1 and bool(np.ptp(gaps) > 1e-6 * np.abs(gaps).max() + 1e-9 * np.abs(steps).max())
