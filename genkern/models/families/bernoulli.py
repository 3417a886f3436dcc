"""Products of Bernoulli distributions over vectors of zeros and ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.data.objects import Packed
from genkern.models.characteristic import Scaled, Waves, turns
from genkern.models.families.exponential_family import ConjugateEstimator, ExponentialFamily, observed
from genkern.validation import Floats


class Bernoulli(ExponentialFamily):
    r"""Products of Bernoulli distributions, :math:`p(x) = \prod_j \gamma_j^{x_j} (1 - \gamma_j)^{1 - x_j}`.

    Parameters
    ----------
    probs : array-like of shape batch + (d,)
        Probabilities of a one, in [0, 1]. A number means d = 1.

    Notes
    -----
    NaN entries of a point are missing and do not count. Coordinates: the logit of a probability in softmax
    coordinates, its square root in sqrt coordinates, else itself.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import Bernoulli
    >>> Bernoulli([0.5, 0.2]).log_prob(np.array([[1, 0], [1, 1]])).round(4)
    array([-0.9163, -2.3026])
    """

    _fields = ("probs",)
    family_name = "bernoulli"
    _ranges = ("probability",)
    _support = "0 or 1 (NaN if missing)"
    terms = ("ones", "zeros", "weight")
    probs: Floats

    def __init__(self, probs: ArrayLike):
        self._set(probs=probs)

    @staticmethod
    def outside(points: Floats) -> NDArray[np.bool_]:
        """Return where points are neither 0 nor 1 nor missing."""
        return (points != 0) & (points != 1) & ~np.isnan(points)

    @staticmethod
    def sufficient(points: Floats) -> list[Floats]:
        """Return x, 1 - x and one."""
        return [points, 1.0 - points, observed(points)]

    def natural(self) -> list[Floats]:
        """Return the logarithms of both probabilities, and zero: they are normalised."""
        with np.errstate(divide="ignore"):
            return [np.log(self.probs), np.log1p(-self.probs), np.zeros_like(self.probs)]

    def slopes(self, blocks: dict[str, Floats]) -> list[Floats]:
        """Return derivatives by the logit: ones - probs (ones + zeros)."""
        return [blocks["ones"] * (1.0 - self.probs) - blocks["zeros"] * self.probs]

    def unit_information(self) -> list[list[Floats | float]]:
        """Return the variance."""
        return [[self.probs * (1.0 - self.probs)]]

    def waves(self) -> Waves:
        """Return the dimension; no frequency is damped."""
        return Waves(self.n_features, np.zeros((self.probs.size // self.n_features, self.n_features)), self.n_features)

    def characteristic(self, waves: Floats) -> Scaled:
        r"""Return :math:`\prod_j (1 - \gamma_j + \gamma_j e^{i \omega_j})`."""
        return Scaled(np.prod(1.0 + self.probs[..., None, :] * (turns(waves) - 1.0), axis=-1), None)

    def draw(self, which: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """Return one vector from each named member."""
        return (rng.random((len(which), self.n_features)) < self.probs[which]).astype(np.float64)


class BernoulliEstimator(ConjugateEstimator):
    r"""Probabilities from counts of ones and zeros, with a Beta prior.

    .. math::

        \hat\gamma_{ml} = \frac{n_1}{n_1 + n_0}, \quad
        \hat\gamma_{map} = \frac{n_1 + a - 1}{n_1 + n_0 + a + b - 2}, \quad
        \hat\gamma_{predictive} = \frac{n_1 + a}{n_1 + n_0 + a + b}

    Parameters
    ----------
    estimate : {"map", "ml", "predictive"}, default="map"
        Mode of the posterior, maximum likelihood, or posterior predictive distribution, which is a ``Bernoulli`` of the
        posterior's means. The last is no maximum of the likelihood, and is refused inside EM.
    prior : pair of floats (a, b), default=(1.01, 1.01)
        Parameters of the Beta prior on every probability, at least 1 each for "map", positive for "predictive". The
        default adds a hundredth of a one and of a zero: outcomes not seen are improbable rather than impossible.

    Attributes
    ----------
    model_ : Bernoulli

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import BernoulliEstimator
    >>> BernoulliEstimator("predictive", prior=(1, 1)).fit(np.array([[1, 0], [1, 1]])).model_.probs
    array([0.75, 0.5 ])
    """

    family = Bernoulli
    modes = ("ml", "map", "predictive")
    neutral = (1.0, 1.0)

    def __init__(self, estimate: str = "map", prior: Any = (1.01, 1.01)):
        self.estimate = estimate
        self.prior = prior

    def pseudo_sums(self, d: int) -> list[float]:
        """Return the ones and zeros of the prior."""
        return [*self.excess(), 0.0]

    def solve(self, sums: list[Floats]) -> list[Floats]:
        """Return shares of ones."""
        ones, zeros, _ = sums
        return [ones / (ones + zeros)]

    def predictive(self, packed: Packed, own: bool) -> Bernoulli:
        """Return the Bernoulli distributions of the posterior's means."""
        ones, zeros, _ = self.all_sums(packed, own)
        a, b = self.prior
        return Bernoulli((ones + a) / (ones + zeros + a + b))
