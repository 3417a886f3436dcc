"""What the objects look like: samples of each class, and lengths."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.data.kinds import KINDS, detect_kind
from genkern.data.packed import Packed
from genkern.plots.display import Display, check_labels, classes_of
from genkern.plots.strips import letters_at
from genkern.plots.style import COLOURS, styles
from genkern.plots.svg import (
    SIZE,
    Scale,
    axes,
    colour_class,
    curve,
    element,
    extent,
    line_legend,
    number,
    path,
    room_for,
    shape,
    shortened,
    text,
)
from genkern.validation import check_int, check_option

CLASSES = 12  # that are shown
CELL = 9.0  # width of a letter
LONGEST = 300  # points of a line or of a set of points
BANDS = 40  # of lengths
LONGER = 20  # times the median: where objects are, lengths have a logarithmic axis


class SamplesDisplay(Display):
    """The first objects of each class: sequences as coloured letters, series as lines, points as dots, texts as words.

    Parameters
    ----------
    objects : list
        The objects shown, those of a class together.
    rows : ndarray of int
        Their indices in the list that they are of.
    owners : ndarray of int
        The class of each, as an index.
    classes : list
        All classes; empty without labels. At most 12 are shown.
    ids : list of str, or None
        Names of the objects shown.
    kind : str
        "symbols", "codes", "series", "points" or "documents".

    Examples
    --------
    >>> from genkern.plots import SamplesDisplay
    >>> SamplesDisplay.from_objects(["ACGT", "GATTA", "CC"], y=["b", "a", "a"], per_class=1).objects
    ['GATTA', 'ACGT']
    """

    def __init__(
        self,
        objects: list[Any],
        rows: NDArray[np.int64],
        owners: NDArray[np.int64],
        classes: list[Any],
        ids: list[str] | None,
        kind: str,
    ) -> None:
        self.objects, self.rows, self.owners, self.classes = objects, rows, owners, classes
        self.ids, self.kind = ids, kind
        self.title = "Samples of each class" if classes else "Samples"

    @classmethod
    def from_objects(
        cls,
        X: Any,
        y: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        per_class: int = 3,
        kind: str | None = None,
    ) -> Self:
        """Take the first objects of each class.

        Parameters
        ----------
        X : list of n objects
            Sequences, series, point sets or texts.
        y : array-like of shape (n,), optional
            Classes.
        ids : array-like of shape (n,), optional
            Names of the objects.
        per_class : int, default=3
            How many of each class, or of all without classes.
        kind : {"series", "symbols", "codes", "documents", "points"}, optional
            What the objects are; the default is to find out.
        """
        who, n = cls.__name__, len(X)
        if n == 0:
            raise ValueError(f"{who}: expected at least one object. Got none.")
        labels, names = check_labels(y, n, "y", who), check_labels(ids, n, "ids", who)
        most = check_int(per_class, "per_class", who, 1)
        what = detect_kind(X, who) if kind is None else check_option(kind, KINDS, "kind", who)
        classes, index = classes_of(labels, n)
        rows = np.concatenate([np.flatnonzero(index == i)[:most] for i in range(max(1, len(classes)))][:CLASSES])
        listed = X.objects() if isinstance(X, Packed) else X
        objects = [listed.iloc[int(i)] if hasattr(listed, "iloc") else listed[int(i)] for i in rows]
        return cls(objects, rows, index[rows], classes, None if names is None else [str(names[i]) for i in rows], what)

    @property
    def description(self) -> str:
        """What the picture shows."""
        shown, some = min(len(self.classes), CLASSES), len(self.objects)
        of = f" of {shown} of the {len(self.classes)} classes" if self.classes else ""
        return f"{some} object{'s' * (some != 1)} ({self.kind}){of}."

    @property
    def _letters(self) -> bool:
        return self.kind in ("symbols", "codes")

    def name_of(self, k: int) -> str:
        """Return the name of the k-th object shown, or its index."""
        return str(self.rows[k]) if self.ids is None else self.ids[k]

    def alphabet(self) -> dict[Any, int]:
        """Return the number, for colours, of each symbol that is shown."""
        return {symbol: i for i, symbol in enumerate(sorted({s for obj in self.objects for s in obj}, key=str))}

    def _groups(self) -> list[tuple[str, list[int]]]:
        """Return the name of each class shown, and which objects are of it."""
        names = [str(label) for label in self.classes] or [""]
        return [(names[i], np.flatnonzero(self.owners == i).tolist()) for i in np.unique(self.owners).tolist()]

    def _figure_size(self) -> tuple[float, float]:
        if self._letters or self.kind == "documents":
            return 8.0, 0.8 + 0.26 * len(self.objects) + 0.3 * len(self._groups())
        return 7.0, 0.6 + 1.2 * len(self._groups())

    # --- matplotlib

    def _draw(self, ax: Any) -> None:
        ax.set_axis_off()
        ax.set_title(self.title)
        if self._letters or self.kind == "documents":
            self._draw_lines(ax)
            return
        groups = self._groups()
        across = max(len(members) for _, members in groups)
        for row, (name, members) in enumerate(groups):
            for column, k in enumerate(members):
                height = 1.0 / len(groups)
                box = (column / across + 0.05, 1 - (row + 0.92) * height, 0.85 / across, 0.72 * height)
                inset = ax.inset_axes(box)
                values = _values(self.objects[k])
                if self.kind == "points":
                    dots = _plane(values)
                    inset.scatter(*dots.T, s=6, color=COLOURS[int(self.owners[k]) % len(COLOURS)])
                else:
                    for channel, style in zip(values.T, styles()):
                        inset.plot(channel, linewidth=0.9, color=style["color"])
                inset.tick_params(labelsize=6)
                inset.spines[["top", "right"]].set_visible(False)
                said = f"{name}: {self.name_of(k)}" if name else self.name_of(k)
                inset.set_title(shortened(said, 420 / across), fontsize=7, loc="left", parse_math=False)

    def _draw_lines(self, ax: Any) -> None:
        """Draw sequences or texts, one in a line."""
        code, row, most = self.alphabet() if self._letters else {}, 0.0, 60
        style = {"va": "center", "fontsize": 8, "parse_math": False}
        for name, members in self._groups():
            if name:
                ax.text(0, row, shortened(name, 400), weight="bold", **style)
                row += 1
            for k in members:
                ax.text(0, row, shortened(self.name_of(k), 100), **style)
                obj = self.objects[k]
                if self._letters:
                    for t, symbol in enumerate(obj[:most]):
                        look = {"facecolor": COLOURS[code[symbol] % len(COLOURS)], "alpha": 0.35, "linewidth": 0}
                        ax.fill_between([14 + t, 15 + t], row - 0.42, row + 0.42, **look)
                        ax.text(14.5 + t, row, str(symbol)[:1], ha="center", family="monospace", **style)
                    if len(obj) > most:
                        ax.text(15 + most, row, f"… {len(obj)}", **style)
                else:
                    ax.text(14, row, shortened(obj, 520), **style)
                row += 1
        ax.set_xlim(0, 14 + most + 7)
        ax.set_ylim(row - 0.3, -0.6)

    # --- svg

    def _body(self, width: float) -> tuple[list[str], float]:
        parts, y = [], 0.0
        for name, members in self._groups():
            if name:
                i = int(self.owners[members[0]])
                parts.append(element("g", shape(i, 8, y + 11), class_=colour_class(i), fill="currentColor"))
                parts.append(text(18, y + 15, shortened(name, width - 24), font_weight="bold"))
                y += 22
            more, y = self._lines(members, width, y) if self._flat else self._panels(members, width, y)
            parts += more
            y += 8
        return parts, y

    @property
    def _flat(self) -> bool:
        return self._letters or self.kind == "documents"

    def _lines(self, members: list[int], width: float, y: float) -> tuple[list[str], float]:
        """Return sequences or texts of a class, one in a line, and where they end."""
        parts, code = [], self.alphabet() if self._letters else {}
        left = min(0.24 * width, 130.0)
        for k in members:
            obj = self.objects[k]
            inside = [text(left - 6, y + 13, shortened(self.name_of(k), left - 10, 10.5), "end", "gk-text gk-small")]
            if self._letters:
                length = f" {len(obj)} symbols"
                room = int((width - left - extent(length, 10.5) - 14) // CELL)
                shown = list(obj[:room])
                for symbol in sorted(set(shown), key=str):
                    cells = [t for t, other in enumerate(shown) if other == symbol]
                    d = "".join(f"M{number(left + t * CELL)} {number(y)}h9v18h-9z" for t in cells)
                    inside.append(
                        element(
                            "path", d=d, class_=colour_class(code[symbol]), fill="currentColor", fill_opacity="0.35"
                        )
                    )
                inside.append(letters_at([str(symbol) for symbol in shown], left + CELL / 2, y + 13, CELL))
                end = left + len(shown) * CELL + 4
                inside.append(text(end, y + 13, ("…" if len(obj) > room else "") + length, None, "gk-text gk-small"))
            else:
                inside.append(text(left, y + 13, _begin(obj, width - left - 6)))
            parts.append(self._sample(k, inside))
            y += 22
        return parts, y

    def _sample(self, k: int, inside: list[str]) -> str:
        data = {"data_i": int(self.rows[k]), "data_id": None if self.ids is None else self.ids[k]}
        data["data_label"] = self.classes[int(self.owners[k])] if self.classes else None
        return element("g", *inside, class_="gk-sample", **data)

    def _panels(self, members: list[int], width: float, y: float) -> tuple[list[str], float]:
        """Return series or point sets of a class side by side, and where they end."""
        parts, each, height = [], width / max(len(members), min(3, len(self.objects))), 78.0
        for column, k in enumerate(members):
            values, x = _values(self.objects[k]), column * each
            dots = _plane(values) if self.kind == "points" else values
            ys = Scale.covering(dots[:, 1:2] if self.kind == "points" else dots, y + 16 + height, y + 18, 0.06)
            left = x + room_for(ys, "")
            xs = Scale.covering(
                dots[:, 0] if self.kind == "points" else [0.0, max(len(dots) - 1.0, 1.0)], left, x + each - 10, 0.02
            )
            inside = [text(left, y + 11, shortened(self.name_of(k), each - 40, 10.5), None, "gk-text gk-small")]
            inside += axes(xs, ys, xticks=xs.ticks(max(2, int(each / 60))), yticks=ys.ticks(4))
            if self.kind == "points":
                d = "".join(
                    f"M{number(a)} {number(b)}h0" for a, b in zip(xs(dots[:, 0]).tolist(), ys(dots[:, 1]).tolist())
                )
                look = {"class_": f"gk-line {colour_class(int(self.owners[k]))}", "stroke_width": 3.5}
                inside.append(element("path", d=d, stroke_linecap="round", **look))
            else:
                step = -(-len(values) // LONGEST)
                at = np.arange(0, len(values), step)
                inside += [curve(path(xs(at), ys(channel[at])), c, 1.2) for c, channel in enumerate(values.T)]
            parts.append(self._sample(k, inside))
        return parts, y + height + 40


def _begin(obj: Any, width: float) -> str:
    """Return the first words of a text, as many as fit."""
    whole = " ".join(clean_words(obj))
    room = int(width / (0.56 * SIZE))
    return whole if len(whole) <= room else whole[: max(room - 1, 1)].rsplit(" ", 1)[0] + " …"


def clean_words(obj: Any) -> list[str]:
    """Return the words of a text or a list of tokens."""
    return obj.split() if isinstance(obj, str) else [str(token) for token in obj]


def _values(obj: Any) -> Any:
    """Return a series or a set of points as a table of numbers."""
    values = np.asarray(obj, np.float64)
    return values.reshape(len(values), -1)


def _plane(values: Any) -> Any:
    """Return at most LONGEST points by their first two coordinates; a single one is drawn against zero."""
    step = -(-len(values) // LONGEST)
    two = values[::step, :2]
    two = np.column_stack([two, np.zeros(len(two))]) if two.shape[1] == 1 else two
    return two[~np.isnan(two).any(axis=1)]


class LengthsDisplay(Display):
    """How long the objects are: numbers of objects by length, a line per class.

    Parameters
    ----------
    lengths : ndarray of shape (n,) of int
        Lengths of the objects.
    edges : ndarray of shape (b + 1,)
        Ends of the bins; each includes its lower end, the last one its upper end too.
    counts : ndarray of shape (c, b) of int
        Objects of each class in each bin.
    classes : list of length c
        Classes; empty without labels, with one row of counts.
    unit : str
        What is counted: "symbols", "words", "positions".

    Examples
    --------
    >>> from genkern.plots import LengthsDisplay
    >>> LengthsDisplay.from_objects(["ACGT", "GATTA", "CC"]).lengths
    array([4, 5, 2])
    """

    title = "Lengths of the objects"

    def __init__(
        self, lengths: NDArray[np.int64], edges: Any, counts: NDArray[np.int64], classes: list[Any], unit: str
    ) -> None:
        self.lengths, self.edges, self.counts, self.classes, self.unit = lengths, edges, counts, classes, unit

    @classmethod
    def from_objects(cls, X: Any, y: ArrayLike | None = None, kind: str | None = None) -> Self:
        """Count.

        Parameters
        ----------
        X : list of n objects
            Sequences, series, point sets or texts, of which words are counted.
        y : array-like of shape (n,), optional
            Classes.
        kind : {"series", "symbols", "codes", "documents", "points"}, optional
            What the objects are; the default is to find out.
        """
        who, n = cls.__name__, len(X)
        if n == 0:
            raise ValueError(f"{who}: expected at least one object. Got none.")
        what = detect_kind(X, who) if kind is None else check_option(kind, KINDS, "kind", who)
        classes, index = classes_of(check_labels(y, n, "y", who), n)
        listed = X.objects() if isinstance(X, Packed) else X
        lengths = np.array([len(clean_words(obj)) if what == "documents" else len(obj) for obj in listed], np.int64)
        step = max(1, -(-int(lengths.max() - lengths.min() + 1) // BANDS))
        edges = np.arange(lengths.min(), lengths.max() + step + 1, step) - 0.5
        if lengths.min() > 0 and lengths.max() > LONGER * np.median(lengths):
            edges = np.unique(np.rint(np.geomspace(lengths.min(), lengths.max() + 1, BANDS + 1))) - 0.5
        counts = np.stack([np.histogram(lengths[index == i], edges)[0] for i in range(max(1, len(classes)))])
        unit = {"documents": "words", "series": "positions", "points": "points"}.get(what, "symbols")
        return cls(lengths, edges, counts.astype(np.int64), classes, unit)

    @property
    def description(self) -> str:
        """What the picture shows."""
        low, middle, high = self.lengths.min(), np.median(self.lengths), self.lengths.max()
        return f"{len(self.lengths)} objects of {low} to {high} {self.unit}, half of them at most {middle:g}."

    @property
    def logarithmic(self) -> bool:
        """Whether bins grow with the lengths, as where a few objects are much longer than the others."""
        return bool(np.ptp(np.diff(self.edges)))

    def _draw(self, ax: Any) -> None:
        ax.set_xscale("log" if self.logarithmic else "linear")
        for i, row in enumerate(self.counts):
            look = {"color": COLOURS[i % len(COLOURS)], "linestyle": ("-", "--", ":", "-.")[i // len(COLOURS) % 4]}
            ax.stairs(row, self.edges, label=str(self.classes[i]) if self.classes else None, linewidth=1.5, **look)
        if self.classes:
            ax.legend(title="class", frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        ax.set_xlabel(self.unit)
        ax.set_ylabel("objects")
        ax.set_title(self.title)
        ax.spines[["top", "right"]].set_visible(False)

    def _body(self, width: float) -> tuple[list[str], float]:
        parts, used = line_legend([str(label) for label in self.classes], 4, 0, width - 8)
        ys = Scale(0.0, 1.05 * float(self.counts.max()), used + 190, used + 8)
        places = np.log10(self.edges) if self.logarithmic else self.edges
        xs = Scale.covering(places, room_for(ys, "objects"), width - 8, 0.02)
        tens = [(k, f"{10**k:,}") for k in range(12) if xs.low <= k <= xs.high]
        parts += axes(xs, ys, self.unit, "objects", tens if self.logarithmic else None)
        edges = np.repeat(xs(places), 2)
        for i, row in enumerate(self.counts):
            steps = ys(np.concatenate([[0], np.repeat(row, 2), [0]]))
            name = str(self.classes[i]) if self.classes else None
            parts.append(
                element(
                    "path", d=path(edges, steps) + "Z", class_=colour_class(i), fill="currentColor", fill_opacity="0.12"
                )
            )
            parts.append(curve(path(edges, steps), i, 1.6, data_label=name))
        return parts, used + 190 + 40
