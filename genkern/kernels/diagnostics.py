"""Diagnostics of a kernel matrix: figures, problems, and remedies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigvalsh
from scipy.special import entr
from sklearn.utils.validation import check_consistent_length

from genkern.data.describe import Described, Rows
from genkern.kernels.alignment import alignments, unit_target
from genkern.kernels.base import Kernel
from genkern.kernels.positivity import indefinite, is_positive
from genkern.validation import Floats, check_array

ASYMMETRY = 1e-6  # of the largest entry: a larger difference is no rounding error, not even of single precision
UNLIKE, ALIKE = 1e-3, 0.999  # cosines of nearest objects, and of all, at which K is almost the identity, or a constant
SPREAD = 1e6  # of self-similarities
TINY = 1e-250  # relative to the largest value: if there are such small values, zeros are underflows
SHARPNESS = ("length", "rho", "lam", "lam_x", "lam_q", "gamma", "nu", "a")  # lower values make objects more similar


@dataclass(frozen=True, repr=False)
class Diagnostics(Described):
    """Figures about a kernel matrix, as ``diagnostics`` returns them.

    Attributes
    ----------
    n_objects : int
        Number of rows.
    smallest_eigenvalue, largest_eigenvalue : float
        The ends of the spectrum.
    effective_rank : float
        The exponential of the entropy of the normalised spectrum.
    mean_diagonal, mean_off_diagonal : float
        Mean similarity of objects to themselves, and mean absolute one to others.
    nearest : float
        Similarity of an object to the most similar other one, as a cosine; the median over objects.
    zeros : float
        Share of the entries off the diagonal that are zero: underflowed, or of objects with nothing in common.
    alignment : float or None
        Centred alignment with the labels, between -1 and 1; None without labels.
    chance : float or None
        Its mean over all orders of the labels.
    findings : tuple of str
        Problems with their remedies; empty if there are none.
    """

    n_objects: int
    smallest_eigenvalue: float
    largest_eigenvalue: float
    effective_rank: float
    mean_diagonal: float
    mean_off_diagonal: float
    nearest: float
    zeros: float
    alignment: float | None
    chance: float | None
    findings: tuple[str, ...] = ()

    @property
    def relative_eigenvalue(self) -> float:
        """The smallest eigenvalue as a part of the largest."""
        return self.smallest_eigenvalue / self.largest_eigenvalue if self.largest_eigenvalue > 0.0 else 0.0

    @property
    def dominance(self) -> float:
        """The mean of the diagonal over that of the absolute values off it, infinite for a diagonal matrix."""
        return self.mean_diagonal / self.mean_off_diagonal if self.mean_off_diagonal > 0.0 else np.inf

    def _heading(self) -> str:
        return f"kernel matrix of {self.n_objects} objects"

    def _figures(self) -> list[tuple[str, str]]:
        """Return names and figures."""
        rows = [
            ("smallest eigenvalue", f"{self.smallest_eigenvalue:.3g} ({self.relative_eigenvalue:.2g} of the largest)"),
            ("effective rank", f"{self.effective_rank:.1f} of {self.n_objects}"),
            ("mean off the diagonal", f"{self.mean_off_diagonal:.3g} (diagonal {self.mean_diagonal:.3g})"),
            ("nearest other object", f"{self.nearest:.3g} (cosine, median)"),
            ("zeros off the diagonal", f"{self.zeros:.1%}"),
        ]
        if self.alignment is not None:
            rows.append(("alignment with labels", f"{self.alignment:.3f} ({self.chance:.3f} by chance)"))
        return rows

    def _details(self) -> Rows:
        return [*self._figures(), *(("!", [[line] for line in wrap(finding, 72)]) for finding in self.findings)]

    def __str__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        lines = [self._heading(), *(f"  {name:<24}{value}" for name, value in self._figures())]
        return "\n".join([*lines, *(f"  ! {finding}" for finding in self.findings)])


def diagnostics(K: ArrayLike, y: Any = None, kernel: Kernel | None = None) -> Diagnostics:
    r"""Return figures of a kernel matrix: its spectrum, its diagonal, its agreement with labels, and problems.

    The effective rank is :math:`\exp H(p)`, with the entropy H of the normalised spectrum
    :math:`p_i = |\lambda_i| / \sum_j |\lambda_j|`: n for the identity, 1 for a constant. The centred alignment is

    .. math:: A = \frac{\langle K_c, Y Y^T \rangle}{\|K_c\|\, \|(Y Y^T)_c\|}, \qquad K_c = H K H, \quad
              H = I - \tfrac1n 1 1^T

    with the one-hot labels Y. Shuffled labels have the mean alignment
    :math:`\mathrm{tr}\, K_c\, \mathrm{tr}\, (Y Y^T)_c / ((n - 1) \|K_c\|\, \|(Y Y^T)_c\|)`.

    Parameters
    ----------
    K : array of shape (n, n)
        Kernel values of the training objects, symmetric: ``Gram(kernel).fit_transform(X)``.
    y : array of shape (n,), optional
        Labels of at least two classes.
    kernel : Kernel, optional
        The kernel of K; remedies then name its parameters.

    Returns
    -------
    Diagnostics
        A value that prints as a short report.

    References
    ----------
    Roy & Vetterli (2007), The effective rank, section 3. Cortes, Mohri & Rostamizadeh (2012), Algorithms for learning
    kernels based on centered alignment, definition 4.

    Examples
    --------
    >>> from genkern import Gaussian, Gram, ProbabilityProduct, diagnostics
    >>> models = [Gaussian(mean, 1.0) for mean in (0.0, 0.5, 4.0, 4.5)]
    >>> kernel = ProbabilityProduct(rho=0.5).normalized()
    >>> diagnostics(Gram(kernel).fit_transform(models), [0, 0, 1, 1], kernel)
    kernel matrix of 4 objects
      smallest eigenvalue     0.0154 (0.0068 of the largest)
      effective rank          2.1 of 4
      mean off the diagonal   0.417 (diagonal 1)
      nearest other object    0.969 (cosine, median)
      zeros off the diagonal  0.0%
      alignment with labels   0.998 (0.345 by chance)
    >>> kernel = kernel.set_params(kernel__length=100)
    >>> diagnostics(Gram(kernel).fit_transform(models[::2]), kernel=kernel).findings[0].split(": ")[1]
    'the kernel sees every object as unlike every other; lower kernel__length=100 or kernel__rho=0.5.'
    """
    K = _check_symmetric(K)
    off, cosines = np.abs(K[~np.eye(len(K), dtype=bool)]), _cosines(K)
    spectrum = eigvalsh(K)
    alignment, chance = (None, None) if y is None else _alignment(K, y)
    figures = Diagnostics(
        n_objects=len(K),
        smallest_eigenvalue=float(spectrum[0]),
        largest_eigenvalue=float(spectrum[-1]),
        effective_rank=_effective_rank(spectrum),
        mean_diagonal=float(K.diagonal().mean()),
        mean_off_diagonal=float(off.mean()),
        nearest=float(np.median(cosines.max(axis=1))),
        zeros=float((off == 0.0).mean()),
        alignment=alignment,
        chance=chance,
    )
    return replace(figures, findings=tuple(_findings(figures, K, cosines, kernel)))


def _check_symmetric(K: ArrayLike) -> Floats:
    """Return a symmetric matrix of at least two rows."""
    K = check_array(K, "K", "diagnostics", ndim=2)
    if K.shape[0] != K.shape[1] or len(K) < 2:
        raise ValueError(
            f"diagnostics: 'K' must hold the kernel values of at least two objects with each other, (n, n). Got shape "
            f"{K.shape}; Gram(kernel).fit_transform(X) makes one."
        )
    difference = np.abs(K - K.T)
    if difference.max() > ASYMMETRY * np.abs(K).max():
        i, j = np.unravel_index(difference.argmax(), K.shape)
        raise ValueError(f"diagnostics: 'K' must be symmetric. Got {K[i, j]:.6g} at ({i}, {j}) and {K[j, i]:.6g} back.")
    return 0.5 * (K + K.T)


def _alignment(K: Floats, y: Any) -> tuple[float, float]:
    """Return the centred alignment of K (n, n) with labels (n,), and its mean over all orders of them."""
    check_consistent_length(K, y)
    own, _, norms = alignments([K], y)
    if norms[0] == 0.0:
        return 0.0, 0.0  # a constant is aligned with nothing
    spread = float(np.trace(K) - K.mean(axis=0).sum()) * float((unit_target(y) ** 2).sum())
    return float(own[0]), spread / ((len(K) - 1) * float(norms[0]))


def _effective_rank(spectrum: Floats) -> float:
    """Return the exponential of the entropy of a normalised spectrum (n,); zero for a zero matrix."""
    sizes = np.abs(spectrum)
    return float(np.exp(entr(sizes / sizes.sum()).sum())) if sizes.any() else 0.0


def _cosines(K: Floats) -> Floats:
    """Return the sizes of normalised values (n, n); zero on the diagonal and for objects without self-similarity."""
    own = np.where(K.diagonal() > 0.0, K.diagonal(), np.inf)
    cosines = np.abs(K) / np.sqrt(own)[:, None] / np.sqrt(own)
    np.fill_diagonal(cosines, 0.0)
    return cosines


def _findings(figures: Diagnostics, K: Floats, cosines: Floats, kernel: Kernel | None) -> Iterator[str]:
    """Yield the problems of a kernel matrix, with remedies."""
    own, knobs = K.diagonal(), _knobs(kernel)
    if not is_positive(K):
        words = indefinite(figures.smallest_eigenvalue, figures.largest_eigenvalue, kernel)
        yield f"{words} Gram(kernel, psd='clip') mends it."
    if own.min() <= 0.0:
        yield (
            f"{int((own <= 0.0).sum())} objects have no similarity to themselves (first at index {int(own.argmin())}): "
            "they are like nothing; leave them out."
        )
    elif own.max() > SPREAD * own.min():
        yield (
            f"similarities of objects to themselves differ by a factor of {own.max() / own.min():.2g}: a few outweigh "
            "all others; use kernel.normalized()."
        )
    if figures.nearest < UNLIKE:
        yield (
            f"values off the diagonal average {figures.mean_off_diagonal:.2g}, those on it "
            f"{figures.mean_diagonal:.2g}: the kernel sees every object as unlike every other; lower {knobs}."
        )
    elif cosines.sum() > ALIKE * cosines.size * (1.0 - 1.0 / len(K)):
        yield f"all cosines are above {cosines[cosines > 0.0].min():.6f}: all objects are alike; raise {knobs}."
    sizes = np.abs(K)
    if figures.zeros and sizes[sizes > 0.0].min(initial=np.inf) < TINY * sizes.max():
        yield f"{figures.zeros:.1%} of the values underflow to zero; lower {knobs}."
    if figures.alignment is not None and figures.chance is not None and figures.alignment <= figures.chance:
        yield "the alignment with the labels is no better than by chance: the kernel does not see these classes."


def _knobs(kernel: Kernel | None) -> str:
    """Return the parameters that make a kernel sharper, with their values."""
    known = {} if kernel is None else kernel.get_params()
    given = {name: value for name, value in known.items() if name.split("__")[-1] in SHARPNESS and value is not None}
    return " or ".join(f"{name}={value}" for name, value in given.items()) or "length, rho or lam"
