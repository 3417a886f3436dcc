"""Affinities between factorial models: exact ones against enumeration, bounds against a direct maximisation."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import softmax

from genkern import HMM, Expected, FactorialHMM, Gaussian, Power, ProbabilityProduct, affinity

HOWS = [Power(0.5), Power(1.0), Power(1.6), Expected(0.7)]


def factorial(seed: int, states: tuple[int, ...], d: int = 1, batch: tuple[int, ...] = ()) -> FactorialHMM:
    r = np.random.default_rng(seed)
    return FactorialHMM(
        [r.dirichlet(np.ones(k), batch) for k in states],
        [r.dirichlet(np.ones(k), (*batch, k)) for k in states],
        [r.normal(size=(*batch, k, d)) for k in states],
        r.uniform(0.3, 1.2, (*batch, d)),
    )


def paths(model: FactorialHMM, length: int) -> list[tuple[float, Any]]:
    """All joint paths with their probability and their means (length, d)."""
    found = []
    alone = [list(itertools.product(range(k), repeat=length)) for k in model.n_states]
    for chosen in itertools.product(*alone):
        weight, mean = 1.0, 0.0
        for c, path in enumerate(chosen):
            weight *= model.starts[c][path[0]]
            weight *= math.prod(model.transitions[c][pair] for pair in itertools.pairwise(path))
            mean = mean + model.means[c][list(path)]
        found.append((weight, mean))
    return found


def enumerated(p: FactorialHMM, q: FactorialHMM, how: Any, length: int) -> float:
    power = how.rho if isinstance(how, Power) else 1.0
    total = 0.0
    for (w, mean), (v, other) in itertools.product(paths(p, length), paths(q, length)):
        parts = [float(affinity(Gaussian(a, p.cov), Gaussian(b, q.cov), how)) for a, b in zip(mean, other)]
        total += (w * v) ** power * math.exp(sum(parts))
    return total


@pytest.mark.parametrize("how", HOWS, ids=repr)
def test_the_exact_kernel_is_the_sum_over_all_joint_paths(how: Any) -> None:
    p, q = factorial(0, (2, 2)), factorial(1, (3,))
    assert math.exp(affinity(p, q, how, 2)) == pytest.approx(enumerated(p, q, how, 2), rel=1e-10)
    assert affinity.explain(p, q, how, 2).name == "joint_state_recursion"
    plain = q.to_hmm()
    for pair in ((p, plain), (plain, p)):
        assert float(affinity(*pair, how, 2)) == pytest.approx(float(affinity(p, q, how, 2)), rel=1e-12)


def test_one_chain_is_a_hidden_markov_model() -> None:
    p, q = factorial(2, (3,), 2), factorial(3, (2,), 2)
    as_hmm = [
        HMM(m.starts[0], m.transitions[0], Gaussian(m.means[0], np.tile(m.cov, (len(m.starts[0]), 1)))) for m in (p, q)
    ]
    for how in HOWS:
        assert float(affinity(p, q, how, 6)) == pytest.approx(float(affinity(*as_hmm, how, 6)), rel=1e-12)


# --- bounds


def best_collapsed(p: FactorialHMM, q: FactorialHMM, how: Any) -> float:
    """Maximise E log Psi + H over independent beliefs about one step of every chain."""
    power = how.rho if isinstance(how, Power) else 1.0
    sizes = (*p.n_states, *q.n_states)
    logs = np.empty(sizes)
    for states in np.ndindex(sizes):
        mine, other = states[: p.n_chains], states[p.n_chains :]
        means = [sum(m.means[c][s] for c, s in enumerate(part)) for m, part in ((p, mine), (q, other))]
        prior = math.prod(p.starts[c][s] for c, s in enumerate(mine)) * math.prod(
            q.starts[c][s] for c, s in enumerate(other)
        )
        laws = (Gaussian(mean, m.cov) for mean, m in zip(means, (p, q)))
        logs[states] = power * math.log(prior) + float(affinity(*laws, how))

    def loss(x: Any) -> float:
        joint, entropy = np.ones(()), 0.0
        for part in np.split(x, np.cumsum(sizes)[:-1]):
            belief = softmax(part)
            joint = np.multiply.outer(joint, belief)
            entropy -= float((belief * np.log(belief + 1e-300)).sum())
        return -float((joint * logs).sum()) - entropy

    runs = [minimize(loss, np.random.default_rng(s).normal(size=sum(sizes)), method="BFGS").fun for s in range(6)]
    return -min(runs)


@pytest.mark.parametrize("how", HOWS, ids=repr)
def test_the_collapsed_bound_is_the_best_of_independent_beliefs(how: Any) -> None:
    p, q = factorial(4, (2, 3)), factorial(5, (2,))
    ours = float(affinity(p, q, how, 1, method="collapsed"))
    assert ours == pytest.approx(best_collapsed(p, q, how), abs=1e-6)
    assert affinity.explain(p, q, how, 1, method="collapsed").kind == "bound"


@pytest.mark.parametrize("how", HOWS, ids=repr)
@pytest.mark.parametrize("seed", [0, 10, 20])
def test_bounds_are_below_the_exact_value(how: Any, seed: int) -> None:
    p, q = factorial(seed, (2, 3), 2), factorial(seed + 1, (3, 2), 2)
    exact = float(affinity(p, q, how, 5))
    collapsed = float(affinity(p, q, how, 5, method="collapsed"))
    assert collapsed < exact
    if isinstance(how, Power):
        joint = float(affinity(p, q, how, 5, method="mean-field"))
        assert joint < collapsed


def test_the_joint_bound_is_the_expectation_it_claims() -> None:
    """With one state per chain the beliefs are certain, and only the Gaussian belief about x is left."""
    p, q = factorial(6, (1, 1), 2), factorial(7, (1,), 2)
    for rho in (0.5, 1.0, 2.0):
        # log k = max over Gaussians of rho E log p p' + H, attained at p^rho p'^rho itself.
        exact = float(affinity(p, q, Power(rho), 3))
        assert float(affinity(p, q, Power(rho), 3, method="mean-field")) == pytest.approx(exact, rel=1e-10)
        assert float(affinity(p, q, Power(rho), 3, method="collapsed")) == pytest.approx(exact, rel=1e-10)


def test_the_joint_bound_equals_a_direct_maximisation() -> None:
    p, q, rho = factorial(8, (2,)), factorial(9, (2,)), 0.8

    def loss(x: Any) -> float:
        left, right, centre, log_var = softmax(x[:2]), softmax(x[2:4]), x[4], x[5]
        var, total = math.exp(log_var), 0.5 * (math.log(2 * math.pi) + 1 + x[5])
        for model, belief in ((p, left), (q, right)):
            noise = float(model.cov[0])
            square = belief @ ((centre - model.means[0][:, 0]) ** 2 + var)
            total += rho * (belief @ np.log(model.starts[0]) - 0.5 * math.log(2 * math.pi * noise) - square / 2 / noise)
            total -= float(belief @ np.log(belief + 1e-300))
        return -float(total)

    best = -min(minimize(loss, np.random.default_rng(s).normal(size=6), method="BFGS").fun for s in range(6))
    assert float(affinity(p, q, Power(rho), 1, method="mean-field")) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("method", ["exact", "collapsed", "mean-field"])
def test_stacks_equal_pairs(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left, right, how = factorial(0, (2, 2), batch=(3,)), factorial(1, (3,), batch=(2,)), Power(0.7)
    table = affinity(left, right, how, 4, method=method)
    for i, j in itertools.product(range(3), range(2)):
        assert_allclose(table[i, j], affinity(left[i], right[j], how, 4, method=method), rtol=1e-12)
    square = affinity(left, left, how, 4, method=method)
    assert_array_equal(square, square.T)
    monkeypatch.setattr("genkern.affinities.factorial.CHUNK", 3)
    assert_allclose(affinity(left, right, how, 4, method=method), table, rtol=1e-12)


def test_too_many_joint_states_are_refused_by_name() -> None:
    big = factorial(0, (6, 6, 6, 6))
    with pytest.raises(ValueError, match=r"pairs of joint states; .* method='collapsed'"):
        affinity(big, big, Power(0.5), 3)
    assert np.isfinite(affinity(big, big, Power(0.5), 3, method="collapsed"))
    assert affinity(big, big, Expected(0.0), 3, method="collapsed") == 0.0
    with pytest.raises(ValueError, match=r"same number of channels\. Got 1 and 2"):
        affinity(factorial(0, (2,)), factorial(0, (2,), 2), Power(0.5), 3)


def far_apart(seed: int, states: tuple[int, ...]) -> FactorialHMM:
    """Return a model whose levels are several standard deviations of the noise apart."""
    model = factorial(seed, states)
    return FactorialHMM(model.starts, model.transitions, [3.0 * level for level in model.means], [0.3])


def test_the_collapsed_bound_is_never_looser_than_the_mean_field() -> None:
    """Both have local optima: from one start the collapsed bound of two of these pairs was the lower one."""
    for seed in range(12):
        p, q = far_apart(2 * seed, (2, 3)), far_apart(2 * seed + 1, (3, 2))
        for rho in (0.5, 1.0):
            exact = float(affinity(p, q, Power(rho), 6))
            bounds = [float(affinity(p, q, Power(rho), 6, method=method)) for method in ("mean-field", "collapsed")]
            assert bounds[0] <= bounds[1] <= exact + 1e-9
    models = [far_apart(seed, (2, 2)) for seed in range(4)]
    together = affinity(models, models[:2], Power(0.5), 4, method="collapsed")
    for i, j in itertools.product(range(4), range(2)):
        alone = float(affinity(models[i], models[j], Power(0.5), 4, method="collapsed"))
        assert together[i, j] == pytest.approx(alone, rel=1e-12)


def test_normalised_bounds_above_one_are_said_to_be_so() -> None:
    models = [far_apart(seed, (3, 3)) for seed in range(8)]
    exact = ProbabilityProduct(0.5, length=6).normalized()(models)
    assert exact.max() <= 1.0
    with pytest.warns(UserWarning, match=r"normalised values are above one, the largest is e\^.* method='exact'"):
        ProbabilityProduct(0.5, length=6, method="mean-field").normalized()(models)
