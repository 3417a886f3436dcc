"""The plug-in classifier by estimated likelihoods, against exact ones on series short enough to enumerate."""

from __future__ import annotations

import numpy as np
import pytest

from genkern import LDS, LDSEstimator, PlugInClassifier, SwitchingLDS, SwitchingLDSEstimator, load, save


def switching(a, b) -> SwitchingLDS:
    systems = [LDS([[g]], [[1.0]], q, 0.5, [0.0], 1.0) for g, q in ((a, 0.2), (b, 2.0))]
    return SwitchingLDS([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], LDS.stack(systems))


MODELS = {"slow": switching(0.9, -0.5), "fast": switching(-0.9, 0.3)}


def series(n, length):
    X = [x for label, model in MODELS.items() for x in model.sample(n, length=length, rng=len(label) * length)]
    return X, np.repeat(list(MODELS), n)


def test_estimates_converge_to_the_exact_classifier():
    X, y = series(12, 9)
    exact = PlugInClassifier(MODELS).fit(X, y).joint_log_prob(X)
    gaps = []
    for n_draws in (4, 32, 512):  # 2^9 paths: nothing is lost with 512 particles
        found = PlugInClassifier(MODELS, likelihood="estimated", n_draws=n_draws).fit(X, y)
        gap = np.abs(found.joint_log_prob(X) - exact)
        error = found.standard_errors(X)
        assert error.shape == gap.shape == (24, 2)
        gaps.append(gap.mean())
        if n_draws < 512:
            assert (error > 0.0).any()
            assert (gap / np.maximum(error, 1e-12) < 6.0).mean() > 0.9
    assert gaps[0] > 3.0 * gaps[1] > 0.0
    np.testing.assert_allclose(gap, 0.0, atol=1e-10)
    np.testing.assert_array_equal(error, 0.0)


def test_an_objects_result_is_its_own():
    X, y = series(6, 40)
    found = PlugInClassifier(MODELS, likelihood="estimated", n_draws=20, random_state=3).fit(X, y)
    joint = found.joint_log_prob(X)
    np.testing.assert_array_equal(found.joint_log_prob(X[::-1])[::-1], joint)
    np.testing.assert_array_equal(found.predict_proba(X[4:5]), found.predict_proba(X)[4:5])
    other = PlugInClassifier(MODELS, likelihood="estimated", n_draws=20, random_state=4).fit(X, y)
    assert (other.joint_log_prob(X) != joint).any()
    drawn = PlugInClassifier(MODELS, likelihood="estimated", random_state=np.random.RandomState(0)).fit(X, y)
    np.testing.assert_array_equal(drawn.joint_log_prob(X), drawn.joint_log_prob(X))


def test_fitted_switching_systems_classify_long_series(tmp_path):
    turns = [[[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]] for a in (0.2, 0.9)]
    turning = LDS.stack([LDS(0.97 * np.array(turn), np.eye(2), 0.02, 0.02, [0.0, 0.0], 1.0) for turn in turns])
    one = SwitchingLDS([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], turning)
    plane = LDS.stack([LDS(0.9 * np.eye(2), np.eye(2), q, 0.1, [0.0, 0.0], 1.0) for q in (0.02, 0.3)])
    other = SwitchingLDS([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], plane)
    X = [*one.sample(8, length=50, rng=0), *other.sample(8, length=50, rng=1)]
    y = np.repeat([0, 1], 8)
    estimator = SwitchingLDSEstimator(n_regimes=2, n_states=2, n_init=1, max_iter=30, tol=1e-2)
    found = PlugInClassifier(estimator, likelihood="estimated", n_draws=30, random_state=0).fit(X[::2], y[::2])
    assert (found.predict(X[1::2]) == y[1::2]).mean() >= 0.75
    save(found, tmp_path / "plugin.genkern")
    again = load(tmp_path / "plugin.genkern")
    np.testing.assert_array_equal(again.joint_log_prob(X), found.joint_log_prob(X))


def test_without_the_option_the_error_names_it():
    X, y = series(3, 40)
    found = PlugInClassifier(MODELS).fit(X, y)
    with pytest.raises(ValueError, match=r"40 observations in object 0.*likelihood='estimated', n_draws=200"):
        found.predict(X)
    with pytest.raises(ValueError, match="likelihood"):
        PlugInClassifier(MODELS, likelihood="sampled").fit(X, y)
    with pytest.raises(ValueError, match="n_draws"):
        PlugInClassifier(MODELS, likelihood="estimated", n_draws=0).fit(X, y)


def test_exact_models_stay_exact():
    X, y = series(4, 12)
    exact = PlugInClassifier(LDSEstimator(1, max_iter=5, tol=1e-1)).fit(X, y)
    found = PlugInClassifier(LDSEstimator(1, max_iter=5, tol=1e-1), likelihood="estimated").fit(X, y)
    np.testing.assert_array_equal(found.joint_log_prob(X), exact.joint_log_prob(X))
    np.testing.assert_array_equal(found.standard_errors(X), 0.0)
    np.testing.assert_array_equal(exact.standard_errors(X), 0.0)
