"""What positions contribute, each by itself: against enumeration, finite differences and objects without the position.

Sums over positions are tested in ``test_explain.py``; they do not see contributions that stand at the wrong place.
"""

from __future__ import annotations

import tracemalloc
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracles_embed import difference
from scipy.linalg import sqrtm
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from genkern import (
    HMM,
    LDS,
    BayesNet,
    Categorical,
    ClassMixture,
    EmpiricalMeanMap,
    FactorialHMM,
    FisherScore,
    Gaussian,
    GaussianEstimator,
    HMMEstimator,
    LatentMeanMap,
    LinearGaussianNet,
    Marginalized,
    MarkovChain,
    Mixture,
    MixtureEstimator,
    ModelLogOdds,
    PeriodicChain,
    PositionalSpectrum,
    RegionSpectrum,
    Spectrum,
    StateSpace,
    TopScore,
    Windows,
    explain,
    recipes,
)
from genkern.features.positions import as_vector


def rows(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(shape[-1]), shape[:-1])


STEPS = np.array([[0.6, 0.4], [0.3, 0.7]])
WORDS = HMM([0.3, 0.7], STEPS, Categorical([[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]], "abc"))
LEVELS = HMM([0.3, 0.7], STEPS, Gaussian([[0.0], [1.0]], [[0.5], [2.0]]))
CHAIN = MarkovChain([0.2, 0.5, 0.3], rows(3, 3, seed=1), alphabet="abc")
LETTERS = Categorical([0.2, 0.3, 0.5], "abc")
TEXT, CODES = "abcca", [0, 1, 2, 2, 0]
SERIES = np.array([[0.3], [-0.5], [1.4], [0.9], [2.0]])


def check(embedding: Any, X: list[Any], expected: Any, atol: float = 1e-8) -> None:
    """Compare the contributions of the positions of the first object, of which three at least differ."""
    found = embedding.fit(X).position_features(X[:1]).toarray()
    assert len(np.unique(np.round(expected, 4), axis=0)) >= 3
    assert_allclose(found, expected, rtol=0, atol=atol)


# --- oracles: all hidden paths, and derivatives by differences


def log_factor(model: HMM, path: Any, x: Any, t: int) -> float:
    """Log p(x_t, q_t | q_{t-1})."""
    now = path[t]
    step = model.start[now] if t == 0 else model.transitions[path[t - 1], now]
    if isinstance(model.emissions, Categorical):
        return float(np.log(step * model.emissions.probs[now, x[t]]))
    mean, var = model.emissions.mean[now, 0], model.emissions.cov[now, 0]
    return float(np.log(step) - 0.5 * np.log(2 * np.pi * var) - 0.5 * (x[t][0] - mean) ** 2 / var)


def paths_of(model: HMM, x: Any) -> tuple[list[Any], np.ndarray, float]:
    """All paths, their posteriors and log p(x)."""
    paths = list(product(range(2), repeat=len(x)))
    logs = np.array([sum(log_factor(model, path, x, t) for t in range(len(x))) for path in paths])
    return paths, np.exp(logs - logsumexp(logs)), float(logsumexp(logs))


def hmm_scores(model: HMM, x: Any) -> np.ndarray:
    """Posterior expectations of the derivatives of each position's factor, in softmax coordinates."""
    paths, weights, _ = paths_of(model, x)

    def derivative(path: Any, t: int) -> np.ndarray:
        return difference(lambda v: log_factor(model.with_parameters(v), path, x, t), model.parameters("softmax"))

    return np.array([sum(w * derivative(q, t) for q, w in zip(paths, weights)) for t in range(len(x))])


def posteriors(model: HMM, x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Posteriors (T, 2) of states and (T - 1, 2, 2) of neighbouring ones."""
    paths, weights, _ = paths_of(model, x)
    gamma, xi = np.zeros((len(x), 2)), np.zeros((len(x) - 1, 2, 2))
    for path, weight in zip(paths, weights):
        gamma[np.arange(len(x)), path] += weight
        xi[np.arange(len(x) - 1), path[:-1], path[1:]] += weight
    return gamma, xi


def by_point(model: Any, log_density: Any, x: Any) -> np.ndarray:
    """Derivatives of the log density of each point by itself."""
    start = model.parameters("softmax")
    return np.array([difference(lambda v, p=point: log_density(model.with_parameters(v), p), start) for point in x])


# --- Fisher scores


@pytest.mark.parametrize(("model", "given", "x"), [(WORDS, TEXT, CODES), (LEVELS, SERIES, SERIES)], ids=["abc", "line"])
def test_scores_of_hidden_markov_models(model: HMM, given: Any, x: Any) -> None:
    expected = hmm_scores(model, x)
    check(FisherScore(model, "identity"), [given], expected)
    check(FisherScore(model, "identity", length_norm="sqrt"), [given], expected / np.sqrt(5))
    gamma, _ = posteriors(model, x)
    check(FisherScore(model, "identity", blocks=["occupancy"]), [given], gamma)


def test_scores_of_chains() -> None:
    def factor(v: np.ndarray, t: int) -> float:
        model = CHAIN.with_parameters(v)
        return float(np.log(model.start[CODES[0]] if t == 0 else model.transitions[CODES[t - 1], CODES[t]]))

    expected = [difference(lambda v, t=t: factor(v, t), CHAIN.parameters("softmax")) for t in range(5)]
    check(FisherScore(CHAIN, "identity"), [TEXT], np.array(expected))


def test_scores_of_periodic_chains_of_which_a_phase_is_impossible() -> None:
    start = np.array([[0.0, 1.0], [0.5, 0.5], [0.3, 0.7]])
    theta = np.array([[[0.4, 0.6], [0.1, 0.9]], [[0.5, 0.5], [0.8, 0.2]], [[1.0, 0.0], [0.3, 0.7]]])
    model, codes = PeriodicChain(rows(3), start, theta, alphabet="ab"), [0, 1, 1, 0]
    joints = np.array(  # of beginnings with each phase: the first never begins so, the second does not go on so
        [
            np.cumprod(
                [model.phases[p] * start[p, 0], *(theta[(p + t) % 3, codes[t - 1], codes[t]] for t in (1, 2, 3))]
            )
            for p in range(3)
        ]
    )
    assert ((joints > 0).sum(axis=0) == [2, 1, 1, 1]).all()
    expected = np.zeros((4, 3 + 6 + 12))
    expected[0, 3 + 2 * 2 + codes[0]] = 1 / start[2, codes[0]]
    for t in range(1, 4):
        place = ((2 + t) % 3, codes[t - 1], codes[t])
        expected[t, 9 + np.ravel_multi_index(place, (3, 2, 2))] = 1 / theta[place]
    check(FisherScore(model, "identity", "raw"), ["abba"], expected)
    logs = np.concatenate([found.log_prob for found in model.position_statistics(model.pack(["abba"]))])
    assert_allclose(np.cumsum(logs), np.log(joints.sum(axis=0)), rtol=1e-10)


def test_scores_of_mixtures() -> None:
    symbols = Mixture([0.4, 0.6], Categorical(rows(2, 3), "abc"))
    expected = by_point(symbols, lambda m, s: np.log(m.weights @ m.components.probs[:, s]), CODES)
    check(FisherScore(symbols, "identity"), [TEXT], expected)
    points = Mixture([0.4, 0.6], Gaussian([[0.0], [1.0]], [[0.5], [2.0]]))

    def log_density(m: Mixture, point: Any) -> float:
        var = m.components.cov[:, 0]
        return np.log(m.weights @ (np.exp(-0.5 * (point - m.components.mean[:, 0]) ** 2 / var) / np.sqrt(var)))

    check(FisherScore(points, "identity"), [SERIES], by_point(points, log_density, SERIES[:, 0]))


def test_scores_of_linear_systems_are_those_of_beginnings() -> None:
    model = LDS([[0.7]], [[1.2]], 0.3, 0.5, [0.2], 0.8, [0.1])

    def log_prob(v: np.ndarray, length: int) -> float:
        system = model.with_parameters(v)
        A, C = system.transition[0, 0], system.observation[0, 0]
        Q, R, P = (float(np.ravel(part)[0]) for part in system.matrices())
        law, mean, var = np.zeros((length, length)), [], P
        for t in range(length):
            mean.append(C * A**t * system.initial_mean[0] + system.offset[0])
            for later in range(t, length):
                law[t, later] = law[later, t] = C * A ** (later - t) * var * C + R * (later == t)
            var = A * var * A + Q
        return float(multivariate_normal(mean, law).logpdf(SERIES[:length, 0]))

    slopes = [difference(lambda v, n=n: log_prob(v, n), model.parameters("softmax"), 1e-3) for n in range(1, 6)]
    check(FisherScore(model, "identity"), [SERIES], np.diff(slopes, axis=0, prepend=0.0), atol=1e-6)


def test_scores_of_factorial_models() -> None:
    model = FactorialHMM([[0.4, 0.6], [0.7, 0.3]], [STEPS, rows(2, 2)], [[[0.0], [1.0]], [[0.5], [-1.5]]], [[0.6]])

    def factor(m: FactorialHMM, a: Any, b: Any, x: float, t: int) -> float:
        steps = [
            np.log(start[q[0]] if t == 0 else step[q[t - 1], q[t]])
            for start, step, q in zip(m.starts, m.transitions, (a, b))
        ]
        mean = m.means[0][a[t]][0] + m.means[1][b[t]][0]
        var = float(np.ravel(m.cov)[0])
        return float(sum(steps) - 0.5 * np.log(2 * np.pi * var) - 0.5 * (x - mean) ** 2 / var)

    x = SERIES[:3, 0]
    paths = [(q[:3], q[3:]) for q in product(range(2), repeat=6)]
    logs = np.array([sum(factor(model, a, b, x[t], t) for t in range(3)) for a, b in paths])
    expected = np.zeros((3, len(model.parameters("softmax"))))
    for (a, b), weight in zip(paths, np.exp(logs - logsumexp(logs))):
        for t in range(3):
            slope = difference(
                lambda v, a=a, b=b, t=t: factor(model.with_parameters(v), a, b, x[t], t), model.parameters("softmax")
            )
            expected[t] += weight * slope
    check(FisherScore(model, "identity"), [SERIES[:3]], expected)


def test_scores_of_networks() -> None:
    net = BayesNet({"h": ([], [0.3, 0.7]), "a": (["h"], rows(2, 2)), "b": (["h", "a"], rows(2, 2, 3))}, ["a", "b"])

    def log_prob(m: BayesNet, row: Any) -> float:
        tables = m.tables
        return float(np.log(np.sum(tables["h"] * tables["a"][:, row[0]] * tables["b"][:, row[0], row[1]])))

    bag = np.array([[0, 1], [1, 2], [0, 0], [1, 0]])
    check(FisherScore(net, "identity"), [bag], by_point(net, log_prob, bag))
    lines = LinearGaussianNet({"u": ([], [], 0.5, 1.0), "v": (["u"], [2.0], -1.0, 0.5)})
    points = np.array([[0.3, 1.0], [-0.5, 0.2], [1.4, 0.0]])

    def log_density(m: LinearGaussianNet, point: Any) -> float:
        mean, law = m.joint()
        return float(multivariate_normal(mean, law).logpdf(point))

    check(FisherScore(lines, "identity"), [points], by_point(lines, log_density, points))


# --- log-odds and tangents of log-odds


def beginnings(model: Any, x: Any) -> np.ndarray:
    """Log-probabilities of beginnings, the empty one first, by the definitions."""
    if isinstance(model, HMM):
        return np.array([0.0] + [paths_of(model, x[:n])[2] for n in range(1, len(x) + 1)])
    if isinstance(model, MarkovChain):
        steps = [np.log(model.start[x[0]]), *(np.log(model.transitions[a, b]) for a, b in pairwise(x))]
    else:
        steps = [np.log(model.probs[s]) for s in x]
    return np.concatenate([[0.0], np.cumsum(steps)])


PRIORS = [0.2, 0.5, 0.3]
CLASSES = {"a": WORDS, "b": CHAIN, "c": LETTERS}


def test_log_odds_are_those_of_beginnings() -> None:
    joint = np.log(PRIORS) + np.stack([beginnings(model, CODES) for model in CLASSES.values()], axis=1)
    rest = [logsumexp(np.delete(joint, c, axis=1), axis=1) for c in range(3)]
    odds = ModelLogOdds(ClassMixture(CLASSES, PRIORS))
    check(odds, [TEXT], np.diff(joint - np.stack(rest, axis=1), axis=0))
    pairs = TopScore(ClassMixture(CLASSES, PRIORS), multiclass="pairwise")
    found = pairs.fit([TEXT]).position_features([TEXT]).toarray()
    assert_allclose(found[:, :2], np.diff(joint[:, :2] - joint[:, 2:], axis=0), rtol=0, atol=1e-8)


def test_tangents_are_scores_of_the_classes() -> None:
    letters = np.eye(3)[CODES] - LETTERS.probs
    two = {"a": LETTERS, "b": WORDS}
    odds = np.diff(beginnings(WORDS, CODES) - beginnings(LETTERS, CODES))
    expected = np.column_stack([odds, hmm_scores(WORDS, CODES), -letters])
    check(TopScore(ClassMixture(two, [0.4, 0.6])), [TEXT], expected)
    top = TopScore(ClassMixture(CLASSES, PRIORS)).fit([TEXT])
    found, names = top.position_features([TEXT]).toarray(), top.get_feature_names_out().tolist()
    joint = np.log(PRIORS) + np.stack([beginnings(model, CODES) for model in CLASSES.values()], axis=1)
    shares = np.exp(joint[:, 1:] - logsumexp(joint[:, 1:], axis=1, keepdims=True))  # of b and c without a
    columns = [names.index(f"v[a]:c.{name}") for name in LETTERS.parameter_names]
    assert_allclose(found[:, columns], -shares[-1, 1] * letters, rtol=0, atol=1e-8)
    columns = [names.index(f"v[a]:a.{name}") for name in WORDS.parameter_names]
    assert_allclose(found[:, columns], hmm_scores(WORDS, CODES), rtol=0, atol=1e-8)
    columns = [names.index(f"v[a]:prior[{label}]") for label in "bc"]
    assert_allclose(found[:, columns], -np.diff(shares, axis=0), rtol=0, atol=1e-8)


# --- hidden states


def test_visits_and_steps_of_states() -> None:
    for model, given, x in ((WORDS, TEXT, CODES), (LEVELS, SERIES, SERIES)):
        gamma, xi = posteriors(model, x)
        steps = np.concatenate([np.zeros((1, 4)), xi.reshape(4, 4)])
        check(StateSpace(model, normalize=False), [given], gamma)
        check(StateSpace(model, normalize=True), [given], gamma / 5)
        both = StateSpace(model, transitions=True, normalize=False)
        check(both, [given], np.column_stack([gamma, steps]))


def test_symbols_with_their_states() -> None:
    gamma, xi = posteriors(WORDS, CODES)
    single = np.einsum("ti,ts->tis", gamma, np.eye(3)[CODES]).reshape(5, -1)
    check(Marginalized(WORDS, order=1, normalize=False), [TEXT], single)
    check(Marginalized(WORDS, order=1, normalize=True), [TEXT], single / 5)
    double = np.zeros((5, 4, 9))
    for t in range(4):
        double[t + 1, :, 3 * CODES[t] + CODES[t + 1]] = xi[t].ravel()
    check(Marginalized(WORDS, order=2, normalize=False), [TEXT], double.reshape(5, -1))


def root(size: int, lam: float) -> np.ndarray:
    return np.real(sqrtm(np.exp(-lam * (1.0 - np.eye(size)))))


def test_latent_means_of_symbols() -> None:
    gamma, xi = posteriors(WORDS, CODES)
    R = root(2, 0.7)
    seen = np.einsum("ij,tj,ts->tis", R, gamma, root(3, 1.3)[:, CODES].T).reshape(5, -1) / 5
    steps = np.concatenate([np.zeros((1, 4)), np.einsum("ij,tjk,kl->til", R, xi, R).reshape(4, 4) / 4])
    check(LatentMeanMap(WORDS, lam_x=1.3, lam_q=0.7), [TEXT], np.column_stack([seen, steps]))


def test_latent_means_of_series_have_the_products_of_their_points() -> None:
    gamma, _ = posteriors(LEVELS, SERIES)
    states = np.exp(-0.7 * (1.0 - np.eye(2)))
    points = np.exp(-0.5 * 1.3 * (SERIES - SERIES.T) ** 2)
    embedding = LatentMeanMap(LEVELS, 1.3, 0.7, parts="observations", n_components=60).fit([SERIES])
    assert embedding.features_ == "taylor"
    found = embedding.position_features([SERIES]).toarray()
    assert_allclose(found @ found.T, gamma @ states @ gamma.T * points / 25, rtol=0, atol=1e-9)


# --- words


def test_empirical_means_share_words_between_their_symbols() -> None:
    R = root(3, 0.8)
    expected = np.zeros((5, 9))
    for t in range(4):
        expected[t : t + 2] += np.kron(R[CODES[t]], R[CODES[t + 1]]) / (2 * 4)
    check(EmpiricalMeanMap(order=1, lam=0.8, alphabet="abc"), [TEXT], expected)


@pytest.mark.parametrize(
    ("embedding", "x"),
    [
        (EmpiricalMeanMap(order=1, lam=0.8, alphabet="abc", method="sparse"), TEXT),
        (EmpiricalMeanMap(order=2, lam=0.8, alphabet="abc"), TEXT),
        (EmpiricalMeanMap(order=1, lam=0.8, n_components=7), SERIES),
    ],
    ids=["gaps", "dense", "series"],
)
def test_empirical_means_are_what_further_windows_change(embedding: Any, x: Any) -> None:
    k = embedding.order + 1
    embedding.fit([x])
    sums = [(n - k + 1) * as_vector(embedding.transform([x[:n]])) for n in range(k, len(x) + 1)]
    expected = np.zeros((len(x), len(sums[0])))
    for t, window in enumerate(np.diff(sums, axis=0, prepend=0.0)):
        expected[t : t + k] += window / k / len(sums)
    check(embedding, [x], expected)


@pytest.mark.parametrize("normalize", [None, "frequency", "l2"])
def test_words_of_a_spectrum(normalize: Any) -> None:
    expected = np.zeros((6, 9))
    codes = [0, 1, 0, 1, 2, 2]
    for t in range(5):
        expected[t : t + 2, 3 * codes[t] + codes[t + 1]] += 0.5
    counts = expected.sum(axis=0)
    size = {None: 1.0, "frequency": 5.0, "l2": np.sqrt(counts @ counts)}[normalize]
    check(Spectrum(2, "abc", normalize=normalize), ["ababcc"], expected / size)


def test_words_at_their_places_and_in_their_regions() -> None:
    placed, regions = np.zeros((5, 5 * 3 + 4 * 9)), np.zeros((5, 2 * 3 + 2 * 9))
    for t, code in enumerate(CODES):
        placed[t, 3 * t + code] = 1.0
        regions[t, 3 * (t >= 2) + code] = 1.0
    for t, word in enumerate([3 * a + b for a, b in pairwise(CODES)]):
        placed[t : t + 2, 15 + 9 * t + word] += 0.5
        if t != 1:  # it crosses the border
            regions[t : t + 2, 6 + 9 * (t >= 2) + word] += 0.5
    check(PositionalSpectrum((1, 2), "abc"), [TEXT], placed)
    check(RegionSpectrum((1, 2), 2, "abc"), [TEXT], regions)


# --- a recipe, window by window


def test_windows_of_a_recipe() -> None:
    rng, y = np.random.default_rng(0), np.arange(12) % 2
    X = [np.cumsum(rng.normal(size=(9, 1)), axis=0) + label for label in y]
    recipe = recipes.series(n_components=2, n_states=2).fit(X, y)
    found = explain(recipe, X[0], label=1)
    table, names = found.table.toarray(), found.names.astype(str)
    row, weights = as_vector(recipe[:-1].transform(X[:1])), recipe[-1].coef_.ravel()
    limits: dict[str, Any] = {"max_iter": 20, "tol": 0, "random_state": 0}
    gaussian = GaussianEstimator(min_covar=1e-2)
    bag = MixtureEstimator(2, gaussian, **limits)
    chain = HMMEstimator(2, MixtureEstimator(4, gaussian, **limits), structure="left-right", **limits)
    seen = 0
    for version, series in (("", X), ("centred__", [x - x.mean() for x in X])):
        for name, estimator in (("bag", bag), ("chain", chain)):
            for kind, width, normalize in (("w1", 1, False), ("w3", 3, False), ("w3_normalized", 3, True)):
                prefix = f"{version}{name}__{kind}__"
                columns = np.flatnonzero([text.startswith(prefix) for text in names])
                windows = Windows(width, normalize=normalize).fit_transform(series)
                blocks = ("occupancy", "means", "variances")
                fisher = FisherScore(estimator, "diagonal", length_norm="length", blocks=blocks).fit(windows)
                if name == "bag":  # whose windows are drawn independently
                    parts = np.concatenate([fisher.transform([window[None]]) for window in windows[0]]) / 9
                else:
                    parts = fisher.position_features(windows[:1]).toarray()
                total = parts.sum(axis=0)
                whole = np.abs(total) > 1e-10 * np.abs(parts).sum(axis=0)
                shares = parts * np.divide(row[columns], total, out=np.zeros(len(total)), where=whole)
                expected = np.zeros(shares.shape)
                for t in range(9):
                    for place in range(t - width // 2, t + width // 2 + 1):
                        expected[min(max(place, 0), 8)] += shares[t] / width
                assert_allclose(table[:, columns], expected * weights[columns], rtol=0, atol=1e-9)
                seen += len(columns)
    assert seen == len(names)


def test_log_probabilities_of_factorial_positions_are_those_of_the_beginnings() -> None:
    for sizes in ((2,), (2, 3), (3, 1, 2)):
        starts, steps = [rows(k) for k in sizes], [rows(k, k) for k in sizes]
        starts[0] = np.eye(sizes[0])[0]  # some joint states are impossible
        model = FactorialHMM(starts, steps, [np.linspace(-1.0, 1.5, k)[:, None] for k in sizes], [[0.6]])
        logs = np.concatenate([found.log_prob for found in model.position_statistics(model.pack([SERIES]))])
        whole = model.to_hmm().log_prob([SERIES[:n] for n in range(1, len(SERIES) + 1)])
        np.testing.assert_allclose(logs, np.diff(whole, prepend=0.0), rtol=1e-12)


def test_memory_is_that_of_one_part_of_the_features_not_of_all_at_all_positions() -> None:
    rng, labels = np.random.default_rng(0), [0, 1] * 3
    X = [np.cumsum(rng.normal(size=(120, 2)), axis=0) * (1 + y) for y in labels]
    pipeline = recipes.series(4, 2).fit(X, labels)
    peaks, lengths = [], (400, 1200)
    explain(pipeline, X[0])
    for length in lengths:
        x = np.cumsum(rng.normal(size=(length, 2)), axis=0)
        tracemalloc.start()
        found = explain(pipeline, x)
        blocks = found.by_block()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    whole = (lengths[1] - lengths[0]) * len(found.names) * 8  # bytes of the table at the further positions
    assert peaks[1] - peaks[0] < 0.5 * whole
    assert peaks[1] < 4 * peaks[0]
    np.testing.assert_allclose(sum(blocks.values()), found.positions, atol=1e-12)
    np.testing.assert_allclose(found.table.sum(axis=1), found.positions, atol=1e-12)


def test_an_explanation_stays_that_of_the_fit_that_it_explains() -> None:
    X, labels = ["aabab", "aaabb", "abaaa", "bbabb", "babba", "bbbab"], [0, 0, 0, 1, 1, 1]
    pipeline = make_pipeline(FisherScore(HMMEstimator(2, random_state=0)), LinearSVC()).fit(X, labels)
    found, whole = explain(pipeline, "abba"), explain(pipeline, "abba").table.toarray()
    pipeline.fit(["ba", "bbbb", "aaba", "a"], [1, 0, 1, 0])
    np.testing.assert_array_equal(found.table.toarray(), whole)
    np.testing.assert_allclose(whole.sum(axis=1), found.positions, atol=1e-12)
