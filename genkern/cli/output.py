"""How commands answer: tables of text, JSON, and files that are whole or not there."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import click

from genkern.data.whole_files import whole_file


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
def text_file(path: Path) -> Iterator[IO[str]]:
    """Open a text file that is whole or not there."""
    with whole_file(path, "genkern") as raw:
        stream = io.TextIOWrapper(raw, encoding="utf-8", newline="", write_through=True)
        yield stream
        stream.flush()
        stream.detach()


@contextlib.contextmanager
def csv_rows(path: Path | None, head: Sequence[str]) -> Iterator[Callable[[Iterable[Iterable[Any]]], None]]:
    """Yield a function that writes rows of a CSV file, or to standard output."""
    standard: Any = contextlib.nullcontext(sys.stdout)
    with standard if path is None else text_file(path) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(head)
        yield writer.writerows


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
