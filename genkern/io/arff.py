"""The .arff files of Weka and the time-series archives: rows of attributes, and relational attributes of series."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from genkern.io.dataset import Dataset
from genkern.io.errors import ReadError, quoted
from genkern.io.files import Source
from genkern.io.numbers import floats
from genkern.io.options import Options
from genkern.io.shapes import read_table
from genkern.io.tables import Table
from genkern.validation import Floats

ATTRIBUTE = re.compile(r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\S+)\s+(.+)""", re.IGNORECASE)
FIELD = re.compile(r"""\s*+('(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|[^,'"]*+)\s*+(,|$)""")


class Attribute(NamedTuple):
    """A column of an .arff file."""

    name: str
    type: str  # numeric, string, date, nominal or relational
    values: Mapping[str, None] = MappingProxyType({})  # of a nominal one, in their order


def read_arff(source: Source, options: Options, batch: int | None) -> Iterator[Dataset]:
    """Yield the objects of an .arff file, at most `batch` at a time."""
    lines = source.lines()
    attributes = _attributes(source, lines)
    relational = [a for a in attributes if a.type == "relational"]
    nominal = [a.name for a in attributes if a.type == "nominal"]
    if options.label is None and len(nominal) == 1:
        options = Options(**{**vars(options), "label": nominal[0]})
    chunks = _chunks(source, lines, attributes, batch)
    if not relational:
        yield from read_table(chunks, options, batch is not None, lambda: _again(source.quiet(), batch))
        return
    options.refuse(("missing", "encoding"), "an .arff file with a relational attribute")
    options.refuse_kind(("series", "points"), "an .arff file with a relational attribute")
    if len(relational) > 1 or len(attributes) - 1 > len(nominal):
        came = ", ".join(f"{a.name} ({a.type})" for a in attributes)
        raise source.error(None, "one relational attribute and at most nominal ones", came, "Remove the others.")
    if options.label is not None and options.label is not False and options.label not in nominal:
        raise source.error(None, f"an attribute {options.label!r}", ", ".join(nominal), "Name one of these by label=.")
    if len(nominal) > 1 and options.label is None:
        raise source.error(None, "one class", f"the attributes {', '.join(nominal)}", "Name one by label=.")
    width = None
    for table in chunks:
        X = []
        for k, cell in enumerate(table.columns[relational[0].name]):
            X.append(_relation(source, table.lines[k], cell, options))
            width = X[-1].shape[1] if width is None else width
            if X[-1].shape[1] != width:
                came = f"{X[-1].shape[1]} rows in the relational attribute"
                raise source.error(table.lines[k], f"{width} channels, as before", came, "Mend the line.")
        y = None if not options.label else source.labels(table.columns[options.label])
        yield Dataset(X, y, kind=options.kind or "series")


def _again(source: Source, batch: int | None) -> Iterator[Table]:
    """Yield the tables of a file from its beginning."""
    lines = source.lines()
    return _chunks(source, lines, _attributes(source, lines), batch)


def _attributes(source: Source, lines: Iterator[tuple[int, str]]) -> list[Attribute]:
    """Return the attributes that the header declares, up to and with @data."""
    found: list[Attribute] = []
    inside: str | None = None
    for number, line in lines:
        text = line.strip()
        key = text.split(None, 1)[0].lower() if text else ""
        if not text or text.startswith("%"):
            continue
        if key == "@relation" and not found:
            source.notes.facts["name"] = _plain(text.partition(" ")[2].strip())
        elif key == "@end" and inside is not None:
            inside = None
        elif key == "@data" and inside is None:
            names = [a.name for a in found]
            if not found or len(set(names)) < len(names):
                came = ", ".join(names) or "none"
                raise source.error(number, "attributes with different names", came, "Mend the header.")
            return found
        elif key == "@attribute" and (match := ATTRIBUTE.fullmatch(text)):
            attribute = _attribute(source, number, _plain(match.group(1)), match.group(2).strip())
            if inside is None:
                found.append(attribute)
                inside = attribute.name if attribute.type == "relational" else None
            elif attribute.type != "numeric":
                came = f"{attribute.name!r}, which is {attribute.type}"
                raise source.error(number, "numbers in a relational attribute", came, "Remove it.")
        else:
            remedy = "Name the format by format= if it is another one."
            raise source.error(number, "@relation, @attribute name type, @end or @data", quoted(line), remedy)
    raise source.error(None, "a line @data", "the end of the file", "The file is cut off, or has another format.")


def _attribute(source: Source, number: int, name: str, kind: str) -> Attribute:
    """Return one attribute."""
    word = kind.split()[0].lower()
    if kind.startswith("{") and kind.endswith("}"):
        return Attribute(name, "nominal", dict.fromkeys(_fields(source, number, kind[1:-1])))
    if word in ("numeric", "real", "integer"):
        return Attribute(name, "numeric")
    if word in ("string", "date", "relational"):
        return Attribute(name, word)
    expected = "a type: numeric, real, integer, string, date, relational or {a,b}"
    raise source.error(number, expected, quoted(kind), "Mend the attribute.")


def _plain(text: str) -> str:
    """Return text without its quotes, with what they protect."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(['\"\\%])", r"\1", text[1:-1])
    return text


def _fields(source: Source, number: int, line: str) -> list[str]:
    """Return the cells of a line."""
    cells, at = [], 0
    while True:
        match = FIELD.match(line, at)
        if match is None:
            raise source.error(number, "values between commas, or in quotes", quoted(line[at:]), "Mend the quotes.")
        cells.append(_plain(match.group(1).rstrip()))
        if match.group(2) != ",":
            return cells
        at = match.end()


def _chunks(
    source: Source, lines: Iterator[tuple[int, str]], attributes: list[Attribute], batch: int | None
) -> Iterator[Table]:
    """Yield the rows after @data as tables."""
    rows: list[list[str]] = []
    numbers: list[int] = []
    any_rows = False
    for number, line in lines:
        if not line.strip() or line.startswith("%"):
            continue
        if line.startswith("{"):
            raise source.error(number, "one value per attribute", "a sparse row", "Write all values of the row.")
        cells = _fields(source, number, line.rstrip())
        if len(cells) != len(attributes):
            raise source.error(number, f"{len(attributes)} values", str(len(cells)), "Mend the line.")
        for cell, attribute in zip(cells, attributes):
            if attribute.type == "nominal" and cell not in attribute.values:
                expected = f"one of {', '.join(attribute.values)} for {attribute.name!r}"
                raise source.error(number, expected, quoted(cell), "Mend the line or the attribute.")
        rows.append(cells)
        numbers.append(number)
        if len(rows) == batch:
            yield Table.of_rows(source, [a.name for a in attributes], rows, numbers)
            rows, numbers, any_rows = [], [], True
    if rows:
        yield Table.of_rows(source, [a.name for a in attributes], rows, numbers)
    elif not any_rows:
        raise source.error(None, "rows after @data", "none", "The file is empty or cut off.")


def _relation(source: Source, number: int, cell: str, options: Options) -> Floats:
    """Return the series (T, d) of a relational attribute, whose rows are channels."""

    def where(k: int, expected: str, came: str, remedy: str) -> ReadError:
        return source.error(number, expected, f"{came} (value {k} of a channel)", remedy)

    def place(k: int) -> str:
        return f"{source.name}, line {number}"

    extra: Any = options.missing or ()
    rows = [
        floats(row.split(","), where, source.notes, place, extra) for row in re.split(r"\\n|\n", cell) if row.strip()
    ]
    if not rows or len({len(row) for row in rows}) > 1:
        came = f"rows of lengths {', '.join(str(len(row)) for row in rows)}" if rows else "none"
        raise source.error(number, "rows of one length, one for each channel", came, "Fill them with '?'.")
    return np.column_stack(rows)
