"""Small sets and pages for the tests of reports, and a reader of pages that keeps elements, attributes and texts."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

import genkern
from genkern import recipes

VOID = {"meta", "link", "input", "br", "img", "hr"}
NASTY = (
    "</script><script>document.title='lost'</script>",
    "<img src=x onerror=document.title='lost'>",
    "\"' onmouseover=document.title='lost' x='",
    "a\u2028b\u2029c & <b>d</b> {{ 7 * 7 }}",
)


class Page(HTMLParser):
    """The elements of a page, in order, as (tag, attributes), the text of each, and whether all of them are closed."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, Any]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.mismatches: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.mismatches.append(tag)

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        """All text, spaces made one."""
        return " ".join(" ".join(self.texts).split())

    def of(self, tag: str) -> list[dict[str, Any]]:
        """Return the attributes of all elements of a tag."""
        return [attributes for name, attributes in self.elements if name == tag]


def words(n: int = 60, seed: int = 0) -> genkern.Dataset:
    """Return sequences of two classes that differ in their words."""
    rng = np.random.default_rng(seed)
    y = np.array(["coding", "other"])[np.arange(n) % 2]
    X = [
        "".join(rng.choice(["AC", "CA", "GT"], 12, p=[0.7, 0.1, 0.2] if label == "coding" else [0.3, 0.4, 0.3]))
        for label in y
    ]
    return genkern.Dataset(X, y, [f"seq{i:03d}" for i in range(n)], kind="symbols", meta={"name": "words"})


def series(n: int = 36, seed: int = 0) -> genkern.Dataset:
    """Return series of two channels and three classes, some values of which are missing."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = [np.cumsum(rng.normal(0.3 * label, 1.0, (rng.integers(12, 25), 2)), axis=0) for label in y]
    X[0][3, 1] = np.nan
    return genkern.Dataset(X, y, kind="series", meta={"name": "walks"})


def evaluated(data: genkern.Dataset, **choices: Any) -> genkern.evaluation.Evaluation:
    """Return the evaluation of recipes, two folds."""
    return genkern.evaluate(data.X, data.y, choices, folds=2)


def page_of(path: Path, *given: Any, **settings: Any) -> Page:
    """Write a report and return it, read."""
    genkern.write_report(path, *given, **settings)
    return Page(path.read_text("utf-8"))


def spectrum() -> Any:
    """Return a quick recipe."""
    return recipes.spectrum_svm(2)
