"""Estimation of kernel densities: choice of the variance."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from genkern.core.mixture.kde_variance import LIKELY, RANGE, cross_validated
from genkern.data.objects import Packed, pack_points
from genkern.models.base import Statistics
from genkern.models.estimator import ModelEstimator
from genkern.models.fit.weights import point_weights, weighted
from genkern.models.kde.model import KDE
from genkern.validation import LARGEST, Floats, begin_fit, check_number, check_option

RULES = ("likelihood", "lscv", "silverman", "scott")
SMALLEST = LARGEST**-2  # variance of points
LARGEST_DIMENSION = 200  # beyond it the criterion of least-squares cross-validation leaves the range of numbers


class DistinctPoints(NamedTuple):
    """Distinct points (N, d) of each bag, sorted, with their counts (N,); bag i ends at ``offsets[i + 1]``."""

    points: Floats
    counts: Floats
    offsets: NDArray[np.int64]


class KDEEstimator(ModelEstimator):
    r"""Kernel density estimates with a variance chosen by cross-validation or by rule.

    Likelihood cross-validation maximises the log density of every point under the estimate from the others:

    .. math:: \sum_a w_a \log \sum_{b \ne a} \frac{w_b}{1 - w_a} N(x_a - x_b; 0, hI)

    Least-squares cross-validation minimises an unbiased estimate of the part of the mean integrated squared error
    that depends on h, :math:`\int \hat p^2 - 2 \int \hat p\, p`:

    .. math:: \sum_{ab} w_a w_b N(x_a - x_b; 0, 2hI)
       - 2 \sum_a w_a \sum_{b \ne a} \frac{w_b}{1 - w_a} N(x_a - x_b; 0, hI)

    both over the distinct points of a bag and their shares w. Without ties they are the classical criteria, with
    :math:`w_b / (1 - w_a) = 1 / (n - 1)`.

    Parameters
    ----------
    variance : {"likelihood", "lscv", "silverman", "scott"} or float, default="likelihood"
        "likelihood" and "lscv" search h by the criteria above between 1e-2 (lscv: 1e-3) and 10 times Silverman's, on a
        grid and then by golden section, and warn where they end at such a bound. With :math:`\bar\sigma^2` the mean of
        the coordinates' variances, "silverman" is :math:`\bar\sigma^2 (4 / ((d + 2) n))^{2 / (d + 4)}` and "scott"
        :math:`\bar\sigma^2 n^{-2 / (d + 4)}`. A number is used unchanged.

    Attributes
    ----------
    model_ : KDE
        Of the distinct points, sorted, weighted by how often they occur.

    Notes
    -----
    Counts on a grid are given as repeated points, ``np.repeat(cells, counts, axis=0)``: a bag is a list of draws, and
    equal points become one point of larger weight. Cross-validation then leaves out *all* draws at a point when it
    judges the density there. Leaving out one would let its twins predict it perfectly, and the criterion would fall
    without bound as h goes to zero (Silverman 1986, section 3.4.3).

    Points that lie in clusters much finer than the whole, such as sightings along roads, have the same effect on least
    squares, and the density becomes a set of dots: the criterion squares densities, so that it depends on the few
    regions where they are highest. Likelihood gives all points the same weight. Of the 94 species of New South Wales
    and the Wet Tropics in Elith et al. (2020), least squares end at the lower bound for 27 and likelihood for one; the
    mean log density of presences left out (five folds, species with ten or more) is -49.7 and -37.4 by least squares,
    -1.2 and -23.3 by likelihood, -1.5 and -24.1 by Silverman's rule. Likelihood is drawn to large h by far outliers;
    "silverman" is then an alternative.

    One point, or points that are all equal, do not determine h: a number must be given.

    References
    ----------
    Silverman (1986), Density estimation for statistics and data analysis, sections 3.4.3, 3.4.4 and 4.3.2.
    Elith et al. (2020), Presence-only and presence-absence data for comparing species distribution modeling methods.
    Scott (1992), Multivariate density estimation, section 6.3.

    Examples
    --------
    >>> from genkern import KDEEstimator
    >>> model = KDEEstimator("silverman").fit([[0.0], [1.0], [1.0], [3.0]]).model_
    >>> model.points.ravel(), model.weights, round(float(model.variance), 3)
    (array([0., 1., 3.]), array([0.25, 0.5 , 0.25]), 1.02)
    """

    def __init__(self, variance: str | float = "likelihood"):
        self.variance = variance

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit one estimate to the points of all bags.

        Parameters
        ----------
        X : list of bags of points, or 2-D array of single points
        y : None
            Ignored.
        sample_weight : array of shape (n_objects,), optional
            Weight of each object: two is the same as giving it twice, zero as leaving it out.

        Returns
        -------
        self
        """
        begin_fit(self, X, y)
        packed = weighted(self.pack, X, sample_weight, "KDEEstimator")
        together = Packed(packed.values, packed.offsets[[0, -1]])
        self.model_ = self._fit(together, point_weights(packed), ["X"])[0]
        return self

    def fit_each(self, X: Any) -> list[KDE]:
        """Return one estimate per bag."""
        packed = self.pack(X)
        return self._fit(packed, point_weights(packed), [f"object {i}" for i in range(packed.n_objects)])

    def maximize(self, statistics: Statistics) -> KDE:
        """Refuse: a kernel density estimate has no M-step."""
        raise TypeError(
            "KDEEstimator.maximize: the likelihood of an estimate's own points grows without bound as the variance "
            "falls, so there is no M-step. Use fit, or a Mixture of Gaussians."
        )

    def resolve(self, X: Any) -> KDEEstimator:
        """Return the estimator itself: numbers need no alphabet."""
        return self

    def pack(self, X: Any) -> Packed:
        """Encode bags of vectors, which must be complete."""
        if isinstance(self.variance, str):
            check_option(self.variance, RULES, "variance", "KDEEstimator")
        else:
            check_number(self.variance, "variance", "KDEEstimator", exclusive=True)
        packed = pack_points(X, "KDEEstimator")
        missing = np.isnan(packed.values)
        if missing.any():
            row, column = np.argwhere(missing)[0].tolist()
            index = int(packed.owners[row])
            raise ValueError(
                f"KDEEstimator: object {index}, position {row - packed.offsets[index]}, column {column} is NaN; a "
                "density estimate needs complete points. Remove or impute it (queries of log_prob may have NaN)."
            )
        return packed

    def _fit(self, packed: Packed, often: Floats, names: list[str]) -> list[KDE]:
        """Return the estimates of all bags of points with weights (N, 1); errors call them by name."""
        bags = _distinct(packed, often)
        sizes = np.diff(bags.offsets)
        lengths = np.add.reduceat(bags.counts, bags.offsets[:-1])
        weights = bags.counts / np.repeat(lengths, sizes)
        if isinstance(self.variance, str):
            variances = self._variances(bags, weights, lengths, names)
        else:
            variances = np.full(len(sizes), float(self.variance))
        ends = bags.offsets[1:-1]
        parts = zip(np.split(bags.points, ends), variances, np.split(weights, ends), strict=True)
        return [KDE._restore(points.copy(), np.array(h), shares.copy()) for points, h, shares in parts]

    def _variances(self, bags: DistinctPoints, weights: Floats, lengths: Floats, names: list[str]) -> Floats:
        """Return the variance of each bag by the chosen rule."""
        d = bags.points.shape[1]
        spread = _spread(bags, weights, lengths)
        _refuse_degenerate(spread, bags, lengths, names)
        if self.variance == "scott":
            return spread * lengths ** (-2.0 / (d + 4))
        silverman: Floats = spread * (4.0 / ((d + 2) * lengths)) ** (2.0 / (d + 4))
        if self.variance == "silverman":
            return silverman
        if self.variance == "lscv" and d > LARGEST_DIMENSION:
            raise ValueError(
                f"KDEEstimator: variance='lscv' is for at most {LARGEST_DIMENSION} dimensions. Got {d}; use "
                "'likelihood', 'silverman', 'scott' or a number."
            )
        variances, ends = cross_validated(bags.points, weights, bags.offsets, silverman, str(self.variance))
        self._warn_of_bounds(ends, names)
        return variances

    def _warn_of_bounds(self, ends: NDArray[np.int64], names: list[str]) -> None:
        """Warn where the search for a variance ended at a bound (-1: lower, 1: upper) and not at a minimum."""
        bounds = LIKELY if self.variance == "likelihood" else RANGE
        remedies = (
            "Points lie in clusters finer than that, or are nearly equal: round them to the precision that they have",
            "Points lie further apart than that, perhaps outliers",
        )
        for end, bound, side, remedy in zip((-1, 1), bounds, ("lower", "upper"), remedies, strict=True):
            there = np.flatnonzero(ends == end)
            if len(there):
                others = f" (and {len(there) - 1} more of {len(names)})" if len(there) > 1 else ""
                warnings.warn(
                    f"KDEEstimator: the variance of {names[there[0]]}{others} by variance={self.variance!r} ends at "
                    f"the {side} bound of the search, {bound:g} times Silverman's: the bound chose it, not the data. "
                    f"{remedy}, use variance='silverman', or give a number.",
                    UserWarning,
                    stacklevel=5,
                )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False  # points of the estimate itself
        return tags


def _distinct(packed: Packed, often: Floats) -> DistinctPoints:
    """Return the distinct points of each bag in lexicographic order, and how often each occurs."""
    values = packed.values + 0.0  # -0.0 is 0.0
    order = np.lexsort((*values.T[::-1], packed.owners))
    values = values[order]
    first = np.ones(len(values), bool)
    first[1:] = (values[1:] != values[:-1]).any(axis=1)
    first[packed.offsets[:-1]] = True
    starts = np.flatnonzero(first)
    counts = np.add.reduceat(often[order, 0], starts)
    return DistinctPoints(values[starts], counts, np.searchsorted(starts, packed.offsets))


def _spread(bags: DistinctPoints, weights: Floats, lengths: Floats) -> Floats:
    """Return the mean (n_objects,) over coordinates of the unbiased variance of each bag; zero for one draw."""
    firsts, sizes = bags.offsets[:-1], np.diff(bags.offsets)
    mean = np.add.reduceat(weights[:, None] * bags.points, firsts, axis=0)
    gaps = bags.points - np.repeat(mean, sizes, axis=0)
    gaps[np.repeat(sizes == 1, sizes)] = 0.0  # all equal, whatever the rounding of their mean
    squares = np.add.reduceat(weights[:, None] * gaps**2, firsts, axis=0)
    return squares.mean(axis=1) * lengths / np.maximum(lengths - 1, 1)


def _refuse_degenerate(spread: Floats, bags: DistinctPoints, lengths: Floats, names: list[str]) -> None:
    """Raise for the first bag whose points have no spread, or one so small that squares leave the range of numbers."""
    bad = np.flatnonzero(spread < SMALLEST)
    if len(bad) == 0:
        return
    i = int(bad[0])
    if np.diff(bags.offsets)[i] > 1:
        raise ValueError(
            f"KDEEstimator: the points of {names[i]} deviate by {np.sqrt(spread[i]):.3g}, and expected is at least "
            f"{np.sqrt(SMALLEST):g}, lest squares underflow. Divide them by their scale."
        )
    what = "1 sample" if lengths[i] == 1 else f"{lengths[i]:g} points, all equal"
    raise ValueError(
        f"KDEEstimator: {names[i]} has {what}, which says nothing about the variance. Give variance= a number."
    )
