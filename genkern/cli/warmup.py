"""genkern warmup: compile before it is needed."""

from __future__ import annotations

import time
import warnings
from typing import Any

import click

from genkern.cli.options import common
from genkern.cli.output import answer
from genkern.progress import Progress, spell_seconds


@click.command("warmup")
@common
def warmup_command(as_json: bool, quiet: bool, **options: Any) -> None:
    """Compile now what would be compiled on first use, and keep it.

    Recipes, models, estimators, embeddings and kernels of every kind are run on a few small objects.
    Compiled code is kept per user and version; a second run takes a moment.
    """
    began = time.perf_counter()
    from genkern.cli.warming import tasks
    from genkern.core.jit import first_use

    first_use.told = True
    chosen = tasks()
    with Progress("warmup", len(chosen), "tasks", not quiet) as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what so few objects cannot support
        for name, task in chosen.items():
            task()
            progress.advance(note=name)
    seconds = time.perf_counter() - began
    answer({"tasks": list(chosen), "seconds": seconds}, f"{len(chosen)} tasks, {spell_seconds(seconds)}", as_json)
