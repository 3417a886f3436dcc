"""The linear classifier at the end of a fitted pipeline, and what to do where there is none."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, NuSVC
from sklearn.utils.validation import check_is_fitted

from genkern.learn.plugin import PlugInClassifier
from genkern.validation import Floats

ROUNDING = 1e-6  # relative: a linear classifier's own decision value differs by less
UNREADABLE = ("plug_in", "plug_in_aligned", "product_svm")  # candidates of AutoClassifier that are not linear


class Linear(NamedTuple):
    """A fitted pipeline that ends in a linear classifier.

    Attributes
    ----------
    pipeline : Pipeline
    steps : list of transformers
    classifier : classifier
    classes : list of n labels
    weights : (n, p)
        Coefficients of the decision value of each class; of two classes, those of the first are the negative ones.
    intercepts : (n,)
    """

    pipeline: Any
    steps: list[Any]
    classifier: Any
    classes: list[Any]
    weights: Floats
    intercepts: Floats

    def check(self, rows: Any, chosen: NDArray[np.int64], decisions: Floats, sizes: Floats) -> None:
        """Refuse a classifier whose decision values are not the linear functions of its coefficients."""
        own = self.classifier.decision_function(rows)
        own = np.where(chosen == 1, own, -own) if own.ndim == 1 else own[np.arange(len(own)), chosen]
        wrong = np.flatnonzero(~(np.abs(own - decisions) <= ROUNDING * (sizes + np.abs(own))))
        if len(wrong):
            i = wrong[0]
            raise TypeError(
                f"explain: the decision value of {type(self.classifier).__name__}, {own[i]:.6g}, is not the linear "
                f"function of the features that its coef_ and intercept_ say, {decisions[i]:.6g}."
            )


def linear_of(pipeline: Any) -> Linear:
    """Return the parts of a fitted pipeline, of a search or of an ``AutoClassifier``, whose classifier is linear."""
    chosen = getattr(pipeline, "best_estimator_", pipeline)
    try:
        steps, classifier, name = _unfold(chosen, "estimator__" if hasattr(pipeline, "best_params_") else "")
        weights, intercepts = _coefficients(classifier, name)
    except TypeError as error:
        best = getattr(pipeline, "best_name_", None)
        if best is None:
            raise
        others = [each["name"] for each in pipeline.results_ if each["name"] not in (best, *UNREADABLE)]
        remedy = f" Of the candidates, fit one that is linear: candidates={others[-1:]}." if others else ""
        raise TypeError(f"{error} AutoClassifier has chosen {best!r}.{remedy}") from None
    if len(weights) == 1:
        weights, intercepts = np.concatenate([-weights, weights]), np.concatenate([-intercepts, intercepts])
    return Linear(chosen, steps, classifier, classifier.classes_.tolist(), weights, intercepts)


def _unfold(pipeline: Any, front: str = "") -> tuple[list[Any], Any, str]:
    """Return steps, classifier and its name in ``set_params``; a pipeline or search that is the last step is unfolded.

    A search keeps the estimator that is set under "estimator".
    """
    if isinstance(pipeline, PlugInClassifier):
        _coefficients(pipeline, front)
    if not isinstance(pipeline, Pipeline) or len(pipeline.steps) < 2:
        got = f"{len(pipeline.steps)} step" if isinstance(pipeline, Pipeline) else type(pipeline).__name__
        raise TypeError(
            "explain: 'pipeline' must be a scikit-learn Pipeline of an embedding and a linear classifier, as "
            f"make_pipeline(FisherScore(HMMEstimator(4)), LinearSVC()). Got {got}."
        )
    try:
        check_is_fitted(pipeline)
    except NotFittedError:
        raise NotFittedError(
            "explain: the pipeline is not fitted yet. Call its fit with training data first."
        ) from None
    *steps, last = [step for _, step in pipeline.steps]
    name = front + pipeline.steps[-1][0]
    if hasattr(last, "best_estimator_"):
        last, name = last.best_estimator_, f"{name}__estimator"
    if isinstance(last, Pipeline):
        inner, last, name = _unfold(last, f"{name}__")
        steps = [*steps, *inner]
    return steps, last, name


def _coefficients(classifier: Any, name: str) -> tuple[Floats, Floats]:
    """Return coefficients (k, p) and biases (k,): k is one for two classes, else their number."""
    if isinstance(classifier, OneVsRestClassifier):
        parts = [_coefficients(estimator, f"{name}__estimator") for estimator in classifier.estimators_]
        return np.concatenate([weights for weights, _ in parts]), np.concatenate([bias for _, bias in parts])
    coefficients = getattr(classifier, "coef_", None)
    if coefficients is None or not hasattr(classifier, "classes_"):
        kernel = getattr(classifier, "kernel", None)
        what = type(classifier).__name__ + ("" if kernel is None else f"(kernel={kernel!r})")
        raise TypeError(
            "explain: the last step must be a linear classifier with coef_, such as LinearSVC, LogisticRegression, "
            f"SVC(kernel='linear') or KernelRidgeClassifierCV(kernel='linear'). Got {what}. {_remedy(classifier, name)}"
        )
    if isinstance(classifier, SVC | NuSVC) and len(classifier.classes_) > 2:
        raise TypeError(
            f"explain: {type(classifier).__name__} decides between pairs of its {len(classifier.classes_)} classes "
            "and lets them vote, so that no class has a linear decision value. Use LinearSVC, "
            f"model.set_params({name}=LinearSVC()).fit(X, y), or OneVsRestClassifier(SVC(kernel='linear'))."
        )
    table = coefficients.toarray() if sparse.issparse(coefficients) else coefficients
    weights = np.atleast_2d(np.asarray(table, np.float64))
    return weights, np.broadcast_to(np.ravel(classifier.intercept_), len(weights)).astype(np.float64)


def _remedy(classifier: Any, name: str) -> str:
    """Return what to do about a classifier that is not linear."""
    kernel = getattr(classifier, "kernel", None)
    if isinstance(kernel, str) and kernel == "precomputed":
        return (
            "It compares objects with training objects (a Gram matrix), so that they have no features. Use features "
            "instead: recipes.fisher_svm(), or recipes.series(), symbols() or points()."
        )
    if isinstance(classifier, PlugInClassifier):
        return (
            "It compares the probabilities of class models. Use their log-odds as features: "
            "make_pipeline(ModelLogOdds(estimator), LogisticRegression())."
        )
    several = isinstance(classifier, SVC | NuSVC) and len(classifier.classes_) > 2
    if kernel is not None and not several:
        return f'Use model.set_params({name}__kernel="linear").fit(X, y).'
    return f"Use model.set_params({name}=LinearSVC()).fit(X, y)."
