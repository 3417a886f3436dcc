"""Leaps of EM: extrapolation of its steps, for models that creep to their optimum."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.validation import Floats

BOUND = 4.0  # the longest leap at first, in the units of a step; and by how much it grows and shrinks


class Leaps:
    r"""Squared extrapolation of EM for one model: two steps, a leap along them, and a step from there.

    .. math::

        \theta' = \theta_0 + 2 a r + a^2 v, \qquad r = \theta_1 - \theta_0, \qquad
        v = \theta_2 - 2 \theta_1 + \theta_0, \qquad a = \lVert r \rVert / \lVert v \rVert

    in softmax coordinates, where every point is a model; a = 1 is no leap. If the objective at :math:`\theta'` is below
    that at :math:`\theta_1`, EM goes on from :math:`\theta_2`, so that the objective never falls.

    References
    ----------
    Varadhan & Roland (2008), Simple and globally convergent methods for accelerating the convergence of any EM
    algorithm, scheme SqS3.
    """

    def __init__(self) -> None:
        self._bound = BOUND
        self._path: list[Floats] = []
        self._plain: Any = None  # the model of the last step, while EM is at the end of a leap

    @property
    def begins(self) -> bool:
        """Whether EM is at the beginning of two steps and a leap."""
        return not self._path and self._plain is None

    def follow(self, old: Any, new: Any) -> Any:
        """Return where EM goes on after a step from an old model to a new one: there, or at the end of a leap."""
        if self._plain is not None:
            self._plain = None
            return new
        self._path.append(old.parameters())
        if len(self._path) < 2:
            return new
        (first, second), self._path = self._path, []
        moved = self._extrapolated(first, second, new.parameters())
        if moved is None:
            return new
        self._plain = new
        return new.with_parameters(moved)

    def refused(self, better: bool) -> Any:
        """Return the model to go back to if a leap has led to none that is better; else None."""
        if self._plain is None or better:
            return None
        plain, self._plain = self._plain, None
        self._bound = max(BOUND, self._bound / BOUND)
        return plain

    def _extrapolated(self, first: Floats, second: Floats, third: Floats) -> Floats | None:
        """Return the parameters at the end of a leap, None where there is none to take; zeros stay zeros."""
        inside = np.isfinite(first) & np.isfinite(second) & np.isfinite(third)
        r = np.subtract(second, first, where=inside, out=np.zeros_like(first))
        v = np.subtract(third, second, where=inside, out=np.zeros_like(first)) - r
        bend = float(np.linalg.norm(v))
        length = min(float(np.linalg.norm(r)) / bend, self._bound) if bend > 0.0 else 0.0
        if length <= 1.0:
            return None
        if length == self._bound:
            self._bound *= BOUND
        return np.where(inside, first + 2.0 * length * r + length**2 * v, third)
