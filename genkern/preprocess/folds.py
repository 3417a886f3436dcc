"""Folds that keep groups whole."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import check_consistent_length, column_or_1d

from genkern.validation import check_int, warn


def members(codes: NDArray[np.int64], groups: Any) -> NDArray[np.int64]:
    """Return how many objects, or where there are groups how many of these, each class has."""
    if groups is None:
        return np.bincount(codes)
    return np.array([len(np.unique(groups[codes == code])) for code in range(codes.max() + 1)])


def make_folds(cv: Any, labels: NDArray[Any], groups: Any, who: str) -> Any:
    """Return a splitter as ``check_cv`` does, but where there are groups, stratified folds keep them whole.

    They are then at most as many as the class with the fewest groups has. Other splitters are taken as they are.
    """
    plain = isinstance(cv, numbers.Integral) and not isinstance(cv, bool)
    if groups is None or not (plain or type(cv) is StratifiedKFold):
        return check_cv(cv, labels, classifier=True)
    owners = column_or_1d(groups)
    check_consistent_length(labels, owners)
    classes, codes = np.unique(labels, return_inverse=True)
    counts = members(codes, owners)
    if counts.min() < 2:
        raise ValueError(
            f"{who}: class {classes.tolist()[counts.argmin()]!r} has 1 group; expected at least 2, one to learn from "
            "and one to leave out. Leave groups out, or give more of that class."
        )
    if plain:
        return StratifiedGroupKFold(min(check_int(cv, "cv", who, 2), int(counts.min())))
    return StratifiedGroupKFold(min(cv.n_splits, int(counts.min())), shuffle=cv.shuffle, random_state=cv.random_state)


def parts_of_folds(splitter: Any, labels: Any, groups: Any, who: str) -> list[tuple[Any, Any]]:
    """Return the training and test parts of folds; say where there are too few objects for so many, or of a class."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            parts = list(splitter.split(np.zeros(len(labels)), labels, groups))
    except ValueError as error:
        folds, counts = getattr(splitter, "n_splits", None), np.unique(np.asarray(labels), return_counts=True)[1]
        if folds is None or counts.max() >= folds:
            raise
        raise ValueError(
            f"{who}: {folds} folds need {folds} objects of a class at least. Got {len(labels)} objects, at most "
            f"{counts.max()} of a class. Give more objects, or, where there is cv=, fewer folds."
        ) from error
    for one in caught:
        if "least populated class" in str(one.message):
            _warn_of_rare(np.asarray(labels), splitter.n_splits, who)
        else:
            warnings.warn(one.message, stacklevel=2)
    return parts


def _warn_of_rare(labels: NDArray[Any], folds: int, who: str) -> None:
    """Warn of the class with the fewest objects, which scikit-learn does not name."""
    kinds, counts = np.unique(labels, return_counts=True)
    rare, count = kinds.tolist()[counts.argmin()], int(counts.min())
    without = ", and one training part" if count == 1 else ""
    warn(
        f"{who}: class {rare!r} has {count} object{'s' if count > 1 else ''}, fewer than the {folds} folds: some test "
        f"parts have none of it{without}. Give more objects of it, or leave the class out.",
        UserWarning,
        [("rare class", rare)],
    )
