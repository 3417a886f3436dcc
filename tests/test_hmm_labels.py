"""Fits of HMMs with known states, against counting and enumeration of the paths that labels allow."""

import itertools

import numpy as np
import pytest

from genkern import (
    HMM,
    Categorical,
    CategoricalEstimator,
    Gaussian,
    GaussianEstimator,
    HMMEstimator,
    MixtureEstimator,
)
from tests.cases import path_weights, point_density, random_hmm, random_sequence

RNG = np.random.default_rng(0)
CODES = [RNG.integers(3, size=n) for n in (5, 4, 6, 1)]
PATHS = [RNG.integers(2, size=len(x)) for x in CODES]


def allowed_weights(model, x, states):
    """Return paths that agree with the labels, and their joint probabilities with x."""
    paths, weights = path_weights(model, x)
    fits = [all(s in (-1, q) for s, q in zip(states, path)) for path in paths]
    return [path for path, fit in zip(paths, fits) if fit], weights[fits]


@pytest.mark.parametrize("ending", [None, "end", "stop"])
def test_known_states_are_counted(ending):
    emission = CategoricalEstimator(alphabet=range(3), pseudocount=0.5)
    estimator = HMMEstimator(emission=emission, pseudocount=0.5, ending=ending).fit(CODES, states=PATHS)
    model = estimator.model_
    first, last, steps, symbols = np.full(2, 0.5), np.full(2, 0.5), np.full((2, 2), 0.5), np.full((2, 3), 0.5)
    for x, path in zip(CODES, PATHS):
        first[path[0]] += 1
        last[path[-1]] += 1
        for a, b in itertools.pairwise(path):
            steps[a, b] += 1
        for code, state in zip(x, path):
            symbols[state, code] += 1
    if ending == "stop":
        rows = np.column_stack([steps, last]) / (steps.sum(axis=1) + last)[:, None]
        np.testing.assert_allclose(model.stop, rows[:, -1], rtol=1e-12)
        steps = rows[:, :-1]
    else:
        steps = steps / steps.sum(axis=1, keepdims=True)
    if ending == "end":
        np.testing.assert_allclose(model.end, last / last.sum(), rtol=1e-12)
    np.testing.assert_allclose(model.start, first / first.sum(), rtol=1e-12)
    np.testing.assert_allclose(model.transitions, steps, rtol=1e-12)
    np.testing.assert_allclose(model.emissions.probs, symbols / symbols.sum(axis=1, keepdims=True), rtol=1e-12)
    assert estimator.converged_
    assert estimator.n_iter_ <= 2


def test_known_states_of_vectors_have_their_moments():
    X = [RNG.normal(size=(n, 2)) for n in (30, 20)]
    states = [RNG.integers(3, size=len(x)) for x in X]
    emission = GaussianEstimator("full", relative_floor=0)
    model = HMMEstimator(emission=emission, pseudocount=0).fit(X, states=states).model_
    points, labels = np.concatenate(X), np.concatenate(states)
    for k in range(3):
        np.testing.assert_allclose(model.emissions.mean[k], points[labels == k].mean(axis=0), rtol=1e-10)
        np.testing.assert_allclose(model.emissions.cov[k], np.cov(points[labels == k].T, bias=True), rtol=1e-9)


@pytest.mark.parametrize("family", ["categorical", "diagonal"])
def test_a_step_sums_over_the_paths_that_labels_allow(family):
    rng = np.random.default_rng(1)
    start = random_hmm(rng, family, 3)
    X = [random_sequence(rng, family, length) for length in (5, 1, 4)]
    states = [np.array([-1, 2, -1, -1, 0]), np.array([1]), np.array([-1] * 4)]
    emission = CategoricalEstimator(alphabet=range(3), pseudocount=0) if family == "categorical" else "auto"
    estimator = HMMEstimator(init=start, emission=emission, pseudocount=0, max_iter=1, tol=0, relative_floor=None)
    estimator.fit(X, states=states)
    first, steps, total = np.zeros(3), np.zeros((3, 3)), 0.0
    visits = [np.zeros((len(x), 3)) for x in X]
    for x, known, gamma in zip(X, states, visits):
        paths, weights = allowed_weights(start, x, known)
        total += np.log(weights.sum())
        for path, share in zip(paths, weights / weights.sum()):
            first[path[0]] += share
            gamma[np.arange(len(x)), path] += share
            for a, b in itertools.pairwise(path):
                steps[a, b] += share
    model = estimator.model_
    assert estimator.history_[0] == pytest.approx(total, rel=1e-12)
    after = sum(np.log(allowed_weights(model, x, known)[1].sum()) for x, known in zip(X, states))
    assert estimator.history_[1] == pytest.approx(after, rel=1e-10)
    assert after > total
    np.testing.assert_allclose(model.start, first / first.sum(), rtol=1e-10)
    np.testing.assert_allclose(model.transitions, steps / steps.sum(axis=1, keepdims=True), rtol=1e-10)
    gamma, points = np.concatenate(visits), np.concatenate(X)
    if family == "categorical":
        counts = np.stack([gamma[points == a].sum(axis=0) for a in range(3)], axis=1)
        np.testing.assert_allclose(model.emissions.probs, counts / counts.sum(axis=1, keepdims=True), rtol=1e-10)
    else:
        means = gamma.T @ points / gamma.sum(axis=0)[:, None]
        np.testing.assert_allclose(model.emissions.mean, means, rtol=1e-9)


def test_a_label_that_only_a_faint_state_explains():
    # e^-5000 of the other state: the factor of the labelled state must not be rounded against it.
    start = HMM([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], Gaussian([[0.0], [100.0]], [[1.0], [1.0]]))
    x, states = np.array([[0.0], [0.0], [3.0]]), np.array([1, -1, 0])
    estimator = HMMEstimator(init=start, max_iter=0).fit([x], states=[states])
    logs = np.log([point_density(start.emissions, 0, x[t]) for t in range(3)])
    expected = -0.5 * 100.0**2 - 0.5 * np.log(2 * np.pi) + logs[1:].sum() + 3 * np.log(0.5)
    prior = HMMEstimator(init=start, max_iter=0).fit([x[1:]]).history_[0] - start.log_prob([x[1:]])[0]
    assert estimator.history_[0] - prior == pytest.approx(expected, rel=1e-12)


def test_a_few_labels_name_the_states():
    truth = HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], Gaussian([[0.0], [4.0]], [[1.0], [1.0]]))
    drawn = truth.simulate(10, length=60, rng=0)
    X, paths = [x for x, _ in drawn], [q for _, q in drawn]
    for order in ([0, 1], [1, 0]):  # whatever a first guess would have called them
        states = [np.full(len(q), -1) for q in paths]
        for k in (0, 1):
            states[0][np.flatnonzero(paths[0] == k)[:2]] = order[k]
        assert set(states[0].tolist()) == {-1, 0, 1}
        model = HMMEstimator(random_state=0).fit(X, states=states).model_
        np.testing.assert_allclose(model.emissions.mean[order].ravel(), [0.0, 4.0], atol=0.3)


def test_states_without_labels_are_found():
    truth = HMM(
        [1 / 3] * 3, np.full((3, 3), 0.05) + 0.85 * np.eye(3), Gaussian([[0.0], [8.0], [16.0]], np.ones((3, 1)))
    )
    drawn = truth.simulate(6, length=80, rng=1)
    states = [np.where((q == 2) & (np.arange(80) % 5 == 0), 0, -1) for _, q in drawn]
    model = HMMEstimator(3, random_state=0).fit([x for x, _ in drawn], states=states).model_
    assert model.emissions.mean[0, 0] == pytest.approx(16.0, abs=0.4)
    np.testing.assert_allclose(np.sort(model.emissions.mean[1:].ravel()), [0.0, 8.0], atol=0.4)
    many = HMMEstimator(3, random_state=0, n_init=3).fit([x for x, _ in drawn], states=states)
    assert many.history_[-1] >= HMMEstimator(3, random_state=0).fit([x for x, _ in drawn], states=states).history_[-1]


def test_mixtures_take_labels_too():
    X = [np.concatenate([RNG.normal(size=(20, 1)), RNG.normal(size=(20, 1)) + 9]) for _ in range(3)]
    states = [np.repeat([1, 0], 20) for _ in X]
    estimator = HMMEstimator(2, MixtureEstimator(2), random_state=0).fit(X, states=states)
    mixture = estimator.model_.emissions
    np.testing.assert_allclose((mixture.weights * mixture.components.mean[..., 0]).sum(axis=1), [9.0, 0.0], atol=0.5)
    assert np.all(np.diff(estimator.history_) > -1e-9)


def test_labels_that_cannot_be_are_refused():
    fit = HMMEstimator(2).fit
    with pytest.raises(ValueError, match=r"one array for each object, 4\. Got 2"):
        fit(CODES, states=PATHS[:2])
    with pytest.raises(ValueError, match="object 1 must have shape"):
        fit(CODES, states=[PATHS[0], PATHS[1][:-1], *PATHS[2:]])
    with pytest.raises(ValueError, match="object 2, position 1 is 2; expected 0 to 1"):
        fit(CODES, states=[*PATHS[:2], np.array([0, 2, 0, 0, 0, 0]), PATHS[3]])
    with pytest.raises(ValueError, match="object 0, position 0 is -2"):
        fit(CODES, states=[np.array([-2, 0, 0, 0, 0]), *PATHS[1:]])
    with pytest.raises(ValueError, match="must be integers"):
        fit(CODES, states=[path.astype(float) for path in PATHS])
    with pytest.raises(ValueError, match=r"object 1 has probability zero .* position 2"):
        HMMEstimator(2, structure="left-right").fit(["aab", "aab"], states=[[0, 0, 1], [0, 1, 0]])
    with pytest.raises(ValueError, match="n_states"):
        HMMEstimator("bic").fit(CODES, states=PATHS)
    barred = HMM([1.0, 0.0], [[0.5, 0.5], [0.5, 0.5]], Categorical([[1.0, 0.0], [0.5, 0.5]], alphabet="ab"))
    with pytest.raises(ValueError, match=r"object 0 .* position 1 \(symbol 'b'\)"):
        HMMEstimator(init=barred).fit(["ab"], states=[[0, 0]])


def test_unknown_states_only_are_no_labels_for_a_given_start():
    start = random_hmm(np.random.default_rng(2), "diagonal", 2, size=1)
    X = [RNG.normal(size=(9, 1)), RNG.normal(size=(5, 1))]
    plain = HMMEstimator(init=start).fit(X)
    free = HMMEstimator(init=start).fit(X, states=[np.full(len(x), -1) for x in X])
    np.testing.assert_allclose(free.history_, plain.history_, rtol=1e-9)


@pytest.mark.parametrize("known", [0.4, 1.0])
def test_each_sequence_has_its_own_known_states(known):
    rng = np.random.default_rng(8)
    X = [rng.normal(size=(n, 2)) + 3.0 * (np.arange(n) % 3 == 0)[:, None] for n in (14, 9, 20)]
    states = [np.where(rng.random(len(x)) < known, np.arange(len(x)) % 3 == 0, -1) for x in X]
    estimator = HMMEstimator(2, max_iter=5, tol=0.0)
    found = estimator.fit_each(X, states=states)
    for x, path, model in zip(X, states, found, strict=True):
        alone = HMMEstimator(2, max_iter=5, tol=0.0).fit([x], states=[path]).model_
        np.testing.assert_allclose(model.parameters(), alone.parameters(), rtol=1e-10, atol=1e-12)
    again = estimator.fit_each(X[::-1], states=states[::-1])[::-1]
    assert all(np.array_equal(a.parameters(), b.parameters()) for a, b in zip(found, again))
    if known == 1.0:  # counting: the mean of each state is that of its points
        for x, path, model in zip(X, states, found, strict=True):
            means = [x[path == s].mean(axis=0) for s in (0, 1)]
            np.testing.assert_allclose(model.emissions.mean, means, rtol=1e-12)
    with pytest.raises(ValueError, match=r"one array for each object, 3\. Got 2"):
        estimator.fit_each(X, states=states[:2])
