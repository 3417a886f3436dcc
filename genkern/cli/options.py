"""Options that commands share, and how they read their data."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from genkern.progress import Progress

if TYPE_CHECKING:
    from genkern.io import Dataset

Command = TypeVar("Command", bound=Callable[..., Any])

KINDS = ("symbols", "codes", "series", "points", "documents")
KERNELS = ("default", "fisher", "product", "meanmap", "spectrum")
READING = (
    "format",
    "kind",
    "label",
    "labels",
    "id",
    "group",
    "time",
    "channels",
    "text",
    "layout",
    "alphabet",
    "gaps",
    "missing",
    "header",
    "delimiter",
    "decimal",
    "encoding",
    "max_expansion",
)
# Letters, codes, rows, points, characters, below which one process is sooner done than several.
LITTLE = {"symbols": 10_000, "codes": 10_000, "series": 5_000, "points": 5_000, "documents": 500_000}
LEFT_OUT = ("label", "id", "group", "time")  # what --without takes

_common = [
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
    click.option("--quiet", "-q", is_flag=True, help="Print no progress and no notes."),
    click.option("--debug", is_flag=True, help="Show the traceback of an error."),
]
_reading = [
    click.option("--format", help="Format of the file, if its name does not tell (fasta, ts, csv, npz, ...)."),
    click.option("--kind", type=click.Choice(KINDS), help="What the objects are, if the file leaves it open."),
    click.option("--label", help="Column of the labels; in headers of sequences a regular expression with one group."),
    click.option("--labels", type=click.Path(path_type=Path), help="Table of ids and labels."),
    click.option("--id", help="Column of the ids of objects."),
    click.option("--group", help="Column of groups that must stay together (patients, speakers)."),
    click.option("--time", help="Column of the times of a long table."),
    click.option("--channels", multiple=True, help="Column of a channel or coordinate; may be repeated."),
    click.option("--text", help="Column of documents or sequences."),
    click.option(
        "--layout",
        type=click.Choice(["time-first", "channels-first"]),
        help="Order of the axes of an object in 3-D arrays.",
    ),
    click.option("--alphabet", help='"dna", "rna", "protein", or the symbols themselves.'),
    click.option("--gaps", type=click.Choice(["keep", "remove"]), help="What becomes of gaps in sequences."),
    click.option("--missing", multiple=True, help="A spelling of missing values; may be repeated."),
    click.option("--header/--no-header", default=None, help="Whether the first line of a table names the columns."),
    click.option("--delimiter", help="What parts the columns of a table."),
    click.option("--decimal", type=click.Choice([".", ","]), help="What stands before the decimals of numbers."),
    click.option("--encoding", help="Encoding of a text file; the default is UTF-8."),
    click.option(
        "--max-expansion",
        type=click.FloatRange(min=1),
        help="How many times its size a compressed file may expand to; the default is 100, beyond 16 MB.",
    ),
    click.option(
        "--without",
        multiple=True,
        type=click.Choice(LEFT_OUT),
        help="What is not read, although it is there; may be repeated.",
    ),
]


def _threads(context: click.Context, parameter: click.Parameter, jobs: int) -> int:
    """Return a number of threads; refuse what is none."""
    if jobs == 0 or jobs < -1:
        raise click.BadParameter(f"expected a positive number, or -1 for all cores; got {jobs}")
    return jobs


def jobs_option(default: int) -> Callable[[Command], Command]:
    """Add the option --jobs."""
    text = "Threads or processes; -1 is all cores."
    return click.option("--jobs", "-j", type=int, default=default, callback=_threads, show_default=True, help=text)


def jobs_for(jobs: int, data: Dataset) -> int:
    """Return a number of threads or processes: one, unless it was given, for what ends before processes begin."""
    given = click.get_current_context().get_parameter_source("jobs") is not click.core.ParameterSource.DEFAULT
    return jobs if given or sum(map(len, data.X)) >= LITTLE.get(data.kind or "", 0) else 1


_learning = [
    click.option("--seed", type=int, default=0, show_default=True, help="Seed of all that is random."),
    jobs_option(-1),
]

kernel_option = click.option(
    "--kernel", type=click.Choice(KERNELS), default="default", show_default=True, help="Kernel between objects."
)


def common(command: Command) -> Command:
    """Add the options of every command: --json, --quiet, --debug."""
    return _with(_common, command)


def reading(command: Command) -> Command:
    """Add the options that say how files are read."""
    return _with(_reading, command)


def learning(command: Command) -> Command:
    """Add the options of what is fitted: --seed, --jobs."""
    return _with(_learning, command)


def files(name: str = "files") -> Callable[[Command], Command]:
    """Add the argument of the files: one, several, or one per class as ``exon=exons.fa intron=introns.fa``."""
    return click.argument(name, nargs=-1, required=True, metavar="FILE...")


def reading_settings(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of reading that were given, as ``genkern.io.read`` takes them."""
    given = {name: options[name] for name in READING if options.get(name) not in (None, "", ())}
    given |= dict.fromkeys(options.get("without", ()), False)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}


def as_options(text: str) -> str:
    """Return a text that names arguments of ``genkern.io.read`` with the options of commands in their place."""
    text = re.sub(rf"\b({'|'.join(LEFT_OUT)})=False\b", r"--without \1", text)
    text = text.replace("header=False", "--no-header").replace("header=True", "--header")

    def option(found: re.Match[str]) -> str:
        return f"--{found[1].replace('_', '-')}" + (f" {found[2]}" if found[2] else "")

    return re.sub(rf"\b({'|'.join(READING)})=(['\"\w]?)", option, text)


def paths(names: tuple[str, ...]) -> Any:
    """Return what ``genkern.io.read`` takes: a path, several, or a dict of classes to paths."""
    split = [name.partition("=") for name in names]
    labelled = [bool(sign) and not Path(name).exists() for name, (_, sign, _) in zip(names, split)]
    if all(labelled):
        found: dict[str, list[str]] = {}
        for label, _, path in split:
            found.setdefault(label, []).append(path)
        return {label: given[0] if len(given) == 1 else given for label, given in found.items()}
    if any(labelled):
        bare = names[labelled.index(False)]
        raise click.UsageError(f"Either all files have a class, CLASS=FILE, or none has. {bare!r} has none.")
    return names[0] if len(names) == 1 else list(names)


def read_data(names: tuple[str, ...], options: dict[str, Any]) -> Dataset:
    """Return the data of files, read as the options say."""
    with working(f"reading {', '.join(names)}"):
        from genkern.io import read

        return read(paths(names), **reading_settings(options))


def working(what: str) -> Progress:
    """Return a context in which a person is told that something goes on, unless the command is quiet."""
    return Progress(what, unit="", enabled=not click.get_current_context().params["quiet"])


def alphabet_of(dataset: Dataset, options: dict[str, Any]) -> Any:
    """Return the alphabet that was named, or that of a file of nucleotides or proteins, or None."""
    found = options["alphabet"] or dataset.meta.get("alphabet")
    return found if options["alphabet"] or found in ("dna", "rna", "protein") else None


def names(dataset: Dataset, start: int = 0) -> list[str]:
    """Return the ids of objects, or their numbers from ``start`` on where they have none."""
    return [str(start + i) for i in range(len(dataset))] if dataset.ids is None else [str(name) for name in dataset.ids]


def labelled(dataset: Dataset, names: tuple[str, ...]) -> Dataset:
    """Return a dataset that has labels of two classes at least; refuse others by name."""
    if dataset.y is None:
        raise ValueError(
            f"{', '.join(names)}: no labels were found. Name their column by --label, a table of ids and labels by "
            "--labels, or give one file per class: exon=exons.fa intron=introns.fa."
        )
    return dataset


def _with(options: list[Any], command: Command) -> Command:
    return reduce(lambda inner, option: option(inner), reversed(options), command)
