"""Features as frames of pandas and polars: names, the index of the objects, and lists that stay lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import FeatureUnion, make_pipeline

from genkern import (
    RBF,
    AlignedGram,
    BlockNormalizer,
    CentreSeries,
    Channels,
    CharacteristicFeatures,
    CrossFit,
    EmpiricalMeanMap,
    FisherScore,
    FitEach,
    Gaussian,
    GaussianEstimator,
    Gram,
    HMMEstimator,
    LatentMean,
    LatentMeanMap,
    LogisticMap,
    LogMap,
    LogOddsWeights,
    Marginalized,
    MarkovChainEstimator,
    ModelLogOdds,
    MultiScale,
    Nystrom,
    PositionalSpectrum,
    Posteriors,
    PowerMap,
    ProbabilityProduct,
    ProposalFeatures,
    Recode,
    RegionSpectrum,
    ScaleSeries,
    Spectrum,
    Standardize,
    StateSpace,
    TopScore,
    Turns,
    UnitTrace,
    Views,
    Windows,
    recipes,
)

pl = pytest.importorskip("polars", reason="polars, of the extra dev, is not installed")

rng = np.random.default_rng(0)
WORDS = ["abab", "abba", "bbba", "baab", "aabb", "abbb"]
SERIES = [rng.normal(size=(8, 2)) for _ in WORDS]
TABLE = np.abs(rng.normal(size=(6, 3)))
MODELS = [Gaussian(mean, 1.0) for mean in rng.normal(size=6)]
Y = np.array([0, 1, 0, 1, 0, 1])
INDEX = [f"i{k}" for k in range(6)]
HMMS, CHAINS = HMMEstimator(2, random_state=0), MarkovChainEstimator(order=1)

FEATURES: dict[str, tuple[Any, Any]] = {
    "FisherScore": (FisherScore(HMMS), WORDS),
    "TopScore": (TopScore(CHAINS), WORDS),
    "StateSpace": (StateSpace(HMMS), WORDS),
    "Marginalized": (Marginalized(HMMS), WORDS),
    "LatentMeanMap": (LatentMeanMap(HMMS), WORDS),
    "Spectrum": (Spectrum(2, sparse=False), WORDS),
    "EmpiricalMeanMap": (EmpiricalMeanMap(), WORDS),
    "ModelLogOdds": (ModelLogOdds(CHAINS), WORDS),
    "CrossFit": (CrossFit(ModelLogOdds(CHAINS), cv=2), WORDS),
    "BlockNormalizer": (BlockNormalizer(FisherScore(HMMS)), WORDS),
    "MultiScale": (MultiScale(FisherScore(HMMS)), SERIES),
    "CharacteristicFeatures": (CharacteristicFeatures(random_state=0), MODELS),
    "ProposalFeatures": (ProposalFeatures(), MODELS),
    "Gram": (Gram(RBF(0.5)), TABLE),
    "AlignedGram": (AlignedGram(RBF(0.5)), TABLE),
    "Gram of models": (Gram(ProbabilityProduct(0.5)), MODELS),
    "Nystrom": (Nystrom(RBF(0.5), n_landmarks=3), TABLE),
    "LogOddsWeights": (LogOddsWeights(), TABLE),
    "LogisticMap": (LogisticMap(), TABLE),
    "LogMap": (LogMap(), TABLE),
    "PowerMap": (PowerMap(), TABLE),
    "Standardize": (Standardize(), TABLE),
    "UnitTrace": (UnitTrace(), TABLE),
    "recipe for series": (recipes.series(n_components=2, n_states=2)[:-1], SERIES),
}
LISTS: dict[str, tuple[Any, Any]] = {
    "CentreSeries": (CentreSeries(), SERIES),
    "ScaleSeries": (ScaleSeries(), SERIES),
    "Turns": (Turns(), SERIES),
    "Recode": (Recode({"a": "x", "b": "y"}), WORDS),
    "FitEach": (FitEach(CHAINS), WORDS),
    "Posteriors": (Posteriors(HMMS), WORDS),
    "Views": (Views([("words", Spectrum(2))]), WORDS),
    "Channels": (Channels({"a": 0.0, "b": 1.0}), WORDS),
    "Windows": (Windows((1, 3)), SERIES),
}


def with_index(X: Any) -> Any:
    """Return objects in pandas, models as they are."""
    if X is MODELS:
        return X
    return pd.Series(X, index=INDEX) if isinstance(X, list) else pd.DataFrame(X, index=INDEX, columns=list("uvw"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FEATURES)
def test_frames_hold_the_features(name: str) -> None:
    transformer, X = FEATURES[name]
    given = with_index(X)
    plain = np.asarray(clone(transformer).fit_transform(given, Y))
    for kind, module in (("pandas", pd), ("polars", pl)):
        made = clone(transformer).set_output(transform=kind)
        for frame in (made.fit_transform(given, Y), None if name == "CrossFit" else made.transform(given)):
            if frame is None:  # of which training objects are told from new ones
                continue
            assert isinstance(frame, module.DataFrame)
            assert list(frame.columns) == list(made.get_feature_names_out())
            np.testing.assert_allclose(frame.to_numpy(), plain, rtol=1e-10, atol=1e-12)
            if kind == "pandas" and X is not MODELS:
                assert list(frame.index) == INDEX


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LISTS)
def test_lists_stay_lists(name: str) -> None:
    transformer, X = LISTS[name]
    plain = clone(transformer).fit_transform(X)
    made = clone(transformer).set_output(transform="pandas").fit_transform(X)
    assert type(made) is type(plain)
    assert len(made) == len(X)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize(
    "transformer", [Spectrum(2, sparse=True), RegionSpectrum((1, 2)), PositionalSpectrum((1, 2))], ids=repr
)
def test_sparse_features_name_the_remedy(transformer: Any, kind: str) -> None:
    with pytest.raises(ValueError, match=r"sparse.*dense"):
        clone(transformer).set_output(transform=kind).fit_transform(WORDS)


BRANCHES: dict[str, tuple[Any, Any]] = {
    "CentreSeries": (make_pipeline(CentreSeries(), EmpiricalMeanMap()), SERIES),
    "ScaleSeries": (make_pipeline(ScaleSeries(), EmpiricalMeanMap()), SERIES),
    "Turns": (make_pipeline(Turns(), EmpiricalMeanMap()), SERIES),
    "Windows": (make_pipeline(Windows((1, 3)), EmpiricalMeanMap()), SERIES),
    "FitEach": (make_pipeline(FitEach(HMMEstimator(1)), Gram(ProbabilityProduct(0.5, length=3))), WORDS),
    "Posteriors": (make_pipeline(Posteriors(HMMS), Gram(LatentMean())), WORDS),
    "Nystrom": (make_pipeline(FitEach(HMMEstimator(1)), Nystrom(ProbabilityProduct(0.5, length=3), 3)), WORDS),
    "CharacteristicFeatures": (
        make_pipeline(FitEach(GaussianEstimator(min_covar=0.1)), CharacteristicFeatures(random_state=0)),
        SERIES,
    ),
    "ProposalFeatures": (make_pipeline(FitEach(GaussianEstimator(min_covar=0.1)), ProposalFeatures()), SERIES),
    "Recode": (make_pipeline(Recode({"a": "x", "b": "y"}), FisherScore(CHAINS)), WORDS),
    "Channels": (make_pipeline(Channels({"a": 0.0, "b": 1.0}), EmpiricalMeanMap()), WORDS),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("name", BRANCHES)
def test_unions_of_lists_do_not_misalign_under_a_global_setting(name: str, kind: str) -> None:
    branch, X = BRANCHES[name]
    union = FeatureUnion([("listed", branch), ("plain", FisherScore(HMMS))])
    given = pd.Series(X, index=INDEX)
    plain = clone(union).fit_transform(given)
    with config_context(transform_output=kind):
        fitted = clone(union)
        for frame in (fitted.fit_transform(given), fitted.transform(given)):
            assert frame.shape == plain.shape
            np.testing.assert_allclose(frame.to_numpy(), plain, rtol=1e-10, atol=1e-12)
            if kind == "pandas":
                assert list(frame.index) == INDEX
