"""The exact E-step of a factorial model, in batches of objects that bound its memory and are distributed to threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from genkern.core.factorial import passes as core
from genkern.data.objects import Packed
from genkern.models.factorial.evidence import chains_of, moments, observe
from genkern.validation import Floats

BATCH_POSITIONS = 1 << 14  # observations of a batch; totals are summed over batches, in their order
Result = TypeVar("Result")


def log_prob(model: Any, packed: Packed, n_jobs: int | None) -> Floats:
    """Return log P (n_objects,) under one model, or under a stack of one model per object."""

    def run(part: Any, objects: Packed) -> Floats:
        return core.log_prob(chains_of(part), observe(part, objects).evidence, objects.offsets)

    return np.concatenate(over_batches(run, model, packed, n_jobs))


def statistics(model: Any, packed: Packed, totals: bool, n_jobs: int | None) -> tuple[Floats, dict[str, Floats]]:
    """Return log P (n_objects,) and blocks of statistics, per object or summed; see ``FactorialHMM.statistics``."""

    def run(part: Any, objects: Packed) -> tuple[Floats, dict[str, Floats]]:
        chains, sight = chains_of(part), observe(part, objects)
        sums = core.gradients(chains, sight.evidence, objects.offsets, sight.segment, len(sight.segments))
        blocks = chain_blocks(model.n_states, sums.start, sums.steps) | moments(sight, sums.marginal, sums.pairs)
        if totals:
            blocks = {name: block.sum(axis=0, keepdims=True) for name, block in blocks.items()}
        return sums.log_prob, blocks

    results = over_batches(run, model, packed, n_jobs)
    parts = {name: np.concatenate([blocks[name] for _, blocks in results]) for name in results[0][1]}
    if totals:
        parts = {name: block.sum(axis=0, keepdims=True) for name, block in parts.items()}
    return np.concatenate([logs for logs, _ in results]), parts


def chain_blocks(sizes: tuple[int, ...], start: Floats, steps: Floats) -> dict[str, Floats]:
    """Return raw derivatives (G, K) and (G, Q) cut into ``starts[c]`` (G, K_c) and ``transitions[c]`` (G, K_c, K_c)."""
    firsts = np.split(start, np.cumsum(sizes)[:-1], axis=1)
    matrices = np.split(steps, np.cumsum(np.square(sizes))[:-1], axis=1)
    blocks = {f"starts[{c}]": first for c, first in enumerate(firsts)}
    return blocks | {f"transitions[{c}]": m.reshape(-1, k, k) for c, (m, k) in enumerate(zip(matrices, sizes))}


def over_batches(run: Callable[[Any, Packed], Result], model: Any, packed: Packed, n_jobs: int | None) -> list[Result]:
    """Return the results of a function of a model and objects for consecutive batches of objects, in their order."""
    tasks = [(model[part] if model.shape else model, packed.take(part)) for part in _parts(packed)]
    workers = 1 if n_jobs in (None, 1) else min(effective_n_jobs(n_jobs), len(tasks))
    if workers == 1:
        return [run(*task) for task in tasks]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda task: run(*task), tasks))


def _parts(packed: Packed) -> list[slice]:
    """Return consecutive slices of objects with a bounded number of observations, unless one alone has more."""
    parts, first = [], 0
    while first < packed.n_objects:
        last = int(np.searchsorted(packed.offsets, packed.offsets[first] + BATCH_POSITIONS, side="right")) - 1
        last = max(last, first + 1)
        parts.append(slice(first, last))
        first = last
    return parts


def expected_visits(model: Any, lengths: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return expected pairs of states (K, K) at one time, and departures (K,) from each, averaged over lengths."""
    occupancy = list(model.starts)
    total = sum(model.n_states)
    pairs, departures = np.zeros((total, total)), np.zeros(total)
    ends = np.cumsum(model.n_states)
    for t in range(int(lengths.max())):
        now = np.concatenate(occupancy)
        both = np.outer(now, now)
        for k, end in zip(model.n_states, ends):
            both[end - k : end, end - k : end] = np.diag(now[end - k : end])
        pairs += (lengths > t).mean() * both
        departures += (lengths > t + 1).mean() * now
        occupancy = [o @ rows for o, rows in zip(occupancy, model.transitions)]
    return pairs, departures
