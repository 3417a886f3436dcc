"""Kernel density estimates: a set of points, each with a Gaussian around it. The estimator is in ``kde.estimator``."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.core.mixture import kde as core
from genkern.data.objects import Packed, pack_points, pack_series
from genkern.models import simplex
from genkern.models.characteristic import Scaled, Waves, turns
from genkern.models.information import Information
from genkern.models.leaf import Leaf
from genkern.validation import MEANS, RENORMALISE, SPREADS, Floats, check_array, check_range


class KDE(Leaf):
    r"""Kernel density estimates, :math:`p(x) = \sum_i w_i\, N(x; x_i, h I)`.

    Parameters
    ----------
    points : array-like of shape batch + (n, d)
        The points :math:`x_i`. One axis means n points in one dimension.
    variance : array-like of shape batch
        The variance h of each Gaussian in every direction (not its root, the bandwidth). A number is that of all
        members.
    weights : array-like of shape batch + (n,), optional
        Counts of the points, such as those of a histogram's cells, or any other weights: not negative, and divided by
        their sum. The default is equal weights.

    Notes
    -----
    An object is a bag of points. NaN coordinates of its points are missing: they are integrated out exactly, which
    leaves that coordinate out of every Gaussian. The ``points`` of the estimate itself must be complete.

    The parameters are the points, then variances h (``raw``, ``ratio``), log h (``softmax``) or bandwidths (``sqrt``),
    then weights. A weight of zero is legal; the derivative by it grows without bound away from the other points, and
    one observation adds at most :math:`e^{690}` to it.

    A variance of zero is legal too: the empirical distribution, which has no density.

    References
    ----------
    Silverman (1986), Density estimation for statistics and data analysis, section 4.2.

    Examples
    --------
    >>> from genkern import KDE
    >>> KDE([[0.0], [2.0]], variance=1.0).log_prob([[[1.0]], [[0.0], [2.0]]]).round(4)
    array([-1.4189, -2.9703])
    """

    _fields = ("points", "variance", "weights")
    points: Floats
    variance: Floats
    weights: Floats

    def __init__(self, points: ArrayLike, variance: ArrayLike, weights: ArrayLike | None = None):
        centres = check_array(points, "points", "KDE")
        if centres.ndim == 1:
            centres = centres[:, None]
        if centres.ndim < 2 or 0 in centres.shape:
            raise ValueError(f"KDE: 'points' must have shape batch + (n, d) with n, d >= 1. Got {centres.shape}.")
        batch, n = centres.shape[:-2], centres.shape[-2]
        spread = check_array(variance, "variance", "KDE")
        spread = check_array(np.full(batch, spread) if spread.ndim == 0 else spread, "variance", "KDE", shape=batch)
        shares = check_array(np.ones((*batch, n)) if weights is None else weights, "weights", "KDE", shape=(*batch, n))
        for name, array in (("variance", spread), ("weights", shares)):
            if (array < 0).any():
                where = tuple(int(i) for i in np.argwhere(array < 0)[0])
                raise ValueError(f"KDE: '{name}' must not be negative. Got {array[where]:g} at index {where}.")
        check_range(centres, "points", "KDE", 0.0, MEANS)
        check_range(spread, "variance", "KDE", *SPREADS)
        total = shares.sum(axis=-1, keepdims=True)
        if (total == 0).any():
            raise ValueError("KDE: 'weights' must not all be zero; give counts of the points, or None.")
        shares = np.where(np.abs(total - 1.0) > RENORMALISE, shares / total, shares)
        self._freeze(points=centres, variance=spread, weights=shares)

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack."""
        return self.points.shape[:-2]

    def pack(self, X: Any) -> Packed:
        """Encode bags of vectors with d coordinates."""
        return pack_points(X, "KDE", n_features=self.points.shape[-1])

    def pack_sequences(self, X: Any) -> Packed:
        """Encode series of d channels."""
        return pack_series(X, "KDE", n_channels=self.points.shape[-1])

    def _kernels(self, rows: int) -> core.Kernels:
        """Return the arrays of the passes, with leading axes (rows, n)."""
        self._refuse_zero()
        count, d = self.points.shape[-2:]
        points, weights = self.points.reshape(rows, -1, count, d), self.weights.reshape(rows, -1, count)
        return core.kernels_of(points, weights, self.variance.reshape(rows, -1))

    def _refuse_zero(self) -> None:
        """Raise where a member has no density."""
        if (self.variance == 0).any():
            where = tuple(int(i) for i in np.argwhere(self.variance == 0)[0])
            member = f"member {where}" if where else "the estimate"
            raise ValueError(f"KDE: {member} has variance zero, so it has no density. Give it a variance > 0.")

    def log_density(self, points: NDArray[Any]) -> Floats:
        """Return log densities (N,) + batch; missing coordinates are integrated out."""
        offsets = np.array([0, len(points)])
        return core.log_density(self._kernels(1), points, offsets).reshape((len(points), *self.shape))

    def own_log_density(self, packed: Packed) -> Floats:
        """Return (N, n): points of object i under members [i, :]."""
        return core.log_density(self._kernels(packed.n_objects), packed.values, packed.offsets)

    def weigh(self, packed: Packed, weights: Floats, totals: bool) -> dict[str, Floats]:
        r"""Return sums over observations x of weight u, with :math:`r_i` the posterior of point i.

        ``points`` (G, n, K, d): :math:`\sum u\, r_i (x - x_i)`; ``variance`` (G, n): the derivative
        :math:`\sum u \sum_i r_i (|x - x_i|^2 / h - d) / 2h`; ``weights`` (G, n, K): the raw derivative
        :math:`\sum u\, N(x; x_i, h I) / p(x)`. Missing coordinates add nothing.
        """
        rows = 1 if len(self.shape) == 1 else packed.n_objects
        sums = core.gradients(self._kernels(rows), packed.values, packed.offsets, weights, totals)
        if not np.isfinite(sums.variance).all():
            raise ValueError(
                "KDE: derivatives need a variance whose inverse squared does not overflow with the objects. Got "
                f"{self.variance.min():g}. Divide points and objects by a number such as "
                f"{np.sqrt(self.variance.min()):.0e} before."
            )
        count = self.points.shape[-2]
        points = np.ascontiguousarray(np.swapaxes(sums.points[..., :count], -1, -2))
        return {"points": points, "variance": sums.variance, "weights": sums.weights[..., :count]}

    def posterior(self, X: Any) -> list[Floats]:
        r"""Return for each bag (m, n) the probabilities :math:`r_{ti}` that draw t came from point i."""
        self._require_single("posterior")
        packed = self.pack(X)
        each = np.arange(packed.n_points + 1)
        raw = core.gradients(self._kernels(1), packed.values, each, np.ones((packed.n_points, 1)), totals=False)
        shares: Floats = raw.weights[:, 0, : len(self.weights)] * self.weights
        return np.split(shares, packed.offsets[1:-1])

    def member_gradient(self, blocks: dict[str, Floats], coordinates: str) -> Floats:
        """Return derivatives (G, p)."""
        groups = len(blocks["points"])
        parts = [
            blocks["points"] / self.variance[:, None, None],
            blocks["variance"] * _jacobian(self.variance, coordinates),
            simplex.gradient(blocks["weights"], self.weights, coordinates),
        ]
        return np.concatenate([part.reshape(groups, -1) for part in parts], axis=1)

    def member_information(self, draws: Floats, coordinates: str) -> list[Information]:
        """Return the complete-data information: as if the point of origin of each draw were observed.

        One (d, d) block per point, then one (1, 1) per variance, then one (n, n) of weights per member.
        """
        self._refuse_zero()
        d = self.points.shape[-1]
        points = (draws / self.variance)[:, None] * self.weights
        spread = 0.5 * d * draws * (_jacobian(self.variance, coordinates) / self.variance) ** 2
        blocks = [*(points.reshape(-1, 1, 1) * np.eye(d)), *spread.reshape(-1, 1, 1)]
        return [*blocks, *simplex.information(self.weights, draws, coordinates)]

    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return points, variances and weights, flattened."""
        spread = {"softmax": np.log, "sqrt": np.sqrt}.get(coordinates, np.asarray)(self.variance)
        weights = simplex.coordinates_of(self.weights, coordinates)
        return np.concatenate([self.points.ravel(), np.ravel(spread), weights.ravel()])

    def with_parameters(self, vector: Floats, coordinates: str = "softmax") -> Self:
        """Return the model at these coordinates."""
        ends = np.cumsum([self.points.size, self.variance.size])
        points, spread, weights = np.split(np.array(vector, dtype=np.float64), ends)
        spread = simplex.positive_from(spread, coordinates)
        estimate = type(self)(points.reshape(self.points.shape), spread.reshape(self.variance.shape))
        return self._restore(
            estimate.points,
            estimate.variance,
            simplex.from_coordinates(weights.reshape(self.weights.shape), coordinates),
        )

    @property
    def parameter_names(self) -> list[str]:
        """Names ``points[i,j]``, then ``variance``, then ``weights[i]``; of a stack, with the member's index first."""
        fields = (("points", self.points), ("variance", self.variance), ("weights", self.weights))
        return [
            f"{name}[{','.join(map(str, index))}]" if index else name
            for name, array in fields
            for index in np.ndindex(array.shape)
        ]

    def waves(self) -> Waves:
        """Return the damping of high frequencies, the variance around each point."""
        count, d = self.points.shape[-2:]
        return Waves(d, np.repeat(self.variance.reshape(-1, 1), d, axis=1), count)

    def characteristic(self, waves: Floats) -> Scaled:
        r"""Return :math:`\sum_j w_j e^{i \omega^T x_j - h |\omega|^2 / 2}`."""
        values = np.einsum("...j,...js->...s", self.weights, turns(self.points @ waves.T))
        return Scaled(values, -0.5 * self.variance[..., None] * (waves**2).sum(axis=1))

    def draw(self, which: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """Return one vector from each named member."""
        count, d = self.points.shape[-2:]
        chosen = np.empty(len(which), np.int64)
        for member in np.unique(which):
            mine = which == member
            chosen[mine] = rng.choice(count, mine.sum(), p=self.weights[member])
        noise = rng.standard_normal((len(which), d)) * np.sqrt(self.variance)[which, None]
        return self.points[which, chosen] + noise

    def sample(self, n: int, *, length: int = 1, rng: Any = None) -> list[Floats]:
        """Return n bags of ``length`` vectors, each (length, d)."""
        draws = self.stack([self]).draw(self._draws(n, length), np.random.default_rng(rng))
        return list(draws.reshape(n, length, draws.shape[-1]))


def _jacobian(variance: Floats, coordinates: str) -> Floats:
    """Return dh/d(coordinate): h for log h, 2 sqrt(h) for the bandwidth, else 1."""
    if coordinates == "softmax":
        return variance
    return 2.0 * np.sqrt(variance) if coordinates == "sqrt" else np.ones_like(variance)
