"""The two ways of comparing distributions: products of powers, and expected kernels."""

from __future__ import annotations

from dataclasses import dataclass

from genkern.validation import check_number


class How:
    """A comparison of two distributions.

    Models with latent variables need only ``weight_power``: the power on their weights (start, transition and
    mixture probabilities), while emissions are compared by the formula of their own family.
    """

    @property
    def weight_power(self) -> float:
        """Power on the weights of latent variables."""
        return 1.0


@dataclass(frozen=True)
class Power(How):
    r"""The probability product :math:`\int p(x)^\rho\, q(x)^\rho\, dx`.

    Parameters
    ----------
    rho : float, default=1.0
        Power, positive: 1/2 is Bhattacharyya's affinity, 1 the expected likelihood.

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", check_number(self.rho, "rho", "Power", exclusive=True))

    @property
    def weight_power(self) -> float:
        """Power on the weights of latent variables: rho."""
        return self.rho


@dataclass(frozen=True)
class Expected(How):
    r"""The expected Gaussian kernel :math:`E\, e^{-\frac{\lambda}{2}\|X - Y\|^2}`, X and Y independent draws.

    Symbols are one-hot vectors: :math:`e^{-\lambda [x \ne y]}`.

    Parameters
    ----------
    lam : float, default=1.0
        Sharpness, not negative; scikit-learn's ``gamma`` is half of it.

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", check_number(self.lam, "lam", "Expected"))


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
