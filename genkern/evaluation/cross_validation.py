"""Classifiers beside each other on the same folds: errors with intervals, paired tests, times."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from genkern.data.describe import Described, Rows
from genkern.data.intake import Ints
from genkern.evaluation.checks import check_inputs
from genkern.evaluation.comparison import PairedTest, error_interval, paired_test
from genkern.evaluation.fitting import fit_grouped
from genkern.preprocess.folds import members
from genkern.progress import Progress, spell_seconds
from genkern.validation import Floats, check_int

COLUMNS = ("recipe", "error", "95 % interval", "folds", "against best", "p", "fit", "predict")


@dataclass(frozen=True, eq=False)
class Row:
    """What became of one classifier.

    Parameters
    ----------
    name : str
        Its name.
    errors : ndarray of shape (n,)
        Share of repetitions in which an object was classified wrongly.
    fold_errors : ndarray of shape (repeats * folds,)
        Error rates of the folds.
    predictions : ndarray of shape (repeats, n)
        Classes predicted when the object was left out.
    interval : tuple of float
        Confidence interval of the error rate, 95 %.
    fit_seconds, predict_seconds : float
        Mean time of a fold.
    versus_best : PairedTest, optional
        Difference from the row with the least errors, and its p-value; none for that row.
    failure : str, optional
        Why there is no result.
    probabilities : ndarray of shape (repeats, n, k), optional
        Probabilities of the classes when the object was left out, by ``predict_proba``; none where the classifier
        gives none.
    decisions : ndarray of shape (repeats, n, k), optional
        Decision values of the classes when the object was left out, by ``decision_function``; of two classes, that of
        the first is minus that of the second. None where the classifier gives none, or none for each class.
    """

    name: str
    errors: Floats
    fold_errors: Floats
    predictions: NDArray[Any]
    interval: tuple[float, float]
    fit_seconds: float
    predict_seconds: float
    versus_best: PairedTest | None = None
    failure: str | None = None
    probabilities: Floats | None = None
    decisions: Floats | None = None

    @property
    def error(self) -> float:
        """The error rate."""
        return float(self.errors.mean())

    @property
    def spread(self) -> float:
        """The standard deviation of the error over folds."""
        return float(self.fold_errors.std(ddof=1))

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        if self.failure is not None:
            return {"recipe": self.name, "failure": self.failure}
        test = self.versus_best
        return {
            "recipe": self.name,
            "error": self.error,
            "low": self.interval[0],
            "high": self.interval[1],
            "spread": self.spread,
            "difference": None if test is None else test.difference,
            "p_value": None if test is None else test.p_value,
            "fit_seconds": self.fit_seconds,
            "predict_seconds": self.predict_seconds,
        }

    def cells(self) -> list[str]:
        """Return the figures as they stand in the table."""
        if self.failure is not None:
            return [self.name, "failed", *[""] * (len(COLUMNS) - 2)]
        low, high = self.interval
        test = self.versus_best
        compared = ["best", ""] if test is None else [f"{100 * test.difference:+.1f}", f"{test.p_value:.3f}"]
        return [
            self.name,
            f"{100 * self.error:.1f} %",
            f"{100 * low:.1f} to {100 * high:.1f}",
            f"± {100 * self.spread:.1f}",
            *compared,
            spell_seconds(self.fit_seconds),
            spell_seconds(self.predict_seconds),
        ]


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Described):
    """Errors of classifiers on the same folds; prints as a table.

    Parameters
    ----------
    rows : list of Row
        One per classifier, the one with the least errors first, failed ones last.
    classes : ndarray
        The classes.
    y : ndarray of shape (n,)
        Their true ones.
    folds : ndarray of shape (repeats, n)
        The fold in which each object was left out.
    baseline : float
        Error of always answering the most frequent class of the training part.
    """

    rows: list[Row]
    classes: NDArray[Any]
    y: NDArray[Any]
    folds: Ints
    baseline: float

    def __getitem__(self, name: str) -> Row:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"Evaluation: no row is called {name!r}; there are {[row.name for row in self.rows]}.")

    @property
    def best(self) -> Row:
        """The row with the least errors."""
        return self.rows[0]

    def confusion(self, name: str) -> Ints:
        """Return how often objects of each class (rows) were taken for each class (columns), over all repetitions."""
        table = np.zeros((len(self.classes), len(self.classes)), dtype=np.int64)
        truth = np.searchsorted(self.classes, self.y)
        for predicted in self[name].predictions:
            np.add.at(table, (truth, np.searchsorted(self.classes, predicted)), 1)
        return table

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, as JSON holds them."""
        return {
            "objects": len(self.y),
            "classes": [label.item() for label in self.classes],
            "folds": int(self.folds.max()) + 1,
            "repeats": len(self.folds),
            "baseline": self.baseline,
            "recipes": [row.as_dict() for row in self.rows],
        }

    def _heading(self) -> str:
        return repr(self).splitlines()[len(self.rows) + 1]

    def _details(self) -> Rows:
        lines = [COLUMNS, *(row.cells() for row in self.rows)]
        failed = [(f"{row.name} failed", row.failure) for row in self.rows if row.failure is not None]
        return [*((name, [cells]) for name, *cells in lines), *failed]

    def __str__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        lines = [COLUMNS, *(row.cells() for row in self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
        shown = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
        folds = f"{len(self.y)} objects, {len(self.classes)} classes, {int(self.folds.max()) + 1} folds"
        repeats = f", {len(self.folds)} times" if len(self.folds) > 1 else ""
        shown.append(f"{folds}{repeats}; always the most frequent class: {100 * self.baseline:.1f} %")
        shown += [f"{row.name} failed: {row.failure}" for row in self.rows if row.failure is not None]
        return "\n".join(shown)


def evaluate(
    X: Any,
    y: ArrayLike,
    recipes: Mapping[str, Any],
    *,
    groups: ArrayLike | None = None,
    folds: int = 5,
    repeats: int = 1,
    random_state: int = 0,
    verbose: bool = False,
) -> Evaluation:
    """Cross-validate classifiers side by side: errors with intervals, paired tests against the best, times.

    All classifiers see the same stratified folds. What they choose inside ``fit`` (penalties, features, whole recipes)
    is chosen anew in every training part, so that the errors are those of nested cross-validation. The best row is the
    best of several on the same objects, so that its own error is a little too good; the tests say by how much others
    could be as good.

    Parameters
    ----------
    X : list
        The objects.
    y : array-like of shape (n,)
        Their classes.
    recipes : dict of str to classifier
        The classifiers, unfitted.
    groups : array-like of shape (n,), optional
        Objects of one group (a patient, a speaker) are never parted between training and test, neither here nor by a
        classifier whose ``fit`` takes ``groups``; intervals and tests count groups, not objects.
    folds : int, default=5
        Number of folds.
    repeats : int, default=1
        How often all objects are divided into folds.
    random_state : int, default=0
        Seed of the folds.
    verbose : bool, default=False
        Whether progress is reported.

    Returns
    -------
    evaluation : Evaluation
        Rows with errors, intervals (``error_interval``), tests against the best (``paired_test``) and times. A
        classifier that fails has a row that says why.

    Examples
    --------
    >>> from genkern import recipes
    >>> from genkern.datasets import make_two_hmms
    >>> from genkern.evaluation import evaluate
    >>> X, y = make_two_hmms(n_per_class=30)
    >>> result = evaluate(X, y, {"words": recipes.spectrum_svm(3), "letters": recipes.spectrum_svm(1)}, folds=3)
    >>> [row.name for row in result.rows]
    ['words', 'letters']
    """
    objects, labels, owners = check_inputs(X, y, recipes, groups)
    splits = _splits(objects, labels, owners, folds, repeats, random_state)
    where = np.empty((repeats, len(labels)), dtype=np.int64)
    trials = {name: _Trial(name, labels, repeats) for name in recipes}
    wrong = np.zeros(len(labels))
    with Progress("evaluate", len(splits) * len(recipes), "fits", verbose) as progress:
        for index, (train, test) in enumerate(splits):
            repeat, fold = divmod(index, folds)
            where[repeat, test] = fold
            kinds, counts = np.unique(labels[train], return_counts=True)
            wrong[test] += labels[test] != kinds[counts.argmax()]
            for name, recipe in recipes.items():
                trials[name].run(recipe, objects, owners, (repeat, train, test))
                progress.advance(note=name)
    rows = _ranked([trial.row(owners) for trial in trials.values()], owners)
    if rows[0].failure is not None:
        raise ValueError(f"evaluate: every recipe failed. {rows[0].name}: {rows[0].failure}")
    return Evaluation(rows, np.unique(labels), labels, where, float(wrong.mean() / repeats))


class _Trial:
    """Collects predictions and times of one classifier over the folds."""

    def __init__(self, name: str, labels: NDArray[Any], repeats: int):
        self.name, self._labels = name, labels
        self._classes = np.unique(labels)
        self._predictions = np.empty((repeats, len(labels)), dtype=labels.dtype)
        shape = (repeats, len(labels), len(self._classes))
        self._scores: dict[str, Floats | None] = {
            "predict_proba": np.zeros(shape),
            "decision_function": np.zeros(shape),
        }
        self._fold_errors: list[float] = []
        self._times: list[tuple[float, float]] = []
        self._failure: str | None = None

    def run(self, recipe: Any, objects: list[Any], groups: Any, part: tuple[int, Ints, Ints]) -> None:
        """Fit to the training part and predict the test part, unless it has failed before."""
        if self._failure is not None:
            return
        repeat, train, test = part
        left_out = [objects[i] for i in test]
        try:
            began = time.perf_counter()
            part_groups = None if groups is None else groups[train]
            fitted = fit_grouped(recipe, [objects[i] for i in train], self._labels[train], part_groups)
            half = time.perf_counter()
            predicted = fitted.predict(left_out)
            self._times.append((half - began, time.perf_counter() - half))
            for method, kept in self._scores.items():
                scores = None if kept is None else _class_scores(fitted, method, left_out, self._classes)
                if kept is None or scores is None:
                    self._scores[method] = None
                else:
                    kept[repeat, test] = scores
        except Exception as error:  # a recipe that does not fit these objects must not spoil the others
            self._failure = f"{type(error).__name__}: {error}"
            return
        self._predictions[repeat, test] = predicted
        self._fold_errors.append(float((predicted != self._labels[test]).mean()))

    def row(self, groups: Any) -> Row:
        """Return the figures, those of tests apart."""
        errors = (self._predictions != self._labels).mean(axis=0)
        if self._failure is not None:
            return Row(self.name, errors, np.empty(0), self._predictions, (0.0, 1.0), 0.0, 0.0, failure=self._failure)
        fit, predict = map(float, np.mean(self._times, axis=0))
        return Row(
            self.name,
            errors,
            np.array(self._fold_errors),
            self._predictions,
            error_interval(errors, groups=groups),
            fit,
            predict,
            probabilities=self._scores["predict_proba"],
            decisions=self._scores["decision_function"],
        )


def _class_scores(fitted: Any, method: str, objects: list[Any], classes: NDArray[Any]) -> Floats | None:
    """Return probabilities or decision values (n, k) of the classes, or None where there is not one for each.

    A class that no training object had is of probability zero; it has no decision value.
    """
    if not hasattr(fitted, method):
        return None
    given, known = np.asarray(getattr(fitted, method)(objects), np.float64), fitted.classes_
    if given.ndim == 1:
        given = np.stack([-given, given], axis=1)
    if given.shape[1] != len(known) or (method == "decision_function" and len(known) < len(classes)):
        return None
    scores = np.zeros((len(given), len(classes)))
    scores[:, np.searchsorted(classes, known)] = given
    return scores


def _ranked(rows: list[Row], groups: Any) -> list[Row]:
    """Return the rows, least errors first, with tests against the first; failed ones last."""
    done = sorted((row for row in rows if row.failure is None), key=lambda row: row.error)
    tested = [replace(row, versus_best=paired_test(row.errors, done[0].errors, groups=groups)) for row in done[1:]]
    return [*done[:1], *tested, *(row for row in rows if row.failure is not None)]


def _splits(
    objects: list[Any], labels: NDArray[Any], groups: Any, folds: int, repeats: int, seed: int
) -> list[tuple[Ints, Ints]]:
    """Return the (train, test) indices of all folds of all repetitions."""
    check_int(folds, "folds", "evaluate", 2)
    check_int(repeats, "repeats", "evaluate", 1)
    check_int(seed, "random_state", "evaluate")
    kinds, codes = np.unique(labels, return_inverse=True)
    counts = members(codes, groups)
    if counts.min() < folds:
        what = "objects" if groups is None else "groups"
        rare, more = kinds[counts.argmin()], int((counts < folds).sum()) - 1
        others = f", and {more} more {'have' if more > 1 else 'has'} fewer than {folds}" if more else ""
        fewer = f"Use at most {counts.min()} folds, or give" if counts.min() > 1 else "Give"
        raise ValueError(
            f"evaluate: with {folds} folds every class needs as many {what}; class {rare!s} has {counts.min()}"
            f"{others}. {fewer} more {what} of {'them' if more else 'it'}, or leave {'them' if more else 'the class'} "
            "out, as by Dataset.take."
        )
    splitter = StratifiedKFold if groups is None else StratifiedGroupKFold
    parts: list[tuple[Ints, Ints]] = []
    for repeat in range(repeats):
        parts += splitter(folds, shuffle=True, random_state=seed + repeat).split(np.zeros(len(labels)), labels, groups)
    return parts
