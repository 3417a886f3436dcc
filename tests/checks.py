"""What every estimator must do on ragged lists, where scikit-learn's own checks cannot go.

Each check takes a ``Case`` (see ``test_sklearn.py``, which has the table of all estimators) and one kind of objects,
"strings", "windows" (strings of one length), "series", or vectors of "bits", "counts", "positive" numbers, "shares" or
"documents" (counts of one sum).
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from genkern.data.digests import make_key
from genkern.data.representations import Representations


class Case(NamedTuple):
    """One estimator: how to make it, which ragged lists it takes, and how it becomes a classifier in a pipeline.

    ``finish`` holds the steps that follow it, or is a function of it that gives a classifier. ``grid`` is searched
    over in that pipeline. ``expected`` names the checks of scikit-learn that cannot hold, with the reason. ``kernel``
    marks normalised Gram matrices.
    """

    make: Callable[[], Any]
    kinds: tuple[str, ...] = ("strings", "series")
    finish: Any = ()
    grid: Any = None
    expected: dict[str, str] = {}  # noqa: RUF012  (never changed)
    kernel: bool = False


def objects(kind: str, seed: int = 0, count: int = 12) -> tuple[list[Any], np.ndarray]:
    """Return objects of different lengths, of two classes that differ."""
    rng = np.random.default_rng(seed)
    y = np.arange(count) % 2
    lengths = rng.integers(3, 12, count) if kind != "windows" else np.full(count, 6)
    if kind in ("strings", "windows"):
        return ["".join(rng.choice(list("ab"), n, p=[0.3 + 0.4 * c, 0.7 - 0.4 * c])) for n, c in zip(lengths, y)], y
    draw = {
        "bits": lambda n, c: (rng.random((n, 2)) < 0.2 + 0.6 * c).astype(float),
        "counts": lambda n, c: rng.poisson(2 + 6 * c, (n, 2)).astype(float),
        "documents": lambda n, c: rng.multinomial(5, [0.3 + 0.4 * c, 0.7 - 0.4 * c], n).astype(float),
        "positive": lambda n, c: rng.gamma(2.0, 1 + 4 * c, (n, 2)),
        "shares": lambda n, c: rng.dirichlet([2 + 6 * c, 2], n),
    }.get(kind, lambda n, c: rng.standard_normal((n, 2)) + 2 * c)
    return [draw(n, c) for n, c in zip(lengths, y)], y


def fitted(case: Case, kind: str, **params: Any) -> tuple[Any, list[Any]]:
    X, y = objects(kind)
    return case.make().set_params(**params).fit(X, y), X


def outcome(estimator: Any, X: Any) -> Any:
    """Return what a fitted estimator says about objects, one entry per object."""
    if is_classifier(estimator):
        return estimator.predict_proba(X) if hasattr(estimator, "predict_proba") else estimator.decision_function(X)
    if hasattr(estimator, "transform"):
        return estimator.transform(X)
    return estimator.model_.log_prob(X)


def assert_same(first: Any, second: Any) -> None:
    if isinstance(first, list):
        assert len(first) == len(second)
        for one, other in zip(first, second):
            np.testing.assert_array_equal(one, other) if isinstance(one, np.ndarray) else assert_equal(one, other)
        return
    if isinstance(first, Representations):
        assert first.names == second.names
        for name in first.names:
            assert_same(first[name], second[name])
        return
    if scipy.sparse.issparse(first):
        assert scipy.sparse.issparse(second)
        first, second = first.toarray(), second.toarray()
    np.testing.assert_allclose(first, second, rtol=1e-10, atol=1e-10)


def assert_equal(one: Any, other: Any) -> None:
    assert one == other


def pick(values: Any, rows: Any) -> Any:
    return [values[i] for i in rows] if isinstance(values, list) else values[rows]


def content(X: Any) -> str:
    return make_key([x if isinstance(x, str) else np.asarray(x) for x in X])


def check_clone_and_parameters(case: Case, kind: str) -> None:
    estimator = case.make()
    before = make_key(_plain(estimator))
    copied = clone(estimator)
    assert make_key(_plain(copied)) == before
    copied.set_params(**copied.get_params())
    assert make_key(_plain(copied)) == before
    X, y = objects(kind)
    assert estimator.fit(X, y) is estimator
    assert make_key(_plain(estimator)) == before
    assert not any(name.endswith("_") and not name.startswith("_") for name in vars(clone(estimator)))


def _plain(estimator: Any) -> dict[str, Any]:
    """Return all nested parameters whose content can be compared."""
    params = estimator.get_params(deep=True)
    return {k: v if isinstance(v, str | int | float | bool | None) else repr(v) for k, v in params.items()}


def check_input_is_not_changed(case: Case, kind: str) -> None:
    X, y = objects(kind)
    before = content(X)
    estimator = case.make().fit(X, y)
    outcome(estimator, X)
    assert content(X) == before


def check_pickle(case: Case, kind: str) -> None:
    estimator, X = fitted(case, kind)
    assert_same(outcome(pickle.loads(pickle.dumps(estimator)), X), outcome(estimator, X))
    assert_same(outcome(copy.deepcopy(estimator), X), outcome(estimator, X))


def check_one_row_per_object(case: Case, kind: str) -> None:
    estimator, X = fitted(case, kind)
    result = outcome(estimator, X[:5] + X[:1])
    assert (len(result) if isinstance(result, list) else result.shape[0]) == 6
    assert_same(pick(result, [0]), pick(result, [5]))


def check_order_does_not_matter(case: Case, kind: str) -> None:
    estimator, X = fitted(case, kind)
    result = outcome(estimator, X)
    order = np.random.default_rng(1).permutation(len(X))
    assert_same(outcome(estimator, [X[i] for i in order]), pick(result, order))


def check_neighbours_do_not_matter(case: Case, kind: str) -> None:
    estimator, X = fitted(case, kind)
    result = outcome(estimator, X)
    for i in (0, 7):
        assert_same(outcome(estimator, [X[i]]), pick(result, [i]))


def check_width_and_names(case: Case, kind: str) -> None:
    estimator, X = fitted(case, kind)
    result = outcome(estimator, X)
    table = result[0] if isinstance(result, list) else result  # or channels of a series
    if not isinstance(table, str):
        assert estimator.n_features_out_ == table.shape[1]
        assert estimator.get_feature_names_out().shape == (table.shape[1],)


def check_fit_transform(case: Case, kind: str) -> None:
    estimator, X = fitted(case, kind)
    y = objects(kind)[1]
    assert_same(case.make().fit_transform(X, y), estimator.transform(X))


def check_threads_do_not_matter(case: Case, kind: str) -> None:
    single, X = fitted(case, kind)
    double, _ = fitted(case, kind, **dict.fromkeys(threads(case), 2))
    assert_same(outcome(double, X), outcome(single, X))


def check_refit_forgets(case: Case, kind: str) -> None:
    X, y = objects(kind)
    other, labels = objects(kind, seed=5, count=8)
    again = case.make().fit(other, labels)
    outcome(again, other)
    assert_same(outcome(again.fit(X, y), X), outcome(case.make().fit(X, y), X))


def check_array_objects_and_width(case: Case, kind: str) -> None:
    """An object array is the same list; a list may follow a 2-D array of another width."""
    estimator, X = fitted(case, kind)
    boxed = np.empty(len(X), dtype=object)
    boxed[:] = X
    assert_same(outcome(estimator, boxed), outcome(estimator, X))
    assert not hasattr(estimator, "n_features_in_")


def check_unfitted_raises(case: Case, kind: str) -> None:
    with pytest.raises(NotFittedError):
        outcome(case.make(), objects(kind)[0])
    if named(case):
        with pytest.raises(NotFittedError):
            case.make().get_feature_names_out()


def check_malformed_raises(case: Case, kind: str) -> None:
    X, y = objects(kind)
    empty = "" if kind in ("strings", "windows") else np.zeros((0, 2))
    with pytest.raises(ValueError, match="object 3 "):
        case.make().fit([*X[:3], empty, *X[4:]], y)
    with pytest.raises(ValueError, match="0 sample"):
        case.make().fit([], [])
    with pytest.raises(TypeError):
        case.make().fit([*X[:3], None, *X[4:]], y)
    estimator, _ = fitted(case, kind)
    with pytest.raises(ValueError, match="object 1 "):
        outcome(estimator, [X[0], empty])


def check_pipeline_and_grid_search(case: Case, kind: str) -> None:
    X, y = objects(kind, count=24)
    steps = case.finish
    learner = steps(case.make()) if callable(steps) else Pipeline([("first", case.make()), *steps])
    search = GridSearchCV(learner, case.grid, cv=3, error_score="raise").fit(X, y)
    assert search.predict(X).shape == y.shape
    assert search.best_score_ > 0.6  # the classes differ plainly


def check_kernel_matrix(case: Case, kind: str) -> None:
    estimator, X = fitted(case, kind)
    K = estimator.transform(X)
    np.testing.assert_allclose(K, K.T, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.diag(K), 1.0, rtol=0, atol=1e-12)
    assert np.linalg.eigvalsh((K + K.T) / 2).min() > -1e-10
    new, _ = objects(kind, seed=9, count=5)
    assert estimator.transform(new).shape == (5, len(X))


def threads(case: Case) -> list[str]:
    """Return the parameters that say how many threads an estimator may use."""
    return [name for name in case.make().get_params() if name.split("__")[-1] == "n_jobs"]


def named(case: Case) -> bool:
    """Say whether an estimator, no pipeline of several, has names of features."""
    return hasattr(case.make(), "get_feature_names_out") and not isinstance(case.make(), Pipeline)


def applies(check: Callable[..., None], case: Case) -> bool:
    """Say whether an estimator has what a check looks at."""
    estimator = case.make()
    has = {
        check_fit_transform: hasattr(estimator, "fit_transform"),
        check_threads_do_not_matter: bool(threads(case)),
        check_width_and_names: named(case),
        check_unfitted_raises: hasattr(estimator, "transform") or is_classifier(estimator),
        check_kernel_matrix: case.kernel,
    }
    return has.get(check, True)


CHECKS = [check for name, check in sorted(globals().items()) if name.startswith("check_")]
