"""Kernels made of kernels: sums, products and powers."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from genkern.kernels.base import Kernel
from genkern.kernels.latex import PRODUCT, SUM, bracketed, number, product
from genkern.validation import Floats, check_int, check_number


class Constant(Kernel):
    r"""The constant kernel :math:`k(x, y) = c`, for numbers in sums and products.

    Parameters
    ----------
    value : float, default=1.0
        The constant, not negative.
    """

    _positive = ("value",)

    def __init__(self, value: float = 1.0):
        self.value = value

    @property
    def accepts_sparse(self) -> bool:
        """True: values do not depend on them."""
        return True

    def prepare(self, X: Any) -> Any:
        """Return X unchanged."""
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

    def _exact(self, X: Any, Y: Any) -> bool:
        return True

    @property
    def _level(self) -> int:
        return PRODUCT  # two adjacent numbers would be read as one

    def _written(self, left: int, right: int, view: str = "") -> str:
        return number(self.value)


class _Composite(Kernel):
    """A kernel whose traits follow from those of its parts."""

    @abstractmethod
    def _parts(self) -> tuple[Kernel, ...]:
        """Return the kernels it is composed of."""

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
        """Return representations prepared for all parts."""
        for part in self._parts():
            X = part.prepare(X)
        return X

    def _exact(self, X: Any, Y: Any) -> bool:
        return all(part._exact(X, Y) for part in self._parts())


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
        with np.errstate(over="ignore"):
            return self._finite(self.left._evaluate(X, Y) + self.right._evaluate(X, Y), Y is None)

    def _values_diag(self, X: Any) -> Floats:
        with np.errstate(over="ignore"):
            return self._finite(self.left._evaluate_diag(X) + self.right._evaluate_diag(X))

    def _logs(self, X: Any, Y: Any) -> Floats:
        logs: Floats = np.logaddexp(self.left._logs(X, Y), self.right._logs(X, Y))
        return logs

    def _logs_diag(self, X: Any) -> Floats:
        logs: Floats = np.logaddexp(self.left._logs_diag(X), self.right._logs_diag(X))
        return logs

    def __repr__(self) -> str:
        return f"{_shown(self.left)} + {_shown(self.right)}"

    @property
    def _level(self) -> int:
        return SUM

    def _written(self, left: int, right: int, view: str = "") -> str:
        return " + ".join(part._written(left, right, view) for part in self._parts())


class Product(_Binary):
    r"""The product of two kernels, :math:`k_1 k_2`.

    Parameters
    ----------
    left, right : Kernel
        The factors.
    """

    def _values(self, X: Any, Y: Any) -> Floats:
        with np.errstate(over="ignore"):
            return self._finite(self.left._evaluate(X, Y) * self.right._evaluate(X, Y), Y is None)

    def _values_diag(self, X: Any) -> Floats:
        with np.errstate(over="ignore"):
            return self._finite(self.left._evaluate_diag(X) * self.right._evaluate_diag(X))

    def _logs(self, X: Any, Y: Any) -> Floats:
        return self.left._logs(X, Y) + self.right._logs(X, Y)

    def _logs_diag(self, X: Any) -> Floats:
        return self.left._logs_diag(X) + self.right._logs_diag(X)

    def __repr__(self) -> str:
        return f"{_shown(self.left, Sum)} * {_shown(self.right, Sum)}"

    @property
    def _level(self) -> int:
        return PRODUCT

    def _written(self, left: int, right: int, view: str = "") -> str:
        factors = self._factors()
        numbers = [factor.value for factor in factors if isinstance(factor, Constant)]
        others = [factor for factor in factors if not isinstance(factor, Constant)]
        # Numbers come first: after an integral one would be read as part of it.
        value = math.prod(numbers) if numbers else None
        return product(value, [(factor._written(left, right, view), factor._level) for factor in others])

    def _factors(self) -> list[Kernel]:
        """Return the factors, those of products among them too."""
        parts = (part._factors() if isinstance(part, Product) else [part] for part in self._parts())
        return [factor for some in parts for factor in some]


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
        with np.errstate(over="ignore"):
            return self._finite(self.kernel._evaluate(X, Y) ** self._power(), Y is None)

    def _values_diag(self, X: Any) -> Floats:
        with np.errstate(over="ignore"):
            return self._finite(self.kernel._evaluate_diag(X) ** self._power())

    def _root(self) -> tuple[Kernel, int]:
        return self.kernel, self._power()

    def _logs(self, X: Any, Y: Any) -> Floats:
        return self._power() * self.kernel._logs(X, Y)

    def _logs_diag(self, X: Any) -> Floats:
        return self._power() * self.kernel._logs_diag(X)

    def __repr__(self) -> str:
        return f"{_shown(self.kernel, _Composite)} ** {self.exponent}"

    def _written(self, left: int, right: int, view: str = "") -> str:
        base = self.kernel._written(left, right, view)
        return base if base == "1" else f"{bracketed(base)}^{{{self.exponent}}}"


def _shown(kernel: Kernel, bracketed: Any = ()) -> str:
    """Return a part's repr, numbers bare, in brackets if it binds less tightly."""
    if isinstance(kernel, Constant):
        return f"{kernel.value:g}"
    return f"({kernel!r})" if isinstance(kernel, bracketed) else repr(kernel)
