"""A kernel between sets of vectors: Bhattacharyya's affinity of Gaussians in a feature space."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.affinities import Power, affinity
from genkern.data.objects import Packed, pack_points
from genkern.kernels.base import Kernel
from genkern.kernels.latex import INTEGRAL, times
from genkern.kernels.vectors import RBF
from genkern.models.families.gaussian import Gaussian
from genkern.validation import Floats, check_number

RANK = 1e-10  # eigenvalues of a joint Gram matrix below this part of the largest are rounding errors


class SetBhattacharyya(Kernel):
    r"""Bhattacharyya's affinity between sets of vectors, each as a Gaussian in the feature space of a kernel.

    .. math:: k(X, Y) = \int \sqrt{N(z; \mu_X, \Sigma_X + \eta I)\, N(z; \mu_Y, \Sigma_Y + \eta I)}\, dz

    with means and covariances of :math:`\phi(x)`, :math:`x \in X`. The Gaussians differ only in the span of both sets,
    where the joint Gram matrix of their m + m' vectors gives coordinates; in all other directions both are
    :math:`N(0, \eta)` and the factor is one, so that nothing is approximated. Positive semi-definite.

    Parameters
    ----------
    kernel : Kernel, default=RBF()
        The kernel between vectors that defines the feature space.
    eta : float, default=0.1
        Variance added in every direction, the same for all sets, positive.

    Notes
    -----
    Compares bags of points: a list of arrays (m, d). A pair costs :math:`O((m + m')^3)`.

    References
    ----------
    Kondor & Jebara (2003), A kernel between sets of vectors. Jebara, Kondor & Howard (2004), section 2.1.

    Examples
    --------
    >>> from genkern import Linear, SetBhattacharyya
    >>> sets = [[[0.0, 0.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]]
    >>> SetBhattacharyya(Linear(), eta=0.1)(sets).round(4)
    array([[1.    , 0.6298],
           [0.6298, 1.    ]])
    """

    _names = ("X", "Y")
    _positive = ("eta",)

    def __init__(self, kernel: Kernel | None = None, eta: float = 0.1):
        self.kernel = kernel
        self.eta = eta

    @property
    def native_logs(self) -> bool:
        """True: affinities are logarithms."""
        return True

    def prepare(self, X: Any) -> PointSets:
        """Return the concatenated points of all sets."""
        return X if isinstance(X, PointSets) else PointSets(pack_points(X, "SetBhattacharyya"))

    def _logs(self, X: PointSets, Y: PointSets | None) -> Floats:
        eta = check_number(self.eta, "eta", "SetBhattacharyya", exclusive=True)
        other = X if Y is None else Y
        logs = np.zeros((len(X), len(other)))
        for i, j in np.ndindex(logs.shape):
            if Y is None and j <= i:
                logs[i, j] = logs[j, i]  # zero on the diagonal
            else:
                logs[i, j] = self._pair(X.points(i), other.points(j), eta)
        return logs

    def _logs_diag(self, X: PointSets) -> Floats:
        return np.zeros(len(X))

    def _pair(self, left: Floats, right: Floats, eta: float) -> float:
        """Return the log affinity of two sets of points (m, d) and (m', d)."""
        kernel = RBF() if self.kernel is None else self.kernel
        values, vectors = np.linalg.eigh(kernel(np.concatenate([left, right])))
        kept = values > RANK * values[-1]
        rows = vectors[:, kept] * np.sqrt(values[kept])
        if not kept.any():
            return 0.0
        ridge = eta * np.eye(rows.shape[1])
        laws = []
        for part in np.split(rows, [len(left)]):
            centred = part - part.mean(axis=0)
            laws.append(Gaussian(part.mean(axis=0), centred.T @ centred / len(part) + ridge))
        return min(0.0, float(affinity(laws[0], laws[1], Power(0.5))))

    @property
    def _level(self) -> int:
        return INTEGRAL

    def _written(self, left: int, right: int, view: str = "") -> str:
        if left == right:
            return "1"
        laws = (
            rf"N(z; \mu_{{{name}}}, \Sigma_{{{name}}} + {times(self.eta)}I)"
            for name in self._arguments(left, right, view)
        )
        return rf"\int \sqrt{{{' '.join(laws)}}}\, dz"


class PointSets:
    """Sets of points that can be cut into blocks."""

    def __init__(self, packed: Packed):
        self.packed = packed
        self.shape = (packed.n_objects,)

    def __len__(self) -> int:
        return self.packed.n_objects

    def __getitem__(self, rows: slice) -> PointSets:
        return PointSets(self.packed.take(rows))

    def points(self, i: int) -> Floats:
        """Return the points (m, d) of one set."""
        offsets = self.packed.offsets
        points: Floats = self.packed.values[offsets[i] : offsets[i + 1]]
        return points
