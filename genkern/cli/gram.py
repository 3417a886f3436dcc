"""genkern gram: kernel values between all objects of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genkern.cli.options import alphabet_of, common, files, kernel_option, learning, names, read_data, reading, working
from genkern.cli.output import answer, csv_rows
from genkern.data.whole_files import check_place, whole_file


@click.command("gram")
@files()
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="File: .npy, .npz or .csv.")
@kernel_option
@learning
@reading
@common
def gram_command(
    files: tuple[str, ...],
    output: Path,
    kernel: str,
    seed: int,
    jobs: int,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Save the kernel values between all objects of a file, one on the diagonal.

    .npy holds the matrix, .npz also ids and labels, .csv a column per object.
    """
    check_place(output, "genkern")
    if output.suffix not in (".npy", ".npz", ".csv"):
        raise click.UsageError(f"{output}: the name must end in .npy, .npz or .csv.")
    data = read_data(files, options)
    import numpy as np

    from genkern.similarity import gram

    with working(f"kernel values between {len(data)} objects"):
        K = gram(data.X, data.kind, kernel=kernel, alphabet=alphabet_of(data, options), random_state=seed, n_jobs=jobs)
    if output.suffix == ".csv":
        with csv_rows(output, ["id", *names(data)]) as write:
            write([name, *map(repr, row.tolist())] for name, row in zip(names(data), K))
    else:
        with whole_file(output, "genkern") as stream:
            if output.suffix == ".npy":
                np.save(stream, K, allow_pickle=False)
            else:
                labels = {} if data.y is None else {"y": np.asarray(data.y)}
                np.savez(stream, K=K, ids=np.asarray(names(data), dtype=str), allow_pickle=False, **labels)
    off = K[~np.eye(len(K), dtype=bool)]
    result = {
        "objects": len(K),
        "kernel": kernel,
        "mean": off.mean() if off.size else None,
        "lowest": K.min(),
        "output": str(output),
    }
    answer(result, f"{len(K)} x {len(K)} kernel values written to {output}", as_json)
