r"""EM in one pass over batches of objects.

After the E-step of batch k, counted from 0, the mean statistics of an observation are those before and those of the
batch, interpolated, and the M-step follows at once (Cappé & Moulines 2009):

.. math:: \bar s_k = (1 - \eta_k) \, \bar s_{k-1} + \eta_k \, s_k / T_k, \qquad \eta_k = (k + 1)^{-0.7}

Statistics belong to the model under which they were taken, so those before are moved to the present one first.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from genkern.data.objects import Packed
from genkern.models.base import Statistics
from genkern.models.families.gaussian import Gaussian
from genkern.models.fit.em import Steps
from genkern.validation import Floats

POWER = 0.7  # between 1/2 and 1, so that the pass converges; the usual choice between fast (1/2) and smooth (1)
PROFILE = ("match", "insert", "entry", "exits", "flanks")  # and transitions
SIMPLEX = frozenset(("start", "transitions", "end", "stop", "phases", "weights", "probs", *PROFILE))
FAINT = 1e-290  # probabilities whose expected counts are taken for zero


class Passed(NamedTuple):
    """The model after the last batch, and of every batch its log-likelihood per observation before it was used."""

    model: Any
    history: list[float]


def one_pass(steps: Steps, model: Any, batches: Iterable[Packed]) -> Passed:
    """Return the model after one pass that begins with this one."""
    history: list[float] = []
    held: Statistics | None = None  # of one observation, on average
    seen = 0
    for k, packed in enumerate(batches):
        found = steps.expect(model, packed).total()
        history.append(float(found.log_prob.sum()) / packed.n_points)
        share = (k + 1.0) ** -POWER
        new = _times(found, share / packed.n_points)
        held = new if held is None else _sum(_times(moved(held, model), 1.0 - share), new)
        seen += packed.n_points
        model = steps.maximize(_times(held, float(seen)))
    return Passed(model, history)


def moved(statistics: Statistics, model: Any) -> Statistics:
    """Return total statistics as if they had been taken under another model: the same counts and moments.

    The first derivatives of simplex blocks are counts over probabilities, and moments of Gaussians are centred at their
    means. Sums of other families depend on no parameter.
    """
    blocks = dict(statistics.blocks)
    for name in statistics.blocks:
        path, _, last = name.rpartition(".")
        old, new = (attrgetter(path)(one) if path else one for one in (statistics.model, model))
        if last in SIMPLEX:
            blocks[name] = _counted(statistics[name], getattr(old, last), getattr(new, last))
        elif isinstance(old, Gaussian):
            if last == "cov":  # with "mean" and "weight"
                blocks |= _centred(statistics, path, old.mean - new.mean, old.covariance_type == "full")
        elif last not in getattr(old, "terms", ()):
            raise TypeError(
                f"{type(model).__name__} cannot be fitted in one pass: its statistics {name!r} belong to the model "
                "under which they were taken. Read the objects in each step: one_pass=False."
            )
    return Statistics(model, statistics.log_prob, statistics.lengths, blocks)


def _counted(raw: Floats, old: Floats, new: Floats) -> Floats:
    counts = raw * old.reshape(raw.shape)
    theta = new.reshape(raw.shape)
    return np.divide(counts, theta, out=np.zeros_like(counts), where=theta > FAINT)


def _centred(statistics: Statistics, path: str, shift: Floats, full: bool) -> dict[str, Floats]:
    """Return the moments of Gaussians about other means."""
    prefix = f"{path}." if path else ""
    weight, first, second = (statistics[f"{prefix}{name}"] for name in ("weight", "mean", "cov"))
    gap, share = shift.reshape(first.shape), weight.reshape((*first.shape[:-1], 1))
    if full:
        cross = first[..., :, None] * gap[..., None, :]
        second = second + cross + np.swapaxes(cross, -1, -2) + share[..., None] * gap[..., :, None] * gap[..., None, :]
    else:
        second = second + (2.0 * first + share * gap) * gap
    return {f"{prefix}mean": first + share * gap, f"{prefix}cov": second}


def _times(statistics: Statistics, factor: float) -> Statistics:
    """Return totals times a factor, with the log-likelihood of all objects together."""
    blocks = {name: factor * block for name, block in statistics.blocks.items()}
    lengths = np.array([statistics.lengths.sum()])
    return Statistics(statistics.model, factor * statistics.log_prob.sum(keepdims=True), lengths, blocks)


def _sum(one: Statistics, other: Statistics) -> Statistics:
    blocks = {name: block + other[name] for name, block in one.blocks.items()}
    return Statistics(other.model, one.log_prob + other.log_prob, one.lengths + other.lengths, blocks)
