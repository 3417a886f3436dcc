"""Linear Gaussian networks against simulation by hand, dense joint Gaussians, and factor analysis."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from sklearn.decomposition import FactorAnalysis
from sklearn.linear_model import LinearRegression, Ridge

from genkern import (
    FisherScore,
    FitEach,
    Gaussian,
    LinearGaussianNet,
    LinearGaussianNetEstimator,
    PlugInClassifier,
    check_score,
)

seeds = st.integers(0, 2**32 - 1)


def random_net(rng, n, hidden=0.4):
    """A random graph of nodes of one or two dimensions, listed in an order that is not topological."""
    names = [f"n{v}" for v in range(n)]
    sizes, order = rng.integers(1, 3, n), rng.permutation(n)
    nodes = {}
    for k, v in enumerate(order):
        parents = rng.permutation(order[:k])[: rng.integers(0, 3)]
        half = rng.standard_normal((sizes[v], sizes[v]))
        cov = half @ half.T + 0.3 * np.eye(sizes[v]) if rng.random() < 0.5 else rng.random(sizes[v]) + 0.3
        weights = [rng.standard_normal((sizes[v], sizes[p])) for p in parents]
        nodes[names[v]] = ([names[p] for p in parents], weights, rng.standard_normal(sizes[v]), cov)
    shown = [name for name in names if rng.random() > hidden] or names[:1]
    shown = rng.permutation(shown).tolist()
    ordered = {name: nodes[name] for name in names}
    return LinearGaussianNet(ordered, shown), *dense(ordered, [names[v] for v in order]), ordered, shown


def dense(nodes, order):
    """Mean and covariance of all nodes, in the order of the dict: moments carried from parents to children."""
    sizes = {name: len(entry[2]) for name, entry in nodes.items()}
    mean, cov = {}, {}
    for name in order:
        parents, weights, bias, noise = nodes[name]
        mean[name] = bias + sum((W @ mean[p] for W, p in zip(weights, parents)), np.zeros(sizes[name]))
        for other in list(mean)[:-1]:
            cov[name, other] = sum(
                (W @ cov[p, other] for W, p in zip(weights, parents)), np.zeros((sizes[name], sizes[other]))
            )
            cov[other, name] = cov[name, other].T
        own = np.diag(noise) if np.ndim(noise) == 1 else noise
        cov[name, name] = own + sum((W @ cov[p, name] for W, p in zip(weights, parents)), np.zeros_like(own))
    names = list(nodes)
    return np.concatenate([mean[a] for a in names]), np.block([[cov[a, b] for b in names] for a in names])


def places(nodes, names):
    ends = np.cumsum([len(entry[2]) for entry in nodes.values()])
    spans = {name: np.arange(end - len(entry[2]), end) for (name, entry), end in zip(nodes.items(), ends)}
    return np.concatenate([spans[name] for name in names])


def conditional(mean, cov, x, seen):
    """Mean and covariance of all given some, by the inverse of the joint covariance (Schur complement)."""
    left = ~seen
    precision = np.linalg.inv(cov)
    inner = np.linalg.inv(precision[np.ix_(left, left)])
    full, spread = np.where(seen, x, 0.0), np.zeros_like(cov)
    full[left] = mean[left] - inner @ precision[np.ix_(left, seen)] @ (x[seen] - mean[seen])
    spread[np.ix_(left, left)] = inner
    return full, spread


@settings(deadline=None, max_examples=20)
@given(seed=seeds, n=st.integers(1, 6))
def test_densities_and_posteriors_are_those_of_the_dense_joint(seed, n):
    rng = np.random.default_rng(seed)
    net, mean, cov, nodes, shown = random_net(rng, n)
    at = places(nodes, shown)
    X = np.array(net.sample(5, rng=rng)).reshape(5, -1)
    X[rng.random(X.shape) < 0.2] = np.nan
    visible = net.to_gaussian()
    np.testing.assert_allclose(visible.mean, mean[at], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(visible.cov, cov[np.ix_(at, at)], rtol=1e-9, atol=1e-9)
    logs, posteriors = net.log_prob(X), net.posterior(X)
    for x, log, posterior in zip(X, logs, posteriors):
        there = at[~np.isnan(x)]
        values = x[~np.isnan(x)]
        expected = stats.multivariate_normal(mean[there], cov[np.ix_(there, there)]).logpdf(values) if len(there) else 0
        assert log == pytest.approx(expected, rel=1e-8, abs=1e-8)
        row, seen = np.full(len(mean), np.nan), np.zeros(len(mean), bool)
        row[there], seen[there] = values, True
        full, spread = conditional(mean, cov, row, seen)
        assert set(posterior) == set(nodes) - set(shown)
        for name, found in posterior.items():
            own = places(nodes, [name])
            np.testing.assert_allclose(found.mean, full[None, own], rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(found.cov, spread[None][:, own][:, :, own], rtol=1e-6, atol=1e-6)


def test_posterior_of_observed_nodes_fills_in_missing_entries():
    net = LinearGaussianNet({"a": ([], [], 1.0, 2.0), "b": (["a"], [3.0], 0.0, 1.0)})
    found = net.posterior([[np.nan, 5.0], [2.0, 1.0]], nodes=["a"])
    gain = 3 * 2 / (9 * 2 + 1)
    np.testing.assert_allclose(found[0]["a"].mean, [[1 + gain * 2]], rtol=1e-12)
    np.testing.assert_allclose(found[0]["a"].cov, [[[2 - gain * 6]]], rtol=1e-12)
    np.testing.assert_array_equal(found[1]["a"].cov, [[[0.0]]])


def test_density_integrates_to_one_and_samples_follow_it():
    net = LinearGaussianNet({"z": ([], [], 0.5, 1.0), "x": (["z"], [[[1.0], [-0.5]]], [0.0, 1.0], [0.5, 0.3])}, ["x"])
    a, b = np.meshgrid(np.linspace(-8, 9, 200), np.linspace(-7, 8, 200))
    density = np.exp(net.log_prob(np.column_stack([a.ravel(), b.ravel()]))).reshape(a.shape)
    total = integrate.trapezoid(integrate.trapezoid(density, a[0], axis=1), b[:, 0])
    assert total == pytest.approx(1.0, abs=1e-6)
    X = net.sample(1, length=5000, rng=0)[0]
    for direction in np.random.default_rng(1).standard_normal((3, 2)):
        spread = np.sqrt(direction @ net.to_gaussian().cov @ direction)
        law = stats.norm(direction @ net.to_gaussian().mean, spread)
        assert stats.kstest(X @ direction, law.cdf).pvalue > 1e-3


@settings(deadline=None, max_examples=6)
@given(seed=seeds, n=st.integers(1, 4))
def test_scores_match_differences(seed, n):
    rng = np.random.default_rng(seed)
    net = random_net(rng, n)[0]
    X = np.array(net.sample(4, rng=rng)).reshape(4, -1)
    X[rng.random(X.shape) < 0.2] = np.nan
    assert max(check_score(net, [X[:2], X[2:3], X[3:]]).values()) < 1e-6


def test_statistics_are_posterior_moments():
    rng = np.random.default_rng(3)
    net, mean, cov, nodes, shown = random_net(rng, 4)
    at, X = places(nodes, shown), np.array(net.sample(6, rng=0)).reshape(6, -1)
    found = net.statistics([X[:2], X[2:]])
    first, second = np.zeros(len(mean)), np.zeros(cov.shape)
    for x in X[2:]:
        row, seen = np.full(len(mean), np.nan), np.zeros(len(mean), bool)
        row[at], seen[at] = x, True
        full, spread = conditional(mean, cov, row, seen)
        first += full - mean
        second += np.outer(full - mean, full - mean) + spread
    np.testing.assert_allclose(found["mean"][1], first, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found["cov"][1], second, rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(found["weight"], [2, 4])


@pytest.mark.parametrize("count", [6, 200])  # rows one by one, or one product of matrices for each pattern
def test_totals_are_sums_over_objects(count):
    rng = np.random.default_rng(count)
    net = random_net(rng, 4)[0]
    X = np.array(net.sample(count, rng=0)).reshape(count, -1)
    X[::2, 0] = np.nan
    totals, single = net.statistics(X, totals=True), net.statistics(X)
    for name, block in totals.blocks.items():
        np.testing.assert_allclose(block, single[name].sum(axis=0, keepdims=True), rtol=1e-9, atol=1e-9)


def test_information_is_the_covariance_of_complete_scores():
    net = random_net(np.random.default_rng(8), 3, hidden=0.0)[0]
    scores = net.log_prob_grad(net.sample(40000, rng=1))
    expected = scores.T @ scores / len(scores)
    found = np.zeros_like(expected)
    for index, block in net.information([1]):
        found[np.ix_(index, index)] = block
    scale = np.sqrt(np.outer(np.diag(found), np.diag(found)))
    np.testing.assert_allclose(expected / scale, found / scale, atol=0.05)


def test_values_names_and_errors():
    net = LinearGaussianNet(
        {"z": ([], [], 0.0, 1.0), "x": (["z"], [[[1.0], [2.0]]], [0.0, 1.0], np.eye(2))}, observed=["x"]
    )
    assert net == pickle.loads(pickle.dumps(net))
    assert repr(net) == "LinearGaussianNet(2 nodes, 1 hidden, dimension 3)"
    assert net.parameter_names[2:] == [
        *("x.weights[0,0]", "x.bias[0]", "x.weights[1,0]", "x.bias[1]", "x.cov[0,0]", "x.cov[1,0]", "x.cov[1,1]")
    ]
    for coordinates in ("softmax", "ratio", "sqrt", "raw"):
        again = net.with_parameters(net.parameters(coordinates), coordinates)
        np.testing.assert_allclose(again.values, net.values, rtol=1e-14, atol=1e-14)
    stack = LinearGaussianNet.stack([net, net])
    assert stack[1] == net
    assert stack.to_gaussian()[0] == net.to_gaussian()
    np.testing.assert_allclose(stack.log_prob([[1.0, 2.0]]), net.log_prob([[1.0, 2.0]])[:, None] * np.ones(2))
    with pytest.raises(ValueError, match="cycles"):
        LinearGaussianNet({"a": (["b"], [1.0], 0.0, 1.0), "b": (["a"], [1.0], 0.0, 1.0)})
    with pytest.raises(ValueError, match="'weights' of 'a' must be a list of 0"):
        LinearGaussianNet({"a": ([], [1.0], 0.0, 1.0)})
    with pytest.raises(ValueError, match=r"weights of 'b' for 'a'' must have shape \(1, 1\)"):
        LinearGaussianNet({"a": ([], [], 0.0, 1.0), "b": (["a"], [[1.0, 2.0]], 0.0, 1.0)})
    with pytest.raises(ValueError, match="variances must not be negative"):
        LinearGaussianNet({"a": ([], [], 0.0, -1.0)})
    with pytest.raises(ValueError, match="'cov'"):
        LinearGaussianNet({"a": ([], [], [0.0, 1.0], 1.0)})
    with pytest.raises(TypeError, match="node 'a' must be given as"):
        LinearGaussianNet({"a": ([], 0.0, 1.0)})
    with pytest.raises(ValueError, match="2 were expected"):
        net.log_prob([[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="singular"):
        LinearGaussianNet({"a": ([], [], 0.0, 0.0)}).log_prob([[1.0]])
    certain = LinearGaussianNet({"a": ([], [], 2.0, 0.0), "b": (["a"], [1.0], 0.0, 1.0)}, ["b"])
    np.testing.assert_allclose(certain.log_prob([[2.0]]), stats.norm.logpdf(0.0))  # a hidden constant is legal
    with pytest.raises(ValueError, match="singular"):
        certain.log_prob_grad([[2.0]])


# --- the estimator


def test_complete_data_are_regressions():
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((200, 2)), rng.standard_normal((200, 1))
    C = A @ rng.standard_normal((2, 2)) + B * [1.0, 2.0] + rng.standard_normal((200, 2)) + 3
    structure = {"a": [], "b": [], "c": ["b", "a"]}
    estimator = LinearGaussianNetEstimator(structure, dims={"a": 2, "c": 2}, min_covar=1e-9)
    net = estimator.fit(np.hstack([A, B, C])).model_
    regression = LinearRegression().fit(np.hstack([B, A]), C)
    part = net.parts()[2]
    np.testing.assert_allclose(part.coefficients, np.column_stack([regression.coef_, regression.intercept_]), atol=1e-9)
    rest = C - regression.predict(np.hstack([B, A]))
    np.testing.assert_allclose(part.noise.cov, rest.T @ rest / 200, atol=1e-9)
    assert (estimator.converged_, estimator.n_iter_) == (True, 1)
    assert estimator.history_[-1] == pytest.approx(net.log_prob(np.hstack([A, B, C])).sum(), rel=1e-12)
    shifted = net.with_parameters(net.parameters("raw") + 0.5, "raw")
    again = estimator.maximize(shifted.statistics(np.hstack([A, B, C])))  # wherever the moments were centred
    np.testing.assert_allclose(again.values, net.values, atol=1e-8)
    ridge = estimator.set_params(ridge=7.0).fit(np.hstack([A, B, C])).model_.parts()[2]
    expected = Ridge(7.0).fit(np.hstack([B, A]), C)
    np.testing.assert_allclose(ridge.coefficients[:, :-1], expected.coef_, atol=1e-9)


def test_factor_analysis_reaches_the_likelihood_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2)) @ rng.standard_normal((2, 7)) + rng.standard_normal((300, 7)) * 0.8 + 1
    theirs = FactorAnalysis(2, tol=1e-10, max_iter=5000, svd_method="lapack").fit(X)
    structure = {"z": [], **{f"x{i}": ["z"] for i in range(7)}}
    estimator = LinearGaussianNetEstimator(structure, hidden={"z": 2}, min_covar=1e-6, tol=1e-9, max_iter=3000).fit(X)
    history = np.array(estimator.history_)
    assert np.diff(history).min() >= -1e-9 * abs(history[0])
    assert estimator.model_.log_prob(X).mean() == pytest.approx(theirs.score(X), abs=1e-5)
    np.testing.assert_allclose(estimator.model_.to_gaussian().cov, theirs.get_covariance(), atol=0.01)
    assert estimator.maximize(estimator.model_.statistics(X)).log_prob(X).sum() >= history[-1] - 1e-9 * abs(history[-1])


@pytest.mark.parametrize("ridge", [0.0, 2.0])
def test_em_with_missing_entries_is_monotone_and_recovers_the_network(ridge):
    rng = np.random.default_rng(2)
    net = LinearGaussianNet(
        {"a": ([], [], 1.0, 1.0), "b": (["a"], [2.0], -1.0, 0.5), "c": (["a", "b"], [-1.0, 0.5], 0.0, 0.3)}
    )
    X = np.array(net.sample(3000, rng=3)).reshape(3000, 3)
    X[rng.random(X.shape) < 0.15] = np.nan
    structure = {"a": [], "b": ["a"], "c": ["a", "b"]}
    estimator = LinearGaussianNetEstimator(structure, ridge=ridge, tol=1e-8).fit(X)
    history = np.array(estimator.history_)
    assert np.diff(history).min() >= -1e-9 * abs(history[0])
    assert estimator.converged_
    np.testing.assert_allclose(estimator.model_.parameters("raw"), net.parameters("raw"), atol=0.12)


def test_missing_entries_alone_reach_a_stationary_point():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((60, 2)) @ [[1.0, 0.7], [0.0, 0.6]]
    X[rng.random(X.shape) < 0.25] = np.nan
    model = LinearGaussianNetEstimator({"a": [], "b": ["a"]}, tol=1e-12).fit(X).model_
    np.testing.assert_allclose(model.log_prob_grad(X).sum(axis=0), 0.0, atol=1e-3)


def test_fit_each_depends_on_each_object_alone():
    rng = np.random.default_rng(5)
    bags = [rng.standard_normal((m, 3)) for m in (5, 9, 7, 6)]
    bags[1][2, 0] = np.nan
    hidden = LinearGaussianNetEstimator(
        {"z": [], "x": ["z"], "y": ["z"]}, dims={"y": 2}, hidden={"z": 1}, covariance="diagonal", tol=1e-4, n_init=2
    )
    models = hidden.fit_each(bags)
    for i in (1, 3):
        alone = hidden.fit_each([bags[i]])[0]
        np.testing.assert_allclose(alone.values, models[i].values, rtol=1e-12, atol=1e-12)
    complete = LinearGaussianNetEstimator({"x": [], "y": ["x"]}, dims={"y": 2})
    found = complete.fit_each(bags[2:])
    for bag, model in zip(bags[2:], found):
        np.testing.assert_allclose(model.values, complete.fit([bag]).model_.values, atol=1e-10)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_em_starts_from_a_network_as_it_is(covariance):
    rng = np.random.default_rng(6)
    X = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 3)) + [5.0, 0.0, -2.0]
    X[2, 1] = np.nan
    shape = {"structure": {"x": [], "y": ["x"]}, "dims": {"y": 2}, "covariance": covariance}
    first = LinearGaussianNetEstimator(**shape, max_iter=3, tol=0.0).fit(X).model_
    still = LinearGaussianNetEstimator(**shape, init=first, max_iter=0, tol=0.0).fit(X).model_
    np.testing.assert_allclose(still.values, first.values, rtol=1e-9, atol=1e-9)
    each = LinearGaussianNetEstimator(**shape, init=first, max_iter=0, tol=0.0).fit_each([X, X[:20]])
    np.testing.assert_allclose(each[1].values, first.values, rtol=1e-9, atol=1e-9)


def test_degenerate_data_meet_the_floor():
    constant = np.ones((4, 2))
    net = LinearGaussianNetEstimator({"a": [], "b": ["a"]}, min_covar=0.01).fit(constant).model_
    np.testing.assert_allclose(net.parameters("raw"), [1.0, 0.01, 0.0, 1.0, 0.01], atol=1e-12)
    assert LinearGaussianNetEstimator({"a": [], "b": ["a"]}).fit([[1.0, 2.0]]).model_.log_prob([[1.0, 2.0]]) > 0
    with pytest.raises(ValueError, match="'min_covar' and 'relative_floor' are both zero"):
        LinearGaussianNetEstimator({"a": []}, relative_floor=0).fit([[1.0]])
    with pytest.raises(ValueError, match="not observed"):
        LinearGaussianNetEstimator({"a": [], "b": []}, observed=["a"]).fit([[1.0]])
    with pytest.warns(UserWarning, match="did not converge"):
        LinearGaussianNetEstimator({"z": [], "x": ["z"], "y": ["z"]}, hidden={"z": 1}, max_iter=1, tol=1e-12).fit(
            np.random.default_rng(0).standard_normal((9, 2))
        )


def test_fisher_scores_classifiers_and_models_of_each():
    rng = np.random.default_rng(6)
    X = [rng.standard_normal((8, 2)) @ [[1.0, c], [0.0, 1.0]] for c in (0.0, 2.0) for _ in range(15)]
    y = np.repeat([0, 1], 15)
    estimator = LinearGaussianNetEstimator({"x": [], "y": ["x"]})
    assert PlugInClassifier(estimator).fit(X, y).score(X, y) > 0.8
    features = [FisherScore(estimator, coordinates=c).fit_transform(X) for c in ("softmax", "ratio", "sqrt")]
    np.testing.assert_allclose(features[1], features[0], atol=1e-9)
    np.testing.assert_allclose(features[2], features[0], atol=1e-9)
    assert len(FitEach(estimator).fit_transform(X[:3])) == 3
    leaf = FisherScore(Gaussian(np.zeros(1), np.ones(1))).fit_transform([bag[:, :1] for bag in X])
    net = FisherScore(LinearGaussianNet({"x": ([], [], 0.0, 1.0)})).fit_transform([bag[:, :1] for bag in X])
    np.testing.assert_allclose(net, leaf, rtol=1e-10)
