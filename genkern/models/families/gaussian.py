"""Gaussian distributions: full, diagonal and isotropic covariances."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.core.gaussian import passes as core
from genkern.data.objects import Packed, pack_points, pack_series
from genkern.models import simplex
from genkern.models.characteristic import Scaled, Waves, turns
from genkern.models.information import Information, diagonal_information
from genkern.models.leaf import Leaf
from genkern.validation import MEANS, SPREADS, Floats, check_array, check_range


class Gaussian(Leaf):
    r"""Gaussian distributions, :math:`N(x; \mu, \Sigma)`.

    Parameters
    ----------
    mean : array-like of shape batch + (d,)
        Means. A number means d = 1.
    cov : array-like of shape batch, batch + (d,) or batch + (d, d)
        Isotropic variances, diagonal variances or full covariances. Only numbers broadcast.

    Notes
    -----
    NaN entries of an observation are missing: they are integrated out exactly. The parameters are the means, then
    variances v (``raw``, ``ratio``), log v (``softmax``) or standard deviations (``sqrt``); full covariances are the
    lower triangle, row by row, in all coordinates, off-diagonal derivatives counting both entries.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import Gaussian
    >>> Gaussian([0.0, 0.0], 1.0).log_prob(np.zeros((1, 2))).round(4)
    array([-1.8379])
    """

    _fields = ("mean", "cov")
    family_name = "gaussian"
    mean: Floats
    cov: Floats

    def __init__(self, mean: ArrayLike, cov: ArrayLike):
        location, spread = check_spread(mean, cov, "cov", "Gaussian")
        self._freeze(mean=location, cov=spread)

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack."""
        return self.mean.shape[:-1]

    @property
    def covariance_type(self) -> str:
        """One of "isotropic", "diagonal", "full"."""
        return ("isotropic", "diagonal", "full")[self.cov.ndim - len(self.shape)]

    @property
    def variances(self) -> Floats:
        """Variances batch + (d,) of isotropic and diagonal members; the diagonal of full ones."""
        if self.covariance_type == "isotropic":
            return np.broadcast_to(self.cov[..., None], self.mean.shape)
        return self.cov if self.covariance_type == "diagonal" else np.diagonal(self.cov, axis1=-2, axis2=-1)

    @property
    def n_tied(self) -> int:
        """Number of parameters of covariances that repeat the first, if all members have the same."""
        batch, form = len(self.shape), self.covariance_type
        members = self.cov.reshape(-1, *self.cov.shape[batch:])
        d = self.mean.shape[-1]
        size = {"isotropic": 1, "diagonal": d, "full": d * (d + 1) // 2}[form]
        return (len(members) - 1) * size if (members == members[:1]).all() else 0

    def pack(self, X: Any) -> Packed:
        """Encode bags of vectors with d coordinates."""
        return pack_points(X, "Gaussian", n_features=self.mean.shape[-1])

    def pack_sequences(self, X: Any) -> Packed:
        """Encode series of d channels."""
        return pack_series(X, "Gaussian", n_channels=self.mean.shape[-1])

    def _normals(self, rows: int) -> core.Normals:
        """Return means and (co)variances as arrays with leading axes (rows, n)."""

        def make() -> core.Normals:
            d, full = self.mean.shape[-1], self.covariance_type == "full"
            spread = self.cov if full else np.ascontiguousarray(self.variances)
            size = (d, d) if full else (d,)
            return core.Normals(self.mean.reshape(rows, -1, d), spread.reshape(rows, -1, *size))

        return self._once(("normals", rows), make)

    def _forms(self, rows: int) -> core.Forms:
        """Return what densities need, with leading axes (rows, n)."""

        def make() -> core.Forms:
            self._refuse_singular()
            return core.forms_of(self._normals(rows))

        return self._once(("forms", rows), make)

    @property
    def axis_normals(self) -> tuple[Floats, Floats] | None:
        """Means and variances, unless there are covariances."""
        return None if self.covariance_type == "full" else (self.mean, self.variances)

    def _refuse_singular(self) -> None:
        """Raise where a member has no density."""
        flat = self.variances.reshape(-1, self.mean.shape[-1])
        if self.covariance_type == "full":
            lowest = np.linalg.eigvalsh(in_units(self.cov, self.variances))[..., :1]
            flat = np.where(lowest > 0, self.variances, 0.0).reshape(flat.shape)
        if (flat <= 0).any():
            where = tuple(int(i) for i in np.argwhere(flat <= 0)[0])
            raise ValueError(
                f"Gaussian: member {where[0]} has a singular covariance (channel {where[1]}), so it has no density. "
                "Use a floor (relative_floor or min_covar of GaussianEstimator) or leave that channel out."
            )

    def log_density(self, points: NDArray[Any]) -> Floats:
        """Return log densities (N,) + batch; missing entries are integrated out."""
        offsets = np.array([0, len(points)])
        return core.log_density(self._forms(1), points, offsets).reshape((len(points), *self.shape))

    def own_log_density(self, packed: Packed) -> Floats:
        """Return (N, n): points of object i under members [i, :]."""
        return core.log_density(self._forms(packed.n_objects), packed.values, packed.offsets)

    def weigh(self, packed: Packed, weights: Floats, totals: bool) -> dict[str, Floats]:
        """Return ``weight`` (G, n), ``mean`` (G, n, d) and ``cov``, sums of w, w (x - mu) and w (x - mu)(x - mu)^T.

        The last is the diagonal (G, n, d), or (G, n, d, d) for full covariances; missing entries are replaced by
        their conditional expectations.
        """
        rows = 1 if len(self.shape) == 1 else packed.n_objects
        sums = core.moments(self._normals(rows), packed.values, packed.offsets, weights, totals)
        return {"weight": sums.weight, "mean": sums.first, "cov": sums.second}

    def member_gradient(self, blocks: dict[str, Floats], coordinates: str) -> Floats:
        r"""Return derivatives (G, p): :math:`\Sigma^{-1}\sum w(x-\mu)` and :math:`\frac12(zz^T - \Sigma^{-1})`."""
        groups, d = len(blocks["mean"]), self.mean.shape[-1]
        if self.covariance_type == "full":
            inverse = precisions(self.cov)
            first = np.einsum("nab,gnb->gna", inverse, blocks["mean"])
            middle = np.einsum("nab,gnbc,ncd->gnad", inverse, blocks["cov"], inverse)
            matrix = 0.5 * (middle - blocks["weight"][..., None, None] * inverse)
            a, b = np.tril_indices(d)
            spread = np.where(a == b, 1.0, 2.0) * matrix[..., a, b]
        else:
            return self._not_overflown(self._slopes_of_variances(blocks, coordinates))
        return self._not_overflown(np.concatenate([first.reshape(groups, -1), spread.reshape(groups, -1)], axis=1))

    def _slopes_of_variances(self, blocks: dict[str, Floats], coordinates: str) -> Floats:
        """Return derivatives (G, p) by means and variances, or by the one variance of isotropic members."""
        precision, slope = self._once(("slopes", coordinates), lambda: self._slopes(coordinates))
        groups, size = len(blocks["mean"]), self.mean.size
        out = np.empty((groups, size + (len(self.mean) if self.covariance_type == "isotropic" else size)))
        np.multiply(blocks["mean"].reshape(groups, -1), precision.ravel(), out=out[:, :size])
        if self.covariance_type == "isotropic":
            spread = blocks["cov"] * precision
            spread -= blocks["weight"][..., None]
            np.sum(spread, axis=-1, out=out[:, size:])
        else:
            np.multiply(blocks["cov"].reshape(groups, -1), precision.ravel(), out=out[:, size:])
            out[:, size:] -= np.repeat(blocks["weight"], self.mean.shape[-1], axis=-1)
        with np.errstate(over="ignore"):
            out[:, size:] *= slope.ravel()
        return out

    def _not_overflown(self, result: Floats) -> Floats:
        """Return derivatives or information; of variances that are too small, they overflow and are refused."""
        if not np.isfinite(result).all():
            smallest = self.variances.min()
            raise ValueError(
                "Gaussian: derivatives and information need variances whose inverses, and squares of these, do not "
                f"overflow with the objects. Got variances from {smallest:g}. Divide all objects by a number such as "
                f"{np.sqrt(smallest):.0e} before."
            )
        return result

    def _slopes(self, coordinates: str) -> tuple[Floats, Floats]:
        """Return precisions, and what derivatives in log v / 2 are multiplied by for the named coordinates."""
        return 1.0 / self.variances, spread_jacobian(self.cov, coordinates) * 0.5 / self.cov

    def member_information(self, draws: Floats, coordinates: str) -> list[Information]:
        """Return the blocks of means (one per member), then of covariances (one per member)."""
        self._refuse_singular()
        if self.covariance_type == "full":
            inverse = precisions(self.cov)
            with np.errstate(over="ignore", invalid="ignore"):
                blocks = [*(draws[:, None, None] * inverse), *map(vech_information, inverse, draws)]
            return [self._not_overflown(block) for block in blocks]
        variances = self.variances
        means = map(diagonal_information, draws[:, None] / variances)
        count = self.mean.shape[-1] if self.covariance_type == "isotropic" else 1
        spread = self.cov.reshape(len(draws), -1)
        jacobian = spread_jacobian(spread, coordinates)
        with np.errstate(over="ignore"):
            about_spread = self._not_overflown(0.5 * count * draws[:, None] * (jacobian / spread) ** 2)
        return [*means, *map(diagonal_information, about_spread)]

    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return means, then covariance parameters."""
        if self.covariance_type == "full":
            a, b = np.tril_indices(self.mean.shape[-1])
            spread = self.cov[..., a, b]
        else:
            spread = {"softmax": np.log, "sqrt": np.sqrt}.get(coordinates, np.asarray)(self.cov)
        return np.concatenate([self.mean.ravel(), spread.ravel()])

    def with_parameters(self, vector: Floats, coordinates: str = "softmax") -> Self:
        """Return the model at these coordinates."""
        mean, rest = np.split(np.array(vector, dtype=np.float64), [self.mean.size])
        if self.covariance_type == "full":
            d = self.mean.shape[-1]
            a, b = np.tril_indices(d)
            cov = np.empty(self.cov.shape)
            cov[..., a, b] = cov[..., b, a] = rest.reshape((*self.shape, len(a)))
        else:
            cov = simplex.positive_from(rest, coordinates).reshape(self.cov.shape)
        return type(self)(mean.reshape(self.mean.shape), cov)

    @property
    def parameter_names(self) -> list[str]:
        """Names ``mean[state,channel]``, then ``variance[...]`` or ``cov[state,a,b]``."""
        names = [f"mean[{','.join(map(str, index))}]" for index in np.ndindex(self.mean.shape)]
        if self.covariance_type == "full":
            pairs = list(zip(*np.tril_indices(self.mean.shape[-1])))
            members = list(np.ndindex(self.shape))
            return names + [f"cov[{','.join(map(str, (*i, a, b)))}]" for i in members for a, b in pairs]
        return names + [
            f"variance[{','.join(map(str, index))}]" if index else "variance" for index in np.ndindex(self.cov.shape)
        ]

    def moments(self) -> tuple[Floats, Floats]:
        """Return means and variances."""
        return self.mean, self.variances

    def expected_points(self, packed: Packed) -> Floats:
        """Return E[x_t | member i, observed part of x_t], (N, n, d): the point itself where nothing is missing."""
        points = np.repeat(packed.values[:, None, :], self.shape[0], axis=1)
        gaps = np.isnan(packed.values).any(axis=1)
        if gaps.any():
            alone = Packed(packed.values[gaps], np.arange(gaps.sum() + 1))
            points[gaps] = self.weigh(alone, np.ones((alone.n_points, len(self))), totals=False)["mean"] + self.mean
        return points

    def waves(self) -> Waves:
        """Return the damping of high frequencies: variances, the least of full covariances."""
        d = self.mean.shape[-1]
        full = self.covariance_type == "full"
        spread = np.maximum(np.linalg.eigvalsh(self.cov)[..., :1], 0.0) if full else self.variances
        return Waves(d, np.broadcast_to(spread, self.mean.shape).reshape(-1, d), d)

    def characteristic(self, waves: Floats) -> Scaled:
        r"""Return :math:`e^{i \omega^T \mu - \omega^T \Sigma\, \omega / 2}`."""
        if self.covariance_type == "full":
            squares = np.einsum("...si,si->...s", waves @ self.cov, waves)
        else:
            squares = self.variances @ (waves**2).T
        return Scaled(turns(self.mean @ waves.T), -0.5 * squares)

    def draw(self, which: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """Return one vector from each named member."""
        noise = rng.standard_normal((len(which), self.mean.shape[-1]))
        if self.covariance_type == "full":
            noise = np.einsum("tab,tb->ta", _factors(self.cov)[which], noise)
        else:
            noise = noise * np.sqrt(self.variances)[which]
        return self.mean[which] + noise

    def sample(self, n: int, *, length: int = 1, rng: Any = None) -> list[Floats]:
        """Return n bags of ``length`` vectors, each (length, d)."""
        one = self._restore(self.mean[None], self.cov[None])
        draws = one.draw(self._draws(n, length), np.random.default_rng(rng))
        return list(draws.reshape(n, length, draws.shape[-1]))


def check_spread(mean: ArrayLike, spread: ArrayLike, name: str, who: str) -> tuple[Floats, Floats]:
    """Return means batch + (d,) with variances that are not negative, or symmetric positive semi-definite matrices."""
    location = np.atleast_1d(check_array(mean, "mean", who))
    table = check_array(spread, name, who)
    check_range(location, "mean", who, 0.0, MEANS)
    batch, d = location.shape[:-1], location.shape[-1]
    if table.ndim == 0:
        table = np.full(batch, float(table))
    if table.shape not in (batch, (*batch, d), (*batch, d, d)):
        raise ValueError(
            f"{who}: '{name}' must have shape {batch} (isotropic), {(*batch, d)} (diagonal) or {(*batch, d, d)} "
            f"(full) for a mean of shape {location.shape}. Got {table.shape}."
        )
    if table.ndim - len(batch) < 2:
        if (table < 0).any():
            where = tuple(int(i) for i in np.argwhere(table < 0)[0])
            raise ValueError(f"{who}: variances must not be negative. Got {table[where]:g} at index {where}.")
        return location, check_range(table, name, who, *SPREADS)
    check_range(np.diagonal(table, axis1=-2, axis2=-1), name, who, *SPREADS)
    gap = np.abs(table - np.swapaxes(table, -1, -2)).max(axis=(-1, -2))
    size = np.abs(table).max(axis=(-1, -2))
    if (gap > 1e-8 * size).any():
        where = tuple(int(i) for i in np.argwhere(gap > 1e-8 * size)[0])
        raise ValueError(f"{who}: covariances must be symmetric. Member {where} is off by {gap[where]:g}.")
    lowest = np.linalg.eigvalsh(table)[..., 0]
    if (lowest < -1e-8 * size).any():
        where = tuple(int(i) for i in np.argwhere(lowest < -1e-8 * size)[0])
        raise ValueError(
            f"{who}: covariances must be positive semi-definite. Member {where} has eigenvalue {lowest[where]:g}."
        )
    return location, 0.5 * (table + np.swapaxes(table, -1, -2))


def _factors(covs: Floats) -> Floats:
    """Return for each covariance (n, d, d) a matrix that gives it times its transpose, also for singular ones."""
    try:
        return np.asarray(np.linalg.cholesky(covs), np.float64)
    except np.linalg.LinAlgError:
        if len(covs) > 1:
            return np.concatenate([_factors(cov[None]) for cov in covs])
    variances = np.diagonal(covs, axis1=-2, axis2=-1)
    values, vectors = np.linalg.eigh(in_units(covs, variances))
    factors: Floats = np.sqrt(variances)[..., None] * vectors * np.sqrt(np.maximum(values, 0.0))[:, None]
    return factors


def in_units(cov: Floats, variances: Floats) -> Floats:
    """Return covariances in units of these variances, channel by channel: correlations. Channels of none stay."""
    units = np.sqrt(np.where(variances > 0, variances, 1.0))
    correlations: Floats = cov / (units[..., :, None] * units[..., None, :])
    return correlations


def precisions(cov: Floats) -> Floats:
    """Return inverse covariances, computed in units in which variances are one."""
    variances = np.diagonal(cov, axis1=-2, axis2=-1)
    inverse: Floats = np.asarray(np.linalg.inv(in_units(cov, variances)), np.float64)
    return in_units(inverse, variances)


def spread_jacobian(variances: Floats, coordinates: str) -> Floats:
    """Return dv/d(coordinate): v for log v, 2 sqrt(v) for the standard deviation, else 1."""
    if coordinates == "softmax":
        return variances
    return 2.0 * np.sqrt(variances) if coordinates == "sqrt" else np.ones_like(variances)


def vech_information(inverse: Floats, draws: float) -> Floats:
    r"""Return :math:`\frac{w}{2} D^T (\Sigma^{-1} \otimes \Sigma^{-1}) D` over the lower triangle."""
    a, b = np.tril_indices(len(inverse))
    double = np.where(a == b, 1.0, 2.0)
    pairs = inverse[np.ix_(a, a)] * inverse[np.ix_(b, b)] + inverse[np.ix_(a, b)] * inverse[np.ix_(b, a)]
    matrix: Floats = 0.25 * draws * double[:, None] * double[None, :] * pairs
    return matrix
