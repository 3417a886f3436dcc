"""Whether probabilities are what they say: reliability curves."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.plots.display import Display
from genkern.plots.rankings import check_scores
from genkern.plots.style import COLOURS, GREY
from genkern.plots.svg import Scale, axes, curve, element, mark, number, path, text
from genkern.validation import Floats, check_int


class CalibrationDisplay(Display):
    r"""How often predictions of a probability came true, and how many there were of each.

    Of two classes, the probability of the second is compared with its frequency; of more, the probability of the
    predicted class with the frequency of right predictions (Guo et al. 2017). Bins are equally wide and include their
    upper end. The expected calibration error is :math:`\sum_b \frac{n_b}{n} |f_b - \bar p_b|`.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Ends of the bins.
    counts : ndarray of shape (n_bins,) of int
        Objects in each bin.
    predicted : ndarray of shape (b,)
        Mean probability in each bin that is not empty.
    observed : ndarray of shape (b,)
        The frequency there.
    event : str
        What the probability is that of.

    References
    ----------
    Guo, Pleiss, Sun & Weinberger (2017), On calibration of modern neural networks, section 2.

    Examples
    --------
    >>> from genkern.plots import CalibrationDisplay
    >>> probabilities = [[0.9, 0.1], [0.6, 0.4], [0.6, 0.4], [0, 1]]
    >>> shown = CalibrationDisplay.from_predictions([0, 0, 1, 1], probabilities, [0, 1], 2)
    >>> shown.counts, shown.observed, round(shown.error, 3)
    (array([3, 1]), array([0.33333333, 1.        ]), 0.025)
    """

    title = "Calibration"

    def __init__(
        self, edges: Floats, counts: NDArray[np.int64], predicted: Floats, observed: Floats, event: str
    ) -> None:
        self.edges, self.counts, self.predicted, self.observed, self.event = edges, counts, predicted, observed, event

    @classmethod
    def from_predictions(cls, y: ArrayLike, probabilities: ArrayLike, classes: ArrayLike, n_bins: int = 10) -> Self:
        """Count.

        Parameters
        ----------
        y : array-like of shape (n,)
            True classes.
        probabilities : array-like of shape (n, k)
            Probabilities of the classes.
        classes : array-like of shape (k,)
            The classes, in the order of the columns.
        n_bins : int, default=10
            Number of bins.
        """
        true, known, table = check_scores(y, probabilities, classes, cls.__name__)
        bins = check_int(n_bins, "n_bins", cls.__name__, 1)
        if table.min(initial=0.0) < 0 or table.max(initial=0.0) > 1 + 1e-9:
            raise ValueError(
                f"{cls.__name__}: 'probabilities' must be from 0 to 1. Got {table.min()} to {table.max()}."
            )
        place = {label: j for j, label in enumerate(known)}
        index = np.array([place[label] for label in true.tolist()])
        if len(known) == 2:
            sure, came, event = table[:, 1], index == 1, f"class {known[1]}"
        else:
            sure, came, event = table.max(axis=1), index == table.argmax(axis=1), "predicted class"
        edges = np.linspace(0.0, 1.0, bins + 1)
        owner = np.searchsorted(edges[1:-1], sure)
        counts = np.bincount(owner, minlength=bins)
        filled = counts > 0
        sums = [np.bincount(owner, values, bins)[filled] / counts[filled] for values in (sure, came)]
        return cls(edges, counts, sums[0], sums[1], event)

    @property
    def error(self) -> float:
        """The expected calibration error."""
        weights = self.counts[self.counts > 0] / self.counts.sum()
        return float(weights @ np.abs(self.observed - self.predicted))

    @property
    def description(self) -> str:
        """What the picture shows."""
        return (
            f"Probabilities of the {self.event} for {self.counts.sum()} objects against how often they came true; "
            f"expected calibration error {self.error:.3f}."
        )

    def _draw(self, ax: Any) -> None:
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=":")
        ax.plot(self.predicted, self.observed, color=COLOURS[0], marker="o", markersize=4, linewidth=1.5)
        ax.set_xlim(-0.01, 1.01)
        ax.set_ylim(-0.01, 1.01)
        ax.set_xlabel(f"probability of the {self.event}")
        ax.set_ylabel("frequency")
        ax.set_title(f"{self.title}: expected error {self.error:.3f}")
        ax.spines[["top", "right"]].set_visible(False)
        counts = ax.twinx()
        counts.bar(self.edges[:-1], self.counts, np.diff(self.edges), align="edge", color=COLOURS[4], alpha=0.25)
        counts.set_ylim(0, 4 * self.counts.max())
        counts.set_yticks([0, self.counts.max()])
        counts.set_ylabel("objects", loc="bottom")
        counts.spines[["top"]].set_visible(False)

    def _body(self, width: float) -> tuple[list[str], float]:
        left, side, low = 58.0, min(width - 70, 420.0), 70.0
        xs, ys = Scale(0.0, 1.0, left, left + side), Scale(0.0, 1.0, 8 + side, 8.0)
        parts = axes(xs, ys, "", "frequency")
        parts.append(element("path", class_="gk-axis", stroke_dasharray="3 3", d=path(xs([0.0, 1.0]), ys([0.0, 1.0]))))
        across, above = xs(self.predicted), ys(self.observed)
        parts.append(curve(path(across, above), 0, 1.8))
        rows = zip(
            across.tolist(), above.tolist(), self.counts[self.counts > 0].tolist(), self.predicted, self.observed
        )
        for x, y, count, said, seen in rows:
            data = {"count": count, "predicted": f"{said:.4g}", "observed": f"{seen:.4g}"}
            parts.append(mark(0, x, y, **data).replace("gk-mark", "gk-bin"))
        top = 8 + side + 34
        heights = Scale(0.0, float(self.counts.max()), top + low, top)
        ticks = [(count, str(count)) for count in sorted({0, int(self.counts.max()) // 2, int(self.counts.max())})]
        parts += axes(xs, heights, f"probability of the {self.event}", "objects", None, ticks)
        for first, last, count in zip(xs(self.edges[:-1]).tolist(), xs(self.edges[1:]).tolist(), self.counts.tolist()):
            if count:
                up, down = number(float(heights(count))), number(top + low)
                bar = f"M{number(first + 1)} {down}V{up}H{number(last - 1)}V{down}z"
                parts.append(element("path", class_="gk-c4", fill="currentColor", d=bar, data_count=count))
        note = f"expected calibration error {self.error:.3f}"
        parts.append(text(left + 10, 24, note, class_="gk-text gk-halo"))
        return parts, top + low + 40
