"""Reading: paths become sets of objects, whole or some at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from genkern.io.archives import read_ts
from genkern.io.arff import read_arff
from genkern.io.arrays import array_objects, awkward_columns, read_npz, refuse_memory
from genkern.io.dataset import Dataset, joined
from genkern.io.errors import Notes, ReadError, quoted
from genkern.io.files import Source, is_path
from genkern.io.foreign import foreign
from genkern.io.letters import read_letters
from genkern.io.options import Options
from genkern.io.shapes import read_table
from genkern.io.tables import Memory, Table, frame_tables, read_tables
from genkern.io.texts import read_folder, read_lines
from genkern.progress import each
from genkern.validation import check_int, check_option

FORMATS = {
    "fasta": (".fa", ".fasta", ".fna", ".ffn", ".faa", ".frn", ".fas", ".afa", ".mfa"),
    "fastq": (".fq", ".fastq"),
    "stockholm": (".sto", ".stk", ".sth", ".stockholm"),
    "ts": (".ts",),
    "arff": (".arff",),
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "jsonl": (".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "npz": (".npz",),
    "lines": (),
    "folder": (),
}
MAGIC = {
    b"PK\x03\x04": "npz",
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"# STOCKHOLM": "stockholm",
    b">": "fasta",
    b"{": "jsonl",
}


def read(
    path: Any,
    *,
    format: str | None = None,
    kind: str | None = None,
    label: Any = None,
    id: str | None = None,
    group: Any = None,
    time: str | None = None,
    channels: Any = None,
    text: str | None = None,
    layout: str | None = None,
    alphabet: Any = None,
    labels: Any = None,
    gaps: str | None = None,
    missing: Any = None,
    header: bool | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    max_expansion: float | None = None,
) -> Dataset:
    r"""Read a file, or several, as one set of objects; says in ``meta`` and ``summary()`` what was seen.

    Format and kind of the objects are detected. Where a file can be read in two ways, this is an error that names the
    choices.

    Parameters
    ----------
    path : path, list of paths, {class: path}, data frame, Arrow table, awkward array or 3-D array
        A file, plain or compressed (gzip, bzip2, xz, zstd); several files of the same kind; one file per class; a
        folder of texts, whose subfolders are classes.
    format : str, optional
        "fasta", "fastq", "stockholm", "ts", "arff", "csv", "tsv", "jsonl", "parquet", "arrow", "npz", "lines" (a text
        in each line) or "folder". By default what the ending of the name says, or else the first bytes.
    kind : {"symbols", "codes", "series", "points", "documents"}, optional
        What the objects are, where the file does not tell.
    label, group : str, optional
        The column of the class, and of what folds must not tear apart. In FASTA, FASTQ and Stockholm files a key of the
        headers, as in ``class=exon``, or a regular expression with one group. False: none.
    id, time, text : str, optional
        Other columns. With a time, or identifiers that come again, a table is long: a row is a step, or a point, of an
        object.
    channels : str or list of str, optional
        The columns with numbers or symbols; by default all that are nothing else. In an .npz file the array of objects.
    layout : {"time-first", "channels-first"}, optional
        Of 3-D arrays and nested lists.
    alphabet : "dna", "rna", "protein", or symbols, optional
        Of sequences; by default what the letters of the whole file tell.
    labels : mapping or path, optional
        Classes by identifier, for FASTA, FASTQ and Stockholm files: a mapping, or a table with the columns `id` and
        `label`.
    gaps : {"keep", "remove"}, optional
        What becomes of gaps; by default they are kept where all records have one length.
    missing : str or list of str, optional
        More spellings of missing numbers, such as "-999".
    header : bool, optional
        False: a table without names of columns, which are then 1, 2, ...
    delimiter, encoding : str, optional
        Of text; by default what the first line and a byte order mark show, or else UTF-8.
    decimal : {".", ","}, optional
        What stands before decimals in CSV and TSV files; a point, where nothing is given.
    max_expansion : float, optional
        How many times its size a compressed file, and the objects made of any file, may take in memory, beyond 16 MB:
        100 where nothing is given. A line of compressed text counts its length and 64 bytes. Small files that expand
        to many GB are mostly made to do harm.

    Returns
    -------
    dataset : Dataset
        Series and points are float64 arrays (T, d); labels are strings where the format has no types.

    Raises
    ------
    ReadError
        Naming file, line, what was expected, what came, and what to do.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from genkern import read
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "sites.fa")
    ...     _ = path.write_text(">a class=true\nacgt\n>b class=decoy\nACGN\n")
    ...     data = read(path)
    >>> data.X, data.y.tolist(), data.meta["alphabet"]
    (['ACGT', 'ACGN'], ['true', 'decoy'], 'dna')
    """
    given = {name: value for name, value in locals().items() if name != "path"}
    told = Options.of(given)
    sets: list[tuple[Dataset, Notes]] = []
    merged = Notes()
    items = _items(path, told)
    for label, item in each(items, map(_weight, items)):
        notes = Notes()
        parts = [_labelled(part, label) for part in _parts(item, _of_item(told, label), notes, None)]
        _merge(merged, notes, sets[-1][1] if sets else None, item)
        sets += [(part, notes) for part in parts]
    whole = joined(_alike([part for part, _ in sets]), {})
    _remark(whole, merged)
    return replace(whole, meta={**whole.meta, **merged.meta()})


def stream(path: Any, *, batch: int = 1000, **options: Any) -> Iterator[Dataset]:
    """Yield the objects of `read`, some at a time, in constant memory.

    Parameters
    ----------
    path : as in `read`
    batch : int, default=1000
        Objects in each set; the last may have fewer.
    **options
        As in `read`.

    Yields
    ------
    dataset : Dataset
        Its ``meta`` is that of all so far. FASTA, FASTQ and tables in text are read twice, since what they are depends
        on all of them; Parquet, Arrow and .npz files are held whole. In long tables the rows of an object must follow
        each other.
    """
    told = Options.of(options)
    check_int(batch, "batch", "stream", minimum=1)
    return _batches(path, told, batch)


def _batches(path: Any, told: Options, batch: int) -> Iterator[Dataset]:
    """Yield sets of `batch` objects."""
    merged, last = Notes(), None
    waiting: list[Dataset] = []
    items = _items(path, told)
    for label, item in each(items, map(_weight, items)):
        notes, begun = Notes(), False
        for part in _parts(item, _of_item(told, label), notes, batch):
            if not begun:
                _merge(merged, notes, last, item, rules=False)
                last, begun = notes, True
            waiting = _alike([*waiting, _labelled(part, label)])
            meta = _snapshot(merged, notes)
            if sum(map(len, waiting)) >= batch:
                whole = joined(waiting, {})
                end = len(whole) // batch * batch
                for start in range(0, end, batch):
                    yield _slice(whole, start, start + batch, meta)
                waiting = [_slice(whole, end, len(whole), {})] if end < len(whole) else []
        _merge(merged, notes, None, item, rules=True, facts=False)
    if waiting:
        whole = joined(waiting, {})
        yield replace(whole, meta={**whole.meta, **merged.meta()})


def _slice(data: Dataset, start: int, stop: int, meta: dict[str, Any]) -> Dataset:
    """Return the objects from start to stop."""
    part = slice(start, stop)
    beside: tuple[Any, ...] = (data.y, data.ids, data.groups, data.split)
    y, ids, groups, split = (None if x is None else x[part] for x in beside)
    return Dataset(data.X[part], y, ids, groups, data.kind, meta if split is None else {**meta, "split": split})


def _snapshot(merged: Notes, notes: Notes) -> dict[str, Any]:
    """Return the facts and rules so far."""
    copy = Notes()
    copy.facts = dict(merged.facts)
    for one in (merged, notes):
        for rule, entry in one.rules.items():
            copy.add(rule, entry["count"], entry["first"])
    return copy.meta()


def _items(path: Any, told: Options) -> list[tuple[Any, Any]]:
    """Return what is read, each with the class that it is of, or None."""
    if isinstance(path, Mapping) and not hasattr(path, "columns"):
        if told.label not in (None, False):
            raise ValueError(f"read: {{class: path}} says the labels already. Got label={told.label!r}; leave it out.")
        items = list(path.items())
    elif isinstance(path, list | tuple):
        items = [(None, item) for item in path]
    else:
        return [(None, path)]
    if not items or not all(is_path(item) for _, item in items):
        raise TypeError(f"read: expected paths. Got {quoted(path)}; objects in memory need no reading: Dataset(X, y).")
    return items


def _weight(item: tuple[Any, Any]) -> float:
    """Return the size of a file, for progress."""
    path = item[1]
    return float(os.stat(path).st_size) if is_path(path) and os.path.isfile(path) else 1.0


def _of_item(told: Options, label: Any) -> Options:
    return told if label is None else replace(told, label=False)


def _labelled(part: Dataset, label: Any) -> Dataset:
    return part if label is None else replace(part, y=np.full(len(part), label))


def _merge(
    merged: Notes, notes: Notes, before: Notes | None, item: Any, rules: bool = True, facts: bool = True
) -> None:
    """Add the notes on one file to those on all; files of different alphabets are refused."""
    if facts:
        for key in ("alphabet", "format"):
            old, new = merged.facts.get(key), notes.facts.get(key)
            if before is not None and key == "alphabet" and old != new and {old, new} & {"dna", "rna", "protein"}:
                came = f"{new} in {item}, after {old}"
                raise ReadError(str(item), None, "one alphabet in all files", came, "Say which by alphabet=.")
            if old is not None and key == "format" and new != old:
                notes.facts["format"] = f"{old}, {new}"
        merged.facts.update(notes.facts)
        merged.facts["files"] = [*merged.facts.get("files", []), str(item) if is_path(item) else type(item).__name__]
    for rule, entry in notes.rules.items() if rules else ():
        merged.add(rule, entry["count"], entry["first"])


def _alike(parts: list[Dataset]) -> list[Dataset]:
    """Return parts that can be joined: of one kind and width, with labels and such in all or in none."""
    first = parts[0]
    for part in parts[1:]:
        for name in ("kind", "y", "ids", "groups", "split"):
            a, b = getattr(first, name), getattr(part, name)
            if (a != b) if name == "kind" else ((a is None) != (b is None)):
                came = f"{name} {a!r} and {b!r}" if name == "kind" else f"{name} in one, none in another"
                raise ReadError(
                    "read", None, "files of the same kind", came, "Read them one by one, or say kind=, label=."
                )
        widths = [x.shape[1] for x in (first.X[0], part.X[0]) if isinstance(x, np.ndarray) and x.ndim == 2]
        if len(set(widths)) > 1:
            raise ReadError(
                "read", None, "the same channels in all files", f"{widths} of them", "Read them one by one."
            )
    return parts


def _parts(item: Any, options: Options, notes: Notes, batch: int | None) -> Iterator[Dataset]:
    """Yield the objects of one file, or of one table in memory, in pieces; all at once if batch is None."""
    nothing = True
    for part in _read_parts(item, options, notes, batch):
        nothing = False
        yield part
    if nothing:
        name = str(item) if is_path(item) else type(item).__name__
        raise ReadError(name, None, "at least one object", "empty records alone", "Look at how it was made.")


def _read_parts(item: Any, options: Options, notes: Notes, batch: int | None) -> Iterator[Dataset]:
    """Return the pieces of one file or table by its format."""
    if not is_path(item):
        return _memory_parts(item, options, notes, batch)
    if options.format is not None:
        check_option(options.format, FORMATS, "format", "read")
    path = Path(item)
    if path.is_dir():
        if options.format not in (None, "folder"):
            raise ReadError(str(item), None, f"a {options.format} file", "a folder", "Give the path of a file.")
        notes.facts["format"] = "folder"
        return read_folder(path, options, notes, batch)
    source = Source(path, notes, options.encoding, options.max_expansion)
    notes.facts["format"] = form = options.format or detect_format(source)
    notes.facts["compression"] = source.compression
    if form in ("fasta", "fastq", "stockholm"):
        return read_letters(source, options, batch is None)
    if form == "ts":
        return read_ts(source, options, batch)
    if form == "arff":
        return read_arff(source, options, batch)
    if form == "npz":
        return iter([read_npz(source, options)])
    if form == "folder":
        raise ReadError(str(item), None, "a folder", "a file", "Leave format= out, or name the format of the file.")
    tables = read_lines if form == "lines" else read_tables
    return read_table(
        tables(source, options, batch), options, batch is not None, lambda: tables(_quiet(source), options, batch)
    )


def _quiet(source: Source) -> Source:
    other = source.quiet()
    other.notes.facts["format"] = source.notes.facts["format"]
    return other


def _memory_parts(value: Any, options: Options, notes: Notes, batch: int | None) -> Iterator[Dataset]:
    """Return the objects of a table or array in memory."""
    if options.max_expansion is not None:
        raise ValueError("read: max_expansion= says nothing about what is in memory already; leave it out.")
    library = type(value).__module__.partition(".")[0]
    notes.facts["format"] = library
    if isinstance(value, np.ndarray):
        options.refuse(("layout",), "an array")
        X, kind = array_objects(value, Memory("the array", notes), options)
        return iter([Dataset(X, kind=kind)])
    if library == "awkward":
        columns = awkward_columns(value)
        table = Table(Memory("the array", notes), columns, list(range(1, len(value) + 1)))
        if not len(value):
            raise table.source.error(None, "objects", "none", "Look at how the array was made.")
        return read_table(iter([table]), options, False, lambda: iter([table]))
    if hasattr(value, "columns") or hasattr(value, "column_names"):
        return read_table(frame_tables(value, notes, None), options, False, lambda: iter(()))
    raise refuse_memory(value)


def detect_format(source: Source) -> str:
    """Return the format that the ending of a name tells, or else the first bytes."""
    for form, suffixes in FORMATS.items():
        if source.suffix in suffixes:
            return form
    head = source.head().lstrip(b"\xef\xbb\xbf").lstrip()
    found = next((form for magic, form in MAGIC.items() if head.startswith(magic)), None)
    lines = [line.strip() for line in head[:100_000].splitlines() if line.strip() and line[:1] not in b"%#"]
    starts = {line.split()[0].lower() for line in lines if line.startswith(b"@")}
    if found is None and starts & {b"@relation", b"@attribute"}:
        found = "arff"
    elif found is None and starts & {b"@problemname", b"@classlabel", b"@univariate", b"@timestamps"}:
        found = "ts"
    elif found is None and head.startswith(b"@") and len(lines) > 2 and lines[2].startswith(b"+"):
        found = "fastq"
    if found is None:
        came = f"the ending {source.suffix!r} and {quoted(head[:40].decode('latin1'))}" if head else "an empty file"
        remedy = f"Name the format: format= one of {', '.join(FORMATS)} (lines: a text in each line)."
        raise source.error(None, "a known format", *(foreign(source.head()) or (came, remedy)))
    return found


def _remark(data: Dataset, notes: Notes) -> None:
    """Note what is worth knowing about the whole set: lengths, constant channels, identifiers that come twice."""
    lengths = {len(x) for x in data.X}
    notes.facts["kind"] = data.kind
    notes.facts["objects"] = len(data)
    notes.facts["lengths"] = [min(lengths), max(lengths)]
    if "aligned" in notes.facts and len(notes.facts["files"]) > 1 and len(lengths) > 1:
        notes.facts["aligned"] = "lengths differ"  # between files, each of which may have one
    if data.kind in ("series", "points") and isinstance(data.X[0], np.ndarray):
        low = np.min([np.fmin.reduce(x, axis=0) for x in data.X], axis=0)
        high = np.max([np.fmax.reduce(x, axis=0) for x in data.X], axis=0)
        constant = np.flatnonzero(low == high).tolist()
        if constant and sum(map(len, data.X)) > 1:
            named = notes.facts.get("columns", {}).get("channels", [])
            by_name = len(named) == len(low)  # in a row for each object, columns are times
            notes.facts["constant channels"] = [named[i] if by_name else f"number {i}" for i in constant]
    if data.ids is not None and len(set(data.ids)) < len(data.ids):
        seen: set[str] = set()
        doubled = next(name for name in data.ids if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        notes.add("identifiers that come again, kept", len(data.ids) - len(set(data.ids)), repr(doubled))
