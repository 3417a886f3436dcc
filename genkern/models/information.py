"""Fisher information that is a diagonal less one direction, held in O(k) numbers: rows of probabilities above all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.validation import Floats


class LeanInformation:
    r"""The matrix (k, k) :math:`D^{1/2} (E - \sqrt{s} \sqrt{s}^T) D^{1/2}`, whose eigenvalues and roots are known.

    Of N categorical draws from a row :math:`\theta` in softmax coordinates :math:`D = N\,\mathrm{diag}\,\theta` and
    :math:`s = \theta`. ``np.asarray`` gives the matrix itself.

    Parameters
    ----------
    scale : (k,)
        D; zero or infinite where a parameter has no information, or is known for certain.
    share : (k,)
        s, not negative.
    rest : float
        :math:`1 - \sum_i s_i`, zero for a whole row of probabilities, else the sum of its other entries. It is a
        parameter, as computing it from s would lose digits.
    """

    __array_ufunc__ = None  # a NumPy scalar times this is a LeanInformation, not a matrix

    def __init__(self, scale: Floats, share: Floats, rest: float):
        self.scale, self.share, self.rest = scale, share, rest

    def __len__(self) -> int:
        return len(self.scale)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (k, k) of the matrix."""
        return len(self.scale), len(self.scale)

    def __mul__(self, weight: float) -> LeanInformation:
        return LeanInformation(self.scale * weight, self.share, self.rest)

    __rmul__ = __mul__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        known = np.isfinite(self.scale)  # an infinite information is not correlated with others
        side = np.where(known, np.sqrt(np.where(known, self.scale, 0.0) * self.share), 0.0)
        matrix = -side[:, None] * side
        np.fill_diagonal(matrix, self.diagonal())
        return matrix.astype(dtype or np.float64, copy=False)

    def diagonal(self) -> Floats:
        """Return the diagonal (k,)."""
        left = self._left()
        with np.errstate(invalid="ignore"):
            return np.where(left > 0, self.scale * left, 0.0)

    def _left(self) -> Floats:
        """Return 1 - share, without its rounding error near one."""
        left = 1.0 - self.share
        first = int(np.argmax(self.share))  # the only one that can be near one
        left[first] = self.rest + self.share[:first].sum() + self.share[first + 1 :].sum()
        return left

    def take(self, kept: NDArray[np.bool_]) -> LeanInformation:
        """Return the information of some parameters, the others being known."""
        return LeanInformation(self.scale[kept], self.share[kept], self.rest + float(self.share[~kept].sum()))

    def root(self) -> tuple[Floats, Floats, float]:
        r"""Return gains g (k,), a direction h (k,) and its factor c, of the root :math:`\mathrm{diag}(g)(E + c hh^T)`.

        With W the root, :math:`W W^T` is the inverse, :math:`h = \sqrt{s}` and :math:`1 + c |h|^2 = r^{-1/2}`. If the
        rest is zero there is no inverse, and c = 0: scaled scores of a whole row are orthogonal to h
        (in softmax coordinates they sum to zero), so that W is the root of the pseudo-inverse for them.
        """
        usable = np.isfinite(self.scale) & (self.scale > 0) & (self._left() > 0)
        gains = np.where(usable, 1.0 / np.sqrt(np.where(usable, self.scale, 1.0)), 0.0)
        total = float(self.share.sum())
        stretch = 0.0 if self.rest <= 0.0 or total == 0.0 else (1.0 / np.sqrt(self.rest) - 1.0) / total
        return gains, np.sqrt(self.share), float(stretch)


Information = Floats | LeanInformation  # a diagonal block: a matrix (k, k), or a factorised one
InformationBlocks = list[tuple[NDArray[np.int64], Information]]  # with the indices of their parameters


def diagonal_information(diagonal: ArrayLike) -> LeanInformation:
    """Return the information of independent parameters, (k,)."""
    scale = np.asarray(diagonal, dtype=np.float64)
    return LeanInformation(scale, np.zeros(len(scale)), 1.0)


def n_free(block: Information) -> int:
    """Return how many parameters of a block can be chosen freely: those of a whole row of probabilities sum to one."""
    if isinstance(block, LeanInformation) and block.rest == 0.0:
        return int(np.count_nonzero(block.share)) - 1
    return len(block)
