"""Differences of log Gamma, and the families made of them, against decimal arithmetic of many digits."""

from __future__ import annotations

import itertools
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from typing import Any

import numpy as np
import pytest

from genkern import DirichletMultinomial, NegativeBinomial, StudentT
from genkern.core.families import gamma_ratio

DIGITS = 360  # a log a of the largest numbers, and twenty digits behind the point
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798")
BERNOULLI = [Decimal(a) / Decimal(b) for a, b in [(1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6)]]


def log_gamma(a: Decimal) -> Decimal:
    """Return log Gamma by Stirling's series, after moving small arguments up by the recurrence."""
    below = Decimal(1)
    while a < 200:
        below *= a
        a += 1
    total = (a - Decimal("0.5")) * a.ln() - a + (2 * PI).ln() / 2
    for k, b in enumerate(BERNOULLI, 1):
        total += b / (2 * k * (2 * k - 1) * a ** (2 * k - 1))
    return total - below.ln()


def digamma(a: Decimal) -> Decimal:
    """Return the derivative of log Gamma in the same way."""
    below = Decimal(0)
    while a < 200:
        below += 1 / a
        a += 1
    total = a.ln() - 1 / (2 * a)
    for k, b in enumerate(BERNOULLI, 1):
        total -= b / (2 * k * a ** (2 * k))
    return total - below


def exactly(function: Any, *values: float) -> float:
    """Return a function of decimals, computed with many digits."""
    with localcontext(prec=DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN):
        return float(function(*(Decimal(float(value)) for value in values)))


SIZES = [1e-300, 1e-30, 1e-3, 0.7, 1.0, 3.5, 19.9, 20.1, 150.0, 1e4, 1e8, 1e12, 1e16, 1e30, 1e100, 1e300]
STEPS = [0.5, 1.0, 1.5, 2.0, 30.0, 1e5, 1e10, 1e17]


@pytest.mark.parametrize("a", SIZES)
def test_differences_have_all_digits(a: float) -> None:
    for x in STEPS:
        exact = exactly(lambda a, x: log_gamma(a + x) - log_gamma(a), a, x)
        found = float(gamma_ratio.log_gamma_excess(a, x)) + x * np.log(a)
        np.testing.assert_allclose(found, exact, rtol=1e-14, atol=1e-14 + 4e-16 * abs(x * np.log(a)))
        # In the excess itself x is what was added to and subtracted from, and log Gamma of up to twenty.
        excess = exactly(lambda a, x: log_gamma(a + x) - log_gamma(a) - x * a.ln(), a, x)
        np.testing.assert_allclose(gamma_ratio.log_gamma_excess(a, x), excess, rtol=1e-13, atol=1e-14 + 4e-16 * x)
        rise = exactly(lambda a, x: digamma(a + x) - digamma(a), a, x)
        np.testing.assert_allclose(gamma_ratio.digamma_rise(a, x), rise, rtol=1e-13)
        np.testing.assert_array_equal(gamma_ratio.log_gamma_excess(a, 0.0), 0.0)


def test_deviances_have_all_digits() -> None:
    for m, share in itertools.product(
        [1e-3, 1.0, 1e10, 1e100], [-0.999, -0.5, -0.3, -1e-3, -1e-9, 1e-12, 0.1, 2.0, 1e9]
    ):
        k = m + m * share
        gap = exactly(lambda k, m: k - m, k, m)
        exact = exactly(lambda k, m: k * (k / m).ln() - k + m, k, m)
        np.testing.assert_allclose(gamma_ratio.deviance(k, m, gap), exact, rtol=1e-13)


@pytest.mark.parametrize("alpha", [0.3, 2.0, 1e8, 1e16, 1e100, 1e300])
def test_dirichlet_multinomial_of_any_size(alpha: float) -> None:
    model = DirichletMultinomial(np.array([alpha, 2.0 * alpha, 0.5 * alpha]), total=4)
    rows = np.array([row for row in itertools.product(range(5), repeat=3) if sum(row) == 4], dtype=float)
    with localcontext(prec=DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN):
        theta = [Decimal(float(a)) for a in model.alpha]
        whole = sum(theta)
        logs, scores = [], []
        for row in rows:
            counts = [Decimal(int(c)) for c in row]
            parts = [log_gamma(a + c) - log_gamma(a) for a, c in zip(theta, counts)]
            logs.append(float(sum(parts) - log_gamma(whole + 4) + log_gamma(whole)))
            common = digamma(whole + 4) - digamma(whole)
            # by the logarithm of alpha
            scores.append([float(a * (digamma(a + c) - digamma(a) - common)) for a, c in zip(theta, counts)])
    np.testing.assert_allclose(model.log_prob(rows), logs, rtol=1e-13)
    np.testing.assert_allclose(model.log_prob_grad(rows), scores, rtol=1e-12, atol=1e-12)
    orders = np.array([24.0 / np.prod([np.prod(np.arange(1, c + 1)) for c in row]) for row in rows])
    chance = orders * np.exp(logs)
    exact = np.einsum("n,na,nb->ab", chance, np.array(scores), np.array(scores))
    found = model.stack([model]).member_information(np.ones(1), "softmax")[0]
    np.testing.assert_allclose(found, exact, rtol=1e-11, atol=1e-12)


def test_dirichlet_multinomial_tends_to_its_limit() -> None:
    for alpha in (1e16, 1e100):
        found = DirichletMultinomial([alpha, alpha], ordered=False).log_prob(np.array([[5, 5]]))
        np.testing.assert_allclose(found, np.log(252.0 / 1024.0), rtol=1e-14)


@pytest.mark.parametrize("df", [1e-3, 0.5, 3.0, 38.0, 42.0, 1e3, 1e8, 1e16, 1e100])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_student_t_of_any_freedom(d: int, df: float) -> None:
    model = StudentT(np.zeros(d), 1.0, df=df)
    points = np.random.default_rng(0).normal(0.0, 2.0, (5, d))
    logs, slopes = [], []
    with localcontext(prec=DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN):
        v, half = Decimal(df), Decimal(d) / 2
        for point in points:
            q = sum(Decimal(float(x)) ** 2 for x in point)
            logs.append(
                float(
                    log_gamma(v / 2 + half)
                    - log_gamma(v / 2)
                    - half * (v * PI).ln()
                    - (v / 2 + half) * (1 + q / v).ln()
                )
            )
            slope = digamma(v / 2 + half) - digamma(v / 2) - 2 * half / v
            slopes.append(float(v / 2 * (slope - (1 + q / v).ln() + (v + 2 * half) / (v + q) * q / v)))
    np.testing.assert_allclose(model.log_prob(points), logs, rtol=2e-14)
    np.testing.assert_allclose(model.log_prob_grad(points)[:, -1], slopes, rtol=1e-11)


@pytest.mark.parametrize("b", [1e-200, 1e-3, 0.5, 19.0, 21.0, 1e3, 1e10, 1e100])
def test_information_about_freedom(b: float) -> None:
    def trigamma(x: Decimal) -> Decimal:
        below = Decimal(0)
        while x < 200:
            below += 1 / x**2
            x += 1
        total = 1 / x + 1 / (2 * x**2)
        for k, number in enumerate(BERNOULLI, 1):
            total += number / x ** (2 * k + 1)
        return total + below

    for a in (0.5, 1.0, 5.0):
        exact = exactly(
            lambda a, b: b**2 * (trigamma(b) - trigamma(a + b) - 2 * a / (b * (a + b)) + a / (b * (a + b + 1))), a, b
        )
        np.testing.assert_allclose(gamma_ratio.freedom_information(a, b), exact, rtol=3e-12)


@pytest.mark.parametrize("size", [1e-300, 0.2, 5.0, 30.0, 1e6, 1e16, 1e100])
def test_negative_binomial_of_any_size(size: float) -> None:
    for mean in (0.5, 3.0, 1e8):
        prob = size / (size + mean)
        counts = np.array([0.0, 1.0, 2.0, 40.0, 99_990_000.0])
        model = NegativeBinomial(size, prob)
        if prob == 1.0:
            np.testing.assert_array_equal(model.log_prob(counts[:, None]), [0.0] + [-np.inf] * 4)
            continue

        def exact(r: Decimal, p: Decimal, x: Decimal) -> Decimal:
            return log_gamma(x + r) - log_gamma(r) - log_gamma(x + 1) + r * p.ln() + x * (1 - p).ln()

        logs = [exactly(exact, size, prob, x) for x in counts]
        np.testing.assert_allclose(model.log_prob(counts[:, None]), logs, rtol=1e-13, atol=1e-13)
        slopes = [exactly(lambda r, p, x: r * (digamma(x + r) - digamma(r) + p.ln()), size, prob, x) for x in counts]
        np.testing.assert_allclose(model.log_prob_grad(counts[:, None])[:, 0], slopes, rtol=1e-12, atol=1e-12 * mean)


def test_negative_binomial_tends_to_poisson() -> None:
    step = 2.0**-52
    found = NegativeBinomial(1e16, 1.0 - step).log_prob([[1.0]])
    rate = 1e16 * step
    np.testing.assert_allclose(found, np.log(rate) - rate, rtol=1e-14)


@pytest.mark.parametrize("size", [1e16, 1e100])
def test_draws_of_large_parameters_are_those_of_the_limits(size: float) -> None:
    drawn = np.array(StudentT(0.0, 1.0, df=size).sample(4000, rng=0)).ravel()
    np.testing.assert_allclose([drawn.mean(), drawn.var()], [0.0, 1.0], atol=0.06)
    rows = np.array(DirichletMultinomial([size, 3.0 * size], total=8).sample(4000, rng=0)).reshape(-1, 2)
    np.testing.assert_allclose(rows.mean(axis=0), [2.0, 6.0], atol=0.08)
    np.testing.assert_allclose(rows[:, 0].var(), 1.5, atol=0.1)


def test_derivatives_by_freedom_of_points_far_out() -> None:
    for x in (1e3, 1e10, 1e17):
        exact = exactly(
            lambda v, x: (
                v / 2 * (digamma(v / 2 + Decimal("0.5")) - digamma(v / 2) - 1 / v - (1 + x * x / v).ln())
                + v / 2 * (v + 1) / (v + x * x) * x * x / v
            ),
            3.0,
            x,
        )
        np.testing.assert_allclose(StudentT(0.0, 1.0, df=3.0).log_prob_grad([[x]])[0, -1], exact, rtol=1e-13)
