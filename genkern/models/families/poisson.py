"""Products of Poisson distributions over vectors of counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from genkern.data.objects import Packed
from genkern.models.families.exponential_family import ConjugateEstimator, ExponentialFamily, observed
from genkern.models.families.field_leaf import refuse_beyond
from genkern.models.families.negative_binomial import NegativeBinomial, no_count
from genkern.validation import Floats


class Poisson(ExponentialFamily):
    r"""Products of Poisson distributions, :math:`p(x) = \prod_j \lambda_j^{x_j} e^{-\lambda_j} / x_j!`.

    Parameters
    ----------
    rate : array-like of shape batch + (d,)
        Means, at least zero. A number means d = 1. A rate of zero allows the count zero only.

    Notes
    -----
    NaN entries of a point are missing and do not count. Coordinates: the logarithm of a rate in softmax coordinates,
    its square root in sqrt coordinates, else itself.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 3, table 1.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import Poisson
    >>> Poisson([2.0, 0.5]).log_prob(np.array([[1, 0], [3, 1]])).round(4)
    array([-1.8069, -2.9055])
    """

    _fields = ("rate",)
    family_name = "poisson"
    _ranges = ("nonnegative",)
    _support = "a whole number >= 0 (NaN if missing)"
    terms = ("x", "weight")
    rate: Floats

    def __init__(self, rate: ArrayLike):
        self._set(rate=rate)

    outside = staticmethod(no_count)

    @staticmethod
    def sufficient(points: Floats) -> list[Floats]:
        """Return x and one."""
        return [points, observed(points)]

    @staticmethod
    def base(points: Floats) -> Floats:
        """Return minus the logarithms of the factorials."""
        logs: Floats = -np.nansum(gammaln(points + 1.0), axis=1)
        return logs

    def natural(self) -> list[Floats]:
        """Return the logarithm of the rate, and minus the rate."""
        with np.errstate(divide="ignore"):
            return [np.log(self.rate), -self.rate]

    def slopes(self, blocks: dict[str, Floats]) -> list[Floats]:
        """Return derivatives by the logarithm: x - rate."""
        return [blocks["x"] - self.rate * blocks["weight"]]

    def unit_information(self) -> list[list[Floats | float]]:
        """Return the variance."""
        return [[self.rate]]

    def draw(self, which: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """Return one vector from each named member."""
        refuse_beyond(self.rate, "Poisson")
        return rng.poisson(self.rate[which]).astype(np.float64)


class PoissonEstimator(ConjugateEstimator):
    r"""Rates from counts, with a Gamma prior of shape a and rate b.

    .. math::

        \hat\lambda_{ml} = \frac{\sum x}{n}, \quad \hat\lambda_{map} = \frac{\sum x + a - 1}{n + b}, \quad
        p_{predictive} = \mathrm{NegativeBinomial}\left(a + \sum x, \frac{b + n}{b + n + 1}\right)

    Parameters
    ----------
    estimate : {"map", "ml", "predictive"}, default="map"
        Mode of the posterior, maximum likelihood, or posterior predictive distribution of one further count, a
        ``NegativeBinomial``. The last is no maximum of the likelihood, and is refused inside EM.
    prior : pair of floats (a, b), default=(1.01, 0.01)
        Shape (at least 1 for "map") and rate (at least 0) of the Gamma prior on every rate; both positive for
        "predictive". The default adds a hundredth of an observation of 1, so that a rate is never zero.

    Attributes
    ----------
    model_ : Poisson, or NegativeBinomial if ``estimate`` is "predictive"

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import PoissonEstimator
    >>> counts = np.array([[1, 0], [3, 1]])
    >>> PoissonEstimator("ml").fit(counts).model_.rate
    array([2. , 0.5])
    >>> PoissonEstimator("predictive", prior=(1, 1)).fit(counts).model_.size
    array([5., 2.])
    """

    family = Poisson
    modes = ("ml", "map", "predictive")
    neutral = (1.0, 0.0)

    def __init__(self, estimate: str = "map", prior: Any = (1.01, 0.01)):
        self.estimate = estimate
        self.prior = prior

    def pseudo_sums(self, d: int) -> list[float]:
        """Return the counts and observations of the prior."""
        return list(self.excess())

    def solve(self, sums: list[Floats]) -> list[Floats]:
        """Return means."""
        total, weight = sums
        return [total / weight]

    def predictive(self, packed: Packed, own: bool) -> NegativeBinomial:
        """Return the negative binomial distributions of one further count."""
        total, weight = self.all_sums(packed, own)
        a, b = self.prior
        return NegativeBinomial(total + a, (weight + b) / (weight + b + 1.0))
