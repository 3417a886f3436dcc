"""All public estimators against scikit-learn's checks (2-D arrays) and ours (ragged lists).

``CASES`` is how a new estimator gets tested: add one line. ``make`` must give one that fits in milliseconds without
warnings; an entry in ``expected`` needs a reason that holds for good, and is refused once the check passes.
"""

from __future__ import annotations

import pytest
from checks import CHECKS, Case, applies
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import genkern
from genkern import (
    RBF,
    AlignedGram,
    AutoClassifier,
    BayesNetEstimator,
    BernoulliEstimator,
    BlockNormalizer,
    CategoricalEstimator,
    CentreSeries,
    Channels,
    CharacteristicFeatures,
    CrossFit,
    DirichletEstimator,
    EmpiricalMean,
    EmpiricalMeanMap,
    EqualErrorClassifier,
    ExponentialEstimator,
    FactorialHMMEstimator,
    FisherScore,
    FitEach,
    GammaEstimator,
    GaussianEstimator,
    GeometricEstimator,
    Gram,
    HMMEstimator,
    KDEEstimator,
    KernelLogisticRegression,
    KernelRidgeClassifierCV,
    KernelSVMClassifierCV,
    LatentMean,
    LatentMeanMap,
    LDSEstimator,
    Linear,
    LinearGaussianNetEstimator,
    LogisticMap,
    LogMap,
    LogOddsWeights,
    Marginalized,
    MarkovChainEstimator,
    MeanMap,
    MixtureEstimator,
    ModelLogOdds,
    MultinomialEstimator,
    MultiScale,
    Nystrom,
    On,
    PeriodicChainEstimator,
    PlugInClassifier,
    PoissonEstimator,
    Polynomial,
    PositionalChainEstimator,
    PositionalSpectrum,
    Posteriors,
    PowerMap,
    ProbabilityProduct,
    ProfileHMMEstimator,
    ProposalFeatures,
    Recode,
    RegionSpectrum,
    ScaleSeries,
    SiteEstimator,
    Spectrum,
    Standardize,
    StateSpace,
    Store,
    SwitchingLDSEstimator,
    TopScore,
    Turns,
    UnitTrace,
    Views,
    VonMisesEstimator,
    Windows,
)

MODELS = "returns models, which cannot be subtracted or have a shape"
VIEWS = "returns several views of each object, which cannot be subtracted"
NO_FEATURES = "gives features where kernel values are due"
NO_KERNEL = "changes kernel values into those of no kernel (whole numbers, mean zero), which are refused"
COPIES = "repeats objects, so that one is held out while its copy is not: another penalty is chosen"
TWICE = {f"check_sample_weight_equivalence_on_{kind}_data": COPIES for kind in ("dense", "sparse")}
ORDER = "shuffles objects, whose order decides on the random start of EM"
SERIES_OUT = "returns series, which have no shape"
LISTS = "fits on X.tolist(), a list of sequences, for which every length is legal in predict"
NO_SHAPE = dict.fromkeys(("check_transformer_data_not_an_array", "check_transformer_general"), SERIES_OUT)
SYMBOLS = ("strings",)
SERIES = ("series",)
WINDOWS = ("windows",)

svc = [("svc", SVC(kernel="precomputed"))]
linear = [("svc", LinearSVC())]


def hmm(**params):
    return HMMEstimator(2, max_iter=3, tol=0, random_state=0, **params)


def product(kernel):
    return lambda: Pipeline([("models", FitEach(hmm())), ("gram", Gram(kernel.normalized()))])


fitted_models = [("models", FitEach(hmm())), ("gram", Gram(MeanMap(length=5).normalized())), *svc]


def views():
    return Views([("scores", FisherScore(hmm())), ("models", FitEach(hmm()))])


two_views = On("scores", Linear().normalized()) + On("models", ProbabilityProduct(length=5).normalized())

CASES = {
    "HMMEstimator": Case(hmm, finish=PlugInClassifier, grid={"estimator__n_states": [1, 2]}),
    "CategoricalEstimator": Case(
        CategoricalEstimator, SYMBOLS, PlugInClassifier, {"estimator__pseudocount": [0.1, 1.0]}
    ),
    "MarkovChainEstimator": Case(
        lambda: MarkovChainEstimator(2, backoff=1.0),
        SYMBOLS,
        PlugInClassifier,
        {"estimator__order": [0, 1]},
    ),
    "PeriodicChainEstimator": Case(
        lambda: PeriodicChainEstimator(1, 2, max_iter=3, tol=0),
        SYMBOLS,
        PlugInClassifier,
        {"estimator__period": [1, 2]},
    ),
    "ProfileHMMEstimator": Case(
        lambda: ProfileHMMEstimator(n_columns=3, n_init=1, max_iter=2, tol=0),
        SYMBOLS,
        PlugInClassifier,
        {"estimator__n_columns": [2, 3]},
    ),
    "PositionalChainEstimator": Case(
        lambda: PositionalChainEstimator(1, 12), SYMBOLS, PlugInClassifier, {"estimator__order": [0, 1]}
    ),
    "GaussianEstimator": Case(
        GaussianEstimator, SERIES, PlugInClassifier, {"estimator__covariance": ["diagonal", "full"]}
    ),
    "KDEEstimator": Case(KDEEstimator, SERIES, PlugInClassifier, {"estimator__variance": ["lscv", "scott", 0.5]}),
    "FactorialHMMEstimator": Case(
        lambda: FactorialHMMEstimator(n_init=1, max_iter=3, tol=0),
        SERIES,
        PlugInClassifier,
        {"estimator__n_states": [(1,), (2, 2)]},
    ),
    "LDSEstimator": Case(
        lambda: LDSEstimator(1, max_iter=3, tol=0), SERIES, PlugInClassifier, {"estimator__n_states": [1, 2]}
    ),
    "SwitchingLDSEstimator": Case(
        lambda: SwitchingLDSEstimator(2, 1, n_init=1, max_iter=3, tol=0),
        SERIES,
        PlugInClassifier,
        {"estimator__n_regimes": [1, 2]},
    ),
    "BayesNetEstimator": Case(
        lambda: BayesNetEstimator({"h": [], "a": ["h"], "b": ["h"]}, hidden={"h": 2}, max_iter=3, tol=0),
        ("bits",),
        PlugInClassifier,
        {"estimator__hidden": [{"h": 1}, {"h": 2}]},
    ),
    "LinearGaussianNetEstimator": Case(
        lambda: LinearGaussianNetEstimator({"z": [], "x": ["z"], "y": ["z"]}, hidden={"z": 1}, max_iter=3, tol=0),
        SERIES,
        PlugInClassifier,
        {"estimator__ridge": [0.0, 1.0]},
    ),
    "SiteEstimator": Case(SiteEstimator, WINDOWS, PlugInClassifier, {"estimator__pseudocount": [0.1, 1.0]}),
    "BernoulliEstimator": Case(
        BernoulliEstimator, ("bits",), PlugInClassifier, {"estimator__estimate": ["map", "predictive"]}
    ),
    "DirichletEstimator": Case(
        DirichletEstimator, ("shares",), PlugInClassifier, {"estimator__pseudocount": [0.01, 1.0]}
    ),
    "ExponentialEstimator": Case(
        ExponentialEstimator, ("positive",), PlugInClassifier, {"estimator__estimate": ["map", "ml"]}
    ),
    "GammaEstimator": Case(GammaEstimator, ("positive",), PlugInClassifier, {"estimator__pseudocount": [0.01, 1.0]}),
    "GeometricEstimator": Case(
        GeometricEstimator, ("counts",), PlugInClassifier, {"estimator__prior": [(1.01, 1.01), (2, 2)]}
    ),
    "MultinomialEstimator": Case(
        MultinomialEstimator,
        ("documents",),
        PlugInClassifier,
        {"estimator__estimate": ["map", "predictive"], "estimator__total": [None, 5]},
    ),
    "PoissonEstimator": Case(
        PoissonEstimator, ("counts",), PlugInClassifier, {"estimator__estimate": ["map", "predictive"]}
    ),
    "VonMisesEstimator": Case(VonMisesEstimator, SERIES, PlugInClassifier, {"estimator__pseudocount": [0.01, 1.0]}),
    "MixtureEstimator": Case(
        lambda: MixtureEstimator(2, max_iter=3, tol=0),
        finish=PlugInClassifier,
        grid={"estimator__n_components": [1, 2]},
    ),
    "FisherScore of mixtures": Case(
        lambda: FisherScore(MixtureEstimator(2, max_iter=3, tol=0)),
        finish=linear,
        grid={"first__estimator__n_components": [1, 2]},
    ),
    "PlugInClassifier": Case(
        lambda: PlugInClassifier(hmm()),
        finish=lambda classifier: classifier,
        grid={"priors": ["uniform", "empirical"]},
        expected={"check_classifiers_train": LISTS, "check_sample_weight_equivalence_on_dense_data": ORDER},
    ),
    "EqualErrorClassifier": Case(
        # A check of the oldest scikit-learn that is allowed has a class of four members, too few for five folds.
        lambda: EqualErrorClassifier(PlugInClassifier(GaussianEstimator()), cv=3),
        (),
        expected={"check_classifiers_train": LISTS},
    ),
    "EqualErrorClassifier of HMMs": Case(
        lambda: EqualErrorClassifier(PlugInClassifier(hmm()), cv=3),
        finish=lambda classifier: classifier,
        grid={"estimator__priors": ["uniform", "empirical"]},
    ),
    "AutoClassifier": Case(
        lambda: AutoClassifier("series", candidates={"plug_in": PlugInClassifier(GaussianEstimator())}, cv=2),
        SERIES,
        lambda classifier: classifier,
        {"random_state": [0, 1]},
        expected={"check_classifiers_train": LISTS},
    ),
    "AutoClassifier of symbols": Case(
        lambda: AutoClassifier(candidates=["plug_in", "spectrum_svm"], cv=2),
        SYMBOLS,
        lambda classifier: classifier,
        {"candidates": [["plug_in"], ["spectrum_svm"]]},
    ),
    "KernelLogisticRegression": Case(
        KernelLogisticRegression,
        (),
        expected={
            "check_decision_proba_consistency": NO_FEATURES,
            "check_estimators_dtypes": NO_KERNEL,
            "check_positive_only_tag_during_fit": NO_KERNEL,
        },
    ),
    "KernelLogisticRegression(linear)": Case(lambda: KernelLogisticRegression(kernel="linear"), ()),
    "KernelLogisticRegression(RBF)": Case(lambda: KernelLogisticRegression(kernel=RBF(0.1), bias="penalised"), ()),
    "KernelLogisticRegression of products": Case(
        lambda: make_pipeline(product(ProbabilityProduct(length=5))(), KernelLogisticRegression()),
        finish=lambda classifier: classifier,
        grid={"kernellogisticregression__C": [1.0, 10.0]},
    ),
    "KernelRidgeClassifierCV": Case(
        KernelRidgeClassifierCV,
        (),
        expected={"check_decision_proba_consistency": NO_FEATURES, "check_estimators_dtypes": NO_KERNEL},
    ),
    "KernelRidgeClassifierCV(linear)": Case(lambda: KernelRidgeClassifierCV(kernel="linear"), (), expected=TWICE),
    "KernelRidgeClassifierCV of products": Case(
        lambda: make_pipeline(product(ProbabilityProduct(length=5))(), KernelRidgeClassifierCV()),
        finish=lambda classifier: classifier,
        grid={"kernelridgeclassifiercv__criterion": ["error", "squared"]},
    ),
    "KernelSVMClassifierCV": Case(
        lambda: KernelSVMClassifierCV(cv=KFold(3)), (), expected={"check_decision_proba_consistency": NO_FEATURES}
    ),
    "KernelSVMClassifierCV(linear)": Case(
        lambda: KernelSVMClassifierCV(kernel="linear", cv=KFold(3)), (), expected=TWICE
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
    "FisherScore of class models": Case(
        lambda: FisherScore(hmm(), per_class=True), finish=linear, grid={"first__estimator__n_states": [1, 2]}
    ),
    "FisherScore of bags": Case(
        lambda: FisherScore(GaussianEstimator()), SERIES, linear, {"first__estimator__min_covar": [1e-3, 1e-2]}
    ),
    "FisherScore, blocks": Case(
        lambda: FisherScore(
            MixtureEstimator(2, max_iter=3, tol=0), length_norm="length", blocks=["occupancy", "weights"]
        ),
        finish=linear,
        grid={"first__blocks": [None, ["occupancy"]]},
    ),
    "BlockNormalizer": Case(
        lambda: BlockNormalizer(FisherScore(hmm(), "diagonal", blocks=["transitions", "occupancy"])),
        finish=linear,
        grid={"first__power": [0.5, 1.0], "first__embedding__estimator__n_states": [1, 2]},
    ),
    "BlockNormalizer of words": Case(
        lambda: BlockNormalizer(Spectrum(2, sparse=True)), SYMBOLS, linear, {"first__embedding__k": [1, 2]}
    ),
    "Standardize": Case(Standardize, (), ()),
    "Standardize, clipped": Case(
        lambda: make_pipeline(FisherScore(hmm()), Standardize(clip=3.0)),
        finish=linear,
        grid={"first__standardize__min_scale": [0.0, 0.1]},
    ),
    "TopScore": Case(lambda: TopScore(hmm()), finish=linear, grid={"first__priors": ["empirical", "uniform"]}),
    "TopScore, standardised": Case(
        lambda: TopScore(hmm(), standardize=True, constant=True, multiclass="pairwise"),
        finish=linear,
        grid={"first__estimator__n_states": [1, 2]},
    ),
    "ModelLogOdds": Case(lambda: ModelLogOdds(hmm()), finish=linear, grid={"first__priors": ["empirical", "uniform"]}),
    "CrossFit": Case(
        lambda: CrossFit(TopScore(hmm()), cv=2),
        finish=[("svc", SVC(kernel="linear"))],
        grid={"first__cv": [2, 3], "first__embedding__estimator__n_states": [1, 2]},
    ),
    "LogOddsWeights": Case(LogOddsWeights, (), ()),
    "PositionalSpectrum": Case(lambda: PositionalSpectrum((1, 2)), WINDOWS, linear, {"first__ks": [(1,), (1, 2)]}),
    "RegionSpectrum": Case(RegionSpectrum, SYMBOLS, linear, {"first__n_regions": [1, 2]}),
    "StateSpace": Case(
        lambda: StateSpace(hmm(), transitions=True, per_class=True, map=PowerMap(0.5)),
        finish=linear,
        grid={"first__apply": ["sum", "time"], "first__map__rho": [0.5, 1.0]},
    ),
    "LatentMeanMap": Case(lambda: LatentMeanMap(hmm()), finish=linear, grid={"first__lam_q": [0.5, 2.0]}),
    "LatentMeanMap, random features of class models": Case(
        lambda: LatentMeanMap(hmm(), features="fourier", n_components=21, per_class=True),
        finish=linear,
        grid={"first__lam_x": [0.5, 2.0]},
    ),
    "LatentMeanMap of mixtures": Case(
        lambda: LatentMeanMap(MixtureEstimator(2, max_iter=3, tol=0), n_components=20),
        finish=linear,
        grid={"first__estimator__n_components": [1, 2]},
    ),
    "Posteriors": Case(
        lambda: Posteriors(hmm()),
        finish=[("gram", Gram(LatentMean().normalized())), *svc],
        grid={"gram__kernel__kernel__lam_x": [0.5, 2.0]},
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
    "Gram of posteriors": Case(
        lambda: Pipeline([("posteriors", Posteriors(hmm())), ("gram", Gram(LatentMean().normalized()))]),
        finish=svc,
        grid={"svc__C": [1.0, 10.0]},
        kernel=True,
    ),
    "Marginalized": Case(lambda: Marginalized(hmm(), map=LogMap()), finish=linear, grid={"first__order": [1, 2]}),
    "Marginalized, random features": Case(
        lambda: Marginalized(hmm(), features="rbf", n_components=20, apply="time", map=LogisticMap()),
        finish=linear,
        grid={"first__map__rho": [0.5, 1.0]},
    ),
    "PowerMap": Case(PowerMap, (), ()),
    "LogMap": Case(LogMap, (), ()),
    "LogisticMap": Case(LogisticMap, (), ()),
    "MultiScale": Case(
        lambda: MultiScale(FisherScore(GaussianEstimator())), SERIES, linear, {"first__widths": ["auto", (1, 5)]}
    ),
    "Windows": Case(
        lambda: Windows((1, 3), stride=2),
        SERIES,
        fitted_models,
        {"first__normalize": [False, True]},
        expected=NO_SHAPE,
    ),
    "CentreSeries": Case(
        CentreSeries,
        ("positive",),  # of which the spread differs too
        [("scores", FisherScore(GaussianEstimator())), *linear],
        {"svc__C": [1.0, 10.0]},
        expected=NO_SHAPE,
    ),
    "Turns": Case(
        lambda: Turns(1, 3),
        SERIES,
        [("scores", FisherScore(GaussianEstimator())), *linear],
        {"first__lag": [1, 2]},
    ),
    "ScaleSeries": Case(ScaleSeries, SERIES, fitted_models, {"svc__C": [1.0, 10.0]}, expected=NO_SHAPE),
    "Spectrum": Case(Spectrum, SYMBOLS, linear, {"first__k": [1, 2]}),
    "Spectrum, sparse": Case(
        lambda: Spectrum(2, sparse=True, normalize="frequency"), SYMBOLS, linear, {"first__k": [1, 2]}
    ),
    "EmpiricalMeanMap": Case(
        lambda: EmpiricalMeanMap(n_components=20),
        finish=linear,
        grid={"first__order": [0, 1], "first__lam": [0.5, 2.0]},
    ),
    "EmpiricalMeanMap, sparse": Case(
        lambda: EmpiricalMeanMap(method="sparse"), SYMBOLS, linear, {"first__order": [0, 1]}
    ),
    "Spectrum, gapped": Case(lambda: Spectrum(offsets=(0, 2)), SYMBOLS, linear, {"first__offsets": [(0, 1), (0, 2)]}),
    "Recode": Case(lambda: Recode("a b"), SYMBOLS, [("words", Spectrum(1)), *linear], {"words__k": [1, 2]}),
    "Channels": Case(
        lambda: Channels({"a": 0.0, "b": 1.0}),
        SYMBOLS,
        [("scores", FisherScore(GaussianEstimator())), *linear],
        {"first__table": [{"a": 0.0, "b": 1.0}, "one-hot"]},
    ),
    "UnitTrace": Case(UnitTrace, (), ()),
    "CharacteristicFeatures of models": Case(
        lambda: make_pipeline(FitEach(hmm()), CharacteristicFeatures(1.0, 5, 64)),
        finish=linear,
        grid={"first__characteristicfeatures__lam": [0.5, 2.0]},
    ),
    "ProposalFeatures of models": Case(
        lambda: make_pipeline(FitEach(hmm()), ProposalFeatures(n=64, length=5)),
        finish=linear,
        grid={"first__proposalfeatures__rho": [0.5, 1.0]},
    ),
    "Views": Case(
        views,
        finish=[("gram", Gram(two_views)), *svc],
        grid={"first__scores__estimator__n_states": [1, 2], "gram__kernel__right__kernel__kernel__rho": [0.5, 1.0]},
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
            VIEWS,
        ),
    ),
    "AlignedGram": Case(lambda: AlignedGram(Linear() + RBF(0.1)), (), ()),
    "AlignedGram of views": Case(
        lambda: make_pipeline(views(), AlignedGram(two_views)),
        finish=svc,
        grid={"first__alignedgram__method": ["joint", "independent"]},
        kernel=True,
    ),
    "Gram(Linear)": Case(lambda: Gram(Linear()), (), ()),
    "Gram(RBF)": Case(lambda: Gram(RBF(0.1)), (), ()),
    "Gram(Polynomial)": Case(lambda: Gram(Polynomial(2, 1.0).normalized()), (), ()),
    "Gram(RBF), clipped": Case(lambda: Gram(RBF(0.1), psd="clip"), (), ()),
    "Nystrom(RBF)": Case(lambda: Nystrom(RBF(0.1), 5), (), ()),
    "Nystrom(RBF), pivots": Case(lambda: Nystrom(RBF(0.1), 5, "pivots"), (), ()),
    "Nystrom of empirical means": Case(
        lambda: Nystrom(EmpiricalMean().normalized(), 6),
        finish=linear,
        grid={"first__kernel__kernel__lam": [0.5, 2.0], "first__n_landmarks": [4, 8]},
    ),
    "Nystrom of products": Case(
        lambda: make_pipeline(FitEach(hmm()), Nystrom(ProbabilityProduct(length=5), 6, "pivots")),
        finish=linear,
        grid={"first__nystrom__kernel__rho": [0.5, 1.0], "first__nystrom__n_landmarks": [4, 8]},
    ),
    "Gram of Fisher scores": Case(
        lambda: make_pipeline(FisherScore(hmm()), Gram(Polynomial(2, 1.0).normalized())),
        finish=svc,
        grid={"svc__C": [1.0, 10.0]},
        kernel=True,
    ),
    "Gram of empirical means": Case(
        lambda: Gram(EmpiricalMean().normalized()),
        finish=svc,
        grid={"first__kernel__kernel__lam": [0.5, 2.0]},
        kernel=True,
    ),
    "Gram of products": Case(
        product(ProbabilityProduct(length=5)), finish=svc, grid={"svc__C": [1.0, 10.0]}, kernel=True
    ),
    "Gram of mean maps": Case(product(MeanMap(length=5)), finish=svc, grid={"svc__C": [1.0, 10.0]}, kernel=True),
}


ONLY_SYMBOLS = "takes symbols only, and says so by its tags"
WIDTHS = "knows from its structure how many columns there are, and scikit-learn tries tables of all widths"
SUPPORT = "takes numbers of its support only, and scikit-learn's tables hold any"
PARTS = "is put together for ragged lists from parts that have rows of their own"
OF_MODELS = "transforms models, which scikit-learn has not"
BEYOND = {  # where scikit-learn's checks of tables do not apply, and why
    **dict.fromkeys(
        (
            "CategoricalEstimator",
            "MarkovChainEstimator",
            "PeriodicChainEstimator",
            "PositionalChainEstimator",
            "ProfileHMMEstimator",
            "SiteEstimator",
            "BlockNormalizer of words",
            "PositionalSpectrum",
            "RegionSpectrum",
            "Spectrum",
            "Spectrum, sparse",
            "Spectrum, gapped",
            "EmpiricalMeanMap, sparse",
            "Recode",
            "Channels",
        ),
        ONLY_SYMBOLS,
    ),
    **dict.fromkeys(("BayesNetEstimator", "LinearGaussianNetEstimator", "Turns"), WIDTHS),
    **dict.fromkeys(
        (
            "BernoulliEstimator",
            "DirichletEstimator",
            "ExponentialEstimator",
            "GammaEstimator",
            "GeometricEstimator",
            "MultinomialEstimator",
            "PoissonEstimator",
        ),
        SUPPORT,
    ),
    **dict.fromkeys(
        (
            "AutoClassifier of symbols",
            "EqualErrorClassifier of HMMs",
            "KernelLogisticRegression of products",
            "KernelRidgeClassifierCV of products",
            "Standardize, clipped",
            "Gram of posteriors",
            "Gram of Fisher scores",
            "Gram of empirical means",
            "Gram of products",
            "Gram of mean maps",
            "AlignedGram of views",
            "Nystrom of empirical means",
            "Nystrom of products",
        ),
        PARTS,
    ),
    **dict.fromkeys(("CharacteristicFeatures of models", "ProposalFeatures of models"), OF_MODELS),
}


@pytest.mark.parametrize("name", [name for name in CASES if name not in BEYOND])
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


@pytest.mark.parametrize("name", [name for name, reason in BEYOND.items() if reason == ONLY_SYMBOLS])
def test_what_takes_symbols_only_says_so(name):
    tags = get_tags(CASES[name].make()).input_tags
    assert (tags.two_d_array, tags.categorical, tags.string) == (False, True, True)


@pytest.mark.parametrize(
    ("name", "kind", "check"),
    [
        pytest.param(name, kind, check, id=f"{name}-{kind}-{check.__name__}")
        for name, case in CASES.items()
        for kind in case.kinds
        for check in CHECKS
        if applies(check, case)
    ],
)
def test_ragged_lists(name, kind, check):
    check(CASES[name], kind)


def test_every_public_estimator_is_in_the_table():
    public = {name: getattr(genkern, name) for name in genkern.__all__}
    estimators = {name for name, value in public.items() if isinstance(value, type) and hasattr(value, "get_params")}
    # kernels have parameters but no fit; the wrapper for Gaussian processes is a kernel of scikit-learn
    kernels = {name for name in estimators if issubclass(public[name], genkern.Kernel | genkern.GaussianProcessKernel)}
    assert estimators - kernels <= {name.split("(")[0].split(",")[0].split(" ")[0] for name in CASES}
    assert set(BEYOND) <= set(CASES)
