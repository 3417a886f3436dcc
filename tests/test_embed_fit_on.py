"""Models of one class: embeddings that are fitted to the objects of one label only."""

from __future__ import annotations

import numpy as np
import pytest

from genkern import (
    HMM,
    Categorical,
    CategoricalEstimator,
    FisherScore,
    HMMEstimator,
    LatentMeanMap,
    Marginalized,
    Posteriors,
    StateSpace,
)

X = ["abab", "ba", "ccab", "cacb", "ccc", "abb"]
y = np.array(["u", "u", "v", "v", "v", "u"])
ESTIMATOR = HMMEstimator(n_states=2, emission=CategoricalEstimator("abc"), random_state=3)


@pytest.mark.parametrize("embedding", [FisherScore, LatentMeanMap, Marginalized, StateSpace])
def test_every_embedding_by_one_model_has_it(embedding) -> None:
    alone = ESTIMATOR.fit([x for x, of in zip(X, y) if of == "u"]).model_
    found = embedding(ESTIMATOR, fit_on="u").fit(X, y)
    assert found.model_ == alone
    np.testing.assert_array_equal(found.transform(X), embedding(alone).fit(X).transform(X))


@pytest.mark.parametrize("label", ["u", "v"])
def test_the_model_is_that_of_the_objects_of_the_label(label: str) -> None:
    alone = ESTIMATOR.fit([x for x, of in zip(X, y) if of == label]).model_
    embedding = LatentMeanMap(ESTIMATOR, fit_on=label)
    features = embedding.fit_transform(X, y)
    assert embedding.model_ == alone
    np.testing.assert_array_equal(features, LatentMeanMap(alone).fit_transform(X))
    assert embedding.model_ != LatentMeanMap(ESTIMATOR).fit(X).model_
    posteriors = Posteriors(ESTIMATOR, fit_on=label).fit(X, y)
    assert posteriors.model_ == alone
    assert posteriors.transform(X) == Posteriors(alone).fit_transform(X)


def test_the_model_has_the_alphabet_of_all_objects() -> None:
    estimator = HMMEstimator(n_states=2, random_state=3)
    embedding = LatentMeanMap(estimator, fit_on=0).fit(["abab", "cc", "ba"], [0, 1, 0])
    assert embedding.model_.emissions.alphabet.symbols == ("a", "b", "c")


@pytest.mark.parametrize("embedding", [LatentMeanMap(ESTIMATOR, fit_on="w"), Posteriors(ESTIMATOR, fit_on="w")])
def test_labels_are_needed_and_known(embedding) -> None:
    with pytest.raises(ValueError, match=r"requires y"):
        embedding.fit(X)
    with pytest.raises(ValueError, match=r"one of 'u', 'v'\. Got 'w'"):
        embedding.fit(X, y)
    assert embedding.__sklearn_tags__().target_tags.required


def test_contradictions_are_refused() -> None:
    model = HMM([1.0], [[1.0]], Categorical([[0.4, 0.3, 0.3]], alphabet="abc"))
    with pytest.raises(ValueError, match="is for an estimator"):
        LatentMeanMap(model, fit_on="u").fit(X, y)
    with pytest.raises(ValueError, match="per_class=True"):
        LatentMeanMap(ESTIMATOR, per_class=True, fit_on="u").fit(X, y)
