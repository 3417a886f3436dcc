"""How objects that are not values are taken apart for a file, and put together from fields of unknown origin."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch

from genkern.core.private import openness
from genkern.data.representations import Representations
from genkern.data.serialize import PLAIN_TYPES, RefusedError, UnreadableError
from genkern.data.store import Store
from genkern.saving import tables
from genkern.saving.estimators import build_estimator, fields_of
from genkern.saving.registry import find, is_in, name_of
from genkern.validation import warn

Fields = dict[str, Any]

DTYPES = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "U1")
KEYS, POSITIONS = 624, range(625)  # of the Mersenne twister, whose C code believes them


class Objects:
    """The codec of files: estimators, and what their attributes hold beside values."""

    def take_apart(self, value: Any) -> tuple[str, Fields] | None:
        """Return the name and the fields of an object."""
        kind = type(value)
        if kind in _WRITERS:
            title, write = _WRITERS[kind]
            return title, write(value)
        itself = callable(value) and hasattr(value, "__name__")  # a class or function
        name = name_of(value if itself else kind)
        if name is None:
            what = f"the {kind.__name__} {_full(value)}" if itself else f"an object of the class {_full(kind)}"
            raise RefusedError(f"{what} is not known. {_REMEDY}")
        if itself:
            return name, {}
        return name, dict(value._asdict()) if is_in(name, tables.TUPLES) else fields_of(value)

    def put_together(self, name: Any, fields: Fields) -> Any:
        """Return the object of a name and fields, after all checks."""
        if isinstance(name, str) and name in _READERS:
            return _READERS[name](**fields)
        found = find(name)
        if not isinstance(found, type) or is_in(name, tables.TYPES):
            if fields:
                raise UnreadableError(f"{name} has no fields.")
            return found
        if is_in(name, tables.TUPLES):
            return found(**fields)
        if not (issubclass(found, BaseEstimator) or is_in(name, tables.PLAIN)):
            raise UnreadableError(f"{name} is no class of estimators.")
        return build_estimator(found, name, fields)


_REMEDY = (
    "Let files name it by genkern.saving.register (a function or a class of estimators at the top level of a module), "
    "or leave it out."
)


def _full(thing: Any) -> str:
    return f"{getattr(thing, '__module__', None)}.{getattr(thing, '__qualname__', thing)}"


# --- what is small


def _read_slice(start: Any, stop: Any, step: Any) -> slice:
    return slice(*(None if bound is None else _int(bound) for bound in (start, stop, step)))


def _read_range(start: Any, stop: Any, step: Any) -> range:
    return range(_int(start), _int(stop), _int(step))


def _read_set(items: Any) -> set[Any]:
    return set(_of(items, list))


def _read_frozen(items: Any) -> frozenset[Any]:
    return frozenset(_of(items, list))


def _sorted(items: Any) -> Fields:
    """Return the items of a set in an order that is the same in every process."""
    return {"items": sorted(items, key=lambda item: (type(item).__name__, repr(item)))}


def _read_bunch(**fields: Any) -> Bunch:
    if any(name.startswith("__") for name in fields):
        raise UnreadableError("names with two underscores are not legal.")
    return Bunch(**fields)


def _read_dtype(name: Any) -> np.dtype[Any]:
    if not PLAIN_TYPES.fullmatch(_of(name, str)):
        raise UnreadableError(f"arrays of type {name!r:.80} are not legal.")
    return np.dtype(name)


# --- arrays


def _write_objects(array: Any) -> Fields:
    if array.dtype.kind != "O":
        raise RefusedError(f"an array of dtype {array.dtype} cannot be saved.")
    return {"shape": list(array.shape), "items": array.ravel().tolist()}


def _read_objects(shape: Any, items: Any) -> Any:
    sizes = [_int(size) for size in _of(shape, list)]
    if min(sizes, default=0) < 0 or math.prod(sizes) != len(_of(items, list)):
        raise UnreadableError(f"{len(items)} objects cannot have the shape {sizes}.")
    array = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        array[i] = item
    return array.reshape(sizes)


def _write_masked(array: Any) -> Fields:
    return {"data": np.asarray(array.data), "mask": np.ma.getmaskarray(array)}


def _read_masked(data: Any, mask: Any) -> Any:
    if _of(mask, np.ndarray).dtype != bool or mask.shape != _of(data, np.ndarray).shape:
        raise UnreadableError("a mask does not fit its array.")
    return np.ma.MaskedArray(data, mask)


FORMATS: dict[str, Any] = {
    name: getattr(sparse, name) for name in ("csr_matrix", "csc_matrix", "csr_array", "csc_array")
}


def _write_sparse(matrix: Any) -> Fields:
    return {"shape": list(matrix.shape), "data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}


def _reader_of(kind: Any) -> Callable[..., Any]:
    def read(shape: Any, data: Any, indices: Any, indptr: Any) -> Any:
        rows, columns = (_int(size) for size in _of(shape, list))
        for part, kinds in ((data, "biuf"), (indices, "i"), (indptr, "i")):
            if _of(part, np.ndarray).dtype.kind not in kinds or part.ndim != 1:
                raise UnreadableError("a sparse matrix has parts of wrong types.")
        matrix = kind((data, indices, indptr), shape=(rows, columns))
        matrix.check_format(full_check=True)
        matrix.indices, matrix.indptr = indices, indptr  # of their own types of ints
        return matrix

    return read


# --- random numbers


def _write_random(state: Any) -> Fields:
    name, keys, position, has_gauss, gauss = state.get_state(legacy=True)
    if name != "MT19937":
        raise RefusedError(f"a RandomState of {name} cannot be saved. Give a seed, an int.")
    return {"keys": keys, "position": int(position), "has_gauss": int(has_gauss), "gauss": float(gauss)}


def _read_random(keys: Any, position: Any, has_gauss: Any, gauss: Any) -> Any:
    if _of(keys, np.ndarray).dtype != np.uint32 or keys.shape != (KEYS,) or _int(position) not in POSITIONS:
        raise UnreadableError("the state of random numbers is none.")
    state = np.random.RandomState(0)
    state.set_state(("MT19937", keys, position, _int(has_gauss), float(gauss)))
    return state


def _write_generator(generator: Any) -> Fields:
    state = generator.bit_generator.state
    if state["bit_generator"] != "PCG64":
        raise RefusedError(f"a Generator of {state['bit_generator']} cannot be saved. Give a seed, an int.")
    return {**state["state"], "has_uint32": state["has_uint32"], "uinteger": state["uinteger"]}


def _read_generator(state: Any, inc: Any, has_uint32: Any, uinteger: Any) -> Any:
    if not (0 <= _int(state) < 2**128 and 0 <= _int(inc) < 2**128 and 0 <= _int(uinteger) < 2**32):
        raise UnreadableError("the state of random numbers is none.")
    generator = np.random.Generator(np.random.PCG64(0))
    inner = {"state": state, "inc": inc}
    parts = {"has_uint32": int(_int(has_uint32) == 1), "uinteger": uinteger}
    generator.bit_generator.state = {"bit_generator": "PCG64", "state": inner, **parts}
    return generator


# --- of this package


def _write_views(X: Representations) -> Fields:
    return {"views": {name: X[name] for name in X.names}}


def _write_store(store: Store) -> Fields:
    return {"path": None if store.path is None else str(store.path), "max_bytes": store.max_bytes}


def _read_store(path: Any, max_bytes: Any) -> Store:
    """Return a store; a file cannot make one use a folder that is not one of stores already, and private."""
    store = Store(max_bytes=max_bytes)
    if path is None:
        return store
    try:
        reason = _foreign(_of(path, str))
    except OSError as error:
        reason = str(error)
    if reason is None:
        return Store(path, max_bytes)
    warn(f"genkern.load: a Store keeps its results in memory, as {reason}.", UserWarning, [("store", path)])
    return store


def _foreign(path: str) -> str | None:
    """Return why a folder is not that of a private store, None if it is."""
    folder = Path(os.path.realpath(path))
    if any(not re.fullmatch("[0-9a-f]{2}", name) for name in os.listdir(folder)):
        return f"{folder} holds other things than its entries"
    return openness(folder)


def _int(value: Any) -> int:
    if type(value) is not int:
        raise UnreadableError(f"expected an int. Got a {type(value).__name__}.")
    return value


def _of(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise UnreadableError(f"expected a {kind.__name__}. Got a {type(value).__name__}.")
    return value


_WRITERS: dict[type, tuple[str, Callable[[Any], Fields]]] = {
    slice: ("slice", lambda value: {"start": value.start, "stop": value.stop, "step": value.step}),
    range: ("range", lambda value: {"start": value.start, "stop": value.stop, "step": value.step}),
    set: ("set", _sorted),
    frozenset: ("frozenset", _sorted),
    Bunch: ("Bunch", dict),
    np.ndarray: ("objects", _write_objects),
    np.ma.MaskedArray: ("masked", _write_masked),
    np.random.RandomState: ("RandomState", _write_random),
    np.random.Generator: ("Generator", _write_generator),
    Representations: ("Representations", _write_views),
    Store: ("Store", _write_store),
    **{kind: (name, _write_sparse) for name, kind in FORMATS.items()},
    **{type(np.dtype(name)): ("dtype", lambda value: {"name": value.str}) for name in DTYPES},
}
_READERS: dict[str, Callable[..., Any]] = {
    "slice": _read_slice,
    "range": _read_range,
    "set": _read_set,
    "frozenset": _read_frozen,
    "Bunch": _read_bunch,
    "objects": _read_objects,
    "masked": _read_masked,
    "RandomState": _read_random,
    "Generator": _read_generator,
    "Representations": Representations,
    "Store": _read_store,
    "dtype": _read_dtype,
    **{name: _reader_of(kind) for name, kind in FORMATS.items()},
}
