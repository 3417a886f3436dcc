"""Inputs: lists of symbol sequences, series or bags, checked once and packed for the passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.data.alphabets import Alphabet, as_alphabet, infer_alphabet, infer_flat
from genkern.data.coding import UNKNOWN
from genkern.data.flatten import TURN, Flat, Floats, flatten_numbers, flatten_symbols, refuse_univariate, width_remedy
from genkern.data.inspection import (
    all_missing,
    ask_about_axes,
    ask_about_integers,
    flatten_integers,
    form_kind,
    warn_all_missing,
    warn_wide,
)
from genkern.data.intake import from_concatenated, locate, offsets_of
from genkern.data.packed import Packed, object_digest, object_digests
from genkern.validation import (
    LARGEST,
    check_option,
    encoded_once,
    encodings_of,
    made_of,
    made_once,
    remember_encoded,
    remember_width,
    too_large,
)

__all__ = [
    "Alphabet",
    "Packed",
    "as_alphabet",
    "check_objects",
    "from_concatenated",
    "infer_alphabet",
    "kind_of",
    "object_digest",
    "object_digests",
    "pack_points",
    "pack_series",
    "pack_symbols",
    "remember_width",
]

LAYOUTS = ("time-first", "channels-first")
KINDS = ("auto", "symbols", "series", "points")


def pack_symbols(
    X: Any, alphabet: Any = None, who: str = "pack_symbols", missing: Any = None, unknown: str | None = None
) -> Packed:
    """Return symbol sequences as codes.

    Parameters
    ----------
    X : list of strings, token lists or 1-D integer arrays, 2-D array of n sequences, or Packed
    alphabet : Alphabet, anything `as_alphabet` takes, or None to infer it from the whole list
    who : str
        The caller's name, for error messages.
    missing : hashable, default=None
        The symbol of a missing observation, as in `as_alphabet`.
    unknown : {"missing", "error"}, optional
        Treatment of symbols outside the alphabet, now and whenever it is used again, as in `as_alphabet`. The default
        is "missing" for an inferred alphabet, and that of a given Alphabet, else "error".

    Returns
    -------
    packed : Packed
        With values (N,) int32.
    """
    if unknown is not None:
        check_option(unknown, UNKNOWN, "unknown", who)
    known = None if alphabet is None else as_alphabet(alphabet, missing, unknown)
    if isinstance(X, Packed):
        return _packed_symbols(X, known, who, unknown)

    def encode() -> Packed:
        flat = flat_symbols(X, who)
        alphabet = infer_flat(flat, missing, who).with_unknown(unknown) if known is None else known
        codes = alphabet.encode_flat(flat, who)
        if alphabet.missing_code is not None:
            warn_all_missing(codes == alphabet.missing_code, flat.offsets, who)
        return Packed(codes, flat.offsets, alphabet)

    setting = ("symbols", missing, unknown) if known is None else (known.digest, known.unknown)
    return encoded_once(X, setting, encode, lambda packed: (packed.alphabet.digest, packed.alphabet.unknown))


def pack_series(
    X: Any,
    who: str = "pack_series",
    layout: str | None = None,
    n_channels: int | None = None,
    largest: float = LARGEST,
) -> Packed:
    """Return series as rows of numbers, NaN where missing.

    Parameters
    ----------
    X : list of (T,) or (T, d) arrays, 2-D array of n univariate series, 3-D array (n, T, d), or Packed
    who : str
        The caller's name, for error messages.
    layout : "time-first" or "channels-first", optional
        Whether 2-D objects are (T, d) or (d, T). The default is "time-first", with an error for a 3-D array of no fewer
        channels than time steps, and a warning if all of a list have eight or more channels per time step. A 2-D array
        X has no channel axis and is not affected.
    n_channels : int, default=None
        The d that is expected, e.g. that of a fitted model; None: that of the first object.
    largest : float, default=1e75
        Numbers beyond it are refused: squares, and squares of variances, would overflow.

    Returns
    -------
    packed : Packed
        With values (N, d) float64.
    """
    doubtful = layout is None and n_channels is None
    layout = "time-first" if layout is None else check_option(layout, LAYOUTS, "layout", who)
    if isinstance(X, Packed):
        return _packed_numbers(X, who, n_channels, "channels")

    def encode() -> Packed:
        arrays = flatten_numbers(X, who)
        if isinstance(arrays, np.ndarray) and arrays.ndim == 2:
            refuse_univariate(arrays, who, n_channels)
            return _check_size(_pack_table(arrays[:, :, None], who, n_channels, "channels"), who, largest)
        if doubtful and isinstance(arrays, np.ndarray):
            ask_about_axes(arrays.shape, who)
        elif doubtful:
            warn_wide({array.shape for array in arrays})
        if isinstance(arrays, np.ndarray):
            table = arrays.transpose(0, 2, 1) if layout == "channels-first" else arrays
            return _check_size(_pack_table(table, who, n_channels, "channels", layout), who, largest)
        turned = [array.T for array in arrays] if layout == "channels-first" else arrays
        return _check_size(_pack_list(turned, who, n_channels, "channels", layout), who, largest)

    setting = ("series", layout, largest)
    return encoded_once(X, (setting, n_channels), encode, lambda packed: (setting, packed.values.shape[1]))


def pack_points(X: Any, who: str = "pack_points", n_features: int | None = None, largest: float = LARGEST) -> Packed:
    """Return bags of independent draws as rows of numbers, NaN where missing.

    Parameters
    ----------
    X : list of (m, d) or (m,) arrays, 2-D array of n bags of one draw, 3-D array (n, m, d), or Packed
        A 1-D object in a list is m draws of one variable.
    who : str
        The caller's name, for error messages.
    n_features : int, default=None
        The d that is expected; None: that of the first object.
    largest : float, default=1e75
        Numbers beyond it are refused: squares, and squares of variances, would overflow.

    Returns
    -------
    packed : Packed
        With values (N, d) float64.
    """
    if isinstance(X, Packed):
        return _packed_numbers(X, who, n_features, "features")

    def encode() -> Packed:
        arrays = flatten_numbers(X, who)
        if isinstance(arrays, np.ndarray):
            table = arrays[:, None, :] if arrays.ndim == 2 else arrays
            return _check_size(_pack_table(table, who, n_features, "features"), who, largest)
        return _check_size(_pack_list(arrays, who, n_features, "features"), who, largest)

    setting = ("points", largest)
    return encoded_once(X, (setting, n_features), encode, lambda packed: (setting, packed.values.shape[1]))


def flat_symbols(X: Any, who: str) -> Flat:
    """Return the symbols of all objects, which the call under way flattens once."""
    return made_once(X, "flat", lambda: flatten_symbols(X, who), lambda flat: 8 * len(flat.symbols))


def remember_part(X: Any, part: Any, rows: Any) -> None:
    """Let the call under way know what some objects of X, at these rows, are encoded to, from what it knows of X."""
    flat: Flat | None = made_of(X, "flat")
    if flat is not None and isinstance(flat.symbols, str | np.ndarray):
        made_once(part, "flat", lambda: flat.take(rows), lambda own: 8 * len(own.symbols))
    for settings, packed in encodings_of(X):
        if packed.alphabet is None:
            remember_encoded(part, settings, packed.take(rows))
            remember_encoded(X, settings, packed)  # for other parts, which come next


def handed_on(packed: Packed) -> list[Any]:
    """Return packed series as a list that later steps of the same call need not encode again.

    They are encoded again where a check must warn or raise: numbers that are too large, objects without any.
    """
    series = packed.objects()
    if _is_ordinary(packed):
        forms = (("series", LAYOUTS[0], LARGEST), ("points", LARGEST))
        remember_encoded(series, [(form, width) for form in forms for width in (None, packed.values.shape[1])], packed)
    return series


def _is_ordinary(packed: Packed) -> bool:
    """Say whether no check of series has anything to say of these numbers."""
    if np.abs(packed.values).max() <= LARGEST:  # nothing is missing either
        return True
    missing = np.isnan(packed.values).all(axis=1)
    largest = np.fmax.reduce(np.abs(packed.values), axis=None)
    return bool(largest <= LARGEST) and not len(all_missing(missing, packed.offsets))


def _packed_symbols(packed: Packed, alphabet: Alphabet | None, who: str, unknown: str | None) -> Packed:
    """Return packed codes of the expected alphabet unchanged, with its treatment of unknown symbols."""
    if packed.alphabet is None:
        raise TypeError(f"{who}: expected symbols. Got packed numbers; use a continuous emission.")
    if alphabet is not None and not alphabet.same_codes(packed.alphabet):
        raise ValueError(
            f"{who}: expected objects packed with {alphabet!r}. Got {packed.alphabet!r}; pack the "
            "original objects again."
        )
    reads = packed.alphabet.with_unknown(alphabet.unknown if alphabet is not None else unknown)
    if reads.n_codes < packed.alphabet.n_codes and packed.values.max() >= reads.n_codes:
        at = int(np.argmax(packed.values.reshape(packed.n_points, -1).max(axis=1) >= reads.n_codes))
        index, position = locate(packed.offsets, at)
        raise ValueError(
            f"{who}: object {index}, position {position} was unknown when it was packed and counts as missing, but "
            f"unknown symbols of {reads!r} are an error here. Pass unknown='missing', or pack the objects again."
        )
    return packed if reads is packed.alphabet else packed._replace(alphabet=reads)


def _packed_numbers(packed: Packed, who: str, width: int | None, columns: str) -> Packed:
    """Return packed numbers of the expected width unchanged."""
    if packed.alphabet is not None:
        raise TypeError(f"{who}: expected numbers. Got symbols of {packed.alphabet!r}; use a categorical emission.")
    return _check_width(packed, who, width, columns, "packed")


def _check_width(packed: Packed, who: str, width: int | None, columns: str, layout: str) -> Packed:
    """Return packed numbers, raising if their width is not the expected one."""
    d = packed.values.shape[1]
    if width is not None and d != width:
        # A table (n, d) of bags of one draw has lengths 1 and cannot be transposed.
        turn = TURN[layout] if width > 1 and (packed.lengths == width).all() else ""
        remedy = width_remedy(d, width, columns, turn)
        raise ValueError(f"{who}: object 0 has {d} {columns} (as all others), {width} were expected. {remedy}")
    return packed


def _pack_table(table: Floats, who: str, width: int | None, columns: str, layout: str = "time-first") -> Packed:
    """Return an (n, T, d) array as n packed objects."""
    n, length, d = table.shape
    packed = Packed(np.ascontiguousarray(table.reshape(n * length, d)), offsets_of(np.full(n, length)))
    return _check_width(packed, who, width, columns, layout)


def _pack_list(arrays: list[Floats], who: str, width: int | None, columns: str, layout: str = "time-first") -> Packed:
    """Return (T,) or (T, d) arrays as packed objects of one width d."""
    widths = np.array([1 if array.ndim == 1 else array.shape[1] for array in arrays])
    expected = widths[0] if width is None else width
    if (widths != expected).any():
        index = int(np.argmax(widths != expected))
        got = f"object {index} has {widths[index]} {columns} (shape {arrays[index].shape})"
        wanted = f"object 0 has {expected}" if width is None else f"{expected} were expected"
        rows = len(arrays[0]) if width is None else width
        hint = ""
        if arrays[index].ndim == 2 and len(arrays[index]) == rows:
            all_so = all(len(array) == rows for array in arrays)
            hint = f"All objects have {rows} rows, as if these were {columns}. " * all_so + TURN[layout]
        elif width is not None and all(array.shape == (width,) for array in arrays):
            one = "row of one series, pass [X]" if columns == "channels" else "single draw, pass np.array(X)"
            hint = f"If each object is a {one}."
        raise ValueError(f"{who}: {got}, {wanted}. {width_remedy(int(widths[index]), width, columns, hint)}")
    # Of transposed arrays, concatenate would make columns contiguous.
    values = np.ascontiguousarray(np.concatenate([array.reshape(len(array), -1) for array in arrays]))
    return Packed(values, offsets_of([len(array) for array in arrays]))


def _check_size(packed: Packed, who: str, largest: float) -> Packed:
    """Return packed numbers, raising at the first that is infinite or too large."""
    values = packed.values
    if values.size and max(values.max(), -values.min()) <= largest:  # false if any is missing
        return packed
    size = np.abs(values)
    if size.size and np.fmax.reduce(size, axis=None) > largest:
        row, column = np.argwhere(size > largest)[0].tolist()
        index, position = locate(packed.offsets, row)
        wrong = too_large(float(values[row, column]), column, largest)
        raise ValueError(f"{who}: object {index}, position {position}, column {column} {wrong}")
    warn_all_missing(np.isnan(values).all(axis=1), packed.offsets, who)
    return packed


def kind_of(X: Any, who: str = "kind_of", ask: bool = True) -> str:
    """Return "symbols" or "series": the kind of objects for ``emission="auto"``.

    Symbols are strings, token lists, and packed codes. Series are all floats, objects with two axes
    (also nested lists or tuples of numbers) and 3-D arrays. Integers (lists of ints, 1-D arrays of integer dtype, 2-D
    arrays of n sequences) are symbols if they are few and small, at most 64 different ones from 0 to 255. Others may be
    measurements as well as symbols: this is an error that names the remedy (or symbols, without ``ask``). One object of
    floats among integers makes all of them series. If this is wrong, e.g. for counts, set ``emission=``.
    """
    if isinstance(X, Packed):
        return "series" if X.alphabet is None else "symbols"
    kind = form_kind(X, who)
    if kind == "integers" and ask:
        flat = flatten_integers(X, who)
        ask_about_integers(np.unique(flat.symbols).tolist(), flat, who)
    return "series" if kind == "series" else "symbols"


def check_objects(
    X: Any,
    kind: str = "auto",
    alphabet: Any = None,
    missing: Any = None,
    layout: str | None = None,
    who: str = "check_objects",
    largest: float = LARGEST,
    unknown: str | None = None,
) -> Packed:
    """Check a list of objects and return it packed: the definition of legal inputs.

    Parameters
    ----------
    X : list, or anything that indexes like one
        Strings, token lists, integer or float arrays (T,), float arrays (T, d); 2-D and 3-D arrays, data
        frames, pandas Series, awkward and object arrays; or the result of this function.
    kind : "auto", "symbols", "series" or "points", default="auto"
        The kind of objects. "auto" is "symbols" if `alphabet` or `missing` is given, else `kind_of`.
    alphabet, missing : see `as_alphabet`
        For symbols. None infers the alphabet from the whole list.
    layout : "time-first" or "channels-first", optional
        For series: whether 2-D objects are (T, d) or (d, T); by default the former, with an error or a warning
        if it looks wrong.
    who : str
        The caller's name, for error messages.
    largest : float, default=1e75
        Numbers beyond it are refused: squares, and squares of variances, would overflow.
    unknown : {"missing", "error"}, optional
        For symbols: treatment of those outside the alphabet. The default is "error" for a given alphabet; an inferred
        one treats others as missing in later uses.

    Returns
    -------
    packed : Packed of values (N,) int32 or (N, d) float64, offsets (n + 1,), alphabet

    Raises
    ------
    TypeError, ValueError
        Naming the object's index, the position, what was expected and what to do.

    Examples
    --------
    >>> packed = check_objects(["ACGT", "GAN"], alphabet="dna")
    >>> packed.values, packed.offsets
    (array([ 0,  1,  2,  3,  2,  0, 14], dtype=int32), array([0, 4, 7]))
    """
    check_option(kind, KINDS, "kind", who)
    if layout is not None:
        check_option(layout, LAYOUTS, "layout", who)
    if kind == "auto":
        kind = "symbols" if alphabet is not None or missing is not None else kind_of(X, who)
    if kind == "symbols":
        return pack_symbols(X, alphabet, who, missing, unknown)
    if kind == "series":
        return pack_series(X, who, layout, largest=largest)
    return pack_points(X, who, largest=largest)
