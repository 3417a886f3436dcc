"""One estimator per class: dicts of estimators, of models, and of both."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import get_tags

from genkern import (
    Categorical,
    CategoricalEstimator,
    ClassMixture,
    FisherScore,
    HMMEstimator,
    MarkovChainEstimator,
    ModelLogOdds,
    PlugInClassifier,
    StateSpace,
    TopScore,
)
from genkern.saving import load, save

RNG = np.random.default_rng(5)
X = ["".join(RNG.choice(list("abc"), 12, p=p)) for p in ([0.6, 0.2, 0.2], [0.2, 0.3, 0.5]) for _ in range(6)]
Y = np.array(["two"] * 6 + ["one"] * 6)
X, Y = [*X, "abab"], np.append(Y, "one")
SETTINGS = {"max_iter": 3, "tol": 0, "random_state": 0}


def by_hand(**estimators):
    """Return the models of classes that are fitted one by one, over the alphabet of all."""
    return {c: clone(estimators[c]).fit([x for x, own in zip(X, Y) if own == c]).model_ for c in sorted(estimators)}


def pair():
    return {"two": HMMEstimator(2, CategoricalEstimator("abc"), **SETTINGS), "one": CategoricalEstimator("abc")}


@pytest.mark.parametrize("make", [PlugInClassifier, TopScore, ModelLogOdds, FisherScore])
def test_each_class_is_fitted_by_its_own_estimator(make):
    fitted = make(pair()).fit(X, Y)
    expected = ClassMixture(by_hand(**pair()), [7 / 13, 6 / 13])
    assert fitted.model_ == expected
    assert list(fitted.model_.labels) == ["one", "two"]
    if make is PlugInClassifier:
        joint = [m.log_prob(X) + np.log(a) for m, a in zip(expected.models, (7 / 13, 6 / 13))]
        np.testing.assert_allclose(fitted.decision_function(X), joint[1] - joint[0], rtol=1e-12)
    else:
        np.testing.assert_array_equal(fitted.transform(X), make(expected).fit(X, Y).transform(X))


def test_alphabets_are_those_of_all_objects():
    few = ["aab", "ab", "bc", "cb"]
    dictionary = {0: HMMEstimator(1, **SETTINGS), 1: MarkovChainEstimator(1)}
    fitted = PlugInClassifier(dictionary).fit(few, [0, 0, 1, 1])
    assert fitted.models_[0].emissions.alphabet.size == 3
    assert np.isfinite(fitted.decision_function(["abc", "ccc"])).all()
    assert not hasattr(dictionary[0], "model_")


def test_some_classes_may_have_models():
    given = Categorical([0.2, 0.3, 0.5], "abc")
    mixed = {"one": given, "two": CategoricalEstimator("abc")}
    fitted = PlugInClassifier(mixed, priors={"one": 0.9, "two": 0.1}).fit(X, Y)
    assert fitted.models_ == [given, by_hand(two=CategoricalEstimator("abc"))["two"]]
    np.testing.assert_array_equal(fitted.priors_, [0.9, 0.1])


def test_states_of_one_model_per_class():
    estimators = {"two": HMMEstimator(2, **SETTINGS), "one": HMMEstimator(3, **SETTINGS)}
    states = StateSpace(estimators).fit(X, Y)
    alone = [StateSpace(m).fit(X).transform(X) for m in states.model_.models]
    np.testing.assert_allclose(states.transform(X), np.hstack(alone), rtol=1e-12)
    assert states.get_feature_names_out().tolist()[2:4] == ["one.state[2]", "two.state[0]"]


def test_labels_are_needed_and_checked():
    assert get_tags(FisherScore(pair())).target_tags.required
    assert not get_tags(FisherScore(by_hand(**pair()))).target_tags.required
    for make in (FisherScore, TopScore, StateSpace):
        with pytest.raises(ValueError, match=f"{make.__name__} requires y"):
            make({"one": HMMEstimator(2), "two": HMMEstimator(2)}).fit(X)
    three = {**pair(), "three": CategoricalEstimator("abc")}
    with pytest.raises(ValueError, match="class 'three' has an estimator, but y has no object"):
        PlugInClassifier(three).fit(X, Y)
    with pytest.raises(ValueError, match="none for 'two'"):
        PlugInClassifier({"one": CategoricalEstimator()}).fit(X, Y)
    with pytest.raises(ValueError, match="same alphabet"):
        PlugInClassifier({"one": CategoricalEstimator("abcd"), "two": CategoricalEstimator()}).fit(X, Y)


def test_fitted_dicts_are_saved(tmp_path):
    fitted = TopScore(pair()).fit(X, Y)
    save(fitted, tmp_path / "top.genkern")
    read = load(tmp_path / "top.genkern")
    np.testing.assert_array_equal(read.transform(X), fitted.transform(X))
    np.testing.assert_array_equal(clone(read).fit(X, Y).transform(X), fitted.transform(X))
