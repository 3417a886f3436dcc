"""Files that are whole or not there: written beside their place, and moved to it when they are complete."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str], who: str) -> Iterator[IO[bytes]]:
    """Open a binary file beside its place; move it there at the end, or leave nothing of it where anything fails.

    A link stays one: the file that it points to is replaced. A new file has the mode of others that the user makes, one
    that takes the place of another has its mode.

    Raises
    ------
    OSError
        Naming the file, why it cannot be written, and that what was there before is as it was.
    """
    target = check_place(path, who)
    folder = None
    try:
        folder = tempfile.mkdtemp(prefix=f".{target.name[:50]}.", dir=target.parent)  # for this user alone
        beside = Path(folder) / "new"
        with open(beside, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            shutil.copymode(target, beside)
        os.replace(beside, target)
    except OSError as error:
        if folder is not None and error.filename is not None and not str(error.filename).startswith(folder):
            raise  # of another file, which is read meanwhile
        left = "the file that was there is as it was" if target.exists() else "no file was made"
        reason = f"{who}: {path} cannot be written ({error.strerror}); {left}. Make room, or give another path."
        raise OSError(error.errno, reason) from error
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def check_place(path: str | os.PathLike[str], who: str) -> Path:
    """Return where a file will be, refusing a folder and a place in none."""
    target = Path(os.path.realpath(path))  # a link is followed
    if target.is_dir():
        raise IsADirectoryError(f"{who}: {path} is a folder; name a file in it.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{who}: the folder {target.parent} does not exist; make it first.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"{who}: there is no permission to write into {target.parent}; name another folder.")
    return target
