"""What an experiment finds, beside what the paper prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from genkern import __version__


@dataclass(frozen=True)
class Line:
    """One method: the paper's figure, ours with all settings chosen within training data, and the best of the grid."""

    method: str
    paper: float | None
    nested: float
    spread: float
    best: float | None
    settings: str


@dataclass(frozen=True)
class Report:
    """An experiment's result.

    Parameters
    ----------
    name, title, source : str
        Its name, what it is, and where it stands in which paper.
    protocol : str
        What was done, and where it differs from the paper.
    lines : list of Line
        Error rates.
    quick : bool
        Whether this was the quick version, on fewer objects and settings than the protocol says.
    """

    name: str
    title: str
    source: str
    protocol: str
    lines: list[Line]
    quick: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        return {
            "name": self.name,
            "source": self.source,
            "genkern": __version__,
            "quick": self.quick,
            "lines": [line.__dict__ for line in self.lines],
        }

    def markdown(self) -> str:
        """Return the page."""
        quick = (
            ["**A quick run, on fewer objects, folds and settings than the protocol says.**", ""] if self.quick else []
        )
        head = [f"# {self.title}", "", self.source, "", self.protocol, "", *quick]
        table = [
            "| method | paper | ours, nested | ours, best of the grid | settings of the best |",
            "|---|---|---|---|---|",
        ]
        table += [
            f"| {line.method} | {_percent(line.paper)} | {_percent(line.nested)} ± {100 * line.spread:.1f} | "
            f"{_percent(line.best)} | {line.settings} |"
            for line in self.lines
        ]
        return "\n".join(
            [*head, *table, "", f"Errors in %, ± standard deviation over folds. genkern {__version__}.", ""]
        )


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"
