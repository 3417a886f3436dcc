"""Mixtures: EM steps against scikit-learn from the same start, and W6, Fisher vectors against scikit-image."""

from __future__ import annotations

import warnings

import numpy as np
from skimage.feature import fisher_vector
from sklearn.mixture import GaussianMixture

from benchmarks.timing import race
from genkern import Gaussian, GaussianEstimator, Mixture, MixtureEstimator

STEPS = 5
PEERS = {"isotropic": "spherical", "diagonal": "diag", "full": "full"}


def points(rng: np.random.Generator, count: int, d: int, clusters: int) -> np.ndarray:
    """Return points about random centres."""
    centres = 2.0 * rng.standard_normal((clusters, d))
    return centres[rng.integers(clusters, size=count)] + rng.standard_normal((count, d))


def unit_covariances(covariance: str, k: int, d: int) -> np.ndarray:
    """Return unit covariances (or precisions) of k components."""
    full = np.tile(np.eye(d), (k, 1, 1))
    return {"isotropic": np.ones(k), "diagonal": np.ones((k, d)), "full": full}[covariance]


def peer(model: Mixture, covariance: str, steps: int) -> GaussianMixture:
    """Return scikit-learn's mixture that starts at a model of unit covariances."""
    return GaussianMixture(
        model.n_components,
        covariance_type=PEERS[covariance],
        tol=0.0,
        reg_covar=0.0,
        max_iter=steps,
        weights_init=np.array(model.weights),
        means_init=np.array(model.components.mean),
        precisions_init=np.array(model.components.cov),
    )


def em(covariance: str, k: int = 16, count: int = 100_000, d: int = 8) -> None:
    """Race EM from the same start; both also compute the likelihood of the last model."""
    rng = np.random.default_rng(0)
    X = points(rng, count, d, k)
    start = Mixture(np.full(k, 1.0 / k), Gaussian(X[:k], unit_covariances(covariance, k, d)))
    component = GaussianEstimator(covariance, min_covar=0.0)
    ours = MixtureEstimator(k, component, init=start, pseudocount=0.0, tol=0.0, max_iter=STEPS)
    theirs = peer(start, covariance, STEPS)
    np.testing.assert_allclose(ours.fit(X).model_.components.mean, theirs.fit(X).means_, rtol=1e-8, atol=1e-8)
    race(
        f"EM, {k} {covariance} components, {count} x {d}, {STEPS} steps",
        "scikit-learn GaussianMixture.fit",
        lambda: theirs.fit(X),
        lambda: ours.fit(X),
        goal=4,
        rounds=4,
    )


def w6(k: int = 64, bags: int = 1000, size: int = 100, d: int = 64) -> None:
    """Race Fisher vectors of bags: derivatives by weights, means and variances of all components."""
    rng = np.random.default_rng(1)
    X = points(rng, bags * size, d, k)
    model = Mixture(np.full(k, 1.0 / k), Gaussian(X[:k], np.ones((k, d))))
    theirs = peer(model, "diagonal", 1).fit(X[:2000])
    model = Mixture(theirs.weights_, Gaussian(theirs.means_, theirs.covariances_ + 0.1))
    theirs.covariances_ = np.array(model.components.cov)
    theirs.precisions_cholesky_ = 1.0 / np.sqrt(theirs.covariances_)
    objects = X.reshape(bags, size, d)
    race(
        f"W6 Fisher vectors, {bags} x {size} x {d}, {k} components",
        "scikit-image fisher_vector per bag",
        lambda: [fisher_vector(x, theirs) for x in objects],
        lambda: model.log_prob_grad(objects),
        goal=4,
        rounds=4,
    )


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for covariance in PEERS:
            em(covariance)
        w6()


if __name__ == "__main__":
    main()
