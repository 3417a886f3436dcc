"""Affinities between discrete networks against sums over all states of all nodes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from genkern import HMM, BayesNet, Categorical, Expected, Power, ProbabilityProduct, affinity

HOWS = [Power(0.5), Power(1.0), Power(1.7), Expected(0.0), Expected(0.9)]


def tables(seed: int, nodes: dict[str, tuple[list[str], int]]) -> dict[str, Any]:
    r = np.random.default_rng(seed)
    shape = {name: [nodes[parent][1] for parent in parents] for name, (parents, _) in nodes.items()}
    return {name: (parents, r.dirichlet(np.ones(k), shape[name])) for name, (parents, k) in nodes.items()}


def fork(seed: int) -> BayesNet:
    """h -> x, h -> y, x -> y: an observed node with an observed parent."""
    nodes = {"h": ([], 2), "x": (["h"], 3), "y": (["h", "x"], 2)}
    return BayesNet(tables(seed, nodes), observed=["x", "y"])


def ladder(seed: int) -> BayesNet:
    nodes = {"x": ([], 3), "g": (["x"], 2), "k": (["g"], 3), "y": (["k", "g"], 2)}
    return BayesNet(tables(seed, nodes), observed=["x", "y"])


def plain(seed: int) -> BayesNet:
    return BayesNet(tables(seed, {"x": ([], 3), "y": (["x"], 2)}))


def weights(net: BayesNet) -> dict[tuple[int, ...], list[float]]:
    """Probabilities of all complete rows, by their observed part."""
    graph, found = net.graph, {}
    for states in itertools.product(*map(range, graph.sizes)):
        weight = 1.0
        for v, table in enumerate(net.tables.values()):
            weight *= table[(*(states[u] for u in graph.parents[v]), states[v])]
        found.setdefault(tuple(states[v] for v in graph.observed), []).append(weight)
    return found


def summed(p: BayesNet, q: BayesNet, how: Any) -> float:
    left, right = weights(p), weights(q)
    total = 0.0
    for x, y in itertools.product(left, right):
        if isinstance(how, Power):
            if x == y:
                total += sum((w * v) ** how.rho for w in left[x] for v in right[y])
        else:
            gap = sum(a != b for a, b in zip(x, y))
            total += math.exp(-how.lam * gap) * sum(left[x]) * sum(right[y])
    return total


@pytest.mark.parametrize("how", HOWS, ids=repr)
@pytest.mark.parametrize("makes", list(itertools.combinations_with_replacement([fork, ladder, plain], 2)))
def test_networks_of_any_structures(how: Any, makes: Any) -> None:
    p, q = makes[0](0), makes[1](1)
    assert math.exp(affinity(p, q, how)) == pytest.approx(summed(p, q, how), rel=1e-11)
    assert affinity.explain(p, q, how).name == "one_contraction"


@pytest.mark.parametrize("how", HOWS, ids=repr)
def test_hidden_markov_models_are_networks(how: Any) -> None:
    r = np.random.default_rng(0)
    p, q = (
        HMM(r.dirichlet(np.ones(n)), r.dirichlet(np.ones(n), n), Categorical(r.dirichlet(np.ones(3), n)))
        for n in (2, 3)
    )
    expected = float(affinity(p, q, how, 4))
    nets = p.to_bayes_net(4), q.to_bayes_net(4)
    assert float(affinity(*nets, how)) == pytest.approx(expected, rel=1e-11, abs=1e-12)
    assert float(affinity(nets[0], q, how)) == pytest.approx(expected, rel=1e-11, abs=1e-12)
    assert float(affinity(p, nets[1], how)) == pytest.approx(expected, rel=1e-11, abs=1e-12)
    assert affinity.explain(nets[0], q, how).name == "network_and_hmm"
    with pytest.raises(ValueError, match="emits 3 symbols"):
        affinity(fork(0), q, how)


@pytest.mark.parametrize("how", [Power(0.5), Expected(0.9)], ids=repr)
def test_stacks_equal_pairs(how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = BayesNet.stack([fork(s) for s in range(3)]), BayesNet.stack([ladder(s) for s in range(2)])
    table = affinity(left, right, how)
    for i, j in itertools.product(range(3), range(2)):
        assert_allclose(table[i, j], affinity(left[i], right[j], how), rtol=1e-13)
    square = affinity(left, left, how)
    assert_array_equal(square, square.T)
    assert_allclose(affinity.diag(left, how), np.diagonal(square), rtol=1e-13, atol=1e-13)
    monkeypatch.setattr("genkern.affinities.bayes_net.CHUNK", 3)
    assert_allclose(affinity(left, right, how), table, rtol=1e-13)
    kernel = ProbabilityProduct(0.5).normalized()([fork(0), ladder(1), plain(2), fork(3)])
    assert_allclose(np.diagonal(kernel), 1.0)
    assert np.linalg.eigvalsh(kernel)[0] > -1e-12


def test_long_chains_do_not_underflow() -> None:
    r = np.random.default_rng(1)
    steps = r.dirichlet(np.ones(5), 2), r.dirichlet(np.ones(2), 2)
    model = HMM([0.5, 0.5], steps[1], Categorical(steps[0]))
    long = model.to_bayes_net(600)
    assert float(affinity(long, long, Power(2.0))) == pytest.approx(
        float(affinity(model, model, Power(2.0), 600)), rel=1e-10
    )
    assert float(affinity(long, long, Power(2.0))) < -1000


def test_disjoint_networks_and_other_nodes() -> None:
    p, q = (BayesNet({"x": ([], row)}) for row in ([1.0, 0.0], [0.0, 1.0]))
    assert affinity(p, q, Power(0.5)) == -np.inf
    with pytest.raises(ValueError, match=r"Got \{'x': 2\} and \{'x': 3, 'y': 2\}"):
        affinity(p, plain(0), Power(0.5))
