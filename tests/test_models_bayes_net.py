"""Discrete Bayesian networks against enumeration of all states, pgmpy, and the HMM of the same sequences."""

import itertools
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from genkern import (
    HMM,
    BayesNet,
    BayesNetEstimator,
    Categorical,
    FisherScore,
    FitEach,
    Gaussian,
    PlugInClassifier,
    check_score,
)
from genkern.models.bayes_net import contraction
from genkern.models.bayes_net import rows as bayes_net_rows
from tests.cases import random_hmm, rows

seeds = st.integers(0, 2**32 - 1)
RAIN = {
    "rain": ([], [0.8, 0.2]),
    "sprinkler": (["rain"], [[0.6, 0.4], [0.99, 0.01]]),
    "wet": (["sprinkler", "rain"], [[[1.0, 0.0], [0.2, 0.8]], [[0.1, 0.9], [0.01, 0.99]]]),
}


def random_net(rng, n, hidden=0.4, zeros=0.0):
    """A random graph with up to three parents per node, listed in an order that is not topological."""
    names = [f"n{v}" for v in range(n)]
    sizes, order = rng.integers(1, 4, n), rng.permutation(n)
    nodes = {}
    for k, v in enumerate(order):
        parents = rng.permutation(order[:k])[: rng.integers(0, 4)]
        table = rows(rng, *sizes[parents], sizes[v], zeros=zeros)
        nodes[names[v]] = ([names[p] for p in parents], table)
    shown = [name for name in names if rng.random() > hidden] or names[:1]
    return BayesNet({name: nodes[name] for name in names}, rng.permutation(shown).tolist())


def joint_table(net):
    """The probability of every state of all nodes, multiplied out one by one."""
    names = list(net.tables)
    parents = [[names[p] for p in above] for above in net.graph.parents]
    table = np.ones([net.tables[name].shape[-1] for name in names])
    for state in np.ndindex(table.shape):
        known = dict(zip(names, state))
        for name, above in zip(names, parents):
            table[state] *= net.tables[name][(*(known[p] for p in above), known[name])]
    return table


def slices(net, row):
    """The index of a row of evidence into the joint table."""
    known = {name: int(code) for name, code in zip(net.observed, row) if not np.isnan(code)}
    return tuple(known.get(name, slice(None)) for name in net.tables)


def random_rows(net, rng, count, missing):
    X = np.array(net.sample(count, rng=rng)).reshape(count, -1).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X


@pytest.fixture(params=["groups of equal patterns", "one group"])
def grouping(request, monkeypatch):
    monkeypatch.setattr(bayes_net_rows, "GROUP_COST", 0.0 if request.param.startswith("groups") else np.inf)


# --- likelihood and posterior


@settings(deadline=None, max_examples=30)
@given(seed=seeds, n=st.integers(1, 6), merged=st.booleans())
def test_probabilities_and_posteriors_are_those_of_enumeration(seed, n, merged):
    rng = np.random.default_rng(seed)
    net = random_net(rng, n, zeros=0.2)
    table, X = joint_table(net), random_rows(net, rng, 7, missing=0.3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bayes_net_rows, "GROUP_COST", np.inf if merged else 0.0)
        expected = [np.log(table[slices(net, x)].sum()) for x in X]
        np.testing.assert_allclose(net.log_prob(X), expected, rtol=1e-11, atol=1e-12)
        found = net.posterior(X, nodes=list(net.tables))
    for x, posterior in zip(X, found):
        kept = np.zeros_like(table)
        kept[slices(net, x)] = table[slices(net, x)] / table[slices(net, x)].sum()
        for v, name in enumerate(net.tables):
            marginal = kept.sum(axis=tuple(u for u in range(n) if u != v))
            np.testing.assert_allclose(posterior[name], marginal[None], atol=1e-11)


@settings(deadline=None, max_examples=20)
@given(seed=seeds, n=st.integers(1, 6))
def test_marginals_given_evidence_are_those_of_enumeration(seed, n):
    rng = np.random.default_rng(seed)
    net = random_net(rng, n)
    table, names = joint_table(net), list(net.tables)
    state = [int(rng.integers(size)) for size in table.shape]
    known = rng.permutation(n)[: rng.integers(0, n)]
    asked = [v for v in rng.permutation(n) if v not in known]
    cut = table[tuple(state[v] if v in known else slice(None) for v in range(n))]
    left = [v for v in range(n) if v not in known]
    expected = cut.transpose([left.index(v) for v in asked]) / cut.sum()
    found = net.marginal([names[v] for v in asked], {names[v]: state[v] for v in known})
    np.testing.assert_allclose(found, expected, atol=1e-12)


@settings(deadline=None, max_examples=20)
@given(seed=seeds, n=st.integers(1, 5))
def test_probabilities_of_all_rows_sum_to_one(seed, n):
    net = random_net(np.random.default_rng(seed), n)
    sizes = [net.graph.sizes[v] for v in net.graph.observed]
    X = np.array(list(itertools.product(*map(range, sizes))))
    assert np.exp(net.log_prob(X)).sum() == pytest.approx(1.0, rel=1e-12)


@settings(deadline=None, max_examples=8)
@given(seed=seeds, n=st.integers(1, 4))
def test_scores_match_differences(seed, n):
    rng = np.random.default_rng(seed)
    net = random_net(rng, n)
    X = random_rows(net, rng, 4, missing=0.3)
    bags = [np.repeat(X[:2], 2, axis=0), X[2:3], X[3]] if X.shape[1] > 1 else [X[:3], X[3:]]
    assert max(check_score(net, bags).values()) < 1e-6


@pytest.mark.usefixtures("grouping")
def test_statistics_times_tables_are_posteriors_of_families_also_at_zeros():
    rng = np.random.default_rng(5)
    net = random_net(rng, 6, zeros=0.3)
    X = random_rows(net, rng, 9, missing=0.3)
    table, names = joint_table(net), list(net.tables)
    bags = [X[:4], X[4:5], X[5:]]
    found = net.statistics(bags)
    totals = net.statistics(bags, totals=True)
    for v, name in enumerate(names):
        family = [*net.graph.parents[v], v]
        expected = []
        for bag in bags:
            count = np.zeros(net.tables[name].shape)
            for x in bag:
                kept = np.zeros_like(table)
                kept[slices(net, x)] = table[slices(net, x)] / table[slices(net, x)].sum()
                marginal = kept.sum(axis=tuple(u for u in range(6) if u not in family))
                count += marginal.transpose([sorted(family).index(u) for u in family])
            expected.append(count)
        counts = found[f"tables.{name}"] * net.tables[name]
        np.testing.assert_allclose(counts, expected, atol=1e-11)
        np.testing.assert_allclose(totals[f"tables.{name}"] * net.tables[name], [sum(expected)], atol=1e-11)


def test_raw_derivatives_at_zero_parameters_are_right():
    nodes = {"h": ([], [1.0, 0.0]), "x": (["h"], [[0.3, 0.7], [0.9, 0.1]])}
    raw = BayesNet(nodes, ["x"]).statistics([[0]])
    np.testing.assert_allclose(raw["tables.h"], [[1.0, 3.0]], rtol=1e-14)  # p(x | h) / p(x)
    np.testing.assert_allclose(raw["tables.x"], [[[1 / 0.3, 0.0], [0.0, 0.0]]], rtol=1e-14)


def test_stacks_give_each_object_its_own_model():
    rng = np.random.default_rng(7)
    nets = [BayesNet({"h": ([], rows(rng, 2)), "x": (["h"], rows(rng, 2, 3))}, ["x"]) for _ in range(4)]
    stack = BayesNet.stack(nets)
    bags = [rng.integers(0, 3, (m, 1)) for m in (1, 4, 2, 3)]
    own = stack.statistics(bags)
    for i, net in enumerate(nets):
        alone = net.statistics([bags[i]])
        np.testing.assert_allclose(own.log_prob[i], alone.log_prob[0], rtol=1e-13)
        np.testing.assert_allclose(own["tables.x"][i], alone["tables.x"][0], rtol=1e-12)
    np.testing.assert_allclose(stack.log_prob(bags)[:, 2], nets[2].log_prob(bags), rtol=1e-13)
    assert stack[1] == nets[1]


# --- large networks


def test_an_hmm_of_one_length_is_a_network_and_300_steps_do_not_underflow():
    rng = np.random.default_rng(0)
    hmm = random_hmm(rng, n=3, size=4)
    net = hmm.to_bayes_net(300)
    X = rng.integers(0, 4, (5, 300))
    logs = hmm.log_prob(list(X))
    assert logs.max() < -300
    np.testing.assert_allclose(net.log_prob(X), logs, rtol=1e-12)
    ours, theirs = net.statistics(X), hmm.statistics(list(X))
    steps = sum(ours[f"tables.state{t}"] for t in range(1, 300))
    np.testing.assert_allclose(steps, theirs["transitions"], rtol=1e-10)
    np.testing.assert_allclose(ours["tables.state0"], theirs["start"], rtol=1e-10)
    symbols = sum(ours[f"tables.symbol{t}"] for t in range(300))
    np.testing.assert_allclose(symbols, theirs["emissions.probs"], rtol=1e-10)
    gamma = hmm.posterior(list(X[:1]))[0]
    np.testing.assert_allclose(net.posterior(X[:1])[0]["state7"][0], gamma[7], atol=1e-11)
    np.testing.assert_allclose(net.marginal(["state299"], {"symbol0": 1}).sum(), 1.0)


def test_a_chain_that_is_observed_does_not_underflow():
    rng = np.random.default_rng(1)
    nodes = {0: ([], rows(rng, 3)), **{t: ([t - 1], rows(rng, 3, 3)) for t in range(1, 300)}}
    net = BayesNet(nodes)
    x = rng.integers(0, 3, 300)
    expected = np.log(nodes[0][1][x[0]]) + sum(np.log(nodes[t][1][x[t - 1], x[t]]) for t in range(1, 300))
    np.testing.assert_allclose(net.log_prob(x[None]), [expected], rtol=1e-12)
    assert net.statistics(x[None])["tables.5"][0, x[4], x[5]] == pytest.approx(1 / nodes[5][1][x[4], x[5]])


def test_evidence_that_contradicts_itself_beyond_the_floating_range():
    # 400 children speak for one state by 1e-381, 400 for the other: ordinary numbers lose both on the way
    probs = [[0.9, 0.1], [0.1, 0.9]]
    nodes = {"c": ([], [0.5, 0.5]), **{f"x{i}": (["c"], probs) for i in range(800)}}
    net = BayesNet(nodes, [f"x{i}" for i in range(800)])
    x = np.repeat([0, 1], 400)[None]
    np.testing.assert_allclose(net.log_prob(x), [400 * np.log(0.09)], rtol=1e-12)
    np.testing.assert_allclose(net.statistics(x)["tables.c"], [[1.0, 1.0]], rtol=1e-9)
    np.testing.assert_allclose(net.posterior(x)[0]["c"], [[0.5, 0.5]], rtol=1e-9)


@settings(deadline=None, max_examples=15)
@given(seed=seeds, n=st.integers(1, 6))
def test_logarithms_give_the_same_as_numbers(seed, n):
    rng = np.random.default_rng(seed)
    net = random_net(rng, n, zeros=0.2)
    X = random_rows(net, rng, 5, missing=0.3)
    plain, scaled = net.log_prob(X), net.statistics(X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contraction, "SMALLEST", np.inf)  # no row can be trusted
        np.testing.assert_allclose(net.log_prob(X), plain, rtol=1e-11, atol=1e-12)
        logs = net.statistics(X)
    for name, block in scaled.blocks.items():
        np.testing.assert_allclose(logs[name], block, rtol=1e-10, atol=1e-12)


def test_too_dense_a_network_is_refused():
    grid = [(i, j) for i in range(30) for j in range(30)]
    quarter = np.full((2, 2, 2), 0.5)
    nodes = {}
    for i, j in grid:
        parents = [p for p in ((i - 1, j), (i, j - 1)) if min(p) >= 0]
        nodes[(i, j)] = (parents, quarter[(0,) * (2 - len(parents))])
    with pytest.raises(ValueError, match="needs a tensor of"):
        BayesNet(nodes, [(29, 29)]).log_prob([[0]])


def test_many_patterns_of_missing_entries_agree_with_single_rows():
    rng = np.random.default_rng(2)
    net = random_hmm(rng, n=2, size=3).to_bayes_net(12)
    X = random_rows(net, rng, 40, missing=0.3)
    one_by_one = [net.log_prob(x[None])[0] for x in X]
    np.testing.assert_allclose(net.log_prob(X), one_by_one, rtol=1e-12)
    gradients = np.concatenate([net.log_prob_grad(x[None]) for x in X])
    np.testing.assert_allclose(net.log_prob_grad(X), gradients, atol=1e-11)


# --- pgmpy


def test_marginals_and_likelihoods_are_those_of_pgmpy():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = pytest.importorskip("pgmpy.models")
        cpds = pytest.importorskip("pgmpy.factors.discrete")
        inference = pytest.importorskip("pgmpy.inference")
        rng = np.random.default_rng(11)
        net = random_net(rng, 8, hidden=0.5)
        names = list(net.tables)
        sizes = dict(zip(names, net.graph.sizes))
        theirs = models.DiscreteBayesianNetwork()
        theirs.add_nodes_from(names)
        for v, (name, table) in enumerate(net.tables.items()):
            parents = [names[p] for p in net.graph.parents[v]]
            theirs.add_edges_from([(parent, name) for parent in parents])
            columns = table.reshape(-1, sizes[name]).T
            cards = [sizes[parent] for parent in parents]
            theirs.add_cpds(cpds.TabularCPD(name, sizes[name], columns, parents or None, cards or None))
        assert theirs.check_model()
        solver = inference.VariableElimination(theirs)
        x = net.sample(1, rng=3)[0][0]
        evidence = dict(zip(net.observed, map(int, x)))
        for name in net.hidden:
            expected = solver.query([name], evidence=evidence, show_progress=False).values
            np.testing.assert_allclose(net.marginal([name], evidence), expected, atol=1e-8)
            np.testing.assert_allclose(net.posterior(x[None])[0][name][0], expected, atol=1e-8)
        both = solver.query(net.observed, show_progress=False)
        order = [both.variables.index(name) for name in net.observed]
        likelihood = both.values.transpose(order)[tuple(x)]
        np.testing.assert_allclose(net.log_prob(x[None]), [np.log(likelihood)], atol=1e-8)


# --- the value


def test_validation_names_nodes():
    fair = [0.5, 0.5]
    with pytest.raises(ValueError, match=r"cycles.*'a'"):
        BayesNet({"a": (["b"], [fair, fair]), "b": (["a"], [fair, fair])})
    with pytest.raises(ValueError, match="parents of node 'b': there is no node 'c'"):
        BayesNet({"a": ([], fair), "b": (["c"], [fair, fair])})
    with pytest.raises(ValueError, match=r"table of 'b'' must have shape \(2, 3\)"):
        BayesNet({"a": ([], fair), "b": (["a"], [[0.2, 0.2, 0.6]])})
    with pytest.raises(ValueError, match=r"table of 'b'.*Row \(1,\) sums to 1.1"):
        BayesNet({"a": ([], fair), "b": (["a"], [fair, [0.5, 0.6]])})
    with pytest.raises(TypeError, match="parents of node 'b' must be a list"):
        BayesNet({"a": ([], fair), "b": ("a", [fair, fair])})
    with pytest.raises(ValueError, match="'observed': there is no node 'z'"):
        BayesNet({"a": ([], fair)}, observed=["z"])
    with pytest.raises(ValueError, match="differ as strings"):
        BayesNet({1: ([], fair), "1": ([], fair)})
    with pytest.raises(TypeError, match="node 'a' must be given as"):
        BayesNet({"a": fair[:1]})
    with pytest.raises(ValueError, match="at least one node"):
        BayesNet({})


def test_objects_are_rows_or_bags_and_wrong_codes_are_named():
    net = BayesNet(RAIN)
    X = np.array([[0, 1, 1], [1, 0, 1]])
    logs = net.log_prob(X)
    np.testing.assert_array_equal(net.log_prob(X.tolist()), logs)
    np.testing.assert_array_equal(net.log_prob([X[0], X[1:]]), logs)
    np.testing.assert_allclose(net.log_prob([X]), [logs.sum()], rtol=1e-14)
    with pytest.raises(ValueError, match=r"object 1, position 0, column 2: node 'wet' has the codes 0, ..., 1.*Got 2"):
        net.log_prob([[0, 1, 1], [0, 0, 2]])
    with pytest.raises(ValueError, match=r"Got 0\.5"):
        net.log_prob([[0.5, 1, 1]])
    with pytest.raises(ValueError, match="2 features"):
        net.log_prob([[0, 1]])
    impossible = [[1, 1, 1], [0, 0, 1]]
    assert net.log_prob(impossible)[1] == -np.inf
    for method in (net.statistics, net.posterior, net.log_prob_grad):
        with pytest.raises(ValueError, match="object 1 has probability zero"):
            method(impossible)
    blocked = BayesNet({"h": ([], [1.0, 0.0]), "x": (["h"], np.eye(2)), "y": (["h"], [[0.5, 0.5]] * 2)}, ["x", "y"])
    for method in (blocked.statistics, blocked.posterior, blocked.log_prob_grad):
        with pytest.raises(ValueError, match="object 1 has probability zero"):
            method([[0, 1], [1, 1], [0, 0]])
    with pytest.raises(ValueError, match="has probability zero"):
        BayesNet({"a": ([], [1.0, 0.0]), "b": (["a"], np.eye(2))}).marginal(["a"], {"b": 1})
    with pytest.raises(ValueError, match="without evidence"):
        net.marginal(["rain"], {"rain": 0})
    with pytest.raises(ValueError, match="there is no node 'snow'"):
        net.marginal(["snow"])
    with pytest.raises(ValueError, match=r"has the codes 0, ..., 1. Got 2"):
        net.marginal(["rain"], {"wet": 2})


def test_values_are_equal_by_content_and_order_counts():
    net = BayesNet(RAIN, ["wet"])
    assert net == pickle.loads(pickle.dumps(net))
    assert net == BayesNet(RAIN, ["wet"])
    assert net != BayesNet(RAIN)
    turned = BayesNet(dict(reversed(RAIN.items())), ["wet"])
    assert net != turned
    np.testing.assert_allclose(turned.log_prob([[0], [1]]), net.log_prob([[0], [1]]), rtol=1e-14)
    assert not net.tables["wet"].flags.writeable
    assert repr(net) == "BayesNet(3 nodes, 2 hidden, 14 parameters)"
    assert net.parameter_names[:4] == ["rain[0]", "rain[1]", "sprinkler[0,0]", "sprinkler[0,1]"]
    for coordinates in ("softmax", "ratio", "sqrt", "raw"):
        again = net.with_parameters(net.parameters(coordinates), coordinates)
        np.testing.assert_allclose(again.values, net.values, rtol=0, atol=1e-14)


def test_samples_follow_the_distribution():
    net = random_net(np.random.default_rng(21), 5)
    X = np.array(net.sample(1, length=20000, rng=4)[0])
    sizes = [net.graph.sizes[v] for v in net.graph.observed]
    cells = np.array(list(itertools.product(*map(range, sizes))))
    expected = np.exp(net.log_prob(cells)) * len(X)
    counts = np.bincount(np.ravel_multi_index(X.T, sizes), minlength=len(cells))
    kept = expected > 5
    assert counts[expected == 0].sum() == 0
    assert stats.chisquare(counts[kept], expected[kept] * counts[kept].sum() / expected[kept].sum()).pvalue > 1e-3


def test_information_is_that_of_complete_data():
    rng = np.random.default_rng(31)
    net = random_net(rng, 4, hidden=0.0)
    cells = np.array(list(itertools.product(*map(range, net.graph.sizes))))
    X = cells[:, net.graph.observed]  # all nodes are observed, in some order
    weights, scores = np.exp(net.log_prob(X)), net.log_prob_grad(X)
    expected = (scores * weights[:, None]).T @ scores
    found = np.zeros_like(expected)
    for index, block in net.information([1, 3]):
        found[np.ix_(index, index)] = block
    np.testing.assert_allclose(found, 2 * expected, atol=1e-12)


# --- the estimator

STAR = {"h": [], **{f"x{i}": ["h"] for i in range(5)}}


def star():
    tables = [[0.9, 0.1], [0.2, 0.8]]
    nodes = {"h": ([], [0.3, 0.7]), **{f"x{i}": (["h"], tables) for i in range(5)}}
    return BayesNet(nodes, [f"x{i}" for i in range(5)])


def test_complete_data_are_counted():
    rng = np.random.default_rng(41)
    X = rng.integers(0, [2, 3, 2], (50, 3))
    estimator = BayesNetEstimator({"a": [], "b": ["a", "c"], "c": []}, observed=["a", "b", "c"], estimate="ml").fit(X)
    counts = np.zeros((2, 2, 3))
    np.add.at(counts, (X[:, 0], X[:, 2], X[:, 1]), 1)
    table = counts / counts.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(estimator.model_.tables["b"], table, rtol=1e-12)
    assert (estimator.converged_, estimator.n_iter_, len(estimator.history_)) == (True, 1, 2)
    assert estimator.history_[-1] == pytest.approx(estimator.model_.log_prob(X).sum(), rel=1e-12)
    other = estimator.model_.with_parameters(rng.standard_normal(len(estimator.model_.parameter_names)))
    np.testing.assert_allclose(estimator.maximize(other.statistics(X)).tables["b"], table, rtol=1e-12)
    smooth = estimator.set_params(estimate="map", pseudocount=0.5).fit(X).model_.tables["b"]
    np.testing.assert_allclose(smooth, (counts + 0.5) / (counts + 0.5).sum(axis=-1, keepdims=True), rtol=1e-12)
    mean = estimator.set_params(estimate="predictive").fit(X).model_.tables["b"]
    np.testing.assert_allclose(mean, (counts + 1.5) / (counts + 1.5).sum(axis=-1, keepdims=True), rtol=1e-12)


def test_em_is_monotone_and_finds_hidden_states_and_missing_entries():
    X = np.array(star().sample(3000, rng=1)).reshape(3000, -1).astype(float)
    X[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    estimator = BayesNetEstimator(STAR, hidden={"h": 2}, pseudocount=0.1, tol=1e-9, n_init=2).fit(X)
    history = np.array(estimator.history_)
    assert estimator.converged_
    assert np.diff(history).min() >= -1e-9 * abs(history[0])
    order = np.argsort(estimator.model_.tables["h"])
    np.testing.assert_allclose(estimator.model_.tables["h"][order], [0.3, 0.7], atol=0.04)
    np.testing.assert_allclose(estimator.model_.tables["x3"][order], [[0.9, 0.1], [0.2, 0.8]], atol=0.05)
    again = estimator.maximize(estimator.model_.statistics(X))
    np.testing.assert_allclose(again.values, estimator.model_.values, atol=1e-4)


def test_missing_entries_alone_reach_a_stationary_point():
    rng = np.random.default_rng(51)
    net = BayesNet({"a": ([], [0.4, 0.6]), "b": (["a"], [[0.8, 0.2], [0.3, 0.7]])})
    X = random_rows(net, rng, 400, missing=0.3)
    model = BayesNetEstimator({"a": [], "b": ["a"]}, estimate="ml", tol=1e-13).fit(X).model_
    np.testing.assert_allclose(model.log_prob_grad(X).sum(axis=0), 0.0, atol=1e-3)


def test_fit_each_depends_on_each_object_alone_and_equals_fit():
    bags = [star().sample(1, length=12, rng=i)[0] for i in range(6)]
    estimator = BayesNetEstimator(STAR, hidden={"h": 2}, cardinalities=2, random_state=3, tol=1e-4)
    models = estimator.fit_each(bags)
    for i in (0, 4):
        alone = estimator.fit_each([bags[i]])[0]
        np.testing.assert_allclose(alone.values, models[i].values, rtol=1e-12, atol=1e-12)
    counted = BayesNetEstimator({f"x{i}": [] for i in range(5)}, cardinalities=2)
    for bag, model in zip(bags, counted.fit_each(bags)):
        np.testing.assert_allclose(model.values, counted.fit([bag]).model_.values, rtol=1e-12)


def test_estimator_refuses_what_it_cannot_use():
    pair = {"a": [], "b": ["a"]}
    X = np.array([[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="cycles"):
        BayesNetEstimator({"a": ["b"], "b": ["a"]}).fit(X)
    with pytest.raises(TypeError, match="must be a dict"):
        BayesNetEstimator(["a", "b"]).fit(X)
    with pytest.raises(ValueError, match="there is no node 'c' in 'structure'"):
        BayesNetEstimator(pair, cardinalities={"c": 2}).fit(X)
    with pytest.raises(ValueError, match="node 'b' is not observed; give its size"):
        BayesNetEstimator(pair, observed=["a"]).fit(X[:, :1])
    with pytest.raises(ValueError, match="named in 'hidden' and in 'observed'"):
        BayesNetEstimator(pair, observed=["a", "b"], hidden={"b": 2}).fit(X)
    with pytest.raises(ValueError, match="there is no node 'c'"):
        BayesNetEstimator(pair, hidden={"c": 2}).fit(X)
    with pytest.raises(ValueError, match=r"column 1.*missing in every row"):
        BayesNetEstimator(pair).fit(np.array([[0, np.nan], [1, np.nan]]))
    with pytest.raises(ValueError, match="no closed form"):
        BayesNetEstimator(pair, estimate="predictive").fit(np.array([[0, np.nan], [1, 1]]))
    with pytest.raises(ValueError, match=r"object 1, position 0, column 0.*Got 2"):
        BayesNetEstimator(pair, cardinalities=2).fit([[0, 1], [2, 1]])
    with pytest.raises(ValueError, match=r"Got -1"):
        BayesNetEstimator(pair).fit([[0, 1], [-1, 1]])
    for codes, got in ((np.arange(65), "65 up to 64"), (np.array([0, 256]), "2 up to 256")):
        rows = np.column_stack([np.arange(len(codes)) % 2, codes])
        with pytest.raises(ValueError, match=rf"node 'b' \(column 1\).*Got {got}; .*cardinalities="):
            BayesNetEstimator(pair).fit(rows)
        assert BayesNetEstimator(pair, cardinalities={"b": 300}).fit(rows).model_.tables["b"].shape == (2, 300)
    with pytest.warns(UserWarning, match="did not converge"):
        BayesNetEstimator(STAR, hidden={"h": 2}, max_iter=1, tol=1e-12).fit(star().sample(50, rng=0))


# --- with the rest of the library


def test_fisher_scores_classifiers_and_models_of_each():
    a, b = (
        star(),
        BayesNet(
            {**{"h": ([], [0.5, 0.5])}, **{f"x{i}": (["h"], [[0.4, 0.6]] * 2) for i in range(5)}},
            [f"x{i}" for i in range(5)],
        ),
    )
    X = a.sample(20, length=15, rng=0) + b.sample(20, length=15, rng=1)
    y = np.repeat([0, 1], 20)
    estimator = BayesNetEstimator(STAR, hidden={"h": 2}, cardinalities=2)
    assert PlugInClassifier(estimator).fit(X, y).score(X, y) > 0.9
    kernels = [FisherScore(a, coordinates=c).fit_transform(X) for c in ("softmax", "ratio", "sqrt")]
    assert kernels[0].shape == (40, len(a.parameter_names))
    np.testing.assert_allclose(kernels[1], kernels[0], atol=1e-7)
    np.testing.assert_allclose(kernels[2], kernels[0], atol=1e-7)
    assert len(FitEach(estimator).fit_transform(X[:3])) == 3


def test_only_hmms_without_an_end_become_networks():
    rng = np.random.default_rng(0)
    hmm = HMM([1.0], [[1.0]], Categorical([[0.5, 0.5]], "ab"))
    np.testing.assert_allclose(hmm.to_bayes_net(3).log_prob([[0, 1, 1]]), hmm.log_prob(["abb"]))
    numbers = HMM([1.0], [[1.0]], Gaussian([[0.0]], [[1.0]]))
    assert numbers.to_bayes_net(2).observed == ["point0", "point1"]
    np.testing.assert_allclose(numbers.to_bayes_net(2).log_prob([[0.5, 1.0]]), numbers.log_prob([[0.5, 1.0]]))
    with pytest.raises(ValueError, match="'stop' probabilities"):
        random_hmm(rng, ending="stop").to_bayes_net(2)
    with pytest.raises(ValueError, match="int >= 1"):
        hmm.to_bayes_net(0)
