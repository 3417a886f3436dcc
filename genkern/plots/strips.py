"""An object with what each of its positions contributed to a decision."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from genkern.data.objects import kind_of
from genkern.plots.display import Display
from genkern.plots.style import AGAINST, COLOURS, FOR, GREY, SHADE
from genkern.plots.svg import Scale, axes, clean, curve, element, legend, number, path, room_for, text
from genkern.validation import Floats

LETTERS, LINES = 80, 6  # symbols in a line, and lines, of which letters are drawn
CHANNELS = 4  # of a series that are drawn as lines
_LETTER = {"ha": "center", "va": "center", "family": "monospace", "clip_on": True}


class HeatStripDisplay(Display):
    """One object on the contributions of its positions: orange speaks for the class, purple against it.

    Symbols are drawn as letters (up to 480 of them), series as lines or, with more than four channels, as a heat map
    of standardised channels.

    Parameters
    ----------
    x : object
        The object.
    positions : ndarray of shape (T,)
        Contributions of its positions.
    label : object
        The class whose decision they are contributions to.
    decision : float
        The decision value.
    """

    title = "Contributions by position"
    _size = (9.0, 3.6)

    def __init__(self, x: Any, positions: Floats, label: Any, decision: float) -> None:
        self.x, self.positions, self.label, self.decision = x, positions, label, decision
        self.symbols = kind_of([x], type(self).__name__, ask=False) == "symbols"

    @classmethod
    def from_explanation(cls, e: Any) -> Self:
        """Take the positions of an explanation.

        Parameters
        ----------
        e : Explanation
            What ``explain`` returned, with contributions of positions.
        """
        if e.positions is None:
            raise ValueError(
                f"{cls.__name__}: the explanation has no contributions of positions, since the embedding has none. "
                "Draw its features with ContributionsDisplay."
            )
        return cls(e.x, np.asarray(e.positions, np.float64), e.label, e.decision)

    @property
    def description(self) -> str:
        """What the picture shows."""
        most = int(np.abs(self.positions).argmax())
        return (
            f"{len(self.positions)} positions contribute {self.positions.sum():+.2f} to the decision "
            f"{self.decision:+.2f} for class {self.label}; most is {self.positions[most]:+.2f} at position {most}."
        )

    @property
    def reach(self) -> float:
        """The largest absolute contribution, at which the colours end."""
        return float(np.abs(self.positions).max()) or 1.0

    def _draw(self, ax: Any) -> None:
        ax.set_axis_off()
        ax.set_title(f"class {self.label}: decision {self.decision:+.2f}", fontsize=11, parse_math=False)
        draw_positions(ax, self, (0.06, 0.14, 0.93, 0.82))

    def _body(self, width: float) -> tuple[list[str], float]:
        keys = [(element("rect", x=-6.0, y=-6.0, width=12.0, height=12.0, class_=name, fill="currentColor"), said)
                for name, said in (("gk-for", f"for class {self.label}"), ("gk-against", "against it"))]  # fmt: skip
        parts, used = legend(keys, 4, 0, width - 8)
        if self.symbols and len(self.positions) <= LETTERS * LINES:
            letters, used = self._letters(width, used + 6)
        elif self.symbols:
            letters, used = [], used + 6
        else:
            letters, used = self._series(width, used + 6)
        bars, height = self._bars(width, used + 8)
        return parts + letters + bars, height

    def _letters(self, width: float, top: float) -> tuple[list[str], float]:
        """Return lines of letters on colours, and where they end."""
        left = 34.0
        per_line = max(10, min(LETTERS, len(self.positions), int((width - left - 4) // 8.5) // 10 * 10 or 10))
        cell = min(16.0, (width - left - 4) / per_line)
        parts = []
        for line in range(-(-len(self.positions) // per_line)):
            here = slice(line * per_line, (line + 1) * per_line)
            y = top + 22.0 * line
            for t, value in enumerate(self.positions[here].tolist()):
                opacity = SHADE * abs(value) / self.reach
                at = f"M{number(left + t * cell)} {number(y)}h{number(cell)}v18h-{number(cell)}z"
                data = {"data_t": here.start + t, "data_value": f"{value:.4g}", "fill_opacity": f"{opacity:.2f}"}
                parts.append(element("path", d=at, fill="currentColor", class_=side(value), **data))
            shown = [str(symbol) for symbol in self.x[here]]
            parts.append(letters_at(shown, left + cell / 2, y + 13, cell))
            parts.append(text(left - 5, y + 13, here.start, "end", "gk-text gk-small"))
        return parts, top + 22.0 * -(-len(self.positions) // per_line)

    def _series(self, width: float, top: float) -> tuple[list[str], float]:
        """Return the channels of a series over the colours of its positions, and where they end."""
        values = np.asarray(self.x, np.float64).reshape(len(self.x), -1)
        height = 110.0
        if values.shape[1] > CHANNELS:
            values = standardised(values)
        ys = Scale.covering(values, top + height, top)
        xs = Scale(-0.5, len(values) - 0.5, room_for(ys, "value"), width - 6)
        parts = []
        for t, value in enumerate(self.positions.tolist() if len(self.positions) == len(values) else []):
            first, last = float(xs(t - 0.5)), float(xs(t + 0.5))
            at = f"M{number(first)} {number(top)}H{number(last)}v{number(height)}H{number(first)}z"
            data = {"data_t": t, "data_value": f"{value:.4g}", "fill_opacity": f"{SHADE * abs(value) / self.reach:.2f}"}
            parts.append(element("path", d=at, fill="currentColor", class_=side(value), **data))
        parts += axes(xs, ys, "", "value" if values.shape[1] <= CHANNELS else "standardised", xticks=[])
        for channel, column in enumerate(values.T):
            line = path(xs(np.arange(len(column))), ys(column))
            if values.shape[1] <= CHANNELS:
                parts.append(curve(line, channel, 1.6, data_channel=channel) if values.shape[1] > 1 else element(
                    "path", d=line, class_="gk-line", stroke_width=1.6, data_channel=channel))  # fmt: skip
            else:
                parts.append(element("path", d=line, class_="gk-line", stroke_width=0.7, data_channel=channel))
        return parts, top + height

    def _bars(self, width: float, top: float) -> tuple[list[str], float]:
        """Return the contributions of positions as bars, or areas if they are many, and where they end."""
        ends = [*self.positions.tolist(), 0.0]
        ys = Scale.covering(ends, top + 90.0, top, 0.08)
        xs = Scale(-0.5, len(self.positions) - 0.5, room_for(ys, "contribution"), width - 6)
        parts = axes(xs, ys, "position", "contribution")
        zero = float(ys(0.0))
        edges = xs(np.arange(len(self.positions) + 1) - 0.5)
        for name, sign in (("gk-for", 1.0), ("gk-against", -1.0)):
            heights = ys(sign * np.maximum(sign * self.positions, 0.0))
            around = path(np.repeat(edges, 2)[1:-1], np.repeat(heights, 2))
            closed = f"{around}V{number(zero)}H{number(float(edges[0]))}Z"
            parts.append(element("path", d=closed, class_=f"gk-area {name}", fill="currentColor"))
        parts.append(
            element("path", class_="gk-axis", d=f"M{number(float(edges[0]))} {number(zero)}H{number(width - 6)}")
        )
        return parts, top + 90 + 40


def side(value: float) -> str:
    """Return the class that colours a contribution."""
    return "gk-for" if value >= 0 else "gk-against"


def letters_at(symbols: list[str], x: float, y: float, cell: float) -> str:
    """Return symbols as monospaced text, one in the middle of each cell; longer symbols lose their end."""
    room = max(1, int(cell / 6.4))
    size = min(13.0, 1.55 * cell)
    look = {"text_anchor": "middle", "class_": "gk-text gk-mono", "font_size": size}
    if all(len(symbol) == 1 and ord(symbol) < 0x300 and not symbol.isspace() for symbol in symbols):
        places = " ".join(number(x + t * cell) for t in range(len(symbols)))
        return element("text", clean("".join(symbols)), x=places, y=float(y), **look)
    parts = [text(x + t * cell, y, symbol[:room], "middle", "gk-text gk-mono") for t, symbol in enumerate(symbols)]
    return element("g", *parts, font_size=size)


def standardised(values: Floats) -> Floats:
    """Return channels (T, d) with mean zero and deviation one, as far as they vary."""
    known = np.where(np.isnan(values).all(axis=0), 0.0, values)
    spread = np.nanstd(known, axis=0)
    return (known - np.nanmean(known, axis=0)) / np.where(spread > 0, spread, 1.0)


def draw_positions(host: Any, strip: HeatStripDisplay, box: tuple[float, float, float, float]) -> None:
    """Draw an object and the contributions (T,) of its positions in a part of the host, by matplotlib."""
    places, symbols, reach = strip.positions, strip.symbols, strip.reach
    lines = -(-len(places) // LETTERS) if symbols and len(places) <= LETTERS * LINES else 0
    share = 0.09 * lines if symbols else 0.5  # of the height, for the object
    x, y, width, height = box
    bars = host.inset_axes((x, y, width, height - share - 0.03))
    inset = host.inset_axes((x, y + height - share, width, share)) if share else None
    if len(places) <= 2 * LETTERS:
        bars.bar(np.arange(len(places)), places, color=np.where(places >= 0, FOR, AGAINST), width=0.8)
    else:
        for sign, colour in ((1.0, FOR), (-1.0, AGAINST)):
            bars.fill_between(np.arange(len(places)), sign * np.maximum(sign * places, 0.0), color=colour, step="mid")
    bars.axhline(0.0, color=GREY, linewidth=0.8)
    bars.set_xlim(-0.5, len(places) - 0.5)
    bars.set_ylim(min(1.08 * places.min(), -0.05 * reach), max(1.08 * places.max(), 0.05 * reach))
    bars.set_xlabel("position", fontsize=9)
    bars.set_ylabel("contribution", fontsize=9)
    bars.tick_params(labelsize=8)
    bars.spines[["top", "right"]].set_visible(False)
    if inset is not None:
        (_draw_letters if symbols else _draw_series)(inset, strip.x, places, reach)


def _draw_letters(ax: Any, x: Any, places: Floats, reach: float) -> None:
    """Draw symbols on cells coloured by their contribution, in lines that begin with the position."""
    width = min(LETTERS, len(places))
    cells = np.full(-(-len(places) // width) * width, np.nan)
    cells[: len(places)] = places
    table, size = cells.reshape(-1, width), 9.0 if width <= 60 else 7.5
    ax.imshow(table, cmap="PuOr_r", vmin=-reach, vmax=reach, aspect="auto", interpolation="nearest")
    for t, symbol in enumerate(x):
        colour = "white" if abs(places[t]) > 0.6 * reach else "black"
        ax.text(t % width, t // width, str(symbol), color=colour, fontsize=size, parse_math=False, **_LETTER)
    ax.set_xticks([])
    several = len(table) > 1
    ax.set_yticks(np.arange(len(table)) if several else [], labels=np.arange(len(table)) * width if several else [])
    ax.tick_params(length=0, labelsize=8)
    ax.spines[:].set_visible(False)


def _draw_series(ax: Any, x: Any, places: Floats, reach: float) -> None:
    """Draw a series as lines before its contributions, or as a heat map if it has many channels."""
    values = np.asarray(x, np.float64).reshape(len(x), -1)
    ends_x = (-0.5, len(values) - 0.5)
    if values.shape[1] <= CHANNELS:
        for channel, colour in zip(values.T, ["black", *COLOURS]):
            ax.plot(channel, color=colour, linewidth=1.0, marker="." if len(values) <= LETTERS else "", markersize=3)
        ends = ax.get_ylim()
        shades = {"cmap": "PuOr_r", "vmin": -reach, "vmax": reach, "aspect": "auto", "interpolation": "nearest"}
        ax.imshow(places[None], extent=(*ends_x, *ends), alpha=0.6, zorder=0, **shades)
        ax.set_ylabel("value", fontsize=9)
    else:
        ax.imshow(standardised(values).T, cmap="cividis", aspect="auto", interpolation="nearest")
        ax.set_ylabel("channel", fontsize=9)
        ax.locator_params(axis="y", integer=True, nbins=5)
    ax.set_xlim(*ends_x)
    ax.set_xticks([])
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right", "bottom"]].set_visible(False)
