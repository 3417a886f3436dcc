"""Explanations of whole sets: sums and means against loops over ``explain``, blocks, channels and labels."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler

from genkern import (
    FisherScore,
    HMMEstimator,
    MarkovChainEstimator,
    ModelLogOdds,
    Spectrum,
    Windows,
    explain,
    explain_set,
    recipes,
)
from genkern.explanation import set as sets

RNG = np.random.default_rng(5)
Y = np.arange(18) % 3
SERIES = [np.cumsum(RNG.normal(size=(RNG.integers(20, 40), 2)), axis=0) + label for label in Y]
DNA = ["".join(RNG.choice(list("ACGT"), 40, p=np.roll([0.4, 0.3, 0.2, 0.1], label))) for label in Y]
TEXTS = [
    f"{word} of the {other}" for word, other in zip(["thesis", "chair", "lab"] * 6, RNG.choice(["day", "night"], 18))
]
SMALL = recipes.series(n_components=2, n_states=2)
CASES: dict[str, tuple[Any, Any]] = {
    "series": (SMALL, SERIES),
    "symbols": (recipes.symbols("dna", n_lags=3, n_gaps=2), DNA),
    "aligned": (recipes.aligned_symbols(alphabet="dna", ks=(1, 2), region_ks=(1,), orders=(0,), cv=3), DNA),
    "text": (recipes.text(cv=3), TEXTS),
    "points": (recipes.points(n_components=3), SERIES),
    "fisher": (recipes.fisher_svm(2), SERIES),
    "selected": (make_pipeline(Spectrum(2, "dna"), SelectKBest(k=5), RidgeClassifier()), DNA),
    "mixed": (make_pipeline(Spectrum(2, "dna"), PCA(3), RidgeClassifier()), DNA),
}


@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize("name", list(CASES))
def test_means_are_those_of_a_loop(name: str, two: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline, X = CASES[name]
    y = Y % 2 if two else Y
    pipeline = pipeline.fit(X, y)
    monkeypatch.setattr(sets, "NUMBERS", 5 * len(explain(pipeline, X[0]).names))  # batches of five
    for labels in (y, None):
        found = explain_set(pipeline, X, labels)
        alone = [explain(pipeline, x, None if labels is None else label) for x, label in zip(X, y)]
        owners = [int(each.label) for each in alone]
        assert found.labels.tolist() == owners
        assert_allclose(found.decisions, [each.decision for each in alone], rtol=0, atol=1e-10)
        assert_allclose(found.blocks.sum(axis=1), found.decisions - found.intercepts, rtol=0, atol=1e-10)
        values = np.array([each.contributions for each in alone])
        assert_allclose(found.absolute, np.abs(values).mean(axis=0), rtol=0, atol=1e-12)
        for label in set(owners):
            assert_allclose(found.signed[label], values[np.equal(owners, label)].mean(axis=0), rtol=0, atol=1e-12)
        fronts = [str(text).split("__")[0] if "__" in text else "" for text in alone[0].names]
        blocks = found.by_block()
        for front in set(fronts) - {""}:
            sums = values[:, np.equal(fronts, front)].sum(axis=1)
            assert_allclose(blocks[front].absolute, np.abs(sums).mean(), rtol=0, atol=1e-10)
            for label in set(owners):
                mean = sums[np.equal(owners, label)].mean()
                assert_allclose(blocks[front].signed[label], mean, rtol=0, atol=1e-10)
        assert set(fronts) in ({""}, set(blocks))
        assert [mean.absolute for mean in blocks.values()] == sorted(
            (mean.absolute for mean in blocks.values()), reverse=True
        )


def test_an_iteration_explains_each_object() -> None:
    pipeline = SMALL.fit(SERIES, Y)
    found = explain_set(pipeline, SERIES[:3], Y[:3])
    for each, x, label in zip(found, SERIES, Y):
        alone = explain(pipeline, x, label)
        np.testing.assert_array_equal(each.contributions, alone.contributions)
        np.testing.assert_array_equal(each.positions, alone.positions)
    assert len(found) == 3
    assert found[-1].x is SERIES[2]


# --- channels


def test_channels_have_the_features_that_are_made_of_them() -> None:
    pipeline = make_pipeline(Windows([1, 3], n_dct=1), FisherScore(HMMEstimator(2)), RidgeClassifier())
    pipeline.fit(SERIES, Y)
    columns = pipeline[0].get_feature_names_out()
    found, sums = explain_set(pipeline, SERIES, Y), defaultdict(list)
    for x, label in zip(SERIES, Y):
        each = explain(pipeline, x, label)
        of_one: dict[str, float] = defaultdict(float)
        for name, value in zip(each.names, each.contributions):
            last = name[:-1].split(",")[-1]
            home = columns[int(last)].split("_")[0] if name.startswith("emissions") else "of no channel"
            of_one[home] += value
        for home, value in of_one.items():
            sums[home].append(value)
    assert set(found.by_channel()) == set(sums) == {"x0", "x1", "of no channel"}
    for home, values in sums.items():
        assert_allclose(found.by_channel()[home].absolute, np.abs(values).mean(), rtol=0, atol=1e-10)
    assert_allclose(found.channels.sum(axis=1), found.decisions - found.intercepts, rtol=0, atol=1e-10)
    named = explain_set(pipeline, SERIES, Y, channels=["pulse", "breath"])
    assert named.by_channel()["breath"] == found.by_channel()["x1"]
    assert "pulse" in "".join(label for label, _ in named.top(40))


def test_a_channel_that_carries_the_class_is_found() -> None:
    X = [RNG.normal(size=(60, 3)) * [1.0, 1.0 + 2.0 * (label == 1), 1.0] for label in np.arange(40) % 2]
    pipeline = recipes.series(n_components=4, n_states=2).fit(X[:30], np.arange(30) % 2)
    means = explain_set(pipeline, X[30:], np.arange(30, 40) % 2).by_channel()
    signed = {name: sum(mean.signed.values()) for name, mean in means.items()}
    assert signed["x1"] > 3 * max(abs(signed["x0"]), abs(signed["x2"]))


def test_symbols_have_no_channels() -> None:
    found = explain_set(CASES["symbols"][0].fit(DNA, Y), DNA)
    assert found.by_channel() == {}
    assert "no channels" in repr(found)


# --- blocks and labels


def test_blocks_are_parts_of_the_recipe_and_their_sub_parts() -> None:
    found = explain_set(recipes.symbols("dna").fit(DNA, Y), DNA, Y)
    assert set(found.by_block()) == {"pairs", "gapped", "odds"}
    assert len(found.by_block(2)) == 15 + 16 + 27 + 10
    assert {"pairs / 0-3", "gapped / 0-1-3", "odds / model9"} < set(found.by_block(2))
    one = explain(found.pipeline, DNA[0])
    assert set(one.by_block()) == set(found.by_block())
    assert_allclose(sum(one.by_block(2).values()), one.positions, rtol=0, atol=1e-10)


def test_labels_say_what_features_are() -> None:
    found = explain_set(recipes.symbols("dna").fit(DNA, Y), DNA, Y)
    labels = dict(zip(found.features.names(), map(found.features.label, range(len(found.absolute)))))
    assert len(set(labels.values())) == len(labels)
    assert labels["pairs__0-3__A..C"] == "A..C (pairs, 3 apart)"
    assert labels["odds__model4__v[2]"] == "log-odds of a Markov chain of order 4, class 2"
    assert labels["odds__model9__v[2]"] == "log-odds of a periodic chain of order 4, period 3, class 2"
    series = explain(SMALL.fit(SERIES, Y), SERIES[0], channels=["pulse", "breath"])
    said = dict(zip(series.names, series.labels))
    assert len(set(said.values())) == len(said)
    assert said["bag__w3__occupancy[1]"] == "visits of component 1 (bag, windows of 3)"
    assert said["bag__w1__components.mean[1,1]"] == "channel breath: mean of component 1 (bag, windows of 1)"
    text = "channel breath, normalised window of 3, average: variance of component 3 of state 1 (centred, chain)"
    assert said["centred__chain__w3_normalized__emissions.components.variance[1,3,3]"] == text
    assert {label for label, _ in series.top(30)} <= set(said.values())


@pytest.mark.parametrize(
    ("step", "name", "label"),
    [
        (FisherScore(HMMEstimator(2)), "transitions[0,1]", "step from state 0 to 1"),
        (FisherScore(HMMEstimator(2)), "emissions.probs[1,G]", "G in state 1"),
        (FisherScore(MarkovChainEstimator(2)), "transitions[A,C,G]", "G after AC"),
        (ModelLogOdds(HMMEstimator(2)), "v[0]", "log-odds of an HMM of 2 states, class 0"),
    ],
)
def test_labels_of_parameters(step: Any, name: str, label: str) -> None:
    found = explain(make_pipeline(step, RidgeClassifier()).fit(DNA, Y), DNA[0])
    assert dict(zip(found.names, found.labels))[name] == label


# --- what may be given


def test_searches_and_automatic_classifiers_are_explained() -> None:
    search = GridSearchCV(make_pipeline(Spectrum(1, "dna"), LogisticRegression()), {"spectrum__k": [1, 2]}, cv=3)
    assert len(explain_set(search.fit(DNA, Y), DNA)) == 18
    auto = recipes.auto(DNA, Y, cv=2, candidates=["spectrum_svm"])
    assert_allclose(explain_set(auto, DNA).decisions, auto.decision_function(DNA).max(axis=1), rtol=0, atol=1e-10)


def test_a_table_reads_well() -> None:
    union = FeatureUnion([("one", Spectrum(1, "dna")), ("two", Spectrum(2, "dna"))])
    found = explain_set(make_pipeline(union, StandardScaler(), RidgeClassifier()).fit(DNA, Y), DNA, Y)
    lines = str(found).splitlines()
    assert repr(found) == "ExplanationSet(18 objects, 3 classes, 20 features in 2 blocks, no channels)"
    first, mean = next(iter(found.by_block().items()))
    assert lines[2].split() == ["block", "absolute", "0", "1", "2"]
    assert lines[3].split() == [first, f"{mean.absolute:.4f}", *(f"{mean.signed[c]:+.4f}" for c in range(3))]
    with pytest.raises(ValueError, match=r"'y' must hold classes of the pipeline, 0, 1, 2. Got 7 for object 1"):
        explain_set(found.pipeline, DNA[:2], [0, 7])
    with pytest.raises(ValueError, match=r"a class of each of 2 objects in 'y'. Got 1"):
        explain_set(found.pipeline, DNA[:2], [0])
    with pytest.raises(ValueError, match="at least one object"):
        explain_set(found.pipeline, [])
