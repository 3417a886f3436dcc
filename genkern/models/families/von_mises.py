"""Products of von Mises distributions over vectors of angles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import i0e

from genkern.core.families.newton import bessel_ratio, bessel_ratio_slope, inverse_bessel_ratio
from genkern.models.families.exponential_family import ExponentialFamily, FamilyEstimator, observed
from genkern.models.families.gamma import EQUAL
from genkern.validation import Floats, check_number


class VonMises(ExponentialFamily):
    r"""Products of von Mises distributions over angles in radians.

    .. math:: p(x) = \prod_j \frac{e^{\kappa_j \cos(x_j - \mu_j)}}{2 \pi I_0(\kappa_j)}

    Parameters
    ----------
    mean : array-like of shape batch + (d,)
        Mean directions. A number means d = 1.
    concentration : array-like of shape batch + (d,), or float
        Concentrations, at least zero; zero is the uniform distribution on the circle.

    Notes
    -----
    Points are any real numbers, taken modulo :math:`2\pi`; densities are per radian. NaN entries are missing and do not
    count. Coordinates: the logarithm of a concentration in softmax coordinates, its square root in sqrt coordinates,
    else itself; mean directions in radians.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 3.

    Examples
    --------
    >>> from genkern import VonMises
    >>> VonMises(0.0, 1.0).log_prob([[0.0], [6.283185307]]).round(4)
    array([-1.0738, -1.0738])
    """

    _fields = ("mean", "concentration")
    family_name = "vonmises"
    _ranges = ("real", "nonnegative")
    _support = "a number"
    terms = ("cos", "sin", "weight")
    mean: Floats
    concentration: Floats

    def __init__(self, mean: ArrayLike, concentration: ArrayLike):
        self._set(mean=mean, concentration=concentration)

    @staticmethod
    def outside(points: Floats) -> NDArray[np.bool_]:
        """Return nowhere: every number is an angle."""
        return np.zeros(points.shape, bool)

    @staticmethod
    def sufficient(points: Floats) -> list[Floats]:
        """Return cosine, sine and one."""
        return [np.cos(points), np.sin(points), observed(points)]

    def natural(self) -> list[Floats]:
        """Return concentration times direction, and minus the log normaliser."""
        kappa = self.concentration
        normaliser = np.log(2.0 * np.pi * i0e(kappa)) + kappa
        return [kappa * np.cos(self.mean), kappa * np.sin(self.mean), -normaliser]

    def slopes(self, blocks: dict[str, Floats]) -> list[Floats]:
        """Return derivatives by the mean and the logarithm of the concentration."""
        cos, sin = np.cos(self.mean), np.sin(self.mean)
        along = blocks["cos"] * cos + blocks["sin"] * sin
        across = blocks["sin"] * cos - blocks["cos"] * sin
        kappa = self.concentration
        return [kappa * across, kappa * (along - blocks["weight"] * bessel_ratio(kappa))]

    def unit_information(self) -> list[list[Floats | float]]:
        """Return the information about the mean and the logarithm of the concentration, which are uncorrelated."""
        kappa = self.concentration
        bounded = np.minimum(kappa, 1e100)  # beyond, the information about the logarithm is 1/2 to the last bit
        about_log = bounded**2 * bessel_ratio_slope(bounded)
        return [[kappa * bessel_ratio(kappa), 0.0], [0.0, about_log]]

    def draw(self, which: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """Return one vector of angles in [-pi, pi] from each named member."""
        return rng.vonmises(self.mean[which], self.concentration[which])


class VonMisesEstimator(FamilyEstimator):
    r"""Mean directions and concentrations by maximum likelihood, or with a conjugate prior.

    .. math::

        \hat\mu = \arg \sum e^{ix}, \quad \frac{I_1(\hat\kappa)}{I_0(\hat\kappa)} = \frac{|\sum e^{ix}|}{n + \epsilon}

    Parameters
    ----------
    pseudocount : float, default=0.01
        Number :math:`\epsilon` of further observations, spread evenly over the circle (the conjugate prior). It keeps
        the concentration of equal angles finite. Zero is plain maximum likelihood, which such angles do not have.

    Attributes
    ----------
    model_ : VonMises
        With mean directions in (-pi, pi].

    Notes
    -----
    The equation for the concentration is solved to machine precision by Newton's method.

    Examples
    --------
    >>> from genkern import VonMisesEstimator
    >>> VonMisesEstimator(pseudocount=0).fit([[0.4], [0.6]]).model_.mean.round(6)
    array([0.5])
    """

    family = VonMises
    degenerate = (
        "all its angles are equal, so that the likelihood grows with the concentration without end. Give a pseudocount "
        "> 0."
    )

    def __init__(self, pseudocount: float = 0.01):
        self.pseudocount = pseudocount

    def check_parameters(self) -> None:
        """Raise for a negative pseudocount."""
        check_number(self.pseudocount, "pseudocount", "VonMisesEstimator")

    def pseudo_sums(self, d: int) -> list[float]:
        """Return the cosines, sines and number of the prior's observations."""
        return [0.0, 0.0, self.pseudocount]

    def solve(self, sums: list[Floats]) -> list[Floats]:
        """Return mean directions and concentrations."""
        cos, sin, weight = sums
        length = np.hypot(cos, sin) / weight
        length[length >= 1.0 - EQUAL] = np.nan
        return [np.arctan2(sin, cos), inverse_bessel_ratio(length)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = False
        return tags
