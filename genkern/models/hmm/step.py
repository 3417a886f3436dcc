"""The M-step of hidden Markov models, over one model or a stack of them."""

from __future__ import annotations

import numpy as np

from genkern.core.arrays.rows import expected_rows, log_pseudocounts
from genkern.models.base import Statistics
from genkern.models.estimator import LeafEstimator
from genkern.models.hmm.model import HMM, emission_blocks
from genkern.validation import Floats


def log_prior(model: HMM, emission: LeafEstimator, pseudocount: float) -> Floats:
    """Return the log prior (batch) of pseudocounts on allowed start, transition, stop and emission parameters."""
    prior = emission.log_prior(model.emissions) + log_pseudocounts(model.start, pseudocount)
    prior = prior + log_pseudocounts(model.transitions, pseudocount, 2)
    return prior if model.final is None else prior + log_pseudocounts(model.final, pseudocount)


def maximize(statistics: Statistics, emission: LeafEstimator, pseudocount: float) -> HMM:
    """Return the M-step's model, of the batch of the model that the statistics were taken under."""
    model: HMM = statistics.model
    added = np.full(model.n_states, float(pseudocount))  # zeros of the structure are zeros of the model
    start = expected_rows(model.start, statistics["start"], added)
    end = stop = None
    if model.stop is None:
        steps = expected_rows(model.transitions, statistics["transitions"], added)
    else:
        joint = np.concatenate([model.transitions, model.stop[..., None]], axis=-1)
        raw = np.concatenate([statistics["transitions"], statistics["stop"][..., None]], axis=-1)
        rows = expected_rows(joint, raw, np.append(added, pseudocount))
        steps, stop = rows[..., :-1], rows[..., -1]
    if model.end is not None:
        end = expected_rows(model.end, statistics["end"], added)
    emissions = emission.maximize_blocks(emission_blocks(statistics), model.emissions)
    return HMM._restore(start, steps, emissions, end, stop)
