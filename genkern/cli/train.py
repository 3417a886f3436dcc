"""genkern train: a classifier as one file."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from genkern.cli.learners import make_recipe, recipe_code, recipe_option, refuse_budget, warn_of_time
from genkern.cli.options import alphabet_of, common, files, jobs_for, labelled, learning, read_data, reading, working
from genkern.cli.output import answer
from genkern.cli.reports import check_report, code_of, command_line, report_option
from genkern.data.whole_files import check_place
from genkern.progress import spell_seconds


@click.command("train")
@files()
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="File of the model, such as m.gk.")
@recipe_option(several=False)
@click.option("--budget", help='Time for auto to choose, such as "30s", "5min", "1h"; the default is no limit.')
@report_option
@learning
@reading
@common
def train_command(
    files: tuple[str, ...],
    output: Path,
    recipe: str,
    budget: str | None,
    report: Path | None,
    seed: int,
    jobs: int,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Train a classifier on labelled objects and save it as one file that holds no code.

    With --recipe auto, Ctrl-C ends the search and keeps the best recipe so far.
    """
    check_place(output, "genkern")
    check_report(report)
    refuse_budget(budget, [recipe])
    data = labelled(read_data(files, options), files)
    from genkern import save
    from genkern.evaluation.fitting import fit_grouped

    if not quiet:
        warn_of_time([recipe], data, 1, budget)
    jobs = jobs_for(jobs, data)
    settings = {"random_state": seed, "n_jobs": jobs, "alphabet": alphabet_of(data, options), "budget": budget}
    model = make_recipe(recipe, kind=data.kind, verbose=int(not quiet), **settings)
    began = time.perf_counter()
    with working(f"training {recipe}"):
        model = fit_grouped(model, data.X, data.y, data.groups)
    seconds = time.perf_counter() - began
    summary = {
        "recipe": recipe,
        "kind": data.kind,
        "objects": len(data.X),
        "classes": dict(sorted(Counter(map(str, data.y)).items())),
        "lengths": [min(map(len, data.X)), max(map(len, data.X))],
        "seconds": round(seconds, 3),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **({"chosen": model.best_name_, "tried": model.results_} if recipe == "auto" else {}),
    }
    save(model, output, summary=summary)
    if report is not None:
        from genkern.report import write_report

        lines = [
            f"recipe = {recipe_code(recipe, kind=data.kind, **settings)}",
            "model = recipe.fit(data.X, data.y)"
            if data.groups is None
            else "model = genkern.evaluation.fitting.fit_grouped(recipe, data.X, data.y, data.groups)",
            f"genkern.save(model, {str(output)!r})",
            f"genkern.write_report({str(report)!r}, data, model=model)",
        ]
        write_report(
            report, data, model=model, command=(command_line(), code_of(files, options, lines)), verbose=not quiet
        )
    answer({"model": str(output), **summary}, _story(output, summary), as_json)


def _story(output: Path, summary: dict[str, Any]) -> str:
    """Return what was trained, in words."""
    classes = ", ".join(f"{label} {count}" for label, count in summary["classes"].items())
    lines = [f"{summary['objects']} objects ({summary['kind']}), classes {classes}"]
    for trial in summary.get("tried", ()):
        error = "" if trial.get("error") is None else f"error {100 * trial['error']:.1f} %"
        lines.append(f"  {trial['name']:<18} {error:<14} {trial['status']}")
    name = summary.get("chosen", summary["recipe"])
    return "\n".join([*lines, f"trained {name} in {spell_seconds(summary['seconds'])}; saved as {output}"])
