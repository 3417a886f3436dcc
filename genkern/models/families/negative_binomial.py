"""Products of negative binomial distributions: the posterior predictive distribution of Poisson counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, xlogy

from genkern.core.families.gamma_ratio import deviance, digamma_rise, stirling_rest
from genkern.data.objects import Packed
from genkern.models.families.field_leaf import HIGHEST, FieldLeaf, refuse_beyond
from genkern.validation import Floats

CHUNK = 1 << 16  # terms of a series that are summed one by one


class NegativeBinomial(FieldLeaf):
    r"""Products of negative binomial distributions.

    .. math:: p(x) = \prod_j \frac{\Gamma(x_j + r_j)}{\Gamma(r_j)\, x_j!}\, p_j^{r_j} (1 - p_j)^{x_j}

    A mixture of Poisson distributions whose rates follow a Gamma distribution of shape r and scale (1 - p) / p:
    the result of ``PoissonEstimator("predictive")``.

    Parameters
    ----------
    size : array-like of shape batch + (d,)
        Sizes r, positive. A number means d = 1.
    prob : array-like of shape batch + (d,), or float
        Probabilities p, in (0, 1].

    Notes
    -----
    NaN entries of a point are missing and do not count. Coordinates: the logarithm of a size and the logit of a
    probability in softmax coordinates, square roots in sqrt coordinates, else the values.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 2.2, eq. 4.

    Examples
    --------
    >>> from genkern import NegativeBinomial
    >>> NegativeBinomial(1.0, 0.5).log_prob([[0], [1]]).round(4)
    array([-0.6931, -1.3863])
    """

    _fields = ("size", "prob")
    _ranges = ("positive", "success")
    _support = "a whole number >= 0 (NaN if missing)"
    size: Floats
    prob: Floats

    def __init__(self, size: ArrayLike, prob: ArrayLike):
        self._set(size=size, prob=prob)

    @staticmethod
    def outside(points: Floats) -> NDArray[np.bool_]:
        """Return where points are no counts."""
        return no_count(points)

    def log_density(self, points: NDArray[Any]) -> Floats:
        """Return log probabilities (N,) + batch; missing coordinates do not count."""
        x = points.reshape((len(points), *([1] * len(self.shape)), -1))
        return log_mass(x, self.size, self.prob)

    def own_log_density(self, packed: Packed) -> Floats:
        """Return (N, n): points of object i under members [i, :]."""
        return log_mass(packed.values[:, None], self.size[packed.owners], self.prob[packed.owners])

    def weigh(self, packed: Packed, weights: Floats, totals: bool) -> dict[str, Floats]:
        """Return sums (G, n, d) of ``x``, of ``digamma`` of x + size minus that of size, and of one (``weight``)."""
        size = self.size if len(self.shape) == 1 else self.size[packed.owners]
        x = np.repeat(packed.values[:, None], weights.shape[1], axis=1)
        starts = packed.offsets[:1] if totals else packed.offsets[:-1]
        sums = {}
        for name, values in (("x", x), ("digamma", digamma_rise(size, x)), ("weight", np.ones_like(x))):
            sums[name] = np.add.reduceat(np.where(np.isnan(x), 0.0, values) * weights[..., None], starts, axis=0)
        return sums

    def slopes(self, blocks: dict[str, Floats]) -> list[Floats]:
        """Return derivatives by the logarithm of the size and the logit of the probability."""
        size, prob = self.size, self.prob
        by_size = blocks["digamma"] + blocks["weight"] * np.log(prob)
        return [size * by_size, blocks["weight"] * size * (1.0 - prob) - blocks["x"] * prob]

    def unit_information(self) -> list[list[Floats | float]]:
        """Return the information about log size and logit prob."""
        mixed = -self.size * (1.0 - self.prob)
        about_size = np.vectorize(_size_information)(self.size, self.prob)
        return [[about_size, mixed], [mixed, -mixed]]

    def draw(self, which: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """Return one vector from each named member."""
        with np.errstate(over="ignore"):
            refuse_beyond(self.size / self.prob, "NegativeBinomial")
            largest = (1.0 - self.prob) / self.prob * (self.size + 10.0 * np.sqrt(self.size))
            refuse_beyond(largest, "NegativeBinomial", "(1 - p) / p (r + 10 sqrt(r))")
        return rng.negative_binomial(self.size[which], self.prob[which]).astype(np.float64)


def no_count(points: Floats) -> NDArray[np.bool_]:
    """Return where points are neither whole numbers >= 0 nor missing."""
    return (points < 0) | (points != np.floor(points)) & ~np.isnan(points)


def log_mass(x: Floats, size: Floats, prob: Floats) -> Floats:
    r"""Return log probabilities, summed over the last axis.

    With N = x + r and Stirling's formula for the three Gamma functions, :math:`\delta` being its error,

    .. math:: \log p(x) = -D(r, Np) - D(x, N(1 - p)) + \tfrac12 \log \frac{r}{2\pi N x}
       + \delta(N) - \delta(r) - \delta(x)

    for x > 0, where D is the deviance: nothing large is subtracted.
    """
    fail = 1.0 - prob
    count = np.where(x > 0, x, 1.0)
    both, gap = count + size, size * fail - count * prob
    with np.errstate(divide="ignore", invalid="ignore"):  # without failures (p = 1), only zero is possible
        logs = -deviance(size, both * prob, gap) - deviance(count, both * fail, -gap)
        logs = logs + 0.5 * (np.log(size / both) - np.log(2.0 * np.pi * count))
        logs = logs + stirling_rest(both) - stirling_rest(size) - stirling_rest(count)
    logs = np.where(fail > 0, logs, -np.inf)
    logs = np.where(x > 0, logs, xlogy(size, prob))
    total: Floats = np.where(np.isnan(x), 0.0, logs).sum(axis=-1)
    return total


def _size_information(size: float, prob: float) -> float:
    r"""Return :math:`r^2 \sum_{k \ge 0} P(x > k) / (r + k)^2`, r^2 times the mean of trigamma(r) - trigamma(r + x).

    Beyond the first terms the sum is an integral, to a relative error of the inverse square of their number: by
    Gauss-Legendre quadrature between points that grow by a factor, and others where P falls from one to zero. Of sizes
    from 1e15 on, P is a step and the sum r (1 - p), to rounding.
    """
    fail = 1.0 - prob
    if size > 1e15:
        return size * fail

    def term(k: Floats) -> Floats:
        value: Floats = betainc(k + 1.0, size, fail) * (size / (size + k)) ** 2
        return value

    with np.errstate(over="ignore"):
        mean, width = min(size * fail / prob, HIGHEST), min(np.sqrt(size * fail) / prob, HIGHEST)
        end = min(mean + 40.0 * (width + 1.0 / prob) + 1.0, HIGHEST)  # covers the distribution up to e^-40
    total = float(term(np.arange(min(end, CHUNK))).sum())
    if end <= CHUNK:
        return total
    first = CHUNK - 0.5
    grown = np.geomspace(first, end, 2 + int(8.0 * np.log(end / first)))
    fall = mean + width * np.linspace(-12.0, 12.0, 97)
    ends = np.unique(np.concatenate([grown, fall[(fall > first) & (fall < end)]]))
    nodes, weights = np.polynomial.legendre.leggauss(16)
    half = 0.5 * np.diff(ends)
    values = term(ends[:-1, None] + half[:, None] * (1.0 + nodes))
    return total + float((half[:, None] * weights * values).sum())
