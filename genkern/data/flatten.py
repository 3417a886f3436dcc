"""From objects of known form to flat symbols, or to arrays of floats."""

from __future__ import annotations

import numbers
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.data.intake import (
    TEXT_KINDS,
    Ints,
    as_array,
    collect,
    form_of,
    locate,
    offsets_of,
    refuse_kind,
    wrong_shape,
)

Floats = NDArray[np.float64]

FORM_NAMES = {"string": "a string", "tokens": "a token list", "integers": "integers", "floats": "floats"}
USE_SYMBOLS = "symbols need a categorical emission, missing numbers are NaN"

# The remedy for transposed objects. No model has layout=, but all accept the result of check_objects.
TURN = {
    "time-first": 'If the objects are (d, T), pass check_objects(X, kind="series", layout="channels-first"), or '
    "transpose them: [np.transpose(x) for x in X], np.swapaxes(X, 1, 2) of an array.",
    "channels-first": 'If the objects are (T, d), pass layout="time-first".',
    "packed": "If the objects that were packed are (d, T), pack them again by "
    'check_objects(X, kind="series", layout="channels-first").',
}


class Flat(NamedTuple):
    """All symbols of a list of objects, concatenated; object i is symbols[offsets[i]:offsets[i + 1]].

    symbols: a string (N characters), a 1-D array of N numbers, or a list of N hashable tokens.
    """

    symbols: Any
    offsets: Ints

    def where(self, at: int, first: int | None = 0) -> str:
        """Return the text of a location: object (counted from `first`, left out if None) and position."""
        index, position = locate(self.offsets, at)
        return f"position {position}" if first is None else f"object {first + index}, position {position}"

    def take(self, rows: Ints) -> Flat:
        """Return the symbols, a string or an array, of some objects."""
        pieces = [self.symbols[self.offsets[i] : self.offsets[i + 1]] for i in rows.tolist()]
        symbols = "".join(pieces) if isinstance(self.symbols, str) else np.concatenate(pieces)
        return Flat(symbols, offsets_of(np.diff(self.offsets)[rows]))


def flatten_symbols(X: Any, who: str) -> Flat:
    """Return the symbols of all objects, raising on objects that are not symbol sequences."""
    objects = collect(X, who)
    if isinstance(objects, np.ndarray):
        if objects.ndim == 3:
            raise ValueError(
                f"{who}: symbol sequences in an array have 2 axes (n, T). Got shape {objects.shape}; for "
                "vectors of measurements use a continuous emission."
            )
        if objects.dtype.kind not in TEXT_KINDS:
            n, length = objects.shape
            return Flat(objects.ravel(), offsets_of(np.full(n, length)))
        objects = objects.tolist()
    if all(type(obj) is str and obj for obj in objects):
        forms = {"string"}
    elif _are_integer_arrays(objects):
        return Flat(np.concatenate(objects), offsets_of(np.fromiter(map(len, objects), np.int64, len(objects))))
    else:
        pairs = [_symbol_form(obj, i, who) for i, obj in enumerate(objects)]
        _refuse_mixture([form for form, _ in pairs], who)
        forms, objects = {form for form, _ in pairs}, [obj for _, obj in pairs]
    offsets = offsets_of(np.fromiter(map(len, objects), dtype=np.int64, count=len(objects)))
    if forms == {"string"}:
        return Flat("".join(objects), offsets)
    if forms <= {"integers", "floats"}:
        return Flat(_concatenate_numbers(objects, who), offsets)
    tokens = list(chain.from_iterable(x.tolist() if isinstance(x, np.ndarray) else x for x in objects))
    return _refuse_unhashable(Flat(tokens, offsets), who)


def _are_integer_arrays(objects: list[Any]) -> bool:
    """Return whether all objects are arrays (T,) of one integer type, none of them empty."""
    if set(map(type, objects)) != {np.ndarray}:
        return False
    forms = {(array.dtype, array.ndim) for array in objects}
    return len(forms) == 1 and objects[0].dtype.kind in "iu" and objects[0].ndim == 1 and all(map(len, objects))


def _symbol_form(obj: Any, index: int, who: str) -> tuple[str, Any]:
    """Return form and content of an object that may be a symbol sequence."""
    form, content = form_of(obj, index, who)
    if form == "rows" and isinstance(content, list | tuple) and isinstance(content[0], tuple):
        return "tokens", content
    if form == "rows":
        shape = content.shape if isinstance(content, np.ndarray) else "a nested list"
        raise ValueError(
            f"{who}: object {index} must be a string, a token list or a 1-D array of integers. Got {shape}; "
            "use .ravel() if it has one column, or a continuous emission if it holds measurements."
        )
    return form, content


def _refuse_mixture(forms: list[str], who: str) -> None:
    """Raise where some objects are strings and others are not."""
    for index, form in enumerate(forms):
        if (form == "string") != (forms[0] == "string"):
            raise TypeError(
                f"{who}: object {index} is {FORM_NAMES[form]}, object 0 is {FORM_NAMES[forms[0]]}; expected "
                "one type for all. Convert them, e.g. a string to tokens by list(s)."
            )


def _concatenate_numbers(objects: list[Any], who: str) -> NDArray[Any]:
    """Return numeric objects as one array, refusing integers too large for an array."""
    arrays = []
    for index, obj in enumerate(objects):
        array = np.asarray(obj)
        if array.dtype.kind == "O":  # None among floats, or Python ints beyond 64 bits
            array = np.asarray([np.nan if item is None else item for item in obj])
        if array.dtype.kind not in "iuf":
            raise ValueError(f"{who}: object {index} must hold integers of at most 64 bits; relabel its symbols.")
        arrays.append(array)
    return np.concatenate(arrays)


def _refuse_unhashable(flat: Flat, who: str) -> Flat:
    """Return flat tokens, raising at the first that cannot be a symbol."""
    if any(kind.__hash__ is None for kind in set(map(type, flat.symbols))):
        at = next(at for at, token in enumerate(flat.symbols) if type(token).__hash__ is None)
        token = flat.symbols[at]
        raise TypeError(
            f"{who}: {flat.where(at)}: a token must be hashable. Got {type(token).__name__} {token!r:.50}; "
            "use strings, ints or tuples."
        )
    return flat


def flatten_numbers(X: Any, who: str) -> list[Floats] | Floats:
    """Return X as float64: a list of (T,) or (T, d) arrays, or one 2-D or 3-D array."""
    objects = collect(X, who)
    if isinstance(objects, np.ndarray):
        return to_floats(objects, f"{who}: X")
    return [_object_floats(obj, index, who) for index, obj in enumerate(objects)]


def _object_floats(obj: Any, index: int, who: str) -> Floats:
    """Return one object as a float64 array of shape (T,) or (T, d)."""
    what = f"{who}: object {index}"
    if type(obj) is np.ndarray and obj.ndim in (1, 2) and obj.dtype.kind in "iuf":
        array: Floats = np.asarray(obj, dtype=np.float64)
    else:
        form, content = form_of(obj, index, who)
        if form == "string":
            raise TypeError(f"{what} must hold numbers. Got the string {content!r:.50}; {USE_SYMBOLS}.")
        array = to_floats(content, what)
    if array.ndim > 2 or array.size == 0:
        raise wrong_shape(array.shape, index, who)
    return array


def to_floats(value: Any, what: str) -> Floats:
    """Return an array or list as float64, refusing text and None, which NumPy would convert silently."""
    try:
        array = as_array(value)
    except ValueError:
        raise ValueError(f"{what} must be an array of numbers. Got {_uneven(value)}") from None
    refuse_kind(array.dtype, what)
    if array.dtype.kind not in TEXT_KINDS:
        return np.asarray(array, dtype=np.float64)
    array = np.asarray(value, dtype=object)
    for at, item in zip(np.ndindex(array.shape), array.ravel().tolist()):
        if not isinstance(item, numbers.Real) or isinstance(item, bool):
            where = at[0] if len(at) == 1 else at
            raise TypeError(
                f"{what}, position {where}: the argument must be neither a string nor None but a number. "
                f"Got {type(item).__name__} {item!r:.50}; {USE_SYMBOLS}."
            )
    return np.asarray(array, dtype=np.float64)


def _uneven(rows: Any) -> str:
    """Return the error message for a nested list that is no array, with the remedy."""
    sizes = [len(row) if isinstance(row, list | tuple) else np.size(row) for row in rows]
    odd = next((r for r, size in enumerate(sizes) if size != sizes[0]), None)
    if odd is None:
        return "rows that are nested unevenly. Pass every row as a flat list of as many numbers."
    return (
        f"rows of unequal lengths: row 0 has {sizes[0]}, row {odd} has {sizes[odd]}. Give every row the same channels, "
        "with NaN where one is missing."
    )


def refuse_univariate(table: Floats, who: str, width: int | None) -> None:
    """Raise where a 2-D array, n series of one channel, is given and more channels are expected."""
    if width in (None, 1):
        return
    one = f"If it is one series of {width} channels, pass [X]. " if table.shape[1] == width else ""
    raise ValueError(
        f"{who}: object 0 has 1 channels (as all others), {width} were expected. A 2-D array is n series of one "
        f"channel. {one}For n series pass an array (n, T, {width}) or a list of arrays (T, {width})."
    )


def width_remedy(d: int, width: int | None, columns: str, hint: str = "") -> str:
    """Return the remedy for objects of width d where another is expected (None: that of object 0)."""
    remedy = f"select the same {columns} in all objects."
    if width is not None:
        remedy = f"pass the {width} {columns} that are expected, or fit a model to objects with {d}."
    return f"{hint} Otherwise {remedy}" if hint else remedy[0].upper() + remedy[1:]
