"""All public estimators against scikit-learn's checks (2-D arrays) and ours (ragged lists).

``CASES`` is how a new estimator gets tested: add one line. ``make`` must give one that fits in milliseconds without
warnings; an entry in ``expected`` needs a reason that holds for good, and is refused once the check passes.
"""

from __future__ import annotations

import pytest
from checks import CHECKS, Case
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import genkern
from genkern import (
    RBF,
    CategoricalEstimator,
    FisherScore,
    FitEach,
    GaussianEstimator,
    Gram,
    HMMEstimator,
    Linear,
    MeanMap,
    PlugInClassifier,
    Polynomial,
    ProbabilityProduct,
    Spectrum,
    Store,
)
from genkern.embed import ScaleSeries

MODELS = "returns models, which cannot be subtracted or have a shape"
LISTS = "fits on X.tolist(), a list of sequences, for which every length is legal in predict"
SYMBOLS = ("strings",)
SERIES = ("series",)

svc = [("svc", SVC(kernel="precomputed"))]
linear = [("svc", LinearSVC())]


def hmm(**params):
    return HMMEstimator(2, max_iter=3, tol=0, random_state=0, **params)


def product(kernel):
    return lambda: Pipeline([("models", FitEach(hmm())), ("gram", Gram(kernel.normalized()))])


fitted_models = [("models", FitEach(hmm())), ("gram", Gram(MeanMap(length=5).normalized())), *svc]

CASES = {
    "HMMEstimator": Case(hmm, finish=PlugInClassifier, grid={"estimator__n_states": [1, 2]}),
    "CategoricalEstimator": Case(
        CategoricalEstimator, SYMBOLS, PlugInClassifier, {"estimator__pseudocount": [0.1, 1.0]}, table=False
    ),
    "GaussianEstimator": Case(
        GaussianEstimator, SERIES, PlugInClassifier, {"estimator__covariance": ["diagonal", "full"]}
    ),
    "PlugInClassifier": Case(
        lambda: PlugInClassifier(hmm()),
        finish=lambda classifier: classifier,
        grid={"priors": ["uniform", "empirical"]},
        expected={"check_classifiers_train": LISTS},
    ),
    "FitEach": Case(
        lambda: FitEach(hmm(), store=Store()),
        finish=[("gram", Gram(ProbabilityProduct(length=5).normalized())), *svc],
        grid={"first__estimator__n_states": [1, 2], "gram__kernel__kernel__rho": [0.5, 1.0]},
        expected=dict.fromkeys(
            (
                "check_pipeline_consistency",
                "check_estimators_pickle",
                "check_transformer_data_not_an_array",
                "check_transformer_general",
                "check_methods_sample_order_invariance",
                "check_methods_subset_invariance",
                "check_fit_idempotent",
            ),
            MODELS,
        ),
    ),
    "FisherScore": Case(
        lambda: FisherScore(hmm()), finish=linear, grid={"first__information": ["complete", "identity"]}
    ),
    "FisherScore, empirical": Case(
        lambda: FisherScore(hmm(), information="empirical", length_norm="sqrt"),
        finish=linear,
        grid={"first__ridge": [0.0, 1e-2]},
    ),
    "FisherScore of bags": Case(
        lambda: FisherScore(GaussianEstimator()), SERIES, linear, {"first__estimator__min_covar": [1e-3, 1e-2]}
    ),
    "ScaleSeries": Case(ScaleSeries, SERIES, fitted_models, {"svc__C": [1.0, 10.0]}, table=False),
    "Spectrum": Case(Spectrum, SYMBOLS, linear, {"first__k": [1, 2]}, table=False),
    "Spectrum, sparse": Case(
        lambda: Spectrum(2, sparse=True, normalize="frequency"), SYMBOLS, linear, {"first__k": [1, 2]}, table=False
    ),
    "Gram(Linear)": Case(lambda: Gram(Linear()), (), ()),
    "Gram(RBF)": Case(lambda: Gram(RBF(0.1)), (), ()),
    "Gram(Polynomial)": Case(lambda: Gram(Polynomial(2, 1.0).normalized()), (), ()),
    "Gram of Fisher scores": Case(
        lambda: make_pipeline(FisherScore(hmm()), Gram(Polynomial(2, 1.0).normalized())),
        finish=svc,
        grid={"svc__C": [1.0, 10.0]},
        table=False,
        kernel=True,
    ),
    "Gram of products": Case(
        product(ProbabilityProduct(length=5)), finish=svc, grid={"svc__C": [1.0, 10.0]}, table=False, kernel=True
    ),
    "Gram of mean maps": Case(
        product(MeanMap(length=5)), finish=svc, grid={"svc__C": [1.0, 10.0]}, table=False, kernel=True
    ),
}


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.table])
def test_scikit_learn_checks(name):
    case = CASES[name]
    results = check_estimator(case.make(), expected_failed_checks=case.expected, on_skip=None, on_fail=None)
    assert len(results) > 30  # a tag that makes scikit-learn skip everything proves nothing
    failures = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert not failures
    skipped = {r["check_name"] for r in results if r["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}  # needs SCIPY_ARRAY_API in the environment
    still_failing = {r["check_name"] for r in results if r["status"] == "xfail"}
    assert still_failing == set(case.expected)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.kinds == SYMBOLS])
def test_what_takes_symbols_only_says_so(name):
    tags = get_tags(CASES[name].make()).input_tags
    assert (tags.two_d_array, tags.categorical, tags.string) == (False, True, True)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, case in CASES.items() for kind in case.kinds])
def test_ragged_lists(name, kind, check):
    check(CASES[name], kind)


def test_every_public_estimator_is_in_the_table():
    public = {name: getattr(genkern, name) for name in genkern.__all__}
    estimators = {name for name, value in public.items() if isinstance(value, type) and hasattr(value, "get_params")}
    kernels = {name for name in estimators if issubclass(public[name], genkern.Kernel)}
    assert estimators - kernels <= {name.split("(")[0].split(",")[0].split(" ")[0] for name in CASES}
