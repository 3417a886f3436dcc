r"""Newton's method for regularised logistic regression, in the space of the dual or of the primal coefficients.

With labels :math:`s_i = \pm 1`, weights :math:`c_i` and values :math:`f = K\alpha = Z\theta`, both minimise

.. math:: P = \sum_i c_i \log(1 + e^{-s_i (f_i + b)}) + \tfrac12 \alpha^T K \alpha

whose dual is, with the binary entropy H and :math:`\beta_i = c_i s_i \lambda_i`, which sum to zero if the bias is free,

.. math:: D = \max_{0 \le \lambda \le 1} \sum_i c_i H(\lambda_i) - \tfrac12 \beta^T K \beta .

At :math:`\lambda_i = \sigma(-s_i (f_i + b))`, with the best b for f, both sums share their terms and the gap is a
square, :math:`P - D = \tfrac12 (\beta - \alpha)^T K (\beta - \alpha)`: never negative, and free of cancellation.

References
----------
Jaakkola & Haussler (1999), Exploiting generative models in discriminative classifiers, eq. 2-5.
Rasmussen & Williams (2006), Gaussian processes for machine learning, section 3.4 (the stable Newton step).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import brentq
from scipy.special import expit, log_expit, logsumexp

from genkern.validation import Floats

HALVINGS = 40
SUFFICIENT = 1e-4  # share of the linear decrease that a step must keep
ROUNDING = 4 * np.finfo(float).eps  # relative to the objective: a smaller decrease counts as none
NEAR = 1e-6  # relative to the objective: a step with a smaller predicted decrease ends at the optimum


class Solution(NamedTuple):
    """The optimum: coefficients (n,) or (r,), dual coefficients (n,), bias, objective and gap, and how it was found."""

    coefficients: Floats
    dual: Floats
    bias: float
    objective: float
    gap: float
    n_iter: int
    converged: bool


class CoefficientSpace(Protocol):
    """The space of coefficients: their inner product, their function values, and a Newton step."""

    size: int

    def values(self, coefficients: Floats) -> Floats:
        """Return f, (n,)."""

    def inner(self, first: Floats, second: Floats) -> float:
        """Return the inner product of two functions by their coefficients."""

    def gradient(self, dual: Floats, coefficients: Floats) -> Floats:
        """Return minus the gradient of the objective, given the derivatives of the loss."""

    def step(self, gradient: Floats, curvature: Floats, free: bool) -> Floats:
        """Return the Newton step for second derivatives (n,) of the loss."""


class DualSpace:
    r"""Coefficients :math:`\alpha` (n,) of :math:`f = K \alpha`, for a positive semi-definite K (n, n)."""

    def __init__(self, K: Floats):
        self.K, self.size = K, len(K)

    def values(self, coefficients: Floats) -> Floats:
        """Return f, (n,)."""
        return self.K @ coefficients

    def inner(self, first: Floats, second: Floats) -> float:
        """Return the inner product of two functions by their coefficients."""
        return float(first @ (self.K @ second))

    def gradient(self, dual: Floats, coefficients: Floats) -> Floats:
        """Return minus the gradient of the objective, given the derivatives of the loss."""
        return dual - coefficients

    def step(self, gradient: Floats, curvature: Floats, free: bool) -> Floats:
        r"""Return :math:`\delta` with :math:`(I + WK)\delta + W 1 \delta_b = g`, and with a free bias 1ᵀδ = 1ᵀg.

        By the Cholesky factor of :math:`I + W^{1/2} K W^{1/2}`, whose eigenvalues are at least one.
        """
        root = np.sqrt(curvature)
        B = self.K * root[:, None]
        B *= root
        B.flat[:: self.size + 1] += 1.0
        factor = cho_factor(B, lower=True, overwrite_a=True, check_finite=False)
        step: Floats = gradient - root * cho_solve(factor, root * (self.K @ gradient), check_finite=False)
        if free:
            constant = root * cho_solve(factor, root, check_finite=False)
            step -= constant * ((step.sum() - gradient.sum()) / constant.sum())
        return step


class PrimalSpace:
    r"""Coefficients :math:`\theta` (r,) of :math:`f = Z \theta`, for features Z (n, r)."""

    def __init__(self, Z: Floats):
        self.Z, self.size = Z, Z.shape[1]

    def values(self, coefficients: Floats) -> Floats:
        """Return f, (n,)."""
        return self.Z @ coefficients

    def inner(self, first: Floats, second: Floats) -> float:
        """Return the inner product of two functions by their coefficients."""
        return float(first @ second)

    def gradient(self, dual: Floats, coefficients: Floats) -> Floats:
        """Return minus the gradient of the objective, given the derivatives of the loss."""
        return self.Z.T @ dual - coefficients

    def step(self, gradient: Floats, curvature: Floats, free: bool) -> Floats:
        r"""Return :math:`(I + \tilde Z^T W \tilde Z)^{-1} g`, with Z centred by W if the bias is free."""
        root = np.sqrt(curvature)[:, None]
        B = root * (self.Z - curvature @ self.Z / curvature.sum()) if free else root * self.Z
        A = B.T @ B  # of one matrix with itself, which costs half of a product
        A.flat[:: self.size + 1] += 1.0
        factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
        step: Floats = cho_solve(factor, gradient, check_finite=False)
        return step


class _State(NamedTuple):
    """The state after a step: coefficients, values (n,), bias, wrong-label probabilities (n,), and derived numbers."""

    coefficients: Floats
    values: Floats
    bias: float
    miss: Floats
    dual: Floats
    gradient: Floats
    objective: float
    gap: float


def solve(space: CoefficientSpace, signs: Floats, weights: Floats, free: bool, tol: float, max_iter: int) -> Solution:
    """Return the optimum, by damped Newton steps until the duality gap is at most tol times the objective.

    signs (n,) of -1 and 1; weights (n,) of the losses, of which each sign has a positive one; free: whether there is an
    unpenalised bias.
    """

    def look(coefficients: Floats) -> _State:
        values = space.values(coefficients)
        bias = best_bias(values, signs, weights) if free else 0.0
        margins = signs * (values + bias)
        miss = expit(-margins)
        dual = weights * signs * miss
        gradient = space.gradient(dual, coefficients)
        objective = -float(weights @ log_expit(margins)) + 0.5 * space.inner(coefficients, coefficients)
        gap = 0.5 * max(space.inner(gradient, gradient), 0.0)
        return _State(coefficients, values, bias, miss, dual, gradient, objective, gap)

    state, n_iter = look(np.zeros(space.size)), 0
    while state.gap > tol * state.objective and n_iter < max_iter:
        curvature = weights * state.miss * expit(signs * (state.values + state.bias))
        reached = _advance(state, look, space, curvature, free)
        if reached is None:
            break
        state, n_iter = reached, n_iter + 1
    converged = state.gap <= tol * state.objective
    return Solution(state.coefficients, state.dual, state.bias, state.objective, state.gap, n_iter, converged)


def _advance(
    state: _State, look: Callable[[Floats], _State], space: CoefficientSpace, curvature: Floats, free: bool
) -> _State | None:
    """Return the state after a Newton step, halved until it is good enough; None if rounding permits none.

    Good enough is a sufficient decrease of the objective. Near the optimum, where rounding may hide that, it is also
    half the gap.
    """
    try:
        step = space.step(state.gradient, curvature, free)
    except LinAlgError:
        return None  # rounding errors of a kernel matrix that is too large
    slope = space.inner(state.gradient, step)
    size = 1.0
    for _ in range(HALVINGS):
        reached = look(state.coefficients + size * step)
        if reached.objective <= state.objective - max(SUFFICIENT * size * slope, ROUNDING * state.objective):
            return reached
        if slope <= NEAR * state.objective and reached.gap <= 0.5 * state.gap:
            return reached
        size *= 0.5
    return None


def best_bias(values: Floats, signs: Floats, weights: Floats) -> float:
    r"""Return the b at which :math:`\sum_i c_i s_i \sigma(-s_i (f_i + b)) = 0`, which minimises the loss.

    The logarithms of the two classes' sums are compared: their difference falls with b everywhere, also where all
    objects are far on the right side. It is positive at the lower and negative at the upper end of the bracket.
    """
    used = weights > 0
    values, up, logs = values[used], signs[used] > 0, np.log(weights[used])

    def excess(b: float) -> float:
        misses = logs + log_expit(np.where(up, -1.0, 1.0) * (values + b))
        return float(logsumexp(misses[up]) - logsumexp(misses[~up]))

    reach = abs(float(logsumexp(logs[up]) - logsumexp(logs[~up]))) + 1.0
    low, high = -float(values.max()) - reach, -float(values.min()) + reach
    return float(brentq(excess, low, high, xtol=1e-15, rtol=4 * np.finfo(float).eps, maxiter=1000))
