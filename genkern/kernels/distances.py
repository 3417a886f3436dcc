r"""Gaussian kernel values and squared distances of vectors that keep their digits far from the origin.

Products are fast, but :math:`\|x\|^2 + \|y\|^2 - 2 x^T y` has an error of some 1e-16 of the squared norms. So vectors
are centred, and pairs whose distance is still small relative to their norms are recomputed from differences. The
remaining error is about 1e-13 for any centre, so that a value does not depend on other vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from genkern.core.arrays import products
from genkern.validation import Floats

HARMLESS = 64.0  # an exponent with terms up to this has an error of some 1e-14
EXTREME = 1e12  # an exponent with larger terms may have lost all digits
LOST = 1e-300  # a value below this counts as zero
NEAR = 1e-3  # a squared distance below this part of the squared norms has lost three digits or more
ROWS = 256  # rows that are searched at a time
NUMBERS = 1 << 18  # numbers of the differences that are held at a time


def gaussian(X: Floats, Y: Floats | None, gamma: float) -> Floats:
    r"""Return :math:`\exp(-\gamma \|x - y\|^2)`, (n, m), or (n, n) of X with itself for None, symmetric."""
    own, other = square_norms(X, Y)
    if gamma * _largest(own, other) <= HARMLESS:
        return products.rbf(X, Y, 2.0 * gamma)
    first, second = _moved(X, Y)
    own, other = square_norms(first, second)
    top = gamma * _largest(own, other)
    if not top <= EXTREME:
        with np.errstate(over="ignore"):
            values: Floats = np.exp(-gamma * squares(X, Y))
        return values
    values = products.rbf(first, second, 2.0 * gamma)
    if top <= HARMLESS:
        return values
    floors = np.maximum(np.exp(-gamma * NEAR * (own + other.max())), LOST)  # near pairs lie above
    for rows, columns in _near(lambda part: values[part] >= floors[part, None], X, Y):
        values[rows, columns] = np.exp(-gamma * _between(X, Y, rows, columns))
        if Y is None:
            values[columns, rows] = values[rows, columns]
    return values


def squares(X: Floats, Y: Floats | None) -> Floats:
    r"""Return squared distances :math:`\|x - y\|^2`, (n, m), or (n, n) of X with itself for None, symmetric."""
    first, second = _moved(X, Y)
    own, other = square_norms(first, second)
    if not np.isfinite(_largest(own, other)):
        distances: Floats = cdist(X, X if Y is None else Y, "sqeuclidean")  # slow, but nothing cancels
        return distances
    found = products.gram(first) if second is None else products.cross(first, second)
    found = np.maximum((own[:, None] + other) - 2.0 * found, 0.0)
    for rows, columns in _near(lambda part: found[part] < NEAR * (own[part, None] + other), X, Y):
        found[rows, columns] = _between(X, Y, rows, columns)
        if Y is None:
            found[columns, rows] = found[rows, columns]
    if Y is None:
        np.fill_diagonal(found, 0.0)
    return found


def square_norms(X: Floats, Y: Floats | None) -> tuple[Floats, Floats]:
    """Return squared lengths (n,) and (m,) of the rows of both."""
    own = np.einsum("ij,ij->i", X, X)
    return own, own if Y is None else np.einsum("ij,ij->i", Y, Y)


def _largest(own: Floats, other: Floats) -> float:
    """Return the largest squared length of all; NaN if one is."""
    return float(max(own.max(initial=0.0), other.max(initial=0.0)))


def _moved(X: Floats, Y: Floats | None) -> tuple[Floats, Floats | None]:
    """Return both minus their common mean."""
    with np.errstate(over="ignore", invalid="ignore"):
        if Y is None:
            return X - X.mean(axis=0), None
        centre = (X.sum(axis=0) + Y.sum(axis=0)) / (len(X) + len(Y))
        return X - centre, Y - centre


def _near(
    alike: Callable[[slice], NDArray[np.bool_]], X: Floats, Y: Floats | None
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield some rows and columns at a time where ``alike``, of a slice of rows, is true; of X with itself i < j."""
    step = max(1, NUMBERS // max(1, X.shape[1]))
    for low in range(0, len(X), ROWS):
        rows, columns = np.nonzero(alike(slice(low, min(low + ROWS, len(X)))))
        rows += low
        if Y is None:
            above = columns > rows
            rows, columns = rows[above], columns[above]
        for start in range(0, len(rows), step):
            yield rows[start : start + step], columns[start : start + step]


def _between(X: Floats, Y: Floats | None, rows: NDArray[Any], columns: NDArray[Any]) -> Floats:
    """Return squared distances of pairs, from differences."""
    apart = X[rows] - (X if Y is None else Y)[columns]
    distances: Floats = np.einsum("ij,ij->i", apart, apart)
    return distances
