"""Hidden Markov models with some states known: passes over the paths that labels allow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.core.arrays.scaled_rows import scaled_rows
from genkern.core.hmm import passes as core
from genkern.data.intake import locate
from genkern.data.objects import Packed
from genkern.models.base import Statistics
from genkern.models.fit.em import expected
from genkern.models.hmm.model import HMM
from genkern.validation import Floats

Labels = NDArray[np.int64] | None  # (N,) states of all positions, -1 where unknown; None where all are


def read_states(states: Any, packed: Packed, sample_weight: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return a label for each position of the packed objects, and which positions count; of others nothing is known."""
    who = "HMMEstimator"
    if len(states) != packed.n_objects:
        raise ValueError(f"{who}: 'states' must have one array for each object, {packed.n_objects}. Got {len(states)}.")
    for i, (path, length) in enumerate(zip(states, packed.lengths.tolist())):
        found = np.asarray(path)
        if found.shape != (length,):
            raise ValueError(
                f"{who}: 'states' of object {i} must have shape {(length,)}, one for each position. Got {found.shape}."
            )
        if found.dtype.kind not in "iu":
            raise ValueError(f"{who}: 'states' of object {i} must be integers, -1 where unknown. Got {found.dtype}.")
    counts = np.ones(packed.n_objects, bool) if sample_weight is None else np.asarray(sample_weight) > 0
    each = np.repeat(counts, packed.lengths)
    return np.where(each, np.concatenate([np.asarray(path, np.int64) for path in states]), -1), each


def check_states(labels: Labels, packed: Packed, n: int) -> None:
    """Raise for a label that is none of n states, nor -1 for an unknown one."""
    if labels is None:
        return
    wrong = np.flatnonzero((labels < -1) | (labels >= n))
    if len(wrong):
        index, position = locate(packed.offsets, int(wrong[0]))
        raise ValueError(
            f"HMMEstimator: 'states' of object {index}, position {position} is {labels[wrong[0]]}; expected 0 to "
            f"{n - 1}, or -1 where unknown. Raise n_states, or leave it 'auto'."
        )


def log_prob(model: HMM, packed: Packed, labels: Labels, n_jobs: int | None) -> Floats:
    """Return the log-likelihood of each object, with its labels, under the model, or under its own."""
    evidence = _evidence(model, packed, labels)
    return core.log_prob(model.chains(), evidence, packed.offsets, n_jobs=n_jobs, own=bool(model.shape))


def expect(model: HMM, packed: Packed, labels: Labels, n_jobs: int | None) -> Statistics:
    """Return the statistics of ``HMM.statistics``, summed over objects for one model, over paths that labels allow."""
    if labels is None:
        return expected(model, packed, n_jobs=n_jobs)
    totals = packed.weights is None and not model.shape
    evidence = _evidence(model, packed, labels)
    sums = core.gradients(model.chains(), evidence, packed.offsets, totals=totals, n_jobs=n_jobs, own=bool(model.shape))
    try:
        model._refuse_impossible(sums.log_prob, packed, evidence)
    except ValueError as error:
        _refuse_forbidden(model, packed, sums.log_prob, error)
        raise
    emitted = model.emissions.weigh(packed, evidence.table * sums.emissions, totals=totals)
    found = model._named(sums, packed.lengths, emitted).weighted(packed.weights)
    return found if totals or model.shape else found.total()


def _refuse_forbidden(model: HMM, packed: Packed, log_prob: Floats, error: ValueError) -> None:
    """Raise where the labels of an object leave no path that the model allows, and there is one without them."""
    first = int(np.argmin(log_prob))
    if np.isfinite((model[[first]] if model.shape else model).log_prob(packed.take([first]))).all():
        where = str(error).removeprefix("HMM: ").split(";")[0]
        raise ValueError(
            f"HMMEstimator: with its 'states', {where}: the structure, or a zero in 'init', forbids that path. Mend "
            "the states, or use structure='ergodic' or another 'init'."
        ) from None


def _evidence(model: HMM, packed: Packed, labels: Labels) -> core.Evidence:
    """Return emission factors, zero for states that a label excludes: one row for each position.

    The objects may be repeated, as for restarts.
    """
    if labels is None:
        return model.emissions.evidence(packed)
    known = np.tile(labels, packed.n_points // len(labels))
    allowed = (known < 0)[:, None] | (known[:, None] == np.arange(model.n_states))
    logs = np.where(allowed, model.emissions._log_densities(packed), -np.inf)
    table, shift, raised = scaled_rows(logs)
    return core.Evidence(table, shift, None, logs if raised else None)
