"""The page that commands write with --report, and how it is made again."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from genkern.cli.options import paths, reading_settings
from genkern.data.whole_files import check_place

PAGES = (".html", ".htm")

report_option = click.option(
    "--report",
    type=click.Path(path_type=Path),
    help="HTML page with data, results, models and decisions; one file that needs no network.",
)


def check_report(report: Path | None) -> None:
    """Raise where the page could not be written, before the work and not after it."""
    if report is not None:
        if report.suffix.lower() not in PAGES:
            raise click.UsageError(f"--report: {report}: the name must end in {' or '.join(PAGES)}.")
        check_place(report, "genkern")
        from genkern.report.page import require_jinja2

        require_jinja2()


def command_line() -> str:
    """Return the command that is running, as a shell takes it."""
    return shlex.join(["genkern", *(click.get_current_context().find_root().obj or ())])


def code_of(names: tuple[str, ...], options: dict[str, Any], lines: list[str]) -> str:
    """Return Python code that reads the same files in the same way, followed by other lines."""
    given = "".join(f", {key}={value!r}" for key, value in _plain(reading_settings(options)).items())
    return "\n".join(["import genkern", "", f"data = genkern.read({paths(names)!r}{given})", *lines, ""])


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with paths as text."""
    return {key: str(value) if isinstance(value, Path) else value for key, value in settings.items()}
