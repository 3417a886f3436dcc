"""Which columns of a family a decision rests on: labels, sums by column, logos."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from genkern import FisherScore, ProfileHMM, ProfileHMMEstimator, Spectrum, TopScore, explain
from genkern.plots import LogoDisplay

LETTERS = "ACGTA"  # of the family; classes differ in the third column


@pytest.fixture(scope="module")
def families():
    match = np.full((5, 4), 0.04)
    match[np.arange(5), ["ACGT".index(letter) for letter in LETTERS]] = 0.88
    other = match.copy()
    other[2] = match[2, [0, 1, 3, 2]]
    models = [ProfileHMM(table, alphabet="dna").with_flanks("glocal", flank=2.0) for table in (match, other)]
    X = [x for seed, model in enumerate(models) for x in model.sample(60, rng=seed)]
    return X, np.repeat([0, 1], 60), models


@pytest.mark.parametrize("features", [FisherScore, TopScore])
def test_decisions_rest_on_the_column_that_differs(families, features):
    X, y, _ = families
    pipeline = make_pipeline(features(ProfileHMMEstimator(n_columns=5, alphabet="dna", n_init=1)), LinearSVC(C=0.1))
    pipeline.fit(X, y)
    assert pipeline.score(X, y) > 0.9
    explanation = explain(pipeline, "AACGTAC", label=0)
    np.testing.assert_allclose(
        explanation.positions.sum() + explanation.rest + explanation.intercept, explanation.decision
    )
    by_column = explanation.by_column()
    assert by_column.shape == (6,)
    flanks = sum(c for name, c in zip(explanation.names, explanation.contributions) if "flanks" in name or name == "v")
    np.testing.assert_allclose(by_column.sum() + flanks + explanation.intercept, explanation.decision)
    logo = LogoDisplay.from_explanation(explanation)
    assert logo.information.shape == (5,)
    if features is FisherScore:
        assert np.abs(by_column).argmax() == 3
        assert logo.information.argmax() == 2
        assert 'data-symbol="G"' in logo.svg()
    assert "contribution" in logo.svg()
    labels = " | ".join(explanation.labels)
    for words in (
        "G in column 3",
        "A inserted after column 0",
        "match to deletion after column 2",
        "entry at column 1",
        "flank before the columns: stay",
        "leave column 5",
    ):
        assert words in labels
    assert "emission" not in labels


def test_logo_of_a_family(families):
    model = families[2][0]
    logo = LogoDisplay.from_model(model)
    expected = (model.match * np.log2(model.match / model.null)).sum(axis=1)
    np.testing.assert_allclose(logo.information, expected)
    assert "5 columns over 4 symbols" in logo.description


def test_what_has_no_columns_is_refused(families):
    X, y, _ = families
    explanation = explain(make_pipeline(Spectrum(k=2), LinearSVC()).fit(X, y), X[0])
    with pytest.raises(ValueError, match="expected features of profiles"):
        explanation.by_column()
    with pytest.raises(ValueError, match="columns of a family"):
        LogoDisplay.from_explanation(explanation)
