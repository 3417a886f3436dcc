"""genkern info: what a file holds."""

from __future__ import annotations

from typing import Any

import click

from genkern.cli.options import common, files, read_data, reading
from genkern.cli.output import answer


@click.command("info")
@files()
@reading
@common
def info_command(files: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Say what a file holds: format, kind of objects, lengths, classes, and every rule applied in reading it."""
    dataset = read_data(files, options)
    answer(dataset.meta, "\n".join(dataset.summary()), as_json)
