"""genkern cluster: groups of similar objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from genkern.cli.options import alphabet_of, common, files, kernel_option, learning, names, read_data, reading, working
from genkern.cli.output import answer, csv_rows, table
from genkern.data.whole_files import check_place


@click.command("cluster")
@files()
@click.option("--clusters", "-k", type=click.IntRange(min=2), help="Number of clusters; the default is chosen.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="CSV file of ids and clusters.")
@kernel_option
@learning
@reading
@common
def cluster_command(
    files: tuple[str, ...],
    clusters: int | None,
    output: Path | None,
    kernel: str,
    seed: int,
    jobs: int,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Group the objects of a file by kernel k-means; the number of clusters is that of the best silhouette.

    Labels take no part; where there are any, they are set beside the clusters.
    """
    if output is not None:
        check_place(output, "genkern")
    data = read_data(files, options)
    import numpy as np
    from sklearn.metrics import adjusted_rand_score

    from genkern.similarity import cluster, gram

    with working(f"kernel values between {len(data)} objects"):
        K = gram(data.X, data.kind, kernel=kernel, alphabet=alphabet_of(data, options), random_state=seed, n_jobs=jobs)
    with working(f"clusters of {len(data)} objects"):
        found, silhouette = cluster(K, clusters, random_state=seed)
    if output is not None:
        labels = [""] * len(found) if data.y is None else data.y
        with csv_rows(output, ["id", "label", "cluster"]) as write:
            write(zip(names(data), labels, found.tolist()))
    sizes = np.bincount(found)
    result: dict[str, Any] = {"clusters": len(sizes), "silhouette": silhouette, "sizes": sizes}
    if data.y is None:
        lines = [table(enumerate(sizes), ["cluster", "objects"])]
    else:
        kinds, codes = np.unique(data.y.astype(str), return_inverse=True)
        counts = np.zeros((len(sizes), len(kinds)), dtype=int)
        np.add.at(counts, (found, codes), 1)
        result |= {"adjusted_rand": adjusted_rand_score(data.y, found), "classes": kinds, "counts": counts}
        rows = [[i, size, *row] for i, (size, row) in enumerate(zip(sizes, counts))]
        lines = [table(rows, ["cluster", "objects", *kinds])]
        if len(kinds) > 1:  # with one, the index is zero whatever the clusters are
            lines.append(f"adjusted Rand index {result['adjusted_rand']:.3f}")
    lines.append(f"{len(found)} objects in {len(sizes)} clusters, silhouette {silhouette:.3f}")
    answer(result, "\n".join(lines), as_json)
