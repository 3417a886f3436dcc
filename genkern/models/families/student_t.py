"""Student's t distributions: the posterior predictive distributions of Gaussians."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.core.families.gamma_ratio import digamma_excess, freedom_information, log1p_minus, log_gamma_excess
from genkern.data.objects import Packed, pack_points, pack_series
from genkern.models import simplex
from genkern.models.families.gaussian import Gaussian, check_spread, spread_jacobian, vech_information
from genkern.models.information import Information
from genkern.models.leaf import Leaf
from genkern.validation import Floats, check_array, check_range

LIGHTEST = 0.1  # degrees of freedom of draws: a chi-square variable underflows once in 1e15 of them


class StudentT(Leaf):
    r"""Student's t distributions of d-dimensional points.

    .. math:: p(x) = \frac{\Gamma(\frac{\nu + d}{2})}{\Gamma(\frac\nu2) (\nu\pi)^{d/2} |S|^{1/2}}
       \left(1 + \frac{(x - \mu)^T S^{-1} (x - \mu)}{\nu}\right)^{-(\nu + d)/2}

    Parameters
    ----------
    mean : array-like of shape batch + (d,)
        Locations :math:`\mu`. A number means d = 1.
    scale : array-like of shape batch, batch + (d,) or batch + (d, d)
        Scales in squared units. A number :math:`v` for each member (:math:`S = v I`) or a matrix S: one multivariate t
        distribution, whose coordinates are uncorrelated but not independent even if S is diagonal. Variances (d,): a
        product of d independent univariate t distributions.
    df : array-like of shape batch, or batch + (d,) for a product
        Degrees of freedom :math:`\nu > 0`. A number is that of all.

    Notes
    -----
    It is the posterior predictive distribution of a ``Gaussian`` with a normal-inverse-Wishart prior
    (``GaussianEstimator(estimate="predictive")``). NaN entries of an observation are missing: they are integrated out
    exactly. The parameters are the means, then for each member its scales, as the covariances of ``Gaussian``, and
    degrees of freedom :math:`\nu` (``raw``, ``ratio``), :math:`\log \nu` (``softmax``) or :math:`\sqrt\nu` (``sqrt``).

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 2.2, eq. 4.
    Lange, Little & Taylor (1989), Robust statistical modeling using the t distribution, appendix B (information).

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import StudentT
    >>> StudentT(0.0, 1.0, df=1.0).log_prob([[0.0], [1.0]]).round(4)  # Cauchy
    array([-1.1447, -1.8379])
    """

    _fields = ("mean", "scale", "df")
    mean: Floats
    scale: Floats
    df: Floats

    def __init__(self, mean: ArrayLike, scale: ArrayLike, df: ArrayLike):
        location, spread = check_spread(mean, scale, "scale", "StudentT")
        batch = location.shape[:-1]
        shape = location.shape if spread.ndim == location.ndim else batch
        lowest = np.linalg.eigvalsh(spread)[..., 0] if spread.ndim > location.ndim else spread
        if (lowest <= 0).any():
            where = tuple(int(i) for i in np.argwhere(lowest <= 0)[0])
            raise ValueError(f"StudentT: 'scale' must be positive (definite). Got {lowest[where]:g} at index {where}.")
        freedom = check_array(df, "df", "StudentT")
        freedom = np.full(shape, float(freedom)) if freedom.ndim == 0 else freedom
        if freedom.shape != shape or (freedom <= 0).any():
            raise ValueError(
                f"StudentT: 'df' must be a positive number or an array of shape {shape}. Got {freedom.tolist()!r:.80}."
            )
        check_range(freedom, "df", "StudentT", 1e-6, 1e100)
        self._freeze(mean=location, scale=spread, df=freedom)

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack."""
        return self.mean.shape[:-1]

    @property
    def n_features(self) -> int:
        """Number d of dimensions."""
        return self.mean.shape[-1]

    def _normal(self) -> Gaussian:
        """Return the Gaussian with these means and scales, whose coordinates they share."""
        return Gaussian._restore(self.mean, self.scale)

    def pack(self, X: Any) -> Packed:
        """Encode bags of vectors with d coordinates."""
        return pack_points(X, "StudentT", n_features=self.mean.shape[-1])

    def pack_sequences(self, X: Any) -> Packed:
        """Encode series of d channels."""
        return pack_series(X, "StudentT", n_channels=self.mean.shape[-1])

    # --- density and derivatives

    def log_density(self, points: NDArray[Any]) -> Floats:
        """Return log densities (N,) + batch; missing entries are integrated out."""
        logs = np.zeros((len(points), *self.shape))
        for rows, seen in _patterns(points):
            member, gaps = self._marginal(points[rows], seen)
            if member.scale.ndim == member.mean.ndim:  # a product
                logs[rows] = _log_t(gaps**2 / member.scale, 1.0, member.df, np.log(member.scale)).sum(axis=-1)
                continue
            dimension = gaps.shape[-1]
            if member.scale.ndim < member.mean.ndim:
                squares = (gaps**2).sum(axis=-1) / member.scale
                volume = dimension * np.log(member.scale)
            else:
                white = np.linalg.inv(np.linalg.cholesky(member.scale))
                squares = (np.einsum("...ab,t...b->t...a", white, gaps) ** 2).sum(axis=-1)
                volume = np.linalg.slogdet(member.scale)[1]
            logs[rows] = _log_t(squares, dimension, member.df, volume)
        return logs

    def own_log_density(self, packed: Packed) -> Floats:
        """Return (N, n): points of object i under members [i, :]."""
        return np.concatenate([self[i].log_density(piece) for i, piece in enumerate(packed.pieces())])

    def weigh(self, packed: Packed, weights: Floats, totals: bool) -> dict[str, Floats]:
        """Return weighted derivatives by the parameters: ``mean`` (G, n, d), ``scale`` (G, n, ...) and ``df``."""
        if len(self.shape) == 1:
            offsets = np.array([0, packed.n_points]) if totals else packed.offsets
            return self._weigh(packed.values, weights, offsets)
        pieces = [self[i].weigh(packed.take([i]), weights[packed.owners == i], True) for i in range(packed.n_objects)]
        blocks = {name: np.concatenate([piece[name] for piece in pieces]) for name in self._fields}
        return {name: block.sum(axis=0, keepdims=True) for name, block in blocks.items()} if totals else blocks

    def _weigh(self, points: Floats, weights: Floats, offsets: NDArray[np.int64]) -> dict[str, Floats]:
        """Return sums over groups of points of weights (N, n) times derivatives under a stack of batch (n,)."""
        tables = {name: np.zeros((len(points), *getattr(self, name).shape)) for name in self._fields}
        for rows, seen in _patterns(points):
            member, gaps = self._marginal(points[rows], seen)
            for name, part in zip(self._fields, member._derivatives(gaps), strict=True):
                place: Any = (rows,)
                if (
                    seen is not None and part.ndim > 2
                ):  # (T, n, k) or (T, n, k, k); df and a common scale have no columns
                    place = np.ix_(rows, np.arange(self.shape[0]), *[seen] * (part.ndim - 2))
                tables[name][place] = part
        return {
            name: np.add.reduceat(
                table * weights.reshape(weights.shape + (1,) * (table.ndim - 2)), offsets[:-1], axis=0
            )
            for name, table in tables.items()
        }

    def _marginal(self, points: Floats, seen: NDArray[np.int64] | None) -> tuple[Self, Floats]:
        """Return the distribution of some coordinates of points, and their gaps (T,) + batch + (k,) from its means."""
        member = self
        if seen is not None:
            extra = self.scale.ndim - self.mean.ndim
            scale = self.scale if extra < 0 else self.scale[..., seen]
            scale = scale[..., seen, :] if extra > 0 else scale
            member = self._restore(self.mean[..., seen], scale, self.df if extra else self.df[..., seen])
            points = points[:, seen]
        axes = (1,) * len(self.shape)
        return member, points.reshape((len(points), *axes, points.shape[1])) - member.mean

    def _derivatives(self, gaps: Floats) -> tuple[Floats, Floats, Floats]:
        r"""Return derivatives of the log density by means, scales and degrees of freedom, each (N, n, ...).

        With :math:`z = S^{-1}(x - \mu)`, :math:`q = z^T S z` and :math:`w = (\nu + d) / (\nu + q)`: w z and
        :math:`\frac12 (w z z^T - S^{-1})`.
        """
        d = self.mean.shape[-1]
        if self.scale.ndim > self.mean.ndim:
            inverse = np.linalg.inv(self.scale)
            z = np.einsum("nab,tnb->tna", inverse, gaps)
            weight, freedom = _slopes((z * gaps).sum(axis=-1), d, self.df)
            spread = 0.5 * (weight[..., None, None] * z[..., :, None] * z[..., None, :] - inverse)
            return weight[..., None] * z, spread, freedom
        if self.scale.ndim == self.mean.ndim:
            squares = gaps**2 / self.scale
            weight, freedom = _slopes(squares, 1, self.df)
            return weight * gaps / self.scale, 0.5 * (weight * squares - 1.0) / self.scale, freedom
        squares = (gaps**2).sum(axis=-1) / self.scale
        weight, freedom = _slopes(squares, d, self.df)
        return (weight / self.scale)[..., None] * gaps, 0.5 * (weight * squares - d) / self.scale, freedom

    def member_gradient(self, blocks: dict[str, Floats], coordinates: str) -> Floats:
        """Return derivatives (G, p)."""
        groups, n = blocks["mean"].shape[:2]
        spread = blocks["scale"]
        if self.scale.ndim > self.mean.ndim:
            a, b = np.tril_indices(self.mean.shape[-1])
            spread = np.where(a == b, 1.0, 2.0) * spread[..., a, b]
        else:
            spread = spread * spread_jacobian(self.scale, coordinates)
        freedom = blocks["df"] * spread_jacobian(self.df, coordinates)
        tail = np.concatenate([spread.reshape(groups, n, -1), freedom.reshape(groups, n, -1)], axis=-1)
        return np.concatenate([blocks["mean"].reshape(groups, -1), tail.reshape(groups, -1)], axis=1)

    def member_information(self, draws: Floats, coordinates: str) -> list[Information]:
        """Return the blocks of means (one per member), then of scales and degrees of freedom (one per member)."""
        tails = [member._tail_information(coordinates) for member in self.unstack()]
        d, scale = self.mean.shape[-1], self.scale
        if scale.ndim > self.mean.ndim:
            heads = np.linalg.inv(scale) * ((self.df + d) / (self.df + d + 2.0))[:, None, None]
        else:
            product = scale.ndim == self.mean.ndim
            share = (self.df + (1 if product else d)) / (self.df + (3 if product else d + 2)) / scale
            heads = (share if product else share[:, None])[..., None] * np.eye(d)
        return [w * head for w, head in zip(draws, heads)] + [w * tail for w, tail in zip(draws, tails)]

    def _tail_information(self, coordinates: str) -> Floats:
        r"""Return the information of one draw about the scales and degrees of freedom of a single model.

        :math:`q / (\nu + q)` is Beta(d/2, ν/2) distributed, and independent of the direction of x.
        """
        d, scale = self.mean.shape[-1], self.scale
        product = scale.ndim == 1
        a, b = (0.5 if product else 0.5 * d), 0.5 * self.df
        freedom = freedom_information(a, b)  # times b squared
        cross = -0.5 * a / ((a + b) * (a + b + 1.0))  # with the logarithm of all scales together
        jacobian = spread_jacobian(self.df, coordinates)
        corner = np.atleast_1d(0.25 * freedom * (jacobian / b) ** 2)
        if scale.ndim == 2:
            inverse: Floats = np.linalg.inv(scale).astype(np.float64)
            i, j = np.tril_indices(d)
            flat = np.where(i == j, 1.0, 2.0) * inverse[i, j]
            spread = (a + b) / (a + b + 1.0) * vech_information(inverse, 1.0)
            spread = spread - np.outer(flat, flat) / (4.0 * (a + b + 1.0))
            side = (cross / d * jacobian * flat)[:, None]
        else:
            unit = spread_jacobian(scale, coordinates) / scale
            spread = np.diag(np.atleast_1d(a * b / (a + b + 1.0) * unit**2))
            side = np.diag(np.atleast_1d(cross * unit * jacobian))
        return np.block([[spread, side], [side.T, np.diag(corner)]])

    # --- parameters and sampling

    def _members(self, table: NDArray[Any]) -> NDArray[Any]:
        """Return an array of one row for each member."""
        return table.reshape(int(np.prod(self.shape)), -1)

    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return means, then scales and degrees of freedom member by member."""
        mean, spread = np.split(self._normal().parameters(coordinates), [self.mean.size])
        freedom = {"softmax": np.log, "sqrt": np.sqrt}.get(coordinates, np.asarray)(self.df)
        return np.concatenate([mean, np.hstack([self._members(spread), self._members(freedom)]).ravel()])

    def with_parameters(self, vector: Floats, coordinates: str = "softmax") -> Self:
        """Return the model at these coordinates."""
        mean, tail = np.split(np.array(vector, dtype=np.float64), [self.mean.size])
        spread, freedom = np.split(self._members(tail), [-self._members(self.df).shape[1]], axis=1)
        df = simplex.positive_from(freedom, coordinates).reshape(self.df.shape)
        normal = self._normal().with_parameters(np.concatenate([mean, spread.ravel()]), coordinates)
        return type(self)(normal.mean, normal.cov, df)

    @property
    def parameter_names(self) -> list[str]:
        """Names ``mean[state,channel]``, then ``scale[...]`` and ``df[...]`` of each member."""
        names = self._normal().parameter_names
        spread = [name.replace("variance", "scale").replace("cov", "scale") for name in names[self.mean.size :]]
        freedom = [f"df[{','.join(map(str, index))}]" if index else "df" for index in np.ndindex(self.df.shape)]
        rows: list[Any] = [self._members(np.array(part)) for part in (spread, freedom)]
        return [*names[: self.mean.size], *map(str, np.hstack(rows).ravel())]

    def draw(self, which: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """Return one vector from each named member."""
        noise = Gaussian._restore(np.zeros_like(self.mean), self.scale).draw(which, rng)
        df = self.df if self.df.ndim == self.mean.ndim else self.df[:, None]
        if (df < LIGHTEST).any():
            raise ValueError(
                f"StudentT.sample: 'df' is {df.min():g}; expected at least {LIGHTEST:g}, since draws of fewer degrees "
                "of freedom leave the range of floating point. Give larger ones."
            )
        return self.mean[which] + noise * np.sqrt(df[which] / rng.chisquare(df[which]))

    def sample(self, n: int, *, length: int = 1, rng: Any = None) -> list[Floats]:
        """Return n bags of ``length`` vectors, each (length, d)."""
        draws = self.stack([self]).draw(self._draws(n, length), np.random.default_rng(rng))
        return list(draws.reshape(n, length, draws.shape[-1]))


def _patterns(points: Floats) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64] | None]]:
    """Yield rows of points with their observed columns, None for all; rows without any are left out."""
    there = ~np.isnan(points)
    if there.all():
        yield np.arange(len(points)), None
        return
    patterns, which = np.unique(there, axis=0, return_inverse=True)
    for index, pattern in enumerate(patterns):
        if pattern.any():
            yield np.flatnonzero(which.reshape(-1) == index), np.flatnonzero(pattern)


def _log_t(squares: Floats, d: float, df: Floats, volume: Floats) -> Floats:
    """Return log densities from squared distances, dimension, degrees of freedom and the log determinant of scales."""
    constant = log_gamma_excess(0.5 * df, 0.5 * d) - 0.5 * d * np.log(2.0 * np.pi) - 0.5 * volume
    logs: Floats = constant - 0.5 * (df + d) * np.log1p(squares / df)
    return logs


def _slopes(squares: Floats, d: float, df: Floats) -> tuple[Floats, Floats]:
    """Return the weight w = (df + d) / (df + q), and the derivative by the degrees of freedom."""
    weight = (df + d) / (df + squares)
    share = squares / df
    near = share * ((d - squares) / (df + squares)) - log1p_minus(share)
    tail = np.where(share > 0.5, weight * share - np.log1p(share), near)  # one form for each kind of cancellation
    return weight, 0.5 * (digamma_excess(0.5 * df, 0.5 * d) + tail)
