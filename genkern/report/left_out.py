"""Predictions about objects that a classifier had not seen, of an evaluation or of the folds of an auto classifier."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.data.intake import Ints
from genkern.evaluation import Evaluation
from genkern.io.dataset import Dataset
from genkern.learn.kernel_classifier import decide
from genkern.validation import Floats


class LeftOut(NamedTuple):
    """Predictions of one classifier about objects that were left out when it was fitted.

    Parameters
    ----------
    name : str
        The classifier.
    classes : ndarray of shape (k,)
        The classes, sorted.
    owner : ndarray of shape (m,)
        The objects; with repetitions an object comes several times.
    truth, predicted : ndarray of shape (m,)
        Their classes, and those predicted.
    probabilities, decisions : ndarray of shape (m, k), optional
        Probabilities and decision values of the classes, where there are any.
    origin : str
        Where they come from, in words.
    """

    name: str
    classes: NDArray[Any]
    owner: Ints
    truth: NDArray[Any]
    predicted: NDArray[Any]
    probabilities: Floats | None
    decisions: Floats | None
    origin: str

    @property
    def scores(self) -> Floats | None:
        """What objects can be ranked by: probabilities, which can be compared between folds, or decision values."""
        return self.decisions if self.probabilities is None else self.probabilities

    def first(self, n: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return the first prediction about each of n objects, and which of them have one."""
        predicted, known = np.empty(n, dtype=self.predicted.dtype), np.zeros(n, dtype=bool)
        predicted[self.owner[::-1]], known[self.owner] = self.predicted[::-1], True
        return predicted, known


def left_out(data: Dataset, evaluation: Evaluation | None, model: Any) -> LeftOut | None:
    """Return the predictions of the best row, or those of the chosen candidate of a fitted auto classifier, or None."""
    if evaluation is not None:
        row, repeats = evaluation.best, len(evaluation.folds)
        flat = [None if part is None else part.reshape(-1, len(evaluation.classes)) for part in _scores(row)]
        folds = int(evaluation.folds.max()) + 1
        origin = f"{folds}-fold cross-validation" + (f", {repeats} divisions" if repeats > 1 else "")
        index = np.tile(np.arange(len(evaluation.y)), repeats)
        return LeftOut(
            row.name, evaluation.classes, index, evaluation.y[index], row.predictions.ravel(), flat[0], flat[1], origin
        )
    if data.y is None or not hasattr(model, "cv_decision_") or not hasattr(model, "cv_index_"):
        return None
    index, values = model.cv_index_, model.cv_decision_
    decisions = np.stack([-values, values], axis=1) if values.ndim == 1 else values
    return LeftOut(
        model.best_name_,
        model.classes_,
        index,
        data.y[index],
        model.classes_[decide(values)],
        model.calibrator_.predict_proba(values),
        decisions,
        "the folds in which the recipe was chosen; the least error of several flatters the chosen one a little",
    )


def _scores(row: Any) -> tuple[Floats | None, Floats | None]:
    return row.probabilities, row.decisions
