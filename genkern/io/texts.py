"""Texts: columns of tables, lines of a file, and folders of files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from genkern.data.kinds import are_documents
from genkern.io.dataset import Dataset
from genkern.io.errors import Notes, ReadError, quoted
from genkern.io.fasta import Records
from genkern.io.files import Source
from genkern.io.letters import GAPS, MOSTLY, NUCLEOTIDES, Rules, Survey, decide
from genkern.io.options import STRINGS, Options
from genkern.io.tables import Table
from genkern.progress import each

TEXT_SUFFIXES = ("", ".txt", ".text", ".md")
OF_COLUMN = {"symbols": "symbols", "codes": "codes", "document": "documents", "documents": "documents"}
CHOICE = (
    "Say which: kind='symbols' for sequences of characters, 'codes' for chain codes, 'documents' for texts of words."
)


class TableRecords(Records):
    """The cells of a column as records, each with its own line."""

    def __init__(self, table: Table, bodies: list[str]) -> None:
        super().__init__(table.source, [""] * len(bodies), bodies, 1, 1)  # type: ignore[arg-type]
        self.at = table.lines

    def line(self, index: int) -> int:
        """Return the number of the line of a cell."""
        return self.at[index]

    def place(self, index: int) -> str:
        """Return file and line of a cell."""
        return f"{self.source.name}, line {self.line(index)}"


class TextSurvey:
    """What a column of texts looks like: letters, and how many words the texts have."""

    def __init__(self) -> None:
        self.letters = Survey()
        self.n_texts = self.n_spaced = 0
        self._rules: Rules | None = None

    def see(self, table: Table, column: str) -> None:
        """Look at the texts of a table."""
        bodies = strings_of(table, column)
        counts = [len(body.split()) for body in bodies if body.strip()]
        self.n_texts += len(counts)
        self.n_spaced += sum(1 for count in counts if count > 1)
        self.letters.see(TableRecords(table, [body.strip() for body in bodies]))

    def kind(self, source: Any, column: str) -> str:
        """Return the kind that name or contents tell, or ask."""
        if column.lower() in OF_COLUMN:
            return OF_COLUMN[column.lower()]
        if not self.n_texts:
            raise source.error(None, "texts", f"empty cells in {column!r}", "Name another column by text=.")
        if self.n_spaced:
            if are_documents(self.n_spaced / self.n_texts, self.letters.counts):
                return "documents"
            came = f"{self.n_spaced} of {self.n_texts} texts with several words"
            raise source.error(None, "sequences of symbols or documents", came, CHOICE)
        if set(self.letters.counts) <= set("01234567"):
            raise source.error(None, "chain codes or other symbols", f"digits in {column!r}", CHOICE)
        return "symbols"

    def rules(self, kind: str, options: Options) -> Rules:
        """Return the rules for sequences of letters; without alphabet= they are those of nucleotides, or none."""
        if self._rules is None:
            counts = {letter.upper(): 0 for letter in self.letters.counts}
            for letter, count in self.letters.counts.items():
                counts[letter.upper()] += count
            total = sum(count for letter, count in counts.items() if letter not in GAPS) or 1
            bases = sum(counts.get(letter, 0) for letter in "ACGTUN")
            bare = set(counts) <= NUCLEOTIDES | set(GAPS) and bases >= MOSTLY * total
            if options.alphabet is not None or kind == "codes" or bare:
                self._rules = decide(self.letters, options, kind)
            else:
                self._rules = Rules(None, False, {}, {}, False)
        return self._rules


def strings_of(table: Table, column: str) -> list[str]:
    """Return the cells of a column of texts, empty where missing."""
    cells = table.columns[column]
    if isinstance(cells, np.ndarray):
        raise table.error(0, "texts", f"numbers ({cells.dtype})", "Name the column with the texts by text=.", column)
    for row, cell in enumerate(cells):
        if cell is not None and not isinstance(cell, str):
            raise table.error(row, "a text", quoted(cell), "Name the column with the texts by text=.", column)
    return ["" if cell is None else cell for cell in cells]


def read_lines(source: Source, options: Options, batch: int | None) -> Iterator[Table]:
    """Yield the lines of a file as a table with one column, called text."""
    texts: list[str] = []
    lines: list[int] = []
    yielded = False
    for number, line in source.lines():
        texts.append(line)
        lines.append(number)
        if len(texts) == batch:
            yield Table(source, {"text": texts}, lines)
            texts, lines, yielded = [], [], True
    if texts:
        yield Table(source, {"text": texts}, lines)
    elif not yielded:
        raise source.error(None, "lines of text", "none", "The file is empty; look at how it was made.")


def read_folder(folder: Path, options: Options, notes: Notes, batch: int | None) -> Iterator[Dataset]:
    """Yield the texts of a folder: each file is one, and the subfolder is its class."""
    options.refuse(("encoding",), "a folder of texts")
    if options.kind is not None and options.kind not in STRINGS:
        raise ValueError(f"read: a folder holds texts. Got kind={options.kind!r}; leave it out.")
    if options.label not in (None, True, False):
        raise ValueError(
            f"read: in a folder of texts subfolders are classes. Got label={options.label!r}; leave it out."
        )
    files = _files(folder, options, notes)
    labelled = any(path.parent != folder for path in files) and options.label is not False
    step = len(files) if batch is None else batch
    some = False
    for start in each(range(0, len(files), step)):
        X, y, ids = [], [], []
        for path in each(files[start : start + step]):
            text = "".join(Source(path, notes, options.encoding, options.max_expansion).line_blocks())
            if not text.strip():
                notes.add("empty records, left out", 1, str(path))
                continue
            X.append(text.removesuffix("\n"))
            y.append(path.parent.name)
            ids.append(path.relative_to(folder).as_posix())
        if X:
            some = True
            yield Dataset(X, np.array(y) if labelled else None, ids, kind=options.kind or "documents")
    if not some:
        raise ReadError(str(folder), None, "files with texts", "empty ones", "Look at how they were made.")


def _files(folder: Path, options: Options, notes: Notes) -> list[Path]:
    """Return the files of a folder: either all in it, or all in its subfolders."""
    name = str(folder)
    try:
        entries = sorted(folder.iterdir())
        below = {entry: sorted(entry.iterdir()) for entry in entries if entry.is_dir() and entry.name[0] != "."}
    except OSError as error:
        raise ReadError(name, None, "a folder that can be read", str(error), "Look at its permissions.") from None
    files = [entry for entry in entries if not entry.is_dir()]
    for path in [*files, *(path for paths in below.values() for path in paths)]:
        if path.name.startswith("."):
            notes.add("hidden files, left out", 1, str(path))
    files = [path for path in files if not path.name.startswith(".")]
    inner = [path for paths in below.values() for path in paths if not path.name.startswith(".")]
    if files and inner:
        came = f"{files[0].name!r} beside the subfolder {inner[0].parent.name!r}"
        raise ReadError(name, None, "texts in subfolders, or no subfolders", came, "Move the files.")
    chosen = files or inner
    deep = next((path for path in chosen if path.is_dir()), None)
    if deep is not None:
        raise ReadError(
            name, None, "texts in subfolders", f"the folder {deep}", "Subfolders are classes; move the files."
        )
    if not chosen:
        raise ReadError(name, None, "a file, or a folder of texts", "an empty folder", "Give the path of a file.")
    other = next(
        (path for path in chosen if path.suffix.lower() not in TEXT_SUFFIXES and not path.suffix[1:].isdecimal()), None
    )
    if other is not None and options.format != "folder":
        remedy = "Give the paths of the files, or format='folder' if each is a text."
        raise ReadError(name, None, "a file, or a folder of texts", f"the file {other.name!r} in it", remedy)
    return chosen
