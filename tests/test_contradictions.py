"""Parameters of estimators that contradict one another: each is honoured, or refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import genkern as g
from tests.test_sample_weight import BAGS, CHAIN, LDS, MIXTURE, SERIES, SWITCHING, WORDS

STEPS: dict[str, Any] = {"max_iter": 3, "tol": 0.0}
MARKOV = g.MarkovChain([0.2, 0.3, 0.5], [[0.2, 0.3, 0.5], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]], "abc")
ENDING = g.HMM(CHAIN.start, CHAIN.transitions, CHAIN.emissions, end=[0.3, 0.7])
RIGHT = g.HMM([1.0, 0.0], [[0.8, 0.2], [0.0, 1.0]], MIXTURE.components)
UNSTABLE = g.LDS([[1.1, 0.1], [-0.1, 1.2]], LDS.observation, np.eye(2), [1.0, 2.0], [0.0, 0.0], np.eye(2))
BACKWARDS = [np.append(1, np.zeros(len(x) - 1, int)) for x in SERIES]
TIED = g.GaussianEstimator(tied=True)

REFUSED: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "stationary start": (
        g.MarkovChainEstimator(1, stationary=True, fixed=("start",)),
        WORDS,
        {},
        r"MarkovChainEstimator: stationary=True.*fixed=\('start',\)",
    ),
    "order of init": (g.MarkovChainEstimator(2, init=MARKOV), WORDS, {}, "'init' must be None, or a chain of the same"),
    "end without end": (g.HMMEstimator(2, fixed=("end",), **STEPS), WORDS, {}, "'fixed' names 'end'"),
    "end of stop": (g.HMMEstimator(2, fixed=("end",), ending="stop", **STEPS), WORDS, {}, "'fixed' names 'end'"),
    "end of init": (g.HMMEstimator(init=CHAIN, fixed=("end",), **STEPS), SERIES, {}, "'fixed' names 'end'"),
    "tied states": (
        g.HMMEstimator(init=CHAIN, emission=TIED, fixed=("emissions",), **STEPS),
        SERIES,
        {},
        "tied=True asks for one covariance, and 'fixed' keeps those of 'init'",
    ),
    "tied components": (
        g.MixtureEstimator(2, TIED, init=MIXTURE, fixed=("components",), **STEPS),
        BAGS,
        {},
        "tied=True asks for one covariance, and 'fixed' keeps those of 'init'",
    ),
    "states by criterion": (
        g.HMMEstimator("bic", init=CHAIN, **STEPS),
        SERIES,
        {},
        "n_states='bic' chooses.*'init' has 2",
    ),
    "components by criterion": (g.MixtureEstimator("bic", init=MIXTURE), BAGS, {}, "'init'.*n_components=bic"),
    "states of init": (g.HMMEstimator(3, init=CHAIN, **STEPS), SERIES, {}, "'init' has 2 states and n_states is 3"),
    "components of init": (g.MixtureEstimator(3, init=MIXTURE), BAGS, {}, "'init'.*n_components=3"),
    "known states by criterion": (
        g.HMMEstimator("bic", **STEPS),
        SERIES,
        {"states": BACKWARDS},
        "'n_states' parameter of HMMEstimator with known states",
    ),
    "known states against the structure": (
        g.HMMEstimator(2, structure="left-right", **STEPS),
        SERIES,
        {"states": BACKWARDS},
        "'states', object 0 has .* at position 0: the structure",
    ),
    "known states against init": (
        g.HMMEstimator(init=RIGHT, **STEPS),
        SERIES,
        {"states": BACKWARDS},
        "'states', object 0 has .* zero in 'init'",
    ),
    "structure of init": (
        g.HMMEstimator(init=CHAIN, structure="left-right", **STEPS),
        SERIES,
        {},
        "'init' goes from state 1 to 0, which structure='left-right' forbids",
    ),
    "emissions of init": (
        g.HMMEstimator(init=CHAIN, emission=g.GaussianEstimator("full"), **STEPS),
        SERIES,
        {},
        "'init' has emissions.*'emission' asks for",
    ),
    "form of components": (
        g.MixtureEstimator(2, g.GaussianEstimator("full"), init=MIXTURE),
        BAGS,
        {},
        "'init' has components.*'component' asks for",
    ),
    "family of components": (
        g.MixtureEstimator(2, "poisson", init=MIXTURE),
        [np.floor(np.abs(bag)) for bag in BAGS],
        {},
        "'init' has components.*'component' asks for",
    ),
    "emissions with a start of their own": (
        g.HMMEstimator(2, emission=g.MixtureEstimator(2, init=MIXTURE), **STEPS),
        SERIES,
        {},
        "MixtureEstimator: 'init' as a mixture is for fits of its own",
    ),
    "unstable init": (
        g.LDSEstimator(2, init=UNSTABLE, stable=True, fixed=("transition",), **STEPS),
        SERIES,
        {},
        "stable=True needs an 'init'",
    ),
    "size of a system": (g.LDSEstimator(3, init=LDS, **STEPS), SERIES, {}, "'init' must be one system with n_states=3"),
    "number of regimes": (g.SwitchingLDSEstimator(3, 2, init=SWITCHING, **STEPS), SERIES, {}, "'init'.*n_regimes=3"),
    "one model for each": (g.HMMEstimator(init=[CHAIN] * 6, **STEPS), SERIES, {}, "one for each is for fit_each"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_contradictions_are_refused_by_name(name):
    estimator, X, options, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, **options)


def test_what_only_looks_like_one_is_honoured():
    found = g.MarkovChainEstimator(1, stationary=True, init=MARKOV, fixed=("transitions",)).fit(WORDS).model_
    np.testing.assert_array_equal(found.transitions, MARKOV.transitions)
    np.testing.assert_allclose(found.start @ MARKOV.transitions, found.start, rtol=1e-12)
    found = g.HMMEstimator(init=ENDING, fixed=("end",), **STEPS).fit(SERIES).model_
    np.testing.assert_array_equal(found.end, ENDING.end)
    tied = g.HMMEstimator(init=CHAIN, emission=TIED, **STEPS).fit(SERIES).model_.emissions.cov
    np.testing.assert_array_equal(tied[0], tied[1])
    same = g.HMM(CHAIN.start, CHAIN.transitions, g.Gaussian(CHAIN.emissions.mean, np.ones((2, 2))))
    kept = g.HMMEstimator(init=same, emission=TIED, fixed=("emissions",), **STEPS).fit(SERIES).model_
    np.testing.assert_array_equal(kept.emissions.cov, same.emissions.cov)
