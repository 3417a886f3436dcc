"""The section on decisions: which features and positions drove them, over all objects and for some right and wrong."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from genkern import plots
from genkern.data.intake import Ints
from genkern.explanation.explain import explain
from genkern.explanation.set import Mean, explain_set
from genkern.io.dataset import Dataset
from genkern.report.left_out import LeftOut
from genkern.report.parts import WIDE, draw, names_of, percent, reason, short, spread_over_classes

EXPLAINED, EACH = 100, 3  # objects whose contributions are averaged; right ones, and wrong ones, shown one by one
LISTED, COLUMNS = 12, 5  # rows of a table, and classes that have a column in it


def section(data: Dataset, model: Any, left: LeftOut | None) -> dict[str, Any]:
    """Return pictures of mean contributions, and of single objects, or why there are none."""
    if model is None:
        return {"why": "No model was given."}
    few = spread_over_classes(data.y, len(data), EXPLAINED)
    try:
        labels = None if data.y is None else data.y[few]
        found = explain_set(model, [data.X[i] for i in few], labels, channels=data.channel_names)
    except Exception as error:
        return {"why": f"The decisions cannot be split into parts: {reason(error)}"}

    names, objects = names_of(data), list[dict[str, Any]]()
    for index, words, label in _chosen(data, left):
        try:
            one = explain(model, data.X[index], label, channels=data.channel_names)
        except Exception as error:
            objects.append({"id": names[index], "words": words, "head": "", "figures": [], "why": reason(error)})
            continue
        figures = [draw("Why", partial(plots.ContributionsDisplay.from_explanation, one, n=8), width=WIDE)]
        if one.positions is not None:
            figures.insert(0, draw("Where", partial(plots.HeatStripDisplay.from_explanation, one), width=WIDE))
        head = f"For class {short(one.label)}: decision value {one.decision:+.2f}."
        objects.append({"id": names[index], "words": words, "head": head, "figures": figures, "why": ""})
    return {
        "why": "",
        "count": len(few),
        "figure": draw(
            "Parts of the classifier",
            partial(plots.ContributionsDisplay.from_explanation, found),
            "Mean absolute contributions of blocks of features.",
        ),
        "classes": [short(label) for label in found.classes] if len(found.classes) <= COLUMNS else [],
        "tables": [
            (title, [_row(name, mean, found.classes) for name, mean in rows])
            for title, rows in (
                ("Features with the largest contributions", found.top(LISTED)),
                ("Channels", list(found.by_channel().items())[:LISTED]),
            )
            if rows
        ],
        "objects": objects,
        "placed": any(figure.title == "Where" for item in objects for figure in item["figures"]),
    }


def _row(name: str, mean: Mean, classes: list[Any]) -> dict[str, Any]:
    """Return the mean contributions of a feature or channel, in all and for objects of each class."""
    signed = [f"{mean.signed[label]:+.3f}" for label in classes] if len(classes) <= COLUMNS else []
    return {"name": short(name), "size": f"{mean.absolute:.3f}", "signed": signed}


def _chosen(data: Dataset, left: LeftOut | None) -> list[tuple[int, str, Any]]:
    """Return objects to explain: the surest right and the surest wrong ones, of different classes where there are."""
    if left is None:
        return [(int(i), "", None) for i in spread_over_classes(data.y, len(data), EACH)]
    right, wrong = left.truth == left.predicted, left.truth != left.predicted
    sure = np.zeros(len(right))
    if left.scores is not None:
        sure = left.scores[np.arange(len(right)), np.searchsorted(left.classes, left.predicted)]
    chosen = []
    for places, word in ((_surest(left, right, sure), "Right"), (_surest(left, wrong, sure), "Wrong")):
        for place in places:
            truth, said = short(left.truth[place]), short(left.predicted[place])
            words = f"{word}: taken for {said} when it was left out"
            words += f" (probability {percent(sure[place], 0)})" if left.probabilities is not None else ""
            words += "." if word == "Right" else f", but it is {truth}."
            chosen.append((int(left.owner[place]), words, left.predicted[place]))
    return chosen


def _surest(left: LeftOut, among: Any, sure: Any) -> Ints:
    """Return the places of a few objects with the highest scores, of as many predicted classes as possible."""
    places = np.flatnonzero(among)
    places = places[np.argsort(-sure[places], kind="stable")]
    places = places[np.sort(np.unique(left.owner[places], return_index=True)[1])]
    _, first = np.unique(left.predicted[places], return_index=True)
    rest = np.setdiff1d(np.arange(len(places)), first)
    return places[np.concatenate([np.sort(first), rest])[:EACH]]
