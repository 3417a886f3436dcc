"""genkern convert: a file in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genkern.cli.options import common, files, read_data, reading, working
from genkern.cli.output import answer
from genkern.data.whole_files import check_place


@click.command("convert")
@files()
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="File to write.")
@click.option("--to", help="Its format, if its name does not tell.")
@reading
@common
def convert_command(
    files: tuple[str, ...], output: Path, to: str | None, as_json: bool, quiet: bool, **options: Any
) -> None:
    """Write the objects of a file, with ids, labels and groups, in another format."""
    check_place(output, "genkern")
    data = read_data(files, options)
    from genkern.io import write

    with working(f"writing {output}"):
        write(data, output, format=to)
    answer({"objects": len(data), "output": str(output)}, f"{len(data)} objects written to {output}", as_json)
