"""Estimators where their parts meet: floors, forms of covariances, first guesses and the pace of EM together."""

import numpy as np
import pytest
from sklearn.base import clone

from genkern import (
    HMM,
    LDS,
    BayesNetEstimator,
    Categorical,
    Gaussian,
    GaussianEstimator,
    HMMEstimator,
    LDSEstimator,
    LinearGaussianNetEstimator,
    Mixture,
    MixtureEstimator,
    Power,
    SwitchingLDS,
    SwitchingLDSEstimator,
    affinity,
)

RNG = np.random.default_rng(0)
LEVELS = [np.repeat([[0.0, 0.0], [9.0, -9.0]], 20, axis=0) + RNG.normal(size=(40, 2)) for _ in range(3)]


@pytest.mark.parametrize("structure", ["ergodic", "left-right"])
def test_states_without_points_still_have_mixtures(structure):
    x = np.array([[0.0], [0.0], [1.0], [1.0], [0.0], [1.0]])
    estimator = HMMEstimator(3, MixtureEstimator(2), structure=structure, random_state=0)
    for model in (estimator.fit([x]).model_, *estimator.fit_each([x[:2], x])):
        assert np.isfinite(model.log_prob([x])).all()
        assert np.isfinite(model.emissions.weights).all()


@pytest.mark.parametrize("form", ["isotropic", "diagonal", "full"])
def test_starts_keep_the_form_of_their_covariances(form):
    eye = {"isotropic": 1.0, "diagonal": np.ones(2), "full": np.eye(2)}[form]
    leaf = Gaussian([[0.0, 0.0], [8.0, -8.0]], np.stack([eye, eye]))
    chain, bag = HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], leaf), Mixture([0.5, 0.5], leaf)
    deep = HMM([1.0], [[1.0]], Mixture([[0.5, 0.5]], Gaussian(leaf.mean[None], leaf.cov[None])))
    for start, estimator, explicit in (
        (chain, HMMEstimator(init=chain), HMMEstimator(emission=GaussianEstimator(form), init=chain)),
        (bag, MixtureEstimator(2, init=bag), MixtureEstimator(2, GaussianEstimator(form), init=bag)),
        (deep, HMMEstimator(init=deep), None),
    ):
        fitted, each = estimator.fit(LEVELS).model_, estimator.fit_each(LEVELS)[0]
        assert fitted._in_a_line(0) == each._in_a_line(0) == start._in_a_line(0)  # classes and shapes
        if explicit is not None:
            assert fitted == explicit.fit(LEVELS).model_


def test_a_plateau_of_two_steps_is_no_end():
    truth = HMM(
        [0.5, 0.5],
        [[0.97, 0.03], [0.03, 0.97]],
        Categorical([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]], alphabet="abcd"),
    )
    X = truth.sample(30, length=100, rng=0)
    p = np.array([0.1, 0.4, 0.1, 0.4])
    near = np.stack([p, p + 0.1 * np.array([0.1, -0.1, 0.05, -0.05])])
    start = HMM([0.5, 0.5], [[0.6, 0.4], [0.4, 0.6]], Categorical(near, alphabet="abcd"))
    assert HMMEstimator(init=start).fit(X).history_[-1] > -4010.0  # the plateau is at -4157


LINEAR = {"linear": LDSEstimator(3, offset=False), "switching": SwitchingLDSEstimator(2, 3, offset=False)}


@pytest.mark.parametrize("name", LINEAR)
def test_floors_without_an_offset_are_shares_of_the_variance(name):
    t = np.arange(200)[:, None]
    x = np.hstack([np.sin(t / 9), np.cos(t / 9)]) + 0.2 * np.random.default_rng(0).normal(size=(200, 2)) + 1e4
    model = clone(LINEAR[name]).set_params(max_iter=30, tol=0).fit([x]).model_
    noise = model.systems.obs_cov if isinstance(model, SwitchingLDS) else model.obs_cov
    assert noise.max() < 1.0  # the mean square is 1e8


def test_rounding_is_no_middle_of_the_data():
    x = np.array([0.1 + 0.1 * k - 0.1 * k for k in range(60)])[:, None]
    x[30] = 3.0
    model = MixtureEstimator(2, random_state=0).fit([x]).model_
    assert model.components.variances.min() > 1e-8


def test_one_regime_is_one_system_at_any_length():
    system = LDS([[0.9]], [[1.0]], 0.1, 0.1, [0.0], 1.0)
    one = SwitchingLDS([1.0], [[1.0]], LDS.stack([system]))
    expected = affinity(system, system, Power(1.0), length=100)
    assert affinity(one, one, Power(1.0), length=100) == pytest.approx(float(expected), rel=1e-12)


def test_states_a_hundred_deviations_apart_keep_their_variances():
    x = np.repeat([0.0, 100.0, 200.0], 60)[:, None] + np.random.default_rng(0).normal(size=(180, 1))
    model = HMMEstimator(3, random_state=0).fit([x]).model_
    np.testing.assert_allclose(np.sort(model.emissions.mean.ravel()), [0.0, 100.0, 200.0], atol=0.5)
    np.testing.assert_allclose(np.sqrt(model.emissions.variances.ravel()), 1.0, atol=0.25)


UNSEEN = {
    "lds": LDSEstimator(1, max_iter=3, tol=0.0),
    "switching": SwitchingLDSEstimator(2, 1, max_iter=2, tol=0.0),
    "net": LinearGaussianNetEstimator({"a": [], "b": ["a"]}, max_iter=3, tol=0.0),
    "bayes net": BayesNetEstimator({"a": [], "b": ["a"]}, cardinalities=2, max_iter=3, tol=0.0),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_channels_that_were_never_seen_are_named(name):
    X = [np.random.default_rng(k).integers(0, 2, (8, 2)).astype(float) for k in range(3)]
    X[1][:, 1] = np.nan
    estimator = UNSEEN[name]
    estimator.fit(X)  # other objects tell
    with pytest.warns(UserWarning, match="nothing was observed") as found:
        each = estimator.fit_each(X)
    (said,) = [str(w.message) for w in found if "nothing was observed" in str(w.message)]
    assert said.startswith(type(estimator).__name__)
    assert "in 1 of 3 objects (object 1) of channel 1: its law is" in said
    for x in X:
        x[:, 1] = np.nan
    with pytest.warns(UserWarning, match="nothing was observed") as found:
        model = estimator.fit(X).model_
    (said,) = [str(w.message) for w in found if "nothing was observed" in str(w.message)]
    assert "in any object of channel 1: its law is" in said
    if name == "lds":  # as the warning says
        assert model.observation[1, 0] == model.offset[1] == each[1].observation[1, 0] == 0.0
        assert model.obs_cov[1] == 1e-6
