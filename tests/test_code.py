"""Classes that were written anew under their old name, as in a notebook: nothing of the old one is left."""

from __future__ import annotations

import copy
import subprocess
import sys
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
import pytest

from genkern import Gram, MeanMap, Sampled, adapt
from genkern.data.code import code_of
from genkern.data.digests import state_key

WALK = """
SCALE = {scale}

def spread(x):
    return {factor} * x

class Walk:
    {comment}
    unit = {unit}

    def __init__(self, drift):
        self.drift = drift

    def log_prob(self, x):
        return float(-0.5 * ((x - self.drift) ** 2).sum())

    def sample(self, n, rng):
        return [spread(SCALE * self.unit * rng.normal(self.drift, 1.0, {size})) for _ in range(n)]
"""
TEXT = {"scale": 1.0, "factor": 1.0, "unit": 1.0, "size": 5, "comment": "# one"}


def written(**changes: Any) -> type:
    """Return the class of a text, as a cell of a notebook makes it: each time in the same place."""
    place: dict[str, Any] = {"__name__": "__main__"}
    exec(WALK.format(**TEXT | changes), place)
    return place["Walk"]


CHANGES = [{"scale": 3.0}, {"factor": 3.0}, {"unit": 3.0}, {"size": 9}]


@pytest.mark.parametrize("change", CHANGES, ids=[next(iter(change)) for change in CHANGES])
def test_kernels_of_a_class_that_changed_are_its_own(change: dict[str, Any]) -> None:
    """The method itself, a function that it calls, a global constant, an attribute of the class."""
    before, after = ([adapt(kind(drift)) for drift in (0.0, 1.0)] for kind in (written(), written(**change)))
    old, new = (Gram(MeanMap(0.1)).fit_transform(models) for models in (before, after))
    assert np.abs(new - old).max() > 0.01
    assert before[0] != after[0]
    assert Sampled(before[0]) != Sampled(after[0])
    draws = Sampled(written(**change)(0.0)).draws()
    expected = written(**change)(0.0).sample(
        1000, np.random.default_rng(int(Sampled(written()(0.0))._key(False)[:16], 16))
    )
    np.testing.assert_array_equal(draws, expected)


def test_the_same_text_is_the_same_class() -> None:
    assert code_of(written()) == code_of(written(comment="# two\n\n    # and three"))
    assert adapt(written()(0.5)) == adapt(written(comment="# two")(0.5))
    assert adapt(written()(0.5)) != adapt(written()(0.6))
    assert state_key(written()(0.5), code=False) == state_key(written(size=9)(0.5), code=False)


def test_classes_of_python_and_of_packages_count_by_their_names() -> None:
    assert code_of(dict) == "builtins.dict"
    assert code_of(np.random.Generator) == "numpy.random._generator.Generator"
    assert code_of(MeanMap).startswith("genkern.")


def decorated(other: int) -> type:
    """Return a class whose member of a number is another than usual."""
    text = f"""
from functools import cached_property, lru_cache, partial
class Own:
    @staticmethod
    def one(): return {other == 1}
    @property
    def two(self): return {other == 2}
    @classmethod
    def three(cls): return {other == 3}
    @cached_property
    def four(self): return {other == 4}
    @lru_cache
    def five(self): return {other == 5}
    six = partial(pow, {other == 6})
    def seven(self, default={other == 7}): return default
"""
    place: dict[str, Any] = {"__name__": "__main__"}
    exec(text, place)
    return place["Own"]


def test_what_classes_hold() -> None:
    """Decorated methods, properties, closures, tables, bases and classes that name themselves."""

    def made(number: float) -> type:
        class Base:
            table: dict[str, Any] = {"a": [1, {2, 3}], "b": None}  # noqa: RUF012
            table["itself"] = table
            raised = partial(pow, number)

            @staticmethod
            def one() -> float:
                return 1.0

            @cached_property
            def four(self) -> float:
                return 2.0

            @property
            def two(self) -> Any:
                return Own

        class Own(Base):
            @classmethod
            def three(cls) -> Any:
                return cls.one(), later

            @lru_cache  # noqa: B019
            def five(self) -> float:
                return number

        later = 1.0
        return Own

    first = code_of(kind := made(1.0))
    copy.deepcopy(kind())  # by which Python notes something in the class
    assert first == code_of(kind) == code_of(made(1.0))
    assert code_of(made(1.0)) != code_of(made(2.0))
    texts = {"static": 1, "property": 2, "class": 3, "cached property": 4, "cached": 5, "partial": 6, "default": 7}
    kinds = [code_of(kind) for kind in map(decorated, [0, *texts.values()])]
    for name, other in zip(texts, kinds[1:]):
        assert kinds[0] != other, name


OURS = """
from genkern import Gaussian
class Law(Gaussian):
    def log_prob(self, X):
        return {factor} * super().log_prob(X)
"""


def test_values_on_our_classes_too() -> None:
    """By which draws are kept."""
    places: list[dict[str, Any]] = [{"__name__": "__main__"} for _ in range(3)]
    for place, factor in zip(places, (1.0, 1.0, 2.0)):
        exec(OURS.format(factor=factor), place)
    keys = [Sampled(place["Law"]([0.0], [1.0])).digest for place in places]
    assert keys[0] == keys[1] != keys[2]


def test_keys_are_the_same_in_every_process() -> None:
    text = "from test_code import state_key, written; print(state_key(written()(0.5)))"
    run = [sys.executable, "-c", text]
    found = {
        subprocess.run(run, capture_output=True, text=True, check=True, cwd=__file__.rsplit("/", 1)[0]).stdout.strip()
        for _ in range(2)
    }
    assert found == {state_key(written()(0.5))}
