"""Tables as columns of cells: CSV, TSV and JSON lines row by row, Parquet, Arrow and frames by what is installed."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.io.columns import frame_of
from genkern.io.errors import Notes, ReadError, quoted
from genkern.io.files import Source, needed
from genkern.io.numbers import MISSING
from genkern.io.options import Options

DELIMITERS = {",": "','", ";": "';'", "\t": "'\\t'", "|": "'|'"}
MOST_DIGITS = 19  # of the number of a row or column
COMMA = re.compile(r"\s*[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s*")  # a number with a decimal comma


class Memory(NamedTuple):
    """A table that is not in a file, with what readers ask of one."""

    name: str
    notes: Notes

    def error(self, line: int | None, expected: str, came: str, remedy: str) -> ReadError:
        """Return an error about this table."""
        return ReadError(self.name, line, expected, came, remedy)

    def labels(self, cells: Sequence[Any]) -> NDArray[Any]:
        """Return labels as an array."""
        return np.array(cells)


class Table(NamedTuple):
    """Columns of cells (strings, numbers, lists or None), or arrays, and the line of each row."""

    source: Source | Memory
    columns: dict[str, Any]
    lines: list[int]

    @classmethod
    def of_rows(cls, source: Source | Memory, names: list[str], rows: list[list[Any]], lines: list[int]) -> Table:
        """Return the table of some rows."""
        return cls(source, dict(zip(names, map(list, zip(*rows)))), lines)

    def error(self, row: int, expected: str, came: str, remedy: str, column: str | None = None) -> ReadError:
        """Return an error about a row."""
        came = came if column is None else f"{came} in column {column!r}"
        return self.source.error(self.lines[row], expected, came, remedy)

    def place(self, row: int) -> str:
        """Name a row."""
        return f"{self.source.name}, line {self.lines[row]}"

    def rows(self, start: int, stop: int) -> Table:
        """Return some of the rows."""
        columns = {name: cells[start:stop] for name, cells in self.columns.items()}
        return Table(self.source, columns, self.lines[start:stop])

    def then(self, other: Table) -> Table:
        """Return the rows of this table, then those of another."""
        columns = {
            name: np.concatenate([cells, other.columns[name]])
            if isinstance(cells, np.ndarray)
            else list(cells) + list(other.columns[name])
            for name, cells in self.columns.items()
        }
        return Table(self.source, columns, self.lines + other.lines)


def read_tables(source: Source, options: Options, batch: int | None) -> Iterator[Table]:
    """Yield the table of a file, at most `batch` rows at a time (all, if None)."""
    form = source.notes.facts["format"]
    if form in ("csv", "tsv"):
        return _csv(source, options, batch)
    if form == "jsonl":
        return _json(source, batch)
    return _slices(frame_of(source, form), source, batch)


def frame_tables(frame: Any, notes: Notes, batch: int | None) -> Iterator[Table]:
    """Yield the rows of a data frame or Arrow table in memory."""
    return _slices(frame, Memory("the table", notes), batch)


def _csv(source: Source, options: Options, batch: int | None) -> Iterator[Table]:
    """Yield the rows of a file with delimiters; every row must have all fields."""
    delimiter = options.delimiter or _delimiter(source)
    ended = (line + "\n" for _, line in source.lines())
    reader = csv.reader(ended, delimiter=delimiter, strict=True)
    names: list[str] | None = None
    rows: list[list[str]] = []
    lines: list[int] = []
    yielded, start = False, 1
    while True:
        before = csv.field_size_limit(sys.maxsize)  # a setting of the whole process, put back at once
        try:
            row = next(reader, None)
        except csv.Error as error:
            remedy = 'Fields with quotes are written "like ""this""".'
            raise source.error(reader.line_num, "whole fields", str(error), remedy) from None
        finally:
            csv.field_size_limit(before)
        if row is None:
            break
        start, at = reader.line_num + 1, start
        if not row:
            source.notes.add("empty lines, left out", 1, f"{source.name}, line {at}")
        elif names is None:
            names = _names(source, row, at, options)
            if options.header is False:
                rows, lines = [row], [at]
        elif len(row) != len(names):
            remedy = "Quote fields with delimiters, or name the delimiter by delimiter=."
            raise source.error(at, f"{len(names)} fields", f"{len(row)}", remedy)
        else:
            rows.append(list(map(_pointed, row)) if options.decimal == "," else row)
            lines.append(at)
        if len(rows) == batch and names is not None:
            yield _without_count(Table.of_rows(source, names, rows, lines), not yielded)
            rows, lines, yielded = [], [], True
    if names is not None and rows:
        yield _without_count(Table.of_rows(source, names, rows, lines), not yielded)
    elif not yielded:
        raise source.error(
            None, "a header and rows", "none" if names is None else "a header alone", "Look how it was made."
        )


def _pointed(cell: str) -> str:
    """Return a number with a decimal comma as one with a point, and other cells as they are."""
    return cell.replace(",", ".") if COMMA.fullmatch(cell) else cell


def refuse_commas(table: Table, names: Sequence[str]) -> None:
    """Raise for a column of numbers some of which have a comma: it may be a decimal one, or part thousands."""
    if table.source.notes.facts.get("format") not in ("csv", "tsv"):
        return
    for name in names:
        cells, found = table.columns[name], None
        for row, cell in enumerate(cells):
            if COMMA.fullmatch(cell):
                found = row if found is None else found
            elif not _is_number(cell) and cell.strip().lower() not in MISSING:
                break
        else:
            if found is not None:
                remedy = (
                    "Say decimal=',' if it is a decimal comma; if it parts thousands, take it out; if these are texts, "
                    "name them by text=."
                )
                raise table.error(found, "numbers with a decimal point", quoted(cells[found]), remedy, name)


def _without_count(table: Table, first: bool) -> Table:
    """Return the table without a first column that has no name and counts rows, as an index of pandas does."""
    if "" not in table.columns:
        return table
    cells = table.columns[""]
    start = int(cells[0]) if cells[0].isdecimal() and len(cells[0]) < MOST_DIGITS else -1
    if start < 0 or (first and start > 1) or cells != [str(k) for k in range(start, start + len(cells))]:
        raise table.source.error(1, "a name for each column", "none for the first", "Mend the header.")
    if first:
        table.source.notes.add(
            "first column without a name, which counts rows, left out", 1, f"{table.source.name}, line 1"
        )
    return table._replace(columns={name: cells for name, cells in table.columns.items() if name})


def _delimiter(source: Source) -> str:
    """Return the delimiter that the first line shows."""
    first = next((line for _, line in source.lines() if line.strip()), "")
    found = [mark for mark in DELIMITERS if mark in first]
    if source.notes.facts["format"] == "tsv" or len(found) == 1:
        return "\t" if source.notes.facts["format"] == "tsv" else found[0]
    if not found:
        return ","
    came = f"{' and '.join(DELIMITERS[mark] for mark in found)} in {quoted(first)}"
    raise source.error(1, "one delimiter in the first line", came, "Name it by delimiter=.")


def _names(source: Source, row: list[str], line: int, options: Options) -> list[str]:
    """Return the names of columns: those of the header, or numbers from 1 where there is none."""
    if options.header is False:
        return [str(k + 1) for k in range(len(row))]
    names = [name.strip() for name in row]
    if options.header is None and all(map(_is_number, names)):
        remedy = "header=False: the columns are then called 1, 2, ...; header=True: these are their names."
        raise source.error(line, "a header with names of columns", f"numbers alone, {quoted(','.join(names))}", remedy)
    if "" in names[1:] or len(set(names)) < len(names):
        counts = Counter(names)
        doubled = next(name for k, name in enumerate(names) if (not name and k) or counts[name] > 1)
        raise source.error(line, "a different name for each column", quoted(doubled), "Mend the header.")
    return names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _json(source: Source, batch: int | None) -> Iterator[Table]:
    """Yield the rows of a file that has one JSON object in each line."""
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    names: dict[str, None] = {}
    yielded = False
    for number, line in source.lines():
        if not line.strip():
            continue
        row = _json_row(source, number, line)
        if not yielded:
            names |= dict.fromkeys(row)
        elif not row.keys() <= names.keys():
            extra = next(name for name in row if name not in names)
            raise source.error(
                number, f"the keys {', '.join(names)}", f"the new key {extra!r}", "Use read, not stream."
            )
        rows.append(row)
        lines.append(number)
        if len(rows) == batch:
            yield _table_of(source, names, rows, lines)
            rows, lines, yielded = [], [], True
    if rows:
        yield _table_of(source, names, rows, lines)
    elif not yielded:
        raise source.error(None, "a JSON object in each line", "none", "The file is empty; look at how it was made.")


def _table_of(source: Source, names: Iterable[str], rows: list[dict[str, Any]], lines: list[int]) -> Table:
    """Return rows by key as a table; keys that a row lacks are missing."""
    names = list(names)
    source.allow(8.0 * len(rows) * len(names))
    short = [k for k, row in enumerate(rows) if len(row) < len(names)]
    if short:
        source.notes.add("rows without some keys, missing there", len(short), f"{source.name}, line {lines[short[0]]}")
    return Table(source, {name: [row.get(name) for row in rows] for name in names}, lines)


def _json_row(source: Source, number: int, line: str) -> dict[str, Any]:
    """Return the object in a line."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a key comes twice")
        return found

    try:
        row = json.loads(line, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        remedy = "Write one JSON object per line, {...}, without commas between lines."
        raise source.error(number, "a JSON object", f"{quoted(line)} ({error})", remedy) from None
    if not isinstance(row, dict) or not row:
        raise source.error(number, "a JSON object", quoted(line), "Write one object per line, {...}.")
    return row


def _slices(frame: Any, source: Source | Memory, batch: int | None) -> Iterator[Table]:
    """Yield the rows of a frame of any library that narwhals knows."""
    try:
        import narwhals
    except ImportError:
        raise needed("narwhals", "tables", "Reading tables of other libraries") from None
    try:
        native = narwhals.from_native(frame, eager_only=True)
        columns = {str(name): _cells(native[name]) for name in native.columns}
    except Exception as error:  # of many types, by library
        came = f"columns that cannot be read ({type(error).__name__}: {quoted(error)})"
        raise source.error(None, "a table of numbers, texts and lists", came, "Make or download it again.") from None
    if not len(native):
        raise source.error(None, "at least one row", "none", "Look at how the table was made.")
    table = Table(source, columns, list(range(1, len(native) + 1)))
    step = len(native) if batch is None else batch
    for start in range(0, len(native), step):
        yield table.rows(start, start + step)


def _cells(series: Any) -> Any:
    """Return a column: numbers as an array where none is null, others as a list."""
    if series.dtype.is_numeric() and not series.is_null().any():
        return series.to_numpy()
    cells = series.to_list()
    return [
        None if isinstance(cell, float) and cell != cell and series.dtype.is_numeric() is False else cell
        for cell in cells
    ]
