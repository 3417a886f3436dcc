"""The base class of pictures: data first, then drawn by matplotlib or written as SVG."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from genkern.plots.svg import picture
from genkern.validation import check_int


class Display(ABC):
    """A picture: its data as attributes, ``plot`` for matplotlib, ``svg`` for pages.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        What ``plot`` has drawn on.
    """

    _size: ClassVar[tuple[float, float]] = (6.0, 4.8)
    title: str

    def plot(self, ax: Any = None) -> Self:
        """Draw with matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; the default is a new figure.

        Returns
        -------
        self
            With ``ax_`` and ``figure_``.
        """
        self.ax_ = pyplot().subplots(figsize=self._figure_size(), layout="constrained")[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        self._draw(self.ax_)
        return self

    def svg(self, width: int = 640) -> str:
        """Return the picture as one ``<svg>`` element without styles, which ``genkern.plots.style.css`` has.

        Parameters
        ----------
        width : int, default=640
            In pixels, at least 240.
        """
        size = check_int(width, "width", f"{type(self).__name__}.svg", 240)
        body, height = self._body(float(size))
        return picture(self.title, self.description, size, height, body)

    def _figure_size(self) -> tuple[float, float]:
        return self._size

    @property
    @abstractmethod
    def description(self) -> str:
        """What the picture shows, in one sentence with the main figures."""

    @abstractmethod
    def _draw(self, ax: Any) -> None:
        """Draw on axes of matplotlib."""

    @abstractmethod
    def _body(self, width: float) -> tuple[list[str], float]:
        """Return the elements inside the picture, and its height."""


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``, or say how to get it."""
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError("genkern.plots needs matplotlib: pip install 'genkern[plots]'") from error
    return matplotlib.pyplot


def check_labels(y: Any, n: int, name: str, who: str) -> NDArray[Any] | None:
    """Return labels or names (n,), or None."""
    if y is None:
        return None
    labels = np.asarray(y)
    if labels.shape != (n,):
        what = "name" if name == "names" else "label"
        raise ValueError(f"{who}: '{name}' must hold one {what} for each of {n} objects. Got shape {labels.shape}.")
    return labels


def classes_of(labels: NDArray[Any] | None, n: int) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the sorted classes and the class (n,) of each object; no class, and zeros, without labels."""
    if labels is None:
        return [], np.zeros(n, np.int64)
    try:
        found, index = np.unique(labels, return_inverse=True)
    except TypeError:  # labels of several types have no order
        found, index = np.unique(labels.astype(str), return_inverse=True)
    return found.tolist(), index.astype(np.int64)
