"""The plug-in Bayes classifier: one generative model per class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from genkern.embed.packing import allows_nan, check_estimator_of_models, pack_for
from genkern.objects import remember_width
from genkern.validation import Floats, check_probabilities


class PlugInClassifier(ClassifierMixin, BaseEstimator):
    r"""Bayes' rule with estimated class models, :math:`P(c | x) \propto \alpha_c\, p(x | \hat\theta_c)`.

    Parameters
    ----------
    estimator : estimator of models, or dict
        Cloned and fitted to the objects of each class; or ``{label: model}``, models that are used as they
        are.
    priors : {"empirical", "uniform"}, array-like of shape (n_classes,) or dict, default="empirical"
        Class probabilities: the classes' shares of the training objects, equal ones, or given ones in the
        order of the sorted labels or by label.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    models_ : list of n_classes models
    priors_ : ndarray of shape (n_classes,)

    Notes
    -----
    Class models share the alphabet of all training objects, so that a symbol that one class lacks is
    improbable there (by the estimator's pseudocount), not an error.

    References
    ----------
    Tsuda et al. (2002), A new discriminative kernel from probabilistic models, section 1.

    Examples
    --------
    >>> from genkern import HMMEstimator, PlugInClassifier
    >>> X, y = ["aaab", "aaba", "bbab", "babb"], ["A", "A", "B", "B"]
    >>> PlugInClassifier(HMMEstimator(n_states=1)).fit(X, y).predict(["aa", "abbb"]).tolist()
    ['A', 'B']
    """

    def __init__(self, estimator: Any, priors: Any = "empirical"):
        self.estimator = estimator
        self.priors = priors

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit one model per class.

        Parameters
        ----------
        X : list of n objects
        y : array-like of shape (n,)
            Labels.

        Returns
        -------
        self
        """
        if y is None:
            raise ValueError("PlugInClassifier requires y to be passed, but the target y is None.")
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        remember_width(self, X, reset=True)
        given = isinstance(self.estimator, Mapping)
        if not given:
            estimator = check_estimator_of_models(self.estimator, "PlugInClassifier")
            packed = pack_for(estimator, X)
        check_consistent_length(X, labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        self.priors_ = self._check_priors(np.bincount(codes) / len(codes))
        members = [np.flatnonzero(codes == c) for c in range(len(self.classes_))]
        if given:
            self.models_ = [_by_label(self.estimator, label, "models") for label in self.classes_]
        else:
            self.models_ = [clone(estimator).fit(packed.take(rows)).model_ for rows in members]
        return self

    def _check_priors(self, shares: Floats) -> Floats:
        """Return the class probabilities in the order of ``classes_``."""
        count = len(self.classes_)
        if isinstance(self.priors, str):
            if self.priors not in ("empirical", "uniform"):
                raise ValueError(
                    "The 'priors' parameter of PlugInClassifier must be 'empirical', 'uniform', probabilities "
                    f"or a dict. Got {self.priors!r} instead."
                )
            return shares if self.priors == "empirical" else np.full(count, 1.0 / count)
        values = self.priors
        if isinstance(values, Mapping):
            values = [_by_label(values, label, "priors") for label in self.classes_]
        return check_probabilities(values, "priors", "PlugInClassifier", shape=(count,))

    def joint_log_prob(self, X: Any) -> Floats:
        r"""Return :math:`\log \alpha_c + \log p(x | \hat\theta_c)` of each object and class.

        Parameters
        ----------
        X : list of n objects

        Returns
        -------
        joint : ndarray of shape (n, n_classes)
        """
        check_is_fitted(self, "models_")
        remember_width(self, X, reset=False)
        packed = pack_for(self.models_[0], X)
        with np.errstate(divide="ignore"):
            priors = np.log(self.priors_)
        joint: Floats = np.stack([model.log_prob(packed) for model in self.models_], axis=1) + priors
        dead = np.flatnonzero(np.isneginf(joint).all(axis=1))
        if len(dead):
            raise ValueError(
                f"PlugInClassifier: object {dead[0]} has probability zero in every class ({len(dead)} such in "
                "all), so it has no posterior. Give the estimator a pseudocount > 0."
            )
        return joint

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the log posterior of each class, shape (n, n_classes).

        Parameters
        ----------
        X : list of n objects
        """
        logs: Floats = log_softmax(self.joint_log_prob(X), axis=1)
        return logs

    def predict_proba(self, X: Any) -> Floats:
        """Return the posterior of each class, shape (n, n_classes).

        Parameters
        ----------
        X : list of n objects
        """
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X: Any) -> Floats:
        """Return the posterior log-odds of the second of two classes, (n,), or the log posteriors of more.

        Infinite where a class is impossible.

        Parameters
        ----------
        X : list of n objects
        """
        joint = self.joint_log_prob(X)
        if len(self.classes_) == 2:
            return joint[:, 1] - joint[:, 0]
        logs: Floats = log_softmax(joint, axis=1)
        return logs

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of each object, shape (n,).

        Parameters
        ----------
        X : list of n objects
        """
        best = self.joint_log_prob(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # rows of a table are not what models of sequences are for
        tags.input_tags.allow_nan = isinstance(self.estimator, Mapping) or allows_nan(self.estimator)
        return tags


def _by_label(table: Mapping[Any, Any], label: Any, what: str) -> Any:
    """Return the entry of a label."""
    key = label.item() if isinstance(label, np.generic) else label
    if key not in table:
        raise ValueError(
            f"PlugInClassifier: the {what} must have an entry for every label of y. There is none for {key!r}, "
            f"only for {', '.join(map(repr, table))}."
        )
    return table[key]
