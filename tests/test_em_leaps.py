"""Leaps of EM: their formula by hand, the objective never falls, fewer steps to the same tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from genkern import HMM, Categorical, HMMEstimator
from genkern.models.fit.leaps import Leaps


def words(count: int, size: int = 60) -> list[str]:
    """Return words of two letters whose states are hard to tell apart."""
    rng = np.random.default_rng(0)
    model = HMM([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], Categorical([[0.6, 0.4], [0.35, 0.65]], alphabet="AB"))
    return model.sample(count, length=size, rng=rng)


def logs(model: HMM) -> Any:
    """Return the logarithms of all probabilities."""
    with np.errstate(divide="ignore"):
        return np.log(np.concatenate([model.start, model.transitions.ravel(), model.emissions.probs.ravel()]))


def normalized(rows: Any) -> Any:
    return np.exp(rows) / np.exp(rows).sum(axis=-1, keepdims=True)


def test_a_leap_by_hand() -> None:
    X, seen = words(5), []
    one = HMMEstimator(2, max_iter=1, tol=0.0, random_state=0)
    models = [HMMEstimator(2, max_iter=30, tol=0.0, random_state=0).fit(X).model_]  # where EM creeps
    for _ in range(2):
        models.append(clone(one).set_params(init=models[-1]).fit(X).model_)
    first, second, third = map(logs, models)
    r, v = second - first, third - 2.0 * second + first
    a = min(np.sqrt((r**2).sum() / (v**2).sum()), 4.0)
    assert a > 1.0
    end = first + 2.0 * a * r + a**2 * v

    def keep(step: int, model: HMM, objective: float) -> None:
        seen.append(model)

    HMMEstimator(init=models[0], max_iter=4, tol=0.0, accelerate=True, callback=keep).fit(X)
    np.testing.assert_allclose(seen[0].transitions, models[1].transitions, rtol=1e-12)
    np.testing.assert_allclose(seen[1].start, normalized(end[:2]), rtol=1e-9)
    np.testing.assert_allclose(seen[1].transitions, normalized(end[2:6].reshape(2, 2)), rtol=1e-9)
    np.testing.assert_allclose(seen[1].emissions.probs, normalized(end[6:].reshape(2, 2)), rtol=1e-9)
    after = clone(one).set_params(init=seen[1]).fit(X).model_
    np.testing.assert_allclose(seen[2].transitions, after.transitions, rtol=1e-9)


def test_fewer_steps_to_the_same_optimum() -> None:
    X = words(20)
    plain = HMMEstimator(2, tol=1e-8, max_iter=20_000, pseudocount=0.5, random_state=0).fit(X)
    fast = HMMEstimator(2, tol=1e-8, max_iter=20_000, pseudocount=0.5, random_state=0, accelerate=True).fit(X)
    assert plain.converged_
    assert fast.converged_
    assert fast.n_iter_ < plain.n_iter_ / 3
    assert len(fast.history_) == fast.n_iter_ + 1
    assert (np.diff(fast.history_) >= 0.0).all()
    np.testing.assert_allclose(fast.history_[-1], plain.history_[-1], rtol=1e-6)
    np.testing.assert_allclose(fast.model_.transitions, plain.model_.transitions, atol=5e-3)


@pytest.mark.parametrize("steps", range(7))
def test_any_number_of_steps_ends_at_a_model_with_its_objective(steps: int) -> None:
    X = words(5)
    fitted = HMMEstimator(2, max_iter=steps, tol=0.0, pseudocount=0.0, accelerate=True, random_state=0).fit(X)
    assert fitted.n_iter_ == steps
    np.testing.assert_allclose(fitted.history_[-1], fitted.model_.log_prob(X).sum(), rtol=1e-12)


def test_a_leap_to_a_worse_model_is_taken_back() -> None:
    X = words(5)
    model = HMMEstimator(2, max_iter=0, random_state=0).fit(X).model_
    leaps = Leaps()
    other = HMMEstimator(2, max_iter=3, tol=0.0, random_state=0).fit(X).model_
    assert leaps.begins
    assert leaps.refused(False) is None
    assert leaps.follow(model, other) is other
    assert not leaps.begins
    third = HMMEstimator(2, max_iter=6, tol=0.0, random_state=0).fit(X).model_
    end = leaps.follow(other, third)
    assert end is not third
    assert leaps.refused(True) is None
    assert leaps.refused(False) is third
    assert leaps.begins


def test_zeros_stay_zeros_and_fixed_parameters_stay() -> None:
    X = words(10)
    start = HMM([1.0, 0.0], [[0.7, 0.3], [0.0, 1.0]], Categorical([[0.6, 0.4], [0.3, 0.7]], alphabet="AB"))
    fitted = HMMEstimator(init=start, fixed=("emissions",), accelerate=True, tol=1e-8, pseudocount=0.0).fit(X)
    np.testing.assert_array_equal(fitted.model_.emissions.probs, start.emissions.probs)
    assert fitted.model_.start[1] == 0.0
    assert fitted.model_.transitions[1, 0] == 0.0


def test_own_models_and_restarts() -> None:
    X = words(4)
    estimator = HMMEstimator(2, accelerate=True, n_init=3, tol=1e-6, random_state=0)
    for one, model in zip(X, estimator.fit_each(X)):
        alone = clone(estimator).fit_each([one])[0]
        assert model == alone
        loose = HMMEstimator(2, tol=1e-2, random_state=0).fit([one]).model_
        assert model.log_prob([one])[0] >= loose.log_prob([one])[0]
    best = clone(estimator).fit(X)
    assert best.history_[-1] >= clone(estimator).set_params(n_init=1).fit(X).history_[-1]


def test_only_a_bool_asks_for_leaps() -> None:
    with pytest.raises(ValueError, match="'accelerate'"):
        HMMEstimator(2, accelerate="yes").fit(words(2))
