"""How well scores rank the objects of a class before the others: ROC and precision-recall curves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.learn.ranking import roc50_score
from genkern.plots.display import Display, check_labels
from genkern.plots.style import COLOURS, GREY
from genkern.plots.svg import Scale, axes, curve, element, line_legend, path, shortened
from genkern.validation import Floats, check_array, check_int


class RankingDisplay(Display):
    """One curve per class against all others; of two classes, only that of the second.

    Parameters
    ----------
    x, y : lists of ndarrays
        The points of each curve.
    areas : ndarray of shape (c,)
        The area under each curve.
    names : list of str
        The classes of the curves. Classes of which there are no objects, or only such, have no curve.
    """

    _axes: ClassVar[tuple[str, str]]
    _area: ClassVar[str]
    _step: ClassVar[bool] = False
    limit: int | None = None

    def __init__(self, x: list[Floats], y: list[Floats], areas: Floats, names: list[str]) -> None:
        self.x, self.y, self.areas, self.names = x, y, areas, names

    @staticmethod
    @abstractmethod
    def _points(hits: NDArray[np.int64], false: NDArray[np.int64]) -> tuple[Floats, Floats, float]:
        """Return a curve and its area from the numbers of true and false positives at falling thresholds."""

    @classmethod
    def from_predictions(cls, y: ArrayLike, scores: ArrayLike, classes: ArrayLike, names: Any = None) -> Self:
        """Rank the objects by each class's scores.

        Parameters
        ----------
        y : array-like of shape (n,)
            True classes.
        scores : array-like of shape (n, k) or, for two classes, (n,)
            Probabilities or decision values of each class; one column is that of the second class.
        classes : array-like of shape (k,)
            The classes, in the order of the columns.
        names : list of str, optional
            What the classes are called in the legend.
        """
        return cls._ranked(y, scores, classes, names, lambda own, values: cls._points(*_counts(own, values)))

    @classmethod
    def _ranked(
        cls,
        y: ArrayLike,
        scores: ArrayLike,
        classes: ArrayLike,
        names: Any,
        draw: Callable[[NDArray[np.bool_], Floats], tuple[Floats, Floats, float]],
    ) -> Self:
        """Return the curves that ``draw`` finds from members of a class and scores, with their areas."""
        true, known, table = check_scores(y, scores, classes, cls.__name__)
        called = [str(label) for label in (known if names is None else names)]
        if len(called) != len(known):
            raise ValueError(f"{cls.__name__}: 'names' must hold {len(known)} names. Got {len(called)}.")
        found = []
        for j in [1] if len(known) == 2 else range(len(known)):
            own = np.array([label == known[j] for label in true.tolist()])
            if 0 < own.sum() < len(own):
                found.append((*draw(own, table[:, j]), called[j]))
        if not found:
            raise ValueError(f"{cls.__name__}: expected objects of at least two of the classes in 'y'. Got only one.")
        x, up, areas, curves = zip(*found)
        return cls(list(x), list(up), np.array(areas), list(curves))

    @property
    def description(self) -> str:
        """What the picture shows."""
        areas = ", ".join(f"{name} {area:.3f}" for name, area in zip(self.names[:6], self.areas))
        more = f" and {len(self.names) - 6} more" if len(self.names) > 6 else ""
        return f"{self._area}: {areas}{more}."

    def _labels(self) -> list[str]:
        return [f"{shortened(name, 130)} ({area:.3f})" for name, area in zip(self.names, self.areas)]

    def _draw(self, ax: Any) -> None:
        styles = ("-", "--", ":", "-.")
        for i, (x, y, name) in enumerate(zip(self.x, self.y, self._labels())):
            look = {"color": COLOURS[i % len(COLOURS)], "linestyle": styles[i // len(COLOURS) % 4], "linewidth": 1.5}
            ax.plot(x, y, label=name, drawstyle="steps-pre" if self._step else "default", **look)
        self._reference(ax)
        ax.set_xlim(-0.01 * (self.limit or 1), 1.01 * (self.limit or 1))
        ax.set_ylim(-0.01, 1.01)
        ax.set_xlabel(self._axes[0])
        ax.set_ylabel(self._axes[1])
        ax.set_title(self.title)
        ax.grid(linewidth=0.5, alpha=0.5)
        place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if len(self.x) > 3 else {"loc": "best"}
        ax.legend(title=self._area, frameon=False, **place)
        ax.spines[["top", "right"]].set_visible(False)

    def _reference(self, ax: Any) -> None:
        """Draw what chance would give, if that is one line."""

    def _body(self, width: float) -> tuple[list[str], float]:
        left, side = 58.0, min(width - 66, 420.0)
        xs, ys = Scale(0.0, float(self.limit or 1), left, left + side), Scale(0.0, 1.0, 8 + side, 8.0)
        parts = axes(xs, ys, *self._axes)
        if self._step is False and self.limit is None:
            diagonal = path(xs([0.0, 1.0]), ys([0.0, 1.0]))
            parts.append(element("path", class_="gk-axis", stroke_dasharray="3 3", d=diagonal))
        for i, (x, y, name) in enumerate(zip(self.x, self.y, self.names)):
            if self._step:
                x, y = np.repeat(x, 2)[:-1], np.repeat(y, 2)[1:]
            parts.append(curve(path(xs(x), ys(y)), i, 1.8, data_name=name, data_area=f"{self.areas[i]:.6g}"))
        beside = width - left - side >= 150
        corner = (left + side + 12, 8.0, width - left - side - 12) if beside else (left, side + 50, side)
        entries, height = line_legend(self._labels(), *corner)
        return parts + entries, side + 50 + (0.0 if beside else height)


class RocDisplay(RankingDisplay):
    """Receiver operating characteristic: the share of a class that is found against that of the others taken for it.

    Parameters
    ----------
    x, y : lists of ndarrays
        False and true positive rates at each threshold, from (0, 0) to (1, 1); numbers of false positives, up to the
        limit, if there is one.
    areas : ndarray of shape (c,)
        Areas under the curves: the probability that an object of the class has a higher score than another.
    names : list of str
        The classes of the curves.
    limit : int, optional
        The number of false positives at which curves end, as 50 for ROC50. Areas are then those of ``roc50_score``.

    Examples
    --------
    >>> from genkern.plots import RocDisplay
    >>> RocDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], [0, 1]).areas
    array([0.75])
    >>> RocDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], [0, 1], limit=1).areas
    array([0.5])
    """

    def __init__(
        self, x: list[Floats], y: list[Floats], areas: Floats, names: list[str], limit: int | None = None
    ) -> None:
        super().__init__(x, y, areas, names)
        self.limit = limit
        if limit is not None:
            self.title = f"ROC{limit} curves"
            self._axes = ("false positives", "true positive rate")  # type: ignore[misc]
            self._area = f"ROC{limit}"  # type: ignore[misc]

    @classmethod
    def from_predictions(
        cls, y: ArrayLike, scores: ArrayLike, classes: ArrayLike, names: Any = None, limit: int | None = None
    ) -> Self:
        """Rank the objects by each class's scores.

        Parameters
        ----------
        y : array-like of shape (n,)
            True classes.
        scores : array-like of shape (n, k) or, for two classes, (n,)
            Probabilities or decision values of each class; one column is that of the second class.
        classes : array-like of shape (k,)
            The classes, in the order of the columns.
        names : list of str, optional
            What the classes are called in the legend.
        limit : int, optional
            The number of false positives at which curves end, as 50 for ROC50.
        """
        if limit is None:
            return super().from_predictions(y, scores, classes, names)
        most = check_int(limit, "limit", cls.__name__, 1)

        def draw(own: NDArray[np.bool_], values: Floats) -> tuple[Floats, Floats, float]:
            hits, false = (np.insert(counts, 0, 0) for counts in _counts(own, values))
            end = min(most, int(false[-1]))
            inside = false < end
            x = np.append(false[inside], end).astype(np.float64)
            # ties across the limit are cut where a straight line through them is
            last = int(inside.sum())
            share = (end - false[last - 1]) / (false[last] - false[last - 1])
            final = hits[last - 1] + share * (hits[last] - hits[last - 1])
            return x, np.append(hits[inside], final) / hits[-1], roc50_score(own, values, n=most)

        display = cls._ranked(y, scores, classes, names, draw)
        return cls(display.x, display.y, display.areas, display.names, most)

    title = "ROC curves"
    _axes = ("false positive rate", "true positive rate")
    _area = "area under the curve"

    @staticmethod
    def _points(hits: NDArray[np.int64], false: NDArray[np.int64]) -> tuple[Floats, Floats, float]:
        x, y = np.concatenate([[0], false]) / false[-1], np.concatenate([[0], hits]) / hits[-1]
        return x, y, float(np.trapezoid(y, x))

    def _reference(self, ax: Any) -> None:
        if self.limit is None:
            ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=":")


class PrecisionRecallDisplay(RankingDisplay):
    r"""The share of right ones among the objects taken for a class, against the share of the class that is found.

    Parameters
    ----------
    x, y : lists of ndarrays
        Recall and precision at each threshold, from recall 0 on, where the precision is put at one.
    areas : ndarray of shape (c,)
        Average precision, :math:`\sum_t (R_t - R_{t-1}) P_t`.
    names : list of str
        The classes of the curves.

    Examples
    --------
    >>> from genkern.plots import PrecisionRecallDisplay
    >>> PrecisionRecallDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], [0, 1]).areas.round(3)
    array([0.833])
    """

    title = "Precision-recall curves"
    _axes = ("recall", "precision")
    _area = "average precision"
    _step = True

    @staticmethod
    def _points(hits: NDArray[np.int64], false: NDArray[np.int64]) -> tuple[Floats, Floats, float]:
        recall, precision = hits / hits[-1], hits / (hits + false)
        area = float((np.diff(recall, prepend=0.0) * precision).sum())
        return np.concatenate([[0.0], recall]), np.concatenate([[1.0], precision]), area


def check_scores(
    y: ArrayLike, scores: ArrayLike, classes: ArrayLike, who: str
) -> tuple[NDArray[Any], list[Any], Floats]:
    """Return labels (n,), classes (k,) and scores (n, k)."""
    true, known, table = np.asarray(y), np.asarray(classes).tolist(), check_array(scores, "scores", who)
    if table.ndim == 1 and len(known) == 2:
        table = np.column_stack([-table, table])
    if len(known) < 2 or table.shape != (len(true), len(known)):
        raise ValueError(
            f"{who}: 'scores' must have a row for each of {len(true)} objects and a column for each of at least two "
            f"classes. Got shape {table.shape} and {len(known)} classes."
        )
    check_labels(true, len(table), "y", who)
    unknown = [label for label in true.tolist() if label not in known]
    if unknown:
        raise ValueError(f"{who}: {unknown[0]!r} in 'y' is none of the classes {', '.join(map(repr, known[:9]))}.")
    return true, known, table


def _counts(own: NDArray[np.bool_], scores: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of objects of the class, and of others, with at least each of the different scores."""
    order = np.argsort(-scores, kind="stable")
    last = np.flatnonzero(np.diff(scores[order], append=np.nan) != 0)
    hits = np.cumsum(own[order].astype(np.int64))[last]
    return hits, last + 1 - hits
