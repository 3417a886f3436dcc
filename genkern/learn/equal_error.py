"""A classifier whose threshold makes both kinds of errors equally frequent."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from genkern.learn.ranking import equal_error_rate
from genkern.preprocess.folds import parts_of_folds
from genkern.validation import Floats


class EqualErrorClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    r"""A two-class classifier with the threshold at which false positives and false negatives are equally frequent.

    .. math:: \hat y(x) = +1 \iff f(x) > t, \qquad
        t:\; P(f(x) > t \mid y = -1) = P(f(x) \le t \mid y = +1)

    The natural threshold of a plug-in classifier depends on the priors and suffers when likelihoods are badly scaled;
    this one needs neither. It is found on decision values of objects that the classifier was not fitted to.

    Parameters
    ----------
    estimator : classifier
        With a ``decision_function``, such as ``PlugInClassifier``; cloned.
    cv : int, cross-validation generator or iterable, default=5
        How the out-of-fold decision values are computed, as in ``cross_val_predict``; an int means so many stratified
        folds.

    Attributes
    ----------
    estimator_ : classifier
        Fitted to all objects.
    classes_ : ndarray of shape (2,)
        Sorted labels.
    threshold_ : float
        The threshold t.
    equal_error_rate_ : float
        The common rate of both errors on the out-of-fold decision values.

    Notes
    -----
    Tsuda et al. set the threshold on the test set itself. To do so, or to use a validation set, fit to that set a
    classifier that is already trained and stays so: ``EqualErrorClassifier(FrozenEstimator(trained)).fit(X, y)`` with
    scikit-learn's ``FrozenEstimator``.

    References
    ----------
    Tsuda et al. (2002), A new discriminative kernel from probabilistic models, section 6.

    Examples
    --------
    >>> from genkern import CategoricalEstimator, EqualErrorClassifier, PlugInClassifier
    >>> X, y = ["aaab", "aaba", "aabb", "bbab", "babb", "abbb"], [0, 0, 0, 1, 1, 1]
    >>> learner = EqualErrorClassifier(PlugInClassifier(CategoricalEstimator()), cv=3).fit(X, y)
    >>> learner.predict(["aa", "bb"])
    array([0, 1])
    """

    __metadata_request__fit: ClassVar = {"groups": True}

    def __init__(self, estimator: Any, cv: Any = 5):
        self.estimator = estimator
        self.cv = cv

    def fit(self, X: Any, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Fit the classifier and find its threshold.

        Parameters
        ----------
        X : list of n objects, or what the classifier takes
        y : array-like of shape (n,)
            Labels, two different ones.
        groups : array-like of shape (n,), optional
            Groups for a ``cv`` that uses them.

        Returns
        -------
        self
        """
        if not hasattr(self.estimator, "decision_function"):
            raise TypeError(
                "EqualErrorClassifier: 'estimator' must be a classifier with a decision_function. Got "
                f"{type(self.estimator).__name__}."
            )
        if y is None:
            raise ValueError("EqualErrorClassifier requires y to be passed, but the target y is None.")
        self.estimator_ = clone(self.estimator).fit(X, y)
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        if len(self.classes_) != 2:
            raise ValueError(
                "Only binary classification is supported: EqualErrorClassifier needs objects of 2 classes. Got "
                f"{len(self.classes_)} {'class' if len(self.classes_) == 1 else 'classes'}."
            )
        splitter = check_cv(self.cv, labels, classifier=True)
        parts = parts_of_folds(splitter, labels, groups, "EqualErrorClassifier")
        _check_parts(parts, labels, self.classes_)
        values = cross_val_predict(self.estimator, X, labels, cv=parts, method="decision_function")
        self.equal_error_rate_, self.threshold_ = equal_error_rate(labels, values)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return how far the classifier's decision values are above the threshold, shape (n,).

        Parameters
        ----------
        X : list of n objects, or what the classifier takes
        """
        check_is_fitted(self, "threshold_")
        values: Floats = self.estimator_.decision_function(X) - self.threshold_
        return values

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each object, shape (n,).

        Parameters
        ----------
        X : list of n objects, or what the classifier takes
        """
        positive = self.decision_function(X) > 0
        labels: NDArray[Any] = self.classes_[positive.astype(int)]
        return labels

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X, where it is a matrix."""
        return self.estimator_.n_features_in_

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of these columns, where it is a data frame."""
        return self.estimator_.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.classifier_tags.poor_score = inner.classifier_tags is not None and inner.classifier_tags.poor_score
        return tags


def _check_parts(parts: list[tuple[Any, Any]], labels: NDArray[Any], classes: NDArray[Any]) -> None:
    """Raise if a classifier of some fold would see objects of one class only."""
    for fold, (train, _) in enumerate(parts):
        lacking = np.setdiff1d(classes, labels[train])
        if len(lacking):
            raise ValueError(
                f"EqualErrorClassifier: fold {fold} leaves no object of class {lacking.tolist()[0]!r} to train "
                f"on, which has {int((labels == lacking[0]).sum())}. Give at least two objects of each class, or a "
                "'cv' that spreads them over its folds."
            )
