"""What a reader says: the error for files that cannot be read, and the notes on what was seen and done."""

from __future__ import annotations

import reprlib
from typing import Any

SHOWN = 60  # characters of a file that an error quotes
LONGEST = 500  # characters of a list in an error, such as the columns of a table
_nested = reprlib.Repr()
_nested.maxlevel, _nested.maxlist, _nested.maxstring = 3, SHOWN, SHOWN


class ReadError(ValueError):
    """A file that cannot be read, or that can be read in two ways.

    Parameters
    ----------
    file : str
        The file.
    line : int or None
        Number of the line, from 1; None where the file has no lines, or all of it is meant.
    expected : str
        What should stand there.
    came : str
        What stands there.
    remedy : str
        What to do.

    Examples
    --------
    >>> from genkern.io import ReadError
    >>> print(ReadError("a.fa", 3, "a header that begins with '>'", "'ACGT'", "Write one before the sequence."))
    a.fa, line 3: expected a header that begins with '>'. Got 'ACGT'. Write one before the sequence.
    """

    def __init__(self, file: str, line: int | None, expected: str, came: str, remedy: str) -> None:
        expected, came = (text if len(text) <= LONGEST else text[:LONGEST] + "..." for text in (expected, came))
        super().__init__(file, line, expected, came, remedy)
        self.file, self.line, self.expected, self.came, self.remedy = file, line, expected, came, remedy

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}, line {self.line}"
        return f"{where}: expected {self.expected}. Got {self.came}. {self.remedy}"


def quoted(text: Any) -> str:
    """Return a piece of a file as an error shows it."""
    nested = isinstance(text, list | tuple | dict)  # of any depth
    shown = _nested.repr(text) if nested else str(text)
    return repr(shown if len(shown) <= SHOWN else shown[:SHOWN] + "...")


class Notes:
    """What was seen in files (`facts`), and which rules were applied, how often and where first (`rules`)."""

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self.rules: dict[str, dict[str, Any]] = {}

    def add(self, rule: str, count: int, first: str) -> None:
        """Count a rule that was applied; the first place is kept."""
        if count:
            known = self.rules.setdefault(rule, {"count": 0, "first": first})
            known["count"] += int(count)

    def meta(self) -> dict[str, Any]:
        """Return a copy, as the `meta` of a set."""
        return {**self.facts, "rules": {rule: dict(entry) for rule, entry in self.rules.items()}}
