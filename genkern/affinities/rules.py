"""Rows of the table of formulas: a rule, its application, explanation and printing."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from genkern.affinities.how import How
from genkern.models.base import draws_in
from genkern.validation import Floats

COLUMNS = 120  # of the printed table
BAND = 32  # rows at a time when a stack is compared with itself: columns before the band are mirrored, not computed


class PairError(ValueError):
    """A pair of models that cannot be compared; ``index`` points into the block a formula was to return."""

    def __init__(self, index: tuple[int, ...], text: str):
        super().__init__(text)
        self.index, self.text = index, text


@dataclass(frozen=True)
class Rule:
    """One row of the table: the classes, the comparison, the formula and its reference."""

    left: type
    right: type
    how: type
    method: str
    length: str
    name: str
    reference: str
    kind: str
    parts: tuple[str, ...] = field(repr=False)
    formula: Callable[..., Floats] = field(repr=False)
    factors: Callable[..., tuple[Floats, Floats] | None] | None = field(repr=False)
    error: Callable[..., float] | None = field(repr=False)
    whole: bool = field(default=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """What it is found by in the table."""
        return (self.left.__name__, self.right.__name__, self.how.__name__, self.length, self.method, self.kind)

    def block(self, P: Any, Q: Any, how: How, length: int | None) -> Floats:
        """Return G + (a, b) logs for stacks of batch G + (a,) and G + (b,)."""
        if self.length == "given":
            return self.formula(P, Q, how, length)
        logs = self.formula(P, Q, how)
        return logs if length is None else draws_in(P, length, "affinity") * logs

    def square(self, P: Any, how: How, length: int | None) -> Floats:
        """Return symmetric (n, n) logs of a stack of batch (n,) with itself, at half the cost."""
        if self.whole:
            return self.block(P, P, how, length)
        n = len(P)
        out = np.empty((n, n))
        for low in range(0, n, BAND):
            high = min(low + BAND, n)
            try:
                band = self.block(P[low:high], P[low:], how, length)
            except PairError as error:
                raise PairError((error.index[0] + low, error.index[1] + low), error.text) from None
            set_band(out, low, band)
        return out


def set_band(out: Floats, low: int, band: Floats) -> None:
    """Set rows of a symmetric matrix from row ``low`` on, of which the band has columns from there on, and columns."""
    high = low + len(band)
    out[low:high, high:] = band[:, len(band) :]
    out[high:, low:high] = band[:, len(band) :].T
    corner = np.triu(band[:, : len(band)])
    out[low:high, low:high] = corner + np.triu(corner, 1).T


@dataclass(frozen=True)
class AffinityExplanation:
    """The formula of an affinity.

    Attributes
    ----------
    name, reference : str
        The formula and its reference.
    kind : {"exact", "bound", "sampled"}
        The kind of its values.
    parts : dict of str to Explanation
        Formulas that it uses, such as that of the emissions of a hidden Markov model.
    standard_error : float or None
        Of the log value of these two models, if it is sampled.
    """

    name: str
    reference: str
    kind: str
    parts: dict[str, AffinityExplanation]
    standard_error: float | None = None

    def __str__(self) -> str:
        kind = self.kind if self.standard_error is None else f"{self.kind}, standard error {self.standard_error:.2g}"
        lines = [f"{self.name} ({kind}; {self.reference})"]
        for part, explanation in self.parts.items():
            lines += [f"  {line}" for line in f"{part}: {explanation}".splitlines()]
        return "\n".join(lines)

    __repr__ = __str__


class Table(tuple[Rule, ...]):
    """Rules; prints as a table, references that do not fit in the line below."""

    def having(self, *words: str) -> Table:
        """Return the rules that have all words among their names; an error lists them if none has a word."""
        found = self
        for word in words:
            known = {name for rule in self for name in rule.names}
            found = Table(rule for rule in found if word.lower() in map(str.lower, rule.names))
            if word.lower() not in map(str.lower, known):
                raise ValueError(
                    f"affinity.table: {word!r} must be the name of a model, comparison, length, method or kind: "
                    f"{', '.join(sorted(known))}."
                )
        return found

    def __repr__(self) -> str:
        head = ("models", "how", "length", "method", "kind", "formula", "reference")
        rows = [
            (f"{r.left.__name__} x {r.right.__name__}", r.how.__name__, r.length, r.method, r.kind, r.name, r.reference)
            for r in self
        ]
        *widths, last = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        fits = sum(widths) + 2 * len(widths) + last <= COLUMNS
        lines = []
        for *cells, reference in (head, *rows):
            line = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths))
            lines += [f"{line}  {reference}"] if fits else [line.rstrip(), *_indented(reference)]
        return "\n".join(lines)


def _indented(text: str) -> list[str]:
    return textwrap.wrap(text, COLUMNS, initial_indent="    ", subsequent_indent="    ")
