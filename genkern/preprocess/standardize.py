"""Features of mean zero and variance one, without those that hardly vary."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_feature_names_in

from genkern.data.transformer import TableTransformer
from genkern.validation import Floats, check_number, check_sizes

MIN_SCALE = 1e-3  # of the usual standard deviation
ROUNDING = 1e-12  # a feature that varies less, relative to its mean and to the one that varies most, is a constant


class Standardize(TableTransformer):
    r"""Features with mean zero and variance one over the training objects; those that hardly vary are left out.

    .. math:: z_j = \frac{\phi_j - m_j}{s_j}, \qquad
       \text{kept if } s_j > \varepsilon\, \operatorname{median}\{s_k : s_k > 0\}

    A score that is nearly the same for all training objects, as that of a state which they hardly visit, would be
    divided by almost zero, and a new object that does visit the state would have a value of thousands there, which
    dominates all other features in a linear learner.

    Parameters
    ----------
    min_scale : float, default=1e-3
        The threshold :math:`\varepsilon`, below one. With zero only constants are left out: features whose standard
        deviation is a rounding error, at most 1e-12 of their mean or of the largest standard deviation.
    clip : float, optional
        Largest distance from the mean in standard deviations, :math:`|z_j| \le c`; larger values are clipped. By
        default none are.

    Attributes
    ----------
    kept_, dropped_ : ndarray of int
        The columns that are features, and those that are left out.
    mean_, scale_ : ndarray of shape (n_kept,)
        Means m and standard deviations s of the kept features over the training objects.

    Notes
    -----
    ``sklearn.preprocessing.StandardScaler`` keeps all columns, at whatever scale. ``TopScore(standardize=True)`` leaves
    out the same features as this transformer after ``TopScore()``.

    Examples
    --------
    >>> from genkern import Standardize
    >>> scaler = Standardize().fit([[1.0, 5.0, 0.0], [3.0, 5.0, 1.0], [2.0, 5.0001, -1.0]])
    >>> scaler.dropped_
    array([1])
    >>> scaler.transform([[2.0, 9.0, 2.0]]).round(3)
    array([[0.   , 2.449]])
    """

    _fitted = "dropped_"

    def __init__(self, min_scale: float = MIN_SCALE, clip: float | None = None):
        self.min_scale = min_scale
        self.clip = clip

    def _fit(self, X: Any, y: Any) -> None:
        if check_number(self.min_scale, "min_scale", "Standardize") >= 1:
            raise ValueError(
                f"The 'min_scale' parameter of Standardize must be below 1. Got {self.min_scale!r} instead."
            )
        if self.clip is not None:
            check_number(self.clip, "clip", "Standardize", exclusive=True)
        table = check_sizes(X, "Standardize")
        self.kept_, self.mean_, self.scale_ = learn_scale([table], self.min_scale, "Standardize")
        self.dropped_ = np.setdiff1d(np.arange(table.shape[1]), self.kept_)

    def _transform(self, X: Any) -> Floats:
        features: Floats = (check_sizes(X, "Standardize")[:, self.kept_] - self.mean_) / self.scale_
        return features if self.clip is None else np.clip(features, -self.clip, self.clip, out=features)

    def _names_out(self, given: Any) -> Any:
        """Return the names of the features that are kept."""
        return _check_feature_names_in(self, given)[self.kept_]


class Scale(NamedTuple):
    """Columns (k,) that vary, their means (k,) and their standard deviations (k,)."""

    kept: NDArray[np.int64]
    mean: Floats
    spread: Floats


def learn_scale(blocks: Iterable[Floats], min_scale: float, who: str) -> Scale:
    """Return the scale of the columns that vary over all rows of the blocks (n_b, p), merging their moments."""
    count, mean, squares = 0, np.zeros(1), np.zeros(1)
    for block in blocks:
        center = block.mean(axis=0)
        jump, total = center - mean, count + len(block)
        squares = squares + ((block - center) ** 2).sum(axis=0) + jump**2 * (count * len(block) / total)
        mean = mean + jump * (len(block) / total)
        count = total
    spread = np.sqrt(squares / count)
    vary = spread > ROUNDING * np.maximum(np.abs(mean), spread.max())
    if not vary.any():
        raise ValueError(
            f"{who}: no feature varies over the objects given to fit (n_samples = {count}), so none can be "
            "standardised. Deviations below 1e-160, whose squares underflow, count as none: divide features by their "
            "scale."
        )
    kept = np.flatnonzero(vary & (spread > min_scale * np.median(spread[vary])))
    return Scale(kept, mean[kept], spread[kept])
