"""Which classes are taken for which: the confusion matrix."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.plots.display import Display, check_labels
from genkern.plots.style import COLOURS, SHADE
from genkern.plots.svg import clean, colour_class, element, extent, number, shortened, text
from genkern.validation import Floats

RIGHT, WRONG = 4, 1  # colours of the diagonal and of the rest


class ConfusionDisplay(Display):
    """How many objects of each class were predicted to be of each.

    A cell is coloured by its share of its row, the objects of one true class; the diagonal, the right answers, has
    another colour than the mistakes.

    Parameters
    ----------
    matrix : ndarray of shape (k, k) of int
        Objects by true class (rows) and predicted class.
    classes : list of length k
        The classes.

    Examples
    --------
    >>> from genkern.plots import ConfusionDisplay
    >>> ConfusionDisplay.from_predictions(["a", "a", "b"], ["a", "b", "b"]).matrix
    array([[1, 1],
           [0, 1]])
    """

    title = "Confusion matrix"

    def __init__(self, matrix: NDArray[np.int64], classes: list[Any]) -> None:
        self.matrix, self.classes = matrix, classes

    @classmethod
    def from_predictions(cls, y: ArrayLike, predicted: ArrayLike) -> Self:
        """Count.

        Parameters
        ----------
        y : array-like of shape (n,)
            True classes.
        predicted : array-like of shape (n,)
            Predicted classes.
        """
        true = np.asarray(y)
        guessed = check_labels(predicted, len(true), "predicted", cls.__name__)
        if len(true) == 0:
            raise ValueError(f"{cls.__name__}: expected at least one object. Got none.")
        both = [*true.tolist(), *np.asarray(guessed).tolist()]
        try:
            classes = sorted(set(both))
        except TypeError:  # of several types
            classes = sorted(set(both), key=str)
        place = {label: i for i, label in enumerate(classes)}
        index = np.array([place[label] for label in both]).reshape(2, -1)
        matrix = np.zeros((len(classes), len(classes)), np.int64)
        np.add.at(matrix, (index[0], index[1]), 1)
        return cls(matrix, classes)

    @property
    def accuracy(self) -> float:
        """The share of right predictions."""
        return float(np.trace(self.matrix) / self.matrix.sum())

    @property
    def shares(self) -> Floats:
        """The matrix with each row divided by its sum; rows without objects are zero."""
        return self.matrix / np.maximum(self.matrix.sum(axis=1, keepdims=True), 1)

    @property
    def description(self) -> str:
        """What the picture shows."""
        off = self.matrix - np.diag(np.diag(self.matrix))
        i, j = np.unravel_index(int(off.argmax()), off.shape)
        worst = f"; most often {self.classes[i]} was taken for {self.classes[j]} ({off[i, j]})" if off[i, j] else ""
        return (
            f"{np.trace(self.matrix)} of {self.matrix.sum()} objects ({self.accuracy:.1%}) were predicted right{worst}."
        )

    def _draw(self, ax: Any) -> None:
        k = len(self.classes)
        tints = np.array([[int(COLOURS[c][i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in (RIGHT, WRONG)])
        image = np.concatenate([tints[1 - np.eye(k, dtype=int)], SHADE * self.shares[..., None]], axis=2)
        ax.imshow(image, interpolation="nearest")
        size = min(10.0, 150.0 / k)
        if size >= 5:
            for i, j in np.argwhere(self.matrix):
                ax.text(j, i, self.matrix[i, j], ha="center", va="center", fontsize=size)
        names = [shortened(label, 150) for label in self.classes]
        turn = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if max(map(len, names)) * k > 40 else {}
        ax.set_xticks(range(k), labels=names, fontsize=max(size, 5), **turn)
        ax.set_yticks(range(k), labels=names, fontsize=max(size, 5))
        ax.tick_params(length=0)
        ax.set_xlabel("predicted class")
        ax.set_ylabel("true class")
        ax.set_title(f"{self.title}: {self.accuracy:.1%} right")

    def _body(self, width: float) -> tuple[list[str], float]:
        k = len(self.classes)
        names = [shortened(label, min(150.0, 0.28 * width)) for label in self.classes]
        longest = max(map(extent, names))
        left = longest + 32
        cell = min(60.0, (width - left - 8) / k)
        small = "gk-text gk-small" if cell < 16 else "gk-text"
        parts = []
        for (i, j), count in np.ndenumerate(self.matrix):
            x, y = left + j * cell, 8 + i * cell
            look = {"class_": colour_class(RIGHT if i == j else WRONG), "fill": "currentColor"}
            opacity = f"{SHADE * self.shares[i, j]:.2f}"
            box = {"x": x, "y": y, "width": cell - min(1.0, cell / 10), "height": cell - min(1.0, cell / 10)}
            what = f"true {self.classes[i]}, predicted {self.classes[j]}: {count}"
            inside = [element("title", clean(what)), element("rect", **box, **look, fill_opacity=opacity)]
            if count and extent(count) + 2 <= cell and cell >= 13:
                inside.append(text(x + cell / 2 - 0.5, y + cell / 2 + 4, count, "middle"))
            data = {"data_true": self.classes[i], "data_predicted": self.classes[j], "data_count": count}
            parts.append(element("g", *inside, class_="gk-cell", **data))
        end = 8 + k * cell
        frame = f"M{number(left)} 8H{number(left + k * cell)}V{number(end)}H{number(left)}Z"
        parts.append(element("path", class_="gk-axis", d=frame))
        step = max(1, int(np.ceil(10.0 / cell)))  # of names, where cells are lower than a line of text
        for i in range(0, k, step):
            middle = (i + 0.5) * cell
            parts.append(text(left - 6, 8 + middle + 4, names[i], "end", small))
        turned = max(extent(name) for name in names) > cell - 4
        for i in range(0, k, step):
            x = left + (i + 0.5) * cell
            if turned:
                turn = f"rotate(-40 {number(x + 3)} {number(end + 12)})"
                parts.append(text(x + 3, end + 12, names[i], "end", small, transform=turn))
            else:
                parts.append(text(x, end + 16, names[i], "middle", small))
        below = end + (0.66 * longest + 22 if turned else 20)
        parts.append(text(left + k * cell / 2, below + 14, "predicted class", "middle"))
        y = 8 + k * cell / 2
        parts.append(text(12, y, "true class", "middle", transform=f"rotate(-90 12 {number(y)})"))
        return parts, below + 22
