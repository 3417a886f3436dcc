"""Models fitted to objects that are read in batches."""

from __future__ import annotations

import numpy as np
import pytest
from joblib import parallel_config

from genkern import (
    HMM,
    Categorical,
    CategoricalEstimator,
    Gaussian,
    GaussianEstimator,
    HMMEstimator,
    LDSEstimator,
    MarkovChainEstimator,
    MixtureEstimator,
)

rng = np.random.default_rng(0)
WORDS = ["".join(rng.choice(list("abc"), rng.integers(5, 20))) for _ in range(41)]
SERIES = [rng.normal(size=(rng.integers(5, 20), 2)) + 3 * rng.integers(0, 2) for _ in range(41)]
CHAIN = HMM([0.6, 0.4], [[0.7, 0.3], [0.2, 0.8]], Categorical([[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]], alphabet="abc"))
STATES = HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], Gaussian([[0.0, 0.0], [3.0, 3.0]], np.ones((2, 2))))
CASES = {
    "symbols": (HMMEstimator(init=CHAIN, max_iter=30, tol=1e-4), WORDS),
    "series": (HMMEstimator(init=STATES, max_iter=20, tol=1e-4), SERIES),
    "fixed": (HMMEstimator(init=CHAIN, max_iter=20, tol=0.0, fixed=("emissions",)), WORDS),
}


def batches(X: list, size: int) -> list:
    return [X[i : i + size] for i in range(0, len(X), size)]


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("size", [7, 40, 100])
def test_the_model_is_that_of_fit(name: str, size: int) -> None:
    estimator, X = CASES[name]
    whole = estimator.fit(X)
    model, history = whole.model_, whole.history_
    found = estimator.fit_stream(batches(X, size))
    np.testing.assert_allclose(found.history_, history, rtol=1e-10)
    for name in ("start", "transitions"):
        np.testing.assert_allclose(getattr(found.model_, name), getattr(model, name), atol=1e-9)
    np.testing.assert_allclose(found.model_.log_prob(X), model.log_prob(X), rtol=1e-9)


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_it_starts_from_the_model_of_the_first_batch() -> None:
    parts = batches(WORDS, 15)
    first = HMMEstimator(2, max_iter=10, random_state=3).fit(parts[0]).model_
    expected = HMMEstimator(init=first, max_iter=10).fit(WORDS)
    found = HMMEstimator(2, max_iter=10, random_state=3).fit_stream(lambda: iter(parts))
    np.testing.assert_allclose(found.history_, expected.history_, rtol=1e-10)
    assert found.model_.log_prob(WORDS).sum() > first.log_prob(WORDS).sum()


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("estimator", [MixtureEstimator(2, GaussianEstimator(), max_iter=5, random_state=0)])
def test_mixtures(estimator: MixtureEstimator) -> None:
    found = estimator.fit_stream(batches(SERIES, 11)).model_
    assert np.isfinite(found.log_prob(SERIES)).all()


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_workers_change_no_bit() -> None:
    estimator = HMMEstimator(init=CHAIN, max_iter=5, tol=0.0)
    alone = estimator.fit_stream(batches(WORDS, 7)).model_
    assert estimator.fit_stream(batches(WORDS, 7), n_jobs=2).model_ == alone
    with parallel_config("loky", n_jobs=2):
        assert estimator.fit_stream(batches(WORDS, 7)).model_ == alone


def test_refusals() -> None:
    with pytest.raises(TypeError, match=r"an iterator can be read only once.*lambda: io\.stream"):
        HMMEstimator(2).fit_stream(iter(batches(WORDS, 7)))
    with pytest.raises(ValueError, match="there is no batch"):
        HMMEstimator(2).fit_stream([])
    with pytest.raises(ValueError, match=r"In batch 1, counted from 0: .*object 2"):
        HMMEstimator(2, CategoricalEstimator(unknown="error"), max_iter=1, tol=0.0).fit_stream(
            [["abab", "ba"], ["ab", "aa", "axb"]]
        )
    with pytest.raises(TypeError, match="cannot be fitted in batches; use fit"):
        LDSEstimator(1, max_iter=2).fit_stream([SERIES[:5], SERIES[5:]])


def test_chains_are_counted() -> None:
    whole = MarkovChainEstimator(1, alphabet="abc").fit(WORDS).model_
    found = MarkovChainEstimator(1, alphabet="abc").fit_stream(batches(WORDS, 9)).model_
    np.testing.assert_allclose(found.transitions, whole.transitions, atol=1e-9)
