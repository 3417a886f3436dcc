r"""Ridge regression on kernel values for many penalties, and its predictions for objects that are left out.

With :math:`K = V\,\mathrm{diag}(w)\,V^T` on the space orthogonal to the constants (a free bias) or on all of it (none),

.. math:: P = V\,\mathrm{diag}\Big(\frac{1}{w + \alpha}\Big) V^T, \qquad a = P y, \qquad f = K a + b = y - \alpha a

and the residuals of a fit without the objects of a group G, bias included, are :math:`P_{GG}^{-1} a_G`: the
:math:`a_i / P_{ii}` of leave-one-out. One eigendecomposition is enough for all penalties, groups and targets. With
weights W of the objects all this holds of :math:`W^{1/2} K W^{1/2}`, :math:`W^{1/2} y` and, for the constants,
:math:`W^{1/2} 1`.

References
----------
An, Liu & Venkatesh (2007), Fast cross-validation algorithms for least squares support vector machine and kernel ridge
regression, Pattern Recognition 40, section 3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, svd

from genkern.learn.kernel_classifier import ROUNDING, Ints, largest_entry, refuse_indefinite, row_blocks
from genkern.validation import Floats

EPSILON = np.finfo(np.float64).eps
LOST = 1e-10  # of one: a smaller difference from one has lost too many digits
REMEDY = "Choose a kernel that is positive semi-definite, or take the kernel values as features (kernel='linear')."


class Eigensystem(NamedTuple):
    """Orthonormal vectors (n, m), their eigenvalues (m,), whether constants are taken out, and nothing is left over.

    ``roots`` are those of the weights, ``size`` is that of the numbers whose rounding the eigenvalues have.
    """

    vectors: Floats
    values: Floats
    centred: bool
    complete: bool
    roots: Floats
    size: float = 0.0

    @property
    def constant(self) -> Floats:
        """The weighted constants (n,), of unit length; zero if they are not taken out."""
        return self.centred * self.roots / np.linalg.norm(self.roots)

    def project(self, Y: Floats) -> Floats:
        """Return weighted targets (n, k), centred if constants are taken out."""
        target = self.roots[:, None] * Y
        return target - np.outer(self.constant, self.constant @ target)


def gram_spectrum(K: Floats, roots: Floats, centred: bool, who: str) -> Eigensystem:
    """Return the eigenvectors of a positive semi-definite K (n, n), orthogonal to the constants if centred.

    ``roots`` (n,) are those of the weights of objects. A reflection that takes the constant vector to the first axis
    leaves a matrix of one row and column less, so that the eigenvectors are orthogonal to the constants to the last
    digit. K, in C order, is overwritten: its memory ends up with the vectors, and there is one more matrix beside it.
    """
    if not (roots == 1.0).all():
        K *= roots
        K *= roots[:, None]
    n, largest = len(K), largest_entry(K)
    mirror = -roots / np.linalg.norm(roots)
    if centred:
        mirror[0] += 1.0
        mirror *= np.sqrt(2.0) / np.linalg.norm(mirror)
        image = K @ mirror
        image -= 0.5 * (mirror @ image) * mirror
        for rows in row_blocks(K):
            K[rows] -= np.outer(mirror[rows], image)
            K[rows] -= np.outer(image[rows], mirror)
    size, memory = n - centred, K.reshape(-1)
    for i in range(size if centred else 0):  # without the first row and column, in one piece
        memory[i * size : (i + 1) * size] = K[i + 1, 1:]
    inner = memory[: size * size].reshape(size, size).T
    values, found = eigh(inner, driver="evr", overwrite_a=True, check_finite=False)
    scale = float(max(values[-1], largest))  # of equal objects nothing is left but rounding of their kernel values
    if values[0] < -ROUNDING * scale:
        refuse_indefinite(values[0], values[-1], who, REMEDY)
    vectors = memory[: n * size].reshape(n, size)
    vectors[n - size :] = found
    if centred:
        sums = mirror[1:] @ found
        vectors[0] = 0.0
        for rows in row_blocks(vectors):
            vectors[rows] -= np.outer(mirror[rows], sums)
    return Eigensystem(vectors, np.maximum(values, 0.0), centred, True, roots, scale)


def feature_spectrum(X: Floats, roots: Floats, centred: bool) -> Eigensystem:
    """Return the left singular vectors of weighted features X (n, d), d < n, and the squares of singular values."""
    rows = roots[:, None] * (X - np.average(X, axis=0, weights=roots**2) if centred else X)
    vectors, values, _ = svd(rows, full_matrices=False, check_finite=False)
    return Eigensystem(vectors, values**2, centred, False, roots)


def coefficients(spectrum: Eigensystem, Y: Floats, alpha: float) -> Floats:
    """Return a, (n, k), for targets Y (n, k), up to what is orthogonal to the features."""
    inner = spectrum.vectors.T @ spectrum.project(Y)
    return spectrum.roots[:, None] * (spectrum.vectors @ (inner / (spectrum.values + alpha)[:, None]))


def left_out(spectrum: Eigensystem, Y: Floats, alphas: Floats, groups: list[Ints] | None, who: str) -> Floats:
    """Return what fits without an object, or without its group, predict for it: (n_alphas, n, k) for Y (n, k).

    ``groups`` holds the objects of each group; None leaves out one object at a time.
    """
    vectors, target, constant = spectrum.vectors, spectrum.project(Y), spectrum.constant
    roots = spectrum.roots[:, None]
    inner = vectors.T @ target
    shrink = alphas[:, None] / (spectrum.values + alphas[:, None])  # of each vector, (n_alphas, m)
    residuals = np.stack([vectors @ (factor[:, None] * inner) for factor in shrink])
    if not spectrum.complete:
        residuals += target - vectors @ inner
    floor = LOST
    if spectrum.complete:  # then nothing is subtracted, and a small number is as good as a large one
        floor = 0.0
        _check_noise(spectrum, alphas, who)
    if groups is None:
        freedom = np.empty((len(alphas), len(vectors)))  # of each residual: one minus the leverage
        for block in row_blocks(vectors):
            squares = vectors[block] ** 2
            freedom[:, block] = shrink @ squares.T
            if not spectrum.complete:
                freedom[:, block] += 1.0 - constant[block] ** 2 - squares.sum(axis=1)
        low = np.flatnonzero(freedom.min(axis=1) <= floor)
        if len(low):
            raise _lost(alphas[low[0]], who)
        return Y - residuals / freedom[:, :, None] / roots
    predicted = np.empty_like(residuals)
    for rows in groups:
        own, rest = vectors[rows], np.zeros((1, 1))
        if not spectrum.complete:
            rest = np.eye(len(rows)) - np.outer(constant[rows], constant[rows]) - own @ own.T
        for i, factor in enumerate(shrink):
            try:
                root = cho_factor(rest + (own * factor) @ own.T, lower=True, check_finite=False)
            except LinAlgError:
                raise _lost(alphas[i], who) from None
            if root[0].diagonal().min() ** 2 <= floor:
                raise _lost(alphas[i], who)
            missed = cho_solve(root, residuals[i][rows], check_finite=False)
            predicted[i, rows] = Y[rows] - missed / roots[rows]
    return predicted


def _check_noise(spectrum: Eigensystem, alphas: Floats, who: str) -> None:
    """Refuse penalties below the rounding of eigenvalues, where there are eigenvalues that are rounding."""
    noise = len(spectrum.values) * EPSILON * spectrum.size
    if spectrum.values.min(initial=np.inf) < noise and alphas.min() < noise:
        raise _lost(alphas.min(), who)


def _lost(alpha: float, who: str) -> ValueError:
    """Return the error about a penalty that is too small to tell what is left out."""
    return ValueError(
        f"{who}: what a fit without some objects predicts for them is lost in rounding for alpha = {alpha:.3g}. Take "
        "larger values in alphas."
    )
