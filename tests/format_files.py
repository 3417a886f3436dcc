"""Writes the files of the present format that are kept in ``tests/data`` for ever.

``python tests/format_files.py`` makes ``tests/data/format<N>`` for a new format N; those of earlier formats are never
written again. ``test_saving_formats.py`` loads all of them, and knows what they say.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from genkern import (
    HMM,
    RBF,
    AutoClassifier,
    Categorical,
    FisherScore,
    Gaussian,
    GaussianEstimator,
    Gram,
    HMMEstimator,
    KernelRidgeClassifierCV,
    MarkovChainEstimator,
    MixtureEstimator,
    Nystrom,
    PlugInClassifier,
    ProbabilityProduct,
    Spectrum,
    recipes,
    save,
)
from genkern.saving.files import FORMAT

WORDS = ["aaab", "aabaa", "abaa", "aaaa", "bbab", "bbb", "babb", "bbbb"]
LABELS = ["x"] * 4 + ["y"] * 4
ROWS = np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 1.0], [0.2, 0.9], [3.0, 2.0], [3.5, 4.0], [2.9, 2.5], [4.0, 3.0]])
SERIES = [np.sin(np.arange(12.0)[:, None] / (1 + i // 4)) + 0.1 * i for i in range(8)]
TEXTS = ["my thesis advisor", "my own classes", "my advisor", "the classes", "professor of computing", "a professor"]
TEXTS += ["chair of computing", "the chair"]


def examples() -> dict[str, tuple[Any, Any]]:
    """Return fitted estimators, and what they are asked."""
    aligned = recipes.aligned_symbols(ks=(1,), region_ks=(), orders=(0,), Cs=(1.0,), cv=2)
    hmm = HMMEstimator(2, max_iter=3, tol=0, random_state=0)
    chains = PlugInClassifier(MarkovChainEstimator(1))
    ridge = KernelRidgeClassifierCV(kernel=RBF(0.5))
    four = [word.ljust(5, "a") for word in WORDS]
    learners: dict[str, tuple[Any, Any]] = {
        "spectrum_svm": (recipes.spectrum_svm(2), WORDS),
        "fisher_svm": (recipes.fisher_svm(2), SERIES),
        "product_svm": (recipes.product_svm(1), WORDS),
        "aligned_symbols": (aligned, four),
        "symbols": (recipes.symbols(n_lags=1, n_gaps=1), WORDS),
        "text": (recipes.text(cv=2), TEXTS),
        "plug_in": (chains, WORDS),
        "ridge": (ridge, ROWS),
        "svc": (SVC(), ROWS),
        "search": (GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2), ROWS),
        "calibrated": (CalibratedClassifierCV(LinearSVC(), method="isotonic", cv=2), ROWS),
        "products": (make_pipeline(Gram(RBF(0.5)), SVC(kernel="precomputed")), ROWS),
        "nystrom": (make_pipeline(Nystrom(RBF(0.5), 3), LinearSVC()), ROWS),
        "mixture": (make_pipeline(FisherScore(MixtureEstimator(2, max_iter=3, tol=0)), LinearSVC()), SERIES),
        "states": (make_pipeline(FisherScore(hmm), LinearSVC()), WORDS),
        "auto": (AutoClassifier(candidates=["plug_in", "spectrum_svm"], cv=2), WORDS),
    }
    law = HMM([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], Categorical([[0.9, 0.1], [0.3, 0.7]], alphabet="ab"))
    return {name: (learner.fit(X, LABELS), X) for name, (learner, X) in learners.items()} | {
        "hmm": (law, WORDS),
        "gaussian": (Gaussian([0.0, 1.0], [1.0, 2.0]), [ROWS]),
        "hmm_estimator": (hmm.fit(WORDS), WORDS),
        "gaussian_estimator": (GaussianEstimator("full").fit([ROWS]), [ROWS]),
        "kernel": (ProbabilityProduct(0.5, 4).normalized() + 2.0 * ProbabilityProduct(1.0, 3), [law, law]),
        "spectrum": (Spectrum(2, "dna").fit(["ACGT"]), ["ACGTN", "GGG"]),
    }


def answers(thing: Any, X: Any) -> list[float]:
    """Return what is to stay the same, as numbers."""
    for name in ("decision_function", "predict_proba", "transform", "log_prob"):
        if hasattr(thing, name):
            found = getattr(thing, name)(X)
            break
    else:
        found = thing.model_.log_prob(X) if hasattr(thing, "model_") else thing(X)
    found = found.toarray() if hasattr(found, "toarray") else np.asarray(found)
    return [float(value) for value in found.ravel()[:6]]


if __name__ == "__main__":
    folder = Path(__file__).parent / "data" / f"format{FORMAT}"
    folder.mkdir(parents=True, exist_ok=False)
    for name, (thing, X) in examples().items():
        save(thing, folder / f"{name}.gk", summary={"objects": len(X)})
        sys.stdout.write(f'    "{name}": {answers(thing, X)},\n')
