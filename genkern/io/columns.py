"""Parquet and Arrow files as frames; what they expand to is counted first, since a few bytes can expand to many GB."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from importlib.util import find_spec
from io import BytesIO
from typing import Any

import numpy as np

from genkern.io.errors import ReadError, quoted
from genkern.io.files import Source, needed

BACKENDS = ("pyarrow", "polars", "pandas")
ARROW = b"ARROW1"
DICTIONARY = 2  # the kind of a message that holds one
CELL = 8.0  # bytes that a cell takes at least
ROWS = 4096  # of a Parquet file that are decoded at a time


def frame_of(source: Source, form: str) -> Any:
    """Return a Parquet or Arrow file as a frame of the first backend that is installed."""
    backend = next((name for name in BACKENDS if find_spec(name)), None)
    if backend is None:
        raise needed("pyarrow, polars or pandas", "tables", f"Reading {form} files")
    data = source.whole()
    try:
        if backend == "pyarrow":
            return _parquet(source, data) if form == "parquet" else _arrow(source, data)
        if backend == "polars":
            import polars

            return polars.read_parquet(BytesIO(data)) if form == "parquet" else polars.read_ipc(BytesIO(data))
        import pandas

        return pandas.read_parquet(BytesIO(data)) if form == "parquet" else pandas.read_feather(BytesIO(data))
    except ReadError:
        raise
    except Exception as error:  # of many types, by library
        came = f"damaged or other data ({type(error).__name__}: {quoted(error)})"
        raise source.error(None, f"a {form} file", came, "Make or download it again.") from None


def _parquet(source: Source, data: bytes) -> Any:
    """Return the table of a Parquet file; texts stay dictionaries, so that each is held once.

    Nothing is decoded unless what the file says of its sizes is within bounds, and then some rows at a time.
    """
    import pyarrow
    import pyarrow.parquet

    about = pyarrow.parquet.read_metadata(BytesIO(data))
    chunks = [about.row_group(k).column(c) for k in range(about.num_row_groups) for c in range(about.num_columns)]
    source.allow(sum(chunk.total_uncompressed_size for chunk in chunks))
    source.allow(CELL * (about.num_rows * about.num_columns + sum(chunk.num_values for chunk in chunks)))
    texts = sorted({chunk.path_in_schema for chunk in chunks if chunk.physical_type == "BYTE_ARRAY"})
    file = pyarrow.parquet.ParquetFile(BytesIO(data), read_dictionary=texts)
    return _checked(source, file.schema_arrow, file.iter_batches(ROWS))


def _arrow(source: Source, data: bytes) -> Any:
    """Return the table of an Arrow file."""
    import pyarrow
    import pyarrow.feather

    if not data.startswith(ARROW):  # an older format, without compression
        return pyarrow.feather.read_table(BytesIO(data)).combine_chunks()
    count = pyarrow.ipc.open_file(data).num_record_batches
    inside = pyarrow.py_buffer(data)[8:]  # messages one after the other, as in a stream
    expanded = 0.0
    for message in pyarrow.ipc.MessageReader.open_stream(inside):
        if message.type in ("dictionary batch", "record batch"):
            expanded += _expanded(message.metadata.to_pybytes(), message.body.to_pybytes())
            source.allow(expanded)
    stream = pyarrow.ipc.open_stream(inside)
    table = _checked(source, stream.schema, stream)
    if len(table.to_batches()) > count:
        raise ValueError("more batches than it lists")
    return table


def _checked(source: Source, schema: Any, batches: Iterator[Any]) -> Any:
    """Return the table of batches that are what their types say, and not too large as lists of Python."""
    import pyarrow

    kept, size = [], 0.0
    for batch in batches:
        batch.validate(full=True)
        size += sum(map(_listed, batch.columns))
        source.allow(size)
        kept.append(batch)
    return pyarrow.Table.from_batches(kept, schema)


def _listed(array: Any) -> float:
    """Return the bytes of the cells of an Arrow array, each on its own."""
    import pyarrow.compute
    from pyarrow import types

    kind, size = array.type, CELL * len(array)
    if types.is_dictionary(kind):
        values = array.dictionary
        if types.is_string(values.type) or types.is_large_string(values.type):
            lengths = pyarrow.compute.binary_length(values)
            size += pyarrow.compute.sum(lengths.take(array.indices)).as_py() or 0
    elif types.is_string_view(kind) or types.is_binary_view(kind):
        views = array.buffers()[1]
        lengths = np.frombuffer(views, np.int32)[4 * array.offset :: 4][: len(array)]
        size += float(lengths.sum(dtype=np.int64))
    elif types.is_struct(kind):
        size += sum(_listed(array.field(k)) for k in range(kind.num_fields))
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        size += _listed(array.flatten())
    elif types.is_nested(kind) or types.is_run_end_encoded(kind):
        raise ValueError(f"a column of type {kind}")
    return size + array.nbytes


def _expanded(head: bytes, body: bytes) -> float:
    """Return the bytes that a message of an Arrow file expands to: its cells, and its buffers without compression.

    The message is a table of FlatBuffers (Message.fbs of the Arrow format): a body of several buffers, each of which
    begins, where they are compressed, with its own length before that.
    """

    def number(form: str, at: int) -> int:
        return int(struct.unpack_from(form, head, at)[0])

    def slot(table: int, index: int) -> int:
        """Return where a field of a table is, zero if it has none."""
        layout = table - number("<i", table)
        known = 4 + 2 * index < number("<H", layout)
        offset = number("<H", layout + 4 + 2 * index) if known else 0
        return table + offset if offset else 0

    def target(at: int) -> int:
        return at + number("<I", at)

    message = target(0)
    batch = target(slot(message, 2))
    if head[slot(message, 1)] == DICTIONARY:
        batch = target(slot(batch, 1))
    nodes, buffers = target(slot(batch, 1)), target(slot(batch, 2))
    cells = sum(number("<q", nodes + 4 + 16 * k) for k in range(number("<I", nodes)))
    size = len(body)
    if slot(batch, 3):
        spans = (struct.unpack_from("<qq", head, buffers + 4 + 16 * k) for k in range(number("<I", buffers)))
        size += sum(max(0, struct.unpack_from("<q", body, start)[0]) for start, length in spans if length >= 8)
    return CELL * cells + size
