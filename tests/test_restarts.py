"""Restarts of EM run together: each is what it would be by itself, in less than its time."""

import time

import numpy as np
import pytest
from sklearn.base import clone

from genkern import LDS, FactorialHMMEstimator, HMMEstimator, LDSEstimator, MixtureEstimator, SwitchingLDSEstimator
from genkern.models.fit import restarts
from genkern.models.lds import estimator as lds_estimator


def data(kind, n=6):
    rng = np.random.default_rng(7)
    if kind == "symbols":
        return ["".join(rng.choice(list("ACGT"), int(length))) for length in rng.integers(5, 30, n)]
    return [rng.normal(size=(int(length), 2)) + 3.0 * (i % 2) for i, length in enumerate(rng.integers(8, 30, n))]


ESTIMATORS = {
    "hmm of symbols": (HMMEstimator(3, n_init=5, ending="stop"), "symbols"),
    "hmm of vectors": (HMMEstimator(2, init="random", n_init=5), "vectors"),
    "hmm of mixtures": (HMMEstimator(2, MixtureEstimator(2), init="random", n_init=3), "vectors"),
    "mixture": (MixtureEstimator(2, n_init=5), "vectors"),
    "mixture of symbols": (MixtureEstimator(2, n_init=5), "symbols"),
    "linear system": (LDSEstimator(2, n_init=5, max_iter=60, pseudocount=0.5), "vectors"),
    "switching system": (SwitchingLDSEstimator(2, 2, n_init=5, max_iter=60, noise_pseudocount=0.5), "vectors"),
    "factorial": (FactorialHMMEstimator((2, 2), n_init=5, max_iter=60), "vectors"),
    "factorial by mean field": (FactorialHMMEstimator(e_step="variational", n_init=5, max_iter=60), "vectors"),
}


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_restarts_together_are_those_one_by_one(name, monkeypatch):
    estimator, kind = ESTIMATORS[name]
    X = data(kind)
    steps = clone(estimator).set_params(max_iter=25, tol=0)  # a rounding error must not decide when to stop
    together, shared = estimator.fit_each(X), clone(steps).fit(X)
    for batch in (1, 2000):  # one at a time, and two or so
        monkeypatch.setattr(restarts, "BATCH", batch)
        assert estimator.fit_each(X) == together
        alone = clone(steps).fit(X)
        np.testing.assert_allclose(shared.history_, alone.history_, rtol=1e-12)
        np.testing.assert_allclose(
            shared.model_.parameters("raw"), alone.model_.parameters("raw"), rtol=1e-9, atol=1e-12
        )


def test_the_history_is_that_of_the_run_that_was_kept():
    X = data("symbols")
    estimator = HMMEstimator(3, n_init=6, tol=1e-4).fit(X)
    history = np.array(estimator.history_)
    assert (np.diff(history) > -1e-9).all()
    log_prior = 0.01 * sum(
        np.log(p).sum()
        for p in (estimator.model_.start, estimator.model_.transitions, estimator.model_.emissions.probs)
    )
    assert history[-1] == pytest.approx(estimator.model_.log_prob(X).sum() + log_prior, rel=1e-10)


@pytest.mark.parametrize("how", ["fit", "fit_each"])
@pytest.mark.parametrize(
    "name", ["hmm of symbols", "mixture", "linear system", "switching system", "factorial", "factorial by mean field"]
)
def test_twenty_restarts_of_little_data_cost_far_less_than_twenty_fits(name, how):
    estimator, kind = ESTIMATORS[name]
    X = data(kind)

    def seconds(n_init):
        begin = time.process_time()
        getattr(clone(estimator).set_params(n_init=n_init, max_iter=40, tol=0), how)(X)
        return time.process_time() - begin

    seconds(2)  # compiles
    assert min(seconds(20) for _ in range(3)) < 10.0 * min(seconds(1) for _ in range(3))


def test_errors_in_a_later_restart_name_the_object_as_the_caller_counts(monkeypatch):
    def unstable(guess, some):
        wrong = (some.numbers > 0) & (np.arange(len(some.numbers)) % 4 == 2)
        A = np.where(wrong[:, None, None], 1e9 * np.eye(2), guess.transition)
        return LDS._restore(A, *(getattr(guess, name) for name in LDS._fields[1:]))

    monkeypatch.setattr(lds_estimator, "perturbed", unstable)
    with pytest.raises(ValueError, match=r"object 2[,:]"):
        LDSEstimator(2, n_init=3).fit_each(data("vectors", 4))
