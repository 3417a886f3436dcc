"""Kernels made of one other: as a cosine, and as the Gaussian kernel in its feature space."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from genkern.kernels.base import Kernel
from genkern.kernels.composites import IntegerPower, _Binary, _shown, _Unary
from genkern.kernels.cosines import ROUNDING, capped, divided, place_of, warn_of_dead
from genkern.kernels.latex import ATOM, PRODUCT, bracketed, times
from genkern.validation import Floats, check_number


class Normalized(_Unary):
    r"""A kernel as a cosine, :math:`\bar k(x, y) = k(x, y) / \sqrt{k(x, x)\, k(y, y)}`.

    Computed in logs where the kernel is, so that values far below the range of floating point are no problem. An object
    whose self-similarity is zero has zero similarity to all others and one to itself; a warning says so. No value of an
    exact kernel exceeds one: rounding above it is clipped, and a larger excess is an error that names the objects.
    Bounds (``method="collapsed"``, ``"mean-field"``) and estimates by draws are no kernels: values above one give a
    warning.

    Parameters
    ----------
    kernel : Kernel
        The kernel to normalise.
    """

    def __init__(self, kernel: Kernel):
        self.kernel = kernel

    def _logs(self, X: Any, Y: Any) -> Floats:
        logs = self.kernel._logs(X, Y)
        own = np.array(np.diagonal(logs)) if Y is None else self.kernel._logs_diag(X)
        logs, scale = divided(logs, own, None if Y is None else self.kernel._logs_diag(Y), self)
        places = place_of(X), place_of(X if Y is None else Y)
        logs = capped(logs, scale, lambda: self.kernel._exact(X, Y), self, places)
        self._warn_above(logs, 0.0)
        return logs

    def _values(self, X: Any, Y: Any) -> Floats:
        base, power = self.kernel._root()  # the power of a cosine stays in range where that of a value does not
        values = base._evaluate(X, Y)
        own = np.array(np.diagonal(values)) if Y is None else base._evaluate_diag(X)
        other = own if Y is None else base._evaluate_diag(Y)
        dead, gone = own <= 0.0, other <= 0.0
        warn_of_dead(dead, self)
        if Y is not None:
            warn_of_dead(gone, self)
        own, other = np.sqrt(np.where(dead, 1.0, own)), np.sqrt(np.where(gone, 1.0, other))
        values = values / (own[:, None] * other[None, :])
        values[dead] = 0.0
        values[:, gone] = 0.0
        size = np.abs(values)
        values = np.where((size > 1.0) & (size < 1.0 + ROUNDING), np.sign(values), values) ** power
        if Y is None:
            np.fill_diagonal(values, 1.0)
        self._warn_above(np.abs(values), 1.0)
        return values

    def _warn_above(self, values: Floats, one: float) -> None:
        """Warn of cosines above one, given by their values or logs: no kernel has them, but bounds and estimates do."""
        above = int((values > one).sum())
        if above:
            largest = f"e^{values.max():.4g}" if one == 0.0 else f"{values.max():.4g}"
            warnings.warn(
                f"{self!r}: {above} of {values.size} normalised values are above one, the largest is {largest}. Bounds "
                "and estimates by draws err by other factors for a pair than for its members, and are no cosines when "
                "normalised. Use method='exact', or the kernel without .normalized().",
                UserWarning,
                stacklevel=2,
            )

    def _values_diag(self, X: Any) -> Floats:
        return np.ones(X.shape[0])

    def _logs_diag(self, X: Any) -> Floats:
        return np.zeros(X.shape[0])

    def __repr__(self) -> str:
        return f"{_shown(self.kernel, _Binary | IntegerPower)}.normalized()"

    @property
    def _level(self) -> int:
        return self.kernel._level if self._unit() else ATOM

    def _unit(self) -> bool:
        """Return whether the kernel has a diagonal of ones already."""
        return self.kernel._written(0, 0) == "1"

    def _written(self, left: int, right: int, view: str = "") -> str:
        if left == right:
            return "1"
        value = self.kernel._written(left, right, view)
        if self._unit():
            return value
        own, other = (self.kernel._written(side, side, view) for side in (left, right))
        return rf"\frac{{{value}}}{{\sqrt{{{own}}}\, \sqrt{{{other}}}}}"


class ExponentialKernel(_Unary):
    r"""The Gaussian kernel in another kernel's feature space.

    .. math:: \tilde k(x, y) = \exp(-\nu (k(x, x) - 2 k(x, y) + k(y, y)))

    Parameters
    ----------
    kernel : Kernel
        The kernel that defines the distance.
    nu : float, default=1.0
        Sharpness, positive.

    References
    ----------
    Mehta & Gray (2010), Generative and latent mean map kernels, section 4.
    """

    _positive = ("nu",)

    def __init__(self, kernel: Kernel, nu: float = 1.0):
        self.kernel = kernel
        self.nu = nu

    @property
    def signed(self) -> bool:
        """False: it is an exponential."""
        return False

    @property
    def native_logs(self) -> bool:
        """False: small values are large distances, not underflows."""
        return False

    def _logs(self, X: Any, Y: Any) -> Floats:
        nu = check_number(self.nu, "nu", "Exponential", exclusive=True)
        values = self.kernel._evaluate(X, Y)
        own = np.array(np.diagonal(values)) if Y is None else self.kernel._evaluate_diag(X)
        other = own if Y is None else self.kernel._evaluate_diag(Y)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self._finite(np.maximum((own[:, None] + other[None, :]) - 2.0 * values, 0.0))
            if Y is None:
                np.fill_diagonal(squares, 0.0)
            return -nu * squares  # infinite only where the value is zero

    def _logs_diag(self, X: Any) -> Floats:
        return np.zeros(X.shape[0])

    def _values(self, X: Any, Y: Any) -> Floats:
        values: Floats = np.exp(self._logs(X, Y))
        return values

    def _values_diag(self, X: Any) -> Floats:
        return np.ones(X.shape[0])

    def __repr__(self) -> str:
        return f"{_shown(self.kernel, _Binary | IntegerPower)}.exp({self.nu:g})"

    def _written(self, left: int, right: int, view: str = "") -> str:
        if left == right:
            return "1"
        own, other = (self.kernel._written(side, side, view) for side in (left, right))
        value, level = self.kernel._written(left, right, view), self.kernel._level
        norms = "2" if own == other == "1" else f"{own} + {other}"
        distance = f"{norms} - 2 {bracketed(value) if level <= PRODUCT else value}"
        return rf"\exp\left(-{times(self.nu)}{bracketed(distance)}\right)"
