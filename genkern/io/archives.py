"""The .ts files of the time-series archives: several channels, unequal lengths, missing values, time stamps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from genkern.io.dataset import Dataset
from genkern.io.errors import ReadError, quoted
from genkern.io.files import Source
from genkern.io.numbers import floats, irregular, times
from genkern.io.options import Options
from genkern.validation import Floats

FLAGS = {"timestamps", "missing", "univariate", "equallength", "classlabel", "targetlabel"}
NUMBERS = {"dimension", "dimensions", "serieslength"}
BRACKETS = re.compile(r"[^()]*+[()]?")  # text up to the next one
STAMPED = re.compile(r"\(([^()]*+)\)\s*+(?:,|$)")
DIGITS = 18  # of the numbers in a header at most


def read_ts(source: Source, options: Options, batch: int | None) -> Iterator[Dataset]:
    """Yield the series of a .ts file, at most `batch` at a time."""
    options.refuse(("missing", "encoding"), "a .ts file")
    options.refuse_kind(("series", "points"), "a .ts file")
    if options.label not in (None, True, False):
        raise ValueError(f"read: a .ts file says itself where labels are. Got label={options.label!r}; leave it out.")
    lines = source.lines()
    header = _header(source, lines)
    reader = _Cases(source, header, options)
    X, y = [], []
    for number, line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        series, label = reader.case(number, line)
        if not len(series):
            source.notes.add("empty records, left out", 1, f"{source.name}, line {number}")
            continue
        X.append(series)
        y.append(label)
        if len(X) == batch:
            yield reader.part(X, y)
            X, y = [], []
    if X:
        yield reader.part(X, y)
    if not reader.seen:
        raise source.error(None, "series after @data", "none", "The file is empty or cut off.")


def _header(source: Source, lines: Iterator[tuple[int, str]]) -> dict[str, Any]:
    """Return the declarations of a .ts file, up to and with @data."""
    header: dict[str, Any] = {}
    for number, line in lines:
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        key = words[0].lower().removeprefix("@")
        if not words[0].startswith("@"):
            remedy = "Name the format by format= if it is another one."
            raise source.error(number, "a line that begins with '@', then @data", quoted(line), remedy)
        if key == "data":
            if "classlabel" not in header and "targetlabel" not in header:
                remedy = "Write '@classLabel true a b' or '@classLabel false' before @data."
                raise source.error(number, "a line @classLabel that says whether labels follow", "none", remedy)
            return header
        if key in FLAGS:
            if len(words) < 2 or words[1].lower() not in ("true", "false"):
                raise source.error(number, f"@{key} true or false", quoted(line), "Write one of them.")
            header[key] = words[1].lower() == "true"
            if key == "classlabel":
                header["labels"] = dict.fromkeys(words[2:])
        elif key in NUMBERS:
            if len(words) != 2 or not words[1].isdecimal() or len(words[1]) > DIGITS:
                raise source.error(number, f"@{key} and a number", quoted(line), "Write it, or leave the line out.")
            header[key] = int(words[1])
        else:
            header[key] = " ".join(words[1:])
    raise source.error(None, "a line @data", "the end of the file", "The file is cut off, or has another format.")


def _channels(line: str) -> list[str]:
    """Return the fields between colons, except those inside a time such as (12:30:00,1.5)."""
    if "(" not in line:
        return line.split(":")
    pieces = BRACKETS.findall(line)
    joined = "".join(piece.replace(":", "\n") if piece.endswith(")") else piece for piece in pieces)
    return [field.replace("\n", ":") for field in joined.split(":")]


class _Cases:
    """Lines after @data, checked against what the header declares."""

    def __init__(self, source: Source, header: dict[str, Any], options: Options) -> None:
        self.source, self.header, self.options = source, header, options
        self.labelled = header.get("classlabel", False) or header.get("targetlabel", False)
        self.width = header.get("dimensions", header.get("dimension", 1 if header.get("univariate") else None))
        self.seen = 0
        if "problemname" in header:
            source.notes.facts["name"] = header["problemname"]

    def case(self, number: int, line: str) -> tuple[Floats, str | None]:
        """Return one series (T, d) and its label."""
        fields = _channels(line)
        label = fields.pop().strip() if self.labelled else None
        known = self.header.get("labels", {})
        if self.labelled and (not label or (known and label not in known)):
            remedy = "The label stands after the last ':' of a line; mend it, or the line @classLabel."
            expected = f"one of the labels {', '.join(known)}" if known else "a label"
            raise self.source.error(number, expected, quoted(label or ""), remedy)
        if self.width is None:
            self.width = len(fields)
        if len(fields) != self.width or not fields:
            remedy = "All series of a file have the same channels, with ':' between them."
            raise self.source.error(number, f"{self.width or 'some'} channels", str(len(fields)), remedy)
        self.seen += 1
        if self.header.get("timestamps", False) or line.lstrip().startswith("("):
            return self._stamped(number, fields), label
        channels = [
            self._numbers(number, k, field.split(",") if field.strip() else []) for k, field in enumerate(fields)
        ]
        lengths = {len(channel) for channel in channels}
        if len(lengths) > 1:
            came = f"channels of lengths {', '.join(str(len(channel)) for channel in channels)}"
            raise self.source.error(number, "channels of one length", came, "Fill the shorter ones with '?'.")
        self._declared(number, channels)
        return np.column_stack(channels), label

    def _declared(self, number: int, channels: list[Floats]) -> None:
        """Note where the header is wrong about lengths and missing values."""
        place, size = f"{self.source.name}, line {number}", len(channels[0])
        if self.header.get("equallength", False) and self.header.get("serieslength", size) != size:
            self.source.notes.add("series of another length than declared, kept", 1, place)
        if self.header.get("missing") is False and any(np.isnan(channel).any() for channel in channels):
            self.source.notes.add("series with missing values, although declared without, kept", 1, place)

    def _numbers(self, number: int, channel: int, cells: list[str]) -> Floats:
        """Return the numbers of one channel."""

        def where(k: int, expected: str, came: str, remedy: str) -> ReadError:
            came = f"{came} (channel {channel}, value {k})"
            return self.source.error(number, expected, came, remedy)

        def place(k: int) -> str:
            return f"{self.source.name}, line {number}"

        empty = next((k for k, cell in enumerate(cells) if not cell.strip()), None)
        if empty is not None:
            raise where(empty, "a number or '?'", "nothing between two commas", "Write '?' for a missing value.")
        return floats(cells, where, self.source.notes, place, self.options.missing or ())

    def _stamped(self, number: int, fields: list[str]) -> Floats:
        """Return a series with time stamps (t, value): steps sorted by time, NaN where a channel has none."""
        stamps, values = [], []
        for channel, field in enumerate(fields):
            pairs = [inner.rpartition(",") for inner in STAMPED.findall(field)]
            if STAMPED.sub("", field).strip() or not all(comma for _, comma, _ in pairs):
                raise self.source.error(number, "pairs (time,value)", quoted(field), "Separate them by commas.")

            def where(k: int, expected: str, came: str, remedy: str, channel: int = channel) -> ReadError:
                return self.source.error(number, expected, f"{came} (channel {channel}, value {k})", remedy)

            stamps.append(times([time.strip() for time, _, _ in pairs], where))
            values.append(self._numbers(number, channel, [value for _, _, value in pairs]))
            if len(np.unique(stamps[-1])) < len(stamps[-1]):
                raise self.source.error(number, "each time once", f"a time twice (channel {channel})", "Remove one.")
        union = np.unique(np.concatenate(stamps))
        self.source.allow(8.0 * len(union) * len(fields))
        series = np.full((len(union), len(fields)), np.nan)
        place = f"{self.source.name}, line {number}"
        for k, (stamp, value) in enumerate(zip(stamps, values)):
            series[np.searchsorted(union, stamp), k] = value
            if (np.diff(stamp) < 0).any():
                self.source.notes.add("series with unsorted times, sorted", 1, place)
            if len(stamp) < len(union):
                self.source.notes.add("channels without a value at times of others, missing there", 1, place)
        if irregular(union):
            self.source.notes.add("series with irregular times, taken as equal steps", 1, place)
        return series

    def part(self, X: list[Floats], y: list[str | None]) -> Dataset:
        """Return series and labels as a set."""
        labels: Any = None
        if self.labelled and self.options.label is not False:
            labels = (
                self.source.labels(y)
                if self.header.get("classlabel")
                else self._numbers(0, 0, [str(label) for label in y])
            )
        return Dataset(X, labels, kind=self.options.kind or "series")
