r"""The M-step of Markov chains: expected counts, smoothed towards the chain of the next lower order.

.. math:: θ_k(s | c) = \frac{N(c, s) + ε + a\, θ_{k-1}(s | c')}{\sum_u N(c, u) + m ε + a}, \qquad θ_{-1} = 1/m,

where c' is the context c without its oldest symbol: the mode under a Dirichlet prior centred at the lower order. The
law of the first k symbols is smoothed in the same way towards that of the chain of order k - 1, and ε is added to all
counts of phases. Counts of lower orders are sums of those of order k; the first symbols count as soon as they have a
context.

References
----------
MacKay & Peto (1995), A hierarchical Dirichlet language model, section 3.
Salzberg, Delcher, Kasif & White (1998), Microbial gene identification using interpolated Markov models.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr, xlogy

from genkern.core.arrays.rows import expected_rows
from genkern.models.base import Statistics
from genkern.models.markov.base import Chain
from genkern.validation import Floats


class Smoothing(NamedTuple):
    """The pseudocount ε and the strength a of the lower order."""

    pseudocount: float
    backoff: float


class Laws(NamedTuple):
    """Laws, or counts, of chains: start (G, S, C), steps (G, Q, C, m), and the table (S,) of the first step."""

    start: Floats
    steps: Floats
    begin: NDArray[np.int64]


def maximize(statistics: Statistics, smoothing: Smoothing, centre: Laws | None = None) -> tuple[Any, Laws | None]:
    """Return the chain, or a stack of chains, that maximises the expected log posterior, and the prior's centre.

    If no centre is given, it is the chain of the next lower order, smoothed likewise; None without back-off.
    """
    model: Chain = statistics.model
    tables, contexts = model.tables, model.alphabet.size**model.order
    steps_raw = statistics["transitions"].reshape(-1, *tables.steps.shape[1:])
    shape = (len(steps_raw), *tables.start.shape[1:])
    start_raw = statistics["start"].reshape(shape) if model.order else np.zeros(shape)
    start, steps = np.broadcast_to(tables.start, shape), np.broadcast_to(tables.steps, steps_raw.shape)
    if centre is None and smoothing.backoff > 0:
        counts = Laws(start * start_raw, steps * steps_raw, tables.begin)
        centre = _centre(counts, model._by_position, smoothing)
    start = expected_rows(start, start_raw, _prior(centre and centre.start, contexts, smoothing))
    steps = expected_rows(steps, steps_raw, _prior(centre and centre.steps, model.alphabet.size, smoothing))
    phases = np.broadcast_to(tables.phases, start.shape[:2])
    if "phases" in statistics.blocks:
        # A starting model that begins in one phase does not forbid the others: here pseudocounts also fill zeros.
        filled = phases * statistics["phases"].reshape(phases.shape) + smoothing.pseudocount
        phases = filled / filled.sum(axis=-1, keepdims=True)
    batch = () if len(steps) == 1 and not model.shape else (len(steps),)
    return model._with_tables(phases, start, steps, batch), centre


def log_prior(model: Chain, smoothing: Smoothing, centre: Laws | None) -> Floats:
    r"""Return :math:`\sum ε \log θ - a\, \mathrm{KL}(θ_{k-1} \| θ)` of each model, (G,)."""
    tables, total = model.tables, np.zeros(len(model.tables.steps))
    parts = [tables.phases, tables.start, tables.steps]
    if smoothing.pseudocount > 0:
        for part in parts:
            total += xlogy(smoothing.pseudocount, part).reshape(len(total), -1).sum(axis=1)
    if centre is not None:
        for middle, part in zip((centre.start, centre.steps), parts[1:]):
            total -= smoothing.backoff * rel_entr(middle, part).reshape(len(total), -1).sum(axis=1)
    return total


def _prior(centre: Floats | None, width: int, smoothing: Smoothing) -> Floats:
    """Return the prior's counts, (..., width)."""
    if centre is None:
        return np.full(width, smoothing.pseudocount)
    return smoothing.pseudocount + smoothing.backoff * centre


def _centre(counts: Laws, by_position: bool, smoothing: Smoothing) -> Laws:
    """Return the smoothed chain of the next lower order as one of this order."""
    if counts.start.shape[2] == 1:
        return counts._replace(
            start=np.ones_like(counts.start), steps=np.full(counts.steps.shape, 1.0 / counts.steps.shape[3])
        )
    fewer = _lower(counts, by_position)
    middle = _centre(fewer, by_position, smoothing)
    start, steps = (
        counted + smoothing.pseudocount + smoothing.backoff * law
        for counted, law in ((fewer.start, middle.start), (fewer.steps, middle.steps))
    )
    start /= start.sum(axis=-1, keepdims=True)
    steps /= steps.sum(axis=-1, keepdims=True)
    groups, phases, contexts = counts.start.shape
    joint = start[..., None] * steps[:, fewer.begin]
    rest = steps[:, 1:] if by_position else steps
    lifted = np.broadcast_to(rest[:, :, None], (*rest.shape[:2], contexts // rest.shape[2], *rest.shape[2:]))
    return Laws(joint.reshape(groups, phases, contexts), lifted.reshape(counts.steps.shape), counts.begin)


def _lower(counts: Laws, by_position: bool) -> Laws:
    """Return the counts of the next lower order: the oldest symbol is dropped, the k-th gets a context of its own."""
    groups, tables, contexts, m = counts.steps.shape
    first = counts.start.reshape(groups, -1, contexts // m, m)
    steps = counts.steps.reshape(groups, tables, m, contexts // m, m).sum(axis=2)
    if by_position:
        return Laws(first.sum(axis=3), np.concatenate([first, steps], axis=1), counts.begin)
    begin = (counts.begin - 1) % tables
    steps[:, begin] += first
    return Laws(first.sum(axis=3), steps, begin)
