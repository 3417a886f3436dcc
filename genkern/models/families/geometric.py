"""Products of geometric distributions over vectors of counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.models.families.exponential_family import ConjugateEstimator, ExponentialFamily, observed
from genkern.models.families.field_leaf import refuse_beyond
from genkern.models.families.negative_binomial import no_count
from genkern.validation import Floats


class Geometric(ExponentialFamily):
    r"""Products of geometric distributions, :math:`p(x) = \prod_j p_j (1 - p_j)^{x_j}` on 0, 1, 2, ...

    The number of failures before the first success.

    Parameters
    ----------
    prob : array-like of shape batch + (d,)
        Probabilities of success, in (0, 1]. A number means d = 1.

    Notes
    -----
    NaN entries of a point are missing and do not count. Coordinates: the logit of a probability in softmax
    coordinates, its square root in sqrt coordinates, else itself.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 3.

    Examples
    --------
    >>> from genkern import Geometric
    >>> Geometric(0.5).log_prob([[0], [2]]).round(4)
    array([-0.6931, -2.0794])
    """

    _fields = ("prob",)
    family_name = "geometric"
    _ranges = ("success",)
    _support = "a whole number >= 0 (NaN if missing)"
    terms = ("x", "weight")
    prob: Floats

    def __init__(self, prob: ArrayLike):
        self._set(prob=prob)

    outside = staticmethod(no_count)

    @staticmethod
    def sufficient(points: Floats) -> list[Floats]:
        """Return x and one."""
        return [points, observed(points)]

    def natural(self) -> list[Floats]:
        """Return the logarithms of the probabilities of failure and of success."""
        with np.errstate(divide="ignore"):
            return [np.log1p(-self.prob), np.log(self.prob)]

    def slopes(self, blocks: dict[str, Floats]) -> list[Floats]:
        """Return derivatives by the logit: 1 - prob - prob x."""
        return [blocks["weight"] * (1.0 - self.prob) - blocks["x"] * self.prob]

    def unit_information(self) -> list[list[Floats | float]]:
        """Return the probability of failure."""
        return [[1.0 - self.prob]]

    def draw(self, which: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """Return one vector from each named member."""
        refuse_beyond(1.0 / self.prob, "Geometric")
        return rng.geometric(self.prob[which]).astype(np.float64) - 1.0


class GeometricEstimator(ConjugateEstimator):
    r"""Probabilities of success, with a Beta prior.

    .. math:: \hat p_{ml} = \frac{n}{n + \sum x}, \quad \hat p_{map} = \frac{n + a - 1}{n + a - 1 + \sum x + b - 1}

    Parameters
    ----------
    estimate : {"map", "ml"}, default="map"
        Mode of the posterior, or maximum likelihood. The posterior predictive distribution is not in the family and
        not offered.
    prior : pair of floats (a, b), default=(1.01, 1.01)
        Parameters of the Beta prior on every probability, at least 1 each: a - 1 further successes and b - 1 failures.
        The default keeps data of zeros from making every other count impossible.

    Attributes
    ----------
    model_ : Geometric

    Examples
    --------
    >>> from genkern import GeometricEstimator
    >>> GeometricEstimator("ml").fit([[0], [2]]).model_.prob
    array([0.5])
    """

    family = Geometric
    neutral = (1.0, 1.0)

    def __init__(self, estimate: str = "map", prior: Any = (1.01, 1.01)):
        self.estimate = estimate
        self.prior = prior

    def pseudo_sums(self, d: int) -> list[float]:
        """Return the failures and successes of the prior."""
        successes, failures = self.excess()
        return [failures, successes]

    def solve(self, sums: list[Floats]) -> list[Floats]:
        """Return shares of successes."""
        failures, successes = sums
        return [successes / (successes + failures)]
