"""Posterior log-odds of class models: objects as decision values of plug-in classifiers."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from genkern.data.objects import Packed, remember_width
from genkern.features.base import Embedding
from genkern.features.class_models import fit_class_models
from genkern.features.positions import class_terms
from genkern.features.streaming import gather
from genkern.models.class_mixture import ClassMixture, refuse_impossible
from genkern.validation import Floats, check_number


class ModelLogOdds(Embedding):
    r"""The posterior log-odds of each class against the rest, under one model per class: ``TopScore`` without tangents.

    .. math:: v_c(x) = \log \frac{P(c | x)}{1 - P(c | x)}
              = \log \alpha_c\, p(x | \theta_c) - \log \sum_{j \ne c} \alpha_j\, p(x | \theta_j)

    Several of them, of models of different kinds and orders, are a short vector, in which a linear learner weights the
    models.

    Parameters
    ----------
    estimator : estimator, dict or ClassMixture
        An estimator, a clone of which is fitted to the objects of each class; or ``{label: model}``, models that are
        used unchanged, or a ``ClassMixture``, with its priors and its order of classes.
    priors : {"empirical", "uniform"}, array-like of shape (n_classes,) or dict, default="empirical"
        Class probabilities: the classes' shares of the training objects, equal ones, or given ones in the order of
        the sorted labels or by label.
    v_max : float, default=700
        Replaces infinite log-odds, those of an object that is impossible under one side. Finite ones are kept.
    n_jobs : int, optional
        Threads, over batches of objects.

    Attributes
    ----------
    model_ : ClassMixture
        The class models and their priors.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    n_features_out_ : int
        One for two classes (the log-odds of the second), else the number of classes.

    Notes
    -----
    The class models were fitted with the labels of the training objects, whose log-odds are therefore larger than those
    of new ones: wrap this in ``CrossFit``, which gives out-of-fold log-odds to the learner.

    References
    ----------
    Tsuda, Kawanabe, Rätsch, Sonnenburg & Müller (2002), A new discriminative kernel from probabilistic models, eq. 4.2.

    Examples
    --------
    >>> from genkern import MarkovChainEstimator, ModelLogOdds
    >>> X, y = ["aaab", "aaba", "bbab", "babb"], ["A", "A", "B", "B"]
    >>> ModelLogOdds(MarkovChainEstimator(order=0)).fit(X, y).transform(["aa", "bb"]).round(3)
    array([[-2.191],
           [ 2.191]])
    """

    _of_floats = True

    def __init__(self, estimator: Any, priors: Any = "empirical", v_max: float = 700.0, n_jobs: int | None = None):
        self.estimator = estimator
        self.priors = priors
        self.v_max = v_max
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit one model per class, if they are not given.

        Parameters
        ----------
        X : list of n objects
        y : array-like of shape (n,)
            Labels. Models that are given with their priors need none.

        Returns
        -------
        self
        """
        check_number(self.v_max, "v_max", "ModelLogOdds", exclusive=True)
        remember_width(self, X, reset=True)
        self.model_, _ = fit_class_models(self.estimator, X, y, self.priors, "ModelLogOdds")
        count = len(self.model_.labels)
        if count < 2:
            raise ValueError(f"ModelLogOdds needs at least two classes. Got one class, {self.model_.labels[0]!r}.")
        self.classes_ = np.array(self.model_.labels)
        self.n_features_out_ = 1 if count == 2 else count
        return self

    def transform(self, X: Any) -> Floats:
        """Return the log-odds of each object.

        Parameters
        ----------
        X : list of n objects

        Returns
        -------
        features : ndarray of shape (n, n_features_out_)
        """
        self._ready(X)
        return gather(self._odds, self.model_.pack(X), self.n_features_out_, self.n_jobs)

    def _names_out(self) -> Any:
        """Return ``v``, or ``v[c]`` for each of more than two classes."""
        names = ["v"] if self.n_features_out_ == 1 else [f"v[{label}]" for label in self.model_.labels]
        return np.array(names, dtype=object)

    def _odds(self, packed: Packed) -> Floats:
        """Return the log-odds (n_objects, n_features_out_) of a batch."""
        joint = self.model_.joint_log_prob(packed)
        refuse_impossible(joint, self.model_.labels, "ModelLogOdds")
        return self._features(joint, [])

    def _features(self, joint: Floats, grads: list[Floats]) -> Floats:
        """Return the log-odds (n, n_features_out_) from joint log-probabilities (n, n_classes) alone."""
        chosen = range(joint.shape[1]) if self.n_features_out_ > 1 else [1]
        odds = [joint[:, c] - logsumexp(np.delete(joint, c, axis=1), axis=1) for c in chosen]
        return np.nan_to_num(np.stack(odds, axis=1), posinf=self.v_max, neginf=-self.v_max)

    def position_features(self, X: Any) -> Any:
        """Return the contribution of each position of one object to its log-odds, a sparse array (T, p).

        Parameters
        ----------
        X : list of one object
        """
        return sparse.csr_array(class_terms(self.model_, self.model_.pack(X), None, self._features))

    def _needs_labels(self) -> bool:
        return not isinstance(self.estimator, ClassMixture)
