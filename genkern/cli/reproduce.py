"""genkern reproduce: the experiments of the papers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genkern.cli.options import common
from genkern.cli.output import answer, table
from genkern.papers import EXPERIMENTS


@click.command("reproduce")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "everything", is_flag=True, help="Run all experiments.")
@click.option("--quick", is_flag=True, help="Fewer objects and settings, in seconds.")
@click.option("--data", type=click.Path(path_type=Path), envvar="GENKERN_DATA", help="Folder of data sets.")
@click.option(
    "--output",
    "--out",
    "-o",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("genkern-papers"),
    show_default=True,
    help="Folder for pages and for results so far, from which an interrupted run goes on.",
)
@click.option("--jobs", "-j", type=int, default=-1, show_default=True, help="Processes; -1: one per core.")
@common
def reproduce_command(
    names: tuple[str, ...],
    everything: bool,
    quick: bool,
    data: Path | None,
    output: Path,
    jobs: int,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Run experiments of the papers and print their figures beside ours; without a NAME, list them."""
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise click.UsageError(f"no experiment is called {unknown[0]!r}; there are {', '.join(EXPERIMENTS)}.")
    chosen = list(EXPERIMENTS) if everything else list(dict.fromkeys(names))
    if not chosen:
        answer(EXPERIMENTS, table(EXPERIMENTS.items(), ["experiment", "what it is"]), as_json)
        return
    from genkern.papers import run

    output.mkdir(parents=True, exist_ok=True)
    reports = []
    for name in chosen:
        report = run(name, quick=quick, data=data, out=output, n_jobs=jobs, verbose=not quiet)
        report.write(output)
        reports.append(report)
    answer([report.as_dict() for report in reports], "\n\n".join(report.markdown() for report in reports), as_json)
