r"""Ridge regression on the features of very many objects, by conjugate gradients.

With :math:`A = (I - cc^T) W^{1/2} X`, where :math:`c \propto W^{1/2} 1` for a free bias, the dual coefficients are

.. math:: a = W^{1/2} u, \qquad (A A^T + \alpha I)\, u = (I - cc^T) W^{1/2} y

as in ``genkern.learn.ridge_path``, but of the features only products with vectors are needed: n numbers per target and
a few passes over X, instead of n² numbers and n³ operations.

References
----------
Hestenes & Stiefel (1952), Methods of conjugate gradients for solving linear systems.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from genkern.learn.kernel_classifier import Ints
from genkern.learn.products import times, transposed_times
from genkern.validation import Floats

TOLERANCE = 1e-4  # of residuals, relative to the targets
MOST = 300  # steps
TINY = np.finfo(np.float64).tiny
HELD = 5  # one in so many objects is held out
PAST = 2  # penalties after the best one that are still tried


def held_out(codes: Ints, groups: list[Ints] | None) -> Ints:
    """Return the objects, one in five and of all classes alike, or whole groups, by which a penalty is chosen."""
    rng = np.random.default_rng(0)
    if groups is not None:
        found: list[Ints] = []
        for i in rng.permutation(len(groups)):
            if not found or sum(len(group) for group in [*found, groups[i]]) <= len(codes) // HELD:
                found.append(groups[i])
        return np.sort(np.concatenate(found))
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    return np.sort(order[HELD - 1 :: HELD])


class Path:
    """Solutions for one penalty after another, from large to small, each from the one before."""

    def __init__(self, X: Any, Y: Floats, roots: Floats, centred: bool):
        self.X, self.roots = X, roots[:, None]
        self.constant = centred * self.roots / np.linalg.norm(roots)
        self.target = self._project(self.roots * Y)
        self.u = np.zeros_like(self.target)

    def _project(self, V: Floats) -> Floats:
        return V - self.constant * (self.constant * V).sum(axis=0)

    def weights(self) -> Floats:
        """Return coefficients (p, k) of the features."""
        return transposed_times(self.X, self.roots * self.u)

    def _apply(self, V: Floats) -> Floats:
        return self._project(self.roots * times(self.X, transposed_times(self.X, self.roots * V)))

    def solve(self, alpha: float) -> Floats:
        """Return the coefficients for a penalty."""
        residual = self.target - self._apply(self.u) - alpha * self.u
        direction, size = residual.copy(), (residual**2).sum(axis=0)
        enough = TOLERANCE**2 * np.maximum((self.target**2).sum(axis=0), TINY)
        for _ in range(MOST):
            if (size <= enough).all():
                break
            image = self._apply(direction) + alpha * direction
            step = size / np.maximum((direction * image).sum(axis=0), TINY)
            self.u += step * direction
            residual -= step * image
            before, size = size, (residual**2).sum(axis=0)
            direction = (
                residual + np.where(before > 0, size / np.maximum(before, np.finfo(float).tiny), 0.0) * direction
            )
        return self.weights()


def biases(X: Any, weights: Floats, Y: Floats, shares: Floats, free: bool) -> Floats:
    """Return the biases (k,) of fits with coefficients (p, k) to objects with weights (n,)."""
    return free * np.average(Y - times(X, weights), axis=0, weights=shares)


def tried(X: Any, Y: Floats, shares: Floats, alphas: Floats, test: Ints, free: bool) -> Iterator[tuple[int, Floats]]:
    """Yield penalties, by their place, from large to small, and decisions about objects held out.

    Stops when these have become worse than before several times.
    """
    kept = np.ones(len(Y), bool)
    kept[test] = False
    train = np.flatnonzero(kept)
    weights, masked = shares.copy(), shares[train]
    weights[test] = 0.0  # those held out have no part; no copy of the features is made
    path = Path(X, Y, np.sqrt(weights), free)
    least, since = np.inf, 0
    for i in np.argsort(-alphas, kind="stable"):
        found = path.solve(float(alphas[i]))
        values = times(X, found)
        values = values + free * np.average((Y - values)[train], axis=0, weights=masked)
        yield int(i), values[test]
        error = float(np.average(((values[test] - Y[test]) ** 2).mean(axis=1), weights=shares[test]))
        least, since = (error, 0) if error < least else (least, since + 1)
        if since >= PAST:
            return
