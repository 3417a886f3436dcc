"""Pipelines that are not linear: the error names what helps, and it does."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from genkern import (
    RBF,
    KernelLogisticRegression,
    KernelRidgeClassifierCV,
    KernelSVMClassifierCV,
    MarkovChainEstimator,
    ModelLogOdds,
    PlugInClassifier,
    Spectrum,
    explain,
    recipes,
)

RNG = np.random.default_rng(2)
Y = np.arange(18) % 3
X = ["".join(RNG.choice(list("ACDE"), 15)) for _ in Y]
COUNTS = Spectrum(1, "ACDE")
KERNEL = RBF(0.5)
CASES: dict[str, Any] = {
    "protein": recipes.symbols("protein", n_lags=2, n_gaps=1, table=None),
    "ridge": make_pipeline(COUNTS, KernelRidgeClassifierCV(kernel=KERNEL)),
    "logistic": make_pipeline(COUNTS, KernelLogisticRegression(kernel=KERNEL)),
    "svm": make_pipeline(COUNTS, KernelSVMClassifierCV(kernel=KERNEL)),
    "one vs rest": make_pipeline(COUNTS, OneVsRestClassifier(SVC())),
    "votes": make_pipeline(COUNTS, SVC()),
    "pairs": make_pipeline(COUNTS, SVC(kernel="linear")),
    "bayes": make_pipeline(COUNTS, GaussianNB()),
    "search": GridSearchCV(make_pipeline(COUNTS, KernelRidgeClassifierCV(kernel=KERNEL)), {"spectrum__k": [1]}, cv=2),
    "inner search": make_pipeline(COUNTS, GridSearchCV(OneVsRestClassifier(SVC()), {"estimator__C": [1.0]}, cv=2)),
}


@pytest.mark.parametrize("name", list(CASES))
def test_what_the_error_says_helps(name: str) -> None:
    model = CASES[name].fit(X, Y)
    with pytest.raises(TypeError, match="explain: ") as caught:
        explain(model, X[0])
    (change,) = re.findall(r"model\.set_params\((.*)\)\.fit\(X, y\)", str(caught.value))
    key, _, value = change.partition("=")
    model.set_params(**{key: eval(value, {"LinearSVC": LinearSVC})}).fit(X, Y)
    assert len(explain(model, X[0]).positions) == 15  # type: ignore[arg-type]


def test_gram_matrices_and_class_models_have_no_features() -> None:
    for recipe in (recipes.product_svm(1), recipes.meanmap_svm(1)):
        with pytest.raises(TypeError, match=r"Gram matrix.*recipes.fisher_svm\(\)"):
            explain(recipe.fit(X, Y), X[0])
    chain = MarkovChainEstimator(1, alphabet="ACDE")
    with pytest.raises(TypeError, match=r"make_pipeline\(ModelLogOdds\(estimator\), LogisticRegression\(\)\)"):
        explain(PlugInClassifier(chain).fit(X, Y), X[0])
    explain(make_pipeline(ModelLogOdds(chain), LogisticRegression()).fit(X, Y), X[0])


def test_an_automatic_classifier_names_a_candidate() -> None:
    model = PlugInClassifier(MarkovChainEstimator(1, alphabet="ACDE"))
    auto = recipes.auto(X, Y, cv=2, candidates={"plug_in": model, "spectrum_svm": recipes.spectrum_svm(1)})
    auto.best_name_, auto.best_estimator_ = "plug_in", model.fit(X, Y)
    with pytest.raises(TypeError, match=r"chosen 'plug_in'.*candidates=\['spectrum_svm'\]"):
        explain(auto, X[0])
