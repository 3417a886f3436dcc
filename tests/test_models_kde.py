"""Kernel density estimates against quadrature, scipy, scikit-learn and brute force."""

import math
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import logsumexp
from sklearn.neighbors import KernelDensity

from genkern import HMM, KDE, FisherScore, FitEach, Gaussian, KDEEstimator, Mixture, PlugInClassifier, check_score
from genkern.core.mixture import kde_variance as core

seeds = st.integers(0, 2**32 - 1)


def random_kde(rng, n=5, d=2, batch=(), zeros=0.0):
    weights = rng.random((*batch, n)) + 0.1
    weights[..., 1:] *= rng.random((*batch, n - 1)) >= zeros
    return KDE(rng.standard_normal((*batch, n, d)), rng.random(batch) + 0.2, weights)


def random_bag(rng, m, d=2, missing=0.0):
    bag = rng.standard_normal((m, d)) * 1.5
    bag[rng.random(bag.shape) < missing] = np.nan
    return bag


def log_density(points, variance, weights, x):
    """Log density of one query by scipy's Gaussians over its observed coordinates."""
    seen = ~np.isnan(x)
    if not seen.any():
        return 0.0
    logs = [stats.multivariate_normal(c[seen], variance * np.eye(seen.sum())).logpdf(x[seen]) for c in points]
    return logsumexp(logs, b=weights)


def criterion(points, h, ties=False):
    """Least-squares cross-validation over the draws, one by one; with ties, equal draws are left out together."""
    n, d = points.shape
    squares = ((points[:, None] - points) ** 2).sum(axis=2)
    wide = np.exp(-squares / (4 * h)) / (4 * math.pi * h) ** (d / 2)
    narrow = np.exp(-squares / (2 * h)) / (2 * math.pi * h) ** (d / 2)
    others = squares > 0 if ties else ~np.eye(n, dtype=bool)
    left_out = (narrow * others).sum(axis=1) / others.sum(axis=1)
    return wide.mean() - 2 * left_out.mean()


# --- density


@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 2), (8, 3), (19, 1)])
def test_density_is_that_of_scipy(n, d):
    rng = np.random.default_rng(n)
    model = random_kde(rng, n, d, zeros=0.3)
    X = [random_bag(rng, m, d, missing=0.3) for m in (1, 4, 3)]
    expected = [sum(log_density(model.points, model.variance, model.weights, x) for x in bag) for bag in X]
    np.testing.assert_allclose(model.log_prob(X), expected, rtol=1e-12, atol=1e-14)


def test_density_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    points, counts, queries = rng.standard_normal((40, 3)), rng.integers(1, 9, 40), rng.standard_normal((30, 3))
    twin = KernelDensity(bandwidth=0.5).fit(points, sample_weight=counts)
    np.testing.assert_allclose(KDE(points, 0.25, counts).log_prob(queries), twin.score_samples(queries), rtol=1e-8)


def test_density_integrates_to_one():
    model = KDE([0.0, 0.7, 3.0], 0.3, [1, 2, 5])
    total, _ = integrate.quad(lambda x: np.exp(model.log_density(np.array([[x]]))[0]), -8, 11, points=[0, 0.7, 3])
    assert total == pytest.approx(1.0, abs=1e-9)
    grid = np.linspace(-9, 9, 181)
    plane = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    mass = np.exp(random_kde(np.random.default_rng(1)).log_density(plane)).sum() * 0.1**2
    assert mass == pytest.approx(1.0, abs=1e-9)


def test_missing_coordinate_is_integrated_out():
    model = random_kde(np.random.default_rng(2))
    whole, _ = integrate.quad(lambda y: np.exp(model.log_density(np.array([[0.4, y]]))[0]), -12, 12)
    assert model.log_prob([[[0.4, np.nan]]])[0] == pytest.approx(np.log(whole), abs=1e-8)
    assert model.log_prob([[[np.nan, np.nan]]])[0] == pytest.approx(0.0, abs=1e-14)


def test_densities_far_below_the_smallest_number():
    model = KDE([[0.0], [1.0]], 1e-4)
    np.testing.assert_allclose(
        model.log_prob([[[2.0]], [[-50.0]]]),
        [np.log(0.5) - 0.5 * np.log(2e-4 * np.pi) - gap / 2e-4 for gap in (1.0, 2500.0)],
        rtol=1e-12,
    )


@settings(deadline=None, max_examples=15)
@given(seed=seeds, n=st.integers(1, 20))
def test_a_bag_does_not_notice_its_neighbours(seed, n):
    rng = np.random.default_rng(seed)
    model = random_kde(rng, n)
    X = [random_bag(rng, int(m), missing=0.1) for m in rng.integers(1, 30, 7)]
    order = rng.permutation(len(X))
    np.testing.assert_array_equal(model.log_prob([X[i] for i in order]), model.log_prob(X)[order])
    np.testing.assert_array_equal(model.log_prob_grad(X[3:4]), model.log_prob_grad(X)[3:4])


# --- derivatives, posteriors, information


@settings(deadline=None, max_examples=10)
@given(seed=seeds, n=st.integers(1, 10), d=st.integers(1, 3))
def test_scores_match_differences(seed, n, d):
    rng = np.random.default_rng(seed)
    model = random_kde(rng, n, d, zeros=0.2)
    X = [random_bag(rng, 3, d, missing=0.3), random_bag(rng, 1, d)]
    assert max(check_score(model, X).values()) < 1e-6


def test_derivative_by_a_weight_of_zero_is_finite():
    model = KDE([[0.0], [2.0], [900.0]], 1.0, [1, 1, 0])
    names = model.parameter_names
    raw = dict(zip(names, model.log_prob_grad([[[1.0]]], coordinates="raw")[0]))
    density = stats.norm([0.0, 2.0, 900.0]).pdf(1.0)
    np.testing.assert_allclose([raw[f"weights[{i}]"] for i in range(3)], density / density[:2].mean(), rtol=1e-12)
    for coordinates in ("softmax", "ratio", "sqrt", "raw"):
        gradient = model.log_prob_grad([[[900.0]]], coordinates=coordinates)
        assert np.isfinite(gradient).all()
    assert dict(zip(names, model.log_prob_grad([[[900.0]]])[0]))["weights[2]"] == 0.0


def test_posterior_is_bayes_rule():
    rng = np.random.default_rng(3)
    model = random_kde(rng, 4, zeros=0.3)
    X = [random_bag(rng, 3, missing=0.3), random_bag(rng, 2)]
    for bag, shares in zip(X, model.posterior(X), strict=True):
        for x, share in zip(bag, shares, strict=True):
            joint = [
                w * np.exp(log_density(c[None], model.variance, [1.0], x)) for w, c in zip(model.weights, model.points)
            ]
            np.testing.assert_allclose(share, np.array(joint) / np.sum(joint), rtol=1e-10)


@pytest.mark.parametrize("coordinates", ["softmax", "ratio", "sqrt"])
def test_information_is_that_of_an_observer_who_sees_the_point(coordinates):
    model = KDE([[0.3], [1.1], [-0.6]], 0.7, [2, 1, 3])
    nodes, mass = np.polynomial.hermite_e.hermegauss(12)
    vector = model.parameters(coordinates)
    step = 1e-5
    total = 0.0
    for i in range(3):
        x = model.points[i, 0] + np.sqrt(model.variance) * nodes
        scores = []
        for j in range(len(vector)):
            sides = []
            for sign in (1, -1):
                moved = vector.copy()
                moved[j] += sign * step
                other = model.with_parameters(moved, coordinates)
                sides.append(
                    np.log(other.weights[i]) + stats.norm(other.points[i, 0], np.sqrt(other.variance)).logpdf(x)
                )
            scores.append((sides[0] - sides[1]) / (2 * step))
        total += model.weights[i] * (scores * (mass / mass.sum())) @ np.transpose(scores)
    blocks = KDE.stack([model]).member_information(np.array([1.0]), coordinates)
    matrix, at = np.zeros((7, 7)), 0
    for block in blocks:
        matrix[at : at + len(block), at : at + len(block)] = block
        at += len(block)
    assert at == 7
    np.testing.assert_allclose(matrix, total, atol=1e-7)


def test_fisher_scores_of_bags():
    rng = np.random.default_rng(4)
    X = [rng.standard_normal((m, 2)) for m in (4, 6, 5)]
    features = FisherScore(KDEEstimator()).fit_transform(X)
    assert features.shape == (3, 15 * 3 + 1)
    assert np.isfinite(features).all()


# --- sampling


def test_sample_and_density_agree():
    model = KDE([[0.0], [5.0], [9.0]], 0.5, [1, 3, 0])
    draws = np.concatenate(model.sample(1000, length=3, rng=0)).ravel()
    cdf = lambda x: 0.25 * stats.norm(0, 0.5**0.5).cdf(x) + 0.75 * stats.norm(5, 0.5**0.5).cdf(x)  # noqa: E731
    assert stats.kstest(draws, cdf).pvalue > 1e-2
    plane = KDE([[0.0, 4.0], [0.0, 4.0]], 2.0)
    gaps = np.concatenate(plane.sample(2000, rng=1)) - [0.0, 4.0]
    assert stats.kstest((gaps**2).sum(axis=1) / 2.0, stats.chi2(2).cdf).pvalue > 1e-2


def test_members_of_a_stack_are_drawn_from():
    stack = KDE([[[0.0]], [[100.0]]], [1e-6, 1e-6])
    draws = stack.draw(np.array([1, 0, 1]), np.random.default_rng(0))
    np.testing.assert_allclose(draws.ravel(), [100.0, 0.0, 100.0], atol=0.01)


# --- values


def test_values_and_stacks():
    rng = np.random.default_rng(5)
    models = [random_kde(rng) for _ in range(3)]
    stack = KDE.stack(models)
    assert models[0].shape == ()
    assert stack.shape == (3,)
    assert stack.unstack() == models
    assert pickle.loads(pickle.dumps(stack)) == stack
    assert not stack.points.flags.writeable
    X = [random_bag(rng, 4, missing=0.2), random_bag(rng, 2)]
    np.testing.assert_array_equal(stack.log_prob(X), np.stack([model.log_prob(X) for model in models], axis=1))
    with pytest.raises(ValueError, match="equal shapes"):
        KDE.stack([models[0], random_kde(rng, 6)])
    for coordinates in ("softmax", "ratio", "sqrt", "raw"):
        vector = stack.parameters(coordinates)
        assert len(vector) == len(stack.parameter_names)
        back = stack.with_parameters(vector, coordinates)
        for name in KDE._fields:
            np.testing.assert_allclose(getattr(back, name), getattr(stack, name), rtol=1e-12)


def test_own_members_serve_their_own_objects():
    rng = np.random.default_rng(6)
    stack = random_kde(rng, 5, 2, batch=(2, 3))
    packed = stack.pack([random_bag(rng, 4, missing=0.2), random_bag(rng, 3)])
    weights = rng.random((7, 3))
    own, blocks = stack.own_log_density(packed), stack.weigh(packed, weights, totals=False)
    for i, rows in enumerate((slice(0, 4), slice(4, 7))):
        alone = packed.take([i])
        np.testing.assert_array_equal(own[rows], stack[i].log_density(alone.values))
        for name, block in stack[i].weigh(alone, weights[rows], totals=True).items():
            np.testing.assert_array_equal(blocks[name][i], block[0])


def test_weights_are_counts():
    assert KDE([[0.0], [1.0]], 1.0, [3, 1]) == KDE([[0.0], [1.0]], 1.0, [0.75, 0.25])
    np.testing.assert_array_equal(KDE([0.0, 1.0], 1.0).weights, [0.5, 0.5])
    repeated, weighted = KDE([0.0, 0.0, 1.0], 0.5), KDE([0.0, 1.0], 0.5, [2, 1])
    np.testing.assert_allclose(repeated.log_prob([[[0.3]]]), weighted.log_prob([[[0.3]]]), rtol=1e-14)


# --- the criterion of cross-validation


def objective(points, weights, h, scale):
    """Return what the compiled search minimises, without its constant factor."""
    bag = core._bag(np.asarray(points), np.asarray(weights), False)
    d = bag.points.shape[0]
    return core._objective(bag, scale, math.log(h / scale)) / (4 * math.pi * scale) ** (d / 2)


@pytest.mark.parametrize("h", [0.01, 0.2, 3.0])
def test_criterion_is_the_quadrature_of_the_squared_error(h):
    rng = np.random.default_rng(7)
    points, counts = np.sort(rng.standard_normal(9)), np.array([1, 1, 3, 1, 2, 1, 1, 1, 4])
    model = KDE(points, h, counts)
    square, _ = integrate.quad(
        lambda x: np.exp(2 * model.log_density(np.array([[x]]))[0]), -15, 15, points=points, limit=500, epsabs=1e-12
    )
    left_out = 0.0
    for i, share in enumerate(model.weights):
        rest = KDE(np.delete(points, i), h, np.delete(counts, i))
        left_out += share * np.exp(rest.log_prob([[[points[i]]]])[0])
    value = objective(points[:, None], model.weights, h, scale=0.3)
    assert value == pytest.approx(square - 2 * left_out, abs=1e-9)


@pytest.mark.parametrize(("n", "d"), [(2, 1), (30, 2), (50, 5), (1500, 1)])
def test_criterion_is_the_classical_one_without_ties(n, d):
    # 1500 points have more squared distances than are kept
    points = np.random.default_rng(8).standard_normal((n, d))
    for h in (0.05, 0.7):
        assert objective(points, np.full(n, 1 / n), h, 0.2) == pytest.approx(criterion(points, h), rel=1e-9)


@pytest.mark.parametrize("kind", ["normal", "bimodal", "grid", "counts"])
def test_variance_is_the_best_of_a_scan(kind):
    rng = np.random.default_rng(9)
    points = rng.standard_normal((60, 2))
    if kind == "bimodal":
        points[:30] += 8.0
    elif kind == "grid":
        points = np.round(points)
    elif kind == "counts":
        points = np.repeat(np.argwhere(np.ones((4, 4))), rng.poisson(3, 16), axis=0).astype(float)
    h = float(KDEEstimator("lscv").fit(points).model_.variance)
    reference = float(KDEEstimator("silverman").fit(points).model_.variance)
    scan = np.geomspace(1e-3, 10, 801) * reference
    values = [criterion(points, v, ties=True) for v in scan]
    assert criterion(points, h, ties=True) <= min(values) + 1e-12
    assert h == pytest.approx(scan[np.argmin(values)], rel=0.02)


def left_out_log_density(points, h):
    """Mean log density of the draws under the estimate from those that differ from them, by scipy's Gaussians."""
    logs = []
    for x in points:
        rest = points[(points != x).any(axis=1)]
        logs.append(logsumexp([stats.multivariate_normal(c, h * np.eye(len(x))).logpdf(x) for c in rest]))
        logs[-1] -= np.log(len(rest))
    return np.mean(logs)


@pytest.mark.parametrize("kind", ["normal", "ties", "outlier"])
def test_likelihood_is_that_of_points_left_out(kind):
    points = np.random.default_rng(20).standard_normal((11, 2))
    if kind == "ties":
        points = np.round(points)
    if kind == "outlier":
        points[3] = 1e6  # densities underflow, logarithms do not
    cells, counts = np.unique(points, axis=0, return_counts=True)
    bag = core._bag(cells, counts / counts.sum(), True)
    for h in (0.05, 0.7, 30.0):
        found = -core._objective(bag, 0.3, math.log(h / 0.3)) - math.log(2 * math.pi * 0.3)
        assert found == pytest.approx(left_out_log_density(points, h), rel=1e-10)


@pytest.mark.parametrize(("n", "d"), [(2, 1), (60, 2), (1500, 1)])
def test_variance_by_likelihood_is_the_best_of_a_scan(n, d):
    # 1500 points have more squared distances than are kept
    points = np.random.default_rng(21).standard_normal((n, d))
    squares = ((points[:, None] - points) ** 2).sum(axis=2)
    np.fill_diagonal(squares, np.inf)

    def value(h):
        return np.mean(logsumexp(-squares / (2 * h), axis=1)) - 0.5 * d * np.log(h)

    h = float(KDEEstimator().fit([points]).model_.variance)
    reference = float(KDEEstimator("silverman").fit([points]).model_.variance)
    scan = np.geomspace(1e-2, 10, 201) * reference
    values = [value(v) for v in scan]
    assert value(h) >= max(values) - 1e-12
    assert h == pytest.approx(scan[np.argmax(values)], rel=0.05)


def clusters(rng, n, size):
    """Return points of which each lies in a tight cluster of four, such as repeated sightings at a place."""
    return np.repeat(rng.standard_normal((n, 2)), 4, axis=0) + size * rng.standard_normal((4 * n, 2))


def test_clusters_of_points_do_not_become_dots():
    rng = np.random.default_rng(22)
    points = np.concatenate([clusters(rng, 20, 1e-4), rng.standard_normal((80, 2))])
    fresh = rng.standard_normal((200, 2))
    with pytest.warns(UserWarning, match="of object 0 by variance='lscv' ends at the lower bound of the search, 0.001"):
        dots = KDEEstimator("lscv").fit_each([points])[0]
    smooth = KDEEstimator().fit_each([points])[0]  # warnings are errors
    ideal = stats.multivariate_normal(np.zeros(2)).logpdf(fresh).mean()
    assert smooth.log_prob(fresh).mean() > ideal - 1.5
    assert dots.log_prob(fresh).mean() < ideal - 5.0


@pytest.mark.parametrize("rule", ["likelihood", "lscv"])
def test_searches_that_end_at_a_bound_warn(rule):
    rng = np.random.default_rng(23)
    twins = [clusters(rng, 10, 1e-6) for _ in range(3)]
    X = [rng.standard_normal((30, 2)), *twins]
    with pytest.warns(UserWarning, match=r"of object 1 \(and 2 more of 4\) .* lower bound.*silverman") as caught:
        models = KDEEstimator(rule).fit_each(X)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    lowest = {"likelihood": 1e-2, "lscv": 1e-3}[rule]
    reference = KDEEstimator("silverman").fit_each(X)
    assert [float(a.variance / b.variance) for a, b in zip(models[1:], reference[1:])] == pytest.approx([lowest] * 3)


def test_ties_do_not_make_the_variance_vanish():
    rng = np.random.default_rng(10)
    rounded = np.round(rng.standard_normal((400, 1)), 1)
    reference = float(KDEEstimator("silverman").fit(rounded).model_.variance)
    # the criterion that leaves out single draws would choose the lower end of any range
    assert criterion(rounded, 1e-5 * reference) < criterion(rounded, reference)
    model = KDEEstimator("lscv").fit(rounded).model_
    assert 0.1 * reference < model.variance < 10 * reference
    assert len(model.points) < 80
    assert model.weights.max() > 1.5 / 400
    smooth = KDEEstimator("lscv").fit(rng.standard_normal((400, 1))).model_
    grid = np.linspace(-3, 3, 25)[:, None]
    np.testing.assert_allclose(
        np.exp(model.log_density(grid)), np.exp(smooth.log_density(grid)), atol=0.08
    )  # rounding changes little


# --- estimation


@pytest.mark.parametrize("rule", ["silverman", "scott"])
def test_rules_are_those_of_scipy(rule):
    values = np.random.default_rng(11).standard_normal(25) * 3 + 100
    twin = stats.gaussian_kde(values, rule)
    model = KDEEstimator(rule).fit(values[:, None]).model_
    assert float(model.variance) == pytest.approx(twin.covariance[0, 0], rel=1e-10)
    grid = np.linspace(90, 110, 7)
    np.testing.assert_allclose(np.exp(model.log_prob(grid[:, None])), twin(grid), rtol=1e-8)


def test_rules_in_the_plane():
    points = np.random.default_rng(12).standard_normal((40, 2)) * [1.0, 3.0]
    spread = np.var(points, axis=0, ddof=1).mean()
    assert float(KDEEstimator("silverman").fit(points).model_.variance) == pytest.approx(spread * 40 ** (-1 / 3))
    assert float(KDEEstimator("scott").fit(points).model_.variance) == pytest.approx(spread * 40 ** (-1 / 3))


def test_equal_draws_become_weights_and_order_does_not_matter():
    cells, counts = np.array([[0.0, 1.0], [2.0, -0.0], [0.0, 0.0]]), np.array([3, 1, 2])
    bag = np.repeat(cells, counts, axis=0)
    model = KDEEstimator(0.5).fit([bag]).model_
    np.testing.assert_array_equal(model.points, [[0.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    np.testing.assert_allclose(model.weights, [2 / 6, 3 / 6, 1 / 6], rtol=1e-15)
    assert KDEEstimator(0.5).fit([bag[::-1]]).model_ == model
    np.testing.assert_allclose(model.log_prob([bag]), KDE(bag, 0.5).log_prob([bag]), rtol=1e-13)


@pytest.mark.parametrize("rule", ["likelihood", "lscv", "silverman", "scott", 0.3])
def test_fit_each_depends_on_its_bag_alone(rule):
    rng = np.random.default_rng(13)
    X = [np.round(rng.standard_normal((m, 2)), 1) for m in (5, 40, 2, 17)]
    estimator = KDEEstimator(rule)
    models = estimator.fit_each(X)
    for x, model in zip(X, models, strict=True):
        assert estimator.fit_each([x])[0] == model
        assert estimator.fit([x]).model_ == model
    assert estimator.fit_each(X[::-1]) == models[::-1]
    pooled = estimator.fit(X).model_
    assert pooled == estimator.fit([np.concatenate(X)]).model_
    assert FitEach(estimator).fit_transform(X) == models


def test_estimate_approaches_the_density():
    rng = np.random.default_rng(14)
    grid = np.linspace(-6, 6, 121)[:, None]
    true = 0.5 * stats.norm(-2, 0.5).pdf(grid[:, 0]) + 0.5 * stats.norm(2, 0.5).pdf(grid[:, 0])
    errors = {}
    for rule in ("lscv", "silverman"):
        errors[rule] = []
        for n in (100, 1000):
            points = rng.normal(rng.choice([-2.0, 2.0], n), 0.5)
            density = np.exp(KDEEstimator(rule).fit(points[:, None]).model_.log_density(grid))
            errors[rule].append(((density - true) ** 2).mean())
    assert errors["lscv"][1] < errors["lscv"][0]
    assert errors["lscv"][1] < errors["silverman"][1]  # Silverman's rule oversmooths two clusters


def test_plug_in_classifier():
    rng = np.random.default_rng(15)
    y = np.repeat([0, 1], 20)
    X = [rng.standard_normal((m, 2)) * (1 + c) for m, c in zip(rng.integers(5, 15, 40), y)]
    assert PlugInClassifier(KDEEstimator()).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.8


# --- refusals


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: KDE([[0.0, np.nan]], 1.0), "'points' must be finite"),
        (lambda: KDE(np.zeros((0, 2)), 1.0), "n, d >= 1"),
        (lambda: KDE([[0.0]], -1.0), "'variance' must not be negative"),
        (lambda: KDE([[0.0]], [1.0, 1.0]), "'variance' must have shape"),
        (lambda: KDE([[0.0], [1.0]], 1.0, [1.0]), "'weights' must have shape"),
        (lambda: KDE([[0.0], [1.0]], 1.0, [1.0, -1.0]), "'weights' must not be negative"),
        (lambda: KDE([[0.0], [1.0]], 1.0, [0.0, 0.0]), "not all be zero"),
        (lambda: KDE([[0.0]], 0.0).log_prob([[[1.0]]]), "variance zero"),
        (lambda: KDE([[0.0, 1.0]], 1.0).log_prob([[[1.0]]]), "2 were expected"),
        (lambda: KDE([[[0.0]]], [1.0]).statistics([[[1.0]]]), "index it"),
        (lambda: KDEEstimator("best").fit([[0.0], [1.0]]), "'variance' parameter of KDEEstimator must be one of"),
        (lambda: KDEEstimator(0.0).fit([[0.0], [1.0]]), "> 0"),
        (lambda: KDEEstimator().fit_each([[[0.0], [1.0]], [[2.0]]]), "object 1 has 1 sample.*variance= a number"),
        (lambda: KDEEstimator().fit_each([[[0.1]] * 3, [[2.0]]]), "object 0 has 3 points, all equal.*a number"),
        (lambda: KDEEstimator("scott").fit(np.tile([0.1, 0.3], (7, 1))), "all equal"),
        (lambda: KDEEstimator().fit([[1e200], [-1e200]]), "object 0, position 0, column 0 is 1e.200.*overflow"),
        (lambda: KDEEstimator().fit([[1e-200], [-1e-200]]), "deviate by .*underflow"),
        (lambda: KDEEstimator().fit([np.zeros((2, 2)), [[0.0, 1.0], [np.nan, 1.0]]]), "object 1, position 1, column 0"),
        (lambda: KDEEstimator("lscv").fit(np.eye(201)), "at most 200 dimensions"),
    ],
)
def test_errors_say_what_and_what_to_do(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_there_is_no_m_step():
    model = KDE([[0.0]], 1.0)
    with pytest.raises(TypeError, match="no M-step"):
        KDEEstimator().maximize(model.statistics([[[1.0]]]))


def test_one_point_with_a_given_variance():
    model = KDEEstimator(0.5).fit_each([[[2.0]], [[1.0], [1.0]]])
    assert model == [KDE([[2.0]], 0.5), KDE([[1.0]], 0.5)]


def test_it_is_a_mixture_of_gaussians():
    rng = np.random.default_rng(16)
    model = random_kde(rng, 6)
    twin = Mixture(model.weights, Gaussian(model.points, np.full(6, float(model.variance))))
    X = [random_bag(rng, 4, missing=0.2), random_bag(rng, 3)]
    np.testing.assert_allclose(model.log_prob(X), twin.log_prob(X), rtol=1e-12)
    for ours, theirs in zip(model.posterior(X), twin.posterior(X), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-13)
    ours, theirs = model.statistics(X), twin.statistics(X)
    np.testing.assert_allclose(ours["weights"], theirs["weights"], rtol=1e-10)
    np.testing.assert_allclose(ours["points"], theirs["components.mean"], rtol=1e-10, atol=1e-13)


def test_it_can_be_the_emission_of_hidden_states():
    rng = np.random.default_rng(18)
    model = HMM([0.3, 0.7], [[0.8, 0.2], [0.4, 0.6]], random_kde(rng, 3, 2, batch=(2,)))
    assert max(check_score(model, [random_bag(rng, 4, missing=0.2), random_bag(rng, 1)]).values()) < 1e-6


# --- compiled or not


def without_jit():
    """Return results that the test computes compiled and not."""
    rng = np.random.default_rng(17)
    model = random_kde(rng, 11, 2, zeros=0.2)
    X = [random_bag(rng, 3, missing=0.3), random_bag(rng, 2)]
    bags = [core._bag(model.points.copy(), model.weights.copy(), likely) for likely in (False, True)]
    values = [core._objective(bag, 0.7, log_h) for bag in bags for log_h in (-3.0, 0.0)]
    return [*model.log_prob(X).tolist(), *model.log_prob_grad(X).ravel().tolist(), *values]


def test_without_jit():
    program = "from test_models_kde import without_jit; print(without_jit())"
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.path.dirname(__file__)}
    run = subprocess.run([sys.executable, "-W", "error", "-c", program], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    np.testing.assert_allclose(eval(run.stdout), without_jit(), rtol=1e-11, atol=1e-13)


def test_a_bag_that_begins_where_the_last_one_ends_stays_its_own():
    bags = [np.array([[0.0], [0.4], [1.0]]), np.array([[3.0], [1.0], [1.0], [2.5]])]
    together = KDEEstimator(variance="silverman").fit_each(bags)
    for bag, model in zip(bags, together, strict=True):
        alone = KDEEstimator(variance="silverman").fit([bag]).model_
        points = np.linspace(-2.0, 5.0, 9)[:, None]
        np.testing.assert_allclose(model.log_density(points), alone.log_density(points), rtol=1e-12)
        parts = stats.norm(bag[:, 0], np.sqrt(alone.variance)).pdf(points)
        np.testing.assert_allclose(alone.log_density(points), np.log(parts.mean(axis=1)), rtol=1e-10)


def test_derivatives_that_overflow_are_refused():
    model = KDE([[0.0], [1.0]], 5e-155)
    with pytest.raises(ValueError, match=r"KDE: derivatives need a variance .* Got 5e-155. Divide"):
        model.statistics([np.array([[3.0]])])
