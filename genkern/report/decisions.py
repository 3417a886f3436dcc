"""The section on decisions: which features and positions drove them, over all objects and for some right and wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern import plots
from genkern.data.intake import Ints
from genkern.explanation.explain import explain
from genkern.io.dataset import Dataset
from genkern.report.left_out import LeftOut
from genkern.report.parts import draw, names_of, percent, reason, short, spread_over_classes

EXPLAINED, EACH = 100, 3  # objects whose contributions are averaged; right ones, and wrong ones, shown one by one


def section(data: Dataset, model: Any, left: LeftOut | None) -> dict[str, Any]:
    """Return pictures of mean contributions, and of single objects, or why there are none."""
    if model is None:
        return {"why": "No model was given."}
    few = spread_over_classes(data.y, len(data), EXPLAINED)
    try:
        from genkern.explanation.set import explain_set
        found = explain_set(model, [data.X[i] for i in few], None if data.y is None else data.y[few])
    except Exception as error:
        return {"why": f"The decisions cannot be split into parts: {reason(error)}"}

    names, objects = names_of(data), []
    for index, words, label in _chosen(data, left):
        try:
            one = explain(model, data.X[index], label)
        except Exception as error:
            objects.append({"id": names[index], "words": words, "head": "", "figures": [], "why": reason(error)})
            continue
        strip = draw("Where", lambda e=one: plots.HeatStripDisplay.from_explanation(e), wide=True)  # type: ignore[misc]
        bars = draw("Why", lambda e=one: plots.ContributionsDisplay.from_explanation(e, n=8))  # type: ignore[misc]
        head = f"For class {short(one.label)}: decision value {one.decision:+.2f}."
        objects.append({"id": names[index], "words": words, "head": head, "figures": [strip, bars], "why": ""})
    return {
        "why": "",
        "count": len(few),
        "top": [(short(name), f"{value:+.3f}") for name, value in found.top(12)],
        "figure": draw("Mean contributions", lambda: plots.ContributionsDisplay.from_explanation(found)),
        "objects": objects,
    }


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
            chosen.append((int(left.index[place]), words, left.predicted[place]))
    return chosen


def _surest(left: LeftOut, among: Any, sure: Any) -> Ints:
    """Return the places of a few objects with the highest scores, of as many predicted classes as possible."""
    places = np.flatnonzero(among)
    places = places[np.argsort(-sure[places], kind="stable")]
    places = places[np.sort(np.unique(left.index[places], return_index=True)[1])]
    _, first = np.unique(left.predicted[places], return_index=True)
    rest = np.setdiff1d(np.arange(len(places)), first)
    return places[np.concatenate([np.sort(first), rest])[:EACH]]
