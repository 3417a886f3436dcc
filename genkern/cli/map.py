"""genkern map: objects in the plane."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genkern.cli.options import alphabet_of, common, files, kernel_option, learning, names, read_data, reading, working
from genkern.cli.output import answer, csv_rows
from genkern.data.whole_files import check_place, whole_file

PICTURES = (".png", ".svg", ".pdf")


@click.command("map")
@files()
@click.option("--output", "-o", type=click.Path(path_type=Path), default=Path("map.png"), show_default=True,
              help="Picture (.png, .svg, .pdf) or coordinates (.csv).")  # fmt: skip
@click.option("--method", type=click.Choice(["pca", "tsne", "umap"]), default="pca", show_default=True,
              help="Kernel principal components, t-SNE, or UMAP (umap-learn).")  # fmt: skip
@kernel_option
@learning
@reading
@common
def map_command(
    files: tuple[str, ...],
    output: Path,
    method: str,
    kernel: str,
    seed: int,
    jobs: int,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Draw the objects of a file in the plane, similar ones near each other; no label takes part in that."""
    check_place(output, "genkern")
    if output.suffix not in (*PICTURES, ".csv"):
        raise click.UsageError(f"{output}: the name must end in .png, .svg, .pdf or .csv.")
    from genkern import plots
    from genkern.similarity import gram, plane

    if output.suffix in PICTURES:
        plots.pyplot()  # that matplotlib is missing should be known before the work, not after it
    data = read_data(files, options)
    with working(f"kernel values between {len(data)} objects"):
        K = gram(data.X, data.kind, kernel=kernel, alphabet=alphabet_of(data, options), random_state=seed, n_jobs=jobs)
    with working(f"map of {len(data)} objects"):
        places, axes = plane(K, method, random_state=seed)
    if output.suffix == ".csv":
        labels = [""] * len(places) if data.y is None else data.y
        with csv_rows(output, ["id", "label", "x", "y"]) as write:
            write([i, label, *map(repr, row.tolist())] for i, label, row in zip(names(data), labels, places))
    else:
        ax = plots.object_map(places, data.y, axes=axes, title=f"{len(places)} objects")
        with whole_file(output, "genkern") as stream:
            ax.figure.savefig(stream, format=output.suffix[1:], dpi=150, bbox_inches="tight")
    result = {"objects": len(places), "method": method, "axes": axes, "output": str(output)}
    answer(result, f"{len(places)} objects drawn in {output}", as_json)
