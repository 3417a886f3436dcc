"""What predictions cost: the time of one object, and the size of a model on disk."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from genkern.saving.files import save
from genkern.validation import check_int


class Latency(NamedTuple):
    """How long predictions of one object take.

    Parameters
    ----------
    median, high : float
        Seconds of half, and of 95 %, of the calls.
    calls : int
        Number of calls.
    """

    median: float
    high: float
    calls: int


def latency(estimator: Any, X: Any, *, calls: int = 50) -> Latency:
    """Measure how long a fitted estimator takes to predict objects one by one.

    Parameters
    ----------
    estimator : object with ``predict``
        Fitted.
    X : list
        Objects, taken in turn; the first call, which may compile, does not count.
    calls : int, default=50
        Number of calls.

    Returns
    -------
    latency : Latency
        Median and 95th percentile of the time of a call.

    Examples
    --------
    >>> from genkern import recipes
    >>> from genkern.evaluation import latency
    >>> classifier = recipes.spectrum_svm(2).fit(["abab", "baba", "aabb", "bbaa"], [0, 0, 1, 1])
    >>> latency(classifier, ["abba"], calls=5).median < 1.0
    True
    """
    check_int(calls, "calls", "latency", 1)
    if not len(X):
        raise ValueError("latency: objects are needed, one at least. Got none.")
    estimator.predict(X[:1])
    took = []
    for call in range(calls):
        one = X[call % len(X) : call % len(X) + 1]
        began = time.perf_counter()
        estimator.predict(one)
        took.append(time.perf_counter() - began)
    return Latency(float(np.median(took)), float(np.quantile(took, 0.95)), calls)


def latency_scorer(estimator: Any, X: Any, y: Any = None) -> float:
    """Return minus the median seconds of a prediction of one object: a scorer, as ``scoring=`` of scikit-learn takes.

    Parameters
    ----------
    estimator : object with ``predict``
        Fitted.
    X : list
        Objects.
    y : object, optional
        Ignored.
    """
    return -latency(estimator, X).median


def size_scorer(estimator: Any, X: Any = None, y: Any = None) -> float:
    """Return minus the bytes of the file of ``genkern.save``: a scorer, as ``scoring=`` of scikit-learn takes.

    Parameters
    ----------
    estimator : estimator
        Fitted, of those that ``genkern.save`` takes.
    X, y : object, optional
        Ignored.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.gk")
        save(estimator, path)
        return -float(path.stat().st_size)
