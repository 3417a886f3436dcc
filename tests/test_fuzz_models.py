"""Models of hostile parameters on hostile objects: no NaN, or an error that says who and what."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from fuzz import POWERS, assert_finite, assert_valid, examples, hostile, safely
from hypothesis import given, note
from hypothesis import strategies as st

import genkern
from genkern import Model, SiteModel
from genkern.models.value import Value
from tests.cases_zoo import ZOO, draw

# A base class, results of other models, and what is compared by kernels only: see test_fuzz_kernels.py.
BEYOND = {"Model", "Posterior", "Sampled", "NaturalFamily", "SparseMultinomial"}


@cache
def every(name: str) -> tuple[Model, list[Any]]:
    """Return a model and objects drawn from it."""
    return ZOO[name], draw(ZOO[name])


def test_every_public_model_is_in_the_table() -> None:
    public = {name for name in genkern.__all__ if isinstance(getattr(genkern, name), type)}
    models = {name for name in public if issubclass(getattr(genkern, name), Model)}
    known = {base.__name__ for model in ZOO.values() for base in type(model).__mro__}
    assert models - BEYOND <= known


def probabilities(table: np.ndarray) -> bool:
    return bool(table.ndim and (table >= 0).all() and np.allclose(table.sum(axis=-1), 1.0))


@st.composite
def altered(draw: Any, model: Any) -> Any:
    """Draw a model of which some parameters are made huge, tiny, equal or zero, by its constructor."""
    fields = dict(model._to_fields())
    for name in draw(st.lists(st.sampled_from(sorted(fields)), max_size=2, unique=True)):
        fields[name] = draw(changed(fields[name]))
    note(f"{type(model).__name__}: {fields!r}")
    return type(model)._from_fields(fields)


@st.composite
def changed(draw: Any, value: Any) -> Any:
    """Draw another value of a field."""
    if isinstance(value, Value):
        return draw(altered(value))
    if isinstance(value, tuple) and value and not hasattr(value, "_fields"):
        k = draw(st.integers(0, len(value) - 1))
        return (*value[:k], draw(changed(value[k])), *value[k + 1 :])
    if isinstance(value, dict) and value:
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: draw(changed(value[key]))}
    if not isinstance(value, np.ndarray | float) or np.asarray(value).dtype.kind != "f":
        return value
    table = np.array(value, float)
    where = draw(st.sampled_from([np.s_[...], np.s_[..., 0], np.s_[..., -1:], np.s_[:1]])) if table.ndim else ...
    number = 10.0 ** draw(POWERS)
    before = table[where] if probabilities(np.asarray(value)) else draw(st.sampled_from([table[where], 0.0]))
    how = draw(st.sampled_from(["times", "times", "plus", "minus", "equal", "zero"]))
    table[where] = {
        "times": before * number,
        "plus": before + number,
        "minus": before - number,
        "equal": number,
        "zero": 0.0,
    }[how]
    if probabilities(np.asarray(value)) and (table >= 0).all() and (table.sum(axis=-1) > 0).all():
        table /= table.max(axis=-1, keepdims=True)
        table /= table.sum(axis=-1, keepdims=True)
    return table if isinstance(value, np.ndarray) else float(table)


def check(model: Model, X: list[Any]) -> None:
    """Ask a model for all that it says of objects."""
    with safely():
        found = model.log_prob(X)
        assert found.shape == (len(X),)
        assert not np.isnan(found).any()
        assert (found < np.inf).all()
        possible = [x for x, value in zip(X, found) if value > -np.inf]
        if not possible:
            return
        statistics = model.statistics(possible)
        assert_finite(statistics.blocks)
        assert_finite(model.gradient(statistics))
        if model.state_sizes:
            posteriors = model.state_posteriors(model.pack(possible))
            assert_finite(posteriors)
            assert posteriors.min() >= 0.0


@pytest.mark.parametrize("name", ZOO)
@examples(few=4)
@given(data=st.data())
def test_objects(name: str, data: Any) -> None:
    model, X = every(name)
    check(model, data.draw(hostile("", X)))


@pytest.mark.parametrize("name", ZOO)
@examples(few=4)
@given(data=st.data())
def test_parameters(name: str, data: Any) -> None:
    model, X = every(name)
    with safely():
        other = data.draw(altered(model))
        assert_valid(other)
        check(other, X)
        with safely():
            information = [block for _, block in other.information([3])]
            assert_finite(information)
        own = other.sample(2, rng=0) if isinstance(other, SiteModel) else other.sample(2, length=2, rng=0)
        assert not np.isnan(other.log_prob(own)).any()


@pytest.mark.parametrize("coordinates", ["softmax", "ratio", "sqrt", "raw"])
@pytest.mark.parametrize("name", ZOO)
def test_coordinates_that_give_no_model_are_refused(name: str, coordinates: str) -> None:
    model, _ = every(name)
    one = model[(0,) * len(model.shape)] if model.shape else model
    vector = one.parameters(coordinates)
    for place in {0, len(vector) // 2, len(vector) - 1}:
        for wrong in (np.nan, np.inf, 1e300):
            moved = np.array(vector)
            moved[place] = wrong
            try:
                found = one.with_parameters(moved, coordinates)
            except (TypeError, ValueError):
                continue
            assert np.isfinite(found.parameters("raw")).all()
