"""Arrays: .npz files, and arrays in memory, also those of awkward."""

from __future__ import annotations

import math
import zipfile
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.io.dataset import Dataset
from genkern.io.errors import ReadError, quoted
from genkern.io.files import Source
from genkern.io.foreign import zipped
from genkern.io.numbers import EXACT
from genkern.io.objects import TURN
from genkern.io.options import KINDS, STRINGS, Options
from genkern.io.tables import Memory

MEANT = {"y": "label", "label": "label", "labels": "label", "groups": "group", "ids": "id", "split": "split"}
LAYOUT = "the arrays 'values' and 'lengths', or 'X'"


def read_npz(source: Source, options: Options) -> Dataset:
    """Return the objects of an .npz file: `values` and `lengths`, or `X`."""
    options.refuse(("group", "layout", "id", "channels"), "an .npz file")
    arrays = _load(source)
    objects = _pick_objects(source, arrays, options)
    X, kind = objects
    roles = _roles(source, arrays, options, len(X))
    ids = roles.get("id")
    return Dataset(
        X,
        roles.get("label"),
        None if ids is None else [str(name) for name in ids.tolist()],
        roles.get("group"),
        kind,
        {} if roles.get("split") is None else {"split": roles["split"]},
    )


def _load(source: Source) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file; none that needs pickles."""
    data = BytesIO(source.whole())
    try:
        with zipfile.ZipFile(data) as stored:
            entries = stored.infolist()
            source.allow(sum(entry.file_size for entry in entries))  # more than these are not decompressed
            if entries and not any(entry.filename.endswith(".npy") for entry in entries):
                raise source.error(None, "an .npz file of plain arrays", *zipped(stored.namelist()))
            arrays = {entry.filename.removesuffix(".npy"): _array(stored, entry) for entry in entries}
        if len(arrays) < len(entries):
            raise ValueError("two arrays of one name")
    except ReadError:
        raise
    except Exception as error:  # damaged headers and streams raise many types
        came = f"{type(error).__name__}: {quoted(error)}"
        remedy = "Write it by numpy.savez, without objects."
        raise source.error(None, "an .npz file of plain arrays", came, remedy) from None
    return arrays


def _array(stored: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    """Return one array of a file, whose header must tell how many bytes there are."""
    with stored.open(entry) as file:
        first, _ = version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"{entry.filename} is of format {first}")
        head = np.lib.format.read_array_header_1_0 if first == 1 else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = head(file)
        if dtype.hasobject or not dtype.itemsize:
            raise ValueError(f"{entry.filename} is of type {dtype}")
        content = file.read()
    if math.prod(shape) * dtype.itemsize != len(content) or min(shape, default=0) < 0:
        raise ValueError(f"{entry.filename} has {len(content)} bytes for shape {shape} of {dtype}")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if fortran else "C").copy(order="K")


def _pick_objects(source: Source, arrays: dict[str, NDArray[Any]], options: Options) -> tuple[list[Any], str]:
    """Return the objects and their kind."""
    names = options.channels
    if names is not None:
        if len(names) != 1 or names[0] not in arrays:
            raise source.error(None, f"an array {names[0]!r}", ", ".join(arrays), "Name one of them by channels=.")
        return array_objects(arrays[names[0]], source, options)
    if "values" in arrays and "lengths" in arrays and "X" not in arrays:
        return _cut(source, arrays, options)
    if "X" in arrays and "values" not in arrays:
        return array_objects(arrays["X"], source, options)
    remedy = "Name the array with the objects by channels=."
    raise source.error(None, LAYOUT, f"the arrays {', '.join(arrays) or 'of none'}", remedy)


def _cut(source: Source, arrays: dict[str, NDArray[Any]], options: Options) -> tuple[list[Any], str]:
    """Return the objects whose elements stand below each other in `values`."""
    values, lengths = arrays["values"], arrays["lengths"]
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or values.ndim not in (1, 2) or not values.size:
        came = f"values of shape {values.shape}, lengths of shape {lengths.shape} and type {lengths.dtype}"
        raise source.error(None, "values (N,) or (N, d) and integer lengths (n,)", came, "Mend the arrays.")
    sizes = [int(length) for length in lengths]
    if not sizes or min(sizes) < 1 or sum(sizes) != len(values):
        came = f"{len(values)} rows of values, and {len(sizes)} lengths with sum {sum(sizes)}"
        raise source.error(None, "lengths of at least 1 that add up to the rows of values", came, "Mend the arrays.")
    ends = np.cumsum(sizes)
    stored = str(arrays["kind"]) if "kind" in arrays and arrays["kind"].ndim == 0 else None
    if stored not in (None, *KINDS):
        raise source.error(None, f"a kind of {', '.join(KINDS)}", quoted(stored), "Write the file again.")
    kind = options.kind or stored
    if stored in STRINGS and values.dtype == np.uint32 and values.ndim == 1:
        try:
            text = values.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
        except UnicodeDecodeError as error:
            raise source.error(None, "code points in values", str(error), "Write the file again.") from None
        return [text[end - size : end] for size, end in zip(sizes, ends.tolist())], str(kind)
    if values.dtype.kind not in "fiub" or kind in ("documents", "codes"):
        raise source.error(None, "numbers in values", str(values.dtype), "Write texts to another format.")
    if kind == "symbols" or (values.ndim == 1 and values.dtype.kind in "iu" and kind is None):
        if kind is None:
            came = f"integers ({values.dtype})"
            raise source.error(None, "symbols or series", came, "Say which by kind='symbols' or kind='series'.")
        return [part.copy() for part in np.split(values, ends[:-1])], "symbols"
    numbers = _floats(source, values).reshape(len(values), -1)
    return [part.copy() for part in np.split(numbers, ends[:-1])], kind or "series"


def array_objects(array: NDArray[Any], source: Source | Memory, options: Options) -> tuple[list[Any], str]:
    """Return the objects of an array (n, T), (n, T, d) or (n, d, T), or of n strings, and their kind."""
    if not array.size:
        raise source.error(None, "objects", f"an empty array of shape {array.shape}", "Look at how it was made.")
    if array.dtype.kind in "US" and array.ndim == 1:
        if options.kind is None or options.kind in ("series", "points"):
            remedy = "Say which by kind='symbols', 'codes' or 'documents'."
            raise source.error(None, "strings of a known kind", "strings", remedy)
        return [str(x) for x in array.astype(str)], options.kind
    if array.dtype.kind not in "fiub" or array.ndim not in (2, 3):
        came = f"an array of shape {array.shape} and type {array.dtype}"
        raise source.error(None, "numbers (n, T), (n, T, d) or (n, d, T)", came, "Name the right array, or use lists.")
    if array.ndim == 3:
        if options.layout is None:
            came = f"an array of shape {array.shape}"
            raise source.error(None, "a layout for a 3-D array", came, f"Say which: {TURN} of each object.")
        table = _floats(source, array)
        table = table.transpose(0, 2, 1) if options.layout == "channels-first" else table
        return [np.ascontiguousarray(x) for x in table], options.kind or "series"
    if array.dtype.kind in "iub" and options.kind is None:
        came = f"a 2-D array of integers ({array.dtype})"
        raise source.error(None, "symbols or series", came, "Say which by kind='symbols' or kind='series'.")
    if options.kind in ("symbols", "codes"):
        return list(array), options.kind
    if options.kind == "points":
        return [x.reshape(1, -1) for x in _floats(source, array)], "points"
    return [x.reshape(-1, 1) for x in _floats(source, array)], "series"


def _floats(source: Source | Memory, array: NDArray[Any]) -> NDArray[np.float64]:
    """Return numbers as float64, exactly; NaN is missing."""
    values = array.astype(np.float64)
    odd = np.isinf(values)
    if array.dtype.kind in "iu":
        odd |= np.abs(values) > EXACT
    if odd.any():
        at = tuple(int(i) for i in np.argwhere(odd)[0])
        raise source.error(
            None, "finite numbers that float64 holds", f"{array[at]} at {at}", "Write NaN for missing ones."
        )
    source.notes.add("missing values (NaN)", int(np.isnan(values).sum()), source.name)
    return values


def _roles(source: Source, arrays: dict[str, NDArray[Any]], options: Options, n: int) -> dict[str, Any]:
    """Return the arrays that hold labels, identifiers, groups and the split, by role."""
    found: dict[str, Any] = {}
    for role in ("label", "group", "id"):
        told = getattr(options, role)
        if told is not None and told is not False:
            if told not in arrays:
                raise source.error(None, f"an array {told!r}, as {role}= says", ", ".join(arrays), "Name one of them.")
            found[role] = arrays[told]
    for name, role in MEANT.items():
        if name in arrays and role not in found and getattr(options, role, None) is not False:
            if role == "split" and not set(map(str, arrays[name].ravel())) <= {"train", "test"}:
                continue
            found[role] = arrays[name]
    for role, array in found.items():
        if array.shape != (n,):
            raise source.error(
                None, f"one {role} for each of {n} objects", f"shape {array.shape}", f"Use {role}=False."
            )
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise source.error(None, f"a {role} for each object", "NaN", f"Fill it, or read with {role}=False.")
    known = {"values", "lengths", "X", "kind", *(options.channels or ())}
    rest = [name for name, array in arrays.items() if name not in known and not any(array is f for f in found.values())]
    if rest:
        source.notes.facts["unused arrays"] = rest
    return found


def awkward_columns(array: Any) -> dict[str, list[Any]]:
    """Return an awkward array as columns: its fields, or one column of objects."""
    if array.fields:
        return {name: array[name].to_list() for name in array.fields}
    return {"objects": array.to_list()}


def refuse_memory(value: Any) -> ReadError:
    """Return the error for what is neither a path nor a table."""
    expected = "a path, a list of paths, {class: path}, a data frame, an Arrow table, an awkward array or a 3-D array"
    return ReadError("read", None, expected, type(value).__name__, "Objects in memory need no reading: Dataset(X, y).")
