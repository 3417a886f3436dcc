"""Classifiers and searches of scikit-learn with calibrated probabilities, weights of classes, and folds by groups."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC
from sklearn.utils import column_or_1d
from sklearn.utils.metaestimators import _safe_split

from genkern.learn.calibration import Calibrated, Calibrator
from genkern.learn.kernel_classifier import Ints, decide
from genkern.learn.low_rank import eigen_features
from genkern.learn.products import inner_products, transposed_times
from genkern.learn.weights import REQUESTED, check_weights
from genkern.preprocess.folds import make_folds, members, parts_of_folds
from genkern.progress import each
from genkern.validation import Floats

FOLDS = 5
WIDE = 2  # times as many columns as objects, from which a search is in the span of the objects,
MOST = 2000  # where these are no more
_fits: ContextVar[Iterator[Any] | None] = ContextVar("_fits", default=None)  # those of a search that are to come
Held = tuple[Ints, Floats]  # objects, and decisions about them by a fit that has not seen them


class _Consumer(Calibrated):
    """Takes groups and weights itself, whatever it is made of."""

    __metadata_request__fit: ClassVar = REQUESTED

    def get_metadata_routing(self) -> Any:
        """Return what ``fit`` takes, for scikit-learn's routing of metadata."""
        return BaseEstimator.get_metadata_routing(self)

    def _take_over(self, fitted: Any) -> None:
        """Take the fitted attributes of an estimator with the same parameters."""
        own = self.get_params(deep=False)
        for name in vars(fitted).keys() - own.keys():
            setattr(self, name, getattr(fitted, name))

    def _calibrate(self, held: Iterable[Held], codes: Ints, weights: Floats) -> None:
        """Fit ``calibrator_`` to decisions about objects held out."""
        rows, values = map(np.concatenate, zip(*held))
        self.calibrator_ = Calibrator().fit(values, codes[rows], weights[rows])


class _FixedSVM(_Consumer):
    """A machine without a search, whose decisions for the calibration come from folds of its own."""

    class_weight: Any
    _plain: Callable[[], Any]  # scikit-learn's estimator with the same parameters

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Fit to all objects, and in folds, of which groups are in one each, for the calibration.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            Weights of the losses, not negative.
        groups : array-like of shape (n,), optional
            Objects of one group are held out together.

        Returns
        -------
        self
        """
        labels = column_or_1d(y, warn=True)
        weights = check_weights(self.class_weight, labels, sample_weight, type(self).__name__)
        with config_context(enable_metadata_routing=True):  # by which weights reach each machine of several
            fitted = self._plain().fit(X, labels, sample_weight=weights)
            codes = np.searchsorted(fitted.classes_, labels)
            held = list(self._held_out(X, codes, weights, groups))
        self._take_over(fitted)
        self._calibrate(held or [(np.arange(len(codes)), fitted.decision_function(X))], codes, weights)
        return self

    def _held_out(self, X: Any, codes: Ints, weights: Floats, groups: Any) -> Iterable[Held]:
        """Yield the decisions in each fold outside of which all classes have objects."""
        counts = members(codes, groups)
        enough = counts[counts > 1]
        if (len(enough) < len(counts) and groups is not None) or not len(enough):
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of classes with one object, and of what the fit to all warns
            splitter = make_folds(int(min(FOLDS, enough.min())), codes, groups, type(self).__name__)
            for train, test in splitter.split(codes, codes, groups):
                if len(np.unique(codes[train])) == len(counts):
                    machine = self._plain()
                    part = _safe_split(machine, X, codes, train)
                    machine.fit(*part, sample_weight=weights[train])
                    yield test, machine.decision_function(_safe_split(machine, X, codes, test, train)[0])


class CalibratedLinearSVC(_FixedSVM, LinearSVC):
    """``LinearSVC`` with calibrated probabilities, and weights of classes that multiply those of objects."""

    def _plain(self) -> LinearSVC:
        return LinearSVC(**{**self.get_params(), "class_weight": None})


class CalibratedOneVsRest(_FixedSVM, OneVsRestClassifier):
    """``OneVsRestClassifier`` with calibrated probabilities and weights of classes, not of one against the rest."""

    def __init__(self, estimator: Any, *, n_jobs: int | None = None, verbose: int = 0, class_weight: Any = None):
        super().__init__(estimator, n_jobs=n_jobs, verbose=verbose)
        self.class_weight = class_weight

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Fit to all objects, and in folds for the calibration, unless y has several labels per object.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,), or indicators of shape (n, n_classes)
        sample_weight, groups : array-like of shape (n,), optional
            As in ``CalibratedLinearSVC``.
        """
        if np.ndim(y) < 2 or np.shape(y)[1] == 1:
            return super().fit(X, y, sample_weight, groups)
        if self.class_weight is not None:
            raise ValueError(f"{type(self).__name__}: class_weight needs one label per object. Got several.")
        with config_context(enable_metadata_routing=True):
            given = {} if sample_weight is None else {"sample_weight": sample_weight}
            self._take_over(self._plain().fit(X, y, **given))
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return calibrated probabilities of the classes, (n, n_classes), where each object has one.

        Parameters
        ----------
        X : as in ``predict``
        """
        if getattr(self, "multilabel_", False):
            raise ValueError(f"{type(self).__name__}: no probabilities, as y had several labels per object.")
        return super().predict_proba(X)

    def _plain(self) -> OneVsRestClassifier:
        machine = clone(self.estimator).set_fit_request(sample_weight=True)
        return OneVsRestClassifier(machine, n_jobs=self.n_jobs, verbose=self.verbose)


class CalibratedSearchCV(_Consumer, GridSearchCV):
    """``GridSearchCV`` with probabilities calibrated on its own folds, which keep groups whole, and class weights.

    The estimator must have a ``decision_function``. Its settings are chosen by the accuracy, by weights of objects.

    Coefficients of an L2-penalised ``LogisticRegression`` are sums of the rows of its objects. So where there are up to
    2000 objects and more than twice as many columns, all fits are in coordinates of the span of the rows, which have
    the same inner products, and the last one is turned back. They then take less time than other processes need to
    start, and ``n_jobs`` is not used.
    """

    def __init__(
        self, estimator: Any, param_grid: Any, *, cv: Any = 5, n_jobs: int | None = None, class_weight: Any = None
    ):
        super().__init__(estimator, param_grid, cv=cv, n_jobs=n_jobs)
        self.class_weight = class_weight

    def fit(
        self, X: Any, y: Any = None, *, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Choose parameters, fit to all objects with these, and calibrate on what was held out.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            Weights of the losses, not negative.
        groups : array-like of shape (n,), optional
            Objects of one group are held out together, unless ``cv`` is a splitter that knows no groups.

        Returns
        -------
        self
        """
        labels = column_or_1d(y, warn=True)
        codes = np.unique(labels, return_inverse=True)[1]
        who = type(self).__name__
        weights = check_weights(self.class_weight, labels, sample_weight, who)
        folds = parts_of_folds(make_folds(self.cv, labels, groups, who), labels, groups, who)
        narrow = _in_span(self.estimator, X)
        search = _Recorder(self.estimator, self.param_grid, cv=folds, n_jobs=None if narrow else self.n_jobs)
        search._weights = weights
        inner = self.estimator
        name = f"{inner.steps[-1][0]}__sample_weight" if isinstance(inner, Pipeline) else "sample_weight"
        sizes = [len(train) for train, _ in folds] * len(ParameterGrid(self.param_grid))
        fits = iter(each([None] * (len(sizes) + 1), [*sizes, len(labels)]))  # in folds, and to all
        token = _fits.set(fits)
        try:
            next(fits)
            with config_context(enable_metadata_routing=False):
                search.fit(narrow[0] if narrow else X, labels, **{name: weights})
        finally:
            _fits.reset(token)
        deque(fits, 0)  # of which other processes may have done some
        if narrow:
            best = search.best_estimator_
            best.coef_, best.n_features_in_ = transposed_times(X, narrow[1] @ best.coef_.T).T, X.shape[1]
        self._take_over(search)
        del self._weights, self._scores
        self.scorer_ = self._get_scorers()[0]
        held = search.held_out(len(self.classes_))
        self._calibrate(held or [(np.arange(len(codes)), self.decision_function(X))], codes, weights)
        return self


def _in_span(estimator: Any, X: Any) -> tuple[Floats, Floats] | None:
    """Return coordinates (n, r) of rows in their span and the map (n, r) to weights of rows, if a search is there."""
    only_l2 = type(estimator) is LogisticRegression and estimator.solver in ("lbfgs", "newton-cg")
    if not only_l2 or not (sparse.issparse(X) or isinstance(X, np.ndarray)):
        return None
    n, p = X.shape
    if n > MOST or p <= WIDE * n:
        return None
    products = inner_products(X.astype(np.float64))
    return eigen_features(products, n) if np.isfinite(products).all() and products.any() else None


class _Recorder(GridSearchCV):
    """A search by weighted accuracy that keeps the decisions in its folds."""

    _weights: Floats

    def _get_scorers(self) -> tuple[Any, str]:
        return _score, "score"

    def _check_scorers_accept_sample_weight(self) -> bool:
        return False  # scores are weighted below

    def _format_results(self, candidate_params: Any, n_splits: int, out: Any, more_results: Any = None) -> Any:
        self._scores = [one["test_scores"] for one in out]
        for i, one in enumerate(out):
            weights = self._weights[self.cv[i % n_splits][1]]
            if isinstance(one["test_scores"], _Score) and weights.any():
                one["test_scores"] = float(np.average(one["test_scores"].right, weights=weights))
        return super()._format_results(candidate_params, n_splits, out, more_results)

    def held_out(self, n_classes: int) -> list[Held]:
        """Return the decisions of the chosen candidate, in each fold outside of which all classes have objects."""
        scores = self._scores[self.best_index_ * self.n_splits_ :]
        made = [(test, getattr(score, "values", None)) for (_, test), score in zip(self.cv, scores)]
        width = () if n_classes == 2 else (n_classes,)
        return [(test, values) for test, values in made if values is not None and values.shape[1:] == width]


class _Score(float):
    """An accuracy with the decisions that it is of, and whether they are right."""

    values: Floats
    right: NDArray[np.bool_]

    def __new__(cls, values: Floats, right: NDArray[np.bool_]) -> _Score:
        score = super().__new__(cls, right.mean())
        score.values, score.right = values, right
        return score

    def __getnewargs__(self) -> Any:
        return self.values, self.right


def _score(classifier: Any, X: Any, y: NDArray[Any]) -> _Score:
    """Return the accuracy of a classifier, with its decisions."""
    values = classifier.decision_function(X)
    next(_fits.get() or iter(()), None)
    return _Score(values, classifier.classes_[decide(values)] == y)
