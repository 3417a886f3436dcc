"""The E-step position by position: what each observation of one object adds to its expected statistics."""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch
from typing import Any

import numpy as np

from genkern.core.hmm_positions import position_gradients
from genkern.models.base import Statistics
from genkern.models.hmm import HMM
from genkern.models.leaf import Leaf
from genkern.models.markov import PeriodicChain
from genkern.models.markov_base import Chain
from genkern.models.mixture import Mixture
from genkern.models.site import SiteModel
from genkern.objects import Packed
from genkern.validation import Floats

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
    def work(beginnings: Packed) -> dict[str, Floats]:
        found = model.statistics(beginnings)
        return {"log_prob": found.log_prob, **found.blocks}

    for blocks in changes(work, packed, sum(rows.size for rows, _ in model._rows().values())):
        log_prob = blocks.pop("log_prob")
        yield Statistics(model, log_prob, np.ones(len(log_prob), np.int64), blocks)


@position_statistics.register
def _periodic(model: PeriodicChain, packed: Packed) -> Iterator[Statistics]:
    """Weigh what positions add under each start phase with the posterior of that phase."""
    shares, tables = model.posterior(packed)[0][0], model.tables
    phases = np.flatnonzero(shares)
    known = [model._with_tables(np.eye(model.period)[p], tables.start, tables.steps, ()) for p in phases]
    for whole, *parts in zip(_chain(model, packed), *(_chain(chain, packed) for chain in known), strict=True):
        for name, block in whole.blocks.items():
            block[:] = 0.0 if name == "phases" else sum(r * part[name] for r, part in zip(shares[phases], parts))
        yield whole
