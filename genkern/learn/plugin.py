"""The plug-in Bayes classifier: one generative model per class."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from genkern.data.objects import remember_width
from genkern.data.store import Store
from genkern.data.transformer import takes_nan
from genkern.features.class_models import check_labels, fit_class_models
from genkern.learn.weights import check_weights
from genkern.models.base import NotExactError
from genkern.models.class_mixture import refuse_impossible
from genkern.models.fit.streams import seed_of
from genkern.preprocess.cross_fit import take
from genkern.validation import Floats, check_int, check_option

LIKELIHOODS = ("exact", "estimated")


class PlugInClassifier(ClassifierMixin, BaseEstimator):
    r"""Bayes' rule with estimated class models, :math:`P(c | x) \propto \alpha_c\, p(x | \hat\theta_c)`.

    Parameters
    ----------
    estimator : estimator of models, dict or ClassMixture
        Cloned and fitted to the objects of each class; or ``{label: estimator}``, one per class; or ``{label: model}``,
        models that are used unchanged; or a ``ClassMixture``, with its priors.
    priors : {"empirical", "uniform"}, array-like of shape (n_classes,) or dict, default="empirical"
        Class probabilities: the classes' shares of the training objects, equal ones, or given ones in the
        order of the sorted labels or by label. What weights of classes are for elsewhere is done by these: "uniform"
        is "balanced".
    store : Store, optional
        Memo of fitted models, shared by all clones: models are fitted once to the same objects with the same settings,
        however many other settings a grid has.
    likelihood : {"exact", "estimated"}, default="exact"
        "exact" takes the models' ``log_prob``, and raises where a model refuses it. "estimated" takes
        ``estimate_log_prob`` of models that have it (``SwitchingLDS``, whose exact likelihood is a sum over all paths
        of regimes), and ``log_prob`` of others.
    n_draws : int, default=200
        Particles of each estimate; unused if likelihoods are exact.
    random_state : int, RandomState instance or None, default=None
        Seed of the estimates; None counts as 0. Random numbers depend on it and on the content of an object, so that
        its result does not depend on the other objects.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    model_ : ClassMixture
        The class models and their priors: the marginal distribution of objects.
    models_ : list of n_classes models
    priors_ : ndarray of shape (n_classes,)
    seed_ : int
        Seed of the estimates.

    Notes
    -----
    Estimated likelihoods are unbiased, their logarithms and the posteriors are not; both biases vanish as ``n_draws``
    grows. ``standard_errors`` tells how far to trust them.

    Class models share the alphabet of all training objects, so that a symbol that one class lacks is
    improbable there (by the estimator's pseudocount), not an error.

    References
    ----------
    Tsuda et al. (2002), A new discriminative kernel from probabilistic models, section 1 (footnote 1).

    Examples
    --------
    >>> from genkern import HMMEstimator, PlugInClassifier
    >>> X, y = ["aaab", "aaba", "bbab", "babb"], ["A", "A", "B", "B"]
    >>> PlugInClassifier(HMMEstimator(n_states=1)).fit(X, y).predict(["aa", "abbb"]).tolist()
    ['A', 'B']
    """

    __metadata_request__fit: ClassVar = {"sample_weight": True}

    def __init__(
        self,
        estimator: Any,
        priors: Any = "empirical",
        store: Store | None = None,
        likelihood: str = "exact",
        n_draws: int = 200,
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.priors = priors
        self.store = store
        self.likelihood = likelihood
        self.n_draws = n_draws
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit one model per class.

        Parameters
        ----------
        X : list of n objects
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            How often each object counts, in the model of its class and in empirical priors; not negative.

        Returns
        -------
        self
        """
        remember_width(self, X, reset=True)
        who = "PlugInClassifier"
        check_option(self.likelihood, LIKELIHOODS, "likelihood", who)
        check_int(self.n_draws, "n_draws", who, 1)
        labels, weights = check_labels(y, who), None
        if sample_weight is not None:
            weights = check_weights(None, labels, sample_weight, who)
            check_consistent_length(X, labels)
            kept = np.flatnonzero(weights)
            X, labels, weights = X if len(kept) == len(labels) else take(X, kept), labels[kept], weights[kept]
        self.seed_ = seed_of(self.random_state)
        self.model_, _ = fit_class_models(self.estimator, X, labels, self.priors, who, self.store, weights)
        self.classes_ = np.array(self.model_.labels)
        self.models_, self.priors_ = list(self.model_.models), self.model_.priors
        return self

    def joint_log_prob(self, X: Any) -> Floats:
        r"""Return :math:`\log \alpha_c + \log p(x | \hat\theta_c)` of each object and class.

        Parameters
        ----------
        X : list of n objects

        Returns
        -------
        joint : ndarray of shape (n, n_classes)
        """
        check_is_fitted(self, "model_")
        remember_width(self, X, reset=False)
        joint = self._joint(X)
        refuse_impossible(joint, self.model_.labels, "PlugInClassifier")
        return joint

    def standard_errors(self, X: Any) -> Floats:
        """Return the standard errors of ``joint_log_prob``, (n, n_classes); zero where likelihoods are exact.

        Parameters
        ----------
        X : list of n objects
        """
        check_is_fitted(self, "model_")
        remember_width(self, X, reset=False)
        return np.stack([error for _, error in self._estimates(X)], axis=1)

    def _joint(self, X: Any) -> Floats:
        """Return the joint log-probabilities (n, n_classes), by exact or estimated likelihoods."""
        if self.likelihood == "estimated":
            return np.stack([logs for logs, _ in self._estimates(X)], axis=1) + np.log(self.priors_)
        try:
            return self.model_.joint_log_prob(X)
        except NotExactError as error:
            raise NotExactError(
                f"PlugInClassifier: {error} PlugInClassifier(..., likelihood='estimated', n_draws={self.n_draws}) "
                "classifies by such estimates."
            ) from None

    def _estimates(self, X: Any) -> list[tuple[Floats, Floats]]:
        """Return the log-likelihoods (n,) and their standard errors (n,) of each class."""
        packed, found = self.model_.pack(X), []
        for model in self.models_:
            if self.likelihood == "estimated" and hasattr(model, "estimate_log_prob"):
                found.append(model.estimate_log_prob(packed, n=self.n_draws, rng=self.seed_))
            else:
                found.append((model.log_prob(packed), np.zeros(packed.n_objects)))
        return found

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
        tags.classifier_tags.poor_score = True  # models of sequences do not fit rows of a table
        tags.input_tags.allow_nan = takes_nan(self.estimator)
        return tags
