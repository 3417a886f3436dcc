"""genkern reproduce: the experiments of the papers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genkern.cli.options import common
from genkern.cli.output import answer, table, text_file
from genkern.papers import EXPERIMENTS


@click.command("reproduce")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "listed", is_flag=True, help="List the experiments and run none.")
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
    listed: bool,
    quick: bool,
    data: Path | None,
    output: Path,
    jobs: int,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Run experiments of the papers, all without a NAME, and print their figures beside ours."""
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise click.UsageError(f"no experiment is called {unknown[0]!r}; there are {', '.join(EXPERIMENTS)}.")
    chosen = {name: EXPERIMENTS[name] for name in names or EXPERIMENTS}
    if listed:
        answer(chosen, table(chosen.items(), ["experiment", "what it is"]), as_json)
        return
    from genkern.papers import run
    from genkern.papers.shared.report import contents
    from genkern.papers.shared.study import MissingDataError

    output.mkdir(parents=True, exist_ok=True)
    reports, missing = [], []
    for name in chosen:
        try:
            report = run(name, quick=quick, data=data, out=output, n_jobs=jobs, verbose=not quiet)
        except MissingDataError as error:
            if names:
                raise
            missing.append(str(error))
            continue
        report.write(output)
        reports.append(report)
    if len(chosen) > 1:
        with text_file(output / "index.html") as stream:
            stream.write(contents(reports, missing))
    answer([report.as_dict() for report in reports], "\n\n".join(report.markdown() for report in reports), as_json)
    if missing:
        raise MissingDataError("\n".join(missing))
