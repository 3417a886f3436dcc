"""Content digests that are the same in every process: the keys of the store and the identity of values."""

from __future__ import annotations

import hashlib
import itertools
import numbers
import struct
from collections.abc import Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.data.code import code_of

DIGEST_SIZE = 16  # bytes: no collisions in practice, short file names
ARRAYS = frozenset({"jax", "jaxlib", "torch"})  # packages whose arrays count by value
NOT_CONTENT = frozenset({"n_jobs", "verbose", "store"})  # parameters that cannot change a result


def make_key(*parts: Any) -> str:
    """Return the hex digest of the content of some values, stable across processes and machines.

    Numbers, strings, bytes, None, lists and tuples, mappings, sets and arrays count by value (-0.0 as 0.0,
    every NaN as the same NaN, in any byte order); values with a ``digest`` (models, alphabets) by class and
    digest; scikit-learn estimators by class and parameters, nested ones included, without ``n_jobs``,
    ``verbose`` and ``store``, which cannot change a result. Fitted attributes do not count.

    Parameters
    ----------
    *parts : any of the above
        Values that determine the key. Order and nesting count: ``make_key(1, 2)`` is not ``make_key((1, 2))``.

    Returns
    -------
    key : str
        32 hexadecimal digits.

    Raises
    ------
    TypeError
        For anything whose content is not known to be fixed: functions, random generators, open files.

    Examples
    --------
    >>> make_key("HMM", {"n_states": 3, "tol": 1e-4}) == make_key("HMM", {"tol": 1e-4, "n_states": 3})
    True
    """
    return _hash(b"key", *map(_digest, parts)).hex()


def state_key(value: Any, code: bool = True) -> str:
    """Return the hex digest of an object's content: its own ``digest``, or its class and attributes.

    Attributes are treated in the same way, recursively. Unlike with ``make_key``, fitted attributes of estimators
    count, and the code of classes does (``code_of``), unless ``code`` is False: a class may be written anew under its
    name, as in a notebook.

    Raises
    ------
    TypeError
        Where something has no attributes, or more than these: functions, generators, objects of compiled classes.
    """
    return make_key(_state(value, (), code))


class _Plain:
    """An object with attributes only; larger ones have slots, or hidden state of a compiled class."""


def _state(value: Any, outer: tuple[int, ...], code: bool) -> Any:
    """Return a value in which objects are replaced by the names of their classes and their attributes."""
    if value is None or isinstance(value, bool | str | bytes | numbers.Real | np.generic):
        return value
    if id(value) in outer:
        raise TypeError(f"an object of type {type(value).__qualname__} contains itself")
    inside = (*outer, id(value))
    if isinstance(value, np.ndarray):
        return value if value.dtype.kind != "O" else [list(value.shape), *(_state(v, inside, code) for v in value.flat)]
    if isinstance(value, list | tuple | set | frozenset):
        items = [_state(item, inside, code) for item in value]
        return items if isinstance(value, list | tuple) else sorted(map(make_key, items))
    if type(value) is dict:
        return [
            "dict",
            *sorted(make_key(_state(key, inside, code), _state(item, inside, code)) for key, item in value.items()),
        ]
    if type(value).__module__.partition(".")[0] in ARRAYS and hasattr(value, "__array__"):
        return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    name = _class_name(type(value))
    own = getattr(value, "digest", None)
    if isinstance(own, str):
        return ["digest", name, own]
    done = [code_of(type(value))] if code else []
    if hasattr(value, "named_parameters") and hasattr(value, "state_dict"):  # a module of torch
        public = {key: item for key, item in vars(value).items() if not key.startswith("_") and key != "training"}
        return ["module", name, _state(dict(value.state_dict()), inside, code), _state(public, inside, code), *done]
    if isinstance(value, type) or type(value).__basicsize__ != _Plain.__basicsize__ or not hasattr(value, "__dict__"):
        raise TypeError(f"the content of an object of type {name} is not known")
    return ["object", name, _state(vars(value), inside, code), *done]


def _class_name(kind: type) -> str:
    """Return the name of a class: of this package's own without the module, so that keys survive moves of modules."""
    home = kind.__module__.partition(".")[0]
    return f"{home if home == 'genkern' else kind.__module__}.{kind.__qualname__}"


def digest_pieces(values: NDArray[Any], offsets: NDArray[np.int64], header: str) -> list[str]:
    """Return the hex digest of every piece ``values[offsets[i]:offsets[i + 1]]``, int32 or float64."""
    flat = canonical_floats(values) if values.dtype.kind == "f" else np.ascontiguousarray(values, dtype="<i4")
    start = hashlib.blake2b(header.encode(), digest_size=DIGEST_SIZE)
    data = flat.reshape(-1).view(np.uint8).data
    width = len(data) // max(len(flat), 1)
    digests = []
    for first, last in itertools.pairwise((offsets * width).tolist()):
        state = start.copy()
        state.update(data[first:last])
        digests.append(state.hexdigest())
    return digests


def canonical_floats(values: Any) -> NDArray[np.float64]:
    """Return little-endian float64 in which equal numbers have equal bytes (-0.0, NaN payloads)."""
    array = np.add(values, 0.0, dtype=np.float64)  # -0.0 + 0.0 = 0.0
    return np.ascontiguousarray(np.where(np.isnan(array), np.nan, array), dtype="<f8")


def _hash(tag: bytes, *chunks: bytes) -> bytes:
    """Return the digest of a tag and length-prefixed chunks: different inputs are different byte streams."""
    state = hashlib.blake2b(tag, digest_size=DIGEST_SIZE)
    for chunk in chunks:
        state.update(struct.pack("<q", len(chunk)))
        state.update(chunk)
    return state.digest()


def _digest(value: Any) -> bytes:
    """Return the digest of one value, by its type."""
    if value is None:
        return _hash(b"none")
    if isinstance(value, bool | np.bool_):
        return _hash(b"bool", b"1" if value else b"0")
    if isinstance(value, numbers.Integral):
        return _hash(b"int", str(int(value)).encode())
    if isinstance(value, float | np.floating):
        return _hash(b"float", canonical_floats(value).tobytes())
    if isinstance(value, str):
        return _hash(b"str", value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes):
        return _hash(b"bytes", value)
    if isinstance(value, list | tuple):
        return _hash(b"list", *map(_digest, value))
    if isinstance(value, Mapping):
        return _hash(b"dict", *sorted(_digest(key) + _digest(item) for key, item in value.items()))
    if isinstance(value, Set):
        return _hash(b"set", *sorted(map(_digest, value)))
    if isinstance(value, np.ndarray):
        return _digest_array(value)
    return _digest_object(value)


def _digest_array(array: NDArray[Any]) -> bytes:
    """Return the digest of an array: kind, shape and content."""
    shape = repr(array.shape).encode()
    if array.dtype.kind == "f":
        return _hash(b"array", b"f", shape, canonical_floats(array).tobytes())
    if array.dtype.kind in "iub":
        # All integer types count by value: int32 and int64 codes are the same content.
        kind = "<u8" if array.dtype.kind == "u" and array.size and int(array.max()) >= 2**63 else "<i8"
        tag = "b" if array.dtype.kind == "b" else kind
        return _hash(b"array", tag.encode(), shape, np.ascontiguousarray(array, dtype=kind).tobytes())
    if array.dtype.kind in "OUST":
        return _hash(b"array", b"o", shape, *map(_digest, array.ravel().tolist()))
    raise TypeError(f"make_key: arrays of dtype {array.dtype} have no fixed content; pass floats or ints.")


def _digest_object(value: Any) -> bytes:
    """Return the digest of a value with a digest of its own, or of an estimator's parameters."""
    kind = type(value)
    name = _class_name(kind).encode()
    own = getattr(value, "digest", None)
    if isinstance(own, str):
        return _hash(b"value", name, own.encode())
    if hasattr(value, "get_params") and not isinstance(value, type):
        params = value.get_params(deep=False)
        return _hash(b"estimator", name, _digest({k: v for k, v in params.items() if k not in NOT_CONTENT}))
    raise TypeError(
        f"make_key: the content of {value!r} (type {kind.__qualname__}) is not known to be fixed. Pass "
        "numbers, strings, arrays, models or estimators; an int seed instead of a random generator."
    )
