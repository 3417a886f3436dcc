"""The base class of kernels: stateless expressions over representations, with values, logs and an algebra."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import Kernel as Covariance

from genkern.data.describe import DescribedEstimator, Formula, Rows
from genkern.kernels.latex import ATOM, named
from genkern.validation import Floats, check_int, check_number

LOWEST = -708.0  # exp of anything smaller is subnormal
HIGHEST = 709.0
BOTH = "To compare by vectors and by models at once, give both as Views and put each kernel into On(view, kernel)."


class Kernel(DescribedEstimator, BaseEstimator, ABC):
    r"""A positive semi-definite function of two representations, as an expression.

    ``k(X, Y=None)`` returns values, ``k.log(X, Y=None)`` logarithms, ``k.diag(X)`` and ``k.log_diag(X)`` those of each
    object with itself. Kernels add, multiply and take integer powers; ``.normalized()`` and ``.exp(nu)`` make new ones.
    They hold parameters only, so they are cloned, compared and put into grids by them: ``kernel__rho``,
    ``left__gamma``.

    A subclass implements ``_values`` and ``_values_diag``; one that is computed in logs sets ``native_logs`` and
    implements ``_logs`` and ``_logs_diag`` instead; one that is never negative implements both.

    Attributes
    ----------
    formula : str
        The kernel in LaTeX.
    native_logs : bool
        Whether values are exponentials of computed logarithms.
    signed : bool
        Whether values may be negative, so that there are no logarithms.
    vectors : bool
        Whether it compares rows of a matrix.
    accepts_sparse : bool
        Whether that matrix may be sparse.
    """

    _positive: tuple[str, ...] = ()  # parameters that may be any positive number, which Gaussian processes vary

    @property
    def native_logs(self) -> bool:
        """Whether values are exponentials of computed logarithms."""
        return False

    @property
    def signed(self) -> bool:
        """Whether values may be negative, so that there are no logarithms."""
        return False

    @property
    def vectors(self) -> bool:
        """Whether it compares rows of a matrix."""
        return False

    @property
    def accepts_sparse(self) -> bool:
        """Whether that matrix may be sparse."""
        return False

    @property
    def requires_vector_input(self) -> bool:
        """Refused: a Gaussian process asks this first, and needs more of a kernel."""
        raise AttributeError(f"For Gaussian processes wrap the kernel: GaussianProcessKernel({self!r}).")

    # --- implemented by subclasses

    @abstractmethod
    def prepare(self, X: Any) -> Any:
        """Return representations in the form in which they are compared: checked, sliceable, with a length."""

    def _values(self, X: Any, Y: Any) -> Floats:
        """Return values (n, m) of prepared X and Y; Y is None for X with itself."""
        raise TypeError(f"{type(self).__name__} gives logarithms, not values.")

    def _values_diag(self, X: Any) -> Floats:
        """Return values (n,) of each with itself."""
        raise TypeError(f"{type(self).__name__} gives logarithms, not values.")

    def _logs(self, X: Any, Y: Any) -> Floats:
        """Return logarithms (n, m)."""
        raise TypeError(f"{type(self).__name__} gives values, not logarithms.")

    def _logs_diag(self, X: Any) -> Floats:
        """Return logarithms (n,)."""
        raise TypeError(f"{type(self).__name__} gives values, not logarithms.")

    def _exact(self, X: Any, Y: Any) -> bool:
        """Return whether values of prepared X and Y come from exact formulas, so that no cosine can exceed one."""
        return False

    @property
    def formula(self) -> str:
        """The kernel in LaTeX; its name, if it has no formula."""
        if type(self)._written is Kernel._written:
            return rf"\mathrm{{{type(self).__name__}}}({', '.join(self._names)})"
        return self._written(0, 1)

    # --- its description: notebooks show the formula

    def _heading(self) -> str:
        return repr(self)

    def _details(self) -> Rows:
        return [("k", Formula(f"${self.formula}$"))]

    def __str__(self) -> str:
        return repr(self)

    # --- formulas within formulas

    _names = ("x", "y")  # of the two arguments

    @property
    def _level(self) -> int:
        """How tightly the formula binds."""
        return ATOM

    def _written(self, left: int, right: int, view: str = "") -> str:
        """Return the formula of arguments left and right, each 0 or 1, the first or the second, in a view of them."""
        if (left, right, view) == (0, 1, ""):
            return self.formula
        first, second = self._arguments(left, right, view)
        return rf"\left.{self.formula}\right|_{{{self._names[0]} = {first},\, {self._names[1]} = {second}}}"

    def _arguments(self, left: int, right: int, view: str) -> tuple[str, str]:
        """Return the names of two arguments."""
        return named(self._names[left], view), named(self._names[right], view)

    # --- values and logarithms

    def __call__(self, X: Any, Y: Any = None) -> Any:
        """Return values (n, m) between X and Y; without Y, symmetric ones (n, n) within X.

        Parameters
        ----------
        X, Y : list of models, stack of models, or matrix of shape (n, d)
            Representations of the kind that this kernel compares. Of two arrays (d,), for kernels between vectors, the
            one value is returned, as scikit-learn asks of a callable.
        """
        if self.vectors and _is_row(X) and _is_row(Y):
            return self._evaluate(self.prepare(X[None]), self.prepare(Y[None]))[0, 0]
        return self._evaluate(*self._both(X, Y))

    def log(self, X: Any, Y: Any = None) -> Floats:
        """Return the logarithms of the values, -inf for zero.

        Parameters
        ----------
        X, Y : list of models, stack of models, or matrix of shape (n, d)
            Representations of the kind that this kernel compares.
        """
        self._require_logs()
        return self._logs(*self._both(X, Y))

    def diag(self, X: Any) -> Floats:
        """Return values (n,) of each object with itself, without computing the others.

        Parameters
        ----------
        X : list of models, stack of models, or matrix of shape (n, d)
            Representations of the kind that this kernel compares.
        """
        return self._evaluate_diag(self.prepare(X))

    def log_diag(self, X: Any) -> Floats:
        """Return the logarithms of the diagonal.

        Parameters
        ----------
        X : list of models, stack of models, or matrix of shape (n, d)
            Representations of the kind that this kernel compares.
        """
        self._require_logs()
        return self._logs_diag(self.prepare(X))

    def _both(self, X: Any, Y: Any) -> tuple[Any, Any]:
        """Return prepared representations; None for Y if it is X."""
        return self.prepare(X), None if Y is None or Y is X else self.prepare(Y)

    def _evaluate(self, X: Any, Y: Any) -> Floats:
        """Return values of prepared representations."""
        if not self.native_logs:
            return self._values(X, Y)
        logs = self._logs(X, Y)
        top = logs.max(initial=-np.inf)
        self._check_range(top, np.diagonal(logs) if Y is None else top)
        values: Floats = np.exp(logs)
        return values

    def _evaluate_diag(self, X: Any) -> Floats:
        """Return the diagonal of prepared representations."""
        if not self.native_logs:
            return self._values_diag(X)
        logs = self._logs_diag(X)
        self._check_range(logs.max(initial=-np.inf), logs)
        values: Floats = np.exp(logs)
        return values

    def _require_logs(self) -> None:
        if self.signed:
            raise ValueError(f"{self!r} may be negative, so it has no logarithm: take its values, k(X, Y).")

    def _check_range(self, top: Any, own: Any) -> None:
        """Raise if the largest log cannot be exponentiated, or if some of ``own`` underflow to zero."""
        vanishing = (own < LOWEST) & (own > -np.inf)
        if top > HIGHEST or np.any(vanishing):
            extreme = top if top > HIGHEST else np.min(np.where(vanishing, own, 0.0))
            raise ValueError(
                f"{self!r}: values leave the range of floating point (a log value is {extreme:.4g}). Use "
                ".normalized(), or .log(X, Y) for logarithms, or Gram, which takes out a common factor."
            )

    def _root(self) -> tuple[Kernel, int]:
        """Return the base and exponent of an integer power; cosines are computed from the base."""
        return self, 1

    def _finite(self, values: Floats, own: bool = False) -> Floats:
        """Return values, raising on overflow; for X with itself (``own``) the diagonal bounds all others."""
        seen = np.diagonal(values) if own and values.ndim == 2 else values
        with np.errstate(over="ignore", invalid="ignore"):
            quiet = np.isfinite(seen.sum())  # one pass and no mask; a sum may overflow alone
        if not quiet and not np.isfinite(seen).all():
            raise ValueError(
                f"{self!r}: values leave the range of floating point (one is {seen[~np.isfinite(seen)][0]}). Scale X "
                "down, lower the power, or take .normalized() of the parts of products and powers."
            )
        return values

    # --- algebra

    def normalized(self) -> Kernel:
        r"""Return :math:`k(x, y) / \sqrt{k(x, x)\, k(y, y)}`, computed in logs where the kernel is."""
        return _transforms().Normalized(self)

    def exp(self, nu: float = 1.0) -> Kernel:
        r"""Return :math:`\exp(-\nu (k(x, x) - 2 k(x, y) + k(y, y)))`, the Gaussian kernel in this one's feature space.

        Parameters
        ----------
        nu : float, default=1.0
            Sharpness, positive.
        """
        return _transforms().ExponentialKernel(self, check_number(nu, "nu", "Kernel.exp", exclusive=True))

    def __add__(self, other: Any) -> Kernel:
        right = _operand(other)
        return NotImplemented if right is None else _composites().Sum(self, right)

    def __radd__(self, other: Any) -> Kernel:
        left = _operand(other)
        return NotImplemented if left is None else _composites().Sum(left, self)

    def __mul__(self, other: Any) -> Kernel:
        right = _operand(other)
        return NotImplemented if right is None else _composites().Product(self, right)

    def __rmul__(self, other: Any) -> Kernel:
        left = _operand(other)
        return NotImplemented if left is None else _composites().Product(left, self)

    def __pow__(self, exponent: int) -> Kernel:
        return _composites().IntegerPower(self, check_int(exponent, "exponent", "Kernel", 1))

    # --- identity

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._parameters() == other._parameters()

    def __hash__(self) -> int:
        return hash((type(self), self._parameters()))

    def _parameters(self) -> tuple[tuple[str, Any], ...]:
        return tuple(sorted(self.get_params(deep=False).items()))


Covariance.register(Kernel)  # what scikit-learn calls once for all pairs of rows; other callables once for each


def _is_row(x: Any) -> bool:
    """Say whether x is one row of a matrix of numbers."""
    return isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype.kind in "biuf"


def _composites() -> Any:
    """Return the module of composite kernels, which imports this one."""
    from genkern.kernels import composites

    return composites


def _transforms() -> Any:
    """Return the module of transformed kernels."""
    from genkern.kernels import transforms

    return transforms


def _operand(other: Any) -> Kernel | None:
    """Return a kernel, a number as a constant kernel, or None for anything else."""
    if isinstance(other, Kernel):
        return other
    if isinstance(other, numbers.Real) and not isinstance(other, bool):
        return _composites().Constant(check_number(other, "value", "Constant"))
    return None
