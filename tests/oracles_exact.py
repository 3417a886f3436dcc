"""Joint laws of linear systems in exact arithmetic, and the kernels between them: no rounding to argue about.

``Fraction`` is exact; ``Decimal`` with 200 digits is so in effect, where fractions of thousands of digits would take
minutes. The code is the same for both.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from genkern import LDS, Expected

DIGITS = 200
PI = "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798215"
Law = tuple[list[Any], list[list[Any]]]


def matrix(array: Any, number: Any) -> list[list[Any]]:
    """Return the rows of a float array as exact numbers."""
    return [[number(float(x)) for x in row] for row in np.atleast_2d(np.asarray(array, dtype=float))]


def times(left: list[list[Any]], right: list[list[Any]]) -> list[list[Any]]:
    columns = list(zip(*right, strict=True))
    return [[sum((a * b for a, b in zip(row, column, strict=True)), row[0] * 0) for column in columns] for row in left]


def turned(rows: list[list[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def plus(left: list[list[Any]], right: list[list[Any]]) -> list[list[Any]]:
    return [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(left, right, strict=True)]


def path_law(steps: list[LDS], number: Any) -> Law:
    """Return mean (D,) and covariance (D, D) of the observations of a system that changes: one LDS for each step."""
    d, length = steps[0].n_channels, len(steps)
    mean: list[Any] = []
    cov = [[number(0)] * (d * length) for _ in range(d * length)]
    state = turned(matrix(steps[0].initial_mean, number))
    spread = matrix(steps[0].matrices()[2], number)
    for t, model in enumerate(steps):
        Q, R, _ = (matrix(part, number) for part in model.matrices())
        if t:
            A = matrix(model.transition, number)
            state, spread = times(A, state), plus(times(times(A, spread), turned(A)), Q)
        C = matrix(model.observation, number)
        mean += [row[0] + number(float(b)) for row, b in zip(times(C, state), model.offset, strict=True)]
        lagged = times(spread, turned(C))  # Cov(s_u, x_t), u = t, t + 1, ...
        for u in range(t, length):
            if u > t:
                lagged = times(matrix(steps[u].transition, number), lagged)
            block = times(matrix(steps[u].observation, number), lagged)
            for a in range(d):
                for b in range(d):
                    value = block[a][b] + (R[a][b] if u == t else 0)
                    cov[u * d + a][t * d + b] = cov[t * d + b][u * d + a] = value
    return mean, cov


def eliminated(law: Law) -> tuple[Decimal, Decimal]:
    """Return log |V| and v^T V^-1 v, by elimination without square roots."""
    gaps, rows = list(law[0]), [list(row) for row in law[1]]
    log_det = square = Decimal(0)
    for i, pivot in enumerate(rows):
        log_det += decimal(pivot[i]).ln()
        square += decimal(gaps[i] * gaps[i] / pivot[i])
        for k in range(i + 1, len(rows)):
            factor = rows[k][i] / pivot[i]
            rows[k][i + 1 : k + 1] = [x - factor * y[i] for x, y in zip(rows[k][i + 1 : k + 1], rows[i + 1 :])]
            gaps[k] -= factor * gaps[i]
    return log_det, square


def decimal(value: Any) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator) if isinstance(value, Fraction) else value


def exact_law_kernel(left: Law, right: Law, how: Any) -> float:
    """Return the log kernel between two exact Gaussian laws."""
    with localcontext() as context:
        context.prec = DIGITS
        number, size = type(left[1][0][0]), len(left[0])
        gap = [a - b for a, b in zip(left[0], right[0], strict=True)]
        both = plus(left[1], right[1])
        if isinstance(how, Expected):
            for i in range(size):
                both[i][i] += 1 / number(how.lam)
            log_det, square = eliminated((gap, both))
            return float(-(log_det + square + size * Decimal(how.lam).ln()) / 2)
        rho = Decimal(how.rho)
        log_det, square = eliminated((gap, both))
        own = sum(eliminated(side)[0] for side in (left, right)) if how.rho != 1.0 else Decimal(0)
        constant = (1 - 2 * rho) * size * (2 * Decimal(PI)).ln() - size * rho.ln()
        return float((constant + (1 - rho) * own - log_det - rho * square) / 2)


def exact_kernel(p: LDS, q: LDS, how: Any, length: int, number: Any = Decimal) -> float:
    """Return the log kernel of the joint laws of so many observations."""
    with localcontext() as context:
        context.prec = DIGITS
        laws = [path_law([side] * length, number) for side in (p, q)]
    return exact_law_kernel(*laws, how)


def exact_log_prob(model: LDS, x: Any, number: Any = Decimal) -> float:
    """Return the log density of a series (T, d) without gaps."""
    with localcontext() as context:
        context.prec = DIGITS
        mean, cov = path_law([model] * len(x), number)
        gap = [number(float(value)) - m for value, m in zip(np.ravel(x), mean, strict=True)]
        log_det, square = eliminated((gap, cov))
        return float(-(log_det + square + len(gap) * (2 * Decimal(PI)).ln()) / 2)
