import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp
from skimage.feature import fisher_vector
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from genkern import (
    HMM,
    Categorical,
    CategoricalEstimator,
    FisherScore,
    FitEach,
    Gaussian,
    GaussianEstimator,
    HMMEstimator,
    Mixture,
    MixtureEstimator,
    SiteEstimator,
    check_score,
)
from genkern.core.arrays.scaled_rows import scaled_rows
from genkern.core.gaussian import passes as core
from genkern.core.mixture.posteriors import share_out
from genkern.models.mixture import passes as mixture_passes
from tests.cases import path_weights, point_density, random_leaf, random_sequence, rows

FAMILIES = ("categorical", "isotropic", "diagonal", "full")
PEERS = {"isotropic": "spherical", "diagonal": "diag", "full": "full"}


def random_mixture(rng, family, batch=(), k=3, size=3, zeros=0.0):
    return Mixture(rows(rng, *batch, k, zeros=zeros), random_leaf(rng, family, (*batch, k), size))


def density(model, x):
    """Density of one point under one mixture, term by term."""
    return sum(w * point_density(model.components, k, x) for k, w in enumerate(model.weights))


def clusters(rng, count=150, d=2, gap=4.0, k=3):
    return np.concatenate([rng.standard_normal((count, d)) * (1 + 0.3 * c) + gap * c for c in range(k)])


def peer(X, covariance, steps, start):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of the steps it was given
        return GaussianMixture(
            start.n_components,
            covariance_type=PEERS[covariance],
            reg_covar=0.0,
            tol=0.0,
            max_iter=steps,
            weights_init=np.array(start.weights),
            means_init=np.array(start.components.mean),
            precisions_init=np.array(start.components.cov),  # ones, so that covariances are precisions
        ).fit(X)


def unit_start(rng, X, covariance, k=3):
    d = X.shape[1]
    cov = {"isotropic": np.ones(k), "diagonal": np.ones((k, d)), "full": np.tile(np.eye(d), (k, 1, 1))}[covariance]
    return Mixture(rows(rng, k), Gaussian(X[rng.choice(len(X), k, replace=False)], cov))


# --- the value


@pytest.mark.parametrize("family", FAMILIES)
def test_log_prob_of_a_bag_sums_over_components_and_points(family):
    rng = np.random.default_rng(0)
    model = random_mixture(rng, family, zeros=0.3)
    X = [random_sequence(rng, family, length, missing=0.3) for length in (1, 4, 9)]
    expected = [sum(np.log(density(model, x)) for x in bag) for bag in X]
    np.testing.assert_allclose(model.log_prob(X), expected, rtol=1e-10)


@pytest.mark.parametrize("family", FAMILIES)
def test_posterior_is_bayes_rule(family):
    rng = np.random.default_rng(1)
    model = random_mixture(rng, family, zeros=0.3)
    X = [random_sequence(rng, family, length, missing=0.3) for length in (3, 1)]
    for bag, found in zip(X, model.posterior(X)):
        joint = [[w * point_density(model.components, k, x) for k, w in enumerate(model.weights)] for x in bag]
        expected = np.array(joint) / np.sum(joint, axis=1, keepdims=True)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-300)


def test_density_integrates_to_one():
    model = random_mixture(np.random.default_rng(2), "full", size=2)
    axis = np.linspace(-15.0, 15.0, 301)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    assert np.exp(model.log_density(grid)).sum() * 0.1**2 == pytest.approx(1.0, abs=1e-8)
    symbols = random_mixture(np.random.default_rng(2), "categorical")
    assert np.exp(symbols.log_prob([[0], [1], [2]])).sum() == pytest.approx(1.0, abs=1e-12)


def test_sample_and_density_agree():
    model = Mixture([0.3, 0.7], Gaussian([[-1.0], [3.0]], [[0.5], [2.0]]))
    draws = np.concatenate(model.sample(3000, rng=0)).ravel()

    def cdf(x):
        return 0.3 * stats.norm(-1.0, np.sqrt(0.5)).cdf(x) + 0.7 * stats.norm(3.0, np.sqrt(2.0)).cdf(x)

    assert stats.kstest(draws, cdf).pvalue > 1e-3
    assert [bag.shape for bag in model.sample(2, length=5, rng=1)] == [(5, 1), (5, 1)]
    symbols = Mixture([0.4, 0.6], Categorical([[0.9, 0.1], [0.2, 0.8]], "ab"))
    text = "".join(symbols.sample(1000, length=4, rng=2))
    assert stats.chisquare([text.count("a"), text.count("b")], 4000 * np.array([0.48, 0.52])).pvalue > 1e-3


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_match_differences(family):
    rng = np.random.default_rng(3)
    model = random_mixture(rng, family, size=2)
    X = [random_sequence(rng, family, 3, 2, missing=0.3), random_sequence(rng, family, 1, 2)]
    assert max(check_score(model, X).values()) < 1e-7


def test_natural_scores_match_differences_and_the_papers_formula():
    rng = np.random.default_rng(4)
    model = random_mixture(rng, "isotropic", k=2, size=3)
    X = rng.standard_normal((4, 3)) + 1.0
    assert check_score(model, X, "natural")["natural"] < 1e-7
    g = np.array([[point_density(model.components, k, x) for k in range(2)] for x in X])
    q = g @ model.weights
    found = model.log_prob_grad(X, "natural")
    np.testing.assert_allclose(found[:, 0], (g[:, 0] - g[:, 1]) / q, rtol=1e-10)
    mean, variance = model.components.mean[0], model.components.cov[0]
    t = np.column_stack([(X**2).sum(axis=1), X]) - np.append(3 * variance + mean @ mean, mean)
    np.testing.assert_allclose(found[:, 1:5], (model.weights[0] * g[:, 0] / q)[:, None] * t, rtol=1e-9)
    for other in ("diagonal", "categorical"):
        with pytest.raises(ValueError, match="isotropic Gaussians"):
            random_mixture(rng, other).parameters("natural")


def test_far_points_and_zero_weights_are_no_trouble():
    model = Mixture([0.0, 0.4, 0.6], Gaussian([[150.0], [0.0], [1.0]], [1.0, 1.0, 1.0]))
    X = np.array([[-145.0], [0.2]])  # densities near 1e-4600
    joint = -0.5 * (X - [0.0, 1.0]) ** 2 - 0.5 * np.log(2 * np.pi) + np.log([0.4, 0.6])
    np.testing.assert_allclose(model.log_prob(X), logsumexp(joint, axis=1), rtol=1e-13)
    for coordinates in ("softmax", "ratio", "sqrt", "raw", "natural"):
        assert np.isfinite(model.log_prob_grad(X, coordinates)).all()
    # The derivative by a zero weight is the ratio of densities, which no weight divides.
    raw = model.log_prob_grad(X, "raw")
    ratio = -0.5 * (0.2 - 150.0) ** 2 - 0.5 * np.log(2 * np.pi) - logsumexp(joint[1])
    np.testing.assert_allclose(raw[1, 0], np.exp(ratio), rtol=1e-10)
    near = Mixture([0.0, 1.0], Gaussian([[0.0], [0.5]], [1.0, 1.0]))
    expected = stats.norm(0, 1).pdf(0.1) / stats.norm(0.5, 1).pdf(0.1)
    np.testing.assert_allclose(near.log_prob_grad([[0.1]], "raw")[0, :2], [expected, 1.0], rtol=1e-12)
    beyond = Mixture([0.0, 1.0], Gaussian([[90.0], [0.0]], [1.0, 1.0])).log_prob_grad([[90.0]], "raw")
    assert beyond[0, 0] > 1e300
    assert np.isfinite(beyond).all()


def test_zero_weights_in_the_emissions_of_an_hmm_have_finite_derivatives():
    rng = np.random.default_rng(5)
    weights = np.array([[0.0, 1.0], [0.3, 0.7]])
    table = Categorical([[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.2, 0.8]]])
    model = HMM(rows(rng, 2), rows(rng, 2, 2), Mixture(weights, table))
    X = [np.array([0, 1, 0, 0])]
    place = model.parameter_names.index("emissions.weights[0,0]")
    found = model.log_prob_grad(X, "raw")[0, place]
    vector, step = model.parameters("raw"), 1e-6
    moved = vector.copy()
    moved[place] += step  # a step below zero would leave the model
    difference = (model.with_parameters(moved, "raw").log_prob(X) - model.log_prob(X))[0] / step
    assert found == pytest.approx(difference, rel=1e-4)
    assert found > 0


def test_a_leaf_is_a_mixture_of_one():
    rng = np.random.default_rng(6)
    leaf = random_leaf(rng, "full", (2,))
    one = Mixture.of(leaf)
    assert (one.shape, one.n_components) == ((2,), 1)
    X = rng.standard_normal((5, 3))
    np.testing.assert_allclose(one.log_density(X), leaf.log_density(X), rtol=1e-13)
    assert Mixture.of(one) is one


@pytest.mark.parametrize("family", ["isotropic", "diagonal", "full"])
def test_information_is_that_of_an_observer_of_the_components(family):
    """Well separated components are as good as seen: the second moment of scores is the information."""
    rng = np.random.default_rng(7)
    leaf = random_leaf(rng, family, (2,), 2)
    model = Mixture([0.3, 0.7], Gaussian(leaf.mean + np.array([[0.0], [60.0]]), leaf.cov))
    X = model.sample(1, length=100_000, rng=1)[0]
    scores = model.log_prob_grad(X)
    found, expected, at = scores.T @ scores / len(X), np.zeros((scores.shape[1],) * 2), 0
    for block in model.stack([model]).member_information(np.ones(1), "softmax"):
        expected[at : at + len(block), at : at + len(block)] = block
        at += len(block)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(found / scale, expected / scale, atol=0.06)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: Mixture([0.5, 0.6], Gaussian([[0.0], [1.0]], [1.0, 1.0])), ValueError, "sum to 1"),
        (lambda: Mixture([0.5, 0.5], Gaussian([0.0], 1.0)), ValueError, r"batch \(2,\)"),
        (lambda: Mixture([1.0], "gaussian"), TypeError, "Got str"),
        (lambda: Mixture([[1.0]], Mixture([[1.0]], Gaussian([[[0.0]]], [[1.0]]))), TypeError, "into one"),
        (lambda: random_mixture(np.random.default_rng(0), "full").log_prob(np.zeros((2, 2))), ValueError, "2"),
        (lambda: random_mixture(np.random.default_rng(0), "full", (2,)).posterior([]), ValueError, "index it"),
        (lambda: random_mixture(np.random.default_rng(0), "full").parameters("polar"), ValueError, "natural"),
        (
            lambda: Mixture([1.0], Categorical([[1.0, 0.0]], "ab")).log_prob_grad(["a", "b"]),
            ValueError,
            "object 1 has probability zero",
        ),
    ],
)
def test_errors_of_the_value(build, error, message):
    with pytest.raises(error, match=message):
        build()


# --- the passes


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 3), k=st.integers(1, 20), own=st.booleans())
def test_shares_are_bayes_rule(seed, n, k, own):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 200, 3)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    logs = 300.0 * rng.standard_normal((offsets[-1], n, k)) - 4000.0
    logs[rng.random(logs.shape) < 0.2] = -np.inf
    weights = rows(rng, 3 if own else 1, n, k, zeros=0.2)
    given_weights = rng.random((offsets[-1], n))
    with np.errstate(divide="ignore", invalid="ignore"):
        joint = logs + np.log(weights)[np.repeat(np.arange(3), lengths) if own else np.zeros(offsets[-1], int)]
        expected = logsumexp(joint, axis=-1)
        shares = np.nan_to_num(np.exp(joint - expected[..., None])) * given_weights[..., None]
        found, sums = share_out(logs, np.log(weights), offsets, given_weights)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    np.testing.assert_allclose(logs, shares, rtol=1e-9, atol=1e-290)
    np.testing.assert_allclose(sums, np.add.reduceat(shares, offsets[:-1], axis=0), rtol=1e-9, atol=1e-290)


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 20), count=st.integers(1, 300))
def test_scaled_rows_have_a_largest_entry_of_one(seed, n, count):
    rng = np.random.default_rng(seed)
    logs = 400.0 * rng.standard_normal((count, n))
    logs[rng.random(logs.shape) < 0.4] = -np.inf
    table, shift, raised = scaled_rows(logs.copy())
    dead = np.isneginf(logs).all(axis=1)
    np.testing.assert_array_equal(shift, np.where(dead, 0.0, logs.max(axis=1)))
    scaled = logs - shift[:, None]
    faint = (scaled > -np.inf) & (scaled < np.log(2.0**-900))
    expected = np.where(faint, 2.0**-900, np.exp(scaled))
    np.testing.assert_allclose(table, expected, rtol=1e-14)
    assert raised or not faint.any()
    assert not scaled_rows(np.where(np.isneginf(logs), logs, logs / 100.0))[2]


@settings(deadline=None, max_examples=15)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 10),
    d=st.integers(1, 18),
    full=st.booleans(),
    own=st.booleans(),
    totals=st.booleans(),
    missing=st.sampled_from([0.0, 0.02, 0.5]),
)
def test_gaussian_passes_are_sums_over_points(seed, n, d, full, own, totals, missing):
    rng = np.random.default_rng(seed)
    lengths = np.append(rng.integers(1, 20, 2), rng.integers(1, 140))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    X = rng.standard_normal((offsets[-1], d)) + 5.0
    X[rng.random(X.shape) < missing] = np.nan
    weights = rng.random((len(X), n))
    P = 3 if own else 1
    half = rng.standard_normal((P, n, d, d)) / np.sqrt(d)
    cov = half @ np.swapaxes(half, -1, -2) + 0.5 * np.eye(d) if full else rng.random((P, n, d)) + 0.5
    normals = core.Normals(rng.standard_normal((P, n, d)) + 5.0, cov)
    logs = core.log_density(normals, X, offsets)
    found = core.moments(normals, X, offsets, weights, totals)
    matrices = cov if full else cov[..., None] * np.eye(d)
    owner = np.repeat(np.arange(3), lengths) if own else np.zeros(len(X), int)
    group = np.zeros(len(X), int) if totals else np.repeat(np.arange(3), lengths)
    for k in range(n):
        density, first, second = [], [], []
        for x, p in zip(X, owner):
            seen = ~np.isnan(x)
            mean, matrix = normals.mean[p, k], matrices[p, k]
            gap, spread = x - mean, np.zeros((d, d))
            inner = matrix[np.ix_(seen, seen)]
            solved = np.linalg.solve(inner, gap[seen])
            half_log = 0.5 * np.linalg.slogdet(2 * np.pi * inner)[1]
            density.append(-0.5 * gap[seen] @ solved - half_log)
            gap[~seen] = matrix[np.ix_(~seen, seen)] @ solved
            across = matrix[np.ix_(seen, ~seen)]
            spread[np.ix_(~seen, ~seen)] = matrix[np.ix_(~seen, ~seen)] - across.T @ np.linalg.solve(inner, across)
            first.append(gap)
            second.append(np.outer(gap, gap) + spread)
        np.testing.assert_allclose(logs[:, k], density, rtol=1e-9, atol=1e-9)
        for g in range(1 if totals else 3):
            w = np.where(group == g, weights[:, k], 0.0)
            matrix = np.einsum("t,tab->ab", w, second)
            np.testing.assert_allclose(found.weight[g, k], w.sum(), rtol=1e-12)
            np.testing.assert_allclose(found.first[g, k], w @ first, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(found.second[g, k], matrix if full else np.diag(matrix), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_blocks_of_points_and_threads_do_not_matter(family, monkeypatch):
    rng = np.random.default_rng(8)
    model = random_mixture(rng, family)
    X = [random_sequence(rng, family, int(length), missing=0.05) for length in rng.integers(1, 60, 20)]
    whole, total = model.log_prob_grad(X), model.statistics(X, totals=True)
    monkeypatch.setattr(mixture_passes, "BATCH", 200)
    np.testing.assert_array_equal(model.log_prob_grad(X), whole)
    np.testing.assert_array_equal(model.log_prob_grad(X[3:4]), whole[3:4])
    np.testing.assert_array_equal(model.log_prob(X[::-1]), model.log_prob(X)[::-1])
    pieces, threads = model.statistics(X, totals=True), model.statistics(X, totals=True, n_jobs=2)
    for name, block in total.blocks.items():
        np.testing.assert_allclose(pieces[name], block, rtol=1e-10, atol=1e-10)
        np.testing.assert_array_equal(threads[name], pieces[name])
        np.testing.assert_allclose(model.statistics(X)[name].sum(axis=0), block[0], rtol=1e-10, atol=1e-10)


def test_fisher_vectors_are_those_of_scikit_image():
    """Its vectors are ours divided by the points, in units of weights and standard deviations, with the sign turned."""
    rng = np.random.default_rng(9)
    X = clusters(rng, d=4)
    theirs = peer(X, "diagonal", 3, unit_start(rng, X, "diagonal"))
    model = Mixture(theirs.weights_, Gaussian(theirs.means_, theirs.covariances_))
    bags, k = np.split(X[rng.permutation(len(X))], 9), 3
    expected = np.array([fisher_vector(bag, theirs) for bag in bags])
    scores = model.log_prob_grad(bags) / len(bags[0])
    weights, variances = theirs.weights_, theirs.covariances_
    means = scores[:, k : k + 12] * (np.sqrt(variances) / np.sqrt(weights)[:, None]).ravel()
    spreads = scores[:, k + 12 :] * np.sqrt(2.0 / np.repeat(weights, 4))
    np.testing.assert_allclose(np.abs(means), np.abs(expected[:, k : k + 12]), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(np.abs(spreads), np.abs(expected[:, k + 12 :]), rtol=1e-8, atol=1e-10)
    shares = scores[:, :k] / np.sqrt(weights)
    np.testing.assert_allclose(np.abs(shares), np.abs(expected[:, :k]), rtol=1e-8, atol=1e-10)


# --- the estimator


@pytest.mark.parametrize("covariance", ["isotropic", "diagonal", "full"])
@pytest.mark.parametrize("steps", [1, 7])
def test_em_is_that_of_scikit_learn(covariance, steps):
    rng = np.random.default_rng(10)
    X = clusters(rng)
    start = unit_start(rng, X, covariance)
    theirs = peer(X, covariance, steps, start)
    component = GaussianEstimator(covariance, min_covar=0.0)
    ours = MixtureEstimator(3, component, init=start, pseudocount=0.0, tol=0.0, max_iter=steps).fit(X)
    model = ours.model_
    np.testing.assert_allclose(model.weights, theirs.weights_, rtol=1e-8)
    np.testing.assert_allclose(model.components.mean, theirs.means_, rtol=1e-8)
    np.testing.assert_allclose(model.components.cov, theirs.covariances_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.log_prob(X), theirs.score_samples(X), rtol=1e-8)
    np.testing.assert_allclose(np.concatenate(model.posterior(X)), theirs.predict_proba(X), rtol=1e-8, atol=1e-12)
    assert ours.history_[-1] == pytest.approx(len(X) * theirs.score(X), rel=1e-8)


@pytest.mark.parametrize("family", ["categorical", "gaussian", "poisson", "bernoulli", "gamma"])
def test_em_never_falls(family):
    rng = np.random.default_rng(11)
    X = {
        "categorical": [rng.integers(0, 4, 6) for _ in range(20)],
        "gaussian": [np.where(rng.random((8, 2)) < 0.2, np.nan, rng.standard_normal((8, 2))) for _ in range(12)],
        "poisson": [rng.poisson([[1, 5]], (8, 2)).astype(float) for _ in range(12)],
        "bernoulli": [rng.integers(0, 2, (8, 3)).astype(float) for _ in range(12)],
        "gamma": [rng.gamma(2.0, 1.0, (8, 2)) for _ in range(12)],
    }[family]
    fitted = MixtureEstimator(3, family, max_iter=60, tol=0.0).fit(X)
    steps = np.diff(fitted.history_)
    assert steps.min() >= -1e-9 * abs(fitted.history_[0])
    assert len(fitted.history_) == 61
    assert fitted.model_.n_components == 3


def test_known_parameters_are_recovered():
    truth = Mixture(
        [0.2, 0.5, 0.3], Gaussian([[0.0, 0.0], [4.0, 0.0], [0.0, 5.0]], [[1.0, 0.5], [0.5, 2.0], [1.0, 1.0]])
    )
    X = truth.sample(60, length=100, rng=0)
    fitted = MixtureEstimator(3, n_init=2).fit(X)
    assert fitted.converged_
    order = [
        int(np.argmin(((fitted.model_.components.mean - mean) ** 2).sum(axis=1))) for mean in truth.components.mean
    ]
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(fitted.model_.weights[order], truth.weights, atol=0.03)
    np.testing.assert_allclose(fitted.model_.components.mean[order], truth.components.mean, atol=0.15)
    np.testing.assert_allclose(fitted.model_.components.cov[order], truth.components.cov, atol=0.2)
    assert fitted.model_.log_prob(X).sum() >= truth.log_prob(X).sum()


def test_mixtures_of_windows_find_their_motifs():
    rng = np.random.default_rng(12)
    motifs = ["acgta", "ttgca"]
    X = ["".join(c if rng.random() < 0.9 else rng.choice(list("acgt")) for c in motifs[i % 2]) for i in range(60)]
    model = MixtureEstimator(2, SiteEstimator("dna")).fit(X).model_
    labels = np.array([r[0].argmax() for r in model.posterior(X)])
    assert abs(np.mean(labels == np.arange(60) % 2) - 0.5) > 0.45  # whichever component is the first
    assert len(model.sample(3, rng=0)[0]) == 5


@pytest.mark.parametrize("family", ["categorical", "diagonal", "full"])
def test_fit_each_depends_on_the_bag_alone(family):
    rng = np.random.default_rng(13)
    X = [random_sequence(rng, family, length, 2, missing=0.1) for length in (12, 30, 7, 30)]
    component = CategoricalEstimator(2) if family == "categorical" else GaussianEstimator(family)
    estimator = MixtureEstimator(2, component, n_init=2, max_iter=1000, tol=1e-3)
    models = estimator.fit_each(X)
    assert models[::-1] == estimator.fit_each(X[::-1])
    assert models == [estimator.fit_each([x])[0] for x in X]
    assert models == FitEach(estimator, n_jobs=2).fit_transform(X)
    assert len({model.digest for model in models}) == 4
    for x, model in zip(X, models):
        assert model.log_prob([x])[0] >= component.fit([x]).model_.log_prob([x])[0] - 1.0


def test_missing_entries_are_integrated_out():
    """At the maximum the derivatives of the likelihood, whose marginals are checked above, vanish."""
    rng = np.random.default_rng(14)
    X = clusters(rng, count=60, k=2)
    X[rng.random(X.shape) < 0.2] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    component = GaussianEstimator("full", min_covar=0.0)
    model = MixtureEstimator(2, component, pseudocount=0.0, tol=1e-13, max_iter=3000).fit(X).model_
    np.testing.assert_allclose(model.log_prob_grad(X).sum(axis=0), 0.0, atol=1e-3)


def test_maximize_of_statistics_is_a_step():
    rng = np.random.default_rng(15)
    X = [clusters(rng, count=5) for _ in range(4)]
    start = unit_start(rng, X[0], "diagonal")
    estimator = MixtureEstimator(3, GaussianEstimator(), init=start, max_iter=1, tol=0.0)
    step = estimator.fit(X).model_
    one = MixtureEstimator(3).maximize(start.statistics(X))
    np.testing.assert_allclose(one.parameters(), step.parameters(), rtol=1e-9)
    own = MixtureEstimator(3).maximize(Mixture.stack([start] * 4).statistics(X))
    for found, expected in zip(own.unstack(), estimator.fit_each(X)):
        np.testing.assert_allclose(found.parameters(), expected.parameters(), rtol=1e-9)


def test_degenerate_data_give_finite_models():
    same = np.ones((6, 2))
    fitted = MixtureEstimator(3, random_state=1).fit(same)  # one distinct point: two components have none
    assert np.isfinite(fitted.model_.parameters("raw")).all()
    assert np.isfinite(fitted.model_.log_prob(same)).all()
    assert fitted.model_.components.cov.min() >= 1e-4
    empty = Mixture([0.5, 0.5], Gaussian([[0.0], [1e6]], [1.0, 1.0]))
    steps = MixtureEstimator(2, GaussianEstimator("isotropic"), init=empty, pseudocount=0.0, max_iter=3, tol=0.0)
    model = steps.fit([[0.0], [1.0]]).model_
    np.testing.assert_array_equal(model.weights, [1.0, 0.0])
    assert model.components.mean[1, 0] == 1e6  # nothing belongs to it, so it stays


@pytest.mark.parametrize(
    ("parameters", "X", "error", "message"),
    [
        ({"n_components": 4}, np.zeros((3, 1)), ValueError, r"have 3 sample\(s\), fewer than n_components=4"),
        ({"n_components": 0}, np.zeros((3, 1)), ValueError, "n_components"),
        ({"component": "round"}, np.zeros((3, 1)), ValueError, "'auto', "),
        ({"component": MixtureEstimator()}, np.zeros((3, 1)), TypeError, "raise n_components"),
        ({"init": "kmeans"}, ["abab", "ba"], ValueError, "use init='random'"),
        ({"init": "best"}, np.zeros((3, 1)), ValueError, "kmeans"),
        ({"init": Mixture([1.0], Gaussian([[0.0]], [1.0]))}, np.zeros((3, 1)), ValueError, "n_components=2"),
    ],
)
def test_errors_of_the_estimator(parameters, X, error, message):
    with pytest.raises(error, match=message):
        MixtureEstimator(**parameters).fit(X)


def test_few_points_in_a_bag_are_an_error_and_few_steps_a_warning():
    with pytest.raises(ValueError, match=r"object 1 has 2 sample\(s\)"):
        MixtureEstimator(3).fit_each([np.zeros((4, 1)), np.zeros((2, 1))])
    X = clusters(np.random.default_rng(16), count=20)
    with pytest.warns(ConvergenceWarning, match="1 of 1 models did not converge in 2 steps.*n_components"):
        MixtureEstimator(3, max_iter=2, tol=1e-12).fit(X)


# --- as the emissions of an HMM


@pytest.mark.parametrize("family", FAMILIES)
def test_hmm_with_mixtures_sums_over_paths_and_components(family):
    rng = np.random.default_rng(17)
    emissions = random_mixture(rng, family, (2,), k=3, size=2, zeros=0.2)
    model = HMM(rows(rng, 2), rows(rng, 2, 2), emissions)
    X = [random_sequence(rng, family, length, 2, missing=0.2) for length in (4, 1)]
    # The same model with a state for every pair of a state and a component.
    start = (model.start[:, None] * emissions.weights).ravel()
    steps = np.einsum("ij,jk->ijk", model.transitions, emissions.weights).reshape(2, 6).repeat(3, axis=0)
    pairs = HMM(start, steps, emissions.flat_components())
    expected = [np.log(path_weights(pairs, x)[1].sum()) for x in X]
    np.testing.assert_allclose(model.log_prob(X), expected, rtol=1e-10)
    for ours, theirs in zip(model.posterior(X), pairs.posterior(X)):
        np.testing.assert_allclose(ours, theirs.reshape(-1, 2, 3).sum(axis=2), atol=1e-12)
    smooth = HMM(model.start, model.transitions, random_mixture(rng, family, (2,), k=2, size=2))
    assert max(check_score(smooth, X).values()) < 1e-6
    features = FisherScore(smooth).fit(X).transform(X)
    assert np.isfinite(features).all()
    assert features.shape == (2, len(smooth.parameter_names))
    assert [len(x) for x in smooth.sample(3, length=4, rng=0)] == [4, 4, 4]


@pytest.mark.parametrize("structure", ["ergodic", "left-right"])
def test_hmm_estimator_with_mixtures(structure):
    rng = np.random.default_rng(18)
    X = [np.concatenate([clusters(rng, 4, k=2), 20.0 + clusters(rng, 3, k=3)]) for _ in range(6)]
    estimator = HMMEstimator(2, MixtureEstimator(3, GaussianEstimator()), structure=structure, max_iter=60, tol=1e-4)
    fitted = estimator.fit(X)
    assert np.diff(fitted.history_).min() >= -1e-9 * abs(fitted.history_[0])
    assert fitted.model_.emissions.weights.shape == (2, 3)
    means = fitted.model_.emissions.components.mean[..., 0]
    assert sorted(means.mean(axis=1) > 12.0) == [False, True]  # the states are the two levels
    models = estimator.fit_each(X)
    assert models[3] == estimator.fit_each(X[3:4])[0]
    assert all(np.isfinite(model.log_prob(X)).all() for model in models)
    again = HMMEstimator(init=fitted.model_, structure=structure, max_iter=1, tol=0.0).fit(X)
    assert again.history_[0] == pytest.approx(fitted.history_[-1], rel=1e-9)


def test_hmm_of_mixed_symbols():
    X = ["abcabcabc", "aabbcc", "cbacba"]
    fitted = HMMEstimator(2, MixtureEstimator(2, "categorical"), max_iter=30, tol=0, n_init=2).fit(X)
    assert np.diff(fitted.history_).min() >= -1e-9 * abs(fitted.history_[0])
    assert set("".join(fitted.model_.sample(5, length=6, rng=0))) <= set("abc")
    assert len(HMMEstimator(2, "mixture", max_iter=5, tol=0).fit_each(X)) == 3
