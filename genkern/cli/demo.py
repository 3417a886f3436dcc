"""genkern demo: what a newcomer should see first."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path
from typing import Any

import click

from genkern.cli.options import common
from genkern.cli.output import answer


@click.command("demo")
@click.option("--fast", is_flag=True, help="Fewer objects, for a first look.")
@click.option("--output", "-o", type=click.Path(path_type=Path), default=Path("genkern-demo"), show_default=True,
              help="Folder for the report pages and the picture.")  # fmt: skip
@click.option("--jobs", "-j", type=int, default=-1, show_default=True, help="Threads; -1 is all cores.")
@common
def demo_command(fast: bool, output: Path, jobs: int, as_json: bool, quiet: bool, debug: bool) -> None:
    """See it at work on the two sets of the package: errors, a report, an explanation.

    Cross-validates auto beside what people use today on splice junctions and Japanese vowels, prints the errors,
    explains one window, and saves a report page of each set and a picture.
    """
    if jobs == 0 or jobs < -1:
        raise click.BadParameter(f"expected a positive number, or -1 for all cores; got {jobs}", param_hint="--jobs")
    try:  # that there is no place for the picture should be known before the work, not after it
        output.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=output):
            pass
    except OSError as error:
        raise click.UsageError(f"--output: cannot write to {output}: {error.strerror}; name another folder") from None
    from genkern.cli import demonstration

    silent = contextlib.redirect_stdout(io.StringIO()) if as_json or quiet else contextlib.nullcontext()
    with silent:
        results = demonstration.run(output=output, fast=fast, n_jobs=jobs)
    if as_json or quiet:
        errors: dict[str, Any] = {
            name: {row.name: {"error": row.error, "spread": row.spread} for row in found.rows}
            for name, found in results.items()
        }
        lines = [
            f"{name}: {who} {100 * figures['error']:.1f} %"
            for name, all_of in errors.items()
            for who, figures in all_of.items()
        ]
        answer({"errors": errors, "output": str(output)}, "\n".join(lines), as_json)
