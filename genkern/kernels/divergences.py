"""Kernels made of distances between models: Hellinger's, the symmetric Kullback-Leibler divergence, heat."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import eval_gegenbauer, gammaln

from genkern.affinities import How, Jeffreys, Power
from genkern.affinities.categorical import check_alphabets
from genkern.affinities.collection import Collection
from genkern.kernels.base import Kernel
from genkern.kernels.cosines import capped, divided, place_of
from genkern.kernels.latex import ATOM, PRODUCT, number, observed, over, times
from genkern.kernels.models import ModelKernel
from genkern.models.base import Model
from genkern.validation import Floats, check_number, check_option

KINDS = ("parametrix", "geodesic", "sphere")
MAX_CATEGORIES = 51  # of the series on the sphere, whose terms grow too large beyond
SMALL = 1e-17  # a term below this part of the first ends the series


class NotPositiveWarning(UserWarning):
    """A kernel that may have negative eigenvalues was used."""


class Hellinger(ModelKernel):
    r"""The Gaussian kernel of Hellinger's distance between models.

    .. math:: k(p, q) = \exp(-(2 - 2 \bar k(p, q)) / t), \quad \bar k = \int \sqrt{p(x)\, q(x)}\, dx

    Positive semi-definite. It is ``ProbabilityProduct(0.5).normalized().exp(1 / t)``: for models with hidden variables
    the power is taken inside the sum over them, and :math:`\bar k` normalised.

    Parameters
    ----------
    t : float, default=1.0
        Width, positive.
    length : int, optional
        Number of observations, for sequence models; see ``affinity``.
    method : str, default="exact"
        The kind of formula.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 2.1.

    Examples
    --------
    >>> from genkern import Categorical, Hellinger
    >>> Hellinger(t=2.0)(Categorical([[1.0, 0.0], [0.0, 1.0]])).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    _positive = ("t",)

    def __init__(self, t: float = 1.0, length: int | None = None, method: str = "exact"):
        self.t = t
        self.length = length
        self.method = method

    def _how(self) -> How:
        return Power(0.5)

    def _logs(self, X: Collection, Y: Collection | None) -> Floats:
        t = check_number(self.t, "t", "Hellinger", exclusive=True)
        other = None if Y is None else super()._logs_diag(Y)
        logs, scale = divided(super()._logs(X, Y), super()._logs_diag(X), other, self)
        places = place_of(X), place_of(X if Y is None else Y)
        logs = capped(logs, scale, lambda: self._exact(X, Y), self, places)
        return 2.0 * np.expm1(np.minimum(logs, 0.0)) / t

    def _logs_diag(self, X: Collection) -> Floats:
        return np.zeros(len(X))

    def _written(self, left: int, right: int, view: str = "") -> str:
        if left == right:
            return "1"
        (p, q), x = self._arguments(left, right, view), observed("x", self.length)
        return rf"\exp(-(2 - 2 \int \sqrt{{{p}({x})\, {q}({x})}}\, d{x}){over(self.t)})"


class SymmetricKL(ModelKernel):
    r"""The exponentiated symmetric Kullback-Leibler divergence between models.

    .. math:: k(p, q) = \exp(-a\, [KL(p, q) + KL(q, p)] + b)

    **Not positive semi-definite** in general: a warning says so when it is used. Zero for models with different
    supports.

    Parameters
    ----------
    a : float, default=1.0
        Sharpness, positive.
    length : int, optional
        Number of observations; independent ones multiply the divergence.
    b : float, default=0.0
        Added to the exponent: a factor :math:`e^b` of all values.

    Notes
    -----
    Closed forms exist for the leaf families; models with hidden variables are compared by draws, as ``Sampled`` values.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 7.
    Moreno, Ho & Vasconcelos (2004), A Kullback-Leibler divergence based kernel for SVM classification.

    Examples
    --------
    >>> import warnings
    >>> from genkern import Gaussian, SymmetricKL
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     SymmetricKL(0.5)([Gaussian(0.0, 1.0), Gaussian(1.0, 1.0)]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    method = "exact"
    _positive = ("a",)

    def __init__(self, a: float = 1.0, length: int | None = None, b: float = 0.0):
        self.a = a
        self.length = length
        self.b = b

    def _how(self) -> How:
        return Jeffreys(self.a)

    def _shift(self) -> float:
        return check_number(self.b, "b", "SymmetricKL", minimum=-math.inf)

    def _logs(self, X: Collection, Y: Collection | None) -> Floats:
        shift = self._shift()
        _warn(self, "Hellinger(t)")
        return super()._logs(X, Y) + shift

    def _logs_diag(self, X: Collection) -> Floats:
        return np.full(len(X), self._shift())

    def _written(self, left: int, right: int, view: str = "") -> str:
        if left == right:
            return rf"\exp({number(self.b)})" if self.b else "1"
        p, q = self._arguments(left, right, view)
        draws = 1 if self.length is None else self.length  # of independent ones
        shift = f" {'-' if self.b < 0.0 else '+'} {number(abs(self.b))}" if self.b else ""
        return rf"\exp(-{times(self.a * draws)}[KL({p}, {q}) + KL({q}, {p})]{shift})"


class Diffusion(ModelKernel):
    r"""Heat kernels between categorical distributions, as points of a sphere.

    The root :math:`\sqrt\theta` of a distribution over n + 1 symbols is a point of the unit sphere, and
    :math:`\arccos B`, :math:`B = \sum_k \sqrt{\theta_k \theta'_k}`, the angle between two of them.

    .. math:: (4 \pi t)^{-n/2} e^{-\arccos^2(B) / t} \ \text{("parametrix")}, \qquad
       e^{-\arccos(B) / t} \ \text{("geodesic")}

    "sphere" is the heat kernel of the whole sphere of radius two at time t, by its series of Gegenbauer polynomials.

    Parameters
    ----------
    t : float, default=1.0
        Time, positive.
    kind : {"parametrix", "geodesic", "sphere"}, default="parametrix"
        "parametrix" is the leading term for small times, as in the literature: **not positive semi-definite** in
        general, which a warning says when it is used. The other two are positive semi-definite.

    Notes
    -----
    Compares ``Categorical`` models, and ``Multinomial`` ones of any totals by their probabilities.

    References
    ----------
    Lafferty & Lebanon (2002), Information diffusion kernels. Jebara, Kondor & Howard (2004), section 7.
    Schoenberg (1942), Positive definite functions on spheres.

    Examples
    --------
    >>> from genkern import Categorical, Diffusion
    >>> Diffusion(1.0, kind="geodesic")(Categorical([[1.0, 0.0], [0.5, 0.5]])).round(4)
    array([[1.    , 0.4559],
           [0.4559, 1.    ]])
    """

    length = None
    method = "exact"
    _positive = ("t",)

    def __init__(self, t: float = 1.0, kind: str = "parametrix"):
        self.t = t
        self.kind = kind

    def _how(self) -> How:
        return Power(0.5)

    def prepare(self, X: Any) -> Collection:
        """Return categorical models sorted into stacks."""
        X = [_as_categorical(model) for model in X] if isinstance(X, Sequence) else _as_categorical(X)
        models = super().prepare(X)
        for group in models.groups:
            if not isinstance(group.stack, Model) or group.stack.as_categorical() is None:
                raise TypeError(
                    "Diffusion: compares Categorical and Multinomial models. Got "
                    f"{type(group.stack).__name__} at index {group.places[0]}."
                )
        if len(models.groups) > 1:
            raise ValueError("Diffusion: all models must have the same alphabet.")
        return models

    def _logs(self, X: Collection, Y: Collection | None) -> Floats:
        check_option(self.kind, KINDS, "kind", "Diffusion")
        if self.kind == "parametrix":
            _warn(self, "kind='geodesic' or 'sphere'")
        first, second = X.groups[0].stack, (X if Y is None else Y).groups[0].stack
        check_alphabets(first, second)
        return self._of(cdist(np.sqrt(first.probs), np.sqrt(second.probs)), first.alphabet.size)

    def _logs_diag(self, X: Collection) -> Floats:
        return self._of(np.zeros(len(X)), X.groups[0].stack.alphabet.size)

    def _of(self, chord: Floats, categories: int) -> Floats:
        """Return the log kernel of points of the unit sphere at these distances (cosines would lose digits)."""
        t, n = check_number(self.t, "t", "Diffusion", exclusive=True), categories - 1
        if self.kind == "sphere":
            return _sphere(1.0 - 0.5 * chord**2, n, t)
        angle = 2.0 * np.arcsin(0.5 * chord)
        if self.kind == "geodesic":
            return -angle / t
        logs: Floats = -0.5 * n * math.log(4.0 * math.pi * t) - angle**2 / t
        return logs

    @property
    def _level(self) -> int:
        return ATOM if self.kind == "geodesic" else PRODUCT

    def _written(self, left: int, right: int, view: str = "") -> str:
        if left == right and self.kind == "geodesic":
            return "1"
        p, q = self._arguments(left, right, view)
        cosine = rf"\sum_k \sqrt{{{p}_k {q}_k}}"
        if self.kind == "geodesic":
            return rf"\exp(-\arccos({cosine}){over(self.t)})"
        if self.kind == "sphere":
            terms = (
                rf"e^{{-{times(0.25 * self.t)}l (l + n - 1)}}\, \tfrac{{2 l + n - 1}}{{n - 1}}\, C_l^{{(n - 1) / 2}}"
            )
            return rf"\frac{{1}}{{2^n |S^n|}} \sum_{{l \ge 0}} \left[{terms}({cosine})\right]"
        return rf"({times(4.0 * self.t)}\pi)^{{-n/2}} \exp(-\arccos^2({cosine}){over(self.t)})"


def _as_categorical(model: Any) -> Any:
    """Return the law of a draw of a model of counts; others as they are."""
    found = model.as_categorical() if isinstance(model, Model) else None
    return model if found is None else found


def _sphere(cosine: Floats, n: int, t: float) -> Floats:
    r"""Return the log heat kernel of the n-sphere of radius two at time t.

    .. math:: 2^{-n} \sum_l e^{-l (l + n - 1) t / 4}\, \frac{2l + n - 1}{n - 1}\, C_l^{(n-1)/2}(\cos) / |S^n|
    """
    if n + 1 > MAX_CATEGORIES:
        raise ValueError(
            f"Diffusion: the series on the sphere is for at most {MAX_CATEGORIES} symbols. Got {n + 1}; use "
            "kind='geodesic'."
        )
    tau = 0.25 * t
    log_area = math.log(2.0) + 0.5 * (n + 1) * math.log(math.pi) - float(gammaln(0.5 * (n + 1)))
    total, order = np.zeros_like(cosine), 0
    while True:
        decay = math.exp(-order * (order + n - 1) * tau)
        if n == 1:  # the circle: a Fourier series
            polynomial, weight = np.cos(order * np.arccos(cosine)), 1.0 if order == 0 else 2.0
            size = weight
        else:
            weight = (2.0 * order + n - 1.0) / (n - 1.0)
            polynomial = eval_gegenbauer(order, 0.5 * (n - 1), cosine)
            size = weight * float(eval_gegenbauer(order, 0.5 * (n - 1), 1.0))
        total = total + decay * weight * polynomial
        if decay * size < SMALL and order > 0:
            break
        order += 1
    if (total <= 0.0).any():
        raise ValueError(
            f"Diffusion: at t = {t:g} values far apart are lost in rounding. Take a larger t, or kind='geodesic'."
        )
    logs: Floats = np.log(total) - log_area - n * math.log(2.0)
    return logs


def _warn(kernel: Kernel, remedy: str) -> None:
    warnings.warn(
        f"{kernel!r} is not positive semi-definite in general: learners may fail or find no optimum. {remedy} is; "
        "Gram(kernel, psd='clip') mends a matrix.",
        NotPositiveWarning,
        stacklevel=4,
    )
