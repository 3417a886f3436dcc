"""Probabilities from decision values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from genkern import expected_calibration_error
from genkern.learn.calibration import Calibrator


def draw(n, k, sharpness, seed=0):
    """Return decision values and classes of which softmax(sharpness values) are the true probabilities."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n, k))
    true = softmax(sharpness * values, axis=1)
    return values, (true.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), true


def test_sharpness_of_true_probabilities_is_found():
    values, codes, true = draw(20_000, 4, 3.0)
    calibrator = Calibrator().fit(values, codes)
    assert calibrator.sharpness_ == pytest.approx(3.0, rel=0.05)
    np.testing.assert_allclose(calibrator.predict_proba(values), true, atol=0.03)
    assert expected_calibration_error(codes, calibrator.predict_proba(values)) < 0.01
    assert expected_calibration_error(codes, Calibrator().fit(10 * values, codes).predict_proba(values)) > 0.1


def test_two_classes_are_logistic_regression_on_smoothed_targets():
    """Each object twice, with the weights of its targets, without intercept or penalty."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2, 60)
    values = rng.standard_normal(60) + codes
    wrong = 1 / 62
    weights = np.concatenate([np.full(60, 1 - wrong), np.full(60, wrong)])
    twice = np.concatenate([values, values])[:, None]
    model = LogisticRegression(C=1e10, fit_intercept=False, tol=1e-10)
    model.fit(twice, np.concatenate([codes, 1 - codes]), sample_weight=weights)
    calibrator = Calibrator().fit(values, codes)
    assert calibrator.sharpness_ == pytest.approx(model.coef_[0, 0], rel=1e-4)
    np.testing.assert_allclose(
        calibrator.predict_proba(values)[:, 1], expit(calibrator.sharpness_ * values), rtol=1e-12
    )


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_units_of_decision_values_do_not_matter(scale):
    values, codes, _ = draw(50, 3, 2.0)
    expected = Calibrator().fit(values, codes).predict_proba(values)
    np.testing.assert_allclose(
        Calibrator().fit(scale * values, codes).predict_proba(scale * values), expected, rtol=1e-5
    )


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ([-1.0, 1.0], [0, 1]),  # all right
        ([-1.0, 1.0], [1, 0]),  # all wrong
        ([0.0, 0.0], [0, 1]),  # nothing said
        ([3.0], [1]),
        (np.eye(3), [0, 1, 2]),
        (1 - np.eye(3), [0, 1, 2]),
    ],
)
def test_probabilities_are_sound_whatever_the_decisions(values, codes):
    calibrator = Calibrator().fit(values, codes)
    proba = calibrator.predict_proba(values)
    assert calibrator.sharpness_ > 0
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert (proba > 0).all()
    far = calibrator.predict_proba(1e6 * np.asarray(values))
    assert np.isfinite(far).all()


def test_infinite_decisions_are_certain():
    proba = Calibrator().fit([-1.0, 1.0, 0.5], [0, 1, 0]).predict_proba([np.inf, -np.inf, 0.0])
    np.testing.assert_array_equal(proba, [[0, 1], [1, 0], [0.5, 0.5]])
    three = Calibrator().fit(np.eye(3), [0, 1, 2]).predict_proba([[0.0, np.inf, 1.0], [-np.inf, 0.0, 0.0]])
    np.testing.assert_allclose(three, [[0, 1, 0], [0, 0.5, 0.5]])
    with pytest.raises(ValueError, match="finite"):
        Calibrator().fit([np.inf, 1.0], [0, 1])


def test_calibration_error_by_hand():
    rng = np.random.default_rng(2)
    proba = rng.dirichlet(np.ones(3), 200)
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 200)]
    for n_bins in (1, 7, 10):
        total = 0.0
        for b in range(n_bins):
            inside = [
                i
                for i in range(200)
                if b / n_bins <= proba[i].max() < (b + 1) / n_bins or (b == n_bins - 1 and proba[i].max() == 1)
            ]
            if inside:
                right = np.mean(["abc"[proba[i].argmax()] == y[i] for i in inside])
                total += len(inside) / 200 * abs(right - np.mean([proba[i].max() for i in inside]))
        assert expected_calibration_error(y, proba, n_bins=n_bins) == pytest.approx(total, rel=1e-9)
    assert expected_calibration_error([1, 1], [[0.0, 1.0], [0.0, 1.0]], classes=[0, 1]) == 0.0
    with pytest.raises(ValueError, match="classes="):
        expected_calibration_error([1, 1], [[0.0, 1.0], [0.0, 1.0]])
