"""Every public estimator on hostile objects: valid models and finite features, or an error that says who and what."""

from __future__ import annotations

import numpy as np
import pytest
from checks import objects, outcome
from fuzz import INDEX, assert_valid, examples, hostile, labels, models_in, numbers, one, put, rows, safely
from hypothesis import given
from hypothesis import strategies as st
from test_sklearn import CASES

from genkern import CentreSeries, Channels, ScaleSeries, Turns, Windows

LISTS = [(name, kind) for name, case in CASES.items() for kind in case.kinds]
SAME_POINTS = (CentreSeries, Channels, ScaleSeries, Turns, Windows)  # of which missing ones stay missing
TABLES = [name for name, case in CASES.items() if not case.kinds]


def check(case, X, y, others):
    """Fit and apply an estimator to what it was fitted to, and to other objects."""
    estimator = case.make()
    with safely():
        estimator.fit(X, y)
        for model in models_in(estimator):
            assert_valid(model)
        assert_sound(estimator, X)
        assert_sound(estimator, others)


def assert_sound(estimator, X):
    """Check what an estimator says of objects: finite numbers; logarithms of zero, and missing points, where due."""
    found = outcome(estimator, X)
    values = numbers(found)
    if hasattr(estimator, "model_") and not hasattr(estimator, "transform"):
        values = values[~np.isneginf(values)]  # log-probabilities of what is impossible
    if isinstance(estimator, SAME_POINTS) and np.isnan(numbers([np.asarray(x) for x in X])).any():
        values = values[~np.isnan(values)]
    assert np.isfinite(values).all(), f"{values[~np.isfinite(values)][:3]} among the results"
    for model in models_in(found):
        assert_valid(model)


@pytest.mark.parametrize(("name", "kind"), LISTS)
@examples(few=3)
@given(data=st.data())
def test_lists(name, kind, data):
    X = data.draw(hostile(kind))
    check(CASES[name], X, data.draw(labels(len(X))), data.draw(hostile(kind)))


@pytest.mark.parametrize("name", TABLES)
@examples(few=2)
@given(data=st.data())
def test_tables(name, data):
    y = np.arange(12) % 2
    X = np.abs(np.random.default_rng(0).standard_normal((12, 4)) + 2 * y[:, None])
    if "precomputed" in repr(CASES[name].make().get_params()):
        X = X @ X.T
    X = data.draw(rows(X))
    check(CASES[name], X, y, X[::-1])


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, kind in LISTS if kind not in ("strings", "windows")])
@examples(few=1)
@given(i=INDEX, bad=st.sampled_from([np.inf, -np.inf]))
def test_errors_name_the_object(name, kind, i, bad):
    X, y = objects(kind)
    wrong = one(i, put(np.s_[-1, 0], bad))(X)
    with pytest.raises(ValueError, match=rf"object {i}, position {len(X[i]) - 1}, column 0 is {bad}"):
        CASES[name].make().fit(wrong, y)
