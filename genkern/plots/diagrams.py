"""States and the steps between them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from genkern.plots.display import Display
from genkern.plots.gram import colour_bar, heat_image
from genkern.plots.style import COLOURS, GREY
from genkern.plots.svg import Scale, axes, colour_class, element, number, shortened, text
from genkern.validation import Floats

MOST = 12  # states that are drawn as circles
DRAWN, LABELLED = 0.01, 0.05  # least probabilities of an arrow and of its label


class Arrow(NamedTuple):
    """A cubic curve from (x0, y0) to (x3, y3) with its probability, its text and where that is."""

    curve: tuple[float, float, float, float, float, float, float, float]
    probability: float
    label: str
    at: tuple[float, float]
    kind: str
    ends: tuple[Any, Any]


class StateDiagramDisplay(Display):
    """States as circles, steps as arrows of width by probability, with where sequences start and stop.

    Models whose steps lead only forward are drawn in a row, others in a circle. Arrows below 0.01 are left out, labels
    below 0.05. More than 12 states are drawn as a heat map of the transitions.

    Parameters
    ----------
    start : ndarray of shape (n,)
        Probabilities of the first state.
    transitions : ndarray of shape (n, n)
        Probabilities of steps from row to column.
    stop : ndarray of shape (n,), or None
        Probabilities of stopping after each state.
    names : list of str
        The states.

    Examples
    --------
    >>> from genkern import MarkovChain
    >>> from genkern.plots import StateDiagramDisplay
    >>> StateDiagramDisplay.from_model(MarkovChain([0.5, 0.5], [[0.9, 0.1], [0.4, 0.6]], alphabet="ab")).names
    ['a', 'b']
    """

    _size = (6.4, 4.4)
    title = "States and transitions"

    def __init__(self, start: Floats, transitions: Floats, stop: Floats | None, names: list[str]) -> None:
        self.start, self.transitions, self.stop, self.names = start, transitions, stop, names

    @classmethod
    def from_model(cls, model: Any) -> Self:
        """Take the hidden states of a model, or the symbols of a Markov chain.

        Parameters
        ----------
        model : Model
            With ``start`` and ``transitions`` between states, such as an ``HMM``, a ``SwitchingLDS`` or a
            ``MarkovChain``; others are drawn as their ``to_hmm()``.
        """
        if getattr(model, "shape", None) != ():
            raise TypeError(f"{cls.__name__}: expected one model. Got {type(model).__name__}; of a stack, take one.")
        shown = model
        if np.ndim(getattr(model, "start", None)) != 1 or np.shape(model.transitions) != (len(model.start),) * 2:
            if not hasattr(model, "to_hmm"):
                raise TypeError(
                    f"{cls.__name__}: expected a model with hidden states, or a chain. Got {type(model).__name__}."
                )
            shown = model.to_hmm()
        names = list(
            getattr(shown, "alphabet", None).symbols if hasattr(shown, "alphabet") else range(len(shown.start))
        )
        return cls(shown.start, shown.transitions, getattr(shown, "stop", None), [str(name) for name in names])

    @property
    def forward(self) -> bool:
        """Whether all steps lead to later states, or stay."""
        n = len(self.start)
        return n > 1 and not self.transitions[np.tril_indices(n, -1)].any()

    @property
    def description(self) -> str:
        """What the picture shows."""
        n, stay = len(self.start), float(np.diag(self.transitions).mean())
        form = "as a heat map of transitions" if n > MOST else "in a row" if self.forward else "in a circle"
        stops = "" if self.stop is None else f", a mean probability of stopping of {self.stop.mean():.2f}"
        return (
            f"{n} states {form}, with a mean probability of staying of {stay:.2f}{stops}; "
            f"most sequences start in {self.names[int(self.start.argmax())]}."
        )

    # --- geometry, the same for both renderers, in pixels

    def _places(self, width: float) -> tuple[Floats, float, float]:
        """Return the middles (n, 2) of the states, their radius, and the height of the picture."""
        n = len(self.start)
        if self.forward:
            step = min(110.0, (width - 60) / n)
            radius = min(20.0, 0.3 * step)
            xs = width / 2 + (np.arange(n) - (n - 1) / 2) * step
            skips = int(max((j - i for i, j in np.argwhere(self.transitions >= DRAWN)), default=0))
            y = 58 + radius + (14 + 0.2 * step * skips if skips > 1 else 0.0)
            return np.column_stack([xs, np.full(n, y)]), radius, y + radius + 62
        size = min(width, 470.0)
        radius = 20.0 if n <= 8 else 16.0
        ring = (size / 2 - radius - 66) if n > 1 else 0.0
        angles = -np.pi / 2 + 2 * np.pi * np.arange(n) / n
        middle = np.array([width / 2, size / 2])
        return middle + ring * np.column_stack([np.cos(angles), np.sin(angles)]), radius, size

    def arrows(self, width: float) -> list[Arrow]:
        """Return all arrows of the drawing of a width."""
        places, radius, height = self._places(width)
        middle = np.array([width / 2, height / 2])
        found = []
        for i, here in enumerate(places):
            out = (
                np.array([0.0, -1.0])
                if self.forward or len(places) == 1
                else (here - middle) / np.hypot(*(here - middle))
            )
            for j, there in enumerate(places):
                p = float(self.transitions[i, j])
                if p >= DRAWN:
                    ends = (self.names[i], self.names[j])
                    found.append(
                        _loop(here, out, radius, p, ends) if i == j else self._step(here, there, radius, p, ends)
                    )
            away = -out if self.forward or len(places) == 1 else out
            for name, law, turn in (("start", self.start, -0.75), ("stop", self.stop, 0.75)):
                if law is not None and law[i] >= DRAWN:
                    found.append(_stub(here, _turned(away, turn), radius, float(law[i]), name, self.names[i]))
        return found

    def _step(self, here: Floats, there: Floats, radius: float, p: float, ends: tuple[str, str]) -> Arrow:
        """Return the arrow from a state to another, bent to its left, or above a row."""
        along = there - here
        far = float(np.hypot(*along))
        along = along / far
        across = np.array([along[1], -along[0]])
        n = len(self.start)
        bend = (
            (0.0 if far < 1.5 * (110 if n < 6 else far) and ends[1] == self._next(ends[0]) else 0.36 * far)
            if self.forward
            else 0.14 * far
        )
        lean = 0.3 if not self.forward else 0.0 if bend == 0 else 0.8
        first = here + radius * _unit(along + lean * across)
        last = there - (radius + 1) * _unit(along - lean * across)
        one, two = first + 0.33 * (last - first) + bend * across, first + 0.67 * (last - first) + bend * across
        share = 0.5 if self.forward else 0.36
        at = _bezier(first, one, two, last, share) + (10 if bend == 0 else 3) * across
        return Arrow((*first, *one, *two, *last), p, _label(p), (float(at[0]), float(at[1])), "step", ends)

    def _next(self, name: str) -> str | None:
        i = self.names.index(name) + 1
        return self.names[i] if i < len(self.names) else None

    # --- drawing

    def _draw(self, ax: Any) -> None:
        ax.set_title(self.title)
        if len(self.start) > MOST:
            image = ax.imshow(self.transitions, cmap="cividis", vmin=0.0, vmax=1.0, interpolation="nearest")
            ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03).set_label("probability of the step")
            ax.set_xlabel("to state")
            ax.set_ylabel("from state")
            return
        from matplotlib.patches import Circle, FancyArrowPatch
        from matplotlib.path import Path

        places, radius, height = self._places(480.0)
        for arrow in self.arrows(480.0):
            points = np.reshape(arrow.curve, (4, 2))
            route = Path(points, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
            colour = GREY if arrow.kind == "step" else COLOURS[2 if arrow.kind == "start" else 1]
            look = {
                "arrowstyle": f"-|>,head_length={3 + 2 * arrow.probability},head_width={1.6 + 1.6 * arrow.probability}"
            }
            ax.add_patch(
                FancyArrowPatch(path=route, color=colour, linewidth=0.5 + 2.5 * arrow.probability, fill=False, **look)
            )
            halo = {"facecolor": "white", "alpha": 0.75, "pad": 0.4, "linewidth": 0}
            ax.text(*arrow.at, arrow.label, ha="center", va="center", fontsize=7, bbox=halo if arrow.label else None)
        for place, name in zip(places, self.names):
            ax.add_patch(Circle(place, radius, facecolor="white", edgecolor=COLOURS[0], linewidth=1.4, zorder=3))
            ax.text(
                *place,
                shortened(name, 1.9 * radius, 9),
                ha="center",
                va="center",
                fontsize=9,
                zorder=4,
                parse_math=False,
            )
        ax.set_xlim(0, 480)
        ax.set_ylim(height, 0)
        ax.set_aspect("equal")
        ax.set_axis_off()

    def _body(self, width: float) -> tuple[list[str], float]:
        if len(self.start) > MOST:
            return self._heat(width)
        places, radius, height = self._places(width)
        parts, labels = [], []
        for arrow in sorted(self.arrows(width), key=lambda arrow: arrow.probability):
            parts.append(_arrow(arrow))
            if arrow.label:
                labels.append(text(arrow.at[0], arrow.at[1] + 3.5, arrow.label, "middle", "gk-text gk-small gk-halo"))
        look = {"class_": colour_class(0), "stroke": "currentColor", "style": "fill:var(--gk-background)"}
        for (x, y), name in zip(places.tolist(), self.names):
            ring = element("circle", cx=x, cy=y, r=radius, stroke_width=2.0, **look)
            inside = text(x, y + 4, shortened(name, 1.9 * radius), "middle")
            parts.append(element("g", ring, inside, class_="gk-state", data_state=name))
        return parts + labels, height

    def _heat(self, width: float) -> tuple[list[str], float]:
        """Return the transitions of many states as a heat map."""
        n, left = len(self.start), 52.0
        side = min(width - left - 70, 420.0)
        xs, ys = Scale(-0.5, n - 0.5, left, left + side), Scale(-0.5, n - 0.5, 6.0, 6 + side)
        ticks = [(i, shortened(self.names[i], 30.0)) for i in range(0, n, -(-n // 12))]
        parts = axes(xs, Scale(-0.5, n - 0.5, 6.0, 6 + side), "to state", "from state", ticks, ticks)
        parts.append(heat_image(np.asarray(self.transitions), 0.0, 1.0, left, float(min(ys.start, ys.end)), side, side))
        return parts + colour_bar(0.0, 1.0, left + side + 14, 6, side, "probability"), side + 48


def _arrow(arrow: Arrow) -> str:
    """Return an arrow with a head that ends where its curve does."""
    points = np.reshape(arrow.curve, (4, 2))
    wide = 0.7 + 4.0 * arrow.probability
    head = 5.0 + 1.6 * wide
    back = _unit(points[3] - points[2])
    side = np.array([-back[1], back[0]]) * head * 0.42
    shaft = [*points[:3], points[3] - 0.8 * head * back]
    tip = [points[3], points[3] - head * back + side, points[3] - head * back - side]
    route, edge = ([f"{number(x)} {number(y)}" for x, y in corners] for corners in (shaft, tip))
    line = element(
        "path", d=f"M{route[0]}C{' '.join(route[1:])}", fill="none", stroke="currentColor", stroke_width=wide
    )
    colour = {"step": "", "start": f" {colour_class(2)}", "stop": f" {colour_class(1)}"}[arrow.kind]
    data = {"data_kind": arrow.kind, "data_from": arrow.ends[0], "data_to": arrow.ends[1]}
    look = {"class_": f"gk-arrow{colour}", "opacity": "0.75", "data_p": f"{arrow.probability:.4g}"}
    return element("g", line, element("path", d=f"M{'L'.join(edge)}z", fill="currentColor"), **look, **data)


def _label(p: float) -> str:
    return f"{p:.2f}" if p >= LABELLED else ""


def _unit(vector: Floats) -> Floats:
    return vector / np.hypot(*vector)


def _turned(vector: Floats, angle: float) -> Floats:
    """Return a vector turned by an angle."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([c * vector[0] - s * vector[1], s * vector[0] + c * vector[1]])


def _bezier(a: Floats, b: Floats, c: Floats, d: Floats, t: float) -> Floats:
    """Return the point of a cubic curve at t."""
    return (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d


def _loop(here: Floats, out: Floats, radius: float, p: float, ends: tuple[str, str]) -> Arrow:
    """Return the arrow from a state to itself, on its outer side."""
    first, last = here + radius * _turned(out, -0.5), here + (radius + 1) * _turned(out, 0.5)
    one, two = here + 2.6 * radius * _turned(out, -0.6), here + 2.6 * radius * _turned(out, 0.6)
    at = here + (2.25 * radius + 9) * out
    return Arrow((*first, *one, *two, *last), p, _label(p), (float(at[0]), float(at[1])), "step", ends)


def _stub(here: Floats, out: Floats, radius: float, p: float, kind: str, name: str) -> Arrow:
    """Return the arrow by which sequences start in a state, or stop after it."""
    far, near = here + (radius + 26) * out, here + (radius + 1) * out
    first, last = (far, near) if kind == "start" else (near, far)
    at = here + (radius + 37) * out
    ends = (None, name) if kind == "start" else (name, None)
    middle = (first + last) / 2
    label = f"{kind} {p:.2f}" if p >= LABELLED else ""
    return Arrow((*first, *middle, *middle, *last), p, label, (float(at[0]), float(at[1])), kind, ends)
