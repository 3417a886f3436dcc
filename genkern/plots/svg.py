"""Pieces of hand-written SVG: elements, escaped text, scales with round ticks, axes, legends, marks, images."""

from __future__ import annotations

import base64
import math
import re
import struct
import unicodedata
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from html import escape
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from genkern.plots.style import COLOURS
from genkern.validation import Floats

SIZE = 12.0  # of text, in pixels
ENTRIES = 24  # of a legend
INVALID = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML 1.0
# Shapes around (0, 0), of equal area to the eye, in the order of style.MARKERS.
SHAPES = (
    "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z",
    "m0-4.2l4 7h-8z",
    "m-3.2-3.2h6.4v6.4h-6.4z",
    "m0-4.4l4.4 4.4l-4.4 4.4l-4.4-4.4z",
    "m0 4.2l4-7h-8z",
    "m-1.4-4.2h2.8v2.8h2.8v2.8h-2.8v2.8h-2.8v-2.8h-2.8v-2.8h2.8z",
    "m0-4.8l1.3 3.1 3.3.3-2.5 2.2.8 3.3-2.9-1.8-2.9 1.8.8-3.3-2.5-2.2 3.3-.3z",
    "m-4-2.2l1.8-1.8 2.2 2.2 2.2-2.2 1.8 1.8-2.2 2.2 2.2 2.2-1.8 1.8-2.2-2.2-2.2 2.2-1.8-1.8 2.2-2.2z",
)


def number(value: float) -> str:
    """Return a coordinate with at most one decimal."""
    text = f"{value:.1f}"
    text = text[:-2] if text.endswith(".0") else text
    return "0" if text == "-0" else text


def clean(value: Any) -> str:
    """Return any text with its special characters escaped, and those that XML forbids replaced by U+FFFD."""
    return escape(INVALID.sub("\ufffd", str(value)))


def element(tag: str, *children: str, **attributes: Any) -> str:
    """Return an element of ready children; attributes are escaped, floats rounded, None left out, _ read as -."""
    parts = [tag]
    for name, value in attributes.items():
        if value is not None:
            shown = number(value) if isinstance(value, float) else clean(value)
            parts.append(f'{name.rstrip("_").replace("_", "-")}="{shown}"')
    opening = " ".join(parts)
    return f"<{opening}>{''.join(children)}</{tag}>" if children else f"<{opening}/>"


def text(
    x: float, y: float, content: Any, anchor: str | None = None, class_: str = "gk-text", **attributes: Any
) -> str:
    """Return escaped text whose baseline begins, or has its middle or end, at a place."""
    place = {"x": float(x), "y": float(y), "text_anchor": anchor, "class_": class_}
    return element("text", clean(content), **place, **attributes)


def extent(content: Any, size: float = SIZE) -> float:
    """Return about how wide a text is, in pixels: hardly less than in wide fonts such as DejaVu Sans."""
    return size * sum(map(_ems, str(content)))


def _ems(letter: str) -> float:
    """Return about how wide a letter is, in parts of the size of the font."""
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.05
    if letter in "MWmw%@":
        return 0.98
    return 0.77 if letter.isupper() else 0.64 if letter.isdigit() else 0.56


def shortened(content: Any, width: float, size: float = SIZE) -> str:
    """Return a text that fits a width, if need be without its middle."""
    whole = " ".join(str(content).split())
    if extent(whole, size) <= width:
        return whole
    keep = len(whole)
    while keep > 2 and extent(whole[:keep] + "…", size) > width:
        keep -= 1
    tail = keep // 3
    return whole[: keep - tail] + "…" + whole[len(whole) - tail :]


@dataclass(frozen=True)
class Scale:
    """A linear map of numbers from low to high onto pixels from start to end."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def covering(cls, values: Any, start: float, end: float, pad: float = 0.04) -> Self:
        """Return the scale of all finite values with a margin; equal values are in the middle."""
        numbers = np.asarray(values, np.float64)
        known = numbers[np.isfinite(numbers)]
        low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
        if high - low <= 1e-9 * max(abs(low), abs(high)):
            room = 0.5 * abs(low) or 0.5
            return cls(low - room, high + room, start, end)
        room = pad * (high - low)
        return cls(low - room, high + room, start, end)

    def __call__(self, values: Any) -> Any:
        """Return where numbers are."""
        shares = (np.asarray(values, np.float64) - self.low) / (self.high - self.low)
        return self.start + shares * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[tuple[float, str]]:
        """Return round numbers on the scale, at most so many, and their texts."""
        raw = (self.high - self.low) / max(most - 1, 1)
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(m * power for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * power >= raw * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        values = [i * step for i in range(first, last + 1)]
        largest = max((abs(value) for value in values), default=0.0)
        places = math.floor(math.log10(step) + 1e-9)
        if step / 10.0**places % 1 > 1e-6:  # 2.5
            places -= 1
        if largest >= 1e5 or places < -4:
            digits = max(1, math.floor(math.log10(largest or 1.0)) - places + 1)
            return [(value, f"{value:.{digits}g}".replace("e+0", "e").replace("e-0", "e-")) for value in values]
        return [(value, f"{value + 0.0:.{max(0, -places)}f}") for value in values]


def axes(xs: Scale, ys: Scale, xlabel: str = "", ylabel: str = "", xticks: Any = None, yticks: Any = None) -> list[str]:
    """Return grid lines, tick texts and labels of axes; ticks are pairs of a number and a text."""
    across = xs.ticks(max(3, int(abs(xs.end - xs.start) / 75))) if xticks is None else xticks
    up = ys.ticks(max(4, int(abs(ys.end - ys.start) / 45))) if yticks is None else yticks
    left, bottom = min(xs.start, xs.end), max(ys.start, ys.end)
    places = [(float(xs(value)), name) for value, name in across], [(float(ys(value)), name) for value, name in up]
    grid = "".join(f"M{number(x)} {number(ys.start)}V{number(ys.end)}" for x, _ in places[0])
    grid += "".join(f"M{number(xs.start)} {number(y)}H{number(xs.end)}" for y, _ in places[1])
    parts = [element("path", class_="gk-grid", d=grid)] if grid else []
    parts.append(
        element("path", class_="gk-axis", d=f"M{number(left)} {number(ys.end)}V{number(bottom)}H{number(xs.end)}")
    )
    parts += [text(x, bottom + 15, name, "middle", "gk-text gk-small") for x, name in places[0]]
    parts += [text(left - 5, y + 3.7, name, "end", "gk-text gk-small") for y, name in places[1]]
    if xlabel:
        parts.append(text((xs.start + xs.end) / 2, bottom + 33, xlabel, "middle"))
    if ylabel:
        offset = 14 + max([extent(name, 10.5) for _, name in places[1]], default=0.0)
        x, y = left - offset, (ys.start + ys.end) / 2
        parts.append(text(x, y, ylabel, "middle", transform=f"rotate(-90 {number(x)} {number(y)})"))
    return parts


def room_for(ys: Scale, ylabel: str) -> float:
    """Return the width that the texts at the left of axes take."""
    up = ys.ticks(max(4, int(abs(ys.end - ys.start) / 45)))
    return 15 + max([extent(name, 10.5) for _, name in up], default=0.0) + (16 if ylabel else 0)


def path(x: Any, y: Any) -> str:
    """Return the data of a path along points, broken where one is missing, without points that look the same."""
    parts: list[str] = []
    last, pen = "", False
    for a, b in zip(np.asarray(x, np.float64).tolist(), np.asarray(y, np.float64).tolist()):
        if math.isnan(a) or math.isnan(b):
            pen = False
            continue
        here = f"{number(a)} {number(b)}"
        if not pen or here != last:
            parts.append(("L" if pen else "M") + here)
        last, pen = here, True
    return "".join(parts)


def band(x: Any, low: Any, high: Any) -> str:
    """Return the data of the closed path between two curves, in pieces where both are known."""
    x, low, high = (np.asarray(values, np.float64) for values in (x, low, high))
    known = ~(np.isnan(low) | np.isnan(high))
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(int)))
    pieces = [slice(first, last) for first, last in zip(edges[::2], edges[1::2])]
    return "".join(
        path(np.concatenate([x[piece], x[piece][::-1]]), np.concatenate([low[piece], high[piece][::-1]])) + "Z"
        for piece in pieces
    )


def colour_class(i: int) -> str:
    """Return the class that colours class i."""
    return f"gk-c{i % len(COLOURS)}"


def shape(i: int, x: float, y: float) -> str:
    """Return the mark of class i at a place."""
    return f'<path d="M{number(x)} {number(y)}{SHAPES[i % len(SHAPES)]}"/>'


def mark(i: int, x: float, y: float, wrong: bool = False, /, **data: Any) -> str:
    """Return the mark of an object of class i with its ``data-`` attributes."""
    named = {f"data_{name}": value for name, value in data.items()}
    return element("g", shape(i, x, y), class_=f"gk-mark {colour_class(i)}{' gk-wrong' * wrong}", **named)


def legend(entries: Sequence[tuple[str, str]], x: float, y: float, width: float) -> tuple[list[str], float]:
    """Return pairs of a symbol, drawn around (0, 0), and a text in rows from a corner on, and the height of all."""
    shown = list(entries[:ENTRIES])
    if len(entries) > ENTRIES:
        shown.append(("", f"and {len(entries) - ENTRIES} more"))
    parts, place, row = [], 0.0, 0
    for symbol, name in shown:
        label = shortened(name, min(260.0, width - 20))
        step = extent(label) + 30
        if place and place + step - 12 > width:
            place, row = 0.0, row + 1
        base = y + 18 * row + 9
        parts.append(
            element("g", symbol, transform=f"translate({number(x + place + 6)} {number(base)})") if symbol else ""
        )
        parts.append(text(x + place + 15, base + 4, label))
        place += step
    return parts, 18.0 * (row + 1) if shown else 0.0


def class_legend(names: Sequence[str], x: float, y: float, width: float) -> tuple[list[str], float]:
    """Return a legend with the mark of each class."""
    symbols = [element("g", shape(i, 0, 0), class_=f"gk-mark {colour_class(i)}") for i in range(len(names))]
    # The marks of objects are counted by their class; those of the legend are none.
    return legend([(s.replace("gk-mark", "gk-key"), n) for s, n in zip(symbols, names)], x, y, width)


def line_legend(names: Sequence[str], x: float, y: float, width: float) -> tuple[list[str], float]:
    """Return a legend with a piece of the line of each class."""
    return legend([(curve("M-6 0H6", i, 2.0), name) for i, name in enumerate(names)], x, y, width)


def curve(d: str, i: int, width: float = 1.5, **attributes: Any) -> str:
    """Return the line of class i; classes beyond the colours are dashed."""
    turn = i // len(COLOURS)
    dashes = (None, "6 3", "2 2", "8 3 2 3")[turn % 4]
    look = {"class_": f"gk-line {colour_class(i)}", "stroke_width": width, "stroke_dasharray": dashes}
    return element("path", d=d, **look, **attributes)


def png(cells: NDArray[np.uint8], colours: NDArray[np.uint8]) -> str:
    """Return an image of indices (h, w) into colours (k, 3) as a data address."""
    height, width = cells.shape

    def chunk(kind: bytes, content: bytes) -> bytes:
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    rows = np.concatenate([np.zeros((height, 1), np.uint8), cells], axis=1)  # each begins with its filter, none
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    content = (
        chunk(b"IHDR", head) + chunk(b"PLTE", colours.tobytes()) + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9))
    )
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + content + chunk(b"IEND", b"")).decode()


def block_means(matrix: Floats, most: int) -> Floats:
    """Return a matrix of at most so many rows and columns: means over adjacent ones, as equally many as possible."""
    for axis in (0, 1):
        n = matrix.shape[axis]
        if n > most:
            edges = np.arange(most + 1) * n // most
            sums = np.add.reduceat(matrix, edges[:-1], axis=axis)
            sizes = np.diff(edges).reshape((-1, 1) if axis == 0 else (1, -1))
            matrix = sums / sizes
    return matrix


def picture(title: str, description: str, width: float, height: float, body: Sequence[str]) -> str:
    """Return a whole picture; its ids are made of its content, so that they differ between pictures and not in time."""
    content = "".join(body)
    name = "gk-" + blake2b(f"{title}\0{description}\0{content}".encode(errors="replace"), digest_size=5).hexdigest()
    return element(
        "svg",
        element("title", clean(title), id=f"{name}-t"),
        element("desc", clean(description), id=f"{name}-d"),
        content,
        xmlns="http://www.w3.org/2000/svg",
        class_="gk-picture",
        role="img",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=float(width),
        height=float(height),
        aria_labelledby=f"{name}-t {name}-d",
    )
