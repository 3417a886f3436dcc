"""Estimation of Gaussian distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.models.estimator import LeafEstimator
from genkern.models.gaussian import Gaussian
from genkern.objects import Packed, pack_points, pack_series
from genkern.validation import Floats, check_number, check_option

COVARIANCES = ("isotropic", "diagonal", "full")


class GaussianEstimator(LeafEstimator):
    r"""Means and covariances by maximum likelihood, :math:`\Sigma \succeq \epsilon I`.

    Parameters
    ----------
    covariance : {"diagonal", "isotropic", "full"}, default="diagonal"
        Form of the covariance.
    min_covar : float, default=1e-3
        Smallest eigenvalue (variance) allowed, in squared units of the data. Covariances maximise the likelihood under
        this bound. Zero is plain maximum likelihood.

    Attributes
    ----------
    model_ : Gaussian

    Examples
    --------
    >>> from genkern import GaussianEstimator
    >>> GaussianEstimator().fit([[0.0], [2.0]]).model_.mean
    array([1.])
    """

    def __init__(self, covariance: str = "diagonal", min_covar: float = 1e-3):
        self.covariance = covariance
        self.min_covar = min_covar

    def pack(self, X: Any, sequences: bool = True) -> Packed:
        """Encode series (or bags) of vectors."""
        check_option(self.covariance, COVARIANCES, "covariance", "GaussianEstimator")
        check_number(self.min_covar, "min_covar", "GaussianEstimator")
        return pack_series(X, "GaussianEstimator") if sequences else pack_points(X, "GaussianEstimator")

    def resolve(self, X: Any) -> GaussianEstimator:
        """Return the estimator itself: numbers need no alphabet."""
        return self

    def reference(self, packed: Packed, n: int, own: bool) -> Gaussian:
        """Return n copies of the mean and variance of each object's points, or of all."""
        offsets = packed.offsets[:-1] if own else packed.offsets[:1]
        seen = ~np.isnan(packed.values)
        count = np.maximum(np.add.reduceat(seen, offsets, axis=0, dtype=np.float64), 1.0)
        mean = np.add.reduceat(np.where(seen, packed.values, 0.0), offsets, axis=0) / count
        sizes = packed.lengths if own else np.array([len(packed.values)])
        gaps = np.where(seen, packed.values - np.repeat(mean, sizes, axis=0), 0.0)
        variance = np.add.reduceat(gaps**2, offsets, axis=0) / count
        variance = np.maximum(variance, max(self.min_covar, 1e-12))
        mean, variance = (np.repeat(a[:, None], n, axis=1) for a in (mean, variance))
        spread = variance
        if self.covariance == "isotropic":
            spread = variance.mean(axis=-1)
        elif self.covariance == "full":
            spread = variance[..., None] * np.eye(variance.shape[-1])
        leaf = Gaussian._restore(mean, spread)
        return leaf if own else leaf[0]

    def maximize_blocks(self, blocks: dict[str, Floats], leaf: Gaussian) -> Gaussian:
        """Return weighted means and floored covariances; members without weight stay as they are."""
        weight = blocks["weight"].reshape(leaf.shape)[..., None]
        used = weight > 0
        share = np.where(used, weight, 1.0)
        step = blocks["mean"].reshape(leaf.mean.shape) / share
        if leaf.covariance_type == "full":
            second = blocks["cov"].reshape(leaf.cov.shape) / share[..., None]
            cov = _floor_eigenvalues(second - step[..., :, None] * step[..., None, :], self.min_covar)
            cov = np.where(used[..., None], cov, leaf.cov)
        else:
            variances = blocks["cov"].reshape(leaf.mean.shape) / share - step**2
            if leaf.covariance_type == "isotropic":
                cov = np.where(used[..., 0], np.maximum(variances.mean(axis=-1), self.min_covar), leaf.cov)
            else:
                cov = np.where(used, np.maximum(variances, self.min_covar), leaf.cov)
        return Gaussian._restore(leaf.mean + np.where(used, step, 0.0), cov)

    def n_free(self, packed: Packed) -> int:
        """Return the parameters of a state plus one, the analogue of the symbols of an emission row."""
        d = int(packed.values.shape[1])
        return 1 + d + {"isotropic": 1, "diagonal": d, "full": d * (d + 1) // 2}[self.covariance]


def _floor_eigenvalues(cov: Floats, floor: float) -> Floats:
    """Return covariances whose eigenvalues are raised to the floor: the maximum of the likelihood under it."""
    values, vectors = np.linalg.eigh(0.5 * (cov + np.swapaxes(cov, -1, -2)))
    if (values >= floor).all():
        return 0.5 * (cov + np.swapaxes(cov, -1, -2))
    raised = (vectors * np.maximum(values, floor)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return 0.5 * (raised + np.swapaxes(raised, -1, -2))
