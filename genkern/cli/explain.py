"""genkern explain: what a saved model saw in a set of objects, or in single ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genkern.cli.options import common, files, names, read_data, reading
from genkern.cli.output import answer, csv_rows
from genkern.data.whole_files import check_place, whole_file
from genkern.progress import Progress


@click.command("explain")
@click.argument("model", type=click.Path(path_type=Path))
@files()
@click.option(
    "--object", "objects", multiple=True, help="Id of an object; may be repeated. The default is the whole set."
)
@click.option(
    "--class",
    "of_class",
    help="Class whose decision is explained, of single objects; the default is the one predicted.",
)
@click.option("--output", "-o", type=click.Path(path_type=Path),
              help="Picture of the set or of one object (.png, .svg, .pdf), or all contributions (.csv).")  # fmt: skip
@reading
@common
def explain_command(
    model: Path,
    files: tuple[str, ...],
    objects: tuple[str, ...],
    of_class: str | None,
    output: Path | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Say what a saved MODEL saw in objects: contributions to the decisions about them.

    Of a set: the mean contributions of the parts of the model, of channels and of the largest features, to the
    decisions for the objects' labels or, if they have none, for the classes that are predicted. Of single objects, by
    --object: contributions of features and of positions.
    """
    if output is not None and output.suffix not in (".png", ".svg", ".pdf", ".csv"):
        raise click.UsageError(f"{check_place(output, 'genkern')}: the name must end in .png, .svg, .pdf or .csv.")
    from genkern import explain, load, plots

    classifier, data = load(model), read_data(files, options)
    if not objects:
        if of_class is not None:
            raise click.UsageError("--class is for single objects; name them by --object.")
        _explain_set(classifier, data, output, as_json)
        return
    chosen = _choose(names(data), objects)
    if output is not None and output.suffix != ".csv" and len(chosen) > 1:
        raise click.UsageError(f"{output}: a picture shows one object; name it by --object.")
    wanted = None if of_class is None else _as_class(of_class, classifier.classes_)
    ids = names(data)
    found = {}
    with Progress("explain", len(chosen), "objects", not quiet) as progress:
        for i in chosen:
            found[ids[i]] = explain(classifier, data.X[i], wanted, channels=data.channel_names)
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
        _draw(plots.explanation(next(iter(found.values()))).figure, output)
    result = {name: _as_dict(each) for name, each in found.items()}
    answer(result, "\n\n".join(f"{name}: {each}" for name, each in found.items()), as_json)


def _explain_set(classifier: Any, data: Any, output: Path | None, as_json: bool) -> None:
    """Answer with the mean contributions in a set; write them, or draw them."""
    from genkern import explain_set, plots

    known = _known(data.y, classifier.classes_)
    explained = explain_set(classifier, data.X, known, channels=data.channel_names)
    parts = {
        "block": explained.by_block(),
        "sub-block": explained.by_block(2),
        "channel": explained.by_channel(),
        "feature": dict(explained.top(20 if output is None else len(explained.absolute))),
    }
    if output is not None and output.suffix == ".csv":
        with csv_rows(output, ["part", "name", "class", "mean"]) as write:
            for part, means in parts.items():
                for name, mean in means.items():
                    rows = {"": mean.absolute, **mean.signed}
                    write([part, name, label, repr(value)] for label, value in rows.items())
    elif output is not None:
        _draw(plots.ContributionsDisplay.from_explanation(explained).plot().figure_, output)
    result = {
        f"by {part}": {
            name: {"absolute": mean.absolute, "signed": {str(key): value for key, value in mean.signed.items()}}
            for name, mean in list(means.items())[:20]
        }
        for part, means in parts.items()
    }
    answer({"objects": len(explained), **result}, str(explained), as_json)


def _known(y: Any, classes: Any) -> Any:
    """Return the labels if there are any and the model knows them all, else None."""
    return y if y is not None and set(y.tolist()) <= set(classes.tolist()) else None


def _draw(figure: Any, output: Path) -> None:
    """Write a picture."""
    with whole_file(output, "genkern") as stream:
        figure.savefig(stream, format=output.suffix[1:], dpi=150, bbox_inches="tight")


def _choose(ids: Any, wanted: tuple[str, ...]) -> list[int]:
    """Return the positions of objects by their ids."""
    places = {str(name): i for i, name in reversed(list(enumerate(ids)))}
    missing = [name for name in wanted if name not in places]
    if missing:
        raise ValueError(f"no object has the id {missing[0]!r}; there are {', '.join(map(str, ids[:3]))}, ...")
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
