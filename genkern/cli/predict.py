"""genkern predict: classes of the objects of a file, batch by batch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from genkern.cli.options import common, files, names, paths, reading, reading_settings
from genkern.cli.output import answer, csv_rows
from genkern.data.whole_files import check_place
from genkern.progress import Progress, portion

LISTED = 6  # labels that are named where none is a class of the model


@click.command("predict")
@click.argument("model", type=click.Path(path_type=Path))
@files()
@click.option("--output", "-o", type=click.Path(path_type=Path), help="CSV file; the default is standard output.")
@click.option("--batch", type=click.IntRange(min=1), default=1000, show_default=True, help="Objects held at a time.")
@reading
@common
def predict_command(
    model: Path,
    files: tuple[str, ...],
    output: Path | None,
    batch: int,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Classify the objects of a file by a saved MODEL: a CSV file of ids, classes and, if it has them, probabilities.

    Objects are read and classified in batches, so that memory does not grow with the file. Where the file has labels
    that are classes of the model, the error is told.
    """
    if as_json and output is None:
        raise click.UsageError("--json tells what was done; name a file for the predictions by --output.")
    if output is not None:
        check_place(output, "genkern")
    from genkern import load
    from genkern.io import stream

    classifier = load(model)
    if not hasattr(classifier, "predict") or not hasattr(classifier, "classes_"):
        raise ValueError(f"{model}: holds a {type(classifier).__name__}, which is no fitted classifier.")
    probable = hasattr(classifier, "predict_proba")
    head = ["id", "prediction", *([f"p_{label}" for label in classifier.classes_] if probable else [])]
    count = wrong = known = 0
    classes, given, comparable = set(map(str, classifier.classes_)), set[str](), False
    with (
        csv_rows(output, [*head, "label"]) as write,
        Progress("predict", None, "objects", not quiet) as progress,
    ):
        for part in stream(paths(files), batch=batch, **reading_settings(options)):
            with portion(0.0), _telling(model, names(part, count)):  # how far it is is told by how much has been read
                predicted = classifier.predict(part.X)
                columns = [names(part, count), predicted]
                if probable:
                    columns += [[f"{value:.6g}" for value in column] for column in classifier.predict_proba(part.X).T]
            write(zip(*columns, [""] * len(part.X) if part.y is None else part.y))
            count += len(part.X)
            if part.y is not None:
                known += len(part.X)
                labels = set(part.y.astype(str))
                comparable = comparable or not classes.isdisjoint(labels)
                given = set(sorted(given | labels)[: LISTED + 1])  # memory does not grow with the file
                wrong += int((part.y.astype(str) != predicted.astype(str)).sum())
            progress.advance(len(part.X))
    errors = wrong if comparable else None  # where the classes have other names in the file, nothing is wrong
    result = {"objects": count, "labelled": known, "errors": errors, "output": output and str(output)}
    said = f"{count} objects"
    if comparable:
        said += f", {wrong} of {known} wrong ({100 * wrong / known:.1f} %)"
    elif known:
        said += f", not compared with their labels: none ({_few(given)}) is a class of the model ({_few(classes)})"
    if output is not None:
        answer(result, f"{said}; written to {output}", as_json)
    elif not quiet:
        click.echo(said, err=True)


def _few(labels: set[str]) -> str:
    """Return labels as text, the first ones of many."""
    listed = sorted(labels)
    return ", ".join(listed[:LISTED]) + (", ..." if len(listed) > LISTED else "")


@contextlib.contextmanager
def _telling(model: Path, ids: list[str]) -> Iterator[None]:
    """Say of objects that a model refuses which batch they are counted in."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{model} does not suit the objects {ids[0]!r} to {ids[-1]!r}, counted from 0 here. {error}"
        ) from error
