"""What each observation of one series adds to the log-likelihood and the statistics of a factorial model."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from genkern.core import factorial as core
from genkern.models.factorial_evidence import chains_of, moments, observe
from genkern.models.factorial_passes import chain_blocks
from genkern.models.leaf import refuse_impossible
from genkern.objects import Packed
from genkern.validation import Floats

BLOCK = 1 << 22  # log densities of joint states held at a time


def position_blocks(model: Any, packed: Packed) -> tuple[Floats, dict[str, Floats]]:
    r"""Return :math:`\log p(x_t | x_0 \dots x_{t-1})` (T,) and blocks of expected statistics with a group per position.

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
        starts = [np.log(part) for part in model.starts]
        belief = np.sum([part[states[:, c] - shifts[c]] for c, part in enumerate(starts)], axis=0)
    logs, step = np.empty(len(evidence.linear)), max(1, BLOCK // len(states))
    for low in range(0, len(logs), step):
        some = slice(low, low + step)
        table = evidence.constant[some, None] + evidence.linear[some] @ indicators.T
        table -= 0.5 * squares[evidence.pattern[some]]
        for t, row in enumerate(table, start=low):
            belief = belief + row
            logs[t] = logsumexp(belief)
            joint = np.exp(belief - logs[t]).reshape(sizes)
            for matrix in model.transitions:  # each turns the first axis into the last
                joint = np.tensordot(joint, matrix, axes=(0, 0))
            with np.errstate(divide="ignore"):
                belief = np.log(joint.ravel())
    return logs
