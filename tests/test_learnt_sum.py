"""The rule by which kernels join a sum, against a search that leaves out one object after the other by refitting."""

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer

from genkern.learn.ridge import ALPHAS
from genkern.recipes.learnt_sum import LearntSum


def left_out(K, y):
    """Return the squared errors (n,) of objects left out, at the penalty with the least mean."""
    n = len(y)
    found = []
    for alpha in ALPHAS:
        values = np.empty(n)
        for i in range(n):
            others = np.arange(n) != i
            system = np.ones((n, n))
            system[:-1, :-1] = K[np.ix_(others, others)] + alpha * np.eye(n - 1)
            system[-1, -1] = 0.0
            solved = np.linalg.solve(system, [*y[others], 0.0])
            values[i] = K[i, others] @ solved[:-1] + solved[-1]
        found.append((values - y) ** 2)
    return min(found, key=np.mean)


def unit(F):
    K = (F - F.mean(axis=0)) @ (F - F.mean(axis=0)).T
    return K / np.trace(K) * len(K)


def searched(parts, y):
    """Return the weights of some features, the first at one at the beginning."""
    kernels = [unit(F) for F in parts]
    weights = [1.0, *[0.0] * (len(parts) - 1)]

    def error(weights):
        return left_out(sum(w * K for w, K in zip(weights, kernels)) / sum(weights), y)

    best = error(weights)
    for k in [*range(1, len(parts)), 0]:
        tried = [[*weights[:k], w, *weights[k + 1 :]] for w in (0.0, 0.25, 1.0, 4.0)]
        tried = [weights for weights in tried if sum(weights)]
        errors = [error(weights) for weights in tried]
        least = int(np.argmin([e.mean() for e in errors]))
        gain = best - errors[least]
        if gain.mean() > gain.std() / np.sqrt(len(y)):
            best, weights = errors[least], tried[least]
    return weights, best.mean()


def blocks(seed, n):
    """Return features of the first sum and of two further ones, of which classes depend on all or on some."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    strength = rng.choice([0.0, 0.5, 2.0], 3)
    X = rng.standard_normal((n, 9))
    X[:, ::3] += strength * y[:, None]
    return [X[:, :3], X[:, 3:6], X[:, 6:]], X, y


@pytest.mark.parametrize("seed", range(8))
def test_weights_are_those_of_a_plain_search(seed):
    parts, X, y = blocks(seed, 24)
    cut = [FunctionTransformer(lambda X, at=at: X[:, at : at + 3]) for at in (0, 3, 6)]
    total = LearntSum(list(zip("abc", cut)), extras={"b": ["b"], "c": ["c"]}).fit(X, y)
    weights, error = searched(parts, y)
    assert list(total.weights_.values()) == weights
    np.testing.assert_allclose(total.errors_["chosen"], error, rtol=1e-6)


def test_searches_differ_and_few_objects_choose_nothing():
    found = {tuple(searched(blocks(seed, 24)[0], blocks(seed, 24)[2])[0]) for seed in range(8)}
    assert len(found) > 3
    _, X, y = blocks(0, 19)
    cut = [FunctionTransformer(lambda X, at=at: X[:, at : at + 3]) for at in (0, 3)]
    total = LearntSum(list(zip("ab", cut)), extras={"b": ["b"]}).fit(X, y)
    assert total.weights_ == {"main": 1.0, "b": 0.0}
