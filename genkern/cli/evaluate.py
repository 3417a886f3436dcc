"""genkern evaluate: recipes side by side on the same folds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genkern.cli.learners import (
    budget_of_each,
    make_recipe,
    recipe_code,
    recipe_option,
    refuse_budget,
    warn_of_time,
)
from genkern.cli.options import alphabet_of, common, files, jobs_for, labelled, learning, names, read_data, reading
from genkern.cli.output import answer, csv_rows
from genkern.cli.reports import check_report, code_of, command_line, report_option
from genkern.data.whole_files import check_place


@click.command("evaluate")
@files()
@recipe_option(several=True)
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True, help="Folds of cross-validation.")
@click.option("--repeats", type=click.IntRange(min=1), default=1, show_default=True, help="Divisions into folds.")
@click.option("--budget", help='Time for all of auto, such as "5min"; every fold has its share.')
@click.option("--output", "-o", type=click.Path(path_type=Path), help="CSV file of the predictions, left out in turn.")
@report_option
@learning
@reading
@common
def evaluate_command(
    files: tuple[str, ...],
    recipe: tuple[str, ...],
    folds: int,
    repeats: int,
    budget: str | None,
    output: Path | None,
    report: Path | None,
    seed: int,
    jobs: int,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Cross-validate recipes side by side: errors, confidence intervals, paired tests against the best, times.

    Whatever a recipe chooses is chosen anew in every training part, so that the errors are those of nested
    cross-validation. With --group, groups are never parted. For --report the best recipe is fitted once more, to all
    objects.
    """
    if output is not None:
        check_place(output, "genkern")
    check_report(report)
    refuse_budget(budget, recipe)
    data = labelled(read_data(files, options), files)
    from genkern.evaluation import evaluate

    fits = folds * repeats + (report is not None)
    if not quiet:
        warn_of_time(recipe, data, fits, budget)
    share = budget_of_each(budget, fits)
    jobs = jobs_for(jobs, data)
    settings = {"random_state": seed, "n_jobs": jobs, "alphabet": alphabet_of(data, options), "budget": share}
    recipes = {name: make_recipe(name, kind=data.kind, **settings) for name in dict.fromkeys(recipe)}
    result = evaluate(
        data.X,
        data.y,
        recipes,
        groups=data.groups,
        folds=folds,
        repeats=repeats,
        random_state=seed,
        verbose=not quiet,
    )
    if output is not None:
        done = [row.name for row in result.rows if row.failure is None]
        with csv_rows(output, ["id", "label", "repeat", "fold", *done]) as write:
            for repeat, where in enumerate(result.folds):
                answers = [result[name].predictions[repeat] for name in done]
                write(zip(names(data), data.y, [repeat] * len(where), where, *answers))
    if report is not None:
        from genkern.report import write_report

        codes = ", ".join(f"{name!r}: {recipe_code(name, kind=data.kind, **settings)}" for name in recipes)
        lines = [
            f"choices = {{{codes}}}",
            f"folds = dict(groups=data.groups, folds={folds}, repeats={repeats}, random_state={seed})",
            "result = genkern.evaluate(data.X, data.y, choices, **folds)",
            f"genkern.write_report({str(report)!r}, data, result, choices[result.best.name])",
        ]
        command = command_line(), code_of(files, options, lines)
        write_report(report, data, result, recipes[result.best.name], command, verbose=not quiet)
    answer(result.as_dict(), repr(result), as_json)
