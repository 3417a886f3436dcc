"""EM in one pass over batches, against expected counts by enumeration, and statistics moved between models."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from genkern import (
    HMM,
    BayesNetEstimator,
    Categorical,
    CategoricalEstimator,
    Gaussian,
    GaussianEstimator,
    HMMEstimator,
    MarkovChainEstimator,
    Mixture,
    MixtureEstimator,
    Poisson,
    PoissonEstimator,
)
from genkern.models.fit.stepwise import moved

rng = np.random.default_rng(0)
LETTERS = "abc"
START, STEPS = np.array([0.6, 0.4]), np.array([[0.7, 0.3], [0.2, 0.8]])
PROBS = np.array([[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]])
WORDS = ["".join(rng.choice(list(LETTERS), rng.integers(2, 5))) for _ in range(12)]
BATCHES = [WORDS[:5], WORDS[5:8], WORDS[8:]]


def enumerated(words: list[str], start: Any, steps: Any, probs: Any) -> tuple[list[Any], float]:
    """Return expected counts of first states, of steps and of symbols, over all paths, and the log-likelihood."""
    counts, total = [np.zeros_like(start), np.zeros_like(steps), np.zeros_like(probs)], 0.0
    for word in words:
        codes = [LETTERS.index(letter) for letter in word]
        paths = list(product(range(2), repeat=len(codes)))
        weights = []
        for path in paths:
            weight = start[path[0]] * probs[path[0], codes[0]]
            for i, j, code in zip(path, path[1:], codes[1:]):
                weight *= steps[i, j] * probs[j, code]
            weights.append(weight)
        for path, weight in zip(paths, np.array(weights) / sum(weights)):
            counts[0][path[0]] += weight
            for i, j in pairwise(path):
                counts[1][i, j] += weight
            for state, code in zip(path, codes):
                counts[2][state, code] += weight
        total += np.log(sum(weights))
    return counts, total


@pytest.mark.parametrize("pseudocount", [0.0, 0.5])
def test_one_pass_is_the_recursion_of_mean_counts(pseudocount: float) -> None:
    parts, held, seen, history = [START, STEPS, PROBS], None, 0, []
    for k, words in enumerate(BATCHES):
        size, eta = sum(map(len, words)), (k + 1) ** -0.7
        counts, log_prob = enumerated(words, *parts)
        history.append(log_prob / size)
        means = [count / size for count in counts]
        held = means if held is None else [(1 - eta) * old + eta * new for old, new in zip(held, means)]
        seen += size
        smoothed = [seen * mean + pseudocount for mean in held]
        parts = [count / count.sum(axis=-1, keepdims=True) for count in smoothed]
    begin = HMM(START, STEPS, Categorical(PROBS, alphabet=LETTERS))
    emission = CategoricalEstimator(pseudocount=pseudocount)
    found = HMMEstimator(2, emission, init=begin, pseudocount=pseudocount).fit_stream(iter(BATCHES), one_pass=True)
    model = found.model_
    for got, expected in zip((model.start, model.transitions, model.emissions.probs), parts):
        np.testing.assert_allclose(got, expected, rtol=1e-10)
    np.testing.assert_allclose(found.history_, history, rtol=1e-10)
    assert found.n_iter_ == 3
    assert found.converged_ is False


def _gaussians(kind: str, seed: int) -> Gaussian:
    own = np.random.default_rng(seed)
    spread = {"full": np.eye(2) + 0.2, "diagonal": np.array([1.0, 2.0]), "isotropic": np.array(1.5)}[kind]
    return Gaussian(own.normal(size=(2, 2)), own.uniform(1.0, 2.0, size=(2, *np.ones(spread.ndim, int))) * spread)


SERIES = [rng.normal(size=(rng.integers(4, 9), 2)) for _ in range(6)]
COUNTS = [rng.poisson(3.0, size=(6, 1)).astype(float) for _ in range(6)]
TURNED = HMM([0.3, 0.7], [[0.4, 0.6], [0.5, 0.5]], Categorical([[0.2, 0.2, 0.6], [0.4, 0.4, 0.2]], alphabet=LETTERS))


def _chain(emissions: Any, seed: int, **ends: Any) -> HMM:
    own = np.random.default_rng(seed)
    return HMM(
        own.dirichlet([3, 3]),
        own.dirichlet([3, 3], size=2) * (1 - ends.get("stop", np.zeros(2))[:, None]),
        emissions,
        **ends,
    )


CASES: dict[str, Any] = {
    "symbols": (HMMEstimator(2), WORDS, _chain(Categorical(PROBS, alphabet=LETTERS), 0), TURNED),
    "ends": (
        HMMEstimator(2, ending="end"),
        WORDS,
        _chain(Categorical(PROBS, alphabet=LETTERS), 0, end=np.array([0.2, 0.8])),
        _chain(TURNED.emissions, 1, end=np.array([0.5, 0.5])),
    ),
    "stops": (
        HMMEstimator(2, ending="stop"),
        WORDS,
        _chain(Categorical(PROBS, alphabet=LETTERS), 0, stop=np.array([0.2, 0.3])),
        _chain(TURNED.emissions, 1, stop=np.array([0.1, 0.5])),
    ),
    "counts": (
        HMMEstimator(2, PoissonEstimator()),
        COUNTS,
        _chain(Poisson([[2.0], [5.0]]), 0),
        _chain(Poisson([[1.0], [3.0]]), 1),
    ),
    "mixtures": (
        HMMEstimator(2, MixtureEstimator(2, GaussianEstimator("full"))),
        SERIES,
        *(
            _chain(
                Mixture(
                    np.random.default_rng(s).dirichlet([3, 3], size=2),
                    Gaussian(
                        np.random.default_rng(s).normal(size=(2, 2, 2)), np.tile(np.eye(2) * (1 + s), (2, 2, 1, 1))
                    ),
                ),
                s,
            )
            for s in (0, 1)
        ),
    ),
    "chains": (
        MarkovChainEstimator(1, alphabet=LETTERS),
        WORDS,
        MarkovChainEstimator(1, alphabet=LETTERS, pseudocount=1.0).fit(WORDS[:4]).model_,
        MarkovChainEstimator(1, alphabet=LETTERS, pseudocount=1.0).fit(WORDS[4:]).model_,
    ),
} | {
    kind: (
        HMMEstimator(2, GaussianEstimator(kind)),
        SERIES,
        _chain(_gaussians(kind, 0), 0),
        _chain(_gaussians(kind, 1), 1),
    )
    for kind in ("full", "diagonal", "isotropic")
}


def _numbers(model: Any) -> list[Any]:
    values = [getattr(model, name) for name in model._fields]
    return [n for value in values for n in (_numbers(value) if hasattr(value, "_fields") else [value])]


@pytest.mark.parametrize("name", CASES)
def test_moved_statistics_have_the_same_maximum(name: str) -> None:
    """Counts and moments are what the M-step sees: the model under which they were taken must not matter to it."""
    estimator, X, first, second = CASES[name]
    ready, packed = estimator._ready(X, False)
    steps = ready._problem(packed, False).steps(packed, False)
    taken = steps.expect(first, packed).total()
    expected, found = steps.maximize(taken), steps.maximize(moved(taken, second))
    assert type(found) is type(expected)
    for got, wanted in zip(_numbers(found), _numbers(expected), strict=True):
        if isinstance(wanted, np.ndarray):
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12)
    changed = steps.maximize(steps.expect(second, packed).total())
    assert name == "chains" or any(  # those have nothing hidden
        isinstance(a, np.ndarray) and not np.allclose(a, b) for a, b in zip(_numbers(changed), _numbers(expected))
    )


def test_one_pass_comes_near_the_model_of_all_steps() -> None:
    own = np.random.default_rng(1)
    truth = HMM([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], Categorical([[0.8, 0.1, 0.1], [0.1, 0.2, 0.7]], alphabet=LETTERS))
    words = truth.sample(2000, length=30, rng=own)
    batches = [words[i : i + 100] for i in range(0, 2000, 100)]
    whole = HMMEstimator(2, init=truth, tol=1e-6).fit(words).model_.log_prob(words).sum()
    estimator = HMMEstimator(2, random_state=0, max_iter=300)
    begun = HMMEstimator(2, random_state=0, max_iter=300).fit(batches[0]).model_
    once = estimator.fit_stream(iter(batches), one_pass=True)
    lost = whole - once.model_.log_prob(words).sum()
    assert 0 <= lost < 10.0 < whole - begun.log_prob(words).sum()  # nats, of 60,000 observations and 7 parameters


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_what_is_fixed_stays() -> None:
    begin = HMM(START, STEPS, Categorical(PROBS, alphabet=LETTERS))
    found = HMMEstimator(init=begin, fixed=("emissions",)).fit_stream(BATCHES, one_pass=True).model_
    np.testing.assert_array_equal(found.emissions.probs, PROBS)
    assert not np.allclose(found.transitions, STEPS)


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"batches come one after the other.*got 2"):
        HMMEstimator(2).fit_stream(BATCHES, n_jobs=2, one_pass=True)
    with pytest.raises(ValueError, match=r"'one_pass'.*True or False"):
        HMMEstimator(2).fit_stream(BATCHES, one_pass="yes")
    with pytest.raises(ValueError, match="there is no batch"):
        HMMEstimator(2).fit_stream(iter([]), one_pass=True)
    rows = rng.integers(0, 2, size=(40, 2)).astype(float)
    rows[::3, 1] = np.nan
    with pytest.raises(TypeError, match=r"cannot be fitted in one pass.*tables"):
        BayesNetEstimator({"a": [], "b": ["a"]}, cardinalities={"a": 2, "b": 2}).fit_stream(
            [rows[:20], rows[20:]], one_pass=True
        )
