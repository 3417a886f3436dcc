"""One kernel at a time, with fixed settings, on the two sets that come with the package."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import SVC

from genkern import FisherScore, Gram, HMMEstimator, PlugInClassifier, Polynomial, evaluate, recipes
from genkern.datasets import Dataset, load_japanese_vowels, load_splice_junctions
from genkern.papers.shared.report import Report, Table, percent
from genkern.papers.shared.study import Study

PROTOCOL = (
    "Splice junctions (3186 aligned windows) and Japanese vowels (640 series), stratified 5-fold cross-validation. "
    "Settings were chosen by hand with an eye on these errors: differences of a percent or so are optimistic."
)


def report(study: Study) -> Report:
    """Return the errors of all kernels on both sets."""
    names = [(name, contender) for name, load in SETS.items() for contender in load(study.quick)[1]]
    parts = study.map(_part, {f"{name}: {contender}": (name, contender, study.quick) for name, contender in names})
    rows = [[name, contender, percent(parts[f"{name}: {contender}"])] for name, contender in names]
    table = Table("Errors in per cent, ± standard deviation over folds.", ["set", "method", "error"], rows)
    title = "One kernel at a time: plug-in, Fisher, product, mean map and spectrum"
    source = "The models of the papers on two public sets; no paper has these figures."
    return Report(study.name, title, source, PROTOCOL, [table], quick=study.quick)


def _part(name: str, contender: str, quick: bool) -> list[float]:
    """Return the errors of one contender in all folds, which are the same for all."""
    data, contenders = SETS[name](quick)
    found = evaluate(data.X, data.y, {contender: contenders[contender]}, folds=2 if quick else 5)
    errors: list[float] = found.best.fold_errors.tolist()
    return errors


def _junctions(quick: bool) -> tuple[Dataset, dict[str, Any]]:
    """Return the splice junctions: stationary models, word counts, and models that know the position."""
    data = load_splice_junctions()
    states = len(data.X[0])
    # With a state per position the segmental first guess is nearly the answer, so EM may stop soon.
    aligned = HMMEstimator(states, structure="left-right", init="segmental", tol=1e-4)
    quadratic = Pipeline(
        [
            ("fisher", FisherScore(aligned)),
            ("norm", Normalizer()),
            ("gram", Gram(Polynomial(degree=2, offset=1.0))),
            ("svm", SVC(kernel="precomputed")),
        ]
    )
    linear = recipes.fisher_svm().set_params(fisher__estimator=aligned)
    # Models that find little to hold on to creep for thousands of steps; a looser end changes these errors little.
    few = HMMEstimator(4, tol=1e-4, random_state=0)
    contenders = {
        "plug-in HMM, 4 states": PlugInClassifier(few),
        "Fisher score, HMM of 4 states": recipes.fisher_svm().set_params(fisher__estimator=few),
        "product kernel of HMMs, 2 states each": recipes.product_svm(2),
        "mean map kernel of HMMs, 2 states each": recipes.meanmap_svm(2),
        "spectrum, words of 5 letters": recipes.spectrum_svm(5, alphabet="dna"),
        f"plug-in HMM, {states} states": PlugInClassifier(aligned),
        f"Fisher score, HMM of {states} states": linear,
        "Fisher score, quadratic kernel": quadratic,
    }
    return data.take(range(0, 3186, 12)) if quick else data, contenders


def _vowels(quick: bool) -> tuple[Dataset, dict[str, Any]]:
    """Return the Japanese vowels: short series of vectors, nine speakers."""
    data = load_japanese_vowels()
    left_right = HMMEstimator(5, structure="left-right")
    fisher = recipes.fisher_svm(5, structure="left-right")
    contenders = {
        "plug-in HMM, 5 states": PlugInClassifier(left_right),
        "Fisher score, HMM of 5 states": fisher,
        "product kernel of HMMs, 2 states each": recipes.product_svm(2),
        "mean map kernel of HMMs, 2 states each": recipes.meanmap_svm(2),
    }
    return data.take(range(0, 640, 6)) if quick else data, contenders


SETS = {"splice junctions": _junctions, "Japanese vowels": _vowels}
