"""Reading what users pass as X: containers become lists or arrays, objects one of five forms."""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.validation import check_lengths

Ints = NDArray[np.int64]

ACCEPTED = "a list of strings, token lists or arrays, or a 2-D or 3-D array"
PLAIN = (int, float, complex, np.number)  # types of numbers that arrays can hold
TEXT_KINDS = "OUST"  # NumPy dtype kinds whose elements are Python objects once in a list


def offsets_of(lengths: Any) -> Ints:
    """Return the (n + 1,) boundaries of objects of the given lengths."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])


def locate(offsets: Ints, flat: int) -> tuple[int, int]:
    """Return object index and position of an index into the concatenated values."""
    index = int(np.searchsorted(offsets, flat, side="right")) - 1
    return index, int(flat - offsets[index])


def collect(X: Any, who: str) -> list[Any] | NDArray[Any]:
    """Return X as a list of objects, or as a 2-D or 3-D array whose first axis runs over them."""
    _refuse_container(X, who)
    # Types of optional packages are recognised by the name of the module, so that they need not be installed.
    if type(X).__module__.split(".")[0] == "awkward":
        objects: Any = [_from_awkward(item) for item in X]
    elif hasattr(X, "__array__"):
        objects = as_array(X)
        if objects.ndim == 1 and objects.dtype.kind in TEXT_KINDS:
            objects = objects.tolist()
        elif objects.ndim == 2 and objects.dtype.kind in TEXT_KINDS:
            _check_cells(objects, who)
    else:
        objects = list(X)
    if isinstance(objects, np.ndarray):
        return _check_table(objects, who)
    if not objects:
        raise ValueError(
            f"{who}: Found array with 0 sample(s) (shape=(0,)) while a minimum of 1 is required. Pass at least one "
            "object; if X was filtered, look at what the filter keeps."
        )
    return list(objects)


def _refuse_container(X: Any, who: str) -> None:
    """Raise for anything but a list of objects."""
    if isinstance(X, str | bytes | bytearray | memoryview):
        raise TypeError(
            f"{who}: X must be {ACCEPTED}. Got one string; put it into a list: [X]; a file is read by genkern.read."
        )
    if hasattr(X, "X") and hasattr(X, "ids"):
        raise TypeError(f"{who}: X must be {ACCEPTED}. Got {type(X).__name__}, of objects and labels; pass data.X.")
    if type(X).__module__.startswith("pandas") and type(X).__name__.endswith("GroupBy"):
        raise TypeError(
            f"{who}: X must be {ACCEPTED}. Got {type(X).__name__}; pass one array per group, with the columns that are "
            "channels: [group[columns].to_numpy() for _, group in X]."
        )
    if type(X).__module__.startswith("scipy.sparse"):
        raise TypeError(f"{who}: X must be dense. Sparse data was passed; convert it by X.toarray() if it fits.")
    if isinstance(X, Mapping | Set) or not (hasattr(X, "__len__") or hasattr(X, "__array__")):
        remedy = "list(X.values())" if isinstance(X, Mapping) else "list(X)"
        raise TypeError(f"{who}: X must be {ACCEPTED}. Got {type(X).__name__}; pass {remedy} if it holds the objects.")


def _check_cells(table: NDArray[Any], who: str) -> None:
    """Refuse a table of one column of strings, each of which may be an object or a symbol, and odd numbers."""
    for row, cell in enumerate(table[:, 0].tolist() if table.shape[1] == 1 else ()):
        if isinstance(cell, str | bytes) and len(cell) > 1:
            raise ValueError(
                f"{who}: X is a table with one column of strings, such as {cell!r:.50} in row {row}: sequences of "
                "characters, or single symbols? For sequences pass the column itself: X[name] or X.iloc[:, 0] of a "
                "data frame, X[:, 0] of an array. For one symbol per object pass [[s] for s in column]."
            )
    for index, row in enumerate(table.tolist()):
        refuse_odd_numbers(row, index, who)


def refuse_odd_numbers(items: Sequence[Any], index: int, who: str) -> None:
    """Raise at the first element that is a number but of no type that arrays hold, such as Decimal or Fraction."""
    odd = {kind for kind in set(map(type, items)) if issubclass(kind, numbers.Number) and not issubclass(kind, PLAIN)}
    if odd:
        where = next(t for t, item in enumerate(items) if type(item) in odd)
        raise TypeError(
            f"{who}: object {index}, position {where} is {items[where]!r:.50}; expected ints, floats or symbols. "
            "Convert it by float(x) if it is a measurement, by str(x) if it is a symbol."
        )


def as_array(value: Any) -> NDArray[Any]:
    """Return an array in which masked entries are NaN."""
    if isinstance(value, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(value), np.nan, np.asarray(value.data, dtype=np.float64))
    return np.asarray(value)


def _from_awkward(item: Any) -> Any:
    """Return one object of an awkward array as string, array (NaN for gaps) or, if it is neither, nested list."""
    if not hasattr(item, "to_list"):
        return item
    try:
        array = item.to_numpy()
    except (TypeError, ValueError):  # rows of unequal lengths, or numbers among strings
        return item.to_list()
    if array.dtype.kind in "iuf":
        # Numbers of an array with missing entries elsewhere are masked arrays, too, and are kept.
        return as_array(array) if np.ma.is_masked(array) else np.asarray(array)
    return item.to_list() if np.ma.is_masked(array) else np.asarray(array)


def _check_table(X: NDArray[Any], who: str) -> NDArray[Any]:
    """Return a 2-D or 3-D array of objects, or raise with scikit-learn's messages for tables."""
    refuse_kind(X.dtype, f"{who}: X")
    if X.ndim < 2:
        raise ValueError(
            f"{who}: Expected a 2D array or a list of objects, got {X.ndim}D array instead. Reshape your "
            "data: X.reshape(1, -1) if it is one object, X.reshape(-1, 1) if each number is an object."
        )
    if X.ndim > 3:
        raise ValueError(
            f"{who}: X must have 2 axes (n, T) or 3 axes (n, T, d). Got shape {X.shape}; make all further axes "
            "channels by X.reshape(*X.shape[:2], -1)."
        )
    if X.size == 0:
        what = "sample(s)" if X.shape[0] == 0 else "feature(s)"
        remedy = "Pass at least one object" if X.shape[0] == 0 else "Pass objects with at least one element"
        raise ValueError(
            f"{who}: Found array with 0 {what} (shape={X.shape}) while a minimum of 1 is required. {remedy}; if X was "
            "filtered, look at what the filter keeps."
        )
    return X


def refuse_kind(dtype: np.dtype[Any], what: str) -> None:
    """Raise for arrays that hold neither numbers nor symbols."""
    if dtype.kind == "c":
        raise ValueError(f"{what}: Complex data not supported; pass real and imaginary part as channels.")
    if dtype.kind == "b":
        raise TypeError(f"{what} must hold numbers or symbols. Got dtype bool; use .astype(int) for 0 and 1.")
    if dtype.kind not in "iuf" + TEXT_KINDS:
        raise TypeError(f"{what} must hold numbers or symbols. Got dtype {dtype}; convert it to float or str.")


def form_of(obj: Any, index: int, who: str) -> tuple[str, Any]:
    """Return the form of an object, and the object as a string, list or array.

    The forms are "string", "tokens" (hashables), "integers" and "floats" (1-D), and "rows" (2-D numbers).
    """
    if isinstance(obj, str):
        form: tuple[str, Any] = ("string", obj)
    elif isinstance(obj, bytes):
        form = ("string", obj.decode("latin-1"))
    elif isinstance(obj, bytearray | memoryview):
        raise TypeError(
            f"{who}: object {index} is a {type(obj).__name__}: text or numbers? Pass bytes(x) for the characters of a "
            "string, list(x) for integers, np.frombuffer(x, dtype) for an array."
        )
    elif isinstance(obj, list | tuple):
        form = (_form_of_list(obj, index, who), obj)
    elif hasattr(obj, "__array__") and not np.isscalar(obj):
        form = _form_of_array(as_array(obj), index, who)
    elif hasattr(obj, "__len__") and not isinstance(obj, Mapping | Set) and not hasattr(obj, "log_prob"):
        items = list(obj)
        form = (_form_of_list(items, index, who), items)
    else:
        raise _not_an_object(obj, index, who)
    if len(form[1]) == 0:
        raise ValueError(f"{who}: object {index} is empty; expected at least one element. Drop it, with its label.")
    return form


def _not_an_object(obj: Any, index: int, who: str) -> Exception:
    """Return the error for a scalar, None, a mapping or something without elements."""
    if isinstance(obj, numbers.Number) and obj == obj:
        return ValueError(
            f"{who}: object {index} is the single number {obj!r}; expected a sequence. Reshape your data: "
            "X is a list of objects, so pass one series x as [x], numbers that are objects as [[x0], [x1]]."
        )
    if hasattr(obj, "log_prob"):
        return TypeError(
            f"{who}: object {index} must be a string, a token list or an array. Got a model, {type(obj).__name__}; "
            "compare models by a kernel, as in Gram(ProbabilityProduct(0.5)), or give one in place of an estimator."
        )
    return TypeError(
        f"{who}: object {index} must be a string, a token list or an array. Got {type(obj).__name__} "
        f"{obj!r:.50}; replace it, or drop it together with its label."
    )


def _form_of_array(array: NDArray[Any], index: int, who: str) -> tuple[str, Any]:
    """Return form and content of an object that is an array."""
    if array.ndim == 0:
        raise _not_an_object(array.item(), index, who)
    refuse_kind(array.dtype, f"{who}: object {index}")
    if array.ndim > 2:
        raise wrong_shape(array.shape, index, who)
    if array.ndim == 2:
        return "rows", array
    if array.dtype.kind in TEXT_KINDS:
        items = array.tolist()
        return _form_of_list(items, index, who), items
    return ("floats" if array.dtype.kind == "f" else "integers"), array


def wrong_shape(shape: tuple[int, ...], index: int, who: str) -> ValueError:
    """Return the error for an object with more than two axes, or with an axis of length 0."""
    remedy = "drop it, with its label"
    if len(shape) > 2 and 0 not in shape:
        remedy = "make its further axes channels by x.reshape(len(x), -1), or pass its parts as objects: list(x)"
    return ValueError(
        f"{who}: object {index} must have shape (T,) or (T, d) with T, d >= 1. Got shape {shape}; {remedy}."
    )


def _form_of_list(items: list[Any] | tuple[Any, ...], index: int, who: str) -> str:
    """Return the form of a list or tuple, by the types of its elements."""
    types = set(map(type, items))
    if types <= {int}:
        return "integers"
    if types <= {int, float}:
        return "floats"
    for wrong, text in (
        ((bool, np.bool_), "a bool; use ints for symbols 0 and 1"),
        ((complex, np.complexfloating), "complex. Complex data not supported; pass real and imaginary part"),
    ):
        if any(issubclass(kind, wrong) for kind in types):
            where = next(t for t, item in enumerate(items) if isinstance(item, wrong))
            error = TypeError if bool in wrong else ValueError
            raise error(f"{who}: object {index}, position {where} is {text}.")
    refuse_odd_numbers(items, index, who)
    if all(issubclass(kind, numbers.Integral) for kind in types):
        return "integers"
    known = types - {type(None)}  # a gap among floats is reported as such, not as a token
    if any(issubclass(kind, float | np.floating) for kind in known) and all(
        issubclass(kind, numbers.Real) for kind in known
    ):
        return "floats"
    if all(issubclass(kind, list | np.ndarray) for kind in types) or _are_number_rows(items, types):
        return "rows"
    return "tokens"


def _are_number_rows(items: list[Any] | tuple[Any, ...], types: set[type]) -> bool:
    """Return whether a list holds tuples of numbers: rows of a series, unless symbols are asked for."""
    return types == {tuple} and all(isinstance(x, numbers.Real) for row in items for x in row)


def from_concatenated(X: Any, lengths: Any) -> list[Any]:
    """Return the list of objects that are concatenated in X, as views where X is an array.

    Parameters
    ----------
    X : array (N,) or (N, d), string or list of N elements
    lengths : (n,) ints >= 1 with sum N

    Returns
    -------
    objects : list of n slices of X

    Examples
    --------
    >>> from_concatenated("ACGTAC", [4, 2])
    ['ACGT', 'AC']
    """
    whole = X if isinstance(X, str | list | tuple) else np.asarray(X)
    if isinstance(whole, np.ndarray) and whole.ndim == 0:
        raise TypeError(
            f"from_concatenated: X must be an array, a string or a list. Got {type(X).__name__}; pass the elements of "
            "all objects, one after the other."
        )
    sizes = check_lengths(lengths, len(whole), "from_concatenated")
    return [whole[start:stop] for start, stop in itertools.pairwise(offsets_of(sizes).tolist())]
