"""genkern explain: what a saved model saw in objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genkern.cli.options import common, files, names, read_data, reading
from genkern.cli.output import answer, csv_rows
from genkern.data.whole_files import check_place, whole_file
from genkern.progress import Progress

SHOWN = 3  # objects, where none is named


@click.command("explain")
@click.argument("model", type=click.Path(path_type=Path))
@files()
@click.option(
    "--object", "objects", multiple=True, help="Id of an object; may be repeated. The default is the first 3."
)
@click.option("--class", "label", help="Class whose decision is explained; the default is the one predicted.")
@click.option("--output", "-o", type=click.Path(path_type=Path),
              help="Picture of one object (.png, .svg, .pdf), or all contributions (.csv).")  # fmt: skip
@reading
@common
def explain_command(
    model: Path,
    files: tuple[str, ...],
    objects: tuple[str, ...],
    label: str | None,
    output: Path | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Say what a saved MODEL saw in objects: contributions of features and of positions to the decision."""
    if output is not None and output.suffix not in (".png", ".svg", ".pdf", ".csv"):
        raise click.UsageError(f"{check_place(output, 'genkern')}: the name must end in .png, .svg, .pdf or .csv.")
    from genkern import explain, load, plots

    classifier, data = load(model), read_data(files, options)
    chosen = _choose(names(data), objects)
    if output is not None and output.suffix != ".csv" and len(chosen) > 1:
        raise click.UsageError(f"{output}: a picture shows one object; name it by --object.")
    if not objects and len(chosen) < len(data) and not quiet:
        click.echo(f"{len(chosen)} of {len(data)} objects; name others by --object ID.", err=True)
    wanted = None if label is None else _as_class(label, classifier.classes_)
    ids = names(data)
    found = {}
    with Progress("explain", len(chosen), "objects", not quiet) as progress:
        for i in chosen:
            found[ids[i]] = explain(classifier, data.X[i], wanted)
            progress.advance()
    if output is not None and output.suffix == ".csv":
        with csv_rows(output, ["id", "class", "part", "name", "contribution"]) as write:
            for name, each in found.items():
                parts: list[tuple[str, Any, Any]] = [
                    ("feature", each.names, each.contributions),
                    ("intercept", [""], [each.intercept]),
                ]
                if each.positions is not None:
                    parts.append(("position", range(len(each.positions)), each.positions))
                for part, keys, values in parts:
                    write([name, each.label, part, key, repr(float(value))] for key, value in zip(keys, values))
    elif output is not None:
        ax = plots.explanation(next(iter(found.values())))
        with whole_file(output, "genkern") as stream:
            ax.figure.savefig(stream, format=output.suffix[1:], dpi=150, bbox_inches="tight")
    result = {name: _as_dict(each) for name, each in found.items()}
    answer(result, "\n\n".join(f"{name}: {each}" for name, each in found.items()), as_json)


def _choose(ids: Any, wanted: tuple[str, ...]) -> list[int]:
    """Return the positions of objects by their ids; the first ones where none is named."""
    if not wanted:
        return list(range(min(SHOWN, len(ids))))
    places = {str(name): i for i, name in reversed(list(enumerate(ids)))}
    missing = [name for name in wanted if name not in places]
    if missing:
        raise ValueError(f"no object has the id {missing[0]!r}; there are {', '.join(list(places)[:3])}, ...")
    return [places[name] for name in wanted]


def _as_class(label: str, classes: Any) -> Any:
    """Return the class that is spelt so."""
    spelt = {str(each): each for each in classes.tolist()}
    if label not in spelt:
        raise ValueError(f"--class must be one of {', '.join(spelt)}. Got {label!r}.")
    return spelt[label]


def _as_dict(explanation: Any) -> dict[str, Any]:
    return {
        "class": explanation.label,
        "decision": explanation.decision,
        "intercept": explanation.intercept,
        "features": dict(explanation.top(20)),
        "positions": explanation.positions,
        "rest": explanation.rest,
    }
