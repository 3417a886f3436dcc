"""What objects say of themselves: a heading and rows of a name and a value, as text and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config

LINES, COLUMNS, WIDTH = 22, 8, 76  # of a description: lines, columns of an array, letters of a value
CELL = "text-align:left;padding:0 0.75em 0 0"
MOST = 72  # numbers of an array that are spelled within a line

Rows = list[tuple[str, Any]]


class Formula(str):
    """LaTeX, which is shown whole."""


class Described:
    """An object with a description: ``str`` gives it as text, notebooks show it as a table.

    A class gives ``_heading`` and ``_details``. A value is an array of numbers, a list of lists (a table), a list of
    pairs (rows within the row, of which one called "of" comes first, in its line), or anything else, shown by ``str``.
    """

    def _heading(self) -> str:
        """Return what it is, in a few words."""
        return type(self).__name__

    def _details(self) -> Rows:
        """Return names and values."""
        return []

    def __str__(self) -> str:
        return as_text(self._heading(), self._details())

    def _repr_html_(self) -> str:
        return as_html(self._heading(), self._details())


class DescribedEstimator(Described):
    """An estimator with a description, in place of scikit-learn's diagram."""

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """Return the description as text, and as HTML unless scikit-learn is set to ``display="text"``."""
        html = {"text/html": self._repr_html_()} if get_config()["display"] == "diagram" else {}
        return {"text/plain": str(self), **html}


def as_text(heading: str, rows: Rows) -> str:
    """Return a description as at most ``LINES`` lines.

    >>> print(as_text("Thing", [("size", 3), ("table", np.eye(2))]))
    Thing
      size   3
      table  1  0
             0  1
    """
    lines = _abridged(rows)
    margin = max((2 * depth + len(name) for depth, name, _ in lines), default=0)
    shown = [heading]
    widths: list[int] = []
    for place, (depth, name, cells) in enumerate(lines):
        if name:  # a new value: the columns of all its lines
            block = [cells, *_continued(lines[place + 1 :])]
            widths = [max(len(line[i]) for line in block if i < len(line)) for i in range(max(map(len, block)))]
        text = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths))
        shown.append(f"  {'  ' * depth + name:<{margin}}  {text}".rstrip())
    return "\n".join(shown)


def as_html(heading: str, rows: Rows) -> str:
    """Return a description as a table without colours of its own; everything in it is escaped."""
    lines = _abridged(rows)
    width = max((len(cells) for _, _, cells in lines), default=1)
    body = []
    for depth, name, cells in lines:
        data = "".join(f'<td style="{CELL}">{escape(cell)}</td>' for cell in cells[:-1])
        span = width - len(cells) + 1
        last = f'<td style="{CELL}" colspan="{span}">{escape(cells[-1])}</td>' if cells else ""
        pad = f"text-align:left;vertical-align:top;padding:0 0.75em 0 {0.5 + depth}em"
        body.append(f'<tr><th scope="row" style="{pad}">{escape(name)}</th>{data}{last}</tr>')
    style = "color:currentColor;border-collapse:collapse"
    bold = "text-align:left;white-space:nowrap;color:currentColor;font-weight:bold"
    caption = f'<caption style="{bold}">{escape(heading)}</caption>'
    return f'<table class="genkern" style="{style}">{caption}<tbody>{"".join(body)}</tbody></table>'


def trimmed(text: Any, width: int = WIDTH) -> str:
    """Return text in one line, cut to a width."""
    line = " ".join(str(text).split())
    return line if len(line) <= width else line[: width - 3] + "..."


def number(value: Any) -> str:
    """Return a number with four digits."""
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def numbers(array: NDArray[Any]) -> str:
    """Return the numbers of an array in a line."""
    if array.ndim == 0:
        return number(array[()])
    return f"[{', '.join(map(numbers, array))}]"


def parameter_rows(estimator: Any) -> Rows:
    """Return the parameters of an estimator that are not at their defaults."""
    default = {name: p.default for name, p in signature(type(estimator)).parameters.items()}
    values = estimator.get_params(deep=False)
    return [(name, repr(value)) for name, value in values.items() if repr(value) != repr(default.get(name))]


def _abridged(rows: Rows) -> list[tuple[int, str, list[str]]]:
    """Return lines: depth, name (empty if it goes on) and cells, few enough for a screen."""
    lines: list[tuple[int, str, list[str]]] = []
    for most in (8, 5, 3, 2, 1):
        lines = list(_lines(rows, most, 0))
        if len(lines) < LINES:
            return lines
    return [*lines[: LINES - 2], (0, "...", [f"{len(lines) - LINES + 2} more lines"])]


def _lines(rows: Rows, most: int, depth: int) -> Iterator[tuple[int, str, list[str]]]:
    for name, value in rows:
        if isinstance(value, list) and value and isinstance(value[0], tuple):
            what = value[0][1] if value[0][0] == "of" else None
            yield depth, trimmed(name, 30), [] if what is None else [trimmed(what)]
            yield from _lines(value if what is None else value[1:], most, depth + 1)
            continue
        for place, cells in enumerate(_cells(value, most)):
            yield depth, "" if place else trimmed(name, 30), cells


def _cells(value: Any, most: int) -> Iterator[list[str]]:
    """Yield the lines of a value, as cells."""
    if isinstance(value, np.ndarray) and value.dtype != object and value.ndim:
        table: Iterable[Any] = value if value.ndim > 1 else value[None]
    elif isinstance(value, list):
        table = value
    else:
        yield [
            value
            if isinstance(value, Formula)
            else trimmed(number(value[()] if isinstance(value, np.ndarray) else value))
        ]
        return
    rows = list(table)
    for row in rows[:most]:
        yield _columns(row)
    if len(rows) > most:
        yield [f"... ({len(rows)} in all)"]


def _columns(row: Any) -> list[str]:
    if isinstance(row, np.ndarray) and row.ndim > 1:
        return [trimmed(numbers(row))] if row.size <= MOST else [f"array of shape {row.shape}"]
    cells = [trimmed(number(cell), WIDTH if len(row) == 1 else 40) for cell in row[:COLUMNS]]
    return [*cells, f"... ({len(row)})"] if len(row) > COLUMNS else cells


def _continued(lines: list[tuple[int, str, list[str]]]) -> Iterator[list[str]]:
    """Yield the cells of lines until the next name, without the one that counts what is left out."""
    for _, name, cells in lines:
        if name:
            return
        if not cells[0].startswith("... ("):
            yield cells
