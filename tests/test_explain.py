"""What a classifier saw: sums over features and positions are exact, and positions have what is theirs."""

from __future__ import annotations

import time
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracles_embed import difference, joint, softmax, tables
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer, StandardScaler
from sklearn.svm import SVC, LinearSVC

import genkern.models.positions as model_positions
from genkern import (
    HMM,
    LDS,
    BlockNormalizer,
    Categorical,
    Channels,
    ClassMixture,
    EmpiricalMeanMap,
    FactorialHMM,
    FisherScore,
    Gaussian,
    GaussianEstimator,
    HMMEstimator,
    KernelLogisticRegression,
    KernelRidgeClassifierCV,
    LatentMeanMap,
    LogMap,
    LogOddsWeights,
    Marginalized,
    MarkovChain,
    MarkovChainEstimator,
    Mixture,
    ModelLogOdds,
    MultiScale,
    PeriodicChain,
    PositionalChain,
    PositionalSpectrum,
    PowerMap,
    Recode,
    RegionSpectrum,
    ScaleSeries,
    SiteEstimator,
    SiteModel,
    Spectrum,
    Standardize,
    StateSpace,
    TopScore,
    Turns,
    UnitTrace,
    Windows,
    explain,
)
from genkern.core.hmm.positions import position_gradients
from genkern.datasets import load_splice_junctions
from genkern.features.fisher import LENGTH_POWER
from genkern.features.positions import as_vector
from genkern.models.markov import positions as markov_positions
from genkern.preprocess.cross_fit import CrossFit

RNG = np.random.default_rng(7)


def position_features(embedding, X):
    return embedding.position_features(X)


def rows(*shape: int) -> np.ndarray:
    return RNG.dirichlet(np.ones(shape[-1]), shape[:-1])


LEFT_RIGHT = np.array([[0.6, 0.4, 0.0], [0.0, 0.7, 0.3], [0.1, 0.0, 0.9]])
STOPPING = 0.8 * LEFT_RIGHT
DNA = Categorical(rows(3, 4), "dna")
TWO = Mixture(rows(3, 2), Categorical(rows(3, 2, 4), "dna"))
SYMBOLS = ["ACGTNACRT", "GGATTAC", "A"]
SYMBOL_MODELS = {
    "hmm": HMM(rows(3), LEFT_RIGHT, DNA),
    "hmm with end": HMM(rows(3), LEFT_RIGHT, DNA, end=rows(3)),
    "hmm with stop": HMM(rows(3), STOPPING, DNA, stop=np.full(3, 0.2)),
    "hmm of mixtures": HMM(rows(3), LEFT_RIGHT, TWO),
    "chain": MarkovChain(None, rows(4, 4, 4), "dna"),
    "independent": MarkovChain(1, rows(4), "dna"),
    "positional": PositionalChain(rows(4), rows(12, 4, 4), "dna"),
    "categorical": DNA[0],
    "mixture": TWO[0],
}
PLANE = Gaussian(RNG.normal(size=(3, 2)), np.full((3, 2), 0.7))
FULL = Gaussian(RNG.normal(size=(3, 2)), np.array([[1.0, 0.3], [0.3, 0.6]]) * np.ones((3, 1, 1)))
SERIES = [RNG.normal(size=(9, 2)), RNG.normal(size=(4, 2)), RNG.normal(size=(1, 2))]
SERIES[0][3, 1] = np.nan
SERIES_MODELS = {
    "gaussian hmm": HMM(rows(3), LEFT_RIGHT, FULL),
    "hmm of gaussian mixtures": HMM(
        rows(3), LEFT_RIGHT, Mixture(rows(3, 2), Gaussian(RNG.normal(size=(3, 2, 2)), np.ones((3, 2, 2))))
    ),
    "gaussian": PLANE[0],
    "gaussian mixture": Mixture(rows(3), FULL),
    "lds": LDS(0.7 * np.eye(2), np.eye(2), np.eye(2), 0.5 * np.eye(2), np.zeros(2), np.eye(2)),
    "factorial": FactorialHMM([rows(2), rows(2)], [rows(2, 2), rows(2, 2)], RNG.normal(size=(2, 2, 2)), np.eye(2)),
}
WINDOWS = ["ACGT", "AAGN", "TTTT"]
SITES = SiteModel(rows(4, 4), "dna")
SITE_MIXTURE = Mixture(rows(2), SiteModel(rows(2, 4, 4), "dna"))


def rest_of(embedding: Any, x: Any) -> np.ndarray:
    """Return what positions lack of the features, at 1e-10 of what they add and take away."""
    terms = position_features(embedding, [x]).toarray()
    features = as_vector(embedding.transform([x]))
    rest = features - terms.sum(axis=0)
    rest[np.abs(rest) <= 1e-10 * (1.0 + np.abs(terms).sum(axis=0))] = 0.0
    return rest


# --- scores by position


def test_scores_of_a_position_are_expectations_over_all_paths() -> None:
    n, m, symbols = 2, 2, (0, 1, 1)
    eta = RNG.normal(size=n + n * n + n * m)
    start, steps, probs = tables(eta, n, m)
    paths = list(product(range(n), repeat=len(symbols)))
    weights = np.array([joint(start, steps, probs, path, symbols) for path in paths])
    expected = np.zeros((len(symbols), len(eta)))
    for t, symbol in enumerate(symbols):
        for path, weight in zip(paths, weights / weights.sum()):

            def factor(v: np.ndarray, q: Any = path, t: int = t, symbol: int = symbol) -> float:
                a, s, b = tables(v, n, m)
                return float(np.log((a[q[0]] if t == 0 else s[q[t - 1], q[t]]) * b[q[t], symbol]))

            expected[t] += weight * difference(factor, eta)
    fisher = FisherScore(HMM(start, steps, Categorical(probs)), "identity").fit([list(symbols)])
    found = position_features(fisher, [list(symbols)]).toarray()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("far", [0.0, 1e3])
def test_raw_derivatives_by_position_need_no_division_and_no_range(far: float) -> None:
    model = HMM([0.0, 0.3, 0.7], LEFT_RIGHT, Gaussian([[0.0], [1.0], [5.0]], np.full((3, 1), 0.01)), end=rows(3))
    packed = model.pack([np.array([[1.0], [0.2 + far], [5.0], [0.9]])])
    found = position_gradients(model.chains(), model.emissions.evidence(packed), 4)
    total = model.statistics(packed)
    np.testing.assert_allclose(found.transitions.sum(axis=0), total["transitions"][0], rtol=1e-9, atol=1e-200)
    np.testing.assert_allclose(found.start.sum(axis=0), total["start"][0], rtol=1e-9, atol=1e-200)
    np.testing.assert_allclose(found.end.sum(axis=0), total["end"][0], rtol=1e-9, atol=1e-200)
    assert total["transitions"][0][LEFT_RIGHT == 0].any()
    gamma, xi = model.posterior(packed, pairs=True)[0]
    np.testing.assert_allclose(model.transitions * found.transitions[1:], xi, rtol=0, atol=1e-10)
    np.testing.assert_allclose((model.transitions * found.transitions[1:]).sum(axis=1), gamma[1:], rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.log_prob.sum(), model.log_prob(packed)[0], rtol=1e-12)


def test_states_that_are_certain_though_others_are_incomparably_more_likely() -> None:
    model = HMM([1.0, 0.0], [[1.0, 0.0], [0.5, 0.5]], Gaussian([[0.0], [100.0]], np.full((2, 1), 0.01)))
    x = np.array([[100.0], [0.0], [100.0]])
    evidence = model.emissions.evidence(model.pack([x]))
    assert evidence.logs is not None
    found = position_gradients(model.chains(), evidence, 3)
    np.testing.assert_allclose(evidence.table * found.emissions, [[1.0, 0.0]] * 3, rtol=1e-9)
    assert not rest_of(FisherScore(model).fit([x]), x).any()


@pytest.mark.parametrize("name", list(SYMBOL_MODELS))
def test_log_probabilities_of_positions_are_those_of_beginnings(name: str) -> None:
    model, x = SYMBOL_MODELS[name], SYMBOLS[0]
    logs = np.concatenate([found.log_prob for found in model.position_statistics(model.pack([x]))])
    open_end = HMM(model.start, LEFT_RIGHT, model.emissions) if name == "hmm with end" else model
    if name != "hmm with stop":
        beginnings = open_end.log_prob([x[: t + 1] for t in range(len(x))])
        np.testing.assert_allclose(np.cumsum(logs)[:-1], beginnings[:-1], rtol=1e-10)
    np.testing.assert_allclose(logs.sum(), model.log_prob([x])[0], rtol=1e-10)


@pytest.mark.parametrize("coordinates", ["softmax", "ratio", "sqrt", "raw"])
@pytest.mark.parametrize("name", [*SYMBOL_MODELS, *SERIES_MODELS])
def test_scores_of_positions_sum_to_the_score(name: str, coordinates: str) -> None:
    model = (SYMBOL_MODELS | SERIES_MODELS)[name]
    data: list[Any] = SYMBOLS if name in SYMBOL_MODELS else SERIES
    information = "identity" if coordinates in ("raw", "ratio") else "complete"
    embeddings = [FisherScore(model, information, coordinates, length_norm="sqrt")]
    if "hmm" in name or "mixture" in name:
        blocks = ["occupancy", "weights"] if "mixture" in name else ["occupancy"]
        embeddings.append(FisherScore(model, "empirical", coordinates, blocks=blocks))
    for embedding in embeddings:
        embedding.fit(data)
        for x in data:
            assert not rest_of(embedding, x).any()
            assert position_features(embedding, [x]).shape[0] == len(x)


def test_a_transition_belongs_to_the_symbol_that_it_leads_to() -> None:
    theta = rows(3, 3)
    chain = MarkovChain([0.2, 0.3, 0.5], theta, alphabet="abc")
    fisher = FisherScore(chain, "identity", "raw").fit(["abc"])
    found = position_features(fisher, ["acca"]).toarray()
    expected = np.zeros((4, 3 + 9))
    expected[0, 0] = 1 / 0.2
    for t, (a, b) in enumerate([(0, 2), (2, 2), (2, 0)], start=1):
        expected[t, 3 + 3 * a + b] = 1 / theta[a, b]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_statistics_of_beginnings_do_not_depend_on_the_size_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("positional", "chain"):
        fisher = FisherScore(SYMBOL_MODELS[name]).fit(SYMBOLS)
        whole = position_features(fisher, SYMBOLS[:1]).toarray()
        with monkeypatch.context() as patch:
            for module in (model_positions, markov_positions):
                patch.setattr(module, "BATCH", 2 * fisher.n_features_out_)
            np.testing.assert_allclose(position_features(fisher, SYMBOLS[:1]).toarray(), whole, rtol=1e-12)


def own_rows(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).dirichlet(np.ones(shape[-1]), shape[:-1])


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("information", ["complete", "diagonal", "empirical", "identity"])
def test_scores_of_a_chain_by_positions_are_those_of_beginnings(order: int, information: str) -> None:
    length = 40
    start = own_rows(4**order).reshape((4,) * order)
    model = PositionalChain(start, own_rows(length - order, *(4,) * (order + 1)), "dna")
    X = model.sample(30, rng=0)
    x = X[0][:5] + "NN" + X[0][7:20] + "R" + X[0][21:36]
    for word in (X[0], x, "N" + x, x[:3], "NNNN"):
        embedding = FisherScore(model, information=information).fit(X)
        beginnings = model.log_prob_grad([word[:t] for t in range(1, len(word) + 1)])
        steps = np.diff(beginnings, axis=0, prepend=0.0)
        expected = np.zeros(steps.shape)
        embedding.whitener_.apply(steps / len(word) ** LENGTH_POWER[embedding.length_norm], out=expected)
        assert_allclose(position_features(embedding, [word]).toarray(), expected, rtol=1e-9, atol=1e-11)


def test_time_to_explain_chains_by_positions_is_linear() -> None:
    def seconds(length: int) -> float:
        model = PositionalChain(own_rows(4), own_rows(length - 1, 4, 4), "dna")
        X = model.sample(3, rng=0)
        embedding, found = FisherScore(model).fit(X), []
        for _ in range(3):
            begin = time.process_time()
            position_features(embedding, X[:1])
            found.append(time.process_time() - begin)
        return min(found)

    assert seconds(1600) < 8.0 * seconds(400)  # sixteen times, were it quadratic


def test_a_periodic_chain_weighs_phases_by_their_posterior() -> None:
    phases, start, theta = rows(3), rows(3, 2), rows(3, 2, 2)
    model, codes = PeriodicChain(phases, start, theta, alphabet="ab"), [0, 1, 1, 0, 1]
    fisher = FisherScore(model, "identity", "raw").fit(["ab"])
    joints = [
        phases[p] * start[p, codes[0]] * np.prod([theta[(p + t) % 3, codes[t - 1], codes[t]] for t in range(1, 5)])
        for p in range(3)
    ]
    expected = np.zeros((5, 3 + 6 + 12))
    for p, weight in enumerate(np.array(joints) / sum(joints)):
        expected[0, 3 + 2 * p + codes[0]] += weight / start[p, codes[0]]
        for t in range(1, 5):
            place = ((p + t) % 3, codes[t - 1], codes[t])
            expected[t, 9 + np.ravel_multi_index(place, (3, 2, 2))] += weight / theta[place]
    np.testing.assert_allclose(position_features(fisher, ["abbab"]).toarray(), expected, rtol=0, atol=1e-10)
    assert np.flatnonzero(rest_of(fisher, "abbab")).tolist() == [0, 1, 2]


@pytest.mark.parametrize("model", [SITES, SITE_MIXTURE], ids=["site", "mixture"])
def test_the_parameters_of_a_site_belong_to_its_position(model: Any) -> None:
    fisher = FisherScore(model).fit(WINDOWS)
    names = fisher.get_feature_names_out()
    terms = position_features(fisher, WINDOWS[:1]).toarray()
    for name, column in zip(names, terms.T):
        place = name.split("[")[1].split(",")[-2] if "probs" in name else "none"
        assert set(map(str, np.flatnonzero(column))) <= {place}
    rest = rest_of(fisher, WINDOWS[0])
    assert all("weights" in name for name in names[rest != 0])


# --- log-odds, states, words


@pytest.mark.parametrize("labels", ["ab", "abc"])
@pytest.mark.parametrize("multiclass", ["one-vs-rest", "pairwise"])
def test_log_odds_of_positions_follow_the_beginnings(labels: str, multiclass: str) -> None:
    kinds = ["hmm", "chain", "categorical"]
    models = {label: SYMBOL_MODELS[kind] for label, kind in zip(labels, kinds)}
    priors = np.arange(1.0, len(labels) + 1.0)
    priors /= priors.sum()
    top = TopScore(ClassMixture(models, priors), multiclass=multiclass, constant=True).fit(SYMBOLS)
    x = SYMBOLS[0]
    begun = top.transform([x[: t + 1] for t in range(len(x))])
    names = top.get_feature_names_out()
    odds = [j for j, name in enumerate(names) if name.startswith("v") and "." not in name]
    terms, rest = position_features(top, [x]).toarray(), rest_of(top, x)
    np.testing.assert_allclose(terms[1:, odds], np.diff(begun[:, odds], axis=0), rtol=0, atol=1e-9)
    assert set(np.flatnonzero(rest)) <= {*odds, *[j for j, name in enumerate(names) if name == "prior"]}
    first = next(j for j in odds if ":" not in names[j])
    others = priors[0] if labels == "ab" else priors[2] + priors[1] * (multiclass == "one-vs-rest")
    own = priors[1] if labels == "ab" else priors[0]
    np.testing.assert_allclose(rest[first], np.log(own / others), rtol=1e-9)
    log_odds = ModelLogOdds(ClassMixture(models, priors)).fit(SYMBOLS)
    begun = log_odds.transform([x[: t + 1] for t in range(len(x))])
    np.testing.assert_allclose(position_features(log_odds, [x]).toarray()[1:], np.diff(begun, axis=0), atol=1e-9)


def test_tangents_of_classes_that_forbid_the_object_stay_out() -> None:
    models = {"a": Categorical([0.5, 0.5, 0.0], "abc"), "b": Categorical([0.2, 0.2, 0.6], "abc")}
    top = TopScore(models, priors="uniform", v_max=50.0).fit(["ab", "c"], ["a", "b"])
    terms = position_features(top, ["ac"]).toarray()
    assert not terms[:, 0].any()
    assert rest_of(top, "ac")[0] == 50.0
    np.testing.assert_allclose(terms.sum(axis=0)[1:], top.transform(["ac"])[0, 1:], rtol=0, atol=1e-12)


def test_the_label_as_latent_variable() -> None:
    models = ClassMixture({"a": SYMBOL_MODELS["hmm"], "b": SYMBOL_MODELS["chain"]}, [0.3, 0.7])
    for embedding in (FisherScore(models), FisherScore(models, "identity", blocks=["occupancy", "transitions"])):
        embedding.fit(SYMBOLS)
        rest = rest_of(embedding, SYMBOLS[0])
        names = embedding.get_feature_names_out()[rest != 0]
        assert all(name.startswith("occupancy") for name in names)
        np.testing.assert_allclose(rest[rest != 0], [0.3, 0.7][: len(names)], rtol=1e-9)


@pytest.mark.parametrize("apply", ["sum", "time"])
@pytest.mark.parametrize("map", [None, PowerMap(0.5)])
@pytest.mark.parametrize("name", ["hmm", "hmm of mixtures", "gaussian hmm", "gaussian mixture", "factorial"])
def test_states_of_positions_sum_to_the_features(name: str, apply: str, map: Any) -> None:
    model = (SYMBOL_MODELS | SERIES_MODELS)[name]
    data: list[Any] = SYMBOLS if name in SYMBOL_MODELS else SERIES
    options: dict[str, Any] = {"apply": apply, "map": map}
    chained = name != "gaussian mixture"
    cases: list[Any] = [StateSpace(model, transitions=chained, normalize=n, **options) for n in (False, True)]
    if name != "factorial":
        cases += [Marginalized(model, order=o, **options) for o in ((1, 2) if chained else (1,))]
    for embedding in cases:
        embedding.fit(data)
        for x in data:
            assert not rest_of(embedding, x).any()
    if name in SYMBOL_MODELS and not map:
        found = position_features(StateSpace(model).fit(data), [data[0]]).toarray()
        np.testing.assert_allclose(found, model.posterior([data[0]])[0], rtol=0, atol=1e-12)


def test_a_map_of_sums_shares_in_proportion_to_posteriors() -> None:
    model, x = SYMBOL_MODELS["hmm"], SYMBOLS[1]
    gamma = model.posterior([x])[0]
    found = position_features(StateSpace(model, map=PowerMap(0.5)).fit([x]), [x]).toarray()
    np.testing.assert_allclose(found, gamma / np.sqrt(gamma.sum(axis=0)), rtol=1e-10)
    found = position_features(StateSpace(model, map=PowerMap(0.5), apply="time").fit([x]), [x]).toarray()
    np.testing.assert_allclose(found, np.sqrt(gamma), rtol=1e-10)


def test_counts_of_a_pair_of_states_belong_to_the_second() -> None:
    model, x = SYMBOL_MODELS["hmm"], "ACGT"
    found = position_features(Marginalized(model, order=2, normalize=False).fit([x]), [x]).toarray()
    xi = model.posterior([x], pairs=True)[0][1]
    expected = np.zeros((4, 9, 16))
    for t, (a, b) in enumerate([(0, 1), (1, 2), (2, 3)]):
        expected[t + 1, :, 4 * a + b] = xi[t].ravel()
    np.testing.assert_allclose(found, expected.reshape(4, -1), rtol=0, atol=1e-12)


def test_latent_and_empirical_mean_maps() -> None:
    series = [x[~np.isnan(x).any(axis=1)] for x in SERIES]
    cases: list[tuple[Any, Any]] = [
        (LatentMeanMap(SYMBOL_MODELS["hmm"]), SYMBOLS),
        (LatentMeanMap(SERIES_MODELS["gaussian hmm"], n_components=6), series),
        (LatentMeanMap(SERIES_MODELS["factorial"], n_components=6), series),
        (EmpiricalMeanMap(order=1, alphabet="dna"), SYMBOLS),
        (EmpiricalMeanMap(order=1, alphabet="dna", method="sparse"), SYMBOLS),
        (EmpiricalMeanMap(order=2, n_components=5), series),
    ]
    for embedding, data in cases:
        embedding.fit(data)
        for x in data:
            assert not rest_of(embedding, x).any()


@pytest.mark.parametrize("options", [{"k": 2}, {"k": 2, "normalize": "l2"}, {"k": 3, "sparse": True}, {"k": 9}])
def test_words_are_shared_by_their_symbols(options: dict[str, Any]) -> None:
    spectrum = Spectrum(alphabet="dna", **options).fit(SYMBOLS)
    for x in SYMBOLS:
        assert not rest_of(spectrum, x).any()
    found = position_features(Spectrum(offsets=(0, 2), alphabet="ab").fit(["abba"]), ["abba"]).toarray()
    np.testing.assert_array_equal(found, [[0, 0.5, 0, 0], [0, 0, 0.5, 0], [0, 0.5, 0, 0], [0, 0, 0.5, 0]])


def test_words_in_their_places() -> None:
    for embedding in (PositionalSpectrum((1, 3), "dna"), RegionSpectrum((1, 2, 4), 3, "dna")):
        data = ["ACGTNACRT", "GGATTACAA"]
        embedding.fit(data)
        for x in data if isinstance(embedding, PositionalSpectrum) else SYMBOLS:
            assert not rest_of(embedding, x).any()
            assert position_features(embedding, [x]).shape[0] == len(x)
    placed = PositionalSpectrum((2,), "ab").fit(["aba"])
    found = position_features(placed, ["aba"]).toarray()
    expected = np.zeros((3, 8))
    expected[[0, 1], 1] = expected[[1, 2], 4 + 2] = 0.5  # ab at the first position, ba at the second
    np.testing.assert_array_equal(found, expected)


# --- whole pipelines


def strings(count: int = 24, classes: int = 3) -> tuple[list[str], np.ndarray]:
    rng, y = np.random.default_rng(3), np.arange(count) % classes
    shares = softmax(2.0 * rng.normal(size=(classes, 3)))
    return ["".join(rng.choice(list("abc"), rng.integers(4, 10), p=shares[c])) for c in y], y


def waves(count: int = 18, classes: int = 2) -> tuple[list[np.ndarray], np.ndarray]:
    rng, y = np.random.default_rng(4), np.arange(count) % classes
    return [rng.normal(size=(rng.integers(12, 20), 2)) + c for c in y], y


def check_sums(pipeline: Any, x: Any, with_positions: bool = True) -> None:
    """Compare both sums with the decision value of every class."""
    decisions = pipeline.decision_function([x])[0]
    for index, label in enumerate(pipeline.classes_):
        explanation = explain(pipeline, x, label=label)
        own = decisions[index] if np.ndim(decisions) else decisions * (1 if index else -1)
        scale = 1.0 + np.abs(explanation.contributions).sum()
        assert explanation.label == label
        np.testing.assert_allclose(explanation.decision, own, rtol=0, atol=1e-10 * scale)
        total = explanation.contributions.sum() + explanation.intercept
        np.testing.assert_allclose(total, explanation.decision, rtol=0, atol=1e-10 * scale)
        assert (explanation.positions is not None) is with_positions
        if explanation.positions is not None:
            assert len(explanation.positions) == len(x)
            total = explanation.positions.sum() + explanation.rest + explanation.intercept
            np.testing.assert_allclose(total, explanation.decision, rtol=0, atol=1e-10 * scale)
            np.testing.assert_allclose(
                sum(explanation.by_block().values()), explanation.positions, rtol=0, atol=1e-10 * scale
            )
    assert explain(pipeline, x).label == pipeline.predict([x])[0]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "classifier",
    [
        LinearSVC(),
        LogisticRegression(),
        RidgeClassifier(),
        OneVsRestClassifier(SVC(kernel="linear")),
        KernelLogisticRegression(kernel="linear"),
        KernelRidgeClassifierCV(kernel="linear"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_sums_are_the_decision_values_of_linear_classifiers(classifier: Any, classes: int) -> None:
    X, y = strings(classes=classes)
    check_sums(make_pipeline(FisherScore(HMMEstimator(2, random_state=0)), classifier).fit(X, y), "abcab")


def test_a_linear_machine_of_two_classes_and_sparse_coefficients() -> None:
    X, y = strings(classes=2)
    check_sums(make_pipeline(Spectrum(2, sparse=True), SVC(kernel="linear")).fit(X, y), "abcab")


@pytest.mark.parametrize(
    "steps",
    [
        [TopScore(MarkovChainEstimator(1)), StandardScaler()],
        [TopScore(MarkovChainEstimator(1), standardize=True), Normalizer()],
        [FisherScore(HMMEstimator(2, random_state=0)), PowerMap(), Normalizer()],
        [FisherScore(HMMEstimator(2, random_state=0)), LogMap(), SelectKBest(k=4), MinMaxScaler()],
        [FisherScore(MarkovChainEstimator(1), per_class=True), Standardize(min_scale=0.0), "passthrough"],
        [FisherScore(MarkovChainEstimator(1)), Standardize(clip=0.5)],
        [BlockNormalizer(FisherScore(HMMEstimator(2, random_state=0), blocks=["probs", "occupancy"]))],
        [Spectrum(2), FunctionTransformer(np.log1p), UnitTrace()],
        [Spectrum(2), LogOddsWeights()],
        [Spectrum(1, sparse=True), LogOddsWeights(binary=False), Normalizer()],
        [Recode({"a": "x", "b": "x", "c": "y"}), Spectrum(2, sparse=True), PowerMap()],
        [
            FeatureUnion(
                [
                    ("words", make_pipeline(Spectrum(1), PowerMap())),
                    ("states", StateSpace(HMMEstimator(2, random_state=0))),
                    ("letters", CountVectorizer(analyzer="char")),
                    ("none", "drop"),
                ],
                transformer_weights={"words": 2.0},
            )
        ],
    ],
    ids=lambda steps: "-".join(type(step).__name__ for step in steps),
)
def test_sums_through_pipelines_of_symbols(steps: list[Any]) -> None:
    X, y = strings()
    check_sums(make_pipeline(*steps, LogisticRegression()).fit(X, y), "abcabbc")


@pytest.mark.parametrize(
    "steps",
    [
        [ScaleSeries(), FisherScore(GaussianEstimator())],
        [Windows((1, 5), n_dct=1), Marginalized(HMMEstimator(2, random_state=0)), StandardScaler()],
        [Windows(3, stride=3, circular=True), FisherScore(GaussianEstimator(), "diagonal")],
        [MultiScale(BlockNormalizer(FisherScore(GaussianEstimator(min_covar=0.01))))],
    ],
    ids=lambda steps: "-".join(type(step).__name__ for step in steps),
)
def test_sums_through_pipelines_of_series(steps: list[Any]) -> None:
    X, y = waves()
    check_sums(make_pipeline(*steps, RidgeClassifier()).fit(X, y), X[1])


def test_steps_that_are_pipelines_or_chosen_by_a_search() -> None:
    X, y = strings(classes=2)
    inner = make_pipeline(FisherScore(GaussianEstimator()), LogisticRegression())
    check_sums(make_pipeline(Channels("one-hot"), inner).fit(X, y), "abcab")
    search = GridSearchCV(make_pipeline(Spectrum(2), LinearSVC()), {"linearsvc__C": [0.1, 1.0]}, cv=2).fit(X, y)
    assert explain(search, "abcab").decision == explain(search.best_estimator_, "abcab").decision
    check_sums(make_pipeline(Recode({"a": "x", "b": "y", "c": "x"}), search).fit(X, y), "abcab")


def test_training_objects_of_a_cross_fit_are_seen_out_of_fold() -> None:
    X, y = strings(classes=2)
    top = CrossFit(TopScore(MarkovChainEstimator(0, alphabet="abc")), cv=3)
    pipeline = make_pipeline(top, StandardScaler(), LogisticRegression()).fit(X, y)
    for x in (X[0], X[1], "abcab"):
        check_sums(pipeline, x)
    own = pipeline[0].fold_embeddings_[pipeline[0].folds_[0]]
    weights = pipeline[-1].coef_[0] / pipeline[1].scale_
    np.testing.assert_allclose(explain(pipeline, X[0], label=1).positions, position_features(own, X[:1]) @ weights)


def test_straight_maps_pass_positions_on_unchanged() -> None:
    X, y = strings(classes=2)
    pipeline = make_pipeline(FisherScore(HMMEstimator(2, random_state=0)), StandardScaler(), LinearSVC()).fit(X, y)
    fisher, scaler, svm = (step for _, step in pipeline.steps)
    found = explain(pipeline, "abca", label=1)
    weights = svm.coef_[0] / scaler.scale_
    np.testing.assert_allclose(found.positions, position_features(fisher, ["abca"]) @ weights, rtol=1e-10)
    np.testing.assert_allclose(found.rest, -weights @ scaler.mean_, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "steps",
    [
        [BlockNormalizer(FisherScore(HMMEstimator(2, random_state=0), blocks=["probs", "occupancy"]))],
        [Spectrum(2), LogOddsWeights(), Normalizer()],
        [Spectrum(2, normalize="frequency"), PowerMap(), UnitTrace()],
    ],
    ids=lambda steps: type(steps[-1]).__name__,
)
def test_maps_that_leave_zero_where_it_is_leave_no_rest(steps: list[Any]) -> None:
    X, y = strings()
    found = explain(make_pipeline(*steps, LogisticRegression()).fit(X, y), "abcabbc")
    np.testing.assert_allclose(found.rest, 0.0, rtol=0, atol=1e-10 * np.abs(found.table).sum())
    np.testing.assert_allclose(found.table.sum(axis=0), found.contributions, rtol=0, atol=1e-10)


def test_what_standardize_subtracts_is_rest() -> None:
    X, y = strings(classes=2)
    pipeline = make_pipeline(Spectrum(2), Standardize(), LinearSVC()).fit(X, y)
    weights = pipeline[-1].coef_[0] / pipeline[1].scale_
    np.testing.assert_allclose(explain(pipeline, "abc", label=1).rest, -weights @ pipeline[1].mean_, rtol=1e-9)


def test_bent_maps_share_in_proportion_and_give_nothing_where_terms_cancel() -> None:
    X = [np.array([[1.0], [-1.0], [3.0]]), np.array([[-2.0], [1.0]]), np.array([[0.5], [-4.0]])]
    model = Gaussian([0.0], [1.0])
    pipeline = make_pipeline(FisherScore(model, "identity"), PowerMap(0.5), RidgeClassifier()).fit(X, [0, 1, 1])
    weight = pipeline[-1].coef_.ravel()
    found = explain(pipeline, X[0], label=1)
    scores = FisherScore(model, "identity").fit(X)
    terms = np.array([as_vector(scores.transform([point[None]])) for point in X[0]])
    totals = terms.sum(axis=0)
    roots = np.sign(totals) * np.sqrt(np.abs(totals))
    np.testing.assert_allclose(found.positions, (terms * roots / totals) @ weight, rtol=1e-10)
    cancelled = explain(pipeline, np.array([[0.1], [0.2], [-0.3]]), label=1)  # whose sum is a rounding error
    np.testing.assert_array_equal(cancelled.table.toarray()[:, 0], np.zeros(3))
    exactly = explain(pipeline, np.array([[1.0], [-1.0]]), label=1)
    np.testing.assert_array_equal(exactly.table.toarray(), np.zeros((2, 2)))


def test_what_a_map_makes_of_zero_and_the_weights_of_a_union() -> None:
    X, y = strings(classes=2)
    union = FeatureUnion([("a", Spectrum(1)), ("b", Spectrum(1))], transformer_weights={"a": 3.0})
    pipeline = make_pipeline(union, FunctionTransformer(np.cos), RidgeClassifier()).fit(X, y)
    found, weights = explain(pipeline, "aba", label=1), pipeline[-1].coef_.ravel()
    slopes = [(np.cos(6.0) - 1) / 6, (np.cos(3.0) - 1) / 3, (np.cos(2.0) - 1) / 2, np.cos(1.0) - 1]
    a, b = 3 * weights[0] * slopes[0] + weights[3] * slopes[2], 3 * weights[1] * slopes[1] + weights[4] * slopes[3]
    np.testing.assert_allclose(found.positions, [a, b, a], rtol=1e-10)
    np.testing.assert_allclose(found.rest, weights.sum(), rtol=1e-8)
    assert found.names.tolist() == ["a__a", "a__b", "a__c", "b__a", "b__b", "b__c"]


def test_windows_share_what_they_add_with_the_positions_they_read() -> None:
    X, y = waves()
    pipeline = make_pipeline(Windows(3, stride=2), FisherScore(GaussianEstimator()), LinearSVC()).fit(X, y)
    x = X[0][:6]
    seen = explain(make_pipeline(*pipeline[1:]), pipeline[0].transform([x])[0], label=1)
    assert seen.positions is not None
    a, b, c = seen.positions / 3
    expected = [2 * a, a + b, b, b + c, c, c]
    np.testing.assert_allclose(explain(pipeline, x, label=1).positions, expected, rtol=1e-10)


def test_turns_share_what_they_add_with_the_steps_at_both_ends() -> None:
    rng, y = np.random.default_rng(0), np.arange(20) % 2
    X = [rng.normal((label, 0), size=(7, 2)) for label in y]
    pipeline = make_pipeline(Turns(lag=3, width=3, circular=True), FisherScore(GaussianEstimator()), LinearSVC())
    pipeline.fit(X, y)
    seen = explain(make_pipeline(*pipeline[1:]), pipeline[0].transform(X[:1])[0], label=1)
    assert seen.positions is not None
    expected = np.zeros(7)
    for t, value in enumerate(seen.positions):
        for place in (t - 1, t, t + 1, t + 2, t + 3, t + 4):
            expected[place % 7] += value / 6
    np.testing.assert_allclose(explain(pipeline, X[0], label=1).positions, expected, rtol=1e-10)


def test_objects_of_a_table() -> None:
    X = np.random.default_rng(0).normal(size=(20, 6))
    pipeline = make_pipeline(StandardScaler(), FisherScore(HMMEstimator(2, random_state=0)), LinearSVC())
    pipeline.fit(X, np.arange(20) % 2)
    found = explain(pipeline, X[3], label=1)
    np.testing.assert_allclose(found.decision, pipeline.decision_function(X[3:4])[0], rtol=1e-10)
    assert found.positions is not None
    assert len(found.positions) == 6


def test_features_of_which_no_positions_are_known() -> None:
    X, y = strings()
    check_sums(make_pipeline(CountVectorizer(analyzer="char"), LinearSVC()).fit(X, y), "abc", with_positions=False)


def test_other_rows_do_not_matter_to_an_explanation() -> None:
    X, y = strings()
    pipeline = make_pipeline(TopScore(MarkovChainEstimator(1)), LinearSVC()).fit(X, y)
    first, again = explain(pipeline, "abc"), explain(pipeline, list("abc"))
    np.testing.assert_array_equal(first.contributions, again.contributions)


# --- the value


def test_an_explanation_reads_well() -> None:
    X, y = strings(classes=2)
    pipeline = make_pipeline(Spectrum(2), StandardScaler(), LinearSVC()).fit(X, y)
    found = explain(pipeline, "abcab", label=0)
    top = found.top(3)
    assert [abs(value) for _, value in top] == sorted(np.abs(found.contributions), reverse=True)[:3]
    assert dict(zip(found.names, found.contributions))[top[0][0]] == top[0][1]
    assert repr(found) == f"Explanation(label=0, decision={found.decision:.4g}, 9 features, 5 positions)"
    lines = str(found).splitlines()
    assert lines[0] == f"decision {found.decision:+.4f} for class 0"
    assert lines[1].split() == [f"{top[0][1]:+.4f}", top[0][0]]
    assert lines[-1] == f"by position {found.positions.sum():+.4f}, of no position {found.rest:+.4f}"  # type: ignore[union-attr]
    with pytest.raises(AttributeError):
        found.label = 1  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        found.contributions[0] = 0.0
    assert sparse.issparse(found.table)


def test_what_cannot_be_explained_is_refused() -> None:
    X, y = strings()
    pipeline = make_pipeline(Spectrum(2), LinearSVC()).fit(X, y)
    with pytest.raises(ValueError, match=r"'label' must be one of 0, 1, 2. Got 'x'"):
        explain(pipeline, "abc", label="x")
    with pytest.raises(ValueError, match=r"must be one object. Got a list of 2"):
        explain(pipeline, ["abc", "cab"])
    with pytest.raises(ValueError, match=r"must be one object. Got a list of 2"):
        explain(pipeline, ["abd", "cab"])  # of which the d would be unknown, not an error
    with pytest.raises(ValueError, match="abd"):
        explain(make_pipeline(Spectrum(2, "abc"), LinearSVC()).fit(X, y), ["abd", "cab"])
    with pytest.raises(NotFittedError, match="explain: the pipeline is not fitted"):
        explain(make_pipeline(Spectrum(2), LinearSVC()), "abc")
    with pytest.raises(TypeError, match=r"must be a scikit-learn Pipeline .* Got LinearSVC"):
        explain(LinearSVC(), "abc")
    with pytest.raises(TypeError, match=r"linear classifier .* Got SVC\(kernel='rbf'\)"):
        explain(make_pipeline(Spectrum(2), SVC()).fit(X, y), "abc")
    with pytest.raises(TypeError, match=r"linear classifier .* Got GaussianNB"):
        explain(make_pipeline(Spectrum(2), GaussianNB()).fit(X, y), "abc")
    with pytest.raises(TypeError, match="decides between pairs of its 3 classes"):
        explain(make_pipeline(Spectrum(2), SVC(kernel="linear")).fit(X, y), "abc")


def test_a_classifier_that_contradicts_its_coefficients_is_refused() -> None:
    class Doubled(LogisticRegression):
        def decision_function(self, X: Any) -> Any:
            return 2.0 * super().decision_function(X)

    X, y = strings(classes=2)
    with pytest.raises(TypeError, match="is not the linear function"):
        explain(make_pipeline(Spectrum(2), Doubled()).fit(X, y), "abc")


def test_several_series_are_told_from_one() -> None:
    X, y = waves()
    pipeline = make_pipeline(FisherScore(GaussianEstimator()), LinearSVC()).fit(X, y)
    with pytest.raises(ValueError, match="Got a list of 18"):
        explain(pipeline, X)


# --- what is to be seen


def test_splice_junctions_light_up_at_the_junction() -> None:
    data = load_splice_junctions()
    X, y = data.X[::3], data.y[::3]
    pipeline = make_pipeline(FisherScore(SiteEstimator()), LinearSVC(C=1e-3)).fit(X, y)
    donors = [x for x, label in zip(data.X[1::3], data.y[1::3]) if label == "EI"][:20]
    seen = np.mean([explain(pipeline, x, label="EI").positions for x in donors], axis=0)
    assert set(np.argsort(-seen)[:4]) <= set(range(28, 36))
    assert seen[30:32].mean() > 8 * np.abs(np.delete(seen, range(24, 38))).mean()
