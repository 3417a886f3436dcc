"""Raw objects are encoded once per fit and once per transform, and what steps hand on is not encoded again."""

import numpy as np
import pytest

from genkern import (
    CategoricalEstimator,
    CentreSeries,
    CrossFit,
    FisherScore,
    FitEach,
    HMMEstimator,
    MarkovChainEstimator,
    ModelLogOdds,
    MultiScale,
    PlugInClassifier,
    ScaleSeries,
    StateSpace,
    TopScore,
    Windows,
    validation,
)
from genkern.data import objects
from genkern.data.objects import pack_points, pack_series, pack_symbols
from genkern.features.posteriors import Posteriors
from genkern.models.families.gaussian_estimator import GaussianEstimator
from genkern.preprocess import cross_fit, windows
from genkern.recipes import fisher_svm, product_svm, series, symbols
from genkern.validation import one_warning_each

RNG = np.random.default_rng(0)
STRINGS = ["".join(RNG.choice(list("acgt"), 12 + i, p=[0.4, 0.1, 0.1, 0.4][:: 1 - 2 * (i % 2)])) for i in range(16)]
SERIES = [RNG.normal(i % 2, size=(12 + i, 2)) for i in range(16)]
LABELS = np.arange(16) % 2
HMMS = HMMEstimator(2, max_iter=3, tol=0)
OF_BOTH = {
    "FisherScore": lambda: FisherScore(HMMS),
    "FisherScore of classes": lambda: FisherScore(HMMS, per_class=True),
    "TopScore": lambda: TopScore(HMMS),
    "StateSpace": lambda: StateSpace(HMMS),
    "ModelLogOdds": lambda: ModelLogOdds(HMMS),
    "Posteriors": lambda: Posteriors(HMMS),
    "FitEach": lambda: FitEach(HMMS),
    "PlugInClassifier": lambda: PlugInClassifier(HMMS),
    "fisher_svm": lambda: fisher_svm(2),
    "product_svm": lambda: product_svm(2),
}
OF_SERIES = {
    "MultiScale": lambda: MultiScale(FisherScore(GaussianEstimator())),
    "series": lambda: series(n_components=2, n_states=2),
}
CASES = [
    *((name, make, X) for name, make in OF_BOTH.items() for X in (STRINGS, SERIES)),
    *((name, make, SERIES) for name, make in OF_SERIES.items()),
    ("symbols", symbols, STRINGS),
]


@pytest.fixture
def encodings(monkeypatch):
    """Return the list to which every encoding of raw objects is added."""
    seen = []
    for name in ("flatten_symbols", "flatten_numbers", "flatten_integers"):
        work = getattr(objects, name)
        monkeypatch.setattr(objects, name, lambda X, who, work=work: seen.append(who) or work(X, who))
    return seen


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "make", "X"), CASES, ids=[name for name, *_ in CASES])
def test_objects_are_encoded_once(encodings, name, make, X):
    step = make().fit(X, LABELS)
    assert len(encodings) == 1
    encodings.clear()
    (step.transform if hasattr(step, "transform") else step.predict)(X)
    assert len(encodings) == 1


def test_what_is_remembered_is_what_encoding_gives():
    steps = [ScaleSeries(), CentreSeries(), Windows(widths=3)]
    for step in steps:
        plain = step.fit(SERIES).transform(SERIES)
        with one_warning_each():
            handed = step.transform(SERIES)
            for pack in (pack_series, pack_points):
                found, expected = pack(handed), pack(plain)
                np.testing.assert_array_equal(found.values, expected.values)
                np.testing.assert_array_equal(found.offsets, expected.offsets)


def test_other_settings_and_other_objects_are_encoded_anew():
    X = ["abba", "ab"]
    with one_warning_each():
        inferred = pack_symbols(X)
        assert pack_symbols(X) is inferred
        assert pack_symbols(X, inferred.alphabet) is inferred
        assert pack_symbols(X, "abc").alphabet.size == 3
        assert pack_symbols(X, unknown="error").alphabet.unknown == "error"
        assert pack_symbols(list(X)) is not inferred
        numbers = [[1.0, 2.0], [3.0]]
        assert pack_series(numbers).values.tolist() == [[1.0], [2.0], [3.0]]
        with pytest.raises(ValueError, match="2 were expected"):
            pack_series(numbers, n_channels=2)
    assert pack_symbols(X) is not inferred


def test_numbers_that_grow_too_large_are_still_refused():
    scale = ScaleSeries().fit([[1e-9, 3e-9], [2e-9, 5e-9]])
    with one_warning_each():
        large = scale.transform([[1e70, 1e-9]])
        with pytest.raises(ValueError, match="object 0, position 0, column 0"):
            pack_series(large)


@pytest.fixture
def cuts(monkeypatch):
    """Return the list to which the width of every cut of series into windows is added."""
    seen = []
    work = windows.describe_windows
    monkeypatch.setattr(windows, "describe_windows", lambda *given: seen.append(len(given[2])) or work(*given))
    return seen


@pytest.mark.parametrize("X", [SERIES, [x[:12, 0] for x in SERIES], np.stack([x[:12, 0] for x in SERIES])])
@pytest.mark.filterwarnings("ignore")
def test_both_models_of_a_recipe_share_windows(cuts, monkeypatch, X):
    recipe = series(n_components=2, n_states=2).fit(X, LABELS)
    kinds = list(recipe[0].transformer_list[0][1].parts_)
    assert len(cuts) == 3 * len(kinds)  # as they are, centred, and in their own units
    cuts.clear()
    shared = recipe.decision_function(X)
    assert len(cuts) == (2 + ("own" in recipe[0].factors_)) * len(kinds)
    monkeypatch.setattr(validation, "MADE", 0)  # nothing is remembered
    cuts.clear()
    apart = series(n_components=2, n_states=2).fit(X, LABELS)
    assert len(cuts) == 6 * len(kinds)
    np.testing.assert_array_equal(apart.decision_function(X), shared)


def test_shared_windows_are_those_of_the_same_objects_and_settings(cuts):
    X, others = SERIES[:4], SERIES[4:8]
    with one_warning_each():
        first, second = Windows(widths=3), Windows(widths=3)
        np.testing.assert_array_equal(first.fit_transform(X)[0], second.fit_transform(X)[0])
        assert len(cuts) == 1
        first.mean_[0] += 1.0
        assert first.mean_[0] != second.mean_[0]
        assert not np.array_equal(first.transform(X)[0], second.transform(X)[0])
        for step, given in ((Windows(widths=3, circular=True), X), (Windows(widths=3), others)):
            found = step.fit_transform(given)
            np.testing.assert_array_equal(found[0], step.fit(list(given)).transform(list(given))[0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("embedding", "X"),
    [
        (ModelLogOdds(CategoricalEstimator()), STRINGS),
        (TopScore(MarkovChainEstimator(alphabet="acgt")), STRINGS),
        (TopScore(MarkovChainEstimator(alphabet=4)), [np.array(["acgt".index(c) for c in x]) for x in STRINGS]),
        (TopScore(HMMS), SERIES),
        (TopScore(HMMS), np.stack([x[:12, 0] for x in SERIES])),
    ],
    ids=["inferred", "strings", "integers", "series", "table"],
)
def test_cross_fit_encodes_once_for_all_folds(encodings, monkeypatch, embedding, X):
    step = CrossFit(embedding, cv=4)
    found = step.fit_transform(X, LABELS)
    assert len(encodings) == 1
    encodings.clear()
    np.testing.assert_array_equal(step.transform(X), found)
    assert len(encodings) == 1
    monkeypatch.setattr(cross_fit, "remember_part", lambda *given: None)  # every part is encoded by itself
    np.testing.assert_array_equal(CrossFit(embedding, cv=4).fit_transform(X, LABELS), found)
    assert len(encodings) > 4
