"""Data in other units have the same fit in those units, and what no unit can hold is refused."""

import warnings

import numpy as np
import pytest

from genkern import (
    HMM,
    ExponentialEstimator,
    FisherScore,
    GammaEstimator,
    Gaussian,
    GaussianEstimator,
    HMMEstimator,
    KDEEstimator,
    Mixture,
    MixtureEstimator,
    StateSpace,
)
from genkern.data.objects import pack_series
from genkern.models.families.gaussian_floor import floor_eigenvalues
from genkern.models.fit.streams import unit_free_digests

UNITS = [1e-9, 1e-5, 1e-2, 1e3, 1e9]
COMMON = [*UNITS, None]  # None: another unit for every channel
FORMS = ["isotropic", "diagonal", "full"]


def states(seed=0, count=6, d=3, missing=0.0):
    """Return series that dwell in three states, ten deviations apart in every channel, with a constant channel last."""
    rng = np.random.default_rng(seed)
    X = []
    for _ in range(count):
        levels = np.repeat(rng.permutation(3), rng.integers(8, 14, 3))[:, None] * 10.0
        x = levels * np.where(np.arange(d) % 2, -1.0, 1.0) + rng.standard_normal((len(levels), d)) + 3.0
        x[:, -1] = 0.1
        x[rng.random(x.shape) < missing] = np.nan
        X.append(x)
    return X


def in_unit(X, unit):
    unit = 10.0 ** np.linspace(-9, 9, X[0].shape[1]) if unit is None else np.full(X[0].shape[1], unit)
    return [unit * x for x in X], unit


def assert_scaled(found, leaf, unit):
    """Compare a leaf in another unit with the one it should be."""
    np.testing.assert_allclose(found.mean / unit, leaf.mean, rtol=1e-6, atol=1e-7)
    if leaf.covariance_type == "isotropic":
        unit = unit[0]
    square = unit[:, None] * unit if leaf.covariance_type == "full" else unit**2
    np.testing.assert_allclose(found.cov / square, leaf.cov, rtol=1e-5, atol=1e-9)


def cases(form):
    return [unit for unit in COMMON if unit is not None or form != "isotropic"]


FITS = [(form, unit) for form in FORMS for unit in cases(form)]


@pytest.mark.parametrize(("form", "unit"), FITS)
@pytest.mark.parametrize("estimate", ["ml", "map"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_gaussians(form, unit, estimate, missing):
    X = states(1, missing=missing)
    scaled, unit = in_unit(X, unit)
    estimator = GaussianEstimator(form, estimate=estimate)
    assert_scaled(estimator.fit(scaled).model_, estimator.fit(X).model_, unit)
    for found, model in zip(estimator.fit_each(scaled), estimator.fit_each(X), strict=True):
        assert_scaled(found, model, unit)


@pytest.mark.parametrize(("form", "unit"), FITS)
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_hidden_states(form, unit, missing):
    X = states(2, missing=missing)
    scaled, unit = in_unit(X, unit)
    estimator = HMMEstimator(3, GaussianEstimator(form))
    model, found = estimator.fit(X).model_, estimator.fit(scaled).model_
    assert_scaled(found.emissions, model.emissions, unit)
    np.testing.assert_allclose(found.transitions, model.transitions, atol=1e-6)
    for ours, theirs in zip(found.posterior(scaled), model.posterior(X), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    jumps = np.abs(np.diff(model.emissions.mean[np.argsort(model.emissions.mean[:, 0]), 0]))
    np.testing.assert_allclose(jumps, 10.0, atol=1.0)  # three states indeed


@pytest.mark.parametrize(("form", "unit"), FITS)
def test_own_models_of_short_series(form, unit):
    rng = np.random.default_rng(3)
    X = [rng.standard_normal((7, 12)).cumsum(axis=0) for _ in range(5)]
    X[2][:, 4] = 2.5
    scaled, unit = in_unit(X, unit)
    estimator = HMMEstimator(2, GaussianEstimator(form), structure="left-right", tol=1e-7)
    for found, model in zip(estimator.fit_each(scaled), estimator.fit_each(X), strict=True):
        assert_scaled(found.emissions, model.emissions, unit)
        np.testing.assert_allclose(found.transitions, model.transitions, atol=1e-6)


@pytest.mark.parametrize(("form", "unit"), FITS)
@pytest.mark.parametrize("init", ["kmeans", "random"])
def test_mixtures(form, unit, init):
    X = states(4)
    scaled, unit = in_unit(X, unit)
    estimator = MixtureEstimator(3, GaussianEstimator(form), init=init, tol=1e-8)
    model, found = estimator.fit(X).model_, estimator.fit(scaled).model_
    assert_scaled(found.components, model.components, unit)
    np.testing.assert_allclose(found.weights, model.weights, rtol=1e-6)


@pytest.mark.parametrize("unit", UNITS)
def test_mixtures_as_emissions(unit):
    X = states(5)
    scaled, unit = in_unit(X, unit)
    estimator = HMMEstimator(2, MixtureEstimator(2), max_iter=30, tol=0)
    model, found = estimator.fit(X).model_, estimator.fit(scaled).model_
    assert_scaled(found.emissions.components, model.emissions.components, unit)


@pytest.mark.parametrize("unit", COMMON)
@pytest.mark.parametrize("family", [GammaEstimator, ExponentialEstimator])
def test_positive_families(family, unit):
    X = [np.exp(0.1 * x[:, :2]) for x in states(6)]
    scaled, unit = in_unit(X, unit)
    estimator = MixtureEstimator(2, family(), max_iter=200, tol=0)
    model, found = estimator.fit(X).model_, estimator.fit(scaled).model_
    np.testing.assert_allclose(found.components.scale / unit, model.components.scale, rtol=1e-6)
    np.testing.assert_allclose(found.weights, model.weights, rtol=1e-6)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("rule", ["likelihood", "lscv", "silverman", "scott"])
def test_density_estimates(rule, unit):
    points = np.random.default_rng(7).standard_normal((40, 2)).round(1)
    expected = KDEEstimator(rule).fit(points).model_.variance
    np.testing.assert_allclose(KDEEstimator(rule).fit(unit * points).model_.variance / unit**2, expected, rtol=1e-6)


@pytest.mark.parametrize(("form", "unit"), FITS)
def test_features_are_invariant(form, unit):
    X = states(8)
    scaled, _ = in_unit(X, unit)
    estimator = HMMEstimator(3, GaussianEstimator(form))
    for embedding in (FisherScore(estimator), StateSpace(estimator)):
        np.testing.assert_allclose(
            embedding.fit_transform(scaled), embedding.fit_transform(X), rtol=1e-4, atol=1e-4, err_msg=str(embedding)
        )


# --- the floor itself


def test_three_states_stay_three_in_small_units():
    rng = np.random.default_rng(0)
    X = [0.001 * np.concatenate([rng.normal(level, 1.0, (30, 1)) for level in (0.0, 10.0, 20.0)]) for _ in range(5)]
    found = np.sort(HMMEstimator(3).fit(X).model_.emissions.mean[:, 0])
    np.testing.assert_allclose(found, [0.0, 0.01, 0.02], atol=0.0005)


@pytest.mark.filterwarnings("ignore:MixtureEstimator")  # of a component that rests on one point
def test_the_floor_is_a_share_of_the_channels_variance_in_the_data():
    X = np.array([[0.0, 0.0, 5.0], [0.0, 2.0, 5.0], [8.0, 7.0, 5.0]])  # the last point is a component of its own
    start = Mixture([0.5, 0.5], Gaussian([[0.0, 1.0, 5.0], [8.0, 7.0, 5.0]], np.ones((2, 3))))
    expected = 1e-4 * np.array([X[:, 0].var(), X[:, 1].var(), 25.0])  # no variance: the mean square
    estimator = MixtureEstimator(2, GaussianEstimator(), init=start, tol=0, max_iter=50)
    fitted = estimator.fit(X).model_
    np.testing.assert_allclose(fitted.components.cov[1], expected, rtol=1e-9)
    own = estimator.fit_each([X, 100.0 * X])
    np.testing.assert_allclose(own[0].components.cov[1], expected, rtol=1e-9)
    assert own[0] == estimator.fit_each([X])[0]
    again = estimator.maximize(fitted.statistics([X]))
    np.testing.assert_allclose(again.components.cov[1], expected, rtol=1e-6)
    both = MixtureEstimator(2, GaussianEstimator(min_covar=0.02), init=start, tol=0, max_iter=50).fit(X).model_
    np.testing.assert_allclose(both.components.cov[1], np.maximum(expected, 0.02), rtol=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("family", [HMMEstimator, MixtureEstimator])
@pytest.mark.parametrize("named", [False, True])
def test_maximize_of_a_bounded_estimator_is_the_step_of_fit(form, family, named):
    rng = np.random.default_rng(0)
    X = [np.concatenate([rng.normal(size=(40, 2)), 3.0 + 1e-4 * rng.normal(size=(20, 2)), [[1e4, -1e3]]])]
    spread = {"isotropic": np.ones(2), "diagonal": np.ones((2, 2)), "full": np.stack([np.eye(2)] * 2)}[form]
    leaf = Gaussian([[0.0, 0.0], [3.0, 3.0]], spread * np.array([1.0, 1e-2]).reshape(-1, *[1] * (spread.ndim - 1)))
    start = Mixture([0.6, 0.4], leaf) if family is MixtureEstimator else HMM([0.6, 0.4], np.full((2, 2), 0.5), leaf)
    args = {"init": start, "max_iter": 1, "tol": 0}
    estimator = family(2, **args) if named else family(2, GaussianEstimator(form), **args)

    def tight(model):
        variances = (model.components if family is MixtureEstimator else model.emissions).variances[1]
        return variances[:1] if form == "isotropic" else variances

    packed = estimator.pack(X)
    step = estimator.bounded(packed, own=False).maximize(start.statistics(X))
    assert step == estimator.fit(X).model_
    own = estimator.bounded(packed, own=True).maximize(type(start).stack([start]).statistics(X))
    assert own[0] == estimator.fit_each(X)[0]
    middle = ((np.quantile(X[0], 0.9, axis=0) - np.quantile(X[0], 0.1, axis=0)) / 2.5631) ** 2
    for model, unit in ((step, middle), (estimator.maximize(start.statistics(X)), X[0].var(axis=0))):
        np.testing.assert_allclose(tight(model), 1e-4 * (unit.mean() if form == "isotropic" else unit), rtol=1e-3)


def test_maximize_of_a_bounded_gaussian_is_the_fit():
    X = np.concatenate([np.zeros((40, 1)), np.full((40, 1), 1e-3), [[1e6]]])
    estimator = GaussianEstimator(relative_floor=2.0)  # above the variance, so that the floor is what is found
    step = estimator.bounded(estimator.pack([X]), own=False).maximize(Gaussian([0.0], [1.0]).statistics([X]))
    np.testing.assert_allclose(step.cov, estimator.fit(X).model_.cov, rtol=1e-6)
    whole = GaussianEstimator(relative_floor=2.0).maximize(Gaussian([0.0], [1.0]).statistics([X]))
    np.testing.assert_allclose(whole.cov, 2.0 * X.var(axis=0), rtol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_data_of_zeros_have_a_floor(form):
    model = GaussianEstimator(form).fit(np.zeros((4, 2))).model_
    np.testing.assert_allclose(model.variances, 1e-4, rtol=1e-12)


def test_a_constant_channel_does_not_blur_isotropic_ones():
    X = np.random.default_rng(1).standard_normal((50, 3))
    X[:, 2] = 1e6
    floor = MixtureEstimator(2, GaussianEstimator("isotropic"))._component_for(X)
    model = floor.fit(X).model_
    np.testing.assert_allclose(model.cov, X.var(axis=0).mean(), rtol=1e-6)


def test_the_floor_of_full_covariances_is_the_likelihoods_maximum_under_it():
    """Among covariances that exceed the floor, drawn near the found one and far from it, none is likelier."""
    rng = np.random.default_rng(2)
    floor = np.array([1e-6, 2.0, 30.0])
    factor = rng.standard_normal((3, 2)) * np.sqrt(floor)[:, None] * 2.0
    sample = factor @ factor.T  # singular
    best = floor_eigenvalues(sample, floor)

    def likelihood(cov):
        return -np.linalg.slogdet(cov)[1] - np.trace(np.linalg.solve(cov, sample))

    root = np.sqrt(floor)
    excess = best / np.outer(root, root) - np.eye(3)
    assert np.linalg.eigvalsh(excess).min() > -1e-12
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(200):
            step = rng.standard_normal((3, 3)) * size
            values, vectors = np.linalg.eigh(excess + step + step.T)
            other = (vectors * np.maximum(values, 0.0)) @ vectors.T + np.eye(3)
            assert likelihood(np.outer(root, root) * other) <= likelihood(best) + 1e-9


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("estimate", ["ml", "map"])
def test_em_never_falls_at_the_floor(form, missing, estimate):
    X = states(9, count=3, missing=missing)
    emission = GaussianEstimator(form, relative_floor=0.05, estimate=estimate)
    history = np.array(HMMEstimator(4, emission, max_iter=40, tol=0).fit(X).history_)
    assert np.diff(history).min() >= -1e-9 * np.abs(history).max()


def test_floors_of_named_emissions():
    X = states(10)
    wide = HMMEstimator(3, relative_floor=0.5).fit(X).model_.emissions
    np.testing.assert_allclose(wide.cov.min(axis=0)[:2], 0.5 * np.concatenate(X).var(axis=0)[:2], rtol=1e-9)
    with pytest.raises(ValueError, match="'relative_floor' belongs to the emission"):
        HMMEstimator(3, GaussianEstimator(), relative_floor=0.5).fit(X)
    for name in ("min_covar", "relative_floor"):
        with pytest.raises(ValueError, match=f"'{name}' parameter of GaussianEstimator"):
            GaussianEstimator(**{name: -1.0}).fit(X)


@pytest.mark.parametrize("family", [HMMEstimator, MixtureEstimator])
def test_random_starts_of_own_models_are_those_of_other_units(family):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(int(rng.integers(20, 60)), 2)) for _ in range(12)]
    unit = np.array([2.0**-30, 2.0**7])
    one, other = (family(2, random_state=0).fit_each(Y) for Y in (X, [unit * x for x in X]))
    for x, a, b in zip(X, one, other):
        score = "log_prob" if family is HMMEstimator else "bag_log_prob"
        expected = getattr(a, score)(pack_series([x])) - len(x) * np.log(unit).sum()
        np.testing.assert_allclose(getattr(b, score)(pack_series([unit * x])), expected, rtol=1e-9)


def test_digests_free_of_units():
    X = [np.array([[3.0, 1.0], [np.nan, 1.0], [-2.0, 5.0]]), np.array([[0.0, 0.0]])]
    digests = unit_free_digests(pack_series(X))
    assert unit_free_digests(pack_series([X[1], [1e-9, 1e5] * X[0] + [7.0, 0.0]])) == digests[::-1]
    others = [
        [[np.nan, 1.0], [3.0, 1.0], [-2.0, 5.0]],  # elsewhere missing
        [[3.0, 1.0], [9.0, 1.0], [-2.0, 5.0]],
        [[3.0, 1.0], [np.nan, 2.0], [-2.0, 5.0]],  # no tie
        [[-2.0, 1.0], [np.nan, 1.0], [3.0, 5.0]],  # another order
        [[3.0, 1.0], [np.nan, 1.0]],
    ]
    found = unit_free_digests(pack_series([np.array(x) for x in others]))
    assert len({*digests, *found}) == 7


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("family", [HMMEstimator, MixtureEstimator])
def test_em_from_a_model_below_the_floor_starts_at_the_floor(family, form):
    rng = np.random.default_rng(0)
    X = [np.repeat([0.0, 100.0, 0.0], 20)[:, None] * [1.0, -1.0] + rng.normal(size=(60, 2)) for _ in range(3)]
    low = family(2, GaussianEstimator(form, relative_floor=1e-6)).fit(X)
    own = GaussianEstimator(form, relative_floor=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = family(2, own, init=low.model_).fit(X)
        each = family(2, own, init=low.model_).fit_each(X)
        fresh = family(2, own).fit(X)
    assert again.converged_
    assert again.history_[-1] == pytest.approx(fresh.history_[-1], abs=1e-3)
    floor = 1e-3 * np.concatenate(X).var(axis=0).min()
    for model in (again.model_, *each):
        leaf = model.emissions if family is HMMEstimator else model.components
        assert leaf.variances.min() > 0.9 * floor
