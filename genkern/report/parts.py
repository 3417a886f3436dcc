"""What the sections of a report share: pictures that may be missing, short texts, samples of objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.data.intake import Ints
from genkern.io.dataset import Dataset

NARROW, WIDE = 460, 860  # widths of pictures: of half a column and of a whole one
SHOWN = 80  # characters of an id or label


class Figure(NamedTuple):
    """A picture with its caption, or in its place the reason why there is none.

    Parameters
    ----------
    title : str
        What it is.
    svg : str
        The picture, one ``<svg>`` element; empty if there is none.
    caption : str
        What can be seen.
    why : str
        Why there is no picture.
    wide : bool
        Whether it takes the whole width of the page.
    """

    title: str
    svg: str
    caption: str = ""
    why: str = ""
    wide: bool = False


def draw(title: str, make: Callable[[], Any], caption: str = "", width: int = NARROW) -> Figure:
    """Return the picture of a display, or why there is none: a page never fails for want of a picture."""
    try:
        return Figure(title, make().svg(width=width), caption, wide=width > NARROW)
    except Exception as error:
        return Figure(title, "", why=reason(error))


def reason(error: Exception) -> str:
    """Return an error as a sentence."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if text.endswith((".", "!", "?")) else f"{text}."


def percent(share: float, digits: int = 1) -> str:
    """Return a share as people write it: 3.8 %."""
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"


def short(text: Any) -> str:
    """Return the beginning of a long text."""
    whole = str(text)
    return whole if len(whole) <= SHOWN else f"{whole[: SHOWN - 1]}…"


def names_of(data: Dataset) -> list[str]:
    """Return the ids of objects, cut if they are long, or their numbers."""
    return [short(name) for name in (range(len(data)) if data.ids is None else data.ids)]


def shown_labels(y: Any) -> Any:
    """Return labels as they are, or where some are too long to be shown, cut ones that stay different."""
    labels = np.asarray(y)
    classes, codes = np.unique(labels, return_inverse=True)
    if all(len(str(label)) <= SHOWN for label in classes):
        return labels
    return np.array([short(f"{i + 1}: {label}") for i, label in enumerate(classes)])[codes]


def spread_over_classes(y: NDArray[Any] | None, n: int, most: int) -> Ints:
    """Return at most so many of n indices, in order: of each class evenly, and in proportion to its size."""
    if n <= most:
        return np.arange(n)
    codes = np.zeros(n, np.int64) if y is None else np.unique(y, return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    return np.sort(order[np.linspace(0, n - 1, most).round().astype(np.int64)])
