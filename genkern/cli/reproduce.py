"""genkern reproduce: the experiments of the papers."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import click

from genkern.cli.options import common
from genkern.cli.output import answer, table, text_file
from genkern.papers import EXPERIMENTS


@click.command("reproduce")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "everything", is_flag=True, help="Run all experiments.")
@click.option("--quick", is_flag=True, help="Fewer objects and settings, in seconds.")
@click.option("--data", type=click.Path(path_type=Path), envvar="GENKERN_DATA", help="Folder of data sets.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Folder for the pages.")
@common
def reproduce_command(
    names: tuple[str, ...],
    everything: bool,
    quick: bool,
    data: Path | None,
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Run experiments of the papers and print their figures beside ours; without a NAME, list them."""
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise click.UsageError(f"no experiment is called {unknown[0]!r}; there are {', '.join(EXPERIMENTS)}.")
    chosen = list(EXPERIMENTS) if everything else list(names)
    if not chosen:
        answer(EXPERIMENTS, table(EXPERIMENTS.items(), ["experiment", "what it is"]), as_json)
        return
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
    reports = []
    for name in chosen:
        module = importlib.import_module(f"genkern.papers.{name}")
        reports.append(module.run(quick=quick, folder=data, verbose=not options["quiet"]))
        if output is not None:
            with text_file(output / f"{name}.md") as stream:
                stream.write(reports[-1].markdown())
    answer([report.as_dict() for report in reports], "\n\n".join(report.markdown() for report in reports), as_json)
