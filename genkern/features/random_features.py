"""Explicit features of the Gaussian kernel: random Fourier and Taylor features of points, a root for symbols."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, xlogy

from genkern.validation import Floats


def draw_waves(n_dims: int, lam: float, n_features: int, seed: int, laplace: bool = False) -> tuple[Floats, Floats]:
    r"""Return random frequencies (n_dims, n_features), :math:`\omega \sim N(0, \lambda I)`, and phases (n_features,).

    Neighbouring features are the cosine and the sine of one frequency, whose products depend on differences of points
    only and vary less than those of cosines with random phases (Sutherland & Schneider 2015, On the error of random
    Fourier features); the last of an odd number has a random phase. Those of the Laplace kernel
    :math:`e^{-\lambda |x - x'|_1}` have Cauchy distributions of scale :math:`\lambda`.
    """
    rng = np.random.default_rng(seed)
    shape = (n_dims, (n_features + 1) // 2)
    drawn = lam * rng.standard_cauchy(shape) if laplace else np.sqrt(lam) * rng.standard_normal(shape)
    phases = np.resize([0.0, -0.5 * np.pi], n_features)
    if n_features % 2:
        phases[-1] = rng.uniform(0.0, 2.0 * np.pi)
    return np.repeat(drawn, 2, axis=1)[:, :n_features], phases


def fourier_features(points: Floats, frequencies: Floats, phases: Floats) -> Floats:
    r"""Return :math:`\sqrt{2 / D} \cos(\omega^T x + b)`, (N, D), of points (N, d), frequencies (d, D), phases (D,).

    With those of ``draw_waves``, inner products are unbiased estimates of :math:`e^{-\lambda |x - x'|^2 / 2}`.
    """
    # Column by column: a row of a BLAS product would depend on the number of rows.
    angles = np.tile(phases, (len(points), 1))
    for column, row in zip(points.T, frequencies):
        angles += column[:, None] * row
    np.cos(angles, out=angles)
    angles *= np.sqrt(2.0 / len(phases))
    return angles


def taylor_features(points: Floats, lam: float, n_features: int) -> Floats:
    r"""Return :math:`e^{-z^2 / 2} z^k / \sqrt{k!}`, (N, n_features), with :math:`z = \sqrt\lambda\, x`, of points (N,).

    Inner products are those of :math:`e^{-\lambda (x - x')^2 / 2} = e^{-z^2 / 2} e^{-z'^2 / 2} \sum_k (z z')^k / k!`,
    cut off after ``n_features`` terms; in logarithms, as the first terms of large z are below the range of floats.
    """
    scaled = np.sqrt(lam) * np.asarray(points, np.float64)[:, None]
    powers = np.arange(n_features)
    sizes: Floats = np.exp(xlogy(powers, np.abs(scaled)) - 0.5 * scaled**2 - 0.5 * gammaln(powers + 1.0))
    return np.where((scaled < 0.0) & (powers % 2 == 1), -sizes, sizes)


def apply_root(values: Floats, lam: float, axis: int) -> Floats:
    r"""Return values multiplied by R along an axis of m symbols, where :math:`(R R)_{ab} = e^{-\lambda [a \ne b]}`.

    .. math:: R = \sqrt{1 - e}\, I + \frac{\sqrt{1 - e + m e} - \sqrt{1 - e}}{m}\, 1 1^T, \qquad e = e^{-\lambda}

    R is the symmetric root of the Gaussian kernel between one-hot vectors, so that inner products of the results are
    :math:`\sum_{ab} v_a v'_b e^{-\lambda [a \ne b]}`. An infinite :math:`\lambda` changes nothing.
    """
    own, size = np.sqrt(-np.expm1(-lam)), values.shape[axis]
    spread = (np.sqrt(own**2 + size * np.exp(-lam)) - own) / size
    return own * values + spread * values.sum(axis=axis, keepdims=True)
