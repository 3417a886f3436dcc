"""Exponential families of the user's own, given by statistics and log-partition."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from genkern.models.value import Value
from genkern.validation import Floats, check_array


class NaturalFamily(Value):
    r"""An exponential family :math:`p(x) = h(x)\, e^{\theta^T T(x) - A(\theta)}`, given by T and A in a subclass.

    Product kernels of such models have a closed form for every power,

    .. math:: \log \int p^\rho q^\rho = A_{2\rho}(\rho (\theta + \theta')) - \rho A(\theta) - \rho A(\theta'), \qquad
       A_r(\vartheta) = \log \int h(x)^r e^{\vartheta^T T(x)} dx,

    and :math:`A_r = A` where h is one: put all that depends on x into T.

    Parameters
    ----------
    theta : array-like of shape batch + (q,)
        Natural parameters.

    Notes
    -----
    A subclass gives ``log_partition(theta)``, from batch + (q,) to batch, infinite where there is no distribution, and
    ``sufficient(points)``, from n points to (n, q), for ``log_prob``. Both are static. With a base measure h it gives
    ``log_base(points)``, (n,), and ``log_partition(theta, power=1.0)``, with h to that power.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import NaturalFamily, ProbabilityProduct
    >>> class Rayleigh(NaturalFamily):  # x e^(theta x^2), with T = (log x, x^2) and theta = (1, -1 / (2 s^2))
    ...     @staticmethod
    ...     def sufficient(points):
    ...         return np.stack([np.log(points), points**2], axis=-1)
    ...     @staticmethod
    ...     def log_partition(theta):
    ...         from scipy.special import gammaln
    ...         half = 0.5 * (theta[..., 0] + 1.0)
    ...         return gammaln(half) - half * np.log(-theta[..., 1]) - np.log(2.0)
    >>> models = Rayleigh([[1.0, -0.5], [1.0, -0.125]])
    >>> models[0].log_prob([1.0]).round(4)
    array([-0.5])
    >>> ProbabilityProduct(0.5)(models).round(4)
    array([[1. , 0.8],
           [0.8, 1. ]])
    """

    _fields = ("theta",)
    theta: Floats

    def __init__(self, theta: ArrayLike):
        self._freeze(theta=np.atleast_1d(check_array(theta, "theta", type(self).__name__)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack."""
        return self.theta.shape[:-1]

    @staticmethod
    @abstractmethod
    def log_partition(theta: Floats) -> Any:
        """Return A, batch, of parameters batch + (q,)."""

    @staticmethod
    @abstractmethod
    def sufficient(points: Any) -> Any:
        """Return the statistics (n, q) of n points."""

    @staticmethod
    def log_base(points: Any) -> Any:
        """Return log h (n,) of n points; zero unless a family says otherwise."""
        return np.zeros(len(points))

    def log_prob(self, X: Any) -> Floats:
        """Return the log densities (n,) + batch of n points."""
        points = np.asarray(X)
        logs: Floats = np.tensordot(self.sufficient(points), self.theta, axes=(-1, -1)) - self.log_partition(self.theta)
        return logs + np.reshape(self.log_base(points), (-1, *(1,) * len(self.shape)))
