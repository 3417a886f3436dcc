"""How commands answer: tables of text, JSON, and files that are whole or not there."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import click


def answer(result: Any, text: str, as_json: bool) -> None:
    """Print a result, as JSON or as text."""
    click.echo(json.dumps(_plain(result), indent=2, allow_nan=False) if as_json else text)


def table(rows: Iterable[Sequence[Any]], head: Sequence[str]) -> str:
    """Return rows of cells as aligned text, numbers to the right."""
    lines = [[str(cell) for cell in line] for line in (head, *rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    right = [all(_is_number(line[i]) for line in lines[1:]) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(line, widths, right)).rstrip()
        for line in lines
    )


@contextlib.contextmanager
def written(path: Path, binary: bool = False) -> Iterator[IO[Any]]:
    """Open a file beside its place, and move it there when it is complete; nothing is left of one that is not."""
    target = path.resolve()
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=check_writable(path).parent)
    try:
        opened: IO[Any] = os.fdopen(handle, "wb") if binary else os.fdopen(handle, "w", encoding="utf-8", newline="")
        with opened as stream:
            yield stream
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(name)
        if isinstance(error, OSError) and error.filename is None:  # a full disk names no file
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


@contextlib.contextmanager
def csv_rows(path: Path | None, head: Sequence[str]) -> Iterator[Callable[[Iterable[Iterable[Any]]], None]]:
    """Yield a function that writes rows of a CSV file, or to standard output."""
    standard: Any = contextlib.nullcontext(sys.stdout)
    with standard if path is None else written(path) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(head)
        yield writer.writerows


def check_writable(path: Path) -> Path:
    """Return a path at which a file can be made, so that this is known before the work, not after it."""
    target = path.resolve()
    if target.is_dir():
        raise click.UsageError(f"{path} is a folder; name a file in it.")
    if not target.parent.is_dir():
        raise click.UsageError(f"the folder {target.parent} does not exist; make it, or name another.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise PermissionError(13, "no permission to write there; name another folder", str(path))
    return target


def _umask() -> int:
    """Return the mask of the process, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _is_number(text: str) -> bool:
    with contextlib.suppress(ValueError):
        float(text.replace("%", "").strip() or "0")
        return True
    return False


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it; numbers that are not finite become null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
