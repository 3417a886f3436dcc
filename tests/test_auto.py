"""Recipes chosen by cross-validation: the same folds for all, budgets, Ctrl-C, groups, probabilities."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from genkern import AutoClassifier, CategoricalEstimator, PlugInClassifier, expected_calibration_error, recipes
from genkern.learn.calibration import Calibrator
from genkern.recipes import race
from genkern.recipes.candidates import candidates

LETTERS = "abc"


def words(n=60, k=3, seed=0):
    """Return strings of k classes that differ in their letters, and labels in words."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % k
    X = ["".join(rng.choice(list(LETTERS), 12, p=np.roll([0.5, 0.3, 0.2], code))) for code in codes]
    return X, np.array(["one", "two", "three"])[codes]


class Counts(FunctionTransformer):
    """Frequencies of letters."""

    def __init__(self):
        super().__init__(lambda X: np.array([[x.count(letter) for letter in LETTERS] for x in X], float))


def simple():
    return {
        "plug_in": PlugInClassifier(CategoricalEstimator(LETTERS)),
        "logistic": make_pipeline(Counts(), LogisticRegression()),
    }


class Stub(ClassifierMixin, BaseEstimator):
    """Decides by the first letter, after so many ticks of the clock; may fail, or be interrupted, at a fit."""

    ticks: list[float] = [0.0]  # noqa: RUF012  (one clock for all)
    fits: list[tuple[str, int]] = []  # noqa: RUF012

    def __init__(self, name="stub", cost=1.0, wrong=0.0, raises=None, at=0, fixed=0.0):
        self.name = name
        self.cost = cost
        self.wrong = wrong
        self.raises = raises
        self.at = at
        self.fixed = fixed

    def fit(self, X, y):
        if self.raises is not None and sum(name == self.name for name, _ in self.fits) == self.at:
            raise self.raises
        self.fits.append((self.name, len(X)))
        self.ticks[0] += self.cost * len(X) + self.fixed
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        off = np.arange(len(X)) < self.wrong * len(X)
        return np.where([x[0] == "a" for x in X], -1.0, 1.0) * np.where(off, -1.0, 1.0)


@pytest.fixture
def stubs(monkeypatch):
    """A clock that stands still but for the fits of stubs."""
    Stub.ticks[0] = 0.0
    Stub.fits.clear()
    monkeypatch.setattr(race, "clock", lambda: Stub.ticks[0])
    return Stub


X2, Y2 = [f"{letter}{'abc'[i % 3]}c" for i in range(20) for letter in "ab"], np.tile([0, 1], 20)


def names(auto, status=None):
    return [result["name"] for result in auto.results_ if status is None or result["status"] == status]


def test_errors_and_choice_are_those_of_cross_validation_by_hand():
    X, y = words()
    auto = AutoClassifier(candidates=simple(), random_state=3).fit(X, y)
    folds = StratifiedKFold(5, shuffle=True, random_state=3)
    boxed = np.array(X, dtype=object)
    for result, (name, estimator) in zip(auto.results_, simple().items()):
        errors = 1 - cross_val_score(estimator, boxed, y, cv=folds)
        assert (result["name"], result["status"]) == (name, "done")
        np.testing.assert_allclose(result["fold_errors"], errors, atol=1e-12)
        assert result["error"] == pytest.approx(errors.mean())
        assert result["spread"] == pytest.approx(errors.std())
        assert result["fit_seconds"] > 0
        assert result["predict_seconds"] > 0
    assert auto.best_name_ == min(auto.results_, key=lambda result: result["error"])["name"]
    assert auto.kind_ == "symbols"
    assert auto.refitted_
    full = clone(simple()[auto.best_name_]).fit(X, y)
    np.testing.assert_array_equal(auto.predict(X), full.predict(X))
    np.testing.assert_array_equal(auto.decision_function(X), full.decision_function(X))
    assert auto.score(X, y) == accuracy_score(y, full.predict(X))


def test_probabilities_are_calibrated_on_out_of_fold_decisions():
    X, y = words(120)
    auto = AutoClassifier(candidates={"logistic": simple()["logistic"]}).fit(X, y)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    boxed = np.array(X, dtype=object)
    decisions = cross_val_predict(simple()["logistic"], boxed, y, cv=folds, method="decision_function")
    np.testing.assert_allclose(auto.cv_decision_[np.argsort(auto.cv_index_)], decisions)
    classes, codes = np.unique(y, return_inverse=True)
    np.testing.assert_allclose(auto.calibrator_.sharpness_, Calibrator().fit(decisions, codes).sharpness_, rtol=1e-6)
    honest = np.zeros((120, 3))
    for train, test in folds.split(boxed, y):
        honest[test] = Calibrator().fit(decisions[train], codes[train]).predict_proba(decisions[test])
    assert auto.calibration_error_ == pytest.approx(expected_calibration_error(y, honest, classes=classes), rel=1e-6)
    new, _ = words(30, seed=9)
    proba = auto.predict_proba(new)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(auto.classes_[proba.argmax(axis=1)], auto.predict(new))


def test_two_classes_and_numbers_as_labels():
    X, y = words(40, k=2)
    codes = (y == "two").astype(float) * 7
    auto = recipes.auto(X, codes, candidates=simple())
    assert auto.decision_function(X).shape == (40,)
    assert set(auto.predict(X)) <= {0.0, 7.0}
    np.testing.assert_array_equal(auto.predict(X) == 7, auto.predict_proba(X)[:, 1] > 0.5)


def test_ties_go_to_the_first(stubs):
    auto = AutoClassifier(candidates={"a": Stub("a"), "b": Stub("b"), "c": Stub("c", wrong=0.5)}).fit(X2, Y2)
    assert auto.best_name_ == "a"
    assert AutoClassifier(candidates={"c": Stub("c", wrong=0.5), "b": Stub("b")}).fit(X2, Y2).best_name_ == "b"


def test_a_candidate_that_fails_is_reported(stubs):
    tried = {"a": Stub("a", wrong=0.3), "b": Stub("b", raises=ValueError("no such thing"), at=2), "c": object()}
    auto = AutoClassifier(candidates=tried).fit(X2, Y2)
    assert auto.best_name_ == "a"
    assert [result["status"] for result in auto.results_][:2] == ["done", "failed: no such thing"]
    assert auto.results_[2]["status"].startswith("failed: ")
    assert auto.results_[2]["error"] is None
    with pytest.raises(ValueError, match=r"all candidates failed\. b: no such thing"):
        AutoClassifier(candidates={"b": Stub("b2", raises=ValueError("no such thing"))}).fit(X2, Y2)


@pytest.mark.parametrize("values", [np.nan, np.inf])
def test_decisions_that_are_no_numbers_are_a_failure(values):
    class Odd(Stub):
        def decision_function(self, X):
            return np.full(len(X), values)

    auto = AutoClassifier(candidates={"odd": Odd("odd", cost=0), "a": Stub("a", cost=0)}).fit(X2, Y2)
    assert auto.results_[0]["status"].startswith("failed: the decision")
    assert auto.best_name_ == "a"


def test_budget_stops_between_folds_and_leaves_time_for_the_last_fit(stubs):
    """Folds of 32 of 40 objects: 32 ticks for a, 320 for b; the last fit takes 40 or 400."""
    tried = {"a": Stub("a", wrong=0.3), "b": Stub("b", cost=10.0), "c": Stub("c")}
    auto = AutoClassifier(candidates=tried, budget=1300).fit(X2, Y2)
    assert [result["status"] for result in auto.results_] == ["done", "stopped: budget", "stopped: budget"]
    # 160 for a, then two folds of b (800): a third would end at 1120 and leave less than the 400 of the last fit.
    assert len(auto.results_[1]["fold_errors"]) == 2
    assert (auto.best_name_, auto.refitted_) == ("b", True)
    # For c there was time for three folds of 32 before the last fit of b, whose error is the same.
    assert len(auto.results_[2]["fold_errors"]) == 3
    assert stubs.ticks[0] == 160 + 640 + 96 + 400 <= 1300
    assert stubs.fits[-1] == ("b", 40)
    assert len(auto.cv_index_) == len(auto.cv_decision_) == 16


def test_budget_that_is_too_short_keeps_the_first_fold(stubs):
    with pytest.warns(UserWarning, match=r"stopped \(budget\). a, .* in 1 folds, is kept"):
        auto = AutoClassifier(candidates={"a": Stub("a"), "b": Stub("b")}, budget="10s").fit(X2, Y2)
    assert stubs.fits == [("a", 32)]
    assert not auto.refitted_
    assert auto.calibration_error_ is None
    assert names(auto, "stopped: budget") == ["a", "b"]
    assert auto.predict_proba(X2).shape == (40, 2)
    np.testing.assert_array_equal(auto.predict(["ab", "ba"]), [0, 1])


def test_a_candidate_that_cannot_end_in_time_is_not_begun(stubs):
    """With many objects, one costly fold would be far too long; samples foretell it."""
    X, y = X2 * 75, np.tile(Y2, 75)  # 3000 objects, folds of 2400
    tried = {"a": Stub("a", wrong=0.1), "b": Stub("b", cost=100.0), "c": Stub("c", wrong=0.05)}
    auto = AutoClassifier(candidates=tried, budget=60_000).fit(X, y)
    assert [size for name, size in stubs.fits if name == "b"] == [50, 50, 100]
    assert auto.results_[1]["status"] == "stopped: budget"
    assert auto.results_[1]["error"] is None
    assert auto.best_name_ == "c"
    assert stubs.ticks[0] <= 60_000


def test_costs_that_do_not_grow_are_not_taken_for_such_that_do(stubs):
    """A fit of 100 objects takes 600 ticks and one of 2400 not 24 times as many, but 2900."""
    X, y = X2 * 75, np.tile(Y2, 75)
    tried = {"a": Stub("a", cost=0.01, wrong=0.1), "b": Stub("b", fixed=500.0)}
    AutoClassifier(candidates=tried, budget=8_400).fit(X, y)
    assert [size for name, size in stubs.fits if name == "b"] == [50, 50, 100, 2400, 3000]
    assert stubs.ticks[0] == pytest.approx(0.01 * 12_000 + 2 * 550 + 600 + 2900 + 3500)


def test_a_last_fit_that_is_cheap_is_done_in_any_case(stubs):
    tried = {"a": Stub("a", cost=0.1), "b": Stub("b", cost=100.0, wrong=0.5)}
    auto = AutoClassifier(candidates=tried, budget=1000).fit(X2, Y2)
    assert stubs.fits[-2:] == [("b", 32), ("a", 40)]  # one fold of b took 3200
    assert auto.refitted_


def test_control_c_keeps_the_best_so_far(stubs):
    tried = {"a": Stub("a"), "b": Stub("b", raises=KeyboardInterrupt(), at=1), "c": Stub("c")}
    with pytest.warns(UserWarning, match=r"stopped \(Ctrl-C\). a, "):
        auto = AutoClassifier(candidates=tried).fit(X2, Y2)
    assert [result["status"] for result in auto.results_] == ["done", "stopped: interrupted", "not tried"]
    assert not auto.refitted_
    np.testing.assert_array_equal(auto.predict(["ab", "ba"]), [0, 1])
    stubs.fits.clear()
    with pytest.raises(KeyboardInterrupt):
        AutoClassifier(candidates={"a": Stub("a", raises=KeyboardInterrupt())}).fit(X2, Y2)
    stubs.fits.clear()
    with pytest.warns(UserWarning, match=r"Ctrl-C"):  # in the last fit
        last = AutoClassifier(candidates={"a": Stub("a", raises=KeyboardInterrupt(), at=5)}).fit(X2, Y2)
    assert not last.refitted_
    assert last.results_[0]["status"] == "done"


@pytest.mark.parametrize(
    ("budget", "seconds"), [("30s", 30), ("5min", 300), ("1.5 h", 5400), (12, 12), ("12", 12), (None, np.inf)]
)
def test_budgets(budget, seconds):
    assert race.seconds_of(budget, "me") == seconds


@pytest.mark.parametrize("budget", ["5 parsecs", -1, 0, True, "", [5], np.nan])
def test_wrong_budgets(budget):
    with pytest.raises(ValueError, match="'budget' parameter of me"):
        race.seconds_of(budget, "me")


def test_groups_are_never_split():
    seen = []

    class Spy(Stub):
        def fit(self, X, y):
            seen.append({int(x[1:]) for x in X})
            return super().fit(X, y)

        def decision_function(self, X):
            assert not seen[-1] & {int(x[1:]) for x in X}
            return super().decision_function(X)

    X = [f"{letter}{group}" for group in range(10) for letter in "abab"]
    groups = [x[1:] for x in X]
    auto = AutoClassifier(candidates={"spy": Spy("spy", cost=0)}).fit(X, [x[0] for x in X], groups=groups)
    assert len(seen) == 6
    assert seen[-1] == set(range(10))  # the last fit is to all
    assert auto.results_[0]["status"] == "done"
    with pytest.warns(UserWarning, match="has 4 groups, fewer than cv=5; 4 folds"):
        AutoClassifier(candidates={"stub": Stub(cost=0)}).fit(X[:16], [x[0] for x in X[:16]], groups=groups[:16])
    with pytest.raises(ValueError, match="class 'a' has 1 group; expected at least 2"):
        AutoClassifier().fit(X[:4], [x[0] for x in X[:4]], groups=groups[:4])


def test_groups_reach_the_recipes_own_choices():
    """The penalty of a ridge leaves out groups, and so does a search over C."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(6), 4)
    y = np.tile([0, 1], 12)
    X = ["".join(rng.choice(list("ab"), 9, p=[0.3 + 0.4 * label, 0.7 - 0.4 * label])) for label in y]
    ridge = recipes.symbols(n_lags=1, n_gaps=1)
    np.testing.assert_array_equal(
        race.fit_grouped(ridge, X, y, groups)[-1].cv_decision_,
        clone(ridge).fit(X, y, ridge__groups=groups)[-1].cv_decision_,
    )
    search = recipes.aligned_symbols(ks=(1,), region_ks=(), orders=(), cv=3)
    fitted = race.fit_grouped(search, X, y, groups)[-1]
    assert isinstance(fitted.cv, StratifiedGroupKFold)
    assert fitted.n_splits_ == 3
    assert isinstance(race.fit_grouped(search, X, y, None)[-1].cv, int)
    one_group_each = np.where(y == 0, "all of class 0", groups.astype(str))  # which no folds can do justice
    assert isinstance(race.fit_grouped(search, X, y, one_group_each)[-1].cv, int)
    assert race.fit_grouped(ridge, X, y, np.zeros(24))[-1].cv_decision_.shape == (24,)


def test_groups_are_routed():
    rng = np.random.default_rng(0)
    groups, y = np.repeat(np.arange(8), 4), np.tile([0, 1], 16)
    X = np.array(["".join(rng.choice(list("ab"), 9, p=[0.3 + 0.4 * c, 0.7 - 0.4 * c])) for c in y], dtype=object)
    tried = {
        "symbols": recipes.symbols("ab", n_lags=1, n_gaps=1),
        "plug_in": PlugInClassifier(CategoricalEstimator("ab")),
    }
    with config_context(enable_metadata_routing=True):
        auto = AutoClassifier(candidates=tried, cv=2).set_fit_request(groups=True)
        found = cross_validate(auto, X, y, cv=GroupKFold(2), params={"groups": groups}, return_estimator=True)
    for fitted, held_out in zip(found["estimator"], GroupKFold(2).split(X, y, groups)):
        assert names(fitted, "done") == ["symbols", "plug_in"]
        own = groups[held_out[0]]
        first = fitted.cv_index_[: len(own) // 2]
        assert not set(own[first]) & set(own[np.setdiff1d(np.arange(len(own)), first)])


def test_own_folds():
    X, y = words()
    auto = AutoClassifier(candidates=simple(), cv=KFold(3)).fit(X, y)
    np.testing.assert_array_equal(auto.cv_index_, np.arange(60))
    assert len(auto.results_[0]["fold_errors"]) == 3
    auto = AutoClassifier(candidates=simple(), cv=GroupKFold(2)).fit(X, y, groups=np.arange(60) // 6)
    assert len(auto.results_[0]["fold_errors"]) == 2
    with pytest.raises(ValueError, match="exactly one test part"):
        AutoClassifier(candidates=simple(), cv=[(np.arange(30), np.arange(30, 60))]).fit(X, y)
    with pytest.raises(ValueError, match="no objects of class 'one' outside of fold"):
        AutoClassifier(candidates=simple(), cv=KFold(3)).fit(X, np.sort(y))


@pytest.mark.parametrize("kind", ["symbols", "series", "points", "documents"])
def test_all_candidates_take_weights(kind):
    """Weights of one change nothing, and a class of weight ten is more probable than one of weight one."""
    rng = np.random.default_rng(4)
    y = np.arange(24) % 2
    X = {
        "symbols": words(24)[0],
        "documents": [" ".join(rng.choice(["red", "blue"], 6, p=[0.3 + 0.4 * c, 0.7 - 0.4 * c])) for c in y],
    }.get(kind, [rng.normal(c, size=(9, 2)) for c in y])
    for name, recipe in candidates(kind, X).items():
        plain, even, heavy = (
            race.fit_grouped(recipe, X, y, None, weights) for weights in (None, np.ones(24), 1.0 + 9.0 * y)
        )
        np.testing.assert_allclose(even.predict_proba(X), plain.predict_proba(X), rtol=1e-5, atol=1e-6, err_msg=name)
        assert heavy.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean(), name


def test_weights_are_in_fits_errors_choice_and_calibration():
    X, y = words(60)
    given = np.where(np.arange(60) % 5 == 0, 3.0, 0.5)
    auto = AutoClassifier(candidates=simple(), class_weight={"two": 4.0}).fit(X, y, sample_weight=given)
    weights = given * np.where(y == "two", 4.0, 1.0)
    codes = np.unique(y, return_inverse=True)[1]
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    decisions = {}
    for result, (name, estimator) in zip(auto.results_, simple().items()):
        decisions[name], errors = np.zeros((60, 3)), []
        for train, test in folds:
            own = {"sample_weight" if name == "plug_in" else "logisticregression__sample_weight": weights[train]}
            model = clone(estimator).fit([X[i] for i in train], y[train], **own)
            decisions[name][test] = model.decision_function([X[i] for i in test])
            wrong = model.predict([X[i] for i in test]) != y[test]
            errors.append((weights[test] * wrong).sum() / weights[test].sum())
        np.testing.assert_allclose(result["fold_errors"], errors, atol=1e-12)
    assert auto.best_name_ == min(auto.results_, key=lambda result: result["error"])["name"]
    values = decisions[auto.best_name_]
    np.testing.assert_allclose(auto.cv_decision_[np.argsort(auto.cv_index_)], values, rtol=1e-9)
    assert auto.calibrator_.sharpness_ == pytest.approx(Calibrator().fit(values, codes, weights).sharpness_, rel=1e-6)
    honest = np.zeros((60, 3))
    for train, test in folds:
        honest[test] = Calibrator().fit(values[train], codes[train], weights[train]).predict_proba(values[test])
    twice = np.repeat(np.arange(60), (2 * weights).astype(int))
    error = expected_calibration_error(codes[twice], honest[twice], classes=np.arange(3))
    assert auto.calibration_error_ == pytest.approx(error, rel=1e-6)
    balanced = recipes.auto(X[:40], y[:40], candidates=simple(), class_weight="balanced")
    by_hand = (40 / (3 * np.bincount(codes[:40])))[codes[:40]]
    same = recipes.auto(X[:40], y[:40], candidates=simple(), sample_weight=by_hand)
    np.testing.assert_allclose(balanced.predict_proba(X), same.predict_proba(X), rtol=1e-7)


def test_small_classes():
    X, y = words(21)
    y[:3] = "rare"
    with pytest.warns(UserWarning, match="class 'rare' has 3 objects, fewer than cv=5; 3 folds"):
        auto = AutoClassifier(candidates=simple()).fit(X, y)
    assert len(auto.results_[0]["fold_errors"]) == 3
    y[:2] = "one"
    with pytest.raises(ValueError, match="class 'rare' has 1 object; expected at least 2"):
        AutoClassifier(candidates=simple()).fit(X, y)
    with pytest.raises(ValueError, match="one class only: "):
        AutoClassifier(candidates=simple()).fit(X, ["one"] * 21)


def test_wrong_settings_and_inputs():
    X, y = words(30)
    with pytest.raises(ValueError, match="'class_weight' parameter of AutoClassifier"):
        AutoClassifier(class_weight="even").fit(X, y)
    with pytest.raises(ValueError, match=r"all candidates failed.*Stub does not request sample_weight"):
        AutoClassifier(candidates={"stub": Stub(cost=0)}).fit(X, y, sample_weight=np.ones(30))
    with pytest.raises(ValueError, match="'kind' parameter"):
        AutoClassifier("trees").fit(X, y)
    with pytest.raises(ValueError, match=r"among 'plug_in', 'plug_in_aligned', .* Got \['series'\]"):
        AutoClassifier(candidates=["series"]).fit(X, y)
    with pytest.raises(ValueError, match="'candidates' parameter"):
        AutoClassifier(candidates={}).fit(X, y)
    with pytest.raises(ValueError, match="'cv' parameter"):
        AutoClassifier(cv=1).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        AutoClassifier().fit(X, y[:5])
    with pytest.raises(ValueError, match="kind='series' or kind='points'"):
        AutoClassifier().fit([np.random.default_rng(i).standard_normal((9, 2)) for i in range(30)], y)


def test_warnings_of_folds_are_kept_in_the_results():
    class Loud(Stub):
        def fit(self, X, y):
            import warnings

            warnings.warn("careful", UserWarning, stacklevel=1)
            return super().fit(X, y)

    with pytest.warns(UserWarning, match="careful") as caught:
        auto = AutoClassifier(candidates={"loud": Loud("loud", cost=0)}).fit(X2, Y2)
    assert len(caught) == 1  # of the last fit
    assert auto.results_[0]["warnings"] == ["careful"]


def test_warnings_about_objects_are_shown_once_and_kept():
    X = ["my thesis advisor", "my class advisor", "my advisor", "a professor here", "professor of it", ""] * 2
    with pytest.warns(UserWarning, match="documents are empty") as caught:
        auto = AutoClassifier("documents", candidates=["words_svm"], cv=2).fit(X, [0, 0, 0, 1, 1, 1] * 2)
    assert len(caught) == 1
    assert any("documents are empty" in text for text in auto.results_[0]["warnings"])


def test_a_rare_class_does_not_spoil_the_foresight(stubs):
    X, y = [*X2 * 25, "ca", "cb"], np.append(np.tile(Y2, 25), [2, 2])

    class Three(Stub):
        def decision_function(self, X):
            return np.array([[x[0] == letter for letter in "abc"] for x in X], float)

    tried = {"a": Three("a"), "b": Three("b", cost=2.0)}
    with pytest.warns(UserWarning, match="2 folds"):
        auto = AutoClassifier(candidates=tried, budget=1e6).fit(X, y)
    assert names(auto, "done") == ["a", "b"]


def test_progress_is_one_line_per_candidate(capsys, stubs):
    AutoClassifier(candidates={"a": Stub("a"), "b": Stub("b", wrong=0.5)}, budget=1000, verbose=1).fit(X2, Y2)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "AutoClassifier: a done, error 0.0% ± 0.0%, 160.0 s; 1 to go, 840 s left",
        "AutoClassifier: b done, error 50.0% ± 0.0%, 160.0 s; 0 to go, 680 s left",
    ]


def test_candidates_of_each_kind():
    rng = np.random.default_rng(0)
    dna = ["".join(rng.choice(list("ACGT"), 30)) for _ in range(5)]
    aligned = candidates("symbols", dna)
    assert list(aligned) == ["plug_in", "plug_in_aligned", "spectrum_svm", "symbols", "aligned_symbols"]
    assert "odds" in dict(aligned["symbols"].named_steps["kernels"].transformer_list)  # of DNA
    assert list(candidates("symbols", [*dna, "ACG"])) == ["plug_in", "spectrum_svm", "fisher_svm", "symbols"]
    assert list(candidates("series", [])) == ["plug_in", "fisher_svm", "series"]
    assert list(candidates("points", [])) == ["plug_in", "product_svm", "points"]
    assert list(candidates("documents", [])) == ["words_svm", "text"]
    squares = ["0" * n + "2" * n + "4" * n + "6" * n for n in (3, 4, 5)]
    assert list(candidates("codes", squares)) == ["plug_in", "spectrum_svm", "contours"]
    steps = candidates("codes", [[0, 1, 2, 3], [0, 0, 1, 2, 2, 3]])
    assert steps["contours"].named_steps["channels"].alphabet == 4
    with pytest.raises(ValueError, match="'kind' parameter of candidates"):
        candidates("aligned", dna)


def test_integers_that_are_not_small_are_symbols_when_said():
    rng = np.random.default_rng(0)
    X = [rng.integers(1000 + 5 * (i % 2), 1010, 8) for i in range(20)]
    auto = AutoClassifier("symbols", candidates=["plug_in", "spectrum_svm"]).fit(X, np.arange(20) % 2)
    assert names(auto, "done") == ["plug_in", "spectrum_svm"]


def test_sets_of_points():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = [rng.standard_normal((12, 2)) * [1, 1 + 2 * c] + c for c in y]
    auto = AutoClassifier("points", cv=3).fit(X, y)
    assert names(auto, "done") == ["plug_in", "product_svm", "points"]
    assert auto.score(X, y) > 0.8
    shuffled = [x[rng.permutation(len(x))] for x in X]
    np.testing.assert_allclose(auto.predict_proba(shuffled), auto.predict_proba(X), atol=1e-9)


def test_same_seed_same_result_whatever_the_threads():
    X, y = words()
    first = AutoClassifier(candidates=["plug_in", "spectrum_svm"], random_state=1).fit(X, y)
    second = AutoClassifier(candidates=["plug_in", "spectrum_svm"], random_state=1, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    drawn = AutoClassifier(candidates=["plug_in"], random_state=np.random.RandomState(0)).fit(X, y)
    again = AutoClassifier(candidates=["plug_in"], random_state=np.random.RandomState(0)).fit(X, y)
    np.testing.assert_array_equal(drawn.cv_index_, again.cv_index_)


def test_times_are_those_of_the_wall():
    class Slow(Stub):
        def fit(self, X, y):
            time.sleep(0.02)
            return super().fit(X, y)

    auto = AutoClassifier(candidates={"slow": Slow("slow", cost=0)}, cv=2).fit(X2, Y2)
    assert 0.04 <= auto.results_[0]["fit_seconds"] < 5
