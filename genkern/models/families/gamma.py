"""Products of Gamma distributions over vectors of positive numbers."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln, xlogy, zeta

from genkern.core.families.newton import gamma_shape
from genkern.models.families.exponential_family import ExponentialFamily, FamilyEstimator, observed
from genkern.validation import Floats, check_number

EQUAL = 1e-10  # relative spread below which points are equal but for the rounding of sums


class Gamma(ExponentialFamily):
    r"""Products of Gamma distributions.

    .. math:: p(x) = \prod_j \frac{x_j^{\alpha_j - 1} e^{-x_j / \beta_j}}{\Gamma(\alpha_j)\, \beta_j^{\alpha_j}}

    Parameters
    ----------
    shape : array-like of shape batch + (d,)
        Shapes, positive. A number means d = 1. (The attribute is ``shapes``; ``shape`` is the batch of every model.)
    scale : array-like of shape batch + (d,), or float
        Scales, positive; the mean is shape times scale.

    Notes
    -----
    NaN entries of a point are missing and do not count. Coordinates: logarithms in softmax coordinates, square roots
    in sqrt coordinates, else the values.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 3.4 and table 1.

    Examples
    --------
    >>> from genkern import Gamma
    >>> Gamma(2.0, 0.5).log_prob([[1.0], [2.0]]).round(4)
    array([-0.6137, -1.9206])
    """

    _fields = ("shapes", "scale")
    family_name = "gamma"
    _ranges = ("positive", "positive")
    _support = "a positive number (NaN if missing)"
    terms = ("log", "x", "weight")
    shapes: Floats
    scale: Floats

    def __init__(self, shape: ArrayLike, scale: ArrayLike):
        self._set(shapes=shape, scale=scale)

    @classmethod
    def _checked(cls, *fields: Any) -> Self:
        return cls(*fields)

    @staticmethod
    def outside(points: Floats) -> NDArray[np.bool_]:
        """Return where points are not positive."""
        return not_positive(points)

    @staticmethod
    def sufficient(points: Floats) -> list[Floats]:
        """Return log x, x and one."""
        return [np.log(points), points, observed(points)]

    def natural(self) -> list[Floats]:
        """Return shape - 1, minus the inverse of the scale, and minus the log normaliser."""
        return [self.shapes - 1.0, -1.0 / self.scale, -gammaln(self.shapes) - self.shapes * np.log(self.scale)]

    def slopes(self, blocks: dict[str, Floats]) -> list[Floats]:
        """Return derivatives by the logarithms of shape and scale."""
        expected = digamma(self.shapes) + np.log(self.scale)
        return [
            self.shapes * (blocks["log"] - blocks["weight"] * expected),
            blocks["x"] / self.scale - blocks["weight"] * self.shapes,
        ]

    def unit_information(self) -> list[list[Floats | float]]:
        """Return the information about the logarithms of shape and scale."""
        return [[squared_trigamma(self.shapes), self.shapes], [self.shapes, self.shapes]]

    def draw(self, which: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """Return one vector from each named member; numbers too small for a float become the smallest one."""
        return np.maximum(rng.gamma(self.shapes[which], self.scale[which]), np.finfo(np.float64).tiny)


class GammaEstimator(FamilyEstimator):
    r"""Shapes and scales by maximum likelihood, or with a prior on the shape.

    .. math::

        \log\hat\alpha - \psi(\hat\alpha) = \frac{n g + \epsilon \gamma}{n + \epsilon}, \quad
        g = \log\bar x - \overline{\log x}, \quad \hat\beta = \bar x / \hat\alpha

    Parameters
    ----------
    pseudocount : float, default=0.01
        Number :math:`\epsilon` of further observations whose gap g between log of the mean and mean of the log is that
        of an exponential distribution, Euler's constant :math:`\gamma`, whatever their scale: the mode under the prior
        :math:`p(\alpha) \propto [\alpha^\alpha e^{-(1 + \gamma) \alpha} / \Gamma(\alpha)]^\epsilon`. It keeps the shape
        of equal points finite. Zero is plain maximum likelihood, which such points do not have.

    Attributes
    ----------
    model_ : Gamma

    Notes
    -----
    The equation for the shape is solved to machine precision by Newton's method.

    References
    ----------
    Minka (2002), Estimating a Gamma distribution.

    Examples
    --------
    >>> from genkern import GammaEstimator
    >>> model = GammaEstimator(pseudocount=0).fit([[1.0], [2.0], [3.0]]).model_
    >>> (model.shapes * model.scale).round(6)
    array([2.])
    """

    family = Gamma
    degenerate = (
        "all its points are equal, so that the likelihood grows with the shape without end. Give a pseudocount > 0."
    )

    def __init__(self, pseudocount: float = 0.01):
        self.pseudocount = pseudocount

    def check_parameters(self) -> None:
        """Raise for a negative pseudocount."""
        check_number(self.pseudocount, "pseudocount", "GammaEstimator")

    @property
    def has_units(self) -> bool:
        """Whether channels are in units of their own."""
        return True

    def solve(self, sums: list[Floats]) -> list[Floats]:
        """Return shapes and scales."""
        logs, total, weight = sums
        mean, mean_log = total / weight, logs / weight
        gap = np.maximum(np.log(mean) - mean_log, 0.0)  # of equal points it is rounding
        gap = (weight * gap + self.pseudocount * np.euler_gamma) / (weight + self.pseudocount)
        gap[gap <= EQUAL * (1.0 + np.abs(mean_log))] = np.nan
        shapes = gamma_shape(gap)
        return [shapes, mean / shapes]

    def log_prior(self, leaf: Gamma) -> Floats:
        """Return the log prior of the shapes."""
        a = leaf.shapes
        prior: Floats = (xlogy(a, a) - (1.0 + np.euler_gamma) * a - gammaln(a)).sum(axis=(-1, -2))
        return self.pseudocount * prior


def squared_trigamma(a: Floats) -> Floats:
    r"""Return :math:`a^2 \psi'(a) = 1 + a^2 \psi'(a + 1)`, also where one of both is beyond the range of numbers."""
    value: Floats = 1.0 + a * (a * zeta(2.0, a + 1.0))
    return value


def not_positive(points: Floats) -> NDArray[np.bool_]:
    """Return where points are neither positive nor missing."""
    return points <= 0
