"""The pipeline that recipes return: scikit-learn's, with each warning once per call."""

from __future__ import annotations

from functools import wraps
from typing import Any

from sklearn.pipeline import Pipeline

from genkern.validation import one_warning_each


class _OneWarningEach:
    """A method of ``Pipeline``, where the last step has it, that gives each warning once."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, recipe: Any, owner: Any = None) -> Any:
        if recipe is None:
            return getattr(Pipeline, self.name)
        method = getattr(super(Recipe, recipe), self.name)

        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            with one_warning_each():
                return method(*args, **kwargs)

        return call


class Recipe(Pipeline):
    """A ``Pipeline`` whose parts read the same objects, with each warning once per call."""

    fit = _OneWarningEach()
    fit_transform = _OneWarningEach()
    fit_predict = _OneWarningEach()
    transform = _OneWarningEach()
    predict = _OneWarningEach()
    predict_proba = _OneWarningEach()
    predict_log_proba = _OneWarningEach()
    decision_function = _OneWarningEach()
    score = _OneWarningEach()
