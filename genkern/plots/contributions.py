"""Which features, or blocks of features, drove decisions."""

from __future__ import annotations

import textwrap
from typing import Any, Self

import numpy as np

from genkern.plots.display import Display
from genkern.plots.strips import side
from genkern.plots.style import AGAINST, FOR, GREY
from genkern.plots.svg import Scale, axes, element, extent, number, shortened, text
from genkern.validation import Floats, check_int

CUT, LINE = 26, 30  # characters of a name, and of each of two lines of one of several words


class ContributionsDisplay(Display):
    """Bars of the largest contributions: orange speaks for the class, purple against it.

    Parameters
    ----------
    names : list of str
        Features or blocks, the largest contribution first.
    values : ndarray of shape (len(names),)
        Contributions.
    total : int
        How many features or blocks there are in all.
    label : object
        The class whose decision they are contributions to; None for those of a whole set.
    """

    _size = (6.0, 4.2)

    def __init__(self, names: list[str], values: Floats, total: int, label: Any = None) -> None:
        self.names, self.values, self.total, self.label = names, values, total, label
        self.title = "Contributions of features" if label is not None else "Mean absolute contributions by block"

    @classmethod
    def from_explanation(cls, e: Any, n: int = 12) -> Self:
        """Take the largest contributions.

        Parameters
        ----------
        e : Explanation or ExplanationSet
            What ``explain`` or ``explain_set`` returned; of a set, the mean absolute contributions of blocks are shown.
        n : int, default=12
            How many are shown.
        """
        most = check_int(n, "n", "explanation", 1)
        if hasattr(e, "contributions"):
            top = e.top(most)
            return cls(
                [name for name, _ in top], np.array([value for _, value in top], np.float64), len(e.names), e.label
            )
        blocks = {str(name): float(found.absolute) for name, found in e.by_block().items()}
        top = sorted(blocks.items(), key=lambda item: (-item[1], item[0]))[:most]
        return cls([name for name, _ in top], np.array([value for _, value in top]), len(blocks))

    @property
    def description(self) -> str:
        """What the picture shows."""
        first = ", ".join(f"{name} {value:+.3g}" for name, value in zip(self.names[:3], self.values))
        whose = "" if self.label is None else f" to the decision for class {self.label}"
        return f"The {len(self.names)} largest of {self.total} contributions{whose}; first {first}."

    @property
    def _caption(self) -> str:
        what = "features" if self.label is not None else "blocks"
        return f"contributions of the {len(self.names)} largest of {self.total} {what}"

    def _draw(self, ax: Any) -> None:
        names, values = self.names[::-1], self.values[::-1]
        ax.barh(np.arange(len(values)), values, color=np.where(values >= 0, FOR, AGAINST), height=0.72)
        reach = float(np.abs(values).max(initial=0.0)) or 1.0
        for row, (name, value) in enumerate(zip(names, values)):
            where = "right" if value >= 0 else "left"
            shown = name if len(name) <= CUT else f"{name[:8]}…{name[-17:]}"
            if len(name) > CUT and " " in name:
                shown = textwrap.fill(name, LINE, max_lines=2, placeholder=" …")
            place = {"ha": where, "va": "center", "fontsize": 7 if "\n" in shown else 8, "parse_math": False}
            ax.text(-0.03 * reach * np.copysign(1.0, value), row, shown, linespacing=0.95, **place)
        ax.set_xlim(-1.15 * reach, 1.15 * reach)
        ax.axvline(0.0, color=GREY, linewidth=0.8)
        ax.set_yticks([])
        ax.locator_params(axis="x", nbins=5)
        ax.tick_params(labelsize=8)
        ax.set_xlabel(self._caption, fontsize=9)
        ax.spines[["top", "right", "left"]].set_visible(False)

    def _body(self, width: float) -> tuple[list[str], float]:
        names = [shortened(name, 0.42 * width) for name in self.names]
        left = max(map(extent, names), default=0.0) + 12
        bottom = 8.0 + 22 * len(names)
        xs = Scale.covering([*self.values.tolist(), 0.0], left, width - 60, 0.0)
        parts = axes(xs, Scale(0.0, 1.0, bottom, 4.0), self._caption, "", None, [])
        zero = float(xs(0.0))
        for row, (name, value) in enumerate(zip(names, self.values.tolist())):
            y, end = 8.0 + 22 * row, float(xs(value))
            bar = {"x": min(zero, end), "y": y + 3, "width": abs(end - zero), "height": 15.0}
            look = {"class_": side(value), "fill": "currentColor"}
            shown = element("rect", **bar, **look)
            figure = text(max(zero, end) + 5, y + 14.5, f"{value:+.3g}" if self.label is not None else f"{value:.3g}")
            data = {"data_name": self.names[row], "data_value": f"{value:.6g}"}
            parts.append(element("g", text(left - 8, y + 14.5, name, "end"), shown, figure, class_="gk-bar", **data))
        parts.append(element("path", class_="gk-axis", d=f"M{number(zero)} 4V{number(bottom)}"))
        return parts, bottom + 40
