"""Named starts of HMMs: rounds of best paths, and Gaussian mixtures, against what they are by definition."""

import itertools

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from genkern import HMM, Categorical, CategoricalEstimator, Gaussian, GaussianEstimator, HMMEstimator

LAWS = Gaussian([[0.0, 0.0], [6.0, 0.0], [0.0, 7.0]], [[1.0, 0.5]] * 3)
TRUTH = HMM([0.4, 0.3, 0.3], [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], LAWS)
X = TRUTH.sample(5, length=40, rng=0)


def chain_of(paths, allowed):
    """Return start and transitions by counting the steps of paths, each allowed one once more than it occurs."""
    first, steps = np.ones(len(allowed)), np.ones(allowed.shape)
    for path in paths:
        first[path[0]] += 1
        for a, b in itertools.pairwise(path):
            steps[a, b] += 1
    steps = steps * allowed
    return first / first.sum(), steps / steps.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("structure", ["ergodic", "left-right"])
def test_a_segmented_start_is_fitted_to_its_own_best_paths(structure):
    data = [np.sort(x, axis=0) for x in X] if structure == "left-right" else X
    emission = GaussianEstimator(relative_floor=0)
    model = HMMEstimator(3, emission, init="viterbi", structure=structure, max_iter=0).fit(data).model_
    paths = model.viterbi(data)
    allowed = np.ones((3, 3)) if structure == "ergodic" else np.eye(3) + np.eye(3, k=1)
    start, steps = chain_of(paths, allowed)
    points, labels = np.concatenate(data), np.concatenate(paths)
    assert set(labels.tolist()) == {0, 1, 2}
    np.testing.assert_allclose(model.transitions, steps, rtol=1e-12)
    if structure == "ergodic":
        np.testing.assert_allclose(model.start, start, rtol=1e-12)
    for k in range(3):
        np.testing.assert_allclose(model.emissions.mean[k], points[labels == k].mean(axis=0), rtol=1e-9)
        np.testing.assert_allclose(model.emissions.cov[k], points[labels == k].var(axis=0), rtol=1e-9)


def test_a_segmented_start_of_symbols():
    truth = HMM(
        [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], Categorical([[0.9, 0.05, 0.05], [0.05, 0.05, 0.9]], alphabet="abc")
    )
    words = truth.sample(6, length=50, rng=1)
    emission = CategoricalEstimator(alphabet="abc", pseudocount=0.5)
    model = HMMEstimator(2, emission, init="viterbi", max_iter=0, random_state=1).fit(words).model_
    paths = model.viterbi(words)
    start, steps = chain_of(paths, np.ones((2, 2)))
    np.testing.assert_allclose(model.start, start, rtol=1e-12)
    np.testing.assert_allclose(model.transitions, steps, rtol=1e-12)
    counts = np.full((2, 3), 0.5)
    for word, path in zip(words, paths):
        for symbol, state in zip(word, path):
            counts[state, "abc".index(symbol)] += 1
    np.testing.assert_allclose(model.emissions.probs, counts / counts.sum(axis=1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_two_symbols_leave_a_third_state_of_a_segmented_start_empty(seed):
    words = ["".join(np.random.default_rng(i).choice(list("ab"), 60, p=[0.3, 0.7])) for i in range(5)]
    estimator = HMMEstimator(3, CategoricalEstimator(alphabet="ab"), init="viterbi", max_iter=0, random_state=seed)
    model = estimator.fit(words).model_
    used = set(np.concatenate(model.viterbi(words)).tolist())
    assert len(used) <= 2
    for own, word in zip(estimator.fit_each(words), words):
        assert len(set(own.viterbi([word])[0].tolist())) <= 2


def test_a_mixture_start_has_the_posteriors_of_a_mixture():
    points = np.concatenate(X)
    theirs = GaussianMixture(3, covariance_type="diag", random_state=0, tol=1e-8, reg_covar=1e-9).fit(points)
    shares = theirs.predict_proba(points)
    means = shares.T @ points / shares.sum(axis=0)[:, None]
    model = HMMEstimator(3, init="gmm", max_iter=0).fit(X).model_
    order, other = np.argsort(means @ [1.0, 2.0]), np.argsort(model.emissions.mean @ [1.0, 2.0])
    np.testing.assert_allclose(model.emissions.mean[other], means[order], rtol=0, atol=0.02)
    labels = np.argsort(order)[shares.argmax(axis=1)]
    start, steps = chain_of(np.split(labels, np.cumsum([len(x) for x in X])[:-1]), np.ones((3, 3)))
    np.testing.assert_allclose(model.transitions[np.ix_(other, other)], steps, rtol=0, atol=0.02)
    np.testing.assert_allclose(model.start[other], start, rtol=1e-12)


@pytest.mark.parametrize("init", ["viterbi", "gmm"])
def test_starts_lead_to_the_truth_and_do_not_see_neighbours(init):
    estimator = HMMEstimator(3, init=init, random_state=0, n_init=2)
    fitted = estimator.fit(X)
    assert np.all(np.diff(fitted.history_) > -1e-9)
    found = fitted.model_.emissions.mean
    np.testing.assert_allclose(found[np.argsort(found @ [1.0, 2.0])], LAWS.mean, atol=0.6)
    some = X[:3]
    assert estimator.fit_each(some)[1] == estimator.fit_each(some[1:2])[0]


def test_few_points_and_symbols():
    with pytest.raises(ValueError, match="init='gmm' needs vectors"):
        HMMEstimator(2, init="gmm").fit(["abab"])
    short = [np.array([[0.0], [3.0]]), np.random.default_rng(0).normal(size=(9, 1))]
    for init in ("gmm", "viterbi"):
        for model, x in zip(HMMEstimator(3, init=init, max_iter=2, tol=0).fit_each(short), short):
            assert np.isfinite(model.log_prob([x])).all()


@pytest.mark.parametrize("ending", ["stop", "end"])
def test_starts_know_of_endings(ending):
    model = HMMEstimator(2, init="viterbi", ending=ending, max_iter=0).fit(X).model_
    assert getattr(model, ending) is not None
    assert np.isfinite(model.log_prob(X)).all()
