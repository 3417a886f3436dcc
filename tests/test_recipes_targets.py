"""Recipes say at once, by the learner's name, what is wrong with labels, weights and groups."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from genkern import recipes

X = [f"{'ab' * i}b" for i in range(2, 10)]
NAMES = sorted(set(recipes.__all__) - {"AutoClassifier", "auto", "candidates"})  # what returns a pipeline
Y = np.arange(8) % 2
NUMBERS = Y + 0.25
BAD = {
    "short": (Y[:5], r"X has 8 objects and y 5 entries; expected one entry per object\. Give y\[i\] for every X\[i\]"),
    "long": ([0, 1] * 5, r"numbers of samples: \[8, 10\]\. X has 8 objects and y 10 entries"),
    "one": (1, "X has 8 objects and y no list"),
    "none": (None, r"requires y to be passed.* Pass one label per object"),
    "NaN": (np.where(np.arange(8) == 3, np.nan, Y), r"contains NaN at index 3 \(1 such"),
    "None": (["a", None, "b", None, *"abab"], r"contains None at index 1 \(2 such"),
    "continuous": (NUMBERS, r"Unknown label type: continuous.* such as 0\.25.* np\.digitize"),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("what", BAD)
def test_labels_that_are_none_are_refused_before_anything_is_fitted(name, what):
    recipe = getattr(recipes, name)()
    y, words = BAD[what]
    with pytest.raises(ValueError, match=rf"^Recipe of {type(recipe[-1]).__name__}\b.*{words}"):
        recipe.fit(X, y)
    with pytest.raises(ValueError, match=words):
        recipe.fit(X=X, y=y)


@pytest.mark.parametrize("name", NAMES)
def test_two_labels_per_object_are_for_learners_of_several(name):
    recipe = getattr(recipes, name)()
    if name in ("meanmap_svm", "product_svm"):
        return  # one-vs-rest takes indicators: see below
    with pytest.raises(ValueError, match=r"^Recipe of .* got an array of shape \(8, 2\) instead\. Pass one column"):
        recipe.fit(X, np.stack([Y, 1 - Y], axis=1))


@pytest.mark.filterwarnings("ignore")
def test_one_vs_rest_still_takes_indicators():
    fitted = recipes.product_svm(2).fit(X, np.stack([Y, 1 - Y], axis=1))
    assert fitted.predict(X).shape == (8, 2)
    with pytest.raises(ValueError, match="no probabilities, as y had several labels per object"):
        fitted.predict_proba(X)


@pytest.mark.parametrize(("name", "step"), [("symbols", "ridge__groups"), ("spectrum_svm", "svm__sample_weight")])
def test_weights_and_groups_are_counted(name, step):
    words = rf"X has 8 objects and {step} 3 entries"
    with pytest.raises(ValueError, match=rf"^Recipe of \w+: .*{words}"):
        getattr(recipes, name)().fit(X, Y, **{step: [1, 2, 3]})


@pytest.mark.filterwarnings("ignore")
def test_regressors_in_recipes_take_numbers():
    recipe = recipes.spectrum_svm().set_params(svm=Ridge())
    assert recipe.fit(X, NUMBERS).predict(X).shape == (8,)
    with pytest.raises(ValueError, match=r"^Recipe of Ridge: .* y 5 entries"):
        recipe.fit(X, NUMBERS[:5])
