"""Networks with continuous nodes against enumeration of the discrete states, scipy's densities, and quadrature."""

import itertools
import pickle

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from genkern import (
    HMM,
    BayesNet,
    BayesNetEstimator,
    Categorical,
    Expected,
    ExpectedLaplace,
    FisherScore,
    Gamma,
    Gaussian,
    GaussianEstimator,
    MeanMap,
    Mixture,
    MixtureEstimator,
    PlugInClassifier,
    Poisson,
    PoissonEstimator,
    Power,
    ProbabilityProduct,
    TopScore,
    affinity,
    check_score,
    explain,
)
from genkern.affinities.collection import as_collection
from genkern.data.serialize import dumps, loads
from genkern.models.bayes_net import contraction
from tests.cases import rows


def random_net(seed, hidden=True):
    """a -> b; numbers of a and b, counts of a, vectors of b, and a positive number without parents."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(3, 2, 2))
    cov = root @ root.transpose(0, 2, 1) + 0.5 * np.eye(2)
    nodes = {
        "count": (["a"], Poisson(rng.uniform(0.5, 6.0, (2, 1)))),
        "a": ([], rows(rng, 2)),
        "b": (["a"], rows(rng, 2, 3)),
        "number": (["b", "a"], Gaussian(rng.normal(size=(3, 2, 1)), rng.uniform(0.3, 2.0, (3, 2)))),
        "pair": (["b"], Gaussian(rng.normal(size=(3, 2)), cov)),
        "alone": ([], Gamma(rng.uniform(1.0, 3.0, 1), rng.uniform(0.5, 2.0, 1))),
    }
    return BayesNet(nodes, ["pair", *([] if hidden else ["a"]), "b", "count", "number", "alone"])


def density(net, name, states, value):
    """The density of the observed part of a point, by scipy."""
    leaf = net.leaves[name]
    one = leaf[tuple(states[p] for p in PARENTS[name])] if leaf.shape else leaf
    if np.isnan(value).all():
        return 1.0
    if name == "count":
        return stats.poisson.pmf(value[0], one.rate[0])
    if name == "number":
        return stats.norm.pdf(value[0], one.mean[0], np.sqrt(one.variances[0]))
    if name == "alone":
        return stats.gamma.pdf(value[0], one.parameters("raw")[0], scale=one.scale[0])
    seen = ~np.isnan(value)
    return stats.multivariate_normal.pdf(value[seen], one.mean[seen], one.cov[np.ix_(seen, seen)])


PARENTS = {"count": ["a"], "number": ["b", "a"], "pair": ["b"], "alone": []}
WIDTH = {"pair": 2}


def joint(net, row):
    """p(a, b, row) for all states of a and b, one by one."""
    row, parts = list(row), {}
    for name in net.observed:
        parts[name], row = np.array(row[: WIDTH.get(name, 1)], float), row[WIDTH.get(name, 1) :]
    table = np.zeros((2, 3))
    for a, b in itertools.product(range(2), range(3)):
        states = {"a": a, "b": b}
        given = {name: parts[name][0] for name in states if name in parts and not np.isnan(parts[name][0])}
        if any(states[name] != code for name, code in given.items()):
            continue
        table[a, b] = net.tables["a"][a] * net.tables["b"][a, b]
        for name in PARENTS:
            table[a, b] *= density(net, name, states, parts[name])
    return table


def some_rows(net, seed, count, missing=0.3):
    rng = np.random.default_rng(seed)
    X = np.concatenate(net.sample(count, rng=rng)).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X


@pytest.mark.parametrize("hidden", [True, False])
def test_likelihood_posterior_and_marginal_are_those_of_enumeration(hidden):
    net = random_net(0, hidden)
    X = some_rows(net, 1, 12)
    tables = [joint(net, x) for x in X]
    np.testing.assert_allclose(net.log_prob(X), [np.log(t.sum()) for t in tables], rtol=1e-11)
    bags = [X[:5], X[5:]]
    np.testing.assert_allclose(
        net.log_prob(bags), [sum(np.log(t.sum()) for t in part) for part in (tables[:5], tables[5:])], rtol=1e-11
    )
    found = net.posterior(X, ["a", "b"])
    for table, posterior in zip(tables, found):
        np.testing.assert_allclose(posterior["a"][0], table.sum(axis=1) / table.sum(), atol=1e-12)
        np.testing.assert_allclose(posterior["b"][0], table.sum(axis=0) / table.sum(), atol=1e-12)
    evidence = {"number": 0.4, "pair": [0.1, -1.0], "count": 2}
    row = {"number": [0.4], "pair": [0.1, -1.0], "count": [2.0]}
    line = np.concatenate([row.get(name, [np.nan]) for name in net.observed])
    table = joint(net, line)
    np.testing.assert_allclose(net.marginal(["b", "a"], evidence), table.T / table.sum(), atol=1e-12)


def test_scores_match_differences_also_with_missing_entries():
    net = random_net(2)
    X = some_rows(net, 3, 6)
    assert max(check_score(net, [X[:3], X[3:5], X[5]]).values()) < 1e-6


def test_mixtures_are_leaves():
    rng = np.random.default_rng(4)
    leaf = Mixture(rows(rng, 2, 3), Gaussian(rng.normal(size=(2, 3, 1)), rng.uniform(0.5, 2.0, (2, 3))))
    net = BayesNet({"a": ([], [0.3, 0.7]), "x": (["a"], leaf)}, observed=["x"])
    X = rng.normal(size=(5, 1))
    expected = np.log(np.exp(leaf.log_density(X)) @ [0.3, 0.7])
    np.testing.assert_allclose(net.log_prob(X), expected, rtol=1e-12)
    assert max(check_score(net, X).values()) < 1e-6


def test_statistics_of_objects_of_a_total_and_of_own_networks():
    net, other = random_net(5), random_net(6)
    X = some_rows(net, 7, 6)
    bags = [X[:3], X[3:]]
    each, total = net.statistics(bags), net.statistics(bags, totals=True)
    for name, block in each.blocks.items():
        np.testing.assert_allclose(block.sum(axis=0), total[name][0], rtol=1e-11, atol=1e-12)
    own = BayesNet.stack([net, other]).statistics(bags)
    for i, model in enumerate((net, other)):
        alone = model.statistics(bags[i : i + 1])
        np.testing.assert_allclose(own.log_prob[i], alone.log_prob[0], rtol=1e-12)
        for name, block in alone.blocks.items():
            np.testing.assert_allclose(own[name][i], block[0], rtol=1e-10, atol=1e-12)


def test_scores_of_draws_have_mean_zero_and_the_information_as_covariance():
    net = random_net(8, hidden=False)
    X = np.concatenate(net.sample(20000, rng=0))
    scores = net.log_prob_grad(X)
    scatter = scores.T @ scores / len(X)
    assert np.all(np.abs(scores.mean(axis=0)) < 5 * np.sqrt(np.diagonal(scatter) / len(X)))
    information = np.zeros_like(scatter)
    for index, block in net.information([1]):
        information[np.ix_(index, index)] = np.asarray(block)
    np.testing.assert_allclose(scatter, information, atol=0.06 * np.abs(information).max())
    embedded = FisherScore(net).fit(X[:50]).transform(X[:50])
    assert np.isfinite(embedded).all()


def test_no_density_is_too_small():
    leaf = Gaussian([[0.0], [80.0]], [1.0, 1.0])
    net = BayesNet({"a": ([], [0.5, 0.5]), "s": (["a"], [[1.0, 0.0], [0.5, 0.5]]), "x": (["a"], leaf)}, ["s", "x"])
    # s = 1 says a = 1; at x = 0 the density of a = 1 is e^-3200 times that of a = 0
    np.testing.assert_allclose(net.log_prob([[1, 0.0]]), np.log(0.25) + stats.norm.logpdf(0.0, 80.0), rtol=1e-12)
    np.testing.assert_allclose(net.posterior([[1, 0.0]])[0]["a"], [[0.0, 1.0]])
    slope = net.log_prob_grad([[1, 0.0]])[0]
    assert dict(zip(net.parameter_names, slope))["x.mean[1,0]"] == pytest.approx(-80.0)
    assert dict(zip(net.parameter_names, slope))["x.mean[0,0]"] == 0.0


def test_densities_that_underflow_count_where_tables_make_up_for_them(monkeypatch):
    # The order in which no intermediate number is small: that of a = 1 is lost at once, that of a = 0 scaled each time.
    monkeypatch.setattr(contraction, "auto", lambda *given: [(3, 4), (2, 3), (1, 2), (0, 1)])
    rare = np.exp(-300.0)
    table = [[1.0 - rare, rare], [0.0, 1.0]]
    nodes = {"a": ([], [0.5, 0.5]), **{f"s{k}": (["a"], table) for k in range(3)}}
    net = BayesNet({**nodes, "x": (["a"], Gaussian([[0.0], [39.0]], [1.0, 1.0]))}, ["s0", "s1", "s2", "x"])
    row = [[1, 1, 1, 0.0]]  # e^-900 times the density of a = 0, and e^-760.5 times it
    np.testing.assert_allclose(net.log_prob(row), np.log(0.5) + stats.norm.logpdf(0.0, 39.0), rtol=1e-12)
    np.testing.assert_allclose(net.posterior(row)[0]["a"], [[0.0, 1.0]], atol=1e-50)


# --- kernels


def small(seed, ordered=("x", "c", "y")):
    """h -> x (observed states), h -> c (counts), (x, k) -> y (numbers); h and k are hidden."""
    rng = np.random.default_rng(seed)
    nodes = {
        "h": ([], rows(rng, 2)),
        "k": (["h"], rows(rng, 2, 2)),
        "x": (["h"], rows(rng, 2, 3)),
        "c": (["h"], Poisson(rng.uniform(0.5, 3.0, (2, 1)))),
        "y": (["x", "k"], Gaussian(rng.normal(size=(3, 2, 1)), rng.uniform(0.5, 1.5, (3, 2)))),
    }
    return BayesNet(nodes, list(ordered))


def other(seed):
    """The same observed nodes in another structure: x -> c, x -> y, nothing hidden."""
    rng = np.random.default_rng(seed)
    nodes = {
        "x": ([], rows(rng, 3)),
        "c": (["x"], Poisson(rng.uniform(0.5, 3.0, (3, 1)))),
        "y": (["x"], Gaussian(rng.normal(size=(3, 1)), rng.uniform(0.5, 1.5, 3))),
    }
    return BayesNet(nodes, ["x", "c", "y"])


def terms(net):
    """(x, weight, Poisson rate, mean, variance) of all states of the discrete nodes."""
    leaves, tables = net.leaves, net.tables
    if "h" not in tables:
        for x in range(3):
            yield x, tables["x"][x], leaves["c"].rate[x, 0], leaves["y"].mean[x, 0], leaves["y"].cov[x]
        return
    for h, k, x in itertools.product(range(2), range(2), range(3)):
        weight = tables["h"][h] * tables["k"][h, k] * tables["x"][h, x]
        yield x, weight, leaves["c"].rate[h, 0], leaves["y"].mean[x, k, 0], leaves["y"].cov[x, k]


def elementary(how, one, two):
    """The kernel of two counts and two numbers, by sums and quadrature."""
    (_, _, rate, mean, var), (_, _, rate2, mean2, var2) = one, two
    counts = np.arange(60)
    p, q = stats.poisson.pmf(counts, rate), stats.poisson.pmf(counts, rate2)
    f, g = stats.norm(mean, np.sqrt(var)), stats.norm(mean2, np.sqrt(var2))
    if isinstance(how, Power):
        integral = integrate.quad(lambda y: (f.pdf(y) * g.pdf(y)) ** how.rho, -30, 30, epsabs=1e-13, limit=200)[0]
        return float(((p * q) ** how.rho).sum()) * integral
    gaps = np.exp(-0.5 * how.lam * (counts[:, None] - counts) ** 2)
    law = stats.norm(mean - mean2, np.sqrt(var + var2))
    kernel = integrate.quad(lambda d: law.pdf(d) * np.exp(-0.5 * how.lam * d * d), -40, 40, epsabs=1e-13, limit=200)[0]
    return float(p @ gaps @ q) * kernel


@pytest.mark.parametrize("how", [Power(0.5), Power(1.0), Power(1.6)], ids=repr)
@pytest.mark.parametrize("make", [small, other])
def test_products_of_networks_are_sums_over_states_of_integrals(how, make):
    p, q = small(0), make(1)
    total = sum(
        (one[1] * two[1]) ** how.rho * elementary(how, one, two)
        for one, two in itertools.product(terms(p), terms(q))
        if one[0] == two[0]
    )
    assert np.exp(affinity(p, q, how)) == pytest.approx(total, rel=1e-9)
    assert np.exp(affinity(q, p, how)) == pytest.approx(total, rel=1e-9)


def numbers(seed, hidden=True):
    """x and y of ``small``, without counts, which have no mean map."""
    rng = np.random.default_rng(seed)
    y = Gaussian(rng.normal(size=(2, 1)), rng.uniform(0.5, 1.5, 2))
    return BayesNet({"h": ([], rows(rng, 2)), "x": (["h"], rows(rng, 2, 3)), "y": (["h"], y)}, ["x", "y"])


@pytest.mark.parametrize("how", [Expected(0.7), ExpectedLaplace(0.7)], ids=repr)
def test_mean_maps_are_sums_over_states_of_integrals(how):
    p, q = numbers(0), numbers(1)
    total = 0.0
    for (h, x), (k, z) in itertools.product(itertools.product(range(2), range(3)), repeat=2):
        f, g = p.leaves["y"], q.leaves["y"]
        law = stats.norm(f.mean[h, 0] - g.mean[k, 0], np.sqrt(f.cov[h] + g.cov[k]))
        kernel = law.expect(lambda d: np.exp(-how.scale * how.lam * how.apart(d)), lb=-20, ub=0, epsabs=1e-12)
        kernel += law.expect(lambda d: np.exp(-how.scale * how.lam * how.apart(d)), lb=0, ub=20, epsabs=1e-12)
        symbols = np.exp(-how.lam * 2.0 * how.scale * (x != z))
        weight = p.tables["h"][h] * p.tables["x"][h, x] * q.tables["h"][k] * q.tables["x"][k, z]
        total += weight * symbols * kernel
    assert np.exp(affinity(p, q, how)) == pytest.approx(total, rel=1e-9)


def test_stacks_and_kernels_of_networks_with_leaves():
    nets = [small(s) for s in range(4)]
    stack = BayesNet.stack(nets)
    table = affinity(stack, stack, Power(0.5))
    for i, j in itertools.product(range(4), repeat=2):
        np.testing.assert_allclose(table[i, j], affinity(nets[i], nets[j], Power(0.5)), rtol=1e-12)
    K = ProbabilityProduct(0.5).normalized()([*nets, other(9)])
    np.testing.assert_allclose(np.diagonal(K), 1.0)
    assert np.linalg.eigvalsh(K)[0] > -1e-12
    assert MeanMap(1.0)([numbers(0), numbers(1)]).shape == (2, 2)
    assert affinity.explain(nets[0], nets[1], Power(0.5)).name == "one_contraction"
    assert len(as_collection(nets, "test").groups) == 1  # one stack, whatever the numbers


@pytest.mark.parametrize("how", [Power(0.5), Expected(0.9)], ids=repr)
def test_hidden_markov_models_of_numbers_are_networks(how):
    r = np.random.default_rng(0)
    p, q = (
        HMM(rows(r, n), rows(r, n, n), Gaussian(r.normal(size=(n, 2)), r.uniform(0.5, 2.0, (n, 2)))) for n in (2, 3)
    )
    X = [r.normal(size=(4, 2)) for _ in range(3)]
    net = p.to_bayes_net(4)
    np.testing.assert_allclose(net.log_prob([x.ravel() for x in X]), p.log_prob(X), rtol=1e-11)
    expected = float(affinity(p, q, how, 4))
    assert float(affinity(net, q.to_bayes_net(4), how)) == pytest.approx(expected, rel=1e-10)
    assert float(affinity(net, q, how)) == pytest.approx(expected, rel=1e-10)


def test_a_single_continuous_node_is_its_leaf():
    f, g = Gaussian(0.0, 1.0), Gaussian([1.0], [2.0])
    p, q = BayesNet({"x": ([], f)}), BayesNet({"x": ([], g)})
    for how in (Power(0.5), Expected(2.0)):
        assert float(affinity(p, q, how)) == pytest.approx(float(affinity(f, g, how)), rel=1e-12)
    np.testing.assert_allclose(p.log_prob([[0.3], [np.nan]]), [*f.log_prob([[0.3]]), 0.0], rtol=1e-12)
    assert max(check_score(q, [[0.3], [2.0]]).values()) < 1e-6


def test_leaves_that_cannot_be_compared_are_named():
    p = BayesNet({"x": ([], Gaussian(0.0, 1.0))})
    with pytest.raises(ValueError, match="same numbers of states"):
        affinity(p, BayesNet({"x": ([], [0.5, 0.5])}), Power(0.5))
    small_shapes = BayesNet({"x": ([], Gamma([0.1], [1.0]))})
    with pytest.raises(ValueError, match="in the leaves of node 'x'"):
        affinity(small_shapes, small_shapes, Power(1.0))
    with pytest.raises(ValueError, match="points of numbers"):
        affinity(BayesNet({"x": ([], [0.5, 0.5])}), HMM([1.0], [[1.0]], Gaussian([[0.0]], [1.0])), Power(0.5), 1)


# --- values


def test_networks_are_values():
    net = random_net(11)
    for again in (pickle.loads(pickle.dumps(net)), loads(dumps(net)), BayesNet.stack([net, net])[1]):
        assert again == net
    assert BayesNet.stack([random_net(1), net]).unstack()[1] == net
    for coordinates in ("softmax", "ratio", "sqrt", "raw"):
        moved = net.with_parameters(net.parameters(coordinates), coordinates)
        np.testing.assert_allclose(moved.parameters("raw"), net.parameters("raw"), rtol=1e-12)
    assert len(net.parameter_names) == len(net.blocks) == len(net.parameters()) == 39
    assert net.parameter_names[:3] == ["count.rate[0,0]", "count.rate[1,0]", "a[0]"]
    assert "number.mean[2,1,0]" in net.parameter_names
    assert set(net.blocks) == {
        *("count.rate", "a", "b", "number.means", "number.variances", "pair.means", "pair.variances"),
        *("alone.shapes", "alone.scale"),
    }
    assert net.n_free_parameters == 2 + 1 + 4 + 12 + 15 + 2
    tied = BayesNet({"a": ([], [0.5, 0.5]), "x": (["a"], Gaussian([[0.0], [1.0]], [2.0, 2.0]))})
    assert tied.n_free_parameters == 1 + 2 + 1
    assert repr(net) == "BayesNet(6 nodes, 1 hidden, 4 continuous, 39 parameters)"
    assert "Gaussian" in str(net._details())
    assert net.leaves["number"].shape == (3, 2)
    assert net.draw_size == 5


def test_names_that_begin_alike_are_told_apart():
    net = BayesNet({"a": ([], Gaussian(0.0, 1.0)), "a.mean": ([], Gaussian(1.0, 2.0))})
    assert max(check_score(net, np.array([[0.3, -1.0], [2.0, 0.5]])).values()) < 1e-6


def test_errors_name_the_node():
    good = {"a": ([], [0.5, 0.5]), "x": (["a"], Gaussian([[0.0], [1.0]], [1.0, 1.0]))}
    with pytest.raises(ValueError, match="'x' is continuous and has the child 'b'"):
        BayesNet({**good, "b": (["x"], [[0.5, 0.5]])})
    with pytest.raises(ValueError, match="'x' is continuous and hidden"):
        BayesNet(good, observed=["a"])
    with pytest.raises(ValueError, match=r"batch \(2,\).*Got batch \(3,\)"):
        BayesNet({**good, "x": (["a"], Poisson([[1.0], [2.0], [3.0]]))})
    with pytest.raises(TypeError, match="one of symbols"):
        BayesNet({**good, "x": (["a"], Categorical([[0.5, 0.5], [0.1, 0.9]]))})
    net = BayesNet({**good, "x": (["a"], Poisson([[1.0], [2.0]]))})
    with pytest.raises(ValueError, match=r"node 'x' .from column 1.*object 1, position 0.*-1"):
        net.log_prob([[0, 1.0], [1, -1.0]])
    with pytest.raises(ValueError, match="'x' is continuous; only discrete"):
        net.posterior([[0, 1.0]], ["x"])
    sure = BayesNet({"a": ([], [1.0, 0.0]), "x": (["a"], Poisson([[0.0], [2.0]]))})
    with pytest.raises(ValueError, match="probability zero"):
        sure.marginal(["a"], {"x": 1})


# --- estimation

STRUCTURE = {"a": [], "b": ["a"], "count": ["a"], "number": ["b", "a"], "pair": ["b"]}
LEAVES = {"count": "poisson", "number": GaussianEstimator("diagonal"), "pair": GaussianEstimator("full")}


def estimator(**options):
    return BayesNetEstimator(STRUCTURE, leaves=LEAVES, cardinalities={"a": 2, "b": 3, "pair": 2}, **options)


def fitted_rows(seed, count, missing=0.0):
    net = random_net(seed, hidden=False)
    net = BayesNet(
        {name: (STRUCTURE[name], {**net.tables, **net.leaves}[name]) for name in STRUCTURE}, observed=list(STRUCTURE)
    )
    return some_rows(net, seed + 1, count, missing)


def test_complete_data_give_shares_means_and_covariances_of_groups():
    X = fitted_rows(20, 400)
    net = estimator(estimate="ml").fit(X).model_
    a, b = X[:, 0].astype(int), X[:, 1].astype(int)
    np.testing.assert_allclose(net.tables["b"][1], np.bincount(b[a == 1], minlength=3) / (a == 1).sum(), atol=1e-12)
    np.testing.assert_allclose(net.leaves["pair"].mean[2], X[b == 2, 4:].mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(net.leaves["pair"].cov[2], np.cov(X[b == 2, 4:].T, bias=True), rtol=1e-8)
    for i, j in itertools.product(range(3), range(2)):
        part = X[(b == i) & (a == j), 3]
        np.testing.assert_allclose(net.leaves["number"].mean[i, j], [part.mean()], rtol=1e-9)
        np.testing.assert_allclose(net.leaves["number"].cov[i, j], [part.var()], rtol=1e-8)
    plain = estimator(estimate="map", pseudocount=2.0).fit(X).model_
    np.testing.assert_allclose(plain.tables["a"], (np.bincount(a) + 2.0) / (len(a) + 4.0), rtol=1e-12)


def test_missing_entries_take_em_to_a_fixed_point_of_enumeration():
    X = fitted_rows(22, 60, missing=0.25)
    plain = {**LEAVES, "count": PoissonEstimator(estimate="ml")}
    found = estimator(estimate="ml", tol=1e-12, max_iter=3000).set_params(leaves=plain).fit(X)
    assert np.all(np.diff(found.history_) > -1e-8)
    assert found.history_[-1] == pytest.approx(found.model_.log_prob(X).sum(), rel=1e-10)
    net = found.model_
    laws = {**net.tables, **net.leaves}
    alone = Gamma([1.0], [1.0])
    full = BayesNet({**{name: (above, laws[name]) for name, above in STRUCTURE.items()}, "alone": ([], alone)})
    posterior = np.array([joint(full, [*x, np.nan]) for x in X])
    posterior /= posterior.sum(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(net.tables["a"], posterior.sum(axis=(0, 2)) / len(X), atol=1e-4)
    seen = ~np.isnan(X[:, 2])
    weights = posterior[seen].sum(axis=2)
    np.testing.assert_allclose(
        net.leaves["count"].rate[:, 0], (weights * X[seen, 2:3]).sum(axis=0) / weights.sum(axis=0), rtol=1e-3
    )


def test_the_objective_has_the_priors_of_tables_and_leaves():
    X = fitted_rows(24, 50, missing=0.2)
    counts = PoissonEstimator(estimate="map")
    found = estimator(pseudocount=0.5).set_params(leaves={**LEAVES, "count": counts}).fit(X)
    net = found.model_
    prior = 0.5 * np.log(net.values).sum() + float(counts.log_prior(net.leaves["count"]))
    assert abs(float(counts.log_prior(net.leaves["count"]))) > 1e-3
    assert found.history_[-1] == pytest.approx(net.log_prob(X).sum() + prior, rel=1e-10)


def test_a_hidden_parent_makes_a_mixture():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0.0, 1.0, (80, 2)), rng.normal(5.0, 1.5, (40, 2))])
    net = BayesNetEstimator(
        {"h": [], "x": ["h"]},
        leaves={"x": GaussianEstimator("full")},
        hidden={"h": 2},
        cardinalities={"x": 2},
        estimate="ml",
        tol=1e-10,
    ).fit(X)
    mixture = MixtureEstimator(2, component=GaussianEstimator("full"), pseudocount=0.0, tol=1e-10).fit(X)
    assert net.model_.log_prob(X).sum() == pytest.approx(mixture.model_.log_prob(X).sum(), rel=1e-8)
    np.testing.assert_allclose(np.sort(net.model_.tables["h"]), np.sort(mixture.model_.weights), atol=1e-5)
    labels = net.model_.posterior(X)
    assert len({int(p["h"][0].argmax()) for p in labels[:80]}) == 1


def test_two_leaves_of_one_hidden_node_and_restarts():
    rng = np.random.default_rng(1)
    h = rng.integers(0, 3, 150)
    X = np.column_stack([rng.normal(4.0 * h, 1.0), rng.poisson(np.array([1.0, 8.0, 30.0])[h])])
    net = BayesNetEstimator(
        {"h": [], "x": ["h"], "n": ["h"]}, leaves={"x": "gaussian", "n": "poisson"}, hidden={"h": 3}, n_init=3
    ).fit(X)
    guess = np.array([p["h"][0].argmax() for p in net.model_.posterior(X)])
    assert sum(np.bincount(h[guess == k]).max() for k in np.unique(guess)) >= 140
    assert np.all(np.diff(net.history_) > -1e-8)


def test_collapsed_distributions_lose_against_others_and_are_reported():
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(size=(30, 1)), [[9.0]]])
    options = {"leaves": {"x": "gaussian"}, "hidden": {"h": 2}}
    with pytest.warns(ConvergenceWarning, match=r"distribution . rests on an effective number of 1 observations"):
        BayesNetEstimator({"h": [], "x": ["h"]}, **options).fit(X)


def test_own_networks_weights_fixed_nodes_and_starts():
    bags = [fitted_rows(s, 40, missing=0.1) for s in (30, 40, 50)]
    each = estimator(max_iter=5, tol=0).fit_each(bags)
    for bag, net in zip(bags, each):
        alone = estimator(max_iter=5, tol=0).fit_each([bag])[0]
        np.testing.assert_allclose(net.parameters("raw"), alone.parameters("raw"), rtol=1e-9)
    twice = estimator(max_iter=3, tol=0).fit([bags[0], bags[1], bags[1]]).model_
    weighted = estimator(max_iter=3, tol=0).fit(bags, sample_weight=[1.0, 2.0, 0.0]).model_
    np.testing.assert_allclose(weighted.parameters("raw"), twice.parameters("raw"), rtol=1e-8)
    kept = estimator(init=each[0], fixed=("a", "number"), max_iter=2, tol=0).fit(bags[1]).model_
    assert kept.leaves["number"] == each[0].leaves["number"]
    np.testing.assert_array_equal(kept.tables["a"], each[0].tables["a"])
    assert kept.leaves["count"] != each[0].leaves["count"]


def test_unseen_states_of_parents_keep_a_broad_leaf():
    X = np.array([[0, 1.0, 2.0], [0, 3.0, 1.0], [2, 8.0, 0.0], [2, 9.0, 5.0]])
    net = BayesNetEstimator({"a": [], "x": ["a"], "n": ["a"]}, leaves={"x": "gaussian", "n": "poisson"}).fit(X).model_
    assert np.isfinite(net.log_prob([[1, 2.0, 3.0]])).all()
    np.testing.assert_allclose(net.leaves["x"].mean[[0, 2], 0], [2.0, 8.5], rtol=1e-9)


def test_classes_by_the_plug_in_rule():
    X = np.concatenate([fitted_rows(60, 60), fitted_rows(70, 60)])
    y = np.repeat([0, 1], 60)
    assert PlugInClassifier(estimator()).fit(X, y).score(X, y) > 0.7


@pytest.mark.parametrize("make", [FisherScore, TopScore])
def test_explanations_call_parameters_by_their_names(make):
    X = np.concatenate([fitted_rows(60, 30), fitted_rows(70, 30)])
    y = np.repeat([0, 1], 30)
    classifier = make_pipeline(make(estimator()), StandardScaler(), LogisticRegression()).fit(X, y)
    found = explain(classifier, X[:1])
    names = set(classifier[0].get_feature_names_out())
    assert {label for label, _ in found.top(5)} <= names | {"log-odds"}


def test_the_estimator_refuses_what_makes_no_sense():
    X = [[0, 1.5], [1, 2.5]]
    with pytest.raises(ValueError, match=r"make the node continuous, leaves=\{'x': 'gaussian'\}"):
        BayesNetEstimator({"a": [], "x": ["a"]}).fit(np.column_stack([np.arange(100) % 2, np.arange(100.0)]))
    with pytest.raises(ValueError, match="continuous and has the child"):
        BayesNetEstimator({"x": [], "a": ["x"]}, leaves={"x": "gaussian"}).fit(X)
    with pytest.raises(ValueError, match=r"leaves\['x'\]"):
        BayesNetEstimator({"a": [], "x": ["a"]}, leaves={"x": "categorical"}).fit(X)
    with pytest.raises(ValueError, match="no node 'z'"):
        BayesNetEstimator({"a": [], "x": ["a"]}, leaves={"z": "gaussian"}).fit(X)
    with pytest.raises(ValueError, match="averages over the posterior"):
        BayesNetEstimator({"a": [], "x": ["a"]}, leaves={"x": GaussianEstimator(estimate="predictive")}).fit(X)
    with pytest.raises(ValueError, match=r"node 'x'.*object 0"):
        BayesNetEstimator({"a": [], "x": ["a"]}, leaves={"x": "poisson"}).fit(X)
