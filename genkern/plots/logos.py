"""Letters of height by information: what states emit, or positions hold."""

from __future__ import annotations

import re
from typing import Any, Self

import numpy as np

from genkern.plots.display import Display
from genkern.plots.style import COLOURS
from genkern.plots.svg import Scale, axes, colour_class, number, text
from genkern.validation import Floats

PER_LINE = 60  # positions in a line
HEIGHT = 90.0
LETTER = re.compile(r"(?:^|[.:_])match\[(\d+),(.+)\]$")
LEAST = 0.012  # of the height of a line: lower letters are left out


class LogoDisplay(Display):
    r"""A stack of letters for each state or position.

    The height of a stack is the information against a background q, uniform unless given, :math:`\sum_a p_a \log_2
    (p_a / q_a)` bits; each letter has its share :math:`p_a` of it, the most frequent on top.

    Parameters
    ----------
    probs : ndarray of shape (L, K)
        Probabilities of the symbols in each state or position.
    symbols : list of length K
        The symbols.
    unit : str
        "state", "position" or "column".
    null : ndarray of shape (K,), optional
        The background; the default is uniform.
    weights : ndarray of shape (L,), optional
        Heights of the stacks instead of their information: contributions to a decision.

    References
    ----------
    Schneider & Stephens (1990), Sequence logos: a new way to display consensus sequences.

    Examples
    --------
    >>> from genkern import SiteModel
    >>> from genkern.plots import LogoDisplay
    >>> LogoDisplay.from_model(SiteModel([[0.5, 0.5], [1, 0]], alphabet="ab")).information
    array([0., 1.])
    """

    def __init__(
        self, probs: Floats, symbols: list[Any], unit: str, null: Floats | None = None, weights: Floats | None = None
    ) -> None:
        self.probs, self.symbols, self.unit = probs, symbols, unit
        self.null = np.full(len(symbols), 1.0 / len(symbols)) if null is None else null
        self.weights = weights
        self.title = f"Logo of the {unit}s" if weights is None else f"What speaks for the class, by {unit}s"

    @classmethod
    def from_model(cls, model: Any) -> Self:
        """Take the emissions of each hidden state, or the symbols of each position.

        Parameters
        ----------
        model : Model
            With hidden states that emit symbols, such as an ``HMM``, or of aligned windows: a ``SiteModel`` or a
            ``PositionalChain``, of which the marginals of positions are shown; or a ``ProfileHMM``: its columns,
            numbered from 0, against its background.
        """
        if getattr(model, "shape", None) != ():
            raise TypeError(f"{cls.__name__}: expected one model. Got {type(model).__name__}; of a stack, take one.")
        if hasattr(model, "n_columns"):
            return cls(model.match, list(model.alphabet.symbols), "column", model.null)
        emissions = model.state_emissions
        law = None if emissions is None else emissions.as_categorical()
        if law is not None:
            return cls(law.probs, list(law.alphabet.symbols), "state")
        table = _positions(model)
        if table is None:
            raise TypeError(
                f"{cls.__name__}: expected hidden states that emit symbols, or positions with symbols, as of an HMM, a "
                f"SiteModel or a PositionalChain. Got {type(model).__name__}."
            )
        return cls(table, list(model.alphabet.symbols), "position")

    @classmethod
    def from_explanation(cls, e: Any) -> Self:
        """Take the letters in the columns of a family that speak for a class, with their contributions.

        Parameters
        ----------
        e : Explanation
            What ``explain`` returned of a pipeline on Fisher scores or tangents of a ``ProfileHMM``. Contributions of a
            letter in a column are summed over class models; those against the class are left out.
        """
        found: dict[tuple[int, str], float] = {}
        for name, value in zip(e.names, e.contributions.tolist()):
            match = LETTER.search(str(name))
            if match is not None:
                key = int(match[1]) - 1, match[2]
                found[key] = found.get(key, 0.0) + value
        if not found:
            raise ValueError(
                f"{cls.__name__}: expected features of columns of a family, such as those of FisherScore(ProfileHMM). "
                f"Got {len(e.names)} features without such."
            )
        symbols = list(dict.fromkeys(symbol for _, symbol in found))
        heights = np.zeros((1 + max(column for column, _ in found), len(symbols)))
        for (column, symbol), value in found.items():
            heights[column, symbols.index(symbol)] = max(value, 0.0)
        weights = heights.sum(axis=1)
        shares = np.divide(heights, weights[:, None], out=np.zeros_like(heights), where=weights[:, None] > 0)
        return cls(shares, list(symbols), "column", weights=weights)

    @property
    def information(self) -> Floats:
        """The heights (L,) of the stacks: the information of each state or position in bits, or weights."""
        if self.weights is not None:
            return self.weights
        safe = np.where(self.probs > 0, self.probs / np.maximum(self.null, 1e-300), 1.0)
        bits: Floats = (self.probs * np.log2(safe)).sum(axis=1)
        return np.maximum(bits, 0.0) + 0.0  # rounding may leave a uniform one below zero

    @property
    def heights(self) -> Floats:
        """The heights (L, K) of the letters in bits."""
        return self.probs * self.information[:, None]

    @property
    def description(self) -> str:
        """What the picture shows."""
        most = int(self.information.argmax())
        best = self.symbols[int(self.probs[most].argmax())]
        if self.weights is not None:
            return (
                f"{len(self.probs)} {self.unit}s over {len(self.symbols)} symbols; most for the class, "
                f"{self.weights[most]:.3g}, is in {self.unit} {most}, mostly {best}."
            )
        return (
            f"{len(self.probs)} {self.unit}s over {len(self.symbols)} symbols; most information, "
            f"{self.information[most]:.2f} bits, is in {self.unit} {most}, mostly {best}."
        )

    def letters(self) -> list[tuple[int, int, float, float]]:
        """Return position, symbol, bottom and height (bits) of each letter that is high enough to be seen."""
        found = []
        least = LEAST * self.top
        for place, row in enumerate(self.heights):
            bottom = 0.0
            for k in np.argsort(row, kind="stable").tolist():
                if row[k] > least:
                    found.append((place, k, bottom, float(row[k])))
                bottom += float(row[k])
        return found

    @property
    def top(self) -> float:
        """The end of the scale in bits: all that a symbol can tell, or less if no stack is higher than half of it."""
        most = float(self.information.max())
        if self.weights is not None:
            return 1.1 * most if most > 0 else 1.0
        whole = float(np.log2(max(len(self.symbols), 2)))
        if most > whole:  # against a background of rare letters
            return 1.05 * most
        return whole if most > whole / 2 or most < 1e-9 else 1.1 * most

    def _figure_size(self) -> tuple[float, float]:
        return max(3.0, min(12.0, 0.3 * min(len(self.probs), PER_LINE) + 1)), 0.6 + 1.5 * self._lines

    @property
    def _measure(self) -> str:
        return "bits" if self.weights is None else "contribution"

    @property
    def _lines(self) -> int:
        return -(-len(self.probs) // PER_LINE)

    def _draw(self, ax: Any) -> None:
        from matplotlib.font_manager import FontProperties
        from matplotlib.patches import PathPatch
        from matplotlib.textpath import TextPath
        from matplotlib.transforms import Affine2D

        gap, bold = 1.25 * self.top, FontProperties(weight="bold")
        for place, k, bottom, height in self.letters():
            if not str(self.symbols[k]).strip():  # a blank has no outline
                continue
            line, column = divmod(place, PER_LINE)
            outline = TextPath((0, 0), str(self.symbols[k]), size=1, prop=bold)
            box = outline.get_extents()
            turn = Affine2D().translate(-box.x0, -box.y0).scale(0.92 / box.width, height / box.height)
            turn = turn.translate(column - 0.46, bottom - gap * line)
            ax.add_patch(PathPatch(turn.transform_path(outline), color=COLOURS[k % len(COLOURS)], linewidth=0))
        across = min(len(self.probs), PER_LINE)
        ax.set_xlim(-0.6, across - 0.4)
        ax.set_ylim(-gap * (self._lines - 1), self.top)
        step = max(1, across // 15)
        ax.set_xticks(range(0, across, step))
        if self._lines > 1:
            starts = [-gap * line for line in range(self._lines)]
            ax.set_yticks(starts, labels=[str(PER_LINE * line) for line in range(self._lines)])
            ax.set_ylabel(f"first {self.unit}")
        else:
            ax.set_ylabel(self._measure)
        ax.set_xlabel(self.unit)
        ax.set_title(self.title)
        ax.spines[["top", "right"]].set_visible(False)

    def _body(self, width: float) -> tuple[list[str], float]:
        left = 46.0
        across = min(len(self.probs), PER_LINE)
        cell = min(34.0, (width - left - 6) / across)
        parts = []
        for line in range(self._lines):
            first, count = line * PER_LINE, min(PER_LINE, len(self.probs) - line * PER_LINE)
            top = 6 + line * (HEIGHT + 30)
            ys = Scale(0.0, self.top, top + HEIGHT, top)
            xs = Scale(0.0, float(count), left, left + count * cell)
            step = max(1, int(np.ceil(26 / cell)))
            ticks = [(t + 0.5, str(first + t)) for t in range(0, count, step)]
            parts += axes(xs, ys, "", self._measure, ticks, ys.ticks(3))
        for place, k, bottom, height in self.letters():
            line, column = divmod(place, PER_LINE)
            base = 6 + line * (HEIGHT + 30) + HEIGHT
            tall, low = height / self.top * HEIGHT, base - bottom / self.top * HEIGHT
            data = {"data_t": place, "data_symbol": self.symbols[k], "data_p": f"{self.probs[place, k]:.3g}"}
            parts.append(_letter(self.symbols[k], left + column * cell + 0.04 * cell, low, 0.92 * cell, tall, k, data))
        end = 6 + self._lines * (HEIGHT + 30)
        parts.append(text(left + across * cell / 2, end + 6, self.unit, "middle"))
        return parts, end + 14


def _letter(symbol: Any, x: float, y: float, width: float, height: float, k: int, data: dict[str, Any]) -> str:
    """Return a symbol stretched to a box with its lower left corner at (x, y).

    Bold capitals of Arial, and of those that replace it, are 0.72 em high; letters with descenders take the whole em.
    """
    name = str(symbol)
    tall, drop = (72.0, 0.0) if name == name.upper() and name.isascii() and name.isalnum() else (95.0, 22.0)
    scale = height / tall
    turn = f"translate({number(x)} {number(y - drop * scale)}) scale({width / 100:.3f} {scale:.3f})"
    look = {"class_": f"gk-logo {colour_class(k)}", "transform": turn, "textLength": "100"}
    return text(0, 0, name, **look, lengthAdjust="spacingAndGlyphs", **data)


def _positions(model: Any) -> Floats | None:
    """Return the probabilities (L, K) of the symbols at each position of a model of aligned windows, else None."""
    if not hasattr(model, "alphabet"):
        return None
    if hasattr(model, "probs"):
        return model.probs if model.probs.ndim == 2 else None
    if not hasattr(model, "length") or not hasattr(model, "order"):
        return None
    # A chain by positions: carry the law of the last k symbols along.
    k, m = model.order, model.alphabet.size
    law = np.asarray(model.start).reshape(-1)
    rows = [law.reshape((m,) * k).sum(axis=tuple(a for a in range(k) if a != t)) for t in range(k)]
    for table in model.transitions.reshape(model.length - k, -1, m):
        joint = law[:, None] * table
        rows.append(joint.sum(axis=0))
        law = joint.reshape(m, -1).sum(axis=0) if k else law
    return np.stack(rows)
