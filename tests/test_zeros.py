"""What a start forbids stays forbidden: zeros of ``init`` under pseudocounts, and the mode of the posterior."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from genkern import (
    HMM,
    LDS,
    Categorical,
    CategoricalEstimator,
    Gaussian,
    HMMEstimator,
    Mixture,
    MixtureEstimator,
    SwitchingLDS,
    SwitchingLDSEstimator,
)

EPSILON = Fraction(1, 4)


def profile(columns=6, letters="ACGT"):
    """A profile of match, insert and delete-free states: state j goes to itself, to j + 1 or over it to j + 2."""
    n = columns
    steps = np.eye(n) + np.eye(n, k=1) + np.eye(n, k=2)
    emissions = 0.1 + np.eye(len(letters))[np.arange(n) % len(letters)]
    emissions[n // 2, 0] = 0.0
    return HMM(
        np.eye(n)[0],
        steps / steps.sum(axis=1, keepdims=True),
        Categorical(emissions / emissions.sum(axis=1, keepdims=True), letters),
    )


@pytest.mark.parametrize("structure", ["ergodic", "left-right"])
def test_a_profile_keeps_its_zeros(structure):
    start = profile()
    if structure == "left-right":
        steps = np.triu(np.tril(start.transitions, 1))
        start = HMM(start.start, steps / steps.sum(axis=1, keepdims=True), start.emissions)
    X = ["ACGTAC", "AGGTAACC", "ACCGTTAC", "AACGTC"]
    estimator = HMMEstimator(init=start, pseudocount=0.5, structure=structure, max_iter=20, tol=0)
    one = estimator.fit(X)
    for model in (one.model_, *estimator.fit_each(X)):
        for name in ("start", "transitions"):
            assert ((getattr(model, name) > 0) == (getattr(start, name) > 0)).all()
        assert ((model.emissions.probs > 0) == (start.emissions.probs > 0)).all()
    assert np.isfinite(one.history_).all()
    assert (np.diff(one.history_) > -1e-9).all()


@pytest.mark.parametrize("ending", ["stop", "end"])
def test_the_mode_of_the_posterior_is_that_on_the_allowed_support(ending):
    # Every state has a symbol of its own, so that the path is seen and all counts are known: b never follows c, and no
    # sequence begins with b or ends in a.
    steps = np.array([[0.25, 0.5, 0.25], [0.25, 0.25, 0.25], [0.5, 0.0, 0.25]])
    if ending == "end":
        steps /= steps.sum(axis=1, keepdims=True)
    last = {"stop": np.array([0.0, 0.25, 0.25]), "end": np.array([0.0, 0.5, 0.5])}[ending]
    start = HMM([0.5, 0.0, 0.5], steps, Categorical(np.eye(3), "abc"), **{ending: last})
    X = ["abbc", "ac", "caab", "ccab", "aac"]
    fitted = HMMEstimator(
        init=start, emission=CategoricalEstimator("abc", pseudocount=0.25), pseudocount=0.25, max_iter=3, tol=0
    ).fit(X)
    pairs = [a + b for x in X for a, b in pairwise(x)]
    ends = [x[-1] for x in X]

    def mode(counts, allowed):
        total = sum(counts.values()) + EPSILON * len(allowed)
        return [float((counts.get(a, 0) + EPSILON) / total) if a in allowed else 0.0 for a in "abc$"]

    model = fitted.model_
    first = [x[0] for x in X]
    np.testing.assert_allclose(model.start, mode({a: first.count(a) for a in "ac"}, "ac")[:3], rtol=1e-12)
    for i, (a, allowed) in enumerate([("a", "abc"), ("b", "abc$"), ("c", "ac$")]):
        counts = {b: pairs.count(a + b) for b in "abc"}
        if ending == "stop":
            counts["$"] = ends.count(a)
        else:
            allowed = allowed.replace("$", "")
        expected = mode(counts, allowed)
        np.testing.assert_allclose(model.transitions[i], expected[:3], rtol=1e-12)
        if ending == "stop":
            np.testing.assert_allclose(model.stop[i], expected[3], rtol=1e-12)
    if ending == "end":
        np.testing.assert_allclose(model.end, mode({a: ends.count(a) for a in "bc"}, "bc")[:3], rtol=1e-12)
    np.testing.assert_array_equal(model.emissions.probs, np.eye(3))
    assert np.isfinite(fitted.history_).all()
    assert (np.diff(fitted.history_) > -1e-12).all()


def test_the_objective_counts_the_prior_of_what_is_allowed():
    start = HMM([1.0, 0.0], [[0.5, 0.5], [0.0, 1.0]], Categorical(np.eye(2), "ab"))
    estimator = HMMEstimator(init=start, pseudocount=0.5, max_iter=1, tol=0).fit(["aabb"])
    # One path; of the three rows only the first of transitions has two entries, one half each.
    assert estimator.history_[0] == pytest.approx(2.0 * np.log(0.5) + 0.5 * 2.0 * np.log(0.5), rel=1e-12)


def test_components_without_weight_stay_out():
    components = Gaussian([[0.0], [5.0], [1.0]], np.ones((3, 1)))
    start = Mixture([0.5, 0.5, 0.0], components)
    X = np.array([[0.0], [0.5], [1.0], [5.0], [5.5], [4.0]])
    estimator = MixtureEstimator(3, init=start, pseudocount=1.0, max_iter=10, tol=0)
    fitted = estimator.fit(X)
    assert fitted.model_.weights[2] == 0.0
    for model in estimator.fit_each([X, X + 0.1]):
        assert (model.weights > 0).tolist() == [True, True, False]
    assert (np.diff(fitted.history_) > -1e-9).all()
    # Of six points, with one more for each of two components.
    assert fitted.model_.weights[0] == pytest.approx(0.5, abs=1e-3)


def test_zeros_of_emissions_inside_mixtures_stay():
    letters = Categorical([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]], "abc")
    model = (
        MixtureEstimator(2, CategoricalEstimator("abc", 0.5), init=Mixture([0.5, 0.5], letters)).fit(["aabcc"]).model_
    )
    assert ((model.components.probs > 0) == (letters.probs > 0)).all()


def test_regimes_that_never_return_stay_so():
    system = LDS(0.5 * np.eye(1), np.eye(1), np.eye(1), np.ones(1), np.zeros(1), np.eye(1))
    start = SwitchingLDS([1.0, 0.0], [[0.9, 0.1], [0.0, 1.0]], LDS.stack([system, system]))
    X = [np.random.default_rng(i).normal(size=(20, 1)) for i in range(3)]
    estimator = SwitchingLDSEstimator(2, 1, init=start, pseudocount=0.5, max_iter=3, tol=0)
    fitted = estimator.fit(X)
    for model in (fitted.model_, *estimator.fit_each(X)):
        assert model.start[1] == 0.0
        assert model.transitions[1, 0] == 0.0
    assert np.isfinite(fitted.history_).all()
