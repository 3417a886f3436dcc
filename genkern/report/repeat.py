"""The last sections: what auto tried, settings, versions, and how to make the page again."""

from __future__ import annotations

import importlib.metadata
import platform
from datetime import UTC, datetime
from typing import Any

from genkern import __version__
from genkern.evaluation import Evaluation
from genkern.io.dataset import Dataset
from genkern.progress import spell_seconds
from genkern.report.parts import percent

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "joblib", "jinja2")


def tried(model: Any) -> list[dict[str, Any]]:
    """Return what an auto classifier tried: errors, times and what became of each."""
    return [
        {
            "name": entry["name"],
            "chosen": entry["name"] == model.best_name_,
            "error": "" if entry["error"] is None else percent(entry["error"]),
            "spread": "" if entry["spread"] is None else f"± {100 * entry['spread']:.1f}",
            "folds": str(len(entry["fold_errors"])),
            "fit": spell_seconds(entry["fit_seconds"]),
            "predict": spell_seconds(entry["predict_seconds"]),
            "status": entry["status"],
            "warnings": entry["warnings"],
        }
        for entry in getattr(model, "results_", [])
    ]


def settings(data: Dataset, evaluation: Evaluation | None, model: Any) -> list[tuple[str, str]]:
    """Return how the results were made; the date stands apart."""
    rows = []
    if evaluation is not None:
        rows += [
            ("Folds", str(int(evaluation.folds.max()) + 1)),
            ("Divisions into folds", str(len(evaluation.folds))),
            ("Recipes compared", ", ".join(row.name for row in evaluation.rows)),
        ]
    if model is not None:
        rows.append(("Model", type(model).__name__))
        if hasattr(model, "best_name_"):
            rows.append(("Chosen recipe", model.best_name_))
            rows += [(f"{name}", repr(value)) for name, value in model.get_params(deep=False).items()]
    return [*rows, ("Objects kept together", "by group" if data.groups is not None else "no groups")]


def versions() -> list[tuple[str, str]]:
    """Return the versions of what took part."""
    found = [("genkern", __version__), ("Python", platform.python_version())]
    return found + [(name, importlib.metadata.version(name)) for name in PACKAGES]


def now() -> str:
    """Return the date and time, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def how(path: str, data: Dataset, evaluation: Evaluation | None, model: Any, command: Any) -> tuple[str, str]:
    """Return the command line, if there was one, and Python code."""
    if isinstance(command, str) or command is None:
        return command or "", _code(path, data, evaluation, model)
    shell, code = command
    return shell, code


def _code(path: str, data: Dataset, evaluation: Evaluation | None, model: Any) -> str:
    """Return Python code that makes the page again, as far as it can be told from what was given."""
    files = data.meta.get("files")
    source = f"genkern.read({files[0] if len(files) == 1 else list(files)!r})" if files else "..."
    lines = ["import genkern", "", f"data = {source}" + ("" if files else "  # the Dataset of this page")]
    given = ["data"]
    if evaluation is not None:
        names = ", ".join(f"{row.name!r}: ..." for row in evaluation.rows)
        folds, repeats = int(evaluation.folds.max()) + 1, len(evaluation.folds)
        lines.append(f"recipes = {{{names}}}")
        lines.append(f"result = genkern.evaluate(data.X, data.y, recipes, folds={folds}, repeats={repeats})")
        given.append("result")
    if model is not None:
        lines.append("model = ...  # the classifier of this page")
        given.append("model=model")
    return "\n".join([*lines, f"genkern.write_report({path!r}, {', '.join(given)})"])
