"""Pieces of tables become objects: texts, cells, groups of rows, or single rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.io.dataset import Dataset
from genkern.io.errors import ReadError, quoted
from genkern.io.letters import apply
from genkern.io.numbers import floats, irregular, times
from genkern.io.options import Options
from genkern.io.tables import Table
from genkern.io.texts import TableRecords, strings_of
from genkern.progress import taken
from genkern.validation import Floats

TURN = "layout='time-first' for (time, channels), layout='channels-first' for (channels, time)"


def _where(table: Table, column: str) -> Callable[[int, str, str, str], ReadError]:
    """Return what makes errors about the cells of a column."""
    return lambda row, expected, came, remedy: table.error(row, expected, came, remedy, column)


def _labels(table: Table, column: str | None, role: str) -> NDArray[Any] | None:
    """Return the cells of a column as labels; none may be missing."""
    if column is None:
        return None
    with taken(1.0, column):
        return _checked_labels(table, column, role)


def _checked_labels(table: Table, column: str, role: str) -> NDArray[Any]:
    cells = table.columns[column]
    if not isinstance(cells, np.ndarray):
        for row, cell in enumerate(cells):
            if cell is None or (isinstance(cell, str) and not cell.strip()) or isinstance(cell, list | dict):
                remedy = f"Fill it, remove the row, or read without by {role}=False."
                raise table.error(row, f"a {role}", quoted("" if cell is None else cell), remedy, column)
            if isinstance(cell, str) != isinstance(cells[0], str) or cell != cell:
                came = f"{quoted(cell)} after {quoted(cells[0])}, of another type"
                raise table.error(row, f"{role}s of one type", came, "Write all as text, or all as numbers.", column)
    elif cells.dtype.kind == "f" and np.isnan(cells).any():
        raise table.error(int(np.argmax(np.isnan(cells))), f"a {role}", "NaN", f"Fill it, or {role}=False.", column)
    return table.source.labels(cells)


def _ids(table: Table, column: str | None) -> list[str] | None:
    found = _labels(table, column, "id")
    return None if found is None else [str(name) for name in found.tolist()]


def _rowwise(X: list[Any], table: Table, plan: Any) -> Dataset:
    """Return a set with one object per row; empty objects are left out."""
    roles = plan.roles
    split = _labels(table, roles["split"], "split")
    part = Dataset(
        X,
        _labels(table, roles["label"], "label"),
        _ids(table, roles["id"]),
        _labels(table, roles["group"], "group"),
        plan.kind,
        {} if split is None else {"split": split},
    )
    empty = [k for k, x in enumerate(X) if not len(x)]
    if empty:
        table.source.notes.add("empty records, left out", len(empty), table.place(empty[0]))
        part = part.take([k for k, x in enumerate(X) if len(x)])
    return part


def text_objects(table: Table, plan: Any, options: Options) -> Dataset:
    """Return the texts of a column."""
    column = plan.roles["text"]
    bodies = strings_of(table, column)
    if plan.kind == "documents":
        bodies = ["" if not body.strip() else body for body in bodies]
    else:
        rules = plan.texts.rules(plan.kind, options)
        exact = (
            plan.kind == "symbols" and options.alphabet is None and rules.alphabet is None
        )  # white space may be a symbol
        bare = bodies if exact else [body.strip() for body in bodies]
        spaced = [k for k, (new, old) in enumerate(zip(bare, bodies)) if new != old]
        if spaced:
            table.source.notes.add("white space around symbols, removed", len(spaced), table.place(spaced[0]))
        table.source.notes.facts["alphabet"] = rules.alphabet or "".join(sorted(plan.texts.letters.counts))
        bodies = apply(rules, TableRecords(table, bare))
    return _rowwise(list(bodies), table, plan)


def cell_objects(table: Table, plan: Any, options: Options) -> Dataset:
    """Return the objects that stand as lists in a column."""
    column = plan.channels[0]
    layout = options.layout or ("time-first" if column in ("series", "points") else None)
    X, width = [], None
    for row, cell in enumerate(table.columns[column]):
        cell = [] if cell is None else cell
        if not isinstance(cell, list | tuple | np.ndarray):
            raise table.error(row, "a list", quoted(cell), "Write an object as a list of numbers or symbols.", column)
        x = (
            _tokens(table, row, cell, column)
            if plan.kind in ("symbols", "codes")
            else _array(table, row, cell, column, layout)
        )
        if isinstance(x, np.ndarray) and len(x):
            width = x.shape[1] if width is None else width
            if x.shape[1] != width:
                raise table.error(row, f"{width} channels, as before", str(x.shape[1]), "Mend the row.", column)
        X.append(x)
    return _rowwise(X, table, plan)


def _tokens(table: Table, row: int, cell: Any, column: str) -> list[Any]:
    """Return a list of symbols."""
    symbols = cell.tolist() if isinstance(cell, np.ndarray) else list(cell)
    for symbol in symbols:
        if not isinstance(symbol, str | int):
            raise table.error(row, "symbols: strings or integers", quoted(symbol), "Mend the list.", column)
    return symbols


def _array(table: Table, row: int, cell: Any, column: str, layout: str | None) -> Floats:
    """Return a list of numbers, or of lists of them, as an array (T, d)."""
    try:
        array = np.array([list(part) if isinstance(part, np.ndarray) else part for part in cell], dtype=np.float64)
        if _holds_text(cell):
            raise ValueError("text among numbers")
    except (TypeError, ValueError, OverflowError) as error:
        came = f"{quoted(cell)} ({error})"
        raise table.error(row, "a list of numbers, or of lists of one length", came, "Mend the list.", column) from None
    if array.ndim > 2 or np.isinf(array).any():
        came = "an infinite number" if array.ndim < 3 else f"{array.ndim} levels of lists"
        raise table.error(row, "finite numbers in at most two levels of lists", came, "Mend the list.", column)
    if array.ndim == 2 and array.size and layout is None:
        came = f"lists of shape {array.shape}"
        raise table.error(row, "a layout for two levels of lists", came, f"Say which: {TURN}.", column)
    table.source.notes.add("missing values (NaN)", int(np.isnan(array).sum()), table.place(row))
    if array.ndim < 2:
        return array.reshape(-1, 1)
    return np.ascontiguousarray(array.T) if layout == "channels-first" else array


def _holds_text(cell: Any) -> bool:
    return any(
        isinstance(part, str) or (isinstance(part, list) and any(isinstance(x, str) for x in part)) for part in cell
    )


def wide_objects(table: Table, plan: Any, options: Options) -> Dataset:
    """Return rows as objects: steps of a series, symbols, or one point."""
    columns, notes = [table.columns[name] for name in plan.channels], table.source.notes
    if plan.kind == "symbols":
        return _rowwise([_symbols(table, k, row, plan.channels) for k, row in enumerate(zip(*columns))], table, plan)
    if all(isinstance(cells, np.ndarray) for cells in columns):
        rows: Any = np.column_stack(columns)
    else:
        rows = list(zip(*columns))
    X = []
    for k, row in enumerate(rows):
        size = len(row)
        if plan.kind == "series" and not isinstance(row, np.ndarray):
            while size and row[size - 1] in ("", None):
                size -= 1
            if size < len(row):
                notes.add("rows with empty cells at the end, cut there", 1, table.place(k))

        def where(cell: int, expected: str, came: str, remedy: str, k: int = k) -> ReadError:
            return table.error(k, expected, came, remedy, plan.channels[cell])

        values = floats(row[:size], where, notes, lambda cell, k=k: table.place(k), options.missing or ())  # type: ignore[misc]
        X.append(values.reshape(-1, 1) if plan.kind == "series" else values.reshape(1, -1))
    return _rowwise(X, table, plan)


def _symbols(table: Table, k: int, row: tuple[Any, ...], names: list[str]) -> Any:
    """Return the symbols of a row: a string, if each has one character."""
    cells = ["" if cell is None else str(cell).strip() for cell in row]
    while cells and not cells[-1]:
        cells.pop()
    if "" in cells:
        raise table.error(k, "a symbol", "an empty cell", "Write a symbol for missing ones.", names[cells.index("")])
    return "".join(cells) if all(len(cell) == 1 for cell in cells) else cells


def long_objects(table: Table, plan: Any, options: Options) -> Dataset:
    """Return groups of rows as objects, in the order of their first rows, sorted by time."""
    roles, notes = plan.roles, table.source.notes
    ids = _ids(table, roles["id"]) or []
    index: dict[str, int] = {}
    codes = np.array([index.setdefault(name, len(index)) for name in ids])
    order = np.argsort(codes, kind="stable")
    if roles["time"] is not None:
        with taken(1.0, roles["time"]):
            steps = times(table.columns[roles["time"]], _where(table, roles["time"]))
        order = _by_time(table, codes, order, steps, roles["time"])
    ends = np.cumsum(np.bincount(codes))[:-1]
    if plan.kind == "symbols":
        if len(plan.channels) != 1:
            came = f"the columns {', '.join(map(repr, plan.channels))}"
            raise table.source.error(None, "one column of symbols", came, "Name it by channels=.")
        tokens = _labels(table, plan.channels[0], "symbol")
        X: list[Any] = [part.tolist() for part in np.split(tokens[order], ends)]  # type: ignore[index]
    else:
        extra = options.missing or ()
        columns = []
        for c in plan.channels:
            with taken(1.0, c):
                columns.append(floats(table.columns[c], _where(table, c), notes, table.place, extra))
        X = [part.copy() for part in np.split(np.column_stack(columns)[order], ends)]
    found: dict[str, Any] = {}
    for role in ("label", "group", "split"):
        found[role] = _constant(table, codes, order, roles[role], role)
    meta = {} if found["split"] is None else {"split": found["split"]}
    return Dataset(X, found["label"], list(index), found["group"], plan.kind, meta)


def _by_time(table: Table, codes: NDArray[Any], order: NDArray[Any], steps: Floats, column: str) -> NDArray[Any]:
    """Return the order of rows by object and time; noted are unsorted and irregular times."""
    notes = table.source.notes
    same = np.diff(codes[order]) == 0
    back = np.flatnonzero(same & (np.diff(steps[order]) < 0))
    if len(back):
        notes.add(
            "objects with unsorted times, sorted",
            len(np.unique(codes[order][back])),
            table.place(int(order[back[0] + 1])),
        )
    order = np.lexsort((steps, codes))
    twice = np.flatnonzero((np.diff(steps[order]) == 0) & (np.diff(codes[order]) == 0))
    if len(twice):
        row = int(max(order[twice[0]], order[twice[0] + 1]))
        came = f"{table.columns[column][row]!r} twice for one object"
        raise table.error(row, "each time once", came, "Remove one row, or name the right id= and time=.", column)
    for part in np.split(order, np.cumsum(np.bincount(codes))[:-1]):
        if irregular(steps[part]):
            notes.add("objects with irregular times, taken as equal steps", 1, table.place(int(part[0])))
    return order


def _constant(
    table: Table, codes: NDArray[Any], order: NDArray[Any], column: str | None, role: str
) -> NDArray[Any] | None:
    """Return one label per object; all of its rows must have the same."""
    cells = _labels(table, column, role)
    if cells is None or column is None:
        return None
    first = np.zeros(codes.max() + 1, dtype=np.intp)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    wrong = np.flatnonzero(cells != cells[first[codes]])
    if len(wrong):
        row = int(wrong[0])
        came = f"{cells[row]!s} after {cells[first[codes[row]]]!s}"
        raise table.error(row, f"one {role} for all rows of an object", came, f"Mend it, or {role}=False.", column)
    return cells[first]
