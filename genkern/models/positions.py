"""The E-step position by position: what each observation of one object adds to its expected statistics."""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch
from typing import Any

import numpy as np

from genkern.core.hmm_positions import position_gradients
from genkern.core.kalman_roots import LOST
from genkern.models.base import Statistics
from genkern.models.factorial import FactorialHMM
from genkern.models.factorial_positions import position_blocks
from genkern.models.hmm import HMM
from genkern.models.lds import LDS
from genkern.models.lds_positions import position_derivatives
from genkern.models.leaf import Leaf
from genkern.models.markov import PeriodicChain, PositionalChain
from genkern.models.markov_base import Chain
from genkern.models.mixture import Mixture
from genkern.models.simplex import gradient
from genkern.models.site import SiteModel
from genkern.objects import Packed
from genkern.validation import Floats

TABLES = 32  # positions at a time of a chain with a table for each
BLOCK = 1 << 22  # numbers held at a time for beginnings of an object


@singledispatch
def position_statistics(model: Any, packed: Packed) -> Iterator[Statistics]:
    r"""Yield the statistics of the positions of one object, in order, some positions at a time.

    Each has one group per position, as if positions were objects, with ``log_prob`` :math:`\log p(x_t | x_0 \dots
    x_{t-1})`. They sum to ``model.statistics`` of the object, since the logarithm of its joint probability with what is
    hidden is a sum over positions, and so is the posterior expectation of the derivatives:

    .. math:: \nabla \log p(x) = \sum_t E[\nabla \log p(x_t, q_t | x_0 \dots x_{t-1}, q_{t-1}) \,|\, x]

    (Fisher's identity). Points of a bag are its positions; so are the symbols of a window of a ``SiteModel``. What
    belongs to no position, the weights of a mixture of windows and the distribution of the start phase, stays zero.

    Parameters
    ----------
    model : HMM, leaf family or Markov chain
    packed : Packed
        One object, encoded for the model and possible under it.
    """
    raise TypeError(f"position_statistics: there are no statistics by position of {type(model).__name__}.")


def has_position_statistics(model: Any) -> bool:
    """Say whether ``position_statistics`` knows the model."""
    return position_statistics.dispatch(type(model)) is not position_statistics.dispatch(object)


def each_point(packed: Packed) -> Packed:
    """Return the observations of all objects as objects of one observation."""
    return packed._replace(offsets=np.arange(packed.n_points + 1))


def is_window(packed: Packed) -> bool:
    """Say whether observations are windows of symbols, whose symbols are the positions."""
    return packed.alphabet is not None and packed.values.ndim == 2


def changes(work: Any, packed: Packed, size: int) -> Iterator[Any]:
    """Yield what each further observation of one object changes in an outcome, some observations at a time.

    ``work`` returns a dict of arrays, of ``size`` numbers per object, for a list of its beginnings.
    """
    most = max(1, BLOCK // max(size, packed.n_points))
    for first in range(0, packed.n_points, most):
        lengths = np.arange(max(first, 1), min(first + most, packed.n_points) + 1)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        found = work(packed._replace(values=packed.values[rows], offsets=offsets))
        before: dict[str, Any] = {} if first else {"prepend": 0.0}
        yield {name: np.diff(block, axis=0, **before) for name, block in found.items()}


@position_statistics.register
def _hmm(model: HMM, packed: Packed) -> Iterator[Statistics]:
    evidence = model.emissions.evidence(packed)
    found = position_gradients(model.chains(), evidence, packed.n_points)
    points = each_point(packed)
    blocks = {"start": found.start, "transitions": found.transitions}
    for name, block in model.emissions.emission_statistics(points, evidence, found.emissions).items():
        blocks[f"emissions.{name}"] = block
    if model.final is not None:
        blocks["stop" if model.end is None else "end"] = found.end
    yield Statistics(model, found.log_prob, points.lengths, blocks)


@position_statistics.register
def _leaf(model: Leaf, packed: Packed) -> Iterator[Statistics]:
    if not is_window(packed):
        yield model.statistics(each_point(packed))
        return
    length = packed.values.shape[1]
    blocks = {name: np.repeat(block, length, axis=0) for name, block in model.statistics(packed).blocks.items()}
    for name, block in blocks.items():
        if name.endswith("probs"):  # (T, ..., L, m), of which position t keeps row t
            np.moveaxis(block, -2, 1)[~np.eye(length, dtype=bool)] = 0.0
        else:
            block[:] = 0.0
    logs = [_log_beginning(model, packed, size) for size in range(1, length + 1)]
    yield Statistics(model, np.diff(logs, prepend=0.0), np.ones(length, np.int64), blocks)


def _log_beginning(model: Any, window: Packed, length: int) -> float:
    """Return the log probability of the first symbols of one window."""
    sites: SiteModel = model.components if isinstance(model, Mixture) else model
    short: Any = sites._restore(sites.probs[..., :length, :], sites.alphabet)
    if isinstance(model, Mixture):
        short = model._restore(model.weights, short)
    return float(short.log_density(window.values[:, :length])[0])


@position_statistics.register
def _chain(model: Chain, packed: Packed) -> Iterator[Statistics]:
    found = _chain_changes if model._by_position else _local_changes
    for blocks in found(model, packed, 0, _chain_blocks):
        log_prob = blocks.pop("log_prob")
        yield Statistics(model, log_prob, np.ones(len(log_prob), np.int64), blocks)


def _chain_changes(model: Chain, packed: Packed, phase: int, work: Any) -> Iterator[dict[str, Floats]]:
    """Yield what each further symbol changes in ``work(chain, objects)``, from all beginnings of the sequence."""
    tables = model.tables
    known = model._with_tables(np.eye(tables.phases.shape[1])[phase], tables.start, tables.steps, ())
    return changes(lambda beginnings: work(known, beginnings), packed, _size(model))


def _local_changes(model: Chain, packed: Packed, phase: int, work: Any) -> Iterator[dict[str, Floats]]:
    """Yield the same, from the k symbols before each position alone.

    What a symbol adds does not depend on anything before k symbols that are known (not ambiguous), so the last such
    stand for the whole beginning. They need not begin a sequence of the model, hence a uniform start, which cancels.
    """
    order, length = model.order, packed.n_points
    starts = _contexts(packed.values, model.alphabet.size, order)
    first, tables = int(np.count_nonzero(starts < 0)), model.tables
    period = tables.phases.shape[1]
    uniform = np.full(tables.start.shape, 1.0 / tables.start.shape[-1])
    chains = [model._with_tables(np.eye(period)[p], uniform, tables.steps, ()) for p in range(period)]
    if first:
        yield from _chain_changes(model, _pieces(packed, np.zeros(1, np.int64), np.array([first])), phase, work)
    longest = int((np.arange(length) - starts).max()) + 1
    most = max(1, BLOCK // max(_size(model), longest))
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
    """Return what the last symbols of pieces of a sequence change."""
    whole: dict[str, Floats] = work(chain, _pieces(packed, starts, ends))
    if chain.order == 0:  # nothing is before
        return whole
    before = work(chain, _pieces(packed, starts, ends - 1))
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
        for blocks in _chain_changes(head, _pieces(packed, np.zeros(1, np.int64), np.array([first])), 0, _chain_blocks):
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


def _pieces(packed: Packed, starts: Any, ends: Any) -> Packed:
    """Return pieces of one object as objects."""
    lengths = ends - starts
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    return packed._replace(values=packed.values[rows], offsets=offsets)


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


@position_statistics.register
def _periodic(model: PeriodicChain, packed: Packed) -> Iterator[Statistics]:
    """Weigh what positions add under each start phase with the posterior of that phase."""
    shares, priors = model.posterior(packed)[0][0], model.tables.phases[0]
    phases = np.flatnonzero(priors)
    works = [_chain_blocks if shares[p] > 0 else _chain_logs for p in phases]
    path = np.log(priors[phases])  # joint with what has been seen so far
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


@position_statistics.register
def _lds(model: LDS, packed: Packed) -> Iterator[Statistics]:
    model.statistics(packed)  # refuses where derivatives are lost
    logs, blocks = position_derivatives(model.systems(), packed.values)
    if not abs(logs.sum() - model.log_prob(packed)[0]) <= LOST:  # that of a filter which takes more care
        found = changes(lambda beginnings: {"logs": model.log_prob(beginnings)}, packed, 1)
        logs = np.concatenate([part["logs"] for part in found])
    yield Statistics(model, logs, np.ones(packed.n_points, np.int64), blocks)


@position_statistics.register
def _factorial(model: FactorialHMM, packed: Packed) -> Iterator[Statistics]:
    logs, blocks = position_blocks(model, packed)
    yield Statistics(model, logs, np.ones(packed.n_points, np.int64), blocks)
