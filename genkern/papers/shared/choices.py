"""Settings chosen in two ways: as papers often have it, and within training data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

DIGITS = 12  # mean errors are compared to so many, so that sums in another order are equal


class Choice(NamedTuple):
    """The errors of a method over its grid, chosen in two ways.

    Parameters
    ----------
    setting : dict
        The setting with the lowest mean error over the test parts, the first of equals.
    best : list of float
        Its error in every part; as the setting was chosen by these, this flatters the method with the largest grid.
    nested : list of float
        Errors of every part, with the setting chosen within its training data, the first of equals.
    picked : list of int
        Places of the settings of ``nested``.
    """

    setting: dict[str, Any]
    best: list[float]
    nested: list[float]
    picked: list[int]


def choose(settings: Sequence[dict[str, Any]], errors: Any, inner: Any) -> Choice:
    """Return both choices from errors on test parts and errors within training data, (settings, parts) each."""
    tested, within = np.asarray(errors, dtype=np.float64), np.asarray(inner, dtype=np.float64)
    best = int(tested.mean(axis=1).round(DIGITS).argmin())
    picked = within.argmin(axis=0)
    nested = tested[picked, np.arange(tested.shape[1])]
    return Choice(dict(settings[best]), tested[best].tolist(), nested.tolist(), picked.tolist())


def spell_setting(setting: Mapping[str, Any]) -> str:
    """Return a setting in words: C = 10, lam = 0.1."""
    return ", ".join(f"{key.rpartition('__')[2]} = {value}" for key, value in setting.items())
