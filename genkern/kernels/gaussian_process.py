"""Kernels as covariances of scikit-learn's Gaussian processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Hyperparameter
from sklearn.gaussian_process.kernels import Kernel as Covariance

from genkern.kernels.base import Kernel
from genkern.validation import Floats, check_number

STEP = 6e-6  # of the differences, in logs: the cube root of the precision, where errors of both kinds are 1e-10


class GaussianProcessKernel(Covariance):
    """A kernel for ``GaussianProcessRegressor`` and ``GaussianProcessClassifier``, which fit its positive numbers.

    These are the numbers of the expression that may be any positive one: ``gamma``, ``lam``, ``rho``, ``nu``, ``t``,
    ``eta``, factors (``2 * k``) and so on; numbers that are zero stay. Gradients are central differences in the
    logarithms, at two evaluations of the kernel each, with a relative error of about 1e-9.

    Objects need not be vectors: with a kernel between models or sequences, X is an array of objects (``dtype=object``)
    or whatever ``numpy.asarray`` makes one of. It adds to and multiplies with scikit-learn's own (``WhiteKernel``).

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    limits : (float, float), "fixed", or dict of str to these, default=(1e-5, 1e5)
        The range of every number, or of those named as in ``kernel.get_params()``; others keep the default range.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import RBF, GaussianProcessKernel
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> X = np.linspace(0, 6, 20)[:, None]
    >>> process = GaussianProcessRegressor(GaussianProcessKernel(2 * RBF(gamma=0.5)), alpha=1e-6)
    >>> process.fit(X, np.sin(X[:, 0])).predict([[1.0]]).round(3)
    array([0.841])
    """

    def __init__(self, kernel: Kernel, limits: Any = (1e-5, 1e5)):
        self.kernel = kernel
        self.limits = limits

    @property
    def requires_vector_input(self) -> bool:
        """Whether objects must be rows of a matrix."""
        return self._kernel().vectors

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """The positive numbers of the kernel, with their ranges."""
        kernel = self._kernel()
        values, owners = kernel.get_params(), {"": kernel, **kernel.get_params()}
        named = [(name, owners[name.rpartition("__")[0]], name.rpartition("__")[2]) for name in values]
        names = [
            name for name, owner, own in named if own in getattr(owner, "_positive", ()) and float(values[name]) > 0.0
        ]
        return [Hyperparameter(name, "numeric", self._limit(name, names)) for name in names]

    @property
    def theta(self) -> Floats:
        """The logarithms of the numbers that vary."""
        values = self._kernel().get_params()
        return np.log([values[name] for name in self._free()], dtype=np.float64)

    @theta.setter
    def theta(self, theta: Any) -> None:
        self.kernel.set_params(**dict(zip(self._free(), map(float, np.exp(theta)), strict=True)))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, those of the kernel as ``kernel__gamma``.

        Parameters
        ----------
        deep : bool, default=True
            Whether to name those of the kernel too.
        """
        own = {"kernel": self.kernel, "limits": self.limits}
        inner = self._kernel().get_params() if deep else {}
        return {**own, **{f"kernel__{name}": value for name, value in inner.items()}}

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return values (n, m), and with ``eval_gradient`` also their derivatives (n, n, p) by ``theta``.

        Parameters
        ----------
        X, Y : objects that the kernel compares
            Without Y, X with itself.
        eval_gradient : bool, default=False
            Whether to return derivatives, without Y only.
        """
        if not eval_gradient:
            return self._kernel()(X, Y)
        if Y is not None:
            raise ValueError(
                "GaussianProcessKernel: gradients are those of X with itself. Got Y; leave one of them out."
            )
        ready = self._kernel().prepare(X)
        values, steps = self.kernel(ready), STEP * np.eye(len(self.theta))
        slopes = [self._moved(step)(ready) - self._moved(-step)(ready) for step in steps]
        return values, np.stack(slopes, axis=-1) / (2 * STEP) if slopes else np.empty((*values.shape, 0))

    def diag(self, X: Any) -> Floats:
        """Return values (n,) of each object with itself.

        Parameters
        ----------
        X : objects that the kernel compares
        """
        return self._kernel().diag(X)

    def is_stationary(self) -> bool:
        """Return False: kernels are not asked whether they depend on differences only."""
        return False

    def __repr__(self) -> str:
        return f"GaussianProcessKernel({self.kernel!r})"

    def _kernel(self) -> Kernel:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(
                f"GaussianProcessKernel: 'kernel' must be a Kernel such as RBF(). Got {self.kernel!r} instead."
            )
        return self.kernel

    def _free(self) -> list[str]:
        """Return the names of the numbers that vary."""
        return [parameter.name for parameter in self.hyperparameters if not parameter.fixed]

    def _moved(self, step: Floats) -> Kernel:
        """Return the kernel at a distance from ``theta``."""
        moved: Kernel = self.clone_with_theta(self.theta + step).kernel
        return moved

    def _limit(self, name: str, names: list[str]) -> Any:
        """Return the range of a number, or "fixed"."""
        limits: Any = self.limits
        if isinstance(limits, Mapping):
            unknown = sorted(set(limits) - set(names))
            if unknown:
                raise ValueError(
                    f"GaussianProcessKernel: 'limits' names {', '.join(map(repr, unknown))}. The positive numbers of "
                    f"{self.kernel!r} are {', '.join(map(repr, names))}."
                )
            limits = limits.get(name, (1e-5, 1e5))
        if isinstance(limits, str) and limits == "fixed":
            return limits
        low, high = (check_number(end, "limits", "GaussianProcessKernel", exclusive=True) for end in limits)
        if low >= high:
            raise ValueError(f"GaussianProcessKernel: 'limits' of {name} must be (low, high). Got {limits!r}.")
        return low, high
