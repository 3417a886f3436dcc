"""The latent mean map against its definition: sums over positions, states and state paths, one by one."""

import itertools
import pickle

import cases
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from genkern import (
    HMM,
    LDS,
    Categorical,
    FactorialHMM,
    Gaussian,
    Gram,
    HMMEstimator,
    LatentMean,
    LatentMeanMap,
    Linear,
    Marginalized,
    Mixture,
    Multinomial,
    PeriodicChain,
    Posterior,
    Posteriors,
    SiteModel,
)
from genkern.core.arrays import latent as core
from genkern.features import streaming as blocks
from genkern.features.random_features import draw_waves, fourier_features, taylor_features
from genkern.kernels import latent_sums

SHARPNESS = [(1.0, 1.0), (0.3, 2.0), (0.0, 0.7), (2.0, 0.0), (1.5, np.inf)]


# --- the definition


def alike(one, other, lam):
    """The Gaussian kernel of two points, or of two symbols as one-hot vectors, which are at squared distance 2."""
    square = ((one - other) ** 2).sum() if np.ndim(one) else 2.0 * (one != other)
    return 1.0 if square == 0 else np.exp(-lam / 2 * square)


def posteriors_by_paths(model, x):
    """Return gamma (T, n) and the mean of xi, (n, n), from all state paths."""
    paths, weights = cases.path_weights(model, x)
    n, length = model.n_states, len(x)
    gamma, pairs = np.zeros((length, n)), np.zeros((n, n))
    for path, weight in zip(paths, weights / weights.sum()):
        gamma[np.arange(length), path] += weight
        for i, j in itertools.pairwise(path):
            pairs[i, j] += weight / (length - 1)
    return gamma, pairs


def observed_term(x, gamma, z, delta, lam_x, lam_q):
    total = 0.0
    for s, t in itertools.product(range(len(x)), range(len(z))):
        for i, j in itertools.product(range(gamma.shape[1]), repeat=2):
            total += alike(x[s], z[t], lam_x) * alike(i, j, lam_q) * gamma[s, i] * delta[t, j]
    return total / len(x) / len(z)


def hidden_term(pairs, others, lam_q):
    n = len(pairs)
    return sum(
        pairs[i, j] * others[k, m] * alike(i, k, lam_q) * alike(j, m, lam_q)
        for i, j, k, m in itertools.product(range(n), repeat=4)
    )


def kernel_by_definition(model, X, lam_x, lam_q):
    """Return both terms, (n, n) each, of Mehta & Gray's eq. 7 for an HMM."""
    known = [posteriors_by_paths(model, x) for x in X]
    shape = (len(X), len(X))
    observed, hidden = np.zeros(shape), np.zeros(shape)
    for (i, (g, a)), (j, (h, b)) in itertools.product(enumerate(known), repeat=2):
        observed[i, j] = observed_term(X[i], g, X[j], h, lam_x, lam_q)
        hidden[i, j] = hidden_term(a, b, lam_q)
    return observed, hidden


def random_objects(rng, family, lengths=(1, 2, 4, 3)):
    return [cases.random_sequence(rng, family, length) for length in lengths]


def gram(features):
    return features @ features.T


# --- the kernel


@pytest.mark.parametrize("ending", [None, "stop", "end"])
@pytest.mark.parametrize(("lam_x", "lam_q"), SHARPNESS)
@pytest.mark.parametrize("family", ["categorical", "diagonal"])
def test_the_kernel_is_that_of_the_definition(family, lam_x, lam_q, ending):
    rng = np.random.default_rng(0)
    model, X = cases.random_hmm(rng, family, n=3, ending=ending), random_objects(rng, family)
    observed, hidden = kernel_by_definition(model, X, lam_x, lam_q)
    P = Posteriors(model).fit_transform(X)
    for parts, expected in [("all", observed + hidden), ("observations", observed), ("transitions", hidden)]:
        kernel = LatentMean(lam_x, lam_q, parts)
        np.testing.assert_allclose(kernel(P), expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(kernel(P, P[1:3]), expected[:, 1:3], rtol=0, atol=1e-12)
        np.testing.assert_allclose(kernel.diag(P), np.diag(expected), rtol=0, atol=1e-12)
        if family == "categorical":
            features = LatentMeanMap(model, lam_x, lam_q, parts).fit_transform(X)
            np.testing.assert_allclose(gram(features), expected, rtol=0, atol=1e-12)


def test_symbols_that_must_be_equal_give_the_marginalized_kernel():
    rng = np.random.default_rng(1)
    model, X = cases.random_hmm(rng, n=3), random_objects(rng, "categorical")
    marginalized = Marginalized(model).fit_transform(X)
    latent = LatentMeanMap(model, np.inf, np.inf, parts="observations").fit(X)
    np.testing.assert_allclose(latent.transform(X), marginalized, rtol=0, atol=1e-15)
    P = Posteriors(model).fit_transform(X)
    np.testing.assert_allclose(LatentMean(np.inf, np.inf, "observations")(P), gram(marginalized), rtol=0, atol=1e-14)
    near = LatentMeanMap(model, 40.0, 40.0, parts="observations").fit_transform(X)
    np.testing.assert_allclose(near, marginalized, rtol=0, atol=1e-8)


def test_random_features_of_states_that_must_agree_are_the_marginalized_ones():
    rng = np.random.default_rng(2)
    model, X = cases.random_hmm(rng, "diagonal"), random_objects(rng, "diagonal")
    latent = LatentMeanMap(model, 0.4, np.inf, "observations", "fourier", 5000, random_state=3).fit_transform(X)
    marginalized = Marginalized(model, features="rbf", lam=0.4, n_components=5000).fit_transform(X)
    np.testing.assert_allclose(gram(latent), gram(marginalized), rtol=0, atol=0.05)


def test_ambiguous_symbols_are_averaged_over_their_members():
    rng = np.random.default_rng(3)
    model = HMM(cases.rows(rng, 2), cases.rows(rng, 2, 2), Categorical(cases.rows(rng, 2, 4), "dna"))
    X, members = ["ANR", "C", "NN"], {"N": "ACGT", "R": "AG"}
    weights, pairs = np.zeros((3, 4, 2)), np.zeros((3, 2, 2))
    for index, x in enumerate(X):
        total = 0.0
        for spelling in itertools.product(*(members.get(letter, letter) for letter in x)):
            codes = ["ACGT".index(letter) for letter in spelling]
            for path, weight in zip(*cases.path_weights(model, codes)):
                total += weight
                np.add.at(weights[index], (codes, path), weight / len(x))
                for i, j in itertools.pairwise(path):
                    pairs[index, i, j] += weight / (len(x) - 1)
        weights[index] /= total
        pairs[index] /= total
    lam_x, lam_q = 0.8, 1.3
    expected = np.zeros((3, 3))
    for i, j in itertools.product(range(3), repeat=2):
        expected[i, j] = hidden_term(pairs[i], pairs[j], lam_q)
        for a, b, k, m in itertools.product(range(4), range(4), range(2), range(2)):
            expected[i, j] += weights[i, a, k] * weights[j, b, m] * alike(a, b, lam_x) * alike(k, m, lam_q)
    P = Posteriors(model).fit_transform(X)
    np.testing.assert_allclose(LatentMean(lam_x, lam_q)(P), expected, rtol=0, atol=1e-12)
    features = LatentMeanMap(model, lam_x, lam_q).fit_transform(X)
    np.testing.assert_allclose(gram(features), expected, rtol=0, atol=1e-12)
    # the same model, each state emitting through a mixture of one component
    wrapped = HMM(model.start, model.transitions, Mixture.of(model.emissions))
    np.testing.assert_allclose(LatentMeanMap(wrapped, lam_x, lam_q).fit_transform(X), features, rtol=0, atol=1e-12)


def test_one_observation_has_no_transitions():
    rng = np.random.default_rng(4)
    for family in ("categorical", "diagonal"):
        model, X = cases.random_hmm(rng, family), random_objects(rng, family, (1, 1, 3))
        features = LatentMeanMap(model, parts="transitions").fit_transform(X)
        assert not features[:2].any()
        assert features[2].any()
        K = LatentMean(parts="transitions")(Posteriors(model).fit_transform(X))
        assert not K[:2].any()


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6), symbols=st.booleans(), lam_x=st.floats(0, 30), lam_q=st.floats(0, 30))
def test_matrices_are_symmetric_and_positive_semidefinite(seed, symbols, lam_x, lam_q):
    rng = np.random.default_rng(seed)
    family = "categorical" if symbols else "isotropic"
    model, X = cases.random_hmm(rng, family, zeros=0.2), random_objects(rng, family, rng.integers(1, 20, 6))
    K = LatentMean(lam_x, lam_q)(Posteriors(model).fit_transform(X))
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K).min() >= -1e-12
    assert np.diag(K).max() <= 2 + 1e-12  # one for each term, where all is alike


# --- explicit features of series


@pytest.fixture
def series():
    rng = np.random.default_rng(5)
    model, X = cases.random_hmm(rng, "diagonal", n=3), random_objects(rng, "diagonal", (1, 6, 9, 4))
    return model, X, LatentMean(0.6, 0.8)(Posteriors(model).fit_transform(X))


def test_random_features_are_unbiased_and_their_error_falls(series):
    model, X, K = series

    def errors(n_components, n_seeds):
        maps = [LatentMeanMap(model, 0.6, 0.8, n_components=n_components, random_state=seed) for seed in range(n_seeds)]
        return np.array([gram(latent.fit_transform(X)) - K for latent in maps])

    few, many = errors(30, 100), errors(480, 30)
    spread = few.std(axis=0) / np.sqrt(len(few))
    assert (np.abs(few.mean(axis=0)) < 4 * spread + 1e-12).all()
    ratio = np.sqrt((few**2).mean() / (many**2).mean())
    assert 3.0 < ratio < 5.3  # four times smaller with sixteen times as many


def test_frequencies_follow_the_kernel():
    frequencies, phases = draw_waves(2, 3.0, 20001, 0)
    np.testing.assert_allclose(np.cov(frequencies), 3.0 * np.eye(2), rtol=0, atol=0.15)
    points = np.random.default_rng(6).standard_normal((5, 2))
    exact = np.array([[alike(x, z, 3.0) for z in points] for x in points])
    np.testing.assert_allclose(gram(fourier_features(points, frequencies, phases)), exact, rtol=0, atol=0.03)
    np.testing.assert_allclose(np.diag(gram(fourier_features(points, frequencies, phases))), 1.0, rtol=0, atol=1e-3)
    assert (draw_waves(2, 0.0, 4, 0)[0] == 0).all()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_any_number_of_random_features_is_unbiased(count):
    points = np.array([[0.3], [1.1]])
    drawn = np.array([gram(fourier_features(points, *draw_waves(1, 0.5, count, seed))) for seed in range(3000)])
    exact = [[1.0, np.exp(-0.16)], [np.exp(-0.16), 1.0]]
    error = np.abs(drawn.mean(axis=0) - exact)
    assert (error <= 4 * drawn.std(axis=0) / np.sqrt(len(drawn)) + 1e-12).all()


def test_taylor_features_reach_the_kernel():
    rng = np.random.default_rng(7)
    model = cases.random_hmm(rng, "isotropic", n=2, size=1)
    X = [rng.standard_normal((length, 1)) + 1e3 for length in (1, 7, 4)]  # the place does not matter
    K = LatentMean(1.5, 0.8)(Posteriors(model).fit_transform(X))
    latent = LatentMeanMap(model, 1.5, 0.8, features="taylor", n_components=60).fit(X)
    np.testing.assert_allclose(gram(latent.transform(X)), K, rtol=0, atol=1e-10)
    assert latent.features_ == "taylor"
    assert latent.get_feature_names_out()[-1] == "transitions[1,1]"
    # terms far below the smallest float, which later ones are not
    points = np.array([-40.0, 39.7])
    exact = np.array([[alike(np.array([a]), np.array([b]), 1.0) for b in points] for a in points])
    np.testing.assert_allclose(gram(taylor_features(points, 1.0, 3000)), exact, rtol=0, atol=1e-10)


def test_the_choice_of_features():
    rng = np.random.default_rng(8)
    near, far = ([scale * rng.standard_normal((5, 1)) for _ in range(3)] for scale in (1.0, 30.0))
    one, three = (cases.random_hmm(rng, "isotropic", size=size) for size in (1, 3))
    assert LatentMeanMap(one).fit(near).features_ == "taylor"
    assert LatentMeanMap(one).fit(far).features_ == "fourier"
    assert LatentMeanMap(one, n_components=4).fit(near).features_ == "fourier"
    assert LatentMeanMap(one, features="fourier").fit(near).features_ == "fourier"
    assert LatentMeanMap(three).fit(random_objects(rng, "isotropic")).features_ == "fourier"
    with pytest.warns(UserWarning, match="with 100 Taylor features, the kernel of the outermost observation"):
        LatentMeanMap(one).fit(near).transform(far)
    with pytest.raises(ValueError, match=r"needs one channel\. Got 3"):
        LatentMeanMap(three, features="taylor").fit(random_objects(rng, "isotropic"))


# --- models


def test_components_of_mixtures():
    rng = np.random.default_rng(9)
    mixture = Mixture([0.3, 0.7], Gaussian([[0.0, 1.0], [2.0, 0.0]], [1.0, 0.5]))
    X = [rng.standard_normal((length, 2)) for length in (1, 4)]
    gammas = []
    for x in X:
        joint = [[w * cases.point_density(mixture.components, k, p) for k, w in enumerate((0.3, 0.7))] for p in x]
        gammas.append(np.array(joint) / np.sum(joint, axis=1, keepdims=True))
    expected = [[observed_term(x, g, z, h, 0.9, 0.4) for z, h in zip(X, gammas)] for x, g in zip(X, gammas)]
    P = Posteriors(mixture).fit_transform(X)
    assert P[0].pairs.size == 0
    np.testing.assert_allclose(LatentMean(0.9, 0.4)(P), expected, rtol=0, atol=1e-12)
    latent = LatentMeanMap(mixture, 0.9, 0.4, n_components=3).fit(X)
    assert list(latent.get_feature_names_out()) == [f"observations[{i},{k}]" for i in range(2) for k in range(3)]
    with pytest.raises(TypeError, match="need a hidden Markov model"):
        LatentMeanMap(mixture, parts="transitions").fit(X)
    with pytest.raises(ValueError, match="needs posteriors of neighbouring states"):
        LatentMean(parts="transitions")(P)


def test_chains_of_factorial_models_add_up():
    rng = np.random.default_rng(10)
    means = (rng.standard_normal((2, 1)), rng.standard_normal((3, 1)))
    model = FactorialHMM(
        [cases.rows(rng, 2), cases.rows(rng, 3)], [cases.rows(rng, 2, 2), cases.rows(rng, 3, 3)], means, [[0.7]]
    )
    X = [rng.standard_normal((length, 1)) for length in (1, 3, 5)]
    found = model.posterior(X, pairs=True)
    expected = np.zeros((3, 3))
    for (i, (g, a)), (j, (h, b)) in itertools.product(enumerate(found), repeat=2):
        for c in range(2):
            steps, others = (x[c].sum(axis=0) / max(len(x[c]), 1) for x in (a, b))
            expected[i, j] += observed_term(X[i], g[c], X[j], h[c], 0.9, 0.4) + hidden_term(steps, others, 0.4)
    P = Posteriors(model).fit_transform(X)
    assert P[0].sizes == (2, 3)
    np.testing.assert_allclose(LatentMean(0.9, 0.4)(P), expected, rtol=0, atol=1e-12)
    latent = LatentMeanMap(model, 0.9, 0.4, n_components=60).fit(X)
    np.testing.assert_allclose(gram(latent.transform(X)), expected, rtol=0, atol=1e-10)
    assert latent.get_feature_names_out()[-1] == "transitions[1,2,2]"


def test_phases_of_periodic_chains():
    rng = np.random.default_rng(11)
    chain = PeriodicChain(cases.rows(rng, 2), np.full((2, 2), 0.5), cases.rows(rng, 2, 2, 2), alphabet="ab")
    X = ["abba", "b"]
    gammas, codes = chain.posterior(X), [[0, 1, 1, 0], [1]]
    expected = [[observed_term(x, g, z, h, 0.9, 0.4) for z, h in zip(codes, gammas)] for x, g in zip(codes, gammas)]
    np.testing.assert_allclose(gram(LatentMeanMap(chain, 0.9, 0.4).fit_transform(X)), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(LatentMean(0.9, 0.4)(Posteriors(chain).fit_transform(X)), expected, rtol=0, atol=1e-12)
    chain = PeriodicChain([0.5, 0.5], np.full((2, 4), 0.25), cases.rows(rng, 2, 4, 4), alphabet="dna")
    with pytest.raises(ValueError, match=r"object 1, position 2 is the ambiguous symbol 'N'.*to_hmm"):
        Posteriors(chain).fit(["A"]).transform(["ACGT", "ACN"])


def test_sparse_counts_are_vectors():
    mixture = Mixture([0.5, 0.5], Multinomial([[0.6, 0.2, 0.2], [0.1, 0.1, 0.8]], total=4))
    table = np.array([[2.0, 1.0, 1.0], [0.0, 0.0, 4.0], [1.0, 1.0, 2.0]])
    gamma = np.concatenate(mixture.posterior(table))
    expected = [
        [observed_term(x[None], g[None], z[None], h[None], 0.3, 0.4) for z, h in zip(table, gamma)]
        for x, g in zip(table, gamma)
    ]
    for X in (table, sparse.csr_matrix(table)):
        np.testing.assert_allclose(LatentMean(0.3, 0.4)(Posteriors(mixture).fit_transform(X)), expected, rtol=1e-12)
        features = LatentMeanMap(mixture, 0.3, 0.4, n_components=20000).fit_transform(X)
        np.testing.assert_allclose(gram(features), expected, rtol=0, atol=0.05)


@pytest.mark.parametrize("embedding", [LatentMeanMap, Posteriors])
def test_what_is_refused(embedding):
    rng = np.random.default_rng(12)
    model, X = cases.random_hmm(rng, "diagonal"), random_objects(rng, "diagonal")
    gap = [x.copy() for x in X]
    gap[2][1, 0] = np.nan
    with pytest.raises(ValueError, match="object 2, position 1, column 0 is NaN"):
        embedding(model).fit(gap)
    with pytest.raises(ValueError, match="object 2, position 1, column 0 is NaN"):
        embedding(model).fit(X).transform(gap)
    with pytest.raises(TypeError, match="needs a model with discrete hidden states"):
        embedding(LDS([[0.5]], [[1.0]], [[1.0]], [[1.0]], [0.0], [[1.0]])).fit([x[:, :1] for x in X])
    windows = Mixture([0.5, 0.5], SiteModel(cases.rows(rng, 2, 3, 2), alphabet="ab"))
    with pytest.raises(TypeError, match="emits windows, not single symbols"):
        embedding(windows).fit(["aba", "bba"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lam_x": -1.0}, "'lam_x' parameter of LatentMeanMap must be a number >= 0"),
        ({"lam_q": np.nan}, "'lam_q' parameter"),
        ({"lam_x": np.inf}, "'lam_x' parameter of LatentMeanMap of series must be a finite number"),
        ({"parts": "both"}, "'parts' parameter"),
        ({"features": "rbf"}, "'features' parameter"),
        ({"n_components": 0}, "'n_components' parameter"),
        ({"random_state": None}, "'random_state' parameter"),
    ],
)
def test_wrong_options(options, message):
    rng = np.random.default_rng(13)
    model, X = cases.random_hmm(rng, "diagonal"), random_objects(rng, "diagonal")
    with pytest.raises(ValueError, match=message):
        LatentMeanMap(model, **options).fit(X)


# --- as embeddings


def test_results_do_not_depend_on_blocks_threads_or_neighbours(monkeypatch):
    rng = np.random.default_rng(14)
    for family in ("categorical", "diagonal"):
        model, X = cases.random_hmm(rng, family), random_objects(rng, family, (5, 1, 9, 3, 12, 2))
        whole, values = LatentMeanMap(model).fit_transform(X), Posteriors(model).fit_transform(X)
        for i in range(len(X)):
            np.testing.assert_array_equal(LatentMeanMap(model).fit(X).transform(X[i : i + 1])[0], whole[i])
            assert Posteriors(model).fit(X).transform(X[i : i + 1])[0] == values[i]
        with monkeypatch.context() as patch:
            patch.setattr(blocks, "BATCH_POSITIONS", 4)
            for n_jobs in (None, 2):
                np.testing.assert_array_equal(LatentMeanMap(model, n_jobs=n_jobs).fit_transform(X), whole)
                assert Posteriors(model, n_jobs=n_jobs).fit_transform(X) == values


def test_class_models_stand_side_by_side():
    X, y = ["abab", "aab", "bbba", "bab"], np.array([0, 0, 1, 1])
    estimator = HMMEstimator(2, max_iter=3, tol=0, random_state=0)
    latent = LatentMeanMap(estimator, per_class=True).fit(X, y)
    parts = [LatentMeanMap(model).fit_transform(X) for model in latent.model_.models]
    np.testing.assert_array_equal(latent.transform(X), np.column_stack(parts))
    names = latent.get_feature_names_out()
    assert (names[0], names[8], len(names)) == ("0.observations[0,a]", "1.observations[0,a]", 16)


def test_nu_is_a_kernel_on_top():
    rng = np.random.default_rng(15)
    model, X = cases.random_hmm(rng, n=3), random_objects(rng, "categorical")
    X.append(X[2].copy())
    K = sum(kernel_by_definition(model, X, 1.0, 2.0))
    expected = np.array([[np.exp(-0.7 * (K[i, i] - 2 * K[i, j] + K[j, j])) for j in range(5)] for i in range(5)])
    features, P = LatentMeanMap(model, 1.0, 2.0).fit_transform(X), Posteriors(model).fit_transform(X)
    for found in (
        Linear().exp(0.7)(features),
        LatentMean(1.0, 2.0).exp(0.7)(P),
        LatentMean(1.0, 2.0).exp(0.7)(P, P[:]),
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
        assert found.max() <= 1.0


def test_the_kernel_in_learners():
    rng = np.random.default_rng(16)
    y = np.arange(20) % 2
    X = [rng.standard_normal((int(rng.integers(3, 9)), 1)) + 3 * label for label in y]
    estimator = HMMEstimator(2, max_iter=3, tol=0, random_state=0)
    kernel = (LatentMean() * LatentMean(0.5, 0.0)).normalized() + 1
    called = make_pipeline(Posteriors(estimator), SVC(kernel=kernel)).fit(X, y)
    computed = make_pipeline(Posteriors(estimator), Gram(kernel, n_jobs=2, block_size=7), SVC(kernel="precomputed"))
    np.testing.assert_array_equal(called.predict(X), y)
    np.testing.assert_allclose(computed.fit(X, y).decision_function(X), called.decision_function(X), rtol=1e-9)
    grid = {"latentmeanmap__lam_q": [0.0, 1.0], "latentmeanmap__estimator__n_states": [1, 2]}
    search = GridSearchCV(make_pipeline(LatentMeanMap(estimator), LinearSVC()), grid, cv=2).fit(X, y)
    assert search.score(X, y) == 1.0


# --- the value and its sums


def test_posteriors_are_values():
    value = Posterior([[0.0], [1.0]], [[0.5, 0.0], [0.1, 0.4]], [[0.1, 0.2], [0.3, 0.4]])
    assert value == pickle.loads(pickle.dumps(value))
    assert value != Posterior([[0.0], [1.0]], [[0.5, 0.0], [0.1, 0.4]])
    assert hash(value) == hash(Posterior(value.points, value.weights, value.pairs))
    assert value.shape == ()
    with pytest.raises(ValueError, match="read-only"):
        value.weights[0, 0] = 1.0
    chains = Posterior([2, 0], [[0.5, 0.2, 0.3], [0.5, 0.5, 0.0]], np.zeros(5), sizes=(1, 2))
    assert (chains.points.dtype, chains.sizes) == (np.int32, (1, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, -1], [[0.5], [0.5]]), "codes of symbols must not be negative. Got -1"),
        (([[0.0]], [[0.5], [0.5]]), r"'weights' must have shape \(1, 1\).*Got \(2, 1\)"),
        (([[0.0]], [[0.5, 0.6]]), "must sum to 1"),
        (([[0.0]], [[0.5, 0.5]], [0.5]), "'pairs' must be 4 probabilities.*Got 1 numbers"),
        (([[0.0]], [[0.5, 0.5]], [0.5, 0.5, -0.5, 0.5]), "the least -0.5"),
        (([[0.0]], [[0.5, 0.5]], (), [3]), r"shape \(1, 3\)"),
        (([[np.nan]], [[0.5, 0.5]]), "must be finite"),
    ],
)
def test_wrong_posteriors(arguments, message):
    with pytest.raises(ValueError, match=message):
        Posterior(*arguments)


def test_posteriors_of_different_models_are_refused():
    one, two = Posterior([0], [[1.0]]), Posterior([0], [[0.5, 0.5]])
    with pytest.raises(ValueError, match="objects 0 and 1 are not posteriors under one model: symbols with"):
        LatentMean()([one, two])
    with pytest.raises(ValueError, match="X and Y must be posteriors under one model"):
        LatentMean()([one], [Posterior([[0.0]], [[1.0]])])
    with pytest.raises(TypeError, match=r"compares posteriors.*at 1"):
        LatentMean()([one, "abc"])
    with pytest.raises(ValueError, match="at least one posterior"):
        LatentMean()([])
    with pytest.raises(ValueError, match="'lam_x' parameter of LatentMean must be a finite number"):
        LatentMean(np.inf)([Posterior([[0.0]], [[1.0]])])


def test_tables_of_symbols_in_pieces(monkeypatch):
    rng = np.random.default_rng(17)
    P = []
    for length in (1, 5, 8):  # symbols may be repeated
        P.append(Posterior(rng.integers(0, 6, length), cases.rows(rng, length * 2).reshape(length, 2)))
    expected = np.zeros((3, 3))
    for (i, p), (j, q) in itertools.product(enumerate(P), repeat=2):
        scaled = p.weights * len(p.points), q.weights * len(q.points)
        expected[i, j] = observed_term(p.points, scaled[0], q.points, scaled[1], 0.5, 0.9)
    np.testing.assert_allclose(LatentMean(0.5, 0.9)(P), expected, rtol=0, atol=1e-12)
    monkeypatch.setattr(latent_sums, "NUMBERS", 20)
    np.testing.assert_allclose(LatentMean(0.5, 0.9)(P), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(LatentMean(0.5, 0.9).diag(P), np.diag(expected), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("d", "k"), [(1, 1), (3, 2), (2, 5)])
def test_compiled_sums_are_those_of_plain_loops(d, k):
    rng = np.random.default_rng(18)
    offsets = np.cumsum([0, 1, 7, 8, 9, 23])
    points, vectors = rng.standard_normal((offsets[-1], d)), rng.standard_normal((offsets[-1], k))
    points[3] += 100.0  # so far away that the kernel is zero
    expected = np.zeros((5, 5))
    for i, j in itertools.product(range(5), repeat=2):
        for s, t in itertools.product(range(*offsets[i : i + 2]), range(*offsets[j : j + 2])):
            expected[i, j] += alike(points[s], points[t], 0.7) * (vectors[s] @ vectors[t])
    found = core.gaussian_sums(points, vectors, offsets, None, 0.7)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(core.own_gaussian_sums(points, vectors, offsets, 0.7), np.diag(found))
    first = slice(0, offsets[2])
    part = core.gaussian_sums(
        points[first], vectors[first], offsets[:3], (points[8:], vectors[8:], offsets[2:] - 8), 0.7
    )
    np.testing.assert_array_equal(part, found[:2, 2:])  # to the last bit, whatever stands beside
