"""Gram matrices as heat maps, objects in the order of their classes or of a clustering."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from genkern.plots.display import Display, check_labels, classes_of
from genkern.plots.maps import check_gram
from genkern.plots.style import GREY
from genkern.plots.svg import block_means, element, extent, number, png, shortened, text
from genkern.validation import Floats, check_option

ORDERS = ("class", "cluster")
MOST = 400  # rows and columns of the image in an svg
LEVELS = 64  # colours of it
NAMED = 40  # objects whose names are written
CIVIDIS = ("#00224E", "#1A386F", "#434E6C", "#61656F", "#7D7C78", "#9B9476", "#BCAE6C", "#DEC958", "#FEE838")
PUOR = (
    "#2D004B", "#542788", "#8073AC", "#B2ABD2", "#D8DAEB", "#F7F7F7", "#FEE0B6", "#FDB863", "#E08214", "#B35806",
    "#7F3B08",
)  # fmt: skip


class GramDisplay(Display):
    """A Gram matrix as a heat map, lines between classes.

    Values that are all non-negative are coloured from dark (0) to light, signed ones from purple through white (0) to
    orange. The scale ends at the 99th percentile of the absolute off-diagonal values, so that a heavy diagonal does
    not wash out the rest; values beyond it have the end colour. The svg shows more than 400 objects by the means of
    blocks of adjacent ones.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Kernel values, in the order shown.
    order : ndarray of shape (n,) of int
        The object of each row.
    classes : list
        Classes whose objects follow each other, in the order shown; empty if they do not.
    edges : ndarray of shape (len(classes) + 1,) of int
        Where they begin and end.
    names : list of str, or None
        Names of the objects, in the order shown.

    Examples
    --------
    >>> from genkern.plots import GramDisplay
    >>> GramDisplay.from_matrix([[1, 0, 0.5], [0, 1, 0], [0.5, 0, 1]], y=["a", "b", "a"]).order
    array([0, 2, 1])
    """

    title = "Gram matrix"
    _size = (6.0, 4.8)

    def __init__(
        self,
        matrix: Floats,
        order: NDArray[np.int64],
        classes: list[Any],
        edges: NDArray[np.int64],
        names: list[str] | None = None,
    ) -> None:
        self.matrix, self.order, self.classes, self.edges, self.names = matrix, order, classes, edges, names

    @classmethod
    def from_matrix(
        cls, K: ArrayLike, y: ArrayLike | None = None, order: str | None = "class", names: ArrayLike | None = None
    ) -> Self:
        r"""Order the objects.

        Parameters
        ----------
        K : array-like of shape (n, n)
            Kernel values.
        y : array-like of shape (n,), optional
            Classes.
        order : {"class", "cluster"} or None, default="class"
            By class, if there are classes; by the leaves of average linkage of the distances
            :math:`\sqrt{k(x, x) + k(y, y) - 2 k(x, y)}`; or as given.
        names : array-like of shape (n,), optional
            Names of the objects, written where there are at most 40.
        """
        gram, who = check_gram(K, cls.__name__), cls.__name__
        labels, called = check_labels(y, len(gram), "y", who), check_labels(names, len(gram), "names", who)
        if order is not None:
            check_option(order, ORDERS, "order", who)
        classes, index = classes_of(labels, len(gram))
        rows, edges = np.arange(len(gram)), np.zeros(1, np.int64)
        if order == "cluster":
            rows = leaves_list(linkage(_distances(gram), "average")).astype(np.int64)
        elif order == "class" and classes:
            rows = np.argsort(index, kind="stable")
            edges = np.concatenate([[0], np.cumsum(np.bincount(index))])
        shown = classes if len(edges) > 1 else []
        return cls(
            gram[np.ix_(rows, rows)], rows, shown, edges, None if called is None else [str(called[i]) for i in rows]
        )

    @property
    def limits(self) -> tuple[float, float]:
        """The ends of the colour scale."""
        off_diagonal = np.abs(self.matrix[~np.eye(len(self.matrix), dtype=bool)])
        high = float(np.percentile(off_diagonal, 99)) or float(np.abs(self.matrix).max()) or 1.0
        return (0.0 if self.matrix.min() >= 0 else -high), high

    @property
    def description(self) -> str:
        """What the picture shows."""
        low, high = float(self.matrix.min()), float(self.matrix.max())
        said = f"Kernel values between {len(self.matrix)} objects, from {low:.3g} to {high:.3g}"
        if len(self.classes) < 2:
            return said + "."
        owner = np.repeat(np.arange(len(self.classes)), np.diff(self.edges))
        same = owner[:, None] == owner
        off = ~np.eye(len(owner), dtype=bool)
        inside, outside = self.matrix[same & off], self.matrix[~same]
        mean = f"mean {inside.mean():.3g} within classes and " if inside.size else "mean "
        return f"{said}; {mean}{outside.mean():.3g} between them."

    def _draw(self, ax: Any) -> None:
        low, high = self.limits
        colours = {"cmap": "cividis" if low == 0.0 else "PuOr_r", "vmin": low, "vmax": high}
        image = ax.imshow(self.matrix, **colours, interpolation="nearest", rasterized=True)
        for edge in self.edges[1:-1] - 0.5:
            ax.axhline(edge, color="white" if low == 0.0 else GREY, linewidth=0.8)
            ax.axvline(edge, color="white" if low == 0.0 else GREY, linewidth=0.8)
        ticks, names, what = self._ticks()
        long = max(map(len, names), default=0) * len(names) > 60
        turn = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if long else {}
        ax.set_xticks(ticks, labels=names, **turn)
        ax.set_yticks(ticks, labels=names)
        ax.tick_params(length=0, labelsize=7 if what == "object" and len(names) > 15 else None)
        ax.set_xlabel(what)
        ax.set_ylabel(what)
        below, above = bool((self.matrix < low).any()), bool((self.matrix > high).any())
        tips = {(0, 0): "neither", (1, 0): "min", (0, 1): "max", (1, 1): "both"}[below, above]
        bar = ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03, extend=tips)
        bar.set_label("kernel value")
        bar.outline.set_visible(False)
        ax.set_title(self.title)

    def _ticks(self) -> tuple[Floats, list[str], str]:
        """Return places, texts and what they name: objects if they have names and are few, else classes."""
        if self.names is not None and len(self.names) <= NAMED:
            return np.arange(len(self.names), dtype=float), self.names, "object"
        middles = (self.edges[:-1] + self.edges[1:] - 1) / 2
        return middles, [str(label) for label in self.classes], "class" if self.classes else "object"

    def _body(self, width: float) -> tuple[list[str], float]:
        n, (low, high) = len(self.matrix), self.limits
        places, names, what = self._ticks()
        names = [shortened(name, min(140.0, 0.26 * width)) for name in names]
        longest = max(map(extent, names), default=0.0)
        left = longest + 30
        side = min(width - left - 70, 480.0)
        scale = side / n
        parts = [heat_image(self.matrix, low, high, left, 6, side, side)]
        lines = "".join(
            f"M{number(left)} {number(6 + at * scale)}h{number(side)}M{number(left + at * scale)} 6v{number(side)}"
            for at in self.edges[1:-1].tolist()
        )
        parts += [element("path", d=lines, fill="none", stroke="#FFFFFF" if low == 0.0 else GREY)] if lines else []
        turned = max((extent(name) for name in names), default=0.0) > side / max(len(names), 1) - 4
        small, last = "gk-text gk-small", -99.0
        for at, name in zip(((places + 0.5) * scale).tolist(), names):
            if at - last >= 11:  # names of small classes would cover each other
                last = at
                parts.append(text(left - 5, 6 + at + 4, name, "end", small))
                x, y = left + at + 3 * turned, side + (16 if turned else 20)
                turn = f"rotate(-40 {number(x)} {number(y)})" if turned else None
                parts.append(text(x, y, name, "end" if turned else "middle", small, transform=turn))
        bottom = side + (0.6 * longest + 22 if turned else 22 if names else 8)
        parts.append(text(left + side / 2, bottom + 14, what, "middle"))
        parts.append(text(12, 6 + side / 2, what, "middle", transform=f"rotate(-90 12 {number(6 + side / 2)})"))
        parts += colour_bar(low, high, left + side + 14, 6, side, "kernel value")
        return parts, bottom + 22


def heat_image(matrix: Floats, low: float, high: float, x: float, y: float, width: float, height: float) -> str:
    """Return a matrix as one image, dark to light from zero on, or purple to orange around zero."""
    cells = (block_means(matrix, MOST) - low) / (high - low)
    indices = np.clip(cells * LEVELS, 0, LEVELS - 1).astype(np.uint8)
    look = {"preserveAspectRatio": "none", "style": "image-rendering:pixelated"}
    box = {"x": x, "y": y, "width": width, "height": height}
    return element("image", href=png(indices, palette(low)), **{k: float(v) for k, v in box.items()}, **look)


def colour_bar(low: float, high: float, x: float, y: float, height: float, label: str) -> list[str]:
    """Return the scale of colours with its ends and its name."""
    shades = np.arange(LEVELS, dtype=np.uint8)[::-1, None]
    box = {"x": float(x), "y": float(y), "width": 12.0, "height": float(height), "preserveAspectRatio": "none"}
    parts = [element("image", href=png(shades, palette(low)), **box)]
    for share in (0.0, 0.5, 1.0):
        value = low + share * (high - low)
        parts.append(text(x + 16, y + (1 - share) * (height - 8) + 8, f"{value:.2g}", None, "gk-text gk-small"))
    middle = y + height / 4
    parts.append(text(x + 26, middle, label, "middle", transform=f"rotate(-90 {number(x + 26)} {number(middle)})"))
    return parts


def palette(low: float) -> NDArray[np.uint8]:
    """Return the colours (LEVELS, 3) of a scale that begins at zero, or below it."""
    anchors = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in (CIVIDIS if low >= 0 else PUOR)], float)
    at, known = np.linspace(0, 1, LEVELS), np.linspace(0, 1, len(anchors))
    return np.stack([np.interp(at, known, column) for column in anchors.T], axis=1).round().astype(np.uint8)


def _distances(gram: Floats) -> Floats:
    """Return the distances between objects in the feature space, condensed; rounding may not make them negative."""
    squares = np.diag(gram)[:, None] + np.diag(gram) - gram - gram.T
    return squareform(np.sqrt(np.maximum(squares, 0.0)), checks=False)
