"""Switching linear dynamical systems, against all paths of regimes as dense Gaussians in plain NumPy."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from genkern import HMM, LDS, FisherScore, Gaussian, LDSEstimator, SwitchingLDS, SwitchingLDSEstimator, check_score
from genkern.core.switching.collapse import collapsed_regimes
from genkern.models.switching.estimator import SWEEPS
from genkern.models.switching.field import field_statistics, mean_field
from tests.oracles_lds import drop, random_lds

FORMS = {
    "full": ("full", "full", "full"),
    "diagonal": ("diagonal", "diagonal", "isotropic"),
    "isotropic": ("isotropic", "isotropic", "diagonal"),
    "no state noise": ("zero", "full", "full"),
    "deterministic": ("zero", "diagonal", "zero"),
}


def random_switching(rng, S=2, n=2, d=2, forms=FORMS["full"]) -> SwitchingLDS:
    systems = LDS.stack([random_lds(rng, n, d, forms) for _ in range(S)])
    return SwitchingLDS(rng.dirichlet(np.ones(S)), rng.dirichlet(np.ones(S), S), systems)


def dense_path(model, path, x):
    """Return log p(x, path), and mean (T, n) and covariance (T n, T n) of the states given x and the path."""
    length, n, d = len(path), model.n_states, model.n_channels
    A, C, start = model.systems.transition, model.systems.observation, model.systems.initial_mean[path[0]]
    Q, R, P = model.systems.matrices()
    mixing, noises = np.zeros((2, length * n, length * n))
    look, spread = np.zeros((length * d, length * n)), np.zeros((length * d, length * d))
    mean = []
    for t, k in enumerate(path):
        here, seen = slice(t * n, (t + 1) * n), slice(t * d, (t + 1) * d)
        noises[here, here] = Q[k] if t else P[k]
        look[seen, here], spread[seen, seen] = C[k], R[k]
        product = np.eye(n)
        for u in range(t, -1, -1):
            mixing[here, u * n : (u + 1) * n] = product
            product = product @ A[path[u]]
        mean.append(A[k] @ mean[-1] if t else start)
    there = ~np.isnan(x.ravel())
    cov, look = mixing @ noises @ mixing.T, look[there]
    S = look @ cov @ look.T + spread[np.ix_(there, there)]
    gap = (x - model.systems.offset[list(path)]).ravel()[there] - look @ np.concatenate(mean)
    log_prob = -0.5 * (gap @ np.linalg.solve(S, gap) + np.linalg.slogdet(2.0 * np.pi * S)[1])
    log_prob += np.log(model.start[path[0]]) + sum(np.log(model.transitions[a, b]) for a, b in itertools.pairwise(path))
    gain = np.linalg.solve(S, look @ cov).T
    return log_prob, (np.concatenate(mean) + gain @ gap).reshape(length, n), cov - gain @ look @ cov


def enumerated(model, x):
    """Return log p(x), probabilities of regimes (T, S), means (T, n) and covariances (T, n, n) of states."""
    T, n = len(x), model.n_states
    paths = list(itertools.product(range(model.n_regimes), repeat=T))
    found = [dense_path(model, path, x) for path in paths]
    logs = np.array([log for log, _, _ in found])
    weights = np.exp(logs - logsumexp(logs))
    regimes, mean, second = np.zeros((T, model.n_regimes)), np.zeros((T, n)), np.zeros((T, n, n))
    for w, path, (_, states, cov) in zip(weights, paths, found):
        regimes[np.arange(T), path] += w
        mean += w * states
        blocks = np.array([cov[t * n : (t + 1) * n, t * n : (t + 1) * n] for t in range(T)])
        second += w * (blocks + states[:, :, None] * states[:, None, :])
    return logsumexp(logs), regimes, mean, second - mean[:, :, None] * mean[:, None, :]


@pytest.fixture(params=FORMS)
def case(request):
    rng = np.random.default_rng(5)
    model = random_switching(rng, 2, 2, 2, FORMS[request.param])
    X = model.sample(3, length=4, rng=6)
    X[1], X[2] = drop(rng, X[1]), X[2][:1]
    return model, X


def rotations(angles=(0.15, 0.8)) -> SwitchingLDS:
    """Return two slowly switching rotations of the same plane, seen in three channels."""
    C = np.linalg.qr(np.random.default_rng(7).standard_normal((3, 2)))[0]
    turn = [0.97 * np.array([[np.cos(w), -np.sin(w)], [np.sin(w), np.cos(w)]]) for w in angles]
    systems = LDS.stack([LDS(A, C, 0.05, 0.05, np.zeros(2), 1.0) for A in turn])
    return SwitchingLDS([0.5, 0.5], [[0.97, 0.03], [0.04, 0.96]], systems)


# --- exact passes


def test_likelihood_and_posterior_are_those_of_all_paths(case):
    model, X = case
    found = model.posterior(X)
    for x, log_prob, parts in zip(X, model.log_prob(X), found):
        expected = enumerated(model, x)
        np.testing.assert_allclose(log_prob, expected[0], rtol=1e-10)
        for ours, theirs in zip(parts, expected[1:]):
            np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-8)


def test_moments_of_statistics_are_those_of_all_paths(case):
    model, X = case
    X[0][1] = np.nan  # a step at which nothing is seen
    for x, statistics in zip(X, (model.statistics([x]).blocks for x in X)):
        paths = list(itertools.product(range(2), repeat=len(x)))
        laws = [dense_path(model, path, x) for path in paths]
        weights = np.exp([law[0] for law in laws] - logsumexp([law[0] for law in laws]))
        left, seen, seen_sum, counts = (np.zeros((2, *shape)) for shape in ((2, 2), (2, 2), (2,), (3,)))
        for path, weight, (_, mean, cov) in zip(paths, weights, laws):
            seconds = [cov[2 * t : 2 * t + 2, 2 * t : 2 * t + 2] + np.outer(m, m) for t, m in enumerate(mean)]
            for t, k in enumerate(path):
                counts[k] += weight * np.array([t == 0, t > 0, not np.isnan(x[t]).all()])
                left[k] += weight * seconds[t - 1] * (t > 0)
                seen[k] += weight * seconds[t] * (not np.isnan(x[t]).all())
                seen_sum[k] += weight * mean[t] * (not np.isnan(x[t]).all())
        for name, expected in {"left": left, "seen": seen, "seen_sum": seen_sum, "counts": counts}.items():
            np.testing.assert_allclose(statistics[f"systems.{name}"][0], expected, rtol=1e-7, atol=1e-8)


def test_three_regimes():
    rng = np.random.default_rng(2)
    model = random_switching(rng, 3, 1, 2)
    x = drop(rng, model.sample(1, length=4, rng=0)[0])
    np.testing.assert_allclose(model.log_prob([x])[0], enumerated(model, x)[0], rtol=1e-11)


@settings(deadline=None, max_examples=5)
@given(seed=st.integers(0, 2**32 - 1), S=st.integers(1, 3), n=st.integers(1, 2), d=st.integers(1, 2))
def test_derivatives_match_differences(seed, S, n, d):
    rng = np.random.default_rng(seed)
    model = random_switching(rng, S, n, d, [rng.choice(["full", "diagonal", "isotropic"]) for _ in range(3)])
    X = [drop(rng, x, 0.2) for x in model.sample(2, length=int(rng.integers(1, 5)), rng=rng)]
    check_score(model, X, tol=1e-6)


def test_derivatives_of_all_forms_of_covariances(case):
    assert max(check_score(*case).values()) < 1e-6


def test_derivatives_by_probabilities_of_zero():
    # raw derivatives are those off the simplex, also where a probability is zero
    rng = np.random.default_rng(4)
    systems = random_switching(rng).systems
    model = SwitchingLDS([1.0, 0.0], [[0.7, 0.3], [0.0, 1.0]], systems)
    X = model.sample(3, length=5, rng=1)
    score, vector = model.log_prob_grad(X, "raw"), model.parameters("raw")
    for place in (1, 4):
        assert vector[place] == 0.0
        moved = vector.copy()
        moved[place] = 1e-7
        difference = (model.with_parameters(moved, "raw").log_prob(X) - model.log_prob(X)) / 1e-7
        np.testing.assert_allclose(score[:, place], difference, rtol=1e-4, atol=1e-6)
    assert (model.log_prob_grad(X, "softmax")[:, [1, 4]] == 0.0).all()


def test_one_regime_is_a_linear_dynamical_system():
    rng = np.random.default_rng(0)
    system = random_lds(rng, 2, 2)
    model = SwitchingLDS([1.0], [[1.0]], LDS.stack([system]))
    X = [drop(rng, x) for x in system.sample(3, length=60, rng=1)]
    np.testing.assert_allclose(model.log_prob(X), system.log_prob(X), rtol=1e-11)
    np.testing.assert_allclose(model.log_prob_grad(X)[:, 2:], system.log_prob_grad(X), rtol=1e-7, atol=1e-8)
    ours, theirs = model.information([60, 50]), system.information([60, 50])
    for (_, block), (_, expected) in zip(ours[2:], theirs, strict=True):
        np.testing.assert_allclose(block, expected, rtol=1e-10)
    for (_, mean, cov), (expected, spread) in zip(model.posterior(X), system.posterior(X)):
        np.testing.assert_allclose(mean, expected, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(cov, spread, rtol=1e-6, atol=1e-7)
    # with one regime the mean field is exact, and no particle is ever dropped
    np.testing.assert_allclose(model.bound(X), system.log_prob(X), rtol=1e-10)
    np.testing.assert_allclose(model.estimate_log_prob(X)[0], system.log_prob(X), rtol=1e-11)


def test_equal_regimes_are_a_linear_dynamical_system():
    rng = np.random.default_rng(1)
    system = random_lds(rng, 2, 2)
    model = SwitchingLDS([0.3, 0.7], [[0.9, 0.1], [0.5, 0.5]], LDS.stack([system, system]))
    X = system.sample(3, length=8, rng=1)
    np.testing.assert_allclose(model.log_prob(X), system.log_prob(X), rtol=1e-11)
    np.testing.assert_allclose(model.bound(X), system.log_prob(X), rtol=1e-10)
    chain = np.stack([model.start @ np.linalg.matrix_power(model.transitions, t) for t in range(8)])
    np.testing.assert_allclose(model.posterior(X)[0][0], chain, rtol=1e-10)


def test_states_without_memory_are_the_emissions_of_an_hmm():
    rng = np.random.default_rng(3)
    systems = [random_lds(rng, 2, 2) for _ in range(2)]
    # A = 0: every state is N(0, Q); the first one is made equal
    systems = [LDS(np.zeros((2, 2)), s.observation, s.state_cov, s.obs_cov, np.zeros(2), s.state_cov) for s in systems]
    stack = LDS.stack(systems)
    C = stack.observation
    emissions = Gaussian(np.zeros((2, 2)), C @ stack.state_cov @ np.swapaxes(C, 1, 2) + stack.obs_cov)
    start, steps = [0.4, 0.6], [[0.8, 0.2], [0.3, 0.7]]
    model, hmm = SwitchingLDS(start, steps, stack), HMM(start, steps, emissions)
    X = [drop(rng, x) for x in hmm.sample(4, length=7, rng=0)]
    np.testing.assert_allclose(model.log_prob(X), hmm.log_prob(X), rtol=1e-11)
    for (regimes, _, _), gamma in zip(model.posterior(X), hmm.posterior(X)):
        np.testing.assert_allclose(regimes, gamma, rtol=1e-8, atol=1e-10)


def test_the_density_integrates_to_one_and_samples_follow_it():
    rng = np.random.default_rng(0)
    model = random_switching(rng, 2, 1, 1)
    X = np.array(model.sample(4000, length=2, rng=0))[:, :, 0]
    width = 8.0 * X.std(axis=0)
    axes = [m + np.linspace(-w, w, 241) for m, w in zip(X.mean(axis=0), width)]
    grid = np.array(list(itertools.product(*axes)))
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    density = np.exp(model.log_prob(grid)).reshape(241, 241) * cell
    np.testing.assert_allclose(density.sum(), 1.0, rtol=1e-6)
    for margin, axis, values in zip((density.sum(axis=1), density.sum(axis=0)), axes, X.T):
        cdf = np.cumsum(margin)
        assert stats.kstest(values, lambda v, a=axis, c=cdf: np.interp(v, a + (a[1] - a[0]) / 2, c)).pvalue > 1e-3
    product = (axes[0][:, None] * axes[1] * density).sum()
    assert abs((X[:, 0] * X[:, 1]).mean() - product) < 4.5 * (X[:, 0] * X[:, 1]).std() / np.sqrt(len(X))


def test_simulated_paths_follow_the_chain_and_the_systems():
    model = rotations()
    draws = model.simulate(300, length=40, rng=0)
    paths = np.array([path for _, path, _ in draws])
    states = np.array([state for _, _, state in draws])
    moves = np.array([[(paths[:, 1:][paths[:, :-1] == i] == j).mean() for j in (0, 1)] for i in (0, 1)])
    np.testing.assert_allclose(moves, model.transitions, atol=0.01)
    for k in (0, 1):
        here = paths[:, 1:] == k  # regime q_t governs the step to s_t
        noise = states[:, 1:][here] - states[:, :-1][here] @ model.systems.transition[k].T
        np.testing.assert_allclose(np.cov(noise.T), 0.05 * np.eye(2), atol=0.004)
    np.testing.assert_array_equal(model.sample(2, length=40, rng=3)[1], model.simulate(2, length=40, rng=3)[1][0])


def test_information_has_the_moments_of_regimes_and_states():
    model, lengths = random_switching(np.random.default_rng(2), 2, 1, 1), np.array([3, 5])
    names = ("start", "row 0", "row 1", "A", "C", "Q", "R", "m", "P")
    blocks = dict(zip(names, [np.asarray(block) for _, block in model.information(lengths)]))
    left, seen, firsts, looks, moves, leaves = [], [], [], [], [], []
    for T in lengths:
        for _, path, states in model.simulate(20_000, length=int(T), rng=1):
            left.append((states[:-1][path[1:] == 0] ** 2).sum())
            seen.append((states[path == 0] ** 2).sum())
            firsts.append(states[path == 0].sum())
            looks.append((path == 0).sum())
            moves.append((path[1:] == 0).sum())
            leaves.append((path[:-1] == 0).sum())
    system = model.systems[0]
    row = model.transitions[0]
    for block, draws, scale in (
        (blocks["A"], left, 1.0 / system.state_cov),
        (blocks["C"][:1, :1], seen, 1.0 / system.obs_cov),
        (blocks["C"][:1, 1:], firsts, 1.0 / system.obs_cov),
        (blocks["C"][1:, 1:], looks, 1.0 / system.obs_cov),
        (blocks["Q"], moves, 0.5 / system.state_cov**2),
        (blocks["row 0"][:1, :1], leaves, row[0] * row[1]),
    ):
        error = np.std(draws) / np.sqrt(len(draws))
        assert abs(block.item() / np.squeeze(scale) - np.mean(draws)) < 4.5 * error
    still = random_lds(np.random.default_rng(0), 1, 1, FORMS["deterministic"])
    singular = SwitchingLDS(model.start, model.transitions, LDS.stack([still, still]))
    with pytest.raises(ValueError, match=r"'state_cov' of regime 0 is singular.*empirical"):
        singular.information(lengths)


def test_fisher_scores():
    model = random_switching(np.random.default_rng(1), 2, 1, 2)
    X = model.sample(30, length=6, rng=0)
    for information in ("complete", "diagonal", "empirical", "identity"):
        features = FisherScore(model, information=information).fit(X).transform(X)
        assert features.shape == (30, len(model.parameter_names))
        assert np.isfinite(features).all()


# --- the particle filter


def test_estimates_are_within_their_errors_and_unbiased():
    systems = [LDS([[a]], [[1.0]], q, 0.5, [0.0], 1.0) for a, q in ((0.9, 0.2), (-0.5, 2.0))]
    model = SwitchingLDS([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], LDS.stack(systems))
    X = model.sample(40, length=10, rng=0)
    exact = model.log_prob(X)
    value, error = model.estimate_log_prob(X, n=12, rng=0, runs=50)
    assert (error > 0.0).all()
    z = (value - exact) / error
    assert np.abs(z).max() < 4.0
    assert 0.6 < z.std() < 1.5
    ratio = np.exp(value - exact)  # the likelihood, not its logarithm, is unbiased
    assert abs(ratio.mean() - 1.0) < 4.0 * np.sqrt((error**2).sum()) / len(X)


def test_a_filter_that_drops_nothing_is_exact():
    model = random_switching(np.random.default_rng(0))
    X = [drop(np.random.default_rng(1), x) for x in model.sample(3, length=6, rng=0)]
    value, error = model.estimate_log_prob(X, n=64, runs=2)
    np.testing.assert_allclose(value, model.log_prob(X), rtol=1e-11)
    assert (error == 0.0).all()


def test_estimates_depend_on_the_series_alone():
    model = rotations()
    X = model.sample(5, length=60, rng=0)
    value, error = model.estimate_log_prob(X, n=20)
    again = model.estimate_log_prob(X[::-1], n=20, n_jobs=2)
    np.testing.assert_array_equal(again[0][::-1], value)
    np.testing.assert_array_equal(again[1][::-1], error)
    np.testing.assert_array_equal(model.estimate_log_prob(X[2:3], n=20)[0], value[2:3])
    assert (model.estimate_log_prob(X, n=20, rng=1)[0] != value).all()
    better = model.estimate_log_prob(X, n=500)
    assert (np.abs(better[0] - value) < 5.0 * np.hypot(error, better[1])).all()
    assert better[1].mean() < error.mean()


# --- the mean field


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), S=st.integers(2, 3))
def test_the_bound_rises_and_stays_below_the_likelihood(seed, S):
    rng = np.random.default_rng(seed)
    model = random_switching(rng, S, 2, 2, ("full", "diagonal", "full"))
    X = [drop(rng, x, 0.2) for x in model.sample(3, length=7, rng=rng)]
    exact = model.log_prob(X)
    bounds = [model.bound(X, max_iter=sweeps) for sweeps in (1, 2, 3, 5, 20, 200)]
    assert (np.diff(bounds, axis=0) >= -1e-9 * np.abs(exact)).all()
    assert (bounds[-1] <= exact + 1e-9 * np.abs(exact)).all()


def test_the_bound_is_that_of_its_q():
    # E_Q log p(x, s, q) + H(Q), by enumeration of regimes and dense moments of states
    rng = np.random.default_rng(0)
    model = random_switching(rng, 2, 1, 2)
    x = drop(rng, model.sample(1, length=4, rng=0)[0], 0.2)
    field = mean_field(model, model.pack([x]), None, 1, 0.0)
    T, mean, beliefs = len(x), field.beliefs.mean[:, 0], field.beliefs
    cov = np.diag(beliefs.cov[:, 0, 0])
    for t in range(1, T):  # a chain: Cov(s_t, s_u) goes through the states between
        for u in range(t - 1, -1, -1):
            cov[t, u] = cov[u, t] = beliefs.cross[t, 0, 0] * cov[t - 1, u] / cov[t - 1, t - 1]
    draws = rng.multivariate_normal(mean, cov, 40_000)
    gamma, Q, R, P = field.regimes, *model.systems.matrices()
    logs = np.zeros((T, 2, len(draws)))
    for t, k in itertools.product(range(T), range(2)):
        past = model.systems.initial_mean[k] if t == 0 else model.systems.transition[k, 0] * draws[:, t - 1]
        logs[t, k] = stats.norm.logpdf(draws[:, t], past, np.sqrt((P if t == 0 else Q)[k, 0, 0]))
        there = ~np.isnan(x[t])
        if there.any():
            gaps = (x[t] - model.systems.offset[k])[there] - draws[:, t, None] * model.systems.observation[k, there, 0]
            logs[t, k] += stats.multivariate_normal.logpdf(gaps, cov=R[k][np.ix_(there, there)])
    expected = logs.mean(axis=-1)  # E log density; the best Q(q) given it has the log-likelihood of an HMM
    chain, steps = np.log(model.start), np.log(model.transitions)
    paths = [
        chain[q[0]] + sum(steps[a, b] for a, b in itertools.pairwise(q)) + expected[np.arange(T), q].sum()
        for q in itertools.product(range(2), repeat=T)
    ]
    entropy = 0.5 * np.linalg.slogdet(2.0 * np.pi * np.e * cov)[1]
    noise = np.sqrt((gamma[..., None] * logs).sum(axis=(0, 1)).var() / len(draws))
    assert abs(field.bound[0] - logsumexp(paths) - entropy) < 5.0 * noise


def test_variational_posteriors_are_near_exact_ones_where_regimes_are_plain():
    model = rotations((0.1, 1.5))
    X = model.sample(10, length=14, rng=2)
    exact, near = model.posterior(X), model.posterior(X, method="variational")
    errors = [np.abs(a[0] - b[0]).mean() for a, b in zip(exact, near)]
    assert np.median(errors) < 0.1
    assert np.median([np.abs(a[1] - b[1]).mean() for a, b in zip(exact, near)]) < 0.1
    long = model.sample(2, length=400, rng=3)
    assert model.posterior(long, method="variational")[1][0].shape == (400, 2)


def test_statistics_of_the_mean_field_are_derivatives_of_its_bound():
    # At a stationary Q the bound changes with the parameters only through E log p.
    rng = np.random.default_rng(6)
    model = random_switching(rng, 2, 2, 2)
    packed = model.pack([drop(rng, x, 0.2) for x in model.sample(2, length=6, rng=0)])
    field = mean_field(model, packed, None, 3000, 0.0)
    sums = field_statistics(model, packed, field)
    blocks = {"transition": sums.A, "observation": sums.C, "initial_mean": sums.mean, "offset": sums.offset}
    for name, block in blocks.items():
        for index in [(0, 0, 1), (1, 1, 0)] if block.ndim == 4 else [(0, 1), (1, 0)]:
            sides = []
            for step in (1e-5, -1e-5):
                parts = {key: np.array(getattr(model.systems, key)) for key in LDS._fields}
                parts[name][index] += step
                moved = SwitchingLDS(model.start, model.transitions, LDS(**parts))
                sides.append(mean_field(moved, packed, field.regimes, 3000, 0.0).bound)
            np.testing.assert_allclose(block[(slice(None), *index)], (sides[0] - sides[1]) / 2e-5, rtol=1e-3, atol=1e-4)


# --- values and errors


def test_values_stack_index_and_pickle():
    rng = np.random.default_rng(0)
    models = [random_switching(rng) for _ in range(3)]
    stack = SwitchingLDS.stack(models)
    assert stack.shape == (3,)
    assert stack[1] == models[1]
    assert stack.unstack()[2] == models[2]
    assert pickle.loads(pickle.dumps(stack)) == stack
    X = models[0].sample(3, length=4, rng=1)
    np.testing.assert_array_equal(stack.log_prob(X)[:, 1], models[1].log_prob(X))
    own = stack.statistics(X)
    for i, model in enumerate(models):
        alone = model.statistics(X[i : i + 1])
        assert alone.log_prob[0] == own.log_prob[i]
        for name, block in alone.blocks.items():
            np.testing.assert_array_equal(own[name][i], block[0])
    totals = models[0].statistics(X, totals=True, n_jobs=2)
    for name, block in models[0].statistics(X).blocks.items():
        np.testing.assert_allclose(totals[name], block.sum(axis=0, keepdims=True), rtol=1e-12, atol=1e-12)


def test_parameters_go_there_and_back():
    model = random_switching(np.random.default_rng(0), 2, 2, 2, ("diagonal", "isotropic", "full"))
    for coordinates in ("softmax", "ratio", "sqrt", "raw"):
        back = model.with_parameters(model.parameters(coordinates), coordinates)
        np.testing.assert_allclose(back.parameters("raw"), model.parameters("raw"), rtol=1e-12)
    names = model.parameter_names
    assert len(names) == len(set(names)) == len(model.parameters())
    assert names[:3] == ["start[0]", "start[1]", "transitions[0,0]"]
    assert "systems[1].observation[1,0]" in names


def test_errors_say_what_to_do():
    rng = np.random.default_rng(0)
    model = random_switching(rng)
    long = [np.zeros((5, 2)), np.zeros((17, 2))]
    fisher = FisherScore(model, information="identity")
    for call in (model.log_prob, model.statistics, model.log_prob_grad, model.posterior, fisher.fit_transform):
        with pytest.raises(ValueError, match=r"100000 paths.*17 observations in object 1.*estimate_log_prob"):
            call(long)
    with pytest.raises(ValueError, match="batch"):
        SwitchingLDS([0.5, 0.5], np.eye(2), LDS.stack([random_lds(rng)] * 3))
    with pytest.raises(TypeError, match=r"LDS\.stack"):
        SwitchingLDS([1.0], [[1.0]], [random_lds(rng)])
    with pytest.raises(ValueError, match="transitions"):
        SwitchingLDS([0.5, 0.5], [[0.5, 0.6], [0.5, 0.5]], model.systems)
    with pytest.raises(ValueError, match="method"):
        model.posterior(long, method="guess")
    with pytest.raises(ValueError, match="channels"):
        model.log_prob([np.zeros((3, 1))])
    with pytest.raises(ValueError, match="index it"):
        SwitchingLDS.stack([model]).bound(long)
    still = LDS(np.eye(1), np.ones((2, 1)), 0.0, 0.0, np.zeros(1), 0.0)
    certain = SwitchingLDS([0.5, 0.5], [[0.5, 0.5]] * 2, LDS.stack([still, still]))
    for call in (certain.log_prob, certain.estimate_log_prob):
        with pytest.raises(ValueError, match=r"object 0, position 0.*singular"):
            call([np.zeros((3, 2))])
    with pytest.raises(ValueError, match=r"'state_cov' of system .* singular"):
        certain.bound([np.zeros((3, 2))])
    noisy = LDS(np.eye(1), np.ones((2, 1)), 0.5, 0.5, np.zeros(1), 0.5)  # regular, with variances below one
    half = SwitchingLDS([0.5, 0.5], [[0.5, 0.5]] * 2, LDS.stack([noisy, still]))
    with pytest.raises(ValueError, match=r"'state_cov' of system \(1,\) is singular"):
        half.bound([np.zeros((3, 2))])


# --- the estimator


def _response(system, power):
    C = system.observation
    return C @ np.linalg.matrix_power(system.transition, power) @ np.linalg.pinv(C)


@pytest.fixture(scope="module")
def fitted():
    truth = rotations()
    draws = truth.simulate(10, length=150, rng=0)
    return truth, draws, SwitchingLDSEstimator(2, 2, n_init=2, random_state=0).fit([x for x, _, _ in draws])


def test_known_systems_are_found_again(fitted):
    truth, draws, estimator = fitted
    model = estimator.model_
    regimes = [parts[0] for parts in model.posterior([x for x, _, _ in draws], method="variational")]
    found = np.concatenate(regimes).argmax(axis=1)
    right = np.mean(found == np.concatenate([path for _, path, _ in draws]))
    order = [0, 1] if right > 0.5 else [1, 0]
    assert max(right, 1.0 - right) > 0.9
    np.testing.assert_allclose(model.transitions[np.ix_(order, order)], truth.transitions, atol=0.03)
    for k, place in enumerate(order):
        # responses C A^t C^+ to what is seen do not depend on the basis of the states
        for power in range(1, 5):
            ours, theirs = (_response(system, power) for system in (model.systems[place], truth.systems[k]))
            assert np.linalg.norm(ours - theirs) < 0.1 * np.linalg.norm(theirs)
    # new data are better explained than by one system
    X = truth.sample(10, length=15, rng=9)
    one = LDSEstimator(2, max_iter=50, tol=0).fit([x for x, _, _ in draws]).model_
    assert model.log_prob(X).sum() > one.log_prob(X).sum() + 10.0


def test_the_objective_never_falls(fitted):
    history = np.array(fitted[2].history_)
    assert fitted[2].converged_
    assert len(history) == fitted[2].n_iter_ + 1
    assert (np.diff(history) >= -1e-9 * np.abs(history[:-1])).all()


@pytest.mark.parametrize("covariance", ["full", "isotropic"])
def test_the_objective_never_falls_with_gaps_priors_and_stability(covariance):
    rng = np.random.default_rng(1)
    X = [drop(rng, x, 0.2) for x in rotations().sample(4, length=40, rng=1)]
    estimator = SwitchingLDSEstimator(
        2, 2, covariance, n_init=1, max_iter=25, tol=0, noise_pseudocount=2.0, obs_variance=0.1, stable=True
    ).fit(X)
    history = np.array(estimator.history_)
    assert (np.diff(history) >= -1e-9 * np.abs(history[:-1])).all()
    assert history[-1] > history[0] + 10.0
    assert np.abs(np.linalg.eigvals(estimator.model_.systems.transition)).max() < 1.0


def test_exact_em_by_maximize_raises_the_likelihood():
    model = random_switching(np.random.default_rng(3), 2, 1, 2)
    X = random_switching(np.random.default_rng(4), 2, 1, 2).sample(15, length=6, rng=0)
    estimator, values = SwitchingLDSEstimator(2, 1, pseudocount=0.0, min_covar=1e-9), []
    for _ in range(12):
        statistics = model.statistics(X)
        values.append(statistics.log_prob.sum())
        model = estimator.maximize(statistics)
    assert (np.diff(values) >= -1e-9 * np.abs(values[:-1])).all()
    assert values[-1] > values[0] + 1.0


def test_each_model_depends_on_its_series_alone():
    truth = rotations()
    rng = np.random.default_rng(0)
    X = [drop(rng, x, 0.1)[: int(rng.integers(30, 60))] for x in truth.sample(4, length=60, rng=1)]
    estimator = SwitchingLDSEstimator(2, 2, n_init=2, max_iter=8, tol=1e-3, random_state=3)
    with pytest.warns(ConvergenceWarning, match="did not converge in 8 steps"):
        models = estimator.fit_each(X)
    with pytest.warns(ConvergenceWarning):
        assert estimator.fit_each(X[::-1])[::-1] == models
    with pytest.warns(ConvergenceWarning):
        assert [estimator.fit_each([x])[0] for x in X] == models
    with pytest.warns(ConvergenceWarning):
        alone = estimator.fit([X[0]])
    # one model of one series: the same steps from another seed of the clustering
    assert alone.history_[-1] == pytest.approx(alone.model_.bound([X[0]]).sum(), abs=2.0)


def test_a_model_as_first_guess():
    truth = rotations()
    X = truth.sample(5, length=80, rng=1)
    estimator = SwitchingLDSEstimator(2, 2, init=truth, max_iter=10, tol=0).fit(X)
    prior = 0.01 * (np.log(truth.transitions).sum() + np.log(truth.start).sum())
    assert estimator.history_[0] == pytest.approx(truth.bound(X, max_iter=SWEEPS, tol=0).sum() + prior, rel=1e-6)
    assert estimator.model_.systems.state_cov.shape == truth.systems.state_cov.shape
    assert (np.diff(estimator.history_) >= -1e-7).all()


def test_degenerate_data():
    quick = {"n_init": 1, "max_iter": 3, "tol": 0}
    for X in (
        [np.zeros((5, 2)), np.zeros((3, 2))],
        [np.ones((1, 2)), np.full((1, 2), 2.0)],
        [np.full((4, 2), np.nan), np.arange(8.0).reshape(4, 2)],
        [[1.0], [2.0, 3.0]],
    ):
        estimator = SwitchingLDSEstimator(2, 1, **quick).fit(X)
        assert np.isfinite(estimator.model_.parameters("raw")).all()
        assert np.isfinite(estimator.model_.log_prob(X)).all()
        for model in estimator.fit_each(X):
            assert np.isfinite(model.parameters("raw")).all()


def test_estimator_errors():
    X = np.zeros((3, 6, 3))
    for params, message in (
        ({"n_regimes": 0}, "n_regimes"),
        ({"n_states": 0}, "n_states"),
        ({"init": "magic"}, "init"),
        ({"relative_floor": 0.0}, "'relative_floor' must be positive"),
        ({"tol": -1.0}, "tol"),
        ({"covariance": "round"}, "covariance"),
        ({"init": rotations(), "n_regimes": 3}, "n_regimes=3"),
        ({"init": rotations(), "min_covar": 1.0}, "min_covar=1"),
    ):
        with pytest.raises(ValueError, match=message):
            SwitchingLDSEstimator(**params).fit(X)


def test_merged_beliefs_are_exact_where_states_forget():
    """Without a transition of states nothing is lost by merging them: regimes are those of an HMM."""
    model, x = random_switching(np.random.default_rng(3), S=3), np.random.default_rng(4).normal(size=(5, 2))
    fields = {name: getattr(model.systems, name) for name in model.systems._fields}
    systems = LDS._restore(*{**fields, "transition": np.zeros_like(model.systems.transition)}.values())
    model = SwitchingLDS(model.start, model.transitions, systems)
    paths = list(itertools.product(range(3), repeat=5))
    logs = np.array([dense_path(model, path, x)[0] for path in paths])
    weights = np.exp(logs - logsumexp(logs))
    exact = [[weights @ (np.array(paths)[:, t] == k) for k in range(3)] for t in range(5)]
    twice = collapsed_regimes(model.regimes(), np.concatenate([x, x]), np.array([0, 5, 10]))
    np.testing.assert_allclose(twice, exact + exact, rtol=1e-9)
