"""One decorator for compiled code: its flags, and a cache directory that follows the sources.

Numba notices an edit of the decorated function's own file but not of a callee in another one. So the cache of
compiled code lies in a directory named by a digest of the sources in ``core/``: any edit opens a fresh one.
It lies under ``NUMBA_CACHE_DIR`` if that is set, else in the user's cache directory, else in a temporary one.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import config
from numba.core.options import DefaultOptions

Function = TypeVar("Function", bound=Callable[..., Any])

# fastmath stays off: it breaks -inf and NaN. parallel stays off: threads run serial kernels over bins.
FLAGS: dict[str, Any] = {"nopython": True, "nogil": True, "cache": True, "error_model": "numpy"}

# Numba counts references to arrays with atomic operations, also inside loops; what allocates nothing can do without.
UNCOUNTED: dict[str, Any] = {**FLAGS, **({"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {})}

COMPILED = not config.DISABLE_JIT


def jit(function: Function) -> Function:
    """Compile a module-level function: nopython, GIL released, cached on disk, IEEE arithmetic kept.

    With ``NUMBA_DISABLE_JIT=1`` the function is returned as it is.
    """
    return _compiled(function, FLAGS)


def kernel(function: Function) -> Function:
    """Compile a module-level function like jit, but without reference counts: it must not allocate arrays."""
    return _compiled(function, UNCOUNTED)


def inlined(function: Function) -> Function:
    """Compile a small module-level function into each of its compiled callers, without a call or a cost of its own.

    For the bodies of hot loops: a call that passes arrays costs more than many of them do.
    """
    return _compiled(function, {**FLAGS, "inline": "always"})


def _compiled(function: Function, flags: dict[str, Any]) -> Function:
    """Return the dispatcher of a function, or the function itself where nothing is compiled."""
    if not COMPILED:
        return function
    # A dispatcher takes its cache directory when it is made, so the setting of the process is only borrowed:
    # other libraries' caches stay where they are.
    chosen = config.CACHE_DIR
    try:
        config.CACHE_DIR = str(cache_directory(chosen))
        return numba.jit(**flags)(function)
    finally:
        config.CACHE_DIR = chosen


@cache
def cache_directory(chosen: str = "") -> Path:
    """Return a writable directory for compiled code, keyed by the digest of this package's sources."""
    name = f"genkern-{source_digest()}"
    base = Path(chosen) if chosen else _user_cache()
    for directory in (base / name, Path(tempfile.gettempdir()) / f"{name}-{_user_id()}"):
        if _is_ours(directory):
            return directory
    return Path(tempfile.mkdtemp(prefix=name))


@cache
def source_digest() -> str:
    """Return a short hexadecimal digest of the names and contents of all sources in this package."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _user_cache() -> Path:
    """Return the platform's cache directory of this user; it need not exist."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or os.path.expanduser("~"))
    if sys.platform == "darwin":
        return Path(os.path.expanduser("~")) / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"))


def _user_id() -> int:
    """Return the number of this user, or zero where the system has none."""
    return os.getuid() if hasattr(os, "getuid") else 0


def _is_ours(directory: Path) -> bool:
    """Make the directory if need be; say whether it belongs to this user and can be written.

    Ownership matters in a shared temporary directory: compiled code found there is executed.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        owned = not hasattr(os, "getuid") or directory.stat().st_uid == os.getuid()
    except OSError:
        return False
    return owned and os.access(directory, os.W_OK | os.X_OK)
