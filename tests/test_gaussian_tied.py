"""One covariance for all states or components, against maximisation by brute force."""

import numpy as np
import pytest
from scipy.optimize import minimize

from genkern import HMM, Gaussian, GaussianEstimator, HMMEstimator, Mixture, MixtureEstimator

RNG = np.random.default_rng(0)
FORMS = ("isotropic", "diagonal", "full")
POINTS = np.vstack([RNG.normal(size=(25, 2)) @ [[1.0, 0.4], [0.0, 0.6]] + shift for shift in ([0, 0], [3, 1], [0, 5])])


def spread(form, vector):
    """Return a covariance from free numbers, and its matrix."""
    if form == "full":
        root = np.array([[np.exp(vector[0]), 0.0], [vector[1], np.exp(vector[2])]])
        return root @ root.T, root @ root.T
    value = np.exp(vector)
    return (value[0], value[0] * np.eye(2)) if form == "isotropic" else (value, np.diag(value))


@pytest.mark.parametrize("form", FORMS)
def test_the_step_maximises_the_expected_likelihood_of_one_covariance(form):
    eye = {"isotropic": 1.0, "diagonal": np.ones(2), "full": np.eye(2)}[form]
    start = Mixture([0.3, 0.3, 0.4], Gaussian([[0.0, 0.0], [2.0, 2.0], [0.0, 4.0]], np.stack([eye] * 3)))
    shares = start.posterior([POINTS])[0]
    estimator = MixtureEstimator(3, GaussianEstimator(form, relative_floor=0, tied=True), pseudocount=0)
    found = estimator.maximize(start.statistics([POINTS])).components
    means = shares.T @ POINTS / shares.sum(axis=0)[:, None]
    np.testing.assert_allclose(found.mean, means, rtol=1e-10)
    assert (found.cov == found.cov[:1]).all()

    def loss(vector):
        matrix = spread(form, vector)[1]
        gaps = POINTS[:, None] - means
        squares = np.einsum("tki,ij,tkj->tk", gaps, np.linalg.inv(matrix), gaps)
        return 0.5 * (shares * (squares + np.linalg.slogdet(matrix)[1])).sum()

    size = {"isotropic": 1, "diagonal": 2, "full": 3}[form]
    best = minimize(loss, np.zeros(size), tol=1e-12)
    np.testing.assert_allclose(found.cov[0], spread(form, best.x)[0], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_fits_never_fall_and_have_one_covariance(form):
    tied = GaussianEstimator(form, tied=True)
    X = [POINTS[::2], POINTS[1::2]]
    for estimator in (HMMEstimator(3, tied, random_state=0), MixtureEstimator(3, tied, random_state=0)):
        fitted = estimator.fit(X)
        leaf = fitted.model_.emissions if isinstance(fitted.model_, HMM) else fitted.model_.components
        assert (leaf.cov == leaf.cov[:1]).all()
        assert np.all(np.diff(fitted.history_) > -1e-9)
        free = type(estimator)(3, GaussianEstimator(form), random_state=0).fit(X)
        size = {"isotropic": 1, "diagonal": 2, "full": 3}[form]
        assert free.model_.n_free_parameters - fitted.model_.n_free_parameters == 2 * size
        for model in estimator.fit_each(X):
            leaf = model.emissions if isinstance(model, HMM) else model.components
            assert (leaf.cov == leaf.cov[:1]).all()
    one, other = MixtureEstimator(3, tied, random_state=0).fit_each(X)
    assert not np.allclose(one.components.cov, other.components.cov)  # each bag has its own
    assert other == MixtureEstimator(3, tied, random_state=0).fit_each(X[1:])[0]


def test_mixtures_of_states_share_one_covariance():
    estimator = HMMEstimator(2, MixtureEstimator(2, GaussianEstimator(tied=True)), random_state=0)
    cov = estimator.fit([POINTS]).model_.emissions.components.cov
    assert (cov == cov[:1, :1]).all()


def test_the_floor_holds_for_the_shared_covariance():
    x = np.repeat([[0.0], [5.0]], 10, axis=0) + np.tile([[0.01], [-0.01]], (10, 1))
    model = MixtureEstimator(2, GaussianEstimator(min_covar=0.25, tied=True), random_state=0).fit([x]).model_
    np.testing.assert_array_equal(model.components.cov, 0.25)


def test_a_start_of_different_covariances_is_tied_first():
    start = Mixture([0.5, 0.5], Gaussian([[0.0, 0.0], [2.0, 4.0]], [[1.0, 2.0], [3.0, 0.5]]))
    fitted = MixtureEstimator(2, GaussianEstimator(tied=True), init=start).fit([POINTS])
    assert np.all(np.diff(fitted.history_) > -1e-9)
    assert fitted.converged_
    assert (fitted.model_.components.cov == fitted.model_.components.cov[:1]).all()


def test_a_component_without_points_has_the_shared_covariance():
    leaf = Gaussian([[0.0, 0.0], [1e6, 1e6]], [[1.0, 1.0], [1.0, 1.0]])
    start = Mixture([1.0, 0.0], leaf)
    estimator = MixtureEstimator(2, GaussianEstimator(relative_floor=0, tied=True), pseudocount=0)
    found = estimator.maximize(start.statistics([POINTS])).components
    np.testing.assert_allclose(found.cov, [POINTS.var(axis=0)] * 2, rtol=1e-10)
    np.testing.assert_array_equal(found.mean[1], [1e6, 1e6])


@pytest.mark.parametrize("estimate", ["map", "predictive"])
def test_priors_are_refused(estimate):
    with pytest.raises(ValueError, match="tied=True"):
        GaussianEstimator(estimate=estimate, tied=True).fit([POINTS])
    with pytest.raises(ValueError, match="tied"):
        GaussianEstimator(tied=1).fit([POINTS])
