"""The options of `read` and `stream`, checked once; a format takes those that it knows and refuses others."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from genkern.validation import check_option

KINDS = ("symbols", "codes", "series", "points", "documents")
STRINGS = ("symbols", "codes", "documents")
LAYOUTS = ("time-first", "channels-first")


@dataclass(frozen=True)
class Options:
    """What the user says about files; None is "not said". See `genkern.io.read`."""

    format: str | None = None
    kind: str | None = None
    label: Any = None
    id: str | None = None
    group: Any = None
    time: str | None = None
    channels: tuple[str, ...] | None = None
    text: str | None = None
    layout: str | None = None
    alphabet: Any = None
    labels: Any = None
    gaps: str | None = None
    missing: tuple[str, ...] | None = None
    header: bool | None = None
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    max_expansion: float | None = None

    @classmethod
    def of(cls, given: dict[str, Any]) -> Options:
        """Return checked options."""
        unknown = set(given) - {field.name for field in fields(cls)}
        if unknown:
            known = ", ".join(field.name for field in fields(cls))
            raise TypeError(f"read: unknown option {sorted(unknown)[0]!r}; the options are {known}.")
        given = dict(given)
        for name in ("channels", "missing"):
            if given.get(name) is not None:
                given[name] = _names(given[name], name)
        for name, choices in (
            ("kind", KINDS),
            ("layout", LAYOUTS),
            ("gaps", ("keep", "remove")),
            ("decimal", (".", ",")),
        ):
            if given.get(name) is not None:
                check_option(given[name], choices, name, "read")
        limit = given.get("max_expansion")
        if limit is not None and not (isinstance(limit, int | float) and not isinstance(limit, bool) and limit >= 1):
            raise ValueError(f"read: 'max_expansion' must be a number of at least 1. Got {limit!r}.")
        return cls(**given)

    def refuse(self, known: Iterable[str], what: str) -> None:
        """Raise for an option that says something which this format cannot obey."""
        always = {"format", "kind", "label", "max_expansion", *known}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and field.name not in always and not (field.name == "group" and value is False):
                raise ValueError(
                    f"read: {field.name}={value!r} says nothing about {what}; leave it out. There, "
                    f"{', '.join(sorted(always))} are known."
                )

    def refuse_kind(self, kinds: tuple[str, ...], what: str) -> None:
        """Raise where the file cannot hold what it is said to."""
        if self.kind is not None and self.kind not in kinds:
            raise ValueError(f"read: {what} holds {' or '.join(kinds)}. Got kind={self.kind!r}; leave it out.")


def _names(value: Any, name: str) -> tuple[str, ...]:
    """Return one name or several as a tuple."""
    if isinstance(value, str):
        return (value,)
    names = tuple(value)
    if not names or not all(isinstance(item, str) for item in names):
        raise TypeError(f"read: '{name}' must be a string or a list of strings. Got {value!r}.")
    return names


def pattern_of(value: Any, name: str) -> re.Pattern[str]:
    """Return what finds a label in the header of a record: a regular expression with a group, or ``key=value``."""
    if isinstance(value, re.Pattern):
        pattern = value
    elif isinstance(value, str) and "(" in value:
        try:
            pattern = re.compile(value)
        except re.error as error:
            raise ValueError(f"read: {name}={value!r} is no regular expression: {error}.") from None
    elif isinstance(value, str) and value:
        pattern = re.compile(rf"(?:^|[\s|;,]){re.escape(value)}=([^\s|;,]+)")
    else:
        raise TypeError(f"read: '{name}' must be a key, as in key=value, or a regular expression. Got {value!r}.")
    if pattern.groups != 1:
        raise ValueError(f"read: {name}={pattern.pattern!r} must have one group (...). Got {pattern.groups}.")
    return pattern
