"""Folders that are private to this user: made so whatever the umask, and looked at before what they hold is trusted."""

from __future__ import annotations

import os
import stat
from pathlib import Path

PRIVATE = 0o700
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def make_private(folder: Path) -> None:
    """Make a folder and its missing parents, for this user alone whatever the umask; those that exist stay as they are.

    Raises OSError where that is not possible.
    """
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_private(folder.parent)
    try:
        os.mkdir(folder, PRIVATE)
    except FileExistsError:
        if not folder.is_dir():  # another process may have been faster
            raise
    else:
        os.chmod(folder, PRIVATE)  # the umask can only take away, but it can take away too much


def openness(folder: Path) -> str | None:
    """Return by what others can write into a folder, None if only this user (or the administrator) can.

    Systems without owners of files say nothing here: there a user's own folders are private.
    """
    if not hasattr(os, "getuid"):
        return None
    status = os.lstat(folder)
    if stat.S_ISLNK(status.st_mode):
        return f"{folder} is a symbolic link"
    if status.st_uid != os.getuid():
        return f"{folder} belongs to another user ({status.st_uid})"
    return _writers(folder, status)


def exposure(folder: Path) -> str | None:
    """Return how others could put something into a folder, or another one in its place; None if they cannot.

    Whoever can write into a folder above can rename what is below, unless that folder is sticky, as ``/tmp`` is. So
    each of them must belong to this user or to the administrator, and be writable by the owner alone, or sticky. The
    path must be resolved: links on the way to it could be turned elsewhere.
    """
    found = openness(folder)
    if found is not None or not hasattr(os, "getuid"):
        return found
    trusted = {0, os.getuid(), os.stat(os.sep).st_uid}
    for above in folder.parents:
        status = os.lstat(above)
        if status.st_uid not in trusted:
            return f"{above} belongs to another user ({status.st_uid})"
        if not status.st_mode & stat.S_ISVTX and (found := _writers(above, status)) is not None:
            return found
    return None


def _writers(folder: Path, status: os.stat_result) -> str | None:
    if not status.st_mode & OTHERS_WRITE:
        return None
    return f"others can write into {folder} (mode {stat.S_IMODE(status.st_mode):o})"
