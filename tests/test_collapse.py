"""Mixtures and hidden states that rest on one observation: starts that avoid it, restarts that do not prefer it."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from genkern import HMM, Gaussian, GaussianEstimator, HMMEstimator, Mixture, MixtureEstimator, PoissonEstimator
from genkern.models.fit.em import Lone, Run, better
from genkern.models.mixture.start import soften


def two_classes(seed, n=30, d=100, gap=4.0, scale=1.0):
    """Points of two Gaussian classes, few in many channels, and their labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    signs = np.where(np.arange(d) % 2 == 0, 1.0, -1.0)
    centres = (2.0 * labels[:, None] - 1.0) * 0.5 * gap / np.sqrt(d) * signs
    return scale * (rng.normal(size=(n, d)) + centres), labels


def smallest_count(model, points):
    """The effective number of observations of the component with fewest, by Bayes' rule."""
    logs = model.components.log_density(points) + np.log(model.weights)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return (shares / shares.sum(axis=1, keepdims=True)).sum(axis=0).min()


@pytest.mark.parametrize("init", ["kmeans", "random"])
@pytest.mark.parametrize("covariance", ["diagonal", "isotropic"])
def test_no_component_of_few_points_in_many_channels_rests_on_one(init, covariance):
    bags = [two_classes(seed)[0] for seed in range(10)]
    for n_init in (1, 10):
        estimator = MixtureEstimator(3, GaussianEstimator(covariance), init=init, n_init=n_init, random_state=0)
        models = [*estimator.fit_each(bags), estimator.fit(bags[0]).model_]
        assert min(smallest_count(model, points) for model, points in zip(models, [*bags, bags[0]])) >= 1.5


@pytest.mark.parametrize("init", ["kmeans", "random"])
@pytest.mark.parametrize(("n", "d", "k"), [(30, 100, 3), (20, 50, 4), (40, 20, 5), (60, 200, 8)])
def test_no_start_of_few_points_in_many_channels_collapses(n, d, k, init):
    # From hard shares 4, 16, 12 and 24 of forty such fits (twenty seeds, either init) collapse.
    for seed in range(6):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            MixtureEstimator(k, init=init, random_state=seed).fit(two_classes(seed, n, d)[0])


def test_the_clusters_of_few_points_in_many_channels_are_found():
    # The best rule errs on 2.3 % (gap 4), and 30 points in 100 channels cannot tell it; clusters of single points err
    # like chance.
    errors = []
    for seed in range(10):
        points, _ = two_classes(seed)
        further, labels = two_classes(1000 + seed, n=500)
        model = MixtureEstimator(2, GaussianEstimator("isotropic"), n_init=10, random_state=seed).fit(points).model_
        error = np.mean(np.argmax(model.posterior([further])[0], axis=1) != labels)
        errors.append(min(error, 1.0 - error))
    assert np.mean(errors) < 0.22


def test_states_of_few_points_in_many_channels_rest_on_more_than_one():
    series = [two_classes(seed)[0] for seed in range(6)]
    for init in ("kmeans", "random"):
        for model, x in zip(HMMEstimator(2, init=init, n_init=5).fit_each(series), series):
            assert model.posterior([x])[0].sum(axis=0).min() >= 1.5


@pytest.mark.parametrize("scale", [2.0**-30, 2.0**30])
def test_softened_shares_have_no_units(scale):
    points, _ = two_classes(0)
    labels = np.arange(30) % 3
    shares = soften(points, np.array([0, 12, 30]), labels, 3)
    np.testing.assert_array_equal(soften(scale * points, np.array([0, 12, 30]), labels, 3), shares)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)


def test_softened_shares_are_those_of_the_formula():
    x = np.array([[0.0], [2.0], [10.0], [np.nan], [7.0]])
    shares = soften(x, np.array([0, 5]), np.array([0, 0, 1, -1, 1]), 3)
    # The mean, 4.75, stands for what is missing. Centres 1 and 8.5; the third cluster is empty.
    filled, within = np.array([0.0, 2.0, 10.0, 4.75, 7.0]), (1.0 + 1.0 + 1.5**2 + 1.5**2) / (4 - 2)
    logs = -np.column_stack([(filled - 1.0) ** 2, (filled - 8.5) ** 2]) / (2.0 * within)
    expected = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares[:, :2], expected, rtol=1e-12)
    np.testing.assert_array_equal(shares[:, 2], 0.0)


def test_the_temperature_is_the_squared_distance_over_all_channels():
    points, labels = np.random.default_rng(6).normal(size=(50, 4)), np.arange(50) % 3
    centres = np.stack([points[labels == j].mean(axis=0) for j in range(3)])
    heat = sum(((x - centres[j]) ** 2).sum() for x, j in zip(points, labels)) / (50 - 3)
    for x, shares in zip(points, soften(points, np.array([0, 50]), labels, 3)):
        terms = np.array([np.exp(-((x - c) ** 2).sum() / (2.0 * heat)) for c in centres])
        np.testing.assert_allclose(shares, terms / terms.sum(), rtol=1e-12)


def test_softened_shares_of_as_many_points_as_clusters_and_of_equal_points():
    shares = soften(np.array([[0.0], [4.0]]), np.array([0, 2]), np.array([0, 1]), 2)
    # The squared distances from the mean are the temperature: 8.
    assert shares[0, 1] == pytest.approx(1.0 / (1.0 + np.exp(1.0)), rel=1e-12)
    np.testing.assert_array_equal(soften(np.ones((3, 2)), np.array([0, 3]), np.zeros(3, int), 2), [[1.0, 0.0]] * 3)
    twice = soften(np.array([[0.0], [0.0], [4.0], [4.0]]), np.array([0, 4]), np.array([0, 0, 1, 1]), 2)
    np.testing.assert_array_equal(twice, [[1, 0], [1, 0], [0, 1], [0, 1]])


def test_a_group_is_softened_by_itself():
    points, _ = two_classes(3)
    labels = np.arange(30) % 2
    both = soften(points, np.array([0, 14, 30]), labels, 2)
    np.testing.assert_array_equal(both[:14], soften(points[:14], np.array([0, 14]), labels[:14], 2))
    np.testing.assert_array_equal(both[14:], soften(points[14:], np.array([0, 16]), labels[14:], 2))


@pytest.mark.parametrize("missing", [False, True])
def test_the_objective_never_falls_from_a_softened_start(missing):
    points, _ = two_classes(1, d=20)
    if missing:
        points[np.random.default_rng(2).random(points.shape) < 0.1] = np.nan
    for estimator in (MixtureEstimator(3, max_iter=30, tol=0), HMMEstimator(3, max_iter=30, tol=0)):
        history = np.array(estimator.fit([points]).history_)
        assert (np.diff(history) > -1e-9 * np.abs(history[1:])).all()


OUTLIER = np.concatenate([np.random.default_rng(0).normal(size=(30, 1)), [[1000.0]]])
CLUSTERS = np.concatenate([OUTLIER[:-1], 8.0 + OUTLIER[:-1]])


def test_a_component_on_an_outlier_is_named():
    expected = r"component \d rests on an effective number of 1 observations, with a variance at the floor"
    with pytest.warns(ConvergenceWarning, match=f"MixtureEstimator: {expected}.*estimate='map'"):
        model = MixtureEstimator(2).fit(OUTLIER).model_
    assert smallest_count(model, OUTLIER) == pytest.approx(1.0, abs=0.01)
    with pytest.warns(ConvergenceWarning, match=r"component \d of the model of object 1 rests on"):
        MixtureEstimator(2).fit_each([CLUSTERS, OUTLIER])
    with pytest.warns(ConvergenceWarning, match=r"HMMEstimator: state \d rests on .* number of states"):
        HMMEstimator(2).fit([OUTLIER])
    with pytest.warns(ConvergenceWarning, match=r"HMMEstimator: state \d of the model of object 1 rests on"):
        HMMEstimator(2).fit_each([CLUSTERS, OUTLIER])
    with pytest.warns(ConvergenceWarning, match=r"HMMEstimator: state 0, component \d rests on .* of components"):
        HMMEstimator(1, MixtureEstimator(2)).fit([OUTLIER])


def test_what_has_a_bound_or_more_observations_is_not_named():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MixtureEstimator(2, GaussianEstimator(estimate="map", prior_scale=1.0, prior_mean=0.0)).fit(OUTLIER)
        MixtureEstimator(2, PoissonEstimator()).fit(np.array([[1.0], [2.0], [1.0], [500.0]]))
        MixtureEstimator(2).fit(np.array([[0.0], [0.0], [0.0], [1.0], [2.0], [1.5]]))  # equal points, but three


def test_a_run_with_a_lone_component_loses_whatever_its_objective():
    def run(name, objectives, lone):
        return Run(
            [f"{name}{i}" for i in range(3)],
            np.array(objectives),
            np.zeros(3, int),
            np.ones(3, bool),
            [],
            np.zeros(3),
            lone,
        )

    one = Lone((1,), 1.0)
    old = run("old", [9.0, 1.0, 9.0], [[one], [], [one]])
    new = run("new", [1.0, 2.0, 1.0], [[], [], [one]])
    for chosen in (better(old, new), better(new, old)):
        assert chosen.models == ["new0", "new1", "old2"]
        assert chosen.objective.tolist() == [1.0, 2.0, 9.0]
        assert chosen.lone == [[], [], [one]]
    assert better(old._replace(lone=None), new._replace(lone=None)).models == ["old0", "new1", "old2"]


def test_the_best_of_restarts_is_not_the_collapse(monkeypatch):
    # Starts given by hand: one on a single point, which has the higher likelihood, and one on two true clusters.
    rng, d = np.random.default_rng(5), 30
    points = rng.normal(size=(40, d))
    points[20:, 0] += 6.0
    centres = np.zeros((2, d))
    centres[1, 0] = 6.0
    collapse = Mixture(
        [0.97, 0.03], Gaussian(np.stack([points.mean(axis=0), points[7]]), [np.full(d, 4.0), [1e-3] * d])
    )
    sound = Mixture([0.5, 0.5], Gaussian(centres, np.ones((2, d))))
    alone = [MixtureEstimator(2, init=start, max_iter=200).fit(points).history_[-1] for start in (collapse, sound)]
    assert alone[0] > alone[1] + 10.0
    estimator = MixtureEstimator(2, n_init=2, max_iter=200)
    for order in ([collapse, sound], [sound, collapse]):
        starts = iter(order)
        monkeypatch.setattr(MixtureEstimator, "_start", lambda self, packed, keys, own, starts=starts: next(starts))
        assert smallest_count(estimator.fit(points).model_, points) > 10.0


@pytest.mark.parametrize("covariance", ["diagonal", "isotropic", "full"])
def test_an_outlier_does_not_raise_the_floor_of_other_states(covariance):
    rng = np.random.default_rng(3)
    points = np.concatenate([rng.normal(size=(40, 2)), 8.0 + rng.normal(size=(40, 2)), [[1e6, -1e6]]])
    estimator = MixtureEstimator(3, GaussianEstimator(covariance), n_init=5, random_state=0)
    with pytest.warns(ConvergenceWarning, match="rests on an effective number of 1 observations"):
        model = estimator.fit(points).model_
    middle = np.sort(model.components.mean[:, 0])
    np.testing.assert_allclose(middle, [0.0, 8.0, 1e6], atol=0.6)
    # The floor: that of the middle 80 %, not a thousandth of 1e10.
    expected = 1e-4 * ((np.quantile(points, 0.9, axis=0) - np.quantile(points, 0.1, axis=0)) / 2.5631) ** 2
    lone = model.components[int(np.argmax(model.components.mean[:, 0]))]
    np.testing.assert_allclose(lone.variances, expected.mean() if covariance == "isotropic" else expected, rtol=1e-4)
    each = estimator.fit_each([points[:80], points])[1]
    np.testing.assert_allclose(np.sort(each.components.mean[:, 0]), [0.0, 8.0, 1e6], atol=0.6)


def copied(d=5):
    """Sixty points of which three occur four times."""
    points = np.random.default_rng(2).normal(size=(51, d))
    return np.concatenate([points, np.repeat(points[:3], 3, axis=0)])


@pytest.mark.parametrize("covariance", ["diagonal", "isotropic", "full"])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_a_component_on_copies_of_a_point_is_named(covariance, unit):
    points, spread = unit * copied(), {"diagonal": np.ones(5), "isotropic": 1.0, "full": np.eye(5)}[covariance]
    start = Gaussian(np.stack([points.mean(axis=0), points[1]]), unit**2 * np.stack([spread, 1e-3 * spread]))
    expected = "component 1 rests on an effective number of 4 observations that all but coincide, with every variance"
    estimator = MixtureEstimator(2, GaussianEstimator(covariance), init=Mixture([0.9, 0.1], start))
    with pytest.warns(ConvergenceWarning, match=f"MixtureEstimator: {expected} at the floor.*copies"):
        model = estimator.fit(points).model_
    held = model.posterior([points])[0][:, 1] > 0.5
    np.testing.assert_array_equal(held, (points == points[1]).all(axis=1))
    with pytest.warns(ConvergenceWarning, match=expected.replace("rests", "of the model of object 0 rests")):
        estimator.fit_each([points])
    chain = HMM([0.9, 0.1], [[0.9, 0.1], [0.9, 0.1]], start)
    with pytest.warns(ConvergenceWarning, match=expected.replace("component", "state")):
        HMMEstimator(2, GaussianEstimator(covariance), init=chain).fit([points])


def test_the_best_of_restarts_is_not_the_collapse_on_copies(monkeypatch):
    points = copied()
    broad = Gaussian(np.stack([points.mean(axis=0), points[1]]), [np.ones(5), [1e-3] * 5])
    halves = Gaussian([[-1.0, 0, 0, 0, 0], [1.0, 0, 0, 0, 0]], np.ones((2, 5)))
    collapse, sound = Mixture([0.9, 0.1], broad), Mixture([0.5, 0.5], halves)
    with pytest.warns(ConvergenceWarning, match="coincide"):
        high = MixtureEstimator(2, init=collapse).fit(points).history_[-1]
    best = MixtureEstimator(2, init=sound).fit(points)
    assert high > best.history_[-1] + 10.0
    for order in ([collapse, sound], [sound, collapse]):
        starts = iter(order)
        monkeypatch.setattr(MixtureEstimator, "_start", lambda self, packed, keys, own, starts=starts: next(starts))
        found = MixtureEstimator(2, n_init=2).fit(points)
        assert found.history_[-1] == pytest.approx(best.history_[-1], rel=1e-9)


def test_values_that_make_up_much_of_the_data_are_not_named():
    rng = np.random.default_rng(4)
    zeros = np.concatenate([np.zeros((40, 2)), 3.0 + rng.normal(size=(40, 2))])
    kinds = np.column_stack([rng.integers(0, 2, 80), rng.normal(size=80)])  # at the floor in one channel of two
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MixtureEstimator(2).fit(zeros).model_
        assert model.components.variances.min() < 1e-3  # at the floor indeed
        parts = MixtureEstimator(2).fit(kinds * [10.0, 1.0]).model_
        assert parts.components.variances[:, 0].max() < 1e-2 < parts.components.variances[:, 1].min()
        MixtureEstimator(3, max_iter=50, tol=0).fit(np.repeat([[0.0], [1.0], [2.0]], [2, 10, 20], axis=0))
        # One channel and a coarse floor: all components are at it, but their points differ.
        coarse = MixtureEstimator(32, GaussianEstimator(min_covar=1e-2), max_iter=20, tol=0)
        variances = coarse.fit(np.sin(np.arange(2000) / 7.0)[:, None]).model_.components.variances
        assert 8 < (variances <= 1e-2).sum() < 32
        HMMEstimator(2).fit([np.concatenate([np.zeros(30), rng.normal(size=30)])])
