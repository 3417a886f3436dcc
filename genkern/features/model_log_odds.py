"""Posterior log-odds of class models: objects as decision values of plug-in classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from genkern.data.objects import Packed
from genkern.data.store import Store
from genkern.features.base import ClassEmbedding
from genkern.features.positions import class_terms
from genkern.features.streaming import gather
from genkern.validation import Floats


class ModelLogOdds(ClassEmbedding):
    r"""The posterior log-odds of each class against the rest, under one model per class: ``TopScore`` without tangents.

    .. math:: v_c(x) = \log \frac{P(c | x)}{1 - P(c | x)}
              = \log \alpha_c\, p(x | \theta_c) - \log \sum_{j \ne c} \alpha_j\, p(x | \theta_j)

    Several of them, of models of different kinds and orders, are a short vector, in which a linear learner weights the
    models.

    Parameters
    ----------
    estimator : estimator, dict or ClassMixture
        What is fitted, as a clone, to the objects of each class; or ``{label: estimator}``, one per class; or ``{label:
        model}``, models that are used as they are; or a ``ClassMixture``, with its priors and its order of classes,
        which needs no y.
    priors : {"empirical", "uniform"}, array-like of shape (n_classes,) or dict, default="empirical"
        Class probabilities: the classes' shares of the training objects, equal ones, or given ones in the order of
        the sorted labels or by label.
    v_max : float, default=700
        Replaces infinite log-odds, those of an object that is impossible under one side. Finite ones are kept.
    n_jobs : int, optional
        Threads, over batches of objects.
    store : Store, optional
        Memo of fitted models, shared by all clones: models are fitted once to the same objects with the same settings,
        however many other settings a grid has.

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

    _fitted = "_chosen"
    _of_floats = True

    def __init__(
        self,
        estimator: Any,
        priors: Any = "empirical",
        v_max: float = 700.0,
        n_jobs: int | None = None,
        store: Store | None = None,
    ):
        self.estimator = estimator
        self.priors = priors
        self.v_max = v_max
        self.n_jobs = n_jobs
        self.store = store

    def _learn(self, packed: Packed) -> None:
        self._chosen = range(len(self.classes_)) if len(self.classes_) > 2 else [1]

    def _transform(self, packed: Packed) -> Floats:
        return gather(lambda block: self._features(self._joint(block), []), packed, len(self._chosen), self.n_jobs)

    def _names_out(self, given: Any) -> Any:
        """Return ``v``, or ``v[c]`` for each of more than two classes."""
        return ["v"] if len(self._chosen) == 1 else [f"v[{label}]" for label in self.model_.labels]

    def _features(self, joint: Floats, grads: list[Floats]) -> Floats:
        """Return the log-odds (n, n_features_out_) from joint log-probabilities (n, n_classes) alone."""
        odds = [joint[:, c] - logsumexp(np.delete(joint, c, axis=1), axis=1) for c in self._chosen]
        return np.nan_to_num(np.stack(odds, axis=1), posinf=self.v_max, neginf=-self.v_max)

    def _position_features(self, packed: Packed) -> Any:
        return sparse.csr_array(class_terms(self.model_, packed, None, self._features))
