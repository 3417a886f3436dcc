"""The contribution of each symbol of one sequence to the log-likelihood and the statistics of a Markov chain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from genkern.data.objects import Packed
from genkern.models.base import Statistics
from genkern.models.positions import BATCH, changes, pieces_of
from genkern.models.simplex import gradient
from genkern.validation import Floats

if TYPE_CHECKING:
    from genkern.models.markov.base import Chain
    from genkern.models.markov.model import PeriodicChain, PositionalChain

TABLES = 32  # positions at a time of a chain with a table for each


def chain_statistics(model: Chain, packed: Packed) -> Iterator[Statistics]:
    """Yield the statistics of the positions of one sequence."""
    found = _chain_changes if model._by_position else _local_changes
    for blocks in found(model, packed, 0, _chain_blocks):
        log_prob = blocks.pop("log_prob")
        yield Statistics(model, log_prob, np.ones(len(log_prob), np.int64), blocks)


def _chain_changes(model: Chain, packed: Packed, phase: int, work: Any) -> Iterator[dict[str, Floats]]:
    """Yield the change of ``work(chain, objects)`` by each further symbol, from all prefixes of the sequence."""
    tables = model.tables
    known = model._with_tables(np.eye(tables.phases.shape[1])[phase], tables.start, tables.steps, ())
    return changes(lambda beginnings: work(known, beginnings), packed, _size(model))


def _local_changes(model: Chain, packed: Packed, phase: int, work: Any) -> Iterator[dict[str, Floats]]:
    """Yield the same, from only the k symbols before each position.

    The contribution of a symbol does not depend on anything before k known (not ambiguous) symbols, so that the last
    such replace the whole prefix. They need not start a sequence of the model, hence a uniform start, which cancels.
    """
    order, length = model.order, packed.n_points
    starts = _contexts(packed.values, model.alphabet.size, order)
    first, tables = int(np.count_nonzero(starts < 0)), model.tables
    period = tables.phases.shape[1]
    uniform = np.full(tables.start.shape, 1.0 / tables.start.shape[-1])
    chains = [model._with_tables(np.eye(period)[p], uniform, tables.steps, ()) for p in range(period)]
    if first:
        yield from _chain_changes(model, pieces_of(packed, np.zeros(1, np.int64), np.array([first])), phase, work)
    longest = int((np.arange(length) - starts).max()) + 1
    most = max(1, BATCH // max(_size(model), longest))
    for low in range(first, length, most):
        ends = np.arange(low, min(low + most, length)) + 1
        blocks: dict[str, Floats] = {}
        for turn in range(period):
            own = np.flatnonzero((starts[ends - 1] + phase) % period == turn)
            if len(own):
                part = _last_changes(chains[turn], packed, starts[ends[own] - 1], ends[own], work)
                for name, block in part.items():
                    blocks.setdefault(name, np.zeros((len(ends), *block.shape[1:])))[own] = block
        yield blocks


def _last_changes(chain: Chain, packed: Packed, starts: Any, ends: Any, work: Any) -> dict[str, Floats]:
    """Return the changes by the last symbols of segments of a sequence."""
    whole: dict[str, Floats] = work(chain, pieces_of(packed, starts, ends))
    if chain.order == 0:  # no symbol is before it
        return whole
    before = work(chain, pieces_of(packed, starts, ends - 1))
    return {name: block - before[name] for name, block in whole.items()}


def _contexts(codes: Any, m: int, order: int) -> Any:
    """Return for each position (T,) where the last k symbols before it begin that are all known, -1 if none are."""
    places = np.arange(len(codes))
    if order == 0:
        return places
    ambiguous = np.maximum.accumulate(np.where(codes < m, -1, places))
    ends = np.where(places - ambiguous >= order, places, -1)  # of k known symbols
    before = np.concatenate([[-1], np.maximum.accumulate(ends)[:-1]])
    return np.where(before >= 0, before - order + 1, -1)


def table_gradients(model: PositionalChain, packed: Packed, coordinates: str) -> Iterator[tuple[int, Floats]]:
    """Yield the derivatives by position of one object, (n, width) of n positions and the parameters that they read.

    Parameters are adjacent, and each block comes with the place of its first one. A position reads its own table and,
    where symbols before it are ambiguous, those back to the last k that are known: each piece of so many symbols is an
    object with a chain of its own.
    """
    order, m = model.order, model.alphabet.size
    starts = _contexts(packed.values, m, order)
    first, size = int(np.count_nonzero(starts < 0)), m ** (order + 1)
    before = m**order if order else 0  # parameters of the start
    if first:
        head = model._restore(model.start, model.transitions[: max(first - order, 1)], model.alphabet, order)
        for blocks in _chain_changes(
            head, pieces_of(packed, np.zeros(1, np.int64), np.array([first])), 0, _chain_blocks
        ):
            found = Statistics(head, blocks.pop("log_prob"), np.ones(first, np.int64), blocks)
            yield 0, head.gradient(found, coordinates)
    for low in range(first, packed.n_points, TABLES):
        ends = np.arange(low, min(low + TABLES, packed.n_points)) + 1
        begins = starts[ends - 1]
        left = int(begins.min())
        out = np.zeros((len(ends), ends[-1] - order - left, size))
        for count in np.unique(ends - begins - order):  # tables that are read
            own = np.flatnonzero(ends - begins - order == count)
            places = begins[own, None] + np.arange(count)
            uniform = np.full((len(own), *model.start.shape), 1.0 / m**order)
            chains = model._restore(uniform, model.transitions[places], model.alphabet, order)
            raw = _last_changes(chains, packed, begins[own], ends[own], _chain_blocks)["transitions"]
            out[own[:, None], places - left] = gradient(raw, chains.transitions, coordinates).reshape(*places.shape, -1)
        yield before + left * size, out.reshape(len(ends), -1)


def table_log_probs(model: PositionalChain, packed: Packed) -> Floats:
    """Return the log-probability of each symbol of one object given those before, (T,), by the tables it reads."""
    order, starts = model.order, _contexts(packed.values, model.alphabet.size, model.order)
    first = int(np.count_nonzero(starts < 0))
    logs = np.zeros(packed.n_points)
    if first:
        head = model._restore(model.start, model.transitions[: max(first - order, 1)], model.alphabet, order)
        begun = pieces_of(packed, np.zeros(1, np.int64), np.array([first]))
        logs[:first] = np.concatenate([each["log_prob"] for each in _chain_changes(head, begun, 0, _chain_logs)])
    ends = np.arange(first, packed.n_points) + 1
    begins = starts[first:]
    for count in np.unique(ends - begins - order):  # tables that are read
        own = np.flatnonzero(ends - begins - order == count)
        uniform = np.full((len(own), *model.start.shape), 1.0 / model.alphabet.size**order)
        tables = model.transitions[begins[own, None] + np.arange(count)]
        chains = model._restore(uniform, tables, model.alphabet, order)
        logs[first + own] = _last_changes(chains, packed, begins[own], ends[own], _chain_blocks)["log_prob"]
    return logs


def _chain_blocks(model: Chain, objects: Packed) -> dict[str, Floats]:
    """Return log-probabilities and statistics of objects, which must be possible."""
    found = model.statistics(objects)
    return {"log_prob": found.log_prob, **found.blocks}


def _chain_logs(model: Chain, objects: Packed) -> dict[str, Floats]:
    """Return log-probabilities of objects, also of impossible ones."""
    return {"log_prob": model.log_prob(objects)}


def _size(model: Chain) -> int:
    """Return how many numbers the statistics of an object have."""
    return sum(rows.size for rows, _ in model._rows().values())


def periodic_statistics(model: PeriodicChain, packed: Packed) -> Iterator[Statistics]:
    """Weight the contributions of positions under each start phase by the posterior of that phase."""
    shares, priors = model.posterior(packed)[0][0], model.tables.phases[0]
    phases = np.flatnonzero(priors)
    works = [_chain_blocks if shares[p] > 0 else _chain_logs for p in phases]
    path = np.log(priors[phases])  # joint with the symbols so far
    found = [_local_changes(model, packed, int(p), work) for p, work in zip(phases, works)]
    while True:
        with np.errstate(invalid="ignore"):  # of phases that have become impossible
            parts = [part for part in (next(each, None) for each in found) if part is not None]
        if not parts:
            return
        steps = np.nan_to_num([part.pop("log_prob") for part in parts], nan=-np.inf, neginf=-np.inf)
        logs = path + np.cumsum(steps, axis=1).T
        seen = np.logaddexp.reduce(np.vstack([path, logs]), axis=1)
        path = logs[-1]
        likely = [(shares[p], part) for p, part in zip(phases, parts) if shares[p] > 0]
        blocks = {name: sum(r * part[name] for r, part in likely) * (name != "phases") for name in likely[0][1]}
        yield Statistics(model, np.diff(seen), np.ones(len(logs), np.int64), blocks)
