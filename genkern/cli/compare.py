"""genkern compare: a test whether two files come from the same law."""

from __future__ import annotations

from typing import Any

import click

from genkern.cli.options import alphabet_of, common, kernel_option, learning, read_data, reading, working
from genkern.cli.output import answer


@click.command("compare")
@click.argument("first")
@click.argument("second")
@click.option("--permutations", type=click.IntRange(min=1), default=999, show_default=True, help="Random divisions.")
@kernel_option
@learning
@reading
@common
def compare_command(
    first: str,
    second: str,
    permutations: int,
    kernel: str,
    seed: int,
    jobs: int,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Test whether the objects of two files come from the same law.

    The distance is the maximum mean discrepancy of a kernel fitted to both together; the p-value is by permutation.
    """
    samples = [read_data((name,), options) for name in (first, second)]
    kinds = [sample.kind for sample in samples]
    if kinds[0] != kinds[1]:
        raise ValueError(f"{first} holds {kinds[0]}, {second} {kinds[1]}: they cannot be compared. See --kind.")
    alphabet, other = (alphabet_of(sample, options) for sample in samples)
    if alphabet != other:
        raise ValueError(
            f"{first} holds symbols of {alphabet or 'no known alphabet'}, {second} of {other or 'no known alphabet'}: "
            "they cannot be compared. If they are of one, name it by --alphabet."
        )
    from genkern.similarity import mmd_test

    shared: dict[str, Any] = {"kind": kinds[0], "n_permutations": permutations, "random_state": seed, "n_jobs": jobs}
    with working(f"kernel values between {len(samples[0].X) + len(samples[1].X)} objects"):
        test = mmd_test(samples[0].X, samples[1].X, kernel, alphabet=alphabet, **shared)
    result = {"objects": [len(sample.X) for sample in samples], "kernel": kernel, **test._asdict()}
    verdict = "they differ" if test.p_value <= 0.05 else "no difference is seen"
    answer(
        result,
        f"{first}: {len(samples[0].X)} objects, {second}: {len(samples[1].X)}\n"
        f"squared maximum mean discrepancy {test.statistic:.4g}, p = {test.p_value:.3g} by {permutations} permutations:"
        f" {verdict} at the level of 5 %",
        as_json,
    )
