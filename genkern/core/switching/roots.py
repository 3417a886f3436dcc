"""Likelihoods of switching linear dynamical systems by filters on square roots, one along every path of regimes."""

from __future__ import annotations

import numpy as np

from genkern.core.kalman.passes import Systems
from genkern.core.kalman.roots import LOST, densities, factored, loss_of
from genkern.core.kalman.rounding import EPS
from genkern.core.kalman.steps import Floats, Ints
from genkern.core.switching.types import Regimes, SwitchingSums


def every_path(regimes: int, length: int) -> Ints:
    """Return all paths (S^L, L)."""
    codes, places = np.arange(regimes**length)[:, None], np.arange(length - 1, -1, -1)
    return codes // regimes**places % regimes


def log_weights(start: Floats, transitions: Floats, paths: Ints) -> Floats:
    """Return the log probabilities (N,) of paths."""
    with np.errstate(divide="ignore"):
        logs = np.log(start)[paths[:, 0]]
        return np.asarray(logs + np.log(transitions)[paths[:, :-1], paths[:, 1:]].sum(axis=1))


def mend(sums: SwitchingSums, regimes: Regimes, values: Floats, offsets: Ints) -> None:
    """Replace log-likelihoods in which digits are lost, and their losses, by those of filters on square roots."""
    for i in np.flatnonzero(~(loss_of(sums.lost[:, 0]) <= LOST)):
        start, transitions, *parts = (part[i if len(part) > 1 else 0] for part in regimes)
        x = values[offsets[i] : offsets[i + 1]]
        paths = every_path(len(start), len(x)) if len(start) > 1 else np.zeros((1, len(x)), np.int64)
        weights = log_weights(start, transitions, paths)
        paths, weights = paths[weights > -np.inf], weights[weights > -np.inf]
        systems = Systems(*parts)
        logs, loss = densities(factored(systems), paths, x - systems.offset[paths])
        sums.log_prob[i] = np.logaddexp.reduce(logs + weights)
        sums.lost[i] = loss.max() / EPS, 0.0
        sums.failed[i] = max(sums.failed[i], 0) if np.isnan(logs).any() else -1
