r"""The conjugate prior of Gaussian distributions, and its posterior.

Full covariances have a normal-inverse-Wishart prior,

.. math:: p(\mu, \Sigma) \propto |\Sigma|^{-(\nu + d + 2)/2} \exp\left(-\tfrac12 \mathrm{tr}\, \Psi \Sigma^{-1}
   - \tfrac\kappa2 (\mu - m)^T \Sigma^{-1} (\mu - m)\right),

diagonal ones its one-dimensional case in every channel, and isotropic ones an inverse-Wishart prior on their one
variance.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from genkern.models.families.gaussian import Gaussian, precisions
from genkern.models.families.student_t import StudentT
from genkern.validation import Floats


class Prior(NamedTuple):
    """Mean m (d,), strength kappa, degrees of freedom nu and scale Psi: (), (d,) or (d, d) by form of covariance.

    Mean and scale may have leading axes that broadcast against the batch of the members.
    """

    mean: Floats
    strength: float
    dof: float
    scale: Floats

    def density(self, leaf: Gaussian) -> Floats:
        """Return the log prior density of each member up to a constant, (batch)."""
        d, gap = leaf.mean.shape[-1], leaf.mean - self.mean
        if leaf.covariance_type == "full":
            scatter = self.scale + self.strength * gap[..., :, None] * gap[..., None, :]
            trace = np.einsum("...ab,...ba->...", precisions(leaf.cov), scatter)
            return -0.5 * ((self.dof + d + 2.0) * np.linalg.slogdet(leaf.cov)[1] + trace)
        if leaf.covariance_type == "diagonal":
            terms = (self.dof + 3.0) * np.log(leaf.cov) + (self.scale + self.strength * gap**2) / leaf.cov
            total: Floats = -0.5 * terms.sum(axis=-1)
            return total
        square = self.scale + self.strength * (gap**2).sum(axis=-1)
        return -0.5 * ((self.dof + d + 2.0) * np.log(leaf.cov) + square / leaf.cov)

    def posterior(self, weight: Floats, blocks: dict[str, Floats], leaf: Gaussian) -> NormalWishart:
        """Return the posterior given sums about the means of leaf; ``weight`` is batch + (1,), or (d,) by channel."""
        first, second = (blocks[name].reshape((*leaf.shape, *blocks[name].shape[2:])) for name in ("mean", "cov"))
        gap = self.mean - leaf.mean
        strength = self.strength + weight
        step = (self.strength * gap + first) / strength
        if leaf.covariance_type == "full":
            scatter = self.strength * _outer(gap) - strength[..., None] * _outer(step)
        else:
            scatter = self.strength * gap**2 - strength * step**2
        scatter = scatter + second
        count = weight
        if leaf.covariance_type == "isotropic":
            scatter, count = scatter.sum(axis=-1), weight * leaf.mean.shape[-1]
        return NormalWishart(leaf.mean + step, strength, self.dof + count, self.scale + scatter)


class NormalWishart(NamedTuple):
    """Mean batch + (d,), strength and degrees of freedom batch + (1,) or (d,), scale batch + (), (d,) or (d, d)."""

    mean: Floats
    strength: Floats
    dof: Floats
    scale: Floats

    def mode(self) -> Gaussian:
        """Return the members of greatest posterior density."""
        d = self.mean.shape[-1]
        extra = self.scale.ndim - self.mean.ndim
        divisor = self.dof + (3.0 if extra == 0 else d + 2.0)
        return Gaussian._restore(self.mean, self.scale / _fit(divisor, extra))

    def predictive(self) -> StudentT:
        """Return the distributions of one further point."""
        extra = self.scale.ndim - self.mean.ndim
        freedom = self.dof - (self.mean.shape[-1] - 1.0 if extra > 0 else 0.0)
        scale = self.scale * _fit((self.strength + 1.0) / (self.strength * freedom), extra)
        return StudentT._restore(self.mean, scale, freedom if extra == 0 else freedom[..., 0])


def _outer(vectors: Floats) -> Floats:
    return vectors[..., :, None] * vectors[..., None, :]


def _fit(numbers: Floats, extra: int) -> Any:
    """Return numbers batch + (1,) or (d,) with the axes of a scale with one axis less (-1) or more (1) than a mean."""
    return numbers[..., 0] if extra < 0 else numbers[..., None] if extra > 0 else numbers
