"""Kernels made of kernels: sums, products, powers, normalisation and exponentiation."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from genkern.kernels.base import Kernel
from genkern.validation import Floats, check_int, check_number

ROUNDING = 1e-10  # relative to the size of the logs: what may be cut off above a cosine of one


class Constant(Kernel):
    r"""The constant kernel :math:`k(x, y) = c`, which stands for a number in sums and products.

    Parameters
    ----------
    value : float, default=1.0
        The constant, not negative.
    """

    def __init__(self, value: float = 1.0):
        self.value = value

    @property
    def accepts_sparse(self) -> bool:
        """True: it does not look at them."""
        return True

    def prepare(self, X: Any) -> Any:
        """Return X as it is."""
        return X

    def _values(self, X: Any, Y: Any) -> Floats:
        value = check_number(self.value, "value", "Constant")
        return np.full((X.shape[0], (X if Y is None else Y).shape[0]), value)

    def _values_diag(self, X: Any) -> Floats:
        return np.full(X.shape[0], check_number(self.value, "value", "Constant"))

    def _logs(self, X: Any, Y: Any) -> Floats:
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(self._values(X, Y))
        return logs

    def _logs_diag(self, X: Any) -> Floats:
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(self._values_diag(X))
        return logs

    @property
    def formula(self) -> str:
        """The kernel in LaTeX."""
        return f"{self.value:g}"


class _Composite(Kernel):
    """A kernel whose traits follow from those of its parts."""

    def _parts(self) -> tuple[Kernel, ...]:
        raise TypeError(f"{type(self).__name__} must define _parts.")

    @property
    def signed(self) -> bool:
        """Whether a part is."""
        return any(part.signed for part in self._parts())

    @property
    def native_logs(self) -> bool:
        """Whether a part's values come from logs, and all have them."""
        return not self.signed and any(part.native_logs for part in self._parts())

    @property
    def vectors(self) -> bool:
        """Whether a part compares vectors."""
        return any(part.vectors for part in self._parts())

    @property
    def accepts_sparse(self) -> bool:
        """Whether all parts do."""
        return all(part.accepts_sparse for part in self._parts())

    def prepare(self, X: Any) -> Any:
        """Return representations as all parts want them."""
        for part in self._parts():
            X = part.prepare(X)
        return X


class _Binary(_Composite):
    """Two kernels combined entry by entry."""

    def __init__(self, left: Kernel, right: Kernel):
        self.left = left
        self.right = right

    def _parts(self) -> tuple[Kernel, ...]:
        return self.left, self.right


class Sum(_Binary):
    r"""The sum of two kernels, :math:`k_1 + k_2`.

    Parameters
    ----------
    left, right : Kernel
        The terms.
    """

    def _values(self, X: Any, Y: Any) -> Floats:
        return self.left._evaluate(X, Y) + self.right._evaluate(X, Y)

    def _values_diag(self, X: Any) -> Floats:
        return self.left._evaluate_diag(X) + self.right._evaluate_diag(X)

    def _logs(self, X: Any, Y: Any) -> Floats:
        logs: Floats = np.logaddexp(self.left._logs(X, Y), self.right._logs(X, Y))
        return logs

    def _logs_diag(self, X: Any) -> Floats:
        logs: Floats = np.logaddexp(self.left._logs_diag(X), self.right._logs_diag(X))
        return logs

    def __repr__(self) -> str:
        return f"{_shown(self.left)} + {_shown(self.right)}"

    @property
    def formula(self) -> str:
        """The kernel in LaTeX."""
        return f"{self.left.formula} + {self.right.formula}"


class Product(_Binary):
    r"""The product of two kernels, :math:`k_1 k_2`.

    Parameters
    ----------
    left, right : Kernel
        The factors.
    """

    def _values(self, X: Any, Y: Any) -> Floats:
        return self.left._evaluate(X, Y) * self.right._evaluate(X, Y)

    def _values_diag(self, X: Any) -> Floats:
        return self.left._evaluate_diag(X) * self.right._evaluate_diag(X)

    def _logs(self, X: Any, Y: Any) -> Floats:
        return self.left._logs(X, Y) + self.right._logs(X, Y)

    def _logs_diag(self, X: Any) -> Floats:
        return self.left._logs_diag(X) + self.right._logs_diag(X)

    def __repr__(self) -> str:
        return f"{_shown(self.left, Sum)} * {_shown(self.right, Sum)}"

    @property
    def formula(self) -> str:
        """The kernel in LaTeX."""
        return rf"{_bracketed(self.left, Sum)} \cdot {_bracketed(self.right, Sum)}"


class _Unary(_Composite):
    """One kernel transformed."""

    kernel: Kernel

    def _parts(self) -> tuple[Kernel, ...]:
        return (self.kernel,)


class IntegerPower(_Unary):
    r"""An integer power of a kernel, :math:`k^n`; other powers would not stay positive semi-definite.

    Parameters
    ----------
    kernel : Kernel
        The base.
    exponent : int, default=2
        The power, at least 1.
    """

    def __init__(self, kernel: Kernel, exponent: int = 2):
        self.kernel = kernel
        self.exponent = exponent

    def _power(self) -> int:
        return check_int(self.exponent, "exponent", "IntegerPower", 1)

    def _values(self, X: Any, Y: Any) -> Floats:
        return self.kernel._evaluate(X, Y) ** self._power()

    def _values_diag(self, X: Any) -> Floats:
        return self.kernel._evaluate_diag(X) ** self._power()

    def _logs(self, X: Any, Y: Any) -> Floats:
        return self._power() * self.kernel._logs(X, Y)

    def _logs_diag(self, X: Any) -> Floats:
        return self._power() * self.kernel._logs_diag(X)

    def __repr__(self) -> str:
        return f"{_shown(self.kernel, _Composite)} ** {self.exponent}"

    @property
    def formula(self) -> str:
        """The kernel in LaTeX."""
        return rf"{_bracketed(self.kernel, Kernel)}^{{{self.exponent}}}"


class Normalized(_Unary):
    r"""A kernel as a cosine, :math:`\bar k(x, y) = k(x, y) / \sqrt{k(x, x)\, k(y, y)}`.

    Computed in logs where the kernel is, so that values far below what floating point holds are no obstacle. An object
    whose self-similarity is zero has zero similarity to all others and one to itself; a warning says so.

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
        other = own if Y is None else self.kernel._logs_diag(Y)
        dead, gone = np.isneginf(own), np.isneginf(other)
        self._warn(dead)
        if Y is not None:
            self._warn(gone)
        own, other = np.where(dead, 0.0, own), np.where(gone, 0.0, other)
        scale = 0.5 * own[:, None] + 0.5 * other[None, :]
        logs = logs - scale
        logs[dead] = -np.inf
        logs[:, gone] = -np.inf
        logs[(logs > 0.0) & (logs < ROUNDING * (1.0 + np.abs(scale)))] = 0.0
        if Y is None:
            np.fill_diagonal(logs, 0.0)
        return logs

    def _values(self, X: Any, Y: Any) -> Floats:
        values = self.kernel._evaluate(X, Y)
        own = np.array(np.diagonal(values)) if Y is None else self.kernel._evaluate_diag(X)
        other = own if Y is None else self.kernel._evaluate_diag(Y)
        dead, gone = own <= 0.0, other <= 0.0
        self._warn(dead)
        if Y is not None:
            self._warn(gone)
        own, other = np.sqrt(np.where(dead, 1.0, own)), np.sqrt(np.where(gone, 1.0, other))
        values = values / (own[:, None] * other[None, :])
        values[dead] = 0.0
        values[:, gone] = 0.0
        size = np.abs(values)
        values = np.where((size > 1.0) & (size < 1.0 + ROUNDING), np.sign(values), values)
        if Y is None:
            np.fill_diagonal(values, 1.0)
        return values

    def _warn(self, dead: Any) -> None:
        if dead.any():
            warnings.warn(
                f"{self!r}: {int(dead.sum())} of {len(dead)} objects have zero similarity to themselves (first at "
                f"index {int(np.argmax(dead))}); they get zero similarity to all others.",
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
    def formula(self) -> str:
        """The kernel in LaTeX, normalisation as a bar."""
        return rf"\overline{{{self.kernel.formula}}}"


class Exponential(_Unary):
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

    def __init__(self, kernel: Kernel, nu: float = 1.0):
        self.kernel = kernel
        self.nu = nu

    @property
    def signed(self) -> bool:
        """False: it is an exponential."""
        return False

    @property
    def native_logs(self) -> bool:
        """False: values near zero are distances, not trouble."""
        return False

    def _logs(self, X: Any, Y: Any) -> Floats:
        nu = check_number(self.nu, "nu", "Exponential", exclusive=True)
        values = self.kernel._evaluate(X, Y)
        own = np.array(np.diagonal(values)) if Y is None else self.kernel._evaluate_diag(X)
        other = own if Y is None else self.kernel._evaluate_diag(Y)
        squares = np.maximum((own[:, None] + other[None, :]) - 2.0 * values, 0.0)
        if Y is None:
            np.fill_diagonal(squares, 0.0)
        return -nu * squares

    def _logs_diag(self, X: Any) -> Floats:
        return np.zeros(X.shape[0])

    def _values(self, X: Any, Y: Any) -> Floats:
        values: Floats = np.exp(self._logs(X, Y))
        return values

    def _values_diag(self, X: Any) -> Floats:
        return np.ones(X.shape[0])

    def __repr__(self) -> str:
        return f"{_shown(self.kernel, _Binary | IntegerPower)}.exp({self.nu:g})"

    @property
    def formula(self) -> str:
        """The kernel in LaTeX."""
        return (
            rf"\exp(-{self.nu:g}\,\|\phi(x) - \phi(y)\|^2), \quad "
            rf"\langle\phi(x), \phi(y)\rangle = {self.kernel.formula}"
        )


def _shown(kernel: Kernel, bracketed: Any = ()) -> str:
    """Return a part's repr, numbers bare, in brackets if it binds less tightly."""
    if isinstance(kernel, Constant):
        return f"{kernel.value:g}"
    return f"({kernel!r})" if isinstance(kernel, bracketed) else repr(kernel)


def _bracketed(kernel: Kernel, loose: type) -> str:
    """Return a part's formula, in brackets if it binds less tightly."""
    return rf"\left({kernel.formula}\right)" if isinstance(kernel, loose) else kernel.formula
