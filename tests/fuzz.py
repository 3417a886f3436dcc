"""Hostile objects and what must hold whatever they are: finite numbers and valid models, or an error that says who.

The suite runs a few examples, the same ones every time; `make fuzz` sets ``GENKERN_FUZZ``, how many times as many it
runs, random ones.
"""

from __future__ import annotations

import os
import re
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from checks import objects
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator

import genkern
from genkern import Model
from genkern.data.representations import Representations
from genkern.data.serialize import dumps, loads
from genkern.models.value import Value

MANY = int(os.environ.get("GENKERN_FUZZ", "0"))
HOME = str(Path(genkern.__file__).parent)
INDEX = st.integers(0, 11)
POWERS = st.sampled_from([-300, -200, -160, -154, -100, -76, -30, -8, -1, 0, 1, 8, 30, 74, 76, 100, 154, 160, 200, 300])

Objects = list[Any]
Trouble = Callable[[Objects], Objects]


def examples(few: int) -> Any:
    """Return the settings of a property: few fixed examples in the suite, many random ones in `make fuzz`."""
    return settings(
        max_examples=few * (MANY or 1),
        derandomize=not MANY,
        database=None,
        print_blob=True,
        deadline=timedelta(minutes=2) if MANY else None,
        suppress_health_check=list(HealthCheck),
    )


# --- hostile objects: what a list of ordinary ones becomes


def each(change: Callable[[Any], Any]) -> Trouble:
    return lambda X: [change(x) for x in X]


def one(i: int, change: Callable[[Any], Any]) -> Trouble:
    return lambda X: [change(x) if k == i % len(X) else x for k, x in enumerate(X)]


def entries(change: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], np.ndarray]:
    """Return a change of a copy in place."""

    def changed(x: np.ndarray) -> np.ndarray:
        copy = np.array(x, float)
        change(copy)
        return copy

    return changed


def put(where: Any, value: float) -> Callable[[np.ndarray], np.ndarray]:
    return entries(lambda x: x.__setitem__(where, value))


def read_only(x: np.ndarray) -> np.ndarray:
    copy = np.array(x)
    copy.setflags(write=False)
    return copy


LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "float32": lambda x: x.astype(np.float32),
    "float16": lambda x: x.astype(np.float16),
    "int64": lambda x: np.round(x).astype(np.int64),
    "int8": lambda x: np.round(x).astype(np.int8),
    "bool": lambda x: x > 1.0,
    "big-endian": lambda x: x.astype(">f8"),
    "reversed": lambda x: x[::-1],
    "reversed columns": lambda x: x[:, ::-1],
    "every other": lambda x: np.repeat(x, 2, axis=0)[::2],
    "Fortran": np.asfortranarray,
    "read-only": read_only,
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    "list": lambda x: x.tolist(),
}
VALUES = st.sampled_from([np.nan, 0.0, -0.0, 1.0, -1.0, 5e-324, 2.3e-308, 1e-300, 1e74, -1e74, 1e300, np.inf, -np.inf])
PLACES = st.sampled_from([np.s_[:], np.s_[0], np.s_[-1], np.s_[:, 0], np.s_[:, -1], np.s_[::2], np.s_[0, 0]])


def scaled(power: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(x: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(x, float) * 10.0**power

    return change


def shifted(power: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.asarray(x, float) + 10.0**power


def shrunk(power: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return a change to a tiny spread around one: what is left is rounded."""
    return lambda x: 1.0 + 10.0 ** min(power, -1) * np.asarray(x, float)


def column(change: Callable[[np.ndarray], Any], k: int) -> Callable[[np.ndarray], np.ndarray]:
    return entries(lambda x: x.__setitem__(np.s_[:, k], change(x[:, k])))


numbers_changed = st.one_of(
    POWERS.map(scaled),
    POWERS.map(shifted),
    POWERS.map(shrunk),
    st.builds(column, POWERS.map(scaled), st.sampled_from([0, -1])),
    st.builds(column, POWERS.map(shifted), st.sampled_from([0, -1])),
    st.builds(put, PLACES, VALUES),
    st.just(np.round),
    st.just(lambda x: np.abs(np.asarray(x, float))),
)
shorter = st.sampled_from([lambda x: x[:1], lambda x: x[:2], lambda x: x[-1:]])
more: list[Trouble] = [
    lambda X: X[:1] * len(X),
    lambda X: [x for x in X for _ in (0, 1)][: len(X)],
    lambda X: X[:1],
    lambda X: X[:2],
    lambda X: X[::-1],
]


def repeated(x: Any, count: int = 200) -> Any:
    """Return a long object: the observations of x, over and over."""
    return x * (count // len(x) + 1) if isinstance(x, str) else np.resize(x, (count, *np.shape(x)[1:]))


lists = st.one_of(st.sampled_from(more), st.builds(one, INDEX, st.just(repeated)), st.builds(one, INDEX, shorter))
numeric = st.one_of(
    numbers_changed.map(each),
    st.builds(one, INDEX, numbers_changed),
    shorter.map(each),
    numbers_changed.map(each),
    lists,
)
layout = st.one_of(st.just(lambda X: X), st.sampled_from(list(LAYOUTS.values())).map(each))


def in_numbers(X: Objects) -> Objects:
    return [np.array([ord(letter) for letter in x]) for x in X]


SYMBOLS: dict[str, Callable[[Objects], Any]] = {
    "constant": each(lambda x: "a" * len(x)),
    "constant each": lambda X: ["ab"[k % 2] * len(x) for k, x in enumerate(X)],
    "another letter": one(3, lambda x: "z" + x[1:]),
    "gaps": each(lambda x: "-" * len(x)),
    "a gap": one(2, lambda x: "?" + x[1:]),
    "tokens": each(list),
    "missing tokens": each(lambda x: [None, *x[1:]]),
    "numbers": in_numbers,
    "small numbers": lambda X: [x.astype(np.int8) for x in in_numbers(X)],
    "floats": lambda X: [x.astype(float) for x in in_numbers(X)],
    "views": lambda X: [np.repeat(x, 2)[::-2] for x in in_numbers(X)],
    "read-only": lambda X: [read_only(x) for x in in_numbers(X)],
    "thousands": lambda X: [(np.arange(len(x)) + 400 * k) for k, x in enumerate(X)],
    "all different": lambda X: [np.arange(sum(map(len, X[:k])), sum(map(len, X[: k + 1]))) for k in range(len(X))],
    "large numbers": lambda X: [10**15 * x for x in in_numbers(X)],
    "bytes": each(lambda x: np.array(list(x), dtype="S1")),
    "letters": each(lambda x: np.array(list(x))),
}
CODES: list[Callable[[np.ndarray], Any]] = [
    lambda x: np.asarray(x, np.int8),
    lambda x: np.asarray(x, float),
    lambda x: np.where(np.arange(len(x)) == 0, np.nan, x),
    lambda x: np.full(len(x), np.nan),
    lambda x: np.repeat(x, 2)[::-2],
    lambda x: np.asarray(x) - 5,
    lambda x: np.asarray(x) + 10**6,
    np.zeros_like,
    list,
    lambda x: "ab",
    lambda x: np.asarray(x, float) * 1e300,
    read_only,
    repeated,
]
symbolic = st.one_of(st.sampled_from(list(SYMBOLS.values())), shorter.map(each), lists)


@st.composite
def hostile(draw: Any, kind: str, X: Objects | None = None) -> Objects:
    """Draw a list of objects of a kind (see ``checks.objects``), made hostile in up to three ways."""
    found = objects(kind, draw(st.integers(0, 3)), draw(st.sampled_from([12, 6, 4])))[0] if X is None else list(X)
    if all(np.ndim(x) == 1 for x in found):
        change = st.one_of(
            st.builds(one, INDEX, st.sampled_from(CODES)), st.sampled_from(CODES[:-1]).map(each), shorter.map(each)
        )
        return draw(change)(found)
    symbols = all(isinstance(x, str) for x in found)
    for change in draw(st.lists(symbolic if symbols else numeric, min_size=1, max_size=3)):
        if symbols and not all(isinstance(x, str) for x in found):
            break
        found = change(found)
    if not symbols:
        with warnings.catch_warnings():  # casts of what does not fit
            warnings.simplefilter("ignore")
            found = draw(layout)(found)
    note(f"X = {found!r:.2000}")
    return found


TABLE_LAYOUTS = [LAYOUTS[name] for name in ("float32", "float16", "reversed columns", "Fortran", "read-only", "list")]


@st.composite
def rows(draw: Any, X: np.ndarray) -> np.ndarray:
    """Draw a matrix of features, made hostile: its layout, some of its columns and rows, or all of it."""
    for change in draw(st.lists(numbers_changed, min_size=1, max_size=2)):
        X = np.asarray(change(X), float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X = np.asarray(draw(st.sampled_from(TABLE_LAYOUTS))(X))
    note(f"X = {X!r:.2000}")
    return X[draw(st.sampled_from([np.s_[:], np.s_[:], np.s_[::-1], np.zeros(len(X), int)]))]


@st.composite
def labels(draw: Any, n: int) -> np.ndarray:
    """Draw labels of n objects: of two classes, one alone in a class, all in one, each in its own."""
    kind = draw(st.sampled_from(["two", "two", "two", "single", "one", "each"]))
    made = {"two": np.arange(n) % 2, "single": np.arange(n) == 0, "one": np.zeros(n), "each": np.arange(n)}
    return made[kind].astype(int)


# --- what must hold


def numbers(result: Any) -> np.ndarray:
    """Return all numbers of what an estimator gives: arrays, lists of arrays, models, or several of them."""
    if isinstance(result, Representations):
        return np.concatenate([numbers(result[name]) for name in result.names])
    if isinstance(result, dict):
        return numbers(list(result.values()))
    if isinstance(result, list | tuple):
        return np.concatenate([np.zeros(0), *(numbers(part) for part in result)])
    if hasattr(result, "_fields"):
        return numbers([getattr(result, name) for name in result._fields])
    if sparse.issparse(result):
        return np.asarray(result.data, float)
    numeric = isinstance(result, np.ndarray) and result.dtype.kind in "fiub"
    return np.asarray(result, float).ravel() if numeric or isinstance(result, float) else np.zeros(0)


def models_in(thing: Any) -> Iterator[Model]:
    """Yield the models that an estimator has fitted or given."""
    if isinstance(thing, Model):
        yield thing
    elif isinstance(thing, list | tuple):
        for part in thing:
            yield from models_in(part)
    elif isinstance(thing, dict):
        yield from models_in(list(thing.values()))
    elif isinstance(thing, Representations):
        yield from models_in([thing[name] for name in thing.names])
    elif isinstance(thing, BaseEstimator):
        yield from models_in([value for name, value in vars(thing).items() if name.endswith("_")])


def assert_finite(result: Any) -> None:
    found = numbers(result)
    assert np.isfinite(found).all(), f"{found[~np.isfinite(found)][:3]} among the results"


def assert_valid(model: Model) -> None:
    """Check that a model is finite, and passes all checks of its constructor as it is."""
    assert_finite(model)
    if isinstance(model, Value):
        assert loads(dumps(model)) == model


WHO = re.compile(r"^(The '\w+' parameter of )?'?[A-Za-z_][\w.]*'?( needs|[(:'\].]| [a-z]).*")


def assert_documented(error: ValueError | TypeError) -> None:
    """Check that an error is raised by our code, not below it, and says who and what is expected."""
    assert type(error).__module__.split(".")[0] in ("builtins", "genkern", "sklearn"), type(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    if "sklearn/utils/validation" in frame.filename.replace(os.sep, "/"):
        return  # scikit-learn's checks of tables, which name the estimator
    assert frame.filename.startswith(HOME), f"raised in {frame.filename}:{frame.lineno}: {error}"
    text = str(error)
    assert len(text) > 30, text
    assert WHO.match(text.replace("\n", " ")), text


@contextmanager
def safely(refusable: bool = True) -> Iterator[None]:
    """Fail unless what is inside ends well or in a documented error, without a warning that is not ours."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            yield
        except (ValueError, TypeError) as error:
            if not refusable:
                raise
            try:
                assert_documented(error)
            except AssertionError as undocumented:
                raise undocumented from error
            note(f"refused: {error}")
    foreign = [w for w in said if not issubclass(w.category, UserWarning)]
    assert not foreign, (
        f"{foreign[0].category.__name__}: {foreign[0].message} ({foreign[0].filename}:{foreign[0].lineno})"
    )
