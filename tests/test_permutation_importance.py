"""Exchanging channels between objects: what is exchanged, and who loses by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from genkern import permutation_importance, recipes
from genkern.explanation.importance import _resampled

RNG = np.random.default_rng(3)
Y = np.arange(24) % 2
SERIES = [RNG.normal(size=(RNG.integers(15, 30), 3)) + np.array([0.0, 0.0, 4.0 * label]) for label in Y]


class Recorder:
    """A classifier that keeps what it is asked, and knows the class by the mean of the third channel."""

    _estimator_type = "classifier"

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def fit(self, X: Any, y: Any) -> Recorder:
        return self

    def predict(self, X: Any) -> Any:
        self.asked.append(X)
        return np.array([int(np.nanmean(x[:, 2]) > 2.0) for x in X])

    def score(self, X: Any, y: Any) -> float:
        return float(np.mean(self.predict(X) == y))


def test_only_the_channel_that_carries_the_class_is_missed() -> None:
    found = permutation_importance(Recorder(), SERIES, Y, n_repeats=20, random_state=0)
    assert found.names == ["x0", "x1", "x2"]
    assert found.score == 1.0
    assert_array_equal(found.means[:2], 0.0)
    # The class of an exchanged object is another one with probability 12/23 or so: half of the objects err.
    assert abs(found.means[2] - 0.5) < 0.1
    assert_allclose(found.means, found.losses.mean(axis=1))
    assert_allclose(found.deviations, found.losses.std(axis=1))


def test_a_recipe_misses_it_too_and_names_are_given() -> None:
    recipe = recipes.fisher_svm(2).fit(SERIES, Y)
    found = permutation_importance(recipe, SERIES, Y, channels=list("abc"), random_state=0)
    assert found.means[2] > 0.3 > 0.1 > max(abs(found.means[:2]))
    assert str(found).splitlines()[1].startswith("c ")
    again = permutation_importance(recipe, SERIES, Y, channels=list("abc"), random_state=0)
    assert_array_equal(again.losses, found.losses)


def test_a_channel_keeps_its_course_and_its_gaps_and_the_others_stay() -> None:
    X = [x.copy() for x in SERIES]
    X[0][4, 2] = np.nan
    recorder = Recorder()
    permutation_importance(recorder, X, Y, n_repeats=1, random_state=1)
    for asked, channel in zip(recorder.asked[1:], range(3)):
        taken = []
        for before, after in zip(X, asked):
            others = [c for c in range(3) if c != channel]
            assert_array_equal(after[:, others], before[:, others])
            sources = [i for i, x in enumerate(X) if x[0, channel] == after[0, channel]]
            taken += sources
            assert after[-1, channel] == X[sources[0]][-1, channel]
        assert sorted(taken) == list(range(len(X)))  # a permutation


def test_resampling_reads_between_positions() -> None:
    values = np.array([0.0, 1.0, np.nan, 3.0, 7.0])
    assert_array_equal(_resampled(values, 5), values)
    assert_allclose(_resampled(values, 9), [0, 0.5, 1, np.nan, np.nan, np.nan, 3, 5, 7])
    assert_allclose(_resampled(values, 3), [0, np.nan, 7])
    assert_allclose(_resampled(values, 1), [0.0])
    assert_allclose(_resampled(np.array([2.0]), 4), 2.0)
    known = np.array([1.0, -2.0, 0.5, 4.0])
    assert_allclose(_resampled(known, 11), np.interp(np.linspace(0, 3, 11), np.arange(4), known))


def test_positions_and_regions_of_aligned_sequences() -> None:
    words = ["".join(RNG.choice(list("ACGT"), 12)) for _ in Y]
    X = [word[:6] + "CG"[label] + word[7:] for word, label in zip(words, Y)]
    recipe = recipes.aligned_symbols(alphabet="dna", ks=(1,), region_ks=(), orders=(), cv=3).fit(X, Y)
    found = permutation_importance(recipe, X, Y, random_state=0)
    assert found.names == [str(i) for i in range(12)]
    assert int(np.argmax(found.means)) == 6
    regions = permutation_importance(recipe, [list(x) for x in X], Y, n_regions=3, random_state=0)
    assert regions.names == ["0-3", "4-7", "8-11"]
    assert int(np.argmax(regions.means)) == 1


def test_refusals() -> None:
    with pytest.raises(ValueError, match="sequences of one length"):
        permutation_importance(Recorder(), ["ab", "abc"], [0, 1])
    with pytest.raises(ValueError, match=r"'channels' must name 3 channels. Got 1"):
        permutation_importance(Recorder(), SERIES, Y, channels=["a"])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        permutation_importance(Recorder(), SERIES, Y[:-1])
    with pytest.raises(ValueError, match="n_repeats"):
        permutation_importance(Recorder(), SERIES, Y, n_repeats=0)
