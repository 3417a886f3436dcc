"""Writing: a set of objects becomes a file that `read` gives back bit for bit."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from genkern.data.whole_files import whole_file
from genkern.io.dataset import Dataset
from genkern.io.files import SUFFIXES, needed
from genkern.io.options import STRINGS
from genkern.io.read import FORMATS
from genkern.progress import reach

COLUMN = {"documents": "document", "symbols": "symbols", "codes": "codes", "series": "series", "points": "points"}


def write(dataset: Dataset, path: Any, format: str | None = None) -> None:
    """Write a set of objects; the file is written beside and renamed, so that it is whole or not there.

    Parameters
    ----------
    dataset : Dataset
        With its kind.
    path : path
        Its ending says the format and the compression (``.gz``, ``.bz2``, ``.xz``, ``.zst``).
    format : {"fasta", "ts", "csv", "tsv", "wide", "jsonl", "parquet", "npz"}, optional
        "csv" and "tsv" are long for series and points, "wide" has one row per series of one channel.
        FASTA holds symbols and .ts series, without identifiers, groups and split, which is warned of. Text formats
        hold labels as strings.

    Raises
    ------
    ValueError
        Naming the object that the format cannot hold.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from genkern import Dataset, io
    >>> with TemporaryDirectory() as folder:
    ...     io.write(Dataset(["ACGT", "GG"], kind="symbols"), Path(folder, "two.fa.gz"))
    ...     io.read(Path(folder, "two.fa.gz")).X
    ['ACGT', 'GG']
    """
    target = Path(path)
    packed = SUFFIXES.get(target.suffix.lower(), "none")
    suffix = (target.with_suffix("") if packed != "none" else target).suffix.lower()
    form = format or next((name for name, endings in FORMATS.items() if suffix in endings), None)
    if form not in WRITERS:
        raise ValueError(
            f"write: expected a format of {', '.join(WRITERS)}. Got {form or suffix!r}; name it by format=."
        )
    if not len(dataset) or dataset.kind not in COLUMN:
        raise ValueError(f"write: expected objects of a known kind. Got {dataset!r}, kind={dataset.kind!r}; say kind=.")
    steps = sum(map(len, dataset.X)) if form in ("csv", "tsv") and dataset.kind not in STRINGS else len(dataset)
    with whole_file(target, "write") as raw, _packer(raw, packed) as file:
        for done, piece in enumerate(WRITERS[form](dataset)):
            file.write(piece)
            reach(done / steps)


def _packer(raw: Any, packed: str) -> Any:
    """Return a file that compresses into another, which stays open."""
    if packed == "zstd":
        try:
            import zstandard
        except ImportError:
            raise needed("zstandard", "bio", "Writing .zst files") from None
        return zstandard.ZstdCompressor().stream_writer(raw, closefd=False)
    if packed == "none":
        return io.BufferedWriter(_Open(raw))
    if packed == "gzip":
        return gzip.GzipFile("", "wb", fileobj=raw, mtime=0)
    return (bz2.BZ2File if packed == "bzip2" else lzma.LZMAFile)(raw, "wb")


class _Open(io.RawIOBase):
    """A file that is not closed with what writes into it."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return int(self.raw.write(data))


def _refuse(index: int, expected: str, came: Any, remedy: str) -> ValueError:
    return ValueError(f"write: object {index}: expected {expected}. Got {came!r:.80}; {remedy}.")


def _warn_lost(data: Dataset, form: str, lost: tuple[str, ...]) -> None:
    """Warn of parts that a format has no place for."""
    gone = [name for name in lost if getattr(data, name) is not None]
    if gone:
        warnings.warn(
            f"write: {form} has no place for {' and '.join(gone)}; jsonl keeps all.", UserWarning, stacklevel=5
        )


def _names(data: Dataset) -> list[str]:
    return data.ids if data.ids is not None else [str(k + 1) for k in range(len(data))]


def _fasta(data: Dataset) -> Iterator[bytes]:
    """Yield a FASTA file."""
    if data.kind not in ("symbols", "codes"):
        raise ValueError(f"write: a FASTA file holds symbols. Got {data.kind}; use jsonl, npz or another format.")
    _warn_lost(data, "FASTA", ("split",))
    labels = None if data.y is None else data.y.astype(str)
    for k, (x, name) in enumerate(zip(data.X, _names(data))):
        if not isinstance(x, str) or not x or x[0] in ">;" or any(not c.isprintable() or c.isspace() for c in x):
            raise _refuse(k, "a string of printable symbols, not beginning with > or ;", x, "use jsonl")
        fields = [name]
        for key, values in (("class", labels), ("group", data.groups)):
            if values is not None:
                fields.append(f"{key}={values[k]}")
        for field in (word.partition("=")[2] for word in fields[1:]):
            if not field or any(c.isspace() or not c.isprintable() or c in "|;," for c in field):
                raise _refuse(k, "labels and groups without spaces, '|', ';' and ','", field, "use jsonl")
        if not name or not name.isprintable() or name.split() != [name]:
            raise _refuse(k, "an identifier without spaces", name, "use jsonl")
        yield _encoded(k, f">{' '.join(fields)}\n{x}\n")


def _encoded(k: int, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise _refuse(k, "text that UTF-8 can hold", str(error), "remove half characters (surrogates)") from None


def _ts(data: Dataset) -> Iterator[bytes]:
    """Yield a .ts file."""
    if data.kind != "series":
        raise ValueError(f"write: a .ts file holds series. Got {data.kind}; use jsonl, npz or another format.")
    _warn_lost(data, "ts", ("ids", "groups", "split"))
    labels = None if data.y is None else data.y.astype(str)
    for k, label in enumerate(() if labels is None else labels):
        if not label or label.split() != [label] or not label.isprintable() or set(label) & set(":()"):
            raise _refuse(k, "a label without spaces, ':' and brackets", label, "use jsonl")
    sizes = {x.shape for x in _series(data)}
    missing = any(np.isnan(x).any() for x in data.X)
    width, equal = data.X[0].shape[1], len({size[0] for size in sizes}) == 1
    classes = "false" if labels is None else f"true {' '.join(np.unique(labels))}"
    name = "_".join(data.name.split()) or "genkern"
    flags = {"timeStamps": False, "missing": missing, "univariate": width == 1, "equalLength": equal}
    head = [f"@problemName {name}", *(f"@{key} {str(flag).lower()}" for key, flag in flags.items())]
    yield "\n".join([*head, f"@dimensions {width}", f"@classLabel {classes}", "@data", ""]).encode()
    for k, x in enumerate(data.X):
        fields = [",".join("?" if v != v else repr(v) for v in channel) for channel in x.T.tolist()]
        yield (":".join(fields + ([] if labels is None else [str(labels[k])])) + "\n").encode()


def _series(data: Dataset) -> list[Any]:
    """Return arrays (T, d) of one width, checked."""
    for k, x in enumerate(data.X):
        if not isinstance(x, np.ndarray) or x.ndim != 2 or x.dtype != np.float64 or not x.size or np.isinf(x).any():
            raise _refuse(k, "finite numbers, float64 of shape (T, d)", x, "convert it")
        if x.shape[1] != data.X[0].shape[1]:
            raise _refuse(k, f"{data.X[0].shape[1]} channels, as object 0", x.shape, "take the same channels of all")
    return data.X


def _side(data: Dataset) -> dict[str, list[Any]]:
    """Return the columns beside the objects."""
    columns = {"id": data.ids, "label": data.y, "group": data.groups, "split": data.split}
    return {name: list(np.asarray(cells).tolist()) for name, cells in columns.items() if cells is not None}


def _delimited(delimiter: str, wide: bool = False) -> Callable[[Dataset], Iterator[bytes]]:
    """Return the writer of a table with delimiters."""

    def pieces(data: Dataset) -> Iterator[bytes]:
        names, rows = (_wide_rows if wide else _text_rows if data.kind in STRINGS else _long_rows)(data)
        for k, row in enumerate([names, *rows] if isinstance(rows, list) else _chain(names, rows)):
            out = io.StringIO()
            csv.writer(out, delimiter=delimiter, lineterminator="\n").writerow(row)
            text = out.getvalue()
            if "\r" in text or "\x00" in text:
                raise _refuse(max(k - 1, 0), "text without carriage returns and NULs", text, "use jsonl")
            yield _encoded(max(k - 1, 0), text)

    return pieces


def _chain(names: list[str], rows: Iterator[list[Any]]) -> Iterator[list[Any]]:
    yield names
    yield from rows


def _text_rows(data: Dataset) -> tuple[list[str], Iterator[list[Any]]]:
    """Return names and rows of a table of strings."""
    for k, x in enumerate(data.X):
        if not isinstance(x, str) or not x.strip():
            raise _refuse(k, "a string that is not empty", x, "use jsonl")
    side = _side(data)
    return [*side, COLUMN[str(data.kind)]], (list(row) for row in zip(*side.values(), data.X))


def _long_rows(data: Dataset) -> tuple[list[str], Iterator[list[Any]]]:
    """Return names and rows of a table with one row per step or point."""
    names, width = _names(data), _series(data)[0].shape[1]
    if len(set(names)) < len(names):
        raise ValueError("write: a long table needs an identifier for each object, and some come twice; use jsonl.")
    side = {name: cells for name, cells in _side(data).items() if name != "id"}
    timed = ["time"] if data.kind == "series" else []
    head = ["id", *timed, *(f"channel{c + 1}" for c in range(width)), *side]

    def rows() -> Iterator[list[Any]]:
        for k, (name, x) in enumerate(zip(names, data.X)):
            beside = [cells[k] for cells in side.values()]
            for step, values in enumerate(x.tolist()):
                yield [name, *([step] if timed else []), *("NaN" if v != v else repr(v) for v in values), *beside]

    return head, rows()


def _wide_rows(data: Dataset) -> tuple[list[str], Iterator[list[Any]]]:
    """Return names and rows of a table with one row per series; shorter ones end in empty cells."""
    if data.kind != "series" or _series(data)[0].shape[1] != 1:
        raise ValueError("write: a wide table holds series of one channel; use csv, which is long, or jsonl.")
    side, longest = _side(data), max(map(len, data.X))
    head = [*side, *(f"t{step + 1}" for step in range(longest))]

    def rows() -> Iterator[list[Any]]:
        for k, x in enumerate(data.X):
            cells = ["NaN" if v != v else repr(v) for v in x[:, 0].tolist()]
            yield [*(column[k] for column in side.values()), *cells, *[""] * (longest - len(cells))]

    return head, rows()


def _json_lines(data: Dataset) -> Iterator[bytes]:
    """Yield a file with one JSON object per line."""
    side, column = _side(data), COLUMN[str(data.kind)]
    if data.kind not in STRINGS:
        _series(data)
    for k, x in enumerate(data.X):
        row = {name: cells[k] for name, cells in side.items()}
        if isinstance(x, np.ndarray):
            x = [[None if v != v else v for v in step] for step in x.tolist()] if x.ndim == 2 else x.tolist()
        yield (json.dumps({**row, column: x}, allow_nan=False) + "\n").encode()


def _parquet(data: Dataset) -> Iterator[bytes]:
    """Yield a Parquet file."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise needed("pyarrow", "tables", "Writing Parquet files") from None
    X = data.X if data.kind in STRINGS else [x.tolist() for x in _series(data)]
    table = pyarrow.table({**_side(data), COLUMN[str(data.kind)]: X})
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file)
    yield file.getvalue()


def _npz(data: Dataset) -> Iterator[bytes]:
    """Yield an .npz file with values, lengths and what else there is."""
    if data.kind in STRINGS:
        for k, x in enumerate(data.X):
            if not isinstance(x, str):
                raise _refuse(k, "a string", x, "use jsonl for lists of symbols")
        values: Any = np.frombuffer("".join(data.X).encode("utf-32-le", "surrogatepass"), "<u4")
    else:
        values = np.concatenate(_series(data))
    beside = {"y": data.y, "ids": data.ids, "groups": data.groups, "split": data.split}
    arrays = {name: np.asarray(cells) for name, cells in beside.items() if cells is not None}
    file = io.BytesIO()
    lengths = np.array([len(x) for x in data.X])
    np.savez_compressed(file, values=values, lengths=lengths, kind=np.array(data.kind), **arrays)  # type: ignore[arg-type]
    yield file.getvalue()


WRITERS: dict[str, Callable[[Dataset], Iterator[bytes]]] = {
    "fasta": _fasta,
    "ts": _ts,
    "csv": _delimited(","),
    "tsv": _delimited("\t"),
    "wide": _delimited(",", wide=True),
    "jsonl": _json_lines,
    "parquet": _parquet,
    "npz": _npz,
}
