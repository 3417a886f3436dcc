"""Values as bytes: JSON and raw arrays, so that loading never runs code.

A value is a number, string, bytes or None, an array of numbers or strings, a list, tuple or dict of values, or an
object of a registered class (models, alphabets), which is its class's name and its fields. Floats and arrays come back
bit by bit.

::

    magic (8 bytes) | checksum of the rest (16) | length of the JSON (8, little-endian) | JSON | buffers

In the JSON, null, booleans, strings, ints, finite floats and lists are stored directly; everything else is an object
with one key: ``{"float": "nan"}``, ``{"tuple": [...]}``, ``{"dict": [[key, value], ...]}``, ``{"bytes": length}``,
``{"array": [dtype, shape]}``, ``{"scalar": dtype}`` (a NumPy one) or ``{"value": [class, {field: ...}]}``. The buffers
are the bytes of arrays, scalars and bytes, one after the other in the order of the JSON, so that none can be claimed
twice. An array that does not lie in C order in memory has a third entry, its axes from the slowest to the fastest:
products of matrices depend on it in the last bit. Whoever knows how to take other objects apart gives a ``Codec``; they
are ``{"object": [name, {field: ...}]}``.

Nothing in a file is trusted: classes are looked up by name among those that are registered, never imported by it (only
this package's own modules are, from its closed list of names), and their constructors check the fields.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
import sys
from collections.abc import Callable
from typing import Any, NoReturn, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from genkern.data.digests import DIGEST_SIZE

MAGIC = b"genkern2"  # version of the format; "genkern1" were pickles
SIZE = struct.Struct("<Q")
START = len(MAGIC) + DIGEST_SIZE + SIZE.size
LARGEST_HEADER = 2**26  # bytes of JSON: its objects take many times as much memory; large things are arrays
DEEPEST = 64  # values within values
LARGEST_INT = 1024  # bits
PLAIN_TYPES = re.compile(r"[|]b1|[|][iu]1|<[iu][248]|<f[248]|<U[1-9][0-9]{0,8}")
OWN = ("genkern.models.", "genkern.data.coding")  # modules whose classes are named without them

AnyClass = TypeVar("AnyClass", bound=type)

_classes: dict[str, Any] = {}


class UnreadableError(ValueError):
    """Bytes that are not a value: damaged, hostile, or of a class that is not known here."""


class UnknownClassError(UnreadableError):
    """A value of a class that is not registered: its module has not been imported, or the class is gone."""


class RefusedError(TypeError):
    """Something that is not a value.

    Attributes
    ----------
    path : str
        Where it is in what was to be written, such as ``.steps[1][1].func``.
    """

    def __init__(self, reason: str):
        super().__init__(reason)
        self.path = ""


class Codec(Protocol):
    """Knows how objects that are not values are taken apart and put together."""

    def take_apart(self, value: Any) -> tuple[str, dict[str, Any]] | None:
        """Return the name and the fields of an object; None if it is not known."""

    def put_together(self, name: Any, fields: dict[str, Any]) -> Any:
        """Return the object; raise any error if there is no such, or the fields are not what they should be."""


def register(cls: AnyClass) -> AnyClass:
    """Let objects of a class be values; to be used as a decorator.

    The class has ``_to_fields(self)``, which returns a dict of names to values, and the class method
    ``_from_fields(fields, trusted)``, which builds an equal object, or raises if the fields are not what they should
    be; trusted fields need no check. All subclasses of ``Model`` are registered automatically.
    """
    _classes[_name_of(cls)] = cls
    return cls


def dumps(value: Any, codec: Codec | None = None) -> bytes:
    """Return the bytes of a value.

    Parameters
    ----------
    value : object
    codec : Codec, optional
        What knows more objects than values.

    Raises
    ------
    TypeError
        For anything that is not a value: functions, arrays of objects, objects of other classes.
    """
    writer = _Writer(codec)
    header = json.dumps(writer.encode(value, 0), separators=(",", ":"), allow_nan=False).encode()
    if len(header) > LARGEST_HEADER:
        raise RefusedError(
            f"a value must not have more than {LARGEST_HEADER} bytes of JSON. Got {len(header)}; use arrays for lists."
        )
    body = b"".join([SIZE.pack(len(header)), header, *writer.buffers])
    return MAGIC + _checksum(body) + body


def loads(payload: bytes | memoryview, trusted: bool = False, codec: Codec | None = None) -> Any:
    """Return the value of bytes of ``dumps``. Arrays are new, writable, and of the machine's byte order.

    Parameters
    ----------
    payload : bytes
    trusted : bool, default=False
        The bytes have not left this process since ``dumps`` made them, so that constructors need not check again.
    codec : Codec, optional
        What knows more objects than values.

    Raises
    ------
    UnreadableError
        For all other bytes, whatever they are.
    """
    try:
        body = memoryview(payload)[len(MAGIC) + DIGEST_SIZE :]
        if bytes(payload[: len(MAGIC) + DIGEST_SIZE]) != MAGIC + _checksum(body):
            raise UnreadableError("the bytes are damaged, or not a value of this format.")
        return _Reader(body, trusted, codec).read()
    except UnreadableError:
        raise
    except Exception as error:  # constructors may refuse fields by any error
        raise UnreadableError(f"the bytes are not a value ({type(error).__name__}: {error!s:.300}).") from error


def _checksum(body: Any) -> bytes:
    return hashlib.blake2b(body, digest_size=DIGEST_SIZE).digest()


def _name_of(cls: type) -> str:
    """Return the name of a class: short for the package's models and alphabets, with the module for all others."""
    return cls.__name__ if cls.__module__.startswith(OWN) else f"{cls.__module__}.{cls.__qualname__}"


def _find(name: Any) -> Any:
    """Return the registered class of a name; of this package's own, the module need not have been imported."""
    if not isinstance(name, str):
        raise UnreadableError("the name of a class must be a string.")
    package = sys.modules["genkern"]
    if name not in _classes and name in package.__all__ and name[0].isupper():
        getattr(package, name)  # imports its module, which registers it
    if name not in _classes:
        raise UnknownClassError(f"the class {name!r:.80} is not known; import the module that defines it first")
    return _classes[name]


# --- writing


class _Writer:
    """Writes one value, collecting the buffers."""

    def __init__(self, codec: Codec | None):
        self.buffers: list[bytes] = []
        self._codec = codec

    def encode(self, value: Any, depth: int) -> Any:
        """Return the JSON of a value, appending its buffers."""
        if depth > DEEPEST:
            raise RefusedError(f"a value must not be nested more than {DEEPEST} deep.")
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int and value.bit_length() <= LARGEST_INT:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is bytes:
            self.buffers.append(value)
            return {"bytes": len(value)}
        if kind is list:
            return self._items(value, depth)
        if kind is tuple:
            return {"tuple": self._items(value, depth)}
        if kind is dict:
            keys, items = self._items(value, depth), self._fields(value, depth, "[{!r}]").values()
            return {"dict": [list(pair) for pair in zip(keys, items)]}
        if kind is np.str_:
            return str(value)
        if kind is np.ndarray and (self._codec is None or value.dtype.kind != "O"):
            return {"array": self._array(value)}
        if isinstance(value, np.generic):
            return {"scalar": self._append(np.asarray(value))}
        return self._object(value, kind, depth)

    def _object(self, value: Any, kind: type, depth: int) -> Any:
        name = _name_of(kind)
        if _classes.get(name) is kind:
            return {"value": [name, self._fields(value._to_fields(), depth)]}
        known = None if self._codec is None else self._codec.take_apart(value)
        if known is not None:
            return {"object": [known[0], self._fields(known[1], depth)]}
        raise RefusedError(
            f"a {name} is not a value: expected numbers, strings, bytes, None, arrays of these, lists, tuples, dicts, "
            "alphabets or models (subclasses of genkern.models.base.Model)."
        )

    def _items(self, items: Any, depth: int) -> list[Any]:
        """Return the JSON of some values."""
        return list(self._fields(dict(enumerate(items)), depth, "[{}]").values())

    def _fields(self, fields: dict[Any, Any], depth: int, form: str = ".{}") -> dict[Any, Any]:
        """Return the JSON of values by name; an error says under which it was met."""
        found, name = {}, None
        try:
            for name, item in fields.items():
                found[name] = self.encode(item, depth + 1)
        except RefusedError as error:
            error.path = form.format(name) + error.path
            raise
        return found

    def _array(self, array: NDArray[Any]) -> list[Any]:
        """Return the type, the shape and, if it is not C order, the order of the axes in memory."""
        axes = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
        if array.flags.c_contiguous or axes == sorted(axes):
            return [self._append(array), list(array.shape)]
        return [self._append(array.transpose(axes)), list(array.shape), axes]

    def _append(self, array: NDArray[Any]) -> str:
        """Append the little-endian bytes of an array in C order; return its type."""
        dtype = array.dtype.newbyteorder("<").str
        if not PLAIN_TYPES.fullmatch(dtype):
            raise RefusedError(
                f"an array of dtype {array.dtype} is not a value: expected bools, ints, floats or strings."
            )
        self.buffers.append(array.astype(dtype, order="C", copy=False).tobytes())
        return dtype


# --- reading


class _Reader:
    """Reads one value, taking the buffers in order."""

    def __init__(self, body: memoryview, trusted: bool, codec: Codec | None):
        size = SIZE.unpack_from(body)[0]
        if size > LARGEST_HEADER:
            raise UnreadableError(f"the JSON is declared to have {size} bytes; at most {LARGEST_HEADER} are legal.")
        self._body, self._trusted, self._codec = body, trusted, codec
        self._at = SIZE.size
        self._header = bytes(self._take(size))

    def read(self) -> Any:
        node = json.loads(self._header, object_pairs_hook=_object, parse_float=_finite, parse_constant=_refuse_constant)
        value = self._decode(node, 0)
        if self._at != len(self._body):
            raise UnreadableError(f"{len(self._body) - self._at} bytes are left over.")
        return value

    def _take(self, count: int) -> memoryview:
        """Return the next bytes."""
        if count > len(self._body) - self._at:
            raise UnreadableError(f"{count} bytes are declared, {len(self._body) - self._at} are left.")
        self._at += count
        return self._body[self._at - count : self._at]

    def _decode(self, node: Any, depth: int) -> Any:
        if depth > DEEPEST:
            raise UnreadableError(f"values are nested more than {DEEPEST} deep.")
        if isinstance(node, list):
            return [self._decode(item, depth + 1) for item in node]
        if not isinstance(node, dict):
            return node
        if len(node) != 1:
            raise UnreadableError(f"expected one key. Got {len(node)}.")
        ((tag, content),) = node.items()
        if tag not in _READERS:
            raise UnreadableError(f"the key {tag!r:.80} has no meaning.")
        return _READERS[tag](self, content, depth + 1)

    def _float(self, content: Any, depth: int) -> float:
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[content]

    def _tuple(self, content: Any, depth: int) -> tuple[Any, ...]:
        return tuple([self._decode(item, depth) for item in _checked(content, list)])

    def _dict(self, content: Any, depth: int) -> dict[Any, Any]:
        pairs = [(self._decode(key, depth), self._decode(item, depth)) for key, item in _checked(content, list)]
        return _object(pairs)

    def _bytes(self, content: Any, depth: int) -> bytes:
        return bytes(self._take(_count(content)))

    def _scalar(self, content: Any, depth: int) -> Any:
        return self._read_array(content, [])[()]

    def _array(self, content: Any, depth: int) -> NDArray[Any]:
        dtype, shape, *rest = _checked(content, list)
        if not rest:
            return self._read_array(dtype, _checked(shape, list))
        (axes,) = rest  # as they lie in memory
        if sorted(map(_count, _checked(axes, list))) != list(range(len(_checked(shape, list)))):
            raise UnreadableError("the axes of an array are not in any order.")
        return self._read_array(dtype, [shape[axis] for axis in axes]).transpose(np.argsort(axes))

    def _read_array(self, dtype: Any, shape: list[Any]) -> NDArray[Any]:
        if not PLAIN_TYPES.fullmatch(_checked(dtype, str)):
            raise UnreadableError(f"arrays of type {dtype!r:.80} are not legal.")
        kind = np.dtype(dtype)
        data = self._take(math.prod(map(_count, shape)) * kind.itemsize)
        if kind.kind == "b" and (np.frombuffer(data, np.uint8) > 1).any():
            raise UnreadableError("a bool is neither 0 nor 1.")
        if kind.kind == "U" and (np.frombuffer(data, "<u4") > 0x10FFFF).any():
            raise UnreadableError("a string has a character that does not exist.")
        return np.ndarray(shape, kind, data).astype(kind.newbyteorder("="))

    def _value(self, content: Any, depth: int) -> Any:
        name, fields = _checked(content, list)
        cls = _find(name)
        decoded = {key: self._decode(item, depth) for key, item in _checked(fields, dict).items()}
        return cls._from_fields(decoded, self._trusted)

    def _object(self, content: Any, depth: int) -> Any:
        if self._codec is None:
            raise UnreadableError("objects that are not values are not legal here.")
        name, fields = _checked(content, list)
        decoded = {key: self._decode(item, depth) for key, item in _checked(fields, dict).items()}
        return self._codec.put_together(name, decoded)


_READERS: dict[str, Callable[[_Reader, Any, int], Any]] = {
    "float": _Reader._float,
    "tuple": _Reader._tuple,
    "dict": _Reader._dict,
    "bytes": _Reader._bytes,
    "scalar": _Reader._scalar,
    "array": _Reader._array,
    "value": _Reader._value,
    "object": _Reader._object,
}


def _object(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return a dict of pairs whose keys all differ."""
    known = dict(pairs)
    if len(known) < len(pairs):
        raise UnreadableError("a key occurs twice.")
    return known


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise UnreadableError(f"the number {text:.80} is not finite.")
    return number


def _refuse_constant(text: str) -> NoReturn:
    raise UnreadableError(f"{text} is not JSON.")


def _count(value: Any) -> int:
    """Return an int that can be a size."""
    if type(value) is not int or value < 0:
        raise UnreadableError("expected a size, an int that is not negative.")
    return value


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise UnreadableError(f"expected a {kind.__name__}. Got a {type(value).__name__}.")
    return value
