"""Probabilities from decision values, and how far off they are."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from genkern.learn.weights import check_weights
from genkern.validation import Floats, check_array, check_int

SHARPEST = 30.0  # of log sharpness, in units of the spread of decision values: beyond, all probabilities are 0 or 1


class Calibrator(BaseEstimator):
    r"""Probabilities from decision values by one number, the sharpness (inverse temperature) s.

    .. math:: P(c | x) = \frac{e^{s f_c(x)}}{\sum_{c'} e^{s f_{c'}(x)}}, \qquad
        \hat s = \arg\max_s \sum_i \sum_c t_{ic} \log P(c | x_i)

    with f = (0, f(x)) for two classes. The targets t are (n + 1)/(n + 2) for the class of an object, the rest in equal
    parts for the others (one error more among two objects more), so that s is finite where all decisions are right.

    Attributes
    ----------
    sharpness_ : float
        The number s > 0.

    Notes
    -----
    Fit it on decisions about objects that the classifier has not seen, such as those of a cross-validation. The order
    of classes stays that of the decision values: the most probable class is the one that is decided for, ties included.

    References
    ----------
    Platt (1999), Probabilistic outputs for support vector machines (targets).
    Guo, Pleiss, Sun & Weinberger (2017), On calibration of modern neural networks, section 4.2 (temperature scaling).

    Examples
    --------
    >>> from genkern.learn.calibration import Calibrator
    >>> calibrator = Calibrator().fit([-2.0, -1.0, 0.5, -0.5, 1.0, 2.0], [0, 0, 0, 1, 1, 1])
    >>> calibrator.predict_proba([-1.0, 0.0, 3.0]).round(2)
    array([[0.7 , 0.3 ],
           [0.5 , 0.5 ],
           [0.07, 0.93]])
    """

    def fit(self, decisions: ArrayLike, codes: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find the sharpness.

        Parameters
        ----------
        decisions : array-like of shape (n,) or (n, n_classes)
            Decision values of objects that the classifier has not seen, of the second of two classes or of each.
        codes : array-like of shape (n,)
            Index of the class of each object.
        sample_weight : array-like of shape (n,), optional
            Weights of the objects: one of weight 2 counts as two objects.

        Returns
        -------
        self
        """
        values = _columns(check_array(decisions, "decisions", "Calibrator"))
        n, k = values.shape
        own = np.asarray(codes)
        weights = check_weights(None, own, sample_weight, "Calibrator")
        values = values - values.mean(axis=1, keepdims=True)
        scale = float(np.sqrt(np.average((values**2).mean(axis=1), weights=weights))) or 1.0
        wrong = 1.0 / (weights.sum() + 2)
        targets = np.full((n, k), wrong / (k - 1))
        targets[np.arange(n), own] = 1.0 - wrong
        targets *= weights[:, None]

        def loss(log_sharpness: float) -> float:
            return -float(np.sum(targets * log_softmax(np.exp(log_sharpness) / scale * values, axis=1)))

        # The loss is convex in s, so it has one minimum in log s as well.
        best = minimize_scalar(loss, bounds=(-SHARPEST, SHARPEST), method="bounded", options={"xatol": 1e-8})
        self.sharpness_ = float(np.exp(best.x) / scale)
        return self

    def predict_proba(self, decisions: ArrayLike) -> Floats:
        """Return the probability of each class, shape (n, n_classes).

        Parameters
        ----------
        decisions : array-like of shape (n,) or (n, n_classes)
            Decision values; infinite ones are certain.
        """
        check_is_fitted(self, "sharpness_")
        values = _columns(np.asarray(decisions, dtype=np.float64))
        finite = np.where(np.isposinf(values), 0.0, values)
        with np.errstate(over="ignore"):  # what is too far below the largest has no probability
            below = self.sharpness_ * (finite - finite.max(axis=1, keepdims=True))
        return agree(_certain(values, softmax(below, axis=1)), values.argmax(axis=1))


class Calibrated(ClassifierMixin):
    """A classifier with decision values, whose probabilities are those of its ``calibrator_``."""

    calibrator_: Calibrator

    def predict_proba(self, X: Any) -> Floats:
        """Return calibrated probabilities of the classes, (n, n_classes); the largest is that of ``predict``.

        Parameters
        ----------
        X : as in ``predict``
        """
        check_is_fitted(self)
        if not hasattr(self, "calibrator_"):
            raise NotFittedError(
                f"{type(self).__name__}: no probabilities, as the file was written before there were any. Predictions "
                "are as they were; for probabilities, fit again."
            )
        return self.calibrator_.predict_proba(self.decision_function(X))

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of ``predict_proba``, (n, n_classes).

        Parameters
        ----------
        X : as in ``predict``
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


def agree(probabilities: Floats, best: NDArray[np.int64]) -> Floats:
    """Return probabilities of which the first largest is that of the class decided for, also where rounding hid it."""
    rows = np.flatnonzero(probabilities.argmax(axis=1) != best)
    probabilities[rows, best[rows]] = np.nextafter(probabilities[rows].max(axis=1), 2.0)
    return probabilities


def _columns(values: Floats) -> Floats:
    """Return decision values with a column for each class."""
    return np.column_stack([np.zeros(len(values)), values]) if values.ndim == 1 else values


def _certain(values: Floats, probabilities: Floats) -> Floats:
    """Return probabilities in which classes of infinite decision values share all."""
    sure = np.isposinf(values)
    any_sure = sure.any(axis=1, keepdims=True)
    return np.where(any_sure, sure / np.maximum(sure.sum(axis=1, keepdims=True), 1), probabilities)


def expected_calibration_error(
    y: ArrayLike,
    probabilities: ArrayLike,
    *,
    classes: Any = None,
    n_bins: int = 10,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return how far the probability of the predicted class is from how often it is right, on average.

    .. math:: \sum_b \frac{|B_b|}{n} \left| \mathrm{accuracy}(B_b) - \mathrm{confidence}(B_b) \right|

    over bins of equal width of the largest probability.

    Parameters
    ----------
    y : array-like of shape (n,)
        True labels.
    probabilities : array-like of shape (n, n_classes)
        Rows that sum to one.
    classes : array-like of shape (n_classes,), optional
        Labels of the columns; the sorted labels of y by default.
    n_bins : int, default=10
        Number of bins.
    sample_weight : array-like of shape (n,), optional
        Weights of the objects, not negative: one of weight 2 counts as two objects.

    Returns
    -------
    error : float
        Between 0 and 1. With few objects it is above zero also for true probabilities, by about the standard error of
        the accuracy in a bin.

    References
    ----------
    Naeini, Cooper & Hauskrecht (2015), Obtaining well calibrated probabilities using Bayesian binning.

    Examples
    --------
    >>> from genkern import expected_calibration_error
    >>> round(expected_calibration_error([0, 1, 1, 1], [[0.75, 0.25], [0.25, 0.75], [0.25, 0.75], [0.75, 0.25]]), 10)
    0.0
    """
    who = "expected_calibration_error"
    rows = check_array(probabilities, "probabilities", who, ndim=2)
    labels: NDArray[Any] = np.asarray(y)
    names = np.unique(labels) if classes is None else np.asarray(classes)
    if rows.shape != (len(labels), len(names)) or len(labels) == 0:
        raise ValueError(
            f"{who}: expected probabilities of shape {(len(labels), len(names))}, a row per label and a column per "
            f"class. Got {rows.shape}; give classes= where y lacks one."
        )
    confidence = rows.max(axis=1)
    right = names[rows.argmax(axis=1)] == labels
    count = check_int(n_bins, "n_bins", who, 1)
    bins = np.minimum((confidence * count).astype(int), count - 1)
    weights: Floats = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    return float(np.abs(np.bincount(bins, weights * (confidence - right))).sum() / weights.sum())
