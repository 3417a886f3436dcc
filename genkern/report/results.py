"""The section on results: errors with intervals and paired tests, and curves of predictions about left-out objects."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from genkern import plots
from genkern.evaluation import Evaluation, Row
from genkern.io.dataset import Dataset
from genkern.progress import spell_seconds
from genkern.report.left_out import LeftOut
from genkern.report.parts import Figure, draw, names_of, percent, short, shown_labels

LISTED = 20  # wrong predictions that are listed
NONE = (
    "There are no predictions about objects that the classifier had not seen: what it says about objects it has "
    "learned from would look too good. Cross-validate it by genkern evaluate, or give the evaluation to write_report."
)


def section(data: Dataset, evaluation: Evaluation | None, left: LeftOut | None) -> dict[str, Any]:
    """Return the table of recipes, tables of classes and wrong predictions, and pictures, or why there are none."""
    if left is None:
        why = "The objects have no labels, so there is nothing to compare predictions with." if data.y is None else NONE
        return {"why": why}
    return {
        "why": "",
        "origin": left.origin,
        "name": left.name,
        "rows": [] if evaluation is None else _rows(evaluation),
        "baseline": None if evaluation is None else percent(evaluation.baseline),
        "failures": [] if evaluation is None else [(r.name, r.failure) for r in evaluation.rows if r.failure],
        "classes": _by_class(left),
        "figures": _figures(left),
        "wrong": _wrong(data, left),
    }


def _rows(evaluation: Evaluation) -> list[dict[str, Any]]:
    done = [row for row in evaluation.rows if row.failure is None]
    reach = 1.05 * max(evaluation.baseline, *(row.interval[1] for row in done))
    return [
        {
            "name": row.name,
            "error": percent(row.error),
            "interval": f"{100 * row.interval[0]:.1f} to {100 * row.interval[1]:.1f}",
            "low": f"{200 * row.interval[0] / reach:.1f}",
            "high": f"{200 * row.interval[1] / reach:.1f}",
            "at": f"{200 * row.error / reach:.1f}",
            "chance": f"{200 * evaluation.baseline / reach:.1f}",
            "spread": f"± {100 * row.spread:.1f}",
            "versus": _versus(row),
            "fit": spell_seconds(row.fit_seconds),
            "predict": spell_seconds(row.predict_seconds),
        }
        for row in done
    ]


def _versus(row: Row) -> tuple[str, str]:
    """Return the difference from the best row and its p-value."""
    test = row.versus_best
    if test is None:
        return "best", ""
    return f"{100 * test.difference:+.1f}", "< 0.001" if test.p_value < 0.001 else f"{test.p_value:.3f}"


def _by_class(left: LeftOut) -> list[dict[str, Any]]:
    rows = []
    for label in left.classes:
        true, said = left.truth == label, left.predicted == label
        hits = int((true & said).sum())
        rows.append(
            {
                "label": short(label),
                "count": int(true.sum()),
                "found": percent(hits / true.sum()) if true.any() else "–",
                "right": percent(hits / said.sum()) if said.any() else "–",
            }
        )
    return rows


def _figures(left: LeftOut) -> list[Figure]:

    every = shown_labels(np.concatenate([left.classes, left.truth, left.predicted]))
    classes, truth, said = np.split(every, [len(left.classes), len(left.classes) + len(left.truth)])
    drawn = [
        draw(
            "Confusion matrix",
            partial(plots.ConfusionDisplay.from_predictions, truth, said),
            "Rows are true classes, columns predicted ones; what is off the diagonal is wrong.",
        )
    ]
    by = "probabilities" if left.probabilities is not None else "decision values"
    for title, display, caption in (
        ("ROC curves", plots.RocDisplay, f"Each class against the rest, objects ranked by {by}."),
        (
            "Precision and recall",
            plots.PrecisionRecallDisplay,
            "How many of those found are right, and how many are found.",
        ),
    ):
        if left.scores is None:
            why = f"{left.name} gives neither probabilities nor decision values, so objects cannot be ranked."
            drawn.append(Figure(title, "", why=why))
        else:
            drawn.append(draw(title, partial(display.from_predictions, truth, left.scores, classes), caption))
    if left.probabilities is None:
        drawn.append(Figure("Calibration", "", why=f"{left.name} gives no probabilities."))
    else:
        drawn.append(
            draw(
                "Calibration",
                partial(plots.CalibrationDisplay.from_predictions, truth, left.probabilities, classes),
                "Of objects predicted with a probability of 80 %, 80 % should be right: the curve on the diagonal.",
            )
        )
    return drawn


def _wrong(data: Dataset, left: LeftOut) -> dict[str, Any]:
    """Return the wrong predictions, the surest first, and how many there are."""
    places = np.flatnonzero(left.truth != left.predicted)
    first = np.unique(left.owner[places], return_index=True)[1]
    places, sure = places[first], None
    if left.probabilities is not None and len(places):
        columns = np.searchsorted(left.classes, left.predicted[places])
        sure = left.probabilities[places, columns]
        order = np.argsort(-sure, kind="stable")
        places, sure = places[order], sure[order]
    names = names_of(data)
    rows = [
        {
            "id": names[left.owner[place]],
            "label": short(left.truth[place]),
            "predicted": short(left.predicted[place]),
            "sure": "" if sure is None else percent(float(sure[i])),
        }
        for i, place in enumerate(places[:LISTED])
    ]
    return {"rows": rows, "count": len(places), "sure": sure is not None}
