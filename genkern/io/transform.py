"""Features of objects that are read in batches, one batch in memory at a time."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from genkern.data.whole_files import check_place, whole_file
from genkern.validation import Floats

FORMATS = (".npy", ".zarr", ".parquet")


class Features(NamedTuple):
    """The features of a batch, and what came with its objects.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, p)
        Features.
    y : ndarray of shape (n,) or None
        Labels, where the batch is a ``Dataset`` that has them.
    ids : ndarray of shape (n,) or None
        Names of the objects.
    """

    X: Any
    y: Any
    ids: Any


def transform_stream(transformer: Any, batches: Iterable[Any]) -> Iterator[Features]:
    """Yield the features of objects in batches, in memory that does not grow with their number.

    Parameters
    ----------
    transformer : fitted transformer or pipeline of transformers
        Each row of what it returns must depend on its object alone, as that of every embedding does.
    batches : iterable of lists of objects, or of Dataset
        Such as ``io.stream(path)``.

    Yields
    ------
    features : Features
        ``X``, ``y`` and ``ids`` of a batch: what ``partial_fit`` of a learner takes.

    Examples
    --------
    >>> from genkern import Spectrum
    >>> from genkern.io import transform_stream
    >>> spectrum = Spectrum(1, alphabet="ab").fit(["ab"])
    >>> [part.X.tolist() for part in transform_stream(spectrum, [["aab"], ["b", "ba"]])]
    [[[2.0, 1.0]], [[0.0, 1.0], [1.0, 1.0]]]
    """
    for index, batch in enumerate(batches):
        try:
            table = transformer.transform(getattr(batch, "X", batch))
        except (TypeError, ValueError) as error:
            raise type(error)(f"In batch {index}, counted from 0: {error}") from error
        yield Features(table, getattr(batch, "y", None), getattr(batch, "ids", None))


def write_features(transformer: Any, batches: Iterable[Any], path: Any) -> int:
    """Write the features of objects in batches to a file; return how many objects there were.

    Parameters
    ----------
    transformer, batches
        As in ``transform_stream``.
    path : path
        ``NAME.npy`` or ``NAME.zarr``, a matrix (n, p), which ``numpy.load(path, mmap_mode="r")`` and zarr open without
        reading it; or ``NAME.parquet``, a table with the names of the features, and with columns ``id`` and ``label``
        where batches have these. Sparse features are written dense. The file is whole or not there.
    """
    target = Path(path)
    if target.suffix not in FORMATS:
        raise ValueError(f"write_features: 'path' must end in {', '.join(FORMATS)}. Got {str(path)!r}.")
    open_file = {".npy": _npy, ".zarr": _zarr, ".parquet": _parquet}[target.suffix]
    count = 0
    with open_file(target, transformer) as write:
        for part in transform_stream(transformer, batches):
            write(_dense(part.X), part)
            count += part.X.shape[0]
        if not count:
            raise ValueError("write_features: there are no objects.")
    return count


Writer = Callable[[Floats, Features], None]


def _dense(table: Any) -> Floats:
    return np.ascontiguousarray(table.toarray() if sparse.issparse(table) else table, np.float64)


@contextmanager
def _npy(path: Path, transformer: Any) -> Iterator[Writer]:
    """Append rows to an .npy file, whose head, of fixed length, is written last."""
    shape = [0, 0]
    with whole_file(path, "write_features") as stream:
        stream.write(_npy_head(0, 0))

        def write(table: Floats, part: Features) -> None:
            shape[:] = shape[0] + table.shape[0], table.shape[1]
            stream.write(table.data)

        yield write
        stream.seek(0)
        stream.write(_npy_head(*shape))


def _npy_head(rows: int, columns: int) -> bytes:
    """Return the head of an .npy file of doubles, as long for every number of rows and columns."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    return b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + text.ljust(117).encode() + b"\n"


@contextmanager
def _parquet(path: Path, transformer: Any) -> Iterator[Writer]:
    """Append row groups to a Parquet file."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError("write_features: .parquet needs pyarrow: pip install 'genkern[tables]'.") from None
    names = [str(name) for name in transformer.get_feature_names_out()]
    writers: list[Any] = []
    with whole_file(path, "write_features") as stream:

        def write(table: Floats, part: Features) -> None:
            beside = {"id": part.ids, "label": part.y}
            columns = {name: [str(one) for one in values] for name, values in beside.items() if values is not None}
            rows = pyarrow.table({**columns, **dict(zip(names, table.T, strict=True))})
            if not writers:
                writers.append(pyarrow.parquet.ParquetWriter(stream, rows.schema))
            writers[0].write_table(rows)

        try:
            yield write
        finally:
            for writer in writers:
                writer.close()


@contextmanager
def _zarr(path: Path, transformer: Any) -> Iterator[Writer]:
    """Append rows to an array of zarr, which has its name only when it is whole."""
    from genkern.gram.disk import zarr_module

    zarr = zarr_module("write_features")
    check_place(path, "write_features")
    beside = path.with_name(f".{path.name}.part")
    arrays: list[Any] = []

    def write(table: Floats, part: Features) -> None:
        if not arrays:
            shape = (0, table.shape[1])
            arrays.append(
                zarr.create_array(str(beside), shape=shape, chunks=table.shape, dtype="float64", overwrite=True)
            )
        arrays[0].append(table, axis=0)

    try:
        yield write
        beside.rename(path)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
