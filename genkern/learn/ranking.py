"""How well decision values rank two classes: ROC counts, ROC50 and the equal error rate."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from genkern.validation import Floats, check_int


class RocPoints(NamedTuple):
    """Numbers of false and of true positives above each threshold, from none to all; arrays of one shape."""

    false_positives: NDArray[np.int64]
    true_positives: NDArray[np.int64]
    thresholds: Floats


class EqualError(NamedTuple):
    """The equal error rate, and the threshold at which the two rates of errors come closest."""

    rate: float
    threshold: float


def roc_points(y_true: ArrayLike, scores: ArrayLike, *, pos_label: Any = None) -> RocPoints:
    """Return the numbers of false and true positives of every threshold that makes a difference.

    An object is called positive if its score is above the threshold. Objects of equal score are called alike, so a tie
    is one step. The area under the curve is scikit-learn's ``roc_auc_score``.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels, two different ones.
    scores : array-like of shape (n,)
        Decision values, the larger the more positive; infinite ones are legal.
    pos_label : label, optional
        The positive one; the default is the second in sorted order, as in ``classes_``.

    Returns
    -------
    points : RocPoints
        ``false_positives``, ``true_positives`` and ``thresholds``, one entry more than there are different scores.
        Thresholds lie halfway between scores and are finite.

    Examples
    --------
    >>> from genkern import roc_points
    >>> points = roc_points([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    >>> points.false_positives, points.true_positives
    (array([0, 0, 1, 2]), array([0, 1, 2, 2]))
    """
    return _points(y_true, scores, pos_label, "roc_points")


def _points(y_true: ArrayLike, scores: ArrayLike, pos_label: Any, who: str) -> RocPoints:
    """Return the counts of every threshold; ``who`` is named in errors."""
    positive, values = _check(y_true, scores, pos_label, who)
    levels, owner = np.unique(-values, return_inverse=True)
    levels = -levels  # falling
    hits = np.bincount(owner, positive, len(levels)).astype(np.int64)
    misses = np.bincount(owner, ~positive, len(levels)).astype(np.int64)
    start = np.zeros(1, dtype=np.int64)
    return RocPoints(
        np.concatenate([start, misses.cumsum()]), np.concatenate([start, hits.cumsum()]), _between_levels(levels)
    )


def roc50_score(y_true: ArrayLike, scores: ArrayLike, *, n: int = 50, pos_label: Any = None) -> float:
    r"""Return the area under the ROC curve up to the first n false positives, divided by its greatest value.

    .. math:: \mathrm{ROC}_n = \frac{1}{n\,T} \sum_{i=1}^{n} t_i

    with the number T of positives and the number :math:`t_i` of them that are ranked above the i-th negative. Tied
    objects count as if in random order: the value is the mean over all orders.

    Parameters
    ----------
    y_true : array-like of shape (n_objects,)
        Labels, two different ones.
    scores : array-like of shape (n_objects,)
        Decision values, the larger the more positive.
    n : int, default=50
        Number of false positives; if there are fewer negatives, all of them are taken, which gives the area under the
        whole curve.
    pos_label : label, optional
        The positive one; the default is the second in sorted order.

    Returns
    -------
    score : float
        Between 0 and 1.

    References
    ----------
    Gribskov & Robinson (1996), Use of receiver operating characteristic (ROC) analysis to evaluate sequence matching,
    Computers & Chemistry 20.

    Examples
    --------
    >>> from genkern import roc50_score
    >>> roc50_score([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0], n=1)
    0.5
    """
    limit = check_int(n, "n", "roc50_score", 1)
    points = _points(y_true, scores, pos_label, "roc50_score")
    limit = min(limit, int(points.false_positives[-1]))
    before, found = points.true_positives[:-1], np.diff(points.true_positives)
    negatives = np.diff(points.false_positives)
    counted = np.clip(limit - points.false_positives[:-1], 0, negatives)
    # Of p tied positives, p j / (q + 1) are expected before the j-th of q negatives.
    ties = found * counted * (counted + 1) / (2.0 * (negatives + 1))
    return float((before * counted + ties).sum() / (limit * points.true_positives[-1]))


def equal_error_rate(y_true: ArrayLike, scores: ArrayLike, *, pos_label: Any = None) -> EqualError:
    """Return the rate at which false positives and false negatives are equally frequent, and the threshold.

    On finitely many objects the two rates rarely meet. The rate is where the ROC curve, its points joined by straight
    lines, crosses the line of equal rates; the threshold is the one at which they are closest (of two such, the one
    with the smaller sum, then the higher).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels, two different ones.
    scores : array-like of shape (n,)
        Decision values, the larger the more positive; infinite ones are legal.
    pos_label : label, optional
        The positive one; the default is the second in sorted order.

    Returns
    -------
    result : EqualError
        ``rate`` and ``threshold``: call an object positive if its score is above it.

    References
    ----------
    Tsuda et al. (2002), A new discriminative kernel from probabilistic models, section 6.

    Examples
    --------
    >>> from genkern import equal_error_rate
    >>> equal_error_rate([0, 0, 1, 1], [0.0, 2.0, 1.0, 3.0])
    EqualError(rate=0.5, threshold=1.5)
    """
    points = _points(y_true, scores, pos_label, "equal_error_rate")
    wrong, right = points.false_positives, points.true_positives
    negatives, positives = int(wrong[-1]), int(right[-1])
    missed = positives - right
    difference = wrong * positives - missed * negatives  # of the rates, as integers: rises from -PN to PN
    last = int(np.searchsorted(difference, 0))
    step = -difference[last - 1] / (difference[last] - difference[last - 1])
    rate = (wrong[last - 1] + step * (wrong[last] - wrong[last - 1])) / negatives
    total = wrong * positives + missed * negatives
    best = np.lexsort((total, np.abs(difference)))[0]
    return EqualError(float(rate), float(points.thresholds[best]))


def _check(y_true: ArrayLike, scores: ArrayLike, pos_label: Any, who: str) -> tuple[NDArray[np.bool_], Floats]:
    """Return which objects are positive, and their scores."""
    labels, values = column_or_1d(y_true), column_or_1d(np.asarray(scores, dtype=np.float64))
    check_consistent_length(labels, values)
    assert_all_finite(labels, input_name="y_true")
    check_classification_targets(labels)
    kinds = np.unique(labels)
    if len(kinds) != 2:
        raise ValueError(f"{who}: y_true must have two different labels. Got {len(kinds)}: {kinds[:5].tolist()}.")
    if np.isnan(values).any():
        raise ValueError(f"{who}: scores must be numbers. Got NaN at index {int(np.isnan(values).argmax())}.")
    chosen = kinds[1] if pos_label is None else pos_label
    if chosen not in kinds:
        raise ValueError(f"{who}: pos_label must be one of the labels {kinds.tolist()}. Got {pos_label!r}.")
    return labels == chosen, values


def _between_levels(levels: Floats) -> Floats:
    """Return finite thresholds: the first score, halfway between falling scores, and just below the last."""
    top = np.finfo(np.float64).max
    high, low = np.clip(levels[:-1], -top, top), np.clip(levels[1:], -top, top)
    middle = low / 2.0 + high / 2.0
    middle = np.where(middle < high, middle, low)  # there is no number between neighbouring floats
    ends = np.clip([levels[0], np.nextafter(levels[-1], -np.inf)], -top, top)
    return np.concatenate([ends[:1], middle, ends[1:]])
