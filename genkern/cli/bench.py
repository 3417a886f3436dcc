"""genkern bench: how fast this machine is, through the calls that users make."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from genkern.cli.options import common, jobs_option
from genkern.cli.output import answer, table
from genkern.progress import Progress

UNIT = "sequences of 100"
LEAST = 0.5  # seconds of each measurement


@click.command("bench")
@jobs_option(1)
@common
def bench_command(jobs: int, as_json: bool, quiet: bool, **options: Any) -> None:
    """Measure how many objects a second this machine takes, from plain lists to results.

    Where hmmlearn is installed, the forward-backward pass is measured beside it.
    """
    rows: list[dict[str, Any]] = []
    workloads = _workloads(jobs)
    with Progress("bench", len(workloads), "workloads", not quiet) as progress:
        for name, count, unit, work in workloads:
            seconds = _best(work)
            rows.append({"workload": name, "seconds": seconds, "rate": count / seconds, "unit": unit})
            progress.advance(note=name)
    cells = [[row["workload"], f"{1000 * row['seconds']:.1f} ms", f"{row['rate']:,.0f}", row["unit"]] for row in rows]
    answer(rows, table(cells, ["workload", "time", "a second", ""]), as_json)


def _best(work: Callable[[], Any]) -> float:
    """Return the shortest time of several runs; the first compiles."""
    work()
    best, stop = float("inf"), time.perf_counter() + LEAST
    while time.perf_counter() < stop:
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best


def _workloads(jobs: int) -> list[tuple[str, int, str, Callable[[], Any]]]:
    """Return names, counts, units and functions of what is measured."""
    import numpy as np

    from genkern import HMM, Categorical, FisherScore, Gram, HMMEstimator, ProbabilityProduct, Spectrum
    from genkern.core.jit import first_use

    first_use.told = True
    rng = np.random.default_rng(0)
    X = ["".join(row) for row in rng.choice(list("ACGT"), (2000, 100))]

    def hmm(n: int) -> Any:
        draw = rng.dirichlet
        return HMM(draw(np.ones(n)), draw(np.ones(n), n), Categorical(draw(np.ones(4), n), alphabet="ACGT"))

    found: list[tuple[str, int, str, Callable[[], Any]]] = []
    for n in (4, 16):
        model = hmm(n)
        found.append((f"HMM of {n} states, log_prob", len(X), UNIT, partial(model.log_prob, X)))
        found.append((f"HMM of {n} states, scores", len(X), UNIT, partial(model.log_prob_grad, X, n_jobs=jobs)))
        peer = _hmmlearn(model, X)
        if peer is not None:
            found.append((f"hmmlearn, {n} states, posteriors", len(X), UNIT, peer))
    embedding = FisherScore(HMMEstimator(4, max_iter=3, tol=0, random_state=0, n_jobs=jobs), n_jobs=jobs).fit(X[:200])
    found.append(("Fisher features, 4 states", len(X), UNIT, lambda: embedding.transform(X)))
    found.append(("words of 5 letters", len(X), UNIT, lambda: Spectrum(5, "ACGT").fit_transform(X)))
    models = [hmm(4) for _ in range(60)]
    gram = Gram(ProbabilityProduct(0.5, 10), n_jobs=jobs)
    found.append(("product kernel of HMMs, 4 states", 60 * 61 // 2, "pairs", lambda: gram.fit_transform(models)))
    return found


def _hmmlearn(model: Any, X: list[str]) -> Callable[[], Any] | None:
    """Return the same pass by hmmlearn, where it is installed."""
    try:
        from hmmlearn.hmm import CategoricalHMM
    except ImportError:
        return None
    import numpy as np

    peer = CategoricalHMM(model.n_states)
    peer.startprob_, peer.transmat_ = model.start, model.transitions
    peer.emissionprob_ = model.emissions.probs
    table = np.frombuffer("".join(X).encode(), np.uint8)
    codes = np.searchsorted(np.frombuffer(b"ACGT", np.uint8), table)[:, None]
    return lambda: peer.score_samples(codes, [100] * len(X))
