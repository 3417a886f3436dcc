"""The latent mean map kernel, exactly: between posteriors of observations and hidden states."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.kernels.base import Kernel
from genkern.kernels.latent_sums import Stack, inner, norms, point_sums, spread_pairs, stack, symbol_sums
from genkern.kernels.latex import ATOM, SUM, times
from genkern.validation import Floats, check_number, check_option

PARTS = ("all", "observations", "transitions")


class LatentMean(Kernel):
    r"""The latent mean map kernel between posteriors, as ``Posteriors`` gives them.

    .. math:: k(x, x') = \frac1{L L'} \sum_{stij} \gamma_s(i)\, \gamma'_t(j)\, e^{-\lambda_x |x_s - x'_t|^2 / 2}\,
       e^{-\lambda_q [i \ne j]} + \sum_{ijkl} \Xi_{ij}\, \Xi'_{kl}\, e^{-\lambda_q ([i \ne k] + [j \ne l])}

    for series; symbols are one-hot vectors, with :math:`e^{-\lambda_x [x_s \ne x'_t]}`. Here :math:`\gamma_t(i) =
    P(q_t = i | x)`, and :math:`\Xi_{ij}` is the mean of :math:`P(q_t = i, q_{t+1} = j | x)` over time, zero for objects
    of one observation. It is positive semi-definite: an inner product of expectations of feature vectors.

    Parameters
    ----------
    lam_x : float, default=1.0
        Sharpness between observations, not negative; for symbols also infinite: they must be equal.
    lam_q : float, default=1.0
        Sharpness between states, not negative; infinite: they must be equal.
    parts : {"all", "observations", "transitions"}, default="all"
        Which of the two terms: the first, of observations and states; the second, of neighbouring states; or all
        that the model has (mixtures have no transitions).

    Notes
    -----
    As states sum to one, the sum over pairs of states is :math:`(1 - e) \gamma_s^T \gamma'_t + e`, with :math:`e =
    e^{-\lambda_q}`: a pair of series takes O(L L' (d + S)) operations, compiled, and only the memory of the result.
    Symbols take O(m S) per pair, once they are counted with states. ``LatentMeanMap`` gives explicit features of the
    same kernel: exact ones for symbols, approximate ones for series.

    References
    ----------
    Mehta & Gray (2010), Generative and latent mean map kernels, section 4; in eq. 8-9 the second sum must leave out
    j = i.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import Gaussian, LatentMean, Mixture, Posteriors
    >>> model = Mixture([0.5, 0.5], Gaussian([[0.0], [3.0]], [1.0, 1.0]))
    >>> X = Posteriors(model).fit_transform([np.array([0.1, 0.2, 2.9]), np.array([3.1, 2.7]), np.array([0.0, 3.0])])
    >>> LatentMean(lam_x=2.0, lam_q=1.0).normalized()(X).round(3)
    array([[1.   , 0.448, 0.932],
           [0.448, 1.   , 0.7  ],
           [0.932, 0.7  , 1.   ]])
    """

    _positive = ("lam_x", "lam_q")

    def __init__(self, lam_x: float = 1.0, lam_q: float = 1.0, parts: str = "all"):
        self.lam_x = lam_x
        self.lam_q = lam_q
        self.parts = parts

    def prepare(self, X: Any) -> Stack:
        """Return posteriors under one model, concatenated."""
        return X if isinstance(X, Stack) else stack(X)

    def _values(self, X: Stack, Y: Stack | None) -> Floats:
        if Y is not None:
            X.match(Y)
        return self._sum(X, Y, own=False)

    def _values_diag(self, X: Stack) -> Floats:
        return self._sum(X, None, own=True)

    def _sum(self, X: Stack, Y: Stack | None, own: bool) -> Floats:
        """Return the terms that are asked for, (n, n'), or their diagonal (n,)."""
        parts = check_option(self.parts, PARTS, "parts", "LatentMean")
        symbols, multiply = X.points.ndim == 1, norms if own else inner
        # If it were infinite, only equal vectors would be similar.
        lam_x = check_number(self.lam_x, "lam_x", "LatentMean", infinite=symbols)
        lam_q = check_number(self.lam_q, "lam_q", "LatentMean", infinite=True)
        terms = []
        if parts != "transitions":
            observed = symbol_sums(X, Y, lam_x, lam_q, multiply) if symbols else point_sums(X, Y, lam_x, lam_q, own)
            terms.append(observed)
        elif X.pairs.shape[1] == 0:
            raise ValueError("LatentMean: parts='transitions' needs posteriors of neighbouring states. Got none.")
        if parts != "observations" and X.pairs.shape[1]:
            terms.append(multiply(spread_pairs(X, lam_q), None if Y is None else spread_pairs(Y, lam_q)))
        return sum(terms[1:], terms[0])

    def _logs(self, X: Stack, Y: Stack | None) -> Floats:
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(self._values(X, Y))
        return logs

    def _logs_diag(self, X: Stack) -> Floats:
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(self._values_diag(X))
        return logs

    @property
    def _level(self) -> int:
        return SUM if self.parts == "all" else ATOM

    def _written(self, left: int, right: int, view: str = "") -> str:
        x, y = self._arguments(left, right, view)
        states = r"[Q \ne Q']"
        alike = {
            "observations": rf"e^{{-{times(0.5 * self.lam_x)}\|X - X'\|^2}}\, e^{{-{times(self.lam_q)}{states}}}",
            "transitions": rf"e^{{-{times(self.lam_q)}({states} + [Q_+ \ne Q'_+])}}",
        }
        # The hidden states Q, and with them an observation X or the next state, are drawn from posteriors.
        drawn = {"observations": ("(X, Q)", "(X', Q')"), "transitions": ("(Q, Q_+)", "(Q', Q'_+)")}
        return " + ".join(
            rf"E_{{{drawn[part][0]} \sim P_{{{x}}},\, {drawn[part][1]} \sim P_{{{y}}}}} \left[{alike[part]}\right]"
            for part in PARTS[1:]
            if self.parts in ("all", part)
        )
