"""Kernels on one of several representations of the same objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from genkern.data.representations import Representations
from genkern.kernels.base import Kernel
from genkern.validation import Floats


class On(Kernel):
    r"""A kernel on one view of objects, :math:`k(x, y) = k_v(\phi_v(x), \phi_v(y))`.

    Sums and products of such kernels compare objects in several ways at once: by Fisher scores, by models of their own,
    by words. Positive semi-definite if the kernel is.

    Parameters
    ----------
    view : str
        The name of the view.
    kernel : Kernel
        The kernel between two representations in that view.

    Notes
    -----
    It compares ``Representations``, as ``Views`` makes them, or a dict of views. Parameters of the kernel are those of
    a grid: ``kernel__rho``, in a sum ``left__kernel__rho``.

    Examples
    --------
    >>> from genkern import FitEach, Linear, MarkovChainEstimator, On, ProbabilityProduct, Spectrum, Views
    >>> X = ["abab", "aabb", "bbba"]
    >>> views = Views([("words", Spectrum(2)), ("models", FitEach(MarkovChainEstimator(order=1)))]).fit_transform(X)
    >>> kernel = On("words", Linear().normalized()) + 2 * On("models", ProbabilityProduct(0.5, 3).normalized())
    >>> kernel(views).round(3)
    array([[3.   , 0.868, 0.395],
           [0.868, 3.   , 0.851],
           [0.395, 0.851, 3.   ]])
    """

    def __init__(self, view: str, kernel: Kernel):
        self.view = view
        self.kernel = kernel

    @property
    def native_logs(self) -> bool:
        """Whether the kernel's values are exponentials of computed logarithms."""
        return self.kernel.native_logs

    @property
    def signed(self) -> bool:
        """Whether the kernel may be negative."""
        return self.kernel.signed

    def prepare(self, X: Any) -> Representations:
        """Return all views, this one in the form in which the kernel compares it."""
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"On: 'kernel' must be a Kernel such as Linear(). Got {self.kernel!r} instead.")
        if not isinstance(X, Representations | Mapping):
            raise TypeError(f"{self!r} compares views of objects, as Views gives them. Got {type(X).__name__}.")
        views = X if isinstance(X, Representations) else Representations(X)
        if self.view not in views.names:
            named = ", ".join(map(repr, views.names))
            raise ValueError(f"{self!r}: there is no view {self.view!r}. Views are {named}.")
        return views.with_view(self.view, self.kernel.prepare(views[self.view]))

    def _values(self, X: Any, Y: Any) -> Floats:
        return self.kernel._values(*self._seen(X, Y))

    def _values_diag(self, X: Any) -> Floats:
        return self.kernel._values_diag(X[self.view])

    def _logs(self, X: Any, Y: Any) -> Floats:
        return self.kernel._logs(*self._seen(X, Y))

    def _logs_diag(self, X: Any) -> Floats:
        return self.kernel._logs_diag(X[self.view])

    def _exact(self, X: Any, Y: Any) -> bool:
        return self.kernel._exact(*self._seen(X, Y))

    def _seen(self, X: Any, Y: Any) -> tuple[Any, Any]:
        """Return the view of both."""
        return X[self.view], None if Y is None else Y[self.view]

    def __repr__(self) -> str:
        return f"On({self.view!r}, {self.kernel!r})"

    @property
    def _level(self) -> int:
        return self.kernel._level

    def _written(self, left: int, right: int, view: str = "") -> str:
        return self.kernel._written(left, right, f"{view}, {self.view}" if view else self.view)
