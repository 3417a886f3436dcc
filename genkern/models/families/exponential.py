"""Products of exponential distributions over vectors of positive numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.models.families.exponential_family import ConjugateEstimator, ExponentialFamily, observed
from genkern.models.families.gamma import not_positive
from genkern.validation import Floats


class Exponential(ExponentialFamily):
    r"""Products of exponential distributions, :math:`p(x) = \prod_j e^{-x_j / \beta_j} / \beta_j`.

    Parameters
    ----------
    scale : array-like of shape batch + (d,)
        Means, positive. A number means d = 1.

    Notes
    -----
    NaN entries of a point are missing and do not count. Coordinates: the logarithm of a scale in softmax coordinates,
    its square root in sqrt coordinates, else itself.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 3.4 and table 1.

    Examples
    --------
    >>> from genkern import Exponential
    >>> Exponential(2.0).log_prob([[1.0], [4.0]]).round(4)
    array([-1.1931, -2.6931])
    """

    _fields = ("scale",)
    family_name = "exponential"
    _ranges = ("positive",)
    _support = "a positive number (NaN if missing)"
    terms = ("x", "weight")
    scale: Floats

    def __init__(self, scale: ArrayLike):
        self._set(scale=scale)

    outside = staticmethod(not_positive)

    @staticmethod
    def sufficient(points: Floats) -> list[Floats]:
        """Return x and one."""
        return [points, observed(points)]

    def natural(self) -> list[Floats]:
        """Return minus the inverse of the scale, and minus its logarithm."""
        return [-1.0 / self.scale, -np.log(self.scale)]

    def slopes(self, blocks: dict[str, Floats]) -> list[Floats]:
        """Return derivatives by the logarithm: x / scale - 1."""
        return [blocks["x"] / self.scale - blocks["weight"]]

    def unit_information(self) -> list[list[Floats | float]]:
        """Return one."""
        return [[1.0]]

    def draw(self, which: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """Return one vector from each named member."""
        return np.maximum(rng.exponential(self.scale[which]), np.finfo(np.float64).tiny)


class ExponentialEstimator(ConjugateEstimator):
    r"""Scales from means, with a Gamma prior of shape a and rate b on the inverse of the scale.

    .. math:: \hat\beta_{ml} = \frac{\sum x}{n}, \quad \hat\beta_{map} = \frac{\sum x + b}{n + a - 1}

    Parameters
    ----------
    estimate : {"map", "ml"}, default="map"
        Mode of the posterior of the inverse scale, or maximum likelihood. The posterior predictive distribution, that
        of Lomax, is not in the family and not offered.
    prior : pair of floats (a, b), default=(1.0, 0.0)
        Shape (at least 1) and rate (at least 0, in units of the data): a - 1 further observations, whose sum is b. The
        default adds nothing, so that the estimate does not depend on units.

    Attributes
    ----------
    model_ : Exponential

    Examples
    --------
    >>> from genkern import ExponentialEstimator
    >>> ExponentialEstimator(prior=(2.0, 6.0)).fit([[1.0], [2.0]]).model_.scale
    array([3.])
    """

    family = Exponential
    neutral = (1.0, 0.0)

    def __init__(self, estimate: str = "map", prior: Any = (1.0, 0.0)):
        self.estimate = estimate
        self.prior = prior

    def pseudo_sums(self, d: int) -> list[float]:
        """Return the sum and the number of the prior's observations."""
        number, total = self.excess()
        return [total, number]

    @property
    def has_units(self) -> bool:
        """Whether channels are in units of their own."""
        return True

    def solve(self, sums: list[Floats]) -> list[Floats]:
        """Return means."""
        total, weight = sums
        return [total / weight]
