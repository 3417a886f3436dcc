"""Estimation of Gaussian distributions."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from genkern.data.intake import locate
from genkern.data.objects import Packed, pack_points, pack_series
from genkern.models.estimator import LeafEstimator
from genkern.models.families.gaussian import Gaussian, check_spread
from genkern.models.families.gaussian_floor import (
    SAME,
    at_floor,
    data_floor,
    floor_covariances,
    mean_and_scale,
    statistics_floor,
)
from genkern.models.families.gaussian_prior import Prior
from genkern.models.families.student_t import StudentT
from genkern.models.fit.weights import point_weights
from genkern.validation import Floats, check_array, check_bool, check_number, check_option

COVARIANCES = ("isotropic", "diagonal", "full")


class GaussianEstimator(LeafEstimator):
    r"""Means and covariances by maximum likelihood under a floor, or with a conjugate prior.

    .. math:: \Sigma \succeq \mathrm{diag}(\epsilon_1, \dots, \epsilon_d), \qquad
       \epsilon_c = \max(\epsilon_{abs}, \epsilon_{rel}\, s_c^2)

    with the variance :math:`s_c^2` of channel c over the data. The conjugate prior

    .. math:: \mu | \Sigma \sim N(m, \Sigma / \kappa), \quad \Sigma \sim W^{-1}(\Psi, \nu), \qquad
       \hat\mu = \frac{\kappa m + n \bar x}{\kappa + n}, \quad \hat\Sigma = \frac{\Psi + \sum_i (x_i - \bar x)(x_i -
       \bar x)^T + \frac{\kappa n}{\kappa + n} (\bar x - m)(\bar x - m)^T}{\nu + n + d + 2}

    is the mode of the posterior for full covariances. Diagonal ones have the prior of the case d = 1 in every
    channel; the one variance of isotropic ones has that of d = 1, :math:`\Psi` and :math:`\nu` being numbers.

    Parameters
    ----------
    covariance : {"diagonal", "isotropic", "full"}, default="diagonal"
        Form of the covariance.
    min_covar : float, default=0.0
        :math:`\epsilon_{abs}`, the smallest eigenvalue (variance) allowed, in squared units of the data.
    estimate : {"ml", "map", "predictive"}, default="ml"
        Maximum likelihood; the mode of the joint posterior of mean and covariance; or the posterior predictive
        distribution of a point, a ``StudentT``: multivariate for full and isotropic covariances, a product over
        channels for diagonal ones. The last is no maximum of the likelihood and is refused inside EM, e.g. as the
        emission of an HMM.
    prior_mean : float or array-like of shape (d,), optional
        m. The default is the mean of the data.
    prior_strength : float, default=0.01
        :math:`\kappa`, the number of pseudo-observations of the prior mean.
    prior_dof : float, optional
        :math:`\nu`, the degrees of freedom. The default is d + 2 (3 for diagonal and isotropic covariances), with which
        :math:`\Psi` is the prior expectation of :math:`\Sigma`.
    prior_scale : float or array-like of shape (d,) or (d, d), optional
        :math:`\Psi`: a number is a multiple of the identity, (d,) a diagonal. The default is the
        variances of the data (their mean if isotropic), at least the floor.
    relative_floor : float, default=1e-4
        :math:`\epsilon_{rel}`, the smallest variance allowed in units of that of the channel over the data: of all
        points in ``fit``, of each object's own in ``fit_each``. Data in other units have the same fit in those units.
        In a channel with values beyond four standard deviations the variance is that of the middle 80 %, so that
        outliers do not raise the floor. A constant channel has its mean square, a channel of zeros one; isotropic
        covariances have the mean over channels. Zero, with ``min_covar=0``, is no floor.
    tied : bool, default=False
        One covariance, of whatever form, for all hidden states of an HMM or all components of a mixture: the mean of
        theirs, weighted by the points of each. With maximum likelihood only.

    Attributes
    ----------
    model_ : Gaussian, or StudentT if ``estimate`` is "predictive"

    Notes
    -----
    Defaults taken from the data (Fraley & Raftery 2007) are those of all points in ``fit``, and of each object's own in
    ``fit_each``; ``resolve(X)`` fixes those of all objects, as ``FitEach`` and EM over hidden states do, so that small
    objects share information. Maximum likelihood ignores the prior.

    Covariances maximise the likelihood (or the posterior) under the floor, so that EM never falls. Predictive
    distributions have no floor. ``maximize``, which is given no data, takes the variances of channels from the
    statistics, over all states or components, outliers included. The estimator ``bounded(pack(X), own=False)`` has the
    floor of ``fit(X)``, and its ``maximize`` is the step that ``fit`` takes.

    Missing entries (NaN) are integrated out by EM. Predictive distributions with missing entries have a closed form for
    diagonal covariances, or if points are missing as a whole; others are refused. A column without any value is refused
    unless a prior is given.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 2.2.
    Fraley & Raftery (2007), Bayesian regularization for normal mixture estimation and model-based clustering.

    Examples
    --------
    >>> from genkern import GaussianEstimator
    >>> GaussianEstimator().fit([[0.0], [2.0]]).model_.mean
    array([1.])
    >>> prior = {"prior_mean": 0.0, "prior_strength": 1.0, "prior_dof": 1.0, "prior_scale": 1.0}
    >>> GaussianEstimator(estimate="map", **prior).fit([[0.0], [2.0]]).model_.mean.round(4)
    array([0.6667])
    >>> GaussianEstimator(estimate="predictive", **prior).fit([[0.0], [2.0]]).model_.df
    array([3.])
    """

    def __init__(
        self,
        covariance: str = "diagonal",
        min_covar: float = 0.0,
        estimate: str = "ml",
        prior_mean: ArrayLike | None = None,
        prior_strength: float = 0.01,
        prior_dof: float | None = None,
        prior_scale: ArrayLike | None = None,
        relative_floor: float = 1e-4,
        tied: bool = False,
    ):
        self.covariance = covariance
        self.min_covar = min_covar
        self.estimate = estimate
        self.prior_mean = prior_mean
        self.prior_strength = prior_strength
        self.prior_dof = prior_dof
        self.prior_scale = prior_scale
        self.relative_floor = relative_floor
        self.tied = tied

    _floor: Any = None  # floor of covariances, once computed from data

    def pack(self, X: Any) -> Packed:
        """Encode bags of vectors."""
        self._check_parameters()
        return self._check_prior(pack_points(X, "GaussianEstimator"))

    def pack_sequences(self, X: Any) -> Packed:
        """Encode series of vectors."""
        self._check_parameters()
        return self._check_prior(pack_series(X, "GaussianEstimator"))

    def _check_parameters(self) -> None:
        """Raise for illegal settings."""
        who = "GaussianEstimator"
        check_option(self.covariance, COVARIANCES, "covariance", who)
        for name in ("min_covar", "relative_floor"):
            check_number(getattr(self, name), name, who)
        self._check_estimate()
        if check_bool(self.tied, "tied", who) and self.estimate != "ml":
            raise ValueError(f"{who}: tied=True goes with estimate='ml' only. Got estimate={self.estimate!r}.")

    def _check_prior(self, packed: Packed) -> Packed:
        """Return packed vectors, raising for a prior that is no distribution of such."""
        if self.estimate == "ml":
            return packed
        who, d = "GaussianEstimator", packed.values.shape[1]
        check_number(self.prior_strength, "prior_strength", who, exclusive=True)
        size = d if self.covariance == "full" else 1
        if self.prior_dof is not None:
            check_number(self.prior_dof, "prior_dof", who, minimum=size - 1.0, exclusive=True)
        mean = np.zeros(d) if self.prior_mean is None else check_array(self.prior_mean, "prior_mean", who)
        if mean.shape not in ((), (d,)):
            raise ValueError(f"{who}: 'prior_mean' must be a number or have shape {(d,)}. Got shape {mean.shape}.")
        if self.prior_scale is None:
            return packed
        _, scale = check_spread(np.zeros(d), self.prior_scale, "prior_scale", who)
        if scale.ndim > COVARIANCES.index(self.covariance):
            raise ValueError(
                f"{who}: 'prior_scale' of shape {scale.shape} has more to it than {self.covariance} covariances. Give "
                "a number, or choose another covariance."
            )
        if (np.linalg.eigvalsh(scale) if scale.ndim == 2 else scale).min() <= 0:
            raise ValueError(f"{who}: 'prior_scale' must be positive (definite). Got {self.prior_scale!r:.80}.")
        return packed

    def resolve(self, X: Any) -> GaussianEstimator:
        """Return an estimator that fits parts of X with the prior that it takes from all of X."""
        return self._filled(self.pack(X))

    def inside_em(self, packed: Packed) -> LeafEstimator:
        """Return the estimator with the prior that it takes from the objects."""
        self._check_mode()
        return self._filled(packed)

    def _filled(self, packed: Packed, own: bool = False) -> GaussianEstimator:
        """Return the estimator with the prior's defaults from the data, of each object if own."""
        if self.estimate == "ml" or not (self.prior_mean is None or self.prior_scale is None):
            return self
        leaf = self.reference(packed, 1, own)
        leaf = leaf if own else leaf[0]
        mean = leaf.mean if self.prior_mean is None else self.prior_mean
        scale = leaf.cov if self.prior_scale is None else self.prior_scale
        return clone(self).set_params(prior_mean=mean, prior_scale=scale)

    def bounded(self, packed: Packed, own: bool) -> Self:
        """Return the estimator with the floor computed from the data, of each object if own."""
        return self._with(_floor=data_floor(packed, own, self.covariance, self.min_covar, self.relative_floor))

    def shaped(self, leaf: Any) -> Self:
        """Return the estimator of covariances of the form that a Gaussian has."""
        return self._with(covariance=leaf.covariance_type) if isinstance(leaf, Gaussian) else self

    def _fit_packed(self, packed: Packed, own: bool) -> Any:
        """Return a stack of batch (1,) or (n_objects, 1), with the prior and the floor that come from the data."""
        inner = self._filled(packed, own).bounded(packed, own)
        return super(GaussianEstimator, inner)._fit_packed(packed, own)

    @property
    def has_units(self) -> bool:
        """Whether channels are in units of their own; not if they share one variance."""
        return self.covariance != "isotropic"

    def part(self, members: Any) -> Self:
        """Return the estimator with the priors and floors of some objects, if they come from the objects' own data."""
        form = COVARIANCES.index(self.covariance)
        ranks = {"prior_mean": 1, "prior_scale": form, "_floor": min(form, 1)}
        given = {name: getattr(self, name) for name in ranks}
        return self._with(**{name: value[members] for name, value in given.items() if np.ndim(value) > ranks[name]})

    def _prior(self, d: int) -> Prior:
        """Return the prior of covariances of this form."""
        if self.prior_mean is None or self.prior_scale is None:
            raise ValueError(
                "GaussianEstimator: an M-step cannot take 'prior_mean' and 'prior_scale' from the data. Give them, or "
                "use the estimator that resolve(X) returns."
            )
        full, scale = self.covariance == "full", np.asarray(self.prior_scale, np.float64)
        if self.covariance != "isotropic" and scale.ndim == 0:
            scale = np.full(d, float(scale))
        if full and scale.ndim == 1:
            scale = np.diag(scale)
        dof = (d if full else 1) + 2.0 if self.prior_dof is None else float(self.prior_dof)
        mean = np.broadcast_to(np.asarray(self.prior_mean, np.float64), (*np.shape(self.prior_mean)[:-1], d))
        return Prior(mean, float(self.prior_strength), dof, scale)

    def check_each(self, packed: Packed) -> None:
        """Raise where an object has no value at all in a column, and there is no prior for it."""
        self._refuse_unseen(packed, own=True)

    def _refuse_unseen(self, packed: Packed, own: bool) -> None:
        if self.estimate == "ml" or self.prior_mean is None or self.prior_scale is None:
            _refuse_unseen(packed, own)

    def reference(self, packed: Packed, n: int, own: bool) -> Gaussian:
        """Return n copies of the mean and variance of each object's points, or of all."""
        self._refuse_unseen(packed, own)
        mean, variance = mean_and_scale(packed, own, self.min_covar, self.relative_floor)
        mean, variance = (np.repeat(a[:, None], n, axis=1) for a in (mean, variance))
        spread = variance
        if self.covariance == "isotropic":
            spread = variance.mean(axis=-1)
        elif self.covariance == "full":
            spread = variance[..., None] * np.eye(variance.shape[-1])
        leaf = Gaussian._restore(mean, spread)
        return leaf if own else leaf[0]

    def maximize_blocks(self, blocks: dict[str, Floats], leaf: Gaussian) -> Gaussian:
        """Return weighted means and floored covariances; without a prior, members without weight are not changed."""
        self._check_mode()
        floor = self._floor
        if floor is None:
            floor = statistics_floor(blocks, leaf, self.min_covar, self.relative_floor)
        weight = blocks["weight"].reshape(leaf.shape)[..., None]
        if self.estimate == "map":
            mode = self._prior(leaf.mean.shape[-1]).posterior(weight, blocks, leaf).mode()
            return Gaussian._restore(mode.mean, floor_covariances(mode.cov, floor, leaf.covariance_type))
        used = weight > 0
        share = np.where(used, weight, 1.0)
        step = blocks["mean"].reshape(leaf.mean.shape) / share
        if leaf.covariance_type == "full":
            cov = blocks["cov"].reshape(leaf.cov.shape) / share[..., None] - step[..., :, None] * step[..., None, :]
            there = used[..., None]
        else:
            cov, there = blocks["cov"].reshape(leaf.mean.shape) / share - step**2, used
            if leaf.covariance_type == "isotropic":
                cov, there = cov.mean(axis=-1), used[..., 0]
        if self.tied:
            cov, there = _pooled(cov, weight[..., 0]), np.asarray(there.any(axis=len(leaf.shape) - 1, keepdims=True))
        cov = np.where(there, floor_covariances(cov, floor, leaf.covariance_type), leaf.cov)
        return Gaussian._restore(leaf.mean + np.where(used, step, 0.0), cov)

    def unit(self, leaf: Gaussian, name: str) -> Floats:
        """Return the standard deviations of means, and of covariances the products of two."""
        deviations = np.sqrt(leaf.variances)
        if name == "mean":
            return deviations
        return deviations[..., :, None] * deviations[..., None, :] if leaf.covariance_type == "full" else leaf.cov

    @property
    def collapses(self) -> bool:
        """Whether only a floor bounds the density at a single point."""
        return self.estimate == "ml"

    def at_floor(self, leaf: Gaussian) -> NDArray[np.bool_]:
        """Return which variances (of full covariances: in which principal directions) are at the floor."""
        return at_floor(leaf, self.min_covar if self._floor is None else self._floor)

    def raised(self, leaf: Gaussian) -> Gaussian:
        """Return Gaussians with covariances raised to the floor."""
        floor = self.min_covar if self._floor is None else self._floor
        cov = _pooled(leaf.cov, np.ones(leaf.shape)) if self.tied else leaf.cov
        return Gaussian._restore(leaf.mean, floor_covariances(cov, floor, leaf.covariance_type))

    def check_kept(self, leaf: Gaussian) -> None:
        """Raise for covariances that differ where one is asked for."""
        cov = np.moveaxis(leaf.cov, len(leaf.shape) - 1, 0)
        if self.tied and (cov != cov[:1]).any():
            raise ValueError(
                "GaussianEstimator: tied=True asks for one covariance, and 'fixed' keeps those of 'init', which differ."
                " Make them equal, or leave out one of them."
            )

    def counts(self, blocks: dict[str, Floats], leaf: Gaussian) -> Floats:
        """Return the weights of the members."""
        return blocks["weight"].reshape(leaf.shape)

    def coincide(self, blocks: dict[str, Floats], leaf: Gaussian) -> NDArray[np.bool_]:
        """Return which members would have a variance far below the floor in every direction, were there none."""
        free = self._with(_floor=0.0).maximize_blocks(blocks, leaf)
        return np.asarray(at_floor(free, SAME * self._floor).all(axis=-1))

    def log_prior(self, leaf: Gaussian) -> Floats:
        """Return the normal-inverse-Wishart log prior."""
        if self.estimate == "ml":
            return super().log_prior(leaf)
        prior: Floats = self._prior(leaf.mean.shape[-1]).density(leaf).sum(axis=-1)
        return prior

    def predictive(self, packed: Packed, own: bool) -> StudentT:
        """Return the t distributions of one further point, of batch (1,) or (n_objects, 1)."""
        seen = ~np.isnan(packed.values)
        if self.covariance != "diagonal":
            _refuse_partial(packed, seen, self.covariance)
        leaf = self.reference(packed, 1, own)
        often = point_weights(packed)
        blocks = leaf.weigh(packed, seen.any(axis=1, keepdims=True) * often, totals=not own)
        weight = blocks["weight"].reshape(leaf.shape)[..., None]
        if self.covariance == "diagonal":
            starts = packed.offsets[:-1] if own else packed.offsets[:1]
            count = np.add.reduceat(seen * often, starts, axis=0).reshape(leaf.mean.shape)
            # For missing entries the blocks hold the expectations under leaf, which must not count here.
            blocks["cov"] = blocks["cov"] - ((weight - count) * leaf.cov).reshape(blocks["cov"].shape)
            weight = count
        return self._prior(packed.values.shape[1]).posterior(weight, blocks, leaf).predictive()

    def n_free(self, packed: Packed) -> int:
        """Return the parameters of a state plus one, the analogue of the symbols of an emission row."""
        d = int(packed.values.shape[1])
        return 1 + d + {"isotropic": 1, "diagonal": d, "full": d * (d + 1) // 2}[self.covariance]


def _pooled(cov: Floats, weights: Floats) -> Floats:
    """Return the weighted mean of the covariances of all members, the last batch axis, for each of them."""
    share, axis = weights.reshape(weights.shape + (1,) * (cov.ndim - weights.ndim)), weights.ndim - 1
    total = share.sum(axis=axis, keepdims=True)
    return np.broadcast_to((share * cov).sum(axis=axis, keepdims=True) / np.where(total > 0, total, 1.0), cov.shape)


def _refuse_unseen(packed: Packed, own: bool) -> None:
    """Raise where an object, or all of them together, has no value at all in a column."""
    seen = np.logical_or.reduceat(~np.isnan(packed.values), packed.offsets[:-1] if own else packed.offsets[:1], axis=0)
    if not seen.all():
        index, column = np.argwhere(~seen)[0].tolist()
        raise ValueError(
            f"GaussianEstimator: {f'object {index} has' if own else 'the objects have'} no observed value in column "
            f"{column}, so its distribution cannot be estimated. "
            f"{f'Drop object {index}, with its label, or give' if own else 'Leave that column out, or give'} a prior "
            "(estimate='map' with prior_mean and prior_scale)."
        )


def _refuse_partial(packed: Packed, seen: Any, covariance: str) -> None:
    """Raise where a point is missing in part."""
    partial = seen.any(axis=1) & ~seen.all(axis=1)
    if partial.any():
        row = int(np.argmax(partial))
        index, position = locate(packed.offsets, row)
        raise ValueError(
            f"GaussianEstimator: object {index}, position {position} is missing in part, and with {covariance} "
            "covariances the predictive distribution then has no closed form. Use covariance='diagonal' or "
            "estimate='map', or leave out the point."
        )
