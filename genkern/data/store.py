"""A memo of results keyed by content, in memory or in a folder, that survives cloning and refitting."""

from __future__ import annotations

import contextlib
import math
import os
import stat
import tempfile
import threading
import time
import uuid
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from genkern.core.private import make_private, openness
from genkern.data.digests import make_key
from genkern.data.serialize import UnknownClassError, UnreadableError, dumps, loads
from genkern.validation import check_int

__all__ = ["Store", "make_key"]

PICKLED = b"genkern1"  # first bytes of entries of the old format, pickles, which are never loaded
ENTRY, TEMPORARY = ".entry", ".tmp"
KEEP = 0.9  # share of max_bytes kept when evicting, so that it is not done at every put
STALE = 3600.0  # seconds after which a temporary file belongs to a dead process

_live: WeakValueDictionary[str, Store] = WeakValueDictionary()
_live_lock = threading.RLock()


class Store:
    """A content-keyed memo of per-object results, e.g. the models that `FitEach` fits.

    Shared by all clones and deep copies of the estimators that hold it, so a grid search computes each entry
    once per setting. Least recently used entries are dropped beyond `max_bytes`. Safe to use from many
    threads and, with a path, from many processes at once: an entry is one file, written aside and moved into
    place.

    Failures of the store never prevent a result. Damaged entries are computed again; results that cannot be written
    (a folder that is read-only, or full) or are no values (objects of other classes) are not stored, with one warning.

    Entries hold arrays and JSON (``genkern.data.serialize``): reading one cannot run code, and a model that is read has
    passed its constructor. Values are models, alphabets, numbers, strings, arrays, and lists, tuples and dicts of
    these. A subclass of ``Model`` is one, too; to be read, its module must have been imported.

    Pickles as its path; without one, as a handle that finds the same store again inside the process and is a
    new, empty store elsewhere.

    Parameters
    ----------
    path : path-like, default=None
        Folder of the entries; if it does not exist it is created, for this user only
        (mode 700, files 600, whatever the umask). None: in memory. In a folder that others can write, their entries
        would be used as fits; this gives a warning.
    max_bytes : int, default=2**30
        Limit to the size of all entries, in memory or on disk.

    Attributes
    ----------
    hits, misses : int
        How often an entry was found, and not found, by this instance.

    Examples
    --------
    >>> store = Store()
    >>> keys = [make_key(text) for text in ("a", "bb", "a")]
    >>> store.fetch_many(keys, lambda missing: [10 * i for i in missing])
    [0, 10, 0]
    >>> store.misses, store.n_entries
    (2, 2)
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, max_bytes: int = 2**30):
        self.path = None if path is None else Path(path).expanduser().absolute()
        self.max_bytes = check_int(max_bytes, "max_bytes", "Store", minimum=1)
        self._backend: _Memory | _Folder = _Memory() if self.path is None else _Folder(self.path)
        self._lock = threading.Lock()
        self._told: set[str] = set()
        self.hits = self.misses = 0
        self._token = uuid.uuid4().hex
        with _live_lock:
            _live[self._token] = self
        if isinstance(self._backend, _Folder):
            self._prepare(self._backend)

    def get(self, key: str) -> Any:
        """Return the value of a key, None if there is none."""
        value = None
        try:
            payload = self._backend.read(_check_key(key), self.max_bytes)
            value = None if payload is None else loads(payload, trusted=self.path is None)
        except UnknownClassError as error:
            self._warn("class", f"{self._backend.name(key)} cannot be read and is computed again ({error}).")
        except UnreadableError as error:
            self._warn("damage", f"{self._backend.name(key)} is damaged; its entry is computed again ({error})")
        except OSError as error:
            self._warn("read", f"{self._backend.name(key)} cannot be read and is computed again ({error}).")
        with self._lock:
            self.hits += value is not None
            self.misses += value is None
        return value

    def put(self, key: str, value: Any) -> None:
        """Store a value, which must not be None, under a key of `make_key`.

        Values that cannot be stored are skipped with a warning.
        """
        _check_key(key)
        if value is None:
            raise ValueError("Store.put: a value must not be None, which stands for an absent one.")
        try:
            payload = dumps(value)
        except TypeError as error:
            self._warn("type", f"results are not kept: {error}")
            return
        if len(payload) > self.max_bytes:
            warnings.warn(
                f"Store: a value of {len(payload)} bytes exceeds max_bytes={self.max_bytes} and is not kept. "
                "Raise max_bytes.",
                stacklevel=2,
            )
            return
        try:
            self._backend.write(key, payload, self.max_bytes)
        except OSError as error:
            self._warn_unwritable(error)

    def fetch_many(self, keys: Sequence[str], compute: Callable[[list[int]], Sequence[Any]]) -> list[Any]:
        """Return the values of all keys, computing the missing ones in one call and storing each.

        Parameters
        ----------
        keys : sequence of str
            Keys of `make_key`; a key may occur several times.
        compute : callable
            Called with the indices into `keys` of the missing values, one per distinct key and at least one;
            returns their values in the same order.

        Returns
        -------
        values : list
            One value per key. Equal keys share one value.
        """
        first: dict[str, int] = {}
        for index, key in enumerate(keys):
            first.setdefault(key, index)
        found = {key: value for key in first if (value := self.get(key)) is not None}
        missing = [index for key, index in first.items() if key not in found]
        if missing:
            computed = compute(missing)
            if len(computed) != len(missing):
                raise ValueError(f"Store.fetch_many: expected {len(missing)} values. Got {len(computed)}.")
            for index, value in zip(missing, computed):
                self.put(keys[index], value)
                found[keys[index]] = value
        return [found[key] for key in keys]

    def clear(self) -> None:
        """Remove all entries and reset the counters."""
        self._backend.clear()
        with self._lock:
            self.hits = self.misses = 0

    @property
    def n_entries(self) -> int:
        """The number of entries."""
        return self._backend.usage()[0]

    @property
    def n_bytes(self) -> int:
        """The size of all entries."""
        return self._backend.usage()[1]

    def _prepare(self, folder: _Folder) -> None:
        """Make the folder; warn if that is not possible, or if others can write there."""
        try:
            make_private(folder.path)
            found = openness(Path(os.path.realpath(folder.path)))
        except OSError as error:
            self._warn_unwritable(error)
            return
        if found is not None:
            self._warn(
                "open", f"{found}, and what others put there would be taken for results. Use a folder of mode 700."
            )

    def _warn_unwritable(self, error: OSError) -> None:
        text = f"the folder {self.path} cannot be written, so that results are not kept ({error}). "
        self._warn("write", text + "Make room or give another path.")

    def _warn(self, kind: str, text: str) -> None:
        """Warn of each kind of problem once."""
        with self._lock:
            known = kind in self._told
            self._told.add(kind)
        if not known:
            warnings.warn(f"Store: {text}", stacklevel=4)

    def __repr__(self) -> str:
        entries, size = self._backend.usage()
        where = "in memory" if self.path is None else f"path={str(self.path)!r}"
        return f"Store({where}, {entries} entries, {size} bytes, {self.hits} hits, {self.misses} misses)"

    def __sklearn_clone__(self) -> Store:
        return self

    def __copy__(self) -> Store:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Store:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        path = None if self.path is None else str(self.path)
        return _restore, (path, self.max_bytes, self._token)


def _restore(path: str | None, max_bytes: int, token: str) -> Store:
    """Return the living store of a token, or a new one that later handles of the token will find."""
    with _live_lock:
        store = _live.get(token)
        if store is None:
            store = _live[token] = Store(path, max_bytes)
            store._token = token
    return store


def _check_key(key: Any) -> str:
    """Return a key that is safe as a file name."""
    if not isinstance(key, str) or len(key) < 8 or not set(key) <= set("0123456789abcdef"):
        raise ValueError(f"Store: a key must be a hex digest of make_key. Got {key!r}.")
    return key


class _Memory:
    """Payloads in a dictionary, the least recently used first."""

    def __init__(self) -> None:
        self._entries: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def name(self, key: str) -> str:
        return f"entry {key}"

    def read(self, key: str, max_bytes: int) -> bytes | None:
        with self._lock:
            payload = self._entries.get(key)
            if payload is not None:
                self._entries.move_to_end(key)
            return payload

    def write(self, key: str, payload: bytes, max_bytes: int) -> None:
        with self._lock:
            self._size += len(payload) - len(self._entries.pop(key, b""))
            self._entries[key] = payload
            while self._size > max_bytes:
                self._size -= len(self._entries.popitem(last=False)[1])

    def usage(self) -> tuple[int, int]:
        with self._lock:
            return len(self._entries), self._size

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._size = 0


class _Folder:
    """Payloads in files; the time of the last use is the time of the file's last modification."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._unseen = math.inf  # bytes written since the folder was last scanned
        self._size = 0
        self._lock = threading.Lock()

    def _file(self, key: str) -> Path:
        return self.path / key[:2] / (key + ENTRY)

    def name(self, key: str) -> str:
        return str(self._file(key))

    def read(self, key: str, max_bytes: int) -> bytes | None:
        file = self._file(key)
        try:
            payload = _read_regular(file, max_bytes)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if payload.startswith(PICKLED):
            return None
        with contextlib.suppress(OSError):  # evicted by another process, or a folder that is only readable
            os.utime(file)
        return payload

    def write(self, key: str, payload: bytes, max_bytes: int) -> None:
        file = self._file(key)
        make_private(file.parent)
        handle, name = tempfile.mkstemp(suffix=TEMPORARY, dir=file.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(payload)
            os.chmod(name, 0o600)  # whatever the umask
            os.replace(name, file)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
        with self._lock:
            self._size += len(payload)
            self._unseen += len(payload)
            # Other processes write too, so the folder is counted anew after every sixteenth of the limit.
            if self._size > max_bytes or self._unseen > max_bytes / 16:
                self._evict(max_bytes)

    def _evict(self, max_bytes: int) -> None:
        """Count the folder, and drop the least recently used entries if they are too many."""
        files = self._scan()
        self._size = sum(size for _, size, _ in files)
        self._unseen = 0
        if self._size > max_bytes:
            for _, size, file in sorted(files):
                if self._size <= KEEP * max_bytes:
                    break
                with contextlib.suppress(OSError):
                    os.unlink(file)
                self._size -= size

    def _scan(self) -> list[tuple[float, int, str]]:
        """Return time, size and name of all entries, removing temporary files of dead processes."""
        files = []
        for folder in self.path.glob("??"):
            found: list[os.DirEntry[str]] = []
            with contextlib.suppress(OSError):  # not a folder, or not ours
                found = list(os.scandir(folder))
            for entry in found:
                with contextlib.suppress(OSError):
                    status = entry.stat()
                    if entry.name.endswith(ENTRY):
                        files.append((status.st_mtime, status.st_size, entry.path))
                    elif entry.name.endswith(TEMPORARY) and status.st_mtime < time.time() - STALE:
                        os.unlink(entry.path)
        return files

    def usage(self) -> tuple[int, int]:
        files = self._scan()
        return len(files), sum(size for _, size, _ in files)

    def clear(self) -> None:
        for _, _, file in self._scan():
            with contextlib.suppress(OSError):
                os.unlink(file)
        with self._lock:
            self._unseen = math.inf


def _read_regular(file: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file (a pipe would never end) that is not too large for an entry."""
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(handle, "rb") as stream:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableError("it is not a file.")
        if status.st_size > max_bytes:
            raise UnreadableError(f"it has {status.st_size} bytes, more than max_bytes={max_bytes}.")
        return stream.read(max_bytes)
