"""What every estimator that iterates offers: fixed parameters, models to start from, callbacks and reports."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import genkern as g
from genkern.data.alphabets import as_alphabet
from genkern.models.fit.em_estimator import EMEstimator
from tests.test_sample_weight import BAGS, CHAIN, CODES, GAPS, HIDDEN, HOLES, LDS, MIXTURE, SERIES, SWITCHING, arrays

ROW = {"max_iter": 8, "tol": 0.0}
FACTORIAL = g.FactorialHMM(
    [[0.5, 0.5]] * 2, [[[0.9, 0.1], [0.2, 0.8]]] * 2, [[[0.0, 1.0], [1.0, 0.0]], [[2.0, -1.0], [-1.0, 3.0]]], [3.0, 4.0]
)
NET = {"h": [], "a": ["h"], "b": ["h"]}
LINEAR = (g.LinearGaussianNetEstimator(NET, hidden={"h": 1}, max_iter=1, tol=0.0), BAGS)  # fitted when used
BAYES = (g.BayesNetEstimator(HIDDEN, hidden={"h": 2}, max_iter=1, tol=0.0), CODES)
ABC = as_alphabet("abc", "?")
MARKOV = (g.MarkovChainEstimator(1, alphabet=ABC), ["abcabbcaa"])
PERIODIC = g.PeriodicChain(
    [0.3, 0.7], [[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]], np.random.default_rng(3).dirichlet([2.0] * 3, (2, 3)), ABC
)
POSITIONAL = (g.PositionalChainEstimator(1, 14, alphabet=ABC), ["abcabbcaabcaba"])

PROFILE = g.ProfileHMM.from_alignment(["ab-c", "abbc", "a-bc"], ABC, columns=0.3).with_flanks("local", flank=4.0)

CASES: dict[str, tuple[Any, Any, Any, list[Any]]] = {
    "hmm": (g.HMMEstimator(**ROW), CHAIN, SERIES, ["start", "transitions", "emissions"]),
    "mixture": (g.MixtureEstimator(2, **ROW), MIXTURE, HOLES, ["weights", "components"]),
    "lds": (g.LDSEstimator(2, **ROW), LDS, SERIES, list(g.LDS._fields)),
    "switching": (
        g.SwitchingLDSEstimator(2, 2, **ROW),
        SWITCHING,
        SERIES,
        ["start", "transitions", "systems", "transition", "observation", "offset", "initial_mean", "obs_cov"],
    ),
    "factorial": (g.FactorialHMMEstimator((2, 2), **ROW), FACTORIAL, SERIES, ["starts", "transitions", "means", "cov"]),
    "variational": (
        g.FactorialHMMEstimator((2, 2), e_step="variational", **ROW),
        FACTORIAL,
        SERIES,
        ["means", "cov"],
    ),
    "bayes net": (g.BayesNetEstimator(HIDDEN, hidden={"h": 2}, **ROW), BAYES, CODES, ["h", "a"]),
    "linear": (g.LinearGaussianNetEstimator(NET, hidden={"h": 1}, **ROW), LINEAR, BAGS, ["h", "a"]),
    "chain": (g.MarkovChainEstimator(1, missing="?", backoff=0.5, **ROW), MARKOV, GAPS, ["start", "transitions"]),
    "periodic": (
        g.PeriodicChainEstimator(1, 2, missing="?", **ROW),
        PERIODIC,
        GAPS,
        ["phases", "start", "transitions"],
    ),
    "positional": (g.PositionalChainEstimator(1, 14, missing="?", **ROW), POSITIONAL, GAPS, ["start", "transitions"]),
    "profile": (
        g.ProfileHMMEstimator(missing="?", **ROW),
        PROFILE,
        GAPS,
        ["match", "insert", "transitions", "flanks"],
    ),
}


@cache
def case(name: str) -> tuple[Any, Any, Any, list[Any]]:
    """Return an estimator, a model to start from, objects and the names of parameters."""
    estimator, start, X, names = CASES[name]
    if isinstance(start, tuple):
        fitted, objects = start
        start = fitted.fit(objects).model_
    return estimator, start, X, names


def block(model: Any, name: str) -> Any:
    """Return what a name in ``fixed`` stands for."""
    if name in model._fields:
        return getattr(model, name)
    if isinstance(model, g.SwitchingLDS):
        return getattr(model.systems, name)
    if isinstance(model, g.BayesNet):
        return model.tables[name]
    part = model.parts()[list(model.graph.names).index(name)]
    return (part.coefficients, part.noise)


def same(a: Any, b: Any) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(arrays(a), arrays(b), strict=True))


def test_all_estimators_by_em_are_in_the_table():
    every = {
        name for name in dir(g) if isinstance(getattr(g, name), type) and issubclass(getattr(g, name), EMEstimator)
    }
    assert every == {type(estimator).__name__ for estimator, *_ in CASES.values()}


@pytest.mark.parametrize("name", CASES)
def test_fixed_parameters_stay_and_the_objective_never_falls(name):
    estimator, start, X, names = case(name)
    for one in names:
        fitted = clone(estimator).set_params(init=start, fixed=(one,)).fit(X)
        assert same(block(fitted.model_, one), block(start, one)), one
        assert fitted.n_iter_ == 8, one  # no step was taken back
        history = np.array(fitted.history_)
        assert (np.diff(history) >= -1e-9 * np.abs(history[1:])).all(), one
        assert history[-1] > history[0] + 1e-6, one
        moved = [other for other in names if not same(block(fitted.model_, other), block(start, other))]
        assert moved, one
    everything = ("systems", "start", "transitions") if name == "switching" else tuple(names)
    if name not in ("variational", "bayes net", "linear"):
        still = clone(estimator).set_params(init=start, fixed=everything).fit(X)
        assert same(still.model_, start) or name == "hmm"
    with pytest.raises(ValueError, match=rf"'fixed' names 'nothing'; what can be kept is .*'{names[0]}'"):
        clone(estimator).set_params(fixed=("nothing",)).fit(X)
    with pytest.raises(TypeError, match="'fixed' must be a tuple of names"):
        clone(estimator).set_params(fixed=names[0]).fit(X)


@pytest.mark.parametrize("name", CASES)
def test_without_a_model_the_first_guess_is_kept(name):
    estimator, _, X, names = case(name)
    first, last = (clone(estimator).set_params(fixed=(names[0],), max_iter=steps).fit(X).model_ for steps in (0, 8))
    for a, b in zip(arrays(block(first, names[0])), arrays(block(last, names[0])), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_each_object_has_a_model_to_start_from(name):
    estimator, start, X, _ = case(name)
    X = X[:3]
    others = [clone(estimator).set_params(init=start, max_iter=k).fit(X).model_ for k in (0, 1, 2)]
    stack = type(start).stack(others)
    for init in (others, stack):
        found = clone(estimator).set_params(init=init).fit_each(X)
        for i, (model, x) in enumerate(zip(found, X, strict=True)):
            alone = clone(estimator).set_params(init=others[i]).fit_each([x])[0]
            for a, b in zip(arrays(model), arrays(alone), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)
    with pytest.raises(ValueError, match=r"'init' must be one model \(one for each is for fit_each\). Got a stack of"):
        clone(estimator).set_params(init=stack).fit(X)
    with pytest.raises(ValueError, match=r"'init' must be one model, or one for each of 2 objects. Got a stack of"):
        clone(estimator).set_params(init=stack).fit_each(X[:2])


@pytest.mark.parametrize("name", CASES)
def test_a_callback_hears_of_every_step_and_can_stop(name, capsys):
    estimator, start, X, _ = case(name)
    heard: list[Any] = []

    def listen(step: int, model: Any, objective: float) -> bool:
        heard.append((step, model, objective))
        return step == 3

    fitted = clone(estimator).set_params(init=start, callback=listen, tol=1e-9, verbose=2).fit(X)
    assert [step for step, _, _ in heard] == [1, 2, 3]
    assert fitted.n_iter_ == 3
    np.testing.assert_allclose([value for _, _, value in heard], fitted.history_[1:], rtol=1e-12)
    for a, b in zip(arrays(heard[-1][1]), arrays(fitted.model_), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    report = capsys.readouterr().err.splitlines()
    who = type(estimator).__name__
    assert sum(line.startswith(f"{who}: step") for line in report) == 4  # that of the first guess too
    assert f"{who}: run 1 of 1: objective" in report[-2]
    assert f"{who}: kept: objective" in report[-1]
    heard.clear()
    models = clone(estimator).set_params(init=start, callback=listen, tol=1e-9).fit_each(X)
    assert heard[-1][1].shape == heard[-1][2].shape
    assert len(models) == len(X)
    with pytest.raises(TypeError, match="'callback' must be a function"):
        clone(estimator).set_params(callback=3).fit(X)


def test_a_method_as_callback_is_not_copied():
    class Log:
        def __init__(self) -> None:
            self.steps: list[int] = []

        def add(self, step: int, model: Any, objective: float) -> None:
            self.steps.append(step)

    for name in ("hmm", "mixture", "bayes net"):
        estimator, _, X, _ = case(name)
        log = Log()
        fitted = clone(estimator)
        fitted.callback = log.add
        fitted.fit(X)
        assert log.steps == list(range(1, 9)), name


def test_weights_are_kept_by_mixtures_inside_hmms():
    X = SERIES
    first = g.HMMEstimator(2, g.MixtureEstimator(2), max_iter=0).fit(X).model_
    kept = g.HMMEstimator(2, g.MixtureEstimator(2, fixed=("weights",)), max_iter=5, tol=0.0).fit(X).model_
    np.testing.assert_array_equal(kept.emissions.weights, first.emissions.weights)
    assert not np.allclose(kept.emissions.components.mean, first.emissions.components.mean)


def test_noise_is_that_about_the_fixed_dynamics():
    """Expected squares of the noises under the kept parameters, by Fisher's identity: n Q + 2 Q (d/dQ) Q."""
    statistics = LDS.statistics(SERIES).total()
    steps, looks = statistics["counts"][0, 1:]
    kept = g.LDSEstimator(2, fixed=("transition", "observation", "offset"), relative_floor=0.0).maximize(statistics)
    for name, count in (("state_cov", steps), ("obs_cov", looks)):
        old = np.asarray(getattr(LDS, name))
        old = np.diag(old) if old.ndim == 1 else old
        expected = old + 2.0 * old @ statistics[name][0] @ old / count
        found = getattr(kept, name)
        np.testing.assert_allclose(found, expected if found.ndim == 2 else np.diag(expected), rtol=1e-10)
