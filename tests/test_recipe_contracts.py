"""What every recipe keeps to: probabilities, groups, weights, routed metadata, and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_validate,
)
from sklearn.pipeline import Pipeline

from genkern import load, recipes, save
from genkern.learn import calibrated, svm_path
from genkern.preprocess import cross_fit, folds

rng = np.random.default_rng(0)
Y = np.repeat([0, 1, 2], 12)
GROUPS = np.tile(np.arange(4), 9)
SHARES = [0.55, 0.15, 0.15, 0.15]
LETTERS = ["".join(rng.choice(list("ACGT"), 20, p=np.roll(SHARES, c))) for c in Y]
SERIES = [rng.normal(c, size=(15, 2)) for c in Y]
TEXTS = [" ".join(rng.choice(["red", "green", "blue", "grey"], 8, p=np.roll(SHARES, c))) for c in Y]
CODES = [
    "".join(code * int(side) for code, side in zip("0246", rng.integers(3, 7, 4) + np.array([6, 0, 6, 0]) * c))
    for c in Y
]


def profiles(**settings):
    """Return the recipe of homology without the kernels of words, which take longest and have a recipe here."""
    return recipes.homology(**settings).set_params(kernels__symbols="drop")


TABLE = {
    "aligned_symbols": (recipes.aligned_symbols, {"ks": (1,), "region_ks": (), "orders": (0,), "cv": 3}, LETTERS),
    "contours": (recipes.contours, {"n_components": 2, "n_states": 2}, CODES),
    "fisher_svm": (recipes.fisher_svm, {"n_states": 2}, LETTERS),
    "homology": (profiles, {"cv": 3}, LETTERS),
    "meanmap_svm": (recipes.meanmap_svm, {"n_states": 1}, LETTERS),
    "points": (recipes.points, {"n_components": 2}, SERIES),
    "product_svm": (recipes.product_svm, {"n_states": 1}, LETTERS),
    "series": (recipes.series, {"n_components": 2, "n_states": 2}, SERIES),
    "spectrum_svm": (recipes.spectrum_svm, {"k": 2}, LETTERS),
    "symbols": (recipes.symbols, {"alphabet": "dna", "n_lags": 2, "n_gaps": 1}, LETTERS),
    "text": (recipes.text, {"cv": 3}, TEXTS),
}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(params=list(TABLE))
def case(request):
    make, settings, X = TABLE[request.param]
    return make, settings, X


def test_all_recipes_are_in_the_table():
    assert set(TABLE) == set(recipes.__all__) - {"AutoClassifier", "auto", "candidates"}


@pytest.mark.parametrize("y", [Y, np.array(["b", "a", "a"])[Y]], ids=["three classes", "two classes"])
def test_probabilities(case, y, tmp_path):
    make, settings, X = case
    fitted = make(**settings).fit(X, y)
    found = fitted.predict_proba(X)
    assert np.isfinite(found).all()
    assert found.min() >= 0.0
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(fitted.classes_[found.argmax(axis=1)], fitted.predict(X))
    np.testing.assert_array_equal(np.exp(fitted.predict_log_proba(X)).argmax(axis=1), found.argmax(axis=1))
    values = fitted.decision_function(X)
    scores = fitted[-1].calibrator_.sharpness_ * (np.column_stack([0 * values, values]) if values.ndim == 1 else values)
    np.testing.assert_allclose(found, np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True), rtol=1e-9)
    save(fitted, tmp_path / "model.gk")
    np.testing.assert_array_equal(load(tmp_path / "model.gk").predict_proba(X), found)


def test_no_fit_sees_a_mate_of_what_it_is_asked_about(case, monkeypatch):
    """A spy on all folds: each object left out has no object of its group in the training part."""
    make, settings, X = case
    seen = []

    def spied(module):
        original = module.make_folds

        def spy(cv, labels, groups, who):
            splitter = original(cv, labels, groups, who)
            seen.append((who, [(train, test) for train, test in splitter.split(labels, labels, groups)]))
            return splitter

        monkeypatch.setattr(module, "make_folds", spy)

    for module in (calibrated, cross_fit, svm_path):
        spied(module)
    fitted = make(**settings).fit(X, Y, groups=GROUPS)
    for _, parts in seen:
        assert len(parts) > 1
        for train, test in parts:
            assert not set(GROUPS[train]) & set(GROUPS[test])
    whose = {who for who, _ in seen}
    crossed = any(isinstance(step, cross_fit.CrossFit) for step in fitted.get_params().values())
    assert ("CrossFit" in whose) == crossed
    if hasattr(fitted[-1], "cv_decision_"):  # leave-one-out in closed form
        features = fitted[:-1].transform(X)
        out = GROUPS == 1
        refit = clone(fitted[-1]).set_params(alphas=[fitted[-1].alpha_]).fit(features[~out], Y[~out])
        np.testing.assert_allclose(fitted[-1].cv_decision_[out], refit.decision_function(features[out]), atol=1e-6)
    else:
        assert type(fitted[-1]).__name__ in whose


def test_copies_in_a_group_do_not_flatter():
    """Labels without any meaning, each object four times: sure of itself without groups, not so with them."""
    letters = np.random.default_rng(5)
    words = ["".join(letters.choice(list("ACGT"), 30)) for _ in range(24)]
    X = [word[:i] + "A" + word[i + 1 :] for i in range(4) for word in words]
    y, groups = np.tile(letters.permutation(24) % 2, 4), np.tile(np.arange(24), 4)
    for name in ("spectrum_svm", "symbols", "aligned_symbols"):
        recipe = TABLE[name][0](**{**TABLE[name][1], **({"k": 3} if name == "spectrum_svm" else {})})
        new = ["".join(letters.choice(list("ACGT"), 30)) for _ in range(50)]
        careless = clone(recipe).fit(X, y).predict_proba(new).max(axis=1).mean()
        careful = clone(recipe).fit(X, y, groups=groups).predict_proba(new).max(axis=1).mean()
        assert careful < careless - 0.05
        assert careful < 0.65


def test_folds_keep_groups():
    labels = np.tile([0, 1], 12)
    groups = np.repeat(np.arange(6), 4)
    for cv in (5, StratifiedKFold(5, shuffle=True, random_state=0)):
        made = folds.make_folds(cv, labels, groups, "test")
        assert isinstance(made, StratifiedGroupKFold)
        assert (made.n_splits, made.shuffle) == (5, cv != 5)
        assert isinstance(folds.make_folds(cv, labels, None, "test"), StratifiedKFold)
    assert folds.make_folds(5, labels, groups // 2, "test").n_splits == 3
    own = GroupKFold(2)
    assert folds.make_folds(own, labels, groups, "test") is own
    with pytest.raises(ValueError, match=r"test: class 0 has 1 group; expected at least 2"):
        folds.make_folds(5, labels, np.where(labels == 0, 9, groups), "test")


def test_weights_of_classes(case):
    make, settings, X = case
    weighted = make(**settings, class_weight={1: 3.0}).fit(X, Y)
    same = make(**settings).fit(X, Y, sample_weight=np.where(Y == 1, 3.0, 1.0))
    np.testing.assert_allclose(weighted.predict_proba(X), same.predict_proba(X), rtol=1e-6, atol=1e-9)
    few = np.r_[0:12, 12:18, 24:36]  # half of class 1
    rare, labels = [X[i] for i in few], Y[few]
    plain = make(**settings).fit(rare, labels)
    balanced = make(**settings, class_weight="balanced").fit(rare, labels)
    shares = [fitted.predict_proba(X)[:, 1].mean() for fitted in (plain, balanced)]
    assert shares[1] > shares[0]
    with pytest.raises(ValueError, match="class_weight"):
        make(**settings, class_weight="even").fit(X, Y)


@pytest.mark.parametrize("name", ["symbols", "spectrum_svm", "text", "product_svm"])
def test_metadata_are_routed(name):
    make, settings, X = TABLE[name]
    objects, weights = np.empty(len(X), dtype=object), 1.0 + (Y == 1)
    objects[:] = X
    given = {"groups": GROUPS, "sample_weight": weights}
    with config_context(enable_metadata_routing=True):
        recipe = make(**settings)
        recipe[-1].set_score_request(sample_weight=True)
        found = cross_validate(recipe, objects, Y, cv=GroupKFold(2), params=given, return_estimator=True)
        inside = Pipeline([("recipe", recipe)]).fit(X, Y, **given)
        grid = {f"{recipe.steps[-1][0]}__class_weight": [None, "balanced"]}
        searched = GridSearchCV(recipe, grid, cv=GroupKFold(2)).fit(objects, Y, **given)
    for fitted, score, (train, test) in zip(found["estimator"], found["test_score"], GroupKFold(2).split(X, Y, GROUPS)):
        own = make(**settings).fit(
            objects[train].tolist(), Y[train], groups=GROUPS[train], sample_weight=weights[train]
        )
        np.testing.assert_allclose(fitted.predict_proba(objects), own.predict_proba(objects), rtol=1e-6, atol=1e-9)
        right = own.predict(objects[test]) == Y[test]
        assert score == pytest.approx(np.average(right, weights=weights[test]))
    direct = make(**settings).fit(X, Y, **given)
    np.testing.assert_array_equal(inside.predict_proba(X), direct.predict_proba(X))
    assert searched.predict_proba(objects).shape == (36, 3)


def test_files_without_probabilities_say_so():
    folder = Path(__file__).parent / "data" / "format1"
    for name in ("ridge", "symbols", "spectrum_svm", "product_svm", "text"):
        model = load(folder / f"{name}.gk")
        with pytest.raises(AttributeError, match=r"written before there were .*fit again"):
            model.predict_proba(None if name != "symbols" else ["ab"])
