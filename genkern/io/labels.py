"""Labels of records: from their headers, from a table with identifiers, or one file per class."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.io.errors import Notes, quoted
from genkern.io.fasta import Records
from genkern.io.files import is_path
from genkern.io.options import Options, pattern_of

CLASS = pattern_of("class", "label")


class Headers:
    """What finds labels or groups in headers; a key that nobody asked for must be in all of them or in none."""

    def __init__(self, pattern: re.Pattern[str] | None, name: str, asked: bool) -> None:
        self.pattern, self.name, self.asked = pattern, name, asked
        self.present: bool | None = None

    def find(self, records: Records) -> NDArray[Any] | None:
        """Return the labels of records, or None."""
        if self.pattern is None or not len(records):
            return None
        found = _plain_keys(records.headers) if self.pattern is CLASS else None
        if found is None:
            found = [match and match.group(1) for match in map(self.pattern.search, records.headers)]
        if self.present is None:
            self.present = self.asked or any(found)
        for k, label in enumerate(found):
            if bool(label) != self.present:
                everywhere = "in each header" if self.asked else "in all headers or in none"
                expected = f"a {self.name}, found by {self.pattern.pattern!r}, {everywhere}"
                remedy = f"Mend the header, change {self.name}=, or read without by {self.name}=False."
                raise records.source.error(records.line(k), expected, quoted(records.headers[k]), remedy)
        return records.source.labels(found) if self.present else None


def _plain_keys(headers: list[str]) -> list[Any] | None:
    """Return what `CLASS` finds, faster, where each header has `` class=`` once and no other separators."""
    pieces = "\n".join(headers).split(" class=")
    if len(pieces) != len(headers) + 1 or not all("\n" in piece for piece in pieces[1:-1]):
        return None
    rest = "\n".join(pieces)
    if "class=" in rest or "|" in rest or ";" in rest or "," in rest:
        return None
    return [(piece.split(None, 1) or [""])[0] if piece[:1] not in " \n\t" else "" for piece in pieces[1:]]


def label_finder(options: Options) -> Headers:
    """Return what finds labels in headers; by default ``class=``, where they have it."""
    if options.label is False or options.labels is not None:
        return Headers(None, "label", False)
    asked = options.label is not None
    return Headers(pattern_of(options.label, "label") if asked else CLASS, "label", asked)


def group_finder(options: Options) -> Headers:
    """Return what finds groups in headers; by default nothing."""
    asked = options.group is not None and options.group is not False
    return Headers(pattern_of(options.group, "group") if asked else None, "group", asked)


class LabelTable:
    """Labels by identifier, from a mapping or from a table in a file.

    Parameters
    ----------
    labels : mapping, or path of a table
        From identifiers to labels.
    label, id : str, optional
        Columns of the table.
    notes : Notes
    """

    def __init__(self, labels: Any, label: Any, id: str | None, notes: Notes) -> None:
        self.used: set[str] = set()
        if isinstance(labels, Mapping):
            self.name, self.known = "labels", {str(key): value for key, value in labels.items()}
        elif is_path(labels):
            from genkern.io.shapes import label_columns

            self.name, self.known = str(labels), label_columns(labels, label, id, notes)
        else:
            raise TypeError(f"read: 'labels' must be a mapping or the path of a table. Got {type(labels).__name__}.")

    def find(self, ids: list[str], where: Any, error: Any) -> NDArray[Any]:
        """Return the labels of records with these identifiers."""
        for k, name in enumerate(ids):
            if name not in self.known:
                expected, remedy = (
                    f"a label for each record in {self.name}",
                    "Add it to the table, or leave labels= out.",
                )
                raise error(where(k), expected, f"none for {name!r}", remedy)
        self.used.update(ids)
        return np.array([self.known[name] for name in ids])

    def unused(self, notes: Notes) -> None:
        """Note the entries of which no record came."""
        rest = [name for name in self.known if name not in self.used]
        if rest:
            notes.add("labels of records that did not come", len(rest), f"{self.name} ({rest[0]})")
