"""The section on the data: counts, lengths, classes, what is missing, notes of reading, samples of each class."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from genkern import plots
from genkern.data.alphabets import NAMED
from genkern.io.dataset import Dataset, spelled
from genkern.report.parts import WIDE, Figure, draw, names_of, percent, short, shown_labels, spread_over_classes
from genkern.validation import Floats

UNITS = {"symbols": "symbols", "codes": "steps", "series": "time steps", "points": "points", "documents": "words"}
HIDDEN = ("rules", "split", "name", "description", "kind", "objects", "lengths", "files", "reading")
DRAWN, MOST = 15, 20000  # samples, three of a class at most; objects whose mean curves are computed


def section(data: Dataset) -> dict[str, Any]:
    """Return facts, a table of classes, notes of reading and pictures."""
    lengths = np.array([_length(x, data.kind) for x in data.X], dtype=np.float64)
    missing, values = _missing(data)
    return {
        "description": data.description,
        "facts": _facts(data, lengths, missing, values),
        "unit": UNITS.get(str(data.kind), "items"),
        "classes": _classes(data, lengths, missing, values),
        "with_missing": bool(missing.sum()),
        "rules": [(rule, entry["count"], entry["first"]) for rule, entry in data.meta.get("rules", {}).items()],
        "figures": _figures(data, lengths),
    }


def _facts(data: Dataset, lengths: Floats, missing: Floats, values: Floats) -> list[tuple[str, str]]:
    unit = UNITS.get(str(data.kind), "items")
    facts = [("Objects", f"{len(data):,}"), ("Kind", data.kind or "not said")]
    if data.y is None:
        facts.append(("Classes", "no labels"))
    else:
        facts.append(("Classes", str(len(data.classes))))
    if len(lengths):
        span = f"{lengths.min():.0f}"
        if lengths.min() < lengths.max():
            span += f" to {lengths.max():.0f}, median {np.median(lengths):g}"
        facts.append(("Length", f"{span} {unit}"))
    widths = sorted({x.shape[1] for x in data.X if isinstance(x, np.ndarray) and x.ndim == 2})
    if widths:
        facts.append(("Coordinates" if data.kind == "points" else "Channels", ", ".join(map(str, widths))))
    total = int(missing.sum())
    share = f" of {int(values.sum()):,} values ({percent(total / values.sum(), 2)})" if total else ""
    facts.append(("Missing", f"{total:,}{share}" if total else "nothing"))
    if data.groups is not None:
        facts.append(("Groups", f"{len(np.unique(data.groups)):,}, kept whole in folds"))
    if data.meta.get("files"):
        files = [str(name) for name in data.meta["files"]]
        facts.append(("Files", ", ".join(files[:5]) + (f" and {len(files) - 5} more" if len(files) > 5 else "")))
    return facts + [(str(key).capitalize(), spelled(value)) for key, value in data.meta.items() if key not in HIDDEN]


def _length(x: Any, kind: str | None) -> int:
    return len(x.split()) if kind == "documents" and isinstance(x, str) else len(x)


def _missing(data: Dataset) -> tuple[Floats, Floats]:
    """Return for each object how many values are missing, and how many it has in all."""
    alphabet = NAMED.get(str(data.meta.get("alphabet")))
    unknown: set[Any] = set()
    if alphabet is not None:
        unknown = {symbol for symbol, members in alphabet.ambiguities if len(members) == alphabet.size}
        unknown |= {symbol for symbol, code in alphabet.aliases if code == alphabet.missing_code}
    counts = np.zeros((2, len(data)))
    for i, x in enumerate(data.X):
        if isinstance(x, np.ndarray) and x.dtype.kind == "f":
            counts[:, i] = np.isnan(x).sum(), x.size
        else:
            counts[:, i] = sum(item is None or item != item or item in unknown for item in x), len(x)
    return counts[0], counts[1]


def _classes(data: Dataset, lengths: Floats, missing: Floats, values: Floats) -> list[dict[str, Any]]:
    if data.y is None:
        return []
    rows = []
    for label in data.classes:
        mine = data.y == label
        lost = missing[mine].sum() / max(values[mine].sum(), 1.0)
        low, middle, high = np.quantile(lengths[mine], [0.0, 0.5, 1.0])
        rows.append(
            {
                "label": short(label),
                "count": int(mine.sum()),
                "share": percent(float(mine.mean())),
                "lengths": (f"{low:g}", f"{middle:g}", f"{high:g}"),
                "missing": percent(float(lost), 2),
            }
        )
    return rows


def _figures(data: Dataset, lengths: Floats) -> list[Figure]:

    labels = None if data.y is None else shown_labels(data.y)
    each = 3 if labels is None else min(3, max(1, DRAWN // len(np.unique(labels))))
    drawn = [
        draw(
            "Samples" if labels is None else "Samples of each class",
            partial(
                plots.SamplesDisplay.from_objects, data.X, labels, ids=names_of(data), per_class=each, kind=data.kind
            ),
            "The first objects" + (" of each class." if labels is not None else "."),
            WIDE,
        )
    ]
    if len(lengths) and lengths.min() < lengths.max():
        drawn.append(
            draw(
                "Lengths",
                partial(plots.LengthsDisplay.from_objects, data.X, labels, kind=data.kind),
                "How long the objects are.",
            )
        )
    if data.kind == "series":
        few = spread_over_classes(labels, len(data), MOST)
        some = [data.X[i] for i in few]
        drawn.append(
            draw(
                "Mean curves",
                partial(
                    plots.MeanCurveDisplay.from_objects,
                    some,
                    None if labels is None else labels[few],
                    data.channel_names,
                ),
                "Mean over the objects of a class, at the same share of their length; the band is one standard "
                "deviation.",
                WIDE,
            )
        )
    return drawn
