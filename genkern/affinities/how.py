"""The two ways of comparing distributions: products of powers, and expected kernels."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from genkern.validation import Floats, check_int, check_number


class How:
    """A comparison of two distributions.

    Models with latent variables need only ``weight_power``: the power on their weights (start, transition and
    mixture probabilities), while emissions are compared by the formula of their own family.
    """

    @property
    def weight_power(self) -> float:
        """Power on the weights of latent variables."""
        return 1.0

    n_draws: int | None = None
    seed: int = 0

    def _check_draws(self) -> None:
        if self.n_draws is not None:
            check_int(self.n_draws, "n_draws", type(self).__name__, 2)
        check_int(self.seed, "seed", type(self).__name__)


@dataclass(frozen=True)
class Power(How):
    r"""The probability product :math:`\int p(x)^\rho\, q(x)^\rho\, dx`.

    Parameters
    ----------
    rho : float, default=1.0
        Power, positive: 1/2 is Bhattacharyya's affinity, 1 the expected likelihood.
    n_draws : int, optional
        How many paths methods that draw hidden paths ("all-pairs", "paired") draw from each model, 32 by default.
    seed : int, default=0
        Seed of these draws, which depend on it and on the model alone.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, eq. 2.

    Examples
    --------
    >>> from genkern import Categorical, Power, affinity
    >>> round(float(affinity(Categorical([0.5, 0.5]), Categorical([0.9, 0.1]), Power(0.5))), 4)
    -0.1116
    """

    rho: float = 1.0
    n_draws: int | None = field(default=None, repr=False)
    seed: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", check_number(self.rho, "rho", "Power", exclusive=True))
        self._check_draws()

    @property
    def weight_power(self) -> float:
        """Power on the weights of latent variables: rho."""
        return self.rho


class Mean(How):
    """The expectation of a kernel of differences, exp(-scale lam sum_j apart(x_j - y_j)), between independent draws."""

    lam: float
    scale: ClassVar[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", check_number(self.lam, "lam", type(self).__name__, infinite=True))
        self._check_draws()

    @abstractmethod
    def apart(self, gap: Floats) -> Floats:
        """Return what differences count."""

    @property
    def finite(self) -> float:
        """The sharpness between numbers, which are never equal."""
        if self.lam == math.inf:
            raise ValueError(
                "affinity: lam=inf, which asks for equal observations, is for symbols: numbers are never equal. Take a "
                "finite lam, or the probability product with rho=1, which is the limit up to a factor."
            )
        return self.lam


@dataclass(frozen=True)
class Expected(Mean):
    r"""The expected Gaussian kernel :math:`E\, e^{-\frac{\lambda}{2}\|X - Y\|^2}`, X and Y independent draws.

    Symbols are one-hot vectors: :math:`e^{-\lambda [x \ne y]}`.

    Parameters
    ----------
    lam : float, default=1.0
        Sharpness, not negative; scikit-learn's ``gamma`` is half of it. For symbols it may be infinite: they must be
        equal, and it is the product with :math:`\rho = 1`.
    n_draws, seed : int
        As in ``Power``.

    References
    ----------
    Mehta & Gray (2010), Generative and latent mean map kernels, section 2.

    Examples
    --------
    >>> from genkern import Expected, Gaussian, affinity
    >>> float(affinity(Gaussian(0.0, 0.0), Gaussian(2.0, 0.0), Expected(1.0)))
    -2.0
    """

    lam: float = 1.0
    n_draws: int | None = field(default=None, repr=False)
    seed: int = field(default=0, repr=False)
    scale: ClassVar[float] = 0.5

    def apart(self, gap: Floats) -> Floats:
        """Return squares."""
        return gap**2


@dataclass(frozen=True)
class ExpectedLaplace(Mean):
    r"""The expected Laplace kernel :math:`E\, e^{-\lambda \|X - Y\|_1}`, X and Y independent draws.

    Symbols are one-hot vectors, of which two are at distance 2: :math:`e^{-2 \lambda [x \ne y]}`.

    Parameters
    ----------
    lam : float, default=1.0
        Sharpness, not negative; for symbols also infinite.
    n_draws, seed : int
        As in ``Power``.

    References
    ----------
    Mehta & Gray (2010), Generative and latent mean map kernels, section 1 (with :math:`\beta` for :math:`\lambda`).

    Examples
    --------
    >>> from genkern import ExpectedLaplace, Gaussian, affinity
    >>> float(affinity(Gaussian(0.0, 0.0), Gaussian(2.0, 0.0), ExpectedLaplace(1.0)))
    -2.0
    """

    lam: float = 1.0
    n_draws: int | None = field(default=None, repr=False)
    seed: int = field(default=0, repr=False)
    scale: ClassVar[float] = 1.0

    def apart(self, gap: Floats) -> Floats:
        """Return absolute values."""
        return np.abs(gap)

    def of_symbols(self) -> Expected:
        """Return the Gaussian kernel that is the same between one-hot vectors, and between zeros and ones."""
        return Expected(2.0 * self.lam)


@dataclass(frozen=True)
class Jeffreys(How):
    r"""The symmetric Kullback-Leibler divergence, as the log value :math:`-a\, [KL(p, q) + KL(q, p)]`.

    The exponential is no positive semi-definite kernel in general.

    Parameters
    ----------
    a : float, default=1.0
        Sharpness, positive.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 7.

    Examples
    --------
    >>> from genkern import Gaussian, Jeffreys, affinity
    >>> float(affinity(Gaussian(0.0, 1.0), Gaussian(2.0, 1.0), Jeffreys()))
    -4.0
    """

    a: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", check_number(self.a, "a", "Jeffreys", exclusive=True))
