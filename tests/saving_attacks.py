"""Files made to do harm, from right ones: loaded, and asked for predictions, in a process that may crash.

``python saving_attacks.py FOLDER SEED COUNT`` attacks each ``*.gk`` of a folder (``*.x`` holds objects to predict),
``COUNT`` times at random, or, for ``COUNT`` of zero, by planting code in every field. It prints how many files of each
kind were refused and read, and ends with an error if anything but a refusal came of loading.
"""

from __future__ import annotations

import copy
import json
import pickle
import struct
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from joblib import parallel_config

from genkern.data.digests import make_key
from genkern.data.serialize import MAGIC, UnreadableError, _checksum, dumps, loads
from genkern.saving import ModelFileError, load
from genkern.saving.codec import Objects
from genkern.saving.files import FORMAT, PREFIX
from genkern.saving.files import MAGIC as FILE_MAGIC

TAGS = ("array", "scalar", "bytes")


class Raw:
    """A node of the JSON with the bytes that belong to it."""

    def __init__(self, tag: str, content: Any, data: bytes):
        self.tag, self.content, self.data = tag, content, data


def parts_of(path: Any) -> tuple[dict[str, Any], bytes]:
    """Return the description of a file and the bytes of its estimator."""
    content = Path(path).read_bytes()
    size = PREFIX.unpack_from(content)[2]
    return loads(content[PREFIX.size : PREFIX.size + size]), content[PREFIX.size + size :]


def file_of(about: dict[str, Any], payload: bytes) -> bytes:
    """Return a file with right checksums, as an attacker can make them."""
    description = dumps({**about, "checksum": make_key(payload)})
    return PREFIX.pack(FILE_MAGIC, FORMAT, len(description)) + description + payload


def parse(payload: bytes) -> Any:
    """Return the JSON of bytes, in which arrays have their bytes."""
    body = payload[len(MAGIC) + 16 :]
    size = struct.unpack_from("<Q", body)[0]
    at = [8 + size]

    def take(node: Any) -> Any:
        if isinstance(node, list):
            return [take(item) for item in node]
        if not isinstance(node, dict):
            return node
        ((tag, content),) = node.items() if len(node) == 1 else (("", None),)
        if tag not in TAGS:
            return {key: take(item) for key, item in node.items()}
        count = content
        if tag != "bytes":
            dtype, shape = (content[0], content[1]) if tag == "array" else (content, [])
            count = np.dtype(dtype).itemsize * int(np.prod(shape, dtype=np.int64))
        at[0] += count
        return Raw(tag, content, body[at[0] - count : at[0]])

    return take(json.loads(body[8 : 8 + size]))


def forge(tree: Any) -> bytes:
    """Return bytes of such a JSON, with a right checksum."""
    buffers = []

    def put(node: Any) -> Any:
        if isinstance(node, list):
            return [put(item) for item in node]
        if isinstance(node, dict):
            return {key: put(item) for key, item in node.items()}
        if isinstance(node, Raw):
            buffers.append(node.data)
            return {node.tag: node.content}
        return node

    header = json.dumps(put(tree)).encode()
    return signed(struct.pack("<Q", len(header)) + header + b"".join(buffers))


def signed(body: bytes) -> bytes:
    """Return bytes with a right checksum."""
    return MAGIC + _checksum(body) + body


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Return all (container, key) of a tree."""
    found = []
    items = enumerate(tree) if isinstance(tree, list) else tree.items() if isinstance(tree, dict) else ()
    for key, item in items:
        found.append((tree, key))
        found += places(item)
    return found


# --- planting


class Bomb:
    def __init__(self, path: Any):
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (Path(self.path),)


def plants(canary: Path) -> list[Any]:
    """Return what an attacker would put into a field."""
    code, pickled = f"__import__('pathlib').Path({str(canary)!r}).touch()", pickle.dumps(Bomb(canary))
    names = (
        "os.system",
        "builtins.eval",
        "builtins.exec",
        "pathlib.Path",
        "genkern.saving.files.load",
        "planted.Thing",
    )
    inner = {"__class__": "os", "__dict__": {"dict": []}, "predict": code}
    return [
        code,
        "{0.__class__.__init__.__globals__}",
        "%(__class__)s",
        str(canary),
        Raw("bytes", len(pickled), pickled),
        Raw("array", ["|O", [1]], b"\0" * 8),
        {"object": ["numpy.absolute", {}]},
        {"object": ["genkern.RBF", {"gamma": 1.0, **inner}]},
        {"object": ["genkern.RBF", {"gamma": code, "fit": {"object": ["numpy.absolute", {}]}}]},
        {"object": ["genkern.Linear", {}]},
        {"object": ["sklearn.preprocessing.FunctionTransformer", {"func": {"object": ["os.system", {}]}}]},
        {"object": ["sklearn.pipeline.Pipeline", {"steps": [], "memory": str(canary)}]},
        {"object": ["Store", {"path": str(canary), "max_bytes": 5}]},
        {"object": ["genkern.Store", {"path": str(canary)}]},
        {"object": ["genkern.Dataset", {"path": str(canary)}]},
        {"value": ["genkern.data.serialize.loads", {"payload": code}]},
        {"__reduce__": [code]},
        *({"object": [name, {"command": code, "source": code}]} for name in names),
        *({"object": [name, {}]} for name in names),
        *({"value": [name, {"_fields": [code]}]} for name in names),
    ]


KEYS = (
    "__class__",
    "__dict__",
    "__reduce__",
    "__init__",
    "__call__",
    "__sklearn_tags__",
    "__array__",
    "predict",
    "fit",
)
KEYS += ("transform", "get_params", "_validate_params", "_repr_html_", "__sklearn_clone__", "func", "a b", "_", "")


def planted(tree: Any, canary: Path) -> Any:
    """Yield trees with something planted in one of their fields, or under a new name."""
    whole = [tree]
    for container, key in places(whole):
        old = container[key]
        for plant in plants(canary):
            container[key] = plant
            yield whole[0]
        container[key] = old
        if key == "object" and isinstance(container, dict):
            for name in KEYS:
                container[key] = [old[0], {**old[1], name: {"object": ["numpy.absolute", {}]}}]
                yield whole[0]
            container[key] = old


# --- changing

NUMBERS = [0, 1, -1, 2, 3, 7, 100, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63, 1.5, -0.5, 1e308, 1e-308]
VALUES = [*NUMBERS, None, True, False, "", "x", "auto", "precomputed", "rbf", [], {"tuple": []}, {"dict": []}]
VALUES += [{"float": "nan"}, {"float": "inf"}, {"tuple": [0, 1]}, {"object": ["genkern.Linear", {}]}]


def changed(tree: Any, rng: Any) -> Any:
    """Return a tree with a few changes."""
    other = copy.deepcopy([tree])
    for _ in range(rng.integers(1, 4)):
        spots = places(other)
        container, key = spots[rng.integers(len(spots))]
        node = container[key]
        if isinstance(node, Raw) and rng.random() < 0.9:
            _change_array(node, rng)
        elif rng.random() < 0.2 and isinstance(container, dict) and len(container) > 1:
            del container[key]
        elif rng.random() < 0.3:
            source, name = spots[rng.integers(len(spots))]
            container[key] = copy.deepcopy(source[name])
        else:
            container[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
    return other[0]


def _change_array(node: Raw, rng: Any) -> None:
    if node.tag == "bytes":
        node.content, node.data = len(node.data) // 2, node.data[: len(node.data) // 2]
        return
    dtype = node.content[0] if node.tag == "array" else node.content
    shape = list(node.content[1]) if node.tag == "array" else []
    values = np.frombuffer(node.data, dtype).copy()
    how = rng.integers(4)
    if how == 0 and len(values) and values.dtype.kind in "iuf":
        extreme = np.array(NUMBERS)[rng.integers(len(NUMBERS))]
        with np.errstate(all="ignore"):
            values[rng.integers(len(values))] = np.array(extreme).astype(dtype)
    elif how == 1 and len(values):
        raw = bytearray(node.data)
        raw[rng.integers(len(raw))] = rng.integers(256)
        node.data = bytes(raw)
        return
    elif how == 2 and shape:
        axis = rng.integers(len(shape))
        size = max(0, shape[axis] + int(rng.integers(-2, 3)))
        shape[axis] = size
        values = np.resize(values, int(np.prod(shape))) if len(values) else np.zeros(int(np.prod(shape)), dtype)
    else:
        dtype = ["<f8", "<i8", "<i4", "<f4", "|b1", "|u1"][rng.integers(6)]
        with np.errstate(all="ignore"):
            values = values.astype(dtype) if values.dtype.kind in "biuf" else np.zeros(len(values), dtype)
    node.data = values.tobytes()
    node.content = [dtype, shape, *node.content[2:]] if node.tag == "array" else dtype


# --- attacking


def attack(path: Path, trees: Any, canary: Path) -> Counter[str]:
    """Load each forgery, as bytes and as a file, and ask what is read for predictions."""
    about, _ = parts_of(path)
    X, counts = loads(path.with_suffix(".x").read_bytes(), codec=Objects()), Counter()
    evil = path.with_suffix(".evil")
    for tree in trees:
        payload = forge(tree)
        try:
            estimator = loads(payload, codec=Objects())
        except UnreadableError:
            counts["refused"] += 1
            continue
        evil.write_bytes(file_of(about, payload))
        try:
            load(evil)
            counts["loaded"] += 1
        except ModelFileError:
            counts["described otherwise"] += 1
        for name in ("predict", "decision_function", "transform", "predict_proba", "log_prob", "get_params"):
            try:
                getattr(estimator, name)(*([X] if name != "get_params" else []))
                counts["answered"] += 1
            except MemoryError:
                counts["too large"] += 1
            except Exception:
                counts["failed"] += 1
        assert not canary.exists(), tree
    return counts


def main(folder: str, seed: str, count: str) -> None:
    warnings.simplefilter("ignore")
    canary = Path(folder) / "canary"
    for path in sorted(Path(folder).glob("*.gk")):
        tree = parse(parts_of(path)[1])
        rng = np.random.default_rng(int(seed))
        trees = (changed(tree, rng) for _ in range(int(count))) if int(count) else planted(tree, canary)
        with parallel_config(backend="threading"):  # processes take long to start
            found = attack(path, trees, canary)
        sys.stdout.write(f"{path.stem} {dict(found)}\n")
        sys.stdout.flush()
        assert "planted" not in sys.modules
        assert not canary.exists()


if __name__ == "__main__":
    main(*sys.argv[1:])
