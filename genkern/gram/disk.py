"""Symmetric matrices on disk, in blocks: an interrupted computation goes on, and a damaged block is found.

While a matrix is computed its name is ``NAME.part``, so that half a matrix never has the name of a whole one.
Beside the numbers lies a manifest, JSON in lines: first what is computed (kernel, digests of the objects, size of the
blocks), then the checksum of every block that is done. A block counts only once its line is written.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from genkern.data.digests import make_key, state_key
from genkern.validation import Floats

FORMATS = (".zarr", ".npy")
MANIFEST, OBJECTS = "manifest.jsonl", "objects.txt"
PART = ".part"


class Place(NamedTuple):
    """Where the blocks of a matrix are; workers open it by its path.

    Parameters
    ----------
    path : str
        Folder (zarr) or file (npy) of the numbers.
    n, size : int
        Rows of the matrix and of a block.
    """

    path: str
    n: int
    size: int

    def write(self, i: int, j: int, values: Floats) -> str:
        """Write block (i, j) and its transpose in block (j, i); return the checksum."""
        pair = {(i, j): values, (j, i): values.T}
        if self.path.removesuffix(PART).endswith(".npy"):
            matrix = np.load(self.path, mmap_mode="r+", allow_pickle=False)
            for (a, b), block in pair.items():
                matrix[self._span(a), self._span(b)] = block
            matrix.flush()
        else:
            for (a, b), block in pair.items():
                self._write_chunk(a, b, block)
        return checksum(values)

    def read(self, i: int, j: int) -> Floats | None:
        """Return block (i, j), or None where there is none of its size."""
        rows, columns = self._span(i), self._span(j)
        if self.path.removesuffix(PART).endswith(".npy"):
            return np.array(np.load(self.path, mmap_mode="r", allow_pickle=False)[rows, columns])
        try:
            chunk = np.fromfile(self._chunk(i, j), "<f8")
        except OSError:
            return None
        if chunk.size != self.size**2:
            return None
        return chunk.reshape(self.size, self.size)[: rows.stop - rows.start, : columns.stop - columns.start]

    def holds(self, i: int, j: int, digest: str) -> bool:
        """Say whether block (i, j) and its transpose are as they were written."""
        first, second = self.read(i, j), self.read(j, i)
        return first is not None and second is not None and checksum(first) == checksum(second.T) == digest

    def _span(self, index: int) -> slice:
        return slice(index * self.size, min((index + 1) * self.size, self.n))

    def _chunk(self, i: int, j: int) -> Path:
        return Path(self.path) / "c" / str(i) / str(j)

    def _write_chunk(self, i: int, j: int, block: Floats) -> None:
        """Write one chunk of zarr beside its place, and move it there."""
        whole = np.full((self.size, self.size), np.nan)  # chunks at the edges are filled up
        whole[: block.shape[0], : block.shape[1]] = block
        target = self._chunk(i, j)
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f".{j}.{os.getpid()}")
        try:
            with open(beside, "wb") as stream:
                stream.write(whole.astype("<f8", copy=False).tobytes())
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(beside, target)
        finally:
            beside.unlink(missing_ok=True)


class DiskMatrix:
    """A symmetric matrix (n, n) on disk that is being computed, or is complete.

    Parameters
    ----------
    path : path
        Its name, ending in .zarr or .npy.
    n : int
        Rows of the matrix.
    size : int or None
        Rows of a block; None for those of the matrix that is there already, or else of ``usual``.
    usual : int
        Rows of a block of a new matrix.
    what : dict
        What is computed, as JSON holds it: another one under the same name is refused.
    objects : sequence of str
        Digests of the objects.
    """

    def __init__(
        self, path: Path, n: int, size: int | None, usual: int, what: Mapping[str, Any], objects: Sequence[str]
    ):
        self.path, self._n, self._objects = path, n, list(objects)
        self._now = path if path.exists() else path.with_name(path.name + PART)
        self._what = {**what, "objects": n, "digest": make_key(self._objects)}
        begun = self._at(MANIFEST).exists()
        found = json.loads(self._at(MANIFEST).read_text(encoding="utf-8").partition("\n")[0]) if begun else {}
        self.size = size or found.get("block", usual)
        self._what["block"] = self.size
        self.place = Place(str(self._now), n, self.size)
        if begun:
            self._compare(found)
        elif self._now.exists():
            raise FileExistsError(f"Gram: {self._now} exists and is no matrix of Gram. Name another, or move it away.")
        else:
            self._create()

    def missing(self, blocks: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the blocks that must be computed: those that are not listed, or not as they were written."""
        known = self._known()
        return [one for one in blocks if one not in known or not self.place.holds(*one, known[one])]

    def done(self, i: int, j: int, digest: str) -> None:
        """List a block that is written."""
        with open(self._at(MANIFEST), "a", encoding="utf-8") as stream:
            stream.write(json.dumps({"block": [i, j], "checksum": digest}) + "\n")
            stream.flush()
            os.fsync(stream.fileno())

    def finish(self) -> None:
        """Give the matrix its name."""
        if self._now != self.path:
            os.replace(self._now, self.path)
            self._now, self.place = self.path, self.place._replace(path=str(self.path))

    def open(self) -> Any:
        """Return the matrix, to be read: a memory map, or an array of zarr."""
        if self.path.suffix == ".npy":
            return np.load(self.path, mmap_mode="r", allow_pickle=False)
        return zarr_module("Gram").open_array(str(self.path), mode="r")

    def _at(self, name: str) -> Path:
        """Return the place of a file that belongs to the matrix."""
        beside = self.path.with_name(self.path.name + ".manifest")
        return (beside if self.path.suffix == ".npy" else self._now) / name

    def _create(self) -> None:
        need = 8 * (-(-self._n // self.place.size) * self.place.size) ** 2
        free = shutil.disk_usage(self.path.parent).free
        if need > free:
            raise OSError(
                errno.ENOSPC,
                f"Gram: {self.path} needs {need / 1e9:.1f} GB, and its disk has {free / 1e9:.1f} GB left. Name one "
                "with room, keep few values by threshold= or top_k=, or use Nystrom features.",
            )
        folder = self._at(MANIFEST).parent
        folder.mkdir()
        try:
            if self.path.suffix == ".npy":
                self._reserve()
            else:
                (folder / "zarr.json").write_text(json.dumps(_zarr_description(self._n, self.place.size)))
            (folder / OBJECTS).write_text("\n".join(self._objects) + "\n")
            self._at(MANIFEST).write_text(json.dumps(self._what) + "\n")
        except BaseException as error:
            shutil.rmtree(folder)
            if self.path.suffix == ".npy":
                self._now.unlink(missing_ok=True)
            if not isinstance(error, OSError):
                raise
            reason = f"Gram: {self.path} cannot be written ({error.strerror}); nothing was made. Make room, or name "
            raise OSError(error.errno, f"{reason}another disk.") from error

    def _reserve(self) -> None:
        """Make the file, with its room on disk: a write into a map that finds no room would end the process."""
        np.lib.format.open_memmap(self._now, "w+", np.float64, (self._n, self._n)).flush()
        if hasattr(os, "posix_fallocate"):
            with open(self._now, "r+b") as stream:
                os.posix_fallocate(stream.fileno(), 0, os.fstat(stream.fileno()).st_size)

    def _compare(self, found: Mapping[str, Any]) -> None:
        """Refuse a manifest of something else, saying what differs."""
        differ = [name for name in {**found, **self._what} if found.get(name) != self._what.get(name)]
        if not differ:
            return
        if differ == ["digest"]:
            kept = self._at(OBJECTS).read_text(encoding="utf-8").split()
            i = next(i for i, (a, b) in enumerate(zip(kept, self._objects)) if a != b)
            why = f"object {i} is another one than when it was begun"
        else:
            name = next(name for name in differ if name != "digest")
            why = f"its {name} is {found.get(name)}, not {self._what.get(name)}"
        raise ValueError(f"Gram: {self._now} is another matrix: {why}. Name another file, or move that one away.")

    def _known(self) -> dict[tuple[int, int], str]:
        """Return the checksums of the blocks that are listed; a line that was cut off does not count."""
        text = self._at(MANIFEST).read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        if len(whole) < len(text):
            with open(self._at(MANIFEST), "r+", encoding="utf-8") as stream:
                stream.truncate(len(whole.encode()))
        entries = [json.loads(line) for line in whole.splitlines()[1:]]
        return {(entry["block"][0], entry["block"][1]): entry["checksum"] for entry in entries}


def checksum(values: Floats) -> str:
    """Return the checksum of a block, row by row."""
    return hashlib.blake2b(np.ascontiguousarray(values, "<f8").data, digest_size=16).hexdigest()


def object_digest(one: Any) -> str:
    """Return the digest of an object's content."""
    try:
        return make_key(one)
    except TypeError:
        return state_key(one)


def no_room(error: OSError, path: Any, done: int, total: int) -> OSError:
    """Return the error of a full disk, with what is kept."""
    return OSError(
        error.errno,
        f"Gram: {path} cannot be written ({error.strerror}). {done} of {total} blocks are done and kept. Make room, "
        "and call again: it goes on.",
    )


def check_format(path: Any) -> Path:
    """Return where a matrix will be, refusing other formats, and .zarr where nothing reads it."""
    target = Path(path)
    if target.suffix not in FORMATS:
        raise ValueError(f"Gram: 'out' must be a path that ends in .zarr or .npy. Got {str(path)!r}.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"Gram: the folder {target.parent} does not exist; make it first.")
    if target.suffix == ".zarr":
        zarr_module("Gram")
    return target


def zarr_module(who: str) -> Any:
    """Return the package zarr, or say how to get it."""
    try:
        import zarr
    except ImportError:
        raise ImportError(f"{who}: .zarr needs the package zarr: pip install 'genkern[scale]', or use .npy.") from None
    return zarr


def _zarr_description(n: int, size: int) -> dict[str, Any]:
    """Return the metadata of an array of zarr, format 3, whose chunks are plain numbers; those missing read as NaN."""
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [n, n],
        "data_type": "float64",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [size, size]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "NaN",
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {},
    }
