"""Fits of series and networks do not depend on units and zero of the data, and their objectives never fall."""

from fractions import Fraction

import numpy as np
import pytest

from genkern import (
    LDS,
    FactorialHMMEstimator,
    LDSEstimator,
    LinearGaussianNetEstimator,
    SwitchingLDSEstimator,
)
from genkern.data.objects import pack_series
from tests.oracles_lds import dense, drop, random_lds

FORMS = ("diagonal", "isotropic", "full")
NET = {"z": [], "a": ["z"], "b": ["a", "z"]}
ESTIMATORS = {
    "LDS": lambda form: LDSEstimator(2, form, max_iter=15, tol=0),
    "stable LDS": lambda form: LDSEstimator(2, form, max_iter=15, tol=0, stable=True, pseudocount=2.0),
    "switching": lambda form: SwitchingLDSEstimator(2, 1, form, n_init=2, max_iter=10, tol=0),
    "factorial": lambda form: FactorialHMMEstimator((2, 2), covariance=form, n_init=1, max_iter=15, tol=0),
    "mean field": lambda form: FactorialHMMEstimator(
        (2, 2), e_step="variational", covariance=form, n_init=1, max_iter=15, tol=0
    ),
    "net": lambda form: LinearGaussianNetEstimator(
        NET,
        hidden={"z": 1},
        covariance="full" if form == "isotropic" else form,
        max_iter=15,
        tol=0,
    ),
}


def data():
    rng = np.random.default_rng(3)
    X = [x[: int(rng.integers(8, 25))] for x in random_lds(rng, 2, 2).sample(5, length=25, rng=rng)]
    X[1] = drop(rng, X[1], 0.2)
    return X


def level(name, model):
    """Return the law of what is seen: means and covariances of observations, in all regimes or at all times."""
    if name == "net":
        law = model.to_gaussian()
        return law.mean, law.cov
    if name in ("factorial", "mean field"):
        means = model.means[0][:, None] + model.means[1][None]
        return means.reshape(-1, means.shape[-1]), model.variances if model.cov.ndim < 2 else model.cov
    systems = model.systems if name == "switching" else LDS.stack([model])
    law = [system.to_gaussian(4) for system in systems.unstack()]
    return np.array([one.mean.reshape(4, -1) for one in law]), np.array([one.cov for one in law])


# --- units


def test_units_are_exact():
    from genkern.models.fit.floors import channel_scales, channel_units

    X = [[[0.1, 1e9 + 1.0], [0.1, np.nan]], [[0.1, 1e9 + 4.0], [np.nan, 1e9 + 2.0]]]
    mean, unit = channel_units(pack_series(X), own=False)
    values = [Fraction(10**9 + k) for k in (1, 4, 2)]
    centre = sum(values) / 3
    variance = sum((value - centre) ** 2 for value in values) / 3
    np.testing.assert_allclose(mean, [0.1, float(centre)], rtol=1e-15)
    np.testing.assert_allclose(unit**2, [0.01, float(variance)], rtol=1e-12)  # no variance: the magnitude
    own = channel_scales(pack_series(X), own=True)
    np.testing.assert_allclose(own, [[0.01, (1e9 + 1.0) ** 2], [0.01, 1.0]], rtol=1e-12)
    np.testing.assert_array_equal(channel_scales(pack_series([[0.0, 0.0], [np.nan]]), own=True), [[1.0], [1.0]])


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_units_neither_overflow_nor_vanish(scale):
    from genkern.data.objects import Packed
    from genkern.models.fit.floors import channel_scales, channel_units

    packed = Packed(scale * np.array([[1.0], [2.0], [6.0]]), np.array([0, 3]))
    mean, unit = channel_units(packed, own=False)
    np.testing.assert_allclose([mean[0] / scale, unit[0] / scale], [3.0, np.sqrt(14.0 / 3.0)], rtol=1e-14)
    assert 0.0 < channel_scales(packed, own=False)[0] < np.inf


# --- other units of the data give the same model in these


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(("scale", "shift"), [(1e-9, 0.0), (1e9, 0.0), (1.0, 1e6), (3e-5, -7.0), (1e-9, 1e-4)])
def test_fits_are_those_of_other_units(name, form, scale, shift):
    X = data()
    factor = scale * np.array([1.0, 1.0 if form == "isotropic" else 40.0])
    one, other = ESTIMATORS[name](form).fit(X), ESTIMATORS[name](form).fit([factor * x + shift for x in X])
    (mean, cov), (moved, spread) = level(name, one.model_), level(name, other.model_)
    rounding = 1e-7 + 1e-9 * abs(shift) / scale
    np.testing.assert_allclose(moved, factor * mean + shift, rtol=1e-9, atol=rounding * factor.max())
    big = np.tile(factor, cov.shape[-1] // 2)
    square = big if name in ("factorial", "mean field") and form != "full" else None
    expected = cov * (square**2 if square is not None else np.outer(big, big))
    np.testing.assert_allclose(spread, expected, rtol=1e-5, atol=rounding * np.abs(expected).max())
    seen = sum((~np.isnan(x)).sum(axis=0) for x in X)
    change = (seen * np.log(factor)).sum()
    prior = 2.0 * np.log(factor).sum() if name == "stable LDS" else 0.0  # of the pseudo-observations of R
    np.testing.assert_allclose(np.array(other.history_) + change + prior, one.history_, atol=1e-4)


def test_own_models_have_their_own_units():
    X = data()
    for estimator in (LDSEstimator(1, max_iter=5, tol=0, min_covar=1e-3, pseudocount=1.0, obs_variance=0.5),):
        models = estimator.fit_each([X[0], 1e6 * X[1] + 1e9, X[2]])
        assert models[0] == estimator.fit_each([X[0]])[0]
        assert models[1] == estimator.fit_each([1e6 * X[1] + 1e9])[0]
        assert models[2] == estimator.fit_each(X[2:3])[0]


@pytest.mark.parametrize(
    "family",
    [
        lambda floor: LDSEstimator(2, max_iter=30, tol=0, min_covar=floor),
        lambda floor: SwitchingLDSEstimator(2, 1, max_iter=10, tol=0, min_covar=floor),
        lambda floor: LinearGaussianNetEstimator(NET, hidden={"z": 1}, max_iter=30, tol=0, min_covar=floor),
    ],
    ids=["LDS", "switching", "net"],
)
def test_an_absolute_floor_is_of_the_data_not_of_states(family):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(40, 2)).cumsum(axis=0) for _ in range(3)]
    one = family(1e-4).fit(X).history_
    for scale in (1e-3, 1e3):
        other = family(1e-4 * scale**2).fit([scale * x for x in X]).history_
        np.testing.assert_allclose(np.array(other) + 240 * np.log(scale), one, rtol=1e-7)


def test_an_absolute_floor_stays_possible():
    X = [np.sin(0.3 * np.arange(50)) * 10.0]
    for scale in (1.0, 1e-3):
        model = LDSEstimator(2, max_iter=100, tol=0, min_covar=0.25).fit([scale * x for x in X]).model_
        assert model.obs_cov[0] == pytest.approx(0.25, rel=1e-9)
    free = LDSEstimator(2, max_iter=100, tol=0).fit(X).model_
    assert 1e-6 * np.var(X[0]) * (1 - 1e-9) <= free.obs_cov[0] < 0.01
    full = LDSEstimator(2, "full", max_iter=30, tol=0, min_covar=0.25).fit([np.outer(x, [1.0, 9.0]) for x in X]).model_
    assert np.linalg.eigvalsh(full.obs_cov)[0] >= 0.25 * (1 - 1e-9)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_numbers_whose_squares_overflow_are_refused(name):
    X = [1e160 * x for x in data()]
    with pytest.raises(ValueError, match=r"object 0, position 0, column 0 is .*e\+1(59|60|61)"):
        ESTIMATORS[name]("diagonal").fit(X)


# --- what an offset is worth


def test_uncentred_series_cost_nothing():
    rng = np.random.default_rng(0)
    truth = random_lds(rng, 2, 3)
    far = LDS(*(getattr(truth, name) for name in LDS._fields[:-1]), offset=truth.offset + np.array([1e3, -2e3, 1e6]))
    X = far.sample(20, length=50, rng=1)
    fitted = LDSEstimator(2, "full", max_iter=60, tol=0).fit(X)
    assert fitted.history_[-1] > far.log_prob(X).sum()
    assert fitted.model_.log_prob(X).sum() == pytest.approx(fitted.history_[-1], rel=1e-6)
    without = LDSEstimator(2, "full", max_iter=60, tol=0, offset=False).fit(X)
    assert (without.model_.offset == 0.0).all()
    assert without.history_[-1] < fitted.history_[-1] - 1000.0


def test_the_step_of_the_offset_is_a_regression_on_states_and_one():
    rng = np.random.default_rng(1)
    model = random_lds(rng, 2, 3)
    X = random_lds(rng, 2, 3).sample(4, length=9, rng=2)
    moment, cross, squares, count = np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((3, 3)), 0
    for x in X:
        _, means, cov = dense(model, x)
        blocks = cov.reshape(len(x), 2, len(x), 2)
        design = np.column_stack([means, np.ones(len(x))])
        moment += design.T @ design
        moment[:2, :2] += sum(blocks[t, :, t] for t in range(len(x)))
        cross, squares, count = cross + x.T @ design, squares + x.T @ x, count + len(x)
    lines = cross @ np.linalg.inv(moment)
    stepped = LDSEstimator(2, "full").maximize(model.statistics(X))
    np.testing.assert_allclose(stepped.observation, lines[:, :2], rtol=1e-9)
    np.testing.assert_allclose(stepped.offset, lines[:, 2], rtol=1e-9)
    np.testing.assert_allclose(stepped.obs_cov, (squares - lines @ cross.T) / count, rtol=1e-8, atol=1e-10)
    fitted = LDSEstimator(2, init=model, max_iter=1, tol=0).fit(X).model_
    np.testing.assert_allclose(fitted.parameters("raw"), stepped.parameters("raw"), rtol=1e-8, atol=1e-9)


def test_the_prior_is_in_units_of_the_data():
    X = [3.0 * x + 5.0 for x in data()]
    estimator = LDSEstimator(1, "full", pseudocount=4.0, obs_variance=2.0, max_iter=20, tol=0).fit(X)
    model = estimator.model_
    Q, R, _ = model.matrices()
    prior = -2.0 * sum(
        np.linalg.slogdet(cov)[1] + variance * np.trace(np.linalg.inv(cov)) for cov, variance in ((Q, 1.0), (R, 2.0))
    )
    assert model.log_prob(X).sum() + prior == pytest.approx(estimator.history_[-1], rel=1e-9)


# --- objectives never fall


def odd(seed):
    """Return series with outliers, offsets, tiny and huge units, gaps, constant or exploding channels."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    lengths = rng.integers(1, 50, int(rng.integers(1, 5)))
    X = [rng.normal(size=(T, d)) + rng.integers(2) * rng.normal(size=(T, d)).cumsum(axis=0) for T in lengths]
    chance = rng.random(6)
    if chance[0] < 0.5:
        X[0][rng.integers(len(X[0])), rng.integers(d)] = rng.choice([1e4, 1e8, -1e8])
    if chance[1] < 0.5:
        X = [x + rng.normal(size=d) * 10.0 ** rng.integers(8) for x in X]
    if chance[2] < 0.5:
        X = [x * 10.0 ** np.random.default_rng(seed).integers(-9, 9, d) for x in X]
    if chance[3] < 0.2:
        for x in X:
            x[:, 0] = x[0, 0]
    if chance[4] < 0.2:
        X = [x * 1.1 ** np.arange(len(x))[:, None] for x in X]
    if chance[5] < 0.4:  # the first value of each channel stays
        X = [np.where((rng.random(x.shape) < 0.3) & (np.arange(len(x)) > 0)[:, None], np.nan, x) for x in X]
    return X


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_objective_never_falls_on_odd_data(name, seed):
    X = odd(seed)
    estimator = ESTIMATORS[name](FORMS[seed % 3])
    if name == "net":
        d = X[0].shape[1]
        estimator.set_params(structure={"z": [], **{str(k): ["z"] for k in range(d)}})
    history = np.array(estimator.fit(X).history_)  # a warning, of a step taken back, would be an error here
    assert np.isfinite(history).all()
    slack = 1e-9 * np.abs(history[:-1]) + 1e-8 * sum(map(len, X))
    assert (np.diff(history) >= -slack).all()


@pytest.mark.parametrize("name", ["LDS", "switching"])
def test_one_outlier_does_not_make_em_fall(name):
    X = random_lds(np.random.default_rng(0), 2, 2).sample(6, length=60, rng=1)
    X[2][17, 1] = 1e8
    history = np.array(ESTIMATORS[name]("diagonal").set_params(n_states=3, max_iter=60).fit(X).history_)
    assert (np.diff(history) >= -1e-9 * np.abs(history[:-1])).all()


def test_an_outlier_does_not_raise_the_floor_of_all_regimes():
    rng = np.random.default_rng(0)
    X = [0.2 * np.cumsum(rng.normal(size=(60, 2)), axis=0) for _ in range(5)]
    X[0][3, 0] = 1e8
    model = SwitchingLDSEstimator(2, 2, random_state=0).fit(X).model_
    noise = model.systems.obs_cov[:, 0]
    assert noise.min() < 1.0  # 1e-4 of the variance with the outlier would be 3e9
