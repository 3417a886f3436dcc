"""The pipeline that recipes return: scikit-learn's, with labels checked first and one warning of a thing per call."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, ClassVar

import numpy as np
from sklearn import config_context
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from genkern.data.describe import DescribedEstimator, Rows, as_text
from genkern.data.transformer import effort
from genkern.progress import expecting
from genkern.recipes.walk import input_of, is_plain
from genkern.validation import n_objects, one_warning_each, refuse_odd_labels

DEPTH, MOST = 2, 3  # how deep a description lists parts of parts, and how many of each
LATE = ("n_splits=", "fits failed", "classes", "class:")  # in errors of learners about labels that are too few
PREDICTIONS = ("predict", "predict_proba", "predict_log_proba", "decision_function")
PER_OBJECT = ("sample_weight", "groups")  # parameters of ``fit``, of whatever step, with one entry per object


class _OneWarningEach:
    """A method of ``Pipeline``, where the last step has it, that gives each warning once."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, recipe: Any, owner: Any = None) -> Any:
        if recipe is None:
            return getattr(Pipeline, self.name)
        try:
            method = getattr(super(Recipe, recipe), self.name)
        except AttributeError as error:
            if "proba" not in self.name:
                raise
            raise AttributeError(
                f"This Recipe has no {self.name}, as its last step, {type(recipe.steps[-1][1]).__name__}, has none. If "
                "it comes from a file, that was written before there were probabilities: fit again."
            ) from error

        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not self.name.startswith("fit"):
                with one_warning_each():
                    if self.name in PREDICTIONS and len(args) == 1 and not kwargs and is_plain():
                        return self._direct(recipe, *args)
                    return method(*args, **kwargs)
            if args or "X" in kwargs:
                _check_targets(recipe, *args, **kwargs)
            given = {name: value for name, value in kwargs.items() if value is not None or name not in PER_OBJECT}
            try:
                with one_warning_each(), _routed(given), expecting(effort(recipe) / (1.0 - _learning(recipe))):
                    result = method(*args, **given)
            except ValueError as error:
                if any(said in str(error) for said in LATE):
                    _check_enough(recipe, error, *args, **kwargs)
                raise
            _check_enough(recipe, None, *args, **kwargs)
            return result

        return call

    def _direct(self, recipe: Any, X: Any) -> Any:
        """Return what ``Pipeline`` would, sooner."""
        *steps, (_, learner) = recipe.steps
        try:
            check_is_fitted(learner)
        except NotFittedError:
            check_is_fitted(recipe)  # which asks the same, for all tags, and has the better message
            raise
        return getattr(learner, self.name)(input_of(learner, steps, X))


def _routed(given: Mapping[str, Any]) -> AbstractContextManager[Any]:
    """Return a context in which groups and weights go to all steps that want them, however deep."""
    return config_context(enable_metadata_routing=True) if set(PER_OBJECT) & set(given) else nullcontext()


class Alike(StandardScaler):
    """``StandardScaler`` to which all objects count alike, whatever their weights in the learner."""

    __metadata_request__fit: ClassVar = {"sample_weight": UNUSED}
    __metadata_request__partial_fit: ClassVar = {"sample_weight": UNUSED}


class Recipe(DescribedEstimator, Pipeline):
    """A ``Pipeline`` whose parts read the same objects, with each warning once per call.

    ``fit`` takes ``groups`` and ``sample_weight``, which reach all steps that use them.
    """

    fit = _OneWarningEach()
    fit_transform = _OneWarningEach()
    fit_predict = _OneWarningEach()
    transform = _OneWarningEach()
    predict = _OneWarningEach()
    predict_proba = _OneWarningEach()
    predict_log_proba = _OneWarningEach()
    decision_function = _OneWarningEach()
    score = _OneWarningEach()

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return as_text(self._heading(), self._details())

    def _heading(self) -> str:
        names = ", ".join(name for name, _ in self.steps)
        return f"Recipe({names})"

    def _details(self) -> Rows:
        return [(name, _part(step)) for name, step in self.steps]


def _part(step: Any, depth: int = 0) -> Any:
    """Return what a description says of a step: in a line, or its parts if it is a union or a pipeline."""
    parts = getattr(step, "transformer_list", None) or getattr(step, "steps", None)
    if not parts:
        return repr(step)
    what = f"{type(step).__name__} of {len(parts)} parts"
    if depth == DEPTH:
        return what
    rows: Rows = [("of", what), *((name, _part(part, depth + 1)) for name, part, *_ in parts[:MOST])]
    return [*rows, ("...", f"{len(parts) - MOST} more")] if len(parts) > MOST else rows


def _check_enough(recipe: Recipe, error: Exception | None, X: Any = None, y: Any = None, **params: Any) -> None:
    """Raise for labels of one class, or fewer than there are folds: after the fit, so that bad objects are told first.

    The learners of scikit-learn say it less clearly, or accept it.
    """
    if not is_classifier(recipe) or np.ndim(y) != 1:
        return
    who = f"Recipe of {type(recipe.steps[-1][1]).__name__}"
    kinds, counts = np.unique(np.asarray(y).astype(str), return_counts=True)
    if len(kinds) < 2:
        raise ValueError(
            f"{who} needs objects of at least 2 classes. Got one class only: {str(kinds[0])!r}, for all {counts.sum()} "
            "objects. Give objects of another class too."
        ) from error
    if error is not None and "n_splits=" in str(error):
        raise ValueError(
            f"{who}: there are fewer objects than folds. Got {counts.sum()} objects, at most {counts.max()} of a "
            f"class ({error}). Give more objects, or fewer folds by cv=."
        ) from error


def _learning(recipe: Recipe) -> float:
    """Return the share of a fit that the learner may take, for progress."""
    learner = recipe.steps[-1][1]
    return 0.0 if hasattr(learner, "transform") else 0.6 if hasattr(learner, "param_grid") else 0.1


def _check_targets(recipe: Recipe, X: Any, y: Any = None, **params: Any) -> None:
    """Raise for what steps would say less clearly, or late: labels, weights or groups that are not one per object."""
    who = f"Recipe of {type(recipe.steps[-1][1]).__name__}"
    given = {name: value for name, value in params.items() if name.split("__")[-1] in PER_OBJECT}
    n = None if isinstance(X, str | Mapping) else n_objects(X)  # those are no lists of objects, as steps will say
    for name, value in {"y": y, **given}.items():
        count = n_objects(value)
        if value is not None and n is not None and count != n:
            got = "no list" if count is None else f"{count} entries"
            raise ValueError(
                f"{who}: Found input variables with inconsistent numbers of samples: {[n, count]}. X has {n} objects "
                f"and {name} {got}; expected one entry per object. Give {name}[i] for every X[i], in the same order."
            )
    if is_classifier(recipe):
        _check_labels(y, who, bool(get_tags(recipe).target_tags.multi_output))


def _check_labels(y: Any, who: str, several: bool) -> None:
    """Raise for what is no label of a class, or (unless the learner takes several per object) not one for each."""
    if y is None:
        raise ValueError(f"{who} requires y to be passed, but the target y is None. Pass one label per object.")
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] > 1 and not several:
        raise ValueError(
            f"{who}: y should be a 1d array of labels, one per object, got an array of shape {labels.shape} instead. "
            "Pass one column; for indicators of classes that is y.argmax(axis=1)."
        )
    refuse_odd_labels(y, who)
    if type_of_target(labels).startswith("continuous"):
        odd = next(value for value in labels.ravel().tolist() if value != int(value))
        raise ValueError(
            f"{who}: Unknown label type: continuous. y holds numbers that are not whole, such as {odd}, as for a "
            "regression; expected labels of classes. Name the classes, e.g. by np.digitize(y, bins)."
        )
