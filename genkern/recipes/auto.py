"""Learning without settings: the kind of objects is detected, and a recipe chosen by cross-validation."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.validation import _num_samples, check_is_fitted

from genkern.data.describe import DescribedEstimator, Rows, parameter_rows
from genkern.data.flatten import flatten_symbols
from genkern.data.kinds import KINDS, detect_kind
from genkern.data.objects import Packed, check_objects
from genkern.features.class_models import check_labels
from genkern.learn.calibration import Calibrator, expected_calibration_error
from genkern.learn.kernel_classifier import decide
from genkern.learn.weights import REQUESTED, check_weights
from genkern.preprocess.cross_fit import fold_numbers
from genkern.preprocess.folds import members
from genkern.progress import portion
from genkern.recipes import race
from genkern.recipes.candidates import candidates as candidates_of
from genkern.recipes.text import check_documents
from genkern.validation import Floats, check_int, check_option, remember_width

WHO = "AutoClassifier"
SLACK = 0.05  # of the budget that the last fit may take in any case


class AutoClassifier(DescribedEstimator, ClassifierMixin, BaseEstimator):
    """A classifier for any list of objects that chooses its recipe by cross-validation, within a time budget.

    Parameters
    ----------
    kind : {"series", "symbols", "codes", "documents", "points"}, optional
        What the objects are; detected by default (``genkern.data.kinds.detect_kind``), and an error that asks where
        that leaves two readings.
    budget : str or float, optional
        Time for all of ``fit``, the last fit included: "30s", "5min", "1h" or seconds. By default as long as it takes.
    cv : int, cross-validation generator or iterable of (train, test), default=5
        The folds, the same for all candidates; every object must be in one test part. An int means so many stratified
        folds, fewer (with a warning) where a class has fewer objects or groups.
    candidates : dict of str to classifier, or list of str, optional
        What is tried, in this order; names choose from those of ``recipes.candidates(kind, X)``, which are all tried
        by default, cheap first.
    random_state : int, RandomState instance or None, default=0
        Seed of the folds and of the recipes.
    n_jobs : int, optional
        Threads or processes of the recipes. Folds follow each other, so the outcome does not depend on it.
    verbose : int, default=0
        1 reports a line per candidate, with the time that is left.
    class_weight : None, "balanced" or dict of label to weight, default=None
        Weights of classes, which multiply those of objects.

    Attributes
    ----------
    kind_ : str
        The kind of objects.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    best_name_ : str
        The name of the chosen candidate.
    best_estimator_ : classifier
        The chosen candidate, fitted to all objects, or (see ``refitted_``) to those outside of the first fold.
    refitted_ : bool
        False where time was over or Ctrl-C came before the last fit was done.
    results_ : list of dict
        For each candidate: "name", "status" ("done", "stopped: budget", "stopped: interrupted", "not tried" or
        "failed: why"), "error" (mean over finished folds, None if there are none), "spread" (standard deviation over
        these), "fold_errors", "fit_seconds", "predict_seconds", and "warnings", what was warned of in the folds.
    calibrator_ : Calibrator
        What makes probabilities of decision values, fitted to ``cv_decision_``.
    calibration_error_ : float or None
        Expected calibration error in the cross-validation, each fold under the calibration of the others; None where
        fewer than two folds are finished.
    cv_index_ : ndarray of shape (m,)
        The objects that were left out in a finished fold of the chosen candidate: all of them, unless it was stopped.
    cv_decision_ : ndarray of shape (m,) or (m, n_classes)
        Decision values about these by fits that have not seen them.

    Notes
    -----
    **Which candidate wins.** The one with the least mean error; of equal ones the first, that is the cheapest. There is
    no preference for simple ones within a standard error: candidates are few and have no settings that were searched,
    so a choice among them overfits little, while the standard error of five folds is often larger than what a better
    recipe gains. A candidate that was stopped is compared with the best before it on the folds that both have.

    **The budget.** Candidates run one after the other, and before each fold it is asked whether the fold, as long as
    the mean of the finished ones, and a fit of the best to all objects will end in time. Where a fold has two thousand
    objects to learn from, a candidate is first tried on samples of fifty and a hundred. The first fold of the first
    candidate is always run, and a fit that has begun is finished, so the budget may be exceeded by one. If the last
    fit would then take too long (more than is left, and than a twentieth of the budget), the model of the first fold is
    kept, with a warning. Ctrl-C keeps the model of the first fold of the best so far at once; before any fold is
    finished it ends the fit as usual.

    **Groups.** Folds keep groups whole, and so does all that a recipe chooses or leaves out by itself, unless a class
    has one group only in a training part.

    **Weights**, where there are any, reach the fits of all candidates, and errors and the calibration are weighted too.
    A candidate of your own that cannot use them fails. "balanced" is by the frequencies in all of y.

    **Probabilities** are calibrated on ``cv_decision_``, whose fits have not even seen the objects when their features
    were learnt; the calibration that the recipes bring along plays no part.

    **Errors** in ``results_`` are honest for each candidate, but the least of several flatters the chosen one a little:
    for an error to report, cross-validate the ``AutoClassifier`` itself.

    Examples
    --------
    >>> from genkern import AutoClassifier
    >>> X = ["abab", "babab", "ababa", "baba", "aabb", "bbaab", "aabba", "abba"]
    >>> y = [0, 0, 0, 0, 1, 1, 1, 1]
    >>> auto = AutoClassifier(candidates=["plug_in", "spectrum_svm"], cv=2).fit(X, y)
    >>> auto.kind_, auto.predict(["bababa", "bbaa"]), auto.predict_proba(["bababa"]).sum()
    ('symbols', array([0, 1]), np.float64(1.0))
    """

    __metadata_request__fit: ClassVar = REQUESTED

    def __init__(
        self,
        kind: str | None = None,
        *,
        budget: Any = None,
        cv: Any = 5,
        candidates: Any = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
        class_weight: Any = None,
    ):
        self.kind = kind
        self.budget = budget
        self.cv = cv
        self.candidates = candidates
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.class_weight = class_weight

    def fit(
        self, X: Any, y: ArrayLike, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Try the candidates, and fit the best one to all objects.

        Parameters
        ----------
        X : list of n objects
        y : array-like of shape (n,)
            Labels.
        groups : array-like of shape (n,), optional
            What must not be in two folds (a speaker, a patient, a family).
        sample_weight : array-like of shape (n,), optional
            Weights, not negative: an object of weight two counts as two, which are held out together.

        Returns
        -------
        self
        """
        budget = race.seconds_of(self.budget, WHO)
        runs = race.Race(budget, self.verbose)
        remember_width(self, X, reset=True)
        labels = check_labels(y, WHO)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the objects, of which the fits warn
            self.kind_ = self._check_objects(X)
        check_consistent_length(range(_num_samples(X)), labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            came = repr(str(self.classes_[0]))
            raise ValueError(f"{WHO} needs objects of at least 2 classes. Got one class only: {came}.")
        plain = self.class_weight is None and sample_weight is None
        weights = None if plain else check_weights(self.class_weight, labels, sample_weight, WHO)
        seed = self._seed()
        owners = None if groups is None else column_or_1d(groups)
        folds = self._folds(labels, codes, owners, seed)
        with portion(0.9):  # the rest is for the fit to all objects
            best = runs.run(self._candidates(X, seed), race.Task(X, labels, codes, owners, folds, weights))
        self.results_ = [entry.result() for entry in runs.entries]
        self.best_name_ = best.name
        self._calibrate(best, runs.task)
        self._finish(runs, best, budget)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return the decision value of the second of two classes, (n,), or of each of more, (n, n_classes).

        Parameters
        ----------
        X : list of n objects
        """
        check_is_fitted(self, "best_estimator_")
        remember_width(self, X, reset=False)
        return race.decision_values(self.best_estimator_, X, len(self.classes_))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label with the largest decision value, which is the most probable one, for each object, (n,).

        Parameters
        ----------
        X : list of n objects
        """
        best = decide(self.decision_function(X))
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def predict_proba(self, X: Any) -> Floats:
        """Return calibrated probabilities of the classes, shape (n, n_classes).

        Parameters
        ----------
        X : list of n objects
        """
        decisions = self.decision_function(X)
        return self.calibrator_.predict_proba(decisions)

    # --- parts of fit

    def _check_objects(self, X: Any) -> str:
        """Return the kind of the objects, which are checked."""
        if self.kind is not None:
            check_option(self.kind, KINDS, "kind", f"{WHO}, if not None,")
        kind = detect_kind(X, WHO) if self.kind is None else self.kind
        if kind == "documents":
            check_documents(X)
        elif kind in ("series", "points"):
            check_objects(X, kind, who=WHO)
        elif not isinstance(X, Packed):
            flatten_symbols(X, WHO)
        return kind

    def _seed(self) -> int:
        """Return a seed."""
        if isinstance(self.random_state, numbers.Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _candidates(self, X: Any, seed: int) -> dict[str, Any]:
        """Return what is tried."""
        if isinstance(self.candidates, Mapping) and self.candidates:
            return dict(self.candidates)
        known = candidates_of(self.kind_, X, random_state=seed, n_jobs=self.n_jobs)
        if self.candidates is None:
            return known
        names = [] if isinstance(self.candidates, str | Mapping) else list(self.candidates)
        if not names or any(name not in known for name in names):
            raise ValueError(
                f"The 'candidates' parameter of {WHO} must be a dict of names and classifiers, or a list of names "
                f"among {', '.join(map(repr, known))}, those for {self.kind_}. Got {self.candidates!r} instead."
            )
        return {name: known[name] for name in names}

    def _folds(self, labels: NDArray[Any], codes: Any, groups: Any, seed: int) -> NDArray[np.int64]:
        """Return the fold (n,) of each object."""
        splitter = self.cv
        if isinstance(self.cv, numbers.Integral):
            wanted = check_int(self.cv, "cv", WHO, 2)
            counts = members(codes, groups)
            rarest, what = int(np.argmin(counts)), "objects" if groups is None else "groups"
            if counts[rarest] < 2:
                raise ValueError(
                    f"{WHO}: class {self.classes_.tolist()[rarest]!r} has {counts[rarest]} {what[:-1]}; expected at "
                    f"least 2, one to learn from and one to test on. Leave the class out, or give more {what} of it."
                )
            if counts[rarest] < wanted:
                warnings.warn(
                    f"{WHO}: class {self.classes_.tolist()[rarest]!r} has {counts[rarest]} {what}, fewer than "
                    f"cv={wanted}; {counts[rarest]} folds are used.",
                    UserWarning,
                    stacklevel=3,
                )
            number = min(wanted, int(counts[rarest]))
            made = StratifiedKFold if groups is None else StratifiedGroupKFold
            splitter = made(number, shuffle=True, random_state=seed)
        folds = fold_numbers(check_cv(splitter, labels, classifier=True), labels, groups, WHO)
        for fold in range(folds.max() + 1):
            lost = np.setdiff1d(np.arange(len(self.classes_)), codes[folds != fold])
            if len(lost) or not folds.max():
                raise ValueError(
                    f"{WHO}: there are no objects of class {self.classes_.tolist()[lost[0] if len(lost) else 0]!r} "
                    f"outside of fold {fold}. Take other folds by cv=, or fewer."
                )
        return folds

    def _calibrate(self, best: race.Entry, task: race.Task) -> None:
        """Learn probabilities from the decisions about what was left out."""
        rows = [np.flatnonzero(task.folds == fold) for fold in range(len(best.decisions))]
        self.cv_index_, self.cv_decision_ = np.concatenate(rows), np.concatenate(best.decisions)
        own, weights = task.codes[self.cv_index_], np.ones(len(self.cv_index_))
        if task.weights is not None:
            weights = task.weights[self.cv_index_]
        self.calibrator_ = Calibrator().fit(self.cv_decision_, own, weights)
        self.calibration_error_ = None
        if len(rows) > 1:
            parts = np.repeat(np.arange(len(rows)), list(map(len, rows)))
            honest = np.zeros((len(own), len(self.classes_)))
            for part in range(len(rows)):
                other = Calibrator().fit(self.cv_decision_[parts != part], own[parts != part], weights[parts != part])
                honest[parts == part] = other.predict_proba(self.cv_decision_[parts == part])
            self.calibration_error_ = expected_calibration_error(
                own, honest, classes=np.arange(len(self.classes_)), sample_weight=weights
            )

    def _finish(self, runs: race.Race, best: race.Entry, budget: float) -> None:
        """Fit the best candidate to all objects, or keep the model of its first fold where there is no time."""
        why = "Ctrl-C" if runs.interrupted else "budget"
        self.refitted_ = False
        slack = SLACK * budget if np.isfinite(budget) else 0.0
        if not runs.interrupted and runs.refit_seconds(best) <= max(runs.left, slack):
            try:
                self.best_estimator_ = runs.refit(best)
                self.refitted_ = True
            except KeyboardInterrupt:
                why = "Ctrl-C"
        if not self.refitted_:
            self.best_estimator_ = best.model
            warnings.warn(
                f"{WHO}: stopped ({why}). {best.name}, the best so far with an error of {np.mean(best.errors):.1%} in "
                f"{len(best.errors)} folds, is kept as it was fitted without the first fold. results_ tells what "
                "was tried.",
                UserWarning,
                stacklevel=3,
            )

    def _heading(self) -> str:
        return f"{WHO}, fitted" if hasattr(self, "best_estimator_") else WHO

    def _details(self) -> Rows:
        rows = parameter_rows(self)
        if not hasattr(self, "best_estimator_"):
            return rows
        tried = [
            [
                one["name"],
                "-" if one["error"] is None else f"error {one['error']:.1%} ± {one['spread']:.1%}",
                one["status"],
            ]
            for one in self.results_
        ]
        rows += [("kind", self.kind_), ("classes", len(self.classes_)), ("tried", tried), ("chosen", self.best_name_)]
        error = self.calibration_error_
        return rows if error is None else [*rows, ("calibration error", f"{error:.1%}")]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.kind in (None, "series", "points")
        tags.input_tags.string = self.kind not in ("series", "points")
        tags.classifier_tags.poor_score = True  # rows of a table are not what recipes are for
        return tags


def auto(
    X: Any, y: ArrayLike, *, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None, **settings: Any
) -> AutoClassifier:
    """Return a classifier of objects of any kind, its recipe chosen by cross-validation.

    Parameters
    ----------
    X : list of n objects
        Series, sequences of symbols, chain codes, documents or sets of points.
    y : array-like of shape (n,)
        Labels.
    groups : array-like of shape (n,), optional
        What must not be in two folds (a speaker, a patient, a family).
    sample_weight : array-like of shape (n,), optional
        Weights, not negative.
    **settings
        Those of ``AutoClassifier``, such as ``budget="5min"`` or ``class_weight="balanced"``.

    Returns
    -------
    classifier : AutoClassifier
        Fitted.

    Examples
    --------
    >>> from genkern import recipes
    >>> X = ["my thesis advisor", "my classes, my advisor", "professor of computing", "professor and chair"]
    >>> auto = recipes.auto(X, ["student", "student", "faculty", "faculty"], cv=2, candidates=["words_svm"])
    >>> auto.kind_, auto.predict(["my advisor is a professor of my choice"])
    ('documents', array(['student'], dtype='<U7'))
    """
    return AutoClassifier(**settings).fit(X, y, groups, sample_weight)
