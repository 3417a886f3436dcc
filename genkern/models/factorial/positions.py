"""The contribution of each observation of one series to the log-likelihood and the statistics of a factorial model."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.core.factorial import passes as core
from genkern.data.objects import Packed
from genkern.models.factorial.evidence import chains_of, moments, observe
from genkern.models.factorial.passes import chain_blocks
from genkern.models.leaf import refuse_impossible
from genkern.validation import Floats

BATCH = 1 << 22  # log densities of joint states held at a time


def position_blocks(model: Any, packed: Packed) -> tuple[Floats, dict[str, Floats]]:
    r"""Return :math:`\log p(x_t | x_0 \dots x_{t-1})` (T,) and blocks of expected statistics by position.

    They are those of ``FactorialHMM.statistics``: the first states and the first observation belong to position 0, the
    step into a state to the position of that state.
    """
    model._require_exact("statistics")
    chains, sight, length = chains_of(model), observe(model, packed), packed.n_points
    places = np.arange(length)
    sight = sight._replace(segment=places, segments=np.column_stack([places, sight.evidence.pattern]))
    sums = core.gradients(chains, sight.evidence, packed.offsets, sight.segment, length, by_position=True)
    refuse_impossible(sums.log_prob, "FactorialHMM")
    start = np.zeros((length, sums.start.shape[1]))
    start[0] = sums.start[0]
    blocks = chain_blocks(model.n_states, start, sums.steps) | moments(sight, sums.marginal, sums.pairs)
    return _filter(model, sight.evidence), blocks


def _filter(model: Any, evidence: Any) -> Floats:
    """Return the log probability (T,) of each observation given those before it, by the joint states of all chains."""
    sizes = model.n_states
    grids = np.meshgrid(*(np.arange(k) for k in sizes), indexing="ij")
    shifts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    states = np.stack([grid.ravel() + shift for grid, shift in zip(grids, shifts)], axis=1)
    indicators = np.zeros((len(states), sum(sizes)))
    indicators[np.arange(len(states))[:, None], states] = 1.0
    squares = np.einsum("si,mij,sj->ms", indicators, evidence.quadratic, indicators)
    with np.errstate(divide="ignore"):
        starts, steps = ([np.log(part) for part in parts] for parts in (model.starts, model.transitions))
    belief = np.sum([part[states[:, c] - shifts[c]] for c, part in enumerate(starts)], axis=0)
    logs, some = np.empty(len(evidence.linear)), max(1, BATCH // len(states))
    for low in range(0, len(logs), some):
        part = slice(low, low + some)
        table = evidence.constant[part, None] + evidence.linear[part] @ indicators.T
        table -= 0.5 * squares[evidence.pattern[part]]
        for t, row in enumerate(table, start=low):
            logs[t] = _log_sum((belief + row)[:, None])[0]
            belief = belief + row - logs[t]
            for matrix in steps:  # each turns the first axis of the joint states into the last
                joint = belief.reshape(len(matrix), 1, -1) + matrix[:, :, None]
                belief = _log_sum(joint).T.ravel()
    return logs


def _log_sum(table: Floats) -> Floats:
    """Return the logarithm of the sum of exponentials over the first axis, -inf where all are."""
    peak = table.max(axis=0)
    peak[peak == -np.inf] = 0.0
    with np.errstate(divide="ignore"):
        return peak + np.log(np.exp(table - peak).sum(axis=0))
