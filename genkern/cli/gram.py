"""genkern gram: kernel values between all objects of a file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from genkern.cli.options import alphabet_of, common, files, kernel_option, learning, names, read_data, reading, working
from genkern.cli.output import answer, csv_rows
from genkern.data.whole_files import check_place, whole_file


def _on_cluster(context: click.Context, parameter: click.Parameter, address: str | None) -> None:
    """Let the workers of a cluster compute, until the command ends."""
    if address is not None:
        context.with_resource(_workers(address))


@contextlib.contextmanager
def _workers(address: str) -> Iterator[None]:
    """Make the workers of Dask the backend of joblib."""
    try:
        from dask.distributed import Client, LocalCluster
    except ImportError:
        raise click.UsageError("--dask needs Dask: pip install 'genkern[dask]'.") from None
    from joblib import parallel_config

    here = LocalCluster(threads_per_worker=1, dashboard_address="127.0.0.1:0") if address == "local" else None
    try:
        with here or contextlib.nullcontext(), Client(here or address), parallel_config("dask"):
            yield
    except OSError as error:
        raise click.UsageError(f"--dask {address}: there is no scheduler ({error}).") from error


@click.command("gram")
@files()
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="File: .zarr, .npy, .npz or .csv.")
@kernel_option
@click.option("--memory", "memory_limit", help="Bound of the memory for blocks of .zarr, such as 2GB.")
@click.option("--threshold", type=float, help="Keep values of at least this, as a sparse matrix in an .npz file.")
@click.option("--top", "top_k", type=click.IntRange(min=1), help="Keep so many values of each object, the largest.")
@click.option(
    "--dask", callback=_on_cluster, expose_value=False, help="Workers: tcp://HOST:PORT, or local for processes here."
)
@learning
@reading
@common
def gram_command(
    files: tuple[str, ...],
    output: Path,
    kernel: str,
    memory_limit: str | None,
    threshold: float | None,
    top_k: int | None,
    seed: int,
    jobs: int,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Save the kernel values between all objects of a file, one on the diagonal.

    .npy holds the matrix, .npz also ids and labels, .csv a column per object. A matrix in .zarr is computed in blocks,
    and need not fit into memory: an interrupted command goes on when it is called again. With --threshold or --top the
    matrix is sparse, and the .npz file is read by scipy.sparse.load_npz.
    """
    few = {name: value for name, value in (("threshold", threshold), ("top_k", top_k)) if value is not None}
    on_disk = output.suffix == ".zarr"
    if output.suffix not in (".zarr", ".npy", ".npz", ".csv"):
        raise click.UsageError(f"{output}: the name must end in .zarr, .npy, .npz or .csv.")
    if few and output.suffix != ".npz":
        raise click.UsageError(f"{output}: --threshold and --top give a sparse matrix, whose name must end in .npz.")
    if memory_limit is not None and not on_disk:
        raise click.UsageError("--memory is for matrices on disk, .zarr.")
    if not on_disk:
        check_place(output, "genkern")
    data = read_data(files, options)
    import numpy as np

    from genkern.similarity import gram

    with working(f"kernel values between {len(data)} objects"):
        K = gram(
            data.X,
            data.kind,
            kernel=kernel,
            alphabet=alphabet_of(data, options),
            random_state=seed,
            n_jobs=jobs,
            **({"out": output, "memory_limit": memory_limit} if on_disk else few),
        )
    result: dict[str, Any] = {"objects": len(data), "kernel": kernel, "output": str(output)}
    if on_disk:
        answer(result, f"{len(data)} x {len(data)} kernel values written to {output}", as_json)
        return
    if few:
        from scipy import sparse

        with whole_file(output, "genkern") as stream:
            sparse.save_npz(stream, K)
        answer({**result, "values": int(K.nnz)}, f"{K.nnz} kernel values written to {output}", as_json)
        return
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
    result |= {"mean": off.mean() if off.size else None, "lowest": K.min()}
    answer(result, f"{len(K)} x {len(K)} kernel values written to {output}", as_json)
