"""The top of the page: its title, the answer in a sentence, and the main figures."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import numpy as np

from genkern.evaluation import Evaluation
from genkern.evaluation.comparison import error_interval
from genkern.io.dataset import Dataset
from genkern.plots import CalibrationDisplay
from genkern.report.left_out import LeftOut
from genkern.report.parts import percent, short

CLOSE = 0.05  # p-value above which a row is not told apart from the best one


def section(data: Dataset, evaluation: Evaluation | None, left: LeftOut | None, model: Any) -> dict[str, Any]:
    """Return the title, the answer, what else is to be said of it, and the figures of the tiles."""
    figures = [(f"{len(data):,}", "objects", data.kind or "")]
    figures.append(("no", "labels", "") if data.y is None else (str(len(data.classes)), "classes", ""))
    if left is None:
        return {"title": _title(data), "strong": "", "answer": _plain(data, model), "more": [], "figures": figures}
    if evaluation is not None:
        count, error, (low, high) = len(data), evaluation.best.error, evaluation.best.interval
        base = evaluation.baseline
    else:
        errors, groups = left.truth != left.predicted, None if data.groups is None else data.groups[left.owner]
        count, error, (low, high) = len(errors), float(errors.mean()), error_interval(errors, groups=groups)
        base = 1.0 - float(np.unique(left.truth, return_counts=True)[1].max()) / count
    span = f"{100 * low:.1f} to {100 * high:.1f}"
    figures.insert(0, (percent(error), "error", f"95 % interval {span}"))
    figures.insert(1, (percent(base), "error by chance", "always the most frequent class"))
    if left.probabilities is not None:
        shown = CalibrationDisplay.from_predictions(left.truth, left.probabilities, left.classes)
        figures.append((percent(shown.error), "calibration error", "mean gap between probability and truth"))
    sentence = (
        f"by {left.name} on {count:,} objects that it had not seen, in {left.origin}. Always answering the most "
        f"frequent class errs in {percent(base)}."
    )
    return {
        "title": _title(data),
        "strong": f"Error {percent(error)} ({span})",
        "answer": sentence,
        "more": _rivals(evaluation),
        "figures": figures,
    }


def _rivals(evaluation: Evaluation | None) -> list[str]:
    """Return sentences on the rows behind the best one."""
    if evaluation is None:
        return []
    behind = [row for row in evaluation.rows[1:] if row.failure is None and row.versus_best is not None]
    close = [row.name for row in behind if row.versus_best is not None and row.versus_best.p_value > CLOSE]
    worse = [row.name for row in behind if row.name not in close]
    said = []
    if worse:
        said.append(f"It errs less often than {_list(worse)} (p ≤ {CLOSE:g}).")
    if close:
        said.append(f"It cannot be told apart from {_list(close)} on these objects (p > {CLOSE:g}).")
    failed = [row.name for row in evaluation.rows if row.failure is not None]
    return [*said, *([f"{_list(failed)} failed; see the results."] if failed else [])]


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _title(data: Dataset) -> str:
    files = data.meta.get("files")
    if data.name or not files:
        return data.name or "Report"
    return short(PurePath(str(files[0])).name + (f" and {len(files) - 1} more" if len(files) > 1 else ""))


def _plain(data: Dataset, model: Any) -> str:
    objects = f"{len(data):,} {data.kind or 'objects'}"
    if data.y is None:
        return f"{objects} without labels: their lengths, samples and similarities."
    if model is None:
        return f"{objects} in {len(data.classes)} classes; no classifier was evaluated or given."
    name = getattr(model, "best_name_", type(model).__name__)
    return f"{name}, fitted to {objects} in {len(data.classes)} classes; its error on new objects was not estimated."
