"""Kernels between models."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from typing import Any

from genkern.affinities import Expected, ExpectedLaplace, How, Power, affinity
from genkern.affinities.collection import Collection, as_collection
from genkern.kernels.base import BOTH, Kernel
from genkern.kernels.latex import INTEGRAL, observed, power, times
from genkern.validation import Floats, check_option

BETWEEN: dict[str, type[Expected] | type[ExpectedLaplace]] = {"gaussian": Expected, "laplace": ExpectedLaplace}


class ModelKernel(Kernel):
    """Values of ``affinity`` as a kernel."""

    length: int | None
    method: str
    _names = ("p", "q")

    @abstractmethod
    def _how(self) -> How:
        """Return the comparison of models behind it."""

    @property
    def native_logs(self) -> bool:
        """True: affinities are logarithms."""
        return True

    def prepare(self, X: Any) -> Collection:
        """Return models sorted into stacks."""
        try:
            models = as_collection(X, type(self).__name__)
        except TypeError as error:
            raise TypeError(f"{error} {BOTH}") from None
        if len(models.shape) != 1:
            raise ValueError(
                f"{type(self).__name__}: expected a list of models or a stack of batch (n,). Got batch {models.shape}; "
                "put a single model into a list."
            )
        return models

    def _logs(self, X: Collection, Y: Collection | None) -> Floats:
        return affinity(X, X if Y is None else Y, self._how(), self.length, self.method)

    def _logs_diag(self, X: Collection) -> Floats:
        return affinity.diag(X, self._how(), self.length, self.method)

    def _exact(self, X: Collection, Y: Collection | None) -> bool:
        groups = X.groups if Y is None else [*X.groups, *Y.groups]
        pairs = itertools.combinations_with_replacement([stack for stack, _ in groups], 2)
        return all(affinity.explain(*pair, self._how(), self.length, self.method).kind == "exact" for pair in pairs)


class ProbabilityProduct(ModelKernel):
    r"""The probability product kernel between models.

    .. math:: k(p, q) = \int p(x)^\rho\, q(x)^\rho\, dx

    Parameters
    ----------
    rho : float, default=1.0
        Power, positive. 1/2 (Bhattacharyya) does not depend on the units of x; 1 is the expected likelihood.
    length : int, optional
        Number of observations, symbols or points; sequence models need it. See ``affinity``.
    method : str, default="exact"
        The kind of formula; ``affinity.table()`` lists them.
    n_draws : int, optional
        How many paths methods that draw hidden paths ("all-pairs" and "paired" of ``SwitchingLDS``) draw from each
        model, 32 by default.
    seed : int, default=0
        Seed of these draws.

    Notes
    -----
    For models with latent variables and rho other than 1 the power is taken inside the sum over latent paths, which
    keeps it positive semi-definite and computable. Values fall exponentially with the length: use ``.normalized()``.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, Journal of Machine Learning Research 5.

    Examples
    --------
    >>> from genkern import Gaussian, ProbabilityProduct
    >>> k = ProbabilityProduct(rho=0.5).normalized()
    >>> k([Gaussian(0.0, 1.0), Gaussian(2.0, 1.0)]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    _positive = ("rho",)

    def __init__(
        self,
        rho: float = 1.0,
        length: int | None = None,
        method: str = "exact",
        n_draws: int | None = None,
        seed: int = 0,
    ):
        self.rho = rho
        self.length = length
        self.method = method
        self.n_draws = n_draws
        self.seed = seed

    def _how(self) -> Power:
        return Power(self.rho, self.n_draws, self.seed)

    @property
    def _level(self) -> int:
        return INTEGRAL

    def _written(self, left: int, right: int, view: str = "") -> str:
        (p, q), x = self._arguments(left, right, view), observed("x", self.length)
        return rf"\int {p}({x}){power(self.rho)}\, {q}({x}){power(self.rho)}\, d{x}"


class MeanMap(ModelKernel):
    r"""The generative mean map kernel between models.

    .. math:: k(p, q) = E\, \exp(-\tfrac{\lambda}{2} \|X - Y\|^2), \quad X \sim p,\ Y \sim q

    or, of the Laplace kernel, :math:`E\, \exp(-\lambda \|X - Y\|_1)`.

    Parameters
    ----------
    lam : float, default=1.0
        Sharpness, not negative; symbols are one-hot vectors. Towards infinity it becomes the probability product
        kernel with rho = 1, up to a factor. For symbols it may be infinite: that kernel itself.
    length : int, optional
        Number of observations, symbols or points; sequence models need it. See ``affinity``.
    method : str, default="exact"
        The kind of formula; ``affinity.table()`` lists them.
    kernel : {"gaussian", "laplace"}, default="gaussian"
        The kernel between observations. That of Laplace has closed forms for symbols, zeros and ones, ``Exponential``,
        ``Gaussian`` with diagonal covariances, and structures over these; others are compared by draws, as
        ``Sampled(model, n)``.
    n_draws : int, optional
        How many paths methods that draw hidden paths ("all-pairs" and "paired" of ``SwitchingLDS``) draw from each
        model, 32 by default.
    seed : int, default=0
        Seed of these draws.

    References
    ----------
    Mehta & Gray (2010), Generative and latent mean map kernels, section 2.

    Examples
    --------
    >>> from genkern import Categorical, MeanMap
    >>> MeanMap(lam=1.0)(Categorical([[1.0, 0.0], [0.0, 1.0]])).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    _positive = ("lam",)

    def __init__(
        self,
        lam: float = 1.0,
        length: int | None = None,
        method: str = "exact",
        kernel: str = "gaussian",
        n_draws: int | None = None,
        seed: int = 0,
    ):
        self.lam = lam
        self.length = length
        self.method = method
        self.kernel = kernel
        self.n_draws = n_draws
        self.seed = seed

    def _how(self) -> Expected | ExpectedLaplace:
        check_option(self.kernel, tuple(BETWEEN), "kernel", "MeanMap")
        return BETWEEN[self.kernel](self.lam, self.n_draws, self.seed)

    def _written(self, left: int, right: int, view: str = "") -> str:
        p, q = self._arguments(left, right, view)
        x, y = observed("X", self.length), observed("Y", self.length)
        gap = rf"{times(0.5 * self.lam)}\|{x} - {y}\|^2"
        if self.kernel == "laplace":
            gap = rf"{times(self.lam)}\|{x} - {y}\|_1"
        return rf"E_{{{x} \sim {p},\, {y} \sim {q}}} \left[\exp(-{gap})\right]"
