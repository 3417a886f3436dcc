"""Newton's method for the likelihood equations that have no closed form, for many members at once.

Every element stops by itself, so that its result does not depend on the others'.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, i0e, i1e, logsumexp, zeta

Floats = NDArray[np.float64]

MAX_STEPS = 100  # Newton needs about five; damped steps from afar a few more
CLOSE = 1e-9  # after a relative step this small, the next one would be rounding: convergence is quadratic
LARGE = 20.0  # from here on, six terms of the asymptotic series of digamma and trigamma are right to the last bit


def gamma_shape(gap: Floats) -> Floats:
    r"""Return the shapes (M,) with :math:`\log a - \psi(a) = g`, where g > 0 is log of the mean minus mean of the log.

    Newton's method in 1/a (Minka 2002, Estimating a Gamma distribution), in which the left side is convex and nearly
    linear: its slope rises from 1/2 to 1. So after one step at most it comes down on the root, and stays positive.
    """
    start = 12.0 * gap / (3.0 - gap + np.sqrt((gap - 3.0) ** 2 + 24.0 * gap))

    def step(u: Floats, target: Floats) -> Floats:
        value, slope = _log_minus_digamma(1.0 / u)
        return u - (value - target) / slope

    return 1.0 / _iterate(start, gap, step)


def _log_minus_digamma(a: Floats) -> tuple[Floats, Floats]:
    """Return log a - digamma(a) and its derivative by 1/a, a^2 trigamma(a) - a, without cancellation for large a."""
    u, small = 1.0 / a, a < LARGE
    v = u * u
    value = u / 2 + v * (1 / 12 - v * (1 / 120 - v * (1 / 252 - v * (1 / 240 - v / 132))))
    slope = 0.5 + u * (1 / 6 - v * (1 / 30 - v * (1 / 42 - v * (1 / 30 - v * (5 / 66)))))
    value[small] = np.log(a[small]) - digamma(a[small])
    slope[small] = a[small] ** 2 * zeta(2.0, a[small]) - a[small]
    return value, slope


def bessel_ratio(concentration: Floats) -> Floats:
    """Return A(k) = I1(k) / I0(k), the length of the mean direction of a von Mises distribution."""
    ratio: Floats = i1e(concentration) / i0e(concentration)
    return ratio


def bessel_ratio_slope(concentration: Floats) -> Floats:
    """Return A'(k) = 1 - A(k) / k - A(k)^2, which is 1/2 at k = 0."""
    ratio = bessel_ratio(concentration)
    share = np.divide(ratio, concentration, out=np.full_like(ratio, 0.5), where=concentration > 0)
    slope: Floats = 1.0 - share - ratio**2
    return slope


def inverse_bessel_ratio(length: Floats) -> Floats:
    """Return the concentrations (M,) with A(k) = r, for 0 <= r < 1.

    Newton's method from the start of Banerjee et al. (2005), Clustering on the unit hypersphere, eq. 4.4.
    """
    start = length * (2.0 - length**2) / (1.0 - length**2)

    def step(k: Floats, target: Floats) -> Floats:
        moved = k - (bessel_ratio(k) - target) / bessel_ratio_slope(k)
        return np.clip(moved, 0.5 * k, 2.0 * k)

    return _iterate(start, length, step)


def _iterate(start: Floats, target: Floats, step: Callable[[Floats, Floats], Floats]) -> Floats:
    """Return fixed points of a step by elements; each element stops when it no longer moves."""
    x, active = start.copy(), np.arange(len(start))
    for _ in range(MAX_STEPS):
        old = x[active]
        x[active] = step(old, target[active])
        active = active[np.abs(x[active] - old) > CLOSE * np.abs(old)]
        if len(active) == 0:
            break
    return x


def dirichlet_alpha(mean_log: Floats) -> Floats:
    r"""Return alpha (M, d) of maximum likelihood from means (M, d) of the logarithms, with :math:`\sum_j e^{m_j} < 1`.

    Newton's method of Minka (2000), Estimating a Dirichlet distribution, section 1: the Hessian is a diagonal plus a
    matrix of rank one. Steps that leave the domain or lower the (concave) likelihood are halved.
    """
    # For large alpha, sum_j e^{m_j} is one minus (d - 1) / (2 sum(alpha)) to first order; given the sum, each is exact.
    total = 0.5 * (mean_log.shape[1] - 1) / -np.expm1(logsumexp(mean_log, axis=1, keepdims=True))
    alpha = _inverse_digamma(mean_log + digamma(total))
    active = np.arange(len(alpha))
    for _ in range(MAX_STEPS):
        old, target = alpha[active], mean_log[active]
        alpha[active] = new = _damped(old, _dirichlet_step(old, target), target)
        active = active[(np.abs(new - old) > CLOSE * old).any(axis=1)]
        if len(active) == 0:
            break
    return alpha


def _inverse_digamma(y: Floats) -> Floats:
    """Return x with digamma(x) = y, by five steps of Newton's method (Minka 2000, appendix C)."""
    x = np.where(y >= -2.22, np.exp(np.minimum(y, 700.0)) + 0.5, -1.0 / (y - digamma(1.0)))
    for _ in range(5):
        x = x - (digamma(x) - y) / zeta(2.0, x)
    return x


def _dirichlet_step(alpha: Floats, mean_log: Floats) -> Floats:
    """Return Newton's steps (M, d)."""
    total = alpha.sum(axis=1, keepdims=True)
    slope = digamma(total) - digamma(alpha) + mean_log
    curve = -zeta(2.0, alpha)
    both = 1.0 / zeta(2.0, total) + (1.0 / curve).sum(axis=1, keepdims=True)
    shift = (slope / curve).sum(axis=1, keepdims=True) / both
    step: Floats = (shift - slope) / curve
    return step


def _damped(alpha: Floats, step: Floats, mean_log: Floats) -> Floats:
    """Return alpha + step, with those rows of the step halved that leave the domain or lower the likelihood."""
    value, rounding = _dirichlet_value(alpha, mean_log)
    size = np.ones((len(alpha), 1))
    for _ in range(MAX_STEPS):
        new = alpha + size * step
        legal = np.asarray((new > 0).all(axis=1))
        worse = np.asarray(~legal)
        worse[legal] = _dirichlet_value(new[legal], mean_log[legal])[0] < (value - rounding)[legal]
        if not worse.any():
            return new
        size[worse] *= 0.5
    return np.where(worse[:, None], alpha, new)


def _dirichlet_value(alpha: Floats, mean_log: Floats) -> tuple[Floats, Floats]:
    """Return the mean log-likelihood (M,), and a bound on the rounding of its terms."""
    terms = np.column_stack([gammaln(alpha.sum(axis=1)), alpha * mean_log, -gammaln(alpha)])
    return terms.sum(axis=1), 1e-14 * np.abs(terms).sum(axis=1)
