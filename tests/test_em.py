"""The EM loop: when it has converged, and what it does where rounding makes a step lose."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import genkern.models.estimator
from genkern import HMM, CategoricalEstimator, GaussianEstimator, HMMEstimator, Poisson, PoissonEstimator
from genkern.data.objects import pack_series
from genkern.models.base import Statistics
from genkern.models.families.gaussian import Gaussian
from genkern.models.fit.em import Limits, Pace, Steps, climb, warn_unconverged
from genkern.models.fit.em_estimator import EMEstimator
from tests.test_hmm_estimator import symbols


def test_a_plateau_is_no_convergence():
    # The gains of this fit fall below tol at step 101, grow again from step 300 on, and vanish after step 1500.
    X = symbols(5)
    far = HMMEstimator(2, max_iter=4000, tol=0).fit(X)
    gains = np.diff(far.history_) / sum(map(len, X))
    assert gains[99:102].max() < 1.1e-6
    assert gains[900:1100].max() > 1e-6
    fitted = HMMEstimator(2, max_iter=4000, tol=1e-6).fit(X)
    assert fitted.converged_
    assert fitted.history_[-1] == pytest.approx(far.history_[-1], abs=0.01)


def test_own_models_are_judged_each_by_itself():
    slow, quick = symbols(5), symbols(1, count=3)
    joined = [np.concatenate(slow), *quick]
    estimator = HMMEstimator(2, max_iter=3000, tol=1e-6)
    assert estimator.fit_each(joined)[1:] == estimator.fit_each(quick)
    assert estimator.fit_each(joined)[0] == estimator.fit_each(joined[:1])[0]


def judged(gains, tol=1e-3, value=-1e3):
    """Return the first step at which a sequence of gains, of one observation each, counts as converged, or None."""
    pace = Pace(1, tol)
    assert not pace.converged(np.arange(1), np.array([np.inf]), np.array([value]), np.ones(1)).any()
    for step, gain in enumerate(gains, 1):
        if pace.converged(np.arange(1), np.array([gain]), np.array([value]), np.ones(1))[0]:
            return step
    return None


def test_the_pace_is_that_of_a_geometric_series():
    for ratio in (0.3, 0.9, 0.99):
        gains = 0.5 * ratio ** np.arange(5000)
        rest = gains[::-1].cumsum()[::-1] - gains  # what the further steps gain, summed
        small = (gains < 1e-3) & (rest < 1e-2)
        assert judged(gains) == np.flatnonzero(small)[0] + 1
    assert judged(1e-6 * 1.01 ** np.arange(500)) is None  # a take-off
    assert judged(np.full(500, 1e-6)) is None
    assert judged([1e-6]) is None  # one step says nothing of the pace
    assert judged([3.0, 0.0]) == 2  # but nothing more is to be had from a gain of nothing
    assert judged([1e-6, 1e-9, 1e-12], tol=0.0) is None


def test_two_models_do_not_disturb_each_other():
    one, two = 0.5 * 0.7 ** np.arange(60), 1e-6 * 1.1 ** np.arange(60)
    pace = Pace(2, 1e-3)
    ends = []
    for gains in np.stack([np.append(np.inf, one), np.append(np.inf, two)], axis=1):
        ends.append(pace.converged(np.arange(2), gains, np.full(2, -1e3), np.ones(2)))
    assert np.argmax(np.array(ends)[:, 0]) == judged(one)
    assert not np.array(ends)[:, 1].any()


def path(values):
    """Return steps of EM whose model i after step k is N(k, i), with the objective values[k][i]."""
    count = len(values[0])

    def value(model):
        return np.array([values[int(k)][int(i)] for k, i in zip(model.mean[:, 0], model.cov)])

    def expect(model, packed):
        return Statistics(model, value(model), packed.lengths, {})

    def following(statistics):
        return Gaussian(statistics.model.mean + 1.0, statistics.model.cov)

    first = Gaussian(np.zeros((count, 1)), np.arange(float(count)))
    return Steps(expect, following, lambda model, _: value(model), lambda model: np.zeros(model.shape)), first


@pytest.mark.parametrize("bad", [-50.0, np.nan])
def test_a_step_that_loses_is_taken_back(bad):
    steps, first = path([[-9.0, -9.0], [-5.0, -5.0], [bad, -4.0], [-1.0, -3.0]])
    limits = Limits("EM", 3, 0.0, 0)
    run = climb(steps, limits, first, pack_series(np.zeros((2, 4))), own=True)
    np.testing.assert_array_equal(run.lost, [np.inf if np.isnan(bad) else 45.0, 0.0])
    with pytest.warns(ConvergenceWarning, match="made 1 of 2 models worse"):
        warn_unconverged(run.converged, run.lost, limits, "size")
    assert [float(model.mean[0]) for model in run.models] == [1.0, 3.0]
    np.testing.assert_array_equal(run.objective, [-5.0, -3.0])
    np.testing.assert_array_equal(run.n_iter, [1, 3])
    assert not run.converged.any()
    assert (np.diff(run.history) >= 0.0).all()


@pytest.mark.parametrize("n_init", [1, 3])
@pytest.mark.parametrize("own", [False, True])
def test_a_model_that_fell_draws_one_warning(monkeypatch, n_init, own):
    def worse(statistics, emission, pseudocount):
        blurred = Gaussian._restore(statistics.model.emissions.mean, statistics.model.emissions.cov * 4.0)
        return HMM._restore(*{**statistics.model._to_fields(), "emissions": blurred}.values())

    monkeypatch.setattr("genkern.models.hmm.estimator.maximize", worse)
    X = [np.random.default_rng(i).normal(size=(30, 1)) for i in range(2)]
    estimator = HMMEstimator(2, n_init=n_init)
    with pytest.warns(ConvergenceWarning) as caught:
        estimator.fit_each(X) if own else estimator.fit(X)
    assert [("worse" in str(one.message), one.filename) for one in caught] == [(True, __file__)]
    if not own:
        assert len(estimator.history_) == estimator.n_iter_ + 1


def test_rounding_errors_are_no_loss():
    steps, first = path([[-9.0], [-5.0], [-5.0 - 1e-9], [-4.0]])
    run = climb(steps, Limits("EM", 3, 0.0, 0), first, pack_series(np.zeros((1, 4))), own=True)
    assert float(run.models[0].mean[0]) == 3.0


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("symbols", [False, True])
def test_leaves_with_missing_entries_take_the_same_loop(monkeypatch, symbols, own):
    rng, runs = np.random.default_rng(4), []
    X = [np.where(rng.random((n, 2)) < 0.2, np.nan, rng.normal(size=(n, 2))) for n in (12, 9, 20)]
    X, estimator = [*X, rng.normal(size=(7, 2))], GaussianEstimator("full")
    if symbols:
        X, estimator = ["ACNNGT", "RRYACG", "NACCY", "ACGT"], CategoricalEstimator("dna", pseudocount=0.1)
    monkeypatch.setattr(genkern.models.estimator, "climb", lambda *args: runs.append(climb(*args)) or runs[-1])
    found = estimator.fit_each(X) if own else [estimator.fit(X).model_]
    (run,) = runs
    assert run.converged.all()
    assert len(run.models) == (3 if own else 1)
    assert run.n_iter.max() > 5
    for model, part in zip(found, [[x] for x in X] if own else [X], strict=True):
        step, plain = estimator.bounded(estimator.pack(part), False), estimator.fit(X[-1:]).model_
        for _ in range(300):
            plain = step.maximize(plain.statistics(part))
        np.testing.assert_allclose(model.parameters(), plain.parameters(), rtol=1e-7, atol=1e-8)


def test_what_an_estimator_need_not_give():
    model = HMM([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], Gaussian([[0.0], [1.0]], [[1.0], [1.0]]))
    packed, keys = pack_series([np.zeros((3, 1))] * 2, "test"), np.zeros(2, np.uint64)
    assert EMEstimator._start(HMMEstimator(init=model), packed, keys, False) == model
    assert EMEstimator._start(HMMEstimator(init=model), packed, keys, True) == HMM.stack([model, model])
    with pytest.raises(ValueError, match="HMMEstimator: 'init' must be a HMM"):
        EMEstimator._start(HMMEstimator(), packed, keys, False)
    leaf = Poisson([[1.0], [2.0]])
    np.testing.assert_array_equal(PoissonEstimator().counts({}, leaf), [np.inf, np.inf])
    assert not PoissonEstimator().coincide({}, leaf).any()
